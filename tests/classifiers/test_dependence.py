"""Joints over models that only have marginals: chains, and the layer that keeps what helps."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls

RNG = np.random.default_rng(0)
LOADINGS = np.array([0.7, 0.5, -0.6, 0.0])


def draw_dependent(n_samples, loadings=LOADINGS, seed=0):
    """Marginals of independent labels, and a truth that one hidden number moves."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, (n_samples, len(loadings)))
    hidden = rng.normal(size=(n_samples, 1))
    own = rng.normal(size=p.shape) * np.sqrt(1 - loadings**2)
    return p, (norm.ppf(p) + loadings * hidden + own > 0).astype(int)


def draw_pairs(n_samples, seed=0):
    """Features, and two labels of which the second nearly repeats the first."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 3))
    first = X[:, 0] + rng.normal(size=n_samples) > 0
    second = np.where(rng.random(n_samples) < 0.1, ~first, first)
    return X, np.column_stack([first, second, rng.random(n_samples) < 0.4]).astype(int)


# Chains.


def test_a_chain_is_logistic_regressions_on_the_log_odds():
    p, Y = draw_dependent(400)
    dist = ls.IndependentLabels(p, list("abcd"))
    chain = ls.classifiers.ChainDependence(C=2.0, gate=False).fit(dist, Y)
    logits = np.log(p / (1 - p))
    total = np.zeros(400)
    for j in range(4):
        known = np.column_stack([logits[:, j], Y[:, :j]])
        model = LogisticRegression(C=2.0, max_iter=1000).fit(known, Y[:, j])
        total += np.log(model.predict_proba(known)[np.arange(400), Y[:, j]])
    joint = chain.transform(dist)
    assert isinstance(joint, ls.distributions.ChainMixture)
    assert joint.label_names == dist.label_names
    assert_allclose(joint.log_prob(Y), total, rtol=1e-9)


def test_a_label_of_one_value_stays_as_it_is():
    p, Y = draw_dependent(60)
    Y[:, 2] = 1
    chain = ls.classifiers.ChainDependence(gate=False).fit(ls.IndependentLabels(p), Y)
    assert_array_equal(chain.curves_[:, 2], [1, 0])
    assert_array_equal(chain.weights_[2], 0)


def test_only_independent_labels_become_dependent():
    dense = ls.DenseDistribution(np.full((10, 4), 0.25))
    with pytest.raises(ls.InputError, match="ChainDependence"):
        ls.classifiers.ChainDependence().fit(dense, np.zeros((10, 2)))
    with pytest.raises(ls.InputError, match="`C`"):
        ls.classifiers.ChainDependence(C=0).fit(ls.IndependentLabels([[0.5]] * 6), np.zeros((6, 1)))


def test_an_aware_classifier_takes_them():
    X, Y = draw_pairs(300)
    model = ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(),
        "exact",
        recalibration=ls.classifiers.ChainDependence(),
        random_state=0,
    ).fit(X, Y)
    assert isinstance(model.predict_distribution(X[:5]), ls.distributions.ChainMixture)


# The classifier around it.

ALWAYS = ls.classifiers.ChainDependence(gate=False)


def test_the_layer_finds_what_helps():
    p, Y = draw_dependent(700)
    layer = ls.RecalibratedClassifier(ls.PrecomputedProbabilities(), "dependence").fit(p, Y)
    alone = ls.classifiers.ChainDependence().fit(ls.IndependentLabels(p), Y)
    assert layer.recalibration_.is_kept_
    assert_array_equal(layer.recalibration_.weights_, alone.weights_)
    assert layer.recalibration_.gain_low_ == alone.gain_low_
    assert isinstance(layer.predict_distribution(p[:3]), ls.distributions.ChainMixture)


def test_labels_stay_independent_without_a_gain():
    p, Y = draw_dependent(200, np.zeros(4))
    layer = ls.RecalibratedClassifier(ls.PrecomputedProbabilities(), "dependence").fit(p, Y)
    assert not layer.recalibration_.is_kept_
    assert isinstance(layer.predict_distribution(p), ls.IndependentLabels)
    always = ls.RecalibratedClassifier(ls.PrecomputedProbabilities(), ALWAYS).fit(p, Y)
    assert isinstance(always.predict_distribution(p), ls.distributions.ChainMixture)


@pytest.mark.parametrize("weights", [None, np.random.default_rng(8).uniform(0.1, 5, 400)])
def test_an_unfitted_model_is_judged_by_folds(weights):
    X, Y = draw_pairs(400)
    layer = ls.RecalibratedClassifier(ls.BinaryRelevance(), "dependence", cv=4, random_state=0)
    layer.fit(X, Y, weights)
    assert layer.recalibration_.is_kept_
    whole = ls.BinaryRelevance().fit(X, Y, weights)
    dist = layer.recalibration_.transform(whole.predict_distribution(X))
    assert_allclose(layer.predict_distribution(X).log_prob(Y), dist.log_prob(Y), rtol=1e-9)
    from sklearn.model_selection import KFold

    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    dists, truths, of_parts = [], [], None if weights is None else []
    for train, test in KFold(4, shuffle=True, random_state=seed).split(X):
        of_train = None if weights is None else weights[train]
        model = ls.BinaryRelevance().fit(X[train], Y[train], of_train)
        dists.append(model.predict_distribution(X[test]))
        truths.append(Y[test])
        if weights is not None:
            of_parts.append(weights[test])
    by_hand = ls.classifiers.ChainDependence().fit_parts(dists, truths, of_parts)
    assert_allclose(layer.recalibration_.weights_, by_hand.weights_, rtol=1e-9)
    assert layer.recalibration_.gain_ == pytest.approx(by_hand.gain_)


def test_a_frozen_model_is_judged_by_all_instances():
    X, Y = draw_pairs(600)
    frozen = FrozenEstimator(MultiOutputClassifier(LogisticRegression()).fit(X[:300], Y[:300]))
    layer = ls.RecalibratedClassifier(frozen, "dependence").fit(X[300:], Y[300:])
    assert layer.recalibration_.is_kept_
    assert layer.recalibration_.n_samples_ == 300
    p = norm.cdf(X[:, 0])  # what the labels really depend on
    truth = np.where(Y[:, 0] == 1, p, 1 - p) * np.where(Y[:, 0] == Y[:, 1], 0.9, 0.1)
    truth *= np.where(Y[:, 2] == 1, 0.4, 0.6)
    plain = ls.as_distribution(frozen, X).log_prob(Y).mean()
    found = layer.predict_distribution(X).log_prob(Y).mean()
    assert abs(found - np.log(truth).mean()) < 0.05 < np.log(truth).mean() - plain


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(20, random_state=0),
        make_pipeline(StandardScaler(), MultiOutputClassifier(LogisticRegression())),
    ],
)
def test_models_of_other_libraries(model):
    X, Y = draw_pairs(200)
    layer = ls.RecalibratedClassifier(model, ALWAYS, cv=3, random_state=0).fit(X, Y)
    assert layer.predict_distribution(X[:4]).log_prob(Y[:4]).shape == (4,)
    assert layer.n_features_in_ == 3


def test_frames_names_and_rows():
    X, Y = draw_pairs(60)
    frame = pd.DataFrame(X, columns=["u", "v", "w"], index=[f"r{i}" for i in range(60)])
    truth = pd.DataFrame(Y, index=frame.index, columns=["a", "b", "c"])
    columns = make_column_transformer(("passthrough", ["u", "v", "w"]))
    model = make_pipeline(columns, MultiOutputClassifier(LogisticRegression()))
    layer = ls.RecalibratedClassifier(model, ALWAYS, cv=2, random_state=0)
    layer.fit(frame, truth.iloc[::-1])  # rows go by their names
    assert layer.label_names_ == ("a", "b", "c")
    dist = layer.predict_distribution(frame.iloc[:3])
    assert list(dist.index) == ["r0", "r1", "r2"]
    in_order = ls.RecalibratedClassifier(model, ALWAYS, cv=2, random_state=0).fit(frame, truth)
    assert_allclose(in_order.predict_proba(frame), layer.predict_proba(frame))
    names = [[n for n, on in zip("abc", row, strict=True) if on] for row in Y]
    by_names = ls.RecalibratedClassifier(model, ALWAYS, cv=2, random_state=0).fit(frame, names)
    assert_allclose(by_names.predict_proba(frame), layer.predict_proba(frame))
    said = pd.DataFrame(layer.predict_proba(frame), frame.index, ["a", "b", "c"])
    swapped = ls.RecalibratedClassifier(ls.PrecomputedProbabilities(), ALWAYS)
    swapped.fit(said, truth[["c", "a", "b"]])
    assert sorted(swapped.label_names_) == ["a", "b", "c"]
    plain = ls.RecalibratedClassifier(ls.PrecomputedProbabilities(), ALWAYS).fit(said, truth)
    order = [plain.label_names_.index(name) for name in swapped.label_names_]
    said_by = [layer.predict_proba(said) for layer in (swapped, plain)]
    assert_allclose(said_by[0], said_by[1][:, order], atol=0.05)  # chains in other orders


def test_one_label_as_a_vector():
    X, Y = draw_pairs(60)
    words = np.where(Y[:, 0] == 1, "yes", "no")
    ours = ls.RecalibratedClassifier(method="dependence", random_state=0).fit(X, words)
    other = ls.RecalibratedClassifier(LogisticRegression(), "dependence", random_state=0).fit(
        X, words
    )
    for layer in (ours, other):
        assert set(layer.predict(X)) == {"yes", "no"}
        assert layer.predict_proba(X).shape == (60, 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "yes"}, "Unknown method 'yes'. Known: auto, dependence"),
        ({"method": 3}, '`method` must be "auto", "dependence" or a recalibration such as .*3'),
        ({"cv": 1}, "`cv` must be a whole number >= 2, got 1"),
        ({"estimator": np.zeros((3, 2))}, r"`estimator` must be a model, .* pass them as X"),
    ],
)
def test_settings_that_are_wrong(settings, message):
    X, Y = draw_pairs(30)
    with pytest.raises(ls.InputError, match=f"(?s){message}"):
        ls.RecalibratedClassifier(**settings).fit(X, Y)


def test_too_few_instances():
    with pytest.raises(ls.InputError, match="at least 5"):
        ls.RecalibratedClassifier(ls.PrecomputedProbabilities(), "dependence").fit(
            [[0.5]] * 4, [[1]] * 4
        )
    with pytest.raises(ls.InputError, match="`y`"):
        ls.RecalibratedClassifier(ls.PrecomputedProbabilities(), "dependence").fit(
            [[0.5]] * 4, None
        )


# Weights.


def test_the_model_and_the_layer_are_fitted_with_the_weights():
    X, Y = draw_pairs(300)
    weights = np.random.default_rng(5).uniform(0.1, 3, 300)
    weights[::7] = 0
    layer = ls.RecalibratedClassifier(method="dependence", random_state=0).fit(
        X, Y, sample_weight=weights
    )
    used = weights > 0
    alone = ls.BinaryRelevance().fit(X[used], Y[used], weights[used])
    assert_allclose(layer.estimator_.predict_proba(X), alone.predict_proba(X))
    there = ls.RecalibratedClassifier(method="dependence", random_state=0).fit(
        X[used], Y[used], weights[used]
    )
    assert_array_equal(layer.predict_proba(X), there.predict_proba(X))
    assert layer.recalibration_.gain_ == there.recalibration_.gain_
    equal = ls.RecalibratedClassifier(method="dependence", random_state=0).fit(X[used], Y[used])
    assert abs(layer.recalibration_.gain_ - equal.recalibration_.gain_) > 1e-4


def test_what_is_held_out_counts_by_its_weight():
    p, Y = draw_dependent(400)
    weights = np.where(Y[:, 0] == Y[:, 1], 5.0, 0.2)
    settled = ls.RecalibratedClassifier(ls.PrecomputedProbabilities(), "dependence").fit(
        p, Y, weights
    )
    even = ls.RecalibratedClassifier(ls.PrecomputedProbabilities(), "dependence").fit(p, Y)
    assert settled.recalibration_.weights_[1, 0] > even.recalibration_.weights_[1, 0] + 0.5


def test_models_that_take_no_weights_are_refused_some():
    from sklearn.neighbors import KNeighborsClassifier

    X, Y = draw_pairs(40)
    with pytest.raises(ls.InputError, match="KNeighborsClassifier"):
        ls.RecalibratedClassifier(KNeighborsClassifier(), "dependence").fit(X, Y, np.ones(40))
    with pytest.raises(ls.InputError, match="KNeighborsClassifier"):
        ls.RecalibratedClassifier(ls.BinaryRelevance(KNeighborsClassifier()), "dependence").fit(
            X, Y, np.ones(40)
        )
    forest = ls.RecalibratedClassifier(
        RandomForestClassifier(5, random_state=0), "dependence", random_state=0
    )
    weights = np.where(Y[:, 2] == 1, 10.0, 0.1)
    weighted = forest.fit(X, Y, weights).predict_proba(X)[:, 2].mean()
    assert weighted > forest.fit(X, Y).predict_proba(X)[:, 2].mean() + 0.1
    with pytest.raises(ls.InputError, match="`sample_weight`"):
        forest.fit(X, Y, np.ones(3))


def test_the_card_of_a_model_says_what_the_layer_chose():
    X, Y = draw_pairs(200)
    model = ls.AccuracyAwareClassifier(
        ls.RecalibratedClassifier(method="dependence", random_state=0), cv=0.3, random_state=0
    )
    model.fit(X, Y)
    found = model.estimator_.recalibration_
    text = "RecalibratedClassifier: A chain over the labels: kept. Mean gain in the truth's "
    text += f"log-probability on held-out rows: {found.gain_:+.4f}"
    assert model.card_.classifier.startswith(text)
    assert str(model.card_).splitlines()[0] == f"classifier: {model.card_.classifier}"
    assert dict(model.report().data["facts"])["classifier"] == model.card_.classifier


# What "auto" chooses.


@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        (None, ls.LabelwiseCalibration),
        (ls.ProbabilisticClassifierChain(), ls.TemperatureScaling),
        (ls.classifiers.ClassifierTrellis(random_state=0), ls.TemperatureScaling),
    ],
)
def test_the_recalibration_follows_from_the_kind_of_distribution(estimator, kind):
    X, Y = draw_pairs(200)
    model = ls.RecalibratedClassifier(estimator, cv=2, random_state=0).fit(X, Y)
    found = model.recalibration_
    assert type(found) is kind
    plain = ls.as_distribution(model.estimator_, X[:9])
    expected = found.transform(plain).marginals()
    assert_array_equal(model.predict_distribution(X[:9]).marginals(), expected)


def test_other_kinds_and_few_instances_are_left_as_they_are():
    X, Y = draw_pairs(200)
    powerset = ls.RecalibratedClassifier(ls.classifiers.LabelPowerset(), random_state=0).fit(X, Y)
    assert powerset.recalibration_ is None
    few = ls.RecalibratedClassifier(random_state=0).fit(X[:49], Y[:49])
    assert few.recalibration_ is None
    plain = ls.BinaryRelevance(random_state=0).fit(X[:49], Y[:49])
    assert_allclose(few.predict_proba(X), plain.predict_proba(X))
    assert ls.RecalibratedClassifier(random_state=0).fit(X[:50], Y[:50]).recalibration_ is not None


def test_every_method_as_an_object():
    p, Y = draw_dependent(400)
    dist = ls.IndependentLabels(p**3 / (p**3 + (1 - p) ** 3))  # overconfident
    said = dist.marginals()
    for given, kind in (
        (ls.LabelwiseCalibration(), ls.LabelwiseCalibration),
        (ls.TemperatureScaling(), ls.TemperatureScaling),
        (ls.classifiers.ChainDependence(), ls.classifiers.ChainDependence),
        ("dependence", ls.classifiers.ChainDependence),
    ):
        alone = kind().fit(dist, Y)
        assert alone.is_kept_
        model = ls.RecalibratedClassifier(ls.PrecomputedProbabilities(), given).fit(said, Y)
        assert type(model.recalibration_) is kind
        assert_allclose(model.predict_proba(said), alone.transform(dist).marginals())
