"""Differential equations: ROCK2 with step size control, and the gradients of what it computes.

``problem`` and ``solve`` are the entrance, ``integrate`` the time loops, ``rock2`` the step, ``adjoint`` the gradients.
The right-hand side is recorded by ``irad.tape``.
"""

from irad.ode.adjoint import adjoint
from irad.ode.grid import Grid
from irad.ode.problem import ODEProblem
from irad.ode.retcode import Retcode
from irad.ode.rock2 import ROCK2
from irad.ode.sensitivity import DiscreteAdjoint, GaussAdjoint, InterpolatingAdjoint
from irad.ode.solution import Solution, Stats
from irad.ode.solve import solve

__all__ = [
    "ROCK2",
    "DiscreteAdjoint",
    "GaussAdjoint",
    "Grid",
    "InterpolatingAdjoint",
    "ODEProblem",
    "Retcode",
    "Solution",
    "Stats",
    "adjoint",
    "solve",
]
