"""Fitted values that compiled code follows unchecked: genuine ones load, forged ones do not."""

import importlib
from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import saved_files as sf
from scipy.sparse import csr_matrix
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, StackingClassifier
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    KNeighborsTransformer,
    RadiusNeighborsClassifier,
    RadiusNeighborsTransformer,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder
from sklearn.svm import SVC, NuSVC
from sklearn.tree import DecisionTreeClassifier

import labelsure as ls
from labelsure.saving._values import VALUE_CHECKS, _parts

pytestmark = pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")
RECORDS = [{"a": i % 3, f"b{i % 5}": 1.0} for i in range(len(sf.X))]
BINS = np.array([[i % 5, i % 3] for i in range(len(sf.X))])


def stacked(member):
    return StackingClassifier([("a", member), ("b", GaussianNB())], LogisticRegression(), cv=2)


def of_text(vectorizer):
    return make_pipeline(ColumnTransformer([("text", vectorizer, "note")]), ls.BinaryRelevance())


# The learner of each label, or a model of all, and its features
GENUINE = {
    "chain": (ls.ProbabilisticClassifierChain(random_state=0), sf.X),
    "chain of trees": (ls.ProbabilisticClassifierChain(GaussianNB(), random_state=0), sf.X),
    "support vectors": (SVC(random_state=0), sf.X),
    "sparse support vectors": (SVC(kernel="linear", random_state=0), csr_matrix(sf.X)),
    "few support vectors": (NuSVC(nu=0.05, random_state=0), sf.X),
    "neighbours": (KNeighborsClassifier(algorithm="brute"), sf.X),
    "neighbours within": (RadiusNeighborsClassifier(9.0, algorithm="brute"), sf.X),
    "neighbours' means": (stacked(KNeighborsRegressor(algorithm="brute")), sf.X),
    "graph": (make_pipeline(KNeighborsTransformer(algorithm="brute"), LogisticRegression()), sf.X),
    "graph within": (
        make_pipeline(RadiusNeighborsTransformer(algorithm="brute"), LogisticRegression()),
        sf.X,
    ),
    "clusters": (stacked(KMeans(3, n_init=1, random_state=0)), sf.X),
    "mini-batch clusters": (stacked(MiniBatchKMeans(3, n_init=1, random_state=0)), sf.X),
    "codes": (make_pipeline(OneHotEncoder(), LogisticRegression()), BINS),
    "codes but one": (make_pipeline(OneHotEncoder(drop="first"), LogisticRegression()), BINS),
    "frequent codes": (
        make_pipeline(OneHotEncoder(max_categories=3, drop="first"), LogisticRegression()),
        BINS,
    ),
    "bins": (
        make_pipeline(
            KBinsDiscretizer(3, encode="onehot-dense", quantile_method="averaged_inverted_cdf"),
            LogisticRegression(),
        ),
        sf.X,
    ),
    "words": (of_text(CountVectorizer()), sf.TABLE),
    "weighted words": (of_text(TfidfVectorizer()), sf.TABLE),
    "hashed words": (of_text(HashingVectorizer(n_features=16)), sf.TABLE),
    "records": (make_pipeline(DictVectorizer(), ls.BinaryRelevance()), RECORDS),
    "hashed records": (make_pipeline(FeatureHasher(16), ls.BinaryRelevance()), RECORDS),
    "forest": (RandomForestClassifier(2, max_depth=2, random_state=0), sf.X),
    "bag": (BaggingClassifier(DecisionTreeClassifier(), 2, max_features=2, random_state=0), sf.X),
    "precomputed": (ls.PrecomputedProbabilities(label_names=list("abc")), sf.P),
    "precomputed joint": (ls.PrecomputedProbabilities("joint"), np.full((len(sf.X), 8), 0.125)),
}


@cache
def fit(kind):
    learner, X = GENUINE[kind]
    if isinstance(learner, (ls.ProbabilisticClassifierChain, ls.PrecomputedProbabilities)):
        return learner.fit(X, sf.Y), X
    if isinstance(X, (list, type(sf.TABLE))):
        return ls.RecalibratedClassifier(learner, cv=2, random_state=0).fit(X, sf.Y), X
    if isinstance(learner, (SVC, NuSVC)):
        return ls.BinaryRelevance(learner.set_params(probability=True)).fit(X, sf.Y), X
    return ls.BinaryRelevance(learner).fit(X, sf.Y), X


@pytest.mark.parametrize("kind", GENUINE)
def test_genuine_values_load(kind, tmp_path):
    model, X = fit(kind)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(ls.load(tmp_path / "m").predict_proba(X), model.predict_proba(X))


def test_every_check_has_a_genuine_model():
    seen = set()
    for kind in GENUINE:
        for part in _parts(fit(kind)[0]):
            seen |= {f"{base.__module__}.{base.__qualname__}" for base in type(part).__mro__}
    assert {name for name in VALUE_CHECKS if not name.startswith("numpy.random")} <= seen


@pytest.mark.parametrize("name", VALUE_CHECKS)
def test_checked_types_exist(name):
    module, _, kind = name.rpartition(".")
    assert isinstance(getattr(importlib.import_module(module), kind), type)


def narrow(values, _):
    return values[:, :1].copy()


def fewer(values, _):
    return values[:1].copy()


def far(columns, _):
    return {word: 10**7 + column for word, column in columns.items()}


CHAIN_WEIGHTS = {
    "of labels": lambda w, _: (w[0], w[1][:1, :1].copy(), w[2]),
    "of features": lambda w, _: (w[0][:, :1].copy(), w[1], w[2]),
    "intercepts": lambda w, _: (w[0], w[1], w[2][:1].copy()),
}
VECTORS = "support vectors do not have the sizes"
SIZES = "neighbours do not have the sizes"
CLASSES = "neighbours have classes beyond"
COLUMNS = "categories have columns beyond"
# Kind of model, attributes to change (a value or a function of the old one), message
FORGED = [
    *(
        ("chain", {"order_": np.array(order)}, "does not name each label once")
        for order in ([0, 0, 0], [0, 1, -1], [0, 10**7, 1], [0, 1], [0, 1, 2, 3], [0.0, 1.0, 2.0])
    ),
    ("chain of trees", {"order_": np.array([0, 0, 0])}, "does not name each label once"),
    *(
        ("chain", {"_linear_weights": change}, "the weights of a chain")
        for change in CHAIN_WEIGHTS.values()
    ),
    ("support vectors", {"support_vectors_": narrow}, VECTORS),
    ("support vectors", {"support_vectors_": fewer}, VECTORS),
    ("support vectors", {"_dual_coef_": narrow}, VECTORS),
    ("support vectors", {"_intercept_": np.empty(0)}, VECTORS),
    ("support vectors", {"_probA": np.ones(9), "_probB": np.ones(9)}, VECTORS),
    ("support vectors", {"_impl": "nu_svr"}, VECTORS),
    ("support vectors", {"kernel": "precomputed"}, VECTORS),
    (
        "support vectors",
        {"_n_support": lambda n, _: np.array([n.sum() + 1000, -1000], np.int32)},
        VECTORS,
    ),
    (
        "support vectors",
        {"classes_": None, "_n_support": lambda n, _: np.array([n.sum(), 10**6], np.int32)},
        VECTORS,
    ),
    ("sparse support vectors", {"support_vectors_": lambda v, _: v[:1].tocsr()}, VECTORS),
    ("few support vectors", {"_n_support": lambda n, _: n[:1].copy()}, VECTORS),
    *(
        (kind, {"_fit_X": narrow}, SIZES)
        for kind in (
            "neighbours",
            "neighbours within",
            "neighbours' means",
            "graph",
            "graph within",
        )
    ),
    ("graph", {"n_neighbors": 10**7, "n_samples_fit_": 10**8}, SIZES),
    ("neighbours' means", {"_y": fewer}, SIZES),
    (
        "neighbours",
        {"effective_metric_": "mahalanobis", "effective_metric_params_": {"VI": np.ones((1, 1))}},
        SIZES,
    ),
    ("neighbours", {"classes_": np.array([0])}, CLASSES),
    ("neighbours", {"_y": lambda y, _: y - 9}, CLASSES),
    ("neighbours", {"_y": lambda y, _: y + 0.5}, CLASSES),
    ("neighbours", {"_y": lambda y, _: np.stack([y, y], axis=1)}, CLASSES),
    ("clusters", {"cluster_centers_": narrow}, "centres have another width"),
    ("clusters", {"cluster_centers_": lambda c, _: c[:0]}, "centres have another width"),
    ("mini-batch clusters", {"cluster_centers_": narrow}, "centres have another width"),
    ("clusters", {"_n_threads": 10**6}, "too many threads"),
    ("codes", {"_n_features_outs": [5, 2]}, COLUMNS),
    ("codes", {"_n_features_outs": [-5, 12]}, COLUMNS),
    ("codes but one", {"_n_features_outs": [3, 2]}, COLUMNS),
    (
        "codes but one",
        {"_drop_idx_after_grouping": np.array([-7, -7], dtype=object)},
        COLUMNS,
    ),
    (
        "codes but one",
        {"_drop_idx_after_grouping": np.array([99, 99], dtype=object)},
        COLUMNS,
    ),
    (
        "frequent codes",
        {"_default_to_infrequent_mappings": [np.array([10**8, 0, 0, 0, 0]), None]},
        COLUMNS,
    ),
    (
        "frequent codes",
        {"_default_to_infrequent_mappings": [np.array([-(10**8), 0, 0, 0, 0]), None]},
        COLUMNS,
    ),
    ("bins", {"_n_features_outs": [2, 3, 3]}, COLUMNS),
    *(
        (kind, {"vocabulary_": change}, "words have columns beyond")
        for kind in ("words", "weighted words", "records")
        for change in (far, lambda columns, _: dict.fromkeys(columns, -5))
    ),
    *(
        (kind, {"n_features": n}, "words are hashed to no columns")
        for kind in ("hashed words", "hashed records")
        for n in (0, -3, 2**40, 1.5)
    ),
    (
        "bag",
        {"estimators_features_": lambda columns, _: [some[:1].copy() for some in columns]},
        "more features than its ensemble",
    ),
    *(
        (kind, {"n_classes_": n}, "another number of classes than it lists")
        for kind in ("forest", "bag")
        for n in (10**9, 1, [2, 2])
    ),
    *(
        (kind, changes, "precomputed probabilities do not have the labels")
        for kind in ("precomputed", "precomputed joint")
        for changes in (
            {"n_labels_": 2},
            {"n_features_in_": 10**9},
            {"n_features_in_": 0},
            {"label_names_": tuple(f"y{j}" for j in range(40))},
            {"column_names_": tuple(f"y{j}" for j in range(40))},
        )
    ),
]


@pytest.mark.parametrize(("kind", "changes", "message"), FORGED)
def test_forged_values_are_refused(kind, changes, message, tmp_path):
    model = deepcopy(fit(kind)[0])
    n_changed = 0
    for part in _parts(model):
        if changes.keys() <= vars(part).keys() | {"_impl"} and not isinstance(
            part, ls.BinaryRelevance
        ):
            for name, value in changes.items():
                vars(part)[name] = value(vars(part).get(name), part) if callable(value) else value
            if changes.get("classes_", 0) is None:
                del part.classes_
            n_changed += 1
    assert n_changed
    model.save(tmp_path / "m")
    with pytest.raises(ls.DataError, match=message):
        ls.load(tmp_path / "m")


def test_a_tree_beside_its_estimator_is_checked(tmp_path):
    """Boosting follows the tree of whatever it holds, not of decision trees alone."""
    model = ls.BinaryRelevance(RandomForestClassifier(2, max_depth=2)).fit(sf.X, sf.Y)
    tree = model.estimators_[0].estimators_[0].tree_
    model.estimators_[1] = LogisticRegression().fit(sf.X[:, :2], sf.Y[:, 0])
    model.estimators_[1].tree_ = tree
    model.save(tmp_path / "m")
    with pytest.raises(ls.DataError, match="another number of features than its estimator"):
        ls.load(tmp_path / "m")
