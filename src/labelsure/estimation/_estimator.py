"""`AccuracyEstimator`: from what is known of a prediction to its estimated accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from labelsure._typing import Floats, Indices
from labelsure.decisions import decide
from labelsure.distributions import LabelsetDistribution, make_generator
from labelsure.errors import InputError, unknown_name
from labelsure.estimation._batch_estimates import (
    BatchSums,
    Dispersion,
    Estimate,
    TrainingGain,
    mean_interval,
)
from labelsure.estimation._design import Inputs, check_penalty, check_values, choose_response
from labelsure.estimation._inputs import (
    GroupLevels,
    check_features,
    check_groups,
    check_n_samples,
    check_same_decisions,
    feature_matrix,
    read_table,
)
from labelsure.estimation._label_calibration import LabelCalibration
from labelsure.estimation._label_estimates import LabelBatch, check_labels_are_known
from labelsure.estimation._loaded_estimator import check_loaded_estimator
from labelsure.estimation._models import (
    ACCURACY_MODELS,
    FitSettings,
    Model,
    Outcomes,
    RidgeModel,
    coefficient_table,
)
from labelsure.label_metrics import check_label_metric
from labelsure.metrics import MetricLike, check_empty, get_metric
from labelsure.saving import Savable
from labelsure.score_table import ScoreTable

if TYPE_CHECKING:
    import pandas as pd


N_FOLDS = 10
DECISIONS = ("mode", "best")


class AccuracyEstimator(Savable, BaseEstimator):  # type: ignore[misc]
    """Estimate how accurate predicted labelsets are, from labelled examples of how they did.

    Parameters
    ----------
    metric
        "exact", "hamming", "jaccard", "f1", or a function of (tp, fp, fn, tn) with values in
        [0, 1].
    features
        What the estimate is made from: one candidate (HP, SE, CE, ...), "expected" (the expected
        accuracy of the decision), "n_predicted" (its number of labels), "is_empty", "spread" (how
        far apart the members of a mixture are about that accuracy); several of these; "mix" (HP,
        TG, SE, CE, ME and CS together, the paper's) or "full" (that with the next three). None
        means "full" for `ridge`, the sharpest, also on data that did not choose it, and calibrated
        nearly as well as any (`docs/calibration.md`); "expected" for `isotonic`.
    model
        "ridge" (the paper's logistic model with a ridge penalty), "isotonic" (a step function of
        one candidate) or "plugin" (the expected accuracy under the distribution, nothing fitted).
    empty
        The Jaccard and F1 of two empty labelsets.
    response
        What the ridge models: "value", the realised accuracy, or "rates", those of true and false
        positives and negatives, from which Jaccard and F1 follow, as in the paper.
    penalty
        Of the ridge, on standardised columns, as glmnet has it; None chooses it out of 20 by
        10-fold cross-validated deviance.
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
        penalty: float | None = None,
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
        )
        self.model_ = model_class().fit(
            inputs, Outcomes(response.targets(counts, values), values), settings
        )
        self.features_ = names
        self.decision_ = table.decision_rule or "given"
        self.penalty_ = getattr(self.model_, "penalty", None)
        estimated = self.model_.predict(inputs)
        self.dispersion_ = Dispersion.of_residuals(estimated, values)
        self.training_gain_ = TrainingGain()
        has_groups = slope is not None or offset is not None
        outcomes = table.label_outcomes() if model_class.learns and not has_groups else None
        self.label_calibration_ = (
            None if outcomes is None else LabelCalibration.fit(outcomes, self.random_state)
        )
        self.reference_ = self.estimate_sums(self._sum_inputs(inputs, estimated))
        return self

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
        return self._predict_inputs(self._read_inputs(dist, Y_pred, slope_groups, offset_groups))

    def estimate(
        self,
        dist: Any,
        Y_pred: Any = None,
        *,
        metric: str | None = None,
        slope_groups: Any = None,
        offset_groups: Any = None,
        level: float = 0.95,
    ) -> Estimate:
        """Return the mean accuracy of a batch that nobody has labelled, with an interval.

        The interval is for the mean accuracy that will come out: it holds the chance in the batch
        and in the instances that the model was fitted to. It does not hold a drift of the labels.

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
        """
        if metric is None:
            inputs = self._read_inputs(dist, Y_pred, slope_groups, offset_groups)
            sums = self._sum_inputs(inputs, self._predict_inputs(inputs))
            return self.estimate_sums(sums, level=level)
        check_label_metric(metric)
        if slope_groups is not None or offset_groups is not None:
            raise InputError(
                f"`slope_groups` and `offset_groups` must be None for {metric!r}, whose model has "
                "no groups. Fit one estimator for each group."
            )
        return self._read_labels(dist, Y_pred).estimate_average(metric, level)

    def sum_up(self, dist: Any, Y_pred: Any = None) -> BatchSums:
        """Return what `estimate` follows from; the sums of parts add up to those of a batch."""
        inputs = self._read_inputs(dist, Y_pred, None, None)
        return self._sum_inputs(inputs, self._predict_inputs(inputs))

    def estimate_sums(self, sums: BatchSums, *, level: float = 0.95) -> Estimate:
        """Return the estimate of a batch of which `sum_up` has seen every part."""
        if sums.n_samples == 0:
            raise InputError("A batch must hold at least one instance, got none.")
        model = self._fitted_model()
        dispersion = getattr(self, "dispersion_", Dispersion())
        gain = getattr(self, "training_gain_", TrainingGain())
        slopes = sums.slopes / sums.n_samples
        fit_variance = model.mean_variance(slopes) if model.learns else None
        return mean_interval(sums, dispersion, fit_variance, gain, level)

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

    def coefficients(self) -> pd.DataFrame:
        """Return the ridge's coefficients, in the features' own units.

        One row for each: `kind` (slope, slope offset, offset, intercept), `group`, `feature`,
        `response` (the class whose rate it raises) and `value`.
        """
        model = self._fitted_model()
        if not isinstance(model, RidgeModel):
            raise InputError(
                f"Only model='ridge' has coefficients, got model={self.model!r}. Use `predict`."
            )
        return coefficient_table(model, self.features_, self.slope_levels_, self.offset_levels_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_") or not self._model_class().learns

    def _check_loaded(self) -> None:
        check_loaded_estimator(self)

    def _model_class(self) -> type[Model]:
        if self.model not in ACCURACY_MODELS:
            raise unknown_name("model", self.model, ACCURACY_MODELS)
        return ACCURACY_MODELS[self.model]

    def _feature_names(self) -> tuple[str, ...]:
        chosen = self._model_class().default if self.features is None else self.features
        return check_features(chosen)

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

    def _read_inputs(self, dist: Any, Y_pred: Any, slope_groups: Any, offset_groups: Any) -> Inputs:
        self._fitted_model()  # before anything is computed
        names = getattr(self, "features_", None) or self._feature_names()
        rule = getattr(self, "decision_", None)
        if rule is not None:
            Y_pred = check_same_decisions(rule, dist, Y_pred)
        table = self._read_table(dist, None, Y_pred, names, rule or self._check_decision())
        slope = check_groups(slope_groups, dist, len(table), "slope_groups")
        offset = check_groups(offset_groups, dist, len(table), "offset_groups")
        return self._make_inputs(table, names, slope, offset)

    def _read_labels(self, dist: Any, Y_pred: Any) -> LabelBatch:
        """Return the labels of a batch, with what was learned about them."""
        self._fitted_model()  # before anything is computed
        calibration = getattr(self, "label_calibration_", None)
        check_labels_are_known(dist, calibration, learns=self._model_class().learns)
        rule = getattr(self, "decision_", None)
        if rule is not None:
            Y_pred = check_same_decisions(rule, dist, Y_pred)
        if Y_pred is None and (rule or self._check_decision()) == "best":
            Y_pred = decide(dist, self.metric, empty=self.empty)
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

    def _make_folds(self, n_samples: int) -> Indices:
        folds = np.arange(n_samples) % min(N_FOLDS, n_samples)
        return make_generator(self.random_state).permutation(folds)
