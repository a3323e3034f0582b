import csv
import io

import numpy as np
import pandas as pd
import pytest
from score_tables import make_features, make_scores

from labelsure.study.analyses import AnalysisSettings, run_analyses
from labelsure.study.figures import (
    plot_accepted,
    plot_calibration,
    plot_candidates,
    plot_example_distributions,
    profile_of,
)
from labelsure.study.linear_models import effects, robustness
from labelsure.study.mixture import mark_intervals
from labelsure.study.paper import published_table
from labelsure.study.plan import Plan, load_plan
from labelsure.study.report import write_report
from labelsure.study.run import StudyRun
from labelsure.study.tables import (
    LeftOut,
    PrintedTable,
    clustered_table,
    correlation_table,
    effects_table,
    in_sections,
    interval_tables,
    make_study_tables,
    robustness_table,
    worked_example_table,
)

PUBLISHED = published_table("correlations").assign(repeat=0)
DATASETS = {"emotions": 3, "scene": 4, "yeast": 5}


@pytest.fixture(scope="module")
def analyses():
    scores = make_scores(n=40, datasets=DATASETS).assign(
        best_jaccard_tp=1,
        best_jaccard_fp=0,
        best_jaccard_fn=1,
        best_jaccard_tn=1,
        best_jaccard_gap=0.0,
    )
    scores["true_expected_exact"] = scores["expected_exact"].where(scores["dataset"] == "scene")
    settings = AnalysisSettings(n_replicates=1, metrics=("exact", "jaccard"))
    return run_analyses(scores, make_features(DATASETS), settings)


def rows_of(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_papers_correlations_print_as_the_paper_prints_them():
    rows = rows_of(correlation_table(PUBLISHED, "exact", "kendall").to_markdown())
    assert rows[0] == ["Method", "HP, ME", "TG", "SE", "CE, CS, GI"]
    assert rows[2] == ["*Emotions*", "", "", "", ""]
    assert rows[3] == ["ECC", "0.2595", "0.1695 ↓↓↓", "0.2345", "0.2523"]
    assert rows[8] == ["CT", "0.3073", "0.2676 ↓↓↓", "0.3424 ↑↑↑", "0.3222 ↑↑"]
    assert rows[-1] == ["Indep", "0.0546", "-0.0208 ↓↓↓", "0.1993 ↑↑↑", "0.1196 ↑↑↑"]
    assert len(rows) == 2 + 6 * 4


def test_the_papers_effects_print_row_for_row():
    table = effects_table(effects(PUBLISHED), "kendall", spelled=True)
    rows = rows_of(table.to_markdown())
    assert rows[0] == ["", "Exact", "Jaccard", "Hamming"]
    assert rows[2][0] == "*Expected Accuracy Function Bias (Baseline: High Prob)*"
    assert rows[3] == [
        "Top Gap", r"-0.058 (0.017) \*\*\*", r"-0.070 (0.018) \*\*\*", r"-0.073 (0.013) \*\*\*",
    ]  # fmt: skip
    assert [row[0] for row in rows[6:]] == [
        "*Data Bias (Baseline: Emotions)*", "Scene", "Yeast", "Stare", "Enron", "Slashdot",
        "*Classifier Bias (Baseline: ECC)*", "CT", "Independent",
        "*Fit*", "R2", "Adj. R2", "Num. obs.", "RMSE",
    ]  # fmt: skip
    assert rows[-1] == ["RMSE", "0.051", "0.053", "0.039"]
    assert rows[-2] == ["Num. obs.", "72", "72", "72"]


def test_sets_and_classifiers_stand_in_the_order_of_the_plan(analyses):
    scores = analyses.scores.iloc[::-1].reset_index(drop=True)
    settings = AnalysisSettings(n_replicates=1, metrics=("exact",))
    turned = run_analyses(scores, analyses.features.iloc[::-1], settings)
    tables = {table.name: table for table in make_study_tables(turned, {})}
    sets = ["Yeast", "Scene", "Emotions"]
    assert tables["datasets"].frame[""].tolist() == sets
    assert list(dict.fromkeys(tables["kendall_exact"].frame.index)) == sets
    methods = tables["kendall_exact"].frame["Method"].tolist()
    assert methods == list(dict.fromkeys(scores["classifier"])) * 3
    terms = tables["kendall_effects"].frame[""].tolist()
    assert terms.index("Yeast") < terms.index("Scene")


def test_names_with_capitals_of_their_own_keep_them():
    names = {"ECC": "XGBoost", "CT": "mixture", "Indep": "LP"}
    renamed = PUBLISHED.assign(classifier=PUBLISHED["classifier"].replace(names))
    rows = rows_of(effects_table(effects(renamed), "kendall", spelled=True).to_markdown())
    titles = [row[0] for row in rows]
    assert "*Classifier Bias (Baseline: XGBoost)*" in titles
    assert {"LP", "Mixture"} <= set(titles)


def test_errors_stand_beside_estimates_or_below():
    names = dict.fromkeys(PUBLISHED["dataset"])
    features = make_features({name: k + 2 for k, name in enumerate(names)})
    found = robustness(PUBLISHED, features)
    row = found.query("candidate == 'SE' and term == 'CT'").iloc[0]
    estimate, error = f"{row['estimate']:.3f}", f"({row['standard_error']:.3f})"
    beside = rows_of(robustness_table(found, "kendall", below=False).to_markdown())
    below = rows_of(robustness_table(found, "pearson", below=True).to_markdown())
    titles = [row[0] for row in beside]
    assert titles.index("Hamming") == titles.index("Jaccard") - 1
    assert beside[titles.index("CT")][3] == f"{estimate} {error}"
    at = [row[0] for row in below].index("CT")
    assert (below[at][3], below[at + 1][3]) == (estimate, error)
    assert estimate == "0.015"
    note = clustered_table(found, "kendall").note
    assert "6 data sets and 4 features of the data leave 1 degree of freedom." in note


def test_interval_tables_print_bold_underlined_and_missing():
    table = interval_tables(mark_intervals(published_table("intervals")), "hamming")
    rows = rows_of(table.to_markdown())
    assert rows[0] == ["Exp Acc", "HP", "SE", "CE", "MIX"]
    assert rows[2] == [
        "(0.65,0.7]", "NA", "0.688, 0.746", "0.657, 0.754", "**<u>0.641, 0.737</u>**",
    ]  # fmt: skip
    assert rows[6] == [
        "(0.85,0.9]", "0.873, 0.885", "**0.866, 0.884**", "**0.864, 0.882**", "0.871, 0.888",
    ]  # fmt: skip
    assert r"\textbf{\underline{0.641, 0.737}}" in table.to_latex()
    marked = [row["entries"] for row in table.to_dict()["rows"]]
    assert [entry["bold"] for entry in marked[0]] == [False, False, False, False, True]


def test_the_worked_example():
    rows = rows_of(worked_example_table().to_markdown())
    assert rows[2] == ["1", "0", "0", "0", "0.000", "**0.611**", "0.000", "0.000"]
    assert rows[3] == ["2", "0", "0", "1", "0.333", "0.500", "**0.333**", "0.333"]
    assert rows[8] == ["7", "1", "1", "0", "0.167", "0.500", "0.167", "**0.417**"]


def test_a_table_in_its_three_forms():
    rows = [
        ("part_one", ["a|b", "1.0 ***"]),
        ("part_one", ["d", "3.10"]),
        ("", ["c", "2 ↓↓"]),
    ]
    frame = in_sections(rows, ["", "x_1"])
    table = PrintedTable("t", "100% & more", frame, "a *note*", {"C": "0.1"})
    assert table.to_markdown() == (
        "### 100% & more\n\n"
        "|            |        x_1 |\n"
        "|:-----------|-----------:|\n"
        "| *part_one* |            |\n"
        "| a\\|b       | 1.0 \\*\\*\\* |\n"
        "| d          |       3.10 |\n"
        "| c          |       2 ↓↓ |\n\n"
        "a \\*note\\*\n\nSettings: C 0.1.\n"
    )
    latex = table.to_latex()
    assert latex.startswith("% C: 0.1\n\\begin{table}")
    assert r"\caption[100\% \& more]{100\% \& more. a *note*}" in latex
    assert "\\midrule\n\\rlap{\\textit{part\\_one}} &  \\\\\na$|$b & 1.0 *** \\\\\nd &" in latex
    assert r"c & 2 $\downarrow$$\downarrow$ \\" in latex
    parsed = list(csv.reader(io.StringIO(table.to_csv())))
    assert parsed == [["section", "", "x_1"], *([section, *row] for section, row in rows)]
    shown = table.to_dict()["rows"]
    assert [row.get("heading") for row in shown] == ["part_one", None, None, None]
    assert shown[1] == {
        "entries": [{"text": "a|b", "bold": False}, {"text": "1.0 ***", "bold": False}]
    }


def test_an_empty_table_has_its_head():
    table = PrintedTable("t", "None", pd.DataFrame([], columns=["a", "b"]))
    assert rows_of(table.to_markdown())[0] == ["a", "b"]
    assert r"a & b \\" in table.to_latex()
    assert table.to_dict()["rows"] == []


def test_every_table_is_there_and_says_its_settings(analyses):
    tables = make_study_tables(analyses, {"C": "0.1"})
    names = [table.name for table in tables]
    assert names == [
        "worked_example", "datasets", "kendall_exact", "kendall_jaccard", "kendall_effects",
        "kendall_robustness", "pearson_effects", "pearson_robustness", "intervals_exact",
        "intervals_jaccard", "pearson_exact", "pearson_jaccard", "kendall_robustness_clustered",
        "pearson_robustness_clustered", "kendall_spread", "kendall_tests", "true_accuracy",
        "optimal_decisions",
    ]  # fmt: skip
    (clustered,) = [table for table in tables if table.name == "kendall_robustness_clustered"]
    assert clustered.note.startswith(
        "Clustered by data set: 3 data sets and 2 features of the data leave 0 degrees of freedom."
    )
    headings = list(dict.fromkeys(clustered.frame.index))
    assert headings == ["HP", "TG", "SE", "CE"]  # in the paper's order
    for table in tables:
        assert table.to_markdown().endswith("Settings: C 0.1.\n")


def run_of(scores, features, folder, **changes):
    """Return a run with one halving of exact match for two candidates."""
    settings = {**load_plan("quick").to_dict(), "metrics": ["exact"], "candidates": ["HP", "SE"]}
    base = {**settings["base"], "C": 0.1}
    plan = Plan.from_dict({**settings, "base": base, "n_replicates": 1, **changes})
    return StudyRun(plan, folder, scores, features)


def test_files_of_a_study(analyses, tmp_path):
    run = run_of(analyses.scores, analyses.features, tmp_path)
    written = write_report(run, n_jobs=1)
    names = {path.relative_to(tmp_path).as_posix() for path in written}
    assert all(path.stat().st_size > 50 for path in written)
    for name in ("kendall_effects", "intervals_exact", "datasets"):
        assert {f"tables/{name}.{suffix}" for suffix in ("md", "tex", "csv")} <= names
    for name in ("example_distributions", "candidates", "calibration", "accepted"):
        assert {f"figures/{name}.png", f"figures/{name}.svg"} <= names
    assert "base.C 0.1" in (tmp_path / "tables/kendall_effects.md").read_text()
    assert "base.C 0.1" in (tmp_path / "figures/accepted.svg").read_text()
    settings = pd.read_csv(tmp_path / "tables/settings.csv").set_index("setting")["value"]
    assert settings["candidates"] == "HP, SE"
    assert (settings["n_replicates"], settings["response"]) == ("1", "rates")


def test_kept_fits_are_used_only_for_the_same_scores_and_settings(analyses, tmp_path):
    def kept_at(scores, **changes):
        run = run_of(scores, analyses.features, tmp_path, candidates=["HP"], **changes)
        assert set(run.analyses(n_jobs=1).replicates["model"]) == {"HP", "MIX"}
        return (tmp_path / "analyses/mixture_replicates.parquet").stat().st_mtime_ns

    first = kept_at(analyses.scores)
    assert kept_at(analyses.scores) == first
    second = kept_at(analyses.scores[5:])
    assert second > first
    assert kept_at(analyses.scores[5:], seed=1) > second
    kept = tmp_path / "analyses/mixture_replicates.parquet"
    third = kept.stat().st_mtime_ns
    whole = kept.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", whole[:-20] + b"x" * 20):
        kept.write_bytes(damaged)
        assert kept_at(analyses.scores[5:], seed=1) > third
        assert kept.read_bytes() == whole


def test_figures_draw_what_they_say(analyses):
    six = plot_example_distributions()
    assert len(six.axes) == 6
    drawn = [[bar.get_height() for bar in ax.patches] for ax in six.axes]
    assert drawn[0] == pytest.approx([1 / 8] * 8)
    assert drawn[1] == pytest.approx([2 / 8, *[1 / 8] * 6, 0])
    assert drawn[2] == pytest.approx([0, 1 / 2, 0, 0, 0, 0, 1 / 2, 0])
    assert drawn[3] == pytest.approx([1 / 12, 1 / 12, 5 / 12, *[1 / 12] * 5])
    assert drawn[4] == pytest.approx([0, 1 / 3, 1 / 4, 0, 1 / 4, 0, 1 / 6, 0])
    assert drawn[5] == pytest.approx([0, 0, 0, 0, 0, 0.9, 0.05, 0.05])
    panels = plot_candidates().axes
    assert [len(ax.lines) for ax in panels] == [6, 6, 6]
    ends = [line.get_ydata()[0] for line in panels[0].lines]
    assert ends == pytest.approx([1.0] * 6)
    third = [line.get_ydata()[100] for line in panels[1].lines]
    assert third == pytest.approx([0.0] * 6, abs=1e-12)
    calibration = plot_calibration(analyses.intervals).axes
    assert [ax.get_title() for ax in calibration] == ["exact", "jaccard"]
    for ax in calibration:
        diagonal = ax.lines[0]
        assert diagonal.get_label() == "Oracle"
        assert (*diagonal.get_xdata(), *diagonal.get_ydata()) == (0, 1, 0, 1)
        part = analyses.intervals[analyses.intervals["metric"] == ax.get_title()]
        drawn = part[(part["model"] == "HP") & part["low"].notna()]
        (line,) = [line for line in ax.lines[1:] if len(line.get_xdata()) == len(drawn)][:1]
        assert line.get_xdata() == pytest.approx(drawn["estimated"])
        assert line.get_ydata() == pytest.approx(drawn["accuracy"])
    accepted = plot_accepted(analyses.scores)
    drawn = [ax for ax in accepted.axes if ax.get_visible()]
    assert [ax.get_title() for ax in drawn] == ["emotions", "scene", "yeast"]
    last = {round(float(line.get_ydata()[-1]), 12) for line in drawn[0].lines}
    assert len(last) == 1  # everything accepted: the same mean whatever the order


def test_a_profile_of_three_outcomes():
    profile = profile_of(np.array([[0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]]))
    assert profile.n_bits == pytest.approx(np.log2(3))
    assert profile.entropy == pytest.approx([np.log(2), np.log(3)])


SENTENCE = "`correlations` must hold at least one that is defined, got none."


def test_a_table_that_cannot_be_made_holds_the_reason_and_all_others_are_written(tmp_path):
    # Every prediction is right, as those of a constant label are: there is nothing to correlate.
    scores = make_scores(n=12, datasets={"mine": 2}, classifiers=("net",), n_repeats=1)
    scores = scores.assign(tp=1, fp=0, fn=0, tn=1)
    said = []
    run = run_of(scores, make_features({"mine": 2}, n_repeats=1), tmp_path)
    written = write_report(run, n_jobs=1, note=said.append)
    assert all(path.stat().st_size > 0 for path in written)
    names = [
        f"{association}_{kind}"
        for kind in ("effects", "robustness", "robustness_clustered")
        for association in ("kendall", "pearson")
    ]
    for name in names:
        text = (tmp_path / f"tables/{name}.md").read_text()
        head, _, *rows = rows_of(text)
        assert (head, rows) == (["This table could not be made"], [[SENTENCE]])
        assert text.startswith(f"### {name.replace('_', ' ').capitalize()}\n")
    assert SENTENCE in (tmp_path / "tables/values_pearson_effects.csv").read_text()
    left_out = {path.name for path in written if SENTENCE in read_if_text(path)}
    assert "kendall_exact.md" not in left_out
    assert "intervals_exact.md" not in left_out
    assert len(left_out) == 3 * len(names) + 4
    (sentence,) = said
    assert sentence.startswith("Could not be made: kendall_effects, kendall_robustness, ")
    assert sentence.endswith(f", values_pearson_robustness. {SENTENCE}")


def read_if_text(path):
    return path.read_text() if path.suffix in {".md", ".csv", ".tex"} else ""


def test_three_rows_are_too_few_for_models_of_accuracy_but_not_for_the_rest(tmp_path):
    scores = make_scores(n=3, datasets={"mine": 2}, classifiers=("net",), n_repeats=1)
    said = []
    run = run_of(scores, make_features({"mine": 2}, n_repeats=1), tmp_path)
    write_report(run, n_jobs=1, note=said.append)
    (sentence,) = [text for text in said if "intervals_exact" in text]
    assert sentence == (
        "Could not be made: intervals_exact, values_intervals, calibration. The score table must "
        "have enough rows for a half of them to fit a model of accuracy and the other half to "
        "test it, at least 4 in one repeat, got fewer."
    )
    drawn = (tmp_path / "figures/calibration.svg").read_text()
    assert "This figure could not be made" in drawn
    assert (tmp_path / "tables/kendall_exact.md").is_file()
    assert write_report(run, n_jobs=1)  # from the fits that are kept, and without anyone to tell


def test_only_our_own_errors_are_left_out():
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        LeftOut().make_or_say("table", fail, str)
