"""Distributions from arrays in the layouts that people have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._dense import DenseDistribution
from labelsure.distributions._independent_labels import IndependentLabels, SparseIndependentLabels
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions._probabilities import as_floats, check_unit_interval, clip_certain
from labelsure.errors import InputError, unknown_name
from labelsure.labelsets.names import order_columns
from labelsure.labelsets.rows import index_of, is_sparse, read_rows
from labelsure.labelsets.weighted import WeightedLabelsets

PAIR_TOLERANCE = 1e-4  # float32 softmax outputs are rounded


def as_distribution(
    source: Any, *, kind: str = "marginal", label_names: Iterable[Any] | None = None
) -> LabelsetDistribution:
    """Wrap predicted probabilities, whatever their layout, as a batch of distributions.

    Parameters
    ----------
    source
        - (n, L) array or DataFrame of marginals P(y_j = 1), or of logits with ``kind="logit"``.
          Marginals are taken as estimates and kept 2**-24 off 0 and 1, so that no labelset is
          impossible; for exact ones make `IndependentLabels`;
        - list of L arrays (n, 2), or one (n, L, 2) array: P(y_j = 0) and P(y_j = 1), as
          scikit-learn's `MultiOutputClassifier.predict_proba` gives them;
        - (n, 2**L) array of joint probabilities in the order of the codes, ``kind="joint"``;
        - (n, n_votes, L) zeros and ones with ``kind="votes"``: the labelsets that members of an
          ensemble, or draws, voted for; a row of NaN for a vote that was not cast;
        - scipy sparse matrix of the marginals or logits of listed labels, out of very many: see
          `SparseIndependentLabels`;
        - a `LabelsetDistribution`, returned as it is, with its own label names.
    kind
        "marginal", "joint", "logit" or "votes". It is never guessed from sums.
    label_names
        One for each label; a DataFrame of marginals or logits brings its own.

    Examples
    --------
    >>> as_distribution([[0.9, 0.2]])
    IndependentLabels(n_samples=1, n_labels=2)
    >>> as_distribution([[0.1, 0.2, 0.3, 0.4]], kind="joint")
    DenseDistribution(n_samples=1, n_labels=2)
    """
    if isinstance(source, LabelsetDistribution):
        return source
    if kind not in _READERS:
        raise unknown_name("kind", kind, _READERS)
    return _READERS[kind](source, label_names)


def _from_marginals(source: Any, label_names: Iterable[Any] | None) -> LabelsetDistribution:
    if is_sparse(source):
        return SparseIndependentLabels(source, label_names=label_names)
    if isinstance(source, (list, tuple)) and source and as_floats(source[0], "source").ndim == 2:
        source = _stack_pairs(source)
    values, label_names = order_columns(source, label_names, "source")
    marginals = as_floats(values, "source")
    if marginals.ndim == 3:
        marginals = _second_of_pairs(marginals)
    return IndependentLabels(clip_certain(marginals), label_names)._with_index(index_of(source))


def _stack_pairs(source: Any) -> Any:
    shapes = [np.shape(array) for array in source]
    odd = next((j for j, shape in enumerate(shapes) if shape != (shapes[0][0], 2)), None)
    if odd is not None:
        raise InputError(
            "`source` as a list must hold one array of shape (n_samples, 2) for each label, got "
            f"shape {shapes[odd]} for label {odd}. A label with a single class in training has one "
            "column: give its probabilities of 0 and 1 both."
        )
    return np.stack([as_floats(array, "source") for array in source], axis=1)


def _second_of_pairs(pairs: Any) -> Any:
    if pairs.shape[2] != 2:
        raise InputError(
            "`source` with three axes must have shape (n_samples, n_labels, 2), the last being "
            f"P(y = 0) and P(y = 1), got shape {pairs.shape}. For draws use "
            "`LabelsetTable.from_samples`."
        )
    pairs = check_unit_interval(pairs, "source")
    off = np.argwhere(np.abs(pairs.sum(axis=2) - 1) > PAIR_TOLERANCE)
    if len(off):
        raise InputError(
            "`source` must hold P(y = 0) and P(y = 1) that sum to one, got "
            f"{pairs[tuple(off[0])].tolist()} in row {off[0][0]}, label {off[0][1]}."
        )
    return np.ascontiguousarray(pairs[:, :, 1])


def _from_logits(source: Any, label_names: Iterable[Any] | None) -> LabelsetDistribution:
    if is_sparse(source):
        return SparseIndependentLabels.from_logits(source, label_names=label_names)
    return IndependentLabels.from_logits(source, label_names)


def _from_votes(source: Any, label_names: Iterable[Any] | None) -> LabelsetDistribution:
    """Return how often each labelset was voted for, of as many votes as each instance has."""
    votes = np.asarray(source)
    if votes.dtype.kind != "f" or votes.ndim != 3 or not np.isnan(votes).any():
        return LabelsetTable.from_samples(votes, label_names)
    is_cast = ~np.isnan(votes).all(axis=2)
    n_cast = is_cast.sum(axis=1)
    if not n_cast.all():
        raise InputError(
            "There must be at least one vote for each instance, row "
            f"{n_cast.argmin()} has none. Drop that row, or write zeros for an empty labelset."
        )
    instance = np.nonzero(is_cast)[0]
    labelsets = read_rows(votes[is_cast], "votes", sparse=False)
    seen = WeightedLabelsets.merge(labelsets, 1 / n_cast[instance], instance, len(votes))
    return LabelsetTable.from_weighted(seen, label_names)


_READERS: dict[str, Callable[[Any, Iterable[Any] | None], LabelsetDistribution]] = {
    "marginal": _from_marginals,
    "joint": DenseDistribution,
    "logit": _from_logits,
    "votes": _from_votes,
}
