"""Memory that a recorded function touches, as regions and views, so that a record can be replayed on other memory.

A *region* is one span of bytes: the state, its rate, one parameter array, or what the function's captured and scratch
arrays occupy (arrays that are views of one array share a region). A *view* is an offset into a region with a shape,
strides and a data type. Shadows and tangents of a region have the same layout, so that one view serves them all.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

_ALIGN = 64


@dataclass(frozen=True)
class View:
    """An array inside a region: byte ``offset``, shape, byte strides, data type."""

    region: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    def on(self, memory: Bytes) -> npt.NDArray[Any]:
        """The array itself, on memory that stands for the region."""
        array: npt.NDArray[Any] = np.ndarray(
            self.shape, self.dtype, buffer=memory.data, offset=self.offset, strides=self.strides
        )
        return array


class _Span:
    """Bytes of an array's memory, offered to NumPy; keeps the array alive."""

    def __init__(self, owner: object, address: int, size: int) -> None:
        self.owner = owner
        self.__array_interface__ = {"data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3}


def as_address(array: npt.NDArray[Any]) -> int:
    """Where the first element lies."""
    return int(array.__array_interface__["data"][0])


def owner_of(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array that owns the memory, as far down as NumPy arrays go."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def span(array: npt.NDArray[Any]) -> tuple[int, int]:
    """First and one-past-last byte address of the array's elements (equal where it is empty)."""
    low = high = as_address(array)
    if array.size:
        for n, s in zip(array.shape, array.strides, strict=True):
            low, high = (low + (n - 1) * s, high) if s < 0 else (low, high + (n - 1) * s)
        high += array.itemsize
    return low, high


def bytes_of(owner: object, low: int, high: int) -> Bytes:
    """The memory between two addresses, not copied."""
    if high <= low:
        return np.empty(0, np.uint8)
    return np.asarray(_Span(owner, low, high - low))


def aligned(size: int, like: int = 0) -> Bytes:
    """New memory, not initialised; its address equals ``like`` modulo a cache line."""
    memory = np.empty(size + _ALIGN, np.uint8)
    start = (like - memory.ctypes.data) % _ALIGN
    return memory[start : start + size]


class Workspace:
    """Memory by key, shared by launches that run one after another."""

    def __init__(self) -> None:
        self._memory: dict[Hashable, Bytes] = {}

    def get(self, key: Hashable, size: int, like: int = 0) -> Bytes:
        """The memory of a key: zeros at first, afterwards what the last user left in it."""
        memory = self._memory.get(key)
        if memory is None or memory.size != size:
            memory = self._memory[key] = aligned(size, like)
            memory.fill(0)
        return memory

    def clear(self) -> None:
        self._memory.clear()


def vector(size: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """A new contiguous vector of zeros on its own cache lines."""
    memory = aligned(size * dtype.itemsize)
    memory.fill(0)
    return memory.view(dtype)


def overlap(a: View, b: View) -> bool:
    """Whether two views of one region share an element (exact; True where that is too hard to tell)."""
    if a.region != b.region:
        return False
    try:
        return bool(np.shares_memory(_phantom(a), _phantom(b), max_work=1_000_000))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


class _Phantom:
    """Addresses without memory behind them: for overlap tests, never read."""

    def __init__(self, view: View) -> None:
        self.__array_interface__ = {
            "data": (_PHANTOM_BASE + view.offset, True),
            "shape": view.shape,
            "strides": view.strides,
            "typestr": view.dtype.str,
            "version": 3,
        }


_PHANTOM_BASE = 1 << 30


def _phantom(view: View) -> npt.NDArray[Any]:
    return np.asarray(_Phantom(view))
