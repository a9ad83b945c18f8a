import numpy as np
import pytest

from irad.errors import NotDifferentiableError
from irad.tape.elementwise import RULES
from irad.tape.values import Value, backward, forward, leaf

rng = np.random.default_rng(0)


def both_modes(f, *inputs):
    """Gradient of ``f`` (to a number) by reverse mode, checked against forward mode and central differences."""
    values = [Value(np.array(x, float), leaf()) for x in inputs]
    result = f(*values)
    assert isinstance(result, Value)
    assert result.size == 1
    found = backward(result.node, np.ones(result.shape))
    grads = [np.asarray(found.get(id(v.node), np.zeros(v.shape))) for v in values]
    for i, v in enumerate(values):
        direction = rng.normal(size=v.shape)
        dot = forward(result.node, {id(v.node): direction})
        assert float(0.0 if dot is None else dot) == pytest.approx(
            float(np.sum(grads[i] * direction)), rel=1e-12, abs=1e-14
        )
        d = 1e-6
        ends = []
        for sign in (1, -1):
            moved = [np.array(x, float) for x in inputs]
            moved[i] = moved[i] + sign * d * direction
            ends.append(float(np.asarray(f(*moved))))
        assert (ends[0] - ends[1]) / (2 * d) == pytest.approx(float(np.sum(grads[i] * direction)), rel=1e-6, abs=1e-8)
    return grads


A, B, ROW, ONE = rng.uniform(0.5, 1.5, (3, 4)), rng.uniform(0.5, 1.5, (3, 4)), rng.uniform(0.5, 1.5, 4), 0.7


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b: np.sum(a * b - a / b + a**2 + 2.0**b),
        lambda a, b: np.sum((a - 3.0) ** 2) / 5 + np.mean(b),
        lambda a, b: np.vdot(a, b) - np.vdot(np.ones((3, 4)), a),
        lambda a, b: np.sum(a[1:, ::2] * b[:2, 1:3]),
        lambda a, b: np.sum(a[[0, 0, 2]] * b[[1, 2, 0]]) + a[1, 2] * b[0, 0],
        lambda a, b: np.sum(np.sum(a, axis=0) ** 2) + np.sum(np.mean(b, axis=1, keepdims=True) * a),
        lambda a, b: np.sum(a.T * b.T * np.arange(3.0)),
        lambda a, b: np.sum(np.reshape(a, (4, 3)) * np.transpose(b) + a.ravel().reshape(4, 3)),
        lambda a, b: np.sum(np.maximum(a, b) * np.minimum(a, 1.0)) - np.sum(np.hypot(a, b)),
        lambda a, b: np.sum(-a + +b) * np.sum(np.exp(-a) * np.sqrt(b)),
        lambda a, b: sum(np.sum(x) ** 2 for x in a) + np.sum(b),
        lambda a, b: 1.0 / np.sum(a) - np.sum(b) ** np.sum(a[0, 0]),
    ],
)  # fmt: skip
def test_compositions(f):
    both_modes(f, A, B)


def test_broadcasting():
    grads = both_modes(lambda a, row, one: np.sum(a * row + one * a - row[None, :] * one), A, ROW, ONE)
    assert grads[1].shape == (4,)
    assert grads[2].shape == ()
    both_modes(lambda row, a: np.sum(row[:, None] * a.T), ROW, A)


@pytest.mark.parametrize("function", [f for f, rule in RULES.items()], ids=lambda f: f.__name__)
def test_every_elementwise_function(function):
    point = A + 1.0 if function is np.arccosh else A / 2 + 0.1
    if function.nin == 1:
        both_modes(lambda a: np.sum(function(a) * B), point)
    else:
        both_modes(lambda a, b: np.sum(function(a, b) * B), point, B / 2 + 0.2)


def test_values_and_types():
    v = Value(A.astype(np.float32), leaf())
    assert (v.shape, v.ndim, v.size, v.dtype, len(v)) == ((3, 4), 2, 12, np.float32, 3)
    assert (v * 2.0).dtype == np.float32
    assert v.sum().dtype == np.float64
    assert np.shape(v) == (3, 4)
    assert np.array_equal((v > 1.0), A.astype(np.float32) > 1.0)
    assert np.array_equal(v.primal, A.astype(np.float32))


def test_shared_nodes_are_visited_once():
    x = Value(np.array(1.0), leaf())
    y = x
    for _ in range(60):
        y = y + y
    assert float(backward(y.node, 1.0)[id(x.node)]) == 2.0**60


@pytest.mark.parametrize(
    "use",
    [
        lambda v: np.asarray(v),
        lambda v: float(v.sum()),
        lambda v: np.fft.fft(v),
        lambda v: np.linalg.norm(v),
        lambda v: np.mod(v, 2),
        lambda v: v.__setitem__(0, 1.0),
        lambda v: np.add(v, v, out=np.zeros((3, 4))),
        lambda v: np.dot(v, np.ones(4)),
        lambda v: np.concatenate([v, v]),
    ],
)
def test_refusals_name_the_line(use):
    with pytest.raises(NotDifferentiableError, match=r"test_values\.py"):
        use(Value(A, leaf()))


def test_kinks():
    x = Value(np.array([0.0, -2.0, 3.0]), leaf())
    grad = backward(np.sum(abs(x)).node, 1.0)[id(x.node)]
    assert grad.tolist() == [0.0, -1.0, 1.0]
    with np.errstate(all="ignore"):
        root = backward((np.sqrt(x) * np.array([0.0, 0.0, 1.0])).sum().node, 1.0)[id(x.node)]
    assert root[0] == 0.0
