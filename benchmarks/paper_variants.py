"""Ensembles and trellises that the paper may mean: which explains its correlations.

    LABELSURE_DATA=folder python -m benchmarks.paper_variants

The base learner is that of the plan paper-lasso. The table has the mean absolute difference (MAD)
of the mean over splits (one, or three) from the 12 published correlations of a data set and
classifier. Writes docs/evidence/paper_variants.csv.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelsure as ls
from benchmarks.base_learners import LABELS, SETTINGS, TEST_SHARE
from labelsure.classifiers import ClassifierTrellis
from labelsure.distributions import LabelsetTable
from labelsure.estimation.score_table import ScoreTable
from labelsure.study.analyses import KEYS, correlate
from labelsure.study.conclusions import published_table
from labelsure.study.learners import Lasso

N_CHAINS = 10
BAG = 0.67  # MEKA's default, without replacement
OUT = Path("docs/evidence/paper_variants.csv")


def ensembles(train: Any, X: Any, seed: int) -> Iterator[tuple[str, Any]]:
    """Yield the distributions of ensembles of chains."""
    lasso = Lasso(0.3)
    fitted = ls.EnsembleOfClassifierChains(lasso, n_chains=N_CHAINS, random_state=seed)
    chains = fitted.fit(train.X, train.Y).chains_
    yield "10 chains, bootstraps (as in the plans)", fitted.predict_distribution(X)
    fitted.chains_ = chains[:3]
    yield "3 chains, bootstraps", fitted.predict_distribution(X)
    whole = ls.EnsembleOfClassifierChains(
        lasso, n_chains=N_CHAINS, bootstrap=False, random_state=seed
    )
    yield "10 chains, all rows", whole.fit(train.X, train.Y).predict_distribution(X)
    generator = np.random.default_rng(seed)
    bags = []
    for k in range(N_CHAINS):
        bag = train.take(generator.permutation(len(train.Y))[: round(BAG * len(train.Y))])
        one = ls.EnsembleOfClassifierChains(
            lasso, n_chains=1, bootstrap=False, random_state=100 * seed + k
        )
        bags += one.fit(bag.X, bag.Y).chains_
    fitted.chains_ = bags
    yield "10 chains, 67% of the rows without replacement", fitted.predict_distribution(X)


def votes(train: Any, X: Any, seed: int) -> Iterator[tuple[str, Any]]:
    """Yield how many of the chains vote for each labelset: one for its most probable one."""
    fitted = ls.EnsembleOfClassifierChains(Lasso(0.3), n_chains=N_CHAINS, random_state=seed)
    chains = fitted.fit(train.X, train.Y).chains_
    modes = np.stack([chain.predict_distribution(X).mode() for chain in chains], axis=1)
    yield "votes of the 10 chains", LabelsetTable.from_samples(modes)


def trellises(train: Any, X: Any, seed: int) -> Iterator[tuple[str, Any]]:
    """Yield the distributions of trellises."""
    lasso = Lasso(0.3)
    scaled = make_pipeline(StandardScaler(with_mean=False), Lasso(0.03))
    for title, learner, placement in (
        ("by mutual information", lasso, "mutual_info"),
        ("random", lasso, "random"),
        ("random, features and links standardised", scaled, "random"),
    ):
        model = ClassifierTrellis(learner, placement=placement, random_state=seed)
        yield title, model.fit(train.X, train.Y).predict_distribution(X)


VARIANTS = (("ECC", votes, 3), ("ECC", ensembles, 1), ("CT", trellises, 1))
"""Classifier, distributions and number of splits."""


def main() -> None:
    """Print and write the table."""
    warnings.simplefilter("ignore")  # of learners that stop early
    paper = published_table("correlations").set_index(KEYS)["correlation"]
    parts: list[pd.DataFrame] = []
    for name in published_table("datasets")["dataset"]:
        data = ls.load_dataset(name, labels=LABELS.get(name))
        for classifier, make, n_splits in VARIANTS:
            for seed in range(n_splits):
                train, test = ls.split_dataset(data, 1 - TEST_SHARE, random_state=1000 + seed)
                for title, dist in make(train, test.X, seed):
                    table = ScoreTable.from_distribution(dist, test.Y).to_frame()
                    cell = {"dataset": name, "classifier": classifier, "repeat": seed}
                    found = correlate(table.assign(**cell), "kendall", SETTINGS)
                    parts.append(found.assign(variant=title))
                    Console().print(name, seed, classifier, title, highlight=False)
        rows = pd.concat(parts)
        values = rows.groupby(["variant", *KEYS], sort=False)["correlation"]
        gaps = values.mean().rename("ours").reset_index().join(paper, on=KEYS)
        gaps["MAD"] = (gaps["ours"] - gaps["correlation"]).abs()
        keys = ["classifier", "variant"]
        wide = gaps.pivot_table("MAD", keys, "dataset", sort=False)
        wide.insert(0, "splits", rows.groupby(keys)["repeat"].nunique())
        OUT.write_text(wide.round(3).reset_index().to_csv(index=False), encoding="utf-8")


if __name__ == "__main__":
    main()
