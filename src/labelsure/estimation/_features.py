"""What models of accuracy are fitted to: score tables of any source, and features of their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from labelsure._runtime.typing import Floats
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions.candidates import CANDIDATES, Profile
from labelsure.errors import InputError, unknown_name
from labelsure.estimation._models import EXPECTED
from labelsure.estimation.score_table import DECISION_RULE, PARTIAL, ScoreTable
from labelsure.labelsets.rows import differing_rows
from labelsure.metrics.partial import PartialLabelsets
from labelsure.metrics.registry import COUNTS, Metric, MetricLike, check_metrics


def as_score_table(
    source: Any,
    Y_true: Any = None,
    Y_pred: Any = None,
    *,
    metrics: Sequence[MetricLike] = (),
) -> ScoreTable:
    """Return what a distribution, a profile or a DataFrame says of predictions.

    Parameters
    ----------
    source
        A `LabelsetDistribution`, a `Profile`, a `ScoreTable`, or a DataFrame with its columns.
    Y_true, Y_pred
        The truth and the decisions, which a table has itself.
    metrics
        Those whose expected accuracies will be asked for.
    """
    if isinstance(source, LabelsetDistribution):
        if isinstance(Y_pred, PartialLabelsets):
            return _score_answers(source._with_dense_rows(), Y_true, Y_pred, metrics)
        return ScoreTable.from_distribution(source, Y_true, Y_pred, metrics=metrics)
    if isinstance(source, Profile):
        return ScoreTable.from_profile(source, Y_true, Y_pred)
    if not isinstance(source, ScoreTable) and not hasattr(source, "columns"):
        raise InputError(
            "`dist` must be a LabelsetDistribution, a Profile or a DataFrame with its fields, got "
            f"{type(source).__name__}. Wrap probabilities with `as_distribution`."
        )
    if Y_pred is not None:
        raise InputError(
            "`Y_pred` must be None with a table, which was made for decisions of its own, got "
            f"{type(Y_pred).__name__}. Pass the distribution to score other decisions."
        )
    if Y_true is not None:
        raise InputError(
            "`Y_true` must be None with a table, whose tp, fp, fn and tn say how each decision "
            f"did, got {type(Y_true).__name__}. Pass the distribution to use other labels."
        )
    return source if isinstance(source, ScoreTable) else ScoreTable(source)


def read_table(
    dist: Any, Y_true: Any, Y_pred: Any, *, rule: str, metric: MetricLike, empty: float, names: Any
) -> ScoreTable:
    """Return what is known of each prediction; without `Y_pred` decisions follow the rule.

    Parameters
    ----------
    dist, Y_true, Y_pred
        As for `as_score_table`.
    rule
        "mode", "best", or another name where decisions are given.
    metric, empty
        The accuracy.
    names
        Of the features that will be asked for.
    """
    metrics: list[MetricLike] = [metric] if EXPECTED in names else []
    if Y_pred is None and rule == "best" and isinstance(dist, LabelsetDistribution):
        from labelsure.decisions._rules import decide  # few need it

        Y_pred = decide(dist, metric, empty=empty)
        return ScoreTable.from_distribution(
            dist, Y_true, Y_pred, metrics=metrics, decision_rule=rule
        )
    return as_score_table(dist, Y_true, Y_pred, metrics=metrics)


def _score_answers(
    dist: LabelsetDistribution,
    Y_true: Any,
    answers: PartialLabelsets,
    metrics: Sequence[MetricLike],
) -> ScoreTable:
    """Return the table of what answers decide: open labels are in no count."""
    _check_answers(dist, answers)
    frame = dist.profile().to_frame().assign(n_labels=dist.n_labels)
    if Y_true is None:
        frame["n_predicted"] = answers.is_certain.sum(axis=1)
    else:
        counts = answers.counts(dist.align(Y_true, "Y_true"))
        for name, numbers in zip(COUNTS, counts, strict=True):
            frame[name] = numbers
    if metrics:
        frame = frame.assign(**_expect_decided(dist.marginals(), answers, check_metrics(metrics)))
    if dist.index is not None:
        frame.index = dist.index
    frame.attrs[DECISION_RULE] = PARTIAL
    return ScoreTable(frame)


def _expect_decided(
    marginals: Floats, answers: PartialLabelsets, metrics: Sequence[Metric]
) -> dict[str, Floats]:
    """Return columns of expected accuracies of the decided labels, as if these were independent.

    For Hamming, a sum over labels, this is exact for every distribution.
    """
    columns = {f"expected_{metric.name}": np.empty(len(answers)) for metric in metrics}
    columns["p_empty"] = np.empty(len(answers))
    is_decided, is_certain = ~answers.is_open, answers.is_certain
    n_decided = is_decided.sum(axis=1)
    for number in np.unique(n_decided).tolist():
        rows = np.flatnonzero(n_decided == number)
        some, shape = is_decided[rows], (len(rows), number)
        alone = IndependentLabels(marginals[rows][some].reshape(shape))
        predicted = is_certain[rows][some].reshape(shape).astype(np.int8)
        columns["p_empty"][rows] = np.exp(alone.log_prob(np.zeros_like(predicted)))
        for metric in metrics:
            expected = alone.expected(metric, predicted, empty=0.0).value
            columns[f"expected_{metric.name}"][rows] = expected
    return columns


def _check_answers(dist: LabelsetDistribution, answers: PartialLabelsets) -> None:
    shapes = [(len(batch), batch.n_labels) for batch in (dist, answers)]
    if shapes[0] != shapes[1]:
        raise InputError(f"Answers must have shape {shapes[0]}, got shape {shapes[1]}.")
    names, own_names = answers.label_names, dist.label_names
    if names is not None and own_names is not None and tuple(names) != tuple(own_names):
        raise InputError(
            "The answers must have the labels of the distribution, in their order, "
            f"{', '.join(own_names[:5])}, got {', '.join(names[:5])}."
        )
    index, own = answers.index, dist.index
    if index is not None and own is not None and not index.equals(own):
        raise InputError(
            "The answers must have the rows of the distribution, in their order, got others."
        )
    undecided = np.flatnonzero(answers.n_open == answers.n_labels)
    if undecided.size:
        raise InputError(
            f"Answers must decide at least one label each, {undecided.size} of {len(answers)} "
            f"leave all open, the first in row {undecided[0]}: nothing of them can be right. Leave "
            "them out: `some = answers.n_open < answers.n_labels`, then `dist[some]`, "
            "`answers[some]`."
        )


N_PREDICTED = "n_predicted"
IS_EMPTY = "is_empty"
FREQUENCY = "frequency"


def check_same_decisions(rule: str, source: Any, Y_pred: Any) -> Any:
    """Return the decisions to judge, if they are made as those that an estimator was fitted to.

    Parameters
    ----------
    rule
        How those were made: "mode", "best", or another name where they were given.
    source
        What `as_score_table` takes.
    Y_pred
        The decisions; None means that the rule makes them.
    """
    if not isinstance(source, (LabelsetDistribution, Profile)):
        own = getattr(source, "decision_rule", None) or getattr(source, "attrs", {}).get(
            DECISION_RULE
        )
        if own is not None and own != rule:
            raise InputError(
                f"The table's decisions must be made as those that the estimator was fitted to, "
                f"{rule!r}, got {own!r}. Make the table with the same decisions."
            )
        return Y_pred
    if Y_pred is not None and (rule == PARTIAL) != isinstance(Y_pred, PartialLabelsets):
        was, is_now = ("", "whole ones") if rule == PARTIAL else ("no ", "such")
        raise InputError(
            f"The estimator was fitted to {was}answers that may leave labels open "
            f"(`PartialLabelsets`), got {is_now}. Fit another one to such as are to be judged."
        )
    if Y_pred is None and rule not in ("mode", "best"):
        raise InputError(
            "`Y_pred` must be given, because the estimator was fitted to decisions that were given "
            f"({rule!r}), got None. Pass what was predicted for these instances."
        )
    if Y_pred is None or rule != "mode":
        return Y_pred
    if isinstance(source, Profile):
        raise InputError(
            "`Y_pred` must be None with a Profile, because the estimator was fitted to the mode "
            "and a profile does not say whether this is it. Pass the distribution."
        )
    n_others = int(differing_rows(source.align(Y_pred, "Y_pred"), source.mode()).sum())
    if n_others:
        raise InputError(
            "`Y_pred` must be the most probable labelsets, to which the estimator was fitted, "
            f"{n_others} of {len(source)} rows are others. Leave `Y_pred` out, or fit with the "
            "decisions that are to be judged: `fit(dist, Y_true, Y_pred)`."
        )
    return None


_OTHER_FEATURES: dict[str, Callable[[ScoreTable, Metric, float], Floats]] = {
    EXPECTED: lambda table, metric, empty: table.expected(metric, empty),
    N_PREDICTED: lambda table, metric, empty: table.n_predicted(),
    IS_EMPTY: lambda table, metric, empty: (table.n_predicted() == 0).astype(np.float64),
    FREQUENCY: lambda table, metric, empty: table.log_frequency(),
}
"""Features that are no candidates: they depend on the decision."""

MIX = ("HP", "TG", "SE", "CE", "ME", "CS")

FEATURE_SETS: dict[str, tuple[str, ...]] = {
    "mix": MIX,
    "full": (*MIX, EXPECTED, N_PREDICTED, IS_EMPTY),
    "sharp": (*MIX, EXPECTED, N_PREDICTED, IS_EMPTY, FREQUENCY),
}
"""Names for several features together. `mix` is the paper's. In `full` the number of labels has a
term of its own for none: from none to one is another step than from one to two, and without the
term sharp estimates are badly calibrated. `sharp` needs the labelsets of the training data."""

SHARPER = {"full": "sharp"}
"""What takes the place of a default where it is known how often labelsets occur in training."""


def check_features(features: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the features that `features` stands for.

    Examples
    --------
    >>> check_features("SE"), check_features("mix")
    (('SE',), ('HP', 'TG', 'SE', 'CE', 'ME', 'CS'))
    """
    if isinstance(features, str):
        if features in FEATURE_SETS:
            return FEATURE_SETS[features]
        features = (features,)
    known = [*CANDIDATES, *_OTHER_FEATURES, *FEATURE_SETS]
    for name in features:
        if name not in CANDIDATES and name not in _OTHER_FEATURES:
            raise unknown_name("feature", name, known)
    if len(features) == 0:
        raise InputError(
            f"`features` must name at least one of {', '.join(known)}, got none of them."
        )
    return tuple(features)


def feature_matrix(table: ScoreTable, names: Sequence[str], metric: Metric, empty: float) -> Floats:
    """Return the features as an (n, number of features) array, each column contiguous."""
    matrix = np.empty((len(table), len(names)), order="F")
    for j, name in enumerate(names):
        if name in CANDIDATES:
            matrix[:, j] = table.candidate_up_to_scale(name)
        else:
            matrix[:, j] = _OTHER_FEATURES[name](table, metric, empty)
    finite = np.isfinite(matrix).all(axis=0)
    if not finite.all():
        raise InputError(
            f"The feature {names[int(np.argmin(finite))]!r} must be finite, got a value that is "
            "not. Leave it out of `features`, or check the distribution."
        )
    return matrix
