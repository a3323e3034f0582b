"""Entropy and collision from counts alone, where no probability can be evaluated. Section 7.

Counts of a sample miss the rare labelsets, so the plain ("plugin") entropy is too low on average,
and the more so the more labelsets there are. The other estimators correct for that, none fully: a
sample of which all draws differ says little of what it comes from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import digamma

from labelsure._runtime.typing import Floats, Indices
from labelsure.distributions.candidates import Profile, log
from labelsure.errors import InputError, unknown_name


@dataclass(frozen=True)
class DrawCounts:
    """How often each labelset of each instance was drawn.

    Parameters
    ----------
    values
        (m,) the counts of all instances below each other, each at least 1.
    instance
        (m,) whose they are.
    size
        How many draws each instance has.
    n_samples
        The number of instances.
    """

    values: Floats
    instance: Indices
    size: int
    n_samples: int

    def sum(self, terms: Floats) -> Floats:
        """Add up the terms of each instance, (n,)."""
        return np.bincount(self.instance, terms, minlength=self.n_samples).astype(np.float64)

    @property
    def n_seen(self) -> Floats:
        """How many different labelsets were drawn, (n,)."""
        return self.sum(np.ones(len(self.values)))

    @property
    def n_singletons(self) -> Floats:
        """How many of them were drawn once, (n,)."""
        return self.sum((self.values == 1).astype(np.float64))


def _plugin(counts: DrawCounts) -> Floats:
    shares = counts.values / counts.size
    return counts.sum(-shares * np.log(shares))


def _miller_madow(counts: DrawCounts) -> Floats:
    """Add the first term of the bias: half a degree of freedom a draw."""
    return _plugin(counts) + (counts.n_seen - 1) / (2 * counts.size)


def _grassberger(counts: DrawCounts) -> Floats:
    """Replace log n_i by G(n_i), whose bias falls exponentially with n_i (Grassberger 2003)."""
    n = counts.values
    sign = np.where(n % 2 == 0, 0.5, -0.5)
    G = digamma(n) + sign * (digamma((n + 1) / 2) - digamma(n / 2))
    return np.log(counts.size) - counts.sum(n * G) / counts.size


def _chao_shen(counts: DrawCounts) -> Floats:
    """Shrink the shares to what was seen of all mass; weigh by the chance of being seen."""
    n = counts.size
    singletons = counts.n_singletons
    # With singletons only the coverage would be 0 and the estimate infinite.
    singletons = np.where(singletons == n, n - 1.0, singletons)
    coverage = 1 - singletons / n
    p = coverage[counts.instance] * counts.values / n
    with np.errstate(divide="ignore"):  # p = 1: log1p(-1) is -inf, its exp 0
        seen = -np.expm1(n * np.log1p(-p))
    return counts.sum(-p * np.log(p) / seen)


ENTROPY_ESTIMATORS: dict[str, Callable[[DrawCounts], Floats]] = {
    "plugin": _plugin,
    "miller_madow": _miller_madow,
    "grassberger": _grassberger,
    "chao_shen": _chao_shen,
}
"""All estimators by name. A new one is a function and an entry here."""


def check_estimator(estimator: str, size: int) -> str:
    """Return the name of an estimator that `size` draws suffice for, or say what is wrong."""
    if estimator not in ENTROPY_ESTIMATORS:
        raise unknown_name("entropy estimator", estimator, ENTROPY_ESTIMATORS)
    if estimator != "plugin" and size < 2:
        raise InputError(
            f"The entropy estimator {estimator!r} needs at least two draws of each instance, got "
            f'{size}. Draw more, or use entropy="plugin".'
        )
    return estimator


def estimate_profile(plain: Profile, counts: DrawCounts, estimator: str) -> Profile:
    """Return the profile with entropy and collision as the estimator has them, and its name.

    Parameters
    ----------
    plain
        The profile of the shares themselves, which "plugin" keeps.
    counts
        Of the same instances.
    estimator
        A name in `ENTROPY_ESTIMATORS`.
    """
    method = np.full(len(plain), estimator)
    if estimator == "plugin":
        return replace(plain, method=method)
    most = plain.n_labels * np.log(2)
    n = counts.size
    # Unbiased: the share of pairs of draws that are equal.
    equal_pairs = counts.sum(counts.values * (counts.values - 1)) / (n * (n - 1))
    return replace(
        plain,
        entropy=np.clip(ENTROPY_ESTIMATORS[estimator](counts), 0.0, most),
        log_collision=np.maximum(log(equal_pairs), -most),
        method=method,
    )
