; RUN: prepare --verify --locs
; Helpers are inlined; what they do keeps their own lines.

; CHECK: define void @f(ptr %T.data
; CHECK: load double, ptr %T.data, align 8, !irad.loc !{!"/home/u/k.py:12"}
; CHECK: fmul double [[v:%[-.\w]+]], 5.000000e-01, !irad.loc !{!"/home/u/helpers.py:3"}
; NOT: call
; CHECK: ret void

define internal double @half(double %x) noinline !dbg !6 {
  %y = fmul double %x, 5.000000e-01, !dbg !9
  ret double %y, !dbg !9
}

define void @f(ptr %T.data, i64 %T.n0, i64 %T.s0) !dbg !3 {
  %v = load double, ptr %T.data, align 8, !dbg !8
  %h = call double @half(double %v), !dbg !8
  store double %h, ptr %T.data, align 8, !dbg !8
  ret void, !dbg !8
}

!llvm.module.flags = !{!0}
!llvm.dbg.cu = !{!1}
!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = distinct !DICompileUnit(language: DW_LANG_C, file: !2, emissionKind: LineTablesOnly)
!2 = !DIFile(filename: "/home/u/k.py", directory: "")
!3 = distinct !DISubprogram(name: "f", scope: !2, file: !2, line: 10, type: !4, unit: !1, spFlags: DISPFlagDefinition)
!4 = !DISubroutineType(types: !{null})
!6 = distinct !DISubprogram(name: "half", scope: !7, file: !7, line: 2, type: !4, unit: !1, spFlags: DISPFlagDefinition)
!7 = !DIFile(filename: "/home/u/helpers.py", directory: "")
!8 = !DILocation(line: 12, column: 1, scope: !3)
!9 = !DILocation(line: 3, column: 1, scope: !6)
