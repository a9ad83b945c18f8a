"""The pool that runs tiles."""

from __future__ import annotations


def pool_address() -> int:
    """Where the pool's table lies (0: no pool)."""
    return 0
