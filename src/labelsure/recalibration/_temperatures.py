"""`JointTemperature` and `LinkTemperature`: one number that makes distributions flatter or sharper.

Section 13 of `docs/algorithms.md` has the formulas.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import logsumexp

from labelsure._typing import Floats
from labelsure.distributions import LabelsetDistribution
from labelsure.recalibration._gate import Part, Recalibration, join_truth
from labelsure.saving import expect, is_number

LEAST_POWER, LARGEST_POWER = 0.01, 100.0
"""Beyond, a distribution is uniform or a point mass for all that matters: nothing tells larger
powers apart but instances that are all predicted right, or all wrong."""

LOG_LIMITS = (math.log(LEAST_POWER), math.log(LARGEST_POWER))

SAME = 1e-12
"""Mean log-probabilities closer than this are equal: rounding alone must not move a power."""


class Temperature(Recalibration):
    """What both temperatures share: one power, within limits.

    Parameters
    ----------
    gate
        As of `Recalibration`.
    """

    def _kept(self) -> float:
        return self.power_

    def _keep(self, learned: float) -> None:
        self.found_power_ = learned
        self.power_ = learned if self.is_kept_ else 1.0
        if self._is_at_limit:
            warnings.warn(
                f"The power of the {type(self).__name__} is at its limit, {learned:g}: one beyond "
                "would be more likely still. Look whether these instances are new to the model, or "
                "fit to more.",
                UserWarning,
                stacklevel=5,
            )

    @property
    def _is_at_limit(self) -> bool:
        return self.found_power_ in (LEAST_POWER, LARGEST_POWER)

    def _describe_learned(self) -> str:
        limit = ", which is its limit" if self._is_at_limit else ""
        return f", power {self.found_power_:.4g}{limit}"

    def _check_loaded(self) -> None:
        super()._check_loaded()
        expect(
            is_number(self.found_power_, LEAST_POWER, LARGEST_POWER),
            f"`found_power_` must lie within [{LEAST_POWER:g}, {LARGEST_POWER:g}]",
        )
        expected = self.found_power_ if self.is_kept_ else 1.0
        expect(self.power_ == expected, "`power_` must be the one found if kept, 1 if not")


class JointTemperature(Temperature):
    """Raise the probability of every labelset to one power, and divide by the sum.

    The power has the highest likelihood: with it, the mean log-probability (before) of the truth is
    the mean that the distributions (after) expect of it. Labelsets keep their order, so the most
    probable one stays. For all kinds but mixtures of more than 14 labels (chains, Bernoulli
    mixtures), which have a `LinkTemperature`.

    Parameters
    ----------
    gate
        Whether the power is kept only if it raises the log-probability of the truth on instances
        that it was not learned from: by five folds, the 95 % interval of the mean gain being above
        0. Otherwise the power is 1, which changes nothing.

    Attributes
    ----------
    power_
        Below 1 distributions become flatter, above 1 sharper.
    found_power_
        What was learned, kept or not.
    is_kept_
        Whether it is used.
    gain_, gain_low_, gain_high_
        Of the truth's mean log-probability, on instances not learned from, and its interval.
    n_samples_, n_impossible_
        Instances learned from, and those left out because their truth has probability 0.

    Examples
    --------
    Probabilities that are too sure of themselves:

    >>> import numpy as np
    >>> from labelsure import IndependentLabels, JointTemperature
    >>> logits = np.random.default_rng(0).normal(size=(500, 4))
    >>> truth = IndependentLabels(1 / (1 + np.exp(-logits))).sample(1, random_state=1)[:, 0]
    >>> dist = IndependentLabels(1 / (1 + np.exp(-3 * logits)))
    >>> temperature = JointTemperature().fit(dist, truth)
    >>> round(temperature.power_, 2)
    0.33
    >>> print(temperature)
    A joint temperature, power 0.3316: kept. The truth's mean log-probability gains +0.707...
    >>> temperature.transform(dist).marginals()[0].round(2), dist.marginals()[0].round(2)
    (array([0.53, 0.47, 0.65, 0.53]), array([0.59, 0.4 , 0.87, 0.58]))
    """

    _title = "A joint temperature"

    def _learn(self, parts: list[Part]) -> float:
        _, weights = join_truth(parts)
        logs = np.concatenate([part.log_prob() for part in parts])
        of_truth = np.average(logs, weights=weights)
        tops = [part.dist.profile().log_top for part in parts]

        def excess(log_power: float) -> float:
            """Return what the truth has more than is expected, which falls as the power rises."""
            power = float(np.exp(log_power))
            expected = []
            for part, log_top in zip(parts, tops, strict=True):
                after = part.dist.temper(power).profile()
                log_total = power * log_top - after.log_top
                expected.append((log_total - after.entropy) / power)
            return float(of_truth - np.average(np.concatenate(expected), weights=weights))

        return _as_power(_find_root(excess))

    def _apply(self, dist: LabelsetDistribution, learned: float) -> LabelsetDistribution:
        return dist.temper(learned)

    def _log_prob(self, part: Part, learned: float) -> Floats:
        # By the sum of all powers: what underflows in an array of probabilities is finite so.
        dist = part.dist
        log_total = learned * dist.profile().log_top - dist.temper(learned).profile().log_top
        return learned * part.log_prob() - log_total

    def _check_kinds(self, parts: list[Part]) -> None:
        for part in parts:
            part.dist[:1].temper(2.0)  # which says what to use instead


class LinkTemperature(Temperature):
    """Multiply the log-odds of each label, given those before it, by one power.

    For chains, where the sum over all labelsets that a `JointTemperature` needs is not known. It is
    another family of distributions (but for `IndependentLabels`, where both are the same), and may
    change which labelset is the most probable. The power has the highest likelihood, as far as a
    search in one dimension finds it: of several chains there may be more than one peak.

    Parameters
    ----------
    gate
        As for `JointTemperature`.

    Attributes
    ----------
    power_, found_power_, is_kept_, gain_, gain_low_, gain_high_, n_samples_, n_impossible_
        As of `JointTemperature`.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import ChainMixture, LinearChain, LinkTemperature
    >>> base = np.random.default_rng(0).normal(size=(500, 2))
    >>> def chain(factor):
    ...     links = factor * np.array([[0.0, 0.0], [2.0, 0.0]])
    ...     return ChainMixture([LinearChain([0, 1], factor * base, links)])
    >>> truth = chain(1.0).sample(1, random_state=1)[:, 0]
    >>> temperature = LinkTemperature().fit(chain(2.0), truth)
    >>> round(temperature.power_, 2), temperature.is_kept_
    (0.46, True)
    """

    _title = "A link temperature"

    def _learn(self, parts: list[Part]) -> float:
        links = [(part.dist.link_logits(part.truth), part.dist.member_weights()) for part in parts]
        _, of_instances = join_truth(parts)

        def loss(log_power: float) -> float:
            power = float(np.exp(log_power))
            logs = [_log_of_mixture(power * z, weights) for z, weights in links]
            return -float(np.average(np.concatenate(logs), weights=of_instances))

        return _as_power(_find_least(loss))

    def _apply(self, dist: LabelsetDistribution, learned: float) -> LabelsetDistribution:
        return dist.temper(learned, links=True)

    def _check_kinds(self, parts: list[Part]) -> None:
        for part in parts:
            part.dist[:1].temper(2.0, links=True)  # which says what to use instead


def _log_of_mixture(logits: Floats, weights: Floats | None) -> Floats:
    """Return log P of labelsets whose links have these log-odds, (n, n_chains, L) to (n,).

    `weights` are (n, n_chains), None where there is one chain.
    """
    by_chain = -np.logaddexp(0.0, -logits).sum(axis=2)
    return np.asarray(logsumexp(by_chain, axis=1, b=weights))


def _as_power(log_power: float) -> float:
    """Return the power of a logarithm, at a limit the limit itself."""
    limits = dict(zip(LOG_LIMITS, (LEAST_POWER, LARGEST_POWER), strict=True))
    return limits.get(log_power, float(np.exp(log_power)))


def _find_root(excess: Callable[[float], float]) -> float:
    """Return where a falling function of the log of the power is 0, or the limit before that."""
    first = 0.0
    value = excess(first)
    if abs(value) <= SAME:  # also where no power makes a difference
        return first
    step = np.log(2.0) if value > 0 else -np.log(2.0)
    while first not in LOG_LIMITS:
        second = float(np.clip(first + step, *LOG_LIMITS))
        if (excess(second) > 0) != (value > 0):
            return float(brentq(excess, min(first, second), max(first, second), xtol=1e-13))
        first = second
    return first


def _find_least(loss: Callable[[float], float]) -> float:
    """Return the log of the power with the smallest loss; 0 or a limit where these are as good."""
    search: Any = minimize_scalar(
        loss, bounds=LOG_LIMITS, method="bounded", options={"xatol": 1e-10}
    )
    for known in (0.0, *LOG_LIMITS):
        if loss(known) <= search.fun + SAME:
            return known
    return float(search.x)
