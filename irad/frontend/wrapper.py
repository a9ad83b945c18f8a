"""Canonical wrappers, as LLVM text: from irad's parameter words to Numba's arguments.

Numba passes an array as (meminfo, parent, item count, item size, data, extents…, strides…), gets a pointer for the
result and one for an exception, and returns a status: 0, or an error. A status other than 0 goes to a call of
``void @irad.status(i32)``, which vanishes when LLVM proves that the function cannot fail.
"""

from __future__ import annotations

import llvmlite.binding as llvm

from irad.errors import IradError
from irad.frontend.signature import ArrayType, Loc, ParamInfo, words

HEADER = "declare void @irad.status(i32)\n"

OUT = ".out"
"""The parameter through which a domain function returns bounds. Names of ours begin with a dot: no parameter does."""


def quoted(name: str) -> str:
    """A name in LLVM's quotes."""
    return '"' + "".join(c if 32 <= ord(c) < 127 and c not in '"\\' else _escape(c) for c in name) + '"'


def _escape(character: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in character.encode())


def signature_text(params: tuple[ParamInfo, ...], extra: str = "") -> str:
    """The parameter list of a canonical function."""
    parts = [f"{kind} %{quoted(name)}" for kind, name in words(params)]
    return ", ".join([*parts, extra] if extra else parts)


def body_wrapper(name: str, symbol: str, params: tuple[ParamInfo, ...], types: list[str], loc: Loc) -> str:
    """``void @<name>(parameters)`` that calls Numba's ``symbol``, whose arguments have these LLVM types."""
    setup, args = _arguments(params, types)
    return (
        HEADER
        + _declaration(symbol, types)
        + f"define void @{quoted(name)}({signature_text(params)}) !dbg !3 {{\n"
        + _call(symbol, "ptr", setup, args)
        + ".done:\n  ret void\n}\n"
        + debug_text(name, loc)
    )


def loop_wrapper(name: str, symbol: str, params: tuple[ParamInfo, ...], types: list[str], loc: Loc) -> str:
    """``i32 @<name>(parameters)`` that calls Numba's ``symbol`` and returns 0, or the number of an exception."""
    setup, args = _arguments(params, types)
    return (
        _declaration(symbol, types)
        + f"define i32 @{quoted(name)}({signature_text(params)}) !dbg !3 {{\n"
        + _call(symbol, "ptr", setup, args, ".fail:\n  ret i32 %.status\n")
        + ".done:\n  ret i32 0\n}\n"
        + debug_text(name, loc)
    )


def domain_wrapper(name: str, symbol: str, params: tuple[ParamInfo, ...], types: list[str], rank: int, loc: Loc) -> str:
    """``void @<name>(parameters, ptr out)`` that stores the bounds that Numba's ``symbol`` returns, made ordered."""
    setup, args = _arguments(params, types)
    stores = []
    for axis in range(rank):
        lo, hi = f"%.lo{axis}", f"%.hi{axis}"
        for k, var in ((2 * axis, lo), (2 * axis + 1, hi)):
            stores.append(f"  {var}.p = getelementptr i64, ptr %.ret, i64 {k}\n  {var} = load i64, ptr {var}.p\n")
        stores.append(_ordered_store(axis, lo, hi))
    return (
        HEADER
        + _declaration(symbol, types)
        + "declare i64 @llvm.smax.i64(i64, i64)\n"
        + f"define void @{quoted(name)}({signature_text(params, f'ptr %{OUT}')}) !dbg !3 {{\n"
        + _call(symbol, f"[{2 * rank} x i64]", setup, args)
        + f".done:\n{''.join(stores)}  ret void\n}}\n"
        + debug_text(name, loc)
    )


def box_domain(name: str, params: tuple[ParamInfo, ...], array: ParamInfo, lo: list[str], cut: list[str]) -> str:
    """``void @<name>(parameters, ptr out)`` for the box ``lo <= index < extent of array - cut`` on each axis, where
    ``lo`` and ``cut`` are integers or names of integer parameters."""
    body = []
    for axis, (first, less) in enumerate(zip(lo, cut, strict=True)):
        body.append(f"  %.hi{axis} = sub i64 %{quoted(f'{array.name}.n{axis}')}, {_integer(less)}\n")
        body.append(_ordered_store(axis, _integer(first), f"%.hi{axis}"))
    return (
        f'target triple = "{llvm.get_process_triple()}"\n'
        "declare i64 @llvm.smax.i64(i64, i64)\n"
        f"define void @{quoted(name)}({signature_text(params, f'ptr %{OUT}')}) {{\n"
        f".entry:\n{''.join(body)}  ret void\n}}\n"
    )


def _integer(text: str) -> str:
    return text if text.lstrip("-").isdigit() else f"%{quoted(text)}"


def _ordered_store(axis: int, lo: str, hi: str) -> str:
    """Store ``lo`` and ``max(lo, hi)`` as the bounds of an axis."""
    first, second = f"%{OUT}{2 * axis}", f"%{OUT}{2 * axis + 1}"
    return (
        f"  %.end{axis} = call i64 @llvm.smax.i64(i64 {lo}, i64 {hi})\n"
        f"  {first} = getelementptr i64, ptr %{OUT}, i64 {2 * axis}\n  store i64 {lo}, ptr {first}\n"
        f"  {second} = getelementptr i64, ptr %{OUT}, i64 {2 * axis + 1}\n  store i64 %.end{axis}, ptr {second}\n"
    )


def _declaration(symbol: str, types: list[str]) -> str:
    return f"declare i32 @{quoted(symbol)}({', '.join(['ptr', 'ptr', *types])})\n"


_REPORT = ".fail:\n  call void @irad.status(i32 %.status), !dbg !5\n  br label %.done\n"


def _call(symbol: str, result: str, setup: str, args: list[str], fail: str = _REPORT) -> str:
    return (
        ".entry:\n"
        f"  %.ret = alloca {result}\n  %.exc = alloca ptr\n  store ptr null, ptr %.exc\n{setup}"
        f"  %.status = call i32 @{quoted(symbol)}({', '.join(['ptr %.ret', 'ptr %.exc', *args])}), !dbg !5\n"
        "  %.failed = icmp ne i32 %.status, 0\n"
        f"  br i1 %.failed, label %.fail, label %.done\n{fail}"
    )


def _arguments(params: tuple[ParamInfo, ...], types: list[str]) -> tuple[str, list[str]]:
    """Instructions that prepare Numba's arguments, and the arguments."""
    setup: list[str] = []
    args: list[str] = []
    for n, p in enumerate(params):
        if isinstance(p.type, ArrayType):
            rank = p.type.rank
            names = [f"i64 %{quoted(f'{p.name}.{word}{d}')}" for word in "ns" for d in range(rank)]
            count = names[0].removeprefix("i64 ")
            for d in range(1, rank):
                setup.append(f"  %.items{n}.{d} = mul i64 {count}, %{quoted(f'{p.name}.n{d}')}\n")
                count = f"%.items{n}.{d}"
            args += ["ptr null", "ptr null", f"i64 {count}", f"i64 {p.type.itemsize}"]
            args += [f"ptr %{quoted(p.name + '.data')}", *names]
        elif p.type.kind == "bool":
            setup.append(f"  %.byte{n} = zext i1 %{quoted(p.name)} to i8\n")
            args.append(f"i8 %.byte{n}")
        else:
            args.append(f"{p.type.llvm} %{quoted(p.name)}")
    have = [a.split(" ", 1)[0] for a in args]
    want = [t if not t.endswith("*") else "ptr" for t in types]
    if have != want:
        raise IradError(f"this version of Numba passes arguments in an unknown way: {want} instead of {have}")
    return "".join(setup), args


def debug_text(name: str, loc: Loc) -> str:
    """Debug metadata of a wrapper: subprogram ``!3``, location ``!5``."""
    return (
        "!llvm.module.flags = !{!0}\n!llvm.dbg.cu = !{!1}\n"
        '!0 = !{i32 2, !"Debug Info Version", i32 3}\n'
        "!1 = distinct !DICompileUnit(language: DW_LANG_C, file: !2, emissionKind: DebugDirectivesOnly)\n"
        f'!2 = !DIFile(filename: {quoted(loc.file)}, directory: "")\n'
        f"!3 = distinct !DISubprogram(name: {quoted(name)}, scope: !2, file: !2, line: {loc.line}, type: !4, "
        "unit: !1, spFlags: DISPFlagDefinition)\n"
        "!4 = !DISubroutineType(types: !{null})\n"
        f"!5 = !DILocation(line: {loc.line}, scope: !3)\n"
    )
