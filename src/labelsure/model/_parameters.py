"""The parameters of an `AccuracyAwareClassifier`, checked before anything is fitted."""

from __future__ import annotations

from typing import Any

from labelsure.errors import unknown_name
from labelsure.metrics.registry import check_empty, check_level, get_metric
from labelsure.model._calibration import check_cv_setting, make_recalibration
from labelsure.model._policy_fit import make_policy
from labelsure.model._region_fit import check_region
from labelsure.model._training_data import check_inner_model

DECISIONS = ("mode", "best", "predict")


def check_parameters(model: Any, estimator: Any) -> None:
    """Raise an `InputError` if the parameters are none that can be fitted with.

    Parameters
    ----------
    model
        The `AccuracyAwareClassifier`.
    estimator
        What it is going to fit, or to ask.
    """
    get_metric(model.metric)
    check_empty(model.empty)
    check_level(model.level)
    if model.decision not in DECISIONS:
        raise unknown_name("decision", model.decision, DECISIONS)
    make_policy(model)  # refuses targets and coverages
    check_inner_model(estimator)
    check_cv_setting(model.cv)
    make_recalibration(model.recalibration)
    check_region(model.region, estimator, model.cv)
