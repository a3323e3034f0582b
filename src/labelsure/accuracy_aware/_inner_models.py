"""What can be known of the estimator inside before it is fitted for minutes."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline

from labelsure.classifiers import without_probabilities
from labelsure.errors import InputError


def innermost(model: Any) -> Any:
    """Return the model that a frozen one, a search or a pipeline ends in."""
    if isinstance(model, Pipeline):
        return innermost(model.steps[-1][1])
    if isinstance(model, BaseSearchCV):
        return innermost(getattr(model, "best_estimator_", model.estimator))
    if isinstance(model, FrozenEstimator):
        return innermost(model.estimator)
    return model


def check_inner_model(model: Any) -> None:
    """Refuse what cannot be fitted, and models that have scores but no probabilities.

    Parameters
    ----------
    model
        The estimator that is to be cloned and fitted, or a frozen one.
    """
    if isinstance(model, type):
        raise InputError(
            f"`estimator` must be a model, got the class {model.__name__}. Make one: "
            f"`{model.__name__}()`."
        )
    if not hasattr(model, "get_params") or not hasattr(model, "fit"):
        raise InputError(
            "`estimator` must be a scikit-learn estimator, to be cloned and fitted, got a "
            f"{type(model).__name__}. If it is fitted, pass `FrozenEstimator(model)`; if it only "
            "gives probabilities or logits, pass these as X to "
            "`AccuracyAwareClassifier(PrecomputedProbabilities())`."
        )
    inner = innermost(model)
    if any(hasattr(part, name) for part in (model, inner) for name in _SOURCES):
        return
    learner = getattr(inner, "estimator", inner)  # of MultiOutputClassifier and the like
    # Some models have `predict_proba` only once they are fitted; scores alone are a sure sign.
    if hasattr(learner, "decision_function") and not _may_choose_another_model(model):
        raise without_probabilities(inner, "`estimator`")


_SOURCES = ("predict_distribution", "predict_proba")


def _may_choose_another_model(model: Any) -> bool:
    """Whether a search inside sets more than numbers, so that it may end in another model."""
    if isinstance(model, Pipeline):
        return _may_choose_another_model(model.steps[-1][1])
    if isinstance(model, FrozenEstimator) or not isinstance(model, BaseSearchCV):
        return False
    space = getattr(model, "param_grid", getattr(model, "param_distributions", None))
    settings = [space] if isinstance(space, dict) else space or [{"unknown": [None]}]
    return _may_choose_another_model(model.estimator) or any(
        not hasattr(values, "rvs") and not _are_numbers(values)
        for setting in settings
        for values in setting.values()
    )


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(isinstance(value, Real) and not isinstance(value, bool) for value in values)


def known_label_names(model: Any) -> tuple[str, ...] | None:
    """Return the label names of a fitted model that has some, None for others.

    Parameters
    ----------
    model
        A fitted or frozen model.
    """
    names = getattr(innermost(model), "label_names_", None)
    return None if names is None else tuple(names)
