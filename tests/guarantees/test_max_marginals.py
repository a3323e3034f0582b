"""Max-marginals beyond all labelsets: what was not enumerated is bounded, never left out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from strategies import as_prefix_chain, linear_chains

import labelsure as ls
from labelsure._runtime import limits as _limits
from labelsure.distributions._chain_mixture import Question


@pytest.mark.parametrize("route", ["linear", "any"])
@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("budget", [0, 1, 20, 2**7])
@pytest.mark.parametrize("log_at_least", [-np.inf, -4.0, -1.0])
def test_no_labelset_is_above_the_bounds(route, spread, budget, log_at_least):
    members = linear_chains(0, 7, 3, spread)
    if route == "any":
        members = [as_prefix_chain(chain) for chain in members]
    dist = ls.distributions.ChainMixture(members, engine="certified", budget=budget)
    found = dist._max_marginals(log_at_least)
    truth = dist.with_engine(engine="dense")._max_marginals().logs
    assert (found.logs <= truth + 1e-12).all()
    assert (found.high >= truth - 1e-12).all()
    if budget == 2**7:  # enough for all: what is asked for is known
        asked = truth >= log_at_least
        assert_allclose(found.logs[asked], truth[asked], atol=1e-12)
        assert (found.high[~asked] < log_at_least).all()


def test_a_search_stops_where_nothing_unseen_has_as_much(monkeypatch):
    dist = ls.distributions.ChainMixture(linear_chains(0, 9, 3, 1.0), engine="certified")
    monkeypatch.setattr(_limits, "CHEAP_DENSE_LABELS", 0)
    seen = {}
    for log_at_least in (-2.0, -6.0):
        question = Question(width=-2.0, largest_unseen=float(np.exp(log_at_least)))
        found = dist._search(np.arange(len(dist)), question.goals(None), 2**9)
        seen[log_at_least] = found.seen.lengths
        assert (found.largest_unseen < np.exp(log_at_least)).all()
    assert (seen[-2.0] < seen[-6.0]).all()
    assert (seen[-6.0] < 2**9).any()


@pytest.mark.parametrize("engine", ["auto", "sampled"])
def test_other_engines(engine, monkeypatch):
    dist = ls.distributions.ChainMixture(linear_chains(0, 9, 3, 2.0), engine=engine, budget=100)
    truth = dist.with_engine(engine="dense")._max_marginals().logs
    monkeypatch.setattr(_limits, "CHEAP_DENSE_LABELS", 0)
    found = dist._max_marginals(-3.0)
    assert (found.logs <= truth + 1e-12).all()
    assert (found.high >= truth - 1e-12).all()
    if engine == "auto":  # few enough labels to fall back on all labelsets
        assert_array_equal(found.high >= -3.0, truth >= -3.0)


def test_many_labels_do_not_underflow():
    p = np.full((2, 5000), 0.3)
    logs = ls.IndependentLabels(p)._max_marginals().logs
    assert_allclose(logs[:, :, 0], 5000 * np.log(0.7))
    assert_allclose(logs[:, :, 1], 4999 * np.log(0.7) + np.log(0.3))


def test_logits_tell_apart_what_rounding_does_not():
    logs = ls.IndependentLabels.from_logits([[100.0, -1.0]])._max_marginals().logs
    assert_allclose(logs[0, 0], [-100 - np.log1p(np.exp(-1)), -np.log1p(np.exp(-1))], rtol=1e-12)
