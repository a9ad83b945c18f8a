; RUN: affine,race
; Points that read what their neighbours write.

; ERROR: a point reads T[i + 1], which another point writes as T[i]
; ERROR: read from a second array that holds the old values of 'T'

declare i64 @irad.index.0()

define void @f(ptr %T.data, i64 %T.n0, i64 %T.s0) {
  %i = call i64 @irad.index.0()
  %o = mul i64 %i, %T.s0
  %p = getelementptr i8, ptr %T.data, i64 %o
  %q = getelementptr i8, ptr %p, i64 %T.s0
  %t = load double, ptr %q
  store double %t, ptr %p
  ret void
}
