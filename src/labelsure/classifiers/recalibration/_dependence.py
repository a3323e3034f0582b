"""`ChainDependence`: a joint of labels of which only marginals are known.

Section 16 of `docs/algorithms.md` has the formulas.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from labelsure._runtime.typing import Floats
from labelsure.classifiers.recalibration._gate import Part, Recalibration, join_truth
from labelsure.classifiers.recalibration._labelwise_calibration import read_logits
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._chain_links import LinearChain
from labelsure.distributions._chain_mixture import ChainMixture
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.errors import InputError


class Links(NamedTuple):
    """What a chain has learned: the log-odds of each label."""

    slopes: Floats
    """(L,) for the log-odds that the label had."""
    intercepts: Floats
    """(L,)"""
    weights: Floats
    """(L, L) for the labels before it."""


class ChainDependence(Recalibration):
    """Let each label depend on those before it, beside what was known of it: one chain.

    The log-odds of a label become a * its old ones + b + a sum of weights of the labels before it
    that are set, by logistic regressions. This recalibrates the labels as well. For
    `IndependentLabels`, which become a `ChainMixture`.

    Parameters
    ----------
    C
        Of the logistic regressions: smaller means smaller weights.
    gate
        As for `TemperatureScaling`: without a gain on instances held out labels stay independent.

    Attributes
    ----------
    slopes_, intercepts_
        (L,) a and b.
    weights_
        (L, L) weights_[j, k] is what label k < j, set, adds to the log-odds of label j.
    is_kept_, gain_, gain_low_, gain_high_, n_samples_, n_impossible_
        As of `TemperatureScaling`.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import ChainDependence, IndependentLabels
    >>> truth = (np.random.default_rng(0).random((500, 1)) < 0.4).astype(int) * [1, 1]
    >>> chain = ChainDependence().fit(IndependentLabels(np.full((500, 2), 0.4)), truth)
    >>> bool(chain.weights_[1, 0] > 5), chain.is_kept_
    (True, True)
    """

    _title = "A chain over the labels"

    def __init__(self, C: float = 1.0, gate: bool = True) -> None:
        super().__init__(gate)
        self.C = C

    def _check_parameters(self) -> None:
        super()._check_parameters()
        is_real = isinstance(self.C, (int, float, np.number)) and not isinstance(self.C, bool)
        if not is_real or not self.C > 0:
            raise InputError(f"`C` must be a number above 0, got {self.C!r}.")

    def _check_kinds(self, parts: list[Part]) -> None:
        for part in parts:
            self._check_independent(part.dist)

    def _check_independent(self, dist: LabelsetDistribution) -> None:
        if not isinstance(dist, IndependentLabels):
            raise InputError(
                "`dist` must be IndependentLabels for a ChainDependence, which adds dependence "
                f"where there is none, got {type(dist).__name__}. Pass "
                "`IndependentLabels(dist.marginals())`."
            )

    def _learn(self, parts: list[Part]) -> Links:
        logits = np.concatenate([read_logits(part.dist) for part in parts])
        Y, weights = join_truth(parts)
        n_labels = Y.shape[1]
        links = Links(np.ones(n_labels), np.zeros(n_labels), np.zeros((n_labels, n_labels)))
        for j in range(n_labels):
            if Y[:, j].min() == Y[:, j].max():
                continue  # of one value nothing can be learned
            known = np.column_stack([logits[:, j], Y[:, :j]])
            fitted = LogisticRegression(C=self.C, max_iter=1000).fit(known, Y[:, j], weights)
            links.slopes[j], links.intercepts[j] = fitted.coef_[0, 0], fitted.intercept_[0]
            links.weights[j, :j] = fitted.coef_[0, 1:]
        return links

    def _apply(self, dist: LabelsetDistribution, learned: Links) -> LabelsetDistribution:
        self._check_independent(dist)
        base = learned.slopes * read_logits(dist) + learned.intercepts
        chain = LinearChain(range(dist.n_labels), base, learned.weights)
        return ChainMixture([chain], dist.label_names)._with_index(dist.index)

    def _keep(self, learned: Links) -> None:
        self.slopes_, self.intercepts_, self.weights_ = learned

    def _kept(self) -> Links:
        return Links(self.slopes_, self.intercepts_, self.weights_)
