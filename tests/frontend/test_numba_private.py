"""Numba's private entry points: each test says which one broke."""

from __future__ import annotations

import inspect

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from numba.core import compiler, cpu, debuginfo, registry
from numba.core.codegen import CodeLibrary
from stage_runner import lower_for

from irad.domains import points
from irad.frontend import numba_private
from irad.frontend.numba_private import NumbaFailure, compile_ir, ir, link, numba_ir, resolvable, session, types


def add(x, y):
    return x + y**2


def test_versions():
    """Numba below 0.62 has typed pointers."""
    assert tuple(map(int, numba.__version__.split(".")[:2])) >= (0, 62)


def test_run_frontend_takes_inline_closures():
    assert "inline_closures" in inspect.signature(compiler.run_frontend).parameters
    assert numba_ir(add).arg_names == ["x", "y"]


def test_flags_exist():
    flags = numba_private._flags(False)
    assert (flags.no_compile, flags.debuginfo, flags.dbg_directives_only, flags.nrt) == (True, True, True, False)
    assert isinstance(flags.fastmath, cpu.FastMathOptions)


def test_a_subtarget_may_have_its_own_codegen_and_debug_information():
    context = numba_private._target_context(False)
    assert context.codegen() is not registry.cpu_target.target_context.codegen()
    assert context.DIBuilder is numba_private._Lines
    assert context.cached_internal_func is not registry.cpu_target.target_context.cached_internal_func


def test_a_library_needs_no_more_methods_than_ours_has():
    assert CodeLibrary.__abstractmethods__ <= set(vars(numba_private._RawLibrary))


def test_debug_information_is_made_by_these_methods():
    for name in ("_di_file", "_di_subroutine_type", "_di_location", "mark_variable"):
        assert callable(getattr(debuginfo.DIBuilder, name)), name


def test_compile_ir_gives_unoptimised_text():
    def larger(x, y):
        return x if x > y else y

    with session(False):
        compiled = compile_ir(numba_ir(larger), (types.float64, types.float64), False)
    assert compiled.argument_types == ["double", "double"]
    assert compiled.signature.return_type == types.float64
    text = compiled.library.get_llvm_str()
    assert "alloca" in text
    assert "nrt" not in compiled.library.name


def test_arguments_of_arrays_are_passed_as_the_wrapper_expects():
    def first(A):
        return A[0, 0]

    with session(False):
        compiled = compile_ir(numba_ir(first), (types.Array(types.float64, 2, "A"),), False)
    pointers = [t.endswith("*") or t == "ptr" for t in compiled.argument_types]
    assert pointers == [True, True, False, False, True, False, False, False, False]


def test_what_numba_cannot_do_is_one_exception():
    with session(False), pytest.raises(NumbaFailure, match="No implementation"):
        compile_ir(numba_ir(add), (types.float64, types.unicode_type), False)


def test_linking_the_same_function_twice():
    with session(False):
        one = compile_ir(numba_ir(add), (types.float64, types.float64), False)
    one.library.linked = [type("Twin", (), {"name": "twin", "_linking_libraries": [], "_final_module": None})()]
    one.library.linked[0]._final_module = llvm.parse_assembly(one.library.texts[0])
    text = link(one.library, "define void @entry() {\n  ret void\n}\n", "entry")
    assert text.count(f"define internal i32 @{one.symbol}(") == 1


def test_user_code_compiled_by_numba_is_not_disturbed():
    """What is compiled for us is not found in Numba's own caches, and the other way round."""

    def kernel(a, b, n):
        i = points(a)
        a[i] = b[i] ** n + np.sign(b[i]) + np.sinc(b[i])

    lower_for(kernel, np.zeros(3), np.zeros(3), 2)
    own = numba.njit(lambda x, n: (x**n, np.sign(x), x % 2.0, np.sinc(x)))
    assert own(3.0, 4) == (81.0, 1.0, 1.0, np.sinc(3.0))
    assert "irad" not in next(iter(own.inspect_llvm().values()))
    assert "@irad.powi.f64" in lower_for(kernel, np.zeros(3), np.zeros(3), 2).stages[0].text


def test_folding_before_variables_are_known_is_undone():
    """Numba folds ``A[i, j]`` of an inner function to ``A[None, None]``."""

    def outer(A, i, j):
        def inner():
            return A[i, j]

        return inner()

    values = [s.value for b in numba_ir(outer).blocks.values() for s in b.body if isinstance(s, ir.Assign)]
    operations = [v.op for v in values if isinstance(v, ir.Expr)]
    assert "getitem" in operations
    assert "static_getitem" not in operations


def test_resolvable():
    assert resolvable(np.sin)
    assert not resolvable(add)
