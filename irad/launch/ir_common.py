"""LLVM IR that the other texts of launching share: words of tables, fields of objects, the sweeps of a launch."""

from __future__ import annotations

from irad.launch import abi

COMMON = f"""
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyObject_VectorcallDict(ptr, ptr, i64, ptr)
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
define internal void @sweeps(ptr %pool, i64 %sweeps, ptr %bodies, ptr %tiles, ptr %block, i64 %threads) {{
entry:
  br label %test
test:
  %s = phi i64 [ 0, %entry ], [ %s.next, %sweep ]
  %more = icmp slt i64 %s, %sweeps
  br i1 %more, label %sweep, label %done
sweep:
  %body = call ptr @link(ptr %bodies, i64 %s)
  %n = call i64 @word(ptr %tiles, i64 %s)
  call void @region(ptr %pool, ptr %body, i64 %n, ptr %block, i64 %threads)
  %s.next = add i64 %s, 1
  br label %test
done:
  ret void
}}
"""
