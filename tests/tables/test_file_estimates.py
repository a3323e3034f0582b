"""`sum_files`: the numbers of `estimate` for all rows at once, from parts of any size."""

import re
from unittest.mock import patch

import numpy as np
import pandas as pd
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
    with pytest.raises(ls.InputError, match="`metric` must be a mean over rows"):
        sum_files(*paths, metric=metric, shift="weighted")


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


METRICS = [None, "exact", "hamming", "macro-f1", "micro-recall"]


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """Two files of a batch, and the labels of some rows, by id and by position."""
    folder, model = tmp_path_factory.mktemp("audited"), make_model()
    model.save(folder / "model.labelsure")
    rows = make_rows(240)
    ids = [f"row {i}" for i in range(240)]
    rows["id"] = ids
    drawn = np.sort(np.random.default_rng(0).permutation(240)[:90])
    truth = model.predict_distribution(rows.drop(columns="id")).sample(1, random_state=0)[:, 0]
    (folder / "new").mkdir()
    rows[:100].to_csv(folder / "new" / "a.csv", index=False)
    rows[100:].to_csv(folder / "new" / "b.csv", index=False)
    labels = pd.DataFrame(truth[drawn], columns=list(model.label_names_))
    labels.assign(id=np.array(ids)[drawn]).to_csv(folder / "by_id.csv", index=False)
    places = {
        "file": np.where(drawn < 100, "new/a.csv", "new/b.csv"),
        "row": drawn - 100 * (drawn >= 100),
    }
    labels.assign(**places).to_csv(folder / "by_place.csv", index=False)
    return folder, rows, drawn, truth


@pytest.mark.filterwarnings("ignore:Rows of .* are joined by position")
@pytest.mark.parametrize("n_rows", [17, 1000])
@pytest.mark.parametrize("named", ["by_id", "by_place"])
@pytest.mark.parametrize("metric", METRICS)
def test_labelled_rows_of_files_and_of_each(audited, monkeypatch, metric, named, n_rows):
    """The estimates of the library for all rows, and for those of each file."""
    folder, rows, drawn, truth = audited
    monkeypatch.setattr(files, "CHUNK_ROWS", n_rows)
    settings = {"id_column": "id"} if named == "by_id" else {}
    sums = sum_files(
        folder / "model.labelsure",
        folder / "new",
        truth=folder / f"{named}.csv",
        metric=metric,
        by_file=True,
        n_jobs=1,
        **settings,
    )
    parts = [(sums.estimate(), 0, 240)]
    one, other = sums.assess_files()
    assert (one.name, other.name) == ("new/a.csv", "new/b.csv")
    parts += [(one.plain, 0, 100), (other.plain, 100, 240)]
    for found, start, end in parts:
        own = drawn[(drawn >= start) & (drawn < end)]
        expected = make_model().estimate(
            rows[start:end].drop(columns="id"),
            rows=own - start,
            Y_true=truth[own],
            **({} if metric is None else {"metric": metric}),
        )
        assert (found.quantity, found.n_samples) == (expected.quantity, end - start)
        assert found.n_labelled == expected.n_labelled == len(own)
        for name in ("mean", "low", "high"):  # a last bit may move a logit to the next tenth
            close = pytest.approx(
                getattr(expected, name), abs=5e-3 if metric in METRICS[3:] else 1e-9
            )
            assert getattr(found, name) == close


@pytest.mark.parametrize("metric", METRICS)
def test_a_file_without_labelled_rows(audited, metric):
    folder, _, _, _ = audited
    truth = pd.read_csv(folder / "by_id.csv")
    ids = set(pd.read_csv(folder / "new" / "a.csv")["id"])
    truth[truth["id"].isin(ids)].to_csv(folder / "of_a.csv", index=False)
    sums = sum_files(
        folder / "model.labelsure",
        folder / "new",
        truth=folder / "of_a.csv",
        metric=metric,
        id_column="id",
        by_file=True,
        n_jobs=1,
    )
    one, other = sums.assess_files()
    assert one.plain.n_labelled == sums.estimate().n_labelled == len(ids & set(truth["id"]))
    assert (other.plain, "No row of it is labelled" in other.refusal) == (None, True)
