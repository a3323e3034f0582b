"""Batches that are not like the labelled instances: the test, weights, tilts, refusals."""

import warnings

import numpy as np
import oracles_shift as oracles
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

import labelsure as ls
from labelsure.estimation._label_tilts import (
    PENALTIES,
    calibrate_logits,
    choose_penalty,
    fit_factors,
    weigh_by_labels,
)
from labelsure.estimation._label_tilts import _replicate as replicate_by_labels
from labelsure.estimation._shift_test import Separator, View, compare_views
from labelsure.estimation._weighted_estimates import draw_counts, weigh_by_inputs

NAMES = ["a", "b", "c"]


def make_view(values):
    return View(tuple(f"column {j}" for j in range(values.shape[1])), values)


def make_batch(n_samples, rng, easy=0.5):
    """Distributions of which a share is easy, and the truth; the classifier is overconfident."""
    is_easy = rng.uniform(size=n_samples) < easy
    true = np.where(is_easy[:, None], 2.5, 0.4) * rng.normal(size=(n_samples, 3))
    Y = (rng.uniform(size=true.shape) < expit(true)).astype(int)
    return ls.IndependentLabels(expit(1.8 * true), label_names=NAMES), Y


RNG = np.random.default_rng(0)
DIST, Y = make_batch(1500, RNG)
ESTIMATOR = ls.AccuracyEstimator("jaccard", penalty=0.01).fit(DIST[:800], Y[:800])


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
        again = np.random.default_rng(5)
        halves = [values[again.permutation(len(values))] for values in (left, right)]
        learned = Separator.fit(halves[0][:40], halves[1][:30], balanced=True)
        judged = learned.log_odds(halves[0][40:]), learned.log_odds(halves[1][30:])
        assert_allclose(test.auc, oracles.auc(*judged), rtol=1e-6)
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
        assert "but little" in str(test)

    def test_the_same_every_time(self):
        once, again = (ls.shift_test(DIST[:700], DIST[700:]) for _ in range(2))
        assert (once.auc, once.p_value) == (again.auc, again.p_value)
        other = ls.shift_test(DIST[:700], DIST[700:], random_state=1)
        assert other.auc != once.auc

    def test_what_moved_is_named(self):
        P = DIST.marginals()[800:].copy()
        P[:, 1] = np.sqrt(P[:, 1])
        moved = ls.IndependentLabels(P, label_names=NAMES)
        test = ls.shift_test(ESTIMATOR, moved)
        assert test.found
        assert test.moved.index[0] == "P(b)"
        assert str(test).startswith("The batch is not like the reference (AUC 0.")
        assert "Moved most: P(b) (mean 0." in str(test)
        assert "P(b)" in test._repr_html_()
        with pytest.warns(ls.ShiftWarning, match=r"Moved most: P\(b\)") as caught:
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
        with pytest.raises(ls.InputError, match=r"at least 30 instances each .* got 800 and 29"):
            ls.shift_test(ESTIMATOR, DIST[800:829])

    def test_measures_of_labels_are_tested_too(self):
        harder, _ = make_batch(300, np.random.default_rng(6), easy=0.0)
        with pytest.warns(ls.ShiftWarning):
            assert ESTIMATOR.estimate(harder, metric="micro-f1").shift.found
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ESTIMATOR.estimate(harder, metric="micro-f1", shift="ignore")

    def test_tables_profiles_and_groups(self):
        table = ls.ScoreTable.from_distribution(DIST[:800], Y[:800]).to_frame()
        by_table = ls.AccuracyEstimator("jaccard", penalty=0.01).fit(table)
        assert "n_predicted" in by_table.estimate(DIST[800:]).shift.moved.index
        assert "P(a)" not in by_table.estimate(DIST[800:]).shift.moved.index
        simple = ls.AccuracyEstimator("jaccard", features="HP", penalty=0.01)
        simple.fit(DIST[:800], Y[:800])
        found = simple.estimate(DIST[800:].profile()).shift
        assert set(found.moved.index) == {"HP", "TG", "SE", "CE", "ME", "CS"}
        groups = np.repeat(["x", "y"], 400)
        grouped = ls.AccuracyEstimator("jaccard", penalty=0.01)
        grouped.fit(DIST[:800], Y[:800], slope_groups=groups)
        assert grouped.estimate(DIST[800:], slope_groups=["x"] * 700).shift is None

    def test_features_are_compared_where_they_are_given(self):
        rng = np.random.default_rng(7)
        X = rng.normal(size=(1500, 2))
        X[900:, 1] += 2
        found = ls.shift_test(DIST[:900], DIST[900:], X_reference=X[:900], X_batch=X[900:])
        assert found.found
        assert found.moved.index[0] == "X[1]"
        assert not ls.shift_test(DIST[:900], DIST[900:]).found
        with pytest.raises(ls.InputError, match="must be given together"):
            ls.shift_test(DIST[:900], DIST[900:], X_batch=X[900:])
        with pytest.raises(ls.InputError, match="a row of finite numbers for each of the 600"):
            ls.shift_test(DIST[:900], DIST[900:], X_reference=X[:900], X_batch=X)
        with pytest.raises(ls.InputError, match="keeps no features"):
            ls.shift_test(ESTIMATOR, DIST[900:], X_reference=X[:900], X_batch=X[900:])

    @pytest.mark.parametrize(("scale", "offset"), [(1e-7, 0), (1, 5e6), (1e9, -1e10), (1e-12, 0)])
    def test_neither_scale_nor_offset_of_features_matters(self, scale, offset):
        X = np.random.default_rng(7).normal(size=(1500, 2))
        X[900:, 1] += 2
        plain, found = (
            ls.shift_test(DIST[:900], DIST[900:], X_reference=some[:900], X_batch=some[900:])
            for some in (X, scale * X + offset)
        )
        assert found.auc == pytest.approx(plain.auc, abs=2e-3)
        assert found.auc > 0.85
        means = found.moved.loc[["X[0]", "X[1]"], ["reference", "batch"]]
        expected = [
            (scale * X + offset)[rows].mean(axis=0) for rows in (slice(900), slice(900, None))
        ]
        assert_allclose(means, np.transpose(expected), rtol=1e-9, atol=1e-9 * scale)

    def test_constant_features_say_nothing(self):
        X = np.full((1500, 1), 0.1) + np.random.default_rng(0).choice([0, 1e-17], size=(1500, 1))
        found = ls.shift_test(DIST[:900], DIST[900:], X_reference=X[:900], X_batch=X[900:])
        assert found.auc == pytest.approx(ls.shift_test(DIST[:900], DIST[900:]).auc)

    def test_columns_of_features_are_aligned_or_refused(self):
        X = np.random.default_rng(7).normal(size=(1500, 3)) * [1, 10, 100]
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        usual, batch = frame[:900], frame[900:]
        plain = ls.shift_test(DIST[:900], DIST[900:], X_reference=usual, X_batch=batch)
        turned = ls.shift_test(
            DIST[:900], DIST[900:], X_reference=usual, X_batch=batch[["c", "a", "b"]]
        )
        pd.testing.assert_frame_equal(plain.moved, turned.moved)
        assert plain.auc == turned.auc
        for other, message in (
            (batch.rename(columns={"a": "A"}), "'a' in the reference alone and 'A' in the batch"),
            (batch.drop(columns="b"), "'b' in the reference alone and none in the batch alone"),
            (batch.to_numpy(), "both be DataFrames or both be arrays, .*DataFrame and ndarray"),
            (batch.assign(a="x"), "`X_batch` must hold numbers"),
        ):
            with pytest.raises(ls.InputError, match=message):
                ls.shift_test(DIST[:900], DIST[900:], X_reference=usual, X_batch=other)
        with pytest.raises(ls.InputError, match="same columns, got 3 and 2"):
            ls.shift_test(DIST[:900], DIST[900:], X_reference=X[:900], X_batch=X[900:, :2])
        for some, message in (
            (csr_array(X), "`X_reference` must be a dense array of features, got a sparse csr"),
            (np.full((1500, 1), "word"), "`X_reference` must hold numbers"),
            ([["word"], 3], "`X_reference` must hold numbers"),
        ):
            with pytest.raises(ls.InputError, match=message):
                ls.shift_test(DIST[:900], DIST[900:], X_reference=some[:900], X_batch=some[900:])


class TestWeights:
    def test_the_estimate_is_that_of_the_loops(self):
        harder, _ = make_batch(400, np.random.default_rng(8), easy=0.2)
        sample = ESTIMATOR.calibration_sample_
        weights = weigh_by_inputs(sample, ESTIMATOR.view(harder))
        found = ESTIMATOR.estimate(harder, shift="weighted")
        expected = oracles.weighted_mean(
            ESTIMATOR.predict(harder), weights.values, sample.accuracy, sample.estimated
        )
        assert_allclose(found.mean, expected)
        assert_allclose(found.effective_size, oracles.effective_size(weights.values))
        assert "as before" in found.basis
        assert found == ESTIMATOR.estimate(harder, shift="weighted")

    def test_weights_are_the_odds_of_a_logistic_regression(self):
        harder, _ = make_batch(300, np.random.default_rng(9), easy=0.2)
        sample, view = ESTIMATOR.calibration_sample_, ESTIMATOR.view(harder)
        rows = np.concatenate([sample.view.values, view.values]).astype(float)
        scores = np.clip((rows - rows.mean(axis=0)) / rows.std(axis=0), -3, 3)
        columns = np.hstack([scores, scores**2 - 1])
        model = LogisticRegression(tol=1e-8, max_iter=10_000)
        model.fit(columns, np.repeat([0, 1], [800, 300]))
        expected = np.exp(model.decision_function(columns[:800])) * 800 / 300
        assert_allclose(weigh_by_inputs(sample, view).values, np.minimum(expected, 30), rtol=1e-2)

    def test_replicates_are_near_those_of_fits_to_resampled_instances(self):
        harder, _ = make_batch(300, np.random.default_rng(9), easy=0.2)
        sample, view = ESTIMATOR.calibration_sample_, ESTIMATOR.view(harder)
        weights = weigh_by_inputs(sample, view)
        left, right = draw_counts(800, 300)
        reference, batch = (part.values.astype(float) for part in (sample.view, view))
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
            estimator = ls.AccuracyEstimator("jaccard", features="n_predicted", penalty=0.01)
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
        with pytest.raises(ls.NotEstimableError, match="of kinds that are hardly among them"):
            ESTIMATOR.estimate(far, shift="weighted")
        easy, truth = make_batch(60, np.random.default_rng(10))
        few = ls.AccuracyEstimator("jaccard", penalty=0.1).fit(easy[:45], truth[:45])
        with pytest.raises(ls.NotEstimableError, match="at least 50 are needed") as caught:
            few.estimate(DIST[800:], shift="weighted")
        assert caught.value.effective_size < 45
        with pytest.raises(ls.NotEstimableError, match=r"at least 30 instances to see .* got 20"):
            ESTIMATOR.estimate(DIST[:20], shift="weighted")

    def test_other_mistakes(self):
        with pytest.raises(ls.UnknownNameError, match=r"Unknown shift 'weigted'.*'weighted'"):
            ESTIMATOR.estimate(DIST, shift="weigted")
        with pytest.raises(ls.InputError, match="fitted to labelled instances, without groups"):
            ls.AccuracyEstimator(model="plugin").estimate(DIST, shift="weighted")
        with pytest.raises(ls.InputError, match="`metric` must be None"):
            ESTIMATOR.estimate(DIST, shift="weighted", metric="micro-f1")
        with pytest.raises(ls.InputError, match="`view` must be given for shift='labels'"):
            ESTIMATOR.estimate_sums(ESTIMATOR.sum_up(DIST), shift="labels")

    def test_predictions_of_folds_are_no_reference(self):
        rng = np.random.default_rng(11)
        X = rng.normal(size=(600, 4))
        labels = (X[:, :3] + rng.normal(size=(600, 3)) > 0).astype(int)
        model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), cv=3, random_state=0)
        model.fit(X[:400], labels[:400])
        assert model.estimate(X[400:] + 9).shift is None  # whatever has moved
        with pytest.raises(ls.InputError, match="got one of cross-fitting"):
            ls.shift_test(model, X[400:])
        assert model.estimate(X[400:], shift="labels").effective_size > 200
        held_out = model.set_params(cv=0.5).fit(X[:400], labels[:400])
        assert len(held_out.estimate(X[400:]).shift.moved) == 10


def tilted_batch(n_samples, rng, tilt):
    """Instances that are kept the more often the more labels with a tilt they have."""
    true = rng.normal([0.5, -1.5, -0.5], 1.2, size=(20 * n_samples, 3))
    true[:, 2] += 0.8 * true[:, 0]
    labels = (rng.uniform(size=true.shape) < expit(true)).astype(int)
    chance = np.exp(labels @ tilt)
    kept = np.flatnonzero(rng.uniform(size=len(true)) < chance / chance.max())[:n_samples]
    assert len(kept) == n_samples
    return ls.IndependentLabels(expit(1.3 * true[kept]), label_names=NAMES), labels[kept]


TILT = np.array([-1.0, 1.5, 0.0])


class TestTilts:
    def test_the_factor_of_one_label_is_what_expectation_maximisation_finds(self):
        rng = np.random.default_rng(12)
        reference, p = rng.beta(2, 2, size=(200, 1)), rng.beta(2, 3, size=(150, 1))
        before = reference.mean()
        now = expit(logit(before) + fit_factors(logit(p), logit(reference), 1e-9))
        assert_allclose(now, oracles.frequency_by_em(p[:, 0], before), atol=2e-4)

    def test_factors_are_the_most_probable_ones_with_their_penalty(self):
        rng = np.random.default_rng(13)
        reference, p = rng.beta(1, 2, size=(90, 2)), rng.beta(1, 1, size=(40, 2))
        at = fit_factors(logit(p), logit(reference), 1.5)
        best = oracles.tilt_likelihood(p, reference, at, 1.5)
        for step in ([0.01, 0], [-0.01, 0], [0, 0.01], [0, -0.01]):
            assert oracles.tilt_likelihood(p, reference, at + step, 1.5) < best

    @pytest.mark.parametrize(("move", "expected"), [(0.0, 1024.0), (0.4, 4.0), (1.0, 1.0)])
    def test_the_penalty_is_the_one_under_which_the_batch_is_most_probable(self, move, expected):
        rng = np.random.default_rng(19)
        logits = rng.normal(size=(150, 1)) * 1.5
        batch = logits[::2] + move
        evidence = [
            oracles.tilt_evidence(expit(batch), expit(logits), penalty) for penalty in PENALTIES
        ]
        assert choose_penalty(batch, logits) == PENALTIES[int(np.argmax(evidence))] == expected

    def test_factors_of_a_batch_that_has_not_changed_stay_near_one(self):
        sizes = []
        for seed in range(10):
            dist, truth = tilted_batch(300, np.random.default_rng(400 + seed), np.zeros(3))
            estimator = ls.AccuracyEstimator("jaccard", penalty=0.01).fit(dist[:200], truth[:200])
            found = estimator.estimate(dist[200:], shift="labels")
            usual = estimator.estimate(dist[200:], shift="ignore")
            sizes.append(found.effective_size)
            assert found.high - found.low < 1.15 * (usual.high - usual.low)
        assert np.median(sizes) > 195

    def test_replicates_are_near_those_of_fits_to_resampled_instances(self):
        rng = np.random.default_rng(18)
        dist, truth = tilted_batch(600, rng, np.zeros(3))
        batch, _ = tilted_batch(400, rng, TILT)
        estimator = ls.AccuracyEstimator("jaccard", penalty=0.01).fit(dist, truth)
        sample, view = estimator.calibration_sample_, estimator.view(batch)
        weights, _ = weigh_by_labels(sample, view)
        left, right = draw_counts(600, 400)
        columns = [f"P({name})" for name in NAMES]
        logits = [logit(part.columns(columns)) for part in (sample.view, view)]
        gaps, moves = [], []
        for b in range(12):
            chosen = [np.repeat(np.arange(len(c)), c.astype(int)) for c in (left[b], right[b])]
            here, there = logits[0][chosen[0]], logits[1][chosen[1]]
            slope, offsets = calibrate_logits(here, truth[chosen[0]].astype(float))
            there, here = slope * there + offsets, slope * here + offsets
            factors = fit_factors(there, here, choose_penalty(there, here))
            scores = truth @ factors
            used = left[b] > 0
            found = np.log(weights.replicates[b, used] / left[b, used])
            usual = np.log(weights.values[used])
            gaps.append(np.std(found - scores[used]))
            moves.append(np.std(usual - scores[used]))
        assert np.mean(gaps) < 0.5 * np.mean(moves)

    @pytest.mark.parametrize("penalty", [2.0, 256.0])
    def test_factors_scatter_as_widely_as_they_may_lie(self, penalty):
        """By the inverse of the curvature, of which the penalty is a part."""
        rng = np.random.default_rng(21)
        reference, batch = rng.normal(size=(150, 2)), rng.normal(size=(100, 2))
        truth = np.zeros((150, 2))
        truth[:50, 0], truth[50:100, 1] = 1, 1
        at = fit_factors(batch, reference, penalty)
        replicates = replicate_by_labels(reference, batch, truth, at, penalty)
        left, _ = draw_counts(150, 100)
        weights = [
            [
                replicates[b, rows][left[b, rows] > 0][0] / left[b, rows][left[b, rows] > 0][0]
                for rows in (slice(0, 50), slice(50, 100), slice(100, 150))
            ]
            for b in range(len(left))
        ]
        logs = np.log(weights)
        spread = np.cov(logs[:, :2] - logs[:, 2:], rowvar=False)
        expected = oracles.tilt_covariance(expit(batch + at), 150, penalty)
        assert_allclose(np.diag(spread), np.diag(expected), rtol=0.35)

    def test_calibration_recovers_slope_and_offsets(self):
        rng = np.random.default_rng(15)
        logits = rng.normal(size=(20_000, 2))
        truth = (rng.uniform(size=logits.shape) < expit(0.6 * logits + [0.5, -1])).astype(float)
        slope, offsets = calibrate_logits(logits, truth)
        assert_allclose([slope, *offsets], [0.6, 0.5, -1], atol=0.05)

    @pytest.mark.slow
    def test_known_tilts_are_recovered_and_covered(self):
        covered, plain, frequencies = [], [], []
        for seed in range(60):
            rng = np.random.default_rng(200 + seed)
            dist, truth = tilted_batch(600, rng, np.zeros(3))
            estimator = ls.AccuracyEstimator("jaccard", penalty=0.01).fit(dist, truth)
            batch, answers = tilted_batch(400, rng, TILT)
            goal = ls.accuracy(answers, batch.mode(), "jaccard").mean()
            found = estimator.estimate(batch, shift="labels")
            covered.append(found.low <= goal <= found.high)
            usual = estimator.estimate(batch, shift="ignore")
            plain.append(usual.low <= goal <= usual.high)
            _, shift = weigh_by_labels(estimator.calibration_sample_, estimator.view(batch))
            frequencies.append([shift.before, shift.now, answers.mean(axis=0)])
        before, now, true = np.mean(frequencies, axis=0)
        assert np.abs(true - before).max() > 0.15
        assert_allclose(now, true, atol=0.05)
        assert np.mean(covered) >= 0.88
        assert np.mean(plain) < np.mean(covered) - 0.2

    def test_mistakes(self):
        by_table = ls.AccuracyEstimator("jaccard", penalty=0.01)
        by_table.fit(ls.ScoreTable.from_distribution(DIST[:800], Y[:800]).to_frame())
        with pytest.raises(ls.InputError, match="shift='labels' needs the probability of each"):
            by_table.estimate(DIST[800:], shift="labels")


def test_an_estimator_that_was_saved_compares_as_before(tmp_path):
    harder, _ = make_batch(300, np.random.default_rng(16), easy=0.2)
    ESTIMATOR.save(tmp_path / "estimator.labelsure")
    loaded = ls.load(tmp_path / "estimator.labelsure")
    for shift in ("weighted", "labels"):
        assert loaded.estimate(harder, shift=shift) == ESTIMATOR.estimate(harder, shift=shift)
    assert (tmp_path / "estimator.labelsure").stat().st_size < 120_000


def test_the_estimates_that_are_kept_are_by_models_of_others():
    folds = ESTIMATOR._make_folds(800) % 5
    expected = np.empty(800)
    for fold in range(5):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        others = ls.AccuracyEstimator("jaccard", penalty=0.01).fit(DIST[train], Y[train])
        expected[test] = others.predict(DIST[test])
    assert_allclose(ESTIMATOR.calibration_sample_.estimated, expected, rtol=1e-8)


def test_at_most_2000_instances_and_64_labels_are_kept():
    rng = np.random.default_rng(17)
    P = rng.uniform(0.05, 0.2, size=(2300, 70))
    P[:, 3] = 0.01
    dist = ls.IndependentLabels(P, label_names=[f"y{j}" for j in range(70)])
    truth = (rng.uniform(size=P.shape) < P).astype(int)
    sample = ls.AccuracyEstimator("hamming", penalty=0.01).fit(dist, truth).calibration_sample_
    assert len(sample) == 2000
    assert len(sample.label_names) == 64
    assert "y3" not in sample.label_names
    assert sample.true_labels().shape == (2000, 64)
    assert abs(sample.true_labels().mean() - truth.mean()) < 0.02
