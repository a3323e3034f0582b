"""`plan_labels`: which instances of a batch to label, and how many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

from labelsure._notebook import count, make_html
from labelsure._typing import Indices
from labelsure.distributions import make_generator
from labelsure.errors import InputError
from labelsure.estimation._batch_estimates import Dispersion
from labelsure.estimation._few_labels import MIN_LABELLED
from labelsure.metrics import check_level

if TYPE_CHECKING:
    from labelsure.estimation._batch_estimates import BatchSums


@dataclass(frozen=True)
class LabelPlan:
    """Which instances of a batch to label, and what that will bring.

    Parameters
    ----------
    rows
        (n,) their positions in the batch, in their order there; drawn at random.
    n_samples
        The size of the batch.
    width
        About how wide the interval of `estimate` with these labels will be, from low to high.
    level
        How often it will cover.

    Examples
    --------
    `plan_labels` returns one.

    >>> plan = LabelPlan(np.array([3, 8, 20]), n_samples=40, width=0.25, level=0.95)
    >>> print(plan)
    Label 3 instances of 40, drawn at random: the interval will be about 0.250 wide, with
    probability 0.95, whatever has changed.
    """

    rows: Indices
    n_samples: int
    width: float
    level: float

    def __str__(self) -> str:
        return (
            f"Label {count(len(self.rows), 'instance')} of {self.n_samples:,}, drawn at random: "
            f"the interval will be about {self.width:.3f} wide, with probability "
            f"{self.level:g}, whatever has changed."
        )

    def _repr_html_(self) -> str:
        return make_html(str(self))


def plan_labels(
    estimator: Any,
    batch: Any,
    Y_pred: Any = None,
    *,
    n_labels: int | None = None,
    width: float | None = None,
    level: float = 0.95,
    random_state: Any = None,
) -> LabelPlan:
    """Draw instances of a batch to be labelled, as many as an interval of some width needs.

    With the labels of these, `estimate(batch, Y_true=..., rows=plan.rows)` is right whatever the
    batch is like. Labelling others instead, or leaving out those that are hard to label, makes it
    wrong.

    Parameters
    ----------
    estimator
        A fitted `AccuracyEstimator` or `AccuracyAwareClassifier`.
    batch, Y_pred
        The batch, as its `estimate` takes it.
    n_labels
        How many instances to label; or instead
    width
        how wide the interval may be, from low to high.
    level
        How often the interval shall cover.
    random_state
        Of the draw.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import AccuracyEstimator, IndependentLabels, plan_labels
    >>> rng = np.random.default_rng(0)
    >>> dist = IndependentLabels(rng.uniform(size=(2000, 3)))
    >>> Y = dist.sample(1, random_state=1)[:, 0]
    >>> estimator = AccuracyEstimator("hamming").fit(dist[:1000], Y[:1000])
    >>> plan = plan_labels(estimator, dist[1000:], width=0.1, random_state=0)
    >>> print(plan)
    Label 79 instances of 1,000, drawn at random: the interval will be about 0.100 wide, with
    probability 0.95, whatever has changed.
    >>> Y_few = Y[1000:][plan.rows]                     # somebody labels these
    >>> print(estimator.estimate(dist[1000:], Y_true=Y_few, rows=plan.rows))
    Mean accuracy 0.734, between 0.680 and 0.789 with probability 0.95 (1,000 instances; 79
    instances of it labelled, drawn at random).
    """
    sums = estimator.sum_up(batch) if Y_pred is None else estimator.sum_up(batch, Y_pred)
    fitted = getattr(estimator, "accuracy_estimator_", estimator)
    return plan_by_sums(
        sums, fitted, n_labels=n_labels, width=width, level=level, random_state=random_state
    )


def plan_by_sums(
    sums: BatchSums,
    estimator: Any,
    *,
    n_labels: int | None,
    width: float | None,
    level: float,
    random_state: Any,
) -> LabelPlan:
    """Draw rows, as many as are asked for or as bring the interval to a width.

    Accuracies are expected to scatter around their estimates as they did when fitting.

    Parameters
    ----------
    sums
        Of the batch.
    estimator
        A fitted `AccuracyEstimator`.
    n_labels, width
        One of both.
    level, random_state
        Of the interval, and of the draw.
    """
    check_level(level)
    n_samples = sums.n_samples
    dispersion = getattr(estimator, "dispersion_", Dispersion())
    single = dispersion.mean_variance(sums.coins / max(n_samples, 1))
    z = float(norm.ppf((1 + level) / 2))
    if (n_labels is None) == (width is None):
        raise InputError(
            "Either `n_labels` or `width` must be given, got "
            f"{'neither' if n_labels is None else 'both'}."
        )
    if width is not None:
        if not 0 < width < 1:
            raise InputError(f"`width` must lie between 0 and 1, got {width!r}.")
        needed = 1 / ((width / (2 * z)) ** 2 / single + 1 / n_samples) if single > 0 else 0.0
        n_labels = max(MIN_LABELLED, int(np.ceil(needed)))
    n_labels = _check_n_labels(n_labels, n_samples)
    rows = make_generator(random_state).choice(n_samples, n_labels, replace=False)
    found = 2 * z * (single * (1 / n_labels - 1 / n_samples)) ** 0.5
    return LabelPlan(np.sort(rows), n_samples, float(found), level)


def _check_n_labels(n_labels: Any, n_samples: int) -> int:
    whole = isinstance(n_labels, (int, np.integer)) and not isinstance(n_labels, bool)
    if not whole or n_labels < MIN_LABELLED:
        raise InputError(
            f"`n_labels` must be a whole number of at least {MIN_LABELLED}, got {n_labels!r}."
        )
    if n_samples < MIN_LABELLED:
        raise InputError(
            f"A batch must have at least {MIN_LABELLED} instances to label some of it, got "
            f"{n_samples}. Label all of it."
        )
    return min(int(n_labels), n_samples)
