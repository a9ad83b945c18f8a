"""Points that touch each other's elements are refused; all others are not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from irad.passes.ir.access import parse_access
from irad.passes.ir.model import Arg, ArrayParam, Const, Function, Instr, Loc, PointFn
from irad.passes.race import check, element

from irad.errors import RaceError

sys.path.insert(0, str(Path(__file__).parent))


def point_function(*operations: tuple[str, str, str], rank: int = 2) -> PointFn:
    """A point function of operations ``(op, array, access)``, one a line."""
    fn = Function("f", "void", [Arg("i64", f".i{d}") for d in range(rank)])
    block = fn.block("entry")
    ranks: dict[str, int] = {}
    for line, (op, array, text) in enumerate(operations):
        access = parse_access(array, text)
        assert access is not None
        ranks[array] = len(access.dims)
        value = [Const("double", "1.0")] if op == "astore" else []
        index = [fn.args[0]] * len(access.dims)
        block.append(
            Instr(
                op, "void" if value else "double", [*value, *index], array=array, access=access, loc=Loc("f.py", line)
            )
        )
    block.append(Instr("ret", "void"))
    return PointFn(fn, rank, tuple(ArrayParam(n, "double", r) for n, r in ranks.items()))


@pytest.mark.parametrize(
    "operations",
    [
        [("astore", "v", "[#0, #1]"), ("aload", "u", "[#0 + 1, #1]")],
        [("aload", "v", "[#0, #1]"), ("astore", "v", "[#0, #1]"), ("aload", "v", "[#0, #1]")],
        [("astore", "v", "[#1, #0]"), ("astore", "w", "[#0, #1]")],
        [("astore", "v", "[#0 + 1, 3, #1 + k]"), ("aload", "v", "[#0 + 1, 3, #1 + k]")],
        [("astore", "v", "[#0, #1] guard [1:) x [:) x [:)"), ("aload", "v", "[#0, #1]")],
        [("astore", "v", "[#0 + -1 wraps, #1]")],
        [("aload", "u", "[0, 0]"), ("aload", "u", "[#0, #0]")],
    ],
)
def test_points_with_places_of_their_own(operations: list[tuple[str, str, str]]) -> None:
    check(point_function(*operations))


@pytest.mark.parametrize(
    ("operations", "line", "texts"),
    [
        (
            [("astore", "v", "[#0, #1]"), ("aload", "v", "[#0 + 1, #1]")],
            1,
            ["a point reads v[i + 1, j], which another point writes as v[i, j] (line 0)", "v2[i] = f(v[i + 1])"],
        ),
        (
            [("aload", "v", "[#0 + -1, #1]"), ("astore", "v", "[#0, #1]")],
            0,
            ["a point reads v[i - 1, j], which another point writes as v[i, j] (line 1)"],
        ),
        (
            [("astore", "v", "[#0, #1]"), ("astore", "v", "[#0, #1 + 1]")],
            1,
            ["a point writes v[i, j + 1]", "write 'v' at one place a point"],
        ),
        ([("astore", "v", "[#0, #1]"), ("aload", "v", "[#1, #0]")], 1, ["reads v[j, i]"]),
        ([("astore", "v", "[#0, #1]"), ("aload", "v", "[#0, 0]")], 1, ["reads v[i, 0]"]),
        ([("astore", "v", "[#0]")], 0, ["v[i] is written by all points that differ in j only"]),
        ([("astore", "v", "[0]")], 0, ["v[0] is written by all points that differ in i and j only"]),
        ([("astore", "v", "[#0, #0]")], 0, ["v[i, i] is written by all points that differ in j only"]),
        ([("astore", "v", "[#1 + k, 2]")], 0, ["differ in i only", "an index for every axis of the launch"]),
        ([("astore", "w", "[#0, #1]"), ("astore", "v", "[#0, 1]")], 1, ["v[i, 1] is written"]),
    ],
)
def test_points_that_meet(operations: list[tuple[str, str, str]], line: int, texts: list[str]) -> None:
    with pytest.raises(RaceError) as e:
        check(point_function(*operations))
    assert str(e.value).startswith(f"f.py:{line}: ")
    for text in texts:
        assert text in str(e.value)


def test_elements_are_spelled_as_the_user_does() -> None:
    spelled = {
        "[#0, #1 + 2, #2 + -1]": "v[i, j + 2, k - 1]",
        "[#0 + v.n0 - 1]": "v[i + v.shape[0] - 1]",
        "[-1 wraps, v.n1 - 1]": "v[-1, v.shape[1] - 1]",
        "[#3 + -2*m]": "v[l - 2*m]",
    }
    for text, want in spelled.items():
        access = parse_access("v", text)
        assert access is not None
        assert element(access) == want
