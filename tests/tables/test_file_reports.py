"""The page of a saved model and of rows in files, and the command that writes it."""

import numpy as np
import pandas as pd
import pytest
from scored_files import make_model, make_rows

import labelsure as ls
from labelsure._runtime.pages import Page
from labelsure.cli._app import main
from labelsure.errors import InputError
from labelsure.tables import estimates
from labelsure.tables.estimates import report_files
from labelsure.tables.scoring import score_files

NAMES = ["storm", "wet", "hot"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with a model, its input with ids, and the truth in another order."""
    folder = tmp_path_factory.mktemp("reports")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(900, 3)), columns=["wind", "rain", "sun"])
    Y = pd.DataFrame((X.to_numpy() + 0.5 * rng.normal(size=X.shape) > 0.3).astype(int), None, NAMES)
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), target=0.6, cv=0.5, random_state=0)
    model.fit(X[:600], Y[:600]).save(folder / "weather.labelsure")
    ids = pd.Index([f"d{i}" for i in range(300)], name="day")
    X[600:].set_index(ids).to_csv(folder / "new.csv")
    Y[600:].set_index(ids).sample(frac=1, random_state=1).to_csv(folder / "truth.csv")
    names = Y[600:].apply(lambda row: ";".join(n for n in NAMES if row[n]), axis=1).to_numpy()
    pd.DataFrame({"day": ids, "tags": names}).to_csv(folder / "tags.csv", index=False)
    return folder, model, X[600:], Y[600:]


def test_rows_of_files_give_the_page_of_the_model(made, monkeypatch):
    folder, model, X, _ = made
    whole = model.report(X.set_index(pd.Index([f"d{i}" for i in range(300)])), title="t").data
    for rows in (64, 2048):
        monkeypatch.setattr("labelsure.tables.files.CHUNK_ROWS", rows)
        found = report_files(
            folder / "weather.labelsure",
            folder / "new.csv",
            id_column="day",
            title="t",
        ).data
        for key in ("acceptance", "labels", "answer", "notes", "title"):
            assert found[key] == whole[key], key
        assert {entry["id"] for entry in found["explorer"]["instances"]} == {
            entry["id"] for entry in whole["explorer"]["instances"]
        }
    assert not found["batch"]["has_truth"]


@pytest.mark.parametrize(
    ("truth", "settings"),
    [("truth.csv", {}), ("tags.csv", {"label_column": "tags", "sep": ";"})],
)
def test_the_truth_is_joined_by_id(made, truth, settings):
    folder, model, X, Y = made
    found = report_files(
        folder / "weather.labelsure",
        folder / "new.csv",
        truth=folder / truth,
        id_column="day",
        **settings,
    ).data
    accuracy = ls.accuracy(Y.to_numpy(), model.predict(X), "jaccard").mean()
    assert found["acceptance"]["actual"][0] == pytest.approx(accuracy, abs=6e-5)
    assert found["title"] == "weather: new.csv"
    predicted = dict(zip([f"d{i}" for i in range(300)], model.predict(X), strict=True))
    for entry in found["explorer"]["instances"][:20]:
        assert entry["predicted"] == [NAMES[j] for j in np.flatnonzero(predicted[entry["id"]])]


def test_tables_that_both_have_a_column_id_are_joined_by_it(made, tmp_path):
    folder, *_ = made
    for name in ("new", "truth"):
        table = pd.read_csv(folder / f"{name}.csv").rename(columns={"day": "id"})
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    model = folder / "weather.labelsure"
    said = report_files(model, folder / "new.csv", truth=folder / "truth.csv", id_column="day")
    found = report_files(model, tmp_path / "new.csv", truth=tmp_path / "truth.csv")
    assert found.data["labels"] == said.data["labels"]


@pytest.mark.parametrize("settings", [{"scored": "s.csv"}, {"truth": "truth.csv"}])
def test_tables_about_no_input_are_refused(made, settings):
    folder, *_ = made
    with pytest.raises(InputError, match="must come with their input"):
        report_files(folder / "weather.labelsure", **settings)


def test_a_truth_beside_scored_rows_is_refused(made):
    folder, *_ = made
    tables = {"scored": "s.csv", "truth": folder / "truth.csv"}
    with pytest.raises(InputError, match="`truth` must come without `scored`"):
        report_files(folder / "weather.labelsure", folder / "new.csv", **tables)


def test_a_truth_without_ids_goes_by_position(made, tmp_path):
    folder, model, X, Y = made
    Y.to_csv(tmp_path / "truth.csv", index=False)
    X.to_csv(tmp_path / "new.csv", index=False)
    found = report_files(
        folder / "weather.labelsure", tmp_path / "new.csv", truth=tmp_path / "truth.csv"
    ).data
    accuracy = ls.accuracy(Y.to_numpy(), model.predict(X), "jaccard").mean()
    assert found["acceptance"]["actual"][0] == pytest.approx(accuracy, abs=6e-5)


def test_a_truth_of_several_inputs_is_refused(made):
    folder = made[0]
    inputs = [folder / "new.csv", folder / "new.csv"]
    with pytest.raises(InputError, match="with one input, got 2"):
        report_files(folder / "weather.labelsure", inputs, truth=folder / "truth.csv")


def test_the_command_writes_a_page(made, tmp_path, capsys):
    folder = made[0]
    model, out = str(folder / "weather.labelsure"), tmp_path / "page.html"
    assert main(["report", model, "--out", str(out)]) == 0
    assert "A model of 3 labels: estimated" in out.read_text("utf-8")
    words = [str(folder / "new.csv"), "--id", "day", "--truth", str(folder / "truth.csv")]
    assert (
        main(["report", model, *words, "--title", "Of a week", "--out", str(out), "--overwrite"])
        == 0
    )
    text = out.read_text("utf-8")
    assert "<title>Of a week</title>" in text
    assert "by the given labels" in text
    said = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert [key for key, _ in said] == ["Summary", "Report", "Summary", "Report"]
    assert said[1] == said[3] == ["Report", str(out)]
    assert said[0][1].startswith("A model of 3 labels: estimated mean Jaccard")
    assert said[2][1] == "All 300 predictions can go out unreviewed."


def test_a_study_has_a_command_of_its_own(tmp_path, capsys, monkeypatch):
    asked = []

    def make(folder, n_jobs):
        asked.append((folder, n_jobs))
        return Page("model", {})

    monkeypatch.setattr("labelsure.study.report.make_study_page", make)
    monkeypatch.setattr(
        "labelsure._runtime.pages.Page.save", lambda page, path: path.write_text("a page")
    )
    words = ["study", "report", str(tmp_path), "--jobs", "2", "--out", str(tmp_path / "x.html")]
    assert main(words) == 0
    assert asked == [(tmp_path, 2)]
    assert capsys.readouterr().out.split() == ["Report", str(tmp_path / "x.html")]
    assert main(["report", str(tmp_path), "new.csv"]) == 2
    assert "A study has its own command: `labelsure study report`" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:The truth in")
def test_the_page_says_that_some_rows_have_no_truth_and_shows_named_columns(made, tmp_path):
    folder = made[0]
    pd.read_csv(folder / "truth.csv").head(200).to_csv(tmp_path / "some.csv", index=False)
    settings = {"id_column": "day", "show": ["rain"]}
    for truth, n_rows in ((None, 300), (tmp_path / "some.csv", 200)):
        page = report_files(
            folder / "weather.labelsure", folder / "new.csv", truth=truth, **settings
        )
        rain = pd.read_csv(folder / "new.csv", index_col="day")["rain"]
        shown = page.data["explorer"]["instances"]
        assert len(shown) == n_rows
        assert all(float(row["shown"][0]) == rain[row["id"]] for row in shown)
    note = "The truth in &#39;some.csv&#39; has 200 of the 300 rows of &#39;new.csv&#39;;"
    assert note in page.html


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """More rows than a page computes anew."""
    folder = tmp_path_factory.mktemp("many")
    make_model().save(folder / "m.labelsure")
    rows = make_rows(2500)
    rows.to_csv(folder / "new.csv", index=False)
    return folder, make_model().report(rows.drop(columns="id")).data


def assert_same_page(found, expected):
    assert found["batch"] == expected["batch"]
    assert found["acceptance"]["n"] == expected["acceptance"]["n"]
    np.testing.assert_allclose(
        found["acceptance"]["estimated"], expected["acceptance"]["estimated"], atol=1e-4
    )
    counted = [{row["name"]: row["n_predicted"] for row in page["labels"]["rows"]}
               for page in (found, expected)]  # fmt: skip
    assert counted[0] == counted[1]
    assert "2,500 predictions" in found["explorer"]["note"]
    intervals = [
        np.array([s["interval"] or [np.nan] * 2 for s in page["acceptance"]["stops"].values()])
        for page in (found, expected)
    ]
    assert np.isfinite(intervals[1]).any()
    np.testing.assert_allclose(*intervals, atol=0.004)


def test_a_page_on_many_rows_has_the_estimates_of_all(many):
    folder, expected = many
    seen = []
    page = report_files(
        folder / "m.labelsure",
        folder / "new.csv",
        n_jobs=1,
        progress=lambda *counted: seen.append(counted),
    )
    assert_same_page(page.data, expected)
    assert seen[-1] == (2500, None)


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet", "out"])
def test_a_page_reads_what_score_wrote(many, monkeypatch, name):
    folder, expected = many
    model, new, out = folder / "m.labelsure", folder / "new.csv", folder / name
    score_files(model, new, out, n_jobs=1)
    monkeypatch.setattr(estimates.FrameScorer, "score", None)  # nothing is scored again
    page = report_files(model, new, scored=out)
    assert_same_page(page.data, expected)


def test_what_another_model_wrote_is_refused(many, tmp_path):
    folder, _ = many
    with pytest.raises(ls.InputError, match="must be a table that `score` wrote, it has no column"):
        report_files(folder / "m.labelsure", folder / "new.csv", scored=folder / "new.csv")
    make_rows(2500, seed=9).to_csv(tmp_path / "new.csv", index=False)
    score_files(folder / "m.labelsure", tmp_path / "new.csv", tmp_path / "out", n_jobs=1, top=0)
    message = "must be what `score` wrote for this model and input, but row [0-9]+ of 'new.csv' has"
    with pytest.raises(ls.InputError, match=message):
        report_files(folder / "m.labelsure", folder / "new.csv", scored=tmp_path / "out")
