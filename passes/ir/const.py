"""Literals: numbers to LLVM's spelling and back."""

from __future__ import annotations

import math
import struct

from .model import Const, Value


def float_const(type: str, value: float) -> Const:
    """A ``double`` or ``float`` literal; ``value`` is rounded to the type. Spelled as LLVM itself would."""
    if type == "float":
        value = to_float32(value)
    return Const(type, float_text(value))


def float_text(value: float) -> str:
    """LLVM's spelling: decimal where that is exact, else the bits of the double."""
    if math.isfinite(value):
        text = f"{value:.6e}"
        if float(text) == value:
            return text
    return f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}"


def to_float32(value: float) -> float:
    """Round to float32 (to infinity beyond its range, as hardware does)."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def int_const(type: str, value: int) -> Const:
    """An integer literal in the signed range of its type; ``i1`` is ``true`` or ``false``."""
    bits = int(type[1:])
    if bits == 1:
        return Const(type, "true" if value & 1 else "false")
    value &= (1 << bits) - 1
    return Const(type, str(value - (1 << bits) if value >> (bits - 1) else value))


def const_value(v: Value) -> int | float | None:
    """The number of a literal; ``None`` for everything else (also for ``undef``, ``poison`` and ``null``)."""
    if not isinstance(v, Const):
        return None
    text = v.text
    if v.type in ("double", "float"):
        if text == "zeroinitializer":
            return 0.0
        if text.startswith("0x"):
            return float(struct.unpack(">d", struct.pack(">Q", int(text, 16)))[0])
        return float(text) if text[-1].isdigit() else None
    if text in ("true", "false"):
        return int(text == "true")
    if text == "zeroinitializer" and v.type.startswith("i"):
        return 0
    return int(text) if text.lstrip("-").isdigit() else None


def is_number(v: Value, number: int | float) -> bool:
    """Whether ``v`` is the literal ``number``; -0.0 and 0.0 are different."""
    value = const_value(v)
    return value is not None and value == number and math.copysign(1.0, value) == math.copysign(1.0, number)
