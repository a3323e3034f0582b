"""Sums for profiles: largest and second largest probability, entropy, collision sum P(y)**2.

    dense_profile_rows        from 2**L probabilities, in blocks that stay in the first-level cache
    independent_profile_rows  from L marginals: the mode and its best flip, the entropy as a sum
                              over labels, log collision as the log of a product, O(L)

Logarithms dominate both. `_sum_xlogx` has one that vectorises, with an error of about one rounding.
"""

from __future__ import annotations

import numpy as np

from labelsure._kernels.compiling import fast_inner, fast_kernel
from labelsure._runtime.limits import TIE

BLOCK = 1024  # entries worked on at a time; a few such buffers fit the first-level cache
PRODUCT = 512  # factors multiplied before a log is taken: 0.5**512 is far from underflow

_MANTISSA = np.int64(0x000FFFFFFFFFFFFF)
_ONE = np.int64(0x3FF0000000000000)  # the bits of 1.0
_SQRT2 = 1.4142135623730951
_LN2 = 0.6931471805599453


@fast_inner
def _sum_xlogx(values, mantissas, exponents):
    """Sum of x log x over values >= 0, with 0 log 0 = 0.

    The bits of a float give x = m 2**e with m in [1, 2), halved above sqrt(2). Then
    log x = e log 2 + 2 artanh(s) for s = (m - 1)/(m + 1), |s| <= 0.172, and the series
    artanh(s) = s + s**3/3 + ... is cut after s**21/21: what is left out is below 1e-18.
    """
    bits, mantissa_bits = values.view(np.int64), mantissas.view(np.int64)
    for i in range(values.size):
        exponents[i] = float((bits[i] >> 52) - 1023)
        mantissa_bits[i] = (bits[i] & _MANTISSA) | _ONE
    total = 0.0
    for i in range(values.size):
        high = mantissas[i] > _SQRT2
        m = 0.5 * mantissas[i] if high else mantissas[i]
        e = exponents[i] + 1.0 if high else exponents[i]
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        series = 1 / 21
        series = series * z + 1 / 19
        series = series * z + 1 / 17
        series = series * z + 1 / 15
        series = series * z + 1 / 13
        series = series * z + 1 / 11
        series = series * z + 1 / 9
        series = series * z + 1 / 7
        series = series * z + 1 / 5
        series = series * z + 1 / 3
        series = series * z + 1.0
        total += values[i] * (e * _LN2 + 2.0 * s * series)
    return total


@fast_inner
def _sum_squares(values):
    total = 0.0
    for i in range(values.size):
        total += values[i] * values[i]
    return total


@fast_inner
def _any_above(values, limit):
    """Whether a value is above the limit. Counting all of them vectorises."""
    n_above = 0
    for i in range(values.size):
        n_above += values[i] > limit
    return n_above > 0


@fast_inner
def _find_first(values, least):
    """Index of the first value >= `least`, which must exist."""
    place = 0
    while values[place] < least:
        place += 1
    return place


@fast_kernel
def dense_profile_rows(start, stop, P, profile, mode):
    """Per row: largest, second largest, entropy, sum of squares; and the mode's code."""
    size = P.shape[1]
    block = min(size, BLOCK)
    values = np.empty(block)
    mantissas, exponents = np.empty(block), np.empty(block)
    for i in range(start, stop):
        top = runner_up = -1.0
        code = 0
        squares = 0.0
        xlogx = 0.0
        for first in range(0, size, block):
            row = P[i, first : first + block]
            for j in range(block):
                values[j] = row[j]
            squares += _sum_squares(values)
            if _any_above(values, runner_up):  # seldom true after the first few blocks
                for j in range(block):
                    if values[j] > top:
                        runner_up = top
                        top = values[j]
                        code = first + j
                    elif values[j] > runner_up:
                        runner_up = values[j]
            xlogx += _sum_xlogx(values, mantissas, exponents)
        profile[i, 0] = top
        profile[i, 1] = runner_up
        profile[i, 2] = max(0.0, -xlogx)
        profile[i, 3] = squares
        mode[i] = code if runner_up < top * (1.0 - TIE) else _find_first(P[i], top * (1.0 - TIE))


@fast_kernel
def independent_profile_rows(start, stop, marginals, starts, profile):
    """Per row: log of the largest probability, largest odds of a flip, entropy, log collision.

    Row i is marginals[starts[i] : starts[i + 1]]. Sums of logs are logs of products, taken once for
    each block of labels.
    """
    likely, unlikely = np.empty(PRODUCT), np.empty(PRODUCT)
    mantissas, exponents = np.empty(PRODUCT), np.empty(PRODUCT)
    for i in range(start, stop):
        log_top = log_collision = xlogx = 0.0
        flip = 0.0
        for first in range(starts[i], starts[i + 1], PRODUCT):
            row = marginals[first : min(first + PRODUCT, starts[i + 1])]
            q, r = likely[: row.size], unlikely[: row.size]
            top = collision = 1.0
            for j in range(row.size):
                p = float(row[j])
                q[j] = max(p, 1.0 - p)
                r[j] = min(p, 1.0 - p)
            for j in range(row.size):
                top *= q[j]
                collision *= q[j] * q[j] + r[j] * r[j]
            for j in range(row.size):
                flip = max(flip, r[j] / q[j])
            log_top += np.log(top)
            log_collision += np.log(collision)
            xlogx += _sum_xlogx(q, mantissas, exponents)
            xlogx += _sum_xlogx(r, mantissas, exponents)
        profile[i, 0] = log_top
        profile[i, 1] = flip
        profile[i, 2] = max(0.0, -xlogx)
        profile[i, 3] = log_collision
