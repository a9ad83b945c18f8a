"""Questions about the flow of control and of values: uses, order, dominance, loops; and splitting of edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .model import Block, Function, Instr, Value


def predecessors(fn: Function) -> dict[Block, list[Block]]:
    """Blocks that jump to each block, one entry an edge, in order of blocks."""
    preds: dict[Block, list[Block]] = {b: [] for b in fn.blocks}
    for b in fn.blocks:
        for s in b.successors:
            preds[s].append(b)
    return preds


def users(fn: Function) -> dict[Value, list[Instr]]:
    """Instructions that take each value as an operand, once each, in order."""
    found: dict[Value, list[Instr]] = {}
    for i in fn.instrs():
        for v in dict.fromkeys(i.operands):
            found.setdefault(v, []).append(i)
    return found


def reverse_postorder(fn: Function) -> list[Block]:
    """Reachable blocks, each before its successors except along back edges; the entry is first."""
    order: list[Block] = []
    seen = {fn.blocks[0]}
    # The last successor first, so that of two arms the first comes first.
    stack = [(fn.blocks[0], iter(fn.blocks[0].successors[::-1]))]
    while stack:
        b, successors = stack[-1]
        for s in successors:
            if s not in seen:
                seen.add(s)
                stack.append((s, iter(s.successors[::-1])))
                break
        else:
            order.append(b)
            stack.pop()
    return order[::-1]


def immediate_dominators(fn: Function) -> dict[Block, Block | None]:
    """The closest strict dominator of each reachable block; ``None`` for the entry."""
    order = reverse_postorder(fn)
    preds = predecessors(fn)
    return _tree(order, {b: preds[b] for b in order})


def dominators(fn: Function) -> dict[Block, set[Block]]:
    """All dominators of each reachable block, itself included."""
    return _ancestors(immediate_dominators(fn))


def post_dominators(fn: Function) -> dict[Block, set[Block]]:
    """Blocks that every path from a block to a way out of the function goes through, the block itself included.

    Blocks from which no way out can be reached are left out. ``unreachable`` is no way out.
    """
    preds = predecessors(fn)
    exits = [b for b in fn.blocks if b.terminator.op == "ret"]
    root = Block("exit")
    order: list[Block] = []
    seen: set[Block] = {root}
    stack = [(root, iter(exits))]
    while stack:
        b, edges = stack[-1]
        for p in edges:
            if p not in seen:
                seen.add(p)
                stack.append((p, iter(preds[p])))
                break
        else:
            order.append(b)
            stack.pop()
    into = {b: [*b.successors, *([root] if b in exits else [])] for b in order if b is not root}
    tree = _tree(order[::-1], {root: [], **into})
    return {b: found - {root} for b, found in _ancestors(tree).items() if b is not root}


def _tree(order: list[Block], preds: Mapping[Block, list[Block]]) -> dict[Block, Block | None]:
    """Immediate dominators by Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm" (2001)."""
    number = {b: k for k, b in enumerate(order)}
    parent: dict[Block, Block | None] = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for b in order[1:]:
            new: Block | None = None
            for p in preds[b]:
                if p not in parent:
                    continue
                new = p if new is None else _meet(new, p, parent, number)
            if parent.get(b) is not new:
                parent[b], changed = new, True
    parent[order[0]] = None
    return parent


def _meet(a: Block, b: Block, parent: dict[Block, Block | None], number: dict[Block, int]) -> Block:
    while a is not b:
        while number[a] > number[b]:
            a = parent[a]  # type: ignore[assignment]
        while number[b] > number[a]:
            b = parent[b]  # type: ignore[assignment]
    return a


def _ancestors(tree: dict[Block, Block | None]) -> dict[Block, set[Block]]:
    found: dict[Block, set[Block]] = {}
    for b in tree:
        chain = []
        at: Block | None = b
        while at is not None and at not in found:
            chain.append(at)
            at = tree[at]
        known = found[at] if at is not None else set()
        for c in reversed(chain):
            known = found[c] = known | {c}
    return found


@dataclass(eq=False)
class Loop:
    """A natural loop: ``header`` dominates all of ``blocks``; ``latches`` jump back to it."""

    header: Block
    latches: list[Block]
    blocks: set[Block]
    parent: Loop | None = None
    children: list[Loop] = field(default_factory=list)

    @property
    def depth(self) -> int:
        return 1 + (self.parent.depth if self.parent else 0)

    def exits(self) -> list[tuple[Block, Block]]:
        """Edges that leave the loop."""
        return [(b, s) for b in self.blocks for s in b.successors if s not in self.blocks]


def loops(fn: Function) -> list[Loop]:
    """Natural loops, outer ones before those that they hold."""
    order = reverse_postorder(fn)
    dom = dominators(fn)
    preds = predecessors(fn)
    latches: dict[Block, list[Block]] = {}
    for b in order:
        for s in b.successors:
            if s in dom[b]:
                latches.setdefault(s, []).append(b)
    found = []
    for header in (b for b in order if b in latches):
        blocks, work = {header}, list(latches[header])
        while work:
            b = work.pop()
            if b not in blocks:
                blocks.add(b)
                work += [p for p in preds[b] if p in dom]
        found.append(Loop(header, latches[header], blocks))
    for loop in found:
        around = [o for o in found if o is not loop and loop.header in o.blocks and loop.blocks <= o.blocks]
        loop.parent = min(around, key=lambda o: len(o.blocks), default=None)
        if loop.parent is not None:
            loop.parent.children.append(loop)
    return found


def is_reducible(fn: Function) -> bool:
    """Whether every cycle is a natural loop, entered at its header alone."""
    order = reverse_postorder(fn)
    number = {b: k for k, b in enumerate(order)}
    dom = dominators(fn)
    return all(s in dom[b] for b in order for s in b.successors if number[s] <= number[b])


def split_critical_edges(fn: Function) -> bool:
    """Put a block on every edge from a block with several successors to one with several predecessors, in place."""
    preds = predecessors(fn)
    split = False
    for b in list(fn.blocks):
        if len(b.successors) < 2:
            continue
        for k, s in enumerate(b.successors):
            if len(preds[s]) > 1:
                split_edge(fn, b, k)
                split = True
    return split


def split_edge(fn: Function, b: Block, k: int) -> Block:
    """A new block on the edge from ``b`` to its successor number ``k``; phis there take from it."""
    target = b.terminator.targets[k]
    middle = Block(f"{b.name}.{target.name}")
    middle.append(Instr("br", "void", targets=[target], loc=b.terminator.loc))
    fn.blocks.insert(fn.blocks.index(b) + 1, middle)
    b.terminator.targets[k] = middle
    for phi in target.phis:
        phi.targets[phi.targets.index(b)] = middle  # one of the edges from b: a phi has an entry for each
    return middle
