"""Pipelines, their table, and the command."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from irad.passes import base, pipeline
from irad.passes.__main__ import main
from irad.passes.base import PASSES, Options, Pass
from irad.passes.ir.model import ArrayParam, Function, Instr, PointFn, ScalarParam
from irad.passes.ir.read import read_function
from irad.passes.ir.verify import MalformedError

from irad.errors import IradError

GOLDEN = Path(__file__).parent / "golden"
TEXT = (GOLDEN / "weak_heat.ll").read_text()


def test_every_named_pipeline_fits_together() -> None:
    for name in pipeline.PIPELINES:
        passes = pipeline.passes_of(name)
        for before, after in itertools.pairwise(passes):
            assert before.gives == after.takes, (name, before.name, after.name)


def test_every_pass_names_code_that_exists() -> None:
    import importlib

    for p in PASSES.values():
        module, function = p.code.split(":")
        assert callable(getattr(importlib.import_module(module, "irad.passes"), function)), p.name
        assert p.takes in base.KINDS
        assert p.gives in base.KINDS
        assert set(p.needs) <= set(Options.__dataclass_fields__)


def test_unknown_passes_are_named() -> None:
    with pytest.raises(IradError, match="no pass or pipeline nonsense"):
        pipeline.passes_of("read,nonsense")


def test_steps_say_what_each_pass_did() -> None:
    seen = []
    value, steps = pipeline.run(
        pipeline.passes_of("prepare"), TEXT, Options("heat", frozenset({"dx"})), check=True,
        watch=lambda name, value: seen.append(name),
    )  # fmt: skip
    assert isinstance(value, Function)
    assert [s.name for s in steps] == seen == list(pipeline.PIPELINES["prepare"])
    assert all(s.seconds >= 0 and s.size > 0 for s in steps)


def test_text_is_read_where_a_pass_takes_a_function() -> None:
    value, _ = pipeline.run(pipeline.passes_of("weak, tidy"), TEXT, Options("heat", frozenset({"dx"})))
    assert isinstance(value, Function)
    assert "fmul" in [i.op for i in value.instrs() if i.type == "double"]


def test_a_pass_refuses_what_it_does_not_take() -> None:
    with pytest.raises(IradError, match="the pass weak takes a function, not a str"):
        PASSES["weak"].run("text", Options())


def test_checks_run_after_every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(fn: Function) -> Function:
        fn = fn.clone()[0]
        fn.blocks[0].instrs.pop()
        return fn

    monkeypatch.setattr("irad.passes.tidy.spoil", spoil, raising=False)
    broken = Pass("spoil", "function", "function", ".tidy:spoil")
    fn = read_function(TEXT, "heat")
    pipeline.run([broken], fn, Options())
    with pytest.raises(MalformedError):
        pipeline.run([broken], fn, Options(), check=True)


def test_passes_that_change_in_place_get_a_copy() -> None:
    fn = read_function("define double @f(double %x) {\n %y = fmul double %x, %x\n ret double %x\n}", "f")
    value = PASSES["dce"].run(fn, Options())
    assert isinstance(value, Function)
    assert len(list(value.instrs())) == 1
    assert len(list(fn.instrs())) == 2


def test_parameters_from_names() -> None:
    fn = read_function(TEXT, "heat")
    assert pipeline.rank_of(fn) == 1
    assert pipeline.params_of(fn, frozenset({"dx"})) == (
        ArrayParam("D", "float", 1), ArrayParam("T", "float", 1), ScalarParam("dx", "double", True),
    )  # fmt: skip


def test_parameters_of_a_point_function() -> None:
    fn = read_function((GOLDEN / "structured.ll").read_text(), "p")
    assert pipeline.rank_of(fn) == 1
    assert pipeline.params_of(fn) == (ScalarParam("lam", "double"),)
    (value, _) = pipeline.run([Pass("same", "point", "point", ".pipeline:check_value")], fn, Options())
    assert isinstance(value, PointFn)


# the command ---------------------------------------------------------------------------------------------------------


def run_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(list(arguments))
    out, err = capsys.readouterr()
    return status, out, err


def test_the_command_prints_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run_command(
        capsys, "prepare", str(GOLDEN / "weak_heat.ll"), "--weak", "dx", "--time", "--verify"
    )
    assert status == 0
    assert "define void @heat(" in out
    assert [line.split()[0] for line in err.splitlines()] == list(pipeline.PIPELINES["prepare"])


def test_the_command_dumps_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = run_command(capsys, "read,tidy", str(GOLDEN / "structured.ll"), "--dump")
    assert err.count("; ---- after") == 2
    assert "; ---- after tidy\n" in err


def test_the_command_lists_passes(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run_command(capsys, "--list")
    assert status == 0
    assert all(name in out for name in (*PASSES, *pipeline.PIPELINES))


def test_errors_of_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, err = run_command(capsys, "prepare", str(GOLDEN / "reject_atomic.ll"))
    assert (status, out) == (1, "")
    assert "atomic" in err
    status, _, err = run_command(capsys, "prepare", str(tmp_path / "missing.ll"))
    assert status == 1
    assert "missing.ll" in err
    two = tmp_path / "two.ll"
    two.write_text("define void @f() {\n ret void\n}\ndefine void @g() {\n ret void\n}\n")
    status, _, err = run_command(capsys, "prepare", str(two))
    assert status == 1
    assert "--function" in err
    assert run_command(capsys, "prepare", str(two), "--function", "g")[0] == 0


def test_a_pass_is_a_value() -> None:
    assert Pass("x", "text", "text", ".a:b") == Pass("x", "text", "text", ".a:b")
    with pytest.raises(AttributeError):
        Pass("x", "text", "text", ".a:b").name = "y"  # type: ignore[misc]
    assert Instr("ret", "void").targets == []
