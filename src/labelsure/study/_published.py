"""The paper's numbers, in the shape of the frames that our analyses return.

| table | one row for each |
|---|---|
| correlations | metric, dataset, classifier, candidate: Kendall's tau with its arrows |
| effects, effects_fit | association, metric (and term): Analyses 1 and 3 |
| robustness, robustness_fit | association, candidate (and term): Analyses 2 and 4 |
| intervals | metric, interval of estimates, model: Analysis 5 |
| datasets | data set |
"""

from __future__ import annotations

from importlib.resources import files

import pandas as pd

from labelsure.errors import unknown_name

TABLES = (
    "correlations",
    "effects",
    "effects_fit",
    "robustness",
    "robustness_fit",
    "intervals",
    "datasets",
)


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
    source = files("labelsure.study") / "published" / f"{table}.csv"
    with source.open(encoding="utf-8") as stream:
        frame = pd.read_csv(stream)
    texts = [name for name in ("arrows", "stars") if name in frame.columns]
    return frame.fillna(dict.fromkeys(texts, ""))
