"""Small multi-label problems whose labels depend on the features and on each other."""

import numpy as np


def make_problem(n_samples=80, n_features=3, n_labels=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    logits = X @ rng.normal(size=(n_features, n_labels))
    Y = np.zeros((n_samples, n_labels), dtype=int)
    for j in range(n_labels):
        pull = 1.5 * (2 * Y[:, j - 1] - 1) if j else 0.0
        Y[:, j] = rng.random(n_samples) < 1 / (1 + np.exp(-logits[:, j] - pull))
    return X, Y
