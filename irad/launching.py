"""One launch, from values to a filled block: which variant fits, what forbids it, what runs.

Everything that may refuse a launch happens here, before anything is written: unusable arrays, overlap, accesses that
leave their arrays. A launch in which an index turns out to be negative is compiled again with that index wrapping.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from irad.errors import DomainError, IradError, RaceError
from irad.launch.arrays import Array, usable
from irad.launch.block import fill
from irad.launch.bound import Bound, bind
from irad.launch.executable import Executable, Plan
from irad.launch.overlap import check_aliases
from irad.launch.tables import Words
from irad.launch.variant import choose
from irad.loops import LoopBound
from irad.passes.ir.model import ArrayParam, Param
from irad.passes.layout import MAX_TILES, Program, Variant
from irad.specialise import Request, Specialisation

_ORDER = ("shapes", "bounds", "collides", "wraps")
"""What explains most is said first."""


@dataclass
class Operands:
    """Everything that a launch works on, by name of the parameter (``saved``: by alias).

    ``values`` holds all parameters, captured ones included; ``shadows`` the shadows or tangents of arrays; ``cells``
    float64 arrays of one element for cotangents of scalars; ``tangents`` those of scalars.
    """

    values: Mapping[str, Any]
    shadows: Mapping[str, Array] = field(default_factory=dict)
    cells: Mapping[str, Array] = field(default_factory=dict)
    tangents: Mapping[str, float] = field(default_factory=dict)
    saved: Mapping[str, Array] = field(default_factory=dict)


@dataclass
class Launch:
    """A launch that passed all checks."""

    executable: Executable
    variant: Variant
    block: Words
    plan: Plan
    arrays: dict[str, Array]
    scalars: dict[str, str]
    loop: Specialisation | None = None

    def bind(self) -> Bound:
        """A callable that repeats the launch; of a loop kernel, it raises what the kernel raises."""
        bound = bind(self.executable, self.block, self.plan, self.arrays, self.scalars)
        returns = self.loop is not None and self.executable.layout.size > len(self.executable.layout.words)
        return cast("Bound", LoopBound(self.loop, bound)) if self.loop is not None and returns else bound

    def run(self) -> None:
        """Run it once."""
        self.bind()()


def prepare(spec: Specialisation, request: Request, operands: Operands) -> Launch:
    """Choose a variant, fill a block and ask the compiled plan.

    Raises ``DomainError`` where an access leaves its array. Arrays have been checked by :func:`check_arrays`.
    """
    arrays, scalars = _by_word(spec.parts(request)[1], operands)
    unit, reverse = choose(arrays)
    _stand_in(spec.sample(request, Variant(unit, reverse)), arrays)
    arrays.update({f"{name}'": cell for name, cell in operands.cells.items()})
    wraps: frozenset[str] = frozenset()
    while True:
        variant = Variant(unit, reverse, wraps)
        program = spec.program(request, variant)
        executable = spec.executable(request, variant)
        if "partials.data" in program.block:
            arrays["partials"] = np.empty(MAX_TILES * program.partials)
        block = fill(program.block, arrays, scalars)
        plan = executable.plan(block)
        failed = sorted((program.checks[k] for k in plan.failed), key=lambda c: _ORDER.index(c.kind))
        for check in failed:
            if check.kind != "wraps":
                error = RaceError if check.kind == "collides" else DomainError
                raise error(check.message, loc=check.loc, remedy=check.remedy)
        more = wraps.union(c.key for c in failed)
        if not failed:
            types = {name: type for name, (type, _) in scalars.items()}
            return Launch(executable, variant, block, plan, arrays, types, spec if spec.is_loop else None)
        if more == wraps:
            raise IradError(f"irad made a launch that refuses itself: {failed[0].message}", loc=failed[0].loc)
        wraps = more


def sample(spec: Specialisation, request: Request, values: Mapping[str, Any]) -> Program:
    """A program for the request, made for shadows that lie like their arrays: what is known before they exist."""
    shadows = {n: values[n] for n in request.active if spec.by_name[n].is_array}
    unit, reverse = choose(_by_word(spec.params, Operands(values, shadows))[0])
    return spec.sample(request, Variant(unit, reverse))


def _stand_in(program: Program, arrays: dict[str, Array]) -> None:
    """Copies that the block has words for and the launch does not read: any array of that shape will do."""
    for word in program.block.words:
        name, dot, _ = word.rpartition(".data")
        if dot and "@" in name and name not in arrays:
            arrays[name] = arrays[name.split("@")[0]]


def _by_word(
    params: Iterable[Param], operands: Operands
) -> tuple[dict[str, Array], dict[str, tuple[str, float | int | bool]]]:
    """Arrays by the prefix of their words, scalars with their LLVM types."""
    arrays: dict[str, Array] = {}
    scalars: dict[str, tuple[str, float | int | bool]] = {}
    for p in params:
        if isinstance(p, ArrayParam):
            arrays[p.name] = operands.values[p.name]
            if p.name in operands.shadows:
                arrays[f"{p.name}'"] = operands.shadows[p.name]
        else:
            scalars[p.name] = (p.type, operands.values[p.name])
            if p.name in operands.tangents:
                scalars[f"{p.name}.tangent"] = (p.type, operands.tangents[p.name])
    arrays.update(operands.saved)
    return arrays, scalars


def check_arrays(arrays: Mapping[str, Array], written: Collection[str], loc: object) -> None:
    """Raise ``IradError`` for an array that compiled code cannot take, ``AliasError`` for overlap.

    ``arrays``: by name; ``"T'"`` is the shadow of ``"T"`` and counts as written, as do those in ``written``. What is
    written must be writeable, without a zero stride, and apart from all others.
    """
    for name, a in arrays.items():
        usable(name, a, written=name in written or name.endswith("'"), loc=loc)
    check_aliases(arrays, written, loc)
