"""Every module imports, every package is in the wheel's list, and no import points back.

The table below is the drawing in CONTRIBUTING.md: Python kernel -> frontend -> LLVM IR -> passes -> codegen -> launch
-> tape -> ode. A part may import itself and what its row names.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    tomllib = None

ROOT = Path(__file__).resolve().parent.parent

WORDS = {"irad.errors", "irad.config", "irad.annotations", "irad.fd", "irad.domains"}
_KERNEL = ("kernel", "specialise", "launching", "loops", "wrt", "explain", "autodiff", "pullback", "staged")
KERNEL = {f"irad.{m}" for m in _KERNEL}
MAY_IMPORT: dict[str, set[str]] = {
    "words": {"words"},
    "passes": {"errors"},
    "frontend": {"words"},
    "codegen": {"words"},
    "launch": {"words", "codegen"},
    "recording": {"words"},
    "kernel": {"words", "frontend", "passes", "codegen", "launch", "recording"},
    "tape": {"words", "launch", "kernel", "recording"},
    "ode": {"words", "codegen", "launch", "kernel", "tape", "recording"},
    "top": {"words", "frontend", "passes", "codegen", "launch", "kernel", "tape", "ode", "recording"},
}


def modules() -> dict[str, Path]:
    """Every module of both packages: name to file."""
    found = {}
    for package, folder in (("irad", ROOT / "irad"), ("irad.passes", ROOT / "passes")):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join((package, *(p for p in parts if p != "__init__")))
            found[name] = path
    return found


def part_of(name: str) -> str:
    """The row of the table that a module belongs to."""
    if name == "irad.errors":
        return "errors"
    if name in WORDS:
        return "words"
    if name in KERNEL:
        return "kernel"
    if name == "irad.recording":
        return "recording"
    parts = name.split(".")
    if len(parts) > 1 and parts[1] in ("passes", "frontend", "codegen", "launch", "tape", "ode"):
        return parts[1]
    return "top"


def imports_of(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """Modules of ours that a module imports, wherever in its text."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {f"{base}.{a.name}" if f"{base}.{a.name}" in known else base for a in node.names}
    return {m for m in found if m == "irad" or m.startswith("irad.")}


def test_every_module_imports() -> None:
    for name in modules():
        if not name.endswith("__main__"):
            importlib.import_module(name)


def test_no_import_points_back() -> None:
    known = modules()
    back = []
    for name, path in known.items():
        part = part_of(name)
        if part == "top" or part == "errors":
            allowed = MAY_IMPORT["top"] if part == "top" else set()
        else:
            allowed = MAY_IMPORT[part] | {part}
        allowed = allowed | ({"errors"} if "words" in allowed else set())
        for other in imports_of(name, path, known):
            if part_of(other) not in allowed and not (part == "top" and part_of(other) == "top"):
                back.append(f"{name} ({part}) imports {other} ({part_of(other)})")
    assert not back, "imports that point back:\n" + "\n".join(sorted(back))


def test_a_back_arrow_would_show(tmp_path: Path) -> None:
    path = tmp_path / "gather.py"
    path.write_text("from ..launch import arrays\n\ndef f():\n    import irad.kernel\n")
    known = modules()
    assert {part_of(m) for m in imports_of("irad.passes.gather", path, known)} == {"launch", "kernel"}


@pytest.mark.skipif(tomllib is None, reason="tomllib came with Python 3.11")
def test_every_package_is_listed() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    there = {n for n, p in modules().items() if p.name == "__init__.py"}
    folders = {
        ".".join((package, *path.parent.relative_to(folder).parts))
        for package, folder in (("irad", ROOT / "irad"), ("irad.passes", ROOT / "passes"))
        for path in folder.rglob("*.py")
    }
    assert listed == there == folders
