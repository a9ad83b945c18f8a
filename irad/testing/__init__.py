"""``irad.testing.check_gradient``: is the gradient of this kernel or function right? For users' own tests, too.

Three checks that fail differently. The *dot-product test* compares reverse with forward mode and needs no step size; it
does not see a mistake that both share. The *Taylor test* compares forward mode with the function itself: what the
linear model leaves over must shrink with the square of the step. The *oracle* (kernels only) runs the Python function
on numbers that carry derivatives, and compares entry by entry.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irad.testing.of_functions import FunctionCheck
from irad.testing.of_kernels import KernelCheck
from irad.testing.report import GradientError, Report, Row

__all__ = ["GradientError", "Report", "Row", "check_gradient"]


def check_gradient(f: Any, *args: Any, wrt: Any = None, rtol: float | None = None, seed: int = 0) -> Report:
    """Check the derivatives that irad computes of ``f`` at ``args``.

    Parameters
    ----------
    f : kernel or callable
        A kernel (``@irad.kernel``), or a function that returns one number computed by irad from its arguments, as
        :func:`irad.value_and_grad` takes it.
    args
        Its arguments. They stay as they are. Choose data away from kinks (``abs`` at 0, the two sides of a branch):
        there the Taylor test fails, rightly.
    wrt : str, int or a sequence of these, optional
        What to differentiate by: names of a kernel's arguments and captured arrays or floats (default: every float and
        floating-point array among the arguments that it reads), names or positions for a function (default: the first).
    rtol : float, optional
        Relative to the sum of the absolute values of the terms compared; default 1e-10 in double, 1e-3 in single
        precision.
    seed : int
        Of the random directions.

    Returns
    -------
    Report
        The comparisons made; printing it shows a table.

    Raises
    ------
    GradientError
        An ``AssertionError`` with that table, if anything is wrong.

    Examples
    --------
    >>> import irad, irad.testing, numpy as np
    >>> @irad.kernel
    ... def step(v, u, a):
    ...     i = irad.interior(u)
    ...     v[i] = u[i] + a * (u[i - 1] - 2 * u[i] + u[i + 1])
    >>> irad.testing.check_gradient(step, np.zeros(9), np.linspace(0, 1, 9) ** 2, 0.25).ok
    True
    """
    rng = np.random.default_rng(seed)
    if getattr(f, "__irad_kernel__", False) is True:
        rows = KernelCheck(f, args, wrt, rtol, rng).rows()
    else:
        rows = FunctionCheck(f, args, wrt, rtol, rng).rows()
    report = Report(getattr(f, "__name__", repr(f)), tuple(rows))
    if not report.ok:
        raise GradientError(report)
    return report
