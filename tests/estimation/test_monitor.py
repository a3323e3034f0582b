"""`monitor`: chunks, bands and alerts."""

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from simulated_population import random_dist, score_frame
from sklearn.naive_bayes import GaussianNB

import labelsure as ls
from labelsure.errors import InputError
from labelsure.estimation.monitoring import VERDICTS


@pytest.fixture(scope="module")
def dist():
    return random_dist(1200)


@pytest.fixture(scope="module")
def estimator(dist):
    Y = dist.sample(1, random_state=1)[:, 0]
    return ls.AccuracyEstimator("jaccard").fit(dist[:600], Y[:600])


def test_chunks_by_rows_are_the_estimates_of_the_parts(dist, estimator):
    table = ls.monitor(estimator, dist[600:], chunk_size=250)
    assert table["n_samples"].tolist() == [250, 250, 100]
    second = estimator.estimate(dist[850:1100])
    assert table.loc[1, ["estimated", "low", "high"]].tolist() == [
        second.mean,
        second.low,
        second.high,
    ]
    assert (table["alert"] == "none").all()
    width = table["band_high"] - table["band_low"]
    assert width[2] > width[0] == width[1]


def test_sources_of_chunks_agree(dist, estimator):
    whole = ls.monitor(estimator, dist[600:], chunk_size=200)
    parts = ls.monitor(estimator, (dist[a : a + 200] for a in (600, 800, 1000)))
    frame = ls.monitor(estimator, score_frame(dist[600:]), chunk_size=200)
    pd.testing.assert_frame_equal(whole, parts)
    # A table does not say how probable labels are, so that less is compared.
    pd.testing.assert_frame_equal(whole.drop(columns="auc"), frame.drop(columns="auc"))


def test_named_chunks(dist, estimator):
    days = pd.date_range("2024-01-01", periods=600, freq="h")
    weeks = score_frame(dist[600:]).set_axis(days).groupby(pd.Grouper(freq="7D"))
    table = ls.monitor(estimator, dict(list(weeks)))
    assert table["n_samples"].tolist() == [168, 168, 168, 96]
    assert table["chunk"].tolist() == [pd.Timestamp(2024, 1, day) for day in (1, 8, 15, 22)]


def test_harder_inputs_raise_an_alert_and_easier_ones_too(dist, estimator):
    harder, easier = random_dist(300, spread=0.7), random_dist(300, spread=9.0)
    table = ls.monitor(estimator, [dist[600:900], harder, easier])
    assert table["alert"].tolist() == ["none", "below", "above"]


def test_the_verdict_tells_changed_inputs_from_estimates_that_cannot_be_trusted(dist, estimator):
    harder, far = random_dist(300, spread=1.7), random_dist(300, spread=0.05)
    table = ls.monitor(estimator, [dist[600:900], harder, far, dist[600:620]])
    assert table["verdict"].tolist() == [
        "as before",
        "inputs have changed",
        "estimate not to be trusted",
        "not tested",
    ]
    assert set(table["verdict"]) == set(VERDICTS)
    found = estimator.estimate(harder, shift="weighted")
    weighted = table.loc[1, ["weighted", "weighted_low", "weighted_high"]].tolist()
    assert weighted == [found.mean, found.low, found.high]
    assert found.low <= table["estimated"][1] <= found.high
    assert table["weighted"].isna().tolist() == [True, False, True, True]
    assert table["auc"].isna().tolist() == [False, False, False, True]
    moved = table["moved"].tolist()
    assert (moved[0], moved[3]) == ("", "")
    assert len(moved[1].split(", ")) == 3


def test_a_weighted_estimate_that_says_something_else_is_no_trust(dist, estimator):
    Y = dist.sample(1, random_state=1)[:, 0]
    blind = ls.AccuracyEstimator("exact", "n_predicted").fit(dist[:600], Y[:600])
    harder = random_dist(300, spread=1.5)
    table = ls.monitor(blind, [harder])
    assert table["verdict"][0] == "estimate not to be trusted"
    assert table["weighted_high"][0] < table["estimated"][0]


def test_labels_that_drift_while_inputs_do_not_are_not_seen(dist, estimator):
    # The promise is about inputs. Whatever the labels do, the table is the same.
    unseen = ls.monitor(estimator, [dist[600:]])
    wrong = 1 - dist[600:].mode()
    assert unseen["alert"].tolist() == ["none"]
    assert ls.accuracy(wrong, dist[600:].mode(), "jaccard").mean() < unseen["low"][0]


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_the_band_says(estimator):
    many = random_dist(40_000, seed=9)
    table = ls.monitor(estimator, many, chunk_size=200, band_level=0.9, reference=many)
    assert 0.03 < (table["alert"] != "none").mean() < 0.18


def test_references(dist, estimator):
    limits = ls.monitor(estimator, [dist[600:]], reference=(0.1, 0.2))
    assert limits.loc[0, ["band_low", "band_high", "alert"]].tolist() == [0.1, 0.2, "above"]
    batch = ls.monitor(estimator, [dist[600:]], reference=dist[:300])
    mean = estimator.estimate(dist[:300]).mean
    assert (batch["band_low"][0] + batch["band_high"][0]) / 2 == pytest.approx(mean)
    default = ls.monitor(estimator, [dist[600:]])
    assert (default["band_low"][0] + default["band_high"][0]) / 2 == pytest.approx(
        estimator.reference_.mean
    )


def test_messages(dist, estimator):
    def fails(message):
        return pytest.raises(InputError, match=message)

    with fails("`chunks` must be several chunks.*got one ChainMixture"):
        ls.monitor(estimator, dist)
    with fails("`chunks` must be several chunks.*got one DataFrame"):
        ls.monitor(estimator, score_frame(dist))
    with fails("`chunk_size` must be a whole number >= 1, got 0"):
        ls.monitor(estimator, dist, chunk_size=0)
    with fails("`reference` must be given for an estimator that was not fitted"):
        ls.monitor(ls.AccuracyEstimator(), [dist])
    with fails("`reference` must be limits .low, high. with low <= high"):
        ls.monitor(estimator, [dist], reference=(0.9, 0.1))


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


def test_threads_leave_the_filters_of_warnings_alone(dist, estimator):
    class Slow:
        def __init__(self, wait):
            self.wait = wait

        def estimate(self, chunk, **settings):
            self.wait()
            return estimator.estimate(chunk, **settings)

    before = list(warnings.filters)
    Meeting().run(lambda wait: ls.monitor(Slow(wait), [dist[:50]], reference=(0.0, 1.0)))
    assert warnings.filters == before
    moved = ls.IndependentLabels(np.full((300, 4), 0.5))
    with pytest.warns(ls.ShiftWarning):
        estimator.estimate(moved)


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
