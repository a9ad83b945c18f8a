"""Which compiled variant fits a set of arrays: the strides that it may take for granted, and the order of its loops.

Every kernel is compiled for any strides; where neighbours along a dimension lie side by side, the variant has that
stride as a constant, so that the innermost loop vectorises. To keep variants few, at most one dimension an array is
fixed: the last (C order) if all arrays agree on it, else the first (Fortran order), else whichever each array has.
"""

from __future__ import annotations

from collections.abc import Mapping

from irad.launch.arrays import Array, unit_dims

Unit = frozenset[tuple[str, int]]


def choose(arrays: Mapping[str, Array]) -> tuple[Unit, bool]:
    """Pairs (name, dimension) whose stride is the size of an item, and whether loops run in Fortran order.

    ``arrays``: by the prefix of their words, shadows (``"T'"``) and copies (``"T@1"``) included.

    >>> import numpy as np
    >>> a, b = np.zeros((4, 5)), np.zeros((4, 5), order="F")
    >>> choose({"a": a}), choose({"b": b})
    ((frozenset({('a', 1)}), False), (frozenset({('b', 0)}), True))
    """
    units = {name: unit_dims(a) for name, a in arrays.items() if a.ndim}
    last = {name: a.ndim - 1 for name, a in arrays.items() if a.ndim}
    wide = [name for name in units if last[name] > 0]
    in_c = sum(last[name] in units[name] for name in wide)
    in_f = sum(0 in units[name] for name in wide)
    reverse = in_f > in_c
    chosen = set()
    for name, unit in units.items():
        for d in (0, last[name]) if reverse else (last[name], 0):
            if d in unit:
                chosen.add((name, d))
                break
    return frozenset(chosen), reverse


def left_out(rank: int, unit: frozenset[int], reverse: bool) -> frozenset[int]:
    """Dimensions of an array that :func:`choose` would have preferred to ``unit``, had their stride been a unit."""
    if rank == 0:
        return frozenset()
    preferred = (0, rank - 1) if reverse else (rank - 1, 0)
    if preferred[0] in unit:
        return frozenset()
    return frozenset(preferred) - unit
