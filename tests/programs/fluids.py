"""Flows: a lattice of Boltzmann in two dimensions, and a driven cavity with iterations for the pressure."""

from __future__ import annotations

import numpy as np
from catalogue import program

# Lattice-Boltzmann with nine velocities: collide (relax to equilibrium), then stream, periodic

CX = (0, 1, 0, -1, 0, 1, -1, -1, 1)
CY = (0, 0, 1, 0, -1, 1, 1, -1, -1)
WEIGHT = (4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36)


def lattice_boltzmann_loops(f, g, omega, steps):
    n, m = f.shape[1], f.shape[2]
    for _ in range(steps):
        for i in range(n):
            for j in range(m):
                rho = 0.0
                ux = 0.0
                uy = 0.0
                for q in range(9):
                    rho += f[q, i, j]
                    ux += CX[q] * f[q, i, j]
                    uy += CY[q] * f[q, i, j]
                ux /= rho
                uy /= rho
                square = ux * ux + uy * uy
                for q in range(9):
                    along = CX[q] * ux + CY[q] * uy
                    equilibrium = WEIGHT[q] * rho * (1.0 + 3.0 * along + 4.5 * along * along - 1.5 * square)
                    g[q, (i + CX[q]) % n, (j + CY[q]) % m] = f[q, i, j] + omega * (equilibrium - f[q, i, j])
        for q in range(9):
            for i in range(n):
                for j in range(m):
                    f[q, i, j] = g[q, i, j]


def lattice_boltzmann_slices(f, g, omega, steps):
    n, m = f.shape[1], f.shape[2]
    for _ in range(steps):
        rho = np.zeros((n, m))
        ux = np.zeros((n, m))
        uy = np.zeros((n, m))
        for q in range(9):
            rho += f[q]
            ux += CX[q] * f[q]
            uy += CY[q] * f[q]
        ux /= rho
        uy /= rho
        square = ux * ux + uy * uy
        for q in range(9):
            along = CX[q] * ux + CY[q] * uy
            equilibrium = WEIGHT[q] * rho * (1.0 + 3.0 * along + 4.5 * along * along - 1.5 * square)
            after = f[q] + omega * (equilibrium - f[q])
            x, y = CX[q] % n, CY[q] % m
            g[q, x:, y:] = after[: n - x, : m - y]
            g[q, :x, y:] = after[n - x :, : m - y]
            g[q, x:, :y] = after[: n - x, m - y :]
            g[q, :x, :y] = after[n - x :, m - y :]
        f[:, :, :] = g


program(lattice_boltzmann_loops, lattice_boltzmann_slices, {"f": (9, 4, 5), "g": (9, 4, 5)}, omega=1.2, steps=2)


# A cavity whose lid moves: velocities by an explicit step, the pressure by Jacobi iterations


def cavity_loops(u, v, p, rho, nu, dt, dx, dy, steps, sweeps):
    n, m = u.shape
    b = np.zeros((n, m))
    old = np.zeros((n, m))
    un = np.zeros((n, m))
    vn = np.zeros((n, m))
    for _ in range(steps):
        for i in range(n):
            for j in range(m):
                un[i, j] = u[i, j]
                vn[i, j] = v[i, j]
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                ux = (u[i, j + 1] - u[i, j - 1]) / (2 * dx)
                uy = (u[i + 1, j] - u[i - 1, j]) / (2 * dy)
                vx = (v[i, j + 1] - v[i, j - 1]) / (2 * dx)
                vy = (v[i + 1, j] - v[i - 1, j]) / (2 * dy)
                b[i, j] = rho * ((ux + vy) / dt - ux**2 - 2 * uy * vx - vy**2)
        for _ in range(sweeps):
            for i in range(n):
                for j in range(m):
                    old[i, j] = p[i, j]
            for i in range(1, n - 1):
                for j in range(1, m - 1):
                    around = (old[i, j + 1] + old[i, j - 1]) * dy**2 + (old[i + 1, j] + old[i - 1, j]) * dx**2
                    p[i, j] = (around - dx**2 * dy**2 * b[i, j]) / (2 * (dx**2 + dy**2))
            for i in range(n):
                p[i, m - 1] = p[i, m - 2]
                p[i, 0] = p[i, 1]
            for j in range(m):
                p[0, j] = p[1, j]
                p[n - 1, j] = 0.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                across = un[i, j] * dt / dx * (un[i, j] - un[i, j - 1]) + vn[i, j] * dt / dy * (un[i, j] - un[i - 1, j])
                spread = dt / dx**2 * (un[i, j + 1] - 2 * un[i, j] + un[i, j - 1])
                spread += dt / dy**2 * (un[i + 1, j] - 2 * un[i, j] + un[i - 1, j])
                u[i, j] = un[i, j] - across - dt / (2 * rho * dx) * (p[i, j + 1] - p[i, j - 1]) + nu * spread
                across = un[i, j] * dt / dx * (vn[i, j] - vn[i, j - 1]) + vn[i, j] * dt / dy * (vn[i, j] - vn[i - 1, j])
                spread = dt / dx**2 * (vn[i, j + 1] - 2 * vn[i, j] + vn[i, j - 1])
                spread += dt / dy**2 * (vn[i + 1, j] - 2 * vn[i, j] + vn[i - 1, j])
                v[i, j] = vn[i, j] - across - dt / (2 * rho * dy) * (p[i + 1, j] - p[i - 1, j]) + nu * spread
        for i in range(n):
            u[i, 0] = u[i, m - 1] = v[i, 0] = v[i, m - 1] = 0.0
        for j in range(m):
            u[0, j] = v[0, j] = v[n - 1, j] = 0.0
            u[n - 1, j] = 1.0


def cavity_slices(u, v, p, rho, nu, dt, dx, dy, steps, sweeps):
    b = np.zeros(u.shape)
    for _ in range(steps):
        un = u.copy()
        vn = v.copy()
        ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
        uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy)
        vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
        vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
        b[1:-1, 1:-1] = rho * ((ux + vy) / dt - ux**2 - 2 * uy * vx - vy**2)
        for _ in range(sweeps):
            q = p.copy()
            around = (q[1:-1, 2:] + q[1:-1, :-2]) * dy**2 + (q[2:, 1:-1] + q[:-2, 1:-1]) * dx**2
            p[1:-1, 1:-1] = (around - dx**2 * dy**2 * b[1:-1, 1:-1]) / (2 * (dx**2 + dy**2))
            p[:, -1] = p[:, -2]
            p[:, 0] = p[:, 1]
            p[0, :] = p[1, :]
            p[-1, :] = 0.0
        c, d = un[1:-1, 1:-1], vn[1:-1, 1:-1]
        u[1:-1, 1:-1] = (
            c
            - (c * dt / dx * (c - un[1:-1, :-2]) + d * dt / dy * (c - un[:-2, 1:-1]))
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
            + nu
            * (
                dt / dx**2 * (un[1:-1, 2:] - 2 * c + un[1:-1, :-2])
                + dt / dy**2 * (un[2:, 1:-1] - 2 * c + un[:-2, 1:-1])
            )
        )
        v[1:-1, 1:-1] = (
            d
            - (c * dt / dx * (d - vn[1:-1, :-2]) + d * dt / dy * (d - vn[:-2, 1:-1]))
            - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[:-2, 1:-1])
            + nu
            * (
                dt / dx**2 * (vn[1:-1, 2:] - 2 * d + vn[1:-1, :-2])
                + dt / dy**2 * (vn[2:, 1:-1] - 2 * d + vn[:-2, 1:-1])
            )
        )
        u[:, 0] = 0.0
        u[:, -1] = 0.0
        v[:, 0] = 0.0
        v[:, -1] = 0.0
        u[0, :] = 0.0
        v[0, :] = 0.0
        v[-1, :] = 0.0
        u[-1, :] = 1.0


program(
    cavity_loops,
    cavity_slices,
    dict.fromkeys(("u", "v", "p"), (5, 6)),
    low=-0.5,
    high=0.5,
    rho=1.0,
    nu=0.1,
    dt=0.01,
    dx=0.3,
    dy=0.25,
    steps=2,
    sweeps=3,
)
