"""From names and array objects to parameters."""

import numpy as np
import pytest

import irad
from irad.wrt import field_name, named, resolve

field = np.ones(3)


@irad.device
def weight(i):
    return field[i]


def make_kernel():
    field = np.full(3, 2.0)

    @irad.kernel
    def f(y, x, n, k):
        i = irad.points(y)
        y[i] = n * k * field[i] * weight(i) * x[i]

    return f, field


def resolved(wrt, *, same=False):
    f, inner = make_kernel()
    y, x = np.zeros(3), np.ones(3)
    args = (y, x, 2, 1.5)
    spec = f.specialise(args)
    wrt = {"<x>": x, "<inner>": inner}.get(wrt, wrt) if isinstance(wrt, str) else wrt
    return [(w.name, w.parameters) for w in resolve(spec, f.values(spec, args), wrt)]


def test_names_and_objects():
    assert resolved("x") == [("x", ("x",))]
    assert resolved(("k", "x")) == [("k", ("k",)), ("x", ("x",))]
    assert resolved("<x>") == [("x", ("x",))]
    assert resolved("f.field") == resolved("<inner>") == [("f.field", ("f.field",))]
    assert resolved("weight.field") == resolved([field]) == [("weight.field", ("weight.field",))]
    assert resolved(None) == [("x", ("x",)), ("k", ("k",))]
    assert resolved(()) == []


@pytest.mark.parametrize(
    ("wrt", "reason"),
    [
        ("field", "several names: f.field, weight.field"),
        ("z", "of the name z"),
        ("g.x", "of the name g.x"),
        ("n", "n is int, which carries no derivative"),
        (("x", "x"), "twice"),
        ([np.ones(3)], "not given"),
        (3, "type int"),
    ],
)
def test_refusals(wrt, reason):
    with pytest.raises(irad.ShadowError, match=reason) as e:
        resolved(wrt)
    assert str(e.value.loc).startswith(__file__)
    assert e.value.remedy


def test_names_of_fields():
    assert [field_name(n) for n in ("T", "helper.Ci", "Ci#2", "lambda", "_a", "_")] == [
        "T", "helper_Ci", "Ci_2", "lambda_", "a", "x",
    ]  # fmt: skip
    result = named("Result", {"helper.Ci": 1, "T": 2})
    assert result == (1, 2)
    assert result.helper_Ci == 1
    assert type(result) is type(named("Result", {"helper.Ci": 3, "T": 4}))
