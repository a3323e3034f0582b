"""`AccuracyEstimator`: from what is known of a prediction to its estimated accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from labelsure._runtime.typing import Indices
from labelsure.distributions._probabilities import make_generator
from labelsure.estimation._batch_estimates import Dispersion, TrainingGain
from labelsure.estimation._calibration_sample import CalibrationSample, estimate_by_folds
from labelsure.estimation._design import check_penalty, check_values, choose_response
from labelsure.estimation._fitted_estimator import FittedEstimator
from labelsure.estimation._inputs import GroupLevels, check_groups, check_n_samples
from labelsure.estimation._label_calibration import LabelCalibration
from labelsure.estimation._labelset_frequencies import LabelsetFrequencies
from labelsure.estimation._models import FitSettings, Outcomes
from labelsure.estimation._suspect_truth import warn_of_suspect_truth
from labelsure.metrics.registry import MetricLike, check_empty, get_metric

N_FOLDS = 10


class AccuracyEstimator(FittedEstimator):
    """Estimate how accurate predicted labelsets are, from labelled examples of how they did.

    Parameters
    ----------
    metric
        "exact", "hamming", "jaccard", "f1", or a function of (tp, fp, fn, tn) with values in
        [0, 1].
    features
        What the estimate is made from: one candidate (HP, SE, CE, ...), "expected" (the expected
        accuracy of the decision), "n_predicted" (its number of labels), "is_empty", "frequency"
        (of the decision among the labelsets of the training data); several of these; "mix" (HP,
        TG, SE, CE, ME and CS together, the paper's), "full" (those with what the decision is) or
        "sharp" (that with the frequency). None means for `ridge` "sharp" if `fit` gets `Y_train`,
        and else "full", also on data that did not choose them the sharpest (`docs/features.md`),
        and calibrated nearly as well as any (`docs/calibration.md`).
    model
        "ridge" (the paper's logistic model with a ridge penalty) or "plugin" (the expected
        accuracy under the distribution, nothing fitted).
    empty
        The Jaccard and F1 of two empty labelsets.
    response
        What the ridge models: "value", the realised accuracy, or "rates", those of true and false
        positives and negatives, from which Jaccard and F1 follow, as in the paper.
    penalty
        Of the ridge, on standardised columns, as glmnet has it. None chooses the one with the least
        10-fold cross-validated deviance out of 20, those below 0.0003 left out. "paper" leaves out
        none, and estimates may then lie outside of the range of the accuracies fitted to.
    random_state
        Seed of the folds.
    decision
        What is judged where no `Y_pred` is given: "mode", the most probable labelset, or "best",
        the one with the highest expected accuracy.

    Attributes
    ----------
    features_
        Names of the features used.
    decision_
        What was judged when fitting: "mode", "best", "given" as `Y_pred`, or "partial" where that
        leaves labels open. What is estimated later must have been decided in the same way.
    penalty_
        The ridge's, chosen or given; None for other models.
    reference_
        The `Estimate` for the instances that it was fitted to.
    labelset_frequencies_
        The labelsets of the training data and how often each occurs, None without `Y_train`.
    training_gain_
        What `AccuracyAwareClassifier` adds to what was learned by cross-fitting; else none.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import AccuracyEstimator, IndependentLabels
    >>> rng = np.random.default_rng(0)
    >>> dist = IndependentLabels(rng.uniform(size=(2000, 3)))
    >>> Y = dist.sample(1, random_state=1)[:, 0]
    >>> estimator = AccuracyEstimator("exact").fit(dist[:1000], Y[:1000])
    >>> estimator.predict(dist[1000:1003]).round(2)
    array([0.48, 0.33, 0.47])
    >>> batch = estimator.estimate(dist[1000:])
    >>> print(f"{batch.mean:.2f}, from {batch.low:.2f} to {batch.high:.2f}")
    0.42, from 0.38 to 0.47
    """

    def __init__(
        self,
        metric: MetricLike = "jaccard",
        features: str | Sequence[str] | None = None,
        model: str = "ridge",
        empty: float = 1.0,
        response: str = "value",
        penalty: float | str | None = None,
        random_state: int | None = 0,
        decision: str = "mode",
    ) -> None:
        self.metric = metric
        self.features = features
        self.model = model
        self.empty = empty
        self.response = response
        self.penalty = penalty
        self.random_state = random_state
        self.decision = decision

    def fit(
        self,
        dist: Any,
        Y_true: Any = None,
        Y_pred: Any = None,
        *,
        Y_train: Any = None,
        slope_groups: Any = None,
        offset_groups: Any = None,
    ) -> Self:
        """Fit to predictions whose truth is known, on data that the classifier has not seen.

        Parameters
        ----------
        dist
            A `LabelsetDistribution`, or a table as `labelsure.ScoreTable` has it.
        Y_true
            (n, L) the truth; None with a table, which has tp, fp, fn and tn.
        Y_pred
            (n, L) what was predicted, or `PartialLabelsets`, of which the decided labels are
            judged; None means the mode, or what the table was made for.
        Y_train
            (m, L) labelsets of the instances that the classifier was trained on, none of which are
            fitted to here. How often a predicted labelset is among them makes estimates sharper
            (`docs/features.md`).
        slope_groups
            (n,) groups (e.g. data sets) with slopes and an offset of their own, or the name of a
            column of the table.
        offset_groups
            (n,) groups (e.g. classifiers) with an offset of their own.
        """
        metric, empty = get_metric(self.metric), check_empty(self.empty)
        model_class, names = self._model_class(), self._feature_names()
        model_class.check(names, slope=slope_groups is not None, offset=offset_groups is not None)
        response = choose_response(metric, self.response)
        table = self._read_table(dist, Y_true, Y_pred, names, self._check_decision())
        seen = None if Y_train is None else LabelsetFrequencies.read(Y_train, dist)
        if seen is not None and not table.knows_frequencies:
            table = seen.add_to(table, dist)
        names = self._feature_names(knows_frequencies=table.knows_frequencies)
        self.labelset_frequencies_ = seen
        counts = table.counts()
        check_n_samples(len(table))
        slope = check_groups(slope_groups, dist, len(table), "slope_groups")
        offset = check_groups(offset_groups, dist, len(table), "offset_groups")
        self.slope_levels_ = GroupLevels("slope_groups", slope)
        self.offset_levels_ = GroupLevels("offset_groups", offset)
        inputs = self._make_inputs(table, names, slope, offset)
        values = check_values(metric.values(*counts, empty=empty), metric)
        settings = FitSettings(
            response,
            len(self.slope_levels_),
            len(self.offset_levels_),
            check_penalty(self.penalty),
            self._make_folds(len(values)),
            extrapolates=isinstance(self.penalty, str),
        )
        targets = Outcomes(response.targets(counts, values), values)
        self.model_ = model_class().fit(inputs, targets, settings)
        self.features_ = names
        self.decision_ = table.decision_rule or "given"
        self.penalty_ = getattr(self.model_, "penalty", None)
        estimated = by_others = self.model_.predict(inputs)
        self.training_gain_ = TrainingGain()
        has_groups = slope is not None or offset is not None
        outcomes = None if has_groups else table.label_outcomes()
        if outcomes is not None:
            warn_of_suspect_truth(outcomes)
        self.label_calibration_ = (
            LabelCalibration.fit(outcomes, self.random_state)
            if outcomes is not None and model_class.learns
            else None
        )
        self.calibration_sample_ = None
        if not has_groups:  # a batch of one group would differ from the mixture of all
            chosen = replace(settings, penalty=self.penalty_)
            by_others = estimate_by_folds(model_class, inputs, targets, chosen, estimated)
            self.calibration_sample_ = CalibrationSample.of_fit(table, outcomes, values, by_others)
        # Around estimates that learned from them, accuracies scatter less than those to come will.
        self.dispersion_ = Dispersion.of_residuals(by_others, values)
        self.reference_ = self.estimate_sums(self._sum_inputs(inputs, estimated))
        return self

    def _make_folds(self, n_samples: int) -> Indices:
        folds = np.arange(n_samples) % min(N_FOLDS, n_samples)
        return make_generator(self.random_state).permutation(folds)
