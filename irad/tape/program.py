"""A recorded function as a program: kernel launches on views of regions, and expressions for their scalars.

:func:`build` runs the function twice under a recorder, checks that both runs did the same, and sorts every array
argument into a region: the state, its rate, a parameter, an array that the function captures (the same object in both
runs), or a local array (a new one each run, allowed only as scratch). What cannot be replayed faithfully raises
``NotDifferentiableError``; what would make the function's value depend on earlier calls raises ``IradError``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from irad.errors import IradError, NotDifferentiableError
from irad.tape.captures import Names, read_only
from irad.tape.handles import ArrayHandle
from irad.tape.kernels import describe, name_of
from irad.tape.memory import View, as_address, overlap, owner_of, span
from irad.tape.record import RawLaunch, Recorder, recording
from irad.tape.scalars import TIME, ScalarPlan, TracedBool, TracedScalar, same_value
from irad.tape.tree import Parameters
from irad.tape.values import Value
from irad.tape.where import Line

STATE, RATE, FIRST_PARAMETER = 0, 1, 2

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Traced:
    """A scalar argument that is an expression over ``t`` and ``p``: output ``output`` of the program's plan."""

    node: TracedScalar
    output: int


@dataclass(frozen=True)
class Static:
    """An argument that is the same at every replay."""

    value: Any


Arg = View | Traced | Static


@dataclass
class Launch:
    """One kernel call; ``hidden`` are arrays that the kernel captures; ``written``, ``read``: names of parameters."""

    kernel: Any
    names: tuple[str, ...]
    args: tuple[Arg, ...]
    hidden: dict[str, View]
    written: frozenset[str]
    read: frozenset[str]
    loc: Line | None
    hidden_arrays: dict[str, Array]

    def views(self) -> Iterator[tuple[str, View]]:
        """All arrays of the launch, by parameter name."""
        for name, arg in zip(self.names, self.args, strict=True):
            if isinstance(arg, View):
                yield name, arg
        yield from self.hidden.items()

    @property
    def title(self) -> str:
        return name_of(self.kernel)


@dataclass
class Region:
    """``kind`` is u, du, p, captured or local. ``low`` is the address of byte 0 in the memory of ``owner``."""

    kind: str
    text: str
    owner: Array
    low: int
    high: int
    names: list[str] = field(default_factory=list)
    written: bool = False
    reset: bool = False

    @property
    def size(self) -> int:
        return self.high - self.low

    def touches(self, array: Array) -> bool:
        """Whether the bytes from an array's first to its last element meet the region."""
        low, high = span(array)
        return owner_of(array) is self.owner and self.low < high and low < self.high


@dataclass
class Program:
    """The launches of one way through the function. ``plan`` evaluates all traced scalars of all launches.

    ``overwrites_rate``: whether the launches write the same entries of du at every call and read none of them (None:
    not looked at yet, see ``replay.py``).
    """

    regions: list[Region]
    launches: list[Launch]
    plan: ScalarPlan
    decisions: list[tuple[TracedBool, bool]]
    overwrites_rate: bool | None = None

    @property
    def depends_on_time(self) -> bool:
        """Whether any scalar argument is computed from ``t``."""
        return any(isinstance(a, Traced) and a.node.varies for launch in self.launches for a in launch.args)


@dataclass(frozen=True)
class Function:
    """What is recorded: the function, a packed array of the state's layout, parameters, and the arrays it can name."""

    f: Callable[..., Any]
    u: Array
    p: Parameters
    names: Names


def build(function: Function, t: float) -> Program:
    """Record ``function`` at time ``t``."""
    first, second = _run(function, t), _run(function, t)
    builder = _Builder(function, first, second)
    return builder.program()


def _run(function: Function, t: float) -> Recorder:
    recorder = Recorder(function.p.flat, t)
    u, p = function.u, function.p
    origin = as_address(u)
    handles: list[Any] = []
    for i, (array, scalar, text) in enumerate(zip(p.arrays, p.scalar, p.texts, strict=True)):
        if scalar:
            handles.append(TracedScalar.of_leaf(("p", i, 0), text))
        else:
            where = as_address(array)
            handles.append(ArrayHandle(array, where, FIRST_PARAMETER + i, text, i))
    with read_only(function.names.all()), recording(recorder):
        try:
            result = function.f(
                ArrayHandle(u, origin, RATE, "du"),
                ArrayHandle(u, origin, STATE, "u"),
                p.structure(handles),
                TracedScalar.of_leaf(TIME, "t"),
            )
        except ValueError as error:
            if "read-only" in str(error):
                raise NotDifferentiableError(
                    f"the right-hand side writes to a captured array outside a kernel ({error})",
                    loc=_line_of(error, function.f),
                    remedy="write to it in a kernel, or compute it before the solve",
                ) from error
            raise
    if result is not None:
        raise IradError(
            "the right-hand side f(du, u, p, t) returns a value, which would be lost",
            loc=_code_line(function.f),
            remedy="write the rate of change into du with a kernel and return nothing",
        )
    return recorder


def _line_of(error: BaseException, f: Any) -> Line | None:
    trace = error.__traceback__
    line = _code_line(f)
    while trace is not None:
        if line is not None and trace.tb_frame.f_code.co_filename == line.file:
            line = Line(line.file, trace.tb_lineno)
        trace = trace.tb_next
    return line


def _code_line(f: Any) -> Line | None:
    code = getattr(f, "__code__", None)
    return None if code is None else Line(code.co_filename, code.co_firstlineno)


class _Builder:
    def __init__(self, function: Function, first: Recorder, second: Recorder) -> None:
        self.function, self.first, self.second = function, first, second
        self.regions: list[Region] = [self._packed("u", "u", function.u), self._packed("du", "du", function.u)]
        for array, text in zip(function.p.arrays, function.p.texts, strict=True):
            self.regions.append(self._packed("p", text, array))
        self._region: dict[int, int] = {}  # owner -> region
        self._pairs: dict[int, int] = {}  # local owner of the first run -> of the second
        self._memo: dict[tuple[int, int], bool] = {}
        self._outputs: list[TracedScalar] = []

    @staticmethod
    def _packed(kind: str, text: str, array: Array) -> Region:
        return Region(kind, text, array, 0, array.nbytes)

    def program(self) -> Program:
        one, two = self.first.launches, self.second.launches
        if len(one) != len(two) or any(a.kernel is not b.kernel for a, b in zip(one, two, strict=True)):
            self._differs(one[0].loc if one else None, "the launches")
        for raw in one:
            if any(isinstance(a, Value) for a in raw.args):
                raise IradError(
                    f"{raw.title} is launched on a traced value that the right-hand side captures",
                    loc=raw.loc,
                    remedy="pass what is differentiated through p (prob.remake(p=...)), or use irad.adjoint(wrt=...)",
                )
        described = [describe(raw.kernel, [_sample(a) for a in raw.args]) for raw in one]
        arrays = []  # every NumPy array first, so that regions know their spans before views are made
        for a, b, d in zip(one, two, described, strict=True):
            for x, y in zip(a.args, b.args, strict=True):
                if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
                    arrays.append((a, x, y))
            arrays += [(a, x, x) for x in d.hidden.values()]
        for raw, x, y in arrays:
            self._place(raw, x, y)
        launches = []
        for a, b, d in zip(one, two, described, strict=True):
            if len(a.args) != len(d.names) or len(b.args) != len(d.names):
                raise IradError(f"{a.title} takes {len(d.names)} arguments, {len(a.args)} were given", loc=a.loc)
            args = tuple(self._argument(a, n, x, y) for n, x, y in zip(d.names, a.args, b.args, strict=True))
            hidden = {name: self._view(array) for name, array in d.hidden.items()}
            launches.append(Launch(a.kernel, d.names, args, hidden, d.written, d.read, a.loc, dict(d.hidden)))
        self._check_writes(launches)
        return Program(self.regions, launches, ScalarPlan(self._outputs), list(self.first.decisions))

    def _place(self, raw: RawLaunch, x: Array, y: Array) -> None:
        """Find or widen the region of an array; ``x`` and ``y`` are the two runs' arguments."""
        owner, other = owner_of(x), owner_of(y)
        low, high = span(x)
        same = owner is other and low == span(y)[0]
        if not same and (owner is other or self._pairs.setdefault(id(owner), id(other)) != id(other)):
            self._differs(raw.loc, "an array argument")
        if id(owner) not in self._region:
            self._region[id(owner)] = len(self.regions)
            self.regions.append(Region("captured" if same else "local", "", owner, low, high))
        region = self.regions[self._region[id(owner)]]
        region.low, region.high = min(region.low, low), max(region.high, high)
        for name in self.function.names.of(x):
            if name not in region.names:
                region.names.append(name)
        region.text = region.text or next(iter(region.names), f"an array of shape {x.shape}")

    def _argument(self, raw: RawLaunch, name: str, x: Any, y: Any) -> Arg:
        if isinstance(x, ArrayHandle) and isinstance(y, ArrayHandle) and x.view == y.view:
            return x.view
        if isinstance(x, TracedScalar) and isinstance(y, TracedScalar) and same_value(x, y, self._memo):
            self._outputs.append(x)
            return Traced(x, len(self._outputs) - 1)
        if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
            if x.shape == y.shape and x.strides == y.strides and x.dtype == y.dtype:
                return self._view(x)
        elif x is y or (type(x) is type(y) and np.isscalar(x) and (x == y or (x != x and y != y))):
            if isinstance(x, (ArrayHandle, TracedBool)):
                self._differs(raw.loc, f"the argument '{name}' of {raw.title}")
            return Static(x)
        self._differs(raw.loc, f"the argument '{name}' of {raw.title}")

    def _view(self, array: Array) -> View:
        number = self._region[id(owner_of(array))]
        low = as_address(array)
        offset = low - self.regions[number].low if array.size else 0
        return View(number, offset, array.shape, array.strides, array.dtype)

    def _check_writes(self, launches: Sequence[Launch]) -> None:
        for launch in launches:
            for name, view in launch.views():
                region = self.regions[view.region]
                if name in launch.written:
                    region.written = True
                    if view.region != RATE and view.region < FIRST_PARAMETER + len(self.function.p):
                        raise IradError(
                            f"{launch.title} writes '{name}', which is {region.text}: a right-hand side may write "
                            "du and scratch arrays only",
                            loc=launch.loc,
                            remedy="write to du, or to a captured scratch array",
                        )
        if not self.regions[RATE].written:
            raise NotDifferentiableError(
                "the right-hand side launches no kernel that writes du", loc=_code_line(self.function.f)
            )
        for number, region in enumerate(self.regions):
            if region.kind in ("captured", "local"):
                self._check_order(number, region, launches)

    def _check_order(self, number: int, region: Region, launches: Sequence[Launch]) -> None:
        """Scratch must be written before it is read; a local array must be scratch."""
        written: list[View] = []
        early: list[tuple[Launch, str, View]] = []
        for launch in launches:
            mine = [(n, v) for n, v in launch.views() if v.region == number]
            for name, view in mine:
                if name in launch.read - launch.written and not any(overlap(view, w) for w in written):
                    early.append((launch, name, view))
            for name, view in mine:
                if name in launch.written:
                    written.append(view)
                    for reader, read_as, read in early:
                        if region.kind == "captured" and overlap(read, view):
                            raise IradError(
                                f"{reader.title} reads '{read_as}' ({region.text}) before {launch.title} "
                                f"({launch.loc}) writes it: what it reads was left by an earlier call of the "
                                "right-hand side, so that the rate would depend on more than u, p and t",
                                loc=reader.loc,
                                remedy="write the scratch array before it is read, or make it part of the state",
                            )
        if early and region.kind == "local":
            reader, name, _ = early[0]
            raise NotDifferentiableError(
                f"the argument '{name}' of {reader.title} is neither a handle, nor an array that the right-hand "
                "side captures, nor scratch that was written earlier in the same call",
                loc=reader.loc,
                remedy="compute it before the solve, or in a kernel",
            )

    def _differs(self, loc: Line | None, what: str) -> NoReturn:
        raise NotDifferentiableError(
            f"{what} differ from one call of the right-hand side to the next at the same u, p and t",
            loc=loc,
            remedy="make the right-hand side a function of u, p, t and of captured values that stay",
        )


def _sample(value: Any) -> Any:
    """A stand-in of the same type, for decisions about types only."""
    if isinstance(value, ArrayHandle):
        return value.proto
    return 1.0 if isinstance(value, TracedScalar) else value
