"""Operations that irad lowers itself: Numba's values bit for bit, in forms that have the right derivative."""

from __future__ import annotations

import re

import numba
import numpy as np
import pytest
from stage_runner import clean_ir, lower_for, run

from irad.domains import points

EDGES = (-np.inf, -7.5, -2.5, -1.25, -1.0, -0.0, 0.0, 1e-310, 0.3, 1.0, 1.25, 2.5, 7.0, 1e300, np.inf, np.nan)


def kernel_of(body: str):
    space = {"points": points, "np": np}
    exec(f"def kernel(v, u, w, n):\n    i = points(v)\n    x = u[i]\n    y = w[i]\n    v[i] = {body}\n", space)
    return space["kernel"]


def numba_values(body: str, *args):
    space: dict = {"np": np}
    exec(f"def f(x, y, n):\n    return {body}\n", space)
    function = numba.njit(error_model="numpy")(space["f"])
    return np.array([function(*point) for point in zip(*args, strict=True)])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "body", ["x % y", "x // y", "divmod(x, y)[0]", "divmod(x, y)[1]", "np.sign(x)", "np.mod(x, y)", "x % n"]
)
def test_values_are_numbas(body, dtype):
    with np.errstate(over="ignore", under="ignore"):
        x, y = (np.ravel(a) for a in np.meshgrid(np.array(EDGES, dtype), np.array(EDGES, dtype)))
    v = np.zeros_like(x)
    with np.errstate(all="ignore"):
        run(kernel_of(body), v, x, y, -3)
        expected = numba_values(body, x, y, np.full(x.size, -3)).astype(dtype)
    np.testing.assert_array_equal(v, expected)
    if body != "np.sign(x)":  # Numba returns -0 for -0
        real = ~np.isnan(v)
        np.testing.assert_array_equal(np.signbit(v)[real], np.signbit(expected)[real])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("function", [np.logaddexp, np.logaddexp2])
def test_sums_of_logarithms(function, dtype):
    with np.errstate(over="ignore", under="ignore"):
        x, y = (np.ravel(a) for a in np.meshgrid(np.array(EDGES, dtype), np.array(EDGES, dtype)))
    v = np.zeros_like(x)
    with np.errstate(all="ignore"):
        run(kernel_of(f"np.{function.__name__}(x, y)"), v, x, y, 1)
        np.testing.assert_allclose(v, function(x, y), rtol=4 * np.finfo(dtype).eps)


def test_in_place():
    def kernel(v, w):
        i = points(v)
        v[i] %= w[i]
        v[i] //= 0.25
        v[i] **= 2

    v, w = np.array([5.5, -5.5, 2.0]), np.array([2.0, 2.0, -3.0])
    expected = ((v % w) // 0.25) ** 2
    run(kernel, v, w)
    np.testing.assert_array_equal(v, expected)


def test_sign_is_a_constant():
    """No value that is stored can be the argument."""
    text = clean_ir(lower_for(kernel_of("np.sign(x)"), np.zeros(3), np.zeros(3), np.zeros(3), 1).stages[0])
    loaded = re.search(r"(%\S+) = load double", text)[1]
    uses = [line for line in text.splitlines() if re.search(re.escape(loaded) + r"\b", line)]
    assert all(" = load " in line or "= fcmp " in line for line in uses)


@pytest.mark.parametrize("n", [-70000, -5, -1, 0, 1, 2, 3, 17, 63, 64, 65, 70000])
def test_integer_powers_are_numbas(n):
    def kernel(v, a, b, n):
        i = points(v)
        v[i] = a[i] ** n

    def reference(a, n):
        return a**n

    a = np.array([-3, -2, -1, 1, 2, 3, 1000003], dtype=np.int64)
    if n <= 65536:
        a = np.append(a, 0)
    v = np.zeros(a.size, dtype=np.int64)
    run(kernel, v, a, a, n)
    compiled = numba.njit(error_model="numpy")(reference)
    exact = (n <= 65536) | (np.abs(a) == 1)  # beyond, Numba casts infinity to an integer
    np.testing.assert_array_equal(v[exact], np.array([compiled(x, n) for x in a])[exact])


def test_integer_powers_of_other_sizes():
    def kernel(v, a, n):
        i = points(v)
        v[i] = a[i] ** 3 + i**n

    a = np.array([2, 3, 4], dtype=np.int32)
    v = np.zeros(3, dtype=np.int64)
    run(kernel, v, a, 2)
    np.testing.assert_array_equal(v, [8, 28, 68])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [-3, 0, 2, 5, 200])
def test_powers_by_variables(n, dtype):
    u, v = np.array([-1.5, -1.0, 0.5, 1.0, 1.25], dtype), np.zeros(5, dtype)
    text = run(kernel_of("x ** n + pow(x, n)"), v, u, u, n).stages[0].text
    np.testing.assert_allclose(v, 2 * u ** dtype(n), rtol=4 * np.finfo(dtype).eps)
    suffix = "f64" if dtype is np.float64 else "f32"
    assert f"call {'double' if suffix == 'f64' else 'float'} @irad.powi.{suffix}(" in text
    assert "irad.status" not in clean_ir(lower_for(kernel_of("x ** n"), v, u, u, n).stages[0])
