"""Draws from chains of logistic regressions, their probabilities, and their control variates.

Layout: everything is by label, not by position. odds[i, m, j] are the odds of label j in chain m
when no earlier label is set; label a, once set, multiplies them by factors[m, a, j], which is 1
unless a comes before j. So after all labels of y are known, one product over its members gives the
conditional odds o_j of *every* label along the path, and log P(y) = sum over members of log o_j
- sum over labels of log(1 + o_j): multiplications only, and one logarithm at the end.

    draw_rows         ancestral sampling, stratified over the chains, with control variates: sums
                      along the path of (y_j - p_j) logit(p_j), whose mean is known to be 0
    log_prob_rows     log P(y) under the mixture, and under the mixture of chains with squared odds:
                      the proposal Q of the importance sampling of sum P(y)**2
    path_sum_rows     true positives of a draw, and control variates of expected metrics: sums of
                      y_j - p_j over two sets of labels
    link_moment_rows  means of p_j along the paths (Rao-Blackwell) with their control variates:
                      y_i - p_i times the weight of label i for j

A draw costs O(|y| L), its probability O(m |y| L). Products that leave the range of a float are
taken apart into logarithms.
"""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import fast_inlined, fast_inner, fast_kernel, inner

LARGE = 1e290  # products are taken apart before they leave what a float holds
MODERATE = 1e140  # two such numbers can be multiplied
SMALL = 1e-280  # a mean below is computed from logs: some of its terms may have underflowed
MIN_VARIANCE = 0.05
"""Labels whose p (1 - p) is smaller, before others are set, are left out of control variates: they
rarely differ from their mean, and cost as much. On CAL500, Enron and Slashdot the variance
stays; with 0.01 the time is up to a quarter longer."""


# Arrays are handed to functions whole, with the places to look at: a row of an array, made for the
# sake of a function, costs as much as the few multiplications with it.


@fast_inlined
def _write_odds(odds, factors, i, m, members, s, n_members, work):
    """work[j] = odds of label j in chain m, for row i, along the path to a labelset.

    The labels that are set are members[s, :n_members].
    """
    n_labels = work.size
    for j in range(n_labels):
        work[j] = odds[i, m, j]
    n_fours = n_members // 4
    for k in range(0, 4 * n_fours, 4):  # four at a time, while the odds are at hand
        a, b = members[s, k], members[s, k + 1]
        c, d = members[s, k + 2], members[s, k + 3]
        for j in range(n_labels):
            work[j] *= (factors[m, a, j] * factors[m, b, j]) * (factors[m, c, j] * factors[m, d, j])
    for k in range(4 * n_fours, n_members):
        a = members[s, k]
        for j in range(n_labels):
            work[j] *= factors[m, a, j]


@fast_inlined
def _product_of_one_plus(odds):
    """Product of 1 + odds."""
    product = 1.0
    for j in range(odds.size):
        product *= 1.0 + odds[j]
    return product


@fast_inlined
def _product_of_one_plus_squares(odds):
    """Product of 1 + odds**2."""
    product = 1.0
    for j in range(odds.size):
        product *= 1.0 + odds[j] * odds[j]
    return product


@inner
def _log_product_of_one_plus(odds):
    """Log of the product of 1 + odds."""
    product = _product_of_one_plus(odds)
    if product < LARGE:
        return np.log(product)
    total = 0.0
    for j in range(odds.size):
        total += np.log1p(odds[j])
    return total


@inner
def _log_product_of_members(work, members, s, n_members):
    """Log of the product of work[j] over the members j."""
    total, product = 0.0, 1.0
    for k in range(n_members):
        odds = work[members[s, k]]
        if not 1.0 / MODERATE < product < MODERATE:
            total += np.log(product)
            product = 1.0
        if 1.0 / MODERATE < odds < MODERATE:
            product *= odds
        else:
            total += np.log(odds)
    return total + np.log(product)


@inner
def _log_mean_exp(logs):
    largest = -np.inf
    for log in logs:
        largest = max(largest, log)
    total = 0.0
    for log in logs:
        total += np.exp(log - largest)
    return largest + np.log(total / logs.size)


@inner
def _list_members(labelsets, i, s, members, place):
    """Number of labels set in labelsets[i, s]; their indices are written to members[place]."""
    n_members = 0
    for label in range(labelsets.shape[2]):
        if labelsets[i, s, label]:
            members[place, n_members] = label
            n_members += 1
    return n_members


@fast_inner
def _sum_expected(odds, own, mean):
    """Sums over labels of p * own and p * mean, the logits in the chain and their mean."""
    of_own = of_mean = 0.0
    for j in range(odds.size):
        p = odds[j] / (1.0 + odds[j])
        of_own += p * own[j]
        of_mean += p * mean[j]
    return of_own, of_mean


@fast_kernel
def draw_rows(start, stop, links, mean_logits, owners, uniforms, draws, excess):
    """Per row: labelsets drawn label by label, with control variates.

    Parameters
    ----------
    links
        (n, m, L) odds and logits of each label when no earlier one is set; (m, L, L) what label i,
        set, multiplies the odds of label j with, and adds to its logit; (m, L) the label at each
        position.
    mean_logits
        (n, L) of each label, on average over the chains.
    owners
        (n, m, size) the chain that each draw comes from.
    uniforms
        (n, m, size, L) numbers in [0, 1), one for each position.
    draws
        (n, m, size, L), written.
    excess
        (n, m, size, 2) written: control variates of mean 0. The sum along the path of
        (y - p) logit(p), the excess of the draw's log-probability in its own chain over its mean
        link by link; and the sum of (y - p) times the label's mean logit over the chains.
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
                own = mean = 0.0
                for j in range(n_labels):
                    label = orders[m, j]
                    one = uniforms[i, k, s, j] * (1.0 + work[label]) < work[label]
                    draws[i, k, s, label] = one
                    if one:
                        own += logit[label]
                        mean += mean_logits[i, label]
                        for later in range(n_labels):
                            work[later] *= factors[m, label, later]
                            logit[later] += weights[m, label, later]
                # A label that is set leaves the odds of earlier ones as they are: the odds of each
                # label are still those that it was drawn with.
                of_own, of_mean = _sum_expected(work, logit, mean_logits[i])
                excess[i, k, s, 0], excess[i, k, s, 1] = own - of_own, mean - of_mean


@inner
def _write_by_logs(odds, factors, shares, i, members, s, n_members, work, log_prob):
    """log_prob[i, s] by log-mean-exp, where products of odds overflow or underflow."""
    logs, squared = np.empty(shares.shape[1]), np.empty(shares.shape[1])
    for m in range(shares.shape[1]):
        _write_odds(odds, factors, i, m, members, s, n_members, work)
        of_members = _log_product_of_members(work, members, s, n_members)
        log_share = np.log(shares[i, m])
        logs[m] = of_members - _log_product_of_one_plus(work) + log_share
        for j in range(work.size):
            work[j] *= work[j]
        squared[m] = 2.0 * of_members - _log_product_of_one_plus(work) + log_share
    log_prob[i, s, 0] = _log_mean_exp(logs)
    if log_prob.shape[2] == 2:
        log_prob[i, s, 1] = _log_mean_exp(squared)


@fast_kernel
def log_prob_rows(start, stop, odds, factors, shares, labelsets, log_prob):
    """Per row: the log-probabilities of given labelsets under the mean of share * chain.

    Products first, with no logarithm in the loop over chains: a product that is too large makes the
    sum NaN, and a sum below `SMALL` may have lost terms. These rare entries are computed again
    by log-mean-exp.

    Parameters
    ----------
    odds, factors
        (n, m, L) and (m, L, L) as `draw_rows` takes them.
    shares
        (n, m) the weights times m.
    labelsets
        (n, size, L)
    log_prob
        (n, size, q) written: of the mean of the chains; and, where q is 2, of the mean of the
        chains with squared odds.
    """
    n_chains, n_labels = odds.shape[1], odds.shape[2]
    size, with_squares = labelsets.shape[1], log_prob.shape[2] == 2
    members = np.empty((size, n_labels), dtype=np.int64)
    n_members = np.empty(size, dtype=np.int64)
    work, total, squared = np.empty(n_labels), np.empty(size), np.empty(size)
    for i in range(start, stop):
        for s in range(size):
            n_members[s] = _list_members(labelsets, i, s, members, s)
            total[s] = squared[s] = 0.0
        for m in range(n_chains):  # one chain's factors stay in the cache
            share = shares[i, m]
            for s in range(size):
                _write_odds(odds, factors, i, m, members, s, n_members[s], work)
                set_odds = 1.0
                for k in range(n_members[s]):
                    set_odds *= work[members[s, k]]
                all_odds = _product_of_one_plus(work)
                # NaN where products are too large, which makes the sum NaN.
                total[s] += share * (set_odds / all_odds) if all_odds < LARGE else np.nan
                if with_squares:
                    all_odds = _product_of_one_plus_squares(work)
                    p = set_odds * (set_odds / all_odds) if all_odds < LARGE else np.nan
                    squared[s] += share * p
        for s in range(size):
            if total[s] > SMALL and (squared[s] > SMALL or not with_squares):
                log_prob[i, s, 0] = np.log(total[s] / n_chains)
                if with_squares:
                    log_prob[i, s, 1] = np.log(squared[s] / n_chains)
            else:
                _write_by_logs(odds, factors, shares, i, members, s, n_members[s], work, log_prob)


@fast_kernel
def path_sum_rows(start, stop, odds, factors, owners, draws, predicted, sums):
    """Per row: true positives and misses of each draw, and sums of y - p as control variates.

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
        (n, m, size, 4) written: sums of y_j - P(y_j = 1 | labels before) in the draw's own chain,
        whose means are 0, over the labels that are not predicted, and over those that are; false
        negatives and true positives of the prediction if the draw is the truth.
    """
    n_labels = odds.shape[2]
    members, work = np.empty((1, n_labels), dtype=np.int64), np.empty(n_labels)
    for i in range(start, stop):
        for k in range(draws.shape[1]):
            for s in range(draws.shape[2]):
                m = owners[i, k, s]
                n_members = _list_members(draws[i], k, s, members, 0)
                _write_odds(odds, factors, i, m, members, 0, n_members, work)
                for c in range(4):
                    sums[i, k, s, c] = 0.0
                for j in range(n_labels):
                    residual = draws[i, k, s, j] - work[j] / (1.0 + work[j])
                    sums[i, k, s, predicted[i, j]] += residual
                for member in members[0, :n_members]:
                    sums[i, k, s, 2 + predicted[i, member]] += 1.0


@fast_kernel
def link_moment_rows(start, stop, odds, factors, terms, owners, draws, moments):
    """Per row: sums over draws of p_j, of a control variate c_j, and of their products.

    p_j is P(y_j = 1 | labels before) along the path of the draw, in its own chain. c_j is the sum
    of terms[i, j] * (y_i - p_i), whose mean is 0, over the labels i of variance >= `MIN_VARIANCE`.

    Parameters
    ----------
    odds, factors, owners, draws
        As for `path_sum_rows`.
    terms
        (m, L, L) terms[m, i, j] is added to the logit of label j if label i is set.
    moments
        (n, m, 2, 5, L) written: the sums of p, c, p**2, p c, c**2 over the even and over the odd
        draws of a stratum.
    """
    n_labels = odds.shape[2]
    members, work = np.empty((1, n_labels), dtype=np.int64), np.empty(n_labels)
    control = np.empty(n_labels)
    for i in range(start, stop):
        for k in range(draws.shape[1]):
            moments[i, k] = 0.0
            for s in range(draws.shape[2]):
                m, half = owners[i, k, s], s & 1
                n_members = _list_members(draws[i], k, s, members, 0)
                _write_odds(odds, factors, i, m, members, 0, n_members, work)
                for j in range(n_labels):
                    work[j] /= 1.0 + work[j]
                    control[j] = 0.0
                for earlier in range(n_labels):
                    if odds[i, m, earlier] < MIN_VARIANCE * (1.0 + odds[i, m, earlier]) ** 2:
                        continue
                    residual = draws[i, k, s, earlier] - work[earlier]
                    for j in range(n_labels):
                        control[j] += residual * terms[m, earlier, j]
                for j in range(n_labels):
                    p, c = work[j], control[j]
                    moments[i, k, half, 0, j] += p
                    moments[i, k, half, 1, j] += c
                    moments[i, k, half, 2, j] += p * p
                    moments[i, k, half, 3, j] += p * c
                    moments[i, k, half, 4, j] += c * c
