"""The plan of a launch: everything that must be known, and everything that may refuse it, before a byte is written.

``i64 @plan(ptr block, ptr out)`` evaluates the launch domain of each stage, checks every access against the extents
of its array, cuts each sweep's box into core and edges and these into tiles, and leaves boxes and tiles in the block's
tail (``nest.py`` reads them there). It is straight-line integer code: some hundred nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from .asm import Asm
from .checks import Requirement
from .ir.model import Bounds, Function
from .layout import Check, Conform, Range, Term
from .nest import Tail, Words, loop_order
from .sweep import Sweep

TILE_POINTS = 4096
ROW_POINTS = 16384
MOST_TILES = 1024


@dataclass(frozen=True)
class PlannedSweep:
    """A sweep, where its boxes go, and what one point costs. ``reduces``: it adds up the sums of that sweep."""

    sweep: Sweep
    tail: Tail
    nanoseconds: float
    reduces: bool = False


@dataclass(frozen=True)
class PlannedStage:
    """The domain function of a stage, its rank, where its bounds go in the tail, and what its accesses and its arrays'
    shapes require."""

    domain: Function
    rank: int
    base: int
    requirements: tuple[tuple[Requirement, Check], ...]
    conforms: tuple[Conform, ...] = ()


def plan_text(stages: list[PlannedStage], sweeps: list[PlannedSweep], words: Words, reverse: bool) -> str:
    """LLVM text of ``@plan``."""
    a = Asm()
    names: dict[str, str] = {}
    for name, type in words.types.items():
        if type == "i64" and name in words.layout:
            names[name] = words.load(a, "%block", name)
    domains = [_domain(a, s, words) for s in stages]
    failed = []
    for k, s in enumerate(stages):
        failed += [_requirement(a, r, domains[k], names) for r, _ in s.requirements]
        failed += [_misfit(a, c, names) for c in s.conforms]
    work: list[str] = []
    for number, p in enumerate(sweeps):
        if p.reduces:
            tiles = "1"
        else:
            tiles, points = _boxes(a, p, domains[p.sweep.stage], names, reverse)
            work.append(a.mul(points, str(max(1, round(16 * p.nanoseconds)))))
        a.set_word("%out", 1 + number, tiles)
    total = "0"
    for w in work:
        total = a.add(w, total)
    a.set_word("%out", 0, a("lshr i64 {}, 4", total))
    result = "0"
    for k in reversed(range(len(failed))):
        a.set_word("%out", 1 + len(sweeps) + k, a("zext i1 {} to i64", failed[k]))
        result = a("select i1 {}, i64 {}, i64 {}", failed[k], str(-1 - k), result)
    a.do("ret i64 {}", result)
    return a.text("define i64 @plan(ptr noalias %block, ptr noalias %out)") + "\n"


def _domain(a: Asm, stage: PlannedStage, words: Words) -> tuple[list[str], list[str]]:
    """Bounds of the launch domain; an empty axis gets ``hi = lo``."""
    box = a(f"alloca [{max(1, 2 * stage.rank)} x i64], align 8")
    args = []
    for arg in stage.domain.args[:-1]:
        args.append(f"{arg.type} {words.load(a, '%block', arg.name)}")
    a.do(f'call void @"{stage.domain.name}"({", ".join([*args, f"ptr {box}"])})')
    lo, hi = [], []
    for d in range(stage.rank):
        low = a.word(box, 2 * d)
        high = a.extreme("smax", [low, a.word(box, 2 * d + 1)])
        a.set_word("%block", stage.base + 2 * d, low)
        a.set_word("%block", stage.base + 2 * d + 1, high)
        lo.append(low)
        hi.append(high)
    return lo, hi


def _requirement(a: Asm, r: Requirement, domain: tuple[list[str], list[str]], names: dict[str, str]) -> str:
    """Whether a requirement fails; one that concerns no point holds."""
    lo, hi = _guarded(a, r.guard, domain, names)
    off = a.lin_saturated(r.offset, names)
    n = names[f"{r.array}.n{r.dim}"]
    first = off if r.axis is None else a.add_saturated(lo[r.axis], off)
    last = off if r.axis is None else a.add_saturated(a.add(hi[r.axis], "-1"), off)
    if r.kind == "wraps":
        bad = a("icmp slt i64 {}, 0", first)
    elif r.kind == "collides":
        bad = a("and i1 {}, {}", a("icmp slt i64 {}, 0", first), a("icmp sge i64 {}, {}", a.sub(last, first), n))
    else:
        least = a("sub i64 0, {}", n) if r.wraps else "0"
        bad = a("or i1 {}, {}", a("icmp slt i64 {}, {}", first, least), a("icmp sge i64 {}, {}", last, n))
    for axis in range(len(lo)):
        bad = a("and i1 {}, {}", bad, a("icmp slt i64 {}, {}", lo[axis], hi[axis]))
    return bad


def _guarded(
    a: Asm, guard: tuple[Bounds, ...], domain: tuple[list[str], list[str]], names: dict[str, str]
) -> tuple[list[str], list[str]]:
    """The smallest box around the points of the domain that a guard lets through."""
    lo, hi = [*domain[0], "0"], [*domain[1], "1"]
    for axis, b in enumerate(guard):
        lo[axis] = a.extreme("smax", [lo[axis], *(a.lin_saturated(e, names) for e in b.lo)])
        hi[axis] = a.extreme("smin", [hi[axis], *(a.lin_saturated(e, names) for e in b.hi)])
        holes = [a.lin_saturated(e, names) for e in b.holes]
        for _ in holes:  # each round takes at least one of those off that are at an end
            for hole in holes:
                at_lo = a("icmp eq i64 {}, {}", hole, lo[axis])
                lo[axis] = a.add(lo[axis], a("zext i1 {} to i64", at_lo))
                at_hi = a("icmp eq i64 {}, {}", hole, a.add(hi[axis], "-1"))
                hi[axis] = a.sub(hi[axis], a("zext i1 {} to i64", at_hi))
    return lo, hi


def _misfit(a: Asm, c: Conform, names: dict[str, str]) -> str:
    """Whether two shapes do not agree."""
    found = a.extreme("smax", [a.add(names[f"{c.array}.n{c.axis}"], str(-c.cut)), "0"])
    wanted = a.extreme("smax", [a.add(names[f"{c.target}.n{c.axis}"], str(-c.target_cut)), "0"])
    return a("icmp ne i64 {}, {}", found, wanted)


def _term(a: Asm, t: Term, domain: tuple[list[str], list[str]], names: dict[str, str]) -> str:
    off = a.lin_saturated(t.offset, names)
    return off if t.base is None else a.add_saturated(domain[t.base[0] == "hi"][t.base[1]], off)


def _ranges(
    a: Asm, ranges: tuple[Range, ...], inner: bool, domain: tuple[list[str], list[str]], names: dict[str, str]
) -> tuple[list[str], list[str]]:
    lo = [a.extreme("smax" if inner else "smin", [_term(a, t, domain, names) for t in r.lo]) for r in ranges]
    hi = [a.extreme("smin" if inner else "smax", [_term(a, t, domain, names) for t in r.hi]) for r in ranges]
    return lo, hi


def _boxes(
    a: Asm, p: PlannedSweep, domain: tuple[list[str], list[str]], names: dict[str, str], reverse: bool
) -> tuple[str, str]:
    """Cut a sweep into boxes and tiles, store them; returns the numbers of tiles and of points."""
    s, r = p.sweep, p.sweep.rank
    order = loop_order(r, reverse)
    lo, hi = _ranges(a, s.outer, False, domain, names)
    for d, extent in enumerate(s.extents):
        lo[d] = a.extreme("smax", [lo[d], "0"])
        hi[d] = a.extreme("smin", [hi[d], names[extent]])
    hi = [a.extreme("smax", pair) for pair in zip(lo, hi, strict=True)]
    points = "1"
    for d in range(r):
        points = a.mul(points, a.sub(hi[d], lo[d]))
    boxes = [(list(lo), list(hi))]
    if s.core is not None:
        k_lo, k_hi = _ranges(a, s.core, True, domain, names)
        k_lo = [a.extreme("smax", pair) for pair in zip(lo, k_lo, strict=True)]
        k_hi = [a.extreme("smin", pair) for pair in zip(hi, k_hi, strict=True)]
        some = "true"
        for d in range(r):
            some = a("and i1 {}, {}", some, a("icmp slt i64 {}, {}", k_lo[d], k_hi[d]))
        # An empty core sits at the upper corner, so that the first edge box is the whole.
        k_lo = [a("select i1 {}, i64 {}, i64 {}", some, k, h) for k, h in zip(k_lo, hi, strict=True)]
        k_hi = [a("select i1 {}, i64 {}, i64 {}", some, k, h) for k, h in zip(k_hi, hi, strict=True)]
        inner = order[-1]
        a.set_word("%block", p.tail.inner, k_lo[inner])
        a.set_word("%block", p.tail.inner + 1, k_hi[inner])
        k_lo[inner], k_hi[inner] = lo[inner], hi[inner]
        boxes = [(k_lo, k_hi)]
        at_lo, at_hi = list(lo), list(hi)
        for d in order[:-1]:
            boxes.append((at_lo.copy(), [*at_hi[:d], k_lo[d], *at_hi[d + 1 :]]))
            boxes.append(([*at_lo[:d], k_hi[d], *at_lo[d + 1 :]], at_hi.copy()))
            at_lo[d], at_hi[d] = k_lo[d], k_hi[d]
    budget = a.extreme("smax", [str(TILE_POINTS), a("sdiv i64 {}, {}", points, str(MOST_TILES))])
    first = "0"
    for b, (b_lo, b_hi) in enumerate(boxes):
        a.set_word("%block", p.tail.first + b, first)
        tiles = _tiles(a, p.tail.box(b), b_lo, b_hi, budget, order)
        first = a.add(tiles, first)
    a.set_word("%block", p.tail.first + len(boxes), first)
    return first, points


def _tiles(a: Asm, base: int, lo: list[str], hi: list[str], budget: str, order: tuple[int, ...]) -> str:
    """Store a box and its tiles; rows stay whole up to ``ROW_POINTS``, then the budget is filled from inside out."""
    r = len(lo)
    left, tiles = budget, "1"
    for depth, d in enumerate(reversed(order)):
        n = a.sub(hi[d], lo[d])
        most = a.extreme("smax", [left, str(ROW_POINTS)]) if depth == 0 else left
        size = a.extreme("smax", [a.extreme("smin", [n, most]), "1"])
        count = a("sdiv i64 {}, {}", a.add(n, a.add(size, "-1")), size)
        left = a("sdiv i64 {}, {}", left, size)
        for k, v in enumerate((lo[d], hi[d], size, count)):
            a.set_word("%block", base + k * r + d, v)
        tiles = a.mul(tiles, count)
    return tiles
