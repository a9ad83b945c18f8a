"""Integer polynomials in a normal form, so that two integers of a kernel are equal if their polynomials are.

Atoms are integer parameters and extents (``name``), indices of the point (``point``), and 0-or-1 indicators of
conditions: ``below`` (a polynomial is negative) and ``zero`` (it is 0). A case distinction is then a polynomial too:
``b if c else a`` is ``a + [c]*(b - a)``, and Python's negative index ``x + n if x < 0 else x`` has the one form
``x + [x < 0]*n`` in whatever way LLVM spelled it. What is no polynomial is an ``opaque`` atom that remembers why.

Indices and extents are far from the limits of 64 bits, so that sums and differences of them do not overflow.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

BOOLEAN = frozenset({"below", "zero", "truth"})
"""Kinds of atoms that are 0 or 1, hence equal to their squares. ``truth``: an opaque condition."""

MOST_TERMS = 400


class TooComplex(Exception):
    """A polynomial with more than ``MOST_TERMS`` terms: a case distinction that no stencil has."""


@dataclass(frozen=True)
class Atom:
    """``of``: what an indicator tests. ``name``: of a parameter; of an opaque value, what computes it. ``serial``
    tells opaque values apart."""

    kind: str
    name: str = ""
    axis: int = -1
    of: Poly | None = None
    serial: int = -1

    @property
    def key(self) -> tuple[str, int, int, str, str]:
        return (self.kind, self.axis, self.serial, self.name, str(self.of) if self.of is not None else "")

    def __str__(self) -> str:
        if self.kind == "point":
            return "ijkl"[self.axis]
        if self.kind in ("below", "zero"):
            return f"[{self.of} {'<' if self.kind == 'below' else '=='} 0]"
        return self.name if self.serial < 0 else f"{self.name}#{self.serial}"


Monomial = tuple[Atom, ...]


@dataclass(frozen=True)
class Poly:
    """``terms``: pairs of a monomial (sorted atoms) and its coefficient, sorted."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @staticmethod
    def number(value: int) -> Poly:
        return Poly((((), value),) if value else ())

    @staticmethod
    def atom(atom: Atom) -> Poly:
        return Poly((((atom,), 1),))

    @staticmethod
    def of(terms: dict[Monomial, int]) -> Poly:
        kept = [(m, c) for m, c in _pinned(terms).items() if c]
        if len(kept) > MOST_TERMS:
            raise TooComplex
        kept.sort(key=lambda t: (len(t[0]), [a.key for a in t[0]]))
        return Poly(tuple(kept))

    def __add__(self, other: Poly | int) -> Poly:
        if isinstance(other, int):
            other = Poly.number(other)
        terms = dict(self.terms)
        for m, c in other.terms:
            terms[m] = terms.get(m, 0) + c
        return Poly.of(terms)

    def __neg__(self) -> Poly:
        return Poly(tuple((m, -c) for m, c in self.terms))

    def __sub__(self, other: Poly | int) -> Poly:
        return self + (-other)

    def __mul__(self, other: Poly | int) -> Poly:
        if isinstance(other, int):
            other = Poly.number(other)
        terms: dict[Monomial, int] = {}
        for m, c in self.terms:
            for n, d in other.terms:
                joined = _times(m, n)
                terms[joined] = terms.get(joined, 0) + c * d
        return Poly.of(terms)

    @property
    def value(self) -> int | None:
        """The number, if the polynomial is one."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    def atoms(self) -> Iterator[Atom]:
        """All atoms, those inside indicators too."""
        for m, _ in self.terms:
            for a in m:
                yield a
                if a.of is not None:
                    yield from a.of.atoms()

    def without_cases(self) -> Poly:
        """The terms without indicators."""
        return Poly(tuple((m, c) for m, c in self.terms if not any(a.kind in BOOLEAN for a in m)))

    @property
    def has_cases(self) -> bool:
        return any(a.kind in BOOLEAN for m, _ in self.terms for a in m)

    def __str__(self) -> str:
        text = ""
        ordered = sorted(self.terms, key=lambda t: not t[0])
        for m, c in ordered:
            factors = "*".join(str(a) for a in m)
            size = str(abs(c)) if not factors else factors if abs(c) == 1 else f"{abs(c)}*{factors}"
            text += f" {'-' if c < 0 else '+'} {size}" if text else f"{'-' if c < 0 else ''}{size}"
        return text or "0"


def _times(a: Monomial, b: Monomial) -> Monomial:
    if not a or not b:
        return a or b
    atoms = sorted((*a, *b), key=lambda x: x.key)
    kept = [x for k, x in enumerate(atoms) if not (k and x == atoms[k - 1] and x.kind in BOOLEAN)]
    tests = [x for x in kept if x.kind == "below"]
    if len(tests) > 1:
        weak = {x for x in tests for y in tests if x is not y and _implies(y, x)}
        kept = [x for x in kept if x not in weak]
    return tuple(kept)


@functools.lru_cache(maxsize=4096)
def _implies(a: Atom, b: Atom) -> bool:
    """Whether ``a``, a test for being negative, implies another such test ``b``: ``i < 0`` implies ``i - 1 < 0``."""
    assert a.of is not None
    assert b.of is not None
    more = (a.of - b.of).value
    return more is not None and more > 0


def _pinned(terms: dict[Monomial, int]) -> dict[Monomial, int]:
    """``[i - 2 == 0]*i`` is ``[i - 2 == 0]*2``: LLVM puts one for the other as it likes."""
    work = list(terms.items())
    if not any(a.kind == "zero" for m, _ in work for a in m):
        return terms
    done: dict[Monomial, int] = {}
    while work:
        m, c = work.pop()
        found = next(((z, *v) for z in m if z.kind == "zero" for v in _solved(z) if _has(m, z, v[0])), None)
        if found is None:
            done[m] = done.get(m, 0) + c
            continue
        pin, atom, value = found
        product = Poly((((pin,), c),))
        for x in m:
            if x is not pin:
                product = product * _with(x, {atom: value})
        work += product.terms
    return done


def _has(m: Monomial, pin: Atom, atom: Atom) -> bool:
    """Whether an atom is in a monomial besides the indicator that pins it."""
    return any(x == atom or (x.of is not None and x != pin and atom in set(x.of.atoms())) for x in m)


def replaced(p: Poly, known: Mapping[Atom, Poly]) -> Poly:
    """``p`` with polynomials in the place of atoms, inside of indicators as well."""
    total = Poly()
    for m, c in p.terms:
        term = Poly.number(c)
        for a in m:
            term = term * _with(a, known)
        total = total + term
    return total


def _with(x: Atom, known: Mapping[Atom, Poly]) -> Poly:
    if x in known:
        return known[x]
    if x.of is None or known.keys().isdisjoint(x.of.atoms()):
        return Poly.atom(x)
    inside = replaced(x.of, known)
    return below(inside) if x.kind == "below" else zero(inside)


def _solved(a: Atom) -> list[tuple[Atom, Poly]]:
    """What ``p == 0`` says of its leading single atom, if that has the factor 1 or -1."""
    assert a.of is not None
    singles = [(m[0], c) for m, c in a.of.terms if len(m) == 1 and c in (1, -1) and m[0].kind in ("point", "name")]
    if not singles:
        return []
    atom, c = max(singles, key=lambda t: t[0].key)
    rest = a.of - Poly.atom(atom) * c
    return [(atom, rest * -c)] if atom not in set(rest.atoms()) else []


ONE = Poly.number(1)


def below(p: Poly) -> Poly:
    """The indicator of ``p < 0``. ``p < 0`` and ``-p - 1 < 0`` are complements, of which one is the normal form."""
    if p.value is not None:
        return Poly.number(int(p.value < 0))
    if _leads_negative(p):
        return ONE - Poly.atom(Atom("below", of=-p - 1))
    return Poly.atom(Atom("below", of=p))


def zero(p: Poly) -> Poly:
    """The indicator of ``p == 0``."""
    if p.value is not None:
        return Poly.number(int(p.value == 0))
    return Poly.atom(Atom("zero", of=-p if _leads_negative(p) else p))


def choose(condition: Poly, yes: Poly, no: Poly) -> Poly:
    """``yes`` where the indicator is 1, else ``no``."""
    return no + condition * (yes - no)


def _leads_negative(p: Poly) -> bool:
    return next(c for m, c in p.terms if m) < 0
