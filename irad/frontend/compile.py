"""``lower``: a Python function and its argument types to LLVM text, stage by stage."""

from __future__ import annotations

import inspect
import re
import types as pytypes
from typing import Any

from irad.errors import IradError
from irad.frontend import (
    array_functions,  # noqa: F401  (registers them with Numba)
    checks,
    mathclose,
    points,
    pointwise,
    wrapper,
)
from irad.frontend.captures import Capture, Unit, analyse, captures
from irad.frontend.llvm_text import check_domain, simplified
from irad.frontend.numba_private import (
    NumbaFailure,
    compile_ir,
    compiler_lock,
    current_session,
    link,
    session,
    types,
)
from irad.frontend.numba_target import Raised, exceptions_in
from irad.frontend.rewrite import Key, drop_dead, prepared_ir
from irad.frontend.runtime import RUNTIME
from irad.frontend.signature import ArrayType, Loc, Lowered, Options, ParamInfo, ParamType, StageIR
from irad.frontend.translate import translate


def lower(pyfunc: pytypes.FunctionType, arg_types: tuple[ParamType, ...], options: Any = None) -> Lowered:
    """Compile a kernel's Python function for argument types, one type a parameter, to unoptimised LLVM text.

    ``options``: anything with the attributes of :class:`Options`. Needs no source text. Raises ``IradError`` with
    the user's file and line for whatever cannot be compiled.
    """
    options = options or Options()
    fastmath = options.fastmath if isinstance(options.fastmath, bool) else frozenset(options.fastmath)
    with compiler_lock, session(fastmath) as shared:
        code = pyfunc.__code__
        try:
            return _Lowering(pyfunc, arg_types, options.name, fastmath, options.boundscheck).run()
        except NumbaFailure as e:
            if shared.error is not None:  # the first refusal; Numba wraps what a helper raises
                raise shared.error from None
            raise translate(e.error, Loc(code.co_filename, code.co_firstlineno)) from e.error


class _Lowering:
    """One run of ``lower``: the kernel, its parameters and their types."""

    def __init__(
        self,
        pyfunc: pytypes.FunctionType,
        arg_types: tuple[ParamType, ...],
        name: str | None,
        fastmath: bool | frozenset[str],
        boundscheck: bool | None,
    ) -> None:
        self.unit = analyse(pyfunc)
        self.fastmath = fastmath
        self.boundscheck = boundscheck
        self.raises: dict[int, Raised] = {}
        self.name = name or self.unit.name
        self.symbol = "kernel." + re.sub(r"\W", "_", self.name, flags=re.ASCII)  # never the name of a C function
        names = _argument_names(self.unit, arg_types)
        self.hidden: dict[Key, Capture] = captures(self.unit, names)
        self.params = tuple(
            [ParamInfo(name, ty) for name, ty in zip(names, arg_types, strict=True)]
            + [ParamInfo(c.name, c.type, c) for c in self.hidden.values()]
        )
        self.types = tuple(numba_type(p.type) for p in self.params)

    def run(self) -> Lowered:
        unit = self.unit
        kind = checks.kind_of(unit)
        checks.check(unit, kind)
        stages = {"point": self.point, "math": self.math, "loop": self.loop}[kind]()
        constants = tuple(c for u in unit.walk() for c in u.constants)
        return Lowered(
            self.name,
            unit.loc.file,
            unit.loc.line,
            self.params,
            stages,
            tuple(self.hidden.values()),
            kind,
            constants,
            self.raises,
        )

    def body(self, func_ir: Any, name: str) -> str:
        """The text of a stage's point function."""
        compiled = compile_ir(func_ir, self.types, self.fastmath)
        text = wrapper.body_wrapper(name, compiled.symbol, self.params, compiled.argument_types, self.unit.loc)
        return link(compiled.library, text, name)

    def point(self) -> tuple[StageIR, ...]:
        func_ir = prepared_ir(self.unit, self.hidden)
        domain_name = f"{self.symbol}.domain"
        box = points.simple_box(func_ir, self.params)
        if box is not None:
            rank, call = box.rank, box.call
            text = wrapper.box_domain(domain_name, self.params, box.array, [box.width] * rank, [box.width] * rank)
        else:
            domain, call = points.domain_ir(prepared_ir(self.unit, self.hidden))
            compiled = compile_ir(domain, self.types, self.fastmath)
            rank = len(compiled.signature.return_type) // 2
            wrapped = wrapper.domain_wrapper(
                domain_name, compiled.symbol, self.params, compiled.argument_types, rank, call.loc
            )
            text = simplified(link(compiled.library, wrapped, domain_name))
            check_domain(text, domain_name, call.loc)
        body = self.body(points.body_ir(func_ir, rank), self.symbol)
        return (StageIR(body, self.symbol, rank, text, domain_name, call.loc),)

    def math(self) -> tuple[StageIR, ...]:
        func_ir = prepared_ir(self.unit, self.hidden)
        reading = mathclose.read(func_ir, self.params)
        stages = []
        for statement in reading.statements:
            name = self.symbol if len(reading.statements) == 1 else f"{self.symbol}.{statement.number}"
            target, rank = statement.target.param, statement.rank
            assert target is not None
            cut = [str(2 * offset) for offset in statement.selector.offsets(rank)]
            domain = wrapper.box_domain(f"{name}.domain", self.params, target, ["0"] * rank, cut)
            body = self.body(pointwise.stage_ir(func_ir, reading, statement), name)
            shapes = mathclose.conforms(statement)
            stages.append(StageIR(body, name, rank, domain, f"{name}.domain", statement.loc, shapes))
        return tuple(stages)

    def loop(self) -> tuple[StageIR, ...]:
        shared = current_session()
        shared.loop, shared.boundscheck = True, self.boundscheck is not False
        compiled = compile_ir(drop_dead(prepared_ir(self.unit, self.hidden)), self.types, self.fastmath)
        text = wrapper.loop_wrapper(self.symbol, compiled.symbol, self.params, compiled.argument_types, self.unit.loc)
        body = link(compiled.library, text, self.symbol, RUNTIME)
        self.raises = exceptions_in(body)
        return (StageIR(body, self.symbol, 0, "", "", self.unit.loc),)


def numba_type(ty: ParamType) -> Any:
    """Numba's type of a parameter. Arrays have any strides: unit strides are put in later, where they hold."""
    if isinstance(ty, ArrayType):
        return types.Array(getattr(types, "bool_" if ty.dtype == "bool" else ty.dtype), ty.rank, "A")
    return {
        "float": types.float64,
        "float64": types.float64,
        "float32": types.float32,
        "int": types.int64,
        "bool": types.boolean,
    }[ty.kind]


def _argument_names(unit: Unit, arg_types: tuple[ParamType, ...]) -> tuple[str, ...]:
    parameters = inspect.signature(unit.function).parameters
    for p in parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise IradError(f"the kernel {unit.name} takes *{p.name}", loc=unit.loc, remedy="name each parameter")
    if len(parameters) != len(arg_types):
        raise IradError(
            f"{unit.name} has {len(parameters)} parameters ({', '.join(parameters)}), {len(arg_types)} are given",
            loc=unit.loc,
            remedy="give one argument for each",
        )
    return tuple(parameters)
