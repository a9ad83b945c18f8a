"""Derivatives of irad.fd statements under an ``if`` on scalars, against the oracle."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import irad
from irad import fd, oracle
from irad.fd import d_xa, d_xi, inn


@irad.kernel(cache=False)
def sides(q, T, n, x, flag):  # type: ignore[no-untyped-def]
    if flag:
        q[fd.all] = -x * d_xi(T)
    else:
        q[fd.all] = 2 * x * x * d_xi(T)
    T[inn] = inn(T) + d_xa(q)


@irad.kernel(cache=False)
def chain(q, T, n, x, flag):  # type: ignore[no-untyped-def]
    if n == 1:
        q[fd.all] = d_xi(T) * d_xi(T)
    elif n == 2 and x > 0:
        q[fd.all] = x * d_xi(T)
    if flag:
        return
    T[inn] = np.where(d_xa(q) > 0, d_xa(q) * inn(T), x * inn(T))


@pytest.mark.parametrize("kernel", [sides, chain], ids=lambda k: k.__name__)
@pytest.mark.parametrize(("n", "x", "flag"), list(itertools.product([0, 1, 2], [0.5, -1.5], [False, True])))
def test_against_the_oracle(kernel: Any, n: int, x: float, flag: bool) -> None:
    rng = np.random.default_rng(6)
    T, q = rng.random((5, 4)), rng.random((4, 2))
    wrt = ["q", "T", "x"]
    D = oracle.jacobian(kernel, (q.copy(), T.copy(), n, x, flag), wrt).derivatives
    values = oracle.primal(kernel, (q.copy(), T.copy(), n, x, flag)).values
    seeds = {"q": rng.random(q.shape), "T": rng.random(T.shape)}
    expected = {w: sum(seeds[out].ravel() @ D[out, w].reshape(seeds[out].size, -1) for out in seeds) for w in wrt}
    bars = {name: seed.copy() for name, seed in seeds.items()}
    args = (q.copy(), T.copy())
    found = irad.autodiff(
        irad.Reverse,
        kernel,
        irad.Duplicated(args[0], bars["q"]),
        irad.Duplicated(args[1], bars["T"]),
        n,
        irad.Active(x),
        flag,
    )
    np.testing.assert_allclose(args[0], values["q"], rtol=1e-13)
    np.testing.assert_allclose(args[1], values["T"], rtol=1e-13)
    np.testing.assert_allclose(found, np.ravel(expected["x"])[0], rtol=1e-11)
    for name in bars:
        np.testing.assert_allclose(bars[name].ravel(), expected[name], rtol=1e-11, atol=1e-13)
