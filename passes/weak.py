"""Weak Python scalars, as in NumPy 2: a kernel over float32 arrays computes in float32.

Numba gives ``2.0 * T[i]`` and ``T[i] / dx`` over a float32 array the type float64. NumPy 2 does not: a Python number
takes the precision of what it meets. Here every double of a function is put into one of three classes, ordered
WEAK < NARROW < STRONG; the class of an operation is the greatest of its operands':

========= ==========================================================================================================
class     members
========= ==========================================================================================================
WEAK      literals, weak scalar parameters, integers that are no array elements, and what is computed from these
NARROW    float32 values, and what is computed from at least one of them and weak values
STRONG    elements of float64 arrays and of arrays of 32 and 64-bit integers, parameters that are not weak,
          ``np.float64(x)``, and what is computed from these
========= ==========================================================================================================

NARROW operations are then done in float32. A weak value stays a double until it meets a float32 value, and is rounded
once, there: ``dx * dx`` is computed in double, as Python would. A comparison follows the same rule. Functions without
float32 values are left as they are. ``irad.strong.*`` marks are removed.
"""

from __future__ import annotations

from collections.abc import Callable

from . import slots
from .ir import ops
from .ir.const import const_value, float_const
from .ir.graph import reverse_postorder
from .ir.model import Const, Function, Instr, Value

WEAK, NARROW, STRONG = 0, 1, 2

_JOINED = frozenset({"fadd", "fsub", "fmul", "fdiv", "frem", "fneg", "select", "phi", "freeze"})


def apply(fn: Function, weak: frozenset[str]) -> Function:
    """A copy of ``fn`` with weak scalars. ``weak``: names of the float parameters that are Python numbers."""
    new, _, _ = fn.clone()
    classes = classify(new, weak)
    if any(c == NARROW for c in classes.values()):
        _Demotion(new, classes).run()
    _drop_marks(new)
    return new


def classify(fn: Function, weak: frozenset[str]) -> dict[Value, int]:
    """The class of every double and integer of a function (of an integer: STRONG for array elements)."""
    classes: dict[Value, int] = {}
    memory = slots.Slots(fn)
    for a in fn.args:
        if a.type == "double":
            classes[a] = WEAK if a.name in weak else STRONG
    order = [i for b in reverse_postorder(fn) for i in b.instrs]
    changed = True
    while changed:
        changed = False
        for i in order:
            found = max(_class_of(i, classes, memory), classes.get(i, WEAK))
            if found != classes.get(i):
                classes[i] = found
                changed = True
    return classes


def _class_of(i: Instr, classes: dict[Value, int], memory: slots.Slots) -> int:
    def join(values: list[Value]) -> int:
        return max((classes.get(v, NARROW if v.type == "float" else WEAK) for v in values), default=WEAK)

    if i.type == "double":
        if i.op == "fpext":
            return NARROW
        if i.op in _JOINED:
            return join([v for v in i.operands if v.type == "double"])
        if i.op in ("sitofp", "uitofp"):
            return join(i.operands)
        if i.op == "load":
            return _loaded(i, memory, join)
        if i.op == "call" and ops.call_kind(i.callee) == "math":
            return join([v for v in i.operands if v.type == "double"])
        return STRONG
    if ops.is_int(i.type):
        if i.op == "load":
            return _loaded(i, memory, join)
        if i.op in ("fptosi", "fptoui", "icmp", "fcmp", "bitcast", "ptrtoint"):
            return WEAK
        if i.op == "aload":
            return STRONG if i.type in ("i32", "i64") else WEAK
        return join([v for v in i.operands if ops.is_int(v.type)])
    return WEAK


def _loaded(i: Instr, memory: slots.Slots, join: Callable[[list[Value]], int]) -> int:
    """An array element is strong (booleans and short integers are not); a local variable is what was stored in it."""
    base = memory.base(i.operands[0])
    if base is None:
        return STRONG if i.type in ("double", "i32", "i64") else WEAK
    return join(memory.stored(base)) if isinstance(base, Instr) else WEAK


class _Demotion:
    """Rewrites the NARROW operations of a function to float32, in place."""

    def __init__(self, fn: Function, classes: dict[Value, int]) -> None:
        self.fn, self.classes = fn, classes
        self.narrow: dict[Value, Value] = {}
        """For a double of before: the float of the same value."""
        self.wide: dict[Value, Value] = {}
        """For a value that has become a float: the double of the same value."""

    def run(self) -> None:
        demoted = [i for i in self.fn.instrs() if i.type == "double" and self.classes.get(i) == NARROW]
        for i in demoted:
            self._retype(i)
        changed = set(demoted)
        for i in list(self.fn.instrs()):
            if i in changed and i.op != "load":
                continue
            self._fix_uses(i)
        for i in demoted:
            if i.op not in ("load", "fpext"):
                self._fix_demoted(i)
        self._drop_truncations()

    def _retype(self, i: Instr) -> None:
        if i.op == "fpext":
            self.narrow[i] = i.operands[0]
        elif i.op == "load":  # from a local variable, which holds doubles of float32 values and weak ones
            self.narrow[i] = self._after(i, Instr("fptrunc", "float", [i], loc=i.loc, name=i.name))
        else:
            i.type = "float"
            self.narrow[i] = i
            if i.op == "call":
                name, _ = ops.math_of(i.callee) or ("", "")
                i.callee = ops.math_callee(name, "float")

    def _fix_demoted(self, i: Instr) -> None:
        for k, v in enumerate(i.operands):
            if v.type == "double" or v in self.narrow:
                at = i.targets[k].terminator if i.op == "phi" else i
                i.operands[k] = self._as_float(v, at)

    def _fix_uses(self, i: Instr) -> None:
        """Let an operation that is not demoted take floats where it can, else doubles of the same value."""
        doubles = [k for k, v in enumerate(i.operands) if v in self.narrow and self.classes.get(v) == NARROW]
        if not doubles or (i.op == "fptrunc" and self.narrow.get(i.operands[0]) is i):
            return
        tests = i.op == "fcmp" or (i.op == "call" and i.callee == "llvm.is.fpclass.f64")
        if tests and all(self._class(v) < STRONG for v in i.operands):
            i.operands = [v if ops.is_int(v.type) else self._as_float(v, i) for v in i.operands]
            i.callee = i.callee.replace(".f64", ".f32")
        elif i.op in ("fptosi", "fptoui", "fptrunc"):
            i.operands = [self.narrow[v] for v in i.operands]
        elif i.op != "fpext":
            for k in doubles:
                i.operands[k] = self._as_double(i.operands[k])

    def _class(self, v: Value) -> int:
        return self.classes.get(v, WEAK)

    def _as_float(self, v: Value, user: Instr) -> Value:
        if v in self.narrow:
            return self.narrow[v]
        if v.type == "float":
            return v
        if isinstance(v, Const):
            number = const_value(v)
            return Const("float", v.text) if number is None else float_const("float", float(number))
        assert v.type == "double", f"{v!r} has no float"
        assert user.block is not None
        rounded = Instr("fptrunc", "float", [v], loc=user.loc, name=v.name)
        if isinstance(v, Instr):
            self._after(v, rounded)
        else:
            self.fn.blocks[0].insert(0, rounded)
        self.narrow[v] = rounded
        return rounded

    def _as_double(self, v: Value) -> Value:
        """The double of a value that is now a float."""
        if isinstance(v, Instr) and v.op in ("fpext", "load"):
            return v  # still there, as a double
        if v not in self.wide:
            assert isinstance(v, Instr)
            self.wide[v] = self._after(v, Instr("fpext", "double", [self.narrow[v]], loc=v.loc, name=v.name))
        return self.wide[v]

    def _after(self, i: Instr, new: Instr) -> Instr:
        """Insert behind ``i`` (behind all phis if it is one)."""
        block = i.block
        assert block is not None
        at = len(block.phis) if i.op == "phi" else block.instrs.index(i) + 1
        return block.insert(at, new)

    def _drop_truncations(self) -> None:
        """A ``fptrunc`` of what is a float now is that float."""
        same = {i: i.operands[0] for i in self.fn.instrs() if i.op == "fptrunc" and i.operands[0].type == "float"}
        _replace(self.fn, same)


def _drop_marks(fn: Function) -> None:
    """Remove ``irad.strong.*``: they have done their work."""
    marks = {i: i.operands[0] for i in fn.instrs() if i.op == "call" and i.callee.startswith("irad.strong.")}
    _replace(fn, marks)


def _replace(fn: Function, same: dict[Instr, Value]) -> None:
    """Remove instructions that are equal to one of their operands."""
    if not same:
        return

    def end(v: Value) -> Value:
        while v in same:
            v = same[v]  # type: ignore[index]
        return v

    for b in fn.blocks:
        b.instrs = [i for i in b.instrs if i not in same]
        for i in b.instrs:
            i.operands = [end(v) for v in i.operands]
