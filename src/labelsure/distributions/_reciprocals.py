"""1/u as a short sum of powers t**u, for the denominators u of Jaccard and F1.

1/u is the integral of t**(u - 1) over [0, 1], and Gaussian quadrature makes it a sum. The mean of
1/u then needs a generating function E[t**u] at as many points as the sum has terms.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import roots_jacobi, roots_legendre

from labelsure._runtime.typing import Floats

LARGEST_ERROR = 1e-13
"""Of the sum, times the least denominator: of an expected accuracy, therefore. It is measured at
every denominator that can occur; a tenth of the tolerance of ties."""

STRETCH_STEP = 1.25  # between the stretches that are tried
N_PROBES = 64  # denominators at which a sum is tried before it is held to all
FIRST_STEP = 1.25  # between the least denominators that have a sum of their own


@lru_cache(maxsize=64)
def unit_interval(degree: int) -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes and weights on [0, 1], exact for polynomials up to `degree`."""
    nodes, weights = roots_legendre(max(1, degree // 2 + 1))
    nodes, weights = (nodes + 1) / 2, weights / 2
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


def sum_of_powers(first: int, last: int) -> tuple[Floats, Floats]:
    """Nodes t and coefficients c with sum c t**(u - first) = 1/u for whole u from first to last.

    Examples
    --------
    >>> t, c = sum_of_powers(20, 174)
    >>> len(t)
    19
    >>> round(float((c * t**80).sum()), 12)
    0.01
    """
    # A sum for a smaller first denominator will do, and so there are few of them to find.
    step = int(math.log(first) / math.log(FIRST_STEP) + 1e-9)
    start = min(first, max(1, math.ceil(FIRST_STEP**step)))
    nodes, coefficients = _find_sum(start, last)
    if _n_exact(first, last) <= len(nodes):
        return _stretched_rule(_n_exact(first, last), first, 1.0)
    return nodes, coefficients * nodes ** (first - start)


def _n_exact(first: int, last: int) -> int:
    """Number of terms with which Gauss-Jacobi is exact for all denominators, without a stretch."""
    return (last - first) // 2 + 1


@lru_cache(maxsize=256)
def _find_sum(first: int, last: int) -> tuple[Floats, Floats]:
    """Sum with an error of at most `LARGEST_ERROR` and nearly the least number of terms."""
    n_exact = _n_exact(first, last)
    some = np.unique(np.geomspace(first, last, N_PROBES).round())
    n_terms = _least_terms(last / first)
    while n_terms < n_exact:
        stretch, before = 1.0, np.inf
        while (error := _error_at(some, n_terms, first, stretch)) < before:
            if error <= LARGEST_ERROR:
                everywhere = np.arange(first, last + 1.0)
                if _error_at(everywhere, n_terms, first, stretch) <= LARGEST_ERROR:
                    return _stretched_rule(n_terms, first, stretch)
            before, stretch = error, stretch * STRETCH_STEP
        n_terms += 1 + n_terms // 25
    return _stretched_rule(n_exact, first, 1.0)


def _error_at(denominators: Floats, n_terms: int, first: int, stretch: float) -> float:
    nodes, coefficients = _stretched_rule(n_terms, first, stretch)
    sums = coefficients @ nodes[:, np.newaxis] ** (denominators - first)
    return float(first * np.abs(sums - 1 / denominators).max())


def _least_terms(ratio: float) -> int:
    """Lower bound on the number of exponential terms (Braess and Hackbusch)."""
    return max(1, int(math.log(16 / LARGEST_ERROR) * math.log(8 * ratio) / math.pi**2) - 1)


def _stretched_rule(n_terms: int, first: int, stretch: float) -> tuple[Floats, Floats]:
    """Gauss-Jacobi rule for the integral over t of t**(u - 1), in terms of t**stretch.

    It is exact for 2 * n_terms denominators from the first on, `stretch` apart; those between
    them, and some beyond, come out nearly as well.
    """
    nodes, weights = roots_jacobi(n_terms, 0.0, first / stretch - 1)
    return ((1 + nodes) / 2) ** (1 / stretch), weights / (first * weights.sum())
