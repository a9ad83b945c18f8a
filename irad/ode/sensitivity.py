"""The ways to differentiate a solve, as options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irad.errors import IradError


@dataclass(frozen=True)
class DiscreteAdjoint:
    """The exact derivative of the steps taken (step sizes and stage counts held fixed): one VJP of f a stage.

    Memory: the state at the start of every step, or, with ``checkpoints=c``, at most c of them at a time and more
    forward steps (binomial schedule: 2.6 times the steps at 60 steps and c = 20, 3.8 times at 1000 steps); and the
    stages of one step. Both give bitwise the same gradient.
    """

    checkpoints: int | None = None

    def __post_init__(self) -> None:
        if self.checkpoints is not None and self.checkpoints < 1:
            raise ValueError("checkpoints must be at least 1 (or None: keep the state of every step)")


@dataclass(frozen=True)
class InterpolatingAdjoint:
    """The adjoint differential equation, solved backward with steps of its own; u comes from dense output.

    Parameters' cotangents are integrated beside it as further states. The gradient is accurate to the tolerances
    (``rtol``, ``atol``: those of the solve unless given), not the exact derivative of the computed solution. Memory:
    state and rate of every step.
    """

    rtol: float | None = None
    atol: float | None = None


@dataclass(frozen=True)
class GaussAdjoint:
    """As :class:`InterpolatingAdjoint`, but parameters' integrals are sums over Gauss points of every backward step.

    Cheaper for parameters as large as the state. The integrals are not under error control.
    """

    rtol: float | None = None
    atol: float | None = None
    nodes: int = 3

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= 20:
            raise ValueError("nodes must be 1 to 20")


def choose(*given: Any) -> Any:
    """The first that is not None, or the discrete adjoint; refuses what is not a method of differentiation."""
    for method in given:
        if method is None:
            continue
        if isinstance(method, type):
            method = method()
        if not isinstance(method, (DiscreteAdjoint, InterpolatingAdjoint, GaussAdjoint)):
            raise IradError(
                f"{method!r} is not a way to differentiate a solve",
                remedy="use irad.DiscreteAdjoint(), irad.InterpolatingAdjoint() or irad.GaussAdjoint()",
            )
        return method
    return DiscreteAdjoint()


def keeps(sensealg: Any, traced: bool) -> str | None:
    """What a solve keeps of every step for a later gradient: None, "states", or "slopes" (states and rates)."""
    if sensealg is None and not traced:
        return None
    method = choose(sensealg)
    if isinstance(method, DiscreteAdjoint):
        return "states" if method.checkpoints is None else None
    return "slopes"
