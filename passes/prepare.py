"""From the frontend's LLVM text to a function of the small IR that the other passes work on."""

from __future__ import annotations

from .canonical import inline, optimise
from .guard import guard_memory, guard_values
from .ir.model import Function
from .ir.read import read_function


def prepare_function(text: str, name: str, weak: frozenset[str]) -> Function:
    return read_function(optimise(guard_memory(inline(guard_values(text), {name}, branches=True))), name)
