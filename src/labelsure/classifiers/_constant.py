"""Labels that have one value in training: the smoothed prior instead of a learner."""

from __future__ import annotations

import numpy as np
from sklearn.dummy import DummyClassifier

from labelsure._typing import Floats, Labelsets


def smoothed_prior(y: Labelsets, n_features: int, sample_weight: Floats | None) -> DummyClassifier:
    """Return a learner that gives (n1 + 1) / (N + 2) to every instance.

    scikit-learn's own constant learner does it, fitted on one row of each class whose weights are
    the smoothed counts: nothing of ours has to be trusted when a model is loaded.

    Parameters
    ----------
    y
        (N,) zeros and ones.
    n_features
        How many features the learner is going to see.
    sample_weight
        (N,) weights, which take the place of counts; None means one each.
    """
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    counts = np.array([weights[y == 0].sum(), weights[y == 1].sum()])
    learner = DummyClassifier(strategy="prior")
    return learner.fit(np.zeros((2, n_features)), [0, 1], sample_weight=counts + 1)
