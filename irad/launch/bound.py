"""Bound launches: everything decided, ready to be repeated.

A :class:`Bound` holds a filled block, the tiles of its sweeps and the arrays. Calling it checks that the arrays still
lie where they lay and runs the sweeps: some tens of nanoseconds beside the work. :func:`chain` joins bound launches to
one that runs them in order within one call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from irad.errors import IradError
from irad.launch import abi, threads
from irad.launch.arrays import Array, data_address
from irad.launch.block import scalar_word
from irad.launch.executable import PARALLEL_NS, RELEASE_NS, Executable, Plan
from irad.launch.native import native
from irad.launch.tables import Bound as BoundTable
from irad.launch.tables import Launch, Words, address, words


class BoundLaunch:
    """One launch with everything decided: its tables, and what they point at kept alive."""

    def __init__(
        self, executable: Executable, block: Words, plan: Plan, arrays: Mapping[str, Array], scalars: Mapping[str, str]
    ) -> None:
        layout = executable.layout
        if plan.failed:
            raise ValueError(f"a launch whose checks {plan.failed} failed cannot be bound")
        if block.shape != (layout.size,) or not block.flags.c_contiguous:
            raise ValueError(f"the block must be a contiguous array of {layout.size} words")
        self.executable = executable
        self.block = block
        self.work = plan.work
        self.arrays = dict(arrays)
        self.scalars = dict(scalars)
        self.watched: list[tuple[str, Array, int, int]] = []
        for name, array in arrays.items():
            if f"{name}.data" in layout and array.ndim:
                extents = f"{name.removesuffix(chr(39))}.n0"
                at = layout.at(extents) if extents in layout and "@" not in name else -1
                self.watched.append((name, array, layout.at(f"{name}.data"), at))
        self._bodies = words(executable.bodies)
        self._tiles = words(plan.tiles)
        self._watched = words([[id(a), data, extents, a.ndim] for _, a, data, extents in self.watched])
        self.table = words([0] * len(Launch))
        self.table[Launch.BLOCK] = address(block)
        self.table[Launch.PARALLEL] = plan.work >= PARALLEL_NS
        self.table[Launch.SWEEPS] = executable.sweeps
        self.table[Launch.BODIES] = address(self._bodies)
        self.table[Launch.TILES] = address(self._tiles)
        self.table[Launch.ARRAYS] = len(self.watched)
        self.table[Launch.WATCHED] = address(self._watched)

    def moved(self) -> str | None:
        """Name of an array that is not where it was when the launch was bound."""
        for name, array, data, extents in self.watched:
            if data_address(array) != self.block[data]:
                return name
            if extents >= 0 and tuple(self.block[extents : extents + array.ndim]) != array.shape:
                return name
        return None


class Bound(abi.Holder):
    """A launch bound to its arrays; call it without arguments. ``f = bound.__call__`` is the fastest way to repeat it.

    It keeps the arrays alive. An array that ``ndarray.resize`` has moved or resized since makes the call raise
    ``IradError`` before anything is written.
    """

    __slots__ = ()
    if TYPE_CHECKING:

        def __call__(self) -> None:
            """Run the launch."""

    def __init__(self, launches: Sequence[BoundLaunch], *, release: bool | None = None) -> None:
        _install()
        self.launches = tuple(launches)
        self.work = sum(launch.work for launch in launches)
        free = self.work >= RELEASE_NS if release is None else release
        self._words = words([0] * BoundTable.LAUNCHES + [address(launch.table) for launch in launches])
        self._words[BoundTable.MOVED] = id(_moved)
        self._words[BoundTable.RELEASE] = free
        self._words[BoundTable.POOL] = threads.pool_address()
        self._words[BoundTable.PARALLEL] = any(launch.table[Launch.PARALLEL] for launch in launches)
        self._words[BoundTable.COUNT] = len(launches)
        self._table = address(self._words)

    @property
    def block(self) -> Words:
        """The block of a single launch."""
        return self._single().block

    def set(self, name: str, value: float) -> None:
        """Give the float scalar ``name`` a new value for all later calls.

        Integers shape the launch itself and need a new ``bind``: ``TypeError``.
        """
        launch = self._single()
        type = launch.scalars.get(name)
        if type not in ("double", "float"):
            floats = sorted(n for n, t in launch.scalars.items() if t in ("double", "float"))
            raise TypeError(f"{name!r} is no float scalar of this launch (they are {floats}): bind again instead")
        launch.block[launch.executable.layout.at(name)] = scalar_word(type, value)

    def _single(self) -> BoundLaunch:
        if len(self.launches) != 1:
            raise TypeError(f"a chain of {len(self.launches)} launches has no block of its own: use its parts")
        return self.launches[0]

    def python_call(self) -> None:
        """The same without compiled code that looks into objects; ``bound()`` where the structs are unknown."""
        if any(launch.moved() for launch in self.launches):
            _moved(self)
        run = ctypes.CFUNCTYPE if self._words[BoundTable.RELEASE] else ctypes.PYFUNCTYPE
        n = threads.num_threads() if self._words[BoundTable.PARALLEL] else 1
        run(None, ctypes.c_void_p, ctypes.c_int64)(native().address("run_launches"))(self._table, n)


def _moved(bound: Bound) -> None:
    """What compiled code calls when an array is not where it was."""
    names = [name for name in (launch.moved() for launch in bound.launches) if name]
    raise IradError(
        f"array {names[0] if names else '?'!r} has been resized or its memory replaced since the launch was bound",
        remedy="bind the launch again, after ndarray.resize",
    )


def bind(
    executable: Executable,
    block: Words,
    plan: Plan,
    arrays: Mapping[str, Array],
    scalars: Mapping[str, str] | None = None,
    *,
    release: bool | None = None,
) -> Bound:
    """Bind a launch to a filled block.

    ``plan``: what ``executable.plan(block)`` returned, without failures. ``arrays``: every array whose address stands
    in the block, by the prefix of its words; they are kept alive and watched. ``scalars``: LLVM types of the scalars.
    ``release``: whether to release the GIL (default: from 100 µs of estimated work).
    """
    return Bound([BoundLaunch(executable, block, plan, arrays, scalars or {})], release=release)


def chain(bounds: Iterable[Bound], *, release: bool | None = None) -> Bound:
    """One bound launch that runs ``bounds`` in order. It shares their blocks: ``part.set`` acts on it as well."""
    return Bound([launch for bound in bounds for launch in bound.launches], release=release)


def _install() -> None:
    """Make :class:`Bound` callable, by compiled code where the structs are as expected."""
    if "__call__" not in Bound.__dict__:
        call: Any = Bound.python_call
        if abi.PROBLEM is None:
            abi.immortal(_moved)
            call = abi.method(Bound, "__call__", native().address("bound"), abi.METH_NOARGS, "Run the launch.")
        type.__setattr__(Bound, "__call__", call)
