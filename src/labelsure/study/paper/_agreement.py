"""How far two sets of correlations agree, and how far a guess without data does."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
from scipy.stats import pearsonr, spearmanr

from labelsure.distributions.candidates import CANDIDATES
from labelsure.study.analyses._linear_models import averaged, effects, has_models

KEYS = ["metric", "dataset", "classifier", "candidate"]
OVERLAP = 1.96
"""Standard errors on each side of an estimate in its 95% interval."""

MEASURES = {
    "spearman": "Spearman correlation",
    "pearson": "Pearson correlation",
    "mean_absolute_difference": "mean absolute difference",
    "direction": "share of directions against HP",
    "marked_direction": "the same, where the reference has two arrows or more",
    "effect_signs": "share of candidate effects with the same sign",
    "effect_overlap": "share of effects with overlapping 95% intervals",
}


def agreement(ours: pd.DataFrame, reference: pd.DataFrame) -> dict[str, float]:
    """Return how far correlations agree with a reference, cell by cell.

    Parameters
    ----------
    ours
        metric, dataset, classifier, candidate, correlation; repeats are averaged.
    reference
        The same with `arrows`, one row for each cell: the published table, or one repeat.

    Returns
    -------
    dict
        The `MEASURES`, and `n`, the cells that both have. NaN where nothing can be compared.
    """
    both = (
        averaged(ours)
        .merge(reference, on=KEYS, suffixes=("", "_reference"))
        .dropna(subset=["correlation", "correlation_reference"])
    )
    if len(both) < 2:
        return {"n": float(len(both)), **dict.fromkeys(MEASURES, np.nan)}
    x, y = both["correlation"].to_numpy(), both["correlation_reference"].to_numpy()
    return {
        "n": float(len(both)),
        **_values(x, y),
        **_directions(_above_baseline(both)),
        **effects_agreement(
            *(effects_if_any(both[KEYS].assign(correlation=values)) for values in (x, y))
        ),
    }


def trivial_agreement(reference: pd.DataFrame) -> dict[str, float]:
    """Return how far a guess without data agrees.

    It is each metric's median, the expected signs, and effects of zero.

    Parameters
    ----------
    reference
        As for `agreement`. The guess for an effect is 0 with the reference's standard error.
    """
    y = reference["correlation"].to_numpy()
    median = reference.groupby("metric")["correlation"].transform("median").to_numpy()
    known = reference[reference["candidate"].isin([*_expected_signs(), "HP"])]
    gaps = _above_baseline(known.assign(correlation_reference=known["correlation"]))
    gaps["gap"] = gaps["candidate"].map(_expected_signs())
    return {
        "n": float(len(reference)),
        **_values(median, y),
        **_directions(gaps),
        **trivial_effects(effects(reference)),
    }


def trivial_effects(reference: pd.DataFrame) -> dict[str, float]:
    """Return effect_signs of the expected signs, and effect_overlap of no effect at all.

    Parameters
    ----------
    reference
        metric, term, estimate, standard_error; the guess has the same standard errors.
    """
    guessed = reference.assign(estimate=reference["term"].map(_expected_signs()))
    nothing = reference.assign(estimate=0.0)
    return {
        "effect_signs": effects_agreement(guessed, reference)["effect_signs"],
        "effect_overlap": effects_agreement(nothing, reference)["effect_overlap"],
    }


def own_agreement(correlations: pd.DataFrame) -> dict[str, float]:
    """Return how far two repeats of one study agree with each other, on average over the pairs.

    Parameters
    ----------
    correlations
        Of `kendall`, with several repeats; with one, every measure is NaN.
    """
    repeats = dict(iter(correlations.groupby("repeat")))
    pairs = [
        agreement(repeats[one], repeats[other][[*KEYS, "correlation", "arrows"]])
        for one, other in permutations(repeats, 2)
    ]
    if not pairs:
        return dict.fromkeys(["n", *MEASURES], np.nan)
    return {name: float(np.mean([pair[name] for pair in pairs])) for name in pairs[0]}


def effects_agreement(ours: pd.DataFrame, reference: pd.DataFrame) -> dict[str, float]:
    """Return effect_signs and effect_overlap of two tables of effects.

    Parameters
    ----------
    ours, reference
        metric, term, estimate, standard_error. A reference printed as 0.000 has no sign.
    """
    both = ours.merge(reference, on=["metric", "term"], suffixes=("", "_reference"))
    both = both.dropna(subset=["estimate", "estimate_reference"])
    signed = both[both["term"].isin(_expected_signs()) & (both["estimate_reference"] != 0)]
    same = np.sign(signed["estimate"]) == np.sign(signed["estimate_reference"])
    apart = (both["estimate"] - both["estimate_reference"]).abs()
    reach = OVERLAP * (both["standard_error"] + both["standard_error_reference"])
    return {
        "effect_signs": float(same.mean()) if len(same) else np.nan,
        "effect_overlap": float((apart <= reach).mean()) if len(both) else np.nan,
    }


def effects_if_any(correlations: pd.DataFrame) -> pd.DataFrame:
    """Return `effects`, or no rows where no correlation has a finite z.

    Parameters
    ----------
    correlations
        As for `effects`.
    """
    if has_models(correlations):
        return effects(correlations)
    return pd.DataFrame(columns=["metric", "term", "estimate", "standard_error", "p_value"])


def _expected_signs() -> dict[str, int]:
    """Return the trivial guess: TG is always lower than HP, the others are always higher."""
    return {name: candidate.sign for name, candidate in CANDIDATES.items() if candidate.sign}


def _values(x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    vary = np.ptp(x) > 0 and np.ptp(y) > 0
    return {
        "spearman": float(spearmanr(x, y).statistic) if vary else np.nan,
        "pearson": float(pearsonr(x, y).statistic) if vary else np.nan,
        "mean_absolute_difference": float(np.abs(x - y).mean()),
    }


def _above_baseline(both: pd.DataFrame) -> pd.DataFrame:
    """Return how far each candidate is above HP in its cell, ours and the reference's."""
    cell = KEYS[:-1]
    baseline = both.loc[both["candidate"] == "HP", [*cell, "correlation", "correlation_reference"]]
    others = both[both["candidate"] != "HP"].merge(baseline, on=cell, suffixes=("", "_HP"))
    return pd.DataFrame(
        {
            "candidate": others["candidate"],
            "gap": others["correlation"] - others["correlation_HP"],
            "reference": others["correlation_reference"] - others["correlation_reference_HP"],
            "arrows": others["arrows"],
        }
    )


def _directions(gaps: pd.DataFrame) -> dict[str, float]:
    same = np.sign(gaps["gap"]) == np.sign(gaps["reference"])
    marked = gaps["arrows"].str.len() >= 2
    return {
        "direction": float(same.mean()) if len(same) else np.nan,
        "marked_direction": float(same[marked].mean()) if marked.any() else np.nan,
    }
