"""Forward mode: a point function to one that computes its tangent along with it.

Every instruction that carries a derivative is followed by that of its tangent, in the same block, so that any control
flow is kept as it is, loops included. The tangent of an array is its shadow: read by ``sload``, written by ``sstore``
where the body writes the array, with zero where it stores a constant. A local variable that carries a derivative has a
second one for its tangent. The tangent of a scalar parameter ``a`` is a further parameter ``a.tangent``.
"""

from __future__ import annotations

from ..errors import NotDifferentiableError, ShadowError
from .activity import Activity, active_values, is_copy
from .build import DERIVATIVE_FLAGS, Builder
from .ir import ops
from .ir.graph import reverse_postorder
from .ir.model import Arg, Block, Const, Instr, Param, PointFn, ScalarParam, Value
from .rules import tangent_of
from .slots import Slots


def tangent(pf: PointFn, active: frozenset[str]) -> PointFn:
    """``pf`` together with its derivative along the tangents of the parameters in ``active``.

    ``active``: arrays, and float scalars, for each of which a ``ScalarParam("<name>.tangent")`` is added at the end.
    Every array into which a value that carries a derivative is stored must be among them (else ``ShadowError``).
    Raises ``NotDifferentiableError`` for operations without a derivative.
    """
    return _Forward(pf, active).run()


class _Forward:
    def __init__(self, pf: PointFn, active: frozenset[str]) -> None:
        self.fn, _, _ = pf.fn.clone(f"{pf.fn.name}.tangent")
        self.active = active
        body = PointFn(self.fn, pf.rank, pf.params)
        self.activity: Activity = active_values(body, active)
        self.memory = Slots(self.fn)
        self.tangents: dict[Value, Value] = {}
        """Of values that carry a derivative, their tangents; of pointers to local variables, those to the tangents."""
        self.phis: list[tuple[Instr, Instr]] = []
        params: list[Param] = list(pf.params)
        for p in pf.params:
            if isinstance(p, ScalarParam) and p.name in active and p.type in ops.FLOATS:
                params.append(ScalarParam(f"{p.name}.tangent", p.type))
                self.fn.args.append(Arg(p.type, params[-1].name))
                self.tangents[self.fn.arg(p.name)] = self.fn.args[-1]
        self.out = PointFn(self.fn, pf.rank, tuple(params))

    def run(self) -> PointFn:
        for block in reverse_postorder(self.fn):
            self._block(block)
        for phi, of_phi in self.phis:
            of_phi.operands = [self._tangent(v) for v in phi.operands]
            of_phi.targets = list(phi.targets)
        return self.out

    def _block(self, block: Block) -> None:
        phis, others = block.phis, block.instrs[len(block.phis) :]
        block.instrs = list(phis)
        b = Builder(block, flags=DERIVATIVE_FLAGS)
        for i in phis:
            if self.activity.carries(i) or self._is_shadowed(i):
                b.loc = i.loc
                self.tangents[i] = of_phi = b.emit("phi", i.type)
                self.phis.append((i, of_phi))
        for i in others:
            b.loc = i.loc
            if i.op in ops.TERMINATORS:
                block.instrs.append(i)
            else:
                block.append(i)
                self._step(b, i)

    def _step(self, b: Builder, i: Instr) -> None:
        if i.op == "astore":
            self._array_store(b, i)
        elif i.op in ("sload", "sstore", "accum", "accums"):
            raise NotDifferentiableError(
                "the derivative of an adjoint", loc=i.loc, remedy="differentiate a gradient by finite differences"
            )
        elif i.op == "alloca":
            if i in self.activity.slots:
                self.tangents[i] = b.alloca(i.elem, f"{i.name}.tangent" if i.name else "", i.align)
        elif i.op == "store":
            if self._is_shadowed(i.operands[1]):
                b.store(self._tangent(i.operands[0]), self.tangents[i.operands[1]], i.align)
        elif i.op == "call" and ops.call_kind(i.callee) == "memory":
            self._memory(b, i)
        elif self._is_shadowed(i):  # a pointer into a local variable
            same = {v: v for v in i.operands} | {v: self.tangents[v] for v in i.operands if v.type == "ptr"}
            self.tangents[i] = b.emit(
                i.op, "ptr", [same[v] for v in i.operands], elem=i.elem, flags=i.flags, align=i.align
            )
        elif self.activity.carries(i):
            found = self._of_value(b, i)
            if found is not None:
                self.tangents[i] = found

    def _of_value(self, b: Builder, i: Instr) -> Value | None:
        if i.op == "aload":
            return b.sload(i.type, i.array, i.operands, i.access)
        if i.op == "load":
            return b.load(i.type, self.tangents[i.operands[0]], i.align)
        return tangent_of(b, i, i.operands, i, [self.tangents.get(v) for v in i.operands])

    def _array_store(self, b: Builder, i: Instr) -> None:
        value, *index = i.operands
        if i.array in self.active:
            b.sstore(self._tangent(value), i.array, index, i.access)
        elif value in self.activity.values:
            raise ShadowError(
                f"a value that carries a derivative is stored into '{i.array}', which has no tangent",
                loc=i.loc,
                remedy=f"give a tangent for '{i.array}' too",
            )

    def _memory(self, b: Builder, i: Instr) -> None:
        """The tangent of a filled variable is zero, that of a copied one is copied."""
        target, source, *rest = i.operands
        if not self._is_shadowed(target):
            return
        if is_copy(i) and self._is_shadowed(source):
            b.emit("call", "void", [self.tangents[target], self.tangents[source], *rest], callee=i.callee)
        else:
            width = i.callee.rpartition(".")[2]
            b.emit(
                "call",
                "void",
                [self.tangents[target], Const("i8", "0"), *rest],
                callee=f"llvm.memset.p0.{width}",
            )

    def _is_shadowed(self, v: Value) -> bool:
        """Whether ``v`` points into a local variable that carries a derivative."""
        return v.type == "ptr" and isinstance(v, Instr) and self.memory.base(v) in self.activity.slots

    def _tangent(self, v: Value) -> Value:
        if v in self.tangents:
            return self.tangents[v]
        if v.type in ops.FLOATS:
            return Const(v.type, "0.000000e+00")
        return Const(v.type, "0" if ops.is_int(v.type) else "null" if v.type == "ptr" else "zeroinitializer")
