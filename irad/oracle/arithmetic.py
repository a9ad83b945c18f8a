"""Numbers that compute as a kernel does and carry a derivative.

A Python number is *weak* and takes the precision of what it meets (float32 arithmetic over
float32 arrays), on every version of NumPy. A number also bounds its own rounding error in comparison with compiled
code: operations that IEEE 754 rounds correctly add none, functions of the C library add one unit in the last place. A
comparison that this error could turn is counted as doubtful.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from irad.errors import IradError, NotDifferentiableError
from irad.oracle.derivatives import Forward, Nothing, Reverse
from irad.oracle.rules import RULES, Rule, power_by_squaring

Mode = Nothing | Forward | Reverse

COMPARISONS = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq,
               "ne": operator.ne}  # fmt: skip


class TooManyOperations(IradError):
    """The run takes longer than the caller wants to wait for."""

    def __init__(self, most: int) -> None:
        super().__init__(f"more than {most} operations are too many for the oracle")


class Machine:
    """Does arithmetic and counts doubtful decisions; one for each run. ``most``: operations after which it gives up."""

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.doubtful = 0
        self.most: int | None = None
        self.done = 0

    def number(self, x: Any, carried: Any = None) -> Number:
        """A float, or a Python number as one: weak. Short integers are weak, array elements of long ones are not."""
        if isinstance(x, Number):
            return x
        if isinstance(x, (np.float32, np.float64)):
            return Number(self, x, False, 0.0, carried)
        if isinstance(x, (bool, int, float, np.bool_)):
            return Number(self, np.float64(x), True, 0.0, carried)
        if isinstance(x, np.integer):
            return Number(self, np.float64(x), x.dtype.itemsize < 4, 0.0, carried)
        raise NotDifferentiableError(f"a value of type {type(x).__name__} in arithmetic")

    def meet(self, args: tuple[Any, ...]) -> list[Number]:
        """The operands of an operation in its precision: that of the strong ones, float64 if there is none."""
        numbers = [self.number(a) for a in args]
        strong = {type(n.value) for n in numbers if not n.weak}
        return [n.rounded(np.float32 if strong == {np.float32} else np.float64) for n in numbers]

    def apply(self, name: str, *args: Any) -> Number:
        """A function of the table of rules."""
        return self.evaluate(RULES[name], *args)

    def evaluate(self, rule: Rule, *args: Any) -> Number:
        self.done += 1
        if self.most is not None and self.done > self.most:
            raise TooManyOperations(self.most)
        numbers = self.meet(args)
        first = numbers[0].value
        value = type(first)(rule.value(*(n.value for n in numbers)))
        exact = [np.float64(n.value) for n in numbers]
        partials = [p(*exact, np.float64(value)) for p in rule.partials]
        error = 0.0 if rule.exact else float(np.spacing(np.abs(value)))
        for partial, n in zip(partials, numbers, strict=True):
            if n.error:
                error += abs(partial) * n.error
        parts = [(p, n.carried) for p, n in zip(partials, numbers, strict=True) if n.carried is not None]
        carried = self.mode.join(parts, rule.pole) if parts else None
        return Number(self, value, all(n.weak for n in numbers), error, carried)

    def power(self, x: Any, n: int) -> Number:
        """``x ** n`` for an integer: multiplied out."""
        return self.evaluate(
            Rule(
                lambda v: power_by_squaring(v, n),
                (lambda v, r: np.float64(0) if n == 0 else n * power_by_squaring(v, n - 1),),
                pole=n < 0,
                exact=abs(n) <= 3,
            ),
            x,
        )

    def compare(self, name: str, a: Any, b: Any) -> bool:
        x, y = self.meet((a, b))
        error = x.error + y.error
        twins = x.value == y.value and x.error == y.error  # computed in one way, so equal everywhere
        if error and not twins and abs(np.float64(x.value) - np.float64(y.value)) <= 4 * error:
            self.doubtful += 1
        return bool(COMPARISONS[name](x.value, y.value))


class Number:
    """A float: its value, whether it is weak, a bound of its error, and what it carries (``None``: a constant)."""

    __slots__ = ("carried", "error", "machine", "value", "weak")
    __array_ufunc__ = None  # NumPy's scalars leave arithmetic to us
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, machine: Machine, value: Any, weak: bool, error: float, carried: Any) -> None:
        self.machine, self.value, self.weak, self.error, self.carried = machine, value, weak, error, carried

    def rounded(self, precision: type) -> Number:
        """The same number in another precision."""
        if type(self.value) is precision:
            return self
        value = precision(self.value)
        return Number(self.machine, value, self.weak, self.error, self.carried)

    def as_weak(self) -> Number:
        """What ``float(x)`` gives: a Python number."""
        return Number(self.machine, np.float64(self.value), True, self.error, self.carried)

    def as_strong(self, precision: type) -> Number:
        """What ``np.float32(x)`` and ``np.float64(x)`` give."""
        return Number(self.machine, precision(self.value), False, self.error, self.carried)

    def __bool__(self) -> bool:
        return self.machine.compare("ne", self, 0.0)

    def __int__(self) -> int:
        return int(self.value)

    __trunc__ = __int__

    def __floor__(self) -> int:
        return math.floor(float(self.value))

    def __ceil__(self) -> int:
        return math.ceil(float(self.value))

    def __round__(self, digits: int | None = None) -> Any:
        if digits is None:
            return round(float(self.value))
        raise NotDifferentiableError("round to a number of digits", remedy="np.floor or np.rint")

    def __float__(self) -> float:
        raise NotDifferentiableError(
            "a function outside the table of rules takes a float that carries a derivative",
            remedy="functions of math and numpy, and helpers decorated @irad.device",
        )

    def __pow__(self, other: Any) -> Any:
        if isinstance(other, int) and not isinstance(other, bool):
            return self.machine.power(self, other)
        return _binary("pow")[0](self, other)

    def __rpow__(self, other: Any) -> Any:
        return _binary("pow")[1](self, other)

    def __repr__(self) -> str:
        return f"Number({self.value!r})"


def _operable(x: Any) -> bool:
    return isinstance(x, (Number, bool, int, float, np.number, np.bool_))


def _binary(name: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    def forward(self: Number, other: Any) -> Any:
        return self.machine.apply(name, self, other) if _operable(other) else NotImplemented

    def reflected(self: Number, other: Any) -> Any:
        return self.machine.apply(name, other, self) if _operable(other) else NotImplemented

    return forward, reflected


def _compare(name: str) -> Callable[[Any, Any], Any]:
    def compare(self: Number, other: Any) -> Any:
        return self.machine.compare(name, self, other) if _operable(other) else NotImplemented

    return compare


for _method, _name in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "mod": "mod",
                       "floordiv": "floordiv"}.items():  # fmt: skip
    _forward, _reflected = _binary(_name)
    setattr(Number, f"__{_method}__", _forward)
    setattr(Number, f"__r{_method}__", _reflected)
for _method in ("neg", "pos", "abs"):
    setattr(Number, f"__{_method}__", lambda self, name=_method: self.machine.apply(name, self))
for _method in COMPARISONS:
    setattr(Number, f"__{_method}__", _compare(_method))
