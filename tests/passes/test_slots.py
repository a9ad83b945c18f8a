"""Which local variable or table a pointer points into."""

from __future__ import annotations

from irad.passes.ir.model import Global, Instr
from irad.passes.ir.read import read_function
from irad.passes.slots import Slots

TEXT = """
@t = private constant [2 x double] [double 1.0, double 2.0]
define void @f(ptr %T.data, i64 %n, i1 %c) {
entry:
  %a = alloca [4 x double]
  %b = alloca double
  %p = getelementptr [4 x double], ptr %a, i64 0, i64 %n
  %q = select i1 %c, ptr %p, ptr %a
  %mixed = select i1 %c, ptr %a, ptr %b
  %array = select i1 %c, ptr %a, ptr %T.data
  %table = getelementptr [2 x double], ptr @t, i64 0, i64 %n
  store double 3.0, ptr %q
  store double 4.0, ptr %a
  store double 5.0, ptr %b
  store double 6.0, ptr %T.data
  br label %head
head:
  %i = phi ptr [ %p, %entry ], [ %j, %head ]
  %j = getelementptr double, ptr %i, i64 1
  br i1 %c, label %head, label %done
done:
  ret void
}"""


def test_bases_and_what_is_stored_there() -> None:
    fn = read_function(TEXT, "f")
    named = {i.name: i for i in fn.instrs() if i.name}
    slots = Slots(fn)
    a, b = named["a"], named["b"]
    for name in ("a", "p", "q", "i", "j"):
        assert slots.base(named[name]) is a, name
    assert slots.base(named["mixed"]) is None
    assert slots.base(named["array"]) is None
    assert slots.base(fn.args[0]) is None
    assert isinstance(slots.base(named["table"]), Global)
    assert [v.text for v in slots.stored(a)] == ["3.000000e+00", "4.000000e+00"]  # type: ignore[attr-defined]
    assert len(slots.stored(b)) == 1
    assert isinstance(b, Instr)
