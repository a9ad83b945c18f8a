"""Integers of a kernel that are one index of the point plus something that is the same for all points."""

from __future__ import annotations

from .ir.model import LinExpr
from .polynomial import Atom, Poly


def linear(p: Poly, names: frozenset[str]) -> tuple[dict[int, int], LinExpr] | None:
    """A polynomial as coefficients of the point's axes and a rest that is the same for all points.

    ``names``: parameters that may be in the rest. ``None`` where it is not of this form.
    """
    axes: dict[int, int] = {}
    const, terms = 0, {}
    for m, c in p.terms:
        if not m:
            const = c
        elif len(m) > 1:
            return None
        elif m[0].kind == "point":
            axes[m[0].axis] = c
        elif m[0].kind == "name" and m[0].name in names:
            terms[m[0].name] = c
        else:
            return None
    return axes, LinExpr.of(const, terms)


def threshold(a: Atom, names: frozenset[str]) -> tuple[int, LinExpr, bool] | None:
    """An indicator as a test of one index: ``(axis, at, True)`` is ``i < at``, with False it is ``i >= at``; of
    ``zero`` it is ``i == at``. ``None`` for all others."""
    if a.of is None:
        return None
    found = linear(a.of, names)
    if found is None or len(found[0]) != 1:
        return None
    ((axis, c),), rest = found[0].items(), found[1]
    if c not in (1, -1):
        return None
    if a.kind == "zero":
        return axis, -rest if c == 1 else rest, True
    return (axis, -rest, True) if c == 1 else (axis, rest + 1, False)
