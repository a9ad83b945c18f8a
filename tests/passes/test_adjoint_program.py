"""Adjoint programs against complex-step derivatives of twins in plain Python.

Every twin runs its loops on complex numbers: the imaginary part of f(x + i h v) / h is the exact directional
derivative, and shares nothing with the passes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irad.domains import domain, interior, points

sys.path.insert(0, str(Path(__file__).parent))
from programs import Built, run

RNG = np.random.default_rng(5)


def heat(dT, T, Ci, lam, dx):
    i, j = interior(dT)
    dT[i, j] = lam[0] * Ci[i, j] * ((T[i + 1, j] - 2 * T[i, j] + T[i - 1, j]) / dx**2 + T[i, j + 1] * T[i, j - 1])


def heat_twin(dT, T, Ci, lam, dx):
    for i in range(1, dT.shape[0] - 1):
        for j in range(1, dT.shape[1] - 1):
            heat_at = (T[i + 1, j] - 2 * T[i, j] + T[i - 1, j]) / dx**2 + T[i, j + 1] * T[i, j - 1]
            dT[i, j] = lam[0] * Ci[i, j] * heat_at


def in_place(q, T):
    i = interior(q)
    q[i] = q[i] * (T[i + 1] - T[i - 1])


def in_place_twin(q, T):
    for i in range(1, len(q) - 1):
        q[i] = q[i] * (T[i + 1] - T[i - 1])


def overwrite(v, u, a):
    i = points(v)
    t = v[i] * u[i]
    v[i] = t * a
    v[i] = v[i] + v[i] * u[i]


def overwrite_twin(v, u, a):
    for i in range(len(v)):
        t = v[i] * u[i]
        v[i] = t * a
        v[i] = v[i] + v[i] * u[i]


def periodic(v, u, w):
    i, j = points(v)
    v[i, j] = u[i - 1, j] * u[i, j - 2] + w[j] * u[i, j] * w[j - 1]


def periodic_twin(v, u, w):
    for i in range(v.shape[0]):
        for j in range(v.shape[1]):
            v[i, j] = u[i - 1, j] * u[i, j - 2] + w[j] * u[i, j] * w[j - 1]


def maps(v, u, rho, lam, a):
    i, j = interior(v)
    v[i, j] = lam[0] * rho[j] * u[i, j + 1] * a + u[j, i] * u[0, j] + lam[-1] * rho[i]


def maps_twin(v, u, rho, lam, a):
    for i in range(1, v.shape[0] - 1):
        for j in range(1, v.shape[1] - 1):
            v[i, j] = lam[0] * rho[j] * u[i, j + 1] * a + u[j, i] * u[0, j] + lam[-1] * rho[i]


def branches_real(v, u, a):
    i = interior(v)
    if u[i] > a:
        v[i] = u[i + 1] * u[i]
    elif i > 3:
        v[i] = a * u[i - 1]
    if v[i] < 0.5:
        v[i] = v[i] * v[i]


def branches_twin(v, u, a):
    for i in range(1, len(v) - 1):
        if u[i].real > a.real:
            v[i] = u[i + 1] * u[i]
        elif i > 3:
            v[i] = a * u[i - 1]
        if v[i].real < 0.5:
            v[i] = v[i] * v[i]


def shifted_part(v, u, k):
    i, j = domain((2, v.shape[0] - k), (1, k))
    v[i, j] = u[i - 2, j] * u[i, j + 1] + u[i + k, j] * 3.0


def shifted_part_twin(v, u, k):
    for i in range(2, v.shape[0] - k):
        for j in range(1, k):
            v[i, j] = u[i - 2, j] * u[i, j + 1] + u[i + k, j] * 3.0


def r(*shape: int) -> Any:
    return RNG.random(shape)


CASES: dict[str, tuple[Callable, Callable, tuple, tuple[str, ...]]] = {
    "heat": (heat, heat_twin, (r(6, 7), r(6, 7), r(6, 7), r(1), 0.7), ("T", "Ci", "lam", "dx")),
    "heat-thin": (heat, heat_twin, (r(3, 3), r(3, 3), r(3, 3), r(1), 0.7), ("T", "Ci", "lam", "dx")),
    "heat-empty": (heat, heat_twin, (r(2, 9), r(2, 9), r(2, 9), r(1), 0.7), ("T", "Ci", "lam", "dx")),
    "in-place": (in_place, in_place_twin, (r(9), r(9)), ("T",)),
    "overwrite": (overwrite, overwrite_twin, (r(7), r(7), 0.3), ("u", "a")),
    "periodic": (periodic, periodic_twin, (r(5, 6), r(5, 6), r(6)), ("u", "w")),
    "maps": (maps, maps_twin, (r(5, 5), r(5, 5), r(5), r(2), 0.3), ("u", "rho", "lam", "a")),
    "branches": (branches_real, branches_twin, (r(12), r(12), 0.4), ("u", "a")),
    "part": (shifted_part, shifted_part_twin, (r(9, 6), r(9, 6), 3), ("u",)),
}


def directional(twin: Callable, args: dict[str, Any], direction: dict[str, Any], seeds: dict[str, Any]) -> float:
    """d/dh sum(seed * result) along ``direction``, by complex step."""
    h = 1e-30
    z = {n: a.astype(complex) if isinstance(a, np.ndarray) else a for n, a in args.items()}
    for n, v in direction.items():
        z[n] = z[n] + 1j * h * (v if isinstance(args[n], np.ndarray) else v[0])
    twin(**z)
    return sum(float((s * z[n].imag / h).sum()) for n, s in seeds.items())


@pytest.mark.parametrize("name", CASES)
def test_primal_and_adjoint_agree_with_plain_python(name: str) -> None:
    function, twin, args, wrt = CASES[name]
    built = Built(function, args)
    want = built.fresh()
    twin(**want)
    got = built.fresh()
    run(built.primal, got)
    for n in built.primal.written:
        np.testing.assert_allclose(got[n], want[n], rtol=1e-14, atol=0)

    active = {*wrt, *built.primal.written}
    seeds = {n: RNG.standard_normal(built.args[n].shape) for n in sorted(built.primal.written)}
    shadows = built.pull(active, seeds)
    for _ in range(3):
        direction = {n: RNG.standard_normal(np.shape(built.args[n]) or (1,)) for n in sorted(active)}
        want_dot = directional(twin, built.fresh(), direction, seeds)
        got_dot = sum(float((shadows[n] * direction[n]).sum()) for n in active)
        assert got_dot == pytest.approx(want_dot, rel=1e-12, abs=1e-13)


def test_a_shadow_is_added_to_or_assigned() -> None:
    built = Built(heat, CASES["heat"][2])
    seed = RNG.standard_normal((6, 7))
    plain = built.pull({"dT", "T"}, {"dT": seed})["T"]
    program = built.adjoint({"dT", "T"})
    shadows = {"dT": seed.copy(), "T": np.ones((6, 7))}
    run(program, built.values_for(program), shadows)
    np.testing.assert_allclose(shadows["T"], plain + 1, rtol=1e-14)
    program = built.adjoint({"dT", "T"}, assign=frozenset({"T"}), keep_seed=frozenset({"dT"}))
    shadows = {"dT": seed.copy(), "T": np.full((6, 7), np.nan)}
    run(program, built.values_for(program), shadows)
    np.testing.assert_array_equal(shadows["T"], plain)
    np.testing.assert_array_equal(shadows["dT"], seed)


def test_assign_writes_zeros_where_nothing_depends_on_the_array() -> None:
    built = Built(heat, CASES["heat"][2])
    program = built.adjoint({"dT", "lam", "T"}, assign=frozenset({"lam"}))
    shadows = {"dT": np.zeros((6, 7)), "T": np.zeros((6, 7)), "lam": np.full(1, 7.0)}
    run(program, built.values_for(program), shadows)
    assert shadows["lam"][0] == 0


def test_a_kernel_linear_in_an_array_does_not_read_it() -> None:
    def linear(dT, T, Ci):
        i = interior(dT)
        dT[i] = Ci[i] * (T[i + 1] - T[i - 1])

    built = Built(linear, (r(8), r(8), r(8)))
    assert built.adjoint({"dT", "T"}).reads == {"Ci"}
    assert built.adjoint({"dT", "Ci"}).reads == {"T"}
    assert built.adjoint({"dT", "T", "Ci"}).reads == {"T", "Ci"}


def test_old_values_are_asked_for_only_where_the_adjoint_reads_them() -> None:
    built = Built(in_place, CASES["in-place"][2])
    assert built.adjoint({"q"}).saves == ()
    assert built.adjoint({"q", "T"}).saves == ((0, "q", "q@0"),)


@pytest.mark.parametrize(("n", "k"), [(5, 10), (5, -11), (0, 3), (5, sys.maxsize)])
def test_a_sum_of_a_place_outside_of_its_array_is_left_alone(n: int, k: int) -> None:
    """No point reads ``lam[k]``: nothing may be written there, not even what was there before."""

    def kernel(v, u, lam, k):
        i = points(v)
        if -lam.shape[0] <= k < lam.shape[0]:
            v[i] = lam[k] * u[i]
        else:
            v[i] = u[i]

    memory = np.full(64, 1.0)
    memory[:20] = memory[23:] = np.uint64(0x7FF0000000000001).view(np.float64)  # a signalling NaN: adding to it shows
    before = memory.view(np.int64).copy()
    built = Built(kernel, (np.ones(n), np.ones(n), np.ones(3), k))
    program = built.adjoint({"v", "u", "lam"})
    run(program, built.values_for(program), {"v": np.ones(n), "u": np.zeros(n), "lam": memory[20:23]})
    np.testing.assert_array_equal(memory.view(np.int64), before)


def test_every_stage_boundary_is_a_barrier_in_reverse() -> None:
    """The adjoint of a statement reads shadows that the adjoint of the next statement has finished."""
    from irad.fd import all as every
    from irad.fd import d_xa, inn

    def staggered(V, P, a):
        V[inn] = a * d_xa(P)
        V[every] = every(V) * every(V)

    def twin(V, P, a):
        V[1:-1] = a * (P[1:] - P[:-1])
        V[:] = V * V

    args = (r(6), r(5), 0.3)
    built = Built(staggered, args)
    seeds = {"V": RNG.standard_normal(6)}
    shadows = built.pull({"V", "P", "a"}, seeds)
    direction = {"V": r(6), "P": r(5), "a": r(1)}
    want = directional(twin, built.fresh(), direction, seeds)
    assert sum(float((shadows[n] * direction[n]).sum()) for n in direction) == pytest.approx(want, rel=1e-12)


def test_joined_sweeps_give_what_separate_sweeps_give() -> None:
    built = Built(heat, CASES["heat"][2])
    seed = {"dT": RNG.standard_normal((6, 7))}
    active = {"dT", "T", "Ci", "lam", "dx"}
    keep = frozenset({"dT"})
    joined = built.pull(active, seed, keep_seed=keep)
    apart = built.pull(active, seed, keep_seed=keep, merge=False)
    assert len(built.adjoint(active, keep_seed=keep).strategy) < len(
        built.adjoint(active, keep_seed=keep, merge=False).strategy
    )
    for name in active:
        np.testing.assert_allclose(joined[name], apart[name], rtol=1e-14)


def test_arrays_of_different_extents_are_joined_within_their_own_extents() -> None:
    def staggered(q, T, C):
        i, j = domain((0, T.shape[0] - 1), (0, C.shape[1]))
        q[i, j] = C[i, j] * (T[i + 1, j] - T[i, j])

    def twin(q, T, C):
        for i in range(T.shape[0] - 1):
            for j in range(C.shape[1]):
                q[i, j] = C[i, j] * (T[i + 1, j] - T[i, j])

    built = Built(staggered, (r(5, 4), r(6, 5), r(5, 4)))
    seeds = {"q": RNG.standard_normal((5, 4))}
    keep = frozenset({"q"})
    shadows = built.pull({"q", "T", "C"}, seeds, keep_seed=keep, assign=frozenset({"T", "C"}))
    direction = {"T": r(6, 5), "C": r(5, 4)}
    want = directional(twin, built.fresh(), direction, seeds)
    assert sum(float((shadows[n] * direction[n]).sum()) for n in direction) == pytest.approx(want, rel=1e-12)
