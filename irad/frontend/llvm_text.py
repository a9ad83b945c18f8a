"""The little that the frontend asks of LLVM itself: simplify a domain function, and place an instruction."""

from __future__ import annotations

import re
from typing import Any

import llvmlite.binding as llvm

from irad.errors import IradError
from irad.frontend.signature import Loc
from irad.frontend.translate import LIBRARIES
from irad.frontend.wrapper import OUT

_LOCATION = re.compile(
    r"^(!\d+) = (?:distinct )?!DILocation\(line: (\d+),.*?scope: (!\d+)(?:, inlinedAt: (?:distinct )?(!\d+))?", re.M
)
_SCOPE = re.compile(r"^(!\d+) = .*!DISubprogram\(.*?file: (!\d+)", re.M)
_FILE = re.compile(r'^(!\d+) = !DIFile\(filename: "([^"]*)", directory: "([^"]*)"', re.M)


def simplified(text: str) -> str:
    """An LLVM module after LLVM's own optimiser, without vectorising."""
    module = llvm.parse_assembly(text)
    machine = llvm.Target.from_triple(module.triple or llvm.get_process_triple()).create_target_machine(opt=2)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = options.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return str(module)


def place_of(instruction: str, text: str, fallback: Loc) -> Loc:
    """The user's place of an instruction of the module ``text``: within code of Numba or irad, that of the call."""
    found = re.search(r"!dbg (!\d+)", instruction)
    locations = {n: (int(line), scope, at) for n, line, scope, at in _LOCATION.findall(text)}
    scopes = dict(_SCOPE.findall(text))
    files = {n: f"{folder}/{name}" if folder else name for n, name, folder in _FILE.findall(text)}
    number = found[1] if found else ""
    while number in locations:
        line, scope, number = locations[number]
        file = files.get(scopes.get(scope, ""), fallback.file)
        if not file.startswith(LIBRARIES):
            return Loc(file, line)
    return fallback


_GEP = re.compile(r"^(%\S+) = getelementptr .*?, ptr ([^\s,]+)")
_STORE = re.compile(r"^store .*, ptr ([^\s,]+)")


def check_domain(text: str, name: str, fallback: Loc) -> None:
    """Refuse a (simplified) domain function that reads array content, uses floats, writes, or could fail."""
    bases: dict[str, str] = {}
    for block in llvm.parse_assembly(text).get_function(name).blocks:
        for instruction in block.instructions:
            line = str(instruction).strip()
            if found := _GEP.match(line):
                bases[found[1]] = bases.get(found[2], found[2])
            if reason := _reason_against(instruction, line, bases):
                raise IradError(
                    f"the launch domain {reason}",
                    loc=place_of(line, text, fallback),
                    remedy="name it first, and bound it by shapes and integer arguments alone",
                )


def _reason_against(instruction: Any, line: str, bases: dict[str, str]) -> str:
    kinds = {str(instruction.type), *(str(v.type) for v in instruction.operands)}
    if instruction.opcode == "load":
        return "depends on the content of an array"
    if found := _STORE.match(line):
        return "" if bases.get(found[1], found[1]) == f"%{OUT}" else "is named after an entry has been assigned"
    if kinds & {"double", "float"}:
        return "depends on a float"
    if instruction.opcode == "call" and "@llvm." not in line:
        return "cannot be computed before the launch without a chance of failure"
    return ""
