"""Scatter to gather: the adjoint of a stencil collects instead of spreading.

An adjoint body at point p adds to the shadow of a read array at ``p + o`` for each offset o at which the body reads.
Substituting ``p = q - o`` turns this round: entry q of the shadow *collects*, over the offsets, what the body at
``q - o`` would have added there. No two points write one place, so that there is nothing to lock, the result has the
same bits for any number of threads, and the loop vectorises. (After Hückelheim et al., "Automatic differentiation for
adjoint stencil loops", ICPP 2019, here on compiled code.)

Each offset gets a copy of the adjoint body that keeps only the additions at this offset (:func:`contribution`); dead
code elimination thins it to what they need. In the core of the box every ``q - o`` lies in the launch domain; in the
edge boxes each copy runs behind a branch. An index that wraps contributes from a second place, ``q - o - n``. A map
that leaves out axes of the point (``rho[k]`` in three dimensions) sums over these axes, all of it guarded.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, combinations

from .core import Core
from .ir.model import Access, Arg, Const, Function, Index, Instr, LinExpr, PointFn, Value
from .layout import Blend, Range, Term
from .lower import resolve_wraps
from .reverse import ADJOINT_FLAGS, neutral
from .simplify import dce
from .sweep import FROM, TO, Emit, Sweep, invariant_only, row_args

WrapTest = Callable[[Access, int], bool]
Class = tuple[Index, ...]


def classes(body: PointFn, array: str) -> dict[Class, Instr]:
    """The different places, relative to the point, at which ``body`` adds to the shadow of ``array``."""
    found: dict[Class, Instr] = {}
    for i in body.fn.instrs():
        if i.op == "accum" and i.array == array and i.access is not None:
            found.setdefault(i.access.dims, i)
    return found


def one_to_one(rank: int, dims: Class) -> bool:
    """Whether each entry is touched from one point: the dimensions are the axes of the point, in some order."""
    return sorted(-1 if d.axis is None else d.axis for d in dims) == list(range(rank))


def contribution(body: PointFn, array: str, dims: Class, name: str, wraps: WrapTest) -> Function:
    """What the adjoint body at a point adds to the shadow of ``array`` through ``dims``, as a function's result."""
    fn, _, _ = body.fn.clone(name)
    elem = body.array(array).elem
    fn.type, fn.linkage, fn.attrs = elem, "internal", ("alwaysinline", "nounwind")
    acc = Instr("alloca", "ptr", [], elem=elem, name="acc")
    for block in fn.blocks:
        old, block.instrs = block.instrs, []
        for i in old:
            if i.op == "accum" and i.array == array and i.access is not None and i.access.dims == dims:
                before = block.append(Instr("load", elem, [acc]))
                total = block.append(Instr("fadd", elem, [before, i.operands[0]], flags=ADJOINT_FLAGS))
                block.append(Instr("store", "void", [total, acc]))
            elif i.op in ("accum", "accums", "sstore"):
                continue
            elif i.op == "ret":
                value = block.append(Instr("load", elem, [acc]))
                block.append(Instr("ret", "void", [value]))
            else:
                block.append(i)
    fn.blocks[0].insert(0, acc)
    fn.blocks[0].insert(1, Instr("store", "void", [neutral(elem), acc]))
    resolve_wraps(fn, wraps)
    dce(fn)
    return fn


def gather_sweep(
    body: PointFn,
    stage: int,
    array: str,
    words: list[tuple[str, str]],
    *,
    assign: bool,
    inside: Core,
    wraps: WrapTest,
    inner: int,
    blend: Blend | None = None,
) -> Sweep:
    """The sweep that adds to (``assign``: writes) the whole shadow of ``array``. ``blend``: with what it held, and
    the seed, blended in. ``inner``: the innermost axis of the loops.

    ``words``: names and types of the parameters that follow the indices. ``wrapped``: the indices of the primal body
    that are negative somewhere in this launch.
    """
    param = body.array(array)
    found = [c for c in classes(body, array) if any(d.axis is not None for d in c)]
    stem = f"s{stage}.{array}"
    core_parts = [contribution(body, array, c, f"{stem}.c{k}", invariant_only) for k, c in enumerate(found)]
    for part in core_parts:
        inside.settle(part)
    edge_parts = core_parts
    if inside.sides:
        edge_parts = [contribution(body, array, c, f"{stem}.e{k}", wraps) for k, c in enumerate(found)]
    helpers = list({f.name: f for f in (*core_parts, *edge_parts)}.values())
    edge_fn = _collect(
        f"{stem}.edge", body, array, words, list(zip(found, edge_parts, strict=True)), assign, wraps, blend
    )
    title = f"gather {array}' over {len(found)} offset{'s' * (len(found) != 1)}"
    extents = tuple(f"{array}.n{d}" for d in range(param.rank))
    if not all(one_to_one(body.rank, c) for c in found):
        box = tuple(Range((Term(None),), (Term(None, LinExpr.of(0, {n: 1})),)) for n in extents)
        return Sweep(
            f"{title}, summing over the axes that it leaves out",
            stage,
            param.rank,
            box,
            None,
            edge_fn,
            helpers=helpers,
            extents=extents,
        )
    core_fn = _collect(
        f"{stem}.core", body, array, words, list(zip(found, core_parts, strict=True)), assign, None, blend
    )
    parts = list(zip(found, edge_parts, strict=True))
    row_fn = _rows(f"{stem}.row", body, array, words, parts, assign, wraps, inner, blend) if param.rank > 1 else None
    outer, core = _boxes(body, array, found, assign, inside, wraps)
    straight = all(c[d].axis == d for c in found for d in range(param.rank))
    return Sweep(title, stage, param.rank, outer, core, core_fn, edge_fn, row_fn, helpers, extents, mergeable=straight)


def _boxes(
    body: PointFn, array: str, found: list[Class], assign: bool, inside: Core, wraps: WrapTest
) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """The box of entries that receive anything, and the core in which every offset contributes unguarded."""
    rank = body.array(array).rank
    domain = inside.box()
    outer, core = [], []
    for d in range(rank):
        extent = LinExpr.of(0, {f"{array}.n{d}": 1})
        whole = assign or any(c[d].wraps and wraps(Access(array, c), d) for c in found)
        lo, hi, core_lo, core_hi = [], [], [], []
        for c in found:
            axis, off = c[d].axis, c[d].offset
            assert axis is not None
            lo.append(Term(("lo", axis), off))
            hi.append(Term(("hi", axis), off))
            core_lo += [Term(t.base, t.offset + off) for t in domain[axis].lo]
            core_hi += [Term(t.base, t.offset + off) for t in domain[axis].hi]
            if c[d].wraps and wraps(Access(array, c), d):
                core_hi.append(Term(("lo", axis), off + extent))
        if whole:
            lo, hi = [Term(None)], [Term(None, extent)]
        outer.append(Range(tuple(dict.fromkeys(lo)), tuple(dict.fromkeys(hi))))
        core.append(
            Range(
                tuple(dict.fromkeys(core_lo)) or (Term(None),), tuple(dict.fromkeys(core_hi)) or (Term(None, extent),)
            )
        )
    return tuple(outer), tuple(core)


def _collect(
    name: str,
    body: PointFn,
    array: str,
    words: list[tuple[str, str]],
    parts: list[tuple[Class, Function]],
    assign: bool,
    guard: WrapTest | None,
    blend: Blend | None,
) -> Function:
    """``shadow[q] (+)= sum over parts of part(q - o)``; with ``guard`` each part only where ``q - o`` is in the domain.

    A guarded part whose map leaves out axes of the point sums over these axes, in float64.
    """
    param = body.array(array)
    args = [Arg("i64", f".i{d}") for d in range(param.rank)] + [Arg(t, w) for w, t in words]
    bounds = [Arg("i64", f".{e}{a}") for a in range(body.rank) for e in ("lo", "hi")] if guard else []
    fn = Function(name, "void", args + bounds, linkage="internal", attrs=("alwaysinline", "nounwind"))
    e = Emit(fn)
    q: list[Value] = list(args[: param.rank])
    dims = tuple(Index(d, LinExpr()) for d in range(param.rank))
    wide = param.elem if all(one_to_one(body.rank, c) for c, _ in parts) else "double"
    acc = e("alloca", "ptr", [], elem=wide, name="acc")
    e("store", "void", [Const(wide, "0.000000e+00") if assign and guard else neutral(wide), acc])

    def add(point: list[Value], part: Function) -> None:
        value: Value = e("call", param.elem, [*point, *args[param.rank :]], callee=part.name)
        if wide != param.elem:
            value = e("fpext", wide, [value])
        before = e("load", wide, [acc])
        e("store", "void", [e("fadd", wide, [before, value], flags=ADJOINT_FLAGS), acc])

    for cls, part in parts:
        flips = [
            d
            for d, index in enumerate(cls)
            if guard and index.axis is not None and index.wraps and guard(Access(array, cls), d)
        ]
        for wrapped in chain.from_iterable(combinations(flips, k) for k in range(len(flips) + 1)):
            point: list[Value | None] = [None] * body.rank
            conditions: list[Value] = []
            for d, index in enumerate(cls):
                if index.axis is None:
                    at: Value = e.lin(index.offset)
                    if index.wraps:
                        at = e("iwrap", "i64", [at, fn.arg(f"{array}.n{d}")])
                    conditions.append(e("icmp", "i1", [q[d], at], pred="eq"))
                    continue
                x = e.sub(q[d], e.lin(index.offset))
                if d in wrapped:
                    x = e.sub(x, fn.arg(f"{array}.n{d}"))
                if point[index.axis] is None:
                    point[index.axis] = x
                else:
                    conditions.append(e("icmp", "i1", [x, point[index.axis]], pred="eq"))  # type: ignore[list-item]
            if guard is None:
                add(point, part)  # type: ignore[arg-type]
                continue
            for a, at_axis in enumerate(point):
                if at_axis is not None:
                    conditions.append(e("icmp", "i1", [at_axis, fn.arg(f".lo{a}")], pred="sge"))
                    conditions.append(e("icmp", "i1", [at_axis, fn.arg(f".hi{a}")], pred="slt"))
            for d in flips:
                at = e.index(point, cls[d])  # type: ignore[arg-type]
                conditions.append(e("icmp", "i1", [at, Const("i64", "0")], pred="slt" if d in wrapped else "sge"))
            after = e.when(conditions)
            loops = [(a, e.loop(fn.arg(f".lo{a}"), fn.arg(f".hi{a}"))) for a, x in enumerate(point) if x is None]
            for a, loop in loops:
                point[a] = loop.index
            add(point, part)  # type: ignore[arg-type]
            for _, loop in reversed(loops):
                e.end_loop(loop)
            e.go(after)
    total: Value = e("load", wide, [acc])
    if wide != param.elem:
        total = e("fptrunc", param.elem, [total])
    if blend is not None:
        total = e("fadd", param.elem, [_blended(e, blend, param.elem, q, dims), total], flags=ADJOINT_FLAGS)
    elif not assign:
        old = e("sload", param.elem, q, array=array, access=Access(array, dims))
        total = e("fadd", param.elem, [old, total], flags=ADJOINT_FLAGS)
    e("sstore", "void", [total, *q], array=array, access=Access(array, dims))
    e("ret", "void", [])
    return fn


def _blended(e: Emit, blend: Blend, elem: str, q: list[Value], dims: tuple[Index, ...]) -> Value:
    """``b state' + a rate'`` at an entry."""
    terms = []
    for array, factor in ((blend.state, blend.b), (blend.rate, blend.a)):
        held = e("sload", elem, q, array=array, access=Access(array, dims))
        terms.append(e("fmul", elem, [held, e.fn.arg(factor)], flags=ADJOINT_FLAGS))
    return e("fadd", elem, terms, flags=ADJOINT_FLAGS)  # type: ignore[arg-type]


def _rows(
    name: str,
    body: PointFn,
    array: str,
    words: list[tuple[str, str]],
    parts: list[tuple[Class, Function]],
    assign: bool,
    wraps: WrapTest,
    inner: int,
    blend: Blend | None,
) -> Function:
    """What :func:`_collect` does, for a row of entries: part after part, each over the stretch of the row in which
    ``q - o`` is in the domain. No loop has a branch in it, so that the edges vectorise as the core does.

    An entry has one preimage at most, and every axis of it depends on one index of the entry. A part that wraps has a
    second stretch, ``n`` further; that an index is negative there, and not negative here, goes without saying.
    """
    param = body.array(array)
    args = [*row_args(param.rank, inner), *(Arg(t, w) for w, t in words)]
    bounds = [Arg("i64", f".{e}{a}") for a in range(body.rank) for e in ("lo", "hi")]
    fn = Function(name, "void", args + bounds, linkage="internal", attrs=("alwaysinline", "nounwind"))
    e = Emit(fn)
    q: list[Value] = [fn.arg(f".i{d}") if d != inner else fn.arg(FROM) for d in range(param.rank)]
    access = Access(array, tuple(Index(d, LinExpr()) for d in range(param.rank)))
    first: Value = fn.arg(FROM)
    last: Value = fn.arg(TO)

    def at(k: Value) -> list[Value]:
        return [*q[:inner], k, *q[inner + 1 :]]

    if blend is not None or assign:
        loop = e.loop(first, last)
        start: Value = Const(param.elem, "0.000000e+00")
        if blend is not None:
            start = _blended(e, blend, param.elem, at(loop.index), access.dims)
        e("sstore", "void", [start, *at(loop.index)], array=array, access=access)
        e.end_loop(loop)
    for cls, part in parts:
        flips = [d for d, x in enumerate(cls) if x.wraps and wraps(Access(array, cls), d)]
        for wrapped in chain.from_iterable(combinations(flips, k) for k in range(len(flips) + 1)):
            shift = [e.lin(x.offset) for x in cls]
            for d in wrapped:
                shift[d] = e.add(shift[d], fn.arg(f"{array}.n{d}"))
            conditions: list[Value] = []
            point: list[Value] = [first] * body.rank
            lo, hi = first, last
            for d, x in enumerate(cls):
                assert x.axis is not None
                low, high = (fn.arg(f".{end}{x.axis}") for end in ("lo", "hi"))
                if d == inner:
                    lo = e("call", "i64", [lo, e.add(low, shift[d])], callee="llvm.smax.i64")
                    hi = e("call", "i64", [hi, e.add(high, shift[d])], callee="llvm.smin.i64")
                    continue
                point[x.axis] = e.sub(q[d], shift[d])
                conditions.append(e("icmp", "i1", [point[x.axis], low], pred="sge"))
                conditions.append(e("icmp", "i1", [point[x.axis], high], pred="slt"))
            after = e.when(conditions)
            loop = e.loop(lo, hi)
            axis = cls[inner].axis
            assert axis is not None
            point[axis] = e.sub(loop.index, shift[inner])
            value: Value = e("call", param.elem, [*point, *(fn.arg(w) for w, _ in words)], callee=part.name)
            old = e("sload", param.elem, at(loop.index), array=array, access=access)
            total = e("fadd", param.elem, [old, value], flags=ADJOINT_FLAGS)
            e("sstore", "void", [total, *at(loop.index)], array=array, access=access)
            e.end_loop(loop)
            e.go(after)
    e("ret", "void", [])
    return fn
