"""Predictions that list some of very many labels, in every form in which they stand in files."""

import json
import re
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import labelsure as ls
from labelsure.tables.files import list_rows, read_table
from labelsure.tables.inputs import LAYOUTS, all_listed_labels, find_layout

NAMES = ["ant", "bee", "cat", "dog"]
PAIRS = [{"label": "dog", "score": 0.2}, {"label": "bee", "score": 0.9}]
FORMS = {
    "pairs": [PAIRS, []],
    "a batch of one": [[PAIRS], []],
    "pairs with an id": [{"id": 7, "scores": PAIRS}, {"id": 8, "scores": []}],
    "by name": [{"scores": {"dog": 0.2, "bee": 0.9}}, {"scores": {}}],
    "two lists": [{"labels": ["dog", "bee"], "scores": [0.2, 0.9]}, {"labels": [], "scores": []}],
    "JSON in text": [{"scores": json.dumps(PAIRS)}, {"scores": "[]"}],
}


def read_lines(tmp_path, lines):
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return read_table(path)


def columns_of(frame, names=NAMES, **settings):
    layout = find_layout(frame, "id")
    settings = {"sparse": layout.name != "listed", "id_column": "id"} | settings
    return ls.tables.PredictionColumns(names, layout.name, layout.column, **settings).fit(frame)


def save_matrix(tmp_path, matrix):
    sparse.save_npz(tmp_path / "t.npz", sparse.csr_array(matrix))
    return read_table(tmp_path / "t.npz")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_the_same(tmp_path, form):
    frame = read_lines(tmp_path, FORMS[form])
    columns = columns_of(frame)
    found = columns.transform(frame)
    assert isinstance(found, sparse.csr_array)
    assert found.toarray().tolist() == [[0, 0.9, 0, 0.2], [0, 0, 0, 0]]
    assert found.has_canonical_format
    again = columns.transform(columns.convert(frame))
    assert (again != found).nnz == 0
    layout = find_layout(frame, "id")
    cells = ["labels", "scores"] if layout.name == "lists" else [layout.column]
    assert all_listed_labels([frame[name] for name in cells]) == ["bee", "dog"]


def test_a_sparse_matrix(tmp_path):
    matrix = np.array([[0, 0.9, 0, 0.2], [0, 0, 0, 0]])
    frame = save_matrix(tmp_path, matrix)
    layout = find_layout(frame)
    assert (layout.name, layout.label_names, layout.n_labels) == ("listed", None, 4)
    for names in (NAMES, 4):
        columns = columns_of(frame, names)
        assert columns.is_sparse
        assert columns.transform(frame).toarray().tolist() == matrix.tolist()
    assert (columns.label_names_, columns.n_labels_) == (None, 4)
    assert columns.describe_columns() == [
        {"name": "id", "role": "id", "note": "names the rows"},
        {
            "name": "value",
            "role": "probability",
            "note": LAYOUTS["listed"],
        },
    ]


def test_logits_may_be_any_number(tmp_path):
    frame = save_matrix(tmp_path, [[0, 2.0, 0, -3.0]])
    found = columns_of(frame, logits=True).transform(frame)
    assert (found.indices.tolist(), found.data.tolist()) == ([1, 3], [2.0, -3.0])


BAD = {
    "unknown": (
        [{"label": "cow", "score": 0.5}],
        "the label 'cow' is unknown to the model; name all labels with `labels` when the model is "
        "made",
    ),
    "twice": (PAIRS + PAIRS[:1], "the label 'dog' has two scores"),
    "too high": (
        [{"label": "ant", "score": 1.5}],
        "the score of 'ant' must lie in [0, 1], got 1.5",
    ),
    "negative": (
        [{"label": "ant", "score": -0.5}],
        "must lie in [0, 1], got -0.5; logits are read",
    ),
    "no number": ([{"label": "ant", "score": "x"}], "the score of 'ant' must be a finite number"),
    "no pairs": (
        [0.1, 0.2, 0.3, 0.4],
        "it must list labels with their scores, pairs such as {'lab",
    ),
    "no score": ([{"label": "ant"}], "each entry must have a label and a score"),
}


@pytest.mark.parametrize(("cell", "reason"), BAD.values(), ids=BAD)
def test_rows_that_cannot_be_used(tmp_path, cell, reason):
    frame = read_lines(tmp_path, [{"scores": PAIRS}, {"scores": cell}])
    with pytest.raises(ls.errors.RowsError, match=re.escape(reason)) as caught:
        columns_of(frame).convert(frame, "'t.jsonl'")
    assert list(caught.value.reasons) == [1]


def test_numbers_that_count_end(tmp_path):
    frame = read_lines(
        tmp_path, [[{"label": "y7", "score": 0.5}], [{"label": "y07", "score": 0.5}]]
    )
    with pytest.raises(ls.errors.RowsError, match="model"):
        columns_of(frame, 7).convert(frame)


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        ([[0, 1.5]], "the score of 'y1' must lie in [0, 1], got 1.5; logits are read with"),
        ([[0, np.nan]], "the score of 'y1' must be a finite number, got nan."),
        ([[-np.inf, 0]], "the score of 'y0' must be a finite number, got -inf."),
    ],
)
def test_scores_of_a_matrix_that_cannot_be_used(tmp_path, matrix, reason):
    frame = save_matrix(tmp_path, matrix)
    with pytest.raises(ls.errors.RowsError, match=re.escape(reason)):
        columns_of(frame, 2).convert(frame)


def test_a_matrix_of_other_labels(tmp_path):
    frame = save_matrix(tmp_path, [[0, 0.5, 0]])
    with pytest.raises(ls.InputError, match=r"in 't.npz' must have 4 columns, .* got 3\."):
        columns_of(frame).convert(frame, "'t.npz'")


def test_layouts_that_list_all_labels():
    with pytest.raises(ls.InputError, match="scores"):
        ls.tables.PredictionColumns(NAMES, "columns", sparse=True).fit(None)
    with pytest.raises(ls.InputError, match="`column`"):
        ls.tables.PredictionColumns(NAMES, "listed").fit(None)


def test_nothing_is_listed():
    with pytest.raises(ls.InputError, match="must list at least one label, they list none"):
        all_listed_labels([[[], {}]])


def test_a_missing_label_says_how_to_go_on(tmp_path):
    frame = read_lines(tmp_path, [PAIRS])
    with pytest.raises(ls.errors.RowsError, match="`sparse`"):
        columns_of(frame, sparse=False).convert(frame)


def test_memory_is_in_what_is_listed():
    n, n_labels, n_listed = 500, 10**5, 20
    rng = np.random.default_rng(0)
    labels = [np.sort(rng.choice(n_labels, n_listed, replace=False)) for _ in range(n)]
    starts = n_listed * np.arange(n + 1)
    parts = (rng.random(n * n_listed), np.concatenate(labels), starts)
    frame = pd.DataFrame({"value": list_rows(sparse.csr_array(parts, (n, n_labels)))})
    columns = columns_of(frame, n_labels)
    columns.transform(frame[:1])
    tracemalloc.start()
    found = columns.transform(frame)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.nnz == n * n_listed
    assert peak < 100 * n * n_listed + 10**6 < n * n_labels / 5
