"""Estimators and policies on answers that leave labels open."""

import numpy as np
import oracles
import oracles_partial as naive
import pandas as pd
import pytest
from scipy.sparse import csr_array

import labelsure as ls
from labelsure.estimation._features import as_score_table


def share_right(tp, fp, fn, tn):
    """A metric of one's own that counts the true negatives."""
    return (tp + 0.5 * tn) / (tp + fp + fn + tn)


METRICS = [*oracles.METRICS, share_right]


@pytest.fixture(scope="module")
def answered():
    """Distributions that are right, the truth, and answers of which some labels are open."""
    rng = np.random.default_rng(0)
    dist = ls.DenseDistribution(rng.dirichlet(np.full(16, 0.25), size=3000))
    Y = dist.sample(1, random_state=1)[:, 0]
    answers = ls.decide(dist, "hamming", open_cost=0.3).abstentions
    some = answers.n_open < answers.n_labels
    return dist[some], Y[some], answers[some]


def expected_by_loops(joints, answers, metric, empty):
    rows = [tuple(row) for row in answers.values.tolist()]
    pairs = zip(joints, rows, strict=True)
    return [naive.expected_decided(P, row, metric, empty) for P, row in pairs]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("empty", [0.0, 0.6])
def test_the_table_is_about_the_decided_labels(answered, metric, empty):
    dist, Y, answers = (part[:40] for part in answered)
    assert len(set(answers.n_open.tolist())) == 4
    assert (answers.is_certain.sum(axis=1) == 0).any()
    table = as_score_table(dist, Y, answers, metrics=[metric])
    np.testing.assert_allclose(
        table.accuracy(metric, empty), answers.accuracy(Y, metric, empty=empty)
    )
    independent = [oracles.joint_of_independent(p) for p in dist.marginals().tolist()]
    expected = expected_by_loops(independent, answers, metric, empty)
    np.testing.assert_allclose(table.expected(metric, empty), expected, atol=1e-12)
    np.testing.assert_array_equal(table.n_predicted(), answers.is_certain.sum(axis=1))
    unknown = as_score_table(dist, None, answers, metrics=[metric])
    np.testing.assert_array_equal(unknown.n_predicted(), answers.is_certain.sum(axis=1))
    np.testing.assert_array_equal(unknown.expected(metric, empty), table.expected(metric, empty))


def test_the_expected_hamming_is_that_of_the_joint_distribution(answered):
    dist, Y, answers = (part[:40] for part in answered)
    table = as_score_table(dist, Y, answers, metrics=["hamming"])
    expected = expected_by_loops(dist.probabilities().tolist(), answers, "hamming", 1.0)
    np.testing.assert_allclose(table.expected("hamming", 1.0), expected, atol=1e-12)


def test_sparse_labels_have_the_same_table():
    listed = np.random.default_rng(0).uniform(size=(9, 5)) * (np.arange(5) % 2)
    sparse = ls.SparseIndependentLabels(csr_array(listed), floor=0.05)
    dense = ls.IndependentLabels(np.maximum(listed, 0.05))
    answers = ls.decide(dense, "hamming", open_cost=0.3).abstentions
    Y = dense.sample(1, random_state=0)[:, 0]
    tables = [as_score_table(dist, Y, answers, metrics=["f1"]) for dist in (dense, sparse)]
    first, second = (table.expected("f1", 0.5) for table in tables)
    np.testing.assert_allclose(first, second, atol=1e-12)
    np.testing.assert_array_equal(*(np.stack(table.counts()) for table in tables))


def test_an_estimator_is_right_about_answers_with_open_labels(answered):
    dist, Y, answers = answered
    fit, rest = slice(0, 1500), slice(1500, None)
    estimator = ls.AccuracyEstimator("jaccard").fit(dist[fit], Y[fit], answers[fit])
    assert estimator.decision_ == "partial"
    accuracy = answers[rest].accuracy(Y[rest], "jaccard")
    batch = estimator.estimate(dist[rest], answers[rest])
    assert batch.low <= accuracy.mean() <= batch.high
    estimated = estimator.predict(dist[rest], answers[rest])
    assert np.corrcoef(estimated, accuracy)[0, 1] > 0.2


def test_a_policy_accepts_the_decided_labels_and_refers_the_open_ones(answered):
    dist, Y, answers = answered
    fit, rest = slice(0, 1500), slice(1500, None)
    score = as_score_table(dist, None, answers, metrics=["hamming"]).expected("hamming", 1.0)
    accuracy = answers.accuracy(Y, "hamming")
    policy = ls.AcceptPolicy(target=0.8).fit(score[fit], accuracy[fit])
    taken = policy.accept_labels(score[rest], answers[rest])
    is_accepted = policy.accept(score[rest])
    assert 0 < is_accepted.mean() < 1
    np.testing.assert_array_equal(taken.values[is_accepted], answers[rest].values[is_accepted])
    assert (taken.values[~is_accepted] == -1).all()
    assert np.nanmean(taken.accuracy(Y[rest], "hamming")) >= 0.79
    np.testing.assert_array_equal(taken.gap, answers[rest].gap)


def test_answers_are_not_judged_as_labelsets_nor_the_other_way_round(answered):
    dist, Y, answers = (part[:200] for part in answered)
    of_answers = ls.AccuracyEstimator("hamming").fit(dist, Y, answers)
    of_modes = ls.AccuracyEstimator("hamming").fit(dist, Y)
    with pytest.raises(ls.InputError, match="answers"):
        of_answers.predict(dist, dist.mode())
    with pytest.raises(ls.InputError, match="answers"):
        of_modes.predict(dist, answers)
    with pytest.raises(ls.InputError, match="`Y_pred`"):
        of_answers.predict(dist)
    nothing = ls.PartialLabelsets(np.vstack([answers.values[:3], [[-1] * 4]]))
    with pytest.raises(ls.InputError, match="first"):
        ls.AccuracyEstimator().fit(dist[:4], Y[:4], nothing)
    policy = ls.AcceptPolicy(share=0.5).fit([0.9, 0.2] * 5, [1, 0] * 5)
    with pytest.raises(ls.InputError, match="answers"):
        policy.accept_labels([0.3], answers)


def test_answers_that_do_not_fit_are_refused():
    names = ["cat", "dog"]
    dist = ls.IndependentLabels(pd.DataFrame([[0.2, 0.6]], index=["a"], columns=names))
    for answers, message in (
        (ls.PartialLabelsets([[1, -1]], ["dog", "cat"]), "in their order, cat, dog, got dog, cat"),
        (ls.PartialLabelsets([[1, -1]], names, pd.Index(["b"])), "the rows of the distribution"),
        (ls.PartialLabelsets([[1, 0, -1]]), r"must have shape \(1, 2\), got shape \(1, 3\)"),
        (ls.PartialLabelsets([[1, 0]] * 2, names), r"must have shape \(1, 2\), got shape \(2, 2\)"),
    ):
        with pytest.raises(ls.InputError, match=message):
            as_score_table(dist, None, answers)
