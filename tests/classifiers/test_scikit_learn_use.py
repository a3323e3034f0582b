"""Pipelines, searches, metadata routing, and pickles: classifiers as people use them."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from data_for_classifiers import make_problem
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

import labelsure as ls

TREE = DecisionTreeClassifier(max_depth=3, random_state=0)

ALL = [
    ls.BinaryRelevance(),
    ls.ProbabilisticClassifierChain(),
    ls.classifiers.ClassifierTrellis(random_state=0),
    ls.EnsembleOfClassifierChains(n_chains=3, random_state=0),
    ls.ProbabilisticClassifierChain(make_pipeline(StandardScaler(), LogisticRegression())),
    ls.EnsembleOfClassifierChains(TREE, n_chains=3, random_state=0),
]
every_classifier = pytest.mark.parametrize("model", ALL, ids=str)


def joint(model, X):
    return model.predict_distribution(X).probabilities()


@every_classifier
def test_tags(model):
    tags = get_tags(model)
    assert tags.estimator_type == "classifier"
    assert tags.classifier_tags.multi_label
    assert not tags.classifier_tags.multi_class
    assert tags.target_tags.multi_output
    assert tags.target_tags.single_output
    assert not tags._skip_test
    # A scaler that centres refuses sparse features, and so does what is built on it.
    assert tags.input_tags.sparse == (not hasattr(model.estimator, "steps"))


@every_classifier
def test_score_is_the_share_of_exact_matches(model):
    X, Y = make_problem(n_labels=3)
    predicted = model.fit(X, Y).predict(X)
    assert model.score(X, Y) == (predicted == Y).all(axis=1).mean()
    weights = np.arange(len(X))
    expected = np.average((predicted == Y).all(axis=1), weights=weights)
    np.testing.assert_allclose(model.score(X, Y, weights), expected)


@every_classifier
def test_behind_a_transformer_with_pandas_output(model):
    X, Y = make_problem(n_labels=3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), clone(model))
    pipeline.fit(frame, Y)
    assert pipeline[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    assert pipeline.predict(frame).shape == Y.shape
    assert pipeline.predict_proba(frame).shape == Y.shape


@every_classifier
def test_grid_search_over_the_base_learner(model):
    X, Y = make_problem(n_labels=3)
    model = clone(model).set_params(estimator=LogisticRegression())
    search = GridSearchCV(model, {"estimator__C": [1e-4, 1.0]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"estimator__C": 1.0}
    assert search.predict_proba(X).shape == Y.shape


@pytest.mark.parametrize("scoring", ["accuracy", "f1_macro", "roc_auc", "average_precision"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_scorers(scoring, n_labels):
    X, Y = make_problem(n_labels=n_labels)
    scores = cross_val_score(ls.ProbabilisticClassifierChain(), X, Y, scoring=scoring, cv=3)
    assert ((scores > 0.2) & (scores <= 1)).all()


@every_classifier
def test_sample_weight_is_routed(model):
    X, Y = make_problem(n_labels=3)
    weights = np.where(Y[:, 0] == 1, 20.0, 1.0)
    expected = joint(clone(model).set_params(estimator=TREE).fit(X, Y, weights), X)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clone(model).set_params(estimator=TREE).set_fit_request(sample_weight=True)
        pipeline = make_pipeline("passthrough", routed).fit(X, Y, sample_weight=weights)
        np.testing.assert_array_equal(joint(pipeline[-1], X), expected)
        routed.set_score_request(sample_weight=True)
        scores = cross_validate(routed, X, Y, cv=2, params={"sample_weight": weights})
        assert (scores["test_score"] > 0).all()
        with pytest.raises(UnsetMetadataPassedError):
            make_pipeline(clone(routed).set_fit_request(sample_weight=None)).fit(
                X, Y, sample_weight=weights
            )


def test_routing_inside_a_base_pipeline():
    X, Y = make_problem(n_labels=2)
    weights = np.where(Y[:, 0] == 1, 20.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        learner = LogisticRegression().set_fit_request(sample_weight=True)
        model = ls.BinaryRelevance(make_pipeline(scaler, learner)).fit(X, Y, weights)
    np.testing.assert_allclose(
        model.estimators_[0][0].mean_, np.average(X, axis=0, weights=weights)
    )


@every_classifier
def test_pickles_of_models_and_distributions(model):
    X, Y = make_problem(n_labels=3)
    Y[:, 2] = 0
    dist = model.fit(X, Y).predict_distribution(X)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(joint(loaded, X), dist.probabilities())
    again = pickle.loads(pickle.dumps(dist))
    np.testing.assert_array_equal(again.probabilities(), dist.probabilities())


def test_the_default_learner_converges_on_raw_features():
    # Warnings are errors here, and no learner was stopped at its limit.
    X, Y = make_problem(n_samples=200, n_features=10)
    scales = 10.0 ** np.linspace(-1, 1, 10)
    model = ls.ProbabilisticClassifierChain().fit(X * scales + 5, Y)
    for learner in model.estimators_:
        assert learner.n_iter_[0] < learner.max_iter


def test_fitting_leaves_arguments_alone():
    X, Y = make_problem()
    order, learner = [4, 3, 2, 1, 0], LogisticRegression()
    model = ls.ProbabilisticClassifierChain(learner, order=order).fit(X, Y)
    assert model.estimator is learner
    assert not hasattr(learner, "coef_")
    assert model.order is order
