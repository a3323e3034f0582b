"""Every error of the classifiers says what must hold, what came and what to do."""

import numpy as np
import pytest
from data_for_classifiers import make_problem
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import labelsure as ls

X, Y = make_problem(n_samples=30, n_labels=3)

ALL = [
    ls.BinaryRelevance,
    ls.ProbabilisticClassifierChain,
    ls.classifiers.ClassifierTrellis,
    ls.EnsembleOfClassifierChains,
]
every_classifier = pytest.mark.parametrize("classifier", ALL)


@every_classifier
@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_distribution"])
def test_not_fitted(classifier, method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(classifier(), method)(X)


@every_classifier
def test_no_predict_proba(classifier):
    with pytest.raises(ls.InputError, match="CalibratedClassifierCV"):
        classifier(LinearSVC()).fit(X, Y)
    with pytest.raises(ls.InputError, match="`predict_proba`"):
        classifier(Ridge()).fit(X, Y)


@every_classifier
@pytest.mark.parametrize(
    "estimator",
    [
        MultiOutputClassifier(LogisticRegression()),
        MultiOutputClassifier(LinearSVC()),
        ClassifierChain(LogisticRegression()),
        OneVsRestClassifier(LogisticRegression()),
        ls.BinaryRelevance(),
        make_pipeline(StandardScaler(), MultiOutputClassifier(LogisticRegression())),
        GridSearchCV(ls.ProbabilisticClassifierChain(), {}),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_learner_of_all_labels(classifier, estimator):
    message = r"fitted to each label, got a (\w+)\. Use .*`as_distribution\(model, X\)`"
    with pytest.raises(ls.InputError, match=message):
        classifier(estimator).fit(X, Y)


@every_classifier
def test_a_frozen_learner(classifier):
    frozen = FrozenEstimator(LogisticRegression().fit(X, Y[:, 0]))
    for estimator in (frozen, make_pipeline(StandardScaler(), frozen)):
        with pytest.raises(ls.InputError, match="FrozenEst"):
            classifier(estimator).fit(X, Y)


@every_classifier
@pytest.mark.parametrize("estimator", [LogisticRegression, "logistic"])
def test_not_an_estimator(classifier, estimator):
    with pytest.raises(ls.InputError, match="estimator"):
        classifier(estimator).fit(X, Y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y * 2, r"`y` must contain only 0 and 1, got 2 in row \d+, column \d+\. Write 1 for"),
        (Y * 0.5, r"`y` must contain only 0 and 1, got 0.5"),
        (Y.sum(axis=1), "Unknown label type: multiclass. Only binary classification is supported"),
        (X[:, 0], "Unknown label type: continuous"),
        (np.full(30, "a"), "must have two classes, got only .*'a'"),
        (np.full(30, 5), "must have two classes, got only .*5"),
        (Y[:20], "inconsistent numbers of samples"),
        (None, "requires y to be passed"),
    ],
    ids=["twos", "halves", "multiclass", "continuous", "word", "five", "short", "none"],
)
@every_classifier
def test_wrong_y(classifier, y, message):
    with pytest.raises(ValueError, match=message):
        classifier().fit(X, y)


@every_classifier
def test_wrong_weights(classifier):
    with pytest.raises(ls.InputError, match=r"got -1.0 in row 4"):
        classifier().fit(X, Y, sample_weight=np.where(np.arange(30) == 4, -1.0, 1.0))
    with pytest.raises(ls.InputError, match="above zero"):
        classifier().fit(X, Y, sample_weight=np.zeros(30))
    with pytest.raises(ls.InputError, match=r"`sample_weight`.*shape"):
        classifier().fit(X, Y, sample_weight=np.ones((30, 2)))
    with pytest.raises(ls.InputError, match=r"`sample_weight`.*shape"):
        classifier().fit(X, Y, sample_weight=np.ones(29))
    with pytest.raises(ValueError, match="got nan in row 0"):
        classifier().fit(X, Y, sample_weight=np.full(30, np.nan))


@pytest.mark.parametrize(
    "learner", [KNeighborsClassifier(), make_pipeline(StandardScaler(), KNeighborsClassifier())]
)
@pytest.mark.parametrize("classifier", ALL[:3])
def test_a_learner_without_weights(classifier, learner):
    with pytest.raises(ls.InputError, match="`sample_weight`"):
        classifier(learner).fit(X, Y, sample_weight=np.ones(30))


def test_only_bootstraps_can_do_without_weighted_learners():
    learner = KNeighborsClassifier()
    with pytest.raises(ls.InputError, match="takes no weights"):
        ls.EnsembleOfClassifierChains(learner, bootstrap=False).fit(X, Y, np.ones(30))
    ls.EnsembleOfClassifierChains(learner, n_chains=1).fit(X, Y, np.ones(30))


@pytest.mark.parametrize(
    "order", [[0, 1], [0, 1, 1], [0, 1, 3], [0.0, 1.0, 2.0], "natural", [[0]], [[0], 1]]
)
def test_wrong_order(order):
    message = r"`order` must be a permutation of 0 to 2"
    with pytest.raises(ls.InputError, match=message):
        ls.ProbabilisticClassifierChain(order=order).fit(X, Y)


def test_wrong_placement():
    with pytest.raises(ls.InputError, match="`placement`"):
        ls.classifiers.ClassifierTrellis(placement=[0, 0, 1]).fit(X, Y)
    with pytest.raises(ls.errors.UnknownNameError, match=r"Did you mean 'mutual_info'\?"):
        ls.classifiers.ClassifierTrellis(placement="mutual_information").fit(X, Y)


@pytest.mark.parametrize("width", [0, -1, 2.0, "3"])
def test_wrong_width(width):
    with pytest.raises(ls.InputError, match="`width`"):
        ls.classifiers.ClassifierTrellis(width=width).fit(X, Y)


@pytest.mark.parametrize("density", [3, -1, 0.5, "1", True])
def test_wrong_density(density):
    with pytest.raises(ls.InputError, match="`density`"):
        ls.classifiers.ClassifierTrellis(density=density).fit(X, Y)


@pytest.mark.parametrize("n_chains", [0, -2, 1.5, "ten"])
def test_wrong_number_of_chains(n_chains):
    with pytest.raises(ls.InputError, match="`n_chains`"):
        ls.EnsembleOfClassifierChains(n_chains=n_chains).fit(X, Y)
