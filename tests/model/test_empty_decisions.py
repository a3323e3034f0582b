"""Decisions of the flagship are empty only if a labelled row is."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from oracles import accuracy

import labelsure as ls

rng = np.random.default_rng(0)
P = rng.beta(0.6, 1.4, size=(300, 4))  # the empty labelset is often the most probable one
Y = (rng.random(P.shape) < P).astype(np.int8)
FILLED = Y.copy()
FILLED[~Y.any(axis=1), 0] = 1
LABELSETS = list(product((0, 1), repeat=4))  # the empty one first


def fitted(metric, truth, P=P, **settings):
    settings = {"recalibration": None, "random_state": 0, **settings}
    model = ls.AccuracyAwareClassifier(ls.PrecomputedProbabilities(), metric, **settings)
    return model.fit(P, truth)


def best_of(p, metric, candidates):
    """The labelset with the highest expected accuracy, by all pairs."""
    weights = [np.prod(np.where(y, p, 1 - p)) for y in LABELSETS]
    values = [
        sum(w * accuracy(y, guess, metric) for w, y in zip(weights, LABELSETS, strict=True))
        for guess in candidates
    ]
    return candidates[int(np.argmax(values))]


@pytest.mark.parametrize("metric", ["exact", "jaccard", "f1"])
def test_the_best_non_empty_labelset_is_predicted_where_no_truth_is_empty(metric):
    model = fitted(metric, FILLED)
    predicted = model.predict(P[:40])
    wanted = [best_of(p, metric, LABELSETS[1:]) for p in P[:40]]
    np.testing.assert_array_equal(predicted, wanted)
    assert "the non-empty labelsets that maximise" in model.summary_


@pytest.mark.parametrize("metric", ["exact", "jaccard", "f1", "hamming"])
def test_empty_labelsets_are_predicted_where_some_truth_is_empty(metric):
    predicted = fitted(metric, Y).predict(P[:40])
    np.testing.assert_array_equal(predicted, [best_of(p, metric, LABELSETS) for p in P[:40]])
    assert not predicted.any(axis=1).all()


def test_hamming_judges_labels_one_by_one():
    model = fitted("hamming", FILLED)
    np.testing.assert_array_equal(model.predict(P), P >= 0.5)
    assert "non-empty" not in model.summary_


def test_other_decisions_are_left_alone():
    predicted = fitted("f1", FILLED, decision="mode").predict(P)
    np.testing.assert_array_equal(predicted, P >= 0.5)


def test_sparse_labels_get_their_runner_up():
    listed = sp.csr_array(np.where(P > 0.1, P, 0.0))
    predicted = fitted("exact", sp.csr_array(FILLED), P=listed).predict(listed)
    assert (np.diff(predicted.indptr) > 0).mean() > 0.9  # a row may list no label


@pytest.mark.jit_only
def test_chains_of_many_labels_get_a_likely_runner_up():
    """Flat probabilities of 24 labels, of which a short search finds next to nothing."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4))
    truth = (rng.random((200, 24)) < 0.3 + 0.1 * np.tanh(X[:, :1])).astype(np.int8)
    truth[~truth.any(axis=1), 0] = 1
    chain = ls.ProbabilisticClassifierChain(random_state=0)
    model = ls.AccuracyAwareClassifier(chain, "exact", recalibration=None, random_state=0)
    model.fit(X, truth)
    predicted, dist = model.predict(X[:20]), model.predict_distribution(X[:20])
    assert predicted.any(axis=1).all()
    known = dist.with_engine(engine="certified", budget=20_000).top(2)
    for y in np.swapaxes(known.labelsets, 0, 1):
        better = dist.log_prob(y) > dist.log_prob(predicted) + 1e-9
        assert not (better & y.any(axis=1)).any()
