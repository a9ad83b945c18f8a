"""The map of a grid in plain NumPy for real or complex numbers: what adjoints and tangents are compared with."""

import numpy as np

from irad.ode.rock2_table import coefficients

STEP = 1e-30


def plain_step(f, t, h, s, u, first):
    """One ROCK2 step as written in the text, and the rate at its start."""
    co = coefficients(s)
    k0 = f(first, u)
    g, older = u + h * co.mu[0] * k0, u
    for j in range(1, co.degree):
        g, older = g + co.kappa[j] * (g - older) + h * co.mu[j] * f(t + co.c[j] * h, g), g
    ka = f(t + co.c[co.degree] * h, g)
    g = g + h * co.sigma * ka
    kb = f(t + co.c[co.degree + 1] * h, g)
    return g + h * (co.sigma + co.phi) * kb - h * co.phi * ka, k0


def states_at(f, u0, grid, samples):
    """States at places (n, theta) of a grid; ``f(t, u)`` returns the rate."""
    u, found = u0, {}
    for n in range(len(grid)):
        t, h = float(grid.t[n]), float(grid.h[n])
        new, slope = plain_step(f, t, h, int(grid.stages[n]), u, grid.first_time(n))
        for m, theta in samples:
            if m == n:
                a, b = (1 + 2 * theta) * (1 - theta) ** 2, theta * (1 - theta) ** 2
                c, d = theta**2 * (3 - 2 * theta), theta**2 * (theta - 1)
                end = f(grid.last_time(n), new) if 0 < theta < 1 else 0.0
                found[(m, theta)] = a * u + h * b * slope + c * new + h * d * end
        u = new
    return [found[s] for s in samples]


def complex_gradient(loss, x):
    """Gradient of a real function of an array by complex steps."""
    out = np.empty(x.shape)
    for i in np.ndindex(*x.shape):
        z = x.astype(complex)
        z[i] += 1j * STEP
        out[i] = loss(z).imag / STEP
    return out


def relative(a, b):
    """Largest difference over the largest entry."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    assert a.shape == b.shape
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-300))


class Model:
    """A non-symmetric, nonlinear, time-dependent system of n equations with 5 parameters and a captured field ``w``.

    u_i' = p0 lap(u)_i + p1 u_i (1 - u_i^2) + p2 sin(3t) w_i + p3 u_i u_{i+1} + p4 cos(t u_i)
    """

    p = np.array([0.9, 1.3, 2.0, 0.4, 0.7])

    def __init__(self, n=14):
        self.n, self.dx = n, 1.0 / (n + 1)
        x = self.dx * np.arange(1, n + 1)
        self.w = x * (1 - x)
        self.radius = 4 * self.p[0] / self.dx**2

    def lap(self, u):
        zero = np.zeros(1, u.dtype)
        return (np.concatenate([u[1:], zero]) + np.concatenate([zero, u[:-1]]) - 2 * u) / self.dx**2

    def rate(self, t, u, p, w):
        reaction = p[1] * u * (1 - u**2)
        return (
            p[0] * self.lap(u) + reaction + p[2] * np.sin(3 * t) * w + p[3] * u * np.roll(u, -1) + p[4] * np.cos(t * u)
        )


def grid_for(radius, stages, t0=0.2, jumps=(), way=1.0):
    """Steps near the stability limit of the given stage counts."""
    from irad.ode.grid import Grid

    h = np.array([way * 0.6 * 0.8 * s * s / radius * (0.15 if s > 20 else 1.0) for s in stages])
    t = t0 + np.concatenate([[0.0], np.cumsum(h)])
    jump = np.zeros(len(stages), bool)
    jump[list(jumps)] = True
    return Grid(t, h, np.array(stages), np.full(len(stages), radius), jump)


__all__ = ["Model", "complex_gradient", "grid_for", "plain_step", "relative", "states_at"]
