"""Label dependence that is added to marginals: a chain of logistic regressions."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from labelsure._runtime.arguments import read_number
from labelsure._runtime.typing import Floats, Labelsets, Mask
from labelsure.classifiers.recalibration._base import (
    Part,
    Recalibration,
    has_free_labels,
    join_logits,
)
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._chain_mixture import ChainMixture
from labelsure.distributions._chains import LinearChain
from labelsure.distributions._constrained import logits_of
from labelsure.errors import InputError


class ChainDependence(Recalibration):
    """Add label dependence to marginals: each label depends on those before it.

    For `IndependentLabels`; the result is a `ChainMixture`. The log-odds of a label become a * its
    old ones + b + the weights of earlier labels that are present, by logistic regressions. This
    recalibrates the labels as well.

    Parameters
    ----------
    C
        Inverse strength of the ridge penalty of the logistic regressions.
    gate
        Whether the chain is kept only if it raises the log-probability of the truth on held-out
        instances: in five-fold cross-validation, the 95% interval of the mean gain must lie above
        0. Otherwise labels stay independent.

    Attributes
    ----------
    curves_
        (2, L) a and b.
    weights_
        (L, L) what label k < j adds to the log-odds of label j if it is present, in row j.
    is_kept_
        Whether the recalibration is used.
    gain_, gain_low_, gain_high_
        Mean gain in the log-probability of the truth on held-out instances, and its 95% interval.
    n_samples_
        Size of the calibration set.
    n_impossible_
        Number of instances left out because their truth has probability 0.

    See Also
    --------
    LabelwiseCalibration : Calibrates labels and leaves them independent.
    RecalibratedClassifier : Fits it by `method="dependence"`.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import IndependentLabels
    >>> from labelsure.classifiers import ChainDependence
    >>> truth = (np.random.default_rng(0).random((500, 1)) < 0.4).astype(int) * [1, 1]
    >>> chain = ChainDependence().fit(IndependentLabels(np.full((500, 2), 0.4)), truth)
    >>> bool(chain.weights_[1, 0] > 5), chain.is_kept_
    (True, True)
    """

    _title, _fitted = "A chain over the labels", ("curves_", "weights_")

    def __init__(self, C: float = 1.0, gate: bool = True) -> None:
        super().__init__(gate)
        self.C = C

    def _check_parameters(self) -> None:
        super()._check_parameters()
        read_number(self.C, "C", 0, ends="(]")

    def _check_kind(self, dist: LabelsetDistribution) -> None:
        if not has_free_labels(dist):
            raise InputError(
                "`dist` must be IndependentLabels for a ChainDependence, got "
                f"{type(dist).__name__}. Pass `IndependentLabels(dist.marginals())`."
            )

    def _fit_parameters(self, parts: list[Part]) -> tuple[Floats, Floats]:
        return fit_links(*join_logits(parts), C=self.C)

    def _apply(
        self, dist: LabelsetDistribution, parameters: tuple[Floats, Floats]
    ) -> LabelsetDistribution:
        (slopes, intercepts), links = parameters
        base = slopes * logits_of(dist) + intercepts
        chain = LinearChain(range(dist.n_labels), base, links)
        return ChainMixture([chain], dist.label_names)._with_index(dist.index)


def fit_links(
    logits: Floats,
    Y: Labelsets,
    weights: Floats | None,
    *,
    C: float = 1.0,
    is_open: Mask | None = None,
) -> tuple[Floats, Floats]:
    """Slope and intercept of each label, (2, L), and weights of those before it, (L, L).

    Parameters
    ----------
    logits, Y
        (n, L) of the labels in the order of the chain.
    weights
        (n,) of the instances.
    C
        Inverse strength of the ridge penalty.
    is_open
        (n, L) whether the labels before it leave a label open; only such rows are used for it.
    """
    n_labels = Y.shape[1]
    curves, links = np.repeat([[1.0], [0.0]], n_labels, axis=1), np.zeros((n_labels, n_labels))
    for j in range(n_labels):
        rows = slice(None) if is_open is None else np.flatnonzero(is_open[:, j])
        y = Y[rows, j]
        if y.size == 0 or y.min() == y.max():
            continue  # of one value nothing can be learned
        features = np.column_stack([logits[rows, j], Y[rows, :j]])
        of_rows = None if weights is None else weights[rows]
        fitted = LogisticRegression(C=C, max_iter=1000).fit(features, y, of_rows)
        curves[:, j] = fitted.coef_[0, 0], fitted.intercept_[0]
        links[j, :j] = fitted.coef_[0, 1:]
    return curves, links
