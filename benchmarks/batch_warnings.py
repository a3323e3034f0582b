"""When `estimate` warns: thresholds of the shift test, on sets that chose them and on others."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.batch_draws import CHOSEN_ON

LARGE_ERROR = 0.05
THRESHOLDS = ((0.5, 0.05), (0.5, 0.01), (0.55, 0.01), (0.6, 0.05), (0.6, 0.01), (0.65, 0.01))
"""AUC and p-value, between which a warning is chosen."""


def count_warnings(found: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each pair of thresholds and group of sets: how often a warning comes.

    Parameters
    ----------
    found
        A row for each batch and method, with its error; those of the plain estimate are looked at.
    """
    ours = found[found["method"] == "ours"]
    is_chosen = ours["set"].isin(CHOSEN_ON)
    rows = []
    for auc, p_value in THRESHOLDS:
        warned = (ours["auc"] >= auc) & (ours["p_value"] < p_value)
        for sets, of_group in (("chosen on", is_chosen), ("confirmed on", ~is_chosen)):
            row: dict[str, object] = {"AUC": auc, "p": p_value, "sets": sets}
            for what, looked_at in (
                ("no shift", ours["kind"] == "none"),
                ("off", (ours["kind"] != "none") & (ours["error"] > LARGE_ERROR)),
                ("shifted", (ours["kind"] != "none") & (ours["error"] <= LARGE_ERROR)),
            ):
                for size in sorted(ours["size"].unique()):
                    mine = warned[of_group & looked_at & (ours["size"] == size)]
                    row[f"{what}, {size:,}"] = mine.mean() if len(mine) else np.nan
            rows.append(row)
    return pd.DataFrame(rows)
