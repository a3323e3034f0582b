"""The same table in another format: the same predictions and ids, the truth of the same rows."""

import json

import numpy as np
import pandas as pd
import pytest

import labelsure as ls
from labelsure.errors import UnseenValuesWarning
from labelsure.tables.estimates import sum_files
from labelsure.tables.files import read_table
from labelsure.tables.inputs import ColumnRole, TableColumns
from labelsure.tables.scoring import score_files
from labelsure.tables.training import train_model

N_ROWS = 120


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    open_, floor = rng.random(N_ROWS) < 0.5, rng.integers(1, 4, N_ROWS)
    city = rng.choice(["Zürich", "Bern", "Genève"], N_ROWS)
    noise = rng.random((N_ROWS, 2)) < 0.1
    labels = np.column_stack([open_, floor > 1]) ^ noise
    frame = pd.DataFrame({"open": open_, "floor": floor.astype(float), "city": city})
    return frame.assign(x=labels[:, 0].astype(int), y=labels[:, 1].astype(int))


def write(table, path):
    """Write the same values as each format has them."""
    if path.suffix == ".csv":
        texts = {"open": table["open"].map({True: "true", False: "false"})}
        texts["floor"] = table["floor"].astype(int)
        table.assign(**texts).to_csv(path, index=False)
    elif path.suffix == ".tsv":
        texts = {"open": table["open"].map({True: "TRUE", False: "FALSE"})}
        table.assign(**texts).to_csv(path, index=False, sep="\t")
    elif path.suffix == ".jsonl":
        records = table.to_dict("records")
        path.write_text("\n".join(json.dumps(record) for record in records))
    else:
        table.to_parquet(path)
    return path


@pytest.mark.parametrize("trained_on", [".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("other", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_a_value_is_the_same_in_every_format(table, tmp_path, trained_on, other):
    model = train_model(
        write(table, tmp_path / f"train{trained_on}"),
        labels="x,y",
        classifier="br",
        cv=2,
        roles={"floor": "category"},
    )
    expected = model.predict_proba(read_table(tmp_path / f"train{trained_on}"))
    found = model.predict_proba(read_table(write(table, tmp_path / f"new{other}")))
    np.testing.assert_array_equal(found, expected)


def test_only_what_formats_spell_differently_is_the_same_category():
    train = pd.DataFrame({"version": ["1.1", "1.10", "2.0", "007"] * 5})
    columns = TableColumns([ColumnRole.of("version", "category")]).fit(train)
    new = pd.DataFrame({"version": ["1.10", "1.1", "2", "7", "1.100", "2.0", True, "-3.0"]})
    typed = columns.convert(new)["version"].tolist()
    assert typed == ["1.10", "1.1", "2", "7", "1.100", "2", "true", "-3"]
    assert columns.transform(new).sum(axis=1).tolist() == [1, 1, 1, 0, 0, 1, 0, 0]


def test_mostly_unseen_values_are_worth_a_warning(table, tmp_path):
    model = train_model(table, labels="x,y", classifier="br", cv=2)
    path = tmp_path / "m.labelsure"
    model.save(path)
    other = table.assign(city=table["city"].str.upper())
    other.to_csv(tmp_path / "new.csv", index=False)
    with pytest.warns(UnseenValuesWarning, match="mostly"):
        model.predict(other)
    with pytest.warns(UnseenValuesWarning, match="'city'"):
        score_files(path, tmp_path / "new.csv", tmp_path / "out.csv", n_jobs=1)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
def test_large_ids_stay_what_they_are(table, tmp_path, monkeypatch, suffix):
    """Above 2**53 a float cannot tell neighbours apart; one id of a part is missing."""
    monkeypatch.setattr("labelsure.tables.files.CHUNK_ROWS", 50)
    path = tmp_path / "m.labelsure"
    train_model(table, labels="x,y", classifier="br", cv=2).save(path)
    ids = pd.array(2**53 + np.arange(N_ROWS), dtype="Int64")
    ids[3] = None
    table.assign(id=ids).to_parquet(tmp_path / "new.parquet")
    run = score_files(
        path, tmp_path / "new.parquet", out := tmp_path / f"out{suffix}", n_jobs=1, id_column="id"
    )  # fmt: skip
    assert run.n_rows == N_ROWS
    if suffix == ".parquet":
        found = pd.read_parquet(out, dtype_backend="numpy_nullable")["id"].tolist()
    elif suffix == ".csv":
        found = pd.read_csv(out, dtype={"id": "Int64"})["id"].tolist()
    else:
        found = [json.loads(line)["id"] for line in out.read_text().splitlines()]
    assert [int(one) for one in found if not pd.isna(one)] == [int(i) for i in ids.dropna()]
    assert pd.isna(found[3])


def test_the_truth_is_that_of_the_file_it_names(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train_model(table, labels="x,y", classifier="br", cv=2).save("m")
    for name in ("mon", "tue"):
        (tmp_path / name).mkdir()
        table.to_csv(tmp_path / name / "p.csv", index=False)
    score_files("m", ["mon/p.csv", "tue/p.csv"], "out.parquet", n_jobs=1, audit=30)
    audited = pd.read_parquet("out.parquet").query("audit")[["file", "row", "fingerprint"]]
    assert set(audited["file"]) == {"mon/p.csv", "tue/p.csv"}
    truth = audited.assign(**{name: table[name][audited["row"]].to_numpy() for name in "xy"})
    truth.to_csv("truth.csv", index=False)
    found = sum_files("m", ["mon/p.csv", "tue/p.csv"], truth="truth.csv", n_jobs=1).estimate()
    assert found.n_samples == 2 * N_ROWS
    for inputs in ("tue/p.csv", "mon/p.csv"):
        with pytest.raises(ls.InputError, match="files"):
            sum_files("m", inputs, truth="truth.csv", n_jobs=1).estimate()
    truth.assign(file="p.csv").to_csv("truth.csv", index=False)
    with pytest.raises(ls.InputError, match="several of them"):
        sum_files("m", ["mon/p.csv", "tue/p.csv"], truth="truth.csv", n_jobs=1).estimate()


def test_the_level_reaches_the_card(table):
    widths = []
    for level in (0.5, 0.95):
        model = train_model(table, labels="x,y", classifier="br", confidence=level, cv=3)
        assert model.card_.confidence == model.reference_.level == level
        widths.append(model.card_.high - model.card_.low)
    assert widths[0] < 0.5 * widths[1]


@pytest.mark.parametrize("level", [0, 1, -0.5])
def test_levels_that_are_none(table, level):
    with pytest.raises(ls.InputError, match="level"):
        train_model(table, labels="x,y", classifier="br", confidence=level, cv=2)
