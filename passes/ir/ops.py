"""THE table of operations and THE table of math functions; every other module looks here.

An :class:`Op` says what class an operation is of, what it does to memory, how its result type comes about and which
flags it may carry. A :class:`Math` is a function of floats: one name (``"sqrt"``), one callee for each precision.
Callees are LLVM intrinsics where an old one exists, else functions of the C library; other spellings of the same
function (``sqrt``, ``llvm.tan.f64``) are read as aliases, so that a rule is written once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

FAST_MATH = ("fast", "reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn")
"""Flags that let LLVM change the value of a float operation."""

WRAP = ("nuw", "nsw")


@dataclass(frozen=True)
class Op:
    """One operation.

    ``kind``: ``float``, ``int``, ``compare``, ``cast``, ``select``, ``memory``, ``address``, ``aggregate``, ``phi``,
    ``call``, ``control`` or ``structured``. ``effect``: ``none``, ``read``, ``write``, ``control``, or ``callee``
    (what is called decides). ``result``: ``operand0`` or ``operand1`` (its type), a fixed type, or ``own`` (the
    instruction says). ``operands``: how many (-1: any number).
    """

    name: str
    kind: str
    effect: str
    result: str
    operands: int
    flags: tuple[str, ...] = ()


def _rows(names: str, kind: str, effect: str, result: str, operands: int, flags: tuple[str, ...] = ()) -> list[Op]:
    return [Op(n, kind, effect, result, operands, flags) for n in names.split()]


OPS: dict[str, Op] = {
    op.name: op
    for op in [
        *_rows("fadd fsub fmul fdiv frem", "float", "none", "operand0", 2, FAST_MATH),
        *_rows("fneg", "float", "none", "operand0", 1, FAST_MATH),
        *_rows("add sub mul shl", "int", "none", "operand0", 2, WRAP),
        *_rows("sdiv udiv lshr ashr", "int", "none", "operand0", 2, ("exact",)),
        *_rows("srem urem and xor", "int", "none", "operand0", 2),
        *_rows("or", "int", "none", "operand0", 2, ("disjoint",)),
        *_rows("icmp", "compare", "none", "i1", 2, ("samesign",)),
        *_rows("fcmp", "compare", "none", "i1", 2, FAST_MATH),
        *_rows("sext fptosi fptoui sitofp bitcast ptrtoint ptrtoaddr inttoptr", "cast", "none", "own", 1),
        *_rows("zext uitofp", "cast", "none", "own", 1, ("nneg",)),
        *_rows("trunc", "cast", "none", "own", 1, WRAP),
        *_rows("fpext fptrunc", "cast", "none", "own", 1, FAST_MATH),
        *_rows("select", "select", "none", "operand1", 3, FAST_MATH),
        *_rows("freeze", "select", "none", "operand0", 1),
        *_rows("phi", "phi", "none", "own", -1, FAST_MATH),
        *_rows("getelementptr", "address", "none", "ptr", -1, ("inbounds", "nusw", "nuw")),
        *_rows("alloca", "memory", "none", "ptr", 0),
        *_rows("load", "memory", "read", "own", 1),
        *_rows("store", "memory", "write", "void", 2),
        *_rows("extractvalue", "aggregate", "none", "own", 1),
        *_rows("insertvalue", "aggregate", "none", "operand0", 2),
        *_rows("call", "call", "callee", "own", -1, FAST_MATH),
        *_rows("br switch ret", "control", "control", "void", -1),
        *_rows("unreachable", "control", "control", "void", 0),
        *_rows("aload sload", "structured", "read", "own", -1),
        *_rows("astore sstore accum", "structured", "write", "void", -1),
        *_rows("accums", "structured", "write", "void", 1),
        *_rows("iwrap", "structured", "none", "i64", 2),
    ]
}
"""Every operation of the small IR. Structured ones are explained in ``ir/model.py``."""

TERMINATORS = frozenset({"br", "switch", "ret", "unreachable"})
BINARY = frozenset(op.name for op in OPS.values() if op.kind in ("float", "int") and op.operands == 2)
CASTS = frozenset(op.name for op in OPS.values() if op.kind == "cast")
STRUCTURED = frozenset(op.name for op in OPS.values() if op.kind == "structured")

EQUALITY = frozenset({"oeq", "one", "ueq", "une"})
"""Predicates of ``fcmp`` from which LLVM may conclude that two floats are the same number."""

FCMP = (*sorted(EQUALITY), "ogt", "oge", "olt", "ole", "ord", "ugt", "uge", "ult", "ule", "uno", "true", "false")
ICMP = ("eq", "ne", "ugt", "uge", "ult", "ule", "sgt", "sge", "slt", "sle")


@dataclass(frozen=True)
class Math:
    """A function of floats. ``arguments`` is a letter each: ``f`` the float type, ``i`` an i32.

    ``guarded``: hidden from LLVM until differentiated (``passes/guard.py``).
    """

    name: str
    arguments: str
    double: str
    float: str
    aliases: tuple[tuple[str, str], ...] = ()
    guarded: bool = False

    def callee(self, type: str) -> str:
        return {"double": self.double, "float": self.float}[type]

    @property
    def arity(self) -> int:
        return len(self.arguments)


def _math() -> dict[str, Math]:
    table: dict[str, Math] = {}

    def intrinsic(names: str, arguments: str, guarded: bool = False, prefix: str = "") -> None:
        """``name`` or ``name=libm``: an LLVM intrinsic, which is also called by the name of the C function (and by
        that name with a prefix of Numba's)."""
        suffix = ".i32" if "i" in arguments else ""
        for entry in names.split():
            name, _, libm = entry.partition("=")
            libm = libm or name
            table[name] = Math(
                name,
                arguments,
                f"llvm.{name}.f64{suffix}",
                f"llvm.{name}.f32{suffix}",
                ((libm, f"{libm}f"), (f"{prefix}{libm}", f"{prefix}{libm}f"))[: 2 if prefix else 1],
                guarded,
            )

    def libm(names: str, arguments: str) -> None:
        """``name`` or ``name=alias``: a function of the C library, which newer LLVMs also know as an intrinsic."""
        for entry in names.split():
            name, _, alias = entry.partition("=")
            aliases = [(f"llvm.{name}.f64", f"llvm.{name}.f32")]
            if alias:
                aliases.append((alias, f"{alias}f"))
            table[name] = Math(name, arguments, name, f"{name}f", tuple(aliases))

    intrinsic("sqrt sin cos exp exp2 exp10 log log2 log10 floor ceil trunc rint nearbyint round roundeven", "f")
    intrinsic("canonicalize", "f")
    intrinsic("fma fmuladd", "fff")
    intrinsic("fabs", "f", guarded=True)
    intrinsic("minnum=fmin maxnum=fmax minimum=fminimum maximum=fmaximum", "ff", guarded=True)
    intrinsic("minimumnum=fminimum_num maximumnum=fmaximum_num copysign pow", "ff", guarded=True)
    intrinsic("powi", "fi", guarded=True)
    intrinsic("ldexp", "fi", prefix="numba_")
    libm("tan asin acos atan sinh cosh tanh asinh acosh atanh expm1 log1p erf erfc cbrt lgamma", "f")
    libm("tgamma=numba_gamma", "f")
    libm("atan2 hypot fdim remainder nextafter=numba_nextafter", "ff")
    return table


MATH: dict[str, Math] = _math()
"""Math functions by name."""

NOT_C = frozenset({"powi", "canonicalize", "fmuladd"})
"""Intrinsics whose name is no function of the C library."""

INSTEAD = {"fmod": ("frem", "double"), "fmodf": ("frem", "float")}
"""Functions that are an instruction."""


def _callees() -> dict[str, tuple[str, str]]:
    names: dict[str, tuple[str, str]] = {}
    for m in MATH.values():
        spellings = [(m.double, m.float), *(() if m.name in NOT_C else m.aliases)]
        for double, single in spellings:
            names[double] = (m.name, "double")
            names[single] = (m.name, "float")
    return names


_CALLEES = _callees()


def math_of(callee: str) -> tuple[str, str] | None:
    """``(name, type)`` of a math function by any of its spellings: ``"tanhf"`` is ``("tanh", "float")``."""
    return _CALLEES.get(callee)


def math_callee(name: str, type: str) -> str:
    """The canonical callee of a math function: ``("sqrt", "float")`` is ``"llvm.sqrt.f32"``."""
    return MATH[name].callee(type)


_WORD = r"\.i(?:1|8|16|32|64)"
_INT_CALL = re.compile(
    rf"llvm\.(?:(?:[su](?:max|min)|abs|ctpop|ctlz|cttz|bswap|bitreverse|fsh[lr]|[su](?:add|sub|shl)\.sat"
    rf"|[su](?:add|sub|mul)\.with\.overflow){_WORD}|[su]cmp{_WORD}{_WORD})"
)
_TEST = re.compile(r"llvm\.is\.fpclass\.f(?:32|64)")
_MEMORY_CALL = re.compile(r"llvm\.(?:memset\.p0|memcpy\.p0\.p0|memmove\.p0\.p0)\.i(?:32|64)")
_HEAP_CALL = re.compile(r"irad\.(?:alloc(?:\.zeroed)?|incref|decref|tape\.\w+)")
_MARK = re.compile(r"irad\.(?:index\.\d|strong\.f(?:32|64))")
_DROPPED = re.compile(
    r"llvm\.(?:assume|dbg\..*|lifetime\..*|experimental\.noalias\.scope\.decl|donothing|sideeffect|prefetch\..*"
    r"|pseudoprobe|invariant\.end\..*)"
)


_KINDS = (
    ("int", _INT_CALL), ("int", _TEST), ("memory", _MEMORY_CALL), ("heap", _HEAP_CALL), ("mark", _MARK),
)  # fmt: skip


def call_kind(callee: str) -> str:
    """What a call is of: ``math``, ``int`` (integers and tests, no derivative), ``memory``, ``heap`` (local arrays),
    ``mark``, or ``""``."""
    if callee in _CALLEES:
        return "math"
    for kind, pattern in _KINDS:
        if pattern.fullmatch(callee):
            return kind
    return ""


def is_dropped(callee: str) -> bool:
    """Whether calls of an intrinsic say nothing that the passes need."""
    return _DROPPED.fullmatch(callee) is not None


def has_effect(op: str, callee: str = "") -> bool:
    """Whether an instruction must stay though nothing uses its value."""
    effect = OPS[op].effect
    if effect == "callee":
        return call_kind(callee) not in ("math", "int", "mark")
    return effect in ("write", "control")


SIZES = {"double": 8, "float": 4, "ptr": 8, "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
"""Scalar types and their size in memory, in bytes."""

FLOATS = frozenset({"double", "float"})
SHORT = {"double": "f64", "float": "f32", "i64": "i64", "i32": "i32", "i16": "i16", "i8": "i8", "i1": "i1"}
LONG = {v: k for k, v in SHORT.items()}


def is_int(type: str) -> bool:
    return type in ("i1", "i8", "i16", "i32", "i64")
