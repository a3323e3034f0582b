"""Chains with random orders, logits and weights, for tests of what is made of chains."""

import numpy as np

import labelsure as ls


def random_chains(seed, n_labels, n_chains, n_samples=2, scale=1.5):
    rng = np.random.default_rng(seed)
    return [
        ls.distributions.LinearChain(
            rng.permutation(n_labels),
            scale * rng.normal(size=(n_samples, n_labels)),
            scale * rng.normal(size=(n_labels, n_labels)),
        )
        for _ in range(n_chains)
    ]
