import numpy as np
import pytest
from score_tables import make_scores

from labelsure.study.analyses import optimal_decisions, true_accuracy
from labelsure.study.plan import Settings

SCORES = make_scores()


def test_the_model_that_is_the_truth_correlates_perfectly_with_it():
    known = SCORES.assign(
        true_expected_exact=np.where(SCORES["dataset"] == "scene", SCORES["expected_exact"], np.nan)
    )
    found = true_accuracy(
        known, Settings(metrics=("exact", "hamming"), candidates=("HP", "SE"), empty=0.0)
    )
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
    found = optimal_decisions(best)
    assert len(found) == 18
    assert (found["metric"] == "jaccard").all()  # nothing is known of the others
    assert (found["gap"] == 0.25).all()
    assert optimal_decisions(best, Settings(metrics=("exact", "hamming"))).empty
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
    one_each = {"metrics": ("jaccard",), "candidates": ("HP",)}
    zero = true_accuracy(known, Settings(**one_each, empty=0.0))
    one = true_accuracy(known, Settings(**one_each, empty=1.0))
    assert (zero.query("candidate == 'model'")["mean_error"] == 0).all()
    first = known.query("dataset == 'emotions' and classifier == 'ECC' and repeat == 0")
    gain = first["p_empty"].where(first["tp"] + first["fp"] == 0, 0.0).mean()
    found = one.query("candidate == 'model'")["mean_error"].iloc[0]
    assert found == pytest.approx(gain / 2)
    assert found > 0
