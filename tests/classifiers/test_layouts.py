"""`as_distribution`: the layouts that people have."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

import labelsure as ls

P = np.array([[0.9, 0.2, 0.5], [0.0, 1.0, 0.25]])
KEPT_OFF = P.clip(2.0**-24, 1 - 2.0**-24)  # what becomes of estimates
PAIRS = np.stack([1 - P, P], axis=2)


@pytest.mark.parametrize(
    "source",
    [
        P,
        P.tolist(),
        tuple(map(tuple, P)),
        np.asfortranarray(P),
        pd.DataFrame(P),
        PAIRS,
        np.asfortranarray(PAIRS),
        list(PAIRS.swapaxes(0, 1)),
        tuple(PAIRS.swapaxes(0, 1)),
        [pd.DataFrame(pair) for pair in PAIRS.swapaxes(0, 1)],
        PAIRS.swapaxes(0, 1).tolist(),
    ],
    ids=[
        "array",
        "lists",
        "tuples",
        "fortran",
        "frame",
        "pairs",
        "fortran pairs",
        "list of pairs",
        "tuple of pairs",
        "frames of pairs",
        "lists of pairs",
    ],
)
def test_marginals(source):
    dist = ls.as_distribution(source)
    assert isinstance(dist, ls.IndependentLabels)
    assert_array_equal(dist.marginals(), KEPT_OFF)


def test_float32_stays_float32():
    dist = ls.as_distribution(P.astype(np.float32))
    assert dist._p.dtype == np.float32
    assert_allclose(dist.marginals(), P, atol=1e-7)
    pairs = ls.as_distribution((PAIRS * (1 + 3e-5)).astype(np.float32).clip(0, 1))
    assert_allclose(pairs.marginals(), P, atol=1e-4)


def test_logits():
    logits = np.array([[0.0, 800.0, -800.0], [np.log(3), np.inf, -np.inf]])
    with pytest.warns(ls.ProbabilityWarning, match="seven"):
        dist = ls.as_distribution(logits, kind="logit")
    assert isinstance(dist, ls.IndependentLabels)
    assert_allclose(dist.marginals(), [[0.5, 1, 0], [0.75, 1, 0]], atol=1e-300)


@pytest.mark.parametrize("wrap", [np.array, np.ndarray.tolist, pd.DataFrame, np.asfortranarray])
def test_joint(wrap):
    joint = np.array([[0.1, 0.2, 0.3, 0.4]])
    dist = ls.as_distribution(wrap(joint), kind="joint", label_names=["a", "b"])
    assert isinstance(dist, ls.DenseDistribution)
    assert_array_equal(dist.probabilities(), joint)
    assert dist.label_names == ("a", "b")


def test_the_kind_is_never_guessed_from_sums():
    """A row that sums to one is still a row of marginals."""
    dist = ls.as_distribution([[0.25, 0.25, 0.25, 0.25]])
    assert isinstance(dist, ls.IndependentLabels)
    assert dist.n_labels == 4


def test_a_distribution_stays_as_it_is():
    for dist in (ls.IndependentLabels(P), ls.DenseDistribution([[0.5, 0.5]])):
        assert ls.as_distribution(dist) is dist


def test_label_names():
    frame = pd.DataFrame(P, columns=["cat", "dog", 7])
    assert ls.as_distribution(frame).label_names == ("cat", "dog", "7")
    assert ls.as_distribution(frame, kind="logit").label_names == ("cat", "dog", "7")
    with pytest.raises(ls.InputError, match="missing are 'a'"):
        ls.as_distribution(frame, label_names=["a", "b", "c"])
    assert ls.as_distribution(PAIRS, label_names=["a", "b", "c"]).label_names == ("a", "b", "c")
    assert ls.as_distribution(P).label_names is None


def test_what_scikit_learn_predicts():
    X, Y = make_multilabel_classification(n_samples=80, n_classes=3, random_state=0)
    model = MultiOutputClassifier(LogisticRegression(max_iter=2000)).fit(X, Y)
    dist = ls.as_distribution(model.predict_proba(X))
    assert_array_equal(dist.mode(), model.predict(X))


@pytest.mark.parametrize("kind", ["marginal", "logit"])
def test_no_instance(kind):
    assert ls.as_distribution(np.empty((0, 3)), kind=kind).marginals().shape == (0, 3)


def test_no_instance_of_other_layouts():
    assert ls.as_distribution(np.empty((0, 3, 2))).marginals().shape == (0, 3)
    assert ls.as_distribution([np.empty((0, 2))] * 3).marginals().shape == (0, 3)
    assert ls.as_distribution(np.empty((0, 8)), kind="joint").marginals().shape == (0, 3)


@pytest.mark.parametrize("wrap", [np.array, lambda pairs: list(np.swapaxes(pairs, 0, 1))])
def test_pairs_that_sum_to_one_but_are_no_probabilities(wrap):
    with pytest.raises(ls.InputError, match=r"must lie in \[0, 1\], got -0.5"):
        ls.as_distribution(wrap(np.array([[[0.5, 0.5], [-0.5, 1.5]]])))
