import json
import pathlib

import numpy as np
import pytest

from irad.ode import rock2_table as table
from irad.ode.rock2_table import Coefficients, coefficients, order_defects, stability, stable_length, stages_for

DATA = pathlib.Path(__file__).parent / "data"


def published():
    data = json.loads((DATA / "rock2_published.json").read_text())
    out = {}
    for r in data["full"]:
        mu, kappa = r["mu"], [0.0, *r["kappa"]]
        c = [0.0, mu[0]]
        for j in range(1, len(mu)):
            c.append(c[-1] + kappa[j] * (c[-1] - c[-2]) + mu[j])
        c.append(c[-1] + r["sigma"])
        out[r["stages"]] = Coefficients(r["stages"], tuple(mu), tuple(kappa), r["sigma"], r["phi"], tuple(c), r["l_s"])
    return out, data["ends"]


def test_every_stage_count_satisfies_the_order_conditions():
    for s in range(3, 201):
        method = coefficients(s)
        assert method.stages == s
        assert method.degree == s - 2
        assert max(abs(d) for d in order_defects(method)) < 1e-13
        assert abs(method.c[-1] + method.sigma - 1.0) < 1e-13


@pytest.mark.parametrize("s", [3, 4, 5, 6, 7, 13, 28, 57, 111, 200])
def test_stability_interval(s):
    method = coefficients(s)
    z = -0.5 * method.length * (1 - np.cos(np.linspace(0, np.pi, 4000)))
    value, inner = stability(method, z)
    assert np.abs(value).max() <= 1 + 1e-8
    assert inner.max() <= 1 + 1e-9
    assert abs(stability(method, -1.01 * method.length)[0]) > 1
    damped = np.abs(value)[(z < -0.05 * method.length) & (z > -0.999 * method.length)]
    assert damped.max() < 0.99


def test_against_an_independent_solution_of_the_same_design():
    for s, sigma, phi, length in json.loads((DATA / "rock2_uniform.json").read_text())["methods"]:
        method = coefficients(s)
        assert method.sigma == pytest.approx(sigma, rel=1e-11)
        assert method.phi == pytest.approx(phi, rel=1e-11)
        assert method.length == pytest.approx(length, rel=1e-11)


def test_published_methods_are_close_and_satisfy_our_conventions():
    full, ends = published()
    for s, sigma, phi in ends:
        far = 0.03 if s < 22 else 3e-3
        assert coefficients(s).sigma == pytest.approx(sigma, rel=far)
        assert coefficients(s).phi == pytest.approx(phi, rel=far)
    for s, method in full.items():
        assert max(abs(d) for d in order_defects(method)) < 1e-12
        z = -np.linspace(0, method.length, 4000)
        assert np.abs(stability(method, z)[0]).max() <= 1 + 1e-8
        assert coefficients(s).mu == pytest.approx(method.mu, rel=0.05)
        assert coefficients(s).kappa == pytest.approx(method.kappa, rel=0.1, abs=1e-12)


def test_stage_choice_is_the_least_stable_one():
    for reach in (0.0, 1.0, 6.1, 6.16, 6.17, 11.7, 11.76, 11.77, 79.8, 79.8001, 1000.0, 32398.8):
        s = stages_for(reach)
        assert stable_length(s) >= reach
        assert s == 3 or stable_length(s - 1) < reach
    assert stages_for(1.0, 7) == 7
    assert stages_for(32398.9) == 201  # the caller caps


@pytest.mark.parametrize("s", [2, 0, -1, 201])
def test_refuses_other_stage_counts(s):
    with pytest.raises(ValueError, match="3 to 200 stages"):
        coefficients(s)


def test_the_check_notices_a_wrong_coefficient():
    good = coefficients(10)
    bad = Coefficients(10, (good.mu[0] * 1.001, *good.mu[1:]), good.kappa, good.sigma, good.phi, good.c, good.length)
    with pytest.raises(ArithmeticError, match="order defect"):
        table._check(bad)
    long = Coefficients(10, good.mu, good.kappa, good.sigma, good.phi, good.c, good.length * 1.01)
    with pytest.raises(ArithmeticError, match="failed their check"):
        table._check(long)
