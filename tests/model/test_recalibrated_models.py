"""`AccuracyAwareClassifier` with a recalibration: what it is fitted to, and what goes by it."""

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

import labelsure as ls
from labelsure.estimation._accuracy_model import LabelsetFrequencies
from labelsure.model import _calibration

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 20))
Y = (X[:, :3] + X[:, 1:4] + RNG.normal(size=(240, 3)) > 0.5).astype(int)
NEW = RNG.normal(size=(30, 20))
METRIC, TARGET = "jaccard", 0.2
LEARNER = LogisticRegression(C=1e4)  # with so many features, overconfident

MODELS = {
    "temperature": ls.BinaryRelevance(LEARNER),
    "temperature of a trellis": ls.classifiers.ClassifierTrellis(LEARNER, random_state=0),
    "temperature of chains": ls.EnsembleOfClassifierChains(LEARNER, n_chains=2, random_state=0),
    "labels": ls.BinaryRelevance(LEARNER),
}
OBJECTS = {
    "temperature": ls.TemperatureScaling,
    "labels": ls.LabelwiseCalibration,
}


def aware(kind, model=None, **settings):
    plain = {
        "metric": METRIC,
        "random_state": 0,
        "recalibration": by_hand(kind),
        "decision": "mode",
    }
    model = MODELS[kind] if model is None else model
    return ls.AccuracyAwareClassifier(model, **{**plain, **settings})


def by_hand(kind):
    return OBJECTS[kind.split()[0]]()


def assert_same(model, dist, estimator, policy):
    """Everything that the model says of new instances is what its parts say."""
    found = model.predict_distribution(NEW)
    np.testing.assert_allclose(found.marginals(), dist.marginals(), rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(NEW), dist.marginals(), rtol=1e-9)
    assert_array_equal(model.predict(NEW), dist.mode())
    np.testing.assert_allclose(model.predict_accuracy(NEW), estimator.predict(dist), rtol=1e-12)
    assert model.estimate(NEW).mean == pytest.approx(estimator.estimate(dist).mean, rel=1e-12)
    assessed = model.assess(NEW)
    expected = ls.expected_accuracy(dist, metric=METRIC).value
    np.testing.assert_allclose(assessed.expected, expected, rtol=1e-12)
    np.testing.assert_allclose(assessed.distribution.marginals(), dist.marginals(), rtol=1e-9)
    if policy is not None:
        assert_array_equal(model.accept(NEW), policy.accept(estimator.predict(dist)))


def recalibrated_by_others(kind, dists, truths):
    """Each distribution as a recalibration of the others makes it."""
    found = []
    for i, dist in enumerate(dists):
        others = [j for j in range(len(dists)) if j != i]
        recalibration = by_hand(kind).fit_parts(
            [dists[j] for j in others], [truths[j] for j in others]
        )
        recalibration.is_kept_ = True
        found.append(recalibration.transform(dist))
    return found


@pytest.mark.parametrize("kind", MODELS)
def test_held_out_it_is_fitted_to_the_half_of_the_accuracy_estimator(kind):
    inner = clone(MODELS[kind]).fit(X[:100], Y[:100])
    model = aware(kind, FrozenEstimator(inner), target=TARGET).fit(X[100:], Y[100:])
    assert model.guaranteed_
    order = 100 + np.random.RandomState(0).permutation(140)
    first, second = order[:70], order[70:]
    recalibration = by_hand(kind).fit(inner.predict_distribution(X[first]), Y[first])
    assert recalibration.is_kept_
    assert str(model.recalibration_) == str(recalibration)
    truths, whole = np.split(Y[first], 5), inner.predict_distribution(X[first])
    dists = [whole[rows] for rows in np.split(np.arange(70), 5)]
    tables = [
        ls.ScoreTable.from_distribution(dist, truth)
        for dist, truth in zip(recalibrated_by_others(kind, dists, truths), truths, strict=True)
    ]
    estimator = ls.AccuracyEstimator(METRIC).fit(ls.ScoreTable.concatenate(tables))
    later = recalibration.transform(inner.predict_distribution(X[second]))
    realised = ls.accuracy(Y[second], later.mode(), METRIC)
    policy = ls.AcceptPolicy(TARGET).fit(estimator.predict(later), realised)
    dist = recalibration.transform(inner.predict_distribution(NEW))
    assert (dist.marginals() != inner.predict_distribution(NEW).marginals()).any()
    assert_same(model, dist, estimator, policy)


def test_the_truth_of_the_policys_half_has_no_part_in_it():
    order = np.random.RandomState(0).permutation(240)
    other = Y.copy()
    other[order[48:96]] = 1 - other[order[48:96]]
    models = [aware("temperature", share=0.5, cv=0.4).fit(X, truth) for truth in (Y, other)]
    assert models[0].recalibration_.n_samples_ == 48
    assert str(models[0].recalibration_) == str(models[1].recalibration_)
    assert models[0].card_.n_for_policy == 48
    without_policy = aware("temperature", cv=0.4).fit(X, Y)  # the other half is the region's
    assert without_policy.recalibration_.n_samples_ == 48
    assert without_policy.region_.n_samples_ == 48
    assert without_policy.card_.n_for_estimator == 96
    assert aware("temperature", cv=0.4, recalibration=None).fit(X, Y).region_.n_samples_ == 96


@pytest.mark.parametrize("kind", MODELS)
def test_cross_fitted_it_is_fitted_to_the_distributions_of_all_folds(kind):
    model = aware(kind, cv=3).fit(X, Y)
    assert not model.guaranteed_
    dists, truths, seen = [], [], []
    for train, test in KFold(3, shuffle=True, random_state=0).split(X):
        fitted = clone(MODELS[kind]).fit(X[train], Y[train])
        dists.append(fitted.predict_distribution(X[test]))
        truths.append(Y[test])
        seen.append(LabelsetFrequencies.of(Y[train]))
    recalibration = by_hand(kind).fit_parts(dists, truths)
    assert recalibration.is_kept_
    assert str(model.recalibration_) == str(recalibration)
    tables = [
        known.add_to(ls.ScoreTable.from_distribution(dist, truth, metrics=[METRIC]))
        for dist, truth, known in zip(
            recalibrated_by_others(kind, dists, truths), truths, seen, strict=True
        )
    ]
    estimator = ls.AccuracyEstimator(METRIC).fit(ls.ScoreTable.concatenate(tables), Y_train=Y)
    fitted = clone(MODELS[kind]).fit(X, Y)
    assert_same(model, recalibration.transform(fitted.predict_distribution(NEW)), estimator, None)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("labels", ls.LabelwiseCalibration),
        ("temperature of chains", ls.TemperatureScaling),
        ("temperature of a trellis", ls.TemperatureScaling),
    ],
)
@pytest.mark.parametrize("cv", [3, 0.5])
def test_auto_goes_by_the_kind_of_distribution(kind, expected, cv):
    model = aware(kind, recalibration="auto", cv=cv).fit(X, Y)
    assert type(model.recalibration_) is expected
    assert model.recalibration_.gate
    assert model.recalibration_.n_samples_ == (240 if cv == 3 else 60)


def test_auto_leaves_other_kinds_and_few_rows_as_they_are():
    votes = ls.LabelPowerset(LEARNER)
    assert aware("labels", votes, recalibration="auto", cv=0.5).fit(X, Y).recalibration_ is None
    model = aware("labels", recalibration="auto", cv=0.4).fit(X, Y)
    assert model.recalibration_ is None  # 48 rows


def test_best_decisions_are_of_the_recalibrated_distributions():
    model = aware("temperature of chains", metric="f1", decision="best", cv=0.4).fit(X, Y)
    assert model.recalibration_.is_kept_
    dist = model.predict_distribution(NEW)
    assert_array_equal(model.predict(NEW), ls.decide(dist, "f1").labelsets)
    plain = model.estimator_.predict_distribution(NEW)
    assert (ls.decide(dist, "f1").labelsets != ls.decide(plain, "f1").labelsets).any()
    table = model.accuracy_estimator_
    np.testing.assert_allclose(
        model.predict_accuracy(NEW), table.predict(dist, ls.decide(dist, "f1").labelsets)
    )


def test_the_models_own_predictions_stay_its_own():
    model = aware("labels", decision="predict", cv=0.4).fit(X, Y)
    assert_array_equal(model.predict(NEW), model.estimator_.predict(NEW))


def test_what_does_not_help_changes_nothing():
    """A constant model that is right: nothing to learn."""
    rng = np.random.default_rng(1)
    P = rng.uniform(0.1, 0.9, size=(300, 3))
    truth = (rng.random(P.shape) < P).astype(int)
    settings = {"metric": METRIC, "random_state": 0}
    inner = ls.PrecomputedProbabilities()
    plain, gated = (
        ls.AccuracyAwareClassifier(inner, recalibration=kind, **settings).fit(P, truth)
        for kind in (None, ls.TemperatureScaling())
    )
    assert plain.recalibration_ is None
    assert plain.card_.recalibration is None
    assert "recalibration" not in str(plain.card_)
    assert not gated.recalibration_.is_kept_
    assert_array_equal(plain.predict_accuracy(P), gated.predict_accuracy(P))


def test_the_card_says_what_was_found():
    model = aware("temperature", cv=0.4).fit(X, Y)
    assert model.card_.recalibration == str(model.recalibration_)
    assert "\nrecalibration: Temperature scaling, temperature " in str(model.card_)
    assert model.card_.to_dict()["recalibration"] == str(model.recalibration_)


def test_objects_are_cloned_and_their_parameters_can_be_set():
    given = ls.TemperatureScaling(gate=False)
    model = aware("temperature", recalibration=given, cv=0.4).fit(X, Y)
    assert not hasattr(given, "temperature_")
    assert model.recalibration_.gate is False
    model.set_params(recalibration__gate=True).fit(X, Y)
    assert model.recalibration_.gate is True


def test_settings_that_are_none():
    with pytest.raises(
        ls.InputError,
        match="recalibration",
    ):
        aware("temperature", recalibration="temp").fit(X, Y)
    message = (
        '`recalibration` must be "auto", None or an object such as '
        "`TemperatureScaling(gate=False)`, got 3."
    )
    with pytest.raises(ls.InputError, match=re.escape(message)):
        aware("temperature", recalibration=3).fit(X, Y)


def test_a_recalibration_of_another_fit_has_no_part():
    """The folds are asked anew, not through what an earlier fit has found."""
    model = aware("temperature", cv=0.4, recalibration=ls.TemperatureScaling(gate=False)).fit(X, Y)
    first = model.recalibration_.temperature_
    assert first > 1.1
    assert model.fit(X, Y).recalibration_.temperature_ == first


def test_auto_leaves_a_recalibrated_classifier_alone():
    """Its own gate may choose another kind of distribution in each fold."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    Y = (X + rng.normal(size=(300, 3)) > 0).astype(int)
    inner = ls.RecalibratedClassifier(ls.BinaryRelevance(), "dependence", random_state=0)
    for cv in (3, 0.4):
        model = ls.AccuracyAwareClassifier(inner, "jaccard", cv=cv, random_state=0).fit(X, Y)
        assert model.recalibration_ is None


def test_a_recalibration_that_costs_accuracy_is_not_kept_and_says_why(monkeypatch):
    """Overconfident marginals, whose likelihood recalibration raises; accuracies are made up."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(400, 3))
    truth = (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(int)
    P = 1 / (1 + np.exp(-4 * logits))
    model = ls.AccuracyAwareClassifier(ls.PrecomputedProbabilities(), "f1", random_state=0)
    assert model.fit(P, truth).recalibration_.is_kept_
    values = iter([np.full(200, 0.6), np.full(200, 0.5)])
    monkeypatch.setattr(_calibration, "accuracy", lambda *args, **settings: next(values))
    found = model.fit(P, truth).recalibration_
    assert not found.is_kept_
    said = "not kept because decisions become less accurate on these rows, mean F1 0.600 to 0.500"
    assert said in model.card_.recalibration
    assert_array_equal(model.predict_distribution(P).marginals(), P.clip(2**-24, 1 - 2**-24))
