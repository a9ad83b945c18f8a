"""Which arrays a kernel makes depend on given parameters: the question behind every missing shadow."""

from __future__ import annotations

from collections.abc import Sequence

from .activity import active_values
from .ir.model import PointFn


def reached(points: Sequence[PointFn], active: frozenset[str]) -> frozenset[str]:
    """Arrays into which some stage stores a value that depends on ``active`` (arrays and float scalars).

    Stages hand derivatives on through the arrays that they write, whatever their order: a stage may run again in the
    next launch.
    """
    found: set[str] = set()
    while True:
        known = active | found
        new = set()
        for pf in points:
            live = active_values(pf, known).values
            new |= {i.array for i in pf.fn.instrs() if i.op == "astore" and i.operands[0] in live}
        if new <= found:
            return frozenset(found)
        found |= new
