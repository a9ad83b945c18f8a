"""Checks of a kernel: dot products, Taylor remainders, and the oracle.

Arguments and captured values are never changed: everything runs on copies that lie in memory as the originals do;
captured ones are put in the places where the kernel looks them up, and the originals put back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

import irad
from irad import oracle
from irad.errors import IradError, ShadowError
from irad.oracle.captured import Place, helper_of, hidden_arguments
from irad.oracle.world import TooManyPoints
from irad.testing.report import STEPS, Row, dot_row, entry_row, slope_row
from irad.wrt import field_name

Array = npt.NDArray[Any]

RTOL = {"float64": 1e-10, "float32": 1e-3}
"""Default tolerances, relative to the sum of the absolute values of all terms of what is compared."""

MOST_POINTS = 20_000
"""Larger domains are not given to the oracle: it takes some 10 us a point and operation."""


class KernelCheck:
    """Checks of a kernel; ``values`` are its arguments and what it captures by name."""

    def __init__(self, kernel: Any, args: Sequence[Any], wrt: Any, rtol: float | None, rng: Any) -> None:
        function = helper_of(kernel)
        assert function is not None
        self.kernel, self.rng = kernel, rng
        given = kernel.signature.bind(*args)
        given.apply_defaults()
        self.names = tuple(given.arguments)
        self.hidden: dict[str, Place] = hidden_arguments(function, self.names)
        self.values = {**given.arguments, **{name: place.value for name, place in self.hidden.items()}}
        self.arrays = {n: v for n, v in self.values.items() if isinstance(v, np.ndarray) and v.dtype.kind == "f"}
        self.primal, self.why_not = self._primal()
        self.wrt = self._wrt(wrt)
        self.points = self._run(self.values)
        coarse = any(a.dtype == np.float32 for a in self.arrays.values())
        self.eps = float(np.finfo(np.float32 if coarse else np.float64).eps)
        self.rtol = RTOL["float32" if coarse else "float64"] if rtol is None else rtol

    def rows(self) -> Iterator[Row]:
        tangents = {n: self._direction(self.values[n]) for n in self.wrt}
        out = self._push(self.values, tangents)
        seeds = {n: np.asarray(self.rng.uniform(-1, 1, t.shape), t.dtype) for n, t in out.items()}
        bars = self._pull(seeds)
        yield self._dot(tangents, out, seeds, bars)
        yield from self._taylor()
        yield from self._oracle(tangents, out, seeds, bars)

    # runs

    @contextmanager
    def _copies(self, values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Copies of ``values``; while they are in use, the captured ones among them stand in for the originals."""
        copies = {n: _twin(v) if isinstance(v, np.ndarray) else v for n, v in values.items()}
        try:
            for name, place in self.hidden.items():
                place.set(copies[name])
            yield copies
        finally:
            for place in self.hidden.values():
                place.set(place.value)

    def _arguments(self, values: Mapping[str, Any]) -> list[Any]:
        return [values[n] for n in self.names]

    def _run(self, values: Mapping[str, Any]) -> dict[str, Array]:
        """All floating-point arrays after a run."""
        with self._copies(values) as copies:
            self.kernel(*self._arguments(copies))
            return {n: np.array(copies[n], np.float64) for n in self.arrays}

    def _push(self, values: Mapping[str, Any], tangents: Mapping[str, Any]) -> dict[str, Array]:
        """Tangents of the written arrays."""
        with self._copies(values) as copies:
            push = irad.pushforward(self.kernel, *self._arguments(copies), wrt=tuple(self.wrt))
            return self._by_name(push(**{field_name(n): t for n, t in tangents.items()}))

    def _pull(self, seeds: Mapping[str, Any]) -> dict[str, Any]:
        """Cotangents of what is differentiated by."""
        with self._copies(self.values) as copies:
            back = irad.pullback(self.kernel, *self._arguments(copies), wrt=tuple(self.wrt))
            return self._by_name(back(**{field_name(n): s for n, s in seeds.items()}))

    def _by_name(self, results: Any) -> dict[str, Any]:
        """Results under the names of parameters, of which the fields of a named tuple are made."""
        names = {field_name(n): n for n in self.values}
        return {names[field]: value for field, value in results._asdict().items()}

    def _primal(self) -> tuple[oracle.Result | None, str]:
        try:
            return oracle.primal(self.kernel, self._arguments(self.values), most=MOST_POINTS), ""
        except TooManyPoints as e:
            return None, f"{e.points} points are too many for the oracle"
        except (IradError, ArithmeticError, TypeError, ValueError) as e:
            return None, f"the oracle cannot run {self.kernel.__name__}: {e}"

    def _wrt(self, wrt: Any) -> list[str]:
        floats = [n for n, v in self.values.items() if n in self.arrays or isinstance(v, (float, np.floating))]
        if wrt is None:
            read = self.arrays if self.primal is None else self.primal.read
            return [n for n in self.names if n in floats and (n in read or n not in self.arrays)]
        single = isinstance(wrt, (str, np.ndarray)) or not isinstance(wrt, Iterable)
        names = []
        for entry in [wrt] if single else list(wrt):
            found = [n for n in floats if (n == entry if isinstance(entry, str) else self.values[n] is entry)]
            if len(found) != 1:
                raise ShadowError(
                    f"wrt={entry!r} is {len(found)} parameters of {self.kernel.__name__} that carry a derivative",
                    remedy=f"one of {', '.join(floats)}",
                )
            names += found
        return names

    def _direction(self, value: Any) -> Any:
        """A random tangent, as large as the values are on the average."""
        size = float(np.sqrt(np.mean(np.square(value, dtype=np.float64)))) if np.size(value) else 0.0
        tangent = self.rng.uniform(-1, 1, np.shape(value)) * (size or 1.0)
        return tangent.astype(value.dtype) if isinstance(value, np.ndarray) else float(tangent)

    # checks

    def _dot(self, tangents: Any, out: Any, seeds: Any, bars: Any) -> Row:
        forward = [np.ravel(np.float64(seeds[n]) * np.float64(out[n])) for n in out]
        reverse = [np.ravel(np.float64(bars[n]) * np.float64(tangents[n])) for n in bars]
        terms = float(sum(np.abs(x).sum() for x in (*forward, *reverse)))
        found, expected = (float(sum(x.sum() for x in side)) for side in (reverse, forward))
        return dot_row("<J'w, v> = <w, Jv>", found, expected, terms, self.rtol)

    def _taylor(self) -> Iterator[Row]:
        """Along one direction in all of ``wrt``, each entry moved in proportion to itself."""
        direction = {n: self._proportional(self.values[n]) for n in self.wrt}
        remainders, noises = [], []
        for h in STEPS:
            moved, actual = dict(self.values), {}
            for n, t in direction.items():
                x = self.values[n]
                moved[n] = (x + h * t).astype(x.dtype) if isinstance(x, np.ndarray) else float(x + h * t)
                step = np.subtract(moved[n], x, dtype=np.float64)  # as it is after rounding
                actual[n] = step.astype(x.dtype) if isinstance(x, np.ndarray) else float(step)
            after, linear = self._run(moved), self._push(self.values, actual)
            left = [after[n] - self.points[n] - linear.get(n, actual.get(n, 0.0)) for n in self.arrays]
            size = sum(np.abs(self.points[n]).sum() + np.abs(after[n]).sum() for n in self.arrays)
            remainders.append(float(sum(np.abs(r).sum() for r in left)))
            noises.append(8 * self.eps * float(size) + np.finfo(float).tiny)
        yield slope_row(remainders, noises)

    def _proportional(self, value: Any) -> Any:
        size = float(np.max(np.abs(value), initial=0.0)) or 1.0
        scale = np.where(np.asarray(value) == 0, size, np.abs(value))
        return self.rng.uniform(-1, 1, np.shape(value)) * scale

    def _oracle(self, tangents: Any, out: Any, seeds: Any, bars: Any) -> Iterator[Row]:
        if self.primal is None:
            yield Row("oracle", "", None, None, None, None, None, self.why_not)
            return
        args = self._arguments(self.values)
        forward = oracle.jvp(self.kernel, args, tangents)
        reverse = oracle.vjp(self.kernel, args, seeds)
        note = f"{forward.doubtful} comparisons within rounding" if forward.doubtful else ""
        for n in out:
            yield entry_row(f"tangent of {n}", out[n], forward.derivatives[n], forward.scales[n], self.rtol, note)
        for n in bars:
            yield entry_row(f"cotangent of {n}", bars[n], reverse.derivatives[n], reverse.scales[n], self.rtol, note)


def _twin(a: Array) -> Any:
    """A copy with the same strides. Where entries share an address, a plain copy."""
    shares = any(s == 0 and n > 1 for s, n in zip(a.strides, a.shape, strict=True))
    if shares or not a.size:
        return np.array(a)
    reach = [s * (n - 1) for s, n in zip(a.strides, a.shape, strict=True)]
    before = -sum(min(r, 0) for r in reach)
    size = before + sum(max(r, 0) for r in reach) + a.itemsize
    twin = np.ndarray(a.shape, a.dtype, np.empty(size, np.uint8), before, a.strides)
    np.copyto(twin, a)
    return twin
