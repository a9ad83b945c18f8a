"""The ordinary call of a kernel: arguments to a launch without a line of Python, or else one Python callable.

A :class:`Launcher` is called like the kernel. It tries its :class:`Spec` s in turn: a compiled variant and how each
argument must look. If one fits, its plan finds nothing wrong and no written array may overlap another, the launch
runs. In every other case, such as a keyword, another dtype, a subclass, a failed check or launches being recorded,
nothing has been written and the ``slow`` callable gets the arguments as they came; it decides exactly, compiles another
variant, or raises.
"""

from __future__ import annotations

import sys
import types as pytypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from irad.launch import abi, threads
from irad.launch.executable import PARALLEL_NS, RELEASE_NS, Executable
from irad.launch.ir_call import MOST_WORDS
from irad.launch.native import native
from irad.launch.tables import Arg, Head, Kind, Place, Words, address, words
from irad.launch.tables import Spec as SpecTable

RECORDING = abi.immortal(words([0]))
"""Not 0: every launch goes through Python; :func:`set_recording` sets it."""

MOST_ARGUMENTS = 255

_SCALARS: dict[str, tuple[Kind, type, type | None]] = {
    "float": (Kind.DOUBLE, float, int),
    "float64": (Kind.DOUBLE, np.float64, None),
    "float32": (Kind.FLOAT, np.float32, None),
    "int": (Kind.INT, int, None),
    "bool": (Kind.BOOL, bool, None),
}


@dataclass(frozen=True)
class ArraySpec:
    """An array argument: exactly a ``numpy.ndarray`` of this dtype (``"float64"``) and rank, aligned, in native byte
    order. ``written``: the kernel writes it, so it must be writeable and overlap nothing. ``unit``: dimensions in which
    neighbours must lie side by side; ``apart``: those in which they must not, so that a better variant gets its
    chance."""

    dtype: str
    rank: int
    written: bool = False
    unit: frozenset[int] = frozenset()
    apart: frozenset[int] = frozenset()


@dataclass(frozen=True)
class ScalarSpec:
    """A scalar argument. ``type``: ``"float"`` (a Python float or int), ``"int"`` (a Python int that fits 64 bits),
    ``"bool"``, ``"float64"`` or ``"float32"`` (NumPy scalars). ``single``: compiled code wants a float instead of a
    double (a Python float in a kernel that computes in float32)."""

    type: str
    single: bool = False


class Slot(Protocol):
    """Where a captured object is found: ``holder`` is a dict, a module or a closure cell (``name`` then only names)."""

    @property
    def holder(self) -> Any: ...

    @property
    def name(self) -> str: ...


class Spec:
    """One compiled variant of a kernel and the arguments it takes, in the order of the block's words.

    ``arguments`` describes those of the call and then the captured ones, which ``captures`` says where to find, anew at
    each call. ``constants``: objects that were compiled in, with their places; the variant fits as long as each place
    still holds that very object. The block must begin with the words of ``arguments``; what follows is the plan's.
    """

    def __init__(
        self,
        executable: Executable,
        arguments: Sequence[ArraySpec | ScalarSpec],
        captures: Sequence[Slot] = (),
        constants: Sequence[tuple[Slot, object]] = (),
    ) -> None:
        self.executable = executable
        self.arguments = tuple(arguments)
        if len(arguments) > MOST_ARGUMENTS or max(executable.layout.size, executable.out_words) > MOST_WORDS:
            raise ValueError("too many arguments or words for the compiled launcher")
        taken = sum(1 + 2 * a.rank if isinstance(a, ArraySpec) else 1 for a in arguments)
        if taken != len(executable.layout.words):
            raise ValueError(f"the arguments fill {taken} words of {len(executable.layout.words)}")
        self._held: list[object] = [*captures, *constants]  # what the words below point at
        self._arguments = words([_descriptor(a) for a in arguments] or [[0] * len(Arg)])
        self._bodies = words(executable.bodies)
        self._captures = self._places([(slot, None) for slot in captures])
        self._constants = self._places(constants)
        self.table = words([0] * len(SpecTable))
        self.table[SpecTable.NARGS] = len(arguments) - len(captures)
        self.table[SpecTable.ARGS] = address(self._arguments)
        self.table[SpecTable.BLOCK] = executable.layout.size
        self.table[SpecTable.OUT] = executable.out_words
        self.table[SpecTable.PLAN] = executable.plan_address
        self.table[SpecTable.SWEEPS] = executable.sweeps
        self.table[SpecTable.BODIES] = address(self._bodies)
        self.table[SpecTable.PARALLEL] = PARALLEL_NS
        self.table[SpecTable.RELEASE] = RELEASE_NS
        self.table[SpecTable.CAPTURES] = len(captures)
        self.table[SpecTable.FOUND] = address(self._captures)
        self.table[SpecTable.CONSTANTS] = len(constants)
        self.table[SpecTable.EXPECTED] = address(self._constants)

    def _places(self, found: Sequence[tuple[Slot, object]]) -> Words:
        rows = []
        for slot, value in found:
            holder = vars(slot.holder) if isinstance(slot.holder, pytypes.ModuleType) else slot.holder
            row = [0] * len(Place)
            if isinstance(holder, dict):
                name = sys.intern(slot.name)
                self._held += [holder, name]
                row[Place.HOLDER], row[Place.KEY] = id(holder), id(name)
            elif isinstance(holder, pytypes.CellType):
                row[Place.HOLDER] = id(holder)
            else:
                raise ValueError(f"nothing can be captured from a {type(holder).__name__}")
            self._held += [holder, value]
            row[Place.VALUE] = id(value)
            rows.append(row)
        return words(rows or [[0] * len(Place)])


def _descriptor(a: ArraySpec | ScalarSpec) -> list[int]:
    words = [0] * len(Arg)
    if isinstance(a, ScalarSpec):
        kind, type, other = _SCALARS[a.type]
        words[Arg.KIND] = Kind.FLOAT if a.single else kind
        words[Arg.TYPE] = id(type)
        words[Arg.OTHER] = id(other) if other is not None else id(type)
        return words
    dtype = np.dtype(a.dtype)
    words[Arg.KIND] = Kind.ARRAY
    words[Arg.TYPE] = words[Arg.OTHER] = id(np.ndarray)
    words[Arg.ORDER] = abi.order_word(dtype)
    words[Arg.RANK] = a.rank
    words[Arg.FLAGS] = abi.ALIGNED | (abi.WRITEABLE if a.written else 0)
    words[Arg.ITEM] = dtype.itemsize
    words[Arg.UNIT] = sum(1 << d for d in a.unit)
    words[Arg.APART] = sum(1 << d for d in a.apart)
    words[Arg.WRITTEN] = a.written
    return words


class Launcher(abi.Holder):
    """Called like a kernel: ``launcher(*args)`` runs the first of ``specs`` that fits, else ``slow(*args, **kwargs)``.

    May be a base class: an instance of a subclass is called by the same compiled code. The result is ``None``, or what
    ``slow`` returns. ``f = launcher.__call__`` saves a third of the cost of a call.
    """

    __slots__ = ()
    if TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            """Launch."""

    def __init__(self, slow: Callable[..., Any], specs: Sequence[Spec] = ()) -> None:
        _install()
        self._slow = slow
        self._kept: dict[Spec, None] = {}  # all specs ever used: another thread may be in the middle of a launch
        self._head: Words = words([0] * len(Head))
        self._head[Head.SLOW] = id(slow)
        self._head[Head.RECORDING] = address(RECORDING)
        self._head[Head.POOL] = threads.pool_address()
        self._table = address(self._head)
        self.set_specs(specs)

    def set_specs(self, specs: Sequence[Spec]) -> None:
        """The variants to try, most frequent first. A Spec belongs to one Launcher at a time."""
        following = 0
        for spec in reversed(specs):
            spec.table[SpecTable.NEXT] = following
            following = address(spec.table)
        self._specs = tuple(specs)
        self._kept.update(dict.fromkeys(specs))
        self._head[Head.SPEC] = following

    @property
    def specs(self) -> tuple[Spec, ...]:
        """The variants in the order in which they are tried."""
        return self._specs

    def python_call(self, *args: Any, **kwargs: Any) -> Any:
        """The call where compiled code may not look into objects."""
        return self._slow(*args, **kwargs)


def set_recording(on: bool) -> None:
    """While ``on``, every launch of every :class:`Launcher`, in all threads, goes through Python."""
    RECORDING[0] = on


def _install() -> None:
    """Make :class:`Launcher` callable, by compiled code where the structs are as expected."""
    if "__call__" not in Launcher.__dict__:
        call: Any = Launcher.python_call
        if abi.PROBLEM is None:
            call = abi.method(Launcher, "__call__", native().address("call"), abi.METH_FASTCALL_KEYWORDS)
        type.__setattr__(Launcher, "__call__", call)
