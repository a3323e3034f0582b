"""What is refused: wrong shapes and values, what does not fit in memory; by type and one word."""

import pickle
import tracemalloc

import numpy as np
import pytest

import labelsure as ls
from labelsure.errors import unknown_name
from labelsure.labelsets.reading import read_rows
from labelsure.metrics.registry import Metric, check_metrics

DENSE = ls.DenseDistribution([[0.1, 0.2, 0.3, 0.4], [1, 0, 0, 0]])
KINDS = [
    ls.IndependentLabels([[0.9, 0.2], [0.5, 0.5]]),
    DENSE,
    ls.LabelsetTable([[[1, 0], [1, 1]], [[0, 0]]], [[0.25, 0.75], [1]]),
    ls.distributions.TrellisDistribution([[[0.2], [0.5]], [[0.3, 0.6]] * 2], [[], [0]], [1, 0]),
    ls.distributions.ChainMixture(
        [ls.distributions.LinearChain([1, 0], [[0.0, -2.0]] * 2, [[0, 0], [4.0, 0]])]
    ),
]
for_each_kind = pytest.mark.parametrize("dist", KINDS, ids=lambda dist: type(dist).__name__)


@pytest.mark.parametrize(
    "error",
    [ls.InputError("a"), ls.TooLargeError("c"), unknown_name("metric", "jacard", ["jaccard"])],
)
def test_errors_survive_pickling(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert isinstance(error, ls.LabelsureError)
    assert isinstance(error, ValueError)


def test_the_nearest_name_whatever_its_case():
    assert "Did you mean 'HP'" in str(unknown_name("candidate", "hp", ["HP", "TG"]))
    assert "Did you mean" not in str(unknown_name("candidate", "xyz", ["HP", "TG"]))


@pytest.mark.parametrize("Y", [[0, 1], np.zeros((2, 0)), np.zeros((1, 2, 3)), 1, [], [[0, 1], [1]]])
def test_shapes_of_labelsets(Y):
    with pytest.raises(ls.InputError, match=r"shape|lengths"):
        read_rows(Y)


@pytest.mark.parametrize("value", [2, -1, 0.5, 256, np.nan, np.inf])
def test_values_of_labelsets(value):
    Y = np.zeros((3, 4))
    Y[1, 2] = value
    with pytest.raises(ls.InputError, match="row 1, column 2"):
        read_rows(Y)


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        ([["cat", "dog"]], "got 'cat' in row 0, column 0. Compare texts"),
        ([[b"cat", b"dog"]], "got b'cat' in row 0, column 0. Compare texts"),
        ([[None, 1]], "got nan in row 0, column 0. A missing label is not an absent one"),
        ([[1j]], "dtype"),
    ],
)
def test_types_of_labelsets(Y, message):
    with pytest.raises(ls.InputError, match=message):
        read_rows(Y)


@pytest.mark.parametrize("names", ["a,b", ["a"], ["a", "b", "c"], ["a", "a"], ["1", 1], 7])
def test_label_names(names):
    for make in (
        lambda: ls.IndependentLabels([[0.5, 0.5]], names),
        lambda: ls.DenseDistribution([[0.25] * 4], names),
        lambda: ls.LabelsetTable([[[0, 0]]], [[1.0]], names),
    ):
        with pytest.raises(ls.InputError, match="label_names"):
            make()
    with pytest.raises(ls.errors.UnknownNameError, match="catt"):
        ls.read_labelsets([["catt"]], ["cat", "dog"])


@pytest.mark.parametrize("metric", ["jacard", "F1", 3, None, ["jaccard"]])
def test_metrics(metric):
    for ask in (
        lambda: ls.accuracy([[0]], [[0]], metric),
        lambda: ls.decide(DENSE, metric).labelsets,
        lambda: ls.expected_accuracy(DENSE, metric=metric).value,
    ):
        with pytest.raises(ls.InputError, match="metric"):
            ask()


@pytest.mark.parametrize("empty", [-0.1, 1.5, np.nan, np.inf, "one", None])
def test_empty(empty):
    for ask in (
        lambda: ls.accuracy([[0]], [[0]], "f1", empty=empty),
        lambda: ls.decide(DENSE, "f1", empty=empty).labelsets,
        lambda: ls.expected_accuracy(DENSE, metric="f1", empty=empty).value,
    ):
        with pytest.raises(ls.InputError, match="empty"):
            ask()


@for_each_kind
def test_a_metric_that_is_not_finite(dist):
    def precision(tp, fp, fn, tn):
        return tp / (tp + fp)

    with pytest.raises(ls.InputError, match="finite"):
        ls.expected_accuracy(dist, [[0, 0], [0, 0]], metric=precision)
    with pytest.raises(ls.InputError, match="finite"):
        ls.accuracy([[1, 0]], [[0, 0]], precision)


def test_two_metrics_of_one_name():
    def one(tp, fp, fn, tn):
        return tp + 0.0

    with pytest.raises(ls.InputError, match="distinct"):
        check_metrics([one, Metric("one", lambda tp, fp, fn, tn: fp)])
    assert [metric.name for metric in check_metrics([one, "f1", "f1"])] == ["one", "f1", "f1"]


@pytest.mark.parametrize("shape", [(4,), (1, 3), (1, 1), (2, 0), (1, 2, 2), ()])
def test_shapes_of_probabilities(shape):
    with pytest.raises(ls.InputError, match="shape"):
        ls.DenseDistribution(np.zeros(shape))
    if shape not in [(1, 3), (1, 1)]:
        with pytest.raises(ls.InputError, match="shape"):
            ls.IndependentLabels(np.zeros(shape))


@pytest.mark.parametrize("values", [[["a", "b"]], [[1j, 0]], [[None, 1.0]], [[0.5, 0.5], [1.0]]])
@pytest.mark.parametrize("make", [ls.DenseDistribution, ls.IndependentLabels])
def test_types_of_probabilities(make, values):
    with pytest.raises(ls.InputError, match="numbers"):
        make(values)


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_of_probabilities(value, dtype):
    p = np.full((3, 4), 0.25, dtype=dtype)
    p[2, 1] = value
    with pytest.raises(ls.InputError, match="row 2"):
        ls.IndependentLabels(p)
    for normalise in (False, True):
        if value != 1.1 or not normalise:
            with pytest.raises(ls.InputError, match="row 2"):
                ls.DenseDistribution(p, normalise=normalise)
            with pytest.raises(ls.InputError, match="row 2"):
                ls.LabelsetTable([[[0], [1], [0], [1]]] * 3, p, normalise=normalise)


@pytest.mark.parametrize(
    ("probabilities", "normalise"),
    [([[1.5, -0.5]], False), ([[0.5, 0.4]], False), ([[0, 0]], True)],
)
def test_sums_of_probabilities(probabilities, normalise):
    with pytest.raises(ls.InputError, match="probabilities"):
        ls.DenseDistribution(probabilities, normalise=normalise)
    with pytest.raises(ls.InputError, match="probabilities"):
        ls.LabelsetTable([[[0], [1]]], probabilities, normalise=normalise)


@pytest.mark.parametrize(
    ("labelsets", "probabilities"),
    [
        ([[[0]]], [[1.0], [1.0]]),
        ([[[0], [1]]], [[1.0]]),
        ([[[0]], np.empty((0, 1))], [[1.0], []]),
        ([[[0, 1]], [[1]]], [[1.0], [1.0]]),
        ([[0, 1]], [[1.0]]),
        ([[[0, 2]]], [[1.0]]),
        ([[[0]]], [["a"]]),
        ([], []),
        (3, [[1.0]]),
        ([[[0]]], None),
    ],
)
def test_tables(labelsets, probabilities):
    with pytest.raises(ls.InputError, match=r"labelsets|probabilities"):
        ls.LabelsetTable(labelsets, probabilities)


@pytest.mark.parametrize("samples", [np.zeros((2, 3)), np.zeros((2, 0, 3)), [[[0]], [[0], [1]]]])
def test_samples(samples):
    with pytest.raises(ls.InputError, match="samples"):
        ls.LabelsetTable.from_samples(samples)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ([[0.5]], "logits"),
        ([np.full((3, 2), 0.5), np.ones((3, 1))], "marginal"),
        (np.zeros((1, 2, 3)), "marginal"),
        ([[[0.5, 0.25]]], "marginal"),
        ([[[1.5, -0.5]]], "marginal"),
        ([[0.0, 2.0], [np.nan, 0.0]], "logit"),
        ([0.5, 0.5], "marginal"),
        ([0.5, 0.5], "joint"),
        ([0.5, 0.5], "logit"),
        ([[0.5, 3.0]], "marginal"),
    ],
)
def test_arrays(source, kind):
    with pytest.raises(ls.InputError):
        ls.as_distribution(source, kind=kind)


@for_each_kind
def test_questions(dist):
    for Y in (np.zeros((2, 3)), np.zeros((1, 2)), [[0, 0], [0.5, 1]]):
        with pytest.raises(ls.InputError, match="`Y`"):
            dist.log_prob(Y)
        with pytest.raises(ls.InputError, match="`Y_pred`"):
            ls.expected_accuracy(dist, Y, metric="f1")
    for k in (0, -1, 5, 1.0, "2", None):
        with pytest.raises(ls.InputError, match="`k`"):
            dist.top(k)
    for size in (-1, 1.0, None, (2, 3)):
        with pytest.raises(ls.InputError, match="`size`"):
            dist.sample(size)
    for random_state in (-1, 0.5, "seed"):
        with pytest.raises(ls.InputError, match="`random_state`"):
            dist.sample(1, random_state=random_state)
    for rows in (2, -3, [0, 2], [True, False, True], [[0, 1], [1, 0]]):
        with pytest.raises(IndexError):
            dist[rows]


@pytest.mark.parametrize("dist", [[[0.5, 0.5]], None, np.zeros((1, 2))])
def test_what_is_no_distribution(dist):
    for ask in (
        lambda: ls.confidence(dist),
        lambda: ls.decide(dist, "f1").labelsets,
        lambda: ls.expected_accuracy(dist, metric="f1").value,
    ):
        with pytest.raises(ls.InputError, match="as_distribution"):
            ask()


@pytest.mark.parametrize("names", ["hp", ["HP", "hp"], 7, [["HP"]]])
def test_candidates(names):
    with pytest.raises(ls.InputError, match="candidate"):
        ls.confidence(DENSE, names)


def large(L):
    return [
        ls.IndependentLabels(np.full((3, L), 0.25)),
        ls.LabelsetTable(np.ones((3, 1, L)), np.ones((3, 1))),
    ]


@pytest.mark.parametrize("L", [40, 5000])
def test_what_does_not_fit_in_memory(L):
    for dist in large(L):
        for ask in (
            dist.probabilities,
            dist[:0].probabilities,
            lambda dist=dist: dist.top(2**40),
            lambda dist=dist: dist.sample(2**40),
            lambda dist=dist: ls.decide(dist, lambda tp, fp, fn, tn: tp > 0).labelsets,
        ):
            with pytest.raises(ls.TooLargeError):
                ask()


def test_the_limit_can_be_moved():
    with pytest.raises(ls.TooLargeError, match=r"64\.0 bytes"):
        DENSE.probabilities(max_bytes=63)
    assert DENSE.probabilities(max_bytes=64).shape == (2, 4)


def test_searches_that_do_not_fit_in_memory():
    """They take more than what they return, which alone would be allowed."""
    independent = ls.IndependentLabels(np.full((2, 200), 0.25))
    trellis = ls.distributions.TrellisDistribution(
        [np.full((2, 1), 0.25)] * 200, [()] * 200, range(200)
    )
    for dist in (independent, trellis):
        with pytest.raises(ls.TooLargeError, match="search"):
            dist.top(4 * 10**6)


def test_a_decision_that_does_not_fit_is_refused_before_it_takes_memory():
    table = ls.LabelsetTable.from_samples(np.zeros((1, 1, 20_000)))
    tracemalloc.start()
    try:
        with pytest.raises(ls.TooLargeError, match=r"2\.0 GiB"):
            ls.decide(table, "f1")
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()
