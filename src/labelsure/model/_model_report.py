"""The page of a model: how accurate, how sure, what to accept, single predictions, the card."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from labelsure._runtime.notebook import count
from labelsure._runtime.pages import Page
from labelsure._runtime.typing import Floats, Labelsets
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.estimation._batch_estimates import BatchSums, Estimate
from labelsure.estimation._reliability import Reliability, reliability
from labelsure.estimation._shift_test import ViewSample, say_shift
from labelsure.estimation.score_table import ScoreTable
from labelsure.metrics.registry import METRICS, Metric, get_metric
from labelsure.model._assessment import assess_table
from labelsure.model._report_explorer import InstanceSample
from labelsure.model._report_totals import BatchTotals

Batch = tuple[LabelsetDistribution, Labelsets | None, Labelsets | None]
"""Distributions, what is predicted (None for the mode), and the truth where it is known."""

FROM_TRUTH = "these predictions and their truth"


def make_model_report(
    model: Any, batches: Iterable[Batch], title: str, open_cost: float | None = None
) -> Page:
    """Return the page of a fitted model, and of the predictions that it makes for some instances.

    Parameters
    ----------
    model
        An `AccuracyAwareClassifier`.
    batches
        Predictions, of which any number takes the same memory; none gives a page of the model
        alone. The truth is known for all of them or for none.
    title
        Of the page.
    open_cost
        As of `Assessment.leave_open`; None does not show which labels are better left open.
    """
    from labelsure import __version__

    metric = get_metric(model.metric)
    metrics = list(dict.fromkeys([metric, *METRICS.values()]))
    data: dict[str, Any] = {
        "title": title,
        "version": __version__,
        "metric": _describe_metric(metric),
        "metrics": [_describe_metric(shown) for shown in metrics],
        "policy": _describe_policy(model),
        "facts": _list_facts(model),
        "batch": None,
    }
    found = _Batches(model, metrics, open_cost)
    for dist, Y_pred, Y_true in batches:
        found.add(dist, Y_pred, Y_true)
    if found.totals is not None:
        data |= found.describe(metric)
    else:
        card = model.card_
        data["sentences"] = [
            f"A model of {count(model.n_labels_, 'label')}. Its mean {metric.title} is "
            f"{card.estimated:.3f}, between {card.low:.3f} and {card.high:.3f} with probability "
            f"{model.accuracy_estimator_.reference_.level:g}."
        ]
    if data.get("reliability") is None:
        data["reliability"] = _reliability_of_card(model)
    data["sections"] = _list_sections(data)
    return Page("model", data)


class _Batches:
    """What is known of the predictions so far."""

    def __init__(self, model: Any, metrics: list[Metric], open_cost: float | None) -> None:
        self.model, self.metrics = model, metrics
        self.sums: BatchSums | None = None
        self.compared: list[tuple[Floats, Floats]] = []  # estimated and actual accuracies
        self.sample = InstanceSample(metrics, model.empty, model.n_labels_, open_cost=open_cost)
        self.totals: BatchTotals | None = None
        self.viewed = ViewSample()

    def add(
        self, dist: LabelsetDistribution, Y_pred: Labelsets | None, Y_true: Labelsets | None
    ) -> None:
        if len(dist) == 0:
            return
        model = self.model
        estimator, policy = model.accuracy_estimator_, model.policy_
        table = ScoreTable.from_distribution(
            dist, Y_true, Y_pred, metrics=self.metrics, decision_rule=estimator.decision_
        )
        found = assess_table(dist, table, estimator, policy, model.region_)
        if self.totals is None:
            threshold = model.card_.threshold
            self.totals = BatchTotals(
                self.metrics,
                model.empty,
                model.label_names_,
                model.n_labels_,
                threshold,
                Y_true is not None,
            )
        self.totals.add(dist, table, found.accuracy, Y_true)
        self.sample.add(found, Y_true)
        if estimator.can_compare:
            rows, keys = self.viewed.draw(len(dist))
            self.viewed.add(estimator.view_table(dist, table, rows), keys)
        sums = estimator.sum_up(table)
        self.sums = sums if self.sums is None else self.sums + sums
        if Y_true is not None:
            self.compared.append((found.accuracy, table.accuracy(model.metric, model.empty)))

    def describe(self, metric: Metric) -> dict[str, Any]:
        totals, sums = self.totals, self.sums
        assert totals is not None
        assert sums is not None
        estimator = self.model.accuracy_estimator_
        estimate = estimator.estimate_sums(sums, level=self.model.level)
        test, untested = estimator.compare_with_calibration(self.viewed.view)
        described: dict[str, Any] = {
            "batch": {
                "n_instances": totals.n_instances,
                "has_truth": totals.has_truth,
                "estimate": {"mean": estimate.mean, "low": estimate.low, "high": estimate.high},
                "histogram": totals.describe_histogram(),
            },
            "acceptance": totals.describe_acceptance(metric),
            "explorer": self.sample.describe(totals.label_names, totals.n_labels),
            "labels": totals.describe_labels(),
            "confusions": totals.describe_confusions(),
            "tiles": _make_tiles(estimate, totals, metric, self.model),
            "sentences": [str(estimate)],
            "shift": {
                "found": test is not None and test.found,
                "sentence": say_shift(test, untested),
            },
        }
        if totals.has_truth:
            estimated, actual = (np.concatenate(part) for part in zip(*self.compared, strict=True))
            compared = reliability(estimated, actual)
            described["reliability"] = _describe_reliability(compared, FROM_TRUTH)
        return described


def _describe_metric(metric: Metric) -> dict[str, str]:
    return {"name": metric.name, "title": metric.title}


def _describe_policy(model: Any) -> dict[str, Any] | None:
    card = model.card_
    if model.policy_ is None:
        return None
    return {
        "summary": card.summary,
        "threshold": card.threshold,
        "guaranteed": card.guaranteed,
    }


def _make_tiles(
    estimate: Estimate, totals: BatchTotals, metric: Metric, model: Any
) -> list[dict[str, str]]:
    """Return the numbers that stand at the top of the page."""
    tiles = [
        {
            "name": f"estimated mean {metric.title}",
            "value": f"{estimate.mean:.3f}",
            "note": f"between {estimate.low:.3f} and {estimate.high:.3f} with probability "
            f"{estimate.level:g}",
        }
    ]
    if totals.has_truth:
        actual = totals.mean_actual(metric)
        tiles.append({"name": "actual", "value": f"{actual:.3f}", "note": "by the truth"})
    tiles.append(
        {
            "name": "what the model itself expects",
            "value": f"{totals.mean_expected(metric):.3f}",
            "note": "not checked against any truth",
        }
    )
    threshold = totals.threshold
    if model.policy_ is not None and threshold is not None:
        n_accepted = int(totals.n[totals.thresholds.searchsorted(threshold)])
        tiles.append(
            {
                "name": "accepted",
                "value": f"{n_accepted / totals.n_instances:.1%}",
                "note": f"{n_accepted:,} of {totals.n_instances:,}",
            }
        )
    return tiles


def _describe_reliability(compared: Reliability, source: str) -> dict[str, Any]:
    frame = compared.table.rename(columns={"n_samples": "n"}).astype(object)
    rows = frame.where(frame.notna(), None).to_dict("records")
    return {"source": source, "error": compared.expected_calibration_error, "rows": rows}


def _reliability_of_card(model: Any) -> dict[str, Any]:
    columns = model.card_.calibration
    names = ["n" if name == "n_samples" else name for name in columns]
    rows = [dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    n_all = sum(row["n"] for row in rows)
    gaps = [row["n"] * abs(row["estimated"] - row["accuracy"]) for row in rows if row["n"]]
    source = f"{model.card_.calibration_from}, when the model was made"
    return {"source": source, "error": sum(gaps) / n_all, "rows": rows}


def _list_facts(model: Any) -> list[tuple[str, str]]:
    """Return what the card says, a name and a text for each line."""
    lines = [line.partition(": ") for line in str(model.card_).splitlines()]
    return [(name, text) for name, _, text in lines if text and not name.startswith(" ")]


def _list_sections(data: dict[str, Any]) -> list[tuple[str, str]]:
    if data["batch"] is None:
        return [("reliability", "Does it come true?"), ("card", "The model")]
    return [
        ("sure", "How sure"),
        ("reliability", "Does it come true?"),
        ("acceptance", "What to accept"),
        ("explorer", "Single predictions"),
        ("labels", "Labels"),
        ("card", "The model"),
    ]
