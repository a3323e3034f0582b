"""How often predicted labelsets occur in training: against loops, in estimates, in saved files."""

from __future__ import annotations

import numpy as np
import oracles_estimation
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labelsure as ls
from labelsure.estimation._accuracy_model import FEATURE_SETS, LabelsetFrequencies
from labelsure.estimation.score_table import LOG_FREQUENCY


@st.composite
def predicted_and_seen(draw):
    """Draw labelsets, few of which differ."""
    n_samples, n_labels = draw(st.integers(1, 12)), draw(st.sampled_from([1, 2, 3, 70]))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    rows = rng.integers(0, 2, size=(2 * n_samples, n_labels)).astype(np.int8)
    rows[:, : max(0, n_labels - 2)] = 0
    return rows[:n_samples], rows[n_samples:]


@given(predicted_and_seen())
def test_frequencies_are_those_of_loops(drawn):
    Y_pred, Y_train = drawn
    seen = LabelsetFrequencies.of(Y_train)
    expected = [oracles_estimation.labelset_frequency(row, Y_train) for row in Y_pred]
    np.testing.assert_allclose(seen.log_frequencies(Y_pred), expected)


def simulate(n_samples=800, seed=0):
    """Draw marginals of four labels, and truths that are always one of three labelsets.

    So a predicted labelset that is none of them is wrong, which only the training data tell.
    """
    rng = np.random.default_rng(seed)
    possible = np.array([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 1]], dtype=np.int8)
    Y = possible[rng.integers(3, size=n_samples)]
    logits = 2.0 * (2 * Y - 1) + 2 * rng.normal(size=Y.shape)
    return ls.IndependentLabels(1 / (1 + np.exp(-logits))), Y


def test_what_was_seen_in_training_sharpens_the_estimate():
    dist, Y = simulate()
    plain = ls.AccuracyEstimator("exact").fit(dist[:300], Y[:300])
    sharp = ls.AccuracyEstimator("exact").fit(dist[:300], Y[:300], Y_train=Y[600:])
    assert plain.features_ == FEATURE_SETS["full"]
    assert sharp.features_ == FEATURE_SETS["sharp"]
    new, accuracy = dist[300:600], ls.accuracy(Y[300:600], dist[300:600].mode(), "exact")
    squares = [np.mean((model.predict(new) - accuracy) ** 2) for model in (plain, sharp)]
    assert squares[1] < 0.6 * squares[0]
    never = sharp.labelset_frequencies_.counts_of(new.mode()) == 0
    assert 0.1 < never.mean() < 0.9
    assert sharp.predict(new)[never].max() < 0.2
    batch = sharp.estimate(new, shift="ignore")
    assert batch.low < accuracy.mean() < batch.high


def test_a_table_is_read_like_its_distribution():
    dist, Y = simulate()
    estimator = ls.AccuracyEstimator("jaccard").fit(dist[:300], Y[:300], Y_train=Y[600:])
    new = dist[300:600]
    table = ls.ScoreTable.from_distribution(new)
    found = estimator.predict(new)
    np.testing.assert_array_equal(estimator.predict(table), found)
    with_column = estimator.labelset_frequencies_.add_to(table)
    np.testing.assert_array_equal(estimator.predict(with_column.to_frame()), found)
    again = ls.AccuracyEstimator("jaccard").fit(
        estimator.labelset_frequencies_.add_to(
            ls.ScoreTable.from_distribution(dist[:300], Y[:300])
        ).to_frame()
    )
    assert again.features_ == FEATURE_SETS["sharp"]
    np.testing.assert_allclose(again.predict(with_column), found)


def test_the_column_of_a_table_is_kept():
    """Of cross-fitted predictions, each fold has training labels of its own."""
    dist, Y = simulate(300)
    table = ls.ScoreTable.from_distribution(dist, Y).with_columns(
        {LOG_FREQUENCY: np.linspace(-3, -1, 300)}
    )
    assert table.knows_labels
    estimator = ls.AccuracyEstimator("exact").fit(table, Y_train=Y)
    moved = table.with_columns({LOG_FREQUENCY: np.linspace(-1, -3, 300)})
    assert np.abs(estimator.predict(table) - estimator.predict(moved)).max() > 1e-6


def test_labels_of_training_are_compared_by_name():
    dist, Y = simulate(300)
    named = ls.IndependentLabels(dist.marginals(), label_names=list("abcd"))
    by_name = pd.DataFrame(Y, columns=list("abcd"))[list("dcba")]
    estimator = ls.AccuracyEstimator("exact").fit(named, Y, Y_train=by_name)
    expected = LabelsetFrequencies.of(Y)
    seen = estimator.labelset_frequencies_
    np.testing.assert_array_equal(seen.labelsets, expected.labelsets)
    np.testing.assert_array_equal(seen.counts, expected.counts)
    assert seen.label_names == tuple("abcd")
    turned = ls.IndependentLabels(dist.marginals()[:, ::-1], label_names=list("dcba"))
    with pytest.raises(ls.InputError, match="instead"):
        estimator.predict(turned)


def test_what_cannot_be_counted_is_refused():
    dist, Y = simulate(300)
    estimator = ls.AccuracyEstimator("exact", features="sharp")
    with pytest.raises(ls.InputError, match="`Y_train`"):
        estimator.fit(dist, Y)
    with pytest.raises(ls.InputError, match=r"at least one labelset, got none"):
        estimator.fit(dist, Y, Y_train=Y[:0])
    with pytest.raises(ls.InputError, match="training"):
        estimator.fit(dist, Y, Y_train=Y[:, :3])
    estimator.fit(dist, Y, Y_train=Y)
    frame = ls.ScoreTable.from_distribution(dist).to_frame()
    with pytest.raises(ls.InputError, match="column 'log_frequency'"):
        estimator.predict(frame)


def test_it_is_saved_with_the_estimator(tmp_path):
    dist, Y = simulate(300)
    estimator = ls.AccuracyEstimator("exact").fit(dist, Y, Y_train=Y)
    estimator.save(tmp_path / "model")
    loaded = ls.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(dist), estimator.predict(dist))


@pytest.mark.parametrize("cv", [3, 0.5])
def test_a_wrapped_classifier_brings_its_training_labels(cv):
    data, _ = ls.make_labelsets(240, 4, random_state=0)
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), "exact", cv=cv, random_state=0)
    model.fit(data.X, data.Y)
    estimator = model.accuracy_estimator_
    assert estimator.features_ == FEATURE_SETS["sharp"]
    assert estimator.labelset_frequencies_.counts.sum() == (240 if cv == 3 else 120)
    dist = model.predict_distribution(data.X)
    found = estimator.predict(dist, model.predict(data.X))
    np.testing.assert_array_equal(model.predict_accuracy(data.X), found)


def test_a_frozen_classifier_has_no_training_labels():
    data, _ = ls.make_labelsets(200, 3, random_state=0)
    X, Y = np.asarray(data.X), np.asarray(data.Y)
    fitted = ls.BinaryRelevance().fit(X[:100], Y[:100])
    from sklearn.frozen import FrozenEstimator

    model = ls.AccuracyAwareClassifier(FrozenEstimator(fitted)).fit(X[100:], Y[100:])
    assert model.accuracy_estimator_.labelset_frequencies_ is None
    assert model.accuracy_estimator_.features_ == FEATURE_SETS["full"]
