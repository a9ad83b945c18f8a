"""Math-close kernels: statements become stages; operators, selectors and temporaries mean what NumPy makes of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from stage_runner import clean_ir, lower_for, run, run_stage

from irad import fd
from irad.domains import interior
from irad.errors import IradError
from irad.fd import all as all_
from irad.fd import av_xa, d, d2, d2_xi, d2_yi, d2_zi, d_xa, d_xi, d_ya, d_yi, d_za, inn, inn_x, inn_y, maxloc
from irad.frontend.device import device

rng = np.random.default_rng(2)


def heat(dT, T, Ci, lam, dx, dy, dz):
    dT[inn] = lam[0] * inn(Ci) * (d2_xi(T) / dx**2 + d2_yi(T) / dy**2 + d2_zi(T) / dz**2)


def heat_by_points(dT, T, Ci, lam, dx, dy, dz):
    i, j, k = interior(dT)
    dT[i, j, k] = (
        lam[0]
        * Ci[i, j, k]
        * (
            (T[i + 1, j, k] - 2 * T[i, j, k] + T[i - 1, j, k]) / dx**2
            + (T[i, j + 1, k] - 2 * T[i, j, k] + T[i, j - 1, k]) / dy**2
            + (T[i, j, k + 1] - 2 * T[i, j, k] + T[i, j, k - 1]) / dz**2
        )
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_both_notations_give_the_same_bits(dtype):
    T, Ci = rng.random((2, 5, 6, 7)).astype(dtype)
    results = []
    for kernel in (heat, heat_by_points):
        dT = np.zeros_like(T)
        run(kernel, dT, T, Ci, np.array([2.0], dtype), 0.1, 0.2, 0.3)
        results.append(dT)
    np.testing.assert_array_equal(*results)
    assert results[0].any()


def test_a_statement_is_one_block_of_clean_ir():
    T = np.zeros((4, 4, 4))
    text = clean_ir(lower_for(heat, T, T, T, np.ones(1), 1.0, 1.0, 1.0).stages[0])
    assert text.count("\n.") == 1
    assert text.count("load double") == 9
    assert "alloca" not in text
    assert "irad.status" not in text


FITTING = [(name, rank) for name, op in fd.OPERATORS.items() for rank in (1, 2, 3) if not op.reason_against(rank)]


@pytest.mark.parametrize(("name", "rank"), FITTING)
def test_every_operator_is_what_it_is_outside_a_kernel(name, rank):
    op = fd.OPERATORS[name]

    def kernel(out, A):
        out[all_] = op(A)

    A = rng.random((5, 6, 7)[:rank])
    expected = op(A)
    out = np.zeros_like(expected)
    run(kernel, out, A)
    np.testing.assert_allclose(out, expected, rtol=1e-14)


def test_staggered_grids():
    def kernel(dT, qx, qy, T, lam, dx, dy):
        qx[all_] = -lam * d_xi(T) / dx
        qy[all_] = -lam * d_yi(T) / dy
        dT[inn] = -(d_xa(qx) / dx + d_ya(qy) / dy)

    T, dT, qx, qy = rng.random((6, 7)), np.zeros((6, 7)), np.zeros((5, 5)), np.zeros((4, 6))
    lowered = run(kernel, dT, qx, qy, T, 2.0, 0.5, 0.25)
    assert [s.rank for s in lowered.stages] == [2, 2, 2]
    assert len({s.name for s in lowered.stages}) == 3
    expected = 2 * (np.diff(T, 2, axis=0)[:, 1:-1] * 4 + np.diff(T, 2, axis=1)[1:-1] * 16)
    np.testing.assert_allclose(dT[1:-1, 1:-1], expected, rtol=1e-12)
    boxes = [run_stage(lowered, s, (dT, qx, qy, T, 2.0, 0.5, 0.25)) for s in lowered.stages]
    assert boxes == [[0, 5, 0, 5], [0, 4, 0, 6], [0, 4, 0, 5]]


def test_shapes_that_a_statement_takes_for_granted():
    def kernel(dT, qx, T, lam):
        flux = d_xi(T) * lam[0]
        qx[all_] = flux + 1.0
        dT[inn] = d_xa(qx) + inn_y(d_xa(d_xa(T))) * dT[inn]

    lowered = lower_for(kernel, np.zeros((6, 7)), np.zeros((5, 5)), np.zeros((6, 7)), np.ones(1))
    shapes = [[(c.array, c.cut, c.target, c.target_cut, c.axis) for c in s.conforms] for s in lowered.stages]
    assert shapes == [
        [("T", 1, "qx", 0, 0), ("T", 2, "qx", 0, 1)],
        [("qx", 1, "dT", 2, 0), ("qx", 0, "dT", 2, 1), ("T", 2, "dT", 2, 0), ("T", 2, "dT", 2, 1)],
    ]
    assert lowered.stages[0].conforms[0].message == "T.shape[0] - 1 differs from qx.shape[0]"
    assert lowered.stages[0].conforms[0].loc.line == kernel.__code__.co_firstlineno + 1


def test_selectors_as_indices():
    def kernel(a, b):
        a[inn_x] = b[inn_x] * math.sqrt(2.0)
        a[inn_y] += fd.inn_y(b)
        a[fd.inn] -= 1.0

    b, a = rng.random((5, 6)), np.zeros((5, 6))
    run(kernel, a, b)
    expected = np.zeros_like(a)
    expected[1:-1] = b[1:-1] * math.sqrt(2.0)
    expected[:, 1:-1] += b[:, 1:-1]
    expected[1:-1, 1:-1] -= 1.0
    np.testing.assert_array_equal(a, expected)


def test_operators_nest_and_take_expressions():
    def kernel(a, b, C):
        flux = av_xa(C) * d_xa(b)
        a[inn] = inn_y(d_xa(flux)) + maxloc(b * C) + d_xa(d_xa(b + 1.0)[inn_y] * 2.0)

    b, C = rng.random((2, 6, 7))
    a = np.zeros_like(b)
    run(kernel, a, b, C)
    expected = inn_y(d_xa(av_xa(C) * d_xa(b))) + maxloc(b * C) + d_xa(inn_y(d_xa(b + 1.0)) * 2.0)
    np.testing.assert_allclose(a[1:-1, 1:-1], expected, rtol=1e-13)


def test_temporaries_are_repeated_where_they_are_used():
    def kernel(a, c, b, lam, dx):
        scale = lam[0] / dx**2
        lap = d2(b) * scale
        a[inn] = lap
        scale = scale + 1.0
        c[inn] = lap * lap * scale

    b, a, c = rng.random(7), np.zeros(7), np.zeros(7)
    run(kernel, a, c, b, np.array([3.0]), 0.5)
    lap = np.diff(b, 2) * 12
    np.testing.assert_allclose(a[1:-1], lap, rtol=1e-13)
    np.testing.assert_allclose(c[1:-1], lap * lap * 13, rtol=1e-13)


def test_extents_and_lengths():
    def kernel(a, b):
        n, m = b.shape
        a[all_] = b[all_] * n * m * b.size * len(b) * b.ndim

    b = rng.random((2, 3))
    a = np.zeros((2, 3))
    run(kernel, a, b)
    np.testing.assert_allclose(a, b * 2 * 3 * 6 * 2 * 2, rtol=1e-15)


table = np.array([3.0, 4.0])


@device
def bent(x, scale=2.0):
    return (x if x > 0.5 else -x) * table[1] * scale


def test_helpers_of_scalars():
    def kernel(a, b):
        a[inn] = bent(inn(b)) + bent(d2(b), scale=b[0])

    b, a = rng.random(9), np.zeros(9)
    lowered = run(kernel, a, b)
    assert [c.name for c in lowered.captures] == ["table"]

    def expected(x, scale):
        return np.where(x > 0.5, x, -x) * 4 * scale

    np.testing.assert_allclose(a[1:-1], expected(b[1:-1], 2.0) + expected(np.diff(b, 2), b[0]), rtol=1e-13)


def test_lines_are_those_of_the_statement_and_of_the_temporary():
    def kernel(a, b):
        lap = d2(b)
        a[inn] = lap * 2.0

    text = lower_for(kernel, np.zeros(5), np.zeros(5)).stages[0].text
    first = kernel.__code__.co_firstlineno
    for line in (first + 1, first + 2):
        assert f"DILocation(line: {line}," in text
    assert lower_for(kernel, np.zeros(5), np.zeros(5)).stages[0].loc.line == first + 2


@device
def setter(x):
    table[0] = x
    return x


@device
def selecting(x):
    return inn(x)


@device
def first_of(x):
    return x[0]


flag = 1.0


def bare(a, b):
    a[inn] = b


def bare_factor(a, b):
    a[inn] = 2 * b + inn(b)


def with_if(a, b):
    if b[0] > 0:
        a[inn] = inn(b)


def with_for(a, b):
    for _ in range(2):
        a[inn] = inn(b)


def with_choice(a, b):
    a[inn] = inn(b) if flag > 1 else 0.0


def several_ways(a, b):
    scale = 3.0
    if flag > 1:
        scale = 2.0
        scale = scale + flag
    a[inn] = scale * inn(b)


def one_way(a, b):
    if flag > 1:
        scale = 2.0
    a[inn] = scale * inn(b)


def by_index(a, b):
    a[inn] = inn(b)
    a[0] = 1.0


def no_selector(a, b):
    a[d] = d(b)


def wrong_rank(a, b):
    a[inn] = d_ya(b)


def wrong_operator(m, n):
    m[inn] = d_za(n)


def mixed_ranks(m, n):
    m[inn] = inn(table)


def stale(a, b):
    q = inn(b) * 2
    b[inn] = q
    a[inn] = q


def stale_scalar(a, b):
    c = b[0] * 2
    b[inn] = d2(a)
    a[inn] = c * inn(a)


def scalar_operand(a, b):
    a[inn] = d(2.0)


def nothing(a, b):
    inn(b)


def whole(a, b):
    a += 1
    a[inn] = inn(b)


def function_of_array(a, b):
    a[inn] = np.sum(b) * inn(b)


def method_of_array(a, b):
    a[inn] = b.sum() * inn(b)


def slices(a, b):
    a[inn] = b[1:-1] + inn(b)


def transposed(m, n):
    m[inn] = inn(n.T)


def keyword(a, b):
    a[inn] = inn(A=b)


def operator_in_helper(a, b):
    a[inn] = selecting(b)


def assigning_helper(a, b):
    a[inn] = setter(inn(b))


def array_to_helper(a, b):
    a[inn] = first_of(b) + inn(b)


def no_array(a, b):
    c = 1.0
    c[inn] = inn(b)


def rank_four(q, r):
    q[inn] = inn(r)


@pytest.mark.parametrize(
    ("kernel", "line", "says"),
    [
        (bare, 1, "b stands without an operator"),
        (bare_factor, 1, "b stands without an operator"),
        (with_if, 1, "an if on entries of an array"),
        (with_for, 1, "for and while"),
        (with_choice, 1, "a choice"),
        (several_ways, 5, "scale depends on an if"),
        (one_way, 3, "scale may be used before"),
        (by_index, 2, "assigned by index"),
        (no_selector, 1, "d does not select"),
        (wrong_rank, 1, "along y"),
        (wrong_operator, 1, "along z"),
        (mixed_ranks, 1, "table has rank 1, m has rank 2"),
        (stale, 1, "reads b, which line"),
        (stale_scalar, 1, "reads b, which line"),
        (scalar_operand, 1, "applied to a scalar"),
        (nothing, None, "assigns nothing"),
        (whole, 1, "a is updated as a whole"),
        (function_of_array, 1, "b is passed to a function"),
        (method_of_array, 1, "b is passed to a function"),
        (slices, 1, "part of an array"),
        (transposed, 1, "n.T"),
        (keyword, 1, "inn takes one argument"),
        (operator_in_helper, None, "helper selecting uses the operator inn"),
        (assigning_helper, None, "helper setter assigns"),
        (array_to_helper, 1, "b is passed to a helper"),
        (no_array, 2, "only arrays are assigned"),
        (rank_four, 1, "rank 1 or 2 or 3, not 4"),
    ],
)
def test_refused(kernel, line, says):
    rank = {"m": 2, "q": 4}.get(kernel.__code__.co_varnames[0], 1)
    A = np.zeros((5,) * rank)
    with pytest.raises(IradError, match=says) as e:
        lower_for(kernel, A, A.copy())
    if line is not None:
        assert str(e.value).startswith(f"{__file__}:{kernel.__code__.co_firstlineno + line}: ")
    assert "Instead: " in str(e.value)
