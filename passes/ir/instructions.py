"""The body of one LLVM function to blocks and instructions: one small method an instruction form, chosen by a table."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from irad.errors import NotDifferentiableError

from . import ops, refuse
from .access import parse_access
from .aggregates import MOST_FIELDS, aggregate_fields, field_type
from .const import const_value
from .model import Block, Const, Function, Instr, Loc, Value
from .powers import expanded
from .tokens import Cursor, Expr, NotParsed, Ref, plain_name

if TYPE_CHECKING:
    from .read import _Lines

_LABEL = re.compile(r'^("[^"]*"|[-\w.$]+):')
_RESULT = re.compile(r'^\s*(%(?:"[^"]*"|[-\w.$]+)) = ')
_GUARD = re.compile(r"irad\.guard\.(?:fcmp\.(?P<pred>\w+)|(?P<name>\w+))\.(?P<type>\w+)")
_STRUCTURED = re.compile(r"irad\.(aload|astore|sload|sstore|accum|accums)\.(\w+)\.(.+)")


class FunctionReader:
    """Fills ``fn`` from the lines of its body.

    ``defined``: functions of the module. ``callable``: those of them that may be called (others: recursion).
    ``skim``: what would be refused becomes a call of nothing, and its result stays a reference.
    """

    def __init__(
        self,
        fn: Function,
        module: _Lines,
        defined: frozenset[str],
        callable: frozenset[str],
        skim: bool = False,
    ) -> None:
        self.fn, self.module, self.defined, self.callable, self.skim = fn, module, defined, callable, skim
        self.values: dict[str, Value] = {a.name: a for a in fn.args}
        self.blocks: dict[str, Block] = {}
        self.line, self.lines, self.at = "", [""], 0
        forms: dict[str, Callable[[Cursor, str], Instr | None]] = {
            "fneg": self._unary, "freeze": self._unary, "select": self._select, "icmp": self._compare,
            "fcmp": self._compare, "phi": self._phi, "getelementptr": self._gep, "alloca": self._alloca,
            "load": self._load, "store": self._store, "extractvalue": self._extract, "insertvalue": self._insert,
            "br": self._br, "switch": self._switch, "ret": self._ret, "unreachable": self._unreachable,
            "call": self._call,
        }  # fmt: skip
        forms |= dict.fromkeys(ops.BINARY, self._binary) | dict.fromkeys(ops.CASTS, self._cast)
        self.forms = forms

    # lines -------------------------------------------------------------------------------------------------------

    def read(self, lines: list[str]) -> None:
        for a in self.fn.args:
            self._check_type(a.type, f"the parameter {a.name}")
        self._check_type(self.fn.type, "the result")
        block: Block | None = None
        self.lines = list(expanded(_joined(lines)))
        for at, line in enumerate(self.lines):
            self.at, self.line = at, line
            if found := _LABEL.match(line):
                block = self._block(plain_name(found[1]))
                self.fn.blocks.append(block)
                continue
            if block is None:  # an entry without a label counts on from the unnamed parameters
                block = self._block(str(sum(a.name.isdigit() for a in self.fn.args)))
                self.fn.blocks.append(block)
            instr = self._line(line)
            if instr is not None:
                block.append(instr)
        for block in self.fn.blocks:
            self._resolve(block)
        if not self.skim:
            self._check_status()

    def _check_status(self) -> None:
        """Refuse what may raise, at the branch that leads there: the report itself has the line of the kernel."""
        for block in self.fn.blocks:
            for i in block.instrs:
                if i.op == "call" and i.callee == "irad.status":
                    causes = [b.terminator.loc for b in self.fn.blocks if block in b.successors]
                    raise refuse.may_raise(next((c for c in causes if c not in (None, i.loc)), i.loc))

    def _line(self, line: str) -> Instr | None:
        try:
            return self._instruction(Cursor(line.split(", !", 1)[0]))
        except (NotParsed, NotDifferentiableError) as e:
            if self.skim:
                return Instr("call", "void")
            if isinstance(e, NotParsed):
                raise refuse.unknown(f"the instruction `{line.strip()}` ({e})", self._loc()) from None
            raise

    def _instruction(self, c: Cursor) -> Instr | None:
        name = ""
        if c.peek().startswith("%") and c.peek(1) == "=":
            name = plain_name(c.next())
            c.expect("=")
        c.accept("tail", "musttail", "notail")
        op = c.next()
        if op in refuse.INSTRUCTIONS:
            what, remedy = refuse.INSTRUCTIONS[op]
            raise refuse.unknown(what, self._loc(), remedy)
        if op not in self.forms:
            raise refuse.unknown(f"the LLVM instruction {op}", self._loc())
        instr = self.forms[op](c, op)
        if instr is None:
            return None
        self._check_type(instr.type, f"`{op}`")
        for v in instr.operands:
            self._check_type(v.type, f"`{op}`")
        instr.name, instr.loc = name, self._loc()
        if name:
            self.values[name] = instr
        return instr

    def _loc(self) -> Loc | None:
        """The place of the line that is being read; where LLVM has lost it, that of what uses its result."""
        debug = self.module.debug
        if debug.is_lost(self.line) and (found := _RESULT.match(self.line)):
            uses = re.compile(re.escape(found[1]) + r"(?![-\w.$])")
            for later in self.lines[self.at + 1 :]:
                if uses.search(later) and not debug.is_lost(later) and (loc := debug.of(later)) is not None:
                    return loc
        return debug.of(self.line)

    def _block(self, name: str) -> Block:
        if name not in self.blocks:
            self.blocks[name] = Block(name)
        return self.blocks[name]

    def _target(self, c: Cursor) -> Block:
        c.accept("label")
        return self._block(plain_name(c.next()))

    def _check_type(self, type: str, where: str) -> None:
        if type in ops.SIZES or type in ("void", "label"):
            return
        if type.startswith(("{", "[")):
            fields = aggregate_fields(type)
            if fields is not None and len(fields) <= MOST_FIELDS:
                return
            raise refuse.unknown(f"the aggregate {type} of {where}", self._loc())
        if type.startswith("<"):
            raise refuse.unknown("a vector", self._loc(), refuse.INSTRUCTIONS["shufflevector"][1])
        raise refuse.unknown(
            f"the type {type} of {where}", self._loc(), "use float32, float64, and integers up to 64 bits"
        )

    # forms -------------------------------------------------------------------------------------------------------

    def _binary(self, c: Cursor, op: str) -> Instr:
        flags = c.many(ops.OPS[op].flags)
        type = c.type()
        a = c.operand(type)
        c.expect(",")
        return Instr(op, type, [a, c.operand(type)], flags=tuple(flags))

    def _unary(self, c: Cursor, op: str) -> Instr:
        flags = c.many(ops.OPS[op].flags)
        v = c.typed()
        return Instr(op, v.type, [v], flags=tuple(flags))

    def _cast(self, c: Cursor, op: str) -> Instr:
        flags = c.many(ops.OPS[op].flags)
        v = c.typed()
        c.expect("to")
        return Instr(op, c.type(), [v], flags=tuple(flags))

    def _compare(self, c: Cursor, op: str) -> Instr:
        flags = c.many(ops.OPS[op].flags)
        pred = c.next()
        a = c.typed()
        c.expect(",")
        return Instr(op, "i1", [a, c.operand(a.type)], flags=tuple(flags), pred=pred)

    def _select(self, c: Cursor, op: str) -> Instr:
        flags = c.many(ops.FAST_MATH)
        parts = [c.typed()]
        for _ in range(2):
            c.expect(",")
            parts.append(c.typed())
        return Instr(op, parts[1].type, parts, flags=tuple(flags))

    def _phi(self, c: Cursor, op: str) -> Instr:
        flags = c.many(ops.FAST_MATH)
        type = c.type()
        values, blocks = [], []
        while c.accept("["):
            values.append(c.operand(type))
            c.expect(",")
            blocks.append(self._target(c))
            c.expect("]")
            c.accept(",")
        return Instr(op, type, values, flags=tuple(flags), targets=blocks)

    def _gep(self, c: Cursor, op: str) -> Instr:
        flags = c.many(ops.OPS[op].flags)
        elem = c.type()
        operands = []
        while c.accept(","):
            operands.append(c.typed())
        return Instr(op, "ptr", operands, flags=tuple(flags), elem=elem)

    def _alloca(self, c: Cursor, op: str) -> Instr:
        if c.accept("inalloca", "swifterror"):
            raise NotParsed("an alloca of a special kind")
        elem, align = c.type(), 0
        while c.accept(","):
            if c.accept("align"):
                align = int(c.next())
                continue
            count = const_value(c.typed())
            if count is None:
                raise refuse.unknown("memory whose size is only known at run time", self._loc(), refuse.MEMORY)
            elem = elem if count == 1 else f"[{count} x {elem}]"
        return Instr(op, "ptr", [], elem=elem, align=align)

    def _plain_access(self, c: Cursor) -> None:
        if c.accept("atomic"):
            what, remedy = refuse.INSTRUCTIONS["atomicrmw"]
            raise refuse.unknown(what, self._loc(), remedy)
        if c.accept("volatile"):
            raise refuse.unknown("a volatile memory access", self._loc(), "use ordinary arrays")

    def _align(self, c: Cursor) -> int:
        if c.accept(","):
            c.expect("align")
            return int(c.next())
        return 0

    def _load(self, c: Cursor, op: str) -> Instr:
        self._plain_access(c)
        type = c.type()
        c.expect(",")
        pointer = c.typed()
        return Instr(op, type, [pointer], align=self._align(c))

    def _store(self, c: Cursor, op: str) -> Instr:
        self._plain_access(c)
        value = c.typed()
        c.expect(",")
        pointer = c.typed()
        return Instr(op, "void", [value, pointer], align=self._align(c))

    def _extract(self, c: Cursor, op: str) -> Instr:
        v = c.typed()
        indices = self._indices(c)
        return Instr(op, field_type(v.type, indices), [v], indices=indices)

    def _insert(self, c: Cursor, op: str) -> Instr:
        v = c.typed()
        c.expect(",")
        x = c.typed()
        return Instr(op, v.type, [v, x], indices=self._indices(c))

    def _indices(self, c: Cursor) -> tuple[int, ...]:
        found = []
        while c.accept(","):
            found.append(int(c.next()))
        return tuple(found)

    def _br(self, c: Cursor, op: str) -> Instr:
        if c.peek() == "label":
            return Instr(op, "void", [], targets=[self._target(c)])
        condition = c.typed()
        targets = []
        while c.accept(","):
            targets.append(self._target(c))
        return Instr(op, "void", [condition], targets=targets)

    def _switch(self, c: Cursor, op: str) -> Instr:
        v = c.typed()
        c.expect(",")
        targets, cases = [self._target(c)], []
        c.expect("[")
        while not c.accept("]"):
            case = const_value(c.typed())
            assert isinstance(case, int)
            cases.append(case)
            c.expect(",")
            targets.append(self._target(c))
        return Instr(op, "void", [v], targets=targets, cases=tuple(cases))

    def _ret(self, c: Cursor, op: str) -> Instr:
        return Instr(op, "void", [] if c.peek() == "void" else [c.typed()])

    def _unreachable(self, c: Cursor, op: str) -> Instr:
        return Instr(op, "void")

    # calls -------------------------------------------------------------------------------------------------------

    def _call(self, c: Cursor, op: str) -> Instr | None:
        flags = c.many(ops.FAST_MATH)
        while not c.at_type():
            before = c.at
            c.skip_attributes()
            if c.peek().isdigit():  # `cc 10`
                c.next()
            if c.at == before:
                raise NotParsed(f"{c.peek()!r} in a call")
        type = c.type()
        if c.peek() == "(":
            c.balanced()  # the type of a function with a variable number of arguments
        if c.peek() == "asm":
            raise refuse.unknown("inline assembly", self._loc(), "use ordinary arithmetic")
        callee = c.next()
        if not callee.startswith("@"):
            raise refuse.unknown("a call through a pointer", self._loc(), "call the function by its name")
        callee = plain_name(callee)
        if ops.is_dropped(callee):
            return None
        args = self._arguments(c, callee)
        return self._called(callee, type, args, tuple(flags))

    def _arguments(self, c: Cursor, callee: str) -> list[Value]:
        c.expect("(")
        args: list[Value] = []
        while not c.accept(")"):
            if c.peek() == "metadata":
                raise refuse.unknown_call(callee, self._loc())
            args.append(c.typed())
            c.accept(",")
        return args

    def _called(self, callee: str, type: str, args: list[Value], flags: tuple[str, ...]) -> Instr | None:
        if callee == "irad.status":
            return None if const_value(args[0]) == 0 else Instr("call", type, args, callee=callee)
        if found := _GUARD.fullmatch(callee):
            if found["pred"]:
                return Instr("fcmp", "i1", args, pred=found["pred"], flags=flags)
            if found["name"] in ("load", "store"):
                return Instr(found["name"], type, args[:-1], align=int(const_value(args[-1]) or 0))
            return Instr(
                "call", type, args, callee=ops.math_callee(found["name"], ops.LONG[found["type"]]), flags=flags
            )
        if callee == "irad.iwrap":
            return Instr("iwrap", "i64", args)
        if found := _STRUCTURED.fullmatch(callee):
            access = parse_access(found[3], self.module.debug.note(self.line, "access"))
            return Instr(found[1], type, args, array=found[3], access=access)
        if callee.startswith("llvm.expect."):
            return Instr("freeze", type, args[:1])
        if callee in ops.INSTEAD:
            return Instr(ops.INSTEAD[callee][0], type, args, flags=flags)
        kind = ops.call_kind(callee)
        if kind == "math":
            name, of = ops.math_of(callee) or ("", "")
            if len(args) == ops.MATH[name].arity and type == of:
                return Instr("call", type, args, callee=ops.math_callee(name, of), flags=flags)
        if kind == "memory" and const_value(args[-1]) != 0:
            raise refuse.unknown("a volatile memory access", self._loc(), "use ordinary arrays")
        if kind in ("int", "memory", "heap", "mark"):
            return Instr("call", type, args, callee=callee)
        if callee in self.callable:
            return Instr("call", type, args, callee=callee)
        raise (refuse.recursion if callee in self.defined else refuse.unknown_call)(callee, self._loc())

    # after all lines ---------------------------------------------------------------------------------------------

    def _resolve(self, block: Block) -> None:
        """Operands to values; constant expressions to instructions before their user."""
        for i in list(block.instrs):
            for k, v in enumerate(i.operands):
                i.operands[k] = self._value(v, i.targets[k].terminator if i.op == "phi" else i)

    def _value(self, v: Value, user: Instr) -> Value:
        if self.skim and not isinstance(v, Ref):
            return v
        if isinstance(v, Ref):
            found = self.values.get(v.name)
            if found is None and self.skim:
                return v
            if found is None:
                raise NotDifferentiableError(f"%{v.name} is used but nowhere defined", loc=user.loc)
            return found
        if isinstance(v, Const) and v.text.startswith("@"):
            constant = self.module.constant(v.text)
            if constant is None:
                what = f"the module-level variable {plain_name(v.text)}"
                raise refuse.unknown(what, user.loc, "pass what can change as an argument")
            return constant
        if isinstance(v, Expr):
            operands = [self._value(o, user) for o in v.operands]
            i = Instr(v.op, v.type, operands, flags=v.flags, elem=v.elem, name="constant", loc=user.loc)
            assert user.block is not None
            return user.block.insert(user.block.instrs.index(user), i)
        return v


def _joined(lines: list[str]) -> list[str]:
    """One instruction a line, without blank lines, comments, and debug records."""
    result: list[str] = []
    open_switch = False
    for line in lines:
        text = line.strip()
        if not text or text.startswith((";", "#dbg")):
            continue
        if open_switch:
            result[-1] += " " + text
            open_switch = not text.startswith("]")
            continue
        result.append(line.rstrip())
        open_switch = text.startswith("switch ") and text.endswith("[")
    return result
