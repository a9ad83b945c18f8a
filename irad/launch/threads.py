"""The threads of this process: how many, which kind, and what becomes of them in a forked child.

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
from irad.launch.native import native
from irad.launch.tables import MOST_WORKERS, WORKER_WORDS, Pool

SPIN_TURNS = 2000
"""Turns (about 50 ns each) that an idle worker looks for work before it sleeps."""

_SIZE = Pool.WORKERS + WORKER_WORDS * MOST_WORKERS
_memory = (ctypes.c_int64 * (_SIZE + 8))()
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_memory))  # workers read it until the process ends: never freed
_base = -(-ctypes.addressof(_memory) // 64) * 64  # on a cache line
_pool = (ctypes.c_int64 * _SIZE).from_address(_base)
_hook_keys: list[Any] = []
_kind = ""


def pool_address() -> int:
    """Where the pool's table lies; the first call sets it up."""
    if not _kind:
        _set_up("workers")
    return _base


def _set_up(kind: str) -> None:
    """Choose how regions run: ``"workers"`` (our own threads), ``"openmp"`` (libgomp), ``"none"`` (always alone)."""
    global _kind
    if kind == "openmp":
        gomp = _libgomp()
        if gomp:
            _pool[Pool.OPENMP] = gomp
        else:
            kind = "none"
    if not _pool[Pool.IDLE]:
        allocate = ctypes.pythonapi.PyThread_allocate_lock
        allocate.restype = ctypes.c_void_p
        _pool[Pool.IDLE] = allocate() or 0
        ctypes.pythonapi.PyThread_acquire_lock(ctypes.c_void_p(_pool[Pool.IDLE]), 1)
        _pool[Pool.SPIN] = SPIN_TURNS
        _pool[Pool.DEFAULT] = _default_threads()
        _pool[Pool.OVERRIDE] = CONFIG.num_threads or 0
        _pool[Pool.HOOK] = id(_ask_numba)
        _wait_for(sys.modules, "numba.np.ufunc.parallel")
        _ask_numba()
    if not _kind and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)
    run = {"workers": "run_workers", "openmp": "run_openmp"}.get(kind)
    _pool[Pool.RUN] = native().address(run) if run else 0
    _kind = kind


def _default_threads() -> int:
    text = os.environ.get("NUMBA_NUM_THREADS", "")
    if text.isdecimal() and int(text) > 0:
        return int(text)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _libgomp() -> int | None:
    """Address of libgomp's entry, if there is one."""
    try:
        return ctypes.cast(ctypes.CDLL("libgomp.so.1").GOMP_parallel, ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None


def _wait_for(dictionary: dict[str, Any], key: str) -> None:
    """Let compiled code call :func:`_ask_numba` once ``dictionary[key]`` is there and not False."""
    _hook_keys[:] = [dictionary, key]
    _pool[Pool.HOOK_DICT] = 0
    _pool[Pool.HOOK_KEY] = id(key)
    _pool[Pool.HOOK_DICT] = id(dictionary)


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
        _hook_keys[:] = [function]
        _pool[Pool.NUMBA] = ctypes.cast(function, ctypes.c_void_p).value or 0


def _after_fork() -> None:
    """A forked child has no thread but one. Ours start anew at need; libgomp would wait for ever for its own."""
    _pool[Pool.STARTED] = _pool[Pool.BUSY] = _pool[Pool.STATE] = _pool[Pool.NEXT] = 0
    for i in range(Pool.WORKERS, _SIZE):
        _pool[i] = 0
    if _kind == "openmp":
        _pool[Pool.RUN] = 0


def num_threads() -> int:
    """The number of threads that a large launch from this Python thread uses."""
    pool = pool_address()
    wanted = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(native().address("threads_wanted"))
    return int(wanted(pool)) if _pool[Pool.RUN] else 1


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
    kinds = {"workers": "irad's own threads", "openmp": "libgomp", "none": "no threads: libgomp was not found"}
    pool_address()
    return f"{kinds[_kind]}, up to {num_threads()} a launch"
