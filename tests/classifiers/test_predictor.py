"""What every classifier with a distribution shares, and the entry for arrays that are checked."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from data_for_classifiers import make_problem
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import get_tags

import labelsure as ls
from labelsure.classifiers._predictor import LabelsetPredictor

NAMES = ("a", "b", "c")


class Frequencies(LabelsetPredictor):
    """Independent labels with the frequencies of the training data; it wraps nothing."""

    def fit(self, X, y):
        X, Y = self._check_training_data(X, y)
        self.frequencies_ = Y.mean(axis=0)
        return self

    def _distribution_of_checked(self, X):
        marginals = np.tile(self.frequencies_, (X.shape[0], 1))
        return ls.IndependentLabels(marginals, self.label_names_)


class Complement(Frequencies):
    """Wraps an estimator under a name of its own, and predicts the opposite of the mode."""

    def __init__(self, inner=None):
        self.inner = inner

    def _wrapped_estimator(self):
        return self.inner

    def _decide(self, dist):
        return 1 - dist.mode()


def test_predictions_have_the_form_of_y():
    X = np.zeros((4, 2))
    Y = pd.DataFrame([[1, 0, 1.0], [1, 0, 1], [0, 0, 1], [1, 1, 0]], columns=list(NAMES))
    model = Frequencies().fit(X, Y)
    assert model.predict_distribution(X).label_names == NAMES
    np.testing.assert_array_equal(model.predict(X[:1]), [[1.0, 0.0, 1.0]])
    assert model.predict(X).dtype == np.float64
    np.testing.assert_array_equal(model.predict_proba(X[:1]), [[0.75, 0.25, 0.75]])
    vector = Frequencies().fit(X, np.array(["no", "yes", "yes", "yes"]))
    assert vector.predict(X[:1]).tolist() == ["yes"]
    np.testing.assert_array_equal(vector.predict_proba(X[:1]), [[0.25, 0.75]])


def test_a_predictor_chooses_the_labelset_and_the_estimator_whose_tags_hold():
    X, y = np.zeros((4, 2)), [0, 1, 1, 1]
    assert Complement().fit(X, y).predict(X[:1]).tolist() == [0]
    tags = {inner: get_tags(Complement(inner)).input_tags for inner in (None, GaussianNB())}
    assert [tag.sparse for tag in tags.values()] == [True, False]
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        Complement().fit(X, y)
    Complement(HistGradientBoostingClassifier()).fit(X, y)


@pytest.mark.parametrize("make", [np.asfortranarray, pd.DataFrame, sp.csc_matrix])
def test_features_have_one_type_and_layout(make):
    X, Y = make_problem(n_labels=3)
    seen = []

    class Looking(Frequencies):
        def _distribution_of_checked(self, X):
            seen.append(X)
            return super()._distribution_of_checked(X)

    Looking().fit(make(X), Y).predict_distribution(make(X.astype(np.float32)))
    (features,) = seen
    assert features.dtype == np.float64
    assert features.format == "csr" if sp.issparse(features) else features.flags.c_contiguous


@pytest.mark.parametrize(
    "make",
    [
        ls.BinaryRelevance,
        lambda: ls.ProbabilisticClassifierChain(order="random", random_state=0),
        lambda: ls.classifiers.ClassifierTrellis(random_state=0),
        lambda: ls.EnsembleOfClassifierChains(n_chains=2, random_state=0),
    ],
)
@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2, 80)])
def test_checked_arrays_are_fitted_as_any_others(make, weights):
    X, Y = make_problem(n_labels=3)
    expected = make().fit(X, pd.DataFrame(Y.astype(np.int8), columns=list(NAMES)), weights)
    model = make()._fit_checked(X, Y.astype(np.int8), NAMES, weights)
    np.testing.assert_array_equal(
        model._distribution_of_checked(X).probabilities(),
        expected.predict_distribution(X).probabilities(),
    )
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert model.predict(X).dtype == expected.predict(X).dtype
    assert model.predict_distribution(X).label_names == NAMES
    with pytest.raises(ValueError, match="3 features"):
        model.predict(X[:, :2])


def test_checked_arrays_are_not_validated_again(monkeypatch):
    X, Y = make_problem(n_labels=3)

    def refuse(*arguments, **options):
        raise AssertionError("validated again")

    monkeypatch.setattr("labelsure.classifiers._predictor.validate_data", refuse)
    model = ls.EnsembleOfClassifierChains(n_chains=2, random_state=0)
    model._fit_checked(X, Y.astype(np.int8), NAMES)._distribution_of_checked(X)


def test_names_of_labels_are_a_truth_too():
    X, Y = make_problem(n_samples=120, n_labels=3)
    sets = [[name for name, bit in zip("abc", row, strict=True) if bit] for row in Y]
    frame = pd.DataFrame(Y, columns=list("abc"))
    expected = ls.BinaryRelevance().fit(X, frame)
    for y in (sets, list(map(set, sets)), pd.Series(sets), pd.DataFrame({"tags": sets})):
        model = ls.BinaryRelevance().fit(X, y)
        assert model.label_names_ == ("a", "b", "c")
        np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


def test_score_compares_labels_by_name_and_rows_by_index():
    """Columns in another order used to be taken as they came."""
    X, Y = make_problem(n_samples=120, n_labels=3)
    X = pd.DataFrame(X, index=[f"r{i}" for i in range(120)]).rename(columns="x{}".format)
    frame = pd.DataFrame(Y, columns=list("abc"), index=X.index)
    model = ls.BinaryRelevance().fit(X, frame)
    expected = (model.predict(X) == Y).all(axis=1).mean()
    for y in (Y, frame, frame[["c", "a", "b"]], frame.sample(frac=1, random_state=0)):
        assert model.score(X, y) == pytest.approx(expected)
    with pytest.raises(ls.InputError, match="unknown"):
        model.score(X, frame.rename(columns={"a": "z"}))
    assert list(model.predict_distribution(X).index) == list(X.index)
