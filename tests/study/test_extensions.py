import numpy as np
import pytest
from score_tables import make_scores

from labelsure.analyses import (
    decided_labels,
    kendall,
    optimal_decisions,
    region_sizes,
    spread,
    true_accuracy,
)

SCORES = make_scores()


def test_spread_is_over_the_repeats():
    correlations = kendall(SCORES, metrics="exact")
    found = spread(correlations).iloc[0]
    values = correlations.query(
        "dataset == 'emotions' and classifier == 'ECC' and candidate == 'HP'"
    )["correlation"]
    assert found["n_repeats"] == 2
    assert found["mean"] == pytest.approx(values.mean())
    assert found["standard_deviation"] == pytest.approx(values.std())
    assert (found["least"], found["most"]) == (values.min(), values.max())


def test_the_model_that_is_the_truth_correlates_perfectly_with_it():
    known = SCORES.assign(
        true_expected_exact=np.where(SCORES["dataset"] == "scene", SCORES["expected_exact"], np.nan)
    )
    found = true_accuracy(known, metrics=["exact", "hamming"], candidates=["HP", "SE"])
    assert set(found["dataset"]) == {"scene"}
    assert set(found["metric"]) == {"exact"}
    model = found.query("candidate == 'model'")
    assert model["kendall"].tolist() == pytest.approx([1.0] * 6)
    assert (model["mean_error"] == 0).all()
    # HP is a monotone function of the top probability, which is the expected exact match.
    assert found.query("candidate == 'HP'")["kendall"].tolist() == pytest.approx([1.0] * 6)
    assert (found.query("candidate == 'SE'")["kendall"] < 1).all()


def test_an_unknown_truth_gives_no_rows():
    assert true_accuracy(SCORES).empty
    assert list(true_accuracy(SCORES).columns)[:2] == ["metric", "dataset"]


def test_a_decision_that_is_always_right_gains_what_the_mode_lacks():
    best = SCORES.assign(
        best_jaccard_tp=SCORES["tp"] + SCORES["fn"],
        best_jaccard_fp=0,
        best_jaccard_fn=0,
        best_jaccard_tn=SCORES["tn"] + SCORES["fp"],
        best_jaccard_gap=0.25,
    )
    found = optimal_decisions(best, empty=1.0)
    assert len(found) == 18
    assert (found["metric"] == "jaccard").all()  # nothing is known of the others
    assert (found["gap"] == 0.25).all()
    assert optimal_decisions(best, metrics=("exact", "hamming")).empty
    assert (found["best"] == 1).all()
    assert found["gain"].to_numpy() == pytest.approx(1 - found["mode"].to_numpy())
    assert (found["standard_error"] > 0).all()


def test_without_better_decisions_there_are_no_rows():
    assert optimal_decisions(SCORES).empty
    missing = {f"best_jaccard_{name}": np.nan for name in ("tp", "fp", "fn", "tn", "gap")}
    assert optimal_decisions(SCORES.assign(**missing)).empty


def test_what_two_empty_sets_are_worth_is_added_to_both_expectations():
    known = SCORES.assign(
        true_expected_jaccard=SCORES["expected_jaccard"], true_p_empty=SCORES["p_empty"] / 2
    )
    zero = true_accuracy(known, metrics="jaccard", candidates="HP", empty=0.0)
    one = true_accuracy(known, metrics="jaccard", candidates="HP", empty=1.0)
    assert (zero.query("candidate == 'model'")["mean_error"] == 0).all()
    first = known.query("dataset == 'emotions' and classifier == 'ECC' and repeat == 0")
    gain = first["p_empty"].where(first["tp"] + first["fp"] == 0, 0.0).mean()
    found = one.query("candidate == 'model'")["mean_error"].iloc[0]
    assert found == pytest.approx(gain / 2)
    assert found > 0


def test_regions_are_described_by_their_means():
    known = SCORES.assign(
        log_prob_true=-1.0,
        region_covers=np.arange(len(SCORES)) % 4 > 0,
        region_agrees=1.0,
        region_certain=1,
        region_possible=2 + np.arange(len(SCORES)) % 2,
        region_labelsets=np.where(SCORES["dataset"] == "scene", np.nan, 5.0),
    )
    found = region_sizes(known)
    assert len(found) == 18
    for row in found.itertuples():
        part = known.query(
            "dataset == @row.dataset and classifier == @row.classifier and repeat == @row.repeat"
        )
        assert row.n == len(part)
        assert row.covered == pytest.approx(part["region_covers"].mean())
        assert (row.agrees, row.certain) == (1.0, 1.0)
        assert row.possible == pytest.approx(part["region_possible"].mean())
        shares = (part["region_possible"] - 1) / part["n_labels"]
        assert row.share_open == pytest.approx(shares.mean())
        assert np.isnan(row.labelsets) if row.dataset == "scene" else row.labelsets == 5
    assert region_sizes(SCORES).empty
    assert region_sizes(known.drop(columns="region_labelsets"))["labelsets"].isna().all()


def test_open_labels_are_described_by_their_means():
    """Where the labels of each count but the first true positive stay open."""
    known = SCORES.assign(
        open_labels=SCORES["n_labels"] - (SCORES["tp"] > 0),
        open_tp=(SCORES["tp"] > 0).astype(int),
        open_fp=0,
        open_fn=0,
        open_tn=0,
    )
    found = decided_labels(known, metrics=["jaccard", "hamming"])
    assert len(found) == 36
    for row in found.itertuples():
        part = known.query(
            "dataset == @row.dataset and classifier == @row.classifier and repeat == @row.repeat"
        )
        assert row.n == len(part)
        assert row.undecided == pytest.approx((part["tp"] == 0).mean())
        assert row.share_open == pytest.approx((part["open_labels"] / part["n_labels"]).mean())
        assert (row.decided, row.standard_error) == (1.0, 0.0)
        assert row.mode < 1
    wrong = known.assign(open_fp=known["open_tp"])
    half = decided_labels(wrong, metrics="jaccard")
    assert half["decided"].tolist() == pytest.approx([0.5] * 18)
    assert decided_labels(SCORES).empty
    assert decided_labels(known.assign(open_labels=known["n_labels"]))["decided"].isna().all()
