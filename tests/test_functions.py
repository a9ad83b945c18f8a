"""Every function that a kernel may call, by each of its names: value, tangent and cotangent, at kinks and poles, too.

Compiled kernels against the oracle, whose table of derivatives is its own (and is held against differences in
``test_oracle.py``). Each function is run with a zero derivative coming in as well: behind a pole it stays zero.
"""

from __future__ import annotations

import linecache
import math
from typing import Any

import numpy as np
import pytest
from tolerances import TOLERANCES

import irad
from irad import oracle

ALL = (-2.5, -1.0, -0.6, 0.0, 0.3, 0.5, 1.0, 2.0, 2.5)
UNIT = (-1.0, -0.6, 0.0, 0.3, 0.99, 1.0)
POSITIVE = (0.0, 1e-3, 0.3, 1.0, 2.5)
LARGER = (1.0, 1.5, 4.0)

ONE = {
    "-x": ALL, "+x": ALL, "abs(x)": ALL, "np.abs(x)": ALL, "np.fabs(x)": ALL, "math.fabs(x)": ALL,
    "x ** 0": ALL, "x ** 1": ALL, "x ** 2": ALL, "x ** 3": ALL, "x ** 7": ALL, "x ** -1": ALL,
    "x ** -2": (-2.5, 0.3, 2.5),
    "x ** n": ALL, "x ** 0.5": POSITIVE, "x ** 1.5": POSITIVE, "x ** 2.0": ALL, "x ** -0.5": POSITIVE,
    "x ** 0.0": ALL, "2.0 ** x": ALL, "0.0 ** x": POSITIVE, "pow(x, 2)": ALL, "math.pow(x, 1.5)": POSITIVE,
    "np.power(x, 1.5)": POSITIVE, "np.square(x)": ALL, "np.reciprocal(x)": ALL, "1 / x": ALL, "x / n": ALL,
    "np.sqrt(x)": POSITIVE, "math.sqrt(x)": POSITIVE, "np.cbrt(x)": ALL,
    "np.exp(x)": ALL, "math.exp(x)": ALL, "np.exp2(x)": ALL, "np.expm1(x)": ALL, "math.expm1(x)": ALL,
    "np.log(x)": POSITIVE, "math.log(x)": POSITIVE[1:], "np.log2(x)": POSITIVE, "np.log10(x)": POSITIVE,
    "math.log10(x)": POSITIVE[1:], "np.log1p(x)": POSITIVE, "math.log1p(x)": POSITIVE,
    "np.sin(x)": ALL, "math.sin(x)": ALL, "np.cos(x)": ALL, "math.cos(x)": ALL, "np.tan(x)": ALL, "math.tan(x)": ALL,
    "np.arcsin(x)": UNIT, "math.asin(x)": UNIT, "np.arccos(x)": UNIT, "math.acos(x)": UNIT,
    "np.arctan(x)": ALL, "math.atan(x)": ALL, "np.sinh(x)": ALL, "math.sinh(x)": ALL, "np.cosh(x)": ALL,
    "math.cosh(x)": ALL, "np.tanh(x)": ALL, "math.tanh(x)": ALL, "np.arcsinh(x)": ALL, "math.asinh(x)": ALL,
    "np.arccosh(x)": LARGER, "math.acosh(x)": LARGER, "np.arctanh(x)": UNIT[1:5], "math.atanh(x)": UNIT[1:5],
    "math.erf(x)": ALL, "math.erfc(x)": ALL, "math.gamma(x)": (-2.5, -0.6, 0.3, 2.5),
    "math.lgamma(x)": (0.3, 2.5, 12.0),
    "np.sign(x)": ALL, "np.floor(x)": ALL, "np.ceil(x)": ALL, "np.trunc(x)": ALL, "np.rint(x)": ALL,
    "math.floor(x) * x": ALL, "math.ceil(x) * x": ALL, "int(x) * x": ALL, "round(x) * x": ALL, "float(x) * x": ALL,
    "x % 1.25": ALL, "x // 1.25 * x": ALL, "np.mod(x, 1.25)": ALL, "np.fmod(x, 1.25)": ALL,
    "x if x > 0.5 else 2 * x": ALL, "x * x if x == 0.5 else 3 * x": ALL, "x if x else 5 * x": ALL,
    "1 / x if x != 0 else x": ALL, "x if not np.isnan(x) else 1.0": ALL, "min(x, 0.5)": ALL, "min(0.5, x)": ALL,
    "max(x, 0.5)": ALL, "max(0.5, x)": ALL, "np.minimum(x, 0.5)": ALL, "np.maximum(0.5, x)": ALL,
    "np.fmin(0.5, x)": ALL, "np.fmax(x, 0.5)": ALL, "max(x, -x)": ALL, "min(x, 0.5, 2 * x)": ALL,
    "np.copysign(x, -1.0)": ALL, "math.copysign(2.0, x)": ALL[4:], "math.hypot(x, 0.0)": ALL, "np.hypot(x, 0.5)": ALL,
    "np.arctan2(x, 0.5)": ALL, "math.atan2(0.5, x)": ALL, "np.degrees(x)": ALL, "math.radians(x)": ALL,
}  # fmt: skip

TWO = {
    "x + y": ALL, "x - y": ALL, "x * y": ALL, "x / y": ALL, "x % y": (-2.6, -0.7, 0.3, 1.1), "x ** y": POSITIVE[1:],
    "np.power(x, y)": POSITIVE[1:], "min(x, y)": ALL, "max(x, y)": ALL, "np.minimum(x, y)": ALL,
    "np.maximum(x, y)": ALL, "np.fmin(x, y)": ALL, "np.fmax(x, y)": ALL, "np.hypot(x, y)": ALL,
    "math.hypot(x, y)": ALL, "np.arctan2(x, y)": ALL, "math.atan2(x, y)": ALL, "np.copysign(x, y)": ALL,
    "np.fmod(x, y)": (-2.6, -0.7, 0.3, 1.1), "np.add(x, y)": ALL, "np.multiply(x, y)": ALL,
    "x if x < y else y": ALL, "x * y if x <= y else x - y": ALL,
}  # fmt: skip

UNKNOWN_TO_ORACLE = {"np.degrees(x)": 180 / math.pi, "math.radians(x)": math.pi / 180}
"""Multiplications by a constant."""


def kernel_of(text: str) -> Any:
    source = f"def kernel(v, u, w, n):\n    i = irad.points(u)\n    x = u[i]\n    y = w[i]\n    v[i] = {text}\n"
    filename = f"<function {text}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"irad": irad, "np": np, "math": math}
    exec(compile(source, filename, "exec"), namespace)
    return irad.kernel(namespace["kernel"], cache=False)


def equal(found: Any, expected: Any, rtol: float) -> None:
    """Within ``rtol``, infinities and NaN in the same places."""
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


def check(text: str, x: Any, y: Any, rtol: float, factor: float | None = None) -> None:
    kernel, v = kernel_of(text), np.zeros_like(x)
    args = (v, x, y, 3)
    if factor is None:
        values = oracle.primal(kernel, args).values["v"]
        D = oracle.jacobian(kernel, args, ["u", "w"]).derivatives
        by_x, by_y = np.diagonal(D["v", "u"]), np.diagonal(D["v", "w"])
    else:
        values, by_x, by_y = factor * x, np.full(x.shape, factor), np.zeros(x.shape)
    kernel(*args)
    equal(v, values, rtol)
    back, push = irad.pullback(kernel, *args, wrt=("u", "w")), irad.pushforward(kernel, *args, wrt=("u", "w"))
    one, nothing = np.ones_like(x), np.zeros_like(x)
    with np.errstate(all="ignore"):
        bars = back(v=one)
        equal(bars.u, by_x, rtol)
        equal(bars.w, by_y, rtol)
        equal(push(u=one).v, by_x, rtol)
        equal(push(w=one).v, by_y, rtol)
    for still in (*back(v=nothing), push(u=nothing, w=nothing).v):
        np.testing.assert_array_equal(still, 0.0)


@pytest.mark.parametrize("text", sorted(ONE))
def test_one_argument(text: str) -> None:
    x = np.array(ONE[text])
    check(text, x, x.copy(), 1e-12, UNKNOWN_TO_ORACLE.get(text))


@pytest.mark.parametrize("text", sorted(TWO))
def test_two_arguments(text: str) -> None:
    """All pairs, ties among them."""
    x, y = (np.ravel(a) for a in np.meshgrid(TWO[text], TWO[text]))
    check(text, x, y, 1e-12)


@pytest.mark.parametrize(
    "text", ["np.sqrt(x)", "x ** 3", "np.tanh(x)", "math.erf(x)", "x ** 1.5", "np.log(x)", "1 / x"]
)
def test_single_precision(text: str) -> None:
    x = np.array([0.3, 1.0, 2.5], np.float32)
    check(text, x, x.copy(), TOLERANCES["float32"].closed)
