"""How each instance agrees with the others in two rankings, in O(n log n)."""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import kernel


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
