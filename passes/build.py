"""Emits instructions of the small IR, with peepholes.

A peephole is taken only where it is an exact identity of IEEE 754 arithmetic for every operand (quiet NaNs and signed
zeros included): ``x * 1``, ``x / 1``, ``x + -0.0``, ``x - 0.0``, ``-(-x)``, a choice that is known, and operations on
constants, rounded as the machine would. ``x * 0`` stays: it is NaN where ``x`` is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .ir import ops
from .ir.const import const_value, float_const, int_const, is_number
from .ir.model import Access, Block, Const, Function, Instr, Loc, Value

DERIVATIVE_FLAGS = ("reassoc", "arcp", "contract")
"""For arithmetic on tangents and cotangents, never on primal values; and never ``nnan``, ``ninf``, ``nsz``, ``afn``."""

_FOLDED: dict[str, Callable[[Any, Any], Any]] = {
    "fadd": operator.add,
    "fsub": operator.sub,
    "fmul": operator.mul,
    "fdiv": operator.truediv,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
_ORDERED: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_FLOAT = {"double": np.float64, "float": np.float32}


class Builder:
    """Appends to ``block``, or inserts before position ``at`` of it, going on behind what it inserted.

    ``loc`` is given to every instruction, ``flags`` to the float arithmetic ``fadd fsub fmul fdiv fneg``; both are
    plain attributes and may be changed on the way. Methods return the value: an :class:`Instr`, or an operand or a
    :class:`Const` where a peephole applied.

    >>> from irad.passes.ir.model import Block, Arg
    >>> b = Builder(Block("entry"), flags=("contract",))
    >>> x = Arg("double", "x")
    >>> b.fmul(x, b.const("double", 1.0)) is x
    True
    >>> b.fadd(x, x).flags
    ('contract',)
    """

    def __init__(
        self, block: Block, loc: Loc | None = None, flags: Sequence[str] = (), *, at: int | None = None
    ) -> None:
        self.block = block
        self.loc = loc
        self.flags = tuple(flags)
        self.at = at

    def emit(self, op: str, type: str, operands: Sequence[Value] = (), **fields: Any) -> Instr:
        """Any instruction as it stands; ``fields`` are those of :class:`Instr`."""
        fields.setdefault("loc", self.loc)
        instr = Instr(op, type, list(operands), **fields)
        if self.at is None:
            return self.block.append(instr)
        self.at += 1
        return self.block.insert(self.at - 1, instr)

    # constants -------------------------------------------------------------------------------------------------------

    def const(self, type: str, value: float) -> Const:
        """A number of a float type (rounded to it) or an integer type."""
        return float_const(type, value) if type in ops.FLOATS else int_const(type, int(value))

    # floats ----------------------------------------------------------------------------------------------------------

    def fadd(self, a: Value, b: Value) -> Value:
        if is_number(b, -0.0):
            return a
        if is_number(a, -0.0):
            return b
        return self._float("fadd", a, b)

    def fsub(self, a: Value, b: Value) -> Value:
        if is_number(b, 0.0):
            return a
        if is_number(a, -0.0):
            return self.fneg(b)
        return self._float("fsub", a, b)

    def fmul(self, a: Value, b: Value) -> Value:
        if is_number(b, 1.0):
            return a
        if is_number(a, 1.0):
            return b
        return self._float("fmul", a, b)

    def fdiv(self, a: Value, b: Value) -> Value:
        return a if is_number(b, 1.0) else self._float("fdiv", a, b)

    def fneg(self, a: Value) -> Value:
        value = const_value(a)
        if value is not None:
            return self.const(a.type, -float(value))
        if isinstance(a, Instr) and a.op == "fneg":
            return a.operands[0]
        return self.emit("fneg", a.type, [a], flags=self.flags)

    def fcmp(self, pred: str, a: Value, b: Value) -> Value:
        x, y = const_value(a), const_value(b)
        if x is not None and y is not None and pred[1:] in _ORDERED and pred not in ("ord", "uno"):
            unordered = x != x or y != y
            return self.const("i1", (pred[0] == "u") if unordered else _ORDERED[pred[1:]](x, y))
        return self.emit("fcmp", "i1", [a, b], pred=pred)

    def call_math(self, name: str, *args: Value) -> Value:
        """A function of ``ir/ops.py`` by its name, in the precision of its first argument."""
        type = args[0].type
        return self.emit("call", type, args, callee=ops.math_callee(name, type))

    def _float(self, op: str, a: Value, b: Value) -> Value:
        x, y = const_value(a), const_value(b)
        if x is not None and y is not None:
            number = _FLOAT[a.type]
            with np.errstate(all="ignore"):
                value = _FOLDED[op](number(x), number(y))
            if not np.isnan(value):
                return self.const(a.type, float(value))
        return self.emit(op, a.type, [a, b], flags=self.flags)

    # integers and booleans -------------------------------------------------------------------------------------------

    def add(self, a: Value, b: Value, flags: Sequence[str] = ()) -> Value:
        if is_number(b, 0):
            return a
        return b if is_number(a, 0) else self._int("add", a, b, flags)

    def sub(self, a: Value, b: Value, flags: Sequence[str] = ()) -> Value:
        return a if is_number(b, 0) else self._int("sub", a, b, flags)

    def mul(self, a: Value, b: Value, flags: Sequence[str] = ()) -> Value:
        if is_number(b, 1):
            return a
        return b if is_number(a, 1) else self._int("mul", a, b, flags)

    def and_(self, a: Value, b: Value) -> Value:
        return self._logic("and", a, b, neutral=-1)

    def or_(self, a: Value, b: Value) -> Value:
        return self._logic("or", a, b, neutral=0)

    def xor(self, a: Value, b: Value) -> Value:
        return self._logic("xor", a, b, neutral=0)

    def icmp(self, pred: str, a: Value, b: Value) -> Value:
        x, y = const_value(a), const_value(b)
        if x is not None and y is not None and pred.lstrip("s") in _ORDERED:  # unsigned ones are left alone
            return self.const("i1", _ORDERED[pred.lstrip("s")](x, y))
        return self.emit("icmp", "i1", [a, b], pred=pred)

    def iwrap(self, x: Value, n: Value) -> Value:
        return self.emit("iwrap", "i64", [x, n])

    def _int(self, op: str, a: Value, b: Value, flags: Sequence[str]) -> Value:
        x, y = const_value(a), const_value(b)
        if x is not None and y is not None:
            return self.const(a.type, _FOLDED[op](x, y))
        return self.emit(op, a.type, [a, b], flags=tuple(flags))

    def _logic(self, op: str, a: Value, b: Value, neutral: int) -> Value:
        keep = int_const(a.type, neutral).text
        if isinstance(b, Const) and b.text == keep:
            return a
        if isinstance(a, Const) and a.text == keep:
            return b
        return self._int(op, a, b, ())

    # choice and conversion -------------------------------------------------------------------------------------------

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        known = const_value(condition)
        if known is not None:
            return a if known else b
        if a is b or (isinstance(a, Const) and isinstance(b, Const) and a.text == b.text and a.type == b.type):
            return a
        return self.emit("select", a.type, [condition, a, b])

    def cast(self, op: str, a: Value, type: str) -> Value:
        """``fpext fptrunc sitofp uitofp fptosi fptoui sext zext trunc bitcast`` as they stand."""
        return self.emit(op, type, [a])

    def to_float(self, a: Value, type: str) -> Value:
        """A float, or a signed integer, as a float of ``type``."""
        if a.type == type:
            return a
        value = const_value(a)
        if value is not None and a.type != "i1":
            return self.const(type, float(value) if a.type in ops.FLOATS else value)
        if ops.is_int(a.type):
            return self.cast("uitofp" if a.type == "i1" else "sitofp", a, type)
        return self.cast("fpext" if type == "double" else "fptrunc", a, type)

    # memory ----------------------------------------------------------------------------------------------------------

    def alloca(self, elem: str, name: str = "", align: int = 0) -> Instr:
        return self.emit("alloca", "ptr", [], elem=elem, name=name, align=align)

    def load(self, type: str, pointer: Value, align: int = 0) -> Instr:
        return self.emit("load", type, [pointer], align=align)

    def store(self, value: Value, pointer: Value, align: int = 0) -> Instr:
        return self.emit("store", "void", [value, pointer], align=align)

    def gep(self, elem: str, pointer: Value, *indices: Value, flags: Sequence[str] = ()) -> Instr:
        return self.emit("getelementptr", "ptr", [pointer, *indices], elem=elem, flags=tuple(flags))

    def aload(self, type: str, array: str, index: Sequence[Value], access: Access | None = None) -> Instr:
        return self.emit("aload", type, index, array=array, access=access)

    def astore(self, value: Value, array: str, index: Sequence[Value], access: Access | None = None) -> Instr:
        return self.emit("astore", "void", [value, *index], array=array, access=access)

    def sload(self, type: str, array: str, index: Sequence[Value], access: Access | None = None) -> Instr:
        return self.emit("sload", type, index, array=array, access=access)

    def sstore(self, value: Value, array: str, index: Sequence[Value], access: Access | None = None) -> Instr:
        return self.emit("sstore", "void", [value, *index], array=array, access=access)

    def accum(self, value: Value, array: str, index: Sequence[Value], access: Access | None = None) -> Instr:
        return self.emit("accum", "void", [value, *index], array=array, access=access)

    def accums(self, value: Value, scalar: str) -> Instr:
        return self.emit("accums", "void", [value], array=scalar)

    # control ---------------------------------------------------------------------------------------------------------

    def br(self, target: Block) -> Instr:
        return self.emit("br", "void", targets=[target])

    def cond_br(self, condition: Value, then: Block, otherwise: Block) -> Instr:
        return self.emit("br", "void", [condition], targets=[then, otherwise])

    def switch(self, value: Value, default: Block, cases: Sequence[tuple[int, Block]]) -> Instr:
        targets = [default, *(t for _, t in cases)]
        return self.emit("switch", "void", [value], targets=targets, cases=tuple(c for c, _ in cases))

    def phi(self, type: str, incoming: Sequence[tuple[Value, Block]] = ()) -> Instr:
        return self.emit("phi", type, [v for v, _ in incoming], targets=[t for _, t in incoming])

    def ret(self, value: Value | None = None) -> Instr:
        return self.emit("ret", "void", [] if value is None else [value])

    def unreachable(self) -> Instr:
        return self.emit("unreachable", "void")


def new_block(fn: Function, name: str, flags: Sequence[str] = ()) -> Builder:
    """A builder at the end of a new block."""
    return Builder(fn.block(name), flags=flags)
