"""The language in which ``rules.py`` writes derivatives: small expressions over the values of one operation.

An expression is data: written once, with Python's operators, and turned into instructions by :class:`Emission`. Equal
expressions are one object, so that what two partial derivatives share is computed once.

``X`` and ``Y`` are the first two operands of the operation, ``R`` is its result, and ``C`` the derivative that is
handed through it: the cotangent of the result in reverse mode, the tangent of an operand in forward mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Union

from .build import Builder
from .ir import ops
from .ir.const import const_value
from .ir.model import Value

Term = Union["Expr", float, int]


class Expr:
    """A node: what it does, and what to. Compared by identity; :func:`node` makes equal ones the same."""

    __slots__ = ("args", "op")

    def __init__(self, op: str, args: tuple[Any, ...]) -> None:
        self.op, self.args = op, args

    def __add__(self, other: Term) -> Expr:
        return node("fadd", self, other)

    def __radd__(self, other: Term) -> Expr:
        return node("fadd", other, self)

    def __sub__(self, other: Term) -> Expr:
        return node("fsub", self, other)

    def __rsub__(self, other: Term) -> Expr:
        return node("fsub", other, self)

    def __mul__(self, other: Term) -> Expr:
        return node("fmul", self, other)

    def __rmul__(self, other: Term) -> Expr:
        return node("fmul", other, self)

    def __truediv__(self, other: Term) -> Expr:
        return node("fdiv", self, other)

    def __rtruediv__(self, other: Term) -> Expr:
        return node("fdiv", other, self)

    def __neg__(self) -> Expr:
        return node("fneg", self)

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(map(repr, self.args))})"


_KNOWN: dict[tuple[Any, ...], Expr] = {}


def node(op: str, *args: Term) -> Expr:
    """An operation of ``ir/ops.py``, or one of the words below, on expressions and numbers."""
    terms = tuple(a if isinstance(a, Expr) else number(a) for a in args)
    return _KNOWN.setdefault((op, terms), Expr(op, terms))


def number(value: float) -> Expr:
    return _KNOWN.setdefault(("number", float(value).hex()), Expr("number", (float(value),)))


def _symbol(name: int | str) -> Expr:
    return _KNOWN.setdefault(("symbol", name), Expr("symbol", (name,)))


X, Y = _symbol(0), _symbol(1)
R = _symbol("result")
C = _symbol("derivative")


def call(name: str, *args: Term) -> Expr:
    """A math function of ``ir/ops.py``."""
    assert len(args) == ops.MATH[name].arity, name
    return node(name, *args)


def where(condition: Expr, a: Term, b: Term) -> Expr:
    """``a`` where the condition holds, else ``b``; both are computed unless the condition is a constant."""
    return node("where", condition, a, b)


def when_known(condition: Expr, a: Term, b: Term) -> Expr:
    """``a`` if the condition is a constant that holds, else ``b``: a shorter way for special operands."""
    return node("when_known", condition, a, b)


def eq(a: Term, b: Term) -> Expr:
    return node("eq", a, b)


def lt(a: Term, b: Term) -> Expr:
    return node("lt", a, b)


def gt(a: Term, b: Term) -> Expr:
    return node("gt", a, b)


def ge(a: Term, b: Term) -> Expr:
    return node("ge", a, b)


def is_nan(a: Expr) -> Expr:
    return node("uno", a, a)


def both(a: Expr, b: Expr) -> Expr:
    return node("and", a, b)


def either(a: Expr, b: Expr) -> Expr:
    return node("or", a, b)


def one_less(n: Expr) -> Expr:
    """``n - 1`` for an integer."""
    return node("sub", n, 1)


def as_float(n: Expr) -> Expr:
    """An integer as a float."""
    return node("as_float", n)


class Emission:
    """Emits expressions about one operation, each shared part once.

    ``operand`` and ``result`` give the values of symbols and are asked only for what is used. ``derivative`` is what
    ``C`` stands for, ``type`` the float type of the result of the expression; ``derivative`` is converted to it.
    """

    def __init__(
        self, b: Builder, operand: Callable[[int], Value], result: Callable[[], Value], derivative: Value, type: str
    ) -> None:
        self.b, self.operand, self.result, self.derivative, self.type = b, operand, result, derivative, type
        self.done: dict[Expr, Value] = {}

    def __call__(self, e: Expr) -> Value:
        return self._emit(e, self.type)

    def _emit(self, e: Expr, type: str) -> Value:
        if e.op == "number":
            return self.b.const(type, e.args[0])
        if e not in self.done:
            self.done[e] = self._new(e)
        return self.done[e]

    def _new(self, e: Expr) -> Value:
        b = self.b
        if e.op == "symbol":
            return self._symbol(e.args[0])
        if e.op in ("where", "when_known"):
            return self._choice(e)
        if e.op == "as_float":
            return b.to_float(self._emit(e.args[0], self.type), self.type)
        if e.op in ops.MATH:
            kinds = ops.MATH[e.op].arguments
            args = [self._emit(a, self.type if k == "f" else "i32") for a, k in zip(e.args, kinds, strict=True)]
            return b.call_math(e.op, *args)
        args = self._alike(e.args)
        if e.op in ("eq", "lt", "gt", "ge", "uno"):
            if args[0].type in ops.FLOATS:
                return b.fcmp(e.op if e.op == "uno" else f"o{e.op}", args[0], args[1])
            return b.icmp(e.op if e.op == "eq" else f"s{e.op}", args[0], args[1])
        return _BINARY[e.op](b, *args)

    def _symbol(self, name: int | str) -> Value:
        if name == "derivative":
            return self.b.to_float(self.derivative, self.type)
        return self.result() if isinstance(name, str) else self.operand(name)

    def _choice(self, e: Expr) -> Value:
        condition = self._emit(e.args[0], self.type)
        known = const_value(condition)
        if known is not None or e.op == "when_known":
            return self._emit(e.args[1] if known else e.args[2], self.type)
        return self.b.select(condition, self._emit(e.args[1], self.type), self._emit(e.args[2], self.type))

    def _alike(self, args: Sequence[Expr]) -> list[Value]:
        """Operands of one operation: numbers take the type of what they meet."""
        values = {a: self._emit(a, self.type) for a in args if a.op != "number"}
        type = next(iter(values.values())).type if values else self.type
        return [values[a] if a in values else self._emit(a, type) for a in args]


_BINARY: dict[str, Callable[..., Value]] = {
    "fadd": Builder.fadd, "fsub": Builder.fsub, "fmul": Builder.fmul, "fdiv": Builder.fdiv, "fneg": Builder.fneg,
    "and": Builder.and_, "or": Builder.or_, "sub": Builder.sub,
}  # fmt: skip
