"""Derivatives of Python functions that solve differential equations: gradient, value_and_grad, jvp; and ``irad.sum``.

The arguments to differentiate by are replaced by traced values (``tape/values.py``); what the function does with them
is remembered and then walked backward (or forward). A function that returns something irad did not compute from its
arguments raises ``NotDifferentiableError``: a gradient is never silently zero.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from irad.errors import IradError, NotDifferentiableError, ShadowError
from irad.kernel import Kernel
from irad.pullback import jvp_of_kernel
from irad.tape.tree import flatten, is_float, is_float_array
from irad.tape.values import Value, backward, forward, leaf

Array = npt.NDArray[Any]


def sum(x: Any) -> Any:
    """The sum of all entries, in double precision: of an array, or of a traced value inside a loss function.

    >>> import numpy as np
    >>> sum(np.ones((2, 3), np.float32))
    6.0
    """
    if isinstance(x, Value):
        return x.sum()
    if isinstance(x, (list, tuple)):
        total: Any = 0.0
        for item in x:
            total = total + sum(item)
        return total
    return float(np.sum(x, dtype=np.float64))


def value_and_grad(f: Callable[..., Any], wrt: Any = None) -> Callable[..., tuple[float, Any]]:
    """A function that returns ``f``'s value, a number, and its gradient.

    Parameters
    ----------
    f : callable
        Returns one real number computed by irad from its arguments: sums and NumPy's elementwise functions of states of
        solutions of ``prob.remake(p=..., u0=...)``, and of the arguments themselves.
    wrt : int, str, or a sequence of these, optional
        Positions or names of the arguments to differentiate by; the first one by default. A sequence gives a tuple of
        gradients. An argument is a floating-point array, a float, or tuples, lists and dicts of these; its gradient has
        the same structure.

    Raises
    ------
    NotDifferentiableError
        If the result does not come from irad, or does not depend on an argument.

    Examples
    --------
    >>> import numpy as np
    >>> value, grad = value_and_grad(lambda x: sum(x**2) / 2)(np.array([1.0, 2.0]))
    >>> float(value), grad
    (2.5, array([1., 2.]))
    """
    _no_kernel(f)

    def differentiated(*args: Any, **options: Any) -> tuple[float, Any]:
        call = _Call(f, args, options, wrt)
        result = call.run()
        if not isinstance(result, Value):
            raise NotDifferentiableError(
                f"the function returned {_describe(result)}, which irad did not compute from its arguments, so that "
                "its gradient is unknown",
                remedy="return irad.sum(...) of states of a solve whose u0 or p is an argument (prob.remake(p=p))",
            )
        if result.size != 1:
            raise NotDifferentiableError(
                f"the function returned an array of shape {result.shape}: a gradient needs one number",
                remedy="return irad.sum(...) of it",
            )
        bars = backward(result.node, np.ones(result.shape))
        return float(result.primal.reshape(())), call.gradient(bars)

    return differentiated


def gradient(f: Callable[..., Any], wrt: Any = None) -> Callable[..., Any]:
    """As :func:`value_and_grad`, returning the gradient alone.

    >>> import numpy as np
    >>> gradient(lambda x: sum(np.sin(x)))(np.array([0.0]))
    array([1.])
    """
    both = value_and_grad(f, wrt)
    return lambda *args, **options: both(*args, **options)[1]


def jvp(f: Any, primals: Any = None, tangents: Any = None) -> Any:
    """The derivative along a direction, by forward mode.

    ``jvp(f, (x, ...), (dx, ...))`` returns ``f(x, ...)`` and its derivative along ``(dx, ...)``, both in the structure
    of what ``f`` returns. A solve inside ``f`` contributes the exact derivative of the steps it took; give it a
    ``grid`` to differentiate steps chosen before.

    ``jvp(sol, tangents={"u0": ..., "p": ..., "Ci": ...})`` returns the derivatives of the saved states of a solution
    along tangents of u0, of p (in its structure) and of captured arrays by name.

    ``jvp(kernel, (dT, T, ...), tangents)`` returns the new values and the tangents of the arrays that a kernel writes,
    each as a named tuple, and changes no argument; ``tangents``: one for each argument (None: zero), or by name.

    >>> import numpy as np
    >>> jvp(lambda x: x**2, (np.array([3.0]),), (np.array([1.0]),))
    (array([9.]), array([6.]))
    """
    from irad.ode.solution import Solution

    if isinstance(f, Solution):
        if primals is not None or not isinstance(tangents, Mapping):
            raise IradError("the derivative of a solution is jvp(sol, tangents={'p': dp, ...})")
        from irad.ode.directional import solution_tangents

        return solution_tangents(f, tangents)
    if isinstance(f, Kernel):
        return jvp_of_kernel(f, primals, tangents)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise IradError("jvp takes the arguments and their tangents as two tuples: jvp(f, (x,), (dx,))")
    if len(primals) != len(tangents):
        raise IradError(f"{len(primals)} arguments but {len(tangents)} tangents were given")
    call = _Call(f, tuple(primals), {}, tuple(range(len(primals))))
    dots = call.tangents(tangents)
    leaves, _, rebuild = flatten(call.run())
    values, derivatives = [], []
    for item in leaves:
        if not isinstance(item, Value):
            raise NotDifferentiableError(
                f"the function returned {_describe(item)}, which irad did not compute from its arguments",
                remedy="return states of a solve whose u0 or p is an argument, and what is computed from them",
            )
        dot = forward(item.node, dots)
        zero = np.zeros(item.shape, item.dtype)
        derivatives.append(zero if dot is None else np.asarray(dot) + zero)
        values.append(item.primal)
    return rebuild(values), rebuild(derivatives)


class _Call:
    """One call of a function with traced arguments."""

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], wrt: Any) -> None:
        self._f, self._args, self._options = f, list(args), dict(options)
        self._single = wrt is None or isinstance(wrt, (int, str))
        wanted: Sequence[Any] = (0 if wrt is None else wrt,) if self._single else tuple(wrt)
        self._traced: list[tuple[Any, list[Any], list[Value | None], Callable[[Sequence[Any]], Any]]] = []
        for key in wanted:
            place = self._place(key)
            holder: Any = self._args if isinstance(place, int) else self._options
            leaves, paths, rebuild = flatten(holder[place])
            values = [_trace(leaf, key, path) for leaf, path in zip(leaves, paths, strict=True)]
            if all(v is None for v in values):
                raise NotDifferentiableError(
                    f"the argument {key!r} of {_name(f)} holds no floating-point number or array",
                    remedy="integers carry no derivative: convert with float(x) or A.astype(float)",
                )
            self._traced.append((key, leaves, values, rebuild))
            holder[place] = rebuild([x if v is None else v for x, v in zip(leaves, values, strict=True)])

    def _place(self, key: Any) -> int | str:
        """Where an argument stands in this call: a position or a keyword."""
        if isinstance(key, int):
            if not -len(self._args) <= key < len(self._args):
                raise IradError(f"wrt={key}: {_name(self._f)} was called with {len(self._args)} positional arguments")
            return key
        if key in self._options:
            return str(key)
        try:
            names = list(inspect.signature(self._f).parameters)
        except (TypeError, ValueError):
            names = []
        if key in names and names.index(key) < len(self._args):
            return names.index(key)
        raise IradError(f"wrt={key!r}: {_name(self._f)} was called without an argument of that name")

    def run(self) -> Any:
        return self._f(*self._args, **self._options)

    def gradient(self, bars: dict[int, Any]) -> Any:
        out = []
        for key, leaves, values, rebuild in self._traced:
            parts: list[Any] = []
            if not any(v is not None and id(v.node) in bars for v in values):
                raise NotDifferentiableError(
                    f"the result does not depend on the argument {key!r} of {_name(self._f)}",
                    remedy="use the argument in the function (prob.remake(p=p)), or leave it out of wrt",
                )
            for x, v in zip(leaves, values, strict=True):
                bar = None if v is None else bars.get(id(v.node))
                if v is None:
                    parts.append(None)
                elif isinstance(x, np.ndarray):
                    parts.append(np.zeros_like(x) if bar is None else np.array(bar, x.dtype).reshape(x.shape))
                else:
                    parts.append(0.0 if bar is None else float(bar))
            out.append(rebuild(parts))
        return out[0] if self._single else tuple(out)

    def tangents(self, given: Sequence[Any]) -> dict[int, Any]:
        dots: dict[int, Any] = {}
        for (key, leaves, values, _), dot in zip(self._traced, given, strict=True):
            parts = flatten(dot)[0]
            if len(parts) != len(leaves):
                raise ShadowError(f"the tangent of argument {key!r} has another structure than the argument")
            for x, v, d in zip(leaves, values, parts, strict=True):
                if v is None or d is None:
                    continue
                if np.shape(d) != np.shape(x):
                    raise ShadowError(f"a tangent of shape {np.shape(d)} was given for an array of shape {np.shape(x)}")
                dots[id(v.node)] = np.asarray(d, v.dtype)
        return dots


def _trace(x: Any, key: Any, path: Any) -> Value | None:
    if isinstance(x, Value):
        raise NotDifferentiableError("derivatives of derivatives are not supported here")
    return Value(np.array(x), leaf()) if is_float_array(x) or is_float(x) else None


def _no_kernel(f: Any) -> None:
    if hasattr(f, "bind_vjp"):
        raise IradError(
            f"{_name(f)} is a kernel",
            remedy="use irad.autodiff, irad.pullback or irad.pushforward, or a function that solves with it",
        )


def _name(f: Any) -> str:
    return getattr(f, "__name__", type(f).__name__)


def _describe(x: Any) -> str:
    return "nothing" if x is None else f"a {type(x).__name__}"
