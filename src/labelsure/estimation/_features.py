"""What models of accuracy are fitted to: score tables of any source, and features of their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from labelsure._runtime.typing import Floats
from labelsure.decisions._rules import decide
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions.candidates import CANDIDATES
from labelsure.errors import InputError, unknown_name
from labelsure.estimation._models import EXPECTED
from labelsure.estimation.score_table import DECISION_RULE, ScoreTable
from labelsure.labelsets.rows import differing_rows
from labelsure.metrics.registry import Metric, MetricLike


def read_table(
    source: Any,
    Y_true: Any = None,
    Y_pred: Any = None,
    *,
    rule: str = "mode",
    metric: MetricLike | None = None,
    empty: float = 1.0,
    expects: bool = False,
) -> ScoreTable:
    """Return what is known of each prediction; without `Y_pred` decisions follow the rule."""
    if isinstance(source, LabelsetDistribution):
        decides = Y_pred is None and rule == "best"
        if decides:
            Y_pred = decide(source, metric or "jaccard", empty=empty)
        metrics = [metric] if expects and metric is not None else []
        return ScoreTable.from_distribution(
            source, Y_true, Y_pred, metrics=metrics, decision_rule=rule if decides else None
        )
    if not isinstance(source, ScoreTable) and not hasattr(source, "columns"):
        raise InputError(
            "`dist` must be a LabelsetDistribution or a DataFrame with the columns of a score "
            f"table, got {type(source).__name__}. Wrap probabilities with `as_distribution`."
        )
    for name, given in (("Y_pred", Y_pred), ("Y_true", Y_true)):
        if given is not None:
            raise InputError(
                f"`{name}` must be None with a table, which has its own decisions and their tp, "
                f"fp, fn and tn, got {type(given).__name__}. Pass the distribution instead."
            )
    return source if isinstance(source, ScoreTable) else ScoreTable(source)


N_PREDICTED = "n_predicted"
IS_EMPTY = "is_empty"
FREQUENCY = "frequency"


def check_same_decisions(rule: str, source: Any, Y_pred: Any) -> Any:
    """Return the decisions to judge, if they are made as those that an estimator was fitted to."""
    if not isinstance(source, LabelsetDistribution):
        own = getattr(source, "decision_rule", None) or getattr(source, "attrs", {}).get(
            DECISION_RULE
        )
        if own is not None and own != rule:
            raise InputError(
                f"The table's decisions must be made as those that the estimator was fitted to, "
                f"{rule!r}, got {own!r}. Make the table with the same decisions."
            )
        return Y_pred
    if Y_pred is None and rule not in ("mode", "best"):
        raise InputError(
            "`Y_pred` must be given, because the estimator was fitted to decisions that were given "
            f"({rule!r}), got None. Pass what was predicted for these instances."
        )
    if Y_pred is None or rule != "mode":
        return Y_pred
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
