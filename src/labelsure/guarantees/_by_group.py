"""`ByGroup`: one accept policy, or one prediction set, for each group of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from labelsure._runtime.notebook import SentenceMixin
from labelsure._runtime.typing import FeaturesLike, Floats, LabelsetsLike, Mask
from labelsure.distributions._base import LabelsetDistribution
from labelsure.errors import InputError, warn
from labelsure.guarantees._labelset_region import LabelsetRegion, RegionLabelsets
from labelsure.guarantees._policy import AcceptPolicy, TargetWarning, open_referred
from labelsure.labelsets.foreign import index_of
from labelsure.labelsets.names import align_values, read_groups, read_vector
from labelsure.metrics.partial import PartialLabelsets
from labelsure.saving import Savable

if TYPE_CHECKING:
    import pandas as pd

Part = TypeVar("Part", bound="AcceptPolicy | LabelsetRegion")


class ByGroup(SentenceMixin, Savable, BaseEstimator, Generic[Part]):  # type: ignore[misc]
    """A policy, or a region, for each group of rows, such as a language.

    Each group has a threshold of its own, and the guarantee holds within each group: for a joint
    guarantee over k groups divide the error 1 - `confidence` by k (Bonferroni).

    Parameters
    ----------
    estimator
        An `AcceptPolicy` or a `LabelsetRegion`; a clone is fitted to the rows of each group.

    Attributes
    ----------
    parts_
        The fitted policy or region of each group, by its name.
    n_samples_
        Size of the calibration set.
    message_
        The result of each group, in one sentence each.

    See Also
    --------
    AcceptPolicy : Accept or refer predictions; `accept` and `accept_labels` are its methods.
    LabelsetRegion : Conformal prediction sets; `predict` is its method.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> score = rng.uniform(size=2000)
    >>> accuracy = (rng.uniform(size=2000) < score).astype(float)
    >>> language = np.where(np.arange(2000) % 4 == 0, "de", "en")
    >>> policy = ByGroup(AcceptPolicy(target=0.8, outcome="binary"))
    >>> policy = policy.fit(score, accuracy, language)
    >>> {name: part.threshold_ for name, part in policy.parts_.items()}
    {'de': 0.75, 'en': 0.6}
    >>> policy.accept([0.65, 0.65], ["de", "en"])
    array([False,  True])
    """

    def __init__(self, estimator: Part) -> None:
        self.estimator = estimator

    def fit(
        self,
        X: FeaturesLike,
        y: LabelsetsLike,
        groups: ArrayLike,
        *,
        clusters: ArrayLike | None = None,
    ) -> Self:
        """Find the thresholds of all groups on labelled rows.

        Parameters
        ----------
        X, y
            Arguments of the estimator's `fit`: scores and accuracies for a policy, distributions
            and true labelsets for a region.
        groups
            (n,) the group of each row.
        clusters
            (n,) the cluster of each, where rows depend on each other.
        """
        estimator: AcceptPolicy | LabelsetRegion = self.estimator
        if not isinstance(estimator, (AcceptPolicy, LabelsetRegion)):
            raise InputError(
                "`estimator` must be an AcceptPolicy or a LabelsetRegion, got a "
                f"{type(estimator).__name__}."
            )
        rows = estimator._read_rows(X, y, clusters)
        names = read_group_names(groups, rows.index, len(rows), rows.described_as)
        self.parts_: dict[str, Part] = {
            name: clone(estimator)._fit_rows(rows[np.flatnonzero(names == name)])
            for name in np.unique(names).tolist()
        }
        self.n_samples_ = sum(part.n_samples_ for part in self.parts_.values())
        messages = {name: part.message_ for name, part in self.parts_.items()}
        self.message_ = "\n".join(
            f"Group {name!r}: {message}" for name, message in messages.items()
        )
        if isinstance(estimator, AcceptPolicy) and not self.reached_:
            warn(self.message_, TargetWarning)
        return self

    @property
    def reached_(self: ByGroup[AcceptPolicy]) -> bool:
        """Whether some threshold is proved to reach the target in each group."""
        return all(policy.reached_ for policy in self.parts_.values())

    @property
    def share_(self: ByGroup[AcceptPolicy]) -> float:
        """Share of the calibration set that the policies accept."""
        n_accepted = sum(part.share_ * part.n_samples_ for part in self.parts_.values())
        return n_accepted / max(self.n_samples_, 1)

    def accept(self: ByGroup[AcceptPolicy], score: ArrayLike, groups: ArrayLike) -> Mask:
        """Predictions that the policy of their group accepts, (n,).

        Parameters
        ----------
        score
            (n,) made as those that it was fitted to.
        groups
            (n,) the group of each.
        """
        check_is_fitted(self)
        scores = read_vector(score, "score")
        names = self._read_groups(groups, index_of(score), len(scores), "`score`")
        thresholds = {n: part.threshold_ for n, part in self.parts_.items()}
        return scores >= _thresholds_of(names, thresholds)

    def accept_labels(
        self: ByGroup[AcceptPolicy], score: ArrayLike, answers: PartialLabelsets, groups: ArrayLike
    ) -> PartialLabelsets:
        """Answers with all labels open where the policy of their group refers them.

        Parameters
        ----------
        score
            (n,) of the answers, made as those that it was fitted to.
        answers
            As `labelsure.decide` returns them with `open_cost`.
        groups
            (n,) the group of each.
        """
        return open_referred(self.accept(score, groups), score, answers)

    def predict(
        self: ByGroup[LabelsetRegion],
        dist: LabelsetDistribution,
        groups: ArrayLike,
        *,
        coverage: float | None = None,
    ) -> RegionLabelsets:
        """Certain and possible labels of each row, by the region of its group.

        Parameters
        ----------
        dist
            Distributions made as those that it was fitted to.
        groups
            (n,) the group of each.
        coverage
            Another coverage than that of the regions, from the same calibration set.
        """
        check_is_fitted(self)
        region = next(iter(self.parts_.values()))
        source = region._read_batch(dist, coverage)
        names = self._read_groups(groups, source.index, len(source), "the distribution")
        thresholds = {n: part._threshold(part.scores_, coverage) for n, part in self.parts_.items()}
        return region._make_region(source, _thresholds_of(names, thresholds))

    def _read_groups(
        self, groups: ArrayLike, index: pd.Index | None, n_samples: int, beside: str
    ) -> NDArray[np.str_]:
        """Group of each row, (n,). Raises InputError for a group that `fit` did not have."""
        names = read_group_names(groups, index, n_samples, beside)
        unknown = sorted(set(names.tolist()) - set(self.parts_))
        if unknown:
            raise InputError(
                f"`groups` must be among those of `fit`, got {unknown[0]!r}. It had "
                f"{', '.join(repr(name) for name in list(self.parts_)[:5])}."
            )
        return names


def read_group_names(
    groups: ArrayLike, index: pd.Index | None, n_samples: int, beside: str
) -> NDArray[np.str_]:
    """Group of each row, (n,), in the order of an index. Raises InputError."""
    names = np.asarray(align_values(groups, index, name="groups", beside=beside))
    if names.shape != (n_samples,):
        raise InputError(
            f"`groups` must have one entry for each of the {n_samples} rows, got shape "
            f"{names.shape}."
        )
    return read_groups(names)


def _thresholds_of(names: NDArray[np.str_], thresholds: dict[str, float]) -> Floats:
    return np.array([thresholds[name] for name in names.tolist()], dtype=np.float64)
