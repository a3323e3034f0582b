"""Analyses 1 to 4: additive linear models of Fisher's z of the correlations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy.stats import t as student
from statsmodels.stats.outliers_influence import variance_inflation_factor

from labelsure._runtime.typing import Floats
from labelsure.errors import InputError
from labelsure.study.correlations import check_columns

BASELINES = {"candidate": "HP", "dataset": "emotions", "classifier": "ECC", "metric": "exact"}
"""What the paper compares with; where it is not in the data, the first level is."""

DATA_FEATURES = ("n_labels", "n_labelsets", "cardinality", "n_features")

PAPER_LEVELS = {
    "candidate": ("HP", "TG", "SE", "CE", "ME", "CS", "GI"),
    "dataset": ("emotions", "scene", "yeast", "stare", "enron", "slashdot"),
    "classifier": ("Indep", "CT", "ECC"),
    "metric": ("exact", "hamming", "jaccard", "f1"),
}
"""The levels of each factor in the paper's order, which tables keep."""

_KEYS = ["metric", "dataset", "classifier", "candidate"]


def levels(names: Iterable[str], factor: str) -> list[str]:
    """Return distinct names of a factor: the paper's in its order, then others as they come.

    Examples
    --------
    >>> levels(["mine", "yeast", "scene", "mine"], "dataset")
    ['scene', 'yeast', 'mine']
    """
    present = list(dict.fromkeys(names))
    first = [name for name in PAPER_LEVELS[factor] if name in present]
    return first + [name for name in present if name not in first]


def effects(
    correlations: pd.DataFrame, *, baselines: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return what candidate, data set and classifier add to z = atanh(correlation).

    One ordinary least squares fit for each metric, on one row for each combination; several
    repeats of a combination are averaged first, because they are no independent observations.

    Parameters
    ----------
    correlations
        metric, dataset, classifier, candidate, correlation; missing ones and exactly 1 or -1,
        which have no finite z, are left out.
    baselines
        Which candidate, dataset and classifier the terms are compared with; None means HP,
        emotions and ECC, or the first one where these do not occur.

    Returns
    -------
    pandas.DataFrame
        metric, term (TG, SE, CE, scene, ..., Indep, CT), estimate, standard_error, p_value.
        `fit_statistics` gives R2, adjusted R2, RMSE and the number of rows of each fit.
    """
    cells = _cells(correlations)
    chosen = _baselines(cells, ("candidate", "dataset", "classifier"), baselines)
    tables, fits = [], []
    for metric in dict.fromkeys(cells["metric"]):
        part = cells[cells["metric"] == metric]
        design = pd.concat([_coded(part, *item) for item in chosen.items()], axis=1)
        terms, statistics = _fit(part["z"], design)
        tables.append(terms.assign(metric=metric))
        fits.append({"metric": metric, **statistics})
    columns = ["metric", "term", "estimate", "standard_error", "p_value"]
    return _with_notes(pd.concat(tables, ignore_index=True)[columns], fits, chosen, cells)


def robustness(
    correlations: pd.DataFrame,
    features: pd.DataFrame,
    *,
    baselines: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Return what moves each candidate's z: features of the data, the classifier, the metric.

    Six data sets leave one degree of freedom beside four features of the data, and the rows of a
    data set are no independent observations of them. So the ordinary standard errors are too
    small; those clustered by data set and the variance inflation say how far to trust a term.

    Parameters
    ----------
    correlations
        As for `effects`.
    features
        dataset, n_labels, n_labelsets, cardinality, n_features, from the training part; several
        repeats are averaged.
    baselines
        Which classifier and metric the terms are compared with; None means ECC and exact.

    Returns
    -------
    pandas.DataFrame
        candidate, term (n_labels, n_labelsets, cardinality, n_features, Indep, CT, hamming,
        jaccard), estimate, standard_error, p_value, clustered_standard_error, clustered_p_value
        (Student's t with one degree of freedom less than there are data sets) and
        variance_inflation. A term that those before it determine is missing, as the last features
        are with fewer than five data sets. `fit_statistics` gives the rest.
    """
    cells = _cells(correlations)
    described = cells.merge(_features_of(features, cells), on="dataset", how="left")
    chosen = _baselines(cells, ("classifier", "metric"), baselines)
    tables, fits = [], []
    for candidate in levels(described["candidate"], "candidate"):
        part = described[described["candidate"] == candidate]
        design = pd.concat(
            [part[list(DATA_FEATURES)], *(_coded(part, *item) for item in chosen.items())], axis=1
        )
        terms, statistics = _fit(part["z"], design, clusters=part["dataset"])
        tables.append(terms.assign(candidate=candidate))
        fits.append({"candidate": candidate, **statistics})
    frame = pd.concat(tables, ignore_index=True)
    frame = frame[["candidate", *frame.columns.drop("candidate")]]
    return _with_notes(frame, fits, chosen, cells)


def fit_statistics(models: pd.DataFrame) -> pd.DataFrame:
    """Return r_squared, adjusted_r_squared, n, rmse and intercept of each fit.

    They are kept in `models.attrs["fit"]`, beside `attrs["baselines"]`, what the terms are compared
    with, and `attrs["factors"]`, which of candidate, dataset, classifier and metric a term is of,
    in the order of the correlations.

    Parameters
    ----------
    models
        What `effects` or `robustness` returned, itself and not a copy cut from it.
    """
    if "fit" not in models.attrs:
        raise InputError(
            "`models` must be what `effects` or `robustness` returned, whose `attrs` hold the fit, "
            "got a frame without it. Concatenating or merging frames loses it: ask before."
        )
    return pd.DataFrame(models.attrs["fit"])


def averaged(correlations: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each metric, dataset, classifier and candidate: the mean over repeats."""
    check_columns(correlations, [*_KEYS, "correlation"], "correlations")
    values = correlations["correlation"]
    if (values.abs() > 1).any():
        worst = values[values.abs() > 1].iloc[0]
        raise InputError(f"`correlations` must hold correlations from -1 to 1, got {worst:g}.")
    return correlations.groupby(_KEYS, sort=False)["correlation"].mean().reset_index()


def has_models(correlations: pd.DataFrame) -> bool:
    """Return whether any correlation has a finite z, so that there are linear models of them."""
    return not _usable(correlations).empty


def _usable(correlations: pd.DataFrame) -> pd.DataFrame:
    cells = averaged(correlations)
    return cells[cells["correlation"].abs() < 1]  # false for missing ones


def _cells(correlations: pd.DataFrame) -> pd.DataFrame:
    cells = _usable(correlations)
    if cells.empty:
        raise InputError("`correlations` must hold at least one that is defined, got none.")
    return cells.assign(z=np.arctanh(cells["correlation"]))


def _features_of(features: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    check_columns(features, ["dataset", *DATA_FEATURES], "features")
    means = features.groupby("dataset", as_index=False)[list(DATA_FEATURES)].mean()
    unknown = sorted(set(cells["dataset"]) - set(means["dataset"]))
    if unknown:
        raise InputError(
            f"`features` must describe every data set of `correlations`, got none of "
            f"{', '.join(unknown)}. Add a row for it."
        )
    return means


def _baselines(
    cells: pd.DataFrame, columns: Sequence[str], chosen: Mapping[str, str] | None
) -> dict[str, str]:
    chosen = dict(chosen or {})
    for column, level in chosen.items():
        if column not in columns:
            raise InputError(f"`baselines` must be for {', '.join(columns)}, got {column!r}.")
        if level not in set(cells[column]):
            raise InputError(
                f"`baselines` must name a {column} that occurs, one of "
                f"{', '.join(levels(cells[column], column))}, got {level!r}."
            )
    defaults = {}
    for column in columns:
        present = levels(cells[column], column)
        paper = BASELINES[column]
        defaults[column] = paper if paper in present else present[0]
    return {**defaults, **chosen}


def _coded(part: pd.DataFrame, column: str, baseline: str) -> pd.DataFrame:
    """Return a column of zeros and ones for each level but the baseline."""
    others = [level for level in levels(part[column], column) if level != baseline]
    coded = {level: (part[column] == level).astype(float) for level in others}
    return pd.DataFrame(coded, index=part.index)


def _fit(
    z: pd.Series, design: pd.DataFrame, clusters: pd.Series | None = None
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the terms of a fit, and how well it fits."""
    design.insert(0, "intercept", 1.0)
    kept = _independent(design)
    X = design[kept].to_numpy(float)
    fit = sm.OLS(z.to_numpy(), X).fit()
    enough = fit.df_resid > 0
    terms = pd.DataFrame(index=pd.Index(kept, name="term"))
    terms["estimate"] = fit.params
    terms["standard_error"] = fit.bse if enough else np.nan
    terms["p_value"] = fit.pvalues if enough else np.nan
    if clusters is not None:
        terms = terms.join(_clustered(fit, X, kept, clusters, enough))
    rows = terms.reindex(design.columns[1:]).rename_axis("term").reset_index()
    return rows, _statistics(fit, enough)


def _independent(design: pd.DataFrame) -> list[str]:
    """Return the columns that those before them do not determine."""
    kept: list[str] = []
    for name in design.columns:
        trial = design[[*kept, name]].to_numpy(float)
        # On a common scale, or feature counts in the thousands drown the others.
        trial = trial / np.maximum(np.linalg.norm(trial, axis=0), 1e-300)
        if np.linalg.matrix_rank(trial, tol=1e-9) == len(kept) + 1:
            kept.append(name)
    return kept


def _clustered(
    fit: Any, X: Floats, names: list[str], clusters: pd.Series, enough: bool
) -> pd.DataFrame:
    codes, found = pd.factorize(clusters)
    columns = pd.DataFrame(index=pd.Index(names, name="term"), dtype=float)
    columns["clustered_standard_error"] = np.nan
    if enough and len(found) > 1:
        robust = fit.get_robustcov_results("cluster", groups=codes)
        columns["clustered_standard_error"] = np.sqrt(np.diag(robust.cov_params()).clip(0))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(fit.params) / columns["clustered_standard_error"].to_numpy()
    columns["clustered_p_value"] = 2 * student.sf(ratio, max(len(found) - 1, 1))
    columns["variance_inflation"] = [np.nan] + [
        variance_inflation_factor(X, j) for j in range(1, X.shape[1])
    ]
    return columns


def _statistics(fit: Any, enough: bool) -> dict[str, Any]:
    varies = fit.centered_tss > 0
    return {
        "r_squared": float(fit.rsquared) if varies else np.nan,
        "adjusted_r_squared": float(fit.rsquared_adj) if enough and varies else np.nan,
        "n": int(fit.nobs),
        "rmse": float(np.sqrt(fit.mse_resid)) if enough else np.nan,
        "intercept": float(fit.params[0]),
    }


def _with_notes(
    frame: pd.DataFrame, fits: list[dict[str, Any]], baselines: dict[str, str], cells: pd.DataFrame
) -> pd.DataFrame:
    # Records and not a frame: pandas compares the attrs of frames that it puts together.
    frame.attrs["fit"] = fits
    frame.attrs["baselines"] = baselines
    frame.attrs["n_datasets"] = cells["dataset"].nunique()
    frame.attrs["factors"] = {
        level: factor for factor in baselines for level in dict.fromkeys(cells[factor])
    }
    return frame
