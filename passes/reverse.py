"""Reverse mode: a point function to its adjoint body.

:func:`adjoint` returns a point function that first runs the body again, without writing primal memory, and then
walks it backwards. In the backward part

* an operation hands its cotangent on to its operands by its row of ``rules.py``;
* a read of an array adds to the array's shadow (``accum``), a read of an own address to a local slot;
* a write takes the slot's value and sets it to zero. The slot starts as the shadow of the own address (``sload``: the
  seed) and its last value is the cotangent of the old content (``sstore``).

``accum`` is the scatter that ``gather.py`` turns round. Cotangents of values live in ``alloca`` slots that start at
-0.0, the exact neutral element of addition; LLVM turns them into registers. A value of the forward part that the
backward part needs is used directly where it dominates the end of the body, else it goes through a slot too.

Handled: any acyclic control flow. Loops that remain after LLVM's unrolling are refused.
"""

from __future__ import annotations

from ..errors import NotDifferentiableError
from .activity import active_values
from .build import Builder
from .ir.graph import dominators, reverse_postorder
from .ir.model import Access, Arg, Block, Const, Function, Instr, PointFn, Value
from .own import flag_slot, index_values, is_guarded, own_access, prepend, raise_flag, to_slots
from .rules import cotangents_of

ADJOINT_FLAGS = ("reassoc", "arcp", "contract")


def neutral(type: str) -> Const:
    """-0.0: adding it changes no value, not even the sign of a zero."""
    return Const(type, "-0.000000e+00")


def adjoint(pf: PointFn, active: frozenset[str]) -> PointFn:
    """The adjoint body of ``pf`` with respect to the parameters in ``active`` (arrays and float scalars).

    Raises ``NotDifferentiableError`` for loops and for operations without a derivative.
    """
    return _Reverse(pf, active).run()


class _Reverse:
    def __init__(self, pf: PointFn, active: frozenset[str]) -> None:
        self.pf = pf
        self.active = active
        _refuse_loops(pf.fn)
        live = active_values(pf, active).values
        fn, values, _ = pf.fn.clone(f"{pf.fn.name}.adjoint")
        self.fn = fn
        self.out = PointFn(fn, pf.rank, pf.params)
        self.own = {name: own_access(pf, name) for name in pf.written}
        self.exit = _single_exit(fn)
        self.top: list[Instr] = []  # allocas and their first stores
        self.touched: dict[str, Instr] = {}  # flags: has this point a place of its own in the array?
        for name, access in self.own.items():
            if name in active and is_guarded(access) and not access.always:
                self.touched[name] = _touched(fn, name, self.top)
        replaced, choices = to_slots(self.out)
        new = {v: values[v] for v in live if v in values}
        self.live: set[Value] = {replaced.get(v, v) for v in new.values()} | {v for v in live if v not in values}
        for choice, parts in choices.items():
            if choice in self.live:
                self.live.update(parts)
        self.order = reverse_postorder(fn)
        dom = dominators(fn)
        self.dominates_exit = {b for b in self.order if b is self.exit or b in dom[self.exit]}
        self.cot_slot: dict[Value, Instr] = {}
        self.saved: dict[Value, Instr] = {}
        self.shadow: dict[str, Instr] = {}
        self.came_from: dict[Block, Instr] = {}

    # slots ---------------------------------------------------------------------------------------------------------

    def alloca(self, type: str, name: str, init: Value | None = None) -> Instr:
        slot = Instr("alloca", "ptr", [], elem=type, name=name)
        self.top.append(slot)
        if init is not None:
            self.top.append(Instr("store", "void", [init, slot]))
        return slot

    def cotangent(self, b: Builder, v: Value) -> Value:
        return b.load(v.type, self.cot_slot[v])

    def add(self, b: Builder, v: Value, amount: Value | None) -> None:
        """Add to the cotangent of ``v``, where it carries one."""
        if amount is None or v not in self.live:
            return
        if v not in self.cot_slot:
            self.cot_slot[v] = self.alloca(v.type, f"d.{v.name or 'v'}", neutral(v.type))
        slot = self.cot_slot[v]
        b.store(b.fadd(b.load(v.type, slot), amount), slot)

    def primal(self, b: Builder, v: Value) -> Value:
        """The value that ``v`` had in the forward part, for use in the backward part."""
        if not isinstance(v, Instr) or v.block in self.dominates_exit or v.op == "alloca":
            return v
        if v not in self.saved:
            assert v.block is not None
            slot = self.saved[v] = self.alloca(v.type, f"keep.{v.name or 'v'}")
            at = v.block.instrs.index(v) + 1
            while v.block.instrs[at].op == "phi":
                at += 1
            v.block.insert(at, Instr("store", "void", [v, slot]))
        return b.load(v.type, self.saved[v])

    # the walk ------------------------------------------------------------------------------------------------------

    def run(self) -> PointFn:
        fn, order = self.fn, self.order
        preds = _predecessors(order)
        body = {b: list(b.instrs) for b in order}  # what the walk adds to these blocks is not walked
        back = {b: fn.block(f"r.{b.name}") for b in order}
        start = fn.block("reverse")
        self.exit.instrs.pop()  # its ret
        self.exit.append(Instr("br", "void", targets=[start]))
        b = Builder(start, flags=ADJOINT_FLAGS)
        for name, access in self.own.items():
            if name not in self.active:
                continue
            elem = self.pf.array(name).elem
            slot = self.shadow[name] = self.alloca(elem, f"{name}.shadow")
            after = self.if_touched(b, name)
            b.store(self.shadow_access(b.block, "sload", elem, name, access, []), slot)
            self.go_on(b, after)
        b.block.append(Instr("br", "void", targets=[back[self.exit]]))
        ends: dict[Block, Block] = {}
        for block in reversed(order):
            ends[block] = self.walk(block, body[block], back[block], preds[block], back)
        finish = ends[order[0]]
        b = Builder(finish, flags=ADJOINT_FLAGS)
        for a in fn.args:
            if a in self.cot_slot:
                finish.append(Instr("accums", "void", [self.cotangent(b, a)], array=a.name))
        for name, access in self.own.items():
            if name in self.active:
                after = self.if_touched(b, name)
                value = b.load(self.pf.array(name).elem, self.shadow[name])
                self.shadow_access(b.block, "sstore", "void", name, access, [value])
                self.go_on(b, after)
        b.block.append(Instr("ret", "void"))
        prepend(fn, self.top)
        return self.out

    def if_touched(self, b: Builder, name: str) -> Block | None:
        """Go on in a block that only points which touch ``name`` enter; ``None`` where all do."""
        if name not in self.touched:
            return None
        inside, after = (self.fn.block(f"{name}.{stem}{len(self.fn.blocks)}") for stem in ("own", "past"))
        flag = b.load("i1", self.touched[name])
        b.block.append(Instr("br", "void", [flag], targets=[inside, after]))
        b.block = inside
        return after

    def go_on(self, b: Builder, after: Block | None) -> None:
        if after is not None:
            b.block.append(Instr("br", "void", targets=[after]))
            b.block = after

    def shadow_access(
        self, block: Block, op: str, type: str, array: str, access: Access, head: list[Value], loc: object = None
    ) -> Instr:
        instrs: list[Instr] = []
        index = index_values(instrs, self.fn, list(self.out.index), access)
        for i in instrs:
            block.append(i)
        return block.append(Instr(op, type, [*head, *index], array=array, access=access, loc=loc))  # type: ignore[arg-type]

    def walk(
        self, block: Block, body: list[Instr], target: Block, preds: list[Block], back: dict[Block, Block]
    ) -> Block:
        """Emit the reverse of ``block``, of whose instructions ``body`` are the user's, into ``target``; returns the
        block in which it ends."""
        b = Builder(target, flags=ADJOINT_FLAGS)
        for i in reversed([i for i in body if i.op != "phi"]):
            self.step(b, i)
        phis = [i for i in body if i.op == "phi" and i in self.cot_slot]
        if not preds:
            return target
        if len(preds) == 1:
            for phi in phis:
                self.add(b, phi.operands[phi.targets.index(preds[0])], self.cotangent(b, phi))
            target.append(Instr("br", "void", targets=[back[preds[0]]]))
            return target
        slot = self.alloca("i32", f"from.{block.name}")
        for k, p in enumerate(preds):
            p.insert(len(p.instrs) - 1, Instr("store", "void", [Const("i32", str(k)), slot]))
        edges = []
        for k, p in enumerate(preds):
            edge = self.fn.block(f"r.{block.name}.{k}")
            eb = Builder(edge, flags=ADJOINT_FLAGS)
            for phi in phis:
                self.add(eb, phi.operands[phi.targets.index(p)], self.cotangent(eb, phi))
            edge.append(Instr("br", "void", targets=[back[p]]))
            edges.append(edge)
        which = b.load("i32", slot)
        target.append(
            Instr("switch", "void", [which], targets=[edges[0], *edges[1:]], cases=tuple(range(1, len(preds))))
        )
        return target

    def step(self, b: Builder, i: Instr) -> None:
        """The reverse of one instruction."""
        if i.op == "store":
            self.reverse_store(b, i)
            return
        if i not in self.cot_slot:
            return  # nothing downstream wants its cotangent
        b.loc = i.loc
        cot = self.cotangent(b, i)
        if i.op == "aload":
            assert i.access is not None
            if i.array in self.own:  # old content of an own address
                slot = self.shadow[i.array]
                b.store(b.fadd(b.load(i.type, slot), cot), slot)
            else:
                self.shadow_access(b.block, "accum", "void", i.array, i.access, [cot], i.loc)
        elif i.op == "load":
            slot = self.slot_shadow(i.operands[0], i)
            b.store(b.fadd(b.load(i.type, slot), cot), slot)
        else:
            operands = [self.primal(b, v) if _may_need(v) else v for v in i.operands]
            result = _Lazy(lambda: self.primal(b, i))
            for v, amount in zip(
                i.operands, cotangents_of(b, i, operands, result.get, cot, self.wanted(i)), strict=True
            ):
                self.add(b, v, amount)

    def wanted(self, i: Instr) -> tuple[bool, ...]:
        return tuple(v in self.live for v in i.operands)

    def reverse_store(self, b: Builder, i: Instr) -> None:
        if i.array:
            if i.array not in self.shadow:
                return  # an array without derivative
        elif i.operands[0] not in self.live:
            return
        slot = self.slot_shadow(i.operands[1], i)
        value = i.operands[0]
        self.add(b, value, b.load(value.type, slot))
        b.store(neutral(value.type), slot)

    def slot_shadow(self, pointer: Value, i: Instr) -> Instr:
        if isinstance(pointer, Instr) and pointer.array in self.shadow:
            return self.shadow[pointer.array]
        raise NotDifferentiableError(
            "a local array in the body of a point kernel has no derivative yet",
            loc=i.loc,
            remedy="use scalar variables, or a scratch array of the launch domain",
        )


class _Lazy:
    """A primal value that is made available only if a rule asks for it."""

    def __init__(self, make: object) -> None:
        self.make = make
        self.value: Value | None = None

    def get(self) -> Value:
        if self.value is None:
            self.value = self.make()  # type: ignore[operator]
        return self.value  # type: ignore[return-value]


def _may_need(v: Value) -> bool:
    return not isinstance(v, (Const, Arg))


def _predecessors(order: list[Block]) -> dict[Block, list[Block]]:
    preds: dict[Block, list[Block]] = {b: [] for b in order}
    for b in order:
        for s in b.successors:
            if b not in preds[s]:
                preds[s].append(b)
    return preds


def _refuse_loops(fn: Function) -> None:
    place = {b: k for k, b in enumerate(reverse_postorder(fn))}
    for b in place:
        for s in b.successors:
            if place[s] <= place[b]:
                loc = next((i.loc for i in (*s.instrs, *b.instrs) if i.loc), None)
                raise NotDifferentiableError(
                    "a loop with a run-time trip count in a point kernel has no derivative yet",
                    loc=loc,
                    remedy="use a loop over a constant range, which is unrolled",
                )


def _touched(fn: Function, array: str, top: list[Instr]) -> Instr:
    """A flag that is raised where a point comes to its own place in ``array``."""
    flag = flag_slot(top, f"{array}.touched")
    for block in fn.blocks:
        for i in [i for i in block.instrs if i.array == array and i.op in ("aload", "astore")]:
            raise_flag(block, flag, block.instrs.index(i))
    return flag


def _single_exit(fn: Function) -> Block:
    exits = [b for b in reverse_postorder(fn) if b.terminator.op == "ret"]
    if len(exits) == 1:
        return exits[0]
    exit = fn.block("exit")
    for b in exits:
        b.instrs.pop()
        b.append(Instr("br", "void", targets=[exit]))
    exit.append(Instr("ret", "void"))
    return exit
