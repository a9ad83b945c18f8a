"""The tables of 64-bit words by which Python tells compiled code what to do: one enumeration a table.

Compiled code holds no address; it finds everything here. Words are the only type, so a table is an ``int64`` array.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]


class Head(IntEnum):
    """What a launchable object's ``_table`` points at."""

    SLOW = 0  # Python callable that gets the original arguments
    SPEC = 1  # the first Spec to try (0: none)
    RECORDING = 2  # address of a word: not 0 while launches are recorded, which is done in Python
    POOL = 3


class Spec(IntEnum):
    """One compiled variant of a kernel, and the arguments it takes."""

    NEXT = 0  # the Spec to try when this one does not fit (0: none)
    NARGS = 1
    ARGS = 2  # address of NARGS descriptors (Arg)
    BLOCK = 3  # words of its block
    OUT = 4  # words that its plan puts out
    PLAN = 5
    SWEEPS = 6  # number of sweeps
    BODIES = 7  # address of their addresses
    PARALLEL = 8  # nanoseconds of work from which threads are used
    RELEASE = 9  # nanoseconds of work from which the GIL is released
    CAPTURES = 10  # number of arguments that are not given but found
    FOUND = 11  # address of their Place entries
    CONSTANTS = 12  # number of things that must still be what was compiled in
    EXPECTED = 13  # address of their Place entries


class Arg(IntEnum):
    """How one argument must look."""

    KIND = 0
    TYPE = 1  # the exact Python type
    OTHER = 2  # another exact type that will do (0: none)
    ORDER = 3  # arrays: the dtype's word
    RANK = 4
    FLAGS = 5  # flags that must be set
    ITEM = 6  # bytes of an element
    UNIT = 7  # bit d: stride d must be ITEM, unless no two elements differ in it
    APART = 8  # bit d: stride d must not be ITEM, and elements must differ in it: else a better variant fits
    WRITTEN = 9  # 1: the kernel writes it


class Place(IntEnum):
    """Where a captured object is found."""

    HOLDER = 0  # a dict, or a closure cell
    KEY = 1  # the key in the dict (0: it is a cell)
    VALUE = 2  # constants: the object that must be there


class Kind(IntEnum):
    """How an argument becomes words of the block."""

    ARRAY = 0
    DOUBLE = 1
    FLOAT = 2
    INT = 3
    BOOL = 4


class Bound(IntEnum):
    """What a bound launch's ``_table`` points at; from LAUNCHES on, the addresses of COUNT Launch tables."""

    MOVED = 0  # Python callable for the case that an array is not where it was
    RELEASE = 1  # 1: release the GIL
    POOL = 2
    PARALLEL = 3  # 1: one of the launches uses threads
    COUNT = 4
    LAUNCHES = 5


class Launch(IntEnum):
    """One launch with everything decided."""

    BLOCK = 0
    PARALLEL = 1  # 1: use threads
    SWEEPS = 2
    BODIES = 3  # address of the sweeps' addresses
    TILES = 4  # address of their numbers of tiles
    ARRAYS = 5  # number of arrays to look after
    WATCHED = 6  # address of their Watched entries


class Watched(IntEnum):
    """An array whose memory must still be where it was when the launch was bound."""

    OBJECT = 0
    DATA = 1  # word of the block with its address
    EXTENTS = 2  # word of the block with its first extent (-1: none)
    RANK = 3


class Pool(IntEnum):
    """The threads of this process, and the region that they work on.

    Words that different threads write stand on cache lines of their own.
    """

    OVERRIDE = 0  # number of threads that irad was told to use (0: not told)
    DEFAULT = 1  # number of threads if nobody says anything
    NUMBA = 2  # C function that returns Numba's number of threads for the calling thread (0: Numba's layer is not up)
    HOOK_DICT = 3  # a Python dict (0: nothing to wait for) ...
    HOOK_KEY = 4  # ... and a key: once it maps to something true,
    HOOK = 5  # this Python callable wants to be called
    IDLE = 6  # a lock that nobody releases
    SPIN = 7  # turns that a worker looks for work before it sleeps
    STARTED = 8  # workers that exist
    BODY = 9  # the job: body, block, number of tiles, floating-point mode, most workers beside the caller
    BLOCK = 10
    TILES = 11
    MODE = 12
    LIMIT = 13
    BUSY = 16  # 1: somebody's region is running
    STATE = 24  # epoch << 32 | open << 31 | workers inside
    WAKE = 32  # counts regions
    NEXT = 40  # the next tile
    WORKERS = 48  # first Worker


class Worker(IntEnum):
    """One worker of the pool, on a cache line of its own."""

    ASLEEP = 0  # 1: it waits for its lock
    LOCK = 1
    POOL = 2
    SEEN = 3  # WAKE at its start


WORKER_WORDS = 8
MOST_WORKERS = 255


def words(values: object) -> Words:
    """An array of words."""
    return np.array(values, dtype=np.int64)


def address(table: Words) -> int:
    """Where a table lies."""
    return int(table.ctypes.data)
