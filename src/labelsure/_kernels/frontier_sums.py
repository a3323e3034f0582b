"""Sums over networks of short memory: marginals, entropy, collision. Section 3.

States and networks are those of `frontier_sweeps`.
"""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import fast_inner, fast_kernel, inner
from labelsure._kernels.frontier_sweeps import LONG_RUN, NO_PARENT

RESCALE = 512  # steps after which squares are scaled: 0.5**512 is far from underflow


@inner
def _find_column(state, shifts):
    """Return the column of the conditionals that a state selects: its parents' bits."""
    first, second, third = shifts[0], shifts[1], shifts[2]
    return ((state >> first) & 1) + 2 * ((state >> second) & 1) + 4 * ((state >> third) & 1)


@inner
def _run_length(shifts, half):
    """Return how many neighbouring r have the same parents in states 2 r, and in 2 r + 1."""
    run = half
    for parent in range(shifts.size):
        if 0 < shifts[parent] < NO_PARENT:
            run = min(run, 1 << (shifts[parent] - 1))
    return run


@inner
def _write_entropies(p, entropies):
    for c in range(p.size):
        entropies[c] = 0.0
        if 0.0 < p[c] < 1.0:
            entropies[c] = -p[c] * np.log(p[c]) - (1.0 - p[c]) * np.log(1.0 - p[c])


@fast_inner
def _push_run(first, stop, masses, even, odd, pushed):
    """Move the masses of states 2 r and 2 r + 1 to r, where they have these probabilities."""
    for r in range(first, stop):
        pushed[r] = masses[2 * r] * even + masses[2 * r + 1] * odd


@fast_inner
def _push_states(masses, by_state, pushed):
    """Move the masses of all states, each with a probability of its own."""
    for r in range(pushed.size):
        pushed[r] = masses[2 * r] * by_state[2 * r] + masses[2 * r + 1] * by_state[2 * r + 1]


@inner
def _push_value(p, shifts, masses, pushed, by_state):
    """Move the masses of all states to those after one value of a label.

    p is the probability of that value in each column, `pushed` half of the states.
    """
    run = _run_length(shifts, pushed.size)
    if run < LONG_RUN:
        for s in range(masses.size):
            by_state[s] = p[_find_column(s, shifts)]
        _push_states(masses, by_state, pushed)
        return
    for first in range(0, pushed.size, run):
        even, odd = _find_column(2 * first, shifts), _find_column(2 * first + 1, shifts)
        _push_run(first, first + run, masses, p[even], p[odd], pushed)


@fast_inner
def _sum(values):
    total = 0.0
    for s in range(values.size):
        total += values[s]
    return total


@fast_inner
def _sum_run(first, stop, masses):
    """Return the sums over states 2 r and over states 2 r + 1."""
    even = odd = 0.0
    for r in range(first, stop):
        even += masses[2 * r]
        odd += masses[2 * r + 1]
    return even, odd


@fast_inner
def _mean_over_states(by_column, shifts, masses):
    """Return the sum over states of mass times what its column has."""
    half = masses.size // 2
    run = _run_length(shifts, half)
    total = 0.0
    if run < LONG_RUN:
        for s in range(masses.size):
            total += masses[s] * by_column[_find_column(s, shifts)]
        return total
    for first in range(0, half, run):
        even, odd = _sum_run(first, first + run, masses)
        total += even * by_column[_find_column(2 * first, shifts)]
        total += odd * by_column[_find_column(2 * first + 1, shifts)]
    return total


@fast_inner
def _rescale_masses(masses):
    """Divide the masses by their sum and return its log."""
    total = _sum(masses)
    for s in range(masses.size):
        masses[s] /= total
    return np.log(total)


@inner
def _complements(p, no):
    for c in range(p.size):
        no[c] = 1.0 - p[c]


@inner
def _squares(p, squared):
    for c in range(p.size):
        squared[c] = p[c] * p[c]


@fast_kernel
def sum_rows(start, stop, network, marginals, values):
    """Per row: P(label = 1) at each position; and entropy and log collision."""
    conditionals, shifts, _, n_states = network
    n_labels, half = conditionals.shape[1], n_states // 2
    masses, squares, pushed = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    by_state = np.empty(n_states)
    entropies, no = np.empty(conditionals.shape[2]), np.empty(conditionals.shape[2])
    squared = np.empty(conditionals.shape[2])
    for i in range(start, stop):
        masses[:] = 0.0
        squares[:] = 0.0
        masses[0] = squares[0] = 1.0
        entropy = log_collision = 0.0
        for j in range(n_labels):
            yes = conditionals[i, j]
            _complements(yes, no)
            _write_entropies(yes, entropies)
            entropy += _mean_over_states(entropies, shifts[j], masses)
            _push_value(no, shifts[j], masses, pushed[:half], by_state)
            _push_value(yes, shifts[j], masses, pushed[half:], by_state)
            marginals[i, j] = min(1.0, _sum(pushed[half:]))
            masses, pushed = pushed, masses
            _squares(no, squared)
            _push_value(squared, shifts[j], squares, pushed[:half], by_state)
            _squares(yes, squared)
            _push_value(squared, shifts[j], squares, pushed[half:], by_state)
            squares, pushed = pushed, squares
            if j % RESCALE == RESCALE - 1 or j == n_labels - 1:
                log_collision += _rescale_masses(squares)
        values[i, 0] = entropy
        values[i, 1] = min(0.0, log_collision)


@fast_kernel
def covariance_rows(start, stop, network, marginals, sums):
    """Per row and position: the sum over all labels of the size of the covariance with it.

    From each label on, the masses of the labelsets that have it move over the labels after it.
    """
    conditionals, shifts, _, n_states = network
    n_labels, half = conditionals.shape[1], n_states // 2
    masses, pushed = np.empty(n_states), np.empty(n_states)
    with_label, spare = np.empty(n_states), np.empty(n_states)
    by_state, no = np.empty(n_states), np.empty(conditionals.shape[2])
    for i in range(start, stop):
        masses[:] = 0.0
        masses[0] = 1.0
        sums[i] = 0.0
        for a in range(n_labels):
            mean = marginals[i, a]
            sums[i, a] += mean * (1.0 - mean)
            _complements(conditionals[i, a], no)
            _push_value(no, shifts[a], masses, pushed[:half], by_state)
            _push_value(conditionals[i, a], shifts[a], masses, pushed[half:], by_state)
            masses, pushed = pushed, masses
            with_label[:half] = 0.0
            with_label[half:] = masses[half:]
            for b in range(a + 1, n_labels):
                _complements(conditionals[i, b], no)
                _push_value(no, shifts[b], with_label, spare[:half], by_state)
                _push_value(conditionals[i, b], shifts[b], with_label, spare[half:], by_state)
                with_label, spare = spare, with_label
                covariance = abs(_sum(with_label[half:]) - mean * marginals[i, b])
                sums[i, a] += covariance
                sums[i, b] += covariance
