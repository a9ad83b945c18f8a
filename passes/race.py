"""Refuses point functions whose points touch each other's elements.

Points of a launch run at once and in no order. That is safe where each written array is touched, for reading as for
writing, at one place a point, and different points have different places: all axes of the point are in the index.
"""

from __future__ import annotations

from ..errors import RaceError
from .affine import LETTERS, spelled
from .ir.model import Access, Index, Instr, PointFn


def check(pf: PointFn) -> None:
    """Raise ``RaceError`` with the line of the access that is in the way."""
    for array in pf.written:
        accesses = [i for i in pf.fn.instrs() if i.array == array and i.op in ("aload", "astore")]
        store = next(i for i in accesses if i.op == "astore")
        assert store.access is not None
        _check_places(pf, store)
        for i in accesses:
            assert i.access is not None
            if i.access.dims != store.access.dims:
                raise _conflict(store, i)


def _check_places(pf: PointFn, store: Instr) -> None:
    """Every point must write a place of its own."""
    access = store.access
    assert access is not None
    axes = [d.axis for d in access.dims if d.axis is not None]
    missing = [a for a in range(pf.rank) if a not in axes]
    if missing:
        names = " and ".join(LETTERS[a] for a in missing)
        raise RaceError(
            f"{element(access)} is written by all points that differ in {names} only: which comes last is not defined",
            loc=store.loc,
            remedy=f"give '{access.array}' an index for every axis of the launch, or launch over fewer axes; sums over "
            "points belong after the launch",
        )


def _conflict(store: Instr, other: Instr) -> RaceError:
    assert store.access is not None
    assert other.access is not None
    array = store.array
    does = "reads" if other.op == "aload" else "writes"
    line = f" (line {store.loc.line})" if store.loc is not None else ""
    return RaceError(
        f"a point {does} {element(other.access)}, which another point writes as {element(store.access)}{line}",
        loc=other.loc,
        remedy=f"read from a second array that holds the old values of '{array}', as in {array}2[i] = f({array}[i + 1])"
        if other.op == "aload"
        else f"write '{array}' at one place a point",
    )


def element(access: Access) -> str:
    """An access as the user writes it: ``T[i + 1, j]``."""
    return f"{access.array}[{', '.join(map(_index, access.dims))}]"


def _index(index: Index) -> str:
    offset = spelled(str(index.offset))
    if index.axis is None:
        return offset
    letter = LETTERS[index.axis]
    if offset == "0":
        return letter
    return f"{letter} - {offset[1:]}" if offset.startswith("-") else f"{letter} + {offset}"
