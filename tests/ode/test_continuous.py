"""The continuous adjoints converge with their tolerances to the exact gradient, which is computed otherwise."""

import numpy as np
import pytest
from fake_kernels import FakeKernel, ModelKernels
from ode_reference import Model, complex_gradient, relative, states_at

from irad.errors import IradError
from irad.ode.adjoint import adjoint
from irad.ode.grid import Grid
from irad.ode.problem import ODEProblem
from irad.ode.rock2 import ROCK2
from irad.ode.sensitivity import DiscreteAdjoint, GaussAdjoint, InterpolatingAdjoint
from irad.ode.solve import solve

N, SPAN = 7, (0.2, 0.35)
METHODS = [InterpolatingAdjoint, GaussAdjoint]


@pytest.fixture(scope="module")
def model():
    return Model(N)


@pytest.fixture(scope="module")
def start():
    return np.random.default_rng(0).uniform(-0.5, 1.0, N)


@pytest.fixture(scope="module")
def truth(model, start):
    """Gradients of a loss at three times: complex steps on fine grids, extrapolated."""
    rng = np.random.default_rng(1)
    q, times = rng.normal(size=(3, N)), (SPAN[0], 0.29, SPAN[1])

    def gradient(steps):
        grid = Grid.uniform(*SPAN, steps, rho=model.radius)
        samples = [(0, 0.0), grid.locate(0.29), (steps - 1, 1.0)]

        def loss(u, p, w):
            found = states_at(lambda t, x: model.rate(t, x, p, w), u, grid, samples)
            return sum(a @ b for a, b in zip(q, found, strict=True))

        return [
            complex_gradient(lambda z: loss(z, model.p, model.w), start),
            complex_gradient(lambda z: loss(start, z, model.w), model.p),
            complex_gradient(lambda z: loss(start, model.p, z), model.w),
        ]

    coarse, fine = gradient(100), gradient(200)
    return q, times, [b + (b - a) / 3 for a, b in zip(coarse, fine, strict=True)]


def solution(model, start, times, method, tol, form="one", **options):
    prob = ODEProblem(getattr(ModelKernels(model), form), start, SPAN, model.p)
    return solve(prob, ROCK2(), saveat=times, sensealg=method, rtol=tol, atol=tol, **options)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("form", "tols"), [("one", (1e-3, 1e-5)), ("four", (1e-2, 1e-3))])
def test_convergence(model, start, truth, method, form, tols):
    q, times, exact = truth
    errors = []
    for tol in tols:
        g = adjoint(solution(model, start, times, method(), tol, form), q, wrt=("u0", "p", "w"))
        errors.append([relative(a, b) for a, b in zip(g, exact, strict=True)])
        assert max(errors[-1]) < 100 * tol
    assert all(fine < coarse / 3 for coarse, fine in zip(*errors, strict=True))


@pytest.mark.parametrize("method", METHODS)
def test_the_adjoints_own_tolerances(model, start, truth, method):
    q, times, exact = truth
    sol = solution(model, start, times, None, 1e-5, dense=True)
    loose = adjoint(sol, q, method(rtol=1e-2, atol=1e-2))
    tight = adjoint(sol, q, method(rtol=1e-5, atol=1e-5))
    assert relative(tight.u0, exact[0]) < 1e-4
    assert relative(tight.u0, exact[0]) < 0.1 * relative(loose.u0, exact[0])


@pytest.mark.parametrize("method", METHODS)
def test_array_tolerances_and_rerun_steps(model, start, truth, method):
    """Without anything kept of the solve the steps are taken again; arrays of tolerances serve lam too."""
    q, times, exact = truth
    kernels = ModelKernels(model)
    prob = ODEProblem(kernels.one, start, SPAN, model.p)
    sol = solve(prob, ROCK2(), saveat=times, rtol=np.full(N, 1e-5), atol=np.full(N, 1e-5))
    assert sol._trail is None
    g = adjoint(sol, q, method(), wrt=("u0", "p", "w"))
    assert all(relative(a, b) < 1e-3 for a, b in zip(g, exact, strict=True))


@pytest.mark.parametrize("method", [*METHODS, DiscreteAdjoint])
def test_backward_in_time(model, start, method):
    """du/dt = -f over the mirrored span has the same solution, and so the same gradient."""
    kernels = ModelKernels(model)
    negated = FakeKernel("negated", ("du", "u", "p", "w", "t"), ("du",),
                         lambda v: {"du": (Ellipsis, -model.rate(-v["t"], v["u"], v["p"], v["w"]))},
                         ("u", "p", "w"))  # fmt: skip

    def mirrored(du, u, p, t):
        negated(du, u, p, kernels.w, t)

    ahead = ODEProblem(kernels.one, start, SPAN, model.p)
    back = ODEProblem(mirrored, start, (-SPAN[0], -SPAN[1]), model.p)
    got = [
        adjoint(solve(prob, ROCK2(), rtol=1e-5, atol=1e-5), np.ones(N), method(), wrt=("u0", "p", "w"))
        for prob in (ahead, back)
    ]
    for a, b in zip(*got, strict=True):
        assert relative(a, b) < 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_a_right_hand_side_that_jumps(method):
    """u' = -k(t) u with k from p[0] to p[1] at t = 0.5: u(1) = u0 exp(-(p0 + p1)/2)."""
    decay = FakeKernel("decay", ("du", "u", "k"), ("du",), lambda v: {"du": (Ellipsis, -v["k"] * v["u"])}, ("u",))

    def f(du, u, p, t):
        decay(du, u, p[1] if t >= 0.5 else p[0])

    p, u0 = np.array([0.5, 3.0]), np.array([2.0, 1.0])
    sol = solve(ODEProblem(f, u0, (0.0, 1.0), p), ROCK2(), tstops=[0.5], rtol=1e-6, atol=1e-6, sensealg=method())
    end = u0 * np.exp(-p.sum() / 2)
    assert sol.u[-1] == pytest.approx(end, rel=1e-5)
    g = adjoint(sol, np.array([1.0, -3.0]))
    loss = np.array([1.0, -3.0]) @ end
    assert g.u0 == pytest.approx(np.array([1.0, -3.0]) * np.exp(-p.sum() / 2), rel=1e-4)
    assert g.p == pytest.approx([-loss / 2, -loss / 2], rel=1e-4)
    exact = adjoint(sol, np.array([1.0, -3.0]), DiscreteAdjoint())
    assert exact.p == pytest.approx(g.p, rel=1e-4)


def test_only_u0(model, start, truth):
    q, times, exact = truth
    g = adjoint(solution(model, start, times, InterpolatingAdjoint(), 1e-5), q, wrt="u0")
    assert g._fields == ("u0",)
    assert relative(g.u0, exact[0]) < 1e-4


def test_no_steps(model, start):
    kernels = ModelKernels(model)
    sol = solve(ODEProblem(kernels.four, start, (1.0, 1.0), model.p), sensealg=InterpolatingAdjoint())
    assert np.array_equal(adjoint(sol, np.full(N, 2.0), wrt="u0").u0, np.full(N, 2.0))


def test_an_adjoint_that_cannot_be_solved_raises():
    """The forward solution is fine, but the adjoint is asked for with a tolerance below rounding."""
    decay = FakeKernel("decay", ("du", "u", "k"), ("du",), lambda v: {"du": (Ellipsis, -v["k"] * v["u"])}, ("u",))

    def f(du, u, p, t):
        decay(du, u, p[0])

    sol = solve(ODEProblem(f, np.ones(1), (0.0, 1.0), np.array([1.0])), ROCK2(), rtol=1e-3, atol=1e-3)
    with pytest.raises(IradError, match="adjoint equation could not be solved"):
        adjoint(sol, np.ones(1), InterpolatingAdjoint(rtol=0.0, atol=1e-300))


def test_options():
    with pytest.raises(ValueError, match="nodes"):
        GaussAdjoint(nodes=0)
