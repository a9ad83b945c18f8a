"""The recorder of a function: kernel launches in order, and the comparisons of traced scalars it asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from irad.recording import active, recording, suspended
from irad.tape.kernels import name_of
from irad.tape.scalars import TracedBool, compare
from irad.tape.where import Line, user_line


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
        self.launches.append(RawLaunch(kernel, tuple(kernel.positional(args, options)), user_line()))

    def decide(self, question: TracedBool) -> bool:
        """Answer a comparison and remember question and answer."""
        answer = compare(question, self.p, self.t)
        self.decisions.append((question, answer))
        return answer


__all__ = ["RawLaunch", "Recorder", "active", "recording", "suspended"]
