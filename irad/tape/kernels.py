"""The only place that looks at a kernel object: what the tape needs to know of one launch, and how it is bound.

A kernel has ``bind``, ``bind_vjp``, ``bind_jvp``, ``params`` and ``adjoint_needs`` (``irad/kernel.py``). Nothing here
depends on how it does its work, so any object with these methods can be recorded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Described:
    """Parameter names in order of the arguments, the arrays it captures itself, and which of all these it writes."""

    names: tuple[str, ...]
    hidden: Mapping[str, np.ndarray[Any, Any]]
    written: frozenset[str]


def positional(kernel: Any, args: Sequence[Any], options: Mapping[str, Any]) -> tuple[Any, ...]:
    """The arguments in order of the kernel's parameters, defaults filled in."""
    function = getattr(kernel, "pyfunc", None) or getattr(kernel, "__wrapped__", None) or kernel
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        if options:
            raise
        return tuple(args)
    bound = signature.bind(*args, **options)
    bound.apply_defaults()
    return bound.args


def describe(kernel: Any, samples: Sequence[Any]) -> Described:
    """Names and written arrays of a launch with arguments of these types."""
    infos = kernel.params(tuple(samples))
    hidden = {}
    for info in infos:
        if info.capture is not None:
            value = info.capture.get()
            if isinstance(value, np.ndarray):
                hidden[info.name] = value
    names = tuple(info.name for info in infos if info.capture is None)
    return Described(names, hidden, frozenset(info.name for info in infos if info.written))


def name_of(kernel: Any) -> str:
    return getattr(kernel, "__name__", None) or type(kernel).__name__


def setter(bound: Any, name: str) -> Callable[[float], None] | None:
    """A function that changes one scalar of a bound launch, or None where it must be bound anew."""
    settable = getattr(bound, "set", None)
    return None if settable is None else lambda value: settable(name, value)
