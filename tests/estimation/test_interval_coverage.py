"""The interval of a batch: how often it covers, and that it knows how accuracies scatter."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import norm
from scipy.stats import t as student

import labelsure as ls
from labelsure.estimation._batch_estimates import BatchSums, Scatter, mean_interval
from labelsure.metrics.mean_tests import dispersion_ratio

pytestmark = pytest.mark.jit_only

N_FITTED, N_BATCH, N_REPEATS = 40, 1000, 300


def single_variance(ratio, n_fitted, bernoulli_variance):
    """The variance of one accuracy: as by one success and one failure more among those fitted."""
    return ratio * (n_fitted**2 * bernoulli_variance + n_fitted + 1) / (n_fitted + 2) ** 2


@pytest.fixture(scope="module")
def repeats():
    """Estimators of few instances with many features, each with a large batch and its truth."""
    rng = np.random.default_rng(0)
    n_samples = N_REPEATS * (N_FITTED + N_BATCH)
    logits = 1.5 * rng.normal(size=(n_samples, 4)) + rng.normal(size=(n_samples, 1))
    truth = (rng.random(logits.shape) < expit(0.7 * logits)).astype(int)  # over-confident
    dist = ls.IndependentLabels(expit(logits))
    table = ls.ScoreTable.from_distribution(dist, truth, metrics=["jaccard"])
    frame, accuracy = table.to_frame(), table.accuracy("jaccard", 1.0)
    found = []
    for rows in np.arange(n_samples).reshape(N_REPEATS, -1):
        fitted, batch = rows[:N_FITTED], rows[N_FITTED:]
        estimator = ls.AccuracyEstimator("jaccard").fit(frame.iloc[fitted])
        estimate = estimator.estimate(frame.iloc[batch], shift="ignore")
        sums = estimator.summarise(frame.iloc[batch]).sums
        claimed = single_variance(
            estimator.scatter_.ratio, N_FITTED, sums.bernoulli_variance / N_BATCH
        )
        residuals = accuracy[batch] - estimator.predict(frame.iloc[batch])
        covered = estimate.low <= accuracy[batch].mean() <= estimate.high
        found.append((covered, claimed, (residuals**2).mean()))
    return np.array(found)


def test_the_interval_of_a_large_batch_covers_though_few_instances_were_fitted_to(repeats):
    """With the scatter around what they were fitted to, 89 % of these intervals would cover."""
    assert 0.93 <= repeats[:, 0].mean() <= 0.985


def test_accuracies_scatter_as_on_instances_that_nothing_was_fitted_to(repeats):
    """Around estimates that were fitted to them they scatter by less than two thirds of this.

    Models of folds learn from a fifth less, so that it may be a little more.
    """
    _, claimed, came_out = repeats.mean(axis=0)
    assert 0.95 < claimed / came_out < 1.25


def test_few_residuals_make_the_interval_wider():
    sums = BatchSums.of(np.full(100, 0.5), np.empty(0))
    for n_fitted, quantile in ((21, student.ppf(0.95, 20)), (10**9, norm.ppf(0.95))):
        found = mean_interval(sums, Scatter(0.8, n_fitted, n_fitted), 0.0, 0.9)
        variance = single_variance(0.8, n_fitted, 0.25) * (1 / 100 + 1 / n_fitted)
        assert_allclose(found.high - found.low, 2 * quantile * variance**0.5, rtol=1e-7)


def test_the_dispersion_is_that_around_estimates_by_models_of_others():
    rng = np.random.default_rng(1)
    dist = ls.IndependentLabels(rng.uniform(size=(120, 3)))
    truth = dist.sample(1, random_state=2)[:, 0]
    estimator = ls.AccuracyEstimator("jaccard").fit(dist, truth)
    p, accuracy = estimator.compare_estimates()
    ratio = float(dispersion_ratio((p * (1 - p)).sum(), ((accuracy - p) ** 2).sum()))
    assert_allclose(estimator.scatter_.ratio, ratio, rtol=1e-12)
    own = estimator.predict(dist)
    own_ratio = dispersion_ratio((own * (1 - own)).sum(), ((accuracy - own) ** 2).sum())
    assert abs(ratio / own_ratio - 1) > 1e-3
