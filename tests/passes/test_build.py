"""The builder: what it emits is well-formed, and its peepholes are exact for every operand."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from irad.passes.build import Builder, new_block
from irad.passes.ir import ops
from irad.passes.ir.const import const_value
from irad.passes.ir.interp import run
from irad.passes.ir.model import Arg, Block, Const, Function, Instr, Loc, Value
from irad.passes.ir.read import read_function
from irad.passes.ir.values import as_type
from irad.passes.ir.verify import verify
from irad.passes.ir.write import write_functions

from .ir_tools import bits

NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.1, 2.5, 3e38, 1e-45, 1e300, 5e-324, math.inf, -math.inf, math.nan]
BINARY = {"fadd": operator.add, "fsub": operator.sub, "fmul": operator.mul, "fdiv": operator.truediv}


def outcome(type: str, build: Callable[[Builder, Arg], Value], x: float) -> Any:
    """The bits of what some instructions about a parameter give."""
    fn = Function("f", type, [Arg(type, "x")])
    b = new_block(fn, "entry")
    b.ret(build(b, fn.args[0]))
    verify(fn)
    return bits(type, run(fn, [x]))


@pytest.mark.parametrize("type", ["double", "float"])
@pytest.mark.parametrize("op", BINARY)
def test_arithmetic_with_a_constant_has_the_bits_of_plain_arithmetic(op: str, type: str) -> None:
    number = np.float64 if type == "double" else np.float32
    with np.errstate(all="ignore"):
        for x, c in itertools.product(NUMBERS, NUMBERS):
            for left in (True, False):

                def build(b: Builder, v: Arg, c: float = c, left: bool = left) -> Value:
                    return getattr(b, op)(*((v, b.const(type, c)) if left else (b.const(type, c), v)))

                pair = (number(x), number(c))
                expected = BINARY[op](*(pair if left else pair[::-1]))
                assert outcome(type, build, x) == bits(type, expected), (x, c, left)


@pytest.mark.parametrize("type", ["double", "float"])
@pytest.mark.parametrize("op", BINARY)
def test_constants_are_folded_as_the_machine_would(op: str, type: str) -> None:
    number = np.float64 if type == "double" else np.float32
    b = Builder(Block("entry"))
    with np.errstate(all="ignore"):
        for x, y in itertools.product(NUMBERS, NUMBERS):
            found = getattr(b, op)(b.const(type, x), b.const(type, y))
            expected = BINARY[op](number(x), number(y))
            if isinstance(found, Const):
                value = const_value(found)
                assert value is not None
                assert bits(type, value) == bits(type, expected), (x, y)
            else:
                assert np.isnan(expected)


def test_peepholes_apply() -> None:
    b = Builder(Block("entry"))
    x, n, c = Arg("double", "x"), Arg("i64", "n"), Arg("i1", "c")
    one, zero, minus = b.const("double", 1.0), b.const("double", 0.0), b.const("double", -0.0)
    same = [
        b.fmul(x, one), b.fmul(one, x), b.fdiv(x, one), b.fadd(x, minus), b.fadd(minus, x), b.fsub(x, zero),
        b.fneg(b.fneg(x)), b.select(c, x, x), b.select(b.const("i1", 1), x, zero), b.to_float(x, "double"),
    ]  # fmt: skip
    assert all(v is x for v in same)
    k0, k1 = b.const("i64", 0), b.const("i64", 1)
    assert all(v is n for v in (b.add(n, k0), b.add(k0, n), b.sub(n, k0), b.mul(n, k1), b.mul(k1, n)))
    assert b.and_(c, b.const("i1", 1)) is c
    assert b.or_(b.const("i1", 0), c) is c
    assert isinstance(b.select(c, one, b.const("double", 1.0)), Const)
    assert [i.op for i in b.block.instrs] == ["fneg"]


def test_what_is_no_identity_stays() -> None:
    b = Builder(Block("entry"))
    x = Arg("double", "x")
    zero, minus = b.const("double", 0.0), b.const("double", -0.0)
    kept = [b.fmul(x, zero), b.fadd(x, zero), b.fsub(x, minus), b.fsub(zero, x), b.fdiv(zero, x), b.fmul(x, minus)]
    assert all(isinstance(v, Instr) for v in kept)
    assert len(b.block.instrs) == len(kept)
    assert isinstance(b.fsub(minus, x), Instr)
    assert b.block.instrs[-1].op == "fneg"


@pytest.mark.parametrize("pred", [p for p in ops.FCMP if p not in ("true", "false")])
def test_comparisons_of_constants(pred: str) -> None:
    for x, y in itertools.product([0.0, -0.0, 1.0, math.inf, math.nan], repeat=2):
        fn = Function("f", "i1", [Arg("double", "x"), Arg("double", "y")])
        b = new_block(fn, "entry")
        b.ret(b.fcmp(pred, *fn.args))
        known = b.fcmp(pred, b.const("double", x), b.const("double", y))
        if isinstance(known, Const):
            assert const_value(known) == run(fn, [x, y]), (x, y)


@pytest.mark.parametrize("pred", ops.ICMP)
def test_comparisons_of_integers(pred: str) -> None:
    for x, y in itertools.product([0, 1, -1, 2**63 - 1], repeat=2):
        fn = Function("f", "i1", [Arg("i64", "x"), Arg("i64", "y")])
        b = new_block(fn, "entry")
        b.ret(b.icmp(pred, *fn.args))
        known = b.icmp(pred, b.const("i64", x), b.const("i64", y))
        if isinstance(known, Const):
            assert const_value(known) == run(fn, [x, y]), (x, y)


def test_integers_wrap() -> None:
    b = Builder(Block("entry"))
    top = b.const("i32", 2**31 - 1)
    assert const_value(b.add(top, b.const("i32", 1))) == -(2**31)
    assert const_value(b.mul(top, top)) == 1
    assert const_value(b.sub(b.const("i32", -(2**31)), b.const("i32", 1))) == 2**31 - 1
    assert const_value(b.xor(b.const("i1", 1), b.const("i1", 1))) == 0


@pytest.mark.parametrize("type", ["double", "float"])
def test_constants_read_back_as_they_were(type: str) -> None:
    fn = Function("f", type, [])
    for x in NUMBERS:
        fn.blocks.clear()
        b = new_block(fn, "entry")
        b.ret(b.const(type, x))
        again = read_function(write_functions(fn), "f")
        with np.errstate(over="ignore"):
            assert bits(type, run(again)) == bits(type, as_type(type, x)), x


def test_conversions_to_floats() -> None:
    fn = Function("f", "float", [Arg("double", "x"), Arg("i32", "n"), Arg("i1", "c"), Arg("float", "y")])
    b = new_block(fn, "entry")
    x, n, c, y = fn.args
    total = b.fadd(b.fadd(b.to_float(x, "float"), b.to_float(n, "float")), b.fadd(b.to_float(c, "float"), y))
    b.ret(b.fadd(total, b.to_float(b.const("double", 0.1), "float")))
    verify(fn)
    assert run(fn, [1.5, -3, 1, 0.25]) == np.float32(-0.25) + np.float32(0.1)
    assert b.to_float(b.const("i64", 7), "double").text == "7.000000e+00"  # type: ignore[attr-defined]


def test_insertion_before_a_position() -> None:
    fn = Function("f", "double", [Arg("double", "x")])
    b = new_block(fn, "entry")
    y = b.fadd(fn.args[0], fn.args[0])
    b.ret(y)
    before = Builder(b.block, Loc("user.py", 3), ("contract",), at=0)
    z = before.fmul(fn.args[0], before.const("double", 3.0))
    w = before.fneg(z)
    assert isinstance(z, Instr)
    assert [i.op for i in b.block.instrs] == ["fmul", "fneg", "fadd", "ret"]
    assert z.block is b.block
    assert z.flags == ("contract",)
    assert z.loc == Loc("user.py", 3)
    fn.replace_uses(y, w)
    verify(fn)
    assert run(fn, [2.0]) == -6.0


def test_a_function_with_all_kinds_of_instructions() -> None:
    """Sum of sqrt(k) over k < n in a loop, through a local variable, with a switch at the end."""
    fn = Function("f", "double", [Arg("i64", "n")])
    names = ("entry", "head", "body", "done", "odd", "other")
    b, head, body, done, odd, other = (new_block(fn, name) for name in names)
    (n,) = fn.args
    slot = b.alloca("[2 x double]", "s")
    second = b.gep("[2 x double]", slot, b.const("i64", 0), b.const("i64", 1), flags=("inbounds",))
    b.store(b.const("double", 0.0), second)
    b.br(head.block)
    k = head.phi("i64", [(b.const("i64", 0), b.block)])
    head.cond_br(head.icmp("slt", k, n), body.block, done.block)
    root = body.call_math("sqrt", body.to_float(k, "double"))
    body.store(body.fadd(body.load("double", second), root), second)
    k.operands.append(body.add(k, body.const("i64", 1), flags=("nsw",)))
    k.targets.append(body.block)
    body.br(head.block)
    total = done.load("double", second)
    done.switch(done.and_(n, done.const("i64", 1)), other.block, [(1, odd.block)])
    odd.ret(odd.fneg(total))
    other.ret(total)
    verify(fn)
    assert run(fn, [4]) == pytest.approx(math.sqrt(2) + math.sqrt(3) + 1)
    assert run(fn, [3]) == pytest.approx(-math.sqrt(2) - 1)
    assert run(read_function(write_functions(fn), "f"), [9]) == run(fn, [9])


def test_structured_operations() -> None:
    fn = Function("f", "void", [Arg("i64", ".i0"), Arg("i64", "T.n0"), Arg("double", "a")])
    b = new_block(fn, "entry")
    i, n, a = fn.args
    at = b.iwrap(b.sub(i, b.const("i64", 1)), n)
    t = b.aload("double", "T", [at])
    s = b.sload("double", "T", [at])
    b.astore(b.fmul(t, a), "T", [i])
    b.sstore(b.fmul(s, a), "T", [i])
    b.accum(t, "T", [at])
    b.accums(t, "a")
    b.ret()
    verify(fn)
    arrays = {"T": np.array([1.0, 2.0, 3.0]), "T'": np.array([10.0, 20.0, 30.0]), "a'": np.zeros(1)}
    run(fn, {"a": 2.0, ".i0": 0, "T.n0": 3}, arrays)
    np.testing.assert_array_equal(arrays["T"], [6, 2, 3])
    np.testing.assert_array_equal(arrays["T'"], [60, 20, 33])
    assert arrays["a'"] == [3.0]
