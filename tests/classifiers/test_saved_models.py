"""Pickles and copies of fitted models, as other libraries make them."""

import pickle

import cloudpickle
import joblib
import numpy as np
from data_for_classifiers import make_problem
from sklearn.base import clone

import labelsure as ls

X, Y = make_problem(n_samples=200, n_labels=3)


def test_copies_predict_the_same(tmp_path):
    model = ls.EnsembleOfClassifierChains(n_chains=2, random_state=0).fit(X, Y)
    expected = model.predict_distribution(X).probabilities()
    joblib.dump(model, tmp_path / "model.joblib")
    copies = [
        pickle.loads(pickle.dumps(model)),
        cloudpickle.loads(cloudpickle.dumps(model)),
        joblib.load(tmp_path / "model.joblib"),
        clone(model).fit(X, Y),
    ]
    for copy in copies:
        assert type(copy) is ls.EnsembleOfClassifierChains
        np.testing.assert_array_equal(copy.predict_distribution(X).probabilities(), expected)


def test_a_model_whose_messages_are_worded_differently_is_loaded(tmp_path):
    """As a later version words them: what holds is compared, not how it is said."""
    model = ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(), "hamming", 0.3, cv=0.5, region=0.8, random_state=0
    ).fit(X, Y)
    model.policy_.message_ = model.region_.message_ = "In other words."
    model.save(tmp_path / "model.labelsure")
    loaded = ls.load(tmp_path / "model.labelsure")
    assert loaded.card_ == model.card_
    assert loaded.policy_.message_ == "In other words."
