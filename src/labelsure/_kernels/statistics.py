"""Test statistics that go through outcomes one by one.

largest_log_capital  the betting test of a mean (Waudby-Smith and Ramdas, 2024): the largest
capital of a gambler who bets that outcomes in [0, 1] exceed the target. A
capital of 1/alpha rejects "the mean is at most the target" at level alpha.
O(n), also for draws without replacement
count_shown          up to which target of a grid this test rejects
net_concordance      concordant minus discordant pairs of each instance, for Kendall's tau and
its jackknife, with a Fenwick tree: O(n log n)
"""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import kernel


@kernel
def largest_log_capital(outcomes, n_all, target, cap, log_goal, stakes, step):
    """Return the logarithm of the largest capital on the way, from 1 at the start.

    `n_all` is 0 for independent draws, and else the size of the population that outcomes were
    drawn from without replacement. If its mean is the target, the mean of what is left before
    draw i (from 0) is (n_all * target - sum so far) / (n_all - i): that is what is bet against.

    `stakes[k]` is the stake, in standard deviations of what is to come, of a capital that is still
    a factor exp(k * step) away from the goal. At most `cap` of the capital can be lost at once.
    """
    n = outcomes.size
    log_capital = largest = seen = 0.0
    # Mean and variance of the outcomes so far, begun as by one outcome of a fair coin.
    total, squares, count = 0.5, 0.25, 1.0
    for i in range(n):
        distance = log_goal - log_capital
        if distance <= 0.0:
            break
        rest, n_left = target, float(n - i)
        if n_all > 0:
            rest = (n_all * target - seen) / (n_all - i)
            # Of Y_i = (sum - i * target) / (n_all - i), a martingale at the target, in units of
            # one draw: later draws move it more.
            n_left *= (n_all - i) / (n_all - n + 1)
        if rest <= 0.0:
            return np.inf  # the sum so far is more than a population of this mean has
        if rest < 1.0:  # else no outcome can win
            place = min(distance / step, stakes.size - 1.001)
            k = int(place)
            stake = stakes[k] + (place - k) * (stakes[k + 1] - stakes[k])
            stake = min(stake / np.sqrt(max(n_left * squares / count, 1e-300)), cap / rest)
            log_capital += np.log1p(stake * (outcomes[i] - rest))
            largest = max(largest, log_capital)
        seen += outcomes[i]
        total += outcomes[i]
        count += 1.0
        squares += (outcomes[i] - total / count) ** 2
    return largest


@kernel
def count_shown(outcomes, n_all, n_targets, log_needed, cap, log_goal, stakes, step):
    """Return up to how many of the targets k / n_targets, k = 1, 2, ..., all are shown."""
    for k in range(1, n_targets):
        capital = largest_log_capital(outcomes, n_all, k / n_targets, cap, log_goal, stakes, step)
        if capital < log_needed:
            return k - 1
    return n_targets - 1


@kernel
def net_concordance(order, first, second, net):
    """Add to `net` each instance's concordant minus discordant pairs with those ranked lower.

    `order` sorts the instances by `first`; ranks are dense, from 0. The pairs with those ranked
    higher are the same sum with both rankings turned round.
    """
    n = order.size
    size = 1
    for rank in second:
        size = max(size, rank + 1)
    tree = np.zeros(size + 1, dtype=np.int64)  # Fenwick: how many seen so far have each rank
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
