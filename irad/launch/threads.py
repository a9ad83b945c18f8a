"""The threads of this process: how many, and what becomes of them in a forked child.

Compiled code (``ir_region.py``) runs the regions; this module owns the table that it reads. The number of threads is,
in this order: :func:`set_num_threads`, ``IRAD_NUM_THREADS``, ``numba.set_num_threads`` (once Numba's threading layer is
up; asking earlier would start it), ``NUMBA_NUM_THREADS``, the cores that this process may use.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from irad.config import CONFIG
from irad.launch.abi import immortal
from irad.launch.native import native
from irad.launch.tables import MOST_WORKERS, WORKER_WORDS, Pool

SPIN_TURNS = 2000
"""Turns (about 50 ns each) that an idle worker looks for work before it sleeps."""

_SIZE = Pool.WORKERS + WORKER_WORDS * MOST_WORKERS
_memory = immortal((ctypes.c_int64 * (_SIZE + 8))())
_base = -(-ctypes.addressof(_memory) // 64) * 64  # on a cache line
_pool = (ctypes.c_int64 * _SIZE).from_address(_base)


def pool_address() -> int:
    """Where the pool's table lies; the first call sets it up."""
    if not _pool[Pool.IDLE]:
        _set_up()
    return _base


def _set_up() -> None:
    allocate = ctypes.pythonapi.PyThread_allocate_lock
    allocate.restype = ctypes.c_void_p
    idle = allocate()
    if not idle:
        raise MemoryError("no lock for irad's threads")
    ctypes.pythonapi.PyThread_acquire_lock(ctypes.c_void_p(idle), 1)
    _pool[Pool.SPIN] = SPIN_TURNS
    _pool[Pool.DEFAULT] = _default_threads()
    _pool[Pool.OVERRIDE] = CONFIG.num_threads or 0
    _pool[Pool.HOOK] = id(immortal(_ask_numba))
    _wait_for(sys.modules, "numba.np.ufunc.parallel")
    _ask_numba()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)
    _pool[Pool.IDLE] = idle


def _default_threads() -> int:
    text = os.environ.get("NUMBA_NUM_THREADS", "")
    if text.isdecimal() and int(text) > 0:
        return int(text)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _wait_for(dictionary: dict[str, Any], key: str) -> None:
    """Let compiled code call :func:`_ask_numba` once ``dictionary[key]`` is there and not False."""
    _pool[Pool.HOOK_DICT] = 0
    _pool[Pool.HOOK_KEY] = id(immortal(key))
    _pool[Pool.HOOK_DICT] = id(immortal(dictionary))


def _ask_numba() -> None:
    """Find Numba's own number of threads, as far as Numba is up, or wait for its next stage."""
    module = sys.modules.get("numba.np.ufunc.parallel")
    if module is None:
        return
    if not getattr(module, "_is_initialized", False):
        _wait_for(vars(module), "_is_initialized")
        return
    _pool[Pool.HOOK_DICT] = 0
    function = getattr(module, "_get_num_threads", None)
    if function is not None:
        _pool[Pool.NUMBA] = ctypes.cast(immortal(function), ctypes.c_void_p).value or 0


def _after_fork() -> None:
    """A forked child has no thread but one; workers start anew at need."""
    _pool[Pool.STARTED] = _pool[Pool.BUSY] = _pool[Pool.STATE] = _pool[Pool.NEXT] = 0
    ctypes.memset(_base + 8 * Pool.WORKERS, 0, 8 * (_SIZE - Pool.WORKERS))


def num_threads() -> int:
    """The number of threads that a large launch from this Python thread uses."""
    pool = pool_address()
    wanted = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(native().address("threads_wanted"))
    return int(wanted(pool))


def set_num_threads(n: int | None) -> None:
    """Use up to ``n`` threads from now on, also more than there are cores; ``None``: as if never called."""
    if n is not None and not 1 <= n <= MOST_WORKERS + 1:
        raise ValueError(f"the number of threads must lie between 1 and {MOST_WORKERS + 1}, not {n}")
    pool_address()
    _pool[Pool.OVERRIDE] = (CONFIG.num_threads or 0) if n is None else n


@contextmanager
def using_threads(n: int) -> Iterator[None]:
    """Up to ``n`` threads within a ``with`` block, for the whole process."""
    pool_address()
    before = _pool[Pool.OVERRIDE]
    set_num_threads(n)
    try:
        yield
    finally:
        _pool[Pool.OVERRIDE] = before


def describe() -> str:
    """One line on threads, for people."""
    n = num_threads()
    return f"up to {n} thread{'s' if n > 1 else ''} a launch, {_pool[Pool.STARTED]} workers started so far"
