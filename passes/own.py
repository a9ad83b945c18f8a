"""Turns the written arrays of a point function into local slots.

The race check has shown that every access to a written array goes to one address a point, its *own* address. Within
one point such an array is therefore a local variable: it starts with the old content, is read and overwritten in the
order of the body, and its last value is what the launch leaves behind. An adjoint runs the body again without writing
primal memory, so it needs just this form.

:func:`to_slots` rewrites the accesses of written arrays in place: a read that certainly comes before every write stays
a load of the old content; the others go to an ``alloca`` slot. Writes reach memory no more.
"""

from __future__ import annotations

from ..errors import NotDifferentiableError
from .ir.graph import reverse_postorder
from .ir.model import Access, Const, Function, Instr, LinExpr, PointFn, Value

_NEVER, _MAYBE, _ALWAYS = 0, 1, 2


def own_access(pf: PointFn, array: str) -> Access:
    """The one place of ``array`` that a point touches; executed at every point if any access to it is."""
    instrs = [i for i in pf.fn.instrs() if i.array == array and i.op in ("aload", "astore")]
    return max((i.access for i in instrs if i.access is not None), key=lambda a: (a.always, not is_guarded(a)))


def is_guarded(access: Access) -> bool:
    """Whether the access is checked for a part of the domain only."""
    return any(not b.is_empty for b in access.guard)


def lin_value(out: list[Instr], fn: Function, expr: LinExpr) -> Value:
    """Instructions (appended to ``out``) that compute a launch-invariant integer."""
    total: Value = Const("i64", str(expr.const))
    for name, coeff in expr.terms:
        term: Value = fn.arg(name)
        if coeff != 1:
            out.append(Instr("mul", "i64", [term, Const("i64", str(coeff))], flags=("nsw",)))
            term = out[-1]
        if isinstance(total, Const) and total.text == "0":
            total = term
        else:
            out.append(Instr("add", "i64", [term, total], flags=("nsw",)))
            total = out[-1]
    return total


def index_values(out: list[Instr], fn: Function, point: list[Value], access: Access) -> list[Value]:
    """Instructions (appended to ``out``) that compute the indices of ``access`` at ``point``."""
    result = []
    for d, index in enumerate(access.dims):
        x = lin_value(out, fn, index.offset)
        if index.axis is not None:
            if isinstance(x, Const) and x.text == "0":
                x = point[index.axis]
            else:
                out.append(Instr("add", "i64", [point[index.axis], x], flags=("nsw",)))
                x = out[-1]
        if index.wraps:
            out.append(Instr("iwrap", "i64", [x, fn.arg(f"{access.array.removesuffix(chr(39))}.n{d}")]))
            x = out[-1]
        result.append(x)
    return result


def prepend(fn: Function, instrs: list[Instr]) -> None:
    """Put instructions at the top of the entry block."""
    entry = fn.blocks[0]
    for k, i in enumerate(instrs):
        entry.insert(k, i)


def _stored_before(fn: Function, array: str) -> dict[Instr, int]:
    """For each read of ``array``: has a write to it come before, never, on some paths, or always?"""
    at_end: dict[object, int] = {}
    result: dict[Instr, int] = {}
    into: dict[object, list[int]] = {b: [] for b in fn.blocks}
    for b in reverse_postorder(fn):
        seen = into[b]
        state = _NEVER if not seen or max(seen) == _NEVER else _ALWAYS if min(seen) == _ALWAYS else _MAYBE
        for i in b.instrs:
            if i.array == array and i.op == "aload":
                result[i] = state
            elif i.array == array and i.op == "astore":
                state = _ALWAYS
        at_end[b] = state
        for s in set(b.successors):
            into[s].append(state)
    return result


def to_slots(pf: PointFn) -> dict[Value, Value]:
    """Rewrite ``pf.fn`` (acyclic) in place; returns the loads that were replaced, old to new.

    Slot traffic is marked by ``array``: an ``alloca``, ``load`` or ``store`` that carries an array's name is that
    array's slot.
    """
    fn = pf.fn
    replaced: dict[Value, Value] = {}
    top: list[Instr] = []
    for array in pf.written:
        elem = pf.array(array).elem
        state = _stored_before(fn, array)
        slot = Instr("alloca", "ptr", [], elem=elem, name=f"{array}.own", array=array)
        top.append(slot)
        mixed = [i for i, s in state.items() if s == _MAYBE]
        if mixed:
            access = own_access(pf, array)
            if is_guarded(access):
                raise NotDifferentiableError(
                    f"'{array}' is read after a write to it that is made on some paths only, and only in a part of "
                    "the domain",
                    loc=mixed[0].loc,
                    remedy="read the old value into a variable at the top of the body",
                )
            points: list[Value] = list(pf.index)
            index = index_values(top, fn, points, access)
            top.append(Instr("aload", elem, index, array=array, access=access, name=f"{array}.old", loc=mixed[0].loc))
            top.append(Instr("store", "void", [top[-1], slot], array=array))
        for block in fn.blocks:
            for k, i in enumerate(block.instrs):
                if i.array != array:
                    continue
                if i.op == "astore":
                    new = Instr("store", "void", [i.operands[0], slot], array=array, access=i.access, loc=i.loc)
                elif i.op == "aload" and state[i] != _NEVER:
                    new = Instr("load", elem, [slot], name=i.name, array=array, access=i.access, loc=i.loc)
                    replaced[i] = new
                else:
                    continue
                block.instrs[k] = new
                new.block = block
    for i in fn.instrs():
        i.operands = [replaced.get(v, v) for v in i.operands]
    prepend(fn, top)
    return replaced
