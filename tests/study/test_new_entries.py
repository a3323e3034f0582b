"""A new metric and a new candidate need an entry each, and nothing else in the package."""

import re
from itertools import product

import numpy as np
import pytest
import tomli_w

from labelsure.cli._app import main
from labelsure.distributions.candidates import CANDIDATES, Candidate
from labelsure.metrics.registry import METRICS, Metric
from labelsure.study.cells import Cell, score_cell
from labelsure.study.conclusions import published_table
from labelsure.study.figures import FIGURES
from labelsure.study.paper import check_against_paper
from labelsure.study.plan import Plan, load_plan
from labelsure.study.run import open_run

QUICK = load_plan("quick").to_dict()


def f2(tp, fp, fn, tn):
    with np.errstate(invalid="ignore"):
        return 5 * tp / (5 * tp + 4 * fn + fp)


def likely_share(profile):
    return np.exp(-profile.entropy)


def f2_of(decision, truth):
    """Two empty labelsets are worth 0."""
    tp = (decision & truth).sum()
    weighted = 4 * truth.sum() + decision.sum()
    return 5 * tp / weighted if weighted else 0.0


def register(monkeypatch):
    metric = Metric("f2", f2, (0.0, 1.0), title="F2 Score")
    candidate = Candidate("LS", "Likely Share", likely_share, falls_with=("entropy",))
    monkeypatch.setitem(METRICS, "f2", metric)
    monkeypatch.setitem(CANDIDATES, "LS", candidate)
    changes = {"metrics": ["exact", "f2"], "candidates": ["HP", "LS"], "n_repeats": 1}
    changes |= {"n_replicates": 1, "classifiers": {"Indep": {"class": "BinaryRelevance"}}}
    return Plan.from_dict({**QUICK, **changes})


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Return a plan and the folder of its run; the entries stay until the last test is done."""
    folder = tmp_path_factory.mktemp("new") / "run"
    with pytest.MonkeyPatch.context() as patch:
        plan = register(patch)
        path = folder.with_name("plan.toml")
        path.write_text(tomli_w.dumps(plan.to_dict()))
        assert main(["study", "run", str(path), "--out", str(folder), "--jobs", "1"]) == 0
        yield plan, folder


def text_of(folder, table):
    """Return a table as Markdown, without the spaces that align its columns."""
    return re.sub(" +", " ", (folder / "tables" / f"{table}.md").read_text())


def test_tables_have_the_titles_of_new_entries(study):
    _, folder = study
    assert "### Kendall's tau with F2 Score accuracy" in text_of(folder, "kendall_f2")
    assert "| Method | HP, ME | LS |" in text_of(folder, "kendall_f2")
    assert "### Pearson's correlation with F2 Score accuracy" in text_of(folder, "pearson_f2")
    assert "### Actual F2 Score accuracy for each interval" in text_of(folder, "intervals_f2")
    effects = text_of(folder, "kendall_effects")
    assert "| | Exact | F2 Score |" in effects
    assert "| Likely Share |" in effects
    assert "| F2 Score |" in text_of(folder, "kendall_robustness")
    assert "| f2 | dependent | Indep |" in text_of(folder, "optimal_decisions")


def test_figures_and_the_comparison_know_new_entries(study):
    _, folder = study
    assert "F2 Score" in (folder / "tables" / "README.md").read_text()
    assert len(list((folder / "figures").glob("[!.]*"))) == 2 * len(FIGURES)
    named = {conclusion.name for conclusion in check_against_paper(folder, n_jobs=1).conclusions}
    assert named == set(published_table("conclusions")["name"])


def test_the_summary_has_columns_and_rows_for_new_entries(study, capsys):
    plan, folder = study
    path = folder.with_name("plan.toml")
    assert main(["study", "run", str(path), "--out", str(folder), "--jobs", "1"]) == 0
    text = capsys.readouterr().out
    scores = open_run(folder).scores.query("dataset == 'dependent'")
    counts = [scores[name].to_numpy(float) for name in ("tp", "fp", "fn", "tn")]
    actual = np.nan_to_num(f2(*counts), nan=plan.empty).mean()
    nothing = scores["tp"] + scores["fp"] == 0
    expected = (scores["expected_f2"] + plan.empty * nothing * scores["p_empty"]).mean()
    assert nothing.any()
    assert f"{actual:.3f} ({expected:.3f})" in text
    assert "│ LS        │" in text


def test_columns_of_a_new_metric_against_brute_force(study):
    plan, folder = study
    scores = open_run(folder).scores.query("dataset == 'dependent'").reset_index(drop=True)
    source = plan.datasets["dependent"].load("dependent")
    test = scores["instance"].to_numpy()
    true = source.truth[test].probabilities()
    everything = np.array([labelset[::-1] for labelset in product([0, 1], repeat=4)])
    for i, row in scores.iterrows():
        mode = np.array(list(map(int, row["decision"])))
        worth = [f2_of(mode, y) for y in everything]
        assert row["true_expected_f2"] == pytest.approx(np.dot(worth, true[i]))
        assert row["best_f2_gap"] == 0
    y = source.data.Y[test]
    best = np.array([list(map(int, text)) for text in scores["best_f2_decision"]])
    assert (scores["best_f2_tp"] == (y & best).sum(axis=1)).all()
    assert (best.sum(axis=1) > 0).mean() > (scores["tp"] + scores["fp"] > 0).mean()


def test_a_metric_without_a_rule_has_best_decisions_up_to_twelve_labels(monkeypatch):
    plan = register(monkeypatch)
    for n_labels, has_best in ((12, True), (13, False)):
        settings = {"simulated": {"n_samples": 40, "n_labels": n_labels, "random_state": 0}}
        wide = Plan.from_dict({**plan.to_dict(), "datasets": {"wide": settings}})
        scores = score_cell(Cell("wide", "Indep", 0), wide, wide.datasets["wide"].load("wide"))
        assert ("best_f2_decision" in scores) is has_best
        assert "true_expected_f2" in scores
        assert not scores.isna().any(axis=None)
