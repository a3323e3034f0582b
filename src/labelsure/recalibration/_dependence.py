"""`CopulaDependence` and `ChainDependence`: joints of labels of which only marginals are known.

Section 17 of `docs/algorithms.md` has the formulas.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr, logit, logsumexp, ndtr, ndtri
from sklearn.linear_model import LogisticRegression

from labelsure._typing import Floats, Labelsets
from labelsure.distributions import (
    ChainMixture,
    IndependentLabels,
    IndependentMixture,
    LabelsetDistribution,
    LinearChain,
)
from labelsure.errors import InputError
from labelsure.recalibration._gate import Part, Recalibration, join_truth
from labelsure.saving import expect, is_array

N_NODES = 25
LEAST_NODE_WEIGHT = 1e-14  # less than that changes nothing
LARGEST_LOADING = 0.8
"""With so many nodes the marginals are kept to 1e-13 up to here, to 4e-4 at 0.95."""

LARGEST_LOGIT = 36.0
"""Of a probability: beyond, 1 - p cannot be told from 0."""

NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(N_NODES)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()
NODES = NODES[NODE_WEIGHTS > LEAST_NODE_WEIGHT]
NODE_WEIGHTS = NODE_WEIGHTS[NODE_WEIGHTS > LEAST_NODE_WEIGHT]


class Dependence(Recalibration):
    """What both kinds share: they are for independent labels.

    Parameters
    ----------
    gate
        As of `Recalibration`.
    """

    def _check_kinds(self, parts: list[Part]) -> None:
        for part in parts:
            self._check_independent(part.dist)

    def _check_independent(self, dist: LabelsetDistribution) -> None:
        if not isinstance(dist, IndependentLabels):
            raise InputError(
                f"`dist` must be IndependentLabels for a {type(self).__name__}, which adds "
                f"dependence where there is none, got {type(dist).__name__}. Pass "
                "`IndependentLabels(dist.marginals())`."
            )


class CopulaDependence(Dependence):
    """Let one hidden number move all labels together: a Gaussian copula with one factor.

    Each label has a loading r: it comes when r times the hidden number, and noise of its own,
    exceed what its probability leaves. Marginals stay as they are; labels with loadings of one
    sign come together, those of different signs instead of each other. For `IndependentLabels`,
    which become an `IndependentMixture`.

    Parameters
    ----------
    gate
        As for `TemperatureScaling`: without a gain on instances held out labels stay independent.

    Attributes
    ----------
    loadings_
        (L,) within [-0.8, 0.8]; their sum is not negative.
    is_kept_, gain_, gain_low_, gain_high_, n_samples_, n_impossible_
        As of `TemperatureScaling`.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import CopulaDependence, IndependentLabels
    >>> shared, own = np.random.default_rng(0).normal(size=(2, 500, 3))
    >>> truth = (0.6 * shared[:, :1] + 0.8 * own > 0.5).astype(int)
    >>> dist = IndependentLabels(np.full((500, 3), truth.mean()))
    >>> copula = CopulaDependence().fit(dist, truth)
    >>> copula.loadings_.round(1), copula.is_kept_
    (array([0.5, 0.5, 0.7]), True)
    >>> copula.transform(dist)
    IndependentMixture(n_samples=500, n_labels=3)
    """

    _title = "A copula of one factor"

    def _learn(self, parts: list[Part]) -> Floats:
        thresholds = np.concatenate([_thresholds(part.dist) for part in parts])
        Y, weights = join_truth(parts)
        shares = np.full(len(Y), 1 / len(Y)) if weights is None else weights / weights.sum()
        if Y.shape[1] == 1:
            return np.zeros(1)  # there is no other label to depend on
        first = _first_loadings(thresholds, Y, shares)
        limits = [(-LARGEST_LOADING, LARGEST_LOADING)] * Y.shape[1]
        found = minimize(
            _copula_loss, first, (thresholds, Y, shares), jac=True, method="L-BFGS-B", bounds=limits
        )
        loadings: Floats = found.x
        return -loadings if loadings.sum() < 0 else loadings

    def _apply(self, dist: LabelsetDistribution, learned: Floats) -> LabelsetDistribution:
        self._check_independent(dist)
        thresholds = _thresholds(dist)
        components = []
        for node in NODES:
            u = (thresholds + learned * node) / np.sqrt(1 - learned**2)
            components.append(
                IndependentLabels.from_logits(log_ndtr(u) - log_ndtr(-u), dist.label_names)
            )
        return IndependentMixture(components, weights=NODE_WEIGHTS).with_index(dist.index)

    def _keep(self, learned: Floats) -> None:
        self.loadings_ = learned

    def _kept(self) -> Floats:
        return self.loadings_

    def _check_loaded(self) -> None:
        super()._check_loaded()
        expect(
            is_array(self.loadings_, (len(self.label_names_),))
            and bool((np.abs(self.loadings_) <= LARGEST_LOADING).all()),
            f"`loadings_` must lie within [-{LARGEST_LOADING}, {LARGEST_LOADING}], one for each "
            "label",
        )


def _thresholds(dist: LabelsetDistribution) -> Floats:
    """Return the quantiles of the normal distribution at the marginals, (n, L)."""
    tiny = np.finfo(float).tiny
    return ndtri(dist.marginals().clip(tiny, 1 - 2.0**-53))


def _first_loadings(thresholds: Floats, Y: Labelsets, shares: Floats) -> Floats:
    """Return where the search begins: at 0 every direction looks alike."""
    p = ndtr(thresholds)
    off = (Y - p) / np.sqrt(p * (1 - p) + 1e-12)
    moments = off.T @ (shares[:, np.newaxis] * off)
    scale = np.sqrt(np.maximum(np.diag(moments), 1e-12))
    values, vectors = np.linalg.eigh(moments / np.outer(scale, scale))
    first = vectors[:, -1] * np.sqrt(max(values[-1] - 1.0, 0.05))
    return first.clip(-0.6, 0.6)


def _copula_loss(
    loadings: Floats, thresholds: Floats, Y: Labelsets, shares: Floats
) -> tuple[float, Floats]:
    """Return the mean of -log P(truth), by shares that sum to 1, and how it changes."""
    left = np.sqrt(1 - loadings**2)
    sign = np.where(Y == 1, 1.0, -1.0)
    logs = np.empty((len(NODES), len(Y)))
    slopes = np.empty((len(NODES), *Y.shape))
    for k, node in enumerate(NODES):
        u = sign * (thresholds + loadings * node) / left
        p = np.maximum(ndtr(u), np.finfo(float).tiny)
        logs[k] = np.log(p).sum(axis=1) + np.log(NODE_WEIGHTS[k])
        density = np.exp(-0.5 * u**2) / (p * np.sqrt(2 * np.pi))
        slopes[k] = sign * density * (node + loadings * thresholds) / left**3
    total = logsumexp(logs, axis=0)
    change = np.einsum("kn,knl->l", shares * np.exp(logs - total), slopes)
    return -float(shares @ total), -change


class Links(NamedTuple):
    """What a chain has learned: the log-odds of each label."""

    slopes: Floats
    """(L,) for the log-odds that the label had."""
    intercepts: Floats
    """(L,)"""
    weights: Floats
    """(L, L) for the labels before it."""


class ChainDependence(Dependence):
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

    def _learn(self, parts: list[Part]) -> Links:
        logits = np.concatenate([_read_logits(part.dist) for part in parts])
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
        base = learned.slopes * _read_logits(dist) + learned.intercepts
        chain = LinearChain(range(dist.n_labels), base, learned.weights)
        return ChainMixture([chain], dist.label_names).with_index(dist.index)

    def _keep(self, learned: Links) -> None:
        self.slopes_, self.intercepts_, self.weights_ = learned

    def _kept(self) -> Links:
        return Links(self.slopes_, self.intercepts_, self.weights_)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        n_labels = len(self.label_names_)
        for name, shape in (
            ("slopes_", (n_labels,)),
            ("intercepts_", (n_labels,)),
            ("weights_", (n_labels, n_labels)),
        ):
            values: Any = getattr(self, name)
            expect(is_array(values, shape), f"`{name}` must be numbers of shape {shape}")


def _read_logits(dist: LabelsetDistribution) -> Floats:
    return logit(dist.marginals()).clip(-LARGEST_LOGIT, LARGEST_LOGIT)
