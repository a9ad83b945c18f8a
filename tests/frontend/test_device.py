"""Helper functions, from Python and from Numba."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from irad.errors import IradError
from irad.frontend.device import Device, device

factor = 2.0


@device
def scaled(x, by=1.0):
    """Scale."""
    return x * factor * by


@device(fastmath=True)
def fast(x):
    return x + 1


def test_a_helper_runs_as_python(monkeypatch):
    assert scaled(3.0, by=2.0) == 12.0
    monkeypatch.setitem(globals(), "factor", 5.0)
    assert scaled(3.0) == 15.0  # what it captures is not frozen
    np.testing.assert_array_equal(scaled(np.ones(2)), [5.0, 5.0])


def test_it_keeps_its_name_and_document():
    assert (scaled.__name__, scaled.__doc__) == ("scaled", "Scale.")
    assert "scaled" in repr(scaled)
    assert scaled.__irad_device__
    assert fast.targetoptions == {"fastmath": True}


def test_numba_functions_may_call_it():
    @numba.njit
    def f(x):
        return fast(x) * 2

    assert f(1.0) == 4.0


@pytest.mark.parametrize("thing", [1, len, scaled])
def test_only_functions(thing):
    with pytest.raises(IradError, match="takes a function"):
        device(thing)


def test_type():
    assert isinstance(scaled, Device)
