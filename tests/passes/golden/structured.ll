; RUN: tidy --verify
; Structured operations are read and written as they are.

; CHECK: define void @p(i64 %.i0, double %lam)
; CHECK: %a = call double @irad.aload.f64.T(i64 %k), !irad.access !{!"[#0 + 1 wraps] guard [1:T.n0 - 1)"}
; CHECK: call void @"irad.accum.f64.q@1"(double %a, i64 %.i0)
; CHECK: call void @irad.accums.f64.lam(double %a)

declare i64 @irad.iwrap(i64, i64)
declare double @irad.aload.f64.T(i64)
declare void @"irad.accum.f64.q@1"(double, i64)
declare void @irad.accums.f64.lam(double)

define void @p(i64 %.i0, double %lam) {
entry:
  %j = add i64 %.i0, 1
  %k = call i64 @irad.iwrap(i64 %j, i64 10)
  br label %next
next:
  %a = call double @irad.aload.f64.T(i64 %k), !irad.access !{!"[#0 + 1 wraps] guard [1:T.n0 - 1)"}
  call void @"irad.accum.f64.q@1"(double %a, i64 %.i0)
  call void @irad.accums.f64.lam(double %a)
  ret void
}
