"""`RecalibratedClassifier`: any model, with a recalibration from out-of-fold predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime.arguments import read_choice, read_whole_number
from labelsure._runtime.typing import (
    Estimator,
    FeaturesLike,
    Floats,
    Indices,
    LabelsetsLike,
    RandomState,
)
from labelsure.classifiers._adapters import as_distribution
from labelsure.classifiers._base_learners import (
    MAX_SEED,
    check_takes_weights,
    find_weight_argument,
    name_missing_classes,
)
from labelsure.classifiers._chain_classifiers import BinaryRelevance
from labelsure.classifiers._inner_models import is_prefit, read_instances, shape_for_estimator
from labelsure.classifiers._predictor import LabelsetPredictor, index_of_batch
from labelsure.classifiers.recalibration._base import (
    Recalibration,
    RecalibrationLike,
    has_free_labels,
)
from labelsure.classifiers.recalibration._dependence import ChainDependence
from labelsure.classifiers.recalibration._labelwise import LabelwiseCalibration
from labelsure.classifiers.recalibration._temperature import TemperatureScaling
from labelsure.classifiers.recalibration._votes import VoteSmoothing
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._probabilities import clip_certain, make_random_state
from labelsure.errors import InputError, record_warnings
from labelsure.labelsets.foreign import count_rows, index_of, refuse_masked, take_rows
from labelsure.labelsets.names import check_weights

MIN_AUTO = 50
"""Instances below which "auto" does not try: with fewer its gate hardly ever opens."""


def fit_recalibration(
    setting: object,
    dists: Sequence[LabelsetDistribution],
    Ys: Sequence[object],
    sample_weights: Sequence[object] | None = None,
) -> Recalibration | None:
    """Fit a recalibration to several batches, and return it.

    "auto" chooses by the distribution. It is None for other distributions and for few instances.
    """
    if isinstance(setting, Recalibration):
        fitted: Recalibration = clone(setting)
        return fitted.fit_parts(dists, Ys, sample_weights)
    automatic = _choose_recalibration(dists[0])
    if setting is None or automatic is None or sum(map(len, dists)) < MIN_AUTO:
        return None
    with record_warnings(UserWarning):  # of a recalibration that was not asked for
        return automatic.fit_parts(dists, Ys, sample_weights)


def _choose_recalibration(dist: LabelsetDistribution) -> Recalibration | None:
    """Recalibration that "auto" fits to such distributions; None for none."""
    if dist._votes is not None:
        return VoteSmoothing()
    if has_free_labels(dist):
        return LabelwiseCalibration()
    return TemperatureScaling() if dist._has_conditionals else None


METHODS = ("auto", "dependence")


class RecalibratedClassifier(LabelsetPredictor):
    """Classifier with recalibrated joint probabilities, fitted to held-out predictions.

    The recalibration is kept if it raises the log-likelihood of held-out labelsets; its `gate` says
    by how much. Otherwise distributions stay unchanged.

    Parameters
    ----------
    estimator
        The model, as `as_distribution` takes it once it is fitted; a learner for one label, or None
        for logistic regression, is put into `BinaryRelevance`.
        It is fitted to all instances, and the recalibration learns from out-of-fold predictions. A
        model in `sklearn.frozen.FrozenEstimator` stays as it is, and `PrecomputedProbabilities`
        learns nothing: then the recalibration learns from all instances, which must be new to
        whatever made the probabilities.
    method
        "auto": `LabelwiseCalibration` for independent labels, `TemperatureScaling` for chains and
        trellises, `VoteSmoothing` for votes, as `AccuracyAwareClassifier` has it;
        nothing for other kinds of distributions or fewer than 50 instances. "dependence": a
        `ChainDependence` over the marginals of the model, for models that only say how
        likely each label is. Or a recalibration, not fitted, e.g.
        ``TemperatureScaling()``.
    cv
        Number of folds.
    random_state
        Seed of the folds; an int makes them the same in every call.

    Attributes
    ----------
    estimator_
        The fitted model.
    recalibration_
        The fitted recalibration with `is_kept_`, `gain_`, `gain_low_` and `gain_high_`; printed, it
        says so in a sentence. None where "auto" has nothing to fit.
    classes_
        [0, 1] for each label, or the two values of a vector Y.
    label_names_
        The columns of a DataFrame Y, otherwise None.

    See Also
    --------
    AccuracyAwareClassifier : Recalibrates by itself (`recalibration="auto"`).
    TemperatureScaling : One temperature for a whole distribution.
    LabelwiseCalibration : Platt scaling of each label.

    Notes
    -----
    Recalibration is fitted by cross-fitting (out-of-fold predictions), so that no row calibrates
    its own prediction.

    Examples
    --------
    The output of a neural network for labelled instances, here of two labels that come together:

    >>> import numpy as np
    >>> from labelsure import PrecomputedProbabilities, RecalibratedClassifier
    >>> rng = np.random.default_rng(0)
    >>> P = rng.uniform(0.2, 0.8, (400, 1)) * [1.0, 1.0]
    >>> Y = (rng.random((400, 1)) < P).astype(int)
    >>> model = RecalibratedClassifier(PrecomputedProbabilities(), "dependence").fit(P, Y)
    >>> model.recalibration_.is_kept_, round(model.recalibration_.gain_, 1)
    (True, 0.6)
    >>> model.predict_distribution(P)
    ChainMixture(n_samples=400, n_labels=2)
    """

    def __init__(
        self,
        estimator: Estimator = None,
        method: str | Recalibration = "auto",
        *,
        cv: int = 5,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: FeaturesLike, y: LabelsetsLike, sample_weight: object = None) -> Self:
        """Fit the model, unless it is frozen, and recalibrate its distribution.

        Parameters
        ----------
        X
            n instances, in whatever form the model takes them.
        y
            Their labels: (n, L) zeros and ones, a DataFrame (whose columns name the labels),
            sparse, or a list of label names for each instance; or a vector of two classes, which
            is the case of one label.
        sample_weight
            (n,) weights of the instances, for the model and the recalibration. A weight of 0 is as
            if the instance was not there.
        """
        model = self._wrapped_estimator()
        self._check_parameters(model)
        index, settled = index_of_batch(X, y), is_prefit(model)
        X, truth = read_instances(X, y, model)
        (X,) = indexable(X)
        self.classes_, self.label_names_ = truth.classes, truth.label_names
        self.n_labels_ = truth.n_labels
        y, weights = shape_for_estimator(truth, X, with_names=True), None
        if sample_weight is not None:
            weights = check_weights(sample_weight, count_rows(X), index)
            if not settled:
                check_takes_weights(model)
            rows = np.flatnonzero(weights > 0)
            X, y, weights = take_rows(X, rows), take_rows(y, rows), weights[rows]
        everything = np.arange(count_rows(X))
        if isinstance(self.method, Recalibration):
            self.method.check_truth(truth.labelsets, truth.label_names)
        self.estimator_ = self._fit_model(X, y, None if settled else weights, everything)
        fits = [(self.estimator_, everything)]
        if not settled:
            seed = make_random_state(self.random_state).randint(MAX_SEED)
            folds = KFold(min(self.cv, len(everything)), shuffle=True, random_state=seed)
            fits = [
                (self._fit_model(X, y, weights, train), others)
                for train, others in folds.split(everything)
            ]
        dists = [self._ask(fitted, take_rows(X, rows)) for fitted, rows in fits]
        Y = y[:, np.newaxis] if truth.is_vector else y
        Ys = [take_rows(Y, rows) for _, rows in fits]
        part_weights = None if weights is None else [weights[rows] for _, rows in fits]
        with one_blas_thread():
            self.recalibration_ = fit_recalibration(self._recalibration(), dists, Ys, part_weights)
        self.label_names_ = dists[0].label_names
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def predict_distribution(self, X: FeaturesLike) -> LabelsetDistribution:
        """Recalibrated P(Y|x) of each instance.

        Parameters
        ----------
        X
            (n, d) array, DataFrame or scipy sparse matrix.

        Returns
        -------
        LabelsetDistribution
            n distributions, with the index of X.
        """
        check_is_fitted(self, "recalibration_")
        refuse_masked(X, "X")
        return self._distribution_of_checked(X)._with_index(index_of(X))

    def _distribution_of_checked(self, X: FeaturesLike) -> LabelsetDistribution:
        """Recalibrated P(Y|x); the model checks the instances."""
        dist = self._ask(self.estimator_, X)
        return dist if self.recalibration_ is None else self.recalibration_.transform(dist)

    def _wrapped_estimator(self) -> Estimator:
        """Model to fit; a learner for one label is put into binary relevance."""
        if self.estimator is None or _is_for_one_label(self.estimator):
            return BinaryRelevance(self.estimator, random_state=self.random_state)
        return self.estimator

    def _fit_model(
        self, X: FeaturesLike, y: LabelsetsLike, weights: Floats | None, rows: Indices
    ) -> Estimator:
        model = clone(self._wrapped_estimator())  # a frozen one stays as it is
        X, y = take_rows(X, rows), take_rows(y, rows)
        argument = find_weight_argument(model)
        weight_argument = {} if weights is None or argument is None else {argument: weights[rows]}
        with name_missing_classes(model, y, self.label_names_):
            return model.fit(X, y, **weight_argument)

    def _ask(self, fitted: Estimator, X: FeaturesLike) -> LabelsetDistribution:
        """Distribution of a fitted model; its marginals alone where dependence is learned."""
        inner = getattr(fitted, "estimator", None)  # of a frozen one
        knows_names = hasattr(fitted, "label_names_") or hasattr(inner, "label_names_")
        dist = as_distribution(fitted, X, label_names=None if knows_names else self.label_names_)
        of_labels = isinstance(self._recalibration(), ChainDependence)
        if dist._is_independent or not of_labels:
            return dist
        return IndependentLabels(clip_certain(dist.marginals()), dist.label_names)

    def _recalibration(self) -> RecalibrationLike:
        return ChainDependence() if self.method == "dependence" else self.method

    def _check_parameters(self, model: Estimator) -> None:
        if isinstance(self.method, str):
            read_choice(self.method, "method", METHODS)
        elif not isinstance(self.method, Recalibration):
            raise InputError(
                '`method` must be "auto", "dependence" or a recalibration such as '
                f"TemperatureScaling(), got {self.method!r}."
            )
        read_whole_number(self.cv, "cv", 2)
        if isinstance(model, type) or not hasattr(model, "get_params"):
            raise InputError(
                f"`estimator` must be a model, got {model!r}. For probabilities use "
                "`PrecomputedProbabilities()` and pass them as X."
            )


def _is_for_one_label(model: Estimator) -> bool:
    """Whether a classifier says of itself that it does not take several labels."""
    if isinstance(model, (type, FrozenEstimator)) or not hasattr(model, "__sklearn_tags__"):
        return False
    tags = get_tags(model)
    classifier = tags.classifier_tags
    return classifier is not None and not (classifier.multi_label or tags.target_tags.multi_output)
