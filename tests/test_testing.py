"""``irad.testing``: every kind of mistake is found by the check that should find it, and right gradients pass.

The first part gives it derivatives that the oracle computed, some of them spoilt. The second runs real kernels.
"""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irad
import irad.testing
from irad import oracle
from irad.domains import interior, points
from irad.errors import ShadowError
from irad.frontend.device import device
from irad.oracle.captured import hidden_arguments
from irad.testing import GradientError, Report, Row
from irad.testing.of_kernels import _twin
from irad.testing.report import STEPS, entry_row, slope_row


class Fake:
    """A kernel that runs its Python function, and derivatives by the oracle, spoilt by ``wrong``."""

    __irad_kernel__ = True

    def __init__(self, function: Any) -> None:
        self.py_func, self.__name__ = function, function.__name__
        self.signature = inspect.signature(function)

    def __call__(self, *args: Any) -> None:
        given = dict(zip(self.signature.parameters, args, strict=True))
        hidden = {n: place.value for n, place in hidden_arguments(self.py_func, tuple(given)).items()}
        for name, after in oracle.primal(self, args).values.items():
            np.copyto({**given, **hidden}[name], after)


def same(name: str, x: Any) -> Any:
    return x


@pytest.fixture
def derivatives(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Install derivatives; ``forward`` and ``reverse`` change what is right by name."""

    def install(forward: Callable[[str, Any], Any] = same, reverse: Callable[[str, Any], Any] = same) -> None:
        def pushforward(kernel: Any, *args: Any, wrt: Any) -> Any:
            def push(**tangents: Any) -> Any:
                out = oracle.jvp(kernel, args, tangents)
                names = [n for n, w in out.written.items() if w.any()]
                return namedtuple("Tangents", names)(*(forward(n, out.derivatives[n]) for n in names))

            return push

        def pullback(kernel: Any, *args: Any, wrt: Any) -> Any:
            def back(**seeds: Any) -> Any:
                out = oracle.vjp(kernel, args, seeds).derivatives
                return namedtuple("Cotangents", wrt)(*(reverse(n, out[n]) for n in wrt))

            return back

        monkeypatch.setattr(irad, "pushforward", pushforward, raising=False)
        monkeypatch.setattr(irad, "pullback", pullback, raising=False)

    return install


@Fake
def burgers(v, u, nu):  # type: ignore[no-untyped-def]
    i = interior(u)
    v[i] = u[i] - u[i] * (u[i + 1] - u[i - 1]) + nu * (u[i + 1] - 2 * u[i] + u[i - 1])


def data(n: int = 9, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, n)


def verdicts(report: Report) -> dict[str, set[bool | None]]:
    found: dict[str, set[bool | None]] = {}
    for row in report.rows:
        found.setdefault(row.check, set()).add(row.ok)
    return found


def failing(*args: Any, **options: Any) -> dict[str, set[bool | None]]:
    with pytest.raises(GradientError) as e:
        irad.testing.check_gradient(*args, **options)
    assert "WRONG" in str(e.value)
    assert isinstance(e.value, AssertionError)
    return verdicts(e.value.report)


def test_right_gradients_pass(derivatives: Callable[..., None]) -> None:
    derivatives()
    args = (np.zeros(9), data(), 0.3)
    copies = [args[0].copy(), args[1].copy()]
    report = irad.testing.check_gradient(burgers, *args)
    assert verdicts(report) == {"dot product": {True}, "Taylor": {True}, "oracle": {True}}
    assert {row.what.split(" [")[0] for row in report.rows if row.check == "oracle"} == {
        "tangent of v",
        "cotangent of u",
        "cotangent of nu",
    }
    assert str(report).startswith("gradient of burgers\ncheck")
    for a, b in zip(args, copies, strict=False):
        np.testing.assert_array_equal(a, b)


def test_a_wrong_reverse_mode(derivatives: Callable[..., None]) -> None:
    derivatives(reverse=lambda n, x: 1.001 * x if n == "u" else x)
    assert failing(burgers, np.zeros(9), data(), 0.3) == {
        "dot product": {False},
        "Taylor": {True},
        "oracle": {True, False},
    }


def test_one_wrong_entry(derivatives: Callable[..., None]) -> None:
    def spoil(name: str, x: Any) -> Any:
        return np.where(np.arange(9) == 3, x + 1e-6, x) if name == "u" else x

    derivatives(reverse=spoil)
    with pytest.raises(GradientError, match=r"cotangent of u \[3\]"):
        irad.testing.check_gradient(burgers, np.zeros(9), data(), 0.3)


def test_a_mistake_that_both_modes_share(derivatives: Callable[..., None]) -> None:
    derivatives(lambda n, x: 0.9 * x, lambda n, x: 0.9 * x)
    found = failing(burgers, np.zeros(9), data(), 0.3)
    assert found["dot product"] == {True}
    assert found["Taylor"] == {False}
    assert False in found["oracle"]


def test_not_a_number(derivatives: Callable[..., None]) -> None:
    derivatives(reverse=lambda n, x: x * np.nan)
    assert failing(burgers, np.zeros(9), data(), 0.3)["dot product"] == {False}


def test_a_forgotten_entry_of_wrt(derivatives: Callable[..., None]) -> None:
    derivatives(reverse=lambda n, x: 0 * x if n == "nu" else x)
    assert failing(burgers, np.zeros(9), data(), 0.3)["dot product"] == {False}
    assert irad.testing.check_gradient(burgers, np.zeros(9), data(), 0.3, wrt="u").ok


def test_single_precision(derivatives: Callable[..., None]) -> None:
    u = data().astype(np.float32)

    def rounded(name: str, x: Any) -> Any:
        return np.asarray(x).astype(np.float32)

    derivatives(rounded, rounded)
    assert irad.testing.check_gradient(burgers, np.zeros(9, np.float32), u, 0.3).ok
    derivatives(lambda n, x: rounded(n, 1.02 * x), rounded)
    found = failing(burgers, np.zeros(9, np.float32), u, 0.3)
    assert found["Taylor"] == {False}


def test_in_place_and_linear(derivatives: Callable[..., None]) -> None:
    @Fake
    def scale(q, a):  # type: ignore[no-untyped-def]
        i = interior(q)
        q[i] = q[i] * 2.0 + a

    derivatives()
    report = irad.testing.check_gradient(scale, data(), 0.5)
    assert any("linear" in row.note for row in report.rows)
    derivatives(lambda n, x: x * 1.1)
    assert failing(scale, data(), 0.5)["Taylor"] == {False}


def test_a_kink_at_the_arguments(derivatives: Callable[..., None]) -> None:
    @Fake
    def kink(v, u):  # type: ignore[no-untyped-def]
        i = points(u)
        v[i] = abs(u[i] - 1.0)

    derivatives()
    with pytest.raises(GradientError, match="kink"):
        irad.testing.check_gradient(kink, np.zeros(9), np.ones(9))


weights = np.linspace(0.5, 1.5, 9)


@device
def weighted(x, i):  # type: ignore[no-untyped-def]
    return x * x * weights[i]


def test_captured_values_are_put_back(derivatives: Callable[..., None]) -> None:
    total = np.zeros(9)
    c = 0.5

    @Fake
    def kernel(u):  # type: ignore[no-untyped-def]
        i = points(u)
        total[i] = weighted(u[i], i) * c

    before = weights
    derivatives()
    place = kernel.py_func.__closure__
    report = irad.testing.check_gradient(kernel, data(), wrt=["u", "weights", "c"])
    assert {row.what.split(" [")[0] for row in report.rows if row.check == "oracle"} >= {"cotangent of weights"}
    assert weights is before
    assert not total.any()
    assert [cell.cell_contents is x for cell, x in zip(place or (), (c, total), strict=True)] == [True, True]


def test_names_and_objects(derivatives: Callable[..., None]) -> None:
    derivatives()
    u = data()
    assert irad.testing.check_gradient(burgers, np.zeros(9), u, 0.3, wrt=u).ok
    with pytest.raises(ShadowError, match="one of v, u, nu"):
        irad.testing.check_gradient(burgers, np.zeros(9), u, 0.3, wrt="T")
    with pytest.raises(ShadowError, match="2 parameters"):
        irad.testing.check_gradient(burgers, u, u, 0.3, wrt=u)


def test_what_the_oracle_cannot_run_is_said(derivatives: Callable[..., None], monkeypatch: Any) -> None:
    derivatives()
    monkeypatch.setattr("irad.testing.of_kernels.MOST_POINTS", 3)
    report = irad.testing.check_gradient(burgers, np.zeros(9), data(), 0.3)
    assert verdicts(report)["oracle"] == {None}
    assert "7 points are too many" in str(report)


# the verdicts --------------------------------------------------------------------------------------------------------


def test_slopes() -> None:
    noise = [1e-15] * len(STEPS)
    assert slope_row([h**2 for h in STEPS], noise).ok
    assert not slope_row(list(STEPS), noise).ok
    assert slope_row([h**2 + 1e-14 for h in STEPS], noise).ok
    assert not slope_row([h**2 + 1e-3 * h for h in STEPS], noise).ok
    assert slope_row([1e-16] * len(STEPS), noise).ok
    assert not slope_row([np.nan] * len(STEPS), noise).ok
    assert not slope_row([1.0] * len(STEPS), noise).ok


def test_the_worst_entry() -> None:
    row = entry_row("x", [1.0, 2.0, np.inf, np.nan], [1.0, 2.1, np.inf, np.nan], np.ones(4), 1e-3, "")
    assert (row.what, row.ok) == ("x [1]", False)
    assert entry_row("x", [1.0, np.inf], [1.0, np.inf], np.ones(2), 1e-3, "").ok
    assert not entry_row("x", [1.0], [np.nan], np.ones(1), 1e-3, "").ok
    assert entry_row("x", np.zeros(0), np.zeros(0), np.zeros(0), 1e-3, "").ok


def test_a_report_without_any_check_is_not_ok() -> None:
    assert not Report("f", (Row("oracle", "", None, None, None, None, None, "why"),)).ok


@pytest.mark.parametrize("view", [np.s_[::2, ::-1], np.s_[1:3, 1:], np.s_[:0, :], np.s_[:, 0]])
def test_twins_lie_as_their_originals(view: Any) -> None:
    a = np.arange(20.0).reshape(4, 5)[view]
    twin = _twin(a)
    np.testing.assert_array_equal(twin, a)
    assert not np.shares_memory(twin, a)
    assert twin.strides == a.strides or not a.size
    assert _twin(np.broadcast_to(np.float64(1), (3,))).flags.writeable


# real kernels and functions ------------------------------------------------------------------------------------------


@irad.kernel
def step(v, u, a):  # type: ignore[no-untyped-def]
    i, j = irad.interior(u)
    v[i, j] = u[i, j] * np.exp(-a * u[i - 1, j]) + u[i, j + 1] ** 2


def grid(order: str = "C", dtype: Any = np.float64) -> Any:
    return np.random.default_rng(1).uniform(-1, 1, (5, 6)).astype(dtype, order=order)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_kernel(dtype: str) -> None:
    report = irad.testing.check_gradient(step, np.zeros((5, 6), dtype), grid("F", dtype), 0.5)
    assert verdicts(report) == {"dot product": {True}, "Taylor": {True}, "oracle": {True}}


def test_a_kernel_with_too_many_points() -> None:
    u = np.random.default_rng(1).uniform(-1, 1, (200, 150))
    report = irad.testing.check_gradient(step, np.zeros_like(u), u, 0.5)
    assert verdicts(report) == {"dot product": {True}, "Taylor": {True}, "oracle": {None}}


def test_an_empty_array() -> None:
    assert irad.testing.check_gradient(step, np.zeros((2, 0)), np.zeros((2, 0)), 0.5).ok


def test_a_function() -> None:
    def loss(x, weights, factor):  # type: ignore[no-untyped-def]
        return irad.sum(np.sin(x) * weights) * factor

    x, w = np.linspace(0.1, 1, 7), np.linspace(1, 2, 7)
    assert irad.testing.check_gradient(loss, x, w, 2.0).ok
    assert irad.testing.check_gradient(loss, x, w, 2.0, wrt=("weights", 2)).ok
    assert irad.testing.check_gradient(loss, x, w, 2.0, wrt="factor").ok


def test_a_function_with_a_wrong_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    right = irad.value_and_grad

    def wrong(f: Any, wrt: Any = None) -> Any:
        def both(*args: Any) -> Any:
            value, gradient = right(f, wrt)(*args)
            return value, 1.01 * gradient

        return both

    monkeypatch.setattr(irad, "value_and_grad", wrong)
    found = failing(lambda x: irad.sum(x**3), np.linspace(0.1, 1, 7))
    assert found == {"dot product": {False}, "Taylor": {False}}


def test_a_function_of_a_tree() -> None:
    def loss(p):  # type: ignore[no-untyped-def]
        return irad.sum(p["a"] ** 2) * p["b"][0]

    assert irad.testing.check_gradient(loss, {"a": np.linspace(0, 1, 4), "b": [3.0, 1]}).ok
