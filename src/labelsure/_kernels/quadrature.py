"""Gauss-Legendre quadrature on [0, 1], exact for the polynomials that expectations turn into."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import roots_legendre


@lru_cache(maxsize=64)
def unit_interval(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights on [0, 1] that integrate polynomials up to `degree` exactly."""
    nodes, weights = roots_legendre(max(1, degree // 2 + 1))
    nodes, weights = (nodes + 1) / 2, weights / 2
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights
