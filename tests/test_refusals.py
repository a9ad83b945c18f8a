"""What is refused: the class of the error, the user's file and line, the remedy; and nothing is written before.

Each case is a function that must raise. Lines are found by marks in the source below, so that they need no counting.
"""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest

import irad
from irad import Active, Const, Duplicated, DuplicatedNoNeed, Forward, Reverse
from irad.fd import all as everywhere
from irad.fd import d2_xi, d2_yi, d_xa, inn

THIS = sys.modules[__name__]


def line_of(mark: str) -> int:
    """The line that ends in ``# <mark>``."""
    lines = inspect.getsource(THIS).splitlines()
    (found,) = [n for n, text in enumerate(lines, 1) if text.rstrip().endswith(f"# {mark}")]
    return found


class Watched:
    """Arrays that must be, in the end, as they were."""

    def __init__(self, *arrays: np.ndarray) -> None:
        self.arrays = arrays
        self.before = [a.tobytes() for a in arrays]

    def unchanged(self) -> bool:
        return [a.tobytes() for a in self.arrays] == self.before


def refused(error: type[irad.IradError], call, *arrays, mark: str = "", reason: str = "", remedy: str = "") -> None:
    """``call`` raises exactly ``error``, twice, at the marked line, and changes no array."""
    watched = Watched(*arrays)
    for _ in range(2):
        with pytest.raises(error) as e:
            call()
        assert type(e.value) is error
        assert isinstance(e.value, irad.IradError)
        assert reason in str(e.value), str(e.value)
        assert remedy in e.value.remedy, str(e.value)
        assert e.value.remedy
        assert f"Instead: {e.value.remedy}" in str(e.value)
        if mark:
            assert str(e.value).startswith(f"{__file__}:{line_of(mark)}: "), str(e.value)
        assert watched.unchanged()


@irad.kernel  # smooth
def smooth(v, u):
    i = irad.interior(u)
    v[i] = 0.5 * (u[i - 1] + u[i + 1])  # smooth read


@irad.kernel
def copy2(v, u, lo, hi):
    i, j = irad.domain((lo, hi), (0, u.shape[1]))
    v[i, j] = u[i, j]  # copy2


@irad.kernel  # times
def times(y, x, k):
    i = irad.points(y)
    y[i] = k * x[i]


@irad.kernel  # update
def update(v, k):
    i = irad.points(v)
    v[i] = k * v[i]


@irad.kernel  # fluxes
def fluxes(dT, T, q):
    q[everywhere] = -d_xa(T)  # fluxes first
    dT[inn] = -d_xa(q)


def ramp(n=6):
    return np.arange(float(n)) ** 2


# races --------------------------------------------------------------------------------------------------------------


def test_race_of_a_shifted_read():
    @irad.kernel
    def in_place(T):
        i = irad.interior(T)
        T[i] = T[i] + T[i + 1]  # race read

    T = ramp()
    refused(irad.RaceError, lambda: in_place(T), T, mark="race read", reason="T", remedy="second array")


def test_race_of_a_statement():
    @irad.kernel
    def in_place(T):
        T[inn] = inn(T) + d2_xi(T)  # race statement

    T = ramp()
    refused(irad.RaceError, lambda: in_place(T), T, mark="race statement", reason="T", remedy="second array")


def test_race_of_two_writes():
    @irad.kernel
    def two(T, u):
        i = irad.interior(T)
        T[i] = u[i]
        T[i + 1] = 2 * u[i]  # race writes

    T, u = ramp(), ramp()
    refused(irad.RaceError, lambda: two(T, u), T, u, mark="race writes")


def test_race_of_all_points_on_one_entry():
    @irad.kernel
    def total(s, u):
        i = irad.points(u)
        s[0] = s[0] + u[i]  # race total

    s, u = np.zeros(1), ramp()
    refused(irad.RaceError, lambda: total(s, u), s, u, mark="race total")


# constructs ---------------------------------------------------------------------------------------------------------


def test_random_numbers():
    @irad.kernel
    def noisy(v, u):
        i = irad.points(u)
        v[i] = u[i] + np.random.rand()  # random

    v, u = np.zeros(6), ramp()
    refused(irad.NotDifferentiableError, lambda: noisy(v, u), v, u, mark="random")


def test_index_that_depends_on_data():
    @irad.kernel
    def gather(v, u, at):
        i = irad.points(v)
        v[i] = u[at[i]]  # data index

    v, u, at = np.zeros(6), ramp(), np.arange(6)
    refused(irad.NotDifferentiableError, lambda: gather(v, u, at), v, u, mark="data index")


def test_loop_of_data_dependent_length():
    @irad.kernel
    def power(v, u, n):
        i = irad.points(v)
        x = u[i]
        while x < n:  # while
            x = x * x
        v[i] = x

    v, u = np.zeros(6), ramp() + 2
    refused(
        irad.NotDifferentiableError,
        lambda: irad.pullback(power, v, u, 50.0, wrt="u")(np.ones(6)),
        v, u,
    )  # fmt: skip


def test_adjoint_of_a_loop_kernel_without_a_run():
    @irad.kernel
    def loops(v, u):  # loops
        for i in range(len(v)):
            v[i] = u[i]

    v, u, w = np.zeros(6), ramp(), np.ones(6)
    refused(
        irad.NotDifferentiableError,
        lambda: loops.bind_vjp((v, u), {"v": w, "u": np.zeros(6)}),
        v, u, w,
        remedy="irad.pullback",
    )  # fmt: skip


def test_arrays_in_a_list_of_a_loop_kernel():
    @irad.kernel
    def listed(v, u):
        both = [u, v]  # a list
        for a in both:
            v[0] += a[1]

    v, u = np.zeros(6), ramp()
    refused(irad.NotDifferentiableError, lambda: listed(v, u), v, u)


def test_kernel_that_calls_a_kernel():
    @irad.kernel
    def outer(v, u):
        i = irad.points(v)
        smooth(v, u)  # kernel in kernel
        v[i] = u[i]

    v, u = np.zeros(6), ramp()
    refused(irad.NotDifferentiableError, lambda: outer(v, u), v, u, mark="kernel in kernel", remedy="irad.device")


def test_raise_in_a_point_kernel():
    @irad.kernel
    def strict(v, u):
        i = irad.points(v)
        if u[i] < 0:
            raise ValueError("negative")  # raise
        v[i] = u[i]

    v, u = np.zeros(6), ramp()
    refused(irad.NotDifferentiableError, lambda: strict(v, u), v, u, mark="raise")


def test_values_that_no_kernel_takes():
    v = np.zeros(6)
    for bad, reason in (
        (np.zeros(6, complex), "dtype complex128"),
        (np.zeros((1,) * 5), "rank 5"),
        (np.array(1.0), "rank 0"),
        ([1.0], "list"),
        (np.ma.masked_array(ramp()), "mask"),
        (np.zeros(6, ">f8"), "byte order"),
    ):
        refused(irad.IradError, lambda bad=bad: smooth(v, bad), v, reason=reason)


def test_read_only_and_misaligned():
    u, v = ramp(), np.zeros(6)
    v.flags.writeable = False
    refused(irad.IradError, lambda: smooth(v, u), u, v, reason="read-only", remedy="copy()")
    odd = np.zeros(49, np.uint8)[1:].view(np.float64)
    refused(irad.IradError, lambda: smooth(np.zeros(6), odd), odd, reason="misaligned", remedy="copy()")


# overlap ------------------------------------------------------------------------------------------------------------


def test_overlap():
    T = ramp()
    for v, u in ((T, T), (T[1:], T[:-1]), (T[::2], T[::-1][:3]), (T[:4], T[2:])):
        refused(irad.AliasError, lambda v=v, u=u: smooth(v, u), T, mark="smooth", reason="'v'", remedy="copy()")
        refused(irad.AliasError, lambda v=v, u=u: smooth.bind(v, u), T, mark="smooth")


def test_interleaved_arrays_do_not_overlap():
    T = ramp(12)
    odd = T[1::2].copy()
    smooth(T[::2], T[1::2])
    np.testing.assert_array_equal(T[1::2], odd)
    np.testing.assert_array_equal(T[2:-2:2], 0.5 * (odd[:-2] + odd[2:]))


def test_zero_strides():
    v = np.broadcast_to(np.zeros(1), (6,))
    writeable = np.lib.stride_tricks.as_strided(np.zeros(1), (6,), (0,))
    refused(irad.IradError, lambda: smooth(v, ramp()), reason="read-only")
    refused(irad.AliasError, lambda: smooth(writeable, ramp()), writeable, mark="smooth", reason="stride 0")
    read = np.broadcast_to(np.array(3.0), (6,))
    out = np.zeros(6)
    smooth(out, read)  # reading is fine
    np.testing.assert_array_equal(out, [0, 3, 3, 3, 3, 0])


def test_overlapping_shadows():
    v, u, seed, u_bar = np.zeros(6), ramp(), np.ones(6), np.zeros(6)
    for shadows in ((seed, seed), (seed, u), (v, u_bar), (seed, v)):
        refused(
            irad.AliasError,
            lambda s=shadows: irad.autodiff(Reverse, smooth, Duplicated(v, s[0]), Duplicated(u, s[1])),
            v, u, seed, u_bar,
            mark="smooth",
        )  # fmt: skip
    x, x_bar = ramp(), np.zeros(7)
    refused(
        irad.AliasError,
        lambda: irad.autodiff(
            Reverse, smooth2, Duplicated(v, seed), Duplicated(x, x_bar[1:]), Duplicated(u, x_bar[:-1])
        ),
        v, u, x, seed, x_bar,
    )  # fmt: skip
    back = irad.pullback(smooth, v, u, wrt="u")
    refused(irad.AliasError, lambda: back(seed, out={"u": seed}), seed, reason="overlaps the seed of v")


@irad.kernel
def smooth2(v, a, b):
    i = irad.points(v)
    v[i] = a[i] + b[i]


# domains ------------------------------------------------------------------------------------------------------------


def test_access_outside():
    v, u = np.zeros(4), ramp(6)
    refused(irad.DomainError, lambda: smooth(v, u), v, u, mark="smooth read", reason="v")
    refused(irad.DomainError, lambda: smooth.bind(v, u), v, u, mark="smooth read")
    refused(
        irad.DomainError,
        lambda: irad.autodiff(Reverse, smooth, Duplicated(v, np.ones(4)), Duplicated(u, np.zeros(6))),
        v, u,
    )  # fmt: skip
    a, b = np.zeros((4, 3)), np.ones((4, 3))
    for lo, hi in ((0, 5), (-5, 2), (3, 9)):
        refused(irad.DomainError, lambda lo=lo, hi=hi: copy2(a, b, lo, hi), a, b, mark="copy2")
    copy2(a, b, -2, 2)  # a negative index counts from the end
    np.testing.assert_array_equal(a, b)
    copy2(a, b, 7, 5)  # no points
    refused(irad.RaceError, lambda: copy2(a, b, -2, 3), a, b, mark="copy2", reason="two points")


def test_access_outside_after_good_calls():
    v, u = np.zeros(6), ramp()
    for _ in range(3):
        smooth(v, u)
    short = np.zeros(4)
    refused(irad.DomainError, lambda: smooth(short, u), short, u, mark="smooth read")


def test_shapes_that_numpy_would_refuse():
    T, dT = ramp(8), np.zeros(8)
    for wrong in (np.zeros(8), np.zeros(6)):
        refused(irad.DomainError, lambda w=wrong: fluxes(dT, T, w), dT, T, wrong, mark="fluxes first", reason="shape")
    fluxes(dT, T, np.zeros(7))
    np.testing.assert_array_equal(dT[1:-1], 2.0)

    @irad.kernel
    def wide(out, u):
        out[inn] = d2_xi(u) + d2_yi(u)  # wide

    out = np.zeros((5, 5))
    u = np.zeros((7, 5))
    refused(irad.DomainError, lambda: wide(out, u), out, u, mark="wide", reason="shape")


# shadows ------------------------------------------------------------------------------------------------------------


def test_shadow_of_wrong_shape_or_dtype():
    v, u, seed, u_bar = np.zeros(6), ramp(), np.ones(6), np.zeros(6)

    def call(seed=seed, u_bar=u_bar):
        return lambda: irad.autodiff(Reverse, smooth, Duplicated(v, seed), Duplicated(u, u_bar))

    arrays = (v, u, seed, u_bar)
    refused(irad.ShadowError, call(u_bar=np.zeros(5)), *arrays, mark="smooth", reason="(5,)", remedy="zeros_like(u)")
    refused(irad.ShadowError, call(seed=np.ones((6, 1))), *arrays, mark="smooth", reason="(6, 1)")
    refused(irad.ShadowError, call(u_bar=np.zeros(6, np.float32)), *arrays, mark="smooth", reason="float32")
    refused(irad.ShadowError, call(u_bar=0.0), *arrays, mark="smooth", reason="a float, not an array")
    back = irad.pullback(smooth, v, u, wrt="u")
    before = v.tobytes()
    refused(irad.ShadowError, lambda: back(np.ones(5)), mark="smooth", reason="seed of v", remedy="zeros_like(v)")
    refused(irad.ShadowError, lambda: back(seed, out={"u": np.zeros(5)}), seed, mark="smooth", reason="(5,)")
    refused(irad.ShadowError, lambda: back(seed, out={"w": u_bar}), seed, u_bar, mark="smooth", reason="w")
    refused(irad.ShadowError, lambda: back(u=seed), seed, mark="smooth", reason="writes no array u")
    assert v.tobytes() == before


def test_const_on_an_output():
    v, u, u_bar, seed = np.zeros(6), ramp(), np.zeros(6), np.ones(6)
    dT, q = np.zeros(6), np.zeros(5)
    refused(
        irad.ShadowError,
        lambda: irad.autodiff(Reverse, fluxes, Duplicated(dT, seed), Duplicated(u, u_bar), Const(q)),
        dT, q, u, u_bar, seed,
        mark="fluxes", reason="q is Const", remedy="Duplicated(q, shadow)",
    )  # fmt: skip
    refused(
        irad.ShadowError,
        lambda: irad.autodiff(Forward, smooth, Const(v), Duplicated(u, u_bar)),
        v, u, u_bar,
        mark="smooth", reason="v is Const",
    )  # fmt: skip
    irad.autodiff(Reverse, fluxes, Duplicated(dT, seed), Const(u), Const(q))  # nothing active comes there


def test_no_seed():
    v, u, u_bar = np.zeros(6), ramp(), np.zeros(6)
    for first in (v, Const(v)):
        refused(
            irad.ShadowError,
            lambda a=first: irad.autodiff(Reverse, smooth, a, Duplicated(u, u_bar)),
            v, u, u_bar,
            mark="smooth", reason="carries a seed", remedy="Duplicated(v, seed)",
        )  # fmt: skip
    refused(irad.ShadowError, lambda: irad.autodiff(Reverse, times, v, u, Active(2.0)), v, u, mark="times")
    refused(irad.ShadowError, lambda: irad.autodiff(Forward, times, v, u, 2.0), v, u, mark="times", reason="tangent")
    back, push = irad.pullback(smooth, v, u, wrt="u"), irad.pushforward(smooth, v, u, wrt="u")
    refused(irad.ShadowError, back, mark="smooth", reason="no seed", remedy="back(v=seed)")
    refused(irad.ShadowError, push, mark="smooth", reason="no tangent", remedy="push(u=tangent)")


def test_integers_carry_no_derivative():
    y, n, seed = np.zeros(3), np.arange(3), np.ones(3)
    n_bar = np.zeros(3, np.int64)
    refused(
        irad.ShadowError,
        lambda: irad.autodiff(Reverse, times, Duplicated(y, seed), Duplicated(n, n_bar), 2.0),
        y, n, seed,
        mark="times", reason="int64", remedy="astype",
    )  # fmt: skip
    for wrt in ("x", n, "k"):
        refused(irad.ShadowError, lambda w=wrt: irad.pullback(times, y, n, 2, wrt=w), y, n, mark="times")
    with pytest.raises(irad.ShadowError, match="Active takes a float, not a bool"):
        Active(True)
    with pytest.raises(irad.ShadowError, match="Active takes a float, not an array of rank 1"):
        Active(y)


def test_annotations_in_the_wrong_mode():
    y, x, x_bar, seed = np.zeros(3), np.ones(3), np.zeros(3), np.ones(3)
    refused(
        irad.ShadowError,
        lambda: irad.autodiff(Reverse, times, Duplicated(y, seed), x, Duplicated(2.0, 1.0)),
        y, seed,
        mark="times", remedy="Active(k)",
    )  # fmt: skip
    refused(
        irad.ShadowError,
        lambda: irad.autodiff(Forward, times, Duplicated(y, seed), Duplicated(x, x_bar), Active(2.0)),
        y, seed,
        mark="times", remedy="Duplicated(k, tangent)",
    )  # fmt: skip
    refused(irad.IradError, lambda: irad.autodiff("Reverse", times, y, x, 2.0), y, remedy="irad.Reverse")
    refused(irad.IradError, lambda: irad.autodiff(Reverse, times.py_func, y, x, 2.0), y, remedy="@irad.kernel")
    refused(irad.IradError, lambda: times(Duplicated(y, seed), x, 2.0), y, seed, reason="Duplicated")


def test_no_need_of_what_the_kernel_reads():
    v, v_bar = ramp(), np.ones(6)
    refused(
        irad.ShadowError,
        lambda: irad.autodiff(Reverse, update, DuplicatedNoNeed(v, v_bar), Active(2.0)),
        v, v_bar,
        mark="update", reason="reads it", remedy="Duplicated(v, shadow)",
    )  # fmt: skip


def test_wrt_that_is_not_there():
    y, x = np.zeros(3), np.ones(3)
    for wrt, reason in (("z", "name z"), (np.ones(3), "not given"), (("x", "x"), "twice"), (3, "type int")):
        refused(
            irad.ShadowError, lambda w=wrt: irad.pullback(times, y, x, 2.0, wrt=w), y, x, mark="times", reason=reason
        )
