"""Right-hand sides of real kernels: what they capture, scratch arrays, statements that overwrite, guards, precision."""

import numpy as np
import pytest
from ode_reference import complex_gradient, relative, states_at

from irad.domains import interior, points
from irad.errors import AliasError, DomainError, IradError, NotDifferentiableError
from irad.fd import all as everywhere
from irad.fd import d_xa, inn
from irad.kernel import kernel
from irad.ode.adjoint import adjoint
from irad.ode.grid import Grid
from irad.ode.problem import ODEProblem
from irad.ode.rock2 import ROCK2
from irad.ode.sensitivity import DiscreteAdjoint, GaussAdjoint, InterpolatingAdjoint
from irad.ode.solve import solve
from irad.transforms import jvp

N = 9
X = np.linspace(0.0, 1.0, N)
GRID = Grid.uniform(0.0, 0.3, 5, stages=6)
GLOBAL_FIELD = 1.0 + X * (1.0 - X)


def check(f, p, captured, rate, u0=None, grid=GRID):
    """Adjoint and tangent of a solve on a grid against complex steps of ``rate(t, u, p, *captured)``.

    ``captured``: pairs (name or array, array).
    """
    u0 = 0.3 + 0.5 * np.sin(3 * X) if u0 is None else u0
    sol = solve(ODEProblem(f, u0, (0.0, 0.3), p), ROCK2(), grid=grid, saveat=[0.1, 0.3])
    q = np.random.default_rng(0).normal(size=(2, *u0.shape))
    names = [name for name, _ in captured]
    g = adjoint(sol, q, wrt=("u0", "p", *names))
    arrays = [a.copy() for _, a in captured]
    samples = [grid.locate(0.1), grid.locate(0.3)]

    def loss(u, x, *fields):
        found = states_at(lambda t, v: rate(t, v, x, *fields), u, grid, samples)
        return sum(np.sum(a * b) for a, b in zip(q, found, strict=True))

    assert loss(u0, p, *arrays) == pytest.approx(sum(np.vdot(a, b) for a, b in zip(q, sol.u, strict=True)), rel=1e-12)
    assert relative(g.u0, complex_gradient(lambda z: loss(z, p, *arrays), u0)) < 1e-11
    assert relative(g.p, complex_gradient(lambda z: loss(u0, z, *arrays), p)) < 1e-11
    for i, array in enumerate(arrays):
        exact = complex_gradient(lambda z, i=i: loss(u0, p, *arrays[:i], z, *arrays[i + 1 :]), array)
        assert relative(g[2 + i], exact) < 1e-11
    rng = np.random.default_rng(1)
    dots = {"u0": rng.normal(size=u0.shape), "p": rng.normal(size=p.shape)}
    dots.update({n: rng.normal(size=a.shape) for n, a in captured if isinstance(n, str)})
    ahead = sum(np.vdot(a, b) for a, b in zip(q, jvp(sol, tangents=dots), strict=True))
    back = np.vdot(g.u0, dots["u0"]) + np.vdot(g.p, dots["p"])
    back += sum(np.vdot(g[2 + i], dots[n]) for i, (n, _) in enumerate(captured) if n in dots)
    assert ahead == pytest.approx(back, rel=1e-12)
    return sol, g


@kernel
def diffuse(du, u, cond, k):
    i = interior(u)
    du[i] = k * cond[i] * (u[i + 1] - 2.0 * u[i] + u[i - 1])


def diffusion(u, cond, k):
    out = np.zeros(N, np.result_type(u, cond, k))
    out[1:-1] = k * cond[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2])
    return out


def test_scalars_from_parameters_and_time():
    cond = 1.0 + X

    def f(du, u, p, t):
        diffuse(du, u, cond, p[0] * np.exp(-p[1] * t) + p[2] ** 2)

    p = np.array([1.5, 2.0, 0.3])
    check(f, p, [("cond", cond)], lambda t, u, p, cond: diffusion(u, cond, p[0] * np.exp(-p[1] * t) + p[2] ** 2))


def test_arrays_that_the_kernel_captures():
    local = 1.0 + X**2

    @kernel
    def reaction(du, u, p):
        i = points(u)
        du[i] = GLOBAL_FIELD[i] * u[i] * (1.0 - u[i]) + local[i] * p[0]

    def f(du, u, p, t):
        reaction(du, u, p)

    captured = [("GLOBAL_FIELD", GLOBAL_FIELD), ("reaction.local", local)]
    sol, g = check(f, np.array([0.7]), captured, lambda t, u, p, G, L: G * u * (1 - u) + L * p[0])
    assert g._fields == ("u0", "p", "GLOBAL_FIELD", "reaction_local")
    before = adjoint(sol, np.ones(N), wrt=("u0", "GLOBAL_FIELD"))
    local[:] = np.nan  # the solution keeps copies of what kernels capture, too
    after = adjoint(sol, np.ones(N), wrt=("u0", "GLOBAL_FIELD"))
    assert np.array_equal(before.u0, after.u0)
    assert np.array_equal(before.GLOBAL_FIELD, after.GLOBAL_FIELD)
    assert np.array_equal(sol(0.2), sol(0.2))


def test_statements_through_captured_scratch():
    """Fluxes on a staggered grid, in one kernel of two statements; the scratch array is captured by f."""
    q, cond = np.zeros(N - 1), 1.0 + X[1:]

    @kernel
    def flux(du, u, q, cond, k):
        q[everywhere] = -k * everywhere(cond) * d_xa(u)
        du[inn] = -d_xa(q)

    def f(du, u, p, t):
        flux(du, u, q, cond, p[0])

    def rate(t, u, p, cond):
        out = np.zeros(N, np.result_type(u, p, cond))
        out[1:-1] = np.diff(p[0] * cond * np.diff(u))
        return out

    check(f, np.array([1.3]), [("cond", cond)], rate)


def test_several_kernels_with_accumulation():
    cond, w = 1.0 + X, np.cos(X)

    @kernel
    def add_source(du, u, w, s):
        i = points(u)
        du[i] += s * w[i] * np.sin(u[i])

    def f(du, u, p, t):
        diffuse(du, u, cond, p[0])
        add_source(du, u, w, p[1] * t)

    def rate(t, u, p, cond, w):
        return diffusion(u, cond, p[0]) + p[1] * t * w * np.sin(u)

    check(f, np.array([1.1, 0.6]), [("cond", cond), ("w", w)], rate)


def test_scratch_that_is_overwritten_in_place():
    """Nonlinear in-place updates, within one kernel and over two: their adjoints need what was there before."""
    s = np.zeros(N)

    @kernel
    def make(s, u, a):
        s[everywhere] = a * everywhere(u)
        s[everywhere] = everywhere(s) * everywhere(s) + everywhere(s)

    @kernel
    def square(s):
        i = points(s)
        s[i] = s[i] * s[i]

    @kernel
    def use(du, s, u):
        i = points(u)
        du[i] = s[i] - u[i]

    def f(du, u, p, t):
        make(s, u, p[0])
        square(s)
        use(du, s, u)

    check(f, np.array([0.4]), [], lambda t, u, p: ((p[0] * u) ** 2 + p[0] * u) ** 2 - u)


def test_two_fields_in_one_state():
    @kernel
    def react(dv, dw, v, w, a):
        i = points(v)
        dv[i] = a * v[i] * w[i]
        dw[i] = -v[i] * w[i]

    def f(du, u, p, t):
        react(du[0], du[1], u[0], u[1], p[0])

    u0 = np.stack([0.5 + X, 1.5 - X])
    check(f, np.array([0.8]), [], lambda t, u, p: np.stack([p[0] * u[0] * u[1], -u[0] * u[1]]), u0)


def test_guards_on_values_leave_zeros_behind():
    """What a guard wrote at one call may not be seen at the next one."""

    @kernel
    def positive(du, u, c):
        i = points(u)
        if u[i] > c:
            du[i] = -u[i]

    def f(du, u, p, t):
        positive(du, u, p[0])

    def rate(t, u, p):
        return np.where(np.real(u) > np.real(p[0]), -u, 0.0)

    grid = Grid.uniform(0.0, 3.0, 30, stages=3)
    u0 = np.linspace(0.1, 1.5, N)
    sol = solve(ODEProblem(f, u0, (0.0, 3.0), np.array([0.5])), ROCK2(), grid=grid)
    end = states_at(lambda t, u: rate(t, u, [0.5]), u0, grid, [(29, 1.0)])[0]
    assert sol.u[-1] == pytest.approx(end, rel=1e-12)


@pytest.mark.parametrize("method", [DiscreteAdjoint, InterpolatingAdjoint, GaussAdjoint])
def test_all_methods_on_an_adaptive_solve(method):
    cond = 1.0 + X

    def f(du, u, p, t):
        diffuse(du, u, cond, p[0])

    sol = solve(ODEProblem(f, np.sin(3 * X), (0.0, 0.3), np.array([2.0])), rtol=1e-6, atol=1e-6, sensealg=method())
    assert sol.stats.njvp > 0
    g = adjoint(sol, np.ones(N), wrt=("u0", "p", "cond"))
    A = np.stack([diffusion(e, cond, 2.0) for e in np.eye(N)], axis=1)
    values, vectors = np.linalg.eig(A)
    exp = (vectors * np.exp(0.3 * values)) @ np.linalg.inv(vectors)
    assert g.u0 == pytest.approx(exp.real.T @ np.ones(N), rel=1e-4)
    assert g.p[0] == pytest.approx((0.3 * A @ exp.real @ np.sin(3 * X)).sum() / 2.0, rel=1e-3)
    assert g.cond @ cond == pytest.approx(g.p[0] * 2.0, rel=1e-3)


def test_float32():
    cond = (1.0 + X).astype(np.float32)

    def f(du, u, p, t):
        diffuse(du, u, cond, p[0])

    u0 = np.sin(3 * X).astype(np.float32)
    sol = solve(ODEProblem(f, u0, (0.0, 0.3), np.array([2.0])), rtol=1e-3, atol=1e-3, sensealg=DiscreteAdjoint())
    g = adjoint(sol, np.ones(N, np.float32), wrt=("u0", "p", "cond"))
    assert sol.u[-1].dtype == g.u0.dtype == g.cond.dtype == np.float32
    assert g.p.dtype == np.float64
    assert float(g.cond @ cond) == pytest.approx(2.0 * g.p[0], rel=1e-4)


def test_replays_are_bitwise_for_any_number_of_threads():
    from irad.launch.threads import using_threads

    @kernel
    def heat(du, u, k):
        i, j = interior(u)
        du[i, j] = k * (u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - 4.0 * u[i, j])

    def f(du, u, p, t):
        heat(du, u, p[0])

    u0 = np.random.default_rng(0).normal(size=(150, 170))
    prob = ODEProblem(f, u0, (0.0, 2.0), np.array([1.0]))
    ends, grads = [], []
    for threads in (1, 2, 4):
        with using_threads(threads):
            sol = solve(prob, ROCK2(spectral_radius=8.0), rtol=1e-3, atol=1e-3)
            ends.append(sol.u[-1])
            grads.append(adjoint(sol, u0))
    assert all(np.array_equal(e, ends[0]) for e in ends)
    assert all(np.array_equal(g.u0, grads[0].u0) and np.array_equal(g.p, grads[0].p) for g in grads)


# refusals ------------------------------------------------------------------------------------------------------------


def line_of(function, text):
    import inspect

    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_errors_name_the_users_line():
    total = np.zeros(N)

    @kernel
    def accumulate(s, u):
        i = points(u)
        s[i] += u[i]

    @kernel
    def copy(out, u):
        i = points(u)
        out[i] = u[i]

    def f(du, u, p, t):
        copy(du, total)  # read
        copy(total, u)

    with pytest.raises(IradError, match=rf"test_real_kernels\.py:{line_of(f, '# read')}"):
        solve(ODEProblem(f, np.ones(N), (0.0, 1.0)))

    def g(du, u, p, t):
        accumulate(total, u)
        copy(du, total)

    with pytest.raises(IradError, match="an earlier call of it left in the scratch array total"):
        solve(ODEProblem(g, np.ones(N), (0.0, 1.0)))

    def h(du, u, p, t):
        copy(du, u * 2)  # computes

    sol = solve(ODEProblem(h, np.ones(N), (0.0, 0.1)))  # can be solved all the same
    with pytest.raises(NotDifferentiableError, match=rf"test_real_kernels\.py:{line_of(h, '# computes')}"):
        adjoint(sol, np.ones(N), wrt="u0")


def test_kernels_refuse_as_ever():
    @kernel
    def shift(du, u):
        i = points(u)
        du[i] = u[i + 1]

    with pytest.raises(DomainError):
        solve(ODEProblem(lambda du, u, p, t: shift(du, u), np.ones(N), (0.0, 1.0)))

    @kernel
    def copy(out, u):
        i = points(u)
        out[i] = u[i]

    with pytest.raises(AliasError):
        solve(ODEProblem(lambda du, u, p, t: copy(du[1:], du[:-1]), np.ones(N), (0.0, 1.0)))

    def to_u(du, u, p, t):
        copy(du, u)
        copy(u, du)

    with pytest.raises(IradError, match="which is u"):
        solve(ODEProblem(to_u, np.ones(N), (0.0, 1.0)))
    with pytest.raises(TypeError, match="copy"):
        solve(ODEProblem(lambda du, u, p, t: copy(du), np.ones(N), (0.0, 1.0)))
