"""Local variables: which ``alloca`` or constant a pointer comes from, and what is stored there.

A pointer that is derived by address arithmetic, selects and phis from one ``alloca`` or one constant global has that
as its base. An array's pointer has none.
"""

from __future__ import annotations

from .ir.model import Function, Global, Instr, Value


class Slots:
    """The local variables of one function."""

    def __init__(self, fn: Function) -> None:
        self.fn = fn
        self.known: dict[Value, Value | None] = {}
        self.values: dict[Value, list[Value]] = {}
        for i in fn.instrs():
            if i.op == "store":
                base = self.base(i.operands[1])
                if base is not None:
                    self.values.setdefault(base, []).append(i.operands[0])

    def base(self, pointer: Value) -> Value | None:
        """The ``alloca`` or constant that a pointer points into; ``None`` if it is not known to be a single one."""
        if pointer not in self.known:
            found = self._bases(pointer)
            self.known[pointer] = found.pop() if len(found) == 1 else None
        return self.known[pointer]

    def _bases(self, pointer: Value) -> set[Value | None]:
        found: set[Value | None] = set()
        seen: set[Value] = set()
        work = [pointer]
        while work:
            v = work.pop()
            if v in seen:
                continue
            seen.add(v)
            if isinstance(v, Global) or (isinstance(v, Instr) and v.op == "alloca"):
                found.add(v)
            elif isinstance(v, Instr) and v.op in ("getelementptr", "freeze"):
                work.append(v.operands[0])
            elif isinstance(v, Instr) and v.op in ("select", "phi"):
                work += [o for o in v.operands if o.type == "ptr"]
            else:
                found.add(None)
        return found

    def stored(self, base: Value) -> list[Value]:
        """Values stored somewhere into a local variable."""
        return self.values.get(base, [])
