"""A progress bar over the time span, drawn by tqdm."""

from __future__ import annotations

import warnings
from types import TracebackType
from typing import Any


class Progress:
    """A context manager; does nothing unless ``show`` is true and tqdm is installed."""

    def __init__(self, show: bool, t0: float, t1: float) -> None:
        self._bar: Any = None
        self._t = self._t0 = t0
        self._show, self._t1 = show, t1

    def __enter__(self) -> Progress:
        if self._show:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                warnings.warn("progress=True needs the package tqdm (pip install tqdm)", RuntimeWarning, stacklevel=3)
                return self
            shape = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
            self._bar = tqdm(total=abs(self._t1 - self._t0), desc=f"t = {self._t0:.6g}", bar_format=shape)
        return self

    def update(self, t: float) -> None:
        """The solve has come to ``t``."""
        if self._bar is not None:
            self._bar.set_description_str(f"t = {t:.6g}", refresh=False)
            self._bar.update(abs(t - self._t))
            self._t = t

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
