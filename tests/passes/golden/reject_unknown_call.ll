; RUN: prepare
; ERROR: /home/u/k.py:12: a call of the unknown function strange has no derivative

declare double @strange(double)

define double @f(double %x) !dbg !3 {
  %y = call double @strange(double %x), !dbg !5
  ret double %y
}

!llvm.module.flags = !{!0}
!llvm.dbg.cu = !{!1}
!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = distinct !DICompileUnit(language: DW_LANG_C, file: !2, emissionKind: LineTablesOnly)
!2 = !DIFile(filename: "/home/u/k.py", directory: "")
!3 = distinct !DISubprogram(name: "f", scope: !2, file: !2, line: 10, type: !4, unit: !1, spFlags: DISPFlagDefinition)
!4 = !DISubroutineType(types: !{null})
!5 = !DILocation(line: 12, column: 1, scope: !3)
