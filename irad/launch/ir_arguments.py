"""From the arguments of a call to the words of a block, as LLVM IR.

Nothing here runs Python code: exact types are compared, fields of NumPy's array object are read, and whatever is not as
its descriptor (``tables.Arg``) says ends the attempt.
"""

from __future__ import annotations

from irad.launch import abi
from irad.launch.tables import Arg, Kind, Spec

ARGUMENTS = f"""
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyErr_Occurred()
@_Py_TrueStruct = external global i8
declare i64 @llvm.abs.i64(i64, i1)

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
  %apart = call i64 @word(ptr %descriptor, i64 {Arg.APART})
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
  %close = phi i1 [ false, %fields ], [ %close.next, %dim ]
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
  %gaps = and i1 %long, %wide
  %wrong = and i1 %unit.wanted, %gaps
  %strided.next = or i1 %strided, %wrong
  %apart.shifted = lshr i64 %apart, %d
  %apart.wanted = trunc i64 %apart.shifted to i1
  %no.gaps = xor i1 %gaps, true
  %better = and i1 %apart.wanted, %no.gaps
  %close.next = or i1 %close, %better
  %d.next = add i64 %d, 1
  br label %test
span:
  %present = xor i1 %empty, true
  %misfit.1 = and i1 %strided, %present
  %misfit = or i1 %misfit.1, %close
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
