import functools

import pytest

from irad.ode.checkpoint import ADVANCE, REVERSE, forward_steps, schedule


@functools.cache
def fewest(steps, slots):
    """The least number of forward steps, by trying every place for the next state."""
    if steps <= 1:
        return 0
    if slots == 1:
        return steps * (steps - 1) // 2
    return min(m + fewest(m, slots) + fewest(steps - m, slots - 1) for m in range(1, steps))


@pytest.mark.parametrize("slots", [1, 2, 3, 4, 7, 12])
def test_schedules_are_valid_and_optimal(slots):
    for steps in [*range(40), 61, 80]:
        stored, next_step, most = {0}, steps - 1, 1
        for action, n, m in schedule(steps, slots):
            if action == ADVANCE:
                assert n in stored
                assert m not in stored
                assert n < m <= next_step
                stored.add(m)
                most = max(most, len(stored))
            elif action == REVERSE:
                assert m in stored
                assert m <= n == next_step
                next_step -= 1
            else:
                stored.remove(n)
        assert next_step == -1
        assert most <= slots
        assert forward_steps(steps, slots) == fewest(steps, slots)


def test_known_costs():
    """Figures for 60 and 1000 steps, in forward steps a step (without the reversals)."""
    assert forward_steps(60, 2) / 60 == pytest.approx(6.3, abs=0.05)
    assert forward_steps(60, 20) / 60 == pytest.approx(1.6, abs=0.05)
    assert forward_steps(1000, 20) / 1000 == pytest.approx(2.75, abs=0.05)


def test_no_slot():
    with pytest.raises(ValueError, match="at least one"):
        list(schedule(3, 0))
