"""Forward mode on small functions: differences of the interpreter's runs, exact numbers, refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from irad.passes.build import Builder
from irad.passes.forward import tangent
from irad.passes.ir.interp import run, run_point
from irad.passes.ir.model import Access, Arg, ArrayParam, Function, Index, Instr, LinExpr, PointFn, ScalarParam
from irad.passes.ir.read import read_function
from irad.passes.ir.verify import verify_point
from irad.passes.pipeline import params_of, rank_of
from irad.passes.reverse import adjoint
from irad.passes.simplify import drop_unreachable

from irad.errors import NotDifferentiableError, ShadowError

from .random_functions import functions

DECLARED = """
declare {t} @irad.aload.{s}.T(i64)
declare {t} @irad.aload.{s}.C(i64)
declare {t} @irad.aload.{s}.q(i64)
declare void @irad.astore.{s}.q(i64, i64)
declare void @irad.astore.{s}.dT({t}, i64)
declare {t} @llvm.sin.{s}({t})
declare {t} @llvm.sqrt.{s}({t})
declare {t} @llvm.exp.{s}({t})
declare {t} @llvm.pow.{s}({t}, {t})
declare {t} @llvm.maxnum.{s}({t}, {t})
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""


def point(body: str, type: str = "double", scalars: str = "") -> PointFn:
    """A function of the arrays T, C, q, dT, one dimension each; ``{t}``, ``{s}`` in the text are the types."""
    words = ", ".join(f"ptr %{a}.data, i64 %{a}.n0, i64 %{a}.s0" for a in ("dT", "T", "C", "q"))
    spelled = {"t": type, "s": "f64" if type == "double" else "f32", "z": 8 if type == "double" else 4}
    head = DECLARED.replace(".q(i64, i64)", ".q({t}, i64)").format(**spelled)
    for key, text in spelled.items():
        body, scalars = body.replace(f"{{{key}}}", str(text)), scalars.replace(f"{{{key}}}", str(text))
    fn = read_function(f"{head}\ndefine void @f(i64 %.i0, {words}{scalars}) {{\nentry:\n{body}\n}}\n", "f")
    params = tuple(ArrayParam(p.name, type, p.rank) if isinstance(p, ArrayParam) else p for p in params_of(fn))
    return PointFn(fn, rank_of(fn), params)


STENCIL = """
  %l = sub i64 %.i0, 1
  %r = add i64 %.i0, 1
  %tl = call {t} @irad.aload.{s}.T(i64 %l)
  %tm = call {t} @irad.aload.{s}.T(i64 %.i0)
  %tr = call {t} @irad.aload.{s}.T(i64 %r)
  %k = call {t} @irad.aload.{s}.C(i64 %.i0)
  %two = fmul {t} %tm, 2.0
  %sum = fadd {t} %tl, %tr
  %lap = fsub {t} %sum, %two
  %flux = fmul {t} %k, %lap
  %sin = call {t} @llvm.sin.{s}({t} %tm)
  %both = fadd {t} %flux, %sin
  %scaled = fdiv {t} %both, %a
  call void @irad.astore.{s}.dT({t} %scaled, i64 %.i0)
  %old = call {t} @irad.aload.{s}.q(i64 %.i0)
  %new = fmul {t} %old, %scaled
  call void @irad.astore.{s}.q({t} %new, i64 %.i0)
  %again = call {t} @irad.aload.{s}.q(i64 %.i0)
  %root = call {t} @llvm.exp.{s}({t} %again)
  call void @irad.astore.{s}.q({t} %root, i64 %.i0)
  ret void"""
BRANCHES = """
  %t = call {t} @irad.aload.{s}.T(i64 %.i0)
  %k = call {t} @irad.aload.{s}.C(i64 %.i0)
  %z = fcmp olt {t} %t, %k
  br i1 %z, label %small, label %large
small:
  %p = fmul {t} %t, %t
  br label %join
large:
  %y = fcmp ogt {t} %t, 1.5
  br i1 %y, label %huge, label %join
huge:
  %e = fmul {t} %k, %a
  br label %join
join:
  %v = phi {t} [ %p, %small ], [ %k, %large ], [ %e, %huge ]
  %m = call {t} @llvm.maxnum.{s}({t} %v, {t} %t)
  %w = select i1 %z, {t} %m, {t} %v
  %x = fadd {t} %w, %m
  call void @irad.astore.{s}.dT({t} %x, i64 %.i0)
  br i1 %z, label %set, label %end
set:
  call void @irad.astore.{s}.q({t} 3.0, i64 %.i0)
  br label %end
end:
  ret void"""
LOOP = """
  %t = call {t} @irad.aload.{s}.T(i64 %.i0)
  br label %head
head:
  %j = phi i64 [ 0, %entry ], [ %j1, %body ]
  %x = phi {t} [ 1.0, %entry ], [ %y, %body ]
  %before = phi {t} [ %a, %entry ], [ %x, %body ]
  %more = icmp slt i64 %j, %n
  br i1 %more, label %body, label %done
body:
  %xt = fmul {t} %x, %t
  %y = fadd {t} %xt, %before
  %j1 = add i64 %j, 1
  br label %head
done:
  %o = fmul {t} %x, %before
  call void @irad.astore.{s}.dT({t} %o, i64 %.i0)
  ret void"""
LOCAL = """
  %arr = alloca [4 x {t}]
  %cpy = alloca [4 x {t}]
  call void @llvm.memset.p0.i64(ptr %arr, i8 0, i64 mul4, i1 false)
  %t = call {t} @irad.aload.{s}.T(i64 %.i0)
  br label %head
head:
  %j = phi i64 [ 0, %entry ], [ %j1, %head ]
  %p = phi ptr [ %arr, %entry ], [ %p1, %head ]
  %f = phi {t} [ %a, %entry ], [ %g, %head ]
  store {t} %f, ptr %p
  %g = fmul {t} %f, %t
  %p1 = getelementptr {t}, ptr %p, i64 1
  %j1 = add i64 %j, 1
  %more = icmp slt i64 %j1, 3
  br i1 %more, label %head, label %done
done:
  call void @llvm.memcpy.p0.p0.i64(ptr %cpy, ptr %arr, i64 mul4, i1 false)
  %first = getelementptr [4 x {t}], ptr %arr, i64 0, i64 0
  store {t} 5.0, ptr %first
  %at = getelementptr [4 x {t}], ptr %cpy, i64 0, i64 %n
  %q2 = getelementptr [4 x {t}], ptr %arr, i64 0, i64 2
  %u = load {t}, ptr %at
  %v = load {t}, ptr %q2
  %w = load {t}, ptr %first
  %uv = fmul {t} %u, %v
  %o = fadd {t} %uv, %w
  call void @irad.astore.{s}.dT({t} %o, i64 %.i0)
  ret void"""
SWITCH = """
  %t = call {t} @irad.aload.{s}.T(i64 %.i0)
  %k = and i64 %.i0, 3
  switch i64 %k, label %other [ i64 0, label %zero
    i64 1, label %one ]
zero:
  br label %join
one:
  %s = call {t} @llvm.sqrt.{s}({t} %t)
  br label %join
other:
  %p = call {t} @llvm.pow.{s}({t} %t, {t} %a)
  br label %join
join:
  %v = phi {t} [ 1.0, %zero ], [ %s, %one ], [ %p, %other ]
  call void @irad.astore.{s}.dT({t} %v, i64 %.i0)
  ret void"""
BODIES = {"stencil": STENCIL, "branches": BRANCHES, "loop": LOOP, "local": LOCAL, "switch": SWITCH}
ACTIVE = frozenset({"T", "C", "q", "dT", "a"})


def body_of(name: str, type: str) -> PointFn:
    return point(BODIES[name].replace("mul4", "32" if type == "double" else "16"), type, ", {t} %a, i64 %n")


def start(dtype: Any, seed: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    arrays = {n: rng.uniform(0.5, 2.0, 8).astype(dtype) for n in ("dT", "T", "C", "q")}
    return arrays, {n: rng.standard_normal(8).astype(dtype) for n in arrays}


def pushed(
    pf: PointFn, arrays: Mapping[str, np.ndarray], tangents: Mapping[str, np.ndarray], scalars: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """All arrays and tangents (under ``T'``) after a run."""
    verify_point(pf)
    memory = {n: a.copy() for n, a in arrays.items()} | {f"{n}'": a.copy() for n, a in tangents.items()}
    run_point(pf, [(1, 7)], memory, scalars)
    return memory


@pytest.mark.parametrize("type", ["double", "float"])
@pytest.mark.parametrize("name", BODIES)
def test_tangents_are_differences_of_runs(name: str, type: str) -> None:
    dtype = np.float64 if type == "double" else np.float32
    arrays, tangents = start(dtype, 3)
    out = pushed(tangent(body_of(name, type), ACTIVE), arrays, tangents, {"a": 1.25, "n": 2, "a.tangent": 0.75})
    plain = {n: a.copy() for n, a in arrays.items()}
    run_point(body_of(name, type), [(1, 7)], plain, {"a": 1.25, "n": 2})
    wide = body_of(name, "double")
    for n in arrays:
        np.testing.assert_array_equal(out[n], plain[n])  # the primal has the same bits
        total = np.zeros(8)
        for weight, h in ((4 / 3, 1e-3), (-1 / 3, 2e-3)):  # Richardson's extrapolation of central differences
            for sign in (1, -1):
                moved = {m: a.astype(np.float64) + sign * h * tangents[m] for m, a in arrays.items()}
                run_point(wide, [(1, 7)], moved, {"a": 1.25 + sign * h * 0.75, "n": 2})
                total += sign * weight * moved[n] / (2 * h)
        np.testing.assert_allclose(out[f"{n}'"], total, rtol=1e-8 if type == "double" else 1e-4, atol=1e-8)
    assert np.any(out["dT'"][1:7] != tangents["dT"][1:7])


def test_only_what_is_asked_for_is_differentiated() -> None:
    full, part = (
        tangent(body_of("stencil", "double"), ACTIVE),
        tangent(body_of("stencil", "double"), frozenset({"C", "dT", "q"})),
    )
    assert [p.name for p in full.params][-1] == "a.tangent"
    assert isinstance(full.params[-1], ScalarParam)
    assert all(p.name != "a.tangent" for p in part.params)
    assert {i.array for i in part.fn.instrs() if i.op == "sload"} == {"C", "q"}
    assert not any(i.op == "call" and i.callee == "llvm.cos.f64" for i in part.fn.instrs())
    none = tangent(body_of("stencil", "double"), frozenset())
    assert [i.op for i in none.fn.instrs()] == [i.op for i in body_of("stencil", "double").fn.instrs()]


def test_inputs_of_no_use_get_no_tangent() -> None:
    """q is not active here, and nothing else needs what is computed for it alone."""
    pf = point(
        """
  %t = call {t} @irad.aload.{s}.T(i64 %.i0)
  %s = call {t} @llvm.sin.{s}({t} %t)
  %z = fcmp ogt {t} %s, 0.0
  %k = call {t} @irad.aload.{s}.C(i64 %.i0)
  %x = select i1 %z, {t} %k, {t} 0.0
  call void @irad.astore.{s}.dT({t} %x, i64 %.i0)
  ret void"""
    )
    out = tangent(pf, frozenset({"T", "C", "dT"}))
    assert {i.array for i in out.fn.instrs() if i.op == "sload"} == {"C"}
    assert not any(i.op == "call" and i.callee == "llvm.cos.f64" for i in out.fn.instrs())


def test_a_constant_that_overwrites_has_tangent_zero() -> None:
    arrays, tangents = start(np.float64, 5)
    pf = point("  call void @irad.astore.{s}.q({t} 3.0, i64 %.i0)\n  ret void")
    out = pushed(tangent(pf, frozenset({"q"})), arrays, tangents, {})
    np.testing.assert_array_equal(out["q'"][1:7], 0.0)
    np.testing.assert_array_equal(out["q'"][[0, 7]], tangents["q"][[0, 7]])
    out = pushed(tangent(pf, frozenset({"T"})), arrays, tangents, {})
    np.testing.assert_array_equal(out["q'"], tangents["q"])


def test_a_zero_tangent_stays_zero_at_a_pole() -> None:
    pf = point(
        """
  %t = call {t} @irad.aload.{s}.T(i64 %.i0)
  %k = call {t} @irad.aload.{s}.C(i64 %.i0)
  %s = call {t} @llvm.sqrt.{s}({t} %t)
  %x = fdiv {t} %s, %k
  call void @irad.astore.{s}.dT({t} %x, i64 %.i0)
  ret void"""
    )
    arrays = {n: np.zeros(8) for n in ("dT", "T", "C", "q")}
    out = pushed(tangent(pf, frozenset({"T", "C", "dT"})), arrays, arrays, {})
    np.testing.assert_array_equal(out["dT'"], 0.0)
    assert np.isnan(out["dT"][1])


def test_the_input_is_left_as_it_is() -> None:
    pf = body_of("local", "double")
    before = [(i, list(i.operands)) for i in pf.fn.instrs()]
    tangent(pf, ACTIVE)
    assert before == [(i, i.operands) for i in pf.fn.instrs()]
    assert all(p.name != "a.tangent" for p in pf.params)


def test_a_table_of_constants_has_no_tangent() -> None:
    text = """
@table = private constant [2 x double] [double 2.0, double 4.0]
declare double @irad.aload.f64.T(i64)
declare void @irad.astore.f64.dT(double, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @f(i64 %.i0, ptr %T.data, i64 %T.n0, i64 %T.s0, ptr %dT.data, i64 %dT.n0, i64 %dT.s0) {
  %arr = alloca [2 x double]
  %t = call double @irad.aload.f64.T(i64 %.i0)
  %q = getelementptr [2 x double], ptr %arr, i64 0, i64 1
  store double %t, ptr %q
  %p = getelementptr [2 x double], ptr @table, i64 0, i64 1
  %c = load double, ptr %p
  %u = load double, ptr %q
  %x = fmul double %u, %c
  call void @llvm.memcpy.p0.p0.i64(ptr %arr, ptr @table, i64 16, i1 false)
  %v = load double, ptr %q
  %y = fmul double %x, %v
  call void @irad.astore.f64.dT(double %y, i64 %.i0)
  ret void
}"""
    fn = read_function(text, "f")
    pf = tangent(PointFn(fn, 1, params_of(fn)), frozenset({"T", "dT"}))
    arrays = {"T": np.full(8, 3.0), "dT": np.zeros(8)}
    out = pushed(pf, arrays, {"T": np.ones(8), "dT": np.zeros(8)}, {})
    assert out["dT"][1] == 48.0
    assert out["dT'"][1] == 16.0


# refusals -------------------------------------------------------------------------------------------------------------


def test_a_written_array_without_a_tangent() -> None:
    with pytest.raises(ShadowError, match="'q'"):
        tangent(body_of("stencil", "double"), frozenset({"T", "dT"}))


def test_an_operation_without_a_rule() -> None:
    pf = point(
        """
  %t = call {t} @irad.aload.{s}.T(i64 %.i0)
  %b = bitcast double %t to i64
  %c = add i64 %b, 1
  %x = bitcast i64 %c to double
  call void @irad.astore.{s}.dT({t} %x, i64 %.i0)
  ret void"""
    )
    with pytest.raises(NotDifferentiableError, match="bits"):
        tangent(pf, frozenset({"T", "dT"}))
    assert tangent(pf, frozenset({"C", "dT"}))


def test_a_function_that_is_an_adjoint_already() -> None:
    pf = body_of("switch", "double")
    pf.fn.blocks[0].insert(0, Instr("sload", "double", [pf.index[0]], array="T"))
    with pytest.raises(NotDifferentiableError, match="adjoint"):
        tangent(pf, ACTIVE)


# both modes -----------------------------------------------------------------------------------------------------------


def as_point(fn: Function) -> PointFn:
    """A random function of two conditions and two numbers, whose result goes to ``o[i0]``."""
    drop_unreachable(fn)
    fn.type = "void"
    fn.args = [Arg("i64", ".i0"), Arg("ptr", "o.data"), Arg("i64", "o.n0"), Arg("i64", "o.s0"), *fn.args]
    for b in fn.blocks:
        if b.terminator.op == "ret":
            value = b.instrs.pop().operands[0]
            access = Access("o", (Index(0, LinExpr()),))
            b.append(Instr("astore", "void", [value, fn.args[0]], array="o", access=access))
            b.append(Instr("ret", "void"))
    params = (ArrayParam("o", "double", 1), *(ScalarParam(a.name, a.type) for a in fn.args[4:]))
    return PointFn(fn, 1, params)


def with_scale(fn: Function) -> None:
    """Let a function add up the sizes of all floats that it computes, into the array ``scale'``."""
    for block in fn.blocks:
        for i in [i for i in block.instrs if i.type == "double"]:
            at = max(block.instrs.index(i) + 1, len(block.phis))
            b = Builder(block, at=at)
            b.accums(b.call_math("fabs", i), "scale")


@settings(max_examples=150, deadline=None)
@given(functions())
def test_both_modes_agree_on_random_functions(fn: Function) -> None:
    pf = as_point(fn)
    active = frozenset({"o", "x", "y"})
    there, back = tangent(pf, active), adjoint(pf, active)
    verify_point(there)
    with_scale(there.fn)
    with_scale(back.fn)
    for c, d, x, y in ((1, 0, 0.7, -1.25), (0, 1, 3.0, 0.5), (1, 1, -0.0, 2.0), (0, 0, 1.0, 1.0)):
        scalars = {"c": c, "d": d, "x": x, "y": y, ".i0": 0}
        scale = np.ones(1)
        bars = {"o": np.zeros(1), "o'": np.ones(1), "x'": np.zeros(1), "y'": np.zeros(1), "scale'": scale}
        run(back.fn, scalars, bars, index=(0,))
        for name in ("x", "y"):
            out = {"o": np.zeros(1), "o'": np.full(1, 9.0), "scale'": scale}
            seeds = {"x.tangent": float(name == "x"), "y.tangent": float(name == "y")}
            run(there.fn, {**scalars, **seeds}, out, index=(0,))
            found, expected = out["o'"][0], bars[f"{name}'"][0]
            if np.isfinite([scale[0], out["o"][0], found, expected]).all():
                assert abs(found - expected) <= 1e-11 * scale[0]
