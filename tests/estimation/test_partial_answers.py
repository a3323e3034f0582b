"""Estimators and policies on answers that leave labels open, and the spread of members."""

import numpy as np
import oracles
import oracles_partial as naive
import pytest

import labelsure as ls
from labelsure.estimation._inputs import as_score_table


@pytest.fixture(scope="module")
def answered():
    """Distributions that are right, the truth, and answers of which some labels are open."""
    rng = np.random.default_rng(0)
    dist = ls.DenseDistribution(rng.dirichlet(np.full(16, 0.25), size=3000))
    Y = dist.sample(1, random_state=1)[:, 0]
    answers = ls.decide(dist, "hamming", open_cost=0.3)
    some = answers.n_open < answers.n_labels
    return dist[some], Y[some], answers[some]


@pytest.mark.parametrize("metric", list(oracles.METRICS))
@pytest.mark.parametrize("empty", [0.0, 0.6])
def test_the_table_is_about_the_decided_labels(answered, metric, empty):
    dist, Y, answers = (part[:40] for part in answered)
    table = as_score_table(dist, Y, answers, metrics=[metric])
    np.testing.assert_allclose(
        table.accuracy(metric, empty), answers.accuracy(Y, metric, empty=empty)
    )
    P = dist.probabilities().tolist()
    rows = [tuple(row) for row in answers.values.tolist()]
    expected = [
        naive.expected_decided(p, row, metric, empty) for p, row in zip(P, rows, strict=True)
    ]
    np.testing.assert_allclose(table.expected(metric, empty), expected, atol=1e-9)
    np.testing.assert_array_equal(table.n_predicted(), answers.is_certain.sum(axis=1))
    unknown = as_score_table(dist, None, answers, metrics=[metric])
    np.testing.assert_array_equal(unknown.n_predicted(), answers.is_certain.sum(axis=1))


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
    score = dist.expected_decided("hamming", answers).value
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
    with pytest.raises(ls.InputError, match=r"fitted to answers .* got whole ones\. Fit another"):
        of_answers.predict(dist, dist.mode())
    with pytest.raises(ls.InputError, match=r"fitted to no answers .* got such\. Fit another"):
        of_modes.predict(dist, answers)
    with pytest.raises(ls.InputError, match=r"`Y_pred` must be given.* \('partial'\), got None"):
        of_answers.predict(dist)
    nothing = ls.PartialLabelsets(np.vstack([answers.values[:3], [[-1] * 4]]))
    with pytest.raises(ls.InputError, match="1 of 4 leave all open, the first in row 3: nothing"):
        ls.AccuracyEstimator().fit(dist[:4], Y[:4], nothing)
    policy = ls.AcceptPolicy(coverage=0.5).fit([0.9, 0.2] * 5, [1, 0] * 5)
    with pytest.raises(ls.InputError, match="one entry for each of the 200 answers, got 1"):
        policy.accept_labels([0.3], answers)


def make_chains(seed, n_samples):
    rng = np.random.default_rng(seed)
    shape = (n_samples, 4)
    return ls.ChainMixture(
        [
            ls.LinearChain(range(4), rng.normal(size=shape), rng.normal(size=(4, 4)))
            for _ in range(3)
        ]
    )


@pytest.mark.parametrize("metric", list(oracles.METRICS))
def test_the_spread_of_members_is_a_feature(metric):
    dist = make_chains(0, 60)
    Y = dist.sample(1, random_state=0)[:, 0]
    estimator = ls.AccuracyEstimator(metric, ["expected", "spread"], empty=0.5).fit(dist, Y)
    table = estimator._read_table(dist, None, None, estimator.features_, "mode")
    mode = [tuple(row) for row in dist.mode().tolist()]
    members = [member.probabilities().tolist() for member in dist.members()]
    for i, labelset in enumerate(mode[:10]):
        values = [oracles.expected_accuracy(P[i], labelset, metric, 0.5) for P in members]
        assert table.spread(metric)[i] == pytest.approx(max(values) - min(values), abs=1e-9)
    frame = table.to_frame()
    np.testing.assert_allclose(estimator.predict(frame), estimator.predict(dist))
    assert estimator.features_ == ("expected", "spread")


def test_the_spread_of_what_is_no_mixture_is_refused():
    dist = make_chains(0, 60)
    Y = dist.sample(1, random_state=0)[:, 0]
    estimator = ls.AccuracyEstimator("f1", ["spread"])
    with pytest.raises(
        ls.InputError, match=r"'spread' needs whole labelsets.* got IndependentLabel"
    ):
        estimator.fit(ls.IndependentLabels(dist.marginals()), Y)
    with pytest.raises(ls.InputError, match="got ChainMixture and answers with open labels"):
        estimator.fit(dist, Y, ls.PartialLabelsets(dist.mode()))
