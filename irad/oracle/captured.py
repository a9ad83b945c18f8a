"""What a Python function takes from around it, read from its bytecode: places that hold a value, and their names.

Arrays and numbers in module globals, closure cells and attributes of modules are hidden arguments of a kernel, its
helpers' included. They are named as irad names them: ``Ci``, or ``helper.Ci`` where ``Ci`` alone is ambiguous.
"""

from __future__ import annotations

import dis
import functools
import types as pytypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

LIBRARIES = ("math", "cmath", "numpy", "numba", "scipy", "irad")
"""Libraries whose numbers (``math.pi``) are constants."""

Key = tuple[int, str]


@dataclass(frozen=True, eq=False)
class Place:
    """A value and where it was found: a namespace, a cell or a module (``holder``), and its name there."""

    name: str
    holder: Any
    value: Any
    owner: str

    @property
    def key(self) -> Key:
        return key_of(self.holder, self.name)

    def set(self, value: Any) -> None:
        """Put another value there."""
        if isinstance(self.holder, pytypes.CellType):
            self.holder.cell_contents = value
        elif isinstance(self.holder, dict):
            self.holder[self.name] = value
        else:
            setattr(self.holder, self.name, value)

    @property
    def hidden(self) -> bool:
        """Whether it is an array or a number that a kernel is given as a further argument."""
        if isinstance(self.value, np.ndarray):
            return True
        library = isinstance(self.holder, pytypes.ModuleType) and self.holder.__name__.split(".")[0] in LIBRARIES
        return isinstance(self.value, (bool, int, float, np.number, np.bool_)) and not library


def key_of(holder: Any, name: str) -> Key:
    """Equal for equal places."""
    return (id(holder), "" if isinstance(holder, pytypes.CellType) else name)


def helper_of(value: object) -> pytypes.FunctionType | None:
    """The Python function of a helper (``@irad.device``, ``@numba.njit``) or of a kernel."""
    inner = getattr(value, "py_func", None)
    return inner if isinstance(inner, pytypes.FunctionType) else None


def places(function: pytypes.FunctionType) -> Iterator[Place]:
    """Every value from outside that the bytecode of ``function`` names, nested functions included."""
    yield from _places(function, function.__code__)


def _places(function: pytypes.FunctionType, code: pytypes.CodeType) -> Iterator[Place]:
    module: Any = None
    for op, name in _instructions(code):
        if op in ("LOAD_GLOBAL", "LOAD_NAME") and name in function.__globals__:
            place = Place(name, function.__globals__, function.__globals__[name], function.__name__)
        elif op in ("LOAD_DEREF", "LOAD_CLASSDEREF") and name in function.__code__.co_freevars:
            cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
            place = Place(name, cell, cell.cell_contents, function.__name__)
        elif op in ("LOAD_ATTR", "LOAD_METHOD") and module is not None and hasattr(module, name):
            place = Place(name, module, getattr(module, name), function.__name__)
        else:
            module = None
            continue
        yield place
        module = place.value if isinstance(place.value, pytypes.ModuleType) else None
    for constant in code.co_consts:
        if isinstance(constant, pytypes.CodeType):
            yield from _places(function, constant)


@functools.lru_cache(maxsize=256)
def _instructions(code: pytypes.CodeType) -> tuple[tuple[str, Any], ...]:
    return tuple((i.opname, i.argval) for i in dis.get_instructions(code))


def hidden_arguments(function: pytypes.FunctionType, arguments: tuple[str, ...]) -> dict[str, Place]:
    """The hidden arguments of a kernel by name."""
    found = _hidden(function, {})
    plain = [place.name for place in found.values()]
    result: dict[str, Place] = {}
    for place in found.values():
        ambiguous = plain.count(place.name) > 1 or place.name in arguments
        base = name = f"{place.owner}.{place.name}" if ambiguous else place.name
        count = 1
        while name in result or name in arguments:
            count += 1
            name = f"{base}#{count}"
        result[name] = place
    return result


def _hidden(function: pytypes.FunctionType, known: dict[pytypes.FunctionType, dict[Key, Place]]) -> dict[Key, Place]:
    if function in known:
        return known[function]
    own: dict[Key, Place] = {}
    below: dict[Key, Place] = {}
    known[function] = own
    for place in places(function):
        helper = helper_of(place.value)
        if place.hidden:
            own.setdefault(place.key, place)
        elif helper is not None:
            for key, inner in _hidden(helper, known).items():
                below.setdefault(key, inner)
    known[function] = {**own, **{key: place for key, place in below.items() if key not in own}}
    return known[function]
