"""Point kernels: the launch domain, and the point's index.

From one Numba IR come two: the *domain function*, cut off where the kernel names its domain, which returns the bounds;
and the *body*, in which naming the domain gives the index marks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irad.domains import domain, interior, points
from irad.errors import IradError
from irad.frontend.captures import Statics, loc_of, statements
from irad.frontend.intrinsics import DOMAIN_BOUNDS, INDEX, INTERIOR_BOUNDS
from irad.frontend.numba_private import ir
from irad.frontend.rewrite import Emitter, drop_dead
from irad.frontend.signature import MAX_RANK, ArrayType, Loc, ParamInfo, ScalarType

WORDS = {id(interior): "interior", id(points): "points", id(domain): "domain"}


@dataclass(frozen=True)
class DomainCall:
    """Where a Numba IR names its domain: the statement, the block's label, the word."""

    statement: Any
    label: int
    word: str

    @property
    def loc(self) -> Loc:
        return loc_of(self.statement)


def domain_calls(func_ir: Any, statics: Statics) -> list[DomainCall]:
    """All calls of ``irad.interior``, ``irad.points`` and ``irad.domain``."""
    found = []
    for label in sorted(func_ir.blocks):
        for statement in func_ir.blocks[label].body:
            value = getattr(statement, "value", None)
            if isinstance(statement, ir.Assign) and isinstance(value, ir.Expr) and value.op == "call":
                word = WORDS.get(id(statics.value(value.func)))
                if word:
                    found.append(DomainCall(statement, label, word))
    return found


def the_domain(func_ir: Any, statics: Statics) -> DomainCall | None:
    """The one call that names the domain, or ``None`` for a kernel without.

    Refuses a second one, one in a loop, and one that some way through the kernel does not reach.
    """
    calls = domain_calls(func_ir, statics)
    if not calls:
        return None
    if len(calls) > 1:
        raise IradError(
            "a kernel has one launch domain, this is a second one",
            loc=calls[1].loc,
            remedy="write a kernel for each domain, or irad.fd statements, which have a domain each",
        )
    call = calls[0]
    if call.label in _reachable(func_ir, func_ir.blocks[call.label].terminator.get_targets()):
        raise IradError("the launch domain is named in a loop", loc=call.loc, remedy="name it first, before the loop")
    for label in _reachable(func_ir, [min(func_ir.blocks)], stop=call.label):
        block = func_ir.blocks[label]
        before = block.body[: block.body.index(call.statement)] if label == call.label else block.body
        for statement in before:
            if isinstance(statement, ir.Return):
                raise IradError(
                    "the launch domain is not named on every way through the kernel",
                    loc=call.loc,
                    remedy="name it first, before any return",
                )
            if isinstance(statement, ir.SetItem):
                raise IradError(
                    "an entry is assigned before the launch domain is named",
                    loc=loc_of(statement),
                    remedy=f"name the domain (line {call.loc.line}) first",
                )
    return call


def _reachable(func_ir: Any, start: list[int], stop: int | None = None) -> set[int]:
    seen: set[int] = set()
    pending = list(start)
    while pending:
        label = pending.pop()
        if label not in seen:
            seen.add(label)
            if label != stop:
                pending.extend(func_ir.blocks[label].terminator.get_targets())
    return seen


@dataclass(frozen=True)
class Box:
    """A domain ``width <= index < extent of array - width`` on each axis; ``width`` is an integer or a parameter."""

    array: ParamInfo
    width: str
    call: DomainCall

    @property
    def rank(self) -> int:
        assert isinstance(self.array.type, ArrayType)
        return self.array.type.rank


def simple_box(func_ir: Any, params: tuple[ParamInfo, ...]) -> Box | None:
    """The domain, where it is ``irad.interior`` or ``irad.points`` of a parameter by a constant or integer parameter:
    the usual case, which needs no compilation."""
    statics = Statics(func_ir)
    call = the_domain(func_ir, statics)
    assert call is not None
    if call.word == "domain":
        return None
    given = _arguments(call)
    array = statics.definition(given["A"])
    if not (isinstance(array, ir.Arg) and isinstance(params[array.index].type, ArrayType)):
        return None
    width = "1" if call.word == "interior" else "0"
    if "width" in given:
        node = statics.definition(given["width"])
        if isinstance(node, ir.Arg) and params[node.index].type == ScalarType("int"):
            width = params[node.index].name
        elif isinstance(node, ir.Const) and type(node.value) is int:
            width = str(node.value)
        else:
            return None
    return Box(params[array.index], width, call)


def domain_ir(func_ir: Any) -> tuple[Any, DomainCall]:
    """The domain function: consumes a prepared Numba IR, returns one that gives ``(lo0, hi0, lo1, hi1, …)``, and
    where the domain is named."""
    call = the_domain(func_ir, Statics(func_ir))
    assert call is not None
    block = func_ir.blocks[call.label]
    kept = block.body[: block.body.index(call.statement)]
    loc = call.statement.loc
    emitter = Emitter(block.scope)
    emitter.body = kept
    bounds = _bounds(call, emitter)
    emitter.body.append(ir.Return(emitter.assign(ir.Expr.cast(bounds, loc), loc), loc))
    block.body = emitter.body
    kept_blocks = {label: func_ir.blocks[label] for label in _reachable(func_ir, [min(func_ir.blocks)])}
    return drop_dead(func_ir.derive(kept_blocks, loc=func_ir.loc)), call


def _bounds(call: DomainCall, emitter: Emitter) -> Any:
    expr, loc = call.statement.value, call.statement.loc
    if call.word == "domain":
        if expr.vararg is not None or expr.kws or not 1 <= len(expr.args) <= MAX_RANK:
            raise IradError(
                f"irad.domain takes 1 to {MAX_RANK} pairs (lo, hi), one an axis",
                loc=call.loc,
                remedy="as in irad.domain((1, n), (0, m))",
            )
        return emitter.call(DOMAIN_BOUNDS, [emitter.tuple(list(expr.args), loc)], loc)
    given = _arguments(call)
    width = given.get("width") or emitter.const(1 if call.word == "interior" else 0, loc)
    return emitter.call(INTERIOR_BOUNDS, [given["A"], width], loc)


def _arguments(call: DomainCall) -> dict[str, Any]:
    """The arguments of ``irad.interior`` or ``irad.points`` by name."""
    expr = call.statement.value
    names = ["A", "width"] if call.word == "interior" else ["A"]
    given = dict(zip(names, expr.args, strict=False))
    keywords = dict(expr.kws)
    clash = set(keywords) - set(names) or set(keywords) & set(given)
    if expr.vararg is not None or len(expr.args) > len(names) or clash or "A" not in {*given, *keywords}:
        raise IradError(
            f"irad.{call.word} takes {'an array and a width' if len(names) == 2 else 'an array'}",
            loc=call.loc,
            remedy=f"as in irad.{call.word}(T)",
        )
    return {**given, **keywords}


def body_ir(func_ir: Any, rank: int) -> Any:
    """The body: consumes a prepared Numba IR; naming the domain now gives the index marks, one an axis."""
    statics = Statics(func_ir)
    call = the_domain(func_ir, statics)
    assert call is not None
    block, target, loc = func_ir.blocks[call.label], call.statement.target, call.statement.loc
    emitter = Emitter(block.scope)
    indices = [emitter.call(INDEX[axis], [], loc) for axis in range(rank)]
    if rank == 1 and not _unpacked(func_ir, statics, target, rank, call):
        emitter.body.append(ir.Assign(indices[0], target, loc))
    else:
        _unpacked(func_ir, statics, target, rank, call)
        emitter.body.append(ir.Assign(ir.Expr.build_tuple(indices, loc), target, loc))
    at = block.body.index(call.statement)
    block.body = block.body[:at] + emitter.body + block.body[at + 1 :]
    return drop_dead(func_ir.derive(func_ir.blocks, loc=func_ir.loc))


def _unpacked(func_ir: Any, statics: Statics, target: Any, rank: int, call: DomainCall) -> bool:
    """Whether the indices are unpacked somewhere; refuses a wrong number of names."""
    found = False
    for _, statement in statements(func_ir):
        value: Any = getattr(statement, "value", None)
        unpacks = isinstance(statement, ir.Assign) and isinstance(value, ir.Expr) and value.op == "exhaust_iter"
        if unpacks and statics.definition(value.value) is call.statement.value:
            found = True
            if value.count != rank:
                raise IradError(
                    f"the launch domain has {rank} {'axis' if rank == 1 else 'axes'}, "
                    f"{value.count} {'name is' if value.count == 1 else 'names are'} given",
                    loc=loc_of(statement),
                    remedy=f"write {', '.join('ijkl'[:rank])} = irad.{call.word}(...)",
                )
    return found
