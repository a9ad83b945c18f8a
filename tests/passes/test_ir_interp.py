"""The interpreter against machine code, operation by operation and on whole functions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from irad.passes.ir import ops
from irad.passes.ir.const import to_float32
from irad.passes.ir.interp import InterpreterError, run
from irad.passes.ir.mathlib import FUNCTIONS
from irad.passes.ir.read import read_function, read_module

from .ir_tools import Compiled, bits, compiled

FLOATS = [0.0, -0.0, 1.0, -1.5, 2.5, 1e-310, 3.7e38, 1e300, -7.25, math.inf, -math.inf, math.nan, 0.1]
INTS = [0, 1, -1, 2, 7, -8, 63, 100, -128, 127, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]


def both(text: str, name: str, *args: object) -> tuple[object, object]:
    """Results of the interpreter and of machine code, made comparable."""
    fn = read_function(text, name)
    values = list(args)
    return bits(fn.type, run(fn, values)), bits(fn.type, compiled(fn)(*values))


def function(line: str, result: str, types: list[str], head: str = "") -> str:
    args = ", ".join(f"{t} %{'abc'[k]}" for k, t in enumerate(types))
    return f"{head}\ndefine {result} @f({args}) {{\n  %r = {line}\n  ret {result} %r\n}}\n"


@pytest.mark.parametrize("type", ["double", "float"])
@pytest.mark.parametrize("op", ["fadd", "fsub", "fmul", "fdiv", "frem"])
def test_float_arithmetic_has_the_bits_of_machine_code(op: str, type: str) -> None:
    fn = read_function(function(f"{op} {type} %a, %b", type, [type, type]), "f")
    code = compiled(fn)
    for a, b in itertools.product(FLOATS, FLOATS):
        a, b = (to_float32(v) if type == "float" else v for v in (a, b))
        assert bits(type, run(fn, [a, b])) == bits(type, code(a, b)), (op, a, b)


INT_OPS = [o.name for o in ops.OPS.values() if o.kind == "int"]


@pytest.mark.parametrize("type", ["i8", "i32", "i64"])
@pytest.mark.parametrize("op", INT_OPS)
def test_integer_arithmetic_wraps_as_machine_code_does(op: str, type: str) -> None:
    fn = read_function(function(f"{op} {type} %a, %b", type, [type, type]), "f")
    code = compiled(fn)
    width = 8 * ops.SIZES[type]
    least = -(1 << (width - 1))
    for a, b in itertools.product([v for v in INTS if least <= v < -least], repeat=2):
        if ("div" in op or "rem" in op) and (b == 0 or (a, b) == (least, -1)):
            continue  # undefined
        if op in ("shl", "lshr", "ashr") and not 0 <= b < width:
            continue
        assert run(fn, [a, b]) == code(a, b), (op, type, a, b)


@pytest.mark.parametrize("pred", ops.FCMP)
def test_float_comparisons(pred: str) -> None:
    fn = read_function(function(f"fcmp {pred} double %a, %b", "i1", ["double", "double"]), "f")
    code = compiled(fn)
    for a, b in itertools.product(FLOATS, FLOATS):
        assert run(fn, [a, b]) == code(a, b) & 1, (pred, a, b)


@pytest.mark.parametrize("pred", ops.ICMP)
def test_integer_comparisons(pred: str) -> None:
    fn = read_function(function(f"icmp {pred} i64 %a, %b", "i1", ["i64", "i64"]), "f")
    code = compiled(fn)
    for a, b in itertools.product(INTS, INTS):
        assert run(fn, [a, b]) == code(a, b) & 1, (pred, a, b)


@pytest.mark.parametrize(
    ("line", "source", "target"),
    [
        ("sext i32 %a to i64", "i32", "i64"), ("zext i32 %a to i64", "i32", "i64"), ("trunc i64 %a to i8", "i64", "i8"),
        ("sitofp i64 %a to double", "i64", "double"), ("uitofp i64 %a to float", "i64", "float"),
        ("sitofp i64 %a to float", "i64", "float"), ("bitcast i64 %a to double", "i64", "double"),
        ("sext i1 %a to i64", "i1", "i64"), ("zext i1 %a to i64", "i1", "i64"), ("trunc i64 %a to i1", "i64", "i1"),
    ],
)  # fmt: skip
def test_casts_of_integers(line: str, source: str, target: str) -> None:
    fn = read_function(function(line, target, [source]), "f")
    code = compiled(fn)
    width = 1 if source == "i1" else 8 * ops.SIZES[source]
    for a in INTS:
        if source == "i1" and a not in (0, 1):
            continue
        if width == 1 or -(1 << (width - 1)) <= a < 1 << (width - 1):
            assert bits(target, run(fn, [a])) == bits(target, code(a)), (line, a)


@pytest.mark.parametrize(
    ("line", "source", "target"),
    [
        ("fptrunc double %a to float", "double", "float"), ("fpext float %a to double", "float", "double"),
        ("bitcast double %a to i64", "double", "i64"), ("bitcast float %a to i32", "float", "i32"),
        ("fneg double %a", "double", "double"), ("freeze float %a", "float", "float"),
    ],
)  # fmt: skip
def test_casts_of_floats(line: str, source: str, target: str) -> None:
    for a in FLOATS:
        if not math.isnan(a):
            mine, theirs = both(function(line, target, [source]), "f", a)
            assert mine == theirs, (line, a)


@pytest.mark.parametrize("value", [0.0, 0.9, -0.9, 1.5, -2.5, 1e10, -1e10])
def test_floats_to_integers_cut_off(value: float) -> None:
    mine, theirs = both(function("fptosi double %a to i64", "i64", ["double"]), "f", value)
    assert mine == theirs == int(value)


def test_every_math_function_has_an_implementation() -> None:
    assert set(FUNCTIONS) == set(ops.MATH)


@pytest.mark.parametrize("type", ["double", "float"])
@pytest.mark.parametrize("name", [n for n in ops.MATH if n != "powi"])  # which calls a routine of the compiler
def test_math_functions_agree_with_the_c_library(name: str, type: str) -> None:
    m = ops.MATH[name]
    types = [type if a == "f" else "i32" for a in m.arguments]
    callee = m.callee(type)
    names = [f"{t} %{'abc'[k]}" for k, t in enumerate(types)]
    head = f"declare {type} @{callee}({', '.join(types)})"
    text = function(f"call {type} @{callee}({', '.join(names)})", type, types, head)
    fn = read_function(text, "f")
    code = Compiled(text, "f", type, types)
    dtype = {"double": np.float64, "float": np.float32}[type]
    values = [0.0, 0.5, 1.0, 1.5, 2.5, -0.5, -1.5, 0.3, -2.0, 3.0]
    choices = [values if a == "f" else [-2, 0, 1, 3] for a in m.arguments]
    checked = 0
    for args in itertools.product(*choices):
        mine, theirs = dtype(run(fn, list(args))), dtype(code(*args))
        if np.isnan(theirs):
            assert np.isnan(mine), args
            continue
        np.testing.assert_allclose(mine, theirs, rtol=8 * np.finfo(dtype).eps, atol=8 * np.finfo(dtype).tiny)
        checked += 1
    assert checked > 0


def test_powers_with_integer_exponents() -> None:
    head = "declare double @llvm.powi.f64.i32(double, i32)"
    line = "call double @llvm.powi.f64.i32(double %a, i32 %b)"
    fn = read_function(function(line, "double", ["double", "i32"], head), "f")
    for x, n in itertools.product([0.5, -2.0, 3.0], [-3, 0, 1, 4]):
        assert run(fn, [x, n]) == x**n


@pytest.mark.parametrize(
    ("callee", "types", "args"),
    [
        ("llvm.smax.i64", ["i64", "i64"], (-3, 2)), ("llvm.umin.i32", ["i32", "i32"], (-3, 2)),
        ("llvm.abs.i64", ["i64", "i1"], (-9, 0)), ("llvm.ctpop.i64", ["i64"], (-1,)),
        ("llvm.ctlz.i32", ["i32", "i1"], (5, 0)), ("llvm.cttz.i64", ["i64", "i1"], (40, 0)),
        ("llvm.cttz.i64", ["i64", "i1"], (0, 0)), ("llvm.bswap.i32", ["i32"], (0x01020384,)),
        ("llvm.bitreverse.i8", ["i8"], (0b0010110,)), ("llvm.fshl.i64", ["i64", "i64", "i64"], (5, -7, 9)),
        ("llvm.fshr.i8", ["i8", "i8", "i8"], (5, -7, 11)), ("llvm.sadd.sat.i8", ["i8", "i8"], (100, 100)),
        ("llvm.usub.sat.i8", ["i8", "i8"], (3, 100)), ("llvm.ushl.sat.i8", ["i8", "i8"], (100, 3)),
    ],
)  # fmt: skip
def test_integer_intrinsics(callee: str, types: list[str], args: tuple[int, ...]) -> None:
    names = []
    for k, t in enumerate(types):
        constant = callee in ("llvm.abs.i64", "llvm.ctlz.i32", "llvm.cttz.i64") and t == "i1"
        names.append("i1 false" if constant else f"{t} %{'abc'[k]}")
    head = f"declare {types[0]} @{callee}({', '.join(types)})"
    mine, theirs = both(function(f"call {types[0]} @{callee}({', '.join(names)})", types[0], types, head), "f", *args)
    assert mine == theirs


@pytest.mark.parametrize(("name", "a", "b"), [("sadd", 100, 100), ("usub", 3, 100), ("smul", 5, 6), ("umul", -1, 2)])
def test_overflow_intrinsics(name: str, a: int, b: int) -> None:
    text = f"""
    declare {{ i8, i1 }} @llvm.{name}.with.overflow.i8(i8, i8)
    define i64 @f(i8 %a, i8 %b) {{
      %p = call {{ i8, i1 }} @llvm.{name}.with.overflow.i8(i8 %a, i8 %b)
      %v = extractvalue {{ i8, i1 }} %p, 0
      %o = extractvalue {{ i8, i1 }} %p, 1
      %w = zext i8 %v to i64
      %x = zext i1 %o to i64
      %y = shl i64 %x, 10
      %r = or i64 %w, %y
      ret i64 %r
    }}"""
    mine, theirs = both(text, "f", a, b)
    assert mine == theirs


@pytest.mark.parametrize("mask", [1 << k for k in range(10)])
def test_class_of_a_float(mask: int) -> None:
    head = "declare i1 @llvm.is.fpclass.f64(double, i32)"
    fn = read_function(function(f"call i1 @llvm.is.fpclass.f64(double %a, i32 {mask})", "i1", ["double"], head), "f")
    code = compiled(fn)
    for a in [v for v in FLOATS if not math.isnan(v)] + [-1e-310]:
        assert run(fn, [a]) == code(a) & 1, a


LOOP = """
define double @f(ptr %x.data, i64 %x.n0, i64 %x.s0, ptr %y.data, i64 %y.n0, i64 %y.s0) {
entry:
  %tmp = alloca [4 x double]
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %s = phi double [ 0.0, %entry ], [ %t, %latch ]
  %more = icmp slt i64 %i, %x.n0
  br i1 %more, label %body, label %done
body:
  %o = mul i64 %i, %x.s0
  %p = getelementptr i8, ptr %x.data, i64 %o
  %v = load double, ptr %p
  %k = and i64 %i, 3
  %slot = getelementptr [4 x double], ptr %tmp, i64 0, i64 %k
  store double %v, ptr %slot
  switch i64 %k, label %latch [
    i64 1, label %one
    i64 2, label %two
  ]
one:
  %q = getelementptr i8, ptr %y.data, i64 %o
  %w = load double, ptr %slot
  %w2 = fmul double %w, 2.0
  store double %w2, ptr %q
  br label %latch
two:
  br label %latch
latch:
  %d = phi double [ %v, %body ], [ %w2, %one ], [ -1.0, %two ]
  %t = fadd double %s, %d
  %next = add nsw i64 %i, 1
  br label %head
done:
  ret double %s
}"""


def test_loops_memory_and_switches() -> None:
    fn = read_function(LOOP, "f")
    x = np.arange(10.0)[::1] + 0.5
    y, z = np.zeros(10), np.zeros(10)
    s = run(fn, [], {"x": x, "y": y})
    expected = compiled(fn)(x.ctypes.data, 10, 8, z.ctypes.data, 10, 8)
    assert (
        s == expected == pytest.approx(sum(2 * v if k % 4 == 1 else -1 if k % 4 == 2 else v for k, v in enumerate(x)))
    )
    np.testing.assert_array_equal(y, z)
    assert y.any()


def test_views_with_negative_strides() -> None:
    text = """
    define double @f(ptr %x.data, i64 %x.n0, i64 %x.s0) {
      %p = getelementptr i8, ptr %x.data, i64 %x.s0
      %v = load double, ptr %p
      ret double %v
    }"""
    assert run(read_function(text, "f"), [], {"x": np.arange(5.0)[::-2]}) == 2.0


def test_accesses_outside_the_arrays_are_refused() -> None:
    text = """
    define double @f(ptr %x.data, i64 %x.n0, i64 %x.s0) {
      %o = mul i64 %x.n0, %x.s0
      %p = getelementptr i8, ptr %x.data, i64 %o
      %v = load double, ptr %p
      ret double %v
    }"""
    with pytest.raises(InterpreterError, match="outside all arrays"):
        run(read_function(text, "f"), [], {"x": np.zeros(3)})


def test_structured_operations() -> None:
    text = """
    declare double @irad.aload.f64.T(i64, i64)
    declare void @irad.astore.f64.T(double, i64, i64)
    declare void @irad.accum.f64.T(double, i64, i64)
    declare void @irad.accums.f64.lam(double)
    declare double @irad.sload.f64.T(i64, i64)
    declare i64 @irad.iwrap(i64, i64)
    define void @f(i64 %.i0, i64 %.i1, double %lam) {
      %a = sub i64 %.i0, 3
      %w = call i64 @irad.iwrap(i64 %a, i64 4)
      %v = call double @irad.aload.f64.T(i64 %w, i64 %.i1)
      call void @irad.astore.f64.T(double 5.0, i64 %.i0, i64 %.i1)
      %s = call double @irad.sload.f64.T(i64 %.i0, i64 %.i1)
      %c = fmul double %s, %v
      call void @irad.accum.f64.T(double %c, i64 %w, i64 %.i1)
      call void @irad.accums.f64.lam(double %c)
      ret void
    }"""
    T, shadow, cell = np.arange(20.0).reshape(4, 5), np.full((4, 5), 0.5), np.zeros(1)
    run(read_function(text, "f"), {".i0": 1, ".i1": 2, "lam": 2.0}, {"T": T, "T'": shadow, "lam'": cell})
    assert T[1, 2] == 5.0
    assert shadow[2, 2] == 0.5 + 0.5 * 12.0
    assert cell[0] == 6.0
    with pytest.raises(InterpreterError, match="index 5 is out of bounds for dimension 1 of T"):
        run(read_function(text, "f"), {".i0": 1, ".i1": 5, "lam": 2.0}, {"T": T, "T'": shadow, "lam'": cell})


def test_calls_within_a_module_and_constant_tables() -> None:
    text = """
    @table = private constant [3 x double] [double 1.0, double 2.5, double -3.0]
    define double @g(i64 %k) {
      %p = getelementptr [3 x double], ptr @table, i64 0, i64 %k
      %v = load double, ptr %p
      ret double %v
    }
    define double @f(i64 %k) {
      %v = call double @g(i64 %k)
      %c = load double, ptr getelementptr inbounds (i8, ptr @table, i64 16)
      %w = fadd double %v, %c
      ret double %w
    }"""
    module = read_module(text)
    assert run(module.functions["f"], [1], module=module) == -0.5


def test_endless_loops_and_unreachable_places_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irad.passes.ir.interp._MOST_STEPS", 1000)
    with pytest.raises(InterpreterError, match="does not end"):
        run(read_function("define void @f() {\na:\n br label %b\nb:\n br label %b\n}", "f"))
    with pytest.raises(InterpreterError, match="unreachable"):
        run(read_function("define void @f() {\n unreachable\n}", "f"))


def test_aggregates() -> None:
    text = """
    define double @f(double %a) {
      %s = insertvalue { double, [2 x i64] } undef, double %a, 0
      %t = insertvalue { double, [2 x i64] } %s, i64 7, 1, 1
      %k = extractvalue { double, [2 x i64] } %t, 1, 1
      %x = extractvalue { double, [2 x i64] } %t, 0
      %y = sitofp i64 %k to double
      %z = fadd double %x, %y
      ret double %z
    }"""
    assert run(read_function(text, "f"), [0.5]) == 7.5


def test_memory_intrinsics() -> None:
    text = """
    declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
    declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
    define void @f(ptr %x.data, i64 %x.n0, i64 %x.s0, ptr %y.data, i64 %y.n0, i64 %y.s0) {
      %n = mul i64 %x.n0, 8
      call void @llvm.memcpy.p0.p0.i64(ptr %y.data, ptr %x.data, i64 %n, i1 false)
      call void @llvm.memset.p0.i64(ptr align 8 %x.data, i8 0, i64 16, i1 false)
      ret void
    }"""
    x, y = np.arange(1.0, 4.0), np.zeros(3)
    run(read_function(text, "f"), [], {"x": x, "y": y})
    assert x.tolist() == [0, 0, 3]
    assert y.tolist() == [1, 2, 3]
