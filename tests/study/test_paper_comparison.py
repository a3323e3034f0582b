import json

import numpy as np
import oracles_study as oracles
import pandas as pd
import pytest
import tomli_w
from score_tables import make_features, make_scores

import labelsure as ls
from labelsure.study.analyses import Analyses
from labelsure.study.conclusions import published_table
from labelsure.study.paper import (
    _with_misses,
    agreement,
    check_against_paper,
    compare_numbers,
    compare_with_paper,
)
from labelsure.study.plan import Settings, load_plan
from labelsure.study.run import open_run

PUBLISHED = published_table("correlations")
N_CONCLUSIONS = published_table("conclusions")["name"].nunique()
DATASETS = {"emotions": 3, "scene": 4, "yeast": 5, "stare": 6, "enron": 7, "slashdot": 8}


@pytest.fixture(scope="module")
def analyses():
    scores = make_scores(n=50, datasets=DATASETS)
    settings = Settings(empty=0.0)
    return Analyses(scores, make_features(DATASETS), settings, replicates=make_replicates())


def make_replicates():
    """Fits are slow, and how they come out does not matter here."""
    rng = np.random.default_rng(0)
    rows = [
        (metric, model, replicate, low, low + width, 30, low + width / 2, rng.uniform(low, 1))
        for metric, width in (("exact", 0.1), ("hamming", 0.05), ("jaccard", 0.1))
        for model in ("HP", "SE", "CE", "MIX")
        for replicate in range(3)
        for low in np.arange(0, 1, width).round(9)
    ]
    columns = ["metric", "model", "replicate", "predicted_low", "predicted_high", "n"]
    return pd.DataFrame(rows, columns=[*columns, "estimated", "accuracy"])


@pytest.fixture(scope="module")
def check(analyses):
    return compare_with_paper(analyses)


def test_every_published_number_is_there(analyses):
    numbers = compare_numbers(analyses)
    sizes = numbers.groupby("table").size()
    assert sizes["correlations"] == 216
    assert sizes["kendall effects"] == 30 * 2 + 3 * 4
    assert sizes["kendall robustness"] == 32 * 2 + 4 * 4
    assert sizes["pearson effects"] == 36 * 2 + 3 * 4
    assert sizes["pearson robustness"] == 48 * 2 + 6 * 4
    assert sizes["intervals"] == 108 * 2
    assert sizes["datasets"] == 6 * 4
    assert numbers["published"].isna().sum() == 2  # the interval printed as NA
    tau = numbers[numbers["table"] == "correlations"]
    assert (tau["n_repeats"] == 2).all()
    assert tau["miss"].notna().all()


def test_a_published_number_inside_the_prediction_interval_is_no_miss(analyses):
    numbers = compare_numbers(analyses).query("table == 'correlations'")
    inside = numbers["published"].between(numbers["low"] - 6e-4, numbers["high"] + 6e-4)
    assert (inside[~numbers["miss"].astype(bool)]).all()
    assert numbers["miss"].any()


@pytest.mark.parametrize("table", ["correlations", "datasets"])
def test_a_miss_lies_outside_the_interval_for_one_more_split_by_more_than_rounding(table):
    values = [0.1, 0.2, 0.4]
    low, high = oracles.prediction_interval(values)
    rounding = {"correlations": 0.00051, "datasets": 0.0051}[table]
    published = {
        low - rounding - 1e-6: True,
        low - rounding + 1e-6: False,
        high + rounding - 1e-6: False,
        high + rounding + 1e-6: True,
    }
    spread = float(np.std(values, ddof=1))
    rows = pd.DataFrame(
        {"table": table, "published": list(published), "ours": np.mean(values), "spread": spread}
    )
    judged = _with_misses(rows.assign(n_repeats=3))
    assert judged["miss"].tolist() == list(published.values())
    assert judged["low"].tolist() == pytest.approx([low] * 4)
    assert judged["high"].tolist() == pytest.approx([high] * 4)
    assert judged["difference"].tolist() == pytest.approx([np.mean(values) - p for p in published])
    once = _with_misses(rows.assign(n_repeats=1, spread=np.nan))
    assert once["miss"].isna().all()
    assert _with_misses(rows.assign(n_repeats=3, published=np.nan))["miss"].isna().all()


def test_conclusions_come_misses_first(check):
    verdicts = [conclusion.verdict for conclusion in check.conclusions]
    order = ["does not hold", "undecided", "holds", "not applicable"]
    assert verdicts == sorted(verdicts, key=order.index)
    assert len(verdicts) == N_CONCLUSIONS
    assert check.misses == [c for c in check.conclusions if c.verdict == "does not hold"]
    assert all(c.claims for c in check.conclusions)


def test_agreement_is_given_for_single_repeats_too(check, analyses):
    measures = check.summaries.set_index("measure")
    alone = [
        agreement(part, PUBLISHED)["spearman"]
        for _, part in analyses.correlations.query("association == 'kendall'").groupby("repeat")
    ]
    spearman = measures.loc["Spearman correlation"]
    assert (spearman["least"], spearman["most"]) == (min(alone), max(alone))
    assert min(alone) < max(alone)
    assert f"| {min(alone):.4g} | {max(alone):.4g} |" in check.to_markdown()


def test_claims_about_effects_come_with_the_papers_own_test(check, analyses):
    claims = {(c.name, claim.text): claim for c in check.conclusions for claim in c.claims}
    overall = analyses.models.query("repeat == -1 and analysis == 'effects'")
    p_values = overall.set_index(["association", "of", "term"])["p_value"]
    cs = claims["pearson_no_others", "CS on hamming"]
    assert (cs.p_value, cs.level) == (p_values["pearson", "hamming", "CS"], 0.1)
    ct = claims["classifier_order", "ECC - CT on exact"]
    assert (ct.p_value, ct.level) == (p_values["kendall", "exact", "CT"], 1)  # no star in print
    error = claims["mix_best_for_exact", "mean error of MIX - least of another, exact"]
    assert np.isnan(error.p_value)


def test_verdicts_come_first_with_the_papers_number_ours_p_and_stability(check):
    tables = list(check.tables())
    assert [table.name for table in tables[:2]] == ["conclusions", "claims"]
    shown = tables[0].frame
    assert list(shown.columns) == ["conclusion", "paper", "ours", "p", "holds", "of", "stable"]
    for conclusion, row in zip(check.conclusions, shown.itertuples(index=False), strict=True):
        assert (row.conclusion, row.holds, row.stable) == (
            conclusion.statement, conclusion.verdict, conclusion.stable,
        )  # fmt: skip
        n_held = sum(claim.holds for claim in conclusion.claims)
        assert row.of == f"{n_held} of {len(conclusion.claims)}"
        for text, values in (
            (row.paper, [claim.paper for claim in conclusion.claims]),
            (row.ours, [claim.estimate for claim in conclusion.claims]),
            (row.p, [claim.p_value for claim in conclusion.claims]),
        ):
            known = sorted(value for value in values if not np.isnan(value))
            assert {*text.split(" to ")} - {""} == {f"{x:.3f}" for x in (*known[:1], *known[-1:])}
    by_name = {(c.name, claim.text): claim for c in check.conclusions for claim in c.claims}
    details = tables[1].frame
    assert len(details) == sum(len(c.claims) for c in check.conclusions)
    aims = dict(zip(details["number"], details["by the paper"], strict=True))
    assert aims["CE on hamming"] in ("above 0, p < 0.1", "no evidence")
    assert aims["r_squared of exact"] == "above 0.7"
    assert aims["cells in which TG is significantly above HP"] == "0"
    for row in details.itertuples(index=False):
        claim = by_name[row.name, row.number]
        assert row.holds == ("" if claim.missing else "yes" if claim.holds else "no")


def test_agreement_by_data_set_is_in_units_of_our_own_splits(check, analyses):
    ours = analyses.correlations.query("association == 'kendall'")
    keys = ["metric", "dataset", "classifier", "candidate"]
    reference = {tuple(row[:4]): row[4] for row in PUBLISHED.itertuples(index=False)}
    values = {
        (*row[:4], row[4]): row[5] for row in ours[[*keys, "repeat", "correlation"]].to_numpy()
    }
    for row in check.datasets.itertuples():
        gaps, own = [], []
        for cell, published in reference.items():
            if cell[1] == row.dataset and row.classifier in ("all", cell[2]):
                gaps += [abs(values[*cell, repeat] - published) for repeat in (0, 1)]
                own.append(abs(values[*cell, 0] - values[*cell, 1]))
        assert row.paper == pytest.approx(sum(gaps) / len(gaps))
        assert row.own == pytest.approx(sum(own) / len(own))
        assert row.ratio == pytest.approx(row.paper / row.own)
    assert len(check.datasets) == 6 * 4


def test_agreement_without_the_data_set_whose_labels_are_unknown(check, analyses):
    ours = analyses.correlations.query("association == 'kendall' and dataset != 'enron'")
    measures = check.summaries.set_index("measure")
    expected = agreement(ours, PUBLISHED)["spearman"]
    assert measures.loc["Spearman correlation", "without"] == pytest.approx(expected)


def test_a_comparison_is_json_and_a_page(check):
    plain = json.loads(json.dumps(check.to_dict(), allow_nan=False))
    assert len(plain["conclusions"]) == N_CONCLUSIONS
    assert len(plain["conclusions"][0]["claims"]) > 0
    page = check.to_markdown()
    assert page.startswith(f"# Compared with the paper\n\n{N_CONCLUSIONS} conclusions. Does not ")
    assert "two of our repeats" in page
    intervals = page.split("### Estimated and actual accuracy")[1].split("###")[0]
    assert "One repeat only: there is no spread to judge by." in intervals
    rows = page.split("### Kendall correlations")[1].split("###")[0].splitlines()
    judged = [row.split("|")[-2].strip() for row in rows if row.count("|") == 7][2:]
    assert len(judged) == 216
    assert judged == sorted(judged, key=["miss", "within"].index)


def test_a_study_of_other_data_can_be_compared_as_far_as_it_goes():
    scores = make_scores(n=40, datasets={"mine": 3}, classifiers=("net",), n_repeats=1)
    settings = Settings(metrics=("exact",), candidates=("HP", "SE"), n_replicates=1)
    small = Analyses(scores, make_features({"mine": 3}, n_repeats=1), settings)
    found = compare_with_paper(small)
    has_ours = found.numbers[found.numbers["ours"].notna()]
    # Of the paper's numbers there are SE's effect on exact match, and what explains HP and SE.
    assert set(has_ours["table"]) == {
        "kendall effects", "pearson effects", "kendall robustness", "pearson robustness",
        "intervals",
    }  # fmt: skip
    assert not found.numbers["miss"].any()  # one repeat has no spread to judge by
    with_numbers = {
        c.name for c in found.conclusions if not all(claim.missing for claim in c.claims)
    }
    # One cell for each candidate has no R2, and leaves no degree of freedom for a test.
    assert with_numbers == {
        "three_candidates", "entropies_not_lower", "mix_best_for_exact", "mix_most_matches",
        "mix_fewest_overestimates",
    }  # fmt: skip
    assert {c.verdict for c in found.conclusions} == {"not applicable"}
    assert found.misses == []
    assert json.dumps(found.to_dict(), allow_nan=False)
    page = found.to_markdown()
    assert f"Does not hold: 0; undecided: 0; holds: 0; not applicable: {N_CONCLUSIONS}." in page


ONE_METRIC = Settings(metrics=("f1",), candidates=("HP",), n_replicates=1)


@pytest.mark.parametrize(
    ("n", "counts"),
    [(8, {}), (3, {}), (1, {}), (8, {"tp": 1, "fp": 0, "fn": 0, "tn": 1})],
    ids=["8 rows", "3 rows", "1 row", "a constant label"],
)
@pytest.mark.parametrize("dataset", ["mine", "emotions"])
def test_the_smallest_runs_can_be_compared(dataset, n, counts):
    scores = make_scores(n=n, datasets={dataset: 2}, classifiers=("net",), n_repeats=1)
    features = make_features({dataset: 2}, n_repeats=1)
    found = compare_with_paper(Analyses(scores.assign(**counts), features, ONE_METRIC))
    assert {c.verdict for c in found.conclusions} == {"not applicable"}
    assert len(found.numbers) == len(found.numbers.drop_duplicates(["table", "row", "quantity"]))
    assert found.to_markdown().startswith(
        f"# Compared with the paper\n\n{N_CONCLUSIONS} conclusions. "
    )
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_a_run_folder_is_compared_with_the_fits_it_holds(analyses, tmp_path):
    analyses.scores.to_parquet(tmp_path / "scores.parquet")
    analyses.features.to_parquet(tmp_path / "features.parquet")
    changes = {"name": "mine", "empty": 0.0, "metrics": ["exact"], "candidates": ["HP", "SE"]}
    settings = load_plan("quick").to_dict() | changes | {"n_replicates": 1}
    (tmp_path / "plan.toml").write_text(tomli_w.dumps(settings))
    open_run(tmp_path).analyses(n_jobs=1)
    kept = tmp_path / "analyses" / "mixture_replicates.parquet"
    before = kept.stat().st_mtime_ns
    found = check_against_paper(tmp_path)
    assert kept.stat().st_mtime_ns == before
    assert len(found.conclusions) == N_CONCLUSIONS


def test_folders_without_a_study(tmp_path):
    with pytest.raises(ls.InputError, match="finished"):
        check_against_paper(tmp_path)
    (tmp_path / "scores.parquet").write_text("no")
    with pytest.raises(ls.InputError, match="Parquet"):
        check_against_paper(tmp_path)
    make_scores(n=3).to_parquet(tmp_path / "scores.parquet")
    make_features().to_parquet(tmp_path / "features.parquet")
    with pytest.raises(ls.InputError, match="finished"):
        check_against_paper(tmp_path)
    (tmp_path / "plan.toml").write_text("= 3")
    with pytest.raises(ls.InputError, match="must be the plan of a run, but it cannot be read"):
        check_against_paper(tmp_path)
