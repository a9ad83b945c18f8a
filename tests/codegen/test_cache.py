"""Objects on disk: what comes back, what is distrusted, what goes."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from irad.codegen import cache, cpu
from irad.codegen.object import ObjectCode

CODE = ObjectCode(b"bytes\nof an object\0", ("f", "g"), ("erf",))
TEXT = "define i64 @f(i64 %x) {\n  %y = mul i64 %x, 3\n  ret i64 %y\n}\n"
posix = pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "deep" / "cache"


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_what_is_put_comes_back(folder):
    assert cache.get(folder, "k") is None
    assert cache.put(folder, "k", CODE)
    assert cache.get(folder, "k") == CODE
    assert cache.get(folder, "other") is None
    assert cache.put(folder, "k", dataclasses.replace(CODE, data=b"new"))
    assert cache.get(folder, "k").data == b"new"
    assert names(folder) == ["k"]
    assert "1 files" in cache.describe(folder)


@posix
def test_folder_and_files_are_private(folder):
    cache.put(folder, "k", CODE)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "k").stat().st_mode & 0o777 == 0o600


@posix
@pytest.mark.parametrize("mode", [0o770, 0o701, 0o777, 0o710])
def test_folder_that_others_can_enter_is_not_used(folder, mode):
    cache.put(folder, "k", CODE)
    folder.chmod(mode)
    assert cache.get(folder, "k") is None
    assert not cache.put(folder, "l", CODE)
    assert names(folder) == ["k"]
    assert "not used" in cache.describe(folder)


@posix
def test_links_are_not_followed(folder, tmp_path):
    cache.put(folder, "k", CODE)
    (folder / "l").symlink_to(folder / "k")
    assert cache.get(folder, "l") is None
    (tmp_path / "link").symlink_to(folder)
    assert cache.get(tmp_path / "link", "k") is None
    assert not cache.put(tmp_path / "link", "m", CODE)


@posix
def test_file_that_others_can_write_is_not_used(folder):
    cache.put(folder, "k", CODE)
    (folder / "k").chmod(0o622)
    assert cache.get(folder, "k") is None


DAMAGES = {
    "cut": lambda b: b[:-1],
    "longer": lambda b: b + b"x",
    "empty": lambda b: b"",
    "shifted": lambda b: b"\0" + b,
    "changed": lambda b: b.replace(b"object", b"obJect"),
    "list": lambda b: b"[]\n",
    "no header": lambda b: b"{}\n" + b,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_files_count_as_absent(folder, damage):
    cache.put(folder, "k", CODE)
    file = folder / "k"
    file.write_bytes(damage(file.read_bytes()))
    assert cache.get(folder, "k") is None


def test_impossible_folders_disturb_nobody(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    assert not cache.put(file, "k", CODE)
    assert not cache.put(file / "below", "k", CODE)
    assert cache.get(file, "k") is None
    assert "not used" in cache.describe(file)
    assert cache.describe(None) == "off"
    assert "empty" in cache.describe(tmp_path / "none")


def test_prune_removes_what_was_not_used_longest(folder):
    for n, name in enumerate("abcd"):
        cache.put(folder, name, CODE)
        os.utime(folder / name, (n, n))
    cache.get(folder, "a")
    size = (folder / "a").stat().st_size
    cache.prune(folder, 2 * size)
    assert names(folder) == ["a", "d"]


def test_key_depends_on_text_options_and_host(monkeypatch):
    keys = {cache.key(TEXT), cache.key(TEXT + " "), cache.key(TEXT, True), cache.key(TEXT, False)}
    monkeypatch.setattr(cache, "host_key", lambda: "another machine")
    keys.add(cache.key(TEXT))
    assert len(keys) == 5


def test_compile_text_uses_the_cache(folder, monkeypatch):
    monkeypatch.setattr(cpu, "CONFIG", dataclasses.replace(cpu.CONFIG, cache_dir=folder))
    first = cpu.compile_text(TEXT)
    assert len(names(folder)) == 1
    monkeypatch.setattr(cpu, "emit", None)
    second = cpu.compile_text(TEXT)
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(second.address("f"))(5) == 15
    assert second.object == first.object
    assert "mul" in second.llvm or "shl" in second.llvm or "lea" in second.asm()
    with pytest.raises(TypeError):
        cpu.compile_text(TEXT, keep=False)


def test_two_processes_share_it(folder):
    program = f"""
import sys
from irad.codegen import cpu
if sys.argv[1] == "again":
    cpu.emit = None
cpu.compile_text({TEXT!r})
"""
    env = {**os.environ, "IRAD_CACHE_DIR": str(folder)}
    for word in ("first", "again"):
        subprocess.run([sys.executable, "-c", program, word], env=env, check=True, timeout=60)
    assert len(names(folder)) == 1
