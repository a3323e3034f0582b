"""The benchmark of batches: its baselines against loops, its draws, and that it makes a page."""

from __future__ import annotations

import numpy as np
import oracles_estimation
import pandas as pd
import pytest
from benchmarks import batch_page, batches
from benchmarks.batch_coverage import COLUMNS as COVERAGE_COLUMNS
from benchmarks.batch_coverage import tabulate_coverage
from benchmarks.batch_draws import draw
from benchmarks.batch_methods import average, threshold_confidence
from benchmarks.batch_warnings import count_warnings
from hypothesis import given
from hypothesis import strategies as st

SHARES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=8)


@given(SHARES, SHARES, st.data())
def test_thresholded_confidence_is_that_of_loops(known, new, data):
    accuracy = data.draw(
        st.lists(st.floats(0, 1), min_size=len(known), max_size=len(known)), label="accuracy"
    )
    found = threshold_confidence(np.array(known), np.array(accuracy), np.array(new))
    assert found == pytest.approx(
        oracles_estimation.thresholded_confidence(known, accuracy, new), abs=1e-12
    )


def test_draws_go_by_the_score():
    rng, score = np.random.default_rng(0), np.repeat([0.0, 1.0], 2000)
    places = draw(score, 1000, rng)
    assert len(set(places)) == 1000
    assert (places >= 2000).mean() > 0.75  # odds of e squared, as the spread is one half
    even = draw(np.zeros(4000), 1000, rng)
    assert abs((even >= 2000).mean() - 0.5) < 0.06


def test_a_few_labels_of_a_whole_batch_leave_nothing_open():
    said = average(np.array([0.0, 1.0, 1.0, 0.0]), 4)
    assert (said.mean, said.low, said.high) == (0.5, 0.5, 0.5)


def test_measures_of_three_answers():
    """One within its interval, one outside of it, one refused."""
    cell = {"set": "s", "classifier": "c", "metric": "m", "kind": "none", "size": 50, "noise": 0.1}
    numbers = [(0.5, 0.4, 0.6), (0.8, 0.7, 0.9), (np.nan, np.nan, np.nan)]
    rows = [
        {
            **cell,
            "split": k,
            "method": method,
            "truth": 0.55,
            "mean": mean,
            "low": low,
            "high": high,
        }
        for k, (mean, low, high) in enumerate(numbers)
        for method in ("calibration mean", "ours")
    ]
    table = batch_page.summarise(batch_page.add_measures(pd.DataFrame(rows)), ["method"])
    ours = table.set_index("method").loc["ours"]
    assert ours["error"] == pytest.approx(0.15)
    assert ours["bias"] == pytest.approx(0.1)
    assert ours["of noise"] == pytest.approx(1.5)
    assert ours["covered"] == pytest.approx(0.5)
    assert ours["refused"] == pytest.approx(1 / 3)
    assert ours["better"] == 0
    assert batch_page.show("covered", 0.5) == "50%"
    assert batch_page.show("width", np.nan) == "-"


def test_the_error_of_a_share_counts_splits_not_batches():
    """Two splits, all of one covered and none of the other, are two draws, not eight."""
    rows = [("s", split, float(split)) for split in (0, 1) for _ in range(4)]
    found = pd.DataFrame(rows, columns=["set", "split", "covered"])
    assert batch_page.uncertain_share(found) == "50.0%, give or take 35.4%"


def test_splits_are_named_by_set():
    found = pd.DataFrame([("a", 0), ("b", 0), ("b", 1), ("c", 0)], columns=["set", "split"])
    assert batch_page.name_splits(found) == "1 times, b 2"


def test_warnings_are_counted_by_thresholds_kinds_and_sets():
    rows = [  # set, kind, error, auc, p
        ("yeast", "none", 0.01, 0.70, 0.001),
        ("yeast", "none", 0.20, 0.55, 0.020),
        ("yeast", "label", 0.06, 0.62, 0.002),
        ("yeast", "label", 0.04, 0.52, 0.300),
        ("digits", "label", 0.06, 0.56, 0.005),
    ]
    found = pd.DataFrame(rows, columns=["set", "kind", "error", "auc", "p_value"])
    other = found.assign(method="HP", auc=1.0, p_value=0.0)
    found = pd.concat([found.assign(method="ours"), other]).assign(size=50)
    table = count_warnings(found).set_index(["AUC", "p", "sets"])
    columns = ["no shift, 50", "off, 50", "shifted, 50"]
    assert table.loc[(0.6, 0.01, "chosen on"), columns].tolist() == [0.5, 1.0, 0.0]
    assert table.loc[(0.5, 0.05, "chosen on"), columns].tolist() == [1.0, 1.0, 0.0]
    assert table.loc[(0.6, 0.01, "confirmed on"), "off, 50"] == 0
    assert table.loc[(0.55, 0.01, "confirmed on"), "off, 50"] == 1
    assert np.isnan(table.loc[(0.6, 0.01, "confirmed on"), "no shift, 50"])


def test_coverage_is_that_of_each_set_and_size():
    rows = [("yeast", 0, "m", 50, 90, 0.0, 1.0, 0.1), ("yeast", 1, "m", 50, 90, 0.1, 0.0, 0.1)]
    rows += [("flags", 0, "m", 200, 40, 0.0, 1.0, 0.1)]
    table = tabulate_coverage(pd.DataFrame(rows, columns=COVERAGE_COLUMNS)).set_index("set")
    assert table.loc["yeast", ["sets", "calibration", "covered, 50"]].tolist() == [
        "chosen on",
        90,
        0.5,
    ]
    assert table.loc["flags", "covered, 200"] == 1


def test_the_quick_form_makes_a_page(tmp_path):
    batches.main([str(tmp_path / "page.md"), "--quick", "--rows", str(tmp_path / "rows")])
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    for title in batch_page.KIND_TITLES.values():
        assert f"## {title}" in page
    rows = pd.read_csv(tmp_path / "rows" / "batches.csv")
    methods = {"calibration mean", "HP", "ATC", "DoC", "ours", "ours weighted", "ours tilted"}
    assert methods <= set(rows["method"])
    assert len(rows) == 3 * 5 * rows["method"].nunique()  # metrics, kinds
    assert rows.loc[rows["method"] == "ours", "mean"].between(0, 1).all()
    batches.main([str(tmp_path / "again.md"), "--again", str(tmp_path / "rows")])
    assert (tmp_path / "again.md").read_text(encoding="utf-8") == page
