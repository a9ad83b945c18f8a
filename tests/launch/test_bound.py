"""Bound launches: results, changed scalars, chains, arrays that move, references."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref

import numpy as np
import pytest

from irad.errors import IradError
from irad.launch import block
from irad.launch.bound import Bound, bind, chain
from irad.launch.tables import Bound as BoundTable

from .kernels import scale


@pytest.fixture(scope="module")
def kernel():
    return scale()


def bound_scale(kernel, out, a, s) -> Bound:
    arrays = {"out": out, "a": a}
    words = block.fill(kernel.layout, arrays, {"s": ("double", s)})
    plan = kernel.plan(words)
    assert plan.failed == ()
    return bind(kernel, words, plan, arrays, {"s": "double"})


def test_runs_with_any_strides(kernel):
    a = np.random.default_rng(0).random((6, 8, 5))[::2, ::-1, 1:]
    out = np.zeros((4, 3, 8)).transpose(1, 2, 0)
    bound_scale(kernel, out, a, 3.0)()
    assert np.array_equal(out, 3 * a)


def test_set_changes_a_scalar_and_refuses_others(kernel):
    a, out = np.ones((2, 3, 4)), np.zeros((2, 3, 4))
    launch = bound_scale(kernel, out, a, 3.0)
    launch.set("s", 4.5)
    launch()
    assert np.all(out == 4.5)
    with pytest.raises(TypeError, match="bind again"):
        launch.set("a.n0", 2.0)


def test_chain_runs_in_order_and_shares_blocks(kernel):
    a, b, c = np.ones((2, 3, 4)), np.zeros((2, 3, 4)), np.zeros((2, 3, 4))
    first, second = bound_scale(kernel, b, a, 2.0), bound_scale(kernel, c, b, 5.0)
    both = chain([first, second])
    both()
    assert np.all(c == 10)
    first.set("s", 3.0)
    both()
    assert np.all(c == 15)
    with pytest.raises(TypeError, match="parts"):
        both.set("s", 1.0)


def test_plan_reports_failed_checks(kernel):
    arrays = {"out": np.zeros((2, 3, 4)), "a": np.zeros((2, 3, 5))}
    words = block.fill(kernel.layout, arrays, {"s": ("double", 1.0)})
    plan = kernel.plan(words)
    assert plan.failed == (0,)
    with pytest.raises(ValueError, match="failed"):
        bind(kernel, words, plan, arrays)


@pytest.mark.parametrize("shape", [(400, 30, 40), (2, 3, 3), (1, 3, 4), (2, 4, 3)])
def test_resized_array_is_noticed_before_anything_is_written(kernel, shape):
    a, out = np.ones((2, 3, 4)), np.zeros((2, 3, 4))
    launch = bound_scale(kernel, out, a, 3.0)
    a.resize(shape, refcheck=False)
    with pytest.raises(IradError, match="'a' has been resized"):
        launch()
    with pytest.raises(IradError, match="'a' has been resized"):
        chain([launch])()
    assert np.all(out == 0)


def test_keeps_arrays_alive_and_lets_them_go_without_the_collector(kernel):
    a, out = np.ones((2, 3, 4)), np.zeros((2, 3, 4))
    gone = weakref.ref(a)
    launch = chain([bound_scale(kernel, out, a, 3.0)])
    del a
    gc.disable()
    try:
        launch()
        assert gone() is not None
        del launch
        assert gone() is None
    finally:
        gc.enable()


def test_a_million_calls_leave_reference_counts_alone(kernel):
    a, out = np.ones((1, 1, 1)), np.zeros((1, 1, 1))
    launch = bound_scale(kernel, out, a, 3.0)
    before = [sys.getrefcount(x) for x in (launch, a, out, None)]
    call = launch.__call__
    for _ in range(100_000):
        call()
    del call
    after = [sys.getrefcount(x) for x in (launch, a, out, None)]
    assert all(abs(x - y) < 50 for x, y in zip(before, after, strict=True))


def test_gil_is_released_from_100_microseconds_of_work(kernel):
    for shape, alone, twice in (((40, 40, 40), False, True), ((40, 40, 60), False, True), ((100, 100, 10), True, True)):
        launch = bound_scale(kernel, np.zeros(shape), np.ones(shape), 2.0)
        assert launch.work == np.prod(shape)
        assert launch._words[BoundTable.RELEASE] == alone
        assert chain([launch, launch])._words[BoundTable.RELEASE] == twice
        assert bind(kernel, launch.block, kernel.plan(launch.block), {}, release=not alone)._words[
            BoundTable.RELEASE
        ] == (not alone)


@pytest.mark.parametrize("release", [False, True])
def test_python_runs_beside_a_launch_that_released_the_gil(kernel, release):
    turns, stop = [], threading.Event()

    def other():
        while not stop.is_set():
            turns.append(time.perf_counter())
            time.sleep(0.0005)

    a, out = np.ones((100, 100, 100)), np.zeros((100, 100, 100))
    launch = chain([bound_scale(kernel, out, a, 2.0)] * 5, release=release)
    thread = threading.Thread(target=other)
    thread.start()
    try:
        begin = time.perf_counter()
        launch()
        end = time.perf_counter()
    finally:
        stop.set()
        thread.join()
    middle = [t for t in turns if begin + (end - begin) / 4 < t < end - (end - begin) / 4]
    assert bool(middle) == release


def test_python_fallback_does_the_same(kernel):
    a, out = np.ones((2, 3, 4)), np.zeros((2, 3, 4))
    launch = bound_scale(kernel, out, a, 3.0)
    launch.python_call()
    assert np.all(out == 3)
    a.resize((20, 30, 40), refcheck=False)
    with pytest.raises(IradError, match="resized"):
        launch.python_call()
