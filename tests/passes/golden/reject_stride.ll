; RUN: affine
; Every second element of an array.

; ERROR: an index of 'T' is 2*i, a multiple of the index of the point
; ERROR: pass a strided view of the array, u[::2], and index it with i

declare i64 @irad.index.0()

define void @f(ptr %D.data, i64 %D.n0, i64 %D.s0, ptr %T.data, i64 %T.n0, i64 %T.s0) {
  %i = call i64 @irad.index.0()
  %o = mul i64 %i, %D.s0
  %p = getelementptr i8, ptr %D.data, i64 %o
  %two = shl i64 %i, 1
  %e = mul i64 %two, %T.s0
  %q = getelementptr i8, ptr %T.data, i64 %e
  %t = load double, ptr %q
  store double %t, ptr %p
  ret void
}
