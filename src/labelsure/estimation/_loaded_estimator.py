"""The rules that a loaded estimator must keep."""

from __future__ import annotations

from typing import Any

from labelsure.estimation._calibration_sample import CalibrationSample
from labelsure.estimation._design import Layout, check_penalty, choose_response
from labelsure.estimation._label_calibration import LabelCalibration
from labelsure.estimation._labelset_frequencies import LabelsetFrequencies
from labelsure.metrics import check_empty, get_metric
from labelsure.saving import expect


def check_loaded_estimator(estimator: Any) -> None:
    """Hold parameters and fitted attributes to the rules of `fit`.

    Parameters
    ----------
    estimator
        An `AccuracyEstimator`.
    """
    metric = get_metric(estimator.metric)
    check_empty(estimator.empty)
    estimator._check_decision()
    check_penalty(estimator.penalty)
    response = choose_response(metric, estimator.response)
    model_class, names = estimator._model_class(), estimator._feature_names()
    if not hasattr(estimator, "model_"):  # which is fitted all the same: nothing is to be learned
        return
    slope, offset = estimator.slope_levels_, estimator.offset_levels_
    slope.check_loaded("slope_groups")
    offset.check_loaded("offset_groups")
    expect(type(estimator.model_) is model_class, f"`model_` must be a {model_class.__name__}")
    sharper = estimator._feature_names(knows_frequencies=True)
    expect(
        estimator.features_ in (names, sharper), "`features_` must be those that `features` names"
    )
    names = estimator.features_
    model_class.check(names, slope=len(slope) > 0, offset=len(offset) > 0)
    estimator.model_.check_loaded(Layout(len(names), len(slope), len(offset)))
    fitted_response = getattr(estimator.model_, "response", response.name)
    expect(fitted_response == response.name, "the ridge must have the response of its metric")
    same = estimator.penalty_ == getattr(estimator.model_, "penalty", None)
    expect(same, "`penalty_` must be that of the model")
    expect(isinstance(estimator.decision_, str), "`decision_` must say how decisions were made")
    estimator.dispersion_.check_loaded()
    estimator.reference_.check_loaded()
    estimator.training_gain_.check_loaded()
    sample = estimator.calibration_sample_
    if sample is not None:
        expect(
            isinstance(sample, CalibrationSample),
            "`calibration_sample_` must be of labelled instances",
        )
        sample.check_loaded()
    seen = estimator.labelset_frequencies_
    if seen is not None:
        is_count = isinstance(seen, LabelsetFrequencies)
        expect(is_count, "`labelset_frequencies_` must be of labelsets")
        seen.check_loaded()
    labels = estimator.label_calibration_
    if labels is not None:
        expect(isinstance(labels, LabelCalibration), "`label_calibration_` must be that of labels")
        labels.check_loaded()
