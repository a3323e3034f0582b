"""Smoothed tables: many labels, and what they refuse.

What every kind answers is compared with loops in `test_all_kinds.py`.
"""

import numpy as np
import pytest
from strategies import many

import labelsure as ls


def test_many_labels_over_a_rest_are_exact():
    """Entropy and collision of 40 labels: what the table adds moves only a few terms."""
    rng = np.random.default_rng(5)
    rest = ls.IndependentLabels(rng.uniform(0.2, 0.8, (1, 40)))
    rows = (rng.random((1, 3, 40)) < 0.5).astype(int)
    dist = ls.distributions.SmoothedTable(ls.LabelsetTable(rows, [[0.5, 0.3, 0.2]]), rest, 0.25)
    listed = [
        (0.75 * t, 0.25 * float(np.exp(rest.log_prob(row[np.newaxis]))[0]))
        for t, row in zip([0.5, 0.3, 0.2], rows[0], strict=True)
    ]
    entropy = 0.25 * (float(rest.profile().entropy[0]) - np.log(0.25))
    squares = 0.0625 * float(rest.profile().collision[0])
    for added, before in listed:
        entropy += before * np.log(before) - (added + before) * np.log(added + before)
        squares += (added + before) ** 2 - before**2
    assert dist.profile().entropy[0] == pytest.approx(entropy, rel=1e-12)
    assert dist.profile().collision[0] == pytest.approx(squares, rel=1e-12)
    draws = dist.sample(4000, random_state=0)[0]
    from_table = (draws == rows[0, 0]).all(axis=1).mean()
    assert from_table == pytest.approx(0.375, abs=0.03)
    assert -dist[np.zeros(4000, dtype=int)].log_prob(draws).mean() == pytest.approx(
        entropy, abs=0.6
    )


def test_what_is_refused():
    table, rest = many("table", 2, 2), many("independent", 2, 2)
    for arguments, message in (
        ((rest, rest, 0.1), "`table` must be a LabelsetTable, got IndependentLabels"),
        ((table, table, 0.1), "`rest` must be IndependentLabels, got LabelsetTable"),
        ((table, rest[:1], 0.1), "got 2 and 1 instances"),
        ((table, rest, 0.0), "must be above 0 and at most 1, .*got 0.0"),
        ((table, rest, 1.5), "must be above 0 and at most 1"),
        ((table, rest, [0.1, 0.2, 0.3]), "one for each of the 2 instances, got shape"),
    ):
        with pytest.raises(ls.InputError, match=message):
            ls.distributions.SmoothedTable(*arguments)
