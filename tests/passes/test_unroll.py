"""Loops of known length are unrolled completely, others stay."""

from __future__ import annotations

import numpy as np
import pytest
from irad.passes.canonical import inline, optimise
from irad.passes.ir.graph import loops
from irad.passes.ir.interp import run
from irad.passes.ir.model import Function
from irad.passes.ir.read import normalised, read_function, skim_function
from irad.passes.unroll import MOST_TRIPS, trip_count, unroll


def counted(start: int, step: str, test: str) -> str:
    return f"""
    define i64 @f(i64 %n, ptr %p) {{
    entry:
      br label %head
    head:
      %i = phi i64 [ {start}, %entry ], [ %next, %body ]
      %s = phi i64 [ 0, %entry ], [ %t, %body ]
      %more = {test}
      br i1 %more, label %body, label %done
    body:
      %t = add i64 %s, %i
      %next = {step}
      br label %head
    done:
      ret i64 %s
    }}"""


def header_runs(fn: Function) -> int:
    """How often the interpreter enters the block ``head``."""
    from irad.passes.ir import interp

    count = 0
    original = interp._Machine._run_block

    def counting(self, block, previous, values):  # type: ignore[no-untyped-def]
        nonlocal count
        count += block.name == "head"
        return original(self, block, previous, values)

    interp._Machine._run_block = counting  # type: ignore[method-assign]
    try:
        run(fn, [0, 0])
    finally:
        interp._Machine._run_block = original  # type: ignore[method-assign]
    return count


@pytest.mark.parametrize(
    ("start", "step", "test"),
    [
        (0, "add i64 %i, 1", "icmp slt i64 %i, 5"),
        (-2, "add i64 %i, 1", "icmp ne i64 %i, 3"),
        (7, "sub i64 %i, 2", "icmp sgt i64 %i, 0"),
        (1, "mul i64 %i, 3", "icmp ult i64 %i, 1000"),
        (64, "lshr i64 %i, 1", "icmp ugt i64 %i, 0"),
        (0, "add i64 %i, 4", "icmp sle i64 %i, -1"),
        (0, "select i1 true, i64 9, i64 %i", "icmp eq i64 %i, 0"),
    ],
)
def test_trips_of_counted_loops(start: int, step: str, test: str) -> None:
    fn = read_function(counted(start, step, test), "f")
    (loop,) = loops(fn)
    assert trip_count(fn, loop) == header_runs(fn)


@pytest.mark.parametrize(
    ("step", "test"),
    [
        ("add i64 %i, 1", "icmp slt i64 %i, %n"),
        ("add i64 %i, %n", "icmp slt i64 %i, 5"),
        ("load i64, ptr %p", "icmp slt i64 %i, 5"),
        ("add i64 %i, 0", "icmp slt i64 %i, 5"),
        ("add i64 %i, 1", f"icmp slt i64 %i, {MOST_TRIPS + 1}"),
        ("sdiv i64 %i, 0", "icmp slt i64 %i, 5"),
    ],
)
def test_loops_whose_length_is_not_known_or_too_great(step: str, test: str) -> None:
    fn = read_function(counted(0, step, test), "f")
    (loop,) = loops(fn)
    assert trip_count(fn, loop) is None


def nest(n: int, m: int) -> str:
    """A filter with weights computed from the indices, as a twice nested loop too long for LLVM's taste."""
    work = "\n".join(f"      %w{k} = fmul double %w{k - 1}, %x" for k in range(1, 9))
    return f"""
    define double @f(ptr %u.data, i64 %u.n0, i64 %u.s0, double %x) {{
    entry:
      br label %outer
    outer:
      %a = phi i64 [ 0, %entry ], [ %a1, %outer.next ]
      %s = phi double [ 0.0, %entry ], [ %t, %outer.next ]
      br label %inner
    inner:
      %b = phi i64 [ 0, %outer ], [ %b1, %inner ]
      %r = phi double [ %s, %outer ], [ %t, %inner ]
      %row = mul i64 %a, {m}
      %k = add i64 %row, %b
      %o = mul i64 %k, %u.s0
      %p = getelementptr i8, ptr %u.data, i64 %o
      %v = call double @irad.guard.load.f64(ptr %p, i32 8)
      %w0 = fmul double %v, %x
{work}
      %t = fadd double %r, %w8
      %b1 = add i64 %b, 1
      %bm = icmp slt i64 %b1, {m}
      br i1 %bm, label %inner, label %outer.next
    outer.next:
      %a1 = add i64 %a, 1
      %am = icmp slt i64 %a1, {n}
      br i1 %am, label %outer, label %done
    done:
      ret double %t
    }}
    declare double @irad.guard.load.f64(ptr, i32) nounwind willreturn nomerge memory(argmem: read)"""


def test_a_nest_that_llvm_leaves() -> None:
    text = optimise(inline(nest(5, 7), {"f"}))
    assert loops(read_function(text, "f"))
    fn = read_function(unroll(text, "f"), "f")
    assert not loops(fn)
    assert sum(i.op == "load" for i in fn.instrs()) == 35
    u = np.random.default_rng(1).random(35)
    expected = run(read_function(nest(5, 7), "f"), {"x": 0.9}, {"u": u})
    assert run(fn, {"x": 0.9}, {"u": u}) == expected


def test_a_long_loop_stays_and_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    text = optimise(inline(nest(40, 30), {"f"}))
    assert loops(read_function(unroll(text, "f"), "f"))
    runtime = optimise(inline(counted(0, "add i64 %i, 3", "icmp slt i64 %i, %n"), {"f"}))
    unroll(runtime, "f")
    assert capfd.readouterr() == ("", "")


def test_text_without_loops_comes_back_as_it_is() -> None:
    text = normalised("define double @f(double %x) {\n  ret double %x\n}")
    assert unroll(text, "f") is text


def test_skimming_refuses_nothing() -> None:
    text = normalised(
        """
        declare double @strange(double)
        define double @f(double %x) {
          %y = call double @strange(double %x)
          %v = insertelement <2 x double> undef, double %y, i32 0
          %z = fadd double %y, %x
          ret double %z
        }"""
    )
    fn = skim_function(text, "f")
    assert [i.op for i in fn.instrs()] == ["call", "call", "fadd", "ret"]


def test_a_status_inside_a_loop_goes_with_the_loop() -> None:
    """An index into a tuple is checked in every trip; with the trips counted out, the check is decided."""
    text = """
    declare void @irad.status(i32)
    declare double @irad.guard.load.f64(ptr, i32) nounwind willreturn nomerge memory(argmem: read)
    define double @f(ptr %u.data, double %x) {
    entry:
      br label %head
    head:
      %i = phi i64 [ 0, %entry ], [ %next, %body ]
      %s = phi double [ %x, %entry ], [ %t, %body ]
      %bad = icmp ugt i64 %i, 40
      br i1 %bad, label %fail, label %body
    body:
      %p = getelementptr double, ptr %u.data, i64 %i
      %v = call double @irad.guard.load.f64(ptr %p, i32 8)
      %w = fmul double %v, %s
      %t = fadd double %s, %w
      %next = add i64 %i, 1
      %more = icmp slt i64 %next, 30
      br i1 %more, label %head, label %done
    fail:
      call void @irad.status(i32 1)
      br label %done
    done:
      %r = phi double [ %t, %body ], [ 0.0, %fail ]
      ret double %r
    }"""
    fn = read_function(unroll(optimise(inline(text, {"f"}, branches=True)), "f"), "f")
    assert not loops(fn)
