"""Base learners that are not linear, asked through every engine: never about no rows."""

import numpy as np
import pytest
from data_for_classifiers import make_problem
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from strategies import summary_of

import labelsure as ls

METRICS = ("exact", "hamming", "jaccard", "f1")
LEARNERS = {
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
    "bayes": GaussianNB(),
    "forest": RandomForestClassifier(3, max_depth=2, random_state=0),
}
KINDS = {
    "independent": lambda learner: ls.BinaryRelevance(learner),
    "trellis": lambda learner: ls.classifiers.ClassifierTrellis(learner, random_state=0),
    "chain": lambda learner: ls.ProbabilisticClassifierChain(learner, random_state=0),
    "ensemble": lambda learner: ls.EnsembleOfClassifierChains(learner, n_chains=2, random_state=0),
}
ENGINES = ("auto", "sampled")  # "certified" needs linear chains


def predict(kind, learner, n_labels, n_samples=2):
    X, Y = make_problem(80, n_labels=n_labels)
    return KINDS[kind](LEARNERS[learner]).fit(X, Y).predict_distribution(X[:n_samples])


def ask_everything(dist):
    """Ask what engines answer."""
    Y = dist.mode()
    answers = [
        dist.profile().entropy,
        dist.marginals(),
        dist.top(3).probabilities,
        dist.log_prob(Y),
        summary_of(dist, METRICS).expected["jaccard"],
        *(ls.expected_accuracy(dist, Y, metric=metric).value for metric in METRICS),
        *(ls.decide(dist, metric).gap for metric in METRICS),
    ]
    assert all(np.isfinite(answer).all() for answer in answers)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.jit_only
def test_every_kind_and_engine_answers_with_a_tree(kind, engine):
    ask_everything(predict(kind, "tree", 16).with_engine(engine=engine, budget=100))


@pytest.mark.parametrize("learner", ["bayes", "forest"])
@pytest.mark.jit_only
def test_ensembles_answer_with_other_learners(learner):
    ask_everything(predict("ensemble", learner, 16).with_engine(budget=100))


@pytest.mark.parametrize("budget", [0, 1, 40])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_learner_is_never_asked_about_no_rows(engine, budget):
    """Nearly flat probabilities, of which a search finds nothing."""

    def nearly_flat(position, rows, prefixes):
        assert len(rows) > 0
        return 0.5 + 0.01 * (prefixes.sum(axis=1) % 2 - 0.5)

    chains = [ls.distributions.PrefixChain(range(6), nearly_flat, 3) for _ in range(2)]
    dist = ls.distributions.ChainMixture(chains, engine=engine, budget=budget, max_exact_labels=3)
    ask_everything(dist)
    exact = ls.distributions.ChainMixture(chains, engine="dense")
    Y = dist.mode()
    assert_allclose(dist.log_prob(Y), exact.log_prob(Y))


@pytest.mark.jit_only
def test_an_aware_classifier_of_chained_trees():
    X, Y = make_problem(120, n_labels=11)
    ensemble = ls.EnsembleOfClassifierChains(LEARNERS["tree"], n_chains=2, random_state=0)
    model = ls.AccuracyAwareClassifier(ensemble, "jaccard", cv=0.5, random_state=0).fit(X, Y)
    assert np.isfinite(model.assess(X[:3]).to_frame()["estimated_accuracy"]).all()
