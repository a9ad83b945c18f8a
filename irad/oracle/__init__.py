"""A slow and obvious interpreter of kernels that knows derivatives: what fast code is tested against.

The Python function itself is run, point after point (statements of ``irad.fd`` one after another), on numbers that
carry derivatives. Nothing is shared with the compiler: neither its passes nor its table of rules.

================================= ===================================================================================
:func:`primal`                    the arrays as the kernel leaves them
:func:`jvp`                       and their tangents: forward mode, dual numbers
:func:`vjp`                       and the cotangents of what they were before: reverse mode, a tape of every operation
:func:`jacobian`                  and all derivatives of some arrays by others: forward mode, many tangents at once
================================= ===================================================================================

A kernel is a map of the state (all arrays, floats, and what is captured) to the state. Forward mode applies its
derivative, reverse mode the transpose: an entry that the kernel overwrites gives its cotangent up as the seed and
receives that of its old value; every other entry keeps its own, and what was read is added to.

A function takes some microseconds an operation and point: arrays of up to some thousand points.
"""

from irad.oracle.run import Result, jacobian, jvp, primal, vjp

__all__ = ["Result", "jacobian", "jvp", "primal", "vjp"]
