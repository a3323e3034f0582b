"""`as_distribution` on fitted models of scikit-learn."""

import numpy as np
import oracles_classifiers as slow
import pandas as pd
import pytest
import scipy.sparse as sp
from data_for_classifiers import make_problem
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import labelsure as ls

X, Y = make_problem(n_labels=4)
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
FORESTS = [
    RandomForestClassifier(7, max_depth=3, random_state=0),
    ExtraTreesClassifier(7, max_depth=3, random_state=0),
]


@pytest.mark.parametrize("learner", [LogisticRegression(), TREE], ids=["logistic", "tree"])
@pytest.mark.parametrize("order", [None, [2, 0, 3, 1]])
def test_classifier_chain_is_expanded(learner, order):
    model = ClassifierChain(learner, order=order).fit(X, Y)
    dist = ls.as_distribution(model, X[:3], label_names=list("abcd"))
    assert dist.label_names == tuple("abcd")
    expected = [slow.joint_of_chain(model.estimators_, model.order_, x) for x in X[:3].tolist()]
    np.testing.assert_allclose(dist.probabilities(), expected, atol=1e-12)
    ours = ls.ProbabilisticClassifierChain(learner, order=order).fit(X, Y)
    np.testing.assert_allclose(
        dist.probabilities(), ours.predict_distribution(X[:3]).probabilities(), atol=1e-12
    )


def test_classifier_chain_of_linear_learners_takes_the_fast_route():
    model = ClassifierChain(LogisticRegression(), cv=2, chain_method="predict_proba").fit(X, Y)
    dist = ls.as_distribution(model, X)
    assert isinstance(dist._parts[0], ls.distributions.LinearChain)
    expected = slow.joint_of_chain(model.estimators_, model.order_, X[0].tolist())
    np.testing.assert_allclose(dist.probabilities()[0], expected, atol=1e-12)


@pytest.mark.parametrize("cv", [None, 2])
@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba", "scores"])
def test_learners_of_a_chain_that_were_trained_on_scores_get_scores(cv, method):
    method = "decision_function" if method == "scores" else method
    model = ClassifierChain(LogisticRegression(), cv=cv, chain_method=method).fit(X, Y)
    dist = ls.as_distribution(model, X)
    if cv is None or method in ("predict", "predict_proba"):  # they were trained on labels
        assert isinstance(dist, ls.distributions.ChainMixture)
    else:
        assert isinstance(dist, ls.IndependentLabels)
        np.testing.assert_allclose(dist.marginals(), model.predict_proba(X), atol=1e-12)


def test_classifier_chain_with_frames_sparse_and_constant_labels():
    constant = Y.copy()
    constant[:, 1], constant[:, 2] = 0, 1
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = ClassifierChain(TREE, order=[2, 0, 3, 1]).fit(frame, constant)
    with pytest.warns(ls.ProbabilityWarning, match="seven"):
        marginals = ls.as_distribution(model, frame).marginals()
    kept_off = constant[:, 1:3].clip(2.0**-24, 1 - 2.0**-24)
    np.testing.assert_allclose(marginals[:, 1:3], kept_off, atol=1e-15)
    model.fit(sp.csr_array(X), Y)
    np.testing.assert_allclose(
        ls.as_distribution(model, sp.csr_array(X)).probabilities(),
        ls.as_distribution(model, X).probabilities(),
        atol=1e-12,
    )


def test_multi_output():
    model = MultiOutputClassifier(LogisticRegression()).fit(X, Y)
    expected = ls.BinaryRelevance(LogisticRegression()).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(ls.as_distribution(model, X).marginals(), expected, atol=1e-15)


def test_multi_output_with_constant_labels():
    constant = Y.copy()
    constant[:, 1], constant[:, 2] = 0, 1
    model = MultiOutputClassifier(TREE).fit(X, constant)
    with pytest.warns(ls.ProbabilityWarning, match="seven"):
        marginals = ls.as_distribution(model, X, label_names=list("abcd")).marginals()
    expected = np.column_stack([model.predict_proba(X)[0][:, 1], constant[:, 1:3]])
    np.testing.assert_array_equal(marginals[:, :3], expected.clip(2.0**-24, 1 - 2.0**-24))


def test_one_vs_rest():
    model = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    dist = ls.as_distribution(model, X)
    np.testing.assert_array_equal(dist.marginals(), model.predict_proba(X))


@pytest.mark.parametrize(
    "model",
    [
        OneVsRestClassifier(LogisticRegression()),
        MLPClassifier((2,), max_iter=1000, tol=0.1, random_state=0),
        LogisticRegression(),
        KNeighborsClassifier(),
        RandomForestClassifier(3, random_state=0),
        CalibratedClassifierCV(TREE, cv=2),
        make_pipeline(StandardScaler(), TREE),
        FrozenEstimator(TREE),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("n_classes", [3, 4])
def test_not_fitted_on_labelsets(model, n_classes):
    y = np.arange(len(X)) % n_classes
    model = FrozenEstimator(TREE.fit(X, y)) if hasattr(model, "__sklearn_clone__") else model
    model.fit(X, y)
    message = f"fitted on a vector of {n_classes} classes"
    with pytest.raises(ls.InputError, match=message):
        ls.as_distribution(model, X)


@pytest.mark.parametrize(
    "model",
    [
        OneVsRestClassifier(LogisticRegression()),
        LogisticRegression(),
        CalibratedClassifierCV(LinearSVC(), cv=2),
        DummyClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("dtype", [int, bool, float])
def test_a_vector_of_zeros_and_ones_is_one_label(model, dtype):
    model.fit(X, Y[:, 0].astype(dtype))
    dist = ls.as_distribution(model, X)
    np.testing.assert_array_equal(dist.marginals()[:, 0], model.predict_proba(X)[:, 1])
    assert dist.n_labels == 1


def test_a_vector_of_one_class():
    model = DummyClassifier().fit(X, np.ones(len(X), dtype=int))
    with pytest.warns(ls.ProbabilityWarning, match="seven"):
        marginals = ls.as_distribution(model, X[:1]).marginals()
    np.testing.assert_array_equal(marginals, [[1 - 2.0**-24]])


def test_network():
    model = MLPClassifier((3,), max_iter=1000, tol=0.1, random_state=0).fit(X, Y)
    marginals = ls.as_distribution(model, X).marginals()
    np.testing.assert_array_equal(marginals, model.predict_proba(X))
    model.fit(X, Y[:, 0])
    marginals = ls.as_distribution(model, X).marginals()
    np.testing.assert_array_equal(marginals[:, 0], model.predict_proba(X)[:, 1])


@pytest.mark.parametrize("model", FORESTS, ids=["forest", "extra trees"])
def test_votes_of_a_forest(model):
    constant = Y.copy()
    constant[:, 3] = 1
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with pytest.warns(ls.ProbabilityWarning, match="seven"):
        dist = ls.as_distribution(model.fit(frame, constant), frame)
    votes = [tree.predict(X).astype(int) for tree in model.estimators_]  # indices of classes
    for i in range(len(X)):
        share = np.zeros(16)
        for vote in votes:
            share[sum(bit << j for j, bit in enumerate([*vote[i, :3], 1]))] += 1 / 7
        np.testing.assert_allclose(dist[i].probabilities()[0], share, atol=1e-15)


@pytest.mark.parametrize("model", FORESTS, ids=["forest", "extra trees"])
def test_marginals_of_a_forest(model):
    constant = Y.copy()
    constant[:, 3] = 0
    with pytest.warns(ls.ProbabilityWarning, match="seven"):
        dist = ls.as_distribution(model.fit(X, constant), X, kind="marginal")
    assert isinstance(dist, ls.IndependentLabels)
    probabilities = model.predict_proba(X)
    for j in range(3):
        kept_off = probabilities[j][:, 1].clip(2.0**-24, 1 - 2.0**-24)
        np.testing.assert_array_equal(dist.marginals()[:, j], kept_off)
    assert (dist.marginals()[:, 3] == 2.0**-24).all()


@pytest.mark.parametrize("kind", ["votes", "marginal"])
def test_forest_of_one_label(kind):
    model = RandomForestClassifier(5, random_state=0).fit(X, Y[:, 0])
    dist = ls.as_distribution(model, X, kind=kind)
    assert dist.n_labels == 1
    assert ((dist.marginals()[:, 0] > 0.5) == model.predict(X)).mean() > 0.9


@pytest.mark.parametrize("order", [None, "random"])
def test_our_own(order):
    model = ls.ProbabilisticClassifierChain(order=order, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(
        ls.as_distribution(model, X).probabilities(),
        model.predict_distribution(X).probabilities(),
    )


def test_pipelines_and_searches_are_opened():
    scaled = StandardScaler().fit_transform(X)
    chain = ClassifierChain(LogisticRegression())
    expected = ls.as_distribution(chain.fit(scaled, Y), scaled).probabilities()
    pipeline = make_pipeline(StandardScaler(), ClassifierChain(LogisticRegression())).fit(X, Y)
    np.testing.assert_allclose(ls.as_distribution(pipeline, X).probabilities(), expected)
    search = GridSearchCV(pipeline, {"classifierchain__estimator__C": [1.0]}, cv=2).fit(X, Y)
    np.testing.assert_allclose(ls.as_distribution(search, X).probabilities(), expected)
    np.testing.assert_array_equal(
        ls.as_distribution(make_pipeline(chain), scaled).probabilities(), expected
    )


def test_arrays_go_on_to_the_distributions():
    assert isinstance(ls.as_distribution([[0.2, 0.4]]), ls.IndependentLabels)
    assert isinstance(ls.as_distribution([[0.2, 0.8]], kind="joint"), ls.DenseDistribution)
    dist = ls.IndependentLabels([[0.5]])
    assert ls.as_distribution(dist) is dist
    with pytest.raises(ls.InputError, match="`X`"):
        ls.as_distribution([[0.2, 0.4]], X)


@pytest.mark.parametrize(
    "model",
    [
        ls.BinaryRelevance(),
        ClassifierChain(LogisticRegression()),
        MultiOutputClassifier(LogisticRegression()),
        OneVsRestClassifier(LogisticRegression()),
        MLPClassifier(),
        RandomForestClassifier(),
        make_pipeline(StandardScaler(), ClassifierChain(LogisticRegression())),
        GridSearchCV(ClassifierChain(LogisticRegression()), {}),
        KNeighborsClassifier(),
        TREE,
        make_pipeline(ClassifierChain(LogisticRegression())),
    ],
    ids=lambda model: type(model).__name__,
)
def test_not_fitted(model):
    with pytest.raises(NotFittedError):
        ls.as_distribution(clone(model), X)


def test_wrong_calls():
    chain = ClassifierChain(LogisticRegression()).fit(X, Y)
    with pytest.raises(ls.InputError, match="model"):
        ls.as_distribution(chain)
    with pytest.raises(ls.InputError, match="`kind`"):
        ls.as_distribution(chain, X, kind="votes")
    with pytest.raises(ls.InputError, match="ClassifierChain"):
        ls.as_distribution(ClassifierChain, X)
    with pytest.raises(ls.InputError, match="`kind`"):
        ls.as_distribution(KNeighborsClassifier().fit(X, Y), X, kind="joint")
    with pytest.raises(ls.InputError, match=r"Fit it with `refit=True`"):
        ls.as_distribution(GridSearchCV(TREE, {}, cv=2, refit=False).fit(X, Y), X)
    with pytest.raises(ls.errors.UnknownNameError, match="forest"):
        ls.as_distribution(FORESTS[0].fit(X, Y), X, kind="vote")
    with pytest.raises(ls.InputError, match="`label_names`"):
        ls.as_distribution(ls.BinaryRelevance().fit(X, Y), X, label_names=list("abcd"))
    with pytest.raises(ls.InputError, match="CalibratedClassifierCV"):
        ls.as_distribution(ClassifierChain(LinearSVC()).fit(X, Y), X)
    with pytest.raises(ValueError, match="expecting 3 features"):
        ls.as_distribution(chain, X[:, :2])


@pytest.mark.parametrize(
    "model",
    [
        ClassifierChain(LogisticRegression()),
        MultiOutputClassifier(LogisticRegression()),
        RandomForestClassifier(2),
        DummyClassifier(),
        KNeighborsClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_classes_than_0_and_1(model):
    message = r"classes 0 and 1, label 0 has \[.*-1.*1.*\]"
    with pytest.raises(ls.InputError, match=message):
        ls.as_distribution(model.fit(X, 2 * Y - 1), X)


class Reported(BaseEstimator):
    """A model that gives what a test wants it to report."""

    def __init__(self, probabilities, classes_=None, predictions=None):
        self.probabilities = probabilities
        self.predictions = predictions
        if classes_ is not None:
            self.classes_ = classes_

    def predict_proba(self, X):
        return self.probabilities

    def predict(self, X):
        return self.predictions


P = np.array([[0.9, 0.2, 0.5], [0.0, 1.0, 0.25]])
KEPT_OFF = P.clip(2.0**-24, 1 - 2.0**-24)  # what becomes of estimates
PAIRS = np.stack([1 - P, P], axis=2)
LABELSETS = (P > 0.5).astype(int)


@pytest.mark.parametrize(
    "model",
    [
        Reported(P, predictions=LABELSETS),
        Reported(P, classes_=[0, 1], predictions=LABELSETS),
        Reported(P, classes_=[0, 1, 2], predictions=LABELSETS.tolist()),
        Reported(P, classes_=[[0, 1]] * 3, predictions=sp.csr_matrix(LABELSETS)),
        Reported(sp.lil_matrix(P), predictions=LABELSETS),
        Reported(pd.DataFrame(P), predictions=LABELSETS),
        Reported(PAIRS),
        Reported(PAIRS, classes_=[[0, 1]] * 3),
        Reported(PAIRS[:, :, ::-1], classes_=[[1, 0]] * 3),
        Reported(list(PAIRS.swapaxes(0, 1))),
        Reported(tuple(PAIRS.swapaxes(0, 1)), classes_=[np.array([0, 1])] * 3),
        Reported(list(PAIRS.swapaxes(0, 1)), classes_=[[0]] * 3),
        Reported((PAIRS * (1 + 1e-8)).astype(np.float64)),
        Reported(P * (1 + 1e-8), predictions=LABELSETS),
    ],
    ids=[
        "marginals",
        "classes of a label",
        "numbers of labels",
        "classes of each label",
        "sparse",
        "frame",
        "pairs",
        "pairs with classes",
        "classes reversed",
        "list",
        "tuple",
        "wrong classes",
        "rounded pairs",
        "rounded",
    ],
)
def test_every_layout_of_predict_proba(model):
    dist = ls.as_distribution(model, X)
    assert isinstance(dist, ls.IndependentLabels)
    np.testing.assert_allclose(dist.marginals(), KEPT_OFF, atol=2e-8)
    if isinstance(model.probabilities, pd.DataFrame):
        assert dist.label_names == ("0", "1", "2")


def test_two_columns_are_labels_or_classes_as_predict_says():
    p = np.array([[0.25, 0.75], [0.5, 0.5]])  # what both would look like
    labels = Reported(p, classes_=[0, 1], predictions=np.array([[0, 1], [0, 0]]))
    np.testing.assert_array_equal(ls.as_distribution(labels, X).marginals(), p)
    for predictions in ([1, 0], [[1], [0]]):  # CatBoost predicts a column
        classes = Reported(p, classes_=[0, 1], predictions=np.array(predictions))
        np.testing.assert_array_equal(ls.as_distribution(classes, X).marginals(), p[:, 1:])


def test_classes_that_need_not_sum_to_one_are_no_labels():
    """LightGBM's one-against-all gives such columns for a vector of three classes."""
    model = Reported(P, classes_=[0, 1, 2], predictions=np.array([0, 1]))
    with pytest.raises(ls.InputError, match="classes"):
        ls.as_distribution(model, X)


class OnlyProbabilities:
    def __init__(self, probabilities, classes_):
        self.probabilities, self.classes_ = probabilities, classes_

    def predict_proba(self, X):
        return self.probabilities


def test_objects_with_predict_proba_alone():
    p = np.array([[0.25, 0.75], [0.5, 0.5]])
    dist = ls.as_distribution(OnlyProbabilities(p, np.array([0, 1])), X)
    np.testing.assert_array_equal(dist.marginals(), p[:, 1:])
    dist = ls.as_distribution(OnlyProbabilities(P, np.array([0, 1, 2])), X)
    np.testing.assert_array_equal(dist.marginals(), KEPT_OFF)
    softmax = OnlyProbabilities(P / P.sum(axis=1, keepdims=True), np.array([0, 1, 2]))
    with pytest.raises(ls.InputError, match="OnlyProbabilities"):
        ls.as_distribution(softmax, X)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Reported(P[0]), r"`predict_proba` of Reported must return shape .*, got shape \(3,\)"),
        (Reported(P, predictions=LABELSETS[:, :2]), "the same columns, got 2 and 3"),
        (Reported(PAIRS, classes_=[0, 1]), "the classes of each of the 3 labels of `predict_pr"),
        (
            Reported([PAIRS[:, 0], np.ones((2, 3)) / 3]),
            r"one column for each class \[0, 1\] of label 1, got shape \(2, 3\)",
        ),
        (Reported([PAIRS[:, 0], np.ones((2, 1))]), r"label 1, got shape \(2, 1\)"),
        (
            Reported([PAIRS[:, 0], [[0.5, 0.5], [0.0, 0.0]]]),
            r"classes of label 1 must sum to one, got \[0.0, 0.0\] in row 1",
        ),
        (
            Reported(np.where(P == 0.5, np.nan, P), predictions=LABELSETS),
            r"`predict_proba\(X\)` must lie in .*, got nan in row 0, column 2",
        ),
        (Reported(P - 1, predictions=LABELSETS), r"must lie in \[0, 1\], got -0.*in row 0"),
    ],
    ids=["vector", "predict", "classes", "three", "one", "zeros", "nan", "negative"],
)
def test_probabilities_that_do_not_fit(model, message):
    with pytest.raises(ls.InputError, match=message):
        ls.as_distribution(model, X)


def test_neighbours_that_are_not_there_have_no_probability():
    model = RadiusNeighborsClassifier(0.5, outlier_label=[2] * 4).fit(X, Y)
    with (
        pytest.warns(UserWarning, match="Outlier label 2"),
        pytest.raises(ls.InputError, match=r"label 0 must sum to one, got \[0.0, 0.0\] in row 0"),
    ):
        ls.as_distribution(model, X + 100)


@pytest.mark.parametrize(
    "model",
    [
        RidgeClassifier(alpha=2.0),
        MultiOutputClassifier(LinearSVC(C=0.5)),
        OneVsRestClassifier(LinearSVC()),
        make_pipeline(StandardScaler(), OneVsRestClassifier(LinearSVC())),
        MultiOutputClassifier(make_pipeline(StandardScaler(), LinearSVC())),
        GridSearchCV(MultiOutputClassifier(LinearSVC()), {}, cv=2),
    ],
    ids=["ridge", "multi-output", "one-vs-rest", "pipeline", "pipeline inside", "search"],
)
def test_scores_are_refused_with_advice_to_calibrate(model):
    with pytest.raises(ls.InputError, match=r"gives scores.*`CalibratedClassifierCV\("):
        ls.as_distribution(model.fit(X, Y), X)


def test_a_model_without_any_scores():
    with pytest.raises(ls.InputError, match="`predict_proba`"):
        ls.as_distribution(LinearRegression().fit(X, Y), X)


class Network:
    """As in PyTorch: called with the features, it returns logits that belong to a gradient."""

    def __call__(self, features):
        return Tensor(np.asarray(features) @ np.array([[1.0, 0.0], [0.0, 2.0], [0.5, 0.5]]))


class Tensor:
    def __init__(self, values, gradient=True):
        self.values, self.gradient = values, gradient

    def detach(self):
        return Tensor(self.values, gradient=False)

    def cpu(self):
        return self

    def __array__(self, dtype=None, copy=None):
        if self.gradient:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return self.values


def test_a_network_that_gives_logits():
    net = Network()
    message = 'which Network has not. Pass its output .*kind="logit" if it is logits'
    with pytest.raises(ls.InputError, match=message):
        ls.as_distribution(net, X)
    dist = ls.as_distribution(net(X), kind="logit")
    np.testing.assert_allclose(dist.marginals(), 1 / (1 + np.exp(-net(X).values)))
    pairs = [Tensor(PAIRS[:, label]) for label in range(3)]
    np.testing.assert_array_equal(ls.as_distribution(pairs).marginals(), KEPT_OFF)


def test_functions_and_objects_that_only_predict():
    def predict_labels(X):
        return P

    with pytest.raises(ls.InputError, match="which predict_labels has not"):
        ls.as_distribution(predict_labels, X)

    class OnlyPredicts:
        def predict(self, X):
            return P

    with pytest.raises(ls.InputError, match="OnlyPredicts"):
        ls.as_distribution(OnlyPredicts(), X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("wrap", [np.array, pd.DataFrame, np.ndarray.tolist])
def test_rounding_is_clipped(dtype, wrap):
    p = np.array([[1 + 5e-7, 0.5], [-5e-7, 1 - 5e-7]], dtype=dtype)
    marginals = ls.as_distribution(wrap(p)).marginals()
    np.testing.assert_array_equal(marginals, p.clip(2.0**-24, 1 - 2.0**-24).astype(float))
    pairs = np.array([[[-5e-7, 1 + 5e-7], [0.5, 0.5]]], dtype=dtype)
    np.testing.assert_array_equal(ls.as_distribution(pairs).marginals(), [[1 - 2.0**-24, 0.5]])
    joint = np.array([[1 + 5e-7, -5e-7, 0.0, 0.0]], dtype=dtype)
    np.testing.assert_array_equal(
        ls.as_distribution(joint, kind="joint").probabilities(), [[1.0, 0.0, 0.0, 0.0]]
    )
    with pytest.raises(ls.InputError, match=r"must lie in \[0, 1\], got 1.00001"):
        ls.as_distribution(np.array([[1 + 1e-5, 0.5]], dtype=dtype))
    assert p[0, 0] > 1  # what the caller has stays as it was


def test_nan_is_not_a_logit():
    p = [[0.5, 0.5], [0.5, 0.5], [0.25, np.nan]]
    with pytest.raises(ls.InputError, match="got nan in row 2, column 1") as raised:
        ls.as_distribution(p)
    assert "logit" not in str(raised.value)
    with pytest.raises(ls.InputError, match="`source`"):
        ls.as_distribution([[np.nan, 1.0]], kind="joint")
    pairs = [np.array([[0.5, 0.5]]), np.array([[0.5, np.nan]])]
    with pytest.raises(ls.InputError, match="`source`"):
        ls.as_distribution(pairs)


@pytest.mark.parametrize("make", [sp.csr_array, sp.lil_matrix, sp.coo_array])
def test_sparse_probabilities(make):
    dist = ls.as_distribution(make(P))
    assert isinstance(dist, ls.SparseIndependentLabels)
    np.testing.assert_allclose(dist._with_dense_rows().marginals(), P, atol=2.0**-24)
    with pytest.raises(ls.InputError, match="toarray"):
        ls.as_distribution(make(P), kind="joint")


@pytest.mark.parametrize("source", [[["a", "b"], ["c"]], [{"a"}, set()], [["a", "b"], ["c", "d"]]])
def test_label_names_are_no_probabilities(source):
    message = "must hold a probability for every label, got the label names .*'a'.* in row 0"
    with pytest.raises(ls.InputError, match=message):
        ls.as_distribution(source)


def test_ragged_rows_are_named():
    message = "rows of different lengths: 2 in row 0, 1 in row 2"
    with pytest.raises(ls.InputError, match=message):
        ls.as_distribution([[0.5, 0.5], [0.5, 0.5], [1.0]])


def test_constant_marginals_warn_by_name():
    p = pd.DataFrame({"sea": [0.0, 0.0], "sky": [0.3, 0.2], "sun": [1.0, 1.0], "ice": [0.0, 1.0]})
    with pytest.warns(ls.ProbabilityWarning, match="seven"):
        ls.as_distribution(p)
    ls.as_distribution(p[:1])  # one row says nothing
    wide = np.zeros((2, 8))
    wide[:, 0] = 0.5
    with pytest.warns(ls.ProbabilityWarning, match="'y1', 'y2', 'y3', 'y4', 'y5' and 2 more is"):
        ls.as_distribution(wide)


def test_a_softmax_taken_as_marginals_warns_with_a_remedy_that_works():
    p = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    with pytest.warns(ls.ProbabilityWarning, match="softmax") as caught:
        ls.as_distribution(p)
    text = str(caught[0].message)
    assert "joint" not in text
    dist = eval(text.split("`")[-2], {"LabelsetTable": ls.LabelsetTable, "np": np, "P": p})
    np.testing.assert_allclose(dist.marginals(), p)
    assert (dist.mode().sum(axis=1) == 1).all()
    with pytest.warns(ls.ProbabilityWarning, match="joint"):
        ls.as_distribution(np.full((2, 4), 0.25, dtype=np.float32))
    ls.as_distribution(p[:1])
    ls.as_distribution(p[:, 1:] / p[:, 1:].sum(axis=1, keepdims=True))  # two labels


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("outer", [MultiOutputClassifier, ClassifierChain])
@pytest.mark.parametrize(
    "learner",
    [HistGradientBoostingClassifier(max_iter=5), MLPClassifier(solver="lbfgs", random_state=0)],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::labelsure.ProbabilityWarning")
def test_a_label_of_one_class_in_two_columns(learner, outer, value):
    """`classes_` is [1], and the first of two columns belongs to it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    Y = np.column_stack([X[:, 0] > 0, np.full(200, value)]).astype(int)
    model = outer(learner).fit(X, Y)
    p = ls.as_distribution(model, X).marginals()[:, 1]
    assert (p > 0.5).all() if value else (p < 0.5).all()
    assert (model.predict(X)[:, 1] == value).all()
    aware = ls.AccuracyAwareClassifier(FrozenEstimator(model), "hamming", decision="mode").fit(X, Y)
    assert aware.score(X, Y) > 0.9


def test_predictions_that_say_the_opposite():
    class Turned(ClassifierMixin, BaseEstimator):
        """Its columns of the second label are in the wrong order."""

        classes_ = (np.array([0, 1]), np.array([0, 1]))

        def predict_proba(self, X):
            p = expit(5 * X[:, :2])
            return [
                np.column_stack([1 - p[:, 0], p[:, 0]]),
                np.column_stack([p[:, 1], 1 - p[:, 1]]),
            ]

        def predict(self, X):
            return (X[:, :2] > 0).astype(int)

    X = np.random.default_rng(0).normal(size=(80, 2))
    with pytest.warns(ls.ProbabilityWarning, match="contradicts"):
        ls.as_distribution(Turned(), X)
    tuned = Turned()
    tuned.predict_proba = lambda X: [np.column_stack([1 - p, p]) for p in expit(X[:, :2]).T]
    tuned.predict = lambda X: (expit(X[:, :2]) > 0.1).astype(int)  # a threshold of its own
    ls.as_distribution(tuned, X)
