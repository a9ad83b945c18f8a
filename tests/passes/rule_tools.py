"""Functions of one operation and its derivative in either mode; run by the interpreter, and as machine code."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from irad.passes.build import DERIVATIVE_FLAGS, Builder
from irad.passes.ir import ops
from irad.passes.ir.interp import run
from irad.passes.ir.model import Arg, Function, Instr, Value
from irad.passes.ir.verify import verify
from irad.passes.ir.write import write_functions
from irad.passes.rules import cotangents_of, tangent_of

from irad.codegen.cpu import compile_text

from .ir_tools import CTYPES

NUMBER = {"double": np.float64, "float": np.float32}


def signature(name: str, type: str) -> tuple[list[str], str]:
    """Types of operands and result of a row of the table, in a precision."""
    if name in ops.MATH:
        return [type if a == "f" else "i32" for a in ops.MATH[name].arguments], type
    if name in ("fpext", "fptrunc"):
        return (["float"], "double") if name == "fpext" else (["double"], "float")
    return [type] * (1 if name == "irad.strong" else ops.OPS[name].operands), type


def instruction(name: str, type: str, operands: Sequence[Value]) -> Instr:
    _, result = signature(name, type)
    if name in ops.MATH:
        return Instr("call", result, list(operands), callee=ops.math_callee(name, type))
    if name == "irad.strong":
        return Instr("call", result, list(operands), callee=f"irad.strong.{ops.SHORT[type]}")
    return Instr(name, result, list(operands))


def start(name: str, type: str, label: str, more: Sequence[Arg], result: str, flags: Sequence[str]) -> Any:
    types, _ = signature(name, type)
    args = [Arg(t, f"x{k}") for k, t in enumerate(types)]
    fn = Function(f"{label}.{name}.{type}", result, [*args, *more])
    b = Builder(fn.block("entry"), flags=flags)
    return fn, b, b.block.append(instruction(name, type, args)), args


def value(name: str, type: str) -> Function:
    _, result = signature(name, type)
    fn, b, i, _ = start(name, type, "value", (), result, ())
    b.ret(i)
    return fn


def forward(name: str, type: str, active: Sequence[int], flags: Sequence[str] = DERIVATIVE_FLAGS) -> Function:
    """``f(operands, a tangent for each active operand)``: the tangent of the result."""
    types, result = signature(name, type)
    tangents = {k: Arg(types[k], f"t{k}") for k in active}
    label = "forward." + "".join(map(str, active))
    fn, b, i, args = start(name, type, label, list(tangents.values()), result, flags)
    found = tangent_of(b, i, args, i, [tangents.get(k) for k in range(len(args))])
    b.ret(found or b.const(result, 0.0))
    return fn


def reverse(name: str, type: str, k: int, active: Sequence[int], flags: Sequence[str] = DERIVATIVE_FLAGS) -> Function:
    """``f(operands, cotangent)``: what operand ``k`` receives."""
    types, result = signature(name, type)
    c = Arg(result, "c")
    label = f"reverse.{k}." + "".join(map(str, active))
    fn, b, i, args = start(name, type, label, [c], types[k], flags)
    wanted = [j in active for j in range(len(args))]
    b.ret(cotangents_of(b, i, args, lambda: i, c, wanted)[k])
    return fn


def interpreted(fn: Function, *args: Any) -> Any:
    verify(fn)
    return run(fn, list(args))


class Machine:
    """Functions compiled together at full optimisation, called by name."""

    def __init__(self, functions: Sequence[Function]) -> None:
        self.functions = {fn.name: fn for fn in functions}
        self.code = compile_text(write_functions(*functions), keep=False)

    def __call__(self, name: str, *args: Any) -> Any:
        fn = self.functions[name]
        types = [a.type for a in fn.args]
        call = ctypes.CFUNCTYPE(CTYPES[fn.type], *(CTYPES[t] for t in types))(self.code.address(name))
        return call(*(float(a) if t in NUMBER else int(a) for a, t in zip(args, types, strict=True)))
