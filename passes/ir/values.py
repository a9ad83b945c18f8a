"""Values of IR types on this machine: integers that wrap, floats of either precision, aggregates as tuples."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import ops
from .aggregates import aggregate_fields
from .const import const_value
from .model import Const
from .tokens import Cursor

DTYPES: dict[str, Any] = {
    "double": np.float64, "float": np.float32, "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8,
    "i1": np.int8, "ptr": np.int64,
}  # fmt: skip


def wrap_int(type: str, value: int) -> int:
    """The integer in the signed range of its type; an ``i1`` is 0 or 1."""
    if type == "i1":
        return value & 1
    bits = 8 * ops.SIZES[type]
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def unsigned(type: str, value: int) -> int:
    return value & ((1 << (1 if type == "i1" else 8 * ops.SIZES[type])) - 1)


def as_type(type: str, value: Any) -> Any:
    """A Python or NumPy number as a value of an IR type."""
    if type in ops.FLOATS:
        return DTYPES[type](value)
    if type in ops.SIZES:
        return int(value) if type == "ptr" else wrap_int(type, int(value))
    return value


def literal(type: str, text: str) -> Any:
    """The value of a constant's text."""
    fields = aggregate_fields(type)
    if text in ("undef", "poison", "zeroinitializer", "null"):
        if fields is not None:
            return tuple(literal(f, text) for f in fields)
        unknown = text in ("undef", "poison") and type in ops.FLOATS
        return as_type(type, np.nan if unknown else 0)
    if fields is not None:
        return _aggregate(text)
    value = const_value(Const(type, text))
    return as_type(type, np.nan if value is None else value)


def _aggregate(text: str) -> tuple[Any, ...]:
    c = Cursor(text)
    closing = {"[": "]", "{": "}"}[c.next()]
    items = []
    while not c.accept(closing):
        v = c.typed()
        assert isinstance(v, Const)
        items.append(literal(v.type, v.text))
        c.accept(",")
    return tuple(items)


def initialiser(definition: str) -> tuple[str, Any]:
    c = Cursor(definition[definition.index("constant ") + len("constant ") :])
    type = c.type()
    if c.peek().startswith('c"'):
        raise ValueError("a string constant")
    v = c.operand(type)
    assert isinstance(v, Const)
    return type, literal(type, v.text)


def layout(type: str) -> tuple[list[int], int]:
    """Offsets of the fields of a type, and its size, in bytes (scalars: one field)."""
    fields = aggregate_fields(type)
    if fields is None:
        return [0], ops.SIZES[type]
    offsets, at, most = [], 0, 1
    for f in fields:
        size = layout(f)[1]
        align = alignment(f)
        at = -(-at // align) * align
        offsets.append(at)
        at += size
        most = max(most, align)
    return offsets, -(-at // most) * most


def alignment(type: str) -> int:
    fields = aggregate_fields(type)
    return ops.SIZES[type] if fields is None else max(map(alignment, fields), default=1)
