"""Truth that does not fit its probabilities, and what looks like it."""

import numpy as np
import pytest

import labelsure as ls
from labelsure.estimation import _diagnostics as suspect

RNG = np.random.default_rng(0)
P = RNG.beta(0.5, 1, size=(300, 5))
Y = (RNG.random(P.shape) < P).astype(int)
NAMES = ["sea", "sky", "sun", "tree", "wall"]


def fit(p, y):
    return ls.AccuracyEstimator("jaccard").fit(ls.IndependentLabels(p, NAMES), y)


def test_columns_in_another_order():
    with pytest.warns(ls.ProbabilityWarning, match="another"):
        fit(P, Y[:, ::-1])
    with pytest.warns(
        ls.ProbabilityWarning, match="'sky' of the truth fits .* of 'sea', and 2 columns are"
    ):
        fit(P, Y[:, [1, 0, 2, 3, 4]])
    fit(P, Y)


def test_a_label_that_was_not_annotated():
    blank = Y.copy()
    blank[:, 2] = 0
    with pytest.warns(ls.ProbabilityWarning, match="never"):
        fit(P, blank)
    rare = P.copy()
    rare[:, 2] = 0.03
    fit(rare, blank)  # nine are expected


def test_an_overconfident_model_expects_too_many():
    """Of all labels half as many come as are expected: of one that is rare none."""
    p = np.full((100, 4), 0.4)
    p[:, 3] = 0.15
    truth = np.zeros((100, 4), dtype=int)
    truth[:20, :3] = 1
    assert suspect.find_never_true(p, truth).size == 0
    truth[:40, :3] = 1
    assert suspect.find_never_true(p, truth).tolist() == [3]


def test_chance_is_no_order():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        p, truth = rng.random((60, 12)), rng.integers(2, size=(60, 12))
        assert suspect.find_better_order(p, truth)[0].size == 0


def test_hard_predictions_are_no_probabilities():
    with pytest.warns(ls.ProbabilityWarning, match="Every"):
        ls.as_distribution(Y)
    with pytest.warns(ls.ProbabilityWarning, match="Every"):
        ls.as_distribution(Y.astype(float))
    ls.as_distribution(np.clip(Y, 0.001, 0.999))
    ls.as_distribution([[1.0, 0.0], [0.0, 1.0]])  # too few to say


def test_probabilities_are_no_logits():
    with pytest.warns(ls.ProbabilityWarning, match="within"):
        ls.as_distribution(P, kind="logit")
    ls.as_distribution(np.log(P / (1 - P)), kind="logit")
    ls.as_distribution([[0.3, 0.2]], kind="logit")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "got nan in row 3, column 1. A missing label is not an absent one: fill it in"),
        (0.4, "got 0.4 in row 3, column 1. This looks like probabilities"),
        (2.0, "got 2.0 in row 3, column 1. Write 1 for a label that is present and 0 for one that"),
    ],
)
def test_values_that_are_neither_0_nor_1(value, message):
    wrong = Y.astype(float)
    wrong[3, 1] = value
    for ask in (lambda: ls.accuracy(wrong, Y, "f1"), lambda: fit(P, wrong)):
        with pytest.raises(ls.InputError, match=message):
            ask()
