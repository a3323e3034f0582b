"""Verdicts: the law on the published numbers, and the arithmetic on tables of a few rows."""

from dataclasses import replace
from itertools import product

import numpy as np
import oracles_study as oracles
import pandas as pd
import pytest

from labelsure.study import conclusions as module
from labelsure.study.analyses import Analyses, effects
from labelsure.study.conclusions import (
    QUANTITIES,
    Claim,
    Conclusion,
    Evidence,
    Query,
    draw_conclusions,
    evaluate_conclusions,
    interval_over_splits,
    published_conclusions,
    published_evidence,
    published_table,
)

PAPER = published_evidence()
NAMES = list(dict.fromkeys(published_table("conclusions")["name"]))
MODELS = ["association", "analysis", "of", "term", "estimate", "standard_error", "p_value"]


@pytest.mark.parametrize("name", NAMES)
def test_the_published_numbers_give_the_papers_conclusions(name):
    (conclusion,) = [c for c in published_conclusions() if c.name == name]
    assert conclusion.verdict == "holds"
    assert conclusion.stable == "one split"
    assert not any(claim.missing for claim in conclusion.claims)
    for claim in conclusion.claims:
        assert (claim.paper, claim.level) == (claim.estimate, expected_level(claim))
        terms = claim.sign, claim.estimate, claim.p_value, claim.level, claim.bound
        assert claim.holds == oracles.claim_holds(*terms)


def expected_level(claim):
    """The level of the printed stars, by a loop over them."""
    if np.isnan(claim.paper_p):
        return 1
    if claim.sign == 0:
        return 0.1
    for level in (0.01, 0.05, 0.1):
        if claim.paper_p < level:
            return level
    return 1


def opposite():
    """The paper's numbers turned around: other signs, what is significant is not and vice versa."""
    models, intervals = PAPER.models, PAPER.intervals
    shares = models["term"].isin(["r_squared", "rmse"])
    numbers = np.where(shares, 1 - models["estimate"], -models["estimate"])
    effects = models["analysis"] == "effects"
    is_set = models["term"].isin(["scene", "yeast", "stare", "enron", "slashdot"])
    numbers = np.where(effects & is_set & (models["term"] != "enron"), 9, numbers)
    return Evidence(
        PAPER.correlations.assign(
            correlation=-PAPER.correlations["correlation"],
            difference=-PAPER.correlations["difference"],
        ),
        models.assign(estimate=numbers, p_value=0.5 - models["p_value"].clip(upper=0.5)),
        intervals.assign(
            bold=1 - intervals["bold"],
            underlined=1 - intervals["underlined"],
            low=1 - intervals["predicted_low"] - (intervals["predicted_low"] == 0),
            high=2 + np.where(intervals["model"] == "MIX", 5, 0.0),
        ),
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_conclusion_can_fail(name):
    found = {conclusion.name: conclusion for conclusion in evaluate_conclusions(opposite())}
    assert found[name].verdict == "does not hold"


def test_p_values_in_print():
    claims = {(c.name, x.text): x for c in published_conclusions() for x in c.claims}
    printed = {
        ("hp_for_exact", "SE on exact"): 0.64,
        ("hp_for_exact", "CE on exact"): 0.48,
        ("ce_helps_hamming", "CE on hamming"): 0.08,
    }
    for key, p in printed.items():
        assert round(claims[key].paper_p, 2) == p
    models = PAPER.models
    n_stars = models["stars"].str.len()
    for stars, least, most in ((0, 0.1, 1), (1, 0.05, 0.1), (2, 0.01, 0.05), (3, 0, 0.01)):
        found = models["p_value"][(n_stars == stars) & models["standard_error"].notna()]
        assert len(found)
        assert found.between(least, most, inclusive="left" if stars else "both").all()
    assert models["p_value"].isna().eq(models["standard_error"].isna()).all()
    arrows = PAPER.correlations["arrows"].str.len()
    for n, level in ((1, 0.1), (2, 0.05), (3, 0.01)):
        assert (PAPER.correlations["p_value"][arrows == n] < level).all()


def test_the_refitted_correlations_give_the_verdicts_of_print():
    fitted = effects(published_table("correlations")).rename(columns={"metric": "of"})
    fitted = fitted.assign(association="kendall", analysis="effects")
    others = PAPER.models[
        (PAPER.models["association"] != "kendall") | (PAPER.models["analysis"] != "effects")
    ]
    refitted = replace(PAPER, models=pd.concat([fitted, others], ignore_index=True))
    assert {c.verdict for c in evaluate_conclusions(refitted)} == {"holds"}


@pytest.mark.parametrize("sign", [-1, 0, 1])
@pytest.mark.parametrize("level", [0.01, 0.1, 1.0])
def test_verdicts_on_a_number(sign, level):
    for estimate, p, bound in product(
        (-0.2, 0.0, 0.2, 0.7, np.nan), (0.001, 0.01, 0.05, 0.1, 0.9), (0.0, 0.2, -0.5)
    ):
        p = np.nan if np.isnan(estimate) else p
        claim = Claim("a number", sign, estimate, p, level=level, bound=bound)
        assert claim.holds == oracles.claim_holds(sign, estimate, p, level, bound)
        expected = oracles.verdict([(sign, estimate, p, level, bound)])
        assert Conclusion("c", "s", (claim,)).verdict == expected


def test_one_failing_claim_is_enough_and_missing_ones_decide_nothing():
    good, bad, lacking = (Claim("x", 1, value) for value in (1.0, -1.0, np.nan))
    for some, verdict in (
        ((good, bad), "does not hold"),
        ((bad, lacking), "does not hold"),
        ((good, lacking), "undecided"),
        ((good, good), "holds"),
        ((lacking,), "not applicable"),
        ((), "not applicable"),
    ):
        assert Conclusion("c", "s", some).verdict == verdict
        assert oracles.verdict([(1, c.estimate, np.nan, 1, 0) for c in some]) == verdict
    assert Conclusion("c", "s", (good, bad), applicable=False).verdict == "not applicable"
    for sign in (-1, 0, 1):  # an estimate without the test that the paper's level is about
        untested = Claim("x", sign, 0.5, level=0.1)
        assert untested.missing
        assert Conclusion("c", "s", (good, untested)).verdict == "undecided"


def test_stable_is_the_least_of_the_claims():
    yes = Claim("x", 1, 0.2, low=0.1, high=0.3, n_splits=3)
    no, single = replace(yes, low=-0.1), replace(yes, n_splits=1)
    assert [c.stable for c in (yes, no, single)] == ["yes", "no", "one split"]
    for some, stable in (((yes,), "yes"), ((yes, single), "one split"), ((no, single), "no")):
        assert Conclusion("c", "s", some).stable == stable
    for sign, low, high, stable in (
        (1, 0.0, 1.0, "no"), (-1, -1.0, 0.0, "no"), (0, 0.0, 1.0, "yes"), (0, 0.1, 1.0, "no"),
        (1, -1.0, -0.1, "yes"),
    ):  # fmt: skip
        assert Claim("x", sign, 0.5, low=low, high=high, n_splits=2).stable == stable
        assert Claim("x", sign, 0.5, bound=7, low=low + 7, high=high + 7, n_splits=2).stable == (
            stable
        )


def test_the_interval_over_splits():
    for values, ratio in (((1.0, 2.0, 4.0), 0.0), ((1.0, 2.0, 4.0, 4.5), 2 / 3), ((3.0, 5.0), 1.5)):
        found = interval_over_splits(np.array(values), ratio)
        assert found == pytest.approx(oracles.interval_over_repeats(values, ratio)[1:])
    for few in ([], [0.5]):
        assert interval_over_splits(np.array(few), 0.7) == (-np.inf, np.inf)


def evidence(effects=(), robustness=(), correlations=None, intervals=None):
    """Return Kendall's numbers; Pearson's have the other sign, so that the wrong one is noticed.

    Rows of models are (of, term, estimate, standard_error, p_value).
    """
    parts = []
    for analysis, rows in (("effects", effects), ("robustness", robustness)):
        frame = pd.DataFrame(list(rows), columns=MODELS[2:])
        for association, factor in (("kendall", 1), ("pearson", -2)):
            turned = frame.assign(estimate=factor * frame["estimate"].astype(float))
            parts.append(turned.assign(association=association, analysis=analysis))
    columns = ["association", "candidate", "dataset", "classifier", "metric", "correlation"]
    empty = pd.DataFrame(columns=[*columns, "difference", "p_value"])
    tables = pd.DataFrame(columns=["metric", "predicted_low", "predicted_high", "model"])
    return Evidence(
        empty if correlations is None else correlations,
        pd.concat(parts, ignore_index=True),
        tables if intervals is None else intervals,
    )


def ask(quantity, found, subjects="", on="exact", association="kendall"):
    """Return the numbers of a quantity: text to (value, p-value), None without a test."""
    question = Query(association, subjects.split(), on.split())
    return {
        number.text: (
            pytest.approx(number.value),
            None if np.isnan(number.p_value) else number.p_value,
        )
        for number in QUANTITIES[quantity](found, question)
    }


def of(**effects):
    """Return rows of effects on exact match with the same error and p-value."""
    return [("exact", term, value, 0.1, 0.04) for term, value in effects.items()]


def test_effects_come_with_the_regressions_test():
    found = evidence(effects=of(TG=-0.2, SE=9.0))
    assert ask("effect", found, "TG") == {"TG on exact": (-0.2, 0.04)}
    assert ask("effect", found, "TG", association="pearson") == {"TG on exact": (0.4, 0.04)}
    assert ask("sign_of_effect", found, "TG") == {"TG on exact": (-0.2, None)}
    (lacking,) = QUANTITIES["effect"](found, Query("kendall", ["TG"], ["jaccard"]))
    assert np.isnan(lacking.value)


def test_classifiers_are_compared_with_the_most_complex_and_with_their_neighbour():
    found = evidence(effects=of(Indep=-0.3, CT=-0.1))
    assert ask("order", found, "Indep CT ECC") == {
        "ECC - Indep on exact": (0.3, 0.04),
        "ECC - CT on exact": (0.1, 0.04),
        "CT - Indep on exact": (0.2, None),
    }


def test_the_greatest_effect_of_a_data_set_is_by_size_not_by_sign():
    sizes = {"enron": -0.5, "scene": 0.4, "yeast": -0.1, "stare": 0.0, "slashdot": 0.2}
    text = "|enron| - the next largest, exact"
    assert ask("largest", evidence(effects=of(**sizes)), "enron") == {text: (0.1, None)}
    found = evidence(effects=of(**{**sizes, "yeast": -0.6}))
    assert ask("largest", found, "enron") == {text: (-0.1, None)}
    (lacking,) = QUANTITIES["largest"](
        evidence(effects=of(enron=1.0)), Query("kendall", ["enron"], ["exact"])
    )
    assert np.isnan(lacking.value)


def test_the_fit_of_the_effects():
    rows = [("exact", "r_squared", 0.6, np.nan, np.nan), ("hamming", "rmse", 0.1, np.nan, np.nan)]
    found = evidence(effects=rows, robustness=[("HP", "r_squared", 9.0, np.nan, np.nan)])
    assert ask("fit", found, "r_squared") == {"r_squared of exact": (0.6, None)}
    assert ask("fit", found, "rmse", "hamming") == {"rmse of hamming": (0.1, None)}


@pytest.mark.parametrize(("association", "factor"), [("kendall", 1), ("pearson", -2)])
def test_the_fit_of_a_candidate_is_compared_with_every_other(association, factor):
    values = {"SE": 0.2, "HP": 0.5, "TG": 0.1}
    rows = [(name, "r_squared", value, np.nan, np.nan) for name, value in values.items()]
    found = evidence(robustness=[*rows, ("CE", "rmse", 0.3, np.nan, np.nan)])
    expected = {
        f"R2 of SE - {other}": (pytest.approx(factor * (0.2 - values[other])), None)
        for other in ("HP", "TG")
    }
    assert ask("r_squared", found, "SE", "", association) == expected
    assert ask("r_squared", found, "CS", "", association) == {}


def test_significant_terms_are_counted_at_ten_percent():
    p_values = {"CE": (0.05, 0.2), "CS": (0.2, 0.3), "HP": (0.01, 0.09), "TG": (0.1, 0.2)}
    rows = [
        (name, f"term {k}", 0.5, 0.1, p)
        for name, some in p_values.items()
        for k, p in enumerate(some)
    ]
    rows += [(name, "r_squared", 0.5, np.nan, 0.0) for name in p_values]  # no term of the model
    found = evidence(robustness=rows)
    assert ask("significant", found, "CE TG GI") == {
        "significant terms of CE": (1, None),
        "significant terms of TG": (0, None),  # 0.1 itself is not below it
    }
    assert ask("fewest_significant", found, "CE CS") == {
        "significant terms of HP - CE or CS": (1, None),
        "significant terms of TG - CE or CS": (-1, None),
    }
    assert ask("fewest_significant", found, "CE GI") == {}


def test_gradients():
    found = evidence(robustness=[("SE", "n_labels", -0.1, 0.1, 0.3)])
    assert ask("gradient", found, "n_labels", "SE") == {"n_labels, SE": (-0.1, 0.3)}
    assert ask("sign_of_gradient", found, "n_labels", "SE") == {"n_labels, SE": (-0.1, None)}


CELLS = pd.DataFrame(
    [
        ("kendall", "SE", "a", "net", "exact", 0.2, 0.1, 0.04),
        ("kendall", "SE", "a", "tree", "exact", 0.4, -0.1, 0.01),
        ("kendall", "SE", "b", "net", "exact", 0.6, 0.3, 0.1),
        ("kendall", "SE", "b", "tree", "exact", np.nan, np.nan, np.nan),
        ("kendall", "TG", "a", "net", "exact", 0.1, 0.2, 0.001),
        ("pearson", "SE", "a", "net", "exact", 9.0, 9.0, 0.0),
    ],
    columns=[
        "association", "candidate", "dataset", "classifier", "metric", "correlation", "difference",
        "p_value",
    ],
)  # fmt: skip


def test_candidates_are_compared_with_hp_cell_by_cell():
    found = evidence(correlations=CELLS)
    assert ask("above_hp", found, "SE", "a") == {
        "SE - HP, net, exact": (0.1, 0.04),
        "SE - HP, tree, exact": (-0.1, 0.01),
    }
    assert ask("above_hp", found, "SE", "c") == {}
    text = "cells in which {} is significantly above HP"
    assert ask("cells_above_hp", found, "SE TG") == {
        text.format("SE"): (1, None),
        text.format("TG"): (1, None),
    }
    assert ask("mean_correlation", found, "SE") == {
        "mean correlation of SE, exact": (pytest.approx(0.4), None)
    }


INTERVALS = pd.DataFrame(
    [
        ("exact", "HP", 0.0, 0.1, 0.12, 0.3, 1, 0),
        ("exact", "HP", 0.1, 0.2, 0.1, 0.3, 1, 0),
        ("exact", "MIX", 0.0, 0.1, 0.0, 0.1, 1, 1),
        ("exact", "MIX", 0.1, 0.2, 0.12, 0.24, 0, 1),
        ("exact", "SE", 0.0, 0.1, np.nan, np.nan, 0, 0),
        ("exact", "SE", 0.1, 0.2, 0.2, 0.3, 1, 1),
    ],
    columns=[
        "metric", "model", "predicted_low", "predicted_high", "low", "high", "bold", "underlined",
    ],
)  # fmt: skip


def test_models_are_compared_by_their_interval_tables():
    found = evidence(intervals=INTERVALS)
    errors = oracles.errors_of_intervals(INTERVALS.to_dict("records"))
    assert errors == pytest.approx({"HP": 0.105, "MIX": 0.015, "SE": 0.1})
    assert ask("model_error", found) == {
        f"mean error of {name}, exact": (error, None) for name, error in errors.items()
    }
    assert ask("least_error", found, "MIX") == {
        "mean error of MIX - least of another, exact": (0.015 - 0.1, None)
    }
    assert ask("most_matches", found, "MIX") == {
        "interval matches of MIX - most of another, exact": (-1, None)
    }
    assert ask("fewest_overestimates", found, "MIX") == {
        "overestimates of MIX - fewest of another, exact": (2, None)
    }
    assert ask("low_end", found) == {
        "least actual accuracy of the lowest estimates, HP": (0.12, None),
        "least actual accuracy of the lowest estimates, MIX": (0.0, None),
    }
    for quantity in ("least_error", "most_matches", "fewest_overestimates"):
        assert ask(quantity, found, "CE") == ask(quantity, found, "MIX", "f1") == {}


PAPER_DATASETS = ("emotions", "scene", "yeast", "stare", "enron", "slashdot")
METRICS = ("exact", "hamming", "jaccard")


def correlations_where(rise, datasets):
    """Return correlations that follow a formula, repeat by repeat.

    `rise` says by how much a candidate, data set or classifier is above the baselines; repeats
    differ by a little in all cells alike, and some cells by 0.001 more.
    """
    rows = [
        (metric, dataset, classifier, candidate, repeat, 40)
        for repeat in range(3)
        for metric in METRICS
        for dataset in datasets
        for classifier in ("Indep", "CT", "ECC")
        for candidate in ("HP", "TG", "SE", "CE")
    ]
    columns = ["metric", "dataset", "classifier", "candidate", "repeat", "n"]
    table = pd.DataFrame(rows, columns=columns)
    names = table[["candidate", "dataset", "classifier"]]
    z = 0.3 + sum(names[column].map(rise).fillna(0.0) for column in names) + 0.01 * table["repeat"]
    z += 0.001 * (np.arange(len(table)) % 7 == table["repeat"])
    table = table.assign(correlation=np.tanh(z), standard_error=0.01)
    keys = ["metric", "dataset", "classifier", "repeat"]
    baseline = table[table["candidate"] == "HP"].set_index(keys)["correlation"]
    above = table["correlation"] - baseline.loc[list(map(tuple, table[keys].to_numpy()))].array
    p_values = 2 * (1 - np.minimum(1, np.abs(above) / 0.03))
    return table.assign(difference=above, p_value=p_values)


def study_where(rise, pearson=None, datasets=PAPER_DATASETS):
    """Return a study whose correlations follow a formula; Pearson's may follow another."""
    features = pd.DataFrame(
        {
            "dataset": datasets,
            "n_labels": [3.0 + k for k in range(len(datasets))],
            "n_labelsets": [(5.0 * k) % 7 for k in range(len(datasets))],
            "cardinality": [(3.0 * k) % 5 for k in range(len(datasets))],
            "n_features": [(2.0 * k * k) % 11 for k in range(len(datasets))],
            "n_train": 60,
        }
    ).merge(pd.DataFrame({"repeat": range(3)}), how="cross")
    replicates = pd.DataFrame(
        [
            (metric, model, halving, 0.0, 0.1, 10, 0.05, accuracy + halving / 1000)
            for metric in METRICS
            for model, accuracy in (("HP", 0.12), ("MIX", 0.09))
            for halving in range(3)
        ],
        columns=[
            "metric", "model", "replicate", "predicted_low", "predicted_high", "n", "estimated",
            "accuracy",
        ],
    )  # fmt: skip
    correlations = pd.concat(
        [
            correlations_where(rise, datasets).assign(association="kendall"),
            correlations_where(pearson or rise, datasets).assign(association="pearson"),
        ],
        ignore_index=True,
    )
    scores = correlations[["dataset", "classifier", "repeat"]]
    found = Analyses(scores, features, replicates=replicates)
    found.correlations = correlations
    return found


LIKE_THE_PAPER = {
    "TG": -0.1, "SE": 0.05, "CE": 0.03, "Indep": -0.2, "CT": -0.1, "enron": -0.4, "scene": 0.1,
    "slashdot": 0.05,
}  # fmt: skip
OPPOSITE = {**{name: -value for name, value in LIKE_THE_PAPER.items()}, "enron": 0.05}


def verdicts(study):
    return {conclusion.name: conclusion.verdict for conclusion in draw_conclusions(study)}


def test_a_study_like_the_paper_by_one_correlation_and_its_opposite_by_the_other():
    found = verdicts(study_where(LIKE_THE_PAPER, pearson=OPPOSITE))
    turned = verdicts(study_where(OPPOSITE, pearson=LIKE_THE_PAPER))
    by_kendall = {
        "tg_never_above", "tg_worse", "se_helps_jaccard", "ce_helps_hamming", "classifier_order",
        "enron_differs_most", "slashdot_prefers_entropy", "entropies_not_lower",
    }  # fmt: skip
    for name in by_kendall:
        assert (found[name], turned[name]) == ("holds", "does not hold")
    for name in ("pearson_tg_worse", "pearson_se_helps_jaccard", "pearson_classifier_order"):
        assert (found[name], turned[name]) == ("does not hold", "holds")
    # A claimed absence fails on either side, because these effects have tiny errors.
    for name in ("hp_for_exact", "pearson_no_others"):
        assert (found[name], turned[name]) == ("does not hold", "does not hold")
    # The mixture's error is 0.04, that of HP 0.07; hamming's intervals have a width of 0.05.
    assert (found["mix_best_for_jaccard"], found["mix_best_for_exact"]) == ("holds", "holds")
    assert found["all_good_for_hamming"] == "does not hold"
    assert found["pearson_ce_cs_most_robust"] == "not applicable"  # there is no CS
    assert found["kendall_fit"] == "holds"


def test_claims_are_means_over_splits_and_stable_by_their_interval():
    study = study_where(LIKE_THE_PAPER)
    rows = study.models.query("association == 'kendall' and of == 'exact' and term == 'TG'")
    rows = rows.query("analysis == 'effects'").set_index("repeat")["estimate"]
    (conclusion,) = [c for c in draw_conclusions(study) if c.name == "tg_worse"]
    claim = conclusion.claims[0]
    each = [rows[repeat] for repeat in range(3)]
    _, low, high = oracles.interval_over_repeats(each, study.datasets["n_test"].mean() / 60)
    assert claim.estimate == rows[-1]
    assert (claim.low, claim.high, claim.n_splits) == (pytest.approx(low), pytest.approx(high), 3)
    assert claim.stable == oracles.stable(-1, 0, each, study.datasets["n_test"].mean() / 60)


def test_verdicts_do_not_depend_on_the_number_of_splits():
    study = study_where(LIKE_THE_PAPER)
    first = study.correlations[study.correlations["repeat"] == 0]
    found = {}
    for n in (1, 3):
        copies = pd.concat([first.assign(repeat=k) for k in range(n)], ignore_index=True)
        copied = Analyses(
            copies[["dataset", "classifier", "repeat"]], study.features, replicates=study.replicates
        )
        copied.correlations = copies
        found[n] = draw_conclusions(copied)
    assert {c.name: c.verdict for c in found[1]} == {c.name: c.verdict for c in found[3]}
    assert {c.stable for c in found[1] if c.claims} == {"one split"}
    assert "yes" in {c.stable for c in found[3]}


def test_conclusions_are_about_the_papers_data_sets():
    mine = verdicts(study_where(LIKE_THE_PAPER, datasets=("emotions", "scene", "mine")))
    assert set(mine.values()) == {"not applicable"}
    some = verdicts(study_where(LIKE_THE_PAPER, datasets=("emotions", "scene", "yeast")))
    assert some["tg_worse"] == "holds"
    assert some["slashdot_prefers_entropy"] == some["enron_differs_most"] == "not applicable"


def test_conclusions_that_do_not_hold_come_first():
    drawn = draw_conclusions(study_where(LIKE_THE_PAPER, pearson=OPPOSITE))
    order = ["does not hold", "undecided", "holds", "not applicable"]
    assert [c.verdict for c in drawn] == sorted((c.verdict for c in drawn), key=order.index)
    assert {c.name for c in drawn} == set(NAMES)


def test_every_quantity_is_asked_for():
    assert set(published_table("conclusions")["quantity"]) == set(module.QUANTITIES)
