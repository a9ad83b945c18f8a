"""Runs the command at the top of a ``.ll`` file and matches what it prints against the expected lines in it.

======================= ==========================================================================================
line                    meaning
======================= ==========================================================================================
``; RUN: prepare …``    arguments of ``python -m irad.passes`` (the file is added)
``; CHECK: text``       a later line of the output holds this text
``; NEXT: text``        the line after the one before holds it
``; NOT: text``         no line between the neighbouring matches holds it
``; ERROR: text``       the command fails, and its message holds this text
======================= ==========================================================================================

``[[x:%[-.\\w]+]]`` matches a pattern and remembers it; ``[[x]]`` is what was remembered. Spaces count as one or more.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

from irad.passes.__main__ import main

_DIRECTIVE = re.compile(r"^\s*; (RUN|CHECK|NEXT|NOT|ERROR): (.*)$")
_CAPTURE = re.compile(r"\[\[(\w+)(?::(.+?))?\]\](?!\])")


def filecheck(path: Path) -> None:
    """``AssertionError`` where the output of the file's command is not what the file says."""
    found = (_DIRECTIVE.match(line) for line in path.read_text().splitlines())
    directives = [(m[1], m[2].strip()) for m in found if m]
    arguments = [shlex.split(text) for kind, text in directives if kind == "RUN"]
    assert len(arguments) == 1, f"{path.name} has no single RUN line"
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([arguments[0][0], str(path), *arguments[0][1:]])
    errors = [text for kind, text in directives if kind == "ERROR"]
    if errors:
        assert status == 1, f"{path.name}: the command did not fail, it printed\n{out.getvalue()}"
        for text in errors:
            assert text in err.getvalue(), f"{path.name}: {text!r} is not in\n{err.getvalue()}"
        return
    assert status == 0, err.getvalue()
    expected = [d for d in directives if d[0] != "RUN"]
    assert expected, f"{path.name} expects nothing"
    match(expected, out.getvalue().splitlines())


def match(expected: list[tuple[str, str]], lines: list[str]) -> None:
    """Match directives against lines, in order."""
    names: dict[str, str] = {}
    at, forbidden = 0, []
    for kind, text in expected:
        if kind == "NOT":
            forbidden.append(text)
            continue
        limit = at + 1 if kind == "NEXT" else len(lines)
        hit, bound = next(((k, m) for k in range(at, limit) if (m := _match(text, lines[k], names))), (None, None))
        where = "\n".join(lines[max(at - 3, 0) : at + 12])
        assert hit is not None, f"no line for {kind}: {text}\nafter line {at}:\n{where}\nwith {names}"
        assert bound is not None
        _refuse(forbidden, lines[at:hit], names)
        names |= {k: v for k, v in bound.groupdict().items() if v is not None}
        at, forbidden = hit + 1, []
    _refuse(forbidden, lines[at:], names)


def _refuse(forbidden: list[str], lines: list[str], names: dict[str, str]) -> None:
    for text in forbidden:
        for line in lines:
            assert not _match(text, line, names), f"NOT: {text} matches {line}"


def _match(text: str, line: str, names: dict[str, str]) -> re.Match[str] | None:
    pattern, position = "", 0
    fresh: set[str] = set()
    for m in _CAPTURE.finditer(text):
        pattern += _literal(text[position : m.start()])
        name, sub = m[1], m[2]
        if sub is not None:
            pattern += f"(?P<{name}>{sub})"
            fresh.add(name)
        elif name in fresh:
            pattern += f"(?P={name})"
        else:
            assert name in names, f"[[{name}]] was never matched"
            pattern += re.escape(names[name])
        position = m.end()
    return re.search(pattern + _literal(text[position:]), line)


def _literal(text: str) -> str:
    return re.sub(r"(\\ )+", " +", re.escape(text))
