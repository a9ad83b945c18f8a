import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from irad.tape.memory import View, aligned, as_address, bytes_of, overlap, owner_of, span, vector


def view_of(array, base, region=0):
    return View(region, as_address(array) - as_address(base), array.shape, array.strides, array.dtype)


@given(
    st.tuples(*[st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from([1, 2, 3, -1, -2]))] * 2),
    st.tuples(*[st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from([1, 2, 3, -1, -2]))] * 2),
)
def test_overlap_is_exact(one, two):
    base = np.zeros((6, 7))
    a, b = (base[tuple(slice(*k) for k in key)] for key in (one, two))
    marks = np.zeros((6, 7), int)
    marks[tuple(slice(*k) for k in one)] += 1
    marks[tuple(slice(*k) for k in two)] += 1
    expected = bool((marks == 2).any())
    if a.size and b.size:
        assert overlap(view_of(a, base), view_of(b, base)) == expected
    assert not overlap(view_of(a, base, 0), view_of(b, base, 1))


def test_views_carry_over_to_other_memory():
    base = np.arange(24.0).reshape(4, 6)
    low, high = span(base)
    part = base[::-2, 1::2].T
    copy = bytes_of(base, low, high).copy()
    assert np.array_equal(view_of(part, base).on(copy), part)
    view_of(part, base).on(copy)[...] = -1
    assert (copy.view(np.float64) == -1).sum() == part.size


def test_spans_of_strided_arrays():
    base = np.zeros(10)
    assert span(base[::-1]) == span(base)
    assert span(base[2:8:3]) == (as_address(base) + 16, as_address(base) + 48)
    low, high = span(base[:0])
    assert low == high
    assert owner_of(base[2:][::2]) is base


def test_vectors_are_aligned_and_zero():
    for n in (0, 1, 5, 1000):
        v = vector(n, np.dtype(np.float32))
        assert v.shape == (n,)
        assert not v.any()
        assert v.flags.writeable
        if n:
            assert as_address(v) % 64 == 0
    assert aligned(100, like=24).ctypes.data % 64 == 24
