"""Random kernels of ``irad.fd`` statements for Hypothesis: ``target[selector] = expression``, several in a row.

Arrays lie on staggered grids: each is some entries larger than the extents of its case, so that every operator's result
is as large as the selection it is assigned to. A statement reads its own target only where it writes it; what other
statements wrote it may read at any shift.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from generator import LAYOUTS, Arr, Body, Case, Draw, Expr, helper_functions, used_only
from hypothesis import strategies as st

from irad.fd import OPERATORS, Operator

Grow = tuple[int, ...]


def operators(rank: int) -> list[Operator]:
    """Those that act on arrays of a rank, selectors first."""
    fitting = [op for op in OPERATORS.values() if not op.reason_against(rank)]
    return sorted(fitting, key=lambda op: (not op.selector, op.name.startswith("harm"), op.name))


def weight(op: Operator, rank: int) -> int:
    """How much larger than its operand an operator's result may be."""
    return sum(abs(w) for _, w in op.taps(rank)) if op.combine == "sum" else 1


class Statements(Body):
    """Writes the statements of a kernel; arrays come into being as they are needed."""

    kinds = ("leaf", "+", "-", "*", "*", "function", "/", "minmax", "power", "call", "cast")

    def __init__(self, draw: Draw, rank: int, dtypes: Sequence[str], scalars: dict[str, Any], **options: Any) -> None:
        super().__init__(draw, rank, [], scalars, (0,) * rank, (0,) * rank, **options)
        self.dtypes = dtypes
        self.arrays: list[Arr] = []
        self.target: Arr | None = None
        self.selector: Operator | None = None
        self.size: Grow = (0,) * rank

    def array(self, prefix: str, grow: Grow, fits: Callable[[Arr], bool], *, positive: bool = False) -> Arr:
        """One of that size that fits, or a new one."""
        known = [a for a in self.arrays if a.grow == grow and fits(a)]
        if known and (len(self.arrays) > 5 or self.pick(True, True, False)):
            return self.pick(*known)
        captured = prefix != "q" and self.draw(st.integers(0, 4)) == 4
        name = f"{'G' if captured else prefix}{len(self.arrays)}"
        dims: tuple[int | None, ...] = tuple(range(self.rank))
        new = Arr(name, dims, self.pick(*self.dtypes), positive, captured, prefix == "q", grow=grow)
        self.arrays.append(new)
        self.bounds[name] = 2.0
        return new

    def leaf(self) -> Expr:
        assert self.target is not None
        assert self.selector is not None
        target, selector = self.target, self.selector
        floats = list(self.scalars)
        kind = self.pick(*["operator"] * 4, "own", "constant", *["scalar"] * bool(floats), "few", "nested")
        if kind == "constant":
            value = self.pick(2.0, 2, 0.5, -1.0)
            return Expr(f"({value})" if value < 0 else str(value), abs(value))
        if kind == "scalar":
            return Expr(self.pick(*floats), 2)
        if kind == "few":
            lam = next((a for a in self.arrays if a.dims == (None,)), None)
            if lam is None:
                lam = Arr("lam", (None,), self.pick(*self.dtypes), grow=(0,))
                self.arrays.append(lam)
            return Expr(f"lam[{self.pick(0, 2)}]", 2)
        if kind == "own":
            form = self.pick("fd.{1}({0})", "{0}[fd.{1}]")
            return Expr(form.format(target.name, selector.name), self.bounds[target.name])
        return self.nested() if kind == "nested" else self.operator()

    def nested(self) -> Expr:
        """An operator on an expression of operators."""
        op = self.draw(st.sampled_from([op for op in operators(self.rank) if op.combine != "harm"]))
        size = self.size
        self.size = tuple(s + cut for s, cut in zip(size, op.loss(self.rank), strict=True))
        a = self.operator()
        b = self.operator() if self.pick(False, True) else Expr("2", 2)
        self.size = size
        return Expr(f"fd.{op.name}({a.text} * {b.text})", weight(op, self.rank) * a.bound * b.bound)

    def operator(self) -> Expr:
        """An operator on an array."""
        target = self.target
        assert target is not None
        op = self.draw(st.sampled_from(operators(self.rank)))
        grow = tuple(s + cut for s, cut in zip(self.size, op.loss(self.rank), strict=True))
        harmonic = op.combine == "harm"
        a = self.array(
            "P" if harmonic else "T",
            grow,
            lambda a: a.name != target.name and (a.positive if harmonic else True) and a.dims != (None,),
            positive=harmonic,
        )
        return Expr(f"fd.{op.name}({a.name})", weight(op, self.rank) * self.bounds[a.name])

    def statement(self, depth: int, indent: str) -> list[str]:
        selectors = [op for op in operators(self.rank) if op.selector]
        self.selector = self.draw(st.sampled_from(selectors))
        self.size = tuple(self.draw(st.integers(0, 1)) for _ in range(self.rank))
        grow = tuple(s + 2 * o for s, o in zip(self.size, self.selector.offsets(self.rank), strict=True))
        self.target = self.array("q", grow, lambda a: a.written)
        name, bound = self.target.name, self.bounds[self.target.name]
        e = self.expr(2)
        op = self.pick("=", "=", "+=")
        grown = e.bound + (bound if op == "+=" else 0)
        if grown > 1e4:
            e, op, grown = Expr(f"np.tanh({e.text})", 1), "=", 1
        self.bounds[name] = max(grown, bound)
        return [f"{indent}{name}[fd.{self.selector.name}] {op} {e.text}"]


@st.composite
def statement_cases(draw: Draw) -> Case:
    """A kernel of one to four statements."""
    rank = draw(st.sampled_from([1, 1, 2, 2, 3]))
    dtypes = draw(st.sampled_from([["float64"], ["float32"], ["float64", "float32"]]))
    scalars: dict[str, Any] = {}
    for name, value in (("a", 0.75), ("b", -1.25)):
        if draw(st.booleans()):
            scalars[name] = value
    helpers, head = [], ""
    if draw(st.integers(0, 2)) == 2:
        head, helper = draw(helper_functions([]))
        helpers.append(helper)
    body = Statements(draw, rank, dtypes, scalars, helpers=helpers)
    lines = [line for _ in range(draw(st.integers(1, 4))) for line in body.statement(0, "    ")]
    parameters = [a.name for a in body.arrays if not a.captured] + list(scalars)
    head = head if any("helper(" in line for line in lines) else ""
    text = "\n".join([f"{head}def kernel({', '.join(parameters)}):", *lines, ""])
    arrays, used = used_only(body.arrays, scalars, text)
    more = {1: 9, 2: 3, 3: 1}[rank]
    return Case(
        text,
        tuple(arrays),
        tuple(used.items()),
        tuple(1 + draw(st.integers(0, more)) for _ in range(rank)),
        draw(st.integers(0, 2**16)),
        draw(st.booleans()),
        tuple(parameters),
        tuple(draw(st.sampled_from(LAYOUTS)) for _ in range(3)),
    )
