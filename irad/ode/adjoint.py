"""Gradients of a solution: ``irad.adjoint(sol, cotangent, wrt=...)`` and the common path of all methods."""

from __future__ import annotations

import warnings
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from irad.errors import IradError, ShadowError
from irad.ode.continuous import continuous
from irad.ode.discrete import Cotangent, discrete
from irad.ode.integrate import replay
from irad.ode.retcode import Retcode
from irad.ode.sensitivity import DiscreteAdjoint, choose
from irad.ode.solution import Sample, Solution, Trail
from irad.tape.function import Gradients

Array = npt.NDArray[Any]


def adjoint(
    sol: Solution, cotangent: Any, sensealg: Any = None, wrt: str | Array | Sequence[str | Array] = ("u0", "p")
) -> Any:
    """Cotangents of what a solution was computed from, given those of the saved states.

    Parameters
    ----------
    sol : Solution
        Of a right-hand side that launches kernels. Its own copies of ``p`` and of captured arrays are used.
    cotangent : array, or sequence of arrays
        An array of the state's shape is dL/du at the end of the solve. A list (or an array with one more axis) has one
        entry for every saved time, ``sol.t``; None entries are zero.
    sensealg : optional
        ``DiscreteAdjoint()`` (the default, or what the solve was given), ``InterpolatingAdjoint()``,
        ``GaussAdjoint()``.
    wrt : names or arrays
        Any of ``"u0"``, ``"p"``, names of arrays that the right-hand side or a kernel captures, or such arrays.

    Returns
    -------
    named tuple
        One field for each of ``wrt``, in order: ``u0`` and captured arrays in their shapes, ``p`` in the user's
        structure (None where a part is not a floating-point number or array). Data types are those of the originals.

    Examples
    --------
    ``g = irad.adjoint(sol, np.ones_like(sol.u[-1]), wrt=("u0", "p", "Ci"))`` gives ``g.u0``, ``g.p``, ``g.Ci``: the
    gradient of the sum of the final state.
    """
    targets = _targets(sol, wrt)
    samples = _cotangents(sol, cotangent)
    u0_bar, gradients = pull(sol, samples, targets, sensealg)
    fields, values = [], []
    captured = iter(gradients.arrays)
    for name, array in targets:
        fields.append(name)
        if name == "u0" and array is None:
            values.append(u0_bar)
        elif name == "p" and array is None:
            values.append(parameters(sol, gradients))
        else:
            assert array is not None
            values.append(next(captured).astype(array.dtype, copy=False))
    return namedtuple("Gradients", fields)(*values)  # type: ignore[misc]


Target = tuple[str, Array | None]


def _targets(sol: Solution, wrt: Any) -> list[Target]:
    if isinstance(wrt, (str, np.ndarray)):
        wrt = (wrt,)
    recorded = sol._rhs.recording()
    targets: list[Target] = []
    for item in wrt:
        if isinstance(item, str) and item in ("u0", "p"):
            if item == "p" and not len(sol._rhs.parameters):
                raise IradError("p has no floating-point number or array to differentiate by")
            targets.append((item, None))
        else:
            name, array = recorded.captured(item)
            targets.append((_identifier(name, [n for n, _ in targets]), array))
    names = [n for n, _ in targets]
    if len(set(names)) != len(names):
        raise IradError(f"wrt={wrt!r} names something twice")
    return targets


def _identifier(name: str, taken: Sequence[str]) -> str:
    base = "".join(c if c.isalnum() or c == "_" else "_" for c in name).lstrip("_") or "array"
    return base if base not in taken else f"{base}_{len(taken)}"


def _cotangents(sol: Solution, cotangent: Any) -> list[tuple[Sample, Array]]:
    shape = sol._rhs.shape
    if isinstance(cotangent, (list, tuple)) or (isinstance(cotangent, np.ndarray) and cotangent.ndim == len(shape) + 1):
        parts = list(cotangent)
        if len(parts) != len(sol._samples):
            raise ShadowError(f"{len(parts)} cotangents were given for {len(sol._samples)} saved states")
        pairs = list(zip(sol._samples, parts, strict=True))
    else:
        if not sol.retcode.good and sol.retcode is not Retcode.SUCCESS:
            _refuse_failed(sol)
        pairs = [(end_of(sol), cotangent)]
    out = []
    for sample, part in pairs:
        if part is None:
            continue
        array = np.asarray(part)
        if array.shape != shape or array.dtype.kind not in "fiu":
            raise ShadowError(
                f"a cotangent of shape {array.shape} and data type {array.dtype} does not fit a state of shape {shape}",
                remedy="give an array of the state's shape, or a list with one for every saved time",
            )
        out.append((sample, array))
    return out


def end_of(sol: Solution) -> Sample:
    """The end of the solve as a place in its grid."""
    return (len(sol.grid) - 1, 1.0) if len(sol.grid) else (0, 0.0)


def _refuse_failed(sol: Solution) -> None:
    raise IradError(f"a solve that did not reach its end cannot be differentiated. {sol.retcode.value}")


def pull(
    sol: Solution, samples: Sequence[tuple[Sample, Array]], targets: Sequence[Target], sensealg: Any
) -> tuple[Array, Gradients]:
    """dL/du0 (in the state's shape) and the gradients of the other targets, from cotangents at places of the grid."""
    if not sol.retcode.good:
        _refuse_failed(sol)
    rhs, method = sol._rhs, choose(sensealg, sol.sensealg)
    rhs.check()
    wants_p = any(name == "p" and array is None for name, array in targets)
    gradients = Gradients(rhs.parameters, wants_p, [a for _, a in targets if a is not None])
    cotangents: list[Cotangent] = [(n, theta, rhs.flat(w)) for (n, theta), w in samples]
    with np.errstate(all="ignore"):
        if isinstance(method, DiscreteAdjoint):
            states = None if sol._trail is None else sol._trail.states
            if states is None and method.checkpoints is None:
                states = _trail(sol, slopes=False).states
            result = discrete(rhs, sol.grid, states, cotangents, gradients, method.checkpoints)
        else:
            trail = sol._trail if sol._trail is not None and sol._trail.slopes is not None else _trail(sol, slopes=True)
            result = continuous(rhs, sol.grid, trail, cotangents, gradients, method, sol._tolerances, sol.alg)
    gradients.collect()
    rhs.release()
    if not np.isfinite(result).all():
        warnings.warn("the gradient is not finite", RuntimeWarning, stacklevel=3)
    return rhs.shaped(result.copy()), gradients


def _trail(sol: Solution, slopes: bool) -> Trail:
    """The states (and rates) at all steps, by taking the steps again."""
    trail = Trail(slopes)
    replay(sol._rhs, sol._rhs.start(), sol.grid, trail)
    return trail


def parameters(sol: Solution, gradients: Gradients) -> Any:
    """The cotangent of p in the user's structure."""
    parts: list[Any] = []
    known = sol._rhs.parameters
    for i, (total, array) in enumerate(zip(gradients.p, known.arrays, strict=True)):
        parts.append(float(total[0]) if known.scalar[i] else known.shaped(i, total.astype(array.dtype)))
    return known.structure(parts, static=False)
