"""irad's own target of Numba, for loop kernels: the CPU's, except for three things that the passes need otherwise.

* What Numba implements in Python (``np.zeros``, ``np.where``, assignment of slices, …) is compiled like the kernel
  itself: neither optimised nor vectorised, with the user's float semantics. Numba's CPU target would hand over
  libraries that LLVM has rewritten before anything was hidden from it (``passes/guard.py``).
* An exception is a number. Numba returns a status and leaves a pickled object behind a pointer; here the status alone
  says which exception it is: :func:`exceptions_in` looks the numbers up. A number depends on nothing but the exception.
* The index of a broadcast operand is a ``select`` on its extent, where Numba keeps it in a variable that a branch
  updates: a value carried round the loop would have to be recorded for every entry of every array expression.

Numba's extension interface (``numba.core.target_extension``) chooses a target by thread, so that Numba code of other
threads, and of the user, is compiled as always.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llvmlite import ir as llvmir
from numba.core import callconv, registry, sigutils, targetconfig
from numba.core.compiler import Flags
from numba.core.dispatcher import Dispatcher
from numba.core.target_extension import (
    CPU,
    JitDecorator,
    dispatcher_registry,
    jit_registry,
    target_override,
    target_registry,
)
from numba.extending import overload
from numba.np import arrayobj, npyimpl

TARGET = "irad"


@dataclass(frozen=True)
class Raised:
    """An exception that a loop kernel may raise: its class, its arguments, and the user's file and line."""

    type: type[BaseException]
    args: tuple[Any, ...]
    file: str = ""
    line: int = 0

    def exception(self) -> BaseException:
        """The exception as Python would raise it; from Python 3.11 on with a note of the line."""
        error = self.type(*self.args)
        if self.line and hasattr(error, "add_note"):
            error.add_note(f"raised by a kernel at {self.file}:{self.line}")
        return error


_raised: dict[int, Raised] = {}
_STATUS = re.compile(r"\bi32 (\d{6,10})\b")


def status_of(raised: Raised) -> int:
    """The number of an exception: 6 to 10 digits, the same in every process."""
    key = f"{raised.type.__module__}.{raised.type.__qualname__}{raised.args!r}{raised.file}:{raised.line}"
    number = 1_000_000 + zlib.crc32(key.encode()) % 2_000_000_000
    while _raised.setdefault(number, raised) != raised:
        number += 1
    return number


def exceptions_in(text: str) -> dict[int, Raised]:
    """The exceptions whose numbers occur in an LLVM text."""
    found = sorted({int(number) for number in _STATUS.findall(text)})
    return {number: _raised[number] for number in found if number in _raised}


class _CallConv(callconv.CPUCallConv):  # type: ignore[misc]
    """Numba's calling convention, with numbers for exceptions."""

    def return_user_exc(
        self, builder: Any, exc: Any, exc_args: Any = None, loc: Any = None, func_name: Any = None
    ) -> None:
        raised = Raised(exc or RuntimeError, _arguments(exc_args), *_place(builder, loc))
        self._return_errcode_raw(builder, llvmir.Constant(callconv.errcode_t, status_of(raised)))

    def return_dynamic_user_exc(
        self, builder: Any, exc: Any, exc_args: Any, nb_types: Any, loc: Any = None, func_name: Any = None
    ) -> None:
        known = tuple("(known at run time)" if isinstance(a, llvmir.Value) else a for a in exc_args or ())
        self.return_user_exc(builder, exc, known, loc)

    def return_status_propagate(self, builder: Any, status: Any) -> None:
        self._return_errcode_raw(builder, status.code)


def _arguments(args: Any) -> tuple[Any, ...]:
    """Arguments of an exception, without the line of Numba's own source that Numba puts into some messages."""
    return tuple(a.split("\nFile ")[0] if isinstance(a, str) else a for a in args or ())


def _place(builder: Any, loc: Any) -> tuple[str, int]:
    """The user's file and line of the code that is being lowered; nothing for what is not the user's."""
    file, line = "", 0
    if loc is not None:
        file, line = loc.filename, loc.line
    elif builder.debug_metadata is not None:
        location: dict[str, Any] = dict(builder.debug_metadata.operands)
        line = int(getattr(location["line"], "constant", location["line"]))
        file = str(dict(dict(location["scope"].operands)["file"].operands)["filename"])
    return ("", 0) if not file or file.startswith(_LIBRARIES) else (file, line)


_LIBRARIES = (str(Path(registry.__file__).parent.parent), str(Path(__file__).parent), "<dynamic>")


class _Context:
    """What a target context of Numba's CPU becomes: with irad's calling convention.

    Numba finds again what it compiled for an overload by the flags of the caller. So everything here has flags that
    nothing of the user's has, subroutines that Numba compiles by default flags included."""

    @property
    def call_conv(self) -> Any:
        return _CallConv(self)

    def _compile_subroutine_no_cache(
        self, builder: Any, impl: Any, sig: Any, locals: Any = None, flags: Any = None
    ) -> Any:
        compile_subroutine = super()._compile_subroutine_no_cache  # type: ignore[misc]
        return compile_subroutine(builder, impl, sig, locals or {}, flags or only_ir(Flags()))


class Irad(CPU):  # type: ignore[misc]
    """Marks irad's target in Numba's hierarchy of targets: whatever serves the CPU serves it."""


class _Target(registry.CPUTarget):  # type: ignore[misc]
    """Numba's typing, and the target context that :func:`compiling_for` is given."""

    context: Any = None

    @property
    def target_context(self) -> Any:
        return self.context

    @property
    def typing_context(self) -> Any:
        return registry.cpu_target.typing_context


_target = _Target(TARGET)


class _Entry:
    """Stands for a compiled function in Numba's tables, where the CPU target has the callable."""

    def __call__(self) -> None:
        raise NotImplementedError("never compiled to machine code")


class _Dispatcher(Dispatcher):  # type: ignore[misc]
    """What Numba implements in Python, compiled to LLVM IR only."""

    targetdescr = _target
    _compiler: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._compiler._customize_flags = only_ir

    def compile(self, sig: Any) -> Any:
        args, return_type = sigutils.normalize_signature(sig)
        known = self.overloads.get(tuple(args))
        if known is None:
            with target_override(TARGET):
                result = self._compiler.compile(args, return_type)
            entry = _Entry()
            known = result._replace(entry_point=entry)
            _target.context.insert_user_function(entry, known.fndesc, [known.library])
            self.overloads[tuple(args)] = known
        return known.entry_point


def only_ir(flags: Any) -> Any:
    """Flags with which Numba makes unoptimised LLVM IR that knows the user's lines, and no machine code."""
    flags.no_compile = True
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.enable_pyobject = False
    flags.enable_looplift = False
    flags.boundscheck = False
    flags.debuginfo = True
    flags.dbg_directives_only = True
    flags.dbg_extend_lifetimes = False
    outer = targetconfig.ConfigStack.top_or_none()
    if outer is not None:
        flags.nrt = outer.nrt
        flags.error_model = outer.error_model
        flags.fastmath = outer.fastmath
    return flags


class _Jit(JitDecorator):  # type: ignore[misc]
    """The decorator with which Numba compiles its own functions for this target."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.options = options

    def __call__(self, function: Any) -> Any:
        options = {**self.options, "nopython": True}
        for name in ("cache", "parallel", "_target", "target"):
            options.pop(name, None)
        return _Dispatcher(function, targetoptions=options)


target_registry[TARGET] = Irad
dispatcher_registry[Irad] = _Dispatcher
jit_registry[Irad] = _Jit


@overload(arrayobj.raise_with_shape_context, target=TARGET)
def _raise_with_shapes(src_shapes, index_shape):  # type: ignore[no-untyped-def]
    """Numba puts the shapes into the message, which takes a hundred functions on strings."""

    def impl(src_shapes, index_shape):  # type: ignore[no-untyped-def]
        raise ValueError("cannot assign slice from input of different size")

    return impl


def _update_indices(helper: Any, loop_indices: Any, name: Any) -> None:
    """``_ArrayIndexingHelper.update_indices`` without a branch: index 0 where the operand is broadcast."""
    builder = helper.array.builder
    for source, target, extent in zip(
        loop_indices[len(loop_indices) - len(helper.indices) :], helper.indices, helper.array.shape, strict=False
    ):
        wide = builder.icmp_unsigned(">", extent, extent.type(1))
        builder.store(builder.select(wide, source, source.type(0)), target)


@contextmanager
def compiling_for(context: Any) -> Iterator[None]:
    """Compile for irad's target on this thread, with a target context from :func:`adapted`. The compiler lock is held:
    nothing else is lowered meanwhile."""
    before = _target.context, npyimpl._ArrayIndexingHelper.update_indices
    _target.context, npyimpl._ArrayIndexingHelper.update_indices = context, _update_indices
    try:
        with target_override(TARGET):
            yield
    finally:
        _target.context, npyimpl._ArrayIndexingHelper.update_indices = before


def adapted(context: Any) -> Any:
    """Make a copy of Numba's CPU context one of irad's target."""
    context.target_name, context.target = TARGET, Irad
    context.__class__ = type("LoopContext", (_Context, type(context)), {})
    return context


__all__ = ["Irad", "Raised", "adapted", "compiling_for", "exceptions_in", "status_of"]
