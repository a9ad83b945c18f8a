"""What a kernel of the corpus is: the Python function, its NumPy twin, and its gradient where that is known.

``tests/test_corpus.py`` makes the function a kernel and crosses it with modes, layouts, sizes and precisions. ``twin``
does the same to NumPy arrays. ``gradient`` takes the arguments as they were before the kernel ran and the seeds by
name, and returns cotangents by name. Both take and give plain float64 arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Values = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """``shapes``: of the arrays for extents ``n``; ``scalars``: other arguments; ``wrt``: what has a gradient."""

    function: Any
    shapes: Callable[[tuple[int, ...]], dict[str, tuple[int, ...]]]
    twin: Callable[..., None]
    rank: int
    wrt: tuple[str, ...]
    scalars: Mapping[str, Any]
    gradient: Callable[..., Values] | None = None
    positive: bool = False

    @property
    def name(self) -> str:
        return str(self.function.__name__)

    def arguments(self, extents: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> Values:
        rng = np.random.default_rng(seed)
        low = 0.5 if self.positive else -1.5
        arrays = {name: rng.uniform(low, 1.5, shape).astype(dtype) for name, shape in self.shapes(extents).items()}
        return {**arrays, **self.scalars}

    def ordered(self, values: Values) -> list[Any]:
        code = self.function.__code__
        return [values[n] for n in code.co_varnames[: code.co_argcount]]


CORPUS: dict[str, Entry] = {}


def entry(shapes: Any, twin: Any, rank: int, wrt: str, gradient: Any = None, **options: Any) -> Callable[[Any], Any]:
    """Add a function to the corpus. ``shapes``: names of arrays that all have the extents, or a function."""
    if isinstance(shapes, str):
        names = shapes.split()

        def given(n: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
            return dict.fromkeys(names, n)
    else:
        given = shapes
    options.setdefault("scalars", {})

    def add(function: Any) -> Any:
        CORPUS[function.__name__] = Entry(function, given, twin, rank, tuple(wrt.split()), gradient=gradient, **options)
        return function

    return add


def inner(a: Any, *shifts: int) -> Any:
    """The interior of an array, shifted."""
    shifts = shifts or (0,) * a.ndim
    return a[tuple(slice(1 + s, n - 1 + s) for s, n in zip(shifts, a.shape, strict=True))]


def laplacian(a: Any, *h: float) -> Any:
    total = 0.0
    for d, step in enumerate(h):
        unit = tuple(int(d == k) for k in range(a.ndim))
        total = total + (inner(a, *unit) - 2 * inner(a) + inner(a, *(-u for u in unit))) / step**2
    return total


def laplacian_transposed(w: Any, shape: tuple[int, ...], *h: float) -> Any:
    """The transpose of :func:`laplacian`, applied to ``w`` on the interior."""
    result = np.zeros(shape)
    for d, step in enumerate(h):
        unit = tuple(int(d == k) for k in range(len(shape)))
        inner(result, *unit)[...] += w / step**2
        inner(result)[...] -= 2 * w / step**2
        inner(result, *(-u for u in unit))[...] += w / step**2
    return result


def keep(seed: Any) -> Any:
    """The cotangent of what is overwritten in the interior: nothing there, the seed elsewhere."""
    result = np.array(seed, np.float64)
    inner(result)[...] = 0.0
    return result
