"""The geometry of the trellis and the placement of its labels."""

import numpy as np
import oracles_classifiers as slow
import pytest
from data_for_classifiers import make_problem
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

import labelsure as ls
from labelsure.classifiers._chain_classifiers import (
    choose_width,
    make_grid_parents,
    mutual_information,
    place_by_information,
)


@given(st.integers(1, 30), st.integers(1, 8), st.integers(0, 2))
def test_parents_are_the_neighbours(n_labels, width, density):
    for position, above in enumerate(make_grid_parents(n_labels, width, density)):
        assert len(above) == len(set(above))
        assert set(above) == slow.neighbours(position, width, density)


@pytest.mark.parametrize(
    ("n_labels", "width"), [(1, 1), (3, 1), (4, 2), (14, 3), (53, 7), (143, 11), (1000, 12)]
)
def test_choose_width(n_labels, width):
    assert choose_width(n_labels) == width


def test_mutual_information_is_that_of_scikit_learn():
    Y = make_problem(n_labels=4)[1].astype(np.int8)
    Y[:, 3] = 1
    found = mutual_information(Y)
    expected = [[mutual_info_score(a, b) for b in Y.T] for a in Y.T]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_weighted_mutual_information():
    Y = make_problem(n_labels=3)[1].astype(np.int8)
    weights = np.random.default_rng(0).random(len(Y))
    found = mutual_information(Y, weights)
    for i, j in np.ndindex(3, 3):
        expected = slow.mutual_information(Y[:, i].tolist(), Y[:, j].tolist(), weights.tolist())
        np.testing.assert_allclose(found[i, j], expected, atol=1e-12)


@given(
    st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 3), st.integers(0, 2), st.data()
)
def test_placement(seed, n_labels, width, density, data):
    Y = np.random.default_rng(seed).integers(0, 2, size=(25, n_labels), dtype=np.int8)
    corner = data.draw(st.integers(0, n_labels - 1))
    parents = make_grid_parents(n_labels, width, density)
    found = place_by_information(mutual_information(Y), parents, corner)
    assert found.tolist() == slow.placement(Y.T.tolist(), width, density, corner)


def test_ties_go_to_the_lowest_index():
    Y = np.random.default_rng(0).integers(0, 2, size=(40, 1), dtype=np.int8).repeat(5, axis=1)
    order = place_by_information(mutual_information(Y), make_grid_parents(5, 2, 1), 3)
    assert order.tolist() == [3, 0, 1, 2, 4]


def test_the_corner_is_random_and_the_rest_follows():
    X, Y = make_problem()
    corners = set()
    for seed in range(12):
        model = ls.classifiers.ClassifierTrellis(random_state=seed).fit(X, Y)
        corner = model.order_[0]
        corners.add(int(corner))
        assert model.order_.tolist() == slow.placement(Y.T.tolist(), 2, 1, corner)
    assert len(corners) > 1


def test_weights_decide_the_placement():
    # Label 2 copies label 0 in the first half, label 1 does in the second.
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, size=(200, 3))
    Y[:100, 2], Y[100:, 1] = Y[:100, 0], Y[100:, 0]
    parents = make_grid_parents(3, 1, 1)
    for heavy, follower in [(slice(0, 100), 2), (slice(100, 200), 1)]:
        weights = np.full(200, 0.01)
        weights[heavy] = 1.0
        order = place_by_information(mutual_information(Y.astype(np.int8), weights), parents, 0)
        assert order[1] == follower


def test_an_array_places_the_labels():
    X, Y = make_problem(n_labels=4)
    model = ls.classifiers.ClassifierTrellis(placement=(2, 0, 3, 1), density=2).fit(X, Y)
    assert model.order_.tolist() == [2, 0, 3, 1]
    assert model.parents_ == ((), (0,), (0,), (2, 1, 0))
    assert [learner.n_features_in_ for learner in model.estimators_] == [3, 4, 4, 6]


def test_a_wide_problem_has_a_narrow_grid():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 2)), rng.integers(0, 2, size=(30, 40))
    model = ls.classifiers.ClassifierTrellis(random_state=0).fit(X, Y)
    marginals = model.predict_distribution(X[:2]).marginals()
    assert marginals.shape == (2, 40)
    assert ((marginals > 0) & (marginals < 1)).all()
