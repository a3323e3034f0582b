"""The page of a model: how accurate, how sure, what to accept, single predictions, the card."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from labelsure._runtime.notebook import count
from labelsure._runtime.pages import Page, encode_json
from labelsure._runtime.typing import Floats, Integers, LabelNames, Labelsets
from labelsure.distributions._bridge import LabelsetDistribution
from labelsure.estimation._batch_estimates import BatchSums, Estimate
from labelsure.estimation._reliability import Reliability, reliability
from labelsure.estimation._shift import ViewSample, say_shift
from labelsure.estimation.score_table import ScoreTable, calibration_marginals
from labelsure.labelsets.rows import make_sparse, read_guesses, show_names, to_indices
from labelsure.metrics.registry import METRICS, Metric, get_metric
from labelsure.model._assessment import Assessment, assess_table

N_STEPS = 200
"""Of the slider: thresholds from 0 to 1, half a percent apart."""

N_BINS = 20  # of the histogram of estimated accuracies
N_PAIRS = 20  # of labels that are confused most
N_LABELS = 200  # in the table of labels


class BatchTotals:
    """Sums over predictions, batch by batch.

    Parameters
    ----------
    metrics
        The accuracies to show.
    empty
        The Jaccard and F1 of two empty labelsets.
    label_names
        One for each label, or None.
    n_labels
        How many there are.
    threshold
        Of the policy, which the slider has beside its own; None without one.
    has_truth
        Whether the truth is known.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        empty: float,
        label_names: LabelNames,
        n_labels: int,
        threshold: float | None,
        has_truth: bool,
    ) -> None:
        self.metrics, self.empty = list(metrics), empty
        self.label_names, self.n_labels = label_names, n_labels
        self.threshold, self.has_truth = threshold, has_truth
        known = [] if threshold is None else [threshold]
        self.thresholds = np.unique([*np.linspace(0, 1, N_STEPS + 1).round(6), *known])
        n_steps = len(self.thresholds)
        self.n = np.zeros(n_steps, dtype=np.int64)
        self.estimated = np.zeros(n_steps)
        self.expected = np.zeros((len(self.metrics), n_steps))
        self.actual = np.zeros((len(self.metrics), n_steps))
        self.histogram = np.zeros(N_BINS, dtype=np.int64)
        self.n_predicted = np.zeros(n_labels, dtype=np.int64)
        self.n_true = np.zeros(n_labels, dtype=np.int64)
        self.n_hit = np.zeros(n_labels, dtype=np.int64)
        self.sum_probability = np.zeros(n_labels)
        self.confusions = sparse.csr_array((n_labels, n_labels), dtype=np.int64)

    def add(
        self,
        dist: LabelsetDistribution,
        table: ScoreTable,
        estimated: Floats,
        Y_true: Labelsets | None,
    ) -> None:
        """Add a batch."""
        # Which is the highest threshold that accepts it? All lower ones do as well.
        step = np.searchsorted(self.thresholds, estimated, side="right") - 1
        self.n += self._sum_by_step(step, None)
        self.estimated += self._sum_by_step(step, estimated)
        for i, metric in enumerate(self.metrics):
            self.expected[i] += self._sum_by_step(step, table.expected(metric, self.empty))
            if self.has_truth:
                self.actual[i] += self._sum_by_step(step, table.accuracy(metric, self.empty))
        bins = np.minimum((estimated * N_BINS).astype(int), N_BINS - 1)
        self.histogram += np.bincount(bins, minlength=N_BINS)
        Y_pred: Any = table.decisions  # the table of a distribution has them
        self.n_predicted += _count_instances(Y_pred)
        self.sum_probability += calibration_marginals(dist).sum(axis=0)
        if Y_true is not None:
            self.n_true += _count_instances(Y_true)
            self.n_hit += _count_instances(_find_hits(Y_true, Y_pred))
            self.confusions += _count_confusions(Y_true, Y_pred)

    def _sum_by_step(self, step: Any, values: Floats | None) -> Any:
        """Return for each threshold the sum over the predictions that it accepts."""
        sums = np.bincount(step, weights=values, minlength=len(self.thresholds))
        return sums[::-1].cumsum()[::-1]

    @property
    def n_instances(self) -> int:
        """How many predictions there are."""
        return int(self.n[0])

    def mean_expected(self, metric: Metric) -> float:
        """Return what the model itself believes the mean accuracy to be."""
        return float(self.expected[self.metrics.index(metric), 0] / self.n_instances)

    def mean_actual(self, metric: Metric) -> float:
        """Return the mean accuracy."""
        return float(self.actual[self.metrics.index(metric), 0] / self.n_instances)

    def describe_acceptance(self, metric: Metric) -> dict[str, Any]:
        """Return for each threshold how many are accepted, and their mean accuracies."""
        policy = None
        if self.threshold is not None:
            policy = int(np.searchsorted(self.thresholds, self.threshold))
        accuracy = {}
        for i, shown in enumerate(self.metrics):
            sums, source = self.expected[i], "what the model itself expects, not checked"
            if self.has_truth:
                sums, source = self.actual[i], "actual, by the truth"
            elif shown == metric:
                sums, source = self.estimated, "estimated"
            means = np.divide(sums, self.n, out=np.zeros(len(self.n)), where=self.n > 0)
            accuracy[shown.name] = {"values": means.round(4).tolist(), "source": source}
        return {
            "thresholds": self.thresholds.tolist(),
            "n": self.n.tolist(),
            "policy": policy,
            "accuracy": accuracy,
        }

    def describe_histogram(self) -> list[dict[str, Any]]:
        """Return how many predictions have which estimated accuracy."""
        edges = np.linspace(0, 1, N_BINS + 1).round(6).tolist()
        rows = zip(edges[:-1], edges[1:], self.histogram.tolist(), strict=True)
        return [{"low": low, "high": high, "n": n} for low, high, n in rows]

    def describe_labels(self) -> dict[str, Any]:
        """Return the labels that are predicted most, with what is known of each.

        Labels that no instance has, or may have by what is listed, are only counted.
        """
        weight = self.n_predicted + self.sum_probability
        n_occurring = int(((weight > 0) | (self.n_true > 0)).sum())
        order = np.argsort(-weight, kind="stable")
        order = order[(weight[order] > 0) | (self.n_true[order] > 0)][:N_LABELS]
        rows = []
        names = show_names(self.label_names, order.tolist())
        for label, name in zip(order.tolist(), names, strict=True):
            row: dict[str, Any] = {
                "name": name,
                "n_predicted": int(self.n_predicted[label]),
                "sum_probability": round(float(self.sum_probability[label]), 1),
            }
            if self.has_truth:
                hit = int(self.n_hit[label])
                row["n_true"] = int(self.n_true[label])
                row["precision"] = _divide(hit, row["n_predicted"])
                row["recall"] = _divide(hit, row["n_true"])
            rows.append(row)
        n_absent = self.n_labels - n_occurring
        return {"rows": rows, "n_left_out": n_occurring - len(rows), "n_absent": n_absent}

    def describe_confusions(self) -> list[dict[str, Any]]:
        """Return the pairs of labels of which most often one was true and the other predicted."""
        pairs = self.confusions.tocoo()
        order = np.argsort(-pairs.data, kind="stable")[:N_PAIRS]
        order = order[pairs.data[order] > 0]
        missed, added = (show_names(self.label_names, part[order]) for part in pairs.coords)
        return [
            {"missed": one, "added": other, "n": int(n)}
            for one, other, n in zip(missed, added, pairs.data[order], strict=True)
        ]


def _count_confusions(Y_true: Labelsets, Y_pred: Labelsets) -> Any:
    """Return how often label i was true and missed while label j was predicted and not true."""
    hits = _find_hits(Y_true, Y_pred)
    missed, added = (
        sparse.csr_array(make_sparse(Y) - hits, dtype=np.int64) for Y in (Y_true, Y_pred)
    )
    return sparse.csr_array(missed.T @ added)


def _find_hits(Y_true: Any, Y_pred: Any) -> Any:
    """Return sparse rows of the labels that are true and predicted."""
    true: Any = make_sparse(Y_true)
    return true.multiply(make_sparse(Y_pred))


def _count_instances(Y: Any) -> Integers:
    """Return how many instances have each label, (L,)."""
    return np.asarray(Y.sum(axis=0, dtype=np.int64))


def _divide(part: int, whole: int) -> float | None:
    return part / whole if whole else None


MAX_INSTANCES = 2000
"""In a page, which has to open quickly."""

MAX_BYTES = 600_000
"""Of all instances in a page."""

MANY_LABELS = 50
"""From here on the most probable labelsets of chains take up to seconds for an instance."""

FEW_INSTANCES = 200  # of so many labels

N_BEST = 5  # labelsets of an instance
N_MARGINALS = 12  # labels of an instance, the most probable and the predicted ones
N_DIGITS = 3
N_NAMES = 200  # of labels in a page; of more labels those that the shown instances have

LABEL_FIELDS = ("predicted", "truth", "open", "decided", "certain", "possible")
"""What is a list of labels in the description of an instance."""


class InstanceSample:
    """A random sample of the predictions, batch by batch.

    Parameters
    ----------
    metrics
        Whose expected accuracies are shown of the most probable labelsets.
    empty
        The Jaccard and F1 of two empty labelsets.
    n_labels
        How many there are.
    seed
        Of the sample.
    open_cost
        As of `Assessment.leave_open`; None does not show which labels are better left open.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        empty: float,
        n_labels: int,
        seed: int = 0,
        open_cost: float | None = None,
    ) -> None:
        self.metrics, self.empty, self.open_cost = list(metrics), empty, open_cost
        self.size = FEW_INSTANCES if n_labels > MANY_LABELS else MAX_INSTANCES
        self.n_seen = 0
        self._random = np.random.default_rng(seed)
        # Each prediction draws a key; those with the smallest keys are the sample.
        self._keys = np.empty(0)
        self._instances: list[dict[str, Any]] = []

    def add(self, found: Assessment, Y_true: Labelsets | None) -> None:
        """Add a batch."""
        keys = self._random.random(len(found))
        every = np.concatenate([self._keys, keys])
        order = np.argsort(every, kind="stable")[: self.size]
        n_old = len(self._keys)
        new = np.sort(order[order >= n_old] - n_old)
        kept = np.sort(order[order < n_old])
        self._instances = [self._instances[i] for i in kept.tolist()]
        self._instances += self._describe(found[new], new + self.n_seen, Y_true, new)
        self._keys = np.concatenate([self._keys[kept], keys[new]])
        self.n_seen += len(found)

    def _describe(
        self, found: Assessment, positions: Any, Y_true: Labelsets | None, rows: Any
    ) -> list[dict[str, Any]]:
        if len(found) == 0:
            return []
        dist = found.distribution
        names = positions.tolist() if dist.index is None else list(dist.index)
        predicted = to_indices(found.Y_pred)
        truth = None if Y_true is None else to_indices(Y_true[rows])
        best = self._describe_best(dist)
        probable = _describe_marginals(calibration_marginals(dist), predicted)
        answers = None if self.open_cost is None else found.leave_open(self.open_cost)
        instances = []
        for i, name in enumerate(names):
            accepted = None if found.accepted is None else bool(found.accepted[i])
            instance = {
                "id": str(name),
                "predicted": predicted[i],
                "estimated": round(float(found.accuracy[i]), N_DIGITS),
                "advice": {None: "no advice", True: "accept", False: "refer"}[accepted],
                "reason": str(found.reason[i]),
                "probabilities": probable[i],
                "n_more": dist.n_labels - len(probable[i]),
                "best": best[i],
            }
            if answers is not None:
                instance["open"] = np.flatnonzero(answers.is_open[i]).tolist()
                instance["decided"] = np.flatnonzero(answers.is_certain[i]).tolist()
            if found.region is not None:
                instance["certain"] = np.flatnonzero(found.region.is_certain[i]).tolist()
                instance["possible"] = np.flatnonzero(found.region.is_open[i]).tolist()
            if truth is not None:
                instance["truth"] = truth[i]
                instance["is_exact"] = truth[i] == predicted[i]
            instances.append(instance)
        return instances

    def _describe_best(self, dist: LabelsetDistribution) -> list[list[Any]]:
        """Return for each instance its best labelsets, with probability and expected accuracies."""
        best = dist.top(min(N_BEST, 2 ** min(dist.n_labels, 10)))
        shape = len(dist), dist.n_labels
        guesses = read_guesses(best.labelsets, "best", *shape, sparse=dist.sparse_rows)
        found = dist._expected_each(self.metrics, guesses, self.empty)
        expected = np.stack([one.value for one in found], axis=-1).round(N_DIGITS)
        ranks = [to_indices(best.labelsets[:, rank]) for rank in range(best.labelsets.shape[1])]
        return [
            [
                [labels, round(float(probability), N_DIGITS), values]
                for labels, probability, values in zip(*columns, strict=True)
                if probability > 0
            ]
            for columns in zip(
                zip(*ranks, strict=True), best.probabilities, expected.tolist(), strict=True
            )
        ]

    def describe(self, label_names: LabelNames, n_labels: int) -> dict[str, Any]:
        """Return the sample, as many of it as the page can hold."""
        order = np.argsort(self._keys, kind="stable").tolist()
        sizes = np.cumsum([len(encode_json(self._instances[i]).encode()) + 1 for i in order])
        n_shown = int(np.searchsorted(sizes, MAX_BYTES, side="right"))
        shown = [self._instances[i] for i in sorted(order[:n_shown])]
        note = f"All {self.n_seen:,} predictions."
        if n_shown < self.n_seen:
            note = f"A random sample: {n_shown:,} of {self.n_seen:,} predictions."
        if n_labels <= N_NAMES:
            return {"labels": show_names(label_names, n_labels), "note": note, "instances": shown}
        labels = sorted({label for instance in shown for label in _labels_in(instance)})
        place = {label: j for j, label in enumerate(labels)}
        return {
            "labels": show_names(label_names, labels),
            "note": note,
            "instances": [_renumber(instance, place) for instance in shown],
        }


def _labels_in(instance: dict[str, Any]) -> list[int]:
    """Return all labels that the description of an instance names by number."""
    found = [label for name in LABEL_FIELDS for label in instance.get(name, ())]
    found += [label for label, _ in instance["probabilities"]]
    return found + [label for labels, *_ in instance["best"] for label in labels]


def _renumber(instance: dict[str, Any], place: dict[int, int]) -> dict[str, Any]:
    """Return a description whose labels have other numbers."""
    fields = {name: instance[name] for name in LABEL_FIELDS if name in instance}
    return {
        **instance,
        **{name: [place[label] for label in labels] for name, labels in fields.items()},
        "probabilities": [[place[label], p] for label, p in instance["probabilities"]],
        "best": [[[place[label] for label in labels], *rest] for labels, *rest in instance["best"]],
    }


def _describe_marginals(marginals: Any, predicted: list[list[int]]) -> list[list[list[Any]]]:
    """Return the most probable and the predicted labels of each instance, the first ones first.

    Of sparse rows only labels that are listed.
    """
    described = []
    rows = sparse.csr_array(marginals)
    for i, chosen in enumerate(predicted):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        labels, values = rows.indices[part], rows.data[part]
        order = np.argsort(-(values + np.isin(labels, chosen)), kind="stable")[:N_MARGINALS]
        pairs = [[int(labels[at]), round(float(values[at]), N_DIGITS)] for at in order]
        described.append(sorted(pairs, key=lambda pair: -pair[1]))
    return described


Batch = tuple[LabelsetDistribution, Labelsets | None, Labelsets | None]
"""Distributions, what is predicted (None for the mode), and the truth where it is known."""

FROM_TRUTH = "these predictions and their truth"


def make_model_report(
    model: Any, batches: Iterable[Batch], title: str, open_cost: float | None = None
) -> Page:
    """Return the page of a fitted model and of its predictions for some instances."""
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
        estimator = model.accuracy_estimator_
        table = ScoreTable.from_distribution(
            dist, Y_true, Y_pred, metrics=self.metrics, decision_rule=estimator.decision_
        )
        found = assess_table(model, dist, table)
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
        if estimator._can_compare:
            rows, keys = self.viewed.draw(len(dist))
            self.viewed.add(estimator._view_table(dist, table, rows), keys)
        sums = estimator._sum_up(table)
        self.sums = sums if self.sums is None else self.sums + sums
        if Y_true is not None:
            self.compared.append((found.accuracy, table.accuracy(model.metric, model.empty)))

    def describe(self, metric: Metric) -> dict[str, Any]:
        totals, sums = self.totals, self.sums
        assert totals is not None
        assert sums is not None
        estimator = self.model.accuracy_estimator_
        estimate = estimator._estimate_sums(sums, level=self.model.confidence)
        test, untested = estimator._compare_with_calibration(self.viewed.view)
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
            "sentences": [str(estimate), f"Judged: {self.model.judged_}."],
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
