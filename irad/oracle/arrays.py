"""Arrays whose entries carry derivatives, and fields: the values of an expression over a whole array.

An :class:`Array` takes part in a run by a copy. It checks what irad checks before a launch: that every access lies in
the array, an index below 0 counting once from the end, and that no two points touch one entry of which one writes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from irad.errors import DomainError, IradError, NotDifferentiableError, RaceError
from irad.fd import Operator
from irad.oracle.arithmetic import Machine, Number

Point = tuple[int, ...]


class Array:
    """An array in a kernel that is being interpreted.

    ``values`` are its entries; ``carried`` (an array of objects, of floats only) what each carries; ``error`` bounds
    of their rounding errors. ``written``: entries assigned so far; ``read``: whether any entry was read.
    """

    __array_ufunc__ = None

    def __init__(self, machine: Machine, name: str, values: Any, carried: Any = None) -> None:
        self.machine, self.name = machine, name
        self.values = np.array(values)
        self.floating = self.values.dtype in (np.float32, np.float64)
        self.carried = np.full(self.values.shape, None, object) if carried is None else carried
        self.error = np.zeros(self.values.shape)
        self.written = np.zeros(self.values.shape, bool)
        self.read = False
        self.point: Callable[[], Point | None] = lambda: None
        self._readers: dict[Point, set[Point]] = {}
        self._writer: dict[Point, Point] = {}

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def ndim(self) -> int:
        return self.values.ndim

    @property
    def size(self) -> int:
        return self.values.size

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        raise NotDifferentiableError(f"iteration over the array {self.name}", remedy="index its entries")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, Selection):
            return index(self)
        at = self._place(index)
        point = self.point()
        if point is not None:
            self._readers.setdefault(at, set()).add(point)
            self._check_race(at, point)
        return self._entry(at)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, Selection):
            self._assign(index.operator, value)
            return
        at = self._place(index)
        point = self.point()
        if point is not None:
            self._check_race(at, point)
            self._writer[at] = point
            self._check_race(at, point)
        self._store(at, value)

    def add(self, index: Any, value: Any) -> None:
        """``irad.atomic_add``: several points may."""
        at = self._place(index)
        self._store(at, self._entry(at) + value)

    def field(self) -> Field:
        """All entries, as an expression over the whole array."""
        entries = np.empty(self.shape, object)
        for at in np.ndindex(*self.shape):
            entries[at] = self._entry(at)
        return Field(entries)

    def _assign(self, selector: Operator, value: Any) -> None:
        if not selector.selector:
            raise NotDifferentiableError(f"{selector.name} does not select entries")
        offsets = selector.offsets(self.ndim)
        shape = tuple(max(n - 2 * o, 0) for n, o in zip(self.shape, offsets, strict=True))
        if isinstance(value, Field) and value.entries.shape != shape:
            raise DomainError(
                f"{self.name}[{selector.name}] selects entries of shape {shape}, the right-hand side has shape "
                f"{value.entries.shape}"
            )
        for at in np.ndindex(*shape):
            entry = value.entries[at] if isinstance(value, Field) else value
            self._store(tuple(a + o for a, o in zip(at, offsets, strict=True)), entry)

    def _entry(self, at: Point) -> Any:
        self.read = True
        value = self.values[at]
        if not self.floating:
            return bool(value) if value.dtype == bool else value
        return Number(self.machine, value, False, float(self.error[at]), self.carried[at])

    def _store(self, at: Point, value: Any) -> None:
        self.written[at] = True
        if not self.floating:
            self.values[at] = value.value if isinstance(value, Number) else value
            return
        number = self.machine.number(value)
        self.values[at] = number.value
        self.carried[at] = number.carried
        self.error[at] = number.error

    def _place(self, index: Any) -> Point:
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) != self.ndim or not all(isinstance(i, (int, np.integer)) for i in indices):
            raise NotDifferentiableError(
                f"{self.name} of rank {self.ndim} is indexed by {index!r}",
                remedy="a whole number for each axis",
            )
        for i, n in zip(indices, self.shape, strict=True):
            if not -n <= i < n:
                raise DomainError(f"index {index} is out of range for {self.name} of shape {self.shape}")
        return tuple(int(i) + n if i < 0 else int(i) for i, n in zip(indices, self.shape, strict=True))

    def _check_race(self, at: Point, point: Point) -> None:
        writer = self._writer.get(at)
        if writer is None:
            return
        others = (self._readers.get(at, set()) | {point}) - {writer}
        if others:
            raise RaceError(
                f"the points {writer} and {min(others)} both touch {self.name}{list(at)}, and one writes",
                remedy="write into a second array",
            )


class Field:
    """The values of an expression at every point of a statement over ``irad.fd`` operators."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, entries: Any) -> None:
        self.entries = entries


class Selection:
    """An operator of ``irad.fd`` inside a kernel that is being interpreted."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.__name__ = operator.name

    def __call__(self, A: Any) -> Field:
        if isinstance(A, Array):
            A = A.field()
        if not isinstance(A, Field):
            raise IradError(f"{self.operator.name} acts on arrays, not on {type(A).__name__}")
        return Field(self.operator(A.entries))


def lifted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of scalars that also takes fields, entry by entry."""

    def call(*args: Any) -> Any:
        fields = [a.entries for a in args if isinstance(a, Field)]
        if not fields:
            return function(*args)
        shape = fields[0].shape
        if any(f.shape != shape for f in fields):
            raise DomainError(f"operands of shapes {', '.join(str(f.shape) for f in fields)} in one expression")
        result = np.empty(shape, object)
        for at in np.ndindex(*shape):
            result[at] = function(*(a.entries[at] if isinstance(a, Field) else a for a in args))
        return Field(result)

    call.__name__ = getattr(function, "__name__", "function")
    return call


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lifted(lambda self, other: function(other, self))


for _name in ("add", "sub", "mul", "truediv", "mod", "floordiv", "pow"):
    setattr(Field, f"__{_name}__", lifted(getattr(operator, _name)))
    setattr(Field, f"__r{_name}__", _reflected(getattr(operator, _name)))
for _name in ("neg", "pos", "abs", "lt", "le", "gt", "ge", "eq", "ne", "and_", "or_"):
    setattr(Field, f"__{_name.strip('_')}__", lifted(getattr(operator, _name)))
