"""Arrays and numbers that a loss function computes with, linked so that both modes of differentiation can follow.

A :class:`Value` wraps an array (or a number, as an array of rank 0) and remembers what it was computed from. NumPy's
elementwise functions of ``tape/elementwise.py``, basic and fancy indexing, sums, means, dot products and reshaping
work on it; anything else raises ``NotDifferentiableError``. Solves of differential equations enter as nodes of their
own kind (``ode/traced.py``).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from irad.errors import NotDifferentiableError
from irad.tape.elementwise import COMPARISONS, RULES, Operators, scale
from irad.tape.where import user_line

Array = npt.NDArray[Any]
_order = itertools.count()


class Node:
    """One step of a computation: ``pull`` maps its cotangent to its parents', ``push`` their tangents to its own.

    A tangent or cotangent may be None, meaning zero.
    """

    __slots__ = ("order", "parents", "pull", "push")

    def __init__(
        self, parents: Sequence[Node], pull: Callable[[Any], Sequence[Any]], push: Callable[[Sequence[Any]], Any]
    ) -> None:
        self.parents, self.pull, self.push = tuple(parents), pull, push
        self.order = next(_order)

    def combine(self, a: Any, b: Any) -> Any:
        """The sum of two cotangents of this node."""
        return a + b


def leaf() -> Node:
    """A node that is computed from nothing: an argument to differentiate by."""
    return Node((), lambda bar: (), lambda dots: None)


class Value(Operators):
    """An array with a past. ``primal`` is its content, without derivative."""

    __slots__ = ("_data", "node")
    __array_priority__ = 1000.0

    def __init__(self, data: npt.ArrayLike, node: Node) -> None:
        self._data: Array = np.asarray(data)
        self.node = node

    @property
    def primal(self) -> Array:
        return self._data

    @property
    def shape(self) -> tuple[int, ...]:
        return self._data.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._data.dtype

    @property
    def ndim(self) -> int:
        return self._data.ndim

    @property
    def size(self) -> int:
        return self._data.size

    @property
    def T(self) -> Value:
        return self.transpose()

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator[Value]:
        return (self[i] for i in range(len(self._data)))

    def _apply(self, function: Any, *arguments: Any) -> Any:
        if not all(isinstance(a, (Value, np.ndarray, int, float, np.generic, list)) for a in arguments):
            return NotImplemented
        data = [_plain(a) for a in arguments]
        if function in COMPARISONS:
            return COMPARISONS[function](*data)
        rule = RULES.get(function)
        if rule is None:
            _refuse(f"numpy.{function.__name__} of a traced value has no derivative rule")
        with np.errstate(all="ignore"):
            result = np.asarray(function(*data))
        active = [i for i, a in enumerate(arguments) if isinstance(a, Value)]
        shapes = [np.shape(d) for d in data]

        def partial(i: int) -> Any:
            return rule.partials[i](*data, result)

        def pull(bar: Any) -> list[Any]:
            if not rule.partials:
                return [None for _ in active]
            with np.errstate(all="ignore"):
                return [_unbroadcast(scale(rule, bar, partial(i)), shapes[i]) for i in active]

        def push(dots: Sequence[Any]) -> Any:
            total = None
            for i, dot in zip(active, dots, strict=True):
                if dot is not None and rule.partials:
                    with np.errstate(all="ignore"):
                        part = np.broadcast_to(scale(rule, dot, partial(i)), result.shape)
                    total = part if total is None else total + part
            return total

        return Value(result, Node([arguments[i].node for i in active], pull, push))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            _refuse(f"numpy.{ufunc.__name__} is used on a traced value with method {method!r} or options")
        result = self._apply(ufunc, *inputs)
        if result is NotImplemented:
            _refuse(f"numpy.{ufunc.__name__} mixes a traced value with a {[type(i).__name__ for i in inputs]}")
        return result

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        ours = _FUNCTIONS.get(function)
        if ours is None:
            _refuse(f"numpy.{function.__name__} of a traced value has no derivative rule")
        return ours(*args, **options)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        _refuse("a traced value is turned into a plain array, and would lose its derivative")

    def __float__(self) -> NoReturn:
        _refuse("a traced value is turned into a plain number, and would lose its derivative")

    __int__ = __index__ = __complex__ = __float__  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(self._data)

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        _refuse("a traced value is assigned to")

    def __getitem__(self, key: Any) -> Value:
        def pull(bar: Any) -> list[Any]:
            out = np.zeros(self.shape, np.result_type(self.dtype, np.float32))
            np.add.at(out, key, bar)
            return [out]

        return self._linear(self._data[key], pull, lambda dot: dot[key])

    def _linear(self, data: Any, pull: Callable[[Any], list[Any]], push: Callable[[Any], Any]) -> Value:
        return Value(data, Node([self.node], pull, lambda dots: None if dots[0] is None else push(dots[0])))

    def sum(self, axis: Any = None, keepdims: bool = False) -> Value:
        """Sum over all or some axes, in double precision."""

        def total(x: Any) -> Any:
            return np.sum(x, axis=axis, keepdims=keepdims, dtype=np.float64)

        def pull(bar: Any) -> list[Any]:
            if axis is not None and not keepdims:
                bar = np.expand_dims(bar, axis)
            return [np.broadcast_to(bar, self.shape)]

        return self._linear(total(self._data), pull, total)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Value:
        total = self.sum(axis, keepdims)
        return total * (total.size / self.size)  # type: ignore[no-any-return]

    def reshape(self, *shape: Any) -> Value:
        return self._linear(
            self._data.reshape(*shape), lambda bar: [np.reshape(bar, self.shape)], lambda dot: np.reshape(dot, *shape)
            if len(shape) == 1 else np.reshape(dot, shape)
        )  # fmt: skip

    def ravel(self) -> Value:
        return self.reshape(-1)

    def transpose(self, *axes: Any) -> Value:
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        order = tuple(range(self.ndim))[::-1] if not order or order[0] is None else tuple(order)
        inverse = tuple(int(i) for i in np.argsort(order))
        return self._linear(
            self._data.transpose(order), lambda bar: [np.transpose(bar, inverse)], lambda dot: np.transpose(dot, order)
        )

    def dot(self, other: Any) -> Any:
        """Sum of products with an array of the same shape (in that, unlike NumPy, for any rank)."""
        if np.shape(_plain(other)) != self.shape:
            _refuse(f"dot of shapes {self.shape} and {np.shape(_plain(other))}: only equal shapes are supported")
        return (self * other).sum()

    def __repr__(self) -> str:
        return f"<traced value {self._data!r}>"


def _vdot(a: Any, b: Any) -> Any:
    return a.dot(b) if isinstance(a, Value) else b.dot(a)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: lambda a, axis=None, keepdims=False: a.sum(axis, keepdims),
    np.mean: lambda a, axis=None, keepdims=False: a.mean(axis, keepdims),
    np.vdot: _vdot,
    np.dot: _vdot,
    np.ravel: lambda a: a.ravel(),
    np.reshape: lambda a, shape: a.reshape(shape),
    np.transpose: lambda a, axes=None: a.transpose(axes),
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a: a.size,
}


def backward(node: Node, seed: Any) -> dict[int, Any]:
    """Cotangents of all leaves that ``node`` depends on, by ``id`` of the leaf's node."""
    bars: dict[int, Any] = {id(node): seed}
    found: dict[int, Any] = {}
    for n in sorted(_ancestors(node), key=lambda n: -n.order):
        bar = bars.pop(id(n), None)
        if bar is None:
            continue
        if not n.parents:
            found[id(n)] = bar
            continue
        for parent, share in zip(n.parents, n.pull(bar), strict=True):
            if share is not None:
                known = bars.get(id(parent))
                bars[id(parent)] = share if known is None else parent.combine(known, share)
    return found


def forward(node: Node, dots: dict[int, Any]) -> Any:
    """The tangent of ``node`` from those of leaves (by ``id`` of the node); None is zero."""
    known = dict(dots)
    for n in sorted(_ancestors(node), key=lambda n: n.order):
        if id(n) not in known:
            known[id(n)] = n.push([known.get(id(p)) for p in n.parents]) if n.parents else None
    return known[id(node)]


def _ancestors(node: Node) -> list[Node]:
    seen, stack, out = {id(node)}, [node], [node]
    while stack:
        for parent in stack.pop().parents:
            if id(parent) not in seen:
                seen.add(id(parent))
                stack.append(parent)
                out.append(parent)
    return out


def _plain(value: Any) -> Any:
    return value.primal if isinstance(value, Value) else value


def _unbroadcast(bar: Any, shape: tuple[int, ...]) -> Any:
    bar = np.asarray(bar)
    if bar.ndim < len(shape) or bar.shape == shape:
        return np.broadcast_to(bar, shape)
    bar = bar.sum(axis=tuple(range(bar.ndim - len(shape))))
    stretched = tuple(i for i, n in enumerate(shape) if n == 1 and bar.shape[i] != 1)
    return bar.sum(axis=stretched, keepdims=True) if stretched else np.broadcast_to(bar, shape)


def _refuse(reason: str) -> NoReturn:
    raise NotDifferentiableError(
        reason,
        loc=user_line(),
        remedy="use irad.sum, + - * / **, indexing and NumPy's elementwise functions; .primal reads the numbers where "
        "no derivative is meant",
    )
