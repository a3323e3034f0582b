"""Sums over networks of short memory: marginals, entropy, collision. Section 3.

States and networks are those of `frontier_sweeps`.
"""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import fast_inner, fast_kernel, inner
from labelsure._kernels.frontier_sweeps import LONG_RUN, NO_PARENT, WHOLE_STATE

RESCALE = 512  # steps after which squares are scaled: 0.5**512 is far from underflow


@inner
def _find_column(state, shifts):
    """Return the column of the conditionals that a state selects: its parents' bits."""
    first, second, third = shifts[0], shifts[1], shifts[2]
    if first == WHOLE_STATE:
        return state
    return ((state >> first) & 1) + 2 * ((state >> second) & 1) + 4 * ((state >> third) & 1)


@inner
def _run_length(shifts, half):
    """Return how many neighbouring r have the same parents in states 2 r, and in 2 r + 1."""
    if shifts[0] == WHOLE_STATE:
        return 1
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
def _sum_run(first, stop, masses):
    """Return the sums over states 2 r and over states 2 r + 1."""
    even = odd = 0.0
    for r in range(first, stop):
        even += masses[2 * r]
        odd += masses[2 * r + 1]
    return even, odd


@fast_inner
def _push_states(masses, by_state, pushed):
    """Move the masses of all states, each with a probability of its own."""
    for r in range(pushed.size):
        pushed[r] = masses[2 * r] * by_state[2 * r] + masses[2 * r + 1] * by_state[2 * r + 1]


@fast_inner
def _sum_products(a, b):
    total = 0.0
    for s in range(a.size):
        total += a[s] * b[s]
    return total


@fast_inner
def _push_label(p, entropies, shifts, masses, squares, spare):
    """Move masses and squares one label on; return P(label = 1) and the entropy that it adds."""
    pushed, pushed_squares, yes, doubt = spare
    half = masses.size // 2
    run = _run_length(shifts, half)
    marginal = entropy = 0.0
    if run < LONG_RUN:
        for s in range(masses.size):
            column = _find_column(s, shifts)
            yes[s], doubt[s] = p[column], entropies[column]
        marginal, entropy = _sum_products(masses, yes), _sum_products(masses, doubt)
        for value in range(2):
            at = pushed[value * half : (value + 1) * half]
            at_squares = pushed_squares[value * half : (value + 1) * half]
            for s in range(masses.size):
                of_value = yes[s] if value else 1.0 - yes[s]
                doubt[s] = of_value
            _push_states(masses, doubt, at)
            for s in range(masses.size):
                doubt[s] *= doubt[s]
            _push_states(squares, doubt, at_squares)
        return marginal, entropy
    for first in range(0, half, run):
        stop = first + run
        left, right = _find_column(2 * first, shifts), _find_column(2 * first + 1, shifts)
        even, odd = _sum_run(first, stop, masses)
        marginal += even * p[left] + odd * p[right]
        entropy += even * entropies[left] + odd * entropies[right]
        no_left, no_right = 1.0 - p[left], 1.0 - p[right]
        _push_run(first, stop, masses, no_left, no_right, pushed[:half])
        _push_run(first, stop, masses, p[left], p[right], pushed[half:])
        _push_run(first, stop, squares, no_left**2, no_right**2, pushed_squares[:half])
        _push_run(first, stop, squares, p[left] ** 2, p[right] ** 2, pushed_squares[half:])
    return marginal, entropy


@fast_inner
def _rescale_masses(masses):
    """Divide the masses by their sum and return its log."""
    total = 0.0
    for s in range(masses.size):
        total += masses[s]
    for s in range(masses.size):
        masses[s] /= total
    return np.log(total)


@fast_kernel
def sum_rows(start, stop, network, marginals, values):
    """Per row: P(label = 1) at each position; and entropy and log collision."""
    conditionals, shifts, _, n_states = network
    n_labels = conditionals.shape[1]
    masses, squares = np.empty(n_states), np.empty(n_states)
    pushed, pushed_squares = np.empty(n_states), np.empty(n_states)
    yes, doubt = np.empty(n_states), np.empty(n_states)
    entropies = np.empty(conditionals.shape[2])
    for i in range(start, stop):
        masses[:] = 0.0
        squares[:] = 0.0
        masses[0] = squares[0] = 1.0
        entropy = log_collision = 0.0
        for j in range(n_labels):
            _write_entropies(conditionals[i, j], entropies)
            spare = (pushed, pushed_squares, yes, doubt)
            marginal, added = _push_label(
                conditionals[i, j], entropies, shifts[j], masses, squares, spare
            )
            marginals[i, j] = min(1.0, marginal)
            entropy += added
            masses, pushed = pushed, masses
            squares, pushed_squares = pushed_squares, squares
            if j % RESCALE == RESCALE - 1 or j == n_labels - 1:
                log_collision += _rescale_masses(squares)
        values[i, 0] = entropy
        values[i, 1] = min(0.0, log_collision)
