"""The integers and addresses of a function as polynomials: what an index is, whatever LLVM made of it.

Arithmetic, comparisons, selects, minima and the phis behind branches are taken apart; a load, a division or a loop
counter is opaque. The reasons are in the user's words: they end up in messages.
"""

from __future__ import annotations

from .ir.const import const_value
from .ir.graph import immediate_dominators, loops, predecessors, reverse_postorder
from .ir.model import Arg, Block, Function, Instr, Value
from .ir.ops import SIZES
from .polynomial import ONE, Atom, Poly, TooComplex, below, choose, zero

_REASONS = {
    "srem": "% (a remainder)",
    "urem": "% (a remainder)",
    "sdiv": "// (a division)",
    "udiv": "// (a division)",
    "ashr": "// (a division)",
    "lshr": "// (a division)",
    "load": "a value that is read from memory",
    "fptosi": "a conversion from float to int",
    "fptoui": "a conversion from float to int",
    "fcmp": "a comparison of floats",
}
LOOP = "the counter of a loop"
COMPLEX = "a long case distinction"


class Integers:
    """The integers of one function; ``point``: its arguments that are the indices of the point; ``extents``: names of
    those that are never negative."""

    def __init__(self, fn: Function, point: list[Arg], extents: frozenset[str]) -> None:
        self.fn = fn
        self.extents = extents
        self.point: dict[Value, int] = {a: d for d, a in enumerate(point)}
        self.known: dict[Value, Poly] = {}
        self.serial = 0
        self.headers = {loop.header for loop in loops(fn)}
        self.parent = immediate_dominators(fn)
        self.preds = predecessors(fn)
        self.place = {b: k for k, b in enumerate(reverse_postorder(fn))}
        self.order = list(self.place)

    def of(self, v: Value) -> Poly:
        """The polynomial of an ``i1``, an integer or a pointer."""
        if v not in self.known:
            try:
                self.known[v] = self._make(v)
            except TooComplex:
                self.known[v] = self._opaque(v, COMPLEX)
        return self.known[v]

    def _opaque(self, v: Value, reason: str) -> Poly:
        self.serial += 1
        return Poly.atom(Atom("truth" if v.type == "i1" else "opaque", reason, serial=self.serial))

    def _make(self, v: Value) -> Poly:
        if v in self.point:
            return Poly.atom(Atom("point", axis=self.point[v]))
        number = const_value(v)
        if number is not None and v.type[0] == "i":
            return Poly.number(int(number))
        if isinstance(v, Arg):
            return Poly.atom(Atom("truth" if v.type == "i1" else "name", v.name))
        if not isinstance(v, Instr):
            return self._opaque(v, "an address that is no argument")
        rule = getattr(self, f"_{v.op}", None)
        found: Poly | None = rule(v) if rule is not None else None
        return found if found is not None else self._opaque(v, self._reason(v))

    def _reason(self, i: Instr) -> str:
        if i.op in ("trunc", "zext", "sext") and i.operands[0].type != "i1":
            for a in self.of(i.operands[0]).atoms():
                if a.kind in ("opaque", "truth") and a.serial >= 0:
                    return a.name
        return _REASONS.get(i.op, f"the operation {i.op}")

    # arithmetic ----------------------------------------------------------------------------------------------------

    def _add(self, i: Instr) -> Poly | None:
        if i.type == "i1":
            return None
        return self.of(i.operands[0]) + self.of(i.operands[1])

    def _sub(self, i: Instr) -> Poly | None:
        if i.type == "i1":
            return None
        return self.of(i.operands[0]) - self.of(i.operands[1])

    def _mul(self, i: Instr) -> Poly | None:
        return self.of(i.operands[0]) * self.of(i.operands[1])

    def _shl(self, i: Instr) -> Poly | None:
        by = const_value(i.operands[1])
        return None if by is None or not 0 <= by < 63 else self.of(i.operands[0]) * (1 << int(by))

    def _and(self, i: Instr) -> Poly | None:
        return self.of(i.operands[0]) * self.of(i.operands[1]) if i.type == "i1" else None

    def _or(self, i: Instr) -> Poly | None:
        if i.type == "i1":
            a, b = self.of(i.operands[0]), self.of(i.operands[1])
            return a + b - a * b
        return self.of(i.operands[0]) + self.of(i.operands[1]) if "disjoint" in i.flags else None

    def _xor(self, i: Instr) -> Poly | None:
        a, b = self.of(i.operands[0]), self.of(i.operands[1])
        if i.type == "i1":
            return a + b - a * b * 2
        return -a - 1 if b.value == -1 else None

    def _zext(self, i: Instr) -> Poly | None:
        return self.of(i.operands[0]) if i.operands[0].type == "i1" else None

    def _sext(self, i: Instr) -> Poly | None:
        return -self.of(i.operands[0]) if i.operands[0].type == "i1" else None

    def _freeze(self, i: Instr) -> Poly | None:
        return self.of(i.operands[0])

    def _inttoptr(self, i: Instr) -> Poly | None:
        return self.of(i.operands[0])

    def _ptrtoint(self, i: Instr) -> Poly | None:
        return self.of(i.operands[0]) if i.type == "i64" else None

    def _getelementptr(self, i: Instr) -> Poly | None:
        if i.elem not in SIZES or len(i.operands) != 2:
            return None
        return self.of(i.operands[0]) + self.of(i.operands[1]) * SIZES[i.elem]

    # cases ---------------------------------------------------------------------------------------------------------

    def _icmp(self, i: Instr) -> Poly | None:
        if i.operands[0].type == "i1":
            return None
        a, b = self.of(i.operands[0]), self.of(i.operands[1])
        if i.pred in ("eq", "ne"):
            return zero(a - b) if i.pred == "eq" else ONE - zero(a - b)
        if i.pred[0] == "u":
            return self._unsigned(i.pred[1:], a, b)
        return _signed(i.pred[1:], a, b)

    def _unsigned(self, pred: str, a: Poly, b: Poly) -> Poly | None:
        """Unsigned order against what is never negative: a number, an extent."""
        if pred in ("gt", "ge"):
            a, b, pred = b, a, {"gt": "lt", "ge": "le"}[pred]
            if not self.is_natural(a):
                return None
            return below(b) + (ONE - below(b)) * _signed(pred, a, b)
        if not self.is_natural(b):
            return None
        return (ONE - below(a)) * _signed(pred, a, b)

    def is_natural(self, p: Poly) -> bool:
        """Whether a polynomial is a sum of extents and numbers that are not negative."""
        return all(
            c >= 0 and (not m or (len(m) == 1 and m[0].kind == "name" and m[0].name in self.extents))
            for m, c in p.terms
        )

    def _select(self, i: Instr) -> Poly | None:
        return choose(*(self.of(v) for v in i.operands))

    def _call(self, i: Instr) -> Poly | None:
        kind = i.callee.removeprefix("llvm.").rpartition(".")[0]
        if kind in ("smin", "smax"):
            a, b = (self.of(v) for v in i.operands)
            first = below(a - b)
            return choose(first, a, b) if kind == "smin" else choose(first, b, a)
        if kind == "abs":
            a = self.of(i.operands[0])
            return choose(below(a), -a, a)
        return self._opaque(i, f"a call of {i.callee}")

    def _phi(self, i: Instr) -> Poly | None:
        """The value of each edge, times whether it was taken."""
        block = i.block
        assert block is not None
        if block not in self.place:
            return None
        if block in self.headers:
            return self._opaque(i, LOOP)
        taken = self._taken(block)
        if taken is None:
            return self._opaque(i, LOOP)
        total = Poly()
        last = Poly.number(1)
        # a switch may lead here in several of its cases: an entry each, and one in ``taken`` for all of them
        entries = list({p: v for p, v in zip(i.targets, i.operands, strict=True) if p in self.place}.items())
        for p, v in entries[:-1]:
            total = total + taken[p] * self.of(v)
            last = last - taken[p]
        return total + last * self.of(entries[-1][1])

    def _taken(self, block: Block) -> dict[Block, Poly] | None:
        """For each predecessor, whether ``block`` is entered from it, given that control reached the block that
        dominates both; ``None`` if there is a loop between."""
        top = self.parent[block]
        assert top is not None
        reach = {top: ONE}
        taken: dict[Block, Poly] = {}
        for b in self.order[self.place[top] : self.place[block]]:
            if b not in reach:
                continue
            if b in self.headers and b is not top:
                return None
            for s, condition in self._edges(b):
                if s is block:
                    taken[b] = taken.get(b, Poly()) + reach[b] * condition
                elif self.place[s] < self.place[block]:
                    reach[s] = reach.get(s, Poly()) + reach[b] * condition
        return taken

    def _edges(self, b: Block) -> list[tuple[Block, Poly]]:
        end = b.terminator
        if len(end.targets) == 1:
            return [(end.targets[0], ONE)]
        if end.op == "br":
            yes = self.of(end.operands[0])
            return [(end.targets[0], yes), (end.targets[1], ONE - yes)]
        x = self.of(end.operands[0])
        cases = [zero(x - c) for c in end.cases]
        rest = ONE
        for c in cases:
            rest = rest - c
        return list(zip(end.targets, [rest, *cases], strict=True))


def _signed(pred: str, a: Poly, b: Poly) -> Poly:
    if pred == "lt":
        return below(a - b)
    if pred == "gt":
        return below(b - a)
    return ONE - below(b - a) if pred == "le" else ONE - below(a - b)
