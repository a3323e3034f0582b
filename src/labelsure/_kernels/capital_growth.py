"""What a capital grows to that is staked on outcomes, one after the other."""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import kernel


@kernel
def largest_log_capital(outcomes, target, cap, log_goal, stakes, step):
    """Return the logarithm of the largest capital on the way, from 1 at the start.

    `stakes[k]` is the stake, in standard deviations of what is to come, of a capital that is still
    a factor exp(k * step) away from the goal. At most `cap` of the capital can be lost at once.
    """
    n = outcomes.size
    log_capital = largest = 0.0
    # Mean and variance of the outcomes so far, begun as by one outcome of a fair coin.
    total, squares, count = 0.5, 0.25, 1.0
    for i in range(n):
        distance = log_goal - log_capital
        if distance <= 0.0:
            break
        place = min(distance / step, stakes.size - 1.001)
        k = int(place)
        stake = stakes[k] + (place - k) * (stakes[k + 1] - stakes[k])
        stake = min(stake / np.sqrt(max((n - i) * squares / count, 1e-300)), cap / target)
        log_capital += np.log1p(stake * (outcomes[i] - target))
        largest = max(largest, log_capital)
        total += outcomes[i]
        count += 1.0
        squares += (outcomes[i] - total / count) ** 2
    return largest
