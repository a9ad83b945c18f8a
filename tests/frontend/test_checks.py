"""What is refused: the class of the error, the user's line, the reason, and a remedy.

PYTEST_DONT_REWRITE: one of the kernels below asserts.
"""

from __future__ import annotations

import math
import random
import secrets

import numba
import numpy as np
import pytest
from numba.extending import register_jitable
from stage_runner import lower_for, run

from irad.domains import atomic_add, interior, points
from irad.errors import IradError, NotDifferentiableError
from irad.fd import d
from irad.frontend.checks import is_kernel
from irad.frontend.device import device

A = np.ones(5)
generator = np.random.default_rng(0)
letters = ["a"]
step = 1.0


class Kernel:
    """Stands for what @irad.kernel makes."""

    __irad_kernel__ = True
    __name__ = "other"

    def __call__(self, *args):
        raise AssertionError


class Settings:
    dx = 1.0


other, settings = Kernel(), Settings()


def plain(x):
    return x + step


@register_jitable
def frozen(x):
    return x * step


@register_jitable
def harmless(x):
    return x * 2


@device
def printing(x):
    print(x)
    return x


@device
def with_entry(x):
    return x * A[0]


@device
def bad_attribute(x):
    return x.colour


@device
def raising(x):
    if x < 0:
        raise ValueError
    return x


@device
def twice(f, x):
    return f(f(x))


@device
def many(*x):
    return x[0]


@device
def domain_in_helper(x):
    return points(x)


def k_print(a, b):
    i = points(a)
    print(b[i])


def k_print_in_helper(a, b):
    i = points(a)
    a[i] = printing(b[i])


def k_open(a, b):
    i = points(a)
    open("x")  # noqa: SIM115
    a[i] = b[i]


def k_random(a, b):
    i = points(a)
    a[i] = np.random.rand()


def k_random_module(a, b):
    i = points(a)
    a[i] = random.random() * b[i]


def k_generator(a, b):
    i = points(a)
    a[i] = generator.random()


def k_secrets(a, b):
    i = points(a)
    a[i] = secrets.randbelow(3)


def k_kernel(a, b):
    i = points(a)
    other(a, b)
    a[i] = 0.0


def k_raise(a, b):
    i = points(a)
    if b[i] > 0:
        raise ValueError("positive")


def k_assert(a, b):
    i = points(a)
    assert b[i] > 0


def k_raise_in_helper(a, b):
    i = points(a)
    a[i] = raising(b[i])


def k_try(a, b):
    i = points(a)
    try:
        a[i] = b[i]
    except Exception:
        a[i] = 0.0


def k_object_mode(a, b):
    i = points(a)
    with numba.objmode():
        a[i] = b[i]


def k_returns(a, b):
    i = points(a)
    a[i] = b[i]
    return b[i]


def k_returns_sometimes(a, b):
    i = points(a)
    if b[i] > 0:
        return
    return 1


def k_yields(a, b):
    i = points(a)
    yield b[i]


def k_plain(a, b):
    i = points(a)
    a[i] = plain(b[i])


def k_frozen(a, b):
    i = points(a)
    a[i] = frozen(b[i])


def k_mixture(a, b):
    i = points(a)
    a[i] = d(b)


def k_atomic(a, b):
    i = points(a)
    atomic_add(a, 0, b[i])


def k_helper_as_value(a, b):
    i = points(a)
    a[i] = twice(with_entry, b[i])


def k_domain_in_helper(a, b):
    i = points(a)
    a[i] = domain_in_helper(b)


def k_unassigned(a, b):
    i = points(a)
    if b[i] > 0:
        x = 1.0
    a[i] = x


def k_arguments(a, b):
    i = points(a)
    a[i] = with_entry(b[i], 3)


def k_star(a, b):
    i = points(a)
    t = (b[i],)
    a[i] = with_entry(*t)


def k_star_helper(a, b):
    i = points(a)
    a[i] = many(b[i])


def k_undefined(a, b):
    i = points(a)
    a[i] = not_defined_anywhere  # noqa: F821


def k_attribute(a, b):
    i = points(a)
    a[i] = b.colour


def k_attribute_of_module(a, b):
    i = points(a)
    a[i] = math.colour(b[i])


def k_attribute_in_helper(a, b):
    i = points(a)
    a[i] = bad_attribute(b[i])


def k_string(a, b):
    i = points(a)
    a[i] = b[i] + "x"


def k_two_types(a, b):
    i = points(a)
    if b[i] > 0:  # noqa: SIM108
        x = 1.0
    else:
        x = (1, 2)
    a[i] = x


def k_local_array(a, b):
    i = points(a)
    q = np.zeros(3)
    a[i] = q[0]


def k_local_list(a, b):
    i = points(a)
    q = [1.0, b[i]]
    a[i] = q[1]


def k_list(a, b):
    i = points(a)
    a[i] = len(letters)


def k_object(a, b):
    i = points(a)
    a[i] = b[i] * settings.dx


def k_unsupported(a, b):
    i = points(a)
    a[i] = np.heaviside(b[i], 0.5)


@pytest.mark.parametrize(
    ("kernel", "line", "says"),
    [
        (k_print, 2, "print cannot be used"),
        (k_print_in_helper, None, "print cannot be used"),
        (k_open, 2, "open cannot be used"),
        (k_random, 2, "random numbers"),
        (k_random_module, 2, "random numbers"),
        (k_generator, 2, "random numbers"),
        (k_secrets, 2, "random numbers"),
        (k_kernel, 2, "point kernel calls the kernel other"),
        (k_raise, 3, "cannot raise"),
        (k_assert, 2, "cannot raise"),
        (k_raise_in_helper, None, "cannot raise"),
        (k_try, None, "try and except"),
        (k_object_mode, 2, "object mode"),
        (k_returns, 3, "k_returns returns a value"),
        (k_returns_sometimes, 4, "returns a value"),
        (k_yields, 0, "is a generator"),
        (k_plain, 2, "plain is a plain Python function"),
        (k_frozen, 2, "frozen is a plain Python function"),
        (k_mixture, 2, "uses an irad.fd operator"),
        (k_atomic, 2, "atomic_add is not available"),
        (k_helper_as_value, 2, "with_entry, which captures A, is used as a value"),
        (k_domain_in_helper, None, "helper domain_in_helper uses a launch domain"),
        (k_unassigned, 4, "x may be used before it is assigned"),
        (k_arguments, 2, "with_entry: too many positional arguments"),
        (k_star, 3, "with \\*arguments"),
        (k_star_helper, None, "takes \\*x"),
        (k_undefined, 2, "not_defined_anywhere is not defined"),
        (k_attribute, 2, "no attribute colour"),
        (k_attribute_of_module, 2, "module math has no colour"),
        (k_attribute_in_helper, None, "float64 has no attribute colour"),
        (k_string, 2, r"add\(float64, x\) cannot be compiled"),
        (k_two_types, 6, "x is .* on one way and .* on another"),
        (k_local_array, 2, r"a local array is made \(zeros\)"),
        (k_local_list, 2, "a local array or list is made"),
        (k_list, 2, "letters is a list"),
        (k_object, 2, "settings is nothing that a kernel can use"),
        (k_unsupported, 2, "numpy.heaviside"),
    ],
)
def test_refused(kernel, line, says):
    with pytest.raises(IradError, match=says) as e:
        lower_for(kernel, np.zeros(5), np.zeros(5))
    message = str(e.value)
    assert message.startswith(f"{__file__}:")
    if line is not None:
        assert message.startswith(f"{__file__}:{kernel.__code__.co_firstlineno + line}: ")
    assert len(message.splitlines()) <= 2, "a short reason, not Numba's whole report"
    if "module math" not in says and "with_entry: too many" not in says:
        assert "\n  Instead: " in message


def test_lines_in_helpers_are_the_helpers_own():
    for kernel, helper, offset in ((k_print_in_helper, printing, 2), (k_attribute_in_helper, bad_attribute, 2)):
        with pytest.raises(NotDifferentiableError) as e:
            lower_for(kernel, np.zeros(5), np.zeros(5))
        assert e.value.loc.line == helper.py_func.__code__.co_firstlineno + offset


def test_what_is_allowed_beside_the_refusals():
    def kernel(a, b):
        i = interior(a)
        total = 0.0
        for n in range(3):
            if n % 2 == 0:  # noqa: SIM108
                part = b[i] * n
            else:
                part = harmless(b[i - 1])
            last = part
            total += part
        a[i] = total + last

    b, a = np.arange(5.0), np.zeros(5)
    run(kernel, a, b)
    np.testing.assert_array_equal(a[1:-1], (2 * b[1:-1] + 2 * b[:-2]) + 2 * b[1:-1])


def test_a_helper_without_captures_may_be_passed_on():
    @device
    def double(x):
        return 2 * x

    def kernel(a, b):
        i = points(a)
        a[i] = twice(double, b[i])

    b, a = np.arange(5.0), np.zeros(5)
    run(kernel, a, b)
    np.testing.assert_array_equal(a, 4 * b)


def test_a_loop_kernel_is_lowered_as_one_stage():
    def kernel(a, b):
        for i in range(a.shape[0]):
            if b[i] < 0:
                raise ValueError
            a[i] = b[i] * 2

    b, a = np.arange(5.0), np.zeros(5)
    lowered = run(kernel, a, b)
    assert lowered.kind == "loop"
    assert [s.rank for s in lowered.stages] == [0]
    np.testing.assert_array_equal(a, b * 2)


def test_kernels_are_known_by_their_mark():
    assert is_kernel(other)
    assert not is_kernel(plain)
