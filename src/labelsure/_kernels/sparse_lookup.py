"""Kernels for sparse rows: where the labels of one are among those of another."""

from __future__ import annotations

from labelsure._kernels.compiling import fast_kernel


@fast_kernel
def find_labels_rows(start, stop, listed, listed_starts, asked, asked_starts, places):
    """Per row: the place of each asked label among the listed ones, whose order is rising in both.

    A label that is not listed gets the place at which it would belong, negative and less one.
    """
    for i in range(start, stop):
        at, end = listed_starts[i], listed_starts[i + 1]
        for a in range(asked_starts[i], asked_starts[i + 1]):
            while at < end and listed[at] < asked[a]:
                at += 1
            places[a] = at if at < end and listed[at] == asked[a] else -at - 1
