"""Marks in the IR: strong floats, and powers that are multiplied out."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import numpy as np
import pytest
from stage_runner import clean_ir, lower_for, run

from irad.domains import points

rng = np.random.default_rng(5)


def test_explicit_casts_are_marked():
    def kernel(a, b, dx):
        i = points(a)
        a[i] = np.float64(b[i]) * dx + np.float32(dx) + np.float64(i) + np.float64(True)

    b, a = rng.random(5).astype(np.float32), np.zeros(5)
    lowered = run(kernel, a, b, 0.1)
    text = lowered.stages[0].text
    assert text.count("call double @irad.strong.f64(") == 3
    assert text.count("call float @irad.strong.f32(") == 1
    np.testing.assert_allclose(a, b.astype(float) * 0.1 + np.float32(0.1) + np.arange(5) + 1, rtol=1e-15)


def test_plain_casts_are_not():
    def kernel(a, b):
        i = points(a)
        a[i] = float(b[i]) * 2.0

    assert "strong" not in lower_for(kernel, np.zeros(5, np.float32), np.zeros(5, np.float32)).stages[0].text


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 3, 7, 8, 64, 65])
def test_powers_by_constant_integers(n, dtype):
    space = {"points": points}
    exec(f"def kernel(a, b):\n    i = points(a)\n    a[i] = b[i] ** {n}\n", space)
    b, a = (rng.random(5) + 0.5).astype(dtype), np.zeros(5, dtype)
    lowered = run(space["kernel"], a, b)
    np.testing.assert_allclose(a, b**n, rtol=70 * np.finfo(dtype).eps)
    text = clean_ir(lowered.stages[0])
    if abs(n) <= 64:
        assert "phi" not in text
        assert "pow" not in text
        squarings = abs(n).bit_length() - 1 + abs(n).bit_count() - 1 if n else 0
        assert text.count("fmul") == squarings


def test_powers_of_integers_and_by_variables():
    def kernel(a, b, n):
        i = points(a)
        a[i] = i**2 + n**3 + 2**-1 + b[i] ** n + b[i] ** 0.5 + 2.0**i

    b, a = rng.random(5), np.zeros(5)
    run(kernel, a, b, 2)
    i = np.arange(5)
    np.testing.assert_allclose(a, i**2 + 8 + 0.5 + b**2 + b**0.5 + 2.0**i, rtol=1e-14)


def test_powers_in_place():
    def kernel(a, b):
        i = points(a)
        a[i] **= 2
        a[i] += b[i]

    b, a = rng.random(5), np.full(5, 3.0)
    run(kernel, a, b)
    np.testing.assert_array_equal(a, 9 + b)


def test_marks_are_pure():
    def kernel(a, b):
        i = points(a)
        a[i] = b[i]

    text = lower_for(kernel, np.zeros(5), np.zeros(5)).stages[0].text
    text = str(llvm.parse_assembly(text))
    group = re.search(r"^declare i64 @irad.index.0\(\) #(\d+)", text, re.M)[1]
    line = next(s for s in text.splitlines() if s.startswith(f"attributes #{group} "))
    for word in ("nounwind", "speculatable", "willreturn", "memory(none)"):
        assert word in line
