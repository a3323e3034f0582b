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

PLAIN: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy"}
"""For every kernel: other threads run meanwhile, and a division needs no check for zero."""

FAST: dict[str, Any] = {**PLAIN, "fastmath": {"reassoc", "contract", "nsz"}}
"""For sums: the compiler may reorder them (once, when it compiles) and fuse multiply-adds, which
lets loops vectorise. NaN and infinity keep their meaning."""


@lru_cache(maxsize=64)
def unit_interval(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Gauss-Legendre nodes and weights on [0, 1], exact for polynomials up to `degree`."""
    nodes, weights = roots_legendre(max(1, degree // 2 + 1))
    nodes, weights = (nodes + 1) / 2, weights / 2
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights
