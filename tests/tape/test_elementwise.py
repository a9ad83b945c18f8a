import numpy as np

from irad.tape.elementwise import COMPARISONS, RULES, scale


def test_every_row_names_as_many_partials_as_arguments():
    for function, rule in RULES.items():
        assert isinstance(function, np.ufunc)
        assert len(rule.partials) in (0, function.nin)
    assert not set(RULES) & set(COMPARISONS)


def test_zero_factors_at_poles():
    rule = RULES[np.sqrt]
    assert scale(rule, np.array([0.0, 2.0]), np.array([np.inf, 3.0])).tolist() == [0.0, 6.0]
