; RUN: affine --verify
; A neighbour behind a test of the index: the access carries the bounds, and does not count from the end.

; CHECK: define void @f(i64 %.i0
; CHECK: [[j:%[-.\w]+]] = add nsw i64 %.i0, -1
; NEXT: call double @irad.aload.f64.T(i64 [[j]]), !irad.access !{!"[#0 + -1] guard [1:) x [:)"}
; CHECK: call void @irad.astore.f64.D(double [[v:%[-.\w]+]], i64 %.i0), !irad.access !{!"[#0] always"}

declare i64 @irad.index.0()

define void @f(ptr %D.data, i64 %D.n0, i64 %D.s0, ptr %T.data, i64 %T.n0, i64 %T.s0) {
entry:
  %i = call i64 @irad.index.0()
  %o = mul i64 %i, %D.s0
  %w = getelementptr i8, ptr %D.data, i64 %o
  %in = icmp sgt i64 %i, 0
  br i1 %in, label %left, label %end
left:
  %j = sub i64 %i, 1
  %negative = icmp slt i64 %j, 0
  %up = add i64 %j, %T.n0
  %x = select i1 %negative, i64 %up, i64 %j
  %s = mul i64 %x, %T.s0
  %p = getelementptr i8, ptr %T.data, i64 %s
  %t = load double, ptr %p
  br label %end
end:
  %v = phi double [ 0.0, %entry ], [ %t, %left ]
  store double %v, ptr %w
  ret void
}
