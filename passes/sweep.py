"""A sweep: one function of a point, run over a box of points, with a guard-free core inside.

Most of a box is *core*: points at which every guard is known to hold, so that the function runs without branches and
vectorises. What is left is cut into a few *edge* boxes, where the guarded form runs. Bounds are extremes over
:class:`~.layout.Term`: they are known only at launch, from shapes and integer arguments.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .ir.model import Access, Arg, Block, Const, Function, Index, Instr, LinExpr, PointFn, Value
from .layout import Range, Term


@dataclass(frozen=True)
class Reduction:
    """A sum over all points of a sweep: the cotangent of a scalar, or of one element of an array (``access``)."""

    param: str
    access: Access | None = None


@dataclass
class Sweep:
    """What ``nest.py`` turns into loops.

    ``outer``: the box, lowest of the ``lo`` terms to highest of the ``hi`` terms, cut to ``extents`` where given.
    ``core``: highest ``lo`` to lowest ``hi``; ``None``: all is core. ``core_fn`` and ``edge_fn`` take the indices,
    then words of the block, the bounds of the launch domain ``.lo0, .hi0, …`` and pointers to float64 accumulators
    ``.sum0, …`` (one a reduction), as they name them. ``helpers`` are functions that these call;
    ``row_fn``: does the edges row by row, see :func:`row_args`. ``mergeable``: it may be joined (``merge.py``).
    """

    title: str
    stage: int
    rank: int
    outer: tuple[Range, ...]
    core: tuple[Range, ...] | None
    core_fn: Function
    edge_fn: Function | None = None
    row_fn: Function | None = None
    helpers: list[Function] = field(default_factory=list)
    extents: tuple[str, ...] = ()
    reductions: tuple[Reduction, ...] = ()
    mergeable: bool = False

    @property
    def functions(self) -> list[Function]:
        """All functions of the sweep, callees first."""
        return [*self.helpers, self.core_fn, *(f for f in (self.edge_fn, self.row_fn) if f is not None)]

    def touched(self, *ops: str) -> frozenset[str]:
        """Arrays that some structured operations (``"aload"``, …) name; before lowering."""
        return frozenset(i.array for f in self.functions for i in f.instrs() if i.op in ops)


FROM, TO = ".from", ".to"


def row_args(rank: int, inner: int) -> list[Arg]:
    """The first parameters of a function that does a row: the indices of the other axes, and the part of axis ``inner``
    from ``.from`` to ``.to``."""
    return [*(Arg("i64", f".i{d}") for d in range(rank) if d != inner), Arg("i64", FROM), Arg("i64", TO)]


def domain_box(rank: int) -> tuple[Range, ...]:
    """The launch domain itself."""
    return tuple(Range((Term(("lo", a)),), (Term(("hi", a)),)) for a in range(rank))


def wrapping(pf: PointFn, wraps: frozenset[str], key: object) -> list[tuple[int, LinExpr]]:
    """``(axis, offset)`` of the indices of ``pf`` that are negative somewhere in the launch."""
    found: dict[tuple[int, LinExpr], None] = {}
    for i in pf.fn.instrs():
        if i.access is None or i.op not in ("aload", "astore"):
            continue
        for d, index in enumerate(i.access.dims):
            if index.wraps and index.axis is not None and key(i.access, d) in wraps:  # type: ignore[operator]
                found[(index.axis, index.offset)] = None
    return list(found)


def invariant_only(access: Access, d: int) -> bool:
    """The wrap test of a core: no index of a point is negative; the sign of one that all points share is looked at."""
    return access.dims[d].axis is None


@dataclass
class Loop:
    """A loop that :class:`Emit` has opened."""

    index: Instr
    head: Block
    after: Block


class Emit:
    """Appends integer and memory instructions to a block; what the float rules need is in ``build.py``."""

    def __init__(self, fn: Function, name: str = "entry") -> None:
        self.fn = fn
        self.block = fn.block(name)

    def __call__(self, op: str, type: str, operands: list[Value], **kw: object) -> Instr:
        return self.block.append(Instr(op, type, operands, **kw))  # type: ignore[arg-type]

    def fresh(self, stem: str) -> Block:
        return self.fn.block(f"{stem}{len(self.fn.blocks)}")

    def go(self, target: Block) -> None:
        """Branch to a block and go on there."""
        self("br", "void", [], targets=[target])
        self.block = target

    def when(self, conditions: list[Value]) -> Block:
        """Go on in a block that is entered only if all conditions hold; returns where to go after it."""
        ok = conditions[0] if conditions else Const("i1", "true")
        for c in conditions[1:]:
            ok = self("and", "i1", [ok, c])
        inside, after = self.fresh("in"), self.fresh("out")
        self("br", "void", [ok], targets=[inside, after])
        self.block = inside
        return after

    def loop(self, lo: Value, hi: Value) -> Loop:
        """Go on in the body of a loop over ``lo <= index < hi``."""
        before, head, inside, after = self.block, self.fresh("head"), self.fresh("body"), self.fresh("done")
        self.go(head)
        index = self("phi", "i64", [lo], targets=[before])
        self("br", "void", [self("icmp", "i1", [index, hi], pred="slt")], targets=[inside, after])
        self.block = inside
        return Loop(index, head, after)

    def end_loop(self, loop: Loop) -> None:
        loop.index.operands.append(self("add", "i64", [loop.index, Const("i64", "1")], flags=("nsw",)))
        loop.index.targets.append(self.block)
        self("br", "void", [], targets=[loop.head])
        self.block = loop.after

    def lin(self, expr: LinExpr) -> Value:
        from .own import lin_value

        instrs: list[Instr] = []
        v = lin_value(instrs, self.fn, expr)
        for i in instrs:
            self.block.append(i)
        return v

    def add(self, a: Value, b: Value) -> Value:
        if isinstance(b, Const) and b.text == "0":
            return a
        return self("add", "i64", [a, b], flags=("nsw",))

    def sub(self, a: Value, b: Value) -> Value:
        if isinstance(b, Const) and b.text == "0":
            return a
        if isinstance(b, Const):
            return self("add", "i64", [a, Const("i64", str(-int(b.text)))], flags=("nsw",))
        return self("sub", "i64", [a, b], flags=("nsw",))

    def index(self, point: list[Value], index: Index) -> Value:
        x = self.lin(index.offset)
        return x if index.axis is None else self.add(point[index.axis], x)
