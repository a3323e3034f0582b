"""`AccuracyAwareClassifier`: a classifier that knows how accurate its predictions are."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import (
    UNUSED,
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from labelsure._runtime.typing import Floats, Labelsets, Mask
from labelsure._runtime.warnings import hold_warnings, warn
from labelsure.classifiers._adapters import as_distribution
from labelsure.classifiers._chain_classifiers import EnsembleOfClassifierChains
from labelsure.classifiers._predictor import (
    LabelsetClassifier,
    LabelsetPredictor,
    align_truth,
    index_of_batch,
    weighted_mean,
)
from labelsure.classifiers._probability_layouts import ProbabilityWarning
from labelsure.decisions._rules import decide
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.errors import InputError, unknown_name
from labelsure.estimation._batch_estimates import BatchSums, Estimate
from labelsure.estimation._estimator import AccuracyEstimator
from labelsure.estimation._fitted_estimator import BatchSettings
from labelsure.estimation.score_table import ScoreTable
from labelsure.guarantees._labelset_region import LabelsetRegion
from labelsure.guarantees._policy import AcceptPolicy
from labelsure.labelsets.codes import check_sparse_labelsets
from labelsure.labelsets.index import align_values
from labelsure.labelsets.rows import as_table, check_labelsets, index_of, refuse_masked
from labelsure.metrics.registry import MetricLike, accuracy, check_empty, check_level, get_metric
from labelsure.model._assessment import Assessment, assess_predictions
from labelsure.model._calibration import (
    TrainingData,
    WrappedModel,
    add_training_gain,
    calibrate,
    check_cv_setting,
    check_inner_model,
    innermost,
    is_fitted_elsewhere,
    is_share,
    known_label_names,
    make_recalibration,
    read_instances,
    shape_for_estimator,
    with_labelsets,
)
from labelsure.model._model_card import describe_policy, make_card

if TYPE_CHECKING:
    import pandas as pd

    from labelsure._runtime.pages import Page


def make_router(model: Any, estimator: Any) -> MetadataRouter:
    """Return what scikit-learn's metadata routing asks for.

    Parameters
    ----------
    model
        An `AccuracyAwareClassifier`.
    estimator
        The one that it fits.
    """
    router = MetadataRouter(owner=type(model).__name__).add_self_request(model)
    mapping = MethodMapping().add(caller="fit", callee="fit")
    router.add(estimator=estimator, method_mapping=mapping)
    if _has_splitter(model):
        mapping = MethodMapping().add(caller="fit", callee="split")
        router.add(splitter=model.cv, method_mapping=mapping)
    return router


def route_parameters(model: Any, params: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Return what goes to the estimator's `fit` beside X and y, and the splitter's groups.

    Parameters
    ----------
    model
        An `AccuracyAwareClassifier`.
    params
        What its `fit` got, by name; None counts as not given.
    """
    params = {name: value for name, value in params.items() if value is not None}
    if _routing_enabled():
        routed = process_routing(model, "fit", **params)
        groups = routed.splitter.split.get("groups") if _has_splitter(model) else None
        return dict(routed.estimator.fit), groups
    groups = params.pop("groups", None)
    if groups is not None and not _has_splitter(model):
        raise InputError(
            f"`groups` are for a splitter, got cv={model.cv!r}. Pass e.g. cv=GroupKFold(5)."
        )
    return params, groups


def _has_splitter(model: Any) -> bool:
    return hasattr(model.cv, "split")


def make_policy(model: Any) -> AcceptPolicy | None:
    """Return a policy that is not fitted yet, with parameters that are checked; None without one.

    Parameters
    ----------
    model
        An `AccuracyAwareClassifier`.
    """
    if model.target is None and model.coverage is None:
        return None
    outcome = get_metric(model.metric).outcome
    policy = AcceptPolicy(model.target, model.level, outcome, coverage=model.coverage)
    policy.check_parameters()
    return policy


def fit_policy(model: Any, table: ScoreTable) -> AcceptPolicy | None:
    """Return the policy, fitted to predictions whose truth is known; None without one.

    Parameters
    ----------
    model
        An `AccuracyAwareClassifier` whose estimator of accuracy is fitted.
    table
        Predictions that this estimator was not fitted to, where that is to be guaranteed.
    """
    policy = make_policy(model)
    if policy is None:
        return None
    accuracies = table.accuracy(model.metric, model.empty)
    return policy.fit(model.accuracy_estimator_.predict(table), accuracies)


def require_policy(model: Any) -> AcceptPolicy:
    """Return the policy of a fitted `AccuracyAwareClassifier`, or say that it has none."""
    check_is_fitted(model, "accuracy_estimator_")
    if model.policy_ is None:
        raise InputError(
            "`accept` needs a target or a coverage, got neither when fitting. Fit with e.g. "
            "target=0.9."
        )
    policy: AcceptPolicy = model.policy_
    return policy


def make_region(setting: Any) -> LabelsetRegion | None:
    """Return a region that is not fitted yet, with parameters that are checked; None without one.

    Parameters
    ----------
    setting
        None, a coverage, or a `LabelsetRegion`.
    """
    if setting is None:
        return None
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


def check_region(setting: Any, estimator: Any, cv: Any) -> None:
    """Refuse a region before anything is fitted: it needs instances that are kept for it.

    Parameters
    ----------
    setting
        As for `make_region`.
    estimator
        That the classifier wraps.
    cv
        A share to hold out, or what makes folds.
    """
    if make_region(setting) is None or isinstance(estimator, FrozenEstimator) or is_share(cv):
        return
    raise InputError(
        f"`region` must be fitted to instances that are kept for it, got cv={cv!r}, by which all "
        "are used for everything. Hold some out, e.g. by cv=0.4, or pass a model that is fitted "
        "already in a `FrozenEstimator`."
    )


def fit_region(setting: Any, table: ScoreTable) -> LabelsetRegion | None:
    """Return the region, fitted to predictions whose truth is known; None without one.

    Parameters
    ----------
    setting
        As for `make_region`.
    table
        Predictions for instances that nothing else was fitted to, a policy apart.
    """
    region = make_region(setting)
    if region is None:
        return None
    ((dist, truth),) = table.compared
    return region.fit(dist, truth)


DECISIONS = ("mode", "best", "predict")


def check_parameters(model: Any, estimator: Any) -> None:
    """Raise an `InputError` if the parameters are none that can be fitted with.

    Parameters
    ----------
    model
        The `AccuracyAwareClassifier`.
    estimator
        What it is going to fit, or to ask.
    """
    get_metric(model.metric)
    check_empty(model.empty)
    check_level(model.level)
    if model.decision not in DECISIONS:
        raise unknown_name("decision", model.decision, DECISIONS)
    make_policy(model)  # refuses targets and coverages
    check_inner_model(estimator)
    check_cv_setting(model.cv)
    make_recalibration(model.recalibration)
    check_region(model.region, estimator, model.cv)


class AccuracyAwareClassifier(LabelsetPredictor):
    """Any multi-label classifier, an estimator of its accuracy and a policy, fitted together.

    Parameters
    ----------
    estimator
        Whatever `as_distribution` takes, not fitted yet: it is cloned and fitted. Or a model that
        is fitted already, in `sklearn.frozen.FrozenEstimator`: no instance is spent on training,
        and those of `fit` must be new to it. None means `EnsembleOfClassifierChains`.
    metric
        The accuracy to estimate: "exact", "hamming", "jaccard", "f1", or a function of
        (tp, fp, fn, tn) with values in [0, 1].
    target
        The mean accuracy that accepted predictions shall reach; None for no policy.
    level
        The probability with which they do, and that of the intervals of `estimate`.
    cv
        Where the labelled predictions come from that accuracy estimator and policy are fitted to:

        - a number of folds, or one of scikit-learn's splitters: from cross-fitting, so that every
          instance serves every purpose. The target is reached as a rule, **not guaranteed**;
        - a share such as 0.4: from instances that are held out. The target is **guaranteed**: one
          half of them is for the accuracy estimator, the other for the policy.

        A frozen estimator uses neither: all instances are held out, and the target is guaranteed.
    coverage
        Instead of a target: the share of the predictions to accept; see `AcceptPolicy`.
    decision
        What is predicted, and judged: "mode", the most probable labelset; "best", the one with the
        highest expected accuracy; "predict", what the estimator's own `predict` says.
    empty
        The Jaccard and F1 of two empty labelsets.
    features, model
        As of `AccuracyEstimator`.
    recalibration
        Nothing, or what brings the distributions closer to what was seen of the instances of the
        accuracy estimator: "temperature" (`TemperatureScaling`), "labels" (`LabelwiseCalibration`),
        or one of these objects, not fitted. Everything is then of the recalibrated distributions,
        unless its gate finds that it does not help.
    region
        Nothing, a coverage such as 0.9, or a `LabelsetRegion`: `assess` then also says which labels
        are certain or possible. Instances must be held out, as for a guaranteed target.
    random_state
        Seed of folds and splits.

    Attributes
    ----------
    estimator_, accuracy_estimator_, policy_, recalibration_, region_
        What was fitted, and prints what it found; None for what was not wanted.
    guaranteed_
        Whether what the policy says holds with probability `level`: there is one, and it rests on
        instances that neither the classifier nor the accuracy estimator has seen.
    summary_
        What the policy accepts, and whether that is guaranteed, in words.
    card_
        A `ModelCard`: data sizes, metric, target, what is guaranteed, calibration.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import AccuracyAwareClassifier, BinaryRelevance
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 4))
    >>> Y = (X[:, :3] + 0.5 * rng.normal(size=(600, 3)) > 0).astype(int)
    >>> model = AccuracyAwareClassifier(BinaryRelevance(), metric="hamming", random_state=0)
    >>> model.fit(X[:500], Y[:500]).predict(X[500:502])
    array([[1, 0, 0],
           [0, 0, 0]])
    >>> model.predict_accuracy(X[500:502]).round(2)
    array([0.82, 0.89])
    >>> round(model.estimate(X[500:]).mean, 2)
    0.85
    """

    # `fit` passes weights on to the estimator, which says whether it wants them.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"sample_weight": UNUSED}

    def __init__(
        self,
        estimator: Any = None,
        metric: MetricLike = "jaccard",
        target: float | None = None,
        level: float = 0.95,
        cv: Any = 5,
        *,
        coverage: float | None = None,
        decision: str = "mode",
        empty: float = 1.0,
        features: Any = None,
        model: str = "ridge",
        recalibration: Any = None,
        region: Any = None,
        random_state: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.target = target
        self.coverage = coverage
        self.level = level
        self.cv = cv
        self.decision = decision
        self.empty = empty
        self.features = features
        self.model = model
        self.recalibration = recalibration
        self.region = region
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Fit the classifier, the estimator of its accuracy and, where one is wanted, the policy.

        Parameters
        ----------
        X
            n instances, in whatever form the estimator takes them.
        y
            Their labels: (n, L) zeros and ones, a DataFrame (whose columns name the labels),
            sparse, or a list of label names for each instance; or a vector of two classes, which
            is the case of one label.
        sample_weight, **params
            Handed to the estimator's `fit`, the rows that belong to each part of the data.
            `groups` goes to the splitter, for those that need it, such as `GroupKFold`.
        """
        check_parameters(self, self._new_estimator())
        routed = route_parameters(self, {"sample_weight": sample_weight, **params})
        data = self._read_training_data(X, y, *routed)
        with hold_warnings(ProbabilityWarning) as suspects:  # which each fold may repeat
            needs_half = make_policy(self) is not None or self.region is not None
            found = calibrate(
                self._wrap(), data, self.cv, needs_half=needs_half, random_state=self.random_state
            )
        if suspects:
            warn("\n".join(dict.fromkeys(suspects)), ProbabilityWarning)
        self.region_ = fit_region(self.region, found.for_policy)
        self.estimator_, self.recalibration_ = found.fitted, found.recalibration
        if isinstance(self.classes_, list):  # names of a DataFrame X may have reached the model
            self.label_names_ = known_label_names(self.estimator_) or self.label_names_
        judge = AccuracyEstimator(self.metric, self.features, self.model, self.empty)
        judge.fit(found.for_estimator, Y_train=found.seen)
        self.accuracy_estimator_ = add_training_gain(
            judge, found.for_estimator, found.half_trained, self.level
        )
        self.policy_ = fit_policy(self, found.for_policy)
        self.guaranteed_ = found.is_held_out and self.policy_ is not None and self.policy_.reached_
        for name in () if self._has_base_learners else ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        self.card_ = make_card(self, found)
        return self

    def predict_distribution(self, X: Any) -> LabelsetDistribution:
        """Return P(Y|x) of each instance: the estimator's, recalibrated where that is wanted."""
        return self.distribution_of_checked(self._check_instances(X))._with_index(index_of(X))

    def distribution_of_checked(self, X: Any) -> LabelsetDistribution:
        """Return P(Y|x) of instances that are checked already."""
        return self._recalibrate(self._ask(self.estimator_, X))

    def _recalibrate(self, dist: LabelsetDistribution) -> LabelsetDistribution:
        return dist if self.recalibration_ is None else self.recalibration_.transform(dist)

    def _check_instances(self, X: Any) -> Any:
        """Return X as the estimator takes it: checked where that is one of ours."""
        check_is_fitted(self, "accuracy_estimator_")
        refuse_masked(X, "X")
        needed = self._requirements()
        if not self._has_base_learners:
            return X
        return validate_data(self, as_table(X), reset=False, **needed)

    def predict_all(self, X: Any) -> tuple[LabelsetDistribution, Labelsets | None]:
        """Return the distributions and what is predicted, None for the mode."""
        checked = self._check_instances(X)
        dist, own = self._predict_by(self.estimator_, checked)
        dist = self._recalibrate(dist)
        return dist._with_index(index_of(X)), self._choose(dist, own)

    def _predict_by(self, fitted: Any, X: Any) -> tuple[LabelsetDistribution, Labelsets | None]:
        """Return the distributions of a fitted estimator, and its own predictions if they count.

        X is checked where the estimator is one of ours.
        """
        dist = self._ask(fitted, X)
        if self.decision != "predict":
            return dist, None
        predicted = fitted.predict(X)
        if np.ndim(predicted) == 1:  # of a model of one label
            predicted = np.asarray(predicted)[:, np.newaxis]
        check = check_sparse_labelsets if dist.sparse_rows else check_labelsets
        return dist, check(predicted, name="predict(X)", n_labels=dist.n_labels)

    def _choose(self, dist: LabelsetDistribution, own: Labelsets | None) -> Labelsets | None:
        """Return what is predicted, None for the mode, which comes with the profile anyway."""
        return decide(dist, self.metric, empty=self.empty) if self.decision == "best" else own

    def _ask(self, fitted: Any, X: Any) -> LabelsetDistribution:
        """Return P(Y|x) of each instance by a fitted estimator."""
        if self._has_base_learners:
            return fitted.distribution_of_checked(X)
        knows_names = hasattr(innermost(self.estimator), "predict_distribution")
        names = None if knows_names else self.label_names_
        return as_distribution(fitted, X, label_names=names)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted labelset of each instance, (n, L), or (n,) of the two classes."""
        dist, decisions = self.predict_all(X)
        decisions = dist.mode() if decisions is None else decisions
        if isinstance(self.classes_, list):
            return decisions.astype(self.classes_[0].dtype)
        return self.classes_[decisions[:, 0]]

    def predict_accuracy(self, X: Any) -> Floats:
        """Return the estimated accuracy of each prediction, (n,)."""
        return self.accuracy_estimator_.predict(*self.predict_all(X))

    def accept(self, X: Any) -> Mask:
        """Return which predictions the policy accepts, (n,); needs a target or a coverage.

        It warns (`ShiftWarning`) of instances that are not like the calibration set.
        """
        policy, judge = require_policy(self), self.accuracy_estimator_
        found = assess_predictions(*self.predict_all(X), judge, policy)
        return cast(Mask, found.accepted)

    def estimate(self, X: Any, **settings: Unpack[BatchSettings]) -> Estimate:
        """Return the mean accuracy of a batch; settings as of `AccuracyEstimator.estimate`."""
        dist, decisions = self.predict_all(X)
        if settings.get("level") is None:
            settings["level"] = self.level
        if settings.get("Y_true") is not None:
            settings = with_labelsets(settings, self.classes_, dist)
        return self.accuracy_estimator_.estimate(dist, decisions, **settings)

    def sum_up(self, X: Any) -> BatchSums:
        """Return what `accuracy_estimator_.estimate_sums` needs; sums of parts of X add up."""
        return self.accuracy_estimator_.sum_up(*self.predict_all(X))

    def estimate_labels(self, X: Any, *, level: float | None = None) -> pd.DataFrame:
        """Return precision, recall and F1 of each label, as `AccuracyEstimator` has them."""
        level = self.level if level is None else level
        return self.accuracy_estimator_.estimate_labels(*self.predict_all(X), level=level)

    def assess(self, X: Any, *, k: int = 0, shift: str = "test") -> Assessment:
        """Return predictions, their estimated accuracies and acceptance, in one sweep over X.

        `to_frame` of what it returns is a table with the index of X.

        Parameters
        ----------
        X
            Instances.
        k
            What `to_frame` shows of k labelsets and of each label is found in the same sweep.
        shift
            "test" compares X with the calibration set, and warns (`ShiftWarning`) if it is not
            alike; "ignore" does not, e.g. for one of many parts of a batch.
        """
        if shift not in ("test", "ignore"):
            raise unknown_name("shift", shift, ("test", "ignore"))
        dist, decisions = self.predict_all(X)
        judges = self.accuracy_estimator_, self.policy_, self.region_
        return assess_predictions(dist, decisions, *judges, k, tests_shift=shift == "test")

    def report(
        self,
        X: Any = None,
        Y: Any = None,
        *,
        title: str = "How accurate is it?",
        open_cost: float | None = None,
    ) -> Page:
        """Return a page on the model and its predictions for X: `save` it as one HTML file.

        Parameters
        ----------
        X, Y
            Instances, and their truth where it is known; without X a page on the model alone.
        title
            Of the page.
        open_cost
            Show which labels of each prediction to leave open: those that would be wrong with a
            probability above this cost, whatever the metric of the model.
        """
        from labelsure.model._model_report import make_model_report  # few need it

        check_is_fitted(self, "accuracy_estimator_")
        if X is None:
            return make_model_report(self, [], title)
        dist, decisions = self.predict_all(X)
        truth = None if Y is None else align_truth(self.classes_, Y, dist, "Y")
        return make_model_report(self, [(dist, decisions, truth)], title, open_cost)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean accuracy under the metric; a DataFrame `y` is aligned by its names."""
        dist, decisions = self.predict_all(X)
        truth = align_truth(self.classes_, y, dist)
        Y_pred = dist.mode() if decisions is None else decisions
        values = accuracy(truth, Y_pred, self.metric, empty=self.empty)
        return weighted_mean(values, sample_weight, dist)

    @property
    def reference_(self) -> Estimate:
        """The `Estimate` for the instances that the accuracy estimator was fitted to."""
        check_is_fitted(self, "accuracy_estimator_")
        return self.accuracy_estimator_.reference_

    @property
    def summary_(self) -> str:
        """What the policy accepts, and whether that is guaranteed, in words."""
        check_is_fitted(self, "accuracy_estimator_")
        elsewhere = is_fitted_elsewhere(self.estimator_)
        return describe_policy(self.policy_, self.guaranteed_, elsewhere)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return where scikit-learn's metadata routing takes what is passed to `fit`."""
        return make_router(self, self._new_estimator())

    def _wrapped_estimator(self) -> Any:
        return self.estimator

    def _new_estimator(self) -> Any:
        if self.estimator is None:
            return EnsembleOfClassifierChains(random_state=self.random_state)
        return self.estimator

    def _wrap(self) -> WrappedModel:
        return WrappedModel(
            self._new_estimator(),
            self.label_names_,
            self.metric,
            self.decision,
            self._predict_by,
            self._choose,
            make_recalibration(self.recalibration),
        )

    @property
    def _has_base_learners(self) -> bool:
        """Whether the estimator is one of ours, for which X is checked once, here."""
        return isinstance(self._new_estimator(), LabelsetClassifier)

    def _read_training_data(self, X: Any, y: Any, params: Any, groups: Any) -> TrainingData:
        index = index_of_batch(X, y)
        params = {
            name: align_values(value, index, name=name, beside="`X`")
            for name, value in params.items()
        }
        groups = align_values(groups, index, name="groups", beside="`X`")
        X, truth = read_instances(X, y, self._new_estimator(), type(self).__name__)
        self.classes_, self.label_names_ = truth.classes, truth.label_names
        self.n_labels_ = truth.labelsets.shape[1]
        if self._has_base_learners:
            X = validate_data(self, as_table(X), **self._requirements())
        keeps_names = hasattr(innermost(self._new_estimator()), "predict_distribution")
        y = shape_for_estimator(truth, X, with_names=keeps_names)
        return TrainingData(X, truth.labelsets, y, params, groups)
