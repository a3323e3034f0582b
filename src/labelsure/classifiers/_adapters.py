"""Other systems' models and probabilities as distributions, in every layout, checked before use.

`as_distribution` asks a fitted model, or reads probabilities; `PrecomputedProbabilities` is the
same as an estimator, whose X is what another system predicted; `read_instances` is for `fit` of
estimators that hold any model.

A model's `predict_proba` says little about what its columns are: labels, the classes of one label,
or the classes of a vector. Here the columns are compared with the classes that the model reports
and with the shape of what it predicts, so that none is taken for another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, get_tags, indexable
from sklearn.utils.validation import check_is_fitted, validate_data

from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_choice
from labelsure._runtime.typing import Floats, LabelNames, Names
from labelsure.classifiers._base_learners import (
    PAIR_TOLERANCE,
    expand_chain,
    is_search,
    read_linear_weights,
    read_positive_column,
)
from labelsure.classifiers._predictor import (
    LabelsetClassifier,
    LabelsetPredictor,
    Targets,
    index_of_batch,
    read_truth,
)
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._chain_mixture import ChainMixture
from labelsure.distributions._dense import DenseDistribution
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions._mixture import SmoothedTable
from labelsure.distributions._probabilities import (
    ROUNDING,
    as_floats,
    check_unit_interval,
    clip_certain,
    without_gradient,
)
from labelsure.distributions._sparse_labels import SparseIndependentLabels
from labelsure.errors import InputError, unknown_name, warn
from labelsure.labelsets.answers import are_answers, are_scores, read_scores
from labelsure.labelsets.codes import from_codes
from labelsure.labelsets.foreign import (
    as_table,
    count_axes,
    count_rows,
    index_of,
    names_in,
    refuse_masked,
    take_rows,
)
from labelsure.labelsets.label_names import show_names
from labelsure.labelsets.names import (
    GivenLabelsets,
    check_weights,
    list_some,
    lists_names,
    match_labels,
    order_columns,
)
from labelsure.labelsets.reading import check_shape
from labelsure.labelsets.sparse import is_sparse

N_LOGITS = 20
"""From so many logits within [0, 1] on there is a warning: 0 of 516 batches of 30 rows had it."""

MIN_HARD_ROWS = 10
"""Rows that must all be 0 or 1 before a batch counts as predicted labels."""

N_COMPARED, MIN_OPPOSITE = 50, 10
"""Rows whose probabilities are held against the model's own predictions, and how many of these must
say the opposite: models that predict at random do so in about half."""

UNSURE = 0.02
"""Probabilities nearer to 0 or 1 are compared: thresholds of a model's own are seldom there."""

LABEL_SCALE = ("predict", "predict_proba")
"""Values of `chain_method` that lie in [0, 1], as labels do: learners that were trained on these
take labels. A joint distribution of such learners has a higher log-likelihood on held-out rows than
their `predict_proba`; where they were trained on scores, a lower one."""

SCALES: dict[str, Callable[[float], Any]] = {"marginal": float, "logit": logit, "logprob": np.log}
"""Kinds whose columns are labels, which a DataFrame names and of which a sparse matrix lists some;
and the scale on which each says how probable a label is."""

KINDS = (*SCALES, "joint", "votes")

ANSWERS = "answers"  # the column of a table that lists answers beside a probability for each label
HALF = 0.5  # of each of two sources, before their weights are fitted


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


def as_distribution(
    source: Any, X: Any = None, *, kind: str | None = None, label_names: Names = None
) -> LabelsetDistribution:
    """Wrap a fitted model and its instances, or predicted probabilities, as distributions.

    Parameters
    ----------
    source
        A fitted model, with `X`:

        - a classifier of labelsure;
        - scikit-learn's `ClassifierChain`: the joint distribution of its base learners, which its
          own `predict_proba` is not; with `cv` and a `chain_method` of scores, whose learners take
          no labels, independent labels;
        - `RandomForestClassifier`, `ExtraTreesClassifier`: the votes of the trees as a table, or
          with ``kind="marginal"`` independent labels;
        - any other model with `predict_proba`, fitted on labelsets: independent labels;
        - a pipeline, search or `FrozenEstimator` around one of these.

        Or predicted probabilities, without `X`:

        - (n, L) array, DataFrame or tensor of marginals P(y_j = 1), or of logits with
          ``kind="logit"``. Marginals, also those of models, are clipped to
          [2**-24, 1 - 2**-24]; logits are not clipped;
        - list of L arrays (n, 2), or one (n, L, 2) array: P(y_j = 0) and P(y_j = 1), as
          scikit-learn's `MultiOutputClassifier.predict_proba` gives them;
        - (n, 2**L) array of joint probabilities in the order of the codes, ``kind="joint"``;
        - (n, n_votes, L) zeros and ones, a labelset for each vote, ``kind="votes"``; a row of NaN
          for a vote that was not cast;
        - a `LabelsetDistribution`, returned as it is.
    X
        The instances to predict, for a fitted model, as it takes them.
    kind
        For arrays "marginal" (None), "joint", "logit" or "votes"; for forests "votes" (None) or
        "marginal".
    label_names
        One for each label; DataFrames and classifiers of labelsure bring their own.

    Returns
    -------
    LabelsetDistribution
        A batch with one distribution per row.

    Warns
    -----
    ProbabilityWarning
        Where a label has the probability 0 or 1 in every row, or rows of marginals sum to one as
        those of a softmax do.

    See Also
    --------
    PrecomputedProbabilities : The same as an estimator with `fit`, for pipelines.
    confidence : How sure a distribution is.
    decide : The labelset with the highest expected accuracy.

    Examples
    --------
    >>> as_distribution([[0.9, 0.2]])
    IndependentLabels(n_samples=1, n_labels=2)

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multioutput import ClassifierChain
    >>> X, Y = [[0.0], [1.0], [2.0], [3.0]], [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> as_distribution(ClassifierChain(LogisticRegression()).fit(X, Y), X)
    ChainMixture(n_samples=4, n_labels=2)
    """
    if isinstance(source, type):
        raise InputError(
            f"`source` must be a fitted model, got the class {source.__name__}. Fit one."
        )
    refuse_masked(source, "source")
    refuse_masked(X, "X")
    predicts = hasattr(source, "predict_distribution") or hasattr(source, "predict_proba")
    if isinstance(source, BaseEstimator) or predicts:
        if X is None:
            raise InputError(
                "`X` must hold the instances to predict where `source` is a model, got None. Call "
                "`as_distribution(model, X)`."
            )
        dist, rows = _from_model(*_unwrap(source, X), kind, label_names), X
    elif callable(source) or hasattr(source, "predict"):
        raise without_probabilities(source)
    elif X is not None:
        raise InputError(
            f"`X` belongs to a fitted model, but `source` is a {type(source).__name__}. Pass "
            "probabilities without `X`."
        )
    else:
        dist = wrap_probabilities(source, kind=kind or "marginal", label_names=label_names)
        rows = source
    # A model knows nothing of the names of rows, and a pipeline loses them on the way.
    index = index_of(rows)
    return dist if index is None or dist.index is not None else dist._with_index(index)


def _unwrap(model: Any, X: Any) -> tuple[Any, Any]:
    """Return what pipelines, searches and frozen estimators hold, and the instances it gets."""
    while True:
        if is_search(model):
            check_is_fitted(model)
            if not hasattr(model, "best_estimator_"):
                raise InputError(
                    f"`source` must have a best model, which this {type(model).__name__} has not. "
                    "Fit it with `refit=True`."
                )
            model = model.best_estimator_
        elif isinstance(model, FrozenEstimator):
            model = model.estimator
        elif isinstance(model, Pipeline):
            X, model = model[:-1].transform(X) if len(model) > 1 else X, model[-1]
        else:
            return model, X


def _from_model(model: Any, X: Any, kind: str | None, label_names: Names) -> LabelsetDistribution:
    """Read models that hold more than `predict_proba` says, and all others by that."""
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier  # slow to import

    if isinstance(model, (ExtraTreesClassifier, RandomForestClassifier)):
        check_is_fitted(model)
        if kind not in (None, "votes", "marginal"):
            raise unknown_name("kind for a forest", kind, ("votes", "marginal"))
        read = wrap_model_probabilities if kind == "marginal" else _forest_votes
        return read(model, X, label_names)
    if kind is not None:
        raise InputError(f"`kind` must be None for a {type(model).__name__}, got {kind!r}.")
    if isinstance(model, ClassifierChain):
        return _from_chain(model, X, label_names)
    if hasattr(model, "predict_distribution"):
        if label_names is not None:
            raise InputError(
                "`label_names` must be None for a classifier of labelsure, which learns them from "
                "a DataFrame `Y` in `fit`."
            )
        return model.predict_distribution(X)
    if hasattr(model, "predict_proba"):
        return wrap_model_probabilities(model, X, label_names)
    raise without_probabilities(model)


def _from_chain(
    model: ClassifierChain, X: Any, label_names: Names
) -> ChainMixture | IndependentLabels:
    check_is_fitted(model)
    for label, learner in zip(model.order_, model.estimators_, strict=True):
        if not hasattr(learner, "predict_proba"):
            raise without_probabilities(model)
        read_positive_column(np.empty((0, len(learner.classes_))), learner.classes_, label)
    if model.cv is not None and model.chain_method_ not in LABEL_SCALE:
        # Each learner takes scores of the ones before it, which x determines: given x, labels are
        # independent, with the marginals of `predict_proba`.
        return wrap_model_probabilities(model, X, label_names)
    X = validate_data(model, X, reset=False, accept_sparse="csr", dtype=np.float64)
    order = np.asarray(model.order_)
    # The labels of the probes may be anything; half of them are 1.
    labels = np.indices((X.shape[0], len(order))).sum(axis=0).astype(np.int8) % 2
    before = [range(j) for j in range(len(order))]
    linear = read_linear_weights(model.estimators_, X, labels, before)
    dist = ChainMixture([expand_chain(order, model.estimators_, linear, X)], label_names)
    classes = [model.estimators_[position].classes_ for position in np.argsort(order)]
    warn_of_single_classes(dist, classes)
    return dist


def _forest_votes(model: Any, X: Any, label_names: Names) -> LabelsetTable:
    classes = [model.classes_] if model.n_outputs_ == 1 else model.classes_
    if model.n_outputs_ == 1 and len(model.classes_) > 2:
        raise fitted_on_vector(model, len(model.classes_))
    X = validate_data(
        model, X, reset=False, accept_sparse="csr", dtype=np.float32, ensure_all_finite=False
    )
    values = [read_positive_column(np.eye(len(known)), known, j) for j, known in enumerate(classes)]
    votes = np.empty((X.shape[0], len(model.estimators_), len(classes)), dtype=np.int8)
    for t, tree in enumerate(model.estimators_):
        # The trees of a forest predict the indices of the classes.
        chosen = tree.predict(X).reshape(X.shape[0], -1).astype(np.intp)
        for j, value in enumerate(values):
            votes[:, t, j] = value[chosen[:, j]]
    dist = LabelsetTable.from_samples(votes, label_names)
    warn_of_single_classes(dist, classes)
    return dist


def without_probabilities(model: Any, name: str = "`source`") -> InputError:
    """Build the error for a model, function or network that has no `predict_proba`."""
    learner = getattr(model, "estimator", model)  # of MultiOutputClassifier and the like
    kind = getattr(learner, "__name__", type(learner).__name__)
    if isinstance(model, ClassifierChain):
        name = "The learners of a ClassifierChain"
    fix = 'Pass its output for the instances without `X`, with kind="logit" if it is logits.'
    if hasattr(learner, "decision_function"):
        fix = (
            "Its `decision_function` gives scores, not probabilities. Calibrate it: "
            f"`CalibratedClassifierCV({kind}())`, in a `MultiOutputClassifier` for several labels."
        )
    return InputError(f"{name} must have `predict_proba`, which {kind} has not. {fix}")


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
        _warn_of_probabilities(logits)
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
    """Return scores by label as a table, absent labels at the floor; anything else as it is."""
    if kind not in SCALES or not are_scores(source):
        return source
    missing = None if floor is None else float(SCALES[kind](floor))
    return read_scores(source, label_names, name=name, in_logs=kind == "logprob", missing=missing)


def _exponentiate(logs: Any, name: str) -> Floats:
    array = read_array(logs, name).astype(np.float64)
    if not (array <= ROUNDING).all():
        raise InputError(
            f"`{name}` must be log-probabilities, at most 0, got {array.max()}. Pass "
            'kind="marginal" for probabilities, kind="logit" for log-odds.'
        )
    return np.exp(np.minimum(array, 0))


def _split_by_label(
    source: Any, name: str, *, by_model: bool = False
) -> NDArray[Any] | list[NDArray[Any]]:
    """Return the probabilities of each label's classes, (n, k) each; or one array as it is.

    A list of arrays has one for each label, and an (n, L, k) array has them side by side.
    """
    is_list = isinstance(source, (list, tuple)) and len(source) > 0
    if is_list and (by_model or count_axes(without_gradient(source[0])) == 2):
        return [read_array(part, f"{name}[{label}]") for label, part in enumerate(source)]
    array = read_array(source, name)
    return list(np.swapaxes(array, 0, 1)) if array.ndim == 3 else array


def _read_marginals(
    parts: NDArray[Any] | list[NDArray[Any]], name: str, model: Any = None
) -> NDArray[Any]:
    """Return P(y_j = 1), (n, L), of an array of them or of each label's classes."""
    if not isinstance(parts, list):
        return check_unit_interval(parts, name)
    classes, found = _classes_of_labels(model, len(parts)), []
    for label, (probabilities, known) in enumerate(zip(parts, classes, strict=True)):
        array = check_unit_interval(probabilities, name)
        if array.ndim == 2 and len(array):
            sums = array.sum(axis=1, dtype=np.float64)
            off = np.flatnonzero(np.abs(sums - 1) > PAIR_TOLERANCE)
            if off.size:
                raise InputError(
                    f"The probabilities of the classes of label {label} must sum to one, got "
                    f"{array[off[0]].tolist()} in row {off[0]}."
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
    dense = probabilities.toarray() if is_sparse(probabilities) else probabilities
    parts = _split_by_label(dense, name, by_model=True)
    if not isinstance(parts, list) and _columns_are_classes(model, parts, predicted):
        parts = [parts]
    dist = IndependentLabels(clip_certain(_read_marginals(parts, name, model)), label_names)
    if predicted is not None:
        _hold_against_predictions(model, predicted, dist)
    warn_of_suspect_marginals(dist, by_model=True)
    if isinstance(parts, list) and len(dist) == 1:  # of which the marginals show nothing
        warn_of_single_classes(dist, _classes_of_labels(model, len(parts)))
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
            f"all rows where it is below {UNSURE} or above {1 - UNSURE}. If the columns of "
            "`predict_proba` have another order, pass P(y_j = 1) without `X`.",
            ProbabilityWarning,
        )


def _classes_of_labels(model: Any, n_labels: int) -> Sequence[Any]:
    """Return the classes of each label: 0 and 1 where the model does not report them."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return [[0, 1]] * n_labels
    per_label = [classes] if n_labels == 1 and np.ndim(classes[0]) == 0 else classes
    if len(per_label) != n_labels or any(np.ndim(known) != 1 for known in per_label):
        raise InputError(
            f"`classes_` of {type(model).__name__} must have the classes of each of the {n_labels} "
            f"labels of `predict_proba`, got {classes!r}. Pass P(y_j = 1) without `X`."
        )
    return per_label


def _columns_are_classes(
    model: Any, probabilities: NDArray[Any], predicted: NDArray[Any] | None
) -> bool:
    """Return whether the columns are the two classes of a vector, not labels.

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
        are_classes = bool(is_flat and n_columns > 1 and _rows_sum_to_one(probabilities))
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


def fitted_on_vector(model: Any, n_classes: int) -> InputError:
    """Build the error for a model of classes of which each instance has one."""
    return InputError(
        f"`source` must be fitted on labelsets, but this {type(model).__name__} was fitted on a "
        f"vector of {n_classes} classes. Fit it on `Y` of zeros and ones of shape (n_samples, "
        "n_labels)."
    )


def warn_of_suspect_marginals(dist: IndependentLabels, *, by_model: bool = False) -> None:
    """Warn of labels that are 0 or 1 in every row, of predicted labels and of a softmax."""
    p = dist.marginals()
    if len(p) < 2:
        return
    is_certain = np.isin(clip_certain(p), clip_certain(np.array([0.0, 1.0])))
    is_constant = is_certain[0] & (p == p[0]).all(axis=0)
    if dist.n_labels > 2 and _rows_sum_to_one(p):
        _warn_of_softmax(dist.n_labels)
    if len(p) >= MIN_HARD_ROWS and is_certain.all() and not (by_model or is_constant.all()):
        warn(
            "Every probability is 0 or 1, as predicted labels are. Pass the output of "
            "`predict_proba`, or several votes for each instance (`LabelsetTable.from_samples`).",
            ProbabilityWarning,
        )
    if is_constant.any():
        _warn_of_constant_labels(dist, np.flatnonzero(is_constant).tolist())


def warn_of_single_classes(dist: LabelsetDistribution, classes: Sequence[Any]) -> None:
    """Warn of labels that had a single class in training."""
    labels = [label for label, known in enumerate(classes) if len(known) == 1]
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


def _warn_of_probabilities(logits: Any) -> None:
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


def _rows_sum_to_one(probabilities: NDArray[Any]) -> bool:
    sums = probabilities.sum(axis=1, dtype=np.float64)
    return bool((np.abs(sums - 1) <= ROUNDING).all())


def read_array(source: Any, name: str) -> NDArray[Any]:
    """Return an array of floats; refuse sparse ones, label names and rows of different lengths."""
    for row, entry in enumerate(source if isinstance(source, (list, tuple)) else ()):
        if lists_names(entry):
            raise InputError(
                f"`{name}` must hold a probability for every label, got the label names {entry!r} "
                f"in row {row}. Pass names of true labels as `Y`."
            )
    return as_floats(source, name)


def _has_answers(X: Any) -> bool:
    """Whether X lists answers, alone or beside a column of probabilities for each label."""
    return are_answers(X) or (hasattr(X, "columns") and ANSWERS in X.columns)


class PrecomputedProbabilities(LabelsetPredictor):
    """Stand-in for a classifier: X holds the probabilities that another system predicted.

    Use it wherever a classifier is expected. `fit` learns nothing but the names of the labels.

    Parameters
    ----------
    kind
        What X holds:

        - "marginal": (n, L) probabilities P(y_j = 1), clipped to [2**-24, 1 - 2**-24]; or a scipy
          sparse matrix of those that are listed out of very many labels, see
          `SparseIndependentLabels`;
        - "logit": (n, L) logits of these, likewise;
        - "logprob": (n, L) logarithms of these;
        - of these three also what is said of each instance as a dict ``{label: number}``, as pairs
          ``[{"label": ..., "score": ...}, ...]`` in any order, or as JSON text of these. A label's
          number may be ``{"yes": ..., "no": ...}``, which is normalised over both;
        - "joint": (n, 2**L) probabilities of all labelsets, in the order of their codes;
        - "votes": (n, n_votes, L) zeros and ones, one labelset for each vote. Where instances
          have different numbers of votes, a row of NaN stands for one that was not cast. Or for
          each instance a list of answers, which are lists of label names: see
          `LabelsetTable.from_samples`. A DataFrame with such lists in a column "answers" and a
          column of probabilities for each label holds two sources; `VoteSmoothing` weighs them.
    label_names
        The labels, in the order of the columns, where neither X nor y names them: for sparse
        matrices, and for answers beside a y that is no DataFrame.
    floor
        How probable each label is that is not listed. None: in a sparse matrix 2**-24, see
        `SparseIndependentLabels`; for dicts and pairs a label that is missing is refused.
    unknown
        What to do with names in answers that are no label: "refuse" them, or "drop" them with a
        warning that counts them.

    Attributes
    ----------
    classes_
        [0, 1] for each label, or the two values of a vector y; of more than 10,000 sparse labels
        one entry for all.
    label_names_
        The columns of a DataFrame y; otherwise those of a DataFrame X of marginals or logits,
        otherwise None. Predictions have their labels in this order.
    column_names_
        The labels in the order that the columns of X had in `fit`: those of a DataFrame of
        marginals or logits, otherwise `label_names`.
    n_features_in_
        How many columns X has (the labels of a vote).

    See Also
    --------
    as_distribution : The same without `fit`, for one array.
    AccuracyAwareClassifier : Takes this in place of a classifier.

    Examples
    --------
    >>> P = [[0.9, 0.2], [0.3, 0.8], [0.6, 0.6]]
    >>> model = PrecomputedProbabilities().fit(P, [[1, 0], [0, 1], [1, 0]])
    >>> model.predict(P)
    array([[1, 0],
           [0, 1],
           [1, 1]])
    >>> model.predict_distribution(P)
    IndependentLabels(n_samples=3, n_labels=2)
    """

    def __init__(
        self,
        kind: str = "marginal",
        label_names: Names = None,
        floor: float | None = None,
        unknown: str = "drop",
    ) -> None:
        self.kind = kind
        self.label_names = label_names
        self.floor = floor
        self.unknown = unknown

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Check that X and y belong together and keep the names of the labels.

        Parameters
        ----------
        X
            What the other system predicted, of the `kind`.
        y
            (n, L) zeros and ones, a DataFrame (whose columns name the labels) or sparse; for each
            instance the names of its labels, where X is a DataFrame; or a vector of two classes,
            which is the case of one label. The columns of two DataFrames are matched by name,
            those of arrays by position.
        sample_weight
            (n,) weights of the instances, which are checked and change nothing.
        """
        names = self.label_names_of(X)
        if names is None and _has_answers(X):
            names = GivenLabelsets.read(y, "y").label_names
        dist = self._wrap(self._check_shape(self._tabulate(X, names)), names)
        known, n_labels = dist.label_names, dist.n_labels
        truth = read_truth(y, X, label_names=known, settled=True, sparse=dist.sparse_rows)
        check_shape(truth.labelsets.shape, "y", len(dist), n_labels)
        if truth.is_vector or truth.label_names is None:
            truth = replace(truth, label_names=known or truth.label_names)
        elif known is not None:
            match_labels(truth.label_names, known, "y", "`X`")
        if sample_weight is not None:
            check_weights(sample_weight, len(dist), index_of_batch(X, y))
        self.n_features_in_ = 2**n_labels if self.kind == "joint" else n_labels
        self.n_labels_ = n_labels
        self.classes_, self.column_names_ = truth.classes, known
        self.label_names_ = truth.label_names
        return self

    def predict_distribution(self, X: Any) -> LabelsetDistribution:
        """Return what X says as distributions.

        Parameters
        ----------
        X
            As in `fit`; the columns of a DataFrame may be in another order.
        """
        check_is_fitted(self)
        return self._distribution_of_checked(X)

    def _distribution_of_checked(self, X: Any) -> LabelsetDistribution:
        """Return what X says as distributions, after checking its shape and names."""
        X = self._tabulate(X, self.label_names_)
        array = self._check_shape(X)
        if not _has_answers(array):
            array = self._order_columns(array, self._names_of_columns(X))
        return self._wrap(array, self.label_names_)._with_index(index_of(X))

    def _order_columns(self, array: Any, own: LabelNames) -> Any:
        """Return what X says in the order of the labels; an array has its columns as in `fit`."""
        if own is None or self.label_names_ is None:
            own = self.column_names_
            if array.shape[-1] != self.n_features_in_:
                raise InputError(
                    f"`X` must have {self.n_features_in_} columns as in `fit`, got "
                    f"{array.shape[-1]}. Pass predictions of the same {self.n_labels_} labels."
                )
        if own is None or self.label_names_ is None or own == self.label_names_:
            return array
        order = match_labels(own, self.label_names_, "X", "the fitted model")
        if self.kind == "joint":  # columns are codes of labelsets
            order = from_codes(np.arange(2**self.n_labels_), self.n_labels_) @ (1 << order)
        return array[:, order] if is_sparse(array) else array[..., order]

    def _check_shape(self, X: Any) -> Any:
        read_choice(self.kind, "kind", KINDS)
        read_choice(self.unknown, "unknown", ("refuse", "drop"))
        if self.kind == "votes" and _has_answers(X):
            return X  # read where the labels are known
        array = X if is_sparse(X) and self.kind in SCALES else read_array(as_table(X), "X")
        middle = ", n_votes" if self.kind == "votes" else ""
        if array.ndim != (3 if middle else 2):
            raise InputError(
                f"`X` must have shape (n_samples{middle}, n_columns) for kind={self.kind!r}, got "
                f"shape {array.shape}."
            )
        return array

    def _tabulate(self, X: Any, label_names: Names) -> Any:
        return tabulate_scores(X, label_names, self.kind, "X", self.floor)

    def label_names_of(self, X: Any) -> LabelNames:
        """Return the names that X or the parameters give to the columns of X; None for none."""
        names = self._names_of_columns(self._tabulate(X, self.label_names))
        if names is not None or self.label_names is None:
            return names
        return tuple(str(label) for label in self.label_names)

    def _names_of_columns(self, X: Any) -> LabelNames:
        """Return the labels that a DataFrame names, None where columns go by position."""
        names = names_in(X) if self.kind in SCALES or _has_answers(X) else None
        return None if names is None else tuple(name for name in names if name != ANSWERS)

    def _wrap(self, array: Any, label_names: Names) -> LabelsetDistribution:
        if hasattr(array, "columns"):
            votes = cast(LabelsetTable, self._wrap(array[ANSWERS], label_names))
            rest = wrap_probabilities(array.drop(columns=ANSWERS), label_names=label_names)
            return SmoothedTable(votes, cast(IndependentLabels, rest), HALF)
        if are_answers(array) and label_names is None:
            raise InputError(
                "`X` lists label names, but nothing says which labels there are. Pass "
                "`label_names`, or `y` as a DataFrame with a column for each label."
            )
        return wrap_probabilities(
            array,
            kind=self.kind,
            label_names=label_names,
            name="X",
            floor=self.floor,
            unknown=self.unknown,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.two_d_array = self.kind != "votes"
        tags.input_tags.three_d_array = self.kind == "votes"
        return tags


MIN_SAMPLES = 4  # two to train on and two to compare with


def shape_for_estimator(truth: Targets, X: Any, *, with_names: bool) -> Any:
    """Return zeros and ones as estimators are fitted with: a vector, a matrix or a DataFrame."""
    numbers = truth.labelsets.astype(np.int64)
    if truth.is_vector:
        return numbers[:, 0]
    if not with_names or truth.label_names is None or is_sparse(numbers):
        return numbers
    import pandas as pd

    return pd.DataFrame(numbers, index_of(X), list(truth.label_names))


def read_instances(X: Any, y: Any, estimator: Any) -> tuple[Any, Targets]:
    """Return X so that rows can be taken from it, and the labels read."""
    check_consistent_length(X, y)
    if count_rows(X) < MIN_SAMPLES:
        raise InputError(
            f"At least {MIN_SAMPLES} instances are needed to fit, got n_samples = {count_rows(X)}."
        )
    frozen = isinstance(estimator, FrozenEstimator)
    inner = innermost(estimator)
    names = known_label_names(estimator) if frozen else None
    settled = frozen or isinstance(inner, PrecomputedProbabilities)
    if settled and not frozen:
        names = inner.label_names_of(X if inner is estimator else None)
    sparse = lists_labels(estimator, X)
    truth = read_truth(y, X, label_names=names, settled=settled, frozen=frozen, sparse=sparse)
    has_tags = hasattr(inner, "__sklearn_tags__")
    if truth.is_vector and has_tags and not get_tags(inner).target_tags.single_output:
        raise InputError(
            f"`y` must have a column for each label for {type(inner).__name__}, got a vector. Pass "
            "zeros and ones of shape (n_samples, 1)."
        )
    if isinstance(estimator, LabelsetClassifier):  # which checks X itself
        return X, truth
    (X,) = indexable(X)
    return X, truth


def lists_labels(estimator: Any, X: Any) -> bool:
    """Whether X lists some of very many labels, too many for an array of their truth."""
    if not isinstance(innermost(estimator), PrecomputedProbabilities):
        return False
    inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    steps = [step for _, step in inner.steps] if isinstance(inner, Pipeline) else []
    return is_sparse(X) or any(getattr(step, "is_sparse", False) for step in steps)


def innermost(model: Any) -> Any:
    """Return the model that a frozen one, a search or a pipeline ends in."""
    if isinstance(model, Pipeline):
        return innermost(model.steps[-1][1])
    if is_search(model):
        return innermost(getattr(model, "best_estimator_", model.estimator))
    if isinstance(model, FrozenEstimator):
        return innermost(model.estimator)
    return model


def first_step(model: Any) -> Any:
    """Return what takes the instances first: the first step of a pipeline, also of a frozen one."""
    model = model.estimator if isinstance(model, FrozenEstimator) else model
    return model.steps[0][1] if isinstance(model, Pipeline) else model


def known_label_names(model: Any) -> LabelNames:
    """Return the label names of a fitted model that has some, None for others."""
    names: LabelNames = getattr(innermost(model), "label_names_", None)
    return names


def is_settled(estimator: Any) -> bool:
    """Return whether nothing is trained here: the model is frozen, or X holds probabilities."""
    return isinstance(estimator, FrozenEstimator) or isinstance(
        innermost(estimator), PrecomputedProbabilities
    )
