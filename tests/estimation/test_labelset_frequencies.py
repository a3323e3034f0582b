"""How often predicted labelsets were true: against loops, and the rules of saved ones."""

from __future__ import annotations

import numpy as np
import oracles_estimation
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labelsure as ls
from labelsure.estimation import LabelsetFrequencies
from labelsure.estimation._labelset_frequencies import log_frequencies_in_other_folds


@st.composite
def labelled(draw):
    """Draw predictions and truths, few of which differ, and folds."""
    n_samples, n_labels = draw(st.integers(2, 12)), draw(st.sampled_from([1, 2, 3, 70]))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    rows = rng.integers(0, 2, size=(2 * n_samples, n_labels)).astype(np.int8)
    rows[:, : max(0, n_labels - 2)] = 0
    folds = np.arange(n_samples) % draw(st.integers(2, n_samples))
    return rows[:n_samples], rows[n_samples:], folds


@given(labelled())
def test_frequencies_are_those_of_loops(drawn):
    Y_pred, Y_true, folds = drawn
    seen = LabelsetFrequencies.of(Y_true)
    expected = [oracles_estimation.labelset_frequency(row, Y_true) for row in Y_pred]
    np.testing.assert_allclose(seen.log_frequencies(Y_pred), expected)
    by_folds = oracles_estimation.labelset_frequencies_by_folds(Y_pred, Y_true, folds)
    found = log_frequencies_in_other_folds(Y_pred, Y_true, folds)
    np.testing.assert_allclose(found, by_folds)
    seen.check_loaded(Y_true.shape[1])


def test_an_instance_is_not_counted_for_itself():
    """Else the feature would say which predictions are right."""
    Y = np.array([[1, 0], [0, 1]], dtype=np.int8)
    found = log_frequencies_in_other_folds(Y, Y, np.array([0, 1]))
    np.testing.assert_allclose(found, np.log(0.5 / 2))


def test_other_labels_are_refused():
    seen = LabelsetFrequencies.of(np.eye(3, dtype=np.int8))
    with pytest.raises(ls.InputError, match=r"must have the 3 labels that.* got 2\. Fit an"):
        seen.counts_of(np.eye(2, dtype=np.int8))


@pytest.mark.parametrize(
    ("labelsets", "counts", "message"),
    [
        ([[0, 1, 0]], [1], "must have the labels of the estimator"),
        ([[0, 2]], [1], "distinct and in order"),
        ([[0, 1], [1, 0]], [1, 1], "distinct and in order"),
        ([[1, 0], [1, 0]], [1, 1], "distinct and in order"),
        ([[1, 0], [0, 1]], [1, 0], "seen at least once"),
        (np.empty((0, 2)), [], "must have the labels of the estimator"),
    ],
)
def test_loaded_counts_keep_the_rules(labelsets, counts, message):
    seen = LabelsetFrequencies(np.array(labelsets, dtype=np.int8), np.array(counts, dtype=np.int64))
    with pytest.raises(ls.InputError, match=message):
        seen.check_loaded(2)
