"""Compares integers case by case: where tests of one index are all that stands between two polynomials.

Tests of ``i`` against numbers cut the integers into intervals, on each of which every test has one value (``i`` too,
if the interval is a single number); so do tests against ``n`` plus a number. Two polynomials are equal if they are on
all combinations of intervals that the bounds of the branch leave. LLVM, knowing ``i <= 0``, writes Python's negative
index as ``0 if i == 0 else i + n``: no normal form sees that, this does. Tests of an integer that all points share, as
of ``k`` in ``A[i, k]``, are cut in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

from .ir.model import Bounds, LinExpr
from .linear import linear, threshold
from .polynomial import Atom, Poly, replaced

MOST_CASES = 256
SHARED = -1

Family = tuple[int, tuple[tuple[str, int], ...]]
"""An axis, and the names that its index is held against; or ``SHARED``, and the sum of names that is tested itself."""

Interval = tuple[int | None, int | None]
"""``lo <= i < hi`` less the family's names; ``None``: no end."""


def equal(a: Poly, b: Poly, bounds: Sequence[Bounds], names: frozenset[str]) -> bool:
    """Whether two polynomials are equal wherever the bounds hold. False may also mean that there is no saying."""
    difference = a - b
    return all(p.value == 0 for p in cases(difference, bounds, names))


def cases(p: Poly, bounds: Sequence[Bounds], names: frozenset[str]) -> Iterator[Poly]:
    """What is left of ``p`` on each combination of intervals; ``p`` itself where there are too many."""
    tests: dict[Family, list[tuple[Atom, int, bool]]] = {}
    for a in dict.fromkeys(p.atoms()):
        test = threshold(a, names)
        if test is not None:
            axis, at, less = test
            tests.setdefault((axis, at.terms), []).append((a, at.const, less))
            continue
        shared = _shared(a, names)
        if shared is not None:
            terms, const, less = shared
            tests.setdefault((SHARED, terms), []).append((a, const, less))
    families = list(tests)
    intervals = [list(_intervals(tests[f], _known(f, bounds))) for f in families]
    total = 1
    for i in intervals:
        total *= len(i)
    if total > MOST_CASES:
        yield p
        return
    for choice in product(*intervals):
        yield _on(p, [(f, tests[f], i) for f, i in zip(families, choice, strict=True)])


def _known(family: Family, bounds: Sequence[Bounds]) -> tuple[int | None, int | None, set[int]]:
    """The bounds that speak of a family: ends, and holes."""
    axis, terms = family
    if not bounds:
        return None, None, set()
    b = _of_sum(bounds[-1], terms) if axis == SHARED else bounds[axis]
    lo = [e.const for e in b.lo if e.terms == terms]
    hi = [e.const for e in b.hi if e.terms == terms]
    holes = {e.const for e in b.holes if e.terms == terms}
    return max(lo, default=None), min(hi, default=None), holes


def _shared(a: Atom, names: frozenset[str]) -> tuple[tuple[tuple[str, int], ...], int, bool] | None:
    """An indicator as a test of a sum of names: ``(terms, at, True)`` is ``sum < at``, with False it is ``sum >= at``;
    of ``zero`` it is ``sum == at``."""
    found = None if a.of is None else linear(a.of, names)
    if found is None or found[0] or found[1].is_const:
        return None
    terms, sign = _upright(found[1])
    at = -sign * found[1].const
    if a.kind == "zero":
        return terms, at, True
    return (terms, at, True) if sign > 0 else (terms, at + 1, False)


def _upright(e: LinExpr) -> tuple[tuple[tuple[str, int], ...], int]:
    """The names of an expression with the first factor positive, and the sign that this took."""
    sign = 1 if e.terms[0][1] > 0 else -1
    return (e if sign > 0 else -e).terms, sign


def _of_sum(b: Bounds, terms: tuple[tuple[str, int], ...]) -> Bounds:
    """Bounds on 0, which are expressions, as bounds on the sum of names in them, in the form of ``_known``."""
    lo: list[int] = []
    hi: list[int] = []
    holes: list[int] = []
    for e in (e for e in b.lo if not e.is_const and _upright(e)[0] == terms):  # e <= 0
        sign = _upright(e)[1]
        (hi if sign > 0 else lo).append(1 - e.const if sign > 0 else e.const)
    for e in (e for e in b.hi if not e.is_const and _upright(e)[0] == terms):  # e > 0
        sign = _upright(e)[1]
        (lo if sign > 0 else hi).append(1 - e.const if sign > 0 else e.const)
    for e in (e for e in b.holes if not e.is_const and _upright(e)[0] == terms):
        holes.append(-_upright(e)[1] * e.const)
    return Bounds(*(tuple(LinExpr(c, terms) for c in found) for found in (lo, hi, holes)))


def _intervals(
    tests: list[tuple[Atom, int, bool]], known: tuple[int | None, int | None, set[int]]
) -> Iterator[Interval]:
    lo, hi, holes = known
    cuts = set()
    for a, at, _ in tests:
        cuts |= {at, at + 1} if a.kind == "zero" else {at}
    for h in holes:
        cuts |= {h, h + 1}
    ends: list[int | None] = [lo, *sorted(c for c in cuts if (lo is None or c > lo) and (hi is None or c < hi)), hi]
    for start, end in pairwise(ends):
        if start is not None and end is not None and (end <= start or (end == start + 1 and start in holes)):
            continue
        yield start, end


def _on(p: Poly, chosen: list[tuple[Family, list[tuple[Atom, int, bool]], Interval]]) -> Poly:
    """``p`` where an index lies in one interval of each family."""
    known: dict[Atom, Poly] = {}
    for (axis, terms), tests, (lo, hi) in chosen:
        for a, at, less in tests:
            if a.kind == "zero":
                known[a] = Poly.number(int(lo == at and hi == at + 1))
            else:
                under = hi is not None and hi <= at
                known[a] = Poly.number(int(under == less))
        if lo is None or hi != lo + 1:
            continue
        if axis != SHARED:
            known.setdefault(Atom("point", axis=axis), _poly(LinExpr(lo, terms)))
        elif len(terms) == 1 and terms[0][1] == 1:
            known.setdefault(Atom("name", terms[0][0]), Poly.number(lo))
    return replaced(p, known)


def _poly(e: LinExpr) -> Poly:
    total = Poly.number(e.const)
    for name, c in e.terms:
        total = total + Poly.atom(Atom("name", name)) * c
    return total
