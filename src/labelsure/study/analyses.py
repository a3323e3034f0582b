"""The analyses of a study but the mixture, and all of them as a few tidy frames.

Analyses 0 and 3 are correlations of candidates and accuracy. Two scores of the same instances are
compared with one outcome: their correlations depend on each other. The contribution of a single
instance to each is its influence, and the spread of the *difference* of two influences gives the
standard error of the difference under any dependence. Analyses 1 to 4 are additive linear models of
Fisher's z of the correlations.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import norm
from scipy.stats import t as student

from labelsure._kernels.statistics import net_concordance
from labelsure._runtime.typing import Array, Floats, Integers
from labelsure.errors import InputError
from labelsure.estimation.score_table import CELL, ScoreTable
from labelsure.metrics.registry import COUNTS
from labelsure.study.mixture import (
    check_columns,
    interval_table,
    mixture_replicates,
    row_accuracy,
)
from labelsure.study.plan import Settings

AssociationName = Literal["kendall", "pearson"]
BASELINE = "HP"
KEYS = ["metric", "dataset", "classifier", "candidate"]
LEVELS = (0.1, 0.05, 0.01)
"""Significance levels of differences from HP: one arrow for each."""


class Association(NamedTuple):
    """A correlation, NaN where it is undefined, and the influence function at each instance."""

    value: float
    influence: Floats


def correlate(
    scores: pd.DataFrame,
    association: AssociationName = "kendall",
    settings: Settings | None = None,
) -> pd.DataFrame:
    """Correlation of each candidate with each accuracy, in every cell.

    Returns
    -------
    pandas.DataFrame
        metric, dataset, classifier, candidate, repeat, n, correlation (missing where the candidate
        or the accuracy is constant), difference (from HP's), standard_error (of the difference),
        p_value (two-sided), arrows ("+" or "-", repeated for 0.1, 0.05 and 0.01) and p_value_holm,
        which allows for all tests of a repeat.
    """
    settings = settings or Settings()
    associate, values = {
        "kendall": (kendall_association, ScoreTable.ranks),
        "pearson": (pearson_association, ScoreTable.candidate),
    }[association]
    candidates = settings.candidates if association == "pearson" else settings.rank_candidates
    rows = []
    for cell, table in _cells(scores):
        scored = {name: values(table, name) for name in dict.fromkeys((BASELINE, *candidates))}
        for metric in settings.metrics:
            outcome = row_accuracy(table, metric, settings.empty)
            is_defined = ~np.isnan(outcome)
            n, outcome = int(is_defined.sum()), outcome[is_defined]
            associations = {
                name: associate(score[is_defined], outcome) for name, score in scored.items()
            }
            for name in candidates:
                gap = (np.nan, np.nan)
                if name != BASELINE:
                    gap = difference(associations[name], associations[BASELINE])
                rows.append((metric, *cell[:2], name, cell[2], n, associations[name].value, *gap))
    columns = [*KEYS, "repeat", "n", "correlation", "difference", "standard_error"]
    frame = pd.DataFrame(rows, columns=columns)
    in_order = frame["metric"].map(settings.metrics.index).argsort(kind="stable")
    return _with_p_values(frame.iloc[in_order].reset_index(drop=True))


def over_repeats(correlations: pd.DataFrame) -> pd.DataFrame:
    """Means over repeats and their tests, a row for each metric, dataset, classifier, candidate.

    Repeats split the same instances, so their differences from HP depend on each other. The
    standard error of a mean difference is the quadratic mean of those of the repeats: right if all
    repeats agree, and too large otherwise.

    Returns
    -------
    pandas.DataFrame
        The columns of `correlate`, with `repeat` 0; `p_value_holm` allows for all rows.
    """
    squared = correlations.assign(standard_error=correlations["standard_error"] ** 2)
    values = ["n", "correlation", "difference", "standard_error"]
    means = squared.groupby(KEYS, sort=False)[values].mean().reset_index()
    means.insert(len(KEYS), "repeat", 0)
    return _with_p_values(means.assign(standard_error=np.sqrt(means["standard_error"])))


def _cells(scores: pd.DataFrame) -> Iterator[tuple[tuple[object, ...], ScoreTable]]:
    """Yield (dataset, classifier, repeat, number of rows) and score table of each cell."""
    check_columns(scores, CELL, "scores")
    for name, part in scores.groupby(CELL, sort=False):
        yield (*name, len(part)), ScoreTable(part)


def _with_p_values(frame: pd.DataFrame) -> pd.DataFrame:
    """Frame with p_value, arrows, and p_value_holm over the rows of each repeat."""
    gaps = frame["difference"]
    p_values = pd.Series(p_value(gaps, frame["standard_error"]), frame.index)
    n_arrows = np.sum([p_values < level for level in LEVELS], axis=0).tolist()
    signs = ["+" if gap > 0 else "-" for gap in gaps]
    holm = [_holm(part) for _, part in p_values.groupby(frame["repeat"])]
    return frame.assign(
        p_value=p_values,
        arrows=[sign * n for sign, n in zip(signs, n_arrows, strict=True)],
        p_value_holm=pd.concat(holm),
    )


def _holm(p_values: pd.Series) -> pd.Series:
    """Adjusted p-values of Holm's step-down procedure."""
    ordered = p_values.sort_values()  # missing ones last
    left = np.arange(ordered.count(), ordered.count() - len(ordered), -1)
    return (ordered * left).cummax().clip(upper=1.0)


def kendall_association(score: Floats, outcome: Floats) -> Association:
    """Kendall's tau-b with its influence function; NaN for a constant score or outcome."""
    n = len(score)
    if not (_is_varied(score) and _is_varied(outcome)):
        return Association(np.nan, np.full(n, np.nan))
    x, y = (np.unique(v, return_inverse=True)[1].astype(np.int64) for v in (score, outcome))
    concordance = _net_concordance(x, y) / (n - 1)
    differs_x, differs_y = ((n - np.bincount(v)[v]) / (n - 1) for v in (x, y))
    mean_x, mean_y = differs_x.mean(), differs_y.mean()
    scale = np.sqrt(mean_x * mean_y)
    tau = concordance.mean() / scale
    influence = 2 * (
        (concordance - concordance.mean()) / scale
        - tau / 2 * ((differs_x - mean_x) / mean_x + (differs_y - mean_y) / mean_y)
    )
    return Association(float(tau), influence)


def pearson_association(score: Floats, outcome: Floats) -> Association:
    """Pearson's r with its influence function; NaN for a constant score or outcome."""
    if not (_is_varied(score) and _is_varied(outcome)):
        return Association(np.nan, np.full(len(score), np.nan))
    x, y = _standardised(score), _standardised(outcome)
    r = float(np.clip((x * y).mean(), -1, 1))
    return Association(r, x * y - r / 2 * (x**2 + y**2))


def difference(of: Association, to: Association) -> tuple[float, float]:
    """(difference of two correlations, its standard error)."""
    if np.isnan(of.value + to.value):
        return np.nan, np.nan
    error = np.std(of.influence - to.influence, ddof=1) / np.sqrt(len(of.influence))
    return of.value - to.value, float(error)


def p_value(difference: ArrayLike, standard_error: ArrayLike) -> Array:
    """Two-sided p-value of differences that are normal around 0."""
    gap, error = np.abs(np.asarray(difference)), np.asarray(standard_error)
    # Every instance adds the same to both: they are equal, or differ beyond doubt.
    certain = np.where(gap < 1e-12, 1.0, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(error < 1e-14, certain, 2 * norm.sf(gap / error))


def _is_varied(values: Floats) -> bool:
    return len(values) > 1 and bool(values.min() < values.max())


def _net_concordance(x: Integers, y: Integers) -> Floats:
    """Concordant minus discordant pairs of each instance, (n,)."""
    net = np.zeros(len(x), dtype=np.int64)
    order = np.argsort(x, kind="stable")
    net_concordance(order, x, y, net)
    net_concordance(order[::-1].copy(), x.max() - x, y.max() - y, net)
    return net.astype(np.float64)


def _standardised(values: Floats) -> Floats:
    # Scores near 1e-300 have squares of 0: bring them to a common size first.
    values = values / np.abs(values).max()
    centred = values - values.mean()
    return centred / np.sqrt((centred**2).mean())


BASELINES = {
    "candidate": ("HP",),
    "dataset": ("emotions", "scene", "yeast", "stare", "enron", "slashdot"),
    "classifier": ("ECC", "Indep", "CT"),
    "metric": ("exact",),
}
"""Baseline level of each factor: the first of these that occurs, else the first level. The paper's
are HP, emotions, ECC and exact match."""

FEATURE, FIT = "feature", "fit"
"""Factors of terms without levels: features of the data, and statistics of the fit."""

DATA_FEATURES = ("n_labels", "n_labelsets", "cardinality", "n_features")
TERM = ["factor", "baseline", "term"]
ORDINARY = ["estimate", "standard_error", "p_value"]
CLUSTERED = ["clustered_standard_error", "clustered_p_value", "variance_inflation"]


def effects(correlations: pd.DataFrame) -> pd.DataFrame:
    """Additive effects of candidate, data set and classifier on z = atanh(correlation).

    One ordinary least squares fit for each metric, on one row for each combination; several
    repeats of a combination are averaged first, because they are no independent observations.

    Returns
    -------
    pandas.DataFrame
        metric, factor, baseline (level of the comparison: HP, emotions, ECC, or the first
        level where these do not occur), term (TG, SE, CE, scene, ..., Indep, CT), estimate,
        standard_error, p_value. Terms of the factor "fit" are r_squared, adjusted_r_squared, n and
        rmse. No rows where no correlation is defined.
    """
    cells = fisher_cells(correlations)
    models = _fit_each(cells, "metric", (), ("candidate", "dataset", "classifier"))
    return models[["metric", *TERM, *ORDINARY]]


def robustness(correlations: pd.DataFrame, features: pd.DataFrame) -> pd.DataFrame:
    """Linear models of each candidate's z: features of the data, the classifier, the metric.

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
    """Mean correlation of each combination over the repeats with its z, where that is finite."""
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
    """Models for each level of a key, stacked; levels in the order of the cells."""
    baselines = {}
    for factor in factors if len(cells) else ():
        present = list(dict.fromkeys(cells[factor]))
        baselines[factor] = next((x for x in BASELINES[factor] if x in present), present[0])
    fits = [pd.DataFrame(columns=[key, *TERM, *ORDINARY, *CLUSTERED])]
    for key_level, part in cells.groupby(key, sort=False):
        columns = {(FEATURE, "", name): part[name].to_numpy(float) for name in features}
        for factor, baseline in baselines.items():
            for name in dict.fromkeys(part[factor]):
                if name != baseline:
                    columns[factor, baseline, name] = (part[factor] == name).to_numpy(float)
        fit = _fit_ols(part["z"].to_numpy(), columns, pd.factorize(part["dataset"])[0])
        fits.append(fit.assign(**{key: key_level}))
    return pd.concat(fits[len(fits) > 1 :], ignore_index=True)[fits[0].columns]


def _fit_ols(
    z: Floats, columns: dict[tuple[str, str, str], Floats], clusters: Array
) -> pd.DataFrame:
    """Terms and fit statistics of ordinary least squares, with ordinary and clustered errors."""
    design = np.column_stack([np.ones(len(z)), *columns.values()])
    kept = _independent_columns(design)
    X = design[:, kept]
    (n, k), n_clusters = X.shape, int(clusters.max()) + 1
    Q, R = np.linalg.qr(X)
    root = np.linalg.inv(R)
    inverse = root @ root.T  # of X.T @ X
    estimates = root @ (Q.T @ z)
    residuals = z - X @ estimates
    df_residual = n - k if n > k else np.nan
    variance = residuals @ residuals / df_residual
    # The sandwich over clusters, with the usual correction for their number.
    sums = np.zeros((n_clusters, k))
    np.add.at(sums, clusters, X * residuals[:, np.newaxis])
    scale = n_clusters / (n_clusters - 1) * (n - 1) / df_residual if n_clusters > 1 else np.nan
    clustered = np.sqrt((scale * np.diag(inverse @ sums.T @ sums @ inverse)).clip(0))
    errors = np.sqrt(variance * np.diag(inverse))
    with np.errstate(divide="ignore", invalid="ignore"):
        p_values = 2 * student.sf(np.abs(estimates / errors), df_residual)
        clustered_p = 2 * student.sf(np.abs(estimates / clustered), max(n_clusters - 1, 1))
    inflation = np.diag(inverse) * ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    numbers = np.column_stack([estimates, errors, p_values, clustered, clustered_p, inflation])
    table = np.full((design.shape[1], numbers.shape[1]), np.nan)
    table[kept] = numbers
    total = ((z - z.mean()) ** 2).sum()
    r_squared = 1 - residuals @ residuals / total if total > 0 else np.nan
    statistics = {
        "r_squared": r_squared,
        "adjusted_r_squared": 1 - (1 - r_squared) * (n - 1) / df_residual,
        "n": n,
        "rmse": np.sqrt(variance),
    }
    terms = pd.DataFrame(list(columns), columns=TERM)
    terms[[*ORDINARY, *CLUSTERED]] = table[1:]
    fit = pd.DataFrame({"term": list(statistics), "estimate": list(statistics.values())})
    return pd.concat([terms, fit.assign(factor=FIT, baseline="")], ignore_index=True)


def _independent_columns(design: Floats) -> list[int]:
    """Indices of the columns that are linearly independent of those before them."""
    # On a common scale, or feature counts in the thousands drown the others.
    scaled = design / np.maximum(np.linalg.norm(design, axis=0), 1e-300)
    kept: list[int] = []
    for j in range(design.shape[1]):
        if np.linalg.matrix_rank(scaled[:, [*kept, j]], tol=1e-9) == len(kept) + 1:
            kept.append(j)
    return kept


def optimal_decisions(scores: pd.DataFrame, settings: Settings | None = None) -> pd.DataFrame:
    """Gain of each metric's optimal decision over the mode, in every cell.

    Returns
    -------
    pandas.DataFrame
        metric, dataset, classifier, repeat, n, mode and best (mean accuracy of each decision), the
        gain, its standard_error, and gap: how far, at most, the mean expected accuracy of
        the decisions is below the best possible; 0 where they are known to be the best.
    """
    settings = settings or Settings()
    rows = []
    for metric in settings.metrics:
        counts = [f"best_{metric}_{name}" for name in COUNTS]
        with_best = scores.dropna(subset=counts) if {*counts} <= {*scores} else scores[:0]
        for cell, table in _cells(with_best) if len(with_best) else ():
            empty = settings.decision_empty
            mode, best = (f(metric, empty) for f in (table.accuracy, table.best_accuracy))
            gain, n = best - mode, len(table)
            error = np.std(gain, ddof=1) / np.sqrt(n) if n > 1 else np.nan
            gap = table.to_frame()[f"best_{metric}_gap"].mean()
            rows.append((metric, *cell, mode.mean(), best.mean(), gain.mean(), error, gap))
    columns = ["metric", *CELL, "n", "mode", "best", "gain", "standard_error", "gap"]
    return pd.DataFrame(rows, columns=columns)


ALL = -1
"""Value of `repeat` for models of the means over all repeats."""


class Analyses:
    """All analyses of a score table, each computed on first use.

    Parameters
    ----------
    scores
        The score table, as for `correlate`.
    features
        Features of the data sets in each repeat, as for `robustness`, with `repeat` and `n_train`.
    settings
        A plan, or the settings alone; None means the defaults.
    replicates
        Result of `mixture_replicates`, if computed before; None to compute it.
    n_jobs
        Processes that compute the replicates.
    """

    def __init__(
        self,
        scores: pd.DataFrame,
        features: pd.DataFrame,
        settings: Settings | None = None,
        *,
        replicates: pd.DataFrame | None = None,
        n_jobs: int = 1,
    ) -> None:
        self.scores, self.features = scores, features
        self.settings = settings or Settings()
        self._replicates, self._n_jobs = replicates, n_jobs

    @cached_property
    def replicates(self) -> pd.DataFrame:
        """Analysis 5: every split; no rows where the score table has too few of them to halve."""
        if self._replicates is not None:
            return self._replicates
        return mixture_replicates(self.scores, self.settings, n_jobs=self._n_jobs)

    @cached_property
    def intervals(self) -> pd.DataFrame:
        """The interval tables of Analysis 5, see `interval_table`."""
        return interval_table(self.replicates)

    @cached_property
    def correlations(self) -> pd.DataFrame:
        """Analyses 0 and 3: association ("kendall" or "pearson") and the columns of `correlate`."""
        parts = []
        for association in get_args(AssociationName):
            frame = correlate(self.scores, association, self.settings)
            frame.insert(0, "association", association)
            parts.append(frame)
        return pd.concat(parts, ignore_index=True)

    @cached_property
    def models(self) -> pd.DataFrame:
        """Analyses 1 to 4, of the means over repeats (`repeat` -1) and of each repeat.

        association, analysis ("effects" or "robustness"), repeat, of (the metric or candidate), and
        the columns of `robustness`.
        """
        parts = []
        for association, correlations in self.correlations.groupby("association", sort=False):
            for repeat in (ALL, *correlations["repeat"].unique()):
                part, features = (
                    frame if repeat == ALL else frame[frame["repeat"] == repeat]
                    for frame in (correlations, self.features)
                )
                made = {"effects": effects(part), "robustness": robustness(part, features)}
                for analysis, fits in made.items():
                    fits = fits.rename(columns={"metric": "of", "candidate": "of"})
                    parts.append(
                        fits.assign(association=association, analysis=analysis, repeat=repeat)
                    )
        models = pd.concat([part for part in parts if len(part)] or parts[-1:], ignore_index=True)
        first = ["association", "analysis", "repeat"]
        return models[[*first, *models.columns.drop(first)]]

    @cached_property
    def datasets(self) -> pd.DataFrame:
        """Features of the data sets with `n_test` and `n_samples`."""
        keys = ["dataset", "repeat"]
        cells = self.scores.groupby([*keys, "classifier"], sort=False).size()
        tested = cells.groupby(level=keys, sort=False).max().rename("n_test").reset_index()
        described = self.features.merge(tested, on=keys, how="left")
        return described.assign(n_samples=described["n_test"] + described["n_train"])

    @cached_property
    def accuracy(self) -> pd.DataFrame:
        """Mean accuracy of the mode: metric, dataset, classifier, actual and expected."""
        table, settings = ScoreTable(self.scores), self.settings
        parts = []
        for metric in settings.metrics:
            values = self.scores[["dataset", "classifier"]].assign(
                metric=metric,
                actual=row_accuracy(table, metric, settings.empty),
                expected=table.expected(metric, settings.decision_empty),
            )
            values = values.dropna(subset=["actual"])
            parts.append(values.groupby(["metric", "dataset", "classifier"], sort=False).mean())
        return pd.concat(parts).reset_index()
