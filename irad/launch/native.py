"""The compiled part of launching: one module of C functions for all kernels, made at the first launch of a process."""

from __future__ import annotations

from functools import lru_cache

from irad.codegen.cpu import Code, compile_text
from irad.launch import ir_arguments, ir_bound, ir_call, ir_common, ir_region

TEXT = "\n".join(
    (
        ir_common.COMMON,
        ir_region.machine_text(),
        ir_region.REGION,
        ir_region.WORKERS,
        ir_region.COUNT,
        ir_bound.BOUND,
        ir_arguments.ARGUMENTS,
        ir_call.CALL,
    )
)


@lru_cache(maxsize=1)
def native() -> Code:
    """The C functions ``call``, ``bound``, ``run_launches``, ``region``, ``threads_wanted``."""
    return compile_text(TEXT)
