"""Reverse mode of a loop kernel: one function that runs it and records, one that walks the record backwards.

The *augmented* function is the kernel, which also writes a record. The *reverse* function passes the blocks of the run
in the opposite order and hands cotangents on, instruction by instruction. A pointer that carries derivatives has a
shadow pointer beside it: the same address arithmetic on the array's shadow.

What the reverse function needs of the run it computes again where that is possible: from arguments, from the counters
of loops, which it turns back, and from arrays that the kernel never writes. All else is recorded, nothing twice:

* a value of the same round of all loops, in the record of the block whose reverse needs it;
* a value from outside a loop, when that loop is left;
* which way led to a block, where the condition cannot be computed again; how often a loop ran, where that cannot.

A record is taken off in the opposite order, and left as it is: the reverse function may run many times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .build import DERIVATIVE_FLAGS, Builder
from .ir import ops
from .ir.const import int_const
from .ir.graph import Loop, dominators, immediate_dominators
from .ir.model import Arg, Block, Const, Function, Instr, Param, Value
from .loop_function import Flow, normal_form
from .loop_memory import Activity, Memory, is_alloc, is_copy, is_fill
from .loop_shadows import Shadowed, alloc_size, shadow_args
from .rules import cotangents_of

Key = tuple[str, Any]
"""``("value", v)``, ``("shadow", pointer)``, ``("pred", block)``, ``("count", header)``."""

TAPE = ".tape.data"
"""The parameter that holds the record's head (``passes/loop_program.py``)."""

_PURE = frozenset({"float", "int", "compare", "cast", "select", "aggregate"})


@dataclass(frozen=True)
class LoopAdjoint:
    """``augmented`` and ``reverse`` as functions. ``reads``: arrays that the reverse reads again, as they were.
    ``arrays``: arrays that have shadows. ``kept``: what is recorded, in words."""

    augmented: Function
    reverse: Function
    reads: frozenset[str]
    arrays: frozenset[str]
    kept: tuple[str, ...]


def loop_adjoint(fn: Function, params: tuple[Param, ...], active: frozenset[str]) -> LoopAdjoint:
    """Augmented and reverse function of ``fn`` with respect to the parameters ``active`` (arrays and float scalars).

    Arrays into which the kernel stores what depends on them must be among them. Raises ``NotDifferentiableError`` with
    the user's line for what has no derivative.
    """
    plan = _Plan(normal_form(fn), params, active)
    _Reverse(plan, collecting=True).run()
    reverse = _Reverse(plan, collecting=False).run()
    return LoopAdjoint(
        _Augmented(plan).run(), reverse, frozenset(plan.reads), plan.activity.arrays, tuple(plan.in_words())
    )


class _Plan:
    """What both functions agree on: which keys each block records, in order, and what can be computed again."""

    def __init__(self, fn: Function, params: tuple[Param, ...], active: frozenset[str]) -> None:
        self.fn, self.params = fn, params
        self.flow = Flow(fn)
        self.memory = Memory(fn, params)
        self.activity = Activity(self.memory, active)
        missing = self.activity.arrays - active
        assert not missing, missing
        self.active = active
        self.records: dict[Block, dict[Key, None]] = {}
        self.reads: set[str] = set()
        self.idom = immediate_dominators(fn)
        self.dom = dominators(fn)
        self._again: dict[tuple[Value, Loop | None], bool] = {}

    def record(self, b: Block, key: Key) -> None:
        self.records.setdefault(b, {})[key] = None

    def exits(self, loop: Loop) -> list[Block]:
        """The blocks over which a run leaves a loop."""
        live = set(self.flow.live)
        return [s for _, s in loop.exits() if s in live]

    # what can be computed again --------------------------------------------------------------------------------------

    def again(self, v: Value, at: Block) -> bool:
        """Whether the reverse of block ``at`` can compute ``v`` from what it has without a record."""
        if not isinstance(v, Instr):
            return True
        key = (v, self.flow.inner.get(at))
        if key not in self._again:
            self._again[key] = False  # what depends on itself is no such value
            self._again[key] = self._computable(v, at)
        return self._again[key]

    def _computable(self, v: Instr, at: Block) -> bool:
        if v.op == "phi":
            return self.induction(v, at) is not None
        if v.op == "load":
            unchanged = all(self._fixed(o) for o in self.memory.of(v.operands[0]))
            return unchanged and self.again(v.operands[0], at)
        if v.op != "getelementptr" and any(o.type == "ptr" for o in v.operands):
            return False  # where an array lies may differ from run to run, and from an array to its copy
        kind = ops.OPS[v.op].kind
        pure = kind in _PURE or v.op in ("freeze", "getelementptr")
        pure = pure or (v.op == "call" and ops.call_kind(v.callee) in ("math", "int"))
        return pure and all(self.again(o, at) for o in v.operands)

    def _fixed(self, o: object) -> bool:
        return o not in self.memory.written and isinstance(o, (str, Const))

    def induction(self, phi: Instr, at: Block) -> tuple[Value, Value, Loop] | None:
        """Start and step of a phi that counts the rounds of a loop around ``at``."""
        loop = self.flow.headers.get(phi.block) if phi.block is not None else None
        if loop is None or at not in loop.blocks or not ops.is_int(phi.type) or len(phi.operands) != 2:
            return None
        start, step = self._recurrence(phi, loop)
        if step is None or not self.again(step, at) or not self.again(start, at):
            return None
        return start, step, loop

    def _recurrence(self, phi: Instr, loop: Loop) -> tuple[Value, Value | None]:
        back = phi.targets.index(loop.latches[0])
        start, after = phi.operands[1 - back], phi.operands[back]
        if isinstance(after, Instr) and after.op == "add" and phi in after.operands:
            step = after.operands[1] if after.operands[0] is phi else after.operands[0]
            if step is not phi and not (isinstance(step, Instr) and step.block in loop.blocks):
                return start, step
        return start, None

    def rounds(self, loop: Loop, out: Block) -> tuple[Value, Value, bool] | None:
        """Two values whose difference is the number of full rounds of a loop that is left to ``out``, where both can be
        computed again there; True: the first less the second, False: the other way round.

        The loop must be left by one test for equality with something that counts up or down by one.
        """
        exits = self.exits(loop)
        if exits != [out]:
            return None
        (source,) = self.flow.preds[out]
        test = source.terminator.operands[0] if source.terminator.operands else None
        if not isinstance(test, Instr) or test.op != "icmp" or test.pred not in ("eq", "ne"):
            return None
        stays = source.terminator.targets[0] is not out
        if (test.pred == "eq") == stays:
            return None
        for counter, bound in (test.operands, reversed(test.operands)):
            found = self._counted(counter, loop, out)
            outside = not (isinstance(bound, Instr) and bound.block in loop.blocks)
            if found is not None and outside and self.again(bound, out):
                first, up = found
                return (bound, first, up)
        return None

    def _counted(self, v: Value, loop: Loop, out: Block) -> tuple[Value, bool] | None:
        """The value in the first round of what counts by one in each, and whether it counts up."""
        if not isinstance(v, Instr) or v.type != "i64":
            return None
        phi = v if v.op == "phi" else next((o for o in v.operands if isinstance(o, Instr) and o.op == "phi"), None)
        if phi is None or phi.block is not loop.header or len(phi.operands) != 2:
            return None
        start, step = self._recurrence(phi, loop)
        if step is None or not isinstance(step, Const) or step.text not in ("1", "-1") or not self.again(start, out):
            return None
        if v is phi:
            return start, step.text == "1"
        if v is phi.operands[phi.targets.index(loop.latches[0])]:
            return _Sum(start, step), step.text == "1"
        return None

    def decision(self, b: Block) -> tuple[Value, list[Block]] | None:
        """A condition that can be computed again, and the predecessors of ``b`` by which it is reached where that is
        true, and false."""
        preds = self.flow.preds[b]
        fork = self.idom.get(b)
        if len(preds) != 2 or fork is None or fork.terminator.op != "br" or len(fork.terminator.targets) != 2:
            return None
        if fork.terminator.targets[0] is fork.terminator.targets[1]:
            return None
        if self.flow.inner.get(fork) is not self.flow.inner.get(b):
            return None
        condition = fork.terminator.operands[0]
        if not self.again(condition, b):
            return None
        sides: list[Block] = []
        for target in fork.terminator.targets:
            own = [p for p in preds if (p is fork if target is b else self._only_by(p, target, fork))]
            if len(own) != 1:
                return None
            sides += own
        return (condition, sides) if sides[0] is not sides[1] else None

    def _only_by(self, p: Block, target: Block, fork: Block) -> bool:
        return target in self.dom[p] and self.flow.preds.get(target) == [fork]

    # in words --------------------------------------------------------------------------------------------------------

    def in_words(self) -> list[str]:
        """What is recorded, a line each source line."""
        lines: dict[str, dict[str, int]] = {}
        for b, keys in self.records.items():
            for kind, of in keys:
                where = of if isinstance(of, Instr) else next((i for i in b.instrs if i.loc), None)
                loc = str(where.loc) if where is not None and where.loc else "(no line)"
                depth = len(self.flow.around(b))
                words = {"value": "a value", "shadow": "an address", "pred": "a branch", "count": "a number of rounds"}
                what = words[kind] + (f" in each round of {depth} loop{'s' if depth > 1 else ''}" if depth else " once")
                lines.setdefault(loc, {})[what] = lines.get(loc, {}).get(what, 0) + 1
        return [
            f"{loc}: {', '.join(f'{n} x {what}' if n > 1 else what for what, n in found.items())}"
            for loc, found in lines.items()
        ]


class _Sum(Value):
    """The sum of two values that can be computed again."""

    __slots__ = ("a", "b")

    def __init__(self, a: Value, b: Value) -> None:
        super().__init__(a.type)
        self.a, self.b = a, b


class _Operands(Sequence[Value]):
    """Operands that are computed when asked for."""

    def __init__(self, of: Callable[[int], Value], n: int) -> None:
        self.of, self.n = of, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, k: Any) -> Any:
        return self.of(k)


class _Reverse:
    """The reverse function. Collecting, it only finds out what must be recorded."""

    def __init__(self, plan: _Plan, collecting: bool) -> None:
        self.plan, self.collecting = plan, collecting
        self.flow, self.activity, self.memory = plan.flow, plan.activity, plan.memory
        args = [Arg(a.type, a.name) for a in plan.fn.args]
        args += [Arg(type, name) for type, name in shadow_args(plan.params, plan.active)] + [Arg("ptr", TAPE)]
        self.fn = Function("reverse", "void", args)
        self.args = {a.name: a for a in args}
        self.start = Builder(self.fn.block("start"))
        self.blocks = {b: self.fn.block(f"r.{b.name}") for b in self.flow.live}
        self.cells: dict[Value, Instr] = {}
        self.kept: dict[tuple[Key, Loop], Instr] = {}
        self.counts: dict[Loop, Instr] = {}
        self.known: dict[Key, Value] = {}

    def run(self) -> Function:
        s = self.start
        self.cursor = s.alloca("i64", "cursor")
        for v in sorted(self.activity.values, key=self._order()):
            self.cells[v] = s.alloca(v.type, f"d.{v.name}")
        for loop in self.flow.loops:
            self.counts[loop] = s.alloca("i64", "rounds")
        for b in self.flow.live:
            for key in self.plan.records.get(b, ()):
                self._keep(b, key)
        for v, cell in self.cells.items():
            s.store(_neutral(v.type), cell)
        s.store(s.load("i64", s.gep("i64", self.args[TAPE], int_const("i64", 1))), self.cursor)
        self.data = s.emit("load", "ptr", [self.args[TAPE]])
        for b in reversed(self.flow.live):
            self._block(b)
        s.br(self.blocks[self.flow.exit])
        return self.fn

    def _order(self) -> Callable[[Value], int]:
        number = {i: k for k, i in enumerate(self.plan.fn.instrs())}
        return lambda v: number.get(v, -1)  # type: ignore[call-overload,no-any-return]

    def _keep(self, b: Block, key: Key) -> None:
        """A cell for what block ``b`` records when a loop is left by it."""
        if key[0] in ("value", "shadow"):
            for loop in self._left_by(b):
                if (key, loop) not in self.kept:
                    self.kept[key, loop] = self.start.alloca(_type(key), "keep")

    def _left_by(self, out: Block) -> list[Loop]:
        """The loops that a run leaves when it comes to ``out``, inner ones first."""
        preds = self.flow.preds[out]
        return [loop for loop in self.flow.around(preds[0]) if out not in loop.blocks] if len(preds) == 1 else []

    # what the reverse of a block has --------------------------------------------------------------------------------

    def primal(self, v: Value) -> Value:
        """The value that ``v`` had in the run."""
        if isinstance(v, Const):
            return v
        if isinstance(v, Arg):
            return self.args[v.name]
        if isinstance(v, _Sum):
            return self.b.add(self.primal(v.a), self.primal(v.b))
        key = ("value", v)
        if key not in self.known:
            assert isinstance(v, Instr)
            self.known[key] = self._again(v) if self.plan.again(v, self.at) else self._leaf(key)
        return self.known[key]

    def _again(self, v: Instr) -> Value:
        if v.op == "phi":
            found = self.plan.induction(v, self.at)
            assert found is not None
            start, step, loop = found
            rounds: Value = self.b.load("i64", self.counts[loop])
            if v.type != "i64":
                rounds = self.b.cast("trunc", rounds, v.type)
            return self.b.add(self.primal(start), self.b.mul(rounds, self.primal(step)))
        if v.op == "load":
            self.plan.reads |= {o for o in self.memory.of(v.operands[0]) if isinstance(o, str)}
        new = v.copy(self.primal, lambda b: b)
        new.name = ""
        return self.b.block.append(new)

    def shadow(self, p: Value) -> Value:
        """The shadow of a pointer that carries derivatives."""
        if isinstance(p, Const):
            return p
        if isinstance(p, Arg):
            return self.args[f"{p.name.removesuffix('.data')}'.data"]
        assert isinstance(p, Instr)
        key = ("shadow", p)
        if key not in self.known:
            if p.op == "freeze":
                self.known[key] = self.shadow(p.operands[0])
            elif p.op == "getelementptr":
                base = self.shadow(p.operands[0])
                index = [self.primal(o) for o in p.operands[1:]]
                self.known[key] = self.b.gep(p.elem, base, *index, flags=p.flags)
            elif p.op == "select" and self.plan.again(p.operands[0], self.at):
                self.known[key] = self.b.select(
                    self.primal(p.operands[0]), self.shadow(p.operands[1]), self.shadow(p.operands[2])
                )
            else:
                self.known[key] = self._leaf(key)
        return self.known[key]

    def _leaf(self, key: Key) -> Value:
        loop = self.flow.outermost_without(self.at, key[1].block)
        if self.collecting:
            for b in self.plan.exits(loop) if loop is not None else [self.at]:
                self.plan.record(b, key)
            return Arg(_type(key), "collected")
        assert loop is not None, key  # a value of the block's own record is known from its start
        return self.b.load(_type(key), self.kept[key, loop])

    # cotangents ------------------------------------------------------------------------------------------------------

    def take(self, v: Value) -> Value:
        """The cotangent of a value, which is then 0: in the next round it is another value."""
        found = self.b.load(v.type, self.cells[v])
        self.b.store(_neutral(v.type), self.cells[v])
        return found

    def add(self, v: Value, amount: Value | None) -> None:
        if amount is not None and v in self.cells:
            self.b.store(self.b.fadd(self.b.load(v.type, self.cells[v]), amount), self.cells[v])

    # blocks ----------------------------------------------------------------------------------------------------------

    def _block(self, b: Block) -> None:
        self.at, self.known = b, {}
        self.b = Builder(self.blocks[b], flags=DERIVATIVE_FLAGS)
        self._take_record(b)
        for i in reversed(b.instrs):
            self.b.loc = i.loc
            if i.op != "phi":
                self._instruction(i)
        self._leave(b)

    def _take_record(self, b: Block) -> None:
        keys = list(self.plan.records.get(b, ()))
        if keys and not self.collecting:
            at = self.b.sub(self.b.load("i64", self.cursor), int_const("i64", len(keys)))
            self.b.store(at, self.cursor)
            for k, key in enumerate(keys):
                slot = self.b.gep("i64", self.data, self.b.add(at, int_const("i64", k)))
                found: Value = self.b.load("i64" if _type(key) == "i1" else _type(key), slot, 8)
                if _type(key) == "i1":
                    found = self.b.cast("trunc", found, "i1")
                self.known[key] = found
                for loop in self._left_by(b):
                    if (key, loop) in self.kept:
                        self.b.store(found, self.kept[key, loop])
        for loop in self._left_by(b):
            key = ("count", loop.header)
            rounds = self.plan.rounds(loop, b)
            if rounds is not None:
                bound, first, up = rounds
                x, y = self.primal(bound), self.primal(first)
                self.b.store(self.b.sub(x, y) if up else self.b.sub(y, x), self.counts[loop])
            elif self.collecting:
                self.plan.record(b, key)
            else:
                self.b.store(self.known[key], self.counts[loop])

    def _instruction(self, i: Instr) -> None:
        if i.op == "load":
            if i in self.cells:
                found, place = self.take(i), self.shadow(i.operands[0])
                self.b.store(self.b.fadd(self.b.load(i.type, place, i.align), found), place, i.align)
        elif i.op == "store":
            self._store(i)
        elif is_fill(i):
            if self.activity.shadowed(i.operands[0]):
                self._zero(self.shadow(i.operands[0]), self.primal(i.operands[2]))
        elif is_copy(i):
            if self.activity.shadowed(i.operands[0]):
                self._copy(i)
        elif is_alloc(i):
            if i in self.activity.objects:
                self._zero(self.shadow(i), self.primal(alloc_size(i)))
        elif i in self.cells:
            found = self.take(i)
            operands = _Operands(lambda k: self.primal(i.operands[k]), len(i.operands))
            wanted = [o in self.cells for o in i.operands]
            for o, amount in zip(
                i.operands, cotangents_of(self.b, i, operands, lambda: self.primal(i), found, wanted), strict=True
            ):
                self.add(o, amount)

    def _store(self, i: Instr) -> None:
        value, pointer = i.operands
        if not self.activity.shadowed(pointer):
            return
        place = self.shadow(pointer)
        if value.type in ops.FLOATS:
            found = self.b.load(value.type, place, i.align)
            self.b.store(Const(value.type, "0.000000e+00"), place, i.align)
            self.add(value, found)
        else:
            self.b.store(Const(value.type, "0"), place, i.align)

    def _zero(self, place: Value, size: Value) -> None:
        zero, calm = Const("i8", "0"), Const("i1", "false")
        self.b.emit("call", "void", [place, zero, size, calm], callee=f"llvm.memset.p0.{size.type}")

    def _copy(self, i: Instr) -> None:
        """The entries of the target's shadow go to the source's, in the order opposite to that of a copy that may
        overlap: backwards where it went forwards."""
        b = self.b
        target, source = self.shadow(i.operands[0]), i.operands[1]
        size = self.primal(i.operands[2])
        if not self.activity.shadowed(source):
            self._zero(target, size)
            return
        origin = self.shadow(source)
        elem = next(self.memory.elem[o] for o in self.memory.of(i.operands[0]) if o in self.memory.elem)
        if size.type != "i64":
            size = b.cast("zext", size, "i64")
        n = b.emit("udiv", "i64", [size, int_const("i64", ops.SIZES[elem])])
        down = b.emit("icmp", "i1", [target, origin], pred="ult")
        before, head, body, after = b.block, *(self.fn.block(f"copy.{name}") for name in ("head", "body", "done"))
        b.br(head)
        b.block = head
        k = b.phi("i64", [(int_const("i64", 0), before)])
        b.cond_br(b.icmp("ult", k, n), body, after)
        b.block = body
        last = b.sub(n, int_const("i64", 1))
        at = b.select(down, b.sub(last, k), k)
        x, y = b.gep(elem, target, at), b.gep(elem, origin, at)
        found = b.load(elem, x)
        b.store(Const(elem, "0.000000e+00"), x)
        b.store(b.fadd(b.load(elem, y), found), y)
        k.operands.append(b.add(k, int_const("i64", 1)))
        k.targets.append(body)
        b.br(head)
        b.block = after

    def _leave(self, b: Block) -> None:
        """Back to the predecessor by which the run came."""
        preds = self.flow.preds[b]
        phis = [p for p in b.phis if p in self.cells]
        found = [(p, self.take(p)) for p in phis]
        loop = self.flow.headers.get(b)
        if not preds:
            self._finish()
        elif len(preds) == 1:
            self._edge(preds[0], found)
        elif loop is not None:
            rounds = self.b.load("i64", self.counts[loop])
            again = self.fn.block(f"again.{b.name}")
            out = self.fn.block(f"out.{b.name}")
            self.b.cond_br(self.b.icmp("eq", rounds, int_const("i64", 0)), out, again)
            self.b.block = again
            self.b.store(self.b.sub(rounds, int_const("i64", 1)), self.counts[loop])
            self._edge(loop.latches[0], found)
            self.b.block = out
            self._edge(next(p for p in preds if p is not loop.latches[0]), found)
        else:
            self._join(b, preds, found)

    def _join(self, b: Block, preds: list[Block], found: list[tuple[Instr, Value]]) -> None:
        decision = self.plan.decision(b)
        targets = [self.fn.block(f"from.{p.name}") for p in preds]
        if decision is not None:
            condition, sides = decision
            self.b.cond_br(self.primal(condition), *(targets[preds.index(p)] for p in sides))
        else:
            key = ("pred", b)
            if self.collecting:
                self.plan.record(b, key)
                self.known[key] = Arg("i64", "collected")
            self.b.switch(self.known[key], targets[0], [(k, t) for k, t in enumerate(targets) if k])
        for p, target in zip(preds, targets, strict=True):
            self.b.block = target
            self._edge(p, found)

    def _edge(self, pred: Block, found: list[tuple[Instr, Value]]) -> None:
        for phi, amount in found:
            self.add(phi.operands[phi.targets.index(pred)], amount)
        self.b.br(self.blocks[pred])

    def _finish(self) -> None:
        """The start of the run: cotangents of scalars go to their cells."""
        for a in self.plan.fn.args:
            if a in self.cells and a.name in self.plan.active:
                cell = self.args[f"{a.name}'.data"]
                amount = self.b.to_float(self.b.load(a.type, self.cells[a]), "double")
                self.b.store(self.b.fadd(self.b.load("double", cell), amount), cell)
        self.b.ret()


class _Augmented(Shadowed):
    """The run that records."""

    def __init__(self, plan: _Plan) -> None:
        self.plan = plan
        super().__init__(plan.fn, "augmented", self._zeroed)
        for type, name in shadow_args(plan.params, plan.active):
            self.parameter(type, name)
        self.tape = self.parameter("ptr", TAPE)
        self.counts: dict[Block, Value] = {}

    def run(self) -> Function:
        for i in list(self.plan.fn.instrs()):
            new = self.values[i]
            assert isinstance(new, Instr)
            if i.op == "call" and i.callee == "irad.alloc":
                new.callee, new.operands = "irad.tape.alloc", [self.tape, *new.operands]
            elif i.op == "call" and i.callee in ("irad.incref", "irad.decref"):
                assert new.block is not None
                new.block.instrs.remove(new)
        for b, keys in self.plan.records.items():
            found = [self._of(b, key) for key in keys]
            block = self.blocks[b]
            at = Builder(block, at=len(block.instrs) - 1)
            slot = at.emit("call", "ptr", [self.tape, int_const("i64", len(found))], callee="irad.tape.push")
            for k, v in enumerate(found):
                wide = at.cast("zext", v, "i64") if v.type == "i1" else v
                at.store(wide, at.gep("i64", slot, int_const("i64", k)), 8)
        return self.fn

    def _zeroed(self, b: Builder, size: Value) -> Value:
        return b.emit("call", "ptr", [self.tape, size], callee="irad.tape.zeroed")

    def _of(self, b: Block, key: Key) -> Value:
        kind, of = key
        if kind == "value":
            return self.value(of)
        if kind == "shadow":
            return self.shadow(of)
        return self._came_from(of) if kind == "pred" else self._rounds(of)

    def _came_from(self, b: Block) -> Value:
        """The number of the edge by which a block was entered."""
        preds = self.plan.flow.preds[b]
        block = self.blocks[b]
        sources = _sources(self.plan.fn, b)
        number = [int_const("i64", preds.index(p) if p in preds else -1) for p in sources]
        phi = Instr("phi", "i64", list(number), targets=[self.blocks[p] for p in sources])
        return block.insert(0, phi)

    def _rounds(self, header: Block) -> Value:
        """How often a loop has been gone round."""
        if header not in self.counts:
            loop = self.plan.flow.headers[header]
            latch, block = self.blocks[loop.latches[0]], self.blocks[header]
            sources = _sources(self.plan.fn, header)
            phi = Instr("phi", "i64", [], targets=[self.blocks[p] for p in sources])
            block.insert(0, phi)
            more = Builder(latch, at=len(latch.instrs) - 1).emit("add", "i64", [phi, int_const("i64", 1)])
            phi.operands = [more if p is loop.latches[0] else int_const("i64", 0) for p in sources]
            self.counts[header] = phi
        return self.counts[header]


def _sources(fn: Function, b: Block) -> list[Block]:
    """The predecessors of a block, one an edge."""
    return [p for p in fn.blocks for s in p.successors if s is b]


def _type(key: Key) -> str:
    return key[1].type if key[0] == "value" else "ptr" if key[0] == "shadow" else "i64"


def _neutral(type: str) -> Const:
    """-0.0: adding it changes no value, not even the sign of a zero."""
    return Const(type, "-0.000000e+00")
