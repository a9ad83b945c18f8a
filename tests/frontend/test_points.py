"""Point kernels: domains and bodies, compiled and run against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from stage_runner import clean_ir, lower_for, run, run_stage

from irad import domains
from irad.domains import domain, interior, points
from irad.errors import IradError

rng = np.random.default_rng(1)


def heat1(dT, T, lam, dx):
    i = interior(dT)
    dT[i] = lam[0] * (T[i + 1] - 2 * T[i] + T[i - 1]) / dx**2


def heat2(dT, T, lam, dx):
    i, j = interior(dT)
    dT[i, j] = lam[0] * (T[i + 1, j] + T[i, j + 1] - 4 * T[i, j] + T[i - 1, j] + T[i, j - 1]) / dx**2


def heat3(dT, T, lam, dx):
    i, j, k = interior(dT)
    dT[i, j, k] = (
        lam[0]
        * (
            T[i + 1, j, k]
            + T[i - 1, j, k]
            + T[i, j + 1, k]
            + T[i, j - 1, k]
            + T[i, j, k + 1]
            + T[i, j, k - 1]
            - 6 * T[i, j, k]
        )
        / dx**2
    )


def laplacian(T):
    inner = (slice(1, -1),) * T.ndim
    total = -2.0 * T.ndim * T[inner]
    for axis in range(T.ndim):
        for part in (slice(2, None), slice(None, -2)):
            total = total + T[(*inner[:axis], part, *inner[axis + 1 :])]
    return total


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", [heat1, heat2, heat3])
def test_heat(kernel, dtype):
    rank = int(kernel.__name__[-1])
    T = rng.random((7, 6, 5)[:rank]).astype(dtype)
    dT, lam = np.full_like(T, 9), np.array([2.0], dtype)
    lowered = run(kernel, dT, T, lam, 0.5)
    inner = (slice(1, -1),) * rank
    np.testing.assert_allclose(dT[inner], 8 * laplacian(T.astype(float)), rtol=3 * 10 * np.finfo(dtype).eps, atol=1e-4)
    dT[inner] = 9
    assert (dT == 9).all()
    assert lowered.stages[0].rank == rank


@pytest.mark.parametrize("kernel", [heat1, heat2, heat3])
def test_heat_is_one_block_of_clean_ir(kernel):
    rank = int(kernel.__name__[-1])
    T = np.zeros((4,) * rank)
    text = clean_ir(lower_for(kernel, T, T, np.zeros(1), 1.0).stages[0])
    assert text.count("\n.") == 1  # one label: the entry
    for word in ("alloca", "br ", "phi", "irad.status", "<2 x", "dbg_value"):
        assert word not in text, word
    assert text.count("load double") == 2 * rank + 2
    assert text.count("store double") == 1
    assert text.count("fdiv") == 1
    assert len([line for line in text.splitlines() if " = " in line and "!dbg" not in line]) == 0


def test_heat_from_strided_arrays():
    big = rng.random((24, 14))
    T, dT = big[::-2, ::2], np.zeros((14, 24))[::2, ::2].T
    run(heat2, dT, T, np.ones(1), 1.0)
    np.testing.assert_allclose(dT[1:-1, 1:-1], laplacian(T), atol=1e-13)


def copy_everywhere(a, b):
    i, j = points(a)
    a[i, j] = b[i, j]


def copy_by_tuple(a, b):
    p = domains.interior(a)
    a[p] = b[p]


def copy_width(a, b, w):
    i, j = interior(a, width=w)
    a[i, j] = b[i, j]


def copy_width_two(a, b):
    i, j = interior(a, 2)
    a[i, j] = b[i, j]


def copy_computed(a, b, n):
    rows, columns = b.shape
    low = 1 if n > 1 else 0
    i, j = domain((low, rows - n), (columns // 2, columns))
    a[i, j] = b[i, j]


@pytest.mark.parametrize(
    ("kernel", "extra", "box"),
    [
        (copy_everywhere, (), (0, 6, 0, 7)),
        (copy_by_tuple, (), (1, 5, 1, 6)),
        (copy_width, (1,), (1, 5, 1, 6)),
        (copy_width, (3,), (3, 3, 3, 4)),
        (copy_width, (4,), (4, 4, 4, 4)),
        (copy_width_two, (), (2, 4, 2, 5)),
        (copy_computed, (2,), (1, 4, 3, 7)),
        (copy_computed, (1,), (0, 5, 3, 7)),
        (copy_computed, (9,), (1, 1, 3, 7)),
    ],
)
def test_domains(kernel, extra, box):
    b, a = rng.random((6, 7)), np.zeros((6, 7))
    lowered = lower_for(kernel, a, b, *extra)
    bounds = run_stage(lowered, lowered.stages[0], (a, b, *extra))
    assert tuple(bounds) == box
    expected = np.zeros_like(a)
    lo0, hi0, lo1, hi1 = box
    expected[lo0:hi0, lo1:hi1] = b[lo0:hi0, lo1:hi1]
    np.testing.assert_array_equal(a, expected)


def test_one_axis_with_and_without_comma():
    def comma(a, b):
        (i,) = points(a)
        a[i] = b[i]

    def plain(a, b):
        i = points(a)
        a[i] = b[i]

    b = rng.random(5)
    for kernel in (comma, plain):
        a = np.zeros(5)
        run(kernel, a, b)
        np.testing.assert_array_equal(a, b)


def test_rank_four():
    def kernel(a, b):
        i, j, k, m = interior(a)
        a[i, j, k, m] = b[i - 1, j, k, m] + b[i, j, k, m + 1]

    b = rng.random((3, 4, 5, 6))
    a = np.zeros_like(b)
    run(kernel, a, b)
    expected = np.zeros_like(b)
    expected[1:-1, 1:-1, 1:-1, 1:-1] = b[:-2, 1:-1, 1:-1, 1:-1] + b[1:-1, 1:-1, 1:-1, 2:]
    np.testing.assert_array_equal(a, expected)


def test_empty_arrays():
    a = np.zeros((0, 3))
    lowered = lower_for(copy_by_tuple, a, a)
    assert run_stage(lowered, lowered.stages[0], (a, a)) == [1, 1, 1, 2]


def test_negative_indices_wrap():
    def kernel(a, b):
        i = points(a)
        a[i] = b[i - 1] * b[-2]

    b = rng.random(6)
    a = np.zeros(6)
    lowered = run(kernel, a, b)
    np.testing.assert_array_equal(a, np.roll(b, 1) * b[-2])
    assert "select" in clean_ir(lowered.stages[0])


def test_integers_booleans_and_branches():
    def kernel(a, x, index, mask, small, on, n, f):
        i = points(a)
        if mask[i] and on:
            a[i] = x[index[i]] * n
        else:
            a[i] = x[small[i]] * f

    x, index, mask = rng.random(5), np.array([4, 2, 0, 1, 3]), np.array([True, False, True, True, False])
    small = index.astype(np.int32)
    for on in (True, False):
        a = np.zeros(5)
        run(kernel, a, x, index, mask, small, on, 3, 0.5)
        np.testing.assert_array_equal(a, np.where(mask & on, x[index] * 3, x[index] * 0.5))


def test_something_may_precede_the_domain():
    def kernel(a, b):
        c = b[0] * 2
        i = domain((1, len(b)))
        a[i] = b[i] + c

    b = rng.random(5)
    a = np.zeros(5)
    run(kernel, a, b)
    np.testing.assert_array_equal(a[1:], (b + 2 * b[0])[1:])
    assert a[0] == 0


def content(a, b):
    i = domain((0, int(b[0])))
    a[i] = 1.0


def content_through_a_branch(a, b):
    n = 3
    if b[0] > 0:
        n = 2
    i = domain((0, n))
    a[i] = 1.0


def from_float(a, f):
    i = domain((0, int(f)))
    a[i] = 1.0


def float_bound(a, f):
    i = domain((0, 2.0))
    a[i] = 1.0


def second(a, b):
    i = points(a)
    j = points(b)
    a[i] = b[j]


def in_a_loop(a, b):
    for _ in range(2):
        i = points(a)
        a[i] = b[i]


def sometimes(a, b):
    if a.shape[0] > 3:
        return
    i = points(a)
    a[i] = b[i]


def too_late(a, b):
    a[0] = 1.0
    i = points(a)
    a[i] = b[i]


def two_names(a, b):
    i, j = points(a)
    a[i] = b[j]


def no_array(a, b):
    i = points()
    a[i] = b[i]


def twice_width(a, b):
    i = interior(a, 1, width=1)
    a[i] = b[i]


def no_pairs(a, b):
    i = domain()
    a[i] = b[i]


def width_from_float(a, b):
    i = interior(a, 1.0)
    a[i] = b[i]


@pytest.mark.parametrize(
    ("kernel", "line", "says"),
    [
        (content, 1, "depends on the content of an array"),
        (content_through_a_branch, 2, "depends on the content of an array"),
        (from_float, 1, "depends on a float"),
        (float_bound, 1, "not pairs of integers"),
        (second, 2, "second one"),
        (in_a_loop, 2, "named in a loop"),
        (sometimes, 3, "not named on every way"),
        (too_late, 1, "assigned before the launch domain"),
        (two_names, 1, "1 axis, 2 names are given"),
        (no_array, 1, "takes an array"),
        (twice_width, 1, "takes an array and a width"),
        (no_pairs, 1, "1 to 4 pairs"),
        (width_from_float, 1, "integer width"),
    ],
)
def test_refused_domains(kernel, line, says):
    args = (np.zeros(5), 2.0 if "float" in kernel.__name__ and "width" not in kernel.__name__ else np.zeros(5))
    with pytest.raises(IradError, match=says) as e:
        lower_for(kernel, *args)
    first = kernel.__code__.co_firstlineno
    assert str(e.value).startswith(f"{__file__}:{first + line}: ")
    assert "Instead: " in str(e.value)
