"""Whether arrays share memory, decided on the exact sets of their elements: ``u[::2]`` and ``u[1::2]`` do not.

The compiled launcher compares ranges of bytes and is satisfied where these do not meet; what it is not satisfied with
comes here. NumPy solves the bounded linear equation behind the question exactly; where that would take too long, which
needs contrived strides, the launch is refused rather than trusted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from irad.errors import AliasError

Array = npt.NDArray[Any]

MOST_WORK = 1_000_000
"""Candidates that NumPy may look at for one pair: some tens of milliseconds."""


class Undecided(Exception):
    """The exact answer would take too long."""


def overlap(a: Array, b: Array) -> bool:
    """Whether an element of ``a`` and one of ``b`` have a byte in common. Raises :class:`Undecided`.

    Any ranks, strides (also negative and zero) and element sizes.

    >>> u = np.zeros(10)
    >>> overlap(u[::2], u[1::2]), overlap(u[::2], u[::-3])
    (False, True)
    """
    if not np.may_share_memory(a, b):
        return False
    try:
        return bool(np.shares_memory(a, b, max_work=MOST_WORK))  # type: ignore[arg-type]
    except np.exceptions.TooHardError as error:
        raise Undecided from error


def overlaps_itself(a: Array) -> bool:
    """Whether two elements of ``a`` have a byte in common. Raises :class:`Undecided`.

    Two elements differ first in some dimension ``d``. What matters is their difference alone, so the earlier of them
    may be taken to lie at index 0 of that and all dimensions before.

    >>> overlaps_itself(np.broadcast_to(np.zeros(3), (2, 3))), overlaps_itself(np.zeros((4, 6))[::2, ::-3])
    (True, False)
    """
    if a.flags.c_contiguous or a.flags.f_contiguous or a.size < 2:
        return False
    return any(overlap(a[(0,) * d][:1], a[(0,) * d][1:]) for d in range(a.ndim))


def check_aliases(arrays: Mapping[str, Array], written: Collection[str], loc: object = None) -> None:
    """Refuse launches that write memory which another argument, or another element, also stands for.

    ``arrays``: all arrays of a launch by name; ``"T'"`` is the shadow of ``"T"``. ``written``: names of those that the
    launch writes. Shadows always count as written. Raises ``AliasError`` naming both arrays and what to do.
    """
    names = list(arrays)
    writes = {name for name in names if name in written or name.endswith("'")}
    for name in names:
        if name in writes:
            _check_itself(name, arrays[name], loc)
    for i, name in enumerate(names):
        for other in names[:i]:
            if name in writes or other in writes:
                _check_pair(other, name, arrays, writes, loc)


def _check_itself(name: str, a: Array, loc: object) -> None:
    for d in range(a.ndim):
        if a.shape[d] > 1 and a.strides[d] == 0 and a.size:
            raise AliasError(
                f"{_title(name)} has stride 0 in dimension {d}: {a.shape[d]} elements are the same place, "
                "and the launch writes them",
                loc=loc,
                remedy=f"{_value(name)}.copy(), or numpy.empty instead of numpy.broadcast_to",
            )
    try:
        hit = overlaps_itself(a)
    except Undecided:
        raise _undecided(f"elements of {_title(name)} overlap one another", loc) from None
    if hit:
        raise AliasError(
            f"elements of {_title(name)} overlap one another (shape {a.shape}, strides {a.strides}), "
            "and the launch writes them",
            loc=loc,
            remedy=f"{_value(name)}.copy()",
        )


def _check_pair(name: str, other: str, arrays: Mapping[str, Array], writes: set[str], loc: object) -> None:
    a, b = arrays[name], arrays[other]
    try:
        hit = overlap(a, b)
    except Undecided:
        raise _undecided(f"{_title(name)} and {_title(other)} overlap", loc) from None
    if not hit:
        return
    both = name in writes and other in writes
    which = "both" if both else _title(name if name in writes else other)
    same = a is b or (a.ctypes.data == b.ctypes.data and a.shape == b.shape and a.strides == b.strides)
    read = other if name in writes else name
    raise AliasError(
        f"{_title(name)} and {_title(other)} {'are the same memory' if same else 'overlap'}, "
        f"and the launch writes {which}",
        loc=loc,
        remedy="a second array" if both else f"{_value(read)}.copy() for {_title(read)}",
    )


def _undecided(what: str, loc: object) -> AliasError:
    return AliasError(
        f"whether {what} cannot be decided in reasonable time for these strides",
        loc=loc,
        remedy="pass copies, whose strides are simple",
    )


def _title(name: str) -> str:
    return f"the shadow of {name[:-1]!r}" if name.endswith("'") else f"array {name!r}"


def _value(name: str) -> str:
    return "shadow" if name.endswith("'") else name
