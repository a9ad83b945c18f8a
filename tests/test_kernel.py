"""Calling kernels: values against NumPy, types, captures, the compiled fast path, bound launches, looking inside."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import irad
from irad import recording
from irad.fd import all as every
from irad.fd import d2_xi, d2_yi, inn
from irad.kernel import Kernel
from irad.launch.threads import using_threads

GLOBAL_FIELD = np.array([1.0, 2.0, 3.0, 4.0])
GLOBAL_FACTOR = 2.0


@irad.device
def twice(x):
    return 2.0 * x


@irad.kernel
def axpy(y, x, a=3.0):
    i = irad.points(y)
    y[i] = y[i] + a * x[i]


@irad.kernel
def by_globals(y, x):
    i = irad.points(y)
    y[i] = GLOBAL_FACTOR * x[i] + GLOBAL_FIELD[i]


@irad.kernel
def by_helper(y, x):
    i = irad.points(y)
    y[i] = twice(x[i])


@irad.kernel
def laplacian(out, u, h):
    i, j = irad.interior(u)
    out[i, j] = (u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - 4 * u[i, j]) / h**2


@irad.kernel
def laplacian_close(out, u, h):
    out[inn] = (d2_xi(u) + d2_yi(u)) / h**2


def numpy_laplacian(u, h):
    out = np.zeros_like(u)
    out[1:-1, 1:-1] = (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]) / h**2
    return out


def laid_out(a: np.ndarray, layout: str) -> np.ndarray:
    """The same values at other strides."""
    if layout == "F":
        return np.asfortranarray(a)
    if layout == "C":
        return np.ascontiguousarray(a)
    if layout == "reversed":
        return np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1]
    wide = np.full((2 * a.shape[0], 3 * a.shape[1]), np.nan, a.dtype)
    wide[::2, 1::3] = a
    return wide[::2, 1::3]


@pytest.mark.parametrize("kernel", [laplacian, laplacian_close], ids=["point", "close"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layouts", ["CC", "FF", "CF", ("strided", "C"), ("reversed", "strided")], ids=str)
def test_values_for_any_strides_and_precision(kernel, dtype, layouts):
    u = np.random.default_rng(0).random((13, 17)).astype(dtype)
    out = laid_out(np.zeros_like(u), layouts[0])
    kernel(out, laid_out(u, layouts[1]), 0.5)
    assert out.dtype == dtype
    np.testing.assert_allclose(out, numpy_laplacian(u, dtype(0.5)), rtol=0, atol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 1), (2, 7), (3, 3), (3, 200)], ids=str)
def test_small_and_empty_arrays(shape):
    u = np.random.default_rng(1).random(shape)
    for kernel in (laplacian, laplacian_close):
        out = np.full(shape, 7.0)
        if kernel is laplacian_close and min(shape) < 2:
            continue  # inn(u) of fewer than two entries is no array expression
        kernel(out, u, 1.0)
        expected = np.full(shape, 7.0)
        if min(shape) > 2:
            expected[1:-1, 1:-1] = numpy_laplacian(u, 1.0)[1:-1, 1:-1]
        np.testing.assert_allclose(out, expected, atol=1e-14)


def test_ranks_one_to_four():
    @irad.kernel
    def four(y, x):
        i, j, k, l = irad.points(y)  # noqa: E741
        y[i, j, k, l] = x[i, j, k, l] ** 2

    @irad.kernel
    def three(y, x):
        i, j, k = irad.points(y)
        y[i, j, k] = x[i, j, k] ** 2

    for kernel, shape in ((four, (2, 3, 4, 5)), (three, (3, 4, 5))):
        x = np.random.default_rng(2).random(shape)
        y = np.zeros(shape)
        kernel(y, x)
        np.testing.assert_array_equal(y, x**2)
    y = np.zeros(4)
    axpy(y, np.arange(4.0), 2.0)
    np.testing.assert_array_equal(y, 2.0 * np.arange(4.0))


def test_large_launch_is_the_same_on_threads():
    u = np.random.default_rng(3).random((700, 300))
    found = []
    for n in (1, 2, 3):
        with using_threads(n):
            out = np.zeros_like(u)
            laplacian(out, u, 0.1)
            found.append(out.tobytes())
    assert found[0] == found[1] == found[2]
    np.testing.assert_allclose(np.frombuffer(found[0]).reshape(u.shape), numpy_laplacian(u, 0.1), atol=1e-10)


def test_keywords_and_defaults():
    y = np.zeros(3)
    axpy(y, np.ones(3))
    axpy(a=1.0, x=np.ones(3), y=y)
    axpy(y, x=np.ones(3))
    np.testing.assert_array_equal(y, [7.0, 7.0, 7.0])
    with pytest.raises(TypeError, match=r"axpy\(\): missing a required argument: 'x'"):
        axpy(y)
    with pytest.raises(TypeError, match="unexpected keyword argument 'b'"):
        axpy(y, np.ones(3), b=1.0)
    np.testing.assert_array_equal(y, [7.0, 7.0, 7.0])


@pytest.mark.parametrize("a", [2, 2.0, True, np.float64(2.0), np.float32(2.0), np.int32(2)], ids=lambda a: str(type(a)))
def test_kinds_of_scalars(a):
    y = np.zeros(3)
    axpy(y, np.ones(3), a)
    np.testing.assert_array_equal(y, float(a) * np.ones(3))


def test_strong_and_weak_scalars():
    third = np.full(3, 1 / 3, np.float32)
    y = np.zeros(3, np.float32)
    axpy(y, third, 0.1)
    np.testing.assert_array_equal(y, np.float32(0.1) * third)
    z = np.zeros(3, np.float32)
    axpy(z, third, np.float64(0.1))
    np.testing.assert_array_equal(z, (np.float64(0.1) * third).astype(np.float32))


def test_subclasses_lists_and_odd_arrays():
    y = np.zeros(4)
    axpy(y, np.memmap.__new__(np.memmap, "/dev/zero", np.float64, "r", shape=4), 1.0)
    for bad in ([1.0] * 4, np.ma.masked_array(np.ones(4)), np.ones(4, complex), np.ones(4, ">f8"), None, "x"):
        with pytest.raises(irad.IradError):
            axpy(y, bad, 1.0)
    np.testing.assert_array_equal(y, np.zeros(4))


# captures -----------------------------------------------------------------------------------------------------------


def test_captured_globals_are_looked_up_at_each_launch(monkeypatch):
    y, x = np.zeros(4), np.ones(4)
    for factor, field in ((2.0, GLOBAL_FIELD), (5.0, GLOBAL_FIELD), (5.0, np.arange(4.0)), (7, np.arange(8.0)[::2])):
        monkeypatch.setitem(globals(), "GLOBAL_FACTOR", factor)
        monkeypatch.setitem(globals(), "GLOBAL_FIELD", field)
        for _ in range(3):
            by_globals(y, x)
            np.testing.assert_array_equal(y, factor + field)


def test_captured_closure_and_its_change():
    k = 2.0

    @irad.kernel
    def scale(y, x):
        i = irad.points(y)
        y[i] = k * x[i]

    y, x = np.zeros(3), np.ones(3)
    scale(y, x)
    scale(y, x)
    assert y[0] == 2.0
    k = 4.0
    scale(y, x)
    assert y[0] == 4.0


def test_an_exchanged_helper_is_seen(monkeypatch):
    y, x = np.zeros(3), np.ones(3)
    by_helper(y, x)
    by_helper(y, x)
    assert y[0] == 2.0

    @irad.device
    def thrice(x):
        return 3.0 * x

    monkeypatch.setitem(globals(), "twice", thrice)
    by_helper(y, x)
    assert y[0] == 3.0


def test_kernels_work_where_there_is_no_source():
    code = (
        "import numpy as np, irad\n"
        "k = 3.0\n"
        "@irad.kernel\ndef f(y, x):\n    i = irad.points(y)\n    y[i] = k * x[i]\n"
        "y = np.zeros(2)\nf(y, np.ones(2))\n"
        "print(y[0], irad.pullback(f, y, np.ones(2), wrt='x')(np.ones(2)).x[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["3.0", "3.0"], done.stderr


# the compiled way of a call -----------------------------------------------------------------------------------------


def test_usual_calls_do_not_come_to_python(monkeypatch):
    kernel = irad.kernel(axpy.py_func)
    y, x = np.zeros(4), np.ones(4)
    kernel(y, x, 1.0)
    calls = []
    monkeypatch.setattr(Kernel, "prepare", lambda self, *a: calls.append(a))
    for _ in range(5):
        kernel(y, x, 1.0)
    assert calls == []
    np.testing.assert_array_equal(y, 6.0)


def test_variants_by_strides_are_all_right_and_few():
    kernel = irad.kernel(laplacian.py_func)
    u = np.random.default_rng(4).random((12, 9))
    expected = numpy_laplacian(u, 1.0)
    for _ in range(3):
        for layout in ("strided", "C", "F"):
            out = laid_out(np.zeros_like(u), layout)
            kernel(out, laid_out(u, layout), 1.0)
            np.testing.assert_allclose(out, expected, atol=1e-13)
    assert len(kernel.specs) == 3
    assert len(kernel.specialisations()) == 1


def test_negative_indices_wrap_in_a_variant_of_its_own():
    @irad.kernel
    def shifted(y, x, lo):
        i = irad.domain((lo, y.shape[0]))
        y[i] = x[i - 1]

    x = np.arange(5.0)
    for lo in (1, 0, 1, 0):
        y = np.full(5, -1.0)
        shifted(y, x, lo)
        expected = np.roll(x, 1)
        expected[:lo] = -1.0
        np.testing.assert_array_equal(y, expected)
    assert len(shifted.specs) == 2


def test_first_calls_from_many_threads():
    kernel = irad.kernel(axpy.py_func)
    barrier = threading.Barrier(6)

    def work(n):
        y = np.zeros(50)
        barrier.wait()
        for _ in range(20):
            kernel(y, np.ones(50), float(n))
        return y

    with ThreadPoolExecutor(6) as pool:
        for n, y in enumerate(pool.map(work, range(6))):
            np.testing.assert_array_equal(y, 20.0 * n)
    assert len(kernel.specialisations()) == 1


def test_recorded_calls_do_not_run():
    class Recorder:
        def __init__(self):
            self.calls = []

        def launch(self, kernel, args, options):
            self.calls.append((kernel, args, dict(options)))

    y, x, recorder = np.zeros(3), np.ones(3), Recorder()
    axpy(y, x, 1.0)
    with recording.recording(recorder):
        axpy(y, x, 1.0)
        axpy(y, x, a=2.0)
        with recording.suspended():
            axpy(y, x, 1.0)
    axpy(y, x, 1.0)
    assert [c[2] for c in recorder.calls] == [{}, {"a": 2.0}]
    np.testing.assert_array_equal(y, 3.0)


# bound launches -----------------------------------------------------------------------------------------------------


def test_bound_launch():
    y, x = np.zeros(3), np.ones(3)
    bound = axpy.bind(y, x, 2.0)
    bound()
    x[:] = 10.0
    bound()
    np.testing.assert_array_equal(y, 22.0)
    bound.set("a", 1.0)
    bound()
    np.testing.assert_array_equal(y, 32.0)


def test_bound_derivatives():
    u, h = np.random.default_rng(5).random((6, 7)), 0.5
    out, seed, bar, cell = (
        np.zeros_like(u),
        np.random.default_rng(6).random(u.shape),
        np.full(u.shape, 5.0),
        np.zeros(1),
    )
    kept = seed.copy()
    back = laplacian.bind_vjp((out, u, h), {"out": seed, "u": bar}, {"h": cell}, keep_seed=("out",), assign=("u",))
    tangent, out_dot = np.random.default_rng(7).random(u.shape), np.zeros_like(u)
    push = laplacian.bind_jvp((out, u, h), {"out": out_dot, "u": tangent}, {"h": 0.25})
    for _ in range(2):
        cell[0] = 0.0
        back()
        push()
        np.testing.assert_array_equal(seed, kept)
        assert np.vdot(seed, out_dot) == pytest.approx(np.vdot(bar, tangent) + 0.25 * cell[0], rel=1e-12)
    np.testing.assert_allclose(out, numpy_laplacian(u, h), atol=1e-12)


def test_written_arrays_without_a_shadow_have_a_zero_seed():
    @irad.kernel
    def both(y, w, x):
        i = irad.points(y)
        w[i] = x[i] * x[i]
        y[i] = 3.0 * w[i] + x[i]

    x = np.array([1.0, 2.0])
    y, w, seed, bar = np.zeros(2), np.zeros(2), np.ones(2), np.zeros(2)
    back = both.bind_vjp((y, w, x), {"y": seed, "x": bar}, keep_seed=["y"], assign=iter(["x"]))
    for _ in range(2):
        back()
        np.testing.assert_array_equal(bar, 6 * x + 1)

    @irad.kernel
    def chain(y, w, x):
        w[every] = every(x * x)
        y[every] = every(3.0 * w + x)

    with pytest.raises(irad.ShadowError, match="hand derivatives on through w, which has no shadow"):
        chain.bind_vjp((y, w, x), {"y": seed, "x": bar})
    w_bar = np.zeros(2)
    bar[:] = 0.0
    chain.bind_vjp((y, w, x), {"y": seed, "x": bar, "w": w_bar})()
    np.testing.assert_array_equal(bar, 6 * x + 1)


def test_what_the_adjoint_needs():
    u = np.zeros((5, 5))
    assert laplacian.adjoint_needs((u, u, 1.0), {"out", "u"}) == (frozenset(), ())
    reads, saves = laplacian.adjoint_needs((u, u, 1.0), {"out", "u", "h"})
    assert reads == {"u"}
    assert saves == ()

    @irad.kernel
    def square(v):
        i = irad.points(v)
        v[i] = v[i] ** 2

    assert square.adjoint_needs((np.zeros(3),), {"v"}) == (frozenset(), ((0, "v", "v@0"),))


def test_parameters():
    infos = by_globals.params((np.zeros(4), np.zeros(4)))
    assert [(p.name, p.written, p.read, p.capture is not None) for p in infos] == [
        ("y", True, False, False),
        ("x", False, True, False),
        ("GLOBAL_FACTOR", False, True, True),
        ("GLOBAL_FIELD", False, True, True),
    ]


# the object ---------------------------------------------------------------------------------------------------------


def test_the_object():
    assert axpy.__irad_kernel__ is True
    assert axpy.__name__ == "axpy"
    assert axpy.__wrapped__ is axpy.py_func
    assert repr(axpy) == "<irad.kernel axpy>"
    assert pickle.loads(pickle.dumps(axpy)) is axpy
    assert copy.deepcopy(axpy) is axpy
    assert irad.kernel(axpy.py_func, name="other").__name__ == "other"
    with pytest.raises(irad.IradError, match="takes a function, not int"):
        irad.kernel(3)
    with pytest.raises(irad.IradError, match="takes a function, not a kernel"):
        irad.kernel(axpy)


def test_fastmath_is_an_option():
    @irad.kernel(fastmath=True)
    def mean(y, x):
        i = irad.interior(y)
        y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3.0

    y = np.zeros(5)
    mean(y, np.arange(5.0))
    np.testing.assert_allclose(y, [0, 1, 2, 3, 0], atol=1e-15)
    assert " fast " in "".join(mean.inspect_llvm("frontend").values())


def test_explain(capsys):
    u = np.zeros((8, 8))
    laplacian.explain(u.copy(), u, 0.5, wrt="u")
    text = capsys.readouterr().out
    assert "laplacian(out: float64[:, :], u: float64[:, :], h: float)" in text
    assert "writes out; reads u, h" in text
    assert "gather u'" in text
    assert "a pullback copies: nothing" in text
    laplacian.explain(u.copy(), u, 0.5, wrt=("u", "h"), timed=True)
    text = capsys.readouterr().out
    assert "a pullback copies: u" in text
    assert text.count("GB/s") == 2


def test_inspect():
    kernel = irad.kernel(laplacian.py_func)
    assert kernel.inspect_llvm() == {}
    u = np.zeros((8, 8))
    kernel(u.copy(), u, 0.5)
    irad.pullback(kernel, u.copy(), u, 0.5, wrt="u")(np.ones((8, 8)))
    for stage, word in (
        ("frontend", "irad.index.0"),
        ("primal", "define i64 @plan"),
        ("primal optimised", "fmul <"),
        ("adjoint", "define i64 @plan"),
    ):
        (text,) = kernel.inspect_llvm(stage).values()
        assert word in text
    (title,) = kernel.inspect_asm()
    assert title == "(float64[:, :], float64[:, :], float), unit strides out[1], u[1]"
    with pytest.raises(irad.IradError, match="no stage 'nonsense'"):
        kernel.inspect_llvm("nonsense")
