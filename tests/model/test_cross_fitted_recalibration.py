"""Accuracy is estimated from rows that the recalibration was not fitted to."""

import numpy as np
import pytest

import labelsure as ls
from labelsure.classifiers.recalibration._base import Part
from labelsure.model._calibration import CalibrationRows, cross_recalibrate

N_LABELS, N_ROWS, N_NEW = 120, 100, 2000


def make_overconfident(rng, n_rows):
    """Probabilities that are too extreme by a factor for each label, and the truth."""
    logits = rng.normal(-1.5, 1.2, size=(n_rows, N_LABELS))
    truth = rng.random(logits.shape) < 1 / (1 + np.exp(-logits))
    stated = logits * np.linspace(1.5, 5, N_LABELS)
    return 1 / (1 + np.exp(-stated)), truth.astype(np.int8)


@pytest.mark.parametrize("share", [None, pytest.param(0.5, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore::labelsure.ProbabilityWarning")
def test_estimates_are_unbiased_with_many_labels_and_few_rows(share):
    gaps, warned = [], 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        (P, Y), (P_new, Y_new) = (make_overconfident(rng, n) for n in (N_ROWS, N_NEW))
        model = ls.AccuracyAwareClassifier(
            ls.PrecomputedProbabilities(), "f1", share=share, random_state=seed
        ).fit(P, Y)
        assert model.recalibration_.is_kept_
        found = model.estimate(P_new)
        gaps.append(found.mean - ls.accuracy(Y_new, model.predict(P_new), "f1").mean())
        warned += found.shift.found
    assert abs(np.mean(gaps)) < 0.008  # by the rows of the recalibration itself: .014 and .030
    assert warned == 0


def test_each_part_is_recalibrated_by_the_others():
    P, Y = make_overconfident(np.random.default_rng(0), N_ROWS)
    model = ls.AccuracyAwareClassifier(ls.PrecomputedProbabilities(), "f1", random_state=0)
    dists = [ls.IndependentLabels(P[:50]), ls.IndependentLabels(P[50:])]
    truths = [Y[:50], Y[50:]]
    parts = [CalibrationRows(dist, Y, None, None) for dist, Y in zip(dists, truths, strict=True)]
    found = list(cross_recalibrate(model.fit(P, Y).recalibration_, parts))
    for dist, part, other in zip(dists, found, (1, 0), strict=True):
        by_other = ls.LabelwiseCalibration(gate=False).fit(dists[other], truths[other])
        wanted = by_other.transform(dist).marginals()
        np.testing.assert_allclose(part.dist.marginals(), wanted, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_cross_fitted_temperatures_are_those_of_the_other_parts(weighted):
    rng = np.random.default_rng(1)
    sharpness, sizes = (0.5, 3.0, 9.0), (40, 60, 80)  # so that parts have far different ones
    parts = []
    for factor, size in zip(sharpness, sizes, strict=True):
        logits = rng.normal(size=(size, 5))
        truth = (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(np.int8)
        dist = ls.IndependentLabels(1 / (1 + np.exp(-factor * logits)))
        weights = rng.integers(0, 3, size).astype(float) if weighted else None
        parts.append(Part(dist, truth, weights))
    scaling = ls.TemperatureScaling(gate=False).fit_parts(
        [part.dist for part in parts],
        [part.truth for part in parts],
        [part.weights for part in parts] if weighted else None,
    )
    for i, found in enumerate(scaling.cross_transform(parts)):
        others = [part for k, part in enumerate(parts) if k != i]
        alone = ls.TemperatureScaling(gate=False).fit_parts(
            [part.dist for part in others],
            [part.truth for part in others],
            [part.weights for part in others] if weighted else None,
        )
        wanted = alone.transform(parts[i].dist).marginals()
        np.testing.assert_allclose(found.marginals(), wanted, atol=1e-12)


def test_the_score_table_does_not_depend_on_how_rows_are_cut(monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 4))
    Y = (X[:, :3] + rng.normal(size=(120, 3)) > 0).astype(int)
    tables = []
    for n_bytes in (2**23, 2**9):  # all rows of a fold together, or eight at a time
        monkeypatch.setattr("labelsure._runtime.limits.CACHED_JOINT_BYTES", n_bytes)
        model = ls.AccuracyAwareClassifier(None, "f1", cv=3, random_state=0).fit(X, Y)
        tables.append(model.accuracy_estimator_.calibration_.to_frame())
    np.testing.assert_allclose(tables[0].to_numpy(float), tables[1].to_numpy(float), atol=1e-12)
    assert "P(y0)" in tables[0]
