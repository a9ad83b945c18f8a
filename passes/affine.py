"""Addresses to accesses: from loads and stores of pointers to elements of arrays, named relative to the point.

Every address in an array is ``data + s0*x0 + s1*x1 + …`` with the array's own strides, so that the factor of a stride
is the index of that dimension. Each index must be ``i + offset`` with ``i`` one index of the point, or the same for all
points; ``offset`` is made of numbers, integer parameters and extents. It may count from the end where it is negative.
Axes may come in any order (``A[j, i]``) and may be left out (``rho[k]``, ``lam[0]``).

Anything else (``2*i``, ``i + j``, ``i % n``, an index that is read from memory or clamped) is refused with the line:
an access that is not understood exactly must not be differentiated.
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import IradError, NotDifferentiableError
from .boxes import Regions
from .cases import cases, equal
from .integers import Integers
from .ir.model import (
    Access,
    Arg,
    ArrayParam,
    Bounds,
    Function,
    Index,
    Instr,
    LinExpr,
    Loc,
    Param,
    PointFn,
    ScalarParam,
    Value,
)
from .ir.ops import call_kind
from .linear import linear
from .own import index_values
from .polynomial import Atom, Poly, below
from .simplify import dce
from .slots import Slots

LETTERS = "ijkl"


def to_point(fn: Function, rank: int, params: tuple[Param, ...]) -> PointFn:
    """The point function of a prepared function: index arguments ``i0 …`` and structured accesses.

    Raises ``NotDifferentiableError`` where an index is of no form that irad knows, and for other uses of addresses.
    """
    new, _, _ = fn.clone()
    index = [Arg("i64", f".i{d}") for d in range(rank)]
    new.args = [*index, *new.args]
    _use_index(new, index)
    places = _Places(new, index, params)
    accesses = _share_wraps(_unpinned(places.all(), rank))
    for block in new.blocks:
        old, block.instrs = block.instrs, []
        for i in old:
            access = accesses.get(i)
            if access is not None:
                at: list[Instr] = []
                where = index_values(at, new, list(index), access)
                for x in at:
                    block.append(x)
                kept = i.operands[:1] if i.op == "store" else []
                i.op, i.operands, i.array, i.access, i.align = f"a{i.op}", [*kept, *where], access.array, access, 0
            block.append(i)
    dce(new)
    _refuse_addresses(new, params)
    return PointFn(new, rank, params)


def _use_index(fn: Function, index: list[Arg]) -> None:
    """Put the arguments in the place of the calls that ask for the point."""
    found: dict[Value, Value] = {}
    for block in fn.blocks:
        kept = []
        for i in block.instrs:
            if i.op == "call" and i.callee.startswith("irad.index."):
                found[i] = index[int(i.callee.rpartition(".")[2])]
            else:
                kept.append(i)
        block.instrs = kept
    for i in fn.instrs():
        i.operands = [found.get(v, v) for v in i.operands]


class _Places:
    """The accesses of one function."""

    def __init__(self, fn: Function, index: list[Arg], params: tuple[Param, ...]) -> None:
        self.fn = fn
        self.arrays = {p.name: p for p in params if isinstance(p, ArrayParam)}
        extents = frozenset(f"{p.name}.n{d}" for p in self.arrays.values() for d in range(p.rank))
        ints = frozenset(p.name for p in params if isinstance(p, ScalarParam) and p.type == "i64")
        self.names = extents | ints
        self.data = {f"{name}.data": p for name, p in self.arrays.items()}
        self.stride = {f"{name}.s{d}": (name, d) for name, p in self.arrays.items() for d in range(p.rank)}
        self.integers = Integers(fn, index, extents)
        self.regions = Regions(fn, self.integers, len(index), self.names)

    def all(self) -> dict[Instr, Access]:
        slots = Slots(self.fn)
        return {
            i: self.access(i)
            for i in self.fn.instrs()
            if i.op in ("load", "store") and slots.base(i.operands[-1]) is None
        }

    def access(self, i: Instr) -> Access:
        """Where a load or a store goes."""
        p, factors = self.split(self.integers.of(i.operands[-1]), i.loc)
        elem = i.operands[0].type if i.op == "store" else i.type
        if elem != p.elem:
            raise NotDifferentiableError(
                f"'{p.name}' holds {p.elem} and is accessed as {elem}",
                loc=i.loc,
                remedy="use arrays of float32, float64, integers or booleans, each with its own type",
            )
        assert i.block is not None
        bounds = self.regions.bounds(i.block)
        dims = tuple(self.index(p, d, f, bounds, i.loc) for d, f in enumerate(factors))
        return Access(p.name, dims, bounds, self.regions.always(i.block))

    def split(self, address: Poly, loc: Loc | None) -> tuple[ArrayParam, list[Poly]]:
        """An address as its array and the factor of each of the array's strides."""
        bases = [(m, c) for m, c in address.terms if any(a.kind == "name" and a.name in self.data for a in m)]
        if len(bases) != 1 or bases[0][1] != 1 or len(bases[0][0]) != 1:
            raise NotDifferentiableError(
                "it depends on a condition, or on data, which array is accessed here",
                loc=loc,
                remedy="access each array in a branch of its own",
            )
        p = self.data[bases[0][0][0].name]
        factors: list[dict[tuple[Atom, ...], int]] = [{} for _ in range(p.rank)]
        for m, c in address.terms:
            if m == bases[0][0]:
                continue
            strides = [a for a in m if a.kind == "name" and a.name in self.stride]
            if len(strides) != 1 or self.stride[strides[0].name][0] != p.name:
                raise self.refused(p.name, address, loc)
            rest = tuple(a for a in m if a is not strides[0])
            factors[self.stride[strides[0].name][1]][rest] = c
        return p, [Poly.of(f) for f in factors]

    def index(self, p: ArrayParam, d: int, x: Poly, bounds: tuple[Bounds, ...], loc: Loc | None) -> Index:
        """One index of an access that is executed within ``bounds``."""
        if not x.has_cases:
            return self.plain(p.name, x, loc)
        extent = Poly.atom(Atom("name", f"{p.name}.n{d}"))
        # Where the index is not negative it is the plain one, where it is negative it is n more.
        for found in dict.fromkeys(sorted(cases(x, bounds, self.names), key=lambda c: str(c))):
            for plain in (found, found - extent):
                if not plain.has_cases and linear(plain, self.names) is not None:
                    if equal(x, plain, bounds, self.names):
                        return self.plain(p.name, plain, loc)
                    if equal(x, plain + below(plain) * extent, bounds, self.names):
                        return replace(self.plain(p.name, plain, loc), wraps=True)
        raise self.refused(p.name, x, loc)

    def plain(self, array: str, x: Poly, loc: Loc | None) -> Index:
        """An index that is the same expression at all points."""
        found = linear(x, self.names)
        if found is None or len(found[0]) > 1 or any(c != 1 for c in found[0].values()):
            raise self.refused(array, x, loc)
        axis = next(iter(found[0]), None)
        return Index(axis, found[1])

    def refused(self, array: str, x: Poly, loc: Loc | None) -> IradError:
        """Why an index is not one that irad knows, in the order of what helps most."""
        extents = {f"{array}.n{d}" for d in range(self.arrays[array].rank)}
        x = self.unwrapped(x)
        opaque = next((a.name for a in x.atoms() if a.kind in ("opaque", "truth") and a.serial >= 0), None)
        flag = next((a.name for a in x.atoms() if a.kind == "truth" and a.serial < 0), None)
        remedy = "index with a point index plus an offset that is the same for all points, as in u[i + 1, j]"
        if opaque is not None and opaque.startswith("%"):
            what = "is computed by % (a remainder)"
            remedy = (
                "write u[i - 1] for a periodic lower end (a negative index counts from the end), and treat the upper "
                "end in a branch: u[i + 1] if i < n - 1 else u[0]"
            )
        elif opaque is not None:
            what = f"depends on {opaque}"
        elif flag is not None:
            what = f"depends on the flag '{flag}'"
            remedy = "write an if statement with an access in each branch"
        elif x.has_cases:
            what = "is a case distinction, such as min, max or a clamp"
            remedy = "write an if statement with an access in each branch: u[i - 1] if i > 0 else u[0]"
        elif any(a.kind == "name" and a.name not in self.names | extents for a in x.atoms()):
            what = "is computed from addresses or strides"
        elif any(len(m) > 1 for m, _ in x.terms):
            what = f"is {self.spell(x)}, a product"
        elif len({a.axis for a in x.atoms() if a.kind == "point"}) > 1:
            what = f"is {self.spell(x)}, which mixes indices of the point"
        elif any(c < 0 for m, c in x.terms if m and m[0].kind == "point"):
            what = f"is {self.spell(x)}, which runs against the index of the point"
            remedy = "pass a reversed view of the array, u[::-1]"
        else:
            what = f"is {self.spell(x)}, a multiple of the index of the point"
            remedy = "pass a strided view of the array, u[::2], and index it with i"
        return NotDifferentiableError(f"an index of '{array}' {what}", loc=loc, remedy=remedy)

    def unwrapped(self, x: Poly) -> Poly:
        """An index without what Python adds where it is negative."""
        plain = x.without_cases()
        rest = (x - plain).terms
        if len(rest) == 1 and sorted(a.kind for a in rest[0][0]) == ["below", "name"]:
            return plain
        return x

    def spell(self, x: Poly) -> str:
        return spelled(str(x))


def spelled(text: str) -> str:
    """Extents as the user writes them: ``u.n0`` is ``u.shape[0]``."""
    words = []
    for word in text.replace("*", " * ").split():
        stem, dot, extent = word.rpartition(".n")
        words.append(f"{stem}.shape[{extent}]" if dot and extent.isdigit() else word)
    return " ".join(words).replace(" * ", "*")


def _unpinned(accesses: dict[Instr, Access], rank: int) -> dict[Instr, Access]:
    """Under ``if j == 2`` LLVM may write ``2`` for ``j``. Take it back where the array has accesses that use ``j``, or
    is written and would else not name all axes of the point."""
    known: dict[str, list[tuple[int | None, ...]]] = {}
    for a in accesses.values():
        if not _pins(a):
            known.setdefault(a.array, []).append(a.axes)
    written = {a.array for i, a in accesses.items() if i.op == "store"}
    result = dict(accesses)
    for i, a in accesses.items():
        pins = _pins(a)
        free = [d for d, x in enumerate(a.dims) if x.axis is None]
        if not pins or not free:
            continue
        wanted = list(dict.fromkeys(known.get(a.array, [])))
        if not wanted and a.array in written and len(a.dims) == rank:
            rest = [axis for axis in range(rank) if axis not in a.axes]
            wanted = [tuple(rest.pop(0) if x.axis is None and rest else x.axis for x in a.dims)]
        for axes in wanted:
            if all(axes[d] == x.axis or (x.axis is None and axes[d] in pins) for d, x in enumerate(a.dims)):
                dims = tuple(
                    x if axes[d] == x.axis else replace(x, axis=axes[d], offset=x.offset - pins[axes[d]])  # type: ignore[index]
                    for d, x in enumerate(a.dims)
                )
                result[i] = replace(a, dims=dims)
                break
    return result


def _pins(a: Access) -> dict[int, LinExpr]:
    """Axes that have one value only where an access is executed, and are not in it."""
    return {axis: e for axis, b in enumerate(a.guard) if axis not in a.axes for e in b.lo if e + 1 in b.hi}


def _share_wraps(accesses: dict[Instr, Access]) -> dict[Instr, Access]:
    """An index that wraps in one place is said to wrap wherever it stands: where it does not, a branch has ruled it
    out, and both name the same element."""
    wrapping: set[tuple[str, int, int | None, LinExpr]] = set()
    for a in accesses.values():
        wrapping |= {(a.array, d, x.axis, x.offset) for d, x in enumerate(a.dims) if x.wraps}
    return {
        i: replace(
            a,
            dims=tuple(replace(x, wraps=(a.array, d, x.axis, x.offset) in wrapping) for d, x in enumerate(a.dims)),
        )
        for i, a in accesses.items()
    }


def _refuse_addresses(fn: Function, params: tuple[Param, ...]) -> None:
    """Raise where an address of an array is used in any other way than to access an element."""
    data = {f"{p.name}.data" for p in params if isinstance(p, ArrayParam)}
    for i in fn.instrs():
        if any(isinstance(v, Arg) and v.name in data for v in i.operands):
            what = "copied or filled as a whole" if call_kind(i.callee) == "memory" else "used as an address"
            raise NotDifferentiableError(
                f"an array is {what} in a point kernel", loc=i.loc, remedy="write to single elements, as in v[i, j] = x"
            )
