"""Polynomials mean what the integers that they stand for mean, and equal ones look equal."""

from __future__ import annotations

import functools
import operator
import sys
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from irad.passes.polynomial import MOST_TERMS, ONE, Atom, Poly, TooComplex, below, choose, replaced, zero

sys.path.insert(0, str(Path(__file__).parent))
from index_tools import number

POINT, OTHER = (Poly.atom(Atom("point", axis=d)) for d in range(2))
N, K = Poly.atom(Atom("name", "T.n0")), Poly.atom(Atom("name", "k"))


def value_of(i: int, j: int, n: int, k: int):
    return lambda a: (i, j)[a.axis] if a.kind == "point" else {"T.n0": n, "k": k}[a.name]


@st.composite
def trees(draw: st.DrawFn, depth: int = 3):
    """A polynomial, and a function that computes the same from the values of its atoms."""
    kinds = ["leaf", "add", "sub", "mul", "below", "zero", "choose"] if depth else ["leaf"]
    kind = draw(st.sampled_from(kinds))
    if kind == "leaf":
        which = draw(st.integers(0, 4))
        if which == 4:
            c = draw(st.integers(-3, 3))
            return Poly.number(c), lambda *at: c
        return (POINT, OTHER, N, K)[which], lambda *at: at[which]
    a, fa = draw(trees(depth - 1))
    if kind == "below":
        return below(a), lambda *at: int(fa(*at) < 0)
    if kind == "zero":
        return zero(a), lambda *at: int(fa(*at) == 0)
    b, fb = draw(trees(depth - 1))
    if kind == "choose":
        c, fc = draw(trees(depth - 2 if depth > 1 else 0))
        return choose(below(c), a, b), lambda *at: fa(*at) if fc(*at) < 0 else fb(*at)
    if kind == "add":
        return a + b, lambda *at: fa(*at) + fb(*at)
    if kind == "sub":
        return a - b, lambda *at: fa(*at) - fb(*at)
    return a * b, lambda *at: fa(*at) * fb(*at)


@settings(max_examples=300, deadline=None)
@given(trees(), st.integers(-3, 4), st.integers(-3, 4), st.integers(0, 4), st.integers(-2, 3))
def test_the_normal_form_keeps_the_value(tree, i: int, j: int, n: int, k: int) -> None:
    p, f = tree
    assert number(p, value_of(i, j, n, k)) == f(i, j, n, k)


@settings(max_examples=200, deadline=None)
@given(trees(2), trees(2), st.integers(-3, 4), st.integers(-3, 4), st.integers(0, 4), st.integers(-2, 3))
def test_what_is_put_in_the_place_of_an_index_is_put_into_tests_too(tree, other, i, j, n, k) -> None:  # type: ignore[no-untyped-def]
    p, f = tree
    q, g = other
    got = replaced(p, {Atom("point", axis=0): q})
    assert number(got, value_of(i, j, n, k)) == f(g(i, j, n, k), j, n, k)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (below(POINT), ONE - below(-POINT - 1)),  # i < 0, not 0 <= i
        (below(POINT) * below(POINT), below(POINT)),
        (below(POINT) * below(POINT - 1), below(POINT)),  # i < 0 and i < 1
        (zero(POINT - 2), zero(Poly.number(2) - POINT)),
        (zero(POINT - 2) * POINT, zero(POINT - 2) * 2),
        (zero(POINT - N) * below(POINT), zero(POINT - N) * below(N)),
        (choose(below(POINT), POINT + N, POINT), POINT + below(POINT) * N),
        (choose(below(POINT - N), ONE, ONE), ONE),
        (POINT * (OTHER + 1) - POINT, POINT * OTHER),
        (below(Poly.number(-1)), ONE),
        (zero(Poly.number(1)), Poly()),
    ],
)
def test_two_spellings_have_one_form(one: Poly, other: Poly) -> None:
    assert one == other


def test_different_things_have_different_forms() -> None:
    forms = [
        POINT,
        OTHER,
        N,
        K,
        below(POINT),
        below(POINT - 1),
        below(OTHER),
        zero(POINT),
        POINT * POINT,
        below(N - POINT),
        POINT * below(POINT),
    ]
    for a, b in product(forms, forms):
        assert (a == b) == (a is b)


def test_an_index_is_no_indicator() -> None:
    assert POINT * POINT != POINT
    assert str(POINT * POINT) == "i*i"


def test_numbers() -> None:
    assert Poly().value == 0
    assert (POINT - POINT).value == 0
    assert (POINT - POINT + 3).value == 3
    assert POINT.value is None
    assert below(POINT).value is None


def test_text() -> None:
    assert str(N - 1 + OTHER * POINT) == "T.n0 + i*j - 1"
    assert str(POINT * 2) == "2*i"
    assert str(below(POINT - 3)) == "[i - 3 < 0]"
    assert str(Poly()) == "0"
    assert str(Poly.atom(Atom("opaque", "// (a division)", serial=4))) == "// (a division)#4"


def test_cases_are_told_from_the_rest() -> None:
    p = POINT + below(POINT) * N
    assert p.has_cases
    assert p.without_cases() == POINT
    assert not p.without_cases().has_cases
    assert set(p.atoms()) >= {Atom("point", axis=0), Atom("name", "T.n0")}


def test_too_many_cases_are_an_error_not_a_wait() -> None:
    tests = (ONE + below(Poly.atom(Atom("name", f"k{k}"))) for k in range(MOST_TERMS))
    with pytest.raises(TooComplex):
        functools.reduce(operator.mul, tests)
