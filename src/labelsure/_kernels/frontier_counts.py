"""Kernels that count labels in networks of short memory, by generating functions. Section 5.

States and networks are those of `frontier_sweeps`. The mean of w**(number of labels) is a function
of the state that moves back over the labels like a probability, so values at a few points w give
the distributions of counts, and the expectations of metrics, without counters in the state.
"""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import fast_inner, inner, kernel
from labelsure._kernels.frontier_sweeps import WHOLE_STATE


@inner
def _expand_conditionals(tables, shifts, by_state):
    """Copy to every state before each position the conditional probability that it selects."""
    for j in range(tables.shape[0]):
        first, second, third = shifts[j]
        if first == WHOLE_STATE:
            for s in range(by_state.shape[1]):
                by_state[j, s] = tables[j, s]
            continue
        for s in range(by_state.shape[1]):
            column = ((s >> first) & 1) + 2 * ((s >> second) & 1) + 4 * ((s >> third) & 1)
            by_state[j, s] = tables[j, column]


@fast_inner
def _write_gains(x_no, y_no, x_yes, y_yes, weight):
    """Write over (x_yes, y_yes) what they have, weighted, more than (x_no, y_no)."""
    a, b, c = weight[0], weight[1], weight[2]
    for r in range(x_no.size):
        x, y = x_yes[r], y_yes[r]
        x_yes[r] = a * x + b * y - x_no[r]
        y_yes[r] = c * x + a * y - y_no[r]


@fast_inner
def _mix_outcomes(of_no, gain, yes, mixed):
    for r in range(of_no.size):
        mixed[2 * r] = of_no[r] + yes[2 * r] * gain[r]
        mixed[2 * r + 1] = of_no[r] + yes[2 * r + 1] * gain[r]


@fast_inner
def _pull_values(after, yes, weight, before):
    """Move a function of the state one label back, a label that is set counting `weight`.

    The two rows are the parts of a number x + y e. A weight (a, b, c) takes it to
    (a x + b y) + (c x + a y) e: complex numbers (b = -c) and values with derivatives (b = 0) alike.
    Short loops with few arrays vectorise, one long loop does not. `after` is used up.
    """
    half = yes.size // 2
    _write_gains(after[0, :half], after[1, :half], after[0, half:], after[1, half:], weight)
    _mix_outcomes(after[0, :half], after[0, half:], yes, before[0])
    _mix_outcomes(after[1, :half], after[1, half:], yes, before[1])


@kernel
def expected_rows(start, stop, network, predicted, weights, coefficients, expected):
    """Per row: the mean of a metric, as a sum over points of a generating function.

    weights[q, 0] is what a false negative counts at point q, weights[q, 1] a true positive; the
    two parts of the function's value there enter the sum with coefficients[q].
    """
    conditionals, shifts, _, n_states = network
    n_labels = conditionals.shape[1]
    yes = np.empty((n_labels, n_states))
    values, spare = np.empty((2, n_states)), np.empty((2, n_states))
    for i in range(start, stop):
        _expand_conditionals(conditionals[i], shifts, yes)
        expected[i] = 0.0
        for q in range(weights.shape[0]):
            values[0] = 1.0
            values[1] = 0.0
            for j in range(n_labels - 1, -1, -1):
                _pull_values(values, yes[j], weights[q, predicted[i, j]], spare)
                values, spare = spare, values
            expected[i] += coefficients[q, 0] * values[0, 0] + coefficients[q, 1] * values[1, 0]


@fast_inner
def _part_masses(masses, yes, pushed_no, pushed_yes):
    for r in range(pushed_no.size):
        of_yes = masses[2 * r] * yes[2 * r] + masses[2 * r + 1] * yes[2 * r + 1]
        pushed_no[r] = masses[2 * r] + masses[2 * r + 1] - of_yes
        pushed_yes[r] = of_yes


@fast_inner
def _push_weighted_masses(masses, yes, weight, pushed):
    """Move complex masses one label on, a label that is set counting `weight`."""
    half = yes.size // 2
    a, b, c = weight[0], weight[1], weight[2]
    for part in range(2):
        _part_masses(masses[part], yes, pushed[part, :half], pushed[part, half:])
    x_yes, y_yes = pushed[0, half:], pushed[1, half:]
    for r in range(half):
        x, y = x_yes[r], y_yes[r]
        x_yes[r] = a * x + b * y
        y_yes[r] = c * x + a * y


@fast_inner
def _multiply_complex(masses, values, products):
    x, y, u, v = masses[0], masses[1], values[0], values[1]
    for s in range(x.size):
        products[0, s] = x[s] * u[s] - y[s] * v[s]
        products[1, s] = x[s] * v[s] + y[s] * u[s]


@fast_inner
def _sum_by_bit(products, sums):
    """Write to sums[d] the sum over the states whose bit d is set, folding away bit after bit."""
    half = products.size // 2
    for d in range(sums.size - 1, -1, -1):
        low, high = products[:half], products[half : 2 * half]
        total = 0.0
        for s in range(half):
            total += high[s]
            low[s] += high[s]
        sums[d] = total
        half //= 2


@inner
def _copy_values(values, copy):
    """Copy in a loop: an assignment would check the shapes, which takes seconds to compile."""
    for s in range(values.shape[1]):
        copy[0, s] = values[0, s]
        copy[1, s] = values[1, s]


@kernel
def size_rows(start, stop, network, weights, transform):
    """Per row: the mean of y_j w**|y| for each position j and each w, a complex weight.

    One state holds m labels, so masses from the left and values from the right need to meet only
    at every m-th position, and only the values there are kept.
    """
    conditionals, shifts, _, n_states = network
    n_labels, memory = conditionals.shape[1], 0
    while 1 << memory < n_states:
        memory += 1
    yes = np.empty((n_labels, n_states))
    kept = np.empty(((n_labels - 1) // memory + 2, 2, n_states))
    values, masses = np.empty((2, n_states)), np.empty((2, n_states))
    spare = np.empty((2, n_states))
    sums = np.empty((2, memory))
    for i in range(start, stop):
        _expand_conditionals(conditionals[i], shifts, yes)
        for q in range(weights.shape[0]):
            values[0] = 1.0
            values[1] = 0.0
            _copy_values(values, kept[kept.shape[0] - 1])
            for j in range(n_labels - 1, 0, -1):
                _pull_values(values, yes[j], weights[q], spare)
                values, spare = spare, values
                if j % memory == 0:
                    _copy_values(values, kept[j // memory])
            masses[:] = 0.0
            masses[0, 0] = 1.0
            for j in range(n_labels):
                _push_weighted_masses(masses, yes[j], weights[q], spare)
                masses, spare = spare, masses
                if (j + 1) % memory == 0 or j == n_labels - 1:
                    _multiply_complex(masses, kept[j // memory + 1], spare)
                    _sum_by_bit(spare[0], sums[0])
                    _sum_by_bit(spare[1], sums[1])
                    for back in range(j % memory + 1):
                        bit = memory - 1 - back
                        transform[i, j - back, q] = complex(sums[0, bit], sums[1, bit])
