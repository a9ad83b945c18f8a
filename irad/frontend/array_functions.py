"""NumPy's functions of whole arrays, for loop kernels, where Numba's own are no code that can be differentiated.

Numba reduces through iterators, broadcasts through lists, and multiplies matrices through BLAS. Here they are nests of
loops over all entries, in the order of the indices: a nest for each rank, written from one template.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import overload, register_jitable
from numba.np import arraymath

from irad.frontend.numba_private import types
from irad.frontend.numba_target import TARGET


@functools.cache
def _compiled(source: str, **names: Any) -> Callable[..., Any]:
    """The function ``impl`` of a source text that uses ``names``."""
    space: dict[str, Any] = {"np": np, **names}
    exec(compile(source, "<irad>", "exec"), space)
    result: Callable[..., Any] = space["impl"]
    return result


def _nest(rank: int, array: str) -> tuple[str, str, str]:
    """Loops over an array: their lines, the indentation within, and the index."""
    lines = "".join(f"{'    ' * (d + 1)}for i{d} in range({array}.shape[{d}]):\n" for d in range(rank))
    return lines, "    " * (rank + 1), ", ".join(f"i{d}" for d in range(rank))


def _is_array(ty: Any) -> bool:
    """Of real numbers, and with entries to go through."""
    return isinstance(ty, types.Array) and ty.ndim > 0 and _is_real(ty.dtype)


def _is_real(ty: Any) -> bool:
    return isinstance(ty, (types.Float, types.Integer, types.Boolean))


def _dtype(ty: Any) -> np.dtype[Any]:
    """NumPy's dtype of an array or a scalar."""
    return np.dtype(str(types.unliteral(ty.dtype if isinstance(ty, types.Array) else ty)))


@register_jitable  # type: ignore[untyped-decorator]
def _broadcast(n, m):  # type: ignore[no-untyped-def]
    if n == m or m == 1:
        return n
    if n == 1:
        return m
    raise ValueError("shape mismatch: objects cannot be broadcast to a single shape")


@overload(np.where, target=TARGET)
def _where(condition, x, y):  # type: ignore[no-untyped-def]
    operands = {"condition": condition, "x": x, "y": y}
    arrays = {name: ty for name, ty in operands.items() if _is_array(ty)}
    if not all(_is_array(ty) or _is_real(ty) for ty in operands.values()):
        return None
    if not arrays:
        return _compiled("def impl(condition, x, y):\n    return x if condition else y\n")
    rank = max(ty.ndim for ty in arrays.values())
    shape = ["1"] * rank
    entries = {}
    for name, ty in operands.items():
        axes = range(rank - ty.ndim, rank) if name in arrays else range(0)
        for d, axis in enumerate(axes):
            shape[axis] = f"broadcast({shape[axis]}, {name}.shape[{d}])"
        index = [f"i{axis} if {name}.shape[{d}] > 1 else 0" for d, axis in enumerate(axes)]
        entries[name] = f"{name}[{', '.join(index)}]" if index else name
    loops, within, place = _nest(rank, "out")
    source = (
        "def impl(condition, x, y):\n"
        f"    out = np.empty(({', '.join(shape)},), dtype)\n{loops}"
        f"{within}out[{place}] = {entries['x']} if {entries['condition']} else {entries['y']}\n    return out\n"
    )
    return _compiled(source, broadcast=_broadcast, dtype=_result_dtype(x, y))


def _result_dtype(x: Any, y: Any) -> np.dtype[Any]:
    """What NumPy makes of two operands: a scalar takes the precision of an array of floats."""
    for array, other in ((x, y), (y, x)):
        if _is_array(array) and isinstance(array.dtype, types.Float) and not _is_array(other):
            return _dtype(array)
    return np.result_type(_dtype(x), _dtype(y))


def _reduction(body: str, before: str, after: str = "return total", parameters: str = "a") -> Callable[..., Any]:
    """The overload of a reduction to one number: lines ``before`` the loops, ``body`` for an entry ``v``, and
    ``after``. They may use ``zero`` and ``one`` of the type in which NumPy adds."""

    def overloaded(a: Any) -> Any:
        if not _is_array(a):
            return None
        loops, within, index = _nest(a.ndim, "a")
        lines = "".join(f"{within}{line}\n" for line in (f"v = a[{index}]", *body.split("\n")))
        first = "".join(f"    {line}\n" for line in before.replace("FIRST", ", ".join("0" * a.ndim)).split("\n"))
        adds = _dtype(a) if isinstance(a.dtype, types.Float) else np.dtype("int64")
        head = f"def impl({parameters}):\n"
        return _compiled(f"{head}{first}{loops}{lines}    {after}\n", zero=adds.type(0), one=adds.type(1))

    def of_all(a):  # type: ignore[no-untyped-def]
        return overloaded(a)

    def of_axis(a, axis=None, dtype=None):  # type: ignore[no-untyped-def]
        return overloaded(a) if _is_left_out(axis) and _is_left_out(dtype) else None

    return of_all if parameters == "a" else of_axis


def _is_left_out(ty: Any) -> bool:
    return ty is None or isinstance(ty, types.NoneType) or (isinstance(ty, types.Omitted) and ty.value is None)


_EMPTY = 'if a.size == 0:\n    raise ValueError("zero-size array to reduction operation which has no identity")\n'

_REDUCTIONS = {
    "sum": _reduction("total += v", "total = zero", parameters="a, axis=None, dtype=None"),
    "prod": _reduction("total *= v", "total = one"),
    "mean": _reduction("total += v", "total = zero", "return total / a.size"),
    "max": _reduction("if v > total or v != v:\n    total = v", _EMPTY + "total = a[FIRST]"),
    "min": _reduction("if v < total or v != v:\n    total = v", _EMPTY + "total = a[FIRST]"),
    "any": _reduction("if v:\n    total = True", "total = False"),
    "all": _reduction("if not v:\n    total = False", "total = True"),
}

_METHODS = {
    "sum": "array_sum",
    "prod": "array_prod",
    "mean": "array_mean",
    "max": "npy_max",
    "min": "npy_min",
    "any": "np_any",
    "all": "np_all",
}
"""Numba's names of the functions behind methods of arrays: attributes are not looked up by target, functions are."""

for _name, _overloaded in _REDUCTIONS.items():
    for _function in {getattr(np, _name), getattr(np, f"a{_name}", getattr(np, _name))}:
        overload(_function, target=TARGET)(_overloaded)
    overload(getattr(arraymath, _METHODS[_name]), target=TARGET)(_overloaded)


_PRODUCTS = {
    (1, 1): "    out = zero\n"
    "    for k in range(a.shape[0]):\n"
    "        out += a[k] * b[k]\n",
    (2, 1): "    out = np.zeros(a.shape[0], dtype)\n"
    "    for i in range(a.shape[0]):\n"
    "        for k in range(a.shape[1]):\n"
    "            out[i] += a[i, k] * b[k]\n",
    (1, 2): "    out = np.zeros(b.shape[1], dtype)\n"
    "    for j in range(b.shape[1]):\n"
    "        for k in range(a.shape[0]):\n"
    "            out[j] += a[k] * b[k, j]\n",
    (2, 2): "    out = np.zeros((a.shape[0], b.shape[1]), dtype)\n"
    "    for i in range(a.shape[0]):\n"
    "        for j in range(b.shape[1]):\n"
    "            for k in range(a.shape[1]):\n"
    "                out[i, j] += a[i, k] * b[k, j]\n",
}  # fmt: skip


def _product(a, b):  # type: ignore[no-untyped-def]
    """The matrix product."""
    if not (_is_array(a) and _is_array(b) and (a.ndim, b.ndim) in _PRODUCTS):
        return None
    dtype = np.result_type(_dtype(a), _dtype(b))
    check = (
        f"    if a.shape[{a.ndim - 1}] != b.shape[0]:\n"
        '        raise ValueError("incompatible array sizes for a matrix product")\n'
    )
    source = f"def impl(a, b):\n{check}{_PRODUCTS[a.ndim, b.ndim]}    return out\n"
    return _compiled(source, dtype=dtype, zero=dtype.type(0))


for _function in (np.dot, operator.matmul):
    overload(_function, target=TARGET)(_product)
