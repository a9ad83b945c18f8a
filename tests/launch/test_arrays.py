"""Which arrays compiled code can take, and what the others are told."""

from __future__ import annotations

import numpy as np
import pytest

from irad.errors import IradError
from irad.launch.arrays import unit_dims, usable


def test_usable_never_copies(tmp_path):
    disk = np.memmap(tmp_path / "file", np.float64, "w+", shape=(3, 4))
    for value in (np.zeros((3, 4)), np.zeros((3, 8))[::-1, ::2], disk, np.zeros((3, 4)).view(np.recarray)):
        array = usable("T", value, written=True)
        assert type(array) is np.ndarray
        assert array.__array_interface__ == np.asarray(value).__array_interface__


def readonly():
    a = np.zeros(3)
    a.flags.writeable = False
    return a


@pytest.mark.parametrize(
    ("value", "message", "remedy"),
    [
        ([1.0], "is a list", "numpy.asarray"),
        (1.0, "is a float", "numpy.ndarray"),
        (np.float64(1.0), "is a float64", "numpy.ndarray"),
        (None, "is a NoneType", "numpy.ndarray"),
        (np.ma.zeros(3), "masked", "filled"),
        (np.zeros(3, ">f8"), "byte order", "newbyteorder"),
        (np.zeros(25, np.uint8)[1:].view(np.float64), "misaligned", "copy"),
        (np.zeros(3, object), "of type object", "float64"),
        (np.zeros(3, [("a", "f8")]), "of type", "float64"),
        (readonly(), "read-only", "writeable"),
    ],
)
def test_refusals(value, message, remedy):
    with pytest.raises(IradError, match=message) as error:
        usable("T", value, written=True, loc="k.py:1")
    assert remedy in error.value.remedy
    assert str(error.value).startswith("k.py:1: ")
    assert "'T'" in str(error.value)


def test_readonly_is_fine_where_it_is_read():
    assert usable("T", readonly(), written=False).shape == (3,)


def test_unit_dims():
    a = np.zeros((3, 4, 5))
    assert unit_dims(a) == {2}
    assert unit_dims(a.T) == {0}
    assert unit_dims(a[:, :, ::2]) == frozenset()
    assert unit_dims(a[:, :1, ::5]) == {1, 2}
    assert unit_dims(np.zeros((0, 4))) == {0, 1}
