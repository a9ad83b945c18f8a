"""Cleans up the flow of control that guards and inlining leave behind: comparisons of constants, empty blocks, arms
without work.

An ``if`` whose arms hold no instruction becomes a select: both values exist already, so that nothing is executed that
the user's branch did not, and the derivative is the same. Arms with work stay arms (``passes/canonical.py`` says why).
"""

from __future__ import annotations

from .ir.const import const_value, int_const
from .ir.graph import predecessors
from .ir.model import Block, Const, Function, Instr, Value
from .ir.scalars import SCALAR
from .ir.values import literal
from .simplify import dce, drop_unreachable

_LONGEST_NAME = 24


def tidy(fn: Function) -> Function:
    """A copy of ``fn``, tidied up."""
    new, _, _ = fn.clone()
    changed = True
    while changed:
        changed = _fold_constants(new) or _empty_arms(new) or _skip_empty(new) or _merge(new)
    dce(new)
    _name_blocks(new)
    return new


def _fold_constants(fn: Function) -> bool:
    """Decide comparisons of literals, and the selects and branches on them."""
    changed = False
    for i in list(fn.instrs()):
        if i.op == "fcmp" and all(const_value(v) is not None for v in i.operands):
            a, b = (literal(v.type, v.text) for v in i.operands if isinstance(v, Const))
            changed |= _replace(fn, i, int_const("i1", int(SCALAR["fcmp"](i, a, b))))
        elif i.op == "select" and isinstance(i.operands[0], Const):
            chosen = const_value(i.operands[0])
            if chosen is not None:
                changed |= _replace(fn, i, i.operands[1] if chosen else i.operands[2])
        elif i.op == "phi" and all(v is i.operands[0] for v in i.operands) and i.operands:
            changed |= _replace(fn, i, i.operands[0])
    for b in fn.blocks:
        changed |= _decided_branch(b)
    if changed:
        drop_unreachable(fn)
    return changed


def _decided_branch(b: Block) -> bool:
    i = b.terminator
    if i.op == "br" and i.operands and (const_value(i.operands[0]) is not None or i.targets[0] is i.targets[1]):
        taken = i.targets[0] if const_value(i.operands[0]) or i.targets[0] is i.targets[1] else i.targets[1]
        other = i.targets[1] if taken is i.targets[0] else i.targets[0]
        _drop_edge(b, other)
        i.operands, i.targets = [], [taken]
        return True
    if i.op == "switch" and (value := const_value(i.operands[0])) is not None:
        taken = dict(zip(i.cases, i.targets[1:], strict=True)).get(int(value), i.targets[0])
        rest = list(i.targets)
        rest.remove(taken)
        for other in rest:
            _drop_edge(b, other)
        b.instrs[-1] = Instr("br", "void", targets=[taken], loc=i.loc)
        b.instrs[-1].block = b
        return True
    return False


def _drop_edge(b: Block, target: Block) -> None:
    """Take one entry for an edge from ``b`` out of the phis of ``target``."""
    for phi in target.phis:
        k = phi.targets.index(b)
        del phi.operands[k], phi.targets[k]


def _replace(fn: Function, i: Instr, v: Value) -> bool:
    if v is i:
        return False
    fn.replace_uses(i, v)
    assert i.block is not None
    i.block.instrs.remove(i)
    return True


def _empty_arms(fn: Function) -> bool:
    """Turn the phis behind an ``if`` without work into selects."""
    preds = predecessors(fn)
    for top in fn.blocks:
        branch = top.terminator
        if branch.op != "br" or len(branch.targets) != 2 or branch.targets[0] is branch.targets[1]:
            continue
        ends = [_arm(t, top, preds) for t in branch.targets]
        if ends[0] is not ends[1] or ends[0] is None or len(preds[ends[0]]) != 2 or ends[0] is top:
            continue
        end = ends[0]
        sources = [top if t is end else t for t in branch.targets]
        for phi in end.phis:
            arms = [phi.operands[phi.targets.index(s)] for s in sources]
            select = Instr("select", phi.type, [branch.operands[0], *arms], flags=phi.flags, loc=phi.loc, name=phi.name)
            top.insert(len(top.instrs) - 1, select)
            fn.replace_uses(phi, select)
        end.instrs = end.instrs[len(end.phis) :]
        branch.operands, branch.targets = [], [end]
        fn.blocks = [b for b in fn.blocks if b not in sources or b is top]
        return True
    return False


def _arm(target: Block, top: Block, preds: dict[Block, list[Block]]) -> Block | None:
    """Where an empty arm leads: past ``target`` if that has no work, else ``target`` itself."""
    if len(target.instrs) == 1 and len(target.successors) == 1 and preds[target] == [top]:
        return target.successors[0]
    return target


def _skip_empty(fn: Function) -> bool:
    """Take out blocks that do nothing but jump to a block whose phis can tell the new edges apart."""
    preds = predecessors(fn)
    for b in fn.blocks[1:]:
        if len(b.instrs) != 1 or len(b.successors) != 1 or b.successors[0] is b:
            continue
        target = b.successors[0]
        phis = target.phis
        if phis and any(p in preds[target] for p in preds[b]):
            continue
        for phi in phis:
            k = phi.targets.index(b)
            v = phi.operands[k]
            phi.operands[k : k + 1] = [v] * len(preds[b])
            phi.targets[k : k + 1] = preds[b]
        for p in dict.fromkeys(preds[b]):
            p.terminator.targets = [target if t is b else t for t in p.terminator.targets]
        fn.blocks.remove(b)
        return True
    return False


def _merge(fn: Function) -> bool:
    """Join a block to its only predecessor where that has no other successor."""
    preds = predecessors(fn)
    for b in fn.blocks[1:]:
        if len(preds[b]) != 1 or len(preds[b][0].successors) != 1 or preds[b][0] is b:
            continue
        (p,) = preds[b]
        for phi in b.phis:
            fn.replace_uses(phi, phi.operands[0])
        rest = b.instrs[len(b.phis) :]
        del p.instrs[-1]
        for i in rest:
            p.append(i)
        for s in b.successors:
            for phi in s.phis:
                phi.targets = [p if t is b else t for t in phi.targets]
        fn.blocks.remove(b)
        return True
    return False


def _name_blocks(fn: Function) -> None:
    """Short names instead of Numba's mangled ones."""
    for b in fn.blocks:
        if len(b.name) > _LONGEST_NAME:
            b.name = "exit" if b.name.endswith(".exit") else b.name[:_LONGEST_NAME]
