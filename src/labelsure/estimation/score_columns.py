"""The columns of the score table, and what each holds; `docs/score_table.md` lists the same."""

from __future__ import annotations

CELL = ["dataset", "classifier", "repeat"]
"""What names a cell of a study: one classifier on one split of one data set. A list, by which
pandas groups rows."""

COLUMNS: dict[str, str] = {
    "dataset": "name of the data set, in studies",
    "classifier": "name of the classifier, in studies",
    "repeat": "number of the split, from 0, in studies",
    "instance": "row of the data set that the instance is, in studies",
    "n_labels": "number of labels; rows may differ",
    "decision": "the labelset predicted, a digit for each label; of sparse labels {their indices}",
    "n_predicted": "labels in the decision; tp + fp where the column is missing",
    "log_frequency": "logarithm of how often the decision occurred in the training data, if known",
    "method": "the engine that gave the profile",
    "top": "probability of the most probable labelset",
    "runner_up": "probability of the second most probable labelset",
    "entropy": "Shannon entropy in nats",
    "collision": "sum of the squared probabilities",
    "log_top": "logarithm of top, read instead of it where both are there",
    "log_runner_up": "logarithm of runner_up, likewise",
    "log_collision": "logarithm of collision, likewise",
    "tp": "labels predicted and true",
    "fp": "labels predicted but not true",
    "fn": "labels true but not predicted",
    "tn": "labels neither predicted nor true",
    "p_empty": "probability of the empty labelset",
}
"""Columns and what they hold, in the order in which they are written."""

METRIC_COLUMNS: dict[str, str] = {
    "expected_{}": "expected accuracy of the decision, two empty labelsets being worth 0",
    "best_{}_decision": "the labelset with the highest expected accuracy",
    "best_{}_gap": "how far its expected accuracy may be below the highest",
    "best_{}_tp": "labels of it that are true; likewise fp, fn and tn",
    "true_expected_{}": "the first of these under the true distribution, where data is simulated",
}
"""Columns of each metric, whose name takes the place of the braces."""

LOG_FREQUENCY = "log_frequency"

DECISION_RULE = "decision_rule"
"""Where a frame says how its decisions were made: an entry of its `attrs`."""

PARTIAL = "partial"
"""How decisions were made that leave labels open."""

TRUE_P_EMPTY = "true_p_empty"
"""p_empty under the true distribution; it comes after the columns of the metrics."""
