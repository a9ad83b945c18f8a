"""Joins the sweeps of one stage's adjoint that only read what they share, so that memory is read once.

The gathers of T and Ci and the sum for λ all read the seed of dT and each other's arrays; as one sweep they cost the
bytes of their union. Entry q of each shadow is then computed in the same pass as point q of the sum. The core is the
intersection of the parts' cores, the box their union, and in the edges each part runs where its own box is.

Joined are gathers in the order of the point's axes, and a point-wise sweep that updates no shadow. Not joined is what
writes a shadow that another part reads at a shift (``phases.py``).
"""

from __future__ import annotations

from collections.abc import Callable

from .ir.model import Arg, Const, Function, LinExpr, Value
from .layout import Range, Term
from .sweep import FROM, TO, Emit, Sweep, row_args


def merge(sweeps: list[Sweep], inner: Callable[[int], int]) -> list[Sweep]:
    """The same work in fewer sweeps, in an order that respects what the sweeps read and write."""
    joinable = [s for s in sweeps if s.mergeable]
    if len(joinable) < 2:
        return sweeps
    at = sweeps.index(joinable[0])
    rest = [s for s in sweeps if not s.mergeable]
    return [*rest[:at], _joined(joinable, inner(joinable[0].rank)), *rest[at:]]


def _joined(parts: list[Sweep], axis: int) -> Sweep:
    first = parts[0]
    rank = first.rank
    outer, core = [], []
    for d in range(rank):
        ranges = [p.outer[d] for p in parts]
        outer.append(Range(_terms(t for r in ranges for t in r.lo), _terms(t for r in ranges for t in r.hi)))
        inner = [c for p in parts for c in ((p.core or p.outer)[d], *_inside(p, d))]
        core.append(Range(_terms(t for r in inner for t in r.lo), _terms(t for r in inner for t in r.hi)))
    stem = f"s{first.stage}.all"
    core_fn = _sequence(f"{stem}.core", parts, edge=False)
    edge_fn = _sequence(f"{stem}.edge", parts, edge=True)
    row_fn = _rows(f"{stem}.row", parts, axis) if rank > 1 else None
    helpers = [f for p in parts for f in p.functions]
    return Sweep(
        " + ".join(p.title for p in parts),
        first.stage,
        rank,
        tuple(outer),
        tuple(core),
        core_fn,
        edge_fn,
        row_fn,
        helpers,
        reductions=tuple(r for p in parts for r in p.reductions),
    )


def _terms(terms: object) -> tuple[Term, ...]:
    return tuple(dict.fromkeys(terms))  # type: ignore[call-overload,no-any-return]


def _inside(p: Sweep, d: int) -> list[Range]:
    """The extents of the array that a part writes: bounds of its own."""
    if not p.extents:
        return []
    return [Range((Term(None),), (Term(None, LinExpr.of(0, {p.extents[d]: 1})),))]


def _sequence(name: str, parts: list[Sweep], *, edge: bool) -> Function:
    """One function that runs the parts' functions one after another, each (``edge``) only in its own box."""
    rank = parts[0].rank
    args: dict[str, Arg] = {f".i{d}": Arg("i64", f".i{d}") for d in range(rank)}
    for p in parts:
        for a in ((p.edge_fn or p.core_fn) if edge else p.core_fn).args[rank:]:
            args.setdefault(a.name, Arg(a.type, a.name))
    if edge:
        for bound in (f".{end}{d}" for d in range(rank) for end in ("lo", "hi")):
            args.setdefault(bound, Arg("i64", bound))
    fn = Function(name, "void", list(args.values()), linkage="internal", attrs=("alwaysinline", "nounwind"))
    e = Emit(fn)
    for p in parts:
        target = (p.edge_fn or p.core_fn) if edge else p.core_fn
        after = e.when(_within(e, p, args)) if edge else None
        e("call", "void", [args[a.name] for a in target.args], callee=target.name)
        if after is not None:
            e.go(after)
    e("ret", "void", [])
    return fn


def _rows(name: str, parts: list[Sweep], axis: int) -> Function:
    """The parts' rows one after another, each only where its own box is; a part without goes point by point."""
    rank = parts[0].rank
    args: dict[str, Arg] = {a.name: a for a in row_args(rank, axis)}
    targets = [p.row_fn or p.edge_fn or p.core_fn for p in parts]
    bounds = [Arg("i64", f".{end}{d}") for d in range(rank) for end in ("lo", "hi")]
    for a in (*(a for t in targets for a in t.args), *bounds):
        if a.name != f".i{axis}":
            args.setdefault(a.name, Arg(a.type, a.name))
    fn = Function(name, "void", list(args.values()), linkage="internal", attrs=("alwaysinline", "nounwind"))
    e = Emit(fn)
    for p, target in zip(parts, targets, strict=True):
        conditions: list[Value] = []
        span: list[Value] = [args[FROM], args[TO]]
        for d in range(rank):
            lo: Value = Const("i64", "0") if p.extents else args[f".lo{d}"]
            hi: Value = args[p.extents[d]] if p.extents else args[f".hi{d}"]
            if d == axis:
                span = [
                    e("call", "i64", [span[0], lo], callee="llvm.smax.i64"),
                    e("call", "i64", [span[1], hi], callee="llvm.smin.i64"),
                ]
            else:
                conditions.append(e("icmp", "i1", [args[f".i{d}"], lo], pred="sge"))
                conditions.append(e("icmp", "i1", [args[f".i{d}"], hi], pred="slt"))
        after = e.when(conditions)
        known: dict[str, Value] = {**args, FROM: span[0], TO: span[1]}
        if p.row_fn is not None:
            e("call", "void", [known[a.name] for a in target.args], callee=target.name)
        else:
            loop = e.loop(*span)
            known[f".i{axis}"] = loop.index
            e("call", "void", [known[a.name] for a in target.args], callee=target.name)
            e.end_loop(loop)
        e.go(after)
    e("ret", "void", [])
    return fn


def _within(e: Emit, p: Sweep, args: dict[str, Arg]) -> list[Value]:
    """Conditions under which an index is in the box of a part: inside its array, or in the launch domain."""
    result: list[Value] = []
    for d in range(p.rank):
        lo: Value = Const("i64", "0") if p.extents else args[f".lo{d}"]
        hi: Value = args[p.extents[d]] if p.extents else args[f".hi{d}"]
        result.append(e("icmp", "i1", [args[f".i{d}"], lo], pred="sge"))
        result.append(e("icmp", "i1", [args[f".i{d}"], hi], pred="slt"))
    return result
