"""``irad.autodiff``: a kernel and its derivative in one call, on annotated arguments.

Decided here: which arrays need a shadow and who gives it, what must be kept before the kernel overwrites it, and in
which order things run. All checks come before anything is written.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irad.annotations import (
    Active,
    Const,
    Duplicated,
    DuplicatedNoNeed,
    Forward,
    Mode,
    Reverse,
    check_shadow,
    unwrap,
)
from irad.errors import IradError, ShadowError
from irad.kernel import Kernel
from irad.launch.arrays import Array
from irad.launching import Launch, Operands, prepare, sample
from irad.loops import LoopRun, copied
from irad.specialise import Request, Specialisation
from irad.wrt import check_differentiable


def autodiff(mode: Mode, kernel: Kernel, *args: Any, **kwargs: Any) -> tuple[float, ...]:
    """Run ``kernel`` and its derivative. Arguments are those of the kernel, each bare or annotated.

    ``Reverse``: runs the kernel, then its adjoint. The cotangent of ``Duplicated(x, shadow)`` is added to ``shadow``;
    where the kernel overwrote an entry of ``x``, that entry of the shadow went in as the seed and comes out as the
    cotangent of the old value. ``Active(x)`` is a float whose cotangent is returned. Where every written array is
    ``DuplicatedNoNeed``, only the adjoint runs. ``Const(x)`` and bare arguments get no derivative; a bare array that
    the kernel writes is scratch with a private shadow.

    ``Forward``: runs the kernel and its tangent: ``Duplicated(x, tangent)``, with a float tangent for a float.

    Returns the cotangents of the ``Active`` arguments in their order (forward mode: an empty tuple).

    >>> import irad, numpy as np
    >>> from irad import Active, Duplicated, Reverse
    >>> @irad.kernel
    ... def scale(v, u, a):
    ...     i = irad.points(u)
    ...     v[i] = a * u[i]
    >>> u, u_bar, v = np.arange(3.0), np.zeros(3), np.zeros(3)
    >>> irad.autodiff(Reverse, scale, Duplicated(v, np.ones(3)), Duplicated(u, u_bar), Active(2.0))
    (3.0,)
    >>> v, u_bar
    (array([0., 2., 4.]), array([2., 2., 2.]))

    Raises ``ShadowError`` for shadows that do not fit, a missing seed, and ``Const`` on an array into which
    derivative-carrying values are stored; else what calling the kernel raises.
    """
    if not isinstance(kernel, Kernel):
        raise IradError(f"irad.autodiff takes a kernel, not {type(kernel).__name__}", remedy="decorate it @irad.kernel")
    if mode not in (Reverse, Forward):
        raise IradError(f"{mode!r} is no mode of irad.autodiff", remedy="irad.Reverse or irad.Forward")
    call = _Call(kernel, kernel.positional(args, kwargs))
    return call.reverse() if mode is Reverse else call.forward()


class _Call:
    """Annotated arguments sorted by what they mean."""

    def __init__(self, kernel: Kernel, annotated: Sequence[Any]) -> None:
        args = [unwrap(a) for a in annotated]
        self.kernel = kernel
        self.spec: Specialisation = kernel.specialise(args)
        self.values = kernel.values(self.spec, args)
        self.loc = self.spec.lowered.loc
        self.given = dict(zip((p.name for p in self.spec.parameters if p.capture is None), annotated, strict=True))
        self.active = [n for n, a in self.given.items() if isinstance(a, Active)]
        duplicated = {n: a for n, a in self.given.items() if isinstance(a, (Duplicated, DuplicatedNoNeed))}
        for name in (*self.active, *duplicated):
            check_differentiable(self.spec, self.spec.by_name[name])
        self.shadows: dict[str, Array] = {}
        self.tangents: dict[str, Any] = {}
        for name, a in duplicated.items():
            if self.spec.by_name[name].is_array:
                check_shadow(name, self.values[name], a.shadow, loc=self.loc)
                self.shadows[name] = a.shadow
            else:
                self.tangents[name] = a.shadow

    def refuse_lost(self, active: frozenset[str]) -> frozenset[str]:
        """Arrays that need a private shadow. Raises where a derivative would be stored into a ``Const``."""
        reached = self.spec.reached(active)
        for name in sorted(reached):
            if isinstance(self.given.get(name), Const):
                raise ShadowError(
                    f"{name} is Const, and {self.kernel.__name__} stores values into it that carry derivatives",
                    loc=self.loc,
                    remedy=f"Duplicated({name}, shadow), or pass {name} bare if it is scratch",
                )
        return reached - active

    def reverse(self) -> tuple[float, ...]:
        spec = self.spec
        for name in self.tangents:
            raise ShadowError(
                f"{name} is a float: in reverse mode it has no shadow", loc=self.loc, remedy=f"Active({name})"
            )
        if not any(n in self.shadows for n in spec.written):
            raise ShadowError(
                f"no array that {self.kernel.__name__} writes carries a seed",
                loc=self.loc,
                remedy=" or ".join(f"Duplicated({n}, seed)" for n in spec.written),
            )
        shadows = dict(self.shadows)
        again = self._shared_shadows(shadows)
        for name in again:
            shadows.pop(name)
        self.kernel.check(spec, self.values, shadows)
        for name in (*self.refuse_lost(frozenset((*self.shadows, *self.active))), *again):
            shadows[name] = np.zeros_like(self.values[name], subok=False)
        only_adjoint = all(isinstance(self.given.get(n), DuplicatedNoNeed) for n in spec.written)
        if spec.is_loop:
            result = self._reverse_loop(shadows, only_adjoint)
            for name, target in again.items():
                np.add(target, shadows[name], out=target)
            return result
        cells = {name: np.zeros(1) for name in self.active}
        request = Request("adjoint", frozenset((*shadows, *cells)))
        forward = ForwardRun(self.kernel, spec, self.values, request, run=not only_adjoint)
        adjoint = self.kernel.prepare_vjp(spec, Operands(self.values, shadows, cells, saved=forward.saved))
        forward.run()
        adjoint.run()
        for name, target in again.items():
            np.add(target, shadows[name], out=target)
        return tuple(float(cells[name][0]) for name in self.active)

    def _reverse_loop(self, shadows: Mapping[str, Array], only_adjoint: bool) -> tuple[float, ...]:
        """The same for a loop kernel. Shadows that lie otherwise than their arrays are copied there and back."""
        values = dict(self.values)
        if only_adjoint:
            refuse_reading(self.kernel, self.spec)
            values.update({n: copied(values[n]) for n in self.spec.written})
        run = LoopRun(self.spec, values, frozenset((*shadows, *self.active)), shadows)
        run.forward()
        apart = [(shadow, run.shadows[n]) for n, shadow in shadows.items() if run.shadows[n] is not shadow]
        for shadow, own in apart:
            own[...] = shadow
        run.backward()
        for shadow, own in apart:
            shadow[...] = own
        return tuple(float(run.cells[name][0]) for name in self.active)

    def _shared_shadows(self, shadows: Mapping[str, Array]) -> dict[str, Array]:
        """Read arrays that are passed twice with one shadow: all but the first are summed apart and added."""
        seen: dict[tuple[Any, ...], str] = {}
        again = {}
        for name, shadow in shadows.items():
            key = (_memory(self.values[name]), _memory(shadow))
            if name not in self.spec.written and shadow.size and seen.setdefault(key, name) != name:
                again[name] = shadow
        return again

    def forward(self) -> tuple[float, ...]:
        for name in self.active:
            raise ShadowError(
                f"{name} is Active, which has no meaning in forward mode",
                loc=self.loc,
                remedy=f"Duplicated({name}, tangent) with a float tangent",
            )
        for name, tangent in self.tangents.items():
            if isinstance(tangent, bool) or not isinstance(tangent, (int, float, np.integer, np.floating)):
                raise ShadowError(
                    f"the tangent of {name} is of type {type(tangent).__name__}", loc=self.loc, remedy="a float"
                )
        if not self.shadows and not self.tangents:
            raise ShadowError(
                f"no argument of {self.kernel.__name__} carries a tangent",
                loc=self.loc,
                remedy="Duplicated(x, tangent) for what the derivative is along",
            )
        self.refuse_lost(frozenset((*self.shadows, *self.tangents)))
        tangents = {n: float(t) for n, t in self.tangents.items()}
        self.kernel.prepare_jvp(self.spec, Operands(self.values, self.shadows, tangents=tangents)).run()
        return ()


class ForwardRun:
    """The forward run before an adjoint: the kernel, cut where arrays must be kept as they are between its stages.

    ``saved`` are the copies by alias, filled by :meth:`run`. With ``run=False`` the kernel does not run, so that its
    adjoint may not need anything that the kernel would have written.
    """

    def __init__(
        self,
        kernel: Kernel,
        spec: Specialisation,
        values: Mapping[str, Any],
        adjoint: Request,
        *,
        run: bool = True,
    ) -> None:
        self.program = sample(spec, adjoint, values)
        self.values = values
        self.saved: dict[str, Array] = {
            alias: np.empty_like(values[array], subok=False) for _, array, alias in self.program.saves
        }
        self._steps: list[tuple[list[tuple[str, str]], Launch | None]] = []
        if not run:
            refuse_reading(kernel, spec)
            return
        cuts = sorted({0, len(spec.stages), *(stage for stage, _, _ in self.program.saves)})
        for first, end in itertools.pairwise(cuts):
            copies = [(array, alias) for stage, array, alias in self.program.saves if stage == first]
            part = None if (first, end) == (0, len(spec.stages)) else (first, end)
            self._steps.append((copies, prepare(spec, Request(stages=part), Operands(values))))

    def run(self) -> None:
        """Run the kernel and keep what the adjoint needs."""
        for copies, launch in self._steps:
            for array, alias in copies:
                np.copyto(self.saved[alias], self.values[array])
            if launch is not None:
                launch.run()


def refuse_reading(kernel: Kernel, spec: Specialisation) -> None:
    """Raise where an adjoint without a run needs what the kernel would have written."""
    for name in spec.written:
        if spec.by_name[name].read:
            raise ShadowError(
                f"{name} is DuplicatedNoNeed, and {kernel.__name__} reads it: its adjoint needs the kernel to run",
                loc=spec.lowered.loc,
                remedy=f"Duplicated({name}, shadow)",
            )


def _memory(a: Array) -> tuple[Any, ...]:
    return (a.__array_interface__["data"][0], a.shape, a.strides)
