"""Precision, nDCG and propensities of the first k labels, dense and sparse, against loops."""

import tracemalloc

import numpy as np
import oracles_thresholds as naive
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import ndcg_score

import labelsure as ls
from labelsure.thresholds import label_propensities, propensity_scored_precision_at_k

numbers = st.sampled_from([-1.5, 0.0, 0.25, 0.5, 0.5, 1.0])  # with ties, and listed zeros


@st.composite
def listed_scores(draw):
    """Return the number of labels, scores as dictionaries, and sets of true labels."""
    n_labels = draw(st.integers(1, 6))
    labels = st.integers(0, n_labels - 1)
    row = st.tuples(st.dictionaries(labels, numbers), st.sets(labels))
    rows, truths = zip(*draw(st.lists(row, min_size=1, max_size=5)), strict=True)
    return n_labels, rows, truths


def as_sparse(rows, n_labels):
    """Return scores as they are listed, zeros too."""
    parts = [(i, j, value) for i, row in enumerate(rows) for j, value in row.items()]
    at, labels, values = (np.array(part) for part in zip(*parts, strict=True)) if parts else (
        np.empty(0, int), np.empty(0, int), np.empty(0),
    )  # fmt: skip
    return sparse.coo_matrix((values, (at, labels)), shape=(len(rows), n_labels))


def as_rows(truths, n_labels):
    return np.array([[int(j in true) for j in range(n_labels)] for true in truths])


@settings(deadline=None)
@given(listed_scores(), st.data())
def test_sparse_rows_against_loops(drawn, data):
    n_labels, rows, truths = drawn
    k = data.draw(st.integers(1, n_labels))
    scores, true = as_sparse(rows, n_labels), as_rows(truths, n_labels)
    for truth in (true, sparse.csc_array(true)):
        for measure in ("precision_at_k", "ndcg_at_k"):
            expected = [
                getattr(naive, measure)(row, has, k) for row, has in zip(rows, truths, strict=True)
            ]
            found = getattr(ls, measure)(scores, truth, k)
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    weights = np.linspace(0.2, 1, n_labels)
    if any(truths):
        found = propensity_scored_precision_at_k(scores, true, k, weights)
        best = naive.propensity_scored_precision_at_k(rows, truths, weights, k)
        assert found == pytest.approx(best, rel=1e-12)


@settings(deadline=None)
@given(st.data())
def test_dense_and_sparse_rows_say_the_same(data):
    n_labels = data.draw(st.integers(1, 6))
    k = data.draw(st.integers(1, n_labels))
    scores = np.array(data.draw(st.lists(strategies.marginal_rows(n_labels), min_size=1)))
    true = np.array([data.draw(strategies.labelset_rows(n_labels)) for _ in scores])
    everything = as_sparse([dict(enumerate(row)) for row in scores], n_labels)
    weights = np.linspace(0.2, 1, n_labels)
    for measure in (ls.precision_at_k, ls.ndcg_at_k):
        np.testing.assert_array_equal(measure(scores, true, k), measure(everything, true, k))
    expected = [sum(sorted(row)[-k:]) / k for row in scores.tolist()]
    for probabilities in (scores, everything, ls.IndependentLabels(scores)):
        np.testing.assert_allclose(ls.expected_precision_at_k(probabilities, k), expected)
    dist = ls.IndependentLabels(scores)
    table = ls.ranking_table(dist, true, [k], propensities=weights if true.any() else None)
    assert table.loc[k, "expected_precision"] == pytest.approx(np.mean(expected), rel=1e-12)
    assert table.loc[k, "precision"] == ls.precision_at_k(scores, true, k).mean()
    assert table.loc[k, "ndcg"] == ls.ndcg_at_k(scores, true, k).mean()
    if true.any():
        scored = propensity_scored_precision_at_k(scores, true, k, weights)
        assert table.loc[k, "propensity_scored"] == scored


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.integers(2, 8))
def test_ndcg_is_that_of_scikit_learn(seed, n_labels):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=(5, n_labels))
    true = rng.integers(0, 2, size=scores.shape)
    for k in range(1, n_labels + 1):
        expected = ndcg_score(true, scores, k=k, ignore_ties=True)
        assert ls.ndcg_at_k(scores, true, k).mean() == pytest.approx(expected, rel=1e-12)


def test_the_expected_precision_is_the_mean_over_truths():
    """Labels that depend on each other, too: here all or none of the first two."""
    joint = ls.DenseDistribution([[0.3, 0, 0, 0.5, 0.2, 0, 0, 0]])
    labelsets = [[0, 0, 0], [1, 1, 0], [0, 0, 1]]
    values = [ls.precision_at_k(joint, [labelset], 2)[0] for labelset in labelsets]
    assert ls.expected_precision_at_k(joint, 2)[0] == pytest.approx(
        np.dot([0.3, 0.5, 0.2], values), rel=1e-12
    )


def test_the_expected_precision_is_met():
    rng = np.random.default_rng(0)
    marginals = rng.beta(0.3, 2, size=(4000, 30))
    true = (rng.uniform(size=marginals.shape) < marginals).astype(int)
    table = ls.ranking_table(ls.IndependentLabels(marginals), true)
    assert list(table.index) == [1, 3, 5]
    # A mean of 4,000 precisions, each of standard deviation at most a half.
    assert (table["precision"] - table["expected_precision"]).abs().max() < 4 * 0.5 / 4000**0.5


@settings(deadline=None)
@given(strategies.labelset_rows(4).flatmap(lambda row: st.lists(st.just(row), min_size=3)))
def test_propensities_against_a_loop(rows):
    Y = np.array(rows)
    expected = [naive.propensity(len(Y), int(column.sum()), 0.55, 1.5) for column in Y.T]
    np.testing.assert_allclose(label_propensities(Y), expected, rtol=1e-12)
    np.testing.assert_allclose(label_propensities(sparse.csr_array(Y)), expected, rtol=1e-12)
    other = [naive.propensity(len(Y), int(column.sum()), 0.6, 2.6) for column in Y.T]
    np.testing.assert_allclose(label_propensities(Y, a=0.6, b=2.6), other, rtol=1e-12)


def test_a_million_labels_in_the_memory_of_what_is_listed():
    n, n_labels, n_listed = 1000, 10**6, 20
    rng = np.random.default_rng(0)
    labels = np.sort(rng.integers(n_labels, size=(n, n_listed)), axis=1).ravel()
    starts = np.arange(0, labels.size + 1, n_listed)
    scores = sparse.csr_array((rng.uniform(size=labels.size), labels, starts), (n, n_labels))
    ones = np.ones(labels.size, dtype=np.int8)
    true = sparse.csr_array((ones, labels, starts), (n, n_labels))
    true.sum_duplicates()
    true.data[:] = 1
    ls.precision_at_k(scores, true, 5)
    tracemalloc.start()
    found = ls.precision_at_k(scores, true, 5), ls.ndcg_at_k(scores, true, 5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found[0].min() == 1
    np.testing.assert_allclose(found[1], 1)
    assert peak < 400 * labels.size


Y = [[1, 0], [0, 1]]
P = [[0.2, 0.9], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: ls.precision_at_k(P, Y, 0), "`k` must be a number of labels from 1 to 2, got 0"),
        (lambda: ls.precision_at_k(P, Y, 3), "`k` must be a number of labels from 1 to 2, got 3"),
        (lambda: ls.ndcg_at_k(P, Y, True), "`k` must be a number of labels .* got True"),
        (lambda: ls.ranking_table(P, Y, []), "`ks` must name at least one k, got none"),
        (lambda: ls.ranking_table(P, Y), "`k` must be a number of labels from 1 to 2, got 3"),
        (lambda: ls.precision_at_k([0.2], Y, 1), "`scores` must be distributions, or numbers of"),
        (lambda: ls.precision_at_k("a", Y, 1), r"`scores` must be distributions.* got str\."),
        (lambda: ls.precision_at_k([[np.nan, 0.1]], Y, 1), "finite numbers, got NaN or infinity"),
        (lambda: ls.precision_at_k(P, [[1, 0]], 1), "`Y_true` must have 2 rows, got 1"),
        (lambda: ls.precision_at_k(P, [[1], [0]], 1), r"`Y_true` must have 2 labels \(columns\)"),
        (
            lambda: ls.precision_at_k(P, sparse.csr_array([[2, 0], [0, 0]]), 1),
            "`Y_true` must contain only 0 and 1, got 2 in row 0, column 0",
        ),
        (
            lambda: ls.precision_at_k(np.empty((0, 2)), np.empty((0, 2)), 1),
            "at least one instance, got none",
        ),
        (
            lambda: ls.expected_precision_at_k([[0.5, 1.5]], 1),
            "probabilities of labels, .* got 1.5",
        ),
        (lambda: ls.expected_precision_at_k([[-2, 0.5]], 1), "probabilities of labels, .* got -2"),
        (lambda: label_propensities(Y), "`Y_train` must have at least three instances, got 2"),
        (lambda: label_propensities(Y * 2, a=0), "`a` and `b` must be positive numbers, got 0"),
        (
            lambda: propensity_scored_precision_at_k(P, Y, 1, [0.5]),
            "`propensities` must be 2 numbers above 0 and at most 1",
        ),
        (lambda: ls.ranking_table(P, Y, [1], propensities=[0, 1]), "2 numbers above 0 and at most"),
        (
            lambda: propensity_scored_precision_at_k(P, [[0, 0], [0, 0]], 1, [1, 1]),
            "`Y_true` must have at least one true label, it has none",
        ),
    ],
)
def test_messages(ask, message):
    with pytest.raises(ls.InputError, match=message):
        ask()


def test_scores_of_a_caller_are_not_changed():
    scores = sparse.csr_matrix(([0.5, 0.2], [1, 0], [0, 2]), shape=(1, 3))
    kept = scores.copy()
    ls.precision_at_k(scores, [[0, 1, 0]], 2)
    np.testing.assert_array_equal(scores.indices, kept.indices)
    np.testing.assert_array_equal(scores.data, kept.data)
