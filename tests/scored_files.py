"""A small model and rows for it, for tests of scoring."""

from functools import cache

import numpy as np
import pandas as pd

import labelsure as ls

COLUMNS = ["a", "b", "c", "d"]
LABELS = ["x", "y", "z"]


def make_rows(n_rows, seed=1):
    """Return rows with an id and four numbers."""
    rows = pd.DataFrame(np.random.default_rng(seed).normal(size=(n_rows, 4)), columns=COLUMNS)
    rows.insert(0, "id", [f"r{i}" for i in range(n_rows)])
    return rows


@cache
def make_model(target=0.85):
    """Return a fitted model of three labels that accepts some predictions, or has no target."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 4)), columns=COLUMNS)
    values = (X.to_numpy()[:, :3] + 0.3 * rng.normal(size=(600, 3)) > 0).astype(int)
    chains = ls.EnsembleOfClassifierChains(n_chains=3, random_state=0)
    model = ls.AccuracyAwareClassifier(chains, target=target, cv=0.5, random_state=0)
    return model.fit(X, pd.DataFrame(values, columns=LABELS))
