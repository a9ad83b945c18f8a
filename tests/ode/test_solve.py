"""The public solve: saving, dense output, tolerances, replays, refusals."""

import math
import sys

import numpy as np
import pytest
from ode_problems import Heat, forced_heat

from irad.errors import IradError
from irad.ode.grid import Grid
from irad.ode.problem import ODEProblem
from irad.ode.retcode import Retcode
from irad.ode.rock2 import ROCK2
from irad.ode.solve import solve


def oscillator():
    """u = (cos t, -sin t), with decay 0.1 and forcing in t so that f depends on time."""

    def f(du, u, p, t):
        du[0] = u[1]
        du[1] = -u[0] + p * math.sin(t)

    return f, np.array([1.0, 0.0])


def exact(t):
    return np.array([math.cos(t), -math.sin(t)])


@pytest.fixture
def prob():
    f, u0 = oscillator()
    return ODEProblem(f, u0, (0.0, 2.0), 0.0)


TIGHT = {"rtol": 1e-7, "atol": 1e-7}


def test_start_and_end_are_saved(prob):
    sol = solve(prob, **TIGHT)
    assert sol.t.tolist() == [0.0, 2.0]
    assert np.array_equal(sol.u[0], prob.u0)
    assert sol.u[0] is not prob.u0
    assert sol.u[-1] == pytest.approx(exact(2.0), abs=1e-6)
    assert sol.retcode is Retcode.SUCCESS
    assert len(sol) == 2


def test_saveat_times_and_interval(prob):
    times = [0.3, 0.0, 1.7, 2.0, 0.3]
    sol = solve(prob, saveat=times, **TIGHT)
    assert sol.t.tolist() == [0.0, 0.3, 1.7, 2.0]
    for t, u in zip(sol.t, sol.u, strict=True):
        assert u == pytest.approx(exact(t), abs=2e-6)
    sol = solve(prob, saveat=0.5, **TIGHT)
    assert sol.t.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    only = solve(prob, saveat=[1.25], **TIGHT)
    assert only.t.tolist() == [1.25]
    assert np.array_equal(only(1.25), only.u[0])


def test_every_step(prob):
    sol = solve(prob, save_everystep=True, **TIGHT)
    assert np.array_equal(sol.t, sol.grid.t)
    assert all(np.array_equal(sol(t), u) for t, u in zip(sol.t, sol.u, strict=True))
    more = solve(prob, save_everystep=True, saveat=[0.123], **TIGHT)
    assert sorted([*sol.t, 0.123]) == more.t.tolist()


def test_dense_output_is_the_same_kept_or_run_again(prob):
    kept, again = solve(prob, dense=True, **TIGHT), solve(prob, **TIGHT)
    times = np.array([0.0, 0.31, 1.9, 0.7, 2.0, float(kept.grid.t[3])])
    a, b = kept(times), again(times)
    for t, x, y in zip(times, a, b, strict=True):
        assert np.array_equal(x, y)
        assert x == pytest.approx(exact(t), abs=2e-6)
    assert kept(0.31).shape == (2,)
    saved = solve(prob, saveat=[0.31], **TIGHT)
    assert saved.u[0] == pytest.approx(kept(0.31), abs=1e-15)


def test_dense_output_is_of_order_four():
    def decay(du, u, p, t):
        du[...] = -u

    errors = []
    for n in (10, 20):
        grid = Grid.uniform(0.0, 1.0, n, stages=40)
        sol = solve(ODEProblem(decay, np.ones(1), (0.0, 1.0)), grid=grid, dense=True)
        t0, t1, mid = grid.t[0], grid.t[1], 0.5 * (grid.t[0] + grid.t[1])
        h, u0, u1 = t1 - t0, sol(t0)[0], sol(t1)[0]
        ideal = 0.5 * (u0 + u1) + h / 8 * (-u0 + u1)
        assert sol(mid)[0] == pytest.approx(ideal, rel=1e-14)
        errors.append(abs(ideal - math.exp(-mid)))
    assert errors[1] < errors[0]


@pytest.mark.parametrize("options", [{}, {"save_everystep": True}, {"saveat": [0.2, 0.9]}, {"tstops": [0.5, 0.7]}])
def test_a_replay_is_bitwise(options):
    f, u0, _ = forced_heat(1)
    prob = ODEProblem(f, u0, (0.0, 1.0))
    sol = solve(prob, ROCK2(), rtol=1e-3, atol=1e-3, **options)
    options.pop("tstops", None)
    again = solve(prob, ROCK2(), grid=sol.grid, **options)
    assert np.array_equal(sol.t, again.t)
    assert all(np.array_equal(x, y) for x, y in zip(sol.u, again.u, strict=True))
    assert again.stats.njvp == 0
    assert again.stats.naccept == sol.stats.naccept
    assert again.stats.nf < sol.stats.nf
    assert again.grid is sol.grid


def test_a_grid_must_fit(prob):
    sol = solve(prob, **TIGHT)
    with pytest.raises(IradError, match=r"runs from 0\.0 to 2\.0"):
        solve(prob.remake(tspan=(0.0, 3.0)), grid=sol.grid)
    with pytest.raises(IradError, match="stage counts"):
        Grid.uniform(0.0, 1.0, 2, stages=300)
    g = Grid.uniform(0.0, 1.0, 4, stages=3)
    with pytest.raises(IradError, match="do not lead"):
        Grid(g.t, g.h * 1.5, g.stages, g.rho, g.jumps)
    with pytest.raises(IradError, match="N \\+ 1"):
        Grid(g.t[1:], g.h, g.stages, g.rho, g.jumps)
    with pytest.raises(IradError, match="one way"):
        Grid(g.t[::-1] * 0, g.h, g.stages, g.rho, g.jumps)


def test_an_unstable_replay_is_found():
    heat = Heat(50, 1)
    prob = ODEProblem(heat.f, heat.mode(1) + 1e-3 * heat.mode(50), (0.0, 50.0))
    with pytest.warns(RuntimeWarning, match="NaN"):
        sol = solve(prob, grid=Grid.uniform(0.0, 50.0, 300, stages=3))
    assert sol.retcode is Retcode.UNSTABLE


def test_array_tolerances():
    def f(du, u, p, t):
        du[...] = np.array([[-1.0, -200.0], [-1.0, -1.0]]) * (u - np.cos(t)) - np.sin(t)

    u0 = np.ones((2, 2))
    loose = np.full((2, 2), 1e-3)
    loose[0, 1] = 1e-8
    prob = ODEProblem(f, u0, (0.0, 1.0))
    few = solve(prob, rtol=0.0, atol=1e-3).stats.naccept
    more = solve(prob, rtol=np.zeros((2, 2)), atol=loose).stats.naccept
    assert more > 2 * few
    with pytest.raises(IradError, match="does not fit"):
        solve(prob, atol=np.ones(3))
    with pytest.raises(IradError, match="not negative"):
        solve(prob, rtol=-1.0)


def test_fortran_and_strided_states():
    heat = Heat(12, 2)
    u0 = heat.mode(1, 2) * np.linspace(1, 2, 12)
    plain = solve(ODEProblem(heat.f, u0, (0.0, 0.02))).u[-1]
    for other in (np.asfortranarray(u0), np.repeat(u0, 2, axis=0)[::2], u0[::-1].copy()[::-1]):
        got = solve(ODEProblem(heat.f, other, (0.0, 0.02)))
        assert got.u[-1] == pytest.approx(plain, abs=1e-14)
        assert got(0.01).shape == (12, 12)


def test_the_users_arrays_are_left_alone(prob):
    u0, p = np.array([1.0, 0.0]), np.array([0.5])

    def f(du, u, p, t):
        assert not u.flags.writeable
        du[0], du[1] = u[1], -u[0] * p[0]

    sol = solve(ODEProblem(f, u0, (0.0, 1.0), p))
    assert u0.tolist() == [1.0, 0.0]
    p[0] = 9.0
    u0[:] = 7.0
    assert sol.u[0].tolist() == [1.0, 0.0]
    assert np.array_equal(sol(1.0), sol.u[-1])  # run again from the solution's own copies


def test_a_changed_capture_is_refused_in_a_rerun():
    w = np.ones(3)

    def f(du, u, p, t):
        du[...] = -w * u

    sol = solve(ODEProblem(f, np.ones(3), (0.0, 1.0)))
    sol(0.5)
    w[1] = 2.0
    with pytest.raises(IradError, match="changed since the solve"):
        sol(0.5)


def test_scratch_that_f_writes_itself_is_no_change():
    scratch = np.zeros(3)

    def f(du, u, p, t):
        scratch[...] = 2.0 * u
        du[...] = -scratch

    sol = solve(ODEProblem(f, np.ones(3), (0.0, 1.0)))
    sol(0.5)
    sol(0.5)


def test_outside_the_span(prob):
    sol = solve(prob)
    with pytest.raises(IradError, match="outside"):
        sol(2.1)
    with pytest.raises(IradError, match="outside"):
        solve(prob, saveat=[-0.1])


def test_no_time_passes(prob):
    sol = solve(prob.remake(tspan=(1.0, 1.0)))
    assert np.array_equal(sol.u[-1], prob.u0)
    assert np.array_equal(sol(1.0), prob.u0)
    assert sol.stats.naccept == 0


def test_a_returned_value_is_refused():
    with pytest.raises(IradError, match="returns a value"):
        solve(ODEProblem(lambda du, u, p, t: -u, np.ones(2), (0.0, 1.0)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("f", np.ones(2), (0, 1)), "function"),
        ((print, 1.0, (0, 1)), "rank 0"),
        ((print, np.ones((1,) * 5), (0, 1)), "rank 5"),
        ((print, np.ones(2, complex), (0, 1)), "complex"),
        ((print, np.ones(2), (0, math.inf)), "finite"),
        ((print, np.ones(2), 3), "two numbers"),
    ],
)
def test_problem_refusals(arguments, message):
    with pytest.raises(IradError, match=message):
        ODEProblem(*arguments)


def test_remake(prob):
    other = prob.remake(p=3.0, tspan=(0, 1))
    assert (other.p, other.tspan, prob.p) == (3.0, (0.0, 1.0), 0.0)
    with pytest.raises(TypeError, match="has f, u0"):
        prob.remake(q=1)


def test_other_methods_are_refused(prob):
    with pytest.raises(IradError, match="ROCK2"):
        solve(prob, "rk4")


def test_a_bar_is_shown(prob, capsys):
    pytest.importorskip("tqdm")
    solve(prob, progress=True)
    assert "100%" in capsys.readouterr().err
    solve(prob)
    assert capsys.readouterr().err == ""


def test_without_tqdm_a_warning_says_so(prob, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.warns(RuntimeWarning, match="pip install tqdm"):
        solve(prob, progress=True)


def test_integer_states_become_floats():
    def f(du, u, p, t):
        du[...] = -u

    assert solve(ODEProblem(f, np.array([1, 2]), (0, 1))).u[-1].dtype == np.float64


def test_retcodes_say_what_to_change():
    for code in Retcode:
        assert code.value.endswith(".")
        assert len(code.value) > 20
