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
    rate: Rate,
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
        rate(g, k, t + co.c[j] * h)
        vec.recur(free, g, older, co.kappa[j], h * co.mu[j], k)
        g, older, free = free, g, g  # the next stage overwrites the older one
    rate(g, k, t + co.c[co.degree] * h)
    free = b if g is a else a
    vec.add_scaled(free, g, h * co.sigma, k)
    rate(free, last, t + co.c[co.degree + 1] * h)
    vec.finish(free, k, last, h * co.sigma, h * co.phi)
    return free, g


def stages(
    rate: Rate, t: float, h: float, co: Coefficients, g: Sequence[Vector], k: Vector, first: float,
    done: Callable[[int, Vector], None],
) -> None:  # fmt: skip
    """Run the stages of a step again, bit for bit those of :func:`step`, from ``g[0] = u_n``.

    Stage j is computed in ``g[j]``, and ``done(j, g[j])`` called when it is there, j = 1..m+1. ``g`` may name three
    buffers in turn: stage j needs j - 1 and j - 2 only. ``first`` is the time at which the first rate is evaluated:
    ``t``, or just beyond it after a jump. ``k`` is lost.
    """
    rate(g[0], k, first)
    vec.add_scaled(g[1], g[0], h * co.mu[0], k)
    done(1, g[1])
    for j in range(1, co.degree):
        rate(g[j], k, t + co.c[j] * h)
        vec.recur(g[j + 1], g[j], g[j - 1], co.kappa[j], h * co.mu[j], k)
        done(j + 1, g[j + 1])
    rate(g[co.degree], k, t + co.c[co.degree] * h)
    vec.add_scaled(g[co.degree + 1], g[co.degree], h * co.sigma, k)
    done(co.degree + 1, g[co.degree + 1])


def reverse(
    pull: Callable[[int, Vector, Vector, float], None],
    t: float, h: float, co: Coefficients, lam: Vector, b: Vector, w: Vector, spare: tuple[Vector, Vector],
    first: float, slope_bar: Vector | None,
) -> Vector:  # fmt: skip
    """The adjoint of one step: from ``lam = dL/du_{n+1}`` to ``dL/du_n``.

    With G_j = dL/dg_j, b_j = dL/dk_j and J_j the Jacobian at stage j,

        b_{m+1} = h (sigma + phi) lam,             G_{m+1} = lam + J_{m+1}^T b_{m+1}
        b_m = h sigma G_{m+1} - h phi lam,         G_m = G_{m+1} + J_m^T b_m
        b_j = h mu_{j+1} G_{j+1},                  G_j = (1 + kappa_{j+1}) G_{j+1} - kappa_{j+2} G_{j+2} + J_j^T b_j

    for j = m-1 .. 0, kappa_1 = kappa_{m+1} = 0. ``pull(j, b, w, t_j)`` sets ``w = J_j^T b`` and adds parameters'
    cotangents elsewhere; ``b`` may be lost in it. ``slope_bar`` is an extra cotangent of k_0 (dense output), ``first``
    the time of stage 0. ``lam``, ``b``, ``w`` and ``spare`` are overwritten; returns the one that holds the result.
    """
    m = co.degree
    new, old = spare
    free = lam
    vec.scale(b, lam, h * (co.sigma + co.phi))
    pull(m + 1, b, w, t + co.c[m + 1] * h)
    vec.total(new, lam, w)
    vec.combine(b, h * co.sigma, new, -h * co.phi, lam)
    pull(m, b, w, t + co.c[m] * h)
    vec.add(new, w)
    for j in range(m - 1, -1, -1):
        vec.scale(b, new, h * co.mu[j])
        if j == 0 and slope_bar is not None:
            vec.add(b, slope_bar)
        pull(j, b, w, t + co.c[j] * h if j else first)
        if j == m - 1:
            vec.scale(free, new, 1.0 + co.kappa[j])
            new, old, free = free, new, old
        else:
            vec.combine(old, -co.kappa[j + 1], old, 1.0 + co.kappa[j], new)
            new, old = old, new
        vec.add(new, w)
    return new
