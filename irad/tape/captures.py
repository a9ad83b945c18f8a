"""Which arrays a Python function can reach, and by what names; and a lock on them while it is recorded.

Looked at: closure cells and the module globals that the code names, default arguments, attributes of a bound object
(``self.Ci``) or of a callable object, ``functools.partial`` arguments, and the same again for every Python function
reached that way. Arrays inside other containers have no name here.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Names:
    """Arrays by name and names by array (by identity); ``"f.Ci"`` is the long form of ``"Ci"``."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[Array]] = {}
        self._by_array: dict[int, tuple[Array, list[str]]] = {}

    def add(self, owner: str, name: str, array: Array) -> None:
        for key in (name, f"{owner}.{name}"):
            known = self._by_name.setdefault(key, [])
            if not any(a is array for a in known):
                known.append(array)
        names = self._by_array.setdefault(id(array), (array, []))[1]
        if name not in names:
            names.append(name)

    def arrays(self, name: str) -> list[Array]:
        """All arrays of this name."""
        return self._by_name.get(name, [])

    def of(self, array: Array) -> list[str]:
        """All names of this array object, shortest form."""
        return self._by_array.get(id(array), (array, []))[1]

    def all(self) -> list[Array]:
        return [array for array, _ in self._by_array.values()]

    def known(self) -> list[str]:
        return sorted(n for n in self._by_name if "." not in n)


def names_of(function: Callable[..., Any]) -> Names:
    """The arrays that ``function`` and the Python functions it can reach refer to."""
    names, seen = Names(), set()
    waiting: list[Any] = [function]
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        owner = getattr(item, "__name__", type(item).__name__)
        for name, value in _references(item):
            if isinstance(value, np.ndarray):
                names.add(owner, name, value)
            elif isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
                waiting.append(value)
    return names


def _references(item: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(item, functools.partial):
        yield "func", item.func
        yield from ((f"arg{i}", a) for i, a in enumerate(item.args))
        yield from item.keywords.items()
    elif isinstance(item, types.MethodType):
        yield item.__name__, item.__func__
        yield from _attributes(item.__self__)
    elif isinstance(item, types.FunctionType):
        codes = list(_codes(item.__code__))
        used = {name for code in codes for name in code.co_names}
        values = [(name, item.__globals__[name]) for name in sorted(used) if name in item.__globals__]
        for name, cell in zip(item.__code__.co_freevars, item.__closure__ or (), strict=True):
            with contextlib.suppress(ValueError):  # a cell that is not filled yet
                values.append((name, cell.cell_contents))
        for name, value in values:
            yield name, value
            if not isinstance(value, (np.ndarray, types.FunctionType, type)):
                yield from ((n, v) for n, v in _attributes(value) if n in used)
        yield from (item.__kwdefaults__ or {}).items()
        arguments = item.__code__.co_varnames[: item.__code__.co_argcount]
        defaults = item.__defaults__ or ()
        yield from zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True)
    elif callable(item):
        yield "call", inspect.getattr_static(item, "__call__", None)
        yield from _attributes(item)


def _attributes(item: Any) -> Iterator[tuple[str, Any]]:
    try:
        attributes = vars(item)
    except TypeError:
        return
    for name, value in list(attributes.items()):
        if isinstance(value, np.ndarray):
            yield name, value


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


@contextlib.contextmanager
def read_only(arrays: list[Array]) -> Iterator[None]:
    """Refuse NumPy writes to these array objects for a while (views made meanwhile refuse them for good)."""
    locked = [a for a in arrays if a.flags.writeable]
    try:
        for a in locked:
            a.flags.writeable = False
        yield
    finally:
        for a in sorted(locked, key=_depth):  # a view can be unlocked only after what it is a view of
            a.flags.writeable = True


def _depth(array: Array) -> int:
    depth = 0
    while isinstance(array.base, np.ndarray):
        array, depth = array.base, depth + 1
    return depth
