"""Sweeps over dense joints: one row of 2**L probabilities for each instance.

Layout: column c is the labelset whose bit j is label j, so labels 0 and 2 are column 0b101.

    marginal_rows       all L marginals by folding away the highest bit, 2**L additions
    top_rows            the k most probable columns in a heap of k: 2**L comparisons, hardly more
    overlap_rows        distribution of (true positives, false negatives) of one labelset: blocks of
                        2**8 columns are added up, then folded label by label; 2**L additions
    size_rows           P(y_j = 1, |y| = s) for all j and s, 2 * 2**L additions
    sample_rows         inverse transform sampling: a running sum, a binary search for each draw
    best_jaccard_rows   expected Jaccard of *every* labelset by butterflies at Gauss-Legendre nodes,
                        O(L**2 2**L) instead of O(4**L); exact but for rounding
    best_by_pairs_rows  the optimum of any metric from all 4**L pairs
"""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import fast_inner, fast_kernel, inner, kernel
from labelsure._runtime.limits import TIE

LOW_LABELS = 8  # labels whose butterflies are done inside one block of 2**8 entries
BLOCK = 1 << LOW_LABELS
MIN_GAP = 5e-5
"""Values in single precision that differ by more are in the right order: all terms of a value
are positive, so it is off by at most 2**-24 of their sum, which is at most 2, for each of some 60
operations in a row, 7e-6."""


@fast_kernel
def check_rows(start, stop, P, totals, n_bad):
    """Per row: the sum, and the number of entries that are negative or NaN."""
    for i in range(start, stop):
        total = 0.0
        bad = 0
        for c in range(P.shape[1]):
            value = P[i, c]
            total += value
            bad += not (value >= 0.0)
        totals[i] = total
        n_bad[i] = bad


@kernel
def marginal_rows(start, stop, P, marginals):
    """Per row: P(y_j = 1), summing out the highest label again and again."""
    n_labels = marginals.shape[1]
    folded = np.empty(max(1, P.shape[1] // 2))
    for i in range(start, stop):
        half = P.shape[1] // 2
        upper = 0.0
        for c in range(half):
            folded[c] = float(P[i, c]) + float(P[i, c + half])
            upper += float(P[i, c + half])
        marginals[i, n_labels - 1] = upper
        for j in range(n_labels - 2, -1, -1):
            half //= 2
            upper = 0.0
            for c in range(half):
                upper += folded[c + half]
                folded[c] += folded[c + half]
            marginals[i, j] = upper


@inner
def _is_less(p, first, second):
    """Whether the first code ranks below the second: less probable, or within `TIE` and higher."""
    if abs(p[first] - p[second]) <= TIE * max(p[first], p[second]):
        return first > second
    return p[first] < p[second]


@inner
def _sift_down(p, heap, place):
    """Sift down in a min-heap of codes, ordered by `_is_less`."""
    while 2 * place + 1 < heap.size:
        child = 2 * place + 1
        if child + 1 < heap.size and _is_less(p, heap[child + 1], heap[child]):
            child += 1
        if not _is_less(p, heap[child], heap[place]):
            return
        heap[place], heap[child] = heap[child], heap[place]
        place = child


@kernel
def top_rows(start, stop, P, codes):
    """Per row: the codes of the most probable labelsets in order, of equal ones the lowest first.

    A min-heap of k codes: most codes are compared with its root alone. Heapsort orders it at the
    end.
    """
    k = codes.shape[1]
    for i in range(start, stop):
        p, heap = P[i], codes[i]
        for code in range(k):
            heap[code] = code
        for place in range(k // 2 - 1, -1, -1):
            _sift_down(p, heap, place)
        for code in range(k, p.size):
            if p[code] > p[heap[0]] and _is_less(p, heap[0], code):
                heap[0] = code
                _sift_down(p, heap, 0)
        for last in range(k - 1, 0, -1):
            heap[0], heap[last] = heap[last], heap[0]
            _sift_down(p, heap[:last], 0)


@inner
def _count_labels(code):
    count = 0
    while code:
        code &= code - 1
        count += 1
    return count


@kernel
def overlap_rows(start, stop, P, predicted, table):
    """Per row: table[a, b] = P(tp = a, fn = b) of one predicted labelset.

    Blocks of low labels are first added up by the (a, b) of their high labels. Then low labels are
    summed out, the highest first: where it is set, a grows by one if it is predicted, else b.
    """
    n_labels = table.shape[1] - 1
    low = min(n_labels, LOW_LABELS)
    block = 1 << low
    sums = np.empty((n_labels + 1, n_labels + 1, block))
    for i in range(start, stop):
        high_inside = predicted[i] >> low
        max_tp = _count_labels(high_inside)  # largest a so far
        max_fn = n_labels - low - max_tp  # largest b so far
        sums[: max_tp + 1, : max_fn + 1] = 0.0
        for high in range(P.shape[1] >> low):
            row = P[i, high * block : (high + 1) * block]
            sum_ = sums[_count_labels(high & high_inside), _count_labels(high & ~high_inside)]
            for j in range(block):
                sum_[j] += row[j]
        half = block
        for label in range(low - 1, -1, -1):
            half //= 2
            if predicted[i] >> label & 1:
                max_tp += 1
                for b in range(max_fn + 1):
                    sums[max_tp, b, :half] = 0.0
                    for a in range(max_tp, 0, -1):
                        for j in range(half):
                            sums[a, b, j] += sums[a - 1, b, half + j]
            else:
                max_fn += 1
                for a in range(max_tp + 1):
                    sums[a, max_fn, :half] = 0.0
                    for b in range(max_fn, 0, -1):
                        for j in range(half):
                            sums[a, b, j] += sums[a, b - 1, half + j]
        table[i] = 0.0
        for a in range(max_tp + 1):
            for b in range(max_fn + 1):
                table[i, a, b] = sums[a, b, 0]


@kernel
def size_rows(start, stop, P, by_size):
    """Per row: by_size[j, s - 1] = P(y_j = 1, |y| = s).

    Codes are cut into low and high labels. Where the label is low, only the number of high ones
    matters, and the other way round: each probability is added twice, not once for each label.
    """
    n_labels = by_size.shape[1]
    low = n_labels // 2
    block, n_blocks = 1 << low, P.shape[1] >> low
    sizes = np.array([_count_labels(code) for code in range(n_blocks)])  # block <= n_blocks
    by_high, by_low = np.empty((n_labels - low + 1, block)), np.empty(low + 1)
    for i in range(start, stop):
        by_size[i] = 0.0
        by_high[:] = 0.0
        for high in range(n_blocks):
            row, sum_ = P[i, high * block : (high + 1) * block], by_high[sizes[high]]
            by_low[:] = 0.0
            for code in range(block):
                sum_[code] += row[code]
                by_low[sizes[code]] += row[code]
            for label in range(low, n_labels):
                if high >> (label - low) & 1:
                    for size in range(low + 1):
                        by_size[i, label, sizes[high] + size - 1] += by_low[size]
        for code in range(block):
            for label in range(low):
                if code >> label & 1:
                    for size in range(n_labels - low + 1):
                        by_size[i, label, sizes[code] + size - 1] += by_high[size, code]


@kernel
def sample_rows(start, stop, P, uniforms, codes):
    """Per row: codes drawn by inverse transform, the first whose running sum exceeds u * total."""
    running = np.empty(P.shape[1])
    for i in range(start, stop):
        total = 0.0
        for c in range(P.shape[1]):
            total += P[i, c]
            running[c] = total
        for s in range(uniforms.shape[1]):
            codes[i, s] = np.searchsorted(running, uniforms[i, s] * total, side="right")


@fast_inner
def _mix_two_labels(a, b, c, d, t):
    """Apply (x0, x1) -> (x0 + t x1, x0 + x1) for two labels: a, b, c, d hold 00, 10, 01, 11."""
    for j in range(a.size):
        a0, b0 = a[j] + t * b[j], a[j] + b[j]
        c0, d0 = c[j] + t * d[j], c[j] + d[j]
        a[j] = a0 + t * c0
        b[j] = b0 + t * d0
        c[j] = a0 + c0
        d[j] = b0 + d0


@fast_inner
def _mix_and_rotate(source, t, target):
    """Butterflies of the two lowest labels of a block, written with codes rotated by two bits.

    These two labels become the highest of the target, so that all pairs of labels take their turn
    at the same strides, and four rotations restore the order. Strides are constants: the compiler
    knows that entries do not overlap.
    """
    for j in range(BLOCK // 4):
        a, b, c, d = source[4 * j], source[4 * j + 1], source[4 * j + 2], source[4 * j + 3]
        a, b = a + t * b, a + b
        c, d = c + t * d, c + d
        target[j] = a + t * c
        target[BLOCK // 4 + j] = b + t * d
        target[BLOCK // 2 + j] = a + c
        target[3 * BLOCK // 4 + j] = b + d


@fast_inner
def _mix_one_label(a, b, t):
    """Apply (x0, x1) -> (x0 + t x1, x0 + x1) for one label: a holds the 0s, b the 1s."""
    for j in range(a.size):
        a[j], b[j] = a[j] + t * b[j], a[j] + b[j]


@fast_inner
def _transform_block(x, t, rotated):
    """Butterflies of all labels of a block, or of a joint that is smaller than a block."""
    if x.size < BLOCK:
        _transform_labels(x, 1, t)
        return
    for _ in range(LOW_LABELS // 4):
        _mix_and_rotate(x, t, rotated)
        _mix_and_rotate(rotated, t, x)


@fast_inner
def _transform_labels(x, stride, t):
    """Butterflies of all labels j with 2**j >= stride."""
    while stride * 2 < x.size:
        for first in range(0, x.size, 4 * stride):
            second, third, fourth = first + stride, first + 2 * stride, first + 3 * stride
            _mix_two_labels(
                x[first:second], x[second:third], x[third:fourth], x[fourth : fourth + stride], t
            )
        stride *= 4
    if stride < x.size:
        _mix_one_label(x[:stride], x[stride:], t)


@fast_inner
def _expect_every_jaccard(empty, nodes, weights, work):
    """Write the expected Jaccard of *every* prediction into work[3]; work[0] holds P.

    For a prediction p, tp = |y| + |p| - u with u = |y or p|, so E[tp / u] = E[(|y| + |p|) / u] - 1,
    and 1/u is the integral over t in [0, 1] of t**(u - 1). Since u = |p| + |y - p|,

        E[(|y| + |p|) t**(u - 1)] = t**(|p| - 1) (A(p) + |p| B(p))
        A(p) = sum over y of |y| P(y) t**|y - p|,    B(p) = sum over y of P(y) t**|y - p|

    at a node t. For all p at once, A and B are one butterfly (x0, x1) -> (x0 + t x1, x0 + x1) for
    each label. u is at most L: L / 2 nodes integrate exactly.
    """
    p, plain, sized, values = work[0], work[1], work[2], work[3]
    size, number = p.size, p.dtype.type
    block = min(size, BLOCK)
    rotated, sizes, powers = (
        np.empty_like(p[:block]),
        np.empty_like(p[:block]),
        np.empty_like(p[:block]),
    )
    sizes[0], powers[0] = number(0.0), number(1.0)
    for j in range(1, block):
        sizes[j] = sizes[j & (j - 1)] + number(1.0)
    values[:] = number(-1.0)
    for q in range(nodes.size):
        t = nodes[q]
        for j in range(1, block):
            powers[j] = powers[j & (j - 1)] * t
        for first in range(0, size, block):
            high_size = number(_count_labels(first))
            source = p[first : first + block]
            low_plain, low_sized = plain[first : first + block], sized[first : first + block]
            for j in range(block):
                low_plain[j] = source[j]
                low_sized[j] = source[j] * (high_size + sizes[j])
            _transform_block(low_plain, t, rotated)
            _transform_block(low_sized, t, rotated)
        _transform_labels(plain, block, t)
        _transform_labels(sized, block, t)
        for first in range(0, size, block):
            high_size = number(_count_labels(first))
            factor = weights[q] * t ** (high_size - number(1.0))
            low_plain, low_sized = plain[first : first + block], sized[first : first + block]
            target = values[first : first + block]
            for j in range(block):
                total = low_sized[j] + (high_size + sizes[j]) * low_plain[j]
                target[j] += factor * powers[j] * total
    values[0] = number(empty) * p[0]


@inner
def _find_first_best(values, margin):
    """First index with values[i] >= max - margin, and the number of such indices."""
    best = values[0]
    for value in values:
        best = max(best, value)
    first, n_found = -1, 0
    for i in range(values.size):
        if values[i] >= best - margin:
            first = i if n_found == 0 else first
            n_found += 1
    return first, n_found


@kernel
def best_jaccard_rows(start, stop, P, empty, nodes, weights, best):
    """Per row whose best is < 0: the code of the prediction with the largest expected Jaccard.

    Computed in the precision of the nodes; in single precision, rows in which another value is
    within `MIN_GAP` of the largest stay < 0.
    """
    work = np.empty((4, P.shape[1]), nodes.dtype)
    is_short = nodes.itemsize == 4
    for i in range(start, stop):
        if best[i] >= 0:
            continue
        for c in range(P.shape[1]):
            work[0, c] = P[i, c]
        _expect_every_jaccard(empty, nodes, weights, work)
        code, n_best = _find_first_best(work[3], MIN_GAP if is_short else TIE)
        if n_best == 1 or not is_short:
            best[i] = code


@kernel
def best_by_pairs_rows(start, stop, P, metric, best):
    """Per row: the code of the best prediction under metric[k, tp, fn], from all 4**L pairs."""
    size = P.shape[1]
    sizes = np.empty(size, dtype=np.int64)
    for code in range(size):
        sizes[code] = _count_labels(code)
    values = np.empty(size)
    for i in range(start, stop):
        for predicted in range(size):
            table = metric[sizes[predicted]]
            total = 0.0
            for code in range(size):
                hits = sizes[code & predicted]
                total += P[i, code] * table[hits, sizes[code] - hits]
            values[predicted] = total
        best[i] = _find_first_best(values, TIE)[0]
