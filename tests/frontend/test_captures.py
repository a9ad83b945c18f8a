"""Captured values are hidden arguments, looked up at each launch; helpers' too."""

from __future__ import annotations

import types

import numba
import numpy as np
import pytest
from stage_runner import lower_for, run, run_stage

from irad.domains import interior, points
from irad.errors import IradError, NotDifferentiableError
from irad.frontend import ScalarType
from irad.frontend.captures import analyse
from irad.frontend.device import device

rng = np.random.default_rng(3)

Ci = np.arange(1.0, 6.0)
factor = 2.0
strong = np.float64(2.0)
count = 3
switch = True
pair = (1.0, 3.0)
arrays = (Ci, Ci)
settings = types.ModuleType("settings")
settings.field = np.arange(2.0, 7.0)
settings.step = 0.5


def test_globals_of_every_kind():
    def kernel(a, b):
        i = points(a)
        if switch:
            a[i] = b[i] * Ci[i] * factor * strong * count * pair[1]

    b, a = rng.random(5), np.zeros(5)
    lowered = run(kernel, a, b)
    np.testing.assert_allclose(a, b * Ci * 2 * 2 * 3 * 3, rtol=1e-14)
    kinds = {p.name: p.type for p in lowered.params if p.capture}
    assert list(kinds) == ["switch", "Ci", "factor", "strong", "count"]
    assert [kinds[n] for n in ("switch", "factor", "strong", "count")] == [
        ScalarType(k) for k in ("bool", "float", "float64", "int")
    ]
    assert [p.name for p in lowered.params] == ["a", "b", *kinds]
    assert [c.name for c in lowered.constants] == ["points", "pair"]


def test_a_change_is_seen_at_the_next_launch(monkeypatch):
    def kernel(a, b):
        i = points(a)
        a[i] = b[i] * factor + Ci[i]

    b, a = rng.random(5), np.zeros(5)
    lowered = run(kernel, a, b)
    monkeypatch.setitem(globals(), "factor", 5.0)
    monkeypatch.setitem(globals(), "Ci", np.ones(5))
    assert lowered.fresh()
    run_stage(lowered, lowered.stages[0], (a, b))
    np.testing.assert_array_equal(a, b * 5 + 1)


def test_a_change_of_type_or_of_a_constant_is_noticed(monkeypatch):
    def kernel(a, b):
        i = points(a)
        a[i] = b[i] * factor * pair[0]

    lowered = lower_for(kernel, np.zeros(5), np.zeros(5))
    assert lowered.fresh()
    for name, value in (("factor", np.float32(2)), ("factor", 2), ("pair", (1.0, 4.0))):
        with monkeypatch.context() as patch:
            patch.setitem(globals(), name, value)
            assert not lowered.fresh(), name
    with monkeypatch.context() as patch:
        patch.delitem(globals(), "factor")
        assert not lowered.fresh()
        with pytest.raises(IradError, match="factor is no longer defined"):
            lowered.captures[0].get()


def test_closure_cells():
    scale, array = 2.0, np.ones(5)

    def kernel(a, b):
        i = points(a)

        def inner(x):
            return x * scale * array[i]

        a[i] = inner(b[i])

    b, a = rng.random(5), np.zeros(5)
    lowered = run(kernel, a, b)
    assert sorted(c.name for c in lowered.captures) == ["array", "scale"]
    np.testing.assert_array_equal(a, b * 2)
    scale, array = 3.0, array * 2
    run_stage(lowered, lowered.stages[0], (a, b))
    np.testing.assert_array_equal(a, b * 6)


def test_inner_functions_may_index_by_what_they_capture():
    """Numba alone reads the captured index as None here, and the entry as a whole array."""

    def kernel(a, b):
        i, j = points(a)

        def entry(x):
            return x * b[i, j] + a[i, j] ** i

        def put(x):
            a[i, j] = x

        put(entry(2.0))

    b, a = rng.random((3, 4)), np.full((3, 4), 2.0)
    run(kernel, a, b)
    np.testing.assert_array_equal(a, 2 * b + 2.0 ** np.arange(3)[:, None])


def test_attributes_of_modules(monkeypatch):
    def kernel(a, b):
        i = points(a)
        a[i] = b[i] * settings.field[i] * settings.step * np.pi

    b, a = rng.random(5), np.zeros(5)
    lowered = run(kernel, a, b)
    assert [c.name for c in lowered.captures] == ["field", "step"]
    np.testing.assert_allclose(a, b * settings.field * 0.5 * np.pi, rtol=1e-14)
    monkeypatch.setattr(settings, "step", 1.0)
    run_stage(lowered, lowered.stages[0], (a, b))
    np.testing.assert_allclose(a, b * settings.field * np.pi, rtol=1e-14)


@device
def inner_helper(x, scale=2.0):
    return x * Ci[1] * scale + factor


@numba.njit
def outer_helper(x):
    return inner_helper(x, scale=3.0) if x > 0.5 else inner_helper(x)


def test_what_helpers_capture_is_handed_down(monkeypatch):
    def kernel(a, b):
        i = points(a)
        a[i] = outer_helper(b[i]) + Ci[i]

    def expected(b):
        return np.where(b > 0.5, b * Ci[1] * 3, b * Ci[1] * 2) + factor + Ci

    b, a = rng.random(5), np.zeros(5)
    lowered = run(kernel, a, b)
    assert [c.name for c in lowered.captures] == ["Ci", "factor"]
    np.testing.assert_allclose(a, expected(b), rtol=1e-14)
    monkeypatch.setitem(globals(), "factor", 7.0)
    monkeypatch.setitem(globals(), "Ci", Ci * 2)
    run_stage(lowered, lowered.stages[0], (a, b))
    np.testing.assert_allclose(a, expected(b), rtol=1e-14)


def test_equal_names_of_different_things_are_told_apart():
    def make(array):
        Ci = array

        @device
        def helper(x, i):
            return x * Ci[i]

        return helper

    helper = make(np.full(5, 10.0))

    def kernel(a, b, factor):
        i = points(a)
        a[i] = helper(b[i], i) + Ci[i] + inner_helper(b[i]) * factor

    b, a = rng.random(5), np.zeros(5)
    lowered = run(kernel, a, b, 1.0)
    assert [c.name for c in lowered.captures] == ["kernel.Ci", "helper.Ci", "inner_helper.factor"]
    np.testing.assert_allclose(a, 10 * b + Ci + inner_helper.py_func(b), rtol=1e-14)


def test_helpers_take_arrays_return_tuples_and_loop():
    @device
    def laplacian(T, i, j):
        return T[i + 1, j] + T[i - 1, j] - 2 * T[i, j]

    @numba.njit
    def both(x, y):
        return x + y, x - y

    @numba.njit
    def powers(x):
        total = 0.0
        for n in range(3):
            total += n * x
        return total

    def kernel(a, b):
        i, j = interior(a)
        s, t = both(b[i, j], 1.0)
        a[i, j] = laplacian(b, i, j) + s * t + powers(b[i, j])

    b, a = rng.random((5, 6)), np.zeros((5, 6))
    run(kernel, a, b)
    c = b[1:-1, 1:-1]
    expected = b[2:, 1:-1] + b[:-2, 1:-1] - 2 * c + (c + 1) * (c - 1) + 3 * c
    np.testing.assert_allclose(a[1:-1, 1:-1], expected, rtol=1e-13)


def test_a_captured_array_can_be_written():
    out = np.zeros(5)

    def kernel(b):
        i = points(b)
        out[i] = b[i] * 2

    b = rng.random(5)
    run(kernel, b)
    np.testing.assert_array_equal(out, b * 2)


def test_a_captured_array_can_name_the_domain():
    def kernel(a, b):
        i = interior(Ci, count - 2)
        a[i] = b[i]

    b, a = rng.random(5), np.zeros(5)
    run(kernel, a, b)
    np.testing.assert_array_equal(a, [0, *b[1:-1], 0])


def test_tuples_of_arrays_are_refused():
    def kernel(a, b):
        i = points(a)
        a[i] = arrays[0][i]

    with pytest.raises(NotDifferentiableError, match="arrays is a tuple that holds arrays"):
        lower_for(kernel, np.zeros(5), np.zeros(5))


@device
def recursive(x):
    return recursive(x - 1) if x > 0 else x


@device
def ping(x):
    return pong(x)


@device
def pong(x):
    return ping(x)


@pytest.mark.parametrize(("helper", "name"), [(recursive, "recursive"), (ping, "ping")])
def test_recursion_is_refused(helper, name):
    def kernel(a, b):
        i = points(a)
        a[i] = helper(b[i])

    with pytest.raises(NotDifferentiableError, match=f"{name} calls itself"):
        lower_for(kernel, np.zeros(5), np.zeros(5))


def test_captured_arrays_must_be_of_a_known_type():
    words = np.array(["a", "b"])

    def kernel(a, b):
        i = points(a)
        a[i] = len(words)

    with pytest.raises(IradError, match="captured words: arrays of dtype str"):
        lower_for(kernel, np.zeros(5), np.zeros(5))


def test_a_unit_lists_what_it_takes():
    unit = analyse(outer_helper.py_func)
    assert [u.name for u in unit.walk()] == ["outer_helper", "inner_helper"]
    assert [slot.name for slot, _ in unit.hidden.values()] == ["Ci", "factor"]
    assert len(repr(next(iter(unit.hidden.values()))[0])) < 50
