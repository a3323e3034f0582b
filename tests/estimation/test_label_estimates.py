"""Estimated precision, recall and F1 of labels and batches, on simulated truth."""

import math
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit
from simulated_population import random_dist, score_frame

import labelsure as ls
from labelsure.estimation import _label_estimates as calibration_module
from labelsure.estimation._estimator import AccuracyEstimator
from labelsure.estimation._label_estimates import (
    LABEL_METRICS,
    MEASURES,
    LabelBatch,
    LabelCalibration,
    LabelCounts,
    widen,
)
from labelsure.estimation.score_table import calibration_marginals

pytestmark = pytest.mark.jit_only


def count_labels(Y_true, Y_pred):
    """What a known truth counts: true positives, true and predicted labels."""
    counted = (Y_true * Y_pred, Y_true, Y_pred)
    return LabelCounts(*(Y.sum(axis=0, dtype=float) for Y in counted))


def raises(*parts):
    return pytest.raises(ls.InputError, match=".*".join(map(re.escape, parts)))


def batch(n_samples, seed, n_labels=4, shared=0.0):
    """Overconfident marginals, and the truth.

    Some instances are easy and others hard by a `shared` effect: all of their predictions tend to
    be right, or wrong, together.
    """
    rng = np.random.default_rng(seed)
    true = rng.normal(-0.8, 1.5, size=(n_samples, n_labels)) + np.linspace(-1, 1, n_labels)
    dist = ls.IndependentLabels(expit(1.7 * true + 0.3))
    ease = shared * rng.normal(size=(n_samples, 1)) * (2 * dist.mode() - 1)
    return dist, (rng.uniform(size=true.shape) < expit(true + ease)).astype(np.int8)


def outcomes_of(dist, Y, Y_pred=None):
    return ls.ScoreTable.from_distribution(dist, Y, Y_pred, metrics=[])


class TestCoverage:
    """Of 200 batches, how many have the value that comes out inside of the interval."""

    N_REPEATS = 200

    @pytest.mark.parametrize("shared", [0.0, 1.5])
    @pytest.mark.slow
    def test_intervals_cover(self, shared):
        averages = {"micro-f1": 0, "macro-f1": 0}
        of_labels = dict.fromkeys(MEASURES, 0.0)
        biases = dict.fromkeys(averages, 0.0)
        for repeat in range(self.N_REPEATS):
            dist, Y = batch(400, 2 * repeat, shared=shared)
            fitted = LabelCalibration.fit(outcomes_of(dist[:200], Y[:200]), repeat)
            drawn, expected = LabelBatch(fitted, outcomes_of(dist[200:], Y[200:])).draw(repeat)
            real = count_labels(Y[200:], dist[200:].mode())
            for metric in averages:
                values = drawn.of_batch(metric, 1.0)
                factor = fitted.dispersions[metric] ** 0.5
                widened = widen(values, expected.of_batch(metric, 1.0), factor)
                low, high = np.quantile(widened, [0.025, 0.975])
                averages[metric] += low <= real.of_batch(metric, 1.0) <= high
                biases[metric] += values.mean() - real.of_batch(metric, 1.0)
            for name, measure in MEASURES.items():
                low, high = np.quantile(drawn.of_labels(measure, 1.0), [0.025, 0.975], axis=0)
                value = real.of_labels(measure, 1.0)
                of_labels[name] += np.mean((low <= value) & (value <= high))
        for covered in (*averages.values(), *of_labels.values()):
            assert 0.9 <= covered / self.N_REPEATS <= 0.995
        for bias in biases.values():
            assert abs(bias / self.N_REPEATS) < 0.01

    def test_labels_that_go_together_need_the_widening(self):
        apart, together = (
            LabelCalibration.fit(outcomes_of(*batch(2000, 1, shared=shared)), 0)
            for shared in (0.0, 1.5)
        )
        assert 1 <= apart.dispersions["micro-f1"] < 1.15
        assert together.dispersions["micro-f1"] > 1.2


def shared_of(fitted):
    return fitted.coefficients[:, :4] * 10.0


def offsets_of(fitted):
    return fitted.coefficients[:, 4:] * 1.0


def logits_of(fitted):
    """The replicates' logit of label 0 at a marginal of 0.27, where it is not predicted."""
    at = [1.0, -1.0, 0.0, fitted.frequencies[0]]
    return shared_of(fitted) @ at + offsets_of(fitted)[:, 0]


class TestModel:
    def test_it_finds_the_truth_behind_overconfident_probabilities(self):
        dist, Y = batch(20_000, 0)
        fitted = LabelCalibration.fit(outcomes_of(dist, Y), 0)
        intercept, slope, predicted, frequency = shared_of(fitted).mean(axis=0)
        assert_allclose(slope, 1 / 1.7, atol=0.03)
        assert_allclose(intercept, -0.3 / 1.7, atol=0.25)
        assert abs(predicted) < 0.15
        assert abs(frequency) < 0.15
        assert np.abs(offsets_of(fitted).mean(axis=0)).max() < 0.15

    def test_offsets_are_those_of_the_labels(self):
        dist, Y = batch(4000, 3)
        always_less = Y.copy()
        always_less[np.random.default_rng(0).uniform(size=len(Y)) < 0.6, 1] = 0
        fitted = LabelCalibration.fit(outcomes_of(dist, always_less), 0)
        means = offsets_of(fitted).mean(axis=0).reshape(2, -1)
        assert (means.argmin(axis=1) == 1).all()
        assert (means[:, 1] < -0.5).all()

    def test_the_maximum_has_no_slope(self, monkeypatch):
        """The gradient of the penalised log-likelihood, entry by entry, at what was found."""

        class NoSteps:
            def __init__(self, hessian):
                pass

            def solve(self, gradients):
                return np.zeros_like(gradients)

        monkeypatch.setattr(calibration_module, "splu", NoSteps)
        dist, Y = batch(150, 5, n_labels=3)
        fitted = LabelCalibration.fit(outcomes_of(dist, Y), 0)
        frequencies = [round(logit(p) * 10) / 10 for p in dist.marginals().mean(axis=0)]
        shared, offsets = shared_of(fitted)[0], offsets_of(fitted)[0]
        slopes = [-b / 10**2 for b in shared] + [-b / 1.0**2 for b in offsets]
        for p_row, row, truth in zip(dist.marginals(), dist.mode(), Y, strict=True):
            for j, (p, predicted, true) in enumerate(zip(p_row, row, truth, strict=True)):
                x = (1.0, round(logit(p) * 10) / 10, predicted, frequencies[j])
                at = j + 3 * predicted
                eta = sum(b * v for b, v in zip(shared, x, strict=True)) + offsets[at]
                p_true = 1 / (1 + math.exp(-eta))
                # 0.1 entries that are true, and as many that are not, spread over all of them
                residual = true - p_true + 0.1 / Y.size * (1 - 2 * p_true)
                for k, v in enumerate(x):
                    slopes[k] += residual * v
                slopes[4 + at] += residual
        assert_allclose(slopes, 0, atol=0.02)

    def test_replicates_scatter_as_refits_do(self):
        """One Newton step for each replicate, against fits to new samples of instances."""
        dist, Y = batch(600, 8)
        fitted = LabelCalibration.fit(outcomes_of(dist, Y), 0)
        found = []
        for seed in range(60):
            rows = np.random.default_rng(seed).integers(600, size=600)
            refit = LabelCalibration.fit(outcomes_of(dist[rows], Y[rows]), 0)
            found.append((shared_of(refit)[:, 1].mean(), logits_of(refit).mean()))
        slopes, logits = np.array(found).T
        assert 0.75 < np.std(shared_of(fitted)[:, 1]) / np.std(slopes) < 1.35
        assert 0.75 < np.std(logits_of(fitted)) / np.std(logits) < 1.35

    def test_the_offset_of_a_label_that_is_never_predicted_stays_uncertain(self):
        dist, Y = batch(2000, 4)
        Y_pred = dist.mode()
        Y_pred[:, 0] = 0
        fitted = LabelCalibration.fit(outcomes_of(dist, Y, Y_pred), 0)
        scatter = offsets_of(fitted).std(axis=0)
        assert scatter[4] > 1.2 * scatter[5:].max()  # where labels are predicted

    def test_a_label_without_any_truth_stays_uncertain(self):
        dist, Y = batch(300, 4)
        Y[:, 0] = 0
        fitted = LabelCalibration.fit(outcomes_of(dist, Y), 0)
        drawn, _ = LabelBatch(fitted, outcomes_of(dist, Y)).draw(0)
        assert drawn.n_true[:, 0].mean() < 6
        assert drawn.n_true[:, 0].std() > 0.5

    def test_certain_probabilities_and_a_label_that_is_never_predicted(self):
        rng = np.random.default_rng(0)
        marginals = rng.choice([0.0, 1.0, 0.4], size=(200, 3))
        marginals[:, 2] = 0.0
        dist = ls.IndependentLabels(marginals)
        Y = (rng.uniform(size=(200, 3)) < 0.5).astype(np.int8)
        table = AccuracyEstimator("jaccard").fit(dist, Y).estimate_labels(dist).to_frame()
        assert np.isfinite(table.to_numpy()).all()
        assert table["n_predicted"].iloc[2] == 0
        assert table["precision"].iloc[2] == 1.0  # 0/0 is worth `empty`
        assert table["recall"].iloc[2] == 0.0

    def test_the_expected_counts_are_the_means_of_those_drawn(self):
        dist, Y = batch(500, 6)
        fitted = LabelCalibration.fit(outcomes_of(dist, Y), 0)
        drawn, expected = LabelBatch(fitted, outcomes_of(dist, Y)).draw(1)
        assert_allclose(drawn.tp.mean(axis=0), expected.tp.mean(axis=0), rtol=0.02)
        assert_allclose(drawn.n_true.mean(axis=0), expected.n_true.mean(axis=0), rtol=0.02)
        assert drawn.n_predicted.tolist() == dist.mode().sum(axis=0).tolist()

    def test_widening_keeps_the_mean_and_stays_between_0_and_1(self):
        drawn = np.array([0.4, 0.6, 0.5])
        assert_allclose(widen(drawn, np.full(3, 0.5), 2.0), [0.3, 0.7, 0.5])
        assert_allclose(widen(drawn, drawn, 2.0), drawn)  # no chance, nothing to widen
        assert widen(np.array([0.1, 0.9]), np.full(2, 0.5), 2.0).tolist() == [0.0, 1.0]
        two_labels = np.stack([drawn, drawn], axis=1)
        found = widen(two_labels, np.full((3, 2), 0.5), np.array([1.0, 2.0]))
        assert_allclose(found.T, [drawn, [0.3, 0.7, 0.5]])


@pytest.fixture(scope="module")
def case():
    dist = random_dist(900, seed=2)
    Y = dist.sample(1, random_state=3)[:, 0]
    return AccuracyEstimator("jaccard").fit(dist[:600], Y[:600]), dist, Y


class TestEstimator:
    @pytest.mark.parametrize("metric", LABEL_METRICS)
    def test_a_measure_of_the_batch(self, case, metric):
        estimator, dist, Y = case
        found = estimator.estimate(dist[600:], metric=metric)
        real = count_labels(Y[600:], dist[600:].mode()).of_batch(metric, 1.0)
        assert found.low < found.mean < found.high
        assert str(found).startswith(f"{metric[0].upper()}{metric[1:]}".replace("-f1", "-F1"))
        assert abs(found.mean - real) < 0.05  # how often the interval covers is tested above
        assert 0.03 < found.high - found.low < 0.15
        assert (found.n_samples, found.level) == (300, 0.95)
        assert math.isnan(found.spread)
        narrow = estimator.estimate(dist[600:], metric=metric, level=0.5)
        assert found.low < narrow.low < narrow.high < found.high

    def test_the_table_of_labels(self, case):
        estimator, dist, Y = case
        table = estimator.estimate_labels(dist[600:]).to_frame()
        assert table.index.tolist() == ["y0", "y1", "y2", "y3"]
        assert table["n_predicted"].tolist() == dist[600:].mode().sum(axis=0).tolist()
        n_true = Y[600:].sum(axis=0)
        assert ((table["n_true_low"] <= n_true) & (n_true <= table["n_true_high"])).mean() >= 0.75
        assert table.equals(estimator.estimate_labels(dist[600:], dist[600:].mode()).to_frame())
        narrow = estimator.estimate_labels(dist[600:], level=0.5).to_frame()
        assert (narrow["f1_high"] < table["f1_high"]).all()

    def test_decisions_are_those_that_were_fitted(self, case):
        _, dist, Y = case
        best = ls.decide(dist, "jaccard").labelsets
        given = AccuracyEstimator("jaccard").fit(dist[:600], Y[:600], best[:600])
        with raises("predictions given as `Y_pred`"):
            given.estimate_labels(dist[600:])
        table = given.estimate_labels(dist[600:], best[600:]).to_frame()
        assert table["n_predicted"].tolist() == best[600:].sum(axis=0).tolist()

    def test_a_score_table_of_several_distributions_keeps_their_labels(self, case):
        estimator, dist, Y = case
        parts = [
            ls.ScoreTable.from_distribution(dist[rows], Y[rows], metrics=["jaccard"])
            for rows in (slice(0, 250), slice(250, 600))
        ]
        joined = ls.ScoreTable.concatenate(parts)
        found = AccuracyEstimator("jaccard").fit(joined)
        assert (
            found.estimate_labels(dist)
            .to_frame()
            .equals(estimator.estimate_labels(dist).to_frame())
        )

    def test_errors(self, case):
        estimator, dist, Y = case
        frame = score_frame(dist, Y)
        with raises("Unknown label metric 'jaccard'", "Known: micro-precision"):
            estimator.estimate(dist, metric="jaccard")
        with raises("`dist` must be a LabelsetDistribution to estimate", "got DataFrame"):
            estimator.estimate(frame, metric="micro-f1")
        from_table = AccuracyEstimator("jaccard").fit(frame)
        with raises("must be fitted to a LabelsetDistribution to estimate", "Call `fit(dist"):
            from_table.estimate(dist, metric="macro-f1")
        with raises("A batch must hold at least one row, got none."):
            estimator.estimate_labels(dist[:0])
        with raises("`level`"):
            estimator.estimate_labels(dist, level=2)
        with raises("`level`"):
            estimator.estimate(dist, metric="micro-f1", level=2)
        with raises("`dist` must have the 4 labels", "got 2."):
            estimator.estimate_labels(ls.IndependentLabels([[0.5, 0.4]]))

    def test_labels_of_other_names_are_refused(self):
        dist, Y = batch(100, 0, n_labels=2)
        named = ls.IndependentLabels(dist.marginals(), label_names=["sun", "sea"])
        swapped = ls.IndependentLabels(dist.marginals(), label_names=["sea", "sun"])
        estimator = AccuracyEstimator("jaccard").fit(named, Y)
        with raises("in their order, got 'sea' instead of 'sun' in column 0"):
            estimator.estimate_labels(swapped)
        assert estimator.estimate_labels(dist).to_frame().index.tolist() == [
            "y0",
            "y1",
        ]  # nameless: in order


class TestAwareClassifier:
    def test_it_estimates_its_labels(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(500, 4))
        Y = (X[:, :3] + 0.7 * rng.normal(size=(500, 3)) > 0).astype(int)
        model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), random_state=0, confidence=0.9)
        model.fit(X[:300], Y[:300])
        real = count_labels(Y[300:], model.predict(X[300:]))
        found = model.estimate(X[300:], metric="micro-f1")
        assert found.low <= real.of_batch("micro-f1", 1.0) <= found.high
        assert found.level == 0.9
        table = model.estimate_labels(X[300:]).to_frame()
        assert_allclose(table["f1"], real.of_labels(MEASURES["f1"], 1.0), atol=0.1)
        wide = model.estimate_labels(X[300:], level=0.99).to_frame()
        assert (wide["recall_low"] < table["recall_low"]).all()


def test_marginals_of_many_chained_labels_are_drawn():
    from simulated_population import random_dist

    dist = random_dist(3, n_labels=16, spread=1.0)
    drawn, exact = calibration_marginals(dist), dist.marginals()
    assert 0 < abs(drawn - exact).max() < 0.1
    few = random_dist(3, n_labels=4)
    np.testing.assert_array_equal(calibration_marginals(few), few.marginals())


@pytest.mark.filterwarnings("ignore::labelsure.ProbabilityWarning")
@pytest.mark.parametrize("clusters", [None, 2])
@pytest.mark.parametrize("n", [20, 60, 200])
@pytest.mark.parametrize("share_right", [1.0, 0.0])
def test_labels_that_were_all_right_or_all_wrong_have_narrow_intervals(share_right, n, clusters):
    """Perfect separation leaves no curvature: intervals from 0 to 1 were the answer."""
    rng = np.random.default_rng(0)
    dist = ls.IndependentLabels(np.where(rng.uniform(size=(n + 100, 3)) < 0.5, 0.995, 0.005))
    modes = dist.mode()
    Y = modes if share_right else 1 - modes
    codes = None if clusters is None else np.arange(n) // clusters
    estimator = ls.AccuracyEstimator("f1").fit(dist[:n], Y[:n], clusters=codes)
    for metric in ("micro-f1", "macro-f1", "macro-precision", "micro-recall"):
        found = estimator.estimate(dist[n:], metric=metric, shift="ignore")
        assert found.low <= share_right <= found.high + 1e-9
        assert found.low <= found.mean <= found.high
        assert found.high - found.low < 6 / n
    labels = estimator.estimate_labels(dist[n:])
    for name in ("n_true", "precision", "recall", "f1"):
        low, value, high = (getattr(labels, name + end) for end in ("_low", "", "_high"))
        assert (low <= value).all()
        assert (value <= high).all()
