"""A compiled launch program: its plan and its sweeps by address, and what its plan says about one block."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np

from irad.codegen.cpu import Code
from irad.launch.block import Layout
from irad.launch.tables import Words, address

PARALLEL_NS = 5_000
"""Estimated nanoseconds of work from which threads are used."""

RELEASE_NS = 100_000
"""Estimated nanoseconds of work from which the GIL is released: a thread that gives it up waits for a whole switch
interval (5 ms) beside a busy Python thread, so short launches keep it."""


@dataclass(frozen=True)
class Plan:
    """What ``plan`` found for one block: work in nanoseconds, tiles of each sweep, numbers of the failed checks."""

    work: int
    tiles: tuple[int, ...]
    failed: tuple[int, ...]


class Executable:
    """Code of a program with the functions ``plan`` and ``sweep0``, ``sweep1``, ... over blocks of ``layout``.

    ``checks`` is the number of checks that ``plan`` reports on (``Program.checks``).
    """

    def __init__(self, code: Code, layout: Layout, sweeps: int, checks: int = 0) -> None:
        self.code = code
        self.layout = layout
        self.sweeps = sweeps
        self.checks = checks
        self.plan_address = code.address("plan")
        self.bodies = tuple(code.address(f"sweep{s}") for s in range(sweeps))
        self._plan = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(self.plan_address)

    @property
    def out_words(self) -> int:
        """Words that ``plan`` puts out."""
        return 1 + self.sweeps + self.checks

    def plan(self, block: Words) -> Plan:
        """Evaluate domains and checks for ``block`` and fill its tail. Nothing but the tail is written."""
        out = np.zeros(self.out_words, np.int64)
        status = self._plan(address(block), address(out))
        failed = {k for k in range(self.checks) if out[1 + self.sweeps + k]}
        if status < 0:
            failed.add(-1 - status)
        return Plan(int(out[0]), tuple(int(n) for n in out[1 : 1 + self.sweeps]), tuple(sorted(failed)))
