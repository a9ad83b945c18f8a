"""How an argument of :func:`irad.autodiff` takes part in a derivative, and the check that a shadow fits its array.

An annotation wraps the argument and nothing else; what it means for one kernel is decided in ``autodiff.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from irad.errors import ShadowError


@dataclass(frozen=True)
class Mode:
    """A direction of differentiation: :data:`Reverse` or :data:`Forward`."""

    name: str

    def __repr__(self) -> str:
        return self.name


Reverse = Mode("Reverse")
"""Reverse mode: from cotangents of what a kernel writes to cotangents of what it reads."""

Forward = Mode("Forward")
"""Forward mode: from tangents of what a kernel reads to tangents of what it writes."""


@dataclass(frozen=True, eq=False)
class Const:
    """No derivative with respect to ``x``. Where the kernel stores derivative-carrying values into ``x``, an error."""

    x: Any


@dataclass(frozen=True, eq=False)
class Active:
    """A float scalar whose cotangent ``autodiff(Reverse, …)`` returns. ``Active(2)`` is a float, ``2.0``."""

    x: Any

    def __post_init__(self) -> None:
        if isinstance(self.x, (bool, np.bool_)) or not isinstance(self.x, (int, float, np.integer, np.floating)):
            raise ShadowError(
                f"Active takes a float, not {_kind(self.x)}",
                remedy="Duplicated(x, shadow) for an array; integers that stay integers and booleans are inactive",
            )
        if isinstance(self.x, (int, np.integer)):
            object.__setattr__(self, "x", float(self.x))


@dataclass(frozen=True, eq=False)
class Duplicated:
    """An argument and its shadow: an array of the same shape and dtype, with any strides.

    Reverse mode adds the cotangent of ``x`` to ``shadow``; where the kernel overwrites an entry of ``x``, that entry of
    ``shadow`` goes in as the seed and comes out as the cotangent of the old value. Forward mode reads ``shadow`` as the
    tangent of ``x`` and writes it where the kernel writes ``x``. A float scalar's ``shadow`` is its tangent, a float
    (forward mode only).
    """

    x: Any
    shadow: Any


@dataclass(frozen=True, eq=False)
class DuplicatedNoNeed:
    """As :class:`Duplicated`, and the values that the kernel writes into ``x`` are not wanted.

    Where every array that a kernel writes is ``DuplicatedNoNeed``, reverse mode runs only the adjoint.
    """

    x: Any
    shadow: Any


Annotation = Const | Active | Duplicated | DuplicatedNoNeed


def unwrap(argument: Any) -> Any:
    """The argument without its annotation."""
    return argument.x if isinstance(argument, (Const, Active, Duplicated, DuplicatedNoNeed)) else argument


def check_shadow(name: str, array: Any, shadow: Any, *, what: str = "shadow", loc: object = None) -> None:
    """Raise ``ShadowError`` unless ``shadow`` is an array of the shape and dtype of ``array``.

    >>> import numpy as np
    >>> check_shadow("T", np.zeros((4, 3)), np.zeros((4, 3)))
    >>> check_shadow("T", np.zeros((4, 3)), np.zeros(12))
    Traceback (most recent call last):
    irad.errors.ShadowError: the shadow of T has shape (12,), T has shape (4, 3)
      Instead: np.zeros_like(T)
    """
    remedy = f"np.zeros_like({name})"
    if not isinstance(shadow, np.ndarray) and not hasattr(shadow, "__cuda_array_interface__"):
        raise ShadowError(f"the {what} of {name} is {_kind(shadow)}, not an array", loc=loc, remedy=remedy)
    if shadow.shape != array.shape:
        raise ShadowError(
            f"the {what} of {name} has shape {shadow.shape}, {name} has shape {array.shape}", loc=loc, remedy=remedy
        )
    if shadow.dtype != array.dtype:
        raise ShadowError(
            f"the {what} of {name} has dtype {shadow.dtype}, {name} has dtype {array.dtype}", loc=loc, remedy=remedy
        )


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of rank {value.ndim}"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
