"""Runs a function of the small IR on NumPy buffers: the slow, obvious oracle of pass tests.

float32 arithmetic is done in float32, integers wrap as in hardware. Addresses are real ones, but every load and store
is checked against the arrays that were handed over and the local variables: an access outside them is an
``InterpreterError``, not a crash. ``undef`` and ``poison`` are NaN and 0. Fast-math flags are ignored.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from irad.errors import IradError

from . import ops
from .aggregates import aggregate_fields
from .mathlib import FUNCTIONS
from .model import ArrayParam, Block, Const, Function, Global, Instr, Module, PointFn, Value
from .scalars import SCALAR, int_call
from .tokens import Cursor
from .values import DTYPES, as_type, initialiser, layout, literal, unsigned, wrap_int

_MOST_STEPS = 50_000_000


class InterpreterError(IradError):
    """The function did what it may not: an access outside its arrays, an endless loop, an unreachable place."""


def run(
    fn: Function,
    args: Mapping[str, Any] | Sequence[Any] = (),
    arrays: Mapping[str, np.ndarray] | None = None,
    *,
    index: Sequence[int] = (),
    module: Module | None = None,
) -> Any:
    """Run ``fn`` once, change ``arrays`` in place, and return what it returns.

    ``args``: a value a parameter, by position or by name. Parameters ``T.data``, ``T.n0``…, ``T.s0``… that are not
    among them are taken from the array ``T`` of ``arrays``, which structured operations use too; a shadow is the
    array ``T'``, and a scalar's cotangent the array ``lam'`` of size 1. ``index``: the point, for ``irad.index.<d>``.

    >>> from irad.passes.ir.read import read_function
    >>> f = read_function("define double @f(double %x) {\\n %y = fmul double %x, %x\\n ret double %y\\n}", "f")
    >>> float(run(f, [3.0]))
    9.0
    """
    arrays = dict(arrays or {})
    given = args if isinstance(args, Mapping) else dict(zip((a.name for a in fn.args), args, strict=False))
    values = [given[a.name] if a.name in given else _word(a.name, arrays) for a in fn.args]
    with np.errstate(all="ignore"):
        return _Machine(arrays, tuple(index), module).call(fn, values)


def run_point(
    point: PointFn, box: Sequence[tuple[int, int]], arrays: Mapping[str, np.ndarray], scalars: Mapping[str, Any]
) -> None:
    """Run a point function at every point of a box ``((lo0, hi0), …)``, in order, changing ``arrays`` in place."""
    for at in itertools.product(*(range(lo, hi) for lo, hi in box)):
        run(point.fn, {**scalars, **{f".i{d}": i for d, i in enumerate(at)}}, arrays, index=at)


def array_words(p: ArrayParam, array: np.ndarray) -> dict[str, int]:
    """The words of an array parameter: address, extents, strides in bytes."""
    return dict(zip(p.words, (array.ctypes.data, *array.shape, *array.strides), strict=True))


def _word(name: str, arrays: Mapping[str, np.ndarray]) -> int:
    array, _, word = name.rpartition(".")
    if array not in arrays:
        raise InterpreterError(f"no value for the parameter {name}")
    a = arrays[array]
    return a.ctypes.data if word == "data" else (a.shape if word[0] == "n" else a.strides)[int(word[1:])]


class _Machine:
    """The memory that the function may touch, and the work of each operation."""

    def __init__(self, arrays: dict[str, np.ndarray], index: tuple[int, ...], module: Module | None) -> None:
        self.arrays, self.index, self.module = arrays, index, module
        self.regions = [_byte_bounds(a) for a in arrays.values() if a.size]
        self.slots: list[Any] = []
        self.globals: dict[str, int] = {}
        self.steps = 0

    def call(self, fn: Function, args: Sequence[Any]) -> Any:
        values: dict[Value, Any] = {a: as_type(a.type, v) for a, v in zip(fn.args, args, strict=True)}
        block, previous = fn.blocks[0], None
        while True:
            step = self._run_block(block, previous, values)
            if not isinstance(step, Block):
                return step
            block, previous = step, block

    def _run_block(self, block: Block, previous: Block | None, values: dict[Value, Any]) -> Any:
        """Run one block; the next one, or what the function returns."""

        def get(v: Value) -> Any:
            return self.constant(v) if isinstance(v, Const) else values[v]

        phis = block.phis
        entering = [get(p.operands[p.targets.index(previous)]) for p in phis] if previous is not None else []
        values.update(zip(phis, entering, strict=False))
        for i in block.instrs[len(phis) :]:
            self.steps += 1
            if self.steps > _MOST_STEPS:
                raise InterpreterError("the function does not end", loc=i.loc)
            operands = [get(v) for v in i.operands]
            if i.op in ops.TERMINATORS:
                return _next(i, operands)
            try:
                values[i] = self._run_instr(i, operands)
            except (ArithmeticError, IndexError, InterpreterError) as e:
                raise InterpreterError(f"{i!r}: {e}", loc=i.loc) from None
        raise InterpreterError(f"block {block.name} does not end in a terminator")

    def _run_instr(self, i: Instr, x: list[Any]) -> Any:
        special = _SPECIAL.get(i.op)
        if special is not None:
            return special(self, i, x)
        simple = SCALAR.get(i.op)
        if simple is None:
            raise InterpreterError(f"no way to run {i.op}")
        return as_type(i.type, simple(i, *x))

    # memory --------------------------------------------------------------------------------------------------------

    def _check(self, address: int, size: int) -> None:
        if not any(lo <= address and address + size <= hi for lo, hi in self.regions):
            raise InterpreterError("an access outside all arrays and local variables")

    def read(self, address: int, type: str) -> Any:
        fields = aggregate_fields(type)
        if fields is not None:
            offsets, _ = layout(type)
            return tuple(self.read(address + o, f) for o, f in zip(offsets, fields, strict=True))
        self._check(address, ops.SIZES[type])
        raw = ctypes.string_at(address, ops.SIZES[type])
        return as_type(type, np.frombuffer(raw, DTYPES[type])[0])

    def write(self, address: int, type: str, value: Any) -> None:
        fields = aggregate_fields(type)
        if fields is not None:
            for o, f, v in zip(layout(type)[0], fields, value, strict=True):
                self.write(address + o, f, v)
            return
        self._check(address, ops.SIZES[type])
        raw = np.array([value], DTYPES[type]).tobytes()
        ctypes.memmove(address, raw, len(raw))

    def allocate(self, size: int) -> int:
        slot = (ctypes.c_char * max(size, 1))()
        self.slots.append(slot)
        address = ctypes.addressof(slot)
        self.regions.append((address, address + size))
        return address

    def constant(self, v: Const) -> Any:
        if isinstance(v, Global):
            if v.text not in self.globals:
                type, value = initialiser(v.definition)
                address = self.allocate(layout(type)[1])
                self.write(address, type, value)
                self.globals[v.text] = address
            return self.globals[v.text]
        return literal(v.type, v.text)


def _byte_bounds(a: np.ndarray) -> tuple[int, int]:
    """The addresses between which the elements of an array lie."""
    spans = [(n - 1) * s for n, s in zip(a.shape, a.strides, strict=True)]
    lo = a.ctypes.data + sum(s for s in spans if s < 0)
    return lo, a.ctypes.data + sum(s for s in spans if s > 0) + a.itemsize


def _next(i: Instr, x: list[Any]) -> Any:
    if i.op == "ret":
        return x[0] if x else None
    if i.op == "unreachable":
        raise InterpreterError("an unreachable place was reached", loc=i.loc)
    if i.op == "switch":
        cases = {wrap_int(i.operands[0].type, c): t for c, t in zip(i.cases, i.targets[1:], strict=True)}
        return cases.get(x[0], i.targets[0])
    return i.targets[0] if not x or x[0] else i.targets[1]


# operations ----------------------------------------------------------------------------------------------------------


def _gep(m: _Machine, i: Instr, x: list[Any]) -> int:
    address, type = x[0] + x[1] * layout(i.elem)[1], i.elem
    for k in x[2:]:
        fields = aggregate_fields(type)
        assert fields is not None
        if type.startswith("["):
            type = Cursor(type[type.index(" x ") + 3 : -1]).type()
            address += k * layout(type)[1]
        else:
            address += layout(type)[0][k]
            type = fields[k]
    return wrap_int("i64", address)


def _alloca(m: _Machine, i: Instr, x: list[Any]) -> int:
    return m.allocate(layout(i.elem)[1])


def _load(m: _Machine, i: Instr, x: list[Any]) -> Any:
    return m.read(x[0], i.type)


def _store(m: _Machine, i: Instr, x: list[Any]) -> None:
    m.write(x[1], i.operands[0].type, x[0])


def _extract(m: _Machine, i: Instr, x: list[Any]) -> Any:
    value = x[0]
    for k in i.indices:
        value = value[k]
    return value


def _insert(m: _Machine, i: Instr, x: list[Any]) -> Any:
    def put(whole: tuple[Any, ...], path: tuple[int, ...]) -> tuple[Any, ...]:
        k, *rest = path
        return (*whole[:k], put(whole[k], tuple(rest)) if rest else x[1], *whole[k + 1 :])

    return put(x[0], i.indices)


def _call(m: _Machine, i: Instr, x: list[Any]) -> Any:
    kind = ops.call_kind(i.callee)
    if kind == "math":
        name, type = ops.math_of(i.callee) or ("", "")
        return as_type(type, FUNCTIONS[name](*x))
    if kind == "mark":
        if i.callee.startswith("irad.index."):
            return m.index[int(i.callee.rpartition(".")[2])]
        return x[0]
    if kind == "memory":
        return _memory_call(m, i, x)
    if kind == "int":
        return int_call(i, x)
    if m.module is not None and i.callee in m.module.functions:
        return m.call(m.module.functions[i.callee], x)
    raise InterpreterError(f"a call of the unknown function {i.callee}")


def _memory_call(m: _Machine, i: Instr, x: list[Any]) -> None:
    target, source, size = x[0], x[1], unsigned("i64", x[2])
    if not size:
        return
    m._check(target, size)
    if ".memset." in i.callee:
        ctypes.memset(target, source & 255, size)
    else:
        m._check(source, size)
        ctypes.memmove(target, source, size)


def _place(m: _Machine, i: Instr, prefix: str, index: list[int]) -> tuple[np.ndarray, tuple[int, ...]]:
    name = i.array + prefix
    if name not in m.arrays:
        raise InterpreterError(f"no array {name}")
    array = m.arrays[name]
    for d, (k, n) in enumerate(zip(index, array.shape, strict=True)):
        if not 0 <= k < n:
            raise InterpreterError(f"index {k} is out of bounds for dimension {d} of {name} with extent {n}")
    return array, tuple(index)


def _aload(m: _Machine, i: Instr, x: list[Any]) -> Any:
    array, at = _place(m, i, "'" if i.op == "sload" else "", x)
    return as_type(i.type, array[at])


def _astore(m: _Machine, i: Instr, x: list[Any]) -> None:
    array, at = _place(m, i, "'" if i.op == "sstore" else "", x[1:])
    array[at] = x[0]


def _accum(m: _Machine, i: Instr, x: list[Any]) -> None:
    array, at = _place(m, i, "'", x[1:])
    array[at] += x[0]


def _accums(m: _Machine, i: Instr, x: list[Any]) -> None:
    m.arrays[f"{i.array}'"][...] += x[0]


def _iwrap(m: _Machine, i: Instr, x: list[Any]) -> int:
    return int(x[0] + x[1] if x[0] < 0 else x[0])


_SPECIAL: dict[str, Callable[[_Machine, Instr, list[Any]], Any]] = {
    "getelementptr": _gep, "alloca": _alloca, "load": _load, "store": _store, "extractvalue": _extract,
    "insertvalue": _insert, "call": _call, "aload": _aload, "sload": _aload, "astore": _astore, "sstore": _astore,
    "accum": _accum, "accums": _accums, "iwrap": _iwrap,
    "select": lambda m, i, x: x[1] if x[0] else x[2],
    "freeze": lambda m, i, x: x[0],
}  # fmt: skip
