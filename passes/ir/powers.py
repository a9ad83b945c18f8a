"""Integer powers: the marks ``double @irad.powi.f64(double x, i64 n)`` and ``float @irad.powi.f32(float x, i64 n)``.

The frontend leaves them for ``x ** n``, as an exponent may become a constant only when LLVM has inlined and unrolled.
A constant up to :data:`MOST` is multiplied out, in the order in which Numba does it; any other power is ``pow``, as in
Python. Text in and text out, as LLVM printed it: every way into the small IR comes past here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import ops

MOST = 64
"""The largest exponent that is multiplied out."""

_ONE = "1.000000e+00"

_MARK = re.compile(
    r'^\s*(?P<to>%(?:"[^"]*"|[-\w.$]+)) = (?:(?:tail|musttail|notail) )?call .*?@irad\.powi\.(?P<type>f64|f32)\('
    r"(?:double|float) (?:\w+ )*(?P<x>[^,]+), i64 (?:\w+ )*(?P<n>[^)]+)\)[^!]*(?P<debug>.*)$"
)


def expanded(lines: list[str]) -> Iterator[str]:
    """The lines of a function's body, with arithmetic for each mark."""
    for count, line in enumerate(lines):
        found = _MARK.match(line) if "@irad.powi." in line else None
        if found is None:
            yield line
            continue
        debug = f", {found['debug']}" if found["debug"] else ""
        for instruction in _instructions(found, f"irad.power.{count}"):
            yield f"  {instruction}{debug}"


def _instructions(m: re.Match[str], prefix: str) -> Iterator[str]:
    type, x, n = ops.LONG[m["type"]], m["x"], m["n"]
    if not re.fullmatch(r"-?\d+", n) or abs(int(n)) > MOST:
        yield f'%"{prefix}" = sitofp i64 {n} to {type}'
        yield f'{m["to"]} = call {type} @irad.guard.pow.{m["type"]}({type} {x}, {type} %"{prefix}")'
        return
    x = x.replace("{", "{{").replace("}", "}}")
    steps = list(_products(x, abs(int(n)), type))
    if int(n) < 0:
        steps.append(f"fdiv {type} {_ONE}, {{{len(steps) - 1}}}" if steps else f"fdiv {type} {_ONE}, {x}")
    elif not steps:
        steps.append(f"freeze {type} {x if int(n) else _ONE}")
    names = [f'%"{prefix}.{k}"' for k in range(len(steps) - 1)] + [m["to"]]
    for name, step in zip(names, steps, strict=True):
        yield f"{name} = {step.format(*names)}"


def _products(x: str, n: int, type: str) -> Iterator[str]:
    """The multiplications of ``x ** n``; ``{k}`` stands for the result of the ``k``-th."""
    square, result, count = x, "", 0
    while n:
        if n & 1 and result:
            yield f"fmul {type} {result}, {square}"
            result, count = f"{{{count}}}", count + 1
        elif n & 1:
            result = square
        n >>= 1
        if n:
            yield f"fmul {type} {square}, {square}"
            square, count = f"{{{count}}}", count + 1
