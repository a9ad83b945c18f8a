"""Hand-written tile bodies for the tests of threads, and a way to run one without a kernel around it."""

from __future__ import annotations

import ctypes
import platform
from functools import lru_cache

import numpy as np

from irad.codegen.cpu import Code, compile_text
from irad.launch import threads
from irad.launch.native import native
from irad.launch.tables import address

from .kernels import WORD

X86 = platform.machine() in ("x86_64", "AMD64")


TEXT = f"""{WORD}
declare void @region(ptr, ptr, i64, ptr, i64)

; block: 0 counter, 1 turns of busy work a tile, 2 seen floating-point results, 3.. one word a tile
define void @count(i64 %lo, i64 %hi, ptr %block) {{
entry:
  br label %test
test:
  %t = phi i64 [ %lo, %entry ], [ %t.next, %worked ]
  %more = icmp slt i64 %t, %hi
  br i1 %more, label %tile, label %done
tile:
  %turns = call i64 @word(ptr %block, i64 1)
  br label %spin
spin:
  %k = phi i64 [ 0, %tile ], [ %k.next, %turn ]
  %x = phi double [ 1.5, %tile ], [ %y, %turn ]
  %on = icmp slt i64 %k, %turns
  br i1 %on, label %turn, label %worked
turn:
  %y = fdiv double 3.0, %x
  %k.next = add i64 %k, 1
  br label %spin
worked:
  %old = atomicrmw add ptr %block, i64 1 monotonic
  %at = add i64 %t, 3
  %mine = getelementptr i64, ptr %block, i64 %at
  %count = load i64, ptr %mine
  %one = fptosi double %x to i64
  %sign = icmp slt i64 %one, 0
  %never = zext i1 %sign to i64
  %count.1 = add i64 %count, 1
  %count.next = add i64 %count.1, %never
  store i64 %count.next, ptr %mine
  %t.next = add i64 %t, 1
  br label %test
done:
  ret void
}}

; block: 0 the pool, 1 the block of @count, 2 its tiles, 3 threads: every tile is a region of its own
define void @nested(i64 %lo, i64 %hi, ptr %block) {{
entry:
  %pool = call ptr @link(ptr %block, i64 0)
  %inner = call ptr @link(ptr %block, i64 1)
  %tiles = call i64 @word(ptr %block, i64 2)
  %threads = call i64 @word(ptr %block, i64 3)
  br label %test
test:
  %t = phi i64 [ %lo, %entry ], [ %t.next, %tile ]
  %more = icmp slt i64 %t, %hi
  br i1 %more, label %tile, label %done
tile:
  call void @region(ptr %pool, ptr @add_all, i64 %tiles, ptr %inner, i64 %threads)
  %t.next = add i64 %t, 1
  br label %test
done:
  ret void
}}
define void @add_all(i64 %lo, i64 %hi, ptr %block) {{
  %n = sub i64 %hi, %lo
  %old = atomicrmw add ptr %block, i64 %n monotonic
  ret void
}}

; block: 0 tiles that have begun, 1 most turns to wait, 2 all tiles, 3 how many tiles saw all others begin
define void @meet(i64 %lo, i64 %hi, ptr %block) {{
entry:
  %n = sub i64 %hi, %lo
  %begun = atomicrmw add ptr %block, i64 %n seq_cst
  %most = call i64 @word(ptr %block, i64 1)
  %all = call i64 @word(ptr %block, i64 2)
  br label %spin
spin:
  %k = phi i64 [ 0, %entry ], [ %k.next, %again ]
  %now = load atomic i64, ptr %block seq_cst, align 8
  %met = icmp eq i64 %now, %all
  br i1 %met, label %together, label %again
again:
  %k.next = add i64 %k, 1
  %on = icmp slt i64 %k.next, %most
  br i1 %on, label %spin, label %done
together:
  %seen = getelementptr i64, ptr %block, i64 3
  %old = atomicrmw add ptr %seen, i64 1 seq_cst
  br label %done
done:
  ret void
}}

; block: 0 turns, 1 the smallest normal double's bits, 2.. its half, as each tile computes it (0 where flushed)
define void @subnormal(i64 %lo, i64 %hi, ptr %block) {{
entry:
  br label %test
test:
  %t = phi i64 [ %lo, %entry ], [ %t.next, %tile ]
  %more = icmp slt i64 %t, %hi
  br i1 %more, label %wait, label %done
wait:
  %turns = call i64 @word(ptr %block, i64 0)
  br label %spin
spin:
  %k = phi i64 [ 0, %wait ], [ %k.next, %turn ]
  %on = icmp slt i64 %k, %turns
  br i1 %on, label %turn, label %tile
turn:
  %see = load volatile i64, ptr %block
  %k.next = add i64 %k, 1
  br label %spin
tile:
  %bits = call i64 @word(ptr %block, i64 1)
  %x = bitcast i64 %bits to double
  %half = fmul double %x, 5.0e-01
  %at = add i64 %t, 2
  %mine = getelementptr i64, ptr %block, i64 %at
  store double %half, ptr %mine
  %t.next = add i64 %t, 1
  br label %test
done:
  ret void
}}

; Sets the calling thread's floating-point control word, returns the one before.
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define i32 @exchange_mode(i32 %new) {{
  %p = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %p)
  %old = load i32, ptr %p
  store i32 %new, ptr %p
  call void @llvm.x86.sse.ldmxcsr(ptr %p)
  ret i32 %old
}}
"""


@lru_cache(maxsize=1)
def code() -> Code:
    text = TEXT if X86 else TEXT[: TEXT.index("; Sets the calling")]
    return compile_text(text, {"region": native().address("region")})


def run(body: str, block: np.ndarray, tiles: int, n: int, *, keep_gil: bool = False) -> None:
    """All tiles of a body with up to ``n`` threads."""
    kind = ctypes.PYFUNCTYPE if keep_gil else ctypes.CFUNCTYPE
    region = kind(None, *[ctypes.c_void_p] * 2, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    region(native().address("region"))(threads.pool_address(), code().address(body), tiles, address(block), n)


def counter(tiles: int, turns: int = 0) -> np.ndarray:
    """A block of ``count``: words from 3 on count how often each tile ran."""
    block = np.zeros(tiles + 3, np.int64)
    block[1] = turns
    return block


def check(block: np.ndarray, times: int) -> None:
    """Every tile ran exactly so often."""
    assert block[0] == times * (block.size - 3)
    assert np.all(block[3:] == times)
