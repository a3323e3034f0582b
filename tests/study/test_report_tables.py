import csv
import io
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from score_tables import make_features, make_scores

from labelsure.study.analyses import Analyses, effects, robustness
from labelsure.study.conclusions import published_table
from labelsure.study.figures import (
    accepted_curves,
    plot_accepted,
    plot_accepted_counts,
    plot_calibration,
    plot_candidates,
    plot_example_distributions,
    profile_of,
)
from labelsure.study.mixture import mark_intervals
from labelsure.study.plan import Plan, Settings, load_plan
from labelsure.study.report import write_report
from labelsure.study.run import StudyRun
from labelsure.study.tables import (
    PrintedTable,
    correlation_table,
    in_sections,
    intervals_table,
    make_study_tables,
    models_table,
)

PUBLISHED = published_table("correlations").assign(
    repeat=0, association="kendall", n=10, difference=np.nan, standard_error=np.nan
)
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
    settings = Settings(n_replicates=1, metrics=("exact", "jaccard"))
    return Analyses(scores, make_features(DATASETS), settings)


def rows_of(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def as_models(found, analysis, association="kendall"):
    """Return what `effects` or `robustness` gives as the models of a study."""
    named = found.rename(columns={"metric": "of", "candidate": "of"})
    return named.assign(association=association, analysis=analysis, repeat=-1)


def test_correlations_print_as_the_paper_prints_them():
    # With differences that are as significant as the paper's arrows say.
    levels = PUBLISHED["arrows"].str.len().map({0: 1.0, 1: 1.7, 2: 2.0, 3: 3.0})
    signs = PUBLISHED["arrows"].str[:1].map({"+": 1.0, "-": -1.0}).fillna(0.5)
    tested = PUBLISHED.assign(difference=signs * levels * 0.01, standard_error=0.01)
    rows = rows_of(correlation_table(tested, "exact", "kendall").to_markdown())
    assert rows[0] == ["Method", "HP, ME", "TG", "SE", "CE, CS, GI"]
    assert rows[2] == ["*Emotions*", "", "", "", ""]
    assert rows[3] == ["ECC", "0.2595", "0.1695 ↓↓↓", "0.2345", "0.2523"]
    assert rows[8] == ["CT", "0.3073", "0.2676 ↓↓↓", "0.3424 ↑↑↑", "0.3222 ↑↑"]
    assert rows[-1] == ["Indep", "0.0546", "-0.0208 ↓↓↓", "0.1993 ↑↑↑", "0.1196 ↑↑↑"]
    assert len(rows) == 2 + 6 * 4


def test_the_papers_effects_print_row_for_row():
    table = models_table(as_models(effects(PUBLISHED), "effects"), "kendall", "effects")
    rows = rows_of(table.to_markdown())
    assert rows[0] == ["", "Exact", "Jaccard", "Hamming accuracy"]
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
    settings = Settings(n_replicates=1, metrics=("exact",))
    turned = Analyses(scores, analyses.features.iloc[::-1], settings)
    tables = {table.name: table for table in make_study_tables(turned)}
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
    rows = rows_of(
        models_table(as_models(effects(renamed), "effects"), "kendall", "effects").to_markdown()
    )
    titles = [row[0] for row in rows]
    assert "*Classifier Bias (Baseline: XGBoost)*" in titles
    assert {"LP", "Mixture"} <= set(titles)


def test_errors_stand_beside_estimates():
    names = dict.fromkeys(PUBLISHED["dataset"])
    features = make_features({name: k + 2 for k, name in enumerate(names)})
    found = robustness(PUBLISHED, features)
    row = found.query("candidate == 'SE' and term == 'CT'").iloc[0]
    estimate, error = f"{row['estimate']:.3f}", f"({row['standard_error']:.3f})"
    models = as_models(found, "robustness", "pearson")
    rows = rows_of(models_table(models, "pearson", "robustness").to_markdown())
    titles = [row[0] for row in rows]
    assert titles.index("Hamming accuracy") == titles.index("Jaccard") - 1
    assert rows[titles.index("CT")][3] == f"{estimate} {error}"
    assert estimate == "0.015"
    assert "clustered by data set" in models_table(models, "pearson", "robustness").note


def test_interval_tables_print_bold_underlined_and_missing():
    table = intervals_table(mark_intervals(published_table("intervals")), "hamming")
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


def test_a_table_in_its_three_forms():
    rows = [
        ("part_one", ["a|b", "1.0 ***"]),
        ("part_one", ["d", "3.10"]),
        ("", ["c", "2 ↓↓"]),
    ]
    frame = in_sections(rows, ["", "x_1"])
    table = PrintedTable("t", "100% & more", frame, "a *note*")
    assert table.to_markdown() == (
        "### 100% & more\n\n"
        "|  | x_1 |\n"
        "| :--- | ---: |\n"
        "| *part_one* |  |\n"
        "| a\\|b | 1.0 \\*\\*\\* |\n"
        "| d | 3.10 |\n"
        "| c | 2 ↓↓ |\n\n"
        "a \\*note\\*\n"
    )
    latex = table.to_latex()
    assert latex.splitlines()[2:4] == [
        r"\documentclass{article}",
        r"\usepackage{booktabs,longtable}",
    ]
    assert latex.endswith("\\end{document}\n")
    assert r"\begin{longtable}{lr}" in latex
    assert r"\caption[100\% \& more]{100\% \& more. a *note*}" in latex
    assert (
        "\\endhead\n\\multicolumn{2}{l}{\\textit{part\\_one}} \\\\\na$|$b & 1.0 *** \\\\\nd &"
        in latex
    )
    assert r"c & 2 $\downarrow$$\downarrow$ \\" in latex
    parsed = list(csv.reader(io.StringIO(table.to_csv())))
    assert parsed == [["section", "", "x_1"], *([section, *row] for section, row in rows)]
    shown = table.to_dict()["rows"]
    assert [row.get("heading") for row in shown] == ["part_one", None, None, None]
    assert shown[1] == {
        "entries": [{"text": "a|b", "bold": False}, {"text": "1.0 ***", "bold": False}]
    }


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no LaTeX on this machine")
def test_latex_tables_compile_and_fit_the_page(analyses, tmp_path):
    for table in make_study_tables(analyses)[:7]:
        (tmp_path / "t.tex").write_text(table.to_latex(), encoding="utf-8")
        words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 0, table.name
        assert b"Overfull" not in done.stdout, table.name
        (tmp_path / "t.aux").unlink()  # widths of the table before


def test_an_empty_table_has_its_head():
    table = PrintedTable("t", "None", pd.DataFrame([], columns=["a", "b"]))
    assert rows_of(table.to_markdown())[0] == ["a", "b"]
    assert r"a & b \\" in table.to_latex()
    assert table.to_dict()["rows"] == []


def test_every_table_is_there_the_main_one_first(analyses):
    tables = make_study_tables(analyses)
    names = [table.name for table in tables]
    assert names == [
        "accuracy", "kendall_effects", "kendall_robustness", "kendall_exact", "kendall_jaccard",
        "pearson_effects", "pearson_robustness", "intervals_exact", "intervals_jaccard", "datasets",
        "pearson_exact", "pearson_jaccard", "optimal_decisions",
    ]  # fmt: skip


def test_the_main_table_has_actual_and_expected_means(analyses):
    table = make_study_tables(analyses)[0]
    scores = analyses.scores.query("dataset == 'scene' and classifier == 'CT'")
    actual = ((scores["fp"] + scores["fn"]) == 0).mean()
    expected = scores["expected_exact"].mean()
    row = table.frame.loc["Scene"].set_index("Method").loc["CT"]
    assert row["Exact match"] == f"{actual:.3f} ({expected:.3f})"


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
    for name in ("accuracy", "kendall_effects", "intervals_exact", "datasets"):
        assert {f"tables/{name}.{suffix}" for suffix in ("md", "tex", "csv")} <= names
    for name in ("example_distributions", "candidates", "calibration", "accepted"):
        assert {f"figures/{name}.png", f"figures/{name}.svg"} <= names
    readme = (tmp_path / "tables/README.md").read_text()
    rows = {row[0]: row[2] for row in rows_of(readme) if len(row) == 3}
    assert list(rows)[2] == "`accuracy`"
    assert rows["`kendall_effects`"] == "Table 5 (Analysis 1)"
    listed = {path.stem for path in written if path.suffix == ".md"} - {"README"}
    names = {name.strip("`") for name in list(rows)[2:]}
    assert {name for name in names if not name.endswith(".csv")} == listed
    assert {f"tables/{name}" for name in names - listed} <= {
        path.relative_to(tmp_path).as_posix() for path in written
    }
    frame = pd.read_csv(tmp_path / "tables/values_models.csv")
    assert set(frame["repeat"]) == {-1, 0, 1}


def test_a_figure_is_drawn_again_only_if_its_inputs_have_changed(analyses, tmp_path):
    def drawn_at(scores):
        write_report(run_of(scores, analyses.features, tmp_path), n_jobs=1)
        drawn = (tmp_path / "figures").glob("[!.]*")
        return {path.name: path.stat().st_mtime_ns for path in drawn}

    first = drawn_at(analyses.scores)
    assert drawn_at(analyses.scores) == first
    changed_by_hand = tmp_path / "figures/accepted.svg"
    changed_by_hand.write_bytes(changed_by_hand.read_bytes() + b"\n")
    again = drawn_at(analyses.scores)
    assert {name for name in again if again[name] != first[name]} == {
        "accepted.svg",
        "accepted.png",
    }
    other = drawn_at(analyses.scores[40:])
    changed = {name for name in other if other[name] != again[name]}
    assert changed == {"calibration.svg", "calibration.png"}  # CT's predictions are the same


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
    mode, *others = sorted(drawn[1], reverse=True)
    assert sum(other > 0.85 * mode for other in others) == 3  # close to the mode, as in the paper
    assert drawn[2] == pytest.approx([0, 1 / 2, 0, 0, 0, 0, 1 / 2, 0])
    assert drawn[3] == pytest.approx([1 / 12, 1 / 12, 5 / 12, *[1 / 12] * 5])
    assert drawn[4] == pytest.approx([0, 1 / 3, 1 / 4, 0, 1 / 4, 0, 1 / 6, 0])
    assert drawn[5] == pytest.approx([0, 0, 0, 0, 0, 1, 0, 0])
    panels = plot_candidates().axes
    assert [len(ax.lines) for ax in panels] == [6, 6, 6]
    assert len({(*ax.get_xlim(), *ax.get_ylim()) for ax in panels}) == 1
    ends = [line.get_ydata()[0] for line in panels[0].lines]
    assert ends == pytest.approx([1.0] * 6)
    third = [line.get_ydata()[100] for line in panels[1].lines]
    assert third == pytest.approx([0.0] * 6, abs=1e-12)
    intervals = analyses.intervals
    calibration = plot_calibration(intervals).axes
    assert [ax.get_title() for ax in calibration] == ["Exact match", "Jaccard"]
    assert len({(*ax.get_xlim(), *ax.get_ylim()) for ax in calibration}) == 1
    for ax, metric in zip(calibration, ("exact", "jaccard"), strict=True):
        diagonal = ax.lines[0]
        assert diagonal.get_label() == "ideal"
        assert (*diagonal.get_xdata(), *diagonal.get_ydata()) == (0, 1, 0, 1)
        part = intervals[(intervals["metric"] == metric) & (intervals["model"] == "HP")]
        drawn = part[part["n"] >= 10]
        assert 0 < len(drawn) < len(part)  # bins of few instances are left out
        (line,) = [line for line in ax.lines[1:] if len(line.get_xdata()) == len(drawn)][:1]
        # Series stand beside each other, by less than a hundredth.
        assert line.get_xdata() == pytest.approx(drawn["estimated"], abs=0.0091)
        assert line.get_ydata() == pytest.approx(drawn["accuracy"])
    handles = calibration[0].get_legend_handles_labels()[1]
    assert "Highest probability (HP)" in handles
    curves = accepted_curves(analyses)
    assert curves["share"].min() >= 10 / 40
    accepted = plot_accepted(curves)
    drawn, gaps = accepted.axes[::2], accepted.axes[1::2]
    assert [ax.get_title() for ax in drawn] == ["Emotions", "Scene", "Yeast"]
    last = {round(float(line.get_ydata()[-1]), 12) for line in drawn[0].lines}
    assert len(last) == 1  # everything accepted: the same mean whatever the order
    colours = [[line.get_color() for line in ax.lines] for ax in drawn]
    assert colours[0] == colours[1] == colours[2]
    assert len(set(colours[0])) == 4
    for ax, right in zip(drawn, gaps, strict=True):
        hp, *others = ax.lines
        for line, gap in zip(others, right.lines, strict=False):
            assert gap.get_color() == line.get_color()
            same = np.isin(line.get_xdata(), hp.get_xdata())
            usual = dict(zip(hp.get_xdata(), hp.get_ydata(), strict=True))
            expected = [y - usual[x] for x, y in zip(*line.get_data(), strict=True) if x in usual]
            assert same.any()
            assert np.asarray(gap.get_ydata())[same] == pytest.approx(expected)
    for column in (drawn, gaps):
        assert len({(*ax.get_xlim(), *ax.get_ylim()) for ax in column}) == 1


def test_accepted_predictions_are_counted_from_the_first(analyses):
    curves = accepted_curves(analyses, least=1)
    panels = plot_accepted_counts(curves).axes
    assert [ax.get_title() for ax in panels if ax.get_visible()] == ["Emotions", "Scene", "Yeast"]
    for ax, dataset in zip(panels, ("emotions", "scene", "yeast"), strict=False):
        for line, candidate in zip(ax.lines, ("HP", "TG", "SE", "CE"), strict=True):
            cell = analyses.scores.query(
                f"dataset == {dataset!r} and classifier == 'CT' and repeat == 0"
            )
            score = {"HP": "top", "CE": "collision"}.get(candidate)
            if score is None:
                continue
            most_confident = cell.sort_values(score, ascending=False)
            tp, missed = most_confident["tp"], most_confident["fp"] + most_confident["fn"]
            jaccard = (tp / (tp + missed)).fillna(1.0).to_numpy()
            expected = [sum(jaccard[:k]) / k for k in range(1, len(jaccard) + 1)]
            assert line.get_xdata().tolist() == list(range(1, len(jaccard) + 1))
            assert line.get_ydata() == pytest.approx(expected)


def test_a_profile_of_three_outcomes():
    profile = profile_of(np.array([[0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]]))
    assert profile.n_bits == pytest.approx(np.log2(3))
    assert profile.entropy == pytest.approx([np.log(2), np.log(3)])


def test_a_table_without_rows_is_left_out_and_all_others_are_written(tmp_path):
    # Every prediction is right, as those of a constant label are: there is nothing to correlate.
    scores = make_scores(n=12, datasets={"mine": 2}, classifiers=("net",), n_repeats=1)
    scores = scores.assign(tp=1, fp=0, fn=0, tn=1)
    run = run_of(scores, make_features({"mine": 2}, n_repeats=1), tmp_path)
    names = {path.name for path in write_report(run, n_jobs=1)}
    assert {"accuracy.md", "kendall_exact.md", "intervals_exact.md", "values_models.csv"} <= names
    assert not [name for name in names if name.endswith(("effects.md", "robustness.md"))]


def test_three_rows_are_too_few_for_models_of_accuracy_but_not_for_the_rest(tmp_path):
    scores = make_scores(n=3, datasets={"mine": 2}, classifiers=("net",), n_repeats=1)
    run = run_of(scores, make_features({"mine": 2}, n_repeats=1), tmp_path)
    names = {path.name for path in write_report(run, n_jobs=1)}
    assert "intervals_exact.md" not in names
    assert {"kendall_exact.md", "calibration.svg"} <= names
    assert write_report(run, n_jobs=1)  # from the fits that are kept
