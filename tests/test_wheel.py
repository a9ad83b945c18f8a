"""The wheel holds every module, and all of them import from an installed wheel outside the source tree."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the sources, without network."""
    pytest.importorskip("setuptools", "77", reason="builds the wheel with the installed setuptools")
    source = tmp_path_factory.mktemp("source")
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("irad", "passes"):
        shutil.copytree(ROOT / name, source / name, ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", out, source, cwd=out)
    (found,) = out.glob("irad-*.whl")
    return found


def test_wheel_holds_every_file(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    for package, folder in (("irad", ROOT / "irad"), ("irad/passes", ROOT / "passes")):
        for path in folder.rglob("*"):
            if path.suffix in (".py", ".json", ".typed"):
                assert f"{package}/{path.relative_to(folder).as_posix()}" in held
    assert any(n.endswith("licenses/LICENSE") for n in held)


def test_every_module_imports_from_the_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])", cwd=tmp_path).strip())
    run(
        sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel, cwd=tmp_path
    )
    # Dependencies come from the environment that runs the test: a path in a .pth is searched, its own .pth files
    # (the editable irad) are not read.
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    names = [n.removesuffix(".py").replace("/", ".") for n in zipfile.ZipFile(wheel).namelist() if n.endswith(".py")]
    names = [n.removesuffix(".__init__") for n in names if not n.endswith("__main__")]
    code = f"import importlib\nfor n in {names!r}:\n    print(importlib.import_module(n).__file__)"
    files = run(python, "-c", code, cwd=tmp_path).split()
    assert len(files) == len(names) > 50
    assert all(Path(f).is_relative_to(site) for f in files)
