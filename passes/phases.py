"""Orders the adjoint of one stage into sweeps, a barrier between.

In a single sweep, a point that updated or zeroed a shadow would pull it from under its neighbours. So first come all
gathers, which read seeds and old values at shifts and write only shadows of arrays that the stage does not write;
then one point-wise sweep (:func:`own_sweep`) updates the shadows of the written arrays, each point its own address,
and sums the cotangents of scalars and of single entries such as ``lam[0]``. No sweep writes what it reads at a shift.
"""

from __future__ import annotations

from collections.abc import Callable

from .core import Core
from .gather import WrapTest, classes, gather_sweep
from .ir.model import Arg, Block, Const, Function, Instr, LinExpr, PointFn, Value
from .layout import AdjointSpec, Range, Term
from .lower import resolve_wraps
from .merge import merge
from .reverse import ADJOINT_FLAGS
from .simplify import dce
from .sweep import Emit, Reduction, Sweep, domain_box, invariant_only

Words = list[tuple[str, str]]


def with_words(pf: PointFn, words: Words) -> PointFn:
    """The same point function, taking all words of a block as parameters, in place."""
    have = {a.name: a for a in pf.fn.args}
    pf.fn.args = [*pf.index, *(have.get(w) or Arg(t, w) for w, t in words)]
    return pf


def adjoint_sweeps(
    body: PointFn,
    stage: int,
    spec: AdjointSpec,
    assign: frozenset[str],
    words: Words,
    inside: Core,
    wraps: WrapTest,
    inner: Callable[[int], int],
) -> list[Sweep]:
    """All sweeps of one stage's adjoint, in order. ``assign``: shadows that their gather may overwrite. ``inner``: the
    innermost axis of loops of some rank."""
    sweeps: list[Sweep] = []
    added = dict.fromkeys(i.array for i in body.fn.instrs() if i.op == "accum")
    for array in added:
        if any(any(d.axis is not None for d in c) for c in classes(body, array)):
            blend = spec.blend if spec.blend is not None and spec.blend.state == array else None
            sweeps.append(
                gather_sweep(
                    body,
                    stage,
                    array,
                    words,
                    assign=array in assign,
                    inside=inside,
                    wraps=wraps,
                    inner=inner(body.array(array).rank),
                    blend=blend,
                )
            )
    own = own_sweep(body, stage, spec.keep_seed, inside, wraps)
    if own is not None:
        sweeps.append(own)
    return merge(sweeps, inner) if spec.merge else sweeps


def own_sweep(body: PointFn, stage: int, keep_seed: frozenset[str], inside: Core, wraps: WrapTest) -> Sweep | None:
    """The point-wise part: shadows of written arrays, and reductions."""
    reductions: dict[Reduction, None] = {}
    for i in body.fn.instrs():
        if i.op == "accums":
            reductions[Reduction(i.array)] = None
        elif i.op == "accum" and i.access is not None and i.access.is_invariant:
            reductions[Reduction(i.array, i.access)] = None
    stored = [i for i in body.fn.instrs() if i.op == "sstore" and i.array not in keep_seed]
    if not reductions and not stored:
        return None
    order = list(reductions)
    core = _own_function(body, f"s{stage}.own.core", order, keep_seed, invariant_only)
    inside.settle(core)
    edge = _own_function(body, f"s{stage}.own.edge", order, keep_seed, wraps) if inside.sides else None
    titles = [
        f"{verb} " + ", ".join(f"{n}'" for n in dict.fromkeys(names))
        for verb, names in (("update", [i.array for i in stored]), ("sum", [r.param for r in order]))
        if names
    ]
    return Sweep(
        " + ".join(titles),
        stage,
        body.rank,
        domain_box(body.rank),
        inside.box() if inside.sides else None,
        core,
        edge,
        reductions=tuple(order),
        mergeable=not stored,
    )


def _own_function(
    body: PointFn, name: str, order: list[Reduction], keep_seed: frozenset[str], wraps: WrapTest
) -> Function:
    fn, _, _ = body.fn.clone(name)
    fn.linkage, fn.attrs = "internal", ("alwaysinline", "nounwind")
    sums = [Arg("ptr", f".sum{k}") for k in range(len(order))]
    for block in fn.blocks:
        old, block.instrs = block.instrs, []
        for i in old:
            if i.op == "accums":
                _add_to(block, sums[order.index(Reduction(i.array))], i.operands[0])
            elif i.op == "accum":
                if i.access is not None and i.access.is_invariant:
                    _add_to(block, sums[order.index(Reduction(i.array, i.access))], i.operands[0])
            elif not (i.op == "sstore" and i.array in keep_seed):
                block.append(i)
    resolve_wraps(fn, wraps)
    dce(fn)
    fn.args = [*fn.args, *sums]
    return fn


def _add_to(block: Block, cell: Value, value: Value) -> None:
    """``cell += value`` in float64, whatever the precision of the arrays."""

    def emit(op: str, type: str, operands: list[Value], **kw: object) -> Instr:
        return block.append(Instr(op, type, operands, **kw))  # type: ignore[arg-type]

    wide = value if value.type == "double" else emit("fpext", "double", [value])
    before = emit("load", "double", [cell], align=8)
    emit("store", "void", [emit("fadd", "double", [before, wide], flags=ADJOINT_FLAGS), cell], align=8)


def fill_sweep(body: PointFn, stage: int, array: str, words: Words) -> Sweep:
    """Set a whole shadow to zero: for ``assign`` where no single gather writes all of it."""
    param = body.array(array)
    fn = Function(
        f"zero.{array}",
        "void",
        [Arg("i64", f".i{d}") for d in range(param.rank)] + [Arg(t, w) for w, t in words],
        linkage="internal",
        attrs=("alwaysinline", "nounwind"),
    )
    e = Emit(fn)
    e("sstore", "void", [Const(param.elem, "0.000000e+00"), *fn.args[: param.rank]], array=array)
    e("ret", "void", [])
    extents = tuple(f"{array}.n{d}" for d in range(param.rank))
    box = tuple(Range((Term(None),), (Term(None, LinExpr.of(0, {n: 1})),)) for n in extents)
    return Sweep(f"zero {array}'", stage, param.rank, box, None, fn, extents=extents)
