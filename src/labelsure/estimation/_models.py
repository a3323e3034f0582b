"""The models of accuracy: each is fitted to features and outcomes and predicts the accuracy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime.typing import Floats, Indices
from labelsure.errors import InputError
from labelsure.estimation._design import (
    RESPONSES,
    Inputs,
    Layout,
    Response,
    column_scales,
    log_rates,
    make_blocks,
    scale_columns,
)
from labelsure.estimation._ridge import Problem, covariance, fit_path, minimise, penalty_path

EXPECTED = "expected"
"""The feature that is the expected accuracy of the decision itself."""


PENALTY_FLOOR = 3e-4
"""Below it collinear features get coefficients that extrapolate (`docs/calibration.md`)."""


@dataclass(frozen=True)
class Outcomes:
    """What a model is fitted to.

    Parameters
    ----------
    targets
        (n, K) counts of the response's classes.
    values
        (n,) accuracies.
    """

    targets: Floats
    values: Floats


@dataclass(frozen=True)
class FitSettings:
    """How a model is fitted.

    Parameters
    ----------
    response
        How the accuracy is modelled.
    n_slope_groups, n_offset_groups
        0 where there are no groups.
    penalty
        Of the ridge; None chooses it by cross-validation.
    folds
        (n,) the fold of each instance.
    extrapolates
        Whether any penalty may be chosen, and estimates may leave the range of the accuracies that
        the model was fitted to.
    """

    response: Response
    n_slope_groups: int
    n_offset_groups: int
    penalty: float | None
    folds: Indices
    extrapolates: bool


class Model(ABC):
    """A model of accuracy.

    `learns` says whether fitting changes what it predicts, `default` which features it uses where
    none are named.
    """

    learns = True
    default: str

    @classmethod
    @abstractmethod
    def check(cls, features: tuple[str, ...], *, slope: bool, offset: bool) -> None:
        """Say so if the model cannot use these features or groups."""

    @abstractmethod
    def fit(self, inputs: Inputs, outcomes: Outcomes, settings: FitSettings) -> Self:
        """Fit, and return itself."""

    @abstractmethod
    def predict(self, inputs: Inputs) -> Floats:
        """Return the estimated accuracies, (n,)."""

    @abstractmethod
    def sum_slopes(self, inputs: Inputs) -> Floats:
        """Return a sum over instances, (m,), from which `mean_variance` follows."""

    @abstractmethod
    def mean_variance(self, slopes: Floats) -> float:
        """Return the variance that fitting leaves in the mean of the estimates.

        Parameters
        ----------
        slopes
            (m,) what `sum_slopes` returns, divided by the number of instances.
        """


class RidgeModel(Model):
    """The paper's: logit accuracy is linear in the features, slopes and offsets by group."""

    default = "full"

    @classmethod
    def check(cls, features: tuple[str, ...], *, slope: bool, offset: bool) -> None:
        """Take any features and groups."""

    def fit(self, inputs: Inputs, outcomes: Outcomes, settings: FitSettings) -> Self:
        """Fit along a path of penalties, and keep the fit at the best one."""
        response = settings.response
        self.response = response.name
        self.layout = Layout(
            inputs.features.shape[1], settings.n_slope_groups, settings.n_offset_groups
        )
        design = list(make_blocks(inputs.features, inputs.slope, inputs.offset, self.layout))
        self.scales = column_scales(design, outcomes.targets.sum(axis=1), self.layout)
        design = scale_columns(design, self.scales)
        problem = Problem(design, outcomes.targets, response.n_free, self.layout)
        everything = np.ones((len(inputs), 1))
        # Products of small blocks: threads that wait for each other cost more than they do.
        with one_blas_thread():
            start = self._choose_penalty(problem, settings)
            self.coefficients = minimise(problem, start, everything, self.penalty)[0]
            self.covariance = covariance(problem, self.coefficients, self.penalty)
        values = outcomes.values
        self.range = (0.0, 1.0)
        if not settings.extrapolates:
            self.range = (float(values.min()), float(values.max()))
        return self

    def _choose_penalty(self, problem: Problem, settings: FitSettings) -> Floats:
        self.path: dict[str, Floats] = {}
        if settings.penalty is not None:
            self.penalty = settings.penalty
            return problem.start(1)
        penalties = penalty_path(problem)
        if not settings.extrapolates:
            penalties = penalties[: max(1, int((penalties >= PENALTY_FLOOR).sum()))]
        fit = fit_path(problem, penalties, settings.folds)
        self.path = {"penalty": fit.penalties, "deviance": fit.deviances}
        self.penalty = float(fit.penalties[fit.best])
        return fit.coefficients[[fit.best]]

    def predict(self, inputs: Inputs) -> Floats:
        """Return the estimated accuracies, (n,)."""
        estimates = np.empty(len(inputs))
        for block, rates in self._rates(inputs):
            estimates[block.rows] = RESPONSES[self.response].accuracy(rates)
        return np.clip(estimates, *self.range)

    def sum_slopes(self, inputs: Inputs) -> Floats:
        """Return the derivatives of the estimates by the coefficients, summed over instances."""
        response = RESPONSES[self.response]
        gradient = np.zeros((response.n_free, self.layout.n_columns))
        for block, rates in self._rates(inputs):
            local = response.slopes(rates).T @ block.values
            gradient[:, block.columns] += local / self.scales[block.columns]
        return gradient.ravel()

    def mean_variance(self, slopes: Floats) -> float:
        """Return the delta method's variance of the mean estimate."""
        return float(slopes @ self.covariance @ slopes)

    def _rates(self, inputs: Inputs) -> Any:
        raw = self.coefficients / self.scales
        n_classes = RESPONSES[self.response].n_classes
        for block in make_blocks(inputs.features, inputs.slope, inputs.offset, self.layout):
            yield block, np.exp(log_rates(block, raw[np.newaxis], n_classes))[:, :, 0].T


class PluginModel(Model):
    """The expected accuracy under the distribution itself; nothing is fitted."""

    learns = False
    default = EXPECTED

    @classmethod
    def check(cls, features: tuple[str, ...], *, slope: bool, offset: bool) -> None:
        """Say so if anything else is asked for."""
        if features != (EXPECTED,):
            raise InputError(
                f"`features` must be None or {EXPECTED!r} for model='plugin', which is the "
                f"expected accuracy itself, got {', '.join(features)}. Use model='ridge'."
            )
        if slope or offset:
            raise InputError(
                "`slope_groups` and `offset_groups` must be None for model='plugin', which fits "
                "nothing. Use model='ridge'."
            )

    def fit(self, inputs: Inputs, outcomes: Outcomes, settings: FitSettings) -> Self:
        """Do nothing."""
        return self

    def predict(self, inputs: Inputs) -> Floats:
        """Return the expected accuracies, (n,)."""
        return np.clip(inputs.features[:, 0], 0.0, 1.0)

    def sum_slopes(self, inputs: Inputs) -> Floats:
        """Return nothing: nothing was fitted."""
        return np.empty(0)

    def mean_variance(self, slopes: Floats) -> float:
        """Return 0: nothing was fitted."""
        return 0.0


ACCURACY_MODELS: dict[str, type[Model]] = {
    "ridge": RidgeModel,
    "plugin": PluginModel,
}
"""The models by name. A new one is a class and an entry here."""
