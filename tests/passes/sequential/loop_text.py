"""LLVM text of a program of ``loop_language.py``, as a frontend would hand it over: variables in memory."""

from __future__ import annotations

from irad.passes.ir.const import float_const
from irad.passes.ir.model import ArrayParam, Param, ScalarParam
from loop_language import FLOAT_ARRAYS, FLOAT_VARS, INT_VARS, N, Node

PARAMS: tuple[Param, ...] = (
    *(ArrayParam(name, elem, 1) for name, elem in FLOAT_ARRAYS.items()),
    ArrayParam("I", "i64", 1),
    ScalarParam("a", "double"),
    ScalarParam("n", "i64"),
)
RAISED = 7
"""What a program returns that raises."""

_MATH = {"sin": "llvm.sin.f64", "tanh": "tanh", "fabs": "llvm.fabs.f64", "floor": "llvm.floor.f64"}
_TWO = {"maxnum": "llvm.maxnum.f64", "minnum": "llvm.minnum.f64"}
_DECLARED = """
declare double @llvm.sin.f64(double)
declare double @tanh(double)
declare double @llvm.fabs.f64(double)
declare double @llvm.floor.f64(double)
declare double @llvm.maxnum.f64(double, double)
declare double @llvm.minnum.f64(double, double)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare noalias ptr @irad.alloc(i64)
declare void @irad.decref(ptr)
"""


def text(program: tuple[Node, ...]) -> str:
    """The module, which defines ``i32 @f(canonical parameters)``."""
    return _Writer().module(program)


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0
        self.ways: list[tuple[str, str]] = []
        """Where ``continue`` and ``break`` lead, a pair each loop."""

    def module(self, program: tuple[Node, ...]) -> str:
        words = []
        for p in PARAMS:
            if isinstance(p, ArrayParam):
                words += [f"ptr %{p.name}.data", f"i64 %{p.name}.n0", f"i64 %{p.name}.s0"]
            else:
                words.append(f"{p.type} %{p.name}")
        for name in FLOAT_VARS:
            self.line(f"%{name} = alloca double")
            self.line(f"store double {0.5 if name == 'x0' else 0.0:e}, ptr %{name}")
        for name in INT_VARS:
            self.line(f"%{name} = alloca i64")
            self.line(f"store i64 0, ptr %{name}")
        self.line("%L = alloca ptr")
        self.body(program)
        self.line("ret i32 0")
        body = "\n".join(self.lines)
        return f"define i32 @f({', '.join(words)}) {{\nentry:\n{body}\n}}\n{_DECLARED}"

    # lines -----------------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def new(self, text: str) -> str:
        self.count += 1
        self.line(f"%t{self.count} = {text}")
        return f"%t{self.count}"

    def labels(self, *names: str) -> list[str]:
        self.count += 1
        return [f"{name}{self.count}" for name in names]

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    # expressions -----------------------------------------------------------------------------------------------------

    def data(self, array: str) -> str:
        return self.new("load ptr, ptr %L") if array == "L" else f"%{array}.data"

    def stride(self, array: str) -> str:
        return "8" if array == "L" else f"%{array}.s0"

    def place(self, data: str, stride: str, index: str) -> str:
        inside = self.new(f"and i64 {index}, {N - 1}")
        offset = self.new(f"mul i64 {inside}, {stride}")
        return self.new(f"getelementptr i8, ptr {data}, i64 {offset}")

    def one_of(self, c: str, a: str, b: str, index: str) -> str:
        data = self.new(f"select i1 {c}, ptr {self.data(a)}, ptr {self.data(b)}")
        stride = self.new(f"select i1 {c}, i64 {self.stride(a)}, i64 {self.stride(b)}")
        return self.place(data, stride, index)

    def number(self, e: Node) -> str:
        kind = e[0]
        if kind == "num":
            return float_const("double", e[1]).text
        if kind == "var":
            return "%a" if e[1] == "a" else self.new(f"load double, ptr %{e[1]}")
        if kind == "load":
            at = self.place(self.data(e[1]), self.stride(e[1]), self.integer(e[2]))
            if FLOAT_ARRAYS.get(e[1]) == "float":
                return self.new(f"fpext float {self.new(f'load float, ptr {at}')} to double")
            return self.new(f"load double, ptr {at}")
        if kind == "pick":
            c = self.condition(e[1])
            return self.new(f"load double, ptr {self.one_of(c, e[2], e[3], self.integer(e[4]))}")
        if kind == "un":
            x = self.number(e[2])
            return self.new(f"fneg double {x}") if e[1] == "fneg" else self.math(e[1], x)
        if kind == "bin":
            x, y = self.number(e[2]), self.number(e[3])
            if e[1] in _TWO:
                return self.new(f"call double @{_TWO[e[1]]}(double {x}, double {y})")
            return self.new(f"{e[1]} double {x}, {y}")
        if kind == "sel":
            c, x, y = self.condition(e[1]), self.number(e[2]), self.number(e[3])
            return self.new(f"select i1 {c}, double {x}, double {y}")
        return self.new(f"sitofp i64 {self.integer(e[1])} to double")

    def math(self, name: str, x: str) -> str:
        return self.new(f"call double @{_MATH[name]}(double {x})")

    def integer(self, e: Node) -> str:
        kind = e[0]
        if kind == "int":
            return str(e[1])
        if kind == "ivar":
            return "%n" if e[1] == "n" else self.new(f"load i64, ptr %{e[1]}")
        if kind == "ibin":
            x, y = self.integer(e[2]), self.integer(e[3])
            return self.new(f"{e[1]} i64 {x}, {y}")
        if kind == "iload":
            return self.new(f"load i64, ptr {self.place('%I.data', '%I.s0', self.integer(e[1]))}")
        wave = self.new(f"fmul double {self.math('sin', self.number(e[1]))}, 3.0")
        return self.new(f"fptosi double {self.math('floor', wave)} to i64")

    def condition(self, e: Node) -> str:
        kind = e[0]
        if kind == "fcmp":
            x, y = self.number(e[2]), self.number(e[3])
            return self.new(f"fcmp {e[1]} double {x}, {y}")
        if kind == "icmp":
            i, j = self.integer(e[2]), self.integer(e[3])
            return self.new(f"icmp {e[1]} i64 {i}, {j}")
        if kind == "not":
            return self.new(f"xor i1 {self.condition(e[1])}, true")
        c, d = self.condition(e[1]), self.condition(e[2])
        return self.new(f"and i1 {c}, {d}")

    # statements ------------------------------------------------------------------------------------------------------

    def body(self, statements: tuple[Node, ...]) -> None:
        for s in statements:
            getattr(self, "do_" + s[0])(*s[1:])

    def do_set(self, name: str, e: Node) -> None:
        self.line(f"store double {self.number(e)}, ptr %{name}")

    def do_iset(self, name: str, e: Node) -> None:
        self.line(f"store i64 {self.integer(e)}, ptr %{name}")

    def do_store(self, array: str, index: Node, e: Node) -> None:
        value = self.number(e)
        at = self.place(self.data(array), self.stride(array), self.integer(index))
        if FLOAT_ARRAYS.get(array) == "float":
            self.line(f"store float {self.new(f'fptrunc double {value} to float')}, ptr {at}")
        else:
            self.line(f"store double {value}, ptr {at}")

    def do_pstore(self, condition: Node, a: str, b: str, index: Node, e: Node) -> None:
        value, c = self.number(e), self.condition(condition)
        self.line(f"store double {value}, ptr {self.one_of(c, a, b, self.integer(index))}")

    def do_istore(self, index: Node, e: Node) -> None:
        value = self.integer(e)
        self.line(f"store i64 {value}, ptr {self.place('%I.data', '%I.s0', self.integer(index))}")

    def do_fill(self, array: str) -> None:
        """Zeros: in one piece where the array is local, else by a loop over the entries, written as integers."""
        if array == "L":
            self.line(f"call void @llvm.memset.p0.i64(ptr {self.data('L')}, i8 0, i64 {8 * N}, i1 false)")
            return
        type = "i32" if FLOAT_ARRAYS[array] == "float" else "i64"
        for k in range(N):
            self.line(f"store {type} 0, ptr {self.place(self.data(array), self.stride(array), str(k))}")

    def do_copy(self, target: str, to: int, source: str, start: int, count: int) -> None:
        """As NumPy copies slices: everything is read before anything is written. Local arrays are contiguous."""
        if target == source == "L":
            data = self.data("L")
            x = self.new(f"getelementptr double, ptr {data}, i64 {to}")
            y = self.new(f"getelementptr double, ptr {data}, i64 {start}")
            self.line(f"call void @llvm.memmove.p0.p0.i64(ptr {x}, ptr {y}, i64 {8 * count}, i1 false)")
            return
        values = [self.number(("load", source, ("int", start + k))) for k in range(count)]
        for k, v in enumerate(values):
            at = self.place(self.data(target), self.stride(target), str(to + k))
            self.line(f"store double {v}, ptr {at}")

    def do_local(self, body: tuple[Node, ...]) -> None:
        data = self.new(f"call ptr @irad.alloc(i64 {8 * N})")
        none, some = self.labels("none", "some")
        null = self.new(f"icmp eq ptr {data}, null")
        self.line(f"br i1 {null}, label %{none}, label %{some}")
        self.label(none)
        self.line("ret i32 99")
        self.label(some)
        self.line(f"store ptr {data}, ptr %L")
        self.do_fill("L")
        self.body(body)
        self.line(f"call void @irad.decref(ptr {self.data('L')})")

    def do_if(self, condition: Node, then: tuple[Node, ...], other: tuple[Node, ...]) -> None:
        yes, no, after = self.labels("then", "else", "fi")
        self.line(f"br i1 {self.condition(condition)}, label %{yes}, label %{no}")
        for name, body in ((yes, then), (no, other)):
            self.label(name)
            self.body(body)
            self.line(f"br label %{after}")
        self.label(after)

    def do_for(self, name: str, lo: Node, hi: Node, step: int, body: tuple[Node, ...]) -> None:
        """``for name in range(lo & 3, hi & 3, step)``. The variable keeps its value."""
        first = self.new(f"and i64 {self.integer(lo)}, 3")
        end = self.new(f"and i64 {self.integer(hi)}, 3")
        head, inside, again, done = self.labels("head", "body", "again", "done")
        self.line(f"store i64 {first}, ptr %at{head}")
        self.lines.insert(0, f"  %at{head} = alloca i64")
        if f"  %{name} = alloca i64" not in self.lines:
            self.lines[:0] = [f"  %{name} = alloca i64", f"  store i64 0, ptr %{name}"]
        self.line(f"br label %{head}")
        self.label(head)
        now = self.new(f"load i64, ptr %at{head}")
        more = self.new(f"icmp {'slt' if step > 0 else 'sgt'} i64 {now}, {end}")
        self.line(f"br i1 {more}, label %{inside}, label %{done}")
        self.label(inside)
        self.line(f"store i64 {now}, ptr %{name}")
        self._loop(body, again, done)
        self.label(again)
        self.line(f"store i64 {self.new(f'add i64 {now}, {step}')}, ptr %at{head}")
        self.line(f"br label %{head}")
        self.label(done)

    def do_while(self, condition: Node, limit: int, body: tuple[Node, ...]) -> None:
        """``while condition``, at most ``limit`` times."""
        head, try_, inside, again, done = self.labels("while", "try", "body", "again", "done")
        self.lines.insert(0, f"  %fuel{head} = alloca i64")
        self.line(f"store i64 {limit}, ptr %fuel{head}")
        self.line(f"br label %{head}")
        self.label(head)
        fuel = self.new(f"load i64, ptr %fuel{head}")
        self.line(f"br i1 {self.new(f'icmp sgt i64 {fuel}, 0')}, label %{try_}, label %{done}")
        self.label(try_)
        self.line(f"store i64 {self.new(f'sub i64 {fuel}, 1')}, ptr %fuel{head}")
        self.line(f"br i1 {self.condition(condition)}, label %{inside}, label %{done}")
        self.label(inside)
        self._loop(body, again, done)
        self.label(again)
        self.line(f"br label %{head}")
        self.label(done)

    def _loop(self, body: tuple[Node, ...], again: str, done: str) -> None:
        self.ways.append((again, done))
        self.body(body)
        self.ways.pop()
        self.line(f"br label %{again}")

    def _leave(self, instruction: str) -> None:
        self.line(instruction)
        self.label(*self.labels("dead"))

    def do_break(self) -> None:
        self._leave(f"br label %{self.ways[-1][1]}")

    def do_continue(self) -> None:
        self._leave(f"br label %{self.ways[-1][0]}")

    def do_return(self) -> None:
        self._leave("ret i32 0")

    def do_raise(self) -> None:
        self._leave(f"ret i32 {RAISED}")
