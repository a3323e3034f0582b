"""Monitoring a stream: alarms that unchanged streams raise with a chance of 5% over all time.

**Inputs.** Each chunk, and the last 2, 4, 8, ... chunks together, are compared with the calibration
set by the means of all columns that a shift test sees (`compare_means`, valid at any level). The
tests of chunk t share a part w_t of the level, sum w_t = 1. A union bound needs no independence, so
that all of them may use the same calibration rows.

**Accuracy.** A labelled row with accuracy a and estimate f gives an unbiased outcome
z = a - lambda * (f - g), where g is the mean estimate of unlabelled rows of the same chunk that no
other labelled row uses. So outcomes of one population are independent, with its mean accuracy as
their mean. Bets that the mean is below c pay 1 + stake * (c - z). One bet begins at each chunk t
with a part w_t of the capital, for each stake of a grid. If the mean accuracy is never below c, the
sum of all capitals is a supermartingale from 1, which reaches 1 / error with a probability of at
most `error` (Ville). Late bets have not lost what early ones lost before the accuracy fell.

**Both samples.** Without a given bound, "the stream is as accurate as the calibration set" is true
of an unknown mean c. Capital against c from the calibration set (bets that its mean is above c)
times that from the stream (below c) is at most 1 on average if c is the mean of both, so that an
alarm at the first time when the product reaches 1 / error for every c has a chance of at most
`error`. A fixed lower limit of c would count the uncertainty of the calibration set twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Protocol, TypedDict

import numpy as np
import pandas as pd
from scipy.special import bdtr

from labelsure._runtime.arguments import read_number, read_whole_number
from labelsure._runtime.notebook import N_ROWS, count, make_html
from labelsure._runtime.pages import Page
from labelsure._runtime.typing import FeaturesLike, Floats, Indices, Labelsets
from labelsure.distributions._base import LabelsetDistribution
from labelsure.distributions._probabilities import make_generator
from labelsure.distributions.candidates import CANDIDATES, full_name
from labelsure.errors import InputError
from labelsure.estimation._batch_estimates import read_few_labels
from labelsure.estimation._batch_summary import BatchSummary
from labelsure.estimation._diagnostics import rank_excess, warn_of_chosen_rows
from labelsure.estimation._estimator import AccuracyEstimator
from labelsure.estimation._shift import MAX_ROWS, compare_means, sample_rows
from labelsure.estimation.score_table import ScoreTable, keep_marginals
from labelsure.metrics.registry import check_empty, counts, get_metric

N_MOVED = 3  # columns that are named

ALERTS = {
    (False, False): "none",
    (True, False): "inputs",
    (False, True): "accuracy",
    (True, True): "inputs and accuracy",
}
"""Alert by (alarm of inputs, alarm of accuracy)."""

N_STEPS = 1000  # of the grid of means: 0, 0.001, ..., 1
STAKES = 0.98 * 0.5 ** np.arange(7)  # shares of the capital that the worst outcome costs
LABEL_PARTS = 4  # of the error, for 1 of inputs, where labels are compared with calibration rows
STAKED = 0.9  # share of the capital that is bet on calibration rows
MOST_MISSING = 1e-6  # probability of so few labelled rows below which some were left out


class Predicted(Protocol):
    """Distributions of rows and decisions; None for the mode."""

    @property
    def dist(self) -> LabelsetDistribution: ...  # noqa: D102
    @property
    def decisions(self) -> Labelsets | None: ...  # noqa: D102


class Predicting(Protocol):
    """Predictor of a fitted classifier."""

    def predict(self, X: FeaturesLike, /) -> Predicted: ...  # noqa: D102


class FittedParts(Protocol):
    """Parts of a classifier with an accuracy estimator."""

    @property
    def predictor(self) -> Predicting: ...  # noqa: D102
    @property
    def accuracy_estimator(self) -> AccuracyEstimator: ...  # noqa: D102


class Model(Protocol):
    """A classifier with an accuracy estimator."""

    @property
    def fitted_(self) -> FittedParts: ...  # noqa: D102


class MonitorSettings(TypedDict, total=False):
    """Arguments of `monitor` beside the stream."""

    chunk_size: int | None
    labels: Mapping[Any, tuple[object, ...]] | None
    bound: float | None
    reference: object
    error: float
    level: float


def monitor(
    estimator: AccuracyEstimator | Model,
    chunks: Any,
    *,
    chunk_size: int | None = None,
    labels: Mapping[Any, tuple[object, ...]] | None = None,
    bound: float | None = None,
    reference: object = None,
    error: float = 0.05,
    level: float = 0.95,
) -> MonitorResult:
    """Monitor a stream chunk by chunk, with alarms that are valid at every time.

    A stream that does not change raises an alarm, at any chunk however long it is watched, with a
    probability of at most `error`. Without labels the monitor detects that inputs have changed;
    that accuracy has fallen is shown by labels of some rows, drawn at random.

    Parameters
    ----------
    estimator
        A fitted `AccuracyEstimator` or `AccuracyAwareClassifier`.
    chunks
        The stream from its beginning: chunks one after the other, each a distribution or a table,
        with an `AccuracyAwareClassifier` features X; a dict of them by name, such as
        `dict(list(X.groupby(pd.Grouper(freq="W"))))`; or one of them that is cut by `chunk_size`.
    chunk_size
        Cut the stream every so many rows.
    labels
        Labels of some rows: `{chunk: (rows, Y_true, probability)}` by number or name of the chunk,
        with the positions of the rows, their truth, and the probability with which each row of the
        chunk was drawn: the same for all, fixed before anyone saw them.
    bound
        Mean accuracy that is acceptable. None means that of the calibration set, whose sampling
        error the test then includes.
    reference
        A batch of usual rows that inputs are compared with; None means the calibration set. A
        cross-fitted model needs one.
    error
        Probability that an unchanged stream ever raises an alarm. Inputs and labels get equal
        parts, without a `bound` parts of 1 and 4.
    level
        Confidence level of the interval from `low` to `high`.

    Returns
    -------
    MonitorResult
        A `MonitoredChunk` for each chunk; `to_frame()` is a table, `report()` a page for people.

    See Also
    --------
    shift_test : Compare one batch with a reference.
    AccuracyAwareClassifier.monitor : The same for features.
    AccuracyAwareClassifier.draw_audit : Draw rows to label.

    Notes
    -----
    Betting on means: Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables
    by betting, JRSS B 86, arXiv:2010.09686. Prediction-powered monitoring: arXiv:2602.02229. How
    often unchanged streams raised alarms, and how late changes were found, is measured in
    `docs/howto/monitoring.md`.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsure import AccuracyEstimator, IndependentLabels
    >>> rng = np.random.default_rng(0)
    >>> usual, harder = rng.beta(0.3, 0.3, size=(900, 4)), rng.uniform(size=(300, 4))
    >>> dist = IndependentLabels(np.concatenate([usual, harder]))
    >>> Y = dist.sample(1, random_state=1)[:, 0]
    >>> estimator = AccuracyEstimator("exact").fit(dist[:600], Y[:600])
    >>> rows = rng.choice(300, 60, replace=False)
    >>> labels = {1: (rows, Y[900:][rows], 0.2)}
    >>> found = monitor(estimator, dist[600:], chunk_size=300, labels=labels)
    >>> columns = ["estimated", "p_value", "accuracy", "bound", "p_accuracy", "alert"]
    >>> found.to_frame()[columns].round(2)
       estimated  p_value  accuracy  bound  p_accuracy   alert
    0       0.57      1.0       NaN   0.56        1.00    none
    1       0.29      0.0      0.35   0.56        0.12  inputs
    """
    accuracy_estimator, reference_view = _read_reference(reference, estimator)
    if reference_view is None and not labels:
        raise InputError(
            "`reference` must be given for a cross-fitted model, got None: the model has no "
            "held-out rows to compare with. Pass a batch of typical rows, or `labels`, or hold "
            "rows out, e.g. by cv=0.4."
        )
    if labels is not None and not isinstance(labels, Mapping):
        raise InputError(
            "`labels` must be a dict with (rows, Y_true, probability) for chunks, got a "
            f"{type(labels).__name__}."
        )
    labelled, calibration_capital, limit = dict(labels or {}), np.ones(N_STEPS), ""
    label_parts = bool(labelled) * (LABEL_PARTS if bound is None else 1)
    part = read_number(error, "error", 0, 1, ends="()") / (
        (reference_view is not None) + label_parts
    )
    if bound is not None:
        n_below = int(read_number(bound, "bound", 0, 1) * N_STEPS)
        calibration_capital[: min(n_below, N_STEPS - 1)] = np.inf
    elif labelled:
        limit = "that of the calibration set, "
        bound, calibration_capital = _bet_on_calibration(accuracy_estimator)
    sequence = BettingConfidenceSequence(accuracy_estimator._lambda)
    views: list[pd.DataFrame] = []
    monitored: list[MonitoredChunk] = []
    excesses = [(0.0, 0.0)]
    for number, (name, chunk) in enumerate(_name_chunks(chunks, chunk_size), 1):
        dist, Y_pred = _predict(estimator, chunk)
        batch = accuracy_estimator.estimate_rows(dist, Y_pred)
        table, estimated = batch.table, batch.accuracy
        estimate = accuracy_estimator.estimate(
            BatchSummary(batch.sums()), level=level, shift="ignore"
        )
        p_value, p_limit, moved = np.nan, np.nan, ""
        if reference_view is not None:
            views.append(table._view(sample_rows(len(table))))
            p_limit = part * float(alpha_spending(number))
            p_value, names = _compare_windows(reference_view, views)
            moved = ", ".join(names) if p_value < p_limit else ""
        n_labelled, accuracy = 0, np.nan
        if name in labelled:
            positions, values = _read_labels(
                accuracy_estimator, dist, table, name, labelled.pop(name)
            )
            excesses.append(rank_excess(estimated, positions))
            outcomes = sequence.make_outcomes(values, estimated, positions, seed=number)
            n_labelled, accuracy = len(positions), float(outcomes.mean())
            sequence.bet(outcomes, float(alpha_spending(len(excesses) - 1)))
        high, p_accuracy = np.nan, np.nan
        if labels:
            high = sequence.upper_bound(label_parts * part)
            p_accuracy = sequence.p_value(calibration_capital)
        alarms = (p_value < p_limit, p_accuracy <= label_parts * part)
        of_inputs = (estimate.mean, estimate.low, estimate.high, p_value, p_limit, moved)
        of_labels = (n_labelled, accuracy, high, np.nan if bound is None else bound, p_accuracy)
        monitored.append(
            MonitoredChunk(name, estimate.n_samples, *of_inputs, *of_labels, ALERTS[alarms])
        )
    if labelled:
        raise InputError(
            f"Each chunk of `labels` must be in the stream, {next(iter(labelled))!r} is not."
        )
    warn_of_chosen_rows(excesses)
    return MonitorResult(tuple(monitored), accuracy_estimator._quantity, level, error, limit)


ADVICE = {
    "none": "Nothing to do.",
    "inputs": "Estimates may be wrong from here on: draw rows at random (`draw_audit`), label "
    "them, and pass them as `labels=`.",
    "accuracy": "Stop accepting predictions unreviewed, label new rows, and fit the model again.",
}
"""Advice by the kind of the first alarm."""


@dataclass(frozen=True)
class MonitoredChunk:
    """A chunk of a monitored stream.

    Parameters
    ----------
    chunk, n_samples
        Its number or name, and its number of rows.
    estimated, low, high
        Its mean accuracy if nothing but inputs has changed, with an interval for this chunk alone.
    p_value
        Of "inputs are like the calibration set", for this chunk or for the last ones together.
    p_limit
        What `p_value` must be below for an alarm.
    moved
        The columns that differ most then.
    n_labelled
        Number of its labelled rows.
    accuracy
        Prediction-powered mean accuracy of these.
    accuracy_high
        A confidence sequence: mean accuracy has fallen below it.
    bound
        Acceptable mean accuracy, or that of the calibration set.
    p_accuracy
        P-value of "mean accuracy is not below the bound", valid at every time.
    alert
        "none", "inputs", "accuracy" or "inputs and accuracy".
    """

    chunk: object
    n_samples: int
    estimated: float
    low: float
    high: float
    p_value: float
    p_limit: float
    moved: str
    n_labelled: int
    accuracy: float
    accuracy_high: float
    bound: float
    p_accuracy: float
    alert: str

    @property
    def name(self) -> str:
        """Name of the chunk; the date of a midnight."""
        return str(self.chunk).removesuffix(" 00:00:00")


@dataclass(frozen=True, repr=False)
class MonitorResult:
    """Result of `monitor`: estimates, p-values and alarms of each chunk.

    Parameters
    ----------
    chunks
        From the beginning of the stream.
    quantity
        What is estimated, in words: "mean F1".
    level
        Confidence level of the intervals.
    error
        Probability that an unchanged stream ever raises an alarm.
    limit
        What the bound is, in words; empty where it was given.
    """

    chunks: tuple[MonitoredChunk, ...]
    quantity: str
    level: float
    error: float
    limit: str = ""

    def to_frame(self) -> pd.DataFrame:
        """Table with a row for each chunk."""
        rows = [vars(chunk) for chunk in self.chunks]
        return pd.DataFrame(rows, columns=[field.name for field in fields(MonitoredChunk)])

    @property
    def alarms(self) -> tuple[MonitoredChunk, ...]:
        """Chunks with an alarm."""
        return tuple(chunk for chunk in self.chunks if chunk.alert != "none")

    def __repr__(self) -> str:
        return repr(self.to_frame())

    def __str__(self) -> str:
        return " ".join(self._sentences())

    def _sentences(self) -> list[str]:
        """Sentences: first alarm if any, advice, and the estimate of the last chunk."""
        if not self.chunks:
            return ["No chunks."]
        last = self.chunks[-1]
        latest = (
            f"Latest chunk, {last.name}: estimated {self.quantity} {last.estimated:.3f} "
            f"({100 * self.level:g}% interval {last.low:.3f} to {last.high:.3f})."
        )
        if not self.alarms:
            return [f"No alarm in {count(len(self.chunks), 'chunk')}.", ADVICE["none"], latest]
        of_accuracy = [chunk for chunk in self.alarms if "accuracy" in chunk.alert]
        first = (of_accuracy or self.alarms)[0]
        cause, advice = "inputs are not like the calibration set", ADVICE["inputs"]
        if of_accuracy:
            cause = f"{self.quantity} has fallen below {self.limit}{first.bound:.3f}"
            advice = ADVICE["accuracy"]
        elif any(chunk.n_labelled for chunk in self.chunks):
            advice = "Labelled rows do not show so far that accuracy has fallen: go on labelling."
        return [f"Alarm: {cause}, first in chunk {first.name}.", advice, latest]

    def _repr_html_(self) -> str:
        return make_html(str(self), self.to_frame().tail(N_ROWS))

    def report(self, title: str = "Has anything changed?") -> Page:
        """HTML page on the chunks; `save(path)` writes it as one file."""
        from labelsure import __version__

        ends = self.to_frame()[["low", "high", "accuracy", "bound"]]
        low, high = np.floor(10 * ends.min().min()) / 10, np.ceil(10 * ends.max().max()) / 10
        rows = []
        for chunk in self.chunks:
            moved = ", ".join(map(full_name, filter(None, chunk.moved.split(", "))))
            values = vars(chunk) | {"chunk": chunk.name, "moved": moved}
            rows.append({name: _plain(value) for name, value in values.items()})
        data: dict[str, object] = {
            "title": title,
            "version": __version__,
            "made": f"{datetime.now(UTC):%d %B %Y}".lstrip("0"),
            "said": self._sentences(),
            "is_alarm": bool(self.alarms),
            "rows": rows,
            "limits": [_plain(low), _plain(max(high, low + 0.1))],
            "has_moved": any(chunk.moved for chunk in self.chunks),
            "has_labels": any(chunk.n_labelled for chunk in self.chunks),
            "quantity": self.quantity,
            "level": self.level,
            "error": self.error,
            "limit": self.limit,
            "sections": [("chart", "Accuracy by chunk"), ("chunks", "Chunks"), ("alert", "Alerts")],
        }
        return Page("monitor", data)


def _plain(value: float | str | None) -> float | str | None:
    """Value as a JSON scalar; None for a missing one."""
    if isinstance(value, (int, str, np.integer)):
        return value if isinstance(value, str) else int(value)
    return None if value is None or np.isnan(value) else round(float(value), 6)


def alpha_spending(number: Any) -> Any:
    """Share of the level of chunk 1, 2, ...; the shares sum up to 1.

    1 / (1 + log t) - 1 / (1 + log(t + 1)) falls hardly faster than 1 / t: chunk 500 gets 4e-5.
    """
    return 1 / (1 + np.log(number)) - 1 / (1 + np.log(number + 1))


class BettingConfidenceSequence:
    """Capitals of bets that mean accuracy is below c, for each c of 0, 0.001, ..., 1."""

    def __init__(self, lambda_: float) -> None:
        self._lambda = lambda_
        self._means = np.arange(N_STEPS + 1)[:, np.newaxis] / N_STEPS
        # Outcomes are at most 1 + lambda, so that a bet on c loses at most 1 + lambda - c.
        self._stakes = STAKES / np.maximum(1 + lambda_ - self._means, 1 / N_STEPS)
        self._capitals, self._unspent = np.zeros_like(self._stakes), 1.0

    def make_outcomes(self, accuracy: Floats, estimated: Floats, rows: Any, seed: int) -> Floats:
        """Unbiased outcomes of the labelled rows of a chunk, (k,), independent of each other."""
        rng = make_generator(seed)
        others = rng.permutation(np.delete(estimated, rows))
        size = len(others) // len(rows)
        if size == 0:
            return accuracy
        blocks = others[: size * len(rows)].reshape(len(rows), size).mean(axis=1)
        # lambda times size / (size + 1): the mean of a block of `size` estimates has a variance.
        return accuracy - self._lambda * size / (size + 1) * (estimated[rows] - blocks)

    def bet(self, outcomes: Floats, part: float) -> None:
        """Begin bets with a part of the capital, and settle all bets on these outcomes."""
        self._unspent -= part
        self._capitals += part
        for outcome in outcomes:
            self._capitals *= 1 + self._stakes * (self._means - outcome)
            np.minimum(self._capitals, 1e100, out=self._capitals)  # enough for any error

    @property
    def capitals(self) -> Floats:
        """Capital against each mean, (1001,): at most 1 on average if the mean is not below it."""
        return self._capitals.mean(axis=1) + self._unspent

    def upper_bound(self, error: float) -> float:
        """Upper confidence bound of the mean, valid at every time; 1 without evidence."""
        is_shown = self.capitals[1:] >= 1 / error
        n_shown = N_STEPS if is_shown.all() else int(np.argmin(is_shown[::-1]))
        return (N_STEPS - n_shown + 1) / N_STEPS if n_shown else 1.0

    def p_value(self, against: Floats) -> float:
        """P-value of "accuracy has not fallen", valid at every time.

        The mean before is in one of the intervals [0, 0.001], ..., [0.999, 1]. If it is in
        interval i, then `against[i]`, (1000,), is at most 1 on average, as is the capital against
        the interval's lower end.
        """
        return float(min(1.0, 1 / (self.capitals[:-1] * against).min()))


def _compare_windows(
    reference_view: pd.DataFrame, views: list[pd.DataFrame]
) -> tuple[float, list[str]]:
    """P-value of the last 1, 2, 4, ... chunks up to 2,000 rows (Bonferroni), and moved columns."""
    tests, size, window = [], 1, views[-1]
    while True:
        tests.append(compare_means(reference_view, window))
        if len(window) >= MAX_ROWS or size >= len(views):
            break
        size *= 2
        window = pd.concat(views[-size:])
    p_value, moved = min(tests, key=lambda pair: pair[0])
    moved = sorted(moved, key=CANDIDATES.__contains__)  # labels first, which say more to people
    return min(1.0, len(tests) * p_value), moved[:N_MOVED]


def _read_labels(
    accuracy_estimator: AccuracyEstimator,
    dist: LabelsetDistribution | ScoreTable,
    table: ScoreTable,
    name: object,
    labelled: object,
) -> tuple[Indices, Floats]:
    """Positions of the labelled rows of a chunk, and the accuracies of their predictions."""
    if not isinstance(labelled, tuple) or len(labelled) != 3:
        raise InputError(
            "`labels` must be (rows, Y_true, probability) for each chunk, where each row was "
            f"drawn with this probability, got {type(labelled).__name__} for {name!r}. Label rows "
            "drawn at random: other rows do not represent the chunk."
        )
    rows, Y_true, probability = labelled
    read_number(probability, "probability", 0, 1, ends="(]")
    positions, truth = read_few_labels(dist, table.decisions, Y_true, rows)
    if bdtr(len(positions), len(dist), probability) < MOST_MISSING or not len(positions):
        raise InputError(
            f"About {probability * len(dist):.0f} of the {len(dist):,} rows of chunk {name!r} "
            f"must be labelled if each was drawn with probability {probability:g}, got "
            f"{len(positions)}. Label every row that was drawn: the missing ones may be harder "
            "than the others."
        )
    assert table.decisions is not None  # refused above
    label_counts = counts(truth, table.decisions[positions])
    return positions, get_metric(accuracy_estimator.metric).values(
        *label_counts, empty=check_empty(accuracy_estimator.empty)
    )


def _bet_on_calibration(accuracy_estimator: AccuracyEstimator) -> tuple[float, Floats]:
    """Mean accuracy of the calibration set, and capital of bets that it is above c, (1000,).

    For c of 0.001, 0.002, ..., 1: a bet that accuracy is above c is one that 1 - accuracy is below
    1 - c.
    """
    if not accuracy_estimator.can_compare:
        raise InputError(
            "`bound` must be given with `labels` for a cross-fitted model, got None: its "
            "calibration accuracy is that of other models, fitted to folds."
        )
    accuracy = accuracy_estimator.compare_estimates()[1][accuracy_estimator.independent_rows()]
    sequence = BettingConfidenceSequence(0.0)
    sequence.bet(1 - accuracy, STAKED)
    return float(accuracy.mean()), sequence.capitals[:-1][::-1]


def _predict(
    estimator: AccuracyEstimator | Model, chunk: object
) -> tuple[LabelsetDistribution | ScoreTable, Labelsets | None]:
    """Distributions of a chunk and their decisions; None for the mode. Tables stay as they are."""
    if isinstance(estimator, AccuracyEstimator):
        return keep_marginals(chunk), None
    predictions = estimator.fitted_.predictor.predict(chunk)
    return keep_marginals(predictions.dist), predictions.decisions


def _read_reference(
    reference: object, estimator: AccuracyEstimator | Model
) -> tuple[AccuracyEstimator, pd.DataFrame | None]:
    """Accuracy estimator, and the view that chunks are compared with; None without one."""
    accuracy_estimator = estimator
    if not isinstance(accuracy_estimator, AccuracyEstimator):
        accuracy_estimator = accuracy_estimator.fitted_.accuracy_estimator
    if reference is not None:
        dist, Y_pred = _predict(estimator, reference)
        table = accuracy_estimator.estimate_rows(dist, Y_pred).table
        return accuracy_estimator, table._view(sample_rows(len(table)))
    return (
        accuracy_estimator,
        accuracy_estimator._calibration_view() if accuracy_estimator.can_compare else None,
    )


def _name_chunks(chunks: Any, chunk_size: int | None) -> Iterable[tuple[Any, Any]]:
    if isinstance(chunks, Mapping):
        return chunks.items()
    if chunk_size is not None:
        read_whole_number(chunk_size, "chunk_size")
        n_rows = int(chunks.shape[0]) if hasattr(chunks, "shape") else len(chunks)
        cuts = range(0, n_rows, int(chunk_size))
        rows_of = getattr(chunks, "iloc", chunks)
        return enumerate(rows_of[first : first + chunk_size] for first in cuts)
    if hasattr(chunks, "columns") or not isinstance(chunks, Iterable) or hasattr(chunks, "shape"):
        raise InputError(
            "`chunks` must be several chunks, or one batch with `chunk_size` to cut it by, got one "
            f"{type(chunks).__name__}. Write [chunk] for a single one."
        )
    return enumerate(chunks)
