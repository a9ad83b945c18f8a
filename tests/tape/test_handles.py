import numpy as np
import pytest

from irad.errors import NotDifferentiableError
from irad.tape.handles import ArrayHandle
from irad.tape.memory import as_address, bytes_of, span
from irad.tape.scalars import TracedScalar


def handle(array, leaf=None):
    return ArrayHandle(array, as_address(array), 2 if leaf is not None else 0, "p" if leaf is not None else "u", leaf)


def test_shape_and_type_are_known():
    h = handle(np.zeros((3, 4), np.float32))
    assert (h.shape, h.ndim, h.size, h.dtype, h.itemsize, h.nbytes, len(h)) == ((3, 4), 2, 12, np.float32, 4, 48, 3)
    assert h.strides == (16, 4)


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[1],
        lambda a: a[1:, ::2],
        lambda a: a[::-1, -2:],
        lambda a: a[..., 1],
        lambda a: a[None, 1:2],
        lambda a: a.T[1:],
        lambda a: a.transpose(1, 0)[2],
        lambda a: a.reshape(2, 6)[1],
        lambda a: a[1:][1:][0],
        lambda a: a.reshape(-1)[3:7],
    ],
)
def test_slices_are_views(view):
    array = np.arange(12.0).reshape(3, 4)
    made = view(handle(array))
    memory = bytes_of(array, *span(array))
    assert np.array_equal(made.view.on(memory), view(array))
    other = np.random.default_rng(0).normal(size=(3, 4))
    assert np.array_equal(made.view.on(bytes_of(other, *span(other))), view(other))


@pytest.mark.parametrize("order", ["C", "F"])
def test_entries_of_parameters_are_traced_scalars(order):
    array = np.array(np.arange(12.0).reshape(3, 4), order=order)
    h, flat = handle(array, leaf=1), array.ravel(order="K")
    for key in [(0, 0), (2, 3), (-1, 1), (1, -4)]:
        x = h[key]
        assert isinstance(x, TracedScalar)
        assert x.leaf[:2] == ("p", 1)
        assert flat[x.leaf[2]] == array[key]
    assert flat[h[1:][0][2].leaf[2]] == array[1, 2]
    one = handle(np.array([3.0, 4.0]), leaf=0)
    a, b = one
    assert (a.leaf[2], b.leaf[2]) == (0, 1)


@pytest.mark.parametrize(
    "use",
    [
        lambda u: u + 1,
        lambda u: 2 * u,
        lambda u: -u,
        lambda u: u @ u,
        lambda u: u < 1,
        lambda u: u == 1,
        lambda u: np.sin(u),
        lambda u: np.sum(u),
        lambda u: np.asarray(u),
        lambda u: u.sum(),
        lambda u: u.copy(),
        lambda u: u[[0, 1]],
        lambda u: u[np.array([True, False])],
        lambda u: u[0],
        lambda u: u.__setitem__(0, 1.0),
        lambda u: list(u),
        lambda u: bool(u),
        lambda u: float(u),
        lambda u: u.T.reshape(4)[0],
        lambda u: np.add(np.ones(4), u, out=np.ones(4)),
        lambda u: np.ones(4) * u,
    ],
)
def test_everything_else_is_refused_with_the_line(use):
    with pytest.raises(NotDifferentiableError, match=r"test_handles.py:\d+: 'u"):
        use(handle(np.zeros(4)))


def test_in_place_operators_are_refused():
    u = handle(np.zeros(4))
    with pytest.raises(NotDifferentiableError):
        u += 1
    with pytest.raises(NotDifferentiableError):
        u[1:] *= 2


def test_reshape_that_copies_is_refused():
    with pytest.raises(NotDifferentiableError, match="copy"):
        handle(np.zeros((3, 4))[:, ::3]).reshape(6)


def test_unknown_special_attributes_do_not_exist():
    assert not hasattr(handle(np.zeros(4)), "__cuda_array_interface__")
