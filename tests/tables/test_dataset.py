"""`Dataset`, its subsets and its splits."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import labelsure as ls
from labelsure.tables.datasets import split_rows

Y = np.array([[1, 0, 1, 0], [0, 0, 1, 0], [1, 0, 1, 0], [0, 1, 1, 0]])


def small(**fields):
    return ls.Dataset(np.arange(8.0).reshape(4, 2), Y, list("abcd"), **fields)


def test_fields_of_arrays():
    data = small(name="small")
    assert isinstance(data.X, pd.DataFrame)
    assert data.Y.dtype == np.int8
    assert data.feature_names == ("x0", "x1")
    assert data.label_names == ("a", "b", "c", "d")
    assert (data.n_samples, data.n_features, data.n_labels, len(data)) == (4, 2, 4, 4)
    assert repr(data) == "Dataset('small', n_samples=4, n_labels=4, n_features=2)"


def test_names_of_frames():
    X, labels = pd.DataFrame({"f": [1], 2: [3]}), pd.DataFrame({"a": [1], "b": [0]})
    data = ls.Dataset(X, labels)
    assert data.feature_names == ("f", "2")
    assert data.label_names == ("a", "b")
    assert list(X.columns) == ["f", 2]


def test_frames_are_put_together_by_their_rows():
    X = pd.DataFrame({"f": [1.0, 2.0, 3.0]}, index=["p", "q", "r"])
    labels = pd.DataFrame({"a": [0, 0, 1], "b": [1, 0, 1]}, index=["r", "p", "q"])
    data = ls.Dataset(X, labels)
    assert isinstance(data.Y, np.ndarray)
    np.testing.assert_array_equal(data.Y, [[0, 0], [1, 1], [0, 1]])
    np.testing.assert_array_equal(ls.Dataset(X, labels.to_numpy()).Y, labels)
    np.testing.assert_array_equal(ls.Dataset(X, labels.reset_index(drop=True)).Y, labels)
    with pytest.raises(ls.InputError, match="`Y`"):
        ls.Dataset(X, labels.rename({"p": "s"}))


def test_parts_keep_the_names_of_their_rows():
    names = ["p", "q", "r", "s"]
    data = ls.Dataset(pd.DataFrame({"f": [1.0, 2.0, 3.0, 4.0]}, index=names), Y)
    assert list(data.take([2, 0]).X.index) == ["r", "p"]
    assert list(data.select_labels("y0").X.index) == names
    for part in ls.split_dataset(data, 0.5, random_state=0):
        np.testing.assert_array_equal(part.Y, Y[[names.index(name) for name in part.X.index]])


def test_describe():
    assert small().describe() == {
        "n_samples": 4,
        "n_labels": 4,
        "n_features": 2,
        "label_cardinality": 7 / 4,
        "label_density": 7 / 16,
        "n_labelsets": 3,
        "constant_labels": ["c", "d"],
    }


def test_describe_beyond_integer_codes():
    labels = np.zeros((3, 100), dtype=int)
    labels[2, 99] = 1
    assert ls.Dataset(np.zeros((3, 1)), labels).describe()["n_labelsets"] == 2


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, sparse.csr_matrix, sparse.coo_array])
@pytest.mark.parametrize("rows", [[2, 0], slice(1, 3), np.array([True, False, True, False])])
def test_rows(make, rows):
    values = np.arange(8.0).reshape(4, 2)
    part = ls.Dataset(make(values), Y, checksum="c").take(rows)
    X = part.X.toarray() if sparse.issparse(part.X) else part.X.to_numpy()
    np.testing.assert_array_equal(X, values[rows])
    np.testing.assert_array_equal(part.Y, Y[rows])
    assert part.checksum == "c"


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ("c,a", ("c", "a")),
        (["d"], ("d",)),
        ("first2", ("a", "b")),
        ("last2", ("c", "d")),
        ("top1", ("c",)),
        ("top2", ("a", "c")),
        ("top3", ("a", "b", "c")),
        ("[ad]", ("a", "d")),
        (-1, ("d",)),
    ],
)
def test_some_labels(labels, names):
    part = small().select_labels(labels)
    assert part.label_names == names
    np.testing.assert_array_equal(part.Y, Y[:, ["abcd".index(name) for name in names]])


def test_equally_frequent_labels_are_taken_from_the_front():
    data = ls.Dataset(np.zeros((2, 1)), [[1, 0, 1], [0, 1, 0]])
    assert data.select_labels("top2").label_names == ("y0", "y1")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ls.Dataset([1, 2], [[0], [1]]), r"`X` must have shape .*, got shape \(2,\)"),
        (lambda: ls.Dataset([[1]], [[0], [1]]), "`Y` must have 1 rows, got 2"),
        (lambda: ls.Dataset([[1]], [[2]]), "`Y` must contain only 0 and 1"),
        (lambda: ls.Dataset([[1]], [[1]], ["a", "b"]), "`label_names` must be"),
        (lambda: ls.Dataset([[1]], [[1]], feature_names=("a", "b")), "each of the 1 columns"),
        (
            lambda: ls.Dataset(sparse.eye_array(1), [[1]], feature_names=("a", "b")),
            "`feature_names` must have one name for each of the 1 columns of `X`, .* got 'a', 'b'",
        ),
        (
            lambda: ls.Dataset([[1, 2]], [[1]], feature_names=("a", "a")),
            "all different, got 'a', 'a'",
        ),
        (lambda: small().take(2), r"`rows` must be indices, a mask or a slice .* e.g. `\[3\]`"),
        (lambda: small().select_labels("e"), "Unknown label 'e'"),
        (
            lambda: small().select_labels("top5"),
            "must be a number from 1 to 4, the number of labels",
        ),
        (lambda: ls.split_dataset(Y), "`data` must be a Dataset, got ndarray"),
        (lambda: ls.split_dataset(small(), 4), "number of instances from 1 to 3, got 4"),
        (lambda: ls.split_dataset(small(), 1.0), "`test_size` must be a share between 0 and 1"),
        (lambda: ls.split_dataset(small(), True), "got True"),
        (lambda: ls.split_dataset(small(), random_state=-1), "`random_state` must be"),
    ],
)
def test_messages(make, message):
    with pytest.raises(ls.InputError, match=message):
        make()


labelsets = st.integers(2, 40).flatmap(
    lambda n: st.integers(1, 5).flatmap(
        lambda L: st.lists(
            st.lists(st.integers(0, 1), min_size=L, max_size=L), min_size=n, max_size=n
        )
    )
)


@given(labelsets, st.floats(0.1, 0.9), st.integers(0, 9))
def test_every_row_is_in_one_part(Y, test_size, seed):
    train, test = split_rows(Y, test_size, random_state=seed)
    assert sorted([*train, *test]) == list(range(len(Y)))
    assert list(train) == sorted(train)
    assert list(test) == sorted(test)
    again = split_rows(Y, test_size, random_state=seed)
    np.testing.assert_array_equal(test, again[1])
    assert len(test) == min(max(1, round(test_size * len(Y))), len(Y) - 1)


def test_seeds_make_a_difference():
    data = ls.load_dataset("digits")
    parts = [split_rows(data.Y, random_state=s)[1] for s in (0, 1)]
    assert set(parts[0]) != set(parts[1])


def test_a_number_of_instances():
    train, test = ls.split_dataset(ls.load_dataset("digits"), 100, random_state=0)
    assert (len(train), len(test)) == (1697, 100)
