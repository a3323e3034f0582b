"""The seven candidates: formulas, the paper's two conditions, orders and bounds."""

from dataclasses import replace

import numpy as np
import oracles
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import KINDS, batches, probability_rows

import labelsure as ls
from labelsure.distributions.candidates import (
    CANDIDATES,
    PAPER_CANDIDATES,
    Candidate,
    confidence_of_profile,
    group_by_rank,
)

SEVEN = ["HP", "TG", "SE", "CE", "ME", "GI", "CS"]
EIGHT = [*SEVEN, "ESS"]
FIELDS = ("log_top", "log_runner_up", "entropy", "log_collision")


def profile_of(P):
    """The profile of rows over any number of outcomes, K = 3 included."""
    rows = [oracles.profile(row) for row in P]
    return ls.distributions.Profile.from_values(*np.transpose(rows), n_bits=np.log2(len(P[0])))


def test_the_names():
    assert list(PAPER_CANDIDATES) == SEVEN
    assert list(CANDIDATES) == EIGHT
    assert list(ls.confidence(ls.IndependentLabels([[0.5]]))) == SEVEN
    assert CANDIDATES["SE"].title == "Shannon Entropy"


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_candidates(kind, data):
    batch = data.draw(batches(kind))
    table = ls.confidence(batch.dist, EIGHT)
    assert list(table) == EIGHT
    assert len(table) == len(batch)
    for name in EIGHT:
        expected = [oracles.candidates(P)[name] for P in batch.P]
        # float32 rows may sum to slightly more than one, where a candidate stops at 0 or 1.
        assert_allclose(
            table[name], expected, rtol=1e-12, atol=1e-6 if kind == "dense32" else 1e-13
        )
    assert ((table[SEVEN] >= 0) & (table[SEVEN] <= 1)).all(axis=None)
    assert (table["GI"] == table["CS"]).all()


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_statistics_before_they_are_scaled(kind, data):
    batch = data.draw(batches(kind))
    table = ls.confidence(batch.dist, EIGHT, raw=True)
    assert list(table) == EIGHT
    for name in EIGHT:
        expected = [oracles.statistics(P)[name] for P in batch.P]
        # Near 0 or 1, 1 - S and K S - 1 cancel.
        atol = 1e-5 if kind == "dense32" else 1e-12
        assert_allclose(table[name], expected, rtol=1e-11, atol=atol, err_msg=name)


def test_statistics_of_many_labels_stay_finite_but_for_chi_squared():
    table = ls.confidence(ls.IndependentLabels([[0.5] * 2000]), raw=True)
    assert_allclose(table[["SE", "CE", "ME"]], [[2000 * np.log(2)] * 3], rtol=1e-12)
    assert table["GI"].item() == 1
    assert table["CS"].item() == pytest.approx(0, abs=1e-9)
    assert np.isinf(
        ls.confidence(ls.IndependentLabels([[1.0] * 2000]), "CS", raw=True)["CS"].item()
    )


@given(st.integers(2, 9).flatmap(probability_rows))
def test_any_number_of_outcomes(P):
    table = confidence_of_profile(profile_of([P]), EIGHT)
    for name, expected in oracles.candidates(P).items():
        assert_allclose(table[name], expected, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("L", [1, 2, 3, 6, 10])
def test_zero_on_uniform_and_one_on_a_point_mass(L):
    P = np.zeros((2, 2**L))
    P[0] = 2.0**-L
    P[1, -1] = 1
    kinds = [
        ls.DenseDistribution(P),
        ls.IndependentLabels([[0.5] * L, [1.0] * L]),
        ls.LabelsetTable([oracles.all_labelsets(L)] * 2, P),
    ]
    for dist in kinds:
        table = ls.confidence(dist, EIGHT)
        assert_allclose(table.loc[0, SEVEN].astype(float), 0, atol=1e-13)
        assert_array_equal(table.loc[1, SEVEN].astype(float), 1)
        assert_allclose(table["ESS"], [2**L, 1])


def test_no_certainty_is_lost_in_thousands_of_labels():
    dist = ls.IndependentLabels([[0.5] * 5000, [1.0] * 5000, [0.9] * 5000])
    table = ls.confidence(dist, EIGHT)
    assert_allclose(table.loc[0, SEVEN].astype(float), 0, atol=1e-12)
    assert_array_equal(table.loc[1, SEVEN].astype(float), 1)
    assert table.loc[0, "ESS"] == np.inf
    assert table.loc[2, "ME"] == pytest.approx(1 + np.log(0.9) / np.log(2))
    assert table.loc[2, "CE"] == pytest.approx(1 + np.log(0.82) / np.log(2))


def never_reversed(a, b):
    """No pair has a_i < a_j and b_i > b_j: sorted by a, then b, the b never fall."""
    order = np.lexsort((b, a))
    a, b = np.asarray(a)[order], np.asarray(b)[order]
    reached = np.maximum.accumulate(b)
    # Among equal a the b may be anything, so each group is compared with what came before it.
    first = np.searchsorted(a, a, side="left")
    return (b >= np.where(first > 0, reached[first - 1], -np.inf)).all()


def test_the_check_of_reversals_itself():
    assert never_reversed([1, 2, 2, 3], [1, 3, 2, 3])
    assert never_reversed([2, 1], [5, 5])
    assert not never_reversed([1, 2], [2, 1])
    assert not never_reversed([1, 1, 2], [0, 2, 1])


def neighbours(centre, n_ulps=60):
    """Numbers a few ulps around each other."""
    values = [centre]
    for _ in range(n_ulps):
        values.append(np.nextafter(values[-1], 1.0))
    return np.array(values)


@pytest.mark.parametrize("n_labels", [1, 2, 6, 14, 40, 63])
@pytest.mark.parametrize("centre", [0.51, 0.7, 0.7 + 1e-10, 0.9, 0.999999, 1 - 1e-14])
def test_orders_hold_within_a_few_ulps(n_labels, centre):
    close = neighbours(centre)
    close = close[close <= 1]
    n = len(close)
    profile = ls.distributions.Profile.from_values(close, np.zeros(n), np.zeros(n), close, n_labels)
    table = confidence_of_profile(profile, EIGHT)
    for a, b in [("HP", "ME"), ("CE", "GI"), ("CE", "CS"), ("GI", "CS")]:
        assert never_reversed(table[a], table[b])
        assert never_reversed(table[b], table[a])
    assert never_reversed(-table["ESS"], table["GI"])
    for name, key in [("HP", "log_top"), ("ME", "log_top"), ("CE", "log_collision")]:
        assert never_reversed(getattr(profile, key), table[name])


@pytest.mark.parametrize(
    "L",
    [1, 3, 8, 60, *(pytest.param(L, marks=pytest.mark.jit_only) for L in (1000, 5000))],
)
def test_orders_hold_on_random_profiles(L):
    rng = np.random.default_rng(L)
    shape = (300, L)
    sharpness = 10.0 ** rng.uniform(-9, 0, (300, 1))
    p = np.where(rng.random(shape) < 0.5, 1, 0) + sharpness * (0.5 - rng.random(shape))
    table = ls.confidence(ls.IndependentLabels(np.abs(np.where(p > 1, 2 - p, p))))
    assert table["ME"].nunique() > 100
    for a, b in [("HP", "ME"), ("CE", "GI"), ("CE", "CS"), ("GI", "CS")]:
        assert never_reversed(table[a], table[b])


@pytest.mark.jit_only
def test_orders_hold_where_everything_underflows():
    rng = np.random.default_rng(0)
    dist = ls.IndependentLabels(0.3 + 0.2 * rng.random((50, 5000)))
    table = ls.confidence(dist)
    assert (table["HP"] == 0).all()
    assert table["ME"].nunique() == 50
    assert never_reversed(table["HP"], table["ME"])
    assert never_reversed(table["GI"], table["CE"])


def test_one_candidate_and_a_few():
    dist = ls.IndependentLabels([[0.9, 0.2], [0.5, 0.5]])
    assert list(ls.confidence(dist, "SE")) == ["SE"]
    assert list(ls.confidence(dist, ("ME", "HP"))) == ["ME", "HP"]
    assert ls.confidence(dist, []).shape == (2, 0)


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_bounds_equal_the_value_where_it_is_exact(kind, data):
    dist = data.draw(batches(kind)).dist
    table = ls.confidence(dist, EIGHT, bounds=True)
    assert list(table) == [f"{name}{end}" for name in EIGHT for end in ("", "_low", "_high")]
    for name in EIGHT:
        assert_array_equal(table[f"{name}_low"], table[name])
        assert_array_equal(table[f"{name}_high"], table[name])


def with_bounds(profile, slack):
    """Enclose every field by `slack` on both sides, a probability never above one."""
    ends = [
        replace(profile, **{name: getattr(profile, name) + sign * slack for name in FIELDS})
        for sign in (-1, 1)
    ]
    return replace(profile, bounds=tuple(ends), method=np.full(len(profile), "guessed"))


@pytest.mark.parametrize("raw", [False, True])
@given(st.lists(probability_rows(8), min_size=1, max_size=4), st.floats(0, 0.5), st.data())
def test_bounds_hold_for_everything_between(raw, P, slack, data):
    profile = with_bounds(profile_of(P), slack)
    table = confidence_of_profile(profile, EIGHT, bounds=True, raw=raw)
    inside = {
        name: getattr(profile, name) + slack * data.draw(st.floats(-1, 1), label=name)
        for name in FIELDS
    }
    # Each candidate of any profile within the bounds is within its own bounds.
    between = confidence_of_profile(replace(profile, bounds=None, **inside), EIGHT, raw=raw)
    for name in EIGHT:
        for values in (table[name], between[name]):
            assert (table[f"{name}_low"] <= values + 1e-15).all(), name
            assert (values <= table[f"{name}_high"] + 1e-15 * np.abs(values)).all(), name


def test_bounds_of_the_top_gap_cross_the_fields():
    """The gap is smallest for the lowest top and the highest runner-up, and never below 0."""

    def profile(top, runner_up):
        return ls.distributions.Profile.from_values([top], [runner_up], [1.0], [0.3], n_bits=3)

    bounds = (profile(0.4, 0.1), profile(0.6, 0.3))
    table = confidence_of_profile(replace(profile(0.5, 0.2), bounds=bounds), ["TG"], bounds=True)
    assert_allclose(table.to_numpy(), [[0.3, 0.1, 0.5]])
    bounds = (profile(0.4, 0.1), profile(0.6, 0.45))
    table = confidence_of_profile(replace(profile(0.5, 0.2), bounds=bounds), ["TG"], bounds=True)
    assert_allclose(table.to_numpy(), [[0.3, 0.0, 0.5]])


def test_the_profile_as_a_frame():
    profile = ls.DenseDistribution([[0.5, 0.5], [1.0, 0.0]]).profile()
    frame = profile.to_frame()
    logs = ["log_top", "log_runner_up", "log_collision"]
    assert list(frame) == ["top", "runner_up", "entropy", "collision", *logs, "method"]
    assert_allclose(frame["top"], [0.5, 1])
    assert_allclose(frame["runner_up"], [0.5, 0])
    assert_allclose(frame["entropy"], [np.log(2), 0])
    assert_allclose(frame["collision"], [0.5, 1])
    assert_array_equal(frame["log_runner_up"], [np.log(0.5), -np.inf])
    assert frame["method"].tolist() == ["exact", "exact"]
    assert with_bounds(profile, 0.1).to_frame()["method"].tolist() == ["guessed", "guessed"]


@pytest.mark.parametrize("name", EIGHT)
@given(data=st.data())
def test_the_rank_key_orders_as_the_values_do(name, data):
    size = data.draw(st.sampled_from([2, 4, 8]))
    P = data.draw(st.lists(probability_rows(size), min_size=2, max_size=6))
    profile = profile_of(P)
    values, keys = CANDIDATES[name].function(profile), CANDIDATES[name].ranks(profile)
    order = np.argsort(keys, kind="stable")
    assert (np.diff(values[order]) >= -1e-9 * np.maximum(1, np.abs(values[order][1:]))).all()


def test_candidates_that_share_a_rank_key_rank_alike():
    assert group_by_rank(EIGHT) == {
        "HP": ["HP", "ME"],
        "TG": ["TG"],
        "SE": ["SE"],
        "CE": ["CE", "GI", "CS"],
        "ESS": ["ESS"],
    }


def test_a_candidate_without_a_rank_key_ranks_by_its_values():
    mine = Candidate("MINE", "Mine", lambda profile: profile.top**2)
    profile = profile_of([[0.5, 0.5], [0.9, 0.1]])
    assert_array_equal(mine.ranks(profile), profile.top**2)
    assert not mine.ranks_like(CANDIDATES["HP"])


def test_the_table_has_the_index_of_the_distribution():
    index = pd.Index(["b", "a"], name="id")
    dist = ls.IndependentLabels([[0.9, 0.2], [0.5, 0.5]])
    found = ls.confidence(dist._with_index(index), ["HP"], bounds=True)
    assert found.index.equals(index)
    assert found.index.name == "id"
    np.testing.assert_array_equal(found, ls.confidence(dist, ["HP"], bounds=True))
    assert ls.confidence(dist).index.tolist() == [0, 1]
