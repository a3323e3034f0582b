"""`AccuracyEstimator` as people use it: sources of evidence, groups, models, messages, disk."""

import pickle

import numpy as np
import pandas as pd
import pytest
import skops.io
from simulated_population import random_dist, score_frame
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import labelsure as ls
from labelsure.errors import InputError, UnknownNameError
from labelsure.estimation._estimator import AccuracyEstimator

N = 400
METRICS = ("exact", "hamming", "jaccard", "f1")


@pytest.fixture(scope="module")
def dist():
    return random_dist(N)


@pytest.fixture(scope="module")
def Y(dist):
    return dist.sample(1, random_state=3)[:, 0]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("empty", [0.0, 0.3, 1.0])
def test_a_table_says_the_same_as_the_distribution(dist, Y, metric, empty):
    direct = AccuracyEstimator(metric, "full", empty=empty).fit(dist, Y)
    by_table = AccuracyEstimator(metric, "full", empty=empty).fit(score_frame(dist, Y))
    np.testing.assert_allclose(direct.predict(dist), by_table.predict(score_frame(dist)), rtol=1e-9)


def test_a_metric_of_ones_own(dist, Y):
    def precision(tp, fp, fn, tn):
        return tp / np.maximum(tp + fp, 1)

    estimator = AccuracyEstimator(precision).fit(dist, Y)
    actual = ls.accuracy(Y, dist.mode(), precision)
    assert abs(estimator.predict(dist).mean() - actual.mean()) < 0.01


def test_estimates_lie_in_the_unit_interval_and_have_the_right_mean(dist, Y):
    for metric in METRICS:
        estimator = AccuracyEstimator(metric).fit(dist, Y)
        estimated = estimator.predict(dist)
        assert ((estimated >= 0) & (estimated <= 1)).all()
        actual = ls.accuracy(Y, dist.mode(), metric)
        assert abs(estimated.mean() - actual.mean()) < 0.005


def test_other_decisions_than_the_mode(dist, Y):
    Y_pred = ls.decide(dist, "jaccard").labelsets
    estimator = AccuracyEstimator("jaccard").fit(dist, Y, Y_pred)
    actual = ls.accuracy(Y, Y_pred, "jaccard").mean()
    assert abs(estimator.predict(dist, Y_pred).mean() - actual) < 0.005


def test_rows_of_different_numbers_of_labels(dist, Y):
    small = random_dist(50, n_labels=3)
    pooled = pd.concat([score_frame(dist, Y), score_frame(small, small.mode())])
    estimator = AccuracyEstimator("exact", "mix").fit(pooled)
    np.testing.assert_allclose(estimator.predict(pooled)[N:], estimator.predict(small))


def test_plain_profile_columns_do(dist, Y):
    table = score_frame(dist, Y)
    plain = table.drop(columns=["log_top", "log_runner_up", "log_collision"])
    for features in ("mix", "full"):
        estimator = AccuracyEstimator("jaccard", features).fit(table)
        np.testing.assert_allclose(estimator.predict(plain), estimator.predict(table), rtol=1e-9)


def test_clone_pickle_and_skops(dist, Y, tmp_path):
    estimator = AccuracyEstimator("jaccard").fit(dist, Y)
    expected = estimator.predict(dist)
    again = clone(estimator)
    assert again.get_params() == estimator.get_params()
    assert not hasattr(again, "model_")
    restored = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(restored.predict(dist), expected)
    skops.io.dump(estimator, tmp_path / "estimator.skops")
    types = skops.io.get_untrusted_types(file=tmp_path / "estimator.skops")
    assert all(name.startswith("labelsure.") for name in types)
    loaded = skops.io.load(tmp_path / "estimator.skops", trusted=types)
    np.testing.assert_array_equal(loaded.predict(dist), expected)
    assert loaded.estimate(dist) == estimator.estimate(dist)


def test_the_same_seed_gives_the_same_fit(dist, Y):
    first, second = (AccuracyEstimator("exact").fit(dist, Y).predict(dist) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_larger_batch_has_a_narrower_interval(dist, Y):
    estimator = AccuracyEstimator("jaccard").fit(dist, Y)
    small, large = estimator.estimate(dist[:50]), estimator.estimate(dist)
    assert small.high - small.low > large.high - large.low
    wider = estimator.estimate(dist, level=0.99)
    assert wider.low < large.low
    assert wider.high > large.high
    assert wider.n_samples == N


# What is judged is what was predicted.


def test_an_estimator_of_given_decisions_wants_them_again(dist, Y):
    """It used to judge the mode instead, and said 0.649 where 0.666 was right."""
    Y_pred = ls.decide(dist, "jaccard").labelsets
    assert (Y_pred != dist.mode()).any()
    estimator = AccuracyEstimator("jaccard").fit(dist, Y, Y_pred)
    assert estimator.decision_ == "given"
    with fails(r"\(predictions given as `Y_pred`\), got the most probable labelsets"):
        estimator.predict(dist)
    actual = ls.accuracy(Y, Y_pred, "jaccard").mean()
    assert abs(estimator.predict(dist, Y_pred).mean() - actual) < 0.005


def test_an_estimator_of_the_mode_judges_nothing_else(dist, Y):
    estimator = AccuracyEstimator("jaccard", "full").fit(dist, Y)
    assert estimator.decision_ == "mode"
    np.testing.assert_array_equal(estimator.predict(dist, dist.mode()), estimator.predict(dist))
    other = ls.decide(dist, "jaccard").labelsets
    assert (other != dist.mode()).any()
    with fails(r"\(the most probable labelsets\), got predictions given"):
        estimator.predict(dist, other)


def test_a_table_says_how_its_decisions_were_made(dist, Y):
    best = ls.decide(dist, "jaccard").labelsets
    mode, given = score_frame(dist, Y), score_frame(dist, Y, best)
    estimator = AccuracyEstimator("jaccard").fit(mode)
    assert estimator.decision_ == "mode"
    with fails(r"\(the most probable labelsets\), got predictions given"):
        estimator.predict(given)
    with fails(r"most probable labelsets\), got predictions given"):
        estimator.predict(ls.ScoreTable(given))
    unknown = given.copy()
    unknown.attrs.clear()  # as a file gives it back: the table speaks for itself
    assert len(estimator.predict(unknown)) == N
    assert AccuracyEstimator("jaccard").fit(unknown).decision_ == "given"


# Names are compared.


def named(dist, index=None):
    new = ls.DenseDistribution(dist.probabilities(), ["ant", "bee", "cat", "dog"])
    return new._with_index(index)


def test_columns_in_another_order_are_put_in_order(dist, Y):
    """They used to be taken as they came: 0.397 instead of 0.643."""
    frame = pd.DataFrame(Y, columns=["ant", "bee", "cat", "dog"])
    expected = AccuracyEstimator("jaccard").fit(named(dist), Y)
    shuffled = AccuracyEstimator("jaccard").fit(named(dist), frame[["dog", "ant", "cat", "bee"]])
    np.testing.assert_array_equal(shuffled.predict(dist), expected.predict(dist))
    with fails("must be the labels of the distribution.*missing are 'bee'; unknown are 'bear'"):
        AccuracyEstimator("jaccard").fit(named(dist), frame.rename(columns={"bee": "bear"}))


def test_rows_in_another_order_are_put_in_order(dist, Y):
    index = pd.Index([f"r{i}" for i in range(N)])
    frame = pd.DataFrame(Y, columns=["ant", "bee", "cat", "dog"], index=index)
    rows = np.random.default_rng(0).permutation(N)
    expected = AccuracyEstimator("jaccard").fit(named(dist), Y)
    shuffled = AccuracyEstimator("jaccard").fit(named(dist, index), frame.iloc[rows])
    np.testing.assert_array_equal(shuffled.predict(dist), expected.predict(dist))
    with fails("rows of `Y_true` must be those of the distribution.*unknown are 'r399'"):
        AccuracyEstimator("jaccard").fit(named(dist, index)[:-1], frame.iloc[1:])


def test_values_with_an_index_are_compared_by_it(dist, Y):
    index = pd.Index([f"r{i}" for i in range(N)])
    estimator = AccuracyEstimator("jaccard").fit(dist, Y)
    estimated = pd.Series(estimator.predict(dist), index=index)
    actual = pd.Series(ls.accuracy(Y, dist.mode(), "jaccard"), index=index)
    shuffled = actual.sample(frac=1, random_state=0)
    expected = ls.reliability(estimated.to_numpy(), actual.to_numpy())
    found = ls.reliability(estimated, shuffled)
    assert found.expected_calibration_error == expected.expected_calibration_error
    pd.testing.assert_frame_equal(
        ls.accept_curve(estimated, shuffled).to_frame(),
        ls.accept_curve(estimated, actual).to_frame(),
    )
    policy = ls.AcceptPolicy(0.5).fit(estimated, shuffled)
    assert policy.threshold_ == ls.AcceptPolicy(0.5).fit(estimated, actual).threshold_
    with fails("rows of `accuracy` must be those of `estimated`"):
        ls.reliability(estimated, actual.rename({"r0": "other"}))


# Messages.


def fails(message, error=InputError):
    return pytest.raises(error, match=message)


def test_messages_of_what_was_asked_for(dist, Y):
    with fails("Unknown feature 'PH'.* Known: HP", UnknownNameError):
        AccuracyEstimator(features="PH").fit(dist, Y)
    with fails("`features` must name at least one"):
        AccuracyEstimator(features=()).fit(dist, Y)
    with fails(r"'always' must have values in \[0, 1\] to be estimated, got 2"):
        AccuracyEstimator(always, features="SE").fit(dist, Y)
    with fails("must be fitted first: call `fit", NotFittedError):
        AccuracyEstimator().predict(dist)
    with fails("`level`.*got 95"):
        AccuracyEstimator().fit(dist, Y).estimate(dist, level=95)
    with fails("A batch must hold at least one row"):
        AccuracyEstimator().fit(dist, Y).estimate(dist[:0])


def always(tp, fp, fn, tn):
    return np.full(tp.shape, 2.0)


def test_messages_of_what_came(dist, Y):
    table = score_frame(dist, Y)
    with fails("`dist` must be a LabelsetDistribution or a DataFrame.*got ndarray"):
        AccuracyEstimator().fit(dist.marginals(), Y)
    with fails("`Y_true` must be given to fit on a distribution"):
        AccuracyEstimator().fit(dist)
    with fails("`Y_true` must be None with a table"):
        AccuracyEstimator().fit(table, Y)
    with fails("`Y_pred` must be None with a table"):
        AccuracyEstimator().fit(table, Y_pred=Y)
    with fails("`dist` must be a LabelsetDistribution or a DataFrame"):
        AccuracyEstimator(features="SE").fit(dist.profile(), Y)
    with fails("must have a column 'entropy', got columns n_labels"):
        AccuracyEstimator(features="mix").fit(table.drop(columns="entropy"))
    with fails("column 'entropy' must hold finite numbers, got nan in row 0"):
        AccuracyEstimator(features="mix").fit(table.assign(entropy=table["entropy"][3:]))
    with fails("At least two rows are needed to fit, got 1"):
        AccuracyEstimator().fit(dist[:1], Y[:1])
    with fails("`Y_true` must have 400 rows, got 5"):
        AccuracyEstimator().fit(dist, Y[:5])


def test_a_feature_that_is_not_finite():
    wide = ls.IndependentLabels(np.full((5, 2000), 0.5))
    with fails("feature 'ESS' must be finite"):
        AccuracyEstimator("exact", "ESS").fit(wide, np.zeros((5, 2000)))
