"""The collision from draws with squared odds. Section 7 of `docs/algorithms.md`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelsure._runtime.typing import Floats, Integers, Mask
from labelsure.distributions._chain_stack import draw_paths, log_mean_prob
from labelsure.distributions._mean_estimates import (
    QUANTILE,
    Estimate,
    stratified_variance,
    undrawn_variance,
)
from labelsure.distributions._weighted_chains import WeightedChains
from labelsure.distributions.candidates import log
from labelsure.labelsets.weighted import WeightedLabelsets


@dataclass(frozen=True)
class SquaredDraws:
    """What draws with squared odds say of the collision, the sum of P(y)**2.

    Parameters
    ----------
    log_weights
        (n, m, size) the log of P(y)**2 / Q(y) of the draws, Q being the mixture of the chains
        with squared odds: with many labels they are too small for a number.
    is_new
        (n, m, size) whether a draw is not among the labelsets enumerated.
    log_known
        (n,) the log of the sum of P(y)**2 over those.
    """

    log_weights: Floats
    is_new: Mask
    log_known: Floats

    @classmethod
    def draw(
        cls,
        chains: WeightedChains,
        known: WeightedLabelsets,
        owners: Integers,
        uniforms: Floats,
    ) -> SquaredDraws:
        """Make the draws.

        Parameters
        ----------
        chains
            m of them over n instances.
        known
            The labelsets enumerated, with their probabilities.
        owners
            (n, m, size) the chain that each draw comes from.
        uniforms
            (n, m, size, L) numbers in [0, 1).
        """
        draws = draw_paths(chains, owners, uniforms, squared=True).draws
        log_prob = log_mean_prob(chains, draws, with_squared=True)
        flat = draws.reshape(len(draws), -1, draws.shape[-1])
        is_new = ~known.contains(flat).reshape(draws.shape[:3])
        log_known = log(known.sum(known.weights**2))
        return cls(2 * log_prob[..., 0] - log_prob[..., 1], is_new, log_known)

    def join(self, more: SquaredDraws) -> SquaredDraws:
        """Add further draws of the same instances."""
        return SquaredDraws(
            np.concatenate([self.log_weights, more.log_weights], axis=2),
            np.concatenate([self.is_new, more.is_new], axis=2),
            self.log_known,
        )

    def __getitem__(self, rows: Any) -> SquaredDraws:
        return SquaredDraws(self.log_weights[rows], self.is_new[rows], self.log_known[rows])

    @property
    def size(self) -> int:
        """How many draws of each chain there are."""
        return self.is_new.shape[2]

    @property
    def n_new(self) -> Integers:
        """How many draws are new, (n,)."""
        return np.asarray(self.is_new.sum(axis=(1, 2)))

    @property
    def log_scale(self) -> Floats:
        """The log of each instance's largest weight, by which all are divided, (n,)."""
        return np.asarray(self.log_weights.max(axis=(1, 2)))

    @property
    def weights(self) -> Floats:
        """Of the draws, divided by the largest: in [0, 1], (n, m, size)."""
        return np.exp(self.log_weights - self.log_scale[:, np.newaxis, np.newaxis])

    @property
    def known(self) -> Floats:
        """What was enumerated, divided by the same, (n,)."""
        return np.exp(self.log_known - self.log_scale)

    def corrected(self) -> Floats:
        """Return (n, m, size) values whose mean is unbiased for what was not enumerated.

        These are the weights of new draws. Those of the other draws have a mean that is known:
        where few of them were drawn, too many are new. A share of how far they are off is added,
        the one that takes most variance away in the other half of the draws, which leaves the mean
        unbiased.
        """
        weights = self.weights
        new = np.where(self.is_new, weights, 0.0)
        off = np.where(self.is_new, 0.0, weights) - self.known[:, np.newaxis, np.newaxis]
        half = new.shape[2] // 2
        share = np.empty_like(new)
        share[:, :, :half] = _best_share(new[:, :, half:], off[:, :, half:])
        share[:, :, half:] = _best_share(new[:, :, :half], off[:, :, :half])
        return new + share * off

    def estimate(self) -> Estimate:
        """Return the log collision, its standard error and half the width of its interval.

        A few weights may be far above the others. On the scale of logs the interval reaches
        farther up than down, and further draws could bring the largest weight drawn, or none.
        """
        values = self.corrected()
        mean = values.mean(axis=(1, 2))
        total = np.maximum(self.known + mean, np.finfo(float).tiny)
        least = np.minimum(values.min(axis=(1, 2)), 0.0)
        variance = stratified_variance(values) / total**2
        n_draws = values.shape[1] * values.shape[2]
        undrawn = undrawn_variance(n_draws, least, values.max(axis=(1, 2)), mean) / total**2
        value = np.log(total) + self.log_scale
        return Estimate(value, np.sqrt(variance), QUANTILE * np.sqrt(variance + undrawn))


def _best_share(values: Floats, control: Floats) -> Floats:
    """Return the share in [0, 1] of the control that takes most variance off the values."""
    values = values - values.mean(axis=2, keepdims=True)  # only variance within chains counts
    control = control - control.mean(axis=2, keepdims=True)
    covariance = (values * control).sum(axis=(1, 2), keepdims=True)
    variance = (control**2).sum(axis=(1, 2), keepdims=True)
    return np.clip(-covariance / np.where(variance > 0, variance, 1.0), 0.0, 1.0)
