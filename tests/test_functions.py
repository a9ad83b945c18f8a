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
NONZERO = tuple(x for x in ALL if x)
POSITIVE = (0.0, 1e-3, 0.3, 1.0, 2.5)
LARGER = (1.0, 1.5, 4.0)

ONE = {
    "-x": ALL, "+x": ALL, "abs(x)": ALL, "np.abs(x)": ALL, "np.fabs(x)": ALL, "math.fabs(x)": ALL,
    "x ** 0": ALL, "x ** 1": ALL, "x ** 2": ALL, "x ** 3": ALL, "x ** 7": ALL, "x ** -1": ALL,
    "x ** -2": (-2.5, 0.3, 2.5),
    "x ** n": ALL, "x ** (n - 3)": ALL, "x ** (n - 2)": ALL, "x ** (n - 5)": ALL, "x ** 70": ALL, "pow(x, n)": ALL,
    "2.0 ** n * x": ALL, "2 ** n * x": ALL, "math.pow(x, n)": ALL, "np.power(x, n)": ALL, "pow(x, 0.5)": POSITIVE,
    "np.float_power(x, 2.5)": POSITIVE,
    "x ** 0.5": POSITIVE, "x ** 1.5": POSITIVE, "x ** 2.0": ALL, "x ** -0.5": POSITIVE,
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
    "math.exp2(x)": ALL, "math.log2(x)": POSITIVE[1:], "math.cbrt(x)": ALL,
    "np.positive(x)": ALL, "np.negative(x)": ALL, "np.absolute(x)": ALL, "np.true_divide(x, 3)": ALL,
    "np.sign(x)": ALL, "np.sign(x) * x": ALL, "np.floor(x)": ALL,
    "np.ceil(x)": ALL, "np.trunc(x)": ALL, "np.rint(x)": ALL,
    "math.floor(x) * x": ALL, "math.ceil(x) * x": ALL, "int(x) * x": ALL, "round(x) * x": ALL, "float(x) * x": ALL,
    "math.trunc(x) * x": ALL, "int(x) * 1.0": ALL, "bool(x) * x": ALL,
    "x % 1.25": ALL, "x % -1.25": ALL, "x % n": ALL, "n % x": NONZERO, "x // 1.25 * x": ALL, "x // n": ALL,
    "np.mod(x, 1.25)": ALL, "np.remainder(x, -1.25)": ALL, "np.floor_divide(x, 1.25) * x": ALL,
    "np.fmod(x, 1.25)": ALL, "math.fmod(x, 1.25)": ALL,
    "np.clip(x, -1.0, 1.0)": ALL, "np.clip(x, -1, n)": ALL, "np.where(n > 2, x, 2 * x)": ALL,
    "np.where(x > 0, np.sqrt(x), 0)": ALL, "np.where(x == 0.5, x * x, 3 * x)": ALL, "np.where(x, 1 / x, x)": ALL,
    "x if np.isfinite(x) else 1.0": ALL, "x if math.isfinite(x) else 1.0": ALL, "x if math.isinf(x) else 2 * x": ALL,
    "x if not np.isinf(x) else 1.0": ALL, "x if math.isnan(x) else 2 * x": ALL, "x if np.signbit(x) else 2 * x": ALL,
    "(x > 0) * x": ALL, "(x > 0 and x < 2) * x": ALL, "x and 2 * x": ALL, "x or 3.0": ALL, "np.nan_to_num(x)": ALL,
    "x if x > 0.5 else 2 * x": ALL, "x * x if x == 0.5 else 3 * x": ALL, "x if x else 5 * x": ALL,
    "1 / x if x != 0 else x": ALL, "x if not np.isnan(x) else 1.0": ALL, "min(x, 0.5)": ALL, "min(0.5, x)": ALL,
    "max(x, 0.5)": ALL, "max(0.5, x)": ALL, "np.minimum(x, 0.5)": ALL, "np.maximum(0.5, x)": ALL,
    "np.fmin(0.5, x)": ALL, "np.fmax(x, 0.5)": ALL, "max(x, -x)": ALL, "min(x, 0.5, 2 * x)": ALL,
    "np.copysign(x, -1.0)": ALL, "math.copysign(2.0, x)": ALL[4:], "math.hypot(x, 0.0)": ALL, "np.hypot(x, 0.5)": ALL,
    "np.arctan2(x, 0.5)": ALL, "math.atan2(0.5, x)": ALL, "np.degrees(x)": ALL, "math.radians(x)": ALL,
    "math.degrees(x)": ALL, "np.radians(x)": ALL, "np.deg2rad(x)": ALL, "np.rad2deg(x)": ALL,
}  # fmt: skip

TWO = {
    "x + y": ALL, "x - y": ALL, "x * y": ALL, "x / y": ALL, "x % y": (-2.6, -0.7, 0.3, 1.1), "x ** y": POSITIVE[1:],
    "np.power(x, y)": POSITIVE[1:], "min(x, y)": ALL, "max(x, y)": ALL, "np.minimum(x, y)": ALL,
    "np.maximum(x, y)": ALL, "np.fmin(x, y)": ALL, "np.fmax(x, y)": ALL, "np.hypot(x, y)": ALL,
    "math.hypot(x, y)": ALL, "np.arctan2(x, y)": ALL, "math.atan2(x, y)": ALL, "np.copysign(x, y)": ALL,
    "np.fmod(x, y)": (-2.6, -0.7, 0.3, 1.1), "np.add(x, y)": ALL, "np.multiply(x, y)": ALL,
    "x if x < y else y": ALL, "x * y if x <= y else x - y": ALL, "np.where(x > y, x, y)": ALL,
    "x // y * x": NONZERO, "np.mod(x, y)": (-2.6, -0.7, 0.3, 1.1), "np.subtract(x, y)": ALL,
    "np.divide(x, y)": ALL, "np.logaddexp(x, y)": ALL, "np.logaddexp2(x, y)": ALL, "x % y * y": (-2.6, -0.7, 0.3, 1.1),
}  # fmt: skip

SAME = {
    "divmod(x, 1.25)[1]": ("x % 1.25", ALL), "divmod(x, y)[0] * x": ("x // y * x", NONZERO),
    "divmod(x, y)[1]": ("x % y", (-2.6, -0.7, 0.3, 1.1)), "np.divmod(x, y)[1]": ("x % y", (-2.6, -0.7, 0.3, 1.1)),
    "np.sinc(x)": ("np.sin(np.pi * x) / (np.pi * x)", NONZERO), "np.conj(x)": ("x", ALL), "np.real(x)": ("x", ALL),
    "np.around(x) * x": ("np.rint(x) * x", ALL), "np.round(x, 1) * x": ("np.rint(x * 10) / 10 * x", ALL),
    "round(x, 1) * x": ("np.rint(x * 10) / 10 * x", ALL), "math.ldexp(x, 3)": ("8 * x", ALL),
    "np.ldexp(x, n)": ("8 * x", ALL), "x.real": ("x", ALL), "np.angle(x) * x": ("np.pi * x", (-2.5, -0.6)),
    "np.sqrt(x + 1j).real": ("np.sqrt((np.sqrt(x * x + 1) + x) / 2)", ALL),
    "abs(complex(x, 1.0))": ("np.sqrt(x * x + 1)", ALL), "((x + 1j) * (x - 1j)).real": ("x * x + 1", ALL),
    "np.exp(1j * x).imag": ("np.sin(x)", ALL), "np.isclose(x, 0.5) * x": ("(x == 0.5) * x", ALL),
    "np.logical_and(x > 0, x < 1) * x": ("(x > 0 and x < 1) * x", ALL), "max((x, y))": ("max(x, y)", ALL),
    "np.clip(x, y, 1)": ("np.minimum(np.maximum(x, y), 1)", ALL), "(x, y)[1]": ("y", ALL),
    "math.gamma(x) if x > 0 else 1.0": ("math.gamma(x)", ALL[4:]),
}  # fmt: skip
"""What the oracle does not know, and what it is equal to."""


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


def check(text: str, x: Any, y: Any, rtol: float, same: str = "") -> None:
    """``same``: an expression of the same value and derivatives, for the oracle."""
    kernel, v = kernel_of(text), np.zeros_like(x)
    args = (v, x, y, 3)
    known = kernel_of(same or text)
    values = oracle.primal(known, args).values["v"]
    D = oracle.jacobian(known, args, ["u", "w"]).derivatives
    by_x, by_y = np.diagonal(D["v", "u"]), np.diagonal(D["v", "w"])
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


DOUBLE, SINGLE = (np.float64, 1e-12), (np.float32, TOLERANCES["float32"].closed)
PRECISIONS = pytest.mark.parametrize(("dtype", "rtol"), [DOUBLE, SINGLE], ids=["float64", "float32"])


@PRECISIONS
@pytest.mark.parametrize("text", sorted(ONE))
def test_one_argument(text: str, dtype: Any, rtol: float) -> None:
    x = np.array(ONE[text], dtype)
    if text == "math.cbrt(x)" and not hasattr(math, "cbrt"):
        pytest.skip("new in Python 3.11")
    check(text, x, x.copy(), rtol)


@PRECISIONS
@pytest.mark.parametrize("text", sorted(TWO))
def test_two_arguments(text: str, dtype: Any, rtol: float) -> None:
    """All pairs, ties among them."""
    x, y = (np.ravel(a).astype(dtype) for a in np.meshgrid(TWO[text], TWO[text]))
    check(text, x, y, rtol)


@PRECISIONS
@pytest.mark.parametrize("text", sorted(SAME))
def test_functions_of_others(text: str, dtype: Any, rtol: float) -> None:
    same, points = SAME[text]
    x, y = (np.ravel(a).astype(dtype) for a in np.meshgrid(points, points))
    check(text, x, y, rtol, same)
