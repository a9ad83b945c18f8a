"""Kernels in plain NumPy with the low-level methods of a real one: bind, bind_vjp, bind_jvp, params, adjoint_needs.

A fake kernel is one function ``compute(values) -> {written name: (index, new values)}`` over a dictionary of arrays and
scalars by parameter name. Its derivatives come from complex steps (exact to rounding; only for small arrays), or from
hand-written ``push`` and ``pull``. Values that the adjoint has not asked for are replaced by wrong ones.
"""

import numpy as np

from irad import recording
from irad.errors import ShadowError

STEP = 1e-30


class Param:
    capture = None

    def __init__(self, name, written, read):
        self.name, self.written, self.read = name, written, read


class FakeBound:
    def __init__(self, run, names, args, tangents=None):
        self.run, self.names, self.args = run, names, list(args)
        self.tangents = dict(tangents or {})

    def __call__(self):
        self.run(dict(zip(self.names, self.args, strict=True)), self.tangents)

    def set(self, name, value):
        if name.endswith(".tangent"):
            self.tangents[name.removesuffix(".tangent")] = value
        else:
            self.args[self.names.index(name)] = value


class FakeKernel:
    """``needs``: arrays whose values before the launch ``compute`` depends on in a way that its adjoint reads them.

    ``accumulates``: written arrays that ``compute`` reads; ``keep``: whether the adjoint can leave a seed as it is.
    """

    def __init__(self, name, names, written, compute, needs=(), accumulates=(), push=None, pull=None, keep=True):
        self.__name__, self.names, self.written = name, tuple(names), frozenset(written)
        self.compute, self.needs, self.accumulates = compute, frozenset(needs), frozenset(accumulates)
        self._push, self._pull, self.keep = push, pull, keep
        self.binds = self.runs = self.vjps = self.jvps = 0
        self.kept, self.assigned = [], []

    def __call__(self, *args, **kwargs):
        recorder = recording.active()
        if recorder is not None:
            recorder.launch(self, args, kwargs)
        else:
            self.bind(*self.positional(args, kwargs))()

    def positional(self, args, kwargs):
        return (*args, *(kwargs[n] for n in self.names[len(args) :]))

    def params(self, args):
        assert len(args) == len(self.names), f"{self.__name__} takes {len(self.names)} arguments"
        return [Param(n, n in self.written, n not in self.written or n in self.accumulates) for n in self.names]

    def _check(self, values):
        for n in self.names:
            assert isinstance(values[n], (np.ndarray, float, int, np.floating)), (n, type(values[n]))
        for n in self.written:
            assert values[n].flags.writeable, f"{n} is read-only"

    def bind(self, *args):
        assert len(args) == len(self.names)
        self._check(dict(zip(self.names, args, strict=True)))
        self.binds += 1

        def run(values, _):
            self.runs += 1
            for n, (index, new) in self.compute(values).items():
                values[n][index] = new

        return FakeBound(run, self.names, args)

    def push(self, values, dots):
        """Tangents of the written entries."""
        if self._push is not None:
            return self._push(values, dots)
        moved = {n: (v + 1j * STEP * dots[n] if n in dots else v) for n, v in values.items()}
        return {n: (i, np.imag(new) / STEP) for n, (i, new) in self.compute(moved).items()}

    def bind_jvp(self, args, tangents, scalar_tangents):
        start = dict(zip(self.names, args, strict=True))
        self._check(start)
        for n, dot in tangents.items():
            assert dot.shape == start[n].shape
            assert dot.dtype == start[n].dtype
        self.binds += 1

        def run(values, scalar_dots):
            self.jvps += 1
            new_dots = self.push(values, {**tangents, **scalar_dots})
            for n, (index, new) in self.compute(values).items():
                values[n][index] = new
                if n in tangents:
                    tangents[n][index] = new_dots[n][1]

        return FakeBound(run, self.names, args, scalar_tangents)

    def adjoint_needs(self, args, active):
        reads = frozenset(n for n in self.needs if n not in self.written)
        return reads, tuple((0, n, f"{n}@0") for n in sorted(self.needs & self.written))

    def pull(self, values, seeds, names):
        """Cotangents of old values: whole arrays (or floats) by name, from seeds of the written entries."""
        if self._pull is not None:
            return self._pull(values, seeds)
        out = {}
        for n in names:
            base = np.asarray(values[n], dtype=float)
            bar = np.zeros(base.shape)
            for k in np.ndindex(*base.shape):
                dot = np.zeros(base.shape)
                dot[k] = 1.0
                moved = self.push(values, {n: dot if base.ndim else 1.0})
                bar[k] = sum(float(np.sum(seeds[w] * d)) for w, (_, d) in moved.items() if w in seeds)
            out[n] = bar
        return out

    def bind_vjp(self, args, shadows, scalar_cotangents, *, keep_seed=(), assign=(), saved=None):
        saved = saved or {}
        self.binds += 1
        self.kept.append(tuple(keep_seed))
        self.assigned.append(tuple(assign))
        start = dict(zip(self.names, args, strict=True))
        if keep_seed and not self.keep:
            raise ShadowError("the seed is needed")
        for n, shadow in shadows.items():
            if shadow.shape != start[n].shape or shadow.dtype != start[n].dtype:
                raise ShadowError(f"shadow of {n}")
        flat = list(shadows.values())
        for i, a in enumerate(flat):
            assert not any(np.shares_memory(a, b) for b in flat[:i]), "shadows overlap"
        assert all(n not in self.written for n in assign)
        assert all(n in self.written for n in keep_seed)

        def run(given, _):
            self.vjps += 1
            values = dict(given)
            for n, v in values.items():
                if not isinstance(v, np.ndarray):
                    continue
                if n in self.needs and n in self.written:
                    values[n] = saved[f"{n}@0"]
                elif n not in self.needs:
                    values[n] = np.full(v.shape, 777.7, v.dtype)
            shape = dict(values)
            shape.update({n: np.ones(v.shape, v.dtype) for n, v in values.items() if isinstance(v, np.ndarray)})
            where = {n: i for n, (i, _) in self.compute(shape).items()}
            seeds = {n: shadows[n][where[n]].copy() for n in self.written if n in shadows}
            bars = self.pull(values, seeds, [*shadows, *scalar_cotangents])
            for n in seeds:
                if n not in keep_seed:
                    shadows[n][where[n]] = 0
            for n, shadow in shadows.items():
                if n in assign:
                    shadow[...] = bars.get(n, 0.0)
                elif n in bars and n not in keep_seed:
                    shadow += bars[n].astype(shadow.dtype)
            for n, cell in scalar_cotangents.items():
                cell[0] += float(bars[n])

        return FakeBound(run, self.names, args)


def _neighbours(a, axis):
    lo = [slice(1, -1)] * a.ndim
    hi = [slice(1, -1)] * a.ndim
    lo[axis], hi[axis] = slice(0, -2), slice(2, None)
    return a[tuple(lo)], a[tuple(hi)]


def laplace(a, dx):
    """Second differences of the inner points, all axes."""
    inner = (slice(1, -1),) * a.ndim
    out = (-2.0 * a.ndim) * a[inner]
    for axis in range(a.ndim):
        below, above = _neighbours(a, axis)
        out += below
        out += above
    out /= dx * dx
    return out


def laplace_transposed(seed, shape, dx):
    """The transpose of :func:`laplace`."""
    seed = seed / (dx * dx)
    out = np.zeros(shape, seed.dtype)
    inner = (slice(1, -1),) * out.ndim
    out[inner] += (-2.0 * out.ndim) * seed
    for axis in range(out.ndim):
        below, above = _neighbours(out, axis)
        below += seed
        above += seed
    return out


def heat_kernel():
    """``dT[inner] = lam * Ci * laplace(T)`` with ``lam`` an array of one entry; hand-written derivatives."""

    def compute(v):
        inner = (slice(1, -1),) * v["T"].ndim
        return {"dT": (inner, v["lam"][0] * v["Ci"][inner] * laplace(v["T"], v["dx"]))}

    def push(v, d):
        inner = (slice(1, -1),) * v["T"].ndim
        out = np.zeros(v["T"][inner].shape)
        lap = laplace(v["T"], v["dx"]) if "Ci" in d or "lam" in d else None
        if "T" in d:
            out += v["lam"][0] * v["Ci"][inner] * laplace(d["T"], v["dx"])
        if "Ci" in d:
            out += v["lam"][0] * d["Ci"][inner] * lap
        if "lam" in d:
            out += d["lam"][0] * v["Ci"][inner] * lap
        return {"dT": (inner, out)}

    def pull(v, seeds):
        inner = (slice(1, -1),) * v["T"].ndim
        seed = seeds["dT"]
        lap = laplace(v["T"], v["dx"]) * seed
        Ci_bar = np.zeros(v["T"].shape)
        Ci_bar[inner] = v["lam"][0] * lap
        return {
            "T": laplace_transposed(v["lam"][0] * v["Ci"][inner] * seed, v["T"].shape, v["dx"]),
            "Ci": Ci_bar,
            "lam": np.array([np.sum(v["Ci"][inner] * lap)]),
        }

    return FakeKernel(
        "heat", ("dT", "T", "Ci", "lam", "dx"), ("dT",), compute, ("T", "Ci", "lam"), push=push, pull=pull
    )  # fmt: skip


def whole_state_kernel(f, needs=("u", "p", "t")):
    """A kernel ``(du, u, p, t)`` around a NumPy right-hand side; derivatives by complex steps."""

    def compute(v):
        kind = complex if any(np.iscomplexobj(v[n]) for n in ("u", "p", "t")) else v["u"].dtype
        out = np.zeros(v["u"].shape, kind)
        f(out, v["u"], v["p"], v["t"])
        return {"du": (Ellipsis, out)}

    return FakeKernel("whole", ("du", "u", "p", "t"), ("du",), compute, tuple(needs))


def recorded(f):
    """The same right-hand side as one launch of a fake kernel, so that it can be differentiated."""
    kernel = whole_state_kernel(f)
    nothing = np.zeros(1)

    def g(du, u, p, t):
        kernel(du, u, nothing if p is None else p, t)

    g.kernel = kernel
    return g


class ModelKernels:
    """The system of ``ode_reference.Model`` as launches of fake kernels: in one, or in four through scratch arrays.

    In four, ``flux`` is written and later overwritten in place, so that its values must be saved, and the rate is
    accumulated.
    """

    def __init__(self, model):
        self.w = model.w.copy()
        self.flux = np.zeros(model.n + 1)
        self.react = np.zeros(model.n)

        def whole(v):
            return {"du": (Ellipsis, model.rate(v["t"], v["u"], v["p"], v["w"]))}

        def pull_whole(v, seeds):
            u, p, b, t = v["u"], v["p"], seeds["du"], v["t"]
            u_bar = p[0] * model.lap(b) + p[1] * (1 - 3 * u**2) * b - p[4] * t * np.sin(t * u) * b
            u_bar += p[3] * (np.roll(u, -1) * b + np.roll(u * b, 1))
            terms = (model.lap(u), u * (1 - u**2), np.sin(3 * t) * v["w"], u * np.roll(u, -1), np.cos(t * u))
            return {"u": u_bar, "p": np.array([x @ b for x in terms]), "w": p[2] * np.sin(3 * t) * b}

        def gradient(v):
            zero = np.zeros(1, v["u"].dtype)
            return {"flux": (Ellipsis, v["c"] * np.diff(np.concatenate([zero, v["u"], zero])) / model.dx)}

        def divergence(v):
            return {"du": (Ellipsis, v["du"] + np.diff(v["flux"]) / model.dx)}

        def reaction(v):
            return {"react": (Ellipsis, v["a"] * v["u"] * (1 - v["u"] ** 2) + v["b"] * v["u"] * np.roll(v["u"], -1))}

        def squared(v):  # in place and nonlinear: its adjoint needs what it overwrites
            return {"react": (Ellipsis, v["react"] ** 2 + v["s"] * v["w"])}

        def rooted(v):
            return {"react": (Ellipsis, v["react"] - v["s"] * v["w"])}

        def total(v):
            return {"du": (Ellipsis, v["du"] + v["react"] + v["s"] * v["w"] + v["d"] * np.cos(v["t"] * v["u"]))}

        make = FakeKernel
        self.whole = make("whole", ("du", "u", "p", "w", "t"), ("du",), whole, ("u", "p", "w", "t"), pull=pull_whole)
        self.gradient = make("gradient", ("flux", "u", "c"), ("flux",), gradient, ("u",))
        self.divergence = make("divergence", ("du", "flux"), ("du",), divergence, (), ("du",), keep=False)
        self.reaction = make("reaction", ("react", "u", "a", "b"), ("react",), reaction, ("u",))
        self.squared = make("squared", ("react", "w", "s"), ("react",), squared, ("react", "w"), ("react",))
        self.rooted = make("rooted", ("react", "w", "s"), ("react",), rooted, ("w",), ("react",))
        self.total = make("total", ("du", "u", "react", "w", "s", "d", "t"), ("du",), total, ("u", "w"), ("du",))

    def one(self, du, u, p, t):
        self.whole(du, u, p, self.w, t)

    def four(self, du, u, p, t):
        self.gradient(self.flux, u, p[0])
        self.divergence(du, self.flux)
        self.reaction(self.react, u, p[1], p[3])
        self.total(du, u, self.react, w=self.w, s=p[2] * np.sin(3 * t), d=p[4], t=t)

    def seven(self, du, u, p, t):
        """As four, with the square of the reaction: not the same system."""
        self.gradient(self.flux, u, p[0])
        self.divergence(du, self.flux)
        self.reaction(self.react, u, p[1], p[3])
        self.squared(self.react, self.w, p[2] * t)
        self.rooted(self.react, self.w, s=p[2] * t)
        self.total(du, u, self.react, self.w, p[2] * np.sin(3 * t), p[4], t)
