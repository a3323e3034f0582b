"""The labels of a data set keep their names through `fit(data.X, data.Y)`."""

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

import labelsure as ls

NAMES = ("sunny", "warm", "wet")
Y = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 0, 1]] * 10)
DATA = ls.Dataset(np.random.default_rng(0).normal(size=(40, 2)), Y, NAMES)


def test_a_fitted_model_knows_them():
    model = ls.BinaryRelevance().fit(DATA.X, DATA.Y)
    assert tuple(model.predict_distribution(DATA.X).label_names) == NAMES


@pytest.mark.parametrize("rows", [slice(3), [2, 0], np.arange(40) % 2 == 0, (slice(3), ...)])
def test_rows_keep_them(rows):
    assert DATA.Y[rows].label_names == NAMES
    np.testing.assert_array_equal(DATA.Y[rows], Y[rows])


def test_a_split_keeps_them():
    train, _ = train_test_split(DATA.Y, random_state=0)
    assert train.label_names == NAMES


@pytest.mark.parametrize(
    "change",
    [
        lambda Y: Y[:, ::-1],
        lambda Y: Y[:, [2, 0, 1]],
        lambda Y: np.flip(Y, axis=1),
        lambda Y: np.take(Y, [1, 0, 2], axis=1),
        lambda Y: Y.T,
        lambda Y: 1 - Y,
        lambda Y: np.roll(Y, 1, axis=1),
        lambda Y: np.hstack([Y[:, 1:], Y[:, :1]]),
    ],
)
def test_other_columns_lose_them(change):
    assert getattr(change(DATA.Y), "label_names", None) is None


def test_another_order_of_labels_is_aligned():
    model = ls.BinaryRelevance().fit(DATA.X, DATA.Y)
    turned = DATA.select_labels(list(NAMES[::-1]))
    expected = ls.accuracy(Y, model.predict(DATA.X), "jaccard").mean()
    dist = model.predict_distribution(DATA.X)
    found = ls.accuracy(dist.align(turned.Y), model.predict(DATA.X), "jaccard").mean()
    assert found == expected
