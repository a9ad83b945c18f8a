"""The derivative of a solve along given directions: the steps of its grid, taken for state and tangent together.

State and tangent obey the same recurrences (their coefficients are constants), so one vector that holds both is stepped
over the grid with a rate that is f and its derivative. The result is the exact derivative of the steps taken.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irad.ode import vectors as vec
from irad.ode.grid import Grid
from irad.ode.integrate import replay
from irad.ode.rhs import RightHandSide
from irad.ode.rock2 import Stages
from irad.ode.solution import Picker, Sample
from irad.ode.vectors import Vector
from irad.tape.function import Tangents
from irad.tape.memory import vector


class Augmented(Stages):
    """``(f, J u_dot + f_p p_dot + ...)`` as the rate of ``(u, u_dot)``."""

    def __init__(self, rhs: RightHandSide, fixed: Tangents) -> None:
        self._rhs, self._fixed = rhs, fixed
        self._recorded = rhs.recording()
        self.halves = vec.Split(rhs.size)

    @property
    def autonomous(self) -> bool:
        return self._rhs.autonomous

    def vector(self) -> Vector:
        return vector(2 * self._rhs.size, self._rhs.dtype)

    def rate(self, z: Vector, dz: Vector, t: float) -> None:
        self._rhs.counts.f += 1
        self._rhs.counts.jvp += 1
        u, u_dot = self.halves(z)
        du, du_dot = self.halves(dz)
        self._recorded.tangent(u, du, u_dot, du_dot, t, self._fixed)


def tangents(
    rhs: RightHandSide, grid: Grid, samples: Sequence[Sample], u0_dot: Vector | None, fixed: Tangents
) -> list[Vector]:
    """Tangents of the states at places of the grid, from those of u0 and of what ``fixed`` holds."""
    both = Augmented(rhs, fixed)
    z = both.vector()
    u, u_dot = both.halves(z)
    vec.copy(u, rhs.start())
    if u0_dot is not None:
        vec.copy(u_dot, u0_dot)
    if len(grid) == 0:
        return [u_dot.copy() for _ in samples]
    out = [both.vector() for _ in samples]
    picker = Picker(samples, grid, out)
    with np.errstate(all="ignore"):
        replay(both, z, picker.shortened(), picker)
    rhs.release()
    return [both.halves(x)[1] for x in out]
