"""Numba's errors in few words."""

from __future__ import annotations

import pytest

from irad.frontend.signature import Loc
from irad.frontend.translate import translate

HERE = Loc("/home/x/heat.py", 10)


class Located(Exception):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.loc = type("Place", (), {"filename": "/home/x/other.py", "line": 4})()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("\x1b[1mNameError: name 'dx' is not defined\x1b[0m", "dx is not defined"),
        (
            "No implementation of function Function(<built-in function add>) found for signature:\n \n"
            " >>> add(array(float64, 3d, A), Literal[str](a))\n \nThere are 22 candidate implementations:",
            "add(array(float64, 3d), a) cannot be compiled",
        ),
        ("Cannot unify int64 and UniTuple(int64 x 2) for 'x.2', defined at", "x is int64 on one way and UniTuple("),
        ("Unknown attribute 'T2' of type array(float64, 2d, A)", "array(float64, 2d) has no attribute T2"),
        ("Failed in nopython mode pipeline (step: x)\nSomething new\nand more", "Numba cannot compile this: Something"),
        ("", "unknown reason"),
    ],
)
def test_reasons(text, says):
    error = translate(RuntimeError(text), HERE)
    assert says in error.reason
    assert error.loc == HERE
    assert error.remedy


def test_the_place_is_numbas_where_it_gives_one():
    assert translate(Located("Something"), HERE).loc == Loc("/home/x/other.py", 4)


def test_the_place_in_the_text():
    assert translate(RuntimeError('Something\n\nFile "heat.py", line 12:\n'), HERE).loc == Loc("/home/x/heat.py", 12)
    assert translate(RuntimeError('Something\n\nFile "numba/core.py", line 12:\n'), HERE).loc == HERE
