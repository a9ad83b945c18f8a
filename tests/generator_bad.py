"""Random kernels that must be refused: points that touch one entry, accesses that leave their arrays.

One bad statement stands among good ones. Every launch of such a kernel, on arguments of a size at which something goes
wrong (the oracle says so), must raise before anything is written.
"""

from __future__ import annotations

from typing import Any

from generator import AXES, Arr, Body, Case, Draw
from hypothesis import strategies as st

RACES = (
    "q0[{at}] = q0[{next}]",
    "q0[{next}] += T0[{at}] * q0[{at}]",
    "q0[{next}] = q0[{at}] + 0.5",
    "q0[{first}] = T0[{at}]",
    "q0[{first}] += T0[{at}]",
    "q0[{at}] = T0[{at}] * q0[{first}]",
    "if T0[{at}] > -3: q0[{at}] = q0[{next}] + 1",
    "if i > 1: q0[{first}] = 1.0",
    "lines[{line}] = T0[{at}]",
    "q0[{back}] = T0[{at}] + q0[{at}]",
)

LEAVES = (
    "q0[{at}] = T0[{far}]",
    "q0[{at}] += T0[{at}] * T0[{behind}]",
    "q0[{at}] = short[{at}]",
    "q0[{at}] = T0[{at}] if T0[{at}] > 5 else short[{at}]",
    "q0[{far}] = T0[{at}]",
)


@st.composite
def refused_cases(draw: Draw) -> tuple[Case, str]:
    """A case and the name of the error that it must raise: ``RaceError`` or ``DomainError``."""
    rank = draw(st.integers(1, 3))
    dims: tuple[int | None, ...] = tuple(range(rank))
    names = AXES[:rank]
    arrays = [Arr("q0", dims, written=True), Arr("T0", dims)]
    race = draw(st.booleans())
    statement = draw(st.sampled_from(RACES if race else LEAVES))
    axis = draw(st.integers(0, rank - 1))
    extents = tuple(draw(st.integers(4, 6)) for _ in range(rank))

    def at(by: int) -> str:
        return ", ".join(f"{a}{by:+d}" if d == axis and by else a for d, a in enumerate(names))

    if "lines" in statement:
        line = Arr("lines", (None,) if rank == 1 else (axis,), written=True)
        arrays.append(line)
    if "short" in statement:
        grow = tuple(-3 if d == axis else 0 for d in range(rank))
        arrays.append(Arr("short", dims, grow=grow))
    bad = statement.format(
        at=at(0),
        next=at(draw(st.sampled_from([1, -1]))),
        first=", ".join("1" * rank),
        back=", ".join(reversed(names)) if rank > 1 else "0",
        line="0" if rank == 1 else names[axis],
        far=at(draw(st.integers(2, 4))),
        behind=at(-12),
    )
    body = Body(draw, rank, list(arrays[:2]), {}, (1,) * rank, (1,) * rank)
    lines = body.block(2, 1, "    ") if "q0[{far}]" not in statement else []  # another write of q0 is a race
    where = draw(st.integers(0, 1))
    lines = [f"    {bad}", *lines] if where == 0 else [*lines, f"    {bad}"]
    parameters = tuple(a.name for a in arrays)
    head = [f"def kernel({', '.join(parameters)}):", f"    {', '.join(names)} = irad.interior(q0)"]
    case = Case("\n".join([*head, *lines, ""]), tuple(arrays), (), extents, draw(st.integers(0, 9)), False, parameters)
    return case, "RaceError" if race else "DomainError"


STATEMENT_RACES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("q[fd.inn] = fd.d2_xi(q)", {}),
    ("q[fd.inn] = fd.inn(q) + fd.d2_xi(q) * fd.inn(T)", {}),
    ("q[fd.inn] += 0.1 * fd.d2_xi(q)", {}),
    ("q[fd.inn_x] = fd.d2_xa(q)", {}),
    ("q[fd.inn] = fd.maxloc(q)", {}),
)
"""Statements that read at a shift what they write."""
