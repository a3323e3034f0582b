"""Any model behind `AccuracyAwareClassifier`: what goes in, what is fitted to what, what comes out.

The models are those of the table in the documentation.
"""

import inspect
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import skops.io
from classifiers.test_any_model import CASES
from data_for_classifiers import make_problem
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import labelsure as ls
from labelsure.estimation._accuracy_model import LabelsetFrequencies

pytestmark = [
    pytest.mark.filterwarnings("ignore:`predict` of (Counting|Worried) contradicts"),
    pytest.mark.filterwarnings("ignore:On [0-9]+ of 200 calibration rows these differ"),
    pytest.mark.filterwarnings("ignore:Only [0-9]+ of [0-9]+ rows are held out"),
]

METRIC, TARGET = "hamming", 0.2  # a target that even a constant prediction reaches
NAMES = ["sea", "sky", "sun", "bird"]
X, Y = make_problem(n_samples=200, n_labels=4, seed=1)
X = X.clip(-1, 1)  # so that everybody has neighbours
NEW = X[:40]
ROWS = [f"photo {i}" for i in range(len(X))]
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)


def aware(model, **settings):
    """A model without recalibration, so that its parts can be put together by hand."""
    plain = {"metric": METRIC, "cv": 5, "decision": "mode", "recalibration": None}
    return ls.AccuracyAwareClassifier(model, **{**plain, "random_state": 0, **settings})


def make(case):
    return clone(case.model) if hasattr(case.model, "fit") else case.model()


def truth_for(case):
    return Y if case.Y is None else Y[:, 0]


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request):
    with warnings.catch_warnings():
        if request.param.warns:  # which the tests at the end look at
            warnings.simplefilter("ignore", ls.ProbabilityWarning)
        yield request.param


def assert_same(model, X, dist, estimator, policy):
    """What the aware classifier says is what its parts say, used by hand."""
    found = model.assess(X)
    estimated = estimator.predict(dist)
    np.testing.assert_array_equal(found.Y_pred, dist.mode())
    np.testing.assert_array_equal(model.predict(X).reshape(len(dist), -1), dist.mode())
    np.testing.assert_allclose(found.accuracy, estimated, atol=1e-12)
    np.testing.assert_allclose(model.predict_accuracy(X), estimated, atol=1e-12)
    assert model.estimate(X).mean == pytest.approx(estimator.estimate(dist).mean)
    assert model.policy_.threshold_ == pytest.approx(policy.threshold_)
    np.testing.assert_array_equal(found.accepted, model.accept(X))
    # A score on the threshold may fall on either side by rounding.
    clear = np.abs(estimated - policy.threshold_) > 1e-9
    np.testing.assert_array_equal(found.accepted[clear], policy.accept(estimated)[clear])


def by_hand(model, Y, first, second, Y_train=None):
    """Fit an accuracy estimator to the first rows and a policy to the second."""
    both = ls.as_distribution(model, X[np.concatenate([first, second])])
    dist = both[len(first) :]
    estimator = ls.AccuracyEstimator(METRIC).fit(both[: len(first)], Y[first], Y_train=Y_train)
    realised = ls.accuracy(Y[second], dist.mode(), METRIC)
    return estimator, ls.AcceptPolicy(TARGET).fit(estimator.predict(dist), realised)


def test_a_model_that_is_frozen(case):
    """One half of the instances is for the accuracy estimator, the other for the policy."""
    y = truth_for(case)
    inner = make(case).fit(X, y)
    model = aware(FrozenEstimator(inner), target=TARGET).fit(X, y)
    assert model.estimator_.estimator is inner
    assert model.guaranteed_
    assert model.policy_.n_samples_ == len(model.accuracy_estimator_.calibration_) == 100
    dist = ls.as_distribution(inner, X)
    order = np.random.RandomState(0).permutation(len(X))
    parts = by_hand(inner, Y[:, : dist.n_labels], order[:100], order[100:])
    assert_same(model, X, dist, *parts)
    expected = ls.accuracy(Y[:, : dist.n_labels], dist.mode(), METRIC).mean()
    assert model.score(X, y) == pytest.approx(expected)


def test_a_model_and_instances_that_are_held_out(case):
    y = truth_for(case)
    model = aware(make(case), target=TARGET, cv=0.4).fit(X, y)
    assert model.guaranteed_
    order = np.random.RandomState(0).permutation(len(X))
    inner = make(case).fit(X[order[80:]], y[order[80:]])
    dist = ls.as_distribution(inner, X)
    if case.name == "FrozenEstimator":
        assert model.policy_.n_samples_ == 100  # it needs no training
        return
    labels = Y[:, : dist.n_labels]
    parts = by_hand(inner, labels, order[:40], order[40:80], labels[order[80:]])
    assert_same(model, X, dist, *parts)


@pytest.mark.slow
def test_a_model_that_is_cross_fitted(case):
    y = truth_for(case)
    model = aware(make(case), target=TARGET, cv=2).fit(X, y)
    assert model.policy_.reached_
    if case.name == "FrozenEstimator":
        assert model.guaranteed_
        return
    assert not model.guaranteed_
    assert model.policy_.n_samples_ == len(model.accuracy_estimator_.calibration_) == 200
    dist = ls.as_distribution(make(case).fit(X, y), NEW)
    tables = []
    for train, test in KFold(2, shuffle=True, random_state=0).split(X):
        part = ls.as_distribution(make(case).fit(X[train], y[train]), X[test])
        truth = Y[test][:, : part.n_labels]
        scored = ls.ScoreTable.from_distribution(part, truth, metrics=[METRIC])
        tables.append(LabelsetFrequencies.of(Y[train][:, : part.n_labels]).add_to(scored))
    table = ls.ScoreTable.concatenate(tables)
    estimator = ls.AccuracyEstimator(METRIC).fit(table, Y_train=Y[:, : dist.n_labels])
    policy = ls.AcceptPolicy(TARGET).fit(estimator.predict(table), table.accuracy(METRIC, 1.0))
    assert_same(model, NEW, dist, estimator, policy)


# What is fitted, and how often.


class Counting(ClassifierMixin, BaseEstimator):
    """Neighbours that note what they were fitted to."""

    fits: list = []  # noqa: RUF012

    def __init__(self, n_neighbors=5):
        self.n_neighbors = n_neighbors

    def fit(self, X, y, sample_weight=None):
        self.fits.append((np.array(X), np.array(y), sample_weight))
        self.model_ = KNeighborsClassifier(self.n_neighbors).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        """Return what nobody would: each label the other way round."""
        return 1 - self.model_.predict(X)

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


@pytest.fixture
def fits():
    Counting.fits.clear()
    return Counting.fits


@pytest.mark.parametrize(("cv", "sizes"), [(4, [200] + 4 * [150]), (0.25, [150])])
def test_what_is_fitted(fits, cv, sizes):
    aware(Counting(), cv=cv).fit(X, Y)
    assert [len(rows) for rows, _, _ in fits] == sizes


def test_a_frozen_model_is_not_fitted_again(fits):
    inner = Counting().fit(X, Y)
    model = aware(FrozenEstimator(inner), cv=3).fit(X, Y)
    assert len(fits) == 1
    assert len(model.accuracy_estimator_.calibration_) == 200
    assert not model.guaranteed_  # of what? there is no target


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"sample_weight": np.ones(199)},
            "`sample_weight` must have one entry for each of the 200",
        ),
        ({"groups": np.ones(199)}, "`groups` must have one entry for each of the 200"),
        ({"groups": [None, *"ab" * 99, "a"]}, "`groups` must name .* got none in row 0"),
    ],
)
def test_an_entry_for_each_row(params, message):
    with pytest.raises(ls.InputError, match=message):
        aware(TREE).fit(X, Y, **params)


@pytest.mark.filterwarnings("ignore:X has feature names, but Decision")
def test_columns_of_a_frozen_model_without_names_are_those_of_the_calibration_set():
    names = [f"x{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    model = aware(FrozenEstimator(clone(TREE).fit(X, Y))).fit(frame, Y)
    assert list(model.feature_names_in_) == names
    np.testing.assert_array_equal(model.predict(frame[:40]), model.estimator_.predict(NEW))
    turned = frame[names[::-1]]
    np.testing.assert_array_equal(model.predict(turned), model.predict(frame))
    other = frame.rename(columns={"x0": "age"})
    for ask in (model.predict, model.estimate, model.assess):
        with pytest.raises(ls.InputError, match="missing: 'x0'; unknown: 'age'"):
            ask(other)
    assert not hasattr(model.fit(X, Y), "feature_names_in_")
    said = pd.DataFrame(0.7 * Y + 0.3 * np.roll(Y, 1, axis=0)).mul(0.8).add(0.1)
    said = said.set_axis(NAMES, axis=1) ** [1, 2, 3, 4]
    model = aware(ls.PrecomputedProbabilities()).fit(said, pd.DataFrame(Y, columns=NAMES))
    found = model.predict(said[NAMES[::-1]])  # it aligns labels by name
    np.testing.assert_array_equal(found, said.to_numpy() > 0.5)


@pytest.mark.parametrize("decision", ["mode", "best", "predict"])
@pytest.mark.parametrize("cv", [3, 0.4])
def test_what_is_judged_is_what_is_predicted(decision, cv):
    model = aware(Counting(), decision=decision, cv=cv, target=0.05).fit(X, Y)
    dist = ls.as_distribution(model.estimator_, X)
    expected = {
        "mode": dist.mode(),
        "best": ls.decide(dist, METRIC).labelsets,
        "predict": model.estimator_.predict(X),
    }[decision]
    np.testing.assert_array_equal(model.predict(X), expected)
    np.testing.assert_array_equal(model.assess(X).Y_pred, expected)
    estimated = model.accuracy_estimator_.predict(dist, expected)
    np.testing.assert_allclose(model.predict_accuracy(X), estimated)
    assert model.accuracy_estimator_.decision_ == decision
    realised = ls.accuracy(Y, expected, METRIC).mean()
    assert model.score(X, Y) == pytest.approx(realised)
    assert (realised < 0.5) == (decision == "predict")
    assert abs(model.estimate(X).mean - realised) < 0.2


@pytest.mark.parametrize("decision", ["mode", "predict"])
@pytest.mark.parametrize("estimator", [LogisticRegression(), ls.BinaryRelevance(), TREE])
@pytest.mark.parametrize("frozen", [False, True])
def test_a_vector_of_two_classes(estimator, decision, frozen):
    y = np.where(Y[:, 0] == 1, "yes", "no")
    if frozen:
        estimator = FrozenEstimator(clone(estimator).fit(X, Y[:, 0]))
    model = aware(estimator, decision=decision, metric="exact").fit(X, y)
    assert set(model.predict(X)) == {"no", "yes"}
    assert model.score(X, y) == pytest.approx((model.predict(X) == y).mean())
    assert model.score(X, y) > 0.6
    assert model.predict_proba(X).shape == (200, 2)


def test_predictions_that_are_sparse():
    """As those of scikit-multilearn are."""

    class Sparse(Counting):
        def predict(self, X):
            return sp.csr_matrix(self.model_.predict(X))

    model = aware(Sparse(), decision="predict").fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), model.estimator_.predict(X).toarray())


# X as it came.

TEXTS = ["calm sea", "blue sky", "sea and sky", "sun", "sun and sea", "night", "sky", "calm"] * 10
TEXT_LABELS = np.array([[int(word in text) for word in ("sea", "sky", "sun")] for text in TEXTS])
TEXT_LABELS[::7] = 1 - TEXT_LABELS[::7]


@pytest.mark.parametrize("wrap", [list, np.array, pd.Series], ids=["list", "array", "series"])
@pytest.mark.parametrize("cv", [3, 0.4])
@pytest.mark.parametrize(
    "inner",
    [MultiOutputClassifier(LogisticRegression()), ls.BinaryRelevance(), ClassifierChain(TREE)],
    ids=lambda inner: type(inner).__name__,
)
@pytest.mark.filterwarnings("ignore:.* of the held-out rows are identical")
def test_texts(inner, cv, wrap):
    texts = wrap(TEXTS)
    inside = aware(make_pipeline(TfidfVectorizer(), inner), cv=cv).fit(texts, TEXT_LABELS)
    outside = make_pipeline(TfidfVectorizer(), aware(inner, cv=cv)).fit(texts, TEXT_LABELS)
    assert inside.predict(texts).shape == outside.predict(texts).shape == TEXT_LABELS.shape
    assert inside.predict_accuracy(texts).shape == (80,)
    assert inside.score(texts, TEXT_LABELS) > 0.7
    assert outside.score(texts, TEXT_LABELS) > 0.7


def test_a_frozen_pipeline_of_texts():
    pipeline = make_pipeline(TfidfVectorizer(), ClassifierChain(TREE)).fit(TEXTS, TEXT_LABELS)
    model = aware(FrozenEstimator(pipeline), target=TARGET).fit(TEXTS, TEXT_LABELS)
    dist = ls.as_distribution(pipeline, TEXTS)
    np.testing.assert_allclose(model.predict_proba(TEXTS), dist.marginals())
    assert model.guaranteed_


COLUMNS = pd.DataFrame(
    {
        "size": X[:, 0],
        "weight": np.where(X[:, 1] > 0.9, np.nan, X[:, 1]),
        "colour": pd.Categorical(np.where(X[:, 2] > 0, "red", "blue")),
    }
)


def test_named_and_categorical_columns_and_missing_values():
    boosting = HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=4)
    model = aware(MultiOutputClassifier(boosting), cv=0.4).fit(COLUMNS, Y)
    assert model.score(COLUMNS, Y) > 0.6
    assert model.feature_names_in_.tolist() == ["size", "weight", "colour"]
    with pytest.raises(ValueError, match="colour"):
        model.predict(COLUMNS.drop(columns="colour"))


@pytest.mark.parametrize("inner", [TREE, RandomForestClassifier(3, random_state=0)])
def test_missing_values_where_the_model_takes_them(inner):
    missing = np.where(X > 0.9, np.nan, X)
    assert aware(inner).fit(missing, Y).predict_accuracy(missing).shape == (200,)
    with pytest.raises(ValueError, match="NaN"):
        aware(MultiOutputClassifier(LogisticRegression())).fit(missing, Y)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("inner", [TREE, ClassifierChain(TREE), ls.BinaryRelevance()])
def test_sparse(inner, layout):
    sparse = sp.csr_matrix(X).asformat(layout)
    expected = aware(inner).fit(X, Y).predict_accuracy(X)
    model = aware(inner).fit(sparse, sp.csr_matrix(Y))
    np.testing.assert_allclose(model.predict_accuracy(sparse.tocsr()), expected, atol=1e-6)


# y as people have it.


def test_lists_of_label_names():
    named = [[NAMES[j] for j in np.flatnonzero(row)] for row in Y]
    model = aware(TREE).fit(X, named)
    assert model.label_names_ == ("bird", "sea", "sky", "sun")
    expected = aware(TREE).fit(X, Y[:, [3, 0, 1, 2]])
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    np.testing.assert_allclose(model.predict_accuracy(X), expected.predict_accuracy(X))
    assert model.score(X, named) == pytest.approx(expected.score(X, Y[:, [3, 0, 1, 2]]))
    assert model.predict_distribution(X).label_names == ("bird", "sea", "sky", "sun")


FRAME = pd.DataFrame(Y, columns=NAMES, index=ROWS)
NAMED_X = pd.DataFrame(X, columns=["a", "b", "c"], index=ROWS)
SHUFFLED = FRAME.sample(frac=1, random_state=0)[["sun", "bird", "sea", "sky"]]


@pytest.mark.parametrize(
    "inner",
    [TREE, ls.BinaryRelevance(), make_pipeline(StandardScaler(), ls.BinaryRelevance())],
    ids=["tree", "own", "pipeline"],
)
@pytest.mark.parametrize("cv", [3, 0.4])
def test_rows_and_columns_in_another_order(inner, cv):
    model = aware(inner, cv=cv).fit(NAMED_X, SHUFFLED)
    expected = aware(inner, cv=cv).fit(NAMED_X, FRAME[["sun", "bird", "sea", "sky"]])
    assert model.label_names_ == ("sun", "bird", "sea", "sky")
    np.testing.assert_array_equal(model.predict(NAMED_X), expected.predict(NAMED_X))
    found = model.predict_accuracy(NAMED_X)
    np.testing.assert_allclose(found, expected.predict_accuracy(NAMED_X))
    assert model.score(NAMED_X, FRAME) == pytest.approx(model.score(NAMED_X, SHUFFLED))
    with pytest.raises(ls.InputError, match="unknown"):
        model.score(NAMED_X, FRAME.rename(columns={"sky": "snow"}))
    with pytest.raises(ls.InputError, match="`y`"):
        clone(model).fit(NAMED_X, FRAME.rename(index={"photo 0": "photo x"}))


@pytest.mark.parametrize(
    "inner", [ls.BinaryRelevance(), make_pipeline(StandardScaler(), ls.BinaryRelevance())]
)
def test_labels_are_those_of_the_frozen_model(inner):
    """Columns in another order were compared by position."""
    frozen = FrozenEstimator(clone(inner).fit(NAMED_X, FRAME))
    expected = aware(frozen, target=TARGET).fit(NAMED_X, FRAME)
    named = [[NAMES[j] for j in np.flatnonzero(row)] for row in Y]
    for y in (SHUFFLED, Y, named):
        model = aware(frozen, target=TARGET).fit(NAMED_X, y)
        assert model.label_names_ == tuple(NAMES)
        np.testing.assert_allclose(
            model.predict_accuracy(NAMED_X), expected.predict_accuracy(NAMED_X)
        )
        assert model.score(NAMED_X, SHUFFLED) == pytest.approx(expected.score(NAMED_X, Y))
    with pytest.raises(ls.InputError, match="unknown"):
        aware(frozen).fit(NAMED_X, FRAME.rename(columns={"sky": "snow"}))


def test_names_for_a_frozen_model_that_has_none():
    named = [[NAMES[j] for j in np.flatnonzero(row)] for row in Y]
    with pytest.raises(ls.InputError, match="`y`"):
        aware(FrozenEstimator(clone(TREE).fit(X, Y))).fit(X, named)
    model = aware(FrozenEstimator(clone(TREE).fit(X, Y))).fit(X, FRAME)
    assert model.label_names_ == tuple(NAMES)


# How instances are split.


@pytest.mark.parametrize(
    ("cv", "n_samples"),
    [
        (KFold(4), 200),
        (ShuffleSplit(2, test_size=0.3, random_state=0), 120),
        ([(np.arange(100), np.arange(100, 200))], 100),
        (None, 200),
    ],
    ids=["KFold", "ShuffleSplit", "pairs", "None"],
)
def test_splitters(cv, n_samples):
    model = aware(TREE, cv=cv, target=TARGET).fit(X, Y)
    assert len(model.accuracy_estimator_.calibration_) == n_samples
    assert model.policy_.reached_
    assert not model.guaranteed_


@pytest.mark.parametrize("routing", [False, True])
def test_groups_stay_together(fits, routing):
    groups = np.arange(200) // 10
    X_with_group = np.column_stack([X, groups])
    with config_context(enable_metadata_routing=routing):
        aware(Counting(), cv=GroupKFold(4)).fit(X_with_group, Y, groups=groups)
    n_groups = [20, *4 * [15]]
    for (rows, _, _), n in zip(fits, n_groups, strict=True):
        assert np.unique(rows[:, 3], return_counts=True)[1].tolist() == [10] * n


@pytest.mark.parametrize("cv", [4, 0.4])
def test_groups_are_held_out_as_a_whole(fits, cv):
    groups = np.arange(200) % 20
    model = aware(Counting(), cv=cv, target=0.1)
    model.fit(np.column_stack([X, groups]), Y, groups=groups)
    assert [len(rows) for rows, _, _ in fits] == ([200, *4 * [150]] if cv == 4 else [120])
    for rows, _, _ in fits:
        assert np.unique(rows[:, 3], return_counts=True)[1].tolist() == [10] * (len(rows) // 10)
    if cv == 0.4:
        assert model.card_.n_for_estimator == model.card_.n_for_policy == 40


def test_groups_that_are_missing_or_too_much(fits):
    with pytest.raises(ls.InputError, match="independent"):
        aware(Counting(), cv=0.4, share=0.5).fit(X, Y, groups=np.arange(200) // 10)
    with pytest.raises(ValueError, match="parameter"):
        aware(Counting(), cv=GroupKFold(4)).fit(X, Y)
    with pytest.raises(ls.InputError, match="`groups`"):
        aware(Counting(), cv=0.4).fit(X, Y, groups=np.arange(100))
    with pytest.raises(ls.InputError, match="`groups`"):
        aware(Counting(), cv=0.4).fit(X, Y, groups=np.zeros(200))
    assert not fits  # all of this is found out before


@pytest.mark.parametrize(
    ("cv", "target", "n_needed", "n_held_out"),
    [(0.01, None, 2, 0), (0.15, 0.5, 4, 3), (0.97, None, 2, 19)],
)
def test_shares_that_leave_too_few(fits, cv, target, n_needed, n_held_out):
    message = f"at least {n_needed} rows .* cv={cv} holds out {n_held_out} of 20"
    with pytest.raises(ls.InputError, match=message):
        aware(Counting(), cv=cv, target=target).fit(X[:20], Y[:20])
    assert not fits


# Weights.


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("cv", [3, 0.4, KFold(3)])
def test_weights_reach_the_model_with_their_rows(fits, cv, routing):
    weights = 10 * X[:, 0] + X[:, 1]
    with config_context(enable_metadata_routing=routing):
        inner = Counting().set_fit_request(sample_weight=True) if routing else Counting()
        aware(inner, cv=cv).fit(X, Y, sample_weight=weights)
    assert len(fits) == (1 if cv == 0.4 else 4)
    for rows, _, found in fits:
        np.testing.assert_allclose(found, 10 * rows[:, 0] + rows[:, 1])


@pytest.mark.parametrize("wanted", [True, False])
def test_weights_are_routed_through_pipelines(fits, wanted):
    weights = 10 * X[:, 0] + X[:, 1]
    with config_context(enable_metadata_routing=True):
        inner = make_pipeline("passthrough", Counting().set_fit_request(sample_weight=wanted))
        outer = make_pipeline("passthrough", aware(inner))
        if wanted:
            outer.fit(X, Y, sample_weight=weights)
            for rows, _, found in fits:
                np.testing.assert_allclose(found, 10 * rows[:, 0] + rows[:, 1])
        else:
            with pytest.raises(TypeError, match="sample_weight"):
                outer.fit(X, Y, sample_weight=weights)


def test_weights_change_what_is_learned():
    weights = np.where(X[:, 0] > 0, 1.0, 0.0)
    for inner in (ls.BinaryRelevance(), TREE):
        plain, weighted = aware(inner).fit(X, Y), aware(inner).fit(X, Y, sample_weight=weights)
        assert not np.allclose(plain.predict_proba(X), weighted.predict_proba(X))
        assert weighted.score(X, Y, sample_weight=weights) != weighted.score(X, Y)


def test_further_parameters_of_a_step():
    pipeline = make_pipeline(StandardScaler(), TREE)
    weights = np.where(X[:, 0] > 0, 1.0, 0.0)
    model = aware(pipeline).fit(X, Y, decisiontreeclassifier__sample_weight=weights)
    assert not np.allclose(aware(pipeline).fit(X, Y).predict_proba(X), model.predict_proba(X))


# Probabilities in place of features.

LOGITS = np.random.default_rng(0).normal(scale=2, size=(300, 3))
LOGIT_TRUTH = (np.random.default_rng(1).uniform(size=(300, 3)) < 1 / (1 + np.exp(-LOGITS))).astype(
    int
)
MARGINALS = 1 / (1 + np.exp(-LOGITS))
INPUTS = {
    "logit": LOGITS,
    "marginal": MARGINALS,
    "joint": ls.as_distribution(MARGINALS).probabilities(),
    "votes": ls.as_distribution(MARGINALS).sample(7, random_state=0),
}


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("cv", [3, 0.5, "frozen"])
def test_precomputed_probabilities(kind, cv):
    P = INPUTS[kind]
    inner = ls.PrecomputedProbabilities(kind=kind)
    if cv == "frozen":
        model = aware(FrozenEstimator(inner.fit(P, LOGIT_TRUTH)), target=0.5)
    else:
        model = aware(inner, target=0.5, cv=cv)
    model.fit(P, LOGIT_TRUTH)
    assert model.guaranteed_  # nothing is trained, whatever cv says
    assert model.policy_.n_samples_ == 150
    dist = inner.fit(P, LOGIT_TRUTH).predict_distribution(P)
    np.testing.assert_array_equal(model.predict(P), dist.mode())
    expected = model.accuracy_estimator_.predict(dist)
    np.testing.assert_allclose(model.predict_accuracy(P), expected)
    estimate = model.estimate(P)
    assert estimate.low < model.score(P, LOGIT_TRUTH) < estimate.high


def test_votes_as_nested_lists():
    votes = INPUTS["votes"].tolist()
    model = aware(ls.PrecomputedProbabilities(kind="votes")).fit(votes, LOGIT_TRUTH)
    assert model.predict_accuracy(votes).shape == (300,)


@pytest.mark.parametrize("frozen", [False, True])
def test_names_of_probabilities(frozen):
    P = pd.DataFrame(MARGINALS, columns=["sea", "sky", "sun"])
    frame = pd.DataFrame(LOGIT_TRUTH, columns=["sea", "sky", "sun"])
    named = [[P.columns[j] for j in np.flatnonzero(row)] for row in LOGIT_TRUTH]
    expected = aware(ls.PrecomputedProbabilities()).fit(MARGINALS, LOGIT_TRUTH)
    for y in (frame, frame[["sun", "sea", "sky"]], LOGIT_TRUTH, named):
        inner = ls.PrecomputedProbabilities()
        if frozen:
            inner = FrozenEstimator(inner.fit(P, frame))
        model = aware(inner).fit(P, y)
        assert sorted(model.label_names_) == ["sea", "sky", "sun"]
        assert model.predict_distribution(P).label_names == model.label_names_
        assert model.score(P, frame) == pytest.approx(expected.score(MARGINALS, LOGIT_TRUTH))
        if not frozen:
            found = model.predict_accuracy(P)
            np.testing.assert_allclose(found, expected.predict_accuracy(MARGINALS), atol=1e-9)


# Kept and searched.


@pytest.mark.parametrize(
    "inner",
    [
        KNeighborsClassifier(),
        make_pipeline(StandardScaler(), ClassifierChain(LogisticRegression())),
        FrozenEstimator(clone(TREE).fit(X, Y)),
        ls.BinaryRelevance(),
    ],
    ids=lambda inner: type(inner).__name__,
)
def test_clone_pickle_and_skops(inner, tmp_path):
    model = aware(inner, target=TARGET, cv=0.4).fit(X, Y)
    expected = model.assess(X)
    skops.io.dump(model, tmp_path / "model.skops")
    types = skops.io.get_untrusted_types(file=tmp_path / "model.skops")
    skops.io.dump(model.estimator_, tmp_path / "inner.skops")
    of_inner = skops.io.get_untrusted_types(file=tmp_path / "inner.skops")
    own = set(types) - {name for name in of_inner if not name.startswith("labelsure.")}
    assert all(name.startswith("labelsure.") for name in own)
    loaded = skops.io.load(tmp_path / "model.skops", trusted=types)
    for other in (pickle.loads(pickle.dumps(model)), loaded, clone(model).fit(X, Y)):
        found = other.assess(X)
        np.testing.assert_array_equal(found.Y_pred, expected.Y_pred)
        np.testing.assert_array_equal(found.accuracy, expected.accuracy)
        np.testing.assert_array_equal(found.accepted, expected.accepted)
        assert other.guaranteed_


def test_a_search_over_parameters_of_the_model():
    model = aware(make_pipeline(StandardScaler(), TREE), cv=2)
    grid = {"estimator__decisiontreeclassifier__max_depth": [1, 3], "decision": ["mode", "best"]}
    search = GridSearchCV(model, grid, cv=2).fit(X, Y)
    assert search.best_score_ > 0.6
    assert search.predict(X).shape == Y.shape
    inside = aware(GridSearchCV(TREE, {"max_depth": [1, 3]}, cv=2), cv=2).fit(X, Y)
    assert inside.estimator_.best_params_["max_depth"] in (1, 3)


# Refused before it is fitted, and warned of once.

ONLY_SCORES = {
    "machine": LinearSVC(),
    "ridge": RidgeClassifier(),
    "per label": MultiOutputClassifier(LinearSVC()),
    "rest": OneVsRestClassifier(SVC()),
    "pipeline": make_pipeline(StandardScaler(), MultiOutputClassifier(LinearSVC())),
    "frozen": FrozenEstimator(MultiOutputClassifier(LinearSVC()).fit(X, Y)),
}


@pytest.mark.parametrize("name", ONLY_SCORES)
def test_scores_are_refused_before_anything_is_fitted(name, monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("fitted")

    for model in (LinearSVC, SVC, RidgeClassifier):
        monkeypatch.setattr(model, "fit", fail)
    message = r"`estimator` must have `predict_proba`.*`CalibratedClass"
    with pytest.raises(ls.InputError, match=message):
        aware(ONLY_SCORES[name]).fit(X, Y)


def test_a_chain_of_scores_is_refused():
    message = r"learners of a ClassifierChain must have.*`CalibratedClassifierCV\(LinearSVC\(\)\)`"
    with pytest.raises(ls.InputError, match=message):
        aware(ClassifierChain(LinearSVC())).fit(X, Y)


def test_a_search_of_scores_is_refused_once_it_is_fitted():
    search = GridSearchCV(MultiOutputClassifier(LinearSVC()), {"estimator__C": [0.1, 1.0]}, cv=2)
    with pytest.raises(ls.InputError, match="must have `predict_proba`"):
        aware(search, cv=0.4).fit(X, Y)


def test_a_search_may_find_a_model_with_probabilities():
    pipeline = make_pipeline(StandardScaler(), RidgeClassifier())
    search = GridSearchCV(pipeline, {"ridgeclassifier": [TREE]}, cv=2)
    assert aware(search, cv=0.4).fit(X, Y).score(X, Y) > 0.6


def test_what_is_no_estimator_is_refused():
    for thing in (lambda X: X, "tree", object()):
        with pytest.raises(ls.InputError, match="cloned"):
            aware(thing).fit(X, Y)


@pytest.mark.parametrize("cv", [5, 0.4])
def test_constant_labels_are_warned_of_once(cv):
    constant = Y.copy()
    constant[:, 1] = 0
    constant[3, 2] = 1 - constant[3, 2]
    with pytest.warns(ls.ProbabilityWarning) as caught:
        model = aware(TREE, cv=cv, target=TARGET).fit(X, constant)
    assert len(caught) == 1
    assert "The probability of 'y1' is 0 or 1, to seven digits, in every row" in str(
        caught[0].message
    )
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.ProbabilityWarning)
        clone(model).fit(X, constant)


def test_other_warnings_come_through():
    class Worried(Counting):
        def fit(self, X, y):
            warnings.warn("this looks odd", RuntimeWarning, stacklevel=2)
            return super().fit(X, y)

    with pytest.warns(RuntimeWarning, match="this looks odd") as caught:
        aware(Worried(), cv=0.4).fit(X, Y)
    assert [entry.category for entry in caught] == [RuntimeWarning, ls.ProbabilityWarning]


def test_a_rare_label_is_absent_in_some_folds():
    rare = Y.copy()
    rare[:, 0] = np.arange(200) == 7
    with pytest.warns(ls.ProbabilityWarning, match="'y0'") as caught:
        aware(MultiOutputClassifier(TREE)).fit(X, rare)
    assert len(caught) == 1


def test_the_summary_says_what_is_guaranteed():
    said = aware(TREE, target=TARGET, cv=0.4).fit(X, Y)
    assert said.summary_ == (
        said.policy_.message_.replace("mean accuracy", "mean Hamming accuracy")
        + " Guaranteed: the policy has a calibration set of its own. Accuracy is that of "
        "the most probable labelsets."
    )
    said = aware(TREE, target=TARGET).fit(X, Y)
    assert "Not guaranteed: with folds" in said.summary_
    assert "those of models trained on 80% of the rows" in said.summary_
    assert "There is no target" in aware(TREE).fit(X, Y).summary_
    with pytest.warns(ls.TargetWarning):
        said = aware(TREE, target=0.99, cv=0.4).fit(X, Y)
    assert (
        said.summary_ == f"{said.policy_.message_} Accuracy is that of the most probable labelsets."
    )
    assert not said.guaranteed_


def test_calibrated_scores():
    model = aware(MultiOutputClassifier(CalibratedClassifierCV(LinearSVC(), cv=2)), cv=0.4)
    assert model.fit(X, Y).score(X, Y) > 0.6


@pytest.mark.parametrize("wrap", [aware, ls.RecalibratedClassifier])
def test_a_label_that_is_missing_in_a_fold_is_named(wrap):
    rare = pd.DataFrame(Y, columns=[f"label {j}" for j in range(Y.shape[1])])
    rare["label 1"] = (np.arange(len(Y)) == 7).astype(int)
    model = MultiOutputClassifier(LogisticRegression())
    message = "`MultiOutputClassifier` needs both values .* but 'label 1' has only one"
    with pytest.raises(ls.InputError, match=message):
        wrap(model).fit(X, rare)


def test_the_source_of_a_public_class_can_be_shown():
    source = inspect.getsource(ls.AccuracyAwareClassifier)
    assert source.startswith("class AccuracyAwareClassifier")


def test_a_chain_of_labels_does_not_take_a_vector():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = ls.AccuracyAwareClassifier(ClassifierChain(LogisticRegression()), cv=0.4)
    with pytest.raises(ls.InputError, match="ClassifierChain"):
        model.fit(X, (X[:, 0] > 0).astype(int))


@pytest.mark.filterwarnings("ignore:.*held out")
def test_weights_reach_the_last_step_of_a_pipeline_or_are_refused():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    Y = (X[:, :2] + rng.normal(size=(120, 2)) > 0).astype(int)
    weights = rng.uniform(0.1, 3, 120)
    trees = RandomForestClassifier(5, random_state=0)
    fits = [
        ls.AccuracyAwareClassifier(model, recalibration=None, random_state=0).fit(X, Y, weights)
        for model in (trees, make_pipeline("passthrough", trees))
    ]
    found, wanted = (model.predict_accuracy(X).tolist() for model in fits)
    assert found == wanted
    with pytest.raises(ls.InputError, match="KNeighborsClassifier"):
        ls.AccuracyAwareClassifier(KNeighborsClassifier()).fit(X, Y, weights)
