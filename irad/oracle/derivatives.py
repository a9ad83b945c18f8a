"""What a number carries beside its value: a tangent vector in forward mode, the name of a node in reverse mode.

Everything here is float64, whatever precision the kernel computes in. A constant carries ``None``, and is no part of
what is joined here. Along with each
derivative goes its *scale*, the same sum with every term's absolute value: a difference of some ``eps * scale`` is
rounding, one of the order of the scale is a mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Part = tuple[float, Any]
"""A partial derivative and what the operand carries."""


class Nothing:
    """Values alone."""

    def join(self, parts: Sequence[Part], pole: bool) -> None:
        return None


class Forward:
    """Carries ``width`` tangents at once: an array of shape ``(2, width)``, tangents and their scales."""

    def __init__(self, width: int = 1) -> None:
        self.width = width

    def tangent(self, values: Any) -> Floats:
        """What a number with these tangents carries."""
        t = np.broadcast_to(np.asarray(values, np.float64), (self.width,))
        return np.stack([t, np.abs(t)])

    def join(self, parts: Sequence[Part], pole: bool) -> Floats | None:
        """What the result of an operation carries; behind a pole a zero tangent stays zero."""
        total: Floats | None = None
        for partial, carried in parts:
            term = np.array([[partial], [abs(partial)]]) * carried
            if pole:
                term[carried == 0] = 0.0
            total = term if total is None else total + term
        return total


class Reverse:
    """Carries the number of a node. The tape holds for each node its operands and the partial derivatives by them."""

    def __init__(self) -> None:
        self.tape: list[tuple[tuple[Part, ...], bool]] = []

    def leaf(self) -> int:
        """A new independent variable."""
        return self._node((), False)

    def join(self, parts: Sequence[Part], pole: bool) -> int:
        """Record an operation."""
        return self._node(tuple((float(partial), operand) for partial, operand in parts), pole)

    def _node(self, parts: tuple[Part, ...], pole: bool) -> int:
        self.tape.append((parts, pole))
        return len(self.tape) - 1

    def backward(self, seeds: Floats) -> Floats:
        """The cotangents of all nodes and their scales, shape ``(2, nodes)``, from those of results."""
        bars, scales = seeds.tolist(), np.abs(seeds).tolist()
        for node in reversed(range(len(self.tape))):
            parts, pole = self.tape[node]
            bar, scale = bars[node], scales[node]
            for partial, operand in parts:
                bars[operand] += 0.0 if pole and bar == 0 else partial * bar
                scales[operand] += 0.0 if pole and scale == 0 else abs(partial) * scale
        return np.array([bars, scales])
