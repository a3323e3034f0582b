"""Joints over models that only have marginals: copulas, chains and the layer that chooses."""

import numpy as np
import oracles_joints
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal, norm
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls
from labelsure.recalibration import _dependence

RNG = np.random.default_rng(0)
LOADINGS = np.array([0.7, 0.5, -0.6, 0.0])


def draw_copula(n_samples, loadings=LOADINGS, seed=0):
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


# Copulas.


def test_a_copula_keeps_the_marginals_at_any_loading():
    p = np.array([[0.01, 0.5, 0.9, 0.999], [0.3, 1e-6, 0.5, 0.2]])
    copula = ls.CopulaDependence()
    for loadings in (LOADINGS, np.full(4, 0.8), np.array([-0.8, 0.8, 0.3, -0.1])):
        joint = copula._apply(ls.IndependentLabels(p), loadings)
        assert_allclose(joint.marginals(), p, atol=1e-10)


def test_a_copula_is_that_of_scipy():
    """The probability that all labels come is a multivariate normal's."""
    p = np.array([[0.3, 0.6, 0.8, 0.5]])
    joint = ls.CopulaDependence()._apply(ls.IndependentLabels(p), LOADINGS)
    correlations = np.outer(LOADINGS, LOADINGS)
    np.fill_diagonal(correlations, 1.0)
    expected = multivariate_normal(np.zeros(4), correlations).cdf(norm.ppf(p[0]))
    assert_allclose(np.exp(joint.log_prob([[1, 1, 1, 1]])), expected, atol=1e-5)
    by_loops = oracles_joints.joint_of_copula(
        p[0].tolist(), LOADINGS.tolist(), _dependence.NODES.tolist(), _dependence.NODE_WEIGHTS
    )
    assert_allclose(joint.probabilities()[0], by_loops, rtol=1e-9)


def test_the_slope_of_the_loss_is_that_of_differences():
    p, Y = draw_copula(30)
    thresholds = norm.ppf(p)
    shares = np.random.default_rng(1).dirichlet(np.ones(30))
    _, slope = _dependence._copula_loss(LOADINGS, thresholds, Y, shares)
    for j in range(4):
        step = np.zeros(4)
        step[j] = 1e-5
        ends = [
            _dependence._copula_loss(LOADINGS + s * step, thresholds, Y, shares)[0] for s in (1, -1)
        ]
        assert slope[j] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-7)
    dist = ls.CopulaDependence()._apply(ls.IndependentLabels(p), LOADINGS)
    loss, _ = _dependence._copula_loss(LOADINGS, thresholds, Y, shares)
    assert loss == pytest.approx(-(shares * dist.log_prob(Y)).sum())


def test_loadings_are_found():
    p, Y = draw_copula(2500)
    copula = ls.CopulaDependence().fit(ls.IndependentLabels(p), Y)
    assert_allclose(copula.loadings_, LOADINGS, atol=0.1)
    assert copula.is_kept_
    assert copula.loadings_.sum() >= 0
    p, Y = draw_copula(500, np.zeros(4))
    none = ls.CopulaDependence().fit(ls.IndependentLabels(p), Y)
    assert not none.is_kept_
    assert isinstance(none.transform(ls.IndependentLabels(p)), ls.IndependentLabels)


# Chains.


def test_a_chain_is_logistic_regressions_on_the_log_odds():
    p, Y = draw_copula(400)
    dist = ls.IndependentLabels(p, list("abcd"))
    chain = ls.ChainDependence(C=2.0, gate=False).fit(dist, Y)
    logits = np.log(p / (1 - p))
    total = np.zeros(400)
    for j in range(4):
        known = np.column_stack([logits[:, j], Y[:, :j]])
        model = LogisticRegression(C=2.0, max_iter=1000).fit(known, Y[:, j])
        total += np.log(model.predict_proba(known)[np.arange(400), Y[:, j]])
    joint = chain.transform(dist)
    assert isinstance(joint, ls.ChainMixture)
    assert joint.label_names == dist.label_names
    assert_allclose(joint.log_prob(Y), total, rtol=1e-9)


def test_a_label_of_one_value_stays_as_it_is():
    p, Y = draw_copula(60)
    Y[:, 2] = 1
    chain = ls.ChainDependence(gate=False).fit(ls.IndependentLabels(p), Y)
    assert (chain.slopes_[2], chain.intercepts_[2]) == (1, 0)
    assert_array_equal(chain.weights_[2], 0)


@pytest.mark.parametrize("kind", [ls.CopulaDependence, ls.ChainDependence])
def test_only_independent_labels_become_dependent(kind):
    dense = ls.DenseDistribution(np.full((10, 4), 0.25))
    with pytest.raises(ls.InputError, match=r"must be IndependentLabels for a .*Dependence, which"):
        kind().fit(dense, np.zeros((10, 2)))
    with pytest.raises(ls.InputError, match="`C` must be a number above 0, got 0"):
        ls.ChainDependence(C=0).fit(ls.IndependentLabels([[0.5]] * 6), np.zeros((6, 1)))


def test_an_aware_classifier_takes_them():
    X, Y = draw_pairs(300)
    model = ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(), "exact", recalibration=ls.ChainDependence(), random_state=0
    ).fit(X, Y)
    assert isinstance(model.predict_distribution(X[:5]), ls.ChainMixture)


# The layer.


def test_the_layer_finds_what_helps():
    p, Y = draw_copula(700)
    layer = ls.DependenceLayer(ls.PrecomputedProbabilities()).fit(p, Y)
    assert layer.kind_ == "copula"
    assert isinstance(layer.predict_distribution(p[:3]), ls.IndependentMixture)
    assert_allclose(layer.predict_proba(p[:3]), p[:3], atol=1e-9)
    table = layer.report()
    assert list(table.index) == ["independent", "copula", "chain", "temperature"]
    assert table["in_use"].tolist() == [False, True, False, False]
    plain = ls.IndependentLabels(p).log_prob(Y).mean()
    assert table.loc["independent", "mean_log_prob"] == pytest.approx(plain)
    copula = ls.CopulaDependence().fit(ls.IndependentLabels(p), Y)
    ends = table.loc["copula", ["gain", "gain_low", "gain_high"]]
    assert_allclose(ends.astype(float), [copula.gain_, copula.gain_low_, copula.gain_high_])
    assert not table.loc["temperature", "passes"]


def test_labels_stay_independent_without_a_gain():
    p, Y = draw_copula(200, np.zeros(4))
    layer = ls.DependenceLayer(ls.PrecomputedProbabilities()).fit(p, Y)
    assert layer.kind_ == "independent"
    assert isinstance(layer.predict_distribution(p), ls.IndependentLabels)
    for kind in ("copula", "chain", "temperature", "independent"):
        assert layer.set_params(kind=kind)._choose() == "independent"
    always = ls.DependenceLayer(ls.PrecomputedProbabilities(), "copula", gate=False).fit(p, Y)
    assert always.kind_ == "copula"


@pytest.mark.parametrize("weights", [None, np.random.default_rng(8).uniform(0.1, 5, 400)])
def test_an_unfitted_model_is_judged_by_folds(weights):
    X, Y = draw_pairs(400)
    layer = ls.DependenceLayer(ls.BinaryRelevance(), "chain", cv=4, random_state=0)
    layer.fit(X, Y, weights)
    assert layer.kind_ == "chain"
    whole = ls.BinaryRelevance().fit(X, Y, weights)
    dist = layer.layers_["chain"].transform(whole.predict_distribution(X))
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
    by_hand = ls.ChainDependence().fit_parts(dists, truths, of_parts)
    assert_allclose(layer.layers_["chain"].weights_, by_hand.weights_, rtol=1e-9)
    assert layer.layers_["chain"].gain_ == pytest.approx(by_hand.gain_)


def test_a_frozen_model_is_judged_by_all_instances():
    X, Y = draw_pairs(600)
    frozen = FrozenEstimator(MultiOutputClassifier(LogisticRegression()).fit(X[:300], Y[:300]))
    layer = ls.DependenceLayer(frozen).fit(X[300:], Y[300:])
    assert layer.kind_ == "chain"
    assert layer.layers_["chain"].n_samples_ == 300
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
    layer = ls.DependenceLayer(model, "chain", gate=False, cv=3, random_state=0).fit(X, Y)
    assert layer.predict_distribution(X[:4]).log_prob(Y[:4]).shape == (4,)
    assert layer.n_features_in_ == 3


def test_frames_names_and_rows():
    X, Y = draw_pairs(60)
    frame = pd.DataFrame(X, columns=["u", "v", "w"], index=[f"r{i}" for i in range(60)])
    truth = pd.DataFrame(Y, index=frame.index, columns=["a", "b", "c"])
    columns = make_column_transformer(("passthrough", ["u", "v", "w"]))
    model = make_pipeline(columns, MultiOutputClassifier(LogisticRegression()))
    layer = ls.DependenceLayer(model, "chain", gate=False, cv=2, random_state=0)
    layer.fit(frame, truth.iloc[::-1])  # rows go by their names
    assert layer.label_names_ == ("a", "b", "c")
    dist = layer.predict_distribution(frame.iloc[:3])
    assert list(dist.index) == ["r0", "r1", "r2"]
    in_order = ls.DependenceLayer(model, "chain", gate=False, cv=2, random_state=0).fit(
        frame, truth
    )
    assert_allclose(in_order.predict_proba(frame), layer.predict_proba(frame))
    names = [[n for n, on in zip("abc", row, strict=True) if on] for row in Y]
    by_names = ls.DependenceLayer(model, "chain", gate=False, cv=2, random_state=0).fit(
        frame, names
    )
    assert_allclose(by_names.predict_proba(frame), layer.predict_proba(frame))
    said = pd.DataFrame(layer.predict_proba(frame), frame.index, ["a", "b", "c"])
    swapped = ls.DependenceLayer(ls.PrecomputedProbabilities(), "chain", gate=False)
    swapped.fit(said, truth[["c", "a", "b"]])
    assert sorted(swapped.label_names_) == ["a", "b", "c"]
    plain = ls.DependenceLayer(ls.PrecomputedProbabilities(), "chain", gate=False).fit(said, truth)
    by_name = swapped.mean_log_prob_
    assert by_name == pytest.approx(plain.mean_log_prob_)


def test_one_label_as_a_vector():
    X, Y = draw_pairs(60)
    words = np.where(Y[:, 0] == 1, "yes", "no")
    ours = ls.DependenceLayer(random_state=0).fit(X, words)
    other = ls.DependenceLayer(LogisticRegression(), random_state=0).fit(X, words)
    for layer in (ours, other):
        assert set(layer.predict(X)) == {"yes", "no"}
        assert layer.predict_proba(X).shape == (60, 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "tree"}, "Unknown kind 'tree'"),
        ({"gate": "yes"}, "`gate` must be True or False, got 'yes'"),
        ({"cv": 1}, "`cv` must be a whole number of folds >= 2, got 1"),
        ({"estimator": np.zeros((3, 2))}, r"`estimator` must be a model, fitted or not, .*are X"),
    ],
)
def test_settings_that_are_wrong(settings, message):
    X, Y = draw_pairs(30)
    with pytest.raises(ls.InputError, match=f"(?s){message}"):
        ls.DependenceLayer(**settings).fit(X, Y)


def test_too_few_instances():
    with pytest.raises(ls.InputError, match="At least 10 instances are needed, got 4"):
        ls.DependenceLayer(ls.PrecomputedProbabilities()).fit([[0.5]] * 4, [[1]] * 4)
    with pytest.raises(ls.InputError, match="`y` must hold the true labelsets"):
        ls.DependenceLayer(ls.PrecomputedProbabilities()).fit([[0.5]] * 4, None)


# Weights.


def test_the_model_and_the_layer_are_fitted_with_the_weights():
    X, Y = draw_pairs(300)
    weights = np.random.default_rng(5).uniform(0.1, 3, 300)
    weights[::7] = 0
    layer = ls.DependenceLayer(random_state=0).fit(X, Y, sample_weight=weights)
    used = weights > 0
    alone = ls.BinaryRelevance().fit(X[used], Y[used], weights[used])
    assert_allclose(layer.estimator_.predict_proba(X), alone.predict_proba(X))
    there = ls.DependenceLayer(random_state=0).fit(X[used], Y[used], weights[used])
    assert_array_equal(layer.predict_proba(X), there.predict_proba(X))
    assert layer.mean_log_prob_ == there.mean_log_prob_
    equal = ls.DependenceLayer(random_state=0).fit(X[used], Y[used])
    assert abs(layer.mean_log_prob_ - equal.mean_log_prob_) > 1e-4


def test_what_is_held_out_counts_by_its_weight():
    p, Y = draw_copula(400)
    weights = np.where(Y[:, 0] == Y[:, 1], 5.0, 0.2)
    settled = ls.DependenceLayer(ls.PrecomputedProbabilities()).fit(p, Y, weights)
    logs = ls.IndependentLabels(p).log_prob(Y)
    assert settled.mean_log_prob_ == pytest.approx(np.average(logs, weights=weights))
    even = ls.DependenceLayer(ls.PrecomputedProbabilities()).fit(p, Y)
    loadings = [layer.layers_["copula"].loadings_ for layer in (settled, even)]
    assert loadings[0][0] * loadings[0][1] > loadings[1][0] * loadings[1][1] + 0.1


def test_models_that_take_no_weights_are_refused_some():
    from sklearn.neighbors import KNeighborsClassifier

    X, Y = draw_pairs(40)
    with pytest.raises(ls.InputError, match="KNeighborsClassifier does not take weights"):
        ls.DependenceLayer(KNeighborsClassifier()).fit(X, Y, np.ones(40))
    with pytest.raises(ls.InputError, match="KNeighborsClassifier does not take weights"):
        ls.DependenceLayer(ls.BinaryRelevance(KNeighborsClassifier())).fit(X, Y, np.ones(40))
    forest = ls.DependenceLayer(RandomForestClassifier(5, random_state=0), random_state=0)
    weights = np.where(Y[:, 2] == 1, 10.0, 0.1)
    weighted = forest.fit(X, Y, weights).predict_proba(X)[:, 2].mean()
    assert weighted > forest.fit(X, Y).predict_proba(X)[:, 2].mean() + 0.1
    with pytest.raises(ls.InputError, match="vector of 40 weights, one for each instance"):
        forest.fit(X, Y, np.ones(3))


def test_the_card_of_a_model_says_what_the_layer_chose():
    X, Y = draw_pairs(200)
    model = ls.AccuracyAwareClassifier(ls.DependenceLayer(random_state=0), cv=0.3, random_state=0)
    model.fit(X, Y)
    gain = model.estimator_.layers_["chain"].gain_
    text = f"DependenceLayer: chain, which raises the log-probability of labelsets by {gain:.3g} ("
    assert model.card_.classifier.startswith(text)
    assert str(model.card_).splitlines()[0] == f"classifier: {model.card_.classifier}"
    assert dict(model.report().data["facts"])["classifier"] == model.card_.classifier
    alone = ls.DependenceLayer(kind="independent", random_state=0).fit(X, Y)
    assert alone.choice_ == "labels stay independent, no kind of dependence passed"
