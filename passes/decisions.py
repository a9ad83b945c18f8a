"""Decisions are taken once: the primal run and its adjoint must go the same way.

Fast-math flags let LLVM compute one expression in two ways in two places; where its value decides a branch, a select,
a table entry or an address, the adjoint could then differentiate a branch that the primal run did not take
(``contract`` alone flips half of the comparisons of ``x * y - z`` with a rounded product). So nothing that leads to a
decision carries such flags; all other arithmetic keeps them.

Functions with a kink or a jump decide too: the derivative of ``abs(x)`` is that of one side of 0, the derivative of
``floor(x) * x`` is ``floor(x)``.
"""

from __future__ import annotations

from .ir import ops
from .ir.model import Function, Instr, Value
from .slots import Slots

DECIDING = frozenset(
    [
        "fabs",
        "copysign",
        "minnum",
        "maxnum",
        "minimum",
        "maximum",
        "minimumnum",
        "maximumnum",
        "fdim",
        "remainder",
        "floor",
        "ceil",
        "trunc",
        "rint",
        "nearbyint",
        "round",
        "roundeven",
    ]
)
"""Math functions with a kink or a jump."""


def exact_decisions(fn: Function) -> Function:
    """A copy of ``fn`` without fast-math flags on whatever decides where it goes and which element it touches."""
    new, _, _ = fn.clone()
    memory = Slots(new)
    work: list[Value] = [v for i in new.instrs() for v in _deciding(i)]
    seen: set[Value] = set()
    while work:
        v = work.pop()
        if v in seen or not isinstance(v, Instr):
            continue
        seen.add(v)
        v.flags = tuple(f for f in v.flags if f not in ops.FAST_MATH)
        work += v.operands
        if v.op == "load":
            base = memory.base(v.operands[0])
            work += memory.stored(base) if base is not None else []
    return new


def _deciding(i: Instr) -> list[Value]:
    """Operands that decide: conditions, indices, counts, and those of which a function takes one side."""
    if i.op in ("br", "switch", "frem", "fptosi", "fptoui"):
        return i.operands
    if i.op == "select":
        return i.operands[:1]
    if i.op in ("getelementptr", "inttoptr", "iwrap", "aload", "sload"):
        return i.operands
    if i.op in ("astore", "sstore", "accum"):
        return i.operands[1:]
    if i.op == "call" and (ops.call_kind(i.callee) == "memory" or (ops.math_of(i.callee) or ("",))[0] in DECIDING):
        return i.operands
    return []
