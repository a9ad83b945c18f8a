"""Numba's errors as irad's: the user's line, one short reason, what to write instead."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numba

from irad.errors import IradError, NotDifferentiableError
from irad.frontend.signature import Loc

LIBRARIES = (str(Path(numba.__file__).parent), "<irad>", "<dynamic>")
"""Files, by the start of their names, in which no user wrote a line."""

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_PLACE = re.compile(r'(?:File "(?P<file>[^"]*)", line (?P<line>\d+)|at (?P<file2>\S+) \((?P<line2>\d+)\))')

_REASONS: tuple[tuple[str, str, str], ...] = (
    (r"NameError: name '(\w+)' is not defined", "{0} is not defined", "define {0} before the kernel"),
    (
        r"Untyped global name '(\w+)':",
        "{0} is nothing that a kernel can use",
        "capture arrays, numbers, tuples of numbers, and @irad.device functions; pass the rest apart",
    ),
    (
        r"Unknown attribute '(\w+)' of type (.+)",
        "{1} has no attribute {0} that can be compiled",
        "use what Numba supports in nopython mode",
    ),
    (r"Cannot unify (.+) and (.+) for '([^']+)'", "{2} is {0} on one way and {1} on another", "give it one type"),
    (
        r"The use of a reflected (\w+)\S* type, assigned to variable '(\w+)'",
        "{1} is a {0}, which a kernel cannot capture",
        "make it a tuple of numbers or an array",
    ),
    (
        r"function Function\(<intrinsic DOMAIN_BOUNDS>\)",
        "the bounds of irad.domain are not pairs of integers",
        "write (lo, hi) an axis, from constants, shapes and integer arguments",
    ),
    (
        r"function Function\(<intrinsic INTERIOR_BOUNDS>\)",
        "irad.interior is not given an array and an integer width",
        "write irad.interior(T) or irad.interior(T, width=2)",
    ),
    (
        r"No implementation of function Function\(<built-in function "
        r"((?:zeros|ones|empty|full)(?:_like)?|array|arange|linspace|eye|copy)>\)",
        "a local array is made ({0})",
        "use scalars or a tuple, or pass a scratch array as an argument",
    ),
    (
        r"NRT required but not enabled|required NRT",
        "a local array or list is made",
        "use scalars or a tuple, or pass a scratch array as an argument",
    ),
    (
        r"No implementation of function (.+) found for signature:\s*(?:>>> )?(.+)",
        "{1} cannot be compiled",
        "use what Numba supports in nopython mode",
    ),
    (
        r"Invalid use of (.+?) with parameters? \((.*)\)",
        "{0} does not take ({1})",
        "use what Numba supports in nopython mode",
    ),
    (r"[Vv]ariable '?([\w.]+)'? (?:is )?referenced before", "{0} is used before it is assigned", "assign it first"),
    (r"[Tt]oo many values|[Ww]rong number of|failed to unpack", "an unpacking does not fit", "name every element"),
)


def translate(error: Exception, fallback: Loc) -> IradError:
    """The irad error that says what a Numba error says. ``fallback``: the place, where Numba gives none."""
    text = _ANSI.sub("", str(error))
    for pattern, reason, remedy in _REASONS:
        if found := re.search(pattern, text):
            groups = [_tidy(g) for g in found.groups()]
            return NotDifferentiableError(
                reason.format(*groups), loc=_place(error, text, fallback), remedy=remedy.format(*groups)
            )
    return NotDifferentiableError(
        "Numba cannot compile this: " + _first_line(text),
        loc=_place(error, text, fallback),
        remedy="use what Numba supports in nopython mode",
    )


def _tidy(text: str) -> str:
    text = re.sub(r"Function\(<(?:built-in function|ufunc|function) '?([\w.]+)'?[^>]*>\)", r"\1", text.strip())
    text = re.sub(r"<(?:built-in function|ufunc|function|class) '?([\w.]+)'?[^>]*>", r"\1", text)
    text = re.sub(r"Module\(<module '([\w.]+)'[^>]*>\)", r"the module \1", text)
    text = re.sub(r"Literal\[(\w+)\]\(([^)]*)\)", r"\2", text)
    text = re.sub(r"^(\w+)\.\d+$", r"\1", text)  # Numba numbers the assignments of a variable
    text = re.sub(r"array\((\w+), (\d)d, \w+\)", r"array(\1, \2d)", text)
    return text[:200]


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("Failed in nopython")]
    return _tidy(lines[0]) if lines else "unknown reason"


def _place(error: Any, text: str, fallback: Loc) -> Loc:
    loc = getattr(error, "loc", None)
    if loc is not None and getattr(loc, "line", None) and not loc.filename.startswith(LIBRARIES):
        return Loc(loc.filename, loc.line)
    for found in _PLACE.finditer(text):
        line = found["line"] or found["line2"]
        if line and fallback.file.endswith((found["file"] or found["file2"]).lstrip("./")):
            return Loc(fallback.file, int(line))
    return fallback
