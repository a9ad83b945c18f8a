"""Checks of a Python function that returns one number: its gradient against forward mode, and Taylor remainders."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import irad
from irad.errors import IradError
from irad.tape.tree import flatten
from irad.testing.report import STEPS, Row, dot_row, slope_row

Array = npt.NDArray[Any]

RTOL = {"float64": 1e-8, "float32": 1e-3}
"""Default tolerances, relative to the sum of the absolute values of all terms: a function may run many kernels."""


class FunctionCheck:
    """Checks of a Python function of arrays and floats that returns one number."""

    def __init__(self, f: Any, args: Sequence[Any], wrt: Any, rtol: float | None, rng: Any) -> None:
        self.f, self.args, self.wrt, self.rng = f, list(args), wrt, rng
        both = irad.value_and_grad(f, wrt=wrt)(*args)
        self.value = float(both[0])
        self.single = wrt is None or isinstance(wrt, (int, str))
        gradients = (both[1],) if self.single else tuple(both[1])
        self.places = [self._place(key) for key in ((0 if wrt is None else wrt,) if self.single else tuple(wrt))]
        self.gradients = dict(zip(self.places, gradients, strict=True))
        leaves = [x for p in self.places for x in flatten(self.args[p])[0]]
        coarse = any(getattr(x, "dtype", None) == np.float32 for x in leaves)
        self.eps = float(np.finfo(np.float32 if coarse else np.float64).eps)
        self.rtol = RTOL["float32" if coarse else "float64"] if rtol is None else rtol

    def rows(self) -> Iterator[Row]:
        tangents = {p: self._moved(p, lambda x, t: t) for p in self.places}
        products = np.concatenate([self._product(self.gradients[p], tangents[p]) for p in self.places] or [np.zeros(0)])
        yield self._dot(tangents, products)
        remainders, noises = [], []
        for h in STEPS:
            moved = list(self.args)
            for p in self.places:
                moved[p] = _combined(lambda x, t, h=h: _cast(x + h * t, x), self.args[p], tangents[p])
            after = float(self.f(*moved))
            remainders.append(abs(after - self.value - h * float(products.sum())))
            noises.append(8 * self.eps * (abs(after) + abs(self.value) + h * float(np.abs(products).sum())))
        yield slope_row(remainders, noises)

    def _dot(self, tangents: Mapping[int, Any], products: Array) -> Row:
        given = [tangents.get(k) for k in range(len(self.args))]
        dots = [self._zero(x) if t is None else t for x, t in zip(self.args, given, strict=True)]
        try:
            forward = float(irad.jvp(self.f, tuple(self.args), tuple(dots))[1])
        except IradError as e:
            return Row("dot product", "", None, None, None, None, None, e.reason)
        terms = float(np.abs(products).sum())
        return dot_row("<gradient, v> = jvp", float(products.sum()), forward, terms, self.rtol)

    def _place(self, key: int | str) -> int:
        if isinstance(key, int):
            return key % len(self.args)
        return list(inspect.signature(self.f).parameters).index(key)

    def _moved(self, place: int, combine: Any) -> Any:
        def draw(x: Any) -> Any:
            scale = np.where(np.asarray(x) == 0, 1.0, np.abs(x))
            return _cast(self.rng.uniform(-1, 1, np.shape(x)) * scale, x)

        return _combined(lambda x: combine(x, draw(x)), self.args[place])

    @staticmethod
    def _zero(x: Any) -> Any:
        return _combined(lambda leaf: _cast(np.zeros(np.shape(leaf)), leaf), x)

    @staticmethod
    def _product(gradient: Any, tangent: Any) -> Array:
        pairs = zip(flatten(gradient)[0], flatten(tangent)[0], strict=True)
        terms = [np.ravel(np.float64(g) * np.float64(t)) for g, t in pairs if g is not None]
        return np.concatenate(terms or [np.zeros(0)])


def _combined(function: Any, *trees: Any) -> Any:
    """A function of floats and arrays on each leaf that is one."""
    parts = [flatten(tree) for tree in trees]
    leaves = [
        function(*xs) if np.asarray(xs[0]).dtype.kind == "f" else xs[0]
        for xs in zip(*(part[0] for part in parts), strict=True)
    ]
    return parts[0][2](leaves)


def _cast(value: Any, like: Any) -> Any:
    return np.asarray(value).astype(like.dtype) if isinstance(like, np.ndarray) else float(value)
