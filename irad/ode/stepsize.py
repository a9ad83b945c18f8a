"""How large the next step is: error control with memory, the first step, and what counts as too small.

The error estimate of ROCK2 is of order h**2, so the controller's exponents are 1/2 (and 1/2 of the ratio of two
successive errors: Gustafsson's predictive control). The error norm itself is in ``vectors.py``.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

SAFETY = 0.8
LEAST_FACTOR = 0.1
FIRST_GROWTH, GROWTH = 5.0, 2.0
LEAST_ERROR = 1e-12
MANY_REJECTIONS = 10


@dataclass
class Controller:
    """Proposes step sizes. Signs are left alone: ``h`` may be negative."""

    error: float = 0.0
    h: float = 0.0
    growth: float = FIRST_GROWTH
    rejected: bool = False
    row: int = 0  # rejections since the last accepted step

    def _factor(self, error: float, h: float) -> float:
        if not math.isfinite(error):
            return LEAST_FACTOR
        factor = 1.0 / math.sqrt(max(error, 1e-20))
        if self.error > 0.0 and not self.rejected:
            factor = min(factor, math.sqrt(self.error) * factor * factor * (h / self.h))
        return min(1.0 if self.rejected else self.growth, max(LEAST_FACTOR, SAFETY * factor))

    def accept(self, error: float, h: float) -> float:
        """The next step after an accepted one of size ``h``."""
        factor = self._factor(error, h)
        self.error, self.h, self.growth = max(error, LEAST_ERROR), h, GROWTH
        self.rejected, self.row = False, 0
        return h * factor

    def reject(self, error: float, h: float) -> float:
        """A smaller step to try instead of ``h``."""
        factor = self._factor(error, h)
        self.rejected = True
        self.row += 1
        return h * SAFETY * factor

    def forget(self) -> None:
        """Drop the memory of errors (the equation has jumped)."""
        self.error = 0.0


def first_step(h0: float, error: float, longest: float) -> float:
    """The first step from a trial ``h0 > 0``; ``error`` is the norm of ``h0 (f(t + h0, u + h0 f) - f)``."""
    if not math.isfinite(error):
        return 0.01 * h0
    if 0.1 * h0 >= longest * math.sqrt(error):
        return longest
    return min(0.1 * h0 / math.sqrt(error), longest)


def smallest_step(t: float, t1: float) -> float:
    """A step below this does not move ``t`` reliably."""
    return 16.0 * sys.float_info.epsilon * max(abs(t), abs(t1), sys.float_info.min)
