"""Labelsets of 1,500 labels in doubt: no probability is a number, every logarithm is."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from strategies import TOO_MANY_LABELS, UNDERFLOWING, beyond_numbers

import labelsure as ls
from labelsure.labelsets.sparse import differing_rows


@pytest.mark.parametrize("kind", UNDERFLOWING)
@pytest.mark.jit_only
def test_top_mode_log_prob_and_profile_agree_in_logarithms(kind):
    dist = beyond_numbers(kind)
    mode, best, profile = dist.mode(), dist.top(2), dist.profile()
    of_mode = dist.log_prob(mode)
    assert np.isfinite(of_mode).all()
    assert not differing_rows(best.labelsets[:, 0], mode).any()
    assert_allclose(best.logs[:, 0], of_mode, rtol=1e-11)
    seen = np.isfinite(best.logs[:, 1])  # others fill up what a search found
    assert_allclose(best.logs[seen, 1], dist.log_prob(best.labelsets[:, 1])[seen], rtol=1e-11)
    assert (best.log_high >= best.logs).all()
    # Where engines find nothing, bounds are all that the profile says of the largest probability.
    assert (of_mode <= profile.high.log_top + 1e-9 * np.abs(of_mode)).all()
    assert (profile.low.log_top <= profile.high.log_top).all()
    exact = profile.method == "exact"
    assert_allclose(profile.log_top[exact], of_mode[exact], rtol=1e-11)
    assert_allclose(profile.log_runner_up[exact], best.logs[exact, 1], rtol=1e-11)
    for values in (profile.log_top, profile.entropy, profile.log_collision):
        assert np.isfinite(values).all()
    assert exact.all() == (kind != "mixture")
    if kind in ("independent", "sparse", "trellis"):
        assert (best.probabilities == 0).all()


@pytest.mark.jit_only
def test_a_table_without_a_share_says_nothing():
    """All is by the rest, also of the labelsets that the table holds and the rest excludes."""
    dist = beyond_numbers("smoothed")[1]
    rest = dist._rest
    for name in ("log_top", "log_runner_up", "entropy", "log_collision"):
        assert_allclose(getattr(dist.profile(), name), getattr(rest.profile(), name), rtol=1e-11)
    assert_array_equal(dist.mode(), rest.mode())
    table = ls.LabelsetTable([[[1, 1], [0, 1]]], [[0.5, 0.5]])
    certain = ls.distributions.SmoothedTable(table, ls.IndependentLabels([[0.0, 0.4]]), 1.0)
    assert_allclose(certain.profile().entropy, ls.IndependentLabels([[0.4]]).profile().entropy)
    assert_allclose(certain.top(4).probabilities, [[0.6, 0.4, 0, 0]])


def test_the_strategy_is_beyond_numbers():
    assert 2.0**-TOO_MANY_LABELS == 0
