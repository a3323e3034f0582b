"""Marginals of very many labels, few of them listed: read, checked, compared with labelsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from labelsure._kernels.independent_sums import find_labels_rows
from labelsure._kernels.threads import for_rows
from labelsure._runtime.typing import Indices, Integers, Mask
from labelsure.distributions._listed_labels import ListedLabels, Rest
from labelsure.distributions._probabilities import as_floats, clip_rounding
from labelsure.errors import InputError
from labelsure.labelsets.rows import is_sparse

WITH_DUPLICATES = ("coo", "csr", "csc", "bsr")
"""Formats of scipy in which an entry can be there twice, which scipy would add up."""


def read_listed(values: Any, n_labels: int | None, name: str) -> csr_array:
    """Return listed numbers as a new `csr_array` of floats, zeros kept, or say what is wrong.

    Parameters
    ----------
    values
        (n, L) sparse in any format, or an array.
    n_labels
        How many labels there are; None means as many as there are columns.
    name
        What the caller calls it, for the messages.
    """
    if not is_sparse(values):
        values = csr_array(as_floats(values, name))
    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError(
            f"`{name}` must have shape (n_samples, n_labels) with at least one label, got shape "
            f"{values.shape}."
        )
    if values.dtype.kind not in "biuf":
        raise InputError(f"`{name}` must hold real numbers, got dtype {values.dtype}.")
    n_stored = values.nnz
    rows = csr_array(values, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    if values.format in WITH_DUPLICATES and rows.nnz < n_stored:
        raise InputError(
            f"`{name}` must list each label of an instance once, got {n_stored - rows.nnz} entries "
            "that are there twice. Keep one of each."
        )
    if n_labels is not None:
        if n_labels < rows.shape[1]:
            raise InputError(
                f"`n_labels` must be at least the {rows.shape[1]} columns of `{name}`, got "
                f"{n_labels}."
            )
        rows.resize((rows.shape[0], n_labels))
    return rows


def read_top(indices: Any, scores: Any, n_labels: int) -> csr_array:
    """Return top-k arrays as sparse rows: the listed labels of each instance with their scores.

    Parameters
    ----------
    indices
        (n, k) labels by their index, in any order; -1 where an instance has fewer.
    scores
        (n, k) the number that goes with each.
    n_labels
        How many labels there are.
    """
    values = as_floats(scores, "scores")
    labels = np.asarray(indices)
    if labels.ndim != 2 or labels.dtype.kind not in "iu" or labels.shape != values.shape:
        raise InputError(
            "`indices` and `scores` must be arrays of one shape, (n_samples, k), the first of "
            f"whole numbers, got shapes {labels.shape} and {values.shape} and dtype "
            f"{labels.dtype}. Where an instance has fewer labels, fill up with the index -1."
        )
    is_listed = labels >= 0
    if labels.size and (labels.min() < -1 or labels.max() >= n_labels):
        at = tuple(np.argwhere((labels < -1) | (labels >= n_labels))[0])
        raise InputError(
            f"`indices` must be labels from 0 to {n_labels - 1}, or -1 for none, got {labels[at]} "
            f"in row {at[0]}. Check `n_labels`."
        )
    starts = np.append(0, np.cumsum(is_listed.sum(axis=1)))
    rows = csr_array((values[is_listed], labels[is_listed], starts), shape=(len(labels), n_labels))
    return read_listed(rows, n_labels, "scores")


def check_floor(floor: Any) -> float:
    """Return the probability of a label that is not listed, from 0 to less than 1/2."""
    is_number = isinstance(floor, (int, float, np.number)) and not isinstance(floor, bool)
    if not is_number or not 0 <= floor < 0.5:
        raise InputError(
            "`floor` must be how probable each label is that is not listed, from 0 to less than "
            f"0.5, got {floor!r}. `suggest_floor` finds one from labelled instances."
        )
    return float(floor)


def check_probabilities(rows: csr_array, name: str) -> csr_array:
    """Return listed probabilities, put back where rounding has moved them off [0, 1]."""
    rows.data = clip_rounding(rows.data)
    bad = np.flatnonzero(~((rows.data >= 0) & (rows.data <= 1)))
    if bad.size:
        at = int(bad[0])
        row = int(np.searchsorted(rows.indptr, at, side="right")) - 1
        raise InputError(
            f"`{name}` must lie in [0, 1], got {rows.data[at]} in row {row}, label "
            f"{rows.indices[at]}. If these are logits, use "
            "`SparseIndependentLabels.from_logits`; other scores must be calibrated first."
        )
    return rows


def keep_listed(rows: csr_array, values: NDArray[Any], is_kept: NDArray[np.bool_]) -> csr_array:
    """Return sparse rows of some of the entries, with other values."""
    kept = np.flatnonzero(is_kept)
    starts = np.searchsorted(kept, rows.indptr)
    return csr_array((values[kept], rows.indices[kept], starts), rows.shape)


@dataclass(frozen=True)
class MatchedLabels:
    """Labelsets beside the listed labels of the same instances.

    The labels of these labelsets that are not listed are inserted among those that are, so that
    all are in one list.

    Parameters
    ----------
    starts
        (n + 1,) where the labels of each labelset start.
    places
        Of each of these labels its place among the listed entries; where it is not one of them,
        the place at which it is to be inserted.
    is_listed
        Which of them are listed.
    """

    starts: Indices
    places: Integers
    is_listed: Mask

    @classmethod
    def of(cls, listed: Any, Y: Any) -> MatchedLabels:
        """Look up sparse labelsets among listed labels."""
        places = np.empty(Y.nnz, dtype=np.int64)
        inputs = [
            part.astype(np.int64, copy=False)
            for rows in (listed, Y)
            for part in (rows.indices, rows.indptr)
        ]
        for_rows(find_labels_rows, Y.shape[0], *inputs, into=[places])
        is_listed = places >= 0
        return cls(inputs[3], np.where(is_listed, places, -places - 1), is_listed)

    @property
    def n_inserted(self) -> Integers:
        """How many labels of each labelset are not listed, (n,)."""
        return np.diff(np.append(0, np.cumsum(~self.is_listed))[self.starts])

    def places_after(self) -> Indices:
        """Return the place of each label of the labelsets when all are inserted."""
        n_before: Indices = np.cumsum(~self.is_listed) - ~self.is_listed
        return self.places + n_before

    def marks(self, n_listed: int) -> NDArray[np.int8]:
        """Return for each listed or inserted entry whether it is in the labelset."""
        marks = np.zeros(n_listed + int((~self.is_listed).sum()), dtype=np.int8)
        marks[self.places_after()] = 1
        return marks

    def insert(self, values: NDArray[Any], value: Any) -> NDArray[Any]:
        """Return the values of listed entries with those of inserted ones."""
        if self.is_listed.all():
            return values
        return np.insert(values, self.places[~self.is_listed], value)

    def widen(self, listed: ListedLabels) -> ListedLabels:
        """List the inserted labels as well, which leave the rest."""
        if self.is_listed.all():
            return listed
        rest, n_inserted = listed.rest, self.n_inserted
        return ListedLabels(
            self.insert(listed.marginals, rest.floor),
            listed.starts + np.append(0, np.cumsum(n_inserted)),
            Rest(rest.sizes - n_inserted, rest.floor),
        )
