"""Unrolls loops of known length completely, also where LLVM finds them too long: ``for a in range(-2, 3)`` over a
stencil's points, twice nested.

A loop is counted by running its integer recurrences from their constant starts; LLVM, told to unroll it, does the work.
Afterwards every access has an index of its own. Loops of unknown or great length stay.
"""

from __future__ import annotations

import re

from .canonical import optimise
from .ir import ops
from .ir.const import const_value
from .ir.graph import Loop, dominators, loops
from .ir.model import Block, Function, Instr, Value
from .ir.read import DEFINE, skim_function
from .ir.scalars import SCALAR
from .ir.tokens import plain_name
from .ir.values import as_type

MOST_TRIPS = 1024
MOST_INSTRUCTIONS = 8192
_MOST_ROUNDS = 8

_LABEL = re.compile(r'^("[^"]*"|[-\w.$]+):')
_TARGET = re.compile(r'label %("[^"]*"|[-\w.$]+)')
_NODE = re.compile(r"^!(\d+) = ", re.M)
_HINT = re.compile(r", !llvm\.loop !\d+")


def unroll(text: str, name: str) -> str:
    """LLVM text in which the function ``name`` has no loop of known, moderate length. The text is LLVM's own print."""
    for _ in range(_MOST_ROUNDS):
        if not _jumps_back(text, name):
            return text
        latches = known_loops(skim_function(text, name))
        if not latches:
            return text
        text = optimise(_with_hints(text, name, latches))
    return text


def known_loops(fn: Function) -> frozenset[str]:
    """Names of the blocks that jump back in innermost loops whose length is known and moderate."""
    found = set()
    for loop in loops(fn):
        count = trip_count(fn, loop)
        size = sum(len(b.instrs) for b in loop.blocks)
        if not loop.children and count is not None and count * size <= MOST_INSTRUCTIONS:
            found |= {b.name for b in loop.latches}
    return frozenset(found)


def trip_count(fn: Function, loop: Loop) -> int | None:
    """How often the header of a loop runs, if that does not depend on any variable; at most ``MOST_TRIPS``."""
    if len(loop.latches) != 1:
        return None
    (latch,) = loop.latches
    dom = dominators(fn)
    phis = [p for p in loop.header.phis if ops.is_int(p.type)]
    start = {p: _start(p, loop) for p in phis}
    for b in loop.blocks:
        i = b.terminator
        leaves = [t not in loop.blocks for t in i.targets]
        if i.op == "br" and len(leaves) == 2 and leaves[0] != leaves[1] and b in dom[latch]:
            count = _count(i.operands[0], leaves[0], latch, start)
            if count is not None:
                return count
    return None


def _start(phi: Instr, loop: Loop) -> int | None:
    values = {_number(v) for v, b in zip(phi.operands, phi.targets, strict=True) if b not in loop.blocks}
    return values.pop() if len(values) == 1 else None


def _number(v: Value) -> int | None:
    value = const_value(v)
    return value if isinstance(value, int) else None


def _count(condition: Value, leave: bool, latch: Block, start: dict[Instr, int | None]) -> int | None:
    """Run the recurrences of a loop's header until the condition says to leave."""
    state: dict[Value, int | None] = {**start}  # type: ignore[dict-item]
    for trip in range(1, MOST_TRIPS + 1):
        decided = _evaluate(condition, state)
        if decided is None:
            return None
        if bool(decided) == leave:
            return trip
        after = {p: p.operands[p.targets.index(latch)] for p in start}
        state = {p: _evaluate(v, state) for p, v in after.items()}
    return None


def _evaluate(v: Value, state: dict[Value, int | None]) -> int | None:
    """An integer that depends on nothing but the state, which holds what is known of this trip."""
    if v in state:
        return state[v]
    if not isinstance(v, Instr):
        return _number(v)
    known = v.op in SCALAR and v.op != "bitcast" and all(ops.is_int(o.type) for o in v.operands)
    result: int | None = None
    if v.op == "select" and ops.is_int(v.type):
        chosen = _evaluate(v.operands[0], state)
        result = None if chosen is None else _evaluate(v.operands[1 if chosen else 2], state)
    elif known and ops.is_int(v.type):
        operands = [_evaluate(o, state) for o in v.operands]
        if all(o is not None for o in operands):
            result = _computed(v, operands)
    state[v] = result
    return result


def _computed(v: Instr, operands: list[int | None]) -> int | None:
    try:
        return int(as_type(v.type, SCALAR[v.op](v, *operands)))
    except ZeroDivisionError:
        return None


def _jumps_back(text: str, name: str) -> bool:
    """Whether a function may have a loop: only then does a branch lead to a label that stands above it."""
    seen: set[str] = set()
    inside = False
    for line in text.splitlines():
        if found := DEFINE.match(line):
            inside = plain_name(found[1]) == name
        elif inside and (label := _LABEL.match(line)):
            seen.add(label[1])
        elif inside and any(t in seen for t in _TARGET.findall(line)):
            return True
    return False


def _with_hints(text: str, name: str, latches: frozenset[str]) -> str:
    """Tell LLVM to unroll the loops that these blocks close."""
    first = max(map(int, _NODE.findall(text)), default=-1) + 1
    lines = []
    inside, block = False, ""
    for line in text.splitlines():
        if found := DEFINE.match(line):
            inside, block = plain_name(found[1]) == name, ""
        elif inside and (label := _LABEL.match(line)):
            block = plain_name(label[1])
        elif inside and block in latches and line.lstrip().startswith("br "):
            line = f"{_HINT.sub('', line)}, !llvm.loop !{first}"
        lines.append(line)
    lines.append(f"!{first} = distinct !{{!{first}, !{first + 1}}}")
    lines.append(f'!{first + 1} = !{{!"llvm.loop.unroll.full"}}')
    return "\n".join([*lines, ""])
