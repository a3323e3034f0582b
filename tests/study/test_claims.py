"""The arithmetic of verdicts, on tables small enough to be worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from labelsure.paper import Conclusion, agreement, effects_agreement
from labelsure.paper._claims import (
    Numbers,
    all_are_good,
    better_on,
    classifier_order,
    effects_have,
    extreme_fit,
    fewest_significant,
    greatest_data_effect,
    lowest_estimates_are_too_low,
    mixture_is_best,
)

T_OF_ONE = 12.706204736  # the 97.5% quantile of Student's t with one degree of freedom


def numbers_of(*, effects=(), fits=(), terms=(), correlations=None, replicates=None):
    """Return the numbers of two repeats: 40 test instances for 60 of training."""
    columns = ["repeat", "metric", "term", "estimate"]
    table = pd.DataFrame(list(effects), columns=columns).assign(
        association="kendall", standard_error=0.5, p_value=0.25
    )
    analyses = SimpleNamespace(
        replicates=replicates,
        features=pd.DataFrame({"dataset": ["a"], "n_train": [60]}),
        kendall=SimpleNamespace(
            correlations=pd.DataFrame({"dataset": ["a"], "repeat": [0], "n": [40]})
            if correlations is None
            else correlations,
            effects=table,
        ),
    )
    fitted = pd.DataFrame(list(fits), columns=["repeat", "candidate", "r_squared"])
    robust = pd.DataFrame(list(terms), columns=["repeat", "candidate", "p_value"])
    repeated = SimpleNamespace(
        analyses=analyses,
        effects=table,
        robustness_fit=fitted.assign(association="kendall"),
        robustness=robust.assign(association="kendall"),
    )
    return Numbers(repeated)


def estimates(claims):
    return {claim.text: pytest.approx(claim.estimate) for claim in claims}


def verdict(claims):
    return Conclusion("name", "statement", "rule", tuple(claims)).verdict


def test_an_effect_is_judged_by_its_interval_over_repeats():
    numbers = numbers_of(effects=[(0, "exact", "TG", -0.2), (1, "exact", "TG", -0.21)])
    (claim,) = effects_have("kendall", {"TG": ("exact", "f1")}, -1)(numbers)
    assert (claim.text, claim.sign, claim.p_value) == ("TG on exact", -1, 0.25)
    assert claim.estimate == pytest.approx(-0.205)
    # A spread of 0.01 / sqrt(2), enlarged by 1/2 for two repeats and by 40/60 for shared data.
    half = T_OF_ONE * 0.01 / np.sqrt(2) * np.sqrt(1 / 2 + 40 / 60)
    assert (claim.low, claim.high) == (
        pytest.approx(-0.205 - half),
        pytest.approx(-0.205 + half),
    )
    assert claim.supported
    assert verdict([claim]) == "holds"
    (other,) = effects_have("kendall", {"TG": ("exact",)}, 1)(numbers)
    assert other.contradicted
    (none,) = effects_have("kendall", {"TG": ("exact",)}, 0)(numbers)
    assert (none.supported, none.contradicted) == (False, True)


def test_one_repeat_is_judged_by_the_error_of_the_regression():
    numbers = numbers_of(effects=[(0, "exact", "TG", -0.9)])
    (claim,) = effects_have("kendall", {"TG": ("exact",)}, -1)(numbers)
    assert (claim.low, claim.high) == (
        pytest.approx(-0.9 - 1.959964 * 0.5),
        pytest.approx(-0.9 + 1.959964 * 0.5),
    )
    assert (claim.supported, claim.contradicted) == (False, False)


def test_classifiers_are_compared_with_their_neighbour():
    effects = [
        (repeat, "exact", term, value)
        for repeat in (0, 1)
        for term, value in (("Indep", -0.3), ("CT", -0.1))
    ]
    claims = classifier_order("kendall")(numbers_of(effects=effects))
    assert estimates(claims) == {"ECC - CT on exact": 0.1, "CT - Indep on exact": 0.2}
    assert verdict(claims) == "holds"
    assert classifier_order("kendall")(numbers_of(effects=effects[:1])) == []


def test_the_extreme_fit_is_compared_with_every_other():
    fits = [(0, "SE", 0.2), (1, "SE", 0.2), (0, "HP", 0.5), (1, "HP", 0.5), (0, "TG", 0.1)]
    fits.append((1, "TG", 0.1))
    claims = extreme_fit("kendall", "SE", -1)(numbers_of(fits=fits))
    assert estimates(claims) == {"R2 of SE - HP": -0.3, "R2 of SE - TG": 0.1}
    assert verdict(claims) == "does not hold"
    assert verdict(extreme_fit("kendall", "TG", -1)(numbers_of(fits=fits))) == "holds"
    assert extreme_fit("kendall", "CS", -1)(numbers_of(fits=fits)) == []


def test_significant_terms_are_counted_against_the_worse_of_the_best():
    p_values = {"CE": (0.05, 0.2, 0.3), "CS": (0.2, 0.3, 0.4), "HP": (0.01, 0.02, 0.09)}
    terms = [(r, name, p) for r in (0, 1) for name, some in p_values.items() for p in some]
    claims = fewest_significant("kendall", ("CE", "CS"), 0.1)(numbers_of(terms=terms))
    assert estimates(claims) == {"significant terms of HP - CE or CS": 2.0}
    assert verdict(claims) == "holds"


def test_the_greatest_effect_of_a_data_set_is_by_size_not_by_sign():
    values = {"enron": -0.5, "scene": 0.4, "yeast": -0.1, "stare": 0.0, "slashdot": 0.2}
    effects = [(r, "exact", name, value) for r in (0, 1) for name, value in values.items()]
    claims = greatest_data_effect("kendall", "enron")(numbers_of(effects=effects))
    assert estimates(claims) == {"|enron| - the next largest, exact": 0.1}
    claims = greatest_data_effect("kendall", "enron")(numbers_of(effects=effects[:-1]))
    assert claims == []  # slashdot is missing in one repeat


def test_candidates_are_compared_with_hp_in_every_cell():
    correlations = pd.DataFrame(
        {
            "metric": "exact",
            "dataset": ["a", "a", "b"],
            "classifier": "net",
            "candidate": "SE",
            "repeat": [0, 1, 0],
            "n": 40,
            "difference": [0.1, 0.3, -9.0],
            "standard_error": 0.5,
        }
    )
    claims = better_on("a", ("SE",))(numbers_of(correlations=correlations))
    assert estimates(claims) == {"SE - HP, net, exact": 0.2}
    assert verdict(claims) == "undecided"  # from 0.1 to 0.3 is far, with two repeats


def halvings(rows):
    columns = ["model", "replicate", "predicted_low", "n", "estimated", "accuracy"]
    table = pd.DataFrame(rows, columns=columns).assign(metric="exact")
    return numbers_of(replicates=table.assign(predicted_high=table["predicted_low"] + 0.1))


def test_models_are_judged_by_their_mean_error_in_each_halving():
    numbers = halvings(
        [
            (model, replicate, low, n, estimated, estimated + error)
            for replicate in (0, 1)
            for model, low, n, estimated, error in (
                ("HP", 0.0, 30, 0.05, 0.2),
                ("HP", 0.5, 10, 0.55, -0.04),  # 30 * 0.2 + 10 * 0.04 = 6.4, of 40
                ("MIX", 0.0, 20, 0.05, 0.07),
            )
        ]
    )
    claims = mixture_is_best("exact")(numbers)
    assert estimates(claims) == {"error of HP - MIX": 0.16 - 0.07}
    assert verdict(claims) == "holds"
    good = all_are_good("exact")(numbers)
    assert estimates(good) == {"0.1 - error of HP": -0.06, "0.1 - error of MIX": 0.03}
    assert verdict(good) == "does not hold"
    low = lowest_estimates_are_too_low("exact")(numbers)
    assert estimates(low) == {
        "accuracy of HP above its lowest interval": 0.15,
        "accuracy of MIX above its lowest interval": 0.02,
    }


def correlations(values, arrows):
    """Return HP, SE and TG on two data sets, in this order."""
    return pd.DataFrame(
        {
            "metric": "exact",
            "dataset": ["a"] * 3 + ["b"] * 3,
            "classifier": "net",
            "candidate": ["HP", "SE", "TG"] * 2,
            "correlation": values,
            "arrows": arrows,
        }
    )


def test_agreement_of_six_correlations():
    reference = correlations([0.2, 0.3, 0.1, 0.4, 0.6, 0.3], ["", "++", "-", "", "+++", "--"])
    ours = correlations([0.2, 0.1, 0.1, 0.5, 0.6, 0.7], [""] * 6)
    found = agreement(ours.drop(columns="arrows"), reference)
    assert found["n"] == 6
    assert found["mean_absolute_difference"] == pytest.approx(0.7 / 6)
    assert found["direction"] == 2 / 4  # SE on b and TG on a
    assert found["marked_direction"] == 1 / 3  # of SE on a, SE on b and TG on b
    # The mean gap of z: ours for SE goes down on a by less than it goes up on b, TG goes up.
    assert found["effect_signs"] == 1 / 2


def test_effects_overlap_if_their_intervals_do():
    reference = pd.DataFrame(
        {"metric": "exact", "term": ["SE", "TG"], "estimate": [0.1, -0.1], "standard_error": 0.01}
    )
    apart = 1.96 * 0.02
    near = reference.assign(estimate=reference["estimate"] + apart - 1e-9)
    far = reference.assign(estimate=[0.1 + apart - 1e-9, -0.1 + apart + 1e-9])
    assert effects_agreement(near, reference)["effect_overlap"] == 1
    assert effects_agreement(far, reference) == {"effect_signs": 1.0, "effect_overlap": 0.5}
