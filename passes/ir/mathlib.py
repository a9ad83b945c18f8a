"""The math functions of ``ir/ops.py`` on NumPy scalars, for the interpreter: float32 in, float32 out."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np


def _in_double(function: Callable[..., float], at_pole: Callable[..., float] | None = None) -> Callable[..., Any]:
    """A function of Python's ``math``, rounded to the type of its first argument; errors give NaN or ``at_pole``."""

    def call(*args: Any) -> Any:
        try:
            value = function(*(float(a) for a in args))
        except (ValueError, OverflowError):
            value = at_pole(*args) if at_pole else math.nan
        return type(args[0])(value)

    return call


def _round_away(x: Any) -> Any:
    """To the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return whole + np.copysign(type(x)(1), x) if abs(x - whole) >= 0.5 else np.copysign(whole, x)


def _fma(a: Any, b: Any, c: Any) -> Any:
    """Rounded once."""
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        return a * b + c
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    return a * b + c if exact == 0 else _rounded(exact, type(a))


def _rounded(exact: Fraction, type: Any) -> Any:
    try:
        near = type(float(exact))
    except OverflowError:
        return type(math.copysign(math.inf, exact))
    if not np.isfinite(near):
        return near
    candidates = [near, np.nextafter(near, type(-np.inf)), np.nextafter(near, type(np.inf))]
    return min((c for c in candidates if np.isfinite(c)), key=lambda c: (abs(Fraction(float(c)) - exact), _odd(c)))


def _odd(x: Any) -> int:
    return int(x.view(np.uint32 if isinstance(x, np.float32) else np.uint64)) & 1


def _powi(x: Any, n: int) -> Any:
    with np.errstate(all="ignore"):
        return np.power(x, type(x)(n))


def _gamma_edge(x: Any) -> float:
    """Infinite at zero and beyond the range; not defined at negative integers."""
    return math.copysign(math.inf, x) if x >= 0 else math.nan


_SAME = "sqrt sin cos exp exp2 log log2 log10 floor ceil trunc rint fabs copysign tan sinh cosh tanh expm1 log1p cbrt"
_SHORT = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "atan2": np.arctan2, "pow": np.power,
}  # fmt: skip

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in _SAME.split()},
    **_SHORT,
    "hypot": np.hypot,
    "nextafter": np.nextafter,
    "exp10": lambda x: np.power(type(x)(10), x),
    "nearbyint": np.rint,
    "roundeven": np.rint,
    "round": _round_away,
    "canonicalize": lambda x: x,
    "fma": _fma,
    "fmuladd": lambda a, b, c: a * b + c,
    "minnum": np.fmin,
    "maxnum": np.fmax,
    "minimumnum": np.fmin,
    "maximumnum": np.fmax,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "powi": _powi,
    "ldexp": lambda x, n: np.ldexp(x, np.int32(n)),
    "erf": _in_double(math.erf),
    "erfc": _in_double(math.erfc),
    "lgamma": _in_double(math.lgamma, lambda x: math.inf),
    "tgamma": _in_double(math.gamma, _gamma_edge),
    "fdim": lambda x, y: x + y if np.isnan(x) or np.isnan(y) else x - y if x > y else type(x)(0),
    "remainder": _in_double(math.remainder),
}
"""One implementation for each function of ``ops.MATH``."""
