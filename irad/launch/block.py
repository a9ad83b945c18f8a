"""Blocks: the words that one launch hands to compiled code, filled from arrays and scalars in Python.

The layout comes from the passes; here only its names and its size count. Launches by the compiled launcher fill their
block on the C stack and never come here.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from irad.launch.arrays import Array, data_address
from irad.launch.tables import Words


class Layout(Protocol):
    """Names of the words in order; ``size`` counts the unnamed tail as well (``irad.passes.layout.BlockLayout``)."""

    @property
    def words(self) -> tuple[str, ...]: ...

    @property
    def size(self) -> int: ...

    def at(self, word: str) -> int: ...

    def __contains__(self, word: str) -> bool: ...


def scalar_word(type: str, value: float | int | bool) -> int:
    """The word of a scalar of LLVM type ``double``, ``float``, ``i64`` or ``i1``, as a signed integer."""
    if type == "double":
        return int(struct.unpack("<q", struct.pack("<d", value))[0])
    if type == "float":
        return int(np.float32(value).view(np.int32))
    if type == "i64":
        if not -(2**63) <= value < 2**63:
            raise OverflowError(f"{value} does not fit 64 bits")
        return int(value)
    if type == "i1":
        return int(bool(value))
    raise ValueError(f"no scalar of type {type}")


def fill(
    layout: Layout,
    arrays: Mapping[str, Array],
    scalars: Mapping[str, tuple[str, float | int | bool]],
) -> Words:
    """A block with everything but the tail.

    ``arrays``: by the prefix of their words, so ``"T"``, ``"T'"`` (a shadow has no extents of its own), ``"T@1"``,
    ``"partials"``. ``scalars``: name to (LLVM type, value). Words that the layout does not have are left out; a word
    of the layout that nobody fills raises ``KeyError``.
    """
    block = np.zeros(layout.size, np.int64)
    values: dict[str, int] = {}
    for name, array in arrays.items():
        values[f"{name}.data"] = data_address(array)
        for d in range(array.ndim):
            values[f"{name}.n{d}"] = array.shape[d]
            values[f"{name}.s{d}"] = array.strides[d]
    for name, (type, value) in scalars.items():
        values[name] = scalar_word(type, value)
    for i, word in enumerate(layout.words):
        block[i] = values[word]
    return block
