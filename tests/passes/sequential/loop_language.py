"""A small language of loop kernels, and Hypothesis strategies for programs in it.

Programs are nested tuples, so that they print well and shrink well. Arrays have four entries each, and every index is
taken modulo four, so that no program leaves its arrays. ``loop_text.py`` makes LLVM text of a program,
``loop_reference.py`` runs it on dual numbers.

====================================== ===============================================================================
float expression                       meaning
====================================== ===============================================================================
``("num", c)``, ``("var", "x0")``      a number, a float variable (``a`` is the parameter)
``("load", A, i)``                     an entry of an array
``("pick", c, A, B, i)``               an entry of one of two arrays
``("un", f, x)``, ``("bin", f, x, y)`` arithmetic and math functions
``("sel", c, x, y)``                   a select: both sides are computed
``("float", i)``                       an integer as a float
====================================== ===============================================================================

Integers: ``("int", k)``, ``("ivar", name)``, ``("ibin", f, i, j)``, ``("iload", i)`` (of the array ``I``), ``("whole",
x)`` (``floor(3 sin x)``). Conditions: ``("fcmp", f, x, y)``, ``("icmp", f, i, j)``, ``("and", c, d)``, ``("not", c)``.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

N = 4
FLOAT_ARRAYS = {"X": "double", "Y": "double", "R": "double", "F": "float"}
"""``R`` is never written. ``L`` is a local array where there is one."""

FLOAT_VARS = ("x0", "x1", "x2")
INT_VARS = ("k0", "k1")
NUMBERS = (0.0, 1.0, -0.5, 0.75, 1.25, -2.0)

Node = tuple[Any, ...]


class Grammar:
    """Strategies for the parts of a program. ``writable``: arrays that may be stored into."""

    def __init__(self, draw: st.DrawFn, arrays: tuple[str, ...]) -> None:
        self.draw = draw
        self.arrays = arrays

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def array(self, local: bool, written: bool) -> str:
        names = [a for a in self.arrays if not (written and a == "R")] + (["L"] if local else [])
        return str(self.pick(*names))

    def number(self, depth: int, loops: int, local: bool) -> Node:
        kinds = ["num", "var", "load", "load"]
        if depth > 0:
            kinds += ["bin", "bin", "bin", "un", "sel", "float", "pick"]
        kind = self.pick(*kinds)
        if kind == "num":
            return ("num", self.pick(*NUMBERS))
        if kind == "var":
            return ("var", self.pick(*FLOAT_VARS, "a"))
        if kind == "load":
            return ("load", self.array(local, False), self.integer(min(depth, 1), loops, local))
        if kind == "bin":
            op = self.pick("fadd", "fsub", "fmul", "fmul", "fdiv", "maxnum", "minnum")
            return ("bin", op, self.number(depth - 1, loops, local), self.number(depth - 1, loops, local))
        if kind == "un":
            return ("un", self.pick("sin", "tanh", "fneg", "fabs"), self.number(depth - 1, loops, local))
        if kind == "sel":
            return (
                "sel",
                self.condition(depth - 1, loops, local),
                self.number(depth - 1, loops, local),
                self.number(depth - 1, loops, local),
            )
        if kind == "pick":
            two = self.pick(("X", "Y"), ("Y", "R"), ("X", "R"))
            return ("pick", self.condition(depth - 1, loops, local), *two, self.integer(min(depth, 1), loops, local))
        return ("float", self.integer(depth - 1, loops, local))

    def integer(self, depth: int, loops: int, local: bool) -> Node:
        kinds = ["int", "ivar", *(["index"] * 3 if loops else [])]
        if depth > 0:
            kinds += ["ibin", "ibin", "iload", "whole"]
        kind = self.pick(*kinds)
        if kind == "int":
            return ("int", self.draw(st.integers(-1, 4)))
        if kind == "ivar":
            return ("ivar", self.pick(*INT_VARS, "n"))
        if kind == "index":
            return ("ivar", f"j{self.draw(st.integers(0, loops - 1))}")
        if kind == "ibin":
            op = self.pick("add", "sub", "mul")
            return ("ibin", op, self.integer(depth - 1, loops, local), self.integer(depth - 1, loops, local))
        if kind == "iload":
            return ("iload", self.integer(depth - 1, loops, local))
        return ("whole", self.number(depth - 1, loops, local))

    def condition(self, depth: int, loops: int, local: bool) -> Node:
        kind = self.pick("fcmp", "fcmp", "icmp", *(("and", "not") if depth > 0 else ()))
        if kind == "fcmp":
            op = self.pick("olt", "oge", "ogt", "une", "oeq")
            return ("fcmp", op, self.number(max(depth, 0), loops, local), self.number(0, loops, local))
        if kind == "icmp":
            op = self.pick("slt", "sge", "eq", "ne")
            return ("icmp", op, self.integer(max(depth, 0), loops, local), self.integer(0, loops, local))
        if kind == "not":
            return ("not", self.condition(depth - 1, loops, local))
        return ("and", self.condition(depth - 1, loops, local), self.condition(depth - 1, loops, local))

    def block(self, depth: int, loops: int, local: bool) -> tuple[Node, ...]:
        return tuple(self.statement(depth, loops, local) for _ in range(self.draw(st.integers(1, 3))))

    def statement(self, depth: int, loops: int, local: bool) -> Node:
        kinds = ["set", "set", "store", "store", "store", "iset", "istore", "fill", "copy", "pstore"]
        if depth > 0:
            kinds += ["for", "for", "for", "while", "if", "if"]
            if not local:
                kinds.append("local")
        if loops:
            kinds += ["break", "continue"]
        kinds += ["return", "raise"]
        kind = self.pick(*kinds)
        if kind == "set":
            return ("set", self.pick(*FLOAT_VARS), self.number(2, loops, local))
        if kind == "store":
            array = self.array(local, True)
            return ("store", array, self.integer(1, loops, local), self.number(2, loops, local))
        if kind == "pstore":
            condition, index = self.condition(1, loops, local), self.integer(1, loops, local)
            return ("pstore", condition, "X", "Y", index, self.number(1, loops, local))
        if kind == "iset":
            return ("iset", self.pick(*INT_VARS), self.integer(2, loops, local))
        if kind == "istore":
            return ("istore", self.integer(1, loops, local), self.integer(1, loops, local))
        if kind == "fill":
            return ("fill", self.array(local, True))
        if kind == "copy":
            count = self.draw(st.integers(0, N))
            source, target = self.array(local, False), self.array(local, True)
            if "F" in (source, target):
                source = target = "X"
            ends = st.integers(0, N - count)
            return ("copy", target, self.draw(ends), source, self.draw(ends), count)
        if kind == "for":
            ends = self.integer(1, loops, local), self.integer(1, loops, local)
            return ("for", f"j{loops}", *ends, self.pick(1, 1, 2, -1), self.block(depth - 1, loops + 1, local))
        if kind == "while":
            condition = self.condition(1, loops, local)
            return ("while", condition, self.draw(st.integers(0, 4)), self.block(depth - 1, loops, local))
        if kind == "if":
            condition = self.condition(1, loops, local)
            other = self.block(depth - 1, loops, local) if self.draw(st.booleans()) else ()
            return ("if", condition, self.block(depth - 1, loops, local), other)
        if kind == "local":
            return ("local", self.block(depth - 1, loops, True))
        condition = self.condition(0, loops, local)
        return ("if", condition, ((kind,),), ())


@st.composite
def programs(draw: st.DrawFn, depth: int = 3) -> tuple[Node, ...]:
    """Whole programs."""
    arrays = draw(st.sampled_from([("X",), ("X", "R"), ("X", "Y", "R"), ("X", "Y", "R", "F")]))
    g = Grammar(draw, arrays)
    return tuple(g.statement(depth, 0, False) for _ in range(draw(st.integers(1, 5))))


def holds(program: Any, word: str) -> bool:
    """Whether a name or a kind of node occurs in a program."""
    return program == word or (isinstance(program, tuple) and any(holds(p, word) for p in program))
