"""How a solve ended, in a word and in a sentence that says what to change."""

from __future__ import annotations

import enum


class Retcode(enum.Enum):
    """``retcode is Retcode.SUCCESS`` is the only good end; ``retcode.value`` says what to do about the others."""

    SUCCESS = "The end of the time span was reached."
    MAXITERS = (
        "maxiters steps were taken before the end of the time span. Raise maxiters, loosen rtol and atol, or look for "
        "a right-hand side that jumps or oscillates faster than it should."
    )
    DTMIN = (
        "The step needed is smaller than dtmin, or than rounding in t allows. The solution may have a singularity near "
        "sol.t[-1]; a jump of f in time belongs into tstops; tolerances near rounding cannot be met."
    )
    UNSTABLE = (
        "The state or the error estimate stayed infinite or NaN however small the step became. Check the right-hand "
        "side near sol.t[-1] (division by zero, square root of a negative number), and spectral_radius if you gave it."
    )
    NOT_FINITE_AT_START = (
        "u0, or the right-hand side at u0, is infinite or NaN. Check the initial state and the parameters."
    )

    @property
    def good(self) -> bool:
        return self is Retcode.SUCCESS
