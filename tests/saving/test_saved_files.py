"""Saved and loaded: every kind of model, the same to the last bit; what is in the file."""

import json
import stat
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
import saved_files as sf
import scipy.sparse
import sklearn
from scipy.sparse import csc_array, csc_matrix, csr_array, csr_matrix, issparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler
from sklearn.svm import LinearSVC

import labelsure as ls
from labelsure.metrics.registry import JACCARD, METRICS, Metric
from labelsure.saving import OWN_TYPES, Savable

TREE = "sklearn.tree._tree.Tree"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.labelsure"


@pytest.mark.parametrize("kind", sf.MAKERS)
def test_every_kind_comes_back_as_it_was(kind, path):
    model = sf.fitted(kind)
    model.save(path)
    loaded = ls.load(path)
    assert type(loaded) is type(model)
    assert set(vars(loaded)) == set(vars(model))
    assert str(loaded.get_params()) == str(model.get_params())
    for found, expected in zip(sf.answers(loaded), sf.answers(model), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_the_trusted_types_are_those_that_fitted_models_consist_of(tmp_path):
    found = set()
    for kind in sf.MAKERS:
        schema = json.loads(sf.split(sf.content_of(kind, tmp_path))["schema.json"])
        found |= {f"{node['__module__']}.{node['__class__']}" for node in sf.nodes(schema)}
    assert {name for name in found if name.startswith("labelsure")} == OWN_TYPES
    public = {getattr(ls, name) for name in ls.__all__}
    savable = {c for c in public if isinstance(c, type) and hasattr(c, "save")}
    assert {f"{c.__module__}.{c.__name__}" for c in savable} <= OWN_TYPES
    assert all(issubclass(c, Savable) for c in savable)


LEARNERS = {
    "pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), []),
    "bayes": (GaussianNB(), []),
    "forest": (RandomForestClassifier(3, random_state=0), []),
    "boosted": (GradientBoostingClassifier(n_estimators=2, random_state=0), []),
    "bagged": (BaggingClassifier(RandomForestClassifier(2), 2, max_features=2), []),
    "adaptive": (AdaBoostClassifier(n_estimators=2, random_state=0), []),
    "histograms": (
        HistGradientBoostingClassifier(max_iter=2, random_state=0),
        ["sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"],
    ),
    "calibrated": (CalibratedClassifierCV(LinearSVC(), cv=2), []),
    "isotonic": (CalibratedClassifierCV(LinearSVC(), method="isotonic", cv=2), []),
    "imputed": (make_pipeline(SimpleImputer(), LogisticRegression()), []),
    "perceptron": (MLPClassifier((3,), max_iter=2, random_state=0), []),
    "perceptron by SGD": (MLPClassifier((3,), solver="sgd", max_iter=2, random_state=0), []),
    "voting": (VotingClassifier([("bayes", GaussianNB())], voting="soft"), []),
    "neighbours": (
        KNeighborsClassifier(),
        [
            "sklearn.metrics._dist_metrics.EuclideanDistance64",
            "sklearn.neighbors._kd_tree.KDTree",
        ],
    ),
}


def of_another_library(name):
    library = pytest.importorskip(name)
    if name == "xgboost":
        names = ["xgboost.core.Booster", "xgboost.sklearn.XGBClassifier"]
        return library.XGBClassifier(n_estimators=2), names
    if name == "lightgbm":
        names = ["lightgbm.basic.Booster", "lightgbm.sklearn.LGBMClassifier"]
        model = library.LGBMClassifier(n_estimators=2, verbose=-1)
        return model, ["collections.OrderedDict", *names]
    model = library.CatBoostClassifier(iterations=2, verbose=0, allow_writing_files=False)
    return model, ["catboost.core.CatBoostClassifier"]


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("name", [*LEARNERS, "xgboost", "lightgbm", "catboost"])
def test_base_learners_of_many_kinds(name, path):
    learner, needed = LEARNERS[name] if name in LEARNERS else of_another_library(name)
    model = ls.ProbabilisticClassifierChain(learner).fit(sf.X, sf.Y)
    model.save(path)
    if needed:
        with pytest.raises(ls.DataError) as caught:
            ls.load(path)
        assert str(caught.value) == (
            f"The file 'model.labelsure' must name trusted types only, got {', '.join(needed)}. "
            f"They could run code or crash: if you trust who wrote the file, name them in `trust`: "
            f"{needed!r}."
        )
    loaded = ls.load(path, trust=needed)
    np.testing.assert_array_equal(loaded.predict_proba(sf.X), model.predict_proba(sf.X))


def test_models_of_all_labels(path):
    neighbours = [
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.neighbors._kd_tree.KDTree",
    ]
    for inner, needed in [
        (KNeighborsClassifier(), neighbours),
        (make_pipeline(StandardScaler(), ClassifierChain(LogisticRegression())), []),
        (FrozenEstimator(RandomForestClassifier(3, random_state=0).fit(sf.X, sf.Y)), []),
        (FrozenEstimator(sf.fitted("EnsembleOfClassifierChains")), []),
    ]:
        model = ls.AccuracyAwareClassifier(inner, target=0.2, cv=0.5, random_state=0)
        model.fit(sf.X, sf.Y).save(path)
        found = ls.load(path, trust=needed).assess(sf.X)
        expected = model.assess(sf.X)
        np.testing.assert_array_equal(found.accuracy, expected.accuracy)
        np.testing.assert_array_equal(found.accepted, expected.accepted)


def test_trust_takes_types_too(path):
    learner = HistGradientBoostingClassifier(max_iter=2).fit(sf.X, sf.Y[:, 0])
    ls.BinaryRelevance(learner).fit(sf.X, sf.Y).save(path)
    assert ls.load(path, trust=[type(learner._predictors[0][0])])
    for wrong in ("numpy.tanh", True, 3):
        with pytest.raises(ls.InputError, match="`trust`"):
            ls.load(path, trust=wrong)


def test_boosted_trees_of_several_classes_are_loaded_by_trust(path):
    """Their members write to a matrix whose width the file states elsewhere."""
    learner = GradientBoostingClassifier(n_estimators=2, random_state=0)
    model = ls.LabelPowerset(learner).fit(sf.X, sf.Y)
    model.save(path)
    with pytest.raises(ls.DataError, match="checked"):
        ls.load(path)
    loaded = ls.load(path, trust=[TREE])
    np.testing.assert_array_equal(loaded.predict_proba(sf.X), model.predict_proba(sf.X))


def test_files_are_compressed(path):
    forest = RandomForestClassifier(20, random_state=0)
    ls.BinaryRelevance(forest).fit(sf.X, sf.Y).save(path)
    with zipfile.ZipFile(path) as file:
        sizes = [(entry.compress_size, entry.file_size) for entry in file.infolist()]
    assert 4 * sum(size for size, _ in sizes) < sum(size for _, size in sizes)


def test_names_of_labels_and_features_are_kept(path):
    X = pd.DataFrame(sf.X, columns=["a", "b", "c"])
    Y = pd.DataFrame(sf.Y, columns=["sea", "Straße", "sun, sand"])
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), random_state=0).fit(X, Y)
    model.save(path)
    loaded = ls.load(path)
    assert loaded.label_names_ == ("sea", "Straße", "sun, sand")
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(loaded.predict(X[["c", "b", "a"]]), model.predict(X))
    with pytest.raises(ls.InputError, match="missing: 'b'"):
        loaded.predict(X[["c", "a"]])
    header = json.loads(sf.split(path.read_bytes())["labelsure.json"])
    assert header["label_names"] == ["sea", "Straße", "sun, sand"]


def test_a_vector_of_classes(path):
    model = ls.BinaryRelevance().fit(sf.X, np.where(sf.Y[:, 0], "yes", "no"))
    model.save(path)
    assert ls.load(path).predict(sf.X).tolist() == model.predict(sf.X).tolist()


@pytest.mark.parametrize("container", [csr_matrix, csr_array, csc_matrix, csc_array])
def test_sparse_values_inside_need_no_trust(container, path):
    X = container(sf.X)
    learner = make_pipeline(MaxAbsScaler(), KNeighborsClassifier(algorithm="brute"))
    model = ls.AccuracyAwareClassifier(learner, target=0.2, cv=0.5, random_state=0).fit(X, sf.Y)
    model.save(path)
    found = ls.load(path).predict_accuracy(X)
    np.testing.assert_array_equal(found, model.predict_accuracy(X))


def test_sparse_coefficients_need_no_trust(path):
    model = ls.BinaryRelevance(LogisticRegression()).fit(sf.X, sf.Y)
    for learner in model.estimators_:
        learner.sparsify()
    model.save(path)
    assert issparse(ls.load(path).estimators_[0].coef_)
    np.testing.assert_array_equal(ls.load(path).predict_proba(sf.X), model.predict_proba(sf.X))


@pytest.mark.parametrize("kind", ["bsr", "coo", "csc", "csr", "dia"])
@pytest.mark.parametrize("container", ["array", "matrix"])
def test_sparse_matrices_of_every_format(kind, container, path):
    values = np.eye(4, 6) + np.eye(4, 6, 2)
    model = ls.BinaryRelevance().fit(sf.X, sf.Y)
    model.extra = getattr(scipy.sparse, f"{kind}_{container}")(values)
    model.save(path)
    found = ls.load(path).extra
    assert type(found) is type(model.extra)
    np.testing.assert_array_equal(found.toarray(), values)


def test_models_that_deflate_shrinks_too_much_are_stored(path):
    """What `save` writes, `load` takes: 500 times the size of the file."""
    model = ls.BinaryRelevance().fit(sf.X, sf.Y)
    model.extra = bytearray(10**6)  # ten bytes in memory for each
    model.save(path)
    assert path.stat().st_size > 10**6
    assert ls.load(path).extra == model.extra
    with pytest.raises(ls.TooLargeError, match="`max_bytes`"):
        ls.load(path, max_bytes=10**6)
    assert ls.load(path, max_bytes=10**8).extra == model.extra
    for wrong in (0, 1.5, True):
        with pytest.raises(ls.InputError, match="`max_bytes`"):
            ls.load(path, max_bytes=wrong)


def test_what_the_file_says_of_itself(path):
    model = sf.fitted("AccuracyAwareClassifier")
    model.save(path)
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        assert {"labelsure.json", "schema.json"} <= set(file.namelist())
        header = json.loads(file.read("labelsure.json"))
    assert header == {
        "format": "labelsure",
        "format_version": 1,
        "versions": {
            "labelsure": ls.__version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
            "python": ".".join(map(str, sys.version_info[:3])),
        },
        "kind": "AccuracyAwareClassifier",
        "metric": "hamming",
        "label_names": ["y0", "y1", "y2"],
        "card": model.card_.to_dict(),
    }


def test_the_file_put_together_by_hand_is_the_same_kind_of_file(path, tmp_path):
    content = sf.content_of("BinaryRelevance", tmp_path)
    path.write_bytes(sf.join(sf.split(content)))
    np.testing.assert_array_equal(
        ls.load(path).predict_proba(sf.X), sf.fitted("BinaryRelevance").predict_proba(sf.X)
    )


# Metrics


def of_the_user(tp, fp, fn, tn):
    return tp / (tp + fp + fn + tn)


def test_a_registered_metric_is_saved_by_name(path):
    dist = ls.IndependentLabels(sf.P)
    estimator = ls.AccuracyEstimator(JACCARD).fit(dist, sf.TRUTH)
    estimator.save(path)
    assert estimator.metric is JACCARD
    assert ls.load(path).metric == "jaccard"
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), JACCARD, cv=0.5).fit(sf.X, sf.Y)
    model.save(path)
    assert model.accuracy_estimator_.metric is JACCARD
    loaded = ls.load(path)
    assert (loaded.metric, loaded.accuracy_estimator_.metric) == ("jaccard", "jaccard")


@pytest.mark.parametrize("metric", [of_the_user, Metric("of_the_user", of_the_user, (0, 1))])
def test_a_function_is_not_saved(metric, path):
    estimator = ls.AccuracyEstimator(metric).fit(ls.IndependentLabels(sf.P), sf.TRUTH)
    message = (
        "`metric` must be registered to be saved, got the function 'of_the_user'. Set .*METRICS.*, "
        "and fit with metric='of_the_user'"
    )
    with pytest.raises(ls.InputError, match=message):
        estimator.save(path)
    assert not path.exists()


def test_a_metric_of_the_user_under_a_name(path, monkeypatch):
    monkeypatch.setitem(METRICS, "mine", Metric("mine", of_the_user, (0, 1)))
    dist = ls.IndependentLabels(sf.P)
    estimator = ls.AccuracyEstimator("mine").fit(dist, sf.TRUTH)
    estimator.save(path)
    np.testing.assert_array_equal(ls.load(path).predict(dist), estimator.predict(dist))
    monkeypatch.delitem(METRICS, "mine")
    with pytest.raises(ls.InputError, match="metric 'mine'"):
        ls.load(path).predict(dist)


# What cannot be saved


def test_what_is_not_fitted_is_not_saved(path):
    for model in (ls.BinaryRelevance(), ls.AcceptPolicy(), ls.AccuracyEstimator()):
        with pytest.raises(NotFittedError):
            model.save(path)
    assert not path.exists()


@pytest.mark.parametrize(
    "function", [np.tanh, lambda values: values, StandardScaler().fit_transform]
)
def test_a_function_inside_is_not_saved(function, path):
    learner = make_pipeline(FunctionTransformer(), GaussianNB())
    model = ls.BinaryRelevance(learner).fit(sf.X, sf.Y)
    model.estimators_[0][0].func = function
    message = (
        r"The BinaryRelevance holds something that cannot be saved: a (Function|Method)Node \(.*\) "
        "can run code and is never loaded. Replace that part, or pickle the model"
    )
    with pytest.raises(ls.InputError, match=message):
        model.save(path)
    assert not path.exists()


def test_where_nothing_can_be_written(tmp_path):
    model = sf.fitted("AcceptPolicy")
    for wrong in (tmp_path / "missing" / "x.labelsure", tmp_path, tmp_path / "x\0y"):
        with pytest.raises(ls.DataError, match="Choose"):
            model.save(wrong)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_as_a_whole(path):
    path.write_text("old")
    sf.fitted("AcceptPolicy").save(str(path))
    assert ls.load(str(path)).threshold_ == sf.fitted("AcceptPolicy").threshold_
    assert [entry.name for entry in path.parent.iterdir()] == ["model.labelsure"]
    assert stat.S_ISREG(path.stat().st_mode)


# The card


def test_the_card_of_instances_held_out():
    model = sf.fitted("AccuracyAwareClassifier")
    card = model.card_
    assert (card.n_training, card.n_for_estimator, card.n_for_policy) == (100, 50, 50)
    assert (card.n_features, card.label_names) == (3, ["y0", "y1", "y2"])
    assert (card.metric, card.target, card.confidence) == ("hamming", 0.3, 0.95)
    assert card.decision == "the labelsets that maximise expected Hamming accuracy"
    assert (card.threshold, card.share) == (model.policy_.threshold_, model.policy_.share_)
    assert card.guaranteed
    assert model.summary_.startswith(card.summary)
    assert card.estimated == model.reference_.mean
    assert card.calibration_from.startswith("the policy's rows")
    assert sum(card.calibration["n_samples"]) == 50
    # The policy has seen the same accuracies.
    counts = np.array(card.calibration["n_samples"])
    means = np.array([value or 0 for value in card.calibration["accuracy"]])
    assert (counts * means).sum() == pytest.approx(model.policy_.accuracies_.sum())
    assert json.loads(json.dumps(card.to_dict(), allow_nan=False)) == card.to_dict()


def test_the_card_of_folds_judges_each_instance_by_a_model_of_others():
    dist = ls.IndependentLabels(sf.P)
    model = ls.AccuracyAwareClassifier(
        FrozenEstimator(ls.PrecomputedProbabilities().fit(sf.P, sf.TRUTH)),
        "jaccard",
        decision="mode",
        recalibration=None,
    ).fit(sf.P, sf.TRUTH)
    card = model.card_
    assert (card.n_training, card.n_for_estimator, card.n_for_policy) == (0, 200, 0)
    assert card.calibration_from.startswith("folds")
    assert (card.target, card.threshold, card.share, card.guaranteed) == (
        None,
        None,
        None,
        False,
    )
    actual = ls.accuracy(sf.TRUTH, dist.mode(), "jaccard")
    counts = np.array(card.calibration["n_samples"])
    means = [
        np.array([value or 0 for value in card.calibration[name]])
        for name in ("accuracy", "estimated")
    ]
    assert (counts * means[0]).sum() == pytest.approx(actual.sum())
    inside = model.accuracy_estimator_.predict(dist)
    assert (counts * means[1]).sum() != pytest.approx(inside.sum(), rel=1e-9)


def test_a_card_prints_as_text():
    text = str(sf.fitted("AccuracyAwareClassifier").card_)
    assert text.splitlines()[:5] == [
        f"classifier: {type(sf.fitted('AccuracyAwareClassifier').estimator_).__name__}",
        "labels: 3 (y0, y1, y2)",
        "features: 3",
        "rows: 100 for training, 50 for the accuracy estimator, 50 for the policy",
        "metric: Hamming accuracy, two empty labelsets score 1",
    ]
    assert "Guaranteed" in text
    assert "calibration, on the policy's rows, new to the accuracy estimator:" in text
    n_rows = sum(
        count > 0 for count in sf.fitted("AccuracyAwareClassifier").card_.calibration["n_samples"]
    )
    assert text.count(" rows, estimated ") == n_rows
    without = ls.AccuracyAwareClassifier(KNeighborsClassifier(), target=0.999, cv=0.5)
    with pytest.warns(ls.TargetWarning):
        card = without.fit(sf.X.tolist(), sf.Y).card_
    assert card.threshold is None
    assert not card.guaranteed


def test_very_many_names_are_one_text(tmp_path):
    names = tuple(f"tag {j}\n" for j in range(10_001))
    columns = ls.tables.PredictionColumns(names, "listed", "value").fit(None)
    columns.save(tmp_path / "m.labelsure")
    loaded = ls.load(tmp_path / "m.labelsure")
    assert loaded.label_names_ == names
    assert loaded.label_names == names
    assert (tmp_path / "m.labelsure").read_bytes().count(b"JsonNode") < 100
    few = ls.tables.PredictionColumns(names[:10_000], "listed", "value").fit(None)
    assert few.__getstate__()["label_names_"] == names[:10_000]
