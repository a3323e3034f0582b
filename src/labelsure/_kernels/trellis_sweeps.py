"""Sweeps over trellises: networks in which each label depends on a few labels just before it.

Layout: labels are visited in a fixed order, and each depends on at most three of the m labels
visited before it. The *state* before position j holds those m labels, position j - 1 as its highest
bit. A label that takes the value v moves state s to s // 2 + v 2**(m - 1):

    states 2 r, 2 r + 1  --0-->  r              so a step is a loop over r, and states whose
                         --1-->  r + 2**(m-1)   parents agree ("a run") share one probability

A *network* is a tuple: conditionals (n, L, columns), P(label = 1 | parents) with a column for each
way the parents can be; shifts (L, 3), which bit of the state each parent is; order (L,), the label
of each position; and the number of states S = 2**m. Labelsets are in the order of positions. An
*auxiliary* position has no label (order -1) and a value that its parents determine: it carries a
label, or a function of labels, farther than m positions.

    mode_rows        the mode by the Viterbi algorithm, and the runner-up, which leaves it once
    top_rows         the k best labelsets: Viterbi with deviations (Lawler), best first in a heap
    forward_rows     marginals, entropy (chain rule) and log collision by the forward algorithm
    covariance_rows  sums of |Cov(y_i, y_j)|: one forward pass from each label, O(L**2 S)
    sample_rows      ancestral sampling, O(L) a draw

All others cost O(L S) a row; sums of logs are off by about L roundings, and log-probabilities
within `TIE` of each other count as equal, the lower code first.
"""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import fast_inner, fast_kernel, inner, kernel
from labelsure._runtime.limits import TIE

NO_PARENT = 62  # a bit that no state has set
LONG_RUN = 4  # least length of a run that has a loop of its own
RESCALE = 512  # steps after which squares are scaled: 0.5**512 is far from underflow


@inner
def find_column(state, shifts):
    """Column of the conditionals for a state: the bits of the parents."""
    first, second, third = shifts[0], shifts[1], shifts[2]
    return ((state >> first) & 1) + 2 * ((state >> second) & 1) + 4 * ((state >> third) & 1)


@inner
def expand_columns(columns, shifts, by_state):
    """by_state[s] = columns[find_column(s)]."""
    first, second, third = shifts[0], shifts[1], shifts[2]
    for s in range(by_state.size):
        by_state[s] = columns[((s >> first) & 1) + 2 * ((s >> second) & 1) + 4 * ((s >> third) & 1)]


@inner
def _run_length(shifts, half):
    """Length of the aligned runs of r in which all states 2 r, and all 2 r + 1, have one column."""
    run = half
    for parent in range(shifts.size):
        if 0 < shifts[parent] < NO_PARENT:
            run = min(run, 1 << (shifts[parent] - 1))
    return run


@inner
def _log_probability(p):
    return np.log(p) if p > 0.0 else -np.inf


@inner
def _next_state(state, value, n_states):
    return (state >> 1) + value * (n_states >> 1)


@fast_inner
def _choose_values(no, yes, after, best, choice):
    """Number of states in which both values of a label are equally good, by one Viterbi step.

    Writes best[s], the log-probability of the best completion, and choice[s], its first value.
    """
    half = after.size // 2
    after_no, after_yes = after[:half], after[half:]
    n_ties = 0
    for s in range(no.size):
        of_no, of_yes = no[s] + after_no[s >> 1], yes[s] + after_yes[s >> 1]
        best[s] = of_no if of_no > of_yes else of_yes
        choice[s] = of_yes > of_no + TIE
        n_ties += (of_yes >= of_no - TIE) & (of_yes <= of_no + TIE)
    return n_ties


@fast_inner
def _choose_in_run(first, stop, no, yes, after, best, choice):
    """As `_choose_values`, for the states 2 r and 2 r + 1 of a run, r from first to stop.

    no[0] and yes[0] are the log-probabilities of the values in even states, [1] in odd ones.
    """
    half = after.size // 2
    after_no, after_yes = after[:half], after[half:]
    n_ties = 0
    for odd in range(2):
        log_no, log_yes = no[odd], yes[odd]
        for r in range(first, stop):
            of_no, of_yes = log_no + after_no[r], log_yes + after_yes[r]
            best[2 * r + odd] = of_no if of_no > of_yes else of_yes
            choice[2 * r + odd] = of_yes > of_no + TIE
            n_ties += (of_yes >= of_no - TIE) & (of_yes <= of_no + TIE)
    return n_ties


@inner
def _choose_all(log_no, log_yes, shifts, after, best, choice, spare):
    """As `_choose_values`, from log-probabilities by column, run by run where runs are long."""
    no, yes, of_pair = spare
    half = best.size // 2
    run = _run_length(shifts, half)
    if run < LONG_RUN:
        expand_columns(log_no, shifts, no)
        expand_columns(log_yes, shifts, yes)
        return _choose_values(no, yes, after, best, choice)
    n_ties = 0
    for first in range(0, half, run):
        for odd in range(2):
            column = find_column(2 * first + odd, shifts)
            of_pair[0, odd], of_pair[1, odd] = log_no[column], log_yes[column]
        n_ties += _choose_in_run(first, first + run, of_pair[0], of_pair[1], after, best, choice)
    return n_ties


@inner
def _no_is_lower(position, state, order, choice):
    """Whether 0 at this position leads to a lower code than 1, each with its best completion.

    The two labelsets differ only between this position and the one at which their states meet.
    """
    n_states = choice.shape[1]
    no, yes = _next_state(state, 0, n_states), _next_state(state, 1, n_states)
    highest = order[position]
    lower = True
    for j in range(position + 1, choice.shape[0]):
        if no == yes:
            break
        of_no, of_yes = choice[j, no], choice[j, yes]
        if of_no != of_yes and order[j] > highest:
            highest = order[j]
            lower = of_no < of_yes
        no, yes = _next_state(no, of_no, n_states), _next_state(yes, of_yes, n_states)
    return lower


@inner
def _complete_states(tables, shifts, order, best, choice):
    """Viterbi completions of every state s before every position j, of ties the lowest code.

    Writes the log-probability to best[j, s] and the value of the first label to choice[j, s].
    """
    n_labels, n_states = choice.shape
    spare = (np.empty(n_states), np.empty(n_states), np.empty((2, 2)))
    log_no, log_yes = np.empty(tables.shape[1]), np.empty(tables.shape[1])
    best[n_labels] = 0.0
    for j in range(n_labels - 1, -1, -1):
        for c in range(tables.shape[1]):
            log_no[c] = _log_probability(1.0 - tables[j, c])
            log_yes[c] = _log_probability(tables[j, c])
        n_ties = _choose_all(log_no, log_yes, shifts[j], best[j + 1], best[j], choice[j], spare)
        for s in range(n_states if n_ties else 0):
            column = find_column(s, shifts[j])
            of_no = log_no[column] + best[j + 1, _next_state(s, 0, n_states)]
            of_yes = log_yes[column] + best[j + 1, _next_state(s, 1, n_states)]
            if abs(of_no - of_yes) <= TIE:
                choice[j, s] = not _no_is_lower(j, s, order, choice)


@kernel
def mode_rows(start, stop, network, mode, values):
    """Per row: the most probable labelset, its log-probability and that of the runner-up.

    The runner-up is the best over positions of: the mode up to it, the other value, and the Viterbi
    completion.
    """
    conditionals, shifts, order, n_states = network
    n_labels = conditionals.shape[1]
    best = np.empty((n_labels + 1, n_states))
    choice = np.empty((n_labels, n_states), dtype=np.int8)
    for i in range(start, stop):
        _complete_states(conditionals[i], shifts, order, best, choice)
        state = 0
        log_top, log_runner_up = 0.0, -np.inf
        for j in range(n_labels):
            value = choice[j, state]
            yes = conditionals[i, j, find_column(state, shifts[j])]
            p_value, p_other = (yes, 1.0 - yes) if value else (1.0 - yes, yes)
            completion = best[j + 1, _next_state(state, 1 - value, n_states)]
            log_runner_up = max(log_runner_up, log_top + _log_probability(p_other) + completion)
            log_top += np.log(p_value)
            mode[i, j] = value
            state = _next_state(state, value, n_states)
        values[i, 0] = log_top
        values[i, 1] = min(log_top, log_runner_up)


@inner
def _write_labelset(search, entry, row):
    """Labelset of a heap entry: parent prefix, deviation, Viterbi completion."""
    _, origins, positions, ranked, _, choice = search
    state = 0
    for j in range(row.size):
        if j < positions[entry]:
            row[j] = ranked[origins[entry], j]
        elif j == positions[entry]:
            row[j] = 1 - ranked[origins[entry], j]
        else:
            row[j] = choice[j, state]
        state = _next_state(state, row[j], choice.shape[1])


@inner
def _comes_first(search, a, b, rows):
    """Whether entry a is more probable than entry b or, on a tie, has the lower code."""
    scores, order = search[0], search[4]
    if abs(scores[a] - scores[b]) > TIE:
        return scores[a] > scores[b]
    _write_labelset(search, a, rows[0])
    _write_labelset(search, b, rows[1])
    highest = -1
    for j in range(order.size):
        if rows[0, j] != rows[1, j] and order[j] > highest:
            highest = order[j]
            first = rows[0, j] < rows[1, j]
    return highest >= 0 and first


@inner
def _sift_up(search, heap, at, rows):
    while at > 0 and _comes_first(search, heap[at], heap[(at - 1) // 2], rows):
        heap[at], heap[(at - 1) // 2] = heap[(at - 1) // 2], heap[at]
        at = (at - 1) // 2


@inner
def _sift_down(search, heap, size, rows):
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _comes_first(search, heap[child + 1], heap[child], rows):
            child += 1
        if not _comes_first(search, heap[child], heap[at], rows):
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


@inner
def _add_deviations(tables, shifts, best, search, entry, row, n_entries):
    """New number of entries, and the log-probability of `row`, the labelset of this entry.

    Appends, for each position after the entry's own, the best labelset that deviates there from
    `row`; deviations of probability 0 are left out.
    """
    scores, _, positions, _, _, choice = search
    state = 0
    prefix = 0.0
    for j in range(row.size):
        yes = tables[j, find_column(state, shifts[j])]
        p_value, p_other = (yes, 1.0 - yes) if row[j] else (1.0 - yes, yes)
        if j > positions[entry] and p_other > 0.0:
            completion = best[j + 1, _next_state(state, 1 - row[j], choice.shape[1])]
            scores[n_entries] = prefix + np.log(p_other) + completion
            positions[n_entries] = j
            n_entries += 1
        prefix += np.log(p_value)
        state = _next_state(state, row[j], choice.shape[1])
    return n_entries, prefix


@kernel
def top_rows(start, stop, network, n_entries, labelsets, logs):
    """Per row: the most probable labelsets and their log-probabilities, -inf where there is none.

    Lawler's partition: the labelsets not yet ranked are split by the ranked one that they follow
    longest and the position at which they deviate; a heap holds the best of each class.
    `n_entries` is its capacity.
    """
    conditionals, shifts, order, n_states = network
    n_labels = conditionals.shape[1]
    best = np.empty((n_labels + 1, n_states))
    choice = np.empty((n_labels, n_states), dtype=np.int8)
    scores = np.empty(n_entries)
    origins, positions = np.empty(n_entries, dtype=np.int64), np.empty(n_entries, dtype=np.int64)
    heap, rows = np.empty(n_entries, dtype=np.int64), np.empty((2, n_labels), dtype=np.int8)
    for i in range(start, stop):
        _complete_states(conditionals[i], shifts, order, best, choice)
        ranked = labelsets[i]
        search = (scores, origins, positions, ranked, order, choice)
        scores[0], positions[0], heap[0] = best[0, 0], -1, 0
        n_used = size = 1
        rank = 0
        while size > 0 and rank < ranked.shape[0]:
            entry = heap[0]
            size -= 1
            heap[0] = heap[size]
            _sift_down(search, heap, size, rows)
            _write_labelset(search, entry, ranked[rank])
            first_new = n_used
            n_used, logs[i, rank] = _add_deviations(
                conditionals[i], shifts, best, search, entry, ranked[rank], n_used
            )
            for new in range(first_new, n_used):
                origins[new] = rank
                heap[size] = new
                _sift_up(search, heap, size, rows)
                size += 1
            rank += 1
        logs[i, rank:] = -np.inf


@kernel
def sample_rows(start, stop, network, uniforms, draws):
    """Per row: labelsets by ancestral sampling; uniforms and draws are in label order."""
    conditionals, shifts, order, n_states = network
    for i in range(start, stop):
        for d in range(draws.shape[1]):
            state = 0
            for j in range(order.size):
                yes = conditionals[i, j, find_column(state, shifts[j])]
                value = 1 if uniforms[i, d, order[j]] < yes else 0  # auxiliary: yes is 0 or 1
                if order[j] >= 0:
                    draws[i, d, order[j]] = value
                state = _next_state(state, value, n_states)


@inner
def _write_entropies(p, entropies):
    for c in range(p.size):
        entropies[c] = 0.0
        if 0.0 < p[c] < 1.0:
            entropies[c] = -p[c] * np.log(p[c]) - (1.0 - p[c]) * np.log(1.0 - p[c])


@fast_inner
def _push_run(first, stop, masses, even, odd, pushed):
    """pushed[r] = masses[2 r] * even + masses[2 r + 1] * odd for a run of r."""
    for r in range(first, stop):
        pushed[r] = masses[2 * r] * even + masses[2 * r + 1] * odd


@fast_inner
def _push_states(masses, by_state, pushed):
    """As `_push_run` for all r, with a probability for each state."""
    for r in range(pushed.size):
        pushed[r] = masses[2 * r] * by_state[2 * r] + masses[2 * r + 1] * by_state[2 * r + 1]


@inner
def _push_value(p, shifts, masses, pushed, by_state):
    """Masses of the half of the states after one value of a label, into `pushed`.

    p is the probability of that value in each column.
    """
    run = _run_length(shifts, pushed.size)
    if run < LONG_RUN:
        for s in range(masses.size):
            by_state[s] = p[find_column(s, shifts)]
        _push_states(masses, by_state, pushed)
        return
    for first in range(0, pushed.size, run):
        even, odd = find_column(2 * first, shifts), find_column(2 * first + 1, shifts)
        _push_run(first, first + run, masses, p[even], p[odd], pushed)


@fast_inner
def _sum(values):
    total = 0.0
    for s in range(values.size):
        total += values[s]
    return total


@fast_inner
def _sum_run(first, stop, masses):
    """Sums of masses over states 2 r and over states 2 r + 1, r from first to stop."""
    even = odd = 0.0
    for r in range(first, stop):
        even += masses[2 * r]
        odd += masses[2 * r + 1]
    return even, odd


@fast_inner
def _mean_over_states(by_column, shifts, masses):
    """Sum over states s of masses[s] * by_column[find_column(s)]."""
    half = masses.size // 2
    run = _run_length(shifts, half)
    total = 0.0
    if run < LONG_RUN:
        for s in range(masses.size):
            total += masses[s] * by_column[find_column(s, shifts)]
        return total
    for first in range(0, half, run):
        even, odd = _sum_run(first, first + run, masses)
        total += even * by_column[find_column(2 * first, shifts)]
        total += odd * by_column[find_column(2 * first + 1, shifts)]
    return total


@fast_inner
def _rescale_masses(masses):
    """Log of the sum of the masses, which are divided by it in place."""
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
def forward_rows(start, stop, network, marginals, values):
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
    """Per row and position a: the sum of |Cov(y_a, y_b)| over all labels b, also b = a.

    From each label on, the masses of the labelsets that have it are pushed over the labels after
    it. Auxiliary positions are left out.
    """
    conditionals, shifts, order, n_states = network
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
            if order[a] >= 0:
                sums[i, a] += mean * (1.0 - mean)
            _complements(conditionals[i, a], no)
            _push_value(no, shifts[a], masses, pushed[:half], by_state)
            _push_value(conditionals[i, a], shifts[a], masses, pushed[half:], by_state)
            masses, pushed = pushed, masses
            if order[a] < 0:
                continue
            with_label[:half] = 0.0
            with_label[half:] = masses[half:]
            for b in range(a + 1, n_labels):
                _complements(conditionals[i, b], no)
                _push_value(no, shifts[b], with_label, spare[:half], by_state)
                _push_value(conditionals[i, b], shifts[b], with_label, spare[half:], by_state)
                with_label, spare = spare, with_label
                if order[b] < 0:
                    continue
                covariance = abs(_sum(with_label[half:]) - mean * marginals[i, b])
                sums[i, a] += covariance
                sums[i, b] += covariance
