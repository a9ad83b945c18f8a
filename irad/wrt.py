"""What a derivative is asked for: from names and array objects to a kernel's parameters, and back to named results."""

from __future__ import annotations

import functools
import keyword
import re
from collections import namedtuple
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from irad.errors import ShadowError
from irad.specialise import Parameter, Specialisation


@dataclass(frozen=True)
class Wanted:
    """One entry of ``wrt``: its name in the result, and the parameters whose derivatives are added up for it."""

    name: str
    parameters: tuple[str, ...]


def resolve(spec: Specialisation, values: Mapping[str, Any], wrt: Any) -> tuple[Wanted, ...]:
    """The entries of ``wrt``: a name, an array object, or a sequence of these.

    Names are those of parameters and of captured arrays and floats (``"Ci"``, or ``"kernel.Ci"`` where that is
    ambiguous); an array object stands for every parameter that it is passed as. ``None``: everything given to the call
    that the kernel reads and that can carry a derivative.
    """
    if wrt is None:
        return tuple(
            Wanted(p.name, (p.name,)) for p in spec.parameters if p.differentiable and p.read and p.capture is None
        )
    entries = [wrt] if isinstance(wrt, (str, np.ndarray)) or not isinstance(wrt, Iterable) else list(wrt)
    result: list[Wanted] = []
    for entry in entries:
        wanted = _named(spec, entry) if isinstance(entry, str) else _by_object(spec, values, entry)
        for name in wanted.parameters:
            check_differentiable(spec, spec.by_name[name])
        if any(set(wanted.parameters) & set(other.parameters) for other in result):
            raise ShadowError(f"wrt names {wanted.name} twice", loc=spec.lowered.loc, remedy="name it once")
        result.append(wanted)
    return tuple(result)


def check_differentiable(spec: Specialisation, p: Parameter) -> None:
    """Raise ``ShadowError`` for integers and booleans."""
    if not p.differentiable:
        raise ShadowError(
            f"{p.name} is {p.type}, which carries no derivative",
            loc=spec.lowered.loc,
            remedy=f"{p.name}.astype(np.float64)" if p.is_array else f"float({p.name})",
        )


def _named(spec: Specialisation, name: str) -> Wanted:
    owner, _, short = name.rpartition(".")
    if name in spec.by_name:
        return Wanted(name, (name,))
    if owner == spec.lowered.name and short in spec.by_name:
        return Wanted(short, (short,))
    longer = [n for n in spec.by_name if n.endswith(f".{name}")]
    if longer:
        raise ShadowError(
            f"{name} is captured under several names: {', '.join(longer)}", loc=spec.lowered.loc, remedy="name one"
        )
    known = ", ".join(p.name for p in spec.parameters if p.differentiable)
    raise ShadowError(
        f"{spec.lowered.name} has no parameter and captures nothing of the name {name}",
        loc=spec.lowered.loc,
        remedy=f"one of {known}",
    )


def _by_object(spec: Specialisation, values: Mapping[str, Any], entry: Any) -> Wanted:
    if not isinstance(entry, np.ndarray):
        raise ShadowError(
            f"wrt holds a value of type {type(entry).__name__}",
            loc=spec.lowered.loc,
            remedy="give names of parameters, or the array objects themselves",
        )
    names = tuple(p.name for p in spec.parameters if p.is_array and values[p.name] is entry)
    if not names:
        raise ShadowError(
            f"wrt holds an array that {spec.lowered.name} is not given and does not capture",
            loc=spec.lowered.loc,
            remedy="give the very object, or its name",
        )
    return Wanted(names[0], names)


def named(title: str, results: Mapping[str, Any]) -> Any:
    """A named tuple of results. A name that is no identifier gets underscores: ``helper.Ci`` is ``.helper_Ci``."""
    return _tuple_type(title, tuple(field_name(n) for n in results))(*results.values())


@functools.lru_cache(maxsize=1024)
def _tuple_type(title: str, fields: tuple[str, ...]) -> Any:
    return namedtuple(title, fields)  # type: ignore[misc]


def field_name(name: str) -> str:
    """The name of a parameter as a field of a named tuple."""
    name = re.sub(r"\W", "_", name)
    return f"{name}_" if keyword.iskeyword(name) else name.lstrip("_") or "x"
