"""Machine code that is not loaded yet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ObjectCode:
    """The bytes of an object file, the functions it defines, the functions and variables it needs from outside."""

    data: bytes
    defines: tuple[str, ...]
    imports: tuple[str, ...]
