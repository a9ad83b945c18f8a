"""Exact adjoints of mutating stencil kernels, derived from LLVM IR, and stabilised ODE solvers that use them.

Everything that users type is here; ``irad.fd`` holds the finite-difference operators, ``irad.testing`` the gradient
checks.
"""

from irad.annotations import Active, Const, Duplicated, DuplicatedNoNeed, Forward, Reverse
from irad.autodiff import autodiff
from irad.domains import atomic_add, domain, interior, points
from irad.errors import (
    AliasError,
    DomainError,
    IradError,
    NotDifferentiableError,
    RaceError,
    ShadowError,
)
from irad.frontend.device import device
from irad.kernel import Kernel, kernel
from irad.ode import (
    ROCK2,
    DiscreteAdjoint,
    GaussAdjoint,
    Grid,
    InterpolatingAdjoint,
    ODEProblem,
    Retcode,
    Solution,
    adjoint,
    solve,
)
from irad.pullback import pullback, pushforward, vjp
from irad.transforms import gradient, jvp, sum, value_and_grad

__version__ = "0.1.0"

__all__ = [
    "ROCK2",
    "Active",
    "AliasError",
    "Const",
    "DiscreteAdjoint",
    "DomainError",
    "Duplicated",
    "DuplicatedNoNeed",
    "Forward",
    "GaussAdjoint",
    "Grid",
    "InterpolatingAdjoint",
    "IradError",
    "Kernel",
    "NotDifferentiableError",
    "ODEProblem",
    "RaceError",
    "Retcode",
    "Reverse",
    "ShadowError",
    "Solution",
    "adjoint",
    "atomic_add",
    "autodiff",
    "device",
    "domain",
    "gradient",
    "interior",
    "jvp",
    "kernel",
    "points",
    "pullback",
    "pushforward",
    "solve",
    "sum",
    "value_and_grad",
    "vjp",
]
