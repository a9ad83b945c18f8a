"""What stands in for Numba's runtime in loop kernels: local arrays as plain memory, as LLVM text.

Numba's local arrays lie behind a record with a count of references and a pointer to the entries. Here the pointer to
the entries stands for the record, so that no pointer is ever kept in memory and what is allocated can be followed
through the code. Left for the passes are three calls:

=============================== ==========================================================================
``ptr @irad.alloc(i64 bytes)``  new memory, aligned to 64 bytes, referred to once; null where there is none
``void @irad.incref(ptr)``      one reference more to memory of ``irad.alloc``
``void @irad.decref(ptr)``      one less; after the last, nobody uses the memory
=============================== ==========================================================================
"""

from __future__ import annotations

_ALLOCATE = (
    "NRT_MemInfo_alloc(i64 %size)",
    "NRT_MemInfo_alloc_safe(i64 %size)",
    "NRT_MemInfo_alloc_aligned(i64 %size, i32 %align)",
    "NRT_MemInfo_alloc_safe_aligned(i64 %size, i32 %align)",
    "NRT_Allocate(i64 %size)",
)


def _counting(name: str) -> str:
    return (
        f"define void @NRT_{name}(ptr %memory) alwaysinline {{\n"
        "  %none = icmp eq ptr %memory, null\n  br i1 %none, label %done, label %count\n"
        f"count:\n  call void @irad.{name}(ptr %memory)\n  br label %done\ndone:\n  ret void\n}}\n"
    )


RUNTIME = (
    "declare noalias ptr @irad.alloc(i64) nounwind willreturn memory(inaccessiblemem: readwrite)\n"
    + "".join(
        f"declare void @irad.{name}(ptr) nounwind willreturn memory(argmem: readwrite, inaccessiblemem: readwrite)\n"
        for name in ("incref", "decref")
    )
    + "".join(
        f"define noalias ptr @{head} alwaysinline {{\n"
        "  %memory = call ptr @irad.alloc(i64 %size)\n  ret ptr %memory\n}\n"
        for head in _ALLOCATE
    )
    + _counting("incref")
    + _counting("decref")
    + "define void @NRT_Free(ptr %memory) alwaysinline {\n"
    "  call void @NRT_decref(ptr %memory)\n  ret void\n}\n"
    "define ptr @NRT_MemInfo_data_fast(ptr %memory) alwaysinline {\n  ret ptr %memory\n}\n"
)
"""Definitions of the functions of Numba's runtime that Numba's code calls."""
