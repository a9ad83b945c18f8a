"""Bounds that branches prove: every point that runs a block lies within them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from irad.passes.boxes import Regions
from irad.passes.cases import equal
from irad.passes.integers import Integers
from irad.passes.ir.access import access_text
from irad.passes.ir.model import Access, Function
from irad.passes.ir.read import read_function

sys.path.insert(0, str(Path(__file__).parent))
from index_tools import EXTENTS, NAMES, atoms_of, holds, integer_functions, number, places, record

HEAD = "define void @f(i64 %.i0, i64 %.i1, i64 %T.n0, i64 %k, i1 %flag, ptr %T.data)"


def regions(fn: Function) -> Regions:
    return Regions(fn, Integers(fn, fn.args[:2], EXTENTS), 2, NAMES)


@settings(max_examples=150, deadline=None)
@given(integer_functions())
def test_every_point_that_runs_a_block_is_within_its_bounds(fn: Function) -> None:
    found = regions(fn)
    for at in places(fn):
        entered = record(fn, at).blocks
        for b in fn.blocks:
            if b in entered:
                assert holds(found.bounds(b), at), (b, found.bounds(b), at)
            else:
                assert not found.always(b)


@settings(max_examples=100, deadline=None)
@given(integer_functions())
def test_integers_that_are_said_to_be_equal_are(fn: Function) -> None:
    found = regions(fn)
    integers = found.integers
    last = fn.blocks[-1]
    values = [i for i in fn.instrs() if i.type == "i64"][:8]
    pairs = [(a, b) for a in values for b in values if a is not b]
    same = [(a, b) for a, b in pairs if equal(integers.of(a), integers.of(b), found.bounds(last), NAMES)]
    for at in places(fn):
        run = record(fn, at)
        if last in run.blocks:
            value = atoms_of(integers, run, at)
            for a, b in same:
                assert number(integers.of(a), value) == number(integers.of(b), value)


def bounds_text(conditions: str, *, taken: bool = True) -> str:
    """The bounds of a block that is entered where ``%c`` holds, or does not."""
    to = "%here, label %out" if taken else "%out, label %here"
    text = f"entry:\n{conditions}\n br i1 %c, label {to}\nhere:\n br label %out\nout:\n ret void"
    fn = read_function(f"{HEAD} {{\n{text}\n}}", "f")
    here = next(b for b in fn.blocks if b.name == "here")
    return access_text(Access("T", (), regions(fn).bounds(here), False)).partition(" guard ")[2]


@pytest.mark.parametrize(
    ("conditions", "inside", "outside"),
    [
        ("%c = icmp slt i64 %.i0, 3", "[:3) x [:) x [:)", "[3:) x [:) x [:)"),
        ("%c = icmp sle i64 %.i0, %k", "[:k + 1) x [:) x [:)", "[k + 1:) x [:) x [:)"),
        ("%c = icmp sgt i64 %T.n0, %.i1", "[:) x [:T.n0) x [:)", "[:) x [T.n0:) x [:)"),
        ("%c = icmp eq i64 %.i0, 0", "[0:1) x [:) x [:)", "[:) but 0 x [:) x [:)"),
        ("%c = icmp ne i64 %.i0, %k", "[:) but k x [:) x [:)", "[k:k + 1) x [:) x [:)"),
        ("%c = icmp ult i64 %.i0, %T.n0", "[0:T.n0) x [:) x [:)", ""),
        ("%c = icmp ugt i64 %.i0, 4", "", "[0:5) x [:) x [:)"),
        ("%c = icmp ult i64 %.i0, %k", "", ""),  # k may be negative
        ("%a = add i64 %.i0, 2\n %c = icmp slt i64 %a, %T.n0", "[:T.n0 - 2) x [:) x [:)", "[T.n0 - 2:) x [:) x [:)"),
        ("%a = sub i64 %k, %.i0\n %c = icmp slt i64 %a, 0", "[k + 1:) x [:) x [:)", "[:k + 1) x [:) x [:)"),
        ("%c = icmp slt i64 %k, 3", "[:) x [:) x [:-k + 3)", "[:) x [:) x [:k - 2)"),
        ("%c = icmp slt i64 %.i0, %.i1", "", ""),
        ("%a = mul i64 %.i0, 2\n %c = icmp slt i64 %a, 3", "", ""),
        ("%a = icmp sgt i64 %.i0, 0\n %b = icmp slt i64 %.i1, 5\n %c = and i1 %a, %b", "[1:) x [:5) x [:)", ""),
        ("%a = icmp eq i64 %.i0, 0\n %b = icmp eq i64 %.i0, 7\n %c = or i1 %a, %b", "", "[:) but 0 | 7 x [:) x [:)"),
        (
            "%a = icmp sgt i64 %.i0, 0\n %b = icmp slt i64 %.i1, 5\n %c = select i1 %a, i1 %b, i1 false",
            "[1:) x [:5) x [:)",
            "",
        ),
        (
            "%a = icmp sgt i64 %.i0, 0\n %b = icmp slt i64 %.i1, 5\n %c = select i1 %a, i1 true, i1 %b",
            "",
            "[:1) x [5:) x [:)",
        ),
        ("%a = icmp sgt i64 %.i0, 0\n %c = xor i1 %a, true", "[:1) x [:) x [:)", "[1:) x [:) x [:)"),
        ("%a = icmp sgt i64 %.i0, 0\n %c = freeze i1 %a", "[1:) x [:) x [:)", "[:1) x [:) x [:)"),
        ("%x = load i64, ptr %T.data\n %c = icmp slt i64 %.i0, %x", "", ""),
        ("%c = and i1 %flag, true", "", ""),
    ],
)
def test_what_a_condition_proves(conditions: str, inside: str, outside: str) -> None:
    assert bounds_text(conditions) == inside
    assert bounds_text(conditions, taken=False) == outside


JOINS = """
entry:
  %low = icmp slt i64 %.i0, 1
  br i1 %low, label %a, label %b
a:
  %c1 = icmp sgt i64 %.i0, -3
  br i1 %c1, label %both, label %out
b:
  %c2 = icmp slt i64 %.i0, 9
  br i1 %c2, label %both, label %out
both:
  br label %out
out:
  ret void"""


def test_where_ways_meet_what_all_of_them_prove_is_left() -> None:
    fn = read_function(f"{HEAD} {{{JOINS}\n}}", "f")
    found = regions(fn)
    blocks = {b.name: b for b in fn.blocks}
    assert access_text(Access("T", (), found.bounds(blocks["both"]))) == "[] guard [-2:9) x [:) x [:) always"
    assert found.bounds(blocks["out"]) == ()
    assert [n for n, b in blocks.items() if found.always(b)] == ["entry", "out"]


def test_the_cases_of_a_switch() -> None:
    text = """entry:
      switch i64 %.i0, label %rest [ i64 2, label %two
                                     i64 4, label %many
                                     i64 5, label %many ]
    two:
      br label %out
    many:
      br label %out
    rest:
      br label %out
    out:
      ret void"""
    fn = read_function(f"{HEAD} {{\n{text}\n}}", "f")
    found = regions(fn)
    shown = {b.name: access_text(Access("T", (), found.bounds(b))) for b in fn.blocks}
    assert shown["two"] == "[] guard [2:3) x [:) x [:) always"
    assert shown["many"] == "[] always"
    assert shown["rest"] == "[] guard [:) but 2 | 4 | 5 x [:) x [:) always"


def test_what_holds_before_a_loop_holds_in_it() -> None:
    text = """entry:
      %in = icmp sgt i64 %.i0, 0
      br i1 %in, label %head, label %out
    head:
      %m = phi i64 [ 0, %entry ], [ %next, %head ]
      %next = add i64 %m, 1
      %more = icmp slt i64 %next, %k
      br i1 %more, label %head, label %out
    out:
      ret void"""
    fn = read_function(f"{HEAD} {{\n{text}\n}}", "f")
    found = regions(fn)
    head = next(b for b in fn.blocks if b.name == "head")
    assert access_text(Access("T", (), found.bounds(head))) == "[] guard [1:) x [:) x [:) always"
