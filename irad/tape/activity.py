"""Which launches of a program carry derivatives from given sources to the rate, and through which arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from irad.tape.program import RATE, Launch, Program, Traced
from irad.tape.scalars import Leaf, depends_on


@dataclass(frozen=True)
class Active:
    """One launch with its active arrays and scalars, by parameter name."""

    index: int
    launch: Launch
    arrays: tuple[str, ...]
    scalars: tuple[str, ...]


def find(program: Program, regions: Collection[int], leaves: Callable[[Leaf], bool], backward: bool) -> list[Active]:
    """Launches in order. ``regions`` are the differentiated ones (u among them or not), ``leaves`` the scalars'.

    Forward: everything that depends on them. ``backward``: only what also influences the rate. A launch that overwrites
    part of an active array with constants is active too, since it ends the derivative of what was there; one that
    writes an array before anything depends on the sources is not.
    """
    count = len(program.launches)
    varied, scalars, depends = [set(regions)], [], []
    for launch in program.launches:
        mine = tuple(
            name
            for name, arg in zip(launch.names, launch.args, strict=True)
            if isinstance(arg, Traced) and depends_on(arg.node, leaves)
        )
        scalars.append(mine)
        now = set(varied[-1])
        depends.append(bool(mine) or any(v.region in now for _, v in launch.views() if is_float(v.dtype)))
        if depends[-1]:
            now.update(v.region for n, v in launch.views() if n in launch.written and is_float(v.dtype))
        varied.append(now)
    useful = [set(range(len(program.regions)))] * (count + 1)
    if backward:
        useful[count] = {RATE}
        for i in range(count - 1, -1, -1):
            views = list(program.launches[i].views())
            useful[i] = set(useful[i + 1])
            if any(v.region in useful[i + 1] for n, v in views if n in program.launches[i].written):
                useful[i].update(v.region for _, v in views)
    found = []
    for i, launch in enumerate(program.launches):
        arrays = tuple(
            n for n, v in launch.views() if is_float(v.dtype) and v.region in varied[i + 1] and v.region in useful[i]
        )
        if depends[i] and any(n in launch.written for n in arrays):
            found.append(Active(i, launch, arrays, scalars[i]))
    return found


def is_float(dtype: np.dtype[np.generic]) -> bool:
    return dtype.kind == "f"
