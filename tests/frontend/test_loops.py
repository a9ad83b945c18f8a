"""Loop kernels in LLVM IR: local arrays are plain memory, exceptions numbers, nothing of Numba's runtime is left."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from irad.passes.canonical import inline_keeping_branches, optimise
from stage_runner import lower_for

from irad.frontend import Lowered, Options
from irad.frontend.numba_target import Raised, exceptions_in, status_of

A, B = np.zeros(5), np.zeros(5)


def clean(lowered: Lowered) -> str:
    (stage,) = lowered.stages
    return optimise(inline_keeping_branches(stage.text, stage.name))


def called(text: str) -> set[str]:
    """Functions that a module leaves to others, intrinsics of LLVM excepted."""
    names = {f.name for f in llvm.parse_assembly(text).functions if f.is_declaration}
    return {n for n in names if not n.startswith("llvm.")}


def recurrence(b, a):
    for i in range(1, a.shape[0]):
        b[i] = b[i - 1] * 0.5 + a[i]


def temporaries(b, a):
    b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3


def made_inside(b, a):
    t = np.zeros(a.shape[0])
    t[1:] = a[:-1]
    b[:] = np.where(t > 0, t, np.maximum(a, 0.0)) + t.copy()


def reduced(b, a):
    b[0] = np.sum(a) + a.sum() + a.max() + np.min(a) + np.mean(a) + np.dot(a, b) + a @ b


def swapped(b, a):
    p, q = a, b
    for _ in range(4):
        q[1:-1] = 0.5 * (p[2:] + p[:-2])
        p, q = q, p


def raising(b, a):
    if a[0] > 100:
        raise ValueError("too large", 7)
    b[0] = a[0]


@pytest.mark.parametrize("function", [recurrence, temporaries, made_inside, reduced, swapped, raising])
def test_nothing_of_numbas_runtime_is_left(function: Any) -> None:
    text = clean(lower_for(function, B, A))
    assert called(text) <= {"irad.alloc", "irad.incref", "irad.decref"}
    assert "= alloca " not in text
    assert not re.search(r"<\d+ x ", text), "vectorised before anything is differentiated"


def test_a_function_without_local_arrays_makes_none() -> None:
    assert called(clean(lower_for(recurrence, B, A))) == set()


def test_exceptions_have_the_users_class_arguments_and_line() -> None:
    lowered = lower_for(raising, B, A)
    (raised,) = [r for r in lowered.raises.values() if r.type is ValueError and r.args and r.args[0] == "too large"]
    line = raising.__code__.co_firstlineno
    assert raised == Raised(ValueError, ("too large", 7), __file__, line + 2)
    assert status_of(raised) in lowered.raises
    assert str(status_of(raised)) in clean(lowered)
    indices = {r.line for r in lowered.raises.values() if r.type is IndexError}
    assert indices == {line + 1, line + 3}
    error = raised.exception()
    assert isinstance(error, ValueError)
    assert error.args == ("too large", 7)


def test_statuses_are_the_same_in_every_process_and_found_in_text() -> None:
    raised = Raised(KeyError, ("a",), "f.py", 3)
    code = "from irad.frontend.numba_target import *; print(status_of(Raised(KeyError, ('a',), 'f.py', 3)))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert status_of(raised) == int(other.stdout)
    assert exceptions_in(f"ret i32 {status_of(raised)}") == {status_of(raised): raised}
    assert status_of(Raised(KeyError, ("b",), "f.py", 3)) != status_of(raised)


def test_indices_are_checked_unless_told_otherwise() -> None:
    def shift(b, a):
        b[0] = a[3]

    line = shift.__code__.co_firstlineno + 1
    checked = lower_for(shift, B, A)
    assert {(r.type, r.line) for r in checked.raises.values()} == {(IndexError, line)}
    assert not lower_for(shift, B, A, options=Options(boundscheck=False)).raises


def test_the_index_of_a_broadcast_operand_is_no_variable_of_the_loop() -> None:
    """Else it would have to be recorded for every entry."""

    def scaled(b, a):
        t = a * 2.0
        b[0] = t[0]

    text = clean(lower_for(scaled, B, A))
    assert len(re.findall(r"= phi i64", text)) == 1


def test_numbas_own_target_is_left_alone() -> None:
    """Functions of NumPy that a loop kernel has used work in Numba as before, and the other way round."""

    def both(b, a):
        b[:] = np.where(a > 0, a, 2.0) + np.zeros(a.shape[0]) + np.sum(a)

    for _ in range(2):
        lower_for(both, B, A)
        a, b = np.array([1.0, -1.0]), np.zeros(2)
        numba.njit(lambda b, a: both_of(b, a))(b, a)
        np.testing.assert_array_equal(b, [1.0, 2.0])


@numba.njit
def both_of(b, a):
    b[:] = np.where(a > 0, a, 2.0) + np.zeros(a.shape[0]) + np.sum(a)
