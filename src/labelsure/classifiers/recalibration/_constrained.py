"""Calibration of distributions over the valid labelsets of rules."""

from __future__ import annotations

import numpy as np

from labelsure._runtime.typing import Floats, LabelNames, Labelsets, Parameters
from labelsure.classifiers.recalibration._base import (
    N_FOLDS,
    Part,
    Recalibration,
    common_labels,
    has_free_labels,
    join_logits,
)
from labelsure.classifiers.recalibration._dependence import fit_links
from labelsure.classifiers.recalibration._labelwise import fit_curves
from labelsure.classifiers.recalibration._temperature import TemperatureScaling
from labelsure.classifiers.recalibration._votes import VoteSmoothing
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._chain_mixture import ChainMixture
from labelsure.distributions._chains import LinearChain
from labelsure.distributions._constrained import (
    HardLinks,
    constrain,
    constrain_logits,
    log_likelihood,
    logits_of,
    mark,
)
from labelsure.distributions.constraints import LabelConstraints
from labelsure.errors import InputError, record_warnings
from labelsure.labelsets.label_rules import LabelRules


class Ruled(Recalibration):
    """Base class: a recalibration whose result obeys rules.

    Parameters
    ----------
    constraints
        The rules.
    """

    gate = True

    def __init__(self, constraints: LabelConstraints) -> None:
        self.constraints = constraints

    @property
    def _rules(self) -> LabelRules:
        return self.constraints.bind(self.label_names_, self.n_labels_)

    def _plain_log_prob(self, part: Part) -> Floats:
        return constrain(part.dist, self._rules)._log_prob(part.truth)


class ConstrainedCalibration(Ruled):
    """Restrict distributions to valid labelsets, and calibrate them where that helps.

    For independent labels two forms are fitted, and the one with the higher log-probability of
    held-out truths is used:

    - *through the rules*: a slope and an intercept for the logit of each label, shrunk towards
      common ones, with the highest likelihood after the restriction;
    - *links*: a chain of logistic regressions, parents first, in which the rules are links that
      nothing outweighs.

    Chains obey the rules link by link and get a temperature, votes get the ancestors of their
    labels and are smoothed, other joints are restricted and normalised. Where nothing passes the
    gate of `LabelwiseCalibration`, distributions are restricted alone.

    Parameters
    ----------
    constraints
        The rules.
    calibrate
        Whether anything is fitted; otherwise distributions are restricted alone.

    Attributes
    ----------
    form_
        The fitted recalibration that is used; None where distributions are restricted alone.
    broken_
        Share of the calibration rows whose most probable labelset breaks a rule without the
        constraints.
    is_kept_
        True: rules always hold.
    gain_, gain_low_, gain_high_
        Mean gain of the form in the log-probability of the truth on held-out rows, above that of
        the restriction alone, and its 95% interval.
    n_samples_, n_impossible_
        Size of the calibration set, and how many instances are left out because their truth has
        probability 0.

    See Also
    --------
    LabelConstraints : The rules.
    AccuracyAwareClassifier : Fits it by `constraints=`.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import ConstrainedCalibration, IndependentLabels, LabelConstraints
    >>> rng = np.random.default_rng(0)
    >>> truth = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 0, 1]])[rng.integers(0, 4, 300)]
    >>> p = 1 / (1 + np.exp(6 * rng.normal(size=truth.shape) + 6 - 12 * truth))  # overconfident
    >>> rules = LabelConstraints({"cat": "animal", "dog": "animal"}, exclusive=[["cat", "dog"]])
    >>> dist = IndependentLabels(p, label_names=["animal", "cat", "dog"])
    >>> calibration = ConstrainedCalibration(rules).fit(dist, truth)
    >>> print(calibration)
    Label constraints (2 parents, 1 exclusive group), calibrated through the rules: ...
    >>> len(rules.check(dist.mode(), dist.label_names)) > 0
    True
    >>> len(rules.check(calibration.transform(dist).mode(), dist.label_names))
    0
    """

    def __init__(self, constraints: LabelConstraints, calibrate: bool = True) -> None:
        super().__init__(constraints)
        self.calibrate = calibrate

    def _fit_aligned(self, parts: list[Part]) -> None:
        self.label_names_, self.n_labels_ = common_labels(parts)
        for part in parts:
            self.check_truth(part.truth, self.label_names_)
        n_broken = [np.count_nonzero(~self._rules.is_valid(part.dist.mode())) for part in parts]
        self.n_samples_, self.n_impossible_ = sum(len(part.dist) for part in parts), 0
        self.broken_ = sum(n_broken) / max(1, self.n_samples_)
        self.form_, self.is_kept_ = None, True
        self.gain_ = self.gain_low_ = self.gain_high_ = 0.0
        if not self.calibrate or self.n_samples_ < 2 * N_FOLDS:
            return
        prepared = self._prepare_all(parts)
        for form in self._forms(prepared[0].dist):
            with record_warnings(UserWarning):  # of a form that was not asked for
                form._fit_aligned(prepared)
            if form.is_kept_ and form.gain_ > self.gain_:
                self.form_ = form
                for name in ("gain_", "gain_low_", "gain_high_", "n_samples_", "n_impossible_"):
                    setattr(self, name, getattr(form, name))

    def check_truth(self, Y: Labelsets, label_names: LabelNames) -> None:
        """Raise InputError for true labelsets that break a rule."""
        self.constraints.bind(label_names, Y.shape[1]).refuse_broken(Y, "y")

    def _check_parameters(self) -> None:
        if not isinstance(self.constraints, LabelConstraints):
            raise InputError(
                f"`constraints` must be LabelConstraints, got {type(self.constraints).__name__}. "
                "Make some, e.g. `LabelConstraints(parents={'dog': 'animal'})`."
            )

    def _forms(self, dist: LabelsetDistribution) -> list[Recalibration]:
        """Recalibrations that may be fitted to such distributions."""
        if dist._votes is not None:
            return [VoteSmoothing()]
        if not has_free_labels(dist):
            return [TemperatureScaling()] if dist._has_conditionals else []
        forms = [RuledCurves(self.constraints)]
        return forms if self._rules.has_dependent_choice else [*forms, RuledLinks(self.constraints)]

    def _prepare(self, dist: LabelsetDistribution) -> LabelsetDistribution:
        """Restricted joints; independent labels as they are, since forms calibrate them first."""
        return dist if has_free_labels(dist) else constrain(dist, self._rules)

    def _prepare_all(self, parts: list[Part]) -> list[Part]:
        return [part._replace(dist=self._prepare(part.dist)) for part in parts]

    def _parameters(self) -> tuple[object, ...]:
        return () if self.form_ is None else self.form_._parameters()

    def _fit_parameters(self, parts: list[Part]) -> tuple[object, ...]:
        return () if self.form_ is None else self.form_._fit_parameters(self._prepare_all(parts))

    def _apply(self, dist: LabelsetDistribution, parameters: Parameters) -> LabelsetDistribution:
        if self.form_ is None:
            return constrain(dist, self._rules)
        return mark(self.form_._apply(self._prepare(dist), parameters), dist, self._rules)

    def __str__(self) -> str:
        form = "not calibrated" if self.form_ is None else str(self.form_).rstrip(".")
        return (
            f"Label constraints ({self.constraints.words}), {form[0].lower()}{form[1:]}. Without "
            f"them {self.broken_:.1%} of the model's own predictions would break a rule."
        )


class RuledCurves(Ruled):
    """Slope and intercept of each label's logit, with the highest likelihood under the rules."""

    _title, _fitted = "Calibrated through the rules", ("curves_",)

    def _fit_parameters(self, parts: list[Part]) -> tuple[Floats]:
        logits, Y, weights = join_logits(parts)
        counts = np.ones(len(Y)) if weights is None else weights
        rules = self._rules

        def loss(z: Floats) -> tuple[float, Floats]:
            logs, gradient = log_likelihood(rules, Y, z)
            return -float(counts @ logs), -counts[:, np.newaxis] * gradient

        return (fit_curves(logits, counts, loss, loss),)

    def _apply(self, dist: LabelsetDistribution, parameters: tuple[Floats]) -> LabelsetDistribution:
        slopes, intercepts = parameters[0]
        return constrain_logits(slopes * logits_of(dist) + intercepts, self._rules)


class RuledLinks(Ruled):
    """Chain of logistic regressions, parents first, in which rules are links."""

    _title, _fitted = "Dependence with the rules as links", ("curves_", "weights_")

    def _fit_parameters(self, parts: list[Part]) -> tuple[Floats, Floats]:
        logits, Y, weights = join_logits(parts)
        order = np.array(self._rules.order)
        is_open = HardLinks.of(self._rules, order).force(Y[:, order]) == 0
        return fit_links(logits[:, order], Y[:, order], weights, is_open=is_open)

    def _apply(
        self, dist: LabelsetDistribution, parameters: tuple[Floats, Floats]
    ) -> LabelsetDistribution:
        (slopes, intercepts), links = parameters
        order = self._rules.order
        base = slopes * logits_of(dist)[:, order] + intercepts
        return constrain(ChainMixture([LinearChain(order, base, links)]), self._rules)
