from collections import namedtuple

import numpy as np
import pytest

from irad.errors import IradError
from irad.tape.tree import Parameters, flatten

Pair = namedtuple("Pair", "x y")


def test_flatten_and_rebuild():
    tree = {"a": [1.0, (2.0, "s")], "b": Pair(np.ones(2), None)}
    leaves, paths, rebuild = flatten(tree)
    assert len(leaves) == 5
    assert paths == [("a", 0), ("a", 1, 0), ("a", 1, 1), ("b", 0), ("b", 1)]
    again = rebuild(leaves)
    assert again["b"].x is leaves[3]
    assert isinstance(again["b"], Pair)
    assert isinstance(again["a"][1], tuple)


def test_active_leaves_are_copied():
    a = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    p = Parameters({"a": a, "n": 3, "f": 2.5, "i": np.arange(3), "g": np.float32(0.5), "b": True})
    assert p.texts == ["p['a']", "p['f']", "p['g']"]
    assert p.scalar == [False, True, True]
    a[0, 0] = 99.0
    assert p.arrays[0][0, 0] == 0.0
    assert p.flat[0].tolist() == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]
    restored = p.restore()
    assert restored["f"] == 2.5
    assert restored["n"] == 3
    assert restored["a"] is p.arrays[0]
    assert p.structure([1, 2, 3], static=False) == {"a": 1, "n": None, "f": 2, "i": None, "g": 3, "b": None}
    assert np.array_equal(p.shaped(0, p.flat[0]), p.arrays[0])


def test_a_single_leaf():
    assert Parameters(3.0).restore() == 3.0
    assert Parameters(None).restore() is None
    assert len(Parameters(None)) == 0
    assert len(Parameters(np.arange(3))) == 0  # integers are not differentiated


def test_foreign_byte_order():
    with pytest.raises(IradError, match="byte order"):
        Parameters(np.ones(2, ">f8"))
