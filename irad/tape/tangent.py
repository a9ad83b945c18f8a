"""Forward mode over a recorded program: the rate and its derivative along given tangents, launch by launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy.typing as npt

from irad.tape import kernels
from irad.tape.activity import find
from irad.tape.memory import Bytes, View, Workspace, aligned, span
from irad.tape.program import FIRST_PARAMETER, RATE, STATE, Launch, Program, Traced
from irad.tape.replay import Environment, Scalars, arguments, as_bytes, bind, hidden, memory_map, overwrites_rate
from irad.tape.scalars import TIME, Leaf

Array = npt.NDArray[Any]


class Tangents:
    """Directions of everything that is held fixed during an evaluation: parameters and captured arrays.

    ``p`` is one flat array a parameter array (or None: all zero), ``captured`` pairs of a captured array's absolute
    byte address and its tangent, an array of the same shape and data type.
    """

    def __init__(self, p: Sequence[Array] | None = None, captured: Sequence[tuple[int, Array, Array]] = ()) -> None:
        self.p, self.captured = p, captured

    def leaf(self, leaf: Leaf) -> float:
        if leaf == TIME or self.p is None:
            return 0.0
        return float(self.p[leaf[1]][leaf[2]])

    def regions(self, program: Program) -> set[int]:
        """Regions of a program with a tangent other than u's."""
        found: set[int] = set()
        if self.p is not None:
            found.update(range(FIRST_PARAMETER, FIRST_PARAMETER + len(self.p)))
        for n, region in enumerate(program.regions):
            if region.kind == "captured" and any(region.touches(a) for _, a, _ in self.captured):
                found.add(n)
        return found

    def fill(self, program: Program, number: int, memory: Bytes) -> None:
        """Write a captured region's tangent into memory of its layout; zeros where it has none."""
        region = program.regions[number]
        mine = [(at, array, dot) for at, array, dot in self.captured if region.touches(array)]
        low = min(region.low, *(span(a)[0] for _, a, _ in mine)) if mine else region.low
        high = max(region.high, *(span(a)[1] for _, a, _ in mine)) if mine else region.high
        whole = aligned(high - low, low)
        whole.fill(0)
        for address, array, dot in mine:
            View(number, address - low, array.shape, array.strides, array.dtype).on(whole)[...] = dot
        memory[:] = whole[region.low - low : region.high - low]


class BoundTangent:
    """``bound(t)`` writes the rate to ``du``, its derivative to ``du_dot``; directions are ``u_dot`` and ``fixed``.

    What :class:`~irad.tape.replay.Bound` says of zeros in ``du`` holds for ``du_dot`` as well.
    """

    def __init__(
        self, program: Program, environment: Environment, u: Array, du: Array, u_dot: Array, du_dot: Array,
        fixed: Tangents, workspace: Workspace,
    ) -> None:  # fmt: skip
        self._rate, self._rate_dot = du, du_dot
        self._p, self._plan, self._fixed = environment.p.flat, program.plan, fixed
        self._keep = (u, u_dot)
        self._workspace = workspace
        self._restore = environment.restore(program)
        memory = memory_map(program, environment, as_bytes(u), as_bytes(du))
        roots = fixed.regions(program) | {STATE}

        def moving(leaf: Leaf) -> bool:
            return leaf != TIME and fixed.p is not None

        active = {a.index: a for a in find(program, roots, moving, backward=False)}
        dots: dict[int, Bytes] = {STATE: as_bytes(u_dot), RATE: as_bytes(du_dot)}
        self._scratch: list[Bytes] = []
        values = self._plan.at(self._p, 0.0)
        self._scalars = Scalars()
        self._dots: list[tuple[Callable[[str, float], None], str, int]] = []
        self._launches: list[Callable[[], Any]] = []
        for index, launch in enumerate(program.launches):
            if index not in active:
                self._launches.append(self._scalars.watch(launch, bind(launch, memory, values)))
                continue
            tangents = {}
            for name, view in launch.views():
                if name in active[index].arrays:
                    tangents[name] = view.on(self._dot(program, view.region, dots, environment))
            self._bind(launch, memory, values, tangents, active[index].scalars)
        self._timed = program.depends_on_time
        if program.overwrites_rate is None:
            program.overwrites_rate = overwrites_rate(program, memory, values)
        self._fill = not program.overwrites_rate
        du.fill(0)
        du_dot.fill(0)

    def _dot(self, program: Program, number: int, dots: dict[int, Bytes], environment: Environment) -> Bytes:
        if number not in dots:
            region = program.regions[number]
            if region.kind == "p":
                assert self._fixed.p is not None
                dots[number] = as_bytes(self._fixed.p[number - FIRST_PARAMETER])
            else:
                memory = self._workspace.get((id(program), id(self._fixed), "dot", number), region.size, region.low)
                dots[number] = memory
                self._fixed.fill(program, number, dots[number])
                if region.written:
                    self._scratch.append(dots[number])
        return dots[number]

    def _bind(
        self, launch: Launch, memory: Sequence[Bytes], values: Sequence[float], tangents: Mapping[str, Array],
        scalars: Sequence[str],
    ) -> None:  # fmt: skip
        """Bind one launch; tangents of scalars that change with t are set before each run."""
        places = {n: a for n, a in zip(launch.names, launch.args, strict=True) if isinstance(a, Traced)}
        dots = self._plan.push(self._fixed.leaf)
        args, captured = arguments(launch, memory, values), hidden(launch, memory)
        moving = {n: dots[places[n].output] for n in scalars}
        bound = self._scalars.watch(launch, kernels.bind_jvp(launch.kernel, args, captured, tangents, moving))
        self._launches.append(bound)
        self._dots += [(bound.set, f"{n}.tangent", places[n].output) for n in scalars if places[n].node.varies]

    def __call__(self, t: float) -> None:
        if self._fill:
            self._rate.fill(0)
            self._rate_dot.fill(0)
        for memory in self._scratch:
            memory.fill(0)
        if self._restore is not None:
            self._restore()
        if self._timed:
            self._scalars.set(self._plan.at(self._p, t))
            if self._dots:
                dots = self._plan.push(self._fixed.leaf)
                for change, name, output in self._dots:
                    change(name, dots[output])
        for launch in self._launches:
            launch()
