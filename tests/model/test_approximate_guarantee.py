"""`guarantee="approximate"`: all calibration rows for estimator and policy, and said so."""

import numpy as np
import pytest

import labelsure as ls

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1000, 4))
Y = (X[:, :3] + 0.8 * RNG.normal(size=(1000, 3)) > 0).astype(int)
ROWS = slice(300)


def fit(guarantee, metric="hamming", target=0.86, **settings):
    model = ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(),
        metric,
        target,
        guarantee=guarantee,
        cv=0.5,
        random_state=0,
        **settings,
    )
    return model.fit(X[ROWS], Y[ROWS])


@pytest.mark.filterwarnings("ignore::labelsure.TargetWarning")
@pytest.mark.parametrize("metric", ["hamming", "f1", "exact"])
@pytest.mark.parametrize("recalibration", ["auto", ls.TemperatureScaling(gate=False)])
def test_all_calibration_rows_serve_the_policy(metric, recalibration):
    target = {"hamming": 0.84, "f1": 0.75, "exact": 0.6}[metric]
    exact, approximate = (
        fit(guarantee, metric, target, recalibration=recalibration)
        for guarantee in ("exact", "approximate")
    )
    assert exact.policy_.n_samples_ == 75
    assert approximate.policy_.n_samples_ == approximate.card_.n_calibration == 150
    assert exact.card_.n_calibration == 150
    assert not approximate.guaranteed_
    # Scores are estimates by models that were fitted to other rows.
    estimated, accuracy = approximate.accuracy_estimator_.compare_estimates()
    assert sorted(approximate.policy_.scores_) == sorted(estimated)
    assert sorted(approximate.policy_.accuracies_) == sorted(accuracy)


def test_every_text_says_approximately():
    model = fit("approximate", target=0.76)
    assert model.policy_.reached_
    assert (
        "mean Hamming accuracy of accepted predictions is approximately at least 0.76"
        in model.summary_
    )
    assert "Approximate, not guaranteed" in model.summary_
    assert "guaranteed: the policy" not in model.summary_.lower()
    page = model.report(X[300:600]).data
    assert "average approximately at least 0.76 Hamming accuracy" in page["answer"][1]
    said = " ".join(map(str, page["steps"])) if "steps" in page else str(page)
    assert "Approximate: predictions accepted here average approximately at least" in said
    assert "Guaranteed:" not in said
    accepted = model.accept(X[300:])
    values = ls.accuracy(Y[300:], model.predict(X[300:]), "hamming")
    assert values[accepted].mean() > 0.75


def test_an_unknown_guarantee_is_refused():
    with pytest.raises(ls.errors.UnknownNameError, match="Known: exact, approximate"):
        fit("none", target=None)
