"""Ordinary calls: what runs compiled, what goes to Python with the arguments as they came."""

from __future__ import annotations

import gc
import itertools
import pickle
import sys
import threading
import types
import weakref
from dataclasses import dataclass

import numpy as np
import pytest

from irad.launch import launcher as module
from irad.launch.launcher import ArraySpec, Launcher, ScalarSpec, Spec

from .kernels import Layout, array_words, pack, scale

F8 = ArraySpec("float64", 3)
OUT = ArraySpec("float64", 3, written=True)


class Slow:
    """Records what it is called with."""

    def __init__(self):
        self.calls = []

    def __call__(self, *args, **kwargs):
        self.calls.append((args, kwargs))
        return "slow"


@pytest.fixture
def slow():
    return Slow()


@pytest.fixture
def call(slow):
    return Launcher(slow, [Spec(scale(), [OUT, F8, ScalarSpec("float")])])


def arrays(shape=(2, 3, 4)):
    return np.zeros(shape), np.random.default_rng(1).random(shape)


def fast(call, slow, out, a, s):
    """Assert that the call runs compiled and gives the product."""
    assert call(out, a, s) is None
    assert slow.calls == []
    assert np.array_equal(out, s * a)


def refused(call, slow, *args, **kwargs):
    """Assert that the call goes to Python with these very arguments and that no array changes."""
    before = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    assert call(*args, **kwargs) == "slow"
    (got, keywords) = slow.calls.pop()
    assert len(got) == len(args)
    assert all(x is y for x, y in zip(got, args, strict=True))
    assert keywords == kwargs
    for x, y in zip(before, args, strict=True):
        if isinstance(x, np.ndarray):
            assert np.array_equal(x, y)


def test_plain_call(call, slow):
    fast(call, slow, *arrays(), 3.0)
    fast(call, slow, *arrays(), 3)
    fast(call, slow, *arrays(), -1.0)
    fast(call, slow, *arrays((0, 3, 4)), 2.0)


def test_any_strides(call, slow):
    big = np.zeros((8, 9, 10))
    fast(call, slow, big[::4, ::-3, 1:9:2], arrays()[1], 2.0)
    fast(call, slow, np.zeros((4, 3, 2)).T, arrays()[1][::-1], 2.0)
    fast(call, slow, np.zeros((2, 3, 4)), np.broadcast_to(np.arange(4.0), (2, 3, 4)), 2.0)


def test_same_array_twice_is_fine_where_it_is_read(slow):
    call = Launcher(slow, [Spec(scale(), [F8, F8, ScalarSpec("float")])])
    a = arrays()[1]
    call(a, a, 1.0)
    assert slow.calls == []


class Subclass(np.ndarray):
    pass


class MyFloat(float):
    pass


class NoFloat:
    def __float__(self):
        raise AssertionError("must not be asked")


def bad_arguments():
    out, a = arrays()
    readonly = np.zeros((2, 3, 4))
    readonly.flags.writeable = False
    misaligned = np.zeros(8 * 24 + 1, np.uint8)[1:].view(np.float64).reshape(2, 3, 4)
    yield "subclass", (out, a.view(Subclass), 1.0)
    yield "float32", (out, a.astype(np.float32), 1.0)
    yield "byte order", (out, a.astype(">f8"), 1.0)
    yield "rank", (out, a[0], 1.0)
    yield "rank 0", (out, np.array(1.0), 1.0)
    yield "readonly", (readonly, a, 1.0)
    yield "misaligned", (misaligned, a, 1.0)
    yield "misaligned, read", (out, misaligned, 1.0)
    yield "shapes", (out, a[:, :2], 1.0)
    yield "list", (out, a.tolist(), 1.0)
    yield "None", (None, a, 1.0)
    yield "bool", (out, a, True)
    yield "text", (out, a, "1.0")
    yield "float subclass", (out, a, MyFloat(1.0))
    yield "NumPy float", (out, a, np.float64(1.0))
    yield "object with __float__", (out, a, NoFloat())
    yield "huge int", (out, a, 10**400)
    yield "few", (out, a)
    yield "many", (out, a, 1.0, 1.0)
    yield "none", ()
    yield "same array", (a, a, 1.0)
    whole = np.zeros((3, 3, 4))
    yield "overlap", (whole[1:], whole[:2], 1.0)
    yield "byte ranges meet", (whole.reshape(-1)[:24].reshape(2, 3, 4)[:, :, ::2], whole[:2, :, 1::2], 1.0)
    yield "zero stride", (np.lib.stride_tricks.as_strided(whole, (2, 3, 4), (0, 32, 8)), a, 1.0)
    yield "overlaps itself", (np.lib.stride_tricks.as_strided(whole, (2, 3, 4), (8, 32, 8)), a, 1.0)


@pytest.mark.parametrize(("why", "args"), [pytest.param(w, a, id=w) for w, a in bad_arguments()])
def test_what_goes_to_python(call, slow, why, args):
    refused(call, slow, *args)
    fast(call, slow, *arrays(), 2.0)


def test_keywords_go_to_python(call, slow):
    out, a = arrays()
    refused(call, slow, out, a, s=1.0)
    refused(call, slow, s=1.0)
    refused(call, slow, out, b=a, **{f"k{i}": i for i in range(50)})


def test_exceptions_of_the_slow_path_propagate(slow):
    def raises(*args):
        raise KeyError("mine")

    call = Launcher(raises, [Spec(scale(), [OUT, F8, ScalarSpec("float")])])
    with pytest.raises(KeyError, match="mine"):
        call(1)


def test_recording_goes_to_python(call, slow):
    out, a = arrays()
    module.set_recording(True)
    try:
        refused(call, slow, out, a, 1.0)
    finally:
        module.set_recording(False)
    fast(call, slow, out, a, 1.0)


def test_no_spec_is_always_slow_and_specs_can_change(slow):
    call = Launcher(slow)
    refused(call, slow, *arrays(), 1.0)
    call.set_specs([Spec(scale(), [OUT, F8, ScalarSpec("float")])])
    fast(call, slow, *arrays(), 1.0)
    call.set_specs([])
    refused(call, slow, *arrays(), 1.0)


def test_specs_are_tried_in_turn(slow):
    ints = Spec(scale(), [OUT, F8, ScalarSpec("int")])
    floats = Spec(scale(), [OUT, F8, ScalarSpec("float64")])
    call = Launcher(slow, [ints, floats])
    fast(call, slow, *arrays(), np.float64(2.5))
    out, a = arrays()
    call(out, a, 1)  # the int's bits taken for a double: a tiny number
    assert np.all(out < 1e-300)
    refused(call, slow, out, a, 2.5)


def test_unit_strides_are_asked_for(slow):
    unit = ArraySpec("float64", 3, unit=frozenset({2}))
    call = Launcher(slow, [Spec(scale(), [OUT, unit, ScalarSpec("float")])])
    out, a = arrays()
    fast(call, slow, out, a, 2.0)
    refused(call, slow, out, np.asfortranarray(a), 2.0)
    refused(call, slow, out, arrays((2, 3, 8))[1][:, :, ::2], 2.0)
    fast(call, slow, np.zeros((2, 3, 1)), arrays((2, 3, 8))[1][:, :, ::8], 2.0)  # extent 1: any stride will do
    fast(call, slow, np.zeros((0, 3, 4)), arrays((2, 3, 8))[1][:0, :, ::2], 2.0)


def test_unpickled_arrays_are_taken(call, slow):
    out, a = (pickle.loads(pickle.dumps(x)) for x in arrays())
    assert a.dtype is not np.dtype("f8")
    fast(call, slow, out, a, 2.0)


@pytest.mark.parametrize("value", [0, 1, -1, 2**63 - 1, -(2**63)])
def test_ints_arrive_exactly(slow, value):
    out = np.zeros(1, np.int64)
    call = Launcher(slow, [Spec(pack(), [ArraySpec("int64", 1, written=True), ScalarSpec("int")])])
    assert call(out, value) is None
    assert out[0] == value
    assert slow.calls == []


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30, True, 1.0, np.int64(1), np.array(1)])
def test_ints_that_do_not_fit_go_to_python(slow, value):
    call = Launcher(slow, [Spec(pack(), [ArraySpec("int64", 1, written=True), ScalarSpec("int")])])
    refused(call, slow, np.zeros(1, np.int64), value)


@pytest.mark.parametrize(
    ("scalar", "value", "bits"),
    [
        (ScalarSpec("bool"), True, 1),
        (ScalarSpec("bool"), False, 0),
        (ScalarSpec("float32"), np.float32(1.5), int(np.float32(1.5).view(np.int32))),
        (ScalarSpec("float", single=True), -0.1, int(np.float32(-0.1).view(np.uint32))),
        (ScalarSpec("float", single=True), 7, int(np.float32(7).view(np.uint32))),
        (ScalarSpec("float64"), np.float64(-1.0), int(np.float64(-1.0).view(np.int64))),
    ],
)
def test_scalars_arrive_as_their_bits(slow, scalar, value, bits):
    out = np.zeros(1, np.int64)
    call = Launcher(slow, [Spec(pack(), [ArraySpec("int64", 1, written=True), scalar])])
    assert call(out, value) is None
    assert out[0] == bits
    assert slow.calls == []


def test_reference_counts(call, slow):
    out, a = arrays()
    objects = (call, slow, out, a, None, "slow")
    before = [sys.getrefcount(x) for x in objects]
    for _ in range(20_000):
        call(out, a, 2.0)
    for _ in range(20_000):
        call(out, out, 2.0)
        call(out, a=a)
        slow.calls.clear()
    after = [sys.getrefcount(x) for x in objects]
    assert all(abs(x - y) < 50 for x, y in zip(before, after, strict=True))


def test_launchers_are_collected(slow):
    class Watch:
        pass

    watch = Watch()

    def handler(*args, watch=watch):
        return watch

    launcher = Launcher(handler, [Spec(scale(), [OUT, F8, ScalarSpec("float")])])
    gone = weakref.ref(launcher), weakref.ref(watch)
    del launcher, handler, watch
    gc.collect()
    assert gone[0]() is None
    assert gone[1]() is None


def test_subclass_with_attributes(slow):
    class Kernel(Launcher):
        def __init__(self):
            super().__init__(slow, [Spec(scale(), [OUT, F8, ScalarSpec("float")])])
            self.name = "kernel"

    kernel = Kernel()
    fast(kernel, slow, *arrays(), 2.0)
    assert kernel.name == "kernel"
    assert kernel.__call__(*arrays(), 2.0) is None


def test_written_arrays_fold_onto_themselves_or_not(slow):
    """The quick test for self-overlap passes only arrays that have none, and every slice of a dense array."""
    call = Launcher(slow, [Spec(pack(rank=2), [ArraySpec("int64", 2, written=True), ScalarSpec("int")])])
    base = np.zeros(200, np.int64)
    for n0, n1, s0, s1 in itertools.product((0, 1, 2, 3), (1, 2, 4), range(-4, 5), range(-4, 5)):
        view = np.lib.stride_tricks.as_strided(base[100:], (n0, n1), (8 * s0, 8 * s1))
        places = [i * s0 + j * s1 for i in range(n0) for j in range(n1)]
        went_fast = call(view, 1) is None
        if went_fast:
            assert len(set(places)) == len(places)
    slow.calls.clear()
    dense = np.zeros((6, 7), np.int64)
    for view in (dense, dense.T, dense[::2], dense[:, ::3], dense[::-1, ::-2], dense[1:3, 2:3].T):
        assert call(view, 1) is None


def test_spec_that_does_not_match_the_block_is_refused():
    with pytest.raises(ValueError, match="words"):
        Spec(scale(), [OUT, F8])
    assert Layout(array_words("a", 1), 3).at("a.s0") == 2


def test_python_fallback(call, slow):
    assert call.python_call(1, b=2) == "slow"
    assert slow.calls == [((1,), {"b": 2})]


@dataclass
class Place:
    """What frontends hand over: a captured thing's place."""

    name: str
    holder: object


def cell(value):
    return (lambda: value).__closure__[0]


def test_captured_arguments_are_found_anew_at_each_call(slow):
    module = types.ModuleType("m")
    namespace, closure = {}, cell(2.0)
    namespace["a"] = arrays()[1]
    places = [Place("a", namespace), Place("s", closure)]
    call = Launcher(slow, [Spec(scale(), [OUT, F8, ScalarSpec("float")], places)])
    out = np.zeros((2, 3, 4))
    assert call(out) is None
    assert np.array_equal(out, 2 * namespace["a"])
    namespace["a"] = np.ones((2, 3, 4))
    closure.cell_contents = 5.0
    assert call(out) is None
    assert np.all(out == 5)
    refused(call, slow, out, out)
    for broken in (None, namespace["a"].astype(np.float32), out):
        namespace["a"] = broken
        refused(call, slow, out)
    del namespace["a"]
    refused(call, slow, out)
    namespace["a"] = np.ones((2, 3, 4))
    del closure.cell_contents
    refused(call, slow, out)
    module.s, module.a = 3.0, np.ones((2, 3, 4))
    call.set_specs([Spec(scale(), [OUT, F8, ScalarSpec("float")], [Place("a", module), Place("s", module)])])
    assert call(out) is None
    assert np.all(out == 3)


def test_constants_must_still_be_the_same_objects(slow):
    namespace, helper = {"helper": print}, cell(print)
    constants = [(Place("helper", namespace), print), (Place("helper", helper), print)]
    call = Launcher(slow, [Spec(scale(), [OUT, F8, ScalarSpec("float")], constants=constants)])
    fast(call, slow, *arrays(), 2.0)
    namespace["helper"] = len
    refused(call, slow, *arrays(), 2.0)
    namespace["helper"] = print
    fast(call, slow, *arrays(), 2.0)
    helper.cell_contents = len
    refused(call, slow, *arrays(), 2.0)
    del namespace["helper"]
    refused(call, slow, *arrays(), 2.0)


def test_captured_things_keep_their_reference_counts(slow):
    namespace, closure, helper = {"a": np.ones((1, 1, 1))}, cell(2.5), object()
    places = [Place("a", namespace), Place("s", closure)]
    fixed = [(Place("h", {"h": helper}), helper)]
    call = Launcher(slow, [Spec(scale(), [OUT, F8, ScalarSpec("float")], places, fixed)])
    out = np.zeros((1, 1, 1))
    objects = (namespace["a"], namespace, closure, closure.cell_contents, helper, out)
    before = [sys.getrefcount(x) for x in objects]
    for _ in range(5000):
        call(out)
    namespace["a"] = None
    for _ in range(5000):
        call(out)
        slow.calls.clear()
    namespace["a"] = objects[0]
    del closure.cell_contents
    for _ in range(5000):
        call(out)
        slow.calls.clear()
    closure.cell_contents = objects[3]
    assert [sys.getrefcount(x) for x in objects] == before


def test_captured_array_lives_until_the_launch_is_over(slow):
    """Another thread replaces the array while a launch without the GIL reads it."""
    shape = (300, 300, 20)
    namespace, closure = {"a": np.full(shape, 1.0)}, cell(2.0)
    places = [Place("a", namespace), Place("s", closure)]
    call = Launcher(slow, [Spec(scale(), [OUT, F8, ScalarSpec("float")], places)])
    out, stop = np.zeros(shape), threading.Event()

    def replace():
        while not stop.is_set():
            namespace["a"] = np.full(shape, 1.0)

    other = threading.Thread(target=replace)
    other.start()
    try:
        for _ in range(20):
            out[:] = 0
            call(out)
            assert np.all(out == 2)
    finally:
        stop.set()
        other.join()
    assert slow.calls == []
