"""Regions: all tiles of one sweep, on threads or alone, as LLVM IR."""

REGION = """
define void @region(ptr %pool, ptr %body, i64 %tiles, ptr %block, i1 %parallel) {
  call void %body(i64 0, i64 %tiles, ptr %block)
  ret void
}
"""
