"""From the frontend's LLVM text to the function of the small IR that the other passes work on."""

from __future__ import annotations

from .canonical import inline_keeping_branches, optimise
from .decisions import exact_decisions
from .guard import guard_memory, guard_values
from .ir.model import Function
from .ir.read import read_function
from .ir.verify import verify
from .tidy import tidy
from .unroll import unroll
from .weak import apply as apply_weak


def prepare_function(text: str, name: str, weak: frozenset[str]) -> Function:
    """The function ``name`` of an unoptimised, self-contained LLVM module, cleaned up and ready to be differentiated.

    ``weak``: the float parameters that are Python numbers, which take the precision of what they meet. Raises
    ``NotDifferentiableError`` with the user's line for what the passes do not know.
    """
    fn = tidy(exact_decisions(apply_weak(read_function(canonical_text(text, name), name), weak)))
    verify(fn)
    return fn


def canonical_text(text: str, name: str) -> str:
    """The LLVM text that :func:`prepare_function` reads: guarded, inlined and simplified by LLVM."""
    return unroll(optimise(guard_memory(inline_keeping_branches(guard_values(text), name))), name)
