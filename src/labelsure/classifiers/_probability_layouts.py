"""Probabilities in every layout that models and people have them in, checked before use.

A model's `predict_proba` says little about what its columns are: labels, the classes of one label,
or the classes of a vector. Here the columns are compared with the classes that the model reports
and with the shape of what it predicts, so that none is taken for another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Floats, Names
from labelsure.classifiers._base_learners import PAIR_TOLERANCE, read_positive_column
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._dense import DenseDistribution
from labelsure.distributions._independent_labels import IndependentLabels, SparseIndependentLabels
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions._probabilities import (
    ROUNDING,
    as_floats,
    check_unit_interval,
    clip_certain,
    without_gradient,
)
from labelsure.errors import InputError, unknown_name, warn
from labelsure.labelsets.answers import are_scores, read_scores
from labelsure.labelsets.names import list_some, order_columns
from labelsure.labelsets.rows import (
    as_table,
    count_rows,
    is_sparse,
    names_in,
    show_names,
    take_rows,
)

N_LOGITS = 20
"""From so many logits within [0, 1] on there is a warning: 0 of 516 batches of 30 rows had it."""

MIN_HARD_ROWS = 10
"""Rows that must all be 0 or 1 before a batch counts as predicted labels."""

N_COMPARED, MIN_OPPOSITE = 50, 10
"""Rows whose probabilities are held against the model's own predictions, and how many of these must
say the opposite: models that predict at random do so in about half."""

UNSURE = 0.02
"""Probabilities nearer to 0 or 1 are compared: thresholds of a model's own are seldom there."""

NAMED_KINDS = ("marginal", "logit", "logprob")
"""Each column is a label: a DataFrame names the labels, a sparse matrix lists some of them."""

KINDS = (*NAMED_KINDS, "joint", "votes")


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
    """Return predicted probabilities as distributions; warn where they look like something else."""
    if isinstance(source, LabelsetDistribution):
        return source
    if kind not in KINDS:
        raise unknown_name("kind", kind, KINDS)
    if kind == "votes":
        return LabelsetTable.from_samples(source, label_names, unknown=unknown)
    if kind == "joint":
        joint = check_unit_interval(read_array(as_table(source), name), name)
        return DenseDistribution(joint, label_names)
    if is_sparse(source):
        make = SparseIndependentLabels.from_logits if kind == "logit" else SparseIndependentLabels
        floor = _limits.PROBABILITY_FLOOR if floor is None else floor
        return make(source, floor=floor, label_names=label_names)
    if are_scores(source):
        source = read_scores(source, label_names, name=name, in_logs=kind == "logprob")
    table, label_names = order_columns(source, label_names, name)
    if kind == "logit":
        logits = read_array(table, name)
        _warn_of_probabilities(logits)
        dist = IndependentLabels.from_logits(logits, label_names)
        warn_of_suspect_marginals(dist)
        return dist
    marginals = _exponentiate(table, name) if kind == "logprob" else _read_marginals(table, name)
    dist = IndependentLabels(clip_certain(marginals), label_names)
    warn_of_suspect_marginals(dist)
    return dist


def _exponentiate(logs: Any, name: str) -> Floats:
    array = read_array(logs, name).astype(np.float64)
    if not (array <= ROUNDING).all():
        raise InputError(
            f"`{name}` must be log-probabilities, at most 0, got {array.max()}. Pass "
            'kind="marginal" for probabilities, kind="logit" for log-odds.'
        )
    return np.exp(np.minimum(array, 0))


def _read_marginals(source: Any, name: str) -> NDArray[Any]:
    """Return P(y_j = 1) of an array of them, or of P(y_j = 0) and P(y_j = 1) for each label."""
    if isinstance(source, (list, tuple)) and source and _has_two_axes(source[0]):
        pairs = [read_array(part, f"{name}[{label}]") for label, part in enumerate(source)]
    else:
        array = read_array(source, name)
        if array.ndim != 3:
            return check_unit_interval(array, name)
        pairs = list(np.swapaxes(array, 0, 1))
    return _stack_labels(pairs, [[0, 1]] * len(pairs), name)


def _stack_labels(columns: Sequence[Any], classes: Sequence[Any], name: str) -> Floats:
    """Return P(y_j = 1) from the probabilities of the classes of each label."""
    found = []
    for label, (probabilities, known) in enumerate(zip(columns, classes, strict=True)):
        array = check_unit_interval(as_floats(probabilities, name), name)
        if array.ndim == 2 and len(array):
            sums = array.sum(axis=1, dtype=np.float64)
            off = np.flatnonzero(np.abs(sums - 1) > PAIR_TOLERANCE)
            if off.size:
                raise InputError(
                    f"The probabilities of the classes of label {label} must sum to one, got "
                    f"{array[off[0]].tolist()} in row {off[0]}. Fix the model or drop that row."
                )
        found.append(read_positive_column(array, known, label))
    return np.column_stack(found)


def wrap_model_probabilities(model: Any, X: Any, label_names: Names = None) -> IndependentLabels:
    """Return independent labels with the marginals that a model's `predict_proba` gives."""
    probabilities, name = model.predict_proba(X), "predict_proba(X)"
    label_names = None if label_names is None else tuple(label_names)
    own = names_in(probabilities)  # which may be classes of one label
    if label_names is None or (own is not None and len(own) == len(label_names)):
        probabilities, label_names = order_columns(probabilities, label_names, name)
    predicted = _predict_some(model, X)
    columns, classes = _split_into_labels(model, probabilities, predicted)
    single: list[int] = []
    if classes is None:
        marginals = check_unit_interval(as_floats(columns, name), name)
    else:
        marginals = _stack_labels(columns, classes, name)
        pairs = enumerate(zip(columns, classes, strict=True))
        single = [j for j, (column, known) in pairs if len(known) == 1 == column.shape[1]]
    dist = IndependentLabels(clip_certain(marginals), label_names)
    if predicted is not None:
        _hold_against_predictions(model, predicted, dist)
    warn_of_suspect_marginals(dist, single, by_model=True)
    return dist


def _predict_some(model: Any, X: Any) -> NDArray[Any] | None:
    """Return what `predict` says of the first rows; None where it cannot be asked."""
    try:
        predicted = model.predict(take_rows(X, np.arange(min(count_rows(X), N_COMPARED))))
    except Exception:  # it has none, or rows of X are no instances for this model
        return None
    array = np.asarray(predicted.toarray() if is_sparse(predicted) else predicted)
    return array if array.ndim else None


def _hold_against_predictions(model: Any, predicted: NDArray[Any], dist: IndependentLabels) -> None:
    """Warn of labels of which the model's own `predict` says the opposite of what was read."""
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
            f"all rows where it is below {UNSURE} or above {1 - UNSURE}. Either the columns of "
            "`predict_proba` have another order or meaning (then pass P(y_j = 1) without `X`), or "
            "the thresholds of `predict` are far from 0.5.",
            ProbabilityWarning,
        )


def _split_into_labels(
    model: Any, probabilities: Any, predicted: NDArray[Any] | None
) -> tuple[Any, Sequence[Any] | None]:
    """Return one array and its classes for each label; None as classes where columns are labels."""
    classes = getattr(model, "classes_", None)
    if isinstance(probabilities, (list, tuple)):
        return [np.asarray(array) for array in probabilities], _classes_of_labels(
            model, classes, len(probabilities)
        )
    array = np.asarray(
        probabilities.toarray() if hasattr(probabilities, "toarray") else probabilities
    )
    if array.ndim == 3:
        per_label = [array[:, label] for label in range(array.shape[1])]
        return per_label, _classes_of_labels(model, classes, array.shape[1])
    if array.ndim != 2:
        raise InputError(
            f"`predict_proba` of {type(model).__name__} must return shape (n_samples, n_labels), "
            "(n_samples, n_labels, 2) or a list with one array for each label, got shape "
            f"{array.shape}. Bring it into one of these and pass it without `X`."
        )
    if not _columns_are_classes(model, array, predicted):
        return array, None
    if array.shape[1] > 2:
        raise fitted_on_vector(model, array.shape[1])
    return [array], [[0, 1] if classes is None else classes]


def _classes_of_labels(model: Any, classes: Any, n_labels: int) -> Sequence[Any]:
    """Return the classes of each label: 0 and 1 where the model does not report them."""
    if classes is None:
        return [[0, 1]] * n_labels
    per_label = [classes] if n_labels == 1 and np.ndim(classes[0]) == 0 else classes
    if len(per_label) != n_labels or any(np.ndim(known) != 1 for known in per_label):
        raise InputError(
            f"`classes_` of {type(model).__name__} must have the classes of each of the "
            f"{n_labels} labels that `predict_proba` has, got {classes!r}. Pass the probabilities "
            "P(y_j = 1) without `X`."
        )
    return per_label


def _columns_are_classes(
    model: Any, probabilities: NDArray[Any], predicted: NDArray[Any] | None
) -> bool:
    """Return whether the columns are the classes of a vector, not labels.

    What the model reports as `classes_` does not tell: for labels some report their numbers, others
    0 and 1. What it predicts does: one value for each instance, or one for each label.
    """
    n_columns = probabilities.shape[1]
    classes = getattr(model, "classes_", None)
    if predicted is None:
        is_flat = classes is not None and np.ndim(classes[0]) == 0 and len(classes) == n_columns
        return bool(is_flat and n_columns > 1 and _rows_sum_to_one(probabilities))
    shape = predicted.shape
    if len(shape) == 1 or (shape[1] == 1 and n_columns > 1):
        # One column without the classes that belong to it is a single label.
        return n_columns > 1 or (classes is not None and len(classes) == 1)
    if shape[1] != n_columns:
        raise InputError(
            f"`predict` and `predict_proba` of {type(model).__name__} must have one column for "
            f"each label, got {shape[1]} and {n_columns}. Pass the probabilities P(y_j = 1) "
            "without `X`."
        )
    return False


def fitted_on_vector(model: Any, n_classes: int) -> InputError:
    """Build the error for a model of classes of which each instance has one."""
    return InputError(
        f"`source` must be fitted on labelsets, but this {type(model).__name__} was fitted on a "
        f"vector of {n_classes} classes, of which each instance has one. Fit it on `Y` of zeros "
        "and ones of shape (n_samples, n_labels)."
    )


def warn_of_suspect_marginals(
    dist: IndependentLabels, single_class: Sequence[int] = (), *, by_model: bool = False
) -> None:
    """Warn of labels that are 0 or 1 in every row, of predicted labels and of a softmax."""
    constant = set(single_class)
    p = dist.marginals()
    if len(p) > 1:
        is_certain = np.isin(clip_certain(p), clip_certain(np.array([0.0, 1.0])))
        is_constant = is_certain[0] & (p == p[0]).all(axis=0)
        constant |= set(np.flatnonzero(is_constant).tolist())
        if dist.n_labels > 2 and _rows_sum_to_one(p):
            _warn_of_softmax(dist.n_labels)
        if len(p) >= MIN_HARD_ROWS and is_certain.all() and not (by_model or is_constant.all()):
            warn(
                "Every probability is 0 or 1: these are predicted labels, which do not say how "
                "sure the model is. Pass the output of `predict_proba`, or several votes for each "
                "instance (`LabelsetTable.from_samples`).",
                ProbabilityWarning,
            )
    if constant:
        warn_of_constant_labels(dist, sorted(constant))


def warn_of_constant_labels(dist: LabelsetDistribution, labels: Sequence[int]) -> None:
    """Warn that some labels have the probability 0 or 1 whatever the instance."""
    names = list_some(show_names(dist.label_names, labels))
    warn(
        f"The probability of {names} is 0 or 1, to seven digits, in every row: the label had a "
        "single class in training, or the columns have another order or meaning. Drop the label, "
        "or smooth its probability.",
        ProbabilityWarning,
    )


def _warn_of_probabilities(logits: Any) -> None:
    """Warn of logits that all lie within [0, 1], as those of no model do that has seen labels."""
    values = np.asarray(logits)
    if values.size >= N_LOGITS and values.min() >= 0 and values.max() <= 1:
        warn(
            f"All {values.size} logits lie within [0, 1], as probabilities do; as logits they are "
            'all above a probability of 0.5. If they are probabilities, pass kind="marginal".',
            ProbabilityWarning,
        )


def _warn_of_softmax(n_labels: int) -> None:
    is_power = n_labels & (n_labels - 1) == 0
    joint = ' If they are those of all labelsets, pass kind="joint".' if is_power else ""
    warn(
        "Each row of probabilities sums to one, like the output of a softmax over exclusive "
        "classes, but is read as P(y_j = 1) of independent labels. For labels that can occur "
        "together train one sigmoid output each. If each instance has "
        f"exactly one label, use `LabelsetTable([np.eye({n_labels}, dtype=int)] * len(P), P)`."
        f"{joint}",
        ProbabilityWarning,
    )


def _rows_sum_to_one(probabilities: NDArray[Any]) -> bool:
    sums = probabilities.sum(axis=1, dtype=np.float64)
    return bool((np.abs(sums - 1) <= ROUNDING).all())


def read_array(source: Any, name: str) -> NDArray[Any]:
    """Return an array of floats; refuse sparse ones, label names and rows of different lengths."""
    for row, entry in enumerate(source if isinstance(source, (list, tuple)) else ()):
        is_list = isinstance(entry, (list, tuple))
        if isinstance(entry, (set, frozenset)) or (
            is_list and any(isinstance(label, str) for label in entry)
        ):
            raise InputError(
                f"`{name}` must hold a probability for every label, got the label names {entry!r} "
                f"in row {row}. Names say which labels are true: pass them as `Y`, and the "
                "probabilities of the model here."
            )
    return as_floats(source, name)


def _has_two_axes(part: Any) -> bool:
    try:
        return np.ndim(without_gradient(part)) == 2
    except ValueError:  # ragged
        return False
