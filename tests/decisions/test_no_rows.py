"""No rows are decided, ranked and weighed as any other number of rows is, by every kind."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from strategies import KINDS, many

import labelsure as ls
from labelsure.metrics.registry import METRICS

L = 5


def no_rows(kind):
    if kind == "sparse":
        return ls.SparseIndependentLabels(csr_array((0, L)), floor=0.1)
    return many(kind, 3, L)[:0]


@pytest.mark.parametrize("kind", [*KINDS, "sparse"])
def test_no_rows_are_decided(kind):
    dist = no_rows(kind)
    for metric in METRICS:
        decisions = ls.decide(dist, metric)
        assert decisions.labelsets.shape == (0, L)
        assert decisions.gap.shape == (0,)
        assert len(ls.expected_accuracy(dist, decisions, metric=metric)) == 0
    assert len(ls.decide(dist, "hamming", open_cost=0.1).abstentions) == 0
    assert ls.decisions.rank_labels(dist).shape == (0, L)
    assert ls.decisions.expected_precision_at_k(dist, 2).shape == (0,)
    assert dist.top(3).labelsets.shape == (0, 3, L)
    assert dist.sample(2, random_state=0).shape == (0, 2, L)
    assert dist.to_frame(3).shape[0] == 0
    assert dist.temper(2.0).marginals().shape == (0, L)
    assert np.shape(dist.mode()) == (0, L)
