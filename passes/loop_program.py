"""Loop kernels as launches: one sweep of one tile that calls a function, and the memory that it works with, as text.

The head of a record (``.tape.data``) is eight words that the host owns and starts with zeros:

==== ========================================================================================
word content
==== ========================================================================================
0    where the record lies
1    words in it
2    words for which there is room
3    the local arrays of the run, and their shadows: each has the address of the next before it
4    1 if memory ran out
==== ========================================================================================

The status that the kernel returns goes into the word behind the named ones of a block: 0, the number of an exception,
or -1 where memory ran out. ``irad_tape_free`` of :data:`RELEASE` gives back what a head holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from .ir.model import ArrayParam, Function, Module, Param, ScalarParam
from .ir.verify import verify
from .ir.write import write_module
from .layout import BlockLayout, Program
from .loop_memory import Activity, Memory
from .loop_reverse import TAPE, loop_adjoint
from .loop_shadows import shadow_args
from .loop_tangent import loop_tangent
from .simplify import dce

WORK = 200_000
"""Nanoseconds that every loop kernel is said to take: the GIL is released, as how long it takes is not known."""

OUT_OF_MEMORY = -1

_LOAD_AS = {"i1": "i8"}
_HEADER = 64

_COUNTED = f"""
declare ptr @malloc(i64)
declare void @free(ptr)
define internal noalias ptr @irad.alloc(i64 %size) {{
  %huge = icmp ugt i64 %size, 4611686018427387904
  br i1 %huge, label %none, label %try
try:
  %all = add i64 %size, {_HEADER}
  %p = call ptr @malloc(i64 %all)
  %null = icmp eq ptr %p, null
  br i1 %null, label %none, label %some
some:
  store i64 1, ptr %p
  %data = getelementptr i8, ptr %p, i64 {_HEADER}
  ret ptr %data
none:
  ret ptr null
}}
define internal noalias ptr @irad.alloc.zeroed(i64 %size) {{
  %p = call ptr @irad.alloc(i64 %size)
  %null = icmp eq ptr %p, null
  br i1 %null, label %done, label %fill
fill:
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %size, i1 false)
  br label %done
done:
  ret ptr %p
}}
define internal void @irad.incref(ptr %data) {{
  %p = getelementptr i8, ptr %data, i64 -{_HEADER}
  %n = load i64, ptr %p
  %more = add i64 %n, 1
  store i64 %more, ptr %p
  ret void
}}
define internal void @irad.decref(ptr %data) {{
  %p = getelementptr i8, ptr %data, i64 -{_HEADER}
  %n = load i64, ptr %p
  %less = sub i64 %n, 1
  store i64 %less, ptr %p
  %last = icmp eq i64 %less, 0
  br i1 %last, label %give, label %done
give:
  call void @free(ptr %p)
  br label %done
done:
  ret void
}}
"""
"""Local arrays of a run that keeps nothing."""

_TAPED = f"""
declare ptr @malloc(i64)
declare ptr @realloc(ptr, i64)
define internal noalias ptr @irad.tape.alloc(ptr %tape, i64 %size) {{
  %huge = icmp ugt i64 %size, 4611686018427387904
  br i1 %huge, label %none, label %try
try:
  %all = add i64 %size, {_HEADER}
  %p = call ptr @malloc(i64 %all)
  %null = icmp eq ptr %p, null
  br i1 %null, label %none, label %some
some:
  %list = getelementptr i64, ptr %tape, i64 3
  %next = load ptr, ptr %list
  store ptr %next, ptr %p
  store ptr %p, ptr %list
  %data = getelementptr i8, ptr %p, i64 {_HEADER}
  ret ptr %data
none:
  ret ptr null
}}
define internal noalias ptr @irad.tape.zeroed(ptr %tape, i64 %size) {{
  %p = call ptr @irad.tape.alloc(ptr %tape, i64 %size)
  %null = icmp eq ptr %p, null
  br i1 %null, label %none, label %fill
fill:
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %size, i1 false)
  ret ptr %p
none:
  %flag = getelementptr i64, ptr %tape, i64 4
  store i64 1, ptr %flag
  ret ptr null
}}
define internal i1 @irad.tape.room(ptr %tape, i64 %words) noinline cold {{
  %wide = shl i64 %words, 4
  %data = load ptr, ptr %tape
  %new = call ptr @realloc(ptr %data, i64 %wide)
  %null = icmp eq ptr %new, null
  br i1 %null, label %none, label %some
some:
  store ptr %new, ptr %tape
  %at = getelementptr i64, ptr %tape, i64 2
  %twice = shl i64 %words, 1
  store i64 %twice, ptr %at
  ret i1 true
none:
  %flag = getelementptr i64, ptr %tape, i64 4
  store i64 1, ptr %flag
  %length = getelementptr i64, ptr %tape, i64 1
  store i64 0, ptr %length
  ret i1 false
}}
define internal ptr @irad.tape.push(ptr %tape, i64 %words) alwaysinline {{
  %length = getelementptr i64, ptr %tape, i64 1
  %before = load i64, ptr %length
  %after = add i64 %before, %words
  %room = getelementptr i64, ptr %tape, i64 2
  %have = load i64, ptr %room
  %fits = icmp ule i64 %after, %have
  br i1 %fits, label %done, label %grow, !prof !900010
grow:
  %grown = call i1 @irad.tape.room(ptr %tape, i64 %after)
  br label %done
done:
  %now = load i64, ptr %length
  %end = add i64 %now, %words
  store i64 %end, ptr %length
  %data = load ptr, ptr %tape
  %slot = getelementptr i64, ptr %data, i64 %now
  ret ptr %slot
}}
!900010 = !{{!"branch_weights", i32 100000, i32 1}}
"""
"""Local arrays and the record of a run that is walked backwards. Where there is no more room, the record starts anew
in the room there is: it is worthless then, and the status says so."""

RELEASE = f"""
declare void @free(ptr)
define void @irad_tape_free(ptr %tape) {{
  %data = load ptr, ptr %tape
  call void @free(ptr %data)
  %list = getelementptr i64, ptr %tape, i64 3
  %first = load ptr, ptr %list
  br label %head
head:
  %p = phi ptr [ %first, %0 ], [ %next, %body ]
  %end = icmp eq ptr %p, null
  br i1 %end, label %done, label %body
body:
  %next = load ptr, ptr %p
  call void @free(ptr %p)
  br label %head
done:
  call void @llvm.memset.p0.i64(ptr %tape, i8 0, i64 {_HEADER}, i1 false)
  ret void
}}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""
"""A module that gives back what the head of a record holds."""


def loop_reached(fn: Function, params: Sequence[Param], active: frozenset[str]) -> frozenset[str]:
    """The arrays that carry derivatives with respect to ``active``: the active ones, and those stored into."""
    return Activity(Memory(fn, tuple(params)), active).arrays


def loop_touched(fn: Function, params: Sequence[Param]) -> tuple[frozenset[str], frozenset[str]]:
    """Names of the arrays that a loop kernel reads, and of those that it writes."""
    memory = Memory(fn, tuple(params))
    return (
        frozenset(o for o in memory.read if isinstance(o, str)),
        frozenset(o for o in memory.written if isinstance(o, str)),
    )


def primal_loop(fn: Function, params: Sequence[Param]) -> Program:
    """The kernel itself."""
    new, _, _ = fn.clone("primal")
    return _program(new, params, [], _COUNTED, ("run the kernel",))


def tangent_loop(fn: Function, params: Sequence[Param], active: frozenset[str]) -> Program:
    """The kernel and its forward derivative in one run."""
    new = loop_tangent(fn, tuple(params), active)
    extra = shadow_args([p for p in params if isinstance(p, ArrayParam)], active)
    extra += [(p.type, f"{p.name}.tangent") for p in params if isinstance(p, ScalarParam) and p.name in active]
    return _program(new, params, extra, _COUNTED, ("run the kernel with tangents",))


def adjoint_loop(fn: Function, params: Sequence[Param], active: frozenset[str]) -> tuple[Program, Program]:
    """The run that records, and the one that walks the record backwards. ``strategy`` of the second says what is
    recorded, ``reads`` which arrays it reads again."""
    made = loop_adjoint(fn, tuple(params), active)
    extra = [*shadow_args(params, active), ("ptr", TAPE)]
    augmented = _program(made.augmented, params, extra, _TAPED, ("run the kernel and record",))
    kept = tuple(f"recorded at {line}" for line in made.kept) or ("nothing is recorded",)
    reverse = _program(made.reverse, params, extra, "", ("walk backwards, sequentially", *kept), made.reads)
    return augmented, reverse


_MEMSET = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"


def _without_own(text: str) -> str:
    """Without declarations of functions that the runtime defines."""
    return "\n".join(line for line in text.splitlines() if not (line.startswith("declare ") and " @irad." in line))


def _program(
    fn: Function,
    params: Sequence[Param],
    extra: Sequence[tuple[str, str]],
    runtime: str,
    strategy: tuple[str, ...],
    reads: frozenset[str] = frozenset(),
) -> Program:
    dce(fn)
    verify(fn)
    fn.linkage, fn.attrs = "internal", ("nounwind",)
    words: list[tuple[str, str]] = []
    for p in params:
        if isinstance(p, ArrayParam):
            words += [(w, "ptr" if w.endswith(".data") else "i64") for w in p.words]
        else:
            words.append((p.name, p.type))
    words += [(name, type) for type, name in extra]
    layout = BlockLayout(tuple(w for w, _ in words), len(words) + 1)
    text = _without_own(write_module(Module(functions={fn.name: fn})))
    if "@llvm.memset.p0.i64" in runtime and _MEMSET not in text:
        text = f"{_MEMSET}\n{text}"
    written = loop_touched(fn, params)[1] if not extra else frozenset()
    sweep = _sweep(fn, words, layout)
    return Program(
        text=f"{text}\n{runtime}\n{sweep}\n{_PLAN}",
        sweeps=1,
        block=layout,
        checks=(),
        params=tuple(params),
        reads=reads,
        written=written,
        strategy=strategy,
    )


_PLAN = f"""
define i64 @plan(ptr %block, ptr %out) {{
  store i64 {WORK}, ptr %out
  %tiles = getelementptr i64, ptr %out, i64 1
  store i64 1, ptr %tiles
  ret i64 0
}}
"""


def _sweep(fn: Function, words: Sequence[tuple[str, str]], layout: BlockLayout) -> str:
    """``sweep0``: hands the words of a block to the function and stores what it returns behind them."""
    lines, given = [], []
    for k, (_, type) in enumerate(words):
        lines.append(f"  %p{k} = getelementptr i64, ptr %block, i64 {k}")
        if type in _LOAD_AS:
            lines.append(f"  %w{k} = load {_LOAD_AS[type]}, ptr %p{k}, align 8")
            lines.append(f"  %v{k} = trunc {_LOAD_AS[type]} %w{k} to {type}")
        else:
            lines.append(f"  %v{k} = load {type}, ptr %p{k}, align 8")
        given.append(f"{type} %v{k}")
    call = f"call {fn.type} @{fn.name}({', '.join(given)})"
    if fn.type == "void":
        lines.append(f"  {call}")
    else:
        lines += [f"  %status = {call}", "  %wide = sext i32 %status to i64"]
        result = "%wide"
        if words and words[-1][1] == "ptr" and words[-1][0] == TAPE:
            lines += [
                f"  %flag = getelementptr i64, ptr %v{len(words) - 1}, i64 4",
                "  %lost = load i64, ptr %flag",
                "  %full = icmp ne i64 %lost, 0",
                f"  %result = select i1 %full, i64 {OUT_OF_MEMORY}, i64 %wide",
            ]
            result = "%result"
        lines += [
            f"  %end = getelementptr i64, ptr %block, i64 {len(layout.words)}",
            f"  store i64 {result}, ptr %end",
        ]
    body = "\n".join(lines)
    return f"define void @sweep0(i64 %lo, i64 %hi, ptr %block) {{\n{body}\n  ret void\n}}\n"
