"""What a pass is, and the table of all passes.

A pass takes one of three things and gives one: ``text`` (an LLVM module), ``function`` (of the small IR), or ``point``
(a :class:`~irad.passes.ir.model.PointFn`). It leaves its input as it is. Its code is named by module and function and
imported when it runs, so that this table depends on no pass.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

from irad.errors import IradError

from .ir.model import Function, Param, PointFn

Value = str | Function | PointFn
KINDS: dict[str, type] = {"text": str, "function": Function, "point": PointFn}


@dataclass(frozen=True)
class Options:
    """What passes need to know beside the code itself.

    ``name``: the function. ``weak``: float parameters that are Python numbers. ``active``: parameters that carry
    derivatives. ``rank`` and ``params``: of the point function.
    """

    name: str = ""
    weak: frozenset[str] = frozenset()
    active: frozenset[str] = frozenset()
    rank: int = 0
    params: tuple[Param, ...] = ()


@dataclass(frozen=True)
class Pass:
    """One pass: ``code`` is ``module:function`` of this package, called with the value and with ``needs`` of the
    options. Code that gives ``None`` only checks, or changes a copy in place (``in_place``)."""

    name: str
    takes: str
    gives: str
    code: str
    does: str = field(compare=False, default="")
    needs: tuple[str, ...] = ()
    in_place: bool = False

    def run(self, value: Value, options: Options = Options()) -> Value:
        """Apply the pass. ``IradError`` where the value is not what it takes."""
        if not isinstance(value, KINDS[self.takes]):
            raise IradError(f"the pass {self.name} takes a {self.takes}, not a {type(value).__name__}")
        if self.in_place:
            assert isinstance(value, Function)
            value = value.clone()[0]
        module, function = self.code.split(":")
        found: Any = getattr(importlib.import_module(module, __package__), function)
        result = found(value, *(getattr(options, n) for n in self.needs))
        return value if result is None else result


PASSES: dict[str, Pass] = {
    p.name: p
    for p in (
        Pass("guard", "text", "text", ".guard:guard_values", "hide comparisons and functions from LLVM"),
        Pass("inline", "text", "text", ".canonical:inline_keeping_branches", "inline everything", ("name",)),
        Pass("guard-memory", "text", "text", ".guard:guard_memory", "hide array accesses from LLVM"),
        Pass("canonical", "text", "text", ".canonical:optimise", "LLVM's O2 without vectorising"),
        Pass("unroll", "text", "text", ".unroll:unroll", "unroll loops of known length", ("name",)),
        Pass("read", "text", "function", ".ir.read:read_function", "text to the small IR", ("name",)),
        Pass("weak", "function", "function", ".weak:apply", "float32 with Python scalars", ("weak",)),
        Pass("decisions", "function", "function", ".decisions:exact_decisions", "no fast-math in decisions"),
        Pass("tidy", "function", "function", ".tidy:tidy", "clean up the flow of control"),
        Pass("dce", "function", "function", ".simplify:dce", "drop what nothing uses", in_place=True),
        Pass("affine", "function", "point", ".affine:to_point", "addresses to accesses", ("rank", "params")),
        Pass("race", "point", "point", ".race:check", "refuse points that conflict"),
        Pass("reverse", "point", "point", ".reverse:adjoint", "the adjoint, as it scatters", ("active",)),
        Pass("forward", "point", "point", ".forward:tangent", "primal and tangent together", ("active",)),
    )
}
"""Every pass by name. The owner of a new one adds a row."""
