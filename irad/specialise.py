"""One kernel for one tuple of argument types: lowered, differentiated and compiled, each step once, when first asked.

This is where frontend, passes and codegen meet. Nothing is decided here: the frontend says what the parameters are,
the passes what a program does, codegen where it lies.
"""

from __future__ import annotations

import threading
import types as pytypes
from dataclasses import dataclass, replace

from irad import frontend
from irad.codegen.cpu import compile_text
from irad.errors import ShadowError
from irad.frontend import ArrayType, Capture, Lowered, Options, ParamInfo, ScalarType, lower
from irad.frontend.signature import ParamType
from irad.launch.executable import Executable
from irad.passes.fuse import EPILOGUES, fuse
from irad.passes.ir.model import ArrayParam, Function, Param, ScalarParam
from irad.passes.layout import AdjointSpec, Blend, Check, Conform, Program, Variant
from irad.passes.loop_function import loop_function
from irad.passes.loop_program import adjoint_loop, loop_reached, loop_touched, primal_loop, tangent_loop
from irad.passes.program import (
    NotFused,
    Stage,
    adjoint_program,
    keepable,
    prepare_stage,
    primal_program,
    tangent_program,
)
from irad.passes.reached import reached


@dataclass(frozen=True)
class Parameter:
    """What users of a kernel need to know of one parameter. ``capture`` is set for hidden ones."""

    name: str
    type: ParamType
    capture: Capture | None
    read: bool
    written: bool

    @property
    def is_array(self) -> bool:
        return isinstance(self.type, ArrayType)

    @property
    def differentiable(self) -> bool:
        """Whether its type can carry a derivative: floating point."""
        if isinstance(self.type, ArrayType):
            return self.type.dtype in ("float64", "float32")
        return self.type.kind in ("float", "float64", "float32")


@dataclass(frozen=True)
class Request:
    """Which program of a kernel is wanted.

    ``mode``: ``"primal"``, ``"tangent"`` or ``"adjoint"``; of a loop kernel also ``"augmented"`` and ``"reverse"``.
    ``active``: parameters that carry derivatives.
    ``keep_seed``, ``assign``, ``blend``: see ``passes/layout.py``. ``stages``: of the primal, the first and the end of
    its part. ``fuse``: the array that the kernel writes and that is not stored, the state, and an epilogue by name
    (``passes/fuse.py``).
    """

    mode: str = "primal"
    active: frozenset[str] = frozenset()
    keep_seed: frozenset[str] = frozenset()
    assign: frozenset[str] = frozenset()
    blend: Blend | None = None
    stages: tuple[int, int] | None = None
    fuse: tuple[str, str, str] | None = None


class Specialisation:
    """A kernel for arguments of these types. Raises what the frontend and the passes refuse, with the user's line."""

    def __init__(
        self, function: pytypes.FunctionType, types: tuple[ParamType, ...], options: Options, cache: bool = True
    ) -> None:
        self.types = types
        self.cache = cache
        self.lowered: Lowered = lower(function, types, options)
        self.is_loop = self.lowered.kind == "loop"
        self.params: tuple[Param, ...] = tuple(_param(p) for p in self.lowered.params)
        self.loop = self._loop_function() if self.is_loop else None
        self.stages: tuple[Stage, ...] = tuple(
            prepare_stage(
                s.text,
                s.name,
                s.rank,
                self.params,
                s.domain_text,
                s.domain_name,
                s.loc,
                [_conform(c) for c in s.conforms],
            )
            for s in self.lowered.stages
            if not self.is_loop
        )
        if self.loop is not None:
            read, written = loop_touched(self.loop, self.params)
        else:
            read = frozenset(n for s in self.stages for n in s.point.read)
            written = frozenset(n for s in self.stages for n in s.point.written)
        self.parameters = tuple(
            Parameter(p.name, p.type, p.capture, p.name in read or isinstance(p.type, ScalarType), p.name in written)
            for p in self.lowered.params
        )
        self.by_name = {p.name: p for p in self.parameters}
        self.written = tuple(p.name for p in self.parameters if p.written)
        self._lock = threading.RLock()
        self._programs: dict[tuple[Request, Variant], Program] = {}
        self._samples: dict[Request, Program] = {}
        self._executables: dict[tuple[Request, Variant], Executable] = {}
        self._keepable: dict[str, bool] = {}
        self._fused: dict[tuple[str, str, str], tuple[tuple[Stage, ...], tuple[Param, ...]] | None] = {}
        self._reached: dict[frozenset[str], frozenset[str]] = {}
        self._adjoints: dict[frozenset[str], tuple[Program, Program]] = {}

    def _loop_function(self) -> Function:
        (stage,) = self.lowered.stages
        weak = frozenset(p.name for p in self.params if isinstance(p, ScalarParam) and p.weak)
        return loop_function(stage.text, stage.name, weak)

    def loop_program(self, mode: str, active: frozenset[str] = frozenset()) -> Program:
        """A program of a loop kernel: ``"primal"``, ``"tangent"``, ``"augmented"`` (the run that records) or
        ``"reverse"`` (also ``"adjoint"``)."""
        assert self.loop is not None
        with self._lock:
            if mode == "primal":
                return primal_loop(self.loop, self.params)
            if mode == "tangent":
                return tangent_loop(self.loop, self.params, active)
            if active not in self._adjoints:
                self._adjoints[active] = adjoint_loop(self.loop, self.params, active)
            return self._adjoints[active][mode != "augmented"]

    def fresh(self) -> bool:
        """Whether what the kernel captures is still what it was compiled for."""
        return self.lowered.fresh()

    def program(self, request: Request, variant: Variant) -> Program:
        """The LLVM text of a launch."""
        if self.is_loop:
            variant = Variant()  # loop kernels take any strides
        key = (request, variant)
        with self._lock:
            if key not in self._programs:
                self._programs[key] = self._make(request, variant)
            return self._programs[key]

    def sample(self, request: Request, variant: Variant) -> Program:
        """Any program for the request: what it reads and saves is the same for all variants."""
        with self._lock:
            if request not in self._samples:
                self._samples[request] = self.program(request, variant)
            return self._samples[request]

    def executable(self, request: Request, variant: Variant) -> Executable:
        """The compiled launch."""
        if self.is_loop:
            variant = Variant()
        key = (request, variant)
        with self._lock:
            if key not in self._executables:
                program = self.program(request, variant)
                code = compile_text(program.text, keep=self.cache)
                self._executables[key] = Executable(code, program.block, program.sweeps, len(program.checks))
            return self._executables[key]

    def executables(self) -> dict[tuple[Request, Variant], Executable]:
        """Everything compiled so far."""
        with self._lock:
            return dict(self._executables)

    def reached(self, active: frozenset[str]) -> frozenset[str]:
        """Arrays into which the kernel stores values that depend on ``active``, over all its stages."""
        with self._lock:
            if active not in self._reached:
                if self.loop is not None:
                    self._reached[active] = loop_reached(self.loop, self.params, active) - (active - set(self.written))
                else:
                    self._reached[active] = reached([s.point for s in self.stages], active)
            return self._reached[active]

    def keepable(self, name: str) -> bool:
        """Whether an adjoint can leave the shadow of a written array as it is."""
        if self.is_loop:
            return False
        with self._lock:
            if name not in self._keepable:
                self._keepable[name] = keepable(self.stages, name)
            return self._keepable[name]

    def fused(self, rate: str, state: str, epilogue: str) -> tuple[tuple[Stage, ...], tuple[Param, ...]] | None:
        """The stages and parameters of the kernel with an epilogue; ``None`` where it cannot be fused."""
        if self.is_loop:
            return None
        key = (rate, state, epilogue)
        with self._lock:
            if key not in self._fused:
                *first, last = self.stages
                made = None
                if not any(rate in (*s.point.read, *s.point.written) for s in first) and state not in self.written:
                    found = fuse(last.point, last.domain, rate, state, EPILOGUES[epilogue])
                    if found is not None:
                        made = (*first, replace(last, point=found.point, domain=found.domain)), found.params
                self._fused[key] = made
            return self._fused[key]

    def parts(self, request: Request) -> tuple[tuple[Stage, ...], tuple[Param, ...]]:
        """The stages of a program and its parameters."""
        if request.blend is not None:
            p = self.by_name[request.blend.rate].type
            assert isinstance(p, ArrayType)
            scalars = (request.blend.a, request.blend.b, request.blend.c)
            return self.stages, (*self.params, *(ScalarParam(n, p.elem) for n in scalars))
        if request.fuse is None:
            return self.stages, self.params
        found = self.fused(*request.fuse)
        if found is None:
            raise NotFused
        return found

    def _make(self, request: Request, variant: Variant) -> Program:
        if self.is_loop:
            return self.loop_program(request.mode, request.active)
        stages, params = self.parts(request)
        if request.mode == "primal":
            first, end = request.stages or (0, len(stages))
            return primal_program(stages[first:end], params, variant)
        if request.mode == "tangent":
            return tangent_program(stages, params, variant, request.active)
        for name in request.keep_seed:
            if not self.keepable(name):
                raise ShadowError(
                    f"the shadow of {name} cannot be left as it is: several statements of {self.lowered.name} "
                    f"touch {name}",
                    loc=self.lowered.loc,
                    remedy="give a copy of the seed",
                )
        spec = AdjointSpec(request.active, request.keep_seed, request.assign, request.blend)
        return adjoint_program(stages, params, variant, spec)


def _conform(c: frontend.Conform) -> Conform:
    check = Check("shapes", c.message, c.loc, remedy="give arrays whose shapes fit the operators")
    return Conform(c.array, c.cut, c.target, c.target_cut, c.axis, check)


def _param(p: ParamInfo) -> Param:
    if isinstance(p.type, ArrayType):
        return ArrayParam(p.name, p.type.elem, p.type.rank)
    return ScalarParam(p.name, p.type.llvm, p.type.weak)
