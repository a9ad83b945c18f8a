"""The small IR to LLVM text, with deterministic names: one row an instruction form.

Structured operations, which LLVM does not have, are written as calls of ``irad.aload.f64.T`` and the like, with their
access as metadata; ``read`` turns them back. Such text is for tests and dumps, not for code generation.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from . import ops
from .access import access_text
from .model import Block, Const, Function, Global, Instr, Module, Value

_PLAIN = re.compile(r"[A-Za-z._-][A-Za-z0-9._-]*")
_PURE = "memory(none) nounwind willreturn"
_ATTRIBUTES = {"math": _PURE, "mark": _PURE, "int": "", "memory": "", "heap": "nounwind"}


def quoted(name: str) -> str:
    """A name as it stands after ``%`` or ``@``, quoted where LLVM would."""
    if _PLAIN.fullmatch(name):
        return name
    return '"' + _escaped(name) + '"'


def _escaped(text: str) -> str:
    raw = text.encode("utf-8", "surrogateescape")
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in raw)


def write_module(module: Module, *, locs: bool = False) -> str:
    """The text of a module: constants, declarations of everything that is called, functions.

    ``locs``: add the user's lines as metadata (``read`` understands them).
    """
    constants = dict(module.globals)
    declared = {name: f"declare {text}" for name, text in module.declarations.items()}
    for fn in module.functions.values():
        for i in fn.instrs():
            for v in i.operands:
                if isinstance(v, Global):
                    constants.setdefault(v.text[1:].strip('"'), v.definition)
            callee = _callee(i)
            if callee and callee not in module.functions and callee not in declared:
                declared[callee] = _declaration(i, callee)
    parts = [f"@{quoted(name)} = {text}\n" for name, text in constants.items()]
    parts += [f"{text}\n" for text in declared.values()]
    parts += [write_function(fn, locs=locs) for fn in module.functions.values()]
    return "\n".join(["".join(parts[: len(constants) + len(declared)]), *parts[len(constants) + len(declared) :]])


def write_function(fn: Function, *, locs: bool = False) -> str:
    """The text of one function, from ``define`` to ``}``."""
    return Writer(fn, locs).text()


def write_functions(*functions: Function, locs: bool = False) -> str:
    """A module of these functions alone."""
    return write_module(Module({f.name: f for f in functions}), locs=locs)


def _callee(i: Instr) -> str:
    """What an instruction calls in the text."""
    if i.op == "call":
        return i.callee
    if i.op == "iwrap":
        return "irad.iwrap"
    if i.op in ops.STRUCTURED:
        elem = i.type if i.op in ("aload", "sload") else i.operands[0].type
        return f"irad.{i.op}.{ops.SHORT[elem]}.{i.array}"
    return ""


def _declaration(i: Instr, callee: str) -> str:
    """What a callee is to LLVM. Math functions do nothing but return: no ``errno``, no exceptions."""
    attributes = _ATTRIBUTES.get(ops.call_kind(callee), _PURE if i.op == "iwrap" else "nounwind")
    args = ", ".join(o.type for o in i.operands)
    return f"declare {i.type} @{quoted(callee)}({args})" + (f" {attributes}" if attributes else "")


class Writer:
    """Names and text of one function."""

    def __init__(self, fn: Function, locs: bool) -> None:
        self.fn, self.locs = fn, locs
        self.used: set[str] = set()
        self.next: dict[str, int] = {}
        self.names: dict[Value, str] = {a: self._fresh(a.name or "arg") for a in fn.args}
        self.labels: dict[Block, str] = {b: self._fresh(_stem(b.name, "b")) for b in fn.blocks}
        for i in fn.instrs():
            if i.type != "void":
                self.names[i] = self._fresh(_stem(i.name, "v"))

    def _fresh(self, stem: str) -> str:
        name = stem
        while name in self.used:
            self.next[stem] = self.next.get(stem, 0) + 1
            name = f"{stem}.{self.next[stem]}"
        self.used.add(name)
        return name

    def value(self, v: Value) -> str:
        if isinstance(v, Const):
            return v.text
        name = self.names.get(v)
        return "%" + quoted(name) if name is not None else f"%<{v!r} of elsewhere>"

    def typed(self, v: Value) -> str:
        return f"{v.type} {self.value(v)}"

    def label(self, b: Block) -> str:
        return "%" + quoted(self.labels[b]) if b in self.labels else f"%<{b!r} of elsewhere>"

    def text(self) -> str:
        fn = self.fn
        args = ", ".join(" ".join([a.type, *a.attrs, "%" + quoted(self.names[a])]) for a in fn.args)
        head = " ".join(w for w in ("define", fn.linkage, fn.type) if w)
        tail = " ".join([*fn.attrs, "{"])
        lines = [f"{head} @{quoted(fn.name)}({args}) {tail}"]
        for b in fn.blocks:
            lines.append(f"{quoted(self.labels[b])}:")
            lines += [f"  {self.instr(i)}" for i in b.instrs]
        return "\n".join([*lines, "}", ""])

    def instr(self, i: Instr) -> str:
        """One instruction in LLVM's spelling."""
        form = _FORMS.get(i.op)
        if form is None:
            raise ValueError(f"no way to write {i!r}")
        text = form(self, i)
        if i.type != "void":
            text = f"{self.value(i)} = {text}"
        if i.access is not None:
            text += f', !irad.access !{{!"{_escaped(access_text(i.access))}"}}'
        if self.locs and i.loc is not None:
            text += f', !irad.loc !{{!"{_escaped(str(i.loc))}"}}'
        return text


def _stem(name: str, default: str) -> str:
    """A name that survives reading: numbers are for unnamed values only."""
    if not name:
        return default
    return f"{default}{name}" if name.isdigit() else name


def _flags(i: Instr) -> str:
    return "".join(f + " " for f in i.flags)


def _align(i: Instr) -> str:
    return f", align {i.align}" if i.align else ""


def _binary(w: Writer, i: Instr) -> str:
    return f"{i.op} {_flags(i)}{w.typed(i.operands[0])}, {w.value(i.operands[1])}"


def _unary(w: Writer, i: Instr) -> str:
    return f"{i.op} {_flags(i)}{w.typed(i.operands[0])}"


def _cast(w: Writer, i: Instr) -> str:
    return f"{i.op} {_flags(i)}{w.typed(i.operands[0])} to {i.type}"


def _compare(w: Writer, i: Instr) -> str:
    return f"{i.op} {_flags(i)}{i.pred} {w.typed(i.operands[0])}, {w.value(i.operands[1])}"


def _select(w: Writer, i: Instr) -> str:
    return f"select {_flags(i)}{', '.join(map(w.typed, i.operands))}"


def _phi(w: Writer, i: Instr) -> str:
    arms = (f"[ {w.value(v)}, {w.label(b)} ]" for v, b in zip(i.operands, i.targets, strict=True))
    return f"phi {_flags(i)}{i.type} {', '.join(arms)}"


def _gep(w: Writer, i: Instr) -> str:
    return f"getelementptr {_flags(i)}{i.elem}, {', '.join(map(w.typed, i.operands))}"


def _alloca(w: Writer, i: Instr) -> str:
    return f"alloca {i.elem}{_align(i)}"


def _load(w: Writer, i: Instr) -> str:
    return f"load {i.type}, {w.typed(i.operands[0])}{_align(i)}"


def _store(w: Writer, i: Instr) -> str:
    return f"store {w.typed(i.operands[0])}, {w.typed(i.operands[1])}{_align(i)}"


def _fields(w: Writer, i: Instr) -> str:
    return ", ".join([f"{i.op} {w.typed(i.operands[0])}", *map(w.typed, i.operands[1:]), *map(str, i.indices)])


def _br(w: Writer, i: Instr) -> str:
    return "br " + ", ".join([*map(w.typed, i.operands), *(f"label {w.label(b)}" for b in i.targets)])


def _switch(w: Writer, i: Instr) -> str:
    (v,) = i.operands
    cases = zip(i.cases, i.targets[1:], strict=True)
    arms = " ".join(f"{v.type} {_case(v.type, c)}, label {w.label(b)}" for c, b in cases)
    return f"switch {w.typed(v)}, label {w.label(i.targets[0])} [ {arms} ]"


def _case(type: str, c: int) -> str:
    return str(c) if type != "i1" else "true" if c & 1 else "false"


def _ret(w: Writer, i: Instr) -> str:
    return f"ret {w.typed(i.operands[0]) if i.operands else 'void'}"


def _call(w: Writer, i: Instr) -> str:
    return f"call {_flags(i)}{i.type} @{quoted(_callee(i))}({', '.join(map(w.typed, i.operands))})"


_FORMS: dict[str, Callable[[Writer, Instr], str]] = {
    **dict.fromkeys(ops.BINARY, _binary),
    **dict.fromkeys(ops.CASTS, _cast),
    **dict.fromkeys(ops.STRUCTURED, _call),
    **dict.fromkeys(("fneg", "freeze"), _unary),
    **dict.fromkeys(("icmp", "fcmp"), _compare),
    **dict.fromkeys(("extractvalue", "insertvalue"), _fields),
    "select": _select,
    "phi": _phi,
    "getelementptr": _gep,
    "alloca": _alloca,
    "load": _load,
    "store": _store,
    "br": _br,
    "switch": _switch,
    "ret": _ret,
    "unreachable": lambda w, i: "unreachable",
    "call": _call,
}
