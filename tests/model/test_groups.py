"""Groups of dependent rows in the flagship."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

import labelsure as ls


def draw_groups(n_groups, size, rng):
    """Rows of a group share luck that X does not show."""
    groups = np.repeat([f"event {k}" for k in range(n_groups)], size)
    luck = np.repeat(rng.normal(size=n_groups), size)
    X = rng.normal(size=(len(groups), 3))
    Y = (X + 0.6 * np.sign(X) * luck[:, np.newaxis] + 0.5 * rng.normal(size=X.shape) > 0) * 1
    return X, Y, groups


@pytest.mark.parametrize("cv", [0.5, 4])
@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
@pytest.mark.filterwarnings("ignore::labelsure.TargetWarning")
def test_groups_of_one_row_areindependent_rows(cv):
    rng = np.random.default_rng(0)
    X, Y, _ = draw_groups(300, 1, rng)
    settings = {"target": 0.6, "cv": PredefinedSplit(np.arange(300) % 4) if cv == 4 else cv}
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), "f1", **settings, random_state=0)
    alone, grouped = (clone(model).fit(X, Y, groups=g) for g in (None, np.arange(300)))
    one, other = (m.estimate(X, shift="ignore") for m in (alone, grouped))
    assert_allclose([one.mean, one.low, one.high], [other.mean, other.low, other.high])
    assert alone.policy_.threshold_ == grouped.policy_.threshold_
    assert alone.policy_.message_ == grouped.policy_.message_
    if cv == 0.5:
        assert alone.region_.threshold_ == grouped.region_.threshold_


@pytest.mark.parametrize("recalibration", ["auto", ls.TemperatureScaling(gate=False)])
def test_groups_reach_estimates_policies_and_regions(recalibration):
    rng = np.random.default_rng(1)
    X, Y, groups = draw_groups(240, 5, rng)
    model = ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(), "f1", target=0.5, recalibration=recalibration, cv=0.6, random_state=0
    ).fit(X, Y, groups=groups)
    scatter = model.accuracy_estimator_.scatter_
    assert (scatter.n_rows, scatter.n_clusters) == (360, 72)
    assert scatter.design_effect > 1.3
    assert "in 72 clusters, which count with up to 5 rows" in model.policy_.message_
    assert model.region_.n_samples_ in (72, 144)
    assert "360 held-out rows in 72 clusters" in str(model.estimate(X))
    assert model.estimate(X, metric="exact").high < 1  # of another estimator
    assert model.accuracy_estimator_.calibration_.clusters is not None
    blind = clone(model).fit(X, Y)
    for metric in ("f1", "micro-f1"):
        found, narrow = (m.estimate(X, metric=metric, shift="ignore") for m in (model, blind))
        assert found.high - found.low > 1.2 * (narrow.high - narrow.low)


@pytest.mark.filterwarnings("ignore::labelsure.TargetWarning")
def test_few_groups_prove_nothing():
    X, Y, groups = draw_groups(20, 30, np.random.default_rng(2))
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), "f1", target=0.5, random_state=0)
    model.fit(X, Y, groups=groups)
    assert not model.guaranteed_
    assert "Too few clusters" in model.summary_
    assert "too few for an interval" in str(model.estimate(X))
