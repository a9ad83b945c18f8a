"""The C function behind ``bound()``, as LLVM IR: a launch, or a chain of them, whose blocks of words are ready."""

from __future__ import annotations

from irad.launch import abi
from irad.launch.tables import Bound, Launch, Watched

BOUND = f"""
; Whether a watched array's memory is where it was and as large: ndarray.resize can change both.
define internal i1 @in_place(ptr %watched, ptr %block) {{
entry:
  %array = call ptr @link(ptr %watched, i64 {Watched.OBJECT})
  %data.at = call i64 @word(ptr %watched, i64 {Watched.DATA})
  %extents.at = call i64 @word(ptr %watched, i64 {Watched.EXTENTS})
  %now = call i64 @field(ptr %array, i64 {abi.DATA})
  %was = call i64 @word(ptr %block, i64 %data.at)
  %same = icmp eq i64 %now, %was
  br i1 %same, label %ranks, label %no
ranks:
  %unsized = icmp slt i64 %extents.at, 0
  br i1 %unsized, label %yes, label %rank
rank:
  %rank.was = call i64 @word(ptr %watched, i64 {Watched.RANK})
  %rank.now = call i64 @int_field(ptr %array, i64 {abi.NDIM})
  %ranks.same = icmp eq i64 %rank.was, %rank.now
  %dims = call ptr @pointer_field(ptr %array, i64 {abi.DIMS})
  %extents = getelementptr i64, ptr %block, i64 %extents.at
  br i1 %ranks.same, label %test, label %no
test:
  %d = phi i64 [ 0, %rank ], [ %d.next, %extent ]
  %more = icmp slt i64 %d, %rank.was
  br i1 %more, label %extent, label %yes
extent:
  %n.now = call i64 @word(ptr %dims, i64 %d)
  %n.was = call i64 @word(ptr %extents, i64 %d)
  %n.same = icmp eq i64 %n.now, %n.was
  %d.next = add i64 %d, 1
  br i1 %n.same, label %test, label %no
yes:
  ret i1 true
no:
  ret i1 false
}}

define internal i1 @all_in_place(ptr %launch) {{
entry:
  %block = call ptr @link(ptr %launch, i64 {Launch.BLOCK})
  %count = call i64 @word(ptr %launch, i64 {Launch.ARRAYS})
  %first = call ptr @link(ptr %launch, i64 {Launch.WATCHED})
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %i.next, %array ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %array, label %yes
array:
  %at = mul i64 %i, {len(Watched)}
  %watched = getelementptr i64, ptr %first, i64 %at
  %ok = call i1 @in_place(ptr %watched, ptr %block)
  %i.next = add i64 %i, 1
  br i1 %ok, label %test, label %no
yes:
  ret i1 true
no:
  ret i1 false
}}

; Runs the launches of a Bound table, with up to %threads threads, without looking at any Python object.
define void @run_launches(ptr %table, i64 %threads) {{
entry:
  %pool = call ptr @link(ptr %table, i64 {Bound.POOL})
  %count = call i64 @word(ptr %table, i64 {Bound.COUNT})
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %i.next, %run ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %run, label %done
run:
  %at = add i64 %i, {Bound.LAUNCHES}
  %launch = call ptr @link(ptr %table, i64 %at)
  %block = call ptr @link(ptr %launch, i64 {Launch.BLOCK})
  %parallel.word = call i64 @word(ptr %launch, i64 {Launch.PARALLEL})
  %parallel = icmp ne i64 %parallel.word, 0
  %here = select i1 %parallel, i64 %threads, i64 1
  %sweeps = call i64 @word(ptr %launch, i64 {Launch.SWEEPS})
  %bodies = call ptr @link(ptr %launch, i64 {Launch.BODIES})
  %tiles = call ptr @link(ptr %launch, i64 {Launch.TILES})
  call void @sweeps(ptr %pool, i64 %sweeps, ptr %bodies, ptr %tiles, ptr %block, i64 %here)
  %i.next = add i64 %i, 1
  br label %test
done:
  ret void
}}

; METH_NOARGS of an abi.Holder whose table is a Bound: all arrays are looked at before the first launch runs.
define ptr @bound(ptr %self, ptr %unused) {{
entry:
  %table = call ptr @table_of(ptr %self)
  %count = call i64 @word(ptr %table, i64 {Bound.COUNT})
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %i.next, %check ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %check, label %run
check:
  %at = add i64 %i, {Bound.LAUNCHES}
  %launch = call ptr @link(ptr %table, i64 %at)
  %ok = call i1 @all_in_place(ptr %launch)
  %i.next = add i64 %i, 1
  br i1 %ok, label %test, label %moved
run:
  %parallel.word = call i64 @word(ptr %table, i64 {Bound.PARALLEL})
  %parallel = icmp ne i64 %parallel.word, 0
  br i1 %parallel, label %count.threads, label %go
count.threads:
  %pool = call ptr @link(ptr %table, i64 {Bound.POOL})
  %wanted = call i64 @threads_wanted(ptr %pool)
  br label %go
go:
  %threads = phi i64 [ 1, %run ], [ %wanted, %count.threads ]
  %release = call i64 @word(ptr %table, i64 {Bound.RELEASE})
  %free = icmp ne i64 %release, 0
  br i1 %free, label %released, label %held
released:
  %state = call ptr @PyEval_SaveThread()
  call void @run_launches(ptr %table, i64 %threads)
  call void @PyEval_RestoreThread(ptr %state)
  %none.1 = call ptr @none()
  ret ptr %none.1
held:
  call void @run_launches(ptr %table, i64 %threads)
  %none.2 = call ptr @none()
  ret ptr %none.2
moved:
  %args = alloca ptr, align 8
  store ptr %self, ptr %args, align 8
  %handler = call ptr @link(ptr %table, i64 {Bound.MOVED})
  %result = call ptr @PyObject_VectorcallDict(ptr %handler, ptr %args, i64 1, ptr null)
  ret ptr %result
}}
"""
