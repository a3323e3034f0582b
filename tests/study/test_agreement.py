"""How far two sets of correlations agree, against loops over their cells."""

import numpy as np
import oracles_study as oracles
import pandas as pd
import pytest

from labelsure.study.conclusions import published_table
from labelsure.study.paper import agreement, own_agreement, trivial_agreement

PUBLISHED = published_table("correlations")


def test_the_paper_agrees_with_itself():
    found = agreement(PUBLISHED.drop(columns="arrows"), PUBLISHED)
    assert found.pop("n") == 216
    assert found.pop("mean_absolute_difference") == 0
    assert list(found.values()) == pytest.approx([1.0] * 4)


def test_trivial_guesses_reach_what_is_known():
    found = trivial_agreement(PUBLISHED)
    assert found["mean_absolute_difference"] == pytest.approx(0.083, abs=0.0005)
    assert found["direction"] == pytest.approx(0.75, abs=0.005)
    assert found["marked_direction"] == pytest.approx(0.84, abs=0.005)


def test_turned_correlations_have_the_other_directions():
    turned = PUBLISHED.assign(correlation=-PUBLISHED["correlation"])
    found = agreement(turned, PUBLISHED)
    assert found["spearman"] == pytest.approx(-1)
    assert found["marked_direction"] == 0


def test_own_agreement_is_the_mean_over_pairs_and_missing_for_one():
    noisy = PUBLISHED.assign(correlation=PUBLISHED["correlation"] + 0.1)
    both = pd.concat([PUBLISHED.assign(repeat=0), noisy.assign(repeat=1)])
    assert own_agreement(both)["mean_absolute_difference"] == pytest.approx(0.1)
    assert np.isnan(own_agreement(PUBLISHED.assign(repeat=0))["spearman"])


def test_nothing_in_common_cannot_be_compared():
    found = agreement(PUBLISHED.assign(dataset="iris"), PUBLISHED)
    assert found["n"] == 0
    assert np.isnan(found["spearman"])


CELLS = [(dataset, candidate) for dataset in ("a", "b", "c") for candidate in ("HP", "SE", "TG")]


def correlations(values, arrows=("",) * 9):
    """Return HP, SE and TG on three data sets, in this order."""
    return pd.DataFrame(
        {
            "metric": "exact",
            "dataset": [dataset for dataset, _ in CELLS],
            "classifier": "net",
            "candidate": [candidate for _, candidate in CELLS],
            "correlation": values,
            "arrows": arrows,
        }
    )


PUBLISHED_VALUES = [0.2, 0.3, 0.1, 0.4, 0.6, 0.3, 0.5, 0.55, 0.35]
OUR_VALUES = [0.2, 0.1, 0.1, 0.5, 0.6, 0.7, 0.4, 0.52, 0.38]
ARROWS = ["", "++", "-", "", "+++", "--", "", "+", "---"]
REFERENCE = correlations(PUBLISHED_VALUES, ARROWS)


def shares_of_directions(ours, reference, arrows):
    """Loop over the cells: is a candidate on the same side of HP, all of them and the marked."""
    same, marked = [], []
    for i, (dataset, candidate) in enumerate(CELLS):
        if candidate == "HP":
            continue
        baseline = CELLS.index((dataset, "HP"))
        agrees = oracles.sign(ours[i] - ours[baseline]) == oracles.sign(
            reference[i] - reference[baseline]
        )
        same.append(agrees)
        if len(arrows[i]) >= 2:
            marked.append(agrees)
    return sum(same) / len(same), sum(marked) / len(marked)


def test_agreement_of_nine_correlations():
    found = agreement(correlations(OUR_VALUES).drop(columns="arrows"), REFERENCE)
    gaps = [abs(x - y) for x, y in zip(OUR_VALUES, PUBLISHED_VALUES, strict=True)]
    assert found["n"] == 9
    assert found["mean_absolute_difference"] == pytest.approx(sum(gaps) / 9)
    assert found["pearson"] == pytest.approx(oracles.pearson_r(OUR_VALUES, PUBLISHED_VALUES))
    assert found["spearman"] == pytest.approx(oracles.spearman(OUR_VALUES, PUBLISHED_VALUES))
    expected = shares_of_directions(OUR_VALUES, PUBLISHED_VALUES, ARROWS)
    assert (found["direction"], found["marked_direction"]) == expected == (4 / 6, 2 / 4)


def test_repeats_are_averaged_before_they_are_compared():
    up = correlations([value + 0.02 for value in OUR_VALUES]).assign(repeat=0)
    down = correlations([value - 0.02 for value in OUR_VALUES]).assign(repeat=1)
    found = agreement(pd.concat([up, down]).drop(columns="arrows"), REFERENCE)
    gaps = [abs(x - y) for x, y in zip(OUR_VALUES, PUBLISHED_VALUES, strict=True)]
    assert found["mean_absolute_difference"] == pytest.approx(sum(gaps) / 9)


def test_two_cells_can_be_compared_and_one_cannot():
    ours = correlations(OUR_VALUES).drop(columns="arrows")
    two = agreement(ours[:2], REFERENCE)
    assert (two["n"], two["mean_absolute_difference"]) == (2, pytest.approx(0.1))
    one = agreement(ours[:1], REFERENCE)
    assert one["n"] == 1
    assert np.isnan(one["mean_absolute_difference"])
    missing = ours.assign(correlation=[0.2, 0.1, *[np.nan] * 7])
    assert agreement(missing, REFERENCE)["n"] == 2


def test_correlations_that_do_not_vary_have_no_correlation():
    found = agreement(correlations([0.3] * 9).drop(columns="arrows"), REFERENCE)
    assert np.isnan(found["spearman"])
    assert np.isnan(found["pearson"])
    assert found["direction"] == 0
    turned = agreement(REFERENCE.drop(columns="arrows"), correlations([0.3] * 9))
    assert np.isnan(turned["spearman"])
    assert np.isnan(turned["marked_direction"])


def test_the_guess_without_data_is_the_median_and_the_expected_signs():
    found = trivial_agreement(REFERENCE)
    gaps = [abs(value - 0.35) for value in PUBLISHED_VALUES]  # the fifth of nine
    assert found["n"] == 9
    assert found["mean_absolute_difference"] == pytest.approx(sum(gaps) / 9)
    assert found["direction"] == found["marked_direction"] == 1  # SE above HP, TG below, always
    wrong = correlations([0.3, 0.2, 0.1, *PUBLISHED_VALUES[3:]], ARROWS)
    found = trivial_agreement(wrong)
    assert (found["direction"], found["marked_direction"]) == (5 / 6, 3 / 4)


def test_own_agreement_is_the_mean_over_both_orders():
    values = {0: OUR_VALUES, 1: PUBLISHED_VALUES, 2: PUBLISHED_VALUES[::-1]}
    arrows = {0: [""] * 9, 1: ARROWS, 2: ["+++"] * 9}
    tables = [correlations(values[r], arrows[r]).assign(repeat=r) for r in values]
    found = own_agreement(pd.concat(tables))
    pairs = [
        agreement(tables[one], tables[other].drop(columns="repeat"))
        for one in values
        for other in values
        if one != other
    ]
    for name in ("mean_absolute_difference", "direction"):
        assert found[name] == pytest.approx(sum(pair[name] for pair in pairs) / 6)
    assert np.isnan(found["marked_direction"])  # nothing is marked in the first repeat
