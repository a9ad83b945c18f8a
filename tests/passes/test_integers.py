"""The integers of a function as polynomials: what the interpreter computes, the polynomial is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from irad.passes.integers import LOOP, Integers
from irad.passes.ir.model import Function
from irad.passes.ir.read import read_function
from irad.passes.polynomial import Atom, Poly, below, choose, zero

sys.path.insert(0, str(Path(__file__).parent))
from index_tools import EXTENTS, atoms_of, integer_functions, number, places, record

HEAD = "define void @f(i64 %.i0, i64 %.i1, i64 %T.n0, i64 %k, i1 %flag, ptr %T.data, i64 %T.s0)"


def integers_of(text: str) -> tuple[Function, Integers]:
    fn = read_function(f"declare i64 @llvm.smax.i64(i64, i64)\n{HEAD} {{\n{text}\n}}", "f")
    return fn, Integers(fn, fn.args[:2], EXTENTS)


def spelled(text: str, name: str = "x") -> str:
    fn, integers = integers_of(text)
    return str(integers.of(next(i for i in fn.instrs() if i.name == name)))


@settings(max_examples=100, deadline=None)
@given(integer_functions())
def test_every_value_is_its_polynomial(fn: Function) -> None:
    integers = Integers(fn, fn.args[:2], EXTENTS)
    polynomials = {i: integers.of(i) for i in fn.instrs() if i.type in ("i1", "i64")}
    for at in places(fn):
        run = record(fn, at)
        value = atoms_of(integers, run, at)
        for i, p in polynomials.items():
            if i.block in run.blocks:
                assert number(p, value) == int(run.values[i]), f"{i!r} is {p}"


POINT, OTHER = (Poly.atom(Atom("point", axis=d)) for d in range(2))
N, K, DATA = (Poly.atom(Atom("name", n)) for n in ("T.n0", "k", "T.data"))
FLAG = Poly.atom(Atom("truth", "flag"))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("%a = add i64 %.i0, 1\n %x = sub i64 %a, %k\n ret void", POINT + 1 - K),
        ("%a = shl i64 %.i0, 3\n %x = or disjoint i64 %a, 1\n ret void", POINT * 8 + 1),
        ("%x = mul i64 %.i0, %.i1\n ret void", POINT * OTHER),
        ("%x = xor i64 %.i0, -1\n ret void", -POINT - 1),
        (
            "%c = icmp slt i64 %.i0, 0\n %x = select i1 %c, i64 %k, i64 7\n ret void",
            choose(below(POINT), K, POINT * 0 + 7),
        ),
        ("%x = call i64 @llvm.smax.i64(i64 %.i0, i64 0)\n ret void", choose(below(POINT), POINT * 0, POINT)),
        ("%x = icmp ult i64 %.i0, %T.n0\n ret void", below(POINT - N) * below(-POINT - 1)),
        ("%x = icmp ugt i64 %.i0, %T.n0\n ret void", below(POINT) + below(-POINT - 1) * below(N - POINT)),
        ("%p = getelementptr double, ptr %T.data, i64 %.i0\n %x = ptrtoint ptr %p to i64\n ret void", DATA + POINT * 8),
        ("%x = select i1 %flag, i64 1, i64 2\n ret void", -FLAG + 2),
    ],
)
def test_forms(text: str, want: Poly) -> None:
    fn, integers = integers_of(text)
    assert integers.of(next(i for i in fn.instrs() if i.name == "x")) == want


def test_a_switch_that_leads_to_a_block_twice() -> None:
    text = """entry:
      switch i64 %.i0, label %other [ i64 0, label %both
                                      i64 1, label %both ]
    other:
      br label %both
    both:
      %x = phi i64 [ %k, %entry ], [ %k, %entry ], [ 7, %other ]
      ret void"""
    fn, integers = integers_of(text)
    x = next(i for i in fn.instrs() if i.name == "x")
    assert integers.of(x) == choose(zero(POINT) + zero(POINT - 1), K, POINT * 0 + 7)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("%x = srem i64 %.i0, 2\n ret void", "% (a remainder)"),
        ("%x = sdiv i64 %.i0, 2\n ret void", "// (a division)"),
        ("%x = load i64, ptr %T.data\n ret void", "a value that is read from memory"),
        ("%l = load i32, ptr %T.data\n %x = sext i32 %l to i64\n ret void", "a value that is read from memory"),
        ("%l = load double, ptr %T.data\n %x = fptosi double %l to i64\n ret void", "a conversion from float to int"),
        ("%x = icmp ult i64 %.i0, %k\n ret void", "the operation icmp"),  # k may be negative
        ("%a = and i64 %.i0, 1\n %x = add i64 %a, 0\n ret void", "the operation and"),
    ],
)
def test_what_is_no_polynomial_says_why(text: str, reason: str) -> None:
    assert spelled(text).startswith(reason)


def test_two_loads_are_two_values() -> None:
    fn, integers = integers_of(
        "%a = load i64, ptr %T.data\n %b = load i64, ptr %T.data\n %x = sub i64 %a, %b\n ret void"
    )
    a, b, x = list(fn.instrs())[:3]
    assert integers.of(a) != integers.of(b)
    assert integers.of(x).value is None


def test_the_counter_of_a_loop_is_opaque_and_so_is_what_it_decides() -> None:
    text = """entry:
      br label %head
    head:
      %m = phi i64 [ 0, %entry ], [ %next, %head ]
      %next = add i64 %m, 1
      %more = icmp slt i64 %next, %k
      br i1 %more, label %head, label %done
    done:
      %x = add i64 %m, 1
      ret void"""
    fn, integers = integers_of(text)
    m = next(i for i in fn.instrs() if i.name == "m")
    assert str(integers.of(m)).startswith(LOOP)
    assert LOOP in spelled(text)


def test_a_phi_behind_a_loop_is_opaque() -> None:
    text = """entry:
      %c = icmp slt i64 %.i0, 0
      br i1 %c, label %head, label %done
    head:
      %m = phi i64 [ 0, %entry ], [ %next, %head ]
      %next = add i64 %m, 1
      %more = icmp slt i64 %next, %k
      br i1 %more, label %head, label %done
    done:
      %x = phi i64 [ 1, %entry ], [ 2, %head ]
      ret void"""
    assert spelled(text).startswith(LOOP)


def test_a_case_distinction_without_end_is_opaque() -> None:
    lines, last = [], "%.i0"
    for k in range(12):
        lines += [
            f"%q{k} = mul i64 %k, {k + 2}",
            f"%t{k} = add i64 %q{k}, %.i0",
            f"%c{k} = icmp slt i64 %t{k}, {5 - k}",
        ]
        lines += [f"%s{k} = select i1 %c{k}, i64 {k}, i64 1", f"%p{k} = mul i64 {last}, %s{k}"]
        last = f"%p{k}"
    lines += [f"%x = add i64 {last}, 0", "ret void"]
    assert "a long case distinction" in spelled("\n".join(lines))


def test_only_extents_are_never_negative() -> None:
    fn, integers = integers_of("ret void")
    n, k = (integers.of(Arg) for Arg in fn.args[2:4])
    assert integers.is_natural(n + 3)
    assert not integers.is_natural(k)
    assert not integers.is_natural(n - 1)
    assert not integers.is_natural(n * n)
