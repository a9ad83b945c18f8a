"""The right-hand side: recorded where it can be, called where not, and the reason kept."""

import numpy as np
import pytest
from fake_kernels import FakeKernel, recorded

from irad.errors import IradError, NotDifferentiableError
from irad.ode.adjoint import adjoint
from irad.ode.problem import ODEProblem
from irad.ode.rhs import RightHandSide
from irad.ode.solve import solve
from irad.transforms import sum as total
from irad.transforms import value_and_grad


def decay_kernel():
    return FakeKernel("decay", ("du", "u", "k"), ("du",), lambda v: {"du": (Ellipsis, -v["k"] * v["u"])}, ("u",))


def test_recorded_functions_are_called_twice_only():
    calls, kernel = [], decay_kernel()

    def f(du, u, p, t):
        calls.append(1)
        kernel(du, u, p[0])

    sol = solve(ODEProblem(f, np.ones(3), (0.0, 1.0), np.array([2.0])), rtol=1e-6, atol=1e-6)
    assert sol.u[-1] == pytest.approx(np.full(3, np.exp(-2.0)), rel=1e-5)
    assert len(calls) == 2
    assert kernel.runs == sol.stats.nf
    assert kernel.jvps == sol.stats.njvp > 0


def test_numpy_functions_are_called_every_time():
    calls = []

    def f(du, u, p, t):
        calls.append(1)
        du[...] = -u

    rhs = RightHandSide(f, np.ones(3), None, 0.0)
    assert not rhs.differentiable
    assert not rhs.autonomous
    du = rhs.vector()
    for _ in range(3):
        du[:] = 7.0
        rhs.rate(rhs.start(), du, 0.0)
        assert du.tolist() == [-1.0] * 3
    assert len(calls) == 4  # one attempt to record it
    with pytest.raises(NotDifferentiableError, match=r"test_rhs\.py:\d+: 'u' is the handle .* neg"):
        rhs.recording()


def test_du_is_zero_on_entry_of_numpy_functions():
    def f(du, u, p, t):
        assert not du.any()
        du[1:-1] += -np.asarray(u)[1:-1]

    sol = solve(ODEProblem(f, np.ones(4), (0.0, 1.0)))
    assert sol.u[-1][0] == sol.u[-1][-1] == 1.0


def test_a_branch_that_cannot_be_recorded_comes_up_later():
    kernel = decay_kernel()

    def f(du, u, p, t):
        if t < 0.5:
            kernel(du, u, 1.0)
        else:
            du[...] = -1.0 * u

    prob = ODEProblem(f, np.ones(2), (0.0, 1.0))
    sol = solve(prob, rtol=1e-6, atol=1e-6)
    assert sol.u[-1] == pytest.approx(np.full(2, np.exp(-1.0)), rel=1e-5)
    with pytest.raises(NotDifferentiableError, match="cannot be differentiated"):
        adjoint(sol, np.ones(2), wrt="u0")


def test_a_kernel_without_derivative_can_be_solved():
    kernel = decay_kernel()

    def refuse(*_, **__):
        raise NotDifferentiableError("no derivative of this")

    kernel.bind_jvp = kernel.bind_vjp = refuse

    def f(du, u, p, t):
        kernel(du, u, 50.0)

    sol = solve(ODEProblem(f, np.ones(2), (0.0, 0.1)), rtol=1e-6, atol=1e-6)
    assert sol.u[-1] == pytest.approx(np.full(2, np.exp(-5.0)), rel=1e-3)
    assert sol.stats.max_radius == pytest.approx(60.0, rel=0.05)
    with pytest.raises(NotDifferentiableError, match="no derivative of this"):
        adjoint(sol, np.ones(2), wrt="u0")


def test_traced_values_belong_into_p():
    kernel = FakeKernel("scaled", ("du", "u", "w"), ("du",), lambda v: {"du": (Ellipsis, v["w"] * v["u"])}, ("u", "w"))

    def loss(w):
        def f(du, u, p, t):
            kernel(du, u, w)

        return total(solve(ODEProblem(f, w, (0.0, 1.0))).u[-1])

    with pytest.raises(IradError, match=r"scaled is launched on a traced value .*\n.*through p"):
        value_and_grad(loss)(np.ones(2))


def test_vectors_and_states():
    u0 = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    rhs = RightHandSide(recorded(lambda du, u, p, t: np.copyto(du, u)), u0, None, 0.0)
    u = rhs.start()
    assert u.tolist() == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]
    assert np.array_equal(rhs.state(u), u0)
    assert not rhs.state(u).flags.writeable
    assert np.array_equal(rhs.shaped(rhs.flat(u0 * 2)), 2 * u0)
    u0[0, 0] = 9.0
    assert rhs.start()[0] == 0.0
