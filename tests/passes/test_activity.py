"""Which values carry derivatives: small functions, and the names of the values that do."""

from __future__ import annotations

import pytest
from irad.passes.activity import Activity, active_values
from irad.passes.ir.model import PointFn
from irad.passes.ir.read import read_function
from irad.passes.pipeline import params_of, rank_of

from irad.errors import NotDifferentiableError

HEAD = """
declare double @irad.aload.f64.T(i64)
declare double @irad.aload.f64.C(i64)
declare i64 @irad.aload.i64.K(i64)
declare void @irad.astore.f64.dT(double, i64)
declare void @irad.astore.f64.W(double, i64)
declare double @irad.aload.f64.W(i64)
declare double @llvm.floor.f64(double)
declare double @llvm.fabs.f64(double)
declare double @llvm.copysign.f64(double, double)
declare double @llvm.powi.f64.i32(double, i32)
declare double @sin(double)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""


def point(body: str, scalars: str = "double %a, i64 %n, i1 %c") -> PointFn:
    fn = read_function(f"{HEAD}\ndefine void @f(i64 %i0, {scalars}) {{\nentry:\n{body}\n}}\n", "f")
    return PointFn(fn, rank_of(fn), params_of(fn))


def analysed(body: str, *active: str) -> Activity:
    return active_values(point(body), frozenset(active))


def names(values: object) -> set[str]:
    return {v.name for v in values}  # type: ignore[attr-defined]


STRAIGHT = """
  %t = call double @irad.aload.f64.T(i64 %i0)
  %k = call double @irad.aload.f64.C(i64 %i0)
  %p = fmul double %t, %k
  %q = fmul double %k, %a
  %f = call double @llvm.floor.f64(double %p)
  %s = call double @llvm.copysign.f64(double %k, double %t)
  %u = fadd double %f, %s
  %z = fcmp olt double %t, %k
  %w = select i1 %z, double %k, double %q
  %m = fptosi double %t to i64
  %g = sitofp i64 %m to double
  %r = fadd double %p, %q
  call void @irad.astore.f64.dT(double %r, i64 %i0)
  call void @irad.astore.f64.W(double %u, i64 %i0)
  ret void"""


def test_varying_values_of_straight_code() -> None:
    found = analysed(STRAIGHT, "T", "dT")
    assert names(found.values) == {"t", "p", "r"}
    assert found.written == {"dT"}
    found = analysed(STRAIGHT, "C")
    assert names(found.values) == {"k", "p", "q", "s", "u", "w", "r"}
    assert found.written == {"dT", "W"}
    found = analysed(STRAIGHT, "a", "dT")
    assert names(found.values) == {"a", "q", "w", "r"}
    assert not analysed(STRAIGHT, "dT").values
    assert not analysed(STRAIGHT).values


def test_useful_values_reach_an_active_array() -> None:
    found = analysed(STRAIGHT, "T", "dT")
    assert names(v for v in found.useful) == {"r", "p", "q", "t", "k", "a"}
    assert {v.name for v in found.values if found.carries(v)} == {"t", "p", "r"}
    found = analysed(STRAIGHT, "C", "W")
    assert {v.name for v in found.values if found.carries(v)} == {"u", "s", "k"}


def test_through_branches_and_loops() -> None:
    found = analysed(
        """
  %t = call double @irad.aload.f64.T(i64 %i0)
  %k = call double @irad.aload.f64.C(i64 %i0)
  br label %head
head:
  %j = phi i64 [ 0, %entry ], [ %j1, %body ]
  %x = phi double [ %k, %entry ], [ %y, %body ]
  %v = phi double [ %k, %entry ], [ %v1, %body ]
  %more = icmp slt i64 %j, %n
  br i1 %more, label %body, label %done
body:
  %y = fmul double %x, %t
  %v1 = fadd double %v, %k
  %j1 = add i64 %j, 1
  br label %head
done:
  %d = fsub double %v, %k
  %s = select i1 %c, double %x, double 1.0
  call void @irad.astore.f64.dT(double %s, i64 %i0)
  ret void""",
        "T",
        "dT",
    )
    assert names(found.values) == {"t", "x", "y", "s"}
    assert names(found.useful) == {"s", "x", "y", "t", "k", ""}  # "": the constant 1


LOCAL = """
  %arr = alloca [4 x double]
  %cpy = alloca [4 x double]
  %idle = alloca double
  %t = call double @irad.aload.f64.T(i64 %i0)
  call void @llvm.memset.p0.i64(ptr %arr, i8 0, i64 32, i1 false)
  %p = getelementptr [4 x double], ptr %arr, i64 0, i64 %n
  store double %t, ptr %p
  store double %a, ptr %idle
  call void @llvm.memcpy.p0.p0.i64(ptr %cpy, ptr %arr, i64 32, i1 false)
  %q = getelementptr [4 x double], ptr %cpy, i64 0, i64 1
  %x = load double, ptr %q
  %y = load double, ptr %idle
  %r = fmul double %x, %y
  call void @irad.astore.f64.dT(double %r, i64 %i0)
  ret void"""


def test_through_local_variables() -> None:
    found = analysed(LOCAL, "T", "dT")
    assert names(found.values) == {"t", "x", "r"}
    assert names(found.slots) == {"arr", "cpy"}
    found = analysed(LOCAL, "a", "dT")
    assert names(found.values) == {"a", "y", "r"}
    assert names(found.slots) == {"idle"}
    assert names(analysed(LOCAL, "T", "W").slots) == set()  # nothing active is made of them
    assert names(analysed(LOCAL, "T", "W").values) == {"t", "x", "r"}


def test_an_array_that_is_written_hands_on_what_it_was_given() -> None:
    body = """
  %t = call double @irad.aload.f64.T(i64 %i0)
  call void @irad.astore.f64.W(double %t, i64 %i0)
  %w = call double @irad.aload.f64.W(i64 %i0)
  %k = call i64 @irad.aload.i64.K(i64 %i0)
  %g = sitofp i64 %k to double
  %r = fadd double %w, %g
  call void @irad.astore.f64.dT(double %r, i64 %i0)
  ret void"""
    found = analysed(body, "T", "dT")
    assert names(found.values) == {"t", "w", "r"}
    assert found.written == {"W", "dT"}
    assert analysed(body, "K").values == frozenset()


def test_the_exponent_of_an_integer_power_is_no_carrier() -> None:
    found = analysed(
        """
  %t = call double @irad.aload.f64.T(i64 %i0)
  %m = fptosi double %t to i32
  %r = call double @llvm.powi.f64.i32(double %a, i32 %m)
  call void @irad.astore.f64.dT(double %r, i64 %i0)
  ret void""",
        "T",
        "dT",
    )
    assert names(found.values) == {"t"}


BITS = """
  %t = call double @irad.aload.f64.T(i64 %i0)
  %b = bitcast double %t to i64
  %o = xor i64 %b, {mask}
  {use}
  call void @irad.astore.f64.dT(double %r, i64 %i0)
  ret void"""


def test_bits_made_into_a_number_are_left_to_the_rules() -> None:
    found = analysed(BITS.format(mask=5, use="%r = bitcast i64 %o to double"), "T", "dT")
    assert names(found.values) == {"t", "r"}


def test_bits_turned_into_another_number_are_refused() -> None:
    with pytest.raises(NotDifferentiableError, match="bits"):
        analysed(BITS.format(mask=5, use="%r = sitofp i64 %o to double"), "T", "dT")
    memory = """%s = alloca i64
  store i64 %o, ptr %s
  %r = load double, ptr %s"""
    with pytest.raises(NotDifferentiableError, match="bits"):
        analysed(BITS.format(mask=5, use=memory), "T", "dT")


def test_bits_that_only_decide_are_fine() -> None:
    use = "%z = icmp slt i64 %o, 0\n  %r = select i1 %z, double %a, double 2.0"
    assert names(analysed(BITS.format(mask=5, use=use), "T", "dT").values) == {"t"}
    back = """%s = alloca double
  store double %t, ptr %s
  %i = load i64, ptr %s
  %z = icmp slt i64 %i, 0
  %r = select i1 %z, double %a, double 2.0"""
    assert names(analysed(BITS.format(mask=5, use=back), "T", "dT").values) == {"t"}


def test_a_pointer_into_one_of_several_arrays_is_refused() -> None:
    body = """
  %x = alloca double
  %y = alloca double
  %t = call double @irad.aload.f64.T(i64 %i0)
  %p = select i1 %c, ptr %x, ptr %y
  {use}
  call void @irad.astore.f64.dT(double %t, i64 %i0)
  ret void"""
    for use in (
        "store double %t, ptr %p",
        "store double %t, ptr %x\n  %r = load double, ptr %p",
        "store double %t, ptr %x\n  call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %p, i64 8, i1 false)",
    ):
        with pytest.raises(NotDifferentiableError, match="several local arrays"):
            analysed(body.format(use=use), "T", "dT")
    assert names(analysed(body.format(use="store double %a, ptr %p"), "T", "dT").values) == {"t"}
