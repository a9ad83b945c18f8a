"""Who records launches, if anybody: the word that kernels and the tape share.

While a thread has a recorder, a kernel that it calls does not run but is handed to ``recorder.launch(kernel, args,
kwargs)``. One recorder belongs to one thread. ``on_change`` lets the launch layer switch its fast path off as long as
any thread records.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol


class Launches(Protocol):
    """What takes the launches of a recording."""

    def launch(self, kernel: Any, args: Sequence[Any], options: Mapping[str, Any]) -> None:
        """Write one kernel call down: positional and keyword arguments as given."""


_state = threading.local()
_lock = threading.Lock()
_count = 0

on_change: list[Callable[[bool], None]] = []
"""Called with True when the first recorder of the process starts, with False when the last one ends."""


def active() -> Launches | None:
    """The recorder of this thread, or None."""
    return getattr(_state, "recorder", None)


@contextmanager
def recording(recorder: Launches) -> Iterator[None]:
    """Make ``recorder`` the active one of this thread; within, another may take its place for a while."""
    before = active()
    _state.recorder = recorder
    _switch(1)
    try:
        yield
    finally:
        _state.recorder = before
        _switch(-1)


@contextmanager
def suspended() -> Iterator[None]:
    """Run kernels for real inside a recording."""
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
