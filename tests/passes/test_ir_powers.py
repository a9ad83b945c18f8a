"""Integer powers: multiplied out where the exponent is a constant, else ``pow``."""

from __future__ import annotations

import numpy as np
import pytest
from irad.passes.ir.interp import run
from irad.passes.ir.model import Function
from irad.passes.ir.read import read_function

from .ir_tools import compiled

ROW = {"double": ("f64", np.float64), "float": ("f32", np.float32)}


def power(exponent: str, type: str = "double", base: str = "%x") -> Function:
    suffix, _ = ROW[type]
    text = f"""
declare {type} @irad.powi.{suffix}({type}, i64) #0
define {type} @f({type} %x, i64 %n) {{
  %r = tail call {type} @irad.powi.{suffix}({type} noundef {base}, i64 {exponent}) #0
  ret {type} %r
}}
attributes #0 = {{ nounwind willreturn memory(none) }}
"""
    return read_function(text, "f")


@pytest.mark.parametrize("type", ["double", "float"])
@pytest.mark.parametrize("n", [-64, -3, -1, 0, 1, 2, 3, 7, 8, 64])
def test_constants_are_multiplied_out(n: int, type: str) -> None:
    fn = power(str(n), type)
    assert {i.op for i in fn.instrs()} <= {"fmul", "fdiv", "freeze", "ret"}
    squarings = abs(n).bit_length() - 1 + abs(n).bit_count() - 1 if n else 0
    assert sum(i.op == "fmul" for i in fn.instrs()) == squarings
    number = ROW[type][1]
    for x in (-1.25, 0.5, 1.0, 1.0625):
        expected = number(x) ** number(n)
        assert run(fn, [x, 0]) == compiled(fn)(x, 0)
        np.testing.assert_allclose(run(fn, [x, 0]), expected, rtol=70 * np.finfo(number).eps)


def test_the_order_is_that_of_repeated_squaring() -> None:
    x = np.float64(1.1)
    assert run(power("7"), [x, 0]) == (x * (x * x)) * ((x * x) * (x * x))


@pytest.mark.parametrize("exponent", ["%n", "65", "-65"])
def test_others_are_pow(exponent: str) -> None:
    fn = power(exponent)
    assert [i.callee for i in fn.instrs() if i.op == "call"] == ["llvm.pow.f64"]
    n = -3 if exponent == "%n" else int(exponent)
    for x in (-1.25, 1.0, 2.5):
        assert run(fn, [x, -3]) == np.float64(x) ** float(n)


def test_of_constants_and_with_lines() -> None:
    text = """
declare double @irad.powi.f64(double, i64)
define double @f(i64 %n) !dbg !2 {
  %1 = call double @irad.powi.f64(double -2.000000e+00, i64 3), !dbg !5
  %"a b" = call double @irad.powi.f64(double %1, i64 %n), !dbg !5
  ret double %"a b", !dbg !5
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!4}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "k.py", directory: "")
!2 = distinct !DISubprogram(name: "f", file: !1, line: 1, unit: !0, type: !3, spFlags: DISPFlagDefinition)
!3 = !DISubroutineType(types: !{null})
!4 = !{i32 2, !"Debug Info Version", i32 3}
!5 = !DILocation(line: 9, column: 1, scope: !2)
"""
    fn = read_function(text, "f")
    assert run(fn, [2]) == 64.0
    assert {i.loc.line for i in fn.instrs() if i.loc} == {9}
    assert all(i.loc is not None for i in fn.instrs())
