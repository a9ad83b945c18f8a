"""Test problems for the integrators, as NumPy right-hand sides f(du, u, p, t), with exact or reference solutions."""

import math

import numpy as np


class Heat:
    """Heat equation on the unit cube, n interior points a side, zero boundary values."""

    def __init__(self, n, dim):
        self.n, self.dim, self.dx = n, dim, 1.0 / (n + 1)
        self.x = self.dx * np.arange(1, n + 1)
        self.radius = dim * 4 / self.dx**2 * math.cos(math.pi * self.dx / 2) ** 2

    def apply(self, out, u):
        np.multiply(u, -2.0 * self.dim, out=out)
        for axis in range(self.dim):
            low = [slice(None)] * self.dim
            high = [slice(None)] * self.dim
            low[axis], high[axis] = slice(0, -1), slice(1, None)
            out[tuple(low)] += u[tuple(high)]
            out[tuple(high)] += u[tuple(low)]
        out /= self.dx**2

    def f(self, du, u, p, t):
        self.apply(du, u)

    def mode(self, *k):
        v = np.ones((1,) * self.dim)
        for axis in range(self.dim):
            shape = [1] * self.dim
            shape[axis] = self.n
            v = v * np.sin(math.pi * k[axis] * self.x).reshape(shape)
        return v

    def eigenvalue(self, *k):
        return -sum(4 / self.dx**2 * math.sin(math.pi * i * self.dx / 2) ** 2 for i in k)

    def sum_of_modes(self, *modes):
        return sum(self.mode(*k) for k in modes)

    def solution(self, t, *modes):
        return sum(self.mode(*k) * math.exp(self.eigenvalue(*k) * t) for k in modes)


def forced_heat(mode):
    """u' = A u + forcing with the exact solution cos(5 t) phi; 100 points."""
    heat = Heat(100, 1)
    phi, lam = heat.mode(mode), heat.eigenvalue(mode)

    def f(du, u, p, t):
        heat.apply(du, u)
        du += (-5 * math.sin(5 * t) - lam * math.cos(5 * t)) * phi

    return f, phi, lambda t: math.cos(5 * t) * phi


def growing_heat():
    """u' = (1 + 990000 t^2) A u: the spectral radius grows by 100 until t = 0.01; 40 points."""
    heat = Heat(40, 1)

    def f(du, u, p, t):
        heat.apply(du, u)
        du *= 1 + 990000 * t * t

    u0 = heat.sum_of_modes((1,), (2,))
    return f, u0, lambda t: heat.solution(t + 330000 * t**3, (1,), (2,))


def brusselator(n=32, alpha=0.1):
    """2-D Brusselator, periodic unit square, with a source from t = 1.1 on; state (field, x, y)."""
    x = np.arange(n) / n
    X, Y = np.meshgrid(x, x, indexing="ij")
    u0 = np.stack([22.0 * (Y * (1 - Y)) ** 1.5, 27.0 * (X * (1 - X)) ** 1.5])
    spot = 5.0 * ((X - 0.3) ** 2 + (Y - 0.6) ** 2 <= 0.01)

    def f(du, w, p, t):
        u, v = w
        q = u * u * v
        du[0] = 1.0 + q - 4.4 * u + alpha * periodic_laplace(u, n)
        if t >= 1.1:
            du[0] += spot
        du[1] = 3.4 * u - q + alpha * periodic_laplace(v, n)

    return f, u0


def allen_cahn(n=32, eps=0.01):
    """2-D Allen-Cahn, periodic unit square: u_t = eps lap u + u - u^3."""
    x = np.arange(n) / n
    X, Y = np.meshgrid(x, x, indexing="ij")
    u0 = 0.4 * np.sin(2 * np.pi * X) * np.cos(4 * np.pi * Y) + 0.1 * np.cos(2 * np.pi * (X + Y))

    def f(du, u, p, t):
        du[...] = eps * periodic_laplace(u, n) + u - u**3

    return f, u0


def periodic_laplace(a, n):
    return (np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a) * n * n


class Anomalies:
    """3-D heat, 16^3 points on a cube of side 10, boundary frozen, two Gaussian anomalies in T and in heat capacity."""

    n, length = 16, 10.0

    def __init__(self):
        self.dx = self.length / (self.n - 1)
        g = self.dx * np.arange(self.n)
        X, Y, Z = np.meshgrid(g, g, g, indexing="ij")

        def bump(cx, cy, cz, w):
            return np.exp(-(((X - cx) / w) ** 2) - ((Y - cy) / w) ** 2 - ((Z - cz) / w) ** 2)

        side = self.length
        self.Ci = 1.0 / (
            1.0 + 5 * bump(side / 1.5, side / 2, side / 1.5, 1.0) + 5 * bump(side / 3.0, side / 2, side / 1.5, 1.0)
        )
        self.T0 = 100 * bump(side / 2, side / 2, side / 3.0, 2.0) + 50 * bump(side / 2, side / 2, side / 1.5, 2.0)
        self.t1 = 100 * self.dx**2 / 8.1
        self.radius = 26.506410684181198  # of the Jacobian at lam = 1

    def laplace(self, T):
        out = np.zeros_like(T)
        c = slice(1, -1)
        out[c, c, c] = (
            T[2:, c, c] + T[:-2, c, c] + T[c, 2:, c] + T[c, :-2, c] + T[c, c, 2:] + T[c, c, :-2] - 6 * T[c, c, c]
        ) / self.dx**2
        return out
