"""Finite-difference operators for the math-close notation, in 1-D, 2-D and 3-D.

::

    from irad.fd import inn, d2_xi, d2_yi, d2_zi

    @irad.kernel
    def diffusion3d_step(dT, T, Ci, lam, dx, dy, dz):
        dT[inn] = lam[0] * inn(Ci) * (d2_xi(T)/dx**2 + d2_yi(T)/dy**2 + d2_zi(T)/dz**2)

Names and index conventions are those of ParallelStencil.jl (its modules ``FiniteDifferences1D/2D/3D``); x, y, z are
the first, second and third axis. ``a`` at the end: all entries along the other axes; ``i``: the inner ones. A selector
(``all``, ``inn``, ``inn_x``, …) also stands as an index on the left of a statement. Operators nest:
``inn_y(d_xa(A))`` is ``d_xi(A)``, and what stands inside may be any element-wise expression, as in ``d_xa(C * T)``.

Outside a kernel an operator acts on a NumPy array and gives a new one:

>>> import numpy as np
>>> from irad.fd import d_xa, d2
>>> d_xa(np.array([1.0, 4.0, 9.0])), d2(np.array([1.0, 4.0, 9.0]))
(array([3., 5.]), array([2.]))
"""

from __future__ import annotations

import builtins
import itertools
from typing import Any

import numpy as np

from irad.errors import IradError

Taps = tuple[tuple[int, int], ...]

MAX_RANK = 3

HERE: Taps = ((0, 1),)
INNER: Taps = ((1, 1),)
FIRST: Taps = ((1, 1), (0, -1))
SECOND: Taps = ((2, 1), (1, -2), (0, 1))
BOTH: Taps = ((0, 1), (1, 1))
WINDOW: Taps = ((0, 1), (2, 1))


class Operator:
    """A finite-difference operator: along each axis a few (offset, weight), combined over the axes.

    ``along`` names the axes on which ``taps`` acts (``"*"``: each); the others take their entry ``rest``. ``combine``
    says what happens to the entries so reached: their weighted ``sum``, ``mean``, harmonic mean (``harm``), ``max`` or
    ``min``; the last two over a cross of arms ``taps`` and its centre. ``ranks`` are those of the arrays it takes.
    """

    def __init__(
        self,
        name: str,
        along: str,
        taps: Taps,
        rest: int,
        *,
        combine: str = "sum",
        ranks: tuple[int, ...] = (1, 2, 3),
        doc: str,
    ) -> None:
        self.name, self.along, self.along_taps, self.rest = name, along, taps, rest
        self.combine, self.ranks = combine, ranks
        self.__doc__ = doc
        self.selector = along == "" or taps is INNER

    def __repr__(self) -> str:
        return f"irad.fd.{self.name}"

    def taps(self, rank: int) -> tuple[tuple[tuple[int, ...], int], ...]:
        """(offset on each axis, weight) of every entry that the operator reads, relative to the point."""
        if self.combine in ("max", "min"):
            arms = [
                tuple(offset if axis == arm else 1 for axis in range(rank))
                for arm in range(rank)
                for offset, _ in self.along_taps
            ]
            return tuple((offsets, 1) for offsets in [*arms, (1,) * rank])
        result = []
        for combination in itertools.product(*(self._axis(axis) for axis in range(rank))):
            weight = 1
            for _, w in combination:
                weight *= w
            result.append((tuple(offset for offset, _ in combination), weight))
        return tuple(result)

    def _axis(self, axis: int) -> Taps:
        if self.along == "*" or "xyz"[axis] in self.along:
            return self.along_taps
        return HERE if self.rest == 0 else INNER

    def offsets(self, rank: int) -> tuple[int, ...]:
        """Of a selector: where its first entry is."""
        return self.taps(rank)[0][0]

    def loss(self, rank: int) -> tuple[int, ...]:
        """How much shorter the result is than the array, on each axis (of a selector: twice its offset)."""
        if self.selector:
            return tuple(2 * o for o in self.offsets(rank))
        inner = [2 * (self._axis(axis) is INNER) for axis in range(rank)]
        reach = [max(offsets[axis] for offsets, _ in self.taps(rank)) for axis in range(rank)]
        return tuple(max(pair) for pair in zip(inner, reach, strict=True))

    def reason_against(self, rank: int) -> str:
        """Why the operator does not act on an array of this rank; empty where it does."""
        if rank not in self.ranks:
            return f"{self.name} acts on arrays of rank {' or '.join(map(str, self.ranks))}, not {rank}"
        missing = [axis for axis in self.along if axis != "*" and "xyz".index(axis) >= rank]
        if missing:
            return f"{self.name} acts along {', '.join(self.along)}, but the array has rank {rank}"
        return ""

    def __call__(self, A: Any) -> Any:
        """The operator on a NumPy array, for use outside kernels. Raises ``IradError`` where the rank does not fit."""
        A = np.asarray(A)
        if reason := self.reason_against(A.ndim):
            raise IradError(reason, remedy="see irad.fd for the operators of each rank")
        shape = [max(n - cut, 0) for n, cut in zip(A.shape, self.loss(A.ndim), strict=True)]
        parts = [
            (A[tuple(slice(o, o + n) for o, n in zip(offsets, shape, strict=True))], weight)
            for offsets, weight in self.taps(A.ndim)
        ]
        if self.combine in ("max", "min"):
            pick = np.maximum if self.combine == "max" else np.minimum
            result = parts[0][0]
            for part, _ in parts[1:]:
                result = pick(result, part)
            return result
        if self.combine == "harm":
            return len(parts) / sum(1 / part for part, _ in parts)
        total = sum(weight * part for part, weight in parts)
        return total / len(parts) if self.combine == "mean" else total + 0


def _words(along: str) -> str:
    return " and ".join(along)


def _first(name: str, along: str, rest: int) -> Operator:
    where = "the inner entries of" if rest else "all entries of"
    return Operator(name, along, FIRST, rest, doc=f"Differences of neighbours along {along}; {where} the other axes.")


def _second(name: str, along: str, rest: int) -> Operator:
    where = "the inner entries of" if rest else "all entries of"
    return Operator(name, along, SECOND, rest, doc=f"Second differences along {along}; {where} the other axes.")


def _select(name: str, along: str) -> Operator:
    return Operator(name, along, INNER, 0, doc=f"The inner entries along {_words(along)}, all of the other axes.")


def _mean(name: str, along: str, rest: int) -> Operator:
    return Operator(name, along, BOTH, rest, combine="mean", doc=f"Means of neighbours along {_words(along)}.")


def _harm(name: str, along: str, rest: int) -> Operator:
    return Operator(name, along, BOTH, rest, combine="harm", doc=f"Harmonic means of neighbours along {_words(along)}.")


all = Operator("all", "", HERE, 0, doc="All entries.")
inn = Operator("inn", "", INNER, 1, doc="The inner entries along every axis.")
inn_x, inn_y, inn_z = _select("inn_x", "x"), _select("inn_y", "y"), _select("inn_z", "z")
inn_xy, inn_xz, inn_yz = _select("inn_xy", "xy"), _select("inn_xz", "xz"), _select("inn_yz", "yz")

d = Operator("d", "x", FIRST, 0, ranks=(1,), doc="Differences of neighbours of a 1-D array.")
d_xa, d_ya, d_za = _first("d_xa", "x", 0), _first("d_ya", "y", 0), _first("d_za", "z", 0)
d_xi, d_yi, d_zi = _first("d_xi", "x", 1), _first("d_yi", "y", 1), _first("d_zi", "z", 1)

d2 = Operator("d2", "x", SECOND, 0, ranks=(1,), doc="Second differences of a 1-D array.")
d2_xa, d2_ya, d2_za = _second("d2_xa", "x", 0), _second("d2_ya", "y", 0), _second("d2_za", "z", 0)
d2_xi, d2_yi, d2_zi = _second("d2_xi", "x", 1), _second("d2_yi", "y", 1), _second("d2_zi", "z", 1)

av = Operator("av", "*", BOTH, 0, combine="mean", doc="Means of neighbours along every axis.")
av_xa, av_ya, av_za = _mean("av_xa", "x", 0), _mean("av_ya", "y", 0), _mean("av_za", "z", 0)
av_xi, av_yi, av_zi = _mean("av_xi", "x", 1), _mean("av_yi", "y", 1), _mean("av_zi", "z", 1)
av_xya, av_xza, av_yza = _mean("av_xya", "xy", 0), _mean("av_xza", "xz", 0), _mean("av_yza", "yz", 0)
av_xyi, av_xzi, av_yzi = _mean("av_xyi", "xy", 1), _mean("av_xzi", "xz", 1), _mean("av_yzi", "yz", 1)

harm = Operator("harm", "*", BOTH, 0, combine="harm", doc="Harmonic means of neighbours along every axis.")
harm_xa, harm_ya, harm_za = _harm("harm_xa", "x", 0), _harm("harm_ya", "y", 0), _harm("harm_za", "z", 0)
harm_xi, harm_yi, harm_zi = _harm("harm_xi", "x", 1), _harm("harm_yi", "y", 1), _harm("harm_zi", "z", 1)
harm_xya, harm_xza, harm_yza = _harm("harm_xya", "xy", 0), _harm("harm_xza", "xz", 0), _harm("harm_yza", "yz", 0)
harm_xyi, harm_xzi, harm_yzi = _harm("harm_xyi", "xy", 1), _harm("harm_xzi", "xz", 1), _harm("harm_yzi", "yz", 1)

maxloc = Operator("maxloc", "*", WINDOW, 1, combine="max", doc="Largest of an inner entry and its neighbours.")
minloc = Operator("minloc", "*", WINDOW, 1, combine="min", doc="Smallest of an inner entry and its neighbours.")

OPERATORS: dict[str, Operator] = {n: v for n, v in builtins.list(globals().items()) if isinstance(v, Operator)}
"""Every operator by name."""

__all__ = [  # noqa: RUF022
    "OPERATORS", "Operator",
    "all", "inn", "inn_x", "inn_y", "inn_z", "inn_xy", "inn_xz", "inn_yz",
    "d", "d_xa", "d_ya", "d_za", "d_xi", "d_yi", "d_zi",
    "d2", "d2_xa", "d2_ya", "d2_za", "d2_xi", "d2_yi", "d2_zi",
    "av", "av_xa", "av_ya", "av_za", "av_xi", "av_yi", "av_zi",
    "av_xya", "av_xza", "av_yza", "av_xyi", "av_xzi", "av_yzi",
    "harm", "harm_xa", "harm_ya", "harm_za", "harm_xi", "harm_yi", "harm_zi",
    "harm_xya", "harm_xza", "harm_yza", "harm_xyi", "harm_xzi", "harm_yzi",
    "maxloc", "minloc",
]  # fmt: skip
