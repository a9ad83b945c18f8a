"""``pullback``, ``pushforward`` and their functional spellings ``vjp`` and ``jvp``: derivatives as functions.

Decided here: what must be copied so that a derivative can be taken later and as often as wanted, and who owns the
arrays that come out. Results are named tuples with a field for each entry of ``wrt`` (each written array).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irad.annotations import check_shadow
from irad.autodiff import ForwardRun
from irad.errors import AliasError, IradError, ShadowError
from irad.kernel import Kernel
from irad.launch.arrays import Array, overlap
from irad.launch.bound import Bound
from irad.launching import Operands
from irad.loops import LoopRun
from irad.specialise import Request, Specialisation
from irad.wrt import Wanted, field_name, named, resolve


class Pullback:
    """What :func:`pullback` returns: ``back(dT=seed)`` gives cotangents. ``copied`` names the arrays that it holds
    copies of."""

    def __init__(self, kernel: Kernel, args: Sequence[Any], wrt: Any, copy: bool) -> None:
        self._kernel = kernel
        self._spec: Specialisation = kernel.specialise(args)
        self._loc = self._spec.lowered.loc
        values = kernel.values(self._spec, args)
        self._wanted: tuple[Wanted, ...] = resolve(self._spec, values, wrt)
        asked = frozenset(p for w in self._wanted for p in w.parameters)
        request = usual_request(self._spec, asked)
        self._active = request.active
        kernel.check(self._spec, values)
        self._loop: LoopRun | None = None
        if self._spec.is_loop:
            self._loop = LoopRun(self._spec, values, self._active)
            self._loop.forward()
            reads = self._loop.reads
        else:
            forward = ForwardRun(kernel, self._spec, values, request)
            forward.run()
            self._saved = forward.saved
            reads = sorted(forward.program.reads)
        self.copied: tuple[str, ...] = tuple(reads) if copy else ()
        self._values = {**values, **{n: _copy(values[n]) for n in self.copied}}
        if self._loop is not None:
            self._loop.keep(self.copied)
        self._last: _Repeat | None = None
        self._prints = {} if copy else {n: _fingerprint(values[n]) for n in reads}
        self._seeds = {field_name(n): n for n in self._spec.written if self._spec.by_name[n].differentiable}

    def __call__(self, *seed: Any, out: Any = None, accumulate: Any = False, **seeds: Array) -> Any:
        """The cotangents for these seeds, as a named tuple in the order of ``wrt``.

        ``seeds``: by name of the written array, of its shape and dtype; those left out are zero. They are never
        changed. Instead of keywords, one array (where the kernel writes one), or a mapping. ``out``: arrays for
        results by name, overwritten, or added to with ``accumulate=True``. Float results are floats.

        Raises ``ShadowError`` for a seed that does not fit or is missing, ``AliasError`` for an ``out`` array that
        overlaps a seed, ``IradError`` where ``copy=False`` was given and an array has changed since.
        """
        if isinstance(out, np.ndarray) and "out" in self._seeds:
            seeds, out = {**seeds, "out": out}, None
        if isinstance(accumulate, np.ndarray) and "accumulate" in self._seeds:
            seeds, accumulate = {**seeds, "accumulate": accumulate}, False
        key = None
        if not seed:
            key = (bool(accumulate), *_identity(seeds), None, *_identity(out or {}))
            if self._last is not None and self._last.key == key:
                self._check_prints()
                return self._last.run()
        given = self._given(seed, seeds)
        targets = self._targets(out or {}, given)
        self._check_prints()
        return self._run(given, targets, bool(accumulate), key)

    def _given(self, seed: tuple[Any, ...], seeds: Mapping[str, Any]) -> dict[str, Array]:
        """Seeds by parameter."""
        if seed:
            if len(seed) > 1 or seeds:
                raise TypeError("give seeds by keyword, or one array, or one mapping")
            if isinstance(seed[0], Mapping):
                seeds = seed[0]
            elif len(self._seeds) == 1:
                seeds = {next(iter(self._seeds)): seed[0]}
            else:
                raise ShadowError(
                    f"{self._kernel.__name__} writes {', '.join(self._seeds)}: name what the seed is for",
                    loc=self._loc,
                    remedy=f"back({next(iter(self._seeds), 'T')}=seed)",
                )
        names = {**{n: n for n in self._seeds.values()}, **self._seeds}
        given = {}
        for key, array in seeds.items():
            if key not in names:
                raise ShadowError(
                    f"{self._kernel.__name__} writes no array {key} that carries derivatives",
                    loc=self._loc,
                    remedy=f"seeds for {', '.join(self._seeds) or '(none)'}",
                )
            check_shadow(names[key], self._values[names[key]], array, what="seed", loc=self._loc)
            given[names[key]] = array
        if not given:
            raise ShadowError(
                "no seed is given", loc=self._loc, remedy=" or ".join(f"back({n}=seed)" for n in self._seeds)
            )
        return given

    def _targets(self, out: Mapping[str, Any], given: Mapping[str, Array]) -> dict[str, Array]:
        """Arrays for results by name of the entry of ``wrt``."""
        names = {**{field_name(w.name): w for w in self._wanted}, **{w.name: w for w in self._wanted}}
        targets = {}
        for key, array in out.items():
            if key not in names or not self._spec.by_name[names[key].parameters[0]].is_array:
                arrays = [w.name for w in self._wanted if self._spec.by_name[w.parameters[0]].is_array]
                raise ShadowError(
                    f"out names {key}, which is no array of wrt", loc=self._loc, remedy=", ".join(arrays) or "no out"
                )
            wanted = names[key]
            check_shadow(wanted.name, self._values[wanted.parameters[0]], array, loc=self._loc)
            for n, seed in given.items():
                if overlap(array, seed):
                    raise AliasError(
                        f"the array for the cotangent of {wanted.name} overlaps the seed of {n}, which is never "
                        "changed",
                        loc=self._loc,
                        remedy="another array",
                    )
            targets[wanted.name] = array
        return targets

    def _run_loop(self, run: LoopRun, given: dict[str, Array], targets: dict[str, Array], accumulate: bool) -> Any:
        """The walk back through the record of a loop kernel, on shadows that stay here."""
        results: dict[str, Any] = {}
        with run.lock:
            for name, shadow in run.shadows.items():
                shadow[...] = given.get(name, 0)
            for cell in run.cells.values():
                cell[...] = 0
            run.backward()
            for w in self._wanted:
                first, *others = w.parameters
                if first in run.cells:
                    results[w.name] = float(run.cells[first][0])
                    continue
                for name in others:
                    run.shadows[first] += run.shadows[name]
                target = targets.get(w.name)
                if target is None:
                    target = np.zeros_like(self._values[first], subok=False)
                target[...] = target + run.shadows[first] if accumulate else run.shadows[first]
                results[w.name] = target
        return named("Cotangents", results)

    def _run(self, given: dict[str, Array], targets: dict[str, Array], accumulate: bool, key: Any) -> Any:
        if self._loop is not None:
            return self._run_loop(self._loop, given, targets, accumulate)
        spec, asked = self._spec, {p for w in self._wanted for p in w.parameters}
        shadows: dict[str, Array] = {}
        keep, assign = set(), set()
        for name in sorted(self._active & set(spec.written)):
            if name in asked:
                continue
            if name in given and spec.keepable(name):
                shadows[name] = given[name]
                keep.add(name)
            else:
                shadows[name] = _filled(self._values[name], given.get(name))
        results: dict[str, Any] = {}
        cells: dict[str, Array] = {}
        fill: list[tuple[Array, Array | None]] = []
        for w in self._wanted:
            for k, name in enumerate(w.parameters):
                if not spec.by_name[name].is_array:
                    cells[name] = np.zeros(1)
                    continue
                own = k > 0 or accumulate or w.name not in targets
                array = np.empty_like(self._values[name], subok=False) if own else targets[w.name]
                shadows[name] = array
                if name in spec.written:
                    fill.append((array, given.get(name)))
                else:
                    assign.add(name)
        operands = Operands(self._values, shadows, cells, saved=self._saved)
        launch = self._kernel.prepare_vjp(spec, operands, keep, assign)
        for array, seed in fill:
            array[...] = 0 if seed is None else seed
        bound = launch.bind()
        small = sum(shadows[w.parameters[0]].nbytes for w in self._wanted if w.parameters[0] in shadows) <= _SMALL
        plain = not (fill or accumulate) and keep == self._active & set(spec.written)
        if key is not None and plain and all(len(w.parameters) == 1 for w in self._wanted):
            entries = [(w.name, w.parameters[0], w.name in targets) for w in self._wanted]
            if small or all(mine or name in cells for _, name, mine in entries):
                self._last = _Repeat(key, bound, entries, shadows, cells)
                return self._last.run()
        bound()
        for w in self._wanted:
            first, *others = w.parameters
            if first in cells:
                results[w.name] = float(cells[first][0])
                continue
            for name in others:
                shadows[first] += shadows[name]
            results[w.name] = shadows[first]
            if accumulate and w.name in targets:
                targets[w.name] += shadows[first]
                results[w.name] = targets[w.name]
        return named("Cotangents", results)

    def _check_prints(self) -> None:
        for name, before in self._prints.items():
            if _fingerprint(self._values[name]) != before:
                raise IradError(
                    f"{name} has changed since {self._kernel.__name__} ran, and its adjoint needs the value it had",
                    loc=self._loc,
                    remedy="irad.pullback(..., copy=True)",
                )


def _identity(arrays: Mapping[str, Any]) -> list[Any]:
    """Says which arrays these are, and how they lie."""
    return [(n, id(a), a.shape, a.strides) if isinstance(a, np.ndarray) else (n, None) for n, a in arrays.items()]


_SMALL = 1 << 18
"""Bytes up to which results are copied out of arrays that a launch is bound to, rather than bound to anew."""


@dataclass
class _Repeat:
    """The last launch of a pullback, for a call with the same arrays. ``entries``: name of each result, parameter, and
    whether it is an array of the caller."""

    key: Any
    bound: Bound
    entries: list[tuple[str, str, bool]]
    shadows: dict[str, Array]
    cells: dict[str, Array]

    def run(self) -> Any:
        for cell in self.cells.values():
            cell[0] = 0.0
        self.bound()
        results: dict[str, Any] = {}
        for name, parameter, mine in self.entries:
            if parameter in self.cells:
                results[name] = float(self.cells[parameter][0])
            else:
                results[name] = self.shadows[parameter] if mine else self.shadows[parameter].copy(order="K")
        return named("Cotangents", results)


def usual_request(spec: Specialisation, asked: frozenset[str]) -> Request:
    """The adjoint that a pullback runs when all seeds are given and all results are new arrays."""
    reached = spec.reached(asked)
    keep = frozenset(n for n in reached - asked if spec.keepable(n))
    assign = frozenset(n for n in asked if spec.by_name[n].is_array and n not in spec.written)
    return Request("adjoint", asked | reached, keep, assign)


class Pushforward:
    """What :func:`pushforward` returns: ``push(T=tangent)`` gives the tangents of what the kernel writes."""

    def __init__(self, kernel: Kernel, args: Sequence[Any], wrt: Any) -> None:
        self._kernel = kernel
        self._spec = kernel.specialise(args)
        self._loc = self._spec.lowered.loc
        values = kernel.values(self._spec, args)
        self._wanted = resolve(self._spec, values, wrt)
        launch = kernel.prepare(args, self._spec)
        self._before = {n: _copy(values[n]) for n in self._spec.written}
        launch.run()
        read = [p.name for p in self._spec.parameters if p.is_array and p.read and not p.written]
        self._values = {**values, **{n: _copy(values[n]) for n in read}}

    def __call__(self, tangents: Mapping[str, Any] | None = None, **by_name: Any) -> Any:
        """Tangents of the written arrays, as a named tuple, for tangents of the entries of ``wrt``.

        ``tangents``: by name, arrays of the shape and dtype of what they belong to, floats for floats; those left out
        are zero. Nothing that was given is changed. Raises ``ShadowError`` for what does not fit.
        """
        given = {**(tangents or {}), **by_name}
        names = {**{field_name(w.name): w for w in self._wanted}, **{w.name: w for w in self._wanted}}
        arrays: dict[str, Array] = {}
        scalars: dict[str, float] = {}
        for key, tangent in given.items():
            if key not in names:
                raise ShadowError(
                    f"{key} is not among what the derivative is asked for",
                    loc=self._loc,
                    remedy=f"tangents of {', '.join(w.name for w in self._wanted)}",
                )
            for name in names[key].parameters:
                if self._spec.by_name[name].is_array:
                    check_shadow(name, self._values[name], tangent, what="tangent", loc=self._loc)
                    arrays[name] = tangent
                else:
                    scalars[name] = _scalar_tangent(name, tangent, self._loc)
        if not given:
            raise ShadowError("no tangent is given", loc=self._loc, remedy=f"push({self._wanted[0].name}=tangent)")
        written = {n: _copy(a) for n, a in self._before.items()}
        out = {}
        for name in self._spec.written:
            if self._spec.by_name[name].differentiable:
                out[name] = arrays[name] = _filled(self._values[name], arrays.get(name))
        operands = Operands({**self._values, **written}, arrays, tangents=scalars)
        self._kernel.prepare_jvp(self._spec, operands).run()
        return named("Tangents", out)


def pullback(kernel: Kernel, *args: Any, wrt: Any = None, copy: bool = True, **kwargs: Any) -> Pullback:
    """Run ``kernel`` on these arguments and return the function that maps seeds to cotangents.

    ``wrt``: names of parameters or captured values, or array objects (default: every float and float array given to
    the call that the kernel reads). ``copy``: keep copies of exactly those arrays that the adjoint reads; with False,
    keep references and a fingerprint, and refuse to go on where such an array has changed.

    >>> import irad, numpy as np
    >>> @irad.kernel
    ... def scale(v, u, a):
    ...     i = irad.points(u)
    ...     v[i] = a * u[i]
    >>> u, v = np.arange(3.0), np.zeros(3)
    >>> back = irad.pullback(scale, v, u, 2.0, wrt=("u", "a"))
    >>> back(v=np.ones(3))
    Cotangents(u=array([2., 2., 2.]), a=3.0)

    Raises what calling the kernel raises, and ``ShadowError`` for a ``wrt`` that carries no derivative.
    """
    return Pullback(_kernel(kernel, "pullback"), kernel.positional(args, kwargs), wrt, copy)


def pushforward(kernel: Kernel, *args: Any, wrt: Any = None, **kwargs: Any) -> Pushforward:
    """Run ``kernel`` on these arguments and return the function that maps tangents to tangents of what it writes.

    >>> import irad, numpy as np
    >>> @irad.kernel
    ... def scale(v, u, a):
    ...     i = irad.points(u)
    ...     v[i] = a * u[i]
    >>> push = irad.pushforward(scale, np.zeros(3), np.arange(3.0), 2.0, wrt=("u", "a"))
    >>> push(u=np.ones(3), a=10.0)
    Tangents(v=array([ 2., 12., 22.]))
    """
    return Pushforward(_kernel(kernel, "pushforward"), kernel.positional(args, kwargs), wrt)


def vjp(kernel: Kernel, *args: Any, wrt: Any = None, **kwargs: Any) -> tuple[Any, Pullback]:
    """``pullback`` without side effects: the written arrays' new values as a named tuple, and the pullback.

    No argument is changed; the kernel works on copies of the arrays that it writes.

    >>> import irad, numpy as np
    >>> @irad.kernel
    ... def square(v):
    ...     i = irad.points(v)
    ...     v[i] = v[i] * v[i]
    >>> out, back = irad.vjp(square, np.array([1.0, 3.0]))
    >>> out, back(np.ones(2))
    (Outputs(v=array([1., 9.])), Cotangents(v=array([2., 6.])))
    """
    positional, outputs = _copied_outputs(_kernel(kernel, "vjp"), kernel.positional(args, kwargs))
    wrt = _by_copies(wrt, kernel.positional(args, kwargs), positional)
    back = Pullback(kernel, positional, wrt, copy=True)
    return named("Outputs", {n: _copy(a) for n, a in outputs.items()}), back


def jvp_of_kernel(kernel: Kernel, primals: Sequence[Any], tangents: Any) -> tuple[Any, Any]:
    """New values and tangents of the written arrays, each a named tuple; no argument is changed.

    ``tangents``: one for each primal (None: zero), or a mapping by name, captured values included.
    """
    args = kernel.positional(tuple(primals), {})
    positional, outputs = _copied_outputs(kernel, args)
    spec = kernel.specialise(args)
    names = [p.name for p in spec.parameters if p.capture is None]
    if not isinstance(tangents, Mapping):
        if len(tangents) != len(primals):
            raise ShadowError(f"{len(primals)} primals and {len(tangents)} tangents are given", loc=spec.lowered.loc)
        tangents = {n: t for n, t in zip(names, tangents, strict=False) if t is not None}
    push = Pushforward(kernel, positional, list(tangents))
    return named("Outputs", {n: _copy(a) for n, a in outputs.items()}), push(tangents)


def _copied_outputs(kernel: Kernel, args: Sequence[Any]) -> tuple[list[Any], dict[str, Array]]:
    """The arguments with copies in place of arrays that the kernel writes; these copies by name."""
    spec = kernel.specialise(args)
    result, outputs = list(args), {}
    explicit = [p for p in spec.parameters if p.capture is None]
    for p in spec.parameters:
        if p.written and p.capture is not None:
            raise ShadowError(
                f"{kernel.__name__} writes {p.name}, which it captures: it has side effects",
                loc=spec.lowered.loc,
                remedy=f"pass {p.name} as an argument, or use irad.pullback and irad.pushforward",
            )
    for k, p in enumerate(explicit):
        if p.written:
            result[k] = outputs[p.name] = _copy(args[k])
    return result, outputs


def _by_copies(wrt: Any, args: Sequence[Any], copies: Sequence[Any]) -> Any:
    """``wrt`` with array objects replaced by what stands in for them."""

    def stand_in(entry: Any) -> Any:
        return next((c for a, c in zip(args, copies, strict=True) if a is entry), entry)

    if isinstance(wrt, (list, tuple)):
        return [stand_in(w) if isinstance(w, np.ndarray) else w for w in wrt]
    return stand_in(wrt) if isinstance(wrt, np.ndarray) else wrt


def _kernel(kernel: Any, function: str) -> Kernel:
    if not isinstance(kernel, Kernel):
        raise IradError(
            f"irad.{function} takes a kernel, not {type(kernel).__name__}", remedy="decorate it with @irad.kernel"
        )
    return kernel


def _scalar_tangent(name: str, tangent: Any, loc: object) -> float:
    if isinstance(tangent, bool) or not isinstance(tangent, (int, float, np.integer, np.floating)):
        raise ShadowError(f"the tangent of {name} is of type {type(tangent).__name__}", loc=loc, remedy="a float")
    return float(tangent)


def _copy(a: Array) -> Array:
    """A copy of the same order, without gaps."""
    return np.array(a, order="K", subok=False)


def _filled(like: Array, content: Array | None) -> Array:
    if content is None:
        return np.zeros_like(like, subok=False)
    result = np.empty_like(like, subok=False)
    np.copyto(result, content)
    return result


def _fingerprint(a: Array) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(a).data, digest_size=16).digest()
