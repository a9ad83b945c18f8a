"""The corpus crossed with modes, layouts, sizes and precisions.

The oracle is held against the NumPy twins and the closed forms first; compiled kernels against all three.
"""

from __future__ import annotations

from typing import Any

import kernels  # noqa: F401  (fills the corpus)
import kernels_mutation
import numpy as np
import pytest
from corpus import CORPUS, Entry, Values
from generator import laid_out
from tolerances import TAYLOR_SLOPE, TOLERANCES

import irad
from irad import oracle
from irad.errors import DomainError
from irad.launch.threads import using_threads
from irad.testing import check_gradient

ENTRIES = [pytest.param(e, id=name) for name, e in CORPUS.items()]
CLOSED = [pytest.param(e, id=name) for name, e in CORPUS.items() if e.gradient is not None]
SMALL = {1: (9,), 2: (6, 5), 3: (4, 5, 6), 4: (4, 3, 5, 4)}
LARGE = {1: (60_007,), 2: (211, 157), 3: (31, 29, 37), 4: (17, 9, 13, 21)}
SIZES = [0, 1, 2, 3]
LAYOUTS = ["F", "strided", "negative", "sliced"]

_compiled: dict[str, Any] = {}


def compiled(entry: Entry) -> Any:
    """The kernel, made once."""
    if entry.name not in _compiled:
        _compiled[entry.name] = irad.kernel(entry.function)
    return _compiled[entry.name]


def wide(values: Values) -> Values:
    """Arrays in double precision; scalars as they are."""
    return {n: np.array(v, np.float64) if isinstance(v, np.ndarray) else v for n, v in values.items()}


def copied(values: Values) -> Values:
    return {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in values.items()}


def after_twin(entry: Entry, values: Values) -> Values:
    result = wide(values)
    entry.twin(*entry.ordered(result))
    return result


def written(entry: Entry) -> list[str]:
    """Names of the arrays that a kernel writes."""
    values = entry.arguments(SMALL[entry.rank])
    return [n for n, w in oracle.primal(entry.function, entry.ordered(values)).written.items() if w.any()]


def seeds_of(entry: Entry, values: Values) -> Values:
    rng = np.random.default_rng(7)
    return {n: rng.uniform(-1, 1, values[n].shape).astype(values[n].dtype) for n in written(entry)}


def close(found: Any, expected: Any, rtol: float, what: str) -> None:
    """Equal to ``rtol`` of the largest entry."""
    size = float(np.max(np.abs(expected), initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * max(size, 1.0), err_msg=what)


def pulled(entry: Entry, values: Values, seeds: Values, wrt: Any = None) -> Values:
    """Cotangents by ``irad.pullback``; runs the kernel on ``values``."""
    back = irad.pullback(compiled(entry), *entry.ordered(values), wrt=wrt or entry.wrt)
    return dict(zip(wrt or entry.wrt, back(**seeds), strict=True))


# the oracle ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ENTRIES)
def test_oracle_and_twin_agree(entry: Entry) -> None:
    for n in (SMALL[entry.rank], (2,) * entry.rank):
        values = entry.arguments(n)
        found = oracle.primal(entry.function, entry.ordered(values)).values
        for name, expected in after_twin(entry, values).items():
            if isinstance(expected, np.ndarray):
                close(found[name], expected, 1e-14, name)


@pytest.mark.parametrize("entry", CLOSED)
def test_oracle_and_closed_form_agree(entry: Entry) -> None:
    assert entry.gradient is not None
    values = entry.arguments(SMALL[entry.rank])
    seeds = seeds_of(entry, values)
    found = oracle.vjp(entry.function, entry.ordered(values), seeds).derivatives
    for name, expected in entry.gradient(values, seeds).items():
        close(found[name], expected, 1e-13, name)


@pytest.mark.parametrize("entry", ENTRIES)
def test_oracle_and_differences_agree(entry: Entry) -> None:
    """Of the twin, along one direction in all arguments."""
    values, h = entry.arguments(SMALL[entry.rank]), 1e-6
    rng = np.random.default_rng(3)
    tangents: Values = {n: rng.uniform(-1, 1, np.shape(v)) for n, v in values.items() if isinstance(v, np.ndarray)}
    found = oracle.jvp(entry.function, entry.ordered(values), tangents).derivatives
    ends = [after_twin(entry, {**values, **{n: values[n] + s * t for n, t in tangents.items()}}) for s in (h, -h)]
    for name in tangents:
        close(found[name], (ends[0][name] - ends[1][name]) / (2 * h), 1e-8, name)


# kernels -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("entry", ENTRIES)
def test_values_and_derivatives(entry: Entry, dtype: str) -> None:
    """Against the twin, the closed form and the oracle, in both modes."""
    tolerance = TOLERANCES[dtype]
    values = entry.arguments(SMALL[entry.rank], dtype)
    before, seeds = copied(values), seeds_of(entry, values)
    kept = copied(seeds)
    cotangents = pulled(entry, values, seeds)
    for name, expected in after_twin(entry, before).items():
        if isinstance(expected, np.ndarray):
            close(values[name], expected, tolerance.closed, name)
            assert values[name].dtype == dtype
    for name in seeds:
        np.testing.assert_array_equal(seeds[name], kept[name])
    reverse = oracle.vjp(entry.function, entry.ordered(before), seeds)
    for name in entry.wrt:
        error = np.abs(cotangents[name] - reverse.derivatives[name])
        assert np.all(error <= tolerance.derivatives * np.asarray(reverse.scales[name])), name
    if entry.gradient is not None:
        for name, expected in entry.gradient(wide(before), wide(seeds)).items():
            if name in entry.wrt:
                close(cotangents[name], expected, tolerance.closed, name)
    rng = np.random.default_rng(5)
    tangents: Values = {}
    for name in entry.wrt:
        t = rng.uniform(-1, 1, np.shape(cotangents[name]))
        tangents[name] = t.astype(cotangents[name].dtype) if t.shape else float(t)
    again = copied(before)
    out = irad.pushforward(compiled(entry), *entry.ordered(again), wrt=entry.wrt)(**tangents)._asdict()
    forward = oracle.jvp(entry.function, entry.ordered(before), tangents)
    assert set(out) == set(seeds)
    for name, tangent in out.items():
        error = np.abs(tangent - forward.derivatives[name])
        assert np.all(error <= tolerance.derivatives * forward.scales[name]), name


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_layouts(entry: Entry, layout: str) -> None:
    """The same values and cotangents, wherever entries lie; memory between them is left alone."""
    values = entry.arguments(SMALL[entry.rank])
    seeds = seeds_of(entry, values)
    plain = copied(values)
    expected = pulled(entry, plain, seeds)
    laid = {n: laid_out(v, layout) if isinstance(v, np.ndarray) else v for n, v in values.items()}
    gaps = {n: _gaps(v) for n, v in laid.items() if isinstance(v, np.ndarray)}
    found = pulled(entry, laid, {n: laid_out(s, layout) for n, s in seeds.items()})
    for name in values:
        if isinstance(values[name], np.ndarray):
            np.testing.assert_allclose(laid[name], plain[name], rtol=1e-15, atol=1e-15)
            np.testing.assert_array_equal(_gaps(laid[name]), gaps[name])
    for name in entry.wrt:
        close(found[name], expected[name], 1e-13, name)


def _gaps(a: Any) -> Any:
    """What lies between the entries of a view."""
    if a.base is None or not a.size:
        return np.zeros(0)
    base = a.base.copy()
    marked = np.zeros(base.shape, bool)
    start = (a.__array_interface__["data"][0] - a.base.__array_interface__["data"][0]) // a.itemsize
    places = np.lib.stride_tricks.as_strided(np.ravel(marked, "K")[start:], a.shape, [s // 8 for s in a.strides])
    places[...] = True
    return np.ravel(base, "K")[~np.ravel(marked, "K")]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("entry", ENTRIES)
def test_sizes(entry: Entry, n: int) -> None:
    """From empty up. Where an access leaves its array, that is said, and nothing is written."""
    if entry.name == "fluxes" and n < 2:
        pytest.skip("no staggered grid is that small")
    values = entry.arguments((n,) * entry.rank)
    before = copied(values)
    try:
        expected = oracle.vjp(entry.function, entry.ordered(values), seeds_of(entry, values))
    except DomainError:
        with pytest.raises(DomainError):
            compiled(entry)(*entry.ordered(values))
        for name, v in before.items():
            np.testing.assert_array_equal(values[name], v)
        return
    cotangents = pulled(entry, values, seeds_of(entry, values))
    for name, after in expected.values.items():
        if name in values:
            close(values[name], after, 1e-13, name)
    for name in entry.wrt:
        close(cotangents[name], expected.derivatives[name], 1e-13, name)


@pytest.mark.parametrize("entry", ENTRIES)
def test_autodiff_accumulates(entry: Entry) -> None:
    """Shadows of read arrays are added to; those of written ones hold the seed and are left with the old cotangent."""
    values = entry.arguments(SMALL[entry.rank])
    before, seeds = copied(values), seeds_of(entry, values)
    rng = np.random.default_rng(11)
    shadows: Values = {n: rng.uniform(-1, 1, v.shape) for n, v in values.items() if isinstance(v, np.ndarray)}
    shadows.update(copied(seeds))
    expected = oracle.vjp(entry.function, entry.ordered(before), shadows)
    arguments, active = [], []
    for name in entry.function.__code__.co_varnames[: entry.function.__code__.co_argcount]:
        v = values[name]
        if isinstance(v, np.ndarray):
            arguments.append(irad.Duplicated(v, shadows[name]))
        elif isinstance(v, float):
            arguments.append(irad.Active(v))
            active.append(name)
        else:
            arguments.append(v)
    result = irad.autodiff(irad.Reverse, compiled(entry), *arguments)
    result = result if isinstance(result, tuple) else (result,)
    for name, shadow in shadows.items():
        close(shadow, expected.derivatives[name], 1e-13, name)
    for name, bar in zip(active, result, strict=True):
        close(bar, expected.derivatives[name], 1e-13, name)
    for name, after in expected.values.items():
        if name in values:
            close(values[name], after, 1e-13, name)


@pytest.mark.parametrize("entry", ENTRIES)
def test_same_bits_for_any_number_of_threads(entry: Entry) -> None:
    values = entry.arguments(LARGE[entry.rank])
    rng = np.random.default_rng(7)
    names = written(entry)
    seeds = {n: rng.uniform(-1, 1, values[n].shape) for n in names}
    results = []
    for threads in (1, 2, 5):
        with using_threads(threads):
            run = copied(values)
            cotangents = pulled(entry, run, seeds)
            results.append({**{n: run[n] for n in names}, **{f"{n}'": np.asarray(c) for n, c in cotangents.items()}})
    for other in results[1:]:
        for name, first in results[0].items():
            assert first.tobytes() == other[name].tobytes(), name
    if entry.gradient is not None:
        for name, expected in entry.gradient(values, seeds).items():
            if name in entry.wrt:
                close(results[0][f"{name}'"], expected, 1e-11, name)


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.id not in ("kinks", "limiter", "upwind")])
def test_check_gradient(entry: Entry) -> None:
    """The users' own tool finds nothing; its Taylor test takes the step that the tolerances promise."""
    values = entry.arguments(SMALL[entry.rank])
    report = check_gradient(compiled(entry), *entry.ordered(values), wrt=entry.wrt)
    slopes = [row.found for row in report.rows if row.what.startswith("slope")]
    assert all(abs(s - 2) <= TAYLOR_SLOPE or s > 2 for s in slopes if s is not None), str(report)


def test_captured_values_are_looked_up_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = CORPUS["captured"]
    for rate in (0.3, -1.0):
        monkeypatch.setattr(kernels_mutation, "rate", rate)
        values = entry.arguments((9,))
        expected = after_twin(entry, values)
        compiled(entry)(*entry.ordered(values))
        close(values["v"], expected["v"], 1e-14, "v")
