"""Python scalars take the precision of what they meet, as in NumPy 2."""

from __future__ import annotations

import numpy as np
import pytest
from irad.passes import weak
from irad.passes.ir.interp import run
from irad.passes.ir.model import Function
from irad.passes.ir.read import read_function
from irad.passes.ir.verify import verify
from irad.passes.ir.write import write_functions
from irad.passes.tidy import tidy

HEAD = """
declare double @llvm.sqrt.f64(double)
declare double @tanh(double)
declare double @llvm.powi.f64.i32(double, i32)
declare i1 @llvm.is.fpclass.f64(double, i32)
declare double @irad.strong.f64(double)
declare float @irad.strong.f32(float)
declare i64 @irad.index.0()
@table = private constant [2 x double] [double 0.1, double 0.2]
"""
ARGS = "ptr %f.data, ptr %d.data, ptr %k.data, double %w, double %s, i64 %n, float %h"


def apply(lines: str, result: str = "float") -> Function:
    """``w`` is weak, ``s`` strong; ``f``, ``d``, ``k`` are arrays of float32, float64, int64."""
    fn = read_function(f"{HEAD}define {result} @f({ARGS}) {{\n{lines}\n}}", "f")
    before = write_functions(fn)
    new = weak.apply(fn, frozenset({"w"}))
    assert write_functions(fn) == before
    verify(new)
    new = tidy(new)
    verify(new)
    return new


def doubles(fn: Function) -> list[str]:
    """Operations that give or take a double."""
    return [i.callee or i.op for i in fn.instrs() if i.type == "double" or any(v.type == "double" for v in i.operands)]


F = "  %x = load float, ptr %f.data\n  %e = fpext float %x to double\n"


def test_arithmetic_with_a_weak_scalar_is_done_in_float32() -> None:
    fn = apply(F + "  %a = fmul double %e, %w\n  %b = fadd double %a, 0x3FB999999999999A\n"
               "  %r = fptrunc double %b to float\n  ret float %r")  # fmt: skip
    assert doubles(fn) == ["fptrunc"]
    w, differ = 0.7, 0
    for x in np.linspace(0, 1, 50, dtype=np.float32):
        arrays = {"f": np.array([x]), "d": np.zeros(1), "k": np.zeros(1, int)}
        got = run(fn, {"w": w, "s": 0.0, "n": 0, "h": 0}, arrays)
        assert got == x * w + 0.1  # NumPy 2 rounds w and 0.1 to float32
        differ += got != np.float32(np.float64(x) * w + 0.1)
    assert differ


def test_weak_arithmetic_is_done_in_float64_and_rounded_once() -> None:
    fn = apply(F + "  %q = fmul double %w, %w\n  %a = fdiv double %e, %q\n  %r = fptrunc double %a to float\n"
               "  ret float %r")  # fmt: skip
    assert doubles(fn) == ["fmul", "fptrunc"]
    x, w = np.float32(0.3), 0.1
    got = run(fn, {"w": w, "s": 0.0, "n": 0, "h": 0}, {"f": np.array([x]), "d": np.zeros(1), "k": np.zeros(1, int)})
    assert got == x / (w * w)


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("%y = load double, ptr %d.data\n  %a = fmul double %e, %y", True),
        ("%a = fmul double %e, %s", True),
        ("%i = load i64, ptr %k.data\n  %y = sitofp i64 %i to double\n  %a = fmul double %e, %y", True),
        ("%i = load i64, ptr %k.data\n  %j = add i64 %i, %n\n  %y = sitofp i64 %j to double\n"
         "  %a = fmul double %e, %y", True),
        ("%z = call double @irad.strong.f64(double %w)\n  %a = fmul double %e, %z", True),
        ("%z = call double @irad.strong.f64(double %e)\n  %a = fmul double %z, %w", True),
        ("%y = sitofp i64 %n to double\n  %a = fmul double %e, %y", False),
        ("%i = call i64 @irad.index.0()\n  %y = sitofp i64 %i to double\n  %a = fmul double %e, %y", False),
        ("%i = load i8, ptr %k.data\n  %y = uitofp i8 %i to double\n  %a = fmul double %e, %y", False),
        ("%g = fpext float %h to double\n  %a = fmul double %e, %g", False),
        ("%g = fptosi double %e to i64\n  %y = sitofp i64 %g to double\n  %a = fmul double %e, %y", False),
        ("%t = getelementptr [2 x double], ptr @table, i64 0, i64 %n\n  %y = load double, ptr %t\n"
         "  %a = fmul double %e, %y", False),
        ("%a = call double @llvm.sqrt.f64(double %e)", False),
        ("%a = call double @tanh(double %e)", False),
        ("%a = call double @llvm.powi.f64.i32(double %e, i32 3)", False),
        ("%a = fneg double %e", False),
    ],
)  # fmt: skip
def test_what_makes_an_operation_double(line: str, kept: bool) -> None:
    fn = apply(F + f"  {line}\n  %r = fptrunc double %a to float\n  ret float %r")
    working = [i for i in fn.instrs() if i.type == "double" and i.op not in ("load", "sitofp", "uitofp", "fpext")]
    assert bool(working) == kept, write_functions(fn)


def test_functions_change_their_name() -> None:
    lines = "  %a = call double @tanh(double %e)\n  %r = fptrunc double %a to float\n  ret float %r"
    assert "tanhf" in [i.callee for i in apply(F + lines).instrs()]


def test_a_sum_that_starts_at_zero_is_float32() -> None:
    fn = apply(
        """entry:
          br label %head
        head:
          %i = phi i64 [ 0, %entry ], [ %next, %head ]
          %sum = phi double [ 0.0, %entry ], [ %add, %head ]
          %p = getelementptr float, ptr %f.data, i64 %i
          %x = load float, ptr %p
          %e = fpext float %x to double
          %add = fadd double %sum, %e
          %next = add i64 %i, 1
          %more = icmp slt i64 %next, %n
          br i1 %more, label %head, label %done
        done:
          %r = fptrunc double %add to float
          ret float %r"""
    )
    assert doubles(fn) == []
    x = np.float32([1e8, 1, 1, 1])
    got = run(fn, {"w": 0.0, "s": 0.0, "n": 4, "h": 0}, {"f": x, "d": np.zeros(1), "k": np.zeros(1, int)})
    assert got == np.float32(1e8)


def test_a_strong_branch_makes_the_result_strong() -> None:
    fn = apply(
        f"""entry:
          {F.strip()}
          %c = icmp slt i64 %n, 0
          %z = load double, ptr %d.data
          %u = select i1 %c, double %e, double %z
          %a = fmul double %u, %w
          ret double %a""",
        "double",
    )
    assert "fmul" in doubles(fn)


def test_comparisons_follow_the_same_rule() -> None:
    fn = apply(F + "  %c = fcmp olt double %e, 0x3FB999999999999A\n  %r = select i1 %c, float %x, float %h\n"
               "  ret float %r")  # fmt: skip
    assert doubles(fn) == []
    tenth = np.float32(0.1)  # a little more than 0.1
    arrays = {"f": np.array([tenth]), "d": np.zeros(1), "k": np.zeros(1, int)}
    assert run(fn, {"w": 0.0, "s": 0.0, "n": 0, "h": 9.0}, arrays) == 9.0
    assert not tenth < 0.1
    strong = apply(F + "  %c = fcmp olt double %e, %s\n  %r = select i1 %c, float %x, float %h\n  ret float %r")
    assert doubles(strong) == ["fpext", "fcmp"]


def test_the_kind_of_a_float_is_tested_in_its_own_precision() -> None:
    fn = apply(F + "  %c = call i1 @llvm.is.fpclass.f64(double %e, i32 144)\n  %r = select i1 %c, float %x, float %h\n"
               "  ret float %r")  # fmt: skip
    assert "llvm.is.fpclass.f32" in [i.callee for i in fn.instrs()]
    tiny = np.float32(1e-45)  # subnormal as float32, not as float64
    arrays = {"f": np.array([tiny]), "d": np.zeros(1), "k": np.zeros(1, int)}
    assert run(fn, {"w": 0.0, "s": 0.0, "n": 0, "h": 9.0}, arrays) == tiny


def test_float32_values_are_widened_where_a_double_is_stored() -> None:
    fn = apply(F + "  %a = fmul double %e, %w\n  store double %a, ptr %d.data\n  %r = fptrunc double %a to float\n"
               "  ret float %r")  # fmt: skip
    assert doubles(fn) == ["fptrunc", "fpext", "store"]
    d = np.zeros(1)
    x = np.float32(1 / 3)
    run(fn, {"w": 0.7, "s": 0.0, "n": 0, "h": 0}, {"f": np.array([x]), "d": d, "k": np.zeros(1, int)})
    assert d[0] == float(x * 0.7)


def test_local_variables_hold_float32_values() -> None:
    fn = apply(
        f"""  %v = alloca [2 x double]
          {F.strip()}
          store double %e, ptr %v
          %p = getelementptr [2 x double], ptr %v, i64 0, i64 1
          store double %w, ptr %p
          %q = getelementptr [2 x double], ptr %v, i64 0, i64 %n
          %y = load double, ptr %q
          %a = fmul double %y, %e
          %r = fptrunc double %a to float
          ret float %r"""
    )
    assert [i.type for i in fn.instrs() if i.op == "fmul"] == ["float"]
    x = np.float32(1 / 3)
    arrays = {"f": np.array([x]), "d": np.zeros(1), "k": np.zeros(1, int)}
    assert run(fn, {"w": 0.7, "s": 0.0, "n": 1, "h": 0}, arrays) == x * 0.7


def test_without_float32_nothing_changes() -> None:
    lines = (
        "  %y = load double, ptr %d.data\n  %a = fmul double %y, %w\n  %r = fptrunc double %a to float\n  ret float %r"
    )
    text = f"{HEAD}define float @f({ARGS}) {{\n{lines}\n}}"
    fn = read_function(text, "f")
    assert write_functions(weak.apply(fn, frozenset({"w"}))) == write_functions(fn)


def test_marks_are_removed() -> None:
    fn = apply("  %z = call double @irad.strong.f64(double %w)\n  ret double %z", "double")
    assert [i.op for i in fn.instrs()] == ["ret"]
