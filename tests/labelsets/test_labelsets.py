"""Rows to codes and back, names to rows and back."""

import numpy as np
import oracles
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse
from strategies import labelset_rows

from labelsure.errors import InputError
from labelsure.labelsets.codes import (
    MAX_INTEGER_LABELS,
    code_keys,
    codes_of,
    fill_with_lowest,
    from_codes,
)
from labelsure.labelsets.foreign import names_in
from labelsure.labelsets.label_names import check_label_names, check_label_order
from labelsure.labelsets.lists import to_names
from labelsure.labelsets.names import read_labelsets
from labelsure.labelsets.reading import read_rows

SIZES = (1, 2, 7, 8, 9, 62, 63, 64, 65, 100)


@st.composite
def labelset_arrays(draw, L):
    rows = draw(st.lists(labelset_rows(L), max_size=6))
    return np.array(rows, dtype=np.int8).reshape(len(rows), L)


def integer_of(code):
    """The integer that a code, packed or not, stands for."""
    return int(code) if np.ndim(code) == 0 else int.from_bytes(code.tobytes(), "little")


@pytest.mark.parametrize("L", SIZES)
@given(st.data())
def test_codes_there_and_back(L, data):
    Y = data.draw(labelset_arrays(L))
    codes = codes_of(Y)
    if L <= MAX_INTEGER_LABELS:
        assert codes.dtype == np.int64
        assert codes.shape == (len(Y),)
    else:
        assert codes.dtype == np.uint8
        assert codes.shape == (len(Y), -(-L // 8))
    assert [integer_of(code) for code in codes] == [oracles.code_of(y) for y in Y.tolist()]
    back = from_codes(codes, L)
    assert back.dtype == np.int8
    assert_array_equal(back, Y)


@pytest.mark.parametrize("L", SIZES)
@given(st.data())
def test_keys_order_like_codes(L, data):
    Y = data.draw(labelset_arrays(L))
    keys = code_keys(Y)
    assert keys.shape == (len(Y),)
    by_code = sorted(range(len(Y)), key=lambda i: (oracles.code_of(Y[i].tolist()), i))
    assert np.lexsort((keys,)).tolist() == by_code
    for key, y in zip(keys, Y.tolist(), strict=True):
        assert_array_equal(keys == key, (y == Y).all(axis=1))


@pytest.mark.parametrize("L", [63, 64, 100])
def test_the_highest_code(L):
    codes = codes_of(np.ones((1, L), dtype=np.int8))
    assert integer_of(codes[0]) == 2**L - 1
    assert_array_equal(from_codes(codes, L), np.ones((1, L)))


def test_codes_of_nothing():
    assert codes_of(np.empty((0, 3), dtype=np.int8)).shape == (0,)
    assert from_codes([], 3).shape == (0, 3)
    assert from_codes(np.empty((0, 13), dtype=np.uint8), 100).shape == (0, 100)


def test_every_code_in_order():
    assert_array_equal(from_codes(range(8), 3), oracles.all_labelsets(3))


@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.uint8, np.int64, np.float32, np.float64, object]
)
def test_dtypes_of_labelsets(dtype):
    Y = np.array([[0, 1, 1], [1, 0, 0]], dtype=dtype)
    checked = read_rows(Y)
    assert checked.dtype == np.int8
    assert_array_equal(checked, [[0, 1, 1], [1, 0, 0]])


@pytest.mark.parametrize(
    "wrap",
    [
        np.asfortranarray,
        pd.DataFrame,
        np.ndarray.tolist,
        sparse.csr_matrix,
        sparse.csc_array,
        lambda Y: np.repeat(Y, 2, axis=1)[:, ::2],
        lambda Y: pd.DataFrame(Y).astype("Int64"),
        lambda Y: pd.DataFrame(Y).astype(bool),
    ],
    ids=["fortran", "frame", "list", "csr", "csc", "strided", "nullable", "boolean"],
)
def test_containers_of_labelsets(wrap):
    Y = np.array([[0, 1, 1], [1, 0, 0]])
    assert_array_equal(read_rows(wrap(Y), sparse=False), Y)


def test_a_checked_labelset_is_a_copy():
    Y = np.zeros((1, 2), dtype=np.int8)
    read_rows(Y)[0, 0] = 1
    assert_array_equal(Y, [[0, 0]])


def test_label_names():
    assert check_label_names(None, 2) is None
    assert check_label_names(["b", "a"], 2) == ("b", "a")
    assert check_label_names({"x": 1, "z": 2}, 2) == ("x", "z")
    assert check_label_names([3, 1.5], 2) == ("3", "1.5")
    assert check_label_names(pd.Index(["u"]), 1) == ("u",)
    assert names_in(pd.DataFrame({"a": [1], 7: [0]})) == ["a", "7"]
    assert names_in(np.zeros((1, 2))) is None


@given(labelset_arrays(4))
def test_names_there_and_back(Y):
    names = ["d", "a", "c", "b"]
    spelled = to_names(Y, names)
    for labels, row in zip(spelled, Y, strict=True):
        assert labels == tuple(name for name, bit in zip(names, row, strict=True) if bit)
    if len(Y):
        assert_array_equal(read_labelsets(spelled, names).labelsets, Y)
        assert_array_equal(read_labelsets([set(labels) for labels in spelled], names).labelsets, Y)


def test_names_by_default():
    assert to_names([[0, 1]]) == [("y1",)]


def test_fill_with_the_lowest_that_are_missing():
    rows = np.full((5, 3), -1, dtype=np.int8)
    rows[:2] = [[1, 0, 0], [1, 1, 0]]
    fill_with_lowest(rows[np.newaxis], np.array([2]))
    assert_array_equal(rows, [[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1]])


@given(
    st.integers(1, 7).flatmap(lambda L: st.tuples(st.just(L), st.sets(st.integers(0, 2**L - 1))))
)
def test_filled_rows_are_those_of_the_loop(drawn):
    L, codes = drawn
    given_rows = [tuple(code >> j & 1 for j in range(L)) for code in sorted(codes, reverse=True)]
    for n_rows in {len(codes), min(len(codes) + 3, 2**L), 2**L}:
        rows = np.full((n_rows, L), 1, dtype=np.int8)
        rows[: len(codes)] = np.reshape(given_rows, (-1, L))
        batch = np.stack([rows, np.roll(rows, 1, axis=0), rows])  # the second has more in place
        fill_with_lowest(batch, np.array([len(codes), n_rows, len(codes)]))
        assert_array_equal(batch[1], np.roll(rows, 1, axis=0))
        assert_array_equal(batch[0], batch[2])
        rows = batch[0]
        expected = oracles.top_of_merged([(y, 1) for y in given_rows], L, n_rows)
        assert_array_equal(rows, np.reshape([y for y, _ in expected], (-1, L)))


def test_fill_beyond_integer_codes():
    rows = np.zeros((3, 70), dtype=np.int8)
    rows[0, 69] = 1
    fill_with_lowest(rows[np.newaxis], np.array([1]))
    assert_array_equal(rows.sum(axis=1), [1, 0, 1])
    assert rows[2, 0] == 1


@pytest.mark.parametrize("order", [[0], [2, 0, 1], (1, 0), range(4), np.array([1, 0], np.uint8)])
def test_orders_of_labels(order):
    checked = check_label_order(order, name="order")
    assert checked.dtype == np.intp
    assert checked.tolist() == [int(label) for label in order]


@pytest.mark.parametrize(
    "order",
    [
        [],
        np.empty(0, dtype=int),
        [1, 2],
        [0, 0],
        [-1, 0],
        [0.0, 1.0],
        [True, False],
        2,
        "01",
        [[0], [1, 2]],
        None,
    ],
)
def test_what_is_no_order_of_labels(order):
    with pytest.raises(InputError, match="`order`"):
        check_label_order(order, name="order")
    with pytest.raises(InputError, match="`way` must be a permutation of 0 to 4"):
        check_label_order(order, 5, name="way")


def test_an_order_of_other_labels_is_refused():
    with pytest.raises(InputError, match="of 0 to 2"):
        check_label_order([1, 0], 3, name="order")
