"""The table of operators, on NumPy arrays: conventions of ParallelStencil."""

from __future__ import annotations

import numpy as np
import pytest

from irad import fd
from irad.errors import IradError

rng = np.random.default_rng(0)
A1, A2, A3 = rng.random(5), rng.random((5, 6)), rng.random((5, 6, 7))
MID = slice(1, -1)


@pytest.mark.parametrize(
    ("op", "A", "expected"),
    [
        ("d", A1, np.diff(A1)),
        ("d2", A1, np.diff(A1, 2)),
        ("inn", A1, A1[MID]),
        ("av", A1, (A1[1:] + A1[:-1]) / 2),
        ("d_xa", A2, np.diff(A2, axis=0)),
        ("d_ya", A2, np.diff(A2, axis=1)),
        ("d_xi", A2, np.diff(A2, axis=0)[:, MID]),
        ("d_yi", A2, np.diff(A2, axis=1)[MID]),
        ("d2_xa", A2, np.diff(A2, 2, axis=0)),
        ("d2_xi", A2, np.diff(A2, 2, axis=0)[:, MID]),
        ("d2_yi", A2, np.diff(A2, 2, axis=1)[MID]),
        ("inn_x", A2, A2[MID]),
        ("inn_y", A2, A2[:, MID]),
        ("all", A3, A3),
        ("inn", A3, A3[MID, MID, MID]),
        ("inn_xz", A3, A3[MID, :, MID]),
        ("d_za", A3, np.diff(A3, axis=2)),
        ("d_yi", A3, np.diff(A3, axis=1)[MID, :, MID]),
        ("d2_zi", A3, np.diff(A3, 2, axis=2)[MID, MID]),
        ("av_xya", A3, (A3[1:, 1:] + A3[1:, :-1] + A3[:-1, 1:] + A3[:-1, :-1]) / 4),
        ("av_zi", A3, ((A3[..., 1:] + A3[..., :-1]) / 2)[MID, MID]),
        ("harm_xa", A2, 2 / (1 / A2[1:] + 1 / A2[:-1])),
        ("maxloc", A1, np.maximum(np.maximum(A1[2:], A1[:-2]), A1[1:-1])),
        (
            "minloc",
            A2,
            np.minimum.reduce([A2[2:, MID], A2[:-2, MID], A2[MID, 2:], A2[MID, :-2], A2[MID, MID]]),
        ),
    ],
)
def test_operator(op, A, expected):
    result = fd.OPERATORS[op](A)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-14)


def test_operators_nest():
    np.testing.assert_allclose(fd.inn_y(fd.d_xa(A2)), fd.d_xi(A2), rtol=0)
    np.testing.assert_allclose(fd.d_xa(fd.d_xa(A2)), fd.d2_xa(A2), rtol=1e-13, atol=1e-15)


def test_float32_stays_float32():
    for name in ("d_xi", "d2_yi", "av", "harm", "inn"):
        assert fd.OPERATORS[name](A2.astype(np.float32)).dtype == np.float32, name


def test_small_arrays_give_empty_results():
    assert fd.d2(np.zeros(1)).shape == (0,)
    assert fd.inn(np.zeros((1, 4))).shape == (0, 2)


@pytest.mark.parametrize(("op", "A"), [("d", A2), ("d_ya", A1), ("d_za", A2), ("inn", np.zeros((2,) * 4))])
def test_ranks_are_checked(op, A):
    with pytest.raises(IradError, match="rank"):
        fd.OPERATORS[op](A)


def test_only_selectors_select():
    selectors = {name for name, op in fd.OPERATORS.items() if op.selector}
    assert selectors == {"all", "inn", "inn_x", "inn_y", "inn_z", "inn_xy", "inn_xz", "inn_yz"}


def test_every_operator_is_exported_under_its_name():
    assert set(fd.OPERATORS) == set(fd.__all__) - {"OPERATORS", "Operator"}
    assert all(op.name == name for name, op in fd.OPERATORS.items())
