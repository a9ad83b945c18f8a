"""Random loop kernels: primal, forward and reverse mode against runs on dual numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from irad.passes.canonical import inline_keeping_branches
from irad.passes.guard import guard_memory, guard_values
from irad.passes.ir.model import Function
from irad.passes.ir.read import read_function
from irad.passes.loop_function import loop_function
from irad.passes.tidy import tidy
from loop_language import FLOAT_ARRAYS, N, Node, holds, programs
from loop_reference import Reference, Unfit
from loop_runner import Loop
from loop_text import PARAMS, RAISED, text

from irad.errors import NotDifferentiableError

Values = dict[str, Any]
INPUTS = (*FLOAT_ARRAYS, "a")


def as_it_stands(source: str) -> Function:
    """Without LLVM's optimiser, which brings loops into a form that the passes see all the time anyway."""
    return tidy(read_function(guard_memory(inline_keeping_branches(guard_values(source), "f")), "f"))


@st.composite
def arguments(draw: st.DrawFn) -> Values:
    """Arrays with all kinds of strides, entries among which there are ties."""
    values: Values = {}
    numbers = st.sampled_from([0.0, 1.0, -0.5, 0.3, 0.7, -1.1, 1.9, 0.5])
    for name, elem in FLOAT_ARRAYS.items():
        step = draw(st.sampled_from([1, 2, -1]))
        dtype = np.float64 if elem == "double" else np.float32
        values[name] = np.zeros(N * abs(step), dtype)[::step][:N]
        values[name][...] = [draw(numbers) for _ in range(N)]
    values["I"] = np.array([draw(st.integers(-2, 5)) for _ in range(N)])
    return values | {"a": draw(numbers), "n": draw(st.integers(0, 5))}


def check(program: tuple[Node, ...], values: Values, active: frozenset[str], optimised: bool) -> str:
    """Everything about one program; what came of it, in a word."""
    reference = Reference({n: values[n] for n in FLOAT_ARRAYS}, values["I"], values["a"], values["n"])
    reference.run(program)
    if optimised and holds(program, "F"):
        raise Unfit  # weak numbers would be added in float32, which the reference does not
    source = text(program)
    try:
        fn = loop_function(source, "f", frozenset()) if optimised else as_it_stands(source)
        loop = Loop(fn, PARAMS, active, optimise=optimised)
        loop.tangent, loop.adjoint  # noqa: B018
    except NotDifferentiableError as e:
        return f"refused: {e}"
    rounding = 3e-5 if holds(program, "F") else 1e-10
    scale = reference.largest

    def as_expected(after: Values, what: str) -> None:
        for name in FLOAT_ARRAYS:
            expected = [v.x for v in reference.arrays[name]]
            np.testing.assert_allclose(after[name], expected, rtol=1e-12, atol=1e-12, err_msg=f"{what}: {name}")
        np.testing.assert_array_equal(after["I"], reference.integers, what)

    status, after = loop.run(values)
    assert status == (RAISED if reference.raised else 0)
    as_expected(after, "primal")
    rng = np.random.default_rng(1)
    direction = {n: np.float64(np.float32(rng.uniform(-1, 1, N if n in FLOAT_ARRAYS else ()))) for n in INPUTS}
    flat = np.concatenate([np.atleast_1d(direction[n] * (n in loop.active)) for n in INPUTS])
    status, after, tangents = loop.push(values, direction)
    assert status == (RAISED if reference.raised else 0)
    as_expected(after, "tangent")
    if not reference.raised:
        for name, found in tangents.items():
            expected = reference.jacobian(name) @ flat
            np.testing.assert_allclose(found, expected, rtol=rounding, atol=rounding * scale, err_msg=f"jvp: {name}")
    outputs = [n for n in FLOAT_ARRAYS if n in loop.active]
    seeds = [{n: rng.uniform(-1, 1, N).astype(values[n].dtype) for n in outputs} for _ in range(2)]
    pulled = loop.pull(values, [*seeds, seeds[0]])
    assert pulled.status == (RAISED if reference.raised else 0)
    as_expected(pulled.after, "augmented")
    if reference.raised:
        return "raised"
    for seed, cotangents in zip(seeds, pulled.found, strict=False):
        total = sum((seed[n] @ reference.jacobian(n) for n in outputs), np.zeros(reference.size))
        parts = dict(zip(INPUTS, np.split(total, range(N, len(FLOAT_ARRAYS) * N + 1, N)), strict=True))
        for name, found in cotangents.items():
            np.testing.assert_allclose(found, parts[name], rtol=rounding, atol=rounding * scale, err_msg=f"vjp: {name}")
    for name, found in pulled.found[2].items():
        np.testing.assert_array_equal(found, pulled.found[0][name], "a second walk back")
    return "right"


ACTIVE = st.sampled_from([frozenset(INPUTS), frozenset({"X"}), frozenset({"R", "a"}), frozenset({"Y", "F"})])


@pytest.mark.parametrize("optimised", [False, True])
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(program=programs(), values=arguments(), active=ACTIVE)
def test_random_loops(optimised: bool, program: tuple[Node, ...], values: Values, active: frozenset[str]) -> None:
    try:
        result = check(program, values, active, optimised)
    except Unfit:
        assume(False)
    assert not result.startswith("refused"), result
