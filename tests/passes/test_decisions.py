"""Fast-math flags go from what decides, and from nothing else."""

from __future__ import annotations

import pytest
from irad.passes import rules
from irad.passes.decisions import DECIDING, exact_decisions
from irad.passes.expr import Expr
from irad.passes.ir import ops
from irad.passes.ir.model import Function
from irad.passes.ir.read import read_function
from irad.passes.ir.verify import verify
from irad.passes.ir.write import write_functions


def flags(text: str) -> dict[str, tuple[str, ...]]:
    fn = read_function(text, "f")
    before = write_functions(fn)
    new: Function = exact_decisions(fn)
    verify(new)
    assert write_functions(fn) == before
    return {i.name: i.flags for i in new.instrs() if i.name}


def test_what_leads_to_a_branch() -> None:
    got = flags(
        """
        define double @f(double %x, double %y, double %z) {
        entry:
          %p = fmul contract double %x, %y
          %q = fsub contract double %p, %z
          %c = fcmp nnan ogt double %q, 0.0
          br i1 %c, label %a, label %b
        a:
          %u = fmul fast double %p, %z
          br label %b
        b:
          %r = phi fast double [ %u, %a ], [ %x, %entry ]
          ret double %r
        }"""
    )
    assert (got["p"], got["q"], got["c"]) == ((), (), ())
    assert (got["u"], got["r"]) == (("fast",), ("fast",))


def test_selects_switches_and_addresses() -> None:
    got = flags(
        """
        define double @f(ptr %T.data, double %x, double %y) {
        entry:
          %a = fadd reassoc double %x, %y
          %c = fcmp olt double %a, 0.0
          %s = select contract i1 %c, double %x, double %y
          %b = fadd contract double %s, 1.0
          %i = fptosi double %b to i64
          %p = getelementptr double, ptr %T.data, i64 %i
          %v = load double, ptr %p
          %d = fmul afn double %v, %v
          %e = fmul arcp double %x, 3.0
          %k = fptosi double %e to i64
          switch i64 %k, label %done [ i64 1, label %one ]
        one:
          br label %done
        done:
          ret double %d
        }"""
    )
    assert (got["a"], got["s"], got["b"], got["e"]) == ((), (), (), ())
    assert got["d"] == ("afn",)


@pytest.mark.parametrize("name", sorted(DECIDING))
def test_operands_of_functions_with_kinks_and_jumps(name: str) -> None:
    function = ops.MATH[name]
    types = ", ".join(["double"] * function.arity)
    arguments = ", ".join(f"double %{'ab'[k]}" for k in range(function.arity))
    got = flags(
        f"""
        declare double @{function.double}({types})
        define double @f(double %x, double %y) {{
          %p = fmul contract double %x, %y
          %a = fsub contract double %p, %y
          %b = fadd reassoc double %x, %y
          %r = call contract double @{function.double}({arguments})
          %s = fadd contract double %r, %x
          ret double %s
        }}"""
    )
    assert (got["p"], got["a"]) == ((), ())
    assert (got["b"], got["r"], got["s"]) == (("reassoc",) if function.arity == 1 else (), ("contract",), ("contract",))


def test_remainders_and_integers() -> None:
    got = flags(
        """
        define double @f(double %x, double %y) {
          %a = fmul contract double %x, %y
          %r = frem contract double %a, %y
          %b = fadd reassoc double %r, %y
          %i = fptosi double %b to i64
          %j = sitofp i64 %i to double
          %s = fmul contract double %j, %r
          ret double %s
        }"""
    )
    assert (got["a"], got["r"], got["b"], got["s"]) == ((), (), (), ("contract",))


def test_every_function_whose_derivative_chooses_a_side_decides() -> None:
    """Those of which the table of derivatives compares operands, other than with the edge of what is defined."""
    smooth = {"pow", "powi", "hypot", "atan2", "asinh", "lgamma", "tgamma"}

    def compares(e: object) -> bool:
        return isinstance(e, Expr) and (e.op.startswith("fcmp") or e.op == "where" or any(map(compares, e.args)))

    chooses = {
        name for name, row in rules.RULES.items() if name in ops.MATH and any(p and compares(p.expr) for p in row)
    }
    assert chooses, "the table is written otherwise now"
    assert chooses - smooth <= DECIDING


def test_through_local_variables_and_loops() -> None:
    got = flags(
        """
        define double @f(double %x, i64 %n) {
        entry:
          %v = alloca double
          store double %x, ptr %v
          br label %head
        head:
          %s = phi contract double [ %x, %entry ], [ %t, %head ]
          %t = fmul contract double %s, %x
          %u = fadd contract double %t, 1.0
          store double %u, ptr %v
          %w = load double, ptr %v
          %c = fcmp olt double %w, 100.0
          br i1 %c, label %head, label %done
        done:
          %z = fadd contract double %t, %x
          ret double %z
        }"""
    )
    assert (got["s"], got["t"], got["u"]) == ((), (), ())
    assert got["z"] == ("contract",)


def test_structured_operations() -> None:
    got = flags(
        """
        declare double @irad.aload.f64.T(i64)
        declare void @irad.astore.f64.T(double, i64)
        define void @f(double %x, double %y) {
          %a = fadd contract double %x, %y
          %i = fptosi double %a to i64
          %v = call double @irad.aload.f64.T(i64 %i)
          %b = fadd contract double %v, %y
          %c = fadd contract double %y, %y
          %j = fptosi double %c to i64
          call void @irad.astore.f64.T(double %b, i64 %j)
          ret void
        }"""
    )
    assert (got["a"], got["c"]) == ((), ())
    assert got["b"] == ("contract",)
