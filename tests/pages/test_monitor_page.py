"""The page of a monitored stream: a function of its table, and the command that makes it."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import labelsure as ls
from labelsure.cli._app import main
from labelsure.errors import InputError
from labelsure.estimation.monitoring import MonitoredChunk, MonitorResult
from labelsure.tables.estimates import monitor_files

NAMES = ["storm", "wet"]


def make_result(alerts, labelled=0, bound=np.nan):
    """Return what was found in chunks with these alerts."""
    chunks = [
        MonitoredChunk(
            f"<b>{k}</b>",
            100,
            0.7,
            0.6,
            0.8,
            0.5,
            0.01,
            "SE, P(wet)",
            labelled,
            0.65,
            0.8,
            bound,
            0.3,
            kind,
        )
        for k, kind in enumerate(alerts)
    ]
    return MonitorResult(tuple(chunks), "mean F1", 0.95, 0.05)


@pytest.mark.parametrize(
    ("alerts", "labelled", "first", "second"),
    [
        (["none"] * 3, 0, "No alarm in 3 chunks.", "Nothing to do."),
        (["none", "inputs", "none"], 0, "Alarm: inputs are not like the calibration set, first in "
         "chunk <b>1</b>.", "Estimates may be wrong"),
        (["inputs"], 9, "Alarm: inputs", "Labelled rows do not show so far"),
        (["inputs", "inputs and accuracy"], 9, "Alarm: mean F1 has fallen below 0.720, first in "
         "chunk <b>1</b>.", "Stop accepting"),
        ([], 0, "No chunks.", ""),
    ],
)  # fmt: skip
def test_one_line_says_what_to_do(alerts, labelled, first, second):
    result = make_result(alerts, labelled, 0.72)
    page = result.report()
    said = page.data["said"]
    assert said[0].startswith(first)
    assert " ".join(said[1:]).startswith(second)
    assert page.data["is_alarm"] == any(alert != "none" for alert in alerts)
    assert "<b>" not in page.html
    assert str(result) == " ".join(said)


@pytest.mark.parametrize("alerts", [["none"], ["inputs"], ["inputs and accuracy"]])
def test_pages_show_names_of_code_without_backticks(alerts):
    page = make_result(alerts, 9, 0.72).report()
    assert "`" not in page.html
    assert any("`" in sentence for sentence in page.data["said"]) == ("<code>" in page.html)


def test_every_number_of_the_table_is_on_the_page():
    html = make_result(["none", "accuracy"], 9, 0.72).report().html
    for text in ("0.700", "0.600", "0.65", "0.720", "Shannon entropy (SE), P(wet)", "5%"):
        assert text in html
    assert html.count('class="alarm"') == 1
    assert not re.search(r"https?://", html)


def test_a_table_has_a_row_for_each_chunk():
    result = make_result(["none", "inputs"] * 5)
    table = result.to_frame()
    assert type(table) is pd.DataFrame
    assert table["alert"].tolist() == [chunk.alert for chunk in result.chunks]
    assert [chunk.name for chunk in result.alarms] == [
        "<b>1</b>",
        *(f"<b>{k}</b>" for k in (3, 5, 7, 9)),
    ]
    assert "first in chunk &lt;b&gt;1" in result._repr_html_()
    assert result._repr_html_().count("<tr") < 10
    assert make_result([]).to_frame().columns.tolist() == table.columns.tolist()
    assert repr(result) == repr(table)


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """Return a folder with a model, rows of twenty days and labels of some."""
    folder = tmp_path_factory.mktemp("stream")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(2000, 2)), columns=["rain", "wind"])
    Y = pd.DataFrame((X.to_numpy() + rng.normal(size=X.shape) > 0).astype(int), columns=NAMES)
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), cv=0.5, random_state=0)
    model.fit(X[:1000], Y[:1000]).save(folder / "m.labelsure")
    new = X[1000:].reset_index(drop=True)
    new.insert(0, "id", [f"r{i}" for i in range(1000)])
    new["at"] = pd.date_range("2026-03-04", periods=1000, freq="28min48s").astype(str)
    drawn = rng.random(1000) < 0.3
    truth = Y[1000:].reset_index(drop=True).assign(id=new["id"])[drawn]
    order = rng.permutation(1000)  # rows of a file come in any order
    new.iloc[order].to_csv(folder / "new.csv", index=False)
    truth.sample(frac=1, random_state=0).to_csv(folder / "truth.csv", index=False)
    return folder, model, new.iloc[order], truth


def test_weeks_begin_on_monday_and_labels_find_their_rows(stream):
    folder, model, new, truth = stream
    settings = {"time": "at", "every": "W-MON", "id_column": "id"}
    table = monitor_files(
        folder / "m.labelsure",
        folder / "new.csv",
        truth=folder / "truth.csv",
        drawn=0.3,
        **settings,
    ).to_frame()
    assert table["chunk"].tolist() == ["2026-03-02", "2026-03-09", "2026-03-16", "2026-03-23"]
    begin = pd.to_datetime(new["at"]).dt.to_period("W-SUN").dt.start_time  # ends on Sundays
    chunks, labels = {}, {}
    for start, rows in new.groupby(begin):
        name = str(start)[:10]
        chunks[name] = rows[["rain", "wind"]]
        own = truth[truth["id"].isin(rows["id"])]
        places = rows["id"].reset_index(drop=True)
        found = [int(np.flatnonzero(places == one)[0]) for one in own["id"]]
        labels[name] = (np.array(found), own[NAMES].to_numpy(), 0.3)
    expected = model.monitor(chunks, labels=labels).to_frame()
    same = ["chunk", "n_samples", "estimated", "p_value", "n_labelled", "bound", "alert"]
    pd.testing.assert_frame_equal(table[same], expected[same])


def test_what_cannot_be_cut_or_labelled_is_refused(stream):
    folder = stream[0]
    files = folder / "m.labelsure", folder / "new.csv"
    with pytest.raises(InputError, match="`every`"):
        monitor_files(*files, time="at", every="fortnightly")
    with pytest.raises(InputError, match="`time` must name a column of the input, got 'nope'"):
        monitor_files(*files, time="nope", every="D")
    with pytest.raises(
        InputError, match=r"Dates in 'id' must be ISO 8601.*got 'r.* in row 0 \(rows"
    ):
        monitor_files(*files, time="id", every="D")
    with pytest.raises(InputError, match="drawn"):
        monitor_files(*files, time="at", every="D", truth=folder / "truth.csv", id_column="id")


def test_errors_name_options_of_the_command(stream, capsys):
    files = [str(stream[0] / name) for name in ("m.labelsure", "new.csv")]
    assert main(["monitor", *files, "--time", "nope"]) == 2
    assert "`--time` must name a column of the input, got 'nope'" in capsys.readouterr().err


@pytest.mark.parametrize("every", ["D", "MS"])
def test_the_command_writes_a_page(stream, tmp_path, capsys, every):
    folder, out = stream[0], tmp_path / "monitor.html"
    words = [
        "monitor",
        folder / "m.labelsure",
        folder / "new.csv",
        "--time",
        "at",
        "--every",
        every,
    ]
    assert main([*map(str, words), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    n_chunks = {"D": 20, "MS": 1}[every]
    assert f"No alarm in {n_chunks} chunk" in said
    text = out.read_text("utf-8")
    assert text.count('class="point"') == n_chunks
    assert f"No alarm in {n_chunks} chunk" in text


@pytest.mark.jit_only
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 420)])
def test_nobody_is_kept_out(browser, axe, artefacts, tmp_path, scheme, width):
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True
    )
    opened = context.new_page()
    page = make_result(["none"] * 30 + ["inputs"], 9, 0.72).report()
    opened.goto(page.save(tmp_path / "monitor.html").as_uri())
    opened.evaluate(axe)
    found = opened.evaluate("axe.run()")["violations"]
    too_wide = opened.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    opened.screenshot(path=artefacts / f"monitor_{scheme}_{width}.png", full_page=True)
    context.close()
    assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found] == []
    assert too_wide <= 0
