"""Types of small structs and arrays, as LLVM spells them."""

from __future__ import annotations

from . import ops
from .tokens import Cursor, NotParsed

MOST_FIELDS = 16


def aggregate_fields(type: str) -> list[str] | None:
    """Field types of a flat aggregate of scalars, or of a small nest; ``None`` if it is of anything else."""
    c = Cursor(type)
    fields: list[str] = []
    if c.accept("["):
        count = int(c.next())
        c.expect("x")
        fields = [c.type()] * min(count, MOST_FIELDS + 1)
    elif c.accept("{"):
        while not c.accept("}"):
            fields.append(c.type())
            c.accept(",")
    else:
        return None
    for f in fields:
        if f not in ops.SIZES and (not f.startswith(("{", "[")) or aggregate_fields(f) is None):
            return None
    return fields


def field_type(type: str, indices: tuple[int, ...]) -> str:
    """The type of a field: ``("{ double, i1 }", (1,))`` is ``i1``."""
    for k in indices:
        fields = aggregate_fields(type)
        if fields is None or k >= len(fields):
            raise NotParsed(f"field {k} of {type}")
        type = fields[k]
    return type
