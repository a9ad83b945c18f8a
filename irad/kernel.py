"""``irad.kernel``: a Python function that mutates arrays, compiled for the types it is called with.

A :class:`Kernel` turns a call into values by parameter, finds the specialisation for their types and hands both on.
Calls of the usual kind never come here: compiled code (``irad/launch``) takes them, and gives back whatever it does
not like.
"""

from __future__ import annotations

import functools
import inspect
import threading
import types as pytypes
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irad import recording
from irad.annotations import check_shadow
from irad.errors import IradError, ShadowError
from irad.frontend import ArrayType, Options, typeof
from irad.launch.arrays import Array
from irad.launch.bound import Bound
from irad.launch.launcher import ArraySpec, Launcher, ScalarSpec, Spec, set_recording
from irad.launch.variant import left_out
from irad.launching import Launch, Operands, check_arrays, prepare, sample
from irad.loops import LoopTangent, refuse_adjoint_alone
from irad.specialise import Parameter, Request, Specialisation

_KEPT = 8  # specialisations kept for one tuple of argument types: they differ in what is captured
_FAST = 16  # variants that compiled code tries; calls of further ones go through Python

recording.on_change.append(set_recording)


class Kernel(Launcher):
    """A kernel: call it like the function it was made from. See :func:`kernel`.

    A call runs the kernel on these arguments. It raises, before anything is written: ``AliasError`` for overlap of what
    is written, ``DomainError`` for accesses outside arrays, ``RaceError`` and ``NotDifferentiableError`` for what the
    kernel may not do, ``IradError`` for values that no kernel takes, ``TypeError`` for a wrong number of arguments.

    Attributes: ``py_func`` (also ``__wrapped__``), the Python function; ``options``, how it is compiled; ``signature``.
    """

    __irad_kernel__ = True

    def __init__(self, function: pytypes.FunctionType, options: Options, cache: bool = True) -> None:
        super().__init__(self._slow_call)
        functools.update_wrapper(self, function)
        self.py_func = function
        self.options = options
        self.cache = cache
        self.__name__ = options.name or function.__name__
        self.signature = inspect.signature(function)
        self._lock = threading.RLock()
        self._specialisations: dict[tuple[Any, ...], list[Specialisation]] = {}
        self._order: dict[Spec, tuple[int, int]] = {}

    # calls -----------------------------------------------------------------------------------------------------------

    def _slow_call(self, *args: Any, **kwargs: Any) -> None:
        """A call that compiled code did not take."""
        recorder = recording.active()
        if recorder is not None:
            recorder.launch(self, args, kwargs)
            return
        values = self.positional(args, kwargs)
        spec = self.specialise(values)
        launch = self.prepare(values, spec)
        launch.run()
        self._remember(spec, launch)

    def _remember(self, spec: Specialisation, launch: Launch) -> None:
        """Let compiled code take calls like this one from now on; it knows of no exceptions of a kernel's own."""
        if spec.is_loop:
            return
        with self._lock:
            if len(self.specs) >= _FAST or any(s.executable is launch.executable for s in self.specs):
                return
            arguments: list[ArraySpec | ScalarSpec] = []
            for p in spec.parameters:
                if isinstance(p.type, ArrayType):
                    unit = frozenset(d for name, d in launch.variant.unit if name == p.name)
                    apart = left_out(p.type.rank, unit, launch.variant.reverse)
                    arguments.append(ArraySpec(p.type.dtype, p.type.rank, p.written, unit, apart))
                else:
                    arguments.append(ScalarSpec(p.type.kind))
            try:
                new = Spec(
                    launch.executable,
                    arguments,
                    [c.slot for c in spec.lowered.captures],
                    [(c.slot, c.value) for c in spec.lowered.constants],
                )
            except ValueError:  # too many words, or captured from an unusual place
                return
            # What assumes most comes first: a variant for any strides takes every array.
            self._order[new] = (-len(launch.variant.unit), len(launch.variant.wraps))
            self.set_specs(sorted((*self.specs, new), key=self._order.__getitem__))

    def bind(self, *args: Any, **kwargs: Any) -> Bound:
        """The launch on these arguments with everything decided and checked: ``bound()`` repeats it.

        ``bound()`` reads and writes the arrays given here; captured values are those of this moment. ``bound.set(name,
        value)`` changes a float scalar.

        >>> import irad, numpy as np
        >>> @irad.kernel
        ... def double(v, u):
        ...     i = irad.points(u)
        ...     v[i] = 2 * u[i]
        >>> u, v = np.ones(3), np.zeros(3)
        >>> bound = double.bind(v, u)
        >>> u[:] = 5.0
        >>> bound(); v
        array([10., 10., 10.])
        """
        return self.prepare(self.positional(args, kwargs)).bind()

    def positional(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """Arguments in order of the parameters, defaults filled in."""
        if not kwargs and len(args) == len(self.signature.parameters):
            return tuple(args)
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"{self.__name__}(): {e}") from None
        bound.apply_defaults()
        return bound.args

    # what autodiff, the tape and the integrators use -----------------------------------------------------------------

    def specialise(self, args: Sequence[Any]) -> Specialisation:
        """The kernel for arguments of these types, compiled on first use."""
        types = tuple(self._type(name, a) for name, a in zip(self.signature.parameters, args, strict=True))
        with self._lock:
            known = self._specialisations.setdefault(types, [])
            for spec in known:
                if spec.fresh():
                    return spec
            spec = Specialisation(self.py_func, types, self.options, self.cache)
            known.insert(0, spec)
            del known[_KEPT:]
            return spec

    def values(self, spec: Specialisation, args: Sequence[Any]) -> dict[str, Any]:
        """Values of all parameters by name, captured ones looked up now."""
        given = iter(args)
        values = {p.name: next(given) if p.capture is None else p.capture.get() for p in spec.parameters}
        for p in spec.parameters:
            if p.capture is not None and typeof(values[p.name]) != p.type:
                raise IradError(
                    f"the captured {p.name} of {self.__name__} changed its type during the call, in another thread",
                    loc=spec.lowered.loc,
                    remedy="change what kernels capture between calls",
                )
        return values

    def prepare(self, args: Sequence[Any], spec: Specialisation | None = None) -> Launch:
        """The checked launch of the kernel itself."""
        spec = spec or self.specialise(args)
        values = self.values(spec, args)
        self.check(spec, values)
        return prepare(spec, Request(), Operands(values))

    def check(
        self, spec: Specialisation, values: Mapping[str, Any], shadows: Mapping[str, Array] | None = None
    ) -> None:
        """Raise unless the kernel may run on these values; ``shadows`` must be apart from all arrays, too."""
        arrays = {p.name: values[p.name] for p in spec.parameters if p.is_array}
        arrays.update({f"{name}'": shadow for name, shadow in (shadows or {}).items()})
        check_arrays(arrays, spec.written, spec.lowered.loc)

    def params(self, args: Sequence[Any]) -> tuple[Parameter, ...]:
        """The parameters for arguments of these types: names in order, captured ones last, which are written."""
        return self.specialise(args).parameters

    def adjoint_needs(
        self, args: Sequence[Any], active: Iterable[str]
    ) -> tuple[frozenset[str], tuple[tuple[int, str, str], ...]]:
        """What an adjoint with respect to ``active`` reads of the primal: arrays as the kernel leaves them, and
        ``(stage, array, alias)`` for arrays as they are before a stage."""
        spec = self.specialise(args)
        if spec.is_loop:
            refuse_adjoint_alone(spec)
        known = frozenset(active)
        program = sample(spec, Request("adjoint", known | spec.reached(known)), self.values(spec, args))
        return program.reads, program.saves

    def bind_vjp(
        self,
        args: Sequence[Any],
        shadows: Mapping[str, Array],
        scalar_cotangents: Mapping[str, Array] | None = None,
        *,
        keep_seed: Iterable[str] = (),
        assign: Iterable[str] = (),
        saved: Mapping[str, Array] | None = None,
    ) -> Bound:
        """The adjoint alone, bound: the kernel has run, or its results are not needed.

        ``shadows``: cotangents of arrays by name, captured ones included, with shape and dtype of their arrays. Those
        of arrays that the kernel only reads are added to (``assign``: overwritten, whatever they held); those of
        written arrays hold the seed and are left with the cotangent of the old value (``keep_seed``: only read).
        ``scalar_cotangents``: float64 arrays of one element, added to. ``saved``: copies of arrays as they were before
        a stage, by the aliases that :meth:`adjoint_needs` names.
        """
        spec = self.specialise(args)
        values = self.values(spec, args)
        return self.prepare_vjp(
            spec, Operands(values, shadows, scalar_cotangents or {}, saved=saved or {}), keep_seed, assign
        ).bind()

    def prepare_vjp(
        self, spec: Specialisation, operands: Operands, keep_seed: Iterable[str] = (), assign: Iterable[str] = ()
    ) -> Launch:
        """The checked adjoint launch behind :meth:`bind_vjp`."""
        if spec.is_loop:
            refuse_adjoint_alone(spec)
        given, keep_seed, assign = frozenset((*operands.shadows, *operands.cells)), tuple(keep_seed), tuple(assign)
        loc = spec.lowered.loc
        for name in (*given, *keep_seed, *assign):
            self._check_active(spec, name)
        unseeded = self._unseeded(spec, operands, given)
        operands = replace(operands, shadows={**operands.shadows, **unseeded})
        request = Request("adjoint", given | set(unseeded), frozenset((*keep_seed, *unseeded)), frozenset(assign))
        program = sample(spec, request, operands.values)
        arrays: dict[str, Array] = {n: operands.values[n] for n in program.reads}
        for _, array, alias in program.saves:
            if alias not in operands.saved:
                raise ShadowError(f"the adjoint of {self.__name__} needs {array} as it was ({alias})", loc=loc)
            check_shadow(array, operands.values[array], operands.saved[alias], what="saved copy", loc=loc)
            arrays[alias] = operands.saved[alias]
        for name, shadow in operands.shadows.items():
            check_shadow(name, operands.values[name], shadow, loc=loc)
            arrays[f"seed of {name}" if name in request.keep_seed else f"{name}'"] = shadow
        check_arrays(arrays, (), loc)
        for name, cell in operands.cells.items():
            if cell.dtype != np.float64 or cell.size != 1:
                raise ShadowError(f"the cotangent of {name} is added to a float64 array of one element", loc=loc)
        saves = {alias for _, _, alias in program.saves}
        needed = {alias: a for alias, a in operands.saved.items() if alias in saves}
        return prepare(spec, request, Operands(operands.values, operands.shadows, operands.cells, saved=needed))

    def _unseeded(self, spec: Specialisation, operands: Operands, given: frozenset[str]) -> dict[str, Array]:
        """Zero seeds of written arrays that carry derivatives and have no shadow. They must stay zero, call by call."""
        result = {}
        for name in spec.reached(given) - given:
            if not spec.keepable(name):
                raise ShadowError(
                    f"several statements of {self.__name__} hand derivatives on through {name}, which has no shadow",
                    loc=spec.lowered.loc,
                    remedy=f"a shadow for {name}, filled with zeros before each call",
                )
            result[name] = np.zeros_like(operands.values[name], subok=False)
        return result

    def bind_jvp(
        self,
        args: Sequence[Any],
        tangents: Mapping[str, Array],
        scalar_tangents: Mapping[str, float] | None = None,
    ) -> Bound:
        """The kernel and its forward derivative in one launch, bound.

        ``tangents``: of arrays by name, captured ones included; those of written arrays are written where the kernel
        writes. Arrays that depend on these and are not among them get a private tangent that starts at zero.
        """
        spec = self.specialise(args)
        return self.prepare_jvp(
            spec, Operands(self.values(spec, args), tangents, tangents=scalar_tangents or {})
        ).bind()

    def prepare_jvp(self, spec: Specialisation, operands: Operands) -> Launch | LoopTangent:
        """The checked tangent launch behind :meth:`bind_jvp`."""
        given = frozenset((*operands.shadows, *operands.tangents))
        for name in given:
            self._check_active(spec, name)
        shadows = dict(operands.shadows)
        for name in spec.reached(given) - given:
            shadows[name] = np.zeros_like(operands.values[name])
        loc = spec.lowered.loc
        for name, shadow in shadows.items():
            check_shadow(name, operands.values[name], shadow, what="tangent", loc=loc)
        arrays = {p.name: operands.values[p.name] for p in spec.parameters if p.is_array}
        arrays.update({f"tangent of {name}": shadow for name, shadow in shadows.items()})
        written = {title for name in spec.written for title in (name, f"tangent of {name}")}
        check_arrays(arrays, written, loc)
        if spec.is_loop:
            return LoopTangent(spec, Operands(operands.values, shadows, tangents=operands.tangents))
        request = Request("tangent", frozenset((*given, *shadows)))
        return prepare(spec, request, Operands(operands.values, shadows, tangents=operands.tangents))

    def _check_active(self, spec: Specialisation, name: str) -> None:
        p = spec.by_name.get(name)
        if p is None:
            known = ", ".join(spec.by_name)
            raise ShadowError(f"{self.__name__} has no parameter {name}; it has {known}", loc=spec.lowered.loc)
        if not p.differentiable:
            raise ShadowError(
                f"{name} is {p.type}, which carries no derivative",
                loc=spec.lowered.loc,
                remedy="float64 or float32" if p.is_array else "pass a float",
            )

    def _type(self, name: str, value: Any) -> Any:
        try:
            return typeof(value)
        except IradError as e:
            code = self.py_func.__code__
            where = f"{code.co_filename}:{code.co_firstlineno}"
            raise type(e)(f"argument {name} of {self.__name__}: {e.reason}", loc=where, remedy=e.remedy) from None

    # looking inside --------------------------------------------------------------------------------------------------

    def explain(self, *args: Any, wrt: Any = None, timed: bool = False, **kwargs: Any) -> None:
        """Print how the kernel and its adjoint run on these arguments.

        ``wrt``: names of parameters or captured arrays (default: everything that can carry a derivative). Printed are
        the sweeps of the primal and of the adjoint in order, what is saved before the kernel runs, what a pullback
        copies, and bytes and flops a point. Nothing is run, except with ``timed=True``: then kernel and adjoint run on
        copies, and their times and effective memory throughput (T_eff) are printed as well.
        """
        from irad.explain import report

        print(report(self, self.positional(args, kwargs), wrt, timed))

    def inspect_llvm(self, stage: str = "primal") -> dict[str, str]:
        """LLVM text by signature, of everything compiled so far.

        ``stage``: ``"frontend"`` (Numba's, before any pass), ``"primal"``, ``"tangent"``, ``"adjoint"`` (as the passes
        made it), or one of the last three with ``" optimised"`` behind it (as the machine code was made from).
        """
        from irad.explain import llvm_texts

        return llvm_texts(self, stage)

    def inspect_asm(self, stage: str = "primal") -> dict[str, str]:
        """Assembly text by signature of everything compiled so far; ``stage`` is ``"primal"``, ``"tangent"`` or
        ``"adjoint"``."""
        from irad.explain import asm_texts

        return asm_texts(self, stage)

    def specialisations(self) -> list[Specialisation]:
        """All specialisations made so far."""
        with self._lock:
            return [spec for known in self._specialisations.values() for spec in known]

    def __repr__(self) -> str:
        return f"<irad.kernel {self.py_func.__qualname__}>"

    def __reduce__(self) -> str:
        return self.py_func.__qualname__


def kernel(
    function: Any = None,
    *,
    fastmath: bool | Iterable[str] = False,
    boundscheck: bool | None = None,
    cache: bool = True,
    name: str | None = None,
) -> Any:
    """Make a function that mutates arrays a kernel, with an exact adjoint.

    The function names a launch domain (``irad.interior``, ``irad.points``, ``irad.domain``) and says what happens at
    one point, or consists of statements over the operators of ``irad.fd``, or is a *loop kernel*: ordinary Numba code,
    run as it is written, with any control flow, local arrays, slices and whole-array expressions. It takes arrays of
    rank 1 to 4 with any strides, floats, integers and booleans, and is compiled for the types of each call.

    A loop kernel may raise: its exceptions come through, and what it had written by then is written. Where Numba and
    NumPy differ, it does as Numba: ``a[1:] += a[:-1]`` runs entry by entry.

    ``fastmath``: allow rearranged arithmetic (True, or LLVM's flags by name). ``boundscheck``: False leaves the indices
    of a loop kernel unchecked (else ``IndexError``); those of others are checked before a launch at no cost, always.
    ``cache``: keep compiled code for later processes, where the machine has a cache folder. ``name``: replaces the
    function's name.

    >>> import irad, numpy as np
    >>> @irad.kernel
    ... def laplacian(out, u, h):
    ...     i, j = irad.interior(u)
    ...     out[i, j] = (u[i+1, j] + u[i-1, j] + u[i, j+1] + u[i, j-1] - 4*u[i, j]) / h**2
    >>> u = np.add.outer(np.arange(4.0)**2, np.zeros(4))
    >>> out = np.zeros_like(u)
    >>> laplacian(out, u, 1.0)
    >>> out[1:-1, 1:-1]
    array([[2., 2.],
           [2., 2.]])

    Raises ``IradError`` for what is no Python function; refusals of its body come with the first call.
    """
    if function is None:
        return functools.partial(kernel, fastmath=fastmath, boundscheck=boundscheck, cache=cache, name=name)
    if isinstance(function, Kernel) or not isinstance(function, pytypes.FunctionType):
        what = "a kernel" if isinstance(function, Kernel) else type(function).__name__
        raise IradError(f"irad.kernel takes a function, not {what}", remedy="decorate a def")
    flags = fastmath if isinstance(fastmath, bool) else frozenset(fastmath)
    return Kernel(function, Options(flags, boundscheck, name), cache)
