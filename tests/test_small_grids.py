"""Math-close statements on empty and tiny arrays do what the same operators do on NumPy arrays, and refuse where those
have other shapes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import irad
from irad import fd
from irad.errors import DomainError
from irad.fd import d2, inn, inn_x


def flux(v, T, k):  # type: ignore[no-untyped-def]
    v[fd.all] = -fd.av_xi(k) * fd.d_xi(T)


def second(v, T):  # type: ignore[no-untyped-def]
    v[inn] = d2(T)


def inner(v, T):  # type: ignore[no-untyped-def]
    v[inn] = fd.d2_xi(T) + fd.d2_yi(T) + fd.maxloc(T)


def half(v, T):  # type: ignore[no-untyped-def]
    v[inn_x] = fd.harm(T)


def nested(v, T):  # type: ignore[no-untyped-def]
    v[fd.all] = fd.inn_y(fd.d_xa(T)) * 2.0


NUMPY = {
    flux: (2, lambda T, k: -fd.av_xi(k) * fd.d_xi(T), ()),
    second: (1, d2, (slice(1, -1),)),
    inner: (2, lambda T: fd.d2_xi(T) + fd.d2_yi(T) + fd.maxloc(T), (slice(1, -1), slice(1, -1))),
    half: (2, fd.harm, (slice(1, -1),)),
    nested: (2, lambda T: fd.inn_y(fd.d_xa(T)) * 2.0, ()),
}


@pytest.mark.parametrize("function", NUMPY, ids=lambda f: f.__name__)
def test_shapes(function: Any) -> None:
    rank, by_numpy, selection = NUMPY[function]
    kernel = irad.kernel(function, cache=False)
    rng = np.random.default_rng(4)
    sizes = list(itertools.product(range(4), repeat=rank))
    fitting = 0
    for target, source in itertools.product(sizes, sizes):
        reads = [rng.random(source) for _ in range(function.__code__.co_argcount - 1)]
        v = rng.random(target)
        expected = v.copy()
        part, values = expected[selection], by_numpy(*reads)
        if part.shape == values.shape:
            fitting += 1
            part[...] = values
            kernel(v, *reads)
            np.testing.assert_array_equal(v, expected)
        else:
            with pytest.raises(DomainError):
                kernel(v, *reads)
            np.testing.assert_array_equal(v, expected)
    assert fitting > 2
