"""From a Python function to LLVM text: captures, launch domain, statements, Numba. No arrays, no derivatives."""

from irad.frontend.captures import Capture
from irad.frontend.compile import lower
from irad.frontend.signature import (
    ArrayType,
    Conform,
    Lowered,
    Options,
    ParamInfo,
    ScalarType,
    StageIR,
    typeof,
)

__all__ = [
    "ArrayType",
    "Capture",
    "Conform",
    "Lowered",
    "Options",
    "ParamInfo",
    "ScalarType",
    "StageIR",
    "lower",
    "typeof",
]
