"""Runs what the frontend produced: compiles stages with MCJIT, the index mark defined by a loop over the domain."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from irad.frontend import ArrayType, Lowered, StageIR, lower, typeof
from irad.frontend.llvm_text import simplified

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


def lower_for(function: Any, *args: Any, options: Any = None) -> Lowered:
    """Lower a kernel for these arguments."""
    return lower(function, tuple(typeof(a) for a in args), options)


def block_of(lowered: Lowered, args: tuple[Any, ...]) -> list[int]:
    """The words of all parameters, captured ones looked up now."""
    words: list[int] = []
    values = [*args, *(c.get() for c in lowered.captures)]
    for p, value in zip(lowered.params, values, strict=True):
        if isinstance(p.type, ArrayType):
            words += [value.ctypes.data, *value.shape, *value.strides]
        elif p.type.llvm == "double":
            words += struct.unpack("<q", struct.pack("<d", value))
        elif p.type.llvm == "float":
            words += struct.unpack("<q", struct.pack("<fxxxx", value))
        else:
            words.append(int(value))
    return words


def driver_text(lowered: Lowered, stage: StageIR) -> str:
    """A module that defines the index marks, and ``drive(block, bounds)``: the domain, then every point of it."""
    words = [w for p in lowered.params for w in p.words]
    types = ", ".join(kind for kind, _ in words)
    loads, args = [], []
    for n, (kind, _) in enumerate(words):
        loads.append(f"  %p{n} = getelementptr i64, ptr %block, i64 {n}\n  %w{n} = load i64, ptr %p{n}\n")
        conversion = {
            "ptr": f"  %v{n} = inttoptr i64 %w{n} to ptr\n",
            "i64": f"  %v{n} = add i64 %w{n}, 0\n",
            "i1": f"  %v{n} = trunc i64 %w{n} to i1\n",
            "double": f"  %v{n} = bitcast i64 %w{n} to double\n",
            "float": f"  %h{n} = trunc i64 %w{n} to i32\n  %v{n} = bitcast i32 %h{n} to float\n",
        }[kind]
        loads.append(conversion)
        args.append(f"{kind} %v{n}")
    arguments = ", ".join(args)
    text = f'@point = internal global [4 x i64] zeroinitializer\ndeclare void @"{stage.name}"({types})\n'
    text += f'declare void @"{stage.domain_name}"({types}, ptr)\n' if stage.rank else ""
    text += "define void @irad.status(i32 %s) {\n  call void @llvm.trap()\n  ret void\n}\ndeclare void @llvm.trap()\n"
    text += "define double @irad.strong.f64(double %x) {\n  ret double %x\n}\n"
    text += "define float @irad.strong.f32(float %x) {\n  ret float %x\n}\n"
    for kind, suffix in (("double", "f64"), ("float", "f32")):
        text += f"define {kind} @irad.powi.{suffix}({kind} %x, i64 %n) {{\n  %y = sitofp i64 %n to {kind}\n"
        text += f"  %p = call {kind} @llvm.pow.{suffix}({kind} %x, {kind} %y)\n  ret {kind} %p\n}}\n"
        text += f"declare {kind} @llvm.pow.{suffix}({kind}, {kind})\n"
    for d in range(4):
        text += f"define i64 @irad.index.{d}() {{\n  %p = getelementptr i64, ptr @point, i64 {d}\n"
        text += "  %i = load i64, ptr %p\n  ret i64 %i\n}\n"
    text += f"define void @drive(ptr %block, ptr %bounds) {{\nentry:\n{''.join(loads)}"
    if stage.rank:
        text += f'  call void @"{stage.domain_name}"({arguments}, ptr %bounds)\n'
    previous = "entry"
    for d in range(stage.rank):
        text += f"  %lo{d}.p = getelementptr i64, ptr %bounds, i64 {2 * d}\n  %lo{d} = load i64, ptr %lo{d}.p\n"
        text += f"  %hi{d}.p = getelementptr i64, ptr %bounds, i64 {2 * d + 1}\n  %hi{d} = load i64, ptr %hi{d}.p\n"
        text += f"  br label %head{d}\nhead{d}:\n  %i{d} = phi i64 [ %lo{d}, %{previous} ], [ %next{d}, %tail{d} ]\n"
        text += f"  %more{d} = icmp slt i64 %i{d}, %hi{d}\n  br i1 %more{d}, label %body{d}, label %exit{d}\nbody{d}:\n"
        text += f"  %at{d} = getelementptr i64, ptr @point, i64 {d}\n  store i64 %i{d}, ptr %at{d}\n"
        previous = f"body{d}"
    text += f'  call void @"{stage.name}"({arguments})\n'
    for d in reversed(range(stage.rank)):
        text += f"  br label %tail{d}\ntail{d}:\n  %next{d} = add i64 %i{d}, 1\n  br label %head{d}\nexit{d}:\n"
    return text + "  ret void\n}\n"


def run_stage(lowered: Lowered, stage: StageIR, args: tuple[Any, ...]) -> list[int]:
    """Run one stage on these arguments; the bounds of its domain."""
    module = llvm.parse_assembly(driver_text(lowered, stage))
    for text in (stage.text, stage.domain_text):
        if text:
            part = llvm.parse_assembly(text)
            part.verify()
            module.link_in(part)
    for f in module.functions:  # marks carry attributes of calls that are pure; here they read the point
        if f.name.startswith("irad.index"):
            f.linkage = "internal"
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=0)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    drive = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address("drive"))
    block = np.array(block_of(lowered, args), dtype=np.int64)
    bounds = np.zeros(8, dtype=np.int64)
    drive(block.ctypes.data, bounds.ctypes.data)
    return [int(b) for b in bounds[: 2 * stage.rank]]


def run(function: Any, *args: Any, options: Any = None) -> Lowered:
    """Lower a kernel for these arguments and run it on them, stage after stage."""
    lowered = lower_for(function, *args, options=options)
    for stage in lowered.stages:
        run_stage(lowered, stage, args)
    return lowered


def clean_ir(stage: StageIR) -> str:
    """The body of a stage's function after LLVM's optimiser, without metadata."""
    text = simplified(stage.text)
    start = text.index("define void @")
    return text[start : text.index("\n}", start)]
