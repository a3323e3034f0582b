"""Cross-fitting: what the classifiers of folds miss is measured, added, and in the interval."""

import warnings
from typing import ClassVar

import numpy as np
import oracles_estimation as oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binom, chi2
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GroupKFold, LeaveOneOut
from sklearn.neighbors import KNeighborsClassifier

import labelsure as ls
from labelsure.estimation._batch_estimates import TrainingGain
from labelsure.model._calibration import (
    HalfTrained,
    add_training_gain,
    calibrate,
    extrapolation_factor,
    measure_training_gain,
    variance_between,
)

pytestmark = pytest.mark.jit_only


class LeastSquares(ClassifierMixin, BaseEstimator):
    """Linear regression of each label, fitted in one step; nothing restrains many features."""

    def fit(self, X, y):
        self.classes_ = [np.array([0, 1])] * y.shape[1]
        X = _with_ones(X)
        self.coef_ = np.linalg.solve(X.T @ X + 1e-9 * np.eye(X.shape[1]), X.T @ y)
        return self

    def predict_proba(self, X):
        return expit(4 * (_with_ones(X) @ self.coef_ - 0.5))


def _with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


class World:
    """Instances with labels that depend on all features, and on each other."""

    def __init__(self, n_features, n_labels, strength=4.0):
        rng = np.random.default_rng(0)
        self.slopes = rng.normal(size=(n_features, n_labels)) * strength / n_features**0.5
        self.offsets = rng.normal(-0.7, 0.7, size=n_labels)
        self.shared = rng.normal(size=n_labels)

    def draw(self, n_samples, rng):
        X = rng.normal(size=(n_samples, len(self.slopes)))
        logits = X @ self.slopes + self.offsets + rng.normal(size=(n_samples, 1)) * self.shared
        return X, (rng.random(logits.shape) < expit(logits)).astype(int)


def cross_fit(X, Y, metric, n_folds=5, seed=0, learner=None):
    """An accuracy estimator by cross-fitting, as the aware classifier has it, without its card."""
    learner = LeastSquares() if learner is None else learner
    model = ls.AccuracyAwareClassifier(learner, metric, cv=n_folds, random_state=seed)
    data = model._read_training_data(X, Y, {}, None)
    found = calibrate(model._wrap(), data, n_folds, needs_half=False, random_state=seed)
    # A given penalty saves half of the time, and a frame what is learned about single labels.
    table = ls.ScoreTable(found.for_estimator.to_frame())
    estimator = ls.AccuracyEstimator(metric, "full", penalty=1e-3).fit(table)
    return found.fitted, table, estimator, found.half_trained


CELLS = {  # instances, features, labels, metric, repeats
    "few instances, near the limit": (200, 3, 4, "jaccard", 350),
    "few instances, far from it": (200, 30, 5, "hamming", 350),
    "far from the limit": (1000, 100, 6, "exact", 160),
    "nearer to it": (1000, 25, 6, "jaccard", 80),
    "many instances, far from the limit": (3000, 150, 4, "hamming", 40),
    "many instances, near it": (3000, 10, 8, "exact", 40),
}


def count_covered(n_samples, n_features, n_labels, metric, n_repeats):
    """How often the interval covers the accuracy of a large batch, with and without the gain."""
    world, rng = World(n_features, n_labels), np.random.default_rng(1)
    covered = {"with": 0, "without": 0}
    for repeat in range(n_repeats):
        fitted, table, estimator, halves = cross_fit(
            *world.draw(n_samples, rng), metric, seed=repeat
        )
        X, Y = world.draw(5000, rng)
        dist = ls.as_distribution(fitted, X)
        batch = ls.ScoreTable.from_distribution(dist, Y, metrics=[metric])
        mean = batch.accuracy(metric, 1.0).mean()
        for name in ("without", "with"):
            if name == "with":
                add_training_gain(estimator, table, halves, 0.95)
            found = estimator.estimate(batch, shift="ignore")
            covered[name] += found.low <= mean <= found.high
    return covered


@pytest.mark.slow
def test_the_interval_covers_the_accuracy_of_the_classifier_that_learned_from_everything():
    n_repeats = {name: cell[-1] for name, cell in CELLS.items()}
    covered = {name: count_covered(*cell) for name, cell in CELLS.items()}
    total = sum(n_repeats.values())
    assert total >= 1000
    assert 0.93 <= sum(found["with"] for found in covered.values()) / total <= 0.97
    for name, found in covered.items():  # each alone, as far as so few repeats can tell
        low, high = binom.ppf([1e-4, 1 - 1e-4], n_repeats[name], [0.93, 0.98])
        assert low <= found["with"] <= high, name
    # Without the gain nothing of this is true.
    assert sum(found["without"] for found in covered.values()) / total < 0.9


def small_case(metric="jaccard", n_folds=5):
    return cross_fit(*World(12, 4).draw(150, np.random.default_rng(0)), metric, n_folds)


@pytest.mark.parametrize("metric", ["exact", "hamming", "jaccard"])
@pytest.mark.parametrize("n_folds", [3, 8])
def test_the_gain_is_the_oracles(metric, n_folds):
    _, table, estimator, halves = small_case(metric, n_folds)
    judge = ls.AccuracyEstimator(metric, "full", penalty=1e-3)
    judge.fit(ls.ScoreTable(halves.by_half.to_frame()))
    expected = oracles.training_gain(
        [list(part.accuracy(metric, 1.0)) for part in (halves.by_whole, halves.by_half)],
        [list(judge.predict(part)) for part in (halves.by_whole, halves.by_half)],
        list(estimator.predict(halves.by_whole)),
        1 - 1 / n_folds,
        len(table),
        halves.sizes,
        chi2.ppf(0.95, 2 * (min(n_folds, 5) - 1)),
    )
    found = measure_training_gain(estimator, halves)
    np.testing.assert_allclose((found.mean, found.ratio, found.variance), expected, rtol=1e-9)
    assert found.mean > 0


@given(seed=st.integers(0, 10**6), spread=st.sampled_from([0.0, 0.3, 2.0]))
def test_the_variance_between_classifiers_is_the_oracles(seed, spread):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, size=rng.integers(2, 5)).tolist()
    groups = [
        [(rng.normal() * spread + rng.normal(size=n)).tolist() for n in sizes] for _ in range(2)
    ]
    critical = chi2.ppf(0.95, 2 * (len(sizes) - 1))
    found = variance_between([np.concatenate(group) for group in groups], sizes)
    assert found == pytest.approx(oracles.variance_between(groups, critical))


def test_classifiers_that_differ_by_chance_have_no_variance_but_rarely():
    rng = np.random.default_rng(0)
    found = [variance_between([rng.normal(size=100)], [20] * 5) for _ in range(2000)]
    assert np.mean(np.array(found) > 0) == pytest.approx(0.05, abs=0.015)
    assert variance_between([np.zeros(10)], [5, 5]) == 0  # all are right
    assert variance_between([rng.normal(size=4)], [1] * 4) == 0  # nothing to tell chance by


class Moody(LeastSquares):
    """A learner that is as sure of one label as ever, but more or less right about it.

    How much depends on its training instances, in a way that nobody can foresee.
    """

    def fit(self, X, y):
        super().fit(X, y)
        self.mood_ = 0.2 * np.sin(1e4 * X[:, 0].sum())
        return self

    def predict_proba(self, X):
        p = super().predict_proba(X)
        wrong = (1e3 * X[:, 1]) % 1 < 0.25 + self.mood_
        p[wrong, 0] = 1 - p[wrong, 0]
        return p


@pytest.mark.slow
def test_a_learner_that_is_never_twice_the_same_has_a_wider_interval(monkeypatch):
    """Its folds differ by more than chance, so no classifier tells what another one is worth."""
    world, rng = World(4, 3), np.random.default_rng(3)
    covered = {True: 0, False: 0}
    for repeat in range(60):
        X, Y = world.draw(1500, rng)
        fitted, table, estimator, halves = cross_fit(X, Y, "jaccard", seed=repeat, learner=Moody())
        X, Y = world.draw(3000, rng)
        batch = ls.ScoreTable.from_distribution(
            ls.as_distribution(fitted, X), Y, metrics=["jaccard"]
        )
        mean = batch.accuracy("jaccard", 1.0).mean()
        for counts in covered:
            with monkeypatch.context() as patch:
                if not counts:
                    path = "labelsure.model._calibration.variance_between"
                    patch.setattr(path, lambda *given: 0.0)
                found = add_training_gain(estimator, table, halves, 0.95).estimate(
                    batch, shift="ignore"
                )
            covered[counts] += found.low <= mean <= found.high
    assert covered[True] >= binom.ppf(1e-3, 60, 0.93)
    assert covered[False] < binom.ppf(1e-6, 60, 0.93), covered


@given(share=st.floats(0.1, 1), limit=st.floats(0, 1), missing=st.floats(0.01, 5))
def test_the_factor_is_exact_if_what_is_missing_falls_as_the_square_root(share, limit, missing):
    half, whole, everything = (limit - missing / part**0.5 for part in (share / 2, share, 1))
    assert extrapolation_factor(share) * (whole - half) == pytest.approx(everything - whole)


@given(
    ratio=st.floats(-1, 1),
    estimated=st.lists(st.floats(0, 1), min_size=2, max_size=9),
    variance=st.floats(0, 1),
)
def test_a_gain_keeps_the_order_and_the_range(ratio, estimated, variance):
    estimated = np.sort(estimated)
    gain = TrainingGain(0.0, ratio, variance)
    with_gain = gain.add_to(estimated)
    assert (np.diff(with_gain) >= -1e-15).all()
    assert with_gain.min() >= 0
    assert with_gain.max() <= 1
    coins = float(np.mean([p * (1 - p) for p in estimated]))
    assert (with_gain - estimated).mean() == pytest.approx(ratio * coins)
    assert gain.mean_variance(coins) == pytest.approx(variance * coins**2)


def test_the_gain_is_in_all_that_the_estimator_says():
    _, table, estimator, halves = small_case()
    before, estimate = estimator.predict(table), estimator.estimate(table)
    assert estimator.reference_ == estimate
    add_training_gain(estimator, table, halves, 0.95)
    gain = estimator.training_gain_
    np.testing.assert_allclose(estimator.predict(table), gain.add_to(before))
    found = estimator.estimate(table)
    assert found.mean == pytest.approx(estimate.mean + gain.mean)
    assert estimator.reference_ == found
    # Both variances shrink with the coins' variance, the first by a little: hence the tolerance.
    widths = [(part.high - part.low) / 2 / 1.959964 for part in (estimate, found)]
    after = gain.add_to(before)
    added = gain.mean_variance(float((after * (1 - after)).mean()))
    assert widths[1] ** 2 == pytest.approx(widths[0] ** 2 + added, rel=0.02)
    estimator.fit(table)
    assert estimator.training_gain_ == TrainingGain()


def test_there_is_nothing_to_gain():
    """Where nothing is learned, where nothing is held back, and where all is certain."""
    X, Y = World(3, 3).draw(60, np.random.default_rng(0))
    P = np.clip(Y * 0.8 + 0.1, 0, 1)
    fitted = ls.AccuracyAwareClassifier(ls.PrecomputedProbabilities(), random_state=0).fit(P, Y)
    assert fitted.accuracy_estimator_.training_gain_ == TrainingGain()
    for settings in ({"model": "plugin"}, {"cv": 0.5}):
        model = ls.AccuracyAwareClassifier(LeastSquares(), random_state=0, **settings).fit(X, Y)
        assert model.accuracy_estimator_.training_gain_ == TrainingGain()
        assert model.card_.training_gain == 0
        assert "for learning from" not in str(model.card_)
    sure = ls.ScoreTable.from_distribution(ls.IndependentLabels(P), Y).to_frame()
    sure = ls.ScoreTable(sure.assign(tp=0, fp=0, fn=0, tn=3))
    estimator = ls.AccuracyEstimator(model="plugin").fit(sure)
    assert (
        measure_training_gain(estimator, HalfTrained(sure, sure, 0.8, (30, 30))) == TrainingGain()
    )


def test_a_model_of_folds_has_a_gain_and_its_card_says_so():
    X, Y = World(20, 3).draw(150, np.random.default_rng(0))
    model = ls.AccuracyAwareClassifier(LeastSquares(), "hamming", random_state=0).fit(X, Y)
    gain = model.accuracy_estimator_.training_gain_
    assert gain.mean > 0
    assert model.card_.training_gain == gain.mean
    assert f"({gain.mean:+.3f} for learning from more than the folds)" in str(model.card_)
    assert model.reference_.mean == model.card_.estimated


class Recording(LeastSquares):
    """Which instances each clone was fitted to, by their first feature."""

    fits: ClassVar = []

    def fit(self, X, y):
        type(self).fits.append(X[:, 0].astype(int))
        return super().fit(X, y)


@pytest.mark.parametrize(("cv", "n_halves"), [(3, 3), (8, 5), (LeaveOneOut(), 5)])
def test_half_of_the_training_instances_of_at_most_five_folds(cv, n_halves):
    Recording.fits.clear()
    X, Y = World(3, 2).draw(40, np.random.default_rng(0))
    X[:, 0] = np.arange(40)
    ls.AccuracyAwareClassifier(Recording(), cv=cv, random_state=0).fit(X, Y)
    _, *folds = Recording.fits[:-n_halves]
    for whole, half in zip(folds, Recording.fits[-n_halves:], strict=False):
        assert set(half) < set(whole)
        assert len(half) == (len(whole) + 1) // 2


def test_half_of_the_groups():
    Recording.fits.clear()
    X, Y = World(3, 2).draw(60, np.random.default_rng(0))
    X[:, 0] = groups = np.repeat(np.arange(12), 5)
    model = ls.AccuracyAwareClassifier(Recording(), cv=GroupKFold(3), random_state=0)
    model.fit(X, Y, groups=list(groups))
    assert [len(set(rows)) for rows in Recording.fits] == [12, 8, 8, 8, 4, 4, 4]
    assert [len(rows) for rows in Recording.fits] == [60, 40, 40, 40, 20, 20, 20]


def test_a_learner_that_half_of_the_instances_are_too_few_for():
    X, Y = World(3, 2).draw(40, np.random.default_rng(0))
    model = ls.AccuracyAwareClassifier(KNeighborsClassifier(20), random_state=0)
    message = (
        r"The estimator could not be fitted to half of the training instances of a fold, so what "
        r"it gains from all of them is not known \(Expected n_neighbors.*\). Estimates may be low "
        r"and their intervals narrow. Fit to more instances, or hold some out, e.g. by cv=0.4."
    )
    with pytest.warns(UserWarning, match=message) as caught:
        model.fit(X, Y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.accuracy_estimator_.training_gain_ == TrainingGain()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(estimator__n_neighbors=16).fit(X, Y)
