"""Models that may have been trained on the instances that they are calibrated with."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier

import labelsure as ls

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5))
Y = (X[:, :3] + RNG.normal(size=(300, 3)) > 0).astype(int)
FORMS = {
    "array": lambda X: X,
    "frame": lambda X: pd.DataFrame(X).add_prefix("x"),
    "sparse": sp.csr_matrix,
}


@pytest.mark.parametrize("cv", [0.4, 5])
@pytest.mark.parametrize("form", FORMS)
def test_held_out_rows_that_are_training_rows(form, cv):
    rows = np.repeat(np.arange(150), 2)
    make = FORMS[form]
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), cv=cv, random_state=0)
    with pytest.warns(UserWarning, match="identical"):
        model.fit(make(X[rows]), Y[rows])
    model.fit(make(X), Y)
    other = Y[rows].copy()
    other[::2] = 1 - other[::2]
    model.fit(make(X[rows]), other)  # the same features with other labels are new instances


def test_texts():
    texts = [f"word{i % 50} of {i % 150}" for i in range(600)]
    truth = np.array([[i % 2, i % 150 < 30] for i in range(600)], dtype=int)
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.multioutput import MultiOutputClassifier
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(CountVectorizer(), MultiOutputClassifier(LogisticRegression()))
    with pytest.warns(UserWarning, match="identical"):
        ls.AccuracyAwareClassifier(model, cv=0.4, random_state=0).fit(texts, truth)


def test_instances_of_few_categories_are_no_copies():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (600, 3))
    truth = (rng.random((600, 2)) < 0.5).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ls.AccuracyAwareClassifier(ls.BinaryRelevance(), cv=0.4, random_state=0).fit(X, truth)


def test_a_model_that_was_trained_on_the_calibration_set():
    tree = DecisionTreeClassifier(random_state=0).fit(X[:200], Y[:200])
    model = ls.AccuracyAwareClassifier(FrozenEstimator(tree), target=0.9, random_state=0)
    with pytest.warns(UserWarning, match="entirely"):
        model.fit(X[:200], Y[:200])
    assert model.guaranteed_
    assert model.card_.summary.endswith(
        "Guaranteed if the model was not trained on the calibration set, which cannot be checked "
        "here."
    )
    fair = ls.AccuracyAwareClassifier(FrozenEstimator(tree), target=0.2, random_state=0)
    fair.fit(X[200:], Y[200:])  # no question


def test_new_instances_differ_from_those_of_the_training():
    """Probabilities of training instances are 0 or 1, and those of others are not."""
    P = RNG.uniform(0.1, 0.9, size=(400, 3))
    sure = np.where(Y[:200] == 1, 0.999, 0.001)
    estimator = ls.AccuracyEstimator("jaccard").fit(ls.IndependentLabels(sure), Y[:200])
    with pytest.warns(ls.ShiftWarning, match="perfect"):
        estimator.estimate(ls.IndependentLabels(P))
