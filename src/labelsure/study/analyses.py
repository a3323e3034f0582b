"""All analyses of a study as a few tidy frames, of which tables and figures are views."""

from __future__ import annotations

from functools import cached_property
from typing import get_args

import pandas as pd

from labelsure.estimation.score_table import ScoreTable
from labelsure.study.correlations import AssociationName, correlate
from labelsure.study.linear_models import effects, robustness
from labelsure.study.mixture import interval_table, mixture_replicates
from labelsure.study.plan import Settings

ALL = -1
"""The repeat of models of the means over all repeats."""


class Analyses:
    """Every analysis of a score table, each computed when it is asked for.

    Parameters
    ----------
    scores
        The score table, as for `correlate`.
    features
        Features of the data sets in each repeat, as for `robustness`, with `repeat` and `n_train`.
    settings
        A plan, or the settings alone; None means the defaults.
    replicates
        Of `mixture_replicates`, if they were computed before.
    n_jobs
        Processes for these.
    """

    def __init__(
        self,
        scores: pd.DataFrame,
        features: pd.DataFrame,
        settings: Settings | None = None,
        *,
        replicates: pd.DataFrame | None = None,
        n_jobs: int = 1,
    ) -> None:
        self.scores, self.features = scores, features
        self.settings = settings or Settings()
        self._replicates, self._n_jobs = replicates, n_jobs

    @cached_property
    def replicates(self) -> pd.DataFrame:
        """Analysis 5: every split; no rows where the score table has too few of them to halve."""
        if self._replicates is not None:
            return self._replicates
        return mixture_replicates(self.scores, self.settings, n_jobs=self._n_jobs)

    @cached_property
    def intervals(self) -> pd.DataFrame:
        """The interval tables of Analysis 5, see `interval_table`."""
        return interval_table(self.replicates)

    @cached_property
    def correlations(self) -> pd.DataFrame:
        """Analyses 0 and 3: association ("kendall" or "pearson") and the columns of `correlate`."""
        parts = []
        for association in get_args(AssociationName):
            found = correlate(self.scores, association, self.settings)
            found.insert(0, "association", association)
            parts.append(found)
        return pd.concat(parts, ignore_index=True)

    @cached_property
    def models(self) -> pd.DataFrame:
        """Analyses 1 to 4, of the means over repeats (`repeat` -1) and of each repeat.

        association, analysis ("effects" or "robustness"), repeat, of (the metric or candidate), and
        the columns of `robustness`.
        """
        parts = []
        for association, found in self.correlations.groupby("association", sort=False):
            for repeat in (ALL, *found["repeat"].unique()):
                part, features = (
                    frame if repeat == ALL else frame[frame["repeat"] == repeat]
                    for frame in (found, self.features)
                )
                for analysis, models in (
                    ("effects", effects(part).rename(columns={"metric": "of"})),
                    ("robustness", robustness(part, features).rename(columns={"candidate": "of"})),
                ):
                    models.insert(0, "association", association)
                    models.insert(1, "analysis", analysis)
                    models.insert(2, "repeat", repeat)
                    parts.append(models)
        return pd.concat([part for part in parts if len(part)] or parts[-1:], ignore_index=True)

    @cached_property
    def datasets(self) -> pd.DataFrame:
        """The features of the data sets with `n_test` and `n_samples`."""
        keys = ["dataset", "repeat"]
        cells = self.scores.groupby([*keys, "classifier"], sort=False).size()
        tested = cells.groupby(level=keys, sort=False).max().rename("n_test").reset_index()
        described = self.features.merge(tested, on=keys, how="left")
        return described.assign(n_samples=described["n_test"] + described["n_train"])

    @cached_property
    def accuracy(self) -> pd.DataFrame:
        """Of the mode: metric, dataset, classifier, and the means actual and expected."""
        table, empty = ScoreTable(self.scores), self.settings.empty
        parts = []
        for metric in self.settings.metrics:
            values = self.scores[["dataset", "classifier"]].assign(
                metric=metric,
                actual=table.accuracy(metric, empty),
                expected=table.expected(metric, empty),
            )
            parts.append(values.groupby(["metric", "dataset", "classifier"], sort=False).mean())
        return pd.concat(parts).reset_index()
