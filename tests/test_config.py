"""Environment switches: what they parse to, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from irad.config import Config
from irad.errors import IradError


def test_defaults():
    config = Config.read({"HOME": "/h"})
    assert config == Config(num_threads=None, cache_dir=Path("/h/.cache/irad"), verify=False, dump=None)
    assert Config.read({}).cache_dir is None


@pytest.mark.parametrize(
    ("environment", "field", "value"),
    [
        ({"IRAD_NUM_THREADS": "3"}, "num_threads", 3),
        ({"IRAD_CACHE_DIR": "/c", "HOME": "/h"}, "cache_dir", Path("/c")),
        ({"IRAD_CACHE_DIR": "off", "HOME": "/h"}, "cache_dir", None),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "cache_dir", Path("/x/irad")),
        ({"IRAD_VERIFY": "1"}, "verify", True),
        ({"IRAD_VERIFY": "0"}, "verify", False),
        ({"IRAD_DUMP": "/d"}, "dump", Path("/d")),
        ({"IRAD_VECTOR_BITS": "512"}, "vector_bits", 512),
    ],
)
def test_switches(environment, field, value):
    assert getattr(Config.read(environment), field) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("IRAD_NUM_THREADS", "0"),
        ("IRAD_NUM_THREADS", "-1"),
        ("IRAD_NUM_THREADS", "many"),
        ("IRAD_VERIFY", "yes"),
        ("IRAD_VECTOR_BITS", "128"),
    ],
)
def test_nonsense_is_refused_by_name(name, value):
    with pytest.raises(IradError, match=f"{name}='{value}'"):
        Config.read({name: value})
