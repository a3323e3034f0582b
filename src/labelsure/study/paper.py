"""The paper's numbers beside ours, how far they agree, and a verdict on each conclusion.

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

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import pearsonr, spearmanr
from scipy.stats import t as student

from labelsure._runtime.typing import AnyPath
from labelsure.distributions.candidates import CANDIDATES
from labelsure.errors import unknown_name
from labelsure.study.analyses import FIT, Analyses, RepeatedAnalyses, describe_datasets
from labelsure.study.conclusions import (
    FAILS,
    NO_EVIDENCE_RULE,
    SIGN_RULE,
    VERDICTS,
    Claim,
    Conclusion,
    draw_conclusions,
)
from labelsure.study.linear_models import averaged, effects, has_models
from labelsure.study.run import open_run
from labelsure.study.tables import PrintedTable, flatten_settings

__all__ = [
    "Claim",
    "Conclusion",
    "PaperCheck",
    "agreement",
    "check_against_paper",
    "compare_numbers",
    "compare_with_paper",
    "draw_conclusions",
    "effects_agreement",
    "own_agreement",
    "published_table",
    "trivial_agreement",
    "trivial_effects",
]

TABLES = (
    "correlations",
    "effects",
    "effects_fit",
    "robustness",
    "robustness_fit",
    "intervals",
    "datasets",
)
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
    source = files("labelsure.study") / "published" / f"{table}.csv"
    with source.open(encoding="utf-8") as stream:
        frame = pd.read_csv(stream)
    texts = [name for name in ("arrows", "stars") if name in frame.columns]
    return frame.fillna(dict.fromkeys(texts, ""))


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


RULE_NAMES = {SIGN_RULE: "sign", NO_EVIDENCE_RULE: "no evidence"}
SIGNS = {1: "above 0", -1: "below 0", 0: "consistent with 0"}

CELLS = ["metric", "dataset", "classifier", "candidate"]


@dataclass(frozen=True)
class PaperCheck:
    """What comparing a study with the paper found.

    Parameters
    ----------
    conclusions
        With verdicts, those that do not hold first.
    summaries
        measure, ours, least and most (of single repeats, as the paper had one), trivial (what
        a guess without data reaches) and own (what two of our repeats reach with each other).
    numbers
        Every published number beside ours, see `compare_numbers`.
    settings
        What the study was made with.
    """

    conclusions: list[Conclusion]
    summaries: pd.DataFrame
    numbers: pd.DataFrame
    settings: dict[str, str]

    @property
    def misses(self) -> list[Conclusion]:
        """The conclusions of the paper that do not hold here."""
        return [c for c in self.conclusions if c.verdict == FAILS]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON; what is missing or infinite is None."""
        conclusions = [
            {
                "name": conclusion.name,
                "statement": conclusion.statement,
                "verdict": conclusion.verdict,
                "rule": conclusion.rule,
                "claims": [asdict(claim) for claim in conclusion.claims],
            }
            for conclusion in self.conclusions
        ]
        found = {
            "settings": self.settings,
            "misses": [conclusion.name for conclusion in self.misses],
            "conclusions": conclusions,
            "summaries": self.summaries.to_dict("records"),
            "numbers": self.numbers.to_dict("records"),
        }
        return _as_json(found)

    def to_markdown(self) -> str:
        """Return the comparison as a page: conclusions, summaries, numbers; misses first."""
        parts = ["# Compared with the paper", ""]
        counts = Counter(c.verdict for c in self.conclusions)
        verdicts = (f"{verdict}: {counts[verdict]}" for verdict in VERDICTS)
        parts += [f"{len(self.conclusions)} conclusions. {'; '.join(verdicts).capitalize()}.", ""]
        parts += ["Settings: " + "; ".join(f"{k} {v}" for k, v in self.settings.items()) + ".", ""]
        parts += [table.to_markdown() for table in self.tables()]
        return "\n".join(parts)

    def tables(self) -> list[PrintedTable]:
        """Return the comparison as tables: conclusions, summaries, numbers; misses first."""
        numbers = [
            numbers_table(title, self.numbers[self.numbers["table"] == name])
            for name, title in TITLES.items()
        ]
        return [
            conclusions_table(self.conclusions),
            claims_table(self.conclusions),
            summaries_table(self.summaries),
            *numbers,
        ]


def check_against_paper(run_dir: AnyPath, *, n_jobs: int | None = None) -> PaperCheck:
    """Compare a finished study with the paper.

    Parameters
    ----------
    run_dir
        Its folder, with scores.parquet, features.parquet and plan.toml.
    n_jobs
        Processes for the mixture, unless its fits are in the folder; None means all cores.
    """
    run = open_run(run_dir)
    return compare_with_paper(run.analyses(n_jobs), flatten_settings(run.plan))


def compare_with_paper(analyses: Analyses, settings: Mapping[str, str] | None = None) -> PaperCheck:
    """Compare analyses with the paper, whatever they were made from.

    Parameters
    ----------
    analyses
        Of `labelsure.study.analyses.run_analyses`, or of a run.
    settings
        What to print as settings.
    """
    repeated = RepeatedAnalyses(analyses)
    return PaperCheck(
        draw_conclusions(repeated),
        _summaries(analyses),
        compare_numbers(repeated),
        dict(settings or {}),
    )


def _summaries(analyses: Analyses) -> pd.DataFrame:
    correlations = analyses.kendall.correlations
    # Where a study has only some of the paper's cells, the guess is measured on those, too.
    reference = published_table("correlations").merge(correlations[CELLS].drop_duplicates())
    if reference.empty:
        reference = published_table("correlations")
    rows = _compared(
        lambda part: agreement(part, reference), correlations, trivial_agreement(reference)
    )
    paper = published_table("effects").query("association == 'pearson'")
    of_effects = _compared(
        lambda part: effects_agreement(effects_if_any(part), paper),
        analyses.pearson.correlations,
        trivial_effects(paper),
    )
    rows += [{**row, "measure": f"Pearson: {row['measure']}"} for row in of_effects]
    return pd.DataFrame(rows)


def _compared(
    compare: Callable[[pd.DataFrame], dict[str, float]],
    correlations: pd.DataFrame,
    trivial: dict[str, float],
) -> list[dict[str, Any]]:
    """Return what a comparison gives for all repeats together, and for each of them alone."""
    ours, own = compare(correlations), own_agreement(correlations)
    single = pd.DataFrame([compare(part) for _, part in correlations.groupby("repeat")])
    return [
        {
            "measure": title,
            "ours": ours[name],
            "least": single[name].min(),
            "most": single[name].max(),
            "trivial": trivial[name],
            "own": own[name],
        }
        for name, title in MEASURES.items()
        if name in ours
    ]


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _as_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(entry) for entry in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value


def _shown(value: Any) -> str:
    return "NA" if pd.isna(value) or np.isinf(value) else f"{value:.4g}"


def _texts(rows: list[list[str]], columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns, dtype=str)


def _range(low: Any, high: Any) -> str:
    return f"{_shown(low)} to {_shown(high)}"


def conclusions_table(conclusions: Sequence[Conclusion]) -> PrintedTable:
    """Return verdicts, statements and rules."""
    rows = [[c.verdict, c.statement, RULE_NAMES[c.rule], c.name] for c in conclusions]
    rules = "; ".join(f"{name}: {rule}" for rule, name in RULE_NAMES.items())
    note = (
        f"Rules. {rules}. Intervals allow for the data that repeats of a split share; with one "
        "repeat they are the regression's own. Not applicable: the study has data "
        "sets that are not the paper's, or none of the numbers."
    )
    columns = ["verdict", "the paper says", "rule", "name"]
    return PrintedTable("conclusions", "Conclusions", _texts(rows, columns), note, n_text=4)


def claims_table(conclusions: Sequence[Conclusion]) -> PrintedTable:
    """Return every number that a verdict rests on."""
    rows = [
        [
            conclusion.name,
            claim.text,
            SIGNS[claim.sign],
            *(_shown(value) for value in (claim.estimate, claim.low, claim.high)),
            "" if np.isnan(claim.p_value) else f"{claim.p_value:.3f}",
        ]
        for conclusion in conclusions
        for claim in conclusion.claims
    ]
    note = (
        "Low and high: 95% interval over repeats, which decides. p: the paper's own test, the "
        "regression over all cells, here of the means over repeats. The interval knows how splits "
        "of the same data differ; the regression, how data sets and classifiers do, which is more: "
        "what stands out by the interval need not by the regression."
    )
    columns = ["conclusion", "number", "should be", "mean", "low", "high", "p"]
    frame = _texts(rows, columns)
    return PrintedTable("claims", "The numbers behind them", frame, note, n_text=3)


def summaries_table(summaries: pd.DataFrame) -> PrintedTable:
    """Return how far a study agrees with the paper, beside what is easily reached."""
    rows = [
        [
            str(row.measure),
            _shown(row.ours),
            _range(row.least, row.most),
            _shown(row.trivial),
            _shown(row.own),
        ]
        for row in summaries.itertuples(index=False)
    ]
    note = (
        "Ours: means over repeats. One repeat: the least and the most of them. Trivial: each "
        "metric's published median for every correlation; TG lower and all others higher than HP, "
        "always; no effect at all. Two of our repeats: mean over all pairs."
    )
    columns = ["", "ours with the paper", "one repeat", "trivial", "two of our repeats"]
    return PrintedTable("summaries", "Agreement with the paper", _texts(rows, columns), note)


_JUDGED: dict[Any, str] = {True: "miss", False: "within"}


def numbers_table(title: str, numbers: pd.DataFrame) -> PrintedTable:
    """Return published numbers beside ours, misses first."""
    apart = (numbers["difference"] / (numbers["high"] - numbers["low"])).abs()
    order = numbers.assign(apart=apart, first=numbers["miss"].fillna(False).astype(bool))
    order = order.sort_values(["first", "apart"], ascending=False, kind="stable")
    rows = [
        [
            f"{row.row}, {row.quantity}",
            *(_shown(v) for v in (row.published, row.ours, row.spread, row.difference)),
            _JUDGED.get(row.miss, ""),
        ]
        for row in order.itertuples(index=False)
    ]
    judged = numbers["miss"].dropna()
    note = "One repeat only: there is no spread to judge by."
    if len(judged):
        note = (
            f"{int(judged.sum())} of {len(judged)} outside the 95% prediction interval for one "
            "more split, listed first; blank where there is no spread to judge by."
        )
    columns = ["", "published", "ours", "spread", "difference", "verdict"]
    return PrintedTable("numbers", title, _texts(rows, columns), note)
