"""Hand-written programs for the tests of launching: text, layout, sweeps.

``scale``: out = s * a over planes of rank-3 arrays, one plane a tile; check 0 fails where the shapes differ.
"""

from __future__ import annotations

from dataclasses import dataclass

from irad.codegen.cpu import compile_text
from irad.launch.executable import Executable


@dataclass(frozen=True)
class Layout:
    """What ``irad.passes.layout.BlockLayout`` is to launching."""

    words: tuple[str, ...]
    size: int

    def at(self, word: str) -> int:
        return self.words.index(word)

    def __contains__(self, word: str) -> bool:
        return word in self.words


def array_words(name: str, rank: int) -> tuple[str, ...]:
    return (f"{name}.data", *(f"{name}.n{d}" for d in range(rank)), *(f"{name}.s{d}" for d in range(rank)))


WORD = """
define internal i64 @word(ptr %p, i64 %i) alwaysinline {
  %q = getelementptr i64, ptr %p, i64 %i
  %w = load i64, ptr %q
  ret i64 %w
}
define internal ptr @link(ptr %p, i64 %i) alwaysinline {
  %q = getelementptr i64, ptr %p, i64 %i
  %w = load ptr, ptr %q
  ret ptr %w
}
"""

SCALE = (
    WORD
    + """
define i64 @plan(ptr %block, ptr %out) {
  %p = getelementptr i64, ptr %block, i64 1
  %q = getelementptr i64, ptr %block, i64 8
  %a = load <3 x i64>, ptr %p, align 8
  %b = load <3 x i64>, ptr %q, align 8
  %ne = icmp ne <3 x i64> %a, %b
  %bad = call i1 @llvm.vector.reduce.or.v3i1(<3 x i1> %ne)
  %n = call i64 @llvm.vector.reduce.mul.v3i64(<3 x i64> %a)
  store i64 %n, ptr %out
  %t = extractelement <3 x i64> %a, i32 0
  %o1 = getelementptr i64, ptr %out, i64 1
  store i64 %t, ptr %o1
  %o2 = getelementptr i64, ptr %out, i64 2
  %failed = zext i1 %bad to i64
  store i64 %failed, ptr %o2
  %r = select i1 %bad, i64 -1, i64 0
  ret i64 %r
}
declare i1 @llvm.vector.reduce.or.v3i1(<3 x i1>)
declare i64 @llvm.vector.reduce.mul.v3i64(<3 x i64>)
define void @sweep0(i64 %lo, i64 %hi, ptr %block) {
e:
  %out = call ptr @link(ptr %block, i64 0)
  %in = call ptr @link(ptr %block, i64 7)
  %sw = call i64 @word(ptr %block, i64 14)
  %s = bitcast i64 %sw to double
  %n1 = call i64 @word(ptr %block, i64 2)
  %n2 = call i64 @word(ptr %block, i64 3)
  %n = mul i64 %n1, %n2
  br label %ti
ti:
  %i = phi i64 [ %lo, %e ], [ %i1, %ie ]
  %im = icmp slt i64 %i, %hi
  br i1 %im, label %tk, label %end
tk:
  %k = phi i64 [ 0, %ti ], [ %k1, %point ]
  %km = icmp slt i64 %k, %n
  br i1 %km, label %point, label %ie
point:
  %j0 = sdiv i64 %k, %n2
  %k0 = srem i64 %k, %n2
  %po = call ptr @at(ptr %block, i64 0, i64 %i, i64 %j0, i64 %k0)
  %pi = call ptr @at(ptr %block, i64 7, i64 %i, i64 %j0, i64 %k0)
  %v = load double, ptr %pi
  %w = fmul double %v, %s
  store double %w, ptr %po
  %k1 = add i64 %k, 1
  br label %tk
ie:
  %i1 = add i64 %i, 1
  br label %ti
end:
  ret void
}
define internal ptr @at(ptr %block, i64 %array, i64 %i, i64 %j, i64 %k) alwaysinline {
  %data = call ptr @link(ptr %block, i64 %array)
  %a0 = add i64 %array, 4
  %a1 = add i64 %array, 5
  %a2 = add i64 %array, 6
  %s0 = call i64 @word(ptr %block, i64 %a0)
  %s1 = call i64 @word(ptr %block, i64 %a1)
  %s2 = call i64 @word(ptr %block, i64 %a2)
  %x0 = mul i64 %i, %s0
  %x1 = mul i64 %j, %s1
  %x2 = mul i64 %k, %s2
  %y = add i64 %x0, %x1
  %z = add i64 %y, %x2
  %p = getelementptr i8, ptr %data, i64 %z
  ret ptr %p
}
"""
)


def scale() -> Executable:
    layout = Layout((*array_words("out", 3), *array_words("a", 3), "s"), 15)
    return Executable(compile_text(SCALE), layout, sweeps=1, checks=1)


def pack(rank: int = 1) -> Executable:
    """out[0...] = the word of the scalar s."""
    at = 1 + 2 * rank
    text = f"""{WORD}
define i64 @plan(ptr %block, ptr %out) {{
  store i64 1, ptr %out
  %o1 = getelementptr i64, ptr %out, i64 1
  store i64 1, ptr %o1
  ret i64 0
}}
define void @sweep0(i64 %lo, i64 %hi, ptr %block) {{
  %out = call ptr @link(ptr %block, i64 0)
  %s = call i64 @word(ptr %block, i64 {at})
  store i64 %s, ptr %out
  ret void
}}
"""
    return Executable(compile_text(text), Layout((*array_words("out", rank), "s"), at + 1), sweeps=1)
