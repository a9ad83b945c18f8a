"""Tidied functions do the same with fewer blocks."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from irad.passes.ir.interp import InterpreterError, run
from irad.passes.ir.model import Function
from irad.passes.ir.read import read_function
from irad.passes.ir.verify import verify
from irad.passes.ir.write import write_functions
from irad.passes.tidy import tidy

from .ir_tools import bits
from .random_functions import functions


def tidied(text: str) -> Function:
    fn = read_function(text, "f")
    before = write_functions(fn)
    new = tidy(fn)
    verify(new)
    assert write_functions(fn) == before
    return new


def ops(fn: Function) -> list[str]:
    return [i.op for i in fn.instrs()]


@pytest.mark.parametrize("shape", ["triangle", "diamond", "other triangle"])
def test_arms_without_work_become_a_select(shape: str) -> None:
    to = {"triangle": ("%a", "%end"), "diamond": ("%a", "%b"), "other triangle": ("%end", "%b")}[shape]
    text = f"""
    define double @f(i1 %c, double %x, double %y) {{
    entry:
      br i1 %c, label {to[0]}, label {to[1]}
    a:
      br label %end
    b:
      br label %end
    end:
      %r = phi double [ %x, {"%entry" if to[0] == "%end" else "%a"} ], [ %y, {"%entry" if to[1] == "%end" else "%b"} ]
      ret double %r
    }}"""
    unused = {"%a": "    a:\n      br label %end\n", "%b": "    b:\n      br label %end\n"}
    for name, lines in unused.items():
        text = text if name in to else text.replace(lines, "")
    fn = tidied(text)
    assert ops(fn) == ["select", "ret"]
    assert run(fn, [1, 3.0, 4.0]) == 3.0
    assert run(fn, [0, 3.0, 4.0]) == 4.0


def test_arms_with_work_stay() -> None:
    fn = tidied(
        """
        define double @f(i1 %c, double %x) {
        entry:
          br i1 %c, label %a, label %end
        a:
          %y = fmul double %x, %x
          br label %end
        end:
          %r = phi double [ %y, %a ], [ %x, %entry ]
          ret double %r
        }"""
    )
    assert ops(fn) == ["br", "fmul", "br", "phi", "ret"]


def test_comparisons_of_literals_are_decided() -> None:
    fn = tidied(
        """
        define double @f(double %x) {
        entry:
          %c = fcmp ogt double 2.0, 1.0
          br i1 %c, label %a, label %b
        a:
          %d = fcmp uno double 1.0, 2.0
          %z = select i1 %d, double 7.0, double %x
          br label %end
        b:
          %w = fdiv double 1.0, %x
          br label %end
        end:
          %r = phi double [ %z, %a ], [ %w, %b ]
          ret double %r
        }"""
    )
    assert ops(fn) == ["ret"]
    assert fn.blocks[0].terminator.operands[0] is fn.args[0]


@pytest.mark.parametrize(("value", "result"), [(1, 10.0), (2, 20.0), (5, 30.0)])
def test_a_switch_on_a_literal(value: int, result: float) -> None:
    fn = tidied(
        f"""
        define double @f() {{
        entry:
          switch i64 {value}, label %c [
            i64 1, label %a
            i64 2, label %b
          ]
        a:
          br label %end
        b:
          br label %end
        c:
          br label %end
        end:
          %r = phi double [ 10.0, %a ], [ 20.0, %b ], [ 30.0, %c ]
          ret double %r
        }}"""
    )
    assert ops(fn) == ["ret"]
    assert run(fn) == result


def test_chains_of_blocks_are_joined_and_empty_ones_skipped() -> None:
    fn = tidied(
        """
        define double @f(i1 %c, i1 %d, double %x) {
        entry:
          br i1 %c, label %hop, label %far
        hop:
          br label %next
        next:
          %y = fadd double %x, 1.0
          br i1 %d, label %far, label %last
        last:
          %w = fmul double %y, %y
          br label %more
        more:
          %v = fadd double %w, %y
          ret double %v
        far:
          %r = phi double [ %x, %entry ], [ %y, %next ]
          ret double %r
        }"""
    )
    assert [b.name for b in fn.blocks] == ["entry", "next", "last", "far"]


def test_long_names_of_blocks_become_short() -> None:
    name = "_ZN" + "8__main__" * 9 + ".exit"
    fn = tidied(
        f"""
        define double @f(i1 %c, double %x) {{
        entry:
          br i1 %c, label %a, label %"{name}"
        a:
          %y = fmul double %x, %x
          br label %"{name}"
        "{name}":
          %r = phi double [ %y, %a ], [ %x, %entry ]
          ret double %r
        }}"""
    )
    assert [b.name for b in fn.blocks] == ["entry", "a", "exit"]


@given(functions())
@settings(max_examples=300, deadline=None)
def test_random_functions_keep_their_results(fn: Function) -> None:
    verify(fn)
    new = tidy(fn)
    verify(new)
    assert len(new.blocks) <= len(fn.blocks)
    for c, d in itertools.product((0, 1), repeat=2):
        for x, y in ((0.25, 1.0), (-2.0, -2.0), (3.0, 0.0)):
            args = [c, d, x, y]
            assert bits("double", run(new, args)) == bits("double", run(fn, args))


def test_a_loop_without_an_end_is_left_as_it_is() -> None:
    fn = tidied("define void @f() {\na:\n br label %b\nb:\n br label %c\nc:\n br label %b\n}")
    with pytest.raises(InterpreterError):
        _run_short(fn)


def _run_short(fn: Function) -> None:
    from irad.passes.ir import interp

    most, interp._MOST_STEPS = interp._MOST_STEPS, 100
    try:
        run(fn)
    finally:
        interp._MOST_STEPS = most
