"""What is to be solved: ``du/dt = f(u, p, t)`` from a state, over a span of time, with parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from irad.errors import IradError
from irad.tape.values import Value


class ODEProblem:
    """An initial value problem ``du/dt = f(u, p, t)``, ``u(t0) = u0``.

    Parameters
    ----------
    f : callable ``f(du, u, p, t)``
        Writes the rate of change into ``du``, which is zero on entry, and returns nothing. With kernels launched on
        ``du``, ``u``, slices of them and captured arrays the solution can be differentiated; any NumPy code can be
        solved.
    u0 : array
        State at ``t0``; float64 or float32 (integers become float64), rank 1 to 4. It is copied by a solve.
    tspan : (t0, t1)
        Two finite numbers in the user's unit of time; ``t1 < t0`` runs backward.
    p : array, float, or tuples, lists and dicts of these, optional
        Handed to ``f`` in the same structure.

    Examples
    --------
    >>> import numpy as np
    >>> def decay(du, u, p, t):
    ...     du[...] = -p * u
    >>> prob = ODEProblem(decay, np.ones(3), (0.0, 1.0), 2.0)
    >>> prob.remake(p=3.0).p
    3.0
    """

    __slots__ = ("f", "p", "tspan", "u0")

    def __init__(self, f: Callable[..., Any], u0: Any, tspan: tuple[float, float], p: Any = None) -> None:
        if not callable(f):
            raise IradError(f"the right-hand side must be a function f(du, u, p, t), not {type(f).__name__}")
        self.f = f
        self.u0 = u0 if isinstance(u0, Value) else _state(u0)
        self.tspan = _span(tspan)
        self.p = p

    def remake(self, **changes: Any) -> ODEProblem:
        """The same problem with some of ``f``, ``u0``, ``tspan``, ``p`` replaced."""
        now = {"f": self.f, "u0": self.u0, "tspan": self.tspan, "p": self.p}
        unknown = sorted(set(changes) - set(now))
        if unknown:
            raise TypeError(f"an ODEProblem has f, u0, tspan and p, not {', '.join(unknown)}")
        return ODEProblem(**{**now, **changes})

    def __repr__(self) -> str:
        shape = getattr(self.u0, "shape", ())
        return f"ODEProblem({getattr(self.f, '__name__', self.f)}, u0 of shape {shape}, tspan={self.tspan})"


def _state(u0: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(u0)
    if array.dtype.kind in "iub":
        array = array.astype(np.float64)
    if array.dtype not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise IradError(f"a state of data type {array.dtype} is not supported", remedy="use float64 or float32")
    if not 1 <= array.ndim <= 4:
        raise IradError(
            f"a state of rank {array.ndim} is not supported",
            remedy="use an array of rank 1 to 4; a single number is numpy.array([x])",
        )
    return array


def _span(tspan: Any) -> tuple[float, float]:
    try:
        t0, t1 = (float(t) for t in tspan)
    except (TypeError, ValueError) as error:
        raise IradError(f"tspan must be two numbers (t0, t1), not {tspan!r}") from error
    if not (math.isfinite(t0) and math.isfinite(t1)):
        raise IradError(f"tspan {tspan!r} is not finite")
    return t0, t1
