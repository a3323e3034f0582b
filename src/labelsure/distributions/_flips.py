"""Labelsets that differ from one by flips: what searches try, and the most probable labelsets."""

from __future__ import annotations

import heapq

import numpy as np

from labelsure._runtime.typing import Floats, Labelsets


def with_flips(Y: Labelsets) -> Labelsets:
    """Return each labelset, followed by the same with one label flipped, (n, 1 + L, L).

    Examples
    --------
    >>> with_flips(np.array([[0, 1]], dtype=np.int8))
    array([[[0, 1],
            [1, 1],
            [0, 0]]], dtype=int8)
    """
    n_labels = Y.shape[1]
    change = np.concatenate([np.zeros((1, n_labels)), np.eye(n_labels)]).astype(np.int8)
    return Y[:, np.newaxis] ^ change


def are_flips(guesses: Labelsets) -> bool:
    """Whether (n, g, L) guesses are what `with_flips` makes of the first of each instance."""
    _, n_guesses, n_labels = guesses.shape
    return n_guesses == n_labels + 1 and np.array_equal(guesses, with_flips(guesses[:, 0]))


def cheapest_codes(cost: Floats, mode: Labelsets, k: int) -> list[int]:
    """Return the codes of the k labelsets whose flips away from the mode cost least, in order.

    Fewer where there are fewer: a label that is certain is never flipped.

    The order is that of (cost, code): a flip adds its cost to the first and plus or minus 2**j to
    the second. Both are sums and each such pair is positive, so the usual heap works on pairs: the
    sets of flips that follow {..., i} in sorted order are {..., i, i+1} and {..., i+1}. An entry
    holds the pair of its flips, the last of them, and the pair without the last.
    """
    mode_code = sum(1 << j for j in np.flatnonzero(mode).tolist())
    flips = [
        (float(cost[j]), -(1 << j) if mode[j] else 1 << j)
        for j in np.flatnonzero(np.isfinite(cost)).tolist()
    ]
    flips = heapq.nsmallest(k, flips)
    codes = [mode_code]
    heap = [(added, mode_code + change, 0, 0.0, mode_code) for added, change in flips[:1]]
    while heap and len(codes) < k:
        total, code, last, total_before, code_before = heapq.heappop(heap)
        codes.append(code)
        following = last + 1
        if following < len(flips):
            added, change = flips[following]
            heapq.heappush(heap, (total + added, code + change, following, total, code))
            exchanged = total_before + added, code_before + change
            heapq.heappush(heap, (*exchanged, following, total_before, code_before))
    return codes


def write_codes(codes: list[int], rows: Labelsets) -> None:
    """Write the labelsets of codes of any length to the first rows."""
    n_bytes = -(-rows.shape[1] // 8)
    octets = np.frombuffer(b"".join(c.to_bytes(n_bytes, "little") for c in codes), dtype=np.uint8)
    bits = np.unpackbits(octets.reshape(-1, n_bytes), axis=1, bitorder="little")
    rows[: len(codes)] = bits[:, : rows.shape[1]]
