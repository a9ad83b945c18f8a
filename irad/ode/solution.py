"""What a solve returns: saved states, interpolation between steps, the steps themselves, counts, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from irad.errors import IradError
from irad.ode import vectors as vec
from irad.ode.grid import Grid
from irad.ode.integrate import replay
from irad.ode.retcode import Retcode
from irad.ode.vectors import Vector

if TYPE_CHECKING:
    from irad.ode.problem import ODEProblem
    from irad.ode.rhs import RightHandSide

Array = npt.NDArray[Any]
Sample = tuple[int, float]
"""Step and position in it: ``(n, theta)`` is ``t_n + theta h_n``; theta 0 and 1 are the step's ends, exactly."""


@dataclass
class Stats:
    """Counts of a solve.

    ``nf``: evaluations of f, those of the power method by difference quotients included; ``njvp``: Jacobian-vector
    products (power method); ``naccept``, ``nreject``: steps; ``nstages``: stages of all steps tried; ``max_stages``: of
    one step; ``ncapped``: steps shortened because the stage count was at its limit (many: the problem is too stiff for
    the method, or max_stages too small); ``nradius``: estimates of the spectral radius, ``nradius_failed`` of which did
    not converge; ``max_radius``: the largest bound used.
    """

    nf: int = 0
    njvp: int = 0
    naccept: int = 0
    nreject: int = 0
    nstages: int = 0
    max_stages: int = 0
    ncapped: int = 0
    nradius: int = 0
    nradius_failed: int = 0
    max_radius: float = 0.0

    def __str__(self) -> str:
        return "\n".join(f"{f.name:>15}: {getattr(self, f.name):g}" for f in fields(self))


class Trail:
    """States (and rates) at the start of every step, and at the very end."""

    def __init__(self, slopes: bool) -> None:
        self.states: list[Vector] = []
        self.slopes: list[Vector] | None = [] if slopes else None
        self.left: list[Vector | None] = []  # rates at the ends of steps, from the left, where they differ

    def wants_slope(self, t: float, t_new: float) -> bool:
        return self.slopes is not None

    def stop(self, t: float, u: Vector) -> None:
        """Nothing to do."""

    def step(self, t: float, h: float, t_new: float, u: Vector, f: Vector, u_new: Vector, f_new: Vector | None) -> None:
        if not self.states:
            self.states.append(u.copy())
        if self.slopes is not None:
            before = self.left[-1] if self.left else None
            same = before is not None and np.array_equal(before, f)  # unless f jumped there: keep one copy
            self.slopes.append(before if same and before is not None else f.copy())
            self.left.append(None if f_new is None else f_new.copy())
        self.states.append(u_new.copy())

    def interpolate(self, out: Vector, n: int, theta: float, h: float) -> None:
        """The state at a place inside step n."""
        if theta in (0.0, 1.0):
            vec.copy(out, self.states[n + (theta == 1.0)])
            return
        assert self.slopes is not None
        end = self.left[n]
        assert end is not None
        vec.hermite(out, theta, h, self.states[n], self.slopes[n], self.states[n + 1], end)


class Solution:
    """A solved problem.

    Attributes
    ----------
    t, u : array of times, list of states
        What was saved: ``t0`` and the end, or ``saveat``, or every step. ``u[i]`` has the shape and type of ``u0``.
    retcode : Retcode
        How it ended; ``retcode.value`` is a sentence.
    stats : Stats
    grid : Grid
        The steps taken, for ``solve(prob, alg, grid=sol.grid)``.
    prob, alg, sensealg
        As given.

    ``sol(t)`` interpolates (cubic Hermite between steps, order h**4) at one time or an array of times. Without
    ``dense=True`` or ``save_everystep=True`` the steps are not kept but taken again, bit for bit, at every such call.
    """

    def __init__(
        self, prob: ODEProblem, alg: Any, rhs: RightHandSide, t: Array, u: list[Any], samples: list[Sample], grid: Grid,
        retcode: Retcode, stats: Stats, trail: Trail | None, sensealg: Any, tolerances: tuple[Any, Any],
    ) -> None:  # fmt: skip
        self.prob, self.alg, self.sensealg = prob, alg, sensealg
        self.t, self.u = t, u
        self.grid, self.retcode, self.stats = grid, retcode, stats
        self._rhs, self._samples, self._trail, self._tolerances = rhs, samples, trail, tolerances

    @property
    def message(self) -> str:
        """How the solve ended, as a sentence."""
        return self.retcode.value

    def __len__(self) -> int:
        return len(self.u)

    def __call__(self, t: float | Sequence[float] | Array) -> Any:
        """The state at ``t``: an array of the state's shape, or for an array of times a list of them.

        Raises ``IradError`` outside the span that was solved.
        """
        times = np.atleast_1d(np.asarray(t, np.float64))
        if times.ndim != 1:
            raise IradError("sol(t) takes one time or a one-dimensional array of times")
        samples = [self.grid.locate(float(x)) for x in times]
        states = self.sample(samples)
        return states if np.ndim(t) else states[0]

    def sample(self, samples: Sequence[Sample]) -> list[Array]:
        """States at places in the grid, in the order asked for."""
        out = [self._rhs.vector() for _ in samples]
        if len(self.grid) == 0:
            for x in out:
                vec.copy(x, self._rhs.start())
        elif self._trail is not None and self._trail.slopes is not None:
            for x, (n, theta) in zip(out, samples, strict=True):
                self._trail.interpolate(x, n, theta, float(self.grid.h[n]))
        else:
            self._rhs.check()
            picker = Picker(samples, self.grid, out)
            replay(self._rhs, self._rhs.start(), picker.shortened(), picker)
        return [self._rhs.shaped(x) for x in out]

    def __repr__(self) -> str:
        return (
            f"Solution({self.retcode.name}, t = {self.t[0] if len(self.t) else '-'} .. "
            f"{self.t[-1] if len(self.t) else '-'}, {len(self.u)} saved, {self.stats.naccept} steps)"
        )


class Picker:
    """Observer that interpolates at given places of a grid."""

    def __init__(self, samples: Sequence[Sample], grid: Grid, out: Sequence[Vector]) -> None:
        self._grid = grid
        self._by_step: dict[int, list[tuple[float, Vector]]] = {}
        for (n, theta), x in zip(samples, out, strict=True):
            self._by_step.setdefault(n, []).append((theta, x))
        self._n = 0

    def shortened(self) -> Grid:
        """The grid up to the last step that matters."""
        last = max(self._by_step, default=-1) + 1
        g = self._grid
        return Grid(g.t[: last + 1], g.h[:last], g.stages[:last], g.rho[:last], g.jumps[:last])

    def wants_slope(self, t: float, t_new: float) -> bool:
        return any(0.0 < theta < 1.0 for theta, _ in self._by_step.get(self._n, ()))

    def stop(self, t: float, u: Vector) -> None:
        """Nothing to do."""

    def step(self, t: float, h: float, t_new: float, u: Vector, f: Vector, u_new: Vector, f_new: Vector | None) -> None:
        for theta, x in self._by_step.get(self._n, ()):
            if theta in (0.0, 1.0):
                vec.copy(x, u_new if theta else u)
            else:
                assert f_new is not None
                vec.hermite(x, theta, h, u, f, u_new, f_new)
        self._n += 1
