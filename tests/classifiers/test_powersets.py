"""Powersets of labels: against loops, peers and likelihoods."""

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

    def predict(**settings):
        return ls.LabelPowerset(random_tree, **settings).fit(X, Y).predict_proba(X)

    one = predict(random_state=1, n_jobs=1)
    assert_array_equal(one, predict(random_state=1, n_jobs=2))
    assert (one != predict(random_state=2)).any()


def test_one_labelset_only():
    model = ls.LabelPowerset(share=0.1).fit(X, np.tile([1, 0], (120, 1)))
    assert_array_equal(model.predict(X[:3]), [[1, 0]] * 3)
    assert model.predict_proba(X[:1])[0, 0] == pytest.approx(1 - 0.1 / 122)


def quietly(function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its import and of the old matrix classes
        return function()


def test_scikit_multilearn_ng_predicts_the_same():
    reason = "scikit-multilearn-ng is not installed"

    def predict():
        transforms = pytest.importorskip("skmultilearn.problem_transform", reason=reason)
        peer = transforms.LabelPowerset(GaussianNB(), require_dense=[True, True])
        return peer.fit(X, Y).predict(X).toarray()

    ours = ls.LabelPowerset(GaussianNB(), share=1e-9).fit(X, Y)
    assert_array_equal(ours.predict(X), quietly(predict))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ls.LabelPowerset(share=0), "`share`.*got 0"),
        (ls.LabelPowerset(share=2), "`share`.*got 2"),
        (ls.LabelPowerset(share="all"), "`share`.*got 'all'"),
    ],
)
def test_what_is_refused(model, message):
    with pytest.raises(ls.InputError, match=message):
        model.fit(X, Y)


def test_in_an_aware_classifier_and_a_decision():
    model = ls.AccuracyAwareClassifier(
        ls.LabelPowerset(GaussianNB(), share=0.1),
        "jaccard",
        decision="best",
        cv=0.5,
        random_state=0,
    ).fit(X, Y)
    table = model.assess(X[:10]).to_frame(2)
    assert table["estimated_accuracy"].between(0, 1).all()
