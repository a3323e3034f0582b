"""Estimates from clusters of dependent calibration rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

import labelsure as ls
from labelsure.estimation._accuracy_model import RidgeModel
from labelsure.metrics.clusters import design_effect


def draw(n_clusters, size, rng, harder=0.0):
    """Rows of a cluster share luck; large clusters of unequal size can have less of it."""
    sizes = rng.geometric(1 / size, n_clusters) if harder else np.full(n_clusters, size)
    clusters = np.repeat(np.arange(n_clusters), sizes)
    luck = rng.normal(size=n_clusters) - harder * (sizes - size)
    logits = 1.5 * rng.normal(size=(len(clusters), 3))
    agreed = logits + np.sign(logits) * luck[clusters, np.newaxis]
    Y = (rng.random(logits.shape) < expit(agreed)).astype(int)
    return ls.IndependentLabels(expit(logits)), Y, clusters


def test_clusters_of_one_row_areindependent_rows():
    rng = np.random.default_rng(0)
    dist, Y, _ = draw(300, 1, rng)
    batch, _, _ = draw(200, 1, rng)
    alone = ls.AccuracyEstimator("jaccard").fit(dist, Y)
    clustered = ls.AccuracyEstimator("jaccard").fit(dist, Y, clusters=rng.permutation(300))
    for metric in (None, "micro-f1", "macro-recall"):
        one, other = (e.estimate(batch, metric=metric, shift="ignore") for e in (alone, clustered))
        assert_allclose([one.mean, one.low, one.high], [other.mean, other.low, other.high])
    assert_allclose(alone.predict(batch), clustered.predict(batch))
    assert_allclose(
        alone.estimate_labels(batch).to_frame(), clustered.estimate_labels(batch).to_frame()
    )
    assert_allclose(
        alone.estimate_prevalence(batch).to_frame(), clustered.estimate_prevalence(batch).to_frame()
    )
    one, other = alone.estimate(batch).shift, clustered.estimate(batch).shift
    assert (one.auc, one.p_value) == (other.auc, other.p_value)
    assert "in 300 clusters" in str(clustered.estimate(batch))


def test_copies_of_rows_are_known_to_be_copies():
    """Ten copies of each row say as much as the row: intervals must not become narrower."""
    dist, Y, _ = draw(100, 1, np.random.default_rng(1))
    rows = np.repeat(np.arange(100), 10)
    once = ls.AccuracyEstimator("f1").fit(dist, Y)
    copied = ls.AccuracyEstimator("f1").fit(dist[rows], Y[rows], clusters=rows)
    blind = ls.AccuracyEstimator("f1").fit(dist[rows], Y[rows])
    batches = (dist, dist[rows], dist[rows])  # clustered as the calibration set
    found = [
        e.estimate(batch, shift="ignore")
        for e, batch in zip((once, copied, blind), batches, strict=True)
    ]
    widths = [each.high - each.low for each in found]
    assert 0.85 < widths[1] / widths[0] < 1.2
    assert widths[2] < 0.4 * widths[0]
    assert_allclose(copied.scatter_.design_effect, 10, rtol=0.02)
    labels = [e.estimate_labels(dist).to_frame() for e in (once, copied, blind)]
    spreads = [float((table["f1_high"] - table["f1_low"]).mean()) for table in labels]
    assert spreads[1] > 0.85 * spreads[0] > spreads[2]
    prevalences = [e.estimate_prevalence(dist).to_frame() for e in (copied, blind)]
    gaps = [float((table["high"] - table["low"]).mean()) for table in prevalences]
    assert gaps[0] > 1.3 * gaps[1]


def test_the_covariance_is_that_of_sums_of_scores():
    rng = np.random.default_rng(2)
    features, values = rng.normal(size=(60, 2)), rng.uniform(size=60)
    clusters = np.repeat(np.arange(12), 5)
    model = RidgeModel().fit(features, values, clusters)
    design = model._design(features)
    rates = expit(design @ model.coefficients)
    bread = np.zeros((3, 3))
    for x, p in zip(design, rates, strict=True):
        bread += p * (1 - p) * np.outer(x, x)
    inverse = np.linalg.inv(bread + np.diag([1.0, 1.0, 0.0]))
    meat = np.zeros((3, 3))
    for cluster in range(12):
        own = clusters == cluster
        score = ((rates - values)[own, np.newaxis] * design[own]).sum(axis=0)
        meat += np.outer(score, score)
    effective = np.trace(inverse @ bread)
    expected = inverse @ meat @ inverse * 12 / (12 - effective)
    assert_allclose(model.covariance, expected, rtol=1e-5)


def test_rows_are_estimated_by_models_of_other_clusters():
    dist, Y, clusters = draw(40, 5, np.random.default_rng(3))
    one = ls.AccuracyEstimator("f1").fit(dist, Y, clusters=clusters)
    changed = Y.copy()
    changed[:5] = 1 - changed[:5]  # the rows of one cluster
    other = ls.AccuracyEstimator("f1").fit(dist, changed, clusters=clusters)
    assert_allclose(one.compare_estimates()[0][:5], other.compare_estimates()[0][:5])


@pytest.mark.jit_only
@pytest.mark.parametrize(("n_clusters", "size", "harder"), [(50, 10, 0.0), (80, 6, 0.15)])
def test_intervals_cover_batches_of_new_clusters(n_clusters, size, harder):
    """By row, intervals cover in 60 to 75 %."""
    rng, n_repeats = np.random.default_rng(4), 60
    covered = dict.fromkeys(("by cluster", "by row"), 0)
    for _ in range(n_repeats):
        dist, Y, clusters = draw(n_clusters, size, rng, harder)
        batch, truth, _ = draw(n_clusters, size, rng, harder)
        true = ls.accuracy(truth, batch.mode(), "f1").mean()
        table = ls.ScoreTable.from_distribution(dist, Y, metrics=["f1"]).to_frame()
        for name, given in (("by cluster", clusters), ("by row", None)):
            estimator = ls.AccuracyEstimator("f1").fit(table, clusters=given)
            found = estimator.estimate(batch, shift="ignore")
            covered[name] += found.low <= true <= found.high
    assert covered["by cluster"] / n_repeats >= 0.88
    assert covered["by row"] / n_repeats <= 0.8


def test_too_few_clusters_are_named():
    dist, Y, clusters = draw(6, 40, np.random.default_rng(5))
    estimator = ls.AccuracyEstimator("f1").fit(dist, Y, clusters=clusters)
    found = estimator.estimate(dist, shift="ignore")
    assert (found.low, found.high) == (0.0, 1.0)
    assert "in 6 clusters, too few for an interval" in str(found)
    for ask in (estimator.estimate_labels, lambda d: estimator.estimate(d, metric="macro-f1")):
        with pytest.raises(ls.InputError, match="at least 10 clusters of calibration rows, got 6"):
            ask(dist)
    rows = np.arange(0, 240, 6)
    assert estimator.estimate(dist, rows=rows, Y_true=Y[rows]).high < 1


def test_weights_of_clusters_are_refused():
    dist, Y, clusters = draw(40, 5, np.random.default_rng(6))
    estimator = ls.AccuracyEstimator("f1").fit(dist, Y, clusters=clusters)
    with pytest.raises(ls.InputError, match="needs independent calibration rows, got clusters"):
        estimator.estimate(dist, shift="weighted")


def test_clusters_are_kept_with_the_calibration_set(tmp_path):
    dist, Y, clusters = draw(40, 5, np.random.default_rng(7))
    estimator = ls.AccuracyEstimator("f1").fit(dist, Y, clusters=clusters)
    estimator.save(tmp_path / "estimator")
    loaded = ls.load(tmp_path / "estimator")
    assert loaded.estimate(dist) == estimator.estimate(dist)
    again = ls.AccuracyEstimator("exact", "mix").fit(loaded.calibration_)
    assert again.scatter_.n_clusters == 40
    residuals = np.subtract(*again.compare_estimates())
    assert_allclose(again.scatter_.design_effect, design_effect(residuals, clusters))
    assert len(loaded.independent_rows()) == 40
    assert len({*clusters[loaded.independent_rows()].tolist()}) == 40
