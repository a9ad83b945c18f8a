"""LLVM text to machine code in this process: optimise, emit an object, load it.

:func:`emit` makes bytes that hold no address and can be kept on disk (``cache.py``), :func:`load` links them into the
one JIT of the process, :func:`compile_text` does it all. Loaded code is never
unloaded: worker threads may stand in it.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import threading
from collections.abc import Iterable, Mapping
from functools import cached_property

import llvmlite.binding as llvm

from irad.codegen import cache, target
from irad.codegen.object import ObjectCode
from irad.codegen.symbols import runtime
from irad.config import CONFIG
from irad.errors import IradError

_lock = threading.RLock()
_counter = itertools.count()
_jit: llvm.LLJIT | None = None
_RUNTIME = "irad.runtime"


class Code:
    """Functions in memory.

    ``text``: the LLVM text they were made from (empty if only an object was loaded); ``object_bytes``: the object file.
    """

    def __init__(self, obj: ObjectCode, addresses: Mapping[str, int], text: str, optimised: bool) -> None:
        self.object = obj
        self.text = text
        self._addresses = dict(addresses)
        self._optimised = optimised

    def address(self, name: str) -> int:
        """Where the function ``name`` starts; ``KeyError`` if the module does not define it."""
        return self._addresses[name]

    def __contains__(self, name: str) -> bool:
        return name in self._addresses

    @property
    def object_bytes(self) -> bytes:
        return self.object.data

    @cached_property
    def llvm(self) -> str:
        """The optimised LLVM text; ``IradError`` for code that came from an object alone."""
        module = _parse(self._source())
        if self._optimised:
            target.optimise(module, target.machine())
        return str(module)

    def _source(self) -> str:
        if not self.text:
            raise IradError("this code was loaded from a cache, which keeps no text", remedy="IRAD_CACHE_DIR=off")
        return self.text

    def asm(self) -> str:
        """The machine code as assembly text; ``IradError`` for code that came from an object alone."""
        module = _parse(self._source())
        machine = target.machine()
        if self._optimised:
            target.optimise(module, machine)
        machine.set_asm_verbosity(False)
        return str(machine.emit_assembly(module))


def compile_text(
    text: str, symbols: Mapping[str, int] | None = None, *, optimise: bool = True, keep: bool = True
) -> Code:
    """Compile the LLVM module ``text`` for this CPU and load it.

    ``symbols``: addresses of functions that the module declares, beside the C math library, the memory routines and
    the part of Python's C API in ``symbols.py``. A declared function found in neither raises ``IradError`` with its
    name; text that LLVM rejects raises ``IradError`` with LLVM's message. ``keep``: take the object from the cache
    folder (``IRAD_CACHE_DIR``) if it is there, and leave it there if not.

    >>> code = compile_text("define i64 @twice(i64 %x) { %y = add i64 %x, %x  ret i64 %y }")
    >>> import ctypes
    >>> ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("twice"))(21)
    42
    """
    _dump(text)
    folder = CONFIG.cache_dir if keep else None
    name = cache.key(text, optimise) if folder else ""
    obj = cache.get(folder, name) if folder else None
    if obj is None:
        obj = emit(text, optimise=optimise)
        if folder:
            cache.put(folder, name, obj)
    return load(obj, symbols, text=text, optimised=optimise)


def emit(text: str, *, optimise: bool = True) -> ObjectCode:
    """Optimise ``text`` for this CPU and make an object of it."""
    module = _parse(text)
    machine = target.machine()
    if optimise:
        target.optimise(module, machine)
    defines, imports = [], []
    for fn in module.functions:
        if not fn.is_declaration:
            if fn.linkage not in (llvm.Linkage.internal, llvm.Linkage.private):
                defines.append(fn.name)
        elif not fn.name.startswith("llvm."):
            imports.append(fn.name)
    imports += [g.name for g in module.global_variables if g.is_declaration and not g.name.startswith("llvm.")]
    return ObjectCode(bytes(machine.emit_object(module)), tuple(defines), tuple(imports))


def load(obj: ObjectCode, symbols: Mapping[str, int] | None = None, *, text: str = "", optimised: bool = True) -> Code:
    """Link an object into this process."""
    symbols = symbols or {}
    _check_symbols(obj.imports, symbols)
    with _lock:
        jit = _the_jit()
        builder = llvm.JITLibraryBuilder().add_object_img(obj.data).add_jit_library(_RUNTIME)
        for name in obj.imports:
            if name in symbols:
                builder.import_symbol(name, symbols[name])
        for name in obj.defines:
            builder.export_symbol(name)
        try:
            library = builder.link(jit, f"irad.{next(_counter)}")
        except RuntimeError as error:
            raise IradError(
                f"compiled code could not be linked ({error}); its symbols: {', '.join(obj.imports) or 'none'}"
            ) from error
        library.detach()
    return Code(obj, {name: library[name] for name in obj.defines}, text, optimised)


def _check_symbols(imports: Iterable[str], symbols: Mapping[str, int]) -> None:
    missing = [name for name in imports if name not in symbols and name not in runtime()]
    if missing:
        raise IradError(
            f"compiled code calls {', '.join(missing)}, which irad does not know on this machine",
            remedy="a function of the math module, NumPy or your own arithmetic that the manual lists as supported",
        )


def _the_jit() -> llvm.LLJIT:
    """The JIT of this process; it lives as long as the process."""
    global _jit
    if _jit is None:
        target.initialise()
        jit = llvm.create_lljit_compiler()
        builder = llvm.JITLibraryBuilder()
        for name, address in runtime().items():
            builder.import_symbol(name, address)
        builder.link(jit, _RUNTIME).detach()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(jit))  # never disposed of, not even at interpreter exit
        _jit = jit
    return _jit


def _parse(text: str) -> llvm.ModuleRef:
    target.initialise()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise IradError(f"LLVM rejects the module that irad made: {error}") from error
    triple, _, _ = target.host()
    module.triple = triple
    module.data_layout = str(target.machine().target_data)
    return module


def _dump(text: str) -> None:
    if CONFIG.dump is not None:
        CONFIG.dump.mkdir(parents=True, exist_ok=True)
        (CONFIG.dump / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.ll").write_text(text)
