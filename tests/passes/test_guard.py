"""What LLVM would rewrite at the cost of derivatives goes through its optimiser unharmed."""

from __future__ import annotations

import pytest
from irad.passes.canonical import canonicalise, inline, optimise
from irad.passes.guard import guard_memory, guard_values
from irad.passes.ir.model import Function
from irad.passes.ir.read import normalised, parsed, read_function
from irad.passes.prepare import prepare_function


def ops(fn: Function) -> list[str]:
    return [i.callee or i.op for i in fn.instrs()]


EQUAL = """
define double @f(double %a) {
entry:
  %c = fcmp oeq double %a, 1.000000e+00
  br i1 %c, label %then, label %done
then:
  %y = fmul double %a, 3.000000e+00
  br label %done
done:
  %r = phi double [ %y, %then ], [ %a, %entry ]
  ret double %r
}"""


def test_a_value_that_is_compared_with_a_constant_stays_a_variable() -> None:
    plain = canonicalise(EQUAL, {"f"})
    assert "fmul" not in plain  # what LLVM does on its own: the derivative is 0 at a == 1, not 3
    fn = prepare_function(EQUAL, "f", frozenset())
    (product,) = [i for i in fn.instrs() if i.op == "fmul"]
    assert product.operands[0] is fn.args[0]
    assert "fcmp" in ops(fn)


@pytest.mark.parametrize(
    "text",
    [
        EQUAL.replace("oeq", "ueq"),
        EQUAL.replace("oeq", "une").replace("label %then, label %done", "label %done, label %then"),
        # two non-strict comparisons make an equality
        EQUAL.replace(
            "%c = fcmp oeq double %a, 1.000000e+00",
            "%c1 = fcmp oge double %a, 1.000000e+00\n  %c2 = fcmp ole double %a, 1.000000e+00\n  %c = and i1 %c1, %c2",
        ),
    ],
)
def test_other_ways_to_say_equal(text: str) -> None:
    fn = prepare_function(text, "f", frozenset())
    (product,) = [i for i in fn.instrs() if i.op == "fmul"]
    assert product.operands[0] is fn.args[0]


@pytest.mark.parametrize(
    ("callee", "flags", "second", "kept"),
    [
        ("llvm.pow.f64", "", "double 5.000000e-01", "llvm.pow.f64"),
        ("pow", "", "double 2.000000e+00", "llvm.pow.f64"),
        ("llvm.powi.f64.i32", "", "i32 2", "llvm.powi.f64.i32"),
        ("llvm.fabs.f64", "nnan nsz ", "", "llvm.fabs.f64"),
        ("fmax", "", "double %a", "llvm.maxnum.f64"),
        ("llvm.minimum.f64", "", "double %a", "llvm.minimum.f64"),
        ("llvm.copysign.f64", "", "double 1.000000e+00", "llvm.copysign.f64"),
    ],
)
def test_functions_stay_what_they_are(callee: str, flags: str, second: str, kept: str) -> None:
    types = ", ".join(["double", *second.split()[:1]])
    arguments = ", ".join(["double %a", second] if second else ["double %a"])
    call = f"call {flags}double @{callee}({arguments})"
    text = f"declare double @{callee}({types})\ndefine double @f(double %a) {{\n  %y = {call}\n  ret double %y\n}}"
    assert kept in ops(prepare_function(text, "f", frozenset()))


def test_functions_that_are_not_guarded_are_still_simplified() -> None:
    text = """
    declare double @llvm.sqrt.f64(double)
    define double @f(double %a) {
      %y = call double @llvm.sqrt.f64(double 4.0)
      %z = fmul double %y, %a
      ret double %z
    }"""
    assert ops(prepare_function(text, "f", frozenset())) == ["fmul", "ret"]


def test_tests_for_nan_are_not_hidden() -> None:
    text = "define i1 @f(double %a) {\n  %c = fcmp uno double %a, 0.0\n  ret i1 %c\n}"
    assert "irad.guard" not in guard_values(text)


def test_equal_comparisons_are_merged() -> None:
    text = """
    define i1 @f(double %a, double %b) {
      %c = fcmp olt double %a, %b
      %d = fcmp fast olt double %a, %b
      %e = and i1 %c, %d
      ret i1 %e
    }"""
    assert ops(prepare_function(text, "f", frozenset())) == ["fcmp", "ret"]


def test_a_helper_with_the_name_of_a_c_function_does_not_call_itself() -> None:
    text = """
    declare double @llvm.fabs.f64(double)
    define double @fabs(double %x) {
      %y = call double @fabs(double %x)
      ret double %y
    }"""
    assert "call double @fabs(double %x)" in guard_values(text)


UPWIND = """
define double @f(ptr %u.data, i64 %u.n0, i64 %u.s0, i64 %i, double %c) {
entry:
  %up = fcmp ogt double %c, 0.000000e+00
  br i1 %up, label %a, label %b
a:
  %ia = mul i64 %i, %u.s0
  %pa = getelementptr i8, ptr %u.data, i64 %ia
  %va = load double, ptr %pa, align 8
  br label %done
b:
  %j = add i64 %i, 1
  %ib = mul i64 %j, %u.s0
  %pb = getelementptr i8, ptr %u.data, i64 %ib
  %vb = load double, ptr %pb, align 8
  br label %done
done:
  %v = phi double [ %va, %a ], [ %vb, %b ]
  ret double %v
}"""


def test_two_accesses_do_not_become_one_at_a_computed_address() -> None:
    assert canonicalise(UPWIND, {"f"}).count(" load ") == 1  # what LLVM does on its own
    fn = prepare_function(UPWIND, "f", frozenset())
    assert ops(fn).count("load") == 2
    assert all(i.type != "ptr" and i.type != "i64" for i in fn.instrs() if i.op in ("phi", "select"))


def test_two_stores_do_not_become_one_at_a_computed_address() -> None:
    text = UPWIND.replace("%va = load double, ptr %pa, align 8", "store double %c, ptr %pa, align 8")
    text = text.replace("%vb = load double, ptr %pb, align 8", "store double 2.0, ptr %pb, align 8")
    text = text.replace("%v = phi double [ %va, %a ], [ %vb, %b ]", "").replace("ret double %v", "ret double %c")
    assert ops(prepare_function(text, "f", frozenset())).count("store") == 2


def test_an_array_behind_a_struct_is_found() -> None:
    struct = "{ ptr, i64, ptr, [1 x i64] }"
    text = f"""
    define double @f(ptr %u.data, i64 %n) {{
      %a = insertvalue {struct} undef, i64 %n, 1
      %b = insertvalue {struct} %a, ptr %u.data, 2
      %c = insertvalue {struct} %b, i64 8, 3, 0
      %p = extractvalue {struct} %c, 2
      %q = getelementptr inbounds double, ptr %p, i64 %n
      %v = load double, ptr %q, align 8
      ret double %v
    }}"""
    assert "call double @irad.guard.load.f64(ptr %q, i32 8)" in guard_memory(normalised(text))
    overwritten = text.replace("i64 8, 3, 0", "ptr null, 2")
    assert "irad.guard" not in guard_memory(normalised(overwritten))


def test_local_variables_and_tables_stay_open_to_llvm() -> None:
    text = """
    @table = private constant [2 x double] [double 3.0, double 4.0]
    define double @f(ptr %x.data) {
      %s = alloca [2 x double], align 8
      %v = load double, ptr %x.data, align 8
      %p = getelementptr [2 x double], ptr %s, i64 0, i64 1
      store double %v, ptr %p, align 8
      %w = load double, ptr %p, align 8
      %t = load double, ptr getelementptr (i8, ptr @table, i64 8), align 8
      %r = fmul double %w, %t
      ret double %r
    }"""
    fn = prepare_function(text, "f", frozenset())
    assert ops(fn) == ["load", "fmul", "ret"]


def test_guarded_text_is_valid_and_keeps_its_lines() -> None:
    for text in (EQUAL, UPWIND):
        guarded = guard_memory(inline(guard_values(text), {"f"}))
        parsed(guarded)
        parsed(optimise(guarded))
        assert ops(read_function(guarded, "f"))
