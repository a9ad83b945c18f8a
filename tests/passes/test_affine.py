"""Accesses: what the pass says of an address is what the address is; what it does not know is refused with a remedy."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from irad.passes.affine import spelled, to_point
from irad.passes.ir.interp import run
from irad.passes.ir.model import Access, ArrayParam, Function, LinExpr, PointFn, ScalarParam
from irad.passes.ir.read import read_function
from irad.passes.ir.verify import verify_point
from irad.passes.prepare import prepare_function

from irad.domains import domain, points
from irad.errors import NotDifferentiableError
from irad.frontend import ArrayType, lower, typeof

sys.path.insert(0, str(Path(__file__).parent))
from index_tools import Recorder, holds

# kernels from Python -------------------------------------------------------------------------------------------------


def prepared(function: Callable[..., None], args: tuple[Any, ...]) -> tuple[Function, int, tuple[Any, ...]]:
    lowered = lower(function, tuple(typeof(a) for a in args))
    (stage,) = lowered.stages
    params = tuple(
        ArrayParam(p.name, p.type.elem, p.type.rank)
        if isinstance(p.type, ArrayType)
        else ScalarParam(p.name, p.type.llvm)
        for p in lowered.params
    )
    return prepare_function(stage.text, stage.name, frozenset()), stage.rank, params


def point_of(function: Callable[..., None], *args: Any) -> PointFn:
    pf = to_point(*prepared(function, args))
    verify_point(pf)
    return pf


def kernel_of(text: str) -> Callable[..., None]:
    names: dict[str, Any] = {"points": points, "domain": domain}
    exec(text, names)
    return names["kernel"]  # type: ignore[no-any-return]


def body(line: str, *, rank: int = 2) -> Callable[..., None]:
    """A kernel with one line."""
    index = ", ".join("ij"[:rank])
    return kernel_of(f"def kernel(v, u, w, k, flag):\n    {index} = points(v)\n    {line}\n")


def arguments(rank: int = 2) -> tuple[Any, ...]:
    shape = (4, 5)[:rank]
    return np.zeros(shape), np.arange(20.0).reshape(4, 5), np.arange(6.0), 2, True


def accesses(pf: PointFn, array: str) -> list[Access]:
    found = {i.access: None for i in pf.fn.instrs() if i.array == array and i.access is not None}
    return list(found)  # type: ignore[arg-type]


def indices(pf: PointFn, array: str) -> set[tuple[tuple[int | None, str, bool], ...]]:
    return {tuple((d.axis, str(d.offset), d.wraps) for d in a.dims) for a in accesses(pf, array)}


class Places(Recorder):
    """Keeps where each access went, and that its guard lets the point through."""

    def __init__(self, arrays: dict[str, Any], at: dict[str, int]) -> None:
        super().__init__()
        self.arrays, self.at, self.count = arrays, at, 0

    def _run_instr(self, i: Any, x: list[Any]) -> Any:
        if i.access is not None:
            self.count += 1
            index = x[1:] if i.op == "astore" else x
            extents = self.arrays[i.array].shape
            named = [
                _entry(d, self.at) + n * (d.wraps and _entry(d, self.at) < 0)
                for d, n in zip(i.access.dims, extents, strict=True)
            ]
            assert named == index
            assert holds(i.access.guard, self.at)
        return super()._run_instr(i, x)


def _entry(d: Any, at: dict[str, int]) -> int:
    return d.offset.evaluate(at) + (at[f".i{d.axis}"] if d.axis is not None else 0)  # type: ignore[no-any-return]


def check_point(function: Callable[..., None], args: tuple[Any, ...], box: list[range]) -> int:
    """Run the prepared function, with its addresses, and the point function at each point, and compare."""
    fn, rank, params = prepared(function, args)
    pf = to_point(fn, rank, params)
    verify_point(pf)
    values = dict(zip((p.name for p in params), args, strict=True))
    count = 0
    for at in itertools.product(*box):
        want, got = ({n: v.copy() for n, v in values.items() if isinstance(v, np.ndarray)} for _ in range(2))
        scalars: dict[str, Any] = {n: v for n, v in values.items() if not isinstance(v, np.ndarray)}
        run(fn, scalars, want, index=at)
        words = {f"{n}.n{d}": e for n, a in got.items() for d, e in enumerate(a.shape)} | scalars
        words |= {f".i{d}": i for d, i in enumerate(at)}
        machine = Places(got, words)
        machine.call(pf.fn, [words.get(a.name, 0) for a in pf.fn.args])
        count += machine.count
        for n in want:
            np.testing.assert_array_equal(got[n], want[n])
    return count


STYLES = {
    "chain": """
    n = v.shape[0]
    if i == 0:
        v[i, j] = u[i + 1, j]
    elif i == n - 1:
        v[i, j] = u[i - 1, j] + w[k]
    else:
        v[i, j] = u[i - 1, j] - u[i + 1, j]
""",
    "expressions": """
    a = u[i - 1, j] if i > 0 else u[0, j]
    b = u[i, j + 1] if j < u.shape[1] - 1 else u[i, 0]
    v[i, j] = a * b
""",
    "corner": """
    if i == 0 and j == 0:
        v[i, j] = u[1, 1]
    elif i == 0 or j == 0:
        v[i, j] = u[-1, j] - u[i, -1]
    else:
        v[i, j] = u[i - 1, j - 1]
""",
    "early": """
    if not 0 < i < v.shape[0] - 1:
        return
    v[i, j] = u[i - 1, j] * u[i + 1, j]
""",
    "integer": """
    if k > 1 and flag:
        v[i, j] = u[i, k] + w[k - 3]
    else:
        v[i, j] = w[k]
""",
    "pinned": """
    if j == 2:
        v[i, j] = u[i, 1] + u[i, 3] + w[j + 1]
    else:
        v[i, j] = w[j]
""",
    "wraps": """
    v[i, j] = u[i - 1, j - 2] + w[i - 3] + w[-1]
""",
}


@pytest.mark.parametrize("name", STYLES)
def test_the_access_names_the_element_that_the_kernel_touches(name: str) -> None:
    kernel = kernel_of(f"def kernel(v, u, w, k, flag):\n    i, j = points(v)\n{STYLES[name]}")
    for k, flag in ((2, True), (1, False), (0, True)):
        args = (*arguments()[:3], k, flag)
        assert check_point(kernel, args, [range(4), range(5)]) > 0


@st.composite
def lines(draw: st.DrawFn) -> str:
    """Branches on indices around accesses at indices that are right, whatever the branches."""
    array, extents = draw(st.sampled_from([("u", "01"), ("u", "10"), ("w", "0"), ("w", "1"), ("u", "0-"), ("w", "-")]))
    entries = []
    for e in extents:
        offset = draw(st.sampled_from(["", " - 1", " - 2", " - k", " + k - 2"]))
        entries.append(str(draw(st.integers(-3, 2))) if e == "-" else f"{'ij'[int(e)]}{offset}")
    axis = draw(st.sampled_from("ij"))
    size = draw(st.sampled_from(["0", "1", "k", "v.shape[0]", "v.shape[1] - 1", "u.shape[1] - 2"]))
    test = f"{axis} {draw(st.sampled_from(['<', '<=', '==', '!=', '>', '>=']))} {size}"
    return f"if {test}:\n        v[i, j] {draw(st.sampled_from(['=', '+=']))} {array}[{', '.join(entries)}]"


@settings(max_examples=12, deadline=None)
@given(st.lists(lines(), min_size=2, max_size=3), st.integers(0, 2))
def test_random_accesses_name_the_element_that_the_kernel_touches(text: list[str], k: int) -> None:
    kernel = kernel_of("def kernel(v, u, w, k, flag):\n    i, j = points(v)\n    " + "\n    ".join(text) + "\n")
    square = np.arange(25.0).reshape(5, 5)
    check_point(kernel, (np.zeros((4, 5)), square, np.arange(6.0), k, True), [range(4), range(5)])


@pytest.mark.parametrize(
    ("line", "array", "want"),
    [
        ("v[i, j] = u[i, j]", "u", {((0, "0", True), (1, "0", True))}),
        ("v[i, j] = u[i, j + 2] + u[i, j]", "u", {((0, "0", True), (1, "2", True)), ((0, "0", True), (1, "0", True))}),
        ("v[i, j] = u[j, i]", "u", {((1, "0", True), (0, "0", True))}),
        ("v[i, j] = w[j]", "w", {((1, "0", True),)}),
        ("v[i, j] = w[0]", "w", {((None, "0", False),)}),
        ("v[i, j] = w[k]", "w", {((None, "k", True),)}),
        ("v[i, j] = w[i + k]", "w", {((0, "k", True),)}),
        ("v[i, j] = u[i, 1]", "u", {((0, "0", True), (None, "1", False))}),
        ("v[i, j] = u[i, u.shape[1] - 1]", "u", {((0, "0", True), (None, "u.n1 - 1", True))}),
        ("v[i, j] = w[i + w.shape[0] - v.shape[0]]", "w", {((0, "-v.n0 + w.n0", True),)}),
    ],
)  # fmt: skip
def test_maps(line: str, array: str, want: Any) -> None:
    assert indices(point_of(body(line), *arguments()), array) == want


def test_a_number_counts_from_the_end() -> None:
    found = indices(point_of(body("v[i, j] = w[-1]"), *arguments()), "w")
    assert found in ({((None, "-1", True),)}, {((None, "w.n0 - 1", False),)})


def test_an_index_that_a_branch_has_ruled_out_to_be_negative_does_not_wrap() -> None:
    pf = point_of(body("v[i, j] = u[i - 1, j] if i > 0 else 0.0"), *arguments())
    (access,) = accesses(pf, "u")
    assert not access.dims[0].wraps
    assert access.guard[0].lo == (LinExpr(1),)
    assert not access.always


def test_one_that_wraps_elsewhere_does() -> None:
    pf = point_of(body("v[i, j] = (u[i - 1, j] if i > 0 else 0.0) + u[i - 1, j]"), *arguments())
    assert {a.dims[0].wraps for a in accesses(pf, "u")} == {True}


@pytest.mark.parametrize(
    ("line", "reason", "remedy"),
    [
        ("v[i, j] = w[2 * i]", "is 2*i, a multiple of the index of the point", "u[::2]"),
        ("v[i, j] = w[i + j]", "is i + j, which mixes indices of the point", "an offset that is the same"),
        ("v[i, j] = w[5 - i]", "runs against the index of the point", "u[::-1]"),
        ("v[i, j] = w[w.shape[0] - 1 - i]", "w.shape[0] - i - 1, which runs against", "u[::-1]"),
        ("v[i, j] = w[(i + 1) % w.shape[0]]", "% (a remainder)", "if i < n - 1 else u[0]"),
        ("v[i, j] = w[i // 2]", "// (a division)", "an offset that is the same"),
        (
            "v[i, j] = w[max(i - 1, 0)]",
            "a case distinction, such as min, max or a clamp",
            "u[i - 1] if i > 0 else u[0]",
        ),
        ("v[i, j] = w[min(i + 1, w.shape[0] - 1)]", "a case distinction", "u[i - 1] if i > 0 else u[0]"),
        ("v[i, j] = w[int(u[i, j])]", "", "an offset that is the same"),
        ("v[i, j] = w[i + flag]", "depends on the flag 'flag'", "an if statement with an access in each branch"),
        ("v[i, j] = w[k * i]", "is k*i, a product", "an offset that is the same"),
        ("v[i, j] = w[k * k]", "is k*k, a product", "an offset that is the same"),
    ],
)
def test_other_maps_are_refused(line: str, reason: str, remedy: str) -> None:
    with pytest.raises(NotDifferentiableError) as e:
        point_of(body(line), *arguments())
    assert reason in str(e.value)
    assert "an index of 'w'" in str(e.value)
    assert remedy in str(e.value)
    assert ":3:" in str(e.value)


# LLVM text -----------------------------------------------------------------------------------------------------------

HEAD = """
declare i64 @irad.index.0()
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define void @f(ptr %A.data, i64 %A.n0, i64 %A.s0, ptr %B.data, i64 %B.n0, i64 %B.s0, i1 %flag) {
entry:
  %i = call i64 @irad.index.0()
"""
PARAMS = (ArrayParam("A", "double", 1), ArrayParam("B", "double", 1), ScalarParam("flag", "i1"))


def point_text(text: str) -> PointFn:
    return to_point(read_function(f"{HEAD}{text}\n  ret void\n}}", "f"), 1, PARAMS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("%p = select i1 %flag, ptr %A.data, ptr %B.data\n store double 0.0, ptr %p", "which array is accessed"),
        ("%o = mul i64 %i, %B.s0\n %p = getelementptr i8, ptr %A.data, i64 %o\n store double 0.0, ptr %p", "addresses"),
        ("%p = getelementptr double, ptr %A.data, i64 %i\n store double 0.0, ptr %p", "addresses or strides"),
        ("store float 0.0, ptr %A.data", "holds double and is accessed as float"),
        ("call void @llvm.memset.p0.i64(ptr %A.data, i8 0, i64 %A.n0, i1 false)", "copied or filled as a whole"),
    ],
)
def test_other_uses_of_addresses_are_refused(text: str, reason: str) -> None:
    with pytest.raises(NotDifferentiableError, match=reason):
        point_text(text)


def test_reassociated_addresses() -> None:
    """``A.data + s*(i + 1)`` as a chain of additions to another element's address."""
    pf = point_text(
        "%o = mul i64 %i, %A.s0\n %p = getelementptr i8, ptr %A.data, i64 %o\n"
        " %q = getelementptr i8, ptr %p, i64 %A.s0\n %x = load double, ptr %q\n store double %x, ptr %p"
    )
    assert indices(pf, "A") == {((0, "0", False),), ((0, "1", False),)}


def test_extents_are_spelled_as_the_user_does() -> None:
    assert spelled("2*T.n0 - i + 1") == "2*T.shape[0] - i + 1"
    assert spelled("helper.n - 1") == "helper.n - 1"
