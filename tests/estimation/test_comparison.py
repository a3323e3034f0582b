"""The difference of two models on one batch: against a loop, pairing, coverage."""

import numpy as np
import oracles_estimation as oracles
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression

import labelsure as ls
from labelsure.estimation._comparison import Comparison, Side


def draw(n, seed):
    """Two models of the same labels, the second blind to some of what the first sees."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, 4)) - 0.5
    Y = (rng.random(logits.shape) < expit(logits)).astype(int)
    blurred = logits + 1.2 * rng.normal(size=logits.shape)
    return ls.IndependentLabels(expit(logits)), ls.IndependentLabels(expit(0.6 * blurred)), Y


FIRST, SECOND, Y = draw(1100, 0)
KNOWN, OTHERS, BATCH = slice(0, 300), slice(300, 600), slice(600, 1100)


def fit(dist, rows, metric="f1"):
    return ls.AccuracyEstimator(metric).fit(dist[rows], Y[rows])


def compare(first, second, level=0.95):
    return Comparison(Side(first, FIRST[BATCH], None), Side(second, SECOND[BATCH], None), level)


def test_the_paired_interval_is_that_of_the_loop():
    first, second = fit(FIRST, KNOWN), fit(SECOND, KNOWN)
    found = compare(first, second, 0.9).by_calibration("ignore")
    estimated, accuracy = (
        list(zip(*pair, strict=True))
        for pair in zip(first.compare_estimates(), second.compare_estimates(), strict=True)
    )
    inflation = max(
        judge.fit_inflation(judge.estimate_rows(dist[BATCH]))
        for judge, dist in ((first, FIRST), (second, SECOND))
    )
    assert 1 <= inflation < 1.5
    quantile = student.ppf(0.95, 299)
    margin = oracles.paired_margin(accuracy, estimated, inflation, 500, quantile)
    mean = first.predict(FIRST[BATCH]).mean() - second.predict(SECOND[BATCH]).mean()
    assert_allclose([found.mean, found.low, found.high], [mean, mean - margin, mean + margin])
    assert str(found).startswith("Difference in mean F1 +0.")
    assert "paired on 300 held-out rows" in str(found)


@pytest.mark.jit_only
@pytest.mark.parametrize("metric", ["f1", pytest.param("exact", marks=pytest.mark.slow)])
def test_intervals_cover_and_pairs_are_narrower(metric):
    covered, widths, n_repeats = np.zeros(3), np.zeros(3), 60
    for repeat in range(n_repeats):
        first, second, truth = draw(900, 10 + repeat)
        values = [ls.accuracy(truth, dist.mode(), metric) for dist in (first, second)]
        judges = [
            ls.AccuracyEstimator(metric).fit(dist[rows], truth[rows])
            for dist, rows in ((first, KNOWN), (second, KNOWN), (second, OTHERS))
        ]
        true = (values[0] - values[1])[600:].mean()
        sides = [
            Side(j, d[600:], None) for j, d in zip(judges, (first, second, second), strict=True)
        ]
        rows = np.random.default_rng(repeat).choice(300, 60, replace=False)
        paired = Comparison(sides[0], sides[1], 0.9)
        found = (
            paired.by_calibration("ignore"),
            Comparison(sides[0], sides[2], 0.9).by_calibration("ignore"),
            paired.by_labels(truth[600:][rows], rows, "pseudo-rows"),
        )
        covered += [one.low <= true <= one.high for one in found]
        widths += [one.high - one.low for one in found]
    assert (covered / n_repeats >= 0.83).all()  # of .9, by 60 batches
    assert widths[0] < 0.85 * widths[1]


def test_labelled_rows_give_the_difference_of_the_batch():
    pair = compare(fit(FIRST, KNOWN), fit(SECOND, KNOWN))
    values = [ls.accuracy(Y[BATCH], dist[BATCH].mode(), "f1").mean() for dist in (FIRST, SECOND)]
    for interval in ("pseudo-rows", "betting"):
        found = pair.by_labels(Y[BATCH], np.arange(500), interval)
        assert_allclose(found.mean, values[0] - values[1], atol=2e-3)
        assert "500 rows labelled" in str(found)


def test_the_other_way_round_it_is_the_negative():
    first, second = fit(FIRST, KNOWN), fit(SECOND, KNOWN)
    there = compare(first, second)
    back = Comparison(there.second, there.first, 0.95)
    rows = np.arange(0, 500, 5)
    for left, right in (
        (there.by_calibration("test"), back.by_calibration("test")),
        (
            there.by_labels(Y[BATCH][rows], rows, "pseudo-rows"),
            back.by_labels(Y[BATCH][rows], rows, "pseudo-rows"),
        ),
    ):
        assert_allclose([left.mean, left.low, left.high], [-right.mean, -right.high, -right.low])


def test_rows_are_paired_as_far_as_they_are_the_same():
    first = fit(FIRST, KNOWN)
    for rows, n_shared in (
        (KNOWN, 300),
        (slice(0, 150), 150),  # e.g. a policy has the others
        (slice(0, 450), 300),
        (slice(0, 29), None),
        (OTHERS, None),
        (slice(1, 301), None),
    ):
        shared = compare(first, fit(SECOND, rows)).shared
        assert (None if shared is None else len(shared.accuracy)) == n_shared
    unpaired = compare(first, fit(SECOND, OTHERS)).by_calibration("ignore")
    assert "calibrated on different rows, unpaired" in str(unpaired)


def test_equal_models_are_not_proved_to_be_equal():
    first = fit(FIRST, KNOWN)
    found = Comparison(*[Side(first, FIRST[BATCH], None)] * 2, 0.95).by_calibration("ignore")
    assert found.mean == 0
    assert 0.003 < found.high == -found.low < 0.02


class TestAwareClassifier:
    DATA = ls.make_labelsets(900, n_labels=4, random_state=3)[0]
    X, LABELS = np.asarray(DATA.X), np.asarray(DATA.Y)

    def fit(self, C=1.0, **settings):
        learner = ls.BinaryRelevance(LogisticRegression(C=C))
        settings = {"metric": "f1", "random_state": 0} | settings
        return ls.AccuracyAwareClassifier(learner, **settings).fit(self.X[:500], self.LABELS[:500])

    def test_models_of_the_same_rows_are_paired_also_when_loaded(self, tmp_path):
        model, other = self.fit(), self.fit(0.01)
        found = model.compare(other, self.X[500:])
        assert "paired on 200 held-out rows; " in str(found)
        other.save(tmp_path / "other.labelsure")
        assert model.compare(ls.load(tmp_path / "other.labelsure"), self.X[500:]) == found
        assert "unpaired" in str(model.compare(self.fit(0.01, random_state=1), self.X[500:]))
        half = self.fit(0.01, target=0.3)
        assert "paired on 100 held-out rows" in str(model.compare(half, self.X[500:]))
        exact = model.compare(self.fit(0.01, metric="exact"), self.X[500:], metric="exact")
        assert exact.quantity == "difference in mean exact match"
        rows = model.draw_audit(self.X[500:], 40, random_state=0)
        labelled = model.compare(other, self.X[500:], rows=rows, Y_true=self.LABELS[500:][rows])
        assert labelled.n_labelled == 40

    def test_cross_fitted_models_say_which_models_these_are(self):
        model, other = self.fit(cv=5), self.fit(0.01, cv=5)
        found = model.compare(other, self.X[500:])
        assert "paired on 500 out-of-fold rows" in str(found)
        assert "for models trained on 80% of the rows" in str(found)
        assert "unpaired" in str(model.compare(self.fit(), self.X[500:], shift="ignore"))

    def test_refusals(self):
        model = self.fit()
        X = self.X[500:]
        fewer = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), "f1")
        fewer.fit(self.X[:500], self.LABELS[:500, :3])
        for other, settings, message in (
            (model, {"metric": "micro-f1"}, "`metric` must be a mean over rows"),
            (model, {"shift": "weighted"}, '`shift` must be "test" or "ignore"'),
            (fewer, {}, "`other` must have the labels of this model"),
            (self.fit(empty=0.0), {}, "`other` must have empty=1, got 0"),
        ):
            with pytest.raises(ls.InputError, match=message):
                model.compare(other, X, **settings)
