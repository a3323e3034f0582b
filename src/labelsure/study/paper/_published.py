"""Every number that the paper prints, beside ours and their spread over repeats.

The paper's tables have the shape of the frames that our analyses return:

| table | one row for each |
|---|---|
| correlations | metric, dataset, classifier, candidate: Kendall's tau with its arrows |
| effects, effects_fit | association, metric (and term): Analyses 1 and 3 |
| robustness, robustness_fit | association, candidate (and term): Analyses 2 and 4 |
| intervals | metric, interval of estimates, model: Analysis 5 |
| datasets | data set |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib.resources import files

import numpy as np
import pandas as pd
from scipy.stats import t as student

from labelsure.errors import unknown_name
from labelsure.study.analyses._all_analyses import Analyses, describe_datasets
from labelsure.study.analyses._linear_models import effects, fit_statistics, has_models, robustness

TABLES = (
    "correlations",
    "effects",
    "effects_fit",
    "robustness",
    "robustness_fit",
    "intervals",
    "datasets",
)
FIT = ("r_squared", "adjusted_r_squared", "n", "rmse")
TITLES = {
    "correlations": "Kendall correlations (Analysis 0)",
    "kendall effects": "Effects on Kendall's correlation (Analysis 1)",
    "kendall robustness": "Robustness of Kendall's correlation (Analysis 2)",
    "pearson effects": "Effects on Pearson's correlation (Analysis 3)",
    "pearson robustness": "Robustness of Pearson's correlation (Analysis 4)",
    "intervals": "Estimated and actual accuracy (Analysis 5)",
    "datasets": "Data sets",
}
ROUNDING = {"datasets": 0.0051}
DEFAULT_ROUNDING = 0.00051
"""Half of the last digit that the paper prints, and a little."""


def published_table(table: str) -> pd.DataFrame:
    """Return a table of numbers that the paper prints.

    Parameters
    ----------
    table
        "correlations", "effects", "effects_fit", "robustness", "robustness_fit", "intervals" or
        "datasets".

    Examples
    --------
    >>> published_table("datasets")[["dataset", "n_samples", "n_labels"]].head(2)
        dataset  n_samples  n_labels
    0  emotions        593         6
    1     scene       2407         6
    """
    if table not in TABLES:
        raise unknown_name("table of the paper", table, TABLES)
    source = files("labelsure.study.paper") / "published" / f"{table}.csv"
    with source.open(encoding="utf-8") as stream:
        frame = pd.read_csv(stream)
    texts = [name for name in ("arrows", "stars") if name in frame.columns]
    return frame.fillna(dict.fromkeys(texts, ""))


class RepeatedAnalyses:
    """The analyses of each repeat by itself.

    Parameters
    ----------
    analyses
        Of all repeats together.
    """

    def __init__(self, analyses: Analyses) -> None:
        self.analyses = analyses
        self.repeats = sorted(analyses.kendall.correlations["repeat"].unique())

    @cached_property
    def effects(self) -> pd.DataFrame:
        """association, repeat, metric, term, estimate, standard_error, p_value."""
        return self._stacked("effects", fits=False)

    @cached_property
    def effects_fit(self) -> pd.DataFrame:
        """association, repeat, metric and the fit statistics."""
        return self._stacked("effects", fits=True)

    @cached_property
    def robustness(self) -> pd.DataFrame:
        """association, repeat, candidate, term, estimate, standard_error, p_value."""
        return self._stacked("robustness", fits=False)

    @cached_property
    def robustness_fit(self) -> pd.DataFrame:
        """association, repeat, candidate and the fit statistics."""
        return self._stacked("robustness", fits=True)

    @cached_property
    def _models(self) -> dict[tuple[str, str, int], pd.DataFrame]:
        found: dict[tuple[str, str, int], pd.DataFrame] = {}
        for association in ("kendall", "pearson"):
            correlations = getattr(self.analyses, association).correlations
            for repeat in self.repeats:
                part = correlations[correlations["repeat"] == repeat]
                if has_models(part):
                    found[association, "effects", repeat] = effects(part)
                    features = self._features(repeat)
                    found[association, "robustness", repeat] = robustness(part, features)
        return found

    def _features(self, repeat: int) -> pd.DataFrame:
        features = self.analyses.features
        if "repeat" not in features.columns or repeat not in set(features["repeat"]):
            return features
        return features[features["repeat"] == repeat]

    def _stacked(self, kind: str, *, fits: bool) -> pd.DataFrame:
        parts = [
            (fit_statistics(model) if fits else model).assign(association=association, repeat=r)
            for (association, which, r), model in self._models.items()
            if which == kind
        ]
        if not parts:
            of = {"effects": "metric", "robustness": "candidate"}[kind]
            numbers = FIT if fits else ("term", "estimate", "standard_error", "p_value")
            return pd.DataFrame(columns=["association", "repeat", of, *numbers])
        return pd.concat(parts, ignore_index=True)


def compare_numbers(repeated: RepeatedAnalyses) -> pd.DataFrame:
    """Return every published number beside ours.

    Parameters
    ----------
    repeated
        The analyses, repeat by repeat.

    Returns
    -------
    pandas.DataFrame
        table, row, quantity, published, ours (mean over the repeats), spread (their standard
        deviation), n_repeats, difference (ours - published), low and high (95% prediction interval
        for one more split of the same data), and `miss`: published lies outside of it by more than
        its rounding. Without a second repeat there is no interval, and `miss` is missing.
    """
    ours = pd.concat(_ours(repeated), ignore_index=True)
    keys = ["table", "row", "quantity"]
    found = ours.groupby(keys, sort=False)["value"].agg(
        ours="mean", spread="std", n_repeats="count"
    )
    paper = pd.concat(_paper(), ignore_index=True).rename(columns={"value": "published"})
    both = paper.merge(found.reset_index(), on=keys, how="left")
    both["n_repeats"] = both["n_repeats"].fillna(0).astype(int)
    return _judged(both)


def _judged(both: pd.DataFrame) -> pd.DataFrame:
    n = both["n_repeats"]
    quantile = student.ppf(0.975, np.maximum(n - 1, 1))
    reach = quantile * both["spread"] * np.sqrt(1 + 1 / np.maximum(n, 1))
    rounding = both["table"].map(ROUNDING).fillna(DEFAULT_ROUNDING)
    difference = both["ours"] - both["published"]
    miss = (difference.abs() > reach + rounding).astype("boolean")
    return both.assign(
        difference=difference,
        low=both["ours"] - reach,
        high=both["ours"] + reach,
        miss=miss.mask(reach.isna() | both["published"].isna()),
    )


def _long(
    frame: pd.DataFrame, table: str, rows: Iterable[str], quantities: Iterable[str]
) -> pd.DataFrame:
    """Return one row for each number, named by the columns `rows` and by its quantity."""
    names = frame[list(rows)].astype(str).to_numpy()
    label = [" / ".join(parts) for parts in names]
    repeat = frame["repeat"] if "repeat" in frame.columns else 0
    parts = [
        pd.DataFrame(
            {
                "table": table,
                "row": label,
                "quantity": quantity,
                "repeat": repeat,
                "value": frame[quantity].astype(float),
            }
        )
        for quantity in quantities
    ]
    return pd.concat(parts, ignore_index=True)


def _ours(repeated: RepeatedAnalyses) -> Iterator[pd.DataFrame]:
    analyses = repeated.analyses
    correlations = analyses.kendall.correlations
    cells = ["metric", "dataset", "classifier", "candidate"]
    yield _long(correlations, "correlations", cells, ["correlation"])
    yield from _linear_models(
        repeated.effects, repeated.effects_fit, repeated.robustness, repeated.robustness_fit
    )
    if len(analyses.replicates):
        yield _intervals(analyses.intervals)
    yield _long(describe_datasets(analyses), "datasets", ["dataset"], _DATASET_COLUMNS)


def _paper() -> Iterator[pd.DataFrame]:
    cells = ["metric", "dataset", "classifier", "candidate"]
    yield _long(published_table("correlations"), "correlations", cells, ["correlation"])
    names = ("effects", "effects_fit", "robustness", "robustness_fit")
    yield from _linear_models(*(published_table(name) for name in names))
    yield _intervals(published_table("intervals"))
    yield _long(published_table("datasets"), "datasets", ["dataset"], _DATASET_COLUMNS)


def _linear_models(
    effects: pd.DataFrame,
    effects_fit: pd.DataFrame,
    robustness: pd.DataFrame,
    robustness_fit: pd.DataFrame,
) -> Iterator[pd.DataFrame]:
    numbers = ["estimate", "standard_error"]
    for association in ("kendall", "pearson"):
        for kind, key, terms, fit in (
            ("effects", "metric", effects, effects_fit),
            ("robustness", "candidate", robustness, robustness_fit),
        ):
            table = f"{association} {kind}"
            yield _long(terms[terms["association"] == association], table, [key, "term"], numbers)
            yield _long(fit[fit["association"] == association], table, [key], FIT)


def _intervals(intervals: pd.DataFrame) -> pd.DataFrame:
    named = intervals.assign(
        interval=[
            f"({low:g}, {high:g}]"
            for low, high in zip(
                intervals["predicted_low"], intervals["predicted_high"], strict=True
            )
        ]
    )
    return _long(named, "intervals", ["metric", "interval", "model"], ["low", "high"])


_DATASET_COLUMNS = ("n_samples", "n_labels", "n_features", "cardinality")
