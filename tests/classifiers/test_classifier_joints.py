"""Every classifier's joint distribution against the product of its own learners, by loops."""

import numpy as np
import oracles_classifiers as slow
import oracles_trellis as oracles
import pytest
from data_for_classifiers import make_problem
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import labelsure as ls
from labelsure.labelsets.codes import codes_of, from_codes

LEARNERS = {
    "logistic": LogisticRegression(),
    "scaled": make_pipeline(StandardScaler(), LogisticRegression(C=10.0)),
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
    "bayes": GaussianNB(),
}

CLASSIFIERS = {
    "independent": lambda learner: ls.BinaryRelevance(learner),
    "chain": lambda learner: ls.ProbabilisticClassifierChain(
        learner, order="random", random_state=3
    ),
    "trellis": lambda learner: ls.classifiers.ClassifierTrellis(learner, density=2, random_state=1),
    "ensemble": lambda learner: ls.EnsembleOfClassifierChains(learner, n_chains=3, random_state=2),
}


def brute_force(model, x):
    if isinstance(model, ls.EnsembleOfClassifierChains):
        return slow.mean_joint([brute_force(chain, x) for chain in model.chains_])
    if isinstance(model, ls.ProbabilisticClassifierChain):
        return slow.joint_of_chain(model.estimators_, model.order_, x)
    if isinstance(model, ls.classifiers.ClassifierTrellis):
        return slow.joint_of_network(model.estimators_, model.order_, model.parents_, x)
    return slow.joint_of_independent_learners(model.estimators_, x)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_joint_is_the_product_of_the_learners(classifier, learner):
    X, Y = make_problem(n_labels=6)
    model = CLASSIFIERS[classifier](LEARNERS[learner]).fit(X, Y)
    expected = [brute_force(model, x) for x in X[:2].tolist()]
    np.testing.assert_allclose(
        model.predict_distribution(X[:2]).probabilities(), expected, rtol=0, atol=1e-12
    )


METRICS = {
    "exact": oracles.exact,
    "hamming": oracles.hamming,
    "jaccard": oracles.jaccard,
    "f1": oracles.f1,
}


@pytest.mark.parametrize("learner", ["logistic", "tree"])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_every_quantity_of_eight_labels(classifier, learner):
    X, Y = make_problem(n_labels=8)
    model = CLASSIFIERS[classifier](LEARNERS[learner]).fit(X, Y)
    x, dist = X[:1], model.predict_distribution(X[:1])
    P = brute_force(model, x[0].tolist())
    ranked = oracles.ranking(P)
    np.testing.assert_allclose(model.predict_proba(x)[0], oracles.marginals(P, 8), atol=1e-12)
    assert codes_of(model.predict(x))[0] == ranked[0]
    top = dist.top(4)
    assert codes_of(top.labelsets[0]).tolist() == ranked[:4]
    np.testing.assert_allclose(top.probabilities[0], [P[code] for code in ranked[:4]], atol=1e-12)
    profile = dist.profile()
    found = [profile.top, profile.runner_up, profile.entropy, profile.collision]
    expected = [P[ranked[0]], P[ranked[1]], oracles.entropy(P), oracles.collision(P)]
    np.testing.assert_allclose(np.ravel(found), expected, atol=1e-12)
    np.testing.assert_allclose(
        np.exp(dist.log_prob(Y[:1])), P[codes_of(Y[:1])[0]], rtol=1e-10, atol=1e-14
    )
    np.testing.assert_allclose(dist._size_marginals()[0], oracles.size_marginals(P, 8), atol=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("learner", ["logistic", "tree"])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_expected_accuracies_and_decisions(classifier, learner, metric):
    X, Y = make_problem(n_labels=6)
    model = CLASSIFIERS[classifier](LEARNERS[learner]).fit(X, Y)
    dist = model.predict_distribution(X[:1])
    P = brute_force(model, X[0].tolist())
    values = [oracles.expected(P, METRICS[metric], code, 6) for code in range(64)]
    everywhere = dist[np.zeros(64, dtype=int)]
    labelsets = from_codes(np.arange(64), 6)
    np.testing.assert_allclose(
        ls.expected_accuracy(everywhere, labelsets, metric=metric).value, values, atol=1e-12
    )
    (decision,) = codes_of(ls.decide(dist, metric).labelsets)
    assert values[decision] >= max(values) - 1e-12


def test_marginals_of_a_chain_are_not_greedy():
    # scikit-learn's own chain conditions on greedy predictions: another number.
    from sklearn.multioutput import ClassifierChain

    X, Y = make_problem()
    greedy = ClassifierChain(LogisticRegression()).fit(X, Y).predict_proba(X)
    model = ls.ProbabilisticClassifierChain(LogisticRegression()).fit(X, Y)
    marginals = model.predict_proba(X)
    np.testing.assert_allclose(marginals[:, 0], greedy[:, 0], atol=1e-12)
    assert np.abs(marginals - greedy).max() > 0.05


def test_the_mode_is_not_the_rounded_marginals():
    X, Y = make_problem()
    model = ls.EnsembleOfClassifierChains(random_state=0).fit(X, Y)
    differ = (model.predict(X) != model.predict_proba(X).round()).any(axis=1)
    assert differ.any()
    dist = model.predict_distribution(X[differ])
    rounded = model.predict_proba(X[differ]).round()
    assert (dist.log_prob(dist.mode()) > dist.log_prob(rounded)).all()
    assert (
        dist.expected("hamming", rounded).value > dist.expected("hamming", dist.mode()).value
    ).all()
