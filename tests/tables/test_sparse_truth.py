"""True labels of very many: rows of a matrix, names and numbers, joined with predictions."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import labelsure as ls
from labelsure.tables.files import read_table
from labelsure.tables.truth import read_truth

NAMES = ("ant", "bee", "cat", "dog")
ROWS = [[0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]]
LISTS = [["dog", "bee"], [], ["ant"]]


def read(frame, labels=NAMES, n_labels=4, **settings):
    settings |= {"labels": labels, "n_labels": n_labels}
    found = read_truth(frame, "'t.jsonl'", sparse=True, **settings)
    assert isinstance(found.truth.labelsets, sparse.csr_array)
    assert found.truth.labelsets.has_canonical_format
    return found


def save_matrix(tmp_path, rows):
    sparse.save_npz(tmp_path / "t.npz", sparse.csr_array(rows))
    return read_table(tmp_path / "t.npz")


def save_lines(tmp_path, lines):
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return read_table(path)


def forms(tmp_path):
    yield "matrix", save_matrix(tmp_path, np.array(ROWS, dtype=bool)), {}
    yield "lists", save_lines(tmp_path, LISTS), {}
    lines = [{"id": i, "tags": some, "note": "n"} for i, some in enumerate(LISTS)]
    yield "a column", save_lines(tmp_path, lines), {"label_column": "tags", "id_column": "id"}
    texts = pd.DataFrame({"tags": ["dog; bee", "", "ant"]})
    yield "text", texts, {"sep": ";"}
    yield (
        "zeros and ones",
        pd.DataFrame(ROWS, columns=list(NAMES))[["dog", "cat", "bee", "ant"]],
        {},
    )


def test_every_form_says_the_same(tmp_path):
    for form, frame, settings in forms(tmp_path):
        found = read(frame, **settings)
        assert found.truth.labelsets.toarray().tolist() == ROWS, form
        assert found.truth.label_names == NAMES


@pytest.mark.parametrize("labels", [[[3, 1], [], [0]], [["y3", "y1"], [], ["y0"]]])
def test_labels_without_names_are_counted(tmp_path, labels):
    frame = save_lines(tmp_path, [{"labels": some} for some in labels])
    assert read(frame, None).truth.labelsets.toarray().tolist() == ROWS
    texts = pd.DataFrame({"labels": ["3;1", "", "0"]})
    assert read(texts, None, sep=";").truth.labelsets.toarray().tolist() == ROWS


def test_numbers_are_names_where_labels_have_some(tmp_path):
    frame = save_lines(tmp_path, [{"labels": [7]}])
    assert read(frame, ("8", "7"), 2).truth.labelsets.toarray().tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("cells", "names", "message"),
    [
        ([["cow"]], NAMES, "Unknown label in row 0 of `truth`: 'cow'"),
        ([[1]], NAMES, "Unknown label in row 0 of `truth`: '1'"),
        ([[4]], None, "Unknown label in row 0 of `truth`: 'y4'"),
        ([[-1]], None, "Unknown label in row 0 of `truth`: '-1'"),
        ([["ant"], "ant;bee"], NAMES, "as a list of names, got 'ant;bee' in row 1"),
        ([["ant"], [["bee"]]], NAMES, "as a list of names, got [['bee']] in row 1"),
        ([[{"ant": 1}]], NAMES, "as a list of names, got [{'ant': 1}] in row 0"),
    ],
)
def test_rows_that_cannot_be_used(cells, names, message):
    frame = pd.DataFrame({"labels": pd.Series(cells, dtype=object)})
    with pytest.raises(ls.InputError, match=re.escape(message)):
        read(frame, names)


def test_matrices_that_cannot_be_used(tmp_path):
    with pytest.raises(ls.InputError, match=r"only 0 and 1, got 0\.5 in row 0, column 1"):
        read(save_matrix(tmp_path, [[0, 0.5, 1, 0]]))
    for names in (NAMES, None):
        with pytest.raises(ls.InputError, match=r"got 4|must have 4"):
            read(save_matrix(tmp_path, [[0, 1, 1]]), names)


def test_zeros_that_are_stored(tmp_path):
    rows = sparse.csr_array((np.array([0.0, 1.0]), np.array([1, 2]), np.array([0, 2])), (1, 4))
    sparse.save_npz(tmp_path / "t.npz", rows)
    assert read(read_table(tmp_path / "t.npz")).truth.labelsets.indices.tolist() == [2]


def test_rows_are_joined_by_id(tmp_path):
    lines = [{"id": i, "labels": some} for i, some in zip("abc", LISTS, strict=True)]
    truth = read(save_lines(tmp_path, lines), id_column="id")
    said = pd.DataFrame({"id": ["c", "x", "b", "a"], "place": range(4)})
    joined = truth.join(said, "'p.jsonl'")
    assert joined["place"].tolist() == [3, 2, 0]
    with pytest.raises(ls.InputError, match=r"one row of 'p.jsonl', missing there: 'b'\."):
        truth.join(said.drop(index=2), "'p.jsonl'")
    with pytest.raises(ls.InputError, match=r"Unknown column 'id' of 'p.jsonl'"):
        truth.join(said[["place"]], "'p.jsonl'")
    with pytest.raises(ls.InputError, match=r"same rows .* got 4 in 'p.jsonl' and 3 in 't.jsonl'"):
        replace(truth, truth=replace(truth.truth, index=None)).join(said, "'p.jsonl'")


def test_names_that_a_truth_has(tmp_path):
    found = read_truth(save_lines(tmp_path, LISTS), "t", sparse=True)
    assert found.truth.label_names == ("ant", "bee", "dog")
    bits = pd.DataFrame(ROWS, columns=list(NAMES))
    assert read_truth(bits, "t").truth.label_names == NAMES
    assert read_truth(save_matrix(tmp_path, ROWS), "t", sparse=True).truth.label_names is None
