"""What is recorded, what is refused, and with which words."""

import math

import numpy as np
import pytest
from fake_kernels import FakeKernel, recorded

from irad.errors import IradError, NotDifferentiableError
from irad.tape.captures import names_of
from irad.tape.function import Gradients, RecordedFunction, Tangents
from irad.tape.memory import vector
from irad.tape.program import Function, build
from irad.tape.tree import Parameters

U = np.linspace(0.5, 1.5, 6)


def kernel(name, names, written, rule, **options):
    """A fake kernel that writes whole arrays: ``rule(values) -> {name: new}``."""
    return FakeKernel(name, names, written, lambda v: {n: (Ellipsis, x) for n, x in rule(v).items()}, **options)


copy = kernel("copy", ("out", "x"), ("out",), lambda v: {"out": 1.0 * v["x"]})
scale = kernel("scale", ("out", "x", "a"), ("out",), lambda v: {"out": v["a"] * v["x"]}, needs=("x",))
add = kernel("add", ("out", "x"), ("out",), lambda v: {"out": v["out"] + v["x"]}, accumulates=("out",))


def record(f, u=U, p=None, t=0.0, **options):
    return RecordedFunction(f, u.copy(), Parameters(p), t, **options)


def rate(function, u=U, t=0.0):
    x, du = vector(u.size, u.dtype), vector(u.size, u.dtype)
    x[:] = u.ravel(order="K")
    function.rate(x, du, t)
    return du


def test_launches_are_bound_to_views_of_any_buffer():
    def f(du, u, p, t):
        scale(du[1:], u[:-1], p[0])
        scale(du[:1], u[-1:], 2.0)

    recorded_f = record(f, p=np.array([3.0]))
    assert recorded_f.autonomous
    assert rate(recorded_f) == pytest.approx([2 * U[-1], *(3 * U[:-1])])


def test_du_is_zero_on_entry():
    def f(du, u, p, t):
        add(du, u)
        add(du, u)

    function = record(f)
    x, du = U.copy(), np.full(6, 99.0)
    for _ in range(2):
        function.rate(x, du, 0.0)
        assert du == pytest.approx(2 * U)


def test_time_and_parameters_reach_scalars():
    def f(du, u, p, t):
        scale(du, u, p["a"] * np.exp(-t) + p["b"][1])

    function = record(f, p={"a": 2.0, "b": np.array([7.0, 0.5])})
    assert not function.autonomous
    for t in (0.0, 1.0, 0.3):
        assert rate(function, t=t) == pytest.approx((2 * math.exp(-t) + 0.5) * U)


def test_keywords():
    def f(du, u, p, t):
        scale(x=u, out=du, a=2.0)

    assert rate(record(f)) == pytest.approx(2 * U)


def test_branches_are_recorded_once_each():
    calls = []

    def f(du, u, p, t):
        calls.append(1)
        if t > 1.0:
            scale(du, u, 10.0)
        elif t > 0.5 and p[0] > 0.0:
            scale(du, u, p[0])
        else:
            scale(du, u, max(t, 0.25))

    function = record(f, p=np.array([3.0]))
    for t, factor in [(0.0, 0.25), (0.3, 0.3), (0.7, 3.0), (2.0, 10.0), (0.1, 0.25), (0.6, 3.0), (0.4, 0.4)]:
        assert rate(function, t=t) == pytest.approx(factor * U)
    assert len(function.programs) == 4
    assert len(calls) == 8
    assert not function.autonomous


def test_derivatives_follow_the_branch():
    def f(du, u, p, t):
        scale(du, u, p[0] if t < 0.5 else p[1] * t)

    function = record(f, p=np.array([3.0, 4.0]))
    gradients = Gradients(Parameters(np.array([3.0, 4.0])), True, [])
    bar = np.empty(6)
    for t, entry, factor in ((0.0, 0, 1.0), (1.5, 1, 1.5)):
        gradients.p[0][:] = 0
        function.reverse(U.copy(), np.ones(6), bar, t, gradients)
        assert bar == pytest.approx(np.full(6, 3.0 if entry == 0 else 6.0))
        expected = np.zeros(2)
        expected[entry] = factor * U.sum()
        assert gradients.p[0] == pytest.approx(expected)
    dot, out = np.ones(6), np.empty(6)
    fixed = Tangents([np.array([0.0, 1.0])])
    function.tangent(U.copy(), np.empty(6), dot, out, 1.5, fixed)
    assert out == pytest.approx(6.0 + 1.5 * U)
    function.tangent(U.copy(), np.empty(6), dot, out, 2.0, fixed)


def test_captures_are_copied_or_not():
    w = np.arange(6.0)

    def f(du, u, p, t):
        add(du, w)

    copied, shared = record(f), record(f, copy=False)
    w[0] = 50.0
    assert rate(copied)[0] == 0.0
    assert rate(shared)[0] == 50.0
    with pytest.raises(IradError, match="w has changed"):
        shared.environment.check()
    copied.environment.check()


def test_views_of_one_captured_array_share_memory():
    both = np.zeros((2, 6))
    a, b = both

    def f(du, u, p, t):
        copy(both[0], u)
        add(du, a)
        scale(b, a, 2.0)
        add(du, both[1])

    function = record(f)
    assert rate(function) == pytest.approx(3 * U)
    assert not both.any()  # the solve works on copies


def test_local_scratch():
    def f(du, u, p, t):
        tmp = np.empty(6)
        scale(tmp, u, 3.0)
        add(du, tmp)

    function = record(f)
    assert rate(function) == pytest.approx(3 * U)
    assert rate(function, 2 * U) == pytest.approx(6 * U)


def test_local_zeros_are_zero_at_every_call():
    def f(du, u, p, t):
        tmp = np.zeros(6)
        add(tmp, u)
        add(du, tmp)

    function = record(f)
    for _ in range(3):
        assert rate(function) == pytest.approx(U)


def test_unwritten_entries_of_scratch_are_constants():
    inner = FakeKernel("inner", ("out", "x"), ("out",), lambda v: {"out": (slice(1, -1), v["x"][1:-1])})
    scratch = np.full(6, 7.0)

    def f(du, u, p, t):
        inner(scratch, u)
        add(du, scratch)

    assert rate(record(f)) == pytest.approx([7.0, *U[1:-1], 7.0])


# refusals ---------------------------------------------------------------------------------------------------


def refused(f, match, error=NotDifferentiableError, u=U, p=None):
    with pytest.raises(error, match=match) as caught:
        record(f, u, p)
    assert error is NotDifferentiableError or not isinstance(caught.value, NotDifferentiableError)


def test_state_carried_through_captured_scratch():
    total = np.zeros(6)

    def f(du, u, p, t):
        add(total, u)
        add(du, total)

    refused(f, "an earlier call of it left in the scratch array total", IradError)
    assert not total.any()


def test_scratch_read_before_it_is_written():
    old = np.zeros(6)

    def f(du, u, p, t):
        add(du, old)
        copy(old, u)

    refused(f, r"add reads 'x' \(old\) before copy .*:\d+", IradError)


def test_reading_one_part_and_writing_another_is_fine():
    both = np.ones((2, 6))

    def f(du, u, p, t):
        add(du, both[0])
        copy(both[1], u)
        add(du, both[1])

    assert rate(record(f)) == pytest.approx(1 + U)


def test_writing_u_or_p():
    def f(du, u, p, t):
        copy(du, u)
        copy(u, du)

    refused(f, "copy writes 'out', which is u", IradError)

    def g(du, u, p, t):
        copy(du, u)
        copy(p, u)

    refused(g, "which is p", IradError, p=np.zeros(6))


def test_a_local_array_that_was_computed():
    w = np.arange(6.0)

    def f(du, u, p, t):
        add(du, 2 * w)

    refused(f, "neither a handle, nor an array that the right-hand side captures")


def test_a_local_copy_that_is_changed_in_place():
    w = np.arange(1.0, 7.0)

    def f(du, u, p, t):
        tmp = w.copy()
        add(tmp, u)
        add(du, tmp)

    refused(f, "reads an array it makes itself")


def test_numpy_writes_to_captured_arrays():
    w = np.zeros(6)

    def f(du, u, p, t):
        w[:] = 0.0
        add(w, u)
        add(du, w)

    refused(f, "writes to a captured array outside a kernel")
    w[0] = 1.0  # and is writeable again


def test_numbers_that_change_from_call_to_call():
    state = {"n": 0}

    def f(du, u, p, t):
        state["n"] += 1
        scale(du, u, float(state["n"]))

    refused(f, "the argument 'a' of scale differ from one call")

    def g(du, u, p, t):
        state["n"] += 1
        for _ in range(state["n"]):
            add(du, u)

    refused(g, "the launches differ")

    def h(du, u, p, t):
        state["n"] += 1
        scale(du, u, t * state["n"])

    refused(h, "the argument 'a' of scale differ")


def test_nothing_writes_du():
    scratch = np.zeros(6)

    def f(du, u, p, t):
        copy(scratch, u)

    refused(f, "no kernel that writes du")


def test_operations_on_handles():
    refused(lambda du, u, p, t: copy(du, 2 * u), r"test_program.py:\d+: 'u' is the handle")
    refused(lambda du, u, p, t: copy(du, np.roll(u, 1)), "numpy.roll is called with it")
    refused(lambda du, u, p, t: scale(du, u, math.sin(t)), "module math")


def test_a_returned_value():
    refused(lambda du, u, p, t: 1.0, "returns a value", IradError)


def test_errors_inside_f_come_through():
    def f(du, u, p, t):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        record(f)


def test_build_keeps_what_f_did():
    def f(du, u, p, t):
        scale(du, u, p[0])

    p = Parameters(np.array([2.0]))
    program = build(Function(f, U.copy(), p, names_of(f)), 0.0)
    (launch,) = program.launches
    assert launch.kernel is scale
    assert launch.names == ("out", "x", "a")
    assert str(launch.loc).split(":")[-1].isdigit()
    assert not program.depends_on_time


def test_bound_launches_are_found_again():
    g = recorded(lambda du, u, p, t: np.multiply(u, 2, out=du))
    function = RecordedFunction(g, U.copy(), Parameters(None), 0.0)
    x, du = U.copy(), np.zeros(6)
    for _ in range(5):
        function.rate(x, du, 0.0)
    assert g.kernel.binds == 1
    function.release()
    function.rate(x, du, 0.0)
    assert g.kernel.binds == 2
