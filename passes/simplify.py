"""Removes what nothing uses: instructions without effect, slots that are never read, blocks that are never reached.

LLVM does all of this too; it is done here so that the passes can say which arrays an adjoint reads, and because a
gather holds one copy of the body an offset.
"""

from __future__ import annotations

from collections import Counter

from .ir import ops
from .ir.graph import reverse_postorder
from .ir.model import Function, Instr, Value


def has_effect(i: Instr) -> bool:
    """Whether an instruction must stay though nothing uses its value."""
    return ops.has_effect(i.op, i.callee)


def drop_unreachable(fn: Function) -> None:
    """Remove blocks that cannot be reached, and their edges from phis."""
    live = set(reverse_postorder(fn))
    if len(live) == len(fn.blocks):
        return
    fn.blocks = [b for b in fn.blocks if b in live]
    for phi in (p for b in fn.blocks for p in b.phis):
        pairs = [(v, b) for v, b in zip(phi.operands, phi.targets, strict=True) if b in live]
        phi.operands, phi.targets = [v for v, _ in pairs], [b for _, b in pairs]


def dce(fn: Function) -> None:
    """Remove dead instructions and slots, in place."""
    drop_unreachable(fn)
    # An alloca used by nothing but stores into it is dead, stores included.
    only_stored: dict[Value, bool] = {i: True for i in fn.instrs() if i.op == "alloca"}
    uses: Counter[Value] = Counter()
    for i in fn.instrs():
        for k, v in enumerate(i.operands):
            uses[v] += 1
            if v in only_stored and not (i.op == "store" and k == 1):
                only_stored[v] = False
    reads: Counter[Value] = Counter()
    writers: dict[Value, list[Instr]] = {a: [] for a in only_stored}
    for i in fn.instrs():
        for k, v in enumerate(i.operands):
            if v in writers:
                if i.op == "store" and k == 1:
                    writers[v].append(i)
                else:
                    reads[v] += 1
    dead: set[Instr] = set()
    work = [i for i in fn.instrs() if not has_effect(i) and not uses[i]]
    work += [w for a, only in only_stored.items() if only for w in writers[a]]
    while work:
        i = work.pop()
        if i in dead:
            continue
        dead.add(i)
        for k, v in enumerate(i.operands):
            uses[v] -= 1
            if not isinstance(v, Instr) or v in dead:
                continue
            if v in writers and not (i.op == "store" and k == 1):
                reads[v] -= 1
                if not reads[v]:
                    work += writers[v]
            if not uses[v] and not has_effect(v):
                work.append(v)
    if dead:
        for b in fn.blocks:
            b.instrs = [i for i in b.instrs if i not in dead]
