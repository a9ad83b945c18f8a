"""The C function behind ``kernel(*args)``, as LLVM IR.

It serves every kernel: what is particular to one stands in tables (``tables.py``). It looks at the arguments without
running any Python code (``ir_arguments.py``), and hands whatever it does not like, untouched, to a Python callable.
"""

from __future__ import annotations

from irad.launch.tables import Head, Place, Spec

MOST_WORDS = 8192
"""Blocks and plan outputs up to this many words live on the C stack; kernels with more always go through Python."""

CALL = f"""
; METH_FASTCALL | METH_KEYWORDS of an abi.Holder whose table is a Head: the first Spec that fits runs. If none does, or
; launches are being recorded, or keywords are used, Head.SLOW gets the arguments as they came.
define ptr @call(ptr %self, ptr %args, i64 %nargsf, ptr %keywords) {{
entry:
  %head = call ptr @table_of(ptr %self)
  %nargs = and i64 %nargsf, {2**63 - 1}
  %recording.at = call ptr @link(ptr %head, i64 {Head.RECORDING})
  %recording = load i64, ptr %recording.at, align 8
  %recorded = icmp ne i64 %recording, 0
  %named = icmp ne ptr %keywords, null
  %python = or i1 %recorded, %named
  br i1 %python, label %slow, label %first
first:
  %pool = call ptr @link(ptr %head, i64 {Head.POOL})
  %spec.first = call ptr @link(ptr %head, i64 {Head.SPEC})
  br label %test
test:
  %spec = phi ptr [ %spec.first, %first ], [ %spec.next, %other ]
  %none.left = icmp eq ptr %spec, null
  br i1 %none.left, label %slow, label %try
try:
  %done = call i1 @attempt(ptr %spec, ptr %args, i64 %nargs, ptr %pool)
  br i1 %done, label %return, label %other
other:
  %spec.next = call ptr @link(ptr %spec, i64 {Spec.NEXT})
  br label %test
return:
  %none = call ptr @none()
  ret ptr %none
slow:
  %handler = call ptr @link(ptr %head, i64 {Head.SLOW})
  %result = call ptr @call_python(ptr %handler, ptr %args, i64 %nargs, ptr %keywords)
  ret ptr %result
}}

declare ptr @PyDict_New()
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)

; Calls a Python callable as we were called. (PyObject_Vectorcall does that in one go, but is no function in 3.10.)
define internal ptr @call_python(ptr %callable, ptr %args, i64 %nargs, ptr %keywords) {{
entry:
  %unnamed = icmp eq ptr %keywords, null
  br i1 %unnamed, label %plain, label %named
plain:
  %result.plain = call ptr @PyObject_VectorcallDict(ptr %callable, ptr %args, i64 %nargs, ptr null)
  ret ptr %result.plain
named:
  %dict = call ptr @PyDict_New()
  %made = icmp ne ptr %dict, null
  br i1 %made, label %fill, label %fail
fill:
  %count = call i64 @PyTuple_Size(ptr %keywords)
  %values = getelementptr ptr, ptr %args, i64 %nargs
  br label %test
test:
  %k = phi i64 [ 0, %fill ], [ %k.next, %item ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %item, label %go
item:
  %name = call ptr @PyTuple_GetItem(ptr %keywords, i64 %k)
  %value = call ptr @link(ptr %values, i64 %k)
  %status = call i32 @PyDict_SetItem(ptr %dict, ptr %name, ptr %value)
  %k.next = add i64 %k, 1
  %set = icmp eq i32 %status, 0
  br i1 %set, label %test, label %drop
go:
  %result.named = call ptr @PyObject_VectorcallDict(ptr %callable, ptr %args, i64 %nargs, ptr %dict)
  br label %drop
drop:
  %result = phi ptr [ %result.named, %go ], [ null, %item ]
  call void @Py_DecRef(ptr %dict)
  ret ptr %result
fail:
  ret ptr null
}}

; Launches by one Spec; false: it does not fit, and nothing was written. Captured objects join the arguments given, and
; are held meanwhile: without the GIL somebody could replace them.
define internal i1 @attempt(ptr %spec, ptr %args, i64 %nargs, ptr %pool) noinline {{
entry:
  %nargs.wanted = call i64 @word(ptr %spec, i64 {Spec.NARGS})
  %right = icmp eq i64 %nargs, %nargs.wanted
  br i1 %right, label %constants, label %no
constants:
  %valid = call i1 @constants_hold(ptr %spec)
  br i1 %valid, label %holding, label %no
holding:
  %captures = call i64 @word(ptr %spec, i64 {Spec.CAPTURES})
  %some = icmp ne i64 %captures, 0
  br i1 %some, label %join, label %plain
plain:
  %done.plain = call i1 @launch(ptr %spec, ptr %args, i64 %nargs, ptr %pool)
  ret i1 %done.plain
join:
  %total = add i64 %nargs, %captures
  %all = alloca ptr, i64 %total, align 8
  %given.bytes = mul i64 %nargs, 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %all, ptr align 8 %args, i64 %given.bytes, i1 false)
  %found = getelementptr ptr, ptr %all, i64 %nargs
  %places = call ptr @link(ptr %spec, i64 {Spec.FOUND})
  br label %test
test:
  %k = phi i64 [ 0, %join ], [ %k.next, %keep ]
  %more = icmp slt i64 %k, %captures
  br i1 %more, label %find, label %ready
find:
  %far = mul i64 %k, {len(Place)}
  %place = getelementptr i64, ptr %places, i64 %far
  %object = call ptr @find(ptr %place)
  %there = icmp ne ptr %object, null
  br i1 %there, label %keep, label %drop
keep:
  call void @set_link(ptr %found, i64 %k, ptr %object)
  %k.next = add i64 %k, 1
  br label %test
ready:
  %done.joined = call i1 @launch(ptr %spec, ptr %all, i64 %total, ptr %pool)
  br label %drop
drop:
  %result = phi i1 [ %done.joined, %ready ], [ false, %find ]
  br label %drop.test
drop.test:
  %d = phi i64 [ 0, %drop ], [ %d.next, %drop.one ]
  %more.held = icmp slt i64 %d, %k
  br i1 %more.held, label %drop.one, label %return
drop.one:
  %held = call ptr @link(ptr %found, i64 %d)
  call void @Py_DecRef(ptr %held)
  %d.next = add i64 %d, 1
  br label %drop.test
return:
  ret i1 %result
no:
  ret i1 false
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare ptr @PyCell_Get(ptr)

; A new reference to the object at a place, or null.
define internal ptr @find(ptr %place) {{
entry:
  %holder = call ptr @link(ptr %place, i64 {Place.HOLDER})
  %key = call ptr @link(ptr %place, i64 {Place.KEY})
  %is.cell = icmp eq ptr %key, null
  br i1 %is.cell, label %cell, label %dict
cell:
  %content = call ptr @PyCell_Get(ptr %holder)
  ret ptr %content
dict:
  %item = call ptr @PyDict_GetItem(ptr %holder, ptr %key)
  %missing = icmp eq ptr %item, null
  br i1 %missing, label %no, label %own
own:
  call void @Py_IncRef(ptr %item)
  ret ptr %item
no:
  ret ptr null
}}

; Whether everything that was compiled in is still what its name means.
define internal i1 @constants_hold(ptr %spec) {{
entry:
  %count = call i64 @word(ptr %spec, i64 {Spec.CONSTANTS})
  %places = call ptr @link(ptr %spec, i64 {Spec.EXPECTED})
  br label %test
test:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %look, label %yes
look:
  %far = mul i64 %k, {len(Place)}
  %place = getelementptr i64, ptr %places, i64 %far
  %object = call ptr @find(ptr %place)
  %expected = call ptr @link(ptr %place, i64 {Place.VALUE})
  %gone = icmp eq ptr %object, null
  br i1 %gone, label %no, label %compare
compare:
  call void @Py_DecRef(ptr %object)
  %same = icmp eq ptr %object, %expected
  br i1 %same, label %next, label %no
next:
  %k.next = add i64 %k, 1
  br label %test
yes:
  ret i1 true
no:
  ret i1 false
}}

; Block, plan, sweeps; false where an argument or the plan says no.
define internal i1 @launch(ptr %spec, ptr %args, i64 %nargs, ptr %pool) noinline {{
entry:
  %block.words = call i64 @word(ptr %spec, i64 {Spec.BLOCK})
  %out.words = call i64 @word(ptr %spec, i64 {Spec.OUT})
  %span.words = mul i64 %nargs, 3
  %block = alloca i64, i64 %block.words, align 64
  %out = alloca i64, i64 %out.words, align 8
  %spans = alloca i64, i64 %span.words, align 8
  %taken = call i1 @take_all(ptr %spec, ptr %args, i64 %nargs, ptr %block, ptr %spans)
  br i1 %taken, label %plan, label %no
plan:
  %planner = call ptr @link(ptr %spec, i64 {Spec.PLAN})
  %status = call i64 %planner(ptr %block, ptr %out)
  %planned = icmp sge i64 %status, 0
  br i1 %planned, label %measure, label %no
measure:
  %work = load i64, ptr %out, align 8
  %tiles = getelementptr i64, ptr %out, i64 1
  %sweeps = call i64 @word(ptr %spec, i64 {Spec.SWEEPS})
  %bodies = call ptr @link(ptr %spec, i64 {Spec.BODIES})
  %parallel.from = call i64 @word(ptr %spec, i64 {Spec.PARALLEL})
  %release.from = call i64 @word(ptr %spec, i64 {Spec.RELEASE})
  %parallel = icmp sge i64 %work, %parallel.from
  br i1 %parallel, label %count.threads, label %go
count.threads:
  %wanted = call i64 @threads_wanted(ptr %pool)
  br label %go
go:
  %threads = phi i64 [ 1, %measure ], [ %wanted, %count.threads ]
  %free = icmp sge i64 %work, %release.from
  br i1 %free, label %released, label %held
released:
  %state = call ptr @PyEval_SaveThread()
  call void @sweeps(ptr %pool, i64 %sweeps, ptr %bodies, ptr %tiles, ptr %block, i64 %threads)
  call void @PyEval_RestoreThread(ptr %state)
  ret i1 true
held:
  call void @sweeps(ptr %pool, i64 %sweeps, ptr %bodies, ptr %tiles, ptr %block, i64 %threads)
  ret i1 true
no:
  ret i1 false
}}
"""
