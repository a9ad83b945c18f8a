"""Where in the user's source something happened: the innermost frame outside irad."""

from __future__ import annotations

import os
import sys
from types import FrameType

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Line:
    """``file:line`` of the user's code."""

    __slots__ = ("file", "line")

    def __init__(self, file: str, line: int) -> None:
        self.file, self.line = file, line

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def user_line() -> Line | None:
    """The nearest caller that is not part of irad (nor of NumPy), or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_HERE) and f"{os.sep}numpy{os.sep}" not in file:
            return Line(file, frame.f_lineno)
        frame = frame.f_back
    return None
