"""Order, dominance and loops, on random graphs against their definitions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from irad.passes.ir import graph
from irad.passes.ir.model import Arg, Block, Const, Function, Instr
from irad.passes.ir.read import read_function
from irad.passes.ir.verify import verify


def function_of(edges: list[tuple[int, ...]]) -> Function:
    """A function whose block ``k`` leads to the blocks ``edges[k]`` (none: it returns); none leads to the entry."""
    fn = Function("f", "void", [Arg("i1", "c"), Arg("i64", "n")])
    entry = fn.block("entry")
    blocks = [fn.block(f"b{k}") for k in range(len(edges))]
    entry.append(Instr("br", "void", targets=[blocks[0]]))
    for b, targets in zip(blocks, edges, strict=True):
        to = [blocks[t] for t in targets]
        if not to:
            b.append(Instr("ret", "void"))
        elif len(to) == 1:
            b.append(Instr("br", "void", targets=to))
        elif len(to) == 2:
            b.append(Instr("br", "void", [fn.args[0]], targets=to))
        else:
            b.append(Instr("switch", "void", [fn.args[1]], targets=to, cases=tuple(range(len(to) - 1))))
    return fn


@st.composite
def graphs(draw: st.DrawFn) -> Function:
    n = draw(st.integers(1, 9))
    targets = st.lists(st.integers(0, n - 1), min_size=0, max_size=3).map(tuple)
    return function_of([draw(targets) for _ in range(n)])


def reachable(start: Block, without: Block | None = None) -> set[Block]:
    if start is without:
        return set()
    seen, work = {start}, [start]
    while work:
        for s in work.pop().successors:
            if s is not without and s not in seen:
                seen.add(s)
                work.append(s)
    return seen


@given(graphs())
@settings(max_examples=200, deadline=None)
def test_a_dominator_cannot_be_avoided(fn: Function) -> None:
    live = reachable(fn.blocks[0])
    dom = graph.dominators(fn)
    assert set(dom) == live
    for d in live:
        avoided = reachable(fn.blocks[0], without=d)
        for b in live:
            assert (d in dom[b]) == (b not in avoided)
    tree = graph.immediate_dominators(fn)
    for b in live:
        chain = {b}
        at = tree[b]
        while at is not None:
            chain.add(at)
            at = tree[at]
        assert chain == dom[b]


@given(graphs())
@settings(max_examples=200, deadline=None)
def test_a_post_dominator_lies_on_every_way_out(fn: Function) -> None:
    post = graph.post_dominators(fn)
    exits = {b for b in fn.blocks if b.terminator.op == "ret"}
    leave = {b for b in fn.blocks if reachable(b) & exits}
    assert set(post) == leave
    for b in leave:
        for d in leave:
            assert (d in post[b]) == (not reachable(b, without=d) & exits)


@given(graphs())
@settings(max_examples=200, deadline=None)
def test_reverse_postorder(fn: Function) -> None:
    order = graph.reverse_postorder(fn)
    assert order[0] is fn.blocks[0]
    assert set(order) == reachable(fn.blocks[0])
    assert len(set(order)) == len(order)
    place = {b: k for k, b in enumerate(order)}
    if graph.is_reducible(fn):
        dom = graph.dominators(fn)
        for b in order:
            for s in b.successors:
                assert place[b] < place[s] or s in dom[b]


@given(graphs())
@settings(max_examples=200, deadline=None)
def test_loops_are_cycles_with_one_way_in(fn: Function) -> None:
    preds = graph.predecessors(fn)
    live = reachable(fn.blocks[0])
    for loop in graph.loops(fn):
        for b in loop.blocks:
            assert loop.header in reachable(b)
            assert b in reachable(loop.header)
            if b is not loop.header:
                assert all(p in loop.blocks for p in preds[b] if p in live)
        assert loop.depth == 1 + sum(o is not loop and loop.blocks < o.blocks for o in graph.loops(fn))
        assert all(b in loop.blocks and s not in loop.blocks for b, s in loop.exits())


@given(graphs())
@settings(max_examples=200, deadline=None)
def test_no_critical_edge_is_left(fn: Function) -> None:
    paths = reachable(fn.blocks[0])
    graph.split_critical_edges(fn)
    verify(fn)
    preds = graph.predecessors(fn)
    assert paths <= reachable(fn.blocks[0])
    for b in fn.blocks:
        if len(b.successors) > 1:
            assert all(len(preds[s]) == 1 for s in b.successors)


def test_phis_follow_a_split_edge() -> None:
    fn = read_function(
        """
        define double @f(i64 %n, double %x) {
        entry:
          switch i64 %n, label %end [
            i64 1, label %a
            i64 2, label %end
          ]
        a:
          br label %end
        end:
          %r = phi double [ %x, %entry ], [ 1.0, %a ], [ %x, %entry ]
          ret double %r
        }""",
        "f",
    )
    assert graph.split_critical_edges(fn)
    verify(fn)
    assert not graph.split_critical_edges(fn)
    (phi,) = fn.blocks[-1].phis
    assert len({id(b) for b in phi.targets}) == 3
    assert [v.text if isinstance(v, Const) else v.name for v in phi.operands] == ["x", "1.000000e+00", "x"]


def test_nested_loops() -> None:
    #      0 -> 1 (outer) -> 2 (inner) -> 2 | 3 -> 1 | 4
    fn = function_of([(1,), (2,), (2, 3), (1, 4), ()])
    outer, inner = graph.loops(fn)
    assert (outer.header.name, inner.header.name) == ("b1", "b2")
    assert inner.parent is outer
    assert outer.children == [inner]
    assert [b.name for b in inner.latches] == ["b2"]
    assert [(b.name, s.name) for b, s in outer.exits()] == [("b3", "b4")]
    assert graph.is_reducible(fn)


def test_a_cycle_with_two_ways_in_is_irreducible() -> None:
    fn = function_of([(1, 2), (2,), (1, 3), ()])
    assert not graph.is_reducible(fn)
    assert graph.loops(fn) == []


def test_users() -> None:
    fn = read_function("define double @f(double %x) {\n %y = fmul double %x, %x\n ret double %y\n}", "f")
    mul, ret = fn.instrs()
    found = graph.users(fn)
    assert found[fn.args[0]] == [mul]
    assert found[mul] == [ret]


@pytest.mark.parametrize("k", [0, 1])
def test_split_edge_gives_the_new_block(k: int) -> None:
    fn = function_of([(1, 2), (2,), ()])
    top = fn.blocks[1]
    middle = graph.split_edge(fn, top, k)
    assert top.successors[k] is middle
    assert len(middle.instrs) == 1
