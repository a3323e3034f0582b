"""Reliability tables and acceptance curves against loops."""

import numpy as np
import oracles_estimation as oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import labelsure as ls
from labelsure.errors import InputError

shares = st.integers(0, 20).map(lambda k: k / 20)
pairs = st.lists(st.tuples(shares, shares), min_size=1, max_size=40)


@given(pairs, st.sampled_from([1, 2, 5, 10]))
def test_calibration_error_is_that_of_the_loop(pairs, bins):
    estimated, accuracy = zip(*pairs, strict=True)
    edges = [round(b / bins, 12) for b in range(bins + 1)]
    result = ls.reliability(estimated, accuracy, bins)
    expected = oracles.calibration_error(estimated, accuracy, edges)
    assert result.expected_calibration_error == pytest.approx(expected, abs=1e-12)
    assert result.to_frame()["n_samples"].sum() == len(pairs)
    assert ls.reliability(estimated, accuracy, edges).to_frame().equals(result.to_frame())


@given(pairs)
def test_intervals_hold_their_mean(pairs):
    estimated, accuracy = zip(*pairs, strict=True)
    table = ls.reliability(estimated, accuracy, 4).to_frame().dropna()
    assert (table["accuracy_low"] <= table["accuracy"] + 1e-12).all()
    assert (table["accuracy_high"] >= table["accuracy"] - 1e-12).all()


def test_an_edge_belongs_to_the_interval_below_it():
    table = ls.reliability([0.0, 0.3, 0.30001, 1.0], [0, 0, 0, 0], 10).to_frame()
    assert table["n_samples"].tolist() == [1, 0, 1, 1, 0, 0, 0, 0, 0, 1]


def test_binary_intervals_are_about_wilsons():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        y = (rng.uniform(size=80) < 0.9).astype(float)
        row = ls.reliability(np.full(80, 0.9), y, 1).to_frame().iloc[0]
        covered += row["accuracy_low"] <= 0.9 <= row["accuracy_high"]
    assert binom.ppf(0.001, 300, 0.95) <= covered <= binom.ppf(0.999, 300, 0.96)


@given(pairs)
def test_accept_curve_is_that_of_the_loop(pairs):
    score, accuracy = zip(*pairs, strict=True)
    curve = ls.accept_curve(score, accuracy)
    expected = np.array(oracles.accept_curve(score, accuracy))
    got = curve.to_frame()[["threshold", "n_accepted", "accuracy", "spread", "areas"]].to_numpy()
    np.testing.assert_allclose(got, expected, atol=1e-7)  # the spread is the root of a difference
    np.testing.assert_allclose(got[:, [0, 1, 2, 4]], expected[:, [0, 1, 2, 4]], atol=1e-12)
    np.testing.assert_allclose(curve.share, got[:, 1] / len(pairs))
    assert curve.area == curve.areas[-1]


@given(pairs, st.sampled_from([(0.9, 1.6448536269514722), (0.95, 1.959963984540054)]))
def test_intervals_are_those_of_the_loop(pairs, level_and_z):
    level, z = level_and_z
    score, accuracy = zip(*pairs, strict=True)
    low, high = ls.accept_curve(score, accuracy).interval(level)
    for i, t in enumerate(sorted(set(score), reverse=True)):
        accepted = [a for s, a in pairs if s >= t]
        assert (low[i], high[i]) == pytest.approx(oracles.wilson(accepted, z), abs=1e-7)
    row = ls.reliability(score, accuracy, bins=1, level=level).to_frame().iloc[0]
    expected = oracles.wilson(accuracy, z)
    assert (row["accuracy_low"], row["accuracy_high"]) == pytest.approx(expected, abs=1e-7)


@given(pairs, st.randoms(use_true_random=False))
def test_accept_curve_does_not_depend_on_the_order_of_rows(pairs, random):
    shuffled = random.sample(pairs, len(pairs))
    first, second = (ls.accept_curve(*zip(*p, strict=True)).to_frame() for p in (pairs, shuffled))
    np.testing.assert_allclose(first, second, atol=1e-7)


def test_no_rows_at_all():
    curve = ls.accept_curve([], [])
    assert len(curve.to_frame()) == 0
    assert np.isnan(curve.area)
    assert [len(ends) for ends in curve.interval()] == [0, 0]
    assert ls.reliability([], []).expected_calibration_error == 0


def test_messages():
    with pytest.raises(InputError, match="`bins`"):
        ls.reliability([0.5], [1], 0)
    with pytest.raises(InputError, match="`bins`"):
        ls.reliability([0.5], [1], [0, 0.7, 0.5, 1])
    with pytest.raises(InputError, match="`estimated`"):
        ls.reliability([1.5], [1])
    with pytest.raises(InputError, match="`estimated`"):
        ls.reliability([0.5, 0.5], [1])
    with pytest.raises(InputError, match="`accuracy`"):
        ls.reliability([0.5], [[1]])
    with pytest.raises(InputError, match="`accuracy`"):
        ls.accept_curve([3], [-1])
    with pytest.raises(InputError, match="`accuracy`"):
        ls.accept_curve([3], [1, 1])
    with pytest.raises(InputError, match="`score`"):
        ls.accept_curve([3, np.nan], [1, 1])
    with pytest.raises(InputError, match="`level`"):
        ls.accept_curve([3], [1]).interval(95)
    with pytest.raises(InputError, match="`score`"):
        ls.accept_curve([[3]], [1])
    for level in (0, 1, 1.5, "0.9"):
        with pytest.raises(InputError, match=f"`level`.*got {level!r}"):
            ls.reliability([0.5], [1], level=level)
