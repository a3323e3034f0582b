"""`AccuracyEstimator`: from what is known of a prediction to its estimated accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypedDict

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from labelsure._runtime.arguments import read_choice, read_number
from labelsure._runtime.typing import Floats, Indices, Labelsets
from labelsure.distributions._probabilities import make_generator
from labelsure.errors import InputError, unknown_name
from labelsure.estimation._batch_estimates import BatchSums, Dispersion, Estimate, mean_interval
from labelsure.estimation._features import (
    FREQUENCY,
    SHARPER,
    check_features,
    check_same_decisions,
    feature_matrix,
    read_table,
)
from labelsure.estimation._label_estimates import (
    LabelCalibration,
    check_label_metric,
    check_labels_are_known,
)
from labelsure.estimation._labelset_frequencies import LabelsetFrequencies
from labelsure.estimation._models import (
    ACCURACY_MODELS,
    C_DEFAULT,
    EXPECTED,
    PluginModel,
    RidgeModel,
)
from labelsure.estimation._shift import (
    MIN_ROWS,
    CalibrationSample,
    ShiftTest,
    View,
    compare_views,
    keep_marginals,
    warn_of_shift,
    weigh_by_inputs,
    weighted_interval,
)
from labelsure.estimation._suspect_truth import warn_of_suspect_truth
from labelsure.estimation.score_table import ScoreTable
from labelsure.metrics.registry import EXACT, PRECISION, RECALL, MetricLike, check_empty, get_metric
from labelsure.saving import Savable

if TYPE_CHECKING:
    import pandas as pd

    from labelsure.distributions._bridge import LabelsetDistribution

DECISIONS = ("mode", "best")
COMMON_NOUNS = (EXACT, RECALL, PRECISION)  # no capital letter within a sentence
SHIFTS = ("test", "ignore", "weighted")

N_FOLDS = 5
MIN_FOLDED = 20  # instances, below which folds would teach nothing

TOO_FEW = f"fewer than {MIN_ROWS} instances"
NO_SAMPLE = "the estimator was not fitted"
CROSS_FITTED = (
    "the model is cross-fitted, so that its calibration set was predicted by other models than the "
    "one that predicts; hold instances out, e.g. by cv=0.4"
)
"""Why a batch is not compared with the calibration set."""


class BatchSettings(TypedDict, total=False):
    """Arguments of `AccuracyEstimator.estimate` that others hand on as they are."""

    metric: str | None
    level: float
    shift: str
    Y_true: Any
    rows: Any


class AccuracyEstimator(Savable, BaseEstimator):  # type: ignore[misc]
    """Estimate the accuracy of predicted labelsets, calibrated on labelled rows.

    Parameters
    ----------
    metric
        "exact", "hamming", "jaccard", "f1", "recall", "precision", or a function of
        (tp, fp, fn, tn) with values in [0, 1].
    features
        What the accuracy model is fitted to, one name or several:

        - a candidate: "HP", "TG", "SE", "CE", "ME", "GI" or "CS";
        - "expected": expected accuracy of the prediction under the distribution;
        - "n_predicted", "is_empty": number of predicted labels, and whether there are none;
        - "frequency": how often the predicted labelset occurs in `Y_train`;
        - "mix": the six candidates of the paper; "full": these with "expected", "n_predicted" and
          "is_empty"; "sharp": "full" with "frequency".

        None chooses "sharp" if `fit` gets `Y_train`, otherwise "full".
    model
        "ridge": logistic regression with a ridge penalty, as in the paper. "plugin": the expected
        accuracy under the distribution; nothing is fitted.
    empty
        Value of Jaccard and F1 for two empty labelsets.
    C
        Inverse strength of the ridge penalty on standardised features; smaller means stronger.
    random_state
        Seed of the folds that measure residuals.
    decision
        Which predictions are judged where no `Y_pred` is given: "mode", the most probable labelset,
        or "best", the one with the highest expected accuracy.

    Attributes
    ----------
    features_
        Names of the features used.
    decision_
        Which predictions were judged in `fit`: "mode", "best", or "given" as `Y_pred`. Later
        predictions must be made in the same way.
    reference_
        The `Estimate` for the calibration set.
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
    Prediction-powered inference, Science 382, arXiv:2301.09633. Its interval for few labels is by
    betting: Waudby-Smith and Ramdas (2024), arXiv:2010.09686.

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
        model: str = "ridge",
        empty: float = 1.0,
        C: float = C_DEFAULT,
        random_state: int | None = 0,
        decision: str = "mode",
    ) -> None:
        self.metric = metric
        self.features = features
        self.model = model
        self.empty = empty
        self.C = C
        self.random_state = random_state
        self.decision = decision

    def fit(
        self, dist: Any, Y_true: Any = None, Y_pred: Any = None, *, Y_train: Any = None
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
        Y_train
            (m, L) labelsets of the instances that the classifier was trained on, none of which are
            fitted to here. How often a predicted labelset is among them makes estimates sharper
            (`docs/dev/features.md`).
        """
        metric, empty = get_metric(self.metric), check_empty(self.empty)
        model_class, names = self._model_class(), self._feature_names()
        if not model_class.learns and names != (EXPECTED,):
            raise InputError(
                f"`features` must be None or {EXPECTED!r} for model='plugin', which is the "
                f"expected accuracy itself, got {', '.join(names)}. Use model='ridge'."
            )
        read_number(self.C, "C", 0, ends="(]")
        table = self._read_table(dist, Y_true, Y_pred, names, self._check_decision())
        seen = None if Y_train is None else LabelsetFrequencies.read(Y_train, dist)
        if seen is not None and not table.knows_frequencies:
            table = seen.add_to(table, dist)
        names = self._feature_names(knows_frequencies=table.knows_frequencies)
        values = table.accuracy(metric, empty)
        if len(table) < 2:
            raise InputError(
                f"At least two instances are needed to fit, got {len(table)}. A few hundred give "
                "estimates worth having."
            )
        outside = (values < 0) | (values > 1)
        if outside.any():
            raise InputError(
                f"The metric {metric.name!r} must have values in [0, 1] to be estimated, got "
                f"{values[outside][0]:g}. Rescale it."
            )
        features = feature_matrix(table, names, metric, empty)
        self.labelset_frequencies_, self.features_ = seen, names
        self.decision_ = table.decision_rule or "given"
        self.model_ = model_class().fit(features, values, self.C)
        self.label_calibration_ = None
        if table.knows_labels:
            warn_of_suspect_truth(table)
            if model_class.learns:
                self.label_calibration_ = LabelCalibration.fit(table, self.random_state)
        estimated = self.model_.predict(features)
        by_others = self._estimate_by_folds(features, values, estimated)
        self.calibration_sample_ = CalibrationSample.of_fit(table, values, by_others)
        # Around estimates that learned from them, accuracies scatter less than those to come will.
        self.dispersion_ = Dispersion.of_residuals(by_others, values)
        sums = BatchSums.of(estimated, self.model_.sum_slopes(features))
        self.reference_ = self._estimate_sums(sums)
        return self

    def _estimate_by_folds(self, features: Floats, values: Floats, estimated: Floats) -> Floats:
        """Return the estimate of each instance by a model that was fitted to others, (n,)."""
        n_samples, model_class = len(values), self._model_class()
        if not model_class.learns or n_samples < MIN_FOLDED:
            return estimated
        folds = make_generator(self.random_state).permutation(np.arange(n_samples) % N_FOLDS)
        by_others = np.empty(n_samples)
        for fold in range(N_FOLDS):
            is_own = folds == fold
            model = model_class().fit(features[~is_own], values[~is_own], self.C)
            by_others[is_own] = model.predict(features[is_own])
        return by_others

    def predict(self, dist: Any, Y_pred: Any = None) -> Floats:
        """Return the estimated accuracy of each prediction.

        Parameters
        ----------
        dist
            A `LabelsetDistribution`, a `ScoreTable`, or a DataFrame with its columns.
        Y_pred
            (n, L) predicted labelsets; None for those that `decision` names, or those of the table.

        Returns
        -------
        numpy.ndarray of shape (n,)
            Estimated values of `metric`, in [0, 1].
        """
        return self._fitted_model().predict(self._read_batch(dist, Y_pred)[1])

    def estimate(
        self,
        dist: Any,
        Y_pred: Any = None,
        *,
        metric: str | None = None,
        level: float = 0.95,
        shift: str = "test",
        Y_true: Any = None,
        rows: Any = None,
    ) -> Estimate:
        """Estimate the mean accuracy of a batch, with a confidence interval.

        With labels of some rows, drawn at random, the interval is valid for any batch
        (prediction-powered inference); otherwise for batches like the calibration set.

        Parameters
        ----------
        dist
            The batch: a `LabelsetDistribution`, a `ScoreTable`, or a DataFrame with its columns.
        Y_pred
            (n, L) predicted labelsets; None for those that `decision` names, or those of the table.
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

        Returns
        -------
        Estimate
            `mean`, `low`, `high`, and a sentence when printed.
        """
        if shift not in SHIFTS:
            raise unknown_name("shift", shift, SHIFTS)
        if metric is not None:
            check_label_metric(metric)
            if Y_true is not None or shift == "weighted":
                raise InputError(
                    f"`metric` must be None with `Y_true` and with shift={shift!r}, which are "
                    f"about the mean of the fitted metric, got {metric!r}."
                )
            known, dist, decisions = self._read_labels(dist, Y_pred)
            found = known.estimate_average(
                dist,
                decisions,
                metric,
                empty=self.empty,
                level=level,
                random_state=self.random_state,
            )
            found = replace(found, basis=self._basis)
            if shift == "ignore":
                return found
            return self._with_shift(found, self._view(dist, Y_pred) if self._can_compare else None)
        by_label = Y_true is None and self._compares_labels(shift)
        dist = keep_marginals(dist) if by_label else dist
        table, features = self._read_batch(dist, Y_pred, same=Y_true is None)
        estimated = self._fitted_model().predict(features)
        sums = BatchSums.of(estimated, self._fitted_model().sum_slopes(features))
        if Y_true is None and rows is None:
            view = None if shift == "ignore" else View.of_batch(dist, table, by_label=by_label)
            return self._estimate_sums(sums, level=level, shift=shift, view=view)
        from labelsure.estimation._few_labels import read_few_labels

        places, counts = read_few_labels(dist, table.decisions, Y_true, rows)
        accuracy = get_metric(self.metric).values(*counts, empty=check_empty(self.empty))
        return self._estimate_labelled(sums, accuracy, estimated[places], level)

    def _estimate_labelled(
        self, sums: BatchSums, accuracy: Floats, estimated: Floats, level: float
    ) -> Estimate:
        """Return the estimate of a batch of which some rows, drawn at random, are labelled."""
        from labelsure.estimation._few_labels import few_labels_interval

        found = few_labels_interval(
            sums, accuracy, estimated, share=self._share_of_estimates, level=level
        )
        return replace(found, quantity=self._quantity)

    @property
    def _quantity(self) -> str:
        metric = get_metric(self.metric)
        return f"mean {metric.title.lower() if metric in COMMON_NOUNS else metric.title}"

    @property
    def _basis(self) -> str:
        """What an estimate without weights and labels rests on."""
        if not hasattr(self, "model_") or not self._model_class().learns:
            return "not calibrated"
        rows = "held-out" if self._can_compare else "out-of-fold"
        return f"calibrated on {self.dispersion_.n_samples:,.0f} {rows} rows"

    @property
    def _share_of_estimates(self) -> float:
        """How far estimates count beside labels of a batch, by the instances of `fit`."""
        sample = getattr(self, "calibration_sample_", None)
        return 0.5 if sample is None else float(sample.share)

    def _sum_up(self, dist: Any, Y_pred: Any = None) -> BatchSums:
        """Return what `estimate` follows from; the sums of parts add up to those of a batch."""
        model, features = self._fitted_model(), self._read_batch(dist, Y_pred)[1]
        return BatchSums.of(model.predict(features), model.sum_slopes(features))

    def _view(self, dist: Any, Y_pred: Any = None, *, shift: str = "test") -> View:
        """Return what is compared of a batch with the calibration set."""
        by_label = self._compares_labels(shift)
        dist = keep_marginals(dist) if by_label else dist
        return View.of_batch(dist, self._read_batch(dist, Y_pred)[0], by_label=by_label)

    def _view_table(self, dist: Any, table: ScoreTable, rows: Indices | None = None) -> View:
        """Return the same of a batch whose score table is made; None draws at most 2,000 rows."""
        return View.of_batch(dist, table, by_label=self._compares_labels("test"), rows=rows)

    def _estimate_sums(
        self,
        sums: BatchSums,
        *,
        level: float = 0.95,
        shift: str = "ignore",
        view: View | None = None,
    ) -> Estimate:
        """Return the estimate of a batch of which `_sum_up` has seen every part."""
        if sums.n_samples == 0:
            raise InputError("A batch must hold at least one instance, got none.")
        if shift == "weighted":
            sample = self._labelled_sample()
            if view is None:
                raise InputError(f"`view` must be given for shift={shift!r}, got None.")
            found = weighted_interval(sums, sample, weigh_by_inputs(sample, view), level)
            return replace(found, quantity=self._quantity)
        model = self._fitted_model()
        dispersion = getattr(self, "dispersion_", Dispersion())
        slopes = sums.slopes / sums.n_samples
        fit_variance = model.mean_variance(slopes) if model.learns else None
        found = mean_interval(sums, dispersion, fit_variance, level)
        found = replace(found, quantity=self._quantity, basis=self._basis)
        return self._with_shift(found, view) if shift == "test" else found

    def estimate_labels(
        self, dist: LabelsetDistribution, Y_pred: Any = None, *, level: float = 0.95
    ) -> pd.DataFrame:
        """Return precision, recall and F1 of each label in a batch that nobody has labelled.

        Parameters
        ----------
        dist
            A `LabelsetDistribution`.
        Y_pred
            What was predicted; None means what the estimator was fitted to: mode or best.
        level
            Confidence level of the intervals.

        Returns
        -------
        pandas.DataFrame
            A row for each label: `n_predicted`, and estimated `n_true`, `precision`, `recall` and
            `f1`, each with an interval from `_low` to `_high`. What is 0/0 is worth `empty`.
        """
        known, dist, decisions = self._read_labels(dist, Y_pred)
        return known.estimate_labels(
            dist, decisions, empty=self.empty, level=level, random_state=self.random_state
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_") or not self._model_class().learns

    def _model_class(self) -> type[RidgeModel] | type[PluginModel]:
        if self.model not in ACCURACY_MODELS:
            raise unknown_name("model", self.model, ACCURACY_MODELS)
        return ACCURACY_MODELS[self.model]

    def _feature_names(self, *, knows_frequencies: bool = False) -> tuple[str, ...]:
        if self.features is not None:
            return check_features(self.features)
        default = self._model_class().default
        return check_features(SHARPER.get(default, default) if knows_frequencies else default)

    def _fitted_model(self) -> RidgeModel | PluginModel:
        if hasattr(self, "model_"):
            model: RidgeModel | PluginModel = self.model_
            return model
        if self._model_class().learns:
            raise NotFittedError(
                "This AccuracyEstimator must be fitted first: call `fit(dist, Y_true)` with "
                "labelled instances that the classifier has not seen."
            )
        return self._model_class()()

    def _read_batch(
        self, dist: Any, Y_pred: Any, *, same: bool = True
    ) -> tuple[ScoreTable, Floats]:
        """Return the score table of a batch and its features; `same` checks the decisions."""
        self._fitted_model()  # before anything is computed
        names = getattr(self, "features_", None) or self._feature_names()
        rule = getattr(self, "decision_", None)
        if rule is not None and (same or Y_pred is None):
            Y_pred = check_same_decisions(rule, dist, Y_pred)
        table = self._read_table(dist, None, Y_pred, names, rule or self._check_decision())
        seen = getattr(self, "labelset_frequencies_", None)
        if FREQUENCY in names and seen is not None and not table.knows_frequencies:
            table = seen.add_to(table, dist)
        metric, empty = get_metric(self.metric), check_empty(self.empty)
        return table, feature_matrix(table, names, metric, empty)

    def _labelled_sample(self) -> CalibrationSample:
        """Return what is kept of the calibration set, or say that nothing is."""
        sample: CalibrationSample | None = getattr(self, "calibration_sample_", None)
        if sample is None:
            raise InputError(
                "shift='weighted' needs an estimator that was fitted to labelled instances. Fit "
                "one, or use shift='ignore'."
            )
        return sample

    def _compares_labels(self, shift: str) -> bool:
        """Whether the labels' probabilities of a batch are wanted, which may take a while."""
        return shift != "ignore" and self._can_compare

    def _read_labels(
        self, dist: Any, Y_pred: Any
    ) -> tuple[LabelCalibration, LabelsetDistribution, Labelsets]:
        """Return what was learned about the labels of a batch, the batch, and its decisions."""
        self._fitted_model()  # before anything is computed
        rule = getattr(self, "decision_", None)
        known = check_labels_are_known(dist, getattr(self, "label_calibration_", None))
        if rule is not None:
            Y_pred = check_same_decisions(rule, dist, Y_pred)
        table = self._read_table(dist, None, Y_pred, (), rule or self._check_decision())
        return known, dist, np.asarray(table.decisions)

    def _read_table(
        self, dist: Any, Y_true: Any, Y_pred: Any, names: tuple[str, ...], rule: str
    ) -> ScoreTable:
        metric, empty, expects = self.metric, self.empty, EXPECTED in names
        return read_table(
            dist, Y_true, Y_pred, rule=rule, metric=metric, empty=empty, expects=expects
        )

    def _check_decision(self) -> str:
        return read_choice(self.decision, "decision", DECISIONS)

    def _with_shift(self, found: Estimate, view: View | None) -> Estimate:
        """Return the estimate with the test of its batch, or why there is none."""
        test, untested = self._compare_with_calibration(view)
        return replace(found, shift=test, untested=untested)

    def _compare_with_calibration(self, view: View | None) -> tuple[ShiftTest | None, str]:
        """Test whether a batch is like the instances of `fit`; warn if not, say why if it cannot.

        Predictions of several models, as of cross-fitting, are no reference: the model that
        predicts in the end differs from each of them, and trees do so by much.
        """
        if not self._can_compare:
            sample = getattr(self, "calibration_sample_", None)
            return None, NO_SAMPLE if sample is None else CROSS_FITTED
        sample = self._labelled_sample()
        test = None if view is None else compare_views(sample.view, view)
        if test is None:
            return None, TOO_FEW
        if test.found:
            warn_of_shift(test, float(sample.accuracy.mean()))
        return test, ""

    @property
    def _can_compare(self) -> bool:
        """Whether one model made the predictions that it was fitted to, and they are kept."""
        sample: CalibrationSample | None = getattr(self, "calibration_sample_", None)
        return sample is not None and sample.of_one_model
