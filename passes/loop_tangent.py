"""Forward mode of a loop kernel: the kernel, and beside each instruction that carries a derivative that of its tangent.

Tangents of arrays lie in their shadows, which are written wherever the kernel writes the array; those of scalars are
parameters ``<name>.tangent``. A local array has a local shadow, which lives as long as the array does.
"""

from __future__ import annotations

from .build import DERIVATIVE_FLAGS, Builder
from .ir import ops
from .ir.graph import reverse_postorder
from .ir.model import Const, Function, Instr, Param, ScalarParam, Value
from .loop_memory import Activity, Memory, is_alloc, is_copy, is_fill
from .loop_shadows import Shadowed, shadow_args
from .rules import tangent_of


def loop_tangent(fn: Function, params: tuple[Param, ...], active: frozenset[str]) -> Function:
    """``fn`` together with its derivative along the tangents of ``active`` (arrays and float scalars).

    Arrays into which the kernel stores what depends on them must be among them.
    """
    return _Tangent(fn, params, active).run()


class _Tangent(Shadowed):
    def __init__(self, fn: Function, params: tuple[Param, ...], active: frozenset[str]) -> None:
        super().__init__(fn, "tangent", self._zeroed)
        self.memory = Memory(fn, params)
        self.activity = Activity(self.memory, active)
        arrays = frozenset(n for n in active if n in self.memory.elem)
        for type, name in shadow_args(params, arrays):
            self.parameter(type, name)
        self.tangents: dict[Value, Value] = {}
        for p in params:
            if isinstance(p, ScalarParam) and p.name in active:
                self.tangents[fn.arg(p.name)] = self.parameter(p.type, f"{p.name}.tangent")

    def run(self) -> Function:
        instrs = list(self.original.instrs())
        phis = [i for i in instrs if i.op == "phi" and i in self.activity.values]
        for i in phis:
            new = self.values[i]
            assert isinstance(new, Instr)
            assert new.block is not None
            of_phi = Instr("phi", i.type, [], targets=list(new.targets))
            self.tangents[i] = new.block.insert(new.block.instrs.index(new), of_phi)
        for i in (i for b in reverse_postorder(self.original) for i in b.instrs):
            if i.op != "phi":
                self._step(i)
        for i in phis:
            of_phi = self.tangents[i]  # type: ignore[assignment]
            of_phi.operands = [self.tangent(v) for v in i.operands]
        return self.fn

    def tangent(self, v: Value) -> Value:
        return self.tangents.get(v, Const(v.type, "0.000000e+00"))

    def _zeroed(self, b: Builder, size: Value) -> Value:
        return b.emit("call", "ptr", [size], callee="irad.alloc.zeroed")

    def _after(self, i: Instr) -> Builder:
        """Emits behind the copy of an instruction. What stands before it must have been made by then."""
        new = self.values[i]
        assert isinstance(new, Instr)
        assert new.block is not None
        return Builder(new.block, i.loc, DERIVATIVE_FLAGS, at=new.block.instrs.index(new) + 1)

    def _step(self, i: Instr) -> None:
        if i.op == "load":
            if i in self.activity.values:
                place = self.shadow(i.operands[0])
                self.tangents[i] = self._after(i).load(i.type, place, i.align)
        elif i.op == "store":
            value, pointer = i.operands
            if self.activity.shadowed(pointer):
                place = self.shadow(pointer)
                zero = Const(value.type, "0")
                self._after(i).store(self.tangent(value) if value.type in ops.FLOATS else zero, place, i.align)
        elif is_fill(i) or is_copy(i):
            self._memory(i)
        elif i.op == "call" and i.callee in ("irad.incref", "irad.decref"):
            if self.activity.shadowed(i.operands[0]):
                place = self.shadow(i.operands[0])
                self._after(i).emit("call", "void", [place], callee=i.callee)
        elif is_alloc(i):
            if i in self.activity.objects:
                self.shadow(i)
        elif i in self.activity.values:
            operands = [self.value(v) for v in i.operands]
            tangents = [self.tangents.get(v) for v in i.operands]
            found = tangent_of(self._after(i), i, operands, self.value(i), tangents)
            if found is not None:
                self.tangents[i] = found

    def _memory(self, i: Instr) -> None:
        target, source, size, calm = i.operands
        if not self.activity.shadowed(target):
            return
        place = self.shadow(target)
        if is_copy(i) and self.activity.shadowed(source):
            origin = self.shadow(source)
            self._after(i).emit("call", "void", [place, origin, self.value(size), calm], callee=i.callee)
        else:
            callee = f"llvm.memset.p0.{i.callee.rpartition('.')[2]}"
            self._after(i).emit("call", "void", [place, Const("i8", "0"), self.value(size), calm], callee=callee)
