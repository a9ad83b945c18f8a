"""What a check of a gradient found: rows of a table, and the error that shows them.

The two verdicts that both kinds of checks share are here, too: the entry that is furthest off, and the slope of the
remainder of a linear model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

STEPS = tuple(2.0**-k for k in range(3, 12))
"""Of the Taylor test, relative to each entry."""

SLOPE = 1.7
"""The remainder has slope 2 in the limit; at finite steps third-order terms bend it, a wrong derivative gives 1."""

ABOVE_NOISE = 30
"""A remainder counts where it is so many times the rounding error."""


@dataclass(frozen=True)
class Row:
    """One comparison. ``error`` and ``allowed`` are absolute; a row that was not run has ``ok=None`` and says why."""

    check: str
    what: str
    found: float | None
    expected: float | None
    error: float | None
    allowed: float | None
    ok: bool | None
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        numbers = (_text(x, "g") for x in (self.found, self.expected))
        errors = (_text(x, ".1e") for x in (self.error, self.allowed))
        verdict = {True: "ok", False: "WRONG", None: "not run"}[self.ok]
        return (self.check, self.what, *numbers, *errors, f"{verdict}{', ' * bool(self.note)}{self.note}")


@dataclass(frozen=True)
class Report:
    """What :func:`check_gradient` found; ``print`` shows it as a table."""

    name: str
    rows: tuple[Row, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was wrong and at least one check was run."""
        return all(r.ok is not False for r in self.rows) and any(r.ok for r in self.rows)

    def __str__(self) -> str:
        head = ("check", "what", "found", "expected", "error", "allowed", "")
        lines = [head, *(r.cells() for r in self.rows)]
        widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
        body = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]
        return "\n".join([f"gradient of {self.name}", *body])


class GradientError(AssertionError):
    """A gradient is wrong. ``report`` says where."""

    def __init__(self, report: Report) -> None:
        self.report = report
        super().__init__(f"\n{report}")


def dot_row(what: str, found: float, expected: float, terms: float, rtol: float) -> Row:
    """Two sums that should be equal; ``terms`` is the sum of the absolute values of all their terms."""
    error, allowed = abs(found - expected), rtol * terms
    return Row("dot product", what, found, expected, error, allowed, error <= allowed)


def entry_row(what: str, found: Any, expected: Any, scale: Any, rtol: float, note: str) -> Row:
    """The entry that is furthest off, in units of what ``rtol`` of its ``scale`` allows."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    if not found.size:
        return Row("oracle", what, None, None, 0.0, 0.0, True, "empty")
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    smallest = np.finfo(np.float32 if rtol > 1e-6 else np.float64).tiny
    with np.errstate(all="ignore"):
        allowed = rtol * np.asarray(scale) + smallest
        errors = np.where(same, 0.0, np.abs(found - expected))
        excess = np.where(np.isnan(errors), np.inf, errors / allowed)
    worst = np.unravel_index(int(np.argmax(excess)), found.shape)
    where = f"{what} [{', '.join(str(int(k)) for k in worst)}]" if found.ndim else what
    found, expected, error, limit = (float(x[worst]) for x in (found, expected, errors, allowed))
    return Row("oracle", where, found, expected, error, limit, bool(excess[worst] <= 1), note)


def slope_row(remainders: Sequence[float], noises: Sequence[float]) -> Row:
    """The slope of the remainder at the smallest steps at which it stands out of the rounding errors."""
    if not all(np.isfinite(remainders)):
        return Row("Taylor", "remainder", None, None, None, None, False, "values are not finite next to the arguments")
    clear = [r > ABOVE_NOISE * noise for r, noise in zip(remainders, noises, strict=True)]
    pairs = [k for k in range(len(clear) - 1) if clear[k] and clear[k + 1]]
    if not pairs:
        linear = sum(clear) <= 1
        note = "linear within rounding" if linear else "does not shrink with the step"
        return Row("Taylor", "remainder", max(remainders), 0.0, max(remainders), None, linear, note)
    k = pairs[-1]
    slope = float(np.log2(remainders[k] / remainders[k + 1]))
    ok = slope >= SLOPE
    note = "" if ok else "1: a wrong derivative, or a kink next to the arguments"
    return Row("Taylor", f"slope at step {STEPS[k]:g}", slope, 2.0, abs(slope - 2), 2 - SLOPE, ok, note)


def _text(x: float | None, form: str) -> str:
    return "" if x is None else format(x, form)
