"""Labelsets of sparse labels that are drawn, or the most probable ones, as sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from labelsure._runtime.typing import Floats, Indices, Integers, Labelsets
from labelsure.distributions._flips import cheapest_codes
from labelsure.labelsets.rows import sparse_ones


def draw_rows(listed: csr_array, floor: float, size: int, generator: Any) -> Labelsets:
    """Draw labelsets, those of an instance one after the other: (n * size, L) sparse rows.

    Parameters
    ----------
    listed
        (n, L) the marginals of listed labels.
    floor
        How probable each other label is.
    size
        How many draws of each instance.
    generator
        Of random numbers.
    """
    n_samples, n_labels = listed.shape
    places = np.repeat(np.arange(listed.nnz), size)
    draw = np.tile(np.arange(size), listed.nnz)
    is_set = generator.random(len(places)) < listed.data[places]
    instance = np.repeat(np.arange(n_samples), np.diff(listed.indptr))
    rows = instance[places[is_set]] * size + draw[is_set]
    labels = listed.indices[places[is_set]].astype(np.int64)
    n_others = n_labels - np.diff(listed.indptr).astype(np.int64)
    n_drawn = generator.binomial(np.repeat(n_others, size), floor)
    more_rows, more_labels = [rows], [labels]
    for row in np.flatnonzero(n_drawn):
        own = listed.indices[listed.indptr[row // size] : listed.indptr[row // size + 1]]
        ranks = generator.choice(n_others[row // size], n_drawn[row], replace=False, shuffle=False)
        more_labels.append(unlisted_labels(ranks, own))
        more_rows.append(np.full(n_drawn[row], row))
    return _sort_rows(
        np.concatenate(more_rows), np.concatenate(more_labels), (n_samples * size, n_labels)
    )


def unlisted_labels(ranks: Indices, listed: Integers) -> Indices:
    """Return the labels of these ranks among those that are not listed.

    Examples
    --------
    >>> unlisted_labels(np.array([0, 1, 2]), np.array([0, 2]))
    array([1, 3, 4])
    """
    # Before a listed label there are as many others as its index, but for those listed before.
    n_before = listed - np.arange(len(listed))
    return ranks + np.searchsorted(n_before, ranks, side="right")


def find_top_rows(listed: csr_array, logits: Floats, floor_logit: float, k: int) -> Labelsets:
    """Return the k most probable labelsets of each instance, one after the other: sparse rows.

    Of labels that are not listed the k - 1 first are enough: all of them are equally probable, and
    the lowest codes come first.

    Parameters
    ----------
    listed
        (n, L) the listed labels.
    logits
        Theirs, in the order of the entries.
    floor_logit
        That of each other label.
    k
        How many; not more than there are labelsets.
    """
    n_samples, n_labels = listed.shape
    rows, labels = [], []
    for i in range(n_samples):
        own = slice(listed.indptr[i], listed.indptr[i + 1])
        n_others = min(k - 1, n_labels - len(listed.indices[own]))
        others = unlisted_labels(np.arange(n_others), listed.indices[own])
        seen = np.concatenate([listed.indices[own].astype(np.int64), others])
        odds = np.concatenate([logits[own], np.full(n_others, floor_logit)])
        order = np.argsort(seen)
        seen, odds = seen[order], odds[order]
        codes = cheapest_codes(np.abs(odds), (odds > 0).astype(np.int8), k)
        codes += lowest_codes(k - len(codes), set(codes))
        for rank, code in enumerate(codes):
            bits = [j for j in range(len(seen)) if code >> j & 1]
            rows.append(np.full(len(bits), i * k + rank))
            labels.append(seen[bits])
    nothing = np.empty(0, dtype=np.int64)
    return _sort_rows(
        np.concatenate([nothing, *rows]),
        np.concatenate([nothing, *labels]),
        (n_samples * k, n_labels),
    )


def lowest_codes(n_wanted: int, known: set[int]) -> list[int]:
    """Return the lowest codes that are not known yet, of labelsets of probability 0.

    Examples
    --------
    >>> lowest_codes(2, {0, 2})
    [1, 3]
    """
    found: list[int] = []
    code = 0
    while len(found) < n_wanted:
        if code not in known:
            found.append(code)
        code += 1
    return found


def _sort_rows(rows: Indices, labels: Indices, shape: tuple[int, int]) -> Labelsets:
    order = np.lexsort((labels, rows))
    starts = np.append(0, np.cumsum(np.bincount(rows, minlength=shape[0])))
    return sparse_ones(labels[order], starts, shape[1])
