"""The functions of real numbers that kernels use, with their partial derivatives, a line each.

Values are computed on NumPy scalars of the kernel's precision, partial derivatives in float64 from these. At kinks:
``abs`` and ``copysign`` have derivative 0 at 0, ``min`` and ``max`` take the first argument on a tie (which Python and
NumPy return), an integer power is the product it stands for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Rule:
    """``value`` of the arguments; ``partials``, one an argument, of the arguments and the result.

    ``pole``: a partial may be infinite where its cotangent is zero, and then contributes nothing. ``exact``: the value
    is correctly rounded, so that compiled code has the same bits.
    """

    value: Callable[..., Any]
    partials: tuple[Callable[..., Any], ...]
    pole: bool = False
    exact: bool = False


def _scalar(function: Callable[..., float], overflow: Callable[..., float] = lambda *a: math.nan) -> Callable[..., Any]:
    """A function of ``math``, rounded to the type of its argument."""

    def value(*args: Any) -> Any:
        try:
            result = function(*map(float, args))
        except (ValueError, OverflowError):
            result = overflow(*args)
        return type(args[0])(result)

    return value


def digamma(x: Any) -> Any:
    """The logarithmic derivative of the gamma function: recurrence up to 10, then the asymptotic series."""
    x = float(x)
    if x <= 0 and x == math.floor(x):
        return math.nan
    if x < 0:
        return digamma(1 - x) - math.pi / math.tan(math.pi * x)
    total = 0.0
    while x < 10:
        total -= 1 / x
        x += 1
    y = 1 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132)))))
    return total + math.log(x) - 0.5 / x - series


def _pow_by_base(x: Any, y: Any, r: Any) -> Any:
    return np.float64(0) if y == 0 else y * np.power(x, y - 1)


def _pow_by_exponent(x: Any, y: Any, r: Any) -> Any:
    return np.float64(0) if x == 0 and y >= 0 else r * np.log(x)


def power_by_squaring(x: Any, n: int) -> Any:
    """``x ** n`` multiplied out."""
    square, rest, result = x, abs(n), type(x)(1)
    while rest:
        if rest & 1:
            result = result * square
        rest >>= 1
        square = square * square
    return type(x)(1) / result if n < 0 else result


def _ratio(a: Any, b: Any) -> Any:
    """``a / b``, and 0 for 0 / 0: the origin of hypot."""
    return np.float64(0) if a == 0 and b == 0 else a / b


ONE = np.float64(1)
ZERO = np.float64(0)
_flat = (lambda *a: ZERO,)
_first = (lambda x, y, r: ONE if r == x else ZERO, lambda x, y, r: ZERO if r == x else ONE)

RULES: dict[str, Rule] = {
    "add": Rule(lambda x, y: x + y, (lambda x, y, r: ONE, lambda x, y, r: ONE), exact=True),
    "sub": Rule(lambda x, y: x - y, (lambda x, y, r: ONE, lambda x, y, r: -ONE), exact=True),
    "mul": Rule(lambda x, y: x * y, (lambda x, y, r: y, lambda x, y, r: x), exact=True),
    "div": Rule(lambda x, y: x / y, (lambda x, y, r: 1 / y, lambda x, y, r: -x / y / y), pole=True, exact=True),
    "mod": Rule(np.remainder, (lambda x, y, r: ONE, lambda x, y, r: -np.rint((x - r) / y)), exact=True),
    "fmod": Rule(np.fmod, (lambda x, y, r: ONE, lambda x, y, r: -np.rint((x - r) / y)), exact=True),
    "floordiv": Rule(np.floor_divide, _flat * 2, exact=True),
    "neg": Rule(lambda x: -x, (lambda x, r: -ONE,), exact=True),
    "pos": Rule(lambda x: x, (lambda x, r: ONE,), exact=True),
    "abs": Rule(np.abs, (lambda x, r: np.sign(x),), exact=True),
    "minimum": Rule(np.minimum, _first, exact=True),
    "maximum": Rule(np.maximum, _first, exact=True),
    "fmin": Rule(np.fmin, _first, exact=True),
    "fmax": Rule(np.fmax, _first, exact=True),
    "copysign": Rule(np.copysign, (lambda x, y, r: np.sign(x) * np.copysign(ONE, y), *_flat), exact=True),
    "sign": Rule(np.sign, _flat, exact=True),
    "floor": Rule(np.floor, _flat, exact=True),
    "ceil": Rule(np.ceil, _flat, exact=True),
    "trunc": Rule(np.trunc, _flat, exact=True),
    "rint": Rule(np.rint, _flat, exact=True),
    "sqrt": Rule(np.sqrt, (lambda x, r: 0.5 / r,), pole=True, exact=True),
    "square": Rule(np.square, (lambda x, r: 2 * x,), exact=True),
    "reciprocal": Rule(np.reciprocal, (lambda x, r: -1 / (x * x),), pole=True, exact=True),
    "cbrt": Rule(np.cbrt, (lambda x, r: 1 / (3 * r * r),), pole=True),
    "hypot": Rule(np.hypot, (lambda x, y, r: _ratio(x, r), lambda x, y, r: _ratio(y, r)), pole=True),
    "pow": Rule(np.power, (_pow_by_base, _pow_by_exponent), pole=True),
    "exp": Rule(np.exp, (lambda x, r: r,)),
    "exp2": Rule(np.exp2, (lambda x, r: r * np.log(2),)),
    "expm1": Rule(np.expm1, (lambda x, r: np.exp(x),)),
    "log": Rule(np.log, (lambda x, r: 1 / x,), pole=True),
    "log2": Rule(np.log2, (lambda x, r: 1 / (x * np.log(2)),), pole=True),
    "log10": Rule(np.log10, (lambda x, r: 1 / (x * np.log(10)),), pole=True),
    "logaddexp": Rule(np.logaddexp, (lambda x, y, r: np.exp(x - r), lambda x, y, r: np.exp(y - r))),
    "logaddexp2": Rule(np.logaddexp2, (lambda x, y, r: np.exp2(x - r), lambda x, y, r: np.exp2(y - r))),
    "radians": Rule(np.radians, (lambda x, r: np.float64(np.pi / 180),)),
    "degrees": Rule(np.degrees, (lambda x, r: np.float64(180 / np.pi),)),
    "log1p": Rule(np.log1p, (lambda x, r: 1 / (1 + x),), pole=True),
    "sin": Rule(np.sin, (lambda x, r: np.cos(x),)),
    "cos": Rule(np.cos, (lambda x, r: -np.sin(x),)),
    "tan": Rule(np.tan, (lambda x, r: 1 / np.cos(x) ** 2,)),
    "asin": Rule(np.arcsin, (lambda x, r: 1 / np.sqrt((1 - x) * (1 + x)),), pole=True),
    "acos": Rule(np.arccos, (lambda x, r: -1 / np.sqrt((1 - x) * (1 + x)),), pole=True),
    "atan": Rule(np.arctan, (lambda x, r: 1 / (1 + x * x),)),
    "atan2": Rule(
        np.arctan2, (lambda x, y, r: y / (x * x + y * y), lambda x, y, r: -x / (x * x + y * y)), pole=True
    ),
    "sinh": Rule(np.sinh, (lambda x, r: np.cosh(x),)),
    "cosh": Rule(np.cosh, (lambda x, r: np.sinh(x),)),
    "tanh": Rule(np.tanh, (lambda x, r: 1 / np.cosh(x) ** 2,)),
    "asinh": Rule(np.arcsinh, (lambda x, r: 1 / np.sqrt(1 + x * x),)),
    "acosh": Rule(np.arccosh, (lambda x, r: 1 / np.sqrt((x - 1) * (x + 1)),), pole=True),
    "atanh": Rule(np.arctanh, (lambda x, r: 1 / ((1 - x) * (1 + x)),), pole=True),
    "erf": Rule(_scalar(math.erf), (lambda x, r: 2 / np.sqrt(np.pi) * np.exp(-x * x),)),
    "erfc": Rule(_scalar(math.erfc), (lambda x, r: -2 / np.sqrt(np.pi) * np.exp(-x * x),)),
    "gamma": Rule(_scalar(math.gamma, lambda x: math.inf), (lambda x, r: r * digamma(x),), pole=True),
    "lgamma": Rule(_scalar(math.lgamma, lambda x: math.inf), (lambda x, r: np.float64(digamma(x)),), pole=True),
}  # fmt: skip

ALIASES = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "floor_divide": "floordiv",
    "remainder": "mod", "negative": "neg", "positive": "pos", "absolute": "abs", "fabs": "abs", "power": "pow",
    "float_power": "pow", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh", "deg2rad": "radians", "rad2deg": "degrees",
}  # fmt: skip
"""Names of the same functions in NumPy and ``math``."""


def rule_name(function: object) -> str | None:
    """The row of a function of NumPy, ``math`` or SciPy; ``None`` where it has none."""
    name = getattr(function, "__name__", "")
    name = ALIASES.get(name, name)
    return name if name in RULES else None
