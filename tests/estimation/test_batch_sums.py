"""A batch that is seen in parts: the sums of the parts say what the whole batch says."""

import re
from itertools import pairwise

import numpy as np
import oracles_estimation
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_population import random_dist

import labelsure as ls
from labelsure.estimation._batch_estimates import BatchSums, Scatter, mean_interval
from labelsure.estimation._estimator import AccuracyEstimator

DIST = random_dist(300)
Y = DIST.sample(1, random_state=3)[:, 0]
MODELS = {
    "full": AccuracyEstimator("jaccard"),
    "mix": AccuracyEstimator("f1", "mix"),
}
FITTED = {name: model.fit(DIST[:200], Y[:200]) for name, model in MODELS.items()}
NUMBERS = ("mean", "low", "high", "spread")


@pytest.mark.parametrize("name", FITTED)
@given(cuts=st.lists(st.integers(200, 300), max_size=5), level=st.floats(0.5, 0.99))
def test_parts_say_what_the_whole_says(name, cuts, level):
    estimator = FITTED[name]
    edges = [200, *sorted(cuts), 300]
    parts = [estimator._sum_up(DIST[a:b]) for a, b in pairwise(edges)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    found = estimator._estimate_sums(total, level=level)
    expected = estimator.estimate(DIST[200:], level=level)
    assert (found.n_samples, found.level) == (100, level)
    for number in NUMBERS:
        assert getattr(found, number) == pytest.approx(getattr(expected, number), abs=1e-12)


estimates = st.lists(st.floats(0, 1), min_size=1, max_size=8).map(np.array)


@given(
    parts=st.lists(estimates, min_size=1, max_size=4),
    ratio=st.floats(0.1, 3),
    n_fitted=st.sampled_from([2, 30, 5000]),
    fit_variance=st.sampled_from([0.0, 0.01]),
    level=st.floats(0.5, 0.99),
)
def test_the_interval_is_that_of_the_loop(parts, ratio, n_fitted, fit_variance, level):
    sums = BatchSums(0, 0.0, 0.0, 0.0, np.zeros(1))
    for part in parts:
        sums = sums + BatchSums.of(part, np.array([part.sum()]))
    whole = np.concatenate(parts)
    found = mean_interval(sums, Scatter(ratio, n_fitted, n_fitted), fit_variance, level)
    expected = oracles_estimation.mean_interval(list(whole), ratio, n_fitted, fit_variance, level)
    assert [found.mean, found.low, found.high] == pytest.approx(expected, abs=1e-12)
    assert found.spread == pytest.approx(whole.std(), abs=1e-12)
    assert sums.slopes[0] == pytest.approx(whole.sum(), abs=1e-12)


def test_no_instances():
    sums = FITTED["full"]._sum_up(DIST[:0])
    with pytest.raises(ls.InputError, match=re.escape("at least one row, got none")):
        FITTED["full"]._estimate_sums(sums)
