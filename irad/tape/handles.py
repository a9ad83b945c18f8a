"""What a right-hand side is called with while it is recorded: arrays without values.

An :class:`ArrayHandle` knows shape, data type and where it lies; basic slicing and transposing give handles of views.
A full index into a parameter array gives a :class:`~irad.tape.scalars.TracedScalar`. Everything else is refused with
the user's line, because it would compute with values that the record could not follow.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from irad.errors import NotDifferentiableError
from irad.tape.memory import View, as_address
from irad.tape.scalars import TracedScalar
from irad.tape.where import user_line


class ArrayHandle:
    """``u``, ``du``, a parameter array, or a view of one of them, inside a function that is being recorded."""

    __slots__ = ("_proto", "leaf", "origin", "region", "text")
    __array_priority__ = 1000.0

    def __init__(self, proto: npt.NDArray[Any], origin: int, region: int, text: str, leaf: int | None = None) -> None:
        self._proto, self.origin, self.region, self.text, self.leaf = proto, origin, region, text, leaf

    @property
    def shape(self) -> tuple[int, ...]:
        return self._proto.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self._proto.strides

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._proto.dtype

    @property
    def ndim(self) -> int:
        return self._proto.ndim

    @property
    def size(self) -> int:
        return self._proto.size

    @property
    def itemsize(self) -> int:
        return self._proto.itemsize

    @property
    def nbytes(self) -> int:
        return self._proto.nbytes

    def __len__(self) -> int:
        return len(self._proto)

    @property
    def proto(self) -> npt.NDArray[Any]:
        """An array of this layout whose content means nothing: for type and shape decisions only."""
        return self._proto

    @property
    def view(self) -> View:
        p = self._proto
        return View(self.region, as_address(p) - self.origin, p.shape, p.strides, p.dtype)

    @property
    def T(self) -> ArrayHandle:
        return self._derived(self._proto.T, f"{self.text}.T")

    def transpose(self, *axes: Any) -> ArrayHandle:
        return self._derived(self._proto.transpose(*axes), f"{self.text}.transpose(...)")

    def reshape(self, *shape: Any) -> ArrayHandle:
        result = self._proto.reshape(*shape)
        if result.size and not np.may_share_memory(result, self._proto):
            self._refuse("reshape() of it would copy")
        return self._derived(result, f"{self.text}.reshape(...)")

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not all(k is None or k is Ellipsis or isinstance(k, (int, np.integer, slice)) for k in parts):
            self._refuse("an index other than integers, slices, None and Ellipsis")
        result = self._proto[key]
        text = f"{self.text}[{_key_text(parts)}]"
        if isinstance(result, np.ndarray):
            return self._derived(result, text)
        if self.leaf is None:
            self._refuse("one entry of it is taken as a number", "pass a view of length 1 (u[3:4]) to the kernel")
        whole = self._proto[tuple(k if k is None or k is Ellipsis else _slice(k) for k in parts)]
        offset = as_address(whole) - self.origin
        return TracedScalar.of_leaf(("p", self.leaf, offset // self.itemsize), text)

    def _derived(self, proto: npt.NDArray[Any], text: str) -> ArrayHandle:
        return ArrayHandle(proto, self.origin, self.region, text, self.leaf)

    def _refuse(self, what: str, remedy: str = "") -> NoReturn:
        raise NotDifferentiableError(
            f"'{self.text}' is the handle of an array inside a right-hand side; {what}",
            loc=user_line(),
            remedy=remedy or "do it in a kernel, and launch that on the handle",
        )

    def __setitem__(self, key: Any, value: Any) -> None:
        self._refuse("it is assigned to outside a kernel")

    def __iter__(self) -> Any:
        if self.leaf is None:
            self._refuse("it is iterated over")
        return iter([self[i] for i in range(len(self))])

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("NumPy asks for its values")

    def __array_ufunc__(self, ufunc: Any, *_: Any, **__: Any) -> NoReturn:
        self._refuse(f"numpy.{ufunc.__name__} is applied to it")

    def __array_function__(self, function: Any, *_: Any) -> NoReturn:
        self._refuse(f"numpy.{function.__name__} is called with it")

    def __bool__(self) -> bool:
        self._refuse("its truth value is asked for")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse(f"its attribute '{name}' is used")

    def __repr__(self) -> str:
        return f"<handle of {self.text}: {self.dtype} {self.shape}>"


def _operator(name: str) -> Any:
    def method(self: ArrayHandle, *_: Any) -> NoReturn:
        self._refuse(f"the operator {name} is applied to it")

    return method


for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
):
    for _prefix in ("", "r", "i"):
        setattr(ArrayHandle, f"__{_prefix}{_name}__", _operator(_name))
for _name in ("neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne", "float", "int", "index", "complex"):
    setattr(ArrayHandle, f"__{_name}__", _operator(_name))
ArrayHandle.__hash__ = object.__hash__  # type: ignore[method-assign]


def _slice(k: Any) -> Any:
    """A slice of length 1 at an integer index, so that the element's address can be seen."""
    if isinstance(k, slice):
        return k
    k = int(k)
    return slice(k, k + 1 if k != -1 else None)


def _key_text(parts: tuple[Any, ...]) -> str:
    def one(k: Any) -> str:
        if isinstance(k, slice):
            text = f"{'' if k.start is None else k.start}:{'' if k.stop is None else k.stop}"
            return text if k.step is None else f"{text}:{k.step}"
        return "..." if k is Ellipsis else str(k)

    return ", ".join(one(k) for k in parts)
