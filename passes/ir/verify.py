"""Well-formedness of a function of the small IR: what every pass may rely on, and must leave behind.

Checked: each block ends in one terminator and has no other; phis stand first, with one entry an incoming edge; every
operand is a parameter, a constant, or defined where it dominates its use; operand counts, types, flags and predicates
are those of ``ir/ops.py``; names of blocks and functions belong to this function. A failure shows the lines around.
"""

from __future__ import annotations

from collections import Counter

from irad.errors import IradError

from . import ops
from .aggregates import aggregate_fields, field_type
from .graph import dominators, predecessors, reverse_postorder
from .model import Arg, Block, Const, Function, Instr, Module, PointFn, Value
from .tokens import NotParsed
from .write import Writer

_AROUND = 5


class MalformedError(IradError):
    """A pass made, or was given, a function that is not well-formed: a bug of irad, not of the user."""


def verify_module(module: Module) -> None:
    """Check every function of a module, and that calls between them fit."""
    for fn in module.functions.values():
        verify(fn)
        for i in fn.instrs():
            callee = module.functions.get(i.callee) if i.op == "call" else None
            if callee is not None:
                want = [a.type for a in callee.args]
                have = [v.type for v in i.operands]
                if have != want or i.type != callee.type:
                    _fail(fn, i, f"the call takes {have} and gives {i.type}; {callee.name} is {want} to {callee.type}")


def verify_point(point: PointFn) -> None:
    """Check a point function: its parameters are the indices, then the words of its arrays and scalars."""
    verify(point.fn)
    want = [("i64", f".i{d}") for d in range(point.rank)]
    for p in point.params:
        for w in p.words:
            type = "ptr" if w.endswith(".data") else "i64"
            want.append((getattr(p, "type", type), w))
    have = [(a.type, a.name) for a in point.fn.args[: len(want)]]
    if have != want:
        raise MalformedError(f"{point.fn.name}: the parameters are {have}, not {want}")
    for i in point.fn.instrs():
        if i.op in ("aload", "astore", "sload", "sstore", "accum") and i.access is not None:
            indices = len(i.operands) - (i.op not in ("aload", "sload"))
            if indices != len(i.access.dims):
                _fail(point.fn, i, f"{indices} indices, but an access of {len(i.access.dims)} dimensions")


def verify(fn: Function) -> None:
    """Raise :class:`MalformedError` where ``fn`` is not well-formed."""
    if not fn.blocks:
        raise MalformedError(f"{fn.name} has no blocks")
    members = set(fn.blocks)
    if len(members) != len(fn.blocks):
        raise MalformedError(f"{fn.name} lists a block twice")
    for b in fn.blocks:
        _check_shape(fn, b, members)
    if any(fn.blocks[0] in b.successors for b in fn.blocks):
        raise MalformedError(f"{fn.name} jumps back to its entry")
    for b in fn.blocks:
        for i in b.instrs:
            problem = _problem(i, fn)
            if problem:
                _fail(fn, i, problem)
    _check_phis(fn)
    _check_dominance(fn)


def _check_shape(fn: Function, b: Block, members: set[Block]) -> None:
    if not b.instrs or b.instrs[-1].op not in ops.TERMINATORS:
        _fail(fn, b.instrs[-1] if b.instrs else None, f"block {b.name} does not end in a terminator")
    seen_other = False
    for i in b.instrs:
        if i.block is not b:
            _fail(fn, i, f"it stands in block {b.name}, but says {i.block!r}")
        if i.op not in ops.OPS:
            _fail(fn, i, f"the operation {i.op!r} is in no table")
        if i.op in ops.TERMINATORS and i is not b.instrs[-1]:
            _fail(fn, i, "a terminator inside a block")
        if i.op == "phi" and seen_other:
            _fail(fn, i, "a phi after other instructions")
        seen_other = seen_other or i.op != "phi"
        for t in i.targets:
            if t not in members:
                _fail(fn, i, f"{t!r} is not in the function")


def _problem(i: Instr, fn: Function) -> str:
    """What is wrong with one instruction by itself; ``""`` if nothing is."""
    op = ops.OPS[i.op]
    if op.operands >= 0 and len(i.operands) != op.operands:
        return f"{len(i.operands)} operands instead of {op.operands}"
    unknown = [f for f in i.flags if f not in op.flags]
    if unknown:
        return f"{i.op} has no flags {unknown}"
    result = {"operand0": 0, "operand1": 1}.get(op.result)
    want = i.operands[result].type if result is not None else i.type if op.result == "own" else op.result
    if i.type != want:
        return f"its type is {i.type}, it should be {want}"
    check = _CHECKS.get(i.op) or _KINDS.get(op.kind)
    return check(i, fn) if check else ""


def _same(i: Instr, fn: Function) -> str:
    types = {v.type for v in i.operands}
    wanted = ops.FLOATS if ops.OPS[i.op].kind == "float" else _INTS
    if len(types) != 1 or not types <= wanted:
        return f"operands of types {sorted(types)}"
    return ""


_INTS = frozenset({"i1", "i8", "i16", "i32", "i64"})


def _icmp(i: Instr, fn: Function) -> str:
    a, b = i.operands
    if a.type != b.type or a.type not in _INTS | {"ptr"}:
        return f"it compares {a.type} with {b.type}"
    return "" if i.pred in ops.ICMP else f"the predicate {i.pred!r}"


def _fcmp(i: Instr, fn: Function) -> str:
    a, b = i.operands
    if a.type != b.type or a.type not in ops.FLOATS:
        return f"it compares {a.type} with {b.type}"
    return "" if i.pred in ops.FCMP else f"the predicate {i.pred!r}"


def _bits(type: str) -> int:
    return 1 if type == "i1" else 8 * ops.SIZES.get(type, 0)


_CASTS = {
    "trunc": (_INTS, _INTS, "less"), "zext": (_INTS, _INTS, "more"), "sext": (_INTS, _INTS, "more"),
    "fptrunc": (ops.FLOATS, ops.FLOATS, "less"), "fpext": (ops.FLOATS, ops.FLOATS, "more"),
    "sitofp": (_INTS, ops.FLOATS, ""), "uitofp": (_INTS, ops.FLOATS, ""),
    "fptosi": (ops.FLOATS, _INTS, ""), "fptoui": (ops.FLOATS, _INTS, ""),
    "ptrtoint": (frozenset({"ptr"}), _INTS, ""), "ptrtoaddr": (frozenset({"ptr"}), _INTS, ""),
    "inttoptr": (_INTS, frozenset({"ptr"}), ""),
    "bitcast": (_INTS | ops.FLOATS | {"ptr"}, _INTS | ops.FLOATS | {"ptr"}, "same"),
}  # fmt: skip


def _cast(i: Instr, fn: Function) -> str:
    source, target, size = _CASTS[i.op]
    (v,) = i.operands
    a, b = _bits(v.type), _bits(i.type)
    fits = {"less": b < a, "more": b > a, "same": a == b, "": True}[size]
    return "" if v.type in source and i.type in target and fits else f"from {v.type} to {i.type}"


def _select(i: Instr, fn: Function) -> str:
    c, a, b = i.operands
    return "" if c.type == "i1" and a.type == b.type else f"of {c.type}, {a.type} and {b.type}"


def _gep(i: Instr, fn: Function) -> str:
    if len(i.operands) < 2 or i.operands[0].type != "ptr" or any(v.type not in _INTS for v in i.operands[1:]):
        return "a getelementptr takes a pointer and integers"
    return "" if i.elem else "a getelementptr without an element type"


def _load(i: Instr, fn: Function) -> str:
    return "" if i.operands[-1].type == "ptr" and i.type != "void" else "a load takes a pointer and gives a value"


def _store(i: Instr, fn: Function) -> str:
    value, pointer = i.operands
    return "" if pointer.type == "ptr" and value.type != "void" else "a store takes a value and a pointer"


def _extract(i: Instr, fn: Function) -> str:
    return _field(i.operands[0].type, i.indices, i.type)


def _insert(i: Instr, fn: Function) -> str:
    return _field(i.operands[0].type, i.indices, i.operands[1].type)


def _field(aggregate: str, indices: tuple[int, ...], type: str) -> str:
    try:
        found = field_type(aggregate, indices) if aggregate_fields(aggregate) is not None else ""
    except NotParsed as e:
        return str(e)
    return "" if indices and found == type else f"field {indices} of {aggregate} is {found or 'nothing'}, not {type}"


def _br(i: Instr, fn: Function) -> str:
    conditional = len(i.operands) == 1 and i.operands[0].type == "i1" and len(i.targets) == 2
    plain = not i.operands and len(i.targets) == 1
    return "" if conditional or plain else "a branch on an i1 to two blocks, or without one to one block"


def _switch(i: Instr, fn: Function) -> str:
    if len(i.operands) != 1 or i.operands[0].type not in _INTS:
        return "a switch takes one integer"
    if len(i.targets) != len(i.cases) + 1 or len(set(i.cases)) != len(i.cases):
        return "a switch has a default block, and one block for each different case"
    return ""


def _ret(i: Instr, fn: Function) -> str:
    have = i.operands[0].type if i.operands else "void"
    return "" if have == fn.type else f"it returns {have} from a function of {fn.type}"


def _phi(i: Instr, fn: Function) -> str:
    if len(i.operands) != len(i.targets):
        return "a phi has as many values as blocks"
    return "" if all(v.type == i.type for v in i.operands) else f"values of types {[v.type for v in i.operands]}"


def _call(i: Instr, fn: Function) -> str:
    found = ops.math_of(i.callee)
    if found is None:
        return "" if i.callee else "a call of nothing"
    name, type = found
    if i.callee != ops.math_callee(name, type):
        return f"{i.callee} should be spelled {ops.math_callee(name, type)}"
    want = [type if a == "f" else "i32" for a in ops.MATH[name].arguments]
    have = [v.type for v in i.operands]
    return "" if have == want and i.type == type else f"{name} takes {want}, not {have}, and gives {type}"


def _structured(i: Instr, fn: Function) -> str:
    if i.op == "iwrap":
        return "" if all(v.type == "i64" for v in i.operands) else "iwrap takes two i64"
    if not i.array:
        return f"{i.op} of no array"
    first = 0 if i.op in ("aload", "sload") else 1
    if len(i.operands) < first or any(v.type != "i64" for v in i.operands[first:]):
        return f"{i.op} takes {'a value and ' if first else ''}indices of type i64"
    if i.access is not None and i.access.array != i.array and "@" not in i.array:
        return f"its access is of {i.access.array}"
    return ""


_CHECKS = {
    "icmp": _icmp, "fcmp": _fcmp, "select": _select, "getelementptr": _gep, "load": _load, "store": _store,
    "extractvalue": _extract, "insertvalue": _insert, "br": _br, "switch": _switch, "ret": _ret, "phi": _phi,
    "call": _call,
}  # fmt: skip
_KINDS = {"float": _same, "int": _same, "cast": _cast, "structured": _structured}


def _check_phis(fn: Function) -> None:
    preds = predecessors(fn)
    for b in fn.blocks:
        want = Counter(preds[b])
        for phi in b.phis:
            if Counter(phi.targets) != want:
                names = [p.name for p in preds[b]]
                _fail(fn, phi, f"it has entries for {[t.name for t in phi.targets]}, the edges come from {names}")
            values: dict[Block, Value] = {}
            for v, t in zip(phi.operands, phi.targets, strict=True):
                if not _equal(values.setdefault(t, v), v):
                    _fail(fn, phi, f"two values for the edges from {t.name}")


def _equal(a: Value, b: Value) -> bool:
    return a is b or (isinstance(a, Const) and isinstance(b, Const) and a.text == b.text)


def _check_dominance(fn: Function) -> None:
    dom = dominators(fn)
    reachable = set(reverse_postorder(fn))
    args: set[Value] = set(fn.args)
    place = {i: k for b in fn.blocks for k, i in enumerate(b.instrs)}
    for b in fn.blocks:
        for i in b.instrs:
            for k, v in enumerate(i.operands):
                if isinstance(v, Const):
                    continue
                if isinstance(v, Arg):
                    if v not in args:
                        _fail(fn, i, f"%{v.name} is a parameter of another function")
                    continue
                if not isinstance(v, Instr) or v not in place:
                    _fail(fn, i, f"operand {k} ({v!r}) is not in the function")
                if b not in reachable:
                    continue
                assert isinstance(v, Instr)
                assert v.block is not None
                if i.op == "phi":
                    at = i.targets[k]
                    good = at not in reachable or v.block in dom[at]
                else:
                    good = place[v] < place[i] if v.block is b else v.block in dom[b]
                if not good:
                    _fail(fn, i, f"operand {k} ({v!r}) is not defined on every way that leads here")


def _fail(fn: Function, i: Instr | None, problem: str) -> None:
    raise MalformedError(f"{fn.name}: {problem}\n{neighbourhood(fn, i)}", loc=i.loc if i is not None else None)


def neighbourhood(fn: Function, i: Instr | None) -> str:
    """The lines around an instruction, with a mark at its own."""
    writer = Writer(fn, True)
    lines: list[str] = []
    mark = 0
    for b in fn.blocks:
        lines.append(f"    {b.name}:")
        for j in b.instrs:
            if j is i:
                mark = len(lines)
            try:
                text = writer.instr(j)
            except (AttributeError, IndexError, KeyError, ValueError) as e:
                text = f"{j!r} (cannot be written: {e})"
            lines.append(f"{'--> ' if j is i else '    '}  {text}")
    return "\n".join(lines[max(mark - _AROUND, 0) : mark + _AROUND + 1])
