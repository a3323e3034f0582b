"""The analyses of a study: functions of the score table and of the frames they return."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from labelsure.distributions.candidates import group_by_rank
from labelsure.study.correlations import (
    KENDALL_CANDIDATES,
    PAPER_METRICS,
    PEARSON_CANDIDATES,
    kendall,
    optimal_decisions,
    over_repeats,
    pearson,
    spread,
    true_accuracy,
)
from labelsure.study.linear_models import effects, fit_statistics, has_models, levels, robustness
from labelsure.study.mixture import (
    N_REPLICATES,
    PAPER_MODELS,
    ResponseKind,
    interval_table,
    mark_intervals,
    mixture,
    mixture_replicates,
)

__all__ = [
    "Analyses",
    "AnalysisSettings",
    "CorrelationAnalyses",
    "RepeatedAnalyses",
    "describe_datasets",
    "effects",
    "fit_statistics",
    "interval_table",
    "kendall",
    "levels",
    "mark_intervals",
    "mixture",
    "mixture_replicates",
    "optimal_decisions",
    "over_repeats",
    "pearson",
    "robustness",
    "run_analyses",
    "spread",
    "true_accuracy",
]

FIT = ("r_squared", "adjusted_r_squared", "n", "rmse")


@dataclass(frozen=True)
class AnalysisSettings:
    """What the analyses are about and how they are made.

    Parameters
    ----------
    metrics
        Accuracies.
    candidates
        Of Pearson's correlation and of the mixture; Kendall's leaves out those that rank alike.
    empty
        The Jaccard and F1 of two empty labelsets.
    by_instance
        Whether the mixture keeps the rows of an instance on one side of its splits.
    n_replicates
        Splits of the mixture.
    response
        Whether the mixture models Jaccard by "rates", as the paper does, or by its "value".
    seed
        Of the mixture's splits.
    """

    metrics: tuple[str, ...] = PAPER_METRICS
    candidates: tuple[str, ...] = PEARSON_CANDIDATES
    empty: float = 0.0
    by_instance: bool = False
    n_replicates: int = N_REPLICATES
    response: ResponseKind = "rates"
    seed: int = 0

    @classmethod
    def from_plan(cls, plan: Any) -> AnalysisSettings:
        """Return what a plan says about its analyses. No other place makes settings from a plan.

        Parameters
        ----------
        plan
            A `labelsure.study.Plan`.
        """
        return cls(
            metrics=plan.metrics,
            candidates=plan.candidates,
            empty=plan.empty,
            by_instance=plan.by_instance,
            n_replicates=plan.n_replicates,
            seed=plan.seed,
        )

    @property
    def rank_candidates(self) -> tuple[str, ...]:
        """The candidates whose rankings differ: by default HP, TG, SE, CE."""
        first = [name for name in KENDALL_CANDIDATES if name in self.candidates]
        return tuple(group_by_rank([*first, *self.candidates]))

    @property
    def models(self) -> dict[str, str | tuple[str, ...]]:
        """The mixture's models: HP, SE and CE as far as they are candidates, and all together."""
        single = {name: name for name in PAPER_MODELS if name in self.candidates}
        return {**single, "MIX": self.candidates}


@dataclass(frozen=True)
class CorrelationAnalyses:
    """Correlations and both linear models of them.

    The models are made when they are asked for: correlations that are all undefined, as those of a
    constant label, have none, and everything else can still be had.

    Parameters
    ----------
    correlations
        Of `kendall` or `pearson`.
    features
        Of the data sets, as for `robustness`.
    """

    correlations: pd.DataFrame
    features: pd.DataFrame

    @cached_property
    def effects(self) -> pd.DataFrame:
        """What `effects` says of the correlations."""
        return effects(self.correlations)

    @cached_property
    def robustness(self) -> pd.DataFrame:
        """What `robustness` says of the correlations."""
        return robustness(self.correlations, self.features)


@dataclass(frozen=True)
class Analyses:
    """Every analysis of a score table.

    Parameters
    ----------
    settings
        What they were made with.
    scores, features
        What they were made from.
    kendall, pearson
        Analyses 0 to 2, and 3 and 4.
    replicates
        Analysis 5: every split; no rows where the score table has too few of them to halve.
    """

    settings: AnalysisSettings
    scores: pd.DataFrame
    features: pd.DataFrame
    kendall: CorrelationAnalyses
    pearson: CorrelationAnalyses
    replicates: pd.DataFrame

    @cached_property
    def intervals(self) -> pd.DataFrame:
        """The interval tables of Analysis 5, see `interval_table`."""
        return interval_table(self.replicates)


def run_analyses(
    scores: pd.DataFrame,
    features: pd.DataFrame,
    settings: AnalysisSettings | None = None,
    *,
    replicates: pd.DataFrame | None = None,
    n_jobs: int | None = None,
) -> Analyses:
    """Return all analyses of a score table.

    Parameters
    ----------
    scores
        The score table.
    features
        Features of the data sets, as for `robustness`.
    settings
        None means the paper's.
    replicates
        The mixture's, if they were computed before.
    n_jobs
        Processes for the mixture; None means one.
    """
    settings = settings or AnalysisSettings()
    about = {"metrics": settings.metrics, "empty": settings.empty}
    ranks = kendall(scores, candidates=settings.rank_candidates, **about)  # type: ignore[arg-type]
    values = pearson(scores, candidates=settings.candidates, **about)  # type: ignore[arg-type]
    if replicates is None:
        replicates = mixture_replicates(
            scores,
            metrics=settings.metrics,
            models=settings.models,
            empty=settings.empty,
            n_replicates=settings.n_replicates,
            by_instance=settings.by_instance,
            response=settings.response,
            random_state=settings.seed,
            n_jobs=n_jobs,
        )
    return Analyses(
        settings,
        scores,
        features,
        CorrelationAnalyses(ranks, features),
        CorrelationAnalyses(values, features),
        replicates,
    )


def describe_datasets(analyses: Analyses) -> pd.DataFrame:
    """Return the data sets of a study: sizes, and cardinality in the training part.

    Parameters
    ----------
    analyses
        Their features need `n_train` for the number of samples, which is missing otherwise.
    """
    scores, features = analyses.scores, analyses.features
    keys = ["dataset", "repeat"]
    if "repeat" not in features.columns:
        features = features.assign(repeat=0)
    classifiers = scores.assign(repeat=scores.get("repeat", 0)).groupby([*keys, "classifier"])
    tested = classifiers.size().groupby(level=keys, sort=False).max().rename("n_test")
    described = features.merge(tested.reset_index(), on=keys, how="left")
    trained = described["n_train"] if "n_train" in described.columns else np.nan
    return described.assign(n_samples=described["n_test"] + trained)


class RepeatedAnalyses:
    """The analyses of each repeat by itself.

    Parameters
    ----------
    analyses
        Of all repeats together.
    """

    def __init__(self, analyses: Analyses) -> None:
        self.analyses = analyses
        self.repeats = sorted(analyses.kendall.correlations["repeat"].unique())

    @cached_property
    def effects(self) -> pd.DataFrame:
        """association, repeat, metric, term, estimate, standard_error, p_value."""
        return self._stacked("effects", fits=False)

    @cached_property
    def effects_fit(self) -> pd.DataFrame:
        """association, repeat, metric and the fit statistics."""
        return self._stacked("effects", fits=True)

    @cached_property
    def robustness(self) -> pd.DataFrame:
        """association, repeat, candidate, term, estimate, standard_error, p_value."""
        return self._stacked("robustness", fits=False)

    @cached_property
    def robustness_fit(self) -> pd.DataFrame:
        """association, repeat, candidate and the fit statistics."""
        return self._stacked("robustness", fits=True)

    @cached_property
    def _models(self) -> dict[tuple[str, str, int], pd.DataFrame]:
        found: dict[tuple[str, str, int], pd.DataFrame] = {}
        for association in ("kendall", "pearson"):
            correlations = getattr(self.analyses, association).correlations
            for repeat in self.repeats:
                part = correlations[correlations["repeat"] == repeat]
                if has_models(part):
                    found[association, "effects", repeat] = effects(part)
                    features = self._features(repeat)
                    found[association, "robustness", repeat] = robustness(part, features)
        return found

    def _features(self, repeat: int) -> pd.DataFrame:
        features = self.analyses.features
        if "repeat" not in features.columns or repeat not in set(features["repeat"]):
            return features
        return features[features["repeat"] == repeat]

    def _stacked(self, kind: str, *, fits: bool) -> pd.DataFrame:
        parts = [
            (fit_statistics(model) if fits else model).assign(association=association, repeat=r)
            for (association, which, r), model in self._models.items()
            if which == kind
        ]
        if not parts:
            of = {"effects": "metric", "robustness": "candidate"}[kind]
            numbers = FIT if fits else ("term", "estimate", "standard_error", "p_value")
            return pd.DataFrame(columns=["association", "repeat", of, *numbers])
        return pd.concat(parts, ignore_index=True)
