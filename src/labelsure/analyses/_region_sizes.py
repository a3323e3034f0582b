"""Regions of a study: how often they hold the truth, and how large they are."""

from __future__ import annotations

import numpy as np
import pandas as pd

from labelsure.analyses._correlations import check_scores
from labelsure.score_columns import CELL, REGION_COLUMNS

COLUMNS = ["covered", "agrees", "certain", "possible", "share_open", "labelsets"]


def region_sizes(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the coverage and the size of the regions of coverage 0.9, in every cell.

    Parameters
    ----------
    scores
        The score table with columns such as region_covers; rows without them are left out.

    Returns
    -------
    pandas.DataFrame
        dataset, classifier, repeat, n, and means over the instances: covered (the truth is in the
        region), agrees (it has all certain labels and none but possible ones), certain and possible
        (numbers of labels), share_open (of all labels those that are possible and not certain), and
        labelsets (the median of their number, missing beyond 14 labels).
    """
    scores = check_scores(scores)
    rows = []
    needed = [name for name in REGION_COLUMNS if name != "region_labelsets"]
    if set(needed) <= set(scores.columns):
        for cell, part in scores.dropna(subset=needed).groupby(list(CELL), sort=False):
            is_open = (part["region_possible"] - part["region_certain"]) / part["n_labels"]
            counted = part.get("region_labelsets", pd.Series(np.nan, part.index))
            means = [part[f"region_{name}"].mean() for name in _MEANS]
            rows.append((*cell, len(part), *means, is_open.mean(), counted.median()))
    return pd.DataFrame(rows, columns=[*CELL, "n", *COLUMNS])


_MEANS = ("covers", "agrees", "certain", "possible")
