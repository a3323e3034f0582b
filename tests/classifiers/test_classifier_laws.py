"""What must be equal: special cases of one classifier that are another, and repeated fits."""

import numpy as np
import pytest
from data_for_classifiers import make_problem
from hypothesis import given
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from strategies import n_examples

import labelsure as ls
from labelsure.labelsets.codes import from_codes

TREE = DecisionTreeClassifier(max_depth=3, splitter="random")
SEEDED_TREE = DecisionTreeClassifier(max_depth=3, random_state=0)

ALL = [
    ls.BinaryRelevance,
    ls.ProbabilisticClassifierChain,
    ls.classifiers.ClassifierTrellis,
    ls.EnsembleOfClassifierChains,
]


def joint(model, X):
    return model.predict_distribution(X).probabilities()


@pytest.mark.parametrize("learner", [LogisticRegression(), SEEDED_TREE])
def test_an_ensemble_of_one_chain_without_bootstrap_is_the_chain(learner):
    X, Y = make_problem()
    ensemble = ls.EnsembleOfClassifierChains(learner, n_chains=1, bootstrap=False, random_state=4)
    order = ensemble.fit(X, Y).chains_[0].order_
    chain = ls.ProbabilisticClassifierChain(learner, order=order).fit(X, Y)
    np.testing.assert_array_equal(joint(ensemble, X), joint(chain, X))


@pytest.mark.parametrize("learner", [LogisticRegression(), SEEDED_TREE])
@pytest.mark.parametrize("Classifier", ALL)
def test_weights_of_one_are_as_none(Classifier, learner):
    X, Y = make_problem()
    without, weighted = (
        Classifier(learner, **({} if Classifier is ls.BinaryRelevance else {"random_state": 0}))
        for _ in range(2)
    )
    without.fit(X, Y)
    weighted.fit(X, Y, sample_weight=np.ones(len(X)))
    np.testing.assert_allclose(joint(weighted, X), joint(without, X), rtol=1e-9, atol=1e-12)


def test_an_ensemble_is_the_mean_of_its_chains():
    X, Y = make_problem()
    model = ls.EnsembleOfClassifierChains(n_chains=4, random_state=0).fit(X, Y)
    assert len({tuple(chain.order_) for chain in model.chains_}) > 1
    np.testing.assert_allclose(
        joint(model, X), np.mean([joint(chain, X) for chain in model.chains_], axis=0), atol=1e-14
    )


@pytest.mark.parametrize("learner", [LogisticRegression(), SEEDED_TREE])
@pytest.mark.parametrize("placement", ["mutual_info", "random"])
def test_a_trellis_of_density_0_is_binary_relevance(learner, placement):
    X, Y = make_problem()
    trellis = ls.classifiers.ClassifierTrellis(
        learner, density=0, placement=placement, random_state=2
    )
    independent = ls.BinaryRelevance(learner)
    np.testing.assert_allclose(
        joint(trellis.fit(X, Y), X), joint(independent.fit(X, Y), X), rtol=1e-13
    )


def test_a_trellis_of_width_1_is_a_first_order_chain():
    X, Y = make_problem()
    order = [3, 1, 0, 4, 2]
    trellis = ls.classifiers.ClassifierTrellis(LogisticRegression(), width=1, placement=order).fit(
        X, Y
    )
    expected = np.ones((len(X), 32))
    labelsets = from_codes(np.arange(32), 5)
    for before, label in zip([None, *order[:-1]], order, strict=True):
        given = X if before is None else np.column_stack([X, Y[:, before]])
        learner = LogisticRegression().fit(given, Y[:, label])
        for code, labels in enumerate(labelsets):
            fixed = [] if before is None else [np.full(len(X), labels[before])]
            p = learner.predict_proba(np.column_stack([X, *fixed]))
            expected[:, code] *= p[:, labels[label]]
    np.testing.assert_allclose(joint(trellis, X), expected, rtol=1e-10)


def test_two_labels_make_every_dependent_classifier_the_same():
    X, Y = make_problem(n_labels=2)
    chain = ls.ProbabilisticClassifierChain().fit(X, Y)
    for density in (1, 2):
        trellis = ls.classifiers.ClassifierTrellis(placement=[0, 1], density=density).fit(X, Y)
        np.testing.assert_allclose(joint(trellis, X), joint(chain, X), rtol=1e-12)


@given(permutation=st.permutations(range(4)))
@n_examples(6)
def test_relabelling_permutes_the_answers(permutation):
    X, Y = make_problem(n_samples=50, n_labels=4)
    renamed = Y[:, permutation]  # new label j is old label permutation[j]
    order = [int(np.argmax(np.asarray(permutation) == label)) for label in range(4)]
    chain = ls.ProbabilisticClassifierChain(order=range(4)).fit(X, Y)
    same = ls.ProbabilisticClassifierChain(order=order).fit(X, renamed)
    np.testing.assert_allclose(
        same.predict_proba(X), chain.predict_proba(X)[:, permutation], atol=1e-12
    )
    np.testing.assert_array_equal(same.predict(X), chain.predict(X)[:, permutation])


@pytest.mark.parametrize("learner", [None, TREE])
@pytest.mark.parametrize("classifier", ALL)
def test_the_same_seed_gives_the_same_bits_with_any_number_of_jobs(classifier, learner):
    X, Y = make_problem(n_features=20)
    fits = []
    for n_jobs, backend in [(None, "loky"), (2, "threading"), (2, "loky")]:
        with parallel_config(backend=backend):
            fits.append(classifier(learner, n_jobs=n_jobs, random_state=7).fit(X, Y))
    for other in fits[1:]:
        np.testing.assert_array_equal(joint(other, X), joint(fits[0], X))


@pytest.mark.parametrize("classifier", ALL)
def test_another_seed_gives_random_learners_other_trees(classifier):
    X, Y = make_problem()
    one, two = (classifier(TREE, random_state=seed).fit(X, Y) for seed in (0, 1))
    assert np.abs(one.predict_proba(X) - two.predict_proba(X)).max() > 0.01


def test_a_seed_of_the_learner_is_kept():
    X, Y = make_problem()
    model = ls.BinaryRelevance(SEEDED_TREE, random_state=5).fit(X, Y)
    assert {learner.random_state for learner in model.estimators_} == {0}
    unseeded = ls.BinaryRelevance(TREE, random_state=5).fit(X, Y)
    assert len({learner.random_state for learner in unseeded.estimators_}) == 5
    assert TREE.random_state is None
