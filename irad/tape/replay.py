"""Running a recorded program: its launches bound to the memory of one solve.

An :class:`Environment` holds the memory of every region but u and du, which change from call to call. With
``copy=True`` it is a private copy, so that what the user later does to captured arrays is not seen; with ``copy=False``
it is the arrays themselves, and those that are only read are watched by a fingerprint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from irad.errors import IradError
from irad.tape import kernels
from irad.tape.memory import Bytes, View, aligned, bytes_of
from irad.tape.program import FIRST_PARAMETER, RATE, STATE, Launch, Program, Region, Static, Traced
from irad.tape.tree import Parameters

Array = npt.NDArray[Any]


class Environment:
    """Memory for captured, local and parameter regions, shared by all programs of one recorded function."""

    def __init__(self, p: Parameters, copy: bool = True) -> None:
        self.p, self.copy = p, copy
        self._memory: dict[tuple[int, int, int], Bytes] = {}
        self._watched: dict[tuple[int, int, int], tuple[Region, bytes]] = {}
        self._initial: dict[tuple[int, int, int], Bytes] = {}

    def memory(self, program: Program, number: int) -> Bytes:
        """The bytes that stand for a region (not for u and du)."""
        region = program.regions[number]
        if region.kind == "p":
            return as_bytes(self.p.flat[number - FIRST_PARAMETER])
        key = (id(region.owner), region.low, region.high)
        if key not in self._memory:
            own = bytes_of(region.owner, region.low, region.high)
            if self.copy or region.kind == "local":
                private = aligned(region.size, region.low)
                private[:] = own
                self._memory[key] = private
            else:
                self._memory[key] = own
                if not region.written:
                    self._watched[key] = (region, _digest(own))
            if region.reset:
                self._initial[key] = self._memory[key].copy()
        return self._memory[key]

    def restore(self, program: Program) -> Callable[[], None] | None:
        """What puts local arrays that are read where they were not written back to their first content, if any."""
        pairs = [
            (self.memory(program, n), self._initial[(id(r.owner), r.low, r.high)])
            for n, r in enumerate(program.regions)
            if r.reset
        ]
        if not pairs:
            return None

        def put_back() -> None:
            for memory, initial in pairs:
                memory[:] = initial

        return put_back

    def check(self) -> None:
        """Raise ``IradError`` if an array that is used in place has changed since it was first seen."""
        for key, (region, digest) in self._watched.items():
            if _digest(self._memory[key]) != digest:
                raise IradError(
                    f"the captured array {region.text} has changed since the solve, so that the steps taken "
                    "cannot be run again",
                    remedy="solve again, or with copy=True, so that the solution keeps a copy",
                )


class Bound:
    """The launches of one program on one pair of state and rate vectors; ``bound(t)`` evaluates the rate.

    The rate starts from zeros. Where the launches write the same entries at every call and read none of them, it is
    filled once, here: then no one may write to the other entries of ``du`` anything but zeros. Scalars are set to
    their values at ``t``.
    """

    def __init__(self, program: Program, environment: Environment, u: Array, du: Array) -> None:
        self._rate = du
        self._p = environment.p.flat
        self._keep = (program, u, du)
        self._plan = program.plan
        self._restore = environment.restore(program)
        memory = memory_map(program, environment, as_bytes(u), as_bytes(du))
        self._launches: list[Callable[[], Any]] = []
        self._scalars = Scalars()
        values = program.plan.at(self._p, 0.0)
        for launch in program.launches:
            self._launches.append(self._scalars.watch(launch, bind(launch, memory, values)))
        self._launches = kernels.chained(self._launches)
        self._timed = program.depends_on_time
        if program.overwrites_rate is None:
            program.overwrites_rate = overwrites_rate(program, memory, values)
        self._fill = not program.overwrites_rate
        du.fill(0)

    def __call__(self, t: float) -> None:
        if self._fill:
            self._rate.fill(0)
        if self._restore is not None:
            self._restore()
        if self._timed:
            self._scalars.set(self._plan.at(self._p, t))
        for launch in self._launches:
            launch()


class Scalars:
    """The scalars of bound launches that change with ``t``."""

    def __init__(self) -> None:
        self._setters: list[tuple[Callable[[str, float], None], str, int]] = []

    def watch(self, launch: Launch, bound: Any) -> Any:
        """Remember the varying scalars of a bound launch, and return it."""
        for name, arg in zip(launch.names, launch.args, strict=True):
            if isinstance(arg, Traced) and arg.node.varies:
                self._setters.append((bound.set, name, arg.output))
        return bound

    def set(self, values: Sequence[float]) -> None:
        """Give all of them their values, from those of the program's plan."""
        for change, name, output in self._setters:
            change(name, values[output])


def memory_map(program: Program, environment: Environment, u: Bytes, du: Bytes) -> list[Bytes]:
    """Memory for every region of a program."""
    return [
        u if n == STATE else du if n == RATE else environment.memory(program, n) for n in range(len(program.regions))
    ]


def arguments(launch: Launch, memory: Sequence[Bytes], values: Sequence[float]) -> list[Any]:
    """The arguments of a launch as a kernel takes them."""
    out: list[Any] = []
    for arg in launch.args:
        if isinstance(arg, View):
            out.append(arg.on(memory[arg.region]))
        elif isinstance(arg, Traced):
            out.append(values[arg.output])
        else:
            assert isinstance(arg, Static)
            out.append(arg.value)
    return out


def hidden(launch: Launch, memory: Sequence[Bytes]) -> dict[str, Array]:
    """Memory for the arrays that the kernel captures, by parameter name."""
    return {name: view.on(memory[view.region]) for name, view in launch.hidden.items()}


def bind(launch: Launch, memory: Sequence[Bytes], values: Sequence[float]) -> Any:
    """The launch on this memory, with the traced scalars' values from the program's plan."""
    return kernels.bind(launch.kernel, arguments(launch, memory, values), hidden(launch, memory))


def overwrites_rate(program: Program, memory: Sequence[Bytes], values: Sequence[float]) -> bool:
    """Whether no launch depends on what the rate held, and all write to the same places at every call."""
    for launch in program.launches:
        for name, view in launch.views():
            if view.region == RATE and not (
                name in launch.written and kernels.overwrites(launch.kernel, arguments(launch, memory, values), name)
            ):
                return False
    return True


def as_bytes(array: Array) -> Bytes:
    """The bytes of a contiguous vector, not copied."""
    return array.reshape(-1).view(np.uint8)


def _digest(memory: Bytes) -> bytes:
    return hashlib.blake2b(memory.data, digest_size=16).digest()
