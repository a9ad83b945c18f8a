"""Runs passes in order, with checks, dumps and times between; and the named pipelines."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from irad.errors import IradError

from .base import PASSES, Options, Pass, Value
from .ir import ops
from .ir.model import ArrayParam, Function, Param, PointFn, ScalarParam
from .ir.read import normalised, parsed
from .ir.verify import verify, verify_point
from .ir.write import write_functions

_PREPARE = ("guard", "inline", "guard-memory", "canonical", "unroll", "read", "weak", "decisions", "tidy")
_POINT = (*_PREPARE, "affine", "race")

PIPELINES: dict[str, tuple[str, ...]] = {
    "prepare": _PREPARE,
    "point": _POINT,
    "adjoint": (*_POINT, "reverse"),
    "tangent": (*_POINT, "forward"),
}
"""Named pipelines; a comma-separated list of passes is one too."""


@dataclass(frozen=True)
class Step:
    """What one pass did: how long it took (seconds), and the size of what it gave (instructions, or lines of text)."""

    name: str
    seconds: float
    size: int


def passes_of(pipeline: str) -> tuple[Pass, ...]:
    """The passes of a pipeline's name, or of a list such as ``read,weak,tidy``."""
    names = PIPELINES.get(pipeline) or tuple(n.strip() for n in pipeline.split(",") if n.strip())
    unknown = [n for n in names if n not in PASSES]
    if unknown:
        known = f"pipelines: {', '.join(PIPELINES)}; passes: {', '.join(PASSES)}"
        raise IradError(f"no pass or pipeline {', '.join(unknown)}", remedy=known)
    return tuple(PASSES[n] for n in names)


def run(
    passes: Sequence[Pass],
    value: Value,
    options: Options,
    *,
    check: bool = False,
    watch: Callable[[str, Value], None] | None = None,
) -> tuple[Value, list[Step]]:
    """Apply ``passes`` in order; the result, and a step a pass.

    ``check``: verify the IR after every pass. ``watch`` is called with the name of each pass and what it gave. Between
    two passes text is read, and a function becomes a point function, where the next one needs it; rank and parameters
    of a point function, if not among the options, are taken from the names of its parameters.
    """
    steps = []
    if isinstance(value, str):
        value = normalised(value)
    for p in passes:
        value = _as_taken(p, value, options)
        if "params" in p.needs and not options.params and isinstance(value, Function):
            options = replace(options, rank=rank_of(value), params=params_of(value, options.weak))
        start = time.perf_counter()
        value = p.run(value, options)
        steps.append(Step(p.name, time.perf_counter() - start, _size(value)))
        if check:
            check_value(value)
        if watch is not None:
            watch(p.name, value)
    return value, steps


def check_value(value: Value) -> None:
    """Verify text with LLVM, functions and point functions with ``ir/verify.py``."""
    if isinstance(value, str):
        parsed(value)
    elif isinstance(value, PointFn):
        verify_point(value)
    else:
        verify(value)


def text_of(value: Value, *, locs: bool = False) -> str:
    """The value as LLVM text."""
    if isinstance(value, str):
        return value
    return write_functions(value.fn if isinstance(value, PointFn) else value, locs=locs)


def _as_taken(p: Pass, value: Value, options: Options) -> Value:
    if p.takes != "text" and isinstance(value, str):
        value = PASSES["read"].run(value, options)
    if p.takes == "point" and isinstance(value, Function):
        params = options.params or params_of(value, options.weak)
        value = PointFn(value, options.rank or rank_of(value), params)
    if p.takes == "function" and isinstance(value, PointFn):
        value = value.fn
    return value


def _size(value: Value) -> int:
    if isinstance(value, str):
        return value.count("\n")
    return sum(1 for _ in (value.fn if isinstance(value, PointFn) else value).instrs())


def rank_of(fn: Function) -> int:
    """How many axes a function's point has: by its parameters ``.i0``…, or by its calls of ``irad.index.<axis>``."""
    named = 0
    while named < len(fn.args) and fn.args[named].name == f".i{named}" and fn.args[named].type == "i64":
        named += 1
    called = [int(i.callee[-1]) + 1 for i in fn.instrs() if i.op == "call" and i.callee.startswith("irad.index.")]
    return max([named, *called])


def params_of(fn: Function, weak: frozenset[str] = frozenset()) -> tuple[Param, ...]:
    """Arrays and scalars of a function, from the names of its parameters (``T.data``, ``T.n0``…, ``T.s0``…)."""
    words = fn.args[rank_of(fn) :] if any(a.name == ".i0" for a in fn.args[:1]) else fn.args
    ranks: dict[str, int] = {}
    order: list[str | ScalarParam] = []
    for a in words:
        array, _, word = a.name.rpartition(".")
        if word == "data" and a.type == "ptr":
            ranks[array] = 0
            order.append(array)
        elif array in ranks and re.fullmatch(r"[ns]\d", word):
            ranks[array] = max(ranks[array], int(word[1]) + 1)
        else:
            order.append(ScalarParam(a.name, a.type, a.name in weak))
    elems = _elems(fn)
    return tuple(p if isinstance(p, ScalarParam) else ArrayParam(p, elems.get(p, "double"), ranks[p]) for p in order)


def _elems(fn: Function) -> dict[str, str]:
    """Element types, from the accesses of arrays."""
    found: dict[str, str] = {}
    for i in fn.instrs():
        elem = i.operands[0].type if i.op in ("store", "astore", "sstore", "accum") else i.type
        if i.array and i.op in ops.STRUCTURED and i.op != "accums":
            found.setdefault(i.array.split("@")[0], elem)
        elif i.op in ("load", "store"):
            at = i.operands[-1]
            while getattr(at, "op", "") == "getelementptr":
                at = at.operands[0]  # type: ignore[attr-defined]
            found.setdefault(at.name.removesuffix(".data"), elem)
    return found
