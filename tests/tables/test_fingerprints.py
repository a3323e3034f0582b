"""Fingerprints: the same for the same row, whatever its file, and checked by joins by position."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scored_files import make_model, make_rows

import labelsure as ls
from labelsure.tables.estimates import sum_files
from labelsure.tables.scoring import score_files
from labelsure.tables.truth import fingerprint_rows

N_ROWS = 60


@pytest.fixture
def audited(tmp_path, monkeypatch):
    """Score a file with an audit, and return labels of the audited rows."""
    monkeypatch.chdir(tmp_path)
    make_model().save("m")
    make_rows(N_ROWS).to_csv("new.csv", index=False)
    score_files("m", "new.csv", "out.csv", audit=30, n_jobs=1)
    drawn = pd.read_csv("out.csv").query("audit")
    labels = np.random.default_rng(0).integers(0, 2, size=(30, 3))
    return drawn[["file", "row", "fingerprint"]].assign(x=labels[:, 0], y=labels[:, 1], z=1)


def test_rows_that_moved_are_refused(audited):
    audited.to_csv("truth.csv", index=False)
    assert sum_files("m", "new.csv", truth="truth.csv", n_jobs=1).estimate().n_labelled == 30
    make_rows(N_ROWS).drop(index=audited["row"].min()).to_csv("new.csv", index=False)
    with pytest.raises(ls.InputError, match="another fingerprint: rows were added"):
        sum_files("m", "new.csv", truth="truth.csv", n_jobs=1)


def test_one_changed_value_is_refused(audited):
    audited.to_csv("truth.csv", index=False)
    rows = make_rows(N_ROWS)
    rows.loc[audited["row"].iloc[3], "b"] += 1e-9
    rows.to_csv("new.csv", index=False)
    with pytest.raises(ls.InputError, match=f"row {audited['row'].iloc[3]} of 'new.csv' has"):
        sum_files("m", "new.csv", truth="truth.csv", n_jobs=1)


def test_a_join_that_cannot_be_checked_says_so(audited):
    audited.drop(columns="fingerprint").to_csv("truth.csv", index=False)
    with pytest.warns(UserWarning, match="joined by position, which is not checked"):
        sum_files("m", "new.csv", truth="truth.csv", n_jobs=1)


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, csr_array])
def test_rows_are_told_apart_in_every_form(kind):
    values = np.random.default_rng(0).integers(0, 3, size=(50, 6)).astype(float)
    found = fingerprint_rows(kind(values))
    rows = [tuple(row) for row in values]
    assert len(set(found)) == len(set(rows))
    assert [found[i] == found[0] for i in range(50)] == [row == rows[0] for row in rows]
    assert fingerprint_rows(kind(values), np.array([7, 3])) == [found[7], found[3]]
    assert all(text[0] == "r" and len(text) == 17 for text in found)


def test_numbers_of_any_type_and_texts():
    frame = pd.DataFrame({"a": [1, 2], "b": ["u", None]})
    same = pd.DataFrame({"a": np.array([1, 2], dtype=np.float32), "b": ["u", None]})
    assert fingerprint_rows(frame) == fingerprint_rows(same)
    texts = pd.Series(["one", "two"])
    assert len(set(fingerprint_rows(texts))) == 2
