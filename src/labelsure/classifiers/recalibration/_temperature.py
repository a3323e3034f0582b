"""Temperature scaling: one temperature for all logits of a distribution."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime.typing import Estimator, Floats
from labelsure.classifiers.recalibration._base import Part, Recalibration, join_truth
from labelsure.distributions._base import LabelsetDistribution
from labelsure.errors import warn

LEAST, LARGEST = 0.01, 100.0
"""Beyond, a distribution is a point mass or uniform for all that matters: only instances that are
all predicted right, or all wrong, distinguish temperatures there."""

LOG_LIMITS = (math.log(LEAST), math.log(LARGEST))

SAME = 1e-12
"""Mean log-probabilities closer than this are equal: rounding alone must not move a temperature."""


class TemperatureScaling(Recalibration):
    """Divide all logits by one temperature, for distributions that are overconfident or too flat.

    The temperature maximises the likelihood of the calibration set. What it divides is what a kind
    of distribution is made of, see `LabelsetDistribution.temper`: logits of labels, of labels given
    those before them, or log-probabilities of labelsets. Of `IndependentLabels`, dense
    distributions and tables the most probable labelset stays the same, of chains, trellises and
    mixtures it may change.

    Parameters
    ----------
    gate
        Whether the temperature is kept only if it raises the log-probability of the truth on
        held-out instances: in five-fold cross-validation, the 95% interval of the mean gain must
        lie above 0. Otherwise the temperature is 1, which changes nothing.

    Attributes
    ----------
    temperature_
        Above 1 distributions become flatter, below 1 sharper.
    found_temperature_
        The one with the highest likelihood, kept or not.
    is_kept_
        Whether it is used.
    gain_, gain_low_, gain_high_
        Mean gain in the log-probability of the truth on held-out instances, and its 95% interval.
    n_samples_, n_impossible_
        Size of the calibration set, and how many instances are left out because their truth has
        probability 0.

    See Also
    --------
    LabelwiseCalibration : Platt scaling of each label, for independent labels.
    RecalibratedClassifier : A classifier and its recalibration in one estimator.
    LabelsetDistribution.temper : Apply a temperature that you already know.

    Notes
    -----
    Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks,
    arXiv:1706.04599. For several chains or other mixtures the likelihood may have more than one
    peak, of which a bounded search finds one.

    Examples
    --------
    Overconfident probabilities:

    >>> import numpy as np
    >>> from labelsure import IndependentLabels, TemperatureScaling
    >>> logits = np.random.default_rng(0).normal(size=(500, 4))
    >>> truth = IndependentLabels(1 / (1 + np.exp(-logits))).sample(1, random_state=1)[:, 0]
    >>> dist = IndependentLabels(1 / (1 + np.exp(-3 * logits)))
    >>> scaling = TemperatureScaling().fit(dist, truth)
    >>> round(scaling.temperature_, 2)
    3.02
    >>> print(scaling)
    Temperature scaling, temperature 3.016: kept. Mean gain in the truth's log-probability on
    held-out rows: +0.707...
    >>> scaling.transform(dist).marginals()[0].round(2), dist.marginals()[0].round(2)
    (array([0.53, 0.47, 0.65, 0.53]), array([0.59, 0.4 , 0.87, 0.58]))
    """

    _title, _fitted = "Temperature scaling", ("found_temperature_",)
    found_temperature_: float

    def _fit_parameters(self, parts: list[Part]) -> tuple[float]:
        by_temperature = [part.dist._tempered_log_prob(part.truth) for part in parts]
        _, weights = join_truth(parts)

        def loss(log_temperature: float) -> float:
            temperature = math.exp(log_temperature)
            logs = np.concatenate([log_prob(temperature) for log_prob in by_temperature])
            return -float(np.average(logs, weights=weights))

        search: Estimator = minimize_scalar(
            loss, bounds=LOG_LIMITS, method="bounded", options={"xatol": 1e-6}
        )
        # 1 and the limits themselves, where these are as good.
        for log_candidate, candidate in zip((0.0, *LOG_LIMITS), (1.0, LEAST, LARGEST), strict=True):
            if loss(log_candidate) <= search.fun + SAME:
                return (candidate,)
        return (math.exp(search.x),)

    def _apply(self, dist: LabelsetDistribution, parameters: tuple[float]) -> LabelsetDistribution:
        return dist.temper(*parameters)

    def _log_prob(self, part: Part, parameters: tuple[float]) -> Floats:
        # In logs: what underflows in an array of probabilities is finite so.
        return part.dist._tempered_log_prob(part.truth)(*parameters)

    def _warn_of_parameters(self) -> None:
        if self._is_at_limit:
            warn(
                f"The temperature is at its limit, {self.found_temperature_:g}. Check that the "
                "model was not trained on these instances, or fit to more.",
                UserWarning,
            )

    @property
    def temperature_(self) -> float:
        """The temperature that is used: 1 where none is kept."""
        check_is_fitted(self, "is_kept_")
        return self.found_temperature_ if self.is_kept_ else 1.0

    @property
    def _is_at_limit(self) -> bool:
        return self.found_temperature_ in (LEAST, LARGEST)

    def _describe_parameters(self) -> str:
        limit = ", which is its limit" if self._is_at_limit else ""
        return f", temperature {self.found_temperature_:.4g}{limit}"
