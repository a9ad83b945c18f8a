"""Finds scratch arrays through which a recorded function would carry state from one call to the next.

The order of launches shows most of it (``program.py``); a launch that both reads and writes an array does not. So the
function is run on private memory with random numbers where it writes: if the rate depends on what was there before,
a captured array is refused, and a local one is put back to its first content (zeros) before every call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from irad.errors import IradError, NotDifferentiableError
from irad.tape.memory import Bytes, vector
from irad.tape.program import Function, Program
from irad.tape.replay import Bound, Environment


def examine(program: Program, function: Function, t: float) -> None:
    """Mark local arrays that must be put back (``Region.reset``), refuse captured ones that carry state."""
    suspects = [n for n, r in enumerate(program.regions) if r.written and r.kind in ("captured", "local")]
    suspects = [n for n in suspects if program.regions[n].size]
    if not suspects:
        return
    random = np.random.default_rng(20240229)
    u = function.u.ravel(order="K")
    size = float(np.max(np.abs(u), initial=0.0))
    probe = vector(u.size, u.dtype)
    if np.isfinite(size):
        probe[:] = u + (1e-3 * (size or 1.0)) * random.uniform(-1, 1, u.size).astype(u.dtype)
    du = vector(u.size, u.dtype)
    environment = Environment(function.p, copy=True)
    bound = Bound(program, environment, probe, du)
    first = {n: environment.memory(program, n).copy() for n in suspects}

    def run(fill: dict[int, Bytes]) -> dict[int, Bytes]:
        for n in suspects:
            environment.memory(program, n)[:] = fill[n]
        with np.errstate(all="ignore"):
            bound(t)
        return {n: environment.memory(program, n).copy() for n in suspects}

    try:
        noise = {n: _noise(program, n, first[n], random) for n in suspects}
        after = run(noise)
        masks = {n: _changed(noise[n], after[n], _group(program, n)) for n in suspects}
        for n in suspects:
            region = program.regions[n]
            everywhere = np.ones_like(masks[n]) if region.kind == "local" else masks[n]
            rates = []
            for _ in range(2):
                fill = dict(first)
                fill[n] = np.where(everywhere, _noise(program, n, first[n], random), first[n])
                run(fill)
                rates.append(du.view(np.uint8).copy())
            if np.array_equal(rates[0], rates[1]):
                continue
            if region.kind == "captured":
                raise IradError(
                    f"the right-hand side reads what an earlier call of it left in the scratch array {region.text}, so "
                    "that the rate would depend on more than u, p and t",
                    remedy="write every entry before it is read (a kernel that accumulates needs a kernel that sets "
                    "the array to zero before it), or make the array part of the state",
                )
            if first[n].any():
                raise NotDifferentiableError(
                    f"the right-hand side reads an array it makes itself ({region.text}) where no kernel wrote it",
                    remedy="compute the array before the solve, or start from numpy.zeros",
                )
            region.reset = True
    finally:
        for n in suspects:  # memory of arrays that a kernel captures is the user's own
            environment.memory(program, n)[:] = first[n]


def _noise(program: Program, number: int, like: Bytes, random: np.random.Generator) -> Bytes:
    """Random numbers near 1 in an array of floats; other arrays as they are (they may be indices)."""
    dtype = _dtype(program, number)
    if dtype is not None and dtype.kind == "f" and like.size % dtype.itemsize == 0:
        noise: Bytes = random.uniform(0.5, 1.5, like.size // dtype.itemsize).astype(dtype).view(np.uint8)
        return noise
    same: Bytes = like.copy()
    return same


def _dtype(program: Program, number: int) -> np.dtype[Any] | None:
    """The one data type under which a region is used, if there is one."""
    dtypes = {v.dtype for launch in program.launches for _, v in launch.views() if v.region == number}
    return next(iter(dtypes)) if len(dtypes) == 1 else None


def _group(program: Program, number: int) -> int:
    dtype = _dtype(program, number)
    return 1 if dtype is None or program.regions[number].size % dtype.itemsize else dtype.itemsize


def _changed(before: Bytes, after: Bytes, group: int) -> npt.NDArray[np.bool_]:
    """Which bytes belong to an element (of ``group`` bytes) that changed."""
    changed: npt.NDArray[np.bool_] = np.repeat((before != after).reshape(-1, group).any(axis=1), group)
    return changed
