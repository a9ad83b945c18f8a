"""Kernels with an integrator's recurrence joined: the bits of the two one after the other, and the adjoint."""

from __future__ import annotations

import numpy as np
import pytest

import irad
from irad import fd
from irad.errors import AliasError, ShadowError
from irad.launch.threads import using_threads
from irad.staged import bind_stage, bind_stage_vjp


@irad.kernel
def heat1(dT, T, k, lam):
    i = irad.interior(dT)
    dT[i] = lam * k[i] * (T[i - 1] - 2 * T[i] + T[i + 1])


@irad.kernel
def heat3(dT, T, k, lam):
    i, j, m = irad.interior(dT)
    flow = T[i - 1, j, m] + T[i + 1, j, m] + T[i, j - 1, m] + T[i, j + 1, m] + T[i, j, m - 1] + T[i, j, m + 1]
    dT[i, j, m] = lam * k[i, j, m] * (flow - 6 * T[i, j, m])


@irad.kernel
def heat2_close(dT, T, k, lam):
    dT[fd.inn] = lam * fd.inn(k) * (fd.d2_xi(T) + fd.d2_yi(T))


@irad.kernel
def periodic(dT, T, k, lam):
    i, j = irad.points(dT)
    n = dT.shape[0]
    right = T[i + 1, j] if i < n - 1 else T[0, j]
    dT[i, j] = lam * k[i, j] * (T[i - 1, j] - 2 * T[i, j] + right) + T[i, j] ** 2


@irad.kernel
def limited(dT, T, k, lam):
    i, j = irad.domain((1, dT.shape[0]), (0, dT.shape[1] - 2))
    slope = T[i, j + 2] - T[i - 1, j]
    if slope > 0:
        dT[i, j] = lam * k[i, j] * slope
    elif i != 2:
        dT[i, j] = -slope * T[i, j]


@irad.kernel
def lagged(dT, T, k, lam):
    i, j = irad.domain((2, dT.shape[0] + 1), (0, dT.shape[1]))
    dT[i - 1, j] = lam * k[i - 1, j] * T[i - 2, j] ** 2


CASES = {
    "heat1": (heat1, (7,)),
    "heat3": (heat3, (5, 4, 6)),
    "heat2_close": (heat2_close, (6, 5)),
    "periodic": (periodic, (6, 4)),
    "limited": (limited, (6, 7)),
    "lagged": (lagged, (6, 3)),
}


def arrays(shape, dtype, number, seed=0):
    return [np.random.default_rng((seed, n)).uniform(-1, 1, shape).astype(dtype) for n in range(number)]


def rate_of(kernel, T, k, lam):
    dT = np.zeros_like(T)
    kernel(dT, T, k, lam)
    return dT


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("epilogue", ["recur", "recur in place", "add scaled", "add and keep"])
def test_bits_of_the_two_one_after_the_other(name, dtype, epilogue):
    kernel, shape = CASES[name]
    T, k, older, out = arrays(shape, dtype, 4)
    c, kappa = dtype(0.013), dtype(0.7)
    dT = rate_of(kernel, T, k, 1.5)
    back = (T - (out if "place" in epilogue else older)) * kappa + T if "recur" in epilogue else T
    expected = back + dT * c
    given = {".out": out, ".older": older, ".rate": older}
    needed = {"recur": (".out", ".older"), "add and keep": (".out", ".rate")}.get(epilogue, (".out",))
    bound = bind_stage(kernel, (out, T, k, 1.5), "dT", "T", epilogue, {n: given[n] for n in needed})
    assert bound is not None
    bound.set(".c", c)
    if "recur" in epilogue:
        bound.set(".kappa", kappa)
    bound()
    np.testing.assert_array_equal(out, expected)
    if epilogue == "add and keep":
        np.testing.assert_array_equal(older, dT)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_adjoint(name, dtype):
    kernel, shape = CASES[name]
    T, k, seed, T_bar, k_bar = arrays(shape, dtype, 5)
    lam_bar = np.zeros(1)
    before, k_before = T_bar.copy(), k_bar.copy()
    kept = [x.copy() for x in (T, k, seed)]
    bound = bind_stage_vjp(kernel, (seed, T, k, 1.5), "dT", "T", seed, {"T": T_bar, "k": k_bar}, {"lam": lam_bar})
    assert bound is not None
    for word, value in ((".a", 1.25), (".b", -0.5), (".c", 0.1)):
        bound.set(word, value)
    bound()
    g = irad.pullback(kernel, np.zeros(shape, dtype), T, k, 1.5, wrt=("T", "k", "lam"))(dT=seed)
    tolerance = 1e-13 if dtype is np.float64 else 2e-6
    np.testing.assert_allclose(T_bar, -0.5 * before + 1.25 * seed + 0.1 * g.T, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(k_bar, k_before + 0.1 * g.k, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(lam_bar[0], 0.1 * g.lam, rtol=10 * tolerance)
    for now, then in zip((T, k, seed), kept, strict=True):
        np.testing.assert_array_equal(now, then)


def test_same_bits_for_any_number_of_threads():
    T, k, older, seed = arrays((40, 30, 35), np.float64, 4)
    results = []
    for threads in (1, 2, 5):
        with using_threads(threads):
            out, T_bar, lam_bar = np.zeros_like(T), older.copy(), np.zeros(1)
            stage = bind_stage(heat3, (out, T, k, 0.1), "dT", "T", "recur", {".out": out, ".older": older})
            pull = bind_stage_vjp(heat3, (out, T, k, 0.1), "dT", "T", seed, {"T": T_bar}, {"lam": lam_bar})
            for bound in (stage, pull):
                bound.set(".c", 0.3)
                bound()
            results.append((out.tobytes(), T_bar.tobytes(), lam_bar.tobytes()))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("shape", [(0,), (1,), (2,), (3,)])
def test_small_arrays(shape):
    T, k, out = arrays(shape, np.float64, 3)
    expected = T + rate_of(heat1, T, k, 2.0) * 0.5
    bound = bind_stage(heat1, (out, T, k, 2.0), "dT", "T", "add scaled", {".out": out})
    bound.set(".c", 0.5)
    bound()
    np.testing.assert_array_equal(out, expected)


def test_what_cannot_be_joined():
    @irad.kernel
    def adds(dT, T):
        i = irad.points(dT)
        dT[i] += T[i]

    @irad.kernel
    def turned(dT, T):
        i, j = irad.points(T)
        dT[j, i] = T[i, j]

    @irad.kernel
    def two(dT, other, T):
        i = irad.points(dT)
        dT[i] = T[i]
        other[i] = T[i]

    @irad.kernel
    def some(dT, T):
        i = irad.domain((0, min(dT.shape[0], 3)))
        dT[i] = T[i]

    u, v, w = arrays((4,), np.float64, 3)
    a, b = arrays((4, 4), np.float64, 2)
    assert bind_stage(adds, (v, u), "dT", "T", "add scaled", {".out": v}) is None
    assert bind_stage(turned, (b, a), "dT", "T", "add scaled", {".out": b}) is None
    assert bind_stage(two, (v, w, u), "dT", "T", "add scaled", {".out": v}) is None
    assert bind_stage(some, (v, u), "dT", "T", "add scaled", {".out": v}) is None


def test_arrays_that_do_not_fit():
    T, k, out, seed = arrays((7,), np.float64, 4)
    with pytest.raises(AliasError):
        bind_stage(heat1, (out, T, k, 1.0), "dT", "T", "add scaled", {".out": T})
    with pytest.raises(ShadowError):
        bind_stage(heat1, (out, T, k, 1.0), "dT", "T", "add scaled", {".out": out[1:]})
    with pytest.raises(AliasError):
        bind_stage_vjp(heat1, (out, T, k, 1.0), "dT", "T", seed, {"T": seed})
    with pytest.raises(irad.errors.DomainError):
        bind_stage(heat1, (out, T, k[:3].copy(), 1.0), "dT", "T", "add scaled", {".out": out})
