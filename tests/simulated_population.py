"""Instances whose P(Y|x) is known: random mixtures of chains, and draws from them."""

from __future__ import annotations

import numpy as np

import labelsure as ls

N_LABELS = 4


def random_dist(n_samples, seed=0, n_labels=N_LABELS, n_chains=2, spread=3.0):
    rng = np.random.default_rng(seed)
    by_label = rng.normal(-0.7, spread, size=(n_samples, n_labels))
    chains = []
    for _ in range(n_chains):
        order = rng.permutation(n_labels)
        base = by_label[:, order] + 0.5 * rng.normal(size=(n_samples, n_labels))
        chains.append(
            ls.distributions.LinearChain(order, base, rng.normal(size=(n_labels, n_labels)))
        )
    return ls.distributions.ChainMixture(chains)


class Population:
    """Many instances with known P(Y|x), from which samples with replacement are drawn.

    `table` has a row for each instance and drawn truth; `true` the exact expected accuracy of the
    mode, so population means are known without error.
    """

    def __init__(self, metric, n_instances=2000, n_draws=20, seed=0, empty=1.0, spread=3.0):
        dist = random_dist(n_instances, seed, spread=spread)
        self.metric = metric
        self.true = ls.expected_accuracy(dist, metric=metric, empty=empty).value
        self.table = score_frame(dist)
        # Another seed: the same one would draw the truth from the bits that made the distribution.
        Y = dist.sample(n_draws, random_state=seed + 1)
        self.truths = np.swapaxes(Y, 0, 1)
        self.modes = dist.mode()
        drawn = [np.stack(_counts(self.truths[d], self.modes)) for d in range(n_draws)]
        self.counts = np.stack(drawn)  # draw, count, instance

    def draw(self, n_samples, rng):
        """Return a table of instances with one truth each, as it would be collected."""
        rows = rng.integers(len(self.table), size=n_samples)
        draws = rng.integers(len(self.counts), size=n_samples)
        counts = self.counts[draws, :, rows]
        table = self.table.iloc[rows].reset_index(drop=True)
        return table.assign(**dict(zip(("tp", "fp", "fn", "tn"), counts.T, strict=True)))


def _counts(Y_true, Y_pred):
    tp = (Y_true & Y_pred).sum(axis=1)
    fp, fn = Y_pred.sum(axis=1) - tp, Y_true.sum(axis=1) - tp
    return tp, fp, fn, Y_true.shape[1] - tp - fp - fn


def score_frame(dist, Y_true=None, Y_pred=None, **options):
    """The score table of a distribution as a DataFrame."""
    return ls.ScoreTable.from_distribution(dist, Y_true, Y_pred, **options).to_frame()
