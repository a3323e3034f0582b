"""The page of a study: its tables are those of the files, and a browser shows it."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from labelsure.cli._app import main
from labelsure.study import report
from labelsure.study.conclusions import Claim, Conclusion
from labelsure.study.figures import FIGURES
from labelsure.study.paper import PaperCheck

pytestmark = pytest.mark.jit_only


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "quick"
    assert (
        main(["study", "run", "quick", "--out", str(folder), "--repeats", "1", "--jobs", "1"]) == 0
    )
    return folder


@pytest.fixture(scope="module")
def page(run_folder):
    return report.make_study_page(run_folder, n_jobs=1)


def test_every_table_of_the_files_is_on_the_page(page, run_folder):
    tables = [page.data["accuracy"], *page.data["tables"]]
    by_name = {table["name"]: table for table in tables}
    written = {path.stem for path in (run_folder / "tables").glob("*.md")} - {"README"}
    assert set(by_name) == written
    for name, table in by_name.items():
        frame = pd.read_csv(run_folder / "tables" / f"{name}.csv", dtype=str, keep_default_na=False)
        # A file for programs has the headings between rows as a column of its own.
        shown = {row["entries"][0]["text"] for row in table["rows"] if "entries" in row}
        known = set(frame.iloc[:, 0]) | set(frame.iloc[:, min(1, frame.shape[1] - 1)])
        assert shown <= known, name
        assert 0 <= frame.shape[1] - len(table["columns"]) <= 1
        assert table["title"] in page.html.replace("&#39;", "'")


def test_figures_are_part_of_the_file(page):
    assert len(page.data["figures"]) == len(FIGURES)
    assert all(f["image"].startswith("data:image/svg+xml;base64,") for f in page.data["figures"])
    assert not re.search(r'(src|href)="https?:', page.html)
    assert len(page.html.encode()) < 3_000_000


def test_the_page_leads_with_accuracy_and_findings_and_ends_with_settings(page):
    places = [page.html.index(f'<section id="{name}"') for name, _ in page.data["sections"]]
    assert places == sorted(places)
    assert [name for name, _ in page.data["sections"]][:2] == ["accuracy", "findings"]
    assert page.data["sections"][-1][0] == "settings"
    assert "n_chains = 3" in page.data["settings"]
    assert any(text.startswith("Jaccard: classifiers expect") for text in page.data["findings"])
    rankings = [text for text in page.data["sentences"] if "mean Kendall's tau" in text]
    assert [text.partition(":")[0] for text in rankings] == [
        "Exact match",
        "Hamming accuracy",
        "Jaccard",
    ]


def cells(gaps, error, metric="exact"):
    """Return HP and SE in four cells of two data sets."""
    rows = [
        (metric, dataset, classifier, name, 0, 0.3 + gap, gap, error if gap else 0.0, 10)
        for (dataset, classifier), value in zip(
            [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")], gaps, strict=True
        )
        for name, gap in (("HP", 0.0), ("SE", value))
    ]
    columns = ["metric", "dataset", "classifier", "candidate", "repeat", "correlation"]
    frame = pd.DataFrame(rows, columns=[*columns, "difference", "standard_error", "n"])
    return frame.assign(difference=frame["difference"].where(frame["candidate"] != "HP"))


@pytest.mark.parametrize(
    ("gaps", "error", "said"),
    [
        ([0.1, 0.3, 0.2, 0.2], 0.1, "Shannon entropy (SE) ranks predictions best: 0.200 above"),
        ([-0.1, -0.3, -0.2, -0.2], 0.1, "Highest probability (HP) ranks predictions best: 0.200"),
        ([0.1, 0.3, 0.2, 0.2], 0.2, "Shannon entropy (SE) and Highest probability (HP) tie"),
    ],
)
def test_the_headline_names_the_best_candidate_or_a_tie(gaps, error, said):
    text = report._ranking(cells(gaps, error), "exact")
    assert text.startswith(f"Exact match: {said}")
    # Two data sets of two cells each, whose errors are one error: sqrt(2 (2 e)^2) / 4.
    reach = 1.959964 * error / 2**0.5
    assert f"interval {0.2 - reach:.3f} to {0.2 + reach:.3f}" in text
    nothing = cells(gaps, error).assign(correlation=np.nan, difference=np.nan)
    assert report._ranking(nothing, "exact") == "Exact match: nothing can be compared with HP."


def test_simulated_data_has_nothing_of_the_papers_beside_it(page):
    assert page.data["compared"] == []
    assert 'id="compared"' not in page.html
    assert "2 data sets" in page.html


def test_verdicts_and_the_papers_numbers_stand_beside_ours(run_folder, monkeypatch):
    numbers = pd.DataFrame(
        {
            "table": ["datasets"],
            "row": ["scene"],
            "quantity": ["labels"],
            "published": [6.0],
            "ours": [6.0],
            "spread": [0.0],
            "difference": [0.0],
            "low": [5.0],
            "high": [7.0],
            "miss": [False],
        }
    )
    summaries = pd.DataFrame(
        [{"measure": "m", "ours": 1.0, "least": 1.0, "most": 1.0, "without": 1.0}]
    ).assign(trivial=0.0, own=1.0)
    datasets = pd.DataFrame(
        [{"dataset": "scene", "classifier": "all", "paper": 0.1, "own": 0.1, "ratio": 1.0}]
    )
    conclusions = [
        Conclusion("a", "This fails.", (Claim("x", 1, -1.5),)),
        Conclusion("b", "This holds.", (Claim("x", 1, 1.5),)),
    ]
    found = PaperCheck(conclusions, summaries, datasets, numbers)
    monkeypatch.setattr(report, "compare_with_paper", lambda *given: found)
    page = report.make_study_page(run_folder, n_jobs=1)
    assert page.data["verdicts"][0] == ("does not hold", 1)
    titles = [table["title"] for table in page.data["compared"]]
    assert titles[:3] == ["Conclusions", "The numbers behind them", "Agreement with the paper"]
    assert titles[3:] == ["Mean absolute difference of one split", "Data sets"]
    assert "scene, labels" in page.html
    assert page.html.index("This fails.") < page.html.index("This holds.")


@pytest.mark.parametrize(
    ("look", "scheme", "width"),
    [("light", "light", 1280), ("dark", "dark", 1280), ("narrow", "light", 420)],
)
def test_a_browser_shows_it_to_everyone(
    browser, page, axe, artefacts, tmp_path, look, scheme, width
):
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True
    )
    opened = context.new_page()
    said = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.goto(page.save(tmp_path / "study.html").as_uri())
    opened.evaluate(axe)
    found = opened.evaluate("axe.run()")
    barriers = [(rule["id"], rule["nodes"][0]["html"]) for rule in found["violations"]]
    opened.screenshot(path=artefacts / f"study_{look}.png", full_page=True)
    context.close()
    assert barriers == []
    assert said == []
