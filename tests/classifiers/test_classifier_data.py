"""The data that people have: DataFrames, sparse, float32, weights, constant labels, one label."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from data_for_classifiers import make_problem
from scipy.special import expit
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import labelsure as ls

TREE = DecisionTreeClassifier(max_depth=3, random_state=0)

ALL = [
    ls.BinaryRelevance(),
    ls.ProbabilisticClassifierChain(),
    ls.classifiers.ClassifierTrellis(random_state=0),
    ls.EnsembleOfClassifierChains(n_chains=3, random_state=0),
    ls.ProbabilisticClassifierChain(TREE),
    ls.EnsembleOfClassifierChains(TREE, n_chains=3, random_state=0),
]
every_classifier = pytest.mark.parametrize("model", ALL, ids=str)


def joint(model, X):
    return model.predict_distribution(X).probabilities()


@every_classifier
def test_names_come_from_frames(model):
    X, Y = make_problem(n_labels=3)
    features = pd.DataFrame(X, columns=["warmth", "wind", "rain"])
    labels = pd.DataFrame(Y, columns=["sun", "sail", "stay"])
    model.fit(features, labels)
    assert model.label_names_ == ("sun", "sail", "stay")
    assert model.feature_names_in_.tolist() == ["warmth", "wind", "rain"]
    dist = model.predict_distribution(features)
    assert dist.label_names == ("sun", "sail", "stay")
    plain = joint(model.fit(X, Y), X)
    assert (model.label_names_, model.n_labels_) == (None, 3)
    np.testing.assert_array_equal(dist.probabilities(), plain)


@every_classifier
def test_feature_names_are_checked(model):
    X, Y = make_problem(n_labels=3)
    features = pd.DataFrame(X, columns=["warmth", "wind", "rain"])
    model.fit(features, Y)
    with pytest.raises(ValueError, match="feature"):
        model.predict_distribution(features.rename(columns={"rain": "snow"}))
    with pytest.raises(ValueError, match="expecting"):
        model.fit(X, Y).predict_distribution(X[:, :2])


@every_classifier
def test_float32_and_lists_are_the_same_numbers(model):
    X, Y = make_problem(n_labels=3)
    X = np.round(X * 8) / 8  # exact in both widths
    expected = joint(model.fit(X, Y), X)
    np.testing.assert_array_equal(
        joint(model.fit(X.astype(np.float32), Y.tolist()), X.tolist()), expected
    )


@pytest.mark.parametrize("form", [lambda Y: Y.astype(bool), sp.csr_matrix, lambda Y: Y * 1.0])
@every_classifier
def test_forms_of_labelsets(model, form):
    X, Y = make_problem(n_labels=3)
    expected = model.fit(X, Y).predict(X)
    predicted = model.fit(X, form(Y)).predict(X)
    assert predicted.dtype == form(Y).dtype
    np.testing.assert_array_equal(predicted, expected)


class OnlySparse(LogisticRegression):
    """Refuses dense features, in training and after."""

    def fit(self, X, y, sample_weight=None):
        assert sp.issparse(X)
        return super().fit(X, y, sample_weight)

    def predict_proba(self, X):
        assert sp.issparse(X)
        return super().predict_proba(X)


@every_classifier
def test_sparse_features_stay_sparse(model):
    X, Y = make_problem(n_features=6, n_labels=3)
    X[np.abs(X) < 0.8] = 0
    model = clone(model).set_params(estimator=LogisticRegression())
    expected = joint(model.fit(X, Y), X)
    model.set_params(estimator=OnlySparse()).fit(sp.csr_array(X), Y)
    # Other sums for sparse matrices move the optimum by the solver's tolerance.
    np.testing.assert_allclose(joint(model, sp.csr_array(X)), expected, atol=1e-3)
    with pytest.raises(AssertionError):
        joint(model, X)


@every_classifier
def test_constant_labels_get_the_smoothed_prior(model):
    X, Y = make_problem(n_labels=4)
    Y[:, 1], Y[:, 2] = 0, 1
    marginals = model.fit(X, Y).predict_proba(X)
    n = len(X)
    np.testing.assert_allclose(marginals[:, 1], 1 / (n + 2), rtol=1e-9)
    np.testing.assert_allclose(marginals[:, 2], (n + 1) / (n + 2), rtol=1e-9)


@every_classifier
def test_nothing_but_constant_labels(model):
    X, Y = make_problem(n_labels=3)
    Y[:] = [0, 1, 0]
    model.fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), Y)
    n = len(X)
    np.testing.assert_allclose(
        model.predict_distribution(X).profile().top, ((n + 1) / (n + 2)) ** 3
    )


def test_a_constant_label_in_a_chain_keeps_the_fast_route():
    X, Y = make_problem(n_labels=3)
    Y[:, 1] = 0
    model = ls.ProbabilisticClassifierChain().fit(X, Y)
    chain = model._expand(X)
    assert isinstance(chain, ls.distributions.LinearChain)
    np.testing.assert_allclose(expit(chain.base[:, 1]), 1 / (len(X) + 2))
    assert not chain.weights[1].any()


def test_a_label_that_is_constant_in_some_bootstraps():
    X, Y = make_problem(n_labels=3)
    Y[:, 1] = 0
    Y[4, 1] = 1
    model = ls.EnsembleOfClassifierChains(n_chains=12, random_state=0).fit(X, Y)
    kinds = {
        type(chain.estimators_[list(chain.order_).index(1)]).__name__ for chain in model.chains_
    }
    assert kinds == {"DummyClassifier", "LogisticRegression"}
    assert (model.predict_proba(X)[:, 1] < 0.5).all()


def test_weights_count_in_the_smoothed_prior():
    X, Y = make_problem(n_samples=10, n_labels=2)
    Y[:, 0] = 1
    weights = np.linspace(0.5, 2.0, 10)
    model = ls.BinaryRelevance().fit(X, Y, sample_weight=weights)
    total = weights.sum()
    np.testing.assert_allclose(model.predict_proba(X)[:, 0], (total + 1) / (total + 2))


@pytest.mark.parametrize(
    "learner",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline("passthrough", make_pipeline("passthrough", LogisticRegression())),
    ],
    ids=["plain", "pipeline", "nested"],
)
@pytest.mark.parametrize(
    "classifier",
    [ls.BinaryRelevance, ls.ProbabilisticClassifierChain, ls.classifiers.ClassifierTrellis],
)
def test_weights_reach_the_base_learner(classifier, learner):
    X, Y = make_problem(n_labels=3)
    weights = np.random.default_rng(0).exponential(size=len(X))
    weighted = classifier(learner).set_params(**_seed(classifier)).fit(X, Y, weights)
    plain = classifier(learner).set_params(**_seed(classifier)).fit(X, Y)
    assert np.abs(joint(weighted, X) - joint(plain, X)).max() > 0.01


def _seed(classifier):
    return {"placement": [0, 1, 2]} if classifier is ls.classifiers.ClassifierTrellis else {}


@every_classifier
def test_weight_zero_is_absence(model):
    X, Y = make_problem()
    weights = np.arange(len(X)) % 3 * 1.0
    kept = weights > 0
    expected = joint(model.fit(X[kept], Y[kept], weights[kept]), X)
    np.testing.assert_array_equal(joint(model.fit(X, Y, weights), X), expected)


def test_a_bootstrap_draws_in_proportion_to_the_weights():
    # A learner without weights of its own: the draws alone carry them.
    X, Y = make_problem(n_samples=60)
    weights = np.where(Y[:, 0] == 1, 5.0, 1.0)
    learner = KNeighborsClassifier(40)
    model = ls.EnsembleOfClassifierChains(learner, n_chains=5, random_state=0)
    plain = model.fit(X, Y).predict_proba(X)[:, 0].mean()
    weighted = model.fit(X, Y, weights).predict_proba(X)[:, 0].mean()
    assert weighted > plain + 0.1


def test_bootstrap_counts_are_worth_repeated_rows():
    # Repeated rows or counts as weights: the same objective, so the same optimum.
    X, Y = make_problem(n_labels=3)
    exact = LogisticRegression(solver="newton-cholesky", tol=1e-10)
    counted = ls.EnsembleOfClassifierChains(exact, n_chains=2, random_state=0).fit(X, Y)
    repeated = ls.EnsembleOfClassifierChains(
        make_pipeline("passthrough", exact), n_chains=2, random_state=0
    ).fit(X, Y)
    np.testing.assert_allclose(joint(counted, X), joint(repeated, X), atol=1e-9)


@every_classifier
def test_one_instance_and_one_label(model):
    X, Y = make_problem(n_labels=1)
    dist = model.fit(X, Y).predict_distribution(X[:1])
    assert (len(dist), dist.n_labels) == (1, 1)
    assert model.predict(X[:1]).shape == (1, 1)
    assert model.predict_proba(X).shape == (len(X), 1)
    model.fit(X[:1], Y[:1])
    np.testing.assert_array_equal(model.predict(X[:1]), Y[:1])


@every_classifier
def test_a_vector_is_the_case_of_one_label(model):
    X, Y = make_problem(n_labels=1)
    words = np.where(Y[:, 0] == 1, "yes", "no")
    as_labelsets = model.fit(X, Y).predict_proba(X)[:, 0]
    model.fit(X, pd.Series(words, name="rain"))
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.label_names_ == ("rain",)
    probabilities = model.predict_proba(X)
    np.testing.assert_array_equal(probabilities[:, 1], as_labelsets)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert set(model.predict(X)) == {"no", "yes"}
    assert model.score(X, words) > 0.5
    assert model.predict_distribution(X).n_labels == 1


@pytest.mark.parametrize("value", [0, 1, 1.0, True])
def test_a_constant_vector_of_zeros_or_ones(value):
    X, _ = make_problem()
    model = ls.ProbabilisticClassifierChain().fit(X, np.full(len(X), value))
    assert model.classes_.tolist() == [0, 1]
    assert (model.predict(X) == value).all()
    expected = (len(X) * value + 1) / (len(X) + 2)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected)


def test_missing_values_where_the_learner_takes_them():
    X, Y = make_problem(n_labels=2)
    X[::7, 0] = np.nan
    learner = HistGradientBoostingClassifier(max_iter=2)
    model = ls.ProbabilisticClassifierChain(learner).fit(X, Y)
    assert np.isfinite(model.predict_proba(X)).all()
    with pytest.raises(ValueError, match="contains NaN"):
        ls.ProbabilisticClassifierChain().fit(X, Y)


def test_predictions_of_many_instances_come_in_parts():
    X, Y = make_problem(n_labels=4)
    model = ls.ProbabilisticClassifierChain(TREE).fit(X, Y)
    np.testing.assert_array_equal(
        np.vstack([joint(model, X[i : i + 7]) for i in range(0, len(X), 7)]), joint(model, X)
    )
