"""Recalibration: distributions that are brought closer to what was seen, behind a gate.

Temperature scaling, a calibration curve for each label, dependence between labels, smoothed votes;
and `RecalibratedClassifier`: any model, with a recalibration learned from held-out instances.
Formulas: `docs/understand/mathematics.md`, "Temperature and label-wise calibration".
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self, cast

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logit, stdtrit
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from labelsure._kernels.threads import one_blas_thread
from labelsure._runtime import limits as _limits
from labelsure._runtime.arguments import read_choice, read_number, read_whole_number
from labelsure._runtime.typing import Floats, Indices, LabelNames, Labelsets, Mask
from labelsure.classifiers._adapters import (
    as_distribution,
    is_settled,
    read_instances,
    shape_for_estimator,
)
from labelsure.classifiers._base_learners import (
    MAX_SEED,
    check_takes_weights,
    find_weight_argument,
    name_missing_classes,
)
from labelsure.classifiers._chain_classifiers import BinaryRelevance
from labelsure.classifiers._predictor import LabelsetPredictor, index_of_batch
from labelsure.distributions._base import LabelsetDistribution, check_distribution
from labelsure.distributions._chain_mixture import ChainMixture
from labelsure.distributions._chains import LinearChain
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.distributions._labelset_table import LabelsetTable
from labelsure.distributions._mixture import SmoothedTable
from labelsure.distributions._probabilities import clip_certain, make_random_state
from labelsure.distributions._trellis import TrellisDistribution
from labelsure.errors import InputError, hold_warnings, warn
from labelsure.labelsets.names import check_weights
from labelsure.labelsets.rows import (
    count_rows,
    index_of,
    refuse_masked,
    refuse_other_labels,
    stack_rows,
    take_rows,
)
from labelsure.saving import Savable

N_FOLDS = 5
LEVEL = 0.95


class Part(NamedTuple):
    """A batch of distributions, the truth of its instances, and their weights if they have some."""

    dist: LabelsetDistribution
    truth: Labelsets
    weights: Floats | None = None

    def take(self, rows: Mask) -> Part:
        """Return some of the instances."""
        if rows.all():
            return self
        weights = None if self.weights is None else self.weights[rows]
        return Part(self.dist[rows], self.truth[rows], weights)

    def log_prob(self) -> Floats:
        """Return the log-probability of the truth."""
        return self.dist.log_prob(self.truth)


def join_truth(parts: Sequence[Part]) -> tuple[Labelsets, Floats | None]:
    """Return the truth of all instances, one part after the other, and their weights."""
    weights = [part.weights for part in parts if part.weights is not None]
    truth = stack_rows([part.truth for part in parts])
    return truth, np.concatenate(weights) if weights else None


class Recalibration(Savable, BaseEstimator, ABC):  # type: ignore[misc]
    """Base class: a change of distributions that is fitted to labelled instances.

    A kind says how it learns (`_learn`) and what it then does to distributions (`_apply`).

    Parameters
    ----------
    gate
        Whether the recalibration is kept only if it raises the log-probability of the truth on
        held-out instances: in five-fold cross-validation, the 95% interval of the mean gain must
        lie above 0. Otherwise distributions stay unchanged.
    """

    _title = "A recalibration"
    _fitted: tuple[str, ...] = ()  # the attributes that `_learn` returns

    def __init__(self, gate: bool = True) -> None:
        self.gate = gate

    def fit(self, dist: LabelsetDistribution, Y: Any, sample_weight: Any = None) -> Self:
        """Fit to distributions whose truth is known.

        Parameters
        ----------
        dist
            (n) distributions of instances that the classifier was not trained on.
        Y
            (n, L) their true labelsets.
        sample_weight
            (n,) weights of the instances; None for equal ones.

        Returns
        -------
        self
        """
        return self.fit_parts([dist], [Y], None if sample_weight is None else [sample_weight])

    def fit_parts(
        self,
        dists: Sequence[LabelsetDistribution],
        Ys: Sequence[Any],
        sample_weights: Sequence[Any] | None = None,
    ) -> Self:
        """Fit to several batches together, such as the out-of-fold predictions of each fold.

        Parameters
        ----------
        dists
            One batch of distributions for each part.
        Ys
            Their true labelsets.
        sample_weights
            Their weights; None for equal ones.

        Returns
        -------
        self
        """
        self._check_parameters()
        parts = [Part(check_distribution(d), d.align(Y)) for d, Y in zip(dists, Ys, strict=True)]
        self.label_names_, self.n_labels_ = _common_labels(parts)
        for part in parts:
            self._check_kind(part.dist)
        if sample_weights is not None:
            parts = _weigh(parts, sample_weights)
        n_given = sum(len(part.dist) for part in parts)
        parts = [self._usable(part) for part in parts]
        self.n_samples_ = sum(len(part.dist) for part in parts)
        self.n_impossible_ = n_given - self.n_samples_
        self._check_sizes()
        for name, value in zip(self._fitted, self._learn(parts), strict=True):
            setattr(self, name, value)
        self._measure_gain(parts)
        self.is_kept_ = not self.gate or self._passes()
        self._check_learned()
        return self

    def cross_transform(self, parts: Sequence[Part]) -> Iterator[LabelsetDistribution]:
        """Yield each part that this was fitted to, recalibrated by what the others teach."""
        known = [self._usable(part) for part in parts]
        for i, part in enumerate(parts):
            yield self._apply(part.dist, self._learn(known[:i] + known[i + 1 :]))

    def transform(self, dist: LabelsetDistribution) -> LabelsetDistribution:
        """Return recalibrated distributions; unchanged ones if the recalibration was not kept.

        Parameters
        ----------
        dist
            Distributions of the kind that was fitted.

        Returns
        -------
        LabelsetDistribution
        """
        check_is_fitted(self, "is_kept_")
        check_distribution(dist)
        fitted = f"the fitted {type(self).__name__}"
        refuse_other_labels(
            dist.label_names, dist.n_labels, self.label_names_, self.n_labels_, fitted
        )
        if not self.is_kept_ or len(dist) == 0:
            return dist
        self._check_kind(dist)
        return self._apply(dist, tuple(getattr(self, name) for name in self._fitted))

    @abstractmethod
    def _learn(self, parts: list[Part]) -> tuple[Any, ...]:
        """Return what some instances teach."""

    @abstractmethod
    def _apply(self, dist: LabelsetDistribution, learned: Any) -> LabelsetDistribution:
        """Return distributions as what was learned has them."""

    def _log_prob(self, part: Part, learned: Any) -> Floats:
        """Return the recalibrated log-probability of the truth."""
        return self._apply(part.dist, learned).log_prob(part.truth)

    def _plain_log_prob(self, part: Part) -> Floats:
        """Return the log-probability of the truth before; where it is -inf, rows are left out."""
        return part.log_prob()

    def _usable(self, part: Part) -> Part:
        """Return the instances whose truth is possible and whose weight is not 0."""
        usable = np.isfinite(self._plain_log_prob(part))
        return part.take(usable if part.weights is None else usable & (part.weights > 0))

    def _check_parameters(self) -> None:
        if not isinstance(self.gate, (bool, np.bool_)):
            raise InputError(f"`gate` must be True or False, got {self.gate!r}.")

    def _check_kind(self, dist: LabelsetDistribution) -> None:
        """Refuse a kind of distribution that cannot be recalibrated so."""

    def _check_learned(self) -> None:
        """Warn of what was learned, where it is suspect."""

    def _check_sizes(self) -> None:
        if self.n_samples_ < N_FOLDS:
            raise InputError(
                f"`dist` must have at least {N_FOLDS} instances whose true labelset is possible, "
                f"got {self.n_samples_}."
            )
        if self.n_impossible_:
            warn(
                f"The true labelset of {self.n_impossible_} of "
                f"{self.n_samples_ + self.n_impossible_} instances has probability 0. These are "
                "left out, because no recalibration changes that.",
                UserWarning,
            )

    def _measure_gain(self, parts: list[Part]) -> None:
        """Set the mean gain of log P(truth) on held-out instances, and its interval."""
        fold = np.random.default_rng(0).permutation(np.arange(self.n_samples_) % N_FOLDS)
        folds = np.split(fold, np.cumsum([len(part.dist) for part in parts])[:-1])
        gains, judged = [], []
        for k in range(N_FOLDS):
            learned = self._learn([p.take(f != k) for p, f in zip(parts, folds, strict=True)])
            for part, mine in zip(parts, folds, strict=True):
                held_out = part.take(mine == k)
                gains.append(self._log_prob(held_out, learned) - self._plain_log_prob(held_out))
                judged.append(held_out)
        _, weights = join_truth(judged)
        found = mean_interval(np.concatenate(gains), weights)
        self.gain_, self.gain_low_, self.gain_high_ = found

    def _passes(self) -> bool:
        """Return whether the gain on held-out instances lets the change pass."""
        return self.gain_low_ > 0

    def _describe_learned(self) -> str:
        """Return what was learned, in words."""
        return ""

    def __str__(self) -> str:
        check_is_fitted(self, "is_kept_")
        kept = "kept" if self.is_kept_ else "not kept, distributions stay unchanged"
        reason = "" if self.gate else ", whatever it gains"
        left_out = f", {self.n_impossible_} left out" if self.n_impossible_ else ""
        return (
            f"{self._title}{self._describe_learned()}: {kept}{reason}. Mean gain in the truth's "
            f"log-probability on held-out rows: {self.gain_:+.4f} (95% interval "
            f"{self.gain_low_:+.4f} to {self.gain_high_:+.4f}, n = {self.n_samples_:,}{left_out})."
        )


def mean_interval(values: Floats, weights: Floats | None = None) -> tuple[float, float, float]:
    """Return the mean and the ends of its 95 % interval, by Student's t.

    Examples
    --------
    >>> mean_interval(np.array([1.0, 2.0, 3.0, 4.0]))
    (2.5, 0.445..., 4.554...)
    """
    mean = float(np.average(values, weights=weights))
    if weights is None:
        error = float(values.std(ddof=1)) / len(values) ** 0.5
    else:
        squares = float(((weights * (values - mean)) ** 2).sum()) * len(values) / (len(values) - 1)
        error = squares**0.5 / float(weights.sum())
    half = n_standard_errors(len(values)) * error
    return mean, mean - half, mean + half


def n_standard_errors(n_values: int) -> float:
    """Return how many standard errors the end of the interval is from the mean."""
    return float(stdtrit(n_values - 1, (1 + LEVEL) / 2))


def _weigh(parts: list[Part], sample_weights: Sequence[Any]) -> list[Part]:
    """Return the parts with their weights, without instances that have none."""
    checked = []
    for part, given in zip(parts, sample_weights, strict=True):
        weights = check_weights(given, len(part.dist), part.dist.index)
        checked.append(part._replace(weights=weights).take(weights > 0))
    return checked


def _common_labels(parts: list[Part]) -> tuple[LabelNames, int]:
    """Return the names and the number of the labels, which all batches must share."""
    if not parts:
        raise InputError("`dists` must hold at least one batch of distributions, got none.")
    first = parts[0].dist
    for part in parts:
        refuse_other_labels(
            part.dist.label_names,
            part.dist.n_labels,
            first.label_names,
            first.n_labels,
            "the first batch",
        )
    return first.label_names, first.n_labels


LEAST, LARGEST = 0.01, 100.0
"""Beyond, a distribution is a point mass or uniform for all that matters: only instances that are
all predicted right, or all wrong, distinguish temperatures there."""

LOG_LIMITS = (math.log(LEAST), math.log(LARGEST))

SAME = 1e-12
"""Mean log-probabilities closer than this are equal: rounding alone must not move a temperature."""


class TemperatureScaling(Recalibration):
    """Divide all logits by one temperature, for distributions that are overconfident or too flat.

    The temperature maximises the likelihood of the calibration set. What it divides is what a kind
    of distribution is made of, see `LabelsetDistribution.temper`: logits of labels, of labels given
    those before them, or log-probabilities of labelsets. Of `IndependentLabels`, dense
    distributions and tables the most probable labelset stays the same, of chains, trellises and
    mixtures it may change.

    Parameters
    ----------
    gate
        Whether the temperature is kept only if it raises the log-probability of the truth on
        held-out instances: in five-fold cross-validation, the 95% interval of the mean gain must
        lie above 0. Otherwise the temperature is 1, which changes nothing.

    Attributes
    ----------
    temperature_
        Above 1 distributions become flatter, below 1 sharper.
    found_temperature_
        The one with the highest likelihood, kept or not.
    is_kept_
        Whether it is used.
    gain_, gain_low_, gain_high_
        Mean gain in the log-probability of the truth on held-out instances, and its 95% interval.
    n_samples_, n_impossible_
        Size of the calibration set, and how many instances are left out because their truth has
        probability 0.

    See Also
    --------
    LabelwiseCalibration : Platt scaling of each label, for independent labels.
    RecalibratedClassifier : A classifier and its recalibration in one estimator.
    LabelsetDistribution.temper : Apply a temperature that you already know.

    Notes
    -----
    Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks,
    arXiv:1706.04599. For several chains or other mixtures the likelihood may have more than one
    peak, of which a bounded search finds one.

    Examples
    --------
    Overconfident probabilities:

    >>> import numpy as np
    >>> from labelsure import IndependentLabels, TemperatureScaling
    >>> logits = np.random.default_rng(0).normal(size=(500, 4))
    >>> truth = IndependentLabels(1 / (1 + np.exp(-logits))).sample(1, random_state=1)[:, 0]
    >>> dist = IndependentLabels(1 / (1 + np.exp(-3 * logits)))
    >>> scaling = TemperatureScaling().fit(dist, truth)
    >>> round(scaling.temperature_, 2)
    3.02
    >>> print(scaling)
    Temperature scaling, temperature 3.016: kept. Mean gain in the truth's log-probability on
    held-out rows: +0.707...
    >>> scaling.transform(dist).marginals()[0].round(2), dist.marginals()[0].round(2)
    (array([0.53, 0.47, 0.65, 0.53]), array([0.59, 0.4 , 0.87, 0.58]))
    """

    _title, _fitted = "Temperature scaling", ("found_temperature_",)
    found_temperature_: float

    def _learn(self, parts: list[Part]) -> tuple[float]:
        by_temperature = [part.dist._tempered_log_prob(part.truth) for part in parts]
        _, weights = join_truth(parts)

        def loss(log_temperature: float) -> float:
            temperature = math.exp(log_temperature)
            logs = np.concatenate([log_prob(temperature) for log_prob in by_temperature])
            return -float(np.average(logs, weights=weights))

        search: Any = minimize_scalar(
            loss, bounds=LOG_LIMITS, method="bounded", options={"xatol": 1e-6}
        )
        # 1 and the limits themselves, where these are as good.
        for log_known, known in zip((0.0, *LOG_LIMITS), (1.0, LEAST, LARGEST), strict=True):
            if loss(log_known) <= search.fun + SAME:
                return (known,)
        return (math.exp(search.x),)

    def _apply(self, dist: LabelsetDistribution, learned: tuple[float]) -> LabelsetDistribution:
        return dist.temper(*learned)

    def _log_prob(self, part: Part, learned: tuple[float]) -> Floats:
        # In logs: what underflows in an array of probabilities is finite so.
        return part.dist._tempered_log_prob(part.truth)(*learned)

    def _check_learned(self) -> None:
        if self._is_at_limit:
            warn(
                f"The temperature is at its limit, {self.found_temperature_:g}. Check that the "
                "model was not trained on these instances, or fit to more.",
                UserWarning,
            )

    @property
    def temperature_(self) -> float:
        """The temperature that is used: 1 where none is kept."""
        check_is_fitted(self, "is_kept_")
        return self.found_temperature_ if self.is_kept_ else 1.0

    @property
    def _is_at_limit(self) -> bool:
        return self.found_temperature_ in (LEAST, LARGEST)

    def _describe_learned(self) -> str:
        limit = ", which is its limit" if self._is_at_limit else ""
        return f", temperature {self.found_temperature_:.4g}{limit}"


LARGEST_LOGIT = 36.0
"""Of a probability: beyond, 1 - p cannot be told from 0."""

SLOPE_PENALTY, INTERCEPT_PENALTY = 1.0, 0.1
"""On squared differences from the pooled curve, the slope in units of the logit's variance. Of nine
variants these had the best mean rank for 100 and 160 instances of the six sets."""

NEARLY_NONE = 1e-3  # on the pooled curve, so that it is always determined
PRECISION = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 1000}


class LabelwiseCalibration(Recalibration):
    """Calibrate the probability of each label by Platt scaling. For `IndependentLabels`.

    Each label gets a slope and an intercept for its logit, shrunk towards those of all labels
    together, so that rare labels borrow strength from the others.

    For chains, put scikit-learn's `CalibratedClassifierCV` into the base learner instead, e.g.
    ``EnsembleOfClassifierChains(CalibratedClassifierCV(LogisticRegression()))``.

    Parameters
    ----------
    gate
        Whether the calibration is kept only if it raises the mean log-probability of the truth on
        held-out instances by more than one standard error.

    Attributes
    ----------
    curves_
        (2, L) slope and intercept of the logit of each label.
    is_kept_
        Whether the recalibration is used.
    gain_, gain_low_, gain_high_
        Mean gain in the log-probability of the truth on held-out instances, and its 95% interval.
    n_samples_
        Size of the calibration set.
    n_impossible_
        Number of instances left out because their truth has probability 0.

    See Also
    --------
    TemperatureScaling : One temperature, for chains, trellises and tables.
    RecalibratedClassifier : A classifier and its recalibration in one estimator.

    Notes
    -----
    Platt (1999), Probabilistic outputs for support vector machines and comparisons to regularized
    likelihood methods, Advances in Large Margin Classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import IndependentLabels, LabelwiseCalibration
    >>> p = np.random.default_rng(0).uniform(size=(500, 2))
    >>> truth = IndependentLabels(p).sample(1, random_state=1)[:, 0]
    >>> dist = IndependentLabels(p ** [1, 3])  # the second label is often missed
    >>> calibration = LabelwiseCalibration().fit(dist, truth)
    >>> calibration.transform(dist).marginals().mean(axis=0).round(2), truth.mean(axis=0)
    (array([0.53, 0.5 ]), array([0.528, 0.498]))
    """

    _title, _fitted = "A calibration of each label", ("curves_",)
    curves_: Floats

    def _check_kind(self, dist: LabelsetDistribution) -> None:
        if not isinstance(dist, IndependentLabels):
            raise InputError(
                "`dist` must be IndependentLabels for a calibration of each label, got "
                f"{type(dist).__name__}. Use `TemperatureScaling`, or `CalibratedClassifierCV` as "
                "the base learner of chains."
            )

    def _learn(self, parts: list[Part]) -> tuple[Floats]:
        logits = np.concatenate([read_logits(part.dist) for part in parts])
        Y, weights = join_truth(parts)
        counts = np.ones(len(Y)) if weights is None else weights
        pooled = _fit_sigmoids(
            logits.reshape(-1, 1),
            Y.astype(np.float64).reshape(-1, 1),
            np.repeat(counts, Y.shape[1]),
            np.array([[1.0], [0.0]]),
            np.full((2, 1), NEARLY_NONE),
        )
        n_ones = counts @ Y
        n_zeros = counts.sum() - n_ones
        targets = np.where(Y == 1, (n_ones + 1) / (n_ones + 2), 1 / (n_zeros + 2))  # Platt's
        spread = np.average((logits - np.average(logits, axis=0, weights=counts)) ** 2, 0, counts)
        penalties = np.stack(
            [SLOPE_PENALTY * spread + NEARLY_NONE, np.full(Y.shape[1], INTERCEPT_PENALTY)]
        )
        return (_fit_sigmoids(logits, targets, counts, pooled, penalties),)

    def _apply(self, dist: LabelsetDistribution, learned: tuple[Floats]) -> LabelsetDistribution:
        slopes, intercepts = learned[0]
        logits = (slopes * read_logits(dist) + intercepts).clip(-LARGEST_LOGIT, LARGEST_LOGIT)
        return IndependentLabels(expit(logits), dist.label_names)._with_index(dist.index)

    def _passes(self) -> bool:
        return self.gain_ > (self.gain_ - self.gain_low_) / n_standard_errors(self.n_samples_)


def _fit_sigmoids(
    logits: Floats, targets: Floats, weights: Floats, centre: Floats, penalties: Floats
) -> Floats:
    """Return slope and intercept of each column, (2, L), by L-BFGS on all at once.

    Each minimises its cross-entropy plus half of its penalties times the squared distance from the
    centre, which is strictly convex.
    """
    shape, weights = (2, logits.shape[1]), weights[:, np.newaxis]

    def loss(flat: Floats) -> tuple[float, Floats]:
        curves = flat.reshape(shape)
        z, away = curves[0] * logits + curves[1], curves - centre
        entropy = (weights * (np.logaddexp(0.0, z) - targets * z)).sum()
        off = weights * (expit(z) - targets)
        slopes = np.stack([(off * logits).sum(axis=0), off.sum(axis=0)]) + penalties * away
        return entropy + 0.5 * (penalties * away**2).sum(), slopes.ravel()

    start = np.broadcast_to(centre, shape).ravel()
    found: Any = minimize(loss, start, jac=True, method="L-BFGS-B", options=PRECISION)
    return found.x.reshape(shape)


def read_logits(dist: LabelsetDistribution) -> Floats:
    """Return the logits of the marginals, (n, L), finite."""
    return logit(dist.marginals()).clip(-LARGEST_LOGIT, LARGEST_LOGIT)


class ChainDependence(Recalibration):
    """Add label dependence to marginals: each label depends on those before it.

    For `IndependentLabels`; the result is a `ChainMixture`. The log-odds of a label become a * its
    old ones + b + the weights of earlier labels that are present, by logistic regressions. This
    recalibrates the labels as well.

    Parameters
    ----------
    C
        Inverse strength of the ridge penalty of the logistic regressions.
    gate
        Whether the chain is kept only if it raises the log-probability of the truth on held-out
        instances: in five-fold cross-validation, the 95% interval of the mean gain must lie above
        0. Otherwise labels stay independent.

    Attributes
    ----------
    curves_
        (2, L) a and b.
    weights_
        (L, L) what label k < j adds to the log-odds of label j if it is present, in row j.
    is_kept_
        Whether the recalibration is used.
    gain_, gain_low_, gain_high_
        Mean gain in the log-probability of the truth on held-out instances, and its 95% interval.
    n_samples_
        Size of the calibration set.
    n_impossible_
        Number of instances left out because their truth has probability 0.

    See Also
    --------
    LabelwiseCalibration : Calibrates labels and leaves them independent.
    RecalibratedClassifier : Fits it by `method="dependence"`.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import IndependentLabels
    >>> from labelsure.classifiers import ChainDependence
    >>> truth = (np.random.default_rng(0).random((500, 1)) < 0.4).astype(int) * [1, 1]
    >>> chain = ChainDependence().fit(IndependentLabels(np.full((500, 2), 0.4)), truth)
    >>> bool(chain.weights_[1, 0] > 5), chain.is_kept_
    (True, True)
    """

    _title, _fitted = "A chain over the labels", ("curves_", "weights_")

    def __init__(self, C: float = 1.0, gate: bool = True) -> None:
        super().__init__(gate)
        self.C = C

    def _check_parameters(self) -> None:
        super()._check_parameters()
        read_number(self.C, "C", 0, ends="(]")

    def _check_kind(self, dist: LabelsetDistribution) -> None:
        if not isinstance(dist, IndependentLabels):
            raise InputError(
                "`dist` must be IndependentLabels for a ChainDependence, got "
                f"{type(dist).__name__}. Pass `IndependentLabels(dist.marginals())`."
            )

    def _learn(self, parts: list[Part]) -> tuple[Floats, Floats]:
        logits = np.concatenate([read_logits(part.dist) for part in parts])
        Y, weights = join_truth(parts)
        n_labels = Y.shape[1]
        curves, links = np.repeat([[1.0], [0.0]], n_labels, axis=1), np.zeros((n_labels, n_labels))
        for j in range(n_labels):
            if Y[:, j].min() == Y[:, j].max():
                continue  # of one value nothing can be learned
            known = np.column_stack([logits[:, j], Y[:, :j]])
            fitted = LogisticRegression(C=self.C, max_iter=1000).fit(known, Y[:, j], weights)
            curves[:, j] = fitted.coef_[0, 0], fitted.intercept_[0]
            links[j, :j] = fitted.coef_[0, 1:]
        return curves, links

    def _apply(
        self, dist: LabelsetDistribution, learned: tuple[Floats, Floats]
    ) -> LabelsetDistribution:
        (slopes, intercepts), links = learned
        base = slopes * read_logits(dist) + intercepts
        chain = LinearChain(range(dist.n_labels), base, links)
        return ChainMixture([chain], dist.label_names)._with_index(dist.index)


class VoteSmoothing(Recalibration):
    """Smooth the shares of few votes towards the prevalence of each label.

    Three of three votes are no certainty. With m votes for an instance and the strength a, a / (m +
    a) of the probability goes to independent labels whose marginals are (m * share + a *
    prevalence) / (m + a); the votes keep the rest. The strength maximises the likelihood of the
    calibration set. So no labelset is impossible. Where another source has given each label a
    probability as well, this takes the place of the prevalence.

    Parameters
    ----------
    gate
        Whether the strength is kept only if it raises the log-probability of the truth on held-out
        instances: in five-fold cross-validation, the 95% interval of the mean gain must lie above
        0. A truth that nobody voted for counts with probability 2**-24 before. Otherwise the
        shares stay as they are.

    Attributes
    ----------
    strength_
        How many votes the prevalence is worth, from 0.01 to 100.
    prevalence_
        (L,) of the labels in the calibration set, (k + 0.5) / (n + 1) for k of n.
    is_kept_
        Whether the smoothing is used.
    gain_, gain_low_, gain_high_
        Mean gain in the log-probability of the truth on held-out instances, and its 95% interval.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import LabelsetTable
    >>> from labelsure.classifiers import VoteSmoothing
    >>> p = np.random.default_rng(0).beta(1, 3, size=(300, 1, 3))
    >>> draws = (np.random.default_rng(1).uniform(size=(300, 4, 3)) < p).astype(int)
    >>> votes = LabelsetTable.from_samples(draws[:, :3])
    >>> smoothing = VoteSmoothing().fit(votes, draws[:, 3])
    >>> print(smoothing)
    Vote smoothing, strength ...: kept. Mean gain in the truth's log-probability ...
    >>> smoothing.transform(votes)
    SmoothedTable(n_samples=300, n_labels=3)
    """

    _title, _fitted = "Vote smoothing", ("strength_", "prevalence_")
    strength_: float

    def _check_kind(self, dist: LabelsetDistribution) -> None:
        if not _are_votes(dist):
            raise InputError(
                "`dist` must be a LabelsetTable of votes, made by `LabelsetTable.from_samples`, "
                f"got {type(dist).__name__}."
            )

    def _plain_log_prob(self, part: Part) -> Floats:
        return np.maximum(part.log_prob(), math.log(_limits.PROBABILITY_FLOOR))

    def _learn(self, parts: list[Part]) -> tuple[float, Floats]:
        Y, weights = join_truth(parts)
        counts = np.ones(len(Y)) if weights is None else weights * (len(Y) / weights.sum())
        prevalence = (counts @ Y + 0.5) / (len(Y) + 1)

        def loss(log_strength: float) -> float:
            learned = math.exp(log_strength), prevalence
            logs = np.concatenate([self._log_prob(part, learned) for part in parts])
            return -float(np.average(logs, weights=weights))

        search: Any = minimize_scalar(
            loss, bounds=LOG_LIMITS, method="bounded", options={"xatol": 1e-3}
        )
        return math.exp(search.x), prevalence

    def _apply(
        self, dist: LabelsetDistribution, learned: tuple[float, Floats]
    ) -> LabelsetDistribution:
        strength, prior = learned
        table = cast(LabelsetTable, dist)  # `_check_kind` has seen to it
        if isinstance(dist, SmoothedTable):
            table, prior = dist._table, dist._rest.marginals()
        share = strength / (cast(Floats, table._n_votes) + strength)
        rest = table.marginals() * (1 - share)[:, np.newaxis] + share[:, np.newaxis] * prior
        smooth = IndependentLabels(rest, dist.label_names)._with_index(dist.index)
        return SmoothedTable(table, smooth, share)

    def _describe_learned(self) -> str:
        return f", strength {self.strength_:.3g}"


def _are_votes(dist: LabelsetDistribution) -> bool:
    """Whether there are votes, alone or beside what another source says of each label."""
    dist = dist._table if isinstance(dist, SmoothedTable) else dist
    return isinstance(dist, LabelsetTable) and dist._n_votes is not None


AUTO: tuple[tuple[Any, type[Recalibration]], ...] = (
    (IndependentLabels, LabelwiseCalibration),
    ((ChainMixture, TrellisDistribution), TemperatureScaling),
)
"""Which recalibration "auto" means for which kinds of distributions."""

MIN_AUTO = 50
"""Instances below which "auto" does not try: with fewer its gate hardly ever opens."""


def fit_recalibration(
    setting: Any,
    dists: Sequence[LabelsetDistribution],
    Ys: Sequence[Any],
    sample_weights: Sequence[Any] | None = None,
) -> Recalibration | None:
    """Fit a recalibration to several batches, and return it.

    "auto" chooses by the kind of distribution and keeps what it finds only if the 95% interval of
    the gain lies above 0. It is None for other kinds and for few instances.
    """
    if isinstance(setting, Recalibration):
        fitted: Recalibration = clone(setting)
        return fitted.fit_parts(dists, Ys, sample_weights)
    kind = next((kind for types, kind in AUTO if isinstance(dists[0], types)), None)
    kind = VoteSmoothing if _are_votes(dists[0]) else kind
    if setting is None or kind is None or sum(map(len, dists)) < MIN_AUTO:
        return None
    with hold_warnings(UserWarning):  # nobody asked for this kind; the gate decides
        found = kind().fit_parts(dists, Ys, sample_weights)
    found.is_kept_ = found.gain_low_ > 0
    return found


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
        estimator: Any = None,
        method: str | Recalibration = "auto",
        *,
        cv: int = 5,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model, unless it is frozen, and recalibrate what it predicts.

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
        model = self._model()
        self._check_parameters(model)
        index, settled = index_of_batch(X, y), is_settled(model)
        X, truth = read_instances(X, y, model)
        (X,) = indexable(X)
        self.classes_, self.label_names_ = truth.classes, truth.label_names
        self.n_labels_ = truth.labelsets.shape[1]
        y, weights = shape_for_estimator(truth, X, with_names=True), None
        if sample_weight is not None:
            weights = check_weights(sample_weight, count_rows(X), index)
            if not settled:
                check_takes_weights(model)
            rows = np.flatnonzero(weights > 0)
            X, y, weights = take_rows(X, rows), take_rows(y, rows), weights[rows]
        everything = np.arange(count_rows(X))
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
        known = [take_rows(Y, rows) for _, rows in fits]
        given = None if weights is None else [weights[rows] for _, rows in fits]
        with one_blas_thread():
            self.recalibration_ = fit_recalibration(self._recalibration(), dists, known, given)
        self.label_names_ = dists[0].label_names
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def predict_distribution(self, X: Any) -> LabelsetDistribution:
        """Return the recalibrated P(Y given x) of each instance.

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

    def _distribution_of_checked(self, X: Any) -> LabelsetDistribution:
        """Return P(Y|x); the model checks the instances."""
        dist = self._ask(self.estimator_, X)
        return dist if self.recalibration_ is None else self.recalibration_.transform(dist)

    def _model(self) -> Any:
        """Return the model; a learner for one label is fitted to each of them."""
        if self.estimator is None or _is_for_one_label(self.estimator):
            return BinaryRelevance(self.estimator, random_state=self.random_state)
        return self.estimator

    def _wrapped_estimator(self) -> Any:
        return self._model()

    def _fit_model(self, X: Any, y: Any, weights: Floats | None, rows: Indices) -> Any:
        model = clone(self._model())  # a frozen one stays as it is
        X, y = take_rows(X, rows), take_rows(y, rows)
        argument = find_weight_argument(model)
        given = {} if weights is None or argument is None else {argument: weights[rows]}
        with name_missing_classes(model, y, self.label_names_):
            return model.fit(X, y, **given)

    def _ask(self, fitted: Any, X: Any) -> LabelsetDistribution:
        """Return what a fitted model says; of each label alone, where dependence is learned."""
        inner = getattr(fitted, "estimator", None)  # of a frozen one
        knows_names = hasattr(fitted, "label_names_") or hasattr(inner, "label_names_")
        dist = as_distribution(fitted, X, label_names=None if knows_names else self.label_names_)
        of_labels = isinstance(self._recalibration(), ChainDependence)
        if isinstance(dist, IndependentLabels) or not of_labels:
            return dist
        return IndependentLabels(clip_certain(dist.marginals()), dist.label_names)

    def _recalibration(self) -> Any:
        return ChainDependence() if self.method == "dependence" else self.method

    def _check_parameters(self, model: Any) -> None:
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


def _is_for_one_label(model: Any) -> bool:
    """Whether a classifier says of itself that it does not take several labels."""
    if isinstance(model, (type, FrozenEstimator)) or not hasattr(model, "__sklearn_tags__"):
        return False
    tags = get_tags(model)
    known = tags.classifier_tags
    return known is not None and not (known.multi_label or tags.target_tags.multi_output)
