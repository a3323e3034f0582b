"""Fitted chains as what a `ChainMixture` is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsure._typing import Floats, Indices, Labelsets
from labelsure.classifiers._learners import Features, append_labels, positive_probability
from labelsure.classifiers._linear import linear_form
from labelsure.distributions import LinearChain, PrefixChain

N_PROBES = 8  # rows on which a linear form is compared with the learner itself

LinearWeights = tuple[Floats, Floats, Floats]
"""Of each position: the weights of the features (L, d), of the earlier positions (L, L), and the
intercept (L,). Plain arrays, because fitted models keep them."""


class ChainConditional:
    """P(label at a position = 1) given the earlier ones, by the learners' `predict_proba`.

    Parameters
    ----------
    learners
        The fitted learner of each position, on the features and the earlier labels.
    X
        The instances.
    """

    def __init__(self, learners: Sequence[Any], X: Features) -> None:
        self.learners = learners
        self.X = X

    def __call__(self, position: int, rows: Indices, prefixes: Labelsets) -> Floats:
        """Return the probabilities of m pairs of an instance and a prefix.

        Parameters
        ----------
        position
            Which learner is asked.
        rows
            (m,) indices of instances.
        prefixes
            (m, position) values of the earlier positions.
        """
        features = append_labels(self.X[rows], prefixes)
        return positive_probability(self.learners[position], features)


def linear_weights(learners: Sequence[Any], X: Features, Y: Labelsets) -> LinearWeights | None:
    """Return the weights of a chain whose learners are all linear, None for any other.

    Parameters
    ----------
    learners
        The fitted learner of each position.
    X
        Instances, of which a few serve as probes.
    Y
        (n, L) labelsets of the same instances in the order of the chain.
    """
    n_labels, n_features = len(learners), X.shape[1]
    probes = np.linspace(0, X.shape[0] - 1, min(N_PROBES, X.shape[0])).astype(int)
    X, Y = X[probes], Y[probes]
    of_features, of_labels = np.zeros((n_labels, n_features)), np.zeros((n_labels, n_labels))
    intercepts = np.zeros(n_labels)
    for j, learner in enumerate(learners):
        form = linear_form(learner, append_labels(X, Y[:, :j]))
        if form is None:
            return None
        of_features[j], of_labels[j, :j] = form.weights[:n_features], form.weights[n_features:]
        intercepts[j] = form.intercept
    return of_features, of_labels, intercepts


def expand_chain(
    order: NDArray[np.integer[Any]],
    learners: Sequence[Any],
    linear: LinearWeights | None,
    X: Features,
) -> LinearChain | PrefixChain:
    """Return a chain in the form that its learners allow.

    Parameters
    ----------
    order
        The label at each position.
    learners
        The fitted learner of each position.
    linear
        What `linear_weights` found.
    X
        The instances to predict.
    """
    if linear is None:
        return PrefixChain(order, ChainConditional(learners, X), X.shape[0])
    of_features, of_labels, intercepts = linear
    return LinearChain(order, np.asarray(X @ of_features.T) + intercepts, of_labels)
