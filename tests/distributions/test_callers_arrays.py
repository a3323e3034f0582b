"""What is masked is not taken for known, and what a caller changes later changes no answer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import labelsure as ls
from labelsure.errors import InputError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 2))
Y = RNG.integers(0, 2, size=(20, 2))
P = RNG.uniform(size=(20, 2))


def masked(values):
    """Return the values with the first one masked."""
    array = np.ma.array(values)
    array[(0,) * array.ndim] = np.ma.masked
    return array


def fitted(classifier):
    return classifier.fit(X, Y)


CALLS = {
    "marginals": lambda m: ls.IndependentLabels(m(P)),
    "probabilities": lambda m: ls.DenseDistribution(m([[0.5, 0.5]])),
    "source": lambda m: ls.as_distribution(m(P)),
    "labelsets": lambda m: ls.LabelsetTable(m([[[1, 0]]]), [[1.0]]),
    "samples": lambda m: ls.LabelsetTable.from_samples(m([[[1, 0]]])),
    "base": lambda m: ls.distributions.LinearChain([0, 1], m(P), np.zeros((2, 2))),
    "weights": lambda m: ls.distributions.LinearChain([0, 1], P, m(np.zeros((2, 2)))),
    "Y_true": lambda m: ls.accuracy(m(Y), Y, "jaccard"),
    "Y_pred": lambda m: ls.expected_accuracy(ls.IndependentLabels(P), m(Y), metric="jaccard").value,
    "Y": lambda m: ls.Dataset(X, m(Y)),
    "X": lambda m: ls.Dataset(m(X), Y),
    "score": lambda m: ls.AcceptPolicy(0.5).fit(m(P[:, 0]), P[:, 1]),
    "accuracy": lambda m: ls.AcceptPolicy(0.5).fit(P[:, 0], m(P[:, 1])),
    "X of fit": lambda m: ls.BinaryRelevance().fit(m(X), Y),
    "y of fit": lambda m: ls.BinaryRelevance().fit(X, m(Y)),
    "sample_weight": lambda m: ls.BinaryRelevance().fit(X, Y, m(np.ones(20))),
    "X of predict": lambda m: fitted(ls.BinaryRelevance()).predict(m(X)),
    "X of a model": lambda m: ls.as_distribution(fitted(ls.BinaryRelevance()), m(X)),
    "X of an aware fit": lambda m: aware().fit(m(X), Y),
    "y of an aware fit": lambda m: aware().fit(X, m(Y)),
    "X of an estimate": lambda m: fitted(aware()).estimate(m(X)),
}


def aware():
    return ls.AccuracyAwareClassifier(ls.BinaryRelevance(), metric="hamming", cv=5, random_state=0)


@pytest.mark.parametrize("name", CALLS)
def test_masks_are_refused_wherever_arrays_go(name):
    argument = name.partition(" ")[0]
    argument = "labelsets[0]" if argument == "labelsets" else argument
    with pytest.raises(InputError, match="masked") as caught:
        CALLS[name](masked)
    assert str(caught.value).startswith(f"`{argument}`")
    assert "no masked values, got 1. Fill them with `.filled(...)`, or drop" in str(caught.value)
    CALLS[name](np.ma.array)  # nothing is masked


def test_masks_in_a_list():
    pairs = [np.ma.array([[0.2, 0.8]]), masked([[0.4, 0.6]])]
    with pytest.raises(InputError, match="`source`"):
        ls.as_distribution(pairs)


KINDS = {
    "marginals": (ls.IndependentLabels, [[0.3, 0.6]]),
    "all probabilities": (ls.DenseDistribution, [[0.1, 0.2, 0.3, 0.4]]),
    "joint": (lambda P: ls.as_distribution(P, kind="joint"), [[0.1, 0.2, 0.3, 0.4]]),
    "pairs": (ls.as_distribution, [[[0.3, 0.7], [0.4, 0.6]]]),
    "chain": (
        lambda base: ls.distributions.ChainMixture(
            [ls.distributions.LinearChain([0, 1], base, np.ones((2, 2)))]
        ),
        [[0.3, 0.6]],
    ),
    "weights": (
        lambda weights: ls.distributions.ChainMixture(
            [ls.distributions.LinearChain([0, 1], [[0.3, 0.6]], weights)]
        ),
        [[0.0, 0.0], [2.0, 0.0]],
    ),
    "trellis": (
        lambda first: ls.distributions.TrellisDistribution(
            [first, [[0.1, 0.8]]], [(), (0,)], [1, 0]
        ),
        [[0.3]],
    ),
    "table": (lambda p: ls.LabelsetTable([[[1, 0], [1, 1]]], p), [[0.25, 0.75]]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_distributions_do_not_change_with_the_callers_array(kind, dtype):
    make, values = KINDS[kind]
    array = np.array(values, dtype=dtype)
    dist = make(array)
    before = dist.marginals(), dist.probabilities().copy()
    array[...] = 0.125
    assert_array_equal(dist.marginals(), before[0])
    assert_array_equal(dist.probabilities(), before[1])
    dist.marginals()[...] = 0.5  # nor do answers
    assert_array_equal(dist.marginals(), before[0])
    assert_array_equal(dist[:1].marginals(), before[0])


def test_a_large_array_can_be_used_without_a_copy():
    array = np.array([[0.1, 0.2, 0.3, 0.4]])
    dist = ls.DenseDistribution(array, copy=False)
    found = dist.probabilities()
    assert np.shares_memory(found, array)
    with pytest.raises(ValueError, match="read-only"):
        found[0, 0] = 1.0
    assert array.flags.writeable
    assert not np.shares_memory(ls.DenseDistribution(array).probabilities(), array)
    array *= 3
    divided = ls.DenseDistribution(array, normalise=True, copy=False).probabilities()
    assert_allclose(divided, [[0.1, 0.2, 0.3, 0.4]])


@pytest.mark.parametrize("order", [[0.5, 1.9], [0.0, 1.0], [True, False], ["0", "1"]])
def test_an_order_of_labels_is_whole_numbers(order):
    with pytest.raises(InputError, match="`order`"):
        ls.distributions.LinearChain(order, [[0.0, 0.0]], np.zeros((2, 2)))


SEED = r"`random_state` must be a whole number from 0 to 4294967295, a numpy RandomState or None, "


@pytest.mark.parametrize("random_state", [-1, 2**32, 1.5, "seed", np.random.default_rng(0)])
@pytest.mark.parametrize(
    "classifier",
    [
        ls.BinaryRelevance,
        ls.ProbabilisticClassifierChain,
        ls.EnsembleOfClassifierChains,
        ls.classifiers.ClassifierTrellis,
        lambda random_state: ls.AccuracyAwareClassifier(
            ls.BinaryRelevance(), metric="hamming", random_state=random_state
        ),
        lambda random_state: ls.AccuracyAwareClassifier(
            ls.BinaryRelevance(), metric="hamming", cv=0.5, random_state=random_state
        ),
    ],
)
def test_random_states_of_classifiers(classifier, random_state):
    with pytest.raises(InputError, match=SEED + "got "):
        classifier(random_state=random_state).fit(X, Y)


def test_random_states_of_an_estimator_of_accuracy():
    dist = ls.IndependentLabels(P)
    with pytest.raises(InputError, match="`random_state`"):
        ls.AccuracyEstimator("hamming", random_state=-1).fit(dist, Y)


@pytest.mark.parametrize("labels", [["even", "prime", "even"], "even,even"])
def test_labels_that_are_named_twice(labels, tmp_path):
    with pytest.raises(InputError, match="`labels`"):
        ls.load_dataset("digits", labels=labels)
    path = tmp_path / "a.csv"
    path.write_text("even,prime,x\n0,1,2\n1,0,3\n")
    with pytest.raises(InputError, match="`labels`"):
        ls.read_dataset(path, labels)
    assert ls.read_dataset(path, "even,e*,prime").label_names == ("even", "prime")
