"""The tables of operations and functions hold together."""

from __future__ import annotations

import pytest
from irad.passes.ir import ops
from irad.passes.ir.const import const_value, float_const, float_text, int_const, is_number
from irad.passes.ir.model import Const


@pytest.mark.parametrize("name", ops.MATH)
def test_every_spelling_of_a_function_leads_to_its_callee(name: str) -> None:
    m = ops.MATH[name]
    for type in ("double", "float"):
        assert ops.math_of(m.callee(type)) == (name, type)
        assert ops.call_kind(m.callee(type)) == "math"
    for double, single in () if name in ops.NOT_C else m.aliases:
        assert ops.math_of(double) == (name, "double")
        assert ops.math_of(single) == (name, "float")


@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ("sqrt", "llvm.sqrt.f64"), ("sqrtf", "llvm.sqrt.f32"), ("llvm.tan.f64", "tan"), ("tanhf", "tanhf"),
        ("fmax", "llvm.maxnum.f64"), ("fabsf", "llvm.fabs.f32"), ("pow", "llvm.pow.f64"), ("llvm.atan2.f32", "atan2f"),
        ("llvm.powi.f64.i32", "llvm.powi.f64.i32"),
    ],
)  # fmt: skip
def test_one_callee_for_each_function(spelling: str, canonical: str) -> None:
    found = ops.math_of(spelling)
    assert found is not None
    assert ops.math_callee(*found) == canonical


@pytest.mark.parametrize("callee", ["powi", "fmuladd", "sqrtl", "llvm.sqrt.f16", "llvm.sqrt.v2f64", "strlen"])
def test_what_is_no_function_of_floats(callee: str) -> None:
    assert ops.math_of(callee) is None
    assert ops.call_kind(callee) == ""


@pytest.mark.parametrize(
    ("callee", "kind"),
    [
        ("llvm.smax.i64", "int"), ("llvm.umul.with.overflow.i64", "int"), ("llvm.is.fpclass.f64", "int"),
        ("llvm.memset.p0.i64", "memory"), ("llvm.memcpy.p0.p0.i64", "memory"), ("irad.index.2", "mark"),
        ("irad.strong.f64", "mark"), ("llvm.smax.v4i64", ""), ("llvm.memcpy.p0.p1.i64", ""), ("irad.status", ""),
    ],
)  # fmt: skip
def test_kinds_of_calls(callee: str, kind: str) -> None:
    assert ops.call_kind(callee) == kind


def test_what_must_stay_though_unused() -> None:
    assert ops.has_effect("store")
    assert ops.has_effect("call", "llvm.memset.p0.i64")
    assert ops.has_effect("call", "some_function")
    assert not ops.has_effect("call", "llvm.sin.f64")
    assert not ops.has_effect("fdiv")
    assert not ops.has_effect("aload")


def test_flags_belong_to_the_operations_that_llvm_gives_them() -> None:
    assert "contract" in ops.OPS["fmul"].flags
    assert "contract" not in ops.OPS["mul"].flags
    assert ops.OPS["or"].flags == ("disjoint",)
    assert set(ops.TERMINATORS) == {o.name for o in ops.OPS.values() if o.kind == "control"}


@pytest.mark.parametrize(
    ("type", "value", "text"),
    [
        ("double", 1.0, "1.000000e+00"),
        ("double", 1 / 3, "0x3FD5555555555555"),
        ("double", 0.1, "1.000000e-01"),
        ("float", 0.1, "0x3FB99999A0000000"),
        ("double", -0.0, "-0.000000e+00"),
        ("double", float("inf"), "0x7FF0000000000000"),
        ("float", 2.5, "2.500000e+00"),
        ("float", 1e300, "0x7FF0000000000000"),
        ("double", 1e100, "1.000000e+100"),
    ],
)
def test_float_literals_as_llvm_spells_them(type: str, value: float, text: str) -> None:
    assert float_const(type, value).text == text
    assert const_value(Const(type, text)) == const_value(float_const(type, value))


def test_integer_literals() -> None:
    assert int_const("i8", 200).text == "-56"
    assert int_const("i1", 1).text == "true"
    assert const_value(int_const("i64", -(2**63))) == -(2**63)
    assert const_value(Const("i1", "true")) == 1
    assert const_value(Const("double", "undef")) is None
    assert const_value(Const("ptr", "null")) is None


def test_zero_and_minus_zero_are_different_numbers() -> None:
    assert is_number(Const("double", float_text(-0.0)), -0.0)
    assert not is_number(Const("double", float_text(-0.0)), 0.0)
    assert is_number(Const("i64", "0"), 0)
