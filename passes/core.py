"""The core of a launch domain: the points at which the usual side of every test of the index is taken.

``if i == 0: … elif i == n - 1: … else: …`` is decided for all but a few points. A test against a number is taken to
mark the lower end of an axis, one against an extent the upper end; what lies between is the core. There the tests are
constants, so that the code has no branches and vectorises; the few other points run the code as it stands. Indices
that may be negative (``u[i - 1]``) are such tests too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .integers import Integers
from .ir.const import int_const
from .ir.model import ArrayParam, Function, LinExpr, PointFn, ScalarParam
from .layout import Range, Term
from .linear import threshold
from .polynomial import Atom, Poly, replaced
from .simplify import dce


@dataclass(frozen=True)
class Side:
    """A bound of the core on one axis: it starts at ``at`` (``lower``), or ends before it."""

    axis: int
    at: LinExpr
    lower: bool


@dataclass(frozen=True)
class Core:
    """``sides``: all bounds of the core besides those of the launch domain; none: all is core."""

    rank: int
    sides: tuple[Side, ...] = ()
    names: frozenset[str] = frozenset()
    extents: frozenset[str] = frozenset()

    def box(self) -> tuple[Range, ...]:
        """Highest of the ``lo`` terms to lowest of the ``hi`` terms."""
        lo: list[list[Term]] = [[Term(("lo", a))] for a in range(self.rank)]
        hi: list[list[Term]] = [[Term(("hi", a))] for a in range(self.rank)]
        for s in self.sides:
            (lo if s.lower else hi)[s.axis].append(Term(None, s.at))
        return tuple(Range(tuple(dict.fromkeys(a)), tuple(dict.fromkeys(b))) for a, b in zip(lo, hi, strict=True))

    def settle(self, fn: Function) -> None:
        """Replace the tests that are decided in the core by constants, in place. ``fn`` starts with the index."""
        if not self.sides:
            return
        integers = Integers(fn, fn.args[: self.rank], self.extents)
        found = {}
        for i in fn.instrs():
            if i.op == "icmp" and i.operands[0].type != "i1":
                value = self._decided(integers.of(i)).value
                if value is not None:
                    found[i] = int_const("i1", value)
        for i in fn.instrs():
            i.operands = [found.get(v, v) for v in i.operands]  # type: ignore[call-overload]
        dce(fn)

    def _decided(self, p: Poly) -> Poly:
        """A polynomial with the indicators of which the core knows the value put in."""
        known = {a: self._truth(a) for a in p.atoms()}
        return replaced(p, {a: Poly.number(v) for a, v in known.items() if v is not None})

    def _truth(self, a: Atom) -> int | None:
        """1 or 0 where an indicator is the same in all of the core."""
        test = threshold(a, self.names)
        if test is None:
            return None
        axis, at, less = test
        above = any(s.axis == axis and s.lower and _least(s.at, at, a.kind) for s in self.sides)
        under = any(s.axis == axis and not s.lower and _most(s.at, at) for s in self.sides)
        if not (above or under):
            return None
        if a.kind == "zero":
            return 0
        return int(under == less)


def core_of(pf: PointFn, wrapped: Iterable[tuple[int, LinExpr]]) -> Core:
    """The core of a point function. ``wrapped``: ``(axis, offset)`` of indices that are negative in this launch."""
    extents = frozenset(f"{p.name}.n{d}" for p in pf.params if isinstance(p, ArrayParam) for d in range(p.rank))
    names = extents | {p.name for p in pf.params if isinstance(p, ScalarParam) and p.type == "i64"}
    sides = {Side(axis, -offset, True): None for axis, offset in wrapped}
    integers = Integers(pf.fn, pf.index, extents)
    for i in pf.fn.instrs():
        if i.op != "icmp" or i.operands[0].type == "i1":
            continue
        for a in integers.of(i).atoms():
            test = threshold(a, names)
            if test is None:
                continue
            axis, at, _ = test
            if at.is_const:
                sides[Side(axis, at + int(a.kind == "zero"), True)] = None
            elif len(at.terms) == 1 and at.terms[0][0] in extents and at.terms[0][1] == 1:
                sides[Side(axis, at, False)] = None
    return Core(pf.rank, tuple(sides), names, extents)


def _least(start: LinExpr, at: LinExpr, kind: str) -> bool:
    """Whether all indices from ``start`` on are at least ``at`` (of ``zero``: beyond it)."""
    return start.terms == at.terms and start.const >= at.const + int(kind == "zero")


def _most(end: LinExpr, at: LinExpr) -> bool:
    """Whether all indices before ``end`` are before ``at``."""
    return end.terms == at.terms and end.const <= at.const
