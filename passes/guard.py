"""Hides from LLVM, until differentiated, what it would rewrite at the cost of derivatives.

LLVM preserves values, not derivatives. Knowing ``a == 1.0`` it makes ``3 * a`` the constant 3; it turns ``x ** 0.5``
into ``fabs(sqrt(x))`` and a select; it merges the two loads of ``u[i+1] if c else u[i-1]`` into one load at a computed
address, which no analysis can take apart again. So three kinds of operations become calls of opaque functions, which
LLVM may merge, move and drop like any pure call, but neither evaluate ahead of time nor see through:

================================================ ===========================================================
call                                             stands for
================================================ ===========================================================
``i1 @irad.guard.fcmp.<predicate>.f64(a, b)``    a float comparison (two non-strict ones make an equality)
``double @irad.guard.<function>.f64(x, …)``      a math function marked ``guarded`` in ``ir/ops.py``
``double @irad.guard.load.f64(ptr, i32 align)``  a load from an array (not from a local variable)
``void @irad.guard.store.f64(x, ptr, i32)``      a store to an array
================================================ ===========================================================

``ir/read.py`` turns them back. Here is text in and text out, line by line: nothing of the small IR exists yet, since
code that LLVM has not cleaned up holds much that the reader refuses.
"""

from __future__ import annotations

import re

from .ir import ops
from .ir.model import Value
from .ir.read import normalised
from .ir.tokens import Cursor, Ref, plain_name

_NAME = r'(?:"[^"]*"|[-\w.$]+)'
_VALUE = rf"(?:[%@]{_NAME}|[^\s,()]+)"
_FCMP = re.compile(
    rf"= fcmp (?:(?:{'|'.join(ops.FAST_MATH)}) )*(?P<pred>\w+) (?P<type>double|float) (?P<a>{_VALUE}), (?P<b>{_VALUE})"
)
_CALLED = re.compile(rf"(?P<before>^\s*%.*= (?:(?:tail|musttail|notail) )?call [^@]*)@(?P<name>{_NAME})\(")
_DEFINE = re.compile(rf"^define\b.*?@(?P<name>{_NAME})\(")
_TYPES = "|".join(t for t in ops.SHORT if t != "i1")
_LOAD = re.compile(rf"= load (?P<type>{_TYPES}), ptr (?P<at>{_VALUE})(?:, align (?P<align>\d+))?")
_STORE = re.compile(rf"\bstore (?P<type>{_TYPES}) (?P<value>{_VALUE}), ptr (?P<at>{_VALUE})(?:, align (?P<align>\d+))?")
_DERIVED = re.compile(rf"^\s*(?P<name>%{_NAME}) = (?P<op>getelementptr|extractvalue|insertvalue) (?P<rest>.*)$")
_OPERAND = re.compile(rf"[%@]{_NAME}")

_PURE = "nounwind willreturn memory(none)"
_READS = "nounwind willreturn nomerge memory(argmem: read)"
_WRITES = "nounwind willreturn nomerge memory(argmem: write)"


def guard_values(text: str) -> str:
    """Hide float comparisons and guarded math functions. Runs first, before anything is inlined or simplified."""
    declared: dict[str, str] = {}
    lines = []
    inside = ""  # a helper that implements a C function under its own name must not call itself
    for line in normalised(text).splitlines():
        if found := _DEFINE.match(line):
            inside = found["name"]
        elif found := _FCMP.search(line):
            line = line.replace(found[0], _comparison(found, declared), 1)
        elif found := _CALLED.match(line):
            line = line.replace(found[0], _function(found, declared, inside), 1)
        lines.append(line)
    return _with_declarations(lines, declared)


def _comparison(m: re.Match[str], declared: dict[str, str]) -> str:
    if m["pred"] in ("true", "false", "ord", "uno"):
        return m[0]
    name = f"irad.guard.fcmp.{m['pred']}.{ops.SHORT[m['type']]}"
    declared[name] = f"declare i1 @{name}({m['type']}, {m['type']}) {_PURE}"
    return f"= call i1 @{name}({m['type']} {m['a']}, {m['type']} {m['b']})"


def _function(m: re.Match[str], declared: dict[str, str], inside: str) -> str:
    found = ops.math_of(m["name"].strip('"'))
    if found is None or not ops.MATH[found[0]].guarded or m["name"] == inside:
        return m[0]
    name, type = found
    guard = f"irad.guard.{name}.{ops.SHORT[type]}"
    arguments = ", ".join(type if a == "f" else "i32" for a in ops.MATH[name].arguments)
    declared[guard] = f"declare {type} @{guard}({arguments}) {_PURE}"
    return f"{m['before']}@{guard}("


def guard_memory(text: str) -> str:
    """Hide loads and stores of arrays: of whatever is addressed from a parameter of the function.

    Runs when functions are inlined and local variables are values, else it would keep LLVM from making them so. The
    text must be spelled and laid out as LLVM prints it.
    """
    declared: dict[str, str] = {}
    lines: list[str] = []
    head = ""
    body: list[str] = []
    for line in text.splitlines():
        if line.startswith("define "):
            head, body = line, []
            lines.append(line)
        elif not head:
            lines.append(line)
        elif line == "}":
            lines += [*_guarded_body(_Roots(head, body), body, declared), line]
            head = ""
        else:
            body.append(line)
    return _with_declarations(lines, declared)


def _guarded_body(roots: _Roots, body: list[str], declared: dict[str, str]) -> list[str]:
    def load(m: re.Match[str]) -> str:
        if not roots.is_parameter(m["at"]):
            return m[0]
        name = f"irad.guard.load.{ops.SHORT[m['type']]}"
        declared[name] = f"declare {m['type']} @{name}(ptr, i32) {_READS}"
        return f"= call {m['type']} @{name}(ptr {m['at']}, i32 {m['align'] or 0})"

    def store(m: re.Match[str]) -> str:
        if not roots.is_parameter(m["at"]):
            return m[0]
        name = f"irad.guard.store.{ops.SHORT[m['type']]}"
        declared[name] = f"declare void @{name}({m['type']}, ptr, i32) {_WRITES}"
        return f"call void @{name}({m['type']} {m['value']}, ptr {m['at']}, i32 {m['align'] or 0})"

    result = []
    for line in body:
        if " = load " in line:
            line = _LOAD.sub(load, line, count=1)
        elif line.startswith("  store "):
            line = _STORE.sub(store, line, count=1)
        result.append(line)
    return result


class _Roots:
    """Where the pointers of a function come from, followed through address arithmetic and Numba's array structs."""

    def __init__(self, head: str, body: list[str]) -> None:
        self.parameters = {plain_name(t) for t in _OPERAND.findall(head[head.index("(") :]) if t.startswith("%")}
        self.definitions: dict[str, tuple[str, str]] = {}
        for line in body:
            if found := _DERIVED.match(line):
                self.definitions[plain_name(found["name"])] = (found["op"], found["rest"].split(", !", 1)[0])
        self.known: dict[str, bool] = {}

    def is_parameter(self, token: str) -> bool:
        pointer = plain_name(token)
        if pointer not in self.known:
            self.known[pointer] = self._follow(pointer) in self.parameters
        return self.known[pointer]

    def _follow(self, pointer: str) -> str:
        while pointer in self.definitions:
            op, rest = self.definitions[pointer]
            c = Cursor(rest)
            if op == "extractvalue":
                pointer = self._field(c.typed(), c.tokens[c.at :])
            elif op == "getelementptr":
                c.many(ops.OPS[op].flags)
                c.type()
                c.expect(",")
                pointer = _name(c.typed())
            else:
                break
        return pointer

    def _field(self, struct: Value, path: list[str]) -> str:
        """What was last put into a field of a struct; ``""`` where that is not plain."""
        while self.definitions.get(_name(struct), ("", ""))[0] == "insertvalue":
            c = Cursor(self.definitions[_name(struct)][1])
            inner = c.typed()
            c.expect(",")
            value = c.typed()
            at = c.tokens[c.at :]
            if at == path:
                return _name(value)
            shorter = min(len(at), len(path))
            if at[:shorter] == path[:shorter]:  # a part of the field, or a struct that holds it
                break
            struct = inner
        return ""


def _name(v: Value) -> str:
    """The name of a local value; ``""`` for anything else."""
    return v.name if isinstance(v, Ref) else ""


def _with_declarations(lines: list[str], declared: dict[str, str]) -> str:
    """Put declarations after the last function: metadata may only follow it in part, so before the first ``define``."""
    first = next((k for k, line in enumerate(lines) if line.startswith("define ")), len(lines))
    return "\n".join([*lines[:first], *declared.values(), *lines[first:], ""])
