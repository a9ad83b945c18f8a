"""What the reader refuses, with the reason and what to write instead. One table for instructions, one for calls."""

from __future__ import annotations

import re

from irad.errors import NotDifferentiableError

from .model import Loc

_ATOMIC = ("an atomic memory operation", "let each point write its own entries")
_EXCEPTION = ("code that handles exceptions", "remove try/except, and what can raise, from the kernel")
_VECTOR = ("a vector instruction", "hand over code that was not vectorised")
_JUMP = ("an indirect jump", "use if, for and while")

INSTRUCTIONS: dict[str, tuple[str, str]] = {
    "atomicrmw": _ATOMIC,
    "cmpxchg": _ATOMIC,
    "fence": ("a memory fence", "points of one launch cannot wait for one another: split the kernel in two"),
    "invoke": _EXCEPTION,
    "landingpad": _EXCEPTION,
    "resume": _EXCEPTION,
    "catchswitch": _EXCEPTION,
    "catchpad": _EXCEPTION,
    "catchret": _EXCEPTION,
    "cleanuppad": _EXCEPTION,
    "cleanupret": _EXCEPTION,
    "indirectbr": _JUMP,
    "callbr": _JUMP,
    "va_arg": ("a variable number of arguments", "give every argument a name"),
    "extractelement": _VECTOR,
    "insertelement": _VECTOR,
    "shufflevector": _VECTOR,
    "addrspacecast": ("a change of address space", "pass arrays of the memory on which the kernel runs"),
}

MEMORY = "use local scalars, or pass a scratch array as an argument"
_CALLS: tuple[tuple[str, str, str], ...] = (
    (r"NRT_.*", "memory that is allocated inside the kernel (a local array, or a slice of one)", MEMORY),
    (r"llvm\.stack(save|restore).*", "memory whose size is only known at run time", MEMORY),
    (r"malloc|calloc|realloc|free", "memory that is allocated inside the kernel", MEMORY),
    (r"numba_rnd_.*|numba_get_np_random_.*|numba_get_py_random_.*|_numba_test_.*", "random numbers",
     "draw them before the launch and pass them as an array"),
    (r"numba_gil_.*|Py.*|_Py.*|numba_unpickle|numba_runtime_.*", "a call of the Python interpreter",
     "write to arrays instead of printing or making Python objects"),
    (r"printf|puts|putchar|vprintf|snprintf", "output", "write to arrays, and print after the launch"),
    (r"numba_.*(gemm|gemv|dot|xx.*|ez.*|raw.*)|[sd]gemm_?|[sd]gemv_?", "a linear algebra library",
     "write the sums as loops"),
    (r"llvm\.trap|llvm\.debugtrap|llvm\.ubsantrap|abort|exit|__assert_fail", "code that stops the program",
     "remove assertions from the kernel"),
    (r"(clock|time|gettimeofday|clock_gettime|llvm\.read(cycle|steady)counter).*", "a clock",
     "pass the time as an argument"),
    (r"llvm\.vector\..*|llvm\.masked\..*|llvm\.vp\..*", _VECTOR[0], _VECTOR[1]),
    (r"llvm\.va_.*", *INSTRUCTIONS["va_arg"]),
)  # fmt: skip


def unknown_call(callee: str, loc: Loc | None) -> NotDifferentiableError:
    """The error for a call of a function that is in no table."""
    for pattern, what, remedy in _CALLS:
        if re.fullmatch(pattern, callee):
            return NotDifferentiableError(f"{what} (a call of {callee}) has no derivative", loc=loc, remedy=remedy)
    return NotDifferentiableError(
        f"a call of the unknown function {callee} has no derivative",
        loc=loc,
        remedy="use the math functions of Python and NumPy, or write the function out as an @irad.device helper",
    )


def recursion(callee: str, loc: Loc | None) -> NotDifferentiableError:
    """The error for a call of another function of the module, which inlining has left."""
    return NotDifferentiableError(
        f"a call of {callee} could not be inlined: it is recursive, or must not be inlined",
        loc=loc,
        remedy="write the recursion as a loop",
    )


def may_raise(loc: Loc | None) -> NotDifferentiableError:
    """The error for a status that LLVM could not prove to be 0."""
    return NotDifferentiableError(
        "the kernel may raise an exception",
        loc=loc,
        remedy="remove raise, assert and what can fail (an index into a tuple, shapes that may not match)",
    )


def unknown(what: str, loc: Loc | None, remedy: str = "") -> NotDifferentiableError:
    """The error for an instruction that is in no table."""
    remedy = remedy or "keep to float and integer scalars, arrays of them, branches, loops and math functions"
    return NotDifferentiableError(f"{what} has no derivative", loc=loc, remedy=remedy)
