import numpy as np
import pytest

from irad.errors import IradError
from irad.ode.grid import Grid, GridBuilder


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_every_time_has_its_place(way):
    grid = Grid.uniform(1.0, 1.0 + way * 2.0, 8, stages=5)
    assert grid.locate(1.0) == (0, 0.0)
    for n in range(8):
        assert grid.locate(float(grid.t[n + 1])) == (n, 1.0)
        m, theta = grid.locate(float(grid.t[n] + 0.3 * grid.h[n]))
        assert (m, theta) == (n, pytest.approx(0.3))
    just_inside = np.nextafter(float(grid.t[3]), float(grid.t[4]))
    n, theta = grid.locate(float(just_inside))
    assert n == 3
    assert 0.0 < theta < 1.0
    for outside in (1.0 - way * 1e-9, 1.0 + way * 2.1, np.nan):
        with pytest.raises(IradError, match="outside the solution"):
            grid.locate(outside)


def test_times_beside_a_jump():
    builder = GridBuilder.start(0.0)
    builder.add(0.5, 0.5, 3, 1.0, True)
    builder.add(1.0, 0.5, 4, 2.0, False)
    grid = builder.finish()
    assert len(grid) == 2
    assert grid.last_time(0) < 0.5 < grid.first_time(1)
    assert grid.last_time(1) == 1.0
    assert grid.first_time(0) == 0.0
    assert grid.stages.tolist() == [3, 4]


def test_uniform_grids():
    grid = Grid.uniform(0.0, 1.0, 10, rho=1000.0)
    assert grid.h.sum() == pytest.approx(1.0)
    assert grid.t[-1] == 1.0
    assert set(grid.stages.tolist()) == {12}
    assert len(Grid.uniform(0.0, 0.0, 0)) == 0
