"""The oracle against closed forms, finite differences and plain NumPy; nothing here is compiled."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

import irad.fd as fd
from irad import oracle
from irad.domains import domain, interior, points
from irad.errors import DomainError, IradError, NotDifferentiableError, RaceError, ShadowError
from irad.fd import d2_xi, d_xa, inn
from irad.frontend.device import device
from irad.oracle.captured import hidden_arguments
from irad.oracle.derivatives import Forward
from irad.oracle.rules import RULES, digamma

# rules ---------------------------------------------------------------------------------------------------------------

POINTS = {
    "asin": [(-0.7,), (0.2,)],
    "acos": [(-0.7,), (0.2,)],
    "atanh": [(-0.7,), (0.2,)],
    "acosh": [(1.3,), (4.0,)],
    "pow": [(0.7, 1.3), (2.5, -2.0), (1.5, 0.0)],
    "mod": [(5.3, 1.7), (-5.3, 1.7), (5.3, -1.7)],
    "fmod": [(5.3, 1.7), (-5.3, 1.7), (5.3, -1.7)],
    "gamma": [(0.6,), (3.4,), (-1.3,)],
    "lgamma": [(0.6,), (3.4,), (12.5,)],
    "cbrt": [(0.7,), (-2.0,)],
    "abs": [(0.7,), (-2.0,)],
    "copysign": [(0.7, -1.2), (-0.7, -1.2), (-0.7, 2.0)],
    "log1p": [(-0.5,), (2.0,)],
    "tan": [(-1.1,), (0.4,)],
    "reciprocal": [(-0.5,), (2.0,)],
}
ONE_SIDED = {"sqrt", "log", "log2", "log10"}


def points_of(name: str) -> list[tuple[float, ...]]:
    if name in POINTS:
        return POINTS[name]
    arity = len(RULES[name].partials)
    lowest = 0.3 if name in ONE_SIDED else -1.3
    return [(lowest, 0.4)[:arity], (1.7, -0.6)[:arity], (0.4, 2.6)[:arity]]


@pytest.mark.parametrize("name", sorted(RULES))
def test_partials_are_slopes(name: str) -> None:
    rule = RULES[name]
    for at in points_of(name):
        x = [np.float64(v) for v in at]
        for k, partial in enumerate(rule.partials):
            h = 1e-3

            def f(step: float, k: int = k, x: list[Any] = x) -> float:
                moved = [v + step if n == k else v for n, v in enumerate(x)]
                return float(rule.value(*moved))

            slope = (f(-2 * h) - 8 * f(-h) + 8 * f(h) - f(2 * h)) / (12 * h)  # error h**4
            assert float(partial(*x, rule.value(*x))) == pytest.approx(slope, rel=1e-8, abs=1e-9), (name, at, k)


def test_digamma() -> None:
    assert digamma(1.0) == pytest.approx(-0.5772156649015329, rel=1e-14)
    assert digamma(0.5) == pytest.approx(-0.5772156649015329 - 2 * math.log(2), rel=1e-14)
    assert math.isnan(digamma(-2.0))


def derivative(f: Any, x: float, tangent: float = 1.0) -> float:
    """Forward derivative of ``f`` at a float; the reverse one must be the same."""

    def kernel(v: Any, u: Any) -> None:
        i = points(u)
        v[i] = f(u[i])

    helper = device(f)
    f = helper
    u, v = np.array([x]), np.zeros(1)
    forward = float(oracle.jvp(kernel, (v, u), {"u": [tangent]}).derivatives["v"][0])
    reverse = float(oracle.vjp(kernel, (v, u), {"v": [tangent]}).derivatives["u"][0])
    np.testing.assert_equal(forward, reverse)
    return forward


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (lambda x: abs(x), 0.0, 0.0),
        (lambda x: np.abs(x), -2.0, -1.0),
        (lambda x: min(x, 1.0), 1.0, 1.0),
        (lambda x: min(1.0, x), 1.0, 0.0),
        (lambda x: max(x, 1.0), 1.0, 1.0),
        (lambda x: max(1.0, x), 1.0, 0.0),
        (lambda x: np.minimum(x, 1.0), 1.0, 1.0),
        (lambda x: np.maximum(1.0, x), 1.0, 0.0),
        (lambda x: x**0, 0.0, 0.0),
        (lambda x: x**1, 0.0, 1.0),
        (lambda x: x**2, 0.0, 0.0),
        (lambda x: x**3, 2.0, 12.0),
        (lambda x: x**-2, 2.0, -0.25),
        (lambda x: x**0.5, 4.0, 0.25),
        (lambda x: 2.0**x, 3.0, 8 * math.log(2)),
        (lambda x: 0.0**x, 3.0, 0.0),
        (lambda x: np.sqrt(x), 4.0, 0.25),
        (lambda x: math.sqrt(x), 4.0, 0.25),
        (lambda x: np.sign(x) * x, -3.0, -1.0),
        (lambda x: np.floor(x) * x, 2.5, 2.0),
        (lambda x: math.floor(x) * x, 2.5, 2.0),
        (lambda x: int(x) * x, 2.5, 2.0),
        (lambda x: round(x) * x, 2.6, 3.0),
        (lambda x: float(x) * x, 3.0, 6.0),
        (lambda x: x % 3.0, 7.0, 1.0),
        (lambda x: 7.0 // x + x, 2.0, 1.0),
        (lambda x: np.where(x > 0, x * x, -x), 3.0, 6.0),
        (lambda x: x if x else 5 * x, 0.0, 5.0),
        (lambda x: 3.0 * x if x == 1.0 else x, 1.0, 3.0),
        (lambda x: 1.0 if np.isnan(x) else x, 1.0, 1.0),
        (lambda x: -(+x), 1.0, -1.0),
        (lambda x: 1 / x, 2.0, -0.25),
    ],
)
def test_one_number(f: Any, x: float, expected: float) -> None:
    assert derivative(f, x) == pytest.approx(expected, rel=1e-14)


def test_a_zero_stays_zero_behind_a_pole() -> None:
    assert derivative(lambda x: np.sqrt(x), 0.0, tangent=0.0) == 0.0
    assert derivative(lambda x: np.sqrt(x), 0.0) == math.inf
    assert derivative(lambda x: np.hypot(x, 0.0), 0.0) == 0.0
    assert derivative(lambda x: np.log(x), 0.0, tangent=0.0) == 0.0


# precision -----------------------------------------------------------------------------------------------------------


def test_python_numbers_are_weak() -> None:
    def kernel(v, u, w, a):  # type: ignore[no-untyped-def]
        i = points(u)
        v[i] = (2 * u[i] + a * a) / 3.0 + 0.1**2
        w[i] = np.float64(u[i]) * 0.1

    u = np.linspace(0, 1, 7, dtype=np.float32)
    out = oracle.primal(kernel, (np.zeros(7, np.float32), u, np.zeros(7), 0.3)).values
    assert out["v"].dtype == np.float32
    step = (np.float32(2) * u + np.float32(0.3 * 0.3)) / np.float32(3)
    np.testing.assert_array_equal(out["v"], step + np.float32(0.1**2))
    np.testing.assert_array_equal(out["w"], u.astype(np.float64) * 0.1)


def test_numpy_scalars_and_elements_are_not_weak() -> None:
    def kernel(v, u, lam, s):  # type: ignore[no-untyped-def]
        i = points(u)
        v[i] = lam[0] * u[i] + s * u[i]

    u = np.linspace(0, 1, 7, dtype=np.float32)
    lam, s = np.array([0.1]), np.float64(0.7)
    out = oracle.primal(kernel, (np.zeros(7), u, lam, s)).values["v"]
    np.testing.assert_array_equal(out, 0.1 * u.astype(np.float64) + 0.7 * u.astype(np.float64))


def test_whole_numbers() -> None:
    def kernel(v, n, k):  # type: ignore[no-untyped-def]
        i = points(v)
        v[i] = 0.5 * i + n[i] * 2 + (i // 2) / k + (k if i % 2 == 0 else 0.0)

    n = np.arange(5)
    out = oracle.primal(kernel, (np.zeros(5), n, 3)).values["v"]
    np.testing.assert_array_equal(out, [0.5 * i + 2 * i + (i // 2) / 3 + (3 if i % 2 == 0 else 0) for i in range(5)])


# places --------------------------------------------------------------------------------------------------------------


def shifted(v, u, by):  # type: ignore[no-untyped-def]
    i = points(v)
    v[i] = u[i - by]


def test_an_index_wraps_once() -> None:
    u = np.arange(4.0)
    assert list(oracle.primal(shifted, (np.zeros(4), u, 1)).values["v"]) == [3, 0, 1, 2]
    assert list(oracle.primal(shifted, (np.zeros(4), u, 4)).values["v"]) == [0, 1, 2, 3]
    with pytest.raises(DomainError, match=r"index \(-5,\)|index -5"):
        oracle.primal(shifted, (np.zeros(4), u, 5))
    with pytest.raises(DomainError):
        oracle.primal(shifted, (np.zeros(4), u, -1))


def test_domains() -> None:
    def inner(v, w):  # type: ignore[no-untyped-def]
        i, j = interior(v, width=w)
        v[i, j] = 1.0

    def box(v, n):  # type: ignore[no-untyped-def]
        m = n - 1
        i, j = domain((1, v.shape[0]), (m, n))
        v[i, j] = 10 * i + j

    np.testing.assert_array_equal(oracle.primal(inner, (np.zeros((5, 4)), 1)).values["v"][1:-1, 1:-1], 1.0)
    assert oracle.primal(inner, (np.zeros((5, 4)), 2)).values["v"].sum() == 0.0
    np.testing.assert_array_equal(
        oracle.primal(box, (np.zeros((3, 4)), 3)).values["v"], [[0, 0, 0, 0], [0, 0, 12, 0], [0, 0, 22, 0]]
    )


def test_races_show() -> None:
    def reads_neighbour(T):  # type: ignore[no-untyped-def]
        i = interior(T)
        T[i] = T[i - 1]

    def all_write_one(T):  # type: ignore[no-untyped-def]
        points(T)
        T[0] = 1.0

    def own_entry(T):  # type: ignore[no-untyped-def]
        i = points(T)
        T[i] = 2 * T[i]
        T[i] += 1.0

    with pytest.raises(RaceError, match="both touch T"):
        oracle.primal(reads_neighbour, (np.zeros(4),))
    with pytest.raises(RaceError):
        oracle.primal(all_write_one, (np.zeros(4),))
    assert list(oracle.primal(own_entry, (np.ones(2),)).values["T"]) == [3, 3]


# mutation ------------------------------------------------------------------------------------------------------------


def advance(q, T, c):  # type: ignore[no-untyped-def]
    i = interior(q)
    q[i] = q[i] * (T[i + 1] - T[i - 1])
    if q[i] > 0:
        q[i] += c * T[i]
    else:
        q[i] = 1.0


def data(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def test_overwritten_entries() -> None:
    q, T, q_bar = data(7), data(7, seed=1), data(7, seed=2)
    out = oracle.vjp(advance, (q, T, 0.5), {"q": q_bar})
    d, r = T[2:] - T[:-2], q[1:-1] * (T[2:] - T[:-2])
    assert 0 < (r > 0).sum() < r.size
    w = np.where(r > 0, q_bar[1:-1], 0)
    T_bar = np.zeros(7)
    T_bar[2:] += w * q[1:-1]
    T_bar[:-2] -= w * q[1:-1]
    T_bar[1:-1] += 0.5 * w
    expected = q_bar.copy()
    expected[1:-1] = w * d
    np.testing.assert_allclose(out.derivatives["q"], expected, rtol=1e-14)
    np.testing.assert_allclose(out.derivatives["T"], T_bar, rtol=1e-13)
    np.testing.assert_allclose(out.derivatives["c"], (w * T[1:-1]).sum(), rtol=1e-13)
    np.testing.assert_array_equal(out.written["q"], [False, *[True] * 5, False])


def test_reverse_is_forward_transposed() -> None:
    args = (data(7), data(7, seed=1), 0.5)
    seeds = {"q": data(7, seed=2), "T": data(7, seed=3)}
    J = oracle.jacobian(advance, args, ["q", "T", "c"])
    bars = oracle.vjp(advance, args, seeds)
    for name in ("q", "T", "c"):
        expected = sum(np.tensordot(seed, J.derivatives[out, name], seed.ndim) for out, seed in seeds.items())
        np.testing.assert_allclose(bars.derivatives[name], expected, atol=1e-14)
    dots = oracle.jvp(advance, args, {"q": np.ones(7), "c": 2.0})
    np.testing.assert_allclose(
        dots.derivatives["q"], J.derivatives["q", "q"].sum(1) + 2.0 * J.derivatives["q", "c"], atol=1e-14
    )


def test_derivatives_are_slopes() -> None:
    q, T, h = data(9), data(9, seed=1), 1e-6
    dq, dT = data(9, seed=2), data(9, seed=3)
    ahead, behind = (oracle.primal(advance, (q + s * dq, T + s * dT, 0.5)).values["q"] for s in (h, -h))
    dots = oracle.jvp(advance, (q, T, 0.5), {"q": dq, "T": dT}).derivatives["q"]
    np.testing.assert_allclose(dots, (ahead - behind) / (2 * h), atol=1e-8)


def test_arguments_stay_as_they_are() -> None:
    q, T, q_bar = data(7), data(7, seed=1), data(7, seed=2)
    copies = [a.copy() for a in (q, T, q_bar)]
    oracle.vjp(advance, (q, T, 0.5), {"q": q_bar})
    for a, b in zip((q, T, q_bar), copies, strict=True):
        np.testing.assert_array_equal(a, b)


def test_strides_and_read_twice() -> None:
    def product(v, a, b):  # type: ignore[no-untyped-def]
        i, j = points(v)
        v[i, j] = a[i, j] * b[j, i]

    base = data(6, 6)
    a = base[::-2, ::2]
    out = oracle.vjp(product, (np.zeros((3, 3), order="F"), a, a), {"v": np.ones((3, 3))}).derivatives
    np.testing.assert_array_equal(out["a"], a.T)
    np.testing.assert_array_equal(out["b"], a.T)


def test_empty() -> None:
    out = oracle.vjp(advance, (np.zeros(0), np.zeros(0), 1.0), {"q": np.zeros(0)}).derivatives
    assert out["q"].shape == (0,)
    assert out["c"] == 0.0


# scales and doubts ---------------------------------------------------------------------------------------------------


def test_scales_measure_cancellation() -> None:
    def cancelling(v, u, a):  # type: ignore[no-untyped-def]
        i = points(u)
        v[i] = a * u[i] - 1e8 * u[i] + 1e8 * u[i]

    args = (np.zeros(2), np.ones(2), 3.0)
    for out, name in (
        (oracle.vjp(cancelling, args, {"v": np.ones(2)}), "u"),
        (oracle.jvp(cancelling, args, {"u": np.ones(2)}), "v"),
    ):
        np.testing.assert_allclose(out.derivatives[name], 3.0, atol=1e-7)
        np.testing.assert_allclose(out.scales[name], 2e8 + 3)


def test_doubtful_decisions_are_counted() -> None:
    def tie(v, u):  # type: ignore[no-untyped-def]
        i = points(u)
        v[i] = u[i] if np.sin(u[i]) > 2 * math.sin(0.25) * math.cos(0.25) else 0.0

    def exact_tie(v, u):  # type: ignore[no-untyped-def]
        i = points(u)
        v[i] = u[i] if 0.5 * u[i] > 0.25 else 0.0

    def same(v, u):  # type: ignore[no-untyped-def]
        i = points(u)
        v[i] = min(np.sin(u[i]), np.sin(u[i]))

    assert oracle.primal(tie, (np.zeros(1), np.array([0.5]))).doubtful == 1
    assert oracle.primal(same, (np.zeros(1), np.array([0.5]))).doubtful == 0
    assert oracle.primal(tie, (np.zeros(1), np.array([0.6]))).doubtful == 0
    assert oracle.primal(exact_tie, (np.zeros(1), np.array([0.5]))).doubtful == 0


# what is captured ----------------------------------------------------------------------------------------------------

Ci = np.array([2.0, 3.0, 4.0, 5.0])
scale = 0.5


@device
def weighted(x, i):  # type: ignore[no-untyped-def]
    return Ci[i] * x * scale


@numba.njit
def twice(x):  # type: ignore[no-untyped-def]
    return 2.0 * x


def test_captured_arrays_and_numbers() -> None:
    offset = np.array([1.0, 1.0, 1.0, 1.0])

    def kernel(v, u):  # type: ignore[no-untyped-def]
        i = points(u)
        v[i] = twice(weighted(u[i], i)) + offset[i] * scale

    u = np.array([1.0, -1.0, 2.0, 0.5])
    out = oracle.vjp(kernel, (np.zeros(4), u), {"v": np.ones(4)})
    np.testing.assert_allclose(out.values["v"], Ci * u + 0.5)
    np.testing.assert_allclose(out.derivatives["u"], Ci)
    np.testing.assert_allclose(out.derivatives["Ci"], u)
    np.testing.assert_allclose(out.derivatives["offset"], 0.5)
    np.testing.assert_allclose(out.derivatives["scale"], (2 * Ci * u).sum() + 4)


def test_names_of_captured_values() -> None:
    module = ModuleType("settings")
    module.dx = 0.25  # type: ignore[attr-defined]
    scale = np.ones(4)

    def kernel(v, u, Ci):  # type: ignore[no-untyped-def]
        i = points(u)
        v[i] = weighted(u[i], i) * scale[i] * module.dx * math.pi * Ci

    names = hidden_arguments(kernel, ("v", "u", "Ci"))
    assert set(names) == {"weighted.Ci", "weighted.scale", "kernel.scale", "dx"}
    u = np.arange(4.0)
    out = oracle.vjp(kernel, (np.zeros(4), u, 2.0), {"v": np.ones(4)}).derivatives
    np.testing.assert_allclose(out["dx"], (globals()["Ci"] * u * 0.5 * math.pi * 2).sum())
    np.testing.assert_allclose(out["weighted.Ci"], u * 0.5 * 0.25 * math.pi * 2)


def test_a_captured_array_is_written() -> None:
    total = np.zeros(3)

    def kernel(u):  # type: ignore[no-untyped-def]
        i = points(u)
        total[i] = u[i] ** 2

    out = oracle.vjp(kernel, (np.arange(3.0),), {"total": np.ones(3)})
    np.testing.assert_allclose(out.values["total"], [0, 1, 4])
    np.testing.assert_allclose(out.derivatives["u"], [0, 2, 4])
    assert not total.any()


def test_functions_under_other_names() -> None:
    from math import exp as e

    from numpy import arctan2 as angle

    def kernel(v, u):  # type: ignore[no-untyped-def]
        i = points(u)
        v[i] = e(u[i]) + angle(u[i], 2.0) + np.multiply(u[i], 2.0)

    u = np.array([0.3])
    out = oracle.vjp(kernel, (np.zeros(1), u), {"v": [1.0]}).derivatives["u"]
    np.testing.assert_allclose(out, np.exp(u) + 2 / (u**2 + 4) + 2)


def test_loops_and_local_values() -> None:
    def kernel(v, u, n):  # type: ignore[no-untyped-def]
        i = interior(u)
        s = 0.0
        for k in range(-1, 2):
            if k == 0:
                continue
            s += k * u[i + k]
        while n > 0:
            s *= 2
            n -= 1
        v[i] = s

    out = oracle.vjp(kernel, (np.zeros(5), data(5), 2), {"v": np.ones(5)}).derivatives["u"]
    np.testing.assert_allclose(out, [-4, -4, 0, 4, 4])


def test_a_kernel_that_loops_itself() -> None:
    def recurrence(u):  # type: ignore[no-untyped-def]
        for i in range(1, len(u)):
            u[i] = u[i] + 0.5 * u[i - 1]

    out = oracle.vjp(recurrence, (np.ones(3),), {"u": np.array([0.0, 0.0, 1.0])}).derivatives["u"]
    np.testing.assert_allclose(out, [0.25, 0.5, 1.0])


# statements over irad.fd ---------------------------------------------------------------------------------------------


@device
def flux(c, slope):  # type: ignore[no-untyped-def]
    return -c * slope if slope > 0 else -2.0 * c * slope


def test_statements_run_one_after_another() -> None:
    def step(T, q, C, dt, dx):  # type: ignore[no-untyped-def]
        q[inn] = flux(d_xa(C), d_xa(T) / dx)
        T[inn] += dt * d_xa(q[inn])

    T, q, C = data(8), np.zeros(9), data(8, seed=1)
    with pytest.raises(DomainError, match="operands of shapes"):
        oracle.primal(step, (np.zeros(9), q, C, 0.1, 0.5))
    with pytest.raises(DomainError, match="selects entries of shape"):
        oracle.primal(step, (T, np.zeros(8), C, 0.1, 0.5))
    out = oracle.jacobian(step, (T, q, C, 0.1, 0.5), ["T", "C", "dx"])
    slope = np.diff(T) / 0.5
    flow = np.where(slope > 0, -1, -2) * np.diff(C) * slope
    np.testing.assert_allclose(out.values["q"][1:-1], flow)
    np.testing.assert_allclose(out.values["T"][1:-1], T[1:-1] + 0.1 * np.diff(flow))
    h = 1e-6
    for name, place in (("T", 0), ("C", 2)):
        direction = data(8, seed=5)
        ends = []
        for s in (h, -h):
            args: list[Any] = [T, q, C, 0.1, 0.5]
            args[place] = args[place] + s * direction
            ends.append(oracle.primal(step, args).values["T"])
        np.testing.assert_allclose(out.derivatives["T", name] @ direction, (ends[0] - ends[1]) / (2 * h), atol=1e-7)


def test_operators_through_their_module() -> None:
    def step(dT, T, C):  # type: ignore[no-untyped-def]
        dT[fd.inn] = fd.inn(C) * (d2_xi(T) + fd.d2_yi(T))
        dT[fd.inn] = np.minimum(dT[fd.inn], 0.5) + fd.maxloc(T)

    T, C = data(5, 6), data(5, 6, seed=1)
    out = oracle.vjp(step, (np.zeros((5, 6)), T, C), {"dT": np.ones((5, 6))})
    laplace = T[2:, 1:-1] + T[:-2, 1:-1] + T[1:-1, 2:] + T[1:-1, :-2] - 4 * T[1:-1, 1:-1]
    np.testing.assert_allclose(out.values["dT"][1:-1, 1:-1], np.minimum(C[1:-1, 1:-1] * laplace, 0.5) + fd.maxloc(T))
    np.testing.assert_allclose(out.derivatives["C"][1:-1, 1:-1], np.where(C[1:-1, 1:-1] * laplace <= 0.5, laplace, 0))


# refusals ------------------------------------------------------------------------------------------------------------


def test_refusals() -> None:
    def rows(v, u):  # type: ignore[no-untyped-def]
        i = points(v)
        v[i] = u[i]

    def unknown(v, u):  # type: ignore[no-untyped-def]
        i = points(v)
        v[i] = math.isqrt(u[i])

    with pytest.raises(NotDifferentiableError, match="rank 2"):
        oracle.primal(rows, (np.zeros(3), np.zeros((3, 3))))
    with pytest.raises((NotDifferentiableError, TypeError)):
        oracle.primal(unknown, (np.zeros(3), np.zeros(3)))
    with pytest.raises(NotDifferentiableError, match="argument u"):
        oracle.primal(rows, (np.zeros(3), "text"))
    with pytest.raises(IradError, match="not int"):
        oracle.primal(3, ())
    with pytest.raises(ShadowError, match="no floating-point parameter by"):
        oracle.jvp(shifted, (np.zeros(3), np.zeros(3), 1), {"by": 1.0})
    with pytest.raises(ShadowError, match=r"shape \(3,\)"):
        oracle.jvp(shifted, (np.zeros(3), np.zeros(3), 1), {"u": np.zeros(4)})


def test_too_many_points() -> None:
    with pytest.raises(IradError, match="10 points"):
        oracle.primal(shifted, (np.zeros(10), np.zeros(10), 0), most=9)


def test_many_tangents_at_once() -> None:
    mode = Forward(3)
    carried = mode.join([(2.0, mode.tangent([1.0, 0.0, -1.0]))], False)
    assert carried is not None
    np.testing.assert_array_equal(carried, [[2, 0, -2], [2, 0, 2]])
