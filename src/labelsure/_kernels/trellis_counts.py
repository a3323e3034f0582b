"""Counts of labels in trellises by generating functions, without counters in the state.

States and networks are those of `trellis_sweeps`. E[w**fn z**tp] is a function of the state that
moves back over the labels like a probability, a label that is set counting w or z. Values at a few
points (w, z) give the distributions of counts, and expected metrics as weighted sums over points.

A value is a number x + y e in two rows of an array. With e * e = -1 these are complex numbers, for
points on the unit circle (a discrete Fourier transform of the counts). With e * e = 0 they are dual
numbers, whose second part is a derivative: E[tp t**u] is one, and with 1/u as a sum of powers t**u
(`distributions/_reciprocals.py`) it gives E[tp / u], Jaccard and F1.

    expected_rows  expected metrics of one labelset: a backward sweep for each point, O(q L S)
    joint_rows     the same means with y_j = 1 for every label j, by forward-backward: 2 O(q L S)

Every term is a product of probabilities and of weights of size at most 1: nothing overflows, and
the error is that of the points' coefficients, measured where these are made.
"""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import fast_inner, inner, kernel
from labelsure._kernels.trellis_sweeps import expand_columns


@fast_inner
def _write_gains(x_no, y_no, x_yes, y_yes, weight):
    """Replace x_yes + y_yes e by its product with the weight, less x_no + y_no e."""
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
    """Function of the state before a label, from that after it; a set label counts `weight`.

    The value before state s is (1 - p_s) f(s // 2) + p_s w f(s // 2 + half), written as
    f_no + p_s (w f_yes - f_no). A weight w = (a, b, c) takes x + y e to
    (a x + b y) + (c x + a y) e: b = -c for complex numbers, b = 0 for dual numbers.
    Short loops with few arrays vectorise, one long loop does not. `after` is overwritten.
    """
    half = yes.size // 2
    _write_gains(after[0, :half], after[1, :half], after[0, half:], after[1, half:], weight)
    _mix_outcomes(after[0, :half], after[0, half:], yes, before[0])
    _mix_outcomes(after[1, :half], after[1, half:], yes, before[1])


@kernel
def expected_rows(start, stop, network, predicted, weights, coefficients, expected):
    """Per row: the means of several metrics, as sums over points of a generating function.

    weights[q, v] is the weight at point q of a set label whose `predicted` is v: w of a false
    negative (0), z of a true positive (1), and 1 of an auxiliary position (2). The two parts of the
    function's value at q have coefficients[q, k] in the sum of metric k.
    """
    conditionals, shifts, _, n_states = network
    n_labels = conditionals.shape[1]
    yes = np.empty((n_labels, n_states))
    values, spare = np.empty((2, n_states)), np.empty((2, n_states))
    for i in range(start, stop):
        for j in range(n_labels):
            expand_columns(conditionals[i, j], shifts[j], yes[j])
        expected[i] = 0.0
        for q in range(weights.shape[0]):
            values[0] = 1.0
            values[1] = 0.0
            for j in range(n_labels - 1, -1, -1):
                _pull_values(values, yes[j], weights[q, predicted[i, j]], spare)
                values, spare = spare, values
            for k in range(expected.shape[1]):
                expected[i, k] += coefficients[q, k, 0] * values[0, 0]
                expected[i, k] += coefficients[q, k, 1] * values[1, 0]


@fast_inner
def _split_masses(masses, yes, pushed_no, pushed_yes):
    for r in range(pushed_no.size):
        of_yes = masses[2 * r] * yes[2 * r] + masses[2 * r + 1] * yes[2 * r + 1]
        pushed_no[r] = masses[2 * r] + masses[2 * r + 1] - of_yes
        pushed_yes[r] = of_yes


@fast_inner
def _push_weighted_masses(masses, yes, weight, pushed):
    """Masses x + y e of states after a label, from those before it; a set label counts `weight`."""
    half = yes.size // 2
    a, b, c = weight[0], weight[1], weight[2]
    for part in range(2):
        _split_masses(masses[part], yes, pushed[part, :half], pushed[part, half:])
    x_yes, y_yes = pushed[0, half:], pushed[1, half:]
    for r in range(half):
        x, y = x_yes[r], y_yes[r]
        x_yes[r] = a * x + b * y
        y_yes[r] = c * x + a * y


@fast_inner
def _multiply_parts(masses, values, square, products):
    """Products (x + y e) (u + v e), where e * e is `square`."""
    x, y, u, v = masses[0], masses[1], values[0], values[1]
    for s in range(x.size):
        products[0, s] = x[s] * u[s] + square * y[s] * v[s]
        products[1, s] = x[s] * v[s] + y[s] * u[s]


@fast_inner
def _sum_by_bit(products, sums):
    """sums[d] = sum over the states whose bit d is set, summing out bit after bit.

    The sum over all states is left in products[0].
    """
    half = products.size // 2
    for d in range(sums.size - 1, -1, -1):
        low, high = products[:half], products[half : 2 * half]
        total = 0.0
        for s in range(half):
            total += high[s]
        for s in range(half):
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
def joint_rows(start, stop, network, predicted, weights, square, totals, with_label):
    """Per row: the mean of w**fn z**tp at each point, and that of y_j w**fn z**tp for each label.

    Forward-backward: masses from the left times values from the right, summed over the states that
    have label j. A state holds m labels, so the two need to meet only at every m-th position, and
    only the values there are kept. `square` is e * e: -1 for complex, 0 for dual numbers. Both
    parts of the means go to totals[i, q] and with_label[i, j, q].
    """
    conditionals, shifts, _, n_states = network
    n_labels, memory = conditionals.shape[1], 0
    while 1 << memory < n_states:
        memory += 1
    yes = np.empty((n_labels, n_states))
    checkpoints = np.empty(((n_labels - 1) // memory + 2, 2, n_states))
    values, masses = np.empty((2, n_states)), np.empty((2, n_states))
    spare = np.empty((2, n_states))
    sums = np.empty((2, memory))
    for i in range(start, stop):
        for j in range(n_labels):
            expand_columns(conditionals[i, j], shifts[j], yes[j])
        for q in range(weights.shape[0]):
            values[0] = 1.0
            values[1] = 0.0
            _copy_values(values, checkpoints[checkpoints.shape[0] - 1])
            for j in range(n_labels - 1, 0, -1):
                _pull_values(values, yes[j], weights[q, predicted[i, j]], spare)
                values, spare = spare, values
                if j % memory == 0:
                    _copy_values(values, checkpoints[j // memory])
            masses[:] = 0.0
            masses[0, 0] = 1.0
            for j in range(n_labels):
                _push_weighted_masses(masses, yes[j], weights[q, predicted[i, j]], spare)
                masses, spare = spare, masses
                if (j + 1) % memory == 0 or j == n_labels - 1:
                    _multiply_parts(masses, checkpoints[j // memory + 1], square, spare)
                    for part in range(2):
                        _sum_by_bit(spare[part], sums[part])
                        totals[i, q, part] = spare[part, 0]
                        for back in range(j % memory + 1):
                            with_label[i, j - back, q, part] = sums[part, memory - 1 - back]
