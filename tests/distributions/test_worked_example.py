"""The paper's worked example: eight labelsets, three metrics, three different optima."""

import numpy as np
import pytest

import labelsure as ls

# y1 y2 y3, probability, expected Hamming, exact and Jaccard accuracy, as printed (Table 2).
ROWS = [
    ((0, 0, 0), 0, "0.611", "0.000", "0.000"),
    ((0, 0, 1), 1 / 3, "0.500", "0.333", "0.333"),
    ((0, 1, 0), 1 / 4, "0.556", "0.250", "0.333"),
    ((0, 1, 1), 0, "0.444", "0.000", "0.347"),
    ((1, 0, 0), 1 / 4, "0.556", "0.250", "0.333"),
    ((1, 0, 1), 0, "0.444", "0.000", "0.347"),
    ((1, 1, 0), 1 / 6, "0.500", "0.167", "0.417"),
    ((1, 1, 1), 0, "0.389", "0.000", "0.389"),
]
METRICS = ("hamming", "exact", "jaccard")
LABELSETS = np.array([row[0] for row in ROWS])
PROBABILITIES = np.array([row[1] for row in ROWS])


def dense():
    P = np.zeros((1, 8))
    P[0, LABELSETS @ [1, 2, 4]] = PROBABILITIES
    return ls.DenseDistribution(P)


def table():
    return ls.LabelsetTable(LABELSETS[np.newaxis], PROBABILITIES[np.newaxis])


@pytest.mark.parametrize("make", [dense, table])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[0]))
def test_expected_accuracies_to_the_printed_digit(make, row):
    labelset, _, *printed = row
    for metric, digits in zip(METRICS, printed, strict=True):
        expected = ls.expected_accuracy(make(), [labelset], metric=metric).value
        assert f"{expected[0]:.3f}" == digits


@pytest.mark.parametrize("make", [dense, table])
@pytest.mark.parametrize(
    ("metric", "bold"), [("hamming", (0, 0, 0)), ("exact", (0, 0, 1)), ("jaccard", (1, 1, 0))]
)
def test_the_optima_in_bold(make, metric, bold):
    answer = ls.decide(make(), metric)
    decision, gap = answer.labelsets, answer.gap
    np.testing.assert_array_equal(decision, [bold])
    assert gap[0] == 0


@pytest.mark.parametrize("make", [dense, table])
def test_marginals(make):
    np.testing.assert_allclose(make().marginals(), [[5 / 12, 5 / 12, 1 / 3]])
