"""For which points a block of a point function runs: the bounds on the index that the branches before it prove.

``if 0 < i < n - 1:`` bounds what is inside by a box; the ``else`` of ``if i == 0:`` takes one index out. A condition on
integers that are the same for all points (``if n > 3``) is a bound on 0, which stands behind the axes. Conditions on
anything else (data, a flag, two indices at once) prove nothing here: what they guard is checked for all points.
"""

from __future__ import annotations

from collections.abc import Iterator

from .cases import cases, equal
from .integers import Integers
from .ir.const import const_value
from .ir.graph import post_dominators, predecessors, reverse_postorder
from .ir.model import Block, Bounds, Function, Instr, LinExpr, Value
from .linear import linear
from .polynomial import Poly


class Regions:
    """The bounds of each block of one function, and which blocks run at every point."""

    def __init__(self, fn: Function, integers: Integers, rank: int, names: frozenset[str]) -> None:
        self.integers = integers
        self.rank = rank
        self.names = names
        self.place = {b: k for k, b in enumerate(reverse_postorder(fn))}
        self.preds = predecessors(fn)
        self.everywhere = post_dominators(fn).get(fn.blocks[0], set())
        self.known: dict[Block, tuple[Bounds, ...]] = {}
        self.here: list[Bounds] = []  # what is known where the condition at hand is tested
        for b in self.place:
            self.known[b] = self._bounds(b)

    def always(self, block: Block) -> bool:
        """Whether every point runs the block."""
        return block in self.everywhere

    def bounds(self, block: Block) -> tuple[Bounds, ...]:
        """One entry an axis of the point, and one for 0; empty if nothing is known."""
        return self.known.get(block, ())

    def _bounds(self, block: Block) -> tuple[Bounds, ...]:
        found: list[list[Bounds]] = []
        for p in dict.fromkeys(self.preds[block]):
            if self.place.get(p, len(self.place)) >= self.place[block]:
                continue  # unreachable, or a jump back: what held at the entry of a loop holds in it
            before = list(self.bounds(p)) or [Bounds()] * (self.rank + 1)
            self.here = before
            for condition, truth in self._edge(p, block):
                for axis, b in self._facts(condition, truth):
                    before[axis] = _both(before[axis], b)
            found.append(_carried(before))
        if not found:
            return ()
        joined = [_either([f[axis] for f in found]) for axis in range(self.rank + 1)]
        return () if all(b.is_empty for b in joined) else tuple(joined)

    def _edge(self, p: Block, block: Block) -> Iterator[tuple[Value | Poly, bool]]:
        """Conditions that hold where control goes from ``p`` to ``block``."""
        end = p.terminator
        if end.op == "br" and len(end.targets) == 2 and end.targets[0] is not end.targets[1]:
            yield end.operands[0], end.targets[0] is block
        elif end.op == "switch":
            x = self.integers.of(end.operands[0])
            cases = [c for c, t in zip(end.cases, end.targets[1:], strict=True) if t is block]
            if end.targets[0] is block:
                for c, t in zip(end.cases, end.targets[1:], strict=True):
                    if t is not block:
                        yield x - c, False
            elif len(cases) == 1:
                yield x - cases[0], True

    def _facts(self, v: Value | Poly, truth: bool) -> Iterator[tuple[int, Bounds]]:
        """What ``v`` being true, or false, says of single axes. A polynomial stands for its being zero."""
        if isinstance(v, Poly):
            yield from self._zero(v, truth)
            return
        if not isinstance(v, Instr):
            return
        if v.op == "freeze":
            yield from self._facts(v.operands[0], truth)
        elif v.op == "xor" and const_value(v.operands[1]) == 1:
            yield from self._facts(v.operands[0], not truth)
        elif v.op == ("and" if truth else "or"):
            for o in v.operands:
                yield from self._facts(o, truth)
        elif v.op == "select" and const_value(v.operands[2 if truth else 1]) == (0 if truth else 1):
            yield from self._facts(v.operands[0], truth)
            yield from self._facts(v.operands[1 if truth else 2], truth)
        elif v.op == "icmp" and v.operands[0].type != "i1":
            yield from self._compared(v, truth)

    def _compared(self, i: Instr, truth: bool) -> Iterator[tuple[int, Bounds]]:
        a, b = (self.integers.of(v) for v in i.operands)
        if i.pred in ("eq", "ne"):
            yield from self._zero(a - b, truth == (i.pred == "eq"))
            return
        if i.pred[0] == "u":
            yield from self._within(i, a, b, truth)
            return
        pred = i.pred[1:]
        if not truth:
            pred = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}[pred]
        if pred == "lt":
            yield from self._below(a - b)
        elif pred == "le":
            yield from self._below(a - b - 1)
        elif pred == "gt":
            yield from self._below(b - a)
        else:
            yield from self._below(b - a - 1)

    def _within(self, i: Instr, a: Poly, b: Poly, truth: bool) -> Iterator[tuple[int, Bounds]]:
        """Unsigned order: ``0 <= a < b`` in one comparison."""
        pred = i.pred[1:]
        if not truth:
            pred = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}[pred]
        if pred in ("gt", "ge"):
            a, b, pred = b, a, {"gt": "lt", "ge": "le"}[pred]
        if self.integers.is_natural(b):
            yield from self._below(-a - 1)
            yield from self._below(a - b if pred == "lt" else a - b - 1)

    def _below(self, p: Poly) -> Iterator[tuple[int, Bounds]]:
        """``p < 0`` for a ``p`` with at most one axis."""
        found = self._linear(p)
        if found is None or len(found[0]) > 1:
            return
        (axis, c), rest = next(iter(found[0].items()), (self.rank, 1)), found[1]
        if c == 1:  # i + rest < 0
            yield axis, Bounds(hi=(-rest,))
        elif c == -1:  # rest < i
            yield axis, Bounds(lo=(rest + 1,))

    def _linear(self, p: Poly) -> tuple[dict[int, int], LinExpr] | None:
        """``p``, or what it equals in all cases that are left here."""
        for q in dict.fromkeys(cases(p, self.here, self.names)) if p.has_cases else ():
            if not q.has_cases and equal(p, q, self.here, self.names):
                p = q
                break
        return linear(p, self.names)

    def _zero(self, p: Poly, truth: bool) -> Iterator[tuple[int, Bounds]]:
        found = self._linear(p)
        if found is None or len(found[0]) > 1:
            return
        (axis, c), rest = next(iter(found[0].items()), (self.rank, 1)), found[1]
        if c in (1, -1):
            at = -rest if c == 1 else rest
            yield axis, Bounds(lo=(at,), hi=(at + 1,)) if truth else Bounds(holes=(at,))


def _carried(bounds: list[Bounds]) -> list[Bounds]:
    """Where ``i == 2``, what is known of 0 is known of ``i - 2``: LLVM has made ``i + 1 < n`` into ``3 < n`` there."""
    *axes, zero = bounds
    result = []
    for b in axes:
        value = next((e for e in b.lo if e + 1 in b.hi), None)
        if value is not None:
            b = _both(b, Bounds(*(tuple(e + value for e in side) for side in (zero.lo, zero.hi, zero.holes))))
        result.append(b)
    return [*result, zero]


def _both(a: Bounds, b: Bounds) -> Bounds:
    """What is known if both hold."""
    return Bounds(_tightest(a.lo + b.lo, 1), _tightest(a.hi + b.hi, -1), tuple(dict.fromkeys((*a.holes, *b.holes))))


def _either(sides: list[Bounds]) -> Bounds:
    """What is known if one of several holds."""
    return Bounds(
        _loosest([b.lo for b in sides], 1),
        _loosest([b.hi for b in sides], -1),
        tuple(h for h in sides[0].holes if _left_out(h, sides[1:])),
    )


def _left_out(hole: LinExpr, sides: list[Bounds]) -> bool:
    """Whether each of several bounds leaves an index out."""
    return all(
        hole in b.holes
        or any(e.terms == hole.terms and e.const > hole.const for e in b.lo)
        or any(e.terms == hole.terms and e.const <= hole.const for e in b.hi)
        for b in sides
    )


def _tightest(exprs: tuple[LinExpr, ...], sign: int) -> tuple[LinExpr, ...]:
    """The greatest (``sign`` 1) or least constant of each sum of names."""
    best: dict[tuple[tuple[str, int], ...], int] = {}
    for e in exprs:
        c = best.get(e.terms)
        best[e.terms] = e.const if c is None else max(c * sign, e.const * sign) * sign
    return tuple(LinExpr(c, terms) for terms, c in best.items())


def _loosest(sides: list[tuple[LinExpr, ...]], sign: int) -> tuple[LinExpr, ...]:
    """The least (``sign`` 1) or greatest constant of each sum of names that all sides have."""
    found = [{e.terms: e.const for e in side} for side in sides]
    return tuple(
        LinExpr(min(f[terms] * sign for f in found) * sign, terms)
        for terms in found[0]
        if all(terms in f for f in found)
    )
