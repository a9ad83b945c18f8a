"""All arithmetic on state vectors: stage recurrences, error norm, interpolation, adjoint recurrences.

Vectors are flat and contiguous, of one data type (float32 or float64); scalars are Python floats, so that a float32
state is computed in float32. Sums add up in double precision, in an order that depends on the length alone. Everything
but a copy and a fill is one pass of compiled code (``vector_code.py``), on threads where that pays; nothing else in
irad.ode does arithmetic on vectors.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from irad.codegen.cpu import Code, compile_text
from irad.launch.bound import Bound, BoundLaunch
from irad.launch.executable import Plan
from irad.ode.vector_code import OPERATIONS, SIZE, TILE, VECTORS, Operation, module

Vector = npt.NDArray[Any]
Tolerance = float | Vector

_BYTES_A_NS = 20  # what one core moves: decides from where on threads are used


@dataclass(frozen=True)
class _Layout:
    """What a bound launch wants to know of a block."""

    size: int

    def at(self, word: str) -> int:
        raise KeyError(word)

    def __contains__(self, word: str) -> bool:
        return False


class _Program:
    """One operation for one data type, as ``launch.bound`` takes it."""

    sweeps = 1

    def __init__(self, code: Code, op: Operation) -> None:
        self.layout = _Layout(op.words)
        self.bodies = (code.address(op.name),)


@functools.cache
def _program(name: str, elem: str) -> _Program:
    """Compiled (or taken from the cache folder) when first used."""
    op = OPERATIONS[name]
    return _Program(compile_text(module(op, elem)), op)


class _Pass:
    """An operation bound to vectors: set ``scalars``, then call ``run``. Does not keep the vectors alive."""

    __slots__ = ("_bound", "partials", "run", "scalars")

    def __init__(self, name: str, vectors: tuple[Vector, ...]) -> None:
        first, op = vectors[0], OPERATIONS[name]
        for v in vectors:
            if v.dtype != first.dtype or v.size != first.size or not v.flags.c_contiguous:
                raise ValueError(
                    f"{name}: vectors of {v.size} {v.dtype} and {first.size} {first.dtype}, or not contiguous"
                )
        program = _program(name, "double" if first.dtype == np.float64 else "float")
        tiles = -(-first.size // TILE)
        block = np.zeros(op.words, np.int64)
        block[SIZE] = first.size
        block[VECTORS : VECTORS + len(vectors)] = [v.ctypes.data for v in vectors]
        self.partials: npt.NDArray[np.float64] | None = None
        if op.total:
            self.partials = np.zeros(tiles)
            block[op.words - 1] = self.partials.ctypes.data
        self.scalars = memoryview(block.data).cast("B").cast("d")[op.scalar :]
        work = first.nbytes * len(vectors) // _BYTES_A_NS
        self._bound = Bound([BoundLaunch(program, block, Plan(work, (tiles,), ()), {}, {})])  # type: ignore[arg-type]
        self.run: Callable[[], None] = self._bound.__call__


class _Passes:
    """Bound operations by the identity of their vectors; those of a vector that dies are dropped with it."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], _Pass] = {}
        self._keys: dict[int, tuple[weakref.ref[Vector], set[tuple[Any, ...]]]] = {}

    def get(self, name: str, *vectors: Vector) -> _Pass:
        key = (name, *map(id, vectors))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _Pass(name, vectors)
            for v in vectors:
                self._of(v).add(key)
        return found

    def _of(self, v: Vector) -> set[tuple[Any, ...]]:
        number = id(v)
        if number not in self._keys:
            self._keys[number] = (weakref.ref(v, lambda _: self._forget(number)), set())
        return self._keys[number][1]

    def _forget(self, number: int) -> None:
        for key in self._keys.pop(number)[1]:
            self._known.pop(key, None)


_passes = _Passes()
_get = _passes.get


class Split:
    """Vectors cut in two at a place: the same pair of views for the same vector, however often it is asked for.

    Operations and launches are bound to array objects; new views at every call would be bound anew every time.
    """

    def __init__(self, place: int) -> None:
        self._place = place
        self._known: dict[int, tuple[Vector, Vector, Vector]] = {}

    def __call__(self, z: Vector) -> tuple[Vector, Vector]:
        known = self._known.get(id(z))
        if known is None:
            known = self._known[id(z)] = (z, z[: self._place], z[self._place :])
        return known[1], known[2]


def copy(out: Vector, x: Vector) -> None:
    np.copyto(out, x)


def fill(out: Vector, value: float) -> None:
    out.fill(value)


def add_scaled(out: Vector, x: Vector, c: float, k: Vector) -> None:
    """``out = x + c k``."""
    p = _get("add_scaled", out, x, k)
    p.scalars[0] = c
    p.run()


def recur(out: Vector, g: Vector, older: Vector, kappa: float, c: float, k: Vector) -> None:
    """``out = g + kappa (g - older) + c k``; ``out`` may be ``older``. Exact for k = 0 and g = older."""
    p = _get("recur", out, g, older, k)
    scalars = p.scalars
    scalars[0] = kappa
    scalars[1] = c
    p.run()


def finish(g: Vector, k: Vector, last: Vector, sigma: float, phi: float) -> None:
    """The end of a step: ``k = phi (last - k)``, the error, and ``g = g + sigma last + k``."""
    p = _get("finish", g, k, last)
    p.scalars[0] = sigma
    p.scalars[1] = phi
    p.run()


def error_norm(e: Vector, u: Vector, v: Vector, rtol: Tolerance, atol: Tolerance) -> float:
    """Root mean square of ``e / (atol + rtol max(|u|, |v|))``; 0 for empty vectors, inf or nan where an entry is."""
    if e.size == 0:
        return 0.0
    many = [t for t in (rtol, atol) if not isinstance(t, float)]
    suffix = "" if not many else "_ra" if len(many) == 2 else "_r" if not isinstance(rtol, float) else "_a"
    p = _get(f"weighted{suffix}", e, u, v, *many)
    for i, t in enumerate(t for t in (rtol, atol) if isinstance(t, float)):
        p.scalars[i] = t
    return math.sqrt(_sum(p) / e.size)


def _sum(p: _Pass) -> float:
    p.run()
    assert p.partials is not None
    return float(np.add.reduce(p.partials))


def norm(x: Vector) -> float:
    """Euclidean length."""
    return math.sqrt(_sum(_get("squares", x)))


def dot(x: Vector, y: Vector) -> float:
    """Sum of products."""
    return _sum(_get("products", x, y))


def finite(x: Vector) -> bool:
    """Whether no entry is infinite or nan."""
    return _sum(_get("nothings", x)) == 0.0


def scale(out: Vector, x: Vector, c: float) -> None:
    """``out = c x`` (``out`` may be ``x``)."""
    p = _get("scale", out, x)
    p.scalars[0] = c
    p.run()


def add(out: Vector, x: Vector) -> None:
    """``out = out + x``."""
    _get("add", out, x).run()


def total(out: Vector, x: Vector, y: Vector) -> None:
    """``out = x + y``."""
    _get("total", out, x, y).run()


def difference(out: Vector, x: Vector, y: Vector) -> None:
    """``out = x - y`` (``out`` may be one of them)."""
    _get("difference", out, x, y).run()


def accumulate(out: Vector, c: float, x: Vector) -> None:
    """``out = out + c x``."""
    p = _get("accumulate", out, x)
    p.scalars[0] = c
    p.run()


def combine(out: Vector, a: float, x: Vector, b: float, y: Vector) -> None:
    """``out = a x + b y`` (``out`` may be one of them)."""
    p = _get("combine", out, x, y)
    p.scalars[0] = a
    p.scalars[1] = b
    p.run()


def hermite_weights(theta: float, h: float) -> tuple[float, float, float, float]:
    """Weights of u_n, f_n, u_{n+1}, f_{n+1} in the cubic through them, at ``t_n + theta h``."""
    rest = 1.0 - theta
    return (
        (1.0 + 2.0 * theta) * rest * rest,
        theta * rest * rest * h,
        theta * theta * (3.0 - 2.0 * theta),
        theta * theta * (theta - 1.0) * h,
    )


def hermite(out: Vector, theta: float, h: float, u0: Vector, f0: Vector, u1: Vector, f1: Vector) -> None:
    """Cubic Hermite interpolation inside a step."""
    p = _get("hermite", out, u0, f0, u1, f1)
    for i, weight in enumerate(hermite_weights(theta, h)):
        p.scalars[i] = weight
    p.run()
