"""Programs of stencils, weather models and flows: both versions compute the same, and have the oracle's derivatives."""

from __future__ import annotations

from typing import Any

import fluids  # noqa: F401  (enters programs)
import numpy as np
import pytest
import stencils  # noqa: F401
import weather  # noqa: F401
from catalogue import PROGRAMS, Program, Values

import irad
from irad import oracle

ALL = [pytest.param(p, id=name) for name, p in PROGRAMS.items()]


def copied(values: Values) -> Values:
    return {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in values.items()}


def after(function: Any, values: Values) -> Values:
    result = copied(values)
    function(**result)
    return {n: v for n, v in result.items() if isinstance(v, np.ndarray)}


@pytest.mark.parametrize("case", ALL)
def test_both_versions_compute_the_same(case: Program) -> None:
    values = case.arguments()
    results = after(case.loops, values), after(case.slices, values)
    changed = [n for n in results[0] if not np.array_equal(results[0][n], values[n])]
    assert changed
    for name in results[0]:
        np.testing.assert_allclose(results[1][name], results[0][name], rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("version", ["loops", "slices"])
@pytest.mark.parametrize("case", ALL)
def test_the_oracle_against_differences(case: Program, version: str) -> None:
    """Of plain Python, along one direction in everything."""
    function, values = getattr(case, version), case.arguments()
    rng = np.random.default_rng(2)
    tangents = {n: np.asarray(rng.uniform(-1, 1, np.shape(values[n])))[()] for n in case.floats}
    found = oracle.jvp(function, tuple(values.values()), tangents)
    h = 1e-6
    up, down = (after(function, {**values, **{n: values[n] + s * t for n, t in tangents.items()}}) for s in (h, -h))
    for name, expected in after(function, values).items():
        size = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(found.values[name], expected, rtol=1e-12, atol=1e-12 * size, err_msg=name)
        difference = (up[name] - down[name]) / (2 * h)
        size = max(1.0, float(np.abs(difference).max()))
        np.testing.assert_allclose(found.derivatives[name], difference, rtol=1e-6, atol=1e-7 * size, err_msg=name)


@pytest.mark.parametrize("version", ["loops", "slices"])
@pytest.mark.parametrize("case", ALL)
def test_derivatives(case: Program, version: str) -> None:
    """The program as it stands, in both modes, against the oracle."""
    function, values, wrt = getattr(case, version), case.arguments(), tuple(case.floats)
    kernel = irad.kernel(function)
    rng = np.random.default_rng(4)
    run = copied(values)
    back = irad.pullback(kernel, *run.values(), wrt=wrt)
    for name, expected in after(function, values).items():
        np.testing.assert_allclose(run[name], expected, rtol=1e-13, atol=1e-13, err_msg=name)
    seeds = {n: rng.uniform(-1, 1, values[n].shape) for n in kernel.specialise(tuple(values.values())).written}
    found = back(seeds)._asdict()
    reverse = oracle.vjp(function, tuple(values.values()), seeds)
    for name in wrt:
        error = np.abs(found[name] - reverse.derivatives[name])
        assert np.all(error <= 1e-10 * np.asarray(reverse.scales[name])), name
    tangents = {n: np.asarray(rng.uniform(-1, 1, np.shape(values[n])))[()] for n in wrt}
    out = irad.pushforward(kernel, *copied(values).values(), wrt=wrt)(tangents)._asdict()
    forward = oracle.jvp(function, tuple(values.values()), tangents)
    for name, tangent in out.items():
        error = np.abs(tangent - forward.derivatives[name])
        assert np.all(error <= 1e-10 * forward.scales[name]), name
