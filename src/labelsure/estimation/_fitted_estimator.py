"""What a fitted estimator of accuracy answers: of single predictions, of batches, of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from labelsure._runtime.typing import Floats, Indices
from labelsure.errors import InputError, unknown_name
from labelsure.estimation._batch_estimates import (
    BatchSums,
    Dispersion,
    Estimate,
    TrainingGain,
    mean_interval,
)
from labelsure.estimation._design import Inputs
from labelsure.estimation._inputs import (
    FREQUENCY,
    SHARPER,
    GroupLevels,
    check_features,
    check_groups,
    check_same_decisions,
    feature_matrix,
    keep_marginals,
    read_table,
    view_batch,
)
from labelsure.estimation._models import ACCURACY_MODELS, Model
from labelsure.estimation._shift_test import (
    MIN_ROWS,
    ShiftTest,
    View,
    compare_views,
    warn_of_shift,
)
from labelsure.estimation.label_metrics import check_label_metric
from labelsure.estimation.score_table import ScoreTable
from labelsure.labelsets.names import align_values
from labelsure.labelsets.rows import index_of
from labelsure.metrics.registry import MetricLike, check_empty, get_metric
from labelsure.saving import Savable

if TYPE_CHECKING:
    import pandas as pd

    from labelsure.distributions._bridge import LabelsetDistribution
    from labelsure.estimation._calibration_sample import CalibrationSample
    from labelsure.estimation._label_estimates import LabelBatch

DECISIONS = ("mode", "best")
SHIFTS = ("test", "ignore", "weighted", "labels")

TOO_FEW = f"fewer than {MIN_ROWS} instances"
NO_SAMPLE = "the estimator keeps no calibration set (it has groups, or was not fitted)"
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
    inclusion: Any
    population: bool


class FittedEstimator(Savable, BaseEstimator):  # type: ignore[misc]
    """The base of `AccuracyEstimator`: everything that it does once it is fitted."""

    metric: MetricLike
    features: str | Sequence[str] | None
    model: str
    empty: float
    decision: str
    random_state: int | None

    def predict(
        self, dist: Any, Y_pred: Any = None, *, slope_groups: Any = None, offset_groups: Any = None
    ) -> Floats:
        """Return the estimated accuracy of each prediction, (n,) in [0, 1].

        Parameters
        ----------
        dist
            A `LabelsetDistribution`, a table, or, where no expected accuracies are needed, a
            `Profile`.
        Y_pred
            What was predicted; None means the mode, or what the table was made for.
        slope_groups, offset_groups
            As when fitting; a group that was not there then is an error.
        """
        _, inputs = self._read_batch(dist, Y_pred, slope_groups, offset_groups)
        return self._predict_inputs(inputs)

    def estimate(
        self,
        dist: Any,
        Y_pred: Any = None,
        *,
        metric: str | None = None,
        slope_groups: Any = None,
        offset_groups: Any = None,
        level: float = 0.95,
        shift: str = "test",
        Y_true: Any = None,
        rows: Any = None,
        inclusion: Any = None,
        population: bool = False,
    ) -> Estimate:
        """Return the mean accuracy of a batch, with an interval, from no labels of it or from few.

        Without labels it is right for batches like the instances that the estimator was fitted to.
        With `Y_true` of a few `rows` it is right for any batch, **if these are rows drawn at
        random**, or come with the probabilities of their drawing. Rows that somebody chose, such
        as the doubtful ones, make it wrong by any amount, and its interval does not show that.

        Parameters
        ----------
        dist, Y_pred, slope_groups, offset_groups
            As for `predict`.
        metric
            None means the mean of the metric that was fitted. Or a measure of the whole batch:
            "micro-f1", "macro-f1", and the same of precision and recall, for which `dist` must be
            a distribution (`docs/label_metrics.md`).
        level
            How often such an interval covers.
        shift
            What to do about a batch that may not be like the labelled instances (`docs/shift.md`):

            - "test": compare them, and warn (`ShiftWarning`) if it is not; `untested` of the
              estimate says why where they cannot be compared, as after cross-fitting;
            - "ignore": nothing;
            - "weighted": weigh labelled instances as often as such occur in the batch. Assumes that
              what can be seen of an instance says how accurate its prediction is, as before;
            - "labels": weigh them by their labels. Assumes that labels have become more or less
              frequent, each by a factor, and look as before.

            The last two raise a `NotEstimableError` where too few labelled instances are like it.
        Y_true, rows
            The truth of some instances, and their positions in the batch. The index of a DataFrame
            names the rows by itself, if `dist` has one.
        inclusion
            With which probability each of these rows was drawn, or each row of the batch, which is
            needed where their accuracies scatter little; None means that all had the same.
        population
            With `Y_true`: whether the mean accuracy of what the batch was drawn from is wanted,
            instead of that of the batch itself.
        """
        if shift not in SHIFTS:
            raise unknown_name("shift", shift, SHIFTS)
        if metric is not None:
            self._check_measure(metric, (slope_groups, offset_groups), shift, Y_true)
            labels = self._read_labels(dist, Y_pred)
            found = labels.estimate_average(metric, level)
            if shift == "ignore":
                return found
            return self._with_shift(found, self.view(dist, Y_pred) if self.can_compare else None)
        by_label = Y_true is None and self._compares_labels(shift)
        dist = keep_marginals(dist) if by_label else dist
        table, inputs = self._read_batch(dist, Y_pred, slope_groups, offset_groups)
        estimated = self._predict_inputs(inputs)
        sums = self._sum_inputs(inputs, estimated)
        if Y_true is None and rows is None:
            view = None if shift == "ignore" else view_batch(dist, table, by_label=by_label)
            return self.estimate_sums(sums, level=level, shift=shift, view=view)
        from labelsure.estimation._few_labels import (
            check_inclusion,
            few_labels_interval,
            read_few_labels,
        )

        known = read_few_labels(dist, table.decisions, Y_true, rows)
        accuracy = get_metric(self.metric).values(*known.counts, empty=check_empty(self.empty))
        if np.size(inclusion) == len(known.rows):
            inclusion = align_values(inclusion, known.index, name="inclusion", beside="`Y_true`")
        else:  # of the whole batch
            inclusion = align_values(inclusion, index_of(dist), name="inclusion")
        return few_labels_interval(
            sums,
            accuracy,
            estimated[known.rows],
            check_inclusion(inclusion, known.rows, sums.n_samples),
            share=self.share_of_estimates,
            population=population,
            level=level,
        )

    @property
    def share_of_estimates(self) -> float:
        """How far estimates count beside labels of a batch, by the instances of `fit`.

        It is a half where none are kept, as with groups and where nothing was fitted.
        """
        sample = getattr(self, "calibration_sample_", None)
        return 0.5 if sample is None else float(sample.share)

    def sum_up(self, dist: Any, Y_pred: Any = None) -> BatchSums:
        """Return what `estimate` follows from; the sums of parts add up to those of a batch."""
        _, inputs = self._read_batch(dist, Y_pred, None, None)
        return self._sum_inputs(inputs, self._predict_inputs(inputs))

    def view(self, dist: Any, Y_pred: Any = None, *, shift: str = "test") -> View:
        """Return what is compared of a batch with the labelled instances.

        Parameters
        ----------
        dist, Y_pred
            As for `predict`.
        shift
            What for, as for `estimate`.
        """
        by_label = self._compares_labels(shift)
        dist = keep_marginals(dist) if by_label else dist
        table, _ = self._read_batch(dist, Y_pred, None, None)
        return view_batch(dist, table, by_label=by_label)

    def estimate_sums(
        self,
        sums: BatchSums,
        *,
        level: float = 0.95,
        shift: str = "ignore",
        view: View | None = None,
    ) -> Estimate:
        """Return the estimate of a batch of which `sum_up` has seen every part.

        Parameters
        ----------
        sums
            Of all instances.
        level, shift
            As for `estimate`.
        view
            Of some instances, drawn at random; needed unless `shift` is "ignore".
        """
        if sums.n_samples == 0:
            raise InputError("A batch must hold at least one instance, got none.")
        model = self._fitted_model()
        gain = getattr(self, "training_gain_", TrainingGain())
        if shift in ("weighted", "labels"):
            from labelsure.estimation._label_tilts import weigh_by_labels
            from labelsure.estimation._weighted_estimates import (
                BASES,
                weigh_by_inputs,
                weighted_interval,
            )

            sample = self.labelled_sample()
            if view is None:
                raise InputError(f"`view` must be given for shift={shift!r}, got None.")
            if shift == "labels":
                weights, _ = weigh_by_labels(sample, view)
            else:
                weights = weigh_by_inputs(sample, view)
            return weighted_interval(sums, sample, weights, gain, level, BASES[shift])
        dispersion = getattr(self, "dispersion_", Dispersion())
        slopes = sums.slopes / sums.n_samples
        fit_variance = model.mean_variance(slopes) if model.learns else None
        found = mean_interval(sums, dispersion, fit_variance, gain, level)
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
            How often an interval covers the value that comes out.

        Returns
        -------
        pandas.DataFrame
            A row for each label: `n_predicted`, and estimated `n_true`, `precision`, `recall` and
            `f1`, each with an interval from `_low` to `_high`. What is 0/0 is worth `empty`.
        """
        return self._read_labels(dist, Y_pred).estimate_labels(level)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_") or not self._model_class().learns

    def _model_class(self) -> type[Model]:
        if self.model not in ACCURACY_MODELS:
            raise unknown_name("model", self.model, ACCURACY_MODELS)
        return ACCURACY_MODELS[self.model]

    def _feature_names(self, *, knows_frequencies: bool = False) -> tuple[str, ...]:
        if self.features is not None:
            return check_features(self.features)
        default = self._model_class().default
        return check_features(SHARPER.get(default, default) if knows_frequencies else default)

    def _fitted_model(self) -> Model:
        if hasattr(self, "model_"):
            model: Model = self.model_
            return model
        if self._model_class().learns:
            raise NotFittedError(
                "This AccuracyEstimator must be fitted first: call `fit(dist, Y_true)` with "
                "labelled instances that the classifier has not seen."
            )
        return self._model_class()()

    def _read_batch(
        self, dist: Any, Y_pred: Any, slope_groups: Any, offset_groups: Any
    ) -> tuple[ScoreTable, Inputs]:
        self._fitted_model()  # before anything is computed
        names = getattr(self, "features_", None) or self._feature_names()
        rule = getattr(self, "decision_", None)
        if rule is not None:
            Y_pred = check_same_decisions(rule, dist, Y_pred)
        table = self._read_table(dist, None, Y_pred, names, rule or self._check_decision())
        seen = getattr(self, "labelset_frequencies_", None)
        if FREQUENCY in names and seen is not None and not table.knows_frequencies:
            table = seen.add_to(table, dist)
        slope = check_groups(slope_groups, dist, len(table), "slope_groups")
        offset = check_groups(offset_groups, dist, len(table), "offset_groups")
        return table, self._make_inputs(table, names, slope, offset)

    def labelled_sample(self) -> CalibrationSample:
        """Return what is kept of the labelled instances, or say that nothing is."""
        sample: CalibrationSample | None = getattr(self, "calibration_sample_", None)
        if sample is None:
            raise InputError(
                "shift='weighted' and shift='labels' need an estimator that was fitted to labelled "
                "instances, without groups. Fit one, or use shift='ignore'."
            )
        return sample

    def _compares_labels(self, shift: str) -> bool:
        """Whether the labels' probabilities of a batch are wanted, which may take a while."""
        sample: CalibrationSample | None = getattr(self, "calibration_sample_", None)
        if sample is None or shift == "ignore":
            return False
        return shift == "labels" or sample.of_one_model

    def _check_measure(self, metric: str, groups: Any, shift: str, Y_true: Any) -> None:
        """Refuse what is not known of a measure of the whole batch."""
        check_label_metric(metric)
        if any(group is not None for group in groups):
            raise InputError(
                f"`slope_groups` and `offset_groups` must be None for {metric!r}, whose model has "
                "no groups. Fit one estimator for each group."
            )
        if Y_true is not None or shift not in ("test", "ignore"):
            raise InputError(
                f"`metric` must be None with `Y_true` and with shift={shift!r}, which are about "
                f"the mean of the fitted metric, got {metric!r}."
            )

    def _read_labels(self, dist: Any, Y_pred: Any) -> LabelBatch:
        """Return the labels of a batch, with what was learned about them."""
        from labelsure.estimation._label_estimates import LabelBatch, check_labels_are_known

        self._fitted_model()  # before anything is computed
        calibration = getattr(self, "label_calibration_", None)
        check_labels_are_known(dist, calibration, learns=self._model_class().learns)
        rule = getattr(self, "decision_", None)
        if rule is not None:
            Y_pred = check_same_decisions(rule, dist, Y_pred)
        if Y_pred is None and (rule or self._check_decision()) == "best":
            Y_pred = self._read_table(dist, None, None, (), "best").decisions
        empty = check_empty(self.empty)
        return LabelBatch.read(dist, Y_pred, calibration, empty, self.random_state)

    def _read_table(
        self, dist: Any, Y_true: Any, Y_pred: Any, names: tuple[str, ...], rule: str
    ) -> ScoreTable:
        metric, empty = self.metric, self.empty
        return read_table(dist, Y_true, Y_pred, rule=rule, metric=metric, empty=empty, names=names)

    def _check_decision(self) -> str:
        if self.decision not in DECISIONS:
            raise unknown_name("decision", self.decision, DECISIONS)
        return self.decision

    def _make_inputs(
        self,
        table: ScoreTable,
        names: tuple[str, ...],
        slope: NDArray[Any] | None,
        offset: NDArray[Any] | None,
    ) -> Inputs:
        features = feature_matrix(table, names, get_metric(self.metric), check_empty(self.empty))
        slope_levels = getattr(self, "slope_levels_", GroupLevels("slope_groups", None))
        offset_levels = getattr(self, "offset_levels_", GroupLevels("offset_groups", None))
        return Inputs(
            features,
            slope_levels.encode(slope, len(table)),
            offset_levels.encode(offset, len(table)),
        )

    def _predict_inputs(self, inputs: Inputs) -> Floats:
        gain = getattr(self, "training_gain_", TrainingGain())
        return gain.add_to(self._fitted_model().predict(inputs))

    def _sum_inputs(self, inputs: Inputs, estimated: Floats) -> BatchSums:
        return BatchSums.of(estimated, self._fitted_model().sum_slopes(inputs))

    def _with_shift(self, found: Estimate, view: View | None) -> Estimate:
        """Return the estimate with the test of its batch, or why there is none."""
        test, untested = self.compare_with_calibration(view)
        return replace(found, shift=test, untested=untested)

    def compare_with_calibration(self, view: View | None) -> tuple[ShiftTest | None, str]:
        """Test whether a batch is like the instances of `fit`; warn if not, say why if it cannot.

        Predictions of several models, as of cross-fitting, are no reference: the model that
        predicts in the end differs from each of them, and trees do so by much.

        Parameters
        ----------
        view
            What is compared of the batch; None where there is nothing.
        """
        if not self.can_compare:
            sample = getattr(self, "calibration_sample_", None)
            return None, NO_SAMPLE if sample is None else CROSS_FITTED
        sample = self.labelled_sample()
        test = None if view is None else compare_views(sample.view, view)
        if test is None:
            return None, TOO_FEW
        if test.found:
            warn_of_shift(test, float(sample.accuracy.mean()))
        return test, ""

    @property
    def can_compare(self) -> bool:
        """Whether one model made the predictions that it was fitted to, and they are kept."""
        sample: CalibrationSample | None = getattr(self, "calibration_sample_", None)
        return sample is not None and sample.of_one_model

    def view_table(self, dist: Any, table: ScoreTable, rows: Indices | None = None) -> View:
        """Return what is compared of a batch whose score table is made.

        Parameters
        ----------
        dist, table
            The batch, and its table.
        rows
            Which of its instances; None draws at most 2,000.
        """
        return view_batch(dist, table, by_label=self._compares_labels("test"), rows=rows)
