"""Passes of loop kernels on LLVM text, with no Numba in the loop: normal form, memory, record, derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from irad.passes.ir.graph import loops, predecessors
from irad.passes.ir.model import ArrayParam, ScalarParam
from irad.passes.ir.read import read_function
from irad.passes.layout import Program
from irad.passes.loop_function import Flow, normal_form
from irad.passes.loop_memory import Activity, Memory
from irad.passes.loop_program import adjoint_loop, loop_reached, loop_touched, primal_loop, tangent_loop
from irad.passes.loop_reverse import loop_adjoint

from irad.codegen.cpu import compile_text
from irad.errors import NotDifferentiableError
from irad.launch.block import fill
from irad.launch.bound import bind
from irad.launch.executable import Executable

X, Y = ArrayParam("x", "double", 1), ArrayParam("y", "double", 1)
HEAD = "define i32 @f(ptr %x.data, i64 %x.n0, i64 %x.s0, ptr %y.data, i64 %y.n0, i64 %y.s0, double %a)"
PARAMS = (X, Y, ScalarParam("a", "double"))

# y[0] = a * (x[0] * x[1] * ... ) with a way out of the loop, and an exception where x has no entry
PRODUCT = f"""{HEAD} {{
entry:
  %none = icmp eq i64 %x.n0, 0
  br i1 %none, label %fail, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %more ], [ %next, %skip ]
  %p = phi double [ %a, %entry ], [ %q, %more ], [ %p, %skip ]
  %next = add i64 %i, 1
  %at = getelementptr double, ptr %x.data, i64 %i
  %v = load double, ptr %at
  %negative = fcmp olt double %v, 0.0
  br i1 %negative, label %skip, label %body
skip:
  %last.s = icmp eq i64 %next, %x.n0
  br i1 %last.s, label %done, label %loop
body:
  %q = fmul double %p, %v
  %large = fcmp ogt double %q, 1.0e3
  br i1 %large, label %done, label %more
more:
  %last = icmp eq i64 %next, %x.n0
  br i1 %last, label %done, label %loop
done:
  %r = phi double [ %p, %skip ], [ %q, %body ], [ %q, %more ]
  store double %r, ptr %y.data
  ret i32 0
fail:
  ret i32 1234567
}}
"""


def launch(program: Program, arrays: dict, scalars: dict) -> int:
    """Run a program; its status."""
    executable = Executable(compile_text(program.text, keep=False), program.block, program.sweeps, 0)
    block = fill(program.block, arrays, scalars)
    bind(executable, block, executable.plan(block), arrays)()
    return int(block[len(program.block.words)])


def run(x: np.ndarray, a: float) -> tuple[float, np.ndarray, float, float]:
    """Value, cotangents of x and a for the seed 1, and the tangent along ones."""
    fn = read_function(PRODUCT, "f")
    active = frozenset(("x", "y", "a"))
    arrays, scalars = {"x": x, "y": np.zeros(1)}, {"a": ("double", a)}
    augmented, reverse = adjoint_loop(fn, PARAMS, active)
    shadows = {"x'": np.zeros_like(x), "y'": np.ones(1), "a'": np.zeros(1)}
    record = {".tape": np.zeros(8, np.int64)}
    assert launch(augmented, {**arrays, **shadows, **record}, scalars) == 0
    launch(reverse, {**arrays, **shadows, **record}, scalars)
    assert shadows["y'"][0] == 0.0
    tangents = {"x'": np.ones_like(x), "y'": np.zeros(1)}
    launch(tangent_loop(fn, PARAMS, active), {**arrays, **tangents}, {**scalars, "a.tangent": ("double", 1.0)})
    return arrays["y"][0], shadows["x'"], shadows["a'"][0], tangents["y'"][0]


@pytest.mark.parametrize("x", [[2.0], [2.0, -1.0, 3.0, -2.0], [10.0, 10.0, 20.0, 5.0], [-1.0, -2.0]])
def test_a_product_in_both_modes(x: list[float]) -> None:
    taken, total = [], 0.5
    for k, v in enumerate(x):
        if v >= 0:
            taken.append(k)
            total *= v
            if total > 1e3:
                break
    value, bar_x, bar_a, tangent = run(np.array(x), 0.5)
    expected = [total / v if k in taken else 0.0 for k, v in enumerate(x)]
    assert value == pytest.approx(total, rel=1e-14)
    np.testing.assert_allclose(bar_x, expected, rtol=1e-14)
    assert bar_a == pytest.approx(total / 0.5, rel=1e-14)
    assert tangent == pytest.approx(sum(expected) + total / 0.5, rel=1e-14)


def test_a_status_is_returned() -> None:
    program = primal_loop(read_function(PRODUCT, "f"), PARAMS)
    arrays = {"x": np.zeros(0), "y": np.full(1, 7.0)}
    assert launch(program, arrays, {"a": ("double", 1.0)}) == 1234567
    assert arrays["y"][0] == 7.0


def test_normal_form() -> None:
    fn = normal_form(read_function(PRODUCT, "f"))
    assert sum(b.terminator.op == "ret" for b in fn.blocks) == 1
    preds = predecessors(fn)
    for loop in loops(fn):
        (latch,) = loop.latches
        assert latch.successors == [loop.header]
        (enter,) = [p for p in preds[loop.header] if p not in loop.blocks]
        assert enter.successors == [loop.header]
        for _, out in loop.exits():
            assert len(preds[out]) == 1


def test_what_only_exceptions_pass_is_not_walked() -> None:
    fn = normal_form(read_function(PRODUCT, "f"))
    flow = Flow(fn)
    assert "fail" not in {b.name for b in flow.live}
    assert len(flow.preds[flow.exit]) == 1


def test_irreducible_control_flow_is_refused() -> None:
    text = f"""{HEAD} {{
entry:
  %c = icmp eq i64 %x.n0, 0
  br i1 %c, label %p, label %q
p:
  br label %q
q:
  %d = icmp eq i64 %y.n0, 0
  br i1 %d, label %p, label %done
done:
  ret i32 0
}}
"""
    with pytest.raises(NotDifferentiableError, match="jump into a loop"):
        normal_form(read_function(text, "f"))


MIXED = f"""{HEAD} {{
entry:
  %t = call ptr @irad.alloc(i64 16)
  %c = icmp sgt i64 %x.n0, 3
  %p = select i1 %c, ptr %x.data, ptr %t
  store double %a, ptr %t
  %v = load double, ptr %p
  store double %v, ptr %y.data
  ret i32 0
}}
declare ptr @irad.alloc(i64)
"""


def test_objects_that_a_pointer_does_not_tell_apart() -> None:
    fn = read_function(MIXED, "f")
    memory = Memory(fn, PARAMS)
    (alloc,) = [i for i in fn.instrs() if i.callee == "irad.alloc"]
    (chosen,) = [i for i in fn.instrs() if i.op == "select"]
    assert memory.of(chosen) == {"x", alloc}
    assert memory.elem[alloc] == "double"
    assert Activity(memory, frozenset({"a"})).objects == {alloc, "x", "y"}
    assert loop_reached(fn, PARAMS, frozenset({"x"})) == {"x", "y"}
    assert loop_touched(fn, PARAMS) == ({"x"}, {"y"})


def test_what_is_recorded() -> None:
    """The product needs what it multiplies; x is never written, so only the partial products are recorded, and which
    way was taken is computed again."""
    made = loop_adjoint(normal_form(read_function(PRODUCT, "f")), PARAMS, frozenset({"x", "y", "a"}))
    assert made.reads == {"x"}
    assert made.arrays == {"x", "y"}
    pushes = [i for i in made.augmented.instrs() if i.callee == "irad.tape.push"]
    assert pushes


@pytest.mark.parametrize("shift", [1, -1])
def test_a_copy_that_overlaps(shift: int) -> None:
    to, source = (8, 0) if shift > 0 else (0, 8)
    text = f"""{HEAD} {{
entry:
  %to = getelementptr i8, ptr %x.data, i64 {to}
  %from = getelementptr i8, ptr %x.data, i64 {source}
  %n = sub i64 %x.n0, 1
  %bytes = shl i64 %n, 3
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  ret i32 0
}}
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""
    fn = read_function(text, "f")
    augmented, reverse = adjoint_loop(fn, PARAMS, frozenset({"x"}))
    x, bar = np.arange(5.0), np.arange(1.0, 6.0)
    arrays = {"x": x, "y": np.zeros(1), "x'": bar, ".tape": np.zeros(8, np.int64)}
    for program in (augmented, reverse):
        launch(program, arrays, {"a": ("double", 1.0)})
    assert x.tolist() == ([0.0, 0.0, 1.0, 2.0, 3.0] if shift > 0 else [1.0, 2.0, 3.0, 4.0, 4.0])
    assert bar.tolist() == ([3.0, 3.0, 4.0, 5.0, 0.0] if shift > 0 else [0.0, 1.0, 2.0, 3.0, 9.0])
