"""The score table: one home for its columns, and for what they say."""

import re
from pathlib import Path

import numpy as np
import oracles
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_population import random_dist, score_frame
from strategies import KINDS, batches, n_labels, predictions

import labelsure as ls
from labelsure.distributions.candidates import CANDIDATES
from labelsure.errors import InputError, UnknownNameError
from labelsure.estimation.score_table import COLUMNS
from labelsure.metrics.registry import METRICS, Metric

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "score_table.md"


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data(), metric=st.sampled_from(list(METRICS)))
def test_a_table_answers_as_the_loops_do(kind, data, metric):
    batch = data.draw(batches(kind, labels=n_labels(1, 4), least=1))
    truth, decided = data.draw(predictions(batch)), data.draw(predictions(batch))
    empty = data.draw(st.sampled_from([0.0, 0.3, 1.0]))
    table = ls.ScoreTable.from_distribution(batch.dist, truth, decided)
    for again in (table, ls.ScoreTable(table.to_frame())):
        accuracy, expected = again.accuracy(metric, empty), again.expected(metric, empty)
        for i, (P, y, p) in enumerate(zip(batch.P, truth, decided, strict=True)):
            worth = oracles.accuracy(tuple(y), tuple(p), metric, empty)
            assert accuracy[i] == pytest.approx(worth, abs=1e-9)
            mean = oracles.expected_accuracy(P, tuple(p), metric, empty)
            assert expected[i] == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize("name", list(CANDIDATES))
def test_candidates_and_ranks_survive_the_way_through_a_frame(name):
    dist = random_dist(40)
    table = ls.ScoreTable.from_distribution(dist)
    again = ls.ScoreTable(table.to_frame())
    np.testing.assert_array_equal(again.candidate(name), table.candidate(name))
    np.testing.assert_array_equal(again.ranks(name), table.ranks(name))
    np.testing.assert_array_equal(table.candidate(name), ls.confidence(dist, name)[name])


def test_rows_may_have_different_numbers_of_labels():
    few, many = random_dist(5, n_labels=2), random_dist(7, n_labels=5)
    pooled = pd.concat([score_frame(few), score_frame(many)]).sample(frac=1, random_state=0)
    found = pd.Series(ls.ScoreTable(pooled).candidate("SE"), index=range(12))
    alone = np.concatenate([ls.confidence(dist, "SE")["SE"] for dist in (few, many)])
    is_few = (pooled["n_labels"] == 2).to_numpy()
    np.testing.assert_allclose(found[is_few], alone[:5][pooled.index[is_few]])
    np.testing.assert_allclose(found[~is_few], alone[5:][pooled.index[~is_few]])


def test_tables_below_each_other_are_the_table_of_all():
    dist = random_dist(30)
    Y = dist.sample(1, random_state=1)[:, 0]
    parts = [
        ls.ScoreTable.from_distribution(dist[rows], Y[rows])
        for rows in (slice(0, 11), slice(11, 12), slice(12, 30))
    ]
    joined, whole = ls.ScoreTable.concatenate(parts), ls.ScoreTable.from_distribution(dist, Y)
    assert len(joined) == 30
    pd.testing.assert_frame_equal(joined.to_frame(), whole.to_frame())
    np.testing.assert_array_equal(joined.candidate("TG"), whole.candidate("TG"))
    np.testing.assert_array_equal(joined.expected("f1", 0.4), whole.expected("f1", 0.4))


def test_columns_come_in_the_order_in_which_they_are_documented():
    dist = random_dist(6)
    Y = dist.mode()
    table = ls.ScoreTable.from_distribution(dist, Y, metrics=["exact"])
    frame = table.with_columns({"best_f1_gap": np.zeros(6), "log_frequency": -1.0}).to_frame()
    known = [name for name in COLUMNS if name in frame.columns]
    assert list(frame.columns[: len(known)]) == known
    assert list(frame.columns[len(known) :]) == ["expected_exact", "best_f1_gap"]
    assert frame["decision"].tolist() == ["".join(map(str, row)) for row in dist.mode()]


def test_the_page_has_every_column():
    rows = re.findall(r"^\| `(.+?)` \| .+? \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    of_metric = ["expected_{}", "best_{}_decision", "best_{}_gap", "best_{}_tp", "true_expected_{}"]
    assert rows == [*COLUMNS, *of_metric]


def test_a_metric_of_ones_own_has_columns_of_its_own():
    metric = Metric("hits", lambda tp, fp, fn, tn: tp / (tp + fp + fn + tn))
    table = ls.ScoreTable.from_distribution(random_dist(9), metrics=[metric])
    assert "expected_hits" in table.to_frame().columns
    assert not metric.depends_on_empty
    np.testing.assert_array_equal(table.expected(metric, 1.0), table.expected(metric, 0.0))


def test_messages():
    dist = random_dist(4)
    frame = score_frame(dist)

    def fails(message, error=InputError):
        return pytest.raises(error, match=message)

    with fails("must be a LabelsetDistribution or a DataFrame .* got list"):
        ls.ScoreTable([1, 2])
    with fails("must have a column 'tp', got columns n_labels, decision"):
        ls.ScoreTable(frame).counts()
    with fails("must have a column 'p_empty'"):
        ls.ScoreTable(frame.drop(columns="p_empty").assign(n_predicted=0)).expected("f1", 1.0)
    with fails("Unknown candidate 'XX'", UnknownNameError):
        ls.ScoreTable(frame).candidate("XX")
    with fails("Unknown candidate 'XX'", UnknownNameError):
        ls.ScoreTable(frame).ranks("XX")
    with fails("`Y_true` must have 4 rows, got 3"):
        ls.ScoreTable.from_distribution(dist, dist.mode()[:3])
