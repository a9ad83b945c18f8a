"""value_and_grad, gradient, jvp and sum, on functions with and without solves."""

import numpy as np
import pytest
from fake_kernels import FakeKernel, ModelKernels
from ode_reference import Model, complex_gradient, grid_for, relative, states_at

from irad.errors import IradError, NotDifferentiableError, ShadowError
from irad.ode.problem import ODEProblem
from irad.ode.rock2 import ROCK2
from irad.ode.solve import solve
from irad.transforms import gradient, jvp, value_and_grad
from irad.transforms import sum as total

N = 7


@pytest.fixture(scope="module")
def model():
    return Model(N)


@pytest.fixture(scope="module")
def setup(model):
    start = np.random.default_rng(0).uniform(-0.5, 1.0, N)
    grid = grid_for(model.radius, [3, 5, 4, 7])
    kernels = ModelKernels(model)
    return ODEProblem(kernels.one, start, (float(grid.t[0]), float(grid.t[-1])), model.p.copy()), grid


def test_sum():
    assert total(np.ones((2, 3), np.float32)) == 6.0
    assert total([np.ones(2), 3.0]) == 5.0
    assert isinstance(total(np.ones(3)), float)


def test_a_least_squares_loss_of_several_states(model, setup):
    prob, grid = setup
    data = np.random.default_rng(1).normal(size=(3, N))
    times = [float(grid.t[1] + 0.4 * grid.h[1]), float(grid.t[2]), float(grid.t[-1])]
    inside = float(grid.t[3] + 0.25 * grid.h[3])

    def loss(u0, p):
        sol = solve(prob.remake(u0=u0, p=p), ROCK2(), grid=grid, saveat=times)
        misfit = sum(total((u - d) ** 2) for u, d in zip(sol.u, data, strict=True))
        return 0.5 * misfit + total(p**2) - total(sol(inside) * np.arange(N)) / 3

    value, (u0_bar, p_bar) = value_and_grad(loss, wrt=(0, 1))(prob.u0, prob.p)

    def reference(u0, p):
        samples = [*(grid.locate(t) for t in times), grid.locate(inside)]
        *saved, last = states_at(lambda t, x: model.rate(t, x, p, model.w), u0, grid, samples)
        misfit = sum(np.sum((u - d) ** 2) for u, d in zip(saved, data, strict=True))
        return 0.5 * misfit + np.sum(p**2) - np.sum(last * np.arange(N)) / 3

    assert value == pytest.approx(reference(prob.u0, prob.p), rel=1e-12)
    assert isinstance(value, float)
    assert relative(u0_bar, complex_gradient(lambda z: reference(z, prob.p), prob.u0)) < 1e-11
    assert relative(p_bar, complex_gradient(lambda z: reference(prob.u0, z), prob.p)) < 1e-11
    by_name = gradient(loss, wrt="p")(prob.u0, p=prob.p)
    assert by_name == pytest.approx(p_bar, rel=1e-12)
    assert gradient(loss, wrt=-1)(prob.u0, prob.p) == pytest.approx(p_bar, rel=1e-12)
    assert gradient(loss)(prob.u0, prob.p) == pytest.approx(u0_bar, rel=1e-12)


def test_two_solves_in_a_row(model, setup):
    """The end of one solve is the start of the next, with scaled parameters."""
    prob, grid = setup

    def loss(u0, p):
        first = solve(prob.remake(u0=u0, p=p), ROCK2(), grid=grid).u[-1]
        return total(solve(prob.remake(u0=first * first, p=0.5 * p), ROCK2(), grid=grid).u[-1] ** 3)

    u0_bar, p_bar = gradient(loss, wrt=("u0", "p"))(prob.u0, prob.p)

    def reference(u0, p):
        end = [(len(grid) - 1, 1.0)]
        first = states_at(lambda t, x: model.rate(t, x, p, model.w), u0, grid, end)[0]
        return np.sum(states_at(lambda t, x: model.rate(t, x, 0.5 * p, model.w), first * first, grid, end)[0] ** 3)

    assert relative(u0_bar, complex_gradient(lambda z: reference(z, prob.p), prob.u0)) < 1e-11
    assert relative(p_bar, complex_gradient(lambda z: reference(prob.u0, z), prob.p)) < 1e-11


def test_forward_mode_of_a_function_with_solves(model, setup):
    prob, grid = setup
    rng = np.random.default_rng(3)
    u0_dot, p_dot = rng.normal(size=N), rng.normal(size=5)

    def f(u0, p):
        sol = solve(prob.remake(u0=u0, p=p), ROCK2(), grid=grid)
        return {"end": sol.u[-1], "start": sol.u[0] * 2.0, "loss": total(sol.u[-1] ** 2)}

    values, dots = jvp(f, (prob.u0, prob.p), (u0_dot, p_dot))
    u0_bar, p_bar = gradient(lambda u, p: f(u, p)["loss"], wrt=(0, 1))(prob.u0, prob.p)
    assert float(dots["loss"]) == pytest.approx(u0_bar @ u0_dot + p_bar @ p_dot, rel=1e-12)
    assert dots["start"] == pytest.approx(2 * u0_dot)
    assert values["end"].shape == (N,)
    step = 1e-6
    ends = [f(prob.u0 + s * step * u0_dot, prob.p + s * step * p_dot)["end"] for s in (1, -1)]
    assert dots["end"] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-8)


def test_structures_and_floats():
    decay = FakeKernel("decay", ("du", "u", "k"), ("du",), lambda v: {"du": (Ellipsis, -v["k"] * v["u"])}, ("u",))

    def f(du, u, p, t):
        decay(du, u, p["k"][0] * p["n"])

    prob = ODEProblem(f, np.array([1.0, 2.0]), (0.0, 0.5))

    def loss(q):
        return total(solve(prob.remake(p=q), ROCK2(), rtol=1e-8, atol=1e-8).u[-1])

    value, grad = value_and_grad(loss)({"k": (0.7,), "n": 2})
    assert value == pytest.approx(3 * np.exp(-0.7), rel=1e-6)
    assert grad == {"k": (pytest.approx(-3 * np.exp(-0.7), rel=1e-6),), "n": None}
    assert isinstance(grad["k"][0], float)
    only = gradient(lambda k: total(solve(prob.remake(p={"k": (k,), "n": 2}), rtol=1e-8, atol=1e-8).u[-1]))(0.7)
    assert only == pytest.approx(-3 * np.exp(-0.7), rel=1e-6)


def test_gradients_keep_shape_and_type():
    x = np.asfortranarray(np.ones((2, 3), np.float32))
    g = gradient(lambda a: total(a * a * 2.0))(x)
    assert g.dtype == np.float32
    assert g.shape == (2, 3)
    assert g == pytest.approx(4 * np.ones((2, 3)))
    assert np.array_equal(x, np.ones((2, 3)))


# never a silent zero ----------------------------------------------------------------------------------------


def test_results_that_irad_did_not_compute(setup):
    prob, grid = setup
    with pytest.raises(NotDifferentiableError, match="returned a float"):
        value_and_grad(lambda p: total(solve(prob, ROCK2(), grid=grid).u[-1]))(prob.p)
    with pytest.raises(NotDifferentiableError, match="returned nothing"):
        value_and_grad(lambda p: None)(prob.p)
    with pytest.raises(NotDifferentiableError, match="would lose its derivative"):
        value_and_grad(lambda p: total(np.asarray(solve(prob.remake(p=p), grid=grid).u[-1])))(prob.p)
    with pytest.raises(NotDifferentiableError, match="would lose its derivative"):
        value_and_grad(lambda p: float(total(p)))(prob.p)
    with pytest.raises(NotDifferentiableError, match="needs one number"):
        value_and_grad(lambda p: p * 2)(prob.p)
    with pytest.raises(NotDifferentiableError, match="returned a float"):
        jvp(lambda p: 1.0, (prob.p,), (prob.p,))


def test_arguments_that_do_not_matter(setup):
    prob, grid = setup

    def loss(p, q):
        return total(solve(prob.remake(p=p), ROCK2(), grid=grid).u[-1])

    with pytest.raises(NotDifferentiableError, match="did not compute from its arguments"):
        value_and_grad(loss, wrt=1)(prob.p, prob.p)
    with pytest.raises(NotDifferentiableError, match="does not depend on the argument 1"):
        value_and_grad(loss, wrt=(0, 1))(prob.p, prob.p)


def test_wrong_requests(setup):
    prob, grid = setup
    with pytest.raises(NotDifferentiableError, match="holds no floating-point"):
        gradient(lambda p: total(p))(np.arange(3))
    with pytest.raises(IradError, match="without an argument of that name"):
        gradient(lambda p: total(p), wrt="q")(prob.p)
    with pytest.raises(IradError, match="1 positional"):
        gradient(lambda p: total(p), wrt=1)(prob.p)
    with pytest.raises(ShadowError, match="tangent of shape"):
        jvp(lambda p: p, (prob.p,), (np.ones(3),))
    with pytest.raises(IradError, match="2 arguments but 1"):
        jvp(lambda p, q: p, (prob.p, prob.p), (prob.p,))
    with pytest.raises(IradError, match="two tuples"):
        jvp(lambda p: p, prob.p, prob.p)
    sol = solve(prob, ROCK2(), grid=grid)
    with pytest.raises(ShadowError, match="has shape"):
        jvp(sol, tangents={"u0": np.ones(3)})
    with pytest.raises(IradError, match="captures no array named"):
        jvp(sol, tangents={"nothing": np.ones(3)})
    with pytest.raises(IradError, match="jvp\\(sol, tangents="):
        jvp(sol, (1.0,), (1.0,))


def test_a_right_hand_side_without_derivative_is_refused_before_the_solve():
    calls = []

    def f(du, u, p, t):
        calls.append(1)
        du[...] = -p[0] * u[...]

    prob = ODEProblem(f, np.ones(2), (0.0, 1.0))
    with pytest.raises(NotDifferentiableError, match="cannot be differentiated"):
        value_and_grad(lambda p: total(solve(prob.remake(p=p)).u[-1]))(np.ones(1))
    assert len(calls) == 1


def test_a_failed_solve_in_a_loss_raises(setup):
    prob, _ = setup

    def loss(p):
        return total(solve(prob.remake(p=p), maxiters=1, rtol=1e-9, atol=1e-9).u[-1])

    with pytest.raises(NotDifferentiableError, match="did not reach its end"), pytest.warns(RuntimeWarning):
        value_and_grad(loss)(prob.p)


def test_kernels_are_sent_elsewhere():
    with pytest.raises(IradError, match="is a kernel"):
        gradient(FakeKernel("k", ("a",), (), lambda v: {}))
