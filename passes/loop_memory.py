"""Memory in a loop kernel: which arrays a pointer may point into, and which values and arrays carry a derivative.

An *object* is an array parameter (its name), a local array (the call of ``irad.alloc``, or an ``alloca``) or a constant
table. A value is *varying* if it may change when an active parameter does; an object is if a varying value may be
stored in it, and then every object that some pointer does not tell from it is, too: a pointer has one shadow, or none.
"""

from __future__ import annotations

from ..errors import NotDifferentiableError
from .ir import ops
from .ir.model import ArrayParam, Function, Global, Instr, Param, Value
from .rules import carriers

Object = str | Value

_NOTHING: frozenset[Object] = frozenset()


def is_copy(i: Instr) -> bool:
    """Whether an instruction copies memory."""
    return i.op == "call" and i.callee.startswith(("llvm.memcpy.", "llvm.memmove."))


def is_fill(i: Instr) -> bool:
    """Whether an instruction fills memory with a byte."""
    return i.op == "call" and i.callee.startswith("llvm.memset.")


def is_alloc(v: Value) -> bool:
    """Whether a value is a new local array."""
    return isinstance(v, Instr) and (v.op == "alloca" or (v.op == "call" and v.callee == "irad.alloc"))


class Memory:
    """The objects of a function. ``written``: objects that it changes; ``elem``: the type of float an object holds."""

    def __init__(self, fn: Function, params: tuple[Param, ...]) -> None:
        self.fn = fn
        self.points: dict[Value, frozenset[Object]] = {}
        arrays = {f"{p.name}.data": p for p in params if isinstance(p, ArrayParam)}
        self.elem: dict[Object, str] = {p.name: p.elem for p in arrays.values()}
        for a in fn.args:
            if a.name in arrays:
                self.points[a] = frozenset({arrays[a.name].name})
        self._follow()
        self.written: set[Object] = set()
        self.read: set[Object] = set()
        for i in fn.instrs():
            if i.op == "load":
                self.read |= self.of(i.operands[0])
                self._holds(i.operands[0], i.type)
            elif i.op == "store":
                self.written |= self.of(i.operands[1])
                self._holds(i.operands[1], i.operands[0].type)
            elif is_fill(i) or is_copy(i):
                self.written |= self.of(i.operands[0])
                if is_copy(i):
                    self.read |= self.of(i.operands[1])
        copies = [i for i in fn.instrs() if is_copy(i)]
        for _ in copies:  # once more for each: a chain of copies may stand in any order
            for i in copies:
                self._same(i)

    def of(self, pointer: Value) -> frozenset[Object]:
        """The objects that a pointer may point into."""
        if isinstance(pointer, Global):
            return frozenset({pointer})
        return self.points.get(pointer, _NOTHING)

    def _follow(self) -> None:
        pointers = [i for i in self.fn.instrs() if i.type == "ptr"]
        for i in pointers:
            if is_alloc(i):
                self.points[i] = frozenset({i})
            elif i.op not in ("getelementptr", "freeze", "phi", "select"):
                raise NotDifferentiableError(
                    "an array that is kept in memory, or found by its address, has no derivative",
                    loc=i.loc,
                    remedy="keep arrays in variables and tuples, not in lists or objects",
                )
        changed = True
        while changed:
            changed = False
            for i in pointers:
                if is_alloc(i):
                    continue
                parts = i.operands[:1] if i.op in ("getelementptr", "freeze") else i.operands
                found = self.points.get(i, _NOTHING).union(*(self.of(v) for v in parts if v.type == "ptr"))
                if found != self.points.get(i, _NOTHING):
                    self.points[i] = found
                    changed = True

    def _holds(self, pointer: Value, type: str) -> None:
        if type in ops.FLOATS:
            for o in self.of(pointer):
                self.elem.setdefault(o, type)

    def _same(self, i: Instr) -> None:
        """A local array that is only copied holds what it is copied from or to."""
        both = self.of(i.operands[0]) | self.of(i.operands[1])
        for o in both:
            if o not in self.elem:
                for other in both:
                    if other in self.elem:
                        self.elem[o] = self.elem[other]


class Activity:
    """What carries derivatives with respect to the parameters ``active`` (arrays and float scalars)."""

    def __init__(self, memory: Memory, active: frozenset[str]) -> None:
        self.memory = memory
        self.objects: set[Object] = {n for n in active if n in memory.elem}
        self.values: set[Value] = {a for a in memory.fn.args if a.name in active and a.type in ops.FLOATS}
        instrs = list(memory.fn.instrs())
        pointers = {memory.points[v] for v in memory.points if len(memory.points[v]) > 1}
        before = -1
        while before != len(self.objects) + len(self.values):
            before = len(self.objects) + len(self.values)
            for i in instrs:
                self._step(i)
            for together in pointers:
                if together & self.objects:
                    self.objects |= together
        self._check(instrs)

    @property
    def arrays(self) -> frozenset[str]:
        """The array parameters that carry derivatives."""
        return frozenset(o for o in self.objects if isinstance(o, str))

    def shadowed(self, pointer: Value) -> bool:
        """Whether a pointer has a shadow."""
        return bool(self.memory.of(pointer) & self.objects)

    def _step(self, i: Instr) -> None:
        if i.op == "load":
            if i.type in ops.FLOATS and self.shadowed(i.operands[0]):
                self.values.add(i)
        elif i.op == "store":
            if i.operands[0] in self.values:
                self.objects |= self.memory.of(i.operands[1])
        elif is_copy(i):
            if self.shadowed(i.operands[1]):
                self.objects |= self.memory.of(i.operands[0])
        elif i.type in ops.FLOATS and any(
            v in self.values and carry for v, carry in zip(i.operands, carriers(i), strict=True)
        ):
            self.values.add(i)

    def _check(self, instrs: list[Instr]) -> None:
        for o in self.objects:
            if isinstance(o, Global) or (isinstance(o, str) and self.memory.elem[o] not in ops.FLOATS):
                raise NotDifferentiableError(
                    "a pointer leads to an array that carries derivatives or to one that cannot",
                    remedy="use the arrays in branches of their own",
                )
        for i in instrs:
            lost = i.op == "load" and i.type not in ops.FLOATS and self.shadowed(i.operands[0])
            bits = i.op in ("bitcast", "insertvalue") and i.type not in ops.FLOATS and i.operands[-1] in self.values
            whole = i.op == "store" and self.shadowed(i.operands[1]) and i.operands[0].type not in ops.FLOATS
            if lost or bits or (whole and not _is_zero(i.operands[0])):
                raise NotDifferentiableError(
                    "the bits of a number that carries a derivative are made into another number",
                    loc=i.loc,
                    remedy="write it with arithmetic, or np.copysign, np.abs, np.floor",
                )


def _is_zero(v: Value) -> bool:
    return getattr(v, "text", "") in ("0", "zeroinitializer", "null")
