"""Accesses as text: what a structured operation carries beside its operands, for ``.ll`` files and dumps.

``[#0 + 1, #1 + -1 wraps, 3] guard [1:T.n0 - 1) x [:)`` is the element ``[i0 + 1, i1 - 1, 3]``, whose second index
may be negative, in a branch that is taken for ``1 <= i0 < T.n0 - 1`` only. Several bounds are parted by ``|``, as in
``[1 | k:)``; ``[:) but 3`` is any index except 3.
"""

from __future__ import annotations

import re

from .model import Access, Bounds, Index, LinExpr

_ACCESS = re.compile(r"\[(?P<dims>.*?)\](?: guard (?P<guard>.*?))?(?P<always> always)?")
_DIM = re.compile(r"(?:\#(?P<axis>\d+)(?: \+ )?)?(?P<offset>.*?)(?P<wraps> wraps)?")


def access_text(access: Access) -> str:
    """The text of an access, without its array."""
    dims = []
    for d in access.dims:
        axis = "" if d.axis is None else f"#{d.axis}"
        offset = "" if axis and d.offset == LinExpr() else str(d.offset)
        dims.append(" + ".join(p for p in (axis, offset) if p) + (" wraps" if d.wraps else ""))
    guard = " x ".join(_bounds_text(b) for b in access.guard)
    return f"[{', '.join(dims)}]" + (f" guard {guard}" if guard else "") + (" always" if access.always else "")


def parse_access(array: str, text: str | None) -> Access | None:
    """The inverse of :func:`access_text`; ``None`` for no text."""
    if text is None:
        return None
    found = _ACCESS.fullmatch(text)
    if found is None:
        raise ValueError(f"not an access: {text!r}")
    dims = tuple(_dim(d) for d in found["dims"].split(", ")) if found["dims"] else ()
    guard = tuple(_bounds(g) for g in found["guard"].split(" x ")) if found["guard"] else ()
    return Access(array, dims, guard, found["always"] is not None)


def _dim(text: str) -> Index:
    found = _DIM.fullmatch(text)
    assert found is not None
    axis = int(found["axis"]) if found["axis"] else None
    return Index(axis, parse_linear(found["offset"] or "0"), found["wraps"] is not None)


def _bounds_text(b: Bounds) -> str:
    lo, hi, holes = (" | ".join(map(str, exprs)) for exprs in (b.lo, b.hi, b.holes))
    return f"[{lo}:{hi})" + (f" but {holes}" if holes else "")


def _bounds(text: str) -> Bounds:
    span, _, holes = text.partition(" but ")
    lo, _, hi = span.removeprefix("[").removesuffix(")").partition(":")
    return Bounds(*(tuple(parse_linear(e) for e in t.split(" | ") if e) for t in (lo, hi, holes)))


def parse_linear(text: str) -> LinExpr:
    """The inverse of ``str(LinExpr)``."""
    total = LinExpr()
    for part in text.replace(" - ", " + -").split(" + "):
        if re.fullmatch(r"-?\d+", part):
            total = total + int(part)
            continue
        found = re.fullmatch(r"(-?)(?:(\d+)\*)?(.+)", part)
        assert found is not None
        coefficient = int(found[2] or 1) * (-1 if found[1] else 1)
        total = total + LinExpr.of(0, {found[3]: coefficient})
    return total
