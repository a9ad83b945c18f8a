"""Runs programs of the passes without the launch layer: a block filled by hand, plan and sweeps called one by one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from irad.passes.ir.model import ArrayParam, Param, ScalarParam
from irad.passes.layout import AdjointSpec, Check, Program, Variant
from irad.passes.program import Stage, adjoint_program, prepare_stage, primal_program

from irad.codegen.cpu import Code, compile_text
from irad.frontend import ArrayType, lower, typeof

ELEM = {"float64": "double", "float32": "float", "int64": "i64"}
Values = dict[str, Any]


class Built:
    """A kernel's stages for given arguments, and the programs made from them."""

    def __init__(self, function: Callable[..., None], args: Iterable[Any]) -> None:
        args = tuple(args)
        lowered = lower(function, tuple(typeof(a) for a in args))
        self.params: list[Param] = []
        for p in lowered.params:
            if isinstance(p.type, ArrayType):
                self.params.append(ArrayParam(p.name, ELEM[p.type.dtype], p.type.rank))
            else:
                self.params.append(ScalarParam(p.name, p.type.llvm, p.type.kind == "float"))
        self.stages: list[Stage] = [
            prepare_stage(s.text, s.name, s.rank, self.params, s.domain_text, s.domain_name, s.loc)
            for s in lowered.stages
        ]
        self.args = dict(zip((p.name for p in self.params), args, strict=True))
        self.variant = Variant()
        self.primal = primal_program(self.stages, self.params, self.variant)
        wraps = self.failed(self.primal, self.args, kind="wraps")
        if wraps:
            self.variant = Variant(wraps=frozenset(c.key for c in wraps))
            self.primal = primal_program(self.stages, self.params, self.variant)

    def failed(self, program: Program, values: Values, kind: str) -> list[Check]:
        """Checks of one kind that a launch with these values does not pass."""
        _, out, _ = _plan(program, compile_text(program.text), values, {})
        flags = out[1 + program.sweeps :]
        return [c for c, bad in zip(program.checks, flags, strict=True) if bad and c.kind == kind]

    def fresh(self) -> Values:
        return {n: a.copy() if isinstance(a, np.ndarray) else a for n, a in self.args.items()}

    def adjoint(self, active: Iterable[str], **kw: Any) -> Program:
        spec = AdjointSpec(frozenset(active), **kw)
        return adjoint_program(self.stages, self.params, self.variant, spec)

    def values_for(self, program: Program) -> Values:
        """What an adjoint reads: arrays after the run, and copies of how they were before a stage."""
        values = self.fresh()
        saved: Values = {}
        for k in range(len(self.stages)):
            for at, array, alias in program.saves:
                if at == k:
                    saved[alias] = values[array].copy()
            run(primal_program([self.stages[k]], self.params, Variant(wraps=_of_stage(self.variant, k))), values)
        return values | saved

    def pull(self, active: Iterable[str], seeds: Values, **kw: Any) -> Values:
        """Shadows after the adjoint, for seeds of the written arrays."""
        program = self.adjoint(active, **kw)
        shadows: Values = {n: np.array(s) for n, s in seeds.items()}
        for name in active:
            if name not in shadows:
                value = self.args[name]
                shadows[name] = np.zeros_like(value) if isinstance(value, np.ndarray) else np.zeros(1)
        run(program, self.values_for(program), shadows)
        return shadows


def _of_stage(variant: Variant, stage: int) -> frozenset[str]:
    return frozenset("0:" + key.split(":", 1)[1] for key in variant.wraps if key.startswith(f"{stage}:"))


def run(program: Program, values: Values, shadows: Values | None = None, tiles_at_once: int = 1) -> None:
    """Run a program; tiles in reverse order, so that nothing can depend on their order."""
    code = compile_text(program.text)
    result, out, block = _plan(program, code, values, shadows or {})
    assert result == 0, program.checks[-1 - result].message
    scratch = np.zeros(max(1, program.partials * int(out[1 : 1 + program.sweeps].max(initial=0))))
    if program.partials:
        block[program.block.at("partials.data")] = scratch.ctypes.data
    for s in range(program.sweeps):
        sweep = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(code.address(f"sweep{s}"))
        for hi in range(int(out[1 + s]), 0, -tiles_at_once):
            sweep(max(0, hi - tiles_at_once), hi, block.ctypes.data)


def _plan(program: Program, code: Code, values: Values, shadows: Values) -> tuple[int, Any, Any]:
    block = np.zeros(program.block.size, np.int64)

    def put(prefix: str, a: Any, extents: bool) -> None:
        block[program.block.at(f"{prefix}.data")] = a.ctypes.data
        for d in range(a.ndim):
            if f"{prefix}.s{d}" in program.block:
                block[program.block.at(f"{prefix}.s{d}")] = a.strides[d]
            if extents:
                block[program.block.at(f"{prefix}.n{d}")] = a.shape[d]

    for name, v in values.items():
        if isinstance(v, np.ndarray):
            if f"{name}.data" in program.block:
                put(name, v, True)
        elif isinstance(v, float):
            block[program.block.at(name)] = np.float64(v).view(np.int64)
        else:
            block[program.block.at(name)] = int(v)
    for name, a in shadows.items():
        put(f"{name}'", a, False)
    out = np.zeros(1 + program.sweeps + len(program.checks), np.int64)
    plan = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(code.address("plan"))
    return plan(block.ctypes.data, out.ctypes.data), out, block
