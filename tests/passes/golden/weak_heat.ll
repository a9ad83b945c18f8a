; RUN: prepare --verify --weak dx
; A float32 stencil with Python scalars: only dx * dx, which is a Python float, stays double.

; CHECK: define void @heat(
; CHECK: [[q:%[-.\w]+]] = fmul double %dx, %dx
; CHECK: fptrunc double [[q]] to float
; NOT: double
; CHECK: fdiv float
; NOT: double
; CHECK: store float
; CHECK: ret void

declare i64 @irad.index.0() memory(none) nounwind willreturn speculatable

define void @heat(ptr %D.data, i64 %D.n0, i64 %D.s0, ptr %T.data, i64 %T.n0, i64 %T.s0, double %dx) {
  %i = call i64 @irad.index.0()
  %q = fmul double %dx, %dx
  %o = mul i64 %i, %T.s0
  %p = getelementptr i8, ptr %T.data, i64 %o
  %t = load float, ptr %p, align 4
  %e = getelementptr i8, ptr %p, i64 %T.s0
  %u = load float, ptr %e, align 4
  %tw = fpext float %t to double
  %t2 = fmul double %tw, 2.0
  %uw = fpext float %u to double
  %d = fsub double %uw, %t2
  %r = fdiv double %d, %q
  %rn = fptrunc double %r to float
  %s = mul i64 %i, %D.s0
  %w = getelementptr i8, ptr %D.data, i64 %s
  store float %rn, ptr %w, align 4
  ret void
}
