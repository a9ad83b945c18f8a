"""The only place that looks at a kernel object: what the tape needs to know of one launch, and how it is bound.

A kernel has ``positional``, ``params``, ``adjoint_needs``, ``bind``, ``bind_vjp`` and ``bind_jvp``
(``irad/kernel.py``); any object with these methods can be recorded. Two things need a true
:class:`~irad.kernel.Kernel`: other memory in place of arrays that the kernel captures, and a run of some of its stages
only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from irad.errors import IradError

Array = npt.NDArray[Any]
Saves = tuple[tuple[int, str, str], ...]
"""(stage, array, alias): copies of arrays as they are before a stage."""


@dataclass(frozen=True)
class Described:
    """Parameter names in order of the arguments, arrays the kernel captures, and which parameters it writes, reads."""

    names: tuple[str, ...]
    hidden: Mapping[str, Array]
    written: frozenset[str]
    read: frozenset[str]


def describe(kernel: Any, samples: Sequence[Any]) -> Described:
    """Names, captured, written and read arrays of a launch with arguments of these types."""
    infos = kernel.params(tuple(samples))
    hidden = {}
    for info in infos:
        if info.capture is not None:
            value = info.capture.get()
            if isinstance(value, np.ndarray):
                hidden[info.name] = value
    return Described(
        tuple(info.name for info in infos if info.capture is None),
        hidden,
        frozenset(info.name for info in infos if info.written),
        frozenset(info.name for info in infos if info.read),
    )


def name_of(kernel: Any) -> str:
    return getattr(kernel, "__name__", None) or type(kernel).__name__


def overwrites(kernel: Any, args: Sequence[Any], name: str) -> bool:
    """Whether a launch writes the same entries of ``name`` whatever the values are, and reads none of them.

    Then what these entries held before does not matter, and all others stay as they are.
    """
    if not hasattr(kernel, "specialise"):
        return False
    stages = [stage.point for stage in kernel.specialise(args).stages]
    if not stages:  # a loop kernel: nothing is known of the order of its reads and writes
        return False
    if any(name in point.read for point in stages):
        return False
    for point in stages:
        for block in point.fn.blocks:
            if any(i.op == "astore" and i.array == name for i in block.instrs) and _avoidable(point.fn, block):
                return False
    return True


def _avoidable(fn: Any, block: Any) -> bool:
    """Whether some way through a function does not touch this block."""
    seen, stack = {id(block)}, [fn.blocks[0]]
    while stack:
        b = stack.pop()
        if id(b) not in seen:
            seen.add(id(b))
            if not b.successors:
                return True
            stack.extend(b.successors)
    return False


def bind(kernel: Any, args: Sequence[Any], hidden: Mapping[str, Array]) -> Any:
    """The launch itself; ``hidden`` replaces arrays that the kernel captures."""
    if not hidden:
        return kernel.bind(*args)
    return bind_stages(kernel, args, hidden, None)


def bind_stages(kernel: Any, args: Sequence[Any], hidden: Mapping[str, Array], stages: tuple[int, int] | None) -> Any:
    """A run of the stages from the first given up to the second (None: all of them)."""
    from irad.launching import Operands, prepare
    from irad.specialise import Request

    spec, values = _values(kernel, args, hidden)
    kernel.check(spec, values)
    return prepare(spec, Request(stages=stages), Operands(values)).bind()


def count_stages(kernel: Any, args: Sequence[Any]) -> int:
    return len(kernel.specialise(args).stages)


def bind_vjp(
    kernel: Any, args: Sequence[Any], hidden: Mapping[str, Array], shadows: Mapping[str, Array],
    cells: Mapping[str, Array], keep: Collection[str], assign: Collection[str], saved: Mapping[str, Array],
) -> Any:  # fmt: skip
    """The adjoint of a launch."""
    if not hidden:
        return kernel.bind_vjp(args, shadows, cells, keep_seed=keep, assign=assign, saved=saved)
    from irad.launching import Operands

    spec, values = _values(kernel, args, hidden)
    return kernel.prepare_vjp(spec, Operands(values, shadows, cells, saved=saved), keep, assign).bind()


def bind_jvp(
    kernel: Any, args: Sequence[Any], hidden: Mapping[str, Array], tangents: Mapping[str, Array],
    scalar_tangents: Mapping[str, float],
) -> Any:  # fmt: skip
    """A launch together with its tangent."""
    if not hidden:
        return kernel.bind_jvp(args, tangents, scalar_tangents)
    from irad.launching import Operands

    spec, values = _values(kernel, args, hidden)
    return kernel.prepare_jvp(spec, Operands(values, tangents, tangents=scalar_tangents)).bind()


def chained(launches: Sequence[Any]) -> list[Any]:
    """The same launches as one call, where they are compiled ones."""
    from irad.launch.bound import Bound, chain

    if len(launches) > 1 and all(isinstance(launch, Bound) for launch in launches):
        return [chain(launches)]
    return list(launches)


def _values(kernel: Any, args: Sequence[Any], hidden: Mapping[str, Array]) -> tuple[Any, dict[str, Any]]:
    spec = kernel.specialise(args)
    values = kernel.values(spec, args)
    unknown = [n for n in hidden if n not in values]
    if unknown:
        raise IradError(f"{name_of(kernel)} no longer captures {', '.join(unknown)}")
    return spec, {**values, **hidden}
