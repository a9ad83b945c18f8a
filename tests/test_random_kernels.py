"""Random kernels: values and derivatives against the oracle, the same bits for any number of threads.

At least 500 kernels, the same in every run. ``IRAD_RANDOM_EXAMPLES=5000`` takes ten times as many; the parts run side
by side with ``pytest -n``. A kernel that irad refuses is counted by the kind of its error, a wrong value fails; so does
a part of which too many are refused.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from typing import Any

import numpy as np
import pytest
from generator import Case, laid_out, point_cases
from generator_bad import STATEMENT_RACES, refused_cases
from generator_fd import statement_cases
from hypothesis import HealthCheck, Phase, given, seed, settings
from tolerances import Tolerance, tolerance

import irad
from irad import oracle
from irad.errors import DomainError, IradError, RaceError
from irad.launch.threads import using_threads
from irad.wrt import field_name

EXAMPLES = int(os.environ.get("IRAD_RANDOM_EXAMPLES", "500"))
PARTS = {"point": 14, "statements": 4, "refused": 2}
PER_PART = -(-EXAMPLES // sum(PARTS.values()))

MOST_REFUSED = 0.1
"""Of the kernels of one part. The generator writes only what irad should take."""


def explore(strategy: Any, check: Any, name: str) -> None:
    """Run ``check`` on examples that depend on the name alone."""

    @seed(zlib.crc32(name.encode()))
    @settings(
        max_examples=PER_PART,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(strategy)
    def run(drawn: Any) -> None:
        check(drawn)

    run()


class Checker:
    """Checks cases and counts what became of them."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def check(self, case: Case) -> None:
        self.counts["kernels"] += 1
        values = case.values(layouts=case.layouts)
        function = case.function(values)
        kernel = irad.kernel(function, cache=False)
        try:
            Trial(case, kernel, values, self.counts).run()
        except DomainError:
            raise
        except IradError as e:
            self.counts[f"refused: {type(e).__name__}"] += 1
            self.counts["refused"] += 1
            self.reason = str(e)
            return
        Trial(case, kernel, case.values(case.large, case.layouts), self.counts).threads()
        edge = case.edges[case.seed % len(case.edges)]
        Trial(case, kernel, case.values(edge, case.layouts), self.counts).run(edge=True)

    def report(self, name: str) -> None:
        print(f"\n{name}: " + ", ".join(f"{k} {v}" for k, v in sorted(self.counts.items())))


class Trial:
    """One kernel on arguments of one size. ``values``: arguments and captured values by name."""

    def __init__(self, case: Case, kernel: Any, values: dict[str, Any], counts: Counter[str]) -> None:
        self.case, self.kernel, self.values, self.counts = case, kernel, values, counts
        self.before = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in values.items()}
        self.tolerance: Tolerance = tolerance(*(values[a.name] for a in case.arrays if a.floating))
        self.rng = np.random.default_rng(case.seed)
        for a in case.arrays:
            if a.captured:
                function_globals(kernel)[a.name] = values[a.name]

    def fresh(self) -> list[Any]:
        """Arguments as they were; arrays that the kernel may write are written anew, where they lie."""
        for a in self.case.arrays:
            if a.written:
                np.copyto(self.values[a.name], self.before[a.name])
        return self.case.arguments(self.values)

    def run(self, *, edge: bool = False) -> None:
        args = self.fresh()
        try:
            self.primal = oracle.primal(self.kernel, args)
        except DomainError:
            self.counts["leaves an array"] += 1
            with pytest.raises(DomainError):
                self.kernel(*args)
            self.unchanged(written=True)
            return
        try:
            self.kernel(*args)
        except DomainError:
            if not edge:
                raise
            self.counts["refused where an access that is not reached leaves its array"] += 1
            self.unchanged(written=True)
            return
        if self.primal.doubtful:
            self.counts["doubtful"] += 1
            return
        self.compare_values()
        self.unchanged()
        names = self.case.differentiable
        self.reverse(names)
        if edge:
            return
        self.forward(names)
        if self.case.seed % 3 == 0:
            self.autodiff()
        elif self.case.seed % 3 == 1 and len(names) > 1:
            self.reverse(names[1:])

    # checks

    def unchanged(self, *, written: bool = False) -> None:
        """What the kernel does not write keeps its bits."""
        for a in self.case.arrays:
            if written or not self.primal.written[a.name].any():
                assert self.values[a.name].tobytes() == self.before[a.name].tobytes(), f"{a.name} has changed"

    def compare_values(self) -> None:
        for name, expected in self.primal.values.items():
            found = self.values[name]
            if self.case.exact and not self.primal.errors[name].any():
                np.testing.assert_array_equal(found, expected, err_msg=name)
                continue
            size = float(np.max(np.abs(expected), initial=0.0)) if expected.size else 0.0
            limit = self.tolerance.values * max(size, 1.0) + 8 * self.primal.errors[name]
            assert np.all(np.abs(np.subtract(found, expected, dtype=np.float64)) <= limit), message(
                "value", name, found, expected
            )

    def compare(self, what: str, name: str, found: Any, result: oracle.Result) -> None:
        expected, scale = np.asarray(result.derivatives[name]), np.asarray(result.scales[name])
        error = np.abs(np.asarray(found, np.float64) - expected)
        tiny = 1e-30
        assert np.all(error <= self.tolerance.derivatives * scale + tiny), message(what, name, found, expected)

    def directions(self, names: Any) -> dict[str, Any]:
        result = {}
        for k, name in enumerate(names):
            v = self.values[name]
            t = self.rng.uniform(-1, 1, np.shape(v))
            layout = self.case.layouts[k % len(self.case.layouts)] if self.case.layouts else "C"
            result[name] = laid_out(t.astype(v.dtype), layout) if isinstance(v, np.ndarray) else float(t)
        return result

    def forward(self, names: list[str]) -> None:
        tangents = self.directions(names)
        bits = {n: np.asarray(t).tobytes() for n, t in tangents.items()}
        args = self.fresh()
        expected = oracle.jvp(self.kernel, args, tangents)
        push = irad.pushforward(self.kernel, *args, wrt=names)
        found = push(**{field_name(n): t for n, t in tangents.items()})._asdict()
        for name, tangent in found.items():
            self.compare("tangent of", name, tangent, expected)
        missing = [n for n, w in expected.written.items() if n not in found and w.any() and n in expected.derivatives]
        for name in missing:
            assert not expected.derivatives[name].any(), f"no tangent of {name}"
        assert bits == {n: np.asarray(t).tobytes() for n, t in tangents.items()}, "a tangent has changed"

    def seeds(self) -> dict[str, Any]:
        return self.directions(self.case.stored)

    def written(self) -> list[str]:
        return [a.name for a in self.case.arrays if a.written]

    def reverse(self, names: list[str]) -> None:
        args = self.fresh()
        seeds = self.seeds()
        bits = {n: s.tobytes() for n, s in seeds.items()}
        expected = oracle.vjp(self.kernel, args, seeds)
        back = irad.pullback(self.kernel, *args, wrt=names)
        after = {n: self.values[n].tobytes() for n in self.written()}
        found = back(**{field_name(n): s for n, s in seeds.items()})
        for name, bar in zip(names, found, strict=True):
            self.compare("cotangent of", name, bar, expected)
        again = back(**{field_name(n): s for n, s in seeds.items()})
        for first, second in zip(found, again, strict=True):
            assert np.asarray(first).tobytes() == np.asarray(second).tobytes(), "a second pullback differs"
        assert bits == {n: s.tobytes() for n, s in seeds.items()}, "a seed has changed"
        assert after == {n: self.values[n].tobytes() for n in self.written()}, "reverse mode has changed an array"
        self.unchanged()

    def autodiff(self) -> None:
        """Shadows with content of their own: added to, or taken and left with the cotangent of the old value."""
        args = self.fresh()
        floats = [n for n in self.case.parameters if n in self.case.differentiable]
        shadows = self.directions([n for n in floats if isinstance(self.values[n], np.ndarray)])
        expected = oracle.vjp(self.kernel, args, shadows)
        annotated, active = [], []
        for name, x in zip(self.case.parameters, args, strict=True):
            if name in shadows:
                annotated.append(irad.Duplicated(x, shadows[name]))
            elif name in floats:
                annotated.append(irad.Active(x))
                active.append(name)
            else:
                annotated.append(x)
        bars = irad.autodiff(irad.Reverse, self.kernel, *annotated)
        for name, bar in zip(active, bars, strict=True):
            self.compare("cotangent of", name, bar, expected)
        for name, shadow in shadows.items():
            self.compare("shadow of", name, shadow, expected)
        self.compare_values()

    def threads(self) -> None:
        """A large size: the same bits for 1, 2 and 5 threads, and the dot-product identity."""
        names = self.case.differentiable
        tangents = self.directions(names)
        seeds: dict[str, Any] = {}
        results = []
        for threads in (1, 2, 5):
            with using_threads(threads):
                args = self.fresh()
                push = irad.pushforward(self.kernel, *args, wrt=names)
                out = push(**{field_name(n): t for n, t in tangents.items()})._asdict()
                seeds = seeds or self.directions(self.case.stored)
                args = self.fresh()
                bars = irad.pullback(self.kernel, *args, wrt=names)(**{field_name(n): s for n, s in seeds.items()})
                results.append(
                    {
                        **{f"value of {n}": self.values[n].copy() for n in self.written()},
                        **{f"tangent of {n}": t for n, t in out.items()},
                        **{f"cotangent of {n}": np.asarray(b) for n, b in zip(names, bars, strict=True)},
                    }
                )
        for other in results[1:]:
            for name, first in results[0].items():
                assert first.tobytes() == other[name].tobytes(), f"{name} depends on the number of threads"
        forward = [np.ravel(np.multiply(seeds[n], t, dtype=np.float64)) for n, t in out.items()]
        reverse = [np.ravel(np.multiply(tangents[n], b, dtype=np.float64)) for n, b in zip(names, bars, strict=True)]
        terms = sum(float(np.abs(x).sum()) for x in (*forward, *reverse))
        if not np.isfinite(terms):
            self.counts["not finite"] += 1
            return
        error = abs(sum(float(x.sum()) for x in forward) - sum(float(x.sum()) for x in reverse))
        assert error <= self.tolerance.dot * terms + 1e-30, f"dot products differ by {error} of {terms}"
        self.counts["dot products"] += 1


def function_globals(kernel: Any) -> dict[str, Any]:
    namespace: dict[str, Any] = kernel.py_func.__globals__
    return namespace


def message(what: str, name: str, found: Any, expected: Any) -> str:
    return f"{what} {name} is\n{np.asarray(found)!r}\nnot\n{np.asarray(expected)!r}"


def check_part(strategy: Any, name: str) -> None:
    checker = Checker()
    try:
        explore(strategy, checker.check, name)
    finally:
        checker.report(name)
    assert checker.counts["kernels"] >= PER_PART
    refused = checker.counts["refused"] / checker.counts["kernels"]
    assert refused <= MOST_REFUSED, f"{refused:.0%} of the kernels were refused, for instance: {checker.reason}"


@pytest.mark.parametrize("part", range(PARTS["point"]))
def test_point_kernels(part: int) -> None:
    check_part(point_cases(), f"point kernels {part}")


@pytest.mark.parametrize("part", range(PARTS["statements"]))
def test_statements(part: int) -> None:
    check_part(statement_cases(), f"statements {part}")


@pytest.mark.parametrize("part", range(PARTS["refused"]))
def test_refused_kernels(part: int) -> None:
    """Races and accesses outside arrays: an error of the right kind, and nothing is written."""

    def check(drawn: tuple[Case, str]) -> None:
        case, error = drawn
        values = case.values()
        before = {n: v.copy() for n, v in values.items()}
        kernel = irad.kernel(case.function(values), cache=False)
        with pytest.raises({"RaceError": RaceError, "DomainError": DomainError}[error]):
            kernel(*case.arguments(values))
        for name, v in before.items():
            np.testing.assert_array_equal(values[name], v, err_msg=name)

    explore(refused_cases(), check, f"refused {part}")


@pytest.mark.parametrize("statement", [text for text, _ in STATEMENT_RACES])
def test_refused_statements(statement: str) -> None:
    case = Case(f"def kernel(q, T):\n    {statement}\n", (), (), (), 0, False, ("q", "T"))
    kernel = irad.kernel(case.function({}), cache=False)
    with pytest.raises(RaceError):
        kernel(np.ones((5, 5)), np.ones((5, 5)))
