"""A batch that is seen in parts: the sums of the parts say what the whole batch says."""

import re
from itertools import pairwise

import numpy as np
import oracles_estimation
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_population import random_dist

import labelsure as ls
from labelsure.estimation._batch_estimates import BatchSums, Scatter, mean_interval
from labelsure.estimation._batch_summary import BatchSummary, ComparedRows
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
    total = sum_of([estimator.summarise(DIST[a:b]) for a, b in pairwise(edges)])
    found = estimator.estimate(total, level=level, shift="ignore")
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


@given(cuts=st.lists(st.integers(200, 300), max_size=5))
def test_parts_are_tested_for_shift_as_the_whole_is(cuts):
    estimator = FITTED["full"]
    parts = [estimator.summarise(DIST[a:b]) for a, b in pairwise([200, *sorted(cuts), 300])]
    found, expected = estimator.estimate(sum_of(parts)).shift, estimator.estimate(DIST[200:]).shift
    assert (found.auc, found.p_value) == (expected.auc, expected.p_value)
    pd.testing.assert_frame_equal(found.moved, expected.moved)


def sum_of(parts):
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


@pytest.mark.parametrize(
    "sizes", [(9000, 1000), (1000, 9000), (3000, 3000, 4000), (500, 800, 1100)]
)
def test_rows_that_are_compared_are_a_random_sample_of_all_parts(sizes):
    """Of each part as many as its share of all rows, within four standard errors."""
    parts = []
    for number, size in enumerate(sizes):
        view = pd.DataFrame({"part": np.full(min(size, 2000), number)})
        parts.append(BatchSummary(BatchSums(size, 0, 0, 0, 0), ComparedRows.draw(view, size)))
    view = sum_of(parts).view
    assert len(view) == 2000
    for number, size in enumerate(sizes):
        share = size / sum(sizes)
        found = (view["part"] == number).mean()
        assert abs(found - share) < 4 * (share * (1 - share) / 2000) ** 0.5 + 1e-3


def test_a_summary_has_no_rows_to_judge_again():
    summary = FITTED["full"].summarise(DIST[200:])
    with pytest.raises(ls.InputError, match="must be None with a `BatchSummary`"):
        FITTED["full"].estimate(summary, rows=[0], Y_true=Y[:1])


def test_no_instances():
    sums = FITTED["full"].summarise(DIST[:0])
    with pytest.raises(ls.InputError, match=re.escape("at least one row, got none")):
        FITTED["full"].estimate(sums)
