"""Parameters as the user wrote them (an array, a float, or tuples, lists and dicts of these) and as a list of arrays.

Floating-point arrays and Python or NumPy floats are *active*: they can carry derivatives, and are copied into packed
arrays. Everything else (integers, strings, None, integer arrays, objects) is passed on as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from irad.errors import IradError

Path = tuple[Any, ...]


def flatten(tree: Any, path: Path = ()) -> tuple[list[Any], list[Path], Callable[[Sequence[Any]], Any]]:
    """Leaves of nested tuples, lists and dicts, their paths, and the function that puts leaves back into the shape.

    >>> leaves, paths, rebuild = flatten({"a": (1.0, 2.0), "b": 3})
    >>> leaves, paths[1], rebuild([x * 2 for x in leaves])
    ([1.0, 2.0, 3], ('a', 1), {'a': (2.0, 4.0), 'b': 6})
    """
    if isinstance(tree, dict):
        keys: list[Any] = list(tree)
        items = [tree[k] for k in keys]
    elif isinstance(tree, (tuple, list)):
        keys, items = list(range(len(tree))), list(tree)
    else:
        return [tree], [path], lambda leaves: leaves[0]
    leaves: list[Any] = []
    paths: list[Path] = []
    parts: list[tuple[int, Callable[[Sequence[Any]], Any]]] = []
    for key, item in zip(keys, items, strict=True):
        more, where, build = flatten(item, (*path, key))
        parts.append((len(more), build))
        leaves += more
        paths += where

    def rebuild(values: Sequence[Any]) -> Any:
        built, start = [], 0
        for count, build in parts:
            built.append(build(values[start : start + count]))
            start += count
        if isinstance(tree, dict):
            return dict(zip(keys, built, strict=True))
        if isinstance(tree, tuple) and hasattr(tree, "_fields"):
            return type(tree)(*built)
        return type(tree)(built)

    return leaves, paths, rebuild


def is_float_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.dtype.itemsize in (4, 8)


def is_float(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and not isinstance(value, np.longdouble)


class Parameters:
    """``p`` taken apart: ``arrays`` are private packed copies of its active leaves."""

    def __init__(self, p: Any) -> None:
        leaves, paths, self._rebuild = flatten(p)
        self._leaves = leaves
        self.index = [i for i, leaf in enumerate(leaves) if is_float_array(leaf) or is_float(leaf)]
        self.scalar = [not isinstance(leaves[i], np.ndarray) for i in self.index]
        self.texts = ["p" + "".join(f"[{k!r}]" for k in paths[i]) for i in self.index]
        self.arrays: list[npt.NDArray[Any]] = []
        for i, scalar in zip(self.index, self.scalar, strict=True):
            leaf = leaves[i]
            if not scalar and not leaf.dtype.isnative:
                raise IradError(f"a parameter array has foreign byte order ({leaf.dtype})",
                                remedy="convert it with A.astype(A.dtype.newbyteorder('='))")  # fmt: skip
            self.arrays.append(np.array([float(leaf)]) if scalar else packed(leaf))
        self.flat = [a.ravel(order="K") for a in self.arrays]

    def __len__(self) -> int:
        return len(self.arrays)

    def shaped(self, i: int, flat: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A flat vector for the i-th array, in that array's shape (a view)."""
        array = self.arrays[i]
        return flat.reshape(array.shape, order="C" if array.flags.c_contiguous else "F")

    def structure(self, active: Sequence[Any], static: bool = True) -> Any:
        """The user's structure with these in place of the active leaves (and None for the others unless ``static``)."""
        values = list(self._leaves) if static else [None] * len(self._leaves)
        for i, value in zip(self.index, active, strict=True):
            values[i] = value
        return self._rebuild(values)

    def restore(self) -> Any:
        """``p`` itself, over the private copies."""
        return self.structure([float(a[0]) if s else a for a, s in zip(self.arrays, self.scalar, strict=True)])


def packed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A contiguous copy, in Fortran order where the array is in Fortran order only."""
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    return np.array(array, order="F" if fortran else "C", subok=False)
