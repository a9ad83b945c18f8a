"""Compiled vector operations against NumPy, bit for bit (sums to rounding)."""

import gc
import math

import numpy as np
import pytest

from irad.launch.threads import using_threads
from irad.ode import vectors as vec
from irad.ode.vector_code import TILE

SIZES = [0, 1, 7, TILE - 1, TILE, 2 * TILE + 5, 100_003]


def vectors(n, count, dtype):
    rng = np.random.default_rng(n + count)
    return [rng.normal(size=n).astype(dtype) for _ in range(count)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", SIZES)
def test_elementwise(n, dtype):
    a, b, c, d, e = vectors(n, 5, dtype)

    def check(call, expected, *changed):
        """``call`` on copies; ``changed`` are indices of the vectors it may change, with what they must hold."""
        work = [x.copy() for x in (a, b, c, d, e)]
        call(*work)
        for i, x in enumerate(work):
            wanted = expected[changed.index(i)] if i in changed else (a, b, c, d, e)[i]
            assert x.dtype == dtype
            assert np.array_equal(x, wanted)

    check(lambda a, b, c, d, e: vec.add_scaled(a, b, 0.3, c), [c * 0.3 + b], 0)
    check(lambda a, b, c, d, e: vec.recur(a, b, c, 0.3, 0.7, d), [(b - c) * 0.3 + b + d * 0.7], 0)
    check(lambda a, b, c, d, e: vec.recur(c, b, c, 0.3, 0.7, d), [(b - c) * 0.3 + b + d * 0.7], 2)
    check(lambda a, b, c, d, e: vec.finish(a, b, c, 0.3, 0.7),
          [a + c * 0.3 + (c - b) * 0.7, (c - b) * 0.7], 0, 1)  # fmt: skip
    check(lambda a, b, c, d, e: vec.scale(a, b, 0.3), [b * 0.3], 0)
    check(lambda a, b, c, d, e: vec.scale(b, b, 0.3), [b * 0.3], 1)
    check(lambda a, b, c, d, e: vec.add(a, b), [a + b], 0)
    check(lambda a, b, c, d, e: vec.total(a, b, c), [b + c], 0)
    check(lambda a, b, c, d, e: vec.difference(a, b, c), [b - c], 0)
    check(lambda a, b, c, d, e: vec.difference(b, b, c), [b - c], 1)
    check(lambda a, b, c, d, e: vec.accumulate(a, 0.3, b), [a + b * 0.3], 0)
    check(lambda a, b, c, d, e: vec.combine(a, 0.3, a, 0.7, b), [a * 0.3 + b * 0.7], 0)
    check(lambda a, b, c, d, e: vec.copy(a, b), [b], 0)
    w = vec.hermite_weights(0.3, 0.5)
    check(lambda a, b, c, d, e: vec.hermite(a, 0.3, 0.5, b, c, d, e),
          [b * w[0] + c * w[1] + d * w[2] + e * w[3]], 0)  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", SIZES)
def test_sums(n, dtype):
    e, u, v, r, a = vectors(n, 5, dtype)
    r, a = np.abs(r) + dtype(0.1), np.abs(a) + dtype(0.1)
    exact = [x.astype(np.float64) for x in (e, u, v, r, a)]
    assert vec.norm(e) == pytest.approx(np.linalg.norm(exact[0]), rel=1e-13)
    assert vec.dot(e, u) == pytest.approx(exact[0] @ exact[1], rel=1e-13, abs=1e-11)
    rel = 1e-13 if dtype is np.float64 else 1e-6
    for rtol, atol in ((1e-3, 1e-2), (r, 1e-2), (1e-3, a), (r, a)):
        wide = [x if isinstance(x, float) else x.astype(float) for x in (rtol, atol)]
        scaled = exact[0] / (wide[1] + wide[0] * np.maximum(np.abs(exact[1]), np.abs(exact[2])))
        expected = math.sqrt(np.mean(scaled**2)) if n else 0.0
        assert vec.error_norm(e, u, v, rtol, atol) == pytest.approx(expected, rel=rel)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_seen(bad):
    e, u, v = vectors(2 * TILE + 3, 3, np.float64)
    assert vec.finite(e)
    for i in (0, TILE, 2 * TILE + 2):
        x = e.copy()
        x[i] = bad
        assert not vec.finite(x)
        assert not math.isfinite(vec.norm(x))
        assert not vec.error_norm(x, u, v, 1e-3, 1e-3) < 1.0
        if np.isnan(bad):
            assert math.isnan(vec.error_norm(e, x, v, 1e-3, 1e-3))


def test_the_same_bits_for_any_number_of_threads():
    n = 40 * TILE + 17
    e, u, v = vectors(n, 3, np.float64)
    results = []
    for threads in (1, 2, 5):
        with using_threads(threads):
            out = np.empty(n)
            vec.recur(out, e, u, 0.3, 0.7, v)
            results.append((vec.norm(e), vec.error_norm(e, u, v, 1e-3, 1e-6), out))
    for norm, error, out in results[1:]:
        assert (norm, error) == results[0][:2]
        assert np.array_equal(out, results[0][2])


def test_interpolation_meets_the_ends():
    u0, f0, u1, f1 = vectors(5, 4, np.float64)
    out = np.empty(5)
    for theta, value in ((0.0, u0), (1.0, u1)):
        vec.hermite(out, theta, 0.1, u0, f0, u1, f1)
        assert out == pytest.approx(value)
    d = 1e-6
    vec.hermite(out, d, 0.1, u0, f0, u1, f1)
    assert (out - u0) / (0.1 * d) == pytest.approx(f0, rel=1e-3, abs=1e-4)


def test_vectors_that_do_not_fit_together():
    with pytest.raises(ValueError, match="add"):
        vec.add(np.zeros(3), np.zeros(4))
    with pytest.raises(ValueError, match="add"):
        vec.add(np.zeros(3), np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="contiguous"):
        vec.add(np.zeros(6)[::2], np.zeros(3))


def test_nothing_is_kept_of_vectors_that_are_gone():
    gc.collect()
    before = len(vec._passes._known)
    a, b = np.zeros(10), np.ones(10)
    for _ in range(3):
        vec.add(a, b)
        vec.scale(a, b, 2.0)
    assert len(vec._passes._known) == before + 2
    del a
    gc.collect()
    assert len(vec._passes._known) == before
    assert vec.norm(b) == pytest.approx(math.sqrt(10))
