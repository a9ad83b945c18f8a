"""ROCK2's coefficients for any stage count, computed on first use and checked before they are used.

The stability polynomial of the method with ``s`` stages is

    R(z) = w(x) P(x) / (w(a) P(a)),   x = a + z/d,   w(x) = (x - alpha)**2 + beta**2,

where ``P``, of degree ``m = s - 2``, is orthogonal on [-1, 1] for the weight ``w(x)**2 / sqrt(1 - x**2)``. Four numbers
(alpha, beta, a, d) define a method. ``R'(0) = 1`` gives ``d``, ``R''(0) = 1`` is one equation, and two conditions are
ours ("uniform design"): ``|R| = 0.95`` at x = -1, and ``|R|`` reaches 1 first at ``z = -(0.81 s**2 - 1.2)``. Then
``(1 - alpha) s**2``, ``beta s**2`` and ``(a - 1) s**2`` are smooth functions of ``1/s**2``; the polynomials below give
them to about 1e-13 for s >= 6 (fitted to solutions with 40 digits for s up to 400), so that neither a table nor a
solve is needed. What is left is one discretised Stieltjes procedure: 0.3 ms at s = 20, 3 ms at s = 200.

Method: A. Abdulle and A. A. Medovikov, Numer. Math. 90 (2001) 1-18. The authors' own figures are of the same form with
two other free conditions, and differ from these by 1e-2 (s near 12) to 1e-4 (s = 200).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MIN_STAGES = 3
MAX_STAGES = 200

# Powers of (6/s)**2, lowest first: (1 - alpha) s**2, beta s**2, (a - 1) s**2.
_DESIGN = (
    (2.9204001503325183, 0.22576438610440494, -0.03648276793582581, 0.0071297734822980165, -0.0017147632629338288,
     0.00044807919291527305, -0.00012791249894353535, 3.6062310547811094e-05, -8.869419672677756e-06,
     1.2942642262942163e-06),
    (3.3545443602106126, 0.08707372305623277, -0.008757959413562395, 0.0012534266268939118, -0.00021840516942278772,
     6.362413428471995e-05, -1.623200219746031e-05, 4.589936216152536e-06, -1.092798461859418e-06,
     1.596876435283847e-07),
    (0.36185091533283675, -0.17720215764218544, 0.030249039409727934, -0.005552871155437916, 0.001482793366907989,
     -0.0003826357994373766, 0.00011120740902840396, -3.135259162832726e-05, 7.750042425569082e-06,
     -1.131015171469955e-06),
)  # fmt: skip
_SMALL = {
    4: (3.2966787092983374, 3.5172094953892237, 0.07776850435482593),
    5: (3.185733460829813, 3.4648657797489704, 0.15753247157334552),
}
_THREE = (0.1794612907438698, 6.167698458385055)  # s = 3: mu_1 (R = 0.95 at its interior maximum) and l_s


@dataclass(frozen=True)
class Coefficients:
    """One ROCK2 method: ``mu[j-1]`` and ``kappa[j-1]`` of stage j (``kappa[0] = 0``), ``sigma``, ``phi``, stage times.

    ``c[j]`` is the time of g_j in units of the step, j = 0..m+1; the last is ``c_m + sigma``. ``length`` is l_s: the
    method is stable for real ``h * lambda`` in ``[-length, 0]``.
    """

    stages: int
    mu: tuple[float, ...]
    kappa: tuple[float, ...]
    sigma: float
    phi: float
    c: tuple[float, ...]
    length: float

    @property
    def degree(self) -> int:
        """m, the number of stages of the three-term recurrence."""
        return len(self.mu)

    @property
    def tau(self) -> float:
        return self.sigma * (self.sigma + self.phi)


def stable_length(stages: int) -> float:
    """l_s: the end of the real stability interval of the method with ``stages`` stages."""
    return _THREE[1] if stages == 3 else 0.81 * stages * stages - 1.2


def stages_for(reach: float, lowest: int = MIN_STAGES) -> int:
    """The least stage count, at least ``lowest``, that is stable up to ``reach = |h| * rho`` (not capped)."""
    if reach <= _THREE[1]:
        return max(MIN_STAGES, lowest)
    stages = math.ceil(math.sqrt((reach + 1.2) / 0.81))
    if stable_length(stages) < reach:  # the square root may round down onto an integer
        stages += 1
    return max(MIN_STAGES, lowest, stages)


@functools.cache
def coefficients(stages: int) -> Coefficients:
    """The method with ``stages`` stages, 3 to 200.

    Computed on first use, then cached. ``ValueError`` for a stage count outside the range, ``ArithmeticError`` if a
    check of the result fails: order conditions to 1e-12, ``|R| <= 1`` over the interval, inner stages bounded by 1.

    >>> c = coefficients(10)
    >>> round(c.length, 2), round(c.c[-1] + c.sigma, 12)
    (79.8, 1.0)
    """
    if not MIN_STAGES <= stages <= MAX_STAGES:
        raise ValueError(f"ROCK2 has {MIN_STAGES} to {MAX_STAGES} stages, not {stages}")
    if stages == 3:
        mu, kappa = [_THREE[0]], [0.0]
    else:
        mu, kappa = _recurrence(stages, *_design(stages))
    sigma, phi = _finish(mu, kappa)
    c = [0.0, mu[0]]
    for j in range(1, len(mu)):
        c.append(c[-1] + kappa[j] * (c[-1] - c[-2]) + mu[j])
    c.append(c[-1] + sigma)
    method = Coefficients(stages, tuple(mu), tuple(kappa), sigma, phi, tuple(c), stable_length(stages))
    _check(method)
    return method


def stability(method: Coefficients, z: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """R(z), and the largest modulus of the inner stages' polynomials at z (real or complex)."""
    z = np.asarray(z)
    old, new = np.ones_like(z), 1 + method.mu[0] * z
    largest = np.maximum(np.abs(old), np.abs(new))
    for mu, kappa in zip(method.mu[1:], method.kappa[1:], strict=True):
        old, new = new, new + kappa * (new - old) + mu * z * new
        largest = np.maximum(largest, np.abs(new))
    largest = np.maximum(largest, np.abs(new * (1 + method.sigma * z)))
    return new * (1 + 2 * method.sigma * z + method.tau * z * z), largest


def order_defects(method: Coefficients) -> tuple[float, float, float]:
    """``R(0) - 1``, ``R'(0) - 1``, ``R''(0) - 1``: all zero for order 2."""
    p, p1, p2 = _origin(method.mu, method.kappa)
    sigma, tau = 2 * method.sigma, 2 * method.tau
    return p - 1.0, p1 + sigma * p - 1.0, p2 + 2 * sigma * p1 + tau * p - 1.0


def _design(stages: int) -> tuple[float, float, float]:
    if stages in _SMALL:
        return _SMALL[stages]
    q = 36.0 / (stages * stages)
    values = []
    for powers in _DESIGN:
        value = 0.0
        for power in reversed(powers):
            value = value * q + power
        values.append(value)
    return values[0], values[1], values[2]


def _recurrence(stages: int, u: float, v: float, a: float) -> tuple[list[float], list[float]]:
    """mu and kappa from u = (1-alpha) s**2, v = beta s**2, a = (a-1) s**2.

    The monic polynomials p_j = (x - A_j) p_{j-1} - B_j p_{j-2} come from sums over m + 4 Gauss-Chebyshev nodes, which
    are exact for the degrees that occur; y = 1 - x is used throughout, free of cancellation near x = 1.
    """
    m, square = stages - 2, float(stages * stages)
    nodes = m + 4
    y = 2 * np.sin((2 * np.arange(1, nodes + 1) - 1) * (math.pi / (4 * nodes))) ** 2
    weight = ((u / square - y) ** 2 + (v / square) ** 2) ** 2
    weight /= weight.sum()
    below, p = np.zeros(nodes), np.ones(nodes)
    weighted = weight.copy()
    norm = old_norm = float(weighted.sum())
    shift, ratio, log1, old_log1 = a / square, 0.0, 0.0, 0.0
    ratios, products = [], [0.0]
    for j in range(m):
        yp = y * p
        e = float((weighted * yp).sum()) / norm  # 1 - A_j
        b = norm / old_norm if j else 0.0  # B_j
        d = shift + e  # a - A_j
        product = b * ratio
        r = 1.0 / (d - product)  # r_j = p_{j-1}(a) / p_j(a)
        log1, old_log1 = (1.0 + d * log1 - product * old_log1) * r, log1  # p_j'(a) / p_j(a)
        ratios.append(r)
        if j:
            products.append(b * r * ratio)
        ratio = r
        below, p = p, yp - e * p - b * below
        weighted = weight * p
        old_norm, norm = norm, float((weighted * p).sum())
    root = (a + u) / square
    d = log1 + 2 * root / (root * root + (v / square) ** 2)
    return [r / d for r in ratios], products


def _origin(mu: tuple[float, ...] | list[float], kappa: tuple[float, ...] | list[float]) -> tuple[float, float, float]:
    """P_m, P_m' and P_m'' at z = 0, by differentiating the recurrence."""
    a0, a1, a2 = 1.0, 0.0, 0.0
    b0, b1, b2 = 1.0, mu[0], 0.0
    for m, k in zip(mu[1:], kappa[1:], strict=True):
        n0 = b0 + k * (b0 - a0)
        n1 = b1 + k * (b1 - a1) + m * b0
        n2 = b2 + k * (b2 - a2) + 2 * m * b1
        a0, a1, a2, b0, b1, b2 = b0, b1, b2, n0, n1, n2
    return b0, b1, b2


def _finish(mu: list[float], kappa: list[float]) -> tuple[float, float]:
    """sigma and phi = tau/sigma - sigma from the two order conditions."""
    _, p1, p2 = _origin(mu, kappa)
    sigma = (1.0 - p1) / 2
    tau = (1.0 - p2 - 4 * sigma * p1) / 2
    return sigma, tau / sigma - sigma


def _check(method: Coefficients) -> None:
    s = method.stages
    worst = max(abs(x) for x in (*order_defects(method), method.c[-1] + method.sigma - 1.0))
    angles = np.linspace(0.0, math.pi, 20 * s + 1)
    z = -0.5 * method.length * (1.0 - np.cos(angles))
    value, inner = stability(method, z)
    largest, inside = float(np.abs(value).max()), float(inner.max())
    if not (worst < 1e-12 and largest < 1.0 + 1e-7 and inside < 1.0 + 1e-9):
        raise ArithmeticError(
            f"ROCK2 coefficients with {s} stages failed their check: order defect {worst:.1e}, "
            f"|R| {largest:.12f}, inner stages {inside:.12f}"
        )
