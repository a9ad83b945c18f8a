"""The examples in docstrings, in the manual of errors and in the README run and give what they say."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import irad.__main__

ROOT = Path(__file__).resolve().parent.parent

DOCUMENTED = sorted(
    ".".join((package, *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__")
    for package, folder in (("irad", ROOT / "irad"), ("irad.passes", ROOT / "passes"))
    for path in folder.rglob("*.py")
    if re.search(r"^\s*>>> ", path.read_text(), re.M)
)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_in_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    if name == "irad.errors":  # one script: later examples use what earlier ones define
        parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
        text = "\n".join(
            [module.__doc__ or ""]
            + [getattr(module, n).__doc__ for n in (
                "IradError", "NotDifferentiableError", "RaceError", "AliasError", "DomainError", "ShadowError",
            )]
        )  # fmt: skip
        results = runner.run(parser.get_doctest(text, {}, name, module.__file__, 0))
        assert results.attempted > 20
    else:
        results = doctest.testmod(module)
        assert results.attempted
    assert results.failed == 0


def test_code_in_the_readme(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(blocks) == 4
    script = tmp_path / "readme.py"
    script.write_text("\n".join(blocks) + "\nassert g.u0.shape == g.Ci.shape == (64, 64) and abs(g.p[0]) > 0\n")
    runpy.run_path(str(script))


def test_the_demo(tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    command = [sys.executable, ROOT / "examples" / "diffusion3d.py", "--picture", picture]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    found = {
        row[0]: list(map(float, row[1:4]))
        for row in re.findall(r"^(\w+|forward mode) +(-?[\d.]+) +([\d.]+) +([\d.]+) +[\d.]+$", done.stdout, re.M)
    }
    assert set(found) == {"DiscreteAdjoint", "InterpolatingAdjoint", "forward mode"}
    assert found["DiscreteAdjoint"] == pytest.approx(found["forward mode"], rel=1e-8)
    assert found["InterpolatingAdjoint"] == pytest.approx(found["forward mode"], rel=1e-5)
    # Known to ten digits from matrix exponentials: the loss and its derivative by lam.
    loss = float(re.search(r"loss sum\(T\(t1\)\) = (\S+)", done.stdout)[1])  # type: ignore[index]
    assert loss == pytest.approx(8885.926770894, rel=1e-6)
    assert found["DiscreteAdjoint"][0] == pytest.approx(-9605.321476019, rel=2e-6)
    assert "100%" in done.stderr
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_info() -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert irad.__main__.main(["info"]) == 0
    titles = [line.split("  ")[0].strip() for line in out.getvalue().splitlines()]
    assert titles == ["irad", "built on", "CPU", "threads", "launches", "GPU", "libdevice", "cache"]
