"""Turns the written arrays of a point function into local slots.

The race check has shown that every access to a written array goes to one address a point, its *own* address. Within
one point such an array is therefore a local variable: it starts with the old content, is read and overwritten in the
order of the body, and its last value is what the launch leaves behind. An adjoint runs the body again without writing
primal memory, so it needs just this form.

:func:`to_slots` rewrites the accesses of written arrays in place: a read that certainly comes before every write stays
a load of the old content, one that certainly comes after one is a load of an ``alloca`` slot, and one that comes after
a write on some paths only chooses between the two. Writes reach memory no more.
"""

from __future__ import annotations

from .ir.graph import reverse_postorder
from .ir.model import Access, Block, Const, Function, Instr, LinExpr, PointFn, Value

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


def to_slots(pf: PointFn) -> tuple[dict[Value, Value], dict[Value, tuple[Value, ...]]]:
    """Rewrite ``pf.fn`` (acyclic) in place; returns the loads that were replaced, old to new, and for each new value
    that is a choice the values it chooses from.

    Slot traffic is marked by ``array``: an ``alloca``, ``load`` or ``store`` that carries an array's name is that
    array's slot.
    """
    replaced: dict[Value, Value] = {}
    choices: dict[Value, tuple[Value, ...]] = {}
    top: list[Instr] = []
    for array in pf.written:
        _slot_of(pf, array, top, replaced, choices)
    for i in pf.fn.instrs():
        i.operands = [replaced.get(v, v) for v in i.operands]
    prepend(pf.fn, top)
    return replaced, choices


def _slot_of(
    pf: PointFn,
    array: str,
    top: list[Instr],
    replaced: dict[Value, Value],
    choices: dict[Value, tuple[Value, ...]],
) -> None:
    elem = pf.array(array).elem
    state = _stored_before(pf.fn, array)
    slot = Instr("alloca", "ptr", [], elem=elem, name=f"{array}.own", array=array)
    top.append(slot)
    flag: Instr | None = None
    if _MAYBE in state.values():
        flag = flag_slot(top, f"{array}.stored")
        top.append(Instr("store", "void", [zero_of(elem), slot]))
    for block in pf.fn.blocks:
        old, block.instrs = block.instrs, []
        for i in old:
            if i.array != array or i.op not in ("aload", "astore"):
                block.append(i)
            elif i.op == "astore":
                block.append(Instr("store", "void", [i.operands[0], slot], array=array, access=i.access, loc=i.loc))
                if flag is not None:
                    raise_flag(block, flag)
            elif state[i] == _NEVER:
                block.append(i)
            else:
                new = block.append(Instr("load", elem, [slot], name=i.name, array=array, access=i.access, loc=i.loc))
                if state[i] == _MAYBE:
                    assert flag is not None
                    stored = block.append(Instr("load", "i1", [flag], name=f"{array}.is.stored"))
                    before = block.append(Instr("aload", elem, i.operands, array=array, access=i.access, loc=i.loc))
                    choice = block.append(Instr("select", elem, [stored, new, before], name=i.name, loc=i.loc))
                    choices[choice] = (new, before)
                    new = choice
                replaced[i] = new


def zero_of(type: str) -> Const:
    """0 of a float or integer type."""
    return Const(type, "0.000000e+00" if type in ("double", "float") else "false" if type == "i1" else "0")


def flag_slot(top: list[Instr], name: str) -> Instr:
    """A local boolean that starts as false."""
    top.append(Instr("alloca", "ptr", [], elem="i1", name=name))
    top.append(Instr("store", "void", [zero_of("i1"), top[-1]]))
    return top[-2]


def raise_flag(block: Block, flag: Instr, at: int | None = None) -> None:
    """Set a local boolean to true, at the end of a block or before position ``at``."""
    block.insert(len(block.instrs) if at is None else at, Instr("store", "void", [Const("i1", "true"), flag]))
