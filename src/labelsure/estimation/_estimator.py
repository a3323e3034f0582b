"""`AccuracyEstimator`: estimated accuracies by logistic regression on features of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypedDict

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime.typing import Floats, Indices, LabelsetsLike
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._probabilities import make_generator
from labelsure.errors import InputError, unknown_name
from labelsure.estimation._accuracy_model import (
    EXPECTED,
    FREQUENCY,
    LabelsetFrequencies,
    RidgeModel,
    check_features,
    feature_matrix,
)
from labelsure.estimation._batch_estimates import (
    INTERVALS,
    MIN_CLUSTERS,
    BatchSums,
    Estimate,
    Scatter,
    check_enough_labels,
    few_labels_interval,
    mean_interval,
    read_few_labels,
)
from labelsure.estimation._batch_summary import BatchSummary, RowEstimates
from labelsure.estimation._diagnostics import (
    rank_excess,
    warn_if_truth_is_suspect,
    warn_of_chosen_rows,
)
from labelsure.estimation._importance_weights import weigh_by_inputs, weighted_interval
from labelsure.estimation._label_estimates import (
    EntryCounts,
    LabelBatch,
    LabelCalibration,
    LabelEstimates,
    check_label_metric,
    check_labels_are_known,
)
from labelsure.estimation._label_shift import DensityRatios, PrevalenceEstimates
from labelsure.estimation._shift import (
    MIN_ROWS,
    ShiftTest,
    compare_views,
    sample_rows,
    warn_of_shift,
)
from labelsure.estimation.score_table import (
    ESTIMATED,
    ScoreTable,
    calibration_marginals,
    keep_marginals,
)
from labelsure.labelsets.sparse import differing_rows
from labelsure.metrics.clusters import (
    design_effect,
    first_rows,
    number_clusters,
    read_clusters,
)
from labelsure.metrics.mean_tests import dispersion_ratio
from labelsure.metrics.registry import EXACT, PRECISION, RECALL, MetricLike, check_empty, get_metric
from labelsure.saving import Savable

if TYPE_CHECKING:
    import pandas as pd

COMMON_NOUNS = (EXACT, RECALL, PRECISION)  # no capital letter within a sentence
SHIFTS = ("test", "ignore", "weighted")

KINDS = {"mode": "the most probable labelsets", "given": "predictions given as `Y_pred`"}
"""Decision rules in words, for messages."""

N_FOLDS = 5
MIN_FOLDED = 20  # clusters; with fewer, residuals are those of the fit itself

TOO_FEW = f"fewer than {MIN_ROWS} rows"
CROSS_FITTED = (
    "the model is cross-fitted: the calibration predictions come from the fold models, not from "
    "the final model; hold rows out, e.g. by cv=0.4"
)
"""Reasons for which the shift test is skipped."""


class BatchSettings(TypedDict, total=False):
    """Keyword arguments of `AccuracyEstimator.estimate`."""

    metric: str | None
    level: float
    shift: str
    Y_true: LabelsetsLike
    rows: Any
    interval: str


class AccuracyEstimator(Savable, BaseEstimator):  # type: ignore[misc]
    """Estimate the accuracy of predicted labelsets, calibrated on labelled rows.

    Parameters
    ----------
    metric
        "exact", "hamming", "jaccard", "f1", "recall", "precision", or a function of
        (tp, fp, fn, tn) with values in [0, 1].
    features
        What the accuracy estimator is fitted to, one name or several:

        - a candidate: "HP", "TG", "SE", "CE", "ME", "GI" or "CS";
        - "expected": expected accuracy of the prediction under the distribution;
        - "n_predicted", "is_empty": number of predicted labels, and whether there are none;
        - "frequency": how often the predicted labelset occurs in `Y_train`;
        - "mix": the six candidates of the paper; "full": these with "expected", "n_predicted" and
          "is_empty"; "sharp": "full" with "frequency".

        None chooses "sharp" if `fit` gets `Y_train`, otherwise "full".
    empty
        Value of Jaccard and F1 for two empty labelsets.
    random_state
        Seed of the folds that measure residuals.

    Attributes
    ----------
    features_
        Names of the features used.
    decision_
        Which predictions were judged in `fit`: "mode", or what the decisions of a table are called.
        Later predictions must be made in the same way.
    reference_
        The `Estimate` for the calibration set.
    calibration_
        The `ScoreTable` of the calibration set, with accuracies that models of other rows
        estimated: what estimators of other metrics and shift tests need.
    labelset_frequencies_
        Labelsets of the training data and how often each occurs; None without `Y_train`.

    See Also
    --------
    AccuracyAwareClassifier : Fits classifier, estimator and policy together.
    expected_accuracy : Expected accuracy under the distribution, nothing fitted.
    reliability : Compare estimates with actual accuracies.
    shift_test : Test whether a batch is like the calibration set.

    Notes
    -----
    Logistic regression on confidence candidates is the method of Park and Read, Estimating
    multi-label accuracy using labelset distributions. With labels of some rows, `estimate` uses
    prediction-powered inference: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic (2023),
    Prediction-powered inference, Science 382, arXiv:2301.09633. Its interval is Student's with
    pseudo-rows, in the manner of Agresti and Coull (1998), or by betting: Waudby-Smith and Ramdas
    (2024), arXiv:2010.09686.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import AccuracyEstimator, IndependentLabels
    >>> rng = np.random.default_rng(0)
    >>> dist = IndependentLabels(rng.uniform(size=(2000, 3)))
    >>> Y = dist.sample(1, random_state=1)[:, 0]
    >>> estimator = AccuracyEstimator("exact").fit(dist[:1000], Y[:1000])
    >>> estimator.predict(dist[1000:1003]).round(2)
    array([0.46, 0.33, 0.46])
    >>> print(estimator.estimate(dist[1000:]))
    Mean exact match 0.424 (95% interval 0.382 to 0.466, n = 1,000; calibrated on 1,000 held-out
    rows; no shift detected).
    """

    def __init__(
        self,
        metric: MetricLike = "jaccard",
        features: str | Sequence[str] | None = None,
        empty: float = 1.0,
        random_state: int | None = 0,
    ) -> None:
        self.metric = metric
        self.features = features
        self.empty = empty
        self.random_state = random_state

    @one_blas_thread()  # small matrices: threads that wait for each other cost more
    def fit(
        self,
        dist: Any,
        Y_true: LabelsetsLike = None,
        Y_pred: LabelsetsLike = None,
        *,
        Y_train: LabelsetsLike = None,
        clusters: Any = None,
    ) -> Self:
        """Fit to predictions whose truth is known, on data that the classifier has not seen.

        Parameters
        ----------
        dist
            A `LabelsetDistribution`, or a table as `labelsure.ScoreTable` has it.
        Y_true
            (n, L) the truth; None with a table, which has tp, fp, fn and tn.
        Y_pred
            (n, L) what was predicted; None means the mode, or what the table was made for.
            `decide(dist, metric)` has the decisions with the highest expected accuracy.
        Y_train
            (m, L) labelsets of the rows that the classifier was trained on, none of which are
            fitted to here. How often a predicted labelset is among them makes estimates sharper.
        clusters
            (n,) the cluster of each row, where rows depend on each other (ten photos of one event):
            intervals then count clusters, and batches are taken to be clustered alike.
        """
        metric, empty = get_metric(self.metric), check_empty(self.empty)
        names = check_features("full" if self.features is None else self.features)
        table = self._read_table(dist, Y_pred, names, Y_true)
        frequencies = None if Y_train is None else LabelsetFrequencies.read(Y_train, dist)
        table = table if frequencies is None else frequencies.add_to(table)
        if clusters is not None:
            table = table.with_columns({})
            table.clusters = read_clusters(clusters, table.index, len(table), "`dist`")
        if self.features is None and table.knows_frequencies:
            names = check_features("sharp")
        if FREQUENCY in names and not table.knows_frequencies:
            raise InputError(
                "`Y_train` must be given for an estimator that counts labelsets "
                f"(features={self.features!r}), got None."
            )
        values = table.accuracy(metric, empty)
        if len(table) < 2:
            raise InputError(
                f"At least two rows are needed to fit, got {len(table)}. Pass a few hundred for "
                "useful estimates."
            )
        is_outside = (values < 0) | (values > 1)
        if is_outside.any():
            raise InputError(
                f"The metric {metric.name!r} must have values in [0, 1] to be estimated, got "
                f"{values[is_outside][0]:g}. Rescale it."
            )
        features = feature_matrix(table, names, metric, empty)
        self.labelset_frequencies_, self.features_ = frequencies, names
        self.decision_ = table.decision_rule or "given"
        codes = np.arange(len(table)) if table.clusters is None else number_clusters(table.clusters)
        self.model_ = RidgeModel().fit(features, values, codes)
        self.label_calibration_ = None
        if table.knows_labels:
            warn_if_truth_is_suspect(table)
            self.label_calibration_ = LabelCalibration.fit(table, self.random_state, codes)
            self.density_ratios_ = DensityRatios.fit(table, codes)
        estimated = self._estimate_by_folds(features, values, codes)
        self.calibration_ = table._keep(estimated)
        # Out of fold: residuals of the fit itself are smaller than those of new rows.
        bernoulli_variance, residuals = estimated * (1 - estimated), (values - estimated) ** 2
        ratio = float(dispersion_ratio(bernoulli_variance.sum(), residuals.sum()))
        effect = design_effect(values - estimated, codes)
        self.scatter_ = Scatter(ratio, len(table), int(codes.max()) + 1, effect)
        accuracy = self.model_.predict(features)
        rows = RowEstimates(table, accuracy, features, self.model_, by_label=False)
        self.reference_ = self.estimate(BatchSummary(rows.sums()), shift="ignore")
        return self

    def _estimate_by_folds(self, features: Floats, values: Floats, clusters: Indices) -> Floats:
        """Out-of-fold estimates, (n,), with folds of whole clusters; in-sample for few clusters."""
        n_clusters = int(clusters.max()) + 1
        if n_clusters < MIN_FOLDED:
            return self.model_.predict(features)
        folds = make_generator(self.random_state).permutation(np.arange(n_clusters) % N_FOLDS)
        folds = folds[clusters]
        estimated = np.empty(len(values))
        for fold in range(N_FOLDS):
            is_own = folds == fold
            model = RidgeModel().fit(features[~is_own], values[~is_own])
            estimated[is_own] = model.predict(features[is_own])
        return estimated

    def predict(self, dist: object, Y_pred: LabelsetsLike = None) -> Floats:
        """Estimated accuracy of each prediction.

        Parameters
        ----------
        dist
            A `LabelsetDistribution`, a `ScoreTable`, or a DataFrame with its columns.
        Y_pred
            (n, L) predicted labelsets; None for the most probable ones, or those of the table.

        Returns
        -------
        numpy.ndarray of shape (n,)
            Estimated values of `metric`, in [0, 1].
        """
        return self.estimate_rows(dist, Y_pred).accuracy

    def estimate_rows(
        self,
        dist: object,
        Y_pred: LabelsetsLike = None,
        *,
        of_any_system: bool = False,
        compares: bool = False,
    ) -> RowEstimates:
        """Estimated accuracy of each prediction, with the table and features behind it.

        Parameters
        ----------
        dist
            A `LabelsetDistribution`, a `ScoreTable`, or a DataFrame with its columns.
        Y_pred
            (n, L) predicted labelsets; None for the most probable ones, or those of the table.
        of_any_system
            Whether `Y_pred` may be predicted in another way than the calibration set.
        compares
            Whether all rows will be compared with the calibration set.

        Returns
        -------
        RowEstimates
            `accuracy` of each row, and `summarise()`.
        """
        model = self._fitted_model()  # before anything is computed
        by_label = self.can_compare
        if compares and by_label:
            dist = keep_marginals(dist)
        table = self._read_table(dist, Y_pred, self.features_)
        if not of_any_system or Y_pred is None:
            self._check_decisions(table)
        if FREQUENCY in self.features_ and self.labelset_frequencies_ is not None:
            table = self.labelset_frequencies_.add_to(table)
        metric, empty = get_metric(self.metric), check_empty(self.empty)
        features = feature_matrix(table, self.features_, metric, empty)
        return RowEstimates(table, model.predict(features), features, model, by_label)

    def summarise(self, dist: object, Y_pred: LabelsetsLike = None) -> BatchSummary:
        """Summary of a batch, or of a part of one: summaries of parts can be added.

        Parameters
        ----------
        dist
            A `LabelsetDistribution`, a `ScoreTable`, or a DataFrame with its columns.
        Y_pred
            (n, L) predicted labelsets; None for the most probable ones, or those of the table.

        Returns
        -------
        BatchSummary
            `estimate` takes it in place of the batch.
        """
        return self.estimate_rows(dist, Y_pred, compares=True).summarise()

    def estimate(
        self,
        dist: object,
        Y_pred: LabelsetsLike = None,
        *,
        metric: str | None = None,
        level: float = 0.95,
        shift: str = "test",
        Y_true: LabelsetsLike = None,
        rows: object = None,
        interval: str = "pseudo-rows",
    ) -> Estimate:
        """Estimate the mean accuracy of a batch, with a confidence interval.

        With labels of some rows, drawn at random, the interval is valid for any batch
        (prediction-powered inference); otherwise for batches like the calibration set.

        Parameters
        ----------
        dist
            The batch: a `LabelsetDistribution`, a `ScoreTable`, or a DataFrame with its columns; or
            its `BatchSummary`.
        Y_pred
            (n, L) predicted labelsets; None for the most probable ones, or those of the table.
            With `Y_true` they may come from any system.
        metric
            None for the fitted metric; or a measure of the whole batch, for a distribution:
            "micro-f1", "micro-precision", "micro-recall", "macro-f1", "macro-precision" or
            "macro-recall".
        level
            Confidence level of the interval.
        shift
            How to handle distribution shift:

            - "test": compare the batch with the calibration set, and warn (`ShiftWarning`) if it
              differs. Where they cannot be compared, as after cross-fitting, `untested` of the
              estimate says why;
            - "ignore": do nothing;
            - "weighted": importance weights on the calibration set. Assumes covariate shift only,
              and raises a `NotEstimableError` where too few calibration rows resemble the batch.
        Y_true
            Labels of some rows that were drawn at random.
        rows
            Positions in the batch of the rows of `Y_true`. The index of a DataFrame `Y_true` takes
            their place where `dist` has an index.
        interval
            With labelled rows: "pseudo-rows", Student's interval with one pseudo-row at each end of
            the range, which is approximate; or "betting", which is wider and proved for every
            distribution of accuracies.

        Returns
        -------
        Estimate
            `mean`, `low`, `high`, and a sentence when printed.
        """
        if shift not in SHIFTS:
            raise unknown_name("shift", shift, SHIFTS)
        self._fitted_model()  # before anything is computed
        if isinstance(dist, BatchSummary):
            if any(argument is not None for argument in (Y_pred, Y_true, rows)):
                raise InputError(
                    "`Y_pred`, `Y_true` and `rows` must be None with a `BatchSummary`, which has "
                    "no rows. Pass the batch."
                )
            if metric is not None:
                return self._average_labels(dist, metric, level, shift)
            return self._estimate_summary(dist, level, shift)
        is_labelled = Y_true is not None or rows is not None
        if metric is not None:
            check_label_metric(metric)
            is_weighted = shift == "weighted" and not is_labelled
            if is_weighted or interval != INTERVALS[0]:
                setting = f"shift={shift!r}" if is_weighted else f"interval={interval!r}"
                raise InputError(
                    f"`metric` must be a mean over rows with {setting}, got {metric!r}."
                )
            batch = self._read_labels(dist, Y_pred, Y_true, rows)
            estimate = batch.estimate_average(metric, self.empty, level, self.random_state)
            if is_labelled:
                return estimate
            estimate = replace(estimate, basis=self._basis)
            if shift == "ignore":
                return estimate
            rows = sample_rows(len(batch))
            assert isinstance(batch.table, ScoreTable)
            return self._with_shift(estimate, batch.table._view(rows, by_label=self.can_compare))
        compares = shift != "ignore" and not is_labelled
        if not is_labelled:
            estimates = self.estimate_rows(dist, Y_pred, compares=compares)
            summary = estimates.summarise() if compares else BatchSummary(estimates.sums())
            return self._estimate_summary(summary, level, shift)
        estimates, positions, labelled_table = self._read_few_labels(dist, Y_pred, Y_true, rows)
        estimated = estimates.accuracy[positions]
        return self.estimate_labelled(estimates.sums(), labelled_table, estimated, level, interval)

    def _read_few_labels(
        self, dist: object, Y_pred: LabelsetsLike, Y_true: LabelsetsLike, rows: object
    ) -> tuple[RowEstimates, Indices, ScoreTable]:
        """Estimates of a batch, positions of its labelled rows, and the table of these."""
        estimates = self.estimate_rows(dist, Y_pred, of_any_system=Y_true is not None)
        decisions = estimates.table.decisions
        positions, truth = read_few_labels(dist, decisions, Y_true, rows)
        warn_of_chosen_rows([rank_excess(estimates.accuracy, positions)])
        return estimates, positions, estimates.table[positions].with_truth(truth)

    def estimate_labelled(
        self,
        sums: BatchSums,
        labelled: ScoreTable,
        estimated: Floats,
        level: float,
        interval: str = "pseudo-rows",
    ) -> Estimate:
        """Estimate of a batch with the truth of some rows, drawn at random, and their estimates."""
        accuracy = labelled.accuracy(self.metric, check_empty(self.empty))
        estimate = few_labels_interval(
            sums, accuracy, estimated, lambda_=self._lambda, level=level, interval=interval
        )
        return replace(estimate, quantity=self._quantity)

    def average_labelled(
        self, entries: EntryCounts, labelled: ScoreTable, metric: str, level: float
    ) -> Estimate:
        """Micro or macro average of a batch with the truth of some rows, drawn at random."""
        check_label_metric(metric)
        check_enough_labels(len(labelled))
        calibration = LabelCalibration.fit(labelled, self.random_state)
        batch = LabelBatch(calibration, entries - EntryCounts.of_table(labelled), labelled)
        return batch.estimate_average(metric, self.empty, level, self.random_state)

    @property
    def _quantity(self) -> str:
        metric = get_metric(self.metric)
        return f"mean {metric.title.lower() if metric in COMMON_NOUNS else metric.title}"

    @property
    def _basis(self) -> str:
        """Calibration rows of an estimate without weights and labels, in words."""
        basis = f"calibrated on {len(self.calibration_):,} {self.calibration_rows}"
        if self.calibration_.clusters is not None:
            few = ", too few for an interval" if self.scatter_.too_few else ""
            basis += f" in {self.scatter_.n_clusters:,} clusters{few}"
        if self.can_compare:
            return basis
        return f"{basis}; {self.trained_models}"

    @property
    def trained_models(self) -> str:
        """Note on the models that an interval after cross-fitting refers to."""
        return f"interval for models trained on {self.calibration_.trained_on} rows"

    @property
    def calibration_rows(self) -> str:
        """Name of the rows of `fit` in sentences."""
        return "held-out rows" if self.can_compare else "out-of-fold rows"

    def fit_inflation(self, rows: RowEstimates) -> float:
        """Variance of a batch's mean due to the fit over that of a mean of all rows, at least 1."""
        sums, scatter = rows.sums(), self.scatter_
        fit_variance = self.model_.mean_variance(sums.slopes / sums.n_samples)
        by_rows = scatter.single_variance(sums) * scatter.design_effect / scatter.n_rows
        return max(1.0, fit_variance / by_rows)

    def compare_estimates(self) -> tuple[Floats, Floats]:
        """Out-of-fold estimated and actual accuracies of the calibration set, (n,) each."""
        return self.calibration_._column(ESTIMATED), self.calibration_.accuracy(
            self.metric, self.empty
        )

    @property
    def _lambda(self) -> float:
        """Power-tuning coefficient of estimates beside labels: cov / var, clipped to [0, 1]."""
        estimated, accuracy = self.compare_estimates()
        centred = estimated - estimated.mean()
        variance = float(centred @ centred)
        covariance = float(centred @ (accuracy - accuracy.mean()))
        return float(np.clip(covariance / variance, 0.0, 1.0)) if variance > 0 else 0.0

    def _calibration_view(self) -> pd.DataFrame:
        """Columns that a shift test compares, of at most 2,000 calibration rows."""
        rows = self.independent_rows()
        return self.calibration_._view(rows[sample_rows(len(rows))])

    def independent_rows(self) -> Indices:
        """Positions of one random calibration row of each cluster, ascending."""
        clusters, n_rows = self.calibration_.clusters, len(self.calibration_)
        if clusters is None:
            return np.arange(n_rows)
        order = make_generator(0).permutation(n_rows)
        return np.sort(order[first_rows(clusters[order], 1)])

    def _estimate_summary(self, summary: BatchSummary, level: float, shift: str) -> Estimate:
        sums, view = summary.sums, summary.view
        if sums.n_samples == 0:
            raise InputError("A batch must hold at least one row, got none.")
        if shift == "weighted" and view is not None:
            if self.calibration_.clusters is not None:
                raise InputError(
                    '`shift="weighted"` needs independent calibration rows, got clusters of them. '
                    "Label some rows of the batch, drawn at random, and pass `rows` and `Y_true`."
                )
            weights = weigh_by_inputs(self._calibration_view(), view)
            estimated, accuracy = self.compare_estimates()
            residuals = (accuracy - estimated)[sample_rows(len(accuracy))]
            estimate = weighted_interval(sums, residuals, weights, level)
            return replace(estimate, quantity=self._quantity)
        fit_variance = self.model_.mean_variance(sums.slopes / sums.n_samples)
        estimate = mean_interval(sums, self.scatter_, fit_variance, level)
        estimate = replace(estimate, quantity=self._quantity, basis=self._basis)
        return self._with_shift(estimate, view) if shift == "test" else estimate

    def estimate_labels(
        self,
        dist: LabelsetDistribution,
        Y_pred: LabelsetsLike = None,
        *,
        level: float = 0.95,
        Y_true: LabelsetsLike = None,
        rows: object = None,
    ) -> LabelEstimates:
        """Precision, recall and F1 of each label in an unlabelled batch.

        With labels of some rows, drawn at random, the batch may differ from the calibration set.

        Parameters
        ----------
        dist
            A `LabelsetDistribution`.
        Y_pred
            What was predicted; None means the mode. With `Y_true` it may come from any system.
        level
            Confidence level of the intervals.
        Y_true, rows
            Labels of some rows that were drawn at random, and their positions in the batch.

        Returns
        -------
        LabelEstimates
            `n_predicted` of each label, and estimated `n_true`, `precision`, `recall` and `f1`,
            with intervals from `_low` to `_high`; `to_frame()` is a table. 0/0 counts as `empty`.
        """
        self._fitted_model()
        batch = self._read_labels(dist, Y_pred, Y_true, rows)
        return batch.estimate_labels(self.empty, level, self.random_state)

    def estimate_prevalence(
        self, dist: LabelsetDistribution, *, level: float = 0.95
    ) -> PrevalenceEstimates:
        """Prevalence of each label in an unlabelled batch, under label shift.

        It assumes label shift: labels may have become more or less frequent, but inputs with a
        label look as before. Where this fails, so may the interval; label some rows at random then.

        Parameters
        ----------
        dist
            A `LabelsetDistribution`.
        level
            Confidence level of each label's interval.

        Returns
        -------
        PrevalenceEstimates
            Of each label the prevalence on the `calibration` set, and `prevalence` in the batch
            with an interval from `low` to `high`; `to_frame()` is a table.

        Notes
        -----
        Quantification by maximum likelihood: Saerens, Latinne and Decaestecker (2002), Adjusting
        the outputs of a classifier to new a priori probabilities, Neural Computation 14.
        """
        self._fitted_model()
        check_labels_are_known(dist, self.label_calibration_)
        ratios: DensityRatios = self.density_ratios_  # kept with the label calibration
        return ratios.estimate(calibration_marginals(dist), level)

    def _fitted_model(self) -> RidgeModel:
        if not hasattr(self, "model_"):
            raise NotFittedError(
                "This AccuracyEstimator must be fitted first: call `fit(dist, Y_true)` with "
                "labelled rows that the classifier has not seen."
            )
        model: RidgeModel = self.model_
        return model

    def _read_table(
        self,
        dist: object,
        Y_pred: LabelsetsLike,
        names: Sequence[str],
        Y_true: LabelsetsLike = None,
    ) -> ScoreTable:
        metrics = [self.metric] if EXPECTED in names else []
        return ScoreTable._read(dist, Y_true, Y_pred, metrics)

    def _check_decisions(self, table: ScoreTable) -> None:
        """Raise InputError unless decisions follow the rule of those in `fit`."""
        own_rule, fitted_rule, decisions = table.decision_rule, self.decision_, table.decisions
        is_same = own_rule in (None, fitted_rule)
        if own_rule == "given" and decisions is not None:  # which may be the mode itself
            is_same = fitted_rule != "mode" or not differing_rows(decisions, table._mode()).any()
        if not is_same:
            expected, got = (KINDS.get(rule, repr(rule)) for rule in (fitted_rule, str(own_rule)))
            raise InputError(
                f"Predictions must be of the same kind as in `fit` ({expected}), got {got}. Pass "
                "the same kind as `Y_pred`, or fit to the kind that you want to judge: `fit(dist, "
                "Y_true, Y_pred)`."
            )

    def _average_labels(
        self, summary: BatchSummary, metric: str, level: float, shift: str
    ) -> Estimate:
        """Micro or macro average of a batch by its summary."""
        check_label_metric(metric)
        calibration = self.label_calibration_
        if summary.entries is None or calibration is None or shift == "weighted":
            raise InputError(
                f"`metric` must be None with a `BatchSummary` without counts of labels and with "
                f'shift="weighted", got {metric!r}. Pass the batch.'
            )
        self._check_clusters()
        batch = LabelBatch(calibration, summary.entries)
        estimate = batch.estimate_average(metric, self.empty, level, self.random_state)
        estimate = replace(estimate, basis=self._basis)
        return self._with_shift(estimate, summary.view) if shift == "test" else estimate

    def _check_clusters(self) -> None:
        """Raise InputError for fewer clusters than estimates of single labels need."""
        if self.scatter_.too_few:
            raise InputError(
                f"Estimates of single labels need at least {MIN_CLUSTERS} clusters of calibration "
                f"rows, got {self.scatter_.n_clusters}. Label rows of more clusters."
            )

    def _read_labels(
        self, dist: Any, Y_pred: LabelsetsLike, Y_true: LabelsetsLike, rows: Any
    ) -> LabelBatch:
        """Batch for label metrics; labelled rows of its own replace the calibration set."""
        calibration = check_labels_are_known(dist, self.label_calibration_)
        if Y_true is not None or rows is not None:
            estimates, positions, labelled = self._read_few_labels(dist, Y_pred, Y_true, rows)
            check_enough_labels(len(positions))
            others = estimates.table[np.delete(np.arange(len(dist)), positions)]
            return LabelBatch(LabelCalibration.fit(labelled, self.random_state), others, labelled)
        self._check_clusters()
        table = self._read_table(dist, Y_pred, ())
        self._check_decisions(table)
        return LabelBatch(calibration, table)

    def _with_shift(self, estimate: Estimate, view: pd.DataFrame | None) -> Estimate:
        """Estimate with the shift test of its batch, or the reason why the test was skipped."""
        test, untested = self.compare_with_calibration(view)
        return replace(estimate, shift=test, untested=untested)

    def compare_with_calibration(self, view: pd.DataFrame | None) -> tuple[ShiftTest | None, str]:
        """Shift test against the calibration set, or None and the reason why it was skipped.

        Warns if a shift is found. Predictions of several models, as of cross-fitting, are no
        reference: the final model differs from each of them, trees by much.
        """
        if not self.can_compare:
            return None, CROSS_FITTED
        test = None
        if view is not None and len(view) >= MIN_ROWS:
            test = compare_views(self._calibration_view(), view)
        if test is None:
            return None, TOO_FEW
        if test.found:
            warn_of_shift(test, float(self.compare_estimates()[1].mean()))
        return test, ""

    @property
    def can_compare(self) -> bool:
        """Whether one model made all calibration predictions, so that batches can be compared."""
        self._fitted_model()
        return self.calibration_.of_one_model
