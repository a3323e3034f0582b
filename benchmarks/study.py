"""The tables of the page about Park and Read, from one run of each plan.

    labelsure study run PLAN --data DIR --out RUNS/PLAN   # for each of `PLANS`
    LABELSURE_RUNS=RUNS python -m benchmarks study

Writes docs/evidence/study_*.csv and prints the tables of docs/evidence/study.md as Markdown.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from scipy.stats import spearmanr

from labelsure.study.analyses import KEYS, Analyses, correlate, optimal_decisions
from labelsure.study.conclusions import published_conclusions, published_table
from labelsure.study.mixture import interval_table, mixture_replicates
from labelsure.study.paper import UNKNOWN_LABELS, compare_with_paper
from labelsure.study.plan import OMIT, Settings
from labelsure.study.run import open_run

PLANS = ("paper", "paper-lasso", "paper-lasso-cv", "paper-standardised")
CONVENTIONS = (0.0, 1.0, OMIT)
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


def without(plan: str, ranks: pd.DataFrame) -> dict[str, object]:
    """Return agreement without Enron and Slashdot's ensembles, which no plan explains."""
    means = ranks.groupby(KEYS)["correlation"].mean()
    paper = published_table("correlations").set_index(KEYS)["correlation"].reindex(means.index)
    sets, models = (means.index.get_level_values(name) for name in ("dataset", "classifier"))
    is_left = (sets != UNKNOWN_LABELS) & ~((sets == "slashdot") & (models == "ECC"))
    x, y = means[is_left], paper[is_left]
    spearman = float(spearmanr(x, y).statistic)
    return {"plan": plan, "cells": len(x), "Spearman": spearman, "MAD": (x - y).abs().mean()}


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
        models = analyses.models[analyses.models["repeat"] == -1]
        add("models", plan, models.drop(columns="repeat"))
        add("low_end", plan, pd.DataFrame(low_end(plan, analyses)))
        add("empty", plan, pd.DataFrame(by_convention(plan, analyses)))
        ranks = analyses.correlations.query("association == 'kendall'")
        add("without", plan, pd.DataFrame([without(plan, ranks)]))
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
    for name, frames in parts.items():
        table = pd.concat(frames, ignore_index=True)
        table = table[["plan", *table.columns.drop("plan")]]
        (OUT / f"study_{name}.csv").write_text(table.round(4).to_csv(index=False), encoding="utf-8")
    order = {c.name: place for place, c in enumerate(published_conclusions())}
    print_conclusions(pd.concat(parts["conclusions"]), order)


def print_conclusions(table: pd.DataFrame, order: dict[str, int]) -> None:
    """Print a row for each conclusion: the paper's numbers, and ours under each plan."""
    print("| conclusion | paper |", " | ".join(f"`{plan}`" for plan in PLANS), "|")
    print("|---|---|", "|".join("---" for _ in PLANS), "|")
    for _, rows in sorted(table.groupby("name"), key=lambda pair: order[str(pair[0])]):
        cells = []
        for row in rows.itertuples():
            p = f", p {row.p}" if row.p else ""
            cells.append(f"{row.holds} ({row.of}): {row.ours}{p}")
        first = rows.iloc[0]
        print("|", first["conclusion"], "|", first["paper"], "|", " | ".join(cells), "|")
