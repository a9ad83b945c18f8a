"""Random functions of two conditions and two numbers: forward branches, empty blocks, all kinds of conditions."""

from __future__ import annotations

from hypothesis import strategies as st
from irad.passes.ir import ops
from irad.passes.ir.const import float_const
from irad.passes.ir.model import Arg, Block, Const, Function, Instr, Value

NUMBERS = (0.0, -0.0, 1.0, -1.5, 0.25, 3.0)


@st.composite
def functions(draw: st.DrawFn) -> Function:
    fn = Function("f", "double", [Arg("i1", "c"), Arg("i1", "d"), Arg("double", "x"), Arg("double", "y")])
    n = draw(st.integers(2, 8))
    blocks = [fn.block(f"b{k}") for k in range(n)]
    edges = [[draw(st.integers(k + 1, n - 1)) for _ in range(draw(st.integers(1, 2)))] for k in range(n - 1)] + [[]]
    ends: list[Value] = []
    for k, b in enumerate(blocks):
        incoming = [blocks[p] for p in range(k) for t in edges[p] if t == k]
        value: Value = fn.args[2]
        if incoming:
            values = [ends[blocks.index(p)] for p in incoming]
            value = b.append(Instr("phi", "double", values, targets=incoming))
        for _ in range(draw(st.integers(0, 2))):
            value = b.append(_operation(draw, fn, value))
        if draw(st.booleans()):
            value = float_const("double", draw(st.sampled_from(NUMBERS)))
        ends.append(value)
        _leave(draw, fn, b, value, [blocks[t] for t in edges[k]])
    return fn


def _operation(draw: st.DrawFn, fn: Function, value: Value) -> Instr:
    number = float_const("double", draw(st.sampled_from(NUMBERS)))
    other: Value = draw(st.sampled_from([number, fn.args[3], value]))
    op = draw(st.sampled_from(["fadd", "fsub", "fmul", "fdiv", "fneg", "fabs", "maxnum", "pow"]))
    if op == "fneg":
        return Instr(op, "double", [value])
    if op in ops.MATH:
        return Instr("call", "double", [value, other][: ops.MATH[op].arity], callee=ops.math_callee(op, "double"))
    return Instr(op, "double", [value, other])


def _leave(draw: st.DrawFn, fn: Function, b: Block, value: Value, targets: list[Block]) -> None:
    if not targets:
        b.append(Instr("ret", "void", [value]))
    elif len(targets) == 1:
        b.append(Instr("br", "void", targets=targets))
    else:
        computed = Instr("fcmp", "i1", [value, fn.args[3]], pred=draw(st.sampled_from(ops.FCMP)))
        choices: list[Value] = [fn.args[0], fn.args[1], Const("i1", "true"), Const("i1", "false"), computed]
        condition = draw(st.sampled_from(choices))
        if condition is computed:
            b.append(computed)
        b.append(Instr("br", "void", [condition], targets=targets))
