"""The C functions behind ``kernel(*args)`` and ``bound()``, as LLVM IR.

They serve every kernel: what is particular to one stands in tables (``tables.py``). ``@call`` looks at the arguments
without running any Python code, and hands whatever it does not like, untouched, to a Python callable. ``@bound``
repeats a launch whose block of words is ready. Both run sweeps through ``@region`` (``ir_region.py``).
"""

from __future__ import annotations

from irad.launch import abi
from irad.launch.tables import Arg, Bound, Head, Kind, Launch, Spec, Watched

MOST_WORDS = 8192
"""Blocks and plan outputs up to this many words live on the C stack; kernels with more always go through Python."""

COMMON = f"""
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @Py_IncRef(ptr)
@_Py_NoneStruct = external global i8

; Word %i of a table.
define internal i64 @word(ptr %table, i64 %i) alwaysinline {{
  %p = getelementptr i64, ptr %table, i64 %i
  %w = load i64, ptr %p, align 8
  ret i64 %w
}}

; Word %i of a table, which is an address.
define internal ptr @link(ptr %table, i64 %i) alwaysinline {{
  %p = getelementptr i64, ptr %table, i64 %i
  %w = load ptr, ptr %p, align 8
  ret ptr %w
}}

; The field of an object at a byte offset.
define internal i64 @field(ptr %object, i64 %offset) alwaysinline {{
  %p = getelementptr i8, ptr %object, i64 %offset
  %w = load i64, ptr %p, align 8
  ret i64 %w
}}

define internal ptr @pointer_field(ptr %object, i64 %offset) alwaysinline {{
  %p = getelementptr i8, ptr %object, i64 %offset
  %w = load ptr, ptr %p, align 8
  ret ptr %w
}}

define internal i64 @int_field(ptr %object, i64 %offset) alwaysinline {{
  %p = getelementptr i8, ptr %object, i64 %offset
  %i = load i32, ptr %p, align 4
  %w = sext i32 %i to i64
  ret i64 %w
}}

; The table of an abi.Holder: its first slot holds the address as an int.
define internal ptr @table_of(ptr %self) alwaysinline {{
  %int = call ptr @pointer_field(ptr %self, i64 {abi.HEAD})
  %table = call ptr @PyLong_AsVoidPtr(ptr %int)
  ret ptr %table
}}

define internal ptr @none() alwaysinline {{
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
}}

; All sweeps of a launch in order, each complete before the next.
define internal void @sweeps(ptr %pool, i64 %sweeps, ptr %bodies, ptr %tiles, ptr %block, i1 %parallel) {{
entry:
  br label %test
test:
  %s = phi i64 [ 0, %entry ], [ %s.next, %sweep ]
  %more = icmp slt i64 %s, %sweeps
  br i1 %more, label %sweep, label %done
sweep:
  %body = call ptr @link(ptr %bodies, i64 %s)
  %n = call i64 @word(ptr %tiles, i64 %s)
  call void @region(ptr %pool, ptr %body, i64 %n, ptr %block, i1 %parallel)
  %s.next = add i64 %s, 1
  br label %test
done:
  ret void
}}
"""

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

; Runs the launches of a Bound table without looking at any Python object.
define void @run_launches(ptr %table) {{
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
  %sweeps = call i64 @word(ptr %launch, i64 {Launch.SWEEPS})
  %bodies = call ptr @link(ptr %launch, i64 {Launch.BODIES})
  %tiles = call ptr @link(ptr %launch, i64 {Launch.TILES})
  call void @sweeps(ptr %pool, i64 %sweeps, ptr %bodies, ptr %tiles, ptr %block, i1 %parallel)
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
  %pool = call ptr @link(ptr %table, i64 {Bound.POOL})
  %release = call i64 @word(ptr %table, i64 {Bound.RELEASE})
  %free = icmp ne i64 %release, 0
  br i1 %free, label %released, label %held
released:
  %state = call ptr @PyEval_SaveThread()
  call void @run_launches(ptr %table)
  call void @PyEval_RestoreThread(ptr %state)
  %none.1 = call ptr @none()
  ret ptr %none.1
held:
  call void @run_launches(ptr %table)
  %none.2 = call ptr @none()
  ret ptr %none.2
moved:
  %args = alloca ptr, align 8
  store ptr %self, ptr %args, align 8
  %handler = call ptr @link(ptr %table, i64 {Bound.MOVED})
  %result = call ptr @PyObject_Vectorcall(ptr %handler, ptr %args, i64 1, ptr null)
  ret ptr %result
}}
"""

_ = (Arg, Head, Kind, Spec)
