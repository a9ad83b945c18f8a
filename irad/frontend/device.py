"""``irad.device``: helper functions that kernels call."""

from __future__ import annotations

import functools
import types as pytypes
from typing import Any

import numba
from numba.extending import typeof_impl

from irad.errors import IradError


class Device:
    """A helper function of kernels, which also runs as plain Python. See :func:`device`."""

    __irad_device__ = True

    def __init__(self, py_func: pytypes.FunctionType, **options: Any) -> None:
        self.py_func = py_func
        self.targetoptions = options
        functools.update_wrapper(self, py_func)

    @functools.cached_property
    def dispatcher(self) -> Any:
        """The helper for Numba's own functions."""
        return numba.njit(**{"error_model": "numpy", **self.targetoptions})(self.py_func)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.py_func(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<irad.device {self.py_func.__qualname__}>"

    def __deepcopy__(self, memo: object) -> Device:
        return self


@typeof_impl.register(Device)
def _typeof_device(value: Device, context: Any) -> Any:
    return numba.types.Dispatcher(value.dispatcher)


def device(function: Any = None, *, fastmath: bool = False) -> Any:
    """Make a function a helper that kernels can call.

    A helper takes and returns scalars (it may read arrays that it captures or is given), calls other helpers, and is
    compiled into each kernel that calls it, for the types of that call. Called from Python, it runs as it is written.
    ``fastmath`` allows rearranged arithmetic in it, as ``numba.njit(fastmath=True)`` does.

    >>> @device
    ... def upwind(v, left, right):
    ...     return left if v > 0 else right
    >>> upwind(1.0, 2.0, 3.0)
    2.0

    Raises ``IradError`` for what is no Python function.
    """
    if function is None:
        return functools.partial(device, fastmath=fastmath)
    if not isinstance(function, pytypes.FunctionType):
        raise IradError(f"irad.device takes a function, not {type(function).__name__}", remedy="decorate a def")
    return Device(function, **({"fastmath": True} if fastmath else {}))
