import math

import pytest

from irad.ode.stepsize import Controller, first_step, smallest_step


def test_first_step_grows_by_at_most_five_then_two():
    c = Controller()
    assert c.accept(1e-8, 1.0) == 5.0
    assert c.accept(1e-8, 5.0) == pytest.approx(10.0)


def test_memory_predicts_a_growing_error():
    c = Controller()
    c.accept(0.25, 1.0)
    plain = 0.8 / math.sqrt(0.5)
    assert c.accept(0.5, 1.0) == pytest.approx(plain * math.sqrt(0.25 / 0.5))


def test_no_growth_right_after_a_rejection():
    c = Controller()
    c.accept(0.5, 1.0)
    h = c.reject(4.0, 1.0)
    assert h < 0.5
    assert c.row == 1
    assert c.accept(1e-6, h) == h
    assert c.row == 0


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_infinite_errors_shrink_the_step_tenfold(bad):
    assert Controller().reject(bad, 1.0) == pytest.approx(0.08)


def test_backward_steps_keep_their_sign():
    c = Controller()
    assert c.accept(1e-4, -0.1) == pytest.approx(-0.5)
    assert c.accept(0.01, -0.5) < 0


def test_forgetting_drops_the_prediction():
    c = Controller()
    c.accept(1e-6, 1.0)
    c.forget()
    assert c.accept(0.64, 1.0) == pytest.approx(1.0)


def test_first_step_from_a_trial():
    assert first_step(0.1, 0.0, 3.0) == 3.0
    assert first_step(0.1, 4.0, 3.0) == pytest.approx(0.005)
    assert first_step(0.1, math.nan, 3.0) == pytest.approx(0.001)


def test_smallest_step_moves_time():
    for t in (0.0, 1.0, -1e6):
        assert t + smallest_step(t, 1.0) != t
