"""Compiles the programs of ``irad.passes.loop_program`` and runs them on blocks filled by hand."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from irad.passes.ir.model import ArrayParam, Function, Param, ScalarParam
from irad.passes.layout import Program
from irad.passes.loop_program import RELEASE, adjoint_loop, loop_reached, primal_loop, tangent_loop

from irad.codegen.cpu import Code, compile_text

Array = np.ndarray[Any, Any]
Values = dict[str, Any]


class Compiled:
    """One program as machine code."""

    def __init__(self, program: Program, optimise: bool = True) -> None:
        self.program = program
        self.code: Code = compile_text(program.text, optimise=optimise, keep=False)
        entry = self.code.address("sweep0")
        self.sweep = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(entry)

    def __call__(self, values: Mapping[str, Any]) -> int:
        """Run with arrays and scalars by the names of words; the status."""
        layout = self.program.block
        block = np.zeros(layout.size, np.int64)
        for name, v in values.items():
            if isinstance(v, np.ndarray):
                if f"{name}.data" not in layout:
                    continue
                block[layout.at(f"{name}.data")] = v.ctypes.data
                for d in range(v.ndim):
                    if f"{name}.n{d}" in layout:
                        block[layout.at(f"{name}.n{d}")] = v.shape[d]
                        block[layout.at(f"{name}.s{d}")] = v.strides[d]
            elif name in layout:
                bits: Any = np.int64(v) if isinstance(v, (int, np.integer)) else np.asarray(v)
                if bits.dtype == np.float32:
                    block[layout.at(name)] = int(bits.view(np.int32))
                else:
                    block[layout.at(name)] = int(bits.view(np.int64))
        self.sweep(0, 1, block.ctypes.data)
        return int(block[len(layout.words)])


@functools.cache
def _release() -> Any:
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(compile_text(RELEASE).address("irad_tape_free"))


def like(a: Array) -> Array:
    """Zeros with the very strides of ``a`` (of rank 1 if these are not the usual ones)."""
    if a.flags.c_contiguous:
        return np.zeros_like(a)
    assert a.ndim == 1
    step = a.strides[0] // a.itemsize
    return np.zeros(max(1, a.size * abs(step)), a.dtype)[::step][: a.size]


class Loop:
    """A loop kernel and everything that is made of it. ``values``: its arguments, never changed."""

    def __init__(self, fn: Function, params: tuple[Param, ...], active: Iterable[str], optimise: bool = True) -> None:
        self.fn, self.params, self.optimise = fn, params, optimise
        asked = frozenset(active)
        self.active = asked | loop_reached(fn, params, asked)
        self.arrays = {p.name: p for p in params if isinstance(p, ArrayParam)}
        self.scalars = {p.name: p for p in params if isinstance(p, ScalarParam)}

    @functools.cached_property
    def primal(self) -> Compiled:
        return Compiled(primal_loop(self.fn, self.params), self.optimise)

    @functools.cached_property
    def tangent(self) -> Compiled:
        return Compiled(tangent_loop(self.fn, self.params, self.active), self.optimise)

    @functools.cached_property
    def adjoint(self) -> tuple[Compiled, Compiled]:
        augmented, reverse = adjoint_loop(self.fn, self.params, self.active)
        return Compiled(augmented, self.optimise), Compiled(reverse, self.optimise)

    def fresh(self, values: Mapping[str, Any]) -> Values:
        """Copies of arrays with their strides."""
        result: Values = {}
        for name, v in values.items():
            result[name] = v
            if isinstance(v, np.ndarray):
                result[name] = like(v)
                result[name][...] = v
        return result

    def run(self, values: Mapping[str, Any]) -> tuple[int, Values]:
        """Status and arguments after a run."""
        after = self.fresh(values)
        return self.primal(after), after

    def push(self, values: Mapping[str, Any], tangents: Mapping[str, Any]) -> tuple[int, Values, Values]:
        """Status, arguments and tangents after a run along ``tangents`` (of active parameters; 0 where missing)."""
        after = self.fresh(values)
        given: Values = {}
        for name in self.active:
            if name in self.arrays:
                given[f"{name}'"] = like(values[name])
                given[f"{name}'"][...] = tangents.get(name, 0)
            else:
                type = np.float32 if self.scalars[name].type == "float" else np.float64
                given[f"{name}.tangent"] = type(tangents.get(name, 0))
        status = self.tangent({**after, **given})
        return status, after, {n: given[f"{n}'"] for n in self.active if n in self.arrays}

    def pull(self, values: Mapping[str, Any], seeds: Iterable[Mapping[str, Array]]) -> Pulled:
        """Run, and walk back once for each of ``seeds`` (of active arrays; 0 where missing)."""
        return Pulled(self, values, seeds)


class Pulled:
    """``status``, ``after`` (arguments after the run), ``found`` (cotangents, one dictionary a seed), ``words``."""

    def __init__(self, loop: Loop, values: Mapping[str, Any], seeds: Iterable[Mapping[str, Array]]) -> None:
        forwards, backwards = loop.adjoint
        self.after = loop.fresh(values)
        shadows: Values = {f"{n}'": like(values[n]) for n in loop.active if n in loop.arrays}
        cells: Values = {f"{n}'": np.zeros(1) for n in loop.active if n in loop.scalars}
        head = np.zeros(8, np.int64)
        self.found: list[Values] = []
        try:
            self.status = forwards({**self.after, **shadows, **cells, ".tape": head})
            self.words = int(head[1])
            if self.status:
                return
            reads = backwards.program.reads
            seen = loop.fresh(self.after)
            for name in loop.arrays:
                if name not in reads:  # the walk back must not look at these
                    seen[name][...] = np.nan if seen[name].dtype.kind == "f" else 10**15
            before = loop.fresh(seen)
            for seed in seeds:
                for name in loop.active:
                    if name in loop.arrays:
                        shadows[f"{name}'"][...] = seed.get(name, 0)
                    else:
                        cells[f"{name}'"][...] = 0
                backwards({**seen, **shadows, **cells, ".tape": head})
                self.found.append({n: (shadows | cells)[f"{n}'"].copy() for n in loop.active})
            for name in loop.arrays:
                np.testing.assert_array_equal(seen[name], before[name], f"the walk back wrote {name}")
        finally:
            _release()(head.ctypes.data)
