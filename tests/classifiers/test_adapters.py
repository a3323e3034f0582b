"""`as_distribution` on fitted models of scikit-learn."""

import numpy as np
import oracles_classifiers as slow
import pandas as pd
import pytest
import scipy.sparse as sp
from data_for_classifiers import make_problem
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import labelsure as ls

X, Y = make_problem(n_labels=4)
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
FORESTS = [
    RandomForestClassifier(7, max_depth=3, random_state=0),
    ExtraTreesClassifier(7, max_depth=3, random_state=0),
]


@pytest.mark.parametrize("learner", [LogisticRegression(), TREE], ids=["logistic", "tree"])
@pytest.mark.parametrize("order", [None, [2, 0, 3, 1]])
def test_classifier_chain_is_expanded(learner, order):
    model = ClassifierChain(learner, order=order).fit(X, Y)
    dist = ls.as_distribution(model, X[:3], label_names=list("abcd"))
    assert dist.label_names == tuple("abcd")
    expected = [slow.joint_of_chain(model.estimators_, model.order_, x) for x in X[:3].tolist()]
    np.testing.assert_allclose(dist.probabilities(), expected, atol=1e-12)
    ours = ls.ProbabilisticClassifierChain(learner, order=order).fit(X, Y)
    np.testing.assert_allclose(
        dist.probabilities(), ours.predict_distribution(X[:3]).probabilities(), atol=1e-12
    )


def test_classifier_chain_of_linear_learners_takes_the_fast_route():
    model = ClassifierChain(LogisticRegression(), cv=2, chain_method="predict_proba").fit(X, Y)
    dist = ls.as_distribution(model, X)
    assert isinstance(dist._chains[0], ls.LinearChain)
    expected = slow.joint_of_chain(model.estimators_, model.order_, X[0].tolist())
    np.testing.assert_allclose(dist.probabilities()[0], expected, atol=1e-12)


def test_classifier_chain_with_frames_sparse_and_constant_labels():
    constant = Y.copy()
    constant[:, 1], constant[:, 2] = 0, 1
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = ClassifierChain(TREE).fit(frame, constant)
    marginals = ls.as_distribution(model, frame).marginals()
    np.testing.assert_allclose(marginals[:, 1:3], constant[:, 1:3], atol=1e-15)
    model.fit(sp.csr_array(X), Y)
    np.testing.assert_allclose(
        ls.as_distribution(model, sp.csr_array(X)).probabilities(),
        ls.as_distribution(model, X).probabilities(),
        atol=1e-12,
    )


def test_multi_output():
    model = MultiOutputClassifier(LogisticRegression()).fit(X, Y)
    expected = ls.BinaryRelevance(LogisticRegression()).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(ls.as_distribution(model, X).marginals(), expected, atol=1e-15)


def test_multi_output_with_constant_labels():
    constant = Y.copy()
    constant[:, 1], constant[:, 2] = 0, 1
    model = MultiOutputClassifier(TREE).fit(X, constant)
    marginals = ls.as_distribution(model, X).marginals()
    np.testing.assert_array_equal(marginals[:, 1:3], constant[:, 1:3])
    np.testing.assert_array_equal(marginals[:, 0], model.predict_proba(X)[0][:, 1])


def test_one_vs_rest():
    model = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    dist = ls.as_distribution(model, X)
    np.testing.assert_array_equal(dist.marginals(), model.predict_proba(X))


@pytest.mark.parametrize(
    ("model", "n_classes"),
    [
        (OneVsRestClassifier(LogisticRegression()), 3),
        (OneVsRestClassifier(LogisticRegression()), 2),
        (MLPClassifier((2,), max_iter=1000, tol=0.1, random_state=0), 3),
    ],
)
def test_not_fitted_on_labelsets(model, n_classes):
    model.fit(X, np.arange(len(X)) % n_classes)
    message = f"fitted on a vector of {n_classes} classes, of which each instance has one"
    with pytest.raises(ls.InputError, match=message):
        ls.as_distribution(model, X)


def test_network():
    model = MLPClassifier((3,), max_iter=1000, tol=0.1, random_state=0).fit(X, Y)
    marginals = ls.as_distribution(model, X).marginals()
    np.testing.assert_array_equal(marginals, model.predict_proba(X))
    model.fit(X, Y[:, 0])
    marginals = ls.as_distribution(model, X).marginals()
    np.testing.assert_array_equal(marginals[:, 0], model.predict_proba(X)[:, 1])


@pytest.mark.parametrize("model", FORESTS, ids=["forest", "extra trees"])
def test_votes_of_a_forest(model):
    constant = Y.copy()
    constant[:, 3] = 1
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    dist = ls.as_distribution(model.fit(frame, constant), frame)
    votes = [tree.predict(X).astype(int) for tree in model.estimators_]  # indices of classes
    for i in range(len(X)):
        share = np.zeros(16)
        for vote in votes:
            share[sum(bit << j for j, bit in enumerate([*vote[i, :3], 1]))] += 1 / 7
        np.testing.assert_allclose(dist[i].probabilities()[0], share, atol=1e-15)


@pytest.mark.parametrize("model", FORESTS, ids=["forest", "extra trees"])
def test_marginals_of_a_forest(model):
    constant = Y.copy()
    constant[:, 3] = 0
    dist = ls.as_distribution(model.fit(X, constant), X, kind="marginal")
    assert isinstance(dist, ls.IndependentLabels)
    probabilities = model.predict_proba(X)
    for j in range(3):
        np.testing.assert_array_equal(dist.marginals()[:, j], probabilities[j][:, 1])
    assert not dist.marginals()[:, 3].any()


@pytest.mark.parametrize("kind", ["votes", "marginal"])
def test_forest_of_one_label(kind):
    model = RandomForestClassifier(5, random_state=0).fit(X, Y[:, 0])
    dist = ls.as_distribution(model, X, kind=kind)
    assert dist.n_labels == 1
    assert ((dist.marginals()[:, 0] > 0.5) == model.predict(X)).mean() > 0.9


@pytest.mark.parametrize("order", [None, "random"])
def test_our_own(order):
    model = ls.ProbabilisticClassifierChain(order=order, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(
        ls.as_distribution(model, X).probabilities(),
        model.predict_distribution(X).probabilities(),
    )


def test_pipelines_and_searches_are_opened():
    scaled = StandardScaler().fit_transform(X)
    chain = ClassifierChain(LogisticRegression())
    expected = ls.as_distribution(chain.fit(scaled, Y), scaled).probabilities()
    pipeline = make_pipeline(StandardScaler(), ClassifierChain(LogisticRegression())).fit(X, Y)
    np.testing.assert_allclose(ls.as_distribution(pipeline, X).probabilities(), expected)
    search = GridSearchCV(pipeline, {"classifierchain__estimator__C": [1.0]}, cv=2).fit(X, Y)
    np.testing.assert_allclose(ls.as_distribution(search, X).probabilities(), expected)
    np.testing.assert_array_equal(
        ls.as_distribution(make_pipeline(chain), scaled).probabilities(), expected
    )


def test_arrays_go_on_to_the_distributions():
    assert isinstance(ls.as_distribution([[0.2, 0.4]]), ls.IndependentLabels)
    assert isinstance(ls.as_distribution([[0.2, 0.8]], kind="joint"), ls.DenseDistribution)
    dist = ls.IndependentLabels([[0.5]])
    assert ls.as_distribution(dist) is dist
    with pytest.raises(ls.InputError, match="`X` belongs to a fitted model, but `source` is a lis"):
        ls.as_distribution([[0.2, 0.4]], X)


@pytest.mark.parametrize(
    "model",
    [
        ls.BinaryRelevance(),
        ClassifierChain(LogisticRegression()),
        MultiOutputClassifier(LogisticRegression()),
        OneVsRestClassifier(LogisticRegression()),
        MLPClassifier(),
        RandomForestClassifier(),
        make_pipeline(StandardScaler(), ClassifierChain(LogisticRegression())),
        GridSearchCV(ClassifierChain(LogisticRegression()), {}),
    ],
    ids=lambda model: type(model).__name__,
)
def test_not_fitted(model):
    with pytest.raises(NotFittedError):
        ls.as_distribution(model, X)


def test_wrong_calls():
    chain = ClassifierChain(LogisticRegression()).fit(X, Y)
    with pytest.raises(ls.InputError, match=r"Call `as_distribution\(model, X\)`"):
        ls.as_distribution(chain)
    with pytest.raises(ls.InputError, match="`kind` must be None for a ClassifierChain"):
        ls.as_distribution(chain, X, kind="votes")
    with pytest.raises(ls.InputError, match="got the class ClassifierChain"):
        ls.as_distribution(ClassifierChain, X)
    with pytest.raises(ls.InputError, match="model whose distribution is known, got KNeighbors"):
        ls.as_distribution(KNeighborsClassifier().fit(X, Y), X)
    with pytest.raises(ls.UnknownNameError, match=r"Unknown kind for a forest 'vote'.*'votes'"):
        ls.as_distribution(FORESTS[0].fit(X, Y), X, kind="vote")
    with pytest.raises(ls.InputError, match="`label_names` must be None for a classifier of lab"):
        ls.as_distribution(ls.BinaryRelevance().fit(X, Y), X, label_names=list("abcd"))
    with pytest.raises(ls.InputError, match=r"`CalibratedClassifierCV\(LinearSVC\(\)\)`"):
        ls.as_distribution(ClassifierChain(LinearSVC()).fit(X, Y), X)
    with pytest.raises(ValueError, match="expecting 3 features"):
        ls.as_distribution(chain, X[:, :2])


@pytest.mark.parametrize(
    "model",
    [
        ClassifierChain(LogisticRegression()),
        MultiOutputClassifier(LogisticRegression()),
        RandomForestClassifier(2),
        DummyClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_classes_than_0_and_1(model):
    known = not isinstance(model, DummyClassifier)
    message = r"classes 0 and 1, label 0 has \[.*-1.*1.*\]" if known else "distribution is known"
    with pytest.raises(ls.InputError, match=message):
        ls.as_distribution(model.fit(X, 2 * Y - 1), X)
