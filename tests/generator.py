"""Random point kernels for Hypothesis: Python text, and arguments for any size.

A :class:`Case` is a kernel without races and without accesses outside its arrays, whose values stay finite:
:func:`point_cases`. ``tests/generator_fd.py`` has kernels of ``irad.fd`` statements, ``tests/generator_bad.py`` kernels
that must be refused.

A kernel has one axis or up to three. Each array has *dims*: the axis of each of its dimensions, or ``None`` for one
that is indexed by a constant. So ``(0, 1)`` is a field ``A[i, j]``, ``(1, 0)`` a transposed one, ``(1,)`` a line
``A[j]``, ``(None,)`` a few numbers ``A[2]``, ``(0, None)`` a field of components. What is drawn first is simplest, so
that failing examples shrink to short kernels.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

Draw = Callable[..., Any]

FEW = 3
"""The extent of a dimension that is indexed by constants."""

BOUND = 1e4
"""Expressions whose absolute value could be larger are squeezed."""

AXES = "ijk"

_numbers = itertools.count()


@dataclass(frozen=True)
class Arr:
    """An array of a kernel. ``grow``: how much larger than the extent of its axis each dimension is."""

    name: str
    dims: tuple[int | None, ...]
    dtype: str = "float64"
    positive: bool = False
    captured: bool = False
    written: bool = False
    offset: tuple[int, ...] = ()
    grow: tuple[int, ...] = ()

    def shape(self, extents: Sequence[int]) -> tuple[int, ...]:
        grow = self.grow or (0,) * len(self.dims)
        return tuple(FEW if d is None else extents[d] + g for d, g in zip(self.dims, grow, strict=True))

    @property
    def floating(self) -> bool:
        return self.dtype.startswith("float")


@dataclass(frozen=True)
class Case:
    """A kernel as text, and what its parameters are. ``scalars``: name to value; ``extents``: of the axes."""

    text: str
    arrays: tuple[Arr, ...]
    scalars: tuple[tuple[str, Any], ...]
    extents: tuple[int, ...]
    seed: int
    grid: bool
    parameters: tuple[str, ...]
    layouts: tuple[str, ...] = ()
    exact: bool = False
    shared: bool = False
    """Whether two arrays that are only read, of one shape and type, are one object."""

    def __repr__(self) -> str:
        arrays = ", ".join(f"{a.name}: {a.dtype}{list(a.shape(self.extents))}" for a in self.arrays)
        scalars = ", ".join(f"{name} = {value!r}" for name, value in self.scalars)
        last = f"extents {self.extents}, seed {self.seed}, {self.layouts}{', shared' * self.shared}"
        return f"\n{self.text}\n# {arrays}\n# {scalars}\n# {last}\n"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def values(self, extents: Sequence[int] | None = None, layouts: Sequence[str] = ()) -> dict[str, Any]:
        """Fresh arguments and captured values by name."""
        rng = np.random.default_rng(self.seed)
        given: dict[str, Any] = dict(self.scalars)
        known: dict[Any, str] = {}
        for k, a in enumerate(self.arrays):
            twin = known.setdefault((a.dims, a.dtype, a.grow, a.positive, a.written), a.name)
            if self.shared and not a.written and twin in given:
                given[a.name] = given[twin]
                continue
            values = random_values(rng, a, a.shape(self.extents if extents is None else extents), self.grid)
            given[a.name] = laid_out(values, layouts[k % len(layouts)] if layouts else "C", readonly=not a.written)
        return given

    def function(self, values: dict[str, Any]) -> Any:
        """The Python function, in a module of its own that holds the captured values."""
        import irad

        filename = f"<random kernel {next(_numbers)}>"
        linecache.cache[filename] = (len(self.text), None, self.text.splitlines(keepends=True), filename)
        namespace: dict[str, Any] = {"__name__": "random_kernel", "np": np, "irad": irad}
        namespace.update((name, value) for name, value in values.items() if name not in self.parameters)
        exec("import math\nimport irad.fd as fd\n", namespace)
        exec(compile(self.text, filename, "exec"), namespace)
        return namespace["kernel"]

    @property
    def stored(self) -> list[str]:
        """Names of the floating-point arrays that the text assigns."""
        found = {
            node.value.id
            for node in ast.walk(ast.parse(self.text))
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
        }
        return [a.name for a in self.arrays if a.name in found and a.floating]

    @property
    def edges(self) -> list[tuple[int, ...]]:
        """Sizes with nothing or little in them."""
        rank = len(self.extents)
        return [(0,) * rank, (1,) * rank, tuple(max(n - 1, 0) for n in self.extents), (2,) * rank]

    @property
    def large(self) -> tuple[int, ...]:
        """A size that takes several tiles, and so may run on several threads."""
        return {1: (60_007,), 2: (211, 157), 3: (31, 29, 37)}[len(self.extents)]

    def arguments(self, values: dict[str, Any]) -> list[Any]:
        return [values[name] for name in self.parameters]

    @property
    def differentiable(self) -> list[str]:
        """Names of arrays and scalars that can carry a derivative."""
        arrays = [a.name for a in self.arrays if a.floating]
        return arrays + [name for name, value in self.scalars if isinstance(value, (float, np.floating))]


def random_values(rng: Any, a: Arr, shape: tuple[int, ...], grid: bool) -> Any:
    """Entries of an array: in [0.5, 2] where positive, else in [-2, 2]; on a grid of multiples of 1/8, with ties."""
    if not a.floating:
        return rng.integers(0, 3, shape).astype(a.dtype)
    values = rng.uniform(0.5 if a.positive else -2.0, 2.0, shape)
    return (np.round(values * 8) / 8 if grid else values).astype(a.dtype)


# layouts -------------------------------------------------------------------------------------------------------------

LAYOUTS = ("C", "F", "strided", "negative", "sliced", "swapped", "broadcast")


def laid_out(values: Any, layout: str, *, readonly: bool = False) -> Any:
    """The same entries (of a broadcast array: those of its first row), elsewhere in memory."""
    if layout == "F":
        return np.asfortranarray(values)
    if layout == "strided":
        base = np.full([2 * n + 1 for n in values.shape], 77, values.dtype)
        view = base[tuple(slice(1, None, 2) for _ in values.shape)]
    elif layout == "negative":
        base = np.full(values.shape, 77, values.dtype)
        view = base[tuple(slice(None, None, -1) for _ in values.shape)]
    elif layout == "sliced":
        base = np.full([n + 3 for n in values.shape], 77, values.dtype)
        view = base[tuple(slice(2, 2 + n) for n in values.shape)]
    elif layout == "swapped":
        base = np.full(values.shape[1:] + values.shape[:1], 77, values.dtype)
        view = np.moveaxis(base, -1, 0)
    elif layout == "broadcast" and readonly and values.ndim and values.shape[0]:
        return np.broadcast_to(values[:1].copy(), values.shape)
    else:
        return values.copy()
    view[...] = values
    return view


# expressions ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expr:
    """Text, and a bound of its absolute value."""

    text: str
    bound: float


FUNCTIONS: tuple[tuple[str, Callable[[float], float]], ...] = (
    ("np.sin({})", lambda b: 1),
    ("np.cos({})", lambda b: 1),
    ("np.tanh({})", lambda b: 1),
    ("abs({})", lambda b: b),
    ("np.sqrt({0} * {0} + 0.5)", lambda b: b + 1),
    ("np.exp(-np.abs({}))", lambda b: 1),
    ("np.log({0} * {0} + 1.0)", lambda b: b + 1),
    ("np.arctan({})", lambda b: 1.6),
    ("math.erf({})", lambda b: 1),
    ("math.exp(math.sin({}))", lambda b: 3),
    ("np.arctan2({}, 1.5)", lambda b: 3.2),
    ("np.hypot({}, 0.75)", lambda b: b + 1),
    ("math.log1p(abs({}))", lambda b: b),
    ("np.cbrt({0} * {0} + 1.0)", lambda b: b + 1),
    ("np.sinh(np.sin({}))", lambda b: 1.2),
    ("({0} * {0} + 0.25) ** 0.75", lambda b: (b + 1) ** 1.5),
    ("1.5 ** np.sin({})", lambda b: 1.5),
    ("-{}", lambda b: b),
)

CONSTANTS = (1.0, 2, 0.5, -1.0, 0.1, 3, -0.75)


class Body:
    """Writes the statements of a kernel. ``low``, ``high``: how far from the domain each axis may be read."""

    kinds: tuple[str, ...] = ("leaf", "+", "-", "*", "*", "function", "/", "choice", "minmax", "power", "call", "cast")

    def __init__(
        self,
        draw: Draw,
        rank: int,
        arrays: Sequence[Arr],
        scalars: dict[str, Any],
        low: Sequence[int],
        high: Sequence[int],
        *,
        helpers: Sequence[tuple[str, int, float]] = (),
        guarded: bool = False,
    ) -> None:
        self.draw, self.rank, self.scalars = draw, rank, scalars
        self.low, self.high, self.helpers, self.guarded = low, high, helpers, guarded
        self.read_only = [a for a in arrays if a.floating and not a.written]
        self.masks = [a for a in arrays if not a.floating]
        self.written = [a for a in arrays if a.written]
        self.bounds = {a.name: 2.0 for a in arrays}
        self.temps: dict[str, float] = {}
        self.made = self.stores = 0

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    # places

    def index(self, a: Arr, offsets: Sequence[int]) -> str:
        entries = []
        for d in a.dims:
            if d is None:
                entries.append(str(self.draw(st.integers(-1, FEW - 1)) if not a.written else FEW - 1))
            else:
                o = offsets[d]
                entries.append(f"{AXES[d]}{o:+d}" if o else AXES[d])
        return f"{a.name}[{', '.join(entries)}]"

    def own(self, a: Arr) -> str:
        """The one entry of a written array that belongs to the point."""
        return self.index(a, a.offset or (0,) * self.rank)

    def read(self, a: Arr) -> str:
        offsets = [self.draw(st.sampled_from(self._offsets(d))) if d in a.dims else 0 for d in range(self.rank)]
        return self.index(a, offsets)

    def _offsets(self, axis: int) -> list[int]:
        return sorted(range(-self.low[axis], self.high[axis] + 1), key=lambda o: (abs(o), o))

    def guarded_read(self, a: Arr) -> str:
        """A neighbour where there is one: ``A[i+1] if i < A.shape[0] - 1 else ...``."""
        axes = [d for d in a.dims if d is not None]
        axis = self.pick(*axes)
        here = [0] * self.rank
        there = list(here)
        there[axis] = self.pick(1, -1)
        at = AXES[axis]
        test = f"{at} > 0" if there[axis] < 0 else f"{at} < {a.name}.shape[{a.dims.index(axis)}] - 1"
        other = self.pick(self.index(a, here), "0.5")
        return f"({self.index(a, there)} if {test} else {other})"

    # expressions

    def leaf(self) -> Expr:
        kinds = ["constant"]
        floats = [n for n, v in self.scalars.items() if isinstance(v, (float, np.floating))]
        ints = [n for n, v in self.scalars.items() if type(v) is int]
        if self.read_only:
            kinds += ["array"] * 6
            if self.guarded:
                kinds += ["guarded"] * 2
        if floats:
            kinds += ["scalar"]
        if self.temps:
            kinds += ["temp"] * 3
        if self.written:
            kinds += ["own"] * 2
        kinds += ["index"]
        if ints:
            kinds += ["int"]
        kind = self.pick(*kinds)
        if kind == "constant":
            value = self.pick(*CONSTANTS)
            return Expr(f"({value})" if value < 0 else str(value), abs(value))
        if kind == "array":
            a = self.pick(*self.read_only)
            return Expr(self.read(a), 2)
        if kind == "guarded":
            fields = [a for a in self.read_only if any(d is not None for d in a.dims)]
            if not fields:
                return Expr("1.0", 1)
            return Expr(self.guarded_read(self.pick(*fields)), 2)
        if kind == "scalar":
            return Expr(self.pick(*floats), 2)
        if kind == "temp":
            name = self.pick(*self.temps)
            return Expr(name, self.temps[name])
        if kind == "own":
            a = self.pick(*self.written)
            return Expr(self.own(a), self.bounds[a.name])
        if kind == "int":
            return Expr(self.pick(*ints), 4)
        axis = self.pick(*AXES[: self.rank])
        return Expr(self.pick(f"0.001 * {axis}", f"{axis} % 3", f"({axis} // 2) % 2"), 30)

    def expr(self, depth: int) -> Expr:
        e = self._expr(depth)
        return e if e.bound <= BOUND else Expr(f"np.tanh({e.text})", 1)

    def _expr(self, depth: int) -> Expr:
        if depth <= 0:
            return self.leaf()
        kind = self.pick(*self.kinds)
        if kind == "leaf":
            return self.leaf()
        a = self.expr(depth - 1)
        if kind == "function":
            template, bound = self.pick(*FUNCTIONS)
            return Expr(f"({template.format(wrapped(a.text))})", bound(a.bound))
        if kind == "power":
            n = self.pick(2, 3, 1, 0)
            if a.bound > 20:
                return a
            return Expr(f"{wrapped(a.text)} ** {n}", max(a.bound, 1) ** n)
        if kind == "cast":
            return Expr(self.pick(f"float({a.text})", f"np.float64({a.text})"), a.bound)
        b = self.expr(depth - 1)
        if kind in "+-":
            return Expr(f"({a.text} {kind} {b.text})", a.bound + b.bound)
        if kind == "*":
            return Expr(f"{wrapped(a.text)} * {wrapped(b.text)}", a.bound * b.bound)
        if kind == "/":
            b = wrapped(b.text)
            return Expr(f"{wrapped(a.text)} / ({self.pick(1.5, 2)} + {b} * {b})", a.bound)
        if kind == "minmax":
            f = self.pick("min", "max", "np.minimum", "np.maximum")
            return Expr(f"{f}({a.text}, {b.text})", max(a.bound, b.bound))
        if kind == "choice":
            return Expr(f"({a.text} if {self.condition(1)} else {b.text})", max(a.bound, b.bound))
        if not self.helpers:
            return a
        name, arity, bound = self.pick(*self.helpers)
        arguments = [f"np.tanh({e.text})" if e.bound > 10 else e.text for e in (a, b)]
        return Expr(f"{name}({', '.join(arguments[:arity])})", bound)

    def condition(self, depth: int) -> str:
        kinds = ["data", "index"]
        flags = [n for n, v in self.scalars.items() if isinstance(v, bool)]
        kinds += ["flag"] * bool(flags) + ["mask"] * bool(self.masks)
        kinds += ["not", "and", "or", "chain", "equal"] * (depth > 0)
        kind = self.pick(*kinds)
        if kind == "data":
            return f"{self.leaf().text} {self.pick('>', '<', '>=', '<=')} {self.pick(0.25, 0, '0.5')}"
        if kind == "equal":
            return f"{self.leaf().text} {self.pick('==', '!=')} {self.pick(0.5, 1)}"
        if kind == "chain":
            return f"-1 < {self.leaf().text} <= {self.pick(0.5, 1)}"
        if kind == "flag":
            return str(self.pick(*flags))
        if kind == "mask":
            a = self.pick(*self.masks)
            entry = self.index(a, [0] * self.rank)
            return entry if a.dtype == "bool" else f"{entry} == 1"
        if kind == "index":
            axis = self.pick(*AXES[: self.rank])
            tests = [f"{axis} < 3", f"{axis} % 2 == 0", f"{axis} > 1", f"{axis} == 2"]
            if self.rank > 1:
                tests.append("i < j")
            return str(self.pick(*tests))
        if kind == "not":
            return f"not ({self.condition(depth - 1)})"
        return f"({self.condition(depth - 1)}) {kind} ({self.condition(depth - 1)})"

    # statements

    def block(self, most: int, depth: int, indent: str) -> list[str]:
        lines: list[str] = []
        for _ in range(self.draw(st.integers(1, most))):
            lines += self.statement(depth, indent)
        return lines

    def statement(self, depth: int, indent: str) -> list[str]:
        kinds = ["store", "store", "temp", "update"]
        if self.temps:
            kinds += ["again"]
        if depth > 0:
            kinds += ["if", "if else", "loop"]
        kind = self.pick(*kinds)
        if kind in ("store", "update"):
            self.stores += 1
            a = self.pick(*self.written)
            e = self.expr(2)
            op = "=" if kind == "store" else self.pick("+=", "*=", "-=")
            grown = {"=": e.bound, "*=": e.bound * self.bounds[a.name]}.get(op, e.bound + self.bounds[a.name])
            if grown > BOUND:
                e, op, grown = Expr(f"np.tanh({e.text})", 1), "=", 1
            self.bounds[a.name] = grown
            return [f"{indent}{self.own(a)} {op} {e.text}"]
        if kind == "temp":
            e = self.expr(2)
            name = f"t{self.made}"
            self.made += 1
            self.temps[name] = e.bound
            return [f"{indent}{name} = {e.text}"]
        if kind == "again":
            name = self.pick(*self.temps)
            e = self.expr(1)
            self.temps[name] = self.temps[name] + e.bound
            if self.temps[name] > BOUND:
                self.temps[name] = 1
                return [f"{indent}{name} = np.tanh({e.text})"]
            return [f"{indent}{name} {self.pick('+=', '-=')} {e.text}"]
        if kind == "loop":
            return self._loop(indent)
        before, bounds = dict(self.temps), dict(self.bounds)
        head = f"{indent}if {self.condition(1)}:"
        lines = [head, *self.block(2, depth - 1, indent + "    ")]
        then, then_bounds = self.temps, self.bounds
        self.temps, self.bounds = dict(before), dict(bounds)
        if kind == "if else":
            lines += [f"{indent}else:", *self.block(2, depth - 1, indent + "    ")]
        both = set(then) & set(self.temps)
        self.temps = {n: max(then[n], self.temps[n]) for n in self.temps if n in both}
        self.bounds = {n: max(then_bounds[n], self.bounds[n]) for n in bounds}
        return lines

    def rest(self, indent: str) -> list[str]:
        """A last statement that uses all local variables; one in any case if nothing has been assigned."""
        if not self.temps:
            return [] if self.stores else [f"{indent}{self.own(self.pick(*self.written))} = {self.expr(1).text}"]
        return [f"{indent}{self.own(self.pick(*self.written))} += {' + '.join(self.temps)}"]

    def _loop(self, indent: str) -> list[str]:
        """A short loop over constants, with the loop's variable in an index where an array allows it."""
        name = f"t{self.made}"
        self.made += 1
        axis = self.draw(st.integers(0, self.rank - 1))
        wide = [a for a in self.read_only if a.dims.count(axis) == 1 and a.dims[a.dims.index(axis)] is not None]
        first, last = -self.low[axis], self.high[axis]
        if wide and first < last:
            a = self.pick(*wide)
            entries = [str(0) if d is None else f"{AXES[d]} + m" if d == axis else AXES[d] for d in a.dims]
            term, bound = f"{a.name}[{', '.join(entries)}] * {self.pick('0.5', 'm')}", 4.0
        else:
            e = self.leaf()
            first, last, term, bound = 0, 2, f"m * {e.text}", 2 * e.bound
        self.temps[name] = 6 * bound + 1
        return [
            f"{indent}{name} = {self.pick('0.0', '1.0')}",
            f"{indent}for m in range({first}, {last + 1}):",
            f"{indent}    {name} += {term}",
        ]


def wrapped(text: str) -> str:
    """In parentheses, unless it is a name, a number or an index."""
    plain = all(c.isalnum() or c in "_." for c in text) or (text.endswith("]") and " " not in text.split("[")[0])
    return text if plain and "*" not in text else f"({text})"


# whole kernels -------------------------------------------------------------------------------------------------------


def used_only(arrays: Sequence[Arr], scalars: dict[str, Any], text: str) -> tuple[list[Arr], dict[str, Any]]:
    """Without what would be captured and does not stand in the text."""
    words = set(re.findall(r"\w+", text))
    return [a for a in arrays if a.name in words], {n: v for n, v in scalars.items() if n in words}


@st.composite
def helper_functions(draw: Draw, captured: Sequence[str]) -> tuple[str, tuple[str, int, float]]:
    """A helper of one or two numbers, which may capture floats."""
    arity = draw(st.integers(1, 2))
    names = ["x", "y"][:arity]
    body = Body(draw, 0, [], {}, (), ())
    body.temps = dict.fromkeys([*names, *captured], 10.0)

    def leaf() -> Expr:
        return Expr(draw(st.sampled_from([*names, *names, *captured, "0.5", "2"])), 10.0)

    body.leaf = leaf  # type: ignore[method-assign]
    body.condition = lambda depth: f"{leaf().text} > {leaf().text}"  # type: ignore[method-assign]
    first = body.expr(2)
    lines = ["@irad.device", f"def helper({', '.join(names)}):"]
    if draw(st.booleans()):
        other = body.expr(1)
        lines += [f"    if {body.condition(0)}:", f"        return {other.text}"]
        first = Expr(first.text, max(first.bound, other.bound))
    lines += [f"    return {first.text}", "", ""]
    return "\n".join(lines), ("helper", arity, first.bound)


@st.composite
def array_dims(draw: Draw, rank: int) -> tuple[int | None, ...]:
    """How a read-only array is indexed."""
    field_dims: tuple[int | None, ...] = tuple(range(rank))
    choices: list[tuple[int | None, ...]] = [field_dims] * 6 + [(None,)] * 2
    if rank > 1:
        choices += [tuple(reversed(range(rank))), (rank - 1,), (0,)]
    if rank < 4:
        choices += [(*field_dims, None)]
    return draw(st.sampled_from(choices))


@st.composite
def point_cases(draw: Draw, *, single: bool | None = None) -> Case:
    """A point kernel. ``single``: whether float32 arrays take part (``None``: some)."""
    rank = draw(st.sampled_from([1, 1, 2, 2, 3]))
    dtypes = {None: ["float64", "float64", "float32"], True: ["float32"], False: ["float64"]}[single]
    if single is None:
        dtypes = draw(st.sampled_from([["float64"], ["float32"], dtypes]))
    form = draw(st.sampled_from(["interior", "points", "domain"]))
    width = draw(st.integers(1, 2))
    if form == "interior":
        low, high = [width] * rank, [width] * rank
    elif form == "points":
        low, high = [draw(st.sampled_from([0, 1, 2]))] * rank, [0] * rank
    else:
        low = [draw(st.integers(0, 2)) for _ in range(rank)]
        high = [draw(st.integers(0, 2)) for _ in range(rank)]
    dims: tuple[int | None, ...] = tuple(range(rank))
    arrays: list[Arr] = []
    for k in range(draw(st.integers(1, 2))):
        own: tuple[int | None, ...] = dims
        if draw(st.integers(0, 9)) == 9:
            own = (*dims, None)
        offset = tuple(draw(st.integers(0, min(1, h))) if form != "points" else 0 for h in high)
        arrays.append(Arr(f"q{k}", own, draw(st.sampled_from(dtypes)), written=True, offset=offset))
    for k in range(draw(st.integers(1, 3))):
        captured = draw(st.sampled_from([False, False, False, True]))
        shape = draw(array_dims(rank)) if k else dims
        arrays.append(Arr(f"{'G' if captured else 'T'}{k}", shape, draw(st.sampled_from(dtypes)), captured=captured))
    if draw(st.integers(0, 3)) == 3:
        arrays.append(Arr("mask", dims, draw(st.sampled_from(["int64", "bool", "int32"]))))
    scalars: dict[str, Any] = {}
    for name, value in (("a", 0.75), ("b", -1.25), ("n", 2), ("flag", True), ("s", np.float64(0.3)), ("c", 1.5)):
        if draw(st.integers(0, 2)) == 2:
            scalars[name] = value
    captured_floats = [n for n in ("c",) if n in scalars]
    helpers, head = [], ""
    if draw(st.integers(0, 2)) == 2:
        head, helper = draw(helper_functions(captured_floats))
        helpers.append(helper)
    body = Body(draw, rank, arrays, scalars, low, high, helpers=helpers, guarded=form == "points")
    lines = [*body.block(4, 2, "    "), *body.rest("    ")]
    names = ", ".join(AXES[:rank])
    ref = arrays[0].name if arrays[0].dims == dims else next(a.name for a in arrays if a.dims == dims)
    if form == "interior":
        call = f"irad.interior({ref})" if width == 1 else f"irad.interior({ref}, {width})"
    elif form == "points":
        call = f"irad.points({ref})"
    else:
        pairs = [f"({low[d]}, {ref}.shape[{d}]{f' - {high[d]}' if high[d] else ''})" for d in range(rank)]
        call = f"irad.domain({', '.join(pairs)})"
    parameters = [a.name for a in arrays if not a.captured] + [n for n in scalars if n not in captured_floats]
    order = draw(st.permutations(parameters)) if draw(st.booleans()) else parameters
    head = head if any("helper(" in line for line in lines) else ""
    text = "\n".join([f"{head}def kernel({', '.join(order)}):", f"    {names} = {call}", *lines, ""])
    more = {1: 9, 2: 4, 3: 2}[rank]
    arrays, used = used_only(arrays, scalars, text)
    extents = tuple(lo + hi + 1 + draw(st.integers(0, more)) for lo, hi in zip(low, high, strict=True))
    return Case(
        text,
        tuple(arrays),
        tuple(used.items()),
        extents,
        draw(st.integers(0, 2**16)),
        draw(st.booleans()),
        tuple(order),
        tuple(draw(st.sampled_from(LAYOUTS)) for _ in range(3)),
        exact=all(a.dtype != "float32" for a in arrays),
        shared=draw(st.integers(0, 4)) == 4,
    )
