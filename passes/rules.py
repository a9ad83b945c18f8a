"""THE table of derivatives: a line for each operation and each math function, read by both modes.

A row has one expression an operand (``expr.py``), linear in ``C``: what the operation makes of a derivative that is
handed through it. In reverse mode ``C`` is the cotangent of the result and the expression what the operand receives;
in forward mode ``C`` is the tangent of the operand and the sum over operands is the tangent of the result. ``None``:
no derivative with respect to that operand.

``pole(e)``: a partial derivative that may be infinite or undefined. Where ``C`` is zero, so is what is handed on, even
if the partial derivative is infinite or NaN; so ``0 if x == 0 else sqrt(x)`` has the derivative 0 at 0 and not NaN.
``pole(e, by=k)``: only where operand ``k`` carries a derivative too: in ``x / dx`` a constant ``dx`` needs no guard.
Sums and products have none.

What holds where the derivative is a matter of choice:

======================== ==============================================================================================
function                 value of the derivative
======================== ==============================================================================================
abs(x), copysign(x, y)   0 at x = 0; none with respect to y
minnum, maxnum, …        on a tie all of it goes to the first operand, as Python's ``min(x, y)`` returns the first
fdim(x, y)               0 for x = y
select, ``if``           that of the side that was taken
x ** y by x              0 for y = 0, also at x = 0; at x = 0 the limit: 0 for y > 1, 1 for y = 1, infinite for y < 1
x ** y by y              0 at x = 0 for y >= 0; NaN for x < 0, where x ** y is not defined around y
sqrt, cbrt at 0          infinite
log at 0, asin at 1, …   infinite
hypot at (0, 0)          0, as abs
atan2 at (0, 0)          NaN
x mod y (C's fmod)       the one-sided limits: 1 by x, minus the whole number of times that y goes into x by y
floor, ceil, rint, …     0 everywhere
======================== ==============================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import NotDifferentiableError
from .build import Builder
from .expr import (
    C,
    Emission,
    Expr,
    R,
    X,
    Y,
    as_float,
    both,
    call,
    either,
    eq,
    ge,
    gt,
    is_nan,
    lt,
    number,
    one_less,
    when_known,
    where,
)
from .ir import ops
from .ir.model import Block, Instr, Value


@dataclass(frozen=True)
class Partial:
    """What one operand receives. ``pole``: guarded against a zero derivative, always or only where operand ``by``
    carries a derivative."""

    expr: Expr
    pole: bool = False
    by: int | None = None


Row = tuple[Partial | None, ...]


def row(*entries: Expr | Partial | None) -> Row:
    return tuple(Partial(e) if isinstance(e, Expr) else e for e in entries)


def pole(e: Expr, by: int | None = None) -> Partial:
    return Partial(e, True, by)


# functions of the table that are not one call ------------------------------------------------------------------------


def _sign_of(x: Expr, c: Expr) -> Expr:
    return where(gt(x, 0), c, where(lt(x, 0), -c, 0))


def _digamma(x: Expr) -> Expr:
    """The logarithmic derivative of the gamma function.

    Ten steps of the recurrence psi(w) = psi(w + 1) - 1/w, then the asymptotic series, whose first term left out is
    below 1e-16 there; the reflection psi(x) = psi(1 - x) - pi / tan(pi x) for x < 0, with tan's period taken off
    exactly. (Abramowitz and Stegun, 6.3.5, 6.3.7, 6.3.18)
    """
    w = where(lt(x, 0), 1 - x, x)
    steps: Expr = number(0)
    for k in range(10):
        steps = 1 / (w + k) + steps
    far = w + 10
    s = 1 / (far * far)
    series: Expr = number(0)
    for coefficient in (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        series = s * (coefficient + series)
    direct = ((call("log", far) - 0.5 / far) - series) - steps
    reflected = direct - math.pi / call("tan", math.pi * (x - call("rint", x)))
    return where(lt(x, 0), reflected, direct)


def _over_cosh_squared(x: Expr, c: Expr) -> Expr:
    t = 1 / call("cosh", x)
    return c * t * t


_FAR = 1e9
"""Beyond this x * x + 1 is x * x, and short of it x * x does not overflow, in either precision."""

_ROOT = call("sqrt", (1 - X) * (1 + X))
_TIMES = call("rint", (X - R) / Y)
_STEEP = ge(call("fabs", X), call("fabs", Y))
_LONG = where(_STEEP, X, Y)
_SLOPE = where(_STEEP, Y, X) / _LONG
_ANGLE = C / (_LONG * (1 + _SLOPE * _SLOPE))  # neither x * x nor y * y, which could overflow
_BELL = C * (2 / math.sqrt(math.pi) * call("exp", -(X * X)))
_FIRST = eq(X, R)
_FIRST_OR_NAN = either(eq(X, R), is_nan(X))
_SIGNED = C * call("copysign", 1, Y)
_POWER = where(eq(Y, 0), 0, when_known(eq(Y, 0.5), 0.5 * C / R, C * (Y * call("pow", X, Y - 1))))
_INT_POWER = where(eq(Y, 0), 0, C * (as_float(Y) * where(lt(Y, 0), R / X, call("powi", X, one_less(Y)))))
_EXPONENT = where(both(eq(X, 0), ge(Y, 0)), 0, C * (R * call("log", X)))

# the table -----------------------------------------------------------------------------------------------------------

RULES: dict[str, Row] = {
    # arithmetic
    "fadd": row(C, C),
    "fsub": row(C, -C),
    "fmul": row(C * Y, C * X),
    "fdiv": row(pole(C / Y, by=1), pole(-(C / Y * R))),
    "frem": row(C, pole(-(C * _TIMES))),
    "remainder": row(C, pole(-(C * _TIMES))),
    "fneg": row(-C),
    "fpext": row(C),
    "fptrunc": row(C),
    "fma": row(C * Y, C * X, C),
    "fmuladd": row(C * Y, C * X, C),
    "canonicalize": row(C),
    "irad.strong": row(C),
    "ldexp": row(call("ldexp", C, Y), None),
    # kinks
    "fabs": row(_sign_of(X, C)),
    "copysign": row(_sign_of(X, _SIGNED), None),
    "minnum": row(where(_FIRST, C, 0), where(_FIRST, 0, C)),
    "maxnum": row(where(_FIRST, C, 0), where(_FIRST, 0, C)),
    "minimumnum": row(where(_FIRST, C, 0), where(_FIRST, 0, C)),
    "maximumnum": row(where(_FIRST, C, 0), where(_FIRST, 0, C)),
    "minimum": row(where(_FIRST_OR_NAN, C, 0), where(_FIRST_OR_NAN, 0, C)),
    "maximum": row(where(_FIRST_OR_NAN, C, 0), where(_FIRST_OR_NAN, 0, C)),
    "fdim": row(where(gt(X, Y), C, 0), where(gt(X, Y), -C, 0)),
    # powers and roots
    "sqrt": row(pole(0.5 * C / R)),
    "cbrt": row(pole(C / (3 * (R * R)))),
    "pow": row(pole(_POWER), pole(_EXPONENT)),
    "powi": row(pole(_INT_POWER), None),
    "hypot": row(where(eq(R, 0), 0, C * (X / R)), where(eq(R, 0), 0, C * (Y / R))),
    # exponentials and logarithms
    "exp": row(C * R),
    "exp2": row(C * (R * math.log(2))),
    "exp10": row(C * (R * math.log(10))),
    "expm1": row(C * call("exp", X)),  # R + 1 would cancel
    "log": row(pole(C / X)),
    "log2": row(pole(C / (X * math.log(2)))),
    "log10": row(pole(C / (X * math.log(10)))),
    "log1p": row(pole(C / (1 + X))),
    # trigonometry
    "sin": row(C * call("cos", X)),
    "cos": row(-(C * call("sin", X))),
    "tan": row(C * (1 + R * R)),
    "asin": row(pole(C / _ROOT)),
    "acos": row(pole(-(C / _ROOT))),
    "atan": row(C / (1 + X * X)),
    "atan2": row(
        pole(where(_STEEP, _ANGLE * _SLOPE, _ANGLE)),
        pole(where(_STEEP, -_ANGLE, -(_ANGLE * _SLOPE))),
    ),
    # hyperbolic functions
    "sinh": row(C * call("cosh", X)),
    "cosh": row(C * call("sinh", X)),
    "tanh": row(_over_cosh_squared(X, C)),  # 1 - R * R would cancel
    "asinh": row(C / where(gt(call("fabs", X), _FAR), call("fabs", X), call("sqrt", X * X + 1))),
    "acosh": row(pole(C / (call("sqrt", X - 1) * call("sqrt", X + 1)))),
    "atanh": row(pole(C / ((1 - X) * (1 + X)))),
    # error and gamma functions
    "erf": row(_BELL),
    "erfc": row(-_BELL),
    "lgamma": row(pole(C * _digamma(X))),
    "tgamma": row(pole(C * (R * _digamma(X)))),
}
"""Operations and math functions that have a derivative."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


INACTIVE = _names(
    """add sub mul shl sdiv udiv lshr ashr srem urem and xor or icmp fcmp sext zext trunc fptosi fptoui sitofp uitofp
    ptrtoint ptrtoaddr inttoptr iwrap irad.index integer.call
    floor ceil rint nearbyint round roundeven"""
)
"""What has the derivative zero everywhere, or is no float: integers, booleans, addresses, comparisons, rounding to
whole numbers (``trunc`` is an operation on integers and a math function; both are of this kind)."""

STRUCTURAL = _names(
    """select freeze phi alloca load store getelementptr call br switch ret unreachable
    aload astore sload sstore accum accums"""
)
"""Moves of values and of control: the modes themselves know what to do with these (``call``: of memory functions)."""

REFUSED: dict[str, tuple[str, str]] = {
    "nextafter": (
        "a step of one unit in the last place has no derivative",
        "keep nextafter out of what is differentiated",
    ),
    "bitcast": (
        "the bits of a number that carries a derivative are made into another number",
        "write it with arithmetic, or np.copysign, np.abs, np.floor",
    ),
    "extractvalue": (
        "a number that carries a derivative is taken out of a struct",
        "use plain variables instead of tuples that change at run time",
    ),
    "insertvalue": (
        "a number that carries a derivative is put into a struct",
        "use plain variables instead of tuples that change at run time",
    ),
}
"""Operations that could carry a derivative, but have none here: reason and remedy."""


def name_of(i: Instr) -> str:
    """What the tables call an instruction: its operation, or the name of the function that it calls."""
    if i.op != "call":
        return i.op
    kind = ops.call_kind(i.callee)
    if kind == "math":
        return (ops.math_of(i.callee) or ("", ""))[0]
    if kind == "mark":
        return i.callee.rpartition(".")[0]
    return {"int": "integer.call", "memory": "call"}.get(kind, i.callee)


def kind_of(i: Instr) -> str:
    """``rule``, ``inactive``, ``structural``, or ``refused`` (which whatever is in no table is, too)."""
    name = name_of(i)
    if name in RULES:
        return "rule"
    if name in INACTIVE:
        return "inactive"
    return "structural" if name in STRUCTURAL else "refused"


def partials(i: Instr) -> Row:
    """The row of an instruction, an entry an operand; all ``None`` where it has no derivative.

    Raises ``NotDifferentiableError`` for what is refused, and for structural operations other than ``select`` and
    ``freeze``, which have rows for the convenience of the modes.
    """
    name = name_of(i)
    if name in RULES:
        return RULES[name]
    if name in INACTIVE:
        return (None,) * len(i.operands)
    if name == "select":
        return row(None, where(X, C, -0.0), where(X, -0.0, C))
    if name == "freeze":
        return row(C)
    reason, remedy = REFUSED.get(name, (f"'{name}' has no rule of differentiation", "compute it outside of the kernel"))
    raise NotDifferentiableError(reason, loc=i.loc, remedy=remedy)


def carriers(i: Instr) -> tuple[bool, ...]:
    """For each operand, whether its derivative takes part in that of the result.

    An operation that is refused takes all floats, so that the refusal comes where a derivative arrives.
    """
    name = name_of(i)
    if name in ("phi", "select", "freeze") or (name not in STRUCTURAL and kind_of(i) == "refused"):
        return tuple(v.type != "i1" for v in i.operands)
    return tuple(p is not None for p in partials(i)) if kind_of(i) == "rule" else (False,) * len(i.operands)


def needs(i: Instr, carries: Sequence[bool] | None = None) -> frozenset[int | str]:
    """Which primal values the partial derivatives of ``i`` read: numbers of operands, and ``"result"``.

    ``carries``: the operands that carry a derivative (default: all that can).
    """
    read: set[int | str] = set()

    def operand(k: int) -> Value:
        read.add(k)
        return i.operands[k]

    def result() -> Value:
        read.add("result")
        return i

    b, row = Builder(Block("")), partials(i)
    carry = [p is not None and (carries is None or carries[k]) for k, p in enumerate(row)]
    for k, p in enumerate(row):
        if p is not None and carry[k]:
            _guarded(b, p, carry, Emission(b, operand, result, Value(i.type), i.operands[k].type))
    return frozenset(read)


Primal = Value | Callable[[], Value]
"""A value, or a function that makes it available when it is asked for."""


def tangent_of(
    b: Builder, i: Instr, operands: Sequence[Value], result: Primal, tangents: Sequence[Value | None]
) -> Value | None:
    """Emit the tangent of ``i``; ``None`` where it is zero.

    ``operands`` and ``result`` are its primal values, ``tangents`` those of the operands, ``None`` for constants.
    """
    row = partials(i)
    carries = [t is not None and p is not None for t, p in zip(tangents, row, strict=True)]
    if not any(carries):
        return None
    if i.op == "select":
        zero = b.const(i.type, 0.0)
        return b.select(operands[0], tangents[1] or zero, tangents[2] or zero)
    total: Value | None = None
    for t, p in zip(tangents, row, strict=True):
        if t is not None and p is not None:
            term = _guarded(b, p, carries, _emission(b, operands, result, t, i.type))
            total = term if total is None else b.fadd(total, term)
    return total


def cotangents_of(
    b: Builder,
    i: Instr,
    operands: Sequence[Value],
    result: Primal,
    cotangent: Value,
    wanted: Sequence[bool] | None = None,
) -> list[Value | None]:
    """Emit what each operand of ``i`` receives from the cotangent of its result; ``None`` for nothing.

    ``wanted``: which operands carry a derivative (default: all that can).
    """
    row = partials(i)
    carries = [p is not None and (wanted is None or wanted[k]) for k, p in enumerate(row)]
    if not any(carries):
        return [None] * len(row)
    type = i.operands[carries.index(True)].type
    emit = _emission(b, operands, result, cotangent, type)
    return [
        _guarded(b, p, carries, emit) if p is not None and carry else None
        for p, carry in zip(row, carries, strict=True)
    ]


def _emission(b: Builder, operands: Sequence[Value], result: Primal, derivative: Value, type: str) -> Emission:
    def of_result() -> Value:
        return result if isinstance(result, Value) else result()

    return Emission(b, operands.__getitem__, of_result, derivative, type)


def _guarded(b: Builder, p: Partial, carries: Sequence[bool], emit: Emission) -> Value:
    """A partial derivative, or at a pole the zero itself where the derivative that comes in is zero."""
    if not (p.pole and (p.by is None or carries[p.by])):
        return emit(p.expr)
    flags = b.flags
    b.flags = tuple(f for f in flags if f not in ("fast", "nnan", "ninf", "nsz"))  # with these LLVM drops the guard
    value = emit(where(eq(C, 0), C, p.expr))
    b.flags = flags
    return value
