"""Joins a point-wise epilogue to the kernel that writes a rate: the rate is then never stored.

A stabilised integrator spends as long on ``g_next = g + kappa (g - g_older) + c f(g)`` as on ``f``, all of it moving
memory. :func:`fuse` makes one point function of both: over the whole array, which does what the kernel does where
that writes its rate (elsewhere the rate is 0), and ends with the epilogue. It is a point function like any other, so
that its core without tests and its tiles come by themselves. (The adjoint of a stage is that of the kernel with what
:class:`~.layout.Blend` says.)

Fused can be what is written once a point, at one place that is the point shifted by numbers, over a launch domain with
bounds that are sums of extents, integer parameters and numbers. For anything else :func:`fuse` gives ``None``, and the
caller runs kernel and epilogue one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .build import Builder
from .integers import Integers
from .ir.const import int_const
from .ir.graph import predecessors, reverse_postorder
from .ir.model import (
    Access,
    Arg,
    ArrayParam,
    Block,
    Bounds,
    Function,
    Index,
    Instr,
    LinExpr,
    Param,
    PointFn,
    ScalarParam,
    Value,
)
from .linear import linear
from .own import lin_value, zero_of
from .polynomial import Poly, below, choose
from .simplify import dce


@dataclass(frozen=True)
class Epilogue:
    """``body(builder, rate, state, arrays, scalars)`` gives the values of ``writes``, in order.

    ``arrays`` holds the values of ``reads`` and of those of ``writes`` that are in ``updates``: what they held before.
    Arithmetic carries no flags: it is that of the integrator's own loops, bit for bit.
    """

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    updates: tuple[str, ...]
    scalars: tuple[str, ...]
    body: Callable[[Builder, Value, Value, dict[str, Value], dict[str, Value]], list[Value]]


def _recur(b: Builder, rate: Value, g: Value, a: dict[str, Value], s: dict[str, Value]) -> list[Value]:
    back = b.fadd(b.fmul(b.fsub(g, a[".older"]), s[".kappa"]), g)
    return [b.fadd(back, b.fmul(rate, s[".c"]))]


def _recur_in_place(b: Builder, rate: Value, g: Value, a: dict[str, Value], s: dict[str, Value]) -> list[Value]:
    return _recur(b, rate, g, {".older": a[".out"]}, s)


def _add_scaled(b: Builder, rate: Value, g: Value, a: dict[str, Value], s: dict[str, Value]) -> list[Value]:
    return [b.fadd(b.fmul(rate, s[".c"]), g)]


def _add_and_keep(b: Builder, rate: Value, g: Value, a: dict[str, Value], s: dict[str, Value]) -> list[Value]:
    return [*_add_scaled(b, rate, g, a, s), rate]


EPILOGUES = {
    e.name: e
    for e in (
        Epilogue("recur", (".older",), (".out",), (), (".kappa", ".c"), _recur),
        Epilogue("recur in place", (), (".out",), (".out",), (".kappa", ".c"), _recur_in_place),
        Epilogue("add scaled", (), (".out",), (), (".c",), _add_scaled),
        Epilogue("add and keep", (), (".out", ".rate"), (), (".c",), _add_and_keep),
    )
}
"""``recur``: ``out = g + kappa (g - older) + c f``, ``in place``: ``older`` is what ``out`` held. ``add scaled``:
``out = g + c f``, ``and keep``: ``rate = f`` as well."""


@dataclass(frozen=True)
class Fused:
    """A point function with epilogue, its parameters, and its launch domain: all of the rate's array."""

    point: PointFn
    params: tuple[Param, ...]
    domain: Function


def fuse(point: PointFn, domain: Function, rate: str, state: str, epilogue: Epilogue) -> Fused | None:
    """``point`` over ``domain`` with ``epilogue`` after it, for the array ``rate`` that it writes and the array
    ``state`` that the epilogue calls g; ``None`` where that cannot be."""
    target, source = point.array(rate), point.array(state)
    if (target.rank, target.elem) != (source.rank, source.elem) or target.rank != point.rank:
        return None
    offsets = _offsets(point, rate)
    box = _box(point, domain)
    if offsets is None or box is None or state in point.written:
        return None
    fn, _, _ = point.fn.clone(f"{point.fn.name}.fused")
    arrays = tuple(ArrayParam(n, target.elem, target.rank) for n in dict.fromkeys((*epilogue.reads, *epilogue.writes)))
    scalars = tuple(ScalarParam(n, target.elem) for n in epilogue.scalars)
    params = (*point.params, *arrays, *scalars)
    extra: tuple[Param, ...] = (*arrays, *scalars)
    for p in extra:
        for w in p.words:
            kind = "ptr" if w.endswith(".data") else "i64" if isinstance(p, ArrayParam) else p.type
            fn.args.append(Arg(kind, w))
    index = fn.args[: point.rank]
    _shift(fn, index, offsets)
    shifted = [(lo + c, hi + c) for (lo, hi), c in zip(box, offsets, strict=True)]
    _guard(fn, shifted)
    value, end = _take_out(fn, rate, target.elem)
    start, middle = _around(fn, index, shifted, [f"{rate}.n{d}" for d in range(target.rank)])
    merge = fn.block("merge")
    end.append(Instr("br", "void", targets=[merge]))
    b = Builder(merge)
    if start is not middle:  # some points are outside of the kernel's domain
        start.terminator.targets[1] = merge
        value = b.phi(target.elem, [(value, end), (zero_of(target.elem), start)])
    identity = tuple(Index(d, LinExpr()) for d in range(target.rank))

    def load(name: str) -> Value:
        return b.aload(target.elem, name, index, Access(name, identity))

    before = {n: load(n) for n in (*epilogue.reads, *epilogue.updates)}
    values = epilogue.body(b, value, load(state), before, {n: fn.arg(n) for n in epilogue.scalars})
    for name, v in zip(epilogue.writes, values, strict=True):
        b.astore(v, name, index, Access(name, identity))
    b.ret()
    dce(fn)
    return Fused(PointFn(fn, point.rank, params), params, _whole(domain, params, rate, target.rank))


def _offsets(point: PointFn, rate: str) -> list[int] | None:
    """By how much the place that a point writes is shifted against the point."""
    accesses = [i for i in point.fn.instrs() if i.array == rate and i.op in ("aload", "astore")]
    if any(i.op == "aload" for i in accesses) or point.written != (rate,):
        return None
    found = []
    first = accesses[0].access
    assert first is not None
    for d, x in enumerate(first.dims):
        if x.axis != d or not x.offset.is_const:
            return None
        found.append(x.offset.const)
    return found


def _box(point: PointFn, domain: Function) -> list[tuple[LinExpr, LinExpr]] | None:
    """The bounds that a domain function stores, as expressions."""
    extents = frozenset(f"{p.name}.n{d}" for p in point.params if isinstance(p, ArrayParam) for d in range(p.rank))
    names = extents | {p.name for p in point.params if isinstance(p, ScalarParam) and p.type == "i64"}
    integers = Integers(domain, [], extents)
    out = domain.args[-1]
    found: dict[int, Poly] = {}
    if len(domain.blocks) != 1:
        return None
    for i in domain.instrs():
        if i.op == "store":
            at = linear(integers.of(i.operands[1]), names | {out.name})
            if at is None or at[1].terms != ((out.name, 1),):
                return None
            found[at[1].const // 8] = integers.of(i.operands[0])
    if sorted(found) != list(range(2 * point.rank)):
        return None
    box = []
    for d in range(point.rank):
        lo, hi = found[2 * d], _less_empty(found[2 * d], found[2 * d + 1])
        bounds = [linear(p, names) for p in (lo, hi)]
        if bounds[0] is None or bounds[1] is None:
            return None
        box.append((bounds[0][1], bounds[1][1]))
    return box


def _less_empty(lo: Poly, hi: Poly) -> Poly:
    """``hi`` without the care that an empty axis ends where it starts: below ``max(hi, lo)`` is below ``hi``."""
    plain = hi.without_cases()
    return plain if hi == choose(below(plain - lo), lo, plain) else hi


def _shift(fn: Function, index: Sequence[Arg], offsets: list[int]) -> None:
    """Number the points by what they write: ``i`` becomes ``i - offset``, in place."""
    for axis, c in enumerate(offsets):
        if c == 0:
            continue
        moved = Instr("add", "i64", [index[axis], int_const("i64", -c)], flags=("nsw",))
        for i in fn.instrs():
            i.operands = [moved if v is index[axis] else v for v in i.operands]
        fn.blocks[0].insert(0, moved)
    for i in fn.instrs():
        if i.access is not None:
            i.access = _shifted(i.access, offsets)


def _shifted(a: Access, offsets: list[int]) -> Access:
    dims = tuple(x if x.axis is None else replace(x, offset=x.offset - offsets[x.axis]) for x in a.dims)
    guard = tuple(
        Bounds(*(tuple(e + c for e in side) for side in (b.lo, b.hi, b.holes)))
        for b, c in zip(a.guard, (*offsets, 0), strict=False)
    )
    return replace(a, dims=dims, guard=guard)


def _guard(fn: Function, box: list[tuple[LinExpr, LinExpr]]) -> None:
    """Say of each access that it is made inside of the box only, in place."""
    for i in fn.instrs():
        if i.access is not None:
            known = i.access.guard or tuple(Bounds() for _ in range(len(box) + 1))
            guard = [Bounds((*b.lo, lo), (*b.hi, hi), b.holes) for b, (lo, hi) in zip(known, box, strict=False)]
            i.access = replace(i.access, guard=(*guard, known[-1]), always=False)


def _take_out(fn: Function, rate: str, elem: str) -> tuple[Value, Block]:
    """Remove the stores of the rate; returns the last value stored (0 where there was none) and the block, without
    terminator, in which the body ends."""
    order = reverse_postorder(fn)
    preds = predecessors(fn)
    ends: dict[Block, Value] = {}
    zero = zero_of(elem)
    for block in order:
        incoming = [(ends[p], p) for p in dict.fromkeys(preds[block]) if p in ends]
        value: Value = incoming[0][0] if incoming else zero
        if any(v is not value for v, _ in incoming):
            value = block.insert(0, Instr("phi", elem, [v for v, _ in incoming], targets=[p for _, p in incoming]))
        for i in list(block.instrs):
            if i.op == "astore" and i.array == rate:
                value = i.operands[0]
                block.instrs.remove(i)
        ends[block] = value
    exits = [b for b in order if b.terminator.op == "ret"]
    for b in exits:
        b.instrs.pop()
    if len(exits) == 1:
        return ends[exits[0]], exits[0]
    end = fn.block("end")
    for b in exits:
        b.append(Instr("br", "void", targets=[end]))
    return end.append(Instr("phi", elem, [ends[b] for b in exits], targets=list(exits))), end


def _around(
    fn: Function, index: Sequence[Arg], box: list[tuple[LinExpr, LinExpr]], extents: list[str]
) -> tuple[Block, Block]:
    """A new entry that goes to the body inside of the box; its second target is still to be set. Returns the entry and
    the block that is entered inside; one and the same where the box is all of the array."""
    body = fn.blocks[0]
    start = Block("start")
    made: list[Instr] = []
    inside: Value | None = None
    for axis, (lo, hi) in enumerate(box):
        tests = [] if lo == LinExpr() else [("sge", lo)]
        tests += [] if hi == LinExpr.of(0, {extents[axis]: 1}) else [("slt", hi)]
        for pred, bound in tests:
            made.append(Instr("icmp", "i1", [index[axis], lin_value(made, fn, bound)], pred=pred))
            if inside is not None:
                made.append(Instr("and", "i1", [inside, made[-1]]))
            inside = made[-1]
    if inside is None:
        return body, body
    for i in made:
        start.append(i)
    start.append(Instr("br", "void", [inside], targets=[body, body]))
    fn.blocks.insert(0, start)
    return start, body


def _whole(domain: Function, params: Sequence[Param], rate: str, rank: int) -> Function:
    """A domain function for all of an array."""
    args = [Arg(a.type, a.name) for a in domain.args[:-1]]
    known = {a.name for a in args}
    for p in params:
        for w in p.words:
            if w not in known:
                kind = "ptr" if w.endswith(".data") else "i64" if isinstance(p, ArrayParam) else p.type
                args.append(Arg(kind, w))
    out = Arg("ptr", "out")
    fn = Function(f"{domain.name}.whole", "void", [*args, out], linkage=domain.linkage, attrs=domain.attrs)
    b = Builder(fn.block("entry"))
    for d in range(rank):
        for k, v in enumerate((int_const("i64", 0), fn.arg(f"{rate}.n{d}"))):
            b.store(v, b.gep("i64", out, int_const("i64", 2 * d + k)), align=8)
    b.ret()
    return fn
