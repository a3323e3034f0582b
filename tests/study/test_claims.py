"""The arithmetic of verdicts, on tables small enough to be worked out by hand or by a loop."""

from types import SimpleNamespace

import numpy as np
import oracles_study as oracles
import pandas as pd
import pytest

from labelsure.study.analyses import Analyses
from labelsure.study.conclusions import (
    Claim,
    Conclusion,
    Numbers,
    draw_conclusions,
    published_table,
    repeat_interval,
)

ASSOCIATIONS = ("kendall", "pearson")
METRICS = ("exact", "hamming", "jaccard")
NAMES = "Indep CT ECC"
RATIO = 40 / 60  # of test to training instances in the tables below


def numbers_of(*, effects=(), fits=(), terms=(), correlations=None, replicates=None):
    """Return the numbers of a study: 40 test instances for 60 of training.

    Whatever is given is Kendall's. Pearson's tables have the same rows with the other sign and
    twice the size, so that the wrong one is noticed.
    """
    effects = both_associations(effects, ["repeat", "of", "term", "estimate"], "estimate")
    # The first repeat has the smaller standard error.
    effects["standard_error"] = 0.5 + 0.2 * effects["repeat"].astype(float)
    overall = effects.assign(
        repeat=-1, p_value=effects["association"].map({"kendall": 0.25, "pearson": 0.75})
    )
    fits = both_associations(fits, ["repeat", "of", "estimate"], "estimate")
    terms = both_associations(terms, ["repeat", "of", "p_value"], "p_value")
    models = pd.concat(
        [
            pd.concat([effects, overall]).assign(analysis="effects"),
            fits.assign(analysis="robustness", term="r_squared", factor="fit"),
            terms.assign(analysis="robustness", term="a term", factor="classifier"),
        ],
        ignore_index=True,
    )
    datasets = pd.DataFrame({"dataset": ["a"], "n_train": [60], "n_test": [40]})
    found = SimpleNamespace(
        models=models, correlations=correlations, replicates=replicates, datasets=datasets
    )
    return Numbers(found)


def claims_of(numbers, quantity, association, subjects="", on="exact hamming jaccard", sign=1):
    """Return the claims that a row of the table of conclusions makes."""
    row = (quantity, association, subjects, on, sign)
    columns = ["quantity", "association", "subjects", "on", "sign"]
    return list(numbers.claims(pd.DataFrame([row], columns=columns)))


def both_associations(rows, columns, value):
    kendall = pd.DataFrame(list(rows), columns=columns)
    pearson = kendall.assign(**{value: -2 * kendall[value].astype(float)})
    return pd.concat(
        [kendall.assign(association="kendall"), pearson.assign(association="pearson")],
        ignore_index=True,
    )


def assert_claims(claims, sign, expected, ratio=RATIO):
    """Compare claims with the intervals of a loop over the repeats: text to values."""
    assert [claim.text for claim in claims] == list(expected)
    intervals = []
    for claim, values in zip(claims, expected.values(), strict=True):
        found = oracles.interval_over_repeats(values, ratio)
        assert (claim.estimate, claim.low, claim.high) == pytest.approx(found)
        assert claim.sign == sign
        intervals.append(found[1:])
    assert verdict(claims) == oracles.verdict(sign, intervals)


def verdict(claims):
    return Conclusion("name", "statement", tuple(claims)).verdict


def over_repeats(values):
    """Return rows (repeat, *key, value) of the values over repeats of each key."""
    return [
        (repeat, *key, value) for key, some in values.items() for repeat, value in enumerate(some)
    ]


@pytest.mark.parametrize("association", ASSOCIATIONS)
@pytest.mark.parametrize("sign", [-1, 0, 1])
@pytest.mark.parametrize(
    "values", [(-0.2, -0.21), (0.2, 0.21), (-0.2, 0.3), (0.1, 0.102, 0.104), (0.0, 0.0, 0.0, 1e-9)]
)
def test_an_effect_is_judged_by_its_interval_over_repeats(association, sign, values):
    numbers = numbers_of(effects=over_repeats({("exact", "TG"): values, ("exact", "SE"): (9, 9)}))
    claims = claims_of(numbers, "effect", association, "TG", "exact", sign)
    shown = values if association == "kendall" else [-2 * value for value in values]
    assert_claims(claims, sign, {"TG on exact": shown})
    assert claims[0].p_value == (0.25 if association == "kendall" else 0.75)


def test_a_number_that_the_study_lacks_is_missing_and_decides_nothing():
    numbers = numbers_of(effects=over_repeats({("exact", "TG"): (-0.2, -0.21)}))
    there, lacking = claims_of(numbers, "effect", "kendall", "TG", "exact hamming", -1)
    assert (there.missing, lacking.missing) == (False, True)
    assert (lacking.low, lacking.high) == (-np.inf, np.inf)
    assert np.isnan(lacking.p_value)
    assert verdict([there]) == "holds"
    assert verdict([there, lacking]) == "undecided"
    assert verdict([lacking]) == "not applicable"
    wrong, lacking = claims_of(numbers, "effect", "kendall", "TG", "exact hamming", 0)
    assert verdict([wrong, lacking]) == "does not hold"
    assert verdict([lacking]) == "not applicable"
    assert (lacking.side, lacking.contradicted) == (0, False)


def test_one_repeat_is_judged_by_the_error_of_the_regression():
    numbers = numbers_of(effects=[(0, "exact", "TG", -0.9)])
    (claim,) = claims_of(numbers, "effect", "kendall", "TG", "exact", -1)
    reach = 1.959963985 * 0.5
    assert (claim.low, claim.high) == pytest.approx((-0.9 - reach, -0.9 + reach))
    assert (claim.side, claim.contradicted) == (0, False)


def test_the_ends_of_an_interval_belong_to_it():
    for sign in (-1, 0, 1):
        for low, high in ((0.0, 1.0), (-1.0, 0.0)):
            claim = Claim("a number", sign, 0.5, low, high)
            assert (claim.side, claim.contradicted) == (0, False)
            assert verdict([claim]) == ("holds" if sign == 0 else "undecided")


@pytest.mark.parametrize("association", ASSOCIATIONS)
def test_classifiers_are_compared_with_their_neighbour(association):
    values = {("exact", "Indep"): (-0.31, -0.3), ("exact", "CT"): (-0.1, -0.11)}
    claims = claims_of(numbers_of(effects=over_repeats(values)), "order", association, NAMES)
    factor = 1 if association == "kendall" else -2
    expected = {"ECC - CT on exact": [], "CT - Indep on exact": []}
    for repeat in (0, 1):
        indep, ct = (factor * values["exact", name][repeat] for name in ("Indep", "CT"))
        expected["ECC - CT on exact"].append(0 - ct)
        expected["CT - Indep on exact"].append(ct - indep)
    assert_claims(claims[:2], 1, expected)
    assert claims[0].p_value == (0.25 if association == "kendall" else 0.75)
    assert all(claim.missing for claim in claims[2:])
    assert [claim.text for claim in claims[2::2]] == ["ECC - CT on hamming", "ECC - CT on jaccard"]
    lacking = claims_of(
        numbers_of(effects=[(0, "exact", "Indep", -0.3)]), "order", "kendall", NAMES
    )
    assert all(claim.missing for claim in lacking)


def test_one_repeat_of_two_classifiers_has_the_error_of_each():
    effects = [(0, "exact", "Indep", -3.0), (0, "exact", "CT", -1.0)]
    order, other = claims_of(numbers_of(effects=effects), "order", "kendall", NAMES)[:2]
    reach = 1.959963985 * 0.5
    assert (order.low, order.high) == pytest.approx((1 - reach, 1 + reach))
    assert (other.low, other.high) == pytest.approx((2 - reach, 2 + reach))


@pytest.mark.parametrize("association", ASSOCIATIONS)
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("candidate", ["SE", "HP", "TG"])
def test_the_extreme_fit_is_compared_with_every_other(association, sign, candidate):
    values = {("SE",): (0.2, 0.21), ("HP",): (0.5, 0.52), ("TG",): (0.1, 0.1)}
    numbers = numbers_of(fits=over_repeats(values))
    factor = 1 if association == "kendall" else -2
    expected = {
        f"R2 of {candidate} - {other}": [
            factor * (values[(candidate,)][repeat] - values[(other,)][repeat]) for repeat in (0, 1)
        ]
        for other in ("HP", "SE", "TG")
        if other != candidate
    }
    found = claims_of(numbers, "r_squared", association, candidate, "", sign)
    assert_claims(found, sign, expected)
    assert claims_of(numbers, "r_squared", association, "CS", "", sign) == []


def test_significant_terms_are_counted_against_the_worse_of_the_best():
    p_values = {
        "CE": ((0.05, 0.2, 0.3), (0.05, 0.06, 0.3)),
        "CS": ((0.2, 0.3, 0.4), (0.2, 0.3, 0.4)),
        "HP": ((0.01, 0.02, 0.09), (0.01, 0.02, 0.09)),
        "TG": ((0.1, 0.2, 0.3), (0.09, 0.2, 0.3)),  # 0.1 itself is not below it
    }
    terms = [
        (repeat, name, p)
        for name, repeats in p_values.items()
        for repeat, some in enumerate(repeats)
        for p in some
    ]

    def count(name, repeat):
        return sum(p < 0.1 for p in p_values[name][repeat])

    expected = {
        f"significant terms of {name} - CE or CS": [
            count(name, repeat) - max(count("CE", repeat), count("CS", repeat)) for repeat in (0, 1)
        ]
        for name in ("HP", "TG")
    }
    assert expected["significant terms of TG - CE or CS"] == [-1, -1]
    claims = claims_of(numbers_of(terms=terms), "significant", "kendall", "CE CS", "")
    assert_claims(claims, 1, expected)
    assert claims_of(numbers_of(terms=terms), "significant", "kendall", "CE GI", "") == []
    # Pearson's p-values are all below 0 here, so that every candidate has three such terms.
    pearson = claims_of(numbers_of(terms=terms), "significant", "pearson", "CE CS", "")
    assert [claim.estimate for claim in pearson] == [0, 0]


@pytest.mark.parametrize("association", ASSOCIATIONS)
def test_the_greatest_effect_of_a_data_set_is_by_size_not_by_sign(association):
    values = {
        "enron": (-0.5, -0.51), "scene": (0.4, 0.1), "yeast": (-0.1, -0.3), "stare": (0.0, 0.0),
        "slashdot": (0.2, 0.2),
    }  # fmt: skip
    effects = over_repeats({("exact", name): some for name, some in values.items()})
    claims = claims_of(numbers_of(effects=effects), "largest", association, "enron")
    factor = 1 if association == "kendall" else 2
    gaps = [
        factor
        * (
            abs(values["enron"][repeat])
            - max(abs(values[name][repeat]) for name in values if name != "enron")
        )
        for repeat in (0, 1)
    ]
    assert_claims(claims[:1], 1, {"|enron| - the next largest, exact": gaps})
    assert gaps[0] == pytest.approx(factor * 0.1)
    assert all(claim.missing for claim in claims[1:])
    claims = claims_of(numbers_of(effects=effects[:-1]), "largest", association, "enron")
    assert all(claim.missing for claim in claims)  # slashdot is missing in one repeat


def correlations_with(rows):
    columns = ["dataset", "classifier", "candidate", "repeat", "difference", "standard_error"]
    return pd.DataFrame(rows, columns=columns).assign(metric="exact", association="kendall")


def above_hp(rows, dataset="a"):
    numbers = numbers_of(correlations=correlations_with(rows))
    return claims_of(numbers, "above_hp", "kendall", "SE", dataset)


def test_candidates_are_compared_with_hp_in_every_cell_of_one_data_set():
    rows = [
        ("a", "net", "SE", 0, 0.1, 0.5),
        ("a", "net", "SE", 1, 0.11, 0.9),
        ("b", "net", "SE", 0, -9.0, 0.5),
        ("a", "tree", "SE", 0, 0.2, 0.5),
        ("a", "tree", "SE", 1, 0.4, 0.5),
        ("a", "net", "TG", 0, -9.0, 0.5),
    ]
    claims = above_hp(rows)
    expected = {"SE - HP, net, exact": (0.1, 0.11), "SE - HP, tree, exact": (0.2, 0.4)}
    # Of a there are 40 test instances for 60 of training; nothing is known of b.
    assert_claims(claims, 1, expected)
    assert verdict(claims[:1]) == "holds"
    assert verdict(claims[1:]) == "undecided"
    turned = above_hp(rows[::-1])
    assert [claim.text for claim in turned] == list(expected)[::-1]  # cells as they come
    (single,) = above_hp(rows[:1])
    assert single.high - single.low == pytest.approx(2 * 1.959963985 * 0.5)
    assert above_hp(rows, "c") == []


HALVINGS = [
    ("HP", 0, 30, 0.05, 0.25), ("HP", 0, 10, 0.55, 0.51), ("MIX", 0, 20, 0.05, 0.12),
    ("HP", 1, 25, 0.04, 0.26), ("HP", 1, 15, 0.56, 0.50), ("MIX", 1, 20, 0.06, 0.12),
    ("HP", 2, 20, 0.06, 0.24), ("HP", 2, 20, 0.54, 0.52), ("MIX", 2, 20, 0.05, 0.13),
]  # fmt: skip
"""Model, halving, instances, estimated and actual accuracy, in intervals of 0.1."""


def numbers_of_halvings(rows, metric="exact", width=0.1):
    columns = ["model", "replicate", "n", "estimated", "accuracy"]
    table = pd.DataFrame(rows, columns=columns).assign(metric=metric)
    low = (table["estimated"] / width).astype(int) * width
    others = table.assign(metric="other", estimated=0.9, predicted_low=0.0, predicted_high=0.1)
    table = table.assign(predicted_low=low, predicted_high=low + width)
    return numbers_of(replicates=pd.concat([table, others], ignore_index=True))


def test_models_are_judged_by_their_mean_error_in_each_halving():
    errors = oracles.error_of_models(HALVINGS)
    assert errors["HP", 0] == pytest.approx((30 * 0.2 + 10 * 0.04) / 40)
    numbers = numbers_of_halvings(HALVINGS)
    gaps = [errors["HP", halving] - errors["MIX", halving] for halving in range(3)]
    claims = claims_of(numbers, "mixture", "", "MIX", "exact")
    assert_claims(claims, 1, {"error of HP - MIX": gaps}, ratio=1)
    without = numbers_of_halvings([row for row in HALVINGS if row[0] == "HP"])
    assert claims_of(without, "mixture", "", "MIX", "exact") == []
    assert claims_of(numbers, "mixture", "", "MIX", "jaccard") == []


@pytest.mark.parametrize(("metric", "width"), [("exact", 0.1), ("hamming", 0.05)])
def test_good_models_err_by_less_than_an_interval(metric, width):
    errors = oracles.error_of_models(HALVINGS)
    expected = {
        f"{width} - error of {name}": [width - errors[name, halving] for halving in range(3)]
        for name in ("HP", "MIX")
    }
    claims = claims_of(numbers_of_halvings(HALVINGS, metric, width), "small_error", "", on=metric)
    assert_claims(claims, 1, expected, ratio=1)


def test_accuracy_is_compared_with_the_lowest_interval():
    expected = {
        f"accuracy of {name} above its lowest interval": [
            accuracy - 0.1
            for model, _, _, estimated, accuracy in HALVINGS
            if model == name and estimated <= 0.1
        ]
        for name in ("HP", "MIX")
    }
    claims = claims_of(numbers_of_halvings(HALVINGS), "low_end", "", on="exact")
    assert_claims(claims, 1, expected, ratio=1)
    turned = claims_of(numbers_of_halvings(HALVINGS[::-1]), "low_end", "", on="exact")
    assert [claim.text for claim in turned] == list(expected)[::-1]  # models as they come


def test_the_interval_over_repeats():
    for values, ratio in (((1.0, 2.0, 4.0), 0.0), ((1.0, 2.0, 4.0, 4.5), 2 / 3), ((3.0, 5.0), 1.5)):
        found = repeat_interval(np.array(values), ratio)
        assert found == pytest.approx(oracles.interval_over_repeats(values, ratio))
    assert repeat_interval(np.array([0.5]), 0.7, 0.1) == pytest.approx(
        (0.5, 0.5 - 0.1959963985, 0.5 + 0.1959963985)
    )
    assert repeat_interval(np.array([0.5]), 0.7) == (0.5, -np.inf, np.inf)
    for lacking in ([], [0.5, np.nan]):
        mean, low, high = repeat_interval(np.array(lacking), 0.7)
        assert (np.isnan(mean), low, high) == (True, -np.inf, np.inf)


def test_the_ratio_of_test_to_training_instances_is_a_mean_over_data_sets():
    datasets = pd.DataFrame(
        [("a", 40, 60), ("a", 44, 56), ("b", 10, 40), ("b", 10, 40)],
        columns=["dataset", "n_test", "n_train"],
    )
    ratio = Numbers(SimpleNamespace(datasets=datasets)).ratio
    assert ratio == pytest.approx(((40 + 44) / (60 + 56) + 10 / 40) / 2)


PAPER_DATASETS = ("emotions", "scene", "yeast", "stare", "enron", "slashdot")


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
    table = table.assign(correlation=np.tanh(z), standard_error=0.1)
    keys = ["metric", "dataset", "classifier", "repeat"]
    baseline = table[table["candidate"] == "HP"].set_index(keys)["correlation"]
    above = table["correlation"] - baseline.loc[list(map(tuple, table[keys].to_numpy()))].array
    return table.assign(difference=above)


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


def verdicts(repeated):
    return {conclusion.name: conclusion.verdict for conclusion in draw_conclusions(repeated)}


OPPOSITE = {**{name: -value for name, value in LIKE_THE_PAPER.items()}, "enron": 0.05}

BY_KENDALL = {
    "tg_worse", "se_helps_jaccard", "ce_helps_hamming", "classifier_order", "enron_differs_most",
    "slashdot_prefers_entropy",
}  # fmt: skip
BY_PEARSON = {"pearson_tg_worse", "pearson_se_helps_jaccard", "pearson_classifier_order"}
CONSISTENT_WITH_ZERO = {"hp_for_exact", "pearson_no_others"}
BELOW_ZERO = {"tg_worse", "pearson_tg_worse", "se_most_robust", "pearson_se_least_explained"}


def test_a_study_like_the_paper_by_one_correlation_and_its_opposite_by_the_other():
    found = verdicts(study_where(LIKE_THE_PAPER, pearson=OPPOSITE))
    turned = verdicts(study_where(OPPOSITE, pearson=LIKE_THE_PAPER))
    for name in BY_KENDALL:
        assert (found[name], turned[name]) == ("holds", "does not hold")
    for name in BY_PEARSON:
        assert (found[name], turned[name]) == ("does not hold", "holds")
    # What should be consistent with 0 is above it in one of them, and below it in the other.
    for name in CONSISTENT_WITH_ZERO:
        assert (found[name], turned[name]) == ("does not hold", "does not hold")
    # The mixture's error is 0.04, that of HP 0.07; hamming's intervals have a width of 0.05.
    assert (found["mix_best_for_jaccard"], found["mix_best_for_exact"]) == ("holds", "holds")
    assert found["all_good_for_hamming"] == "does not hold"
    assert found["jaccard_low_end"] == "does not hold"
    assert found["pearson_ce_cs_most_robust"] == "not applicable"  # there is no CS


def test_every_conclusion_is_about_one_side():
    for conclusion in draw_conclusions(study_where(LIKE_THE_PAPER)):
        sign = -1 if conclusion.name in BELOW_ZERO else 1
        sign = 0 if conclusion.name in CONSISTENT_WITH_ZERO else sign
        assert {claim.sign for claim in conclusion.claims} <= {sign}


@pytest.mark.parametrize(
    ("name", "association", "candidate"),
    [
        ("se_most_robust", "kendall", "SE"),
        ("tg_least_robust", "kendall", "TG"),
        ("pearson_se_least_explained", "pearson", "SE"),
    ],
)
def test_robustness_is_by_the_fit_of_the_right_correlation(name, association, candidate):
    repeated = study_where(LIKE_THE_PAPER, pearson=OPPOSITE)
    (conclusion,) = [c for c in draw_conclusions(repeated) if c.name == name]
    fits = repeated.models.query(f"association == '{association}' and term == 'r_squared'")
    fits = fits.query("analysis == 'robustness'")
    r_squared = {(row.repeat, row.of): row.estimate for row in fits.itertuples()}
    expected = {
        f"R2 of {candidate} - {other}": [
            r_squared[repeat, candidate] - r_squared[repeat, other] for repeat in range(3)
        ]
        for other in ("CE", "HP", "SE", "TG")
        if other != candidate
    }
    sign = -1 if name in BELOW_ZERO else 1
    ratio = Numbers(repeated).ratio
    assert_claims(conclusion.claims, sign, expected, ratio)


def test_conclusions_are_about_the_papers_data_sets():
    mine = verdicts(study_where(LIKE_THE_PAPER, datasets=("emotions", "scene", "mine")))
    assert set(mine.values()) == {"not applicable"}
    some = verdicts(study_where(LIKE_THE_PAPER, datasets=("emotions", "scene", "yeast")))
    assert some["tg_worse"] == "holds"
    assert some["slashdot_prefers_entropy"] == some["enron_differs_most"] == "not applicable"


def test_conclusions_that_do_not_hold_come_first():
    drawn = draw_conclusions(study_where(LIKE_THE_PAPER))
    order = ["does not hold", "undecided", "holds", "not applicable"]
    assert [c.verdict for c in drawn] == sorted((c.verdict for c in drawn), key=order.index)
    assert {c.name for c in drawn} == set(published_table("conclusions")["name"])
