"""Copies of whole arrays from one local array to another."""

from __future__ import annotations

import numpy as np
from irad.passes.ir.model import ArrayParam, ScalarParam
from irad.passes.loop_function import loop_function
from loop_runner import Loop

CHAIN = """
define i32 @f(ptr %X.data, i64 %X.n0, i64 %X.s0, i64 %n) {
entry:
  %t1 = call ptr @irad.alloc(i64 32)
  %t2 = call ptr @irad.alloc(i64 32)
  call void @llvm.memset.p0.i64(ptr %t1, i8 0, i64 32, i1 false)
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %next, %head ]
  call void @llvm.memcpy.p0.p0.i64(ptr %t2, ptr %t1, i64 32, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %t1, ptr %X.data, i64 32, i1 false)
  call void @llvm.memmove.p0.p0.i64(ptr %X.data, ptr %t2, i64 32, i1 false)
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %head, label %done
done:
  call void @irad.decref(ptr %t1)
  call void @irad.decref(ptr %t2)
  ret i32 0
}
declare noalias ptr @irad.alloc(i64)
declare void @irad.decref(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""


def test_a_chain_of_copies_in_any_order() -> None:
    """After an odd number of rounds the array holds zeros, after an even one what it held before."""
    fn = loop_function(CHAIN, "f", frozenset())
    loop = Loop(fn, (ArrayParam("X", "double", 1), ScalarParam("n", "i64")), {"X"})
    x, seed = np.arange(1.0, 5.0), np.array([2.0, -1.0, 0.5, 3.0])
    for n, factor in ((1, 0.0), (2, 1.0), (3, 0.0), (4, 1.0)):
        status, after = loop.run({"X": x, "n": n})
        assert status == 0
        np.testing.assert_array_equal(after["X"], factor * x)
        (found,) = loop.pull({"X": x, "n": n}, [{"X": seed}]).found
        np.testing.assert_array_equal(found["X"], factor * seed)
