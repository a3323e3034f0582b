"""Every model of the table in the documentation is read, and gives what the table says."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import oracles_classifiers as slow
import pandas as pd
import pytest
import scipy.sparse as sp
from data_for_classifiers import make_problem
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

import labelsure as ls

DOCS = Path(__file__).resolve().parents[2] / "docs"
N_LABELS = 4
X, Y = make_problem(n_labels=N_LABELS)

LOGISTIC = LogisticRegression()
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
CALIBRATED = {"cv": 2, "method": "sigmoid"}


def of_another_library(library, name, **settings):
    """Return what makes the model, or skips the test where the library is missing."""

    def make():
        reason = f"{library} is not installed (pip install labelsure[models])"
        return getattr(pytest.importorskip(library, reason=reason), name)(**settings)

    return make


XGBOOST = {"n_estimators": 3, "max_depth": 2, "n_jobs": 1}
LIGHTGBM = {"n_estimators": 3, "min_child_samples": 5, "verbose": -1, "n_jobs": 1}
CATBOOST = {"iterations": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
make_lightgbm = of_another_library("lightgbm", "LGBMClassifier", **LIGHTGBM)
make_xgboost = of_another_library("xgboost", "XGBClassifier", **XGBOOST)
make_catboost = of_another_library("catboost", "CatBoostClassifier", **CATBOOST)


# How each model's own output is read, written once more as plain loops.


def kept_off(p):
    """Estimates are never quite 0 or 1."""
    return min(max(p, 2.0**-24), 1 - 2.0**-24)


def second_of_each_pair(model, X):
    """From a list with P(y_j = 0), P(y_j = 1) for each label."""
    pairs = model.predict_proba(X)
    return [
        [kept_off(float(pairs[j][i][1])) for j in range(len(pairs))] for i in range(len(pairs[0]))
    ]


def columns_as_they_are(model, X):
    """From P(y_j = 1), one column for each label."""
    return [[kept_off(float(p)) for p in row] for row in model.predict_proba(X)]


def second_column(model, X):
    """From P(y = 0), P(y = 1) of the only label."""
    return [[kept_off(float(row[1]))] for row in model.predict_proba(X)]


def shares_of_votes(model, X):
    """From the labelset that each tree predicts."""
    votes = [tree.predict(np.asarray(X, dtype=np.float32)) for tree in model.estimators_]
    return [
        [sum(vote[i][j] for vote in votes) / len(votes) for j in range(N_LABELS)]
        for i in range(len(X))
    ]


def sums_of_the_chain(model, X):
    """From the joint probabilities of the chain, each product written out."""
    marginals = []
    for x in X.tolist():
        joint = slow.joint_of_chain(model.estimators_, model.order_, x)
        marginals.append(
            [sum(p for code, p in enumerate(joint) if code >> j & 1) for j in range(N_LABELS)]
        )
    return marginals


def inside(read, *path):
    """Return a reading of the model that is found by following attributes."""

    def read_inside(model, X):
        for name in path:
            model = getattr(model, name)
        return read(model, X)

    return read_inside


def behind_a_scaler(model, X):
    return second_of_each_pair(model[-1], model[0].transform(X))


def distribution_itself(model, X):
    """From all probabilities of the model's own distribution."""
    return [
        [sum(p for code, p in enumerate(joint) if code >> j & 1) for j in range(N_LABELS)]
        for joint in model.predict_distribution(X).probabilities().tolist()
    ]


@dataclass(frozen=True)
class Case:
    """One model of the table.

    `name` is what the table calls it, `model` an estimator or what makes one, `read` the loop that
    reads it, `how` and `gives` the other two columns, `Y` what it is fitted on. `warns` says that
    some labels are certain whatever the instance.
    """

    name: str
    model: Any
    read: Any
    how: str
    gives: type
    Y: Any = None
    warns: bool = False


PROBABILITIES = "by `predict_proba`"
INSIDE = "as the model inside"


def marginals(name, model, read, **further):
    return Case(name, model, read, PROBABILITIES, ls.IndependentLabels, **further)


def in_multi_output(learner):
    return MultiOutputClassifier(learner)


CASES = [
    # scikit-learn's models that take labelsets
    Case(
        "RandomForestClassifier",
        RandomForestClassifier(9, max_depth=3, random_state=0),
        shares_of_votes,
        "by the votes of its trees",
        ls.LabelsetTable,
    ),
    Case(
        "ExtraTreesClassifier",
        ExtraTreesClassifier(9, max_depth=3, random_state=0),
        shares_of_votes,
        "by the votes of its trees",
        ls.LabelsetTable,
    ),
    marginals("DecisionTreeClassifier", TREE, second_of_each_pair),
    marginals(
        "ExtraTreeClassifier", ExtraTreeClassifier(max_depth=3, random_state=0), second_of_each_pair
    ),
    marginals("KNeighborsClassifier", KNeighborsClassifier(5), second_of_each_pair),
    marginals("RadiusNeighborsClassifier", RadiusNeighborsClassifier(2.0), second_of_each_pair),
    marginals(
        "MLPClassifier",
        MLPClassifier((3,), max_iter=1000, tol=0.1, random_state=0),
        columns_as_they_are,
    ),
    *[
        marginals(
            f'DummyClassifier(strategy="{strategy}")',
            DummyClassifier(strategy=strategy, random_state=0),
            second_of_each_pair,
            warns=strategy == "most_frequent",
        )
        for strategy in ("prior", "most_frequent", "stratified", "uniform")
    ],
    marginals(
        'DummyClassifier(strategy="constant")',
        DummyClassifier(strategy="constant", constant=[0, 1, 1, 0]),
        second_of_each_pair,
        warns=True,
    ),
    # One learner for each label
    marginals(
        "MultiOutputClassifier(LogisticRegression())",
        in_multi_output(LOGISTIC),
        second_of_each_pair,
    ),
    marginals(
        "MultiOutputClassifier(HistGradientBoostingClassifier())",
        in_multi_output(HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5)),
        second_of_each_pair,
    ),
    marginals(
        "MultiOutputClassifier(GradientBoostingClassifier())",
        in_multi_output(GradientBoostingClassifier(n_estimators=3, random_state=0)),
        second_of_each_pair,
    ),
    marginals(
        "MultiOutputClassifier(CalibratedClassifierCV(RidgeClassifier()))",
        in_multi_output(CalibratedClassifierCV(RidgeClassifier(), cv=2)),
        second_of_each_pair,
    ),
    marginals(
        "MultiOutputClassifier(CalibratedClassifierCV(LinearSVC()))",
        in_multi_output(CalibratedClassifierCV(LinearSVC(), cv=2)),
        second_of_each_pair,
    ),
    marginals(
        "MultiOutputClassifier(CalibratedClassifierCV(SVC()))",
        in_multi_output(CalibratedClassifierCV(SVC(), cv=2)),
        second_of_each_pair,
    ),
    marginals(
        "OneVsRestClassifier(LogisticRegression())",
        OneVsRestClassifier(LOGISTIC),
        columns_as_they_are,
    ),
    marginals(
        "OneVsRestClassifier(GaussianNB())", OneVsRestClassifier(GaussianNB()), columns_as_they_are
    ),
    marginals(
        "OneVsRestClassifier(CalibratedClassifierCV(LinearSVC()))",
        OneVsRestClassifier(CalibratedClassifierCV(LinearSVC(), cv=2)),
        columns_as_they_are,
    ),
    Case(
        "ClassifierChain(LogisticRegression())",
        ClassifierChain(LOGISTIC, order=[1, 3, 0, 2]),
        sums_of_the_chain,
        "by the joint probability of its chain",
        ls.distributions.ChainMixture,
    ),
    Case(
        "ClassifierChain(DecisionTreeClassifier())",
        ClassifierChain(TREE),
        sums_of_the_chain,
        "by the joint probability of its chain",
        ls.distributions.ChainMixture,
    ),
    # A vector of zeros and ones is one label
    marginals("LogisticRegression", LOGISTIC, second_column, Y=Y[:, 0]),
    marginals(
        "CalibratedClassifierCV(LinearSVC())",
        CalibratedClassifierCV(LinearSVC(), cv=2),
        second_column,
        Y=Y[:, 0],
    ),
    # Around a model
    Case(
        "Pipeline",
        make_pipeline(StandardScaler(), KNeighborsClassifier(5)),
        behind_a_scaler,
        INSIDE,
        ls.IndependentLabels,
    ),
    Case(
        "GridSearchCV",
        GridSearchCV(ClassifierChain(LOGISTIC), {"estimator__C": [0.1, 1.0]}, cv=2),
        inside(sums_of_the_chain, "best_estimator_"),
        INSIDE,
        ls.distributions.ChainMixture,
    ),
    Case(
        "RandomizedSearchCV",
        RandomizedSearchCV(
            KNeighborsClassifier(), {"n_neighbors": [3, 5]}, n_iter=1, cv=2, random_state=0
        ),
        inside(second_of_each_pair, "best_estimator_"),
        INSIDE,
        ls.IndependentLabels,
    ),
    Case(
        "FrozenEstimator",
        lambda: FrozenEstimator(RandomForestClassifier(9, max_depth=3, random_state=0).fit(X, Y)),
        inside(shares_of_votes, "estimator"),
        INSIDE,
        ls.LabelsetTable,
    ),
    # Other libraries
    marginals("XGBClassifier", make_xgboost, columns_as_they_are),
    marginals(
        'XGBClassifier(multi_strategy="multi_output_tree")',
        of_another_library(
            "xgboost",
            "XGBClassifier",
            multi_strategy="multi_output_tree",
            tree_method="hist",
            **XGBOOST,
        ),
        columns_as_they_are,
    ),
    marginals(
        "MultiOutputClassifier(XGBClassifier())",
        lambda: in_multi_output(make_xgboost()),
        second_of_each_pair,
    ),
    marginals(
        "MultiOutputClassifier(LGBMClassifier())",
        lambda: in_multi_output(make_lightgbm()),
        second_of_each_pair,
    ),
    marginals(
        "OneVsRestClassifier(LGBMClassifier())",
        lambda: OneVsRestClassifier(make_lightgbm()),
        columns_as_they_are,
    ),
    marginals("LGBMClassifier", make_lightgbm, second_column, Y=Y[:, 0]),
    marginals(
        'CatBoostClassifier(loss_function="MultiLogloss")',
        of_another_library(
            "catboost", "CatBoostClassifier", loss_function="MultiLogloss", **CATBOOST
        ),
        columns_as_they_are,
    ),
    marginals(
        'CatBoostClassifier(loss_function="MultiCrossEntropy")',
        of_another_library(
            "catboost", "CatBoostClassifier", loss_function="MultiCrossEntropy", **CATBOOST
        ),
        columns_as_they_are,
    ),
    marginals(
        "MultiOutputClassifier(CatBoostClassifier())",
        lambda: in_multi_output(make_catboost()),
        second_of_each_pair,
    ),
    # labelsure's own
    Case(
        "BinaryRelevance",
        ls.BinaryRelevance(),
        distribution_itself,
        "by its own distribution",
        ls.IndependentLabels,
    ),
    Case(
        "LabelPowerset",
        ls.LabelPowerset(share=0.1),
        distribution_itself,
        "by its own distribution",
        ls.distributions.SmoothedTable,
    ),
    Case(
        "ProbabilisticClassifierChain",
        ls.ProbabilisticClassifierChain(),
        distribution_itself,
        "by its own distribution",
        ls.distributions.ChainMixture,
    ),
    Case(
        "EnsembleOfClassifierChains",
        ls.EnsembleOfClassifierChains(n_chains=2, random_state=0),
        distribution_itself,
        "by its own distribution",
        ls.distributions.ChainMixture,
    ),
    Case(
        "ClassifierTrellis",
        ls.classifiers.ClassifierTrellis(random_state=0),
        distribution_itself,
        "by its own distribution",
        ls.distributions.TrellisDistribution,
    ),
]


def fit(case):
    model = case.model() if not hasattr(case.model, "fit") else clone(case.model)
    return model.fit(X, Y if case.Y is None else case.Y)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_model(case):
    model, rows = fit(case), X[:30]
    if case.warns:
        with pytest.warns(ls.ProbabilityWarning, match="every"):
            dist = ls.as_distribution(model, rows)
    else:
        dist = ls.as_distribution(model, rows)
    expected = case.read(model, rows)
    assert type(dist) is case.gives
    assert (len(dist), dist.n_labels) == (30, len(expected[0]))
    np.testing.assert_allclose(dist.marginals(), expected, atol=1e-12)
    assert ls.confidence(dist).to_numpy().shape[0] == 30
    assert set(np.unique(ls.decide(dist, "f1").labelsets)) <= {0, 1}
    assert ls.decide(dist, "jaccard").labelsets.shape == (30, dist.n_labels)


def test_the_table_of_the_documentation():
    """| model | how it is read | what you get |, with several models in the first cell."""
    rows = {}
    for line in (DOCS / "reference" / "models.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if len(cells) == 3 and cells[0].startswith("`"):
            for name in re.findall("`([^`]*)`", cells[0]):
                assert name not in rows, f"{name} is there twice"
                rows[name] = (cells[1], cells[2])
    expected = {
        case.name: (
            case.how,
            "that of the model inside" if case.how == INSIDE else f"`{case.gives.__name__}`",
        )
        for case in CASES
    }
    assert rows == expected


def test_catboost_reports_the_number_of_its_only_label_as_its_classes():
    """Marginals of exactly 0 came out of `classes_ = [0]` beside P(y = 0) and P(y = 1)."""
    make = of_another_library(
        "catboost", "CatBoostClassifier", loss_function="MultiLogloss", **CATBOOST
    )
    model = make().fit(X, Y[:, :1])
    assert model.classes_.tolist() == [0]
    np.testing.assert_allclose(ls.as_distribution(model, X).marginals(), second_column(model, X))
    several = MultiOutputClassifier(make()).fit(X, Y)
    expected = second_of_each_pair(several, X)
    np.testing.assert_allclose(ls.as_distribution(several, X).marginals(), expected)
    own = ls.BinaryRelevance(make()).fit(X, Y)
    np.testing.assert_allclose(own.predict_proba(X), expected)


@pytest.mark.parametrize("make", [make_xgboost, make_lightgbm, make_catboost])
def test_a_vector_of_three_classes_is_refused(make):
    model = make().fit(X, np.arange(len(X)) % 3)
    with pytest.raises(ls.InputError, match="classes"):
        ls.as_distribution(model, X)


@pytest.mark.parametrize("n_labels", [1, 2])
@pytest.mark.parametrize(
    "make",
    [
        make_xgboost,
        of_another_library(
            "catboost", "CatBoostClassifier", loss_function="MultiLogloss", **CATBOOST
        ),
        lambda: OneVsRestClassifier(LOGISTIC),
        lambda: MLPClassifier((3,), max_iter=1000, tol=0.1, random_state=0),
    ],
    ids=["xgboost", "catboost", "one-vs-rest", "network"],
)
def test_two_columns_are_two_labels_or_one(make, n_labels):
    model = make().fit(X, Y[:, :n_labels] if n_labels > 1 else Y[:, 0])
    expected = columns_as_they_are(model, X) if n_labels == 2 else second_column(model, X)
    np.testing.assert_allclose(ls.as_distribution(model, X).marginals(), expected)


def test_neighbours_of_another_library():
    """scikit-multilearn gives sparse probabilities."""
    adapt = pytest.importorskip("skmultilearn.adapt", reason="scikit-multilearn is not installed")
    model = adapt.MLkNN(k=3).fit(X, Y)
    expected = model.predict_proba(X).toarray()
    np.testing.assert_allclose(ls.as_distribution(model, X).marginals(), expected)


# X goes through as it came.

TEXTS = ["calm sea", "blue sky", "sea and sky", "sun", "sun and sea", "night", "sky", "calm"] * 5
TEXT_LABELS = np.array([[int(word in text) for word in ("sea", "sky", "sun")] for text in TEXTS])


@pytest.mark.parametrize(
    ("model", "read"),
    [
        (MultiOutputClassifier(LOGISTIC), second_of_each_pair),
        (OneVsRestClassifier(LOGISTIC), columns_as_they_are),
        (ls.BinaryRelevance(), columns_as_they_are),
        (ClassifierChain(LOGISTIC), None),
        (RandomForestClassifier(5, random_state=0), None),
    ],
    ids=lambda part: type(part).__name__,
)
@pytest.mark.parametrize("wrap", [list, np.array, pd.Series], ids=["list", "array", "series"])
def test_texts(model, read, wrap):
    texts = wrap(TEXTS)
    pipeline = make_pipeline(TfidfVectorizer(), clone(model)).fit(texts, TEXT_LABELS)
    dist = ls.as_distribution(pipeline, texts)
    assert dist.marginals().shape == TEXT_LABELS.shape
    if read is not None:
        np.testing.assert_allclose(dist.marginals(), read(pipeline, texts), atol=1e-12)


def test_texts_go_through_a_model_that_vectorises_inside():
    inner = make_pipeline(TfidfVectorizer(), LOGISTIC)
    model = MultiOutputClassifier(inner).fit(TEXTS, TEXT_LABELS)
    dist = ls.as_distribution(model, TEXTS)
    np.testing.assert_allclose(dist.marginals(), second_of_each_pair(model, TEXTS))


COLUMNS = pd.DataFrame(
    {
        "size": X[:, 0],
        "weight": np.where(X[:, 1] > 1, np.nan, X[:, 1]),
        "colour": pd.Categorical(np.where(X[:, 2] > 0, "red", "blue")),
    }
)


def test_named_and_categorical_columns_and_missing_values():
    boosting = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5)
    model = MultiOutputClassifier(boosting).fit(COLUMNS, Y)
    expected = second_of_each_pair(model, COLUMNS)
    np.testing.assert_allclose(ls.as_distribution(model, COLUMNS).marginals(), expected)


@pytest.mark.parametrize(
    "model",
    [ClassifierChain(TREE), RandomForestClassifier(5, max_depth=2, random_state=0), TREE],
    ids=lambda model: type(model).__name__,
)
def test_a_transformer_of_columns(model):
    columns = make_column_transformer(
        (OneHotEncoder(), ["colour"]), (StandardScaler(), ["size"]), remainder="drop"
    )
    pipeline = make_pipeline(columns, clone(model)).fit(COLUMNS, Y)
    dist = ls.as_distribution(pipeline, COLUMNS)
    expected = ls.as_distribution(pipeline[-1], pipeline[0].transform(COLUMNS)).marginals()
    np.testing.assert_allclose(dist.marginals(), expected)
    with pytest.raises(ValueError, match="columns are missing"):
        ls.as_distribution(pipeline, COLUMNS.drop(columns="colour"))


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(5, max_depth=2, random_state=0),
        TREE,
        in_multi_output(LOGISTIC),
        ClassifierChain(LOGISTIC),
        KNeighborsClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_sparse_features(model):
    sparse = sp.csr_matrix(X)
    model = clone(model).fit(sparse, Y)
    np.testing.assert_allclose(
        ls.as_distribution(model, sparse).marginals(),
        ls.as_distribution(model, X).marginals(),
        atol=1e-12,
    )


@pytest.mark.parametrize(
    "model",
    [RandomForestClassifier(5, max_depth=2, random_state=0), TREE],
    ids=lambda model: type(model).__name__,
)
def test_missing_values_where_the_model_takes_them(model):
    with_missing = np.where(X > 1, np.nan, X)
    dist = ls.as_distribution(clone(model).fit(with_missing, Y), with_missing)
    assert dist.marginals().shape == Y.shape
