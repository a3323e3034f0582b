"""Saved models name public places, so that moving a file inside the package breaks none of them."""

import io
import json
import pickle
import zipfile

import cloudpickle
import joblib
import numpy as np
import pytest
from data_for_classifiers import make_problem
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning

import labelsure as ls

X, Y = make_problem(n_samples=200, n_labels=3)


def fit_estimator(model):
    dist = ls.BinaryRelevance().fit(X, Y).predict_distribution(X)
    return ls.AccuracyEstimator("jaccard", model=model).fit(dist, Y)


def fit_policy():
    rng = np.random.default_rng(0)
    return ls.AcceptPolicy(0.1).fit(rng.random(200), rng.random(200))


def fit_aware():
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), "hamming", 0.3, random_state=0)
    return model.fit(X, Y)


ESTIMATORS = [
    pytest.param(lambda: ls.BinaryRelevance().fit(X, Y), id="BinaryRelevance"),
    pytest.param(lambda: ls.ClassifierTrellis().fit(X, Y), id="ClassifierTrellis"),
    pytest.param(
        lambda: ls.ProbabilisticClassifierChain().fit(X, Y), id="ProbabilisticClassifierChain"
    ),
    pytest.param(
        lambda: ls.EnsembleOfClassifierChains(n_chains=2).fit(X, Y), id="EnsembleOfClassifierChains"
    ),
    *(
        pytest.param(lambda model=model: fit_estimator(model), id=model)
        for model in ("ridge", "plugin")
    ),
    pytest.param(fit_policy, id="AcceptPolicy"),
    pytest.param(fit_aware, id="AccuracyAwareClassifier"),
]


def saved_names(data):
    """Return the types that a skops file names, each with its module."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return set(type_names(json.loads(file.read("schema.json"))))


def type_names(node):
    if isinstance(node, dict):
        if "__module__" in node:
            yield f"{node['__module__']}.{node['__class__']}"
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from type_names(part)


@pytest.mark.parametrize("fit", ESTIMATORS)
def test_a_saved_model_names_public_places(fit, tmp_path):
    model = fit()
    model.save(tmp_path / "model.labelsure")
    names = saved_names((tmp_path / "model.labelsure").read_bytes())
    own = {name for name in names if name.partition(".")[0] == "labelsure"}
    assert f"labelsure.{type(model).__name__}" in own
    assert not [name for name in own if name.count(".") > 1]
    assert type(ls.load(tmp_path / "model.labelsure")) is type(model)


def test_classes_are_found_again_by_these_names(tmp_path):
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


def test_a_pickle_warns_of_another_scikit_learn(monkeypatch):
    data = pickle.dumps(fit_policy())
    pickle.loads(data)  # without a warning, which would be an error here
    monkeypatch.setattr("labelsure.saving._savable.sklearn.__version__", "0.1")
    with pytest.warns(InconsistentVersionWarning, match="unpickle estimator AcceptPolicy from"):
        pickle.loads(data)


def test_a_model_whose_messages_are_worded_differently_is_loaded(tmp_path):
    """As a later version words them: what holds is compared, not how it is said."""
    model = ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(), "hamming", 0.3, cv=0.5, region=0.8, random_state=0
    ).fit(X, Y)
    model.policy_.message_ = model.region_.message_ = "In other words."
    model.save(tmp_path / "model.labelsure")
    loaded = ls.load(tmp_path / "model.labelsure")
    assert loaded.card_ == model.card_
    assert loaded.summary_.startswith("In other words.")
