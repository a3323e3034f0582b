"""The same fitted base learners in other libraries' exact chains have the same mode."""

import warnings

import numpy as np
import pytest
from data_for_classifiers import make_problem
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import labelsure as ls

N_LABELS = 4


@pytest.fixture(params=[LogisticRegression(), GaussianNB()], ids=["logistic", "bayes"])
def problem(request):
    X, Y = make_problem(n_labels=N_LABELS)
    return X[:10], ls.ProbabilisticClassifierChain(request.param).fit(X, Y)


def test_scikit_multilearn_ng(problem):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its import
        reason = "scikit-multilearn-ng is not installed"
        transforms = pytest.importorskip("skmultilearn.problem_transform", reason=reason)

    X, model = problem
    # It puts the earlier labels behind the features, as ours does, but only in natural order.
    peer = transforms.ProbabilisticClassifierChain(model.estimators_[0], require_dense=[True, True])
    peer.classifiers_, peer._label_count = model.estimators_, N_LABELS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the old matrix classes that it uses
        predicted = peer.predict(X).toarray()
    np.testing.assert_array_equal(model.predict(X), predicted)


class FittedLearner:
    """One of our learners as river sees learners: a dict in, a dict out."""

    _multiclass = False

    def __init__(self, learner):
        self.learner = learner

    def predict_proba_one(self, x):
        zero, one = self.learner.predict_proba([list(x.values())])[0]
        return {0: zero, 1: one}


def test_river(problem):
    multioutput = pytest.importorskip("river.multioutput", reason="river is not installed")

    X, model = problem
    peer = multioutput.ProbabilisticClassifierChain(None)
    peer.order = [f"label {j}" for j in range(N_LABELS)]
    for name, learner in zip(peer.order, model.estimators_, strict=True):
        peer[name] = FittedLearner(learner)
    # Its features are a dict to which the earlier labels are added one by one: the same columns.
    rows = [dict(enumerate(x)) for x in X.tolist()]
    predicted = [[peer.predict_one(x)[name] for name in peer.order] for x in rows]
    np.testing.assert_array_equal(model.predict(X), predicted)
    for x, labels, log_prob in zip(
        rows, predicted, model.predict_distribution(X).log_prob(predicted), strict=True
    ):
        payoff = peer._payoff(x, dict(zip(peer.order, labels, strict=True)))
        np.testing.assert_allclose(payoff, np.exp(log_prob), rtol=1e-12)
