"""NumPy arrays as launches see them: where they lie, which strides are units, whether compiled code can take them."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]


def data_address(array: Array) -> int:
    """Address of the first element (index 0 in every dimension)."""
    return int(array.__array_interface__["data"][0])


def unit_dims(array: Array) -> frozenset[int]:
    """Dimensions in which neighbours lie side by side; one of extent 0 or 1 counts, whatever its stride."""
    return frozenset(d for d in range(array.ndim) if array.shape[d] <= 1 or array.strides[d] == array.itemsize)
