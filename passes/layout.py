"""What a compiled launch looks like from outside: its block of words, its checks, its variant.

A *block* is an array of 64-bit words that a launch hands to compiled code: for each parameter in order the words of
``model.ArrayParam`` or the scalar's bits, then the words of shadows, saved copies and scratch, then a tail that only
``plan`` writes. Addresses and sizes live in the block, never in the code, so that code is position independent and
can be cached.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from .ir.model import ArrayParam, LinExpr, Param

MAX_TILES = 4096
"""No sweep has more tiles than this: partial sums of reductions fit a buffer of fixed size."""

ITEM_SIZE = {"double": 8, "float": 4, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "i1": 1}


@dataclass(frozen=True)
class Variant:
    """What a specialisation assumes about strides and wraparound.

    ``unit``: pairs (word prefix such as ``"T"`` or ``"T'"``, dimension) whose byte stride equals the item size.
    ``reverse``: loops run over the last point axis outermost (Fortran order). ``wraps``: keys of the accesses whose
    index is negative somewhere in the launch (``Check.key``); all others are known not to wrap.
    """

    unit: frozenset[tuple[str, int]] = frozenset()
    reverse: bool = False
    wraps: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Blend:
    """An integrator's recurrence in an adjoint: ``state' = b state' + a rate' + J^T (c rate')`` instead of
    ``state' += J^T rate'``, and ``c rate'`` for all other cotangents. ``a``, ``b``, ``c`` are scalar parameters."""

    state: str
    rate: str

    a: ClassVar[str] = ".a"
    b: ClassVar[str] = ".b"
    c: ClassVar[str] = ".c"


@dataclass(frozen=True)
class AdjointSpec:
    """Which derivatives an adjoint program computes, and what it does to shadows.

    ``active``: parameters that carry derivatives. ``keep_seed``: written arrays whose shadow is only read.
    ``assign``: read-only arrays whose shadow is overwritten instead of added to. ``blend``: see :class:`Blend`.
    ``merge``: sweeps may be joined; false where two parameters share one shadow (the same array passed twice).
    """

    active: frozenset[str]
    keep_seed: frozenset[str] = frozenset()
    assign: frozenset[str] = frozenset()
    blend: Blend | None = None
    merge: bool = True


@dataclass(frozen=True)
class Check:
    """One condition that ``plan`` evaluates before anything is written.

    ``kind``: ``"bounds"`` (an access leaves its array), ``"wraps"`` (an index is negative although the variant
    assumes that it is not; ``key`` says which), ``"collides"`` (two points write one element),
    ``"shapes"`` (a statement's arrays do not fit, see :class:`Conform`).
    """

    kind: str
    message: str
    loc: object = None
    key: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Conform:
    """Shapes that must agree: on ``axis``, the extent of ``array`` less ``cut`` and that of ``target`` less
    ``target_cut``, neither below 0."""

    array: str
    cut: int
    target: str
    target_cut: int
    axis: int
    check: Check


@dataclass(frozen=True)
class BlockLayout:
    """Names of the words of a block, in order; ``size`` counts the tail as well."""

    words: tuple[str, ...]
    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "_at", {w: i for i, w in enumerate(self.words)})

    def at(self, word: str) -> int:
        return self._at[word]  # type: ignore[attr-defined,no-any-return]

    def __contains__(self, word: str) -> bool:
        return word in self._at  # type: ignore[attr-defined]


def shadow_words(p: ArrayParam) -> tuple[str, ...]:
    """Words of the shadow of an array: its extents are those of the array."""
    return (f"{p.name}'.data", *(f"{p.name}'.s{d}" for d in range(p.rank)))


@dataclass(frozen=True)
class Program:
    """One launch as LLVM text: ``i64 @plan(ptr block, ptr out)`` and ``void @sweep<s>(i64 lo, i64 hi, ptr block)``.

    ``plan`` evaluates domains and checks and writes boxes and tiles into the block's tail: ``out[0]`` is the work
    estimated in nanoseconds, ``out[1 + s]`` the number of tiles of sweep ``s``, ``out[1 + sweeps + k]`` is 1 where
    check ``k`` failed; it returns 0, or ``-(1 + k)`` of the first failure. Sweeps run in order, each complete before
    the next; tiles of one sweep in any order, concurrently.

    ``reads``: arrays whose values as the kernel left them are read. ``saves``: ``(stage, array, alias)``: the launch
    also reads ``array`` as it was before that stage ran, passed under the words of ``alias``. ``partials``: number of
    float64 words that the scratch buffer ``partials.data`` needs.
    """

    text: str
    sweeps: int
    block: BlockLayout
    checks: tuple[Check, ...]
    params: tuple[Param, ...]
    reads: frozenset[str] = frozenset()
    saves: tuple[tuple[int, str, str], ...] = ()
    written: frozenset[str] = frozenset()
    partials: int = 0
    strategy: tuple[str, ...] = ()
    bytes_per_point: int = 0
    flops_per_point: int = 0


@dataclass(frozen=True)
class Term:
    """``base + offset`` where base is a bound of the launch domain (``("lo", axis)``, ``("hi", axis)``) or 0."""

    base: tuple[str, int] | None
    offset: LinExpr = field(default_factory=LinExpr)


@dataclass(frozen=True)
class Range:
    """Bounds of one dimension as extremes over terms; what is extreme (max or min) is the owner's business."""

    lo: tuple[Term, ...]
    hi: tuple[Term, ...]
