"""Sequential test statistics and rank statistics, by loops over outcomes.

Kernels:

    largest_log_capital  betting test of a mean (Waudby-Smith and Ramdas, 2024): the largest log
                         capital of bets that outcomes in [0, 1] exceed the target. A capital of
                         1/alpha rejects "mean <= target" at level alpha. O(n), also for draws
                         without replacement
    count_rejected       number of targets of a grid that this test rejects in fixed sequence
    net_concordance      concordant minus discordant pairs of each instance, for Kendall's tau and
                         its jackknife, with a Fenwick tree: O(n log n)
"""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import kernel


@kernel
def largest_log_capital(outcomes, n_all, target, cap, log_goal, stakes, step):
    """Logarithm of the largest capital along the outcomes; the initial capital is 1.

    `n_all` is 0 for independent draws, and else the size of the population that outcomes were
    drawn from without replacement. If its mean is the target, the mean of the remaining population
    before draw i (from 0) is (n_all * target - sum so far) / (n_all - i): the null mean of the bet.

    `stakes[k]` is the stake, in standard deviations of the sum of the remaining draws, of a capital
    that is still a factor exp(k * step) away from the goal. At most the share `cap` of the capital
    can be lost at once.
    """
    n = outcomes.size
    log_capital = largest = sum_so_far = 0.0
    # For mean and variance of the outcomes so far, with one outcome of 1/2 and variance 1/4 before.
    total, squares, count = 0.5, 0.25, 1.0
    for i in range(n):
        distance = log_goal - log_capital
        if distance <= 0.0:
            break
        null_mean, n_left = target, float(n - i)
        if n_all > 0:
            null_mean = (n_all * target - sum_so_far) / (n_all - i)
            # For Y_i = (sum - i * target) / (n_all - i), a martingale under the null, in units
            # of one draw: later draws move it more.
            n_left *= (n_all - i) / (n_all - n + 1)
        if null_mean <= 0.0:
            return np.inf  # the sum so far exceeds that of a population of this mean
        if null_mean < 1.0:  # else no outcome can win
            place = min(distance / step, stakes.size - 1.001)
            k = int(place)
            stake = stakes[k] + (place - k) * (stakes[k + 1] - stakes[k])
            stake = min(stake / np.sqrt(max(n_left * squares / count, 1e-300)), cap / null_mean)
            log_capital += np.log1p(stake * (outcomes[i] - null_mean))
            largest = max(largest, log_capital)
        sum_so_far += outcomes[i]
        total += outcomes[i]
        count += 1.0
        squares += (outcomes[i] - total / count) ** 2
    return largest


@kernel
def count_rejected(outcomes, n_all, n_targets, log_needed, cap, log_goal, stakes, step):
    """Number of targets k / n_targets, k = 1, 2, ..., rejected before the first that is not."""
    for k in range(1, n_targets):
        capital = largest_log_capital(outcomes, n_all, k / n_targets, cap, log_goal, stakes, step)
        if capital < log_needed:
            return k - 1
    return n_targets - 1


@kernel
def net_concordance(order, first, second, net):
    """Add to net[i] the concordant minus discordant pairs of i with instances of lower `first`.

    `order` sorts the instances by `first`; ranks are dense, from 0. Pairs with instances of higher
    rank are the same sum with both rankings reversed.
    """
    n = order.size
    size = 1
    for rank in second:
        size = max(size, rank + 1)
    tree = np.zeros(size + 1, dtype=np.int64)  # Fenwick tree of counts by rank `second`
    start = 0
    while start < n:
        stop = start
        while stop < n and first[order[stop]] == first[order[start]]:
            stop += 1
        for k in range(start, stop):
            rank = second[order[k]]
            below = 0
            at = rank
            while at > 0:
                below += tree[at]
                at -= at & -at
            up_to = 0
            at = rank + 1
            while at > 0:
                up_to += tree[at]
                at -= at & -at
            net[order[k]] += below - (start - up_to)
        for k in range(start, stop):
            at = second[order[k]] + 1
            while at <= size:
                tree[at] += 1
                at += at & -at
        start = stop
