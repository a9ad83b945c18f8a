"""NumPy arrays as launches see them: what compiled code can take, and why it cannot take the rest."""

from __future__ import annotations

import numpy as np

from irad.errors import IradError
from irad.launch.overlap import Array, overlap, overlaps_itself

__all__ = ["Array", "data_address", "overlap", "overlaps_itself", "unit_dims", "usable"]


def data_address(array: Array) -> int:
    """Address of the first element (index 0 in every dimension)."""
    return int(array.__array_interface__["data"][0])


def unit_dims(array: Array) -> frozenset[int]:
    """Dimensions in which neighbours lie side by side. One of extent 1 counts, whatever its stride, and in an array
    without elements all do."""
    if array.size == 0:
        return frozenset(range(array.ndim))
    return frozenset(d for d in range(array.ndim) if array.shape[d] == 1 or array.strides[d] == array.itemsize)


def usable(name: str, value: object, *, written: bool, loc: object = None) -> Array:
    """The plain ``ndarray`` over the memory of an array argument, never a copy.

    Subclasses such as ``numpy.memmap`` are taken as what they are underneath. Raises ``IradError`` where compiled code
    cannot work on the memory itself: not an array, a masked array, another byte order, misaligned elements, Python
    objects, or a read-only array that the kernel writes (``written``).

    >>> usable("T", np.zeros(3)[::-1], written=True).strides
    (-8,)
    """
    if not isinstance(value, np.ndarray):
        raise IradError(
            f"argument {name!r} is a {type(value).__name__}, not a NumPy array",
            loc=loc,
            remedy=f"numpy.asarray({name})" if isinstance(value, (list, tuple)) else "pass a numpy.ndarray",
        )
    if isinstance(value, np.ma.MaskedArray):
        raise IradError(
            f"argument {name!r} is a masked array, and a kernel would ignore its mask",
            loc=loc,
            remedy=f"{name}.filled(...) or {name}.data",
        )
    array = value.view(np.ndarray)
    if array.dtype.hasobject or array.dtype.fields is not None:
        raise IradError(
            f"argument {name!r} has elements of type {array.dtype}",
            loc=loc,
            remedy="an array of float64, float32, int64, int32 or bool",
        )
    if not array.dtype.isnative:
        raise IradError(
            f"argument {name!r} has elements in another byte order ({array.dtype.str})",
            loc=loc,
            remedy=f"{name}.astype({name}.dtype.newbyteorder('='))",
        )
    if not array.flags.aligned:
        raise IradError(f"the elements of argument {name!r} are misaligned in memory", loc=loc, remedy=f"{name}.copy()")
    if written and not array.flags.writeable:
        raise IradError(
            f"argument {name!r} is read-only, but the kernel writes it",
            loc=loc,
            remedy=f"pass a writeable array, such as {name}.copy()",
        )
    return array
