"""Every ``.ll`` file of ``golden`` says what a pipeline makes of it, or why it is refused."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("filecheck", HERE.parent / "filecheck.py")
assert spec is not None
assert spec.loader is not None
checker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checker)


@pytest.mark.parametrize("path", sorted((HERE / "golden").glob("*.ll")), ids=lambda p: p.stem)
def test_file(path: Path) -> None:
    checker.filecheck(path)


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ([("CHECK", "b"), ("CHECK", "a")], "no line for CHECK: a"),
        ([("CHECK", "a"), ("NEXT", "c")], "no line for NEXT: c"),
        ([("CHECK", "a"), ("NOT", "b"), ("CHECK", "c")], "NOT: b matches"),
        ([("CHECK", "[[x:[a-z]]] 1"), ("CHECK", "[[x]] 2")], "no line for CHECK"),
    ],
)
def test_the_checker_finds_what_is_wrong(expected: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(AssertionError, match=message.replace("[", r"\[")):
        checker.match(expected, ["a 1", "b 2", "c 3"])
