"""Recording: while a recorder is active, a kernel that is called does not run but is written down.

Kernels ask :func:`active` on their slow path; ``on_change`` lets the launch layer switch its fast path off for as long
as any thread records. One recorder belongs to one thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from irad.tape.kernels import name_of, positional
from irad.tape.scalars import TracedBool, compare
from irad.tape.where import Line, user_line

_state = threading.local()
_lock = threading.Lock()
_count = 0

on_change: list[Callable[[bool], None]] = []
"""Called with True when the first recorder of the process starts, with False when the last one ends."""


@dataclass
class RawLaunch:
    """One kernel call as it was made: arguments in order of the parameters, still handles and arrays."""

    kernel: Any
    args: tuple[Any, ...]
    loc: Line | None

    @property
    def title(self) -> str:
        return name_of(self.kernel)


@dataclass
class Recorder:
    """What one run of the function did. ``p`` (flat parameter arrays) and ``t`` answer its comparisons."""

    p: Sequence[Any]
    t: float
    launches: list[RawLaunch] = field(default_factory=list)
    decisions: list[tuple[TracedBool, bool]] = field(default_factory=list)

    def launch(self, kernel: Any, args: Sequence[Any], options: Mapping[str, Any]) -> None:
        """Write one kernel call down."""
        self.launches.append(RawLaunch(kernel, positional(kernel, args, options), user_line()))

    def decide(self, question: TracedBool) -> bool:
        """Answer a comparison and remember question and answer."""
        answer = compare(question, self.p, self.t)
        self.decisions.append((question, answer))
        return answer


def active() -> Recorder | None:
    """The recorder of this thread, or None."""
    return getattr(_state, "recorder", None)


@contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """Make ``recorder`` the active one of this thread. Recordings do not nest into one another's record."""
    before = active()
    _state.recorder = recorder
    _switch(1)
    try:
        yield recorder
    finally:
        _state.recorder = before
        _switch(-1)


@contextmanager
def suspended() -> Iterator[None]:
    """Run kernels for real inside a recording (used while a launch is examined)."""
    before = active()
    _state.recorder = None
    try:
        yield
    finally:
        _state.recorder = before


def _switch(step: int) -> None:
    global _count
    with _lock:
        before, _count = _count, _count + step
        if (before == 0) != (_count == 0):
            for hook in on_change:
                hook(_count > 0)
