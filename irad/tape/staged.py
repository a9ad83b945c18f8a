"""A recorded right-hand side with an integrator's arithmetic in the launch that writes the rate.

Possible where the last launch alone writes du, all of it through one array of the state's layout, and reads the whole
state as one array. What comes before it (scratch) runs as ever. Where it is not possible the makers give ``None``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from irad.tape import kernels
from irad.tape.activity import find
from irad.tape.memory import View, overlap
from irad.tape.program import RATE, STATE, Launch, Program, Traced
from irad.tape.replay import Environment, Scalars, arguments, as_bytes, bind, hidden, memory_map
from irad.tape.reverse import Gradients

Array = npt.NDArray[Any]


def ends(program: Program) -> tuple[str, str] | None:
    """The names under which the last launch writes the rate and reads the state, if it can take an epilogue."""
    *first, last = program.launches
    if any(v.region == RATE for launch in first for _, v in launch.views()):
        return None
    rates = [(n, v) for n, v in last.views() if v.region == RATE]
    states = [(n, v) for n, v in last.views() if v.region == STATE]
    if len(rates) != 1 or len(states) != 1:
        return None
    (rate, written), (state, read) = rates[0], states[0]
    if rate not in last.written or rate in last.read or rate not in last.names or state not in last.names:
        return None
    whole = program.regions[STATE].size
    same = (written.shape, written.strides, written.dtype) == (read.shape, read.strides, read.dtype)
    if not same or not all(_packed(v, whole) for v in (written, read)):
        return None
    return rate, state


def _packed(view: View, size: int) -> bool:
    """Whether a view is all of its region, each element once."""
    elements = int(np.prod(view.shape, dtype=np.int64))
    strides = sorted((s, n) for s, n in zip(view.strides, view.shape, strict=True) if n > 1)
    step = view.dtype.itemsize
    for s, n in strides:
        if s != step:
            return False
        step *= n
    return view.offset == 0 and elements * view.dtype.itemsize == size


class Stage:
    """``stage(t)`` runs f on ``u`` with an epilogue that reads and writes ``arrays``, vectors by its names;
    ``stage.set(".c", c)`` and so on before."""

    def __init__(
        self, program: Program, environment: Environment, epilogue: str, u: Array, arrays: Mapping[str, Array],
        bound: Any, scalars: Scalars, before: list[Callable[[], Any]],
    ) -> None:  # fmt: skip
        self._keep = (program, u, arrays)
        self.set = bound.set
        self._scalars, self._timed = scalars, program.depends_on_time
        self._plan, self._p = program.plan, environment.p.flat
        self._run = kernels.chained([*before, bound]) if environment.restore(program) is None else [*before, bound]

    def __call__(self, t: float) -> None:
        if self._timed:
            self._scalars.set(self._plan.at(self._p, t))
        for launch in self._run:
            launch()


def stage(
    program: Program, environment: Environment, epilogue: str, u: Array, arrays: Mapping[str, Array]
) -> Stage | None:
    """The stage, bound to these vectors; ``None`` where the epilogue cannot be joined to the program."""
    names = ends(program)
    if names is None:
        return None
    from irad.staged import bind_stage

    out = arrays[".out"]
    memory = memory_map(program, environment, as_bytes(u), as_bytes(out))
    values = program.plan.at(environment.p.flat, 0.0)
    last = program.launches[-1]
    view = dict(last.views())[names[0]]
    given = {n: view.on(as_bytes(v)) for n, v in arrays.items()}
    if not hasattr(last.kernel, "specialise"):
        return None
    bound = bind_stage(
        last.kernel, arguments(last, memory, values), *names, epilogue, given, captured=hidden(last, memory)
    )
    if bound is None:
        return None
    scalars = Scalars()
    restore = environment.restore(program)
    before: list[Callable[[], Any]] = [] if restore is None else [restore]
    for launch in program.launches[:-1]:
        before.append(scalars.watch(launch, bind(launch, memory, values)))
    scalars.watch(last, bound)
    return Stage(program, environment, epilogue, u, arrays, bound, scalars, before)


class Pull:
    """``pull(t)``: ``u_bar = b u_bar + a seed + c J^T seed``, and ``c`` times the cotangents of parameters and captured
    arrays are added to ``gradients``; ``pull.set(".a", a)`` and so on before."""

    def __init__(
        self, program: Program, environment: Environment, gradients: Gradients, bound: Any, scalars: Scalars,
        cells: list[tuple[int, Array]], keep: Any,
    ) -> None:  # fmt: skip
        self.set = bound.set
        self._bound, self._scalars, self._cells, self._keep = bound, scalars, cells, keep
        self._plan, self._p, self._timed = program.plan, environment.p.flat, program.depends_on_time
        self._gradients = gradients

    def __call__(self, t: float) -> None:
        if self._timed:
            self._scalars.set(self._plan.at(self._p, t))
        for _, cell in self._cells:
            cell[0] = 0.0
        self._bound()
        if self._cells:
            self._plan.at(self._p, t)
            bars = [0.0] * len(self._plan.outputs)
            for output, cell in self._cells:
                bars[output] += float(cell[0])
            self._plan.pull(bars, self._gradients.add)


def pull(
    program: Program, environment: Environment, u: Array, seed: Array, u_bar: Array, gradients: Gradients
) -> Pull | None:
    """The reverse product with its recurrence, bound to these vectors; ``None`` where it is not one launch."""
    names = ends(program)
    if names is None or len(program.launches) != 1 or environment.restore(program) is not None:
        return None
    from irad.staged import bind_stage_vjp

    (launch,) = program.launches
    if not hasattr(launch.kernel, "specialise"):
        return None
    rate, state = names
    wanted = gradients.regions(program)
    active = find(program, wanted | {STATE}, gradients.leaf, backward=True)
    memory = memory_map(program, environment, as_bytes(u), as_bytes(seed))
    values = program.plan.at(environment.p.flat, 0.0)
    shadows = {state: dict(launch.views())[state].on(as_bytes(u_bar))}
    cells: list[tuple[int, Array]] = []
    named: dict[str, Array] = {}
    for a in active:
        views = {n: v for n, v in launch.views() if n in a.arrays and n not in (rate, state)}
        if any(v.region not in wanted for v in views.values()):
            return None  # scratch, whose cotangent starts at zero
        if any(overlap(v, w) for n, v in views.items() for m, w in views.items() if n < m):
            return None
        shadows.update({n: v.on(gradients.shadow(program, v.region)) for n, v in views.items()})
        for name in a.scalars:
            arg = _argument(launch, name)
            named[name] = np.zeros(1)
            cells.append((arg.output, named[name]))
    seed_array = dict(launch.views())[rate].on(as_bytes(seed))
    bound = bind_stage_vjp(
        launch.kernel, arguments(launch, memory, values), rate, state, seed_array, shadows, named,
        captured=hidden(launch, memory),
    )  # fmt: skip
    if bound is None:
        return None
    scalars = Scalars()
    scalars.watch(launch, bound)
    return Pull(program, environment, gradients, bound, scalars, cells, (program, u, seed, u_bar))


def _argument(launch: Launch, name: str) -> Traced:
    arg = launch.args[launch.names.index(name)]
    assert isinstance(arg, Traced)
    return arg
