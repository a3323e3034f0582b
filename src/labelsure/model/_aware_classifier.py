"""`AccuracyAwareClassifier`: a classifier that knows how accurate its predictions are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Self, TypeVar, Unpack, cast

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import estimator_html_repr
from sklearn.utils.metadata_routing import (
    UNUSED,
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from labelsure._kernels.threads import is_watched, watch_progress
from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_whole_number
from labelsure._runtime.notebook import make_html
from labelsure._runtime.processes import count_workers
from labelsure._runtime.progress import ProgressBar
from labelsure._runtime.typing import Floats, Indices, Labelsets, Mask
from labelsure.classifiers._adapters import (
    PrecomputedProbabilities,
    ProbabilityWarning,
    as_distribution,
    innermost,
    is_settled,
    known_label_names,
    read_instances,
    shape_for_estimator,
)
from labelsure.classifiers._chain_classifiers import EnsembleOfClassifierChains
from labelsure.classifiers._predictor import (
    LabelsetClassifier,
    LabelsetPredictor,
    Targets,
    align_truth,
    index_of_batch,
    order_like,
    read_classes,
    weighted_mean,
)
from labelsure.classifiers.recalibration import (
    Part,
    RecalibratedClassifier,
    Recalibration,
    fit_recalibration,
    mean_interval,
)
from labelsure.decisions._rules import decide
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._chain_mixture import ChainMixture
from labelsure.distributions._dense import DenseDistribution
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._probabilities import make_generator
from labelsure.errors import InputError, LabelsureError, hold_warnings, unknown_name, warn
from labelsure.estimation._accuracy_model import EXPECTED, LabelsetFrequencies
from labelsure.estimation._batch_estimates import Estimate
from labelsure.estimation._estimator import AccuracyEstimator, BatchSettings
from labelsure.estimation._label_estimates import LABEL_METRICS
from labelsure.estimation.score_table import ScoreTable
from labelsure.guarantees._label_thresholds import LabelThresholds
from labelsure.guarantees._labelset_region import LabelsetRegion, RegionLabelsets
from labelsure.guarantees._policy import AcceptPolicy
from labelsure.labelsets.names import GivenLabelsets, align_values, read_groups
from labelsure.labelsets.rows import (
    as_table,
    check_shape,
    count_labels,
    count_rows,
    differing_rows,
    index_of,
    is_sparse,
    read_rows,
    refuse_masked,
    stack_rows,
    take_rows,
)
from labelsure.metrics.registry import (
    EXACT,
    F1,
    JACCARD,
    METRICS,
    PRECISION,
    RECALL,
    MetricLike,
    accuracy,
    check_empty,
    check_level,
    get_metric,
)
from labelsure.model._assessment import Assessment, assess_predictions
from labelsure.model._calibration import (
    NewRows,
    TrainingData,
    as_batch,
    check_cv_setting,
    check_inner_model,
    check_recalibration,
    cut_by_groups,
    fit_clone,
    hold_out,
    is_share,
    make_folds,
    warn_of_perfection,
    warn_of_shared_rows,
    with_labelsets,
)
from labelsure.model._model_card import make_card

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from labelsure._runtime.pages import Page
    from labelsure.estimation.monitoring import MonitorTable

P = ParamSpec("P")
R = TypeVar("R")

DECISIONS = ("best", "mode", "predict")

HELD_OUT = 0.4
"""Share of the rows that is held out by default. On Emotions, Scene and Yeast 0.4 loses .005 to
.014 of F1 against 0.2, and intervals are 26 to 40% narrower (docs/evidence/hold_out.csv)."""

FEW_HELD_OUT = 50
"""Held-out rows below which `fit` names cv=5: with 60 of Yeast and Emotions the interval of the
mean F1 of a large batch is about 0.2 wide, and no target above the mean can be shown."""

SMALL_JOINT = 2**23
"""Probabilities of a batch (64 MB) up to which all are computed once, for every question. Ten
chains of 14 labels: `estimate` of 500 rows takes 103 ms of CPU instead of 198 with 2**22."""

N_CROSS_FITS, MIN_CROSS_FITTED = 5, 10
"""Parts in which rows are recalibrated by fits to the other parts, and the rows this needs."""

USUAL_COVERAGE = 0.9
"""Coverage of `predict_region` where `region` does not say one."""


def _shows_progress(method: Callable[P, R]) -> Callable[P, R]:
    """Have a method draw how many rows of a long question are finished."""

    @wraps(method)
    def watched(*args: P.args, **kwargs: P.kwargs) -> R:
        if is_watched():
            return method(*args, **kwargs)
        with ProgressBar("rows") as bar, watch_progress(bar):
            return method(*args, **kwargs)

    return watched


class AccuracyAwareClassifier(LabelsetPredictor):
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
        trellises, smoothing of votes. Each is kept only if it raises the log-probability of
        held-out truths and decisions do not become less accurate. None: no recalibration. Or an
        unfitted recalibration such as `TemperatureScaling()`. Policy and region never use the rows
        that it was fitted to.
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
        estimator: Any = None,
        metric: MetricLike = "jaccard",
        target: float | None = None,
        *,
        share: float | None = None,
        confidence: float = 0.95,
        region: Any = None,
        cv: Any = HELD_OUT,
        decision: Any = "best",
        recalibration: Any = "auto",
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
        self.region = region
        self.cv = cv
        self.decision = decision
        self.recalibration = recalibration
        self.empty = empty
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @_shows_progress
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        Y_pred: Any = None,
        **params: Any,
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
            (n,) the group of each row: rows of a group are never split.
        Y_pred
            What another system predicts for X, in any form of labels. Then these predictions are
            judged, and `assess`, `accept` and `estimate` need `Y_pred` as well.
        """
        self._check_parameters(decides=Y_pred is None)
        params = self._route({"sample_weight": sample_weight, **params})
        data = self._read_training_data(as_batch(X), y, params, groups, Y_pred)
        self.decision_ = "given" if Y_pred is not None else _name_decision(self.decision)
        self.has_empty_ = bool((count_labels(data.Y) == 0).any())
        self.policy_ = self.region_ = None
        self.comparison_, self.own_differs_ = "", False
        with hold_warnings(ProbabilityWarning) as suspects:  # which each fold may repeat
            fit = self._fit_held_out if self._holds_out else self._fit_by_folds
            for_estimator, for_policy, n_training, seen = fit(data)
        if suspects:
            warn("\n".join(dict.fromkeys(suspects)), ProbabilityWarning)
        if isinstance(self.classes_, list):  # names of a DataFrame X may have reached the model
            self.label_names_ = known_label_names(self.estimator_) or self.label_names_
        self._say(f"fitting the estimator of accuracy to {len(for_estimator):,} rows")
        self.accuracy_estimator_ = self._fit_judge(self.metric, for_estimator, seen)
        policy = self._make_policy()
        if policy is not None:
            estimated = self.accuracy_estimator_.predict(for_policy)
            self.policy_ = policy.fit(estimated, for_policy.accuracy(self.metric, self.empty))
        reached = self.policy_ is not None and self.policy_.reached_
        self.guaranteed_ = bool(self._holds_out and reached)
        for name in () if self._has_base_learners else ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        if self._counts_columns:
            validate_data(self, data.X, skip_check_array=True)
        self.card_ = make_card(self, n_training, for_estimator, for_policy)
        self._say(self.summary_)
        return self

    def _say(self, step: str) -> None:
        """Print what `fit` does, if somebody wants to know."""
        if self.verbose:
            print(f"labelsure: {step}", file=sys.stderr)

    def _fit_held_out(
        self, data: TrainingData
    ) -> tuple[ScoreTable, ScoreTable, int, LabelsetFrequencies | None]:
        """Fit to some rows and score the others: all of them where nothing is trained."""
        estimator, splits = self._new_estimator(), self._make_policy() is not None
        settled = is_settled(estimator)
        n_needed = 4 if splits else 2
        share = 1.0 if settled else float(self.cv)
        held_out, training = hold_out(data, share, n_needed, self.random_state)
        if not settled:
            warn_of_shared_rows(data, training, held_out)
            if len(held_out) < FEW_HELD_OUT:
                warn(
                    f"Only {len(held_out)} of {data.n_samples} rows are held out: estimates have "
                    "wide intervals, and hardly any target can be guaranteed. For so few rows use "
                    "cv=5, without a guarantee.",
                    UserWarning,
                )
        fitted_to = np.arange(data.n_samples) if settled else training
        self._say(f"{len(fitted_to):,} rows for training, {len(held_out):,} for calibration")
        self.estimator_ = fit_clone(estimator, data, fitted_to, self.label_names_)
        rows = self._predict_rows(self.estimator_, data, held_out, None if settled else training)
        n_first = len(held_out)
        if splits or self.recalibration is not None:
            n_first = cut_by_groups(held_out, n_first // 2, data.groups)
        first = rows[:n_first]
        self.recalibration_ = self._fit_recalibration([first])
        rows = self._recalibrate_rows(rows)
        later = rows[n_first:]
        # Rows that a recalibration was fitted to are not new to the distributions.
        self.region_ = self._fit_region(rows if self.recalibration_ is None else later)
        judged = rows[:n_first] if splits else rows
        tables = [self._tabulate(judged)]
        if self._recalibrates and n_first >= MIN_CROSS_FITTED:
            ends = np.linspace(0, n_first, N_CROSS_FITS + 1).astype(int)
            folds = [first[start:stop] for start, stop in pairwise(ends)]
            parts = [self._tabulate(part) for part in self._cross_recalibrate(folds)]
            if not splits:
                parts.append(self._tabulate(later))
            cross_fitted = ScoreTable.concatenate(parts, of_one_model=True)
            cross_fitted._compared_as, tables = tables[0], [cross_fitted]
        if splits:
            tables.append(self._tabulate(later))
        if settled:
            warn_of_perfection(tables[0], data.Y.shape[1])
        if isinstance(estimator, FrozenEstimator):
            self.comparison_ = self._compare_with_predict(data, held_out, tables)
        return tables[0], tables[-1], 0 if settled else len(training), rows.seen

    def _fit_by_folds(
        self, data: TrainingData
    ) -> tuple[ScoreTable, ScoreTable, int, LabelsetFrequencies | None]:
        """Score every row by a model that was fitted to others."""
        # All folds are made first: what a splitter refuses should not cost a fit.
        folds = make_folds(data, self.cv, self.random_state)
        if folds:
            warn_of_shared_rows(data, *folds[0])
        everything, estimator = np.arange(data.n_samples), self._new_estimator()
        self.estimator_ = fit_clone(estimator, data, everything, self.label_names_)
        self._say(f"{len(folds)} folds of {data.n_samples:,} rows")
        n_workers = count_workers(self.n_jobs, len(folds))
        clones = ((estimator, data, train, self.label_names_) for train, _ in folds)
        if effective_n_jobs(n_workers) == 1:  # scikit-learn's `Parallel` changes warning filters
            models = (fit_clone(*clone) for clone in clones)
        else:
            workers = Parallel(n_jobs=n_workers, return_as="generator")
            models = workers(delayed(fit_clone)(*clone) for clone in clones)
        parts = [
            self._predict_rows(fitted, data, test, train)
            for fitted, (train, test) in zip(models, folds, strict=True)
        ]
        self.recalibration_ = self._fit_recalibration(parts)
        table = ScoreTable.concatenate([self._tabulate(p) for p in self._cross_recalibrate(parts)])
        return table, table, data.n_samples, LabelsetFrequencies.of(data.Y, self.label_names_)

    def _predict_rows(
        self, fitted: Any, data: TrainingData, rows: Indices, training: Indices | None
    ) -> NewRows:
        """Return what a clone says of some rows, fitted to the training ones."""
        X = take_rows(data.X, rows)
        dist = self._ask(fitted, X)
        seen = None
        if training is not None:
            seen = LabelsetFrequencies.of(data.Y[training], self.label_names_)
        given = None if data.Y_pred is None else data.Y_pred[rows]
        if self.decision_ == "predict":
            given = _own_predictions(fitted, X, dist)
        weights = data.params.get("sample_weight")
        weights = None if weights is None else np.asarray(weights)[rows]
        return NewRows(dist, data.Y[rows], given, seen, weights)

    def _tabulate(self, rows: NewRows) -> ScoreTable:
        """Return the score table of predictions, with expected values under every metric."""
        metrics = list(dict.fromkeys([get_metric(self.metric), *METRICS.values()]))
        tables = []
        for some in _cut_for_cache(rows):
            dist = _make_small_dense(some.dist)
            table = ScoreTable.from_distribution(
                dist,
                some.truth,
                self._choose(dist, some.given),
                metrics=metrics,
                decision_rule=self.decision_,
            )
            if dist is not some.dist:
                table.replace_joint(some.dist)
            tables.append(table if rows.seen is None else rows.seen.add_to(table))
        return ScoreTable.concatenate(tables, of_one_model=True)

    def _fit_judge(self, metric: MetricLike, table: Any, seen: Any) -> AccuracyEstimator:
        """Return the estimator of accuracy under a metric."""
        features = None
        if get_metric(metric) not in (*METRICS.values(), get_metric(self.metric)):
            # Expected values are tabulated for the named metrics and the model's own alone.
            features = [name for name in self.accuracy_estimator_.features_ if name != EXPECTED]
        judge = AccuracyEstimator(metric, features, self.empty).fit(table, Y_train=seen)
        if self.confidence != judge.reference_.level:
            judge.reference_ = judge.estimate(table, level=self.confidence, shift="ignore")
        return judge

    def _fit_recalibration(self, parts: list[NewRows]) -> Recalibration | None:
        """Fit the recalibration; "auto" keeps none with which decisions become less accurate."""
        is_auto = isinstance(self.recalibration, str)
        if is_auto and isinstance(innermost(self.estimator_), RecalibratedClassifier):
            return None  # it has chosen already, and perhaps another kind in each fold
        dists, truths = [part.dist for part in parts], [part.truth for part in parts]
        weights = None if parts[0].weights is None else [part.weights for part in parts]
        found = fit_recalibration(self.recalibration, dists, truths, weights)
        if found is None or not found.is_kept_ or not is_auto:
            return found

        def total(part: NewRows, dist: LabelsetDistribution) -> float:
            Y_pred = self._choose(dist, part.given)
            Y_pred = dist.mode() if Y_pred is None else Y_pred
            values = accuracy(part.truth, Y_pred, self.metric, empty=self.empty)
            return float(values.sum() if part.weights is None else part.weights @ values)

        gains = [total(p, found.transform(p.dist)) - total(p, p.dist) for p in parts]
        found.is_kept_ = sum(gains) >= 0
        return found

    @property
    def _recalibrates(self) -> bool:
        return self.recalibration_ is not None and bool(self.recalibration_.is_kept_)

    def _recalibrate_rows(self, rows: NewRows) -> NewRows:
        return replace(rows, dist=_make_small_dense(self._recalibrate(rows.dist)))

    def _cross_recalibrate(self, parts: list[NewRows]) -> Iterator[NewRows]:
        """Yield each part recalibrated by a fit to the others, as new to it as new rows are.

        With label-wise calibration of 174 labels by 70 rows (Cal500), F1 estimated from these rows
        is .032 too high, and half of the intervals miss; by cross-fitting -.001, and none of 8.
        """
        found = self.recalibration_
        if found is None or not found.is_kept_ or len(parts) < 2:
            yield from map(self._recalibrate_rows, parts)
            return
        known = [Part(part.dist, part.truth, part.weights) for part in parts]
        for part, dist in zip(parts, found.cross_transform(known), strict=True):
            yield replace(part, dist=dist)

    def _fit_region(self, rows: NewRows) -> LabelsetRegion | None:
        """Fit the region; none by default where labelsets are sparse, of which no array fits."""
        if len(rows) == 0 or (self.region is None and rows.dist.sparse_rows):
            return None
        return self._make_region().fit(rows.dist, rows.truth)

    def _compare_with_predict(
        self, data: TrainingData, rows: Indices, tables: list[ScoreTable]
    ) -> str:
        """Say how the frozen model's own `predict` differs from what is judged."""
        model = self.estimator_
        if self.decision_ in ("predict", "given") or is_settled(innermost(model)):
            return ""
        ours = stack_rows([cast(Labelsets, table.decisions) for table in tables])
        try:
            dist = self._ask(model, take_rows(data.X, rows[:1]))
            theirs = _own_predictions(model, take_rows(data.X, rows), dist)
        except (AttributeError, LabelsureError, TypeError, ValueError):
            return ""  # no `predict`, or one that does not return labelsets
        n_others = int(differing_rows(ours, theirs).sum())
        if n_others == 0:
            return "The model's own predict returns the same labelsets on all calibration rows."
        self.own_differs_ = True
        values = [accuracy(data.Y[rows], Y, self.metric, empty=self.empty) for Y in (ours, theirs)]
        title = get_metric(self.metric).title
        said = (
            f"On {n_others:,} of {len(rows):,} calibration rows these differ from the model's own "
            f"predict: mean {title} {values[0].mean():.3f} instead of {values[1].mean():.3f}. "
            'decision="predict" judges the model\'s own.'
        )
        if len(rows) > 1 and mean_interval(values[1] - values[0])[1] > 0:
            warn(said, UserWarning)
        return said

    def predict_distribution(self, X: Any) -> LabelsetDistribution:
        """Return P(Y given x) of each row: the estimator's, recalibrated where that helps.

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
        X = as_batch(X)
        return self._distribution_of_checked(self._check_instances(X))._with_index(index_of(X))

    def _distribution_of_checked(self, X: Any) -> LabelsetDistribution:
        """Return P(Y|x) of rows that are checked already."""
        return self._recalibrate(self._ask(self.estimator_, X))

    def _recalibrate(self, dist: LabelsetDistribution) -> LabelsetDistribution:
        return dist if self.recalibration_ is None else self.recalibration_.transform(dist)

    def _check_instances(self, X: Any) -> Any:
        """Return X as the estimator takes it: checked where that is one of ours."""
        check_is_fitted(self, "accuracy_estimator_")
        refuse_masked(X, "X")
        needed = self._requirements()
        if not self._has_base_learners:
            if self._counts_columns and hasattr(self, "feature_names_in_"):
                validate_data(self, X, reset=False, skip_check_array=True)
            return X
        needed["ensure_min_samples"] = 0
        return validate_data(self, as_table(X), reset=False, **needed)

    def _predict_all(
        self, X: Any, Y_pred: Any = None, *, labelled: bool = False
    ) -> tuple[LabelsetDistribution, Labelsets | None]:
        """Return the distributions and what is judged, None for the mode."""
        X = as_batch(X)
        checked = self._check_instances(X)
        dist = self._ask(self.estimator_, checked)
        own = self.decision_ == "predict"
        given = _own_predictions(self.estimator_, checked, dist) if own else None
        dist = _make_small_dense(self._recalibrate(dist))._with_index(index_of(X))
        if Y_pred is None and self.decision_ == "given":
            raise InputError(
                "`Y_pred` must be given to a model that was fitted with `Y_pred`, got None. Pass "
                "the predictions of the system that this model judges."
            )
        if Y_pred is None:
            return dist, self._choose(dist, given)
        if self.decision_ != "given" and not labelled:
            raise InputError(
                "`Y_pred` must be None for a model that was fitted without `Y_pred`, got "
                f"predictions. This model judges {self.judged_}. Fit with `fit(X, y, Y_pred=...)` "
                "to judge others, or label some rows: `estimate(X, Y_pred=..., rows=..., "
                "Y_true=...)`."
            )
        return dist, align_truth(self.classes_, Y_pred, dist, "Y_pred")

    def _choose(self, dist: LabelsetDistribution, given: Labelsets | None) -> Labelsets | None:
        """Return what is predicted, None for the mode, which comes with the profile anyway."""
        if self.decision_ == "best":
            return self._decide_best(dist)
        return self.decision.predict(dist) if self.decision_ == "thresholds" else given

    def _decide_best(self, dist: LabelsetDistribution) -> Labelsets:
        """Return the decisions with the highest expected accuracy, empty only if a truth was.

        Probabilities of independent labels overrate the empty labelset. Where no row of `fit` is
        empty, decisions under F1 and Jaccard that are not gain .05 to .16 on Scene, Slashdot,
        Medical and Stare (`benchmarks.decisions`).
        """
        metric = get_metric(self.metric)
        if self._may_be_empty:
            return decide(dist, metric, empty=self.empty).labelsets
        best = decide(dist, metric, empty=0.0).labelsets
        is_empty = count_labels(best) == 0
        if metric is EXACT and is_empty.any():
            runners_up = dist[is_empty].top(2).labelsets[:, 1]
            order = np.argsort(is_empty, kind="stable")
            best = stack_rows([best[~is_empty], runners_up])[np.argsort(order)]
        return best

    @property
    def _may_be_empty(self) -> bool:
        """Whether decisions may be empty: for metrics that do not settle it, they always may."""
        return self.has_empty_ or get_metric(self.metric) not in (EXACT, F1, JACCARD)

    def _ask(self, fitted: Any, X: Any) -> LabelsetDistribution:
        """Return P(Y|x) of each row by a fitted estimator."""
        if self._has_base_learners:
            return fitted._distribution_of_any(X)
        if count_rows(X) == 0 and not isinstance(fitted, PrecomputedProbabilities):
            # Models of other libraries refuse to predict no rows.
            return IndependentLabels(np.empty((0, self.n_labels_)), self.label_names_)
        knows_names = hasattr(innermost(self.estimator), "predict_distribution")
        names = None if knows_names else self.label_names_
        return as_distribution(fitted, X, label_names=names)

    @_shows_progress
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted labelset of each row.

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
        dist, decisions = self._predict_all(X)
        decisions = dist.mode() if decisions is None else decisions
        if isinstance(self.classes_, list):
            return decisions.astype(self.classes_[0].dtype)
        return self.classes_[decisions[:, 0]]

    @_shows_progress
    def predict_accuracy(self, X: Any, *, Y_pred: Any = None) -> Floats:
        """Return the estimated accuracy of each prediction.

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
        return self.accuracy_estimator_.predict(*self._predict_all(X, Y_pred))

    @_shows_progress
    def accept(self, X: Any, *, Y_pred: Any = None) -> Mask:
        """Return which predictions the policy accepts; needs a target or a share.

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
        check_is_fitted(self, "accuracy_estimator_")
        if self.policy_ is None:
            raise InputError(
                "`accept` needs a target or a share, got neither when fitting. Fit with e.g. "
                "target=0.9."
            )
        return cast(Mask, self.assess(X, Y_pred=Y_pred).accepted)

    @_shows_progress
    def predict_region(self, X: Any) -> RegionLabelsets:
        """Return the conformal prediction set of each row.

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
        check_is_fitted(self, "accuracy_estimator_")
        if self.region_ is None:
            raise InputError(
                "Prediction sets need held-out rows and labels that fit into an array, got "
                f"cv={self.cv!r} and {self.n_labels_:,} labels. Hold rows out, e.g. by "
                f"cv={HELD_OUT}."
            )
        return self.region_.predict(self.predict_distribution(X))

    @_shows_progress
    def estimate(
        self, X: Any, *, Y_pred: Any = None, **settings: Unpack[BatchSettings]
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
        labelled = settings.get("Y_true") is not None
        dist, decisions = self._predict_all(X, Y_pred, labelled=labelled)
        if settings.get("level") is None:
            settings["level"] = self.confidence
        if settings.get("Y_true") is not None:
            settings = with_labelsets(settings, self.classes_, dist)
        metric, judge = settings.get("metric"), self.accuracy_estimator_
        if metric is not None and metric not in LABEL_METRICS:
            if isinstance(metric, str) and metric not in METRICS:
                raise unknown_name("metric", metric, [*METRICS, *LABEL_METRICS])
            settings["metric"], wanted = None, get_metric(metric)
            if wanted != get_metric(self.metric):
                judge = self._fit_judge(wanted, judge.calibration_, judge.labelset_frequencies_)
        return judge.estimate(dist, decisions, **settings)

    def draw_audit(
        self, X: Any, n_rows: int, *, random_state: int | None = None
    ) -> NDArray[np.intp]:
        """Return the positions of rows to label, drawn at random without replacement.

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

    def monitor(self, chunks: Iterable[Any], **settings: Any) -> MonitorTable:
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
        MonitorTable
            A DataFrame with one row per chunk: estimated accuracy, p-value and `alert`; `report()`
            is a page for people.

        See Also
        --------
        labelsure.monitor : All settings and columns, and an example.
        """
        from labelsure.estimation.monitoring import monitor

        check_is_fitted(self, "accuracy_estimator_")
        if settings.get("labels") and not isinstance(self.classes_, list):  # of two classes
            settings["labels"] = {
                chunk: (rows, read_classes(y, self.classes_, "labels"), *drawn)
                for chunk, (rows, y, *drawn) in settings["labels"].items()
            }
        return monitor(self, chunks, **{"level": self.confidence, **settings})

    @_shows_progress
    def estimate_prevalence(self, X: Any, *, level: float | None = None) -> pd.DataFrame:
        """Return how often each label is true in a batch that nobody has labelled.

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
        pandas.DataFrame
            A row for each label: its prevalence on the `calibration` set, and `prevalence` in the
            batch with an interval from `low` to `high`.
        """
        level = self.confidence if level is None else level
        dist = self.predict_distribution(X)
        return self.accuracy_estimator_.estimate_prevalence(dist, level=level)

    @_shows_progress
    def estimate_labels(
        self, X: Any, *, Y_pred: Any = None, level: float | None = None
    ) -> pd.DataFrame:
        """Estimate precision, recall and F1 of each label in a batch that nobody has labelled.

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

        Returns
        -------
        pandas.DataFrame
            One row per label: `n_predicted`, and estimated `n_true`, `precision`, `recall` and
            `f1`, each with an interval from `_low` to `_high`. 0/0 counts as `empty`.
        """
        level = self.confidence if level is None else level
        return self.accuracy_estimator_.estimate_labels(*self._predict_all(X, Y_pred), level=level)

    @_shows_progress
    def assess(self, X: Any, *, Y_pred: Any = None, k: int = 0, shift: str = "test") -> Assessment:
        """Return predictions with their estimated accuracies and whether they are accepted.

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
        dist, decisions = self._predict_all(X, Y_pred)
        found = assess_predictions(self, dist, decisions, k, tests_shift=shift == "test")
        if not self.own_differs_:
            return found
        return replace(found, own=_own_predictions(self.estimator_, as_batch(X), dist))

    @_shows_progress
    def report(
        self,
        X: Any = None,
        Y: Any = None,
        *,
        Y_pred: Any = None,
        show: Sequence[str] = (),
        title: str = "Which predictions can go out?",
        open_cost: float | None = None,
    ) -> Page:
        """Return an HTML page on the model and its predictions; `save(path)` writes it as one file.

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
            Title of the page.
        open_cost
            Mark labels to leave open: those that would be wrong with a probability above this cost,
            whatever the metric of the model. None marks none.

        Returns
        -------
        Page
            Shows itself in notebooks.
        """
        from labelsure.model._model_report import choose_columns, make_model_report

        check_is_fitted(self, "accuracy_estimator_")
        if X is None:
            return make_model_report(self, [], title)
        shown = choose_columns(as_batch(X), show)
        dist, decisions = self._predict_all(X, Y_pred)
        truth = None if Y is None else align_truth(self.classes_, Y, dist, "Y")
        return make_model_report(self, [(dist, decisions, truth, shown)], title, open_cost)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean accuracy of the predictions for X under the metric of the model.

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
        dist, decisions = self._predict_all(X)
        truth = align_truth(self.classes_, y, dist)
        Y_pred = dist.mode() if decisions is None else decisions
        values = accuracy(truth, Y_pred, self.metric, empty=self.empty)
        return weighted_mean(values, sample_weight, dist)

    @property
    def reference_(self) -> Estimate:
        """The `Estimate` for the rows that the accuracy estimator was fitted to."""
        return self.accuracy_estimator_.reference_

    @property
    def judged_(self) -> str:
        """Which decisions are judged, in words."""
        metric = get_metric(self.metric)
        some = "labelsets" if self._may_be_empty else "non-empty labelsets"
        return {
            "best": f"the {some} that maximise expected {metric.title}",
            "mode": "the most probable labelsets",
            "predict": "the model's own `predict`",
            "thresholds": "the labels whose probability reaches a threshold",
            "given": "the predictions given as `Y_pred`",
        }[self.decision_]

    @property
    def summary_(self) -> str:
        """What the policy accepts, whether that is guaranteed, and which decisions are judged."""
        parts = (self.card_.summary, f"Accuracy is that of {self.judged_}.", self.comparison_)
        return " ".join(filter(None, parts))

    def _repr_html_(self) -> str:
        if not hasattr(self, "card_"):
            return str(estimator_html_repr(self))
        return make_html(self.summary_, self.card_.brief())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def get_metadata_routing(self) -> MetadataRouter:
        """Return where scikit-learn's metadata routing takes what is passed to `fit`."""
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return router.add(estimator=self._new_estimator(), method_mapping=mapping)

    def _route(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return what goes to the estimator's `fit` beside X and y; None counts as not given."""
        params = {name: value for name, value in params.items() if value is not None}
        if get_config()["enable_metadata_routing"]:
            return dict(process_routing(self, "fit", **params).estimator.fit)
        return params

    def _check_parameters(self, *, decides: bool) -> None:
        """Refuse parameters that cannot be fitted with, before anything is fitted."""
        metric = get_metric(self.metric)
        check_empty(self.empty)
        check_level(self.confidence)
        if _name_decision(self.decision) == "best" and decides and metric in (RECALL, PRECISION):
            raise InputError(
                f'`decision` must not be "best" for {metric.name}: the best recall predicts every '
                "label, the best precision the surest one alone. Judge other decisions, e.g. by "
                'decision="mode", decision="predict", a fitted `LabelThresholds`, or `fit(X, y, '
                "Y_pred=...)`."
            )
        self._make_policy()  # refuses targets and shares
        check_inner_model(self._new_estimator())
        check_cv_setting(self.cv)
        check_recalibration(self.recalibration)
        self._make_region()
        if self.region is not None and not self._holds_out:
            raise InputError(
                f"`region` needs held-out rows, got cv={self.cv!r}, which holds none out. Hold "
                f"some out, e.g. by cv={HELD_OUT}, or pass a fitted model in a `FrozenEstimator`."
            )

    def _make_policy(self) -> AcceptPolicy | None:
        if self.target is None and self.share is None:
            return None
        outcome = get_metric(self.metric).outcome
        policy = AcceptPolicy(
            self.target, share=self.share, confidence=self.confidence, outcome=outcome
        )
        policy.check_parameters()
        return policy

    def _make_region(self) -> LabelsetRegion:
        setting = USUAL_COVERAGE if self.region is None else self.region
        if isinstance(setting, Real) and not isinstance(setting, bool):
            setting = LabelsetRegion(coverage=float(setting))
        if not isinstance(setting, LabelsetRegion):
            raise InputError(
                "`region` must be None, a coverage such as 0.9, or a `LabelsetRegion`, got "
                f"{setting!r}."
            )
        region: LabelsetRegion = clone(setting)
        region.check_parameters()
        return region

    def _wrapped_estimator(self) -> Any:
        return self.estimator

    def _new_estimator(self) -> Any:
        if self.estimator is None:
            return EnsembleOfClassifierChains(n_jobs=self.n_jobs, random_state=self.random_state)
        return self.estimator

    @property
    def _holds_out(self) -> bool:
        """Whether calibration rows are new to the model that predicts."""
        return is_settled(self._new_estimator()) or is_share(self.cv)

    @property
    def _counts_columns(self) -> bool:
        """Whether the estimator takes columns by position, so that their names are checked here."""
        model = self.estimator_
        knows_names = hasattr(model, "feature_names_in_") or hasattr(
            innermost(model), "predict_distribution"
        )
        return hasattr(model, "n_features_in_") and not knows_names

    @property
    def _has_base_learners(self) -> bool:
        """Whether the estimator is one of ours, for which X is checked once, here."""
        return isinstance(self._new_estimator(), LabelsetClassifier)

    def _read_training_data(
        self, X: Any, y: Any, params: dict[str, Any], groups: Any, Y_pred: Any
    ) -> TrainingData:
        index = index_of_batch(X, y)
        params = {
            name: align_values(value, index, name=name, beside="`X`")
            for name, value in params.items()
        }
        groups = align_values(groups, index, name="groups", beside="`X`")
        given_for = X
        X, truth = read_instances(X, y, self._new_estimator())
        n_rows = truth.labelsets.shape[0]
        for name, values in (("groups", groups), ("sample_weight", params.get("sample_weight"))):
            if values is not None and np.asarray(values).shape != (n_rows,):
                raise InputError(
                    f"`{name}` must have one entry for each of the {n_rows} rows, got shape "
                    f"{np.asarray(values).shape}."
                )
        if groups is not None:
            read_groups(groups)
        self.classes_, self.label_names_ = truth.classes, truth.label_names
        self.n_labels_ = truth.labelsets.shape[1]
        if self._has_base_learners:
            X = validate_data(self, as_table(X), **self._requirements())
        keeps_names = hasattr(innermost(self._new_estimator()), "predict_distribution")
        y = shape_for_estimator(truth, X, with_names=keeps_names)
        given = None if Y_pred is None else _read_given(Y_pred, given_for, truth)
        return TrainingData(X, truth.labelsets, y, params, groups, given)


def _name_decision(decision: Any) -> str:
    if isinstance(decision, LabelThresholds):
        check_is_fitted(decision)
        return "thresholds"
    if not isinstance(decision, str) or decision not in DECISIONS:
        raise unknown_name("decision", decision, DECISIONS)
    return decision


def _make_small_dense(dist: LabelsetDistribution) -> LabelsetDistribution:
    """Return chains whose labelsets are few as one array, which every question then shares."""
    few = dist.n_labels <= _limits.CHEAP_DENSE_LABELS and len(dist) << dist.n_labels <= SMALL_JOINT
    if not isinstance(dist, ChainMixture) or not few or len(dist) == 0:
        return dist
    return DenseDistribution.from_trusted(dist._probabilities(), dist.label_names)


def _cut_for_cache(rows: NewRows) -> Iterator[NewRows]:
    """Yield rows of chains a few at a time, whose joints stay in the processor's cache."""
    step = max(1, len(rows))
    if isinstance(rows.dist, ChainMixture):
        step = max(1, _limits.CACHED_JOINT_BYTES >> (rows.dist.n_labels + 3))
    for first in range(0, max(1, len(rows)), step):
        yield rows[first : first + step]


def _own_predictions(fitted: Any, X: Any, dist: LabelsetDistribution) -> Labelsets:
    """Return what the model's own `predict` says of rows."""
    if len(dist) == 0:
        return dist.mode()
    predicted = fitted.predict(X)
    if np.ndim(predicted) == 1:  # of a model of one label
        predicted = np.asarray(predicted)[:, np.newaxis]
    return read_rows(predicted, "predict(X)", n_labels=dist.n_labels, sparse=dist.sparse_rows)


def _read_given(Y_pred: Any, X: Any, truth: Targets) -> Labelsets:
    """Return predictions of another system, in the order of X and of the labels."""
    if truth.is_vector:
        rows = read_classes(order_like(Y_pred, X), cast(NDArray[Any], truth.classes), "Y_pred")
    else:
        given = GivenLabelsets.read(order_like(Y_pred, X), "Y_pred")
        rows = given.to_rows(truth.label_names, beside="`y`", sparse=is_sparse(truth.labelsets))
    check_shape(rows.shape, "Y_pred", *truth.labelsets.shape)
    return rows
