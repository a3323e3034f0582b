"""Prevalences of a batch without labels, under label shift."""

from dataclasses import replace

import numpy as np
import oracles_labels as oracles
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

import labelsure as ls
from labelsure.errors import InputError

NAMES = ["a", "b", "c"]


def draw(n_samples, prevalence, rng):
    """Overconfident marginals whose inputs, given the label, do not depend on its prevalence."""
    Y = (rng.uniform(size=(n_samples, 3)) < prevalence).astype(int)
    x = rng.normal(1.5 * Y, 1.0)
    return ls.IndependentLabels(expit(2.5 * (x - 0.9)), label_names=NAMES), Y


RNG = np.random.default_rng(0)
DIST, Y = draw(1000, [0.3, 0.5, 0.1], RNG)
ESTIMATOR = ls.AccuracyEstimator("jaccard").fit(DIST, Y)


def test_the_estimate_is_where_the_em_algorithm_ends():
    batch, _ = draw(200, [0.6, 0.3, 0.2], np.random.default_rng(1))
    table = ESTIMATOR.estimate_prevalence(batch).to_frame()
    for j, name in enumerate(NAMES):
        line = oracles.fit_line(DIST.marginals()[:, j], Y[:, j])
        before = (Y[:, j].sum() + 0.5) / 1001
        expected = oracles.em_prevalence(batch.marginals()[:, j], line, before)
        assert_allclose(table.loc[name, "prevalence"], expected, atol=2e-4)
        assert table.loc[name, "calibration"] == before


def test_the_interval_of_a_known_ratio_is_that_of_the_likelihood():
    batch, _ = draw(200, [0.6, 0.3, 0.2], np.random.default_rng(1))
    known = replace(ESTIMATOR.density_ratios_, covariances=np.zeros((3, 3)))
    table = known.estimate(batch.marginals(), 0.95).to_frame()
    for j, name in enumerate(NAMES):
        line, before = oracles.fit_line(DIST.marginals()[:, j], Y[:, j]), known.prevalence[j]
        found = table.loc[name, "prevalence"]
        variance = oracles.prevalence_variance(batch.marginals()[:, j], line, before, found)
        assert_allclose(table.loc[name, "high"] - found, 1.96 * variance**0.5, rtol=2e-3)


def test_intervals_cover_under_label_shift():
    rng, n_covered, errors, plain = np.random.default_rng(2), 0, [], []
    prevalence = np.array([0.6, 0.3, 0.2])
    for _ in range(100):
        known, truth = draw(300, [0.3, 0.5, 0.1], rng)
        batch, later = draw(300, prevalence, rng)
        table = (
            ls.AccuracyEstimator("jaccard").fit(known, truth).estimate_prevalence(batch).to_frame()
        )
        share = later.mean(axis=0)
        n_covered += ((table["low"] <= share) & (share <= table["high"])).sum()
        errors.append(np.abs(table["prevalence"] - share))
        plain.append(np.abs(batch.marginals().mean(axis=0) - share))
    assert 0.92 * 300 <= n_covered <= 0.985 * 300
    assert np.mean(errors) < 0.6 * np.mean(plain)


def test_labels_that_are_never_or_always_true():
    batch, _ = draw(200, [0.0, 1.0, 0.2], np.random.default_rng(3))
    table = ESTIMATOR.estimate_prevalence(batch, level=0.9).to_frame()
    assert table["low"]["a"] == 0.0
    assert table["prevalence"]["a"] < 0.03
    assert table["high"]["b"] == 1.0
    assert table["prevalence"]["b"] > 0.95
    wider = ESTIMATOR.estimate_prevalence(batch, level=0.99).to_frame()
    assert (wider["high"] - wider["low"] > table["high"] - table["low"]).all()


def test_what_it_says_and_refuses():
    table = ESTIMATOR.estimate_prevalence(DIST[:50]).to_frame()
    assert "assumes label shift" in str(table)
    assert table.index.tolist() == NAMES
    with pytest.raises(InputError, match="must be a LabelsetDistribution"):
        ESTIMATOR.estimate_prevalence(pd.DataFrame({"HP": [0.3]}))
    with pytest.raises(InputError, match="labels"):
        ESTIMATOR.estimate_prevalence(ls.IndependentLabels([[0.5, 0.5]]))


def test_the_flagship_answers_from_features(tmp_path):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(900, 4))
    truth = pd.DataFrame((X[:, :3] + rng.normal(size=(900, 3)) > 0.5).astype(int), columns=NAMES)
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), random_state=0)
    model.fit(X[:600], truth[:600])
    table = model.estimate_prevalence(X[600:]).to_frame()
    share = truth[600:].mean()
    assert ((table["low"] <= share) & (share <= table["high"])).all()
    model.save(tmp_path / "m.labelsure")
    again = ls.load(tmp_path / "m.labelsure").estimate_prevalence(X[600:]).to_frame()
    pd.testing.assert_frame_equal(table, again)
