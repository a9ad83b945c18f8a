"""What a kernel and its helpers take from around them: hidden arguments, helpers, constants.

Arrays, floats, integers and booleans found in module globals, closure cells and attributes of modules become hidden
arguments that are looked up again at each launch. Helpers are followed, and what they capture is passed on to them.
Everything else (functions, tuples, modules, ``np.pi`` and its like) is a constant of the compiled kernel.
"""

from __future__ import annotations

import types as pytypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from irad.errors import IradError, NotDifferentiableError
from irad.frontend.numba_private import Dispatcher, ir, numba_ir
from irad.frontend.signature import Loc, ParamType, is_array, is_scalar, typeof

CONSTANT_MODULES = frozenset({"math", "cmath", "numpy", "numba", "scipy", "irad"})
"""Libraries whose numbers (``math.pi``) never change."""

MISSING = object()
"""The answer of :meth:`Statics.value` where a variable is no compile-time constant."""


@dataclass(frozen=True, eq=False)
class Slot:
    """A place outside a function where a value is found: a namespace and a name, or a closure cell."""

    name: str
    holder: Any

    @property
    def key(self) -> tuple[int, str]:
        """Equal for equal places."""
        cell = isinstance(self.holder, pytypes.CellType)
        return (id(self.holder), "" if cell else self.name)

    def __repr__(self) -> str:
        return f"<{type(self.holder).__name__} slot {self.name}>"

    def get(self) -> Any:
        """The value that is there now."""
        try:
            if isinstance(self.holder, pytypes.CellType):
                return self.holder.cell_contents
            if isinstance(self.holder, dict):
                return self.holder[self.name]
            return getattr(self.holder, self.name)
        except (KeyError, AttributeError, ValueError):
            raise IradError(
                f"the captured name {self.name} is no longer defined", remedy=f"define {self.name} before the launch"
            ) from None


@dataclass(frozen=True)
class Capture:
    """A hidden argument: its name among the kernel's parameters, its type, and where its value is found."""

    name: str
    type: ParamType
    slot: Slot = field(compare=False)

    def get(self) -> Any:
        """The value at this moment. Raises ``IradError`` where the name is gone."""
        return self.slot.get()

    def fresh(self) -> bool:
        """Whether the value now has the type that was compiled for."""
        try:
            return typeof(self.get()) == self.type
        except IradError:
            return False


@dataclass(frozen=True)
class Constant:
    """A captured thing that was compiled in."""

    name: str
    value: Any
    slot: Slot

    def fresh(self) -> bool:
        """Whether the name still means the same object."""
        try:
            return self.slot.get() is self.value
        except IradError:
            return False


def loc_of(node: Any) -> Loc:
    """The user's place of a piece of Numba IR."""
    return Loc(node.loc.filename, node.loc.line)


class Statics:
    """Which variables of a Numba IR are known at compile time, and where captured values come from."""

    def __init__(self, func_ir: Any) -> None:
        self.function = func_ir.func_id.func
        self.definitions: dict[str, list[Any]] = {}
        for _, statement in statements(func_ir):
            if isinstance(statement, ir.Assign):
                self.definitions.setdefault(statement.target.name, []).append(statement.value)

    def definition(self, var: Any) -> Any:
        """What a variable was assigned, through copies; ``None`` where that is not unique."""
        while isinstance(var, ir.Var):
            found = self.definitions.get(var.name, [])
            if len(found) != 1:
                return None
            var = found[0]
        return var

    def value(self, var: Any) -> Any:
        """The compile-time value of a variable or right-hand side, or ``MISSING``."""
        node = self.definition(var)
        if isinstance(node, (ir.Global, ir.FreeVar, ir.Const)):
            return node.value
        if isinstance(node, ir.Expr) and node.op == "getattr":
            base = self.value(node.value)
            if isinstance(base, pytypes.ModuleType):
                return getattr(base, node.attr, MISSING)
        return MISSING

    def slot(self, node: Any) -> Slot | None:
        """Where the value of a right-hand side is found, if outside the function."""
        if isinstance(node, ir.Global):
            namespace = self.function.__globals__
            return Slot(node.name, namespace) if node.name in namespace else None
        if isinstance(node, ir.FreeVar):
            return Slot(node.name, self.function.__closure__[self.function.__code__.co_freevars.index(node.name)])
        if isinstance(node, ir.Expr) and node.op == "getattr":
            base = self.value(node.value)
            if isinstance(base, pytypes.ModuleType) and hasattr(base, node.attr):
                return Slot(node.attr, base)
        return None


def statements(func_ir: Any) -> Iterator[tuple[Any, Any]]:
    """Every (block, statement) of a Numba IR, in order of the source."""
    for label in sorted(func_ir.blocks):
        block = func_ir.blocks[label]
        for statement in list(block.body):
            yield block, statement


def is_hidden(slot: Slot, value: object) -> bool:
    """Whether a captured value becomes an argument (else it is a constant)."""
    if is_array(value):
        return True
    return is_scalar(value) and not _in_library(slot)


def _in_library(slot: Slot) -> bool:
    """Whether a value is an attribute of a library, which never changes."""
    return isinstance(slot.holder, pytypes.ModuleType) and slot.holder.__name__.split(".")[0] in CONSTANT_MODULES


def helper_function(value: object) -> pytypes.FunctionType | None:
    """The Python function of a helper (``@irad.device``, ``@numba.njit``), or ``None`` where ``value`` is none."""
    if getattr(value, "__irad_device__", False) or isinstance(value, Dispatcher):
        return value.py_func  # type: ignore[attr-defined, no-any-return]
    return None


@dataclass(eq=False)
class Unit:
    """A kernel or a helper with everything it captures. ``hidden`` are its hidden arguments, its helpers' included."""

    function: pytypes.FunctionType
    options: dict[str, Any]
    hidden: dict[tuple[int, str], tuple[Slot, str]] = field(default_factory=dict)
    helpers: dict[int, Unit] = field(default_factory=dict)
    constants: list[Constant] = field(default_factory=list)
    func_ir: Any = None

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def loc(self) -> Loc:
        code = self.function.__code__
        return Loc(code.co_filename, code.co_firstlineno)

    def walk(self) -> Iterator[Unit]:
        """This unit and all helpers under it, each once."""
        seen: set[int] = set()
        pending = [self]
        while pending:
            unit = pending.pop(0)
            if id(unit) not in seen:
                seen.add(id(unit))
                yield unit
                pending.extend(unit.helpers.values())


def analyse(function: pytypes.FunctionType) -> Unit:
    """Follow a kernel through its helpers and collect what each captures.

    Raises ``NotDifferentiableError`` for recursion and for captured containers of arrays.
    """
    return _analyse(function, {}, [], {})


def _analyse(
    function: pytypes.FunctionType,
    options: dict[str, Any],
    stack: list[pytypes.FunctionType],
    known: dict[int, Unit],
) -> Unit:
    if id(function) in known:
        return known[id(function)]
    unit = Unit(function, options, func_ir=numba_ir(function))
    statics = Statics(unit.func_ir)
    own: dict[tuple[int, str], tuple[Slot, str]] = {}
    below: dict[tuple[int, str], tuple[Slot, str]] = {}
    for _, statement in statements(unit.func_ir):
        if not isinstance(statement, ir.Assign):
            continue
        _check_attribute(statement, statics)
        slot = statics.slot(statement.value)
        if slot is None:
            continue
        value = statics.value(statement.value)
        if is_hidden(slot, value):
            own.setdefault(slot.key, (slot, unit.name))
            continue
        _check_container(slot.name, value, statement)
        if not _in_library(slot) and not isinstance(value, pytypes.ModuleType):
            unit.constants.append(Constant(slot.name, value, slot))
        inner = helper_function(value)
        if inner is None:
            continue
        if inner is function or inner in stack:
            raise NotDifferentiableError(
                f"{inner.__name__} calls itself", loc=loc_of(statement), remedy="write the recursion as a loop"
            )
        helper = _analyse(inner, getattr(value, "targetoptions", {}), [*stack, function], known)
        unit.helpers[id(inner)] = helper
        below.update({key: found for key, found in helper.hidden.items() if key not in below})
    unit.hidden = {**own, **{key: found for key, found in below.items() if key not in own}}
    known[id(function)] = unit
    return unit


def _check_attribute(statement: Any, statics: Statics) -> None:
    """Numba stumbles over an attribute that a module does not have."""
    value = statement.value
    if isinstance(value, ir.Expr) and value.op == "getattr":
        base = statics.value(value.value)
        if isinstance(base, pytypes.ModuleType) and not hasattr(base, value.attr):
            raise IradError(
                f"the module {base.__name__} has no {value.attr}",
                loc=loc_of(statement),
                remedy=f"see dir({base.__name__})",
            )


def _check_container(name: str, value: object, statement: Any) -> None:
    """Arrays inside a captured tuple would be frozen: a change would not be seen."""
    if _holds_array(value):
        raise NotDifferentiableError(
            f"{name} is a tuple that holds arrays, which a kernel cannot capture",
            loc=loc_of(statement),
            remedy="give each array a name of its own, or pass it as an argument",
        )


def _holds_array(value: object) -> bool:
    return isinstance(value, tuple) and any(is_array(v) or _holds_array(v) for v in value)


def captures(unit: Unit, arguments: tuple[str, ...]) -> dict[tuple[int, str], Capture]:
    """The hidden arguments of a kernel under unique names: ``Ci``, or ``helper.Ci`` where ``Ci`` is ambiguous."""
    plain = [slot.name for slot, _ in unit.hidden.values()]
    taken = set(arguments)
    result = {}
    for key, (slot, owner) in unit.hidden.items():
        name = slot.name
        if plain.count(name) > 1 or name in arguments:
            name = f"{owner}.{slot.name}"
        base, count = name, 1
        while name in taken:
            count += 1
            name = f"{base}#{count}"
        taken.add(name)
        try:
            result[key] = Capture(name, typeof(slot.get()), slot)
        except IradError as e:
            raise type(e)(f"captured {slot.name}: {e.reason}", loc=unit.loc, remedy=e.remedy) from None
    return result
