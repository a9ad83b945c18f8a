"""The small IR: functions of basic blocks of instructions, close to LLVM's, plus a few words for arrays.

Types are LLVM's own spelling (``"double"``, ``"i64"``, ``"ptr"``), values compare by identity, and a function is a
mutable graph: a pass that must not change its input starts with :meth:`Function.clone`.

Beside LLVM's instructions, a *point function* (``passes/affine.py`` makes one) uses structured memory operations, so
that no later pass ever looks at an address:

========== ============================ =====================================================================
op         operands                     meaning
========== ============================ =====================================================================
``aload``  ``[index, ...]``             the element of the array parameter ``array`` at these indices
``astore`` ``[value, index, ...]``      write that element
``sload``  ``[index, ...]``             the element of the *shadow* of ``array``
``sstore`` ``[value, index, ...]``      write the element of the shadow
``accum``  ``[value, index, ...]``      add ``value`` to the shadow of ``array`` at these indices
``accums`` ``[value]``                  add ``value`` to the cotangent of the scalar parameter ``array``
``iwrap``  ``[x, n]``                   ``x + n if x < 0 else x``: Python's negative index
========== ============================ =====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Loc:
    """A place in the user's source."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class LinExpr:
    """An integer that is the same for all points of a launch: ``const + sum(coeff * name)``.

    Names are those of integer scalar parameters (``"k"``) and extents (``"T.n0"``).
    """

    const: int = 0
    terms: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def of(const: int = 0, terms: dict[str, int] | None = None) -> LinExpr:
        return LinExpr(const, tuple(sorted((k, v) for k, v in (terms or {}).items() if v)))

    def __add__(self, other: LinExpr | int) -> LinExpr:
        if isinstance(other, int):
            return LinExpr(self.const + other, self.terms)
        terms = dict(self.terms)
        for k, v in other.terms:
            terms[k] = terms.get(k, 0) + v
        return LinExpr.of(self.const + other.const, terms)

    def __neg__(self) -> LinExpr:
        return LinExpr(-self.const, tuple((k, -v) for k, v in self.terms))

    def __sub__(self, other: LinExpr | int) -> LinExpr:
        return self + (-other)

    @property
    def is_const(self) -> bool:
        return not self.terms

    def evaluate(self, names: dict[str, int]) -> int:
        return self.const + sum(c * names[k] for k, c in self.terms)

    def __str__(self) -> str:
        parts = [f"{'' if c == 1 else '-' if c == -1 else f'{c}*'}{k}" for k, c in self.terms]
        if self.const or not parts:
            parts.append(str(self.const))
        return " + ".join(parts).replace("+ -", "- ")


@dataclass(frozen=True)
class Index:
    """One dimension of an access: ``point[axis] + offset`` (``axis is None``: ``offset`` alone).

    ``wraps``: the user's index may be negative and then counts from the end (an ``iwrap`` stands in the IR).
    """

    axis: int | None
    offset: LinExpr
    wraps: bool = False


@dataclass(frozen=True)
class Bounds:
    """What is known of one index of the point: not below any of ``lo``, below each of ``hi``, none of ``holes``."""

    lo: tuple[LinExpr, ...] = ()
    hi: tuple[LinExpr, ...] = ()
    holes: tuple[LinExpr, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known."""
        return not (self.lo or self.hi or self.holes)


@dataclass(frozen=True)
class Access:
    """Where one ``aload``/``astore``/``accum`` touches its array, as a function of the point.

    ``guard``: per point axis, bounds outside which the access is not executed, proved from the branches that lead to
    it, and behind them bounds on 0: conditions that are the same for all points; empty if there are none.
    ``always``: executed at every point of the domain.
    """

    array: str
    dims: tuple[Index, ...]
    guard: tuple[Bounds, ...] = ()
    always: bool = True

    @property
    def axes(self) -> tuple[int | None, ...]:
        return tuple(d.axis for d in self.dims)

    @property
    def is_invariant(self) -> bool:
        """The same element at every point, as in ``lam[0]``."""
        return all(d.axis is None for d in self.dims)


class Value:
    """Anything an instruction can take as an operand."""

    __slots__ = ("name", "type")

    def __init__(self, type: str, name: str = "") -> None:
        self.type = type
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.type} %{self.name or hex(id(self))}>"


class Const(Value):
    """A literal in LLVM's spelling: ``1.000000e+00``, ``0x3FF0000000000000``, ``-3``, ``true``, ``null``, ``undef``."""

    __slots__ = ("text",)

    def __init__(self, type: str, text: str) -> None:
        super().__init__(type)
        self.text = text

    def __repr__(self) -> str:
        return f"<{self.type} {self.text}>"


class Global(Const):
    """The address of a constant global; ``definition`` is the LLVM text after ``@name =``."""

    __slots__ = ("definition",)

    def __init__(self, text: str, definition: str) -> None:
        super().__init__("ptr", text)
        self.definition = definition


class Arg(Value):
    """A parameter of a function. ``attrs`` are LLVM parameter attributes, such as ``noalias``."""

    __slots__ = ("attrs",)

    def __init__(self, type: str, name: str, attrs: tuple[str, ...] = ()) -> None:
        super().__init__(type, name)
        self.attrs = attrs


@dataclass(eq=False, repr=False, init=False)
class Instr(Value):
    """One instruction; also the value it produces (``type == "void"``: none).

    ``targets`` are the successors of ``br`` (true, false) and ``switch`` (default first, then one a case) and the
    incoming blocks of ``phi``. ``elem`` is the allocated type of ``alloca`` and the source type of ``getelementptr``.
    """

    op: str
    operands: list[Value]
    flags: tuple[str, ...] = ()
    pred: str = ""
    callee: str = ""
    elem: str = ""
    align: int = 0
    indices: tuple[int, ...] = ()
    targets: list[Block] = field(default_factory=list)
    cases: tuple[int, ...] = ()
    array: str = ""
    access: Access | None = None
    loc: Loc | None = None
    block: Block | None = None

    def __init__(
        self,
        op: str,
        type: str,
        operands: list[Value] | None = None,
        *,
        name: str = "",
        flags: tuple[str, ...] = (),
        pred: str = "",
        callee: str = "",
        elem: str = "",
        align: int = 0,
        indices: tuple[int, ...] = (),
        targets: list[Block] | None = None,
        cases: tuple[int, ...] = (),
        array: str = "",
        access: Access | None = None,
        loc: Loc | None = None,
    ) -> None:
        super().__init__(type, name)
        self.op, self.operands = op, list(operands or [])
        self.flags, self.pred, self.callee, self.elem, self.align = flags, pred, callee, elem, align
        self.indices, self.targets, self.cases = indices, list(targets or []), cases
        self.array, self.access, self.loc, self.block = array, access, loc, None

    def __repr__(self) -> str:
        return f"<{self.type} {self.op}{' ' + self.callee if self.callee else ''} %{self.name or hex(id(self))}>"

    def copy(self, value: Callable[[Value], Value], block: Callable[[Block], Block]) -> Instr:
        """The same instruction over mapped operands and blocks."""
        return Instr(
            self.op,
            self.type,
            [value(v) for v in self.operands],
            name=self.name,
            flags=self.flags,
            pred=self.pred,
            callee=self.callee,
            elem=self.elem,
            align=self.align,
            indices=self.indices,
            targets=[block(b) for b in self.targets],
            cases=self.cases,
            array=self.array,
            access=self.access,
            loc=self.loc,
        )


class Block:
    """A straight run of instructions that ends in a terminator (``br``, ``switch``, ``ret``, ``unreachable``)."""

    __slots__ = ("instrs", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.instrs: list[Instr] = []

    def append(self, instr: Instr) -> Instr:
        instr.block = self
        self.instrs.append(instr)
        return instr

    def insert(self, position: int, instr: Instr) -> Instr:
        instr.block = self
        self.instrs.insert(position, instr)
        return instr

    @property
    def terminator(self) -> Instr:
        return self.instrs[-1]

    @property
    def successors(self) -> list[Block]:
        return self.terminator.targets

    @property
    def phis(self) -> list[Instr]:
        return [i for i in self.instrs if i.op == "phi"]

    def __repr__(self) -> str:
        return f"<block {self.name}>"


class Function:
    """``name``, return type, parameters and blocks (the first is the entry); ``attrs`` as in ``alwaysinline``."""

    __slots__ = ("args", "attrs", "blocks", "linkage", "name", "type")

    def __init__(
        self, name: str, type: str, args: list[Arg], *, attrs: tuple[str, ...] = (), linkage: str = ""
    ) -> None:
        self.name, self.type, self.args, self.attrs, self.linkage = name, type, list(args), attrs, linkage
        self.blocks: list[Block] = []

    def block(self, name: str) -> Block:
        """Append an empty block."""
        b = Block(name)
        self.blocks.append(b)
        return b

    def arg(self, name: str) -> Arg:
        for a in self.args:
            if a.name == name:
                return a
        raise KeyError(name)

    def instrs(self) -> Iterator[Instr]:
        for b in self.blocks:
            yield from b.instrs

    def clone(self, name: str | None = None) -> tuple[Function, dict[Value, Value], dict[Block, Block]]:
        """A deep copy, with the maps from old to new values and blocks (constants are shared)."""
        new = Function(name or self.name, self.type, [], attrs=self.attrs, linkage=self.linkage)
        values: dict[Value, Value] = {}
        for a in self.args:
            values[a] = Arg(a.type, a.name, a.attrs)
            new.args.append(values[a])  # type: ignore[arg-type]
        blocks = {b: new.block(b.name) for b in self.blocks}
        for b in self.blocks:
            for i in b.instrs:
                values[i] = blocks[b].append(i.copy(lambda v: v, blocks.__getitem__))
        for i in new.instrs():
            i.operands = [values.get(v, v) for v in i.operands]
        return new, values, blocks

    def replace_uses(self, old: Value, new: Value) -> None:
        for i in self.instrs():
            i.operands = [new if v is old else v for v in i.operands]


@dataclass
class Module:
    """Functions by name, declarations by name (LLVM text without ``declare``), and constant globals as text."""

    functions: dict[str, Function] = field(default_factory=dict)
    declarations: dict[str, str] = field(default_factory=dict)
    globals: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ArrayParam:
    """An array argument of a kernel. In a function its parameters are ``T.data`` (ptr), ``T.n0``… (extents) and
    ``T.s0``… (strides in bytes), all i64, in this order."""

    name: str
    elem: str
    rank: int

    @property
    def words(self) -> tuple[str, ...]:
        return (
            f"{self.name}.data",
            *(f"{self.name}.n{d}" for d in range(self.rank)),
            *(f"{self.name}.s{d}" for d in range(self.rank)),
        )


@dataclass(frozen=True)
class ScalarParam:
    """A scalar argument of a kernel: one function parameter of LLVM type ``type`` (double, float, i64, i1).

    ``weak``: a Python float, which takes the precision of what it meets (``passes/weak.py``)."""

    name: str
    type: str
    weak: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        return (self.name,)


Param = ArrayParam | ScalarParam


@dataclass
class PointFn:
    """One sweep of a kernel: what happens at one point of a launch domain.

    ``fn`` returns void; its parameters are ``.i0 … .i{rank-1}`` (i64: the point; no name of a user starts with a
    dot) and then the words of ``params`` in order. Memory is touched by the structured operations alone.
    """

    fn: Function
    rank: int
    params: tuple[Param, ...]

    @property
    def index(self) -> list[Arg]:
        return self.fn.args[: self.rank]

    def array(self, name: str) -> ArrayParam:
        for p in self.params:
            if p.name == name and isinstance(p, ArrayParam):
                return p
        raise KeyError(name)

    @property
    def written(self) -> tuple[str, ...]:
        """Arrays that the body writes, in order of parameters."""
        names = {i.array for i in self.fn.instrs() if i.op == "astore"}
        return tuple(p.name for p in self.params if p.name in names)

    @property
    def read(self) -> tuple[str, ...]:
        names = {i.array for i in self.fn.instrs() if i.op == "aload"}
        return tuple(p.name for p in self.params if p.name in names)
