"""Statements of irad.fd under an ``if`` on scalars: what runs, and what it costs in the IR."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from stage_runner import clean_ir, lower_for, run

from irad.fd import all as all_
from irad.fd import d2, d_xa, inn

rng = np.random.default_rng(8)


def sides(a, b, n, x, flag):
    if flag:
        a[inn] = d2(b)
    else:
        a[inn] = 2 * inn(b)
    b[all_] = all_(a) + x


def chain(a, b, n, x, flag):
    if n == 1:
        a[inn] = inn(b)
    elif n == 2 and x > 0:
        a[inn] = x * inn(b)
    elif not flag or n > 3:
        a[inn] = n * inn(b)


def early(a, b, n, x, flag):
    a[inn] = inn(b)
    if n == 0:
        return
    b[inn] = inn(a) * x
    if flag:
        a[inn] = inn(b)


def nested(a, b, n, x, flag):
    scale = x * n
    if n > 1:
        scale = scale * scale
        if flag:
            a[inn] = scale * inn(b)
        b[inn] = scale * inn(a)
    a[inn] = x * inn(b)


def within(a, b, n, x, flag):
    if flag:
        y = 2 * x
        a[inn] = y * inn(b)
    if n:
        y = 3 * x
        b[inn] = y * inn(a)


def numpy_chain(a, b, n, x, flag):
    factor = 1 if n == 1 else x if n == 2 and x > 0 else n if not flag or n > 3 else None
    if factor is not None:
        a[1:-1] = factor * b[1:-1]


def numpy_sides(a, b, n, x, flag):
    a[1:-1] = b[2:] - 2 * b[1:-1] + b[:-2] if flag else 2 * b[1:-1]
    b[:] = a + x


def numpy_early(a, b, n, x, flag):
    a[1:-1] = b[1:-1]
    if n == 0:
        return
    b[1:-1] = a[1:-1] * x
    if flag:
        a[1:-1] = b[1:-1]


def numpy_nested(a, b, n, x, flag):
    scale = x * n
    if n > 1:
        scale = scale * scale
        if flag:
            a[1:-1] = scale * b[1:-1]
        b[1:-1] = scale * a[1:-1]
    a[1:-1] = x * b[1:-1]


def numpy_within(a, b, n, x, flag):
    if flag:
        a[1:-1] = 2 * x * b[1:-1]
    if n:
        b[1:-1] = 3 * x * a[1:-1]


@pytest.mark.parametrize("kernel", [sides, chain, early, nested, within], ids=lambda k: k.__name__)
def test_what_numpy_does(kernel):
    reference = globals()[f"numpy_{kernel.__name__}"]
    for n, x, flag in itertools.product([0, 1, 2, 4], [-0.5, 1.5], [False, True]):
        a, b = rng.random((2, 6))
        found, expected = (a.copy(), b.copy()), (a.copy(), b.copy())
        run(kernel, *found, n, x, flag)
        reference(*expected, n, x, flag)
        np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_a_statement_that_always_runs_has_no_branch():
    stages = lower_for(sides, np.zeros(4), np.zeros(4), 1, 1.0, True).stages
    assert ["br i1 %flag" in clean_ir(stage) for stage in stages] == [True, True, False]


def test_conditions_that_say_nothing_about_a_statement_are_not_asked():
    def kernel(a, b, n):
        if n > 77:
            b[inn] = inn(a)
        if n > 88:
            a[inn] = inn(b)

    first, second = (clean_ir(stage) for stage in lower_for(kernel, np.zeros(4), np.zeros(4), 1).stages)
    assert ("77" in first, "88" in first, "77" in second, "88" in second) == (True, False, False, True)


def test_shapes_are_asked_for_in_each_case():
    def kernel(a, b, n):
        if n:
            a[inn] = d_xa(b)

    (stage,) = lower_for(kernel, np.zeros(4), np.zeros(4), 1).stages
    assert [(c.array, c.cut, c.target_cut) for c in stage.conforms] == [("b", 1, 2)]
