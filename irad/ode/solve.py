"""``irad.solve``: options in the user's words, what is saved, and the run itself."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from irad.errors import IradError
from irad.ode import vectors as vec
from irad.ode.grid import Grid
from irad.ode.integrate import Options, Run, adaptive, replay
from irad.ode.problem import ODEProblem
from irad.ode.progress import Progress
from irad.ode.rhs import RightHandSide
from irad.ode.rock2 import ROCK2
from irad.ode.sensitivity import keeps
from irad.ode.solution import Sample, Solution, Stats, Trail
from irad.ode.spectral_radius import PowerMethod, Radius, make
from irad.ode.traced import find_values, traced_solution
from irad.ode.vectors import Tolerance, Vector

Array = npt.NDArray[Any]


def solve(
    prob: ODEProblem,
    alg: ROCK2 | None = None,
    *,
    rtol: float | Array = 1e-3,
    atol: float | Array = 1e-6,
    dt: float | None = None,
    dtmin: float = 0.0,
    dtmax: float = math.inf,
    maxiters: int = 100_000,
    saveat: float | Sequence[float] | Array | None = None,
    save_everystep: bool = False,
    dense: bool = False,
    tstops: Sequence[float] | Array = (),
    grid: Grid | None = None,
    sensealg: Any = None,
    progress: bool = False,
    copy: bool = True,
) -> Solution:
    """Solve ``prob`` with step size control, or take the steps of a ``grid`` again.

    Parameters
    ----------
    prob : ODEProblem
    alg : ROCK2, optional
    rtol, atol : float or array of the state's shape
        A step is accepted if the root mean square of ``error / (atol + rtol |u|)`` is below 1.
    dt, dtmin, dtmax : float, optional
        First step (else chosen), least and largest step, as magnitudes.
    maxiters : int
        Steps, accepted or not, after which the solve gives up.
    saveat : float or array of times, optional
        Times to save, by cubic interpolation between steps; a number is an interval from ``t0`` on. Without it the
        start and the end are saved, or every step with ``save_everystep``.
    dense : bool
        Keep states and rates of every step, so that ``sol(t)`` need not run the steps again.
    tstops : times
        Times that a step must end at: those where ``f`` jumps in time. The step that ends there sees ``f`` from before.
    grid : Grid, optional
        Take exactly these steps (``sol.grid`` of another solve): bitwise the same result for the same problem. The
        options of step size control are then not used.
    sensealg : DiscreteAdjoint, InterpolatingAdjoint or GaussAdjoint, optional
        How gradients will be computed; what they need is kept during the solve.
    progress : bool
        Show a bar (package tqdm).
    copy : bool
        Keep copies of the arrays that ``f`` captures, so that the solution can be differentiated after they changed.
        With False a fingerprint is kept instead, and a change is refused.

    Returns
    -------
    Solution
        With ``retcode`` other than SUCCESS a warning is given, and ``sol.u`` ends where the solve did.

    Examples
    --------
    >>> import numpy as np
    >>> from irad.ode.problem import ODEProblem
    >>> def decay(du, u, p, t):
    ...     du[...] = -p * u
    >>> sol = solve(ODEProblem(decay, np.ones(1), (0.0, 1.0), 2.0), rtol=1e-8, atol=1e-8)
    >>> bool(abs(sol.u[-1][0] - np.exp(-2.0)) < 1e-6)
    True
    """
    alg = ROCK2() if alg is None else alg
    if not isinstance(alg, ROCK2):
        raise IradError(f"{alg!r} is not a method of irad", remedy="use irad.ROCK2()")
    values = find_values(prob)
    plain = prob if values is None else values.plain
    t0, t1 = plain.tspan
    if grid is not None:
        _check_grid(grid, t0, t1)
    assert isinstance(plain.u0, np.ndarray)
    rhs = RightHandSide(plain.f, plain.u0, plain.p, t0, copy)
    if values is not None:
        rhs.recording()  # a loss will be differentiated: refuse now, not after the solve
    keep = keeps(sensealg, values is not None)
    trail = Trail(slopes=True) if dense or save_everystep or keep == "slopes" else None
    trail = Trail(slopes=False) if trail is None and keep == "states" else trail
    saver = Saver(rhs, t0, t1, saveat, save_everystep, trail, Progress(progress, t0, t1))
    tolerances = _tolerance(rtol, rhs, "rtol"), _tolerance(atol, rhs, "atol")
    u = rhs.start()
    saver.begin(u)
    radius: Radius | None = None
    with np.errstate(all="ignore"), saver.progress:
        if grid is not None:
            run = replay(rhs, u, grid, saver)
        else:
            radius = make(rhs, alg.spectral_radius, abs(t1 - t0))
            options = Options(
                *tolerances,
                alg.min_stages,
                alg.most_stages(rhs.dtype),
                _stops(tstops, t0, t1),
                dt,
                dtmin,
                dtmax,
                maxiters,
            )
            run = adaptive(rhs, u, t0, options, radius, saver)
    saver.end(run)
    rhs.seal()
    stats = _stats(rhs, run, radius)
    rhs.release()
    if not run.retcode.good:
        warnings.warn(f"solve stopped at t = {run.t}: {run.retcode.value}", RuntimeWarning, stacklevel=2)
    sol = Solution(
        prob, alg, rhs, np.array(saver.times), saver.states, saver.samples, run.grid, run.retcode, stats, trail,
        sensealg, tolerances,
    )  # fmt: skip
    return sol if values is None else traced_solution(sol, values)


class Saver:
    """The observer of a solve: saves states where the user wants them, feeds the trail and the bar."""

    def __init__(
        self,
        rhs: RightHandSide,
        t0: float,
        t1: float,
        saveat: Any,
        every: bool,
        trail: Trail | None,
        progress: Progress,
    ) -> None:
        self._rhs, self._trail, self.progress = rhs, trail, progress
        self._t0, self._way, self._every = t0, (1.0 if t1 >= t0 else -1.0), every
        self._ends = saveat is None
        self._times = _save_times(saveat, t0, t1)
        self._next = 0
        self.times: list[float] = []
        self.states: list[Any] = []
        self.samples: list[Sample] = []
        self._n = 0

    def begin(self, u: Vector) -> None:
        """The state at t0."""
        wanted = self._next < len(self._times) and self._times[0] == self._t0
        if wanted:
            self._next = 1
        if wanted or self._ends or self._every:
            self._save(self._t0, u, (0, 0.0))

    def _save(self, t: float, u: Vector, sample: Sample) -> None:
        self.times.append(t)
        self.states.append(self._rhs.shaped(u.copy()))
        self.samples.append(sample)

    def _before(self, t: float, t_new: float) -> bool:
        """Whether a save lies strictly inside the step."""
        return self._next < len(self._times) and self._way * (t_new - self._times[self._next]) > 0.0

    def wants_slope(self, t: float, t_new: float) -> bool:
        return self._before(t, t_new) or (self._trail is not None and self._trail.wants_slope(t, t_new))

    def stop(self, t: float, u: Vector) -> None:
        """Nothing to do."""

    def step(self, t: float, h: float, t_new: float, u: Vector, f: Vector, u_new: Vector, f_new: Vector | None) -> None:
        out = None
        while self._before(t, t_new):
            assert f_new is not None
            when = self._times[self._next]
            theta = min(max((when - t) / h, math.ulp(0.0)), 1.0 - math.ulp(0.5))
            out = self._rhs.vector() if out is None else out
            vec.hermite(out, theta, h, u, f, u_new, f_new)
            self._save(when, out, (self._n, theta))
            self._next += 1
        saved = self._next < len(self._times) and self._times[self._next] == t_new
        if saved:
            self._next += 1
        if saved or self._every:
            self._save(t_new, u_new, (self._n, 1.0))
        if self._trail is not None:
            self._trail.step(t, h, t_new, u, f, u_new, f_new)
        self._n += 1
        self.progress.update(t_new)

    def end(self, run: Run) -> None:
        """Save the end, wherever it is, unless times were asked for."""
        if self._ends and self._n and not self._every:
            self._save(run.t, run.u, (self._n - 1, 1.0))
        if self._trail is not None and not self._trail.states:
            self._trail.states.append(run.u.copy())


def _save_times(saveat: Any, t0: float, t1: float) -> list[float]:
    if saveat is None:
        return []
    way = 1.0 if t1 >= t0 else -1.0
    if np.ndim(saveat) == 0:
        interval = abs(float(saveat))
        if not (math.isfinite(interval) and interval > 0.0):
            raise IradError(f"saveat={saveat!r} is not an interval of time")
        count = math.floor(abs(t1 - t0) / interval * (1.0 + 1e-12))
        times = [t0 + way * interval * i for i in range(count + 1)]
        times[-1] = t1 if abs(times[-1] - t1) <= 1e-12 * abs(t1 - t0) else times[-1]
        return times
    times = [float(t) for t in np.asarray(saveat, np.float64).ravel()]
    times.sort(reverse=way < 0)
    if times and not (way * (times[0] - t0) >= 0.0 and way * (t1 - times[-1]) >= 0.0):
        raise IradError(f"saveat has times outside {t0} .. {t1} (or NaN)")
    return [t for i, t in enumerate(times) if i == 0 or t != times[i - 1]]


def _stops(tstops: Any, t0: float, t1: float) -> list[float]:
    way = 1.0 if t1 >= t0 else -1.0
    times = sorted({float(t) for t in np.asarray(tstops, np.float64).ravel()}, reverse=way < 0)
    if any(not math.isfinite(t) for t in times):
        raise IradError("tstops are not finite")
    return [t for t in times if way * (t - t0) > 0.0 and way * (t1 - t) > 0.0] + [t1]


def _tolerance(value: Any, rhs: RightHandSide, name: str) -> Tolerance:
    array = np.asarray(value, np.float64)
    if not np.all(np.isfinite(array)) or np.any(array < 0.0):
        raise IradError(f"{name} must be finite and not negative")
    if array.ndim == 0:
        return float(array)
    try:
        return rhs.flat(array)
    except ValueError as error:
        raise IradError(f"{name} of shape {array.shape} does not fit a state of shape {rhs.shape}") from error


def _check_grid(grid: Grid, t0: float, t1: float) -> None:
    first, last = float(grid.t[0]), float(grid.t[-1])
    if first != t0 or last != t1:
        raise IradError(
            f"the grid runs from {first} to {last}, the problem from {t0} to {t1}",
            remedy="use prob.remake(tspan=(grid.t[0], grid.t[-1]))",
        )


def _stats(rhs: RightHandSide, run: Run, radius: Radius | None) -> Stats:
    stats = Stats(
        rhs.counts.f, rhs.counts.jvp, run.accepted, run.rejected, run.stage_sum, run.most_stages, run.capped,
        max_radius=run.largest_radius,
    )  # fmt: skip
    if isinstance(radius, PowerMethod):
        stats.nradius, stats.nradius_failed = radius.estimates, radius.failures
    return stats
