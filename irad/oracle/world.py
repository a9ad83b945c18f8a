"""The surroundings of a kernel while it is interpreted: a copy of the function that sees other things under its names.

``irad.interior`` gives the point whose turn it is, arrays and numbers that are captured carry derivatives, functions of
``math`` and NumPy go through the table of rules, operators of ``irad.fd`` act on interpreted arrays, and helpers are
copies in turn. Everything else is left as it is.
"""

from __future__ import annotations

import builtins
import contextlib
import itertools
import math
import types as pytypes
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from irad.domains import atomic_add, domain, interior, points
from irad.errors import IradError, NotDifferentiableError
from irad.fd import Operator
from irad.oracle.arithmetic import Machine, Number
from irad.oracle.arrays import Array, Point, Selection, lifted
from irad.oracle.captured import Key, helper_of, key_of, places
from irad.oracle.entries import array_functions, spread
from irad.oracle.rules import rule_name

Box = tuple[tuple[int, int], ...]

TESTS = (np.isnan, np.isinf, np.isfinite, np.signbit, math.isnan, math.isinf, math.isfinite)


class _DomainNamed(BaseException):
    """Ends the first run of a point kernel, which finds its domain."""

    def __init__(self, box: Box) -> None:
        self.box = box


class Index(int):
    """The index of a one-dimensional domain: ``i = irad.interior(T)``, or ``(i,) = irad.interior(T)``."""

    def __iter__(self) -> Any:
        return iter((int(self),))


class World:
    """Runs a kernel. ``hidden`` are the values of its captured places; ``loop``: it names no launch domain."""

    def __init__(self, machine: Machine, hidden: Mapping[Key, Any], loop: bool = False) -> None:
        self.machine, self.hidden = machine, hidden
        self.whole = array_functions(machine) if loop else {}
        self.point: Point | None = None
        self.box: Box | None = None
        self._copies: dict[int, pytypes.FunctionType] = {}

    def run(self, function: pytypes.FunctionType, args: tuple[Any, ...], most: int | None = None) -> None:
        """Call a kernel, once for each point of its domain if it names one. ``most``: refuse more points than that."""
        kernel = self.copy(function)
        if self.whole and most is not None:
            self.machine.most = 20 * most
        with np.errstate(all="ignore"):
            try:
                kernel(*args)
                return
            except _DomainNamed as found:
                self.box = found.box
            ranges = [range(lo, hi) for lo, hi in self.box]
            if most is not None and math.prod(map(len, ranges)) > most:
                raise TooManyPoints(math.prod(map(len, ranges)))
            for self.point in itertools.product(*ranges):
                kernel(*args)

    def copy(self, function: pytypes.FunctionType) -> pytypes.FunctionType:
        """The function in these surroundings."""
        if id(function) not in self._copies:
            seen: dict[str, Any] = {"__builtins__": self._builtins(), "__name__": function.__module__}
            cells = tuple(pytypes.CellType() for _ in function.__closure__ or ())
            copy = pytypes.FunctionType(function.__code__, seen, function.__name__, function.__defaults__, cells)
            copy.__kwdefaults__ = function.__kwdefaults__
            self._copies[id(function)] = copy  # before its surroundings, which may name the function itself
            for place in places(function):
                if place.holder is function.__globals__:
                    seen[place.name] = self.view(place.value, place.key)
            for cell, original in zip(cells, function.__closure__ or (), strict=True):
                with contextlib.suppress(ValueError):  # an empty cell
                    cell.cell_contents = self.view(original.cell_contents, key_of(original, ""))
        return self._copies[id(function)]

    def view(self, value: Any, key: Key) -> Any:
        """What a kernel sees instead of a value that it captures."""
        if key in self.hidden:
            return self.hidden[key]
        if isinstance(value, Operator):
            return Selection(value)
        if isinstance(value, pytypes.ModuleType):
            return ModuleView(self, value)
        for word, meaning in ((interior, self._interior), (points, self._points), (domain, self._domain)):
            if value is word:
                return meaning
        if value is atomic_add:
            return self._atomic_add
        helper = helper_of(value)
        if helper is not None:
            return self.copy(helper) if self.whole else lifted(self.copy(helper))
        if isinstance(value, Hashable) and value in self.whole:
            return self.whole[value]
        return self._function(value)

    def _lifted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return spread(self.machine, function) if self.whole else lifted(function)

    def _function(self, value: Any) -> Any:
        if value is np.where:
            return lifted(lambda condition, a, b: a if condition else b)
        if value is np.float64 or value is np.float32:
            return self._cast(value)
        if any(value is whole for whole in (math.floor, math.ceil, math.trunc)):
            return self._lifted(value)
        if any(value is test for test in TESTS):
            return self._lifted(lambda x: bool(value(x.value if isinstance(x, Number) else x)))
        name = rule_name(value) if _of_library(value) else None
        return value if name is None or value is math.remainder else self._lifted(self._ruled(name, value))

    def _ruled(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if any(isinstance(a, (Number, float, np.floating)) for a in args):
                return self.machine.apply(name, *args)
            result = function(*args)
            return float(result) if isinstance(result, np.floating) else result

        return call

    def _cast(self, precision: type) -> Callable[[Any], Any]:
        cast = self._lifted(lambda x: self.machine.number(x).as_strong(precision))
        cast.precision = precision  # type: ignore[attr-defined]
        return cast

    def _builtins(self) -> dict[str, Any]:
        def to_float(x: Any) -> Any:
            return x.as_weak() if isinstance(x, Number) else float(x)

        changed = {name: self._lifted(getattr(builtins, name)) for name in ("min", "max", "int", "bool", "round")}
        return {**vars(builtins), **changed, "float": self._lifted(to_float)}

    # the words of irad -----------------------------------------------------------------------------------------------

    def _interior(self, A: Array, width: int = 1) -> Any:
        return self._at(tuple((width, n - width) for n in A.shape))

    def _points(self, A: Array) -> Any:
        return self._at(tuple((0, n) for n in A.shape))

    def _domain(self, *bounds: tuple[int, int]) -> Any:
        return self._at(tuple((int(lo), int(hi)) for lo, hi in bounds))

    def _at(self, box: Box) -> Any:
        if self.point is None:
            raise _DomainNamed(box)
        return Index(self.point[0]) if len(self.point) == 1 else self.point

    def _atomic_add(self, A: Array, index: Any, value: Any) -> None:
        A.add(index, value)


def names_domain(function: pytypes.FunctionType) -> bool:
    """Whether a kernel names a launch domain or uses operators of ``irad.fd``; else it is a loop kernel."""
    words = (interior, points, domain)
    return any(isinstance(p.value, Operator) or any(p.value is word for word in words) for p in places(function))


class ModuleView:
    """A module whose attributes a kernel sees as :meth:`World.view` gives them."""

    def __init__(self, world: World, module: pytypes.ModuleType) -> None:
        self._world, self._module = world, module

    def __getattr__(self, name: str) -> Any:
        return self._world.view(getattr(self._module, name), key_of(self._module, name))


class TooManyPoints(IradError):
    """The domain has more points than the caller wants to wait for."""

    def __init__(self, points: int) -> None:
        super().__init__(f"the launch domain has {points} points")
        self.points = points


def refuse_object(name: str, value: Any) -> None:
    """Raise for an argument that no kernel takes."""
    if not isinstance(value, (np.ndarray, bool, int, float, np.number, np.bool_)) or np.iscomplexobj(value):
        raise NotDifferentiableError(f"argument {name} is of type {type(value).__name__}")


def _of_library(value: Any) -> bool:
    module = getattr(value, "__module__", None) or ""
    return isinstance(value, np.ufunc) or module.split(".")[0] in ("math", "numpy", "scipy", "builtins", "numba")
