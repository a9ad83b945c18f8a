"""Operations on scalars that irad lowers itself, where Numba's own code has another derivative or none.

============================ =======================================================================================
operation                    what Numba does, and what is done here
============================ =======================================================================================
``np.sign(x)``               returns ``x`` itself at 0, so that LLVM IR has the derivative 1 there; here a constant
``x % y``, ``divmod``        a constant where the remainder is 0, and memory in between; here the remainder of C plus
                             0 or ``y``, whose derivatives are those of ``x - floor(x / y) * y`` everywhere
``x // y``                   the same code; here only ``floor`` of something, whose derivative is 0
``x ** n``                   a loop of multiplications that may raise; here a mark, from which ``passes/ir/powers.py``
                             makes multiplications, where the exponent turns out to be a constant, or ``pow``
``n ** m`` (integers)        the same loop; here the same products without a loop, and nothing raised
``np.logaddexp``             ``x + log(2)`` on a tie, which hides ``y``; here the general formula
============================ =======================================================================================

They are put in place through :class:`ScalarContext`: whatever is lowered in it, directly or as the element of an array
expression, finds these implementations. Values are Numba's, bit for bit; powers with a variable exponent are those of
``pow`` (at most a few units in the last place apart).
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir as llvmir
from numba.core import cgutils, cpu, types, typing

Lowering = Callable[[Any, Any, Any, Any], Any]
"""``(context, builder, signature, arguments)`` to a value, as everywhere in Numba."""


class ScalarContext(cpu.CPUContext):  # type: ignore[misc]
    """Numba's CPU context, except for the operations of this module."""

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        key = fn.get_impl_key(sig.as_function()) if isinstance(fn, types.BaseFunction) else fn
        for kinds, own in _OPERATIONS.get(key, ()) if isinstance(key, type(operator.mod)) else ():
            if len(kinds) == len(sig.args) and all(map(_is_of, sig.args, kinds)):
                return lambda builder, args, loc=None: own(self, builder, sig, args)
        return super().get_function(fn, sig, _firstcall)

    def get_ufunc_info(self, ufunc_key: Any) -> Any:
        info = super().get_ufunc_info(ufunc_key)
        return {**info, **_LOOPS[ufunc_key]} if ufunc_key in _LOOPS else info


def _is_of(ty: Any, kind: Any) -> bool:
    """Whether an argument is of a kind and no literal: a literal exponent is multiplied out by Numba."""
    return isinstance(ty, kind) and not isinstance(ty, types.Literal)


def _sign(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    (x,) = args
    zero, one = x.type(0.0), x.type(1.0)
    unordered = builder.fcmp_unordered("uno", x, x)
    result = builder.select(unordered, x.type(math.nan), zero)
    result = builder.select(builder.fcmp_ordered("<", x, zero), x.type(-1.0), result)
    return builder.select(builder.fcmp_ordered(">", x, zero), one, result)


def _remainder(builder: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    """C's remainder of floats, whether it lacks the sign of ``y``, and whether ``y`` is negative."""
    zero = x.type(0.0)
    rest = builder.frem(x, y)
    negative = builder.fcmp_ordered("<", y, zero)
    differs = builder.xor(negative, builder.fcmp_ordered("<", rest, zero))
    return rest, builder.and_(builder.fcmp_ordered("!=", rest, zero), differs), negative


def _mod_of(builder: Any, x: Any, y: Any) -> Any:
    rest, fix, negative = _remainder(builder, x, y)
    # A remainder of 0 gets the sign of y: +0 is what comes of -0 + 0, and for y < 0 the same with signs turned round.
    up = builder.fadd(rest, builder.select(fix, y, x.type(0.0)))
    down = builder.fneg(builder.fsub(builder.select(fix, builder.fneg(y), x.type(0.0)), rest))
    return builder.select(negative, down, up)


def _floordiv_of(builder: Any, x: Any, y: Any) -> Any:
    rest, fix, _ = _remainder(builder, x, y)
    zero, one = x.type(0.0), x.type(1.0)
    quotient = builder.fdiv(builder.fsub(x, rest), y)
    quotient = builder.fsub(quotient, builder.select(fix, one, zero))
    whole = _call(builder, "floor", quotient)
    above = builder.fcmp_ordered(">", builder.fsub(quotient, whole), x.type(0.5))
    whole = builder.fadd(whole, builder.select(above, one, zero))
    ratio = builder.fdiv(x, y)
    whole = builder.select(builder.fcmp_unordered("!=", quotient, zero), whole, _call(builder, "copysign", zero, ratio))
    by_zero = _call(builder, "floor", ratio)  # infinite or NaN
    return builder.select(builder.fcmp_ordered("==", y, zero), by_zero, whole)


def _call(builder: Any, name: str, *args: Any) -> Any:
    kind = args[0].type
    shape = llvmir.FunctionType(kind, [kind] * len(args))
    return builder.call(builder.module.declare_intrinsic(f"llvm.{name}", [kind], shape), args)


def _mod(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _mod_of(builder, *args)


def _floordiv(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _floordiv_of(builder, *args)


def _divmod(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    both = (_floordiv_of(builder, *args), _mod_of(builder, *args))
    return context.make_tuple(builder, sig.return_type, both)


def power_mark(builder: Any, base: Any, exponent: Any) -> Any:
    """A call of the mark of ``base ** exponent`` for a float and a 64-bit integer."""
    suffix = {"double": "f64", "float": "f32"}[str(base.type)]
    shape = llvmir.FunctionType(base.type, [base.type, llvmir.IntType(64)])
    function = cgutils.get_or_insert_function(builder.module, shape, f"irad.powi.{suffix}")
    for attribute in ("nounwind", "readnone"):
        function.attributes.add(attribute)
    return builder.call(function, [base, exponent])


def _power(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    base, exponent = args
    return power_mark(builder, base, context.cast(builder, exponent, sig.args[1], types.int64))


_MULTIPLIED = 0x10000
"""Numba leaves larger exponents to ``math.pow``."""


def _int_power(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Squares and products of Numba's loop, for each bit of an exponent that it multiplies out."""
    kind = sig.return_type
    base, exponent = (context.cast(builder, value, ty, kind) for value, ty in zip(args, sig.args, strict=True))
    zero, one = base.type(0), base.type(1)
    below = builder.icmp_signed("<", exponent, zero) if kind.signed else llvmir.IntType(1)(0)
    rest = builder.select(below, builder.sub(zero, exponent), exponent)
    size, square, result = rest, base, one
    for bit in range(_MULTIPLIED.bit_length()):
        odd = builder.trunc(builder.lshr(rest, rest.type(bit)), llvmir.IntType(1))
        result = builder.select(odd, builder.mul(result, square), result)
        square = builder.mul(square, square)
    as_float = [context.cast(builder, value, kind, types.float64) for value in (base, exponent)]
    far = context.cast(builder, _call(builder, "pow", *as_float), types.float64, kind)
    result = builder.select(builder.icmp_unsigned(">", size, size.type(_MULTIPLIED)), far, result)
    unit = builder.or_(builder.icmp_signed("==", base, one), builder.icmp_signed("==", base, base.type(-1)))
    least = base.type(-1 << (kind.bitwidth - 1))  # what Numba gives for 0 to a negative power
    inverse = builder.select(unit, result, builder.select(builder.icmp_signed("==", base, zero), least, zero))
    return builder.select(below, inverse, result)


def _log_sum(exp: str, scale: float, context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """``log(exp(x) + exp(y))`` to some base: the larger of both and what the other adds to it."""
    x, y = args
    kind, type = sig.return_type, x.type
    first = builder.fcmp_ordered(">", x, y)
    apart = builder.fsub(x, y)
    below = builder.select(first, builder.fneg(apart), apart)
    added = context.get_function(math.log1p, typing.signature(kind, kind))(builder, [_call(builder, exp, below)])
    total = builder.fadd(builder.select(first, x, y), builder.fmul(added, type(scale)))
    # infinities of one sign are no number apart, and NaN is NaN
    return builder.select(builder.fcmp_unordered("uno", apart, apart), builder.fadd(x, y), total)


_FLOATS, _INTEGERS = (types.Float, types.Float), (types.Integer, types.Integer)
_POWERS: tuple[tuple[tuple[Any, Any], Lowering], ...] = (
    ((types.Float, types.Integer), _power),
    (_INTEGERS, _int_power),
)

_OPERATIONS: dict[Any, tuple[tuple[tuple[Any, Any], Lowering], ...]] = {
    operator.mod: ((_FLOATS, _mod),),
    operator.imod: ((_FLOATS, _mod),),
    operator.floordiv: ((_FLOATS, _floordiv),),
    operator.ifloordiv: ((_FLOATS, _floordiv),),
    divmod: ((_FLOATS, _divmod),),
    operator.pow: _POWERS,
    operator.ipow: _POWERS,
    pow: _POWERS,
}

_logaddexp = functools.partial(_log_sum, "exp", 1.0)
_logaddexp2 = functools.partial(_log_sum, "exp2", 1 / math.log(2))

_LOOPS: dict[Any, dict[str, Lowering]] = {
    np.sign: {"f->f": _sign, "d->d": _sign},
    np.logaddexp: {"ff->f": _logaddexp, "dd->d": _logaddexp},
    np.logaddexp2: {"ff->f": _logaddexp2, "dd->d": _logaddexp2},
}
