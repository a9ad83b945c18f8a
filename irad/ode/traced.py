"""Solves inside a loss function: how a solution hangs on the traced values that its problem was made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from irad.errors import NotDifferentiableError
from irad.ode.solution import Sample, Solution
from irad.tape.function import Tangents
from irad.tape.tree import flatten
from irad.tape.values import Node, Value

if TYPE_CHECKING:
    from irad.ode.problem import ODEProblem

Array = npt.NDArray[Any]


@dataclass
class TracedInputs:
    """The problem without traces, and the traced values: of u0, and of leaves of p (with the leaf's number)."""

    plain: ODEProblem
    u0: Value | None
    p: list[tuple[int, Value]]


def find_values(prob: ODEProblem) -> TracedInputs | None:
    """Take traced values out of a problem; None if there are none."""
    leaves, _, rebuild = flatten(prob.p)
    traced = [(i, leaf) for i, leaf in enumerate(leaves) if isinstance(leaf, Value)]
    u0 = prob.u0 if isinstance(prob.u0, Value) else None
    if u0 is None and not traced:
        return None
    plain = [_plain(leaf) for leaf in leaves]
    state = u0.primal if u0 is not None else prob.u0
    return TracedInputs(prob.remake(u0=state, p=rebuild(plain)), u0, traced)


def _plain(leaf: Any) -> Any:
    if not isinstance(leaf, Value):
        return leaf
    return leaf.primal if leaf.ndim else float(leaf.primal)


class SolveNode(Node):
    """A solve in the graph of a loss. Its cotangent is a list of (place in the grid, cotangent of the state there)."""

    __slots__ = ("_inputs", "_sol", "samples")

    def __init__(self, sol: Solution, inputs: TracedInputs) -> None:
        parents = [] if inputs.u0 is None else [inputs.u0.node]
        parents += [value.node for _, value in inputs.p]
        super().__init__(parents, self._pull, self._push)
        self._sol, self._inputs = sol, inputs
        self.samples: list[Sample] = []

    def combine(self, a: Any, b: Any) -> Any:
        return [*a, *b]

    def _pull(self, bar: Any) -> Sequence[Any]:
        from irad.ode.adjoint import pull

        targets: list[tuple[str, Array | None]] = [("u0", None)]
        if self._inputs.p:
            targets.append(("p", None))
        u0_bar, gradients = pull(self._sol, bar, targets, None)
        out: list[Any] = [] if self._inputs.u0 is None else [u0_bar]
        known = self._sol._rhs.parameters
        for leaf, value in self._inputs.p:
            i = known.index.index(leaf)
            part = known.shaped(i, gradients.p[i])
            out.append(part if value.ndim else part.reshape(()))
        return out

    def _push(self, dots: Sequence[Any]) -> Any:
        from irad.ode.forward import tangents

        rhs = self._sol._rhs
        rest = list(dots)
        u0_dot = None
        if self._inputs.u0 is not None:
            first = rest.pop(0)
            u0_dot = None if first is None else rhs.flat(np.broadcast_to(first, rhs.shape))
        known = rhs.parameters
        flat = [np.zeros_like(a) for a in known.flat]
        for (leaf, _), dot in zip(self._inputs.p, rest, strict=True):
            if dot is not None:
                i = known.index.index(leaf)
                shaped = np.zeros_like(known.arrays[i])
                shaped[...] = dot
                flat[i][:] = shaped.ravel(order="K")
        rhs.check()
        found = tangents(rhs, self._sol.grid, self.samples, u0_dot, Tangents(flat))
        return {s: rhs.shaped(x) for s, x in zip(self.samples, found, strict=True)}

    def value(self, state: Array, sample: Sample) -> Value:
        """The state at a place of the grid as a traced value."""
        self.samples.append(sample)
        return Value(state, Node([self], lambda bar: [[(sample, bar)]], lambda dots: dots[0][sample]))


class TracedSolution(Solution):
    """A solution whose saved states and interpolated states are traced values."""

    def sample(self, samples: Sequence[Sample]) -> list[Any]:
        return [self._node.value(u, s) for u, s in zip(super().sample(samples), samples, strict=True)]

    _node: SolveNode


def traced_solution(sol: Solution, inputs: TracedInputs) -> Solution:
    """The solution with traced states. A solve that failed raises, since its end is not what the loss means."""
    if not sol.retcode.good:
        raise NotDifferentiableError(f"a solve inside a loss did not reach its end. {sol.retcode.value}")
    node = SolveNode(sol, inputs)
    traced = TracedSolution.__new__(TracedSolution)
    traced.__dict__.update(sol.__dict__)
    traced._node = node
    traced.u = [node.value(u, s) for u, s in zip(sol.u, sol._samples, strict=True)]
    return traced
