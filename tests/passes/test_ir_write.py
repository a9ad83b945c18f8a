"""The small IR to text: structured operations, names, declarations, and stability of the round trip."""

from __future__ import annotations

import pytest
from irad.passes.ir.access import access_text, parse_access, parse_linear
from irad.passes.ir.model import Access, Arg, ArrayParam, Bounds, Const, Function, Index, Instr, LinExpr, Loc, Module
from irad.passes.ir.read import parsed, read_function, read_module
from irad.passes.ir.write import quoted, write_function, write_functions, write_module

ACCESSES = [
    Access("T", (Index(0, LinExpr(1)), Index(1, LinExpr(-1), True))),
    Access("T", (Index(None, LinExpr(0)),), always=False),
    Access("T", (Index(None, LinExpr.of(-2, {"T.n0": 1, "k": -3})), Index(2, LinExpr.of(0, {"k": 1}), True))),
    Access(
        "T",
        (Index(0, LinExpr(0)),),
        (
            Bounds((LinExpr(1),), (LinExpr.of(-1, {"T.n0": 1}),)),
            Bounds(),
            Bounds((), (LinExpr(5), LinExpr.of(0, {"k": 1})), (LinExpr(3),)),
        ),
    ),
    Access("T", (), (), True),
]


@pytest.mark.parametrize("access", ACCESSES)
def test_accesses_as_text(access: Access) -> None:
    assert parse_access("T", access_text(access)) == access


def test_how_an_access_reads() -> None:
    assert access_text(ACCESSES[3]) == "[#0] guard [1:T.n0 - 1) x [:) x [:5 | k) but 3 always"
    assert parse_linear("2*k - 3*T.n1 + 4") == LinExpr.of(4, {"k": 2, "T.n1": -3})


def point() -> Function:
    """``T'[i + 1, wrapped j] += v`` and all other structured operations, with accesses and lines."""
    loc = Loc('/home/"u"/k.py', 7)
    fn = Function("adjoint", "void", [Arg("i64", ".i0"), Arg("i64", ".i1"), Arg("i64", "T.n1"), Arg("float", "lam")])
    b = fn.block("entry")
    i0, i1, n, lam = fn.args

    def put(op: str, type: str, operands: list, **kw: object) -> Instr:
        return b.append(Instr(op, type, operands, loc=loc, **kw))  # type: ignore[arg-type]

    access = Access("T", (Index(0, LinExpr(1)), Index(1, LinExpr(0), True)), always=False)
    k = put("add", "i64", [i0, Const("i64", "1")], flags=("nsw",))
    w = put("iwrap", "i64", [i1, n])
    v = put("aload", "float", [k, w], array="T", access=access, name="v")
    s = put("sload", "float", [k, w], array="T", access=access)
    p = put("fmul", "float", [v, s], flags=("contract",))
    put("sstore", "void", [p, k, w], array="T", access=access)
    put("accum", "void", [p, k, w], array="helper.T@1", access=Access("helper.T@1", access.dims))
    put("astore", "void", [lam, k, w], array="λ", access=Access("λ", access.dims))
    put("accums", "void", [p], array="lam")
    b.append(Instr("ret", "void"))
    return fn


def test_structured_operations_survive_the_round_trip() -> None:
    text = write_functions(point(), locs=True)
    again = read_function(text, "adjoint")
    assert write_functions(again, locs=True) == text
    before, after = list(point().instrs()), list(again.instrs())
    assert [(i.op, i.type, i.array, i.access, i.flags, i.loc) for i in before] == [
        (i.op, i.type, i.array, i.access, i.flags, i.loc) for i in after
    ]


def test_text_is_valid_for_llvm() -> None:
    parsed(write_functions(point(), locs=True))


def test_equal_and_missing_names_become_different_ones() -> None:
    fn = Function("f", "double", [Arg("double", "x"), Arg("double", "x")])
    b = fn.block("x")
    a, c = fn.args
    t = b.append(Instr("fadd", "double", [a, c], name="x"))
    u = b.append(Instr("fadd", "double", [t, t]))
    v = b.append(Instr("fmul", "double", [u, t], name="7"))
    b.append(Instr("ret", "void", [v]))
    assert write_function(fn) == (
        "define double @f(double %x, double %x.1) {\n"
        "x.2:\n"
        "  %x.3 = fadd double %x, %x.1\n"
        "  %v = fadd double %x.3, %x.3\n"
        "  %v7 = fmul double %v, %x.3\n"
        "  ret double %v7\n"
        "}\n"
    )


def test_math_functions_are_declared_without_side_effects() -> None:
    text = write_functions(read_function("declare double @tan(double)\ndefine double @f(double %x) {\n"
                                         "  %y = call double @tan(double %x)\n  ret double %y\n}", "f"))  # fmt: skip
    assert "declare double @tan(double) memory(none) nounwind willreturn" in text


def test_declarations_of_a_module_are_written_once() -> None:
    module = Module(declarations={"llvm.smin.i64": "i64 @llvm.smin.i64(i64, i64)"})
    fn = Function("f", "i64", [Arg("i64", "n")], linkage="internal", attrs=("alwaysinline",))
    b = fn.block("entry")
    m = b.append(Instr("call", "i64", [fn.args[0], Const("i64", "3")], callee="llvm.smin.i64"))
    b.append(Instr("ret", "void", [m]))
    module.functions["f"] = fn
    text = write_module(module)
    assert text.count("declare") == 1
    assert "define internal i64 @f(i64 %n) alwaysinline {" in text
    assert list(read_module(text).functions) == ["f"]


@pytest.mark.parametrize(
    ("name", "text"),
    [("T.n0", "T.n0"), ("T'", '"T\'"'), ("7", '"7"'), ('a"b', r'"a\22b"'), ("λ", r'"\CE\BB"'), ("a-b", "a-b")],
)
def test_names_are_quoted_as_llvm_quotes_them(name: str, text: str) -> None:
    assert quoted(name) == text


def test_words_of_an_array() -> None:
    assert ArrayParam("T", "double", 2).words == ("T.data", "T.n0", "T.n1", "T.s0", "T.s1")
