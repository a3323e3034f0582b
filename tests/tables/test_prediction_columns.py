"""Another system's predictions in every form in which they stand in files."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import labelsure as ls
from labelsure.tables.files import read_table
from labelsure.tables.inputs import find_layout

NAMES = ["cat", "dog"]
PAIRS = [{"label": "dog", "score": 0.2}, {"label": "cat", "score": 0.9}]


def frame_of(tmp_path, lines):
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return read_table(path)


FORMS = {
    "columns": [{"id": 1, "dog": 0.2, "cat": 0.9}],
    "text": [{"dog": "0.2", "cat": " 0.9 "}],
    "pairs": [PAIRS],
    "a batch of one": [[PAIRS]],
    "pairs with an id": [{"id": 7, "scores": PAIRS}],
    "predictions": [{"id": 7, "text": "miaow", "predictions": PAIRS}],
    "zero-shot": [{"sequence": "miaow", "labels": ["dog", "cat"], "scores": [0.2, 0.9]}],
    "zero-shot in a cell": [{"predictions": {"labels": ["dog", "cat"], "scores": [0.2, 0.9]}}],
    "by name": [{"id": 7, "scores": {"dog": 0.2, "cat": 0.9}}],
    "in order": [{"id": 7, "probabilities": [0.9, 0.2]}],
    "JSON in text": [{"id": 7, "scores": "[0.9, 0.2]"}],
    "one column": [{"id": 7, "x": [0.9, 0.2]}],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_the_same(tmp_path, form):
    frame = frame_of(tmp_path, FORMS[form])
    id_column = "id" if "id" in frame else None
    layout = find_layout(frame, id_column)
    if layout.label_names is not None:
        assert sorted(layout.label_names) == NAMES
    columns = ls.tables.PredictionColumns(NAMES, layout.name, layout.column, id_column=id_column)
    found = columns.fit(frame).transform(frame)
    assert list(found.columns) == NAMES
    assert found.to_numpy().tolist() == [[0.9, 0.2]]
    again = columns.transform(columns.convert(frame))
    pd.testing.assert_frame_equal(again, found)


def test_arrays_go_by_position(tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, np.array([[0.9, 0.2], [0.1, 0.3]]))
    frame = read_table(path)
    layout = find_layout(frame)
    assert (layout.name, layout.label_names) == ("positions", None)
    columns = ls.tables.PredictionColumns(NAMES, "positions").fit(frame)
    assert columns.transform(frame)["dog"].tolist() == [0.2, 0.3]
    message = "The array in 't.npy' must have 2 columns, one for each label, got 1."
    with pytest.raises(ls.InputError, match=re.escape(message)):
        columns.convert(frame[[0]], "'t.npy'")
    assert columns.columns_read == []


def test_parquet_lists(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"id": [1], "scores": [PAIRS], "emb": [[1.0, 2.0]]}).to_parquet(path)
    frame = read_table(path)
    layout = find_layout(frame, "id")
    assert (layout.name, layout.column) == ("cells", "scores")
    columns = ls.tables.PredictionColumns(NAMES, "cells", "scores").fit(frame)
    assert columns.transform(frame).to_numpy().tolist() == [[0.9, 0.2]]


ANSWERS = [
    [["cat"], ["dog", "cat"], []],
    [["dog"]],
    [{"labels": ["cat", "cat"]}, '["dog"]'],
]


def test_answers_are_votes_of_any_number(tmp_path):
    frame = frame_of(tmp_path, [{"id": i, "answers": cell} for i, cell in enumerate(ANSWERS)])
    assert find_layout(frame, "id").name == "answers"
    columns = ls.tables.PredictionColumns(NAMES, "answers", "answers").fit(frame)
    votes = columns.transform(frame)
    gone = [np.nan, np.nan]
    expected = [[[1, 0], [1, 1], [0, 0]], [[0, 1], gone, gone], [[1, 0], [0, 1], gone]]
    np.testing.assert_array_equal(votes, expected)
    np.testing.assert_array_equal(columns.transform(columns.convert(frame)), expected)
    bits = pd.DataFrame({"value": [np.array([[1, 0], [1, 1]])]})
    assert find_layout(bits).name == "answers"
    of_bits = ls.tables.PredictionColumns(NAMES, "answers", "value").fit(bits)
    assert of_bits.transform(bits).tolist() == [[[1, 0], [1, 1]]]


def test_votes_that_were_not_cast():
    model = ls.PrecomputedProbabilities("votes")
    gone = [np.nan, np.nan]
    votes = np.array([[[1, 0], [1, 1], [1, 0]], [[0, 1], [1, 1], gone], [[0, 0], gone, gone]])
    truth = np.array([[1, 0], [0, 1], [0, 0]])
    dist = model.fit(votes, truth).predict_distribution(votes)
    np.testing.assert_allclose(dist.marginals(), [[1, 1 / 3], [1 / 2, 1], [0, 0]])
    for row, n_cast in enumerate((3, 2, 1)):
        alone = ls.LabelsetTable.from_samples(votes[row : row + 1, :n_cast])
        for k in (1, 2):
            np.testing.assert_array_equal(
                dist[row].top(k).probabilities, alone.top(k).probabilities
            )
    with pytest.raises(ls.InputError, match="must have at least one vote, row 1 has none"):
        model.fit(np.array([[[1, 0]], [gone]]), truth[:2])
    with pytest.raises(ls.InputError, match="`samples`"):
        model.fit(np.array([[[1, np.nan]], [[1, 0]]]), truth[:2])


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (PAIRS[:1], "the label 'cat' has no score; print the scores of all labels"),
        ([*PAIRS, {"label": "cow", "score": 0}], "the label 'cow' is unknown to the model"),
        ([*PAIRS, PAIRS[0]], "a label has two scores"),
        ([*PAIRS, 3], "each entry must have a label and a score, got 3"),
        (
            [{"label": "cat", "score": "0.9"}, PAIRS[0]],
            "the score of 'cat' must be a finite number",
        ),
        ([{"label": "cat", "score": True}, PAIRS[0]], "must be a finite number, got True"),
        ({"labels": ["cat"], "scores": [0.9, 0.2]}, "a score for each label, got 1, 2"),
        ([0.9], "it must have 2 scores, got 1"),
        ([0.9, None], "the score of 'dog' must be a finite number, got None"),
        ([0.9, float("nan")], "the score of 'dog' must be a finite number, got nan"),
        ("many", "its scores must be a list, got 'many'"),
        ("[0.9, ", "its scores must be a list, got '[0.9, '"),
        (None, "its scores must be a list, got None"),
        (
            [0.9, 1.5],
            "the score of 'dog' must lie in [0, 1], got 1.5; logits are read with `kind`",
        ),
        ([-0.1, 0.5], "the score of 'cat' must lie in [0, 1], got -0.1"),
    ],
)
def test_cells_that_cannot_be_read(cell, reason):
    cells = pd.Series([[0.5, 0.5], cell], [10, 11], dtype=object)
    frame = cells.to_frame("scores")
    columns = ls.tables.PredictionColumns(NAMES, "cells", "scores").fit(frame)
    with pytest.raises(ls.errors.RowsError) as caught:
        columns.convert(frame)
    assert list(caught.value.reasons) == [11]
    assert reason in caught.value.reasons[11]


def test_lists_that_cannot_be_read():
    frame = pd.DataFrame({"labels": [["cat", "dog"], 3], "scores": [[0.9, 0.2], [0.1]]})
    columns = ls.tables.PredictionColumns(NAMES, "lists").fit(frame)
    with pytest.raises(
        ls.errors.RowsError, match=re.escape("labels and scores must be lists, got 3, [0")
    ):
        columns.convert(frame)


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ([], "it must have at least one answer that is a vote, got []"),
        (None, "it must have a list of answers, got None"),
        ([["cat"], 3], "an answer must be a list of labels, got 3"),
        ([[1, 2]], "an answer of numbers must have 2 zeros and ones, got [1, 2]"),
        ([[1, 0, 1]], "an answer of numbers must have 2 zeros and ones, got [1, 0, 1]"),
    ],
)
def test_answers_that_cannot_be_read(cell, reason):
    frame = pd.DataFrame({"answers": [[["cat"]], cell]})
    columns = ls.tables.PredictionColumns(NAMES, "answers", "answers").fit(frame)
    with pytest.raises(ls.errors.RowsError) as caught:
        columns.convert(frame)
    assert caught.value.reasons == {1: reason}


def test_what_is_left_out_of_answers_is_counted():
    cells = [[["cat", "cow"], None], [["cow"], ["dog", 7], [0, 1]], [{"labels": None}, ["cat"]]]
    frame = pd.DataFrame({"answers": cells})
    columns = ls.tables.PredictionColumns(NAMES, "answers", "answers").fit(frame)
    found = columns.count_odd_answers(frame)
    assert (found.n_null, found.n_unknown, found.words) == (2, 3, ("cow", "7"))
    with pytest.warns(ls.errors.UnseenValuesWarning, match=re.escape(str(found))):
        votes = columns.transform(frame)
    expected = [[[1, 0]], [[0, 0], [0, 1], [0, 1]], [[1, 0]]]
    assert [row[~np.isnan(row).any(axis=1)].tolist() for row in votes] == expected
    twice = found + found
    assert (twice.n_null, twice.n_unknown, twice.words) == (4, 6, ("cow", "7"))
    assert str(columns.count_odd_answers(frame[:0])) == ""


def test_columns_that_hold_no_scores():
    frame = pd.DataFrame({"cat": ["0.5", "", "x", "2"], "dog": [0.1, 0.2, 0.3, 7.0]})
    columns = ls.tables.PredictionColumns(NAMES).fit(frame)
    with pytest.raises(ls.errors.RowsError) as caught:
        columns.convert(frame)
    assert caught.value.reasons == {
        1: "the score of 'cat' must be a finite number, got ''",
        2: "the score of 'cat' must be a finite number, got 'x'",
        3: "the score of 'cat' must lie in [0, 1], got 2; logits are read with `kind`",
    }
    as_logits = ls.tables.PredictionColumns(NAMES, logits=True).fit(frame)
    assert as_logits.convert(frame.drop(index=[1, 2])).to_numpy().tolist() == [[0.5, 0.1], [2, 7]]
    with pytest.raises(ls.InputError, match="missing are 'dog'"):
        columns.convert(frame[["cat"]])


def test_the_limits_of_a_probability_are_probabilities():
    frame = pd.DataFrame({"cat": [0.0, 1.0], "dog": [1, 0]})
    found = ls.tables.PredictionColumns(NAMES).fit(frame).transform(frame)
    assert found.to_numpy().tolist() == [[0, 1], [1, 0]]


def test_parameters():
    frame = pd.DataFrame({"cat": [0.5]})
    with pytest.raises(ls.errors.UnknownNameError, match="Unknown layout 'colums'"):
        ls.tables.PredictionColumns(["cat"], "colums").fit(frame)
    with pytest.raises(ls.InputError, match="`column`"):
        ls.tables.PredictionColumns(["cat"], "cells").fit(frame)
    with pytest.raises(ls.InputError, match="got 1 rows and 0 such columns"):
        find_layout(frame, "cat")
    with pytest.raises(ls.InputError, match="got 0 rows and 1 such columns"):
        find_layout(frame[:0])


@pytest.mark.parametrize(
    ("layout", "column", "expected"),
    [
        ("columns", None, [("cat", "what the other system says of the label")] ),
        ("positions", None, [("0", "what the other system says of 'cat'")]),
        ("cells", "scores", [("scores", "a cell with the scores of all labels")]),
        ("answers", "a", [("a", "a list of answers, each of which is a list of labels")]),
        ("lists", None, [(name, "a list of labels and a list of their scores")
                         for name in ("labels", "scores")]),
    ],
)  # fmt: skip
def test_what_is_said_of_columns(layout, column, expected):
    columns = ls.tables.PredictionColumns(["cat"], layout, column, id_column="key").fit(None)
    first, *others = columns.describe_columns()
    assert first == {"name": "key", "role": "id", "note": "names the rows"}
    assert [(other["name"], other["note"]) for other in others] == expected
    assert {other["role"] for other in others} == {"probability"}
