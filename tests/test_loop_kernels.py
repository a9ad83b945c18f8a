"""Loop kernels: the places where derivatives of imperative code are known to go wrong, each with the right value.

Everything is held against the oracle in both modes; where there is a closed form, against that.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import numba
import numpy as np
import pytest

import irad
import irad.testing
from irad import Active, Const, Duplicated, DuplicatedNoNeed, Forward, Reverse, oracle

N = 6
Values = dict[str, Any]


def copied(values: Mapping[str, Any]) -> Values:
    return {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in values.items()}


def seeds_of(function: Any, values: Values) -> Values:
    rng = np.random.default_rng(7)
    written = oracle.primal(function, tuple(values.values())).written
    return {
        n: rng.uniform(-1, 1, values[n].shape).astype(values[n].dtype)
        for n, w in written.items()
        if w.any() and values[n].dtype.kind == "f"
    }


def compare(function: Any, values: Values, rtol: float = 1e-12, **options: Any) -> Values:
    """Values, cotangents and tangents of everything, against the oracle; the cotangents."""
    kernel = irad.kernel(function, **options)
    wrt = tuple(n for n, v in values.items() if isinstance(v, float) or getattr(v, "dtype", np.dtype(int)).kind == "f")
    seeds = seeds_of(function, values)
    run, kept = copied(values), copied(seeds)
    back = irad.pullback(kernel, *run.values(), wrt=wrt)
    expected = oracle.vjp(function, tuple(values.values()), seeds)
    for name, after in expected.values.items():
        np.testing.assert_allclose(run[name], after, rtol=rtol, atol=rtol, err_msg=name)
    left = copied(run)
    found: Values = {}
    for _ in range(2):
        found = back(seeds)._asdict()
        for name in wrt:
            error = np.abs(found[name] - expected.derivatives[name])
            assert np.all(error <= rtol * np.asarray(expected.scales[name])), (name, found[name], expected)
    for name in seeds:
        np.testing.assert_array_equal(seeds[name], kept[name])
    for name, v in left.items():
        np.testing.assert_array_equal(run[name], v)
    rng = np.random.default_rng(5)
    tangents = {n: np.asarray(rng.uniform(-1, 1, np.shape(values[n])), getattr(values[n], "dtype", float))[()]
                for n in wrt}  # fmt: skip
    tangents = {n: t if np.shape(t) else float(t) for n, t in tangents.items()}
    out = irad.pushforward(kernel, *copied(values).values(), wrt=wrt)(tangents)._asdict()
    forward = oracle.jvp(function, tuple(values.values()), tangents)
    assert set(out) == set(seeds)
    for name, tangent in out.items():
        assert np.all(np.abs(tangent - forward.derivatives[name]) <= rtol * forward.scales[name]), name
    return found


def arrays(*names: str, low: float = 0.5, high: float = 1.5, n: int = N) -> Values:
    rng = np.random.default_rng(1)
    return {name: rng.uniform(low, high, n) for name in names}


# mutation ------------------------------------------------------------------------------------------------------------


def overwritten_after_read(x, y):
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
        x[i] = 3.0
        y[i] += x[i] * y[i]


def scaled_in_place(x, a):
    for i in range(x.shape[0]):
        x[i] = x[i] * a


def scaled_many_times(x, a, times):
    for _ in range(times):
        x *= a


def set_before_and_used_after(x, y, n):
    factor = x[0] * 2.0
    for i in range(n):
        y[i] = x[i] * factor
        factor = factor + y[i]
    y[0] += factor


def nested_of_run_time_length(x, y, n, m):
    for i in range(n):
        for j in range(m):
            y[i] = y[i] * x[j] + x[i]


def with_continue(x, y):
    for i in range(x.shape[0]):
        if i % 2 == 0:
            continue
        y[i] = x[i] * x[i - 1]
        for j in range(i):
            if j == 2:
                continue
            y[i] *= x[j]


def both_arms_read(x, y):
    for i in range(1, x.shape[0] - 1):
        y[i] = x[i + 1] * x[i] if x[i] > 1.0 else x[i - 1] / x[i]


def shifted_in_place(f, g):
    for i in range(f.shape[0] - 1):
        f[i + 1] = f[i] * g[i] + f[i + 1]


def newton(x, y):
    for i in range(x.shape[0]):
        z = 1.0
        while abs(z * z - x[i]) > 1e-12:
            z = 0.5 * (z + x[i] / z)
        y[i] = z


def index_by_counting(x, y):
    k = 0
    for i in range(x.shape[0]):
        if x[i] > 1.0:
            y[k] = x[i] * x[i]
            k += 1


def product_with_neighbours(q, T):
    old = q.copy()
    for i in range(1, q.shape[0] - 1):
        q[i] = old[i] * (T[i + 1] - T[i - 1])


def early_return(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
        if total > 2.5:
            y[i] = total * total
            return
        y[i] = total
    y[0] = 100.0 * total


def prefix_product(x, y):
    p = 1.0
    for i in range(x.shape[0]):
        p *= x[i]
        y[i] = p


def tuples(x, y):
    a, b = 1.0, x[0]
    for i in range(x.shape[0]):
        a, b = b * x[i], a + b
        y[i] = a / b


def views_and_rows(x, y):
    left, right = x[:-1], x[1:]
    left[:] = left * right
    right[::2] += left[1::2].sum()
    y[::-2] = x[::2]


def whole_arrays(x, y):
    c = np.where(x > 1.0, x * x, 0.5) + np.maximum(x, y)
    c[0] = np.sum(x) + c.max() - np.mean(y) + np.dot(x, y)
    y[:] = np.sqrt(c) / (1.0 + np.abs(y)) + np.minimum(x, 0.9)


def swapped(x, y):
    p, q = x, y
    for _ in range(5):
        q[1:-1] = 0.5 * (p[2:] + p[:-2]) * q[1:-1]
        p, q = q, p


def operators(x, y):
    for i in range(x.shape[0]):
        y[i] -= x[i]
        y[i] /= x[i]
        y[i] **= 2
        y[i] *= math.exp(-x[i])


@pytest.mark.parametrize(
    "function",
    [
        overwritten_after_read, with_continue, both_arms_read, newton, index_by_counting, early_return, prefix_product,
        tuples, views_and_rows, whole_arrays, swapped, operators,
    ],
)  # fmt: skip
def test_two_arrays(function: Any) -> None:
    compare(function, arrays("x", "y"))


def test_recurrences() -> None:
    compare(shifted_in_place, arrays("f", "g"))
    compare(product_with_neighbours, arrays("q", "T"))


def test_scalars_and_run_time_loops() -> None:
    compare(scaled_in_place, {**arrays("x"), "a": 1.3})
    compare(scaled_many_times, {**arrays("x"), "a": 1.3, "times": 4})
    compare(set_before_and_used_after, {**arrays("x", "y"), "n": 5})
    compare(nested_of_run_time_length, {**arrays("x", "y"), "n": 4, "m": 5})


@pytest.mark.parametrize("trips", [0, 10, 1_000, 1_000_000])
def test_loops_of_any_length(trips: int) -> None:
    """x is multiplied by a, ``trips`` times."""

    @irad.kernel
    def power(x, a, n):
        for _ in range(n):
            x[0] = x[0] * a

    a = 1.0 + 1.0 / max(trips, 1)
    x = np.array([0.7])
    found = irad.pullback(power, x, a, trips)(x=np.ones(1))
    assert x[0] == pytest.approx(0.7 * a**trips, rel=1e-9)
    assert found.x[0] == pytest.approx(a**trips, rel=1e-9)
    assert found.a == pytest.approx(0.7 * trips * a ** (trips - 1) if trips else 0.0, rel=1e-9)


# kinks and poles -----------------------------------------------------------------------------------------------------


def derivative(function: Any, *points: float) -> list[float]:
    """Of a function of one float, by both modes."""
    helper = irad.device(function)

    @irad.kernel
    def apply(y, x):
        for i in range(x.shape[0]):
            y[i] = helper(x[i])

    x, y = np.array(points), np.zeros(len(points))
    one = np.ones_like(x)
    reverse = irad.pullback(apply, y, x, wrt="x")(y=one).x
    forward = irad.pushforward(apply, y, x, wrt="x")(x=one).y
    np.testing.assert_array_equal(reverse, forward)
    return list(reverse)


def test_equality_with_a_constant() -> None:
    assert derivative(lambda x: 3 * x if x == 1.0 else 0.0, 1.0, 2.0) == [3.0, 0.0]


def test_pole_behind_a_test() -> None:
    assert derivative(lambda x: 1 / x if x != 0 else 0.0, 0.0, 2.0) == [0.0, -0.25]
    assert derivative(lambda x: math.sqrt(x) if x > 0 else 0.0, 0.0, 4.0, -1.0) == [0.0, 0.25, 0.0]


def test_pole_behind_where() -> None:
    def roots(y, x):
        y[:] = np.where(x > 0, np.sqrt(x), 0.0)

    x, y = np.array([0.0, 4.0]), np.zeros(2)
    assert irad.pullback(irad.kernel(roots), y, x)(y=np.ones(2)).x.tolist() == [0.0, 0.25]


def test_powers_at_zero() -> None:
    assert derivative(lambda x: x**2, 0.0, 3.0) == [0.0, 6.0]
    assert derivative(lambda x: x**0, 0.0, 3.0) == [0.0, 0.0]
    assert derivative(lambda x: x**0.5, 4.0) == [0.25]
    assert derivative(lambda x: x**0.5, 0.0) == [math.inf]


def test_ties() -> None:
    assert derivative(lambda x: abs(x), 0.0, -2.0) == [0.0, -1.0]
    assert derivative(lambda x: max(x, 1.0), 1.0, 2.0, 0.5) == [1.0, 1.0, 0.0]
    assert derivative(lambda x: min(x, 1.0), 1.0, 2.0, 0.5) == [1.0, 0.0, 1.0]


def test_comparison_of_a_rounded_product() -> None:
    """With fused arithmetic in one of the two runs, half of these decisions would differ."""

    def chosen(w, x, y, z):
        for i in range(x.shape[0]):
            w[i] = x[i] if x[i] * y[i] - z[i] >= 0.0 else 2.0 * x[i]

    rng = np.random.default_rng(0)
    x, y = rng.uniform(0.5, 1.5, (2, 2_000))
    z = x * y
    z[::2] = np.nextafter(z[::2], 2 * z[::2])
    w = np.zeros_like(x)
    bar = irad.pullback(irad.kernel(chosen), w, x, y, z, wrt="x")(w=np.ones_like(x)).x
    np.testing.assert_array_equal(bar, w / x)


# masks, indices, helpers, captures -----------------------------------------------------------------------------------


def test_mask_at_neighbours_and_indices_from_an_array() -> None:
    def masked(y, x, mask, at):
        for i in range(1, x.shape[0] - 1):
            if mask[i - 1] and not mask[i + 1]:
                y[i] += x[at[i]] * x[i]
            elif mask[i]:
                y[-i] = x[at[i] - 3]

    mask = np.array([True, True, False, False, True, False])
    compare(masked, {**arrays("y", "x"), "mask": mask, "at": np.array([3, 1, 2, 2, 5, 0])})


@numba.njit
def cubed(x):
    return x * x * x


rate = 0.5
field = np.linspace(1.0, 2.0, N)


@irad.device
def with_field(x, i):
    return x * field[i] + rate


def test_helpers_and_captured_values(monkeypatch: pytest.MonkeyPatch) -> None:
    @irad.kernel
    def kernel(y, x):
        for i in range(x.shape[0]):
            y[i] = cubed(x[i]) + with_field(x[i], i)

    values = arrays("y", "x")
    for r in (0.5, 2.0):
        monkeypatch.setitem(globals(), "rate", r)
        y = values["y"].copy()
        back = irad.pullback(kernel, y, values["x"], wrt=("x", "field", "rate"))
        np.testing.assert_allclose(y, values["x"] ** 3 + values["x"] * field + r, rtol=1e-14)
        found = back(y=np.ones(N))
        np.testing.assert_allclose(found.x, 3 * values["x"] ** 2 + field, rtol=1e-14)
        np.testing.assert_allclose(found.field, values["x"], rtol=1e-14)
        assert found.rate == N


# layouts, precision, empty arrays ------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["F", "strided", "negative"])
def test_layouts(layout: str) -> None:
    def smooth(y, x):
        n, m = x.shape
        for i in range(1, n):
            for j in range(m):
                y[i, j] = x[i - 1, j] * x[i, j] * y[i - 1, j]

    rng = np.random.default_rng(2)
    plain = {name: rng.uniform(0.5, 1.5, (4, 5)) for name in ("y", "x")}
    lay = {
        "F": np.asfortranarray,
        "strided": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
        "negative": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    }[layout]
    kernel = irad.kernel(smooth)
    seed = rng.uniform(-1, 1, (4, 5))
    expected = irad.pullback(kernel, *copied(plain).values())(y=seed)
    laid = {n: lay(a.copy()) for n, a in plain.items()}
    found = irad.pullback(kernel, *laid.values())(y=lay(seed))
    shadows = {n: lay(np.zeros((4, 5))) for n in plain}
    shadows["y"][...] = seed
    laid = {n: lay(a.copy()) for n, a in plain.items()}
    irad.autodiff(Reverse, kernel, *(Duplicated(laid[n], shadows[n]) for n in plain))
    for name in plain:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        np.testing.assert_array_equal(shadows[name], getattr(expected, name))


def test_single_precision() -> None:
    values = {n: v.astype(np.float32) for n, v in arrays("x", "y").items()}
    compare(operators, values, rtol=1e-5)
    compare(views_and_rows, values, rtol=1e-5)


def test_empty_arrays() -> None:
    def halves(y, x):
        y[:] = 0.5 * x
        for i in range(x.shape[0]):
            y[i] *= x[i]

    found = irad.pullback(irad.kernel(halves), np.zeros(0), np.zeros(0))(y=np.zeros(0))
    assert found.x.shape == (0,)


# the interface -------------------------------------------------------------------------------------------------------


@irad.kernel
def recurrence(b, a, c):
    for i in range(1, a.shape[0]):
        b[i] = b[i - 1] * a[i] * c
    if a[0] < 0:
        raise ValueError("negative", 3)


def test_exceptions_come_through_and_leave_shadows_alone() -> None:
    a, b = -np.ones(4), np.ones(4)
    shadow, seed = np.full(4, 2.0), np.full(4, 3.0)
    for call in (
        lambda: recurrence(b, a, 1.0),
        lambda: recurrence.bind(b, a, 1.0)(),
        lambda: irad.pullback(recurrence, b, a, 1.0),
        lambda: irad.autodiff(Reverse, recurrence, Duplicated(b, seed), Duplicated(a, shadow), 1.0),
        lambda: irad.pushforward(recurrence, b, a, 1.0, wrt="a"),
    ):
        with pytest.raises(ValueError, match="negative") as e:
            call()
        assert e.value.args == ("negative", 3)
    assert shadow.tolist() == [2.0] * 4
    assert seed.tolist() == [3.0] * 4
    np.testing.assert_array_equal(b[:3], [1.0, -1.0, 1.0])


def test_indices_are_checked_and_wrap_once() -> None:
    def far(b, a, k):
        b[0] = a[k]

    kernel, a, b = irad.kernel(far), np.arange(3.0), np.zeros(1)
    kernel(b, a, -1)
    assert b[0] == 2.0
    assert irad.pullback(kernel, b, a, -3)(b=np.ones(1)).a.tolist() == [1.0, 0.0, 0.0]
    for k in (3, -4):
        with pytest.raises(IndexError):
            kernel(b, a, k)


def test_autodiff_adds_to_shadows_and_replaces_seeds() -> None:
    values = {**arrays("b", "a"), "c": 1.5}
    shadows = {n: np.random.default_rng(3).uniform(-1, 1, N) for n in ("b", "a")}
    expected = oracle.vjp(recurrence, tuple(values.values()), shadows)
    run = copied(values)
    bars = irad.autodiff(
        Reverse, recurrence, Duplicated(run["b"], shadows["b"]), Duplicated(run["a"], shadows["a"]), Active(1.5)
    )
    np.testing.assert_allclose(shadows["b"], expected.derivatives["b"], rtol=1e-13)
    np.testing.assert_allclose(shadows["a"], expected.derivatives["a"], rtol=1e-13)
    np.testing.assert_allclose(bars, [expected.derivatives["c"]], rtol=1e-13)
    np.testing.assert_allclose(run["b"], expected.values["b"], rtol=1e-14)
    tangent = np.ones(N)
    before = copied(values)
    irad.autodiff(Forward, recurrence, Duplicated(before["b"], np.zeros(N)), Duplicated(before["a"], tangent), 1.5)
    np.testing.assert_array_equal(tangent, np.ones(N))


def test_scratch_and_constants() -> None:
    @irad.kernel
    def through(y, scratch, x):
        for i in range(x.shape[0]):
            scratch[i] = x[i] * x[i]
            y[i] = scratch[i] * x[i]

    x, y, scratch, bar = np.arange(1.0, 4.0), np.zeros(3), np.zeros(3), np.zeros(3)
    irad.autodiff(Reverse, through, Duplicated(y, np.ones(3)), scratch, Duplicated(x, bar))
    np.testing.assert_allclose(bar, 3 * x**2)
    with pytest.raises(irad.ShadowError):
        irad.autodiff(Reverse, through, Duplicated(y, np.ones(3)), Const(scratch), Duplicated(x, bar))


def test_only_the_adjoint() -> None:
    @irad.kernel
    def square(y, x):
        for i in range(x.shape[0]):
            y[i] = x[i] * x[i]

    x, y, bar = np.arange(3.0), np.full(3, 7.0), np.zeros(3)
    irad.autodiff(Reverse, square, DuplicatedNoNeed(y, np.ones(3)), Duplicated(x, bar))
    assert y.tolist() == [7.0] * 3
    assert bar.tolist() == [0.0, 2.0, 4.0]


def test_a_pullback_copies_what_its_adjoint_reads_again() -> None:
    def scaled(y, x, k):
        for i in range(x.shape[0]):
            y[i] = x[i] * k[i]

    values = arrays("y", "x", "k")
    back = irad.pullback(irad.kernel(scaled), *values.values(), wrt=("x",))
    assert back.copied == ("k",)
    expected = values["k"].copy()
    values["k"][:] = 0.0
    np.testing.assert_array_equal(back(y=np.ones(N)).x, expected)


def test_a_linear_kernel_records_nothing_per_round() -> None:
    """However long the loops are, unless what they multiply by is overwritten."""
    from irad.loops import LoopRun

    def linear(y, x, k):
        for i in range(1, x.shape[0]):
            y[i] = y[i - 1] * k[i] + x[i]

    def squares(y, x, k):
        for i in range(1, x.shape[0]):
            y[i] = y[i - 1] * y[i - 1] + x[i] * k[i]

    def words(function: Any, n: int) -> int:
        spec = irad.kernel(function).specialise([np.zeros(n)] * 3)
        values = {name: np.zeros(n) for name in ("y", "x", "k")}
        run = LoopRun(spec, values, frozenset(("y", "x")))
        run.forward()
        return run.record.nbytes // 8

    assert words(linear, 10) == words(linear, 1_000) <= 4
    assert words(squares, 1_000) - words(squares, 10) == 990


def test_arrays_of_one_call_of_two_by_a_condition() -> None:
    def squared(x, y, first):
        a = x if first else y
        for i in range(a.shape[0]):
            a[i] = a[i] * a[i]

    for first in (True, False):
        x, y = np.arange(3.0), np.arange(3.0) + 1
        found = irad.pullback(irad.kernel(squared), x, y, first)(x=np.ones(3), y=np.ones(3))
        assert found.x.tolist() == ([0.0, 2.0, 4.0] if first else [1.0] * 3)
        assert found.y.tolist() == ([1.0] * 3 if first else [2.0, 4.0, 6.0])


def test_memory_is_given_back_and_its_end_is_an_error() -> None:
    code = """
import gc, resource
import numpy as np, irad
@irad.kernel
def squares(y, x, n):
    for _ in range(n):
        t = x * x
        y[:] = t * y
x, y = np.ones(100_000), np.ones(100_000)
def most():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sizes = []
for _ in range(4):
    irad.pullback(squares, y, x, 20)(y=np.ones_like(y))
    gc.collect()
    sizes.append(most())
assert sizes[-1] - sizes[0] < 20_000, sizes  # kilobytes; a record has 30,000
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
try:
    irad.pullback(squares, y, x, 5_000)
except MemoryError as e:
    print("MemoryError", e)
"""
    if sys.platform != "linux":
        pytest.skip("resource limits of Linux")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "MemoryError" in found.stdout


def test_overlap_is_refused() -> None:
    a = np.ones(4)
    with pytest.raises(irad.AliasError):
        recurrence(a, a, 1.0)
    with pytest.raises(irad.AliasError):
        irad.pullback(recurrence, np.ones(4), np.broadcast_to(np.ones(1), 4), 1.0, wrt="a")


def test_explain_says_what_is_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    recurrence.explain(np.ones(4), np.ones(4), 1.0, timed=True)
    text = capsys.readouterr().out
    line = recurrence.py_func.__code__.co_firstlineno + 3
    assert "a loop kernel" in text
    assert f"recorded at {__file__}:{line}: " in text
    assert "in each round of 1 loop" in text
    assert "MiB recorded" in text


def test_check_gradient() -> None:
    irad.testing.check_gradient(recurrence, np.ones(5), np.linspace(1.0, 2.0, 5), 1.5)
