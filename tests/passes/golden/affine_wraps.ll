; RUN: affine --verify
; A permuted field, a line and a negative index, which counts from the end.

; CHECK: define void @f(
; CHECK: [[x:%[-.\w]+]] = call i64 @irad.iwrap(i64 [[j:%[-.\w]+]], i64 %T.n0)
; NEXT: call double @irad.aload.f64.T(i64 [[x]], i64 %.i0), !irad.access !{!"[#1 + -1 wraps, #0] always"}
; CHECK: !irad.access !{!"[#1 + c.n0 - 2] always"}
; CHECK: i64 %.i0, i64 %.i1), !irad.access !{!"[#0, #1] always"}

declare i64 @irad.index.0()
declare i64 @irad.index.1()

define void @f(ptr %D.data, i64 %D.n0, i64 %D.n1, i64 %D.s0, i64 %D.s1,
               ptr %T.data, i64 %T.n0, i64 %T.n1, i64 %T.s0, i64 %T.s1, ptr %c.data, i64 %c.n0, i64 %c.s0) {
  %i = call i64 @irad.index.0()
  %j = call i64 @irad.index.1()
  %x = add i64 %j, -1
  %negative = icmp slt i64 %j, 1
  %n = select i1 %negative, i64 %T.n0, i64 0
  %y = add i64 %x, %n
  %t0 = mul i64 %y, %T.s0
  %t1 = mul i64 %i, %T.s1
  %t2 = add i64 %t0, %t1
  %tp = getelementptr i8, ptr %T.data, i64 %t2
  %t = load double, ptr %tp
  %c0 = add i64 %c.n0, %j
  %c1 = sub i64 %c0, 2
  %c2 = mul i64 %c1, %c.s0
  %cp = getelementptr i8, ptr %c.data, i64 %c2
  %c = load double, ptr %cp
  %r = fmul double %t, %c
  %d0 = mul i64 %i, %D.s0
  %d1 = mul i64 %j, %D.s1
  %d2 = add i64 %d0, %d1
  %dp = getelementptr i8, ptr %D.data, i64 %d2
  store double %r, ptr %dp
  ret void
}
