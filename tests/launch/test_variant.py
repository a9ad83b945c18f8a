"""Which dimension of which array a variant takes for granted."""

import numpy as np
import pytest

from irad.launch.variant import choose, left_out

C = np.zeros((4, 5, 6))
F = np.zeros((4, 5, 6), order="F")
SLICED = np.zeros((4, 5, 12))[..., ::2]
LINE = np.zeros(7)
COLUMN = np.zeros((7, 1))


@pytest.mark.parametrize(
    ("arrays", "unit", "reverse"),
    [
        ({"a": C, "b": C, "k": LINE}, {("a", 2), ("b", 2), ("k", 0)}, False),
        ({"a": F, "a'": F, "k": LINE}, {("a", 0), ("a'", 0), ("k", 0)}, True),
        ({"a": C, "b": F}, {("a", 2), ("b", 0)}, False),
        ({"a": C, "b": F, "c": F}, {("a", 2), ("b", 0), ("c", 0)}, True),
        ({"a": SLICED, "b": C}, {("b", 2)}, False),
        ({"a": SLICED}, set(), False),
        ({"a": COLUMN}, {("a", 1)}, False),
        ({"a": COLUMN, "b": np.zeros((7, 3), order="F")}, {("a", 0), ("b", 0)}, True),
        ({"a": C.transpose(1, 0, 2)}, {("a", 2)}, False),
        ({"a": C.transpose(0, 2, 1)}, set(), False),
        ({"a": C[:0]}, {("a", 2)}, False),
        ({}, set(), False),
    ],
)
def test_choose(arrays, unit, reverse):
    assert choose(arrays) == (frozenset(unit), reverse)


@pytest.mark.parametrize(
    ("rank", "unit", "reverse", "expected"),
    [
        (3, {2}, False, set()),
        (3, {0}, False, {2}),
        (3, set(), False, {0, 2}),
        (3, {0}, True, set()),
        (1, set(), True, {0}),
    ],
)
def test_left_out(rank, unit, reverse, expected):
    assert left_out(rank, frozenset(unit), reverse) == expected
