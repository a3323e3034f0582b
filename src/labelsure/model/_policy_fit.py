"""The policy of an aware classifier: whether there is one, and what it is fitted to."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from labelsure.errors import InputError
from labelsure.estimation.score_table import ScoreTable
from labelsure.guarantees._policy import AcceptPolicy
from labelsure.metrics.registry import get_metric


def make_policy(model: Any) -> AcceptPolicy | None:
    """Return a policy that is not fitted yet, with parameters that are checked; None without one.

    Parameters
    ----------
    model
        An `AccuracyAwareClassifier`.
    """
    if model.target is None and model.coverage is None:
        return None
    outcome = get_metric(model.metric).outcome
    policy = AcceptPolicy(model.target, model.level, outcome, coverage=model.coverage)
    policy.check_parameters()
    return policy


def fit_policy(model: Any, table: ScoreTable) -> AcceptPolicy | None:
    """Return the policy, fitted to predictions whose truth is known; None without one.

    Parameters
    ----------
    model
        An `AccuracyAwareClassifier` whose estimator of accuracy is fitted.
    table
        Predictions that this estimator was not fitted to, where that is to be guaranteed.
    """
    policy = make_policy(model)
    if policy is None:
        return None
    accuracies = table.accuracy(model.metric, model.empty)
    return policy.fit(model.accuracy_estimator_.predict(table), accuracies)


def require_policy(model: Any) -> AcceptPolicy:
    """Return the policy of a fitted `AccuracyAwareClassifier`, or say that it has none."""
    check_is_fitted(model, "accuracy_estimator_")
    if model.policy_ is None:
        raise InputError(
            "`accept` needs a target or a coverage, got neither when fitting. Fit with e.g. "
            "target=0.9."
        )
    policy: AcceptPolicy = model.policy_
    return policy
