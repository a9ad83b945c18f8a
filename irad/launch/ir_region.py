"""Regions: all tiles of one sweep, on several threads or alone, as LLVM IR.

A *body* ``void body(i64 lo, i64 hi, ptr block)`` runs tiles ``lo`` to ``hi``; which thread runs which tile is left to
an atomic counter, so nothing but the time depends on the number of threads. The rules:

* the caller works too, and does not wait for a worker that has not started when the tiles run out;
* a region that finds the workers busy (another Python thread launches, or a tile does) runs alone;
* workers compute in the caller's floating-point mode (rounding, flushing of subnormals);
* waiting is a short spin, then sleep, never an unbounded spin;
* a forked child starts workers of its own (``threads.py``), and if nobody tells it that it is one, it is still right,
  alone.

No thread pool in Python's reach does all that: libgomp's hangs in a forked child and burns a core between regions 5 ms
apart, Numba's simple one aborts when two Python threads use it. This one needs nothing but Python's C API.
"""

from __future__ import annotations

import platform

from irad.launch.tables import MOST_WORKERS, WORKER_WORDS, Pool, Worker

OPEN = 1 << 31
"""The flag of ``Pool.STATE`` that lets workers in; the epoch stands above, the number of workers inside below."""

JOIN_SPINS = 2000
DOZE_MICROSECONDS = 50

_X86 = """
declare void @llvm.x86.sse2.pause()
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define internal void @pause() alwaysinline {
  call void @llvm.x86.sse2.pause()
  ret void
}
define internal i64 @get_mode() alwaysinline {
  %p = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %p)
  %m = load i32, ptr %p, align 4
  %w = zext i32 %m to i64
  ret i64 %w
}
define internal void @set_mode(i64 %w) alwaysinline {
  %p = alloca i32, align 4
  %m = trunc i64 %w to i32
  store i32 %m, ptr %p, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr %p)
  ret void
}
"""

_ARM = """
declare void @llvm.aarch64.hint(i32)
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)

define internal void @pause() alwaysinline {
  call void @llvm.aarch64.hint(i32 1)
  ret void
}
define internal i64 @get_mode() alwaysinline {
  %w = call i64 @llvm.aarch64.get.fpcr()
  ret i64 %w
}
define internal void @set_mode(i64 %w) alwaysinline {
  call void @llvm.aarch64.set.fpcr(i64 %w)
  ret void
}
"""

_OTHER = """
define internal void @pause() alwaysinline {
  ret void
}
define internal i64 @get_mode() alwaysinline {
  ret i64 0
}
define internal void @set_mode(i64 %w) alwaysinline {
  ret void
}
"""


def machine_text(name: str = "") -> str:
    """Pause, and reading and setting the floating-point mode, on the machine ``name`` (default: this one).

    On machines without an entry workers keep the mode they start with.
    """
    name = (name or platform.machine()).lower()
    return {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}.get(name, _OTHER)


REGION = f"""
; Runs all tiles of one sweep with up to %threads threads; with or without the GIL.
define void @region(ptr %pool, ptr %body, i64 %tiles, ptr %block, i64 %threads) {{
entry:
  %enough = call i64 @llvm.smin.i64(i64 %threads, i64 %tiles)
  %wanted = call i64 @llvm.smin.i64(i64 %enough, i64 {MOST_WORKERS + 1})
  %several = icmp sgt i64 %wanted, 1
  br i1 %several, label %lock, label %alone
lock:
  %busy = getelementptr i64, ptr %pool, i64 {Pool.BUSY}
  %swap = cmpxchg ptr %busy, i64 0, i64 1 seq_cst seq_cst
  %mine = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %mine, label %together, label %alone
together:
  %mode = call i64 @get_mode()
  call void @set_link(ptr %pool, i64 {Pool.BODY}, ptr %body)
  call void @set_link(ptr %pool, i64 {Pool.BLOCK}, ptr %block)
  call void @set_word(ptr %pool, i64 {Pool.TILES}, i64 %tiles)
  call void @set_word(ptr %pool, i64 {Pool.MODE}, i64 %mode)
  %next = getelementptr i64, ptr %pool, i64 {Pool.NEXT}
  store atomic i64 0, ptr %next seq_cst, align 8
  call void @run_workers(ptr %pool, i64 %wanted)
  store atomic i64 0, ptr %busy seq_cst, align 8
  ret void
alone:
  call void %body(i64 0, i64 %tiles, ptr %block)
  ret void
}}
declare i64 @llvm.smin.i64(i64, i64)

define internal void @set_word(ptr %table, i64 %i, i64 %value) alwaysinline {{
  %p = getelementptr i64, ptr %table, i64 %i
  store i64 %value, ptr %p, align 8
  ret void
}}

define internal void @set_link(ptr %table, i64 %i, ptr %value) alwaysinline {{
  %p = getelementptr i64, ptr %table, i64 %i
  store ptr %value, ptr %p, align 8
  ret void
}}

; Runs tiles of the open job until none is left.
define internal void @draw_tiles(ptr %pool) {{
entry:
  %body = call ptr @link(ptr %pool, i64 {Pool.BODY})
  %block = call ptr @link(ptr %pool, i64 {Pool.BLOCK})
  %tiles = call i64 @word(ptr %pool, i64 {Pool.TILES})
  %next = getelementptr i64, ptr %pool, i64 {Pool.NEXT}
  br label %draw
draw:
  %lo = atomicrmw add ptr %next, i64 1 seq_cst
  %hi = add i64 %lo, 1
  %more = icmp slt i64 %lo, %tiles
  br i1 %more, label %tile, label %done
tile:
  call void %body(i64 %lo, i64 %hi, ptr %block)
  br label %draw
done:
  ret void
}}
"""

WORKERS = f"""
declare ptr @PyThread_allocate_lock()
declare i32 @PyThread_acquire_lock(ptr, i32)
declare i32 @PyThread_acquire_lock_timed(ptr, i64, i32)
declare void @PyThread_release_lock(ptr)
declare i64 @PyThread_start_new_thread(ptr, ptr)

define internal ptr @worker_at(ptr %pool, i64 %k) alwaysinline {{
  %far = mul i64 %k, {WORKER_WORDS}
  %at = add i64 %far, {Pool.WORKERS}
  %worker = getelementptr i64, ptr %pool, i64 %at
  ret ptr %worker
}}

; Opens the job in the pool to the workers, works on it, and waits for those who came in.
define internal void @run_workers(ptr %pool, i64 %threads) {{
entry:
  %helpers = sub i64 %threads, 1
  call void @hire(ptr %pool, i64 %helpers)
  call void @set_word(ptr %pool, i64 {Pool.LIMIT}, i64 %helpers)
  %state = getelementptr i64, ptr %pool, i64 {Pool.STATE}
  %wake = getelementptr i64, ptr %pool, i64 {Pool.WAKE}
  %opened = atomicrmw add ptr %state, i64 {(1 << 32) + OPEN} seq_cst
  %counted = atomicrmw add ptr %wake, i64 1 seq_cst
  call void @rouse(ptr %pool, i64 %helpers)
  call void @draw_tiles(ptr %pool)
  %closed = atomicrmw sub ptr %state, i64 {OPEN} seq_cst
  br label %spin
spin:                                             ; who is not inside by now stays out; wait for those who are
  %turn = phi i64 [ 0, %entry ], [ %turn.next, %again ], [ 0, %doze ]
  %now = load atomic i64, ptr %state seq_cst, align 8
  %inside = and i64 %now, {2**32 - 1}
  %empty = icmp eq i64 %inside, 0
  br i1 %empty, label %done, label %again
again:
  call void @pause()
  %turn.next = add i64 %turn, 1
  %patient = icmp slt i64 %turn.next, {JOIN_SPINS}
  br i1 %patient, label %spin, label %doze
doze:                                             ; a lock that nobody releases: waiting for it is sleeping
  %idle = call ptr @link(ptr %pool, i64 {Pool.IDLE})
  %slept = call i32 @PyThread_acquire_lock_timed(ptr %idle, i64 {DOZE_MICROSECONDS}, i32 0)
  br label %spin
done:
  ret void
}}

; Starts workers until there are %wanted; at first use, also after a fork. A thread that cannot start is done without.
define internal void @hire(ptr %pool, i64 %wanted) {{
entry:
  %first = call i64 @word(ptr %pool, i64 {Pool.STARTED})
  br label %test
test:
  %k = phi i64 [ %first, %entry ], [ %k.next, %hired ]
  %more = icmp slt i64 %k, %wanted
  br i1 %more, label %start, label %done
start:
  %worker = call ptr @worker_at(ptr %pool, i64 %k)
  %lock = call ptr @PyThread_allocate_lock()
  %exists = icmp ne ptr %lock, null
  br i1 %exists, label %prepare, label %done
prepare:
  %taken = call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  %seen = call i64 @word(ptr %pool, i64 {Pool.WAKE})
  call void @set_word(ptr %worker, i64 {Worker.ASLEEP}, i64 0)
  call void @set_link(ptr %worker, i64 {Worker.LOCK}, ptr %lock)
  call void @set_link(ptr %worker, i64 {Worker.POOL}, ptr %pool)
  call void @set_word(ptr %worker, i64 {Worker.SEEN}, i64 %seen)
  %thread = call i64 @PyThread_start_new_thread(ptr @worker, ptr %worker)
  %failed = icmp eq i64 %thread, -1
  br i1 %failed, label %done, label %hired
hired:
  %k.next = add i64 %k, 1
  call void @set_word(ptr %pool, i64 {Pool.STARTED}, i64 %k.next)
  br label %test
done:
  ret void
}}

; Releases the locks of those among the first %helpers workers that sleep.
define internal void @rouse(ptr %pool, i64 %helpers) {{
entry:
  %started = call i64 @word(ptr %pool, i64 {Pool.STARTED})
  %count = call i64 @llvm.smin.i64(i64 %helpers, i64 %started)
  br label %test
test:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %look, label %done
look:
  %worker = call ptr @worker_at(ptr %pool, i64 %k)
  %asleep = load atomic i64, ptr %worker seq_cst, align 8
  %sleeps = icmp eq i64 %asleep, 1
  br i1 %sleeps, label %claim, label %next
claim:
  %before = atomicrmw xchg ptr %worker, i64 0 seq_cst
  %still = icmp eq i64 %before, 1
  br i1 %still, label %release, label %next
release:
  %lock = call ptr @link(ptr %worker, i64 {Worker.LOCK})
  call void @PyThread_release_lock(ptr %lock)
  br label %next
next:
  %k.next = add i64 %k, 1
  br label %test
done:
  ret void
}}

; The life of a worker: look for a new region for a while, then sleep; enter it if it is open and has room; draw tiles.
define internal void @worker(ptr %me) {{
entry:
  %lock = call ptr @link(ptr %me, i64 {Worker.LOCK})
  %pool = call ptr @link(ptr %me, i64 {Worker.POOL})
  %seen.first = call i64 @word(ptr %me, i64 {Worker.SEEN})
  %patience = call i64 @word(ptr %pool, i64 {Pool.SPIN})
  %wake = getelementptr i64, ptr %pool, i64 {Pool.WAKE}
  %state = getelementptr i64, ptr %pool, i64 {Pool.STATE}
  %limit.at = getelementptr i64, ptr %pool, i64 {Pool.LIMIT}
  br label %wait
wait:
  %seen = phi i64 [ %seen.first, %entry ], [ %now, %enter ], [ %now, %room ], [ %now, %work ]
  br label %spin
spin:
  %turn = phi i64 [ 0, %wait ], [ %turn.next, %again ]
  %wake.1 = load atomic i64, ptr %wake seq_cst, align 8
  %new.1 = icmp ne i64 %wake.1, %seen
  br i1 %new.1, label %woken, label %again
again:
  call void @pause()
  %turn.next = add i64 %turn, 1
  %patient = icmp slt i64 %turn.next, %patience
  br i1 %patient, label %spin, label %nap
nap:                                              ; say so first, then look once more, or a call could be missed
  %told = atomicrmw xchg ptr %me, i64 1 seq_cst
  %wake.2 = load atomic i64, ptr %wake seq_cst, align 8
  %new.2 = icmp ne i64 %wake.2, %seen
  br i1 %new.2, label %undo, label %sleep
undo:                                             ; 0: a caller has claimed us and releases the lock: take it
  %mine = atomicrmw xchg ptr %me, i64 0 seq_cst
  %unclaimed = icmp eq i64 %mine, 1
  br i1 %unclaimed, label %woken, label %sleep
sleep:
  %got = call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  br label %woken
woken:
  %now = load atomic i64, ptr %wake seq_cst, align 8
  br label %enter
enter:
  %was = load atomic i64, ptr %state seq_cst, align 8
  %open.bit = and i64 %was, {OPEN}
  %open = icmp ne i64 %open.bit, 0
  br i1 %open, label %room, label %wait
room:
  %inside = and i64 %was, {OPEN - 1}
  %limit = load atomic i64, ptr %limit.at monotonic, align 8
  %fits = icmp slt i64 %inside, %limit
  br i1 %fits, label %swap, label %wait
swap:                                             ; the epoch in the state makes this fail for any other region
  %becomes = add i64 %was, 1
  %swapped = cmpxchg ptr %state, i64 %was, i64 %becomes seq_cst seq_cst
  %entered = extractvalue {{ i64, i1 }} %swapped, 1
  br i1 %entered, label %work, label %enter
work:
  %mode = call i64 @word(ptr %pool, i64 {Pool.MODE})
  call void @set_mode(i64 %mode)
  call void @draw_tiles(ptr %pool)
  %left = atomicrmw sub ptr %state, i64 1 seq_cst
  br label %wait
}}
"""

COUNT = f"""
declare ptr @PyDict_GetItem(ptr, ptr)
declare void @PyErr_Clear()
declare void @Py_DecRef(ptr)
@_Py_FalseStruct = external global i8

; How many threads the calling thread may use. Needs the GIL.
define i64 @threads_wanted(ptr %pool) {{
entry:
  %override = call i64 @word(ptr %pool, i64 {Pool.OVERRIDE})
  %told = icmp sgt i64 %override, 0
  br i1 %told, label %by.irad, label %hook
by.irad:
  ret i64 %override
hook:
  %dict = call ptr @link(ptr %pool, i64 {Pool.HOOK_DICT})
  %waiting = icmp ne ptr %dict, null
  br i1 %waiting, label %look, label %numba
look:
  %key = call ptr @link(ptr %pool, i64 {Pool.HOOK_KEY})
  %item = call ptr @PyDict_GetItem(ptr %dict, ptr %key)
  %there = icmp ne ptr %item, null
  %true = icmp ne ptr %item, @_Py_FalseStruct
  %ready = and i1 %there, %true
  br i1 %ready, label %call, label %numba
call:
  %handler = call ptr @link(ptr %pool, i64 {Pool.HOOK})
  %result = call ptr @PyObject_VectorcallDict(ptr %handler, ptr null, i64 0, ptr null)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %clear, label %drop
clear:
  call void @PyErr_Clear()
  br label %numba
drop:
  call void @Py_DecRef(ptr %result)
  br label %numba
numba:
  %function = call ptr @link(ptr %pool, i64 {Pool.NUMBA})
  %up = icmp ne ptr %function, null
  br i1 %up, label %by.numba, label %by.default
by.numba:
  %n = call i32 %function()
  %wide = sext i32 %n to i64
  %sane = icmp sgt i64 %wide, 0
  br i1 %sane, label %use.numba, label %by.default
use.numba:
  ret i64 %wide
by.default:
  %default = call i64 @word(ptr %pool, i64 {Pool.DEFAULT})
  ret i64 %default
}}
"""
