"""The marks that the frontend leaves in LLVM IR for the passes, as Numba intrinsics.

========================================= ====================================================================
call in LLVM IR                           meaning
========================================= ====================================================================
``i64 @irad.index.<axis>()``              the point's index on an axis of the launch domain
``double @irad.strong.f64(double)``       the user wrote ``np.float64(x)``: this value is float64 on purpose
``float @irad.strong.f32(float)``         the user wrote ``np.float32(x)``
========================================= ====================================================================
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir as llvmir
from numba.core import cgutils
from numba.extending import intrinsic

from irad.frontend.numba_private import types
from irad.frontend.signature import MAX_RANK


def _declared(builder: Any, result: Any, arguments: list[Any], name: str) -> Any:
    """A declared function without side effects, so that LLVM merges and drops calls of it."""
    function = cgutils.get_or_insert_function(builder.module, llvmir.FunctionType(result, arguments), name)
    for attribute in ("nounwind", "readnone"):
        function.attributes.add(attribute)
    return function


def _index(axis: int) -> Any:
    @intrinsic
    def index(typingctx):  # type: ignore[no-untyped-def]
        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            return builder.call(_declared(builder, llvmir.IntType(64), [], f"irad.index.{axis}"), [])

        return types.int64(), codegen

    return index


INDEX = tuple(_index(axis) for axis in range(MAX_RANK))
"""One intrinsic an axis: the point's index."""


def _strong(numba_type: Any, llvm_type: Any, suffix: str) -> Any:
    @intrinsic
    def strong(typingctx, value):  # type: ignore[no-untyped-def]
        if not isinstance(value, (types.Number, types.Boolean)) or isinstance(value, types.Complex):
            return None

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            x = context.cast(builder, args[0], sig.args[0], numba_type)
            return builder.call(_declared(builder, llvm_type, [llvm_type], f"irad.strong.{suffix}"), [x])

        return numba_type(value), codegen

    return strong


STRONG64 = _strong(types.float64, llvmir.DoubleType(), "f64")
STRONG32 = _strong(types.float32, llvmir.FloatType(), "f32")


@intrinsic
def INTERIOR_BOUNDS(typingctx, A, width):  # type: ignore[no-untyped-def]
    """``(lo0, hi0, lo1, hi1, …)`` of the points of ``A`` that are ``width`` away from its boundary."""
    if not isinstance(A, types.Array) or not isinstance(width, types.Integer):
        return None

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        array = context.make_array(sig.args[0])(context, builder, args[0])
        w = context.cast(builder, args[1], sig.args[1], types.int64)
        flat = []
        for n in cgutils.unpack_tuple(builder, array.shape, sig.args[0].ndim):
            flat += [w, builder.sub(n, w)]
        return context.make_tuple(builder, sig.return_type, flat)

    return types.UniTuple(types.int64, 2 * A.ndim)(A, width), codegen


@intrinsic
def DOMAIN_BOUNDS(typingctx, pairs):  # type: ignore[no-untyped-def]
    """``((lo0, hi0), (lo1, hi1), …)`` flattened, as 64-bit integers."""
    for pair in pairs.types:
        if not (isinstance(pair, types.BaseTuple) and len(pair) == 2):
            return None
        if not all(isinstance(types.unliteral(t), types.Integer) for t in pair.types):
            return None

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        flat = []
        for n, pair in enumerate(sig.args[0].types):
            value = builder.extract_value(args[0], n)
            flat += [context.cast(builder, builder.extract_value(value, k), pair.types[k], types.int64) for k in (0, 1)]
        return context.make_tuple(builder, sig.return_type, flat)

    return types.UniTuple(types.int64, 2 * len(pairs))(pairs), codegen


MAX_EXPONENT = 64


@intrinsic(prefer_literal=True)
def POWER(typingctx, base, exponent):  # type: ignore[no-untyped-def]
    """``base ** exponent``: a float to a constant integer is multiplied out, in the order of Numba's loop (which would
    be compiled for every kernel, and unrolled by LLVM again)."""
    base = types.unliteral(base)
    known = isinstance(exponent, types.IntegerLiteral) and abs(exponent.literal_value) <= MAX_EXPONENT
    if not (known and isinstance(base, types.Float)):
        given = (base, types.unliteral(exponent))
        sig = typingctx.resolve_function_type(operator.pow, given, {})
        if sig is None:
            return None

        def general(context, builder, _, args):  # type: ignore[no-untyped-def]
            values = [
                context.cast(builder, value, have, want)
                for value, have, want in zip(args, given, sig.args, strict=True)
            ]
            return context.get_function(operator.pow, sig)(builder, values)

        return sig.return_type(*given), general
    n = exponent.literal_value

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        square, rest = args[0], abs(n)
        result = None
        while rest:
            if rest & 1:
                result = square if result is None else builder.fmul(result, square)
            rest >>= 1
            if rest:
                square = builder.fmul(square, square)
        one = llvmir.Constant(args[0].type, 1.0)
        if result is None:
            return one
        return builder.fdiv(one, result) if n < 0 else result

    return base(base, exponent), codegen


def _of_scalars(function: Any, kinds: slice, lowered: Any) -> Any:
    """``function`` of three arguments, with code of irad's own where all are scalars. These are unified, where
    ``kinds`` says so, and the result has their type."""

    @intrinsic
    def own(typingctx, x, y, z):  # type: ignore[no-untyped-def]
        given = (x, y, z)
        scalar = all(isinstance(t, (types.Number, types.Boolean)) for t in given)
        kind = typingctx.unify_types(*map(types.unliteral, given[kinds])) if scalar else None
        if kind is None:
            resolved = typingctx.resolve_value_type(function)
            sig = resolved.get_call_type(typingctx, given, {})
            if sig is None:
                return None

            def numbas(context, builder, _, args):  # type: ignore[no-untyped-def]
                implementation = context.get_function(resolved, sig)
                context.add_linking_libs(getattr(implementation, "libs", ()))
                return implementation(builder, args)

            return sig, numbas

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            wanted = list(sig.args)
            wanted[kinds] = [kind] * len(wanted[kinds])
            values = [context.cast(builder, *each) for each in zip(args, sig.args, wanted, strict=True)]
            return lowered(context, builder, wanted, values)

        return kind(*given), codegen

    return own


def _where(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    condition, x, y = values
    return builder.select(context.cast(builder, condition, kinds[0], types.boolean), x, y)


def _clip(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    x, low, high = values
    for function, bound in ((np.maximum, low), (np.minimum, high)):
        resolved = context.typing_context.resolve_value_type(function)
        sig = resolved.get_call_type(context.typing_context, (kinds[0], kinds[0]), {})
        x = context.get_function(resolved, sig)(builder, (x, bound))
    return x


WHERE = _of_scalars(np.where, slice(1, 3), _where)
"""``np.where(condition, x, y)``; Numba makes an array of it."""

CLIP = _of_scalars(np.clip, slice(0, 3), _clip)
"""``np.clip(x, low, high)``; Numba has it for arrays only."""
