"""The region of an aware classifier: whether there is one, and what it is fitted to."""

from __future__ import annotations

from numbers import Real
from typing import Any

from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from labelsure.errors import InputError
from labelsure.estimation.score_table import ScoreTable
from labelsure.guarantees._labelset_region import LabelsetRegion
from labelsure.model._calibration import is_share


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
