"""More of the corpus: in-place updates, kinks, captured values, other ranks. See ``corpus.py`` for what an entry is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from corpus import CORPUS, Values, entry, inner, laplacian

import irad
from irad.fd import all as every
from irad.fd import d_xa, d_ya, inn_x, inn_y

__all__ = ["CORPUS"]

# mutation ------------------------------------------------------------------------------------------------------------


def _product(q: Any, T: Any) -> None:
    inner(q)[...] *= inner(T, 1) - inner(T, -1)


def _product_gradient(v: Values, bar: Values) -> Values:
    w, q, T = inner(bar["q"]), v["q"], v["T"]
    q_bar = np.array(bar["q"])
    inner(q_bar)[...] = w * (inner(T, 1) - inner(T, -1))
    T_bar = np.zeros(T.shape)
    inner(T_bar, 1)[...] += w * inner(q)
    inner(T_bar, -1)[...] -= w * inner(q)
    return {"q": q_bar, "T": T_bar}


@entry("q T", _product, 1, "q T", _product_gradient)
def product_in_place(q, T):  # type: ignore[no-untyped-def]
    i = irad.interior(q)
    q[i] = q[i] * (T[i + 1] - T[i - 1])


def _overwrite(out: Any, u: Any, a: float) -> None:
    out[...] = (a * u) ** 2 + (a * u) ** 3


def _overwrite_gradient(v: Values, bar: Values) -> Values:
    y = v["a"] * v["u"]
    slope = bar["out"] * (2 * y + 3 * y**2)
    return {"out": 0 * bar["out"], "u": v["a"] * slope, "a": (slope * v["u"]).sum()}


@entry("out u", _overwrite, 2, "out u a", _overwrite_gradient, scalars={"a": 0.8})
def overwrite(out, u, a):  # type: ignore[no-untyped-def]
    i, j = irad.points(out)
    out[i, j] = 7.0
    out[i, j] = a * u[i, j]
    out[i, j] = out[i, j] ** 2 + out[i, j] ** 3


def _relax(q: Any, u: Any, steps: int) -> None:
    for m in range(3):
        q += 0.5 * (u - q) * (m + 1) / steps


@entry("q u", _relax, 1, "q u", scalars={"steps": 4})
def relax(q, u, steps):  # type: ignore[no-untyped-def]
    i = irad.points(q)
    for m in range(3):
        q[i] += 0.5 * (u[i] - q[i]) * (m + 1) / steps


def _gray_scott(u2: Any, v2: Any, u: Any, v: Any, F: float, k: float) -> None:
    r = inner(u) * inner(v) ** 2
    inner(u2)[...] = inner(u) + 0.16 * laplacian(u, 1.0, 1.0) - r + F * (1 - inner(u))
    inner(v2)[...] = inner(v) + 0.08 * laplacian(v, 1.0, 1.0) + r - (F + k) * inner(v)


@entry("u2 v2 u v", _gray_scott, 2, "u v F k", scalars={"F": 0.04, "k": 0.06})
def gray_scott(u2, v2, u, v, F, k):  # type: ignore[no-untyped-def]
    i, j = irad.interior(u)
    lu = u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - 4 * u[i, j]
    lv = v[i + 1, j] + v[i - 1, j] + v[i, j + 1] + v[i, j - 1] - 4 * v[i, j]
    r = u[i, j] * v[i, j] ** 2
    u2[i, j] = u[i, j] + 0.16 * lu - r + F * (1 - u[i, j])
    v2[i, j] = v[i, j] + 0.08 * lv + r - (F + k) * v[i, j]


def _wave_shapes(n: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    nx, ny = n
    return {"P": n, "Vx": (nx + 1, ny), "Vy": (nx, ny + 1), "K": n}


def _wave(P: Any, Vx: Any, Vy: Any, K: Any, dt: float) -> None:
    Vx[1:-1] -= dt * np.diff(P, axis=0)
    Vy[:, 1:-1] -= dt * np.diff(P, axis=1)
    P -= dt * K * (np.diff(Vx, axis=0) + np.diff(Vy, axis=1))


def _wave_gradient(v: Values, bar: Values) -> Values:
    dt, K = v["dt"], v["K"]
    Vx, Vy = v["Vx"].copy(), v["Vy"].copy()
    Vx[1:-1] -= dt * np.diff(v["P"], axis=0)
    Vy[:, 1:-1] -= dt * np.diff(v["P"], axis=1)
    w = bar["P"]
    K_bar = -dt * w * (np.diff(Vx, axis=0) + np.diff(Vy, axis=1))
    flow = -dt * K * w
    Vx_bar, Vy_bar, P_bar = np.array(bar["Vx"]), np.array(bar["Vy"]), np.array(w)
    Vx_bar[1:] += flow
    Vx_bar[:-1] -= flow
    Vy_bar[:, 1:] += flow
    Vy_bar[:, :-1] -= flow
    P_bar[1:] -= dt * Vx_bar[1:-1]
    P_bar[:-1] += dt * Vx_bar[1:-1]
    P_bar[:, 1:] -= dt * Vy_bar[:, 1:-1]
    P_bar[:, :-1] += dt * Vy_bar[:, 1:-1]
    return {"P": P_bar, "Vx": Vx_bar, "Vy": Vy_bar, "K": K_bar}


@entry(_wave_shapes, _wave, 2, "P Vx Vy K", _wave_gradient, scalars={"dt": 0.2})
def wave(P, Vx, Vy, K, dt):  # type: ignore[no-untyped-def]
    Vx[inn_x] -= dt * d_xa(P)
    Vy[inn_y] -= dt * d_ya(P)
    P[every] -= dt * K[every] * (d_xa(Vx) + d_ya(Vy))


# functions and kinks -------------------------------------------------------------------------------------------------


def _arrhenius(r: Any, T: Any, c: Any, E: float) -> None:
    r[...] = c**1.5 * np.exp(-E / T)


def _arrhenius_gradient(v: Values, bar: Values) -> Values:
    T, c, w = v["T"], v["c"], bar["r"]
    rate = c**1.5 * np.exp(-v["E"] / T)
    return {
        "r": 0 * w,
        "T": w * rate * v["E"] / T**2,
        "c": w * 1.5 * c**0.5 * np.exp(-v["E"] / T),
        "E": -(w * rate / T).sum(),
    }


@entry("r T c", _arrhenius, 1, "r T c E", _arrhenius_gradient, scalars={"E": 0.9}, positive=True)
def arrhenius(r, T, c, E):  # type: ignore[no-untyped-def]
    i = irad.points(r)
    r[i] = c[i] ** 1.5 * np.exp(-E / T[i])


def _kinks(v: Any, u: Any, w: Any) -> None:
    v[...] = w * np.sqrt(np.abs(u)) + np.maximum(u, 0) + np.abs(w)


def _kinks_gradient(v: Values, bar: Values) -> Values:
    u, w, seed = v["u"], v["w"], bar["v"]
    root = np.sqrt(np.abs(u))
    steep = np.divide(0.5 * w, root, out=np.zeros(u.shape), where=u != 0)
    return {"u": seed * (steep * np.sign(u) + (u > 0)), "w": seed * (root + np.sign(w))}


@entry("v u w", _kinks, 1, "u w", _kinks_gradient)
def kinks(v, u, w):  # type: ignore[no-untyped-def]
    i = irad.points(v)
    v[i] = w[i] * math.sqrt(abs(u[i])) + max(0.0, u[i]) + abs(w[i])


# what is captured ----------------------------------------------------------------------------------------------------

WEIGHTS = np.array([0.25, 0.5, 0.25])
rate = 0.3


@irad.device
def weighted(left, mid, right):  # type: ignore[no-untyped-def]
    return WEIGHTS[0] * left + WEIGHTS[1] * mid + WEIGHTS[2] * right


def _captured(v: Any, u: Any) -> None:
    inner(v)[...] = rate * (0.25 * inner(u, -1) + 0.5 * inner(u) + 0.25 * inner(u, 1)) + inner(u) ** 2


def _captured_gradient(v: Values, bar: Values) -> Values:
    u, w = v["u"], inner(bar["v"])
    u_bar = np.zeros(u.shape)
    inner(u_bar, -1)[...] += rate * 0.25 * w
    inner(u_bar)[...] += (rate * 0.5 + 2 * inner(u)) * w
    inner(u_bar, 1)[...] += rate * 0.25 * w
    mean = 0.25 * inner(u, -1) + 0.5 * inner(u) + 0.25 * inner(u, 1)
    weights = [rate * (w * inner(u, s)).sum() for s in (-1, 0, 1)]
    return {"u": u_bar, "WEIGHTS": np.array(weights), "rate": (w * mean).sum()}


@entry("v u", _captured, 1, "u WEIGHTS rate", _captured_gradient)
def captured(v, u):  # type: ignore[no-untyped-def]
    i = irad.interior(u)
    v[i] = rate * weighted(u[i - 1], u[i], u[i + 1]) + u[i] ** 2


# other ranks ---------------------------------------------------------------------------------------------------------


def _layered_shapes(n: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {"v": n, "u": n, "rho": n[1:], "A": n[::-1]}


def _layered(v: Any, u: Any, rho: Any, A: Any) -> None:
    v[...] = rho * u + A.T


def _layered_gradient(v: Values, bar: Values) -> Values:
    w = bar["v"]
    return {"u": w * v["rho"], "rho": (w * v["u"]).sum(0), "A": w.T.copy()}


@entry(_layered_shapes, _layered, 2, "u rho A", _layered_gradient)
def layered(v, u, rho, A):  # type: ignore[no-untyped-def]
    i, j = irad.points(v)
    v[i, j] = rho[j] * u[i, j] + A[j, i]


def _faces_shapes(n: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {"T": n, "u": n, "g": n[1:]}


def _face_gradient(v: Values, bar: Values) -> Values:
    T_bar, u_bar = np.array(bar["T"]), np.zeros(v["u"].shape)
    u_bar[1] = T_bar[0]
    g_bar = -T_bar[0]
    T_bar[0] = 0
    return {"T": T_bar, "u": u_bar, "g": g_bar}


def _face(T: Any, u: Any, g: Any) -> None:
    T[0] = u[1] - g


@entry(_faces_shapes, _face, 2, "T u g", _face_gradient)
def face(T, u, g):  # type: ignore[no-untyped-def]
    j = irad.domain((0, T.shape[1]))
    T[0, j] = u[1, j] - g[j]


def _four(v: Any, u: Any, a: float) -> None:
    inner(v)[...] = a * inner(u, 1, 0, 0, 0) * inner(u, 0, 0, 0, -1) - inner(u)


def _four_gradient(v: Values, bar: Values) -> Values:
    u, w = v["u"], inner(bar["v"])
    u_bar = np.zeros(u.shape)
    inner(u_bar, 1, 0, 0, 0)[...] += v["a"] * w * inner(u, 0, 0, 0, -1)
    inner(u_bar, 0, 0, 0, -1)[...] += v["a"] * w * inner(u, 1, 0, 0, 0)
    inner(u_bar)[...] -= w
    return {"u": u_bar, "a": (w * inner(u, 1, 0, 0, 0) * inner(u, 0, 0, 0, -1)).sum()}


@entry("v u", _four, 4, "u a", _four_gradient, scalars={"a": 1.25})
def four_axes(v, u, a):  # type: ignore[no-untyped-def]
    i, j, k, m = irad.interior(v)
    v[i, j, k, m] = a * u[i + 1, j, k, m] * u[i, j, k, m - 1] - u[i, j, k, m]
