"""Predicted probabilities as distributions: arrays of every kind, `predict_proba` in every layout.

A model's `predict_proba` says little about what its columns are: labels, the classes of one label,
or the classes of a vector. Here the columns are compared with the classes that the model reports
and with the shape of what it predicts, so that none is taken for another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_choice, read_number
from labelsure._runtime.typing import Array, Estimator, FeaturesLike, Floats, Names
from labelsure.classifiers._base_learners import PAIR_TOLERANCE, read_positive_column
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._dense import DenseDistribution
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions._probabilities import (
    ROUNDING,
    as_floats,
    check_unit_interval,
    clip_certain,
    without_gradient,
)
from labelsure.distributions._sparse_labels import SparseIndependentLabels
from labelsure.errors import InputError, warn
from labelsure.labelsets.answers import are_scores, read_scores
from labelsure.labelsets.foreign import (
    as_table,
    count_axes,
    count_rows,
    names_in,
    refuse_dicts,
    take_rows,
)
from labelsure.labelsets.label_names import show_names
from labelsure.labelsets.names import list_some, lists_names, order_columns
from labelsure.labelsets.sparse import is_sparse

SCALES: dict[str, Callable[[float], Any]] = {"marginal": float, "logit": logit, "logprob": np.log}
"""Kinds whose columns are labels, which a DataFrame names and of which a sparse matrix lists some;
and the scale on which each says how probable a label is."""


KINDS = (*SCALES, "joint", "votes")


N_COMPARED, MIN_OPPOSITE = 50, 10
"""Rows whose probabilities are held against the model's own predictions, and how many of these must
say the opposite: models that predict at random do so in about half."""


UNSURE = 0.02
"""Probabilities nearer to 0 or 1 are compared: thresholds of a model's own are seldom there."""


N_LOGITS = 20
"""From so many logits within [0, 1] on there is a warning: 0 of 516 batches of 30 rows had it."""


MIN_HARD_ROWS = 10
"""Rows that must all be 0 or 1 before a batch counts as predicted labels."""


class ProbabilityWarning(UserWarning):
    """Probabilities look wrong: constant, all 0 or 1, a softmax, logits, or in another order.

    See Also
    --------
    as_distribution : Reads probabilities and raises this warning.
    PrecomputedProbabilities : The same as an estimator.

    Examples
    --------
    >>> import warnings
    >>> import labelsure as ls
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ls.ProbabilityWarning)
    ...     dist = ls.as_distribution([[0.0, 1.0]] * 3)
    """


def wrap_probabilities(
    source: Any,
    *,
    kind: str = "marginal",
    label_names: Names = None,
    name: str = "source",
    floor: float | None = None,
    unknown: str = "drop",
) -> LabelsetDistribution:
    """Distributions of predicted probabilities. Warns where these look like something else."""
    if isinstance(source, LabelsetDistribution):
        return source
    read_choice(kind, "kind", KINDS)
    if kind == "votes":
        return LabelsetTable.from_samples(source, label_names, unknown=unknown)
    if kind == "joint":
        joint = check_unit_interval(read_array(as_table(source), name), name)
        return DenseDistribution(joint, label_names)
    if is_sparse(source):
        make = SparseIndependentLabels.from_logits if kind == "logit" else SparseIndependentLabels
        floor = _limits.PROBABILITY_FLOOR if floor is None else floor
        return make(source, floor=floor, label_names=label_names)
    source = tabulate_scores(source, label_names, kind, name, floor)
    table, label_names = order_columns(source, label_names, name)
    if kind == "logit":
        logits = read_array(table, name)
        warn_of_likely_probabilities(logits)
        dist = IndependentLabels.from_logits(logits, label_names)
    elif kind == "logprob":
        dist = IndependentLabels(clip_certain(_exponentiate(table, name)), label_names)
    else:
        marginals = _read_marginals(_split_by_label(table, name), name)
        dist = IndependentLabels(clip_certain(marginals), label_names)
    warn_of_suspect_marginals(dist)
    return dist


def tabulate_scores(
    source: Any, label_names: Names, kind: str, name: str, floor: float | None = None
) -> Any:
    """Scores by label as a table, absent labels at the floor; anything else as it is."""
    read_choice(kind, "kind", KINDS)
    if kind not in SCALES or not are_scores(source):
        return source
    missing = None if floor is None else SCALES[kind](read_number(floor, "floor", 0, 1, ends="[)"))
    return read_scores(source, label_names, name=name, in_logs=kind == "logprob", missing=missing)


def _exponentiate(logs: object, name: str) -> Floats:
    array = read_array(logs, name).astype(np.float64)
    if not (array <= ROUNDING).all():
        raise InputError(
            f"`{name}` must be log-probabilities, at most 0, got {array.max()}. Pass "
            'kind="marginal" for probabilities, kind="logit" for log-odds.'
        )
    return np.exp(np.minimum(array, 0))


def _split_by_label(source: Any, name: str, *, by_model: bool = False) -> Array | list[Array]:
    """Probabilities of each label's classes, (n, k) each; or one array as it is.

    A list of arrays has one for each label, and an (n, L, k) array has them side by side.
    """
    is_list = isinstance(source, (list, tuple)) and len(source) > 0
    if is_list and (by_model or count_axes(without_gradient(source[0])) == 2):
        return [read_array(part, f"{name}[{label}]") for label, part in enumerate(source)]
    array = read_array(source, name)
    return list(np.swapaxes(array, 0, 1)) if array.ndim == 3 else array


def _read_marginals(parts: Array | list[Array], name: str, model: Estimator = None) -> Array:
    """P(y_j = 1), (n, L), of an array of them or of each label's classes."""
    if not isinstance(parts, list):
        return check_unit_interval(parts, name)
    classes, marginals = _classes_of_labels(model, len(parts)), []
    for label, (probabilities, values) in enumerate(zip(parts, classes, strict=True)):
        array = check_unit_interval(probabilities, name)
        if array.ndim == 2 and len(array):
            sums = array.sum(axis=1, dtype=np.float64)
            off = np.flatnonzero(np.abs(sums - 1) > PAIR_TOLERANCE)
            if off.size:
                raise InputError(
                    f"The probabilities of the classes of label {label} must sum to one, got "
                    f"{array[off[0]].tolist()} in row {off[0]}."
                )
        marginals.append(read_positive_column(array, values, label))
    return np.column_stack(marginals)


def wrap_model_probabilities(
    model: Estimator, X: FeaturesLike, label_names: Names = None
) -> IndependentLabels:
    """Independent labels with the marginals of a model's `predict_proba`."""
    probabilities, name = model.predict_proba(X), "predict_proba(X)"
    label_names = None if label_names is None else tuple(label_names)
    own = names_in(probabilities)  # which may be classes of one label
    if label_names is None or (own is not None and len(own) == len(label_names)):
        probabilities, label_names = order_columns(probabilities, label_names, name)
    predicted = _predict_some(model, X)
    dense = probabilities.toarray() if is_sparse(probabilities) else probabilities
    parts = _split_by_label(dense, name, by_model=True)
    if not isinstance(parts, list) and _columns_are_classes(model, parts, predicted):
        parts = [parts]
    dist = IndependentLabels(clip_certain(_read_marginals(parts, name, model)), label_names)
    if predicted is not None:
        _check_agrees_with_predict(model, predicted, dist)
    warn_of_suspect_marginals(dist, by_model=True)
    if isinstance(parts, list) and len(dist) == 1:  # of which the marginals show nothing
        warn_of_single_classes(dist, _classes_of_labels(model, len(parts)))
    return dist


def _predict_some(model: Estimator, X: FeaturesLike) -> Array | None:
    """Output of `predict` for the first rows; None where it fails."""
    try:
        predicted = model.predict(take_rows(X, np.arange(min(count_rows(X), N_COMPARED))))
    except Exception:  # it has none, or rows of X are no instances for this model
        return None
    array = np.asarray(predicted.toarray() if is_sparse(predicted) else predicted)
    return array if array.ndim else None


def _check_agrees_with_predict(
    model: Estimator, predicted: NDArray[np.generic], dist: IndependentLabels
) -> None:
    """Warn of labels whose own `predict` contradicts the probabilities that were read."""
    p = dist[: len(predicted)].marginals()
    if predicted.size != p.size or predicted.dtype.kind not in "biuf":
        return
    is_sure = np.abs(p - 0.5) > 0.5 - UNSURE
    is_opposite = is_sure & ((p > 0.5) != (predicted.reshape(p.shape) == 1))
    n_opposite, n_sure = is_opposite.sum(axis=0), is_sure.sum(axis=0)
    labels = np.flatnonzero((n_opposite >= MIN_OPPOSITE) & (n_opposite >= 0.9 * n_sure))
    if labels.size:
        names = list_some(show_names(dist.label_names, labels.tolist()))
        warn(
            f"`predict` of {type(model).__name__} contradicts the probability of {names} in nearly "
            f"all rows where it is below {UNSURE} or above {1 - UNSURE}. If the columns of "
            "`predict_proba` have another order, pass P(y_j = 1) without `X`.",
            ProbabilityWarning,
        )


def _classes_of_labels(model: Estimator, n_labels: int) -> Sequence[Any]:
    """Classes of each label: 0 and 1 where the model does not report them."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return [[0, 1]] * n_labels
    per_label = [classes] if n_labels == 1 and np.ndim(classes[0]) == 0 else classes
    if len(per_label) != n_labels or any(np.ndim(values) != 1 for values in per_label):
        raise InputError(
            f"`classes_` of {type(model).__name__} must have the classes of each of the {n_labels} "
            f"labels of `predict_proba`, got {classes!r}. Pass P(y_j = 1) without `X`."
        )
    return per_label


def _columns_are_classes(
    model: Estimator, probabilities: NDArray[np.generic], predicted: NDArray[np.generic] | None
) -> bool:
    """Whether the columns are the two classes of a vector, not labels.

    What the model reports as `classes_` does not tell: for labels some report their numbers, others
    0 and 1. What it predicts does: one value for each instance, or one for each label.
    """
    kind, classes = type(model).__name__, getattr(model, "classes_", None)
    if probabilities.ndim != 2:
        raise InputError(
            f"`predict_proba` of {kind} must return shape (n_samples, n_labels), (n_samples, "
            f"n_labels, 2) or a list of arrays, got shape {probabilities.shape}. Pass P(y_j = 1) "
            "without `X`."
        )
    n_columns = probabilities.shape[1]
    if predicted is None:
        is_flat = classes is not None and np.ndim(classes[0]) == 0 and len(classes) == n_columns
        are_classes = bool(is_flat and n_columns > 1 and rows_sum_to_one(probabilities))
    elif predicted.ndim == 1 or (predicted.shape[1] == 1 and n_columns > 1):
        # One column without the classes that belong to it is a single label.
        are_classes = n_columns > 1 or (classes is not None and len(classes) == 1)
    elif predicted.shape[1] == n_columns:
        are_classes = False
    else:
        raise InputError(
            f"`predict` and `predict_proba` of {kind} must have the same columns, got "
            f"{predicted.shape[1]} and {n_columns}. Pass P(y_j = 1) without `X`."
        )
    if are_classes and n_columns > 2:
        raise fitted_on_vector(model, n_columns)
    return are_classes


def fitted_on_vector(model: Estimator, n_classes: int) -> InputError:
    """Error for a multiclass model, which was fitted on a vector."""
    return InputError(
        f"`source` must be fitted on labelsets, but this {type(model).__name__} was fitted on a "
        f"vector of {n_classes} classes. Fit it on `Y` of zeros and ones of shape (n_samples, "
        "n_labels)."
    )


def read_array(source: Any, name: str) -> Array:
    """Array of floats. Raises InputError for sparse ones, label names and ragged rows."""
    refuse_dicts(source, name)
    for row, entry in enumerate(source if isinstance(source, (list, tuple)) else ()):
        if lists_names(entry):
            raise InputError(
                f"`{name}` must hold a probability for every label, got the label names {entry!r} "
                f"in row {row}. Pass names of true labels as `Y`."
            )
    return as_floats(source, name)


def warn_of_suspect_marginals(dist: IndependentLabels, *, by_model: bool = False) -> None:
    """Warn of labels that are 0 or 1 in every row, of predicted labels and of a softmax."""
    p = dist.marginals()
    if len(p) < 2:
        return
    is_certain = np.isin(clip_certain(p), clip_certain(np.array([0.0, 1.0])))
    is_constant = is_certain[0] & (p == p[0]).all(axis=0)
    if dist.n_labels > 2 and rows_sum_to_one(p):
        _warn_of_softmax(dist.n_labels)
    if len(p) >= MIN_HARD_ROWS and is_certain.all() and not (by_model or is_constant.all()):
        warn(
            "Every probability is 0 or 1, as predicted labels are. Pass the output of "
            "`predict_proba`, or several votes for each instance (`LabelsetTable.from_samples`).",
            ProbabilityWarning,
        )
    if is_constant.any():
        _warn_of_constant_labels(dist, np.flatnonzero(is_constant).tolist())


def warn_of_single_classes(dist: LabelsetDistribution, classes: Sequence[Sized]) -> None:
    """Warn of labels that had a single class in training."""
    labels = [label for label, values in enumerate(classes) if len(values) == 1]
    if labels:
        _warn_of_constant_labels(dist, labels)


def _warn_of_constant_labels(dist: LabelsetDistribution, labels: Sequence[int]) -> None:
    """Warn that some labels have the probability 0 or 1 whatever the instance."""
    names = list_some(show_names(dist.label_names, labels))
    warn(
        f"The probability of {names} is 0 or 1, to seven digits, in every row. The label had a "
        "single class in training, or columns are in another order: check them, or drop the label.",
        ProbabilityWarning,
    )


def warn_of_likely_probabilities(logits: object) -> None:
    """Warn of logits that all lie within [0, 1], as those of no model do that has seen labels."""
    values = np.asarray(logits)
    if values.size >= N_LOGITS and values.min() >= 0 and values.max() <= 1:
        warn(
            f"All {values.size} logits lie within [0, 1]. If they are probabilities, pass "
            'kind="marginal".',
            ProbabilityWarning,
        )


def _warn_of_softmax(n_labels: int) -> None:
    is_power = n_labels & (n_labels - 1) == 0
    joint = ' If they are those of all labelsets, pass kind="joint".' if is_power else ""
    warn(
        "Each row of probabilities sums to one, as a softmax over exclusive classes does, but is "
        "read as P(y_j = 1) of each label. Train one sigmoid output per label. If each instance "
        f"has exactly one label, use `LabelsetTable([np.eye({n_labels}, dtype=int)] * len(P), "
        f"P)`.{joint}",
        ProbabilityWarning,
    )


def rows_sum_to_one(probabilities: NDArray[np.generic]) -> bool:
    sums = probabilities.sum(axis=1, dtype=np.float64)
    return bool((np.abs(sums - 1) <= ROUNDING).all())
