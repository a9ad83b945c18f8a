"""The corpus: kernels as people write them (``kernels_mutation.py`` has more). ``corpus.py`` says what an entry is."""

from __future__ import annotations

from typing import Any

import numpy as np
from corpus import CORPUS, Values, entry, inner, keep, laplacian, laplacian_transposed

import irad
from irad.fd import all as every
from irad.fd import av_xi, av_yi, d2_xi, d2_yi, d2_zi, d_xa, d_xi, d_ya, d_yi, inn

__all__ = ["CORPUS"]

# diffusion -----------------------------------------------------------------------------------------------------------


def _heat1d(dT: Any, T: Any, lam: Any, dx: float) -> None:
    inner(dT)[...] = lam[0] * laplacian(T, dx)


def _heat1d_gradient(v: Values, bar: Values) -> Values:
    w = inner(bar["dT"])
    return {
        "dT": keep(bar["dT"]),
        "T": v["lam"][0] * laplacian_transposed(w, v["T"].shape, v["dx"]),
        "lam": np.array([(w * laplacian(v["T"], v["dx"])).sum()]),
        "dx": -2 * v["lam"][0] / v["dx"] * (w * laplacian(v["T"], v["dx"])).sum(),
    }


def _line(n: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {"dT": n, "T": n, "lam": (1,)}


@entry(_line, _heat1d, 1, "dT T lam dx", _heat1d_gradient, scalars={"dx": 0.5})
def heat1d(dT, T, lam, dx):  # type: ignore[no-untyped-def]
    i = irad.interior(dT)
    dT[i] = lam[0] * (T[i + 1] - 2 * T[i] + T[i - 1]) / dx**2


@entry(_line, _heat1d, 1, "dT T lam dx", _heat1d_gradient, scalars={"dx": 0.5})
def heat1d_close(dT, T, lam, dx):  # type: ignore[no-untyped-def]
    dT[inn] = lam[0] * d2_xi(T) / dx**2


def _heat2d(dT: Any, T: Any, Ci: Any, lam: Any, dx: float, dy: float) -> None:
    inner(dT)[...] = lam[0] * inner(Ci) * laplacian(T, dx, dy)


def _heat_gradient(v: Values, bar: Values) -> Values:
    h = [v[name] for name in ("dx", "dy", "dz") if name in v]
    w = inner(bar["dT"])
    weighted = w * v["lam"][0] * inner(v["Ci"])
    Ci_bar = np.zeros(v["Ci"].shape)
    inner(Ci_bar)[...] = w * v["lam"][0] * laplacian(v["T"], *h)
    return {
        "dT": keep(bar["dT"]),
        "T": laplacian_transposed(weighted, v["T"].shape, *h),
        "Ci": Ci_bar,
        "lam": np.array([(w * inner(v["Ci"]) * laplacian(v["T"], *h)).sum()]),
    }


def _fields(n: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {"dT": n, "T": n, "Ci": n, "lam": (1,)}


HEAT2 = {"dx": 0.5, "dy": 0.25}
HEAT3 = {"dx": 0.5, "dy": 0.25, "dz": 1.0}


@entry(_fields, _heat2d, 2, "dT T Ci lam", _heat_gradient, scalars=HEAT2)
def heat2d(dT, T, Ci, lam, dx, dy):  # type: ignore[no-untyped-def]
    i, j = irad.interior(dT)
    dT[i, j] = (
        lam[0]
        * Ci[i, j]
        * (
            (T[i + 1, j] - 2 * T[i, j] + T[i - 1, j]) / dx**2
            + (T[i, j + 1] - 2 * T[i, j] + T[i, j - 1]) / dy**2
        )
    )  # fmt: skip


@entry(_fields, _heat2d, 2, "dT T Ci lam", _heat_gradient, scalars=HEAT2)
def heat2d_close(dT, T, Ci, lam, dx, dy):  # type: ignore[no-untyped-def]
    dT[inn] = lam[0] * inn(Ci) * (d2_xi(T) / dx**2 + d2_yi(T) / dy**2)


def _heat3d(dT: Any, T: Any, Ci: Any, lam: Any, dx: float, dy: float, dz: float) -> None:
    inner(dT)[...] = lam[0] * inner(Ci) * laplacian(T, dx, dy, dz)


@entry(_fields, _heat3d, 3, "dT T Ci lam", _heat_gradient, scalars=HEAT3)
def heat3d(dT, T, Ci, lam, dx, dy, dz):  # type: ignore[no-untyped-def]
    i, j, k = irad.interior(dT)
    dT[i, j, k] = lam[0] * Ci[i, j, k] * (
        (T[i+1, j, k] - 2*T[i, j, k] + T[i-1, j, k]) / dx**2
      + (T[i, j+1, k] - 2*T[i, j, k] + T[i, j-1, k]) / dy**2
      + (T[i, j, k+1] - 2*T[i, j, k] + T[i, j, k-1]) / dz**2)  # fmt: skip


@entry(_fields, _heat3d, 3, "dT T Ci lam", _heat_gradient, scalars=HEAT3)
def heat3d_close(dT, T, Ci, lam, dx, dy, dz):  # type: ignore[no-untyped-def]
    dT[inn] = lam[0] * inn(Ci) * (d2_xi(T) / dx**2 + d2_yi(T) / dy**2 + d2_zi(T) / dz**2)


def _variable(dT: Any, T: Any, k: Any) -> None:
    right = 0.5 * (inner(k, 1, 0) + inner(k)) * (inner(T, 1, 0) - inner(T))
    left = 0.5 * (inner(k) + inner(k, -1, 0)) * (inner(T) - inner(T, -1, 0))
    up = 0.5 * (inner(k, 0, 1) + inner(k)) * (inner(T, 0, 1) - inner(T))
    down = 0.5 * (inner(k) + inner(k, 0, -1)) * (inner(T) - inner(T, 0, -1))
    inner(dT)[...] = right - left + up - down


@entry("dT T k", _variable, 2, "T k")
def variable_coefficient(dT, T, k):  # type: ignore[no-untyped-def]
    i, j = irad.interior(T)
    right = 0.5 * (k[i + 1, j] + k[i, j]) * (T[i + 1, j] - T[i, j])
    left = 0.5 * (k[i, j] + k[i - 1, j]) * (T[i, j] - T[i - 1, j])
    up = 0.5 * (k[i, j + 1] + k[i, j]) * (T[i, j + 1] - T[i, j])
    down = 0.5 * (k[i, j] + k[i, j - 1]) * (T[i, j] - T[i, j - 1])
    dT[i, j] = right - left + up - down


def _staggered(n: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    nx, ny = n
    cut = tuple(max(x, 0) for x in (nx - 1, ny - 2)), tuple(max(x, 0) for x in (nx - 2, ny - 1))
    return {"T": n, "k": n, "qx": cut[0], "qy": cut[1]}


def _fluxes(T: Any, k: Any, qx: Any, qy: Any, dt: float) -> None:
    qx[...] = -0.5 * (k[1:, 1:-1] + k[:-1, 1:-1]) * np.diff(T[:, 1:-1], axis=0)
    qy[...] = -0.5 * (k[1:-1, 1:] + k[1:-1, :-1]) * np.diff(T[1:-1, :], axis=1)
    inner(T)[...] -= dt * (np.diff(qx, axis=0) + np.diff(qy, axis=1))


@entry(_staggered, _fluxes, 2, "T k dt", scalars={"dt": 0.1})
def fluxes(T, k, qx, qy, dt):  # type: ignore[no-untyped-def]
    qx[every] = -av_xi(k) * d_xi(T)
    qy[every] = -av_yi(k) * d_yi(T)
    T[inn] -= dt * (d_xa(qx) + d_ya(qy))


# transport -----------------------------------------------------------------------------------------------------------


def _upwind(v: Any, u: Any, c: float) -> None:
    inner(v)[...] = np.where(inner(u) > 0, inner(u) - inner(u, -1), inner(u, 1) - inner(u)) * -c * inner(u)


@entry("v u", _upwind, 1, "u c", scalars={"c": 0.7})
def upwind(v, u, c):  # type: ignore[no-untyped-def]
    i = irad.interior(u)
    if u[i] > 0:  # noqa: SIM108
        slope = u[i] - u[i - 1]
    else:
        slope = u[i + 1] - u[i]
    v[i] = -c * u[i] * slope


def _burgers(v: Any, u: Any, nu: float, dt: float) -> None:
    advection = inner(u) * (inner(u, 1) - inner(u, -1)) / 2
    inner(v)[...] = inner(u) - dt * (advection - nu * laplacian(u, 1.0))


def _burgers_gradient(v: Values, bar: Values) -> Values:
    u, w, dt = v["u"], inner(bar["v"]), v["dt"]
    u_bar = np.zeros(u.shape)
    inner(u_bar)[...] += w - dt * w * (inner(u, 1) - inner(u, -1)) / 2
    inner(u_bar, 1)[...] -= dt * w * inner(u) / 2
    inner(u_bar, -1)[...] += dt * w * inner(u) / 2
    u_bar += dt * v["nu"] * laplacian_transposed(w, u.shape, 1.0)
    return {"v": keep(bar["v"]), "u": u_bar, "nu": dt * (w * laplacian(u, 1.0)).sum()}


@entry("v u", _burgers, 1, "v u nu", _burgers_gradient, scalars={"nu": 0.3, "dt": 0.1})
def burgers(v, u, nu, dt):  # type: ignore[no-untyped-def]
    i = irad.interior(u)
    advection = u[i] * (u[i + 1] - u[i - 1]) / 2
    v[i] = u[i] - dt * (advection - nu * (u[i + 1] - 2 * u[i] + u[i - 1]))


def _minmod(a: Any, b: Any) -> Any:
    return np.where(a * b <= 0, 0, np.where(a > 0, np.minimum(a, b), np.maximum(a, b)))


def _limiter(v: Any, u: Any) -> None:
    inner(v)[...] = _minmod(inner(u) - inner(u, -1), inner(u, 1) - inner(u))


@entry("v u", _limiter, 1, "u")
def limiter(v, u):  # type: ignore[no-untyped-def]
    i = irad.interior(u)
    a = u[i] - u[i - 1]
    b = u[i + 1] - u[i]
    if a * b <= 0:
        v[i] = 0.0
    elif a > 0:
        v[i] = min(a, b)
    else:
        v[i] = max(a, b)


def _periodic(v: Any, u: Any, c: Any) -> None:
    v[...] = c * (u - np.roll(u, 1, 0)) + 2 * np.roll(u, 2, 1)


def _periodic_gradient(v: Values, bar: Values) -> Values:
    w, u = bar["v"], v["u"]
    u_bar = v["c"] * w - np.roll(v["c"] * w, -1, 0) + 2 * np.roll(w, -2, 1)
    return {"v": 0 * w, "u": u_bar, "c": w * (u - np.roll(u, 1, 0))}


@entry("v u c", _periodic, 2, "v u c", _periodic_gradient)
def periodic(v, u, c):  # type: ignore[no-untyped-def]
    i, j = irad.points(v)
    v[i, j] = c[i, j] * (u[i, j] - u[i - 1, j]) + 2 * u[i, j - 2]


def _walls(v: Any, u: Any) -> None:
    padded = np.concatenate([u[:1], u, u[-1:]])
    v[...] = padded[2:] - 2 * padded[1:-1] + padded[:-2]


def _walls_gradient(v: Values, bar: Values) -> Values:
    w = bar["v"]
    if not w.size:
        return {"u": w.copy()}
    padded = np.concatenate([w[:1], w, w[-1:]])  # symmetric
    return {"u": padded[2:] - 2 * padded[1:-1] + padded[:-2]}


@entry("v u", _walls, 1, "u", _walls_gradient)
def walls(v, u):  # type: ignore[no-untyped-def]
    i = irad.points(u)
    left = u[i]
    right = u[i]
    if i > 0:
        left = u[i - 1]
    if i < u.shape[0] - 1:
        right = u[i + 1]
    v[i] = left - 2 * u[i] + right
