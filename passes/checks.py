"""What a launch must satisfy so that every access stays in its array, as conditions for ``plan``.

An index ``i + offset`` is least and greatest at the ends of what is left of the launch domain under the access's
guard; both must be in range. Python lets an index be negative down to ``-n``: whether that happens is known at launch
only, and a launch in which it does runs code of its own (``layout.Variant.wraps``).
"""

from __future__ import annotations

from dataclasses import dataclass

from .ir.model import Access, Bounds, Index, LinExpr, PointFn
from .race import element


@dataclass(frozen=True)
class Requirement:
    """One condition on one dimension of one access.

    ``kind``: ``"bounds"``: the index is in range; ``"wraps"``: it is not negative; ``"collides"``: it does not reach
    one element from both sides of 0. ``key`` names the index among those that wrap.
    """

    kind: str
    array: str
    dim: int
    axis: int | None
    offset: LinExpr
    wraps: bool
    guard: tuple[Bounds, ...]
    key: str
    message: str
    loc: object = None
    remedy: str = ""


def wrap_key(access: Access, d: int) -> str:
    """Names an index in ``Variant.wraps``."""
    index = access.dims[d]
    return f"{access.array}.{d}:{index.axis}+{index.offset}"


def bounds_checks(pf: PointFn) -> list[Requirement]:
    """The requirements of all accesses, each once; one without guard stands for those with."""
    found: dict[tuple[str, str, tuple[Bounds, ...]], Requirement] = {}
    written = pf.written
    for i in pf.fn.instrs():
        access = i.access
        if access is None or i.op not in ("aload", "astore"):
            continue
        for d, index in enumerate(access.dims):
            for kind in _kinds(index, access.array in written):
                r = _requirement(kind, access, d, i.loc)
                found.setdefault((kind, r.key, r.guard), r)
    return [r for (kind, key, guard), r in found.items() if not guard or (kind, key, ()) not in found]


def _kinds(index: Index, written: bool) -> list[str]:
    wraps = index.wraps and index.axis is not None
    return ["bounds", *(["wraps"] if wraps else []), *(["collides"] if wraps and written else [])]


def _requirement(kind: str, access: Access, d: int, loc: object) -> Requirement:
    index = access.dims[d]
    if kind == "collides":
        message = f"{element(access)} is written by two points: its index in dimension {d} is n long and wraps around"
        remedy = "launch over a domain that is no longer than the array"
    else:
        message = f"{element(access)} is outside of '{access.array}' in dimension {d} for a part of the launch domain"
        remedy = f"launch over a smaller domain, such as irad.interior(…), or give '{access.array}' a fitting shape"
    guard = access.guard if kind != "collides" else ()
    return Requirement(
        kind, access.array, d, index.axis, index.offset, index.wraps, guard, wrap_key(access, d), message, loc, remedy
    )
