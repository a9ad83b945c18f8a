"""How stiff the problem is at a point: the spectral radius of the Jacobian, given or estimated.

The estimate is a power method on exact Jacobian-vector products; where the right-hand side has no derivative (plain
NumPy code, or an infinite one at the point) a difference quotient stands in. The start vector is the rate of change
plus a fixed pseudo-random vector of the same size, because a start in a subspace that the Jacobian maps to itself (the
symmetry of u, one eigenmode) gives an estimate of that subspace alone. Warm starts keep the last vector, with a little
of the noise; after a rejected step the estimate is doubted and starts afresh.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from irad.errors import IradError, NotDifferentiableError
from irad.ode import vectors as vec
from irad.ode.rhs import RightHandSide
from irad.ode.vectors import Vector

SAFETY = 1.2
AGREEMENT = 0.01
LEAST_ITERATIONS, MOST_ITERATIONS = 3, 50
WINDOW = 10  # without convergence, the largest of the last so many estimates is taken
EVERY = 25  # accepted steps between two estimates
_NOISE_IN_WARM_START = 0.01
_SEED = 987654321


class Radius(Protocol):
    """``every``: accepted steps between two calls; ``at`` returns a bound at a point for a step to be taken there."""

    @property
    def every(self) -> float: ...
    def at(self, t: float, u: Vector, f: Vector, h: float, doubt: bool) -> float: ...


class Given:
    """A number, or a function of (u, p, t) that the user vouches for; a function is asked before every step."""

    def __init__(self, rhs: RightHandSide, bound: Any) -> None:
        self._rhs, self._bound = rhs, bound
        self.every = 1 if callable(bound) else math.inf

    def at(self, t: float, u: Vector, f: Vector, h: float, doubt: bool) -> float:
        bound = self._bound(self._rhs.state(u), self._rhs.p, t) if callable(self._bound) else self._bound
        return checked(float(bound), t, "spectral_radius=")


def checked(rho: float, t: float, source: str) -> float:
    if not math.isfinite(rho) or rho < 0.0:
        raise IradError(
            f"{source} gave {rho} as the spectral radius of the Jacobian at t = {t}",
            remedy="it must be a finite number, zero or positive: give ROCK2(spectral_radius=...) a bound, or check "
            "that the right-hand side and its derivative are finite there",
        )
    return rho


class PowerMethod:
    """Estimates by power iteration, times 1.2. Counts ``estimates``, ``iterations`` and ``failures`` to converge."""

    every = EVERY

    def __init__(self, rhs: RightHandSide, longest: float) -> None:
        self._rhs = rhs
        self._floor = 1.0 / longest if longest > 0.0 else 1.0  # differences below this rate do not matter
        self._v: Vector | None = None
        self._d = rhs.vector()
        self._probe: Vector | None = None
        self._exact = self._possible = rhs.differentiable
        noise = np.random.default_rng(_SEED).uniform(-1.0, 1.0, rhs.size)
        self._noise = rhs.vector()
        self._noise[:] = noise
        vec.scale(self._noise, self._noise, 1.0 / max(vec.norm(self._noise), 1e-300))
        self.estimates = self.iterations = self.failures = 0

    def at(self, t: float, u: Vector, f: Vector, h: float, doubt: bool) -> float:
        """1.2 times the estimate at (t, u); ``f`` is the rate there. ``doubt``: distrust the vector kept so far."""
        self.estimates += 1
        if self._rhs.size == 0:
            return 0.0
        v = self._start(f, doubt)
        rho = self._iterate(t, u, f, v)
        if not math.isfinite(rho) and self._exact:
            self._exact = False  # an infinite derivative somewhere: see what a finite step away makes of it
            rho = self._iterate(t, u, f, self._start(f, True))
            self._exact = self._possible
        return SAFETY * checked(rho, t, "the power method")

    def _start(self, f: Vector, doubt: bool) -> Vector:
        noise = 1.0
        if self._v is None:
            self._v = self._rhs.vector()
            warm = False
        else:
            warm = not doubt
        v = self._v
        if warm:
            noise = _NOISE_IN_WARM_START
        else:
            length = vec.norm(f)
            if length > 0.0 and math.isfinite(length):
                vec.accumulate(v, 1.0 / length, f)
        vec.accumulate(v, noise, self._noise)
        return v

    def _iterate(self, t: float, u: Vector, f: Vector, v: Vector) -> float:
        """Leaves the last direction, of length 1, in ``v``."""
        recent: list[float] = []
        zeros = 0
        rho = math.inf
        for count in range(1, MOST_ITERATIONS + 1):
            length = vec.norm(v)
            if length == 0.0 or not math.isfinite(length):
                vec.copy(v, self._noise)
                length = vec.norm(v)
            vec.scale(v, v, 1.0 / length)
            self._product(t, u, f, v, self._d)
            self.iterations += 1
            old, rho = rho, vec.norm(self._d)
            if not math.isfinite(rho):
                vec.copy(v, self._noise)
                return rho
            if rho == 0.0:  # nothing there: look in other directions before believing it
                zeros += 1
                if zeros > 3:
                    return 0.0
                v[:] = np.roll(self._noise, zeros)
                continue
            recent.append(rho)
            vec.copy(v, self._d)
            if count >= LEAST_ITERATIONS and abs(rho - old) <= AGREEMENT * max(rho, self._floor):
                break
        else:
            self.failures += 1
            rho = max(recent[-WINDOW:])
        vec.scale(v, v, 1.0 / vec.norm(v))
        return rho

    def _product(self, t: float, u: Vector, f: Vector, v: Vector, out: Vector) -> None:
        """``out = J v`` for a unit vector ``v``."""
        if self._exact:
            try:
                self._rhs.tangent(u, v, out, t)
                return
            except NotDifferentiableError:  # a kernel that runs but has no derivative
                self._exact = self._possible = False
        if self._probe is None:
            self._probe = self._rhs.vector()
        length = vec.norm(u)
        delta = math.sqrt(float(np.finfo(u.dtype).eps)) * (length if length > 0.0 else 1.0)
        vec.add_scaled(self._probe, u, delta, v)
        self._rhs.rate(self._probe, out, t)
        vec.difference(out, out, f)
        vec.scale(out, out, 1.0 / delta)


def make(rhs: RightHandSide, bound: Any, longest: float) -> Radius:
    """The radius of ``ROCK2(spectral_radius=bound)``."""
    return PowerMethod(rhs, longest) if bound is None else Given(rhs, bound)
