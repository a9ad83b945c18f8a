"""What a kernel's parameters are: their types, their words in a canonical function, and what ``lower`` returns.

A canonical function takes, for each parameter in order, an array ``T`` of rank ``r`` as ``ptr %T.data``, the extents
``i64 %T.n0 …`` and the strides in bytes ``i64 %T.s0 …``; a scalar as one value. Captured parameters come last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from irad.errors import IradError

if TYPE_CHECKING:
    from irad.frontend.captures import Capture, Constant
    from irad.frontend.numba_target import Raised

MAX_RANK = 4

ELEMENT_TYPES = {
    "float64": "double", "float32": "float",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
    "uint64": "i64", "uint32": "i32", "uint16": "i16", "uint8": "i8", "bool": "i8",
}  # fmt: skip
"""LLVM's type of an array element in memory, by NumPy's name of the dtype."""

SCALAR_TYPES = {"float": "double", "float64": "double", "float32": "float", "int": "i64", "bool": "i1"}
"""LLVM's type of a scalar parameter, by kind."""


@dataclass(frozen=True)
class ArrayType:
    """An array of any strides: NumPy's name of its dtype, and its rank (1 to 4)."""

    dtype: str
    rank: int

    def __post_init__(self) -> None:
        if self.dtype not in ELEMENT_TYPES:
            raise IradError(
                f"arrays of dtype {self.dtype} are not supported",
                remedy="convert to one of " + ", ".join(ELEMENT_TYPES),
            )
        if not 1 <= self.rank <= MAX_RANK:
            raise IradError(f"arrays of rank {self.rank} are not supported", remedy="use ranks 1 to 4")

    @property
    def elem(self) -> str:
        """LLVM's type of an element."""
        return ELEMENT_TYPES[self.dtype]

    @property
    def itemsize(self) -> int:
        """Bytes an element."""
        return np.dtype(self.dtype).itemsize

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(':' * self.rank)}]"


@dataclass(frozen=True)
class ScalarType:
    """A scalar: ``float`` (Python's, weak), ``int``, ``bool``, or NumPy's strong ``float32`` and ``float64``."""

    kind: str

    def __post_init__(self) -> None:
        if self.kind not in SCALAR_TYPES:
            raise IradError(
                f"scalars of type {self.kind} are not supported", remedy="use one of " + ", ".join(SCALAR_TYPES)
            )

    @property
    def llvm(self) -> str:
        """LLVM's type of the parameter."""
        return SCALAR_TYPES[self.kind]

    @property
    def weak(self) -> bool:
        """Whether the value takes the precision of what it meets, as Python floats do in NumPy 2."""
        return self.kind == "float"

    def __str__(self) -> str:
        return self.kind


ParamType = ArrayType | ScalarType


def is_array(value: object) -> bool:
    """Whether ``value`` is a NumPy array, or a device array (CuPy and the like)."""
    return isinstance(value, np.ndarray) or hasattr(type(value), "__cuda_array_interface__")


def is_scalar(value: object) -> bool:
    """Whether ``value`` is a real number or a truth value, of Python or of NumPy."""
    return isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating))


def typeof(value: Any) -> ParamType:
    """The type of an argument: array, or scalar.

    >>> import numpy as np
    >>> typeof(np.zeros((4, 3), np.float32)), typeof(1.5), typeof(np.float64(1.5)), typeof(True)
    (ArrayType(dtype='float32', rank=2), ScalarType(kind='float'), ScalarType(kind='float64'), ScalarType(kind='bool'))

    Raises ``IradError`` for whatever a kernel cannot take.
    """
    if is_array(value):
        try:
            dtype = np.dtype(value.dtype)
        except TypeError:
            raise IradError(
                f"a kernel cannot take a {type(value).__name__} of {value.dtype}",
                remedy="pass a NumPy or CuPy array (numpy.from_dlpack and cupy.from_dlpack copy nothing)",
            ) from None
        if not dtype.isnative:
            raise IradError(
                f"arrays of dtype {dtype} (foreign byte order) are not supported",
                remedy="convert with A.astype(A.dtype.newbyteorder('='))",
            )
        return ArrayType(dtype.name, value.ndim)
    if isinstance(value, (bool, np.bool_)):
        return ScalarType("bool")
    if isinstance(value, np.floating):
        return ScalarType(value.dtype.name)
    if isinstance(value, float):
        return ScalarType("float")
    if isinstance(value, (int, np.integer)):
        if not -(2**63) <= int(value) < 2**63:
            raise IradError(f"the integer {value} does not fit 64 bits", remedy="pass it as a float")
        return ScalarType("int")
    raise IradError(
        f"a kernel cannot take a value of type {type(value).__name__}",
        remedy="pass NumPy or CuPy arrays, floats, integers and booleans",
    )


@dataclass(frozen=True)
class Loc:
    """A place in the user's source."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Options:
    """How a kernel is compiled. ``name`` replaces the function's own name."""

    fastmath: bool | frozenset[str] = False
    boundscheck: bool | None = None
    name: str | None = None


@dataclass(frozen=True)
class ParamInfo:
    """A parameter of a canonical function: an argument of the kernel, or (``capture``) a hidden one."""

    name: str
    type: ParamType
    capture: Capture | None = None

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        """LLVM type and name of the words that pass this parameter."""
        if isinstance(self.type, ScalarType):
            return ((self.type.llvm, self.name),)
        dims = range(self.type.rank)
        return (
            ("ptr", f"{self.name}.data"),
            *(("i64", f"{self.name}.n{d}") for d in dims),
            *(("i64", f"{self.name}.s{d}") for d in dims),
        )


def words(params: tuple[ParamInfo, ...]) -> Iterator[tuple[str, str]]:
    """LLVM type and name of every word of a canonical parameter list."""
    for p in params:
        yield from p.words


@dataclass(frozen=True)
class Conform:
    """What NumPy would demand of the shapes in a math-close statement: on ``axis``, the extent of ``array`` less
    ``cut`` equals the extent of ``target`` less ``target_cut``."""

    array: str
    cut: int
    target: str
    target_cut: int
    axis: int
    loc: Loc

    @property
    def message(self) -> str:
        """What is wrong where it does not hold."""

        def side(name: str, cut: int) -> str:
            return f"{name}.shape[{self.axis}]" + (f" - {cut}" if cut else "")

        return f"{side(self.array, self.cut)} differs from {side(self.target, self.target_cut)}"


@dataclass(frozen=True)
class StageIR:
    """One stage of a kernel, as LLVM text.

    ``text`` is a self-contained, unoptimised module that defines ``void @<name>(canonical parameters)``: what happens
    at one point, which it learns from calls of ``i64 @irad.index.<axis>()``. ``domain_text`` is a module that defines
    ``void @<domain_name>(canonical parameters, ptr out)``: stores lo0, hi0, lo1, hi1, … (``hi`` exclusive, never
    below ``lo``). ``conforms``: the shapes that a math-close statement takes for granted; where one does not hold, the
    statement is no array expression. A stage of rank 0 is a loop kernel: it has no domain, runs once, and returns
    ``i32``, which is 0 or stands for an exception.
    """

    text: str = field(repr=False)
    name: str
    rank: int
    domain_text: str = field(repr=False)
    domain_name: str
    loc: Loc
    conforms: tuple[Conform, ...] = ()


@dataclass(frozen=True)
class Lowered:
    """A kernel after the frontend.

    ``kind`` is ``"point"`` (names a domain), ``"math"`` (statements over ``irad.fd``) or ``"loop"``. ``constants`` are
    the captured things that were compiled in: :meth:`fresh` says whether they are still what they were. ``raises``: the
    exceptions of a loop kernel by the status that stands for them.
    """

    name: str
    filename: str
    firstline: int
    params: tuple[ParamInfo, ...]
    stages: tuple[StageIR, ...]
    captures: tuple[Capture, ...]
    kind: str
    constants: tuple[Constant, ...] = field(default=(), compare=False, repr=False)
    raises: Mapping[int, Raised] = field(default_factory=dict, compare=False, repr=False)

    @property
    def loc(self) -> Loc:
        """Where the kernel is defined."""
        return Loc(self.filename, self.firstline)

    def fresh(self) -> bool:
        """Whether every captured thing still has the value (constants) or type (hidden arguments) compiled for."""
        return all(c.fresh() for c in self.constants) and all(c.fresh() for c in self.captures)
