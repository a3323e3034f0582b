"""A few labels of the batch itself: against loops, coverage."""

import warnings
from itertools import combinations

import numpy as np
import oracles_shift as oracles
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import t as student

import labelsure as ls
from labelsure.estimation._batch_estimates import INTERVALS, BatchSums, few_labels_interval
from labelsure.estimation._diagnostics import rank_excess, warn_of_chosen_rows

RNG = np.random.default_rng(0)
P = RNG.beta(0.4, 0.7, size=(900, 4))
DIST = ls.IndependentLabels(P, label_names=["a", "b", "c", "d"])
Y = DIST.sample(1, random_state=1)[:, 0]
ESTIMATOR = ls.AccuracyEstimator("jaccard").fit(DIST[:500], Y[:500])
BATCH, TRUTH = DIST[500:], Y[500:]


def draw(n_labelled, seed, n_batch=400, wrong_by=0.15):
    """Accuracies of a batch, estimates that are too high, and rows drawn at random."""
    rng = np.random.default_rng(seed)
    right = rng.beta(4, 2, size=n_batch)
    accuracy = np.clip(right + rng.normal(0, 0.15, n_batch), 0, 1)
    rows = rng.choice(n_batch, n_labelled, replace=False)
    return accuracy, np.clip(right + wrong_by, 0, 1), rows


@pytest.mark.parametrize("n_labelled", [10, 100, 390, 400])
def test_the_interval_is_that_of_the_loop(n_labelled):
    for seed in range(5):
        accuracy, estimates, rows = draw(n_labelled, seed)
        lambda_ = 0.25 * seed
        known = accuracy[rows], estimates[rows]
        sums = BatchSums.of(estimates[:150], np.empty(0)) + BatchSums.of(
            estimates[150:], np.empty(0)
        )
        found = few_labels_interval(sums, *known, lambda_=lambda_, level=0.9)
        mean, _ = oracles.batch_mean(*known, estimates, lambda_)
        quantile = student.ppf(0.95, n_labelled - 1)
        low, high = oracles.pseudo_row_interval(*known, estimates, lambda_, quantile)
        expected = [min(max(mean, low), high), low, high]
        assert_allclose([found.mean, found.low, found.high], expected, atol=1e-12)


def test_the_lambda_is_fixed_by_other_labels():
    estimated, accuracy = ESTIMATOR.compare_estimates()
    expected = oracles.power_tuning(accuracy, estimated)
    assert_allclose(ESTIMATOR._lambda, expected, rtol=1e-9)
    assert 0.5 < expected <= 1


RARE = {
    "nearly right": ([1.0, 0.95, 0.0], [0.80, 0.17, 0.03]),
    "one failure in thirty": ([1.0, 0.0], [29 / 30, 1 / 30]),
    "three failures in thirty": ([1.0, 0.0], [0.9, 0.1]),
    "one success in thirty": ([0.0, 1.0], [29 / 30, 1 / 30]),
    "halves": ([0.0, 0.5, 1.0], [0.2, 0.3, 0.5]),
}


def cover(shape, n_labelled, n_repeats, interval, seed=0, level=0.95):
    """How often the interval covers, and how wide it is."""
    values, chances = RARE[shape]
    rng, n_batch = np.random.default_rng(seed), 20 * n_labelled
    covered, width = 0, 0.0
    for _ in range(n_repeats):
        accuracy = rng.choice(values, n_batch, p=chances)
        estimates = np.clip(0.6 * accuracy + 0.5 * rng.random(n_batch), 0, 1)  # too high
        rows = np.sort(rng.choice(n_batch, n_labelled, replace=False))
        found = few_labels_interval(
            BatchSums.of(estimates, np.empty(0)),
            accuracy[rows],
            estimates[rows],
            lambda_=0.8,
            level=level,
            interval=interval,
        )
        covered += found.low <= accuracy.mean() <= found.high
        width += (found.high - found.low) / n_repeats
    return covered / n_repeats, width


@pytest.mark.jit_only
@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("shape", RARE)
def test_intervals_cover_rare_failures(shape, interval):
    """Student's interval covers the mean of the first shape in 59 % of the cases at 30 labels."""
    covered, _ = cover(shape, 30, 200, interval)
    assert covered >= 0.95


@pytest.mark.jit_only
@pytest.mark.parametrize("level", [0.9, 0.99])
def test_intervals_of_other_levels_cover(level):
    for n_labelled, shape in ((10, "nearly right"), (100, "halves")):
        covered, _ = cover(shape, n_labelled, 200, "pseudo-rows", level=level)
        assert covered >= level


@pytest.mark.jit_only
def test_pseudo_rows_are_narrower_than_betting_and_not_too_sure():
    widths = {}
    for interval in INTERVALS:
        covered, widths[interval] = cover("halves", 200, 200, interval)
        assert 0.93 <= covered <= 1 - 0.005 * (interval == "pseudo-rows")
    assert widths["pseudo-rows"] < 0.95 * widths["betting"]


def test_labels_that_are_all_right_prove_no_certainty():
    sums = BatchSums.of(np.full(500, 0.9), np.empty(0))
    known = (sums, np.ones(30), np.full(30, 0.9))
    for lambda_ in (0.0, 1.0):
        for interval in INTERVALS:
            found = few_labels_interval(*known, lambda_=lambda_, level=0.95, interval=interval)
            assert found.mean == found.high == 1.0
            assert 0.8 < found.low < 0.91  # one failure in ten would be missed in 4 % of the cases


def test_the_order_of_rows_does_not_matter_to_what_is_proved():
    """Rows of a file may be sorted by their accuracies: betting in that order would be wrong."""
    rng, missed = np.random.default_rng(0), 0
    for _ in range(200):
        accuracy = rng.beta(8, 2, size=600)
        rows = rng.choice(600, 40, replace=False)
        rows = rows[np.argsort(-accuracy[rows])]
        sums = BatchSums.of(np.zeros(600), np.empty(0))
        found = few_labels_interval(
            sums, accuracy[rows], np.zeros(40), lambda_=0.0, level=0.9, interval="betting"
        )
        missed += not found.low <= accuracy.mean() <= found.high
    assert missed <= 30


def test_an_estimate_with_labels_of_some_rows():
    rows = np.random.default_rng(0).choice(400, 60, replace=False)
    found = ESTIMATOR.estimate(BATCH, Y_true=TRUTH[rows], rows=rows)
    accuracy = ls.accuracy(TRUTH[rows], BATCH[rows].mode(), "jaccard")
    estimates = ESTIMATOR.predict(BATCH)
    lambda_ = ESTIMATOR._lambda
    mean, _ = oracles.batch_mean(accuracy, estimates[rows], estimates, lambda_)
    assert_allclose(found.mean, mean)
    assert found.low < mean < found.high
    assert (found.n_labelled, found.n_samples) == (60, 400)
    assert "60 rows labelled, assumed drawn at random" in str(found)
    everything = ESTIMATOR.estimate(BATCH, Y_true=TRUTH, rows=np.arange(400))
    assert_allclose(everything.high - everything.low, 0, atol=1e-9)  # nothing is left to chance
    assert_allclose(everything.mean, ls.accuracy(TRUTH, BATCH.mode(), "jaccard").mean())


def test_the_rank_excess_is_that_of_all_draws():
    values = np.array([0.2, 0.9, 0.2, 0.5, 0.7, 0.2])
    draws = list(combinations(range(6), 2))
    sums = [oracles.sum_of_ranks(values, rows) / 6 for rows in draws]
    for rows, found in zip(draws, sums, strict=True):
        expected = found - np.mean(sums), np.var(sums)
        assert_allclose(rank_excess(values, np.array(rows)), expected, atol=1e-12)


ESTIMATES = ESTIMATOR.predict(BATCH)
ORDER = np.argsort(ESTIMATES)


@pytest.mark.parametrize("n_rows", [10, 60, 200])
@pytest.mark.parametrize(("end", "word"), [(1, "lower"), (-1, "higher")])
def test_rows_chosen_by_their_estimates_give_a_warning(n_rows, end, word):
    rows = ORDER[::end][:n_rows]
    with pytest.warns(UserWarning, match=f"are {word} than .* `draw_audit`"):
        ESTIMATOR.estimate(BATCH, Y_true=TRUTH[rows], rows=rows)
    labels = {0: (rows, TRUTH[rows], n_rows / 400)}
    with pytest.warns(UserWarning, match=f"are {word} than .* `draw_audit`"):
        ls.monitor(ESTIMATOR, [BATCH], labels=labels)


def test_rows_chosen_in_each_small_chunk_give_a_warning():
    """Five of 40 rows prove nothing; the five most certain ones of each of ten chunks do."""
    labels = {}
    for chunk in range(10):
        part = slice(40 * chunk, 40 * chunk + 40)
        rows = np.argsort(ESTIMATOR.predict(BATCH[part]))[-5:]
        labels[chunk] = (rows, TRUTH[part][rows], 5 / 40)
    with pytest.warns(UserWarning, match="are higher than"):
        ls.monitor(ESTIMATOR, BATCH, chunk_size=40, labels=labels)


def test_random_rows_give_no_warning():
    """At p < .001: at most 3 of 400 draws, but for a chance of 1 in 1,000."""
    n_warned = 0
    for seed in range(400):
        rows = np.random.default_rng(seed).choice(400, 40, replace=False)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_of_chosen_rows([rank_excess(ESTIMATES, rows)])
        n_warned += len(caught)
    assert n_warned <= 3


def test_all_rows_and_equal_estimates_are_no_choice():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_chosen_rows([rank_excess(ESTIMATES, np.arange(400))])
        warn_of_chosen_rows([rank_excess(np.full(400, 0.7), np.arange(20))])


def test_a_shifted_batch_is_estimated_well_and_without_a_warning():
    harder = ls.IndependentLabels(RNG.uniform(0.3, 0.7, size=(500, 4)))
    truth = harder.sample(1, random_state=3)[:, 0]
    rows = np.random.default_rng(1).choice(500, 200, replace=False)
    found = ESTIMATOR.estimate(harder, Y_true=truth[rows], rows=rows)
    assert found.low <= ls.accuracy(truth, harder.mode(), "jaccard").mean() <= found.high


def test_rows_are_found_by_name():
    named = BATCH._with_index(pd.Index([f"r{i}" for i in range(400)]))
    rows = np.arange(0, 400, 5)
    frame = pd.DataFrame(TRUTH[rows], index=named.index[rows], columns=["a", "b", "c", "d"])
    expected = ESTIMATOR.estimate(BATCH, Y_true=TRUTH[rows], rows=rows)
    mixed = frame.iloc[::-1][["d", "a", "c", "b"]]
    assert_allclose(ESTIMATOR.estimate(named, Y_true=mixed).mean, expected.mean)
    with pytest.raises(ls.InputError, match="nobody"):
        ESTIMATOR.estimate(named, Y_true=frame.rename(index={"r5": "nobody"}))
    with pytest.raises(ls.InputError, match="`rows`"):
        ESTIMATOR.estimate(BATCH, Y_true=TRUTH[:50])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": [1, 1, *range(9, 25)]}, "must name each labelled row once"),
        ({"rows": np.arange(400, 418)}, "`rows` must lie from 0 to 399, got 400 to 417"),
        ({"rows": [0.5] * 18}, "must be the positions of the labelled rows"),
        ({"rows": np.ones(400, bool)}, r"got bool of shape \(400,\)\. For a mask"),
        ({"rows": np.arange(18), "metric": "micro"}, "Unknown label metric"),
    ],
)
def test_wrong_rows(arguments, message):
    with pytest.raises(ls.InputError, match=message):
        ESTIMATOR.estimate(BATCH, Y_true=TRUTH[:18], **arguments)


def test_the_interval_by_betting_is_one_argument_away():
    rows = np.arange(0, 400, 10)
    usual = ESTIMATOR.estimate(BATCH, Y_true=TRUTH[rows], rows=rows)
    proved = ESTIMATOR.estimate(BATCH, Y_true=TRUTH[rows], rows=rows, interval="betting")
    assert proved.high - proved.low > 1.05 * (usual.high - usual.low)
    assert proved.mean == usual.mean
    assert "interval by betting" in str(proved)
    assert "betting" not in str(usual)
    with pytest.raises(ls.errors.UnknownNameError, match="Unknown interval"):
        ESTIMATOR.estimate(BATCH, Y_true=TRUTH[rows], rows=rows, interval="student")


def test_other_mistakes():
    with pytest.raises(ls.InputError, match="labelled"):
        ESTIMATOR.estimate(BATCH, Y_true=TRUTH[:5], rows=np.arange(5))
    with pytest.raises(ls.InputError, match="`Y_true`"):
        ESTIMATOR.estimate(BATCH, rows=np.arange(20))
    table = ls.ScoreTable.from_distribution(BATCH, metrics=["jaccard"])
    with pytest.raises(ls.InputError, match="LabelsetDistribution"):
        ESTIMATOR.estimate(table, Y_true=TRUTH[:20], rows=np.arange(20))


def test_a_classifier_takes_labels_of_some_rows_as_it_takes_all_of_them():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(500, 3))
    labels = (X[:, :2] + rng.normal(size=(500, 2)) > 0).astype(int)
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), cv=0.5, random_state=0, confidence=0.9)
    model.fit(X[:300], labels[:300])
    rows = rng.choice(200, 40, replace=False)
    found = model.estimate(X[300:], Y_true=labels[300:][rows], rows=rows)
    by_hand = model.accuracy_estimator_.estimate(
        model.predict_distribution(X[300:]),
        model.predict(X[300:]),
        Y_true=labels[300:][rows],
        rows=rows,
        level=0.9,
    )
    assert found == by_hand
    wider = model.estimate(X[300:], Y_true=labels[300:][rows], rows=rows, level=0.99)
    assert wider.high - wider.low > found.high - found.low
    assert model.estimate(X[300:], shift="weighted").effective_size > 100


def test_two_classes_by_position_and_by_name():
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(400, 2)), index=[f"r{i}" for i in range(400)])
    y = pd.Series(np.where(X[0] + rng.normal(size=400) > 0, "yes", "no"), X.index)
    X.columns = ["a", "b"]
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), cv=0.5, random_state=0)
    model.fit(X[:200], y[:200])
    rows = np.arange(0, 200, 4)
    found = model.estimate(X[200:], Y_true=y[200:].to_numpy()[rows], rows=rows)
    by_name = model.estimate(X[200:], Y_true=y[200:].iloc[rows][::-1])
    assert_allclose(found.mean, by_name.mean)
    right = model.predict(X[200:])[rows] == y[200:].to_numpy()[rows]
    estimates = model.predict_accuracy(X[200:])
    lambda_ = model.accuracy_estimator_._lambda
    expected = oracles.batch_mean(right * 1.0, estimates[rows], estimates, lambda_)[0]
    assert_allclose(found.mean, expected)


def test_the_order_of_labelled_rows_changes_nothing():
    rng = np.random.default_rng(3)
    rows = rng.choice(400, 30, replace=False)
    found = ESTIMATOR.estimate(BATCH, Y_true=TRUTH[rows], rows=rows)
    for _ in range(5):
        other = rng.permutation(rows)
        assert ESTIMATOR.estimate(BATCH, Y_true=TRUTH[other], rows=other) == found


def test_no_labelled_rows():
    for rows in ([], np.array([], dtype=int)):
        with pytest.raises(ls.InputError, match="At least 10 rows must be labelled"):
            ESTIMATOR.estimate(BATCH, Y_true=TRUTH[:0], rows=rows)
