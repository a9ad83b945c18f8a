"""``irad.jvp`` of a solution: tangents by name to tangents of the saved states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from irad.errors import IradError, ShadowError
from irad.ode.forward import tangents
from irad.ode.solution import Solution
from irad.tape.function import Tangents
from irad.tape.memory import as_address
from irad.tape.tree import flatten

Array = npt.NDArray[Any]


def solution_tangents(sol: Solution, given: Mapping[str, Any]) -> list[Array]:
    """Derivatives of ``sol.u`` along the given tangents: ``u0``, ``p`` (in its structure), captured arrays by name."""
    if not sol.retcode.good:
        raise IradError(f"a solve that did not reach its end cannot be differentiated. {sol.retcode.value}")
    rhs = sol._rhs
    recorded = rhs.recording()
    rhs.check()
    u0_dot, p_dot, captured = None, None, []
    for name, value in given.items():
        if name == "u0":
            u0_dot = rhs.flat(_shaped(name, value, rhs.shape))
        elif name == "p":
            p_dot = _parameters(sol, value)
        else:
            _, array = recorded.captured(name)
            address = as_address(array)
            captured.append((address, array, _shaped(name, value, array.shape)))
    found = tangents(rhs, sol.grid, sol._samples, u0_dot, Tangents(p_dot, captured))
    return [rhs.shaped(x).copy() for x in found]


def _shaped(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    array = np.asarray(value)
    if array.shape != shape:
        raise ShadowError(f"the tangent of {name} has shape {array.shape}, {name} itself {shape}")
    return array


def _parameters(sol: Solution, value: Any) -> list[Array]:
    known = sol._rhs.parameters
    leaves = flatten(value)[0]
    out = []
    for i, array in zip(known.index, known.arrays, strict=True):
        if i >= len(leaves):
            raise ShadowError("the tangent of p has another structure than p")
        shaped = np.zeros_like(array)
        if leaves[i] is not None:
            dot = np.asarray(leaves[i])
            if dot.size != array.size:
                raise ShadowError(f"a tangent of shape {dot.shape} was given for a parameter of shape {array.shape}")
            shaped[...] = dot.reshape(array.shape)
        out.append(shaped.ravel(order="K"))
    return out
