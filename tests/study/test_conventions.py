"""Two empty labelsets: worth a number or left out, in Analyses 0 to 4 and in Analysis 5."""

import math

import numpy as np
import oracles
import pandas as pd
import pytest
from score_tables import make_features, make_scores

import labelsure as ls
from labelsure.study.analyses import Analyses, correlate, optimal_decisions
from labelsure.study.cells import cell_key, plan_cells
from labelsure.study.figures import accepted_curves
from labelsure.study.mixture import mixture_replicates
from labelsure.study.plan import Plan, Settings, load_plan

SCORES = make_scores(n=80, n_repeats=1)
BOTH_EMPTY = (SCORES[["tp", "fp", "fn"]] == 0).all(axis=1)
assert 0.02 < BOTH_EMPTY.mean() < 0.5
METRICS = ("exact", "hamming", "jaccard", "f1")
DEPEND = ("jaccard", "f1")


@pytest.mark.parametrize("association", ["kendall", "pearson"])
def test_correlations_leave_out_rows_that_are_empty_twice(association):
    found = correlate(SCORES, association, Settings(metrics=METRICS, empty="omit"))
    without = correlate(SCORES[~BOTH_EMPTY], association, Settings(metrics=METRICS))
    whole = correlate(SCORES, association, Settings(metrics=METRICS))
    depends = found["metric"].isin(DEPEND)
    for column in ("n", "correlation", "difference", "standard_error"):
        expected = np.where(depends, without[column], whole[column])
        assert found[column].to_numpy() == pytest.approx(expected, nan_ok=True)
    assert (found["n"][depends] < 80).all()
    assert (found["n"][~depends] == 80).all()


def test_accuracies_are_those_of_the_rows_that_are_left():
    features = make_features(n_repeats=1)
    found = Analyses(SCORES, features, Settings(metrics=METRICS, empty="omit")).accuracy
    for row in found.itertuples():
        cell = SCORES[(SCORES["dataset"] == row.dataset) & (SCORES["classifier"] == row.classifier)]
        if row.metric in DEPEND:
            cell = cell[(cell[["tp", "fp", "fn"]] > 0).any(axis=1)]
        counts = cell[["tp", "fp", "fn", "tn"]].to_numpy().tolist()
        values = [value_of(row.metric, *some) for some in counts]
        assert row.actual == pytest.approx(sum(values) / len(values))


def value_of(metric, tp, fp, fn, tn):
    """The metric of labelsets that have these counts, by the oracle of labelsets."""
    return oracles.METRICS[metric](tp, fp, fn, tn, empty=math.nan)


def test_accepted_curves_leave_them_out():
    features = make_features(n_repeats=1)
    settings = Settings(metrics=("jaccard",), empty="omit")
    found = accepted_curves(Analyses(SCORES, features, settings))
    without = accepted_curves(Analyses(SCORES[~BOTH_EMPTY], features, Settings()))
    pd.testing.assert_frame_equal(found, without)


@pytest.mark.parametrize("metric", METRICS)
def test_the_mixture_neither_fits_nor_estimates_what_is_left_out(metric):
    settings = Settings(metrics=(metric,), candidates=("SE",), empty="omit", n_replicates=2)
    found = mixture_replicates(SCORES, settings)
    left = SCORES.assign(entropy=SCORES["entropy"].mask(BOTH_EMPTY, 0.123))
    changed = mixture_replicates(left, settings)
    n_rows = found.groupby(["model", "replicate"])["n"].sum()
    if metric in DEPEND:
        pd.testing.assert_frame_equal(found, changed)
        halves = (~BOTH_EMPTY).sum() / 2
        assert (n_rows - halves).abs().max() < 3 * np.sqrt(len(SCORES))
        assert (n_rows < len(SCORES) / 2).all()
    else:
        assert not found.equals(changed)
        assert (n_rows == len(SCORES) / 2).all()


def test_analysis_5_has_a_convention_of_its_own():
    common = {"metrics": ("jaccard",), "candidates": ("SE",), "n_replicates": 1}
    by_mixture = {
        value: mixture_replicates(SCORES, Settings(**common, empty=0.0, mixture_empty=value))
        for value in (None, 0.0, 1.0, "omit")
    }
    for value in (0.0, 1.0, "omit"):
        alone = mixture_replicates(SCORES, Settings(**common, empty=value))
        pd.testing.assert_frame_equal(by_mixture[value], alone)
    pd.testing.assert_frame_equal(by_mixture[None], by_mixture[0.0])
    assert not by_mixture[1.0].equals(by_mixture[0.0])
    correlations = [
        correlate(SCORES, "kendall", Settings(**common, empty=0.0, mixture_empty=value))
        for value in (0.0, 1.0)
    ]
    pd.testing.assert_frame_equal(*correlations)


def test_decisions_are_made_as_if_two_empty_labelsets_were_worth_nothing():
    best = {f"best_jaccard_{name}": SCORES[name] for name in ("tp", "fp", "fn", "tn")}
    scores = SCORES.assign(**best, best_jaccard_gap=0.0)
    common = {"metrics": ("jaccard",)}
    pd.testing.assert_frame_equal(
        optimal_decisions(scores, Settings(**common, empty="omit")),
        optimal_decisions(scores, Settings(**common, empty=0.0)),
    )


def test_cells_are_kept_where_their_rows_are_the_same():
    plan = load_plan("quick")
    (cell, *_), data = plan_cells(plan), plan.datasets["dependent"].load("dependent")

    def key(**changes):
        return cell_key(cell, Plan.from_dict({**plan.to_dict(), **changes}), data)

    assert key(empty=0.0) == key(empty="omit") == key(empty=0.0, mixture_empty=1.0)
    assert key(empty=0.0) != key(empty=1.0)


@pytest.mark.parametrize("name", ["empty", "mixture_empty"])
@pytest.mark.parametrize("value", ["drop", 1.5, -0.1, float("nan"), True, [0]])
def test_other_conventions_are_refused(name, value):
    with pytest.raises(ls.InputError, match=f"{name}"):
        Settings(**{name: value})


@pytest.mark.parametrize("value", ["omit", 0.0, 0.5, 1])
def test_conventions_survive_the_file_of_a_plan(value):
    plan = Plan.from_dict({**load_plan("quick").to_dict(), "empty": value, "mixture_empty": value})
    assert Plan.from_dict(plan.to_dict()) == plan
    assert plan.empty == plan.mixture_empty == value
