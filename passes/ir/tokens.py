"""LLVM text to tokens, types and operands: the part of reading that is the same for every instruction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .const import const_value, float_text
from .model import Const, Value

_TOKEN = re.compile(
    r"""\s*(?:(;.*)|([%@]"[^"]*"|[%@][-\w.$]+|!"[^"]*"|![-\w.$\\]*|c?"[^"]*"|[-+]?\d+\.\d*(?:[eE][-+]?\d+)?"""
    r"""|f?0x[KMLHRS]?[0-9A-Fa-f]+|-?\d+|[A-Za-z_][\w.]*|\#\d+|\.\.\.|[][(){}<>,=*|:]))"""
)

_TYPE_WORDS = frozenset(
    ("void", "double", "float", "ptr", "half", "bfloat", "fp128", "x86_fp80", "label", "metadata", "token", "x86_amx")
)
_INT_TYPE = re.compile(r"i\d+")
_FLOAT_LITERAL = re.compile(r"[-+]?\d+\.")


class NotParsed(Exception):
    """The text is not in the part of LLVM's language that the passes know; the message says at what."""


def tokenise(text: str) -> list[str]:
    """Split one instruction; a comment ends it."""
    tokens: list[str] = []
    position, end = 0, len(text)
    while position < end:
        found = _TOKEN.match(text, position)
        if found is None:
            if text[position:].strip():
                raise NotParsed(f"unknown text {text[position:].strip()[:40]!r}")
            break
        position = found.end()
        if found[1] is not None:
            break
        tokens.append(found[2])
    return tokens


def plain_name(token: str) -> str:
    """A name as it is, without sigil, quotes and escapes: ``%"\\CE\\BB.data"`` is ``λ.data``."""
    name = token[1:] if token[:1] in "%@" else token
    if not name.startswith('"'):
        return name
    raw = re.sub(rb"\\([0-9A-Fa-f]{2})", lambda m: bytes([int(m[1], 16)]), name[1:-1].encode())
    return raw.decode("utf-8", "surrogateescape")


class Ref(Value):
    """A local value that may be defined further down."""

    __slots__ = ()


@dataclass(eq=False, init=False)
class Expr(Value):
    """A constant expression, which becomes an instruction before its user."""

    op: str
    operands: tuple[Value, ...]
    flags: tuple[str, ...]
    elem: str

    def __init__(self, op: str, type: str, operands: Sequence[Value], flags: Sequence[str], elem: str) -> None:
        super().__init__(type)
        self.op, self.operands, self.flags, self.elem = op, tuple(operands), tuple(flags), elem


class Cursor:
    """Walks over the tokens of one instruction."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenise(text)
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        k = self.at + ahead
        return self.tokens[k] if k < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        if not token:
            raise NotParsed("the text ends early")
        self.at += 1
        return token

    def accept(self, *words: str) -> str:
        """Take the next token if it is one of ``words``; else ``""``."""
        token = self.peek()
        if token and token in words:
            self.at += 1
            return token
        return ""

    def expect(self, word: str) -> None:
        token = self.next()
        if token != word:
            raise NotParsed(f"{token!r} where {word!r} should be")

    def many(self, words: Sequence[str]) -> list[str]:
        """All of the following tokens that are among ``words``: flags."""
        found = []
        while word := self.accept(*words):
            found.append(word)
        return found

    def balanced(self) -> None:
        """Skip a bracketed group that starts here."""
        depth = 0
        while True:
            token = self.next()
            depth += token in ("(", "[", "{", "<")
            depth -= token in (")", "]", "}", ">")
            if not depth:
                return

    # types -------------------------------------------------------------------------------------------------------

    def at_type(self) -> bool:
        token = self.peek()
        return token in _TYPE_WORDS or token in ("[", "{", "<") or _INT_TYPE.fullmatch(token) is not None

    def type(self) -> str:
        """One type in LLVM's spelling (``"[2 x double]"``); vectors too, which the reader then refuses."""
        token = self.next()
        if token == "ptr" and self.accept("addrspace"):
            self.expect("(")
            space = self.next()
            self.expect(")")
            return f"ptr addrspace({space})"
        if token in _TYPE_WORDS or _INT_TYPE.fullmatch(token):
            return token
        if token == "[":
            count = self.next()
            self.expect("x")
            inner = self.type()
            self.expect("]")
            return f"[{count} x {inner}]"
        if token == "<":
            scalable = "vscale x " if self.accept("vscale") and self.accept("x") else ""
            count = self.next()
            self.expect("x")
            inner = self.type()
            self.expect(">")
            return f"<{scalable}{count} x {inner}>"
        if token == "{":
            fields = []
            while not self.accept("}"):
                fields.append(self.type())
                self.accept(",")
            return "{ " + ", ".join(fields) + " }" if fields else "{}"
        raise NotParsed(f"{token!r} where a type should be")

    def skip_attributes(self) -> list[str]:
        """Skip parameter and result attributes; the plain words among them are returned."""
        words = []
        while True:
            token = self.peek()
            if token.startswith('"') and self.peek(1) == "=":  # "name"="value"
                self.at += 3
            elif token == "align" and self.peek(1) not in ("(", ""):
                self.at += 2
            elif token.startswith('"'):
                self.at += 1
            elif _is_attribute(token) and not self.at_type():
                words.append(self.next())
                if self.peek() == "(":
                    self.balanced()
            else:
                return words

    # operands ----------------------------------------------------------------------------------------------------

    def typed(self) -> Value:
        """``type [attributes] operand``."""
        type = self.type()
        self.skip_attributes()
        return self.operand(type)

    def operand(self, type: str) -> Value:
        token = self.next()
        if token.startswith("%"):
            return Ref(type, plain_name(token))
        if token.startswith("@"):
            return Const(type, token)
        if token in ("getelementptr", "inttoptr", "ptrtoint", "ptrtoaddr", "bitcast", "trunc", "add", "sub", "xor"):
            return self._expression(token, type)
        if token in ("[", "{"):
            self.at -= 1
            return Const(type, self._aggregate())
        if token in ("true", "false", "null", "undef", "poison", "zeroinitializer", "none"):
            return Const(type, token)
        if type in ("double", "float"):
            return Const(type, _float_literal(type, token))
        if re.fullmatch(r"-?\d+", token):
            return Const(type, token)
        raise NotParsed(f"operand {token!r}")

    def _aggregate(self) -> str:
        """A literal aggregate, kept as text."""
        closing = {"[": "]", "{": "}"}[self.next()]
        items = []
        while not self.accept(closing):
            v = self.typed()
            if not isinstance(v, Const):
                raise NotParsed("a constant expression inside an aggregate")
            items.append(f"{v.type} {v.text}")
            self.accept(",")
        inner = ", ".join(items)
        return f"[{inner}]" if closing == "]" else "{ " + inner + " }"

    def _expression(self, op: str, type: str) -> Expr:
        flags = self.many(("inbounds", "nusw", "nuw", "nsw"))
        if self.accept("inrange"):
            self.balanced()
        self.expect("(")
        elem = ""
        if op == "getelementptr":
            elem = self.type()
            self.expect(",")
        operands = [self.typed()]
        while self.accept(","):
            operands.append(self.typed())
        if self.accept("to"):
            type = self.type()
        self.expect(")")
        return Expr(op, type, operands, flags, elem)


_ATTRIBUTE = re.compile(r"[a-z_][a-z_0-9]*")


def _is_attribute(token: str) -> bool:
    literal = token in (
        "true",
        "false",
        "null",
        "undef",
        "poison",
        "zeroinitializer",
        "none",
        "asm",
        "c",
        "to",
        "label",
    )
    expression = token in ("getelementptr", "inttoptr", "ptrtoint", "bitcast", "trunc", "add", "sub", "xor", "splat")
    return _ATTRIBUTE.fullmatch(token) is not None and not literal and not expression


def _float_literal(type: str, token: str) -> str:
    """One spelling for each number, whatever version of LLVM printed it."""
    token = token.removeprefix("f")
    if token.startswith("0x") and not re.fullmatch(r"0x[0-9A-Fa-f]{16}", token):
        raise NotParsed(f"the {type} literal {token}")
    value = const_value(Const(type, token)) if token.startswith("0x") or _FLOAT_LITERAL.match(token) else None
    if value is None:
        raise NotParsed(f"the {type} literal {token}")
    if value != value:
        return token  # the bits of a NaN
    return float_text(float(value))
