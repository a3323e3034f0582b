"""`monitor`: chunks, confidence sequences and alerts."""

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import oracles_estimation as oracles
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_population import random_dist, score_frame
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import labelsure as ls
from labelsure.errors import InputError
from labelsure.estimation._shift import compare_means
from labelsure.estimation.monitoring import BettingConfidenceSequence, alpha_spending

EVERYTHING = random_dist(4000)  # one population: another seed would be another one


@pytest.fixture(scope="module")
def dist():
    return EVERYTHING[:1200]


@pytest.fixture(scope="module")
def estimator(dist):
    Y = dist.sample(1, random_state=1)[:, 0]
    return ls.AccuracyEstimator("jaccard").fit(dist[:600], Y[:600])


def test_chunks_by_rows_are_the_estimates_of_the_parts(dist, estimator):
    table = ls.monitor(estimator, dist[600:], chunk_size=250).to_frame()
    assert table["n_samples"].tolist() == [250, 250, 100]
    second = estimator.estimate(dist[850:1100])
    assert table.loc[1, ["estimated", "low", "high"]].tolist() == [
        second.mean,
        second.low,
        second.high,
    ]
    assert (table["alert"] == "none").all()
    assert table["p_limit"].tolist() == pytest.approx([0.05 * oracles.spent(t) for t in (1, 2, 3)])


def test_sources_of_chunks_agree(dist, estimator):
    whole = ls.monitor(estimator, dist[600:], chunk_size=200).to_frame()
    parts = ls.monitor(estimator, (dist[a : a + 200] for a in (600, 800, 1000))).to_frame()
    frame = ls.monitor(estimator, score_frame(dist[600:]), chunk_size=200).to_frame()
    pd.testing.assert_frame_equal(whole, parts)
    # A table does not say how probable labels are, so that less is compared.
    pd.testing.assert_frame_equal(whole.drop(columns="p_value"), frame.drop(columns="p_value"))


def test_named_chunks(dist, estimator):
    days = pd.date_range("2024-01-01", periods=600, freq="h")
    weeks = score_frame(dist[600:]).set_axis(days).groupby(pd.Grouper(freq="7D"))
    table = ls.monitor(estimator, dict(list(weeks))).to_frame()
    assert table["n_samples"].tolist() == [168, 168, 168, 96]
    assert table["chunk"].tolist() == [pd.Timestamp(2024, 1, day) for day in (1, 8, 15, 22)]


def test_a_chunk_that_differs_raises_an_alert(dist, estimator):
    harder, easier = random_dist(300, spread=0.7), random_dist(300, spread=9.0)
    table = ls.monitor(estimator, [dist[600:900], harder, easier]).to_frame()
    assert table["alert"].tolist() == ["none", "inputs", "inputs"]
    assert (table["p_value"] < table["p_limit"]).tolist() == [False, True, True]
    assert [len(moved.split(", ")) for moved in table["moved"][1:]] == [3, 3]
    assert table["moved"][0] == ""
    assert table["accuracy_high"].isna().all()


def test_a_small_shift_is_found_in_several_chunks_together(estimator):
    later = EVERYTHING[1200:]
    sure = ls.confidence(later, "HP")["HP"].to_numpy()
    kept = np.random.default_rng(0).uniform(size=2800) < 1.2 - sure
    slightly = later[np.flatnonzero(kept)[:1600]]  # sure predictions have become rarer
    alone = ls.monitor(estimator, [slightly[700:800]]).to_frame()
    assert alone["alert"].tolist() == ["none"]
    table = ls.monitor(estimator, slightly, chunk_size=100).to_frame()
    assert (table["alert"] == "inputs").sum() > 3
    # After eight chunks windows of 1, 2, 4 and 8 share the level.
    known, view = estimator._calibration_view(), estimator.estimate_rows(slightly).table._view()
    found = [compare_means(known, view.iloc[800 - 100 * size : 800]) for size in (1, 2, 4, 8)]
    p_value, moved = min(found, key=lambda pair: pair[0])
    assert table["p_value"][7] == pytest.approx(4 * p_value)
    labels = [name for name in moved if name not in ("HP", "TG", "SE", "CE", "ME", "GI", "CS")]
    assert len(labels) >= 3
    assert table["moved"][7] == ", ".join(labels[:3])  # these say more to people than entropies


def draw_labels(dist, Y, size, n_rows, seed=0):
    """Labels of random rows of each chunk, as `monitor` takes them."""
    rng = np.random.default_rng(seed)
    labels = {}
    for chunk, first in enumerate(range(0, len(dist), size)):
        rows = rng.choice(size, n_rows, replace=False)
        labels[chunk] = (rows, Y[first + rows], n_rows / size)
    return labels


def test_labels_that_drift_while_inputs_do_not_need_labels(estimator):
    # Inputs say nothing about it: without labels the table is the same.
    later = EVERYTHING[1200:2400]
    Y = later.sample(1, random_state=4)[:, 0]
    turned = Y.copy()
    turned[400:, 0] ^= 1
    assert (ls.monitor(estimator, later, chunk_size=100).to_frame()["alert"] == "none").all()
    usual, changed = (
        ls.monitor(
            estimator, later, chunk_size=100, labels=draw_labels(later, truth, 100, 30)
        ).to_frame()
        for truth in (Y, turned)
    )
    assert (usual["alert"] == "none").all()
    assert set(changed["alert"][:4]) == {"none"}
    assert set(changed["alert"][8:]) == {"accuracy"}
    assert (usual["n_labelled"] == 30).all()
    pd.testing.assert_series_equal(usual["bound"], changed["bound"])
    assert usual["bound"][0] == estimator.compare_estimates()[1].mean()
    strict = ls.monitor(
        estimator, later, chunk_size=100, labels=draw_labels(later, Y, 100, 30), bound=0.95
    ).to_frame()
    assert strict["alert"].tolist()[-1] == "accuracy"
    assert strict["accuracy_high"].tolist()[-1] <= 0.95


CHUNKS = st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=8).map(np.array), max_size=6)
SHARES = st.sampled_from([0.0, 0.4, 1.0])


def bet(chunks, lambda_):
    """Confidence sequence after a stream of chunks."""
    sequence = BettingConfidenceSequence(lambda_)
    for t, outcomes in enumerate(chunks, 1):
        sequence.bet(outcomes, alpha_spending(t))
    return sequence


@given(CHUNKS, SHARES, st.sampled_from([0.5, 0.05]))
def test_the_confidence_sequence_is_that_of_the_loop(chunks, lambda_, error):
    bound = bet(chunks, lambda_).upper_bound(error)
    below, above = bound - 0.001, min(1.0, bound + 0.001)
    if bound < 1:
        for mean in (bound, above, 1.0):
            assert oracles.capital_against(mean, chunks, lambda_) >= (1 - 1e-9) / error
    elif below > 0:
        shown = [oracles.capital_against(mean, chunks, lambda_) for mean in (below, 1.0)]
        assert min(shown) < (1 + 1e-9) / error


@given(CHUNKS, SHARES, st.integers(0, 999))
def test_capitals_and_their_p_value_are_those_of_the_loop(chunks, lambda_, place):
    sequence = bet(chunks, lambda_)
    capital = oracles.capital_against(place / 1000, chunks, lambda_)
    assert sequence.capitals[place] == pytest.approx(capital, rel=1e-9)
    against = np.full(1000, np.inf)
    against[place] = 2.0
    assert sequence.p_value(against) == pytest.approx(min(1, 0.5 / capital), rel=1e-9)


@pytest.mark.parametrize("metric", ["exact", "jaccard"])
def test_the_p_value_compares_the_stream_with_the_calibration_set(dist, metric):
    """The largest p-value over one mean of both, each side bounded on a grid of 0.001."""
    Y = dist.sample(1, random_state=1)[:, 0]
    judge = ls.AccuracyEstimator(metric).fit(dist[:60], Y[:60])
    labels = draw_labels(dist[600:], Y[600:] ^ 1, 20, 4)
    table = ls.monitor(
        judge, dist[600:660], chunk_size=20, labels={t: labels[t] for t in range(3)}
    ).to_frame()
    sequence = BettingConfidenceSequence(judge._lambda)
    chunks = []
    for t in range(3):
        part, rows = dist[600 + 20 * t : 620 + 20 * t], labels[t][0]
        values = ls.accuracy(labels[t][1], part[rows].mode(), metric)
        chunks.append(sequence.make_outcomes(values, judge.predict(part), rows, seed=t + 1))
    known = judge.compare_estimates()[1]
    products = [
        oracles.capital_against(i / 1000, chunks, judge._lambda)
        * oracles.capital_above((i + 1) / 1000, known)
        for i in range(0, 1000, 10)
    ]
    found = table["p_accuracy"].tolist()
    assert found[-1] >= (1 - 1e-9) / min(products)  # of a tenth of the grid
    assert found[-1] <= 1.2 / min(products)
    assert found[0] > found[1] > found[2] > 0


def test_the_highest_bound_is_no_alarm_by_itself(dist, estimator):
    Y = dist[600:700].mode()  # every prediction is right
    table = ls.monitor(
        estimator, [dist[600:700]], labels={0: (range(100), Y, 1.0)}, bound=1.0
    ).to_frame()
    assert table["alert"].tolist() == ["none"]


def test_outcomes_are_unbiased_and_scatter_less():
    # One population: the mean outcome is that of the accuracies, whatever the estimates.
    rng = np.random.default_rng(0)
    sequence, found, plain = BettingConfidenceSequence(0.8), [], []
    for seed in range(400):
        p = rng.uniform(size=200)
        accuracy, rows = (rng.uniform(size=200) < p).astype(float), np.arange(20)
        found.append(sequence.make_outcomes(accuracy[rows], 0.9 * p, rows, seed).mean())
        plain.append(accuracy[rows].mean())
    assert abs(np.mean(found) - 0.5) < 4 * np.std(found) / 20
    assert np.std(found) < 0.9 * np.std(plain)
    every = np.arange(200)
    outcomes = sequence.make_outcomes(accuracy, p, every, 0)
    assert (outcomes == accuracy).all()  # nothing unlabelled is left


@pytest.mark.slow
def test_unchanged_streams_seldom_raise_an_alarm():
    # Calibration sets are drawn anew: 5% of streams may raise an alarm.
    n_alarms = 0
    for seed in range(100):
        dist = random_dist(1300, seed=seed)
        Y = dist.sample(1, random_state=seed + 1000)[:, 0]
        estimator = ls.AccuracyEstimator("jaccard").fit(dist[:300], Y[:300])
        labels = draw_labels(dist[300:], Y[300:], 20, 5, seed)
        table = ls.monitor(estimator, dist[300:], chunk_size=20, labels=labels).to_frame()
        n_alarms += (table["alert"] != "none").any()
    assert n_alarms <= 11  # of a binomial with 5%, beyond 0.995


def test_parts_of_the_error(dist):
    # 5% are 4 of labels and 1 of inputs; with a bound 2.5 and 2.5.
    Y = dist.sample(1, random_state=1)[:, 0]
    exact = ls.AccuracyEstimator("exact").fit(dist[:600], Y[:600])
    for bound, parts in ((None, (0.01, 0.04)), (0.5, (0.025, 0.025))):
        alerts = set()
        for n_wrong in (0, 90):
            truth = dist[600:700].mode()
            truth[:n_wrong, 0] ^= 1
            labels = {0: (np.arange(100), truth, 0.5)}
            row = ls.monitor(exact, [dist[600:800]], labels=labels, bound=bound).to_frame().iloc[0]
            assert row["p_limit"] == pytest.approx(parts[0] * oracles.spent(1))
            assert (row["alert"] == "accuracy") == (row["p_accuracy"] <= parts[1])
            alerts.add(row["alert"])
        assert alerts == {"none", "accuracy"}


def test_labels_of_two_classes_are_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    y = np.where(X[:, 0] + rng.normal(size=900) > 0, "yes", "no")
    model = ls.AccuracyAwareClassifier(LogisticRegression(), "exact", random_state=0)
    model.fit(X[:500], y[:500])
    rows = model.draw_audit(X[500:], 100, random_state=0)
    table = model.monitor([X[500:]], labels={0: (rows, y[500:][rows], 0.25)}).to_frame()
    truth = y[500:][rows] == model.predict(X[500:])[rows]
    assert abs(table["accuracy"][0] - truth.mean()) < 0.1
    assert table["alert"].tolist() == ["none"]
    with pytest.raises(InputError, match="probability"):
        model.monitor([X[500:]], labels={0: (rows, y[500:][rows])})


def test_references(dist, estimator):
    Y = dist.sample(1, random_state=1)[:, 0]
    halves = (slice(0, 300), slice(300, 600))
    tables = [ls.ScoreTable.from_distribution(dist[rows], Y[rows]) for rows in halves]
    folds = ls.AccuracyEstimator("jaccard").fit(ls.ScoreTable.concatenate(tables))
    table = ls.monitor(
        folds, [dist[600:], random_dist(300, spread=0.7)], reference=dist[:600]
    ).to_frame()
    assert table["alert"].tolist() == ["none", "inputs"]
    with pytest.raises(InputError, match="`reference` must be given"):
        ls.monitor(folds, [dist])
    labels = {0: (np.arange(600), Y[:600], 0.5)}
    with pytest.raises(InputError, match="`bound` must be given"):
        ls.monitor(folds, [dist], labels=labels)
    table = ls.monitor(folds, [dist], labels=labels, bound=0.99).to_frame()
    assert table["alert"].tolist() == ["accuracy"]
    assert table["p_value"].isna().all()


def test_messages(dist, estimator):
    def fails(message):
        return pytest.raises(InputError, match=message)

    Y = dist.sample(1, random_state=1)[:, 0]
    with fails("`chunks` must be several chunks.*got one ChainMixture"):
        ls.monitor(estimator, dist)
    with fails("`chunks` must be several chunks.*got one DataFrame"):
        ls.monitor(estimator, score_frame(dist))
    with fails("`chunk_size` must be a whole number >= 1, got 0"):
        ls.monitor(estimator, dist, chunk_size=0)
    with fails("`error` must be"):
        ls.monitor(estimator, [dist], error=0)
    with fails("`labels` must be a dict.*got a list"):
        ls.monitor(estimator, [dist], labels=[Y])
    with fails("`labels` must be .rows, Y_true, probability."):
        ls.monitor(estimator, [dist], labels={0: ([0], Y[:1])})
    with fails("`probability` must be"):
        ls.monitor(estimator, [dist], labels={0: ([0], Y[:1], 1.5)})
    with fails("About 600 of the 1,200 rows.*got 300. Label every row that was drawn"):
        ls.monitor(estimator, [dist], labels={0: (np.arange(300), Y[:300], 0.5)})
    with fails("Each chunk of `labels` must be in the stream, 'w2' is not"):
        ls.monitor(estimator, {"w1": dist}, labels={"w2": ([0], Y[:1], 0.001)})


class Meeting:
    """Two threads in one call: the first leaves it before the second."""

    def __init__(self):
        self.first_is_in, self.second_is_in, self.first_is_out = (
            threading.Event() for _ in range(3)
        )

    def run(self, call):
        """Call with what each thread has to do while it is inside."""

        def first():
            call(lambda: (self.first_is_in.set(), self.second_is_in.wait(60)))
            self.first_is_out.set()

        def second():
            self.first_is_in.wait(60)
            call(lambda: (self.second_is_in.set(), self.first_is_out.wait(60)))

        with ThreadPoolExecutor(2) as pool:
            for task in [pool.submit(first), pool.submit(second)]:
                task.result(120)


def test_threads_that_fit_leave_the_filters_alone():
    class Slow(GaussianNB):
        def fit(self, X, y):
            WAITING.pop(threading.get_ident(), lambda: None)()
            return super().fit(X, y)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    Y = (X[:, :2] > 0).astype(int)

    def fit(wait):
        WAITING[threading.get_ident()] = wait
        ls.AccuracyAwareClassifier(ls.BinaryRelevance(Slow()), cv=0.5, random_state=0).fit(X, Y)

    fit(lambda: None)  # what is imported may add filters of its own
    before, show = list(warnings.filters), warnings._showwarnmsg_impl
    Meeting().run(fit)
    assert warnings.filters == before
    assert warnings._showwarnmsg_impl is show  # what shows them, or a list that nobody reads


WAITING = {}
