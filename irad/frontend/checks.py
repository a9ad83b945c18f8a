"""What a kernel cannot do, found in its Numba IR before anything is compiled: one function a refusal."""

from __future__ import annotations

import builtins
import random
import types as pytypes
from typing import Any

import numpy as np

from irad.domains import atomic_add
from irad.errors import IradError, NotDifferentiableError
from irad.fd import Operator
from irad.frontend import mathclose, points
from irad.frontend.captures import MISSING, Statics, Unit, analyse, helper_function, loc_of, statements
from irad.frontend.numba_private import control_flow, ir, resolvable

INPUT_OUTPUT = frozenset(map(id, (builtins.print, builtins.open, builtins.input)))
RANDOM_MODULES = ("random", "numpy.random", "secrets")
RANDOM_SOURCES = (np.random.Generator, np.random.RandomState, random.Random)
RAISING = (ir.Raise, ir.StaticRaise, ir.DynamicRaise, ir.TryRaise, ir.StaticTryRaise, ir.DynamicTryRaise)


def is_kernel(value: object) -> bool:
    """Whether ``value`` is a kernel made by ``@irad.kernel``."""
    return getattr(value, "__irad_kernel__", False) is True


def kind_of(unit: Unit) -> str:
    """``"point"`` (names a domain), ``"math"`` (statements over ``irad.fd``) or ``"loop"``. Refuses a mixture."""
    statics = Statics(unit.func_ir)
    domain = points.domain_calls(unit.func_ir, statics)
    operators = mathclose.uses_operators(unit.func_ir, statics)
    if domain and operators:
        raise NotDifferentiableError(
            "a kernel that names a launch domain uses an irad.fd operator",
            loc=operators,
            remedy="write entries out (T[i+1, j] - T[i, j]), or name no domain and assign through selectors",
        )
    return "point" if domain else "math" if operators else "loop"


def check(unit: Unit, kind: str) -> None:
    """Refuse what the kernel and its helpers cannot do. Raises ``IradError`` with the user's line."""
    for each in unit.walk():
        statics = Statics(each.func_ir)
        no_generator(each)
        no_with(each)
        for _, statement in statements(each.func_ir):
            value = getattr(statement, "value", None)
            if isinstance(statement, ir.Assign):
                static = statics.value(value)
                no_try(statement, static)
                no_random(statement, static)
                no_atomics(statement, static)
                if isinstance(value, ir.Expr) and value.op == "call":
                    callee = statics.value(value.func)
                    no_output(statement, callee)
                    no_kernel(statement, callee, kind)
                    no_plain_function(statement, callee)
            if kind != "loop":
                no_raise(statement)
            if each is unit:
                no_result(statement, statics, each)
            else:
                no_words_in_helper(statement, statics, each)
                if kind == "math":
                    no_assignment_in_helper(statement, each)
        no_helper_as_value(each, statics)
        no_unassigned(each)


def no_generator(unit: Unit) -> None:
    if unit.func_ir.is_generator:
        raise NotDifferentiableError(f"{unit.name} is a generator", loc=unit.loc, remedy="write a loop without yield")


def no_with(unit: Unit) -> None:
    for _, statement in statements(unit.func_ir):
        if isinstance(statement, ir.EnterWith):
            raise NotDifferentiableError(
                "a with block (object mode) cannot be compiled", loc=loc_of(statement), remedy="do it outside"
            )


def no_try(statement: Any, static: Any) -> None:
    if getattr(static, "__module__", None) == "numba.core.unsafe.eh":
        raise NotDifferentiableError(
            "try and except cannot be compiled", loc=loc_of(statement), remedy="test for the case with if"
        )


def no_raise(statement: Any) -> None:
    if isinstance(statement, RAISING):
        raise NotDifferentiableError(
            "a kernel that runs its points concurrently cannot raise (raise, assert)",
            loc=loc_of(statement),
            remedy="check before the launch, or write a marker such as nan",
        )


def no_output(statement: Any, callee: Any) -> None:
    if id(callee) in INPUT_OUTPUT:
        raise NotDifferentiableError(
            f"{callee.__name__} cannot be used in a kernel",
            loc=loc_of(statement),
            remedy="write into an array and print that after the launch",
        )


def no_random(statement: Any, static: Any) -> None:
    module = getattr(static, "__module__", None) or ""
    own = getattr(static, "__self__", None)
    known = module in RANDOM_MODULES or module.startswith("numpy.random")
    if isinstance(static, pytypes.ModuleType) or static is MISSING or helper_function(static) is not None:
        return
    if isinstance(static, RANDOM_SOURCES) or isinstance(own, RANDOM_SOURCES) or (callable(static) and known):
        raise NotDifferentiableError(
            "random numbers in a kernel have no derivative",
            loc=loc_of(statement),
            remedy="draw them before the launch and pass them as an array",
        )


def no_atomics(statement: Any, static: Any) -> None:
    if static is atomic_add:
        raise NotDifferentiableError(
            "irad.atomic_add is not available in this version",
            loc=loc_of(statement),
            remedy="let each point gather what it needs: A[i] = f(B[i-1], B[i], B[i+1])",
        )


def no_kernel(statement: Any, callee: Any, kind: str) -> None:
    if is_kernel(callee):
        name = getattr(callee, "__name__", "a kernel")
        where = "a point kernel" if kind == "point" else "a kernel"
        raise NotDifferentiableError(
            f"{where} calls the kernel {name}",
            loc=loc_of(statement),
            remedy=f"make what they share an @irad.device function, or launch {name} from Python",
        )


def no_plain_function(statement: Any, callee: Any) -> None:
    """A function that is no helper: unknown to Numba, or known through an overload that would freeze its captures."""
    if not isinstance(callee, pytypes.FunctionType) or getattr(callee, "__module__", "").split(".")[0] == "numba":
        return
    known = callee.__module__.split(".")[0] in ("numpy", "scipy", "math") or resolvable(callee)
    if id(callee) in points.WORDS or (known and not _captures(callee)):
        return
    raise NotDifferentiableError(
        f"{callee.__name__} is a plain Python function",
        loc=loc_of(statement),
        remedy=f"decorate {callee.__name__} with @irad.device",
    )


def _captures(function: pytypes.FunctionType) -> bool:
    if function.__module__.split(".")[0] in ("numpy", "scipy"):
        return False
    try:
        return bool(analyse(function).hidden)
    except Exception:  # whatever Numba cannot read, it does not compile either
        return False


def no_result(statement: Any, statics: Statics, unit: Unit) -> None:
    if not isinstance(statement, ir.Return):
        return
    node = statics.definition(statement.value)
    while isinstance(node, ir.Expr) and node.op == "cast":
        node = statics.definition(node.value)
    if not (isinstance(node, ir.Const) and node.value is None):
        raise NotDifferentiableError(
            f"the kernel {unit.name} returns a value",
            loc=loc_of(statement),
            remedy="write the result into an array argument",
        )


def no_words_in_helper(statement: Any, statics: Statics, unit: Unit) -> None:
    if not isinstance(statement, ir.Assign):
        return
    static = statics.value(statement.value)
    if isinstance(static, Operator) or id(static) in points.WORDS:
        what = f"the operator {static.name}" if isinstance(static, Operator) else "a launch domain"
        raise NotDifferentiableError(
            f"the helper {unit.name} uses {what}",
            loc=loc_of(statement),
            remedy="use it in the kernel itself and pass values to the helper",
        )


def no_assignment_in_helper(statement: Any, unit: Unit) -> None:
    if isinstance(statement, ir.SetItem):
        raise NotDifferentiableError(
            f"the helper {unit.name} assigns array entries in a kernel of irad.fd statements",
            loc=loc_of(statement),
            remedy="let it return a value and assign that through a selector",
        )


def no_helper_as_value(unit: Unit, statics: Statics) -> None:
    """A helper that is passed about rather than called would keep the arrays it captures as they are now."""
    for _, statement in statements(unit.func_ir):
        for var in statement.list_vars():
            static = statics.value(var)
            function = None if static is MISSING else helper_function(static)
            if function is None or not unit.helpers[id(function)].hidden:
                continue
            value: Any = getattr(statement, "value", None)
            called = isinstance(value, ir.Expr) and value.op == "call" and value.func.name == var.name
            passed = called and any(v.name == var.name for v in [*value.args, *dict(value.kws).values()])
            defined = isinstance(statement, ir.Assign) and (
                isinstance(value, (ir.Var, ir.Global, ir.FreeVar))
                or (isinstance(value, ir.Expr) and value.op == "getattr")
            )
            if (called and not passed) or defined:
                continue
            slot, _ = next(iter(unit.helpers[id(function)].hidden.values()))
            raise IradError(
                f"{function.__name__}, which captures {slot.name}, is used as a value",
                loc=loc_of(statement),
                remedy=f"call {function.__name__} by its name",
            )


def no_unassigned(unit: Unit) -> None:
    """A variable that some way leaves unassigned: Python would raise there, compiled code would read a zero.

    Loops count as run at least once.
    """
    blocks, graph = unit.func_ir.blocks, control_flow(unit.func_ir)
    entry = min(blocks)
    made = {label: {s.target.name for s in block.body if isinstance(s, ir.Assign)} for label, block in blocks.items()}
    everything = set().union(*made.values())
    latches = {
        loop.header: [label for label, _ in graph.predecessors(loop.header) if label in loop.body]
        for loop in graph.loops().values()
    }
    bodies = {loop.header: loop.body for loop in graph.loops().values()}
    after = {label: set(everything) for label in blocks}

    def before(label: int) -> set[str]:
        if label == entry:
            return set()
        ways = []
        for source, _ in graph.predecessors(label):
            way = set(after[source])
            if source in latches and label not in bodies[source]:
                way |= set.intersection(*(after[latch] for latch in latches[source]))
            ways.append(way)
        return set.intersection(*ways) if ways else set(everything)

    changed = True
    while changed:
        changed = False
        for label in blocks:
            new = before(label) | made[label]
            changed |= new != after[label]
            after[label] = new
    for label in sorted(blocks):
        assigned = before(label)
        for statement in blocks[label].body:
            target = statement.target.name if isinstance(statement, ir.Assign) else None
            for var in statement.list_vars():
                name = var.name
                if name in everything and name not in assigned and name != target and not name.startswith("$"):
                    raise NotDifferentiableError(
                        f"{name.split('.')[0]} may be used before it is assigned",
                        loc=loc_of(statement),
                        remedy=f"assign {name.split('.')[0]} on every way to this line",
                    )
            if target is not None:
                assigned.add(target)
