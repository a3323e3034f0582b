"""`LabelwiseCalibration`: each label's probability by a curve of its own, scikit-learn's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression

from labelsure._typing import Floats, Integers
from labelsure.distributions import IndependentLabels, LabelsetDistribution
from labelsure.errors import InputError, unknown_name
from labelsure.recalibration._gate import Part, Recalibration, join_truth

LARGEST_LOGIT = 36.0
"""Of a probability: beyond, 1 - p cannot be told from 0."""


class LabelwiseCalibration(Recalibration):
    """Calibrate the probability of each label by itself. For `IndependentLabels`.

    For chains, put scikit-learn's `CalibratedClassifierCV` into the base learner instead, e.g.
    ``EnsembleOfClassifierChains(CalibratedClassifierCV(LogisticRegression()))``.

    Parameters
    ----------
    method
        "sigmoid", Platt's: two numbers for each label, for the log-odds; or "isotonic", a step
        function that never falls, for a thousand instances and more. Both are scikit-learn's. No
        step is closer to 0 or 1 than 1 / (n + 2): n instances cannot tell more.
    gate
        As for `TemperatureScaling`: all labels are calibrated, or none.

    Attributes
    ----------
    curves_
        For each label an array with two rows: slope and intercept of the log-odds ("sigmoid"), or
        log-odds and the probabilities there ("isotonic").
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
        logits = np.concatenate([_read_logits(part.dist) for part in parts])
        Y, weights = join_truth(parts)
        learn = METHODS[self.method].learn
        return [learn(z, y, weights) for z, y in zip(logits.T, Y.T, strict=True)]

    def _apply(self, dist: LabelsetDistribution, learned: list[Floats]) -> LabelsetDistribution:
        _check_independent(dist)
        read = METHODS[self.method].read
        columns = [read(curve, z) for curve, z in zip(learned, _read_logits(dist).T, strict=True)]
        return IndependentLabels(np.column_stack(columns), dist.label_names).with_index(dist.index)

    def _keep(self, learned: list[Floats]) -> None:
        self.curves_ = learned

    def _kept(self) -> list[Floats]:
        return self.curves_

    def _describe_learned(self) -> str:
        return f" ({self.method})"


class Method(NamedTuple):
    """How a curve is learned from log-odds, truth and weights, read at log-odds, and recognised."""

    learn: Callable[[Floats, Integers, Floats | None], Floats]
    read: Callable[[Floats, Floats], Floats]
    is_curve: Callable[[Any], bool]


def _learn_sigmoid(logits: Floats, truth: Integers, weights: Floats | None) -> Floats:
    fitted = _SigmoidCalibration().fit(logits, truth, weights)
    return np.array([[-fitted.a_], [-fitted.b_]])


def _read_sigmoid(curve: Floats, logits: Floats) -> Floats:
    found = curve[0, 0] * logits + curve[1, 0]
    return expit(found.clip(-LARGEST_LOGIT, LARGEST_LOGIT))


def _learn_steps(logits: Floats, truth: Integers, weights: Floats | None) -> Floats:
    least = 1 / (len(truth) + 2)
    fitted = IsotonicRegression(y_min=least, y_max=1 - least).fit(logits, truth, weights)
    return np.stack([fitted.X_thresholds_, fitted.y_thresholds_])


def _read_steps(curve: Floats, logits: Floats) -> Floats:
    return np.interp(logits, curve[0], curve[1])


def _is_array_of_two(curve: Any) -> bool:
    is_array = isinstance(curve, np.ndarray) and curve.dtype == np.float64 and curve.ndim == 2
    return is_array and len(curve) == 2 and curve.size > 0 and bool(np.isfinite(curve).all())


def _is_sigmoid(curve: Any) -> bool:
    return _is_array_of_two(curve) and curve.shape == (2, 1)


def _is_steps(curve: Any) -> bool:
    if not _is_array_of_two(curve):
        return False
    rises = bool((np.diff(curve, axis=1) >= 0).all())
    return rises and bool(curve[1, 0] > 0) and bool(curve[1, -1] < 1)


METHODS: dict[str, Method] = {
    "sigmoid": Method(_learn_sigmoid, _read_sigmoid, _is_sigmoid),
    "isotonic": Method(_learn_steps, _read_steps, _is_steps),
}


def _read_logits(dist: LabelsetDistribution) -> Floats:
    return logit(dist.marginals()).clip(-LARGEST_LOGIT, LARGEST_LOGIT)


def _check_independent(dist: LabelsetDistribution) -> None:
    if not isinstance(dist, IndependentLabels):
        raise InputError(
            "`dist` must be IndependentLabels for a calibration of each label, got "
            f"{type(dist).__name__}. Calibrate the base learner of chains instead, e.g. "
            "EnsembleOfClassifierChains(CalibratedClassifierCV(LogisticRegression())), or use "
            "`TemperatureScaling`."
        )
