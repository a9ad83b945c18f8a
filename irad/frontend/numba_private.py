"""Every entry point of Numba that is not public, in one place.

Numba 0.62 to 0.68 were read for this file. It does four things with them: makes Numba IR from a function, compiles
such IR for given types *without* running LLVM's optimiser (Numba would do so on every library it makes), compiles
helpers on demand while their caller is being typed, and names the parts of Numba IR that the rest of the frontend
handles (``ir``).

What is compiled through :func:`compile_ir`, and whatever Numba compiles for it as a subroutine (``int_power``, …),
stays unoptimised. NumPy functions that Numba implements in Python (``np.clip``, …) come from Numba's own libraries.
"""

from __future__ import annotations

import re
import threading
import types as pytypes
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
from numba.core import analysis, cgutils, compiler, cpu, debuginfo, errors, registry
from numba.core import ir as _ir
from numba.core import types as _types
from numba.core.codegen import CodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from irad.errors import IradError
from irad.frontend.numba_target import adapted, compiling_for
from irad.frontend.scalars import ScalarContext

__all__ = [
    "Compiled",
    "Dispatcher",
    "NumbaFailure",
    "compile_ir",
    "compiler_lock",
    "control_flow",
    "current_session",
    "ir",
    "link",
    "numba_ir",
    "resolvable",
    "session",
    "types",
]

compiler_lock = global_compiler_lock
ir: Any = _ir
types: Any = _types

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


class _RawLibrary(CodeLibrary):
    """A code library that keeps the text of its modules as they come, and what they link to."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.texts: list[str] = []
        self.linked: list[Any] = []

    def add_ir_module(self, ir_module: Any) -> None:
        self.texts.append(cgutils.normalize_ir_text(str(ir_module)))

    def add_linking_library(self, library: Any) -> None:
        if library not in self.linked:
            self.linked.append(library)

    def enable_object_caching(self) -> None:
        pass

    def finalize(self) -> None:
        self._finalized = True

    def get_function(self, name: str) -> Any:
        raise NotImplementedError(name)

    def get_llvm_str(self) -> str:
        return "\n".join(self.texts)

    def get_asm_str(self) -> str:
        raise NotImplementedError("never compiled")


class _RawCodegen:
    """Numba's code generator, except that libraries are raw."""

    def __init__(self, base: Any) -> None:
        self._base = base

    def create_library(self, name: str, **_: Any) -> _RawLibrary:
        return _RawLibrary(self, name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)


class _Lines(debuginfo.DIBuilder):
    """Debug information that says the user's file and line, and nothing of types (which costs time and text)."""

    def __init__(self, module: Any, filepath: str, cgctx: Any, directives_only: bool) -> None:
        self._file = filepath
        self._known: dict[tuple[int, int], Any] = {}
        super().__init__(module, filepath, cgctx, directives_only)

    def _di_file(self) -> Any:
        return self.module.add_debug_info("DIFile", {"directory": "", "filename": self._file})

    def _di_subroutine_type(self, line: int, function: Any, argmap: Any) -> Any:
        return self.module.add_debug_info("DISubroutineType", {"types": self.module.add_metadata([])})

    def mark_variable(self, *args: Any, **kwargs: Any) -> None:
        pass

    def _di_location(self, line: int) -> Any:
        key = (line, len(self.subprograms))
        if key not in self._known:
            self._known[key] = super()._di_location(line)
        return self._known[key]


_contexts: dict[bool | frozenset[str], Any] = {}


def _target_context(fastmath: bool | frozenset[str]) -> Any:
    """The context of irad's target with raw code generation; one for each setting, as each caches subroutines."""
    if fastmath not in _contexts:
        base = registry.cpu_target.target_context
        base.typing_context.refresh()
        base.refresh()  # before its copies: the first one sets up Numba's runtime
        context = base.subtarget(_internal_codegen=_RawCodegen(base.codegen()), DIBuilder=_Lines)
        context.__class__ = ScalarContext
        _contexts[fastmath] = adapted(context)
    return _contexts[fastmath]


def _flags(fastmath: bool | frozenset[str], loop: bool = False, boundscheck: bool = False) -> Any:
    """``loop``: the kernel may make local arrays; ``boundscheck``: and its indices are checked."""
    flags = compiler.Flags()
    flags.nrt = loop
    flags.boundscheck = boundscheck
    flags.no_compile = True
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.error_model = "numpy"
    flags.debuginfo = True
    flags.dbg_directives_only = True  # lines only: full debug info would spill every variable and forbid inlining
    flags.fastmath = cpu.FastMathOptions(set(fastmath) if isinstance(fastmath, frozenset) else fastmath)
    return flags


class Compiled:
    """A Numba function in LLVM IR: the name of its symbol, Numba's types of result and arguments, LLVM's of each
    argument, and its library."""

    def __init__(self, result: Any) -> None:
        self.fndesc = result.fndesc
        self.symbol: str = result.fndesc.llvm_func_name
        self.signature = result.signature
        self.library: _RawLibrary = result.library
        self.typemap: dict[str, Any] = result.fndesc.typemap
        context = result.target_context
        function_type = context.call_conv.get_function_type(result.fndesc.restype, result.fndesc.argtypes)
        self.argument_types = [str(t) for t in function_type.args[2:]]


class Session:
    """What compilations nested in one another share: the first refusal, the flags, and the helpers compiled so far.

    ``loop``, ``boundscheck``: see :func:`_flags`. Loop kernels are compiled for a target of irad's own."""

    def __init__(self, fastmath: bool | frozenset[str]) -> None:
        self.fastmath = fastmath
        self.loop = self.boundscheck = False
        self.error: Exception | None = None
        self.helpers: dict[object, Compiled] = {}


_local = threading.local()


@contextmanager
def session(fastmath: bool | frozenset[str]) -> Iterator[Session]:
    """Mark the extent of one lowering (Numba types helpers while it types their caller)."""
    outer = getattr(_local, "session", None)
    _local.session = Session(fastmath)
    try:
        yield _local.session
    finally:
        _local.session = outer


def current_session() -> Session:
    """The lowering in progress on this thread."""
    current: Session = _local.session
    return current


class NumbaFailure(Exception):
    """Numba could not compile something; ``error`` is what it said."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@contextmanager
def _failures() -> Iterator[None]:
    """Numba fails with many classes of exceptions. What irad raises within passes through."""
    try:
        yield
    except (IradError, NumbaFailure):
        raise
    except Exception as e:
        raise NumbaFailure(e) from e


def numba_ir(function: pytypes.FunctionType) -> Any:
    """A fresh Numba IR of a Python function, inner functions inlined. Needs bytecode only, no source."""
    with _failures():
        func_ir = compiler.run_frontend(function, inline_closures=True)
    for block in func_ir.blocks.values():
        block.body = [_undo_folding(statement) for statement in block.body]
    return func_ir


def _undo_folding(statement: Any) -> Any:
    """Numba folds constant indices and exponents of an inner function before it knows the variables that this one
    takes from around it, and reads them as ``None``. They are folded again, rightly, when the whole is compiled."""
    if isinstance(statement, ir.StaticSetItem):
        return ir.SetItem(statement.target, statement.index_var, statement.value, statement.loc)
    value = getattr(statement, "value", None)
    if isinstance(statement, ir.Assign) and isinstance(value, ir.Expr):
        if value.op == "static_getitem" and value.index_var is not None:
            new = ir.Expr.getitem(value.value, value.index_var, value.loc)
            return ir.Assign(new, statement.target, statement.loc)
        if value.op in ("binop", "inplace_binop"):
            value.static_lhs = value.static_rhs = ir.UNDEFINED
    return statement


def compile_ir(func_ir: Any, args: tuple[Any, ...], fastmath: bool | frozenset[str], returns: Any = None) -> Compiled:
    """Type and lower Numba IR, which is consumed. ``returns``: the result's type, where it is known."""
    session = current_session()
    context = _target_context(fastmath)
    flags = _flags(fastmath, session.loop, session.boundscheck)
    with _failures(), warnings.catch_warnings(), compiling_for(context):
        warnings.simplefilter("ignore", errors.NumbaWarning)  # no source found, unused options: not the user's doing
        result = compiler.compile_ir(context.typing_context, context, func_ir, args, returns, flags, {})
    return Compiled(result)


def control_flow(func_ir: Any) -> Any:
    """Numba's control-flow graph of a Numba IR: ``predecessors(label)``, ``loops()``."""
    return analysis.compute_cfg_from_blocks(func_ir.blocks)


def resolvable(value: object) -> bool:
    """Whether Numba can use ``value`` as a constant of a kernel."""
    context = registry.cpu_target.typing_context
    context.refresh()
    try:
        context.resolve_value_type(value)
    except (ValueError, errors.NumbaError):
        return False
    return True


def link(library: Any, wrapper: str, entry: str, runtime: str = "") -> str:
    """One self-contained module: ``wrapper`` (LLVM text that defines ``entry``) and all it calls, made internal.
    ``runtime``: what stands in for Numba's runtime, as LLVM text."""
    module = llvm.parse_assembly(wrapper)
    if runtime:
        module.link_in(llvm.parse_assembly(runtime))
    defined = {f.name for f in module.functions if not f.is_declaration}
    pending, seen = [library], set()
    while pending:
        lib = pending.pop()
        if id(lib) in seen or lib.name == "nrt":  # see `runtime`; without it there are no local arrays
            continue
        seen.add(id(lib))
        raw = isinstance(lib, _RawLibrary)
        pending.extend(lib.linked if raw else lib._linking_libraries)
        for text in lib.texts if raw else [str(lib._final_module)]:
            part = llvm.parse_assembly(text)
            for f in part.functions:
                if not f.is_declaration:
                    if f.name in defined:
                        f.linkage = "linkonce_odr"  # the same function again: LLVM keeps the first
                    defined.add(f.name)
            module.link_in(part)
    for f in module.functions:
        if not f.is_declaration and f.name != entry:
            f.linkage = "internal"
    for g in module.global_variables:
        if not g.is_declaration:
            g.linkage = "internal"
    module.verify()
    return _with_attributes(str(module))


_INTERNAL = re.compile(r"^(define internal .*?\))((?: [a-z_]+)*)((?: #(\d+))?(?: !\w+ !\d+)* \{)$", re.M)
_MARK = re.compile(r"^(declare \w+ @irad\.(?:index|strong|powi)\.\w+\([\w, ]*\))", re.M)
_NOINLINE = re.compile(r"^attributes #(\d+) = \{.*\bnoinline\b", re.M)


def _with_attributes(text: str) -> str:
    """Have all but the entry inlined, and say that marks are pure. In the text, as llvmlite before 0.46 puts
    attributes of functions in the wrong place."""
    outlined = set(_NOINLINE.findall(text))

    def inlined(found: re.Match[str]) -> str:
        head, words, tail, group = found.groups()
        return found[0] if group in outlined or "noinline" in words else f"{head}{words} alwaysinline{tail}"

    return _MARK.sub(r"\1 speculatable willreturn", _INTERNAL.sub(inlined, text))
