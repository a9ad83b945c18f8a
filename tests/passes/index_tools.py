"""Random functions of integers, a machine that records what they do, and polynomials as numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

from hypothesis import strategies as st
from irad.passes.integers import Integers
from irad.passes.ir.interp import _Machine
from irad.passes.ir.model import Arg, Block, Bounds, Function, Instr, LinExpr, Value
from irad.passes.ir.model import Const as Literal
from irad.passes.polynomial import Atom, Poly

NAMES = frozenset({"T.n0", "k"})
EXTENTS = frozenset({"T.n0"})
NEVER = 10**9
"""Stands for a value that was not computed: it must not matter."""

PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


class Recorder(_Machine):
    """Runs a function and keeps the blocks that were entered and the values that they computed."""

    def __init__(self) -> None:
        super().__init__({}, (), None)
        self.blocks: list[Block] = []
        self.values: dict[Value, Any] = {}

    def _run_block(self, block: Block, previous: Block | None, values: dict[Value, Any]) -> Any:
        self.blocks.append(block)
        self.values = values
        return super()._run_block(block, previous, values)


def record(fn: Function, args: Mapping[str, int]) -> Recorder:
    machine = Recorder()
    machine.call(fn, [args[a.name] for a in fn.args])
    return machine


def places(fn: Function) -> Iterator[dict[str, int]]:
    """Points and sizes at which a random function is tried."""
    for i, j, n, k in product((-2, 0, 1, 2, 4), (-1, 0, 3), (0, 1, 3, 4), (-1, 2)):
        yield {".i0": i, ".i1": j, "T.n0": n, "k": k}


def number(p: Poly, value: Callable[[Atom], int]) -> int:
    """A polynomial as a number, for the values of the atoms that test nothing."""
    total = 0
    for m, c in p.terms:
        for a in m:
            if a.kind == "below":
                assert a.of is not None
                c *= number(a.of, value) < 0
            elif a.kind == "zero":
                assert a.of is not None
                c *= number(a.of, value) == 0
            else:
                c *= value(a)
        total += c
    return total


def atoms_of(integers: Integers, run: Recorder, at: Mapping[str, int]) -> Callable[[Atom], int]:
    """The values of atoms in one run: of opaque ones, what the machine has computed."""
    opaque: dict[Atom, Value] = {}
    for v, p in integers.known.items():
        if len(p.terms) == 1 and len(p.terms[0][0]) == 1 and p.terms[0][1] == 1:
            opaque.setdefault(p.terms[0][0][0], v)

    def value(a: Atom) -> int:
        if a.kind == "point":
            return at[f".i{a.axis}"]
        if a.serial < 0:
            return at[a.name]
        return int(run.values.get(opaque[a], NEVER))

    return value


def holds(bounds: tuple[Bounds, ...], at: Mapping[str, int]) -> bool:
    """Whether a point is one that bounds allow."""
    if not bounds:
        return True
    index = [at[f".i{d}"] for d in range(len(bounds) - 1)] + [0]

    def value(e: LinExpr) -> int:
        return e.evaluate(dict(at))

    return all(
        all(x >= value(e) for e in b.lo) and all(x < value(e) for e in b.hi) and all(x != value(e) for e in b.holes)
        for x, b in zip(index, bounds, strict=True)
    )


# random functions ----------------------------------------------------------------------------------------------------


@st.composite
def integer_functions(draw: st.DrawFn) -> Function:
    """Forward control flow over two indices, an extent and an integer; integers and conditions of all kinds."""
    args = [Arg("i64", ".i0"), Arg("i64", ".i1"), Arg("i64", "T.n0"), Arg("i64", "k")]
    fn = Function("f", "void", args)
    n = draw(st.integers(1, 7))
    blocks = [fn.block(f"b{k}") for k in range(n)]
    edges = [[draw(st.integers(k + 1, n - 1)) for _ in range(draw(st.integers(1, 3)))] for k in range(n - 1)] + [[]]
    ends: dict[Block, list[Value]] = {}
    for k, b in enumerate(blocks):
        incoming = [blocks[p] for p in range(k) for t in edges[p] if t == k]
        known: list[Value] = list(args)
        if incoming:
            for _ in range(draw(st.integers(0, 2))):
                values: dict[Block, Value] = {p: draw(st.sampled_from(ends[p])) for p in dict.fromkeys(incoming)}
                known.append(b.append(Instr("phi", "i64", [values[p] for p in incoming], targets=incoming)))
        for _ in range(draw(st.integers(0, 3))):
            known.append(b.append(_integer(draw, b, known)))
        ends[b] = known
        _leave(draw, b, known, [blocks[t] for t in edges[k]])
    return fn


def _constant(draw: st.DrawFn) -> Value:
    return Literal("i64", str(draw(st.integers(-3, 4))))


def _operand(draw: st.DrawFn, known: list[Value]) -> Value:
    return _constant(draw) if draw(st.integers(0, 2)) == 0 else draw(st.sampled_from(known))


def _integer(draw: st.DrawFn, b: Block, known: list[Value]) -> Instr:
    op = draw(st.sampled_from(["add", "add", "sub", "mul", "select", "select", "min", "ext", "shl", "not", "opaque"]))
    x, y = _operand(draw, known), _operand(draw, known)
    if op == "select":
        return Instr("select", "i64", [condition(draw, b, known, 1), x, y])
    if op == "min":
        return Instr("call", "i64", [x, y], callee=f"llvm.{draw(st.sampled_from(['smin', 'smax']))}.i64")
    if op == "ext":
        return Instr(draw(st.sampled_from(["zext", "sext"])), "i64", [condition(draw, b, known, 1)])
    if op == "shl":
        return Instr("shl", "i64", [x, Literal("i64", "1")])
    if op == "not":
        return Instr("xor", "i64", [x, Literal("i64", "-1")])
    if op == "opaque":
        return Instr(draw(st.sampled_from(["ashr", "srem"])), "i64", [x, Literal("i64", "2")])
    if op == "mul":
        y = _constant(draw)
    return Instr(op, "i64", [x, y])


def condition(draw: st.DrawFn, b: Block, known: list[Value], depth: int) -> Value:
    """A condition, appended to a block."""
    kind = draw(st.sampled_from(["icmp", "icmp", "and", "or", "xor", "select"])) if depth else "icmp"
    if kind == "icmp":
        x, y = _operand(draw, known), _operand(draw, known)
        return b.append(Instr("icmp", "i1", [x, y], pred=draw(st.sampled_from(PREDICATES))))
    one = condition(draw, b, known, depth - 1)
    if kind == "xor":
        return b.append(Instr("xor", "i1", [one, Literal("i1", "true")]))
    two = condition(draw, b, known, depth - 1)
    if kind == "select":
        sides: list[Value] = draw(st.sampled_from([[two, Literal("i1", "false")], [Literal("i1", "true"), two]]))
        return b.append(Instr("select", "i1", [one, *sides]))
    return b.append(Instr(kind, "i1", [one, two]))


def _leave(draw: st.DrawFn, b: Block, known: list[Value], targets: list[Block]) -> None:
    if not targets:
        b.append(Instr("ret", "void"))
    elif len(targets) == 1:
        b.append(Instr("br", "void", targets=targets))
    elif len(targets) == 2:
        b.append(Instr("br", "void", [condition(draw, b, known, 1)], targets=targets))
    else:
        cases = draw(st.lists(st.integers(-1, 3), min_size=2, max_size=2, unique=True))
        b.append(Instr("switch", "void", [draw(st.sampled_from(known))], targets=targets, cases=tuple(cases)))
