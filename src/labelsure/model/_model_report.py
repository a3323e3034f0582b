"""HTML report of a model: acceptance, single predictions, labels and the model card."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from scipy import sparse

from labelsure._runtime.notebook import count
from labelsure._runtime.pages import Page, encode_json
from labelsure._runtime.typing import FeaturesLike, Floats, Indices, JsonObject, Labelsets, Mask
from labelsure.classifiers._inner_models import is_prefit
from labelsure.distributions._independent_labels import IndependentLabels
from labelsure.errors import InputError
from labelsure.estimation._batch_estimates import BatchSums, Estimate
from labelsure.estimation._batch_summary import BatchSummary
from labelsure.estimation._label_estimates import MEASURES, LabelBatch, LabelCounts
from labelsure.estimation._reliability import reliability
from labelsure.estimation._shift import ShiftTest, describe_shift
from labelsure.estimation.score_table import ScoreTable, calibration_marginals
from labelsure.guarantees._policy import AcceptPolicy
from labelsure.labelsets.label_names import show_names
from labelsure.labelsets.lists import name_rows, to_indices
from labelsure.labelsets.sparse import make_sparse
from labelsure.model._assessment import Assessment, assess_rows, is_outside
from labelsure.model._fitted import Fitted
from labelsure.model._predictor import Predictions

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

N_STEPS = 200  # slider positions beside thresholds with a bound
N_BINS = 20  # of the histogram on [0, 1]
N_PAIRS = 20  # of most confused labels
N_LABELS = 200  # in the table of labels
N_CELLS = 4_000_000  # marginals behind the table of labels: 32 MB

MAX_INSTANCES = 500
"""Largest number of rows of a page."""

MAX_BYTES = 600_000
"""Largest size of all rows of a page."""

MAX_LETTERS = 200
"""Length to which texts are cut."""

MANY_LABELS = 50
"""Number of labels beyond which the most probable labelsets of chains take up to seconds a row."""

FEW_INSTANCES = 200  # rows of a page for more labels than `MANY_LABELS`
N_MARGINALS = 12  # labels of a row, the most probable and the predicted ones
N_DIGITS = 3


@dataclass(frozen=True)
class PageBatch:
    """Rows of a page.

    Parameters
    ----------
    predictions
        Distributions and decisions.
    truth
        (n, L) true labelsets, or None.
    shown
        Columns of X to show, or None.
    """

    predictions: Predictions
    truth: Labelsets | None = None
    shown: pd.DataFrame | None = None


class RowSample(Generic[T]):
    """Random sample of a stream of rows: each draws a key, the smallest keys stay (bottom-k)."""

    def __init__(self, size: int, seed: int = 0) -> None:
        self.size, self.keys = size, np.empty(0)
        self.rows: list[T] = []
        self._random = np.random.default_rng(seed)

    def add(self, n_rows: int, describe: Callable[[Indices], Iterable[T]]) -> None:
        """Add `n_rows` rows; `describe` returns those at some positions."""
        n_old = len(self.keys)
        keys = np.concatenate([self.keys, self._random.random(n_rows)])
        chosen = np.sort(np.argsort(keys, kind="stable")[: self.size])
        self.rows = [self.rows[i] for i in chosen[chosen < n_old]]
        self.rows += describe(chosen[chosen >= n_old] - n_old)
        self.keys = keys[chosen]


def choose_columns(X: FeaturesLike, show: Sequence[str]) -> pd.DataFrame | None:
    """Columns of X that a page may show: those named, or X itself if it is a vector of texts."""
    import pandas as pd

    if hasattr(X, "columns"):
        missing = [name for name in show if name not in X.columns]
        if missing:
            raise InputError(
                f"`show` must name columns of the rows, got {missing[0]!r}. They have "
                f"{', '.join(map(repr, list(X.columns)[:10]))}."
            )
        return pd.DataFrame(X[list(show)]) if show else None
    if show:
        raise InputError(f"`show` needs a DataFrame X, got {type(X).__name__}.")
    values = np.asarray(X, dtype=object) if isinstance(X, list) else X
    is_texts = np.ndim(values) == 1 and len(values) and isinstance(next(iter(values)), str)
    return pd.DataFrame({"text": np.asarray(values)}) if is_texts else None


class PageRows:
    """Data of a page about predictions, which may come in parts."""

    def __init__(self, model: Fitted, open_cost: float | None) -> None:
        self.model, self.open_cost = model, open_cost
        self.metric = model.metric
        self.stops = _slider_positions(model)
        self.of_all = BatchSums.of(np.empty(0), np.zeros(1))
        self.sums = [self.of_all] * len(self.stops)
        self.columns: list[str] = []
        n_labels = model.n_labels
        self.sample = RowSample[JsonObject](
            FEW_INSTANCES if n_labels > MANY_LABELS else MAX_INSTANCES
        )
        self.for_labels = RowSample[tuple[Floats, Labelsets]](max(100, N_CELLS // n_labels))
        self.summary: BatchSummary | None = None
        self.n_predicted = np.zeros(n_labels, dtype=np.int64)
        self.n_true, self.n_hit = self.n_predicted.copy(), self.n_predicted.copy()
        self.confusions = sparse.csr_array((n_labels, n_labels), dtype=np.int64)
        self._estimated: list[Floats] = []
        self._scores: list[Floats] = []  # estimates; REFERRED for rows outside input ranges
        self._actual: list[Floats] = []

    @property
    def n(self) -> int:
        """Number of predictions."""
        return sum(map(len, self._estimated))

    def add(self, batch: PageBatch) -> None:
        """Add a part of the predictions."""
        dist, Y_true, shown = batch.predictions.dist, batch.truth, batch.shown
        if len(dist) == 0:
            return
        estimator = self.model.accuracy_estimator
        estimated, first_row = self.model.estimate_rows(batch.predictions, Y_true), self.n
        assessment = assess_rows(self.model, batch.predictions, estimated)
        scores = np.where(is_outside(assessment.reason), REFERRED, assessment.accuracy)
        self._estimated.append(assessment.accuracy)
        self._scores.append(scores)
        self.of_all += estimated.sums()
        for i, stop in enumerate(self.stops):
            self.sums[i] += estimated.sums(scores >= stop["threshold"])
        if estimator.can_compare:
            summary = estimated.summarise()
            self.summary = summary if self.summary is None else self.summary + summary
        predicted: Any = make_sparse(assessment.Y_pred)
        self.n_predicted += predicted.sum(axis=0, dtype=np.int64)
        if Y_true is not None:
            self._actual.append(estimated.table.accuracy(self.metric, self.model.empty))
            true: Any = make_sparse(Y_true)
            hits = true.multiply(predicted)
            self.n_true += true.sum(axis=0, dtype=np.int64)
            self.n_hit += hits.sum(axis=0, dtype=np.int64)
            missed, added = (sparse.csr_array(Y - hits, dtype=np.int64) for Y in (true, predicted))
            self.confusions += sparse.csr_array(missed.T @ added)
        marginals = calibration_marginals(dist)
        if not dist.sparse_rows:
            self.for_labels.add(
                len(dist), lambda rows: zip(marginals[rows], assessment.Y_pred[rows], strict=True)
            )
        texts = None if shown is None else shown.astype(str).to_numpy()
        self.columns = [] if shown is None else [str(name) for name in shown.columns]

        def describe(rows: Indices) -> list[JsonObject]:
            true = None if Y_true is None else Y_true[rows]
            described = _describe_rows(assessment[rows], true, marginals[rows], self.open_cost)
            for i, instance in zip(rows, described, strict=True):
                instance["id"] = str(first_row + i if dist.index is None else dist.index[i])
                instance["score"] = float(scores[i])
                if texts is not None:
                    instance["shown"] = [_truncate(text) for text in texts[i]]
            return described

        self.sample.add(len(dist), describe)

    def complete(self, scored: pd.DataFrame) -> None:
        """Replace estimates and numbers of predictions of a sample by those of all rows."""
        estimated = scored["estimated_accuracy"].to_numpy(dtype=np.float64)
        scores = np.where(is_outside(scored["reason"].to_numpy()), REFERRED, estimated)

        def scale(estimates: Floats, sampled: BatchSums) -> BatchSums:
            return BatchSums.of(estimates, sampled.slopes * (len(estimates) / sampled.n_samples))

        for i, stop in enumerate(self.stops):
            sampled = self.sums[i] if self.sums[i].n_samples else self.of_all
            self.sums[i] = scale(estimated[scores >= stop["threshold"]], sampled)
        self.of_all = scale(estimated, self.of_all)
        names = show_names(self.model.label_names, self.model.n_labels)
        counted = scored["predicted"].explode().value_counts()
        self.n_predicted = np.array([counted.get(name, 0) for name in names], dtype=np.int64)
        self._estimated, self._scores = [estimated], [scores]

    def describe(self) -> JsonObject:
        """Data of the page about the predictions."""
        model, estimator, n = self.model, self.model.accuracy_estimator, self.n
        noun = estimator.reference_.quantity.removeprefix("mean ")
        estimates = [
            estimator.estimate(BatchSummary(sums), level=model.confidence, shift="ignore")
            if sums.n_samples
            else None
            for sums in self.sums
        ]
        view = None if self.summary is None else self.summary.view
        test, untested = estimator.compare_with_calibration(view)
        is_found = test is not None and test.found
        has_truth = bool(self._actual)
        estimated = np.concatenate(self._estimated)
        actual = np.concatenate(self._actual) if has_truth else None
        policy, threshold = model.policy, model.card.threshold
        scores = np.concatenate(self._scores)
        accepted = scores >= (np.inf if threshold is None else threshold)
        of_all = estimator.estimate(
            BatchSummary(self.of_all), level=model.confidence, shift="ignore"
        )
        of_accepted = None if threshold is None else estimates[-1]
        answer = _answer_sentences(
            model, noun, n, int(accepted.sum()), (of_all, of_accepted), test, untested
        )
        note = f"Not reliable, see above: {of_all}" if is_found else str(of_all)
        if actual is not None:
            mean = f"{model.metric.title} on the {n:,} labelled rows: {actual.mean():.3f}"
            note += f" Actual mean {mean}."
        acceptance = self._describe_acceptance(noun, scores, actual, estimates, is_found)
        data = {
            "batch": {
                "n": n,
                "has_truth": has_truth,
                "histogram": _describe_histogram(estimated, accepted),
            },
            "answer": answer,
            "alert": _describe_alert(test, has_truth=has_truth) if is_found else "",
            "shift": {"found": is_found, "sentence": describe_shift(test, untested)},
            "notes": [
                note,
                "" if is_found else describe_shift(test, untested),
                _describe_condition(model),
            ],
            "compared": _comparison_rows(model, n, of_all, actual, accepted if policy else None),
            "acceptance": acceptance,
            "explorer": self._describe_sample(acceptance["thresholds"]),
            "labels": self._describe_labels(n),
            "confusions": self._describe_confusions(),
        }
        if actual is not None:
            data["reliability"] = _describe_reliability(
                reliability(estimated, actual)._to_lists(),
                f"these {n:,} predictions, by the given labels",
            )
        return data

    def _describe_acceptance(
        self,
        noun: str,
        scores: Floats,
        actual: Floats | None,
        estimates: list[Estimate | None],
        is_shifted: bool,
    ) -> JsonObject:
        """Numbers, means and bounds of accepted predictions at each slider position."""
        within = scores[scores >= 0]
        quantiles = np.quantile(within, np.linspace(0, 1, N_STEPS + 1), method="lower")
        quantiles = quantiles[: len(quantiles) * bool(len(within))]
        fixed = [stop["threshold"] for stop in self.stops]
        thresholds = np.unique(np.concatenate([fixed, quantiles]))
        ranked = np.sort(scores)
        first = np.searchsorted(ranked, thresholds)  # first accepted rank
        n = len(scores) - first

        def mean_above(values: Floats) -> list[float]:
            sums = np.append(values[::-1].cumsum()[::-1], 0.0)
            return (sums[first] / np.maximum(n, 1)).round(4).tolist()

        stops = {}
        for stop, estimate in zip(self.stops, estimates, strict=True):
            position = int(np.searchsorted(thresholds, stop["threshold"]))
            interval = (
                None if estimate is None else [round(estimate.low, 3), round(estimate.high, 3)]
            )
            holds = _describe_bound(self.model, noun, stop, is_shifted)
            stops[position] = {"holds": holds, "interval": interval, "own": stop["own"]}
        own = [position for position, stop in stops.items() if stop["own"]]
        order = np.argsort(scores, kind="stable")
        return {
            "thresholds": thresholds.tolist(),
            "n": n.tolist(),
            "estimated": mean_above(ranked),
            "actual": None if actual is None else mean_above(actual[order]),
            "stops": {str(position): stop for position, stop in sorted(stops.items())},
            "own": own[0] if own else None,
            "elsewhere": _describe_bound(self.model, noun, None, is_shifted),
        }

    def _describe_sample(self, thresholds: list[float]) -> JsonObject:
        """Random sample of predictions within `MAX_BYTES`."""
        order = np.argsort(self.sample.keys, kind="stable").tolist()
        rows = self.sample.rows
        sizes = np.cumsum([len(encode_json(rows[i]).encode()) + 1 for i in order])
        n_shown = int(np.searchsorted(sizes, MAX_BYTES, side="right"))
        shown = [rows[i] for i in sorted(order[:n_shown])]
        steps = np.searchsorted(thresholds, [row.pop("score") for row in shown], side="right") - 1
        for row, step in zip(shown, steps.tolist(), strict=True):
            row |= {"step": step, "estimated": round(row["estimated"], N_DIGITS)}
        note = f"All {self.n:,} predictions."
        if n_shown < self.n:
            note = f"A random sample: {n_shown:,} of {self.n:,} predictions."
        return {"note": note, "columns": self.columns, "instances": shown}

    def _describe_labels(self, n: int) -> JsonObject:
        """Most frequent labels: estimated measures and, with the truth, actual ones."""
        model, estimates = self.model, {}
        weight = (self.n_predicted + self.n_true).astype(float)
        calibration = model.accuracy_estimator.label_calibration_
        n_seen = len(self.for_labels.rows)
        if n_seen and calibration is not None:
            marginals, decisions = (
                np.stack(column) for column in zip(*self.for_labels.rows, strict=True)
            )
            dist = IndependentLabels(marginals, label_names=model.label_names)
            scored = ScoreTable.from_distribution(dist, None, decisions, metrics=[])
            batch = LabelBatch(calibration, scored)
            table = batch.estimate_labels(model.empty, model.confidence, random_state=0)
            estimates = dict(vars(table))
            for suffix in ("", "_low", "_high"):
                estimates[f"prevalence{suffix}"] = estimates.pop(f"n_true{suffix}") / n_seen
            weight += marginals.sum(axis=0)
        counts = LabelCounts(
            *(x.astype(float) for x in (self.n_hit, self.n_true, self.n_predicted))
        )
        actual = {name: counts.of_labels(of, np.nan) for name, of in MEASURES.items()}
        actual["prevalence"] = self.n_true / n
        order = np.argsort(-weight, kind="stable")
        occurring = order[weight[order] > 0]
        rows = []
        names = show_names(model.label_names, occurring[:N_LABELS].tolist())
        for label, name in zip(occurring[:N_LABELS].tolist(), names, strict=True):
            row: JsonObject = {"name": name, "n_predicted": int(self.n_predicted[label])}
            for measure in ("prevalence", *MEASURES):
                values = [
                    estimates[f"{measure}{suffix}"][label]
                    for suffix in ("", "_low", "_high")
                    if estimates
                ]
                row[measure] = [_number(value) for value in values]
                if self._actual:
                    row[f"actual_{measure}"] = _number(actual[measure][label])
            rows.append(row)
        return {
            "rows": rows,
            "is_estimated": bool(estimates),
            "n_rows": n_seen,
            "n_left_out": len(occurring) - len(rows),
            "n_absent": len(order) - len(occurring),
        }

    def _describe_confusions(self) -> list[JsonObject]:
        """Most frequent pairs of a missed label and a label predicted in its place."""
        pairs = self.confusions.tocoo()
        order = np.argsort(-pairs.data, kind="stable")[:N_PAIRS]
        order = order[pairs.data[order] > 0]
        names = self.model.label_names
        missed, added = (show_names(names, part[order]) for part in pairs.coords)
        return [
            {"missed": missed_name, "added": added_name, "n": int(n)}
            for missed_name, added_name, n in zip(missed, added, pairs.data[order], strict=True)
        ]


def _truncate(text: str) -> str:
    return text if len(text) <= MAX_LETTERS else f"{text[: MAX_LETTERS - 1]}…"


def _format_bound(bound: float) -> str:
    """Lower bound with three digits, rounded down."""
    return f"{math.floor(1000 * bound + 1e-6) / 1000:g}"


def _number(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), N_DIGITS)


REJECT_ALL, REFERRED = 2.0, -1.0
"""A threshold that rejects all scores, and a score below all thresholds."""


def _slider_positions(model: Fitted) -> list[JsonObject]:
    """Slider positions with a bound: the path, accept all, reject all; last the policy's own."""
    policy = model.policy
    bounds: dict[float, float | None] = {0.0: None, REJECT_ALL: None}
    if policy is not None:
        path = policy.path()
        thresholds = np.maximum(path.threshold, 0.0)
        bounds |= dict(zip(thresholds.tolist(), path.bound.tolist(), strict=True))
    stops = [{"threshold": t, "bound": bounds[t], "own": False} for t in sorted(bounds)]
    if policy is not None and policy.reached_:
        own = float(policy.threshold_)
        stops = [stop for stop in stops if stop["threshold"] != own]
        stops.append({"threshold": own, "bound": float(policy.bound_), "own": True})
    return stops


def _at_least(policy: AcceptPolicy) -> str:
    return "at least" if policy.guarantee == "exact" else "approximately at least"


def _describe_bound(model: Fitted, noun: str, stop: JsonObject | None, is_shifted: bool) -> str:
    """Guarantee at a slider position as a sentence; None for one without a bound."""
    level = f"{100 * model.confidence:g}% confidence"
    if stop is not None and stop["threshold"] == REJECT_ALL:
        return "Nothing is accepted."
    if is_shifted:
        return "No bound holds here: this batch has shifted."
    if model.policy is None:
        return "No guarantee: no target was set."
    if not model.holds_out:
        return "No guarantee: the model was cross-fitted."
    if stop is None or not stop["bound"]:
        return "No guarantee at this threshold."
    at_least = _at_least(model.policy)
    least = f"predictions accepted here average {at_least} {_format_bound(stop['bound'])} {noun}"
    if stop["own"]:
        prefix = "Guaranteed" if model.policy.guarantee == "exact" else "Approximate"
        return f"{prefix}: {least} ({level})."
    return f"Bound: {least} ({level} simultaneously for all thresholds of the slider)."


def _describe_rows(
    assessment: Assessment, Y_true: Labelsets | None, marginals: Floats, open_cost: float | None
) -> list[JsonObject]:
    """Data of single predictions, one dict each; estimates are not rounded yet."""
    if len(assessment) == 0:
        return []
    dist = assessment.distribution

    def name(labelsets: Labelsets | Mask) -> list[list[str]]:
        return [list(names) for names in name_rows(labelsets, dist.label_names)]

    columns = {"predicted": name(assessment.Y_pred)}
    if Y_true is not None:
        columns["truth"] = name(Y_true)
    if open_cost is not None:
        answers = assessment.leave_open(open_cost)
        columns |= {"open": name(answers.is_open), "decided": name(answers.is_certain)}
    if assessment.region is not None:
        region = assessment.region
        columns |= {"certain": name(region.is_certain), "possible": name(region.is_open)}
    most_probable = dist.top(min(2, 2**dist.n_labels))
    ranks = [name(most_probable.labelsets[:, k]) for k in range(most_probable.labelsets.shape[1])]
    probabilities = np.exp(dist.log_prob(assessment.Y_pred))
    probable, predicted = sparse.csr_array(marginals), to_indices(assessment.Y_pred)
    instances = []
    for i in range(len(assessment)):
        part = slice(probable.indptr[i], probable.indptr[i + 1])  # listed labels of sparse rows
        labels, values = probable.indices[part], probable.data[part].round(N_DIGITS)
        first = np.argsort(-(values + np.isin(labels, predicted[i])), kind="stable")[:N_MARGINALS]
        first = first[np.argsort(-values[first], kind="stable")]
        named = show_names(dist.label_names, labels[first].tolist())
        instance = {
            **{key: labelsets[i] for key, labelsets in columns.items()},
            "estimated": float(assessment.accuracy[i]),
            "probability": float(f"{probabilities[i]:.3g}"),
            "probabilities": list(zip(named, values[first].tolist(), strict=True)),
            "n_more": dist.n_labels - len(first),
        }
        others = [k for k, labelsets in enumerate(ranks) if labelsets[i] != columns["predicted"][i]]
        if others and (chance := float(most_probable.probabilities[i, others[0]])) > 0:
            instance["runner_up"] = ranks[others[0]][i]
            instance["runner_up_probability"] = float(f"{chance:.3g}")
        instances.append(instance)
    return instances


def _describe_histogram(estimated: Floats, accepted: object) -> list[JsonObject]:
    """Histogram of estimates: ends, number of rows and of accepted rows of each bin."""
    bins = np.minimum((estimated * N_BINS).astype(int), N_BINS - 1)
    n_all, n_accepted = (np.bincount(bins[rows], minlength=N_BINS) for rows in (..., accepted))
    edges = np.linspace(0, 1, N_BINS + 1).round(6).tolist()
    rows = zip(edges[:-1], edges[1:], n_all.tolist(), n_accepted.tolist(), strict=True)
    first = int(np.argmax(n_all > 0))
    return [{"low": a, "high": b, "n": n, "accepted": k} for a, b, n, k in rows][first:]


def _percent(part: int, whole: int) -> str:
    """Share in whole percents; 0% and 100% for none and all only."""
    return f"{part / whole if part in (0, whole) else min(max(part / whole, 0.01), 0.99):.0%}"


def _answer_sentences(
    model: Fitted,
    noun: str,
    n: int,
    k: int,
    estimates: tuple[Estimate, Estimate | None],
    test: ShiftTest | None,
    untested: str,
) -> list[str]:
    """First sentences of the page: predictions that need no review, and their guarantee."""
    policy, (of_all, of_accepted) = model.policy, estimates
    is_shifted = test is not None and test.found
    if policy is None:
        first = f"{count(n, 'prediction')}, estimated mean {noun} {of_all.mean:.3f}."
        second = "No target was set, so no prediction is accepted: `target=` chooses a threshold."
        return [first, second]
    if not policy.reached_:
        message = policy.message_.replace("mean accuracy", f"mean {noun}")
        return [f"All {n:,} predictions need review.", message]
    threshold = f"the threshold {policy.threshold_:.3g}"
    if k == 0 or of_accepted is None:
        at_calibration = f"{policy.share_:.1%} of {policy.n_samples_:,} calibration rows do."
        return [f"All {n:,} predictions need review: none reaches {threshold}.", at_calibration]
    interval = f"{of_accepted.low:.3f} to {of_accepted.high:.3f}"
    estimated = f"estimated for these {k:,}: {interval}."
    part = f"{k:,} of {n:,} predictions ({_percent(k, n)})" if k < n else f"all {n:,} predictions"
    bound = f"{_at_least(policy)} {_format_bound(policy.bound_)} {noun}"
    if is_shifted:
        return [
            f"Do not send out any prediction unreviewed: {part} reach {threshold}, but the batch "
            "has shifted.",
            f"The rule was shown to average {bound} on rows like the calibration set only.",
        ]
    if not model.holds_out:
        return [
            f"{part[0].upper()}{part[1:]} reach {threshold}; {n - k:,} need review.",
            f"No guarantee, as the model was cross-fitted; {estimated}",
        ]
    first = f"{part} can go out unreviewed; {n - k:,} need review."
    if k == n:
        first = f"All {n:,} predictions can go out unreviewed."
    asked = "" if policy.share is None else f"The share to accept was set to {policy.share:.0%}. "
    provided = " if this batch is like the calibration set" if untested else ""
    level = f"{100 * model.confidence:g}% confidence"
    second = f"{asked}Predictions accepted by this rule average {bound} ({level}){provided}; "
    return [first, second + estimated]


def _describe_alert(test: ShiftTest | None, *, has_truth: bool) -> str:
    advice = (
        "The accuracies by the given labels hold."
        if has_truth
        else "Label about 30 random rows of it: `estimate(X, rows=rows, Y_true=labels)` is valid "
        "under any shift."
    )
    return f"{describe_shift(test, '')} {advice}"


def _describe_condition(model: Fitted) -> str:
    """Condition of the guarantee that cannot be checked; empty without one."""
    if not model.card.guaranteed or not is_prefit(model.predictor.estimator):
        return ""
    return "All of this holds if the classifier was not trained on the calibration set."


def _comparison_rows(
    model: Fitted, n: int, estimate: Estimate, actual: Floats | None, accepted: Mask | None
) -> list[list[str]]:
    """Rows of (name, value of this batch, value of the calibration set)."""
    card, quantity = model.card, estimate.quantity
    calibrated = f"{card.estimated:.3f} ({card.low:.3f} to {card.high:.3f})"
    estimated = f"{estimate.mean:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"
    rows = [
        ["rows", f"{n:,}", f"{card.n_calibration:,}"],
        [f"estimated {quantity}", estimated, f"{calibrated}, {card.n_for_estimator:,} rows"],
    ]
    if actual is not None:
        sizes, means = (card.calibration[name] for name in ("n_samples", "accuracy"))
        total = sum(n * mean for n, mean in zip(sizes, means, strict=True) if n)
        of_calibration = f"{total / sum(sizes):.3f}, {sum(sizes):,} rows"
        rows.append([f"actual {quantity}", f"{actual.mean():.3f}", of_calibration])
    if accepted is not None and card.threshold is not None:
        of_batch = f"{accepted.mean():.1%}, {accepted.sum():,} rows"
        of_calibration = f"{card.share:.1%} of {card.n_for_policy:,} rows"
        rows.append([f"accepted at {card.threshold:.3g}", of_batch, of_calibration])
    return rows


def _describe_reliability(columns: dict[str, list[object]], source: str) -> JsonObject:
    """Data of the reliability diagram: its bins, their source and the calibration error."""
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    gaps = [r["n_samples"] * abs(r["estimated"] - r["accuracy"]) for r in rows if r["n_samples"]]
    n_all = sum(row["n_samples"] for row in rows)
    return {"source": source, "error": sum(gaps) / max(n_all, 1), "rows": rows}


def make_model_report(
    model: Fitted,
    batches: Iterable[PageBatch],
    title: str,
    open_cost: float | None = None,
    note: str = "",
    scored: pd.DataFrame | None = None,
) -> Page:
    """HTML page of a fitted model and of its predictions for batches of rows.

    With `scored`, the estimates and predicted names of all rows, `batches` are a random sample.
    """
    from labelsure import __version__

    card, noun = model.card, model.accuracy_estimator.reference_.quantity.removeprefix("mean ")
    level = model.accuracy_estimator.reference_.level
    rows = PageRows(model, open_cost)
    for batch in batches:
        rows.add(batch)
    if scored is not None:
        rows.complete(scored)
    data: JsonObject = {
        "title": title,
        "version": __version__,
        "made": f"{datetime.now(UTC):%d %B %Y}".lstrip("0"),
        "metric": noun,
        "judged": model.predictor.judged,
        "note": note,
        "batch": None,
        "alert": "",
        "facts": card.facts,
        "reliability": _describe_reliability(
            card.calibration, f"{card.calibration_from}, when the model was made"
        ),
        "answer": [
            f"A model of {count(model.n_labels, 'label')}: estimated mean {noun} "
            f"{card.estimated:.3f} ({100 * level:g}% interval {card.low:.3f} to {card.high:.3f})."
        ],
        "notes": [card.summary],
        "sections": [("reliability", "Is the estimate right?"), ("card", "The model")],
    }
    if rows.n:
        data |= rows.describe()
        data["sections"] = [
            ("acceptance", "What to accept"),
            ("explorer", "Predictions"),
            ("labels", "Labels"),
            ("sure", "Estimates"),
            *data["sections"],
        ]
        if data["shift"]["found"]:  # nothing is guaranteed on this page
            rule = f"Accept scores of {card.threshold} or more, for rows like the calibration set."
            data["facts"] = [(k, rule if k == "policy" else text) for k, text in card.facts]
    return Page("model", data)
