"""Which arrays come to depend on given parameters."""

import numpy as np
import pytest
from irad.passes.ir.model import ArrayParam, ScalarParam
from irad.passes.program import prepare_stage
from irad.passes.reached import reached

from irad.domains import points
from irad.fd import all as everywhere
from irad.fd import d_xa, inn
from irad.frontend import lower, typeof


def stages(function, *args):
    lowered = lower(function, tuple(typeof(a) for a in args))
    params = [
        ArrayParam(p.name, p.type.elem, p.type.rank) if hasattr(p.type, "elem") else ScalarParam(p.name, p.type.llvm)
        for p in lowered.params
    ]
    return [prepare_stage(s.text, s.name, s.rank, params, s.domain_text, s.domain_name).point for s in lowered.stages]


def fluxes(dT, T, q, k):
    q[everywhere] = -k * d_xa(T)
    dT[inn] = -d_xa(q)


def counts(n, y, x, a):
    i = points(y)
    n[i] = int(x[i])
    y[i] = a


def swapped(a, b, x):
    b[everywhere] = everywhere(a)
    a[everywhere] = everywhere(x)


@pytest.mark.parametrize(
    ("active", "expected"),
    [({"T"}, {"q", "dT"}), ({"k"}, {"q", "dT"}), ({"q"}, {"dT"}), ({"dT"}, set()), (set(), set())],
    ids=lambda names: "+".join(sorted(names)) or "none",
)
def test_through_statements(active, expected):
    found = reached(stages(fluxes, np.zeros(5), np.zeros(5), np.zeros(4), 1.0), frozenset(active))
    assert found == expected


def test_integers_end_a_derivative():
    points = stages(counts, np.zeros(3, np.int64), np.zeros(3), np.zeros(3), 1.0)
    assert reached(points, frozenset({"x"})) == set()
    assert reached(points, frozenset({"a"})) == {"y"}


def test_from_launch_to_launch():
    points = stages(swapped, np.zeros(3), np.zeros(3), np.zeros(3))
    assert reached(points, frozenset({"x"})) == {"a", "b"}
