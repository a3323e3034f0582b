"""Labelsets as people have them: every form reads as the same rows, and nothing is guessed."""

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.preprocessing import MultiLabelBinarizer

import labelsure as ls
from labelsure.errors import InputError, UnknownNameError
from labelsure.labelsets.foreign import index_of
from labelsure.labelsets.names import (
    NamedLabelsets,
    ParsedLabelsets,
    align_labelsets,
    align_rows,
    read_labelsets,
)

NAMES = ("ant", "bee", "cat")
ROWS = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 1], [1, 1, 1]], dtype=np.int8)
SETS = [["ant", "cat"], [], ["bee", "cat"], ["ant", "bee", "cat"]]


def forms():
    """The same labelsets in every form; those that have names, with their names."""
    frame = pd.DataFrame(ROWS, columns=NAMES)
    text = [";".join(labels) for labels in SETS]
    return {
        "array": (ROWS, {}),
        "lists of numbers": (ROWS.tolist(), {}),
        "booleans": (ROWS.astype(bool), {}),
        "floats": (ROWS.astype(float), {}),
        "sparse": (csr_matrix(ROWS), {}),
        "frame": (frame, {}),
        "frame of booleans": (frame.astype(bool), {}),
        "binarizer": (MultiLabelBinarizer(classes=NAMES).fit_transform(SETS), {}),
        "lists of names": (SETS, {}),
        "tuples of names": (tuple(map(tuple, SETS)), {}),
        "sets of names": (list(map(set, SETS)), {}),
        "series of lists": (pd.Series(SETS), {}),
        "a column of lists": (pd.DataFrame({"tags": SETS}), {}),
        "array of lists": (np.array([*SETS, None], dtype=object)[:-1], {}),
        "strings": (text, {"sep": ";"}),
        "series of strings": (pd.Series(text), {"sep": ";"}),
        "a column of strings": (pd.DataFrame({"tags": text}), {"sep": ";"}),
        "strings with blanks": ([t.replace(";", " ; ") for t in text], {"sep": ";"}),
    }


@pytest.mark.parametrize("form", forms())
def test_every_form_reads_as_the_same_rows(form):
    Y, options = forms()[form]
    assert_array_equal(read_labelsets(Y, NAMES, **options).labelsets, ROWS)


@pytest.mark.parametrize("form", [name for name in forms() if "name" in name or "string" in name])
def test_without_names_all_that_occur_are_taken_in_their_order(form):
    Y, options = forms()[form]
    read = read_labelsets(Y, **options)
    assert read.label_names == NAMES
    assert_array_equal(read.labelsets, ROWS)


def test_a_frame_brings_its_names_and_its_index():
    read = read_labelsets(pd.DataFrame(ROWS, columns=NAMES, index=list("wxyz")))
    assert read.label_names == NAMES
    assert list(read.index) == list("wxyz")
    assert read_labelsets(ROWS).label_names is None


@pytest.mark.parametrize(
    ("source", "has_one"),
    [
        (pd.DataFrame(ROWS), True),
        (pd.DataFrame(ROWS, index=list("abcd")), True),
        (pd.Series([1, 2], index=[5, 6]), True),
        ([1, 2, 3], False),
        (ROWS, False),
    ],
)
def test_frames_and_series_have_an_index(source, has_one):
    assert (index_of(source) is not None) == has_one


@given(data=st.data())
def test_columns_and_rows_in_any_order_come_out_in_the_same(data):
    columns = data.draw(st.permutations(range(3)))
    rows = data.draw(st.permutations(range(4)))
    frame = pd.DataFrame(ROWS, columns=NAMES, index=list("wxyz"))
    shuffled = frame.iloc[rows, columns]
    found = align_labelsets(shuffled, NamedLabelsets(ROWS, NAMES, frame.index), name="Y")
    assert_array_equal(found, ROWS)


def align(Y, label_names=NAMES, index=None):
    return align_labelsets(Y, NamedLabelsets(ROWS, label_names, index), name="Y_true")


def test_arrays_go_by_position_and_names_by_name():
    assert_array_equal(align(ROWS), ROWS)
    assert_array_equal(align(SETS), ROWS)
    assert_array_equal(align(pd.DataFrame(ROWS, columns=list("xyz")), label_names=None), ROWS)
    plain = pd.DataFrame(ROWS, columns=NAMES, index=[3, 2, 1, 0])
    assert_array_equal(align(plain), ROWS)  # the other side only counts its rows


def fails(message, error=InputError):
    return pytest.raises(error, match=message)


def test_names_that_do_not_fit_are_refused():
    frame = pd.DataFrame(ROWS, columns=["ant", "bee", "dog"])
    message = "columns of `Y_true` must be the labels of the distribution.*missing are 'cat'; "
    with fails(message + "unknown are 'dog'"):
        align(frame)
    with fails("missing are 'cat'\\. Rename"):
        align(frame.drop(columns="dog"))
    many = pd.DataFrame(np.zeros((4, 9)), columns=[f"t{j}" for j in range(9)])
    with fails("unknown are 't0', 't1', 't2', 't3', 't4' and 4 more"):
        align(many)
    with fails("label in row 1 of `Y_true`: 'dog'", UnknownNameError):
        align([["ant"], ["dog"], [], []])


def test_rows_that_do_not_fit_are_refused():
    frame = pd.DataFrame(ROWS, columns=NAMES, index=list("wxyz"))
    with fails("rows of `Y_true` must be those of the distribution.*missing are 'v'; unknown are"):
        align(frame, index=pd.Index(list("vxyz")))
    with fails("index of `Y_true` must name each row once.*'w' twice"):
        align(frame.set_axis(list("wwyz")), index=frame.index)
    with fails("index of the distribution must name each row once"):
        align(frame, index=pd.Index(list("wwyz")))


def test_rows_in_another_order_are_brought_into_it():
    assert align_rows(None, pd.Index(["a"]), name="Y", beside="X") is None
    assert align_rows(pd.Index(["a", "b"]), pd.Index(["a", "b"]), name="Y", beside="X") is None
    order = align_rows(pd.Index(["a", "b", "c"]), pd.Index(["c", "a", "b"]), name="Y", beside="X")
    assert order.tolist() == [2, 0, 1]


def test_what_cannot_be_read():
    with fails("got the text 'ant;cat' in row 0.*sep=';'"):
        read_labelsets(["ant;cat", "bee"])
    with fails("got nan in row 1"):
        read_labelsets(pd.Series([["ant"], np.nan]))
    with fails("got None in row 1"):
        read_labelsets([["ant"], None])
    with fails("got 3 in row 1"):
        read_labelsets([["ant"], 3])
    with fails("must name at least one label, got only empty"):
        read_labelsets([set(), set()])
    holes = pd.DataFrame({"ant": [1, None, 0], "bee": [0, 1, None]})
    with fails("nan in row 1 for 'ant'"):
        read_labelsets(holes)
    with fails("`Y` must contain only 0 and 1, got 2"):
        read_labelsets([[0, 2]])
    with fails("rows of different lengths"):
        read_labelsets([[0, 1], [1]])


@pytest.mark.parametrize(
    ("source", "has_names"),
    [
        (SETS, True),
        (list(map(set, SETS)), True),
        ([set(), set()], True),
        ([(), ()], True),
        ([[], []], True),
        (np.array([["ant"], ["bee"]]), True),
        (np.array([["ant"], ["bee"]], dtype=object), True),
        (pd.Series(SETS), True),
        (pd.DataFrame({"tags": SETS}), True),
        (ROWS, False),
        (ROWS.tolist(), False),
        (csr_matrix(ROWS), False),
        (pd.DataFrame(ROWS, columns=NAMES), False),
        (pd.DataFrame({"ant": [1, 0]}), False),
        ([0, 1, 1], False),
        ([], False),
        (None, False),
    ],
)
def test_which_sources_hold_names_of_labels(source, has_names):
    assert (ParsedLabelsets.read(source, "Y").sets is not None) == has_names


@pytest.mark.parametrize("empty", [[(), ()], [[], []], [set(), set()], pd.Series([[], []])])
def test_a_batch_of_empty_labelsets_is_read(empty):
    assert read_labelsets(empty, NAMES).labelsets.tolist() == [[0, 0, 0], [0, 0, 0]]
    aligned = align_labelsets(empty, NamedLabelsets(ROWS[:2], NAMES), name="Y")
    assert aligned.tolist() == [[0, 0, 0], [0, 0, 0]]
    with pytest.raises(InputError, match="empty"):
        read_labelsets(empty)


@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame,
        lambda frame: pl.DataFrame(frame.to_dict("list")),
        lambda frame: pa.table(frame),
        lambda frame: nw.from_native(pl.DataFrame(frame.to_dict("list"))),
    ],
    ids=["pandas", "polars", "arrow", "narwhals"],
)
def test_names_given_beside_a_table_order_its_columns(convert):
    table = convert(pd.DataFrame(ROWS, columns=NAMES)[["cat", "ant", "bee"]])
    read = read_labelsets(table, NAMES)
    assert (read.labelsets.tolist(), read.label_names) == (ROWS.tolist(), NAMES)
    assert read_labelsets(table).label_names == ("cat", "ant", "bee")
    with pytest.raises(InputError, match="unknown are 'cat'"):
        read_labelsets(table, ["ant", "bee", "dog"])


def test_missing_labels_of_other_libraries_are_refused():
    with pytest.raises(InputError, match="nan in row 1 for 'ant'"):
        read_labelsets(pl.DataFrame({"ant": [1, None], "bee": [0, 1]}))


def test_a_polars_column_of_lists_lists_names():
    series = pl.Series("tags", SETS)
    assert read_labelsets(series).labelsets.tolist() == ROWS.tolist()
    assert read_labelsets(series.to_frame()).label_names == NAMES


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        (["0", "1"], [(0, 1)]),
        (["1", "0"], [[0, 1], [1, 0]]),
        (["0"], [[0], [0]]),
    ],
)
def test_lists_of_numbers_that_may_be_names_are_refused(names, rows):
    """Labels 0 and 1 of a row, or zeros and ones: log P of another labelset, silently."""
    dist = ls.IndependentLabels(np.full((len(rows), len(names)), 0.3), names)
    for ask in (dist.log_prob, dist.align):
        with pytest.raises(ls.InputError, match="a list of numbers can mean both"):
            ask(rows)
    assert dist.align(np.array(rows)).tolist() == [list(row) for row in rows]
    named = [[str(label) for label in row] for row in rows]
    assert dist.align(named).all()


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        (["0", "1"], [[0, 1], [1, 1]]),  # no labels twice
        (["0", "1"], [[0.5, 1]]),
        (["0"], [[0], [1]]),
        (["1"], [[1], [1]]),  # the same either way
        (["a", "b"], [[0, 1]]),
        (["0", "1", "2"], [[0, 1, 0]]),
        (None, [[0, 1]]),
    ],
)
def test_lists_of_numbers_that_can_only_be_zeros_and_ones(names, rows):
    dist = ls.IndependentLabels(np.full((len(rows), len(rows[0])), 0.3), names)
    if rows == [[0.5, 1]]:
        with pytest.raises(ls.InputError, match="only 0 and 1"):
            dist.align(rows)
    else:
        assert dist.align(rows).tolist() == rows
