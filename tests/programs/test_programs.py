"""The programs themselves: both versions compute the same, and their derivatives are what complex steps say."""

from __future__ import annotations

from typing import Any

import fluids  # noqa: F401  (enters programs)
import numpy as np
import pytest
import stencils  # noqa: F401
import weather  # noqa: F401
from catalogue import PROGRAMS, Program, Values

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
