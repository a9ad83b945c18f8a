"""Where CPython and NumPy keep the fields that compiled code reads, and how a C function becomes a method.

The offsets follow NumPy's public structs and are compared at import with what NumPy itself says about some arrays. If
they do not agree (:data:`PROBLEM` then says why), no compiled code ever looks into an object: every launch takes the
way through Python, which asks NumPy.
"""

from __future__ import annotations

import ctypes
from typing import Any, TypeVar

import numpy as np

HEAD = object.__basicsize__
"""Bytes of the head of every Python object: reference count and type (more on free-threaded builds)."""

# PyArrayObject_fields: head, char *data, int nd, npy_intp *dimensions, *strides, PyObject *base, *descr, int flags
TYPE = HEAD - 8
DATA = HEAD
NDIM = HEAD + 8
DIMS = HEAD + 16
STRIDES = HEAD + 24
DESCR = HEAD + 40
FLAGS = HEAD + 48
# PyArray_Descr: head, PyTypeObject *typeobj, char kind, type, byteorder, flags, int type_num
ORDER = HEAD + 8
ORDER_MASK = ~(0xFF << 24)
"""Masks the flags out of the word with kind, type, byte order and type number of a dtype. The word is compared instead
of the dtype's identity because unpickled arrays have dtype objects of their own."""

C_CONTIGUOUS, F_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x2, 0x100, 0x400

METH_NOARGS, METH_FASTCALL_KEYWORDS = 0x4, 0x82

T = TypeVar("T")
H = TypeVar("H", bound="Holder")


def immortal(value: T) -> T:
    """Never free ``value``, not even when the interpreter ends: compiled code holds its address."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
    return value


class Holder:
    """An object that compiled code knows: its first field holds the address of its table of words as an int.

    ``__slots__`` puts ``_table`` right behind the head, where compiled code finds it.
    """

    __slots__ = ("__dict__", "__weakref__", "_table")

    _table: int

    def __copy__(self: H) -> H:
        return self

    def __deepcopy__(self: H, memo: object) -> H:
        return self  # like a function: a copy would share a table that it does not own

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError(f"{type(self).__name__} holds addresses of this process and cannot be pickled")


def word_at(address: int) -> int:
    """The signed 64-bit word at an address."""
    return ctypes.c_int64.from_address(address).value


def order_word(dtype: np.dtype[Any]) -> int:
    """Kind, type, byte order and type number of a dtype, as :data:`ORDER` finds them."""
    return word_at(id(dtype) + ORDER) & ORDER_MASK


def _disagreement() -> str | None:
    """What about the structs is not as this module says; ``None`` if all is well."""
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return "pointers are not 64 bits wide"
    if np.ndarray.__basicsize__ < FLAGS + 4:
        return "NumPy's array object is smaller than expected"
    holder = Holder()
    holder._table = 2**40 + 7
    if word_at(id(holder) + HEAD) != id(holder._table):
        return "the first slot of an object is not behind its head"
    readonly = np.zeros(3)
    readonly.flags.writeable = False
    samples: list[np.ndarray[Any, Any]] = [
        np.zeros((3, 4, 5)),
        np.zeros((4, 6), np.float32, order="F")[::2, ::-1],
        np.zeros(7, np.int64)[1:],
        np.zeros((2, 0, 3, 1)),
        np.array(1.0),
        np.zeros(3, ">f8"),
        readonly,
    ]
    for a in samples:
        at = id(a)
        flags = ctypes.c_int32.from_address(at + FLAGS).value
        expected = (
            (a.flags.c_contiguous and C_CONTIGUOUS)
            | (a.flags.f_contiguous and F_CONTIGUOUS)
            | (a.flags.aligned and ALIGNED)
            | (a.flags.writeable and WRITEABLE)
        )
        if (
            word_at(at + TYPE) != id(np.ndarray)
            or word_at(at + DATA) != a.ctypes.data
            or ctypes.c_int32.from_address(at + NDIM).value != a.ndim
            or word_at(at + DESCR) != id(a.dtype)
            or flags & (C_CONTIGUOUS | F_CONTIGUOUS | ALIGNED | WRITEABLE) != expected
        ):
            return "the fields of NumPy's array object are not where they are expected"
        for d in range(a.ndim):
            if (
                word_at(word_at(at + DIMS) + 8 * d) != a.shape[d]
                or word_at(word_at(at + STRIDES) + 8 * d) != a.strides[d]
            ):
                return "NumPy's shapes or strides are not where they are expected"
    for name in ("f8", "f4", "i8", ">f8", "?"):
        dtype = np.dtype(name)
        kind, char, order = (bytes(c, "ascii")[0] for c in (dtype.kind, dtype.char, dtype.byteorder))
        word = order_word(dtype)
        if word & 0xFFFFFF != kind | char << 8 | order << 16 or word >> 32 != dtype.num:
            return "the fields of NumPy's dtype object are not where they are expected"
    return None


PROBLEM: str | None = _disagreement()


def method(cls: type, name: str, address: int, flags: int, doc: str = "") -> Any:
    """A method of ``cls`` that runs the C function at ``address``; assign it to an attribute of the class."""
    new = ctypes.pythonapi.PyDescr_NewMethod
    new.restype, new.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_void_p]
    strings = ctypes.create_string_buffer(name.encode()), ctypes.create_string_buffer(doc.encode())
    definition = (ctypes.c_int64 * 4)(ctypes.addressof(strings[0]), address, flags, ctypes.addressof(strings[1]))
    immortal((strings, definition))
    return new(cls, ctypes.addressof(definition))
