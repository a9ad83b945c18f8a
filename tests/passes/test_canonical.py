"""LLVM's optimiser as it runs before differentiating."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from irad.passes.canonical import canonicalise, inline, optimise
from irad.passes.ir.interp import run
from irad.passes.ir.model import Function
from irad.passes.ir.read import read_function
from irad.passes.ir.write import write_functions
from irad.passes.prepare import prepare_function

from irad.errors import IradError, NotDifferentiableError

from .ir_tools import bits, compiled
from .random_functions import functions


def ops(text: str) -> list[str]:
    return [i.callee or i.op for i in read_function(text, "f").instrs()]


def test_everything_is_inlined() -> None:
    text = """
    define double @g(double %x) noinline optnone {
      %y = fadd double %x, 1.0
      ret double %y
    }
    define double @h(double %x) #0 {
      %y = call double @g(double %x)
      ret double %y
    }
    define double @f(double %x) {
      %y = call double @h(double %x)
      ret double %y
    }
    attributes #0 = { noinline cold }
    """
    result = canonicalise(text, {"f"})
    assert ops(result) == ["fadd", "ret"]
    assert "@g" not in result
    assert "@g(" in canonicalise(text, {"f", "g"})


LOOP = """
define double @f(ptr %p, double %x) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %s = phi double [ %x, %entry ], [ %t, %head ]
  %q = getelementptr double, ptr %p, i64 %i
  %v = load double, ptr %q, align 8
  %t = fadd double %s, %v
  %next = add nuw nsw i64 %i, 1
  %more = icmp ne i64 %next, COUNT
  br i1 %more, label %head, label %done
done:
  ret double %t
}"""


def test_loops_of_known_length_are_unrolled() -> None:
    assert ops(canonicalise(LOOP.replace("COUNT", "5"), {"f"})).count("load") == 5


def test_nothing_is_vectorised() -> None:
    text = canonicalise(LOOP.replace("COUNT", "1024").replace("fadd", "fadd fast"), {"f"})
    assert "x double>" not in text


BRANCH = """
define double @f(double %x) {
entry:
  %c = fcmp olt double %x, 0x5F138D352E5096AF
  br i1 %c, label %then, label %done
then:
  %y = fmul double %x, %x
  br label %done
done:
  %r = phi double [ %y, %then ], [ 0.0, %entry ]
  ret double %r
}"""


def test_no_work_is_done_that_the_branches_do_not_do() -> None:
    assert "select" in ops(canonicalise(BRANCH, {"f"}))  # what LLVM does on its own
    text = optimise(inline(BRANCH, {"f"}, branches=True))
    assert "select" not in ops(text)
    fn = prepare_function(BRANCH, "f", frozenset())
    (product,) = [i for i in fn.instrs() if i.op == "fmul"]
    assert product.block is not fn.blocks[0]
    assert run(fn, [3.0]) == 9.0
    assert run(fn, [1e200]) == 0.0


def test_recursion_ends_and_is_refused() -> None:
    text = """
    define double @f(double %x) {
      %y = call double @g(double %x)
      ret double %y
    }
    define double @g(double %x) {
      %c = fcmp olt double %x, 0.0
      br i1 %c, label %a, label %b
    a:
      ret double %x
    b:
      %y = fsub double %x, 1.0
      %z = call double @h(double %y)
      ret double %z
    }
    define double @h(double %x) {
      %w = fmul double %x, 0.5
      %y = call double @g(double %w)
      %z = fadd double %y, %x
      ret double %z
    }"""
    with pytest.raises(NotDifferentiableError, match="recursive"):
        prepare_function(text, "f", frozenset())


def test_a_kernel_that_may_raise_is_refused() -> None:
    text = """
    declare void @irad.status(i32)
    define internal i32 @body(i64 %n) {
      %c = icmp eq i64 %n, 0
      %s = select i1 %c, i32 1, i32 0
      ret i32 %s
    }
    define void @f(i64 %n) {
      %status = call i32 @body(i64 NUMBER)
      %failed = icmp ne i32 %status, 0
      br i1 %failed, label %fail, label %done
    fail:
      call void @irad.status(i32 %status)
      br label %done
    done:
      ret void
    }"""
    assert [i.op for i in prepare_function(text.replace("NUMBER", "3"), "f", frozenset()).instrs()] == ["ret"]
    with pytest.raises(NotDifferentiableError, match="may raise"):
        prepare_function(text.replace("NUMBER", "%n"), "f", frozenset())


def test_text_that_llvm_rejects_is_an_error() -> None:
    with pytest.raises(IradError, match="not a valid LLVM module"):
        canonicalise("define double @f() { ret }", {"f"})


@given(functions())
@settings(max_examples=100, deadline=None)
def test_random_functions_keep_their_bits(fn: Function) -> None:
    new = prepare_function(write_functions(fn), "f", frozenset())
    code = compiled(new)
    for c, d in itertools.product((0, 1), repeat=2):
        for x, y in ((0.25, 1.0), (-2.0, -2.0), (3.0, 0.0)):
            args = [c, d, x, y]
            expected = bits("double", run(fn, args))
            assert bits("double", run(new, args)) == expected
            assert bits("double", code(*args)) == expected
