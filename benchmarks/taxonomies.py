"""Labels with rules: what constraints gain, in likelihood, decisions, estimates and acceptance.

    python -m benchmarks.taxonomies docs/evidence/taxonomies.csv [set ...]

Each set gives probabilities of labels that were fitted one by one, for rows whose truth obeys the
rules: `digits` of scikit-learn with traits of which a digit has some, packages of Debian with their
debtags below their facets (from the package lists of this machine, where it has some), simulated
trees, and simulated single paths. In each split, random rows calibrate a model of these
probabilities and other rows test it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

import labelsure as ls
from labelsure.classifiers import ChainDependence

TARGET = 0.8
TRAITS = {
    "even": (0, 2, 4, 6, 8),
    "odd": (1, 3, 5, 7, 9),
    "small": (0, 1, 2, 3, 4),
    "large": (5, 6, 7, 8, 9),
    "with a loop": (0, 6, 8, 9),
}


@dataclass
class Task:
    """Features, truth by name, rules, sizes of a split, and splits in which chains are fitted."""

    X: Any
    Y: pd.DataFrame
    rules: ls.LabelConstraints
    n_train: int
    n_known: int = 120
    n_new: int = 60
    n_splits: int = 20
    n_dependence: int = 5
    has_powerset: bool = True


def digits() -> Task:
    """Digits seen through noise, of which two of three traits exclude each other."""
    rng = np.random.default_rng(0)
    X, digit = load_digits(return_X_y=True)
    Y = pd.DataFrame({str(d): (digit == d) * 1 for d in range(10)})
    for trait, some in TRAITS.items():
        Y[trait] = np.isin(digit, some) * 1
    parents = {str(d): [t for t, some in TRAITS.items() if d in some] for d in range(10)}
    exactly_one = [["even", "odd"], ["small", "large"]]
    rules = ls.LabelConstraints(parents, [list(map(str, range(10)))], exactly_one)
    return Task(X + 6 * rng.normal(size=X.shape), Y, rules, 700, 300, 300, n_dependence=20)


def debtags(n_packages: int = 6000, n_tags: int = 18) -> Task | None:
    """Short descriptions of packages, and the most frequent tags below their facets."""
    try:
        listed = subprocess.run(
            ["apt-cache", "dumpavail"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    packages: dict[str, tuple[str, set[str]]] = {}
    for entry in listed.split("\n\n"):
        fields = {}
        for name in ("Package", "Description(?:-en)?", "Tag"):
            if found := re.search(rf"^{name}: (.*(?:\n .*)*)", entry, re.MULTILINE):
                fields[name[:3]] = found[1]
        tags = {tag.strip() for tag in fields.get("Tag", "").replace("\n", " ").split(",")}
        if len(fields) == 3 and len({tag.split("::")[0] for tag in tags}) >= 3:
            packages[fields["Pac"]] = fields["Des"], tags
    if len(packages) < n_packages:
        return None
    rng = np.random.default_rng(0)
    chosen = [list(packages.values())[i] for i in rng.permutation(len(packages))[:n_packages]]
    counts = Counter(tag for _, tags in chosen for tag in tags)
    names = [tag for tag, _ in counts.most_common(n_tags) if "::" in tag]
    parents = {tag: tag.split("::")[0] for tag in names}
    for tag in names:
        if tag.rsplit(":", 1)[0] in names and "::" in tag.rsplit(":", 1)[0]:
            parents[tag] = tag.rsplit(":", 1)[0]
    names += sorted({tag.split("::")[0] for tag in names})
    rows = [tags | {tag.split("::")[0] for tag in tags} for _, tags in chosen]
    Y = pd.DataFrame([[int(name in tags) for name in names] for tags in rows], columns=names)
    X = TfidfVectorizer(min_df=5, sublinear_tf=True).fit_transform([text for text, _ in chosen])
    rules = ls.LabelConstraints(parents)
    closed = pd.DataFrame(rules.close(Y).labelsets, columns=names)
    varies = [name for name in names if closed[name].min() < closed[name].max()]
    return Task(X, closed[varies], ls.LabelConstraints(pd.DataFrame(parents.items())), 3000)


def simulated(n_labels: int, *, single_path: bool, seed: int = 0, least: int = 20) -> Task:
    """Draw children of a random tree from features, where their parents are true.

    Labels that fewer than `least` of 1,000 rows have are left out.
    """
    rng = np.random.default_rng(seed)
    parents = [
        -1,
        *(int(rng.integers(max(0, i // 4 - 1), max(1, i // 2))) for i in range(1, n_labels)),
    ]
    children: dict[int, list[int]] = {}
    for label, parent in enumerate(parents):
        children.setdefault(parent, []).append(label)
    n_samples = 3500
    X = rng.normal(size=(n_samples, 12))
    scores = 0.8 * X @ rng.normal(size=(12, n_labels))
    Y = np.zeros((n_samples, n_labels), dtype=int)
    for i in range(n_samples):
        waiting = [0]
        while waiting:
            label = waiting.pop()
            Y[i, label] = 1
            below = children.get(label, [])
            if single_path and below:
                odds = np.exp([*scores[i, below], -1.0])
                drawn = int(rng.choice(len(odds), p=odds / odds.sum()))
                waiting += below[drawn : drawn + 1]
            elif not single_path:
                # Siblings share a draw, so that they depend on each other beyond the rules.
                shared = rng.normal()
                p = 1 / (1 + np.exp(0.3 - scores[i, below] - shared))
                waiting += [
                    c for c, one in zip(below, rng.random(len(below)) < p, strict=True) if one
                ]
    names = [f"l{j}" for j in range(n_labels)]
    kept = [j for j in range(n_labels) if least <= Y[:1000, j].sum() < 1000 or j == 0]
    Y[:20, 0], Y[:20, 1:] = 0, 0  # a root that is always true is no label
    truth = pd.DataFrame(Y[:, kept], columns=[names[j] for j in kept])
    groups = [[names[j] for j in some if j in kept] for some in children.values()]
    rules = ls.LabelConstraints(
        pd.DataFrame([(names[j], names[p]) for j, p in enumerate(parents) if p >= 0]),
        [group for group in groups if len(group) > 1] if single_path else (),
    )
    return Task(X, truth, rules, 1500)


def many(n_labels: int) -> Task:
    """Simulate a tree of hundreds of labels."""
    task = simulated(n_labels, single_path=False, least=5)
    task.n_splits, task.n_known, task.n_new = 1, 60, 30
    task.n_dependence, task.has_powerset = 0, False
    return task


SETS = {
    "digits with traits": digits,
    "debtags": debtags,
    "single path": lambda: simulated(50, single_path=True),
    "tree": lambda: simulated(25, single_path=False),
    "tree of hundreds": lambda: many(200),
    "large tree": lambda: many(550),
}


def methods(
    task: Task, powerset: Any, *, with_dependence: bool
) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Name, estimator and settings of each method."""
    given = ls.PrecomputedProbabilities()
    yield "independent", given, {"recalibration": ls.LabelwiseCalibration()}
    if with_dependence:
        yield "dependence", given, {"recalibration": ChainDependence()}
    yield "constrained, not calibrated", given, {"constraints": task.rules, "recalibration": None}
    yield "constrained", given, {"constraints": task.rules}
    if powerset is not None:
        yield "powerset", FrozenEstimator(powerset), {"recalibration": None}


def measure(name: str, task: Task) -> Iterator[dict[str, Any]]:
    """Yield a row for each split and method."""
    Y = task.Y.to_numpy()
    train, rest = np.split(np.random.default_rng(1).permutation(len(Y)), [task.n_train])
    base = OneVsRestClassifier(LogisticRegression(max_iter=500)).fit(task.X[train], Y[train])
    P = pd.DataFrame(base.predict_proba(task.X[rest]).clip(1e-6, 1 - 1e-6), columns=task.Y.columns)
    powerset = (
        ls.LabelPowerset().fit(task.X[train], task.Y.iloc[train]) if task.has_powerset else None
    )
    for split in range(task.n_splits):
        order = np.random.default_rng(split).permutation(len(rest))
        known, new, _ = np.split(order, [task.n_known, task.n_known + task.n_new])
        with_dependence = split < task.n_dependence
        for method, estimator, settings in methods(task, powerset, with_dependence=with_dependence):
            X: Any = P if powerset is None or method != "powerset" else task.X[rest]
            take = (
                (lambda X, rows: X.iloc[rows]) if hasattr(X, "iloc") else (lambda X, rows: X[rows])
            )
            model = ls.AccuracyAwareClassifier(
                estimator, "f1", TARGET, random_state=split, **settings
            )
            truth, started = task.Y.iloc[rest[new]].to_numpy(), time.process_time()
            model.fit(take(X, known), task.Y.iloc[rest[known]].reset_index(drop=True))
            seconds_fit, started = time.process_time() - started, time.process_time()
            found = model.assess(take(X, new), shift="ignore")
            seconds = time.process_time() - started
            estimate = model.estimate(take(X, new), shift="ignore")
            actual = ls.accuracy(truth, np.asarray(found.Y_pred), "f1")
            logs = found.distribution.log_prob(truth)
            mode = np.asarray(found.distribution.mode())
            form = getattr(model.recalibration_, "form_", None)
            yield {
                "set": name,
                "labels": Y.shape[1],
                "split": split,
                "method": method,
                "form": type(form).__name__ if form is not None else "",
                "log_likelihood": logs.mean() if np.isfinite(logs).all() else np.nan,
                "exact_match": (mode == truth).all(axis=1).mean(),
                "f1": actual.mean(),
                "invalid": task.rules.check(found.Y_pred, list(task.Y))["row"].nunique() / len(new),
                "covered": estimate.low <= actual.mean() <= estimate.high,
                "width": estimate.high - estimate.low,
                "accepted": found.accepted.mean(),
                "accepted_f1": actual[found.accepted].mean() if found.accepted.any() else np.nan,
                "fit_seconds": seconds_fit,
                "ms_a_row": 1e3 * seconds / len(new),
            }


def main() -> None:
    """Write all rows to a file; sets that are not measured keep their rows."""
    warnings.simplefilter("ignore")
    path, *wanted = sys.argv[1:]
    rows: list[dict[str, Any]] = []
    for name in wanted or SETS:
        task = SETS[name]()
        if task is None:
            print(name, "is not on this machine", flush=True)
            continue
        for row in measure(name, task):
            rows.append(row)
            pd.DataFrame(rows).to_csv(path, index=False, float_format="%.4f")
        means = pd.DataFrame([row for row in rows if row["set"] == name]).drop(
            columns=["set", "form"]
        )
        print(name, means.groupby("method", sort=False).mean().round(3).to_string(), flush=True)


if __name__ == "__main__":
    main()
