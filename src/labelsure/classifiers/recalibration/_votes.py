"""Votes smoothed towards the prevalence of labels, or towards another source."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar

from labelsure._runtime import limits as _limits
from labelsure._runtime.typing import Estimator, Floats
from labelsure.classifiers.recalibration._base import Part, Recalibration, join_truth
from labelsure.classifiers.recalibration._temperature import LOG_LIMITS
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._constrained import constrain
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._smoothed_table import SmoothedTable
from labelsure.errors import InputError


class VoteSmoothing(Recalibration):
    """Smooth the shares of few votes towards the prevalence of each label.

    Three of three votes are no certainty. With m votes for an instance and the strength a, a / (m +
    a) of the probability goes to independent labels whose marginals are (m * share + a *
    prevalence) / (m + a); the votes keep the rest. The strength maximises the likelihood of the
    calibration set. So no labelset is impossible. Where another source has given each label a
    probability as well, this takes the place of the prevalence.

    Parameters
    ----------
    gate
        Whether the strength is kept only if it raises the log-probability of the truth on held-out
        instances: in five-fold cross-validation, the 95% interval of the mean gain must lie above
        0. A truth without a vote counts with probability 2**-24 before. Otherwise the
        shares stay as they are.

    Attributes
    ----------
    strength_
        How many votes the prevalence is worth, from 0.01 to 100.
    prevalence_
        (L,) of the labels in the calibration set, (k + 0.5) / (n + 1) for k of n.
    is_kept_
        Whether the smoothing is used.
    gain_, gain_low_, gain_high_
        Mean gain in the log-probability of the truth on held-out instances, and its 95% interval.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import LabelsetTable
    >>> from labelsure.classifiers import VoteSmoothing
    >>> p = np.random.default_rng(0).beta(1, 3, size=(300, 1, 3))
    >>> draws = (np.random.default_rng(1).uniform(size=(300, 4, 3)) < p).astype(int)
    >>> votes = LabelsetTable.from_samples(draws[:, :3])
    >>> smoothing = VoteSmoothing().fit(votes, draws[:, 3])
    >>> print(smoothing)
    Vote smoothing, strength ...: kept. Mean gain in the truth's log-probability ...
    >>> smoothing.transform(votes)
    SmoothedTable(n_samples=300, n_labels=3)
    """

    _title, _fitted = "Vote smoothing", ("strength_", "prevalence_")
    strength_: float

    def _check_kind(self, dist: LabelsetDistribution) -> None:
        if dist._votes is None:
            raise InputError(
                "`dist` must be a LabelsetTable of votes, made by `LabelsetTable.from_samples`, "
                f"got {type(dist).__name__}."
            )

    def _plain_log_prob(self, part: Part) -> Floats:
        return np.maximum(super()._plain_log_prob(part), math.log(_limits.PROBABILITY_FLOOR))

    def _fit_parameters(self, parts: list[Part]) -> tuple[float, Floats]:
        Y, weights = join_truth(parts)
        counts = np.ones(len(Y)) if weights is None else weights * (len(Y) / weights.sum())
        prevalence = (counts @ Y + 0.5) / (len(Y) + 1)

        def loss(log_strength: float) -> float:
            parameters = math.exp(log_strength), prevalence
            logs = np.concatenate([self._log_prob(part, parameters) for part in parts])
            return -float(np.average(logs, weights=weights))

        search: Estimator = minimize_scalar(
            loss, bounds=LOG_LIMITS, method="bounded", options={"xatol": 1e-3}
        )
        return math.exp(search.x), prevalence

    def _apply(
        self, dist: LabelsetDistribution, parameters: tuple[float, Floats]
    ) -> LabelsetDistribution:
        (strength, prevalence), votes = parameters, dist._votes
        assert votes is not None  # see `_check_kind`
        prior = prevalence if votes.prior is None else votes.prior
        share = strength / (votes.n_votes + strength)
        p = votes.table.marginals() * (1 - share)[:, np.newaxis] + share[:, np.newaxis] * prior
        smooth = IndependentLabels(p, dist.label_names)._with_index(dist.index)
        if dist.rules is not None:
            return SmoothedTable(votes.table, constrain(smooth, dist.rules), share)
        return SmoothedTable(votes.table, smooth, share)

    def _describe_parameters(self) -> str:
        return f", strength {self.strength_:.3g}"
