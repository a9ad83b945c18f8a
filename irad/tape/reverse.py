"""Reverse mode over a recorded program: one vector-Jacobian product of the rate, launch by launch from the last.

Primal values that an adjoint reads and that a later launch overwrites are saved: the launches that make them are run
again first. The adjoints then run in reverse on shadows. A shadow in which nothing lies yet is either assigned by the
first adjoint that touches it or filled with zeros before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from irad.errors import ShadowError
from irad.tape import kernels
from irad.tape.activity import Active, find
from irad.tape.kernels import Saves
from irad.tape.memory import Bytes, View, Workspace, aligned, as_address, overlap, span
from irad.tape.program import FIRST_PARAMETER, RATE, STATE, Launch, Program, Traced
from irad.tape.replay import Environment, Scalars, arguments, as_bytes, bind, hidden, memory_map
from irad.tape.scalars import TIME, Leaf
from irad.tape.tree import Parameters

Array = npt.NDArray[Any]
Needs = tuple[frozenset[str], Saves]


class Gradients:
    """Where cotangents of parameters and captured arrays are added up, over any number of evaluations.

    ``p``: whether parameters are differentiated. ``captured``: captured arrays that are. Sums are in double precision:
    ``settle()``, called now and then, moves what has come together in single precision there, ``collect()`` everything.
    """

    def __init__(self, parameters: Parameters, p: bool, captured: Sequence[Array]) -> None:
        self.wants_p, self.captured = p, list(captured)
        self._p = [np.zeros_like(a) for a in parameters.flat] if p else []
        self.p = [np.zeros(a.size) for a in self._p]
        self.arrays = [np.zeros(a.shape) for a in self.captured]
        self._shadows: list[Bytes] = []
        self._parts: dict[tuple[int, int, int], Bytes] = {}
        self._views: list[tuple[int, Array]] = []

    def leaf(self, leaf: Leaf) -> bool:
        return self.wants_p and leaf != TIME

    def add(self, leaf: Leaf, share: float) -> None:
        if self.leaf(leaf):
            self.p[leaf[1]][leaf[2]] += share

    def regions(self, program: Program) -> set[int]:
        """Regions of a program whose cotangent is wanted."""
        found: set[int] = set()
        for n, region in enumerate(program.regions):
            captured = region.kind == "captured" and any(region.touches(a) for a in self.captured)
            if captured or (region.kind == "p" and self.wants_p):
                found.add(n)
        return found

    def shadow(self, program: Program, number: int) -> Bytes:
        """Memory in which the cotangent of a wanted region is added up."""
        region = program.regions[number]
        if region.kind == "p":
            return as_bytes(self._p[number - FIRST_PARAMETER])
        key = (id(region.owner), region.low, region.high)
        if key not in self._parts:
            wanted = [(i, a) for i, a in enumerate(self.captured) if region.touches(a)]
            low = min(region.low, *(span(a)[0] for _, a in wanted))
            memory = aligned(max(region.high, *(span(a)[1] for _, a in wanted)) - low, low)
            memory.fill(0)
            self._shadows.append(memory)
            self._parts[key] = memory[region.low - low : region.high - low]
            for i, array in wanted:
                offset = as_address(array) - low
                self._views.append((i, View(number, offset, array.shape, array.strides, array.dtype).on(memory)))
        return self._parts[key]

    @property
    def size(self) -> int:
        """How many numbers are differentiated by."""
        return sum(p.size for p in self.p) + sum(a.size for a in self.arrays)

    def take(self, out: Array) -> None:
        """Move everything into one vector, and start from zero again."""
        self.collect()
        start = 0
        for part in (*self.p, *self.arrays):
            out[start : start + part.size] = part.ravel()
            part.fill(0)
            start += part.size

    def assign(self, values: Array) -> None:
        """The inverse of :meth:`take`."""
        start = 0
        for part in (*self.p, *self.arrays):
            part[...] = values[start : start + part.size].reshape(part.shape)
            start += part.size

    def collect(self) -> None:
        """Move what was added since the last time into ``p`` and ``arrays``."""
        for total, part in zip(self.p, self._p, strict=True):
            total += part
            part.fill(0)
        for i, view in self._views:
            self.arrays[i] += view
        for memory in self._shadows:
            memory.fill(0)

    def settle(self) -> None:
        """The same, if some of it is in single precision, which is no place for long sums."""
        if any(part.dtype != np.float64 for part in self._p) or any(v.dtype != np.float64 for _, v in self._views):
            self.collect()


class BoundReverse:
    """``bound(t)`` overwrites ``u_bar`` with J^T b and adds to ``gradients``; ``b`` (seed) may be destroyed.

    ``u`` is the state at which the Jacobian is taken, ``seed`` and ``u_bar`` flat vectors of its layout. ``u_bar`` is
    None where the state is not differentiated. ``reads_state``: whether the content of ``u`` matters at all.
    """

    def __init__(
        self, program: Program, environment: Environment, u: Array, seed: Array, u_bar: Array | None,
        gradients: Gradients, workspace: Workspace,
    ) -> None:  # fmt: skip
        self._workspace, self._key = workspace, id(program)
        self._program, self._environment, self._gradients = program, environment, gradients
        self._keep = (u, seed, u_bar)
        self._steps: list[Callable[[], Any]] = []
        self._plan, self._p = program.plan, environment.p.flat
        self._scalars = Scalars()
        self._saved: dict[tuple[int, str], Array] = {}
        self._cells: list[tuple[int, Array]] = []
        self._timed = program.depends_on_time
        roots = gradients.regions(program) | ({STATE} if u_bar is not None else set())
        self._active = find(program, roots, gradients.leaf, backward=True)
        self._values = self._plan.at(self._p, 0.0)
        self._rate = workspace.get((self._key, "rate"), u.nbytes)
        memory = memory_map(program, environment, as_bytes(u), self._rate)
        needs = {a.index: self._needs(a, memory) for a in self._active}
        self.reads_state = self._forward(memory, needs)
        for a in self._active:
            views = dict(a.launch.views())
            self.reads_state |= any(views[name].region == STATE for name in needs[a.index][0] & views.keys())
        self._backward(memory, needs, seed, u_bar, roots)

    def _needs(self, active: Active, memory: Sequence[Bytes]) -> Needs:
        args = arguments(active.launch, memory, self._values)
        reads, saves = active.launch.kernel.adjoint_needs(args, frozenset((*active.arrays, *active.scalars)))
        return frozenset(reads), tuple(saves)

    def _forward(self, memory: Sequence[Bytes], needs: Mapping[int, Needs]) -> bool:
        """Plan what must be run again and saved; returns whether anything is run (and so reads the state)."""
        launches = self._program.launches
        writes = [{v.region for n, v in launch.views() if n in launch.written} for launch in launches]
        targets: list[tuple[int, int]] = []  # (region, as it is after this launch)
        after: dict[int, list[str]] = {}  # arrays to keep as this launch leaves them
        for a in self._active:
            views = dict(a.launch.views())
            reads, saves = needs[a.index]
            for name in sorted(reads & views.keys()):
                region = views[name].region
                targets.append((region, a.index))
                if any(region in writes[i] for i in range(a.index + 1, len(launches))):
                    after.setdefault(a.index, []).append(name)
            for stage, name, _ in saves:
                targets.append((views[name].region, a.index - 1))
                if stage:
                    targets.append((views[name].region, a.index))
        run = self._closure(targets, writes)
        before: list[Callable[[], Any]] = [lambda: self._rate.fill(0)]
        restore = self._environment.restore(self._program)
        if restore is not None:
            before.append(restore)
        work: list[Callable[[], Any]] = []
        for index, launch in enumerate(launches):
            saves = needs[index][1] if index in needs else ()
            work += self._run(index, launch, memory, saves, index in run)
            views = dict(launch.views())
            work += [self._save(index, name, views[name], memory) for name in after.get(index, ())]
        self._steps += [*before, *work] if work else []
        return any(v.region == STATE for i in run for _, v in launches[i].views())

    def _run(
        self, index: int, launch: Launch, memory: Sequence[Bytes], saves: Saves, needed: bool
    ) -> list[Callable[[], Any]]:
        """One launch run again, cut where an array must be kept as it is between two stages."""
        views, steps = dict(launch.views()), []
        inner = any(stage for stage, _, _ in saves)
        cuts = sorted({0, *(stage for stage, _, _ in saves)})
        for first, end in zip(cuts, [*cuts[1:], None], strict=True):
            steps += [self._save(index, alias, views[name], memory) for s, name, alias in saves if s == first]
            if inner:
                args = arguments(launch, memory, self._values)
                stop = kernels.count_stages(launch.kernel, args) if end is None else end
                part = kernels.bind_stages(launch.kernel, args, hidden(launch, memory), (first, stop))
                steps.append(self._scalars.watch(launch, part))
            elif needed:
                steps.append(self._scalars.watch(launch, bind(launch, memory, self._values)))
        return steps

    def _closure(self, targets: Collection[tuple[int, int]], writes: Sequence[set[int]]) -> set[int]:
        """Launches that make the wanted versions of regions, and what they in turn read."""
        launches = self._program.launches
        run: set[int] = set()
        stack = list(targets)
        while stack:
            region, last = stack.pop()
            for index in range(last + 1):
                if region in writes[index] and index not in run:
                    run.add(index)
                    stack.extend((v.region, index - 1) for _, v in launches[index].views())
        return run

    def _save(self, index: int, name: str, view: View, memory: Sequence[Bytes]) -> Callable[[], Any]:
        source = view.on(memory[view.region])
        size = source.size * source.itemsize
        copy = self._workspace.get((self._key, index, name), size).view(source.dtype).reshape(source.shape)
        self._saved[(index, name)] = copy
        return lambda: np.copyto(copy, source)

    def _backward(
        self, memory: Sequence[Bytes], needs: Mapping[int, Needs], seed: Array,
        u_bar: Array | None, roots: set[int],
    ) -> None:  # fmt: skip
        program = self._program
        shadows: dict[int, Bytes] = {RATE: as_bytes(seed)}
        if u_bar is not None:
            shadows[STATE] = as_bytes(u_bar)
        for n in roots - {STATE}:
            shadows[n] = self._gradients.shadow(program, n)
        live = {RATE} | (roots - {STATE})  # regions whose shadows hold something
        rate_writers = [a.index for a in self._active if RATE in {v.region for n, v in a.launch.views()}]
        for active in reversed(self._active):
            launch = active.launch
            views = {n: v for n, v in launch.views() if n in active.arrays}
            assign, extra, used = [], [], {}
            for name, view in views.items():
                n = view.region
                if n not in shadows:
                    region = program.regions[n]
                    shadows[n] = self._workspace.get((self._key, "shadow", n), region.size, region.low)
                clash = [o for o, v in views.items() if o in used and overlap(v, view)]
                if clash:  # one array under two names: a shadow of its own, added afterwards
                    size = view.dtype.itemsize * math.prod(view.shape)
                    spare = self._workspace.get((self._key, active.index, f"shadow of {name}"), size)
                    own = spare.view(view.dtype).reshape(view.shape)
                    used[name] = own
                    assign.append(name)
                    extra.append((view.on(shadows[n]), own))
                    continue
                if n not in live:
                    others = [o for o, v in views.items() if o != name and v.region == n]
                    if name not in launch.written and not others and _covers(view, program.regions[n].size):
                        assign.append(name)
                    else:
                        self._steps.append(_filler(shadows[n]))
                    live.add(n)
                used[name] = view.on(shadows[n])
            keep = [n for n, v in views.items() if v.region == RATE and rate_writers[0] == active.index]
            keep = [n for n in keep if n in launch.written]
            self._bind(active, memory, used, assign, keep, needs[active.index][1])
            self._steps += [_adder(target, own) for target, own in extra]
        if u_bar is not None and STATE not in live:
            self._steps.append(_filler(u_bar))

    def _bind(
        self, active: Active, memory: Sequence[Bytes], shadows: dict[str, Array], assign: Sequence[str],
        keep: Sequence[str], saves: Saves,
    ) -> None:  # fmt: skip
        launch, index = active.launch, active.index
        args, captured = arguments(launch, memory, self._values), hidden(launch, memory)
        for i, name in enumerate(launch.names):
            args[i] = self._saved.get((index, name), args[i])
        captured = {name: self._saved.get((index, name), array) for name, array in captured.items()}
        saved = {alias: self._saved[(index, alias)] for _, _, alias in saves}
        cells = {}
        for name in active.scalars:
            arg = launch.args[launch.names.index(name)]
            assert isinstance(arg, Traced)
            cells[name] = np.zeros(1)
            self._cells.append((arg.output, cells[name]))
        try:
            bound = kernels.bind_vjp(launch.kernel, args, captured, shadows, cells, keep, assign, saved)
        except ShadowError:
            if not keep:
                raise
            bound = kernels.bind_vjp(launch.kernel, args, captured, shadows, cells, (), assign, saved)
        self._steps.append(self._scalars.watch(launch, bound))

    def __call__(self, t: float) -> None:
        if self._timed:
            self._scalars.set(self._plan.at(self._p, t))
        for _, cell in self._cells:
            cell[0] = 0.0
        for step in self._steps:
            step()
        if self._cells:
            self._plan.at(self._p, t)
            bars = [0.0] * len(self._plan.outputs)
            for output, cell in self._cells:
                bars[output] += float(cell[0])
            self._plan.pull(bars, self._gradients.add)


def _filler(memory: Array) -> Callable[[], None]:
    return lambda: memory.fill(0)


def _adder(target: Array, part: Array) -> Callable[[], Any]:
    return lambda: np.add(target, part, out=target)


def _covers(view: View, size: int) -> bool:
    """Whether a view is the whole of its region."""
    return math.prod(view.shape) * view.dtype.itemsize == size
