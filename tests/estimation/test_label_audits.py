"""Measures of labels and their averages from labelled rows of the batch."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.metrics import f1_score, precision_recall_fscore_support

import labelsure as ls
from labelsure.estimation._label_estimates import LABEL_METRICS, MEASURES


def batch(n_samples, seed, drift=0.0):
    """Marginals and labels; a share of rows in which the first two labels change their meaning."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n_samples, 4)) - [0.0, 0.5, 1.0, 2.0]
    Y = (rng.random(logits.shape) < expit(0.8 * logits)).astype(int)
    Y[rng.random(n_samples) < drift, :2] ^= 1
    return ls.IndependentLabels(expit(logits), label_names=["a", "b", "c", "d"]), Y


DIST, Y = batch(800, 0)
ESTIMATOR = ls.AccuracyEstimator("f1").fit(DIST[:300], Y[:300])
BATCH, TRUTH = DIST[300:], Y[300:]


@pytest.mark.parametrize("Y_pred", [None, 1 - BATCH.mode()])
def test_with_all_labels_the_values_are_those_of_sklearn(Y_pred):
    predicted = BATCH.mode() if Y_pred is None else Y_pred
    given = {"Y_pred": Y_pred, "rows": np.arange(500), "Y_true": TRUTH}
    for metric in LABEL_METRICS:
        average, name = metric.split("-")
        values = precision_recall_fscore_support(TRUTH, predicted, average=average)
        expected = dict(zip(MEASURES, values, strict=False))[name]
        found = ESTIMATOR.estimate(BATCH, metric=metric, **given)
        assert_allclose([found.low, found.mean, found.high], expected, atol=1e-12)
    table = ESTIMATOR.estimate_labels(BATCH, **given).to_frame()
    of_labels = precision_recall_fscore_support(TRUTH, predicted)
    for name, values in zip(MEASURES, of_labels, strict=False):
        assert_allclose(table[name], values)
        assert_allclose(table[f"{name}_high"], values)
    assert table["n_predicted"].tolist() == predicted.sum(axis=0).tolist()
    assert_allclose(table["n_true_low"], TRUTH.sum(axis=0))


@pytest.mark.jit_only
def test_labels_of_the_batch_cover_where_the_calibration_set_misleads():
    covered = dict.fromkeys(("micro-f1", "macro-f1", "labels", "without labels"), 0.0)
    n_repeats = 25
    for repeat in range(n_repeats):
        dist, truth = batch(500, 100 + repeat, drift=0.5)
        rows = np.random.default_rng(repeat).choice(500, 100, replace=False)
        given = {"rows": rows, "Y_true": truth[rows]}
        for metric in ("micro-f1", "macro-f1"):
            true = f1_score(truth, dist.mode(), average=metric[:5])
            found = ESTIMATOR.estimate(dist, metric=metric, **given)
            covered[metric] += found.low <= true <= found.high
            assert found.n_labelled == 100
            assert "100 rows labelled, assumed drawn at random" in str(found)
        alone = ESTIMATOR.estimate(dist, metric="macro-f1", shift="ignore")
        covered["without labels"] += alone.low <= true <= alone.high
        table, of_labels = (
            ESTIMATOR.estimate_labels(dist, **given).to_frame(),
            f1_score(truth, dist.mode(), average=None),
        )
        inside = (table["f1_low"] <= of_labels) & (of_labels <= table["f1_high"])
        covered["labels"] += inside.mean()
    shares = {name: value / n_repeats for name, value in covered.items()}
    assert shares.pop("without labels") < 0.2
    assert min(shares.values()) >= 0.85


def test_the_order_of_labelled_rows_does_not_matter():
    rows = np.random.default_rng(0).choice(500, 40, replace=False)
    named = BATCH.marginals()
    named = ls.as_distribution(pd.DataFrame(named, [f"r{i}" for i in range(500)], list("abcd")))
    usual = ESTIMATOR.estimate_labels(BATCH, rows=rows, Y_true=TRUTH[rows]).to_frame()
    turned = rows[::-1]
    assert usual.equals(
        ESTIMATOR.estimate_labels(BATCH, rows=turned, Y_true=TRUTH[turned]).to_frame()
    )
    frame = pd.DataFrame(TRUTH[rows], [f"r{i}" for i in rows], list("abcd"))
    assert usual.equals(ESTIMATOR.estimate_labels(named, Y_true=frame[list("dcba")]).to_frame())


def test_refusals():
    for ask in (
        lambda **given: ESTIMATOR.estimate(BATCH, metric="micro-f1", **given),
        lambda **given: ESTIMATOR.estimate_labels(BATCH, **given).to_frame(),
    ):
        with pytest.raises(ls.InputError, match=r"At least 10 rows must be labelled .* got 9"):
            ask(rows=np.arange(9), Y_true=TRUTH[:9])
        with pytest.raises(ls.InputError, match="`Y_true` must be given with `rows`"):
            ask(rows=np.arange(30))
        with pytest.raises(ls.InputError, match="`rows` must be the positions"):
            ask(Y_true=TRUTH[:30])
        chosen = np.argsort(ESTIMATOR.predict(BATCH))[:60]
        with pytest.warns(UserWarning, match="must be drawn at random.*draw_audit"):
            ask(rows=chosen, Y_true=TRUTH[chosen])
    for settings in ({"interval": "betting"}, {"shift": "weighted"}):
        with pytest.raises(ls.InputError, match="`metric` must be a mean over rows"):
            ESTIMATOR.estimate(BATCH, metric="micro-f1", **settings)
