"""Compiled kernels: plain arrays in, plain arrays out.

A kernel checks nothing, draws no random numbers and handles the rows `start` to `stop` of a
batch, each row by itself and in a fixed order: results do not depend on the number of threads.
Each file opens with its layout, what each kernel computes, the algorithm, its cost and its error;
derivations are in `docs/algorithms.md`. `compiling` compiles and caches, `threads` runs.
May depend on `_runtime` and `errors`.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import roots_legendre


@lru_cache(maxsize=64)
def unit_interval(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Gauss-Legendre nodes and weights on [0, 1], exact for polynomials up to `degree`."""
    nodes, weights = roots_legendre(max(1, degree // 2 + 1))
    nodes, weights = (nodes + 1) / 2, weights / 2
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights
