"""A batch without rows: predictions are empty, estimates of a mean are refused by name."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.tree import DecisionTreeClassifier

import labelsure as ls

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
Y = (X[:, :2] + rng.normal(size=(120, 2)) > 0).astype(int)
P = rng.uniform(0.05, 0.95, size=(120, 2))
NETWORK = MultiOutputClassifier(LogisticRegression())
CLASSIFIERS = {
    "linear": ls.BinaryRelevance(),
    "trees": ls.ProbabilisticClassifierChain(DecisionTreeClassifier(max_depth=2)),
    "ensemble": ls.EnsembleOfClassifierChains(n_chains=2, random_state=0),
    "powersets": ls.LabelPowerset(),
    "recalibrated": ls.RecalibratedClassifier(ls.BinaryRelevance()),
}
MODELS = {
    **CLASSIFIERS,
    "forest": RandomForestClassifier(5, random_state=0),
    "other library": NETWORK,
    "frozen": FrozenEstimator(NETWORK.fit(X, Y)),
    "precomputed": ls.PrecomputedProbabilities(),
}


@pytest.mark.parametrize("classifier", CLASSIFIERS.values(), ids=CLASSIFIERS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_classifiers_predict_no_rows(classifier, form):
    model = classifier.fit(X, Y)
    dist = model.predict_distribution(form(X)[:0])
    assert type(dist) is type(model.predict_distribution(X[:1]))
    assert (len(dist), dist.n_labels) == (0, 2)
    assert model.predict(form(X)[:0]).shape == model.predict_proba(form(X)[:0]).shape == (0, 2)


@pytest.mark.filterwarnings("ignore:.*held out")
@pytest.mark.parametrize("estimator", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("decision", ["best", "mode", "predict"])
def test_the_flagship_predicts_no_rows(estimator, decision):
    data = P if isinstance(estimator, ls.PrecomputedProbabilities) else X
    model = ls.AccuracyAwareClassifier(estimator, "f1", decision=decision, share=0.5, cv=0.5)
    model.fit(data, Y)
    none = data[:0]
    assert model.predict(none).shape == (0, 2)
    assert len(model.predict_distribution(none)) == len(model.predict_accuracy(none)) == 0
    assert len(model.accept(none)) == len(model.predict_region(none)) == 0
    assessment = model.assess(none)
    assert len(assessment) == 0
    table, row = assessment.to_frame(), model.assess(data[:1], shift="ignore").to_frame()
    assert len(table) == 0
    assert list(table) == list(row)
    with pytest.raises(ls.InputError, match="A batch must hold at least one row, got none"):
        model.estimate(none)


def test_the_index_of_no_rows_is_kept():
    frame = pd.DataFrame(X, columns=list("abc"), index=[f"row {i}" for i in range(len(X))])
    model = ls.BinaryRelevance().fit(frame, Y)
    assert model.predict_distribution(frame[:0]).index.equals(frame.index[:0])


@pytest.mark.filterwarnings("ignore:.*held out")
@pytest.mark.parametrize("estimator", [ls.BinaryRelevance(), RandomForestClassifier(5), NETWORK])
@pytest.mark.parametrize("form", ["records", "frame", "lists"])
def test_an_empty_list_is_a_batch_without_rows(estimator, form):
    frame = pd.DataFrame(X, columns=list("abc"))
    rows = {"records": frame.to_dict("records"), "frame": frame, "lists": X.tolist()}[form]
    model = ls.AccuracyAwareClassifier(estimator, "f1", share=0.5, cv=0.5).fit(rows, Y)
    found = model.assess([])
    assert len(found) == len(found.accepted) == len(found.to_frame()) == 0
    assert model.predict([]).shape == (0, 2)
