"""What was fitted has rules: a file that breaks one is refused, and its message says which."""

import json

import numpy as np
import pytest
import saved_files as sf
from sklearn.isotonic import IsotonicRegression

import labelsure as ls
from labelsure.input_columns import ColumnRole
from labelsure.saving import expect, is_array, is_count, is_number

NAN = np.full((1, 3), np.nan)
CLASSES = "`classes_` must be 0 and 1 for each label"
LEARNERS = "`estimators_` must hold a learner with `predict_proba` for each label"
CURVE = "a curve must rise within"
CHAINS = "`chains_` must hold `n_chains` chains of the ensemble's labels"
ESTIMATE = "an estimate must lie within its interval, and that in"
PARENTS = "`parents_` must hold earlier places for each place"
WEIGHTS = "the weights of linear learners must be finite, one for each input"
RESTS = "the estimate of what a model was fitted to must rest on nothing else"
VIEW = "a view of labelled instances must have finite numbers for each column"
COMPARED = "labelled instances must have a truth for each label that is compared"
BELONGS = "`accuracy_estimator_` must be fitted for the classifier's metric and decisions"
CARD = "the calibration of a card must have the columns of `reliability`"
LABELS = "a calibration of labels must have numbers for each label and each replicate"
GAIN = "the mean and the ratio of a gain must lie in"
SIGMOID = "`curves_` must have a curve .sigmoid. for each label"
STEPS = "`curves_` must have a curve .isotonic. for each label"
RECALIBRATION = "`recalibration_` must be the one that `recalibration` names, for the same labels"
ROLES = "`roles_` must have one known role for each column"
ROLE = [ColumnRole.of("x", "number")]
NAMES = "the names of `slope_groups` must be distinct and in order"


def linear_weights():
    return sf.fitted("ProbabilisticClassifierChain")._linear_weights


def curve(**changed):
    model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit([0, 1], [0.2, 0.8])
    vars(model).update(changed)
    return model


def estimate(**changed):
    values = {"mean": 0.5, "low": 0.4, "high": 0.6, "n_samples": 9, "level": 0.95, "spread": 0.1}
    return ls.Estimate(**{**values, **changed})


def calibration(kind, **changed):
    groups = sf.fitted(kind).calibration_
    return {name: {**kept, **changed} for name, kept in groups.items()}


CHANGES = [
    ("LabelThresholds", "rule", "two", "`rule` must be one of the rules"),
    ("LabelThresholds", "empty", 2.0, "`empty` must be a number in"),
    ("LabelThresholds", "thresholds_", np.array([0.5]), "`thresholds_` must hold a number"),
    ("LabelThresholds", "thresholds_", np.array([0.5, -1.0, 0.5]), "must hold a number from 0"),
    ("LabelThresholds", "thresholds_", np.array([0.5, np.nan, 0.5]), "must hold a number from 0"),
    ("LabelThresholds", "k_", 2, "`thresholds_` must hold a number"),
    ("LabelThresholds", "accuracy_", "high", "`accuracy_` must be a number"),
    ("top k", "k_", 4, "`k_` must be a number of labels"),
    ("top k", "thresholds_", np.zeros(3), "`k_` must be a number of labels"),
    ("LabelsetRegion", "quantile_", 0.0, "`quantile_` must be what follows from the labelled"),
    ("LabelsetRegion", "message_", "All is well.", "`message_` must be what follows"),
    ("LabelsetRegion", "coverage", 1.5, "`coverage` must be a number between 0 and 1"),
    ("LabelsetRegion", "has_groups_", 1, "`has_groups_` must be True or False"),
    ("LabelsetRegion", "calibration_", {"x": {}}, "without groups there is one, 'all'"),
    ("LabelsetRegion", "calibration_", {"all": {}}, "`calibration_` must hold scores"),
    (
        "LabelsetRegion",
        "calibration_",
        calibration("LabelsetRegion", scores=np.array([np.nan])),
        "`scores` must have numbers for each instance",
    ),
    ("region with groups", "calibration_", {1: {}}, "must have an entry for each group"),
    (
        "region with groups",
        "calibration_",
        calibration("region with groups", truth=np.full((100, 3), 2)),
        "`truth` must contain only 0 and 1",
    ),
    (
        "region with groups",
        "calibration_",
        calibration("region with groups", maxima=np.zeros((7, 3))),
        "`maxima` must have numbers for each instance",
    ),
    ("with a region", "region_", None, "`region_` must be the one that `region` names"),
    (
        "with a region",
        "region_",
        sf.fitted("region with groups"),
        "`region_` must be the one that `region` names",
    ),
    ("AccuracyAwareClassifier", "region_", sf.fitted("LabelsetRegion"), "`region_` must be the"),
    ("region with groups", "certain_from_", {"a": 0.1, "b": 0.1}, "`certain_from_` must be what"),
    ("BinaryRelevance", "label_names_", ("a", "a", "b"), "`label_names_` must be distinct names"),
    ("BinaryRelevance", "label_names_", (), "`label_names_` must be distinct names"),
    ("BinaryRelevance", "label_names_", ["a", "b", "c"], "`label_names_` must be distinct names"),
    ("BinaryRelevance", "label_names_", ("a", "b", 3), "`label_names_` must be texts"),
    ("BinaryRelevance", "label_names_", ("a", "b"), CLASSES),
    ("BinaryRelevance", "classes_", [np.array([0, 1])] * 2 + [np.array([1, 0])], CLASSES),
    ("BinaryRelevance", "classes_", np.array([0, 1]), "`classes_` must be two values for a single"),
    ("BinaryRelevance", "n_features_in_", 0, "`n_features_in_` must be a number of features"),
    ("BinaryRelevance", "n_features_in_", True, "`n_features_in_` must be a number of features"),
    ("BinaryRelevance", "estimators_", [1, 2, 3], LEARNERS),
    ("BinaryRelevance", "estimators_", sf.fitted("BinaryRelevance").estimators_[:2], LEARNERS),
    ("ClassifierTrellis", "estimators_", [], LEARNERS),
    ("ClassifierTrellis", "parents_", ((), (0,), (2,)), PARENTS),
    ("ClassifierTrellis", "parents_", ((), (0,), (-1,)), PARENTS),
    ("ClassifierTrellis", "parents_", ((), (0,)), PARENTS),
    ("ClassifierTrellis", "order_", np.array([0, 1, 1]), "`order_` must"),
    (
        "ClassifierTrellis",
        "_linear_weights",
        (linear_weights()[0] * np.nan, *linear_weights()[1:]),
        WEIGHTS,
    ),
    ("ProbabilisticClassifierChain", "order_", np.array([0, 1, 3]), "`order_` must"),
    ("ProbabilisticClassifierChain", "order_", np.array([0.0, 1.0, 2.0]), "`order_` must"),
    ("ProbabilisticClassifierChain", "estimators_", [], LEARNERS),
    (
        "ProbabilisticClassifierChain",
        "_linear_weights",
        (linear_weights()[0] * np.nan, *linear_weights()[1:]),
        WEIGHTS,
    ),
    (
        "ProbabilisticClassifierChain",
        "_linear_weights",
        (linear_weights()[0][:, :2], *linear_weights()[1:]),
        WEIGHTS,
    ),
    ("ProbabilisticClassifierChain", "_linear_weights", linear_weights()[:2], "ValueError"),
    ("EnsembleOfClassifierChains", "chains_", [], CHAINS),
    ("EnsembleOfClassifierChains", "n_chains", 3, CHAINS),
    ("EnsembleOfClassifierChains", "chains_.0.label_names_", ("a", "b", "c"), CHAINS),
    ("EnsembleOfClassifierChains", "chains_", [sf.fitted("BinaryRelevance")] * 2, CHAINS),
    ("EnsembleOfClassifierChains", "chains_.1.order_", np.array([2, 2, 2]), "`order_` must"),
    ("PrecomputedProbabilities", "kind", "other", "`kind` must be one that is known"),
    ("PrecomputedProbabilities", "kind", "joint", "`n_features_in_` must suit the labels"),
    ("PrecomputedProbabilities", "n_features_in_", 4, "`n_features_in_` must suit the labels"),
    ("PrecomputedProbabilities", "_labels_are_named", 2, "labels must be named or not"),
    ("ridge", "empty", 2.0, "`empty` must be a number in"),
    ("ridge", "penalty", -1.0, "`penalty` must be a number greater than 0"),
    ("ridge", "decision", "worst", "Unknown decision 'worst'"),
    ("ridge", "response", "other", "Unknown response 'other'"),
    ("ridge", "response", "rates", "the ridge must have the response of its metric"),
    ("ridge", "model", "isotonic", "`model_` must be a IsotonicModel"),
    ("ridge", "features_", ("HP",), "`features_` must be those that `features` names"),
    ("ridge", "features", ["HP"], "`features_` must be those that `features` names"),
    ("ridge", "penalty_", 5.0, "`penalty_` must be that of the model"),
    ("ridge", "decision_", 5, "`decision_` must say how decisions were made"),
    ("ridge", "model_.coefficients", NAN, "the coefficients of the ridge must be finite"),
    ("ridge", "model_.coefficients", np.zeros((1, 2)), "the coefficients of the ridge must be"),
    ("ridge", "model_.scales", np.array([1.0, 0.0, 1.0]), "the scales of the ridge must be above"),
    ("ridge", "model_.scales", np.array([1.0, np.nan, 1.0]), "the scales of the ridge must be"),
    ("ridge", "model_.scales", np.ones(2), "the scales of the ridge must be above 0"),
    ("ridge", "model_.covariance", np.eye(2), "the covariance of the ridge must be finite"),
    ("ridge", "model_.covariance", -np.eye(3), "its diagonal not below 0"),
    ("ridge", "model_.response", "other", "the response of the ridge must be one that is known"),
    ("ridge", "model_.layout.n_features", 5, "the layout of the ridge must be that of its"),
    ("ridge", "dispersion_.ratio", 0.0, "a dispersion must be above 0"),
    ("ridge", "dispersion_.ratio", np.inf, "a dispersion must be above 0"),
    ("ridge", "dispersion_.n_samples", -1.0, "a dispersion must rest on some instances"),
    ("ridge", "training_gain_.mean", np.nan, GAIN),
    ("ridge", "training_gain_.ratio", 1.1, GAIN),
    ("ridge", "training_gain_.variance", -1.0, "the variance of a gain must not be below 0"),
    ("ridge", "label_calibration_", 1, "`label_calibration_` must be that of labels"),
    ("ridge", "label_calibration_.label_names", ("a",), LABELS),
    ("ridge", "label_calibration_.frequencies", np.full(3, np.nan), LABELS),
    ("ridge", "label_calibration_.shared", np.zeros((2, 4)), LABELS),
    ("ridge", "label_calibration_.offsets", np.zeros((200, 5)), LABELS),
    ("ridge", "label_calibration_.dispersions", {"micro-f1": 1.0}, "a dispersion of at least 1"),
    ("ridge", "reference_", estimate(mean=0.7), ESTIMATE),
    ("ridge", "reference_", estimate(low=-0.1), ESTIMATE),
    ("ridge", "reference_", estimate(high=1.1), ESTIMATE),
    ("ridge", "reference_", estimate(n_samples=0), "an estimate must be of some instances"),
    ("ridge", "reference_", estimate(spread=-1.0), "the spread of an estimate must lie in"),
    ("ridge", "reference_", estimate(quantity=1), "an estimate must say what is estimated"),
    ("ridge", "reference_", estimate(level=1.0), "`level` must be a probability between"),
    ("ridge", "reference_", estimate(basis="luck"), RESTS),
    ("ridge", "reference_", estimate(effective_size=5.0), RESTS),
    ("ridge", "reference_", estimate(n_labelled=5), RESTS),
    ("ridge", "reference_", estimate(shift=5), RESTS),
    ("ridge", "calibration_sample_", 5, "`calibration_sample_` must be of labelled instances"),
    ("ridge", "calibration_sample_.view", 5, "labelled instances must have a view of them"),
    ("ridge", "calibration_sample_.view.values", np.zeros((200, 2)), VIEW),
    ("ridge", "calibration_sample_.view.values", np.full((200, 10), np.nan), VIEW),
    ("ridge", "calibration_sample_.view.names", tuple(range(10)), VIEW),
    ("ridge", "calibration_sample_.accuracy", np.full(200, 1.1), "must lie in .0, 1."),
    ("ridge", "calibration_sample_.accuracy", np.zeros(199), "must lie in .0, 1."),
    ("ridge", "calibration_sample_.estimated", np.full(200, -0.1), "must lie in .0, 1."),
    ("ridge", "calibration_sample_.label_names", ("a", "b", "c"), COMPARED),
    ("ridge", "calibration_sample_.label_names", (), COMPARED),
    ("ridge", "calibration_sample_.truth", np.zeros((200, 2), np.uint8), COMPARED),
    ("ridge", "calibration_sample_.truth", np.zeros((200, 1)), COMPARED),
    ("ridge", "calibration_sample_.truth", None, COMPARED),
    ("ridge", "calibration_sample_.of_one_model", 1, "`of_one_model` must be true or false"),
    ("ridge with groups", "slope_levels_.names", ["b", "a"], NAMES),
    ("ridge with groups", "slope_levels_.names", ["a", "a"], NAMES),
    ("ridge with groups", "slope_levels_.names", [], NAMES),
    ("ridge with groups", "slope_levels_.argument", "x", "groups must belong to their argument"),
    ("ridge with groups", "slope_levels_.names", ["a", "b", "c"], "the layout of the ridge must"),
    ("isotonic", "model_.curves", [], "there must be a curve for each slope group"),
    ("isotonic", "model_.levels", [], "there must be a curve for each slope group"),
    ("isotonic", "model_.curves", [5], "a curve must be isotonic"),
    ("isotonic", "model_.curves", [curve(y_thresholds_=np.array([0.8, 0.2]))], CURVE),
    ("isotonic", "model_.curves", [curve(y_thresholds_=np.array([-0.1, 0.2]))], CURVE),
    ("isotonic", "model_.curves", [curve(y_thresholds_=np.array([0.8, 1.2]))], CURVE),
    ("isotonic", "model_.levels", [np.array([0.2, np.nan])], CURVE),
    ("isotonic", "model_.levels", [np.array([])], CURVE),
    ("isotonic", "model_.sizes", [np.array([0])], "each level of a curve must rest on some"),
    ("TemperatureScaling", "gate", "yes", "`gate` must be True or False, got 'yes'"),
    ("TemperatureScaling", "label_names_", (), "`label_names_` must be names of labels"),
    ("TemperatureScaling", "label_names_", ["a"], "`label_names_` must be names of labels"),
    ("TemperatureScaling", "n_samples_", 4, "a recalibration must have numbers of instances"),
    ("TemperatureScaling", "n_impossible_", -1, "a recalibration must have numbers of instances"),
    ("TemperatureScaling", "gain_", np.nan, "the gain must lie within its interval"),
    ("TemperatureScaling", "gain_low_", 9.0, "the gain must lie within its interval"),
    ("TemperatureScaling", "gain_high_", -9.0, "the gain must lie within its interval"),
    ("TemperatureScaling", "is_kept_", False, "`is_kept_` must be what the gate says"),
    ("TemperatureScaling", "is_kept_", 1, "`is_kept_` must be what the gate says"),
    (
        "TemperatureScaling",
        "temperature_",
        1.5,
        "must be the one found if kept, 1 if",
    ),
    (
        "TemperatureScaling",
        "found_temperature_",
        0.0,
        r"must lie within \[0.01, 100\]",
    ),
    (
        "TemperatureScaling",
        "found_temperature_",
        101,
        r"must lie within \[0.01, 100\]",
    ),
    ("ChainDependence", "weights_", np.full((3, 3), np.nan), "`weights_` must be numbers of shape"),
    ("ChainDependence", "C", 0, "`C` must be a number above 0"),
    ("DependenceLayer", "dependence_", 3, "`dependence_` must be a ChainDependence"),
    ("DependenceLayer", "estimator_", 3, "`estimator_` must be a model with probabilities"),
    ("ConditionalBernoulliMixture", "gates_", np.zeros(2), "`gates_` must be numbers of shape"),
    ("ConditionalBernoulliMixture", "scale_", np.zeros(4), "`scale_` must be"),
    ("LabelwiseCalibration", "method", "linear", "Unknown method 'linear'"),
    ("LabelwiseCalibration", "curves_", [], SIGMOID),
    ("LabelwiseCalibration", "curves_", [np.ones((2, 2))] * 3, SIGMOID),
    ("LabelwiseCalibration", "curves_", [np.full((2, 1), np.nan)] * 3, SIGMOID),
    ("LabelwiseCalibration", "curves_", [np.ones((2, 1), dtype=int)] * 3, SIGMOID),
    ("LabelwiseCalibration", "curves_", [[[1.0], [0.0]]] * 3, SIGMOID),
    ("isotonic labels", "curves_", [np.ones((3, 2))] * 3, STEPS),
    ("isotonic labels", "curves_", [np.empty((2, 0))] * 3, STEPS),
    ("isotonic labels", "curves_", [np.array([[0.0, 1.0], [0.7, 0.6]])] * 3, STEPS),
    ("isotonic labels", "curves_", [np.array([[1.0, 0.0], [0.6, 0.7]])] * 3, STEPS),
    ("isotonic labels", "curves_", [np.array([[0.0, 1.0], [0.0, 0.6]])] * 3, STEPS),
    ("isotonic labels", "curves_", [np.array([[0.0, 1.0], [0.6, 1.0]])] * 3, STEPS),
    ("AccuracyAwareClassifier", "accuracy_estimator_", sf.fitted("ridge"), BELONGS),
    ("AccuracyAwareClassifier", "accuracy_estimator_.decision_", "best", BELONGS),
    ("AccuracyAwareClassifier", "empty", 0.5, BELONGS),
    (
        "AccuracyAwareClassifier",
        "policy_",
        None,
        "`policy_` must be there with a target or a coverage only",
    ),
    (
        "AccuracyAwareClassifier",
        "target",
        0.5,
        "`policy_` must have the classifier's target, coverage and",
    ),
    (
        "AccuracyAwareClassifier",
        "level",
        0.5,
        "`policy_` must have the classifier's target, coverage and",
    ),
    ("AccuracyAwareClassifier", "guaranteed_", False, "`guaranteed` of the card must be the mod"),
    ("AccuracyAwareClassifier", "card_.summary", "All is well.", "`summary` of the card must be"),
    ("AccuracyAwareClassifier", "card_.estimated", 1.0, "`estimated` of the card must be"),
    ("AccuracyAwareClassifier", "card_.n_training", -1, "a card must have numbers of instances"),
    ("AccuracyAwareClassifier", "card_.calibration", {}, CARD),
    ("AccuracyAwareClassifier", "card_.calibration_from", "x", "a card must say where its cal"),
    ("AccuracyAwareClassifier", "cv", 7.5, "`cv` as a share of held-out instances must lie"),
    ("AccuracyAwareClassifier", "estimator_.estimators_", [], LEARNERS),
    ("AccuracyAwareClassifier", "estimator_", 5, "`estimator_` must be a classifier of the same"),
    (
        "AccuracyAwareClassifier",
        "estimator_.label_names_",
        ("a", "b", "c"),
        "`estimator_` must be a classifier of the same labels",
    ),
    ("AccuracyAwareClassifier", "card_", None, "`card_` must be a card"),
    ("recalibrated", "recalibration_", None, RECALIBRATION),
    ("recalibrated", "recalibration", None, RECALIBRATION),
    ("recalibrated", "recalibration", "labels", RECALIBRATION),
    ("recalibrated", "recalibration_.label_names_", ("a", "b"), RECALIBRATION),
    (
        "recalibrated",
        "recalibration_.temperature_",
        9.0,
        "must be the one found if kept",
    ),
    ("with a region", "card_.region", None, "`region` of the card must be the model's"),
    ("recalibrated", "card_.recalibration", None, "`recalibration` of the card must be the mod"),
    ("recalibrated", "recalibration", "other", "Unknown recalibration 'other'"),
    ("of folds", "recalibration_", sf.fitted("TemperatureScaling"), RECALIBRATION),
    ("of folds", "card_.training_gain", 0.0, "`training_gain` of the card must be the model's"),
    ("a table", "card_.columns", None, "`columns` of the card must be the model's"),
    ("TableColumns", "n_features_in_", 2, "`n_features_in_` must be the number of features"),
    ("TableColumns", "roles_.1.role", "text", "`medians_` must be those of the numbers"),
    ("TableColumns", "roles_", [1], ROLES),
    ("TableColumns", "roles_", ROLE * 2, ROLES),
    ("TableColumns", "roles_", (), ROLES),
    ("TableColumns", "roles_.1.role", "other", ROLES),
    ("TableColumns", "roles_.2.name", "color", "`transformer_` must be fitted to the columns"),
    ("TableColumns", "roles_.3.name", "remark", "`transformer_` must be fitted to the columns"),
    ("TableColumns", "medians_", np.array([np.nan]), "`medians_` must be those of the numbers"),
    ("TableColumns", "transformer_", sf.fitted("plugin"), "AttributeError"),
    ("PredictionColumns", "layout", "other", "`layout` must be one that is known"),
    ("PredictionColumns", "layout", "cells", "`column` and `id_column` must be names of columns"),
    ("PredictionColumns", "column", 3, "`column` and `id_column` must be names of columns"),
    ("PredictionColumns", "id_column", 3, "`column` and `id_column` must be names of columns"),
    ("PredictionColumns", "label_names_", ("a", "a"), "`label_names_` must be distinct names"),
    ("PredictionColumns", "label_names_", (), "`label_names_` must be distinct names"),
    ("PredictionColumns", "label_names_", ["a"], "`label_names_` must be distinct names"),
    ("PredictionColumns", "label_names_", ("a", 1), "`label_names_` must be distinct names"),
    ("PredictionColumns", "logits", "no", "`logits` must be true or false"),
    ("PredictionColumns", "sparse", "no", "`sparse` must be true or false, and suit the layout"),
    ("PredictionColumns", "sparse", True, "`sparse` must be true or false, and suit the layout"),
    ("PrecomputedProbabilities", "floor", 0.5, "`floor` must be a probability below a half"),
    ("PrecomputedProbabilities", "floor", -0.1, "`floor` must be a probability below a half"),
    ("of folds", "guaranteed_", True, "`guaranteed_` must not be claimed without a policy"),
]


@pytest.mark.parametrize(("kind", "name", "value", "message"), CHANGES)
def test_a_rule_that_is_broken(kind, name, value, message, tmp_path):
    path = tmp_path / "model.labelsure"
    sf.with_attribute(kind, name, value).save(path)
    with pytest.raises(ls.DataError, match=message) as caught:
        ls.load(path)
    assert str(caught.value).startswith("The file 'model.labelsure' must be as `save` wrote it")


@pytest.mark.parametrize("kind", list(sf.MAKERS))
def test_every_attribute_is_missed(kind, tmp_path):
    """Parameters with a default that is not used are not: those of `fit` alone."""
    path = tmp_path / "model.labelsure"
    content = sf.content_of(kind, tmp_path)
    fitted = [name for name in vars(sf.fitted(kind)) if name.endswith("_")]
    may_be_missing = {"n_features_in_", "feature_names_in_", "column_names_"}
    for name in set(fitted) - may_be_missing:

        def change(schema, name=name):
            attributes = schema["content"]
            place = list(attributes["content"]).index(name)
            del attributes["content"][name]
            del attributes["key_types"]["content"][place]

        path.write_bytes(sf.change_json(content, "schema.json", change))
        if kind == "plugin" and name == "model_":  # which is as good without a fit
            continue
        with pytest.raises(ls.DataError, match="is damaged or was changed"):
            ls.load(path)


def test_names_of_columns_must_be_those_of_the_labels(tmp_path):
    import pandas as pd

    P = pd.DataFrame(sf.P, columns=["a", "b", "c"])
    model = ls.PrecomputedProbabilities().fit(P, sf.TRUTH)
    model.save(tmp_path / "x")
    assert ls.load(tmp_path / "x").column_names_ == ("a", "b", "c")
    model.column_names_ = ("a", "b", "d")
    model.save(tmp_path / "x")
    with pytest.raises(ls.DataError, match="`column_names_` must be the names of the labels"):
        ls.load(tmp_path / "x")


def test_the_questions():
    assert is_array(np.array([1.0, 2.0]), (2,))
    assert not is_array([1.0, 2.0], (2,))
    assert not is_array(np.array([1.0, np.inf]), (2,))
    assert not is_array(np.array(["a"]), (1,))
    assert not is_array(np.ones(3), (2,))
    assert [is_count(value) for value in (1, np.int64(2), 0, True, 1.0, "1", None)] == [
        True, True, False, False, False, False, False]  # fmt: skip
    assert is_count(0, 0)
    assert [is_number(value, 0, 1) for value in (0, 1.0, -0.1, 1.1, True, np.nan, "1")] == [
        True, True, False, False, False, False, False]  # fmt: skip
    expect(True, "no error")
    with pytest.raises(ls.InputError, match="what must hold"):
        expect(False, "what must hold")


def test_a_change_that_breaks_no_rule_is_loaded(tmp_path):
    """The checksum is no signature: who can write the file can change what it says."""
    path = tmp_path / "model.labelsure"
    model = sf.with_attribute("ridge", "model_.coefficients", np.zeros((1, 3)))
    model.save(path)
    assert json.loads(sf.split(path.read_bytes())["labelsure.json"])["metric"] == "jaccard"
    assert ls.load(path).predict(ls.IndependentLabels(sf.P)).tolist() == [0.5] * 200
