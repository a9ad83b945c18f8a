"""Addresses of the functions outside compiled code: the C math library, memory routines, Python's C API.

Compiled code may call what stands here and nothing else. Everything is bound by address once, in one JIT library that
all others link against, so that a missing function is an error when code is loaded and never a call to nowhere.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
from functools import lru_cache

# double, and with an f appended float
_MATH = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim floor "
    "fma fmax fmin fmod frexp hypot ldexp lgamma log log10 log1p log2 lrint llrint lround llround modf nearbyint "
    "nextafter pow remainder rint round roundeven scalbn sin sincos sinh sqrt tan tanh tgamma trunc"
)
_MEMORY = "memcpy memmove memset memcmp malloc realloc free"
_COMPILER = "__powidf2 __powisf2 __divti3 __modti3 __udivti3 __umodti3 __multi3 __extendhfsf2 __truncsfhf2 __truncdfhf2"
_PYTHON = (
    "PyCell_Get PyDict_GetItem PyDict_New PyDict_SetItem PyErr_Clear PyErr_Occurred PyEval_RestoreThread "
    "PyEval_SaveThread PyFloat_AsDouble PyLong_AsLongLong PyLong_AsVoidPtr PyObject_VectorcallDict "
    "PyThread_acquire_lock PyThread_acquire_lock_timed PyThread_allocate_lock PyThread_release_lock "
    "PyThread_start_new_thread PyTuple_GetItem PyTuple_Size Py_DecRef Py_IncRef _Py_FalseStruct _Py_NoneStruct "
    "_Py_TrueStruct"
)


def _libraries() -> list[ctypes.CDLL]:
    """Where to look, in order. On Windows the process itself offers nothing."""
    names: list[str | None] = [None] if sys.platform != "win32" else ["ucrtbase", "msvcrt"]
    if sys.platform.startswith("linux"):
        names += [ctypes.util.find_library("m") or "libm.so.6", "libgcc_s.so.1"]
    found = []
    for name in names:
        try:
            found.append(ctypes.CDLL(name))
        except OSError:
            continue
    return found


def _address(library: ctypes.CDLL, name: str) -> int | None:
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        return None


@lru_cache(maxsize=1)
def runtime() -> dict[str, int]:
    """Name to address of every function that compiled code may call and that this machine has."""
    libraries = _libraries()
    table: dict[str, int] = {}
    math = _MATH.split()
    for name in (*math, *(f"{n}f" for n in math), *_MEMORY.split(), *_COMPILER.split()):
        for library in libraries:
            address = _address(library, name)
            if address:
                table[name] = address
                break
    for name in _PYTHON.split():
        address = _address(ctypes.pythonapi, name)
        if address:
            table[name] = address
    return table
