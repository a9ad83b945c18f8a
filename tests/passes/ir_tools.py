"""Compiles LLVM text and calls it, to hold the interpreter and the passes against machine code."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from irad.passes.ir.interp import array_words
from irad.passes.ir.model import ArrayParam, Function, PointFn
from irad.passes.ir.read import parsed
from irad.passes.ir.write import write_functions

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

CTYPES = {
    "double": ctypes.c_double, "float": ctypes.c_float, "i64": ctypes.c_int64, "i32": ctypes.c_int32,
    "i16": ctypes.c_int16, "i8": ctypes.c_int8, "i1": ctypes.c_uint8, "ptr": ctypes.c_int64, "void": None,
}  # fmt: skip


class Compiled:
    """A function of a module, callable with Python numbers; ``index`` is what ``irad.index.<d>`` returns."""

    def __init__(self, text: str, name: str, result: str, types: Sequence[str]) -> None:
        self.types = types
        point = "@test.point = internal global [4 x i64] zeroinitializer\n"
        lines = []
        for line in text.splitlines():
            if line.startswith("declare i64 @irad.index."):
                axis = line.split("irad.index.")[1].split("(")[0]
                line = (
                    f"define internal i64 @irad.index.{axis}() noinline {{\n"
                    f"  %p = getelementptr i64, ptr @test.point, i64 {axis}\n"
                    "  %i = load i64, ptr %p\n  ret i64 %i\n}"
                )
            lines.append(line)
        setter = (
            "define void @test.set(i64 %axis, i64 %value) {\n  %p = getelementptr i64, ptr @test.point, i64 %axis\n"
            "  store i64 %value, ptr %p\n  ret void\n}\n"
        )
        module = parsed(point + "\n".join(lines) + "\n" + setter)
        machine = llvm.Target.from_default_triple().create_target_machine(opt=0)
        self.engine = llvm.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()
        kinds = [CTYPES[t] for t in types]
        self.function = ctypes.CFUNCTYPE(CTYPES[result], *kinds)(self.engine.get_function_address(name))
        set_type = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)
        self.set = set_type(self.engine.get_function_address("test.set"))

    def __call__(self, *args: Any, index: Sequence[int] = ()) -> Any:
        for axis, value in enumerate(index):
            self.set(axis, value)
        given = zip(args, self.types, strict=True)
        return self.function(*(float(a) if t in ("double", "float") else int(a) for a, t in given))


def compiled(fn: Function) -> Compiled:
    """The small IR through the writer and LLVM to machine code."""
    return Compiled(write_functions(fn), fn.name, fn.type, [a.type for a in fn.args])


def words_of(arrays: dict[str, np.ndarray], fn: Function, scalars: dict[str, Any]) -> list[Any]:
    """A value for each parameter of a function with canonical parameters."""
    words: dict[str, Any] = dict(scalars)
    for name, a in arrays.items():
        words |= array_words(ArrayParam(name, "", a.ndim), a)
    return [words[a.name] for a in fn.args]


def bits(type: str, value: Any) -> Any:
    """A value that is equal exactly where all bits are; all NaNs are one."""
    if type not in ("double", "float"):
        return int(value) & 1 if type == "i1" else int(value)
    x = np.float32(value) if type == "float" else np.float64(value)
    return "nan" if np.isnan(x) else x.tobytes()


def text_of(fn: Function | PointFn) -> str:
    return write_functions(fn.fn if isinstance(fn, PointFn) else fn)
