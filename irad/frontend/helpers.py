"""Calls of helper functions: a helper is compiled for the argument types of each call, with its hidden arguments.

In Numba IR a call ``helper(x, y)`` has become ``CALL_HELPER(ref, (x, y, hidden…))``. ``ref`` carries the helper; its
Numba type compiles it.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from llvmlite import ir as llvmir
from numba.core import cgutils
from numba.core.imputils import lower_constant
from numba.extending import intrinsic, models, register_model, typeof_impl

from irad.errors import IradError
from irad.frontend.numba_private import Compiled, NumbaFailure, compile_ir, current_session, types
from irad.frontend.translate import translate

if TYPE_CHECKING:
    from irad.frontend.captures import Capture, Unit


class HelperRef:
    """A helper, as a constant in Numba IR."""

    def __init__(self, unit: Unit, hidden: dict[tuple[int, str], Capture]) -> None:
        self.unit = unit
        self.hidden = hidden

    def __deepcopy__(self, memo: object) -> HelperRef:
        return self

    def compile(self, args: tuple[Any, ...]) -> Compiled:
        """The helper for these argument types; compiled once a session."""
        from irad.frontend.rewrite import drop_dead, prepared_ir

        session = current_session()
        key = (id(self.unit), args)
        if key not in session.helpers:
            fastmath = self.unit.options.get("fastmath", False) or session.fastmath
            if isinstance(fastmath, (set, list, tuple)):
                fastmath = frozenset(fastmath)
            try:
                func_ir = drop_dead(prepared_ir(self.unit, self.hidden))
                session.helpers[key] = compile_ir(func_ir, args, fastmath)
            except IradError as e:
                session.error = session.error or e
                raise
            except NumbaFailure as e:
                session.error = session.error or translate(e.error, self.unit.loc)
                raise
        return session.helpers[key]


_count = itertools.count()


class HelperType(types.Opaque):
    """Numba's type of a ``HelperRef``; one for each reference."""

    def __init__(self, ref: HelperRef) -> None:
        self.ref = ref
        super().__init__(f"irad.helper.{ref.unit.name}.{next(_count)}")


register_model(HelperType)(models.OpaqueModel)


@typeof_impl.register(HelperRef)
def _typeof_helper(value: HelperRef, context: Any) -> HelperType:
    return HelperType(value)


@lower_constant(HelperType)
def _constant_helper(context: Any, builder: Any, ty: Any, value: Any) -> Any:
    return llvmir.Constant(context.get_value_type(ty), None)


@intrinsic
def CALL_HELPER(typingctx, ref, bundle):  # type: ignore[no-untyped-def]
    """``helper(*bundle)``."""
    given = tuple(bundle.types) if len(bundle) else ()
    wanted = tuple(types.unliteral(t) for t in given)
    compiled = ref.ref.compile(wanted)

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        context.active_code_library.add_linking_library(compiled.library)
        values = [
            context.cast(builder, value, have, want)
            for value, have, want in zip(cgutils.unpack_tuple(builder, args[1], len(given)), given, wanted, strict=True)
        ]
        return context.call_internal(builder, compiled.fndesc, compiled.signature, values)

    return compiled.signature.return_type(ref, bundle), codegen
