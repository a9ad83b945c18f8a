"""Runs a kernel with derivatives: from its arguments to named values, tangents and cotangents."""

from __future__ import annotations

import inspect
import types as pytypes
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from irad.errors import IradError, ShadowError
from irad.oracle.arithmetic import Machine, Mode, Number
from irad.oracle.arrays import Array
from irad.oracle.captured import helper_of, hidden_arguments
from irad.oracle.derivatives import Forward, Nothing, Reverse
from irad.oracle.entries import Entries
from irad.oracle.world import World, names_domain, refuse_object

Floats = npt.NDArray[np.float64]


@dataclass
class Result:
    """What a run gives, by name of the parameter (captured ones included).

    ``values``: every array as the kernel leaves it. ``errors``: bounds of the difference to compiled code that comes
    from functions of the C library. ``written``: entries that the kernel assigned; ``read``: arrays that it read.
    ``derivatives``: tangents or cotangents, float64, of arrays and floats; of :func:`jacobian` by pairs (output,
    input), with the axes of the output first. ``scales``: the same sums with the absolute values of their terms.
    ``doubtful``: how many comparisons could turn out otherwise through rounding.
    """

    values: dict[str, npt.NDArray[Any]]
    errors: dict[str, Floats]
    written: dict[str, npt.NDArray[np.bool_]]
    read: frozenset[str]
    doubtful: int
    derivatives: dict[Any, Any] = field(default_factory=dict)
    scales: dict[Any, Any] = field(default_factory=dict)


def primal(kernel: Any, args: Sequence[Any], *, most: int | None = None) -> Result:
    """Run a kernel (or the Python function of one) on copies of ``args``. ``most``: how many points are too many; of a
    loop kernel, 20 times as many operations.

    >>> import numpy as np
    >>> from irad import points
    >>> def double(v, u):
    ...     i = points(u)
    ...     v[i] = 2 * u[i]
    >>> primal(double, (np.zeros(3), np.arange(3.0))).values["v"]
    array([0., 2., 4.])

    Raises ``DomainError`` where an access leaves its array and ``RaceError`` where two points meet.
    """
    return _Run(kernel, args, Nothing()).run(most)


def jvp(kernel: Any, args: Sequence[Any], tangents: Mapping[str, Any], *, most: int | None = None) -> Result:
    """Forward mode. ``tangents``: of arrays and floats by name, those of others are 0.

    The result holds the tangents of all floating-point arrays after the run.

    >>> import numpy as np
    >>> from irad import points
    >>> def square(v, u):
    ...     i = points(u)
    ...     v[i] = u[i] * u[i]
    >>> jvp(square, (np.zeros(3), np.arange(3.0)), {"u": np.ones(3)}).derivatives["v"]
    array([0., 2., 4.])
    """
    mode = Forward()
    run = _Run(kernel, args, mode)
    for name, tangent in tangents.items():
        given = run.checked(name, tangent)
        carried = np.empty(given.shape, object)
        for at in np.ndindex(*given.shape):
            carried[at] = mode.tangent(given[at])
        run.seed(name, carried)
    result = run.run(most)
    for name, array in run.floats.items():
        result.derivatives[name], result.scales[name] = _carried(array, 1)[..., 0]
    return result


def jacobian(kernel: Any, args: Sequence[Any], wrt: Iterable[str], *, most: int | None = None) -> Result:
    """All derivatives of all arrays after the run by the arrays and floats ``wrt`` before it.

    >>> import numpy as np
    >>> from irad import points
    >>> def square(v, u):
    ...     i = points(u)
    ...     v[i] = u[i] * u[i]
    >>> jacobian(square, (np.zeros(2), np.arange(2.0)), ["u"]).derivatives["v", "u"]
    array([[0., 0.],
           [0., 2.]])
    """
    mode = Forward()
    run = _Run(kernel, args, mode)
    shapes = {name: run.shape(name) for name in wrt}
    mode.width = sum(int(np.prod(shape)) for shape in shapes.values())
    units = iter(np.eye(mode.width))
    columns, first = {}, 0
    for name, shape in shapes.items():
        carried = np.empty(shape, object)
        for at in np.ndindex(*shape):
            carried[at] = mode.tangent(next(units))
        run.seed(name, carried)
        columns[name] = slice(first, first := first + int(np.prod(shape)))
    result = run.run(most)
    for output, array in run.floats.items():
        both = _carried(array, mode.width)
        for name, shape in shapes.items():
            part = both[..., columns[name]].reshape(2, *array.shape, *shape)
            result.derivatives[output, name], result.scales[output, name] = part
    return result


def vjp(kernel: Any, args: Sequence[Any], cotangents: Mapping[str, Any], *, most: int | None = None) -> Result:
    """Reverse mode. ``cotangents``: of arrays after the run by name, those of others are 0.

    The result holds the cotangents of all floating-point arrays and floats before the run: where the kernel overwrote
    an entry, that of its old value; everywhere else what was given, with what was read added.

    >>> import numpy as np
    >>> from irad import points
    >>> def square(v, u):
    ...     i = points(u)
    ...     v[i] = u[i] * u[i]
    >>> bars = vjp(square, (np.zeros(3), np.arange(3.0)), {"v": np.ones(3)}).derivatives
    >>> bars["u"], bars["v"]
    (array([0., 2., 4.]), array([0., 0., 0.]))
    """
    mode = Reverse()
    run = _Run(kernel, args, mode)
    leaves = {}
    for name in run.differentiable:
        leaves[name] = np.empty(run.shape(name), object)
        for at in np.ndindex(*leaves[name].shape):
            leaves[name][at] = mode.leaf()
        run.seed(name, leaves[name].copy())
    result = run.run(most)
    seeds = np.zeros(len(mode.tape))
    for name, cotangent in cotangents.items():
        given = run.checked(name, cotangent)
        if name not in run.floats:
            raise ShadowError(f"{name} is no array of floats: it has no seed")
        carried = run.floats[name].carried
        for at in np.ndindex(given.shape):
            if (node := carried[at]) is not None:
                seeds[node] += given[at]
    bars = mode.backward(seeds)
    for name, nodes in leaves.items():
        both = bars[:, nodes.astype(np.int64)]
        result.derivatives[name], result.scales[name] = both if nodes.ndim else both.tolist()
    return result


class _Run:
    """One kernel, its arguments as interpreted values, captured ones included."""

    def __init__(self, kernel: Any, args: Sequence[Any], mode: Mode) -> None:
        function = helper_of(kernel) or kernel
        if not isinstance(function, pytypes.FunctionType):
            raise IradError(f"the oracle runs kernels and Python functions, not {type(kernel).__name__}")
        self.function = function
        self.machine = Machine(mode)
        bound = inspect.signature(function).bind(*args)
        bound.apply_defaults()
        given = dict(bound.arguments)
        hidden = hidden_arguments(function, tuple(given))
        self.loop = not names_domain(function)
        self.plain: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        for name, value in {**given, **{name: place.value for name, place in hidden.items()}}.items():
            refuse_object(name, value)
            self.values[name] = self._interpreted(name, value)
        self.args = tuple(self.values[name] for name in given)
        self.world = World(self.machine, {place.key: self.values[name] for name, place in hidden.items()}, self.loop)
        for value in self.values.values():
            if isinstance(value, Array):
                value.point = lambda: self.world.point

    def _interpreted(self, name: str, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            if not self.loop:
                return Array(self.machine, name, value)
            if value.dtype.kind == "f":
                return Entries.of(self.machine, value)
            self.plain[name] = value.copy()
            return self.plain[name]
        if isinstance(value, (float, np.floating)):
            return self.machine.number(value)
        return value

    @property
    def floats(self) -> dict[str, Array | Entries]:
        """The arrays of floats by name."""
        return {name: v for name, v in self.values.items() if isinstance(v, (Array, Entries)) and v.floating}

    @property
    def differentiable(self) -> list[str]:
        """Names of everything that can carry a derivative."""
        return [name for name, v in self.values.items() if name in self.floats or isinstance(v, Number)]

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, ``()`` for a float."""
        if name not in self.differentiable:
            raise ShadowError(f"{self.function.__name__} has no floating-point parameter {name}")
        value = self.values[name]
        return value.shape if isinstance(value, (Array, Entries)) else ()

    def checked(self, name: str, given: Any) -> Floats:
        """A tangent or cotangent as an array of the right shape."""
        result = np.asarray(given, np.float64)
        if result.shape != self.shape(name):
            raise ShadowError(f"{name} has shape {self.shape(name)}, a derivative of shape {result.shape} was given")
        return result

    def seed(self, name: str, carried: Any) -> None:
        """Let an argument carry something, an object an entry."""
        value = self.values[name]
        if isinstance(value, Entries):
            for at in np.ndindex(*value.shape):
                value.view(np.ndarray)[at].carried = carried[at]
        elif isinstance(value, Array):
            value.carried[...] = carried
        else:
            value.carried = carried.item() if isinstance(carried, np.ndarray) else carried

    def run(self, most: int | None) -> Result:
        before = {name: a.copy() for name, a in self.plain.items()}
        self.world.run(self.function, self.args, most)
        arrays = {name: v for name, v in self.values.items() if isinstance(v, (Array, Entries))}
        return Result(
            {**{name: a.values for name, a in arrays.items()}, **self.plain},
            {name: a.error for name, a in arrays.items()},
            {
                **{name: a.written for name, a in arrays.items()},
                **{name: a != before[name] for name, a in self.plain.items()},
            },
            frozenset(name for name, a in arrays.items() if a.read),
            self.machine.doubtful,
        )


def _carried(array: Array | Entries, width: int) -> Floats:
    """Tangents and scales of the entries of an array, shape ``(2, *array.shape, width)``."""
    result = np.zeros((2, *array.shape, width))
    carried = array.carried
    for at in np.ndindex(*array.shape):
        if carried[at] is not None:
            result[0][at], result[1][at] = carried[at]
    return result
