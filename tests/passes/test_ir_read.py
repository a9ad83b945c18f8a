"""LLVM text to the small IR: what is read, what is dropped, what is refused and where the message points."""

from __future__ import annotations

import pytest
from irad.passes.ir.model import Const, Function, Global, Instr, Loc
from irad.passes.ir.read import read_function, read_module
from irad.passes.ir.verify import verify
from irad.passes.ir.write import write_functions

from irad.errors import IradError, NotDifferentiableError

DEBUG = """
!llvm.module.flags = !{!0}
!llvm.dbg.cu = !{!1}
!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = distinct !DICompileUnit(language: DW_LANG_C, file: !2, emissionKind: LineTablesOnly)
!2 = !DIFile(filename: "kernel.py", directory: "/home/u")
!3 = distinct !DISubprogram(name: "k", scope: !2, file: !2, line: 10, type: !4, unit: !1, spFlags: DISPFlagDefinition)
!4 = !DISubroutineType(types: !{null})
!5 = !DILocation(line: 12, column: 3, scope: !3)
!6 = !DIFile(filename: "/opt/helper.py", directory: "")
!7 = distinct !DISubprogram(name: "h", scope: !6, file: !6, line: 3, type: !4, unit: !1, spFlags: DISPFlagDefinition)
!8 = !DILocation(line: 4, column: 1, scope: !7, inlinedAt: !5)
!9 = distinct !DILexicalBlock(scope: !3, file: !2, line: 11, column: 1)
!10 = !DILocation(line: 0, scope: !9)
"""


def only(fn: Function, op: str) -> Instr:
    (i,) = [i for i in fn.instrs() if i.op == op]
    return i


def body(lines: str, args: str = "double %x, double %y, i64 %n, ptr %p", result: str = "void", more: str = "") -> str:
    return f"{more}\ndefine {result} @f({args}) !dbg !3 {{\n{lines}\n}}\n{DEBUG}"


def read(lines: str, **kw: str) -> Function:
    fn = read_function(body(lines, **kw), "f")
    verify(fn)
    return fn


# forms ---------------------------------------------------------------------------------------------------------------

FORMS = [
    "%r = fadd reassoc contract double %x, %y",
    "%r = fneg fast double %x",
    "%r = add nuw nsw i64 %n, 7",
    "%r = sdiv exact i64 %n, 8",
    "%r = or disjoint i64 %n, 1",
    "%r = icmp samesign ult i64 %n, 9",
    "%r = fcmp nnan olt double %x, 1.000000e+00",
    "%r = zext nneg i32 5 to i64",
    "%r = trunc nuw nsw i64 %n to i32",
    "%r = sext i1 true to i8",
    "%r = uitofp nneg i64 %n to double",
    "%r = fptrunc contract double %x to float",
    "%r = bitcast double %x to i64",
    "%r = ptrtoint ptr %p to i64",
    "%r = inttoptr i64 %n to ptr",
    "%r = select nsz i1 true, double %x, double %y",
    "%r = freeze double %x",
    "%r = getelementptr inbounds nuw i8, ptr %p, i64 %n",
    "%r = getelementptr inbounds { double, [4 x i64] }, ptr %p, i64 0, i32 1, i64 %n",
    "%r = alloca [8 x double], align 16",
    "%r = load double, ptr %p, align 8",
    "%r = load i8, ptr %p, align 1",
    "store double %x, ptr %p, align 8",
    "store i64 -5, ptr %p, align 4",
    "%r = insertvalue { double, i1 } { double 2.000000e+00, i1 true }, double %x, 0",
    "%r = extractvalue [2 x double] zeroinitializer, 1",
    "%r = fadd double %x, 0x7FF8000000000000",
    "%r = fadd float 0x3FB99999A0000000, undef",
]


@pytest.mark.parametrize("line", FORMS)
def test_every_form_is_written_as_it_was_read(line: str) -> None:
    fn = read(f"  {line}\n  ret void")
    text = write_functions(fn)
    assert f"  {line}\n" in text
    assert write_functions(read_function(text, "f")) == text


CALLS = {
    "declare double @llvm.sin.f64(double)": "call contract double @llvm.sin.f64(double %x)",
    "declare i64 @llvm.smax.i64(i64, i64)": "call i64 @llvm.smax.i64(i64 %n, i64 0)",
    "declare double @tanh(double)": "call double @tanh(double %x)",
    "declare i64 @irad.index.0()": "call i64 @irad.index.0()",
}


@pytest.mark.parametrize("declaration", CALLS)
def test_calls_are_written_as_they_were_read(declaration: str) -> None:
    line = f"  %r = {CALLS[declaration]}\n"
    fn = read(f"{line}  ret void", more=declaration)
    assert line in write_functions(fn)


def test_flow_of_control() -> None:
    fn = read(
        """entry:
          switch i64 %n, label %d [
            i64 1, label %a
            i64 -2, label %b
          ]
        a:
          br label %d
        b:
          %c = icmp eq i64 %n, 3
          br i1 %c, label %a, label %d
        d:
          %r = phi double [ %x, %entry ], [ 0.000000e+00, %a ], [ %y, %b ]
          ret double %r""",
        result="double",
    )
    switch, phi = only(fn, "switch"), only(fn, "phi")
    assert switch.cases == (1, -2)
    assert [b.name for b in switch.targets] == ["d", "a", "b"]
    assert [b.name for b in phi.targets] == ["entry", "a", "b"]
    assert phi.operands[0] is fn.args[0]
    text = write_functions(fn)
    assert write_functions(read_function(text, "f")) == text


def test_unnamed_values_and_an_entry_without_a_label() -> None:
    text = """
    define double @f(double %0, i1 %1) {
      br i1 %1, label %3, label %5
    3:
      %4 = fadd double %0, %0
      br label %5
    5:
      %6 = phi double [ %4, %3 ], [ %0, %2 ]
      ret double %6
    }"""
    fn = read_function(text, "f")
    verify(fn)
    assert only(fn, "phi").targets[1] is fn.blocks[0]
    again = write_functions(fn)
    assert write_functions(read_function(again, "f")) == again


def test_quoted_names() -> None:
    text = r"""
    define double @"kernel \CE\BB"(double %"\CE\BB", double %"T'.s0", double %"a b") {
      %"1 + 2" = fadd double %"\CE\BB", %"T'.s0"
      ret double %"1 + 2"
    }"""
    fn = read_function(text, "kernel λ")
    assert [a.name for a in fn.args] == ["λ", "T'.s0", "a b"]
    again = write_functions(fn)
    assert r'%"\CE\BB"' in again
    assert [a.name for a in read_function(again, "kernel λ").args] == ["λ", "T'.s0", "a b"]


# dropped, changed ----------------------------------------------------------------------------------------------------


def test_attributes_and_metadata_are_dropped() -> None:
    fn = read_function(
        """
        define dso_local noundef double @f(ptr noalias noundef readonly align 8 captures(none) dereferenceable(8) %p,
                                           double noundef nofpclass(nan) %x) local_unnamed_addr #0 {
          %v = load double, ptr %p, align 8, !tbaa !1, !noalias !2, !range !3
          %r = tail call noundef double @llvm.fabs.f64(double noundef %v) #1
          ret double %r
        }
        declare double @llvm.fabs.f64(double)
        attributes #0 = { nounwind alwaysinline "target-cpu"="x" memory(argmem: read) }
        attributes #1 = { nounwind }
        !1 = !{!4, !4, i64 0}
        !2 = !{!5}
        !3 = !{double 0.0, double 1.0}
        !4 = !{!"double", !6}
        !5 = distinct !{!5, !7}
        !6 = !{!"root"}
        !7 = distinct !{!7}
        """.replace(", !range !3", ""),
        "f",
    )
    assert fn.args[0].attrs == ("noalias",)
    assert fn.attrs == ("alwaysinline", "nounwind")
    text = write_functions(fn)
    assert "!" not in text
    assert "captures" not in text


def test_hints_are_dropped() -> None:
    fn = read(
        """  %s = alloca double, align 8
          call void @llvm.lifetime.start.p0(ptr %s)
          %c = icmp sgt i64 %n, 0
          call void @llvm.assume(i1 %c)
          call void @llvm.assume(i1 true) [ "align"(ptr %p, i64 8) ]
          call void @llvm.experimental.noalias.scope.decl(metadata !11)
          call void @llvm.lifetime.end.p0(ptr %s)
          ret void""",
        more="""declare void @llvm.assume(i1)
          declare void @llvm.lifetime.start.p0(ptr)
          declare void @llvm.lifetime.end.p0(ptr)
          declare void @llvm.experimental.noalias.scope.decl(metadata)
          !11 = !{!12}
          !12 = distinct !{!12, !13}
          !13 = distinct !{!13}""",
    )
    assert [i.op for i in fn.instrs()] == ["alloca", "icmp", "ret"]


def test_one_spelling_for_each_function() -> None:
    fn = read(
        """  %a = call double @sqrt(double %x)
          %b = call double @llvm.tan.f64(double %a)
          %c = call double @fmod(double %b, double %y)
          %d = call float @fabsf(float 2.0)
          ret void""",
        more="""declare double @sqrt(double)
          declare double @llvm.tan.f64(double)
          declare double @fmod(double, double)
          declare float @fabsf(float)""",
    )
    ops = [(i.op, i.callee) for i in fn.instrs()]
    assert ops == [
        ("call", "llvm.sqrt.f64"), ("call", "tan"), ("frem", ""), ("call", "llvm.fabs.f32"), ("ret", ""),
    ]  # fmt: skip


def test_guards_become_plain_operations() -> None:
    fn = read(
        """  %c = call i1 @irad.guard.fcmp.une.f64(double %x, double 0.0)
          %v = call double @irad.guard.pow.f64(double %x, double %y)
          %m = call contract float @irad.guard.maxnum.f32(float 1.0, float 2.0)
          %w = call double @irad.guard.powi.f64(double %x, i32 3)
          %l = call double @irad.guard.load.f64(ptr %p, i32 8)
          call void @irad.guard.store.f64(double %l, ptr %p, i32 4)
          ret void""",
        more="""declare i1 @irad.guard.fcmp.une.f64(double, double)
          declare double @irad.guard.pow.f64(double, double)
          declare float @irad.guard.maxnum.f32(float, float)
          declare double @irad.guard.powi.f64(double, i32)
          declare double @irad.guard.load.f64(ptr, i32)
          declare void @irad.guard.store.f64(double, ptr, i32)""",
    )
    got = [(i.op, i.callee or i.pred, i.align, i.flags) for i in fn.instrs()]
    assert got == [
        ("fcmp", "une", 0, ()), ("call", "llvm.pow.f64", 0, ()), ("call", "llvm.maxnum.f32", 0, ("contract",)),
        ("call", "llvm.powi.f64.i32", 0, ()), ("load", "", 8, ()), ("store", "", 4, ()), ("ret", "", 0, ()),
    ]  # fmt: skip


def test_constant_expressions_become_instructions() -> None:
    table = (
        "@t = internal unnamed_addr constant [4 x double] [double 1.0, double 2.0, double 3.0, double 4.0], align 16"
    )
    fn = read(
        """entry:
          %v = load double, ptr getelementptr inbounds ([4 x double], ptr @t, i64 0, i64 2), align 8
          br label %b
        b:
          %q = phi ptr [ getelementptr (i8, ptr @t, i64 24), %entry ]
          %w = load double, ptr %q, align 8
          ret void""",
        more=table,
    )
    assert [i.op for i in fn.blocks[0].instrs] == ["getelementptr", "load", "getelementptr", "br"]
    base = fn.blocks[0].instrs[0].operands[0]
    assert isinstance(base, Global)
    text = write_functions(fn)
    assert "@t = private unnamed_addr constant [4 x double]" in text
    assert write_functions(read_function(text, "f")) == text


def test_a_status_of_zero_is_dropped() -> None:
    fn = read("  call void @irad.status(i32 0)\n  ret void", more="declare void @irad.status(i32)")
    assert [i.op for i in fn.instrs()] == ["ret"]


def test_a_module_keeps_its_functions_and_their_calls() -> None:
    module = read_module(
        """
        define internal double @g(double %x) alwaysinline {
          ret double %x
        }
        define double @f(double %x) {
          %y = call double @g(double %x)
          ret double %y
        }"""
    )
    assert list(module.functions) == ["g", "f"]
    assert module.functions["g"].linkage == "internal"
    assert only(module.functions["f"], "call").callee == "g"


# places --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "loc"),
    [
        (5, Loc("/home/u/kernel.py", 12)),  # the user's line
        (8, Loc("/opt/helper.py", 4)),  # inlined: the innermost
        (10, Loc("/home/u/kernel.py", 10)),  # merged by LLVM: where the function starts
    ],
)
def test_instructions_know_their_line(number: int, loc: Loc) -> None:
    fn = read(f"  %r = fadd double %x, %y, !dbg !{number}\n  ret void")
    assert only(fn, "fadd").loc == loc
    text = write_functions(fn, locs=True)
    assert only(read_function(text, "f"), "fadd").loc == loc


# refused -------------------------------------------------------------------------------------------------------------

REFUSED = {
    "atomicrmw add ptr %p, i64 1 seq_cst": "atomic",
    "%r = cmpxchg ptr %p, i64 0, i64 1 seq_cst seq_cst": "atomic",
    "%r = load atomic i64, ptr %p seq_cst, align 8": "atomic",
    "store atomic i64 %n, ptr %p release, align 8": "atomic",
    "%r = load volatile double, ptr %p": "volatile",
    "store volatile double %x, ptr %p": "volatile",
    "fence seq_cst": "fence",
    'call void asm sideeffect "nop", ""()': "inline assembly",
    "%r = call double @unknown(double %x)": "unknown function unknown",
    "%r = call ptr @NRT_MemInfo_alloc(i64 %n)": "memory that is allocated inside the kernel",
    "%r = call double @numba_rnd_shuffle()": "random numbers",
    "call void @llvm.trap()": "code that stops the program",
    "%r = call i32 (ptr, ...) @printf(ptr %p)": "output",
    "%r = call double %p(double %x)": "through a pointer",
    "call void @f(double %x, double %y, i64 %n, ptr %p)": "could not be inlined",
    "%r = insertelement <2 x double> undef, double %x, i32 0": "vector",
    "%r = fadd <2 x double> zeroinitializer, zeroinitializer": "vector",
    "%r = load <4 x float>, ptr %p": "vector",
    "%r = fadd half 0xH3C00, 0xH3C00": "half",
    "%r = sext i64 %n to i128": "i128",
    "%r = fpext double %x to x86_fp80": "x86_fp80",
    "%r = alloca double, i64 %n": "only known at run time",
    "%r = addrspacecast ptr %p to ptr addrspace(1)": "address space",
    "%r = va_arg ptr %p, double": "variable number of arguments",
    "%r = load double, ptr @counter": "module-level variable counter",
    "call void @irad.status(i32 %s)": "may raise",
    "call void @irad.status(i32 1)": "may raise",
    "call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 8, i1 true)": "volatile",
    "%r = load double, ptr addrspace(3) null": "addrspace",
}
KNOWN = """declare double @unknown(double)
declare ptr @NRT_MemInfo_alloc(i64)
declare double @numba_rnd_shuffle()
declare void @llvm.trap()
declare i32 @printf(ptr, ...)
declare void @irad.status(i32)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
@counter = global double 0.0"""


@pytest.mark.parametrize("line", REFUSED)
def test_refusals_name_the_line_the_reason_and_a_remedy(line: str) -> None:
    lines = f"  %s = add i32 0, 1\n  {line}, !dbg !8\n  ret void"
    with pytest.raises(NotDifferentiableError, match=REFUSED[line]) as e:
        read_function(body(lines, more=KNOWN), "f")
    assert e.value.loc == Loc("/opt/helper.py", 4)
    assert e.value.remedy


def test_exceptions_are_refused() -> None:
    lines = """  invoke void @h() to label %a unwind label %b, !dbg !5
    a:
      ret void
    b:
      %l = landingpad { ptr, i32 } cleanup
      resume { ptr, i32 } %l"""
    text = body(lines, more="declare void @h()\ndeclare i32 @pers(...)").replace(
        "!dbg !3 {", "personality ptr @pers !dbg !3 {", 1
    )
    with pytest.raises(NotDifferentiableError, match="exceptions"):
        read_function(text, "f")


def test_parameters_of_unknown_types_are_refused() -> None:
    with pytest.raises(NotDifferentiableError, match="vector"):
        read_function("define void @f(<2 x double> %x) {\n ret void\n}", "f")
    with pytest.raises(NotDifferentiableError, match="half"):
        read_function("define half @f(half %x) {\n ret half %x\n}", "f")


def test_text_that_llvm_rejects_is_an_error() -> None:
    with pytest.raises(IradError, match="not a valid LLVM module"):
        read_function("define void @f() {\n  ret i64 0\n}", "f")
    with pytest.raises(IradError, match="no function 'g'"):
        read_function("define void @f() {\n  ret void\n}", "g")


def test_constants_have_one_spelling() -> None:
    fn = read("  %r = fadd double 1.0, 100.5\n  ret void")
    assert [v.text for v in only(fn, "fadd").operands if isinstance(v, Const)] == ["1.000000e+00", "1.005000e+02"]


def test_older_spellings_are_read() -> None:
    text = """
    define void @f(ptr nocapture readonly %p, i64 %n) {
      %q = getelementptr inbounds [3 x double], ptr %p, i64 0, i64 %n
      %v = load double, ptr %q, align 8
      ret void
    }"""
    assert only(read_function(text, "f"), "getelementptr").flags[:1] == ("inbounds",)


def test_numbas_own_code_is_placed_at_the_call() -> None:
    debug = DEBUG.replace('"/opt/helper.py"', '"/lib/site-packages/numba/cpython/numbers.py"')
    text = body("  %r = fadd double %x, %y, !dbg !8\n  ret void").replace(DEBUG, debug)
    assert only(read_function(text, "f"), "fadd").loc == Loc("/home/u/kernel.py", 12)


@pytest.mark.parametrize("file", ["<irad>", "<dynamic>"])
def test_so_is_code_that_was_written_for_numba(file: str) -> None:
    text = body("  %r = fadd double %x, %y, !dbg !8\n  ret void").replace(DEBUG, DEBUG.replace("/opt/helper.py", file))
    assert only(read_function(text, "f"), "fadd").loc == Loc("/home/u/kernel.py", 12)


def test_a_line_that_llvm_forgot_is_that_of_what_uses_the_result() -> None:
    lines = """  %c = fneg double %x, !dbg !10
      %cc = fneg double %y, !dbg !8
      %d = fadd double %c, %c, !dbg !10
      %e = fmul double %d, %c, !dbg !5
      ret void"""
    fn = read(lines)
    assert [i.loc.line for i in fn.instrs() if i.loc] == [12, 4, 12, 12]
    fn = read("  %c = fneg double %x, !dbg !10\n  ret void")
    assert only(fn, "fneg").loc == Loc("/home/u/kernel.py", 10)


def test_what_may_raise_is_placed_at_the_branch_that_leads_there() -> None:
    lines = """  %bad = icmp slt i64 %n, 0
      br i1 %bad, label %fail, label %done, !dbg !5
    fail:
      call void @irad.status(i32 1), !dbg !10
      br label %done
    done:
      ret void"""
    with pytest.raises(NotDifferentiableError, match="may raise") as e:
        read_function(body(lines, more="declare void @irad.status(i32)"), "f")
    assert e.value.loc == Loc("/home/u/kernel.py", 12)
