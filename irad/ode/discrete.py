"""The exact derivative of the steps taken: reverse over the steps, reverse over the stages of each.

The state at the start of each step is kept, or comes from checkpoints; the stages are run again from it (unless the
adjoint does not read the state at all), then one VJP of f a stage gives the cotangents of state, parameters and
captured arrays together. Step sizes, stage counts and spectral radii are constants.
"""

from __future__ import annotations

from collections.abc import Sequence

from irad.ode import vectors as vec
from irad.ode.checkpoint import ADVANCE, REVERSE, schedule
from irad.ode.grid import Grid
from irad.ode.rhs import RightHandSide
from irad.ode.rock2 import Pulls, reverse, stages, step
from irad.ode.rock2_table import coefficients
from irad.ode.vectors import Vector
from irad.tape.function import Gradients

SMALL = 1 << 19
"""Bytes of a state up to which it is copied to where launches are bound to, rather than bound to for each stage."""

Cotangent = tuple[int, float, Vector]
"""Step, position in it, and the cotangent of the state there."""


def discrete(
    rhs: RightHandSide, grid: Grid, states: Sequence[Vector] | None, cotangents: Sequence[Cotangent],
    gradients: Gradients, checkpoints: int | None,
) -> Vector:  # fmt: skip
    """dL/du0; parameters' and captured arrays' cotangents are added to ``gradients``.

    ``states``: at the start of every step and at the end, if kept; otherwise the steps are run again with at most
    ``checkpoints`` states in memory (None: with all of them).
    """
    sweep = _Sweep(rhs, grid, cotangents, gradients)
    count = len(grid)
    if states is not None and len(states) > count:
        for n in range(count - 1, -1, -1):
            sweep.step(n, states[n], states[n + 1])
        return sweep.finish()
    slots = count if checkpoints is None else min(checkpoints, max(count, 1))
    _checkpointed(rhs, grid, sweep, slots)
    return sweep.finish()


class _Sweep(Pulls):
    """The reverse pass: ``step(n, ...)`` for n = N-1 .. 0."""

    def __init__(self, rhs: RightHandSide, grid: Grid, cotangents: Sequence[Cotangent], gradients: Gradients) -> None:
        self._rhs, self._grid, self._gradients = rhs, grid, gradients
        self._by_step: dict[int, list[tuple[float, Vector]]] = {}
        for n, theta, w in cotangents:
            self._by_step.setdefault(n, []).append((theta, w))
        self._lam, self._b, self._w, self._one, self._two = (rhs.vector() for _ in range(5))
        self._points: Sequence[Vector] = ()
        self._extra, self._slope = rhs.vector(), rhs.vector()
        self._k = rhs.vector()
        self._stages: list[Vector] = []
        self._small = self._lam.nbytes <= SMALL
        self._here = tuple(rhs.vector() for _ in range(3)) if self._small else ()
        self._seed = rhs.vector()
        self._reads: bool | None = None

    def _pull(self, u: Vector, seed: Vector, u_bar: Vector, t: float) -> None:
        if self._small and self._reads is not False:
            vec.copy(self._here[0], u)
            u = self._here[0]
        self._rhs.reverse(u, seed, u_bar, t, self._gradients)

    def step(self, n: int, u: Vector, u_new: Vector | None) -> None:
        """Through step n, which starts at ``u``; ``u_new`` is its end (needed where ``end_matters(n)``)."""
        grid = self._grid
        t, h, co = float(grid.t[n]), float(grid.h[n]), coefficients(int(grid.stages[n]))
        first = grid.first_time(n)
        inside = self._by_step.get(n, ())
        before = self._by_step.get(n - 1, ()) if n and not grid.jumps[n - 1] else ()
        end_slope = [(vec.hermite_weights(th, h)[3], w) for th, w in inside if 0.0 < th < 1.0]
        if end_slope and self.end_matters(n):
            assert u_new is not None
            vec.fill(self._seed, 0.0)
            for weight, w in end_slope:
                vec.accumulate(self._seed, weight, w)
            self._pull(u_new, self._seed, self._w, grid.last_time(n))
            vec.add(self._lam, self._w)
        slope_used = False
        if inside or before:
            vec.fill(self._extra, 0.0)
            vec.fill(self._slope, 0.0)
        for th, w in inside:
            if th == 0.0:
                vec.add(self._extra, w)
            elif th == 1.0:
                vec.add(self._lam, w)
            else:
                a, b, c, _ = vec.hermite_weights(th, h)
                vec.accumulate(self._extra, a, w)
                vec.accumulate(self._slope, b, w)
                vec.accumulate(self._lam, c, w)
                slope_used = True
        for th, w in before:
            if 0.0 < th < 1.0:
                weight = vec.hermite_weights(th, float(grid.h[n - 1]))[3]
                vec.accumulate(self._slope, weight, w)
                slope_used = True
        self._points = self._run(u, t, h, co.degree, first)
        result = reverse(
            self, t, h, co, self._lam, (self._one, self._two), (self._b, self._w), first,
            self._slope if slope_used else None,
        )  # fmt: skip
        if inside:
            vec.add(result, self._extra)
        vec.copy(self._lam, result)  # launches are bound to few pairs of vectors that way
        self._gradients.settle()

    def reverse(self, j: int, b: Vector, w: Vector, t: float) -> None:
        self._pull(self._points[j], b, w, t)

    def blend(
        self, j: int, out: Vector, seed: Vector, b: float, a: float, c: float, work: tuple[Vector, Vector], t: float,
        extra: Vector | None = None,
    ) -> None:  # fmt: skip
        u = self._points[j]
        if self._reads is False:
            u = self._k  # any vector
        elif self._small:
            vec.copy(self._here[0], u)
            u = self._here[0]
        found = self._rhs.pull(u, seed, out, t, self._gradients) if extra is None else None
        if found is None:
            super().blend(j, out, seed, b, a, c, work, t, extra)
            return
        self._rhs.counts.vjp += 1
        found.set(".a", a)
        found.set(".b", b)
        found.set(".c", c)
        found(t)

    def end_matters(self, n: int) -> bool:
        """Whether the rate at the end of step n is not the first stage of step n + 1 but is used by a cotangent."""
        last = n == len(self._grid) - 1 or bool(self._grid.jumps[n])
        return last and any(0.0 < th < 1.0 for th, _ in self._by_step.get(n, ()))

    def _run(self, u: Vector, t: float, h: float, m: int, first: float) -> Sequence[Vector]:
        """The stages g_0 .. g_{m+1} of a step, run again if the adjoint reads them."""
        if self._reads is None:
            at = self._here[0] if self._small else u
            self._reads = self._rhs.recording().reverse_reads_state(at, self._b, self._w, first, self._gradients)
        if not self._reads:
            return [u] * (m + 2)
        while len(self._stages) < m + 2:
            self._stages.append(self._rhs.vector())
        kept = self._stages
        vec.copy(kept[0], u)
        if self._small:
            work = [self._here[j % 3] for j in range(m + 2)]
            vec.copy(work[0], u)
            stages(self._rhs, t, h, coefficients(m + 2), work, self._k, first, lambda j, g: vec.copy(kept[j], g))
        else:
            stages(self._rhs, t, h, coefficients(m + 2), kept, self._k, first, lambda j, g: None)
        return kept

    def finish(self) -> Vector:
        """dL/du0."""
        if not len(self._grid):
            for _, w in self._by_step.get(0, ()):
                vec.add(self._lam, w)
        return self._lam


def _checkpointed(rhs: RightHandSide, grid: Grid, sweep: _Sweep, slots: int) -> None:
    """Run the steps again as a binomial schedule says, reversing each step as its start becomes known."""
    if not len(grid):
        return
    store: dict[int, Vector] = {0: rhs.start()}
    spares: list[Vector] = []
    f, a, b, k, last = (rhs.vector() for _ in range(5))

    def one(u: Vector, n: int, into: Vector) -> None:
        rhs.rate(u, f, grid.first_time(n))
        new, _ = step(rhs, float(grid.t[n]), float(grid.h[n]), coefficients(int(grid.stages[n])), u, f, a, b, k, last)
        vec.copy(into, new)

    current, end = rhs.vector(), rhs.vector()
    for action, n, target in schedule(len(grid), slots):
        if action == ADVANCE:  # from the checkpoint at n to a new checkpoint at target
            vec.copy(current, store[n])
            for i in range(n, target):
                one(current, i, current)
            store[target] = spares.pop() if spares else rhs.vector()
            vec.copy(store[target], current)
        elif action == REVERSE:  # step n, from a checkpoint or from steps after it
            vec.copy(current, store[target])
            for i in range(target, n):
                one(current, i, current)
            needs_end = sweep.end_matters(n)
            if needs_end:
                one(current, n, end)
            sweep.step(n, current, end if needs_end else None)
        else:
            spares.append(store.pop(n))
