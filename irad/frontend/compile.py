"""``lower``: a Python function and its argument types to LLVM text, stage by stage."""

from __future__ import annotations

import inspect
import types as pytypes
from typing import Any

from irad.errors import IradError
from irad.frontend import points, wrapper
from irad.frontend.captures import Statics, Unit, analyse, captures
from irad.frontend.numba_private import Compiled, compile_ir, compiler_lock, link, session, types
from irad.frontend.rewrite import prepared_ir
from irad.frontend.signature import ArrayType, Loc, Lowered, Options, ParamInfo, ParamType, StageIR


def lower(pyfunc: pytypes.FunctionType, arg_types: tuple[ParamType, ...], options: Any = None) -> Lowered:
    """Compile a kernel's Python function for argument types, one type a parameter, to unoptimised LLVM text.

    ``options``: anything with the attributes of :class:`Options`. Needs no source text. Raises ``IradError`` with
    the user's file and line for whatever cannot be compiled.
    """
    options = options or Options()
    with compiler_lock, session(options.fastmath):
        unit = analyse(pyfunc)
        names = _argument_names(unit, arg_types)
        hidden = captures(unit, names)
        params = tuple(
            [ParamInfo(name, ty) for name, ty in zip(names, arg_types, strict=True)]
            + [ParamInfo(c.name, c.type, c) for c in hidden.values()]
        )
        name = options.name or unit.name
        types_ = tuple(numba_type(p.type) for p in params)
        statics = Statics(unit.func_ir)
        kind = "point" if points.domain_calls(unit.func_ir, statics) else "loop"
        if kind == "point":
            stages = (_point_stage(unit, hidden, params, types_, name, options),)
        else:
            stages = (_loop_stage(unit, hidden, params, types_, name, options),)
        constants = tuple(c for u in unit.walk() for c in u.constants)
        return Lowered(name, unit.loc.file, unit.loc.line, params, stages, tuple(hidden.values()), kind, constants)


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
        )
    return tuple(parameters)


def _stage_text(compiled: Compiled, name: str, params: tuple[ParamInfo, ...], loc: Loc) -> str:
    text = wrapper.body_wrapper(name, compiled.symbol, params, compiled.argument_types, loc)
    return link(compiled.library, text, name)


def _point_stage(unit: Unit, hidden: Any, params: Any, types_: Any, name: str, options: Any) -> StageIR:
    call = points.the_domain(unit.func_ir, Statics(unit.func_ir))
    assert call is not None
    domain = compile_ir(points.domain_ir(prepared_ir(unit, hidden)), types_, options.fastmath)
    rank = len(domain.signature.return_type) // 2
    domain_name = name + ".domain"
    domain_text = link(
        domain.library,
        wrapper.domain_wrapper(domain_name, domain.symbol, params, domain.argument_types, rank, call.loc),
        domain_name,
    )
    body = compile_ir(points.body_ir(prepared_ir(unit, hidden), rank), types_, options.fastmath)
    return StageIR(_stage_text(body, name, params, unit.loc), name, rank, domain_text, domain_name, call.loc)


def _loop_stage(unit: Unit, hidden: Any, params: Any, types_: Any, name: str, options: Any) -> StageIR:
    compiled = compile_ir(prepared_ir(unit, hidden), types_, options.fastmath)
    return StageIR(_stage_text(compiled, name, params, unit.loc), name, 0, "", "", unit.loc)
