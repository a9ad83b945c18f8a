"""Scalar operations of the small IR, and its integer intrinsics, as plain functions: for the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import ops
from .model import Instr
from .values import DTYPES, unsigned, wrap_int


def int_call(i: Instr, x: list[Any]) -> Any:
    name = i.callee.split(".")[1]
    if name == "is":
        return _fpclass(x[0], x[1])
    type = i.operands[0].type
    bits = 1 if type == "i1" else 8 * ops.SIZES[type]
    if i.callee.endswith(f".with.overflow.{type}"):
        exact = _WIDE[name[1:]](*(x if name[0] == "s" else [unsigned(type, v) for v in x]))
        value = wrap_int(type, exact)
        back = value if name[0] == "s" else unsigned(type, value)
        return (value, int(back != exact))
    if ".sat." in i.callee:
        exact = _WIDE[name[1:]](*(x if name[0] == "s" else [unsigned(type, v) for v in x]))
        lo, hi = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if name[0] == "s" else (0, (1 << bits) - 1)
        return wrap_int(type, min(max(exact, lo), hi))
    return wrap_int(i.type, _INT_CALLS[name](type, bits, *x))


def _fpclass(v: Any, mask: int) -> int:
    """LLVM's test of the kind of a float; bits from signalling NaN up to positive infinity."""
    if np.isnan(v):
        kind = 1
    else:
        sign = bool(np.signbit(v))
        size = 0 if np.isinf(v) else 3 if v == 0 else 2 if abs(v) < np.finfo(type(v)).tiny else 1
        kind = 2 + size if sign else 9 - size
    return mask >> kind & 1


def _fsh(type: str, bits: int, high: int, low: int, by: int, right: bool) -> int:
    both = unsigned(type, high) << bits | unsigned(type, low)
    by = unsigned(type, by) % bits
    return both >> by if right else both >> (bits - by)


def _reversed(type: str, bits: int, x: int, group: int) -> int:
    text = format(unsigned(type, x), f"0{bits}b")
    return int("".join(text[k : k + group] for k in range(bits - group, -1, -group)), 2)


_WIDE: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "shl": lambda a, b: a << b,
}  # fmt: skip
_INT_CALLS: dict[str, Callable[..., int]] = {
    "smax": lambda t, n, a, b: max(a, b),
    "smin": lambda t, n, a, b: min(a, b),
    "umax": lambda t, n, a, b: max(unsigned(t, a), unsigned(t, b)),
    "umin": lambda t, n, a, b: min(unsigned(t, a), unsigned(t, b)),
    "abs": lambda t, n, a, _: abs(a),
    "ctpop": lambda t, n, a: unsigned(t, a).bit_count(),
    "ctlz": lambda t, n, a, _: n - unsigned(t, a).bit_length(),
    "cttz": lambda t, n, a, _: (unsigned(t, a) & -unsigned(t, a)).bit_length() - 1 if a else n,
    "bswap": lambda t, n, a: _reversed(t, n, a, 8),
    "bitreverse": lambda t, n, a: _reversed(t, n, a, 1),
    "fshl": lambda t, n, a, b, c: _fsh(t, n, a, b, c, False),
    "fshr": lambda t, n, a, b, c: _fsh(t, n, a, b, c, True),
    "scmp": lambda t, n, a, b: (a > b) - (a < b),
    "ucmp": lambda t, n, a, b: (unsigned(t, a) > unsigned(t, b)) - (unsigned(t, a) < unsigned(t, b)),
}


def _quotient(a: int, b: int) -> int:
    if b == 0:
        raise ZeroDivisionError("an integer division by zero")
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def _to_int(i: Instr, v: Any) -> int:
    return int(v) if np.isfinite(v) else 0


def _bitcast(i: Instr, v: Any) -> Any:
    raw = np.array([v], DTYPES[i.operands[0].type]).tobytes()
    return np.frombuffer(raw, DTYPES[i.type])[0]


def _fcmp(i: Instr, a: Any, b: Any) -> bool:
    if i.pred in ("true", "false"):
        return i.pred == "true"
    either = bool(np.isnan(a) or np.isnan(b))
    if i.pred in ("ord", "uno"):
        return either == (i.pred == "uno")
    ordered = {"eq": a == b, "ne": a != b, "gt": a > b, "ge": a >= b, "lt": a < b, "le": a <= b}[i.pred[1:]]
    return either if i.pred[0] == "u" and either else bool(ordered) and not either


def _icmp(i: Instr, a: int, b: int) -> bool:
    if i.pred[0] == "u":
        type = i.operands[0].type
        a, b = unsigned(type, a), unsigned(type, b)
    order = i.pred.lstrip("us")
    return {"eq": a == b, "ne": a != b, "gt": a > b, "ge": a >= b, "lt": a < b, "le": a <= b}[order]


def _u(i: Instr, v: int, k: int = 0) -> int:
    return unsigned(i.operands[k].type, v)


SCALAR: dict[str, Callable[..., Any]] = {
    "fadd": lambda i, a, b: a + b,
    "fsub": lambda i, a, b: a - b,
    "fmul": lambda i, a, b: a * b,
    "fdiv": lambda i, a, b: a / b,
    "frem": lambda i, a, b: np.fmod(a, b),
    "fneg": lambda i, a: -a,
    "add": lambda i, a, b: a + b,
    "sub": lambda i, a, b: a - b,
    "mul": lambda i, a, b: a * b,
    "shl": lambda i, a, b: a << _u(i, b) if _u(i, b) < 64 else 0,
    "sdiv": lambda i, a, b: _quotient(a, b),
    "udiv": lambda i, a, b: _quotient(_u(i, a), _u(i, b)),
    "srem": lambda i, a, b: a - b * _quotient(a, b),
    "urem": lambda i, a, b: _u(i, a) - _u(i, b) * _quotient(_u(i, a), _u(i, b)),
    "lshr": lambda i, a, b: _u(i, a) >> _u(i, b),
    "ashr": lambda i, a, b: a >> _u(i, b),
    "and": lambda i, a, b: a & b,
    "or": lambda i, a, b: a | b,
    "xor": lambda i, a, b: a ^ b,
    "icmp": _icmp,
    "fcmp": _fcmp,
    "sext": lambda i, a: -a if i.operands[0].type == "i1" else a,
    "zext": _u,
    "trunc": lambda i, a: a,
    "fpext": lambda i, a: a,
    "fptrunc": lambda i, a: a,
    "sitofp": lambda i, a: -a if i.operands[0].type == "i1" else a,
    "uitofp": _u,
    "fptosi": _to_int,
    "fptoui": _to_int,
    "bitcast": _bitcast,
    "ptrtoint": lambda i, a: a,
    "ptrtoaddr": lambda i, a: a,
    "inttoptr": lambda i, a: a,
}
