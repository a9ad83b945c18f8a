"""Every exception of irad: cause, an example that fails, and the remedy.

All derive from :class:`IradError` and carry ``reason`` (why it cannot be), ``loc`` (``file:line`` of the user's source,
where there is one) and ``remedy`` (what to write instead). All checks come before anything is written: an array is as
it was when one of these is raised.

The examples below are one script and run as a test.

>>> import numpy as np
>>> import irad
>>> from irad.fd import inn, d2_xi
"""

from __future__ import annotations


class IradError(Exception):
    """Base class of all errors that irad raises: catch this one to catch them all.

    Raised itself for what is neither of the kinds below: a function that irad cannot compile, an argument of a type
    that no kernel takes, a wrong number of arguments.

    >>> try:
    ...     irad.kernel(3)
    ... except irad.IradError as e:
    ...     print(e.reason)
    irad.kernel takes a function, not int
    """

    def __init__(self, message: str, *, loc: object = None, remedy: str = "") -> None:
        self.reason = message
        self.loc = loc
        self.remedy = remedy
        head = f"{loc}: " if loc is not None else ""
        tail = f"\n  Instead: {remedy}" if remedy else ""
        super().__init__(f"{head}{message}{tail}")


class NotDifferentiableError(IradError):
    """Something in the kernel or function has no derivative that irad can compute, or is not supported.

    **Cause.** A call of a function that is in no table (random numbers, I/O), an index that depends on data, recursion,
    a construct that Numba does not compile, an operation on a handle inside a recorded function.

    >>> @irad.kernel
    ... def noisy(v, u):
    ...     i = irad.points(u)
    ...     v[i] = u[i] + np.random.rand()
    >>> noisy(np.zeros(4), np.ones(4))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    irad.errors.NotDifferentiableError: ...

    **Remedy.** Compute such a thing before the launch, and pass it as an argument:

    >>> @irad.kernel
    ... def noisy(v, u, noise):
    ...     i = irad.points(u)
    ...     v[i] = u[i] + noise[i]
    >>> v = np.zeros(4)
    >>> noisy(v, np.ones(4), np.full(4, 0.5)); v
    array([1.5, 1.5, 1.5, 1.5])
    """


class RaceError(IradError):
    """Two points of one launch touch the same address and at least one of them writes.

    **Cause.** A point kernel runs its points concurrently, in no fixed order. It reads at a shift what it writes, or
    two points write one entry.

    >>> @irad.kernel
    ... def smooth(T):
    ...     i = irad.interior(T)
    ...     T[i] = 0.5 * (T[i - 1] + T[i + 1])
    >>> smooth(np.zeros(5))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    irad.errors.RaceError: ...

    **Remedy.** Write into a second array:

    >>> @irad.kernel
    ... def smooth(T2, T):
    ...     i = irad.interior(T)
    ...     T2[i] = 0.5 * (T[i - 1] + T[i + 1])
    >>> T2 = np.zeros(5)
    >>> smooth(T2, np.arange(5.0) ** 2); T2
    array([ 0.,  2.,  5., 10.,  0.])
    """


class AliasError(IradError):
    """A written array or a shadow overlaps another argument, or has a zero stride.

    **Cause.** The kernel would read what it has just written, or add to one shadow twice. Overlap is decided on the
    exact elements: ``u[::2]`` and ``u[1::2]`` are apart.

    >>> T = np.arange(6.0)
    >>> smooth(T[1:], T[:-1])  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    irad.errors.AliasError: ...

    **Remedy.** ``T[:-1].copy()``, or another array to write into.

    >>> smooth(T[1:], T[:-1].copy())
    """


class DomainError(IradError):
    """An access leaves its array somewhere in the launch domain.

    **Cause.** The arrays do not fit one another or the domain. An index may be negative down to ``-n``, where it
    counts from the end; anything beyond is out of range.

    >>> smooth(np.zeros(3), np.zeros(5))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    irad.errors.DomainError: ...

    **Remedy.** Give arrays of fitting shapes, or take the domain from the smallest: ``irad.interior(T2)``.
    """


class ShadowError(IradError):
    """A shadow has the wrong shape or dtype, is missing where it is needed, or no seed was given.

    **Cause.** A shadow stands for its array entry by entry, so it has its shape and dtype. ``Const`` on an array into
    which derivative-carrying values are stored would lose them. A call without any seed has nothing to differentiate.

    >>> T, T_bar = np.arange(5.0), np.zeros(4)
    >>> irad.autodiff(irad.Reverse, smooth, irad.Duplicated(T2, np.ones(5)), irad.Duplicated(T, T_bar))
    ... # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    irad.errors.ShadowError: ...

    **Remedy.** ``np.zeros_like(T)`` for a shadow; ``Duplicated(T2, seed)`` for what the kernel writes.

    >>> T_bar = np.zeros_like(T)
    >>> _ = irad.autodiff(irad.Reverse, smooth, irad.Duplicated(T2, np.ones(5)), irad.Duplicated(T, T_bar))
    >>> T_bar
    array([0.5, 0.5, 1. , 0.5, 0.5])
    """
