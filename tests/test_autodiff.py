"""Derivatives of a kernel: autodiff on annotated arguments, pullback, pushforward, vjp and jvp.

Values of derivatives are compared with closed forms and by dot products; the corpus and the random kernels do this on a
large scale. Here it is about who owns which array, what is added and what overwritten, and what stays as it was.
"""

from __future__ import annotations

import numpy as np
import pytest

import irad
from irad import Active, Const, Duplicated, DuplicatedNoNeed, Forward, Reverse
from irad.fd import all as everywhere
from irad.fd import d2_xi, d_xa, inn

FIELD = np.array([1.0, 2.0, 3.0, 4.0, 5.0])


@irad.kernel
def heat(dT, T, Ci, lam, dx):
    i = irad.interior(dT)
    dT[i] = lam[0] * Ci[i] * (T[i + 1] - 2 * T[i] + T[i - 1]) / dx**2


@irad.kernel
def heat_close(dT, T, Ci, lam, dx):
    dT[inn] = lam[0] * inn(Ci) * d2_xi(T) / dx**2


@irad.kernel
def square(v):
    i = irad.points(v)
    v[i] = v[i] * v[i]


@irad.kernel
def product(y, a, b, k):
    i = irad.points(y)
    y[i] = k * a[i] * b[i]


@irad.kernel
def by_field(y, x):
    i = irad.points(y)
    y[i] = FIELD[i] * x[i] ** 2


@irad.kernel
def fluxes(dT, T, q, k):
    q[everywhere] = -k * d_xa(T)
    dT[inn] = -d_xa(q)


def setup(n=6, dtype=np.float64):
    rng = np.random.default_rng(0)
    T, Ci, seed = (rng.random(n).astype(dtype) for _ in range(3))
    return np.zeros(n, dtype), T, Ci, np.array([1.5], dtype), 0.5, seed


def heat_adjoint(T, Ci, lam, dx, seed):
    """Cotangents of T, Ci, lam and dx in closed form."""
    n = len(T)
    L = np.zeros((n, n))
    for i in range(1, n - 1):
        L[i, i - 1 : i + 2] = 1.0, -2.0, 1.0
    curvature = L @ T / dx**2
    return (
        L.T @ (lam * Ci * seed) / dx**2,
        lam * curvature * seed,
        np.sum(Ci * curvature * seed),
        np.sum(-2 / dx * lam * Ci * curvature * seed),
    )


# autodiff, reverse --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [heat, heat_close], ids=["point", "close"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_reverse(kernel, dtype):
    dT, T, Ci, lam, dx, seed = setup(dtype=dtype)
    before = [a.copy() for a in (T, Ci, lam)]
    dT_bar, T_bar, Ci_bar, lam_bar = seed.copy(), np.ones_like(T), np.full_like(Ci, 2.0), np.array([3.0], dtype)
    result = irad.autodiff(
        Reverse, kernel, Duplicated(dT, dT_bar), Duplicated(T, T_bar), Duplicated(Ci, Ci_bar),
        Duplicated(lam, lam_bar), Active(dx),
    )  # fmt: skip
    expected = heat_adjoint(T, Ci, lam[0], dx, seed)
    tol = {"rtol": 1000 * np.finfo(dtype).eps, "atol": 1000 * np.finfo(dtype).eps}
    np.testing.assert_allclose(T_bar, 1 + expected[0], **tol)
    np.testing.assert_allclose(Ci_bar, 2 + expected[1], **tol)
    np.testing.assert_allclose(lam_bar[0], 3 + expected[2], **tol)
    assert isinstance(result, tuple)
    assert isinstance(result[0], float)
    np.testing.assert_allclose(result, (expected[3],), **tol)
    # The seed has been taken where the kernel writes, and is untouched elsewhere.
    np.testing.assert_array_equal(dT_bar[1:-1], 0.0)
    np.testing.assert_array_equal(dT_bar[[0, -1]], seed[[0, -1]])
    for a, b in zip((T, Ci, lam), before, strict=True):
        np.testing.assert_array_equal(a, b)
    again = np.zeros_like(dT)
    kernel(again, T, Ci, lam, dx)
    np.testing.assert_array_equal(dT, again)


def test_active_results_come_in_order():
    y, a, b = np.zeros(3), np.array([1.0, 2.0, 3.0]), np.ones(3)

    @irad.kernel
    def affine(y, p, a, q):
        i = irad.points(y)
        y[i] = p * a[i] + 10.0 * q

    assert irad.autodiff(Reverse, affine, Duplicated(y, np.ones(3)), Active(2), a, Active(3.0)) == (6.0, 30.0)
    assert irad.autodiff(Reverse, affine, Duplicated(y, np.ones(3)), q=Active(3.0), a=b, p=2.0) == (30.0,)
    assert irad.autodiff(Reverse, affine, Duplicated(y, np.ones(3)), 2.0, Duplicated(a, np.zeros(3)), 3.0) == ()


def test_overwritten_in_place():
    v, v_bar = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 10.0])
    irad.autodiff(Reverse, square, Duplicated(v, v_bar))
    np.testing.assert_array_equal(v, [1.0, 4.0, 9.0])
    np.testing.assert_array_equal(v_bar, [2.0, 4.0, 60.0])


def test_no_need_runs_only_the_adjoint():
    dT, T, Ci, lam, dx, seed = setup()
    dT[:] = 7.0
    T_bar = np.zeros_like(T)
    irad.autodiff(Reverse, heat, DuplicatedNoNeed(dT, seed.copy()), Duplicated(T, T_bar), Ci, lam, dx)
    np.testing.assert_array_equal(dT, 7.0)
    np.testing.assert_allclose(T_bar, heat_adjoint(T, Ci, lam[0], dx, seed)[0], atol=1e-14)


def test_one_array_twice():
    y, x, x_bar, y_bar = np.zeros(3), np.array([1.0, 2.0, 3.0]), np.zeros(3), np.ones(3)
    irad.autodiff(Reverse, product, Duplicated(y, y_bar), Duplicated(x, x_bar), Duplicated(x, x_bar), 2.0)
    np.testing.assert_array_equal(y, 2 * x**2)
    np.testing.assert_array_equal(x_bar, 4 * x)
    one, two = np.zeros(3), np.zeros(3)
    irad.autodiff(Reverse, product, Duplicated(y, np.ones(3)), Duplicated(x, one), Duplicated(x, two), 2.0)
    np.testing.assert_array_equal(one, 2 * x)
    np.testing.assert_array_equal(two, 2 * x)


def test_bare_written_array_is_scratch():
    dT, T, q = np.zeros(6), np.random.default_rng(1).random(6), np.zeros(5)
    T_bar, seed = np.zeros(6), np.random.default_rng(2).random(6)
    (k_bar,) = irad.autodiff(Reverse, fluxes, Duplicated(dT, seed.copy()), Duplicated(T, T_bar), q, Active(2.0))
    np.testing.assert_allclose(dT[1:-1], 2 * np.diff(T, 2), atol=1e-14)
    expected = heat_adjoint(T, np.full(6, 2.0), 1.0, 1.0, seed)
    np.testing.assert_allclose(T_bar, expected[0], atol=1e-14)
    assert k_bar == pytest.approx(np.vdot(seed[1:-1], np.diff(T, 2)), rel=1e-13)


def test_shadows_have_strides_of_their_own():
    dT, T, Ci, lam, dx, seed = setup()
    expected = heat_adjoint(T, Ci, lam[0], dx, seed)[0]
    wide = np.full((6, 4), np.nan)
    T_bar = wide[::-1, 2]
    T_bar[:] = 0.0
    dT_bar = np.repeat(seed, 3)[::3]
    irad.autodiff(Reverse, heat, Duplicated(dT, dT_bar), Duplicated(T, T_bar), Ci, lam, dx)
    np.testing.assert_allclose(T_bar, expected, atol=1e-14)
    assert np.isnan(wide[:, [0, 1, 3]]).all()


def test_values_between_statements_are_saved():
    @irad.kernel
    def chain(y, a, x):
        a[everywhere] = everywhere(x * x)
        y[everywhere] = everywhere(a * x)
        a[everywhere] = everywhere(y * y * a)

    x = np.array([1.0, 2.0, 3.0])
    y, a = np.zeros(3), np.full(3, 9.0)
    y_bar, a_bar, x_bar = np.ones(3), np.ones(3), np.zeros(3)
    irad.autodiff(Reverse, chain, Duplicated(y, y_bar), Duplicated(a, a_bar), Duplicated(x, x_bar))
    np.testing.assert_array_equal(y, x**3)
    np.testing.assert_array_equal(a, x**8)
    np.testing.assert_allclose(x_bar, 3 * x**2 + 8 * x**7, rtol=1e-14)
    np.testing.assert_array_equal(y_bar, 0.0)
    np.testing.assert_array_equal(a_bar, 0.0)


def test_integer_arrays_are_inactive():
    @irad.kernel
    def scaled(y, x, n, mask):
        i = irad.points(y)
        y[i] = n[i] * x[i] if mask else x[i]

    x, n = np.array([1.0, 2.0]), np.array([3, 4])
    y, x_bar = np.zeros(2), np.zeros(2)
    irad.autodiff(Reverse, scaled, Duplicated(y, np.ones(2)), Duplicated(x, x_bar), n, True)
    np.testing.assert_array_equal(x_bar, [3.0, 4.0])


# autodiff, forward --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [heat, heat_close], ids=["point", "close"])
def test_forward_is_the_transpose_of_reverse(kernel):
    dT, T, Ci, lam, dx, seed = setup()
    rng = np.random.default_rng(3)
    T_dot, Ci_dot, lam_dot, dT_dot = rng.random(6), rng.random(6), rng.random(1), rng.random(6)
    ends = dT_dot[[0, -1]]
    result = irad.autodiff(
        Forward, kernel, Duplicated(dT, dT_dot), Duplicated(T, T_dot), Duplicated(Ci, Ci_dot),
        Duplicated(lam, lam_dot), Duplicated(dx, 0.25),
    )  # fmt: skip
    assert result == ()
    np.testing.assert_array_equal(dT_dot[[0, -1]], ends)
    expected = heat_adjoint(T, Ci, lam[0], dx, seed)
    dots = np.vdot(expected[0], T_dot) + np.vdot(expected[1], Ci_dot) + expected[2] * lam_dot[0] + expected[3] * 0.25
    assert np.vdot(seed[1:-1], dT_dot[1:-1]) == pytest.approx(dots, rel=1e-12)
    np.testing.assert_allclose(dT[1:-1], (lam[0] * Ci * np.pad(np.diff(T, 2), 1) / dx**2)[1:-1], rtol=1e-13)


def test_forward_through_scratch():
    dT, T, q = np.zeros(6), np.random.default_rng(1).random(6), np.zeros(5)
    dT_dot, T_dot = np.zeros(6), np.random.default_rng(2).random(6)
    irad.autodiff(Forward, fluxes, Duplicated(dT, dT_dot), Duplicated(T, T_dot), q, 2.0)
    np.testing.assert_allclose(dT_dot[1:-1], 2 * np.diff(T_dot, 2), atol=1e-14)


# pullback -----------------------------------------------------------------------------------------------------------


def test_pullback_as_often_as_wanted():
    dT, T, Ci, lam, dx, seed = setup()
    T_then, Ci_then = T.copy(), Ci.copy()
    back = irad.pullback(heat, dT, T, Ci, lam, dx, wrt=("T", "lam", "Ci", "dx"))
    assert dT[1] == lam[0] * Ci[1] * (T[2] - 2 * T[1] + T[0]) / dx**2
    T[:] = Ci[:] = dT[:] = np.nan
    kept = seed.copy()
    for scale in (1.0, 2.0):
        found = back(dT=scale * seed) if scale == 2.0 else back(dT=seed)
        assert found._fields == ("T", "lam", "Ci", "dx")
        expected = heat_adjoint(T_then, Ci_then, lam[0], dx, scale * seed)
        np.testing.assert_allclose(found.T, expected[0], atol=1e-13)
        np.testing.assert_allclose(found.Ci, expected[1], atol=1e-13)
        np.testing.assert_allclose(found.lam, [expected[2]], rtol=1e-13)
        assert isinstance(found.dx, float)
        assert found.dx == pytest.approx(expected[3], rel=1e-13)
    np.testing.assert_array_equal(seed, kept)


def test_pullback_copies_what_the_adjoint_reads():
    dT, T, Ci, lam, dx, _ = setup()
    assert irad.pullback(heat, dT, T, Ci, lam, dx, wrt="T").copied == ("Ci", "lam")
    assert irad.pullback(heat, dT, T, Ci, lam, dx, wrt="Ci").copied == ("T", "lam")
    assert irad.pullback(heat, dT, T, Ci, lam, dx, wrt="T", copy=False).copied == ()


def test_pullback_without_copies_notices_changes():
    dT, T, Ci, lam, dx, seed = setup()
    back = irad.pullback(heat, dT, T, Ci, lam, dx, wrt="T", copy=False)
    T[:] = np.nan  # not read by this adjoint
    found = back(dT=seed)
    np.testing.assert_allclose(found.T, heat_adjoint(np.zeros(6), Ci, lam[0], dx, seed)[0], atol=1e-14)
    Ci[2] = np.nextafter(Ci[2], 9)
    with pytest.raises(irad.IradError, match="Ci has changed since heat ran"):
        back(dT=seed)


def test_pullback_into_given_arrays():
    dT, T, Ci, lam, dx, seed = setup()
    expected = heat_adjoint(T, Ci, lam[0], dx, seed)
    back = irad.pullback(heat, dT, T, Ci, lam, dx, wrt=("T", "lam"))
    T_bar, lam_bar = np.full(12, np.nan)[::2], np.full(1, 9.0)
    found = back(dT=seed, out={"T": T_bar, "lam": lam_bar})
    assert found.T is T_bar
    assert found.lam is lam_bar
    np.testing.assert_allclose(T_bar, expected[0], atol=1e-14)
    found = back(dT=seed, out={"T": T_bar}, accumulate=True)
    np.testing.assert_allclose(T_bar, 2 * expected[0], atol=1e-14)
    np.testing.assert_allclose(found.lam, [expected[2]], rtol=1e-14)
    np.testing.assert_allclose(lam_bar, [expected[2]], rtol=1e-14)


def test_pullback_of_an_update_in_place():
    v = np.array([1.0, 2.0, 3.0])
    back = irad.pullback(square, v)
    np.testing.assert_array_equal(v, [1.0, 4.0, 9.0])
    v[:] = 0.0
    seed = np.array([1.0, 1.0, 10.0])
    for _ in range(2):
        np.testing.assert_array_equal(back(v=seed).v, [2.0, 4.0, 60.0])
    np.testing.assert_array_equal(seed, [1.0, 1.0, 10.0])
    out = np.zeros(3)
    back(seed, out={"v": out})
    back(seed, out={"v": out}, accumulate=True)
    np.testing.assert_array_equal(out, [4.0, 8.0, 120.0])


def test_pullback_of_several_outputs():
    @irad.kernel
    def both(p, q, x):
        i = irad.points(x)
        p[i] = 2 * x[i]
        q[i] = 3 * x[i]

    back = irad.pullback(both, np.zeros(2), np.zeros(2), np.ones(2), wrt="x")
    one = np.ones(2)
    np.testing.assert_array_equal(back(p=one).x, 2.0)
    np.testing.assert_array_equal(back(q=one).x, 3.0)
    np.testing.assert_array_equal(back({"p": one, "q": one}).x, 5.0)
    with pytest.raises(irad.ShadowError, match="name what the seed is for"):
        back(one)


def test_a_written_array_called_out():
    @irad.kernel
    def double(out, x):
        i = irad.points(x)
        out[i] = 2 * x[i]

    back = irad.pullback(double, np.zeros(2), np.ones(2), wrt="x")
    x_bar = np.zeros(2)
    np.testing.assert_array_equal(back(out=np.ones(2)).x, 2.0)
    back(np.ones(2), out={"x": x_bar})
    np.testing.assert_array_equal(x_bar, 2.0)


def test_wrt_captured_by_name_and_by_object():
    x = np.arange(5.0)
    for wrt in ("FIELD", "by_field.FIELD", FIELD, ["FIELD"], [FIELD]):
        back = irad.pullback(by_field, np.zeros(5), x, wrt=wrt)
        np.testing.assert_array_equal(back(y=np.ones(5)).FIELD, x**2)


def test_wrt_an_array_that_is_passed_twice():
    x = np.array([1.0, 2.0, 3.0])
    back = irad.pullback(product, np.zeros(3), x, x, 2.0, wrt=[x, "k"])
    found = back(y=np.ones(3))
    np.testing.assert_array_equal(found.a, 4 * x)
    assert found.k == np.sum(x * x)
    np.testing.assert_array_equal(irad.pullback(product, np.zeros(3), x, x, 2.0, wrt="b")(np.ones(3)).b, 2 * x)
    bar = np.ones(3)
    back(y=np.ones(3), out={"a": bar}, accumulate=True)
    np.testing.assert_array_equal(bar, 1 + 4 * x)


def test_wrt_by_default_is_what_the_kernel_reads():
    dT, T, Ci, lam, dx, seed = setup()
    assert irad.pullback(heat, dT, T, Ci, lam, dx)(seed)._fields == ("T", "Ci", "lam", "dx")
    assert irad.pullback(by_field, np.zeros(5), np.zeros(5))(np.ones(5))._fields == ("x",)


def test_nothing_depends_on_it():
    @irad.kernel
    def constant(y, x):
        i = irad.points(y)
        y[i] = 3.0

    np.testing.assert_array_equal(irad.pullback(constant, np.zeros(2), np.ones(2), wrt="x")(np.ones(2)).x, 0.0)


# pushforward, vjp, jvp ----------------------------------------------------------------------------------------------


def test_pushforward():
    dT, T, Ci, lam, dx, seed = setup()
    push = irad.pushforward(heat, dT, T, Ci, lam, dx, wrt=("T", "dx"))
    expected = heat_adjoint(T, Ci, lam[0], dx, seed)
    ran = dT.copy()
    dT[:] = np.nan
    T_then = T.copy()
    T[:] = np.nan
    direction = np.random.default_rng(4).random(6)
    found = push(T=direction, dx=0.5)
    assert found._fields == ("dT",)
    dots = np.vdot(expected[0], direction) + 0.5 * expected[3]
    assert np.vdot(seed[1:-1], found.dT[1:-1]) == pytest.approx(dots, rel=1e-12)
    np.testing.assert_array_equal(found.dT[[0, -1]], 0.0)
    np.testing.assert_allclose(push(T=T_then).dT, ran, rtol=1e-13)
    assert np.isnan(dT).all()


def test_pushforward_of_an_update_in_place():
    v = np.array([1.0, 2.0, 3.0])
    push = irad.pushforward(square, v)
    np.testing.assert_array_equal(v, [1.0, 4.0, 9.0])
    tangent = np.ones(3)
    for _ in range(2):
        np.testing.assert_array_equal(push(v=tangent).v, [2.0, 4.0, 6.0])
    np.testing.assert_array_equal(tangent, 1.0)
    np.testing.assert_array_equal(v, [1.0, 4.0, 9.0])


def test_vjp_changes_nothing():
    v = np.array([1.0, 2.0, 3.0])
    out, back = irad.vjp(square, v, wrt=[v])
    np.testing.assert_array_equal(v, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(out.v, [1.0, 4.0, 9.0])
    np.testing.assert_array_equal(back(np.ones(3)).v, [2.0, 4.0, 6.0])


def test_jvp_changes_nothing():
    y, a, b = np.zeros(3), np.array([1.0, 2.0, 3.0]), np.ones(3)
    out, dots = irad.jvp(product, (y, a, b, 2.0), (None, b, None, 1.0))
    np.testing.assert_array_equal(out.y, 2 * a)
    np.testing.assert_array_equal(dots.y, 2 + a)
    np.testing.assert_array_equal(y, 0.0)
    out, dots = irad.jvp(by_field, (np.zeros(5), np.arange(5.0)), {"FIELD": np.ones(5)})
    np.testing.assert_array_equal(dots.y, np.arange(5.0) ** 2)


def test_kinds_of_annotations():
    dT, T, Ci, lam, dx, seed = setup()
    T_bar = np.zeros(6)
    irad.autodiff(Reverse, heat, Duplicated(dT, seed), Duplicated(T, T_bar), Const(Ci), Const(lam), Const(dx))
    assert T_bar.any()
    assert Active(2).x == 2.0
    assert isinstance(Active(2).x, float)
    assert repr(Reverse) == "Reverse"


# layouts -------------------------------------------------------------------------------------------------------------


@irad.kernel
def weighted(out, u, w, lam):
    i, j = irad.interior(u)
    out[i, j] = lam[j] * w[i, j] * (u[i + 1, j] - u[i, j - 1]) ** 2


def placed(a, layout):
    """The values of ``a`` at other strides, and the array that holds them."""
    if layout == "C":
        held = np.array(a, order="C")
        return held, held
    if layout == "F":
        held = np.array(a, order="F")
        return held, held
    held = np.full(tuple(2 * n + 1 for n in a.shape), -7.0)
    view = held[tuple(slice(-2, None, -2) if layout == "back" else slice(1, None, 2) for _ in a.shape)]
    view[...] = a
    return view, held


@pytest.mark.parametrize("case", range(12))
def test_every_mixture_of_layouts_gives_the_same(case):
    rng = np.random.default_rng(case)
    u, w, seed, dots = (rng.random((7, 6)) for _ in range(4))
    lam = rng.random(6)
    pick = iter(rng.choice(["C", "F", "back", "sliced"], 8))
    results = []
    for mixed in (False, True):

        def place(a, mixed=mixed):
            return placed(a, next(pick) if mixed else "C")

        (out, _), (u1, u_held), (w1, _) = place(np.zeros((7, 6))), place(u), place(w)
        lam1 = np.repeat(lam, 2)[::2] if mixed else lam.copy()
        (out_bar, held), (u_bar, u_bar_held), (w_bar, _) = place(seed), place(np.zeros((7, 6))), place(np.zeros((7, 6)))
        lam_bar = np.zeros(12)[::-2] if mixed else np.zeros(6)
        around = [np.sum(h == -7.0) for h in (u_held, held, u_bar_held)]
        irad.autodiff(
            Reverse, weighted, Duplicated(out, out_bar), Duplicated(u1, u_bar), Duplicated(w1, w_bar),
            Duplicated(lam1, lam_bar),
        )  # fmt: skip
        assert [np.sum(h == -7.0) for h in (u_held, held, u_bar_held)] == around
        g = irad.pullback(weighted, out, u1, w1, lam1, wrt=("u", "w", "lam"))(seed)
        (tangent, _), out_dot = place(dots), np.zeros((7, 6))
        irad.autodiff(Forward, weighted, Duplicated(out, out_dot), Duplicated(u1, tangent), w1, lam1)
        results.append([np.array(a) for a in (out, out_bar, u_bar, w_bar, lam_bar, *g, out_dot)])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)
    plain = results[0]
    d = u[2:, 1:-1] - u[1:-1, :-2]
    expected = np.zeros((7, 6))
    expected[2:, 1:-1] = 2 * lam[1:-1] * w[1:-1, 1:-1] * d * seed[1:-1, 1:-1]
    expected[1:-1, :-2] -= expected[2:, 1:-1].copy()
    np.testing.assert_allclose(plain[2], expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(plain[4][1:-1], np.sum(w[1:-1, 1:-1] * d**2 * seed[1:-1, 1:-1], 0), rtol=1e-12)


def test_pullback_repeated_with_the_same_arrays():
    """What is remembered of a call: results are new arrays, seeds are read anew, scalars start at zero."""

    @irad.kernel
    def scaled(v, u, k):
        i = irad.points(u)
        v[i] = k * u[i] ** 2

    u, seed = np.arange(4.0), np.ones(4)
    back = irad.pullback(scaled, np.zeros(4), u, 2.0, wrt=("u", "k"))
    first = back(v=seed)
    kept = first.u.copy()
    seed[:] = 3.0
    second = back(v=seed)
    np.testing.assert_array_equal(first.u, kept)
    np.testing.assert_array_equal(second.u, 3 * kept)
    assert second.k == 3 * first.k
    out = np.full(4, np.nan)
    for _ in range(3):
        assert back(v=seed, out={"u": out}).u is out
        np.testing.assert_array_equal(out, 3 * kept)
        out[:] = np.nan
    total = np.ones(4)
    for n in (1, 2):
        back(v=seed, out={"u": total}, accumulate=True)
        np.testing.assert_array_equal(total, 1 + 3 * n * kept)
    seed.shape = (2, 2)
    with pytest.raises(irad.ShadowError):
        back(v=seed)
