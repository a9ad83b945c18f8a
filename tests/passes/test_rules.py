"""Every row of the table of derivatives: values, both modes, near kinks, at poles, in both precisions.

The reference is a difference quotient of some fifty digits. Each check is made twice, on the interpreter and on
optimised machine code, so that what LLVM makes of a row is tested too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from irad.passes.build import DERIVATIVE_FLAGS, Builder
from irad.passes.ir import ops
from irad.passes.ir.interp import run
from irad.passes.ir.model import Arg, Block, Function, Instr, Loc
from irad.passes.ir.verify import verify
from irad.passes.rules import (
    INACTIVE,
    REFUSED,
    RULES,
    STRUCTURAL,
    carriers,
    cotangents_of,
    kind_of,
    needs,
    partials,
    tangent_of,
)

from irad.errors import NotDifferentiableError

from .rule_tools import NUMBER, Machine, forward, instruction, interpreted, reverse, signature, value

mp.mp.dps = 50
TYPES = ("double", "float")
TOLERANCE = {"double": 2e-14, "float": 1e-5}
"""Relative. Some ten operations and a function of the C library; exp(-x * x) loses another digit at x = 5."""


def _fmod(x: Any, y: Any) -> Any:
    return x - y * (mp.floor if x / y > 0 else mp.ceil)(x / y)


def _fma(x: Any, y: Any, z: Any) -> Any:
    return x * y + z


def _lgamma(x: Any) -> Any:
    return mp.log(abs(mp.gamma(x)))


def _same(x: Any) -> Any:
    return x


def _real_power(x: Any, y: Any) -> Any:
    return mp.re(mp.power(x, y))


CASES: dict[str, tuple[Callable[..., Any], list[tuple[float, ...]]]] = {
    "fadd": (lambda x, y: x + y, [(1.5, -0.3), (0.0, 0.0)]),
    "fsub": (lambda x, y: x - y, [(1.5, -0.3)]),
    "fmul": (lambda x, y: x * y, [(1.5, -0.3), (0.0, 2.0)]),
    "fdiv": (lambda x, y: x / y, [(1.5, -0.3), (0.0, 7.0), (1e200, 1e150)]),
    "frem": (_fmod, [(5.3, 2.1), (-5.3, 2.1), (5.3, -2.1), (0.5, 3.0), (1e6, 0.3)]),
    "remainder": (lambda x, y: x - y * mp.nint(x / y), [(5.3, 2.1), (-6.1, 2.1), (0.5, 3.0)]),
    "fneg": (lambda x: -x, [(1.5,)]),
    "fpext": (_same, [(1.5,)]),
    "fptrunc": (_same, [(1.5,)]),
    "irad.strong": (_same, [(1.5,)]),
    "canonicalize": (_same, [(1.5,)]),
    "fma": (_fma, [(1.5, -0.3, 0.7)]),
    "fmuladd": (_fma, [(1.5, -0.3, 0.7)]),
    "ldexp": (lambda x, n: x * mp.mpf(2) ** n, [(1.5, 3), (-0.7, -2)]),
    "fabs": (abs, [(1.5,), (-1.5,), (1e-300,), (-1e-30,)]),
    "copysign": (lambda x, y: abs(x) * mp.sign(y), [(1.5, 2.0), (1.5, -2.0), (-1.5, 2.0), (-1e-30, -2.0)]),
    "minnum": (min, [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0000001)]),
    "maxnum": (max, [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0000001)]),
    "minimumnum": (min, [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0000001)]),
    "maximumnum": (max, [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0000001)]),
    "minimum": (min, [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0000001)]),
    "maximum": (max, [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0000001)]),
    "fdim": (lambda x, y: max(x - y, mp.mpf(0)), [(1.0, 2.0), (2.0, 1.0)]),
    "sqrt": (mp.sqrt, [(2.0,), (1e-300,), (1e-30,), (1e30,)]),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), [(2.0,), (-2.0,), (1e-30,), (1e-300,)]),
    "pow": (
        _real_power,
        [(2.0, 3.5), (0.3, -1.7), (1e-30, 0.2), (5.0, 0.0), (1e200, 1.5), (7.0, 0.5), (1e-200, 2.0), (1.0, 40.0)],
    ),
    "powi": (lambda x, n: x**n, [(1.7, 3), (-1.7, 2), (1.7, -3), (0.3, 1), (0.3, 0), (-2.5, -1)]),
    "hypot": (mp.hypot, [(3.0, 4.0), (-1e-3, 2.0), (0.0, 2.0), (1e200, 1e200), (1e-30, 1e-30)]),
    "exp": (mp.exp, [(0.7,), (-40.0,)]),
    "exp2": (lambda x: mp.mpf(2) ** x, [(0.7,), (-40.0,)]),
    "exp10": (lambda x: mp.mpf(10) ** x, [(0.7,), (-10.0,)]),
    "expm1": (mp.expm1, [(0.7,), (-40.0,), (1e-9,)]),
    "log": (mp.log, [(0.7,), (1e-30,), (1e30,)]),
    "log2": (lambda x: mp.log(x) / mp.log(2), [(0.7,), (1e30,)]),
    "log10": (mp.log10, [(0.7,), (1e30,)]),
    "log1p": (mp.log1p, [(0.7,), (-0.999,), (1e-9,)]),
    "sin": (mp.sin, [(0.7,), (3.0,), (-2.0,)]),
    "cos": (mp.cos, [(0.7,), (3.0,), (-2.0,)]),
    "tan": (mp.tan, [(0.7,), (1.57,), (-2.0,)]),
    "asin": (mp.asin, [(0.7,), (-0.9999,), (0.0,)]),
    "acos": (mp.acos, [(0.7,), (-0.9999,), (0.0,)]),
    "atan": (mp.atan, [(0.7,), (-30.0,), (0.0,)]),
    "atan2": (mp.atan2, [(1.0, 2.0), (-2.0, 1.0), (2.0, -1.0), (1e200, 3e200), (-1e-200, 1e-201), (1.0, 0.0)]),
    "sinh": (mp.sinh, [(0.7,), (-3.0,)]),
    "cosh": (mp.cosh, [(0.7,), (-3.0,), (0.0,)]),
    "tanh": (mp.tanh, [(0.7,), (15.0,), (-15.0,), (0.0,)]),
    "asinh": (mp.asinh, [(0.7,), (-1e200,), (1e12,), (0.0,)]),
    "acosh": (mp.acosh, [(1.7,), (1.0001,), (1e200,)]),
    "atanh": (mp.atanh, [(0.7,), (-0.9999,), (0.0,)]),
    "erf": (mp.erf, [(0.7,), (-2.0,), (0.0,), (5.0,)]),
    "erfc": (mp.erfc, [(0.7,), (-2.0,), (5.0,)]),
    "lgamma": (_lgamma, [(0.7,), (3.5,), (1e-9,), (1e8,), (-0.3,), (-7.6,), (1.4616,), (25.0,)]),
    "tgamma": (mp.gamma, [(0.7,), (3.5,), (1e-9,), (-0.3,), (-3.6,), (20.0,)]),
}
"""For each row, the function itself and places to look at."""


def points(name: str, type: str) -> list[tuple[float, ...]]:
    """The places, rounded to the precision; those out of range of float32 only in float64."""
    types, _ = signature(name, type)
    found = []
    for p in CASES[name][1]:
        if "float" in types and any(v and not 1e-30 <= abs(v) <= 1e30 for v in p):
            continue
        found.append(tuple(v if t == "i32" else float(NUMBER[t](v)) for v, t in zip(p, types, strict=True)))
    return found


def active_operands(name: str) -> list[int]:
    return [k for k, p in enumerate(RULES[name]) if p is not None]


@functools.cache
def exact(name: str, point: tuple[float, ...], k: int) -> float:
    """The partial derivative by operand ``k``, by differences of relative size 1e-20."""
    f = CASES[name][0]

    def along(v: Any) -> Any:
        return f(*(v if j == k else a for j, a in enumerate(numbers)))

    with mp.workdps(400):
        numbers = [mp.mpf(v) if j in active_operands(name) else int(v) for j, v in enumerate(point)]
        h = mp.mpf("1e-20") * (abs(numbers[k]) or 1)
        return float((along(numbers[k] + h) - along(numbers[k] - h)) / (2 * h))


@functools.cache
def machine(type: str) -> Machine:
    """All rows in one precision."""
    functions: list[Function] = []
    for name in RULES:
        if name == "irad.strong":  # a mark, gone before code is generated
            continue
        active = active_operands(name)
        functions += [value(name, type), forward(name, type, active)]
        functions += [forward(name, type, [k]) for k in active if len(active) > 1]
        functions += [reverse(name, type, k, active) for k in active]
    return Machine(functions)


def ways(fn: Function, type: str) -> list[Callable[..., Any]]:
    """How to run one of the functions: the interpreter, and machine code where the function is part of it."""
    found: list[Callable[..., Any]] = [functools.partial(interpreted, fn)]
    if fn.name in machine(type).functions:
        found.append(functools.partial(machine(type), fn.name))
    return found


def close(result: Any, expected: float, type: str, name: str) -> bool:
    atol = 1e-14 if type == "double" else 2e-6  # digamma near its root
    return bool(np.isclose(float(result), expected, rtol=TOLERANCE[type], atol=atol if "gamma" in name else 0.0))


# every row -----------------------------------------------------------------------------------------------------------


def test_every_row_has_a_case() -> None:
    assert CASES.keys() == RULES.keys()


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", RULES)
def test_value(name: str, type: str) -> None:
    fn = value(name, type)
    with mp.workdps(400):
        for p in points(name, type):
            expected = float(CASES[name][0](*(mp.mpf(v) if v != int(v) or v > 99 else mp.mpf(int(v)) for v in p)))
            for way in ways(fn, type):
                assert float(way(*p)) == pytest.approx(expected, rel=4 * TOLERANCE[type], abs=1e-300), p


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", RULES)
def test_reverse_mode(name: str, type: str) -> None:
    active = active_operands(name)
    assert points(name, type)
    for k in active:
        fn = reverse(name, type, k, active)
        for p in points(name, type):
            for way in ways(fn, type):
                result = way(*p, 0.5)
                assert close(result, 0.5 * exact(name, p, k), type, name), (p, k, float(result), exact(name, p, k))


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", RULES)
def test_forward_mode(name: str, type: str) -> None:
    active = active_operands(name)
    tangents = (0.5, -3.0, 2.0)[: len(active)]
    for p in points(name, type):
        terms = [exact(name, p, k) * t for k, t in zip(active, tangents, strict=True)]
        scale = sum(map(abs, terms))
        for way in ways(forward(name, type, active), type):
            if len(active) == 1:
                assert close(way(*p, *tangents), terms[0], type, name), p
            else:
                assert abs(float(way(*p, *tangents)) - sum(terms)) <= 2 * TOLERANCE[type] * scale, p
        for k, t, term in zip(active, tangents, terms, strict=True):
            for way in ways(forward(name, type, [k]), type):
                assert close(way(*p, t), term, type, name), (p, k)


# kinks and poles -----------------------------------------------------------------------------------------------------

INF, NAN = math.inf, math.nan
KINKS: list[tuple[str, tuple[float, ...], tuple[float | None, ...]]] = [
    ("fabs", (0.0,), (0,)),
    ("fabs", (-0.0,), (0,)),
    ("fabs", (INF,), (1,)),
    ("copysign", (0.0, -2.0), (0, None)),
    ("copysign", (3.0, -0.0), (-1, None)),
    *((f"{which}{form}", (2.0, 2.0), (1, 0)) for which in ("min", "max") for form in ("num", "imum", "imumnum")),
    *((f"{which}{form}", (-0.0, 0.0), (1, 0)) for which in ("min", "max") for form in ("num", "imum", "imumnum")),
    *((f"{which}{form}", (NAN, 2.0), (0, 1)) for which in ("min", "max") for form in ("num", "imumnum")),
    *((f"{which}{form}", (2.0, NAN), (1, 0)) for which in ("min", "max") for form in ("num", "imumnum")),
    ("minimum", (NAN, 2.0), (1, 0)),
    ("maximum", (2.0, NAN), (0, 1)),
    ("fdim", (2.0, 2.0), (0, 0)),
    ("sqrt", (0.0,), (INF,)),
    ("cbrt", (0.0,), (INF,)),
    ("hypot", (0.0, 0.0), (0, 0)),
    ("hypot", (0.0, -2.0), (0, -1)),
    ("atan2", (0.0, 0.0), (NAN, NAN)),
    ("log", (0.0,), (INF,)),
    ("asin", (1.0,), (INF,)),
    ("acos", (-1.0,), (-INF,)),
    ("atanh", (1.0,), (INF,)),
    ("acosh", (1.0,), (INF,)),
    ("pow", (0.0, 2.0), (0, 0)),
    ("pow", (0.0, 1.0), (1, 0)),
    ("pow", (0.0, 0.5), (INF, 0)),
    ("pow", (0.0, 0.0), (0, 0)),
    ("pow", (0.0, -1.0), (-INF, -INF)),
    ("pow", (INF, 0.0), (0, INF)),
    ("pow", (-2.0, 3.0), (12, NAN)),
    ("pow", (-2.0, 0.0), (0, NAN)),
    ("powi", (0.0, 0), (0, None)),
    ("powi", (0.0, 1), (1, None)),
    ("powi", (0.0, 2), (0, None)),
    ("powi", (0.0, -1), (-INF, None)),
    ("powi", (1.0, -(2**31)), (-(2.0**31), None)),
    ("frem", (6.0, 2.0), (1, -3)),
    ("fdiv", (1.0, 0.0), (INF, -INF)),
    ("lgamma", (0.0,), (-INF,)),
    ("lgamma", (INF,), (INF,)),
    ("tanh", (1000.0,), (0,)),
    ("cosh", (0.0,), (0,)),
]


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(("name", "point", "expected"), KINKS)
def test_documented_values(name: str, point: tuple[float, ...], expected: tuple[float | None, ...], type: str) -> None:
    active = active_operands(name)
    for k in active:
        for way in ways(reverse(name, type, k, active), type):
            np.testing.assert_allclose(float(way(*point, 1.0)), expected[k], rtol=1e-6, err_msg=f"operand {k}")
        for way in ways(forward(name, type, [k]), type):
            np.testing.assert_allclose(float(way(*point, 1.0)), expected[k], rtol=1e-6, err_msg=f"operand {k}")


POLES: dict[str, list[tuple[float, ...]]] = {
    "fdiv": [(1.0, 0.0), (0.0, 0.0), (INF, 0.0)],
    "frem": [(1.0, 0.0)],
    "remainder": [(1.0, 0.0)],
    "sqrt": [(0.0,), (-1.0,)],
    "cbrt": [(0.0,)],
    "pow": [(0.0, 0.5), (0.0, -1.0), (-2.0, 1.5), (0.0, 0.25)],
    "powi": [(0.0, -1), (0.0, -2)],
    "log": [(0.0,)],
    "log2": [(0.0,)],
    "log10": [(0.0,)],
    "log1p": [(-1.0,)],
    "asin": [(1.0,), (-1.0,), (2.0,)],
    "acos": [(1.0,), (-1.0,), (2.0,)],
    "atan2": [(0.0, 0.0)],
    "acosh": [(1.0,), (0.5,)],
    "atanh": [(1.0,), (-1.0,)],
    "lgamma": [(0.0,), (-3.0,)],
    "tgamma": [(0.0,), (-3.0,)],
}


def test_every_pole_has_a_case() -> None:
    assert POLES.keys() == {name for name, row in RULES.items() if any(p is not None and p.pole for p in row)}


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", POLES)
def test_a_zero_derivative_stays_zero_at_a_pole(name: str, type: str) -> None:
    active = active_operands(name)
    for p in POLES[name]:
        infinite = False
        for k in active:
            for way in ways(reverse(name, type, k, active), type):
                if RULES[name][k].pole:  # type: ignore[union-attr]
                    assert way(*p, 0.0) == 0.0, p
                    assert way(*p, -0.0) == 0.0, p
                    infinite |= not math.isfinite(float(way(*p, 1.0)))
        for way in ways(forward(name, type, active), type):
            assert way(*p, *(0.0 for _ in active)) == 0.0, p
        assert infinite, f"{p} is no pole"


def test_the_guard_stands_whatever_flags_arithmetic_has() -> None:
    functions = [reverse("log", "double", 0, [0], flags=("fast",)), reverse("fdiv", "double", 0, [0, 1], ("fast",))]
    code = Machine(functions)
    assert code(functions[0].name, 0.0, 0.0) == 0.0
    assert code(functions[1].name, 1.0, 0.0, 0.0) == 0.0


@pytest.mark.parametrize("type", TYPES)
def test_products_sums_and_division_by_constants_carry_no_guard(type: str) -> None:
    assert math.isnan(interpreted(reverse("fmul", type, 0, [0, 1]), 1.0, INF, 0.0))
    assert math.isnan(interpreted(reverse("fdiv", type, 0, [0]), 1.0, 0.0, 0.0))
    assert math.isnan(interpreted(forward("fdiv", type, [0]), 1.0, 0.0, 0.0))
    for fn in (reverse("fmul", type, 0, [0, 1]), reverse("fadd", type, 0, [0, 1]), reverse("fdiv", type, 0, [0])):
        assert not any(i.op in ("select", "fcmp") for i in fn.instrs())


def test_a_half_as_exponent_needs_no_second_power() -> None:
    fn = Function("f", "double", [Arg("double", "x"), Arg("double", "c")])
    b = Builder(fn.block("entry"))
    x, c = fn.args
    i = b.call_math("pow", x, b.const("double", 0.5))
    assert isinstance(i, Instr)
    b.ret(cotangents_of(b, i, i.operands, i, c, (True, False))[0])
    verify(fn)
    assert sum(j.op == "call" for j in fn.instrs()) == 1
    assert run(fn, [4.0, 1.0]) == 0.25
    assert run(fn, [0.0, 0.0]) == 0.0


# what is read --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RULES)
def test_what_is_not_needed_is_not_read(name: str) -> None:
    """Values beside those that ``needs`` names may be anything."""
    types, result = signature(name, "double")
    for k in active_operands(name):
        wanted = [j == k for j in range(len(types))]
        block = Block("entry")
        args = [Arg(t, f"x{j}") for j, t in enumerate(types)]
        i = instruction(name, "double", args)
        before: list[Any] = [*args, i]
        cotangents_of(Builder(block), i, args, i, Arg(result, "c"), wanted)
        read = {before.index(v) for j in block.instrs for v in j.operands if v in before}
        assert {len(args) if n == "result" else n for n in needs(i, wanted)} == read, k


def test_needs_of_some_rows() -> None:
    def of(name: str, *carries: bool) -> frozenset[int | str]:
        types, _ = signature(name, "double")
        return needs(instruction(name, "double", [Arg(t, "x") for t in types]), carries or None)

    assert of("fadd") == frozenset()
    assert of("fmul") == {0, 1}
    assert of("fmul", True, False) == {1}
    assert of("fdiv", True, False) == {1}
    assert of("fdiv", False, True) == {1, "result"}
    assert of("exp") == {"result"}
    assert of("sqrt") == {"result"}
    assert of("sin") == {0}


def test_the_result_is_asked_for_only_if_needed() -> None:
    x, c = Arg("double", "x"), Arg("double", "c")
    asked = []

    def result() -> Any:
        asked.append(1)
        return i

    i = instruction("sin", "double", [x])
    cotangents_of(Builder(Block("a")), i, [x], result, c)
    assert not asked
    i = instruction("exp", "double", [x])
    cotangents_of(Builder(Block("a")), i, [x], result, c)
    assert asked


def test_adjoint_arithmetic_has_the_flags_of_the_builder() -> None:
    for fn in (reverse("fdiv", "double", 1, [0, 1]), forward("hypot", "double", [0, 1])):
        flagged = [i for i in fn.instrs() if i.op in ("fadd", "fsub", "fmul", "fdiv", "fneg")][
            1 - (fn.name[0] == "f") :
        ]
        assert flagged
        assert all(i.flags == DERIVATIVE_FLAGS for i in flagged)


# selects -------------------------------------------------------------------------------------------------------------


def test_select_hands_on_to_the_side_that_was_taken() -> None:
    for taken in (1, 0):
        fn = Function("f", "double", [Arg("i1", "c"), Arg("double", "x"), Arg("double", "y"), Arg("double", "d")])
        b = Builder(fn.block("entry"))
        i = b.emit("select", "double", fn.args[:3])
        to = cotangents_of(b, i, i.operands, i, fn.args[3])
        assert to[0] is None
        assert to[1] is not None
        assert to[2] is not None
        b.ret(b.fsub(to[1], b.fmul(b.const("double", 10.0), to[2])))
        assert run(fn, [taken, 0.0, 0.0, 3.0]) == (3.0 if taken else -30.0)
        fn = Function("g", "double", [Arg("i1", "c"), Arg("double", "x"), Arg("double", "y"), Arg("double", "t")])
        b = Builder(fn.block("entry"))
        i = b.emit("select", "double", fn.args[:3])
        b.ret(tangent_of(b, i, i.operands, i, [None, None, fn.args[3]]))
        assert run(fn, [taken, 0.0, 0.0, 3.0]) == (0.0 if taken else 3.0)


# classes -------------------------------------------------------------------------------------------------------------


def test_every_operation_is_in_one_table() -> None:
    tables = (frozenset(RULES), INACTIVE, frozenset(REFUSED), STRUCTURAL)
    known = frozenset(ops.OPS) | frozenset(ops.MATH)
    for name in known:
        assert sum(name in t for t in tables) == 1, name
    marks = {"irad.index", "irad.strong", "integer.call"}
    assert frozenset().union(*tables) == known | marks
    for a in range(4):
        for b in range(a):
            assert not tables[a] & tables[b]


def test_kinds_of_calls() -> None:
    def kind(callee: str, type: str = "double") -> str:
        return kind_of(Instr("call", type, [Arg("double", "x")], callee=callee))

    assert kind("llvm.sin.f64") == "rule"
    assert kind("tanhf", "float") == "rule"
    assert kind("llvm.floor.f64") == "inactive"
    assert kind("llvm.smax.i64", "i64") == "inactive"
    assert kind("llvm.is.fpclass.f64", "i1") == "inactive"
    assert kind("irad.index.0", "i64") == "inactive"
    assert kind("irad.strong.f64") == "rule"
    assert kind("llvm.memcpy.p0.p0.i64", "void") == "structural"
    assert kind("nextafter") == "refused"
    assert kind("something") == "refused"


@pytest.mark.parametrize("name", ["floor", "rint", "trunc"])
def test_inactive_functions_hand_on_nothing(name: str) -> None:
    x = Arg("double", "x")
    i = Instr("call", "double", [x], callee=ops.math_callee(name, "double"))
    assert tangent_of(Builder(Block("a")), i, [x], i, [x]) is None
    assert cotangents_of(Builder(Block("a")), i, [x], i, x) == [None]
    assert carriers(i) == (False,)


@pytest.mark.parametrize(
    ("instr", "word"),
    [
        (Instr("bitcast", "double", [Arg("i64", "x")], loc=Loc("user.py", 7)), "bits"),
        (Instr("call", "double", [Arg("double", "x")] * 2, callee="nextafter", loc=Loc("user.py", 7)), "unit"),
        (Instr("extractvalue", "double", [Arg("{ double }", "x")], indices=(0,), loc=Loc("user.py", 7)), "struct"),
        (Instr("call", "double", [Arg("double", "x")], callee="j0", loc=Loc("user.py", 7)), "'j0'"),
    ],
)
def test_what_has_no_row_is_refused_with_its_line(instr: Instr, word: str) -> None:
    with pytest.raises(NotDifferentiableError, match=rf"user\.py:7: .*{word}") as e:
        cotangents_of(Builder(Block("a")), instr, instr.operands, instr, Arg("double", "c"))
    assert e.value.remedy
    with pytest.raises(NotDifferentiableError, match=rf"user\.py:7: .*{word}"):
        partials(instr)
