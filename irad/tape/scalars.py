"""Scalars of a right-hand side while it is recorded: ``t``, ``p[0]``, and what is computed from them.

A :class:`TracedScalar` is a node of an expression over *leaves* (``t`` or one entry of a parameter array). Kernels
accept it as an argument; a :class:`ScalarPlan` later evaluates many of them at other values of the leaves, pulls
cotangents back to the leaves and pushes tangents forward. All arithmetic is double precision.

A comparison gives a :class:`TracedBool`. Its truth value is asked of the running recorder, which notes the answer, so
that a branch of the recorded function is taken again only while the answers stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from irad.errors import NotDifferentiableError
from irad.recording import active
from irad.tape.elementwise import COMPARISONS, RULES, Operators, Rule, scale
from irad.tape.where import user_line

Leaf = tuple[
    str, int, int
]  # ("t", 0, 0) or ("p", number of the parameter array, element in memory order of its region)
TIME: Leaf = ("t", 0, 0)


class TracedScalar(Operators):
    """One node: a leaf, or a function of other nodes and Python floats. Hash and identity are the object's own."""

    __slots__ = ("args", "leaf", "rule", "text", "varies")
    __array_priority__ = 1000.0

    def __init__(self, rule: Rule | None, args: tuple[TracedScalar | float, ...], leaf: Leaf | None, text: str) -> None:
        self.rule, self.args, self.leaf, self.text = rule, args, leaf, text
        self.varies: bool = leaf == TIME or any(isinstance(a, TracedScalar) and a.varies for a in args)

    @staticmethod
    def of_leaf(leaf: Leaf, text: str) -> TracedScalar:
        return TracedScalar(None, (), leaf, text)

    def _apply(self, function: Any, *arguments: Any) -> Any:
        operands = tuple(o for o in map(_operand, arguments) if o is not None)
        if len(operands) < len(arguments):
            return NotImplemented
        if function in COMPARISONS:
            return TracedBool(COMPARISONS[function], operands[0], operands[1])
        rule = RULES.get(function)
        if rule is None:
            _refuse(f"the function {function.__name__} of a traced scalar has no derivative rule")
        return TracedScalar(rule, operands, None, _text(rule.name, operands))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            _refuse(f"numpy.{ufunc.__name__} is used on a traced scalar with method {method!r} or options")
        result = self._apply(ufunc, *inputs)
        if result is NotImplemented:
            _refuse(f"numpy.{ufunc.__name__} mixes the traced scalar {self.text} with an array")
        return result

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> NoReturn:
        _refuse(f"numpy.{function.__name__} is called with the traced scalar {self.text}")

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        _refuse(f"the traced scalar {self.text} is put into an array")

    def __float__(self) -> NoReturn:
        _refuse(
            f"the traced scalar {self.text} is turned into a number (float() or a function of the module math)",
            "use it as it is, and numpy.sin, numpy.exp, ... for functions of it",
        )

    __int__ = __index__ = __complex__ = __float__  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(self._apply(np.not_equal, self, 0.0))

    def __repr__(self) -> str:
        return f"<traced scalar {self.text}>"


class TracedBool:
    """``left < right`` and the like; ``bool()`` asks the running recorder."""

    __slots__ = ("compare", "left", "right")

    def __init__(self, compare: Callable[[Any, Any], Any], left: TracedScalar | float, right: TracedScalar | float):
        self.compare, self.left, self.right = compare, left, right

    def __bool__(self) -> bool:
        recorder = active()
        decide = getattr(recorder, "decide", None)
        if decide is None:
            _refuse("a comparison of traced scalars is used outside the function that was recorded")
        return bool(decide(self))

    def __invert__(self) -> bool:
        return not self

    def same(self, other: TracedBool, memo: dict[tuple[int, int], bool]) -> bool:
        return (
            self.compare is other.compare
            and same_value(self.left, other.left, memo)
            and same_value(self.right, other.right, memo)
        )


def same_value(a: Any, b: Any, memo: dict[tuple[int, int], bool]) -> bool:
    """Whether two scalars of two recordings are the same expression."""
    if not (isinstance(a, TracedScalar) and isinstance(b, TracedScalar)):
        return type(a) is type(b) and (a == b or (a != a and b != b))
    key = (id(a), id(b))
    if key not in memo:
        memo[key] = (
            a.rule is b.rule
            and a.leaf == b.leaf
            and len(a.args) == len(b.args)
            and all(same_value(x, y, memo) for x, y in zip(a.args, b.args, strict=True))
        )
    return memo[key]


class ScalarPlan:
    """A list of expressions in an order of evaluation. ``at(p, t)`` must come before ``pull`` and ``push``.

    ``p`` is a sequence of flat parameter arrays. Values that do not depend on ``t`` are computed once for each ``p``.
    """

    def __init__(self, outputs: Sequence[TracedScalar]) -> None:
        self._nodes: list[TracedScalar] = []
        place: dict[int, int] = {}
        for output in outputs:
            self._visit(output, place)
        self.outputs = [place[id(o)] for o in outputs]
        self._args = [
            tuple(place[id(a)] if isinstance(a, TracedScalar) else -1 for a in node.args) for node in self._nodes
        ]
        self.varying = [k for k, node in enumerate(self._nodes) if node.varies]
        self.values: list[float] = [0.0] * len(self._nodes)
        self._p: Sequence[Any] | None = None

    def _visit(self, node: TracedScalar, place: dict[int, int]) -> None:
        stack = [node]
        while stack:
            top = stack[-1]
            waiting = [a for a in top.args if isinstance(a, TracedScalar) and id(a) not in place]
            if id(top) not in place and not waiting:
                place[id(top)] = len(self._nodes)
                self._nodes.append(top)
            if waiting:
                stack.extend(waiting)
            else:
                stack.pop()

    def _inputs(self, k: int) -> list[float]:
        node = self._nodes[k]
        return [
            self.values[i] if isinstance(a, TracedScalar) else a for i, a in zip(self._args[k], node.args, strict=True)
        ]

    def at(self, p: Sequence[Any], t: float) -> list[float]:
        """Values of the outputs; the list is the caller's."""
        every = self._p is not p
        self._p = p
        with np.errstate(all="ignore"):
            for k in range(len(self._nodes)) if every else self.varying:
                node = self._nodes[k]
                if node.leaf is not None:
                    self.values[k] = t if node.leaf == TIME else float(p[node.leaf[1]][node.leaf[2]])
                elif node.rule is not None:
                    self.values[k] = float(node.rule.compute(*self._inputs(k)))
        return [self.values[i] for i in self.outputs]

    def pull(self, cotangents: Sequence[float], add: Callable[[Leaf, float], None]) -> None:
        """Reverse mode from cotangents of the outputs; ``add`` is told of each leaf's share."""
        bars = [0.0] * len(self._nodes)
        for i, c in zip(self.outputs, cotangents, strict=True):
            bars[i] += c
        with np.errstate(all="ignore"):
            for k in range(len(self._nodes) - 1, -1, -1):
                bar, node = bars[k], self._nodes[k]
                if bar == 0.0:
                    continue
                if node.leaf is not None:
                    add(node.leaf, bar)
                elif node.rule is not None and node.rule.partials:
                    inputs = [np.float64(x) for x in (*self._inputs(k), self.values[k])]
                    for i, partial in zip(self._args[k], node.rule.partials, strict=True):
                        if i >= 0:
                            bars[i] += float(scale(node.rule, bar, partial(*inputs)))

    def push(self, tangent: Callable[[Leaf], float]) -> list[float]:
        """Forward mode: tangents of the outputs from those of the leaves."""
        dots = [0.0] * len(self._nodes)
        with np.errstate(all="ignore"):
            for k, node in enumerate(self._nodes):
                if node.leaf is not None:
                    dots[k] = tangent(node.leaf)
                elif node.rule is not None and node.rule.partials:
                    inputs = [np.float64(x) for x in (*self._inputs(k), self.values[k])]
                    for i, partial in zip(self._args[k], node.rule.partials, strict=True):
                        if i >= 0 and dots[i] != 0.0:
                            dots[k] += float(scale(node.rule, dots[i], partial(*inputs)))
        return [dots[i] for i in self.outputs]


def depends_on(node: Any, leaves: Callable[[Leaf], bool]) -> bool:
    """Whether a scalar argument depends on a leaf for which ``leaves`` is true."""
    if not isinstance(node, TracedScalar):
        return False
    seen: set[int] = set()
    stack = [node]
    while stack:
        top = stack.pop()
        if id(top) in seen:
            continue
        seen.add(id(top))
        if top.leaf is not None and leaves(top.leaf):
            return True
        stack.extend(a for a in top.args if isinstance(a, TracedScalar))
    return False


def compare(question: TracedBool, p: Sequence[Any], t: float) -> bool:
    """The answer to a comparison at these values."""
    sides = [s for s in (question.left, question.right) if isinstance(s, TracedScalar)]
    values = iter(ScalarPlan(sides).at(p, t))
    left = next(values) if isinstance(question.left, TracedScalar) else question.left
    right = next(values) if isinstance(question.right, TracedScalar) else question.right
    return bool(question.compare(left, right))


def _operand(value: Any) -> TracedScalar | float | None:
    if isinstance(value, TracedScalar):
        return value
    if isinstance(value, (int, float, np.integer, np.floating)):
        return float(value)
    return None


_INFIX = {"+": 1, "-": 1, "*": 2, "/": 2, "**": 3}


def _text(name: str, operands: Sequence[TracedScalar | float]) -> str:
    parts = [o.text if isinstance(o, TracedScalar) else repr(o) for o in operands]
    parts = [p if len(p) < 40 else "..." for p in parts]
    return f"({parts[0]} {name} {parts[1]})" if name in _INFIX else f"{name}({', '.join(parts)})"


def _refuse(reason: str, remedy: str = "") -> NoReturn:
    raise NotDifferentiableError(
        reason,
        loc=user_line(),
        remedy=remedy
        or "use + - * / ** and the functions of NumPy on single traced scalars, or compute it in a kernel",
    )
