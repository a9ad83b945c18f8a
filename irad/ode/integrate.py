"""The two time loops: with error control, and over a recorded grid. Neither knows what is done with the steps.

An :class:`Observer` sees each accepted step with the states and rates at both ends; what it must keep it copies. The
rate at the end of a step is the first stage of the next one, except at stops in time where f may jump: there it is
evaluated just before the stop for the observer (only if it asks), and again just after it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from irad.ode import vectors as vec
from irad.ode.grid import Grid, GridBuilder
from irad.ode.retcode import Retcode
from irad.ode.rock2 import Rate, Stages, step
from irad.ode.rock2_table import coefficients, stable_length, stages_for
from irad.ode.spectral_radius import Radius
from irad.ode.stepsize import FIRST_GROWTH, MANY_REJECTIONS, Controller, first_step, smallest_step
from irad.ode.vectors import Tolerance, Vector

STRETCH = 1.01  # a step that would end this close before a stop is stretched to it
CAPPED = 0.8  # the share of the longest stable step that is taken when the stage count is at its limit


class Observer(Protocol):
    """What watches a run."""

    def wants_slope(self, t: float, t_new: float) -> bool:
        """Whether the rate at ``t_new`` is needed by the observer itself."""
        ...

    def step(self, t: float, h: float, t_new: float, u: Vector, f: Vector, u_new: Vector, f_new: Vector | None) -> None:
        """One accepted step. The vectors are the loop's own and change afterwards."""
        ...

    def stop(self, t: float, u: Vector) -> None:
        """A stop before the end was reached; the state may be changed here if f depends on time."""
        ...


@dataclass
class Options:
    """Everything that steers the adaptive loop. ``stops`` are times to hit, in order, the last one the end."""

    rtol: Tolerance
    atol: Tolerance
    min_stages: int
    max_stages: int
    stops: Sequence[float]
    dt: float | None = None
    dtmin: float = 0.0
    dtmax: float = math.inf
    maxiters: int = 100_000


@dataclass
class Run:
    """How a loop ended: the state at ``t``, the steps taken, and counts."""

    u: Vector
    t: float
    grid: Grid
    retcode: Retcode
    accepted: int = 0
    rejected: int = 0
    capped: int = 0
    most_stages: int = 0
    largest_radius: float = 0.0
    stage_sum: int = field(default=0)


def adaptive(rhs: Stages, u: Vector, t0: float, options: Options, radius: Radius, observer: Observer) -> Run:
    """Integrate from ``u`` at ``t0`` (``u`` is overwritten) through the stops with error control."""
    rate = rhs.rate
    a, b, f, k, last = (rhs.vector() for _ in range(5))
    t, t1 = t0, options.stops[-1]
    way = 1.0 if t1 >= t0 else -1.0
    run = Run(u, t0, GridBuilder.start(t0).finish(), Retcode.SUCCESS)
    grid = GridBuilder.start(t0)
    if t == t1:
        return run
    rate(u, f, t)
    if not (vec.finite(u) and vec.finite(f)):
        run.retcode = Retcode.NOT_FINITE_AT_START
        return run
    remaining = list(reversed(options.stops))
    rho = radius.at(t, u, f, abs(t1 - t), False)
    run.largest_radius = rho
    age, error = 0, 0.0
    control = Controller()
    limit = stable_length(options.max_stages)
    if options.dt is None:
        h = _first(rate, t, u, f, rho, abs(t1 - t), way, options, a, k)
    else:
        h = way * min(abs(options.dt), abs(t1 - t))
    while True:
        while remaining and way * (remaining[-1] - t) <= 0.0:
            remaining.pop()
        if not remaining:
            break
        if run.accepted + run.rejected >= options.maxiters:
            run.retcode = Retcode.MAXITERS
            break
        stop = remaining[-1]
        if abs(h) > options.dtmax:
            h = way * options.dtmax
        stages = 0
        if abs(h) * rho > limit:
            h = way * CAPPED * limit / rho
            stages = options.max_stages
            run.capped += 1
        planned = h
        hits = STRETCH * abs(h) >= abs(stop - t)
        if hits:
            h = stop - t
        elif abs(h) < max(options.dtmin, smallest_step(t, t1)):
            run.retcode = Retcode.DTMIN if math.isfinite(error) else Retcode.UNSTABLE
            break
        t_new = stop if hits else t + h
        stages = max(stages, min(stages_for(abs(h) * rho, options.min_stages), options.max_stages))
        new, free = step(rhs, t, h, coefficients(stages), u, f, a, b, k, last)
        error = vec.error_norm(k, u, new, options.rtol, options.atol)
        run.most_stages = max(run.most_stages, stages)
        run.stage_sum += stages
        jump = hits and len(remaining) > 1 and not rhs.autonomous
        final = hits and len(remaining) == 1
        slope: Vector | None = k
        if error < 1.0:
            if not (jump or final):
                rate(new, k, t_new)
            elif observer.wants_slope(t, t_new):
                rate(new, k, math.nextafter(t_new, t) if jump else t_new)
            else:
                slope = None
            if slope is not None and not vec.finite(slope):
                error = math.nan  # the rate is infinite there: stay before that point
        if not error < 1.0:
            run.rejected += 1
            h = control.reject(error, h)
            if control.row >= MANY_REJECTIONS and not math.isfinite(error):
                run.retcode = Retcode.UNSTABLE
                break
            if age > 0:
                rho, age = radius.at(t, u, f, abs(h), True), 0
                run.largest_radius = max(run.largest_radius, rho)
            continue
        observer.step(t, h, t_new, u, f, new, slope)
        grid.add(t_new, h, stages, rho, jump)
        run.accepted += 1
        age += 1
        following = control.accept(error, h)
        h = way * max(abs(following), abs(planned)) if hits and abs(planned) > abs(h) else following
        u, f, k, a, b, t = new, k, f, free, u, t_new
        if hits and len(remaining) > 1:
            observer.stop(t, u)
        if jump:
            rate(u, f, math.nextafter(t, t1))
            control.forget()
        if not final and (age >= radius.every or jump):
            rho, age = radius.at(t, u, f, abs(h), jump), 0
            run.largest_radius = max(run.largest_radius, rho)
        if jump:  # the last error says nothing about what comes: a trial does
            trial = _first(rate, t, u, f, rho, abs(t1 - t), way, options, a, k)
            h = way * min(abs(h), FIRST_GROWTH * abs(trial))
    run.u, run.t, run.grid = u, t, grid.finish()
    return run


def _first(
    rate: Rate, t: float, u: Vector, f: Vector, rho: float, span: float, way: float, options: Options, a: Vector,
    k: Vector,
) -> float:  # fmt: skip
    """The size of the first step, from one trial evaluation."""
    longest = min(span, options.dtmax)
    h0 = min(longest, 1.0 / rho) if rho > 0.0 else longest
    vec.add_scaled(a, u, way * h0, f)
    rate(a, k, t + way * h0)
    vec.difference(k, k, f)
    error = h0 * vec.error_norm(k, u, u, options.rtol, options.atol)
    return way * first_step(h0, error, longest)


def replay(rhs: Stages, u: Vector, grid: Grid, observer: Observer) -> Run:
    """Take the steps of a grid again from ``u`` (overwritten). No error norm, no spectral radius, no rejections."""
    rate = rhs.rate
    a, b, f, k, last = (rhs.vector() for _ in range(5))
    count = len(grid)
    run = Run(u, float(grid.t[0]), grid, Retcode.SUCCESS, accepted=count)
    if count == 0:
        return run
    times, sizes, stages, jumps = grid.t.tolist(), grid.h.tolist(), grid.stages.tolist(), grid.jumps.tolist()
    rate(u, f, times[0])
    for n in range(count):
        t, h, t_new = times[n], sizes[n], times[n + 1]
        new, free = step(rhs, t, h, coefficients(stages[n]), u, f, a, b, k, last)
        slope: Vector | None = k
        if jumps[n] or n == count - 1:
            if observer.wants_slope(t, t_new):
                rate(new, k, math.nextafter(t_new, t) if jumps[n] else t_new)
            else:
                slope = None
        else:
            rate(new, k, t_new)
        observer.step(t, h, t_new, u, f, new, slope)
        u, f, k, a, b = new, k, f, free, u
        if jumps[n]:
            rate(u, f, math.nextafter(t_new, times[-1]))
    run.u, run.t = u, times[-1]
    run.most_stages, run.stage_sum = max(stages), sum(stages)
    run.largest_radius = float(grid.rho.max())
    if not vec.finite(u):
        run.retcode = Retcode.UNSTABLE
    return run
