import math

import numpy as np
import pytest

from irad.ode.rock2 import ROCK2, Pulls, Stages, reverse, stages, step
from irad.ode.rock2_table import coefficients, stability


def buffers(n, count, dtype=np.float64):
    return [np.full(n, np.nan, dtype) for _ in range(count)]


def rates(function):
    """A right-hand side of which only the rate is known."""
    found = Stages()
    found.rate = function
    return found


def take(f, t, h, s, u):
    """One step of a function f(t, u) -> rate; returns the new state, the error estimate, times and states of calls."""
    calls = []

    def rate(x, dx, when):
        calls.append((when, x.copy()))
        dx[:] = f(when, x)

    a, b, k, last = buffers(u.size, 4, u.dtype)
    f0 = np.asarray(f(t, u), u.dtype)
    before, slope = u.copy(), f0.copy()
    new, _ = step(rates(rate), t, h, coefficients(s), u, f0, a, b, k, last)
    assert np.array_equal(u, before)
    assert np.array_equal(f0, slope)
    return new, k, calls


@pytest.mark.parametrize("s", [3, 4, 5, 8, 21, 60, 200])
def test_a_step_is_the_stability_polynomial(s):
    length = coefficients(s).length
    lam = np.array([-0.9, -0.31, -0.05, 1e-3]) * length
    new, _, calls = take(lambda t, u: lam * u, 0.0, 1.0, s, np.ones(4))
    assert len(calls) == s - 1
    assert new == pytest.approx(stability(coefficients(s), lam)[0], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("s", [3, 4, 9, 50, 200])
def test_stage_times(s):
    """u' = 1 must see u = t at every evaluation."""
    t, h = 0.3, 0.2
    new, error, calls = take(lambda when, u: np.ones(1), t, h, s, np.array([t]))
    for when, state in calls:
        assert state[0] == pytest.approx(when, abs=1e-14)
    assert new[0] == pytest.approx(t + h, abs=1e-14)
    assert error[0] == 0.0


@pytest.mark.parametrize("s", [3, 10, 200])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_state_with_no_rate_stays_bitwise(s, dtype):
    u = np.random.default_rng(0).normal(size=50).astype(dtype)
    new, error, _ = take(lambda t, x: np.zeros_like(x), 0.0, 0.1, s, u)
    assert new.dtype == dtype
    assert np.array_equal(new, u)
    assert not error.any()


def nonlinear():
    w = np.array([1.0, 2.0, 3.0])

    def exact(t):
        return np.exp(np.sin(w * t)) / (1 + t)

    def f(t, y):
        e = exact(t)
        de = e * (w * np.cos(w * t) - 1 / (1 + t))
        return de - (y**3 - e**3) + 0.5 * (np.roll(y, 1) * y - np.roll(e, 1) * e)

    return f, exact


@pytest.mark.parametrize("s", [3, 5, 21, 49, 200])
def test_order_two(s):
    f, exact = nonlinear()
    errors = []
    for n in (64, 128):
        u, h = exact(0.0), 1.0 / n
        for i in range(n):
            u = take(f, i * h, h, s, u)[0]
        errors.append(np.abs(u - exact(1.0)).max())
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)
    if s >= 21:
        assert errors == pytest.approx([1.05e-4, 2.55e-5], rel=0.05)


def test_the_estimate_is_the_error_in_size():
    """Prothero-Robinson: the estimate follows the stiff error within a factor 2."""
    stiff, s, h = 2000.0, 13, 1 / 16
    u, worst, estimate = np.array([1.0]), 0.0, 0.0
    for i in range(16):
        u, e, _ = take(lambda t, y: -stiff * (y - np.cos(t)) - np.sin(t), i * h, h, s, u)
        worst = max(worst, abs(u[0] - math.cos((i + 1) * h)))
        estimate = max(estimate, abs(e[0]))
    assert 0.3 < estimate / worst < 3


@pytest.mark.parametrize("s", [3, 4, 7, 40])
def test_stages_are_those_of_the_step(s):
    f, _ = nonlinear()
    u = np.array([0.3, 0.9, 1.1])
    _, _, calls = take(f, 0.2, 0.1, s, u)
    g = [u.copy(), *buffers(3, s - 1)]
    seen = []

    def rate(x, dx, when):
        seen.append((when, x.copy()))
        dx[:] = f(when, x)

    stages(rates(rate), 0.2, 0.1, coefficients(s), g, np.empty(3), 0.2, lambda j, x: None)
    three, kept = buffers(3, 3), [u.copy()]
    three[0][:] = u
    work = [three[j % 3] for j in range(s)]
    stages(rates(rate), 0.2, 0.1, coefficients(s), work, np.empty(3), 0.2, lambda j, x: kept.append(x.copy()))
    assert all(np.array_equal(x, y) for x, y in zip(kept, g, strict=True))
    del seen[s - 1 :]
    assert seen[0][0] == 0.2
    assert [t for t, _ in seen[1:]] == [t for t, _ in calls][:-1]
    for (_, x), stage in zip(calls, g[1:], strict=True):
        assert np.array_equal(x, stage)


@pytest.mark.parametrize("s", [3, 4, 5, 22, 60])
def test_reverse_is_the_transpose_of_the_step(s):
    """A linear problem with a non-symmetric matrix that depends on time: columns of the step against reverse."""
    rng = np.random.default_rng(s)
    n, t, h = 5, 0.1, 0.2
    A, B = rng.normal(size=(2, n, n))
    A = A - 0.2 * coefficients(s).length / h * np.eye(n)

    def matrix(when):
        return A + when * B

    forward = np.stack([take(lambda w, x: matrix(w) @ x, t, h, s, e)[0] for e in np.eye(n)], axis=1)
    lam = rng.normal(size=n)
    slope_bar = rng.normal(size=n)

    def pull(j, b, w, when):
        w[:] = matrix(when).T @ b
        b[:] = np.nan  # it may be lost

    pulls = Pulls()
    pulls.reverse = pull
    work, pair = buffers(n, 2), buffers(n, 2)
    got = reverse(pulls, t, h, coefficients(s), lam.copy(), pair, work, t, None)
    assert got == pytest.approx(forward.T @ lam, rel=1e-11, abs=1e-12)
    got = reverse(pulls, t, h, coefficients(s), lam.copy(), pair, work, t, slope_bar)
    assert got == pytest.approx(forward.T @ lam + matrix(t).T @ slope_bar, rel=1e-11, abs=1e-12)


def test_options():
    assert ROCK2().most_stages(np.dtype(np.float64)) == 200
    assert ROCK2().most_stages(np.dtype(np.float32)) == 50
    assert ROCK2(max_stages=120).most_stages(np.dtype(np.float32)) == 120
    for bad in ({"min_stages": 2}, {"max_stages": 201}, {"min_stages": 9, "max_stages": 8}):
        with pytest.raises(ValueError, match="min_stages"):
            ROCK2(**bad)
