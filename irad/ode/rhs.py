"""The right-hand side as the integrators see it: rates, tangents and reverse products on flat vectors, counted.

``f(du, u, p, t)`` is recorded where that is possible (``irad.tape``). Where it is not (plain NumPy code on ``u``), it
is called as it is; such a problem can be solved but not differentiated, and the reason is kept for whoever asks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from irad.errors import IradError, NotDifferentiableError
from irad.ode import vectors as vec
from irad.ode.rock2 import Stages
from irad.ode.vectors import Vector
from irad.tape.captures import names_of
from irad.tape.function import Gradients, RecordedFunction, Tangents
from irad.tape.memory import vector
from irad.tape.staged import Pull, Stage
from irad.tape.tree import Parameters, packed

Array = npt.NDArray[Any]


@dataclass
class Counts:
    """Evaluations of f, of Jacobian-vector products and of vector-Jacobian products."""

    f: int = 0
    jvp: int = 0
    vjp: int = 0


class RightHandSide(Stages):
    """``f`` for states like ``u0`` (kept as a packed private copy) and one ``p``.

    Vectors are flat, in the memory order of the packed state: C order, or Fortran order where ``u0`` has that only.
    """

    def __init__(self, f: Callable[..., Any], u0: Array, p: Any, t: float, copy: bool = True) -> None:
        self.f = f
        self.u0 = packed(u0)
        self.order: Literal["C", "F"] = "C" if self.u0.flags.c_contiguous else "F"
        self.shape, self.dtype, self.size = self.u0.shape, self.u0.dtype, self.u0.size
        self.parameters = Parameters(p)
        self.p = self.parameters.restore()
        self.counts = Counts()
        self.recorded: RecordedFunction | None = None
        self.reason: Exception | None = None
        try:
            self.recorded = RecordedFunction(f, self.u0, self.parameters, t, copy)
        except NotDifferentiableError as error:
            self.reason = error
        except IradError:
            raise
        except Exception as error:  # whatever code makes of a handle that it does not know
            self.reason = error
        self._watched = [] if self.recorded else [(a, _digest(a)) for a in names_of(f).all()]
        self._junk: Vector | None = None
        self._still = Tangents()

    @property
    def differentiable(self) -> bool:
        return self.recorded is not None

    @property
    def autonomous(self) -> bool:
        """Whether f surely does not depend on t."""
        return self.recorded is not None and self.recorded.autonomous

    def vector(self) -> Vector:
        """A new state vector of zeros."""
        return vector(self.size, self.dtype)

    def state(self, u: Vector) -> Array:
        """The vector in the state's shape (a view, read-only)."""
        view = self.shaped(u)
        view.flags.writeable = False
        return view

    def shaped(self, u: Vector) -> Array:
        """The vector in the state's shape (a view)."""
        return u.reshape(self.shape, order=self.order)

    def flat(self, array: npt.ArrayLike) -> Vector:
        """A state-shaped array as a new vector."""
        out = self.vector()
        self.shaped(out)[...] = array
        return out

    def start(self) -> Vector:
        """u0 as a new vector."""
        return self.flat(self.u0)

    def rate(self, u: Vector, du: Vector, t: float) -> None:
        """``du = f(u, p, t)``.

        Entries that f never writes are only known to be zero because ``du`` held zeros when it was first used here: use
        it for rates and sums of rates, never for states.
        """
        self.counts.f += 1
        if self.recorded is not None:
            try:
                self.recorded.rate(u, du, t)
                return
            except NotDifferentiableError as error:  # a branch that comes up at this t cannot be recorded
                self.recorded, self.reason = None, error
        vec.fill(du, 0.0)
        result = self.f(self.shaped(du), self.state(u), self.p, t)
        if result is not None:
            raise IradError(
                "the right-hand side f(du, u, p, t) returns a value, which would be lost",
                remedy="write the rate of change into du (du[...] = ...) and return nothing",
            )

    def _stage(self, epilogue: str, g: Vector, t: float, **arrays: Vector) -> Stage | None:
        """f with an epilogue in one launch, if there is one."""
        if self.recorded is None:
            return None
        try:
            found = self.recorded.stage(epilogue, g, {f".{n}": v for n, v in arrays.items()}, t)
        except NotDifferentiableError:  # a branch that comes up at this t: rate() finds the same, and goes on
            return None
        self.counts.f += found is not None
        return found

    def recur(self, out: Vector, g: Vector, older: Vector, kappa: float, c: float, k: Vector, t: float) -> None:
        if out is older:
            stage = self._stage("recur in place", g, t, out=out)
        else:
            stage = self._stage("recur", g, t, older=older, out=out)
        if stage is None:
            super().recur(out, g, older, kappa, c, k, t)
            return
        stage.set(".kappa", kappa)
        stage.set(".c", c)
        stage(t)

    def advance(self, out: Vector, g: Vector, c: float, k: Vector, t: float) -> None:
        stage = self._stage("add scaled", g, t, out=out)
        if stage is None:
            super().advance(out, g, c, k, t)
            return
        stage.set(".c", c)
        stage(t)

    def advance_and_keep(self, out: Vector, g: Vector, c: float, k: Vector, t: float) -> None:
        stage = self._stage("add and keep", g, t, out=out, rate=k)
        if stage is None:
            super().advance_and_keep(out, g, c, k, t)
            return
        stage.set(".c", c)
        stage(t)

    def pull(self, u: Vector, seed: Vector, u_bar: Vector, t: float, gradients: Gradients) -> Pull | None:
        """``u_bar = b u_bar + a seed + c J^T seed`` in one launch, if there is one: set a, b, c, and call it with t."""
        return self.recording().pull(u, seed, u_bar, t, gradients)

    def tangent(self, u: Vector, v: Vector, out: Vector, t: float) -> None:
        """``out = J v`` with J the Jacobian with respect to u."""
        if self._junk is None:
            self._junk = self.vector()
        self.counts.jvp += 1
        self.recording().tangent(u, self._junk, v, out, t, self._still)

    def recording(self) -> RecordedFunction:
        """The recorded function; raises the reason where there is none."""
        if self.recorded is None:
            raise NotDifferentiableError(
                f"the right-hand side cannot be differentiated: {self.reason}",
                remedy="let f launch kernels on u, du and captured arrays, and compute nothing else with its arguments",
            ) from self.reason
        return self.recorded

    def reverse(self, u: Vector, seed: Vector, u_bar: Vector | None, t: float, gradients: Gradients) -> None:
        """``u_bar = J^T seed``; adds to ``gradients``; ``seed`` may be lost."""
        self.counts.vjp += 1
        self.recording().reverse(u, seed, u_bar, t, gradients)

    def check(self) -> None:
        """Raise ``IradError`` where captured arrays that are used in place have changed since the solve."""
        if self.recorded is not None:
            self.recorded.environment.check()
            return
        if any(_digest(array) != digest for array, digest in self._watched):
            raise IradError(
                "an array that the right-hand side captures has changed since the solve, so that its steps cannot "
                "be run again",
                remedy="solve again, or ask for the values at the time of the solve (saveat=, dense=True)",
            )

    def seal(self) -> None:
        """The solve is over: from now on watch the captured arrays that it left alone (the others are scratch)."""
        self._watched = [(a, d) for a, d in self._watched if _digest(a) == d]

    def release(self) -> None:
        """Let go of work buffers."""
        self._junk = None
        if self.recorded is not None:
            self.recorded.release()


def _digest(array: Array) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).digest()
