"""Answers that leave labels open, as the score table of what they decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labelsure.distributions import LabelsetDistribution
from labelsure.errors import InputError
from labelsure.labelsets import OPEN
from labelsure.metrics import COUNTS, EXACT, Metric, MetricLike, get_metric
from labelsure.partial_labelsets import PartialLabelsets
from labelsure.score_columns import DECISION_RULE, PARTIAL, SPREAD
from labelsure.score_table import ScoreTable


def score_answers(
    dist: LabelsetDistribution,
    Y_true: Any,
    answers: PartialLabelsets,
    metrics: Sequence[MetricLike],
) -> ScoreTable:
    """Return the table of what answers decide: open labels are in no count.

    Parameters
    ----------
    dist
        A batch of n distributions.
    Y_true
        (n, L) the truth; None where nobody knows it.
    answers
        One for each instance, each deciding at least one label.
    metrics
        Those whose expected accuracies will be asked for.
    """
    _check_something_decided(answers)
    frame = dist.profile().to_frame().assign(n_labels=dist.n_labels)
    if Y_true is None:
        frame["n_predicted"] = answers.is_certain.sum(axis=1)
    else:
        counts = answers.counts(dist.align(Y_true, "Y_true"))
        for name, numbers in zip(COUNTS, counts, strict=True):
            frame[name] = numbers
    if metrics:
        nothing = np.where(answers.is_open, OPEN, 0)
        frame["p_empty"] = dist.expected_decided(EXACT, nothing).value
    for metric in map(get_metric, metrics):
        expected = dist.expected_decided(metric, answers, empty=0.0).value
        frame[f"expected_{metric.name}"] = expected
    if dist.index is not None:
        frame.index = dist.index
    frame.attrs[DECISION_RULE] = PARTIAL
    return ScoreTable(frame)


def _check_something_decided(answers: PartialLabelsets) -> None:
    undecided = np.flatnonzero(answers.n_open == answers.n_labels)
    if undecided.size:
        raise InputError(
            f"Answers must decide at least one label each, {undecided.size} of {len(answers)} "
            f"leave all open, the first in row {undecided[0]}: nothing of them can be right. Leave "
            "them out: `some = answers.n_open < answers.n_labels`, then `dist[some]`, "
            "`answers[some]`."
        )


def add_spread(
    table: ScoreTable, dist: Any, Y_pred: Any, metric: Metric, empty: float
) -> ScoreTable:
    """Return the table with how far apart the members' expected accuracies are.

    A table of a DataFrame has the column itself, or misses it when it is asked for.
    """
    if not isinstance(dist, LabelsetDistribution):
        return table
    members = dist.members()
    if members is None or isinstance(Y_pred, PartialLabelsets):
        raise InputError(
            "The feature 'spread' needs whole labelsets predicted by a mixture, whose members can "
            f"differ, such as an ensemble of chains makes, got {type(dist).__name__} and "
            f"{'answers with open labels' if members else 'no members'}. Leave it out."
        )
    from labelsure.decisions._skeptical import spread_over  # few need it

    decisions = np.asarray(table.decisions)
    spread = spread_over(members, decisions, metric, empty)
    return table.with_columns({SPREAD.format(metric.name): spread})
