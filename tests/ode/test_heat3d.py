"""The 3-D heat problem of the examples: known sums and sensitivities, and gradients from matrix exponentials.

Run with a NumPy stand-in for the kernel and with the real one.
"""

import numpy as np
import pytest
from fake_kernels import FakeKernel, heat_kernel
from ode_problems import Anomalies

from irad.domains import interior
from irad.kernel import kernel
from irad.ode.adjoint import adjoint
from irad.ode.problem import ODEProblem
from irad.ode.rock2 import ROCK2
from irad.ode.sensitivity import DiscreteAdjoint, GaussAdjoint, InterpolatingAdjoint
from irad.ode.solve import solve
from irad.transforms import jvp, value_and_grad
from irad.transforms import sum as total

SUM, SENSITIVITY = 8885.926770894, -9605.321476019  # of the final state at lam = 1, with respect to lam


def real_kernel():
    @kernel
    def diffusion3d_step(dT, T, Ci, lam, dx):
        i, j, k = interior(dT)
        dT[i, j, k] = (
            lam[0]
            * Ci[i, j, k]
            * (
                (T[i + 1, j, k] - 2 * T[i, j, k] + T[i - 1, j, k]) / dx**2
                + (T[i, j + 1, k] - 2 * T[i, j, k] + T[i, j - 1, k]) / dx**2
                + (T[i, j, k + 1] - 2 * T[i, j, k] + T[i, j, k - 1]) / dx**2
            )
        )

    return diffusion3d_step


@pytest.fixture(scope="module", params=["fake", "real"])
def heat(request):
    return heat_kernel() if request.param == "fake" else real_kernel()


@pytest.fixture(scope="module")
def setup():
    return Anomalies()


def problem(heat, setup, p=1.0):
    Ci, dx = setup.Ci.copy(), setup.dx

    def f(du, u, p, t):
        heat(du, u, Ci, p, dx)

    return ODEProblem(f, setup.T0, (0.0, setup.t1), np.array([p]))


@pytest.fixture(scope="module")
def exact(setup):
    """Gradients of the sum of the final state with respect to T0 and Ci, by matrix exponentials."""
    linalg = pytest.importorskip("scipy.sparse.linalg")
    shape, t1 = setup.T0.shape, setup.t1
    inner = np.zeros(shape)
    inner[1:-1, 1:-1, 1:-1] = setup.Ci[1:-1, 1:-1, 1:-1]
    count = inner.size

    def forward(v):
        return (inner * setup.laplace(v.reshape(shape))).ravel()

    def backward(v):
        g = np.zeros(np.add(shape, 2))
        g[1:-1, 1:-1, 1:-1] = inner * v.reshape(shape)
        out = -6 * g
        for axis in range(3):
            out += np.roll(g, 1, axis) + np.roll(g, -1, axis)
        return (out[1:-1, 1:-1, 1:-1] / setup.dx**2).ravel()

    a, b = np.random.default_rng(1).normal(size=(2, count))
    assert abs(a @ forward(b) - b @ backward(a)) < 1e-9
    trace = -6 * inner.sum() / setup.dx**2
    A = linalg.LinearOperator((count, count), matvec=forward, rmatvec=backward, dtype=float)
    At = linalg.LinearOperator((count, count), matvec=backward, rmatvec=forward, dtype=float)

    def exp(op, t, v):
        return linalg.expm_multiply(op * t, v, traceA=trace * t)

    seed, T0 = np.ones(count), setup.T0.ravel()
    nodes, weights = np.polynomial.legendre.leggauss(16)
    Ci_bar = np.zeros(count)
    for x, w in zip(nodes, weights, strict=True):
        t = 0.5 * t1 * (1 + x)
        lap = setup.laplace(exp(A, t, T0).reshape(shape)).ravel()
        Ci_bar += 0.5 * t1 * w * exp(At, t1 - t, seed) * lap
    return exp(At, t1, seed).reshape(shape), Ci_bar.reshape(shape), exp(A, t1, T0).reshape(shape)


def test_sum_and_sensitivity(heat, setup, exact):
    tol, rel = (1e-6, 1e-5) if isinstance(heat, FakeKernel) else (1e-8, 1e-7)
    sol = solve(problem(heat, setup), ROCK2(), rtol=tol, atol=tol, sensealg=DiscreteAdjoint())
    assert sol.u[-1].sum() == pytest.approx(SUM, rel=rel)
    assert np.abs(sol.u[-1] - exact[2]).max() < 100 * rel
    g = adjoint(sol, np.ones_like(sol.u[-1]), wrt=("u0", "p", "Ci"))
    assert g.p[0] == pytest.approx(SENSITIVITY, rel=rel)
    assert np.abs(g.u0 - exact[0]).max() < 10 * rel * np.abs(exact[0]).max()
    assert np.abs(g.Ci - exact[1]).max() < 10 * rel * np.abs(exact[1]).max()
    assert g.p[0] == pytest.approx(np.vdot(g.Ci, setup.Ci), rel=1e-10)


@pytest.mark.parametrize("method", [InterpolatingAdjoint, GaussAdjoint])
def test_continuous_gradients(heat, setup, exact, method):
    sol = solve(problem(heat, setup), ROCK2(), rtol=1e-6, atol=1e-6, sensealg=method())
    g = adjoint(sol, np.ones_like(setup.T0), wrt=("u0", "p", "Ci") if method is GaussAdjoint else ("u0", "p"))
    assert g.p[0] == pytest.approx(SENSITIVITY, rel=1e-4)
    assert np.abs(g.u0 - exact[0]).max() < 1e-4 * np.abs(exact[0]).max()
    if method is GaussAdjoint:
        assert np.abs(g.Ci - exact[1]).max() < 1e-4 * np.abs(exact[1]).max()


def test_the_loss_function_of_the_interface(heat, setup):
    prob = problem(heat, setup, 3.0)
    for method, rel in ((None, 1e-5), (InterpolatingAdjoint(), 1e-3)):

        def loss(p, method=method):
            return total(solve(prob.remake(p=p), ROCK2(), rtol=1e-6, atol=1e-6, sensealg=method).u[-1])

        value, grad = value_and_grad(loss)(np.array([1.0]))
        assert value == pytest.approx(SUM, rel=1e-5)
        assert grad.shape == (1,)
        assert grad[0] == pytest.approx(SENSITIVITY, rel=rel)


def test_a_replay_is_bitwise_and_forward_mode_agrees(heat, setup):
    prob = problem(heat, setup)
    sol = solve(prob, ROCK2(), rtol=1e-5, atol=1e-5)
    again = solve(prob, ROCK2(), grid=sol.grid)
    assert np.array_equal(sol.u[-1], again.u[-1])
    rng = np.random.default_rng(0)
    seed, dots = rng.normal(size=setup.T0.shape), {"u0": rng.normal(size=setup.T0.shape), "p": np.array([0.7])}
    dots["Ci"] = rng.normal(size=setup.T0.shape)
    g = adjoint(sol, seed, wrt=("u0", "p", "Ci"))
    ahead = np.vdot(jvp(sol, tangents=dots)[-1], seed)
    assert ahead == pytest.approx(sum(np.vdot(getattr(g, n), d) for n, d in dots.items()), rel=1e-12)
    end, moved = jvp(
        lambda u0, p: solve(prob.remake(u0=u0, p=p), ROCK2(), grid=sol.grid).u[-1],
        (setup.T0, np.array([1.0])), (dots["u0"], dots["p"]),
    )  # fmt: skip
    assert np.array_equal(end, sol.u[-1])
    assert np.vdot(moved, seed) == pytest.approx(np.vdot(g.u0, dots["u0"]) + g.p[0] * 0.7, rel=1e-12)


def test_many_stages(heat, setup):
    """A long time and a loose tolerance: the stage count passes 20, and the gradient is still exact."""
    prob = problem(heat, setup).remake(tspan=(0.0, 400.0))
    sol = solve(prob, ROCK2(spectral_radius=setup.radius), rtol=1e-3, atol=1e-2, sensealg=DiscreteAdjoint())
    assert setup.radius * 400.0 >= 1e4
    assert sol.stats.max_stages > 20
    seed = np.random.default_rng(0).normal(size=setup.T0.shape)
    g = adjoint(sol, seed, wrt=("p", "Ci"))
    ahead = np.vdot(jvp(sol, tangents={"p": np.array([1.0])})[-1], seed)
    assert g.p[0] == pytest.approx(ahead, rel=1e-9)
    assert g.p[0] == pytest.approx(np.vdot(g.Ci, setup.Ci), rel=1e-9)
