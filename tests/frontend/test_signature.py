"""Argument types."""

from __future__ import annotations

import numpy as np
import pytest

from irad.errors import IradError
from irad.frontend import ArrayType, ParamInfo, ScalarType, typeof


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1.5, "float"),
        (np.float64(1.5), "float64"),
        (np.float32(1.5), "float32"),
        (3, "int"),
        (np.int32(3), "int"),
        (True, "bool"),
        (np.bool_(False), "bool"),
    ],
)
def test_scalars(value, kind):
    assert typeof(value) == ScalarType(kind)
    assert typeof(value).weak == (kind == "float")


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_arrays_of_any_strides_have_one_type(dtype, rank):
    A = np.zeros((4,) * rank, dtype)
    assert typeof(A) == typeof(A[::2]) == typeof(A.T) == ArrayType(dtype, rank)
    assert typeof(A).itemsize == A.itemsize


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (np.zeros(3, np.complex128), "complex128"),
        (np.zeros(3, np.float16), "float16"),
        (np.zeros(()), "rank 0"),
        (np.zeros((1,) * 5), "rank 5"),
        (np.zeros(3, ">f8"), "foreign byte order"),
        (np.float16(1), "float16"),
        (2**63, "64 bits"),
        ("x", "str"),
        (None, "NoneType"),
    ],
)
def test_what_a_kernel_cannot_take(value, says):
    with pytest.raises(IradError, match=says):
        typeof(value)


def test_device_arrays_of_other_libraries():
    class Tensor:
        __cuda_array_interface__ = property(lambda self: 1 / 0)
        dtype, ndim = "torch.float32", 1

    with pytest.raises(IradError, match=r"a Tensor of torch.float32\n  Instead: .*from_dlpack"):
        typeof(Tensor())
    Tensor.dtype = np.dtype("float32")
    assert typeof(Tensor()) == ArrayType("float32", 1)


def test_words_of_a_parameter():
    assert ParamInfo("T", ArrayType("float32", 2)).words == (
        ("ptr", "T.data"),
        ("i64", "T.n0"),
        ("i64", "T.n1"),
        ("i64", "T.s0"),
        ("i64", "T.s1"),
    )
    assert ParamInfo("dx", ScalarType("float")).words == (("double", "dx"),)
    assert ParamInfo("on", ScalarType("bool")).words == (("i1", "on"),)
