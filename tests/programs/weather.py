"""Dynamics of a weather model: horizontal diffusion with a flux limiter, implicit vertical advection, shallow water."""

from __future__ import annotations

import numpy as np
from catalogue import program

# Fourth-order horizontal diffusion; a flux that would go against the gradient is set to zero


def horizontal_diffusion_loops(out, a, coefficient):
    n, m, levels = a.shape
    for k in range(levels):
        lap = np.zeros((n, m))
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                lap[i, j] = 4.0 * a[i, j, k] - (a[i + 1, j, k] + a[i - 1, j, k] + a[i, j + 1, k] + a[i, j - 1, k])
        fx = np.zeros((n, m))
        fy = np.zeros((n, m))
        for i in range(1, n - 2):
            for j in range(1, m - 2):
                flux = lap[i + 1, j] - lap[i, j]
                fx[i, j] = 0.0 if flux * (a[i + 1, j, k] - a[i, j, k]) > 0.0 else flux
                flux = lap[i, j + 1] - lap[i, j]
                if flux * (a[i, j + 1, k] - a[i, j, k]) > 0.0:
                    continue
                fy[i, j] = flux
        for i in range(2, n - 2):
            for j in range(2, m - 2):
                change = fx[i, j] - fx[i - 1, j] + fy[i, j] - fy[i, j - 1]
                out[i, j, k] = a[i, j, k] - coefficient[i, j] * change


def horizontal_diffusion_slices(out, a, coefficient):
    for k in range(a.shape[2]):
        s = a[:, :, k]
        lap = np.zeros(s.shape)
        lap[1:-1, 1:-1] = 4.0 * s[1:-1, 1:-1] - (s[2:, 1:-1] + s[:-2, 1:-1] + s[1:-1, 2:] + s[1:-1, :-2])
        fx = lap[2:-1, 1:-2] - lap[1:-2, 1:-2]
        fx = np.where(fx * (s[2:-1, 1:-2] - s[1:-2, 1:-2]) > 0.0, 0.0, fx)
        fy = lap[1:-2, 2:-1] - lap[1:-2, 1:-2]
        fy = np.where(fy * (s[1:-2, 2:-1] - s[1:-2, 1:-2]) > 0.0, 0.0, fy)
        change = fx[1:, 1:] - fx[:-1, 1:] + fy[1:, 1:] - fy[1:, :-1]
        out[2:-2, 2:-2, k] = s[2:-2, 2:-2] - coefficient[2:-2, 2:-2] * change


program(
    horizontal_diffusion_loops,
    horizontal_diffusion_slices,
    {"out": (7, 8, 2), "a": (7, 8, 2), "coefficient": (7, 8)},
    smooth=False,
)


# Vertical advection, implicit: one tridiagonal system a column


def vertical_advection_loops(tendency, u, w, dt):
    n, m, levels = u.shape
    for i in range(n):
        for j in range(m):
            c = np.zeros(levels)
            d = np.zeros(levels)
            for k in range(levels):
                below = -0.25 * dt * w[i, j, k] if k > 0 else 0.0
                above = 0.25 * dt * w[i, j, k + 1] if k < levels - 1 else 0.0
                right = u[i, j, k] + dt * tendency[i, j, k]
                if k > 0:
                    right -= below * (u[i, j, k - 1] - u[i, j, k])
                if k < levels - 1:
                    right -= above * (u[i, j, k + 1] - u[i, j, k])
                main = 1.0 - below - above
                if k == 0:
                    c[k] = above / main
                    d[k] = right / main
                else:
                    pivot = main - below * c[k - 1]
                    c[k] = above / pivot
                    d[k] = (right - below * d[k - 1]) / pivot
            x = d[levels - 1]
            tendency[i, j, levels - 1] = (x - u[i, j, levels - 1]) / dt
            for k in range(levels - 2, -1, -1):
                x = d[k] - c[k] * x
                tendency[i, j, k] = (x - u[i, j, k]) / dt


def vertical_advection_slices(tendency, u, w, dt):
    levels = u.shape[2]
    below = np.zeros(u.shape)
    above = np.zeros(u.shape)
    below[:, :, 1:] = -0.25 * dt * w[:, :, 1:levels]
    above[:, :, :-1] = 0.25 * dt * w[:, :, 1:levels]
    right = u + dt * tendency
    right[:, :, 1:] -= below[:, :, 1:] * (u[:, :, :-1] - u[:, :, 1:])
    right[:, :, :-1] -= above[:, :, :-1] * (u[:, :, 1:] - u[:, :, :-1])
    c = 1.0 - below - above
    for k in range(levels):
        if k > 0:
            c[:, :, k] -= below[:, :, k] * c[:, :, k - 1]
            right[:, :, k] -= below[:, :, k] * right[:, :, k - 1]
        right[:, :, k] /= c[:, :, k]
        c[:, :, k] = above[:, :, k] / c[:, :, k]
    for k in range(levels - 2, -1, -1):
        right[:, :, k] -= c[:, :, k] * right[:, :, k + 1]
    tendency[:, :, :] = (right - u) / dt


program(
    vertical_advection_loops,
    vertical_advection_slices,
    {"tendency": (2, 3, 5), "u": (2, 3, 5), "w": (2, 3, 6)},
    dt=0.5,
)


# Shallow water on a periodic grid, by Lax and Friedrichs' method


def shallow_water_loops(h, hu, hv, gravity, ratio, steps):
    n, m = h.shape
    for _ in range(steps):
        h0 = h.copy()
        hu0 = hu.copy()
        hv0 = hv.copy()
        for i in range(n):
            e, w = (i + 1) % n, i - 1
            for j in range(m):
                s, t = (j + 1) % m, j - 1
                total = 0.0
                total_u = 0.0
                total_v = 0.0
                for a, b in ((e, j), (w, j), (i, s), (i, t)):
                    total += h0[a, b]
                    total_u += hu0[a, b]
                    total_v += hv0[a, b]
                ue, uw = hu0[e, j] / h0[e, j], hu0[w, j] / h0[w, j]
                vs, vt = hv0[i, s] / h0[i, s], hv0[i, t] / h0[i, t]
                h[i, j] = 0.25 * total - ratio * (hu0[e, j] - hu0[w, j] + hv0[i, s] - hv0[i, t])
                push = ue * hu0[e, j] - uw * hu0[w, j] + 0.5 * gravity * (h0[e, j] ** 2 - h0[w, j] ** 2)
                hu[i, j] = 0.25 * total_u - ratio * (push + vs * hu0[i, s] - vt * hu0[i, t])
                push = vs * hv0[i, s] - vt * hv0[i, t] + 0.5 * gravity * (h0[i, s] ** 2 - h0[i, t] ** 2)
                hv[i, j] = 0.25 * total_v - ratio * (push + ue * hv0[e, j] - uw * hv0[w, j])


def shallow_water_slices(h, hu, hv, gravity, ratio, steps):
    n, m = h.shape
    for _ in range(steps):
        f = np.empty((3, n + 2, m + 2))
        f[:, :, :] = 1.0
        for q in range(3):
            a = h if q == 0 else (hu if q == 1 else hv)
            f[q, 1:-1, 1:-1] = a
            f[q, 0, 1:-1] = a[-1, :]
            f[q, -1, 1:-1] = a[0, :]
            f[q, 1:-1, 0] = a[:, -1]
            f[q, 1:-1, -1] = a[:, 0]
        u = f[1] / f[0]
        v = f[2] / f[0]
        pressure = 0.5 * gravity * f[0] ** 2
        x = u * f[1] + pressure
        y = v * f[2] + pressure
        z = u * f[2]
        mean = 0.25 * (f[:, 2:, 1:-1] + f[:, :-2, 1:-1] + f[:, 1:-1, 2:] + f[:, 1:-1, :-2])
        h[:] = mean[0] - ratio * (f[1, 2:, 1:-1] - f[1, :-2, 1:-1] + f[2, 1:-1, 2:] - f[2, 1:-1, :-2])
        hu[:] = mean[1] - ratio * (x[2:, 1:-1] - x[:-2, 1:-1] + z[1:-1, 2:] - z[1:-1, :-2])
        hv[:] = mean[2] - ratio * (y[1:-1, 2:] - y[1:-1, :-2] + z[2:, 1:-1] - z[:-2, 1:-1])


program(
    shallow_water_loops,
    shallow_water_slices,
    dict.fromkeys(("h", "hu", "hv"), (5, 6)),
    gravity=9.8,
    ratio=0.03,
    steps=2,
)
