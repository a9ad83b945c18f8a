"""``python -m irad info``: what this machine offers to irad, one line each."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

import irad
from irad.codegen import cache, target
from irad.config import CONFIG
from irad.launch import abi, threads

_CUDA_FOLDERS = ("CUDA_HOME", "CUDA_PATH", "NUMBAPRO_CUDA_HOME")
_LIBDEVICE = "nvvm/libdevice/libdevice.10.bc"


def information() -> Iterator[tuple[str, str]]:
    """Title and text of each line."""
    yield "irad", f"{irad.__version__}, Python {platform.python_version()}, {platform.platform()}"
    versions = [f"{name} {_version(name)}" for name in ("numba", "numpy", "scipy")]
    yield (
        "built on",
        f"llvmlite {llvmlite.__version__}, LLVM {'.'.join(map(str, llvm.llvm_version_info))}, {', '.join(versions)}",
    )
    _, cpu, features = target.host()
    wide = [f for f in ("avx512f", "avx2", "neon", "sve") if f"+{f}" in features.split(",")]
    yield "CPU", f"{cpu}, {_cores()} cores for this process{', ' + wide[0] if wide else ''}"
    yield "threads", threads.describe()
    yield "launches", "compiled" if abi.PROBLEM is None else f"through Python: {abi.PROBLEM}"
    yield "GPU", _gpu()
    yield "libdevice", _libdevice()
    yield "cache", cache.describe(CONFIG.cache_dir)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _gpu() -> str:
    """What CuPy says of the device. irad itself runs kernels on the CPU."""
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed; kernels run on the CPU"
    except Exception as error:  # a broken driver raises whatever it likes
        return f"CuPy cannot be used: {error}"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
        names = [cupy.cuda.runtime.getDeviceProperties(i)["name"].decode() for i in range(count)]
    except Exception as error:
        return f"CuPy {cupy.__version__} finds no device: {error}"
    return f"CuPy {cupy.__version__}, {', '.join(names) or 'no device'}; kernels run on the CPU"


def _libdevice() -> str:
    """Where NVIDIA's device math library lies."""
    roots = [Path(os.environ[name]) for name in _CUDA_FOLDERS if os.environ.get(name)]
    roots += [Path("/usr/local/cuda"), Path("/opt/cuda")]
    for site in map(Path, sys.path):
        roots += sorted(site.glob("nvidia/cuda_nvcc")) + sorted(site.glob("nvidia/cu1*"))
    found = [root / _LIBDEVICE for root in roots if (root / _LIBDEVICE).is_file()]
    return str(found[0]) if found else "not found (CUDA_HOME is not set, and it is in no usual place)"


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m irad", description="irad: exact adjoints of stencil kernels")
    parser.add_argument("command", choices=["info"], help="info: what this machine offers")
    parser.parse_args(arguments)
    for title, text in information():
        print(f"{title:10} {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
