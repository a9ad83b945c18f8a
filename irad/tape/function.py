"""A right-hand side that was recorded: picks the program for the current ``t`` and keeps launches bound to buffers.

A function that asks for the truth of comparisons (``if t > 1:``) is several programs, one for each sequence of answers
that has come up; the comparisons are evaluated again at every call, and a new sequence is recorded when it appears.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy.typing as npt

from irad.errors import IradError
from irad.tape.captures import Names, names_of
from irad.tape.memory import Workspace
from irad.tape.program import Function, Program, build
from irad.tape.replay import Bound, Environment
from irad.tape.reverse import BoundReverse, Gradients
from irad.tape.scalars import TracedBool, compare
from irad.tape.scratch import examine
from irad.tape.staged import Pull, Stage, pull, stage
from irad.tape.tangent import BoundTangent, Tangents
from irad.tape.tree import Parameters

Array = npt.NDArray[Any]
_MANY = 4096  # bound launches kept; a solve needs some ten, an adjoint two a stage


class _Branch:
    """A node of the decision tree: a comparison, and what follows each answer."""

    __slots__ = ("answers", "question")

    def __init__(self, question: TracedBool) -> None:
        self.question = question
        self.answers: dict[bool, _Branch | Program] = {}


class RecordedFunction:
    """``f(du, u, p, t)`` for states of one layout and one ``p``. Raises ``NotDifferentiableError`` if it cannot record.

    ``u`` is a packed array of the state's layout, ``p`` the parameters; ``copy``: whether to keep private copies of the
    arrays that ``f`` captures. All vectors below are flat, in the memory order of ``u``.
    """

    def __init__(self, f: Callable[..., Any], u: Array, p: Parameters, t: float, copy: bool = True) -> None:
        self.names: Names = names_of(f)
        self._function = Function(f, u, p, self.names)
        self.environment = Environment(p, copy)
        self._root: _Branch | Program | None = None
        self._bound: dict[tuple[Any, ...], tuple[tuple[Any, ...], Any]] = {}
        self._rates: dict[tuple[int, int, int], Bound] = {}  # a Bound keeps what its key names
        self._stages: dict[tuple[Any, ...], tuple[tuple[Any, ...], Stage | None]] = {}
        self.programs: list[Program] = []
        self._workspace = Workspace()
        first = self.program(t)
        for number in range(len(first.regions)):  # take the copies now
            if first.regions[number].kind == "captured":
                self.environment.memory(first, number)

    @property
    def autonomous(self) -> bool:
        """Whether the function surely does not depend on ``t``."""
        return isinstance(self._root, Program) and not self._root.depends_on_time

    def program(self, t: float) -> Program:
        """The program that applies at ``t``."""
        p = self._function.p.flat
        node, parent, answer = self._root, None, False
        while isinstance(node, _Branch):
            parent, answer = node, compare(node.question, p, t)
            node = node.answers.get(answer)
        if node is None:
            node = self._record(t, parent, answer)
        return node

    def _record(self, t: float, parent: _Branch | None, answer: bool) -> Program:
        program = build(self._function, t)
        examine(program, self._function, t)
        self.programs.append(program)
        depth, above = 0, parent
        node: _Branch | Program | None = self._root
        while isinstance(node, _Branch) and above is not None:
            depth += 1
            if node is parent:
                break
            node = node.answers[program.decisions[depth - 1][1]]
        child: _Branch | Program = program
        for question, said in reversed(program.decisions[depth:]):
            branch = _Branch(question)
            branch.answers[said] = child
            child = branch
        if parent is None:
            self._root = child
        else:
            parent.answers[answer] = child
        return program

    def rate(self, u: Array, du: Array, t: float) -> None:
        """``du = f(u, p, t)``."""
        program = self._root if type(self._root) is Program else self.program(t)
        key = (id(program), id(u), id(du))
        bound = self._rates.get(key)
        if bound is None:
            self._make_room(self._rates)
            bound = self._rates[key] = Bound(program, self.environment, u, du)
        bound(t)

    def stage(self, epilogue: str, u: Array, arrays: Mapping[str, Array], t: float) -> Stage | None:
        """f on ``u`` with an epilogue of ``passes/fuse.py``, bound; None where it cannot be joined to f."""
        program = self._root if type(self._root) is Program else self.program(t)
        key = (id(program), epilogue, id(u), *map(id, arrays.values()))
        entry = self._stages.get(key)
        if entry is None:
            self._make_room(self._stages)
            made = stage(program, self.environment, epilogue, u, arrays)
            entry = self._stages[key] = ((program, u, *arrays.values()), made)
        return entry[1]

    def pull(self, u: Array, seed: Array, u_bar: Array, t: float, gradients: Gradients) -> Pull | None:
        """``u_bar = b u_bar + a seed + c J^T seed``, bound; None where that is not one launch."""
        program = self.program(t)
        found: Pull | None = self._get(
            ("pull", program, u, seed, u_bar, gradients),
            lambda: pull(program, self.environment, u, seed, u_bar, gradients),
        )
        return found

    def tangent(self, u: Array, du: Array, u_dot: Array, du_dot: Array, t: float, fixed: Tangents) -> None:
        """``du = f``, and ``du_dot`` its derivative along ``u_dot`` and the fixed tangents of p and captured arrays."""
        program = self.program(t)
        self._get(
            ("tangent", program, u, du, u_dot, du_dot, fixed),
            lambda: BoundTangent(program, self.environment, u, du, u_dot, du_dot, fixed, self._workspace),
        )(t)

    def reverse(self, u: Array, seed: Array, u_bar: Array | None, t: float, gradients: Gradients) -> None:
        """``u_bar = J^T seed``; cotangents of p and captured arrays go to ``gradients``. ``seed`` may be lost."""
        self._reverse(u, seed, u_bar, t, gradients)(t)

    def reverse_reads_state(self, u: Array, seed: Array, u_bar: Array | None, t: float, gradients: Gradients) -> bool:
        """Whether the content of ``u`` matters to :meth:`reverse` (it does not where f is linear in u)."""
        bound: BoundReverse = self._reverse(u, seed, u_bar, t, gradients)
        return bound.reads_state or not isinstance(self._root, Program)

    def _reverse(self, u: Array, seed: Array, u_bar: Array | None, t: float, gradients: Gradients) -> Any:
        program = self.program(t)
        return self._get(
            ("reverse", program, u, seed, u_bar, gradients),
            lambda: BoundReverse(program, self.environment, u, seed, u_bar, gradients, self._workspace),
        )

    def _get(self, what: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        key = (what[0], *(id(x) for x in what[1:]))
        entry = self._bound.get(key)
        if entry is None:
            self._make_room(self._bound)
            entry = self._bound[key] = (what, make())  # ``what`` keeps the ids valid
        return entry[1]

    @staticmethod
    def _make_room(bound: dict[Any, Any]) -> None:
        if len(bound) >= _MANY:
            bound.clear()

    def release(self) -> None:
        """Forget all bound launches, and with them the buffers they hold."""
        self._bound.clear()
        self._rates.clear()
        self._stages.clear()
        self._workspace.clear()

    def captured(self, wanted: str | Array) -> tuple[str, Array]:
        """The name and the array of something to differentiate by: a captured array's name, or the array itself."""
        if isinstance(wanted, str):
            found = [*self.names.arrays(wanted), *self._hidden(wanted)]
            found = [a for i, a in enumerate(found) if not any(a is b for b in found[:i])]
            if len(found) > 1:
                raise IradError(
                    f"'{wanted}' names {len(found)} different arrays that the right-hand side captures",
                    remedy="put the function's or kernel's name before it ('kernel.Ci'), or pass the array itself",
                )
            if not found:
                raise IradError(
                    f"the right-hand side captures no array named '{wanted}'",
                    remedy=f"it can be one of u0, p, {', '.join(self.names.known()) or '(nothing is captured)'}",
                )
            array, name = found[0], wanted
        else:
            array = wanted
            name = next(iter(self.names.of(array)), "array")
        if not self._uses(array):
            raise IradError(
                f"the right-hand side does not use the array '{name}'",
                remedy="ask for the derivative with respect to an array that a launch in it reads",
            )
        if array.dtype.kind != "f":
            raise IradError(f"'{name}' has data type {array.dtype}: only floating-point arrays carry derivatives")
        return name, array

    def _hidden(self, name: str) -> Sequence[Array]:
        found = []
        for program in self.programs:
            for launch in program.launches:
                for hidden, array in launch.hidden_arrays.items():
                    if name in (hidden, f"{launch.title}.{hidden}"):
                        found.append(array)
        return found

    def _uses(self, array: Array) -> bool:
        return any(r.kind == "captured" and r.touches(array) for program in self.programs for r in program.regions)


__all__ = ["Gradients", "RecordedFunction", "Tangents"]
