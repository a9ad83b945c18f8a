"""Kernels with an integrator's arithmetic joined to them: a stage recurrence in the launch that computes the rate.

What the integrators use; ``passes/fuse.py`` says what can be joined. Both functions give ``None`` where it cannot, and
the caller then launches the kernel and its own loops one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irad.annotations import check_shadow
from irad.kernel import Kernel
from irad.launch.arrays import Array
from irad.launch.bound import Bound
from irad.launching import Operands, check_arrays, prepare
from irad.passes.fuse import EPILOGUES
from irad.passes.layout import Blend
from irad.passes.program import NotFused
from irad.specialise import Request, Specialisation


def bind_stage(
    kernel: Kernel,
    args: Sequence[Any],
    rate: str,
    state: str,
    epilogue: str,
    arrays: Mapping[str, Array],
    captured: Mapping[str, Any] | None = None,
) -> Bound | None:
    """The kernel with an epilogue, bound: ``bound.set(".c", c)`` and so on, then ``bound()``.

    ``args``: as the kernel takes them; the array for ``rate`` lends its shape only. ``arrays``: by the names of the
    epilogue (``".out"``, ``".older"``, ``".rate"``), of shape and dtype of the state. ``captured``: values to use in
    the place of captured arrays. The epilogue's scalars are 0 until they are set.
    """
    spec = kernel.specialise(args)
    request = Request(fuse=(rate, state, epilogue))
    if spec.fused(rate, state, epilogue) is None:
        return None
    values = {**kernel.values(spec, args), **(captured or {})}
    _check(spec, values, rate, state, epilogue, arrays)
    scalars = dict.fromkeys(EPILOGUES[epilogue].scalars, 0.0)
    return prepare(spec, request, Operands({**values, **arrays, **scalars})).bind()


def bind_stage_vjp(
    kernel: Kernel,
    args: Sequence[Any],
    rate: str,
    state: str,
    seed: Array,
    shadows: Mapping[str, Array],
    cells: Mapping[str, Array] | None = None,
    captured: Mapping[str, Any] | None = None,
) -> Bound | None:
    """``shadow of state = b * (what it held) + a * seed + c * J^T seed``, bound, with scalars ``".a", ".b", ".c"``.

    ``shadows``: of the state, and of other arrays, to which ``c`` times their cotangents are added; ``cells`` the same
    for scalars. ``seed`` is only read.
    """
    spec = kernel.specialise(args)
    if spec.fused(rate, state, "add scaled") is None:
        return None
    values = {**kernel.values(spec, args), **(captured or {})}
    loc = spec.lowered.loc
    check_shadow(rate, values[state], seed, what="seed", loc=loc)
    for name, shadow in shadows.items():
        check_shadow(name, values[name], shadow, loc=loc)
    reads = {p.name: values[p.name] for p in spec.parameters if p.is_array and p.name != rate}
    check_arrays({**reads, f"seed of {rate}": seed, **{f"{n}'": s for n, s in shadows.items()}}, (), loc)
    cells = cells or {}
    blend = Blend(state, rate)
    active = frozenset((rate, *shadows, *cells))
    request = Request("adjoint", active, frozenset({rate}), frozenset({state}), blend)
    values = {**values, rate: seed, **dict.fromkeys((blend.a, blend.b, blend.c), 0.0)}
    try:
        return prepare(spec, request, Operands(values, {rate: seed, **shadows}, cells)).bind()
    except NotFused:
        return None


def _check(
    spec: Specialisation, values: Mapping[str, Any], rate: str, state: str, epilogue: str, arrays: Mapping[str, Array]
) -> None:
    """Raise unless the arrays fit and those that are written are apart from all others."""
    for name, array in arrays.items():
        check_shadow(name[1:], values[state], array, what="array", loc=spec.lowered.loc)
    known = {p.name: values[p.name] for p in spec.parameters if p.is_array and p.name != rate}
    written = {w[1:] for w in EPILOGUES[epilogue].writes}
    check_arrays({**known, **{n[1:]: a for n, a in arrays.items()}}, written, spec.lowered.loc)
