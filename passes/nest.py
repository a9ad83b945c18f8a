"""A sweep as CPU code: tiles of boxes, each a loop nest around the function of a point.

``void @sweep<s>(i64 lo, i64 hi, ptr block)`` runs tiles ``lo … hi``. Which points a tile holds depends on the boxes
alone (``plan.py`` has written them into the block's tail), never on the number of threads, and the innermost axis is
the one that vectorises: so the same launch gives the same bits however its tiles are shared out.

The nest itself is a function of its own whose data pointers are ``noalias``: the launch has checked arrays and
shadows pairwise. Sums over points start at -0.0 in each tile and end in ``partials[tile][k]``; :func:`reduce_text`
adds them up in the order of tiles, in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

from .asm import Asm
from .ir.model import Function
from .layout import ITEM_SIZE, BlockLayout
from .sweep import Sweep


@dataclass(frozen=True)
class Tail:
    """Where ``plan`` leaves what one sweep needs: boxes, each ``lo, hi, tile, count`` an axis, then the first tile of
    each box and the number of all tiles, then the core's range along the innermost axis.

    The first box holds the rows of the core in full length: their ends, outside that range, are run with the guarded
    function while the row is in the cache. The other boxes are what the core leaves of the other axes."""

    base: int
    rank: int
    boxes: int
    domain: int

    def box(self, b: int) -> int:
        return self.base + 4 * self.rank * b

    @property
    def first(self) -> int:
        return self.base + 4 * self.rank * self.boxes

    @property
    def inner(self) -> int:
        return self.first + self.boxes + 1

    @property
    def end(self) -> int:
        return self.inner + 2


@dataclass(frozen=True)
class Words:
    """The words of a block with their types, and those that the variant knows to be constant."""

    types: dict[str, str]
    layout: BlockLayout
    constants: dict[str, str]

    def load(self, a: Asm, base: str, name: str) -> str:
        return self.constants.get(name) or a.word(base, self.layout.at(name), self.types[name])


def loop_order(rank: int, reverse: bool) -> tuple[int, ...]:
    """Axes from outermost to innermost."""
    return tuple(reversed(range(rank))) if reverse else tuple(range(rank))


def sweep_text(number: int, sweep: Sweep, tail: Tail, words: Words, reverse: bool) -> str:
    """LLVM text of ``@sweep<number>`` and its nests."""
    name = f"sweep{number}"
    rim = sweep.edge_fn if sweep.core is not None else None
    parts: list[Part] = [(sweep.core_fn, rim, f"{name}.core")]
    if rim is not None and tail.boxes > 1:
        parts.append((sweep.row_fn or rim, None, f"{name}.edge"))
    texts = [_nest_text(fn, rim, nest, sweep, words, reverse) for fn, rim, nest in parts]
    return _driver_text(name, sweep, tail, words, parts, reverse) + "".join(texts)


Part = tuple[Function, Function | None, str]


def _outer_args(functions: tuple[Function | None, ...], sweep: Sweep, words: Words) -> list[tuple[str, str]]:
    """Type and name of what a nest takes besides its box: the words that its functions use and that vary."""
    return list(
        dict.fromkeys(
            (a.type, a.name)
            for fn in functions
            if fn is not None
            for a in fn.args[_indices(fn, sweep) :]
            if a.name not in words.constants and not a.name.startswith(".sum")
        )
    )


def _indices(fn: Function, sweep: Sweep) -> int:
    """How many parameters of a function say where it runs: an index an axis, or of a row one more."""
    return sweep.rank + (fn is sweep.row_fn)


def _driver_text(name: str, sweep: Sweep, tail: Tail, words: Words, parts: list[Part], reverse: bool) -> str:
    a = Asm()
    r, block = sweep.rank, "%block"
    values: dict[str, str] = {}
    for fn, rim, _ in parts:
        for _, arg in _outer_args((fn, rim), sweep, words):
            if arg not in values:
                if arg[:3] in (".lo", ".hi"):
                    at = tail.domain + 2 * int(arg[3:]) + (arg[:3] == ".hi")
                    values[arg] = a.word(block, at)
                else:
                    values[arg] = words.load(a, block, arg)
    partials = a.word(block, words.layout.at("partials.data"), "ptr") if sweep.reductions else ""
    firsts = [a.word(block, tail.first + b) for b in range(1, tail.boxes)]
    a.do("br label %head")
    a.label("head")
    a.lines.append("  %t = phi i64 [ %lo, %entry ], [ %next, %latch ]")
    more = a("icmp slt i64 %t, %hi")
    a.do("br i1 {}, label %tile, label %done", more)
    a.label("tile")
    box = "0"
    for f in firsts:
        box = a.add(a("zext i1 {} to i64", a("icmp sge i64 %t, {}", f)), box)
    start = a.word(block, a.add(box, str(tail.first)))
    base = a.add(a.mul(box, str(4 * r)), str(tail.base))
    rest = a.sub("%t", start)
    lo, hi = [""] * r, [""] * r
    for d in reversed(loop_order(r, reverse)):
        count = a.word(block, a.add(base, str(3 * r + d)))
        size = a.word(block, a.add(base, str(2 * r + d)))
        k = a("urem i64 {}, {}", rest, count)
        rest = a("udiv i64 {}, {}", rest, count)
        lo[d] = a.add(a.word(block, a.add(base, str(d))), a.mul(k, size))
        hi[d] = a.extreme("smin", [a.add(lo[d], size), a.word(block, a.add(base, str(r + d)))])
    sums = ""
    if sweep.reductions:
        sums = a("getelementptr inbounds double, ptr {}, i64 {}", partials, a.mul("%t", str(len(sweep.reductions))))
    bounds = [f"i64 {v}" for pair in zip(lo, hi, strict=True) for v in pair]
    if len(parts) == 2:
        a.do("br i1 {}, label %core, label %edge", a("icmp eq i64 {}, 0", box))
    else:
        a.do("br label %core")
    for (fn, rim, nest), label in zip(parts, ("core", "edge"), strict=False):
        a.label(label)
        args = [*bounds, *(f"{t} {values[n]}" for t, n in _outer_args((fn, rim), sweep, words))]
        if sums:
            args.append(f"ptr {sums}")
        if rim is not None:
            args += [f"i64 {a.word(block, tail.inner + k)}" for k in range(2)]
        a.do("{}", f"call void @{nest}({', '.join(args)})")
        a.do("br label %latch")
    a.label("latch")
    a.do("%next = add nsw i64 %t, 1")
    a.do("br label %head")
    a.label("done")
    a.do("ret void")
    return a.text(f"define void @{name}(i64 %lo, i64 %hi, ptr noalias %block)") + "\n"


def _nest_text(fn: Function, rim: Function | None, nest: str, sweep: Sweep, words: Words, reverse: bool) -> str:
    """The loops around ``fn``; with ``rim``, points of a row outside ``klo … khi`` run that instead."""
    a = Asm()
    order = loop_order(sweep.rank, reverse)
    params = [f"i64 %.box.{e}{d}" for d in range(sweep.rank) for e in ("lo", "hi")]
    params += [f'{"ptr noalias" if t == "ptr" else t} %"{n}"' for t, n in _outer_args((fn, rim), sweep, words)]
    if sweep.reductions:
        params.append("ptr noalias %.sums")
    for k in range(len(sweep.reductions)):
        a.do(f"%.sum{k} = alloca double, align 8")
        a.do(f"store double -0.000000e+00, ptr %.sum{k}, align 8")
    inner = order[-1]
    if rim is not None:
        params += ["i64 %.klo", "i64 %.khi"]
        first = a.extreme("smin", [a.extreme("smax", ["%.klo", f"%.box.lo{inner}"]), f"%.box.hi{inner}"])
        last = a.extreme("smax", [a.extreme("smin", ["%.khi", f"%.box.hi{inner}"]), first])
        before = a.sub(first, f"%.box.lo{inner}")
        outside = a.add(before, a.sub(f"%.box.hi{inner}", last))
    else:
        first, last = f"%.box.lo{inner}", f"%.box.hi{inner}"
    point = [f"%.i{d}" for d in range(sweep.rank)]
    outer = [a.loop(f".i{d}", f"%.box.lo{d}", f"%.box.hi{d}") for d in order[:-1]]
    if fn is sweep.row_fn:
        _call(a, fn, [*point[:inner], *point[inner + 1 :], first, last], sweep, words)
    else:
        row = a.loop(f".i{inner}", first, last)
        _call(a, fn, point, sweep, words)
        a.end_loop(row)
    if rim is not None:
        edge = a.loop(".m", "0", outside)
        left = a("icmp slt i64 %.m, {}", before)
        at = a(
            "select i1 {}, i64 {}, i64 {}", left, a.add("%.m", f"%.box.lo{inner}"), a.add(a.sub("%.m", before), last)
        )
        point[inner] = at
        _call(a, rim, point, sweep, words)
        a.end_loop(edge, scalar=True)
    for loop in reversed(outer):
        a.end_loop(loop)
    for k in range(len(sweep.reductions)):
        total = a(f"load double, ptr %.sum{k}, align 8")
        cell = a("getelementptr inbounds double, ptr %.sums, i64 {}", str(k))
        a.do("store double {}, ptr {}, align 8", total, cell)
    a.do("ret void")
    return a.text(f"define internal void @{nest}({', '.join(params)}) noinline nounwind")


def _call(a: Asm, fn: Function, point: list[str], sweep: Sweep, words: Words) -> None:
    args = [f"i64 {x}" for x in point]
    for arg in fn.args[len(point) :]:
        value = words.constants.get(arg.name) or (f"%{arg.name}" if arg.name.startswith(".sum") else f'%"{arg.name}"')
        args.append(f"{arg.type} {value}")
    a.do("{}", f'call void @"{fn.name}"({", ".join(args)})')


def reduce_text(number: int, sweep: Sweep, tail: Tail, words: Words) -> str:
    """LLVM text of ``@sweep<number>``, one tile, which adds the partial sums of ``sweep`` to their cotangents.

    A sum of a place that is not in the array is one of an access that was not executed: no point has added to it."""
    a = Asm()
    k_all = len(sweep.reductions)
    partials = a.word("%block", words.layout.at("partials.data"), "ptr")
    tiles = a.word("%block", tail.first + tail.boxes)
    a.do("br label %head")
    a.label("head")
    a.do("%t = phi i64 [ 0, %entry ], [ %next, %body ]")
    for k in range(k_all):
        a.do(f"%s{k} = phi double [ -0.000000e+00, %entry ], [ %n{k}, %body ]")
    a.do("br i1 {}, label %body, label %done", a("icmp slt i64 %t, {}", tiles))
    a.label("body")
    base = a.mul("%t", str(k_all))
    for k in range(k_all):
        p = a("getelementptr inbounds double, ptr {}, i64 {}", partials, a.add(base, str(k)))
        a.do(f"%n{k} = fadd double %s{k}, {{}}", a("load double, ptr {}, align 8", p))
    a.do("%next = add nsw i64 %t, 1")
    a.do("br label %head")
    a.label("done")
    for k, reduction in enumerate(sweep.reductions):
        cell = words.load(a, "%block", f"{reduction.param}'.data")
        elem = "double"
        if reduction.access is not None:
            elem = words.types[f"{reduction.param}'.elem"]
            names = {n: words.load(a, "%block", n) for index in reduction.access.dims for n, _ in index.offset.terms}
            offset, inside = "0", "true"
            for d, index in enumerate(reduction.access.dims):
                n = words.load(a, "%block", f"{reduction.param}.n{d}")
                x = a.lin_saturated(index.offset, names)
                if index.wraps:
                    x = a("select i1 {}, i64 {}, i64 {}", a("icmp slt i64 {}, 0", x), a("add i64 {}, {}", x, n), x)
                inside = a("and i1 {}, {}", inside, a("icmp ult i64 {}, {}", x, n))
                offset = a.add(a.mul(x, words.load(a, "%block", f"{reduction.param}'.s{d}")), offset)
            a.do(f"br i1 {{}}, label %cell{k}, label %past{k}", inside)
            a.label(f"cell{k}")
            cell = a("getelementptr inbounds i8, ptr {}, i64 {}", cell, offset)
        size = ITEM_SIZE[elem]
        old = a(f"load {elem}, ptr {{}}, align {size}", cell)
        wide = old if elem == "double" else a("fpext float {} to double", old)
        total = a(f"fadd double {{}}, %s{k}", wide)
        new = total if elem == "double" else a("fptrunc double {} to float", total)
        a.do(f"store {elem} {{}}, ptr {{}}, align {size}", new, cell)
        if reduction.access is not None:
            a.do(f"br label %past{k}")
            a.label(f"past{k}")
    a.do("ret void")
    return a.text(f"define void @sweep{number}(i64 %lo, i64 %hi, ptr %block)") + "\n"
