"""Kernels for max-marginals: how probable a labelset with a given value of one label can be."""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import inner, kernel


@kernel
def fold_rows(start, stop, P, maxima):
    """Per row of all 2**L probabilities: maxima[j, v], by folding away the highest label.

    Parameters
    ----------
    P
        (n, 2**L) in the order of the codes.
    maxima
        (n, L, 2) written: the largest probability of a labelset in which label j is v.
    """
    n_labels = maxima.shape[1]
    folded = np.empty(P.shape[1])
    for i in range(start, stop):
        for c in range(P.shape[1]):
            folded[c] = P[i, c]
        half = P.shape[1] // 2
        for j in range(n_labels - 1, -1, -1):
            without, having = 0.0, 0.0
            for c in range(half):
                no, yes = folded[c], folded[c + half]
                without = max(without, no)
                having = max(having, yes)
                folded[c] = max(no, yes)
            maxima[i, j, 0], maxima[i, j, 1] = without, having
            half //= 2


@kernel
def listed_rows(start, stop, rows, logs, starts, maxima):
    """Per instance: maxima[j, v] over the labelsets listed for it, -inf where none has the value.

    Parameters
    ----------
    rows, logs, starts
        Ragged rows as `WeightedLabelsets` holds them, with logs of their weights.
    maxima
        (n, L, 2) written.
    """
    for i in range(start, stop):
        maxima[i] = -np.inf
        for at in range(starts[i], starts[i + 1]):
            for j in range(rows.shape[1]):
                if logs[at] > maxima[i, j, rows[at, j]]:
                    maxima[i, j, rows[at, j]] = logs[at]


@inner
def _log_of(p):
    return np.log(p) if p > 0.0 else -np.inf


@inner
def _column_of(state, shifts):
    """Return the column of the conditionals that a state selects."""
    return (
        ((state >> shifts[0]) & 1) + 2 * ((state >> shifts[1]) & 1) + 4 * ((state >> shifts[2]) & 1)
    )


@kernel
def frontier_rows(start, stop, network, maxima):
    """Per row of a trellis: maxima[position, v] of log P, from best beginnings and best endings.

    A labelset with value v at a position begins as best it can up to some state before it, and ends
    as best it can from the state after it. Networks and states are those of `frontier_sweeps`.

    Parameters
    ----------
    network
        Conditionals, shifts, order and the number of states.
    maxima
        (n, L, 2) written, by position.
    """
    conditionals, shifts, _, n_states = network
    n_labels, n_columns = conditionals.shape[1], conditionals.shape[2]
    half = n_states // 2
    endings = np.empty((n_labels + 1, n_states))
    begun, spare = np.empty(n_states), np.empty(n_states)
    log_no, log_yes = np.empty((n_labels, n_columns)), np.empty((n_labels, n_columns))
    for i in range(start, stop):
        endings[n_labels] = 0.0
        for j in range(n_labels - 1, -1, -1):
            for c in range(n_columns):
                log_no[j, c] = _log_of(1.0 - conditionals[i, j, c])
                log_yes[j, c] = _log_of(conditionals[i, j, c])
            for s in range(n_states):
                c = _column_of(s, shifts[j])
                of_no = log_no[j, c] + endings[j + 1, s >> 1]
                of_yes = log_yes[j, c] + endings[j + 1, (s >> 1) + half]
                endings[j, s] = max(of_no, of_yes)
        begun[:] = -np.inf
        begun[0] = 0.0
        for j in range(n_labels):
            spare[:] = -np.inf
            best_no, best_yes = -np.inf, -np.inf
            for s in range(n_states):
                c = _column_of(s, shifts[j])
                no, yes = begun[s] + log_no[j, c], begun[s] + log_yes[j, c]
                best_no = max(best_no, no + endings[j + 1, s >> 1])
                best_yes = max(best_yes, yes + endings[j + 1, (s >> 1) + half])
                spare[s >> 1] = max(spare[s >> 1], no)
                spare[(s >> 1) + half] = max(spare[(s >> 1) + half], yes)
            maxima[i, j, 0], maxima[i, j, 1] = best_no, best_yes
            begun, spare = spare, begun
