"""No labelset is impossible: what classifiers estimate is never exactly 0 or 1."""

import os
from pathlib import Path

import numpy as np
import pytest
from data_for_classifiers import make_problem
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from strategies import n_examples

import labelsure as ls

FLOOR = 2.0**-24
X, Y = make_problem()
N_LABELS = Y.shape[1]


def log_logistic(logit):
    """Log of 1 / (1 + exp(-logit)), as Python computes it without rounding the sum to 1."""
    return -np.log1p(np.exp(-logit)) if logit > 0 else logit - np.log1p(np.exp(logit))


# From logits.

logits = st.lists(st.floats(-700, 700), min_size=1, max_size=6)


@given(row=logits, code=st.integers(0, 63))
def test_log_probabilities_of_logits_are_exact(row, code):
    labels = [code >> j & 1 for j in range(len(row))]
    expected = sum(log_logistic(z if y else -z) for z, y in zip(row, labels, strict=True))
    found = ls.IndependentLabels.from_logits([row]).log_prob([labels])
    assert_allclose(found, expected, rtol=1e-13, atol=1e-300)
    wrapped = ls.as_distribution([row], kind="logit").log_prob([labels])
    assert_array_equal(wrapped, found)


@given(row=logits)
def test_mode_runner_up_and_top_agree_with_log_probabilities(row):
    dist = ls.IndependentLabels.from_logits([row])
    everything = [[code >> j & 1 for j in range(len(row))] for code in range(2 ** len(row))]
    logs = dist[np.zeros(len(everything), dtype=int)].log_prob(everything)
    best, second = np.sort(logs)[::-1][:2]
    profile = dist.profile()
    assert_allclose(profile.log_top, best, rtol=1e-12, atol=1e-14)
    assert_allclose(profile.log_runner_up, second, rtol=1e-12, atol=1e-14)
    assert np.isfinite(profile.log_runner_up).all()
    assert_allclose(dist.log_prob(dist.mode()), best, rtol=1e-12, atol=1e-14)
    top = dist.top(2)
    assert_allclose(dist[[0, 0]].log_prob(top.labelsets[0]), [best, second], rtol=1e-12, atol=1e-14)
    assert_allclose(dist[[0]].profile().log_runner_up, second, rtol=1e-12, atol=1e-14)


def test_logits_that_are_none():
    with pytest.raises(ls.InputError, match="`logits`"):
        ls.IndependentLabels.from_logits([[0.0, np.nan]])


# From probabilities.


def test_only_estimates_are_kept_off_zero_and_one():
    P = np.array([[0.0, 1.0, 0.25]])
    kept_off = [[FLOOR, 1 - FLOOR, 0.25]]
    assert_array_equal(ls.as_distribution(P).marginals(), kept_off)
    assert_array_equal(ls.as_distribution(P.astype(np.float32)).marginals(), kept_off)
    model = ls.PrecomputedProbabilities().fit(P, [[0, 1, 0]])
    assert_array_equal(model.predict_distribution(P).marginals(), kept_off)
    assert_array_equal(ls.IndependentLabels(P).marginals(), P)
    assert ls.IndependentLabels(P).log_prob([[1, 1, 0]])[0] == -np.inf
    table = ls.distributions.TrellisDistribution([[[0.0]], [[1.0]]], [(), ()], [0, 1])
    assert_array_equal(table.marginals(), [[0.0, 1.0]])
    joint = ls.as_distribution([[0.0, 1.0]], kind="joint")
    assert_array_equal(joint.probabilities(), [[0.0, 1.0]])


# Every classifier, on features as far out as they come.

CLASSIFIERS = {
    f"{name}, {type(learner).__name__}": make(learner)
    for learner in (
        LogisticRegression(C=1e4, max_iter=2000),
        DecisionTreeClassifier(random_state=0),
        KNeighborsClassifier(1),
    )
    for name, make in {
        "independent": ls.BinaryRelevance,
        "trellis": lambda learner: ls.classifiers.ClassifierTrellis(learner, random_state=0),
        "chain": ls.ProbabilisticClassifierChain,
        "ensemble": lambda learner: ls.EnsembleOfClassifierChains(
            learner, n_chains=2, random_state=0
        ),
        "of scikit-learn": MultiOutputClassifier,
        "chain of scikit-learn": ClassifierChain,
    }.items()
}
FITTED = {}


def distribution_of(name, rows):
    if name not in FITTED:
        FITTED[name] = CLASSIFIERS[name].fit(X, Y)
    return ls.as_distribution(FITTED[name], rows)


@pytest.mark.filterwarnings("ignore::labelsure.ProbabilityWarning")
@pytest.mark.parametrize("name", CLASSIFIERS)
@given(
    scale=st.sampled_from([1.0, 1e2, 1e4, 1e6]),
    seed=st.integers(0, 1000),
)
@n_examples(6)
def test_every_labelset_is_possible(name, scale, seed):
    rng = np.random.default_rng(seed)
    rows = scale * rng.normal(size=(4, X.shape[1]))
    truth = rng.integers(0, 2, size=(4, N_LABELS))
    dist = distribution_of(name, rows)
    for labelsets in (truth, 1 - dist.mode()):  # also what is least like the mode
        log_prob = dist.log_prob(labelsets)
        assert np.isfinite(log_prob).all()
        assert (log_prob <= dist.profile().log_top + 1e-9).all()


def test_a_forest_that_is_sure():
    model = RandomForestClassifier(5, random_state=0).fit(X, Y)
    dist = ls.as_distribution(model, X, kind="marginal")
    assert np.isfinite(dist.log_prob(1 - dist.mode())).all()
    assert dist.marginals().min() == FLOOR


def test_a_trellis_of_linear_learners_is_exact_up_to_a_double():
    model = ls.classifiers.ClassifierTrellis(LogisticRegression(), random_state=0).fit(X, Y)
    chain_of_same = [
        learner.predict_proba(np.hstack([X, np.zeros((len(X), len(parents)))]))[:, 1]
        for learner, parents in zip(model.estimators_, model.parents_, strict=True)
    ]
    none = np.zeros_like(Y)
    expected = np.log1p(-np.array(chain_of_same)).sum(axis=0)
    assert_allclose(model.predict_distribution(X).log_prob(none), expected, rtol=1e-10)
    far = model.predict_distribution(1e6 * X)
    assert far.log_prob(1 - far.mode()).min() >= N_LABELS * np.log(2.0**-53) - 1e-9


DATA = Path(os.environ.get("LABELSURE_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.mark.parametrize("name", ["enron", "medical"])
@pytest.mark.jit_only
def test_true_labelsets_of_real_data_are_possible(name, monkeypatch):
    if not (DATA / f"{name}.arff.gz").exists():
        pytest.skip(f"{name} is not in {DATA}")
    monkeypatch.setenv("LABELSURE_DATA", str(DATA))
    data = ls.load_dataset(name, source="file")
    train, test = ls.split_dataset(data, 0.3, random_state=0)
    learner = LogisticRegression(C=1e3, max_iter=300, solver="liblinear")
    for model in (
        ls.BinaryRelevance(learner),
        ls.classifiers.ClassifierTrellis(learner, random_state=0),
    ):
        dist = model.fit(train.X, train.Y).predict_distribution(test.X)
        assert np.isfinite(dist.log_prob(test.Y)).all()
