"""The adjoint differential equation, solved backward over the dense output of the forward run.

For L = sum_i l_i(u(t_i)),  lam' = -J(u(t))^T lam  from t1 down to t0, with lam increased by dl_i/du at each t_i; then
dL/du0 = lam(t0) and dL/dp = int f_p^T lam dt. Backward in time this has the spectrum of the forward problem, so ROCK2
solves it with the forward run's spectral radii. The integral is carried as further states, under error control
(:class:`InterpolatingAdjoint`), or summed at Gauss points of every backward step (:class:`GaussAdjoint`).

The gradient is that of the differential equation, to the tolerances; not the exact derivative of the steps taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from irad.errors import IradError
from irad.ode import vectors as vec
from irad.ode.discrete import Cotangent
from irad.ode.grid import Grid
from irad.ode.integrate import Options, adaptive
from irad.ode.rhs import RightHandSide
from irad.ode.rock2 import ROCK2, Stages
from irad.ode.sensitivity import GaussAdjoint, InterpolatingAdjoint
from irad.ode.solution import Trail
from irad.ode.vectors import Tolerance, Vector
from irad.tape.function import Gradients
from irad.tape.memory import vector


def continuous(
    rhs: RightHandSide, grid: Grid, trail: Trail, cotangents: Sequence[Cotangent], gradients: Gradients,
    method: InterpolatingAdjoint | GaussAdjoint, tolerances: tuple[Tolerance, Tolerance], alg: ROCK2,
) -> Vector:  # fmt: skip
    """dL/du0; the integrals for parameters and captured arrays are left in ``gradients``."""
    quadrature = isinstance(method, InterpolatingAdjoint) and gradients.size > 0
    rates = _AdjointRates(rhs, grid, trail, gradients, quadrature)
    rtol, atol = (
        given if own is None else own for own, given in zip((method.rtol, method.atol), tolerances, strict=True)
    )
    watcher = _Watcher(rates, cotangents, method.nodes if isinstance(method, GaussAdjoint) and gradients.size else 0)
    z = rates.vector()
    if len(grid):
        watcher.stop(float(grid.t[-1]), z)
        options = Options(
            rates.extended(rtol), rates.extended(atol), alg.min_stages, alg.most_stages(rhs.dtype), watcher.stops()
        )
        with np.errstate(all="ignore"):
            run = adaptive(rates, z, float(grid.t[-1]), options, rates, watcher)
        if not run.retcode.good:
            raise IradError(
                f"the adjoint equation could not be solved: it stopped at t = {run.t}. {run.retcode.value}",
                remedy="use DiscreteAdjoint(), or other tolerances (rtol=, atol= of the adjoint)",
            )
        z = run.u
    watcher.stop(float(grid.t[0]), z)
    if quadrature:
        gradients.assign(rates.tail(z))
    rhs.release()
    return rates.head(z)


class _AdjointRates(Stages):
    """``-(J^T lam, f_p^T lam)`` at (lam, q), as a right-hand side and as a source of spectral radii."""

    autonomous = False
    every = 1

    def __init__(self, rhs: RightHandSide, grid: Grid, trail: Trail, gradients: Gradients, quadrature: bool) -> None:
        self.rhs, self.grid, self._trail, self._gradients = rhs, grid, trail, gradients
        self._extra = gradients.size if quadrature else 0
        self._split = vec.Split(rhs.size)
        self._none = Gradients(rhs.parameters, False, [])
        self._way = 1.0 if grid.t[-1] >= grid.t[0] else -1.0
        self._u, self._seed, self._bar = (rhs.vector() for _ in range(3))
        self._now = math.nan

    def vector(self) -> Vector:
        return vector(self.rhs.size + self._extra, self.rhs.dtype)

    def head(self, z: Vector) -> Vector:
        """lam in a vector (lam, q)."""
        return self._split(z)[0]

    def tail(self, z: Vector) -> Vector:
        """q in a vector (lam, q)."""
        return self._split(z)[1]

    def extended(self, tolerance: Tolerance) -> Tolerance:
        """A tolerance for (lam, q): that of lam, and its least value for q."""
        if isinstance(tolerance, float) or not self._extra:
            return tolerance
        out = self.vector()
        out[: self.rhs.size] = tolerance
        out[self.rhs.size :] = float(np.min(tolerance))
        return out

    def state(self, t: float) -> Vector:
        """u(t)."""
        if t != self._now:
            n, theta = self.grid.locate(t)
            self._trail.interpolate(self._u, n, theta, float(self.grid.h[n]))
            self._now = t
        return self._u

    def rate(self, z: Vector, dz: Vector, t: float) -> None:
        vec.scale(self._seed, self.head(z), -1.0)
        target = self._gradients if self._extra else self._none
        self.rhs.reverse(self.state(t), self._seed, self._bar, t, target)
        vec.copy(self.head(dz), self._bar)
        if self._extra:
            self._gradients.take(self.tail(dz))

    def at(self, t: float, u: Vector, f: Vector, h: float, doubt: bool) -> float:
        """The largest radius of the forward steps that a backward step from t meets, and of their neighbours."""
        grid = self.grid
        n, _ = grid.locate(t)
        other = min(max(t - self._way * 2.0 * abs(h), min(grid.t[0], grid.t[-1])), max(grid.t[0], grid.t[-1]))
        m, _ = grid.locate(float(other))
        return float(np.max(grid.rho[max(m - 1, 0) : n + 2]))


class _Watcher:
    """Observer of the backward run: adds the losses' cotangents at their times, and sums Gauss points."""

    def __init__(self, rates: _AdjointRates, cotangents: Sequence[Cotangent], nodes: int) -> None:
        self._rates, self._grid = rates, rates.grid
        self._at: dict[float, list[Vector]] = {}
        for n, theta, w in cotangents:
            self._at.setdefault(self._time(n, theta), []).append(w)
        self._points = np.polynomial.legendre.leggauss(nodes) if nodes else ((), ())
        self._seed = rates.rhs.vector()

    def _time(self, n: int, theta: float) -> float:
        t = self._grid.t
        if theta in (0.0, 1.0) or not len(self._grid):
            return float(t[n + (theta == 1.0)])
        return float(t[n]) + theta * float(self._grid.h[n])

    def stops(self) -> list[float]:
        """Times at which lam jumps, or f does, from the end to the start."""
        t = self._grid.t
        first, last = float(t[0]), float(t[-1])
        inner = set(self._at) | {float(x) for x in t[1:][self._grid.jumps]}
        inner -= {first, last}
        return [*sorted(inner, reverse=last >= first), first]

    def stop(self, t: float, z: Vector) -> None:
        """Add what belongs to time t, once."""
        for w in self._at.pop(t, ()):
            vec.add(self._rates.head(z), w)

    def wants_slope(self, t: float, t_new: float) -> bool:
        return len(self._points[0]) > 0

    def step(self, t: float, h: float, t_new: float, u: Vector, f: Vector, u_new: Vector, f_new: Vector | None) -> None:
        rates = self._rates
        for x, weight in zip(*self._points, strict=True):
            theta = 0.5 * (1.0 + float(x))
            assert f_new is not None
            vec.hermite(self._seed, theta, h, u, f, u_new, f_new)
            vec.scale(self._seed, self._seed, -0.5 * h * float(weight))
            when = t + theta * h
            rates.rhs.reverse(rates.state(when), self._seed, None, when, rates._gradients)
        if len(self._points[0]):
            rates._gradients.settle()
