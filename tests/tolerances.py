"""How far results may be apart, by precision, with the reason of each number.

Relative tolerances of derivatives are relative to their *scale*: the sum of the absolute values of their terms
(``irad.oracle.Result.scales``). So a difference that comes from cancellation passes, and one of a wrong rule, which is
of the order of the scale, does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Tolerance:
    """``values``: of a primal run against plain Python, where functions of the C library or float32 arithmetic with
    Python numbers take part; otherwise the bits must be the same. ``derivatives``: of tangents and cotangents, to their
    scale. ``dot``: of the identity <w, J v> = <J' w, v>, to the sum of the absolute values of all products.
    ``closed``: of derivatives against closed forms on tame data, to the largest entry.
    """

    values: float
    derivatives: float
    dot: float
    closed: float


TOLERANCES = {
    # 1e-11: some 1e2 operations of 2e-16 each, whose partial derivatives differ in turn by some 1e2 units
    "float64": Tolerance(values=1e-13, derivatives=1e-11, dot=1e-11, closed=1e-12),
    # the same counts in units of 6e-8
    "float32": Tolerance(values=1e-4, derivatives=2e-3, dot=2e-3, closed=1e-4),
}

TAYLOR_SLOPE = 0.2
"""How far the slope of a second-order remainder may be from 2: third-order terms at the steps used bend it by less."""


def tolerance(*arrays: Any) -> Tolerance:
    """The tolerance for values that are computed from these: that of the coarsest precision among them."""
    coarse = any(np.asarray(a).dtype == np.float32 for a in arrays)
    return TOLERANCES["float32" if coarse else "float64"]
