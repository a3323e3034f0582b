"""Batches that are not like the labelled instances: the test, weights, refusals."""

import warnings

import numpy as np
import oracles_shift as oracles
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

import labelsure as ls
from labelsure.estimation._batch_estimates import Estimate
from labelsure.estimation._importance_weights import draw_counts, weigh_by_inputs
from labelsure.estimation._shift import Separator, ShiftTest, compare_views

NAMES = ["a", "b", "c"]


def make_view(values):
    return pd.DataFrame(values, columns=[f"column {j}" for j in range(values.shape[1])])


def make_batch(n_samples, rng, easy=0.5):
    """Distributions of which a share is easy, and the truth; the classifier is overconfident."""
    is_easy = rng.uniform(size=n_samples) < easy
    true = np.where(is_easy[:, None], 2.5, 0.4) * rng.normal(size=(n_samples, 3))
    Y = (rng.uniform(size=true.shape) < expit(true)).astype(int)
    return ls.IndependentLabels(expit(1.8 * true), label_names=NAMES), Y


RNG = np.random.default_rng(0)
DIST, Y = make_batch(1500, RNG)
ESTIMATOR = ls.AccuracyEstimator("jaccard").fit(DIST[:800], Y[:800])


class TestTheTest:
    def test_p_values_are_valid_without_a_shift(self):
        rng, p_values, found = np.random.default_rng(1), [], 0
        for _ in range(300):
            values = rng.normal(size=(260, 3)) ** 3
            test = compare_views(make_view(values[:160]), make_view(values[160:]))
            p_values.append(test.p_value)
            found += test.found
        for level in (0.05, 0.2, 0.5):
            limit = level + 3 * (level * (1 - level) / 300) ** 0.5
            assert np.mean(np.array(p_values) <= level) <= limit
        assert found <= 9  # 1 % is allowed

    def test_the_figures_are_those_of_loops(self):
        rng = np.random.default_rng(2)
        left, right = rng.normal(size=(80, 2)), rng.normal(0.5, 1, size=(60, 2)).round(1)
        test = compare_views(make_view(left), make_view(right), seed=5)
        rows, again = np.concatenate([left, right]), np.random.default_rng(5)
        found = oracles.squared_distance(rows, [i >= 80 for i in range(140)])
        by_chance = []
        for _ in range(199):
            part = set(again.permutation(140)[:60].tolist())
            by_chance.append(oracles.squared_distance(rows, [i in part for i in range(140)]))
        assert test.p_value == (1 + sum(value >= found for value in by_chance)) / 200
        distance = (found - np.mean(by_chance)) ** 0.5
        assert_allclose(test.auc, norm.cdf(distance / 2**0.5), rtol=1e-6)
        for j in range(2):
            row = test.moved.loc[f"column {j}"]
            assert_allclose(row["distance"], oracles.largest_gap(left[:, j], right[:, j]))
            assert_allclose(row["reference"], left[:, j].mean(), rtol=1e-6)
        assert (test.n_reference, test.n_batch) == (80, 60)

    def test_the_separator_is_a_penalised_logistic_regression(self):
        rng = np.random.default_rng(3)
        left, right = rng.normal(size=(200, 2)), rng.normal(0.7, 2, size=(100, 2))
        found = Separator.fit(left, right)
        rows = found.design(np.concatenate([left, right]))
        gaps = np.repeat([0, 1], [200, 100]) - expit(rows @ found.coefficients)
        pull = np.append(found.coefficients[:-1], 0) * Separator.PENALTY
        assert_allclose(gaps @ rows, pull, atol=1e-3)

    def test_a_spread_that_has_changed_is_seen(self):
        rng = np.random.default_rng(4)
        test = compare_views(
            make_view(rng.normal(size=(400, 1))), make_view(rng.normal(0, 3, size=(400, 1)))
        )
        assert test.found

    def test_a_tiny_shift_in_a_huge_batch_is_no_warning(self):
        rng = np.random.default_rng(5)
        left, right = rng.normal(size=(2000, 1)), rng.normal(0.15, 1, size=(9000, 1))
        test = compare_views(make_view(left), make_view(right))
        assert test.p_value < 0.01
        assert not test.found
        larger = make_view(rng.normal(0.25, 1, size=(9000, 1)))
        assert compare_views(make_view(left), larger).found
        assert (test.n_reference, test.n_batch) == (2000, 2000)
        assert "too little to matter" in str(test)
        assert "too small to matter" in test.brief

    def test_the_same_every_time(self):
        once, again = (ls.shift_test(DIST[:700], DIST[700:]) for _ in range(2))
        assert (once.auc, once.p_value) == (again.auc, again.p_value)
        other = ls.shift_test(DIST[:700], DIST[700:], random_state=1)
        assert other.p_value != once.p_value

    def test_what_moved_is_named(self):
        P = DIST.marginals()[800:].copy()
        P[:, 1] = np.sqrt(P[:, 1])
        moved = ls.IndependentLabels(P, label_names=NAMES)
        test = ls.shift_test(ESTIMATOR, moved)
        assert test.found
        assert test.moved.index[0] == "P(b)"
        assert str(test).startswith("The batch differs from the reference (AUC 0.")
        assert "Means that changed most: P(b) from 0." in str(test)
        assert "P(b)" in test._repr_html_()
        with pytest.warns(ls.ShiftWarning, match=r"changed most: P\(b\)") as caught:
            found = ESTIMATOR.estimate(moved)
        assert caught[0].filename == __file__
        assert found.shift.auc == test.auc
        assert ESTIMATOR.estimate(moved, shift="ignore").shift is None

    def test_no_shift_no_warning(self):
        found = ESTIMATOR.estimate(DIST[800:])
        assert not found.shift.found
        assert "No sign" in str(found.shift)
        assert found == ESTIMATOR.estimate(DIST[800:], shift="ignore")

    def test_few_rows_say_nothing(self):
        assert ESTIMATOR.estimate(DIST[800:829]).shift is None
        assert ESTIMATOR.estimate(DIST[800:830]).shift is not None
        with pytest.raises(ls.InputError, match=r"at least 30 rows each .* got 800 and 29"):
            ls.shift_test(ESTIMATOR, DIST[800:829])

    def test_measures_of_labels_are_tested_too(self):
        harder, _ = make_batch(300, np.random.default_rng(6), easy=0.0)
        with pytest.warns(ls.ShiftWarning):
            assert ESTIMATOR.estimate(harder, metric="micro-f1").shift.found
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ESTIMATOR.estimate(harder, metric="micro-f1", shift="ignore")

    def test_tables(self):
        table = ls.ScoreTable.from_distribution(DIST[:800], Y[:800]).to_frame()
        by_table = ls.AccuracyEstimator("jaccard").fit(table)
        assert "n_predicted" in by_table.estimate(DIST[800:]).shift.moved.index
        assert "P(a)" not in by_table.estimate(DIST[800:]).shift.moved.index


class TestWeights:
    def test_the_estimate_is_that_of_the_loops(self):
        harder, _ = make_batch(400, np.random.default_rng(8), easy=0.2)
        weights = weigh_by_inputs(ESTIMATOR._calibration_view(), ESTIMATOR.summarise(harder).view)
        estimated, accuracy = ESTIMATOR.compare_estimates()
        found = ESTIMATOR.estimate(harder, shift="weighted")
        expected = oracles.weighted_mean(
            ESTIMATOR.predict(harder), weights.values, accuracy, estimated
        )
        assert_allclose(found.mean, expected)
        assert_allclose(found.effective_size, oracles.effective_size(weights.values))
        assert "covariate shift only" in found.basis
        assert found == ESTIMATOR.estimate(harder, shift="weighted")

    def test_weights_are_the_odds_of_a_logistic_regression(self):
        harder, _ = make_batch(300, np.random.default_rng(9), easy=0.2)
        known, view = ESTIMATOR._calibration_view(), ESTIMATOR.summarise(harder).view
        rows = np.concatenate([known.values, view.values]).astype(float)
        scores = np.clip((rows - rows.mean(axis=0)) / rows.std(axis=0), -3, 3)
        columns = np.hstack([scores, scores**2 - 1])
        model = LogisticRegression(tol=1e-8, max_iter=10_000)
        model.fit(columns, np.repeat([0, 1], [800, 300]))
        expected = np.exp(model.decision_function(columns[:800])) * 800 / 300
        assert_allclose(weigh_by_inputs(known, view).values, np.minimum(expected, 30), rtol=1e-2)

    def test_replicates_are_near_those_of_fits_to_resampled_instances(self):
        harder, _ = make_batch(300, np.random.default_rng(9), easy=0.2)
        known, view = ESTIMATOR._calibration_view(), ESTIMATOR.summarise(harder).view
        weights = weigh_by_inputs(known, view)
        left, right = draw_counts(800, 300)
        reference, batch = (part.values.astype(float) for part in (known, view))
        for b in range(4):
            chosen = [np.repeat(np.arange(len(c)), c.astype(int)) for c in (left[b], right[b])]
            fitted = Separator.fit(reference[chosen[0]], batch[chosen[1]])
            expected = fitted.log_odds(reference) + np.log(800 / 300)
            used = left[b] > 0
            found = np.log(weights.replicates[b, used] / left[b, used])
            moved = expected[used] - np.log(weights.values[used])
            assert np.std(found - expected[used]) < 0.4 * np.std(moved)

    def test_covers_under_covariate_shift(self):
        covered, plain, errors = [], [], []
        for seed in range(60):
            rng = np.random.default_rng(100 + seed)
            dist, truth = make_batch(500, rng, easy=0.6)
            # It knows the number of labels alone, and is wrong for batches of another mixture.
            estimator = ls.AccuracyEstimator("jaccard", features="n_predicted")
            estimator.fit(dist, truth)
            batch, answers = make_batch(300, rng, easy=0.2)
            goal = ls.accuracy(answers, batch.mode(), "jaccard").mean()
            found = estimator.estimate(batch, shift="weighted")
            covered.append(found.low <= goal <= found.high)
            errors.append(found.mean - goal)
            usual = estimator.estimate(batch, shift="ignore")
            plain.append(usual.low <= goal <= usual.high)
        assert np.mean(covered) >= 0.88
        assert abs(np.mean(errors)) < 0.015
        assert np.mean(plain) < 0.5

    def test_refuses_where_nothing_is_like_the_batch(self):
        far = ls.IndependentLabels(np.full((200, 3), 0.999), label_names=NAMES)
        with pytest.raises(ls.errors.NotEstimableError, match="hardly"):
            ESTIMATOR.estimate(far, shift="weighted")
        easy, truth = make_batch(60, np.random.default_rng(10))
        few = ls.AccuracyEstimator("jaccard").fit(easy[:45], truth[:45])
        with pytest.raises(ls.errors.NotEstimableError, match="must be at least 50, got") as caught:
            few.estimate(DIST[800:], shift="weighted")
        assert caught.value.effective_size < 45
        with pytest.raises(
            ls.errors.NotEstimableError, match=r"at least 30 rows to be compared .* got 20"
        ):
            ESTIMATOR.estimate(DIST[:20], shift="weighted")

    def test_other_mistakes(self):
        with pytest.raises(ls.errors.UnknownNameError, match="weigted"):
            ESTIMATOR.estimate(DIST, shift="weigted")
        with pytest.raises(ls.InputError, match="`metric` must be a mean over rows with shift"):
            ESTIMATOR.estimate(DIST, shift="weighted", metric="micro-f1")

    def test_predictions_of_folds_are_no_reference(self):
        rng = np.random.default_rng(11)
        X = rng.normal(size=(600, 4))
        labels = (X[:, :3] + rng.normal(size=(600, 3)) > 0).astype(int)
        model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), cv=3, random_state=0)
        model.fit(X[:400], labels[:400])
        assert model.estimate(X[400:] + 9).shift is None  # whatever has moved
        with pytest.raises(ls.InputError, match="got one of cross-fitting"):
            ls.shift_test(model, X[400:])
        assert model.estimate(X[400:], shift="weighted").effective_size > 200
        held_out = model.set_params(cv=0.5).fit(X[:400], labels[:400])
        assert len(held_out.estimate(X[400:]).shift.moved) == 11


def test_an_estimator_that_was_saved_compares_as_before(tmp_path):
    harder, _ = make_batch(300, np.random.default_rng(16), easy=0.2)
    ESTIMATOR.save(tmp_path / "estimator.labelsure")
    loaded = ls.load(tmp_path / "estimator.labelsure")
    expected = ESTIMATOR.estimate(harder, shift="weighted")
    assert loaded.estimate(harder, shift="weighted") == expected
    assert (tmp_path / "estimator.labelsure").stat().st_size < 120_000


def test_the_estimates_that_are_kept_are_by_models_of_others():
    folds = np.random.default_rng(0).permutation(np.arange(800) % 5)
    expected = np.empty(800)
    for fold in range(5):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        others = ls.AccuracyEstimator("jaccard").fit(DIST[train], Y[train])
        expected[test] = others.predict(DIST[test])
    assert_allclose(ESTIMATOR.compare_estimates()[0], expected, rtol=1e-8)


def test_at_most_2000_instances_and_64_labels_are_compared():
    rng = np.random.default_rng(17)
    P = rng.uniform(0.05, 0.2, size=(2300, 70))
    P[:, 3] = 0.01
    dist = ls.IndependentLabels(P, label_names=[f"y{j}" for j in range(70)])
    truth = (rng.uniform(size=P.shape) < P).astype(int)
    estimator = ls.AccuracyEstimator("hamming").fit(dist, truth)
    view = estimator._calibration_view()
    assert (len(estimator.calibration_), len(view)) == (2300, 2000)
    probabilities = [name for name in view.columns if name.startswith("P(")]
    assert len(probabilities) == 64
    assert "P(y3)" not in probabilities
    assert (view.dtypes == np.float32).all()


@pytest.mark.parametrize(
    ("p_value", "auc", "n_rows", "n_batch", "expected"),
    [
        (0.005, 0.56, 300, 50, "shift detected, AUC 0.56"),
        (0.005, 0.548, 300, 50, "shift too small to matter, AUC 0.548"),
        (0.2, 0.56, 300, 300, "no shift detected"),
        (0.2, 0.5, 300, 299, "no shift detected (little power: 299 rows against 300)"),
        (0.2, 0.5, 150, 2000, "no shift detected (little power: 2,000 rows against 150)"),
    ],
)
def test_an_estimate_says_what_the_test_shows(p_value, auc, n_rows, n_batch, expected):
    test = ShiftTest(auc, p_value, n_rows, n_batch, pd.DataFrame())
    assert test.brief == expected
    said = Estimate(0.5, 0.4, 0.6, n_batch, 0.95, 0.1, shift=test)
    assert str(said).endswith(f"; {expected}).")
    assert ("little power: 299" in str(test)) == ("little power: 299" in expected)
