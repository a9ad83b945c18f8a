; RUN: prepare
; ERROR: an atomic memory operation has no derivative
; ERROR: Instead: let each point write its own entries

define void @f(ptr %T.data, i64 %n) {
  %old = atomicrmw add ptr %T.data, i64 %n seq_cst
  ret void
}
