"""Which states to keep so that steps can be reversed with few of them: the binomial schedule, as pure integers.

Reversing n steps with c checkpoints (the first of them at the start) needs the fewest repeated steps if the next
checkpoint is placed by binomial coefficients: with r repetitions, n = C(c + r, c) steps can be reversed.

A. Griewank and A. Walther, Algorithm 799: revolve, ACM Trans. Math. Softw. 26 (2000) 19-45.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

ADVANCE, REVERSE, FREE = "advance", "reverse", "free"
Action = tuple[str, int, int]


def schedule(steps: int, slots: int) -> Iterator[Action]:
    """Actions that reverse steps ``steps - 1 .. 0`` with at most ``slots`` states, one of which is at step 0.

    ``(ADVANCE, n, m)``: run from the state at n to m, keep the state at m; ``(REVERSE, n, m)``: run from the state at m
    to n and reverse step n; ``(FREE, n, 0)``: the state at n is no longer needed.

    >>> list(schedule(3, 2))
    [('advance', 0, 1), ('reverse', 2, 1), ('reverse', 1, 1), ('free', 1, 0), ('reverse', 0, 0)]
    """
    if slots < 1:
        raise ValueError("a schedule needs at least one state")
    work: list[tuple[int, int, int]] = [(0, steps, slots)]  # reverse steps [low, high) from a state at low
    while work:
        low, high, free = work.pop()
        if low < 0:
            yield FREE, high, 0
        elif high - low <= 1 or free == 1:
            for n in range(high - 1, low - 1, -1):
                yield REVERSE, n, low
        else:
            middle = low + _split(high - low, free)
            yield ADVANCE, low, middle
            work += [(low, middle, free), (-1, middle, 0), (middle, high, free - 1)]


@functools.cache
def _split(steps: int, slots: int) -> int:
    """How far to run before the next state is kept: at least 1, fewer than ``steps``."""
    repeats = 0
    while _reach(slots, repeats) < steps:
        repeats += 1
    # after the split: the rest with one slot less and the same repeats, the part before it with one repeat less
    before = _reach(slots, repeats - 1)
    rest = _reach(slots - 1, repeats)
    least, most = max(1, steps - rest), min(steps - 1, before)
    return max(least, min(most, _reach(slots, repeats - 2) + (steps - before) if repeats > 1 else 1))


@functools.cache
def _reach(slots: int, repeats: int) -> int:
    """The most steps that can be reversed with ``slots`` states if no step is run more than ``repeats`` + 1 times."""
    if slots < 1 or repeats < 0:
        return 0
    value = 1
    for i in range(1, slots + 1):
        value = value * (repeats + i) // i
    return value


def forward_steps(steps: int, slots: int) -> int:
    """Steps run by the schedule, not counting the reversals themselves."""
    return sum((m - n if action == ADVANCE else n - m) for action, n, m in schedule(steps, slots) if action != FREE)
