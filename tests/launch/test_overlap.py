"""Exact overlap against brute force over elements, and the messages of AliasError."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irad.errors import AliasError
from irad.launch import overlap as module
from irad.launch.overlap import check_aliases, overlap, overlaps_itself

MEMORY = np.zeros(4096, np.uint8)


def cells(a: np.ndarray) -> list[int]:
    """Byte offsets in MEMORY of all bytes of all elements, one entry each."""
    start = a.ctypes.data - MEMORY.ctypes.data
    found = []
    for index in np.ndindex(a.shape):
        at = start + sum(i * s for i, s in zip(index, a.strides, strict=True))
        found += range(at, at + a.itemsize)
    return found


@st.composite
def views(draw, most_rank=4):
    dtype = np.dtype(draw(st.sampled_from(["f8", "f4", "i2", "u1", "c16"])))
    rank = draw(st.integers(0, most_rank))
    shape = [draw(st.integers(0 if rank < 3 else 1, 4)) for _ in range(rank)]
    strides = [draw(st.integers(-9, 9)) * draw(st.sampled_from([1, dtype.itemsize])) for _ in range(rank)]
    return np.ndarray(shape, dtype, MEMORY, 2048 + draw(st.integers(-40, 40)), strides)


@settings(max_examples=400, deadline=None)
@given(views(), views())
def test_overlap_is_exact(a, b):
    assert overlap(a, b) == bool(set(cells(a)) & set(cells(b)))


@settings(max_examples=400, deadline=None)
@given(views())
def test_self_overlap_is_exact(a):
    every = cells(a)
    assert overlaps_itself(a) == (len(set(every)) < len(every))


def test_typical_views():
    u = np.zeros((6, 6))
    assert not overlap(u[::2], u[1::2])
    assert not overlap(u[:, ::2], u[:, 1::2])
    assert not overlap(u[::-2], u[::2])
    assert overlap(u[::3], u[1::2])
    assert overlap(u, u.T)
    assert not overlap(u[:3], u[3:])
    assert overlap(u.view(np.float32)[:, 1:2], u[:, :1])
    assert not overlaps_itself(u.T[::2, ::-3])
    assert overlaps_itself(np.lib.stride_tricks.sliding_window_view(u, (2, 2)))


def test_written_overlap_names_both():
    u = np.zeros((4, 4))
    check_aliases({"a": u, "b": u, "c": u[1:]}, written=())
    check_aliases({"a": u[::2], "b": u[1::2]}, written=("a", "b"))
    with pytest.raises(AliasError, match=r"array 'dT' and array 'T' are the same memory.*writes array 'dT'") as error:
        check_aliases({"dT": u, "T": u}, written=("dT",))
    assert error.value.remedy == "T.copy() for array 'T'"
    with pytest.raises(AliasError, match=r"k.py:3: array 'a' and array 'b' overlap, and the launch writes both"):
        check_aliases({"a": u[1:], "b": u[:2]}, written=("a", "b"), loc="k.py:3")


def test_shadows_overlap_nothing():
    u, v = np.zeros(4), np.zeros(4)
    check_aliases({"T": u, "T'": v}, written=())
    with pytest.raises(AliasError, match="array 'T' and the shadow of 'T' are the same memory"):
        check_aliases({"T": u, "T'": u}, written=())
    with pytest.raises(AliasError, match="the shadow of 'T' and the shadow of 'C' are the same"):
        check_aliases({"T": u, "T'": v, "C": u, "C'": v}, written=())


def test_zero_strides_and_folds():
    zero = np.ndarray((3, 4), np.float64, np.zeros(4), 0, (0, 8))
    fold = np.ndarray((3, 4), np.float64, np.zeros(8), 0, (8, 8))
    check_aliases({"a": zero, "b": fold}, written=())
    with pytest.raises(AliasError, match=r"array 'a' has stride 0 in dimension 0: 3 elements are the same place"):
        check_aliases({"a": zero}, written=("a",))
    with pytest.raises(AliasError, match=r"elements of the shadow of 'b' overlap one another"):
        check_aliases({"b'": fold}, written=())


def test_hard_questions_are_refused(monkeypatch):
    rng = np.random.default_rng(3)
    memory = np.zeros(1 << 22, np.uint8)
    strides = [rng.integers(10_000, 60_000, 4).tolist() for _ in range(2)]
    a, b = (np.ndarray((14,) * 4, np.uint8, memory, k, s) for k, s in enumerate(strides))
    monkeypatch.setattr(module, "MOST_WORK", 1)
    with pytest.raises(AliasError, match="cannot be decided"):
        check_aliases({"a": a, "b": b}, written=("a",))
