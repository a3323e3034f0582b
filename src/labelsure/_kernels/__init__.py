"""Compiled kernels: plain arrays in, plain arrays out.

A kernel checks nothing, draws no random numbers and handles the rows ``start`` to ``stop`` of a
batch, each row by itself and in a fixed order: results do not depend on the number of threads.
Kernels that call each other live in one file, because numba's cache on disk does not notice a
change in another one.

What all kernels share is here: how they are compiled, and the points at which the polynomials that
expectations turn into are integrated.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import roots_legendre

INNER: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
"""For functions that only kernels call: other threads run meanwhile, and a division needs no check
for zero. They are stored with the kernels that call them, and Python cannot call them: both save
time when a kernel is compiled."""

PLAIN: dict[str, Any] = {**INNER, "cache": True, "no_cpython_wrapper": False}
"""For kernels: the same, but stored on disk when they are first compiled, and called by Python."""

_SUMS: dict[str, Any] = {"fastmath": {"reassoc", "contract", "nsz"}}

FAST: dict[str, Any] = {**PLAIN, **_SUMS}
"""For kernels with sums: the compiler may reorder them (once, when it compiles) and fuse
multiply-adds, which lets loops vectorise. NaN and infinity keep their meaning."""

FAST_INNER: dict[str, Any] = {**INNER, **_SUMS}
"""For functions with sums that only kernels call."""


@lru_cache(maxsize=64)
def unit_interval(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Gauss-Legendre nodes and weights on [0, 1], exact for polynomials up to `degree`."""
    nodes, weights = roots_legendre(max(1, degree // 2 + 1))
    nodes, weights = (nodes + 1) / 2, weights / 2
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights
