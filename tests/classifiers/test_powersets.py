"""Powersets of all labels, and of blocks of them: against loops, peers and likelihoods."""

import warnings

import numpy as np
import oracles_joints
import pytest
from data_for_classifiers import make_problem
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import labelsure as ls
from labelsure.classifiers._powerset_classifier import best_share
from labelsure.classifiers._rakel_classifiers import group_by_dependence

X, Y = make_problem(120, n_labels=4)
LEARNERS = [LogisticRegression(), GaussianNB(), DecisionTreeClassifier(max_depth=3, random_state=0)]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_the_joint_of_a_powerset_is_that_of_loops(learner):
    model = ls.LabelPowerset(learner, share=0.2).fit(X, Y)
    seen = {tuple(row) for row in Y.tolist()}
    assert [tuple(row) for row in model.labelsets_.tolist()] == sorted(
        seen, key=lambda row: row[::-1]
    )
    assert model.floor_ == 1 / 122
    P = model.predict_distribution(X[:5]).probabilities()
    for row in range(5):
        expected = oracles_joints.joint_of_powerset(
            model.estimator_, model.labelsets_.tolist(), X[row], 0.2, 1 / 122
        )
        assert_allclose(P[row], expected, rtol=1e-12)


def test_the_share_is_the_one_that_makes_held_out_labelsets_most_likely():
    rng = np.random.default_rng(0)
    by_class, by_rest = np.where(rng.random(200) < 0.3, 0, rng.random(200)), rng.random(200) / 9
    weights = rng.integers(1, 4, 200).astype(float)
    grid = np.linspace(1e-4, 1, 20001)
    values = [weights @ np.log((1 - e) * by_class + e * by_rest) for e in grid]
    assert best_share(by_class, by_rest, weights) == pytest.approx(
        grid[np.argmax(values)], abs=2e-4
    )
    assert best_share(by_rest, np.full(200, 1e-9), weights) < 1e-4
    model = ls.LabelPowerset(random_state=0).fit(X, Y)
    assert 0 < model.share_ < 1
    few = ls.LabelPowerset().fit(X[:7], Y[:7])
    assert few.share_ == 1 / 8


def test_a_chosen_share_is_better_on_new_instances_than_none():
    """Many labelsets are new there, and a share that is nearly 0 makes them nearly impossible."""
    many, labels = make_problem(600, n_labels=7, seed=3)
    chosen = ls.LabelPowerset(random_state=0).fit(many[:200], labels[:200])
    none = ls.LabelPowerset(share=1e-6).fit(many[:200], labels[:200])
    alone = ls.LabelPowerset(share=1.0).fit(many[:200], labels[:200])
    scores = [
        model.predict_distribution(many[200:]).log_prob(labels[200:]).mean()
        for model in (chosen, none, alone)
    ]
    assert scores[0] > max(scores[1:])


def test_more_jobs_and_the_seed():
    random_tree = DecisionTreeClassifier(splitter="random", max_depth=2)
    for make in (
        lambda **kw: ls.LabelPowerset(random_tree, **kw),
        lambda **kw: ls.RakelD(random_tree, block_size=2, **kw),
        lambda **kw: ls.RakelO(random_tree, block_size=2, n_blocks=4, **kw),
    ):
        one = make(random_state=1, n_jobs=1).fit(X, Y).predict_proba(X)
        assert_array_equal(one, make(random_state=1, n_jobs=2).fit(X, Y).predict_proba(X))
        assert (one != make(random_state=2).fit(X, Y).predict_proba(X)).any()


def test_one_labelset_only():
    model = ls.LabelPowerset(share=0.1).fit(X, np.tile([1, 0], (120, 1)))
    assert_array_equal(model.predict(X[:3]), [[1, 0]] * 3)
    assert model.predict_proba(X[:1])[0, 0] == pytest.approx(1 - 0.1 / 122)


def quietly(function, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its import and of the old matrix classes
        return function(*arguments)


def test_scikit_multilearn_ng_predicts_the_same():
    def predict(blocks, overlapping):
        from skmultilearn.cluster import FixedLabelSpaceClusterer
        from skmultilearn.ensemble import (
            LabelSpacePartitioningClassifier,
            MajorityVotingClassifier,
        )
        from skmultilearn.problem_transform import LabelPowerset

        powerset = LabelPowerset(GaussianNB(), require_dense=[True, True])
        if blocks is None:
            return powerset.fit(X, Y).predict(X).toarray()
        kind = MajorityVotingClassifier if overlapping else LabelSpacePartitioningClassifier
        peer = kind(powerset, FixedLabelSpaceClusterer(clusters=blocks), [True, True])
        predicted = peer.fit(X, Y).predict(X)
        return predicted if overlapping else predicted.toarray()

    ours = ls.LabelPowerset(GaussianNB(), share=1e-9).fit(X, Y)
    assert_array_equal(ours.predict(X), quietly(predict, None, False))
    blocks = [[0, 2], [1, 3]]
    ours = ls.RakelD(GaussianNB(), partition=blocks, share=1e-9).fit(X, Y)
    assert_array_equal(ours.predict(X), quietly(predict, blocks, False))
    blocks = [[0, 1, 2], [1, 2, 3], [0, 1, 3], [0, 2, 3]]  # three votes for each label: no ties
    ours = ls.RakelO(GaussianNB(), blocks=blocks, voting="hard", share=1e-9).fit(X, Y)
    assert_array_equal(ours.predict(X), quietly(predict, blocks, True))


def test_disjoint_blocks_are_a_product_of_powersets():
    model = ls.RakelD(GaussianNB(), partition=[[3, 0], [1], [2]], share=0.3).fit(X, Y)
    assert model.blocks_ == [[0, 3], [1], [2]]
    P = model.predict_distribution(X[:3]).probabilities()
    parts = [ls.LabelPowerset(GaussianNB(), share=0.3).fit(X, Y[:, b]) for b in model.blocks_]
    for row in range(3):
        joints = [
            (b, part.predict_distribution(X[row : row + 1]).probabilities()[0].tolist())
            for b, part in zip(model.blocks_, parts, strict=True)
        ]
        assert_allclose(P[row], oracles_joints.joint_of_blocks(joints, 4), rtol=1e-12)


def test_votes_of_overlapping_blocks():
    blocks = [[0, 1], [1, 2, 3], [0, 3]]
    parts = [ls.LabelPowerset(GaussianNB(), share=0.2).fit(X, Y[:, b]) for b in blocks]
    for voting, coin in (("soft", 0), ("hard", 1)):
        model = ls.RakelO(GaussianNB(), blocks=blocks, voting=voting, share=0.2).fit(X, Y)
        found = model.predict_proba(X[:4])
        for label in range(4):
            votes = [
                (part.predict_proba(X[:4]) if voting == "soft" else part.predict(X[:4]))[
                    :, some.index(label)
                ]
                for some, part in zip(blocks, parts, strict=True)
                if label in some
            ]
            expected = (np.sum(votes, axis=0) + coin / 2) / (len(votes) + coin)
            assert_allclose(found[:, label], expected, rtol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_blocks_by_dependence_are_those_of_loops(size):
    rng = np.random.default_rng(size)
    hidden = rng.normal(size=(80, 3))
    labels = (hidden[:, [0, 1, 0, 2, 1, 0, 2]] + 0.6 * rng.normal(size=(80, 7)) > 0.2).astype(int)
    labels[:, 4] = 1  # constant
    found = group_by_dependence(labels, size)
    assert found == oracles_joints.group_by_dependence(labels.tolist(), size)
    assert sorted(label for block in found for label in block) == list(range(7))


def test_random_blocks():
    model = ls.RakelD(GaussianNB(), block_size=3, share=0.1, random_state=0).fit(X, Y)
    assert sorted(map(len, model.blocks_)) == [1, 3]
    assert sorted(label for block in model.blocks_ for label in block) == [0, 1, 2, 3]
    voted = ls.RakelO(GaussianNB(), block_size=3, share=0.1, random_state=0).fit(X, Y)
    assert len(voted.blocks_) == 8
    assert all(len(set(block)) == 3 and block == sorted(block) for block in voted.blocks_)
    assert {label for block in voted.blocks_ for label in block} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ls.LabelPowerset(share=0), "`share` must be above 0 and at most 1, got 0"),
        (ls.LabelPowerset(share="all"), "`share` must be a number or None, got 'all'"),
        (ls.RakelD(share=2), "`share` must be above 0 and at most 1, got 2"),
        (ls.RakelD(block_size=0), "`block_size` must be a whole number >= 1, got 0"),
        (ls.RakelO(block_size="two"), "`block_size` must be a whole number >= 1, got 'two'"),
        (ls.RakelD(partition="by size"), "Unknown partition 'by size'"),
        (ls.RakelD(partition=[[0, 1]]), "must hold each of the 4 labels once, it holds 2 places"),
        (ls.RakelD(partition=[[0, 1], [1, 9]]), r"places from 0 to 3, got \[1, 9\]"),
        (ls.RakelD(partition=[["a"]]), "must be lists of places of labels, e.g."),
        (ls.RakelO(blocks=[[0, 1], [1, 2]]), r"every label, the labels \[3\] are missing"),
        (ls.RakelO(n_blocks=1), "at least 2 so that 4 labels in blocks of 3 are all in one, got 1"),
        (ls.RakelO(voting="loud"), "Unknown voting 'loud'"),
    ],
)
def test_what_is_refused(model, message):
    with pytest.raises(ls.InputError, match=message):
        model.fit(X, Y)


def test_in_an_aware_classifier_and_a_decision():
    model = ls.AccuracyAwareClassifier(
        ls.RakelD(GaussianNB(), block_size=2, share=0.1, random_state=0),
        "jaccard",
        decision="best",
        cv=0.5,
        random_state=0,
    ).fit(X, Y)
    table = model.assess(X[:10]).to_frame(2)
    assert table["estimated_accuracy"].between(0, 1).all()
