import math

import numpy as np
import pytest

from irad.errors import NotDifferentiableError
from irad.recording import recording
from irad.tape.elementwise import RULES
from irad.tape.record import Recorder
from irad.tape.scalars import TIME, ScalarPlan, TracedBool, TracedScalar, compare, depends_on, same_value

T = TracedScalar.of_leaf(TIME, "t")
A = TracedScalar.of_leaf(("p", 0, 0), "p[0]")
B = TracedScalar.of_leaf(("p", 0, 1), "p[1]")
P = [np.array([0.7, 1.9])]


def value(x, p=P, t=0.4):
    return ScalarPlan([x]).at(p, t)[0]


def test_arithmetic():
    a, b, t = 0.7, 1.9, 0.4
    for made, expected in [
        (A + B * T, a + b * t),
        (2 - A, 2 - a),
        (A / B - 1 / T, a / b - 1 / t),
        (A**2 + 2**A + B**A, a**2 + 2**a + b**a),
        (-A + +B + abs(A - B), -a + b + abs(a - b)),
        (np.float64(3.0) * A, 3 * a),
        (A * np.float32(0.5), 0.5 * a),
        (np.sin(A) + np.exp(T) * np.sqrt(B), math.sin(a) + math.exp(t) * math.sqrt(b)),
        (np.maximum(A, 1.0) + np.minimum(A, B), 1.0 + a),
        (np.arctan2(A, B) + np.hypot(A, 3), math.atan2(a, b) + math.hypot(a, 3)),
    ]:
        assert value(made) == pytest.approx(expected, rel=1e-15)


UNARY = [f for f, rule in RULES.items() if f.nin == 1 and rule.partials]
BINARY = [f for f, rule in RULES.items() if f.nin == 2 and rule.partials]


@pytest.mark.parametrize("function", UNARY + BINARY, ids=lambda f: f.__name__)
def test_every_rule_in_both_modes(function):
    x, y = (1.7, 0.6) if function in (np.arccosh,) else (0.6, 1.3)
    leaves = [A, B][: function.nin]
    point = [x, y]
    plan = ScalarPlan([function(*leaves)])
    got = plan.at([np.array(point)], 0.0)[0]
    assert got == pytest.approx(float(function(*point[: function.nin])), rel=1e-15)
    bars = {}
    plan.pull([1.0], lambda leaf, share: bars.__setitem__(leaf[2], bars.get(leaf[2], 0.0) + share))
    for i in range(function.nin):
        d = 1e-6
        up, down = list(point), list(point)
        up[i] += d
        down[i] -= d
        slope = float(function(*up[: function.nin]) - function(*down[: function.nin])) / (2 * d)
        assert bars.get(i, 0.0) == pytest.approx(slope, rel=1e-7, abs=1e-9)
        assert plan.push(lambda leaf, i=i: float(leaf[2] == i))[0] == pytest.approx(slope, rel=1e-7, abs=1e-9)


def test_kinks_and_poles():
    def slope(x, at):
        plan, bars = ScalarPlan([x]), [0.0]
        plan.at([np.array([at, 1.0])], 0.0)
        plan.pull([1.0], lambda leaf, share: bars.__setitem__(0, bars[0] + share))
        return bars[0]

    assert slope(abs(A), 0.0) == 0.0
    assert slope(np.maximum(A, 1.0), 1.0) == 1.0
    assert slope(np.maximum(1.0, A), 1.0) == 0.0
    assert slope(A**0, 0.0) == 0.0
    assert slope(A**2, 0.0) == 0.0
    assert slope(A**1, 0.0) == 1.0
    assert slope(np.sign(A) + np.floor(A), 0.3) == 0.0
    assert slope(0.0 * np.sqrt(A), 0.0) == 0.0  # a zero cotangent stays zero at a pole
    assert math.isinf(slope(np.sqrt(A), 0.0))


def test_plan_evaluates_what_varies_only():
    x, y = np.sin(A) * T, np.sin(A)
    plan = ScalarPlan([x, y, x])
    assert len(plan.varying) == 2
    assert plan.at(P, 0.5) == [math.sin(0.7) * 0.5, math.sin(0.7), math.sin(0.7) * 0.5]
    assert plan.at(P, 1.0)[0] == math.sin(0.7)
    assert plan.at([np.array([0.1, 0.0])], 1.0)[1] == math.sin(0.1)


def test_shared_parts_are_pulled_once():
    x = np.sin(A * T)
    plan, bars = ScalarPlan([x + x * B, x]), {}
    plan.at(P, 0.4)
    plan.pull([2.0, 3.0], lambda leaf, share: bars.__setitem__(leaf, bars.get(leaf, 0.0) + share))
    assert bars[("p", 0, 0)] == pytest.approx((2 * (1 + 1.9) + 3) * math.cos(0.28) * 0.4)
    assert bars[("p", 0, 1)] == pytest.approx(2 * math.sin(0.28))
    assert bars[TIME] == pytest.approx((2 * (1 + 1.9) + 3) * math.cos(0.28) * 0.7)


def test_a_deep_expression():
    x = A
    for _ in range(5000):
        x = x + 1e-3
    assert value(x) == pytest.approx(5.7)
    assert depends_on(x, lambda leaf: leaf[2] == 0)
    assert not depends_on(x, lambda leaf: leaf == TIME)


def test_the_same_expression():
    memo = {}
    assert same_value(A + np.sin(T) * 2, A + np.sin(T) * 2, memo)
    assert not same_value(A + 2, A + 3, {})
    assert not same_value(A, B, {})
    assert not same_value(np.sin(A), np.cos(A), {})
    assert same_value(math.nan, math.nan, {})


def test_comparisons_ask_the_recorder():
    question = A < B * T
    assert isinstance(question, TracedBool)
    assert compare(question, P, 0.4)
    assert not compare(question, P, 0.3)
    with pytest.raises(NotDifferentiableError, match="outside the function"):
        bool(question)
    recorder = Recorder(P, 0.4)
    with recording(recorder):
        assert A < B * T
        assert A != 2
        assert not A > 1.0
        assert max(A, 0.9) == 0.9
        assert A  # not equal to zero
    assert [answer for _, answer in recorder.decisions] == [True, True, False, True, True]


@pytest.mark.parametrize(
    "use",
    [
        lambda x: math.sin(x),
        lambda x: float(x),
        lambda x: int(x),
        lambda x: x + np.ones(3),
        lambda x: np.array([x]),
        lambda x: np.mod(x, 2),
        lambda x: np.add.reduce([x]),
        lambda x: np.mean(x),
        lambda x: np.sin(x, out=np.zeros(())),
    ],
)
def test_refusals_name_the_line(use):
    with pytest.raises(NotDifferentiableError, match=r"test_scalars\.py:"):
        use(A)


def test_other_operands_are_left_to_python():
    with pytest.raises(TypeError):
        A + "x"
    with pytest.raises(TypeError):
        A // 2
