"""LLVM text to code: results, errors with names, objects apart from text, threads."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import threading

import numpy as np
import pytest

from irad.codegen import cpu, target
from irad.codegen.cpu import compile_text
from irad.codegen.symbols import runtime
from irad.errors import IradError

ADD = """
define void @add(ptr noalias %out, ptr noalias %a, i64 %n) {
e:
  br label %t
t:
  %i = phi i64 [ 0, %e ], [ %j, %b ]
  %m = icmp slt i64 %i, %n
  br i1 %m, label %b, label %x
b:
  %p = getelementptr double, ptr %a, i64 %i
  %q = getelementptr double, ptr %out, i64 %i
  %v = load double, ptr %p
  %w = fadd double %v, 1.0
  store double %w, ptr %q
  %j = add i64 %i, 1
  br label %t
x:
  ret void
}
"""


def unary(name: str, type: str = "double") -> str:
    return f"""
declare {type} @{name}({type})
define {type} @f({type} %x) {{
  %y = call {type} @{name}({type} %x)
  ret {type} %y
}}
"""


@pytest.mark.parametrize("optimise", [True, False])
def test_loop_runs_and_is_vectorised(optimise):
    code = compile_text(ADD, optimise=optimise)
    a = np.arange(101.0)
    out = np.zeros(101)
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, ctypes.c_int64)(code.address("add"))(
        out.ctypes.data, a.ctypes.data, 101
    )
    assert np.array_equal(out, a + 1)
    assert (" x double>" in code.llvm) == optimise
    assert "add" in code
    assert "add:" in code.asm()
    assert code.text == ADD
    assert code.object_bytes
    with pytest.raises(KeyError):
        code.address("other")


@pytest.mark.parametrize("name", ["erf", "erfc", "tgamma", "lgamma", "tanh", "asinh", "cbrt", "expm1", "log1p", "tan"])
def test_math_library(name):
    expected = {"tgamma": math.gamma, "cbrt": lambda x: x ** (1 / 3)}.get(name) or getattr(math, name)
    f = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(compile_text(unary(name)).address("f"))
    assert f(0.7) == pytest.approx(expected(0.7), rel=1e-15)
    g = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)(compile_text(unary(name + "f", "float")).address("f"))
    assert g(0.7) == pytest.approx(expected(0.7), rel=1e-6)


@pytest.mark.parametrize("name", ["exp", "sin", "cos", "log", "exp2", "log10", "tan", "sinh", "atan"])
@pytest.mark.parametrize("type", ["double", "float"])
def test_intrinsics_find_their_library_function(name, type):
    suffix = "f64" if type == "double" else "f32"
    kind = ctypes.c_double if type == "double" else ctypes.c_float
    f = ctypes.CFUNCTYPE(kind, kind)(compile_text(unary(f"llvm.{name}.{suffix}", type)).address("f"))
    expected = 2**0.7 if name == "exp2" else getattr(math, name)(0.7)
    assert f(0.7) == pytest.approx(expected, rel=1e-15 if type == "double" else 1e-6)


@pytest.mark.parametrize("call", ["i32 3", "i32 %n"])
def test_calls_that_code_generation_makes_up(call):
    text = f"""
declare double @llvm.powi.f64.i32(double, i32)
define double @f(double %x, i32 %n) {{
  %y = call double @llvm.powi.f64.i32(double %x, {call})
  ret double %y
}}
"""
    f = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int)(compile_text(text).address("f"))
    assert f(1.5, 3) == 1.5**3


def test_missing_function_is_named():
    with pytest.raises(IradError, match=r"calls no_such_function.*does not know"):
        compile_text(unary("no_such_function"))


def test_given_symbols_are_used_and_come_first():
    callback = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda x: x + 100)
    where = ctypes.cast(callback, ctypes.c_void_p).value
    for name in ("mine", "erf"):
        code = compile_text(unary(name), {name: where})
        assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("f"))(1.0) == 101


@pytest.mark.parametrize(
    "text",
    [
        "define i64 @f( {",
        "define i64 @f(double %x) { ret i64 %x }",
        "define void @f() { ret void } define void @f() { ret void }",
        """define i64 @dominance(i1 %c) {
e:
  br i1 %c, label %a, label %b
a:
  %x = add i64 1, 2
  br label %b
b:
  ret i64 %x
}""",
    ],
)
def test_bad_text_is_refused(text):
    with pytest.raises(IradError, match="LLVM rejects"):
        compile_text(text)


def test_object_can_be_loaded_without_its_text():
    obj = cpu.emit(unary("erf"))
    again = cpu.ObjectCode(bytes(obj.data), obj.defines, obj.imports)
    one, two = cpu.load(again), cpu.load(again)
    assert one.address("f") != two.address("f")
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(two.address("f"))(0.5) == math.erf(0.5)
    with pytest.raises(IradError, match="text"):
        _ = one.llvm
    with pytest.raises(IradError, match="text"):
        one.asm()


def test_the_same_text_gives_the_same_object():
    assert cpu.emit(ADD) == cpu.emit(ADD)


def test_internal_functions_are_not_exported():
    obj = cpu.emit("define internal void @a() {\nret void\n}\ndefine void @b() {\ncall void @a()\nret void\n}")
    assert obj.defines == ("b",)


def test_python_threads_compile_at_once():
    results, errors = {}, []

    def work(n):
        try:
            for k in range(5):
                value = 100 * n + k
                code = compile_text(f"define i64 @f(i64 %x) {{\n %y = add i64 %x, {value}\n ret i64 %y\n}}")
                results[value] = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("f"))(1)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert results == {v: v + 1 for v in results}
    assert len(results) == 20


def test_dump_writes_the_text(tmp_path, monkeypatch):
    monkeypatch.setattr(cpu, "CONFIG", dataclasses.replace(cpu.CONFIG, dump=tmp_path / "new"))
    compile_text(ADD)
    (file,) = (tmp_path / "new").iterdir()
    assert file.read_text() == ADD


def test_runtime_has_what_python_and_libm_offer():
    table = runtime()
    for name in ("PyErr_Occurred", "_Py_NoneStruct", "erf", "erff", "pow", "memcpy"):
        assert table[name]


def test_host_key_names_versions_and_cpu():
    key = target.host_key()
    assert "llvmlite" in key
    assert target.host()[1] in key
