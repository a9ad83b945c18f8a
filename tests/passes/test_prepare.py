"""Kernels from Python source to prepared functions, run by the interpreter and compared with NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from irad.passes.ir.graph import loops
from irad.passes.ir.interp import run
from irad.passes.ir.model import Function
from irad.passes.prepare import prepare_function

from irad.domains import interior, points
from irad.frontend import ArrayType, lower, typeof

RNG = np.random.default_rng(3)


def prepared(kernel: Callable[..., None], args: tuple[Any, ...]) -> Function:
    lowered = lower(kernel, tuple(typeof(a) for a in args))  # type: ignore[arg-type]
    weak = frozenset(p.name for p in lowered.params if not isinstance(p.type, ArrayType) and p.type.kind == "float")
    (stage,) = lowered.stages
    return prepare_function(stage.text, stage.name, weak)


def run_kernel(kernel: Callable[..., None], args: tuple[Any, ...], names: str, width: int = 0) -> Function:
    """Run a prepared kernel at the points of its first array that are ``width`` from the boundary."""
    fn = prepared(kernel, args)
    by_name = dict(zip(names.split(), args, strict=True))
    arrays = {n: a for n, a in by_name.items() if isinstance(a, np.ndarray)}
    scalars = {n: a for n, a in by_name.items() if n not in arrays}
    shape = args[0].shape
    for at in np.ndindex(*(n - 2 * width for n in shape)):
        run(fn, scalars, arrays, index=[i + width for i in at])
    return fn


def heat(D, T, lam, dx):  # type: ignore[no-untyped-def]
    i, j = interior(D)
    D[i, j] = lam[0] * (
        (T[i + 1, j] - 2 * T[i, j] + T[i - 1, j]) / dx**2 + (T[i, j + 1] - 2 * T[i, j] + T[i, j - 1]) / dx**2
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_heat_has_the_bits_of_numpy(dtype: Any) -> None:
    T, lam, dx = RNG.random((6, 7)).astype(dtype), np.array([0.7], dtype), 0.3
    D = np.zeros_like(T)
    fn = run_kernel(heat, (D, T, lam, dx), "D T lam dx", 1)
    C, N, S, E, W = T[1:-1, 1:-1], T[:-2, 1:-1], T[2:, 1:-1], T[1:-1, 2:], T[1:-1, :-2]
    expected = lam[0] * ((S - 2 * C + N) / dx**2 + (E - 2 * C + W) / dx**2)
    assert expected.dtype == dtype
    np.testing.assert_array_equal(D[1:-1, 1:-1], expected)
    if dtype is np.float32:
        left = [i for i in fn.instrs() if i.type == "double"]
        assert [i.op for i in left] == ["fmul"]
        assert {v.name for v in left[0].operands} == {"dx"}


def upwind(D, u, c):  # type: ignore[no-untyped-def]
    i = interior(D)
    d = u[i + 1] - u[i] if c < 0 else u[i] - u[i - 1]
    D[i] = c * d


@pytest.mark.parametrize("c", [0.5, -0.5])
def test_upwind_keeps_its_four_accesses(c: float) -> None:
    u = RNG.random(9)
    D = np.zeros_like(u)
    fn = run_kernel(upwind, (D, u, c), "D u c", 1)
    assert sum(i.op == "load" for i in fn.instrs()) == 4
    expected = c * (u[2:] - u[1:-1]) if c < 0 else c * (u[1:-1] - u[:-2])
    np.testing.assert_array_equal(D[1:-1], expected)


def filter5(D, T):  # type: ignore[no-untyped-def]
    i, j = interior(D, 2)
    s = 0.0
    for a in range(-2, 3):
        for b in range(-2, 3):
            s += T[i + a, j + b] * (a * a + b * b + 1)
    D[i, j] = s


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_loops_over_a_stencil_disappear(dtype: Any) -> None:
    T = RNG.random((6, 7)).astype(dtype)
    D = np.zeros_like(T)
    fn = run_kernel(filter5, (D, T), "D T", 2)
    assert not loops(fn)
    assert sum(i.op == "load" for i in fn.instrs()) == 25
    expected = np.zeros((2, 3), dtype)
    for a in range(-2, 3):
        for b in range(-2, 3):
            expected += T[2 + a : 4 + a, 2 + b : 5 + b] * (a * a + b * b + 1)
    np.testing.assert_array_equal(D[2:-2, 2:-2], expected)


def functions(y, x, p):  # type: ignore[no-untyped-def]
    i = points(y)
    v = x[i]
    if v == p:
        y[i] = 3.0 * v
    else:
        y[i] = math.tanh(v) + v**1.5 + abs(v - p) + max(v, p) - min(v, 0.25) + np.hypot(v, p) + math.erf(v)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_functions_and_comparisons(dtype: Any) -> None:
    p = 0.5
    x = np.array([0.1, 0.25, 0.5, 0.75, 1.0], dtype)
    y = np.zeros_like(x)
    run_kernel(functions, (y, x, p), "y x p")
    erf = np.array([math.erf(v) for v in x], dtype)
    smooth = np.tanh(x) + x**1.5 + abs(x - p) + np.maximum(x, p) - np.minimum(x, 0.25) + np.hypot(x, p) + erf
    np.testing.assert_allclose(y, np.where(x == p, 3 * x, smooth), rtol=4 * np.finfo(dtype).eps)


def capped(y, x, big):  # type: ignore[no-untyped-def]
    i = points(y)
    if x[i] < big:
        y[i] = x[i] * x[i] * x[i]
    else:
        y[i] = 1.0


def test_products_stay_behind_their_branch() -> None:
    x = np.array([2.0, 1e200])
    y = np.zeros_like(x)
    fn = run_kernel(capped, (y, x, 1e100), "y x big")
    assert y.tolist() == [8.0, 1.0]
    entry = fn.blocks[0]
    assert all(i.block is not entry for i in fn.instrs() if i.op == "fmul")


def test_lines_are_those_of_the_kernel() -> None:
    fn = prepared(heat, (np.zeros((4, 4)), np.zeros((4, 4)), np.ones(1), 0.1))
    first = heat.__code__.co_firstlineno
    lines = {i.loc.line for i in fn.instrs() if i.op in ("load", "store") and i.loc is not None}
    assert lines == {first + 2, first + 3}
    assert {i.loc.file for i in fn.instrs() if i.loc is not None} == {__file__}
