"""LLVM text to the small IR.

An *allow-list*: attributes and metadata are dropped unless listed here, and whatever is in no table of ``ir/ops.py``
is refused with the user's line. Text goes through LLVM's own parser and verifier first, so that what is read is valid
and spelled as LLVM prints it. Function-level work is done by ``ir/instructions.py``.

Undone on the way in: ``irad.guard.*`` calls become their plain operations again (``passes/guard.py``), constant
expressions become instructions, and a status that is provably 0 disappears.
"""

from __future__ import annotations

import re
from typing import Any

import llvmlite.binding as llvm

from irad.errors import IradError

from .debug import DebugInfo
from .instructions import FunctionReader
from .model import Arg, Const, Function, Global, Module
from .tokens import Cursor, NotParsed, plain_name

_NAME = r'@(?:"[^"]*"|[-\w.$]+)'
DEFINE = re.compile(rf"^define\b.*?({_NAME})\(")
_DECLARE = re.compile(rf"^declare\b.*?({_NAME})\(")
_GLOBAL = re.compile(rf"^({_NAME}) = (.*)$")
_GROUP = re.compile(r"^attributes (#\d+) = \{(.*)\}$")
_KEPT_FUNCTION_ATTRIBUTES = ("alwaysinline", "noinline", "nounwind")
_KEPT_ARGUMENT_ATTRIBUTES = ("noalias",)


def parsed(text: str) -> Any:
    """A module of llvmlite's binding; ``IradError`` where LLVM itself rejects the text."""
    try:
        module = llvm.parse_assembly(text, llvm.create_context())  # the module keeps its context alive
        module.verify()
    except RuntimeError as e:
        raise IradError(f"not a valid LLVM module: {e}") from None
    return module


def normalised(source: str | Any) -> str:
    """The text of a module (given as text or as a module of the binding) as LLVM prints it."""
    return str(parsed(source) if isinstance(source, str) else source)


def read_function(source: str | Any, name: str) -> Function:
    """The function ``name`` of an LLVM module (text, or a module of llvmlite's binding).

    Raises ``NotDifferentiableError`` with the user's line for whatever the passes do not know.
    """
    lines = _Lines(normalised(source))
    return lines.function(name, closed=True)


def skim_function(text: str, name: str) -> Function:
    """The flow of control of a function, and as much of its arithmetic as the passes know; nothing is refused.

    ``text`` must be spelled as LLVM prints it.
    """
    return _Lines(text).function(name, closed=True, skim=True)


def read_module(source: str | Any) -> Module:
    """All functions, declarations of unknown functions, and constant globals of an LLVM module."""
    lines = _Lines(normalised(source))
    module = Module()
    for name in lines.bodies:
        module.functions[name] = lines.function(name, closed=False)
    module.globals = {g: d.definition for g, d in lines.globals.items()}
    return module


class _Lines:
    """A module cut into its functions, globals, attribute groups and debug metadata."""

    def __init__(self, text: str) -> None:
        self.debug = DebugInfo(text)
        self.bodies: dict[str, list[str]] = {}
        self.globals: dict[str, Global] = {}
        self.mutable: set[str] = set()
        self.groups: dict[str, str] = {}
        body: list[str] | None = None
        for line in text.splitlines():
            if body is not None:
                if line == "}":
                    body = None
                else:
                    body.append(line)
            elif found := DEFINE.match(line):
                body = self.bodies.setdefault(plain_name(found[1]), [line])
            elif found := _GLOBAL.match(line):
                self._global(found[1], found[2])
            elif found := _GROUP.match(line):
                self.groups[found[1]] = found[2]

    def _global(self, token: str, rest: str) -> None:
        """Keep what cannot change: ``constant`` globals with their content."""
        rest = re.sub(r", !\w+ !\d+", "", re.sub(r", comdat(\(\$[^)]*\))?", "", rest))
        words = rest.split()
        if "constant" in words and "external" not in words[: words.index("constant")]:
            tail = rest[rest.index("constant ") :]
            self.globals[plain_name(token)] = Global(token, f"private unnamed_addr {tail}")
        else:
            self.mutable.add(plain_name(token))

    def function(self, name: str, closed: bool, skim: bool = False) -> Function:
        """Parse one function. ``closed``: calls of other functions of the module are refused; ``skim``: nothing is."""
        if name not in self.bodies:
            raise IradError(f"the LLVM module defines no function {name!r}")
        head, *body = self.bodies[name]
        fn = self._head(head, name)
        known = frozenset() if closed else frozenset(self.bodies)
        FunctionReader(fn, self, frozenset(self.bodies), known, skim).read(body)
        return fn

    def _head(self, line: str, name: str) -> Function:
        found = DEFINE.match(line)
        assert found is not None
        before = Cursor(line[: found.start(1)])
        before.expect("define")
        linkage = ""
        while not before.at_type():
            word = before.next()
            linkage = word if word in ("internal", "private") else linkage
            if before.peek() == "(":
                before.balanced()
        type = before.type()
        after = Cursor(line[found.end(1) :])
        after.expect("(")
        args: list[Arg] = []
        while not after.accept(")"):
            if after.peek() == "...":
                raise NotParsed("a variable number of arguments")
            kind = after.type()
            words = after.skip_attributes()
            arg = plain_name(after.next()) if after.peek().startswith("%") else str(len(args))
            args.append(Arg(kind, arg, tuple(w for w in words if w in _KEPT_ARGUMENT_ATTRIBUTES)))
            after.accept(",")
        words = []
        for token in after.tokens[after.at :]:
            words += self.groups.get(token, "").split() if token.startswith("#") else [token]
        attrs = tuple(w for w in _KEPT_FUNCTION_ATTRIBUTES if w in words)
        return Function(name, type, args, attrs=attrs, linkage=linkage)

    def constant(self, token: str) -> Const | None:
        """The constant global ``@name``, or ``None`` if its content can change."""
        return self.globals.get(plain_name(token))
