"""Analyses 1 to 4: additive linear models of Fisher's z of the correlations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from labelsure._runtime.typing import Floats
from labelsure.errors import InputError
from labelsure.study.correlations import KEYS, check_columns

BASELINES = {
    "candidate": ("HP",),
    "dataset": ("emotions", "scene", "yeast", "stare", "enron", "slashdot"),
    "classifier": ("ECC", "Indep", "CT"),
    "metric": ("exact",),
}
"""What a factor's levels are compared with: the first of these that occurs, else the first level.
The paper's are HP, emotions, ECC and exact match."""

FEATURE, FIT = "feature", "fit"
"""Factors of terms that are no levels: features of the data, and statistics of the fit."""

DATA_FEATURES = ("n_labels", "n_labelsets", "cardinality", "n_features")
TERM = ["factor", "baseline", "term"]
ORDINARY = ["estimate", "standard_error", "p_value"]
CLUSTERED = ["clustered_standard_error", "clustered_p_value", "variance_inflation"]


def effects(correlations: pd.DataFrame) -> pd.DataFrame:
    """Return what candidate, data set and classifier add to z = atanh(correlation).

    One ordinary least squares fit for each metric, on one row for each combination; several
    repeats of a combination are averaged first, because they are no independent observations.

    Returns
    -------
    pandas.DataFrame
        metric, factor, baseline (what a term is compared with: HP, emotions, ECC, or the first
        level where these do not occur), term (TG, SE, CE, scene, ..., Indep, CT), estimate,
        standard_error, p_value. Terms of the factor "fit" are r_squared, adjusted_r_squared, n and
        rmse. No rows where no correlation is defined.
    """
    cells = fisher_cells(correlations)
    found = _fit_each(cells, "metric", (), ("candidate", "dataset", "classifier"))
    return found[["metric", *TERM, *ORDINARY]]


def robustness(correlations: pd.DataFrame, features: pd.DataFrame) -> pd.DataFrame:
    """Return what moves each candidate's z: features of the data, the classifier, the metric.

    Six data sets leave one degree of freedom beside four features of the data, and the rows of a
    data set are no independent observations of them. So the ordinary standard errors are too
    small; those clustered by data set and the variance inflation say how far to trust a term.

    Returns
    -------
    pandas.DataFrame
        candidate, factor, baseline (ECC and exact), term (n_labels, n_labelsets, cardinality,
        n_features, Indep, CT, hamming, jaccard), estimate, standard_error, p_value,
        clustered_standard_error, clustered_p_value (Student's t with one degree of freedom less
        than there are data sets) and variance_inflation. A term that those before it determine is
        missing, as the last features are with fewer than five data sets.
    """
    cells = fisher_cells(correlations)
    check_columns(features, ["dataset", *DATA_FEATURES], "features")
    means = features.groupby("dataset", as_index=False)[list(DATA_FEATURES)].mean()
    unknown = sorted(set(cells["dataset"]) - set(means["dataset"]))
    if unknown:
        raise InputError(
            "`features` must have a row for every data set of `correlations`, got none of "
            f"{', '.join(unknown)}. Add it."
        )
    described = cells.merge(means, on="dataset", how="left")
    return _fit_each(described, "candidate", DATA_FEATURES, ("classifier", "metric"))


def fisher_cells(correlations: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of each combination over the repeats with its z, where that is finite."""
    check_columns(correlations, [*KEYS, "correlation"], "correlations")
    worst = correlations["correlation"].abs().max()
    if worst > 1:
        raise InputError(f"`correlations` must hold correlations from -1 to 1, got {worst:g}.")
    cells = correlations.groupby(KEYS, sort=False)["correlation"].mean().reset_index()
    cells = cells[cells["correlation"].abs() < 1]  # false for missing ones
    return cells.assign(z=np.arctanh(cells["correlation"]))


def _fit_each(
    cells: pd.DataFrame, key: str, features: tuple[str, ...], factors: tuple[str, ...]
) -> pd.DataFrame:
    """Return a model for each level of a key, stacked; levels in the order of the cells."""
    baselines = {}
    for factor in factors if len(cells) else ():
        present = list(dict.fromkeys(cells[factor]))
        baselines[factor] = next((x for x in BASELINES[factor] if x in present), present[0])
    fits = [pd.DataFrame(columns=[key, *TERM, *ORDINARY, *CLUSTERED])]
    for level, part in cells.groupby(key, sort=False):
        columns = {(FEATURE, "", name): part[name].to_numpy(float) for name in features}
        for factor, baseline in baselines.items():
            for name in dict.fromkeys(part[factor]):
                if name != baseline:
                    columns[factor, baseline, name] = (part[factor] == name).to_numpy(float)
        fit = _fit(part["z"].to_numpy(), columns, pd.factorize(part["dataset"])[0])
        fits.append(fit.assign(**{key: level}))
    return pd.concat(fits[len(fits) > 1 :], ignore_index=True)[fits[0].columns]


def _fit(z: Floats, columns: dict[tuple[str, str, str], Floats], clusters: Any) -> pd.DataFrame:
    """Return the terms of an ordinary least squares fit, and how well it fits."""
    design = np.column_stack([np.ones(len(z)), *columns.values()])
    kept = _independent(design)
    X = design[:, kept]
    (n, k), n_clusters = X.shape, int(clusters.max()) + 1
    Q, R = np.linalg.qr(X)
    root = np.linalg.inv(R)
    inverse = root @ root.T  # of X.T @ X
    estimates = root @ (Q.T @ z)
    residuals = z - X @ estimates
    n_left = n - k if n > k else np.nan
    variance = residuals @ residuals / n_left
    # The sandwich over clusters, with the usual correction for their number.
    sums = np.zeros((n_clusters, k))
    np.add.at(sums, clusters, X * residuals[:, np.newaxis])
    scale = n_clusters / (n_clusters - 1) * (n - 1) / n_left if n_clusters > 1 else np.nan
    clustered = np.sqrt((scale * np.diag(inverse @ sums.T @ sums @ inverse)).clip(0))
    errors = np.sqrt(variance * np.diag(inverse))
    with np.errstate(divide="ignore", invalid="ignore"):
        p_values = 2 * student.sf(np.abs(estimates / errors), n_left)
        clustered_p = 2 * student.sf(np.abs(estimates / clustered), max(n_clusters - 1, 1))
    inflation = np.diag(inverse) * ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    numbers = np.column_stack([estimates, errors, p_values, clustered, clustered_p, inflation])
    table = np.full((design.shape[1], numbers.shape[1]), np.nan)
    table[kept] = numbers
    total = ((z - z.mean()) ** 2).sum()
    r_squared = 1 - residuals @ residuals / total if total > 0 else np.nan
    statistics = {
        "r_squared": r_squared,
        "adjusted_r_squared": 1 - (1 - r_squared) * (n - 1) / n_left,
        "n": n,
        "rmse": np.sqrt(variance),
    }
    terms = pd.DataFrame(list(columns), columns=TERM)
    terms[[*ORDINARY, *CLUSTERED]] = table[1:]
    fit = pd.DataFrame({"term": list(statistics), "estimate": list(statistics.values())})
    return pd.concat([terms, fit.assign(factor=FIT, baseline="")], ignore_index=True)


def _independent(design: Floats) -> list[int]:
    """Return the columns that those before them do not determine."""
    # On a common scale, or feature counts in the thousands drown the others.
    scaled = design / np.maximum(np.linalg.norm(design, axis=0), 1e-300)
    kept: list[int] = []
    for j in range(design.shape[1]):
        if np.linalg.matrix_rank(scaled[:, [*kept, j]], tol=1e-9) == len(kept) + 1:
            kept.append(j)
    return kept
