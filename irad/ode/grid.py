"""The steps that a solve took, so that they can be taken again: times, sizes, stage counts, spectral radii."""

from __future__ import annotations

import bisect
import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from irad.errors import IradError
from irad.ode.rock2_table import MAX_STAGES, MIN_STAGES, stages_for

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Grid:
    """N steps: ``t`` (N + 1 times), ``h`` (N, negative backward), ``stages``, ``rho``, ``jumps`` (N each).

    ``jumps[n]``: the right-hand side may jump in time at the end of step n, so that its rate there is not shared with
    step n + 1. A step is determined by ``t[n]``, ``h[n]`` and ``stages[n]``.
    """

    t: Floats
    h: Floats
    stages: npt.NDArray[np.int64]
    rho: Floats
    jumps: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        n = len(self.h)
        sizes = {len(self.t) - 1, n, len(self.stages), len(self.rho), len(self.jumps)}
        if len(sizes) != 1:
            raise IradError("a grid needs N + 1 times and N of h, stages, rho and jumps")
        if n:
            low, high = int(np.min(self.stages)), int(np.max(self.stages))
            if low < MIN_STAGES or high > MAX_STAGES:
                raise IradError(f"stage counts of a grid must lie in {MIN_STAGES}..{MAX_STAGES}, not {low}..{high}")
            ways = np.sign(np.diff(self.t))
            if not (np.all(np.isfinite(self.t)) and np.all(ways == ways[0]) and ways[0] != 0):
                raise IradError("the times of a grid must be finite and run one way")
            if np.any(np.abs(np.diff(self.t) - self.h) > 1e-8 * (np.abs(self.h) + np.max(np.abs(self.t)) * 1e-7)):
                raise IradError("the steps h of a grid do not lead from time to time")

    def __len__(self) -> int:
        return len(self.h)

    @functools.cached_property
    def _rising(self) -> tuple[list[float], float]:
        """The times, multiplied by -1 where they fall, and that factor."""
        way = 1.0 if self.t[-1] >= self.t[0] else -1.0
        return (way * self.t).tolist(), way

    def first_time(self, n: int) -> float:
        """When the first rate of step n is evaluated: at its start, or just after it where f may jump there."""
        t = float(self.t[n])
        return math.nextafter(t, float(self.t[-1])) if n > 0 and self.jumps[n - 1] else t

    def last_time(self, n: int) -> float:
        """When the rate at the end of step n is evaluated, for interpolation inside it."""
        t = float(self.t[n + 1])
        return math.nextafter(t, float(self.t[n])) if self.jumps[n] else t

    @staticmethod
    def uniform(t0: float, t1: float, steps: int, *, stages: int | None = None, rho: float = 0.0) -> Grid:
        """``steps`` equal steps; the stage count is given, or follows from the spectral radius ``rho``.

        >>> Grid.uniform(0.0, 1.0, 4, rho=100.0).stages.tolist()
        [6, 6, 6, 6]
        """
        t = t0 + (t1 - t0) * (np.arange(steps + 1) / max(steps, 1))
        t[-1] = t1
        h = np.diff(t)
        if stages is None:
            stages = stages_for(float(np.max(np.abs(h), initial=0.0)) * rho)
        return Grid(t, h, np.full(steps, stages, np.int64), np.full(steps, rho), np.zeros(steps, np.bool_))

    def locate(self, t: float) -> tuple[int, float]:
        """Step and position in it (0 to 1) of a time; a time on the grid is the end of a step, the first its start.

        Raises ``IradError`` outside the grid.
        """
        times, way = self._rising
        when = way * t
        if not times[0] <= when <= times[-1]:
            raise IradError(f"t = {t} lies outside the solution, {way * times[0]} to {way * times[-1]}")
        if when == times[0]:
            return 0, 0.0
        n = bisect.bisect_left(times, when) - 1
        if times[n + 1] == when:
            return n, 1.0
        theta = way * (when - times[n]) / float(self.h[n])
        return n, min(max(theta, math.ulp(0.0)), 1.0 - math.ulp(0.5))


@dataclass
class GridBuilder:
    """Collects steps one by one."""

    t: list[float]
    h: list[float]
    stages: list[int]
    rho: list[float]
    jumps: list[bool]

    @staticmethod
    def start(t0: float) -> GridBuilder:
        return GridBuilder([t0], [], [], [], [])

    def add(self, t: float, h: float, stages: int, rho: float, jump: bool) -> None:
        self.t.append(t)
        self.h.append(h)
        self.stages.append(stages)
        self.rho.append(rho)
        self.jumps.append(jump)

    def finish(self) -> Grid:
        def floats(x: list[Any]) -> Floats:
            return np.array(x, np.float64)

        return Grid(
            floats(self.t), floats(self.h), np.array(self.stages, np.int64), floats(self.rho),
            np.array(self.jumps, np.bool_),
        )  # fmt: skip
