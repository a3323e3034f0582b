"""Kernels for draws from chains of logistic regressions, and for what is known along their paths.

Everything is by label: the odds of each label, in each chain, and what a label that is set
multiplies the odds of the later ones with. Section numbers are those of `docs/algorithms.md`.
"""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import fast_inner, inner, kernel

LARGE = 1e290  # products are taken apart before they leave what a float holds
MODERATE = 1e140  # two such numbers can be multiplied


@fast_inner
def _multiply(values, factors):
    for j in range(values.size):
        values[j] *= factors[j]


@fast_inner
def _multiply_by_four(values, first, second, third, fourth):
    """Multiply by four rows of factors while the values are at hand."""
    for j in range(values.size):
        values[j] *= (first[j] * second[j]) * (third[j] * fourth[j])


@fast_inner
def _add(values, terms):
    for j in range(values.size):
        values[j] += terms[j]


@fast_inner
def _log_product(values):
    """Return the log of the product of 1 + value."""
    total = 0.0
    for first in range(0, values.size, 16):
        block = values[first : first + 16]
        product = 1.0
        for j in range(block.size):
            product *= 1.0 + block[j]
        if product > LARGE:  # seldom: odds so large that their product overflows
            for j in range(block.size):
                total += np.log1p(block[j])
        else:
            total += np.log(product)
    return total


@fast_inner
def _square(values, squares):
    for j in range(values.size):
        squares[j] = values[j] * values[j]


@inner
def _log_of_members(work, members):
    """Return the log of the product of some labels' odds."""
    total, product = 0.0, 1.0
    for label in members:
        if not 1.0 / MODERATE < product < MODERATE:
            total += np.log(product)
            product = 1.0
        if 1.0 / MODERATE < work[label] < MODERATE:
            product *= work[label]
        else:
            total += np.log(work[label])
    return total + np.log(product)


@inner
def _log_mean_exp(logs):
    """Return the log of the mean of the numbers whose logs are given."""
    largest = -np.inf
    for log in logs:
        largest = max(largest, log)
    total = 0.0
    for log in logs:
        total += np.exp(log - largest)
    return largest + np.log(total / logs.size)


@inner
def _list_members(labelset, members):
    """Write the labels that are set; return how many."""
    n_members = 0
    for label in range(labelset.size):
        if labelset[label]:
            members[n_members] = label
            n_members += 1
    return n_members


@inner
def _set_all(odds, factors, members, work):
    """Write the odds of each label along the path to a labelset with these members."""
    for j in range(odds.size):
        work[j] = odds[j]
    n_fours = members.size // 4
    for k in range(n_fours):
        first, second = members[4 * k], members[4 * k + 1]
        third, fourth = members[4 * k + 2], members[4 * k + 3]
        _multiply_by_four(work, factors[first], factors[second], factors[third], factors[fourth])
    for member in members[4 * n_fours :]:
        _multiply(work, factors[member])


@kernel
def draw_rows(start, stop, links, owners, uniforms, draws, log_own, excess):
    """Per row: labelsets drawn label by label, and what their own chain says. Section 7.

    Parameters
    ----------
    links
        (n, m, L) odds and logits of each label when no earlier one is set; (m, L, L) what label i,
        set, multiplies the odds of label j with, and adds to its logit; (m, L) the label at each
        position.
    owners
        (n, m, size) the chain that each draw comes from.
    uniforms
        (n, m, size, L) numbers in [0, 1), one for each position.
    draws
        (n, m, size, L), written.
    log_own
        (n, m, size) written: the log-probability of the draw in its own chain.
    excess
        (n, m, size) written: by how much `log_own` is above what it is on average, link by link:
        the sum along the path of (y - p) logit(p), whose mean is 0.
    """
    odds, logits, factors, weights, orders = links
    n_strata, n_labels = owners.shape[1], orders.shape[1]
    work, logit = np.empty(n_labels), np.empty(n_labels)
    for i in range(start, stop):
        for k in range(n_strata):
            for s in range(draws.shape[2]):
                m = owners[i, k, s]
                for j in range(n_labels):
                    work[j] = odds[i, m, j]
                    logit[j] = logits[i, m, j]
                total = above = 0.0
                for j in range(n_labels):
                    label = orders[m, j]
                    p = work[label] / (1.0 + work[label])
                    one = uniforms[i, k, s, j] < p
                    draws[i, k, s, label] = one
                    if one:
                        total += logit[label]
                        above += (1.0 - p) * logit[label]
                        _multiply(work, factors[m, label])
                        _add(logit, weights[m, label])
                    else:
                        above -= p * logit[label]
                log_own[i, k, s] = total - _log_product(work)
                excess[i, k, s] = above


@kernel
def log_prob_rows(start, stop, odds, factors, log_shares, labelsets, log_prob):
    """Per row: the log-probabilities of given labelsets under the mean of share * chain.

    Parameters
    ----------
    odds, factors
        (n, m, L) and (m, L, L) as `draw_rows` takes them.
    log_shares
        (n, m) the logs of the weights times m.
    labelsets
        (n, size, L)
    log_prob
        (n, size, q) written: of the mean of the chains; and, where q is 2, of the mean of the
        chains with squared odds.
    """
    n_chains, n_labels = odds.shape[1], odds.shape[2]
    size, with_squares = labelsets.shape[1], log_prob.shape[2] == 2
    all_members = np.empty((size, n_labels), dtype=np.int64)
    n_members = np.empty(size, dtype=np.int64)
    work, squares = np.empty(n_labels), np.empty(n_labels)
    by_chain = np.empty((log_prob.shape[2], size, n_chains))
    for i in range(start, stop):
        for s in range(size):
            n_members[s] = _list_members(labelsets[i, s], all_members[s])
        for m in range(n_chains):  # one chain's factors stay in the cache
            for s in range(size):
                members = all_members[s, : n_members[s]]
                _set_all(odds[i, m], factors[m], members, work)
                of_members = _log_of_members(work, members)
                by_chain[0, s, m] = of_members - _log_product(work) + log_shares[i, m]
                if with_squares:
                    _square(work, squares)
                    log_squared = 2.0 * of_members - _log_product(squares)
                    by_chain[1, s, m] = log_squared + log_shares[i, m]
        for s in range(size):
            for q in range(log_prob.shape[2]):
                log_prob[i, s, q] = _log_mean_exp(by_chain[q, s])


@kernel
def path_sum_rows(start, stop, odds, factors, owners, draws, predicted, sums):
    """Per row: sums along the path of each draw of y_j - P(y_j = 1 | labels before), in its chain.

    Parameters
    ----------
    odds, factors
        As for `log_prob_rows`.
    owners
        As for `draw_rows`.
    draws
        (n, m, size, L)
    predicted
        (n, L) a labelset for each row.
    sums
        (n, m, size, 2) written: over the labels that are not predicted, and over those that are.
        Their means are 0.
    """
    n_labels = odds.shape[2]
    members, work = np.empty(n_labels, dtype=np.int64), np.empty(n_labels)
    for i in range(start, stop):
        for k in range(draws.shape[1]):
            for s in range(draws.shape[2]):
                m = owners[i, k, s]
                n_members = _list_members(draws[i, k, s], members)
                _set_all(odds[i, m], factors[m], members[:n_members], work)
                sums[i, k, s, 0] = sums[i, k, s, 1] = 0.0
                for j in range(n_labels):
                    off = draws[i, k, s, j] - work[j] / (1.0 + work[j])
                    sums[i, k, s, predicted[i, j]] += off


@kernel
def path_mean_rows(start, stop, odds, factors, owners, draws, means, squares):
    """Per row and stratum: the mean of P(y_j = 1 | labels before) along the paths of its draws.

    Parameters
    ----------
    odds, factors, owners, draws
        As for `path_sum_rows`.
    means
        (n, m, L), written.
    squares
        (n, m, L) written: the sums of squared differences from these means.
    """
    n_labels, size = odds.shape[2], draws.shape[2]
    members, work = np.empty(n_labels, dtype=np.int64), np.empty(n_labels)
    for i in range(start, stop):
        for k in range(draws.shape[1]):
            mean, square = means[i, k], squares[i, k]
            for j in range(n_labels):
                mean[j] = square[j] = 0.0
            for s in range(size):
                m = owners[i, k, s]
                n_members = _list_members(draws[i, k, s], members)
                _set_all(odds[i, m], factors[m], members[:n_members], work)
                for j in range(n_labels):
                    p = work[j] / (1.0 + work[j])
                    off = p - mean[j]
                    mean[j] += off / (s + 1)
                    square[j] += off * (p - mean[j])
