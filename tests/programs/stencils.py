"""Stencils over time steps: Jacobi sweeps in one and two dimensions, heat in three, Gauss-Seidel, Maxwell's equations,
and alternating directions."""

from __future__ import annotations

import numpy as np
from catalogue import program

# Jacobi sweeps: two grids that take turns


def jacobi_1d_loops(A, B, steps):
    n = A.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            B[i] = (A[i - 1] + A[i] + A[i + 1]) / 3.0
        for i in range(1, n - 1):
            A[i] = (B[i - 1] + B[i] + B[i + 1]) / 3.0


def jacobi_1d_slices(A, B, steps):
    for _ in range(steps):
        B[1:-1] = (A[:-2] + A[1:-1] + A[2:]) / 3.0
        A[1:-1] = (B[:-2] + B[1:-1] + B[2:]) / 3.0


program(jacobi_1d_loops, jacobi_1d_slices, {"A": (12,), "B": (12,)}, steps=3)


def jacobi_2d_loops(A, B, steps):
    n, m = A.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j])


def jacobi_2d_slices(A, B, steps):
    for _ in range(steps):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])


program(jacobi_2d_loops, jacobi_2d_slices, {"A": (6, 7), "B": (6, 7)}, steps=2)


# Heat in three dimensions, with a conductivity that depends on the temperature


def heat_3d_loops(A, B, k, steps):
    n, m, p = A.shape
    for _ in range(steps):
        for x in range(1, n - 1):
            for y in range(1, m - 1):
                for z in range(1, p - 1):
                    lap = A[x + 1, y, z] + A[x - 1, y, z] + A[x, y + 1, z] + A[x, y - 1, z]
                    lap += A[x, y, z + 1] + A[x, y, z - 1] - 6.0 * A[x, y, z]
                    B[x, y, z] = A[x, y, z] + k * A[x, y, z] * lap
        for x in range(1, n - 1):
            for y in range(1, m - 1):
                for z in range(1, p - 1):
                    A[x, y, z] = B[x, y, z]


def heat_3d_slices(A, B, k, steps):
    for _ in range(steps):
        c = A[1:-1, 1:-1, 1:-1]
        lap = A[2:, 1:-1, 1:-1] + A[:-2, 1:-1, 1:-1] + A[1:-1, 2:, 1:-1] + A[1:-1, :-2, 1:-1]
        lap += A[1:-1, 1:-1, 2:] + A[1:-1, 1:-1, :-2] - 6.0 * c
        B[1:-1, 1:-1, 1:-1] = c + k * c * lap
        A[1:-1, 1:-1, 1:-1] = B[1:-1, 1:-1, 1:-1]


program(heat_3d_loops, heat_3d_slices, {"A": (4, 5, 4), "B": (4, 5, 4)}, k=0.125, steps=2)


# Gauss-Seidel: each entry sees those already updated. As slices: what of a row does not depend on the row itself


def seidel_2d_loops(A, steps):
    n, m = A.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                A[i, j] = (
                    A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1]
                    + A[i, j - 1] + A[i, j] + A[i, j + 1]
                    + A[i + 1, j - 1] + A[i + 1, j] + A[i + 1, j + 1]
                ) / 9.0  # fmt: skip


def seidel_2d_slices(A, steps):
    for _ in range(steps):
        for i in range(1, A.shape[0] - 1):
            known = A[i - 1, :-2] + A[i - 1, 1:-1] + A[i - 1, 2:]
            known += A[i, 1:-1] + A[i, 2:] + A[i + 1, :-2] + A[i + 1, 1:-1] + A[i + 1, 2:]
            for j in range(known.shape[0]):
                A[i, j + 1] = (known[j] + A[i, j]) / 9.0


program(seidel_2d_loops, seidel_2d_slices, {"A": (6, 7)}, steps=2)


# Maxwell's equations in two dimensions: electric and magnetic fields on staggered grids, in leapfrog


def fdtd_2d_loops(ex, ey, hz, source):
    n, m = hz.shape
    for t in range(source.shape[0]):
        for j in range(m):
            ey[0, j] = source[t]
        for i in range(1, n):
            for j in range(m):
                ey[i, j] = ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in range(n):
            for j in range(1, m):
                ex[i, j] = ex[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in range(n - 1):
            for j in range(m - 1):
                hz[i, j] = hz[i, j] - 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


def fdtd_2d_slices(ex, ey, hz, source):
    for t in range(source.shape[0]):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


program(fdtd_2d_loops, fdtd_2d_slices, {"ex": (5, 6), "ey": (5, 6), "hz": (5, 6), "source": (3,)})


# Alternating directions: implicit along one axis at a time, each line by elimination


def adi_loops(u, v, p, q, r, steps):
    n = u.shape[0]
    a, b, d, e = -r, 1.0 + 2.0 * r, -2.0 * r, 1.0 + 4.0 * r
    for _ in range(steps):
        for i in range(1, n - 1):
            v[0, i] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = v[0, i]
            for j in range(1, n - 1):
                p[i, j] = -a / (a * p[i, j - 1] + b)
                right = -d * u[j, i - 1] + (1.0 + 2.0 * d) * u[j, i] - d * u[j, i + 1]
                q[i, j] = (right - a * q[i, j - 1]) / (a * p[i, j - 1] + b)
            v[n - 1, i] = 1.0
            for j in range(n - 2, 0, -1):
                v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
        for i in range(1, n - 1):
            u[i, 0] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = u[i, 0]
            for j in range(1, n - 1):
                p[i, j] = -d / (d * p[i, j - 1] + e)
                right = -a * v[i - 1, j] + (1.0 + 2.0 * a) * v[i, j] - a * v[i + 1, j]
                q[i, j] = (right - d * q[i, j - 1]) / (d * p[i, j - 1] + e)
            u[i, n - 1] = 1.0
            for j in range(n - 2, 0, -1):
                u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]


def adi_slices(u, v, p, q, r, steps):
    n = u.shape[0]
    a, b, d, e = -r, 1.0 + 2.0 * r, -2.0 * r, 1.0 + 4.0 * r
    for _ in range(steps):
        v[0, 1:-1] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = v[0, 1:-1]
        for j in range(1, n - 1):
            p[1:-1, j] = -a / (a * p[1:-1, j - 1] + b)
            right = -d * u[j, :-2] + (1.0 + 2.0 * d) * u[j, 1:-1] - d * u[j, 2:]
            q[1:-1, j] = (right - a * q[1:-1, j - 1]) / (a * p[1:-1, j - 1] + b)
        v[n - 1, 1:-1] = 1.0
        for j in range(n - 2, 0, -1):
            v[j, 1:-1] = p[1:-1, j] * v[j + 1, 1:-1] + q[1:-1, j]
        u[1:-1, 0] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = u[1:-1, 0]
        for j in range(1, n - 1):
            p[1:-1, j] = -d / (d * p[1:-1, j - 1] + e)
            right = -a * v[:-2, j] + (1.0 + 2.0 * a) * v[1:-1, j] - a * v[2:, j]
            q[1:-1, j] = (right - d * q[1:-1, j - 1]) / (d * p[1:-1, j - 1] + e)
        u[1:-1, n - 1] = 1.0
        for j in range(n - 2, 0, -1):
            u[1:-1, j] = p[1:-1, j] * u[1:-1, j + 1] + q[1:-1, j]


program(adi_loops, adi_slices, dict.fromkeys(("u", "v", "p", "q"), (6, 6)), r=0.35, steps=2)


# Thomas' algorithm: a tridiagonal system, solved in place


def thomas_loops(x, lower, diagonal, upper):
    n = x.shape[0]
    c = np.empty(n)
    c[0] = upper[0] / diagonal[0]
    x[0] = x[0] / diagonal[0]
    for i in range(1, n):
        m = 1.0 / (diagonal[i] - lower[i] * c[i - 1])
        c[i] = upper[i] * m
        x[i] = (x[i] - lower[i] * x[i - 1]) * m
    for i in range(n - 2, -1, -1):
        x[i] -= c[i] * x[i + 1]


def thomas_slices(x, lower, diagonal, upper):
    """Cyclic reduction: every other unknown is eliminated at once."""
    a, d, c = lower.copy(), diagonal.copy(), upper.copy()
    n = x.shape[0]
    a[0] = 0.0
    c[n - 1] = 0.0
    stride = 1
    while stride < n:
        left = np.zeros(n)
        right = np.zeros(n)
        left[stride:] = -a[stride:] / d[:-stride]
        right[:-stride] = -c[:-stride] / d[stride:]
        new_d, new_x = d.copy(), x.copy()
        new_a, new_c = np.zeros(n), np.zeros(n)
        new_d[stride:] += left[stride:] * c[:-stride]
        new_d[:-stride] += right[:-stride] * a[stride:]
        new_x[stride:] += left[stride:] * x[:-stride]
        new_x[:-stride] += right[:-stride] * x[stride:]
        new_a[stride:] = left[stride:] * a[:-stride]
        new_c[:-stride] = right[:-stride] * c[stride:]
        a, c, d = new_a, new_c, new_d
        x[:] = new_x
        stride *= 2
    x /= d


program(thomas_loops, thomas_slices, dict.fromkeys(("x", "lower", "upper"), (7,)) | {"diagonal": (7,)})
