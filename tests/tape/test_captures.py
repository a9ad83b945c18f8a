import functools
import types

import numpy as np
import pytest

from irad.tape.captures import names_of, read_only

GLOBAL = np.zeros(3)
UNUSED = np.zeros(3)
BOX = types.SimpleNamespace(inside=np.zeros(2), other=np.zeros(2))


def test_closures_globals_helpers_and_defaults():
    local = np.ones(2)
    deep = np.ones(4)

    def helper():
        return deep

    def f(du, u, p, t, default=UNUSED):
        return helper(), local, GLOBAL, BOX.inside

    names = names_of(f)
    for name, array in [("local", local), ("GLOBAL", GLOBAL), ("deep", deep), ("inside", BOX.inside)]:
        assert names.arrays(name) == [array] or names.arrays(name)[0] is array
        assert names.of(array)[0] == name
    assert names.arrays("f.local")[0] is local
    assert names.arrays("helper.deep")[0] is deep
    assert names.of(BOX.other) == []
    assert names.arrays("default")[0] is UNUSED
    assert "local" in names.known()


def test_methods_objects_and_partials():
    class Model:
        def __init__(self):
            self.Ci = np.ones(3)

        def rate(self, du, u, p, t):
            pass

        def __call__(self, du, u, p, t):
            pass

    model = Model()
    assert names_of(model.rate).arrays("Ci")[0] is model.Ci
    assert names_of(model).arrays("Ci")[0] is model.Ci

    def f(rho, du, u, p, t):
        pass

    rho = np.ones(2)
    assert names_of(functools.partial(f, rho)).all()[0] is rho
    assert names_of(functools.partial(f, rho=rho)).arrays("rho")[0] is rho


def test_two_arrays_of_one_name():
    def make(array):
        w = array

        def g():
            return w

        return g

    g, h = make(np.zeros(1)), make(np.zeros(2))

    def f(du, u, p, t):
        g()
        h()

    assert len(names_of(f).arrays("w")) == 2


def test_an_empty_cell_and_recursion():
    def f(du, u, p, t):
        return later, f

    names_of(f)
    later = np.zeros(1)
    assert names_of(f).arrays("later")[0] is later


def test_read_only_for_a_while():
    base = np.zeros(4)
    view = base[1:]
    fixed = np.zeros(2)
    fixed.flags.writeable = False
    for order in ([base, view, fixed], [view, base, fixed]):
        with pytest.raises(ValueError, match="read-only"), read_only(order):
            view[0] = 1.0
        view[0] = 1.0
        base[0] = 1.0
        assert not fixed.flags.writeable
