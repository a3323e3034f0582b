"""`LabelwiseCalibration`: the probability of each label by a curve of its own.

Section 12 of `docs/algorithms.md` has the formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from labelsure._runtime.typing import Floats, Labelsets
from labelsure.classifiers.recalibration._gate import (
    Part,
    Recalibration,
    join_truth,
    n_standard_errors,
)
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.errors import InputError, unknown_name

LARGEST_LOGIT = 36.0
"""Of a probability: beyond, 1 - p cannot be told from 0."""

SLOPE_PENALTY, INTERCEPT_PENALTY = 1.0, 0.1
"""On squared differences from the pooled curve, the slope in units of the logit's variance. Of nine
variants these had the best mean rank for 100 and 160 instances of the six sets."""

NEARLY_NONE = 1e-3  # on the pooled curve, so that it is always determined
MOST_STEPS, MOST_HALVINGS, SMALL_STEP = 100, 40, 1e-10


class LabelwiseCalibration(Recalibration):
    """Calibrate the probability of each label by itself. For `IndependentLabels`.

    For chains, put scikit-learn's `CalibratedClassifierCV` into the base learner instead, e.g.
    ``EnsembleOfClassifierChains(CalibratedClassifierCV(LogisticRegression()))``.

    Parameters
    ----------
    method
        "sigmoid": Platt scaling, a slope and an intercept for the logit of each label, shrunk
        towards those of all labels together, so that rare labels borrow strength from the others;
        or "isotonic", a step function that never falls (scikit-learn's), for a thousand instances
        and more. No step is closer to 0 or 1 than 1 / (n + 2): n instances cannot tell more.
    gate
        Whether all labels are calibrated only if that raises the mean log-probability of the truth
        on held-out instances: by more than one standard error ("sigmoid"), or with its 95% interval
        above 0 ("isotonic").

    Attributes
    ----------
    curves_
        For each label an array with two rows: slope and intercept of the logit ("sigmoid"), or
        logits and the probabilities there ("isotonic").
    is_kept_, gain_, gain_low_, gain_high_, n_samples_, n_impossible_
        As of `TemperatureScaling`.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import IndependentLabels, LabelwiseCalibration
    >>> p = np.random.default_rng(0).uniform(size=(500, 2))
    >>> truth = IndependentLabels(p).sample(1, random_state=1)[:, 0]
    >>> dist = IndependentLabels(p ** [1, 3])  # the second label is often missed
    >>> calibration = LabelwiseCalibration().fit(dist, truth)
    >>> calibration.transform(dist).marginals().mean(axis=0).round(2), truth.mean(axis=0)
    (array([0.53, 0.5 ]), array([0.528, 0.498]))
    """

    _title = "A calibration of each label"

    def __init__(self, method: str = "sigmoid", gate: bool = True) -> None:
        super().__init__(gate)
        self.method = method

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.method not in METHODS:
            raise unknown_name("method", self.method, METHODS)

    def _check_kinds(self, parts: list[Part]) -> None:
        for part in parts:
            _check_independent(part.dist)

    def _learn(self, parts: list[Part]) -> list[Floats]:
        logits = np.concatenate([read_logits(part.dist) for part in parts])
        return METHODS[self.method].learn(logits, *join_truth(parts))

    def _apply(self, dist: LabelsetDistribution, learned: list[Floats]) -> LabelsetDistribution:
        _check_independent(dist)
        read = METHODS[self.method].read
        columns = [read(curve, z) for curve, z in zip(learned, read_logits(dist).T, strict=True)]
        return IndependentLabels(np.column_stack(columns), dist.label_names)._with_index(dist.index)

    def _keep(self, learned: list[Floats]) -> None:
        self.curves_ = learned

    def _kept(self) -> list[Floats]:
        return self.curves_

    def _passes(self) -> bool:
        error = (self.gain_ - self.gain_low_) / n_standard_errors(self.n_samples_)
        return self.gain_ > error if self.method == "sigmoid" else super()._passes()

    def _describe_learned(self) -> str:
        return f" ({self.method})"


class Method(NamedTuple):
    """How curves are learned from logits, truth and weights, and read at logits."""

    learn: Callable[[Floats, Labelsets, Floats | None], list[Floats]]
    read: Callable[[Floats, Floats], Floats]


def _learn_sigmoids(logits: Floats, Y: Labelsets, weights: Floats | None) -> list[Floats]:
    counts = np.ones(len(Y)) if weights is None else weights
    every = np.repeat(counts, Y.shape[1])
    pooled = _fit_sigmoids(
        logits.reshape(-1, 1),
        Y.astype(np.float64).reshape(-1, 1),
        every,
        np.array([[1.0], [0.0]]),
        np.full((2, 1), NEARLY_NONE),
    )
    n_ones = counts @ Y
    n_zeros = counts.sum() - n_ones
    targets = np.where(Y == 1, (n_ones + 1) / (n_ones + 2), 1 / (n_zeros + 2))  # Platt's
    spread = np.average((logits - np.average(logits, axis=0, weights=counts)) ** 2, 0, counts)
    penalties = np.stack(
        [SLOPE_PENALTY * spread + NEARLY_NONE, np.full(Y.shape[1], INTERCEPT_PENALTY)]
    )
    found = _fit_sigmoids(logits, targets, counts, pooled, penalties)
    return list(found.T[:, :, np.newaxis])


def _fit_sigmoids(
    logits: Floats, targets: Floats, weights: Floats, centre: Floats, penalties: Floats
) -> Floats:
    """Return slope and intercept of each column, (2, L), by Newton's method on all at once.

    Each minimises its cross-entropy plus half of its penalties times the squared distance from the
    centre. That is strictly convex, and no step is taken that raises it.
    """
    weights = weights[:, np.newaxis]

    def loss(curves: Floats) -> Floats:
        z = curves[0] * logits + curves[1]
        entropy = (weights * (np.logaddexp(0.0, z) - targets * z)).sum(axis=0)
        return entropy + 0.5 * (penalties * (curves - centre) ** 2).sum(axis=0)

    curves = np.broadcast_to(centre, (2, logits.shape[1])).astype(np.float64)
    least = loss(curves)
    for _ in range(MOST_STEPS):
        p = expit(curves[0] * logits + curves[1])
        off, spread = weights * (p - targets), weights * p * (1 - p)
        slopes = np.stack([(off * logits).sum(axis=0), off.sum(axis=0)])
        slopes += penalties * (curves - centre)
        first = (spread * logits**2).sum(axis=0) + penalties[0]
        both, second = (spread * logits).sum(axis=0), spread.sum(axis=0) + penalties[1]
        step = np.stack([second * slopes[0], first * slopes[1]]) - both * slopes[::-1]
        step /= first * second - both**2
        for _ in range(MOST_HALVINGS):
            found = loss(curves - step)
            rises = found > least
            if not rises.any():
                break
            step[:, rises] /= 2
        step[:, rises] = 0.0
        curves, least = curves - step, np.where(rises, least, found)
        if np.abs(step).max(initial=0.0) < SMALL_STEP:
            break
    return curves


def _read_sigmoid(curve: Floats, logits: Floats) -> Floats:
    found = curve[0, 0] * logits + curve[1, 0]
    return expit(found.clip(-LARGEST_LOGIT, LARGEST_LOGIT))


def _learn_steps(logits: Floats, Y: Labelsets, weights: Floats | None) -> list[Floats]:
    from sklearn.isotonic import IsotonicRegression  # slow to import

    least = 1 / (len(Y) + 2)
    curves = []
    for z, y in zip(logits.T, Y.T, strict=True):
        fitted = IsotonicRegression(y_min=least, y_max=1 - least).fit(z, y, weights)
        curves.append(np.stack([fitted.X_thresholds_, fitted.y_thresholds_]))
    return curves


def _read_steps(curve: Floats, logits: Floats) -> Floats:
    return np.interp(logits, curve[0], curve[1])


METHODS: dict[str, Method] = {
    "sigmoid": Method(_learn_sigmoids, _read_sigmoid),
    "isotonic": Method(_learn_steps, _read_steps),
}


def read_logits(dist: LabelsetDistribution) -> Floats:
    """Return the logits of the marginals, (n, L), finite."""
    return logit(dist.marginals()).clip(-LARGEST_LOGIT, LARGEST_LOGIT)


def _check_independent(dist: LabelsetDistribution) -> None:
    if not isinstance(dist, IndependentLabels):
        raise InputError(
            "`dist` must be IndependentLabels for a calibration of each label, got "
            f"{type(dist).__name__}. Calibrate the base learner of chains instead, e.g. "
            "EnsembleOfClassifierChains(CalibratedClassifierCV(LogisticRegression())), or use "
            "`TemperatureScaling`."
        )
