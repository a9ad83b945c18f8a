"""What a launch must satisfy: the requirements of accesses, and launches that meet or miss them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from irad.passes.checks import bounds_checks, wrap_key

from irad.domains import domain, interior, points

sys.path.insert(0, str(Path(__file__).parent))
from programs import Built, run
from test_race import point_function

# requirements --------------------------------------------------------------------------------------------------------


def kinds(*operations: tuple[str, str, str], rank: int = 1) -> list[tuple[str, str]]:
    return [(r.kind, r.key) for r in bounds_checks(point_function(*operations, rank=rank))]


def test_every_index_is_checked_once() -> None:
    assert kinds(("aload", "u", "[#0 + 1]"), ("aload", "u", "[#0 + 1]"), ("aload", "u", "[3]")) == [
        ("bounds", "u.0:0+1"), ("bounds", "u.0:None+3"),
    ]  # fmt: skip


def test_an_index_that_may_be_negative_has_one_more_and_a_written_one_two() -> None:
    assert kinds(("aload", "u", "[#0 + -1 wraps]")) == [("bounds", "u.0:0+-1"), ("wraps", "u.0:0+-1")]
    assert [k for k, _ in kinds(("astore", "u", "[#0 wraps]"))] == ["bounds", "wraps", "collides"]
    assert [k for k, _ in kinds(("aload", "u", "[-1 wraps]"))] == ["bounds"]


def test_one_without_a_guard_stands_for_those_with() -> None:
    guarded = ("aload", "u", "[#0 + 1] guard [1:) x [:)")
    assert len(kinds(guarded, ("aload", "u", "[#0 + 1] guard [2:) x [:)"))) == 2
    (one,) = bounds_checks(point_function(guarded, ("aload", "u", "[#0 + 1]"), rank=1))
    assert one.guard == ()


def test_messages_name_the_element_and_a_remedy() -> None:
    r, _, c = bounds_checks(point_function(("astore", "u", "[#0 + -1 wraps, 2]"), rank=1))[:3]
    assert "u[i - 1, 2] is outside of 'u' in dimension 0" in r.message
    assert "irad.interior" in r.remedy
    assert c.kind == "collides"
    assert "written by two points" in c.message


def test_keys_tell_indices_apart() -> None:
    pf = point_function(("aload", "u", "[#0 + -1 wraps, #0 + k wraps]"), rank=1)
    access = next(i.access for i in pf.fn.instrs() if i.access is not None)
    assert [wrap_key(access, d) for d in range(2)] == ["u.0:0+-1", "u.1:0+k"]


# launches ------------------------------------------------------------------------------------------------------------


def kernel_of(text: str) -> Callable[..., None]:
    names: dict[str, Any] = {"points": points, "domain": domain, "interior": interior}
    exec("def kernel(v, u, k):\n    i = points(v)\n" + text, names)
    return names["kernel"]  # type: ignore[no-any-return]


def failed(text: str, n: int, m: int, k: int = 0) -> set[str]:
    """Kinds of checks that a launch over ``n`` points with an array of ``m`` elements fails."""
    built = Built(kernel_of(text), (np.ones(n), np.ones(m), k))
    return {c.kind for kind in ("bounds", "collides") for c in built.failed(built.primal, built.args, kind)}


@pytest.mark.parametrize(
    ("text", "fits", "misses"),
    [
        ("    v[i] = u[i]", [(4, 4), (4, 9), (0, 0)], [(4, 3), (1, 0)]),
        ("    v[i] = u[i + 1]", [(4, 5), (0, 0)], [(4, 4)]),
        ("    v[i] = u[i - 2]", [(4, 4), (4, 2), (1, 2)], [(1, 1), (5, 2)]),
        ("    v[i] = u[3]", [(4, 4), (0, 0)], [(4, 3)]),
        ("    v[i] = u[-3]", [(4, 3)], [(4, 2)]),
        ("    if i < 3:\n        v[i] = u[i]", [(9, 3), (2, 2)], [(9, 2)]),
        ("    if i < u.shape[0]:\n        v[i] = u[i]", [(9, 3), (2, 9), (3, 0)], []),
        ("    if 0 < i < v.shape[0] - 1:\n        v[i] = u[i - 1] + u[i + 1]", [(4, 4), (2, 0), (3, 3)], [(4, 3)]),
        ("    if i == 5:\n        v[i] = u[7]", [(5, 0), (6, 8)], [(6, 7)]),
        ("    if i != 0 and i != v.shape[0] - 1:\n        v[i] = u[i + 1] - u[i - 1]", [(4, 4), (2, 0)], [(4, 3)]),
        ("    v[i] = u[i + 1] if i < u.shape[0] - 1 else u[0]", [(4, 4), (9, 3)], [(4, 0)]),
        ("    if v[i] > 3.0:\n        v[i] = u[i]", [(4, 4)], [(4, 3)]),
    ],
)
def test_launches(text: str, fits: list[tuple[int, int]], misses: list[tuple[int, int]]) -> None:
    for n, m in fits:
        assert failed(text, n, m) == set(), (n, m)
    for n, m in misses:
        assert failed(text, n, m) == {"bounds"}, (n, m)


def test_integers_that_all_points_share() -> None:
    text = "    if k < u.shape[0]:\n        v[i] = u[k]\n    else:\n        v[i] = 0.0"
    assert failed(text, 3, 4, 2) == set()
    assert failed(text, 3, 4, 4) == set()
    assert failed(text, 3, 4, -4) == set()
    assert failed(text, 3, 4, -5) == {"bounds"}
    assert failed("    v[i] = u[i + k]", 3, 4, 1) == set()
    assert failed("    v[i] = u[i + k]", 3, 4, 2) == {"bounds"}


@pytest.mark.parametrize("test", ["i <= k", "i - 1 < k", "k >= i + 3"])
def test_an_integer_as_large_as_can_be_does_not_slip_through(test: str) -> None:
    assert failed(f"    if {test}:\n        v[i] = u[i + 1]", 4, 4, sys.maxsize) == {"bounds"}
    assert failed(f"    if {test}:\n        v[i] = u[i + 1]", 4, 5, sys.maxsize) == set()
    assert failed("    v[i] = u[i + k]", 4, 4, sys.maxsize) == {"bounds"}
    assert failed("    v[i] = u[i + 4 * k]", 4, 4, sys.maxsize // 2) == {"bounds"}


def test_points_that_wrap_to_the_place_of_another_collide() -> None:
    def kernel(v, u):
        i = domain((-2, u.shape[0]))
        v[i] = 1.0

    for n, m, want in ((5, 3, []), (5, 4, ["collides"]), (7, 4, [])):
        built = Built(kernel, (np.zeros(n), np.ones(m)))
        assert [c.kind for c in built.failed(built.primal, built.args, "collides")] == want
        assert not built.failed(built.primal, built.args, "bounds")
        if not want:
            got = built.fresh()
            run(built.primal, got)
            assert got["v"].sum() == m + 2
