"""`AccuracyAwareClassifier`: everything behind one estimator."""

import pickle

import numpy as np
import pandas as pd
import pytest
import skops.io
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import labelsure as ls
from labelsure.errors import InputError, UnknownNameError


def make_data(n_samples, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 4))
    Y = (X[:, :3] + 0.7 * rng.normal(size=(n_samples, 3)) > 0).astype(int)
    return X, Y


@pytest.fixture(scope="module")
def data():
    return make_data(600)


@pytest.fixture(scope="module")
def fitted(data):
    model = ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(), "hamming", target=0.7, cv=0.4, random_state=0
    )
    return model.fit(*data)


def test_two_lines(data):
    X, Y = data
    model = ls.AccuracyAwareClassifier(metric="jaccard", random_state=0).fit(X[:200], Y[:200])
    assert isinstance(model.estimator_, ls.EnsembleOfClassifierChains)
    assert model.policy_ is None
    assert model.predict(X).shape == Y.shape
    assert model.assess(X).accepted is None


@pytest.mark.parametrize("cv", [5, 0.4])
@pytest.mark.parametrize("metric", ["exact", "jaccard"])
@pytest.mark.parametrize("decision", ["mode", "best"])
def test_estimates_what_comes_out(data, cv, metric, decision):
    model = ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(), metric, cv=cv, decision=decision, random_state=0
    ).fit(*data)
    X, Y = make_data(2000, seed=1)
    batch = model.estimate(X)
    accuracy = ls.accuracy(Y, model.predict(X), metric)
    assert batch.low <= accuracy.mean() <= batch.high
    assert batch.mean == pytest.approx(model.predict_accuracy(X).mean())
    assert model.score(X, Y) == pytest.approx(accuracy.mean())
    assert ls.reliability(model.predict_accuracy(X), accuracy).expected_calibration_error < 0.08
    best = model.predict(X)
    dist = model.predict_distribution(X)
    expected = dist.mode() if decision == "mode" else ls.decide(dist, metric).labelsets
    np.testing.assert_array_equal(best, expected)
    np.testing.assert_allclose(model.predict_proba(X), dist.marginals())


def test_the_policy_rests_on_instances_of_its_own(fitted, data):
    assert fitted.policy_.n_samples_ == 120  # half of 0.4 * 600; the estimator has the other half
    assert len(fitted.accuracy_estimator_.calibration_) == 120
    X, _ = data
    accepted = fitted.accept(X)
    np.testing.assert_array_equal(accepted, fitted.predict_accuracy(X) >= fitted.policy_.threshold_)
    assert accepted.any()


def test_without_a_target_the_estimator_has_all_held_out_instances(data):
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), cv=0.4).fit(*data)
    assert len(model.accuracy_estimator_.calibration_) == 240


def test_exact_match_gets_the_exact_test(data):
    model = ls.AccuracyAwareClassifier(
        ls.BinaryRelevance(), "exact", target=0.3, cv=5, random_state=0
    ).fit(*data)
    assert model.policy_.outcome == "binary"
    assert model.policy_.n_samples_ == 600


def test_assess_is_everything_at_once(fitted, data):
    X, _ = data
    found = fitted.assess(X)
    np.testing.assert_array_equal(found.Y_pred, fitted.predict(X))
    np.testing.assert_allclose(found.accuracy, fitted.predict_accuracy(X))
    np.testing.assert_array_equal(found.accepted, fitted.accept(X))
    expected = ls.expected_accuracy(
        fitted.predict_distribution(X), fitted.predict(X), metric="hamming"
    ).value
    np.testing.assert_allclose(found.expected, expected)


def test_takes_frames_and_sparse_matrices(data):
    X, Y = data
    plain = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), random_state=0).fit(X, Y)
    names = ["a", "b", "c", "d"]
    frame = clone(plain).fit(pd.DataFrame(X, columns=names), pd.DataFrame(Y))
    sparse = clone(plain).fit(csr_matrix(X), csr_matrix(Y))
    expected = plain.predict_accuracy(X)
    found = frame.predict_accuracy(pd.DataFrame(X, columns=names))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(sparse.predict_accuracy(csr_matrix(X)), expected, atol=1e-6)


def test_clone_pickle_skops_and_search(fitted, data, tmp_path):
    X, Y = data
    assert clone(fitted).get_params().keys() == fitted.get_params().keys()
    expected = fitted.predict_accuracy(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_accuracy(X), expected)
    skops.io.dump(fitted, tmp_path / "model.skops")
    types = skops.io.get_untrusted_types(file=tmp_path / "model.skops")
    assert all(name.startswith("labelsure.") for name in types)
    loaded = skops.io.load(tmp_path / "model.skops", trusted=types)
    np.testing.assert_array_equal(loaded.predict_accuracy(X), expected)
    np.testing.assert_array_equal(loaded.accept(X), fitted.accept(X))
    search = GridSearchCV(
        ls.AccuracyAwareClassifier(ls.BinaryRelevance(), "hamming"),
        {"decision": ["mode", "best"]},
        cv=2,
    ).fit(X[:300], Y[:300])
    assert search.best_score_ > 0.6


def test_monitor_takes_it_with_features(fitted, data):
    X, _ = data
    table = ls.monitor(fitted, X, chunk_size=300).to_frame()
    assert table["estimated"][0] == fitted.estimate(X[:300]).mean
    assert (table["alert"] == "none").all()


def test_messages(data):
    X, Y = data

    def fails(message, error=InputError):
        return pytest.raises(error, match=message)

    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance())
    with fails("not fitted", NotFittedError):
        model.predict(X)
    with fails("Unknown decision 'argmax'", UnknownNameError):
        clone(model).set_params(decision="argmax").fit(X, Y)
    with fails("`estimator` must be a model, got the class BinaryRelevance"):
        ls.AccuracyAwareClassifier(ls.BinaryRelevance).fit(X, Y)
    with fails("`cv` as a share of held-out rows must lie between 0 and 1, got 2.5"):
        clone(model).set_params(cv=2.5).fit(X, Y)
    for n_folds in (1, 0, True):
        with fails(f"`cv` as a number of folds must be at least 2, got {n_folds}"):
            clone(model).set_params(cv=n_folds).fit(X, Y)
    with fails("`y` must contain only 0 and 1, got 2"):
        clone(model).fit(X, Y + 1)
    with fails("`accept` needs a target or a share, got neither"):
        clone(model).fit(X, Y).accept(X)


def test_a_vector_of_two_classes(data):
    X, Y = data
    y = np.where(Y[:, 0] == 1, "yes", "no")
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), "exact", random_state=0).fit(X, y)
    assert set(model.predict(X)) == {"yes", "no"}
    assert model.predict_proba(X).shape == (600, 2)
    assert model.score(X, y) == pytest.approx((model.predict(X) == y).mean())


def test_names_of_labels_reach_the_distribution(data):
    X, Y = data
    frame = pd.DataFrame(Y, columns=["sad", "calm", "angry"])
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance()).fit(X, frame)
    assert model.predict_distribution(X[:1]).label_names == ("sad", "calm", "angry")


UNWEIGHTED = {
    f"check_sample_weight_equivalence_on_{kind}_data": "splits of repeated rows differ"
    for kind in ("dense", "sparse")
}
HELD_OUT = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), "hamming", cv=0.4, random_state=0)


@pytest.mark.filterwarnings("ignore:Only [0-9]+ of [0-9]+ rows are held out")
@parametrize_with_checks([HELD_OUT], expected_failed_checks=lambda model: UNWEIGHTED)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [clone(HELD_OUT).set_params(cv=5)], expected_failed_checks=lambda model: UNWEIGHTED
)
def test_scikit_learn_check_with_cross_fitting(estimator, check):
    check(estimator)


def over_sizes(tp, fp, fn, tn):
    """Overlap relative to the larger of both labelsets."""
    return tp / np.maximum(np.maximum(tp + fp, tp + fn), 1)


@pytest.mark.parametrize("cv", [0.4, 5])
def test_an_estimate_under_a_function(cv):
    """Also where the model's own metric is another function, of the same name."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    Y = (X + rng.normal(size=X.shape) > 0).astype(int)
    own = type(over_sizes)(over_sizes.__code__, globals(), "over_sizes")
    for metric in ("f1", own):
        model = ls.AccuracyAwareClassifier(
            ls.BinaryRelevance(), metric, decision="mode", cv=cv, random_state=0
        ).fit(X[:500], Y[:500])
        found = model.estimate(X[500:], metric=over_sizes, shift="ignore")
        true = ls.accuracy(Y[500:], model.predict(X[500:]), over_sizes).mean()
        assert found.low <= true <= found.high
        assert found.quantity == "mean Over_sizes"
        rows = np.arange(0, 400, 8)
        labelled = model.estimate(X[500:], metric=over_sizes, rows=rows, Y_true=Y[500:][rows])
        assert labelled.low <= true <= labelled.high
    with pytest.raises(ls.errors.UnknownNameError, match="Unknown metric"):
        model.estimate(X[500:], metric="f2")


WRONG = {
    "cv as text": ({"cv": "five"}, {}),
    "cv of numbers": ({"cv": [1, 2]}, {}),
    "check_inputs as text": ({"check_inputs": "no"}, {}),
    "fewer labels": ({}, {"y": np.ones((3, 2), dtype=int)}),
}


@pytest.mark.parametrize(("parameters", "data"), WRONG.values(), ids=WRONG)
def test_wrong_settings_and_rows_of_fit_are_input_errors(parameters, data):
    rng = np.random.default_rng(0)
    rows = {"X": rng.normal(size=(60, 3)), "y": rng.integers(0, 2, (60, 2)), **data}
    with pytest.raises(ls.InputError):
        ls.AccuracyAwareClassifier(ls.BinaryRelevance(), **parameters).fit(**rows)


@pytest.mark.filterwarnings("ignore:.*held out")
def test_wrong_arguments_of_a_fitted_model_are_input_errors():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100, 3)), rng.integers(0, 2, (100, 2))
    model = ls.AccuracyAwareClassifier(ls.BinaryRelevance(), random_state=0).fit(X, Y)
    for level in (0, 0.0, 1, 2):
        with pytest.raises(ls.InputError, match="level"):
            model.estimate(X, level=level)
        with pytest.raises(ls.InputError, match="level"):
            model.compare(model, X, level=level)
    with pytest.raises(ls.InputError, match="other"):
        model.compare(3, X)
    for labels in ([1], {0: 3}, {0: (1, 2)}):
        with pytest.raises(ls.InputError, match="labels"):
            model.monitor([X], labels=labels)
