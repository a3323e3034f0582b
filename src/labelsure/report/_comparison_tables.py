"""Tables of a comparison with the paper: one study's, and several beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from labelsure.report._table import Table
from labelsure.study import NO_EVIDENCE_RULE, SIGN_RULE, Conclusion

RULES = {SIGN_RULE: "sign", NO_EVIDENCE_RULE: "no evidence"}
SIGNS = {1: "above 0", -1: "below 0", 0: "not told from 0"}


def _shown(value: Any) -> str:
    return "NA" if pd.isna(value) or np.isinf(value) else f"{value:.4g}"


def _range(low: Any, high: Any) -> str:
    return f"{_shown(low)} to {_shown(high)}"


def conclusions_table(conclusions: Sequence[Conclusion]) -> Table:
    """Return verdicts, statements and rules."""
    rows = [[c.verdict, c.statement, RULES[c.rule], c.name] for c in conclusions]
    rules = "; ".join(f"{name}: {rule}" for rule, name in RULES.items())
    note = (
        f"Rules. {rules}. Intervals allow for the data that repeats of a split share; with one "
        "repeat they are the regression's own."
    )
    columns = ["verdict", "the paper says", "rule", "name"]
    return Table("conclusions", "Conclusions", columns, rows, note, n_text=4)


def claims_table(conclusions: Sequence[Conclusion]) -> Table:
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
    return Table("claims", "The numbers behind them", columns, rows, note, n_text=3)


def summaries_table(summaries: pd.DataFrame) -> Table:
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
    return Table("summaries", "Agreement with the paper", columns, rows, note)


_JUDGED: dict[Any, str] = {True: "miss", False: "within"}


def numbers_table(title: str, numbers: pd.DataFrame) -> Table:
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
    columns = ["", "published", "ours", "spread", "difference", ""]
    return Table("numbers", title, columns, rows, note)


def verdicts_side_by_side(conclusions: Mapping[str, Sequence[Conclusion]]) -> Table:
    """Return the verdicts of several studies, by name."""
    statements = {c.name: c.statement for drawn in conclusions.values() for c in drawn}
    verdicts = [{c.name: c.verdict for c in drawn} for drawn in conclusions.values()]
    rows = [
        [statement, *(found.get(key, "") for found in verdicts)]
        for key, statement in statements.items()
    ]
    return Table("conclusions", "Conclusions of the paper", ["", *conclusions], rows)


def summaries_side_by_side(summaries: Mapping[str, pd.DataFrame]) -> Table:
    """Return the agreement of several studies with the paper, by name."""
    columns = [""]
    for name in summaries:
        columns += [name, f"{name}: one repeat", f"{name}: own repeats"]
    tables = [table.set_index("measure") for table in summaries.values()]
    rows = []
    for measure in tables[0].index:
        row = [measure]
        for told in (table.loc[measure] for table in tables):
            row += [_shown(told["ours"]), _range(told["least"], told["most"]), _shown(told["own"])]
        rows.append([*row, _shown(tables[0].loc[measure, "trivial"])])
    return Table("summaries", "Agreement with the paper", [*columns, "trivial"], rows)


def claims_side_by_side(conclusions: Mapping[str, Sequence[Conclusion]]) -> Table:
    """Return the numbers behind the verdicts of several studies, by name."""
    numbers: dict[tuple[str, str], dict[str, str]] = {}
    for name, drawn in conclusions.items():
        for conclusion in drawn:
            for claim in conclusion.claims:
                shown = f"{_shown(claim.estimate)} [{_shown(claim.low)}, {_shown(claim.high)}]"
                numbers.setdefault((conclusion.name, claim.text), {})[name] = shown
    rows = [
        [*key, *(found.get(name, "") for name in conclusions)] for key, found in numbers.items()
    ]
    title = "The numbers behind them: mean and 95% interval over repeats"
    return Table("claims", title, ["conclusion", "number", *conclusions], rows, n_text=2)
