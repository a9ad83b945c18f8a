"""The oracle on loop kernels: against plain Python and differences of it, and forward against reverse."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest

from irad import oracle
from irad.oracle.arithmetic import TooManyOperations

N = 6


@numba.njit
def twice(x):
    return 2 * x


def recurrence(b, a):
    for i in range(1, a.shape[0]):
        b[i] = b[i - 1] * a[i] + math.sin(a[i - 1])


def early_exit(b, a):
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i]
        if total > 2.5:
            break
        if i == 1:
            continue
        b[i] = total * total


def data_dependent(b, a):
    while b[0] < 10:
        b[0] = b[0] * 2 + a[0]


def slices(b, a):
    b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3
    b[::2] *= a[::-2]
    b[-1] **= 2


def whole(b, a):
    c = np.where(a > 1.0, a * a, 0.5) + np.maximum(a, b)
    c[0] = np.sum(a) + c.max() - np.mean(b) + np.dot(a, b) + a @ b
    b[:] = np.sqrt(c) / (1.0 + np.abs(b)) + np.clip(a, 0.8, 1.2)


def local_arrays(b, a):
    t = np.zeros(a.shape[0])
    u = np.empty_like(a)
    u[:] = 1.0
    for i, v in enumerate(a):
        t[i] += twice(v) * u[i]
    s = t.copy()
    t[0] = 3.0
    b += s * t


def in_place_chain(b, a):
    for _ in range(3):
        for i in range(1, a.shape[0] - 1):
            a[i] = 0.5 * (a[i - 1] + a[i + 1]) * a[i]
    b[...] = a


def swapped(b, a):
    p, q = a, b
    for _ in range(4):
        q[1:-1] = 0.5 * (p[2:] + p[:-2]) * q[1:-1]
        p, q = q, p


def indirect(b, a):
    order = np.zeros(a.shape[0], np.int64)
    for i in range(a.shape[0]):
        order[i] = (3 * i + 1) % a.shape[0]
    for i in range(a.shape[0]):
        b[order[i]] += a[i] * i


def masked(b, a):
    b[a > 1.0] = 0.5
    b[a <= 0.8] *= a[a <= 0.8]


ALL = [
    masked, recurrence, early_exit, data_dependent, slices, whole, local_arrays, in_place_chain, swapped, indirect,
]  # fmt: skip


@pytest.mark.parametrize("function", ALL)
def test_values_tangents_and_cotangents(function: Any) -> None:
    rng = np.random.default_rng(5)
    start = {"b": rng.uniform(0.5, 1.5, N), "a": rng.uniform(0.5, 1.5, N)}
    tangents = {n: rng.uniform(-1, 1, N) for n in start}

    def after(step: float) -> dict[str, Any]:
        moved = {n: v + step * tangents[n] for n, v in start.items()}
        function(**moved)
        return moved

    forward = oracle.jvp(function, tuple(start.values()), tangents)
    ends = after(1e-6), after(-1e-6)
    for name, expected in after(0.0).items():
        np.testing.assert_allclose(forward.values[name], expected, rtol=1e-14)
        difference = (ends[0][name] - ends[1][name]) / 2e-6
        np.testing.assert_allclose(forward.derivatives[name], difference, rtol=1e-7, atol=1e-8)
    seeds = {n: rng.uniform(-1, 1, N) for n in start}
    reverse = oracle.vjp(function, tuple(start.values()), seeds)
    left = sum(seeds[n] @ forward.derivatives[n] for n in start)
    right = sum(reverse.derivatives[n] @ tangents[n] for n in start)
    assert left == pytest.approx(right, rel=1e-13)


def test_what_is_read_and_written() -> None:
    def kernel(b, a, k):
        b[1:3] = a[0] * 2.0
        k[2] = 7

    result = oracle.primal(kernel, (np.zeros(4), np.ones(4), np.zeros(4, int)))
    assert result.written["b"].tolist() == [False, True, True, False]
    assert not result.written["a"].any()
    assert result.written["k"].tolist() == [False, False, True, False]
    assert result.read == {"a"}


def test_precision_is_that_of_the_arrays() -> None:
    def kernel(b, a):
        b[:] = a * (1.0 / 3.0) + 0.1

    a = np.linspace(0, 1, 5, dtype=np.float32)
    b = np.zeros_like(a)
    result = oracle.primal(kernel, (b, a))
    kernel(b, a)
    assert result.values["b"].dtype == np.float32
    np.testing.assert_array_equal(result.values["b"], b)


def test_too_many_operations() -> None:
    def kernel(a):
        for _ in range(10**9):
            a[0] = a[0] * 1.5

    with pytest.raises(TooManyOperations):
        oracle.primal(kernel, (np.ones(1),), most=10)


def test_exceptions_of_the_kernel_come_through() -> None:
    def kernel(a):
        a[0] = a[5]

    with pytest.raises(IndexError):
        oracle.primal(kernel, (np.ones(3),))
