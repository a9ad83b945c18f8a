"""The one table of elementwise functions on traced values: which NumPy function, and its partial derivatives.

Both traced scalars inside a right-hand side (``tape/scalars.py``) and traced arrays in a loss (``tape/values.py``) are
built on this table, and both modes, forward and reverse, read the same partials. A function that has no row is refused
by whoever meets it.

Conventions at kinks: the derivative of ``abs`` at 0 is 0; at a tie ``maximum`` and ``minimum`` follow their first
argument; ``x**0`` has derivative 0. *pole* marks a partial that can be infinite: there a zero cotangent (or tangent)
stays zero.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Partial = Callable[..., Any]  # (x, ..., y) -> dy/dx_i at arguments x, ... and result y


@dataclass(frozen=True)
class Rule:
    """One function: how it is computed, its partials (none: derivative zero everywhere), whether they have poles."""

    name: str
    compute: Callable[..., Any]
    partials: tuple[Partial, ...] = ()
    pole: bool = False


def _power_base(x: Any, n: Any, y: Any) -> Any:
    return np.where(np.equal(n, 0), 0.0, n * np.power(x, np.where(np.equal(n, 0), 1.0, n - 1.0)))


def _power_exponent(x: Any, n: Any, y: Any) -> Any:
    return np.where(np.equal(x, 0), 0.0, y * np.log(np.where(np.equal(x, 0), 1.0, x)))


def _one(*_: Any) -> float:
    return 1.0


def _first(take: Callable[[Any, Any], Any]) -> tuple[Partial, Partial]:
    return (
        lambda a, b, y: np.where(take(a, b), 1.0, 0.0),
        lambda a, b, y: np.where(take(a, b), 0.0, 1.0),
    )


_LOG2, _LOG10 = float(np.log(2.0)), float(np.log(10.0))

_ROWS: tuple[tuple[Any, Rule], ...] = (
    (np.add, Rule("+", operator.add, (_one, _one))),
    (np.subtract, Rule("-", operator.sub, (_one, lambda a, b, y: -1.0))),
    (np.multiply, Rule("*", operator.mul, (lambda a, b, y: b, lambda a, b, y: a))),
    (np.true_divide, Rule("/", np.true_divide, (lambda a, b, y: 1.0 / b, lambda a, b, y: -y / b), pole=True)),
    (np.power, Rule("**", np.power, (_power_base, _power_exponent), pole=True)),
    (np.float_power, Rule("float_power", np.float_power, (_power_base, _power_exponent), pole=True)),
    (np.negative, Rule("negative", operator.neg, (lambda a, y: -1.0,))),
    (np.positive, Rule("positive", operator.pos, (_one,))),
    (np.absolute, Rule("abs", np.absolute, (lambda a, y: np.sign(a),))),
    (np.fabs, Rule("fabs", np.fabs, (lambda a, y: np.sign(a),))),
    (np.square, Rule("square", np.square, (lambda a, y: 2.0 * a,))),
    (np.reciprocal, Rule("reciprocal", np.reciprocal, (lambda a, y: -y * y,), pole=True)),
    (np.sqrt, Rule("sqrt", np.sqrt, (lambda a, y: 0.5 / y,), pole=True)),
    (np.cbrt, Rule("cbrt", np.cbrt, (lambda a, y: 1.0 / (3.0 * y * y),), pole=True)),
    (np.exp, Rule("exp", np.exp, (lambda a, y: y,))),
    (np.exp2, Rule("exp2", np.exp2, (lambda a, y: y * _LOG2,))),
    (np.expm1, Rule("expm1", np.expm1, (lambda a, y: y + 1.0,))),
    (np.log, Rule("log", np.log, (lambda a, y: 1.0 / a,), pole=True)),
    (np.log2, Rule("log2", np.log2, (lambda a, y: 1.0 / (a * _LOG2),), pole=True)),
    (np.log10, Rule("log10", np.log10, (lambda a, y: 1.0 / (a * _LOG10),), pole=True)),
    (np.log1p, Rule("log1p", np.log1p, (lambda a, y: 1.0 / (1.0 + a),), pole=True)),
    (np.sin, Rule("sin", np.sin, (lambda a, y: np.cos(a),))),
    (np.cos, Rule("cos", np.cos, (lambda a, y: -np.sin(a),))),
    (np.tan, Rule("tan", np.tan, (lambda a, y: 1.0 + y * y,))),
    (np.arcsin, Rule("arcsin", np.arcsin, (lambda a, y: 1.0 / np.sqrt(1.0 - a * a),), pole=True)),
    (np.arccos, Rule("arccos", np.arccos, (lambda a, y: -1.0 / np.sqrt(1.0 - a * a),), pole=True)),
    (np.arctan, Rule("arctan", np.arctan, (lambda a, y: 1.0 / (1.0 + a * a),))),
    (np.arctan2, Rule("arctan2", np.arctan2,
                      (lambda a, b, y: b / (a * a + b * b), lambda a, b, y: -a / (a * a + b * b)), pole=True)),
    (np.hypot, Rule("hypot", np.hypot, (lambda a, b, y: a / y, lambda a, b, y: b / y), pole=True)),
    (np.sinh, Rule("sinh", np.sinh, (lambda a, y: np.cosh(a),))),
    (np.cosh, Rule("cosh", np.cosh, (lambda a, y: np.sinh(a),))),
    (np.tanh, Rule("tanh", np.tanh, (lambda a, y: 1.0 - y * y,))),
    (np.arcsinh, Rule("arcsinh", np.arcsinh, (lambda a, y: 1.0 / np.hypot(a, 1.0),))),
    (np.arccosh, Rule("arccosh", np.arccosh, (lambda a, y: 1.0 / np.sqrt(a * a - 1.0),), pole=True)),
    (np.arctanh, Rule("arctanh", np.arctanh, (lambda a, y: 1.0 / (1.0 - a * a),), pole=True)),
    (np.maximum, Rule("maximum", np.maximum, _first(np.greater_equal))),
    (np.minimum, Rule("minimum", np.minimum, _first(np.less_equal))),
    (np.sign, Rule("sign", np.sign)),
    (np.floor, Rule("floor", np.floor)),
    (np.ceil, Rule("ceil", np.ceil)),
    (np.rint, Rule("rint", np.rint)),
    (np.trunc, Rule("trunc", np.trunc)),
)  # fmt: skip

RULES: dict[Any, Rule] = dict(_ROWS)

COMPARISONS: dict[Any, Callable[[Any, Any], Any]] = {
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
}


def scale(rule: Rule, factor: Any, partial: Any) -> Any:
    """``factor * partial``, with a zero factor staying zero where the partial may be infinite."""
    if not rule.pole:
        return factor * partial
    with np.errstate(invalid="ignore"):
        return np.where(np.equal(factor, 0), 0.0, factor * partial)


class Operators:
    """Python's operators in terms of one method ``_apply(ufunc, *arguments)``, shared by all traced values."""

    __slots__ = ()

    def _apply(self, function: Any, *arguments: Any) -> Any:
        raise NotImplementedError

    def __add__(self, other: Any) -> Any:
        return self._apply(np.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return self._apply(np.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return self._apply(np.subtract, self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._apply(np.subtract, other, self)

    def __mul__(self, other: Any) -> Any:
        return self._apply(np.multiply, self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._apply(np.multiply, other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._apply(np.true_divide, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._apply(np.true_divide, other, self)

    def __pow__(self, other: Any) -> Any:
        return self._apply(np.power, self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._apply(np.power, other, self)

    def __neg__(self) -> Any:
        return self._apply(np.negative, self)

    def __pos__(self) -> Any:
        return self._apply(np.positive, self)

    def __abs__(self) -> Any:
        return self._apply(np.absolute, self)

    def __lt__(self, other: Any) -> Any:
        return self._apply(np.less, self, other)

    def __le__(self, other: Any) -> Any:
        return self._apply(np.less_equal, self, other)

    def __gt__(self, other: Any) -> Any:
        return self._apply(np.greater, self, other)

    def __ge__(self, other: Any) -> Any:
        return self._apply(np.greater_equal, self, other)

    def __eq__(self, other: object) -> Any:
        return self._apply(np.equal, self, other)

    def __ne__(self, other: object) -> Any:
        return self._apply(np.not_equal, self, other)

    __hash__ = object.__hash__
