"""Environment switches, read once when irad is imported.

=================== ==================================================================================================
``IRAD_NUM_THREADS`` most threads that one launch uses (default: ``NUMBA_NUM_THREADS``, else the cores of this process;
                     ``numba.set_num_threads`` is honoured unless this switch is set)
``IRAD_CACHE_DIR``   folder for compiled code (default: the user's cache folder; ``off``: no cache)
``IRAD_VERIFY``      ``1``: check the intermediate representation after every pass (default 0)
``IRAD_DUMP``        folder into which the text of every compiled module is written (default: none)
``IRAD_VECTOR_BITS`` 256 or 512: vector registers that code prefers on AVX-512 machines (default: LLVM's choice)
=================== ==================================================================================================
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from irad.errors import IradError


@dataclass(frozen=True)
class Config:
    """The switches of this process; :data:`CONFIG` holds them.

    >>> Config.read({"IRAD_NUM_THREADS": "4"}).num_threads
    4
    """

    num_threads: int | None = None
    cache_dir: Path | None = None
    verify: bool = False
    dump: Path | None = None
    vector_bits: int | None = None

    @staticmethod
    def read(environment: Mapping[str, str]) -> Config:
        """Parse the ``IRAD_*`` entries of ``environment``; a value that makes no sense raises ``IradError``."""
        threads = environment.get("IRAD_NUM_THREADS", "")
        dump = environment.get("IRAD_DUMP", "")
        bits = environment.get("IRAD_VECTOR_BITS", "")
        if bits not in ("", "256", "512"):
            raise IradError(f"IRAD_VECTOR_BITS={bits!r} is neither 256 nor 512", remedy="unset it for LLVM's choice")
        return Config(
            num_threads=_positive("IRAD_NUM_THREADS", threads) if threads else None,
            cache_dir=_cache_dir(environment),
            verify=_switch("IRAD_VERIFY", environment.get("IRAD_VERIFY", "0")),
            dump=Path(dump) if dump else None,
            vector_bits=int(bits) if bits else None,
        )


def _positive(name: str, text: str) -> int:
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise IradError(f"{name}={text!r} is not a positive whole number", remedy=f"unset {name} or give 1, 2, 3, ...")


def _switch(name: str, text: str) -> bool:
    try:
        return {"": False, "0": False, "1": True}[text]
    except KeyError:
        raise IradError(f"{name}={text!r} is neither 0 nor 1", remedy=f"unset {name} or give 0 or 1") from None


def _cache_dir(environment: Mapping[str, str]) -> Path | None:
    text = environment.get("IRAD_CACHE_DIR", "")
    if text.lower() == "off":
        return None
    if text:
        return Path(text)
    base = environment.get("LOCALAPPDATA") or environment.get("XDG_CACHE_HOME")
    home = environment.get("HOME") or environment.get("USERPROFILE")
    if not base and not home:
        return None
    return Path(base) / "irad" if base else Path(str(home)) / ".cache" / "irad"


CONFIG = Config.read(os.environ)
