"""A loop kernel in the small IR, in the form that its derivatives start from.

The function returns ``i32``: 0, or the number of an exception. In *normal form* it has one ``ret``, every loop is
entered by one edge, jumps back by one, and is left over blocks of its own; so what happens round a loop has a place.
:class:`Flow` adds which blocks a run without an exception passes, which is all that is ever walked backwards.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import NotDifferentiableError
from .canonical import inline_keeping_branches, optimise
from .decisions import exact_decisions
from .guard import guard_memory, guard_values
from .ir.const import const_value
from .ir.graph import Loop, is_reducible, loops, predecessors, reverse_postorder, split_edge
from .ir.model import Block, Const, Function, Instr, Value
from .ir.read import read_function
from .ir.verify import verify
from .simplify import drop_unreachable
from .tidy import tidy
from .weak import apply as apply_weak


def loop_function(text: str, name: str, weak: frozenset[str]) -> Function:
    """The function ``name`` of the frontend's module: inlined, simplified by LLVM, with weak scalars.

    Nothing is unrolled beyond what LLVM does by itself. Raises ``NotDifferentiableError`` with the user's line for what
    the passes do not know.
    """
    clean = optimise(guard_memory(inline_keeping_branches(guard_values(text), name)))
    fn = tidy(exact_decisions(apply_weak(read_function(clean, name), weak)))
    verify(fn)
    return fn


def normal_form(fn: Function) -> Function:
    """A copy in normal form. Raises ``NotDifferentiableError`` for control flow that is no nest of loops."""
    new, _, _ = fn.clone()
    drop_unreachable(new)
    if not is_reducible(new):
        raise NotDifferentiableError("a jump into a loop has no derivative", remedy="use for, while, break, continue")
    _one_return(new)
    for loop in loops(new):
        outside = [p for p in predecessors(new)[loop.header] if p not in loop.blocks]
        if len(outside) > 1 or len(outside[0].successors) > 1:
            _gather(new, outside, loop.header, "enter")
    for loop in loops(new):
        if len(loop.latches) > 1 or len(loop.latches[0].successors) > 1:
            _gather(new, loop.latches, loop.header, "again")
    for loop in loops(new):
        for b, s in loop.exits():
            split_edge(new, b, b.terminator.targets.index(s))
    verify(new)
    return new


def _one_return(fn: Function) -> None:
    returns = [b for b in fn.blocks if b.terminator.op == "ret"]
    if len(returns) == 1:
        return
    end = fn.block("end")
    phi = end.append(Instr("phi", fn.type, [b.terminator.operands[0] for b in returns], targets=returns))
    end.append(Instr("ret", "void", [phi]))
    for b in returns:
        b.instrs[-1] = Instr("br", "void", targets=[end], loc=b.terminator.loc)
        b.instrs[-1].block = b


def _gather(fn: Function, sources: Sequence[Block], target: Block, name: str) -> None:
    """Lead all edges from ``sources`` to ``target`` over one new block."""
    middle = Block(f"{target.name}.{name}")
    fn.blocks.insert(fn.blocks.index(target), middle)
    for phi in target.phis:
        pairs = list(zip(phi.operands, phi.targets, strict=True))
        own = [(v, b) for v, b in pairs if b in sources]
        merged: Value = own[0][0]
        if any(v is not merged for v, _ in own):
            merged = middle.append(Instr("phi", phi.type, [v for v, _ in own], targets=[b for _, b in own]))
        rest = [(v, b) for v, b in pairs if b not in sources]
        phi.operands, phi.targets = [v for v, _ in rest] + [merged], [b for _, b in rest] + [middle]
    middle.append(Instr("br", "void", targets=[target], loc=sources[0].terminator.loc))
    for b in sources:
        b.terminator.targets = [middle if t is target else t for t in b.terminator.targets]
    for phi in middle.phis:  # a source with two edges has an entry for each
        assert len(phi.targets) == len(phi.operands)


class Flow:
    """The control flow of a function in normal form, as far as a run passes it that raises nothing.

    ``live``: blocks on such ways, in reverse postorder; ``preds``: their predecessors along such edges, one an edge.
    """

    def __init__(self, fn: Function) -> None:
        self.fn = fn
        (self.exit,) = (b for b in fn.blocks if b.terminator.op == "ret")
        order = reverse_postorder(fn)
        reach: set[Block] = {self.exit}
        ends = self._good_ends()
        work = list(ends)
        preds = predecessors(fn)
        while work:
            b = work.pop()
            if b not in reach:
                reach.add(b)
                work += [p for p in preds[b] if p not in reach]
        self.live = [b for b in order if b in reach]
        self.preds: dict[Block, list[Block]] = {
            b: [p for p in preds[b] if p in reach and (b is not self.exit or p in ends)] for b in self.live
        }
        self.loops: list[Loop] = loops(fn)
        self.inner: dict[Block, Loop] = {}
        for loop in self.loops:  # outer ones come first
            for b in loop.blocks:
                self.inner[b] = loop
        self.headers = {loop.header: loop for loop in self.loops}

    def _good_ends(self) -> set[Block]:
        """Predecessors of the end that bring the status 0."""
        status = self.exit.terminator.operands[0]
        preds = predecessors(self.fn)[self.exit]
        if isinstance(status, Instr) and status.op == "phi" and status.block is self.exit:
            return {b for v, b in zip(status.operands, status.targets, strict=True) if not is_failure(v, set())}
        return set(preds)

    def around(self, b: Block) -> list[Loop]:
        """The loops that hold a block, inner ones first."""
        found = []
        loop = self.inner.get(b)
        while loop is not None:
            found.append(loop)
            loop = loop.parent
        return found

    def outermost_without(self, b: Block, inside: Block) -> Loop | None:
        """The outermost loop that holds ``b`` and not ``inside``."""
        found = None
        for loop in self.around(b):
            if inside in loop.blocks:
                break
            found = loop
        return found


def is_failure(v: Value, seen: set[Value]) -> bool:
    """Whether a status is never 0."""
    if isinstance(v, Const):
        return const_value(v) not in (0, None)
    if isinstance(v, Instr) and v.op == "phi" and v not in seen:
        return all(is_failure(o, seen | {v}) for o in v.operands if o is not v)
    return False
