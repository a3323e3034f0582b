"""Linear base learners are recognised, checked, and give what the prefix route gives."""

import numpy as np
import pytest
import scipy.sparse as sp
from data_for_classifiers import make_problem
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

import labelsure as ls
from labelsure._runtime import limits as _limits
from labelsure.classifiers._base_learners import expand_chain, read_linear_form

CROSS_VALIDATED = LogisticRegressionCV(Cs=2, cv=2, scoring="accuracy")
if "use_legacy_attributes" in CROSS_VALIDATED.get_params():  # scikit-learn 1.8 and later
    CROSS_VALIDATED.set_params(l1_ratios=(0,), use_legacy_attributes=False)
LINEAR = [
    LogisticRegression(),
    LogisticRegression(fit_intercept=False),
    LogisticRegression(class_weight="balanced", solver="liblinear"),
    CROSS_VALIDATED,
    SGDClassifier(loss="log_loss", random_state=0),
    DummyClassifier(strategy="prior"),
    make_pipeline(StandardScaler(), LogisticRegression()),
    make_pipeline(StandardScaler(with_mean=False), LogisticRegression()),
    make_pipeline(StandardScaler(with_std=False), LogisticRegression()),
    make_pipeline(MinMaxScaler((-1, 3)), LogisticRegression()),
    make_pipeline(MaxAbsScaler(), LogisticRegression()),
    make_pipeline("passthrough", LogisticRegression()),
    make_pipeline(MaxAbsScaler(), make_pipeline(StandardScaler(), LogisticRegression())),
]


class Cautious(LogisticRegression):
    """Looks linear, but is not."""

    def predict_proba(self, X):
        return np.clip(super().predict_proba(X), 0.01, 0.99)


class Shifted(LogisticRegression):
    """Defines no `predict_proba` of its own, but still gives other numbers."""

    def decision_function(self, X):
        return super().decision_function(X) + 1e-9


OTHERS = [
    Cautious(),
    Shifted(),
    CalibratedClassifierCV(LogisticRegression(), cv=2),
    DecisionTreeClassifier(random_state=0),
    DummyClassifier(strategy="uniform"),
    GaussianNB(),
    SGDClassifier(loss="modified_huber", random_state=0),
    make_pipeline(FunctionTransformer(np.tanh), LogisticRegression()),
    make_pipeline(MinMaxScaler(clip=True), LogisticRegression()),
    make_pipeline(PCA(2), LogisticRegression()),
    make_pipeline(StandardScaler(), GaussianNB()),
]


def fitted_chain(learner, n_labels=5):
    X, Y = make_problem(n_labels=n_labels)
    return ls.ProbabilisticClassifierChain(clone(learner), order="random", random_state=1).fit(X, Y)


def both_routes(model, X):
    linear = expand_chain(model.order_, model.estimators_, model._linear_weights, X)
    prefix = expand_chain(model.order_, model.estimators_, None, X)
    return (ls.distributions.ChainMixture([chain]) for chain in (linear, prefix))


@pytest.mark.parametrize("learner", LINEAR, ids=str)
def test_both_routes_give_the_same_numbers(learner, monkeypatch):
    """But for the floor, which linear learners do not need."""
    monkeypatch.setattr(_limits, "PROBABILITY_FLOOR", 0.0)
    model = fitted_chain(learner)
    X_new = make_problem(n_samples=30, seed=9)[0] * 3
    assert model._linear_weights is not None
    linear, prefix = both_routes(model, X_new)
    np.testing.assert_allclose(
        linear.probabilities(), prefix.probabilities(), rtol=1e-10, atol=1e-13
    )
    np.testing.assert_allclose(linear.marginals(), prefix.marginals(), atol=1e-12)
    np.testing.assert_allclose(
        linear.profile().entropy, prefix.profile().entropy, rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("learner", OTHERS, ids=str)
def test_other_learners_take_the_prefix_route(learner):
    model = fitted_chain(learner)
    assert model._linear_weights is None
    assert isinstance(model._expand(np.zeros((2, 3))), ls.distributions.PrefixChain)


@pytest.mark.parametrize("make_input", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_trellis_has_the_unrounded_probabilities_of_linear_learners(make_input):
    X, Y = make_problem(n_labels=7)
    model = ls.classifiers.ClassifierTrellis(width=3, random_state=0).fit(make_input(X), Y)
    X_new = make_problem(n_samples=30, seed=9)[0] * 3
    found = model.predict_distribution(make_input(X_new))._conditionals
    for place, (learner, parents) in enumerate(zip(model.estimators_, model.parents_, strict=True)):
        for code in range(2 ** len(parents)):
            labels = [float(code >> i & 1) for i in range(len(parents))]
            for row, x in enumerate(X_new.tolist()):
                features, weights = [*x, *labels], learner.coef_[0].tolist()
                z = sum(map(float.__mul__, features, weights)) + float(learner.intercept_[0])
                assert found[row, place, code] == pytest.approx(1 / (1 + np.exp(-z)), rel=1e-12)


def test_logits_that_are_not_numbers_are_refused_by_a_linear_trellis():
    """As where features are extreme: what overflows with both signs has no sum."""
    X, Y = make_problem(n_labels=3)
    model = ls.classifiers.ClassifierTrellis(random_state=0).fit(X, Y)
    model._linear_weights[2][1] = np.inf - np.inf
    with pytest.raises(ls.InputError, match=r"`conditionals\[1\]` must lie in"):
        model.predict_distribution(X[:1])


def test_one_learner_that_is_not_linear_is_enough():
    model = fitted_chain(LogisticRegression())
    X, Y = make_problem()
    tree = DecisionTreeClassifier(max_depth=2).fit(np.hstack([X, Y[:, :4]]), Y[:, 4])
    from labelsure.classifiers._base_learners import read_linear_weights

    learners = [*model.estimators_[:4], tree]
    before = [range(j) for j in range(5)]
    assert read_linear_weights(learners, X, Y[:, model.order_], before) is None


def test_a_form_that_rounding_spoils_is_not_used():
    # Far from zero, scale and shift cancel: what is left is not the learner's function.
    X, Y = make_problem()
    learner = make_pipeline(StandardScaler(), LogisticRegression(C=100)).fit(X + 1e8, Y[:, 0])
    assert read_linear_form(learner, X[:8] + 1e8) is None
    learner.fit(X, Y[:, 0])
    assert read_linear_form(learner, X[:8]) is not None


def test_sparsified_coefficients():
    X, Y = make_problem()
    learner = LogisticRegression().fit(X, Y[:, 0])
    weights = learner.coef_[0].copy()
    np.testing.assert_array_equal(read_linear_form(learner.sparsify(), X[:8]).weights, weights)


def test_more_than_two_classes_have_no_form():
    X, Y = make_problem()
    assert read_linear_form(LogisticRegression().fit(X, Y[:, :2].sum(axis=1)), X[:0]) is None


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_matrix])
@pytest.mark.parametrize("learner", [LogisticRegression(), DecisionTreeClassifier(random_state=0)])
def test_sparse_features_give_the_same_distribution(container, learner):
    X, Y = make_problem()
    X[np.abs(X) < 0.7] = 0
    dense = ls.ProbabilisticClassifierChain(learner).fit(X, Y)
    fitted = ls.ProbabilisticClassifierChain(learner).fit(container(X), Y)
    np.testing.assert_allclose(
        fitted.predict_distribution(container(X)).probabilities(),
        dense.predict_distribution(X).probabilities(),
        atol=1e-6,
    )
    np.testing.assert_allclose(
        fitted.predict_proba(X), fitted.predict_proba(container(X)), atol=1e-12
    )
