"""Writes LLVM text line by line, with fresh names: for loop nests and plans, which are too regular for an IR.

``a("add i64 {} , 1", x)`` appends ``%t7 = add i64 %x, 1`` and returns ``"%t7"``.
"""

from __future__ import annotations

from collections.abc import Iterable

from .ir.model import LinExpr

DECLARATIONS = {f"llvm.{w}.i64": f"i64 @llvm.{w}.i64(i64, i64)" for w in ("smin", "smax", "sadd.sat")} | {
    "llvm.smul.fix.sat.i64": "i64 @llvm.smul.fix.sat.i64(i64, i64, i32 immarg)"
}
"""What the text of any :class:`Asm` may call."""

SCALAR_LOOP = """\
!900000 = distinct !{!900000, !900001, !900002}
!900001 = !{!"llvm.loop.vectorize.enable", i1 false}
!900002 = !{!"llvm.loop.unroll.disable"}
"""
"""Metadata of loops with few trips, which goes into the module once."""

LOAD_AS = {"i1": "i8", "i8": "i8", "i32": "i32", "float": "float", "double": "double", "i64": "i64", "ptr": "ptr"}


class Asm:
    """One function's body under construction."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

    def fresh(self, stem: str = "t") -> str:
        self.count += 1
        return f".{stem}{self.count}"

    def __call__(self, template: str, *values: str) -> str:
        name = f"%{self.fresh()}"
        self.lines.append(f"  {name} = {template.format(*values)}")
        return name

    def do(self, template: str, *values: str) -> None:
        self.lines.append("  " + template.format(*values))

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    # integers --------------------------------------------------------------------------------------------------

    def add(self, a: str, b: str) -> str:
        return a if b == "0" else b if a == "0" else self("add nsw i64 {}, {}", a, b)

    def sub(self, a: str, b: str) -> str:
        return a if b == "0" else self("sub nsw i64 {}, {}", a, b)

    def mul(self, a: str, b: str) -> str:
        return a if b == "1" else b if a == "1" else self("mul nsw i64 {}, {}", a, b)

    def extreme(self, which: str, values: Iterable[str]) -> str:
        """Largest (``smax``) or smallest (``smin``) of some integers."""
        first, *rest = dict.fromkeys(values)
        for v in rest:
            first = self(f"call i64 @llvm.{which}.i64(i64 {{}}, i64 {{}})", first, v)
        return first

    def lin(self, expr: LinExpr, names: dict[str, str]) -> str:
        total = str(expr.const)
        for name, coeff in expr.terms:
            total = self.add(self.mul(names[name], str(coeff)), total)
        return total

    def add_saturated(self, a: str, b: str) -> str:
        """The sum, or the number of 64 bits that is nearest to it."""
        return a if b == "0" else b if a == "0" else self("call i64 @llvm.sadd.sat.i64(i64 {}, i64 {})", a, b)

    def lin_saturated(self, expr: LinExpr, names: dict[str, str]) -> str:
        """What ``lin`` gives, but an integer parameter as large as ``sys.maxsize`` does not become a small one."""
        total = str(expr.const)
        for name, coeff in expr.terms:
            value = names[name]
            if coeff != 1:
                value = self("call i64 @llvm.smul.fix.sat.i64(i64 {}, i64 {}, i32 0)", value, str(coeff))
            total = self.add_saturated(value, total)
        return total

    # loops ---------------------------------------------------------------------------------------------------------

    def loop(self, index: str, lo: str, hi: str) -> str:
        """Open a loop over ``lo <= %index < hi``; the lines that follow are its body."""
        self.do("br label %{}", f"{index}.enter")
        self.label(f"{index}.enter")
        self.do("br label %{}", f"{index}.head")
        self.label(f"{index}.head")
        self.do("%{0} = phi i64 [ {1}, %{0}.enter ], [ %{0}.next, %{0}.latch ]", index, lo)
        self.do("%{0}.more = icmp slt i64 %{0}, {1}", index, hi)
        self.do("br i1 %{0}.more, label %{0}.body, label %{0}.done", index)
        self.label(f"{index}.body")
        return index

    def end_loop(self, index: str, *, scalar: bool = False) -> None:
        """Close it. ``scalar``: few trips, not worth a vector body."""
        self.do("br label %{0}.latch", index)
        self.label(f"{index}.latch")
        self.do("%{0}.next = add nsw i64 %{0}, 1", index)
        self.do("br label %{0}.head{1}", index, ", !llvm.loop !900000" if scalar else "")
        self.label(f"{index}.done")

    # words -------------------------------------------------------------------------------------------------------

    def word(self, base: str, at: int | str, type: str = "i64") -> str:
        """Load word ``at`` of the block ``base``."""
        p = self("getelementptr inbounds i64, ptr {}, i64 {}", base, str(at))
        v = self(f"load {LOAD_AS[type]}, ptr {{}}, align 8", p)
        return self("trunc i8 {} to i1", v) if type == "i1" else v

    def set_word(self, base: str, at: int | str, value: str) -> None:
        p = self("getelementptr inbounds i64, ptr {}, i64 {}", base, str(at))
        self.do("store i64 {}, ptr {}, align 8", value, p)

    def text(self, head: str) -> str:
        return "\n".join([f"{head} {{", "entry:", *self.lines, "}", ""])
