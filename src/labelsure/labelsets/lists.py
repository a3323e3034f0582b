"""Labelsets as lists of names or indices, and as texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from labelsure._runtime.typing import Array, LabelNames, Labelsets
from labelsure.errors import InputError
from labelsure.labelsets.codes import MAX_INTEGER_LABELS, codes_of
from labelsure.labelsets.label_names import check_label_names, show_names
from labelsure.labelsets.reading import read_rows
from labelsure.labelsets.sparse import count_labels, is_sparse, sparse_ones


def to_names(
    Y: ArrayLike, label_names: Sequence[str] | None = None, sep: str | None = None
) -> list[Any]:
    """Names of the labels that are set, in a form that `labelsure.read_labelsets` reads.

    Parameters
    ----------
    Y
        (n, L) zeros and ones, or a mask.
    label_names
        One for each column; None writes y0, y1, ...
    sep
        Separator between the names in a text; None for tuples of names.

    Examples
    --------
    >>> to_names([[1, 0, 1], [0, 0, 0]], ["even", "prime", "round"])
    [('even', 'round'), ()]
    >>> to_names([[1, 1]], ["cat", "dog"], sep=";")
    ['cat;dog']
    """
    rows = read_rows(Y)
    return name_rows(rows, check_label_names(label_names, rows.shape[1]), sep)


def name_rows(rows: Array, names: LabelNames, sep: str | None = None) -> list[Any]:
    """Names of the labels that are set in checked rows; of each labelset that occurs, once."""
    if not is_sparse(rows) and rows.shape[1] <= MAX_INTEGER_LABELS:
        _, first, position = np.unique(codes_of(rows), return_index=True, return_inverse=True)
        named = np.empty(len(first), dtype=object)
        named[:] = _name_each(rows[first], names, sep)
        return cast(list[Any], named[position].tolist())
    return _name_each(rows, names, sep)


def _name_each(rows: Array, names: LabelNames, sep: str | None) -> list[Any]:
    labels = rows.nonzero()[1]  # row by row
    if len(labels) < rows.shape[1]:  # of very many labels
        named = show_names(names, labels.tolist())
    else:
        named = np.array(show_names(names, rows.shape[1]), dtype=object)[labels].tolist()
    ends = count_labels(rows).cumsum().tolist()
    tuples = [tuple(named[start:end]) for start, end in pairwise([0, *ends])]
    return tuples if sep is None else [sep.join(labels) for labels in tuples]


def from_indices(labelsets: Iterable[Iterable[int]], n_labels: int) -> Labelsets:
    """Sparse rows from lists of label indices, at the cost of the listed labels alone.

    Parameters
    ----------
    labelsets
        For each instance the indices of its labels, from 0, in any order.
    n_labels
        Number of labels, L.

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n_labels)

    Examples
    --------
    >>> rows = from_indices([[7, 2], []], n_labels=1_000_000)
    >>> rows.shape, rows.indices
    ((2, 1000000), array([2, 7]))
    """
    lists = [np.unique(np.asarray(list(labels))) for labels in labelsets]
    for i, labels in enumerate(lists):
        if labels.size and (
            labels.dtype.kind not in "iu" or labels[0] < 0 or labels[-1] >= n_labels
        ):
            raise InputError(
                f"`labelsets` must hold label indices from 0 to {n_labels - 1}, got "
                f"{labels.tolist()[:5]} in row {i}. For names use `labelsure.read_labelsets`."
            )
    starts = np.cumsum([0, *(len(labels) for labels in lists)])
    indices = np.concatenate([np.empty(0, dtype=np.int64), *lists]).astype(np.int64)
    return sparse_ones(indices, starts, n_labels)


def to_indices(Y: ArrayLike) -> list[list[int]]:
    """Indices of the labels that are set, one list for each row.

    Examples
    --------
    >>> to_indices([[1, 0, 1], [0, 0, 0]])
    [[0, 2], []]
    """
    rows = read_rows(Y, sparse=True)
    labels = iter(rows.indices.tolist())  # type: ignore[attr-defined]
    return [list(islice(labels, n_set)) for n_set in count_labels(rows)]


def to_text(Y: Labelsets) -> list[str]:
    """Text of each labelset: a digit for each label, or the indices of sparse rows.

    Examples
    --------
    >>> to_text(np.array([[1, 0, 1]], dtype=np.int8)), to_text(from_indices([[7, 123], []], 1000))
    (['101'], ['{7 123}', '{}'])
    """
    if not is_sparse(Y):
        return [row.tobytes().decode("ascii") for row in (Y + ord("0")).astype(np.uint8)]
    return ["{" + " ".join(map(str, labels)) + "}" for labels in to_indices(Y)]
