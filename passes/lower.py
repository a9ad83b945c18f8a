"""Structured memory operations to addresses: the last step before LLVM text.

``aload T[i, j]`` becomes a load from ``T.data + i*T.s0 + j*T.s1``. The launch has checked every index, so that the
address is inside the array (``inbounds``) and the arithmetic cannot overflow (``nsw``); that is what lets LLVM see
a contiguous stream of addresses and vectorise. ``iwrap`` becomes a select where the access really wraps in the launch,
and disappears elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable

from .ir.model import Access, Block, Const, Function, Instr, Value
from .layout import ITEM_SIZE


def resolve_wraps(fn: Function, wraps: Callable[[Access, int], bool]) -> None:
    """Remove ``iwrap`` from the accesses for which ``wraps(access, dimension)`` is false, in place."""
    for i in fn.instrs():
        if i.access is None or not any(d.wraps for d in i.access.dims):
            continue
        head = len(i.operands) - len(i.access.dims)
        if i.op not in ("aload", "astore", "sload", "sstore", "accum"):
            continue
        for d, index in enumerate(i.access.dims):
            v = i.operands[head + d]
            if index.wraps and isinstance(v, Instr) and v.op == "iwrap" and not wraps(i.access, d):
                i.operands[head + d] = v.operands[0]


def lower(fn: Function) -> None:
    """Replace every structured operation by LLVM instructions, in place (``accum`` and ``accums`` must be gone)."""
    for block in fn.blocks:
        old, block.instrs = block.instrs, []
        for i in old:
            _lower_one(fn, block, i)


def _lower_one(fn: Function, block: Block, i: Instr) -> None:
    def emit(op: str, type: str, operands: list[Value], **kw: object) -> Instr:
        return block.append(Instr(op, type, operands, loc=i.loc, **kw))  # type: ignore[arg-type]

    if i.op == "iwrap":
        x, n = i.operands
        negative = emit("icmp", "i1", [x, Const("i64", "0")], pred="slt")
        up = emit("add", "i64", [x, n], flags=("nsw",))
        _become(block, i, "select", [negative, up, x])
    elif i.op in ("aload", "sload", "astore", "sstore"):
        value = i.operands[:1] if i.op in ("astore", "sstore") else []
        prefix = i.array + ("'" if i.op[0] == "s" else "")
        offset: Value | None = None
        for d, index in enumerate(i.operands[len(value) :]):
            part: Value = emit("mul", "i64", [index, fn.arg(f"{prefix}.s{d}")], flags=("nsw",))
            offset = part if offset is None else emit("add", "i64", [offset, part], flags=("nsw",))
        address: Value = fn.arg(f"{prefix}.data")
        if offset is not None:
            address = emit("getelementptr", "ptr", [address, offset], elem="i8", flags=("inbounds",))
        elem = value[0].type if value else i.type
        _become(block, i, "store" if value else "load", [*value, address], align=ITEM_SIZE[elem])
    elif i.op in ("accum", "accums"):
        raise AssertionError(f"{i.op} left in {fn.name}")
    else:
        block.append(i)


def _become(block: Block, i: Instr, op: str, operands: list[Value], align: int = 0) -> None:
    """Turn ``i`` into another operation in place, so that its users need no change."""
    i.op, i.operands, i.align, i.array, i.access = op, operands, align, "", None
    i.flags = ()
    block.append(i)
