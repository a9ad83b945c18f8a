"""Every exception of irad. Each says what was asked, why it cannot be, and what to write instead."""

from __future__ import annotations


class IradError(Exception):
    """Base class of all errors that irad raises.

    ``loc`` is the place in the user's source (``file:line``), ``remedy`` what to write instead.
    """

    def __init__(self, message: str, *, loc: object = None, remedy: str = "") -> None:
        self.reason = message
        self.loc = loc
        self.remedy = remedy
        head = f"{loc}: " if loc is not None else ""
        tail = f"\n  Instead: {remedy}" if remedy else ""
        super().__init__(f"{head}{message}{tail}")


class NotDifferentiableError(IradError):
    """Something in the kernel or function has no derivative that irad can compute, or is not supported."""


class RaceError(IradError):
    """Two points of one launch touch the same address and at least one of them writes."""


class AliasError(IradError):
    """A written array or a shadow overlaps another argument, or has a zero stride."""


class DomainError(IradError):
    """An access leaves its array somewhere in the launch domain."""


class ShadowError(IradError):
    """A shadow has the wrong shape or dtype, is missing where it is needed, or no seed was given."""
