"""Reverse and forward mode of programs with several launches, against each other and complex steps."""

import numpy as np
import pytest
from fake_kernels import FakeKernel, ModelKernels
from ode_reference import Model, complex_gradient, relative

from irad.tape.function import Gradients, RecordedFunction, Tangents
from irad.tape.memory import as_address
from irad.tape.tree import Parameters

N, TIME = 9, 0.7
rng = np.random.default_rng(11)
U = rng.uniform(-1, 1, N)


def whole(name, names, written, rule, needs=(), accumulates=(), **options):
    return FakeKernel(
        name, names, written, lambda v: {n: (Ellipsis, x) for n, x in rule(v).items()}, needs, accumulates, **options
    )


def check(f, p, captured, reference, t=TIME, u=U):
    """All cotangents of f in one call, against complex steps of ``reference(u, p, captured...)``; forward too."""
    parameters = Parameters(p)
    function = RecordedFunction(f, u.copy(order="K"), parameters, t)
    order = "C" if u.flags.c_contiguous else "F"
    flat = u.ravel(order="K").copy()
    seed = rng.normal(size=u.shape)
    gradients = Gradients(parameters, True, captured)
    bar = np.full(flat.size, np.nan)
    b = seed.ravel(order=order).copy()
    kept = b.copy()
    for _ in range(2):  # the second call must not see what the first left behind
        b[:] = kept
        for part in (*gradients.p, *gradients.arrays):
            part[...] = 0
        function.reverse(flat, b, bar, t, gradients)
        gradients.collect()

    def loss(x, q, *arrays):
        return np.sum(seed * reference(x, q, *arrays))

    copies = [a.copy() for a in captured]
    assert relative(bar.reshape(u.shape, order=order), complex_gradient(lambda z: loss(z, p, *copies), u)) < 1e-12
    if p is not None:
        assert relative(gradients.p[0].reshape(p.shape), complex_gradient(lambda z: loss(u, z, *copies), p)) < 1e-12
    for i, array in enumerate(captured):

        def moved(z, i=i):
            return loss(u, p, *copies[:i], z, *copies[i + 1 :])

        assert relative(gradients.arrays[i], complex_gradient(moved, array)) < 1e-12
    u_dot, p_dot = rng.normal(size=flat.size), [rng.normal(size=a.size) for a in parameters.flat]
    arrays = [(as_address(a), a, rng.normal(size=a.shape)) for a in captured]
    du, out = np.full(flat.size, np.nan), np.full(flat.size, np.nan)
    function.tangent(flat, du, u_dot, out, t, Tangents(p_dot, arrays))
    back = bar @ u_dot + sum(a @ b for a, b in zip(gradients.p, p_dot, strict=True))
    back += sum(np.vdot(g, d) for g, (_, _, d) in zip(gradients.arrays, arrays, strict=True))
    assert seed.ravel(order=order) @ out == pytest.approx(back, rel=1e-12)
    assert du == pytest.approx(np.real(reference(u, p, *copies)).ravel(order=order), rel=1e-13)
    return function, b, kept


@pytest.mark.parametrize("form", ["one", "four"])
def test_the_model(form):
    model = Model(N)
    kernels = ModelKernels(model)
    check(getattr(kernels, form), model.p, [kernels.w], lambda u, p, w: model.rate(TIME, u, p, w))


def test_values_that_are_overwritten_are_saved():
    model = Model(N)
    kernels = ModelKernels(model)

    def reference(u, p, w):
        r = p[1] * u * (1 - u**2) + p[3] * u * np.roll(u, -1)
        r = r**2 + p[2] * TIME * w - p[2] * TIME * w
        return p[0] * model.lap(u) + r + p[2] * np.sin(3 * TIME) * w + p[4] * np.cos(TIME * u)

    function, _, _ = check(kernels.seven, model.p, [kernels.w], reference)
    assert len(function.programs) == 1
    assert kernels.squared.vjps == 2


square = whole("square", ("out", "x"), ("out",), lambda v: {"out": v["x"] ** 2}, ("x",))
mix = whole("mix", ("out", "x", "y"), ("out",), lambda v: {"out": v["out"] + v["x"] * v["y"]}, ("x", "y"), ("out",))
copy = whole("copy", ("out", "x"), ("out",), lambda v: {"out": 1.0 * v["x"]})


def test_scratch_used_twice_for_different_things():
    s = np.zeros(N)

    def f(du, u, p, t):
        square(s, u)
        mix(du, s, u)
        copy(s, u)
        mix(du, s, s)
        mix(du, u, s)

    check(f, None, [], lambda u, p: u**3 + 2 * u**2)


def test_the_same_array_under_two_names():
    def f(du, u, p, t):
        mix(du, u, u)

    check(f, None, [], lambda u, p: u * u)


def test_disjoint_and_overlapping_views_in_one_launch():
    add3 = FakeKernel(
        "add3", ("out", "x", "y", "z"), ("out",),
        lambda v: {"out": (Ellipsis, v["x"] * v["y"] + v["z"])}, ("x", "y", "z"),
    )  # fmt: skip

    def f(du, u, p, t):
        add3(du[:4], u[:4], u[4:8], u[2:6])

    def reference(u, p):
        return np.concatenate([u[:4] * u[4:8] + u[2:6], np.zeros(N - 4)])

    check(f, None, [], reference)


def test_a_state_of_which_a_part_is_read():
    def f(du, u, p, t):
        square(du[0], u[1])

    u = rng.normal(size=(2, 5))
    check(f, None, [], lambda u, p: np.stack([u[1] ** 2, 0 * u[1]]), u=u)


def test_fortran_states():
    def f(du, u, p, t):
        square(du[:, 1], u[0, :3])

    u = np.asfortranarray(rng.normal(size=(3, 4)))

    def reference(u, p):
        out = np.zeros((3, 4), u.dtype)
        out[:, 1] = u[0, :3] ** 2
        return out

    check(f, None, [], reference, u=u)


def test_a_rate_that_does_not_depend_on_the_state():
    w = rng.normal(size=N)

    def f(du, u, p, t):
        square(du, w)

    parameters = Parameters(None)
    function = RecordedFunction(f, U.copy(), parameters, TIME)
    gradients, bar = Gradients(parameters, False, [w]), np.full(N, np.nan)
    function.reverse(U.copy(), np.ones(N), bar, TIME, gradients)
    gradients.collect()
    assert not bar.any()
    assert gradients.arrays[0] == pytest.approx(2 * w)
    assert not function.reverse_reads_state(U.copy(), np.ones(N), bar, TIME, gradients)


def test_overwriting_the_rate_ends_what_was_there():
    def f(du, u, p, t):
        square(du, u)
        copy(du, w)
        mix(du, u, w)

    w = rng.normal(size=N)
    check(f, None, [w], lambda u, p, w: w + u * w)


def test_overlapping_captured_views():
    base = rng.normal(size=N + 2)
    left, right = base[:-2], base[2:]

    def f(du, u, p, t):
        mix(du, left, u)
        mix(du, right, right)

    parameters = Parameters(None)
    function = RecordedFunction(f, U.copy(), parameters, TIME)
    gradients, bar = Gradients(parameters, False, [base]), np.empty(N)
    function.reverse(U.copy(), np.ones(N), bar, TIME, gradients)
    gradients.collect()
    expected = np.zeros(N + 2)
    expected[:-2] += U
    expected[2:] += 2 * right
    assert gradients.arrays[0] == pytest.approx(expected)


def test_an_array_of_which_a_part_is_used():
    w = rng.normal(size=(3, N + 4))

    def f(du, u, p, t):
        mix(du, w[1, 2:-2], u)

    check(f, None, [w], lambda u, p, w: w[1, 2:-2] * u)
    inner = w[1, 1:]
    check(f, None, [inner], lambda u, p, z: z[1:-2] * u)


def test_seeds_are_left_alone_where_the_kernel_allows():
    plain = whole("plain", ("out", "x"), ("out",), lambda v: {"out": v["x"] ** 2}, ("x",))
    stubborn = whole("stubborn", ("out", "x"), ("out",), lambda v: {"out": v["x"] ** 2}, ("x",), keep=False)
    _, b, kept = check(lambda du, u, p, t: plain(du, u), None, [], lambda u, p: u**2)
    assert np.array_equal(b, kept)
    assert plain.kept[-1] == ("out",)
    _, b, kept = check(lambda du, u, p, t: stubborn(du, u), None, [], lambda u, p: u**2)
    assert not b.any()


def test_shadows_are_assigned_where_nothing_lies_in_them():
    plain = whole("plain", ("out", "x"), ("out",), lambda v: {"out": v["x"] ** 2}, ("x",))
    check(lambda du, u, p, t: plain(du, u), None, [], lambda u, p: u**2)
    assert ("x",) in plain.assigned


def test_float32_arrays_are_summed_in_double():
    w = np.ones(4, np.float32)

    def f(du, u, p, t):
        mix(du, w, u)

    parameters, u = Parameters(None), np.full(4, 0.1, np.float32)
    function = RecordedFunction(f, u.copy(), parameters, TIME)
    gradients, bar = Gradients(parameters, False, [w]), np.empty(4, np.float32)
    for _ in range(1000):
        function.reverse(u, np.ones(4, np.float32), bar, TIME, gradients)
        gradients.collect()
    assert gradients.arrays[0].dtype == np.float64
    assert gradients.arrays[0] == pytest.approx(np.full(4, 1000 * float(np.float32(0.1))), rel=1e-9)
