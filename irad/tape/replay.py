"""Running a recorded program: its launches bound to the memory of one solve.

An :class:`Environment` holds the memory of every region but u and du, which change from call to call. With
``copy=True`` it is a private copy, so that what the user later does to captured arrays is not seen; arrays that a
kernel captures itself cannot be exchanged and are watched by a fingerprint instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from irad.errors import IradError
from irad.tape.kernels import setter
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
            if (self.copy or region.kind == "local") and not region.hidden:
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
                    remedy="solve again, or pass the array to the kernel as an argument, of which a solution keeps "
                    "a copy (copy=True)",
                )


class Bound:
    """The launches of one program on one pair of state and rate vectors; ``bound(t)`` evaluates the rate.

    ``rate`` is filled with zeros first. Scalars are set to their values at ``t``.
    """

    def __init__(self, program: Program, environment: Environment, u: Array, du: Array) -> None:
        self._rate = du
        self._p = environment.p.flat
        self._keep = (u, du)
        self._plan = program.plan
        self._restore = environment.restore(program)
        memory = memory_map(program, environment, as_bytes(u), as_bytes(du))
        self._launches: list[Callable[[], Any]] = []
        self._scalars = Scalars(program)
        values = program.plan.at(self._p, 0.0)
        for launch in program.launches:
            args = arguments(launch, memory, values)
            self._launches.append(self._scalars.bind(launch, args, launch.kernel.bind))
        self._timed = program.depends_on_time

    def __call__(self, t: float) -> None:
        self._rate.fill(0)
        if self._restore is not None:
            self._restore()
        if self._timed:
            self._scalars.set(self._plan.at(self._p, t))
        for launch in self._launches:
            launch()


class Scalars:
    """Keeps the scalars of bound launches up to date, through ``bound.set`` or by binding anew."""

    def __init__(self, program: Program) -> None:
        self._updates: list[Callable[[Sequence[float]], None]] = []

    def bind(
        self, launch: Launch, args: list[Any], bind: Callable[..., Any], only_varying: bool = True
    ) -> Callable[[], Any]:
        """Bind a launch; returns the callable that runs it with the scalars set last."""
        traced = [
            (i, name, arg.output)
            for i, (name, arg) in enumerate(zip(launch.names, launch.args, strict=True))
            if isinstance(arg, Traced) and (arg.node.varies or not only_varying)
        ]
        bound = bind(*args)
        if not traced:
            return bound  # type: ignore[no-any-return]
        setters = [(setter(bound, name), output) for _, name, output in traced]
        if all(s is not None for s, _ in setters):

            def update(values: Sequence[float]) -> None:
                for change, output in setters:
                    change(values[output])  # type: ignore[misc]

            self._updates.append(update)
            return bound  # type: ignore[no-any-return]
        cell = [bound]

        def rebind(values: Sequence[float]) -> None:
            stale = False
            for i, _, output in traced:
                stale |= args[i] != values[output]
                args[i] = values[output]
            if stale:
                cell[0] = bind(*args)

        self._updates.append(rebind)
        return lambda: cell[0]()

    def set(self, values: Sequence[float]) -> None:
        for update in self._updates:
            update(values)


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


def as_bytes(array: Array) -> Bytes:
    """The bytes of a contiguous vector, not copied."""
    return array.reshape(-1).view(np.uint8)


def _digest(memory: Bytes) -> bytes:
    return hashlib.blake2b(memory.data, digest_size=16).digest()
