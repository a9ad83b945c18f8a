"""Writes one math-close statement as a point function in Numba IR.

At the point ``(i, j, k)`` an operator is a combination of entries at ``(i + a, j + b, k + c)``, by its row in
``irad/fd.py``. Operators inside operators add their offsets. Each instruction keeps the line on which the user wrote
it, a temporary's its own.
"""

from __future__ import annotations

import operator
from typing import Any, NoReturn

from irad.errors import NotDifferentiableError
from irad.fd import Operator
from irad.frontend.helpers import CALL_HELPER
from irad.frontend.intrinsics import INDEX
from irad.frontend.mathclose import Node, Reading, Shift, Statement, operator_of
from irad.frontend.numba_private import ir
from irad.frontend.rewrite import Emitter

EXTENTS = frozenset({"shape", "size", "ndim"})
"""What may be asked of an array without reading it."""


def stage_ir(func_ir: Any, reading: Reading, statement: Statement) -> Any:
    """The point function of one statement, with the parameters of the kernel's prepared Numba IR ``func_ir``."""
    first = func_ir.blocks[min(func_ir.blocks)]
    loc = statement.numba_loc
    writer = _Writer(Emitter(first.scope), reading, statement)
    emit = writer.emitter
    writer.arguments = [emit.assign(ir.Arg(name, n, first.loc), first.loc) for n, name in enumerate(func_ir.arg_names)]
    writer.point = [emit.call(INDEX[axis], [], loc) for axis in range(statement.rank)]
    blocks: dict[int, Any] = {}

    def close(label: int, end: Any) -> None:
        emit.body.append(end)
        blocks[label] = ir.Block(first.scope, first.loc)
        blocks[label].body = emit.body
        emit.body, writer.known = [], {}

    flow = _Flow(func_ir, statement.label)
    for label in flow.open:
        end = func_ir.blocks[label].terminator
        if isinstance(end, ir.Branch):
            condition = writer.value(reading.conditions[label], None, reading.conditions[label])
            close(label, ir.Branch(condition, flow.then(end.truebr), flow.then(end.falsebr), end.loc))
        else:
            close(label, ir.Jump(flow.then(end.target), end.loc))
    value = writer.value(statement.value, None, statement.value)
    place = writer.place(statement.selector.offsets(statement.rank), loc)
    emit.body.append(ir.SetItem(writer.arguments[statement.target.index], place, value, loc))
    for label in (statement.label, *([flow.out] if flow.open else [])):
        result = emit.assign(ir.Expr.cast(emit.const(None, loc), loc), loc)
        close(label, ir.Return(result, loc))
    return func_ir.derive(blocks, loc=func_ir.loc)


class _Flow:
    """The part of a kernel's control flow that decides about the statement in the block ``label``: the blocks ``open``,
    from which it may be reached or not, and ``out``, where it is not."""

    def __init__(self, func_ir: Any, label: int) -> None:
        self.label = label
        self.out = max(func_ir.blocks) + 1
        self.leading = {label}
        self.open: list[int] = []
        sure = {label}
        for b in sorted((b for b in func_ir.blocks if b < label), reverse=True):
            targets = set(func_ir.blocks[b].terminator.get_targets())
            if targets & self.leading:
                self.leading.add(b)
                if targets <= sure:
                    sure.add(b)
                else:
                    self.open.insert(0, b)
        if min(func_ir.blocks) in sure:
            self.open = []

    def then(self, target: int) -> int:
        """Where to go instead of a block of the kernel."""
        return target if target in self.open else self.label if target in self.leading else self.out


class _Writer:
    """``value(node, shift)``: the variable that holds a node's value ``shift`` away from the point (``None``: outside
    every operator, where arrays do not stand bare). Each is written once."""

    def __init__(self, emitter: Emitter, reading: Reading, statement: Statement) -> None:
        self.emitter, self.reading, self.statement = emitter, reading, statement
        self.arguments: list[Any] = []
        self.point: list[Any] = []
        self.known: dict[tuple[int, Shift | None], Any] = {}

    def place(self, shift: Shift, loc: Any) -> Any:
        """The index of the entry ``shift`` away from the point."""
        indices = []
        for index, offset in zip(self.point, shift, strict=True):
            indices.append(index if offset == 0 else self.binary(operator.add, index, self.const(offset, loc), loc))
        return indices[0] if len(indices) == 1 else self.emitter.tuple(indices, loc)

    def const(self, value: Any, loc: Any) -> Any:
        return self.emitter.const(value, loc)

    def binary(self, function: Any, a: Any, b: Any, loc: Any) -> Any:
        return self.emitter.assign(ir.Expr.binop(function, a, b, loc), loc)

    def value(self, node: Node, shift: Shift | None, reader: Node) -> Any:
        """The value of ``node``, which ``reader`` takes as an operand."""
        if node.several:
            self.refuse_choice(node, reader)
        if node.array is not None:
            return self.entry(node, shift, reader)
        if node.param is not None:
            return self.arguments[node.index]
        key = (id(node), shift)
        if key not in self.known:
            self.known[key] = self.written(node, shift)
        return self.known[key]

    def refuse_choice(self, node: Node, reader: Node) -> NoReturn:
        """Values that depend on the way taken are no values of one statement."""
        named = not node.several.startswith("$")
        raise NotDifferentiableError(
            f"{node.several.split('.')[0]} depends on an if"
            if named
            else "a choice (x if c else y, and, or) of values",
            loc=reader.loc if reader is not node else self.statement.loc,
            remedy="choose with np.where, or in a helper (@irad.device), or write a statement for each case",
        )

    def entry(self, node: Node, shift: Shift | None, reader: Node) -> Any:
        """An entry of an array, under an operator."""
        assert node.array is not None
        loc = _numba_loc(reader, self.statement)
        if shift is None:
            raise NotDifferentiableError(
                f"the array {node.name} stands without an operator",
                loc=reader.loc if reader is not node else self.statement.loc,
                remedy=f"say which entries, as in inn({node.name}) or all({node.name})",
            )
        if node.array.rank != self.statement.rank:
            raise NotDifferentiableError(
                f"{node.name} has rank {node.array.rank}, {self.statement.target.name} has rank {self.statement.rank}",
                loc=reader.loc,
                remedy="use arrays of one rank in a statement, or write a point kernel (irad.interior)",
            )
        self.check_unwritten(node, reader)
        return self.emitter.assign(ir.Expr.getitem(self.arguments[node.index], self.place(shift, loc), loc), loc)

    def check_unwritten(self, array: Node, reader: Node) -> None:
        """A temporary holds what its arrays were when it was made."""
        between = self.reading.written_between(array.name, reader.epoch, self.statement.number)
        if between is not None:
            raise NotDifferentiableError(
                f"a temporary reads {array.name}, which line {between.loc.line} assigns before line "
                f"{self.statement.loc.line} uses the temporary",
                loc=reader.loc,
                remedy=f"compute it after line {between.loc.line} if the new {array.name} is meant, "
                "or store it in a scratch array",
            )

    def written(self, node: Node, shift: Shift | None) -> Any:
        """Write out a node that is no parameter."""
        expr = node.value
        if not isinstance(expr, ir.Expr):
            return self.emitter.assign(expr, expr.loc)
        if (op := operator_of(node)) is not None:
            return self.operator(node, op, shift)
        if expr.op == "call":
            function = node.operand(expr.func)
            if function.static is CALL_HELPER:
                return self.helper(node, shift)
            if function.static is len:
                return self.rebuilt(node, lambda n: self.raw(n) if n.array is not None else self.value(n, shift, node))
        if expr.op == "getitem" and node.operand(expr.value).array is not None:
            return self.item(node, node.operand(expr.index))
        if expr.op == "getattr" and (base := node.operand(expr.value)).array is not None:
            if expr.attr not in EXTENTS:
                raise NotDifferentiableError(
                    f"{base.name}.{expr.attr} in a kernel of irad.fd statements",
                    loc=node.loc,
                    remedy="use operators on the array itself, or write a point kernel (irad.interior)",
                )
            return self.rebuilt(node, self.raw)
        return self.rebuilt(node, lambda n: self.value(n, shift, node))

    def raw(self, node: Node) -> Any:
        """An array parameter as a whole."""
        return self.arguments[node.index]

    def rebuilt(self, node: Node, operand: Any) -> Any:
        """A node's own right-hand side over new operands."""
        return self.emitter.assign(_substituted(node, operand), node.value.loc)

    def helper(self, node: Node, shift: Shift | None) -> Any:
        """A call of a helper: its captured arrays are passed on whole, its arguments by value."""
        bundle = node.operand(node.value.args[1])

        def argument(n: Node) -> Any:
            if n.array is None or n.param is None or n.param.capture is None:
                if n.array is not None:
                    raise NotDifferentiableError(
                        f"the array {n.name} is passed to a helper",
                        loc=node.loc,
                        remedy=f"pass entries, as in f(inn({n.name})); a helper may also capture an array",
                    )
                return self.value(n, shift, bundle)
            self.check_unwritten(n, node)
            return self.raw(n)

        items = self.emitter.assign(_substituted(bundle, argument), node.value.loc)
        new = ir.Expr.call(
            self.value(node.operand(node.value.func), None, node),
            [self.value(node.operand(node.value.args[0]), None, node), items],
            (),
            node.value.loc,
        )
        return self.emitter.assign(new, node.value.loc)

    def item(self, node: Node, index: Node) -> Any:
        """A fixed entry of an array, such as ``lam[0]``."""
        expr = node.value
        array = node.operand(expr.value)
        assert array.array is not None
        tuple_ = isinstance(index.value, ir.Expr) and index.value.op == "build_tuple"
        parts = [index.operand(v) for v in index.value.items] if tuple_ else [index]
        if len(parts) != array.array.rank or any(_is_slice(p) for p in parts):
            raise NotDifferentiableError(
                f"{array.name}[...] takes a part of an array in a kernel of irad.fd statements",
                loc=node.loc,
                remedy=f"use a selector, as in inn({array.name}), or one entry, as in lam[0]",
            )
        self.check_unwritten(array, node)
        place = self.value(index, None, node)
        return self.emitter.assign(ir.Expr.getitem(self.raw(array), place, expr.loc), expr.loc)

    def operator(self, node: Node, op: Operator, shift: Shift | None) -> Any:
        """``op(argument)``, or ``argument[op]`` for a selector."""
        expr = node.value
        if expr.op == "call" and (len(expr.args) != 1 or expr.kws or expr.vararg is not None):
            raise NotDifferentiableError(f"{op.name} takes one argument", loc=node.loc, remedy=f"write {op.name}(T)")
        argument = node.operand(expr.args[0] if expr.op == "call" else expr.value)
        if expr.op != "call" and not op.selector:
            raise NotDifferentiableError(
                f"{op.name} does not select entries", loc=node.loc, remedy=f"write {op.name}({argument.name})"
            )
        if not argument.reads_array:
            raise NotDifferentiableError(f"{op.name} is applied to a scalar", loc=node.loc, remedy="apply it to arrays")
        rank, loc = self.statement.rank, expr.loc
        if reason := op.reason_against(rank):
            raise NotDifferentiableError(reason, loc=node.loc, remedy="see irad.fd for the operators of each rank")
        base = shift or (0,) * rank
        terms = [
            (self.value(argument, tuple(map(operator.add, base, offsets)), node), weight)
            for offsets, weight in op.taps(rank)
        ]
        return self.combined(op, terms, loc)

    def combined(self, op: Operator, terms: list[tuple[Any, int]], loc: Any) -> Any:
        """The entries that an operator reaches, put together."""
        total: Any = None
        for term, weight in terms:
            if op.combine == "harm":
                term = self.binary(operator.truediv, self.const(1.0, loc), term, loc)
            if total is None:
                total = term if weight == 1 else self.binary(operator.mul, self.const(float(weight), loc), term, loc)
            elif op.combine in ("max", "min"):
                total = self.emitter.call(max if op.combine == "max" else min, [total, term], loc)
            else:
                if abs(weight) != 1:
                    term = self.binary(operator.mul, self.const(float(abs(weight)), loc), term, loc)
                total = self.binary(operator.add if weight > 0 else operator.sub, total, term, loc)
        if op.combine == "mean":
            return self.binary(operator.mul, total, self.const(1.0 / len(terms), loc), loc)
        if op.combine == "harm":
            return self.binary(operator.truediv, self.const(float(len(terms)), loc), total, loc)
        return total


def _is_slice(index: Node) -> bool:
    called = isinstance(index.value, ir.Expr) and index.value.op == "call"
    made = called and index.operand(index.value.func).static is slice
    return made or index.static is None or isinstance(index.static, (slice, type(...)))


def _numba_loc(reader: Node, statement: Statement) -> Any:
    return getattr(reader.value, "loc", statement.numba_loc)


def _substituted(node: Node, operand: Any) -> Any:
    """A copy of a node's expression, every variable replaced by ``operand`` of its node."""

    def new(x: Any) -> Any:
        if isinstance(x, ir.Var):
            return operand(node.operand(x))
        if isinstance(x, (list, tuple)):
            return type(x)(new(y) for y in x)
        return x

    expr = node.value
    return expr.__class__(expr.op, expr.loc, **{key: new(part) for key, part in expr._kws.items()})
