"""The C functions behind ``kernel(*args)`` and ``bound()``, as LLVM IR.

They serve every kernel: what is particular to one stands in tables (``tables.py``). ``@call`` looks at the arguments
without running any Python code, and hands whatever it does not like, untouched, to a Python callable. ``@bound``
repeats a launch whose block of words is ready. Both run sweeps through ``@region`` (``ir_region.py``).
"""

from __future__ import annotations

from irad.launch import abi
from irad.launch.tables import Arg, Bound, Head, Kind, Launch, Place, Spec, Watched

MOST_WORDS = 8192
"""Blocks and plan outputs up to this many words live on the C stack; kernels with more always go through Python."""

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

CALL = f"""
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyErr_Occurred()
@_Py_TrueStruct = external global i8
declare i64 @llvm.abs.i64(i64, i1)

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

; Turns all arguments into words of the block; false: one is not as its descriptor says, or two overlap.
define internal i1 @take_all(ptr %spec, ptr %args, i64 %nargs, ptr %block, ptr %spans) {{
entry:
  %descriptors = call ptr @link(ptr %spec, i64 {Spec.ARGS})
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %at = phi ptr [ %block, %entry ], [ %at.next, %next ]
  %arrays = phi i64 [ 0, %entry ], [ %arrays.next, %next ]
  %more = icmp slt i64 %i, %nargs
  br i1 %more, label %argument, label %yes
argument:
  %far = mul i64 %i, {len(Arg)}
  %descriptor = getelementptr i64, ptr %descriptors, i64 %far
  %object = call ptr @link(ptr %args, i64 %i)
  %type = call ptr @pointer_field(ptr %object, i64 {abi.TYPE})
  %type.wanted = call ptr @link(ptr %descriptor, i64 {Arg.TYPE})
  %type.other = call ptr @link(ptr %descriptor, i64 {Arg.OTHER})
  %exact = icmp eq ptr %type, %type.wanted
  %other = icmp eq ptr %type, %type.other
  %typed = or i1 %exact, %other
  br i1 %typed, label %kinds, label %no
kinds:
  %kind = call i64 @word(ptr %descriptor, i64 {Arg.KIND})
  switch i64 %kind, label %no [
    i64 {Kind.ARRAY}, label %array
    i64 {Kind.DOUBLE}, label %double
    i64 {Kind.FLOAT}, label %float
    i64 {Kind.INT}, label %int
    i64 {Kind.BOOL}, label %bool
  ]
array:
  %at.array = call ptr @take_array(ptr %object, ptr %descriptor, ptr %at, ptr %spans, i64 %arrays)
  %arrays.more = add i64 %arrays, 1
  br label %next
double:
  %at.double = call ptr @take_real(ptr %object, ptr %at, i1 false)
  br label %next
float:
  %at.float = call ptr @take_real(ptr %object, ptr %at, i1 true)
  br label %next
int:
  %at.int = call ptr @take_int(ptr %object, ptr %at)
  br label %next
bool:
  %true = icmp eq ptr %object, @_Py_TrueStruct
  %truth = zext i1 %true to i64
  store i64 %truth, ptr %at, align 8
  %at.bool = getelementptr i64, ptr %at, i64 1
  br label %next
next:
  %at.next = phi ptr [ %at.array, %array ], [ %at.double, %double ], [ %at.float, %float ], [ %at.int, %int ],
                     [ %at.bool, %bool ]
  %arrays.next = phi i64 [ %arrays.more, %array ], [ %arrays, %double ], [ %arrays, %float ], [ %arrays, %int ],
                         [ %arrays, %bool ]
  %i.next = add i64 %i, 1
  %taken = icmp ne ptr %at.next, null
  br i1 %taken, label %test, label %no
yes:
  ret i1 true
no:
  ret i1 false
}}

; A number as double or float; null where Python cannot convert it (an int beyond all floats).
define internal ptr @take_real(ptr %object, ptr %at, i1 %single) alwaysinline {{
entry:
  %x = call double @PyFloat_AsDouble(ptr %object)
  %suspect = fcmp oeq double %x, -1.0
  br i1 %suspect, label %ask, label %store
ask:
  %error = call ptr @PyErr_Occurred()
  %raised = icmp ne ptr %error, null
  br i1 %raised, label %clear, label %store
clear:
  call void @PyErr_Clear()
  ret ptr null
store:
  br i1 %single, label %float, label %double
float:
  %y = fptrunc double %x to float
  %bits = bitcast float %y to i32
  %word = zext i32 %bits to i64
  store i64 %word, ptr %at, align 8
  br label %done
double:
  store double %x, ptr %at, align 8
  br label %done
done:
  %next = getelementptr i64, ptr %at, i64 1
  ret ptr %next
}}

; An int; null where it does not fit 64 bits.
define internal ptr @take_int(ptr %object, ptr %at) alwaysinline {{
entry:
  %x = call i64 @PyLong_AsLongLong(ptr %object)
  %suspect = icmp eq i64 %x, -1
  br i1 %suspect, label %ask, label %store
ask:
  %error = call ptr @PyErr_Occurred()
  %raised = icmp ne ptr %error, null
  br i1 %raised, label %clear, label %store
clear:
  call void @PyErr_Clear()
  ret ptr null
store:
  store i64 %x, ptr %at, align 8
  %next = getelementptr i64, ptr %at, i64 1
  ret ptr %next
}}

; Data, extents and strides of an array; null where dtype, rank, flags or unit strides are not as wanted, where it may
; overlap itself and is written, or where its bytes overlap those of an earlier array and one of the two is written.
define internal ptr @take_array(ptr %array, ptr %descriptor, ptr %at, ptr %spans, i64 %earlier) {{
entry:
  %dtype = call ptr @pointer_field(ptr %array, i64 {abi.DESCR})
  %order.word = call i64 @field(ptr %dtype, i64 {abi.ORDER})
  %order = and i64 %order.word, {abi.ORDER_MASK}
  %order.wanted = call i64 @word(ptr %descriptor, i64 {Arg.ORDER})
  %rank = call i64 @int_field(ptr %array, i64 {abi.NDIM})
  %rank.wanted = call i64 @word(ptr %descriptor, i64 {Arg.RANK})
  %flags = call i64 @int_field(ptr %array, i64 {abi.FLAGS})
  %flags.wanted = call i64 @word(ptr %descriptor, i64 {Arg.FLAGS})
  %flags.set = and i64 %flags, %flags.wanted
  %order.ok = icmp eq i64 %order, %order.wanted
  %rank.ok = icmp eq i64 %rank, %rank.wanted
  %flags.ok = icmp eq i64 %flags.set, %flags.wanted
  %ok.1 = and i1 %order.ok, %rank.ok
  %ok = and i1 %ok.1, %flags.ok
  br i1 %ok, label %fields, label %no
fields:
  %data = call i64 @field(ptr %array, i64 {abi.DATA})
  %dims = call ptr @pointer_field(ptr %array, i64 {abi.DIMS})
  %steps = call ptr @pointer_field(ptr %array, i64 {abi.STRIDES})
  %item = call i64 @word(ptr %descriptor, i64 {Arg.ITEM})
  %unit = call i64 @word(ptr %descriptor, i64 {Arg.UNIT})
  store i64 %data, ptr %at, align 8
  %extents.at = getelementptr i64, ptr %at, i64 1
  %strides.at = getelementptr i64, ptr %extents.at, i64 %rank
  %next = getelementptr i64, ptr %strides.at, i64 %rank
  br label %test
test:                                             ; lo, hi: first and last byte address of an element's start
  %d = phi i64 [ 0, %fields ], [ %d.next, %dim ]
  %lo = phi i64 [ %data, %fields ], [ %lo.next, %dim ]
  %hi = phi i64 [ %data, %fields ], [ %hi.next, %dim ]
  %empty = phi i1 [ false, %fields ], [ %empty.next, %dim ]
  %strided = phi i1 [ false, %fields ], [ %strided.next, %dim ]
  %more = icmp slt i64 %d, %rank
  br i1 %more, label %dim, label %span
dim:
  %n = call i64 @word(ptr %dims, i64 %d)
  %s = call i64 @word(ptr %steps, i64 %d)
  %n.to = getelementptr i64, ptr %extents.at, i64 %d
  store i64 %n, ptr %n.to, align 8
  %s.to = getelementptr i64, ptr %strides.at, i64 %d
  store i64 %s, ptr %s.to, align 8
  %last = sub i64 %n, 1
  %reach = mul i64 %last, %s
  %down = call i64 @llvm.smin.i64(i64 %reach, i64 0)
  %up = call i64 @llvm.smax.i64(i64 %reach, i64 0)
  %lo.next = add i64 %lo, %down
  %hi.next = add i64 %hi, %up
  %none = icmp eq i64 %n, 0
  %empty.next = or i1 %empty, %none
  %unit.shifted = lshr i64 %unit, %d
  %unit.wanted = trunc i64 %unit.shifted to i1
  %long = icmp sgt i64 %n, 1
  %wide = icmp ne i64 %s, %item
  %wrong.1 = and i1 %unit.wanted, %long
  %wrong = and i1 %wrong.1, %wide
  %strided.next = or i1 %strided, %wrong
  %d.next = add i64 %d, 1
  br label %test
span:
  %present = xor i1 %empty, true
  %misfit = and i1 %strided, %present
  br i1 %misfit, label %no, label %written
written:
  %writes = call i64 @word(ptr %descriptor, i64 {Arg.WRITTEN})
  %is.written = icmp ne i64 %writes, 0
  br i1 %is.written, label %itself, label %register
itself:
  %contiguous = and i64 %flags, {abi.C_CONTIGUOUS | abi.F_CONTIGUOUS}
  %dense = icmp ne i64 %contiguous, 0
  %harmless = or i1 %dense, %empty
  br i1 %harmless, label %register, label %folded
folded:
  %injective = call i1 @nested_strides(ptr %extents.at, ptr %strides.at, i64 %rank, i64 %item)
  br i1 %injective, label %register, label %no
register:
  %end = add i64 %hi, %item
  %top = select i1 %empty, i64 %lo, i64 %end
  %mine.at = mul i64 %earlier, 3
  %mine = getelementptr i64, ptr %spans, i64 %mine.at
  call void @set_word(ptr %mine, i64 0, i64 %lo)
  call void @set_word(ptr %mine, i64 1, i64 %top)
  call void @set_word(ptr %mine, i64 2, i64 %writes)
  br label %pairs
pairs:
  %k = phi i64 [ 0, %register ], [ %k.next, %pair ]
  %left = icmp slt i64 %k, %earlier
  br i1 %left, label %pair, label %yes
pair:
  %theirs.at = mul i64 %k, 3
  %theirs = getelementptr i64, ptr %spans, i64 %theirs.at
  %their.lo = call i64 @word(ptr %theirs, i64 0)
  %their.top = call i64 @word(ptr %theirs, i64 1)
  %their.writes = call i64 @word(ptr %theirs, i64 2)
  %any.writes = or i64 %writes, %their.writes
  %one.writes = icmp ne i64 %any.writes, 0
  %below = icmp ult i64 %their.lo, %top
  %above = icmp ult i64 %lo, %their.top
  %meet = and i1 %below, %above
  %clash = and i1 %meet, %one.writes
  %k.next = add i64 %k, 1
  br i1 %clash, label %no, label %pairs
yes:
  ret ptr %next
no:
  ret ptr null
}}
declare i64 @llvm.smax.i64(i64, i64)

; Whether every dimension of more than one element steps over all that shorter strides reach: then no two elements
; share a byte. (The converse does not hold: what fails here gets the exact test in Python.)
define internal i1 @nested_strides(ptr %extents, ptr %strides, i64 %rank, i64 %item) {{
entry:
  br label %outer
outer:
  %d = phi i64 [ 0, %entry ], [ %d.next, %outer.next ]
  %more = icmp slt i64 %d, %rank
  br i1 %more, label %dim, label %yes
dim:
  %n = call i64 @word(ptr %extents, i64 %d)
  %s = call i64 @word(ptr %strides, i64 %d)
  %size = call i64 @llvm.abs.i64(i64 %s, i1 false)
  %d.next = add i64 %d, 1
  %single = icmp sle i64 %n, 1
  br i1 %single, label %outer.next, label %inner
inner:
  %e = phi i64 [ 0, %dim ], [ %e.next, %inner.step ]
  %reach = phi i64 [ %item, %dim ], [ %reach.next, %inner.step ]
  %more.inner = icmp slt i64 %e, %rank
  br i1 %more.inner, label %inner.step, label %compare
inner.step:
  %m = call i64 @word(ptr %extents, i64 %e)
  %t = call i64 @word(ptr %strides, i64 %e)
  %other = call i64 @llvm.abs.i64(i64 %t, i1 false)
  %last = sub i64 %m, 1
  %far = mul i64 %last, %other
  %shorter = icmp sle i64 %other, %size
  %different = icmp ne i64 %d, %e
  %counts = and i1 %shorter, %different
  %adds = select i1 %counts, i64 %far, i64 0
  %reach.next = add i64 %reach, %adds
  %e.next = add i64 %e, 1
  br label %inner
compare:
  %steps.over = icmp sge i64 %size, %reach
  br i1 %steps.over, label %outer.next, label %no
outer.next:
  br label %outer
yes:
  ret i1 true
no:
  ret i1 false
}}
"""
