"""The words by which a point kernel names its launch domain. They mean something inside ``@irad.kernel`` only.

::

    @irad.kernel
    def smooth(v, u):
        i, j = irad.interior(u)
        v[i, j] = 0.25 * (u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1])

Bounds are evaluated before each launch, from shapes and integer arguments alone; they carry no derivative.
"""

from __future__ import annotations

from typing import Any, NoReturn

from irad.errors import IradError


def _outside(word: str) -> NoReturn:
    raise IradError(
        f"irad.{word} was called outside a kernel",
        remedy=f"call irad.{word} in a function decorated with @irad.kernel, and that function without .py_func",
    )


def interior(A: Any, width: int = 1) -> Any:
    """Every point of ``A`` at least ``width`` away from its boundary: ``width <= i < n - width`` on each axis.

    Gives the point's indices: ``i, j, k = irad.interior(A)``, or ``i = irad.interior(A)`` for a 1-D array. ``width``
    is an integer from constants, shapes and integer arguments. Empty where ``A`` is too small.
    """
    _outside("interior")


def points(A: Any) -> Any:
    """Every point of ``A``. Gives the point's indices, as :func:`interior` does."""
    _outside("points")


def domain(*bounds: tuple[int, int]) -> Any:
    """The points with ``lo <= index < hi`` on each axis, one pair ``(lo, hi)`` an axis (1 to 4).

    ``i, j = irad.domain((1, A.shape[0]), (0, n))``. Empty where some ``hi <= lo``.
    """
    _outside("domain")


def atomic_add(A: Any, index: Any, value: Any) -> None:
    """Add ``value`` to ``A[index]``: the one write that several points may make to one place."""
    _outside("atomic_add")
