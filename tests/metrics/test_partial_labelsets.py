"""Answers that leave labels open: names, rows, and how they compare with the truth."""

import numpy as np
import oracles
import oracles_regions
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import labelsure as ls

METRICS = ("exact", "hamming", "jaccard", "f1")


@st.composite
def answers_with_truth(draw):
    shape = draw(st.tuples(st.integers(0, 4), st.integers(1, 5)))
    values = draw(hnp.arrays(np.int8, shape, elements=st.integers(-1, 1)))
    truth = draw(hnp.arrays(np.int8, shape, elements=st.integers(0, 1)))
    return ls.PartialLabelsets(values), truth


@given(answers_with_truth(), st.sampled_from([0.0, 0.5, 1.0]))
def test_comparison_with_the_truth_against_loops(pair, empty):
    answer, truth = pair
    table = answer.compare(truth, METRICS, empty=empty)
    for i, (mine, theirs) in enumerate(zip(answer.values, truth, strict=True)):
        row = table.iloc[i]
        assert row["agrees"] == oracles_regions.agrees(mine, theirs)
        assert row["n_certain"] == sum(value == 1 for value in mine)
        assert row["n_possible"] == sum(value in (1, -1) for value in mine)
        assert row["share_open"] == sum(value == -1 for value in mine) / len(mine)
        counts = oracles_regions.decided_counts(mine, theirs)
        assert tuple(int(count[i]) for count in answer.counts(truth)) == counts
        for metric in METRICS:
            if sum(counts) == 0:
                assert np.isnan(row[metric])
            else:
                expected = getattr(oracles, metric)(*counts, empty)
                assert row[metric] == pytest.approx(expected)


@given(answers_with_truth())
def test_an_answer_without_open_labels_is_a_labelset(pair):
    answer, truth = pair
    whole = ls.PartialLabelsets((answer.values == 1).astype(int))
    for metric in METRICS:
        np.testing.assert_array_equal(
            ls.accuracy(truth, whole, metric), ls.accuracy(truth, whole.values, metric)
        )
    np.testing.assert_array_equal(whole.agrees(truth), ls.accuracy(truth, whole, "exact"))


def example(**known):
    index = pd.Index(["a", "b", "c"])
    values = [[1, 0, -1], [0, 0, 0], [-1, -1, -1]]
    return ls.PartialLabelsets(values, ["cat", "dog", "owl"], index, **known)


def test_names_of_certain_possible_and_open_labels():
    answer = example()
    assert answer.certain == [("cat",), (), ()]
    assert answer.possible == [("cat", "owl"), (), ("cat", "dog", "owl")]
    assert answer.open == [("owl",), (), ("cat", "dog", "owl")]
    assert answer.n_open.tolist() == [1, 0, 3]
    assert (len(answer), answer.n_labels, answer.label_names) == (3, 3, ("cat", "dog", "owl"))
    assert repr(answer) == "PartialLabelsets(n_samples=3, n_labels=3)"
    assert answer.values.dtype == np.int8
    nameless = ls.PartialLabelsets([[1, 0]])
    assert (nameless.label_names, nameless.certain) == (None, [("y0",)])


def test_rows_are_picked_with_all_that_belongs_to_them():
    answer = example(gap=[0.1, 0.2, 0.3])
    some = answer[[2, 0]]
    assert type(some) is ls.PartialLabelsets
    assert some.label_names == answer.label_names
    np.testing.assert_array_equal(some.values, answer.values[[2, 0]])
    assert some.gap.tolist() == [0.3, 0.1]
    assert list(some.index) == ["c", "a"]
    assert list(answer[-1].index) == ["c"]
    assert list(answer[np.array([False, True, False])].index) == ["b"]
    with pytest.raises(IndexError, match="range"):
        answer[3]


def test_the_table_of_an_answer():
    table = example(gap=np.zeros(3)).to_frame(sep=";")
    assert list(table) == ["certain", "possible", "open", "gap"]
    assert table.loc["a"].tolist() == ["cat", "cat;owl", "owl", 0.0]
    assert example().to_frame().loc["a", "possible"] == ("cat", "owl")
    assert list(example().to_frame()) == ["certain", "possible", "open"]
    with pytest.raises(ls.InputError, match="`sep`"):
        example().to_frame(sep="a")


def test_a_truth_is_aligned_by_name_and_row_or_refused():
    truth = pd.DataFrame(
        {"owl": [0, 0, 1], "cat": [0, 0, 1], "dog": [1, 0, 0]}, index=["c", "b", "a"]
    )
    assert example().agrees(truth).tolist() == [True, True, True]
    assert example().agrees(truth.to_numpy()).tolist() == [False, True, True]
    assert example().agrees([["cat", "dog"], [], []]).tolist() == [False, True, True]
    with pytest.raises(ls.InputError, match="answer"):
        example().agrees(truth.rename(columns={"owl": "elk"}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"values": [[1, 2]]},
            r"1 \(present\), 0 \(absent\) or -1 \(open\), got 2 in row 0",
        ),
        ({"values": [[0.5, 0]]}, "got 0.5 in row 0, column 0"),
        ({"values": [1, 0]}, r"must be an \(n, L\) array of 1, 0 and -1, got shape \(2,\)"),
        ({"values": [["a", "b"]]}, "array of 1, 0 and -1"),
        ({"values": np.ma.masked_equal([[1, 0]], 0)}, "must have no masked values"),
        ({"label_names": ["a"]}, "2 distinct names"),
        ({"index": pd.Index(["a", "b"])}, "`index` must have one entry for each of the 1"),
        ({"gap": [0.0, 0.1]}, r"`gap`.* shape \(2,\)"),
        ({"gap": [np.nan]}, "`gap`"),
    ],
)
def test_what_is_no_answer(change, message):
    with pytest.raises(ls.InputError, match=message):
        ls.PartialLabelsets(**{"values": [[1, -1]], **change})


def test_a_metric_that_is_not_known():
    with pytest.raises(ls.errors.UnknownNameError, match="f1"):
        example().accuracy(np.zeros((3, 3)), "f2")
    with pytest.raises(ls.InputError, match="`empty`"):
        ls.accuracy(np.zeros((3, 3)), example(), "f1", empty=2)
