"""Math-close kernels: reads ``target[selector] = expression`` statements into a graph of values.

Each assignment through a selector of ``irad.fd`` becomes a stage (``pointwise.py`` writes it out); everything between
is a value that stages refer to. A value knows how many statements were complete when it was made, so that a temporary
is never used after what it reads has been assigned.

Statements may stand under an ``if`` on scalars, which is the same for all points. What an ``if`` assigns is known
within it; behind it, where it depends on the way that was taken, it is no value that a statement can use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from irad.errors import NotDifferentiableError
from irad.fd import MAX_RANK, Operator
from irad.frontend.captures import MISSING, Statics, loc_of, statements
from irad.frontend.numba_private import ir
from irad.frontend.signature import ArrayType, Conform, Loc, ParamInfo

Shift = tuple[int, ...]


@dataclass(eq=False)
class Node:
    """A value of the kernel: the right-hand side that makes it and that side's operands by name of variable.

    ``epoch``: how many statements were complete before it. ``param``, ``index``: the parameter that it is, if any.
    ``static``: its compile-time value, if it has one. ``several``: instead of all that, the name of a variable that
    depends on the way that was taken.
    """

    value: Any
    operands: dict[str, Node]
    epoch: int
    loc: Loc
    param: ParamInfo | None = None
    index: int = -1
    static: Any = MISSING
    several: str = ""

    @property
    def array(self) -> ArrayType | None:
        """The type of the array parameter that this value is."""
        return self.param.type if self.param is not None and isinstance(self.param.type, ArrayType) else None

    @property
    def name(self) -> str:
        """The name of the parameter that this value is."""
        return self.param.name if self.param is not None else ""

    def operand(self, var: Any) -> Node:
        return self.operands[var.name]

    @property
    def reads_array(self) -> bool:
        """Whether an array stands somewhere under this value."""
        return self.array is not None or any(n.reads_array for n in self.operands.values())


@dataclass(eq=False)
class Statement:
    """``target[selector] = value``, the ``number``-th of its kernel, in the block ``label``."""

    target: Node
    selector: Operator
    value: Node
    loc: Loc
    numba_loc: Any
    number: int
    label: int

    @property
    def rank(self) -> int:
        """The rank of the target."""
        assert self.target.array is not None
        return self.target.array.rank


@dataclass(eq=False)
class Reading:
    """A kernel as statements, in order, and the conditions on which its blocks branch."""

    statements: list[Statement] = field(default_factory=list)
    conditions: dict[int, Node] = field(default_factory=dict)

    def written_between(self, array: str, first: int, last: int) -> Statement | None:
        """The statement among ``first <= number < last`` that assigns ``array``."""
        for statement in self.statements[first:last]:
            if statement.target.name == array:
                return statement
        return None


def uses_operators(func_ir: Any, statics: Statics) -> Loc | None:
    """Where a kernel first uses something of ``irad.fd``, if it does."""
    for _, statement in statements(func_ir):
        if isinstance(statement, ir.Assign) and isinstance(statics.value(statement.value), Operator):
            return loc_of(statement)
    return None


def read(func_ir: Any, params: tuple[ParamInfo, ...]) -> Reading:
    """The statements of a prepared Numba IR."""
    statics = Statics(func_ir)
    reading = Reading()
    after: dict[int, dict[str, Node]] = {}
    for label, sources in _forward(func_ir):
        values = after[label] = _joined([after[source] for source in sources])
        for statement in func_ir.blocks[label].body:
            number = len(reading.statements)
            if isinstance(statement, ir.Assign):
                values[statement.target.name] = _node(statement, values, statics, params, number)
            elif isinstance(statement, ir.SetItem):
                reading.statements.append(_statement(statement, values, number, label))
            elif isinstance(statement, ir.Branch):
                reading.conditions[label] = _condition(statement, values)
            elif not isinstance(statement, (ir.Return, ir.Jump, ir.Del)):
                raise NotDifferentiableError(
                    "this cannot stand among irad.fd statements",
                    loc=loc_of(statement),
                    remedy="keep to assignments through selectors, or write a point kernel (irad.interior)",
                )
    if not reading.statements:
        raise NotDifferentiableError(
            "the kernel uses irad.fd operators but assigns nothing",
            loc=Loc(func_ir.loc.filename, func_ir.loc.line),
            remedy="write statements such as dT[inn] = d2_xi(T)",
        )
    return reading


def _forward(func_ir: Any) -> Iterator[tuple[int, list[int]]]:
    """Every block that is reached, behind those that lead to it, with these; refuses loops."""
    sources: dict[int, list[int]] = {min(func_ir.blocks): []}
    for label in sorted(func_ir.blocks):  # in the order of the source: only a loop goes back
        if label not in sources:
            continue
        terminator = func_ir.blocks[label].terminator
        for target in terminator.get_targets():
            if target <= label:
                raise NotDifferentiableError(
                    "for and while cannot stand in a kernel of irad.fd statements",
                    loc=loc_of(func_ir.blocks[target].terminator),
                    remedy="write the statements out, or call the kernel in a loop",
                )
            sources.setdefault(target, []).append(label)
        yield label, sources[label]


def _joined(ways: list[dict[str, Node]]) -> dict[str, Node]:
    """What variables are where several ways meet."""
    if len(ways) < 2:
        return dict(ways[0]) if ways else {}
    values: dict[str, Node] = {}
    for name in {name: None for way in ways for name in way}:
        found = [way[name] for way in ways if name in way]
        same = len(found) == len(ways) and all(node is found[0] for node in found)
        first = found[0]
        values[name] = first if same else Node(None, {}, first.epoch, first.loc, several=name)
    return values


def _condition(branch: Any, values: dict[str, Node]) -> Node:
    condition = values[branch.cond.name]
    if condition.reads_array:
        raise NotDifferentiableError(
            "an if on entries of an array in a kernel of irad.fd statements",
            loc=loc_of(branch),
            remedy="choose entry by entry, as in np.where(inn(T) > 0, d_xi(T), 0)",
        )
    return condition


def _node(statement: Any, values: dict[str, Node], statics: Statics, params: Any, epoch: int) -> Node:
    value, loc = statement.value, loc_of(statement)
    if isinstance(value, ir.Var):
        return values[value.name]
    if isinstance(value, ir.Arg):
        return Node(value, {}, epoch, loc, params[value.index], value.index)
    if not isinstance(value, ir.Expr):
        return Node(value, {}, epoch, loc, static=value.value)
    if value.op == "cast":
        return values[value.value.name]
    node = Node(value, {v.name: values[v.name] for v in value.list_vars()}, epoch, loc, static=statics.value(value))
    if value.op == "inplace_binop" and (array := node.operand(value.lhs)).array is not None:
        raise NotDifferentiableError(
            f"{array.name} is updated as a whole",
            loc=loc,
            remedy=f"select its entries, as in {array.name}[all] += ...",
        )
    if value.op == "call":
        _check_call(node, value)
    return node


def _check_call(node: Node, call: Any) -> None:
    """A function that is given an array could change it, or return one."""
    function = node.operand(call.func)
    if isinstance(function.static, Operator) or function.static is len:
        return
    given = [node.operand(v) for v in [*call.args, *dict(call.kws).values()]]
    if isinstance(function.value, ir.Expr) and function.value.op == "getattr":
        given += function.operands.values()
    for argument in given:
        if argument.array is not None and argument.static is MISSING:
            raise NotDifferentiableError(
                f"the array {argument.name} is passed to a function",
                loc=node.loc,
                remedy=f"pass entries, as in f(inn({argument.name})); a helper may also capture an array",
            )


def _statement(statement: Any, values: dict[str, Node], number: int, label: int) -> Statement:
    loc = loc_of(statement)
    target = values[statement.target.name]
    selector = values[statement.index.name].static
    if target.array is None:
        raise NotDifferentiableError(
            "only arrays are assigned in a kernel of irad.fd statements",
            loc=loc,
            remedy="assign entries of an argument or of a captured array",
        )
    if not isinstance(selector, Operator):
        raise NotDifferentiableError(
            f"{target.name}[...] is assigned by index in a kernel of irad.fd statements",
            loc=loc,
            remedy=f"select entries, as in {target.name}[inn] = ..., or write a point kernel (irad.interior)",
        )
    if not selector.selector:
        raise NotDifferentiableError(
            f"{selector.name} does not select entries", loc=loc, remedy="assign through all, inn, inn_x, ..."
        )
    if reason := selector.reason_against(target.array.rank):
        raise NotDifferentiableError(reason, loc=loc, remedy=f"irad.fd acts on arrays of rank 1 to {MAX_RANK}")
    return Statement(target, selector, values[statement.value.name], loc, statement.loc, number, label)


def conforms(statement: Statement) -> tuple[Conform, ...]:
    """The shapes that a statement takes for granted: every operator's result is as large as the selection."""
    rank = statement.rank
    target_cut = tuple(2 * offset for offset in statement.selector.offsets(rank))
    found: dict[tuple[str, Shift], Loc] = {}
    seen: set[tuple[int, Shift | None]] = set()

    def walk(node: Node, cut: Shift | None, reader: Node) -> None:
        if (id(node), cut) in seen and node.array is None:
            return
        seen.add((id(node), cut))
        if node.array is not None:
            if cut is not None:
                found.setdefault((node.name, cut), reader.loc)
            return
        op = operator_of(node)
        if op is not None:
            inner = tuple(a + b for a, b in zip(cut or (0,) * rank, op.loss(rank), strict=True))
            walk(node.operand(node.value.args[0] if node.value.op == "call" else node.value.value), inner, node)
        elif not (isinstance(node.value, ir.Expr) and node.value.op in ("getitem", "getattr")):
            for operand in node.operands.values():
                walk(operand, cut, node)

    walk(statement.value, None, statement.value)
    target = statement.target.name
    return tuple(
        Conform(array, cut[axis], target, target_cut[axis], axis, loc)
        for (array, cut), loc in found.items()
        for axis in range(rank)
        if (array, cut[axis]) != (target, target_cut[axis])
    )


def operator_of(node: Node) -> Operator | None:
    """The operator whose result a node is, called or as an index."""
    if not isinstance(node.value, ir.Expr):
        return None
    if node.value.op == "call":
        static = node.operand(node.value.func).static
    elif node.value.op == "getitem":
        static = node.operand(node.value.index).static
    else:
        return None
    return static if isinstance(static, Operator) else None
