"""Scatter to gather: the adjoint of a stencil collects instead of spreading.

An adjoint body at point p adds to the shadow of a read array at ``p + o`` for each offset o at which the body reads.
Substituting ``p = q - o`` turns this round: entry q of the shadow *collects*, over the offsets, what the body at
``q - o`` would have added there. No two points write one place, so that there is nothing to lock, the result has the
same bits for any number of threads, and the loop vectorises. (After Hückelheim et al., "Automatic differentiation for
adjoint stencil loops", ICPP 2019, here on compiled code.)

Each offset gets a copy of the adjoint body that keeps only the additions at this offset (:func:`contribution`); dead
code elimination thins it to what they need. In the core of the box every ``q - o`` lies in the launch domain; in the
edge boxes each copy runs behind a branch. An index that wraps contributes from a second place, ``q - o - n``.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, combinations

from ..errors import NotDifferentiableError
from .ir.model import Access, Arg, Const, Function, Index, Instr, LinExpr, PointFn, Value
from .layout import Range, Term
from .lower import lower, resolve_wraps
from .reverse import ADJOINT_FLAGS, neutral
from .simplify import dce
from .sweep import Emit, Sweep, core_of_domain, invariant_only

WrapTest = Callable[[Access, int], bool]
Class = tuple[Index, ...]


def classes(body: PointFn, array: str) -> dict[Class, Instr]:
    """The different places, relative to the point, at which ``body`` adds to the shadow of ``array``."""
    found: dict[Class, Instr] = {}
    for i in body.fn.instrs():
        if i.op == "accum" and i.array == array and i.access is not None:
            found.setdefault(i.access.dims, i)
    return found


def check_map(body: PointFn, array: str, dims: Class, at: Instr) -> None:
    """Refuse what this gather does not turn round: a map that is not one to one."""
    axes = [d.axis for d in dims]
    if sorted(a for a in axes if a is not None) != list(range(body.rank)) or None in axes:
        raise NotDifferentiableError(
            f"'{array}' is read through an index that leaves out an axis of the launch domain, so that many points "
            "read one entry; its derivative is not available yet", loc=at.loc,
            remedy=f"pass '{array}' as an array of the full rank, or leave its derivative out (Const)")


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


def gather_sweep(body: PointFn, stage: int, array: str, words: list[tuple[str, str]], *, assign: bool,
                 wrapped: list[tuple[int, LinExpr]], wraps: WrapTest) -> Sweep:
    """The sweep that adds to (``assign``: writes) the whole shadow of ``array``.

    ``words``: names and types of the parameters that follow the indices. ``wrapped``: the indices of the primal body
    that are negative somewhere in this launch.
    """
    param = body.array(array)
    found = {c: at for c, at in classes(body, array).items() if any(d.axis is not None for d in c)}
    for dims, at in found.items():
        check_map(body, array, dims, at)
    stem = f"s{stage}.{array}"
    core_parts = [contribution(body, array, c, f"{stem}.c{k}", invariant_only) for k, c in enumerate(found)]
    edge_parts = core_parts
    if wrapped:
        edge_parts = [contribution(body, array, c, f"{stem}.e{k}", wraps) for k, c in enumerate(found)]
    helpers = list({f.name: f for f in (*core_parts, *edge_parts)}.values())
    reads = frozenset(i.array for f in helpers for i in f.instrs() if i.op == "aload")
    core_fn = _collect(f"{stem}.core", body, array, words, list(zip(found, core_parts, strict=True)), assign, None)
    edge_fn = _collect(f"{stem}.edge", body, array, words, list(zip(found, edge_parts, strict=True)), assign, wraps)
    outer, core = _boxes(body, array, list(found), assign, wrapped, wraps)
    for f in helpers:
        lower(f)
    return Sweep(f"gather {array}' over {len(found)} offset{'s' * (len(found) != 1)}", stage, param.rank, outer,
                 core, core_fn, edge_fn, helpers, tuple(f"{array}.n{d}" for d in range(param.rank)), reads=reads)


def _access(array: str, dims: Class) -> Access:
    return Access(array, dims)


def _boxes(body: PointFn, array: str, found: list[Class], assign: bool, wrapped: list[tuple[int, LinExpr]],
           wraps: WrapTest) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """The box of entries that receive anything, and the core in which every offset contributes unguarded."""
    rank = body.array(array).rank
    inside = core_of_domain(body.rank, wrapped)
    outer, core = [], []
    for d in range(rank):
        extent = LinExpr.of(0, {f"{array}.n{d}": 1})
        whole = assign or any(c[d].wraps and wraps(_access(array, c), d) for c in found)
        lo, hi, core_lo, core_hi = [], [], [], []
        for c in found:
            axis, off = c[d].axis, c[d].offset
            assert axis is not None
            lo.append(Term(("lo", axis), off))
            hi.append(Term(("hi", axis), off))
            core_lo += [Term(t.base, t.offset + off) for t in inside[axis].lo]
            core_hi += [Term(t.base, t.offset + off) for t in inside[axis].hi]
            if c[d].wraps and wraps(_access(array, c), d):
                core_hi.append(Term(("lo", axis), off + extent))
        if whole:
            lo, hi = [Term(None)], [Term(None, extent)]
        outer.append(Range(tuple(dict.fromkeys(lo)), tuple(dict.fromkeys(hi))))
        core.append(Range(tuple(dict.fromkeys(core_lo)) or (Term(None),),
                          tuple(dict.fromkeys(core_hi)) or (Term(None, extent),)))
    return tuple(outer), tuple(core)


def _collect(name: str, body: PointFn, array: str, words: list[tuple[str, str]], parts: list[tuple[Class, Function]],
             assign: bool, guard: WrapTest | None) -> Function:
    """``shadow[q] (+)= sum over parts of part(q - o)``; with ``guard`` each part only where ``q - o`` is in the domain."""
    param = body.array(array)
    args = [Arg("i64", f"i{d}") for d in range(param.rank)] + [Arg(t, w) for w, t in words]
    bounds = [Arg("i64", f"D.{e}{a}") for a in range(body.rank) for e in ("lo", "hi")] if guard else []
    fn = Function(name, "void", args + bounds, linkage="internal", attrs=("alwaysinline", "nounwind"))
    e = Emit(fn)
    q = args[: param.rank]
    dims = tuple(Index(d, LinExpr()) for d in range(param.rank))
    acc = e("alloca", "ptr", [], elem=param.elem, name="acc")
    e("store", "void", [Const(param.elem, "0.000000e+00") if assign and guard else neutral(param.elem), acc])
    count = 0
    for cls, part in parts:
        flips = [d for d, index in enumerate(cls) if guard and index.wraps and guard(_access(array, cls), d)]
        for wrapped in chain.from_iterable(combinations(flips, k) for k in range(len(flips) + 1)):
            p: list[Value] = [Const("i64", "0")] * body.rank
            for d, index in enumerate(cls):
                assert index.axis is not None
                x = e.sub(q[d], e.lin(index.offset))
                p[index.axis] = e.sub(x, fn.arg(f"{array}.n{d}")) if d in wrapped else x
            after = None
            if guard:
                ok: Value = Const("i1", "true")
                for a in range(body.rank):
                    for pred, bound in (("sge", f"D.lo{a}"), ("slt", f"D.hi{a}")):
                        ok = _and(e, ok, e("icmp", "i1", [p[a], fn.arg(bound)], pred=pred))
                for d in flips:
                    at = e.index(p, cls[d])
                    ok = _and(e, ok, e("icmp", "i1", [at, Const("i64", "0")], pred="slt" if d in wrapped else "sge"))
                inside, after = fn.block(f"in{count}"), fn.block(f"out{count}")
                e("br", "void", [ok], targets=[inside, after])
                e.block = inside
            value = e("call", param.elem, [*p, *args[param.rank:]], callee=part.name)
            total = e("fadd", param.elem, [e("load", param.elem, [acc]), value], flags=ADJOINT_FLAGS)
            e("store", "void", [total, acc])
            if after is not None:
                e("br", "void", [], targets=[after])
                e.block = after
            count += 1
    total = e("load", param.elem, [acc])
    if not assign:
        old = e("sload", param.elem, list(q), array=array, access=_access(array, dims))
        total = e("fadd", param.elem, [old, total], flags=ADJOINT_FLAGS)
    e("sstore", "void", [total, *q], array=array, access=_access(array, dims))
    e("ret", "void", [])
    lower(fn)
    return fn


def _and(e: Emit, a: Value, b: Value) -> Value:
    return b if isinstance(a, Const) else e("and", "i1", [a, b])
