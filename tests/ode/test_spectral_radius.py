import math

import numpy as np
import pytest
from fake_kernels import recorded
from ode_problems import Anomalies, Heat, allen_cahn, brusselator

from irad.errors import IradError
from irad.ode.rhs import RightHandSide
from irad.ode.spectral_radius import PowerMethod, make


def estimate(f, u0, exact, t=0.0):
    rhs = RightHandSide(recorded(f) if exact else f, u0, None, t)
    assert rhs.differentiable == exact
    power = PowerMethod(rhs, 1.0)
    u, du = rhs.start(), rhs.vector()
    rhs.rate(u, du, t)
    rho = power.at(t, u, du, 1.0, False)
    return rho, power, (u, du)


def true_radius(f, u0, t=0.0):
    n = u0.size
    J = np.empty((n, n))
    delta = 1e-6 * max(1.0, np.abs(u0).max())
    for i in range(n):
        e = np.zeros(n)
        e[i] = delta
        above, below = np.zeros(u0.shape), np.zeros(u0.shape)
        f(above, u0 + e.reshape(u0.shape), None, t)
        f(below, u0 - e.reshape(u0.shape), None, t)
        J[:, i] = ((above - below) / (2 * delta)).ravel()
    return np.abs(np.linalg.eigvals(J)).max()


def advection(c, nu, upwind, n=64):
    x = np.arange(n) / n

    def f(du, u, p, t):
        ux = (u - np.roll(u, 1)) * n if upwind else (np.roll(u, -1) - np.roll(u, 1)) * (n / 2)
        du[...] = -c * ux + nu * (np.roll(u, 1) + np.roll(u, -1) - 2 * u) * n * n

    return f, np.exp(-100 * (x - 0.5) ** 2)


def upwind_dirichlet(n):
    def f(du, u, p, t):
        du[...] = -n * u
        du[1:] += n * u[:-1]

    return f, np.sin(np.arange(1, n + 1) / n)


def scaled_brusselator():
    """The fields in units that differ by 1e12: the same spectrum, a badly scaled Jacobian."""
    f, u0 = brusselator(12, 1e-3)
    units = np.array([1e6, 1e-6]).reshape(2, 1, 1)

    def g(du, w, p, t):
        f(du, w / units, p, t)
        du *= units

    return g, u0 * units


def heat_case(n, *modes):
    heat = Heat(n, 1)
    return heat.f, heat.sum_of_modes(*modes), heat.radius


def cases():
    for n in (40, 400, 2000):
        for modes in (((1,),), ((2,),), ((1,), (7,), (23,))):
            yield f"heat1d-{n}-{modes}", *heat_case(n, *modes)
    heat = Heat(100, 1)
    yield "random state", heat.f, np.random.default_rng(3).normal(size=100), heat.radius
    yield "zero state", heat.f, np.zeros(100), heat.radius
    cube = Heat(12, 3)
    yield "heat3d", cube.f, cube.mode(1, 1, 1), cube.radius
    for alpha in (0.1, 1e-3):
        yield f"brusselator-{alpha}", *brusselator(12, alpha), None
    yield "scaled brusselator", *scaled_brusselator(), None
    f, u0 = allen_cahn(16)
    yield "allen-cahn", f, u0, None
    yield "allen-cahn uniform", f, np.full_like(u0, 0.5), None
    problem = Anomalies()

    def anomalies(du, u, p, t):
        du[...] = problem.Ci * _laplace(u, problem.dx)

    yield "anomalies", anomalies, problem.T0, problem.radius
    for c, nu, upwind in ((1.0, 1e-2, False), (1.0, 1e-3, False), (1.0, 0.0, False), (1.0, 1e-3, True)):
        yield f"advection-{nu}-{upwind}", *advection(c, nu, upwind), None


def _laplace(T, dx):
    out = np.zeros_like(T)
    c = slice(1, -1)
    out[c, c, c] = (
        T[2:, c, c] + T[:-2, c, c] + T[c, 2:, c] + T[c, :-2, c] + T[c, c, 2:] + T[c, c, :-2] - 6 * T[c, c, c]
    ) / dx**2
    return out


CASES = {name: rest for name, *rest in cases()}


@pytest.mark.parametrize("exact", [True, False], ids=["jvp", "difference"])
@pytest.mark.parametrize("name", CASES)
def test_estimates_are_at_least_095_of_the_radius(name, exact):
    f, u0, radius = CASES[name]
    rho = radius if radius is not None else true_radius(f, u0)
    got, power, _ = estimate(f, u0, exact)
    assert 0.95 * rho <= got <= 1.35 * rho
    assert power.iterations <= 50


def test_a_non_normal_jacobian_is_overestimated_only():
    for n in (20, 60):
        got, _, _ = estimate(*upwind_dirichlet(n), True)
        assert 0.95 * n <= got <= 2.6 * n


def test_warm_starts_are_short_and_a_doubted_one_recovers():
    heat = Heat(100, 1)
    rho, power, (u, du) = estimate(heat.f, heat.mode(1), True)
    cold = power.iterations
    again = power.at(0.0, u, du, 1.0, False)
    assert power.iterations - cold <= 4
    assert again == pytest.approx(rho, rel=0.02)
    power._v[:] = heat.mode(1)  # a direction that hides the radius
    assert power.at(0.0, u, du, 1.0, True) >= 0.95 * heat.radius


@pytest.mark.parametrize("exact", [True, False])
def test_no_dynamics(exact):
    def constant(du, u, p, t):
        du[...] = 3.0 + 0 * u

    rho, power, _ = estimate(constant, np.ones(5), exact)
    assert rho == pytest.approx(0.0, abs=1e-6)
    assert power.failures == 0


def test_infinite_derivatives_fall_back_to_differences():
    def f(du, u, p, t):  # u, with a derivative 1/0 at u = 0
        du[...] = u / np.where(u.real == 0, 0.0, 1.0) if np.iscomplexobj(u) else u

    with np.errstate(all="ignore"):
        rho, _, _ = estimate(f, np.array([0.0, 1.0, 2.0]), True)
    assert math.isfinite(rho)


def test_given_radii():
    heat = Heat(10, 1)
    rhs = RightHandSide(heat.f, heat.mode(1), np.array([2.0]), 0.0)
    u, du = rhs.start(), rhs.vector()
    assert make(rhs, 5, 1.0).at(0.0, u, du, 1.0, False) == 5.0
    seen = []

    def bound(u, p, t):
        seen.append((u.shape, p[0], t))
        return 7.0

    radius = make(rhs, bound, 1.0)
    assert radius.every == 1
    assert radius.at(0.5, u, du, 1.0, False) == 7.0
    assert seen == [((10,), 2.0, 0.5)]


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_refuses_impossible_radii(bad):
    rhs = RightHandSide(lambda du, u, p, t: None, np.ones(3), None, 0.0)
    u, du = rhs.start(), rhs.vector()
    with pytest.raises(IradError, match="spectral radius"):
        make(rhs, bad, 1.0).at(0.0, u, du, 1.0, False)
