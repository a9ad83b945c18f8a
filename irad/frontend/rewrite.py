"""Numba IR to Numba IR: captured values become arguments, calls of helpers pass them on.

Also turned here: ``np.float64(x)`` into a mark that keeps the value float64 (Python scalars are weak, this is not),
and calls for which there are intrinsics, or names that Numba knows, into these.
"""

from __future__ import annotations

import inspect
import math
import operator
from typing import Any

import numpy as np

from irad.errors import IradError, NotDifferentiableError
from irad.frontend.captures import MISSING, Capture, Statics, Unit, helper_function, loc_of, statements
from irad.frontend.device import Device
from irad.frontend.helpers import CALL_HELPER, HelperRef
from irad.frontend.intrinsics import CLIP, POWER, STRONG32, STRONG64, WHERE
from irad.frontend.numba_private import ir, numba_ir

Key = tuple[int, str]

INSTEAD: dict[tuple[int, int], Any] = {
    (id(np.float64), 1): STRONG64,
    (id(np.float32), 1): STRONG32,
    (id(np.where), 3): WHERE,
    (id(np.clip), 3): CLIP,
    (id(math.fmod), 2): np.fmod,
    (id(pow), 2): POWER,
}
"""What stands for functions, by these and the number of arguments: irad's intrinsics, and what Numba knows."""

if hasattr(math, "cbrt"):  # Python 3.11
    INSTEAD[id(math.cbrt), 1] = np.cbrt


class Emitter:
    """Appends statements to a list, with fresh variables."""

    def __init__(self, scope: Any) -> None:
        self.scope = scope
        self.body: list[Any] = []
        self.count = 0

    def assign(self, value: Any, loc: Any, name: str = "") -> Any:
        """``fresh = value``; the variable."""
        self.count += 1
        var = ir.Var(self.scope, f"$irad.{name or 'v'}.{self.count}", loc)
        self.body.append(ir.Assign(value, var, loc))
        return var

    def const(self, value: Any, loc: Any) -> Any:
        return self.assign(ir.Const(value, loc), loc)

    def call(self, function: Any, args: list[Any], loc: Any) -> Any:
        """Call of a compile-time constant."""
        var = self.assign(ir.Global("irad.callee", function, loc), loc)
        return self.assign(ir.Expr.call(var, args, (), loc), loc)

    def tuple(self, items: list[Any], loc: Any) -> Any:
        return self.assign(ir.Expr.build_tuple(items, loc), loc)


def prepared_ir(unit: Unit, hidden: dict[Key, Capture]) -> Any:
    """A fresh Numba IR of ``unit`` with its captures as further arguments (in the order of ``unit.hidden``)."""
    func_ir = numba_ir(unit.function)
    statics = Statics(func_ir)
    first = func_ir.blocks[min(func_ir.blocks)]
    variables: dict[Key, Any] = {}
    prologue = []
    names = list(func_ir.arg_names)
    for key in unit.hidden:
        name = f"irad.hidden.{len(names)}"
        variables[key] = ir.Var(first.scope, "$" + name, first.loc)
        prologue.append(ir.Assign(ir.Arg(name, len(names), first.loc), variables[key], first.loc))
        names.append(name)
    emitter = Emitter(first.scope)
    for block in func_ir.blocks.values():
        emitter.body = []
        for statement in block.body:
            _rewrite(statement, unit, statics, variables, hidden, emitter)
        block.body = emitter.body
    first.body = prologue + first.body
    return func_ir.derive(func_ir.blocks, arg_count=len(names), arg_names=names, loc=func_ir.loc)


def _rewrite(
    statement: Any,
    unit: Unit,
    statics: Statics,
    variables: dict[Key, Any],
    hidden: dict[Key, Capture],
    emitter: Emitter,
) -> None:
    if isinstance(statement, ir.Assign):
        slot = statics.slot(statement.value)
        if slot is not None and slot.key in variables:
            statement = ir.Assign(variables[slot.key], statement.target, statement.loc)
        elif isinstance(statement.value, ir.Expr) and statement.value.op == "call":
            call = statement.value
            callee = statics.value(call.func)
            helper = None if callee is MISSING else helper_function(callee)
            if helper is not None:
                inner = unit.helpers[id(helper)]
                args = bind(call, inner, statics, emitter) + [variables[key] for key in inner.hidden]
                ref = emitter.assign(ir.Global("irad.helper", HelperRef(inner, hidden), call.loc), call.loc)
                bundle = emitter.tuple(args, call.loc)
                function = emitter.assign(ir.Global("irad.call", CALL_HELPER, call.loc), call.loc)
                new = ir.Expr.call(function, [ref, bundle], (), call.loc)
                statement = ir.Assign(new, statement.target, statement.loc)
            elif (own := INSTEAD.get((id(callee), len(call.args)))) is not None and not (call.kws or call.vararg):
                function = emitter.assign(ir.Global("irad.own", own, call.loc), call.loc)
                new = ir.Expr.call(function, list(call.args), (), call.loc)
                statement = ir.Assign(new, statement.target, statement.loc)
        elif isinstance(statement.value, ir.Expr) and statement.value.op in ("binop", "inplace_binop"):
            new = _constant_power(statement.value, statics, emitter)
            statement = ir.Assign(new, statement.target, statement.loc)
        elif slot is not None and isinstance(device := statics.value(statement.value), Device):
            statement = ir.Assign(
                ir.Global(slot.name, device.dispatcher, statement.loc), statement.target, statement.loc
            )
    emitter.body.append(statement)


def _constant_power(expr: Any, statics: Statics, emitter: Emitter) -> Any:
    """A power by a constant integer, as an intrinsic."""
    exponent = statics.definition(expr.rhs)
    negative = isinstance(exponent, ir.Expr) and exponent.op == "unary" and exponent.fn is operator.neg
    constant = statics.definition(exponent.value) if negative else exponent
    if expr.fn not in (operator.pow, operator.ipow) or not (
        isinstance(constant, ir.Const) and type(constant.value) is int
    ):
        return expr
    function = emitter.assign(ir.Global("irad.power", POWER, expr.loc), expr.loc)
    number = emitter.const(-constant.value if negative else constant.value, expr.loc)
    return ir.Expr.call(function, [expr.lhs, number], (), expr.loc)


def drop_dead(func_ir: Any) -> Any:
    """Remove unused constants and attributes of constants (``irad.interior`` once its call is gone): Numba would
    refuse to type them. In place; returns ``func_ir``."""
    while True:
        used: set[str] = set()
        for _, statement in statements(func_ir):
            if isinstance(statement, ir.Assign):
                value = statement.value
                used.update(v.name for v in ([value] if isinstance(value, ir.Var) else _operands(value)))
            else:
                used.update(v.name for v in statement.list_vars())
        changed = False
        for block in func_ir.blocks.values():
            kept = [s for s in block.body if not (_is_static(s) and s.target.name not in used)]
            changed |= len(kept) != len(block.body)
            block.body = kept
        if not changed:
            return func_ir


def _operands(value: Any) -> list[Any]:
    return list(value.list_vars()) if isinstance(value, ir.Expr) else []


def _is_static(statement: Any) -> bool:
    if not isinstance(statement, ir.Assign):
        return False
    value = statement.value
    return isinstance(value, (ir.Global, ir.FreeVar, ir.Const)) or (
        isinstance(value, ir.Expr) and value.op in ("getattr", "make_function", "build_tuple")
    )


def bind(call: Any, helper: Unit, statics: Statics, emitter: Emitter) -> list[Any]:
    """The arguments of a call of a helper, positional and complete."""
    if call.vararg is not None:
        raise NotDifferentiableError(
            f"{helper.name} is called with *arguments", loc=loc_of(call), remedy="write the arguments out"
        )
    signature = inspect.signature(helper.function)
    try:
        bound = signature.bind(*call.args, **dict(call.kws))
    except TypeError as e:
        raise IradError(f"{helper.name}: {e}", loc=loc_of(call), remedy=f"it is {helper.name}{signature}") from None
    result = []
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise NotDifferentiableError(
                f"the helper {helper.name} takes *{name}", loc=helper.loc, remedy="name each of its parameters"
            )
        if name in bound.arguments:
            result.append(bound.arguments[name])
        else:
            result.append(emitter.const(parameter.default, call.loc))
    return result
