"""Objects on disk, so that the next process loads what this one compiled.

A file is one line of JSON (what the object defines and calls, its size and hash) and the object; its name is a hash of
the LLVM text, the options, and everything in ``target.host_key``. Code from a file is run, so the folder must be
private: a real directory owned by this user that nobody else can enter, or it is not used at all. Files appear by
renaming, and whatever cannot be read as expected counts as absent.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from irad.codegen.object import ObjectCode
from irad.codegen.target import host_key

FORMAT = 1
MOST_BYTES = 256 * 2**20
"""When a process first writes into a folder with more than this, the files that were not used longest go."""

_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_POSIX = os.name == "posix"
_pruned: set[Path] = set()


def key(text: str, *options: object) -> str:
    """The name under which the object of a text is kept."""
    parts = (str(FORMAT), host_key(), repr(options), text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def get(folder: Path, name: str) -> ObjectCode | None:
    """The object kept under ``name``, or None."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError), _private(folder) as where:
        handle = _open(where, name, os.O_RDONLY)
        with os.fdopen(handle, "rb") as file:
            if not _ours(os.fstat(file.fileno()), stat.S_ISREG):
                return None
            header = json.loads(file.readline(2**20))
            data = file.read()
            if header["size"] != len(data) or header["sha256"] != hashlib.sha256(data).hexdigest():
                return None
            with contextlib.suppress(OSError):
                os.utime(file.fileno() if os.utime in os.supports_fd else folder / name)
            return ObjectCode(data, tuple(map(str, header["defines"])), tuple(map(str, header["imports"])))
    return None


def put(folder: Path, name: str, code: ObjectCode) -> bool:
    """Keep an object; False where the folder cannot be used. A failure never disturbs the caller."""
    header = {
        "defines": code.defines,
        "imports": code.imports,
        "size": len(code.data),
        "sha256": hashlib.sha256(code.data).hexdigest(),
    }
    temporary = f"{name}.{uuid.uuid4().hex}.new"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _private(folder) as where:
            handle = _open(where, temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(json.dumps(header).encode() + b"\n" + code.data)
                _replace(where, temporary, name)
            except BaseException:
                with contextlib.suppress(OSError):
                    _remove(where, temporary)
                raise
        if folder not in _pruned:
            _pruned.add(folder)
            prune(folder)
        return True
    return False


def prune(folder: Path, most: int = MOST_BYTES) -> None:
    """Remove what was not used longest until the folder holds at most ``most`` bytes."""
    found = []
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                found.append((status.st_mtime, status.st_size, entry.name))
    total = sum(size for _, size, _ in found)
    for _, size, name in sorted(found):
        if total <= most:
            break
        with contextlib.suppress(OSError):
            (folder / name).unlink()
            total -= size


def describe(folder: Path | None) -> str:
    """One line on the cache, for people."""
    if folder is None:
        return "off"
    try:
        with _private(folder):
            files = list(os.scandir(folder))
            return f"{folder} ({len(files)} files, {sum(f.stat().st_size for f in files) / 2**20:.1f} MiB)"
    except FileNotFoundError:
        return f"{folder} (empty)"
    except OSError as error:
        return f"{folder} (not used: {error.strerror or error})"


# The folder as an open directory where the system offers that: it cannot be exchanged under our hands.
_Where = tuple[Path, int | None]


@contextmanager
def _private(folder: Path) -> Iterator[_Where]:
    """The folder, if it is safe to run code from it; else ``OSError``."""
    if not _POSIX:
        if not folder.is_dir():
            raise FileNotFoundError(str(folder))
        yield folder, None
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _NO_LINKS)
    try:
        if not _ours(os.fstat(handle), stat.S_ISDIR):
            raise PermissionError(1, "others can enter it, or it belongs to somebody else")
        yield folder, handle
    finally:
        os.close(handle)


def _ours(status: os.stat_result, kind: object) -> bool:
    if not kind(status.st_mode):  # type: ignore[operator]
        return False
    return not _POSIX or (status.st_uid == os.geteuid() and not status.st_mode & 0o077)


def _open(where: _Where, name: str, flags: int) -> int:
    folder, handle = where
    flags |= _NO_LINKS | _BINARY
    return os.open(folder / name, flags, 0o600) if handle is None else os.open(name, flags, 0o600, dir_fd=handle)


def _replace(where: _Where, old: str, new: str) -> None:
    folder, handle = where
    if handle is None:
        os.replace(folder / old, folder / new)
    else:
        os.replace(old, new, src_dir_fd=handle, dst_dir_fd=handle)


def _remove(where: _Where, name: str) -> None:
    folder, handle = where
    if handle is None:
        os.unlink(folder / name)
    else:
        os.unlink(name, dir_fd=handle)
