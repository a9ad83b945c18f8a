"""Every rule of well-formedness is broken once, and the message shows where."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from irad.passes.ir.model import (
    Access,
    Arg,
    ArrayParam,
    Block,
    Const,
    Function,
    Index,
    Instr,
    LinExpr,
    PointFn,
    ScalarParam,
)
from irad.passes.ir.read import read_function, read_module
from irad.passes.ir.verify import MalformedError, verify, verify_module, verify_point

TEXT = """
declare double @llvm.pow.f64(double, double)
define double @f(double %x, i64 %n, ptr %p) {
entry:
  %c = icmp slt i64 %n, 0
  br i1 %c, label %a, label %b
a:
  %s = fadd double %x, 1.000000e+00
  br label %end
b:
  %t = load double, ptr %p, align 8
  switch i64 %n, label %end [
    i64 1, label %a
    i64 2, label %end
  ]
end:
  %r = phi double [ %s, %a ], [ %t, %b ], [ %t, %b ]
  %q = call double @llvm.pow.f64(double %r, double %x)
  %w = select i1 %c, double %q, double %r
  %z = fptrunc double %w to float
  store double %w, ptr %p, align 8
  ret double %w
}"""


def named(fn: Function, name: str) -> Instr:
    return next(i for i in fn.instrs() if i.name == name)


def block(fn: Function, name: str) -> Block:
    return next(b for b in fn.blocks if b.name == name)


def drop_terminator(fn: Function) -> None:
    block(fn, "a").instrs.pop()


def empty_block(fn: Function) -> None:
    fn.block("nothing")


def terminator_inside(fn: Function) -> None:
    b = block(fn, "a")
    b.insert(0, Instr("br", "void", targets=[block(fn, "end")]))


def phi_late(fn: Function) -> None:
    b = block(fn, "end")
    b.instrs[0], b.instrs[1] = b.instrs[1], b.instrs[0]


def phi_entry_missing(fn: Function) -> None:
    phi = named(fn, "r")
    phi.operands.pop()
    phi.targets.pop()


def phi_two_values(fn: Function) -> None:
    named(fn, "r").operands[2] = fn.args[0]


def other_function(fn: Function) -> None:
    named(fn, "s").operands[0] = Arg("double", "x")


def not_there(fn: Function) -> None:
    named(fn, "s").operands[0] = Instr("fneg", "double", [fn.args[0]])


def not_dominated(fn: Function) -> None:
    named(fn, "q").operands[1] = named(fn, "s")


def used_before(fn: Function) -> None:
    b = block(fn, "end")
    b.instrs[1], b.instrs[2] = b.instrs[2], b.instrs[1]


def wrong_type(fn: Function) -> None:
    named(fn, "s").operands[0] = fn.args[1]


def wrong_result(fn: Function) -> None:
    named(fn, "s").type = "float"


def wrong_count(fn: Function) -> None:
    named(fn, "s").operands.pop()


def wrong_flag(fn: Function) -> None:
    named(fn, "s").flags = ("nsw",)


def wrong_predicate(fn: Function) -> None:
    named(fn, "c").pred = "olt"


def wrong_cast(fn: Function) -> None:
    named(fn, "z").op = "fpext"


def unknown_op(fn: Function) -> None:
    named(fn, "s").op = "fadd3"


def wrong_block(fn: Function) -> None:
    named(fn, "s").block = block(fn, "b")


def wrong_target(fn: Function) -> None:
    block(fn, "a").terminator.targets = [Block("elsewhere")]


def wrong_return(fn: Function) -> None:
    block(fn, "end").terminator.operands = [fn.args[1]]


def wrong_branch(fn: Function) -> None:
    block(fn, "entry").terminator.operands = [fn.args[1]]


def wrong_switch(fn: Function) -> None:
    block(fn, "b").terminator.cases = (1, 1)


def wrong_call(fn: Function) -> None:
    named(fn, "q").operands[1] = fn.args[1]


def wrong_spelling(fn: Function) -> None:
    named(fn, "q").callee = "pow"


def store_order(fn: Function) -> None:
    store = next(i for i in fn.instrs() if i.op == "store")
    store.operands.reverse()


def to_entry(fn: Function) -> None:
    block(fn, "a").terminator.targets = [fn.blocks[0]]


BROKEN: dict[Callable[[Function], None], str] = {
    drop_terminator: "does not end in a terminator",
    empty_block: "does not end in a terminator",
    terminator_inside: "a terminator inside a block",
    phi_late: "a phi after other instructions",
    phi_entry_missing: "the edges come from",
    phi_two_values: "two values for the edges from b",
    other_function: "parameter of another function",
    not_there: "is not in the function",
    not_dominated: "not defined on every way",
    used_before: "not defined on every way",
    wrong_type: "should be i64",
    wrong_result: "its type is float, it should be double",
    wrong_count: "1 operands instead of 2",
    wrong_flag: "no flags",
    wrong_predicate: "the predicate 'olt'",
    wrong_cast: "from double to float",
    unknown_op: "in no table",
    wrong_block: "but says",
    wrong_target: "not in the function",
    wrong_return: "returns i64",
    wrong_branch: "a branch on an i1",
    wrong_switch: "one block for each different case",
    wrong_call: "pow takes",
    wrong_spelling: "should be spelled llvm.pow.f64",
    store_order: "a store takes a value and a pointer",
    to_entry: "jumps back to its entry",
}


@pytest.mark.parametrize("breaks", BROKEN, ids=lambda f: f.__name__)
def test_every_rule(breaks: Callable[[Function], None]) -> None:
    fn = read_function(TEXT, "f")
    verify(fn)
    breaks(fn)
    with pytest.raises(MalformedError, match=BROKEN[breaks]):
        verify(fn)


def test_the_message_shows_the_neighbourhood() -> None:
    fn = read_function(TEXT, "f")
    wrong_flag(fn)
    with pytest.raises(MalformedError) as e:
        verify(fn)
    lines = str(e.value).splitlines()
    assert any(line.startswith("-->") and "%s = fadd nsw" in line for line in lines)
    assert any("br i1 %c" in line for line in lines)


def test_a_call_must_fit_the_function_that_it_calls() -> None:
    text = "define void @g(i64 %n) {\n ret void\n}\ndefine void @f() {\n call void @g(i64 3)\n ret void\n}"
    module = read_module(text)
    verify_module(module)
    next(module.functions["f"].instrs()).operands[0] = Const("i32", "3")
    with pytest.raises(MalformedError, match="the call takes"):
        verify_module(module)


def point() -> PointFn:
    words = [Arg("i64", ".i0"), Arg("ptr", "T.data"), Arg("i64", "T.n0"), Arg("i64", "T.s0"), Arg("double", "lam")]
    fn = Function("p", "void", words)
    b = fn.block("entry")
    access = Access("T", (Index(0, LinExpr(0)),))
    b.append(Instr("aload", "double", [fn.args[0]], array="T", access=access))
    b.append(Instr("ret", "void"))
    return PointFn(fn, 1, (ArrayParam("T", "double", 1), ScalarParam("lam", "double")))


def test_point_functions() -> None:
    verify_point(point())
    wrong = point()
    wrong.fn.args[1:3] = wrong.fn.args[2:0:-1]
    with pytest.raises(MalformedError, match="the parameters are"):
        verify_point(wrong)
    wrong = point()
    load = next(wrong.fn.instrs())
    load.operands.append(load.operands[0])
    with pytest.raises(MalformedError, match="2 indices, but an access of 1"):
        verify_point(wrong)
    wrong = point()
    next(wrong.fn.instrs()).array = "Q"
    with pytest.raises(MalformedError, match="its access is of T"):
        verify_point(wrong)
