; RUN: prepare --verify
; Comparing with a constant does not make a variable that constant: the derivative of 3 * a is 3.

define double @f(double %a) {
; CHECK: define double @f(double %a)
; CHECK: [[c:%[-.\w]+]] = fcmp oeq double %a, 1.000000e+00
; NEXT: br i1 [[c]], label %[[then:[-.\w]+]], label
; CHECK: [[then]]:
; NEXT: [[y:%[-.\w]+]] = fmul double %a, 3.000000e+00
; CHECK: phi double
; CHECK: ret double
entry:
  %c = fcmp oeq double %a, 1.0
  br i1 %c, label %then, label %done
then:
  %y = fmul double %a, 3.0
  br label %done
done:
  %r = phi double [ %y, %then ], [ %a, %entry ]
  ret double %r
}
