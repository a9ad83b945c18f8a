"""Where in the user's source an instruction comes from: the debug metadata of an LLVM module.

The place of an instruction that was inlined is the innermost one: the line of the helper, not of the call. Numba's own
code, and irad's, is no place that helps: there the line is that of the call.
"""

from __future__ import annotations

import re

from .model import Loc

_NODE = re.compile(r"^!(\d+) = (?:distinct )?!(DI\w+)\((.*)\)$", re.M)
_FIELD = re.compile(r'(\w+): (?:"((?:[^"\\]|\\.)*)"|!(\d+)|(\d+))')
_DBG = re.compile(r"!dbg !(\d+)")
_LIBRARY = re.compile(r"[/\\](?:site-packages|dist-packages)[/\\](?:numba|llvmlite)[/\\]|^<irad>|^<dynamic>")
_TEXT_NODE = re.compile(r'^!(\d+) = (?:distinct )?!\{!"((?:[^"\\]|\\[0-9A-Fa-f]{2})*)"\}$', re.M)


class DebugInfo:
    """The places of a module's instructions. Built once a module."""

    def __init__(self, text: str) -> None:
        self.nodes: dict[str, tuple[str, dict[str, str]]] = {}
        for number, kind, body in _NODE.findall(text):
            if kind in ("DILocation", "DISubprogram", "DILexicalBlock", "DILexicalBlockFile", "DIFile"):
                fields = {key: _unescape(string) or node or plain for key, string, node, plain in _FIELD.findall(body)}
                self.nodes[number] = (kind, fields)
        self.texts = {number: _unescape(t) for number, t in _TEXT_NODE.findall(text)}
        self._places: dict[str, Loc | None] = {}

    def of(self, line: str) -> Loc | None:
        """The place named by the metadata at the end of an instruction's text, if any."""
        if found := _DBG.search(line):
            number = found[1]
            if number not in self._places:
                self._places[number] = self._place(number)
            return self._places[number]
        text = self.note(line, "loc")
        if text is not None:
            file, _, number = text.rpartition(":")
            return Loc(file, int(number))
        return None

    def is_lost(self, line: str) -> bool:
        """Whether LLVM has moved an instruction and forgotten where it came from."""
        found = _DBG.search(line)
        return found is not None and self.nodes.get(found[1], ("", {}))[1].get("line") == "0"

    def note(self, line: str, kind: str) -> str | None:
        """The text of our own metadata ``!irad.<kind> !{!"text"}`` on an instruction."""
        if found := re.search(rf"!irad\.{kind} !(\d+)", line):
            return self.texts.get(found[1])
        if found := re.search(rf'!irad\.{kind} !\{{!"([^"]*)"\}}', line):
            return _unescape(found[1])
        return None

    def _place(self, number: str) -> Loc | None:
        if number not in self.nodes:
            return None
        _, location = self.nodes[number]
        line = int(location.get("line", "0"))
        scope = location.get("scope", "")
        file = ""
        for _ in range(64):  # from the block outwards to the function
            if scope not in self.nodes:
                break
            kind, fields = self.nodes[scope]
            file = file or self._file(fields.get("file", ""))
            if kind == "DISubprogram":
                line = line or int(fields.get("line", "0"))  # 0: LLVM merged two lines; say where the function starts
                break
            scope = fields.get("scope", "")
        if _LIBRARY.search(file) and location.get("inlinedAt"):
            return self._place(location["inlinedAt"])
        return Loc(file or "<unknown>", line)

    def _file(self, number: str) -> str:
        kind, fields = self.nodes.get(number, ("", {}))
        if kind != "DIFile":
            return ""
        name, folder = fields.get("filename", ""), fields.get("directory", "")
        return f"{folder}/{name}" if folder and not name.startswith("/") else name


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    raw = re.sub(rb"\\([0-9A-Fa-f]{2}|\\)", lambda m: b"\\" if m[1] == b"\\" else bytes([int(m[1], 16)]), text.encode())
    return raw.decode("utf-8", "replace")
