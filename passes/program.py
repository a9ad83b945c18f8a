"""From the stages of a kernel to one LLVM module a launch: the primal, its tangent, its adjoint.

Each of :func:`primal_program`, :func:`tangent_program` and :func:`adjoint_program` picks the sweeps and hands them to
:func:`_assemble`, which lays out the block and writes the text; no sweep is treated in a way of its own after that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from . import asm
from .affine import to_point
from .canonical import canonicalise
from .checks import Requirement, bounds_checks, wrap_key
from .core import core_of
from .forward import tangent
from .gather import classes
from .ir.model import Access, Arg, ArrayParam, Function, Instr, Module, Param, PointFn, ScalarParam
from .ir.read import read_function
from .ir.write import write_module
from .layout import ITEM_SIZE, AdjointSpec, Blend, BlockLayout, Check, Conform, Program, Variant, shadow_words
from .lower import lower, resolve_wraps
from .nest import Tail, Words, loop_order, reduce_text, sweep_text
from .phases import adjoint_sweeps, fill_sweep, with_words
from .plan import PlannedStage, PlannedSweep, plan_text
from .prepare import prepare_function
from .race import check as check_race
from .reverse import ADJOINT_FLAGS, adjoint
from .simplify import dce
from .sweep import Sweep, domain_box, invariant_only, wrapping


class NotFused(Exception):
    """A shadow cannot be blended in one sweep: blend it before."""


FLOPS = frozenset({"fadd", "fsub", "fmul", "fdiv", "frem"})


@dataclass(frozen=True)
class Stage:
    """One point function with its launch domain: ``domain`` stores ``lo0, hi0, …`` through its last parameter.
    ``conforms``: shapes that must agree."""

    point: PointFn
    domain: Function
    loc: object = None
    conforms: tuple[Conform, ...] = ()


def prepare_stage(
    text: str,
    name: str,
    rank: int,
    params: Sequence[Param],
    domain_text: str,
    domain_name: str,
    loc: object = None,
    conforms: Sequence[Conform] = (),
) -> Stage:
    """Numba's LLVM text of a point function and of its domain to a checked stage.

    Raises ``NotDifferentiableError`` for what the passes do not know and ``RaceError`` where points conflict.
    """
    weak = frozenset(p.name for p in params if isinstance(p, ScalarParam) and p.weak)
    fn = prepare_function(text, name, weak)
    point = to_point(fn, rank, tuple(params))
    check_race(point)
    domain = read_function(canonicalise(domain_text, frozenset({domain_name})), domain_name)
    domain.linkage, domain.attrs = "internal", ("alwaysinline", "nounwind")
    return Stage(point, domain, loc, tuple(conforms))


def touched(stage: Stage) -> frozenset[str]:
    """Arrays that a stage reads or writes."""
    return frozenset((*stage.point.read, *stage.point.written))


def keepable(stages: Sequence[Stage], array: str) -> bool:
    """Whether the shadow of a written array may stay as it is: no earlier stage's adjoint would see the difference."""
    return sum(array in touched(s) for s in stages) <= 1


def primal_program(stages: Sequence[Stage], params: Sequence[Param], variant: Variant) -> Program:
    """The kernel itself."""
    stages = _renamed(stages, "p")
    sweeps = [
        _point_sweep(f"run stage {k}", k, s.point, s.point, _words_of(params), variant) for k, s in enumerate(stages)
    ]
    return _assemble(stages, params, variant, [(s, False) for s in sweeps], _words_of(params))


def tangent_program(
    stages: Sequence[Stage], params: Sequence[Param], variant: Variant, active: frozenset[str]
) -> Program:
    """The kernel and its forward derivative in one run: tangents of ``active`` arrays are their shadows, those of
    scalars extra words ``<name>.tangent``."""
    stages = _renamed(stages, "t")
    words = _words_of(params)
    for p in params:
        if p.name in active:
            words += _shadow_words(p) if isinstance(p, ArrayParam) else [(f"{p.name}.tangent", p.type)]
    sweeps = []
    for k, s in enumerate(stages):
        point = tangent(s.point, active)
        point.fn.name = f"{s.point.fn.name}.tangent"
        sweeps.append(_point_sweep(f"run stage {k} with tangents", k, s.point, point, words, variant))
    return _assemble(stages, params, variant, [(s, False) for s in sweeps], words)


def adjoint_program(stages: Sequence[Stage], params: Sequence[Param], variant: Variant, spec: AdjointSpec) -> Program:
    """The adjoint alone: stages in reverse, each as the sweeps of ``phases.py``."""
    stages = _renamed(stages, "a")
    by_name = {p.name: p for p in params}
    aliases: dict[str, tuple[int, str]] = {}
    bodies = []
    for k, s in enumerate(stages):
        body = adjoint(s.point, spec.active)
        if spec.blend is not None:
            _scale_seed(body, spec.blend)
        _use_versions(body, k, stages, aliases)
        dce(body.fn)
        bodies.append(body)
    extra = [replace(by_name[array], name=alias) for alias, (_, array) in aliases.items()]  # type: ignore[type-var]
    words = _words_of([*params, *extra])
    for p in params:
        if p.name in spec.active:
            words += _shadow_words(p) if isinstance(p, ArrayParam) else [(f"{p.name}'.data", "ptr")]
    words.append(("partials.data", "ptr"))
    for body in bodies:
        with_words(body, words)

    def inner(rank: int) -> int:
        return loop_order(rank, variant.reverse)[-1]

    sweeps: list[tuple[Sweep, bool]] = []
    direct = frozenset(a for a in spec.assign if _single_gather(a, bodies))
    if spec.blend is not None and spec.blend.state not in direct:
        raise NotFused
    for a in sorted(spec.assign - direct):
        sweeps.append((fill_sweep(bodies[-1], len(stages) - 1, a, words), False))
    for k in reversed(range(len(stages))):
        wraps = _wrap_test(variant, k)
        wrapped = wrapping(stages[k].point, variant.wraps, lambda access, d, k=k: f"{k}:{wrap_key(access, d)}")
        for sweep in adjoint_sweeps(bodies[k], k, spec, direct, words, core_of(stages[k].point, wrapped), wraps, inner):
            sweeps.append((sweep, False))
            if sweep.reductions:
                sweeps.append((sweep, True))
    reads = frozenset(n for s, _ in sweeps for n in s.touched("aload"))
    program = _assemble(stages, params, variant, sweeps, words)
    saves = tuple((at, array, alias) for alias, (at, array) in aliases.items() if alias in reads)
    return replace(program, reads=reads - aliases.keys(), saves=saves)


def _scale_seed(body: PointFn, blend: Blend) -> None:
    """Let an adjoint read ``c`` times the seed of the rate, in place."""
    c = Arg(body.array(blend.rate).elem, blend.c)
    body.fn.args.append(c)
    for i in [i for i in body.fn.instrs() if i.op == "sload" and i.array == blend.rate]:
        assert i.block is not None
        scaled = Instr("fmul", i.type, [i, c], flags=ADJOINT_FLAGS)
        body.fn.replace_uses(i, scaled)
        scaled.operands[0] = i
        i.block.insert(i.block.instrs.index(i) + 1, scaled)


def _single_gather(array: str, bodies: Sequence[PointFn]) -> bool:
    """Whether one gather sweep makes the whole cotangent of ``array``."""
    found = [c for body in bodies for c in classes(body, array)]
    owners = [body for body in bodies if classes(body, array)]
    return len(owners) == 1 and all(any(d.axis is not None for d in c) for c in found)


def _use_versions(body: PointFn, stage: int, stages: Sequence[Stage], aliases: dict[str, tuple[int, str]]) -> None:
    """Let the adjoint of a stage read arrays as they were before it ran: overwritten ones under the name of a copy."""
    for i in body.fn.instrs():
        if i.op != "aload":
            continue
        later = [k for k in range(stage, len(stages)) if i.array in stages[k].point.written]
        if later:
            alias = f"{i.array}@{later[0]}"
            aliases[alias] = (later[0], i.array)
            i.array = alias


def _renamed(stages: Sequence[Stage], prefix: str) -> list[Stage]:
    """Copies of the stages whose functions have short names that cannot clash."""
    result = []
    for k, s in enumerate(stages):
        fn, _, _ = s.point.fn.clone(f"{prefix}{k}")
        domain, _, _ = s.domain.clone(f"domain{k}")
        result.append(replace(s, point=PointFn(fn, s.point.rank, s.point.params), domain=domain))
    return result


def _words_of(params: Sequence[Param]) -> list[tuple[str, str]]:
    words: list[tuple[str, str]] = []
    for p in params:
        if isinstance(p, ArrayParam):
            words += [(w, "ptr" if w.endswith(".data") else "i64") for w in p.words]
        else:
            words.append((p.name, p.type))
    return words


def _shadow_words(p: ArrayParam) -> list[tuple[str, str]]:
    return [(w, "ptr" if w.endswith(".data") else "i64") for w in shadow_words(p)]


def _wrap_test(variant: Variant, stage: int) -> Callable[[Access, int], bool]:
    def wraps(access: Access, d: int) -> bool:
        if access.dims[d].axis is None:
            return True  # the sign of an index that is the same for all points is decided at run time
        return f"{stage}:{wrap_key(access, d)}" in variant.wraps

    return wraps


def _point_sweep(
    title: str, number: int, primal: PointFn, point: PointFn, words: list[tuple[str, str]], variant: Variant
) -> Sweep:
    """A point function run over its domain, as it stands."""
    wraps = _wrap_test(variant, number)
    wrapped = wrapping(primal, variant.wraps, lambda access, d: f"{number}:{wrap_key(access, d)}")
    inside = core_of(primal, wrapped)
    with_words(point, words)

    def finished(name: str, test: Callable[[Access, int], bool]) -> Function:
        fn, _, _ = point.fn.clone(name)
        fn.linkage, fn.attrs = "internal", ("alwaysinline", "nounwind")
        resolve_wraps(fn, test)
        dce(fn)
        return fn

    core = finished(f"{point.fn.name}.core", invariant_only)
    inside.settle(core)
    edge = finished(f"{point.fn.name}.edge", wraps) if inside.sides else None
    return Sweep(
        title,
        number,
        point.rank,
        domain_box(point.rank),
        inside.box() if inside.sides else None,
        core,
        edge,
    )


def _constants(params: Sequence[Param], variant: Variant, words: list[tuple[str, str]]) -> dict[str, str]:
    """Words that the variant fixes: unit strides. A saved copy has strides of its own."""
    sizes = {p.name: ITEM_SIZE[p.elem] for p in params if isinstance(p, ArrayParam)}
    result = {}
    for prefix, d in variant.unit:
        name = f"{prefix}.s{d}"
        if any(w == name for w, _ in words):
            result[name] = str(sizes[prefix.removesuffix("'").split("@")[0]])
    return result


def _assemble(
    stages: Sequence[Stage],
    params: Sequence[Param],
    variant: Variant,
    sweeps: list[tuple[Sweep, bool]],
    words: list[tuple[str, str]],
) -> Program:
    """Lay out the block and write the module. A sweep that comes with True adds up the sums of the one before."""
    base = len(words)
    types = dict(words)
    for p in params:
        if isinstance(p, ArrayParam):
            types[f"{p.name}'.elem"] = p.elem
    planned_stages, checks = [], []
    for k, s in enumerate(stages):
        requirements = [
            (r, _check(k, r))
            for r in bounds_checks(s.point)
            if not (r.kind == "wraps" and (r.axis is None or f"{k}:{r.key}" in variant.wraps))
        ]
        checks += [c for _, c in requirements] + [c.check for c in s.conforms]
        planned_stages.append(PlannedStage(s.domain, s.point.rank, base, tuple(requirements), s.conforms))
        base += 2 * s.point.rank
    traffic = sum(_bytes(s, params) for s, reduces in sweeps if not reduces)
    flops = sum(_flops(s) for s, reduces in sweeps if not reduces)
    planned: list[PlannedSweep] = []
    for sweep, reduces in sweeps:
        if reduces:
            planned.append(PlannedSweep(sweep, planned[-1].tail, 0.0, True))
            continue
        boxes = 2 * sweep.rank - 1 if sweep.core is not None else 1
        tail = Tail(base, sweep.rank, boxes, planned_stages[sweep.stage].base)
        planned.append(PlannedSweep(sweep, tail, _cost(sweep)))
        base = tail.end
    layout = BlockLayout(tuple(w for w, _ in words), base)
    known = Words(types, layout, _constants(params, variant, words))
    module = Module(declarations=dict(asm.DECLARATIONS))
    for s in stages:
        module.functions[s.domain.name] = s.domain
    texts = []
    for number, part in enumerate(planned):
        if part.reduces:
            texts.append(reduce_text(number, part.sweep, part.tail, known))
            continue
        for fn in part.sweep.functions:
            lower(fn)
            module.functions[fn.name] = fn
        texts.append(sweep_text(number, part.sweep, part.tail, known, variant.reverse))
    texts.append(plan_text(planned_stages, planned, known, variant.reverse))
    return Program(
        text=write_module(module) + "\n" + "\n".join(texts) + asm.SCALAR_LOOP,
        sweeps=len(planned),
        block=layout,
        checks=tuple(checks),
        params=tuple(params),
        written=frozenset(n for s in stages for n in s.point.written),
        partials=max((len(s.reductions) for s, _ in sweeps), default=0),
        strategy=tuple(f"stage {s.stage}: {'sum over tiles' if r else s.title}" for s, r in sweeps),
        bytes_per_point=traffic,
        flops_per_point=flops,
    )


def _check(stage: int, r: Requirement) -> Check:
    return Check(r.kind, r.message, r.loc, f"{stage}:{r.key}", r.remedy)


def _bytes(sweep: Sweep, params: Sequence[Param]) -> int:
    """Bytes a point that must move if every array is read, and written, once."""
    size = {p.name: ITEM_SIZE[p.elem] for p in params if isinstance(p, ArrayParam) and p.rank >= sweep.rank}
    total = 0
    for ops in (("aload",), ("sload",), ("astore",), ("sstore",)):
        total += sum(size.get(n.split("@")[0], 0) for n in sweep.touched(*ops))
    return total


def _core(sweep: Sweep) -> list[Function]:
    """The functions that run at a point of the core."""
    by_name = {f.name: f for f in sweep.functions}
    found: dict[Function, None] = {sweep.core_fn: None}
    work = [sweep.core_fn]
    while work:
        for i in work.pop().instrs():
            callee = by_name.get(i.callee)
            if callee is not None and callee not in found:
                found[callee] = None
                work.append(callee)
    return list(found)


def _flops(sweep: Sweep) -> int:
    """Floating-point operations a point in the core, as written: LLVM shares and removes some."""
    return sum(i.op in FLOPS for f in _core(sweep) for i in f.instrs()) + _math_calls(sweep)


def _math_calls(sweep: Sweep) -> int:
    own = {f.name for f in sweep.functions}
    calls = (i for f in _core(sweep) for i in f.instrs() if i.op == "call" and i.type in ("double", "float"))
    return sum(i.callee not in own for i in calls)


def _cost(sweep: Sweep) -> float:
    """A rough number of nanoseconds a point: ten operations a nanosecond, vectorised, math functions far dearer."""
    return 0.1 * sum(len(b.instrs) for f in _core(sweep) for b in f.blocks) + 5.0 * _math_calls(sweep)
