"""The compiled part of launching as text: it compiles for other machines too, and the structs are as assumed."""

from __future__ import annotations

import copy
import itertools
import pickle
import subprocess
import sys

import llvmlite.binding as llvm
import pytest

from irad.codegen import target
from irad.launch import abi, ir_region
from irad.launch.native import TEXT, native
from irad.launch.tables import Pool, Worker


def test_structs_are_as_assumed():
    assert abi.PROBLEM is None


def test_disagreement_is_noticed(monkeypatch):
    for field in ("DATA", "NDIM", "DESCR", "FLAGS"):
        with monkeypatch.context() as m:
            m.setattr(abi, field, abi.HEAD + 32)
            assert "array object" in (abi._disagreement() or "")
    monkeypatch.setattr(abi, "ORDER", abi.HEAD)
    assert "dtype" in (abi._disagreement() or "")


def test_all_functions_are_there():
    assert set(native().object.defines) == {"call", "bound", "run_launches", "region", "threads_wanted"}


@pytest.mark.parametrize(
    ("triple", "machine", "instruction"),
    [
        ("x86_64-unknown-linux-gnu", "x86_64", "ldmxcsr"),
        ("x86_64-pc-windows-msvc", "AMD64", "ldmxcsr"),
        ("aarch64-unknown-linux-gnu", "aarch64", "fpcr"),
        ("arm64-apple-macosx14.0", "arm64", "fpcr"),
        ("riscv64-unknown-linux-gnu", "riscv64", "amoadd"),
    ],
)
def test_compiles_for_other_machines(triple, machine, instruction):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        other = llvm.Target.from_triple(triple).create_target_machine(features="+a" if "riscv" in triple else "", opt=2)
    except RuntimeError:
        pytest.skip(f"this LLVM has no {triple}")
    module = llvm.parse_assembly(TEXT.replace(ir_region.machine_text(), ir_region.machine_text(machine)))
    module.triple, module.data_layout = triple, str(other.target_data)
    target.optimise(module, other)
    assert instruction in other.emit_assembly(module).lower()


def test_words_of_different_threads_do_not_share_cache_lines():
    shared = [Pool.BUSY, Pool.STATE, Pool.WAKE, Pool.NEXT, Pool.WORKERS]
    assert all(b - a >= 8 for a, b in itertools.pairwise(shared))
    assert max(p for p in Pool if p < Pool.BUSY) < Pool.BUSY
    assert Worker.ASLEEP == 0


def test_launches_work_where_the_structs_are_unknown():
    """Without knowing the structs, bound launches check their arrays in Python and kernels always ask Python."""
    program = """
import sys
sys.path.insert(0, {root!r})
from irad.launch import abi
abi.PROBLEM = "pretended"
import numpy as np
from irad.errors import IradError
from irad.launch import block
from irad.launch.bound import Bound, bind
from irad.launch.launcher import Launcher
from tests.launch.kernels import scale
a, out, kernel = np.ones((2, 3, 4)), np.zeros((2, 3, 4)), scale()
arrays = dict(out=out, a=a)
words = block.fill(kernel.layout, arrays, dict(s=("double", 3.0)))
bound = bind(kernel, words, kernel.plan(words), arrays)
assert Bound.__call__ is Bound.python_call
bound()
assert np.all(out == 3)
a.resize((1, 3, 4), refcheck=False)
try:
    bound()
except IradError as error:
    print(error.reason)
print(Launcher(lambda *args, **kw: (args, kw))(1, b=2))
"""
    root = str(__import__("pathlib").Path(__file__).resolve().parents[2])
    run = [sys.executable, "-c", program.format(root=root)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "'a' has been resized" in done.stdout
    assert "((1,), {'b': 2})" in done.stdout


def test_holder_subclasses_keep_their_table_in_place():
    class Named(abi.Holder):
        def __init__(self, name, table):
            self.name, self._table = name, table

    for k in range(3):
        holder = Named("x", 2**40 + k)
        assert abi.word_at(id(holder) + abi.HEAD) == id(holder._table)
        assert copy.copy(holder) is holder
        assert copy.deepcopy([holder])[0] is holder
        with pytest.raises(TypeError, match="Named holds addresses"):
            pickle.dumps(holder)
