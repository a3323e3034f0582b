"""`BinaryRelevance`: one learner for each label, on its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from labelsure._typing import Floats, Labelsets
from labelsure.classifiers._base_learners import (
    MAX_SEED,
    Features,
    LabelTask,
    fit_learners,
    positive_probability,
)
from labelsure.classifiers._predictor import LabelsetClassifier
from labelsure.distributions import IndependentLabels


class BinaryRelevance(LabelsetClassifier):
    """Independent labels: one base learner for each.

    Parameters
    ----------
    estimator
        Base learner with `predict_proba`; None means logistic regression.
    n_jobs
        How many labels are fitted at a time, as in joblib.
    random_state
        Seeds base learners that are random and have no seed of their own.

    Attributes
    ----------
    estimators_
        The fitted learner of each label; a constant one's is the smoothed prior.
    classes_
        [0, 1] for each label, or the two values of a vector Y.
    label_names_
        The columns of a DataFrame Y, otherwise y0, y1, ...
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> Y = [[0, 1], [0, 1], [1, 1], [1, 0]]
    >>> model = BinaryRelevance().fit(X, Y)
    >>> model.predict([[0.0], [3.0]])
    array([[0, 1],
           [1, 1]])
    >>> model.predict_distribution(X)
    IndependentLabels(n_samples=4, n_labels=2)
    """

    def __init__(
        self, estimator: Any = None, *, n_jobs: int | None = None, random_state: Any = None
    ) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit_clones(
        self, learner: Any, X: Features, Y: Labelsets, sample_weight: Floats | None
    ) -> None:
        seeds = check_random_state(self.random_state).randint(MAX_SEED, size=Y.shape[1])
        tasks = [LabelTask(label, (), seed) for label, seed in enumerate(seeds)]
        self.estimators_ = fit_learners(
            learner, X, Y, tasks, sample_weight=sample_weight, n_jobs=self.n_jobs
        )

    def distribution_of_checked(self, X: Features) -> IndependentLabels:
        """Return P(Y|x) of each row of features that are checked already."""
        marginals = [positive_probability(learner, X) for learner in self.estimators_]
        return IndependentLabels(np.column_stack(marginals), self.label_names_)
