"""The compiled part of launching: one module of C functions for all kernels, made at the first launch of a process."""

from __future__ import annotations

from functools import lru_cache

from irad.codegen.cpu import Code, compile_text
from irad.launch import ir_call, ir_region


@lru_cache(maxsize=1)
def native() -> Code:
    """The C functions ``call``, ``bound``, ``run_launches``, ``region``."""
    return compile_text(ir_call.COMMON + ir_call.BOUND + ir_region.REGION)
