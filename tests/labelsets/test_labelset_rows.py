"""What is asked of labelsets has one answer for arrays and for sparse rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.sparse import coo_array, csc_matrix, csr_array, csr_matrix, lil_array

import labelsure as ls
from labelsure.errors import InputError
from labelsure.labelsets.codes import codes_of, row_keys
from labelsure.labelsets.label_names import (
    abbreviate_names,
    check_label_names,
    check_same_labels,
    show_names,
)
from labelsure.labelsets.lists import from_indices, name_rows, to_indices, to_names
from labelsure.labelsets.reading import read_rows
from labelsure.labelsets.sparse import (
    StackedLabelsets,
    count_labels,
    count_shared,
    differing_rows,
    is_sparse,
    make_sparse,
    no_labels,
    stack_rows,
)

pairs = st.tuples(st.integers(0, 5), st.integers(1, 9)).flatmap(
    lambda shape: st.tuples(
        arrays.arrays(np.int8, shape, elements=st.integers(0, 1)),
        arrays.arrays(np.int8, shape, elements=st.integers(0, 1)),
    )
)


@given(pairs)
def test_both_forms_have_the_same_answers(pair):
    dense, other = pair
    forms = [
        (dense, other),
        (make_sparse(dense), make_sparse(other)),
        (make_sparse(dense), other),
        (dense, make_sparse(other)),
    ]
    for first, second in forms:
        assert count_labels(first).tolist() == dense.sum(axis=1).tolist()
        assert count_shared(first, second).tolist() == (dense & other).sum(axis=1).tolist()
        assert differing_rows(first, second).tolist() == (dense != other).any(axis=1).tolist()
        stacked = stack_rows([first, second])
        assert is_sparse(stacked) == (is_sparse(first) or is_sparse(second))
        plain = stacked.toarray() if is_sparse(stacked) else stacked
        assert plain.tolist() == np.concatenate([dense, other]).tolist()
    nothing = no_labels(make_sparse(dense))
    assert nothing.shape == dense.shape
    assert nothing.nnz == 0
    assert no_labels(dense).tolist() == np.zeros_like(dense).tolist()
    assert to_names(make_sparse(dense)) == to_names(dense)
    assert to_indices(make_sparse(dense)) == to_indices(dense)
    assert from_indices(to_indices(dense), dense.shape[1]).toarray().tolist() == dense.tolist()


@given(pairs)
def test_keys_of_sparse_rows_sort_and_compare_like_codes(pair):
    rows = np.concatenate(pair)
    keys, codes = row_keys(make_sparse(rows)), codes_of(rows)
    assert np.argsort(keys, kind="stable").tolist() == np.argsort(codes, kind="stable").tolist()
    equal = codes[:, np.newaxis] == codes
    assert (keys[:, np.newaxis] == keys).tolist() == equal.tolist()


@given(pairs)
def test_accuracy_does_not_depend_on_the_form(pair):
    true, predicted = pair
    for metric in ("exact", "hamming", "jaccard", "f1"):
        expected = ls.accuracy(true, predicted, metric).tolist()
        for form in (csr_array, csr_matrix, csc_matrix, coo_array, lil_array):
            assert ls.accuracy(form(true), form(predicted), metric).tolist() == expected
            assert ls.accuracy(form(true), predicted, metric).tolist() == expected
            assert ls.accuracy(true, form(predicted), metric).tolist() == expected


def test_sparse_rows_are_canonical_and_what_was_given_is_not_changed():
    given = coo_array(([1, 1, 0], ([0, 0, 1], [5, 2, 3])), shape=(2, 9)).tocsr()
    given.has_sorted_indices = False
    given.indices[:2] = given.indices[:2][::-1].copy()
    before = given.indices.copy(), given.data.copy()
    rows = read_rows(given, sparse=True)
    assert rows.indices.tolist() == [2, 5]
    assert rows.data.tolist() == [1, 1]
    assert rows.dtype == np.int8
    assert given.indices.tolist() == before[0].tolist()
    assert given.data.tolist() == before[1].tolist()


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (csr_array([[0, 2]]), r"`Y` must contain only 0 and 1, got 2 in row 0, column 1"),
        (coo_array(([1, 1], ([0, 0], [1, 1])), shape=(1, 2)), "got 2 in row 0, column 1"),
        (csr_array((1, 0)), r"with at least one label, got shape \(1, 0\)"),
        (csr_array((1, 3), dtype=complex), "dtype complex128"),
    ],
)
def test_what_is_no_labelset_is_refused(Y, message):
    with pytest.raises(InputError, match=message):
        read_rows(Y, sparse=True)


def test_sparse_rows_of_another_shape_are_refused():
    with pytest.raises(InputError, match="`Y`"):
        read_rows(csr_array((2, 3)), n_labels=4, sparse=True)
    with pytest.raises(InputError, match="`Y`"):
        read_rows(csr_array((2, 3)), n_samples=5, sparse=True)


class TestIndices:
    def test_duplicates_and_order_do_not_matter(self):
        rows = from_indices([[3, 1, 3], []], 1_000_000)
        assert rows.indices.tolist() == [1, 3]
        assert rows.shape == (2, 1_000_000)

    @pytest.mark.parametrize("lists", [[[0], [7]], [[-1]], [[0.5]], [["a"]]])
    def test_what_is_no_index_is_refused(self, lists):
        row = len(lists) - 1
        with pytest.raises(InputError, match=rf"label indices from 0 to 6, .* in row {row}"):
            from_indices(lists, 7)

    def test_lists_of_numbers_are_still_zeros_and_ones(self):
        assert ls.read_labelsets([[0, 1], [1, 0]]).labelsets.tolist() == [[0, 1], [1, 0]]


class TestNames:
    def test_labels_without_names_are_shown_by_number(self):
        assert check_label_names(None, 1_000_000) is None
        assert show_names(None, [3, 0]) == ["y3", "y0"]
        assert show_names(("cat", "dog"), 2) == ["cat", "dog"]

    @pytest.mark.parametrize("names", [None, tuple(f"tag {j}" for j in range(10_001))])
    def test_very_many_are_shown_by_the_first_and_the_last(self, names):
        first, last = show_names(names, [0, 10_000])
        assert abbreviate_names(names, 10_001) == [first, "...", last]
        few = None if names is None else names[:9]
        assert abbreviate_names(few, 9) == show_names(names, 9)

    def test_a_name_that_is_there_twice_is_named(self):
        with pytest.raises(InputError, match="got 'b' twice"):
            check_label_names(["a", "b", "c", "b"], 4)

    def test_names_are_compared_where_both_sides_have_some(self):
        check_same_labels(("a", "b"), 2, ("a", "b"), 2, "it")
        check_same_labels(None, 2, ("a", "b"), 2, "it")
        check_same_labels(("a", "b"), 2, None, 2, "it")
        with pytest.raises(InputError, match="instead"):
            check_same_labels(("a", "b"), 2, ("b", "a"), 2, "it")

    @pytest.mark.parametrize("known", [None, ("a", "b", "c")])
    @pytest.mark.parametrize("names", [None, ("a", "b")])
    def test_the_number_of_labels_is_compared_in_any_case(self, names, known):
        with pytest.raises(InputError, match="the 3 labels of it, got 2"):
            check_same_labels(names, 2, known, 3, "it")


def test_stacked_labelsets_are_picked_like_an_array():
    dense = np.random.default_rng(0).integers(0, 2, size=(3, 4, 5)).astype(np.int8)
    stacked = StackedLabelsets(make_sparse(dense.reshape(12, 5)), 4)
    assert stacked.shape == dense.shape
    assert len(stacked) == 3
    for i in range(3):
        assert stacked[i].toarray().tolist() == dense[i].tolist()
    for rank in range(4):
        assert stacked[:, rank].toarray().tolist() == dense[:, rank].tolist()


def test_names_become_sparse_rows():
    read = ls.read_labelsets([{"b"}, set(), {"a", "b"}], ["a", "b", "c"], sparse=True)
    assert read.labelsets.toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 1, 0]]
    with pytest.raises(ls.errors.UnknownNameError, match="label in row 1"):
        ls.read_labelsets([{"b"}, {"x"}], ["a", "b"], sparse=True)


@pytest.mark.parametrize("n_labels", [1, 5, 63, 64, 70])
@pytest.mark.parametrize("n_rows", [0, 1, 300])
@pytest.mark.parametrize("named", [True, False])
def test_names_of_repeated_rows_are_those_of_a_loop(n_labels, n_rows, named):
    rng = np.random.default_rng(n_labels)
    Y = (rng.random((n_rows, n_labels)) < 0.3).astype(np.int8)[
        rng.integers(0, max(n_rows, 1) // 3 + 1, n_rows)
    ]
    names = tuple(f"label {j}" for j in range(n_labels)) if named else None
    shown = names or [f"y{j}" for j in range(n_labels)]
    wanted = [tuple(shown[j] for j in range(n_labels) if row[j]) for row in Y]
    assert (
        name_rows(Y, names)
        == name_rows(Y == 1, names)
        == name_rows(make_sparse(Y), names)
        == wanted
    )
    assert name_rows(Y, names, ";") == [";".join(labels) for labels in wanted]
