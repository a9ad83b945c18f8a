"""Runs a program of ``loop_language.py`` on numbers with derivatives, as plainly as can be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from loop_language import FLOAT_ARRAYS, FLOAT_VARS, INT_VARS, N, Node

Array = np.ndarray[Any, Any]


class Unfit(Exception):
    """The program leaves the numbers on which results can be compared."""


class Left(Exception):
    """``break``, ``continue``, ``return`` or ``raise``."""


class Dual:
    """A number and its derivatives by all inputs."""

    __slots__ = ("d", "x")

    def __init__(self, x: float, d: Array) -> None:
        self.x, self.d = x, d


class Reference:
    """After the run: ``arrays`` (entries are :class:`Dual`), ``integers``, ``raised``; ``largest`` derivative met."""

    def __init__(self, arrays: Mapping[str, Array], integers: Array, a: float, n: int) -> None:
        self.size = sum(len(v) for v in arrays.values()) + 1
        self.zero = np.zeros(self.size)
        units = iter(np.eye(self.size))
        self.arrays = {name: [Dual(float(x), next(units)) for x in v] for name, v in arrays.items()}
        self.integers = [int(i) for i in integers]
        self.vars: dict[str, Any] = {v: Dual(0.5 if v == "x0" else 0.0, self.zero) for v in FLOAT_VARS}
        self.vars |= dict.fromkeys(INT_VARS, 0) | {"a": Dual(a, next(units)), "n": n}
        self.vars |= {f"j{k}": 0 for k in range(6)}
        self.largest = 1.0
        self.steps = 0
        self.raised = False

    def run(self, program: tuple[Node, ...]) -> None:
        try:
            self.body(program)
        except Left as e:
            self.raised = str(e) == "raise"

    def jacobian(self, name: str) -> Array:
        """Derivatives of the final entries of an array by all inputs."""
        return np.array([v.d for v in self.arrays[name]])

    def made(self, x: float, d: Array) -> Dual:
        with np.errstate(all="ignore"):
            size = float(np.abs(d).max())
        if not (math.isfinite(x) and math.isfinite(size)) or abs(x) > 1e8 or size > 1e8:
            raise Unfit
        self.largest = max(self.largest, size)
        return Dual(x, d)

    # expressions -----------------------------------------------------------------------------------------------------

    def number(self, e: Node) -> Dual:
        kind = e[0]
        if kind == "num":
            return Dual(e[1], self.zero)
        if kind == "var":
            return self.vars[e[1]]  # type: ignore[no-any-return]
        if kind == "load":
            return self.arrays[e[1]][self.integer(e[2]) % N]
        if kind == "pick":
            name = e[2] if self.condition(e[1]) else e[3]
            return self.arrays[name][self.integer(e[4]) % N]
        if kind == "un":
            return self.one(e[1], self.number(e[2]))
        if kind == "bin":
            return self.two(e[1], self.number(e[2]), self.number(e[3]))
        if kind == "sel":
            c, x, y = self.condition(e[1]), self.number(e[2]), self.number(e[3])
            return x if c else y
        return self.made(float(self.integer(e[1])), self.zero)

    def one(self, f: str, v: Dual) -> Dual:
        if f == "sin":
            return self.made(math.sin(v.x), math.cos(v.x) * v.d)
        if f == "tanh":
            return self.made(math.tanh(v.x), v.d / math.cosh(min(abs(v.x), 300.0)) ** 2)
        if f == "fneg":
            return Dual(-v.x, -v.d)
        return Dual(abs(v.x), (v.x > 0) * v.d - (v.x < 0) * v.d)

    def two(self, f: str, v: Dual, w: Dual) -> Dual:
        if f == "fadd":
            return self.made(v.x + w.x, v.d + w.d)
        if f == "fsub":
            return self.made(v.x - w.x, v.d - w.d)
        if f == "fmul":
            return self.made(v.x * w.x, v.d * w.x + v.x * w.d)
        if f == "fdiv":
            if abs(w.x) < 1e-3:
                raise Unfit
            return self.made(v.x / w.x, (v.d - v.x / w.x * w.d) / w.x)
        if f == "maxnum":
            return v if v.x >= w.x else w
        return v if v.x <= w.x else w

    def integer(self, e: Node) -> int:
        kind = e[0]
        if kind == "int":
            return int(e[1])
        if kind == "ivar":
            return int(self.vars[e[1]])
        if kind == "ibin":
            i, j = self.integer(e[2]), self.integer(e[3])
            result = i + j if e[1] == "add" else i - j if e[1] == "sub" else i * j
            return (result + 2**63) % 2**64 - 2**63
        if kind == "iload":
            return self.integers[self.integer(e[1]) % N]
        return math.floor(math.sin(self.number(e[1]).x) * 3.0)

    def condition(self, e: Node) -> bool:
        kind = e[0]
        if kind == "not":
            return not self.condition(e[1])
        if kind == "and":
            c, d = self.condition(e[1]), self.condition(e[2])
            return c and d
        if kind == "fcmp":
            x, y = self.number(e[2]).x, self.number(e[3]).x
        else:
            x, y = self.integer(e[2]), self.integer(e[3])
        tests = {"lt": x < y, "ge": x >= y, "gt": x > y, "ne": x != y, "eq": x == y}
        return tests[e[1][-2:]]

    # statements ------------------------------------------------------------------------------------------------------

    def body(self, statements: tuple[Node, ...]) -> None:
        for s in statements:
            self.steps += 1
            if self.steps > 3000:
                raise Unfit
            getattr(self, "do_" + s[0])(*s[1:])

    def do_set(self, name: str, e: Node) -> None:
        self.vars[name] = self.number(e)

    def do_iset(self, name: str, e: Node) -> None:
        self.vars[name] = self.integer(e)

    def put(self, array: str, k: int, v: Dual) -> None:
        if FLOAT_ARRAYS.get(array) == "float":
            v = Dual(float(np.float32(v.x)), v.d)
        self.arrays[array][k % N] = v

    def do_store(self, array: str, index: Node, e: Node) -> None:
        v = self.number(e)
        self.put(array, self.integer(index), v)

    def do_pstore(self, condition: Node, a: str, b: str, index: Node, e: Node) -> None:
        v = self.number(e)
        array = a if self.condition(condition) else b
        self.put(array, self.integer(index), v)

    def do_istore(self, index: Node, e: Node) -> None:
        v = self.integer(e)
        self.integers[self.integer(index) % N] = v

    def do_fill(self, array: str) -> None:
        self.arrays[array] = [Dual(0.0, self.zero)] * N

    def do_copy(self, target: str, to: int, source: str, start: int, count: int) -> None:
        for k, v in enumerate(self.arrays[source][start : start + count]):
            self.arrays[target][to + k] = v

    def do_local(self, body: tuple[Node, ...]) -> None:
        self.do_fill("L")
        self.body(body)

    def do_if(self, condition: Node, then: tuple[Node, ...], other: tuple[Node, ...]) -> None:
        self.body(then if self.condition(condition) else other)

    def do_for(self, name: str, lo: Node, hi: Node, step: int, body: tuple[Node, ...]) -> None:
        for k in range(self.integer(lo) % 4, self.integer(hi) % 4, step):
            self.vars[name] = k
            if self.round(body):
                break

    def do_while(self, condition: Node, limit: int, body: tuple[Node, ...]) -> None:
        for _ in range(limit):
            if not self.condition(condition) or self.round(body):
                break

    def round(self, body: tuple[Node, ...]) -> bool:
        """One round of a loop; whether it was left."""
        try:
            self.body(body)
        except Left as e:
            if str(e) not in ("break", "continue"):
                raise
            return str(e) == "break"
        return False

    def do_break(self) -> None:
        raise Left("break")

    def do_continue(self) -> None:
        raise Left("continue")

    def do_return(self) -> None:
        raise Left("return")

    def do_raise(self) -> None:
        raise Left("raise")
