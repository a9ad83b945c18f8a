"""A copy of a loop kernel with shadow pointers: beside every pointer that carries derivatives, the same address
arithmetic on the shadows of its arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .build import Builder
from .ir.model import Arg, Block, Const, Function, Instr, Param, Value
from .loop_memory import is_alloc


def shadow_args(params: Sequence[Param], active: frozenset[str]) -> list[tuple[str, str]]:
    """Type and name of the further parameters: shadows of arrays, cells for the cotangents of scalars."""
    return [("ptr", f"{p.name}'.data") for p in params if p.name in active]


def alloc_size(alloc: Instr) -> Value:
    """The bytes of a local array."""
    if alloc.op == "alloca":
        return Const("i64", f"ptrtoint (ptr getelementptr ({alloc.elem}, ptr null, i32 1) to i64)")
    return alloc.operands[0]


class Shadowed:
    """``fn`` is a copy of ``original``; ``values`` and ``blocks`` lead from there to here. ``make`` emits a shadow of
    a local array of so many bytes, filled with zeros."""

    def __init__(self, original: Function, name: str, make: Callable[[Builder, Value], Value]) -> None:
        self.original = original
        self.fn, self.values, self.blocks = original.clone(name)
        self.make = make
        self.shadows: dict[Value, Value] = {}

    def parameter(self, type: str, name: str) -> Arg:
        """A further parameter."""
        self.fn.args.append(Arg(type, name))
        return self.fn.args[-1]

    def value(self, v: Value) -> Value:
        """A value of the original, here."""
        return self.values.get(v, v)

    def shadow(self, p: Value) -> Value:
        """The shadow of a pointer of the original; made beside it when first asked for."""
        if isinstance(p, Const):
            return p
        if isinstance(p, Arg):
            return self.fn.arg(f"{p.name.removesuffix('.data')}'.data")
        if p not in self.shadows:
            assert isinstance(p, Instr)
            new = self.values[p]
            assert isinstance(new, Instr)
            assert new.block is not None
            self._make(p, new, new.block)
        return self.shadows[p]

    def _make(self, p: Instr, new: Instr, block: Block) -> None:
        if p.op == "phi":
            phi = Instr("phi", "ptr", [], targets=list(new.targets))
            self.shadows[p] = block.insert(block.instrs.index(new), phi)
            phi.operands = [self.shadow(o) for o in p.operands]
        elif is_alloc(p):
            self.shadows[p] = self.make(Builder(block, at=block.instrs.index(new) + 1), self.value(alloc_size(p)))
        else:
            operands = [self.shadow(o) if o.type == "ptr" else self.value(o) for o in p.operands]
            made = Instr(p.op, "ptr", operands, flags=p.flags, elem=p.elem)
            self.shadows[p] = block.insert(block.instrs.index(new) + 1, made)
