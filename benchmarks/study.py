"""The tables of the page about Park and Read, from one run of each plan.

    labelsure study run PLAN --data DIR --out RUNS/PLAN   # for each of `PLANS`, and wide
    LABELSURE_RUNS=RUNS python -m benchmarks.study

Writes docs/evidence/study_*.csv and prints the tables of docs/evidence/study.md as Markdown.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from scipy.stats import spearmanr
from scipy.stats import t as student

from labelsure.metrics.registry import get_metric
from labelsure.study.analyses import KEYS, Analyses, correlate, effects, optimal_decisions
from labelsure.study.conclusions import published_conclusions, published_table
from labelsure.study.mixture import interval_table, mixture_replicates
from labelsure.study.paper import UNKNOWN_LABELS, compare_with_paper
from labelsure.study.plan import OMIT, Settings
from labelsure.study.run import open_run

PLANS = ("paper", "paper-lasso", "paper-lasso-cv", "paper-standardised")
STRONG = "paper-standardised-strong"
"""The plan paper-standardised with C = 0.0015 and one split, for the lowest Jaccard estimates."""

CONVENTIONS = (0.0, 1.0, OMIT)
TERMS = ("r_squared", "rmse", "TG", "SE", "CE", "slashdot", "enron", "Indep", "CT")
METRICS = ("exact", "hamming", "jaccard")
OUT = Path("docs/evidence")


def low_end(plan: str, analyses: Analyses) -> Iterator[dict[str, object]]:
    """Yield the actual Jaccard of the lowest estimates, for each value of two empty labelsets."""
    for convention in CONVENTIONS:
        settings = Settings(
            metrics=("jaccard",),
            candidates=analyses.settings.candidates,
            mixture_empty=convention,
            n_replicates=analyses.settings.n_replicates,
            seed=analyses.settings.seed,
        )
        found = analyses.intervals.query("metric == 'jaccard'")
        if convention != analyses.settings.mixture_empty:
            found = interval_table(mixture_replicates(analyses.scores, settings))
        for row in found[found["predicted_low"] == 0].itertuples():
            yield {
                "plan": plan,
                "two empty labelsets": convention,
                "model": row.model,
                "low": row.low,
                "high": row.high,
                "rows": row.n,
            }


def by_convention(plan: str, analyses: Analyses) -> Iterator[dict[str, object]]:
    """Yield how far Jaccard's correlations are from print, for each value of 0/0."""
    paper = published_table("correlations").query("metric == 'jaccard'").set_index(KEYS)
    for convention in CONVENTIONS:
        settings = Settings(metrics=("jaccard",), empty=convention)
        found = correlate(analyses.scores, "kendall", settings)
        gaps = found.groupby(KEYS)["correlation"].mean().sub(paper["correlation"]).abs()
        for dataset, part in gaps.groupby(level="dataset", sort=False):
            yield {
                "plan": plan,
                "two empty labelsets": convention,
                "dataset": dataset,
                "MAD of means": part.mean(),
            } | {"/".join(key[2:]): gap for key, gap in part.items()}


def without(plan: str, ranks: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield agreement and effects with and without the cells that no plan explains."""
    keys = pd.MultiIndex.from_frame(ranks[KEYS])
    printed = published_table("correlations").set_index(KEYS)["correlation"]
    values = {"print": ranks.assign(correlation=printed.reindex(keys).to_numpy()), plan: ranks}
    is_enron = ranks["dataset"] == UNKNOWN_LABELS
    is_ensemble = (ranks["dataset"] == "slashdot") & (ranks["classifier"] == "ECC")
    for cells, left in (
        ("all", is_enron | True),
        ("without Enron", ~is_enron),
        ("without Enron and Slashdot's ECC", ~is_enron & ~is_ensemble),
    ):
        x, y = (frame[left].groupby(KEYS)["correlation"].mean() for frame in values.values())
        for title, frame in values.items():
            found = effects(frame[left]).set_index(["metric", "term"])["estimate"]
            yield {
                "cells": cells,
                "of": title,
                "n": len(x),
                "Spearman": float(spearmanr(x, y).statistic),
                "MAD": (x - y).abs().mean(),
            } | {f"{term} {m}": found.get((m, term)) for term in TERMS for m in METRICS}


def wide(analyses: Analyses) -> pd.DataFrame:
    """Return differences from HP by classifier: means over data sets, with 95% intervals."""
    ranks = analyses.correlations.query("association == 'kendall'")
    rows = []
    for (metric, classifier), part in ranks.groupby(["metric", "classifier"], sort=False):
        wide = part.pivot_table("correlation", "dataset", "candidate")
        row = {"metric": get_metric(metric).title, "classifier": classifier}
        row["HP tau"] = wide["HP"].mean()
        for name in ("TG", "SE", "CE"):
            gaps = wide[name] - wide["HP"]
            row[name] = gaps.mean()
            row[f"{name} half-width"] = student.ppf(0.975, len(gaps) - 1) * gaps.sem()
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Print and write every table."""
    folder = Path(os.environ["LABELSURE_RUNS"])
    parts: dict[str, list[pd.DataFrame]] = {}

    def add(name: str, plan: str, frame: pd.DataFrame) -> None:
        parts.setdefault(name, []).append(frame.assign(plan=plan))

    for plan in PLANS:
        analyses = open_run(folder / plan).analyses(n_jobs=1)
        check = compare_with_paper(analyses)
        tables = {table.name: table.frame for table in check.tables()}
        names = {c.statement: c.name for c in check.conclusions}
        conclusions = tables["conclusions"]
        add("conclusions", plan, conclusions.assign(name=conclusions["conclusion"].map(names)))
        add("claims", plan, tables["claims"])
        add("agreement", plan, check.summaries)
        add("datasets", plan, check.datasets)
        add("low_end", plan, pd.DataFrame(low_end(plan, analyses)))
        add("empty", plan, pd.DataFrame(by_convention(plan, analyses)))
        ranks = analyses.correlations.query("association == 'kendall'")
        add("without", plan, pd.DataFrame(without(plan, ranks)))
        means = ranks.groupby(KEYS, sort=False)["correlation"].agg(ours="mean", spread="std")
        paper = published_table("correlations").set_index(KEYS)[["correlation"]]
        add("correlations", plan, means.join(paper).reset_index())
        decisions = optimal_decisions(analyses.scores, analyses.settings)
        keys = ["metric", "dataset", "classifier"]
        add(
            "decisions",
            plan,
            decisions.groupby(keys, sort=False)[["mode", "best"]].mean().reset_index(),
        )
    strong = open_run(folder / STRONG).analyses(n_jobs=1)
    add("low_end", STRONG, pd.DataFrame(low_end(STRONG, strong)))
    for name, frames in parts.items():
        table = pd.concat(frames, ignore_index=True)
        table = table[["plan", *table.columns.drop("plan")]]
        (OUT / f"study_{name}.csv").write_text(table.round(4).to_csv(index=False), encoding="utf-8")
    wide(open_run(folder / "wide").analyses(n_jobs=1)).round(4).to_csv(
        OUT / "study_wide.csv", index=False
    )
    order = {c.name: place for place, c in enumerate(published_conclusions())}
    print_conclusions(pd.concat(parts["conclusions"]), order)
    print_effects(pd.concat(parts["without"]))
    print_low_end(pd.concat(parts["low_end"]))
    print_datasets(pd.concat(parts["datasets"]))


def print_row(*cells: str) -> None:
    """Print a row of a Markdown table."""
    print("|", " | ".join(cells), "|")


def print_head(*titles: str) -> None:
    """Print the head of a Markdown table."""
    print()
    print_row(*titles)
    print_row(*["---"] * len(titles))


def print_conclusions(table: pd.DataFrame, order: dict[str, int]) -> None:
    """Print for each conclusion whether it holds under each plan, and how many of its numbers."""
    print_head("conclusion", *(f"`{plan}`" for plan in PLANS))
    for _, rows in sorted(table.groupby("name"), key=lambda pair: order[str(pair[0])]):
        cells = []
        for row in rows.itertuples():
            held, of = row.of.split(" of ")
            share = f", {held}/{of}" if held not in ("0", of) else ""
            verdict = "**yes**" if row.holds == "holds" else f"no{share}"
            cells.append(verdict + ("~" if row.stable == "no" else ""))
        print_row(rows["conclusion"].iloc[0], *cells)


def print_effects(table: pd.DataFrame) -> None:
    """Print the terms of Analysis 1: exact match, Hamming, Jaccard."""
    for cells, part in table.groupby("cells", sort=False):
        rows = part.drop_duplicates("of").set_index("of")
        print_head(str(cells), *rows.index)
        for name in ("Spearman", "MAD"):
            print_row(name, "", *(f"{value:.3f}" for value in rows[name].iloc[1:]))
        for term in TERMS:
            triples = rows[[f"{term} {m}" for m in METRICS]].to_numpy()
            print_row(term, *(" / ".join(f"{x:.3f}" for x in triple) for triple in triples))


def print_low_end(table: pd.DataFrame) -> None:
    """Print the actual Jaccard of the lowest estimates."""
    wide = table.assign(text=[f"{a:.3f} to {b:.3f}" for a, b in table[["low", "high"]].to_numpy()])
    wide = wide.pivot_table(
        "text", ["plan", "two empty labelsets"], "model", aggfunc="first", sort=False
    )
    print_head("plan", "0/0", *wide.columns)
    for (plan, convention), texts in wide.iterrows():
        print_row(plan, str(convention), *texts)


def print_datasets(table: pd.DataFrame) -> None:
    """Print the MAD of one split and its ratio to that of two splits, by data set."""
    texts = [f"{a:.3f} ({b:.1f})" for a, b in table[["paper", "ratio"]].to_numpy()]
    keys = ["plan", "classifier"]
    wide = table.assign(text=texts).pivot_table(
        "text", keys, "dataset", aggfunc="first", sort=False
    )
    print_head(*keys, *wide.columns)
    for key, row in wide.iterrows():
        print_row(*key, *row)


if __name__ == "__main__":
    main()
