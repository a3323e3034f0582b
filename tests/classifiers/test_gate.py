"""What all recalibrations share: the gate, names, what is left out, and what they say."""

import re

import numpy as np
import oracles_recalibration as oracles
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import t
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import labelsure as ls
from labelsure.classifiers.recalibration._base import Part, mean_interval
from labelsure.classifiers.recalibration._recalibrated_classifier import fit_recalibration

KINDS = (ls.TemperatureScaling, ls.LabelwiseCalibration)
for_each_kind = pytest.mark.parametrize("kind", KINDS)


def labelled(n_samples=200, factor=2.0, seed=0, names=None):
    """Independent labels, too sure by a factor, with their truth."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n_samples, 3))
    p, too_sure = (1 / (1 + np.exp(-scale * logits)) for scale in (1.0, factor))
    return ls.IndependentLabels(too_sure, names), (rng.random(p.shape) < p).astype(int)


def gains_by_hand(kind, dist, Y):
    """The same folds, each by a recalibration of its own that is kept whatever it gains."""
    fold = np.random.default_rng(0).permutation(np.arange(len(Y)) % 5)
    gains = np.empty(len(Y))
    for k in range(5):
        fitted = kind(gate=False).fit(dist[fold != k], Y[fold != k])
        held_out = fold == k
        after = fitted.transform(dist[held_out]).log_prob(Y[held_out])
        gains[held_out] = after - dist[held_out].log_prob(Y[held_out])
    return gains.tolist()


@for_each_kind
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_the_gain_is_that_of_instances_held_out(kind, factor):
    dist, Y = labelled(factor=factor)
    found = kind().fit(dist, Y)
    expected = oracles.paired_interval(gains_by_hand(kind, dist, Y), t.ppf(0.975, 199))
    assert_allclose((found.gain_, found.gain_low_, found.gain_high_), expected, atol=1e-10)
    assert found.is_kept_ is bool(expected[1] > 0)
    assert found.is_kept_ is (factor == 2.0)


@for_each_kind
def test_given_and_chosen_recalibrations_pass_the_same_gate(kind):
    """Small gains on few rows, of which some are above one standard error and not above two."""
    decided = set()
    for seed in range(30):
        dist, Y = labelled(60, 1.4 + seed % 2, seed)
        given = kind().fit(dist, Y)
        assert given.is_kept_ is bool(given.gain_low_ > 0)
        if kind is ls.LabelwiseCalibration:
            chosen = fit_recalibration("auto", [dist], [Y])
            assert (type(chosen), chosen.is_kept_) == (kind, given.is_kept_)
        error = (given.gain_ - given.gain_low_) / t.ppf(0.975, 59)
        decided.add((given.is_kept_, bool(given.gain_ > error)))
    assert {(True, True), (False, True)} <= decided


@for_each_kind
def test_what_does_not_help_changes_nothing(kind):
    dist, Y = labelled(factor=1.0)
    found = kind().fit(dist, Y)
    assert not found.is_kept_
    assert found.transform(dist) is dist
    assert getattr(found, "temperature_", 1.0) == 1.0
    without_gate = kind(gate=False).fit(dist, Y)
    assert without_gate.is_kept_
    assert (without_gate.transform(dist).marginals() != dist.marginals()).any()
    assert without_gate.gain_ == found.gain_


def test_a_model_that_is_right_is_left_alone():
    """The interval is above 0 by chance in 2.5 % of the cases at most: 8 of 100 would be 0.5 %."""
    kind = ls.TemperatureScaling
    kept = [kind().fit(*labelled(100, 1.0, seed)).is_kept_ for seed in range(100)]
    assert sum(kept) < 8


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_is_too_sure_is_mended(kind):
    kept = [kind().fit(*labelled(300, 2.5, seed)).is_kept_ for seed in range(20)]
    assert sum(kept) >= 19


@for_each_kind
def test_several_batches_teach_what_one_does(kind):
    dist, Y = labelled()
    one = kind().fit(dist, Y)
    several = kind().fit_parts([dist[:50], dist[50:60], dist[60:]], [Y[:50], Y[50:60], Y[60:]])
    assert several.n_samples_ == one.n_samples_ == 200
    assert several.gain_ == pytest.approx(one.gain_, abs=1e-10)
    new = labelled(seed=9)[0]
    assert_allclose(several.transform(new).marginals(), one.transform(new).marginals(), atol=1e-9)


@for_each_kind
def test_labels_are_aligned_by_name_or_refused(kind):
    dist, Y = labelled(names=["a", "b", "c"])
    by_position = kind().fit(dist, Y)
    frame = pd.DataFrame(Y, columns=["a", "b", "c"])[["c", "a", "b"]]
    assert kind().fit(dist, frame).gain_ == by_position.gain_
    with pytest.raises(ls.InputError, match="d"):
        kind().fit(dist, frame.rename(columns={"a": "d"}))
    message = (
        f"`dist` must have the labels of the fitted {kind.__name__} in their order, got 'b' "
        "instead of 'a' in column 0."
    )
    other = ls.IndependentLabels(dist.marginals(), ["b", "a", "c"])
    with pytest.raises(ls.InputError, match=re.escape(message)):
        by_position.transform(other)
    message = "the labels of the first batch in their order, got 'b' instead of 'a'"
    with pytest.raises(ls.InputError, match=re.escape(message)):
        kind().fit_parts([dist, other], [Y, Y])
    wide = ls.IndependentLabels(np.full((9, 8), 0.3))
    of_many = kind(gate=True).fit(wide, wide.sample(1, random_state=0)[:, 0])
    with pytest.raises(ls.InputError, match=r"the 8 labels of the fitted .*, got 3"):
        of_many.transform(dist)


@for_each_kind
def test_rows_keep_their_names(kind):
    dist, Y = labelled()
    found = kind().fit(dist, Y)
    assert list(found.transform(dist[:2]._with_index(pd.Index(["x", "y"]))).index) == ["x", "y"]


def test_impossible_truths_are_left_out_and_said():
    rng = np.random.default_rng(0)
    drawn = rng.random((80, 6, 3)) < rng.random((80, 1, 3))
    votes = ls.LabelsetTable.from_samples(drawn.astype(int))
    Y = np.where(rng.random((80, 1)) < 0.6, drawn[:, 0], rng.integers(2, size=(80, 3)))
    impossible = np.isinf(votes.log_prob(Y))
    n_impossible = int(impossible.sum())
    assert 10 < n_impossible < 70
    message = (
        f"The true labelset of {n_impossible} of 80 instances has probability 0. These are left "
        "out, because no recalibration changes that."
    )
    with pytest.warns(UserWarning, match=re.escape(message)):
        found = ls.TemperatureScaling().fit(votes, Y)
    assert (found.n_impossible_, found.n_samples_) == (n_impossible, 80 - n_impossible)
    assert f"n = {80 - n_impossible}, {n_impossible} left out)." in str(found)
    alone = ls.TemperatureScaling().fit(votes[~impossible], Y[~impossible])
    assert alone.found_temperature_ == pytest.approx(found.found_temperature_)
    assert "left out" not in str(alone)


@for_each_kind
def test_too_few_instances(kind):
    dist, Y = labelled(4)
    message = "`dist` must have at least 5 instances whose true labelset is possible, got 4."
    with pytest.raises(ls.InputError, match=re.escape(message)):
        kind().fit(dist, Y)
    with pytest.raises(ls.InputError, match="`dists`"):
        kind().fit_parts([], [])


@for_each_kind
def test_what_is_wrong(kind):
    dist, Y = labelled()
    with pytest.raises(ls.InputError, match="`gate`"):
        kind(gate="yes").fit(dist, Y)
    with pytest.raises(ls.InputError, match="`dist`"):
        kind().fit(dist.marginals(), Y)
    with pytest.raises(NotFittedError):
        kind().transform(dist)
    with pytest.raises(NotFittedError):
        str(kind())
    with pytest.raises(ls.InputError, match="`dist`"):
        kind().fit(dist, Y).transform(dist.marginals())


def test_what_they_say():
    dist, Y = labelled()
    found = ls.TemperatureScaling().fit(dist, Y)
    assert str(found) == (
        f"Temperature scaling, temperature {found.temperature_:.4g}: kept. Mean gain in the "
        f"truth's log-probability on held-out rows: {found.gain_:+.4f} (95% interval "
        f"{found.gain_low_:+.4f} to {found.gain_high_:+.4f}, n = 200)."
    )
    right, Y = labelled(factor=1.0)
    titles = ("Temperature scaling, temp", "A calibration of each label:")
    for kind, title in zip(KINDS, titles, strict=True):
        found = kind().fit(right, Y)
        assert str(found).startswith(title)
        assert ": not kept, distributions stay unchanged. Mean gain" in str(found)
        assert ": kept, whatever it gains. Mean gain" in str(kind(gate=False).fit(right, Y))


@for_each_kind
def test_they_can_be_cloned(kind):
    model = kind(gate=False)
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == f"{kind.__name__}(gate=False)"


WEIGHED = [
    ls.TemperatureScaling(),
    ls.LabelwiseCalibration(),
    ls.classifiers.ChainDependence(),
]


@pytest.mark.parametrize("kind", WEIGHED, ids=repr)
def test_weights_are_repeated_instances(kind):
    """What is learned from all; folds hold other instances when some are repeated."""
    rng = np.random.default_rng(11)
    p, weights = rng.uniform(0.1, 0.9, (60, 3)), rng.integers(0, 4, 60)
    uniforms = np.where(rng.random((60, 1)) < 0.4, rng.random((60, 1)), rng.random((60, 3)))
    truth = (uniforms < p**2).astype(np.int8)
    rows = np.repeat(np.arange(60), weights)
    repeated = kind._fit_parameters([Part(ls.IndependentLabels(p[rows]), truth[rows])])
    used = weights > 0
    part = Part(ls.IndependentLabels(p[used]), truth[used], weights[used].astype(float))
    found, expected = (
        kind._apply(part.dist, learned).probabilities()
        for learned in (kind._fit_parameters([part]), repeated)
    )
    assert_allclose(found, expected, atol=1e-3)
    without = kind._fit_parameters([part._replace(weights=None)])
    assert np.abs(kind._apply(part.dist, without).probabilities() - expected).max() > 2e-3


def test_the_gain_of_weighted_instances():
    rng = np.random.default_rng(12)
    values, weights = rng.normal(size=50), rng.uniform(0.5, 2, 50)
    mean, low, high = mean_interval(values, weights)
    assert mean == pytest.approx(sum(values * weights) / sum(weights))
    assert high - mean == pytest.approx(mean - low)
    assert_allclose(mean_interval(values, np.full(50, 3.0)), mean_interval(values))
    spread = sum((w * (v - mean)) ** 2 for v, w in zip(values, weights, strict=True))
    error = (50 / 49 * spread) ** 0.5 / sum(weights)
    assert (high - mean) / error == pytest.approx(t.ppf(0.975, 49))


def test_fitting_with_weights():
    rng = np.random.default_rng(13)
    p = rng.uniform(0.2, 0.8, (90, 2))
    truth = (rng.random((90, 2)) < p).astype(int)
    dist, weights = ls.IndependentLabels(p), rng.uniform(0, 2, 90)
    weights[:30] = 0
    whole = ls.LabelwiseCalibration(gate=False).fit(dist, truth, weights)
    there = ls.LabelwiseCalibration(gate=False).fit(dist[30:], truth[30:], weights[30:])
    assert_array_equal(whole.curves_, there.curves_)
    assert whole.n_samples_ == 60
    assert whole.gain_ == there.gain_
    parts = ls.LabelwiseCalibration(gate=False).fit_parts(
        [dist[:50], dist[50:]], [truth[:50], truth[50:]], [weights[:50], weights[50:]]
    )
    assert_allclose(parts.curves_, whole.curves_, rtol=1e-9)
    with pytest.raises(ls.InputError, match="sample_weight"):
        ls.TemperatureScaling().fit(dist, truth, weights[:3])


def test_the_gain_counts_instances_by_their_weight():
    dist, truth = labelled(60, factor=4.0)
    weights = np.random.default_rng(14).uniform(0.1, 3, 60)
    fitted = ls.LabelwiseCalibration(gate=False).fit(dist, truth, weights)
    fold = np.random.default_rng(0).permutation(np.arange(60) % 5)
    total = 0.0
    for k in range(5):
        mine, others = fold == k, fold != k
        learned = ls.LabelwiseCalibration(gate=False)
        learned.fit(dist[others], truth[others], weights[others])
        gains = learned.transform(dist[mine]).log_prob(truth[mine]) - dist[mine].log_prob(
            truth[mine]
        )
        total += (weights[mine] * gains).sum()
    assert fitted.gain_ == pytest.approx(total / weights.sum())
