"""The ROCK2 method: its options, one step, and the stages of a step run again for an adjoint.

With m = s - 2 (``rock2_table.py``), ``g_0 = u_n`` and ``c_j`` the stage times,

    g_1     = g_0 + h mu_1 f(t_n, g_0)
    g_j     = g_{j-1} + kappa_j (g_{j-1} - g_{j-2}) + h mu_j f(t_n + c_{j-1} h, g_{j-1}),   j = 2..m
    g_{m+1} = g_m + h sigma k_m,              k_m = f(t_n + c_m h, g_m)
    e       = h phi (k_{m+1} - k_m),          k_{m+1} = f(t_n + c_{m+1} h, g_{m+1})
    u_{n+1} = g_{m+1} + h sigma k_{m+1} + e

``e`` is the error estimate. Written with the difference ``g_{j-1} - g_{j-2}``, a state with f = 0 stays bitwise
constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irad.ode import vectors as vec
from irad.ode.rock2_table import MAX_STAGES, MIN_STAGES, Coefficients
from irad.ode.vectors import Vector

Rate = Callable[[Vector, Vector, float], None]
"""``rate(u, du, t)`` writes f(u, t) to ``du``."""


class Stages:
    """The part of a right-hand side that a time loop needs: ``rate(u, du, t)`` writes f(u, t) to ``du``, and what a
    step does with it: a rate followed by one pass over vectors.

    A right-hand side that can do both in one pass overrides these methods, to the same bits. ``k`` is for the rate, and
    may be left as it is where it is not asked for.
    """

    @property
    def autonomous(self) -> bool:
        """Whether f surely does not depend on t."""
        raise NotImplementedError

    def vector(self) -> Vector:
        """A new state vector of zeros."""
        raise NotImplementedError

    def rate(self, u: Vector, du: Vector, t: float) -> None:
        raise NotImplementedError

    def recur(self, out: Vector, g: Vector, older: Vector, kappa: float, c: float, k: Vector, t: float) -> None:
        """``out = g + kappa (g - older) + c f(g, t)``; ``out`` may be ``older``."""
        self.rate(g, k, t)
        vec.recur(out, g, older, kappa, c, k)

    def advance(self, out: Vector, g: Vector, c: float, k: Vector, t: float) -> None:
        """``out = g + c f(g, t)``."""
        self.rate(g, k, t)
        vec.add_scaled(out, g, c, k)

    def advance_and_keep(self, out: Vector, g: Vector, c: float, k: Vector, t: float) -> None:
        """``out = g + c f(g, t)`` and ``k = f(g, t)``."""
        self.rate(g, k, t)
        vec.add_scaled(out, g, c, k)


@dataclass(frozen=True)
class ROCK2:
    """Stabilised explicit Runge-Kutta method of order 2, for parabolic problems (eigenvalues near the negative axis).

    A step with s stages is stable for real ``|h| rho`` up to ``0.81 s**2 - 1.2``, where ``rho`` is the spectral radius
    of the Jacobian; the stage count is chosen at every step.

    Parameters
    ----------
    min_stages, max_stages : int
        Bounds of the stage count, within 3 to 200. ``max_stages=None``: 200 for a float64 state, 50 for float32 (where
        rounding inside a step of 200 stages would cost 4e-5).
    spectral_radius : number or function(u, p, t), optional
        A bound of the modulus of the Jacobian's eigenvalues, in 1/time. A function is asked before every step. Without
        it a power method on exact Jacobian-vector products estimates it (1.2 times the estimate is used): on the first
        step, every 25 accepted steps, after rejections and at ``tstops``.

    Examples
    --------
    >>> import irad.ode.rock2 as r
    >>> r.ROCK2(spectral_radius=lambda u, p, t: 4.0 * p[0] / 0.1**2)  # doctest: +ELLIPSIS
    ROCK2(min_stages=3, max_stages=None, spectral_radius=<function ...>)
    """

    min_stages: int = MIN_STAGES
    max_stages: int | None = None
    spectral_radius: Any = None

    def __post_init__(self) -> None:
        low, high = self.min_stages, self.max_stages if self.max_stages is not None else MAX_STAGES
        if not (MIN_STAGES <= low <= high <= MAX_STAGES):
            raise ValueError(
                f"min_stages={low} and max_stages={high} must satisfy {MIN_STAGES} <= min <= max <= {MAX_STAGES}"
            )

    def most_stages(self, dtype: np.dtype[Any]) -> int:
        """The largest stage count for a state of this data type."""
        if self.max_stages is not None:
            return self.max_stages
        return MAX_STAGES if dtype.itemsize == 8 else max(50, self.min_stages)


def step(
    rates: Stages,
    t: float,
    h: float,
    co: Coefficients,
    u: Vector,
    f: Vector,
    a: Vector,
    b: Vector,
    k: Vector,
    last: Vector,
) -> tuple[Vector, Vector]:
    """One step from ``u`` with ``f = f(t, u)``; both are kept. ``k`` and ``last`` are rates: used for nothing else.

    Returns the buffer (``a`` or ``b``) with u_{n+1} and the other one; ``k`` then holds the error estimate.
    """
    vec.add_scaled(a, u, h * co.mu[0], f)
    g, older, free = a, u, b
    for j in range(1, co.degree):
        rates.recur(free, g, older, co.kappa[j], h * co.mu[j], k, t + co.c[j] * h)
        g, older, free = free, g, g  # the next stage overwrites the older one
    free = b if g is a else a
    rates.advance_and_keep(free, g, h * co.sigma, k, t + co.c[co.degree] * h)
    rates.rate(free, last, t + co.c[co.degree + 1] * h)
    vec.finish(free, k, last, h * co.sigma, h * co.phi)
    return free, g


def stages(
    rates: Stages, t: float, h: float, co: Coefficients, g: Sequence[Vector], k: Vector, first: float,
    done: Callable[[int, Vector], None],
) -> None:  # fmt: skip
    """Run the stages of a step again, bit for bit those of :func:`step`, from ``g[0] = u_n``.

    Stage j is computed in ``g[j]``, and ``done(j, g[j])`` called when it is there, j = 1..m+1. ``g`` may name three
    buffers in turn: stage j needs j - 1 and j - 2 only. ``first`` is the time at which the first rate is evaluated:
    ``t``, or just beyond it after a jump. ``k`` is lost.
    """
    rates.advance(g[1], g[0], h * co.mu[0], k, first)
    done(1, g[1])
    for j in range(1, co.degree):
        rates.recur(g[j + 1], g[j], g[j - 1], co.kappa[j], h * co.mu[j], k, t + co.c[j] * h)
        done(j + 1, g[j + 1])
    rates.advance(g[co.degree + 1], g[co.degree], h * co.sigma, k, t + co.c[co.degree] * h)
    done(co.degree + 1, g[co.degree + 1])


class Pulls:
    """What the adjoint of a step does with ``reverse(j, b, w, t)``, which sets ``w = J_j^T b``, adds the cotangents of
    parameters elsewhere, and may lose ``b``. One that can join the recurrence to it overrides :meth:`blend`."""

    def reverse(self, j: int, b: Vector, w: Vector, t: float) -> None:
        raise NotImplementedError

    def blend(
        self, j: int, out: Vector, seed: Vector, b: float, a: float, c: float, work: tuple[Vector, Vector], t: float,
        extra: Vector | None = None,
    ) -> None:  # fmt: skip
        """``out = b out + a seed + J_j^T (c seed + extra)``; ``b = 0`` drops what ``out`` held."""
        bar, w = work
        vec.scale(bar, seed, c)
        if extra is not None:
            vec.add(bar, extra)
        self.reverse(j, bar, w, t)
        if b == 0.0:
            vec.scale(out, seed, a)
        else:
            vec.combine(out, b, out, a, seed)
        vec.add(out, w)


def reverse(
    pulls: Pulls, t: float, h: float, co: Coefficients, lam: Vector, pair: tuple[Vector, Vector],
    work: tuple[Vector, Vector], first: float, slope_bar: Vector | None,
) -> Vector:  # fmt: skip
    """The adjoint of one step: from ``lam = dL/du_{n+1}`` to ``dL/du_n``.

    With G_j = dL/dg_j, b_j = dL/dk_j and J_j the Jacobian at stage j,

        b_{m+1} = h (sigma + phi) lam,             G_{m+1} = lam + J_{m+1}^T b_{m+1}
        b_m = h sigma G_{m+1} - h phi lam,         G_m = G_{m+1} + J_m^T b_m
        b_j = h mu_{j+1} G_{j+1},                  G_j = (1 + kappa_{j+1}) G_{j+1} - kappa_{j+2} G_{j+2} + J_j^T b_j

    for j = m-1 .. 0, kappa_1 = kappa_{m+1} = 0. ``slope_bar`` is an extra cotangent of k_0 (dense output), ``first``
    the time of stage 0. ``pair`` and ``work`` are overwritten; returns the one of ``pair`` that holds the result.
    """
    m = co.degree
    new, old = pair
    bar, w = work
    pulls.blend(m + 1, new, lam, 0.0, 1.0, h * (co.sigma + co.phi), work, t + co.c[m + 1] * h)
    vec.combine(bar, h * co.sigma, new, -h * co.phi, lam)
    pulls.reverse(m, bar, w, t + co.c[m] * h)
    vec.add(new, w)
    for j in range(m - 1, -1, -1):
        back = 0.0 if j == m - 1 else -co.kappa[j + 1]
        when = t + co.c[j] * h if j else first
        extra = slope_bar if j == 0 else None
        pulls.blend(j, old, new, back, 1.0 + co.kappa[j], h * co.mu[j], work, when, extra)
        new, old = old, new
    return new
