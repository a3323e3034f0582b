from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from score_tables import make_scores

import labelsure as ls
from labelsure.distributions.candidates import CANDIDATES
from labelsure.study.analyses import correlate, over_repeats
from labelsure.study.plan import Settings

SCORES = make_scores()


def kendall(scores, **settings):
    return correlate(scores, "kendall", Settings(**{"empty": 0.0, **settings}))


def pearson(scores, **settings):
    return correlate(scores, "pearson", Settings(**{"empty": 0.0, **settings}))


def test_one_row_for_each_cell_metric_and_candidate():
    frame = kendall(SCORES)
    assert len(frame) == 3 * 3 * 3 * 2 * 4
    assert list(frame.columns) == [
        "metric", "dataset", "classifier", "candidate", "repeat", "n", "correlation",
        "difference", "standard_error", "p_value", "arrows", "p_value_holm",
    ]  # fmt: skip
    assert (frame["n"] == 60).all()
    at_baseline = frame["candidate"] == "HP"
    assert frame.loc[at_baseline, ["difference", "p_value", "p_value_holm"]].isna().all(axis=None)
    assert (frame.loc[at_baseline, "arrows"] == "").all()


def test_arrows_say_direction_and_level():
    frame = kendall(SCORES).query("candidate != 'HP'")
    n_arrows = sum((frame["p_value"] < level).astype(int) for level in (0.1, 0.05, 0.01))
    assert (frame["arrows"].str.len() == n_arrows).all()
    assert (frame.loc[frame["difference"] > 0, "arrows"].str.replace("+", "") == "").all()
    assert (frame.loc[frame["difference"] < 0, "arrows"].str.replace("-", "") == "").all()
    assert n_arrows.max() == 3


def test_holm_multiplies_the_least_p_value_of_a_repeat_by_the_number_of_tests():
    frame = kendall(SCORES).query("repeat == 1 and candidate != 'HP'")
    least = frame["p_value"].idxmin()
    assert len(frame) == 81
    assert frame.loc[least, "p_value_holm"] == pytest.approx(
        min(1, 81 * frame.loc[least, "p_value"])
    )
    assert (frame["p_value_holm"] >= frame["p_value"]).all()


def test_kendall_leaves_out_candidates_that_rank_alike_and_pearson_does_not():
    settings = Settings(candidates=("HP", "ME", "CE", "GI", "CS"))
    assert set(correlate(SCORES, "kendall", settings)["candidate"]) == {"HP", "CE"}
    absolute = correlate(SCORES, "pearson", settings)
    assert set(absolute["candidate"]) == {"HP", "ME", "CE", "GI", "CS"}
    assert (absolute.query("candidate == 'ME'")["difference"] != 0).any()
    table = ls.ScoreTable(SCORES)
    for one, other in (("HP", "ME"), ("CE", "GI"), ("CE", "CS")):
        assert (table.ranks(one) == table.ranks(other)).all()


@pytest.mark.parametrize("candidate", list(CANDIDATES))
def test_rank_keys_reverse_no_pair_of_the_candidate(candidate):
    part = SCORES.query("dataset == 'yeast' and classifier == 'CT'")
    values, keys = ls.ScoreTable(part).candidate(candidate), ls.ScoreTable(part).ranks(candidate)
    reversed_pairs = np.sign(np.subtract.outer(values, values)) * np.sign(
        np.subtract.outer(keys, keys)
    )
    assert (reversed_pairs >= 0).all()
    assert CANDIDATES[candidate].rank_key is not None


def test_candidates_of_a_table_are_those_of_the_distribution():
    marginals = np.array([[0.9, 0.2, 0.6], [0.5, 0.4, 0.01]])
    dist = ls.IndependentLabels(marginals)
    table = dist.profile().to_frame().assign(n_labels=3)
    expected = ls.confidence(dist)
    for name in expected:
        np.testing.assert_allclose(ls.ScoreTable(table).candidate(name), expected[name], rtol=1e-12)


def test_a_tie_of_the_two_best_ranks_lowest():
    table = ls.IndependentLabels([[0.5, 0.9], [0.6, 0.9]]).profile().to_frame().assign(n_labels=2)
    keys = ls.ScoreTable(table).ranks("TG")
    assert keys[0] == -np.inf
    assert keys[1] > keys[0]


def test_a_constant_accuracy_is_missing_and_not_zero():
    perfect = SCORES.query("dataset == 'scene'").assign(fp=0, fn=0)
    frame = kendall(perfect, metrics=["exact"])
    assert frame["correlation"].isna().all()
    assert frame["p_value_holm"].isna().all()
    assert (frame["arrows"] == "").all()


def test_what_two_empty_sets_are_worth_matters_for_jaccard_only():
    zero, one = kendall(SCORES, empty=0.0), kendall(SCORES, empty=1.0)
    differs = (zero["correlation"] != one["correlation"]).groupby(zero["metric"]).any()
    assert differs.to_dict() == {"exact": False, "hamming": False, "jaccard": True}


def test_a_subset_without_the_baseline_is_still_compared_with_it():
    frame = kendall(SCORES, candidates=["SE"], metrics=["exact"])
    whole = kendall(SCORES, metrics=["exact"]).query("candidate == 'SE'")
    assert frame["difference"].tolist() == whole["difference"].tolist()


def test_messages():
    with pytest.raises(ls.InputError, match="'tp'"):
        kendall(SCORES.drop(columns="tp"))
    with pytest.raises(ls.InputError, match="`scores`"):
        kendall(SCORES.drop(columns="repeat"))
    with pytest.raises(ls.InputError, match="`scores`"):
        pearson(SCORES[:0])
    with pytest.raises(ls.errors.UnknownNameError, match="jacard"):
        kendall(SCORES, metrics=["jacard"])
    with pytest.raises(ls.errors.UnknownNameError, match="Unknown candidate 'HQ'"):
        kendall(SCORES, candidates=["HQ"])
    with pytest.raises(ls.InputError, match="metrics"):
        kendall(SCORES, metrics=[])
    with pytest.raises(ls.InputError, match="`empty` must be a number"):
        kendall(SCORES, empty=2.0)


@pytest.mark.parametrize("association", [kendall, pearson])
def test_tests_over_repeats_against_loops(association):
    frame = association(SCORES)
    found = over_repeats(frame)
    keys = ["metric", "dataset", "classifier", "candidate"]
    assert len(found) == len(frame) / 2
    for row in found.itertuples():
        parts = frame[(frame[keys] == [getattr(row, key) for key in keys]).all(axis=1)]
        assert row.correlation == pytest.approx(parts["correlation"].mean())
        if row.candidate == "HP":
            assert row.arrows == ""
            assert np.isnan(row.p_value)
            continue
        gap = sum(parts["difference"]) / 2
        error = (sum(e**2 for e in parts["standard_error"]) / 2) ** 0.5
        p = 2 * NormalDist().cdf(-abs(gap) / error)
        assert (row.difference, row.p_value) == pytest.approx((gap, p))
        assert row.arrows == ("+" if gap > 0 else "-") * sum(p < x for x in (0.1, 0.05, 0.01))
        assert row.p_value_holm >= row.p_value


def test_repeats_that_agree_are_as_sure_as_one_and_no_surer():
    one = kendall(SCORES).query("repeat == 0").reset_index(drop=True)
    pd.testing.assert_frame_equal(over_repeats(one), one, check_dtype=False)
    twice = over_repeats(pd.concat([one, one.assign(repeat=1)]))
    np.testing.assert_allclose(twice["p_value"], one["p_value"])
    assert twice["arrows"].tolist() == one["arrows"].tolist()
    opposite = one.assign(repeat=1, difference=-one["difference"])
    assert set(over_repeats(pd.concat([one, opposite]))["arrows"]) == {""}
