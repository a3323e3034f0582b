"""What says how accurate a batch is, from calibration data and the batch without its labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm, t

import labelsure as ls
from benchmarks.batch_draws import Floats, Scored

LEVEL = 0.95
N_LABELLED = 30
"""Of the batch, drawn at random, for the ways that use a few labels."""


@dataclass(frozen=True)
class Answer:
    """What a method says: a mean with an interval, if it has one; or nothing, if it refuses."""

    mean: float = np.nan
    low: float = np.nan
    high: float = np.nan
    effective: float = np.nan

    @property
    def refused(self) -> bool:
        """Whether it says no number."""
        return bool(np.isnan(self.mean))


def say_calibration_mean(metric: str, calibration: Scored, batch: Scored) -> Answer:
    """Say that the batch is as accurate as the calibration data are."""
    values = calibration.accuracy(metric)
    error = values.std(ddof=1) * np.sqrt(1 / len(values) + 1 / len(batch))
    margin = norm.ppf((1 + LEVEL) / 2) * error
    return Answer(values.mean(), values.mean() - margin, values.mean() + margin)


def say_expected(metric: str, calibration: Scored, batch: Scored) -> Answer:
    """Say what the classifier expects, which is the package's model="plugin"."""
    found = ls.AccuracyEstimator(metric, model="plugin").estimate(batch.table, level=LEVEL)
    return Answer(found.mean, found.low, found.high)


def say_top_probability(metric: str, calibration: Scored, batch: Scored) -> Answer:
    """Say the mean probability of the predicted labelset: HP, taken for an accuracy."""
    return Answer(float(np.exp(batch.table["log_top"]).mean()))


def say_average_confidence(metric: str, calibration: Scored, batch: Scored) -> Answer:
    """Say the mean probability that a label is decided rightly, taken for an accuracy."""
    return Answer(float(batch.confidence.mean()))


def threshold_confidence(known: Floats, accuracy: Floats, new: Floats) -> float:
    """Return the share of new confidences above the threshold that the known accuracy gives.

    Average thresholded confidence (Garg and others, 2022). On the calibration data, the share of
    confidences above the threshold is the mean accuracy; here also where accuracies are fractions.

    Parameters
    ----------
    known, accuracy
        (n,) confidence and accuracy of the calibration data.
    new
        (N,) confidence in the batch.
    """
    n_above = round(float(accuracy.mean()) * len(known))
    if n_above == 0:
        return float((new > known.max()).mean())
    return float((new >= np.sort(known)[len(known) - n_above]).mean())


def say_thresholded(metric: str, calibration: Scored, batch: Scored) -> Answer:
    """Say ATC, with the classifier's own expected accuracy as the confidence."""
    known, new = calibration.expected(metric), batch.expected(metric)
    return Answer(threshold_confidence(known, calibration.accuracy(metric), new))


def say_difference(metric: str, calibration: Scored, batch: Scored) -> Answer:
    """Say DoC (Guillory and others, 2021): accuracy changes by as much as mean confidence does."""
    change = batch.expected(metric).mean() - calibration.expected(metric).mean()
    return Answer(float(np.clip(calibration.accuracy(metric).mean() + change, 0, 1)))


Method = Callable[[str, Scored, Scored], Answer]

BASELINES: dict[str, Method] = {
    "calibration mean": say_calibration_mean,
    "expected accuracy": say_expected,
    "HP": say_top_probability,
    "average confidence": say_average_confidence,
    "ATC": say_thresholded,
    "DoC": say_difference,
}


def average(values: Floats, n_batch: int) -> Answer:
    """Say the mean of a few labelled instances of a batch, with a t-interval for all of it."""
    n = len(values)
    error = values.std(ddof=1) * np.sqrt(1 / n - 1 / n_batch)
    margin = t.ppf((1 + LEVEL) / 2, n - 1) * error
    return Answer(values.mean(), values.mean() - margin, values.mean() + margin)


class Ours:
    """An estimator that was fitted to calibration data, and the ways to ask it.

    Parameters
    ----------
    metric
        Of accuracy.
    calibration
        What it is fitted to.
    Y_train
        What the classifier was trained on.
    """

    def __init__(self, metric: str, calibration: Scored, Y_train: Any) -> None:
        self.estimator = ls.AccuracyEstimator(metric)
        self.estimator.fit(calibration.dist, calibration.Y, Y_train=Y_train)

    def answers(
        self, batch: Scored, rng: np.random.Generator, *, all_ways: bool
    ) -> dict[str, Answer]:
        """Return what it says of a batch, asked plainly or in every way."""
        plain = {"ours": self._ask(batch.table, shift="ignore")}
        if not all_ways:
            return plain
        rows = rng.permutation(len(batch))[:N_LABELLED]
        known = {"Y_true": batch.Y[rows], "rows": rows}
        return plain | {
            "ours weighted": self._ask(batch.dist, shift="weighted"),
            "ours tilted": self._ask(batch.dist, shift="labels"),
            f"ours, {N_LABELLED} labels": self._ask(batch.dist, **known),
            f"{N_LABELLED} labels alone": average(
                batch.accuracy(str(self.estimator.metric))[rows], len(batch)
            ),
        }

    def _ask(self, batch: Any, **how: Any) -> Answer:
        try:
            found = self.estimator.estimate(batch, level=LEVEL, **how)
        except ls.NotEstimableError as refusal:
            return Answer(effective=refusal.effective_size)
        return Answer(found.mean, found.low, found.high, found.effective_size or np.nan)

    def residual_variance(self, other: Scored) -> float:
        """Return the mean squared residual on predictions that it was not fitted to."""
        residuals = other.accuracy(str(self.estimator.metric)) - self.estimator.predict(other.table)
        return float((residuals**2).mean())
