"""Loop kernels on the host: launches that may raise, the run that records, and the walk back.

Decided here: where shadows lie (a record holds addresses in them, so they stay where they are from the run to the last
walk back, with exactly the strides of their arrays), who owns a record (:class:`Record`, freed with it), and what
becomes of a status.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from irad.codegen.cpu import compile_text
from irad.errors import AliasError, NotDifferentiableError
from irad.launch.arrays import Array, data_address, overlaps_itself
from irad.passes.loop_program import OUT_OF_MEMORY, RELEASE

if TYPE_CHECKING:
    from irad.launch.bound import Bound
    from irad.launch.tables import Words
    from irad.launching import Launch, Operands
    from irad.specialise import Specialisation


def check_status(spec: Specialisation, status: int) -> None:
    """Raise what the kernel raised."""
    if status == 0:
        return
    if status == OUT_OF_MEMORY:
        raise MemoryError(
            f"{spec.lowered.loc}: the record that the adjoint of {spec.lowered.name} needs does not fit into memory"
        )
    raise spec.lowered.raises[status].exception()


class LoopBound:
    """A bound launch of a loop kernel: ``bound()`` raises what the kernel raises. See ``irad.launch.bound.Bound``."""

    def __init__(self, spec: Specialisation, bound: Bound) -> None:
        self._spec, self._bound = spec, bound
        self._status = len(bound.launches[0].executable.layout.words)

    def __call__(self) -> None:
        self._bound()
        check_status(self._spec, int(self._bound.block[self._status]))

    @property
    def block(self) -> Words:
        """The words that compiled code is given."""
        return self._bound.block

    @property
    def work(self) -> int:
        """Nanoseconds that the launch is said to take."""
        return self._bound.work

    def set(self, name: str, value: float) -> None:
        """Give the float scalar ``name`` a new value for all later calls."""
        self._bound.set(name, value)


def like(a: Array) -> Array:
    """A new array, all zeros, with the shape, dtype and strides of ``a``."""
    if not a.size:
        empty: Array = np.zeros_like(a, subok=False)
        return empty
    reach = [s * (n - 1) for s, n in zip(a.strides, a.shape, strict=True)]
    before = -sum(min(r, 0) for r in reach)
    size = before + sum(max(r, 0) for r in reach) + a.itemsize
    memory = np.zeros(-(-size // 8), np.float64)
    result: Array = np.ndarray(a.shape, a.dtype, memory, before, a.strides)
    return result


def copied(a: Array) -> Array:
    """A copy with the strides of ``a``. Entries that share a place do so in the copy."""
    result: Array = like(a)
    result[...] = a
    return result


def check_own_places(spec: Specialisation, values: Mapping[str, Any], active: Iterable[str]) -> None:
    """Raise where entries of an array share a place: its shadow could not tell them apart."""
    for name in active:
        if spec.by_name[name].is_array and overlaps_itself(values[name]):
            raise AliasError(
                f"entries of {name} are the same place (strides {values[name].strides}): they have one derivative each",
                loc=spec.lowered.loc,
                remedy=f"{name}.copy()",
            )


class Record:
    """What a run keeps for the walk back; given back when nobody needs it any more."""

    def __init__(self) -> None:
        self.head = np.zeros(8, np.int64)
        _release()  # now, rather than while objects are being dropped
        weakref.finalize(self, _free, self.head).atexit = False

    @property
    def nbytes(self) -> int:
        """Bytes of the record itself, without local arrays."""
        return 8 * int(self.head[1])


def _free(head: Array) -> None:
    _release()(data_address(head))


@functools.cache
def _release() -> Callable[[int], None]:
    address = compile_text(RELEASE).address("irad_tape_free")
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)


class LoopRun:
    """A loop kernel, run once, and its adjoint, as often as wanted.

    ``active``: everything that has a shadow or a cell; must hold what the kernel stores derivatives into. ``shadows``:
    arrays to use as shadows where their strides allow it; all others are made here. :meth:`forward` runs the kernel,
    :meth:`backward` walks back.
    """

    def __init__(
        self,
        spec: Specialisation,
        values: Mapping[str, Any],
        active: frozenset[str],
        shadows: Mapping[str, Array] | None = None,
    ) -> None:
        self.spec, self.values = spec, dict(values)
        check_own_places(spec, values, active)
        given = shadows or {}
        self.shadows: dict[str, Array] = {}
        for name in active:
            if spec.by_name[name].is_array:
                own = given.get(name)
                fits = own is not None and own.strides == values[name].strides
                self.shadows[name] = own if own is not None and fits else like(values[name])
        self.cells = {name: np.zeros(1) for name in active if name not in self.shadows}
        self.record = Record()
        self.active = active
        self.lock = threading.Lock()
        self._forward = self._launch("augmented")
        self.reads = sorted(spec.loop_program("reverse", active).reads)
        self._backward: Launch | None = None

    def _launch(self, mode: str) -> Launch:
        from irad.launching import Operands, prepare
        from irad.specialise import Request

        operands = Operands(self.values, self.shadows, self.cells, saved={".tape": self.record.head})
        return prepare(self.spec, Request(mode, self.active), operands)

    def forward(self) -> None:
        """Run the kernel and record. Raises what the kernel raises; shadows are as they were then."""
        self._forward.run()

    def backward(self) -> None:
        """Walk back: shadows hold seeds and are left with cotangents, what :attr:`cells` hold is added to."""
        if self._backward is None:
            self._backward = self._launch("reverse")
        self._backward.run()

    def keep(self, names: Iterable[str]) -> None:
        """From now on read copies of these arrays: the user may change the originals."""
        self.values.update({n: copied(self.values[n]) for n in names})
        self._backward = None


class LoopTangent:
    """A launch with tangents: they are handed over in arrays of the right strides, and brought back."""

    def __init__(self, spec: Specialisation, operands: Operands) -> None:
        from irad.launching import Operands, prepare
        from irad.specialise import Request

        names = frozenset((*operands.shadows, *operands.tangents))
        check_own_places(spec, operands.values, names)
        self.pairs: list[tuple[Array, Array, bool]] = []
        own = dict(operands.shadows)
        for name, shadow in operands.shadows.items():
            if shadow.strides != operands.values[name].strides:
                own[name] = like(operands.values[name])
                self.pairs.append((shadow, own[name], name in spec.written))
        operands = Operands(operands.values, own, tangents=operands.tangents)
        self.launch = prepare(spec, Request("tangent", names), operands)
        self.bound: Any = None

    def bind(self) -> Bound:
        """The launch itself: ``bound()`` repeats it."""
        return cast("Bound", self)

    def run(self) -> None:
        """Run it once."""
        for given, own, _ in self.pairs:
            own[...] = given
        if self.bound is None:
            self.bound = self.launch.bind()
        self.bound()
        for given, own, written in self.pairs:
            if written:
                given[...] = own

    __call__ = run

    def set(self, name: str, value: float) -> None:
        """Give the float scalar ``name`` a new value for all later calls."""
        if self.bound is None:
            self.bound = self.launch.bind()
        self.bound.set(name, value)


def refuse_adjoint_alone(spec: Specialisation) -> None:
    """The adjoint of a loop kernel needs the record of a run."""
    raise NotDifferentiableError(
        f"{spec.lowered.name} is a loop kernel: its adjoint cannot be launched without a run that records",
        loc=spec.lowered.loc,
        remedy="irad.pullback or irad.autodiff; in functions that are recorded (irad.solve, irad.gradient), kernels "
        "that name a launch domain",
    )
