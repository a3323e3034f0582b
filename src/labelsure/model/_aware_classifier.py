"""`AccuracyAwareClassifier`: a classifier with estimated accuracies and an accept policy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, ClassVar, ParamSpec, Self, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.utils.metadata_routing import (
    UNUSED,
    MetadataRouter,
    MethodMapping,
    process_routing,
)

from labelsure._kernels.threads import is_watched, watch_progress
from labelsure._runtime.arguments import read_choice, read_whole_number
from labelsure._runtime.progress import ProgressBar
from labelsure._runtime.typing import (
    Array,
    CvLike,
    Estimator,
    FeaturesLike,
    Floats,
    LabelsetsLike,
    Mask,
)
from labelsure.classifiers._chain_classifiers import EnsembleOfClassifierChains
from labelsure.classifiers._predicted_probabilities import ProbabilityWarning
from labelsure.classifiers._predictor import align_truth, to_classes, weighted_mean
from labelsure.classifiers.recalibration._base import Recalibration, RecalibrationLike
from labelsure.classifiers.recalibration._constrained import ConstrainedCalibration
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._probabilities import make_generator
from labelsure.distributions.constraints import LabelConstraints
from labelsure.errors import InputError, record_warnings, unknown_name, warn
from labelsure.estimation._batch_estimates import Estimate
from labelsure.estimation._comparison import Difference
from labelsure.estimation._estimator import BatchSettings
from labelsure.estimation._shift import MIN_ROWS
from labelsure.guarantees._label_thresholds import LabelThresholds
from labelsure.guarantees._labelset_region import LabelsetRegion, RegionLabelsets
from labelsure.guarantees._policy import AcceptPolicy
from labelsure.labelsets.foreign import count_rows, index_of
from labelsure.metrics.mean_tests import MEAN_TESTS
from labelsure.metrics.registry import MetricLike, accuracy, check_empty, check_level, get_metric
from labelsure.model._assessment import Assessment, assess_rows
from labelsure.model._calibration import Calibration, CrossFitted, HeldOut, holds_out
from labelsure.model._decision_rules import check_decision, make_rule
from labelsure.model._fitted_attributes import FittedAttributes
from labelsure.model._inputs import as_batch
from labelsure.model._predictor import Predictions
from labelsure.model._promises import Promises, read_region
from labelsure.model._training_data import (
    TrainingData,
    check_cv_setting,
    check_inner_model,
    check_recalibration,
)

if TYPE_CHECKING:
    from labelsure._runtime.pages import Page
    from labelsure.estimation._label_estimates import LabelEstimates
    from labelsure.estimation._label_shift import PrevalenceEstimates
    from labelsure.estimation.monitoring import MonitorResult, MonitorSettings

P = ParamSpec("P")
R = TypeVar("R")

HELD_OUT = 0.4
"""Share of the rows that is held out by default."""


def _shows_progress(method: Callable[P, R]) -> Callable[P, R]:
    """Have a method draw how many rows of a long question are finished."""

    @wraps(method)
    def watched(*args: P.args, **kwargs: P.kwargs) -> R:
        if is_watched():
            return method(*args, **kwargs)
        with ProgressBar("rows") as bar, watch_progress(bar):
            return method(*args, **kwargs)

    return watched


class AccuracyAwareClassifier(FittedAttributes):
    """Multi-label classifier that estimates how accurate each of its predictions is.

    `fit` holds out rows. On these it recalibrates the probabilities, fits an accuracy estimator
    and, with a `target`, chooses a threshold such that accepted predictions reach the target.

    Parameters
    ----------
    estimator
        Unfitted multi-label classifier with `predict_proba`; `fit` fits a clone. Or a fitted model
        in `sklearn.frozen.FrozenEstimator`, or `PrecomputedProbabilities`: then nothing is trained
        and every row of `fit` serves for calibration. None means `EnsembleOfClassifierChains`.
    metric
        "exact", "hamming", "jaccard", "f1", "recall", "precision", or a function of (tp, fp, fn,
        tn) with values in [0, 1]. `estimate` also answers for others. Recall and precision need a
        `decision` other than "best", because predicting every label maximises recall.
    target
        Mean accuracy that accepted predictions must reach. Give `target`, `share` or neither.
    share
        Share of predictions to accept, instead of a target.
    confidence
        Confidence level of the guarantee and of the intervals of `estimate`.
    guarantee
        "exact": half of the calibration rows are the policy's own, and the target is proved.
        "approximate" accepts more with few rows: the policy uses all calibration rows, by their
        out-of-fold estimates, and Student's t. `guaranteed_` is then False.
    region
        Coverage of the prediction sets, or a `LabelsetRegion`: `assess` then shows certain and
        possible labels. None: `predict_region` has a coverage of 0.9, and `assess` shows none.
    cv
        Which rows calibrate:

        - a share, 0.4 by default: held-out rows, whole groups with `groups=`. The guarantee, the
          shift test, prediction sets and monitoring need these;
        - a number of folds or a splitter of scikit-learn: out-of-fold predictions (cross-fitting),
          for few rows. Estimates are then those of models trained on fewer rows, and a target
          gives a threshold **without guarantee**.
    decision
        Which labelset is predicted and judged: "best", the one with the highest expected accuracy
        (for exact match, Jaccard and F1 the best non-empty one if no row of `fit` is empty);
        "mode", the most probable one; "predict", the estimator's own `predict`; or a fitted
        `LabelThresholds`. `fit(X, y, Y_pred=...)` judges any other predictions.
    recalibration
        "auto": label-wise calibration of independent labels, temperature scaling of chains and
        trellises, smoothing of votes. Each is kept only if the 95% interval of its mean gain in the
        log-probability of held-out truths lies above 0 and decisions do not become less accurate.
        None: no recalibration. Or an unfitted recalibration such as `TemperatureScaling()`. Policy
        and region never use the rows that it was fitted to.
    check_inputs
        Whether rows are referred, whatever their score, if a number lies far outside of its
        column's range in the rows of `fit` (about one ordinary row in 200 does, at most).
    constraints
        `LabelConstraints`: every prediction then obeys them, by a `ConstrainedCalibration`, which
        takes the place of the recalibration.
    empty
        Value of Jaccard and F1 for two empty labelsets.
    n_jobs
        Number of processes that fit the models of the folds, or the chains of the default
        estimator.
    verbose
        Whether `fit` prints each of its steps. Long work shows a progress bar after two seconds, on
        terminals and unless `LABELSURE_QUIET` is set.
    random_state
        Seed of folds and splits.

    Attributes
    ----------
    fitted_
        The parts of the fitted model in one frozen value, `Fitted`: what the others below show.
    estimator_
        The fitted classifier.
    accuracy_estimator_
        The fitted `AccuracyEstimator`.
    policy_
        The fitted `AcceptPolicy`; None without target and share.
    recalibration_
        The fitted recalibration; None without one.
    region_
        The fitted `LabelsetRegion`; None after cross-fitting and for very many labels.
    decision_
        Which predictions are judged: "best", "mode", "predict", "thresholds" or "given".
    guaranteed_
        Whether the target is guaranteed at `confidence`: the policy has rows that neither the
        classifier nor the accuracy estimator has seen.
    summary_
        What the policy accepts, whether that is guaranteed, and which predictions are judged.
    card_
        A `ModelCard`: data sizes, metric, target, guarantee, calibration.

    See Also
    --------
    AccuracyEstimator : The estimates alone, for distributions that you already have.
    AcceptPolicy : The threshold alone, for any score.
    LabelsetRegion : The prediction sets alone.
    PrecomputedProbabilities : Stands in for a classifier where you only have probabilities.

    Notes
    -----
    Estimates follow Park and Read, Estimating multi-label accuracy using labelset distributions.
    Guarantees follow Angelopoulos, Bates, Candès, Jordan and Lei (2021), Learn then test,
    arXiv:2110.01052, with betting tests of Waudby-Smith and Ramdas (2024), arXiv:2010.09686.

    Examples
    --------
    A fitted classifier, and labelled rows that it has not seen:

    >>> import labelsure as ls
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, Y = make_multilabel_classification(3000, n_classes=5, random_state=0)
    >>> clf = KNeighborsClassifier(15).fit(X[:1000], Y[:1000])
    >>> model = ls.AccuracyAwareClassifier(FrozenEstimator(clf), "f1", target=0.8, random_state=0)
    >>> model = model.fit(X[1000:2000], Y[1000:2000])
    >>> print(model.estimate(X[2000:]))
    Mean F1 ... (95% interval ... to ..., n = 1,000; calibrated on 500 held-out rows; no shift
    detected).
    >>> found = model.assess(X[2000:])
    >>> found.Y_pred.shape, found.accuracy.shape, found.accepted.shape
    ((1000, 5), (1000,), (1000,))
    """

    # `fit` passes weights on to the estimator, which says whether it wants them.
    __metadata_request__fit: ClassVar[dict[str, str]] = {
        "sample_weight": UNUSED,
        "Y_pred": UNUSED,
    }

    def __init__(
        self,
        estimator: Estimator = None,
        metric: MetricLike = "jaccard",
        target: float | None = None,
        *,
        share: float | None = None,
        confidence: float = 0.95,
        guarantee: str = "exact",
        region: float | LabelsetRegion | None = None,
        cv: CvLike = HELD_OUT,
        decision: str | LabelThresholds = "best",
        recalibration: RecalibrationLike = "auto",
        check_inputs: bool = True,
        constraints: LabelConstraints | None = None,
        empty: float = 1.0,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.target = target
        self.share = share
        self.confidence = confidence
        self.guarantee = guarantee
        self.region = region
        self.cv = cv
        self.decision = decision
        self.recalibration = recalibration
        self.check_inputs = check_inputs
        self.constraints = constraints
        self.empty = empty
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @_shows_progress
    def fit(
        self,
        X: FeaturesLike,
        y: LabelsetsLike,
        sample_weight: object = None,
        *,
        groups: ArrayLike | None = None,
        Y_pred: LabelsetsLike = None,
        **params: object,
    ) -> Self:
        """Fit the classifier, the estimator of its accuracy and, with a target, the policy.

        Parameters
        ----------
        X
            n rows, in whatever form the estimator takes them; a list of dicts is read as a
            DataFrame.
        y
            Their labels: (n, L) zeros and ones, a DataFrame (whose columns name the labels),
            sparse, or a list of label names for each row; or a vector of two classes, which
            is the case of one label.
        sample_weight, **params
            Handed to the estimator's `fit`, the rows that belong to each part of the data; weights
            also to the recalibration.
        groups
            (n,) the group of each row, where rows of a group depend on each other (ten photos of
            one event). Groups are never split, and guarantees, intervals and folds count groups
            instead of rows.
        Y_pred
            Predictions of another system for X, in any form of labels. Then these are judged, and
            `assess`, `accept` and `estimate` need `Y_pred` as well.
        """
        promises = self._read_promises()
        self._check_parameters(groups, decides=Y_pred is None)
        params = self._route({"sample_weight": sample_weight, **params})
        estimator = self._new_estimator()
        data = TrainingData.read(
            X, y, estimator, self._requirements(), params, groups=groups, Y_pred=Y_pred
        )
        if isinstance(recalibration := self._recalibration(), Recalibration):
            recalibration.check_truth(data.Y, data.labels.names)
        calibration = self._make_calibration(data, estimator, promises.needs_own_rows)
        with record_warnings(ProbabilityWarning) as suspects:  # folds repeat warnings
            self.fitted_ = promises.fit(calibration.calibrate(data), self._log)
        if suspects:
            warn("\n".join(dict.fromkeys(suspects)), ProbabilityWarning)
        self._log(self.summary_)
        return self

    def _make_calibration(
        self, data: TrainingData, estimator: Estimator, splits: bool
    ) -> Calibration:
        """Held-out or cross-fitted calibration with the settings of this model."""
        calibration_class = HeldOut if holds_out(estimator, self.cv) else CrossFitted
        given = data.Y_pred is not None
        return calibration_class(
            estimator,
            self.metric,
            self.empty,
            self.cv,
            make_rule(self.decision, self.metric, self.empty, data.Y, given=given),
            self._recalibration(),
            splits=splits,
            check_inputs=self.check_inputs,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            log=self._log,
        )

    def _log(self, step: str) -> None:
        if self.verbose:
            print(f"labelsure: {step}", file=sys.stderr)

    def predict_distribution(self, X: FeaturesLike) -> LabelsetDistribution:
        """P(Y given x) of each row: the estimator's, recalibrated where that helps.

        Parameters
        ----------
        X
            (n, d) rows: an array, a DataFrame, a scipy sparse matrix, or a list of dicts,
            which is read as a DataFrame.

        Returns
        -------
        LabelsetDistribution
            n distributions, with the index of X.
        """
        return self._fitted_model().predictor.distribution(X)

    def _distribution_of_checked(self, X: FeaturesLike) -> LabelsetDistribution:
        return self.predict_distribution(X)

    def _predict(
        self, X: FeaturesLike, Y_pred: LabelsetsLike = None, *, of_any_system: bool = False
    ) -> Predictions:
        return self._fitted_model().predictor.predict(X, Y_pred, of_any_system=of_any_system)

    @_shows_progress
    def predict(self, X: FeaturesLike) -> Array:
        """Predicted labelset of each row.

        Parameters
        ----------
        X
            (n, d) rows: an array, a DataFrame, a scipy sparse matrix, or a list of dicts,
            which is read as a DataFrame.

        Returns
        -------
        numpy.ndarray of shape (n, L)
            Zeros and ones; where y was a vector in `fit`, its two classes, (n,). Sparse for very
            many labels.
        """
        labelsets = self._predict(X).labelsets
        return to_classes(labelsets, self.fitted_.predictor.labels.classes)

    @_shows_progress
    def predict_accuracy(self, X: FeaturesLike, *, Y_pred: LabelsetsLike = None) -> Floats:
        """Estimated accuracy of each prediction.

        Parameters
        ----------
        X
            (n, d) rows: an array, a DataFrame, a scipy sparse matrix, or a list of dicts,
            which is read as a DataFrame.
        Y_pred
            (n, L) predictions for X of the system whose predictions `fit` got as `Y_pred`; None for
            the model's own.

        Returns
        -------
        numpy.ndarray of shape (n,)
            Estimated values of `metric`, in [0, 1].
        """
        predictions = self._predict(X, Y_pred)
        return self.accuracy_estimator_.predict(predictions.dist, predictions.decisions)

    @_shows_progress
    def accept(self, X: FeaturesLike, *, Y_pred: LabelsetsLike = None) -> Mask:
        """Predictions that the policy accepts, as a mask; needs a target or a share.

        Parameters
        ----------
        X
            (n, d) rows: an array, a DataFrame, a scipy sparse matrix, or a list of dicts,
            which is read as a DataFrame.
        Y_pred
            (n, L) predictions for X of the system whose predictions `fit` got as `Y_pred`; None for
            the model's own.

        Returns
        -------
        numpy.ndarray of shape (n,)
            True for accepted predictions; the others are to be referred to a person.

        Warns
        -----
        ShiftWarning
            If X differs from the calibration set.
        """
        if self._fitted_model().policy is None:
            raise InputError(
                "`accept` needs a target or a share, got neither when fitting. Fit with e.g. "
                "target=0.9."
            )
        accepted = self.assess(X, Y_pred=Y_pred).accepted
        assert accepted is not None  # there is a policy
        return accepted

    @_shows_progress
    def predict_region(self, X: FeaturesLike) -> RegionLabelsets:
        """Conformal prediction set of each row.

        The coverage is that of `region`, 0.9 by default, on average over new rows from the same
        population.

        Parameters
        ----------
        X
            (n, d) rows: an array, a DataFrame, a scipy sparse matrix, or a list of dicts,
            which is read as a DataFrame.

        Returns
        -------
        RegionLabelsets
            Its `certain`, `possible` and `open` labels; `contains(Y)` compares it with the truth.
        """
        return self._fitted_model().find_region().predict(self.predict_distribution(X))

    @_shows_progress
    def estimate(
        self, X: FeaturesLike, *, Y_pred: LabelsetsLike = None, **settings: Unpack[BatchSettings]
    ) -> Estimate:
        """Estimate the mean accuracy of a batch, with a confidence interval, under any metric.

        Parameters
        ----------
        X
            (n, d) rows: an array, a DataFrame, a scipy sparse matrix, or a list of dicts,
            which is read as a DataFrame.
        Y_pred
            (n, L) predictions for X of the system whose predictions `fit` got as `Y_pred`. With
            `Y_true` those of any system, to compare it with this one. None for the model's own.
        metric
            None for the metric of the model; "exact", "hamming", "jaccard", "f1", "recall",
            "precision", or a function of (tp, fp, fn, tn): a mean over rows; or "micro-f1",
            "macro-f1", "micro-precision" and so on: a measure of the whole batch. The same
            predictions are judged whatever the metric.
        level
            Confidence level of the interval; None for `confidence` of the model.
        shift
            How to handle distribution shift: "test" for it and warn (`ShiftWarning`), "ignore" it,
            or correct for covariate shift by importance weights ("weighted").
        Y_true, rows
            Labels of some rows that were drawn at random, and the positions of these rows in X
            (`draw_audit`). The interval is then valid under any shift. The index of a DataFrame
            `Y_true` takes the place of `rows` where X has an index.
        interval
            With labelled rows: "pseudo-rows", Student's interval with one pseudo-row at each end of
            the range, which is approximate; or "betting", which is wider and proved.

        Returns
        -------
        Estimate
            `mean`, `low`, `high`, and a sentence when printed.

        See Also
        --------
        AccuracyEstimator.estimate : The same for distributions.
        draw_audit : Chooses the rows to label.

        Notes
        -----
        With labels this is prediction-powered inference: Angelopoulos, Bates, Fannjiang, Jordan and
        Zrnic (2023), Science 382, arXiv:2301.09633.
        """
        is_labelled = settings.get("Y_true") is not None
        predictions = self._predict(X, Y_pred, of_any_system=is_labelled)
        return self.fitted_.estimate(predictions, settings)

    @_shows_progress
    def compare(
        self, other: AccuracyAwareClassifier, X: FeaturesLike, **settings: Unpack[BatchSettings]
    ) -> Difference:
        """Estimate by how much this model is more accurate on a batch than another one.

        Models that were calibrated on the same rows in the same order, as with the same data, `cv`
        and `random_state`, are compared row by row there, which makes the interval narrow.

        Parameters
        ----------
        other
            A fitted model with the same labels.
        X
            (n, d) rows that both take.
        metric
            None for the metric of this model; the name of another, or a function of (tp, fp, fn,
            tn): means over rows only.
        level
            Confidence level of the interval; None for `confidence` of the model.
        shift
            "test" compares the batch with both calibration sets and warns (`ShiftWarning`);
            "ignore" does not.
        Y_true, rows
            Labels of some rows that were drawn at random, and their positions in X. The interval is
            then valid under any shift.
        interval
            With labelled rows, as in `estimate`.

        Returns
        -------
        Difference
            `mean`, `low`, `high`, positive where this model is more accurate.

        See Also
        --------
        estimate : Mean accuracy of one model.
        """
        if not isinstance(other, AccuracyAwareClassifier):
            raise InputError(
                f"`other` must be an AccuracyAwareClassifier, got a {type(other).__name__}."
            )
        predictions = self._predict(X), other._predict(X)
        return self.fitted_.compare(other.fitted_, predictions, settings)

    def draw_audit(
        self, X: FeaturesLike, n_rows: int, *, random_state: int | None = None
    ) -> NDArray[np.intp]:
        """Positions of rows to label, drawn at random without replacement.

        `estimate(X, rows=rows, Y_true=labels)` is then valid for any batch, shifted or not.

        Parameters
        ----------
        X
            The batch, in any form that `estimate` takes.
        n_rows
            Number of rows to draw, at most the size of the batch.
        random_state
            Seed of the draw.

        Returns
        -------
        numpy.ndarray of shape (n_rows,)
            Positions in X, in ascending order.
        """
        n_samples = count_rows(X)
        read_whole_number(n_rows, "n_rows", most=n_samples)
        drawn = make_generator(random_state).choice(n_samples, int(n_rows), replace=False)
        return np.sort(drawn)

    def monitor(
        self, chunks: Iterable[FeaturesLike], **settings: Unpack[MonitorSettings]
    ) -> MonitorResult:
        """Monitor a stream chunk by chunk, with alarms that are valid at every time.

        Parameters
        ----------
        chunks
            The stream from its beginning: chunks of features X one after the other, or a dict of
            them by name.
        **settings
            `chunk_size`, `labels`, `bound`, `reference`, `error` and `level`; `labelsure.monitor`
            describes them.

        Returns
        -------
        MonitorResult
            Estimated accuracy, p-value and `alert` of each chunk; `to_frame()` is a table,
            `report()` a page for people.

        See Also
        --------
        labelsure.monitor : All settings and columns, and an example.
        """
        from labelsure.estimation.monitoring import monitor

        model = self._fitted_model()
        labels, read_truth = settings.get("labels"), model.predictor.labels.read
        if isinstance(labels, Mapping):  # `monitor` refuses what is malformed
            settings["labels"] = {
                chunk: (labelled[0], read_truth(labelled[1], "labels"), *labelled[2:])
                if isinstance(labelled, tuple) and len(labelled) > 1
                else labelled
                for chunk, labelled in labels.items()
            }
        settings.setdefault("level", self.confidence)
        return monitor(self, chunks, **settings)

    def estimate_prevalence(
        self, X: FeaturesLike, *, level: float | None = None
    ) -> PrevalenceEstimates:
        """Estimated prevalence of each label in a batch without labels.

        It assumes label shift: labels may have become more or less frequent, but inputs with a
        label look as before.

        Parameters
        ----------
        X
            The batch.
        level
            Confidence level of each label's interval; None means `confidence`.

        Returns
        -------
        PrevalenceEstimates
            Of each label the prevalence on the `calibration` set, and `prevalence` in the batch
            with an interval from `low` to `high`; `to_frame()` is a table.
        """
        level = self.confidence if level is None else level
        dist = self.predict_distribution(X)
        return self.accuracy_estimator_.estimate_prevalence(dist, level=level)

    @_shows_progress
    def estimate_labels(
        self,
        X: FeaturesLike,
        *,
        Y_pred: LabelsetsLike = None,
        level: float | None = None,
        Y_true: LabelsetsLike = None,
        rows: object = None,
    ) -> LabelEstimates:
        """Estimated precision, recall and F1 of each label in a batch without labels.

        Parameters
        ----------
        X
            (n, d) rows: an array, a DataFrame, a scipy sparse matrix, or a list of dicts,
            which is read as a DataFrame.
        Y_pred
            (n, L) predictions for X of the system whose predictions `fit` got as `Y_pred`; None for
            the model's own.
        level
            Confidence level of the intervals; None for `confidence` of the model.
        Y_true, rows
            Labels of some rows that were drawn at random, and their positions in X. The intervals
            then allow for any shift.

        Returns
        -------
        LabelEstimates
            `n_predicted` of each label, and estimated `n_true`, `precision`, `recall` and `f1`,
            with intervals from `_low` to `_high`; `to_frame()` is a table. 0/0 counts as `empty`.
        """
        level = self.confidence if level is None else level
        predictions = self._predict(X, Y_pred, of_any_system=Y_true is not None)
        if Y_true is not None:
            Y_true = self.fitted_.predictor.labels.read(Y_true, "Y_true", index_of(Y_true))
        return self.accuracy_estimator_.estimate_labels(
            predictions.dist, predictions.decisions, level=level, Y_true=Y_true, rows=rows
        )

    @_shows_progress
    def assess(
        self, X: FeaturesLike, *, Y_pred: LabelsetsLike = None, k: int = 0, shift: str = "test"
    ) -> Assessment:
        """Predictions with their estimated accuracies and whether they are accepted.

        Parameters
        ----------
        X
            (n, d) rows: an array, a DataFrame, a scipy sparse matrix, or a list of dicts,
            which is read as a DataFrame.
        Y_pred
            (n, L) predictions for X of the system whose predictions `fit` got as `Y_pred`; None for
            the model's own.
        k
            The k of a `to_frame(k)` that follows: its most probable labelsets are then found in the
            same sweep.
        shift
            "test" compares X with the calibration set and warns (`ShiftWarning`) if it differs;
            "ignore" does not, e.g. for a single row or one of many parts of a batch.

        Returns
        -------
        Assessment
            `Y_pred`, `accuracy` and `accepted`, each with one entry per row; `to_frame()` is a
            table with the index of X.
        """
        if shift not in ("test", "ignore"):
            raise unknown_name("shift", shift, ("test", "ignore"))
        predictions, tests = self._predict(X, Y_pred), shift == "test"
        compares = tests and len(predictions) >= MIN_ROWS
        rows = self.fitted_.estimate_rows(predictions, k=k, compares=compares)
        return assess_rows(self.fitted_, predictions, rows, X, tests_shift=tests)

    @_shows_progress
    def report(
        self,
        X: FeaturesLike = None,
        Y: LabelsetsLike = None,
        *,
        Y_pred: LabelsetsLike = None,
        show: Sequence[str] = (),
        title: str | None = None,
        open_cost: float | None = None,
    ) -> Page:
        """HTML page on the model and its predictions; `save(path)` writes it as one file.

        Parameters
        ----------
        X
            (n, d) rows; None for a page on the model alone.
        Y
            (n, L) truth, if known: the page then has a reliability diagram and actual accuracies.
        Y_pred
            (n, L) predictions for X of the system whose predictions `fit` got as `Y_pred`; None for
            the model's own.
        show
            Columns of X that the page may show beside predictions, cut to 200 characters: nothing
            else of X is in the file. Texts that are X itself are shown.
        title
            Title of the page; None names the classifier.
        open_cost
            Mark labels to leave open: those that would be wrong with a probability above this cost,
            whatever the metric of the model. None marks none.

        Returns
        -------
        Page
            Shows itself in notebooks.
        """
        from labelsure.model._model_report import PageBatch, choose_columns, make_model_report

        model = self._fitted_model()
        if title is None:
            title = f"{model.card.classifier}: which predictions can go out?"
        if X is None:
            return make_model_report(model, [], title)
        shown = choose_columns(as_batch(X), show)
        predictions = self._predict(X, Y_pred)
        classes = model.predictor.labels.classes
        truth = None if Y is None else align_truth(classes, Y, predictions.dist, "Y")
        return make_model_report(model, [PageBatch(predictions, truth, shown)], title, open_cost)

    def score(self, X: FeaturesLike, y: LabelsetsLike, sample_weight: object = None) -> float:
        """Mean accuracy of the predictions for X under the metric of the model.

        Parameters
        ----------
        X
            (n, d) rows: an array, a DataFrame, a scipy sparse matrix, or a list of dicts,
            which is read as a DataFrame.
        y
            (n, L) truth; the columns of a DataFrame are aligned by name.
        sample_weight
            (n,) weights of the rows; None for equal ones.

        Returns
        -------
        float
            In [0, 1].
        """
        predictions = self._predict(X)
        truth = align_truth(self.fitted_.predictor.labels.classes, y, predictions.dist)
        values = accuracy(truth, predictions.labelsets, self.metric, empty=self.empty)
        return weighted_mean(values, sample_weight, predictions.dist)

    def get_metadata_routing(self) -> MetadataRouter:
        """Routing of the arguments of `fit`, for scikit-learn."""
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return router.add(estimator=self._new_estimator(), method_mapping=mapping)

    def _route(self, params: dict[str, object]) -> dict[str, object]:
        """Arguments of the estimator's `fit` beside X and y, without None."""
        params = {name: value for name, value in params.items() if value is not None}
        if get_config()["enable_metadata_routing"]:
            return dict(process_routing(self, "fit", **params).estimator.fit)
        return params

    def _read_promises(self) -> Promises:
        outcome = get_metric(self.metric).outcome
        check_empty(self.empty)
        check_level(self.confidence)
        read_choice(self.guarantee, "guarantee", MEAN_TESTS)
        policy = None
        if self.target is not None or self.share is not None:
            policy = AcceptPolicy(
                self.target,
                share=self.share,
                confidence=self.confidence,
                outcome=outcome,
                guarantee=self.guarantee,
            )
            policy.check_parameters()
        region, is_shown = read_region(self.region), self.region is not None
        return Promises(self.metric, self.empty, self.confidence, policy, region, is_shown)

    def _check_parameters(self, groups: object, *, decides: bool) -> None:
        """Raise InputError for parameters that `fit` cannot use, before anything is fitted."""
        if decides:
            check_decision(self.decision, self.metric)
        check_inner_model(self._new_estimator())
        check_cv_setting(self.cv)
        if not isinstance(self.check_inputs, (bool, np.bool_)):
            raise InputError(f"`check_inputs` must be True or False, got {self.check_inputs!r}.")
        check_recalibration(self.recalibration, self.constraints)
        if self.region is not None and not holds_out(self._new_estimator(), self.cv):
            raise InputError(
                f"`region` needs held-out rows, got cv={self.cv!r}, which holds none out. Hold "
                f"some out, e.g. by cv={HELD_OUT}, or pass a fitted model in a `FrozenEstimator`."
            )
        if groups is not None and self.share is not None:
            raise InputError(
                "`share` needs independent rows, whose order statistics have a known distribution, "
                "got `groups`. Use a target."
            )

    def _recalibration(self) -> RecalibrationLike:
        if self.constraints is None:
            return self.recalibration
        return ConstrainedCalibration(self.constraints, calibrate=self.recalibration is not None)

    def _wrapped_estimator(self) -> Estimator:
        return self.estimator

    def _new_estimator(self) -> Estimator:
        if self.estimator is None:
            return EnsembleOfClassifierChains(n_jobs=self.n_jobs, random_state=self.random_state)
        return self.estimator
