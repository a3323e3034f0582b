"""Models of accuracy: fitting with cross-validation, its peers, and predicting from profiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import labelsure as ls
from benchmarks.measure import Row, core_seconds, seconds
from labelsure._runtime.typing import Floats, Indices
from labelsure.estimation._design import Layout, column_scales, make_blocks, scale_columns
from labelsure.estimation._ridge import Problem, fit_path, minimise, penalty_path
from labelsure.estimation.score_table import ScoreTable

N_FIT, N_PATH, N_PREDICT = 50_000, 10_000, 1_000_000
N_FOLDS = 10


def pooled_table(n_samples: int) -> pd.DataFrame:
    """Return a score table like the study's: six data sets, three classifiers."""
    rng = np.random.default_rng(0)
    dist = ls.IndependentLabels(rng.beta(0.4, 0.6, size=(n_samples, 6)))
    table = ScoreTable.from_distribution(dist, dist.sample(1, random_state=1)[:, 0]).to_frame()
    return table.assign(
        dataset=rng.integers(6, size=n_samples).astype(str),
        classifier=rng.integers(3, size=n_samples).astype(str),
    )


def fitting() -> Iterator[Row]:
    table = pooled_table(N_FIT)
    groups = {"slope_groups": "dataset", "offset_groups": "classifier"}
    cases = {
        "one slope": (ls.AccuracyEstimator("jaccard", "mix"), {}),
        "the paper's groups": (ls.AccuracyEstimator("jaccard", "mix"), groups),
        "the paper's groups and multinomial": (
            ls.AccuracyEstimator("jaccard", "mix", response="rates"),
            groups,
        ),
    }
    for name, (estimator, given) in cases.items():
        taken = seconds(lambda e=estimator, g=given: e.fit(table, **g), repeats=1)
        what = f"fit of mix, {N_FIT:,} instances, 10 folds, 20 penalties, {name}"
        yield Row(what, taken, "s", 60, 15)


@dataclass(frozen=True)
class PathTask:
    """A path of penalties for logistic ridge regression, to be cross-validated and refitted.

    Parameters
    ----------
    problem
        The design as labelsure keeps it.
    X
        The same design as one array, without the column of the intercept.
    y
        Accuracies, fractions from 0 to 1.
    folds
        The fold of each row.
    penalties
        From the strongest down.
    """

    problem: Problem
    X: Floats
    y: Floats
    folds: Indices
    penalties: Floats


def make_path_task(n_slope_groups: int, n_offset_groups: int) -> PathTask:
    rng = np.random.default_rng(0)
    dist = ls.IndependentLabels(rng.beta(0.4, 0.6, size=(N_PATH, 6)))
    y = ls.accuracy(dist.sample(1, random_state=1)[:, 0], dist.mode(), "jaccard")
    features = ls.confidence(dist)[["HP", "TG", "CE", "GI", "SE", "CS"]].to_numpy()
    layout = Layout(features.shape[1], n_slope_groups, n_offset_groups)
    slope = rng.integers(max(1, n_slope_groups), size=N_PATH)
    offset = rng.integers(max(1, n_offset_groups), size=N_PATH)
    design = list(make_blocks(features, slope, offset, layout))
    design = scale_columns(design, column_scales(design, np.ones(N_PATH), layout))
    problem = Problem(design, np.column_stack([y, 1 - y]), 1, layout)
    X = np.zeros((N_PATH, layout.n_columns))
    for block in design:
        X[np.ix_(np.arange(N_PATH)[block.rows], block.columns)] = block.values
    X = np.ascontiguousarray(X[:, :-1])
    return PathTask(problem, X, y, np.arange(N_PATH) % N_FOLDS, penalty_path(problem))


def choose_by_ours(task: PathTask) -> float:
    fit = fit_path(task.problem, task.penalties, task.folds)
    penalty = float(fit.penalties[fit.best])
    minimise(task.problem, fit.coefficients[[fit.best]], np.ones((N_PATH, 1)), penalty)
    return penalty


def choose_by_scikit_learn(task: PathTask) -> float:
    """Warm starts along the path; a fraction is a row of each class, weighted by its share."""
    deviances = np.zeros(len(task.penalties))
    for fold in range(N_FOLDS + 1):  # the last leaves nothing out: the fit to all rows
        used, held_out = task.folds != fold, task.folds == fold
        X = np.vstack([task.X[used]] * 2)
        weights = np.concatenate([task.y[used], 1 - task.y[used]])
        classes = np.repeat([1, 0], used.sum())
        learner = LogisticRegression(solver="newton-cholesky", warm_start=True)
        for k, penalty in enumerate(task.penalties):
            learner.set_params(C=1 / (penalty * used.sum()))
            logits = learner.fit(X, classes, weights).decision_function(task.X)[held_out]
            deviances[k] += (np.logaddexp(0, logits) - task.y[held_out] * logits).sum()
    return float(task.penalties[deviances.argmin()])


def choose_by_glum(task: PathTask) -> float:
    from glum import GeneralizedLinearRegressorCV

    cv = [
        (np.flatnonzero(task.folds != fold), np.flatnonzero(task.folds == fold))
        for fold in range(N_FOLDS)
    ]
    peer = GeneralizedLinearRegressorCV(
        family="binomial", l1_ratio=0.0, alphas=task.penalties, cv=cv, n_jobs=1
    )
    return float(peer.fit(task.X, task.y).alpha_)


PEERS: dict[str, Callable[[PathTask], float]] = {
    "scikit-learn's newton-cholesky": choose_by_scikit_learn,
    "glum's": choose_by_glum,
}
# Without groups glum is as fast as ours. It has no response of more than two classes, which the
# paper's models need, and groups make it slower, as the zeros of a design cost it time.
NEEDED = {("one slope", "glum's"): 0.75}


def path() -> Iterator[Row]:
    """Compare the ridge path with those of other libraries, each on one thread."""
    for name, groups in {"one slope": (0, 0), "the paper's groups": (6, 3)}.items():
        task = make_path_task(*groups)
        with threadpool_limits(1):  # glum has threads of its own beside those of BLAS
            penalty = choose_by_ours(task)
            ours = core_seconds(lambda task=task: choose_by_ours(task), repeats=3)
        for peer, choose in PEERS.items():
            with threadpool_limits(1):
                if not np.isclose(choose(task), penalty):
                    raise AssertionError(f"{peer} path ends at another penalty than ours")
                theirs = core_seconds(lambda task=task, choose=choose: choose(task), repeats=1)
            what = f"20 penalties x 10 folds and the refit, {name}: {peer} / ours"
            yield Row(what, theirs / ours, "x", NEEDED.get((name, peer), 1), 2, True)


def predicting() -> Iterator[Row]:
    table = pooled_table(N_FIT)
    million = pd.concat([table] * (N_PREDICT // N_FIT), ignore_index=True)
    profile = ls.Profile(
        *(million[name].to_numpy() for name in ("log_top", "log_runner_up", "entropy")),
        million["log_collision"].to_numpy(),
        6,
    )
    mix = ls.AccuracyEstimator("jaccard", "mix", penalty=1e-3).fit(table)
    full = ls.AccuracyEstimator("jaccard", "full", penalty=1e-3).fit(table)
    cases = {"mix, a Profile": (mix, profile), "full, a table": (full, million)}
    for name, (estimator, given) in cases.items():
        taken = seconds(lambda e=estimator, g=given: e.predict(g), repeats=3)
        yield Row(f"predict of {N_PREDICT:,} instances, {name}", taken, "s", 1)


BENCHMARKS = {"accuracy_fitting": fitting, "ridge_path": path, "accuracy_predicting": predicting}
