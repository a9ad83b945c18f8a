"""The discrete adjoint against complex steps of the replayed map, and against forward mode on the same grid."""

import numpy as np
import pytest
from fake_kernels import ModelKernels
from ode_reference import Model, complex_gradient, grid_for, relative, states_at

from irad.errors import IradError, NotDifferentiableError, ShadowError
from irad.ode import discrete as discrete_module
from irad.ode.adjoint import adjoint
from irad.ode.problem import ODEProblem
from irad.ode.rock2 import ROCK2
from irad.ode.sensitivity import DiscreteAdjoint
from irad.ode.solve import solve
from irad.transforms import jvp

STAGES = [3, 4, 5, 9, 22, 40, 7, 3]
N = 7


@pytest.fixture(scope="module")
def model():
    return Model(N)


@pytest.fixture(scope="module")
def start():
    return np.random.default_rng(0).uniform(-0.5, 1.0, N)


def problem(model, start, form, grid):
    kernels = ModelKernels(model)
    prob = ODEProblem(getattr(kernels, form), start, (float(grid.t[0]), float(grid.t[-1])), model.p.copy())
    return prob, kernels


def rate_of(model, form):
    if form != "seven":
        return model.rate

    def rate(t, u, p, w):
        reaction = p[1] * u * (1 - u**2) + p[3] * u * np.roll(u, -1)
        reaction = reaction**2 + p[2] * t * w - p[2] * t * w
        return p[0] * model.lap(u) + reaction + p[2] * np.sin(3 * t) * w + p[4] * np.cos(t * u)

    return rate


@pytest.mark.parametrize("form", ["one", "four", "seven"])
@pytest.mark.parametrize("way", [1.0, -1.0])
def test_end_of_a_solve(model, start, form, way):
    stages = STAGES if way > 0 else [3, 4, 3]
    grid = grid_for(model.radius, stages, t0=0.2) if way > 0 else grid_for(50 * model.radius, stages, way=-1.0)
    prob, _ = problem(model, start, form, grid)
    sol = solve(prob, ROCK2(), grid=grid)
    q = np.random.default_rng(1).normal(size=N)
    g = adjoint(sol, q, wrt=("u0", "p", "w"))
    rate, end = rate_of(model, form), [(len(stages) - 1, 1.0)]

    def loss(u, p, w):
        return q @ states_at(lambda t, x: rate(t, x, p, w), u, grid, end)[0]

    assert loss(start, model.p, model.w) == pytest.approx(q @ sol.u[-1], rel=1e-13)
    assert relative(g.u0, complex_gradient(lambda z: loss(z, model.p, model.w), start)) < 2e-11
    assert relative(g.p, complex_gradient(lambda z: loss(start, z, model.w), model.p)) < 2e-11
    assert relative(g.w, complex_gradient(lambda z: loss(start, model.p, z), model.w)) < 2e-11


@pytest.mark.parametrize("form", ["one", "four"])
@pytest.mark.parametrize("jumps", [(), (1, 4), (3, 5)])
def test_saved_times(model, start, form, jumps):
    """Saves at the start, the end, on the grid, inside steps, beside jumps, in the last step."""
    grid = grid_for(model.radius, STAGES, jumps=jumps)
    rng = np.random.default_rng(2)
    inside = [(1, 0.37), (3, 0.6), (3, 0.9), (4, 0.25), (7, 0.8)]
    times = sorted([float(grid.t[0]), float(grid.t[4]), float(grid.t[-1])]
                   + [float(grid.t[n] + th * grid.h[n]) for n, th in inside])  # fmt: skip
    prob, kernels = problem(model, start, form, grid)
    sol = solve(prob, ROCK2(), grid=grid, saveat=times)
    assert len(sol.u) == 8
    samples = sol._samples
    q = [rng.normal(size=N) for _ in samples]
    q[2] = None
    g = adjoint(sol, q, wrt=("p", "u0", kernels.w))
    assert g._fields == ("p", "u0", "w")

    def loss(u, p, w):
        found = states_at(lambda t, x: model.rate(t, x, p, w), u, grid, samples)
        return sum(a @ b for a, b in zip(q, found, strict=True) if a is not None)

    expected = sum(a @ b for a, b in zip(q, sol.u, strict=True) if a is not None)
    assert loss(start, model.p, model.w) == pytest.approx(expected, rel=1e-12)
    assert relative(g.u0, complex_gradient(lambda z: loss(z, model.p, model.w), start)) < 2e-11
    assert relative(g.p, complex_gradient(lambda z: loss(start, z, model.w), model.p)) < 2e-11
    assert relative(g.w, complex_gradient(lambda z: loss(start, model.p, z), model.w)) < 2e-11


@pytest.mark.parametrize("form", ["one", "four", "seven"])
def test_against_forward_mode_on_the_same_grid(model, start, form):
    grid = grid_for(model.radius, STAGES, jumps=(2,))
    prob, _ = problem(model, start, form, grid)
    times = [float(grid.t[0]), float(grid.t[2] + 0.3 * grid.h[2]), float(grid.t[5]), float(grid.t[-1])]
    sol = solve(prob, ROCK2(), grid=grid, saveat=times)
    rng = np.random.default_rng(5)
    q = [rng.normal(size=N) for _ in sol.u]
    dots = {"u0": rng.normal(size=N), "p": rng.normal(size=5), "w": rng.normal(size=N)}
    g = adjoint(sol, q, wrt=("u0", "p", "w"))
    for names in (("u0",), ("p",), ("w",), ("u0", "p", "w")):
        moved = jvp(sol, tangents={n: dots[n] for n in names})
        ahead = sum(a @ b for a, b in zip(q, moved, strict=True))
        back = sum(getattr(g, n) @ dots[n] for n in names)
        assert ahead == pytest.approx(back, rel=1e-12)


@pytest.mark.parametrize("checkpoints", [1, 2, 3, 5, 8, 50])
def test_checkpoints_give_the_same_bits(model, start, checkpoints):
    grid = grid_for(model.radius, [3, 4, 5, 3, 6, 3, 7, 3, 4], jumps=(3,))
    prob, _ = problem(model, start, "four", grid)
    times = [float(grid.t[3] + 0.3 * grid.h[3]), float(grid.t[8] + 0.5 * grid.h[8])]
    q = np.random.default_rng(3).normal(size=(2, N))
    kept = solve(prob, ROCK2(), grid=grid, saveat=times, sensealg=DiscreteAdjoint())
    assert kept._trail is not None
    few = solve(prob, ROCK2(), grid=grid, saveat=times, sensealg=DiscreteAdjoint(checkpoints=checkpoints))
    assert few._trail is None
    again = solve(prob, ROCK2(), grid=grid, saveat=times)
    for name in ("u0", "p", "w"):
        a, b, c = (getattr(adjoint(s, q, wrt=("u0", "p", "w")), name) for s in (kept, few, again))
        assert np.array_equal(a, b)
        assert np.array_equal(a, c)


def test_large_states_are_not_copied_and_give_the_same_bits(model, start, monkeypatch):
    grid = grid_for(model.radius, STAGES, jumps=(3,))
    prob, _ = problem(model, start, "seven", grid)
    times = [float(grid.t[3] + 0.3 * grid.h[3]), float(grid.t[7] + 0.5 * grid.h[7])]
    sol = solve(prob, ROCK2(), grid=grid, saveat=times)
    q = np.random.default_rng(3).normal(size=(2, N))
    small = adjoint(sol, q, wrt=("u0", "p", "w"))
    monkeypatch.setattr(discrete_module, "SMALL", 0)
    large = adjoint(sol, q, wrt=("u0", "p", "w"))
    assert all(np.array_equal(a, b) for a, b in zip(small, large, strict=True))


def test_only_what_is_asked_for(model, start):
    grid = grid_for(model.radius, [3, 4])
    prob, _ = problem(model, start, "four", grid)
    sol = solve(prob, ROCK2(), grid=grid)
    q = np.ones(N)
    whole = adjoint(sol, q, wrt=("u0", "p", "w"))
    for name in ("u0", "p", "w"):
        g = adjoint(sol, q, wrt=name)
        assert g._fields == (name,)
        assert getattr(g, name) == pytest.approx(getattr(whole, name), rel=1e-13)


def test_linear_in_u_runs_no_stage_again():
    from fake_kernels import heat_kernel

    heat = heat_kernel()
    heat.needs = frozenset({"Ci", "lam"})
    Ci, dx = np.full((6, 6), 0.7), 0.2

    def f(du, u, p, t):
        heat(du, u, Ci, p, dx)

    u0 = np.random.default_rng(0).normal(size=(6, 6))
    sol = solve(ODEProblem(f, u0, (0.0, 0.1), np.array([1.0])), ROCK2(), sensealg=DiscreteAdjoint())
    runs, q = heat.runs, np.random.default_rng(1).normal(size=(6, 6))
    heat._pull = lambda v, s: {"T": _heat_transposed(Ci, dx, s["dT"])}
    g = adjoint(sol, q, wrt="u0")
    assert heat.runs == runs
    assert heat.vjps == int(sol.grid.stages.sum())
    dot = np.random.default_rng(2).normal(size=(6, 6))
    assert np.vdot(g.u0, dot) == pytest.approx(np.vdot(q, jvp(sol, tangents={"u0": dot})[-1]), rel=1e-12)


def _heat_transposed(Ci, dx, seed):
    from fake_kernels import laplace_transposed

    return laplace_transposed(Ci[1:-1, 1:-1] * seed, Ci.shape, dx)


def test_adaptive_runs_are_differentiated_on_their_grid(model, start):
    kernels = ModelKernels(model)
    prob = ODEProblem(kernels.four, start, (0.2, 0.3), model.p)
    sol = solve(prob, ROCK2(), rtol=1e-4, atol=1e-4)
    q = np.random.default_rng(4).normal(size=N)
    g = adjoint(sol, q)
    ahead = jvp(sol, tangents={"p": np.array([0.0, 0.0, 1.0, 0.0, 0.0])})[-1] @ q
    assert g.p[2] == pytest.approx(ahead, rel=1e-12)
    d = 1e-5
    ends = [
        solve(prob.remake(p=model.p + sign * d * np.eye(5)[2]), ROCK2(), grid=sol.grid).u[-1] @ q for sign in (1, -1)
    ]
    assert (ends[0] - ends[1]) / (2 * d) == pytest.approx(g.p[2], rel=1e-7)


def test_the_solution_keeps_its_own_copies(model, start):
    grid = grid_for(model.radius, [3, 4, 5])
    prob, kernels = problem(model, start, "four", grid)
    sol = solve(prob, ROCK2(), grid=grid)
    before = adjoint(sol, np.ones(N), wrt=("u0", "p", "w"))
    kernels.w[:] = 99.0
    prob.p[:] = -5.0
    kernels.react[:] = np.nan
    after = adjoint(sol, np.ones(N), wrt=("u0", "p", "w"))
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert kernels.react[0] != kernels.react[0]  # scratch of the user is not touched by an adjoint


def test_without_copies_a_change_is_refused(model, start):
    grid = grid_for(model.radius, [3, 4, 5])
    prob, kernels = problem(model, start, "four", grid)
    sol = solve(prob, ROCK2(), grid=grid, copy=False)
    with_copies = solve(prob, ROCK2(), grid=grid)
    got = adjoint(sol, np.ones(N), wrt=("u0", "w"))
    assert np.array_equal(got.u0, adjoint(with_copies, np.ones(N)).u0)
    kernels.w[3] += 1.0
    with pytest.raises(IradError, match="w has changed since the solve"):
        adjoint(sol, np.ones(N))


def test_structures_of_parameters(model, start):
    kernels = ModelKernels(model)

    def f(du, u, p, t):
        kernels.gradient(kernels.flux, u, p["c"])
        kernels.divergence(du, kernels.flux)
        kernels.reaction(kernels.react, u, p["ab"][0][0], p["ab"][1])
        kernels.total(du, u, kernels.react, p["w"], np.sin(3 * t), 0.5, t)

    p = {"c": 0.9, "ab": (np.array([1.3]), np.float64(0.4)), "w": model.w.copy(), "name": "x", "n": 3}
    grid = grid_for(model.radius, [3, 4, 5])
    sol = solve(ODEProblem(f, start, (float(grid.t[0]), float(grid.t[-1])), p), ROCK2(), grid=grid)
    q = np.random.default_rng(0).normal(size=N)
    g = adjoint(sol, q).p
    assert g["name"] is None
    assert g["n"] is None
    assert isinstance(g["c"], float)

    def loss(c, a, b, w):
        full = np.array([c, a, 1.0, b, 0.5])
        return q @ states_at(lambda t, x: model.rate(t, x, full, w), start, grid, [(2, 1.0)])[0]

    x = np.array([0.9, 1.3, 0.4])
    expected = complex_gradient(lambda z: loss(z[0], z[1], z[2], model.w), x)
    assert [g["c"], g["ab"][0][0], g["ab"][1]] == pytest.approx(expected, rel=1e-11)
    assert relative(g["w"], complex_gradient(lambda z: loss(*x, z), model.w)) < 2e-11


def test_float32_gradients_add_up_in_double(model, start):
    from fake_kernels import heat_kernel

    heat = heat_kernel()
    Ci, dx = np.full((6, 6), 0.7, np.float32), 0.2

    def f(du, u, p, t):
        heat(du, u, Ci, p, dx)

    u0 = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    sol = solve(ODEProblem(f, u0, (0.0, 0.1), np.ones(1, np.float32)), ROCK2(), rtol=1e-3, atol=1e-3)
    g = adjoint(sol, np.ones((6, 6)), wrt=("u0", "p", "Ci"))
    assert g.u0.dtype == g.p.dtype == g.Ci.dtype == np.float32
    assert float(g.p[0]) == pytest.approx(float((Ci * g.Ci).sum()), rel=1e-4)  # f depends on p Ci alone


def test_refusals(model, start):
    grid = grid_for(model.radius, [3, 4])
    prob, kernels = problem(model, start, "four", grid)
    sol = solve(prob, ROCK2(), grid=grid)
    with pytest.raises(IradError, match="captures no array named 'x'"):
        adjoint(sol, np.ones(N), wrt="x")
    with pytest.raises(IradError, match="does not use"):
        adjoint(sol, np.ones(N), wrt=(np.ones(3),))
    with pytest.raises(ShadowError, match="shape"):
        adjoint(sol, np.ones(N - 1))
    with pytest.raises(ShadowError, match="3 cotangents were given for 2"):
        adjoint(sol, [np.ones(N)] * 3)
    with pytest.raises(IradError, match="not a way to differentiate"):
        adjoint(sol, np.ones(N), sensealg="backsolve")
    with pytest.raises(IradError, match="p has no"):
        adjoint(solve(prob.remake(p=None, f=lambda du, u, p, t: kernels.whole(du, u, model.p, model.w, t)), grid=grid),
                np.ones(N), wrt="p")  # fmt: skip
    with pytest.raises(ValueError, match="at least 1"):
        DiscreteAdjoint(checkpoints=0)
    plain = solve(ODEProblem(lambda du, u, p, t: du.__setitem__(0, -u[0]), np.ones(1), (0.0, 1.0)))
    with pytest.raises(NotDifferentiableError, match="cannot be differentiated"):
        adjoint(plain, np.ones(1))


def test_a_failed_solve_is_refused(model, start):
    kernels = ModelKernels(model)
    prob = ODEProblem(kernels.four, start, (0.0, 1.0), model.p)
    with pytest.warns(RuntimeWarning, match="maxiters"):
        sol = solve(prob, maxiters=2)
    with pytest.raises(IradError, match="did not reach its end"):
        adjoint(sol, np.ones(N))
    with pytest.raises(IradError, match="did not reach its end"):
        adjoint(sol, [np.ones(N)] * 2)


def test_no_steps(model, start):
    kernels = ModelKernels(model)
    sol = solve(ODEProblem(kernels.four, start, (1.0, 1.0), model.p))
    g = adjoint(sol, np.full(N, 2.0), wrt=("u0", "p"))
    assert np.array_equal(g.u0, np.full(N, 2.0))
    assert not g.p.any()
