"""Adaptive runs against closed forms, references and counts of evaluations."""

import json
import math
import pathlib

import numpy as np
import pytest
from ode_problems import Anomalies, Heat, allen_cahn, brusselator, forced_heat, growing_heat

from irad.errors import IradError
from irad.ode.problem import ODEProblem
from irad.ode.retcode import Retcode
from irad.ode.rock2 import ROCK2
from irad.ode.solve import solve

COUNTS = json.loads((pathlib.Path(__file__).parent / "data" / "rock2_counts.json").read_text())["counts"]


def run(f, u0, t1, tol, **options):
    return solve(ODEProblem(f, u0, (0.0, t1)), ROCK2(), rtol=tol, atol=tol, **options)


def count(sol):
    return sol.stats.nf + sol.stats.njvp


def check(name, sol, tol, exact, error=True):
    nf, expected = COUNTS[name][f"{tol:g}"]
    assert sol.retcode is Retcode.SUCCESS
    assert abs(count(sol) - nf) <= 0.15 * nf + 2
    assert sol.stats.naccept == len(sol.grid)
    if error:
        assert np.abs(sol.u[-1] - exact).max() <= 1.5 * expected


@pytest.mark.parametrize("tol", [1e-3, 1e-4, 1e-5, 1e-6])
@pytest.mark.parametrize(
    ("name", "n", "dim", "modes"),
    [("heat1d", 100, 1, ((1,), (9,))), ("heat2d", 40, 2, ((1, 1), (3, 5))), ("heat3d", 16, 3, ((1, 1, 1), (2, 3, 4)))],
)
def test_heat(name, n, dim, modes, tol):
    heat = Heat(n, dim)
    check(name, run(heat.f, heat.sum_of_modes(*modes), 0.1, tol), tol, heat.solution(0.1, *modes))


@pytest.mark.parametrize("tol", [1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize(("name", "mode"), [("heat1d_forced", 1), ("heat1d_forced_fast", 100)])
def test_forced_heat(name, mode, tol):
    f, u0, exact = forced_heat(mode)
    check(name, run(f, u0, 1.0, tol), tol, exact(1.0), error=mode == 1)


@pytest.mark.parametrize("tol", [1e-3, 1e-4, 1e-5, 1e-6])
def test_growing_radius(tol):
    f, u0, exact = growing_heat()
    check("heat1d_growing", run(f, u0, 0.01, tol), tol, exact(0.01))


@pytest.mark.parametrize("tol", [1e-3, 1e-4, 1e-5])
def test_brusselator(tol):
    f, u0 = brusselator()
    sol = run(f, u0, 1.0, tol)
    check("brusselator2d_t1", sol, tol, None, error=False)
    w = sol.u[-1]
    reference = {(0, 0, 0): 0.7000915394857812, (0, 9, 19): 0.7679011779205952, (1, 9, 19): 2.577676660838015}
    for place, value in reference.items():
        assert w[place] == pytest.approx(value, abs=1.5 * COUNTS["brusselator2d_t1"][f"{tol:g}"][1])


@pytest.mark.parametrize("tol", [1e-3, 1e-4, 1e-5])
def test_a_source_that_is_switched_on_at_a_stop(tol):
    f, u0 = brusselator()
    sol = run(f, u0, 2.0, tol, tstops=[1.1])
    check("brusselator2d_t2", sol, tol, None, error=False)
    assert 1.1 in sol.grid.t
    assert sol.grid.jumps.sum() == 1
    assert sol.u[-1][0, 9, 19] == pytest.approx(0.7555666323595737, abs=20 * tol)
    assert sol.u[-1][1, 9, 19] == pytest.approx(3.517642624666858, abs=20 * tol)


@pytest.mark.parametrize("tol", [1e-3, 1e-4, 1e-5])
def test_allen_cahn(tol):
    f, u0 = allen_cahn()
    sol = run(f, u0, 2.0, tol)
    check("allen_cahn2d", sol, tol, None, error=False)
    assert sol.u[-1][0, 0] == pytest.approx(0.14546366394537, abs=2 * COUNTS["allen_cahn2d"][f"{tol:g}"][1])
    uniform = run(f, np.full((32, 32), 0.1), 2.0, tol).u[-1]
    exact = 0.1 * math.exp(2) / math.sqrt(1 + 0.01 * (math.exp(4) - 1))
    assert uniform == pytest.approx(np.full((32, 32), exact), abs=10 * tol)


@pytest.mark.parametrize("tol", [1e-3, 1e-4, 1e-5])
def test_anomalies(tol):
    problem = Anomalies()

    def f(du, T, p, t):
        du[...] = problem.Ci * problem.laplace(T)

    for t1, center, largest in ((1.0, 38.7087855157378, 40.9092328699637), (10.0, 3.92345851214441, None)):
        name = f"heat3d_anomalies_t{t1:g}"
        sol = run(f, problem.T0, t1, tol)
        check(name, sol, tol, None, error=False)
        allowed = 1.5 * COUNTS[name][f"{tol:g}"][1]
        assert sol.u[-1][8, 8, 8] == pytest.approx(center, abs=allowed)
        if largest is not None:
            assert sol.u[-1].max() == pytest.approx(largest, abs=allowed)


def test_a_published_count():
    """40-point heat, sin(pi x), t = 0.5, tolerance 1e-6: 2845 evaluations with an estimate every 25 steps."""
    heat = Heat(40, 1)
    sol = run(heat.f, heat.mode(1), 0.5, 1e-6)
    assert count(sol) == pytest.approx(2548, rel=0.15)
    assert count(sol) < 2845


def test_backward_is_forward_of_minus_f():
    f, u0, _ = forced_heat(1)

    def mirrored(du, u, p, t):
        f(du, u, p, -t)
        np.negative(du, out=du)

    alg = ROCK2(spectral_radius=4 * 101**2)
    ahead = solve(ODEProblem(mirrored, u0, (0.0, 0.001)), alg, rtol=1e-8, atol=1e-8)
    back = solve(ODEProblem(f, u0, (0.0, -0.001)), alg, rtol=1e-8, atol=1e-8)
    assert len(ahead.grid) > 5
    assert np.array_equal(ahead.u[-1], back.u[-1])
    assert np.array_equal(ahead.grid.t, -back.grid.t)
    assert np.array_equal(ahead.grid.stages, back.grid.stages)

    def decay(du, u, p, t):
        du[...] = -u

    back = solve(ODEProblem(decay, np.ones(2), (1.0, 0.0)), rtol=1e-7, atol=1e-7)
    assert back.u[-1] == pytest.approx([math.e, math.e], rel=1e-5)
    assert back.t.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_the_stage_limit_shortens_steps(way):
    """A stiff, smooth problem with few stages allowed: h rho may not pass the stable length."""

    def f(du, u, p, t):
        du[...] = -way * 1e4 * (u - 1.0)

    alg = ROCK2(max_stages=5, spectral_radius=1e4)
    sol = solve(ODEProblem(f, np.ones(3), (0.0, way * 1.0)), alg, rtol=1e-3, atol=1e-3)
    assert sol.retcode is Retcode.SUCCESS
    assert sol.stats.ncapped > 100
    assert sol.stats.max_stages == 5
    assert np.abs(sol.grid.h).max() * 1e4 <= 0.81 * 25 - 1.2
    assert sol.u[-1] == pytest.approx(np.ones(3), abs=1e-3)


def test_many_stages_when_stiff():
    heat = Heat(100, 1)
    sol = solve(ODEProblem(heat.f, heat.mode(1), (0.0, 0.5)), ROCK2(spectral_radius=heat.radius), rtol=1e-2, atol=1e-2)
    assert sol.stats.max_stages > 20
    assert heat.radius * 0.5 > 1e4
    assert np.abs(sol.u[-1] - heat.solution(0.5, (1,))).max() < 1e-2


def test_minimum_stages():
    sol = solve(ODEProblem(lambda du, u, p, t: None, np.ones(3), (0.0, 1.0)), ROCK2(min_stages=8))
    assert set(sol.grid.stages.tolist()) == {8}
    assert np.array_equal(sol.u[-1], np.ones(3))


def test_no_dynamics_takes_few_steps():
    def constant(du, u, p, t):
        du[...] = 3.0

    sol = solve(ODEProblem(constant, np.ones(5), (0.0, 1.0)), rtol=1e-6, atol=1e-6)
    assert sol.u[-1] == pytest.approx(np.full(5, 4.0), rel=1e-12)
    assert sol.stats.naccept <= 3
    assert sol.stats.nreject == 0


def test_a_jump_without_a_stop_is_rejected_through():
    heat = Heat(40, 1)

    def f(du, u, p, t):
        heat.apply(du, u)
        if t >= 0.05:
            du *= 400.0

    u0 = heat.mode(1) + 0.3 * heat.mode(5)
    exact = heat.mode(1) * math.exp(heat.eigenvalue(1) * (0.05 + 400 * 0.05))
    sol = run(f, u0, 0.1, 1e-4)
    assert sol.retcode is Retcode.SUCCESS
    assert np.abs(sol.u[-1] - exact).max() < 1e-3
    stopped = run(f, u0, 0.1, 1e-4, tstops=[0.05])
    assert stopped.stats.nreject < sol.stats.nreject
    assert count(stopped) < count(sol)


def test_step_bounds():
    def decay(du, u, p, t):
        du[...] = -u

    prob = ODEProblem(decay, np.ones(1), (0.0, 1.0))
    sol = solve(prob, dt=1e-3, dtmax=0.02, rtol=1e-3, atol=1e-3)
    assert sol.grid.h[0] == 1e-3
    assert sol.grid.h.max() <= 0.02 * 1.01
    assert len(sol.grid) >= 50
    with pytest.warns(RuntimeWarning, match="dtmin"):
        sol = solve(prob, dtmin=0.1, rtol=1e-9, atol=1e-9)
    assert sol.retcode is Retcode.DTMIN
    with pytest.warns(RuntimeWarning, match="maxiters"):
        sol = solve(prob, dtmax=0.01, maxiters=10)
    assert sol.retcode is Retcode.MAXITERS
    assert sol.stats.naccept + sol.stats.nreject == 10
    assert sol.t[-1] < 1.0


def test_blow_up_and_nan_are_found():
    def square(du, u, p, t):
        du[...] = u * u

    with pytest.warns(RuntimeWarning, match="singularity"):
        sol = solve(ODEProblem(square, np.ones(1), (0.0, 2.0)), rtol=1e-5, atol=1e-5)
    assert sol.retcode is Retcode.DTMIN
    assert sol.t[-1] == pytest.approx(1.0, abs=1e-3)

    def poisoned(du, u, p, t):
        du[...] = np.nan if t > 0.5 else 1.0

    with pytest.warns(RuntimeWarning, match="NaN"):
        sol = solve(ODEProblem(poisoned, np.ones(1), (0.0, 1.0)))
    assert sol.retcode is Retcode.UNSTABLE
    assert sol.t[-1] <= 0.5
    assert np.isfinite(sol.u[-1]).all()
    with pytest.warns(RuntimeWarning, match="u0"):
        sol = solve(ODEProblem(square, np.array([np.nan]), (0.0, 1.0)))
    assert sol.retcode is Retcode.NOT_FINITE_AT_START
    assert len(sol.u) == 1


def test_an_impossible_user_radius_raises():
    heat = Heat(10, 1)
    with pytest.raises(IradError, match="spectral radius"):
        solve(ODEProblem(heat.f, heat.mode(1), (0.0, 0.1)), ROCK2(spectral_radius=lambda u, p, t: math.nan))


def test_a_radius_function_is_asked_before_every_step():
    f, u0, exact = growing_heat()
    calls = []

    def radius(u, p, t):
        calls.append(t)
        return (1 + 990000 * t * t) * 4 * 41**2

    sol = solve(ODEProblem(f, u0, (0.0, 0.01)), ROCK2(spectral_radius=radius), rtol=1e-4, atol=1e-4)
    assert len(calls) >= sol.stats.naccept
    assert np.abs(sol.u[-1] - exact(0.01)).max() < 5e-5
    assert sol.stats.njvp == 0


def test_float32_state():
    heat = Heat(16, 3)
    u0 = heat.mode(1, 1, 1).astype(np.float32)

    def f(du, u, p, t):
        assert u.dtype == du.dtype == np.float32
        heat.apply(du, u)

    sol = solve(ODEProblem(f, u0, (0.0, 0.1)), rtol=1e-3, atol=1e-3)
    assert sol.u[-1].dtype == np.float32
    assert np.abs(sol.u[-1] - heat.solution(0.1, (1, 1, 1))).max() < 2e-3


@pytest.mark.parametrize("shape", [(0,), (3, 0), (1,)])
def test_empty_and_tiny_states(shape):
    def decay(du, u, p, t):
        du[...] = -u

    sol = solve(ODEProblem(decay, np.ones(shape), (0.0, 1.0)))
    assert sol.retcode is Retcode.SUCCESS
    assert sol.u[-1].shape == shape
