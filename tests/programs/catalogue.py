"""What a program of this folder is: one computation, written as loops and as slice expressions, and its arguments.

Functions mutate their arguments and return nothing. They are plain Python, which NumPy runs, Numba compiles and irad
differentiates without a change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Values = dict[str, Any]


@dataclass(frozen=True)
class Program:
    """``loops`` and ``slices`` compute the same. ``shapes``: of the arrays, filled with numbers between ``low`` and
    ``high``; ``scalars``: the other arguments. ``smooth``: no comparison looks at a value."""

    name: str
    loops: Callable[..., None]
    slices: Callable[..., None]
    shapes: Mapping[str, tuple[int, ...]]
    scalars: Mapping[str, Any]
    low: float
    high: float
    smooth: bool

    def arguments(self, dtype: Any = np.float64, seed: int = 1) -> Values:
        """Arguments by name, in order of the parameters."""
        rng = np.random.default_rng(seed)
        arrays = {n: rng.uniform(self.low, self.high, shape).astype(dtype) for n, shape in self.shapes.items()}
        values = {**arrays, **self.scalars}
        code = self.loops.__code__
        return {name: values[name] for name in code.co_varnames[: code.co_argcount]}

    @property
    def floats(self) -> list[str]:
        """What can carry a derivative."""
        return [n for n, v in self.arguments().items() if isinstance(v, (float, np.ndarray))]


PROGRAMS: dict[str, Program] = {}


def program(
    loops: Callable[..., None],
    slices: Callable[..., None],
    shapes: Mapping[str, tuple[int, ...]],
    low: float = 0.5,
    high: float = 1.5,
    smooth: bool = True,
    **scalars: Any,
) -> None:
    """Enter a program under the name of its version in loops."""
    name = loops.__name__.removesuffix("_loops")
    PROGRAMS[name] = Program(name, loops, slices, shapes, scalars, low, high, smooth)
