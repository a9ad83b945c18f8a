"""All arithmetic on state vectors: stage recurrences, error norm, interpolation, adjoint recurrences.

Vectors are flat and contiguous, of one data type (float32 or float64); scalars are Python floats, so that a float32
state is computed in float32. Norms add up in double precision and in an order that depends on the length alone. No
function allocates a vector. Everything here is a candidate for a fused kernel; nothing else in irad.ode does arithmetic
on vectors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[Any]
Tolerance = float | Vector


def copy(out: Vector, x: Vector) -> None:
    np.copyto(out, x)


def fill(out: Vector, value: float) -> None:
    out.fill(value)


def add_scaled(out: Vector, x: Vector, c: float, k: Vector) -> None:
    """``out = x + c k`` (``out`` is neither ``x`` nor ``k``)."""
    np.multiply(k, c, out=out)
    out += x


def recur(out: Vector, g: Vector, older: Vector, kappa: float, c: float, k: Vector) -> None:
    """``out = g + kappa (g - older) + c k``; ``out`` may be ``older``, ``k`` is lost. Exact for k = 0, g = older."""
    np.subtract(g, older, out=out)
    out *= kappa
    out += g
    k *= c
    out += k


def finish(g: Vector, k: Vector, last: Vector, sigma: float, phi: float) -> None:
    """The end of a step: ``k = phi (last - k)``, the error, and ``g = g + sigma last + k``; ``last`` is lost."""
    np.subtract(last, k, out=k)
    k *= phi
    last *= sigma
    g += last
    g += k


def error_norm(e: Vector, u: Vector, v: Vector, rtol: Tolerance, atol: Tolerance, work: Vector, more: Vector) -> float:
    """Root mean square of ``e / (atol + rtol max(|u|, |v|))``. ``work`` and ``more`` are lost."""
    np.abs(u, out=work)
    if v is not u:
        np.abs(v, out=more)
        np.maximum(work, more, out=work)
    work *= rtol
    work += atol
    np.divide(e, work, out=work)
    return rms(work, work)


def rms(x: Vector, work: Vector) -> float:
    """Root mean square; 0 for an empty vector, inf or nan where an entry is."""
    if x.size == 0:
        return 0.0
    return norm(x, work) / math.sqrt(x.size)


def norm(x: Vector, work: Vector) -> float:
    """Euclidean length. ``work`` (may be ``x``) is lost."""
    np.multiply(x, x, out=work)
    return math.sqrt(float(np.add.reduce(work, dtype=np.float64)))


def dot(x: Vector, y: Vector, work: Vector) -> float:
    np.multiply(x, y, out=work)
    return float(np.add.reduce(work, dtype=np.float64))


def scale(out: Vector, x: Vector, c: float) -> None:
    """``out = c x`` (``out`` may be ``x``)."""
    np.multiply(x, c, out=out)


def add(out: Vector, x: Vector) -> None:
    """``out = out + x``."""
    out += x


def total(out: Vector, x: Vector, y: Vector) -> None:
    """``out = x + y``."""
    np.add(x, y, out=out)


def difference(out: Vector, x: Vector, y: Vector) -> None:
    """``out = x - y``."""
    np.subtract(x, y, out=out)


def accumulate(out: Vector, c: float, x: Vector, work: Vector) -> None:
    """``out = out + c x``; ``work`` is lost."""
    np.multiply(x, c, out=work)
    out += work


def combine(out: Vector, a: float, x: Vector, b: float, y: Vector, work: Vector) -> None:
    """``out = a x + b y`` (``out`` may be ``x`` or neither, not ``y``); ``work`` is lost."""
    np.multiply(y, b, out=work)
    np.multiply(x, a, out=out)
    out += work


def finite(x: Vector) -> bool:
    return bool(np.isfinite(x).all())


def hermite_weights(theta: float, h: float) -> tuple[float, float, float, float]:
    """Weights of u_n, f_n, u_{n+1}, f_{n+1} in the cubic through them, at ``t_n + theta h``."""
    rest = 1.0 - theta
    return (
        (1.0 + 2.0 * theta) * rest * rest,
        theta * rest * rest * h,
        theta * theta * (3.0 - 2.0 * theta),
        theta * theta * (theta - 1.0) * h,
    )


def hermite(out: Vector, theta: float, h: float, u0: Vector, f0: Vector, u1: Vector, f1: Vector, work: Vector) -> None:
    """Cubic Hermite interpolation inside a step; ``work`` is lost."""
    a, b, c, d = hermite_weights(theta, h)
    np.multiply(u0, a, out=out)
    for weight, x in ((b, f0), (c, u1), (d, f1)):
        np.multiply(x, weight, out=work)
        out += work
