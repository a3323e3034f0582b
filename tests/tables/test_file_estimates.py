"""`sum_files`: the numbers of `estimate` for all rows at once, from parts of any size."""

import re
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scored_files import make_model, make_rows

import labelsure as ls
from labelsure.estimation._label_estimates import EntryCounts
from labelsure.tables import files
from labelsure.tables.estimates import sum_files

N_ROWS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    make_model().save(folder / "model.labelsure")
    make_rows(N_ROWS).to_csv(folder / "new.csv", index=False)
    return folder


@given(n_rows=st.integers(1, 70), level=st.sampled_from([None, 0.5, 0.99]))
def test_parts_say_what_all_rows_say(folder, n_rows, level):
    paths = [folder / "model.labelsure", folder / "new.csv"]
    with patch.object(files, "CHUNK_ROWS", n_rows):
        found = sum_files(*paths, n_jobs=1).estimate(level=level)
    expected = make_model().estimate(make_rows(N_ROWS).drop(columns="id"), level=level)
    assert (found.n_samples, found.level) == (N_ROWS, level or 0.95)
    for name in ("mean", "low", "high", "spread"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-12)


def test_jobs_change_no_bit(folder, monkeypatch):
    monkeypatch.setattr(files, "CHUNK_ROWS", 7)
    paths = [folder / "model.labelsure", folder / "new.csv"]
    found = [sum_files(*paths, n_jobs=n_jobs).estimate() for n_jobs in (1, 2)]
    assert found[0] == found[1]


def test_rows_that_cannot_be_used(folder):
    rows = make_rows(9).astype(str)
    rows.loc[5, "c"] = "soon"
    rows.to_csv(folder / "bad.csv", index=False)
    with pytest.raises(ls.InputError, match=re.escape("Row 5 of 'bad.csv' (rows count from 0)")):
        sum_files(folder / "model.labelsure", folder / "bad.csv", n_jobs=1).estimate()
    (folder / "empty.csv").write_text("a,b,c,d\n")
    message = "The input must have at least one row, it has none."
    with pytest.raises(ls.InputError, match=re.escape(message)):
        sum_files(folder / "model.labelsure", folder / "empty.csv", n_jobs=1).estimate()


def test_progress_counts_rows(folder, monkeypatch):
    monkeypatch.setattr(files, "CHUNK_ROWS", 25)
    events = []
    sum_files(
        folder / "model.labelsure",
        folder / "new.csv",
        n_jobs=1,
        progress=lambda *counted: events.append(counted),
    ).estimate()
    assert events == [(25, None), (50, None), (60, None)]  # nobody knows how many there are


@pytest.mark.parametrize("metric", ["macro-f1", "micro-recall", "micro-precision"])
def test_label_averages_from_parts(folder, monkeypatch, metric):
    monkeypatch.setattr(files, "CHUNK_ROWS", 13)
    paths = [folder / "model.labelsure", folder / "new.csv"]
    found = sum_files(*paths, metric=metric, n_jobs=1).estimate()
    expected = make_model().estimate(make_rows(N_ROWS).drop(columns="id"), metric=metric)
    assert (found.quantity, found.n_samples) == (metric, N_ROWS)
    for name in ("mean", "low", "high"):  # a last bit may move a logit to the next tenth
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=5e-3)
    for settings in ({"shift": "weighted"}, {"truth": folder / "new.csv"}):
        with pytest.raises(ls.InputError, match="`metric` must be a mean over rows"):
            sum_files(*paths, metric=metric, **settings)


def test_counts_of_parts_add_up_to_those_of_the_whole():
    dist = make_model().predict_distribution(make_rows(N_ROWS).drop(columns="id"))
    estimator = make_model().accuracy_estimator_
    decisions = ls.decide(dist, estimator.metric)
    table = estimator.estimate_rows(dist, decisions).table
    whole = EntryCounts.of_table(table)
    parts = EntryCounts.of_table(table[:7]) + EntryCounts.of_table(table[7:])
    assert (whole.counts == parts.counts).all()
    assert len(whole) == len(parts) == N_ROWS
    n_labels = len(make_model().label_names_)
    predicted = whole.counts.reshape(2 * n_labels, -1).sum(axis=1)[n_labels:]
    assert (predicted == decisions.labelsets.sum(axis=0)).all()
