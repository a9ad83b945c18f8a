"""Which values of a point function carry a derivative.

Two properties, each the least set closed under its rules (``a -> b``: if ``a`` has it, so has ``b``).

*Varying*, forwards: the value may change when an active parameter does.

1. An active scalar; an element that is read from an active array, or from one into which a varying value is stored.
2. Operand -> result of a float operation, where ``rules.py`` has a partial derivative for that operand; of ``select``
   (its two sides), ``phi`` and ``freeze``.
3. Value -> local variable that it is stored in -> value that is loaded from there; source -> target of a copy.

*Useful*, backwards: it may change what ends up in an active array.

1. A value that is stored into an active array.
2. Result -> operands, by the same operations; loaded value -> local variable -> values that are stored in it.

Integers and booleans carry none. A number that is made of the *bits* of a varying one is refused, since its derivative
would be lost without a word. Local variables are looked at as a whole, whatever their size, and control flow is not
followed: a value counts as varying even where it happens to be a constant on every way that leads to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import NotDifferentiableError
from .ir import ops
from .ir.graph import reverse_postorder
from .ir.model import Instr, PointFn, Value
from .rules import carriers
from .slots import Slots


@dataclass(frozen=True)
class Activity:
    """What carries derivatives.

    ``values``: varying values. ``useful``: useful ones. ``slots``: local variables (``alloca``) that are both.
    ``written``: arrays, active or not, into which varying values are stored.
    """

    values: frozenset[Value]
    useful: frozenset[Value]
    slots: frozenset[Value]
    written: frozenset[str]

    def carries(self, v: Value) -> bool:
        """Whether a derivative with respect to active parameters goes through ``v`` to an active array."""
        return v in self.values and v in self.useful


def active_values(pf: PointFn, active: frozenset[str]) -> Activity:
    """The analysis of ``pf`` for the parameters in ``active`` (arrays and float scalars).

    Raises ``NotDifferentiableError`` where a derivative would be lost in the bits of an integer, or behind a pointer
    that may lead to several local arrays.
    """
    varying = _Varying(pf, active)
    useful, useful_slots = _useful(pf, active, varying.memory)
    return Activity(
        frozenset(varying.values),
        frozenset(useful),
        frozenset(varying.slots & useful_slots),
        frozenset(varying.written),
    )


def is_copy(i: Instr) -> bool:
    """Whether an instruction copies memory: ``llvm.memcpy`` and ``llvm.memmove``."""
    return i.op == "call" and i.callee.startswith(("llvm.memcpy.", "llvm.memmove."))


class _Varying:
    """The forward analysis. ``bits``: values that hold the bits of a varying number and are no float."""

    def __init__(self, pf: PointFn, active: frozenset[str]) -> None:
        self.active = active
        self.memory = Slots(pf.fn)
        self.values: set[Value] = {a for a in pf.fn.args if a.name in active and a.type in ops.FLOATS}
        self.bits: set[Value] = set()
        self.slots: set[Value] = set()
        self.bit_slots: set[Value] = set()
        self.written: set[str] = set()
        order = [i for b in reverse_postorder(pf.fn) for i in b.instrs]
        before = -1
        while before != self._size():
            before = self._size()
            for i in order:
                self._step(i)

    def _size(self) -> int:
        sets = (self.values, self.bits, self.slots, self.bit_slots)
        return sum(len(s) for s in sets) + len(self.written)

    def _step(self, i: Instr) -> None:
        if i.op == "aload":
            if i.type in ops.FLOATS and (i.array in self.active or i.array in self.written):
                self.values.add(i)
        elif i.op == "astore":
            if i.operands[0] in self.values:
                self.written.add(i.array)
        elif i.op == "load":
            self._load(i)
        elif i.op == "store":
            self._store(i)
        elif is_copy(i):
            self._copy(i)
        elif i.type in ops.FLOATS:
            self._float(i)
        elif i.type not in ("i1", "void", "ptr") and i.op not in ("fptosi", "fptoui"):
            holds = i.op in ("bitcast", "insertvalue")
            if any(v in self.bits or (holds and v in self.values) for v in i.operands):
                self.bits.add(i)

    def _float(self, i: Instr) -> None:
        if any(v in self.bits for v in i.operands):
            if i.op in ("sitofp", "uitofp"):
                self._refuse_bits(i)
            self.values.add(i)  # rules.py refuses it where its derivative is asked for
        elif any(v in self.values and carry for v, carry in zip(i.operands, carriers(i), strict=True)):
            self.values.add(i)

    def _load(self, i: Instr) -> None:
        base = self.memory.base(i.operands[0])
        if base is None:
            if self.slots or self.bit_slots:
                self._refuse_pointer(i)
        elif i.type not in ops.FLOATS:
            if base in self.slots or base in self.bit_slots:
                self.bits.add(i)
        elif base in self.bit_slots:
            self._refuse_bits(i)
        elif base in self.slots:
            self.values.add(i)

    def _store(self, i: Instr) -> None:
        value, pointer = i.operands
        if value in self.values or value in self.bits:
            base = self.memory.base(pointer)
            if base is None:
                self._refuse_pointer(i)
            else:
                (self.slots if value in self.values else self.bit_slots).add(base)

    def _copy(self, i: Instr) -> None:
        target, source = (self.memory.base(p) for p in i.operands[:2])
        if target is None or source is None:
            if self.slots or self.bit_slots:
                self._refuse_pointer(i)
            return
        for kind in (self.slots, self.bit_slots):
            if source in kind:
                kind.add(target)

    def _refuse_bits(self, i: Instr) -> None:
        raise NotDifferentiableError(
            "the bits of a number that carries a derivative are made into another number",
            loc=i.loc,
            remedy="write it with arithmetic, or np.copysign, np.abs, np.floor",
        )

    def _refuse_pointer(self, i: Instr) -> None:
        raise NotDifferentiableError(
            "an access to one of several local arrays, which one is decided at run time",
            loc=i.loc,
            remedy="use one local array with one more dimension",
        )


def _useful(pf: PointFn, active: frozenset[str], memory: Slots) -> tuple[set[Value], set[Value]]:
    """The backward analysis: useful values and local variables."""
    sources: dict[Value, list[Value]] = {}
    for i in pf.fn.instrs():
        if is_copy(i):
            target, source = (memory.base(p) for p in i.operands[:2])
            if target is not None and source is not None:
                sources.setdefault(target, []).append(source)
    values: set[Value] = set()
    slots: set[Value] = set()
    work: list[Value] = [i.operands[0] for i in pf.fn.instrs() if i.op == "astore" and i.array in active]
    while work:
        v = work.pop()
        if v in values or v.type not in ops.FLOATS:
            continue
        values.add(v)
        if not isinstance(v, Instr):
            continue
        if v.op == "load":
            reached = [memory.base(v.operands[0])]
            while reached:
                base = reached.pop()
                if base is not None and base not in slots:
                    slots.add(base)
                    work += memory.stored(base)
                    reached += sources.get(base, [])
        else:
            work += [o for o, carry in zip(v.operands, carriers(v), strict=True) if carry]
    return values, slots
