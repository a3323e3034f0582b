import numpy as np
import pytest
from score_tables import make_scores

from labelsure.study.analyses import optimal_decisions
from labelsure.study.plan import Settings

SCORES = make_scores()


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
