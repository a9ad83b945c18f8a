"""The words of a launch domain outside a kernel."""

from __future__ import annotations

import pytest

from irad import domains
from irad.errors import IradError


@pytest.mark.parametrize(
    ("word", "args"), [("interior", (1,)), ("points", (1,)), ("domain", ((0, 1),)), ("atomic_add", (1, 2, 3))]
)
def test_outside_a_kernel_it_says_where_to_use_it(word, args):
    with pytest.raises(IradError, match=f"irad.{word} was called outside a kernel") as e:
        getattr(domains, word)(*args)
    assert "@irad.kernel" in str(e.value)
