; RUN: prepare
; ERROR: memory that is allocated inside the kernel (a local array, or a slice of one) (a call of NRT_MemInfo_alloc
; ERROR: pass a scratch array as an argument

declare ptr @NRT_MemInfo_alloc_aligned(i64, i32)

define void @f(ptr %T.data, i64 %n) {
  %m = call ptr @NRT_MemInfo_alloc_aligned(i64 %n, i32 32)
  store ptr %m, ptr %T.data
  ret void
}
