"""LLVM text of the vector operations: one loop each, in tiles that depend on the length alone.

An operation is written as an expression over elements of vectors (``x``, ``y``, ...), scalars (``c``, ...) and nothing
else; here it becomes ``void @name(i64 lo, i64 hi, ptr block)``, which runs tiles ``lo`` to ``hi``. The block holds the
length, the vectors' addresses, the scalars (as doubles), and for a sum the address of one double a tile. Arithmetic
carries no flags, so that the result is that of NumPy bit for bit; only the order of a sum inside a tile is LLVM's.

Vectors that are written may be the same as vectors that are read, but must not overlap them otherwise: every element is
read before it is written, and the loop says so to the vectoriser.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TILE = 4096
"""Elements a tile."""

SIZE, VECTORS = 0, 1
"""Words of a block: the length, then addresses, then scalars, then the address of the partial sums."""


@dataclass(frozen=True)
class Operation:
    """``lines``: assignments ``name = operation operands`` in order; a line whose name is a vector writes that vector.

    Operations: add, sub, mul, div, abs, max (two operands; abs one). ``total``: the name of a double that is summed.
    """

    name: str
    vectors: tuple[str, ...]
    scalars: tuple[str, ...]
    lines: tuple[str, ...]
    total: str = ""

    @property
    def words(self) -> int:
        """Words of a block."""
        return VECTORS + len(self.vectors) + len(self.scalars) + (1 if self.total else 0)

    @property
    def scalar(self) -> int:
        """Word of the first scalar."""
        return VECTORS + len(self.vectors)


def _weighted(name: str, rtol: str, atol: str) -> Operation:
    vectors = ("e", "u", "v", *(t for t in (rtol, atol) if t.isupper()))
    scalars = tuple(t for t in (rtol, atol) if t.islower())
    lines = (
        "a = abs u",
        "b = abs v",
        "m = max a b",
        f"w = mul m {rtol}",
        f"s = add w {atol}",
        "q = div e s",
        "z = mul q q",
    )
    return Operation(name, vectors, scalars, lines, "z")


OPERATIONS = {
    o.name: o
    for o in (
        Operation("scale", ("o", "x"), ("c",), ("o = mul x c",)),
        Operation("add", ("o", "x"), (), ("o = add o x",)),
        Operation("total", ("o", "x", "y"), (), ("o = add x y",)),
        Operation("difference", ("o", "x", "y"), (), ("o = sub x y",)),
        Operation("add_scaled", ("o", "x", "k"), ("c",), ("p = mul k c", "o = add p x")),
        Operation("accumulate", ("o", "x"), ("c",), ("p = mul x c", "o = add o p")),
        Operation("combine", ("o", "x", "y"), ("a", "b"), ("p = mul y b", "q = mul x a", "o = add q p")),
        Operation(
            "recur", ("o", "g", "h", "k"), ("a", "c"),
            ("d = sub g h", "e = mul d a", "f = add e g", "p = mul k c", "o = add f p"),
        ),
        Operation(
            "finish", ("g", "k", "l"), ("s", "p"),
            ("d = sub l k", "k = mul d p", "m = mul l s", "n = add g m", "g = add n k"),
        ),
        Operation(
            "hermite", ("o", "w", "x", "y", "z"), ("a", "b", "c", "d"),
            ("e = mul w a", "f = mul x b", "g = add e f", "h = mul y c", "i = add g h", "j = mul z d", "o = add i j"),
        ),
        Operation("squares", ("x",), (), ("z = mul x x",), "z"),
        Operation("products", ("x", "y"), (), ("z = mul x y",), "z"),
        Operation("nothings", ("x",), (), ("z = mul x 0.0",), "z"),  # 0, or nan where an entry is not finite
        _weighted("weighted", "r", "a_"),
        _weighted("weighted_r", "R", "a_"),
        _weighted("weighted_a", "r", "A"),
        _weighted("weighted_ra", "R", "A"),
    )
}  # fmt: skip


@dataclass
class _Writer:
    """LLVM text of one function over elements of type ``elem`` (double or float)."""

    op: Operation
    elem: str
    out: list[str] = field(default_factory=list)

    def text(self) -> str:
        op, elem, o = self.op, self.elem, self.out
        o.append(f"define void @{op.name}(i64 %lo, i64 %hi, ptr noalias readonly %block) {{\nentry:")
        self._load("n", SIZE, "i64")
        for i, v in enumerate(op.vectors):
            self._load(f"{v}.at", VECTORS + i, "ptr")
        for i, s in enumerate(op.scalars):
            self._load(f"{s}.wide", op.scalar + i, "double")
            o.append(
                f"  %{s}.c = "
                + (f"fptrunc double %{s}.wide to float" if elem == "float" else f"fadd double %{s}.wide, -0.0")
            )
        if op.total:
            self._load("sums", op.words - 1, "ptr")
        o.append(
            f"""  br label %tiles
tiles:
  %tile = phi i64 [ %lo, %entry ], [ %tile.next, %done ]
  %more = icmp slt i64 %tile, %hi
  br i1 %more, label %begin, label %return
begin:
  %first = mul i64 %tile, {TILE}
  %end.full = add i64 %first, {TILE}
  %short = icmp slt i64 %n, %end.full
  %end = select i1 %short, i64 %n, i64 %end.full
  %some = icmp slt i64 %first, %end
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ %first, %begin ], [ %i.next, %loop ]"""
        )
        if op.total:
            o.append("  %sum = phi double [ 0.0, %begin ], [ %sum.next, %loop ]")
        self._body()
        o.append(
            """  %i.next = add nsw i64 %i, 1
  %again = icmp slt i64 %i.next, %end
  br i1 %again, label %loop, label %done, !llvm.loop !0
done:"""
        )
        if op.total:
            o.append(
                """  %sum.tile = phi double [ 0.0, %begin ], [ %sum.next, %loop ]
  %sum.at = getelementptr double, ptr %sums, i64 %tile
  store double %sum.tile, ptr %sum.at"""
            )
        o.append("  %tile.next = add nsw i64 %tile, 1\n  br label %tiles\nreturn:\n  ret void\n}")
        return "\n".join(o)

    def _load(self, name: str, word: int, type: str) -> None:
        self.out.append(
            f"  %{name}.word = getelementptr i64, ptr %block, i64 {word}\n  %{name} = load {type}, ptr %{name}.word"
        )

    def _body(self) -> None:
        op, elem, o = self.op, self.elem, self.out
        now = {}  # name -> current value
        for v in op.vectors:
            o.append(f"  %{v}.p = getelementptr {elem}, ptr %{v}.at, i64 %i")
            o.append(f"  %{v}.0 = load {elem}, ptr %{v}.p, !llvm.access.group !1")
            now[v] = f"%{v}.0"
        for s in op.scalars:
            now[s] = f"%{s}.c"
        written = []
        for count, line in enumerate(op.lines):
            name, _, action, *operands = line.split()
            values = [now.get(x, x) for x in operands]
            target = f"%t{count}"
            if action in ("abs", "max"):
                call = {"abs": "fabs", "max": "maximum"}[action]
                suffix = "f64" if elem == "double" else "f32"
                o.append(f"  {target} = call {elem} @llvm.{call}.{suffix}({', '.join(f'{elem} {v}' for v in values)})")
            else:
                o.append(f"  {target} = f{action} {elem} {values[0]}, {values[1]}")
            now[name] = target
            if name in op.vectors:
                written.append(name)
        for name in dict.fromkeys(written):
            o.append(f"  store {elem} {now[name]}, ptr %{name}.p, !llvm.access.group !1")
        if op.total:
            value = now[op.total]
            if elem == "float":  # squares and products are formed in double precision
                value = self._widened()
            o.append(f"  %sum.next = fadd reassoc double %sum, {value}")

    def _widened(self) -> str:
        """The last product, formed from its factors in double precision."""
        line = self.out[-1].split(" = fmul float ")
        a, b = (x.strip() for x in line[1].split(","))
        self.out.pop()
        for name, value in (("wide.a", a), ("wide.b", b)):
            self.out.append(f"  %{name} = fpext float {value} to double")
        self.out.append("  %wide = fmul double %wide.a, %wide.b")
        return "%wide"


def module(op: Operation, elem: str) -> str:
    """An operation over ``double`` or ``float`` as an LLVM module."""
    suffix = "f64" if elem == "double" else "f32"
    return "\n".join(
        [
            _Writer(op, elem).text(),
            f"declare {elem} @llvm.fabs.{suffix}({elem})",
            f"declare {elem} @llvm.maximum.{suffix}({elem}, {elem})",
            "!0 = distinct !{!0, !2, !3}",
            "!1 = distinct !{}",
            '!2 = !{!"llvm.loop.parallel_accesses", !1}',
            '!3 = !{!"llvm.loop.vectorize.enable", i1 true}',
            "",
        ]
    )
