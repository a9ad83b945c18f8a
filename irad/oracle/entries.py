"""Arrays in a loop kernel that is being interpreted: NumPy's own arrays, whose entries are numbers with derivatives.

An :class:`Entries` is an array of objects, so that views, slices, broadcasting and assignment are NumPy's. It knows the
precision of its entries, to which what is assigned is rounded, and shares with its views a mask of what was assigned.
Arithmetic goes entry by entry through the numbers, functions through the table of rules.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from irad.errors import NotDifferentiableError
from irad.oracle.arithmetic import Machine, Number
from irad.oracle.rules import rule_name


class Origin:
    """What an array and its views share: whether any entry was read."""

    def __init__(self) -> None:
        self.read = False


class Entries(np.ndarray):  # type: ignore[type-arg]
    """An array of numbers. ``precision`` is ``np.float32`` or ``np.float64``; ``mask`` marks entries assigned."""

    machine: Machine
    precision: type
    mask: Any
    origin: Origin

    @staticmethod
    def of(machine: Machine, values: Any, carried: Any = None) -> Any:
        """The entries of an array of floats; ``carried``: an array of objects, what each carries."""
        values = np.asarray(values)
        result: Any = np.empty(values.shape, object).view(Entries)
        result.machine, result.precision = machine, values.dtype.type
        result.mask, result.origin = np.zeros(values.shape, bool), Origin()
        plain = result.view(np.ndarray)
        for at in np.ndindex(*values.shape):
            plain[at] = Number(machine, values[at], False, 0.0, None if carried is None else carried[at])
        return result

    def __array_finalize__(self, other: Any) -> None:
        for name in ("machine", "precision", "mask", "origin"):
            if not hasattr(self, name):
                setattr(self, name, getattr(other, name, None))

    @property
    def dtype(self) -> Any:  # type: ignore[override]
        return np.dtype(self.precision)

    @property
    def floating(self) -> bool:
        return True

    @property
    def values(self) -> Any:
        """The values alone."""
        result: Any = np.empty(self.shape, self.precision)
        for at in np.ndindex(*self.shape):
            result[at] = self.view(np.ndarray)[at].value
        return result

    @property
    def error(self) -> Any:
        """Bounds of the rounding errors."""
        result = np.empty(self.shape)
        for at in np.ndindex(*self.shape):
            result[at] = self.view(np.ndarray)[at].error
        return result

    @property
    def carried(self) -> Any:
        """What the entries carry, an object an entry."""
        result = np.empty(self.shape, object)
        for at in np.ndindex(*self.shape):
            result[at] = self.view(np.ndarray)[at].carried
        return result

    @property
    def written(self) -> Any:
        return self.mask

    @property
    def read(self) -> bool:
        return self.origin.read

    def part(self, of: Callable[[Any], Any]) -> Entries:
        """A view, made alike of the entries and of the mask."""
        result: Entries = of(self.view(np.ndarray)).view(Entries)
        result.machine, result.precision, result.origin = self.machine, self.precision, self.origin
        result.mask = of(self.mask)
        return result

    def __getitem__(self, index: Any) -> Any:
        found = self.view(np.ndarray)[index]
        if isinstance(found, np.ndarray):
            return self.part(lambda a: a[index])
        self.origin.read = True
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        plain = self.view(np.ndarray)
        if isinstance(value, np.ndarray):
            value = _objects(value)
            rounded = np.empty(value.shape, object)
            for at in np.ndindex(*value.shape):
                rounded[at] = self._rounded(value[at])
            plain[index] = rounded
        else:
            plain[index] = self._rounded(value)
        self.mask[index] = True

    def _rounded(self, value: Any) -> Number:
        number = self.machine.number(value).rounded(self.precision)
        return Number(self.machine, number.value, False, number.error, number.carried)

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self.view(np.ndarray).item())

    @property
    def T(self) -> Entries:  # type: ignore[override]
        return self.part(lambda a: a.T)

    def reshape(self, *shape: Any) -> Entries:  # type: ignore[override]
        return self.part(lambda a: a.reshape(*shape))

    def copy(self, order: Any = None) -> Entries:  # type: ignore[override]
        return elementwise(self.machine, lambda x: x, self)  # type: ignore[no-any-return]

    def astype(self, dtype: Any) -> Any:  # type: ignore[override]
        if np.dtype(dtype).kind != "f":
            return np.array([int(n.value) for n in self.flat_numbers()], dtype).reshape(self.shape)
        return elementwise(self.machine, lambda x: x.as_strong(np.dtype(dtype).type), self)

    def flat_numbers(self) -> list[Number]:
        """All entries in the order of the indices."""
        self.origin.read = True
        return [self.view(np.ndarray)[at] for at in np.ndindex(*self.shape)]

    def sum(self) -> Any:  # type: ignore[override]
        return functools.reduce(operator.add, self.flat_numbers(), self.machine.number(self.precision(0)))

    def prod(self) -> Any:  # type: ignore[override]
        return functools.reduce(operator.mul, self.flat_numbers(), self.machine.number(self.precision(1)))

    def mean(self) -> Any:  # type: ignore[override]
        return self.sum() / self.size

    def max(self) -> Any:  # type: ignore[override]
        return functools.reduce(lambda a, b: b if self.machine.compare("gt", b, a) else a, self.flat_numbers())

    def min(self) -> Any:  # type: ignore[override]
        return functools.reduce(lambda a, b: b if self.machine.compare("lt", b, a) else a, self.flat_numbers())

    def dot(self, other: Any) -> Any:  # type: ignore[override]
        """The matrix product, terms added in order."""
        a, b = _objects(self), _objects(other)
        zero = self.machine.number(self.precision(0))

        def total(row: Any, column: Any) -> Any:
            return functools.reduce(lambda t, k: t + row[k] * column[k], range(len(row)), zero)

        if a.ndim == b.ndim == 1:
            return total(a, b)
        rows = a if a.ndim == 2 else a[np.newaxis]
        columns = b.T if b.ndim == 2 else b[np.newaxis]
        result = np.empty((len(rows), len(columns)), object)
        for i, j in np.ndindex(*result.shape):
            result[i, j] = total(rows[i], columns[j])
        shape = (*a.shape[:-1], *(b.shape[1:] if b.ndim == 2 else ()))
        return _wrapped(self.machine, result.reshape(shape))

    def __matmul__(self, other: Any) -> Any:
        return self.dot(other)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        if method == "reduce" and ufunc in _REDUCE:
            return getattr(inputs[0], _REDUCE[ufunc])()
        function = _UFUNCS.get(ufunc)
        name = rule_name(ufunc)
        if method != "__call__" or kwargs or (function is None and name is None):
            raise NotDifferentiableError(f"np.{ufunc.__name__} of an array in the oracle")
        if function is None:
            machine = self.machine
            function = lambda *args: machine.apply(str(name), *args)  # noqa: E731
        result = elementwise(self.machine, function, *inputs)
        if out is None:
            return result
        out[0][...] = result
        return out[0]


_REDUCE = {np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min"}

_UFUNCS: dict[Any, Callable[..., Any]] = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul, np.true_divide: operator.truediv,
    np.floor_divide: operator.floordiv, np.remainder: operator.mod, np.power: operator.pow,
    np.negative: operator.neg, np.positive: operator.pos, np.absolute: operator.abs,
    np.less: operator.lt, np.less_equal: operator.le, np.greater: operator.gt, np.greater_equal: operator.ge,
    np.equal: operator.eq, np.not_equal: operator.ne,
    np.logical_and: lambda a, b: bool(a) and bool(b), np.logical_or: lambda a, b: bool(a) or bool(b),
    np.logical_not: lambda a: not bool(a),
}  # fmt: skip


def _objects(x: Any) -> Any:
    """An operand as an array of Python objects."""
    if isinstance(x, Entries):
        x.origin.read = True
        return x.view(np.ndarray)
    if isinstance(x, np.ndarray):
        result = np.empty(x.shape, object)
        for at in np.ndindex(*x.shape):
            result[at] = x[at]
        return result
    result = np.empty((), object)
    result[()] = x
    return result


def _wrapped(machine: Machine, objects: Any) -> Any:
    """Results of an operation on arrays: numbers as entries, truth values and integers as a plain array."""
    if objects.size and not any(isinstance(x, Number) for x in objects.flat):
        return np.array(objects.tolist()).reshape(objects.shape)
    numbers = [x if isinstance(x, Number) else machine.number(x) for x in objects.flat]
    strong = {type(n.value) for n in numbers if not n.weak}
    precision = np.float32 if strong == {np.float32} else np.float64
    result = Entries.of(machine, np.zeros(objects.shape, precision))
    plain = result.view(np.ndarray)
    for at, n in zip(np.ndindex(*objects.shape), numbers, strict=True):
        rounded = n.rounded(precision)
        plain[at] = Number(machine, rounded.value, False, rounded.error, rounded.carried)
    return result


def elementwise(machine: Machine, function: Callable[..., Any], *operands: Any) -> Any:
    """A function of scalars on arrays, broadcast as NumPy does."""
    arrays = np.broadcast_arrays(*(_objects(x) for x in operands))
    result = np.empty(arrays[0].shape, object)
    for at in np.ndindex(*result.shape):
        result[at] = function(*(a[at] for a in arrays))
    return _wrapped(machine, result)


def spread(machine: Machine, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of scalars that also takes arrays."""

    def call(*args: Any) -> Any:
        if any(isinstance(a, np.ndarray) and a.ndim for a in args):
            return elementwise(machine, function, *args)
        return function(*args)

    call.__name__ = getattr(function, "__name__", "function")
    return call


def _binary(name: str) -> None:
    function = getattr(operator, name)

    def forward(self: Entries, other: Any) -> Any:
        return elementwise(self.machine, function, self, other)

    def reflected(self: Entries, other: Any) -> Any:
        return elementwise(self.machine, lambda a, b: function(b, a), self, other)

    def in_place(self: Entries, other: Any) -> Any:
        self[...] = elementwise(self.machine, function, self, other)
        return self

    setattr(Entries, f"__{name}__", forward)
    setattr(Entries, f"__r{name}__", reflected)
    setattr(Entries, f"__i{name}__", in_place)


for _name in ("add", "sub", "mul", "truediv", "mod", "floordiv", "pow"):
    _binary(_name)


def _alike(name: str) -> None:
    """An operator that has no reflected form of its own."""
    function = getattr(operator, name)
    setattr(Entries, f"__{name}__", lambda self, *others: elementwise(self.machine, function, self, *others))


for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs"):
    _alike(_name)


def _plain(x: Any) -> Any:
    """An argument of a function that makes arrays."""
    if isinstance(x, Entries):
        return np.empty(x.shape, x.precision)
    return x.value if isinstance(x, Number) else getattr(x, "precision", x)


def array_functions(machine: Machine) -> dict[Any, Callable[..., Any]]:
    """NumPy's functions of and for whole arrays, by function, as a loop kernel that is being interpreted sees them."""

    def made(make: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = make(*map(_plain, args), **{name: _plain(value) for name, value in kwargs.items()})
            if result.dtype.kind != "f":
                return result
            array = Entries.of(machine, result)
            if make in (np.full, np.full_like):
                array[...] = args[1]
            return array

        return call

    def where(condition: Any, x: Any, y: Any) -> Any:
        return spread(machine, lambda c, a, b: a if c else b)(condition, x, y)

    def clip(a: Any, low: Any, high: Any) -> Any:
        limited = spread(machine, lambda x, lo, hi: machine.apply("minimum", machine.apply("maximum", x, lo), hi))
        return limited(a, low, high)

    def method(name: str, function: Any) -> Callable[..., Any]:
        def call(a: Any, *args: Any) -> Any:
            return getattr(a, name)(*args) if isinstance(a, Entries) else function(a, *args)

        return call

    makers = (np.empty, np.zeros, np.ones, np.full, np.empty_like, np.zeros_like, np.ones_like, np.full_like)
    return {
        **{make: made(make) for make in makers},
        **{getattr(np, name): method(name, getattr(np, name)) for name in ("sum", "prod", "mean", "max", "min", "dot",
                                                                         "copy")},
        np.where: where,
        np.clip: clip,
    }  # fmt: skip
